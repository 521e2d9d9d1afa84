//! From nothing to a mount that answers.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use workfs::limits::LOCK_PATIENCE;

use crate::harness::{
    Fixture, Setup, Task, await_end, await_exit, left_out, mounted_below, needs, pid_alive,
    processes_of, program, python, run, send_signal, until_polled,
};

// P6.1
#[test]
fn mount_makes_the_store_and_returns_when_the_mount_answers() {
    let fixture = Setup::default().prepare();
    let ran = fixture.mount_at(fixture.root()).success();
    // At once, without waiting: it answers.
    fs::create_dir_all(fixture.path("work/inbox")).unwrap();
    fixture.task("inbox", &Task::new("t-1"));
    println!("{ran}");
    let name = fixture.store().file_name().unwrap().to_str().unwrap();
    for entry in fs::read_dir(fixture.store().parent().unwrap()).unwrap().flatten() {
        // The store, its log, its lock, its socket.
        if entry.file_name().to_str().unwrap().starts_with(name) {
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{entry:?} is its owner's alone");
        }
    }
}

// P6.2
#[test]
fn a_second_mount_joins_the_daemon() {
    let fixture = Setup::default().mounts(3).start();
    let pids = processes_of(fixture.store());
    assert_eq!(pids.len(), 1, "one daemon a store: {pids:?}");
    assert_eq!(pids[0], fixture.daemon_pid());
    let ps = fixture.workfs(&["ps"]).success();
    for mount in fixture.mounts() {
        assert!(ps.stdout.contains(mount.to_str().unwrap()), "{ps}");
    }
    fs::write(fixture.mount(2).join("f"), b"x").unwrap();
    assert_eq!(fs::read(fixture.mount(0).join("f")).unwrap(), b"x");
}

// P6.2
#[test]
fn many_that_mount_at_once_share_one_daemon() {
    let fixture = Setup::default().mounts(8).prepare();
    std::thread::scope(|scope| {
        for mount in fixture.mounts() {
            let fixture = &fixture;
            scope.spawn(move || fixture.mount_at(mount).success());
        }
    });
    assert_eq!(processes_of(fixture.store()).len(), 1);
    assert_eq!(mounted_below(fixture.base()).len(), 8);
    for mount in fixture.mounts() {
        fs::read_dir(mount).unwrap();
    }
}

/// A process that has the store's lock until its input ends, called as one that does this.
fn holder(fixture: &Fixture, does: &str) -> Child {
    let script = "
import fcntl, os, sys
lock = open(sys.argv[1], 'r+')
fcntl.flock(lock, fcntl.LOCK_EX)
lock.truncate(0)
lock.write(str(os.getpid()))
lock.flush()
print('held', flush=True)
sys.stdin.read()
";
    let mut command = Command::new(python());
    command.args(["-c", script]).arg(fixture.store().with_extension("db.lock")).arg(does);
    let mut holder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "held\n");
    holder
}

// P6.2
#[test]
fn who_needs_a_daemon_that_does_not_listen_yet_waits_for_it() {
    let fixture = Setup::default().prepare();
    fixture.workfs(&["init"]).success();
    let dir = fixture.root().to_str().unwrap();
    // As a daemon on a slow disk, or with a long log to read.
    let mut begins = holder(&fixture, "daemon");
    let commands = [&["mount", dir][..], &["list"], &["unmount", "--all"]];
    let waiting = commands.map(|arguments| fixture.command(arguments).spawn().unwrap());
    for one in &waiting {
        assert!(!await_exit(one.id(), LOCK_PATIENCE * 2), "it gives up");
    }
    drop(begins.stdin.take());
    begins.wait().unwrap();
    let codes = waiting.map(|mut one| one.wait().unwrap().code());
    assert_eq!(codes[..2], [Some(0); 2]);
    fixture.workfs(&["unmount", "--all"]);
    // Whoever else has it may keep it.
    let mut other = holder(&fixture, "import");
    assert_eq!(fixture.mount_at(fixture.root()).code, 9);
    drop(other.stdin.take());
    other.wait().unwrap();
}

// P6.2
#[test]
fn mounting_the_same_directory_again_adds_nothing() {
    let fixture = Fixture::new();
    let again = fixture.mount_at(fixture.root());
    println!("{again}");
    assert_eq!(mounted_below(fixture.base()).len(), 1);
    assert_eq!(processes_of(fixture.store()).len(), 1);
    fs::read_dir(fixture.root()).unwrap();
}

// P6.3 P8.1
#[test]
fn in_front_it_says_what_it_mounted_and_stays_until_it_is_interrupted() {
    let fixture = Setup::default().prepare();
    let root = fixture.root().to_str().unwrap();
    let mut command = fixture.command(&["mount", "-f", "--json", root]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut told = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut told).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&told).unwrap()["dir"], root);
    assert_eq!(mounted_below(fixture.base()).len(), 1);
    fs::write(fixture.path("f"), b"x").unwrap();
    assert!(pid_alive(child.id()));
    send_signal(child.id(), rustix::process::Signal::INT);
    await_end(child.id());
    let status = child.wait().unwrap();
    println!("{status}");
    assert!(mounted_below(fixture.base()).is_empty());
    assert!(processes_of(fixture.store()).is_empty());
    fixture.mount_all();
    assert_eq!(fs::read(fixture.path("f")).unwrap(), b"x");
}

