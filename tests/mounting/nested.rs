//! Mounts that lie in a mount.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::harness::{
    Fixture, Ran, await_end, left_out, mounted_below, processes_of, run, send_signal,
};

/// A mount in which another store's lies, and one that is none of workfs.
struct Nest {
    outer: Fixture,
    /// The other store.
    store: PathBuf,
    /// Its mount, and the other one.
    dirs: [PathBuf; 2],
}

impl Nest {
    fn new() -> Option<Nest> {
        if !rustix::process::geteuid().is_root() {
            left_out("another mount needs root");
            return None;
        }
        let outer = Fixture::new();
        let store = outer.outside("inner.db");
        let dirs = ["a", "b"].map(|name| outer.path(name));
        dirs.iter().for_each(|dir| fs::create_dir(dir).unwrap());
        let nest = Nest { outer, store, dirs };
        nest.inner(&["mount", nest.dirs[0].to_str().unwrap()]).success();
        run(Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&nest.dirs[1])).success();
        Some(nest)
    }

    /// A command about the store whose mount lies in the other's.
    fn inner(&self, arguments: &[&str]) -> Ran {
        run(&mut self.outer.command_on(&self.store, arguments))
    }

    fn mode(dir: &Path) -> u32 {
        use std::os::unix::fs::MetadataExt as _;
        fs::metadata(dir).unwrap().mode() & 0o7777
    }
}

impl Drop for Nest {
    fn drop(&mut self) {
        // A test that failed leaves it; the fixture ends the daemon of its own store only.
        let _ = self.inner(&["unmount", "--all", "--lazy"]);
    }
}

// P6.4
#[test]
fn a_mount_with_others_in_it_is_not_taken_from_below_them_unasked() {
    let Some(nest) = Nest::new() else { return };
    let dir = nest.outer.root().to_str().unwrap();
    let [inner, volume] = nest.dirs.each_ref().map(|dir| dir.to_str().unwrap());
    for command in [&["unmount", dir][..], &["unmount", "--all"]] {
        let ran = nest.outer.workfs(command).failure();
        let named = format!("others lie in it: {inner} (fuse.workfs), {volume} (tmpfs)");
        assert!(ran.code == 5 && ran.stderr.contains(&named), "{ran}");
        assert!(!ran.stderr.contains("dead") && !ran.stderr.contains("in use"), "{ran}");
        assert_eq!(mounted_below(nest.outer.base()).len(), 3);
    }
    // Who takes them away first goes on as ever, and the directory is as it was.
    nest.inner(&["unmount", "--all"]).success();
    run(Command::new("umount").arg(volume)).success();
    assert_eq!(Nest::mode(&nest.dirs[0]), 0o755);
    nest.outer.workfs(&["unmount", "--all"]).success();
    assert!(mounted_below(nest.outer.base()).is_empty());
}

// P6.4
#[test]
fn who_says_so_takes_all_of_them_along() {
    let Some(nest) = Nest::new() else { return };
    let pid = nest.outer.daemon_pid();
    nest.outer.workfs(&["unmount", "--all", "--lazy"]).success();
    await_end(pid);
    assert!(mounted_below(nest.outer.base()).is_empty());
}

// P6.4
#[test]
fn a_daemon_that_is_told_to_end_says_what_goes_along() {
    let Some(nest) = Nest::new() else { return };
    let pid = nest.outer.daemon_pid();
    send_signal(pid, Signal::TERM);
    await_end(pid);
    assert!(mounted_below(nest.outer.base()).is_empty());
    let log = fs::read_to_string(nest.outer.store().with_extension("db.log")).unwrap();
    let said = log.lines().find(|line| line.contains("go along")).unwrap_or_default();
    for dir in &nest.dirs {
        assert!(said.contains(dir.to_str().unwrap()), "{log}");
    }
    assert!(processes_of(nest.outer.store()).is_empty());
}

