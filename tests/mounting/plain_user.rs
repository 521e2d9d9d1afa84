//! All of it by a user who is not root: mounting goes through fusermount3.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use crate::harness::{Fixture, Ran, Setup, Task, left_out, mounted_below, needs, run};

/// User and group `nobody` of Debian.
const NOBODY: u32 = 65534;

/// Becomes that user and runs `$SCRIPT`. Where /dev/fuse is root's alone, it does so in a name space
/// of mounts in which the device has its usual mode.
const BECOME: &str = "set -eu
if [ -n \"$DEVICE\" ]; then
    [ -e \"$DEVICE\" ] || mknod -m 666 \"$DEVICE\" c 10 229
    mount --bind \"$DEVICE\" /dev/fuse
fi
if [ -z \"$AS_ROOT\" ]; then
    exec setpriv --reuid 65534 --regid 65534 --clear-groups bash -c \"$SCRIPT\"
fi
exec bash -c \"$SCRIPT\"";

/// `w` is `workfs` with the store, `gone` fails while the mount is there.
const BEGIN: &str = "set -eu
w() { \"$W\" --store \"$S\" \"$@\"; }
gone() { ! grep -qF \" $M \" /proc/self/mounts; }
";

fn can_become_another() -> bool {
    let can = rustix::process::geteuid().is_root();
    if !can {
        left_out("becoming another user needs root");
    }
    can && needs(&["setpriv", "unshare", "fusermount3"])
}

/// A fixture that is that user's.
fn of_nobody() -> Fixture {
    let fixture = Setup::default().prepare();
    own(fixture.base());
    fixture
}

fn own(path: &Path) {
    std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| own(&entry.unwrap().path()));
    }
}

/// Runs a script as that user, and waits until its daemon has ended.
#[track_caller]
fn as_nobody(fixture: &Fixture, script: &str) -> Ran {
    where_others_mount(fixture, script, "")
}

/// Runs a script where that user can mount; as root where that is said.
#[track_caller]
fn where_others_mount(fixture: &Fixture, script: &str, as_root: &str) -> Ran {
    let is_usual = fs::metadata("/dev/fuse").is_ok_and(|device| device.mode() & 0o006 == 0o006);
    let device = if is_usual { "".into() } else { fixture.outside("fuse") };
    let own = fixture.command(&[]);
    let mut command = Command::new("unshare");
    command.args(["--mount", "bash", "-c", BECOME]).current_dir(fixture.base());
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("DEVICE", device).env("AS_ROOT", as_root).env("SCRIPT", format!("{BEGIN}{script}"));
    command.env("W", own.get_program()).env("S", fixture.store()).env("M", fixture.root());
    let ran = run(command.env("OUT", fixture.outside(""))).success();
    fixture.await_no_daemon();
    assert!(mounted_below(fixture.base()).is_empty());
    ran
}

// P6.3
#[test]
fn who_is_not_root_mounts_claims_saves_and_unmounts() {
    if !can_become_another() {
        return;
    }
    let fixture = of_nobody();
    fs::write(fixture.outside("t-1.yaml"), Task::new("t-1").text()).unwrap();
    let ran = as_nobody(
        &fixture,
        "w mount $M
         cd $M/work 2>/dev/null || { mkdir $M/work; cd $M/work; }
         mkdir -p inbox assigned/bob
         cp $OUT/t-1.yaml inbox/
         mv inbox/t-1.yaml assigned/bob/
         grep -q 'status: assigned' assigned/bob/t-1.yaml
         if sed -i s/assigned/nonsense/ assigned/bob/t-1.yaml; then exit 9; fi
         sed -i s/assigned/in_progress/ assigned/bob/t-1.yaml
         w fsck
         cd /
         w unmount $M
         gone; id -u",
    );
    assert!(ran.stdout.ends_with("65534\n"), "{ran}");
}

// P4.5
#[test]
fn who_may_only_read_the_store_reads_it_and_mounts_it_read_only() {
    if !can_become_another() {
        return;
    }
    let fixture = of_nobody();
    let ran = as_nobody(
        &fixture,
        "w mount $M 2>/dev/null
         echo kept > $M/note
         w unmount $M
         chmod 400 $S; chmod 500 $(dirname $S)
         w status; w mount $M
         cat $M/note
         if echo x > $M/note; then exit 9; fi
         w ps | grep -F $M
         w unmount $M
         chmod 700 $(dirname $S)
         # The directory may be written, its file not.
         w mount $M -o ro
         cat $M/note
         w unmount $M
         if w agent add carl; then exit 9; fi
         chmod 000 $S
         if w list; then exit 9; fi
         chmod 600 $S
         w agent add carl",
    );
    assert!(ran.stderr.contains("Permission denied"), "{ran}");
    assert!(ran.stderr.contains("the store cannot be read: opening"), "{ran}");
    assert!(ran.stderr.contains("mounted read-only"), "{ran}");
}

// P6.3
#[test]
fn who_is_not_root_takes_the_mount_of_a_stopped_daemon_from_sight() {
    if !can_become_another() {
        return;
    }
    as_nobody(
        &of_nobody(),
        "w mount $M
         daemon=$(w ps --json | grep -o '\"pid\":[0-9]*' | head -n 1 | grep -o '[0-9]*')
         kill -STOP $daemon
         PATH=/nowhere w unmount --lazy $M && ended=0 || ended=$?
         kill -CONT $daemon
         gone; exit $ended",
    );
}

// P13.1 P7.5
#[test]
fn who_is_not_root_commits_by_a_rename_onto_the_name() {
    if !can_become_another() {
        return;
    }
    let ran = as_nobody(
        &of_nobody(),
        "w mount $M; cd $M
         mkdir .workfs/txn/x; echo 1 > .workfs/txn/x/one
         mv -T .workfs/txn/x .workfs/commit
         grep 1 one
         # What cannot be there is refused by the file system itself, and not for want of a right.
         for refused in 'touch .workfs/new' 'mkdir .workfs/new' 'rm .workfs/status' 'mv one .workfs/one' \\
             'rmdir .workfs/txn' 'mv -T .workfs/hold .workfs/commit' 'chmod 700 .workfs'; do
             if $refused 2> ${OUT}said; then exit 9; fi
             grep -q 'Read-only file system' ${OUT}said || { cat ${OUT}said; exit 8; }
         done
         cd /; w unmount $M",
    );
    assert_eq!(ran.stdout, "1\n", "{ran}");
}

// P6.3 P10.7
#[test]
fn who_is_not_root_unmounts_with_fusermount_and_has_mounts_for_commands() {
    if !can_become_another() {
        return;
    }
    let ran = as_nobody(
        &of_nobody(),
        "w mount $M
         echo kept > $M/note
         fusermount3 -u $M
         gone
         w exec --agent bob -- cat note",
    );
    assert!(ran.stdout.ends_with("kept\n"), "{ran}");
}

// P6.3 P10.7
#[test]
fn a_daemon_that_is_killed_under_a_command_of_who_is_not_root_leaves_no_mount() {
    if !can_become_another() {
        return;
    }
    let ran = as_nobody(
        &of_nobody(),
        "export TMPDIR=${OUT}tmp; mkdir $TMPDIR
         w init >/dev/null
         if w exec --agent bob -- sh -c 'kill -9 $(cat $0.lock); cat note' $S; then exit 9; fi
         if grep -F \" $TMPDIR/\" /proc/self/mounts; then exit 9; fi
         ls -A $TMPDIR
         w exec --agent bob -- touch note",
    );
    // What it says is the kernel's: the connection was cut before or after it asked.
    assert!(ran.stderr.contains("cat: note: "), "{ran}");
    assert_eq!(ran.stdout, "", "{ran}");
}

// P6.1 P6.4
#[test]
fn a_mount_of_who_is_not_root_that_is_refused_leaves_a_dead_one_where_it_is() {
    if !can_become_another() {
        return;
    }
    as_nobody(
        &of_nobody(),
        "w mount --agent bob $M; kill -9 $(cat $S.lock); while stat -f $M >/dev/null 2>&1; do :; done
         if w mount --agent bob --role observer $M; then exit 9; fi
         if touch $M/file; then exit 9; fi
         w mount --agent bob $M; touch $M/file; w unmount $M; gone",
    );
}

// P6.4 P6.8
#[test]
fn root_replaces_and_takes_away_a_user_s_dead_mount() {
    if !can_become_another() {
        return;
    }
    let fixture = of_nobody();
    let ran = where_others_mount(
        &fixture,
        "u() { setpriv --reuid 65534 --regid 65534 --clear-groups \"$W\" --store \"$S\" \"$@\"; }
         killed() { u mount $M; kill -9 $(cat $S.lock); while setpriv --reuid 65534 --regid 65534 --clear-groups stat -f $M >/dev/null 2>&1; do :; done; }
         is_back() { gone; test $(stat -c %a $M) = 755; test ! -e $S.covers; }
         r() { \"$W\" --store ${OUT}root.db \"$@\"; }
         killed; w status; w doctor | grep 'is dead' || test $? = 1
         w unmount $M; is_back
         # Whether root may look into the directories on the way or not, the user may.
         chmod 700 ${S%/*}
         killed; r mount $M; r unmount $M; is_back
         # One that lives is not touched.
         u mount $M
         if r mount $M; then exit 9; fi
         u unmount $M; is_back",
        "yes",
    );
    assert!(ran.stdout.contains("dead mounts"), "{ran}");
    assert!(ran.stdout.contains(&format!("{} is dead", fixture.root().display())), "{ran}");
    assert!(ran.stderr.contains("is mounted already"), "{ran}");
}

// P6.4
#[test]
fn what_root_s_daemon_has_left_hinders_the_store_s_owner_in_nothing_and_stays_listed() {
    if !can_become_another() {
        return;
    }
    let ran = where_others_mount(
        &of_nobody(),
        "u() { setpriv --reuid 65534 --regid 65534 --clear-groups \"$W\" --store \"$S\" \"$@\"; }
         u init >/dev/null
         w mount $M; kill -9 $(cat $S.lock); while stat -f $M >/dev/null 2>&1; do :; done
         umount $M
         test $(stat -c %a $M) = 555; cp $S.covers ${OUT}before
         mkdir ${OUT}own; chown 65534 ${OUT}own
         u mount ${OUT}own; u unmount ${OUT}own
         cmp $S.covers ${OUT}before
         w unmount $M
         test $(stat -c %a $M) = 755; test ! -e $S.covers",
        "yes",
    );
    let told = "own stays writable below the mount: the list ";
    assert!(ran.stderr.contains(told) && ran.stderr.contains("cannot be changed"), "{ran}");
}

// P6.3
#[test]
fn another_s_mount_is_not_one_s_own_to_unmount() {
    if !can_become_another() {
        return;
    }
    let fixture = Setup::default().start();
    // Who does not see the store, nor its daemon.
    let none = fixture.outside("none.db");
    let own = fixture.command_on(&none, &["unmount", fixture.root().to_str().unwrap()]);
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]);
    command.arg(own.get_program()).args(own.get_args()).current_dir("/");
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    fs::set_permissions(fixture.base(), fs::Permissions::from_mode(0o711)).unwrap();
    let stores = fixture.store().parent().unwrap();
    fs::set_permissions(stores, fs::Permissions::from_mode(0o700)).unwrap();
    let ran = run(&mut command).failure();
    assert!(ran.code == 6 && ran.stderr.contains("is a mount of user 0"), "{ran}");
    assert!(fixture.work().is_dir());
}

// P6.1 P4.5
#[test]
fn who_may_not_make_what_lies_beside_a_store_hears_the_way_out() {
    if !can_become_another() {
        return;
    }
    let fixture = of_nobody();
    as_nobody(
        &fixture,
        "\"$W\" --store /none.db mount $M 2> said && exit 1
         grep -q 'use a store of your own' said
         w init > /dev/null; chmod 555 ${S%/*}
         for run in / /dev/null /dev/null/none; do
             export XDG_RUNTIME_DIR=$run
             w mount $M 2> said && exit 2 || test $? = 6
             grep -q 'set XDG_RUNTIME_DIR to a directory of your own, or unset it' said
             w list
         done
         chmod 755 ${S%/*}",
    );
}

// P6.1 P8.1
#[test]
fn where_there_can_be_no_more_threads_the_way_out_is_another_limit() {
    if !can_become_another() || !needs(&["prlimit"]) {
        return;
    }
    let ran = as_nobody(
        &of_nobody(),
        "limited() { prlimit --nproc=1: \"$W\" --store \"$S\" \"$@\"; }
         w mount $M
         limited exec -- true && exit 9 || test $? = 75
         read daemon _ < $S.lock
         prlimit --pid $daemon --nproc=1:
         w status && exit 8 || test $? = 75
         limited doctor || :
         prlimit --pid $daemon --nproc=$(ulimit -Hu):
         w unmount $M; gone",
    );
    let way = "raise the limit of processes";
    assert_eq!(ran.stderr.matches(way).count(), 2, "{ran}");
    let lines = || ran.stdout.lines();
    let told: Vec<_> =
        lines().zip(lines().skip(1)).filter(|(_, next)| next.contains(way)).collect();
    for of in ["warn  mount: ", "warn  working directory: "] {
        assert!(told.iter().any(|(found, _)| found.starts_with(of)), "{of}: {ran}");
    }
    assert!(!ran.stdout.contains("workfs unmount"), "{ran}");
}

// P6.1 P4.5
#[test]
fn where_others_can_write_what_would_lie_elsewhere_that_is_said_and_nothing_else() {
    if !can_become_another() {
        return;
    }
    let fixture = of_nobody();
    let own = fixture.base().join("run/workfs");
    fs::create_dir_all(&own).unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).unwrap();
    let ran = as_nobody(
        &fixture,
        "w init > /dev/null; chmod 555 ${S%/*}
         w mount $M && exit 9 || test $? = 6
         w list
         XDG_RUNTIME_DIR=$OUT w mount $M 2> /dev/null; w list; XDG_RUNTIME_DIR=$OUT w unmount $M
         chmod 755 ${S%/*}",
    );
    let reason = format!("and {}, where socket and log", own.display());
    assert!(ran.stderr.contains(&reason) && !ran.stderr.contains(".db.log"), "{ran}");
    assert!(ran.stderr.contains("set XDG_RUNTIME_DIR to a directory of your own"), "{ran}");
    assert!(fs::read_dir(own).unwrap().next().is_none());
}

// P6.1
#[test]
fn a_socket_that_another_left_and_nobody_else_may_remove_is_told_with_the_way_out() {
    if !can_become_another() {
        return;
    }
    let fixture = of_nobody();
    let dir = fixture.store().parent().unwrap();
    let socket = fixture.store().with_extension("db.sock");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    std::os::unix::fs::chown(dir, Some(0), None).unwrap();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o1777)).unwrap();
    let script = "w mount $M 2>&1 && exit 9 || test $? = 6";
    let ran = as_nobody(&fixture, script);
    assert!(ran.stdout.contains("Operation not permitted"), "{ran}");
    assert!(ran.stdout.contains("have what lies there removed by whose it is"), "{ran}");
    fs::remove_file(socket).unwrap();
    as_nobody(&fixture, "w mount $M; w unmount $M");
}

// P6.1 P6.4 P8.1
#[test]
fn where_the_helper_gets_no_rights_that_is_told() {
    if !can_become_another() {
        return;
    }
    let ran = as_nobody(
        &of_nobody(),
        "held() { setpriv --no-new-privs \"$W\" --store \"$S\" \"$@\"; }
         held mount $M && exit 9 || test $? = 6
         held doctor
         # A daemon from elsewhere mounts for it.
         w mount $M; mkdir ${OUT}second; held mount ${OUT}second; held unmount ${OUT}second
         kill -9 $(cat $S.lock); while stat -f $M >/dev/null 2>&1; do :; done
         held unmount $M && exit 8 || test $? = 6
         held mount $M && exit 7 || test $? = 6
         w unmount $M; gone",
    );
    assert!(ran.stdout.contains("no rights of root from here (no_new_privs)"), "{ran}");
    let ways = ran.stderr.matches("`workfs doctor` says whether fusermount3 has").count();
    assert_eq!(ways, 3, "{ran}");
    assert!(!ran.stderr.contains("mount on a directory you own"), "{ran}");
}

// P6.9
#[test]
fn what_a_user_s_mount_cannot_have_is_told() {
    if !can_become_another() {
        return;
    }
    let ran = as_nobody(
        &of_nobody(),
        "w mount $M -o dev,suid; grep \" $M \" /proc/self/mounts; w unmount $M; w mount $M; w unmount $M",
    );
    assert!(ran.stdout.contains("nosuid,nodev"), "{ran}");
    assert_eq!(ran.stderr.matches("are root's to give").count(), 1, "{ran}");
}

// P6.1
#[test]
fn root_hears_that_a_user_s_daemon_mounts_for_that_user() {
    if !can_become_another() {
        return;
    }
    let ran = where_others_mount(
        &of_nobody(),
        "u() { setpriv --reuid 65534 --regid 65534 --clear-groups \"$W\" --store \"$S\" \"$@\"; }
         mkdir ${OUT}second; chown 65534 ${OUT}second
         u mount $M
         w mount ${OUT}second && exit 9 || test $? = 6
         if grep -F \" ${OUT}second \" /proc/self/mounts; then exit 8; fi
         u unmount $M",
        "yes",
    );
    assert!(ran.stderr.contains(&format!("second is user {NOBODY}'s")), "{ran}");
    assert!(ran.stderr.contains("mount as that user, or with `-o allow_root`"), "{ran}");
}

// P6.1 P8.1
#[test]
fn a_directory_in_the_mount_of_another_user_is_told_as_such() {
    if !can_become_another() {
        return;
    }
    let fixture = of_nobody();
    let ran = where_others_mount(
        &fixture,
        "u() { setpriv --reuid 65534 --regid 65534 --clear-groups \"$@\"; }
         of_root() { \"$W\" --store ${OUT}root.db \"$@\"; }
         u \"$W\" --store \"$S\" mount $M; u mkdir $M/d
         of_root mount $M/d && exit 9 || test $? = 6
         of_root init --quiet > /dev/null
         of_root mount $M/d && exit 8 || test $? = 6
         of_root unmount $M/d && exit 7 || test $? = 6
         u \"$W\" --store \"$S\" unmount $M",
        "yes",
    );
    let root = fixture.root().display();
    let told = format!("{root}/d lies in {root}, a mount of {}", fixture.store().display());
    assert_eq!(ran.stderr.matches(&told).count(), 3, "{ran}");
    assert_eq!(ran.stderr.matches(&format!("shown to user {NOBODY} alone")).count(), 3, "{ran}");
    assert!(!ran.stderr.contains("directory you own"), "{ran}");
}

// P6.3
#[test]
fn exec_in_a_user_name_space_that_the_daemon_is_not_in_says_so() {
    if !can_become_another() {
        return;
    }
    let ran = as_nobody(
        &of_nobody(),
        "unshare -Ur true || { echo none; exit 0; }
         w mount $M
         unshare -Ur $W --store $S exec -- touch x 2> said && exit 9 || grep -q 'outside of this user' said
         unshare -Ur $W --store $OUT/own.db exec -- touch x
         w exec -- unshare -Ur touch x
         w unmount $M",
    );
    if ran.stdout.trim() == "none" {
        left_out("users can have no name space of users");
    }
}