// P6.1
#[test]
fn clients_of_an_outer_name_space_of_processes_are_served() {
    let fixture = Setup::default().prepare();
    let mount = fixture.command(&["mount", "-f", fixture.root().to_str().unwrap()]);
    // There the daemon is the first process, and knows none of this one's.
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child"]).arg(mount.get_program());
    command.args(mount.get_args()).current_dir(fixture.base());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    for (name, value) in mount.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let mut child = command.spawn().unwrap();
    let mounted = || (!mounted_below(fixture.base()).is_empty()).then_some(());
    until_polled("the mount", || mounted().or_else(|| child.try_wait().unwrap().map(drop)));
    if child.try_wait().unwrap().is_some() {
        return left_out("a name space of processes needs root");
    }
    fs::write(fixture.path("f"), b"x").unwrap();
    fixture.workfs(&["status", "--json"]).success();
    fixture.workfs(&["unmount", fixture.root().to_str().unwrap()]).success();
    assert!(child.wait().unwrap().success());
}

// P6.1
#[test]
fn ps_says_what_is_mounted_where_and_nothing_if_nothing_is() {
    let fixture = Setup::default().prepare();
    let none = fixture.workfs(&["ps", "--json"]);
    assert!(!none.stdout.contains("m0"), "{none}");
    fixture.mount_all();
    // Also of one that is there already it is told as whom it acts.
    let again = fixture.workfs(&["mount", "--json", fixture.root().to_str().unwrap()]).success();
    assert_eq!(again.json()["role"], "operator", "{again}");
    let json = fixture.workfs(&["ps", "--json"]).success().json();
    assert!(json.to_string().contains(fixture.root().to_str().unwrap()), "{json}");
}

/// `mount` and `mount -a`, in a name space of its own in which the program is installed as `$HELPER`:
/// mount(8) looks for the one, `mount.fuse3` for the other.
const BY_MOUNT: &str = "set -eu
mkdir upper temporary
ln -s \"$W\" \"upper/$HELPER\"
mount -t overlay -o lowerdir=/usr/sbin,upperdir=upper,workdir=temporary overlay /usr/sbin
echo \"$S $M fuse.workfs $OPTIONS 0 0\" > fstab
mount -a -T fstab -t fuse.workfs
grep -F \" $M fuse.workfs \" /proc/self/mounts | grep -F noatime
echo x > \"$M/f\"
umount \"$M\"
mount -t fuse.workfs -o \"$OPTIONS,ro\" \"$S\" \"$M\"
cat \"$M/f\"
if touch \"$M/f\"; then exit 9; fi
umount \"$M\"";

// P6.1
#[test]
fn mount_and_fstab_bring_their_own_options() {
    if !rustix::process::geteuid().is_root() {
        return left_out("mount(8) of any directory needs root");
    }
    if !needs(&["unshare", "mount.fuse3"]) {
        return;
    }
    for helper in ["workfs", "mount.fuse.workfs"] {
        let fixture = Setup::default().prepare();
        let own = fixture.command(&[]);
        let mut command = Command::new("unshare");
        command.args(["--mount", "bash", "-c", BY_MOUNT]).current_dir(fixture.base());
        command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("W", own.get_program()).env("S", fixture.store()).env("M", fixture.root());
        command.env("HELPER", helper).env(
            "OPTIONS",
            "defaults,auto,nofail,users,exec,_netdev,x-systemd.requires=network.target,\
             comment=systemd.automount,noatime,nodiratime,max_read=131072,subtype=workfs",
        );
        let ran = run(&mut command).success();
        assert!(ran.stdout.ends_with("x\n"), "{ran}");
        fixture.await_no_daemon();
    }
}

// P6.1
#[test]
fn the_form_of_fstab_mounts() {
    let fixture = Setup::default().prepare();
    let helper = fixture.outside("mount.fuse.workfs");
    std::os::unix::fs::symlink(program(), &helper).unwrap();
    let call = "$HELPER \"$STORE\" \"$DIR\" -o rw,noatime,nofail";
    let shell = fixture.bash().with("HELPER", &helper).with("STORE", fixture.store());
    // Not in the mount point, which is to be mounted on.
    let shell = shell.with("DIR", fixture.root()).with("HOME", fixture.base().join("home"));
    shell.run(&format!("cd / && {call}")).success();
    fs::write(fixture.path("f"), b"x").unwrap();
    fixture.workfs(&["unmount", fixture.root().to_str().unwrap()]).success();
}

// P6.1
#[test]
fn a_time_of_processor_for_who_mounts_does_not_end_the_daemon() {
    let fixture = Setup::default().prepare();
    let (workfs, store) = (program(), fixture.store().display());
    let mount = format!("exec {workfs} --store {store} mount {}", fixture.root().display());
    fixture.sh(&format!("cd /; ulimit -S -t 5; {mount}")).success();
    let limits = fs::read_to_string(format!("/proc/{}/limits", fixture.daemon_pid())).unwrap();
    let limit = limits.lines().find(|line| line.starts_with("Max cpu time")).unwrap();
    assert_ne!(limit.split_whitespace().nth(3), Some("5"), "{limit}");
}