// P6.4
#[test]
fn a_dead_mount_in_a_dead_mount_is_taken_away_and_its_directory_given_back_once_that_is_there() {
    let Some(nest) = Nest::new() else { return };
    let (dir, [inner, _]) = (nest.outer.root(), nest.dirs.each_ref());
    for store in [nest.store.as_path(), nest.outer.store()] {
        processes_of(store).into_iter().for_each(|pid| {
            send_signal(pid, Signal::KILL);
            await_end(pid);
        });
    }
    let ran = nest.inner(&["unmount", "--all"]).success();
    assert!(ran.stderr.contains(&format!("{} was a dead mount", inner.display())), "{ran}");
    nest.outer.workfs(&["unmount", "--all", "--lazy"]).success();
    assert!(mounted_below(nest.outer.base()).is_empty());

    nest.outer.workfs(&["mount", dir.to_str().unwrap()]).success();
    assert_eq!(Nest::mode(inner), 0o555);
    nest.inner(&["unmount", inner.to_str().unwrap()]).success();
    assert_eq!(Nest::mode(inner), 0o755);
}

// P6.7
#[test]
fn nobody_waits_for_what_lies_in_the_mount_of_a_stopped_daemon() {
    let Some(nest) = Nest::new() else { return };
    let pid = nest.outer.daemon_pid();
    let plain = nest.outer.path("plain");
    fs::create_dir(&plain).unwrap();
    let link = nest.outer.outside("link");
    std::os::unix::fs::symlink(&plain, &link).unwrap();
    let copy = plain.join("copy.db");
    let [plain, link, copy] = [&plain, &link, &copy].map(|path| path.to_str().unwrap());
    // In that directory before it does not answer any more.
    let doctor = nest.outer.command_on(&nest.store, &["doctor"]);
    let mut stop = Command::new("sh");
    stop.args(["-c", "cd \"$1\" && kill -STOP \"$2\" && shift 2 && exec \"$@\"", "sh", plain]);
    stop.arg(pid.to_string()).arg(doctor.get_program()).args(doctor.get_args());
    stop.envs(doctor.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let told = run(&mut stop);
    let commands = [["mount", plain], ["mount", link], ["unmount", plain], ["backup", copy]];
    let ran = std::thread::scope(|scope| {
        let nest = &nest;
        let run = commands.each_ref().map(|command| scope.spawn(|| nest.inner(command)));
        run.map(|one| one.join().unwrap())
    });
    send_signal(pid, Signal::CONT);
    assert!(told.stdout.contains(&format!("{plain} does not answer")), "{told}");
    for ran in ran {
        assert!(ran.code == 75 && ran.stderr.contains("does not answer"), "{ran}");
    }
    // Nothing came of it behind the back of who was refused.
    assert_eq!(mounted_below(nest.outer.base()).len(), 3);
}

// P6.4
#[test]
fn a_daemon_is_not_led_into_its_own_mount_by_another_name() {
    if !rustix::process::geteuid().is_root() {
        left_out("a bind mount needs root");
        return;
    }
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("pub")).unwrap();
    fs::write(fixture.path("pub/f"), "x").unwrap();
    let (bound, link) = (fixture.outside("bound"), fixture.outside("link"));
    fs::create_dir(&bound).unwrap();
    run(Command::new("mount").arg("--bind").args([fixture.root(), &bound])).success();
    std::os::unix::fs::symlink(bound.join("pub"), &link).unwrap();
    for dir in [bound.join("pub"), link] {
        let place = |name: &str| dir.join(name).to_str().unwrap().to_owned();
        for arguments in [
            &["backup", &place("b.db")][..],
            &["export", &place("out")],
            &["import", &place(""), "work"],
        ] {
            let ran = fixture.workfs_within(arguments, Duration::from_secs(20));
            assert!(ran.code == 2 && ran.stderr.contains("inside the mount"), "{ran}");
        }
    }
    run(Command::new("umount").arg(&bound)).success();
    fixture.workfs(&["backup", fixture.outside("b.db").to_str().unwrap()]).success();
}
