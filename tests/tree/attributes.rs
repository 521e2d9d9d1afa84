//! Modes, times, owners and extended attributes.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{XattrFlags, setxattr};
use workfs_mount::as_user;

use crate::harness::{Errno, Fixture, Setup, needs};

// P7.1
#[test]
fn modes_are_kept() {
    let fixture = Fixture::new();
    let path = fixture.path("f");
    fixture.sh("umask 027; echo x > f; mkdir d; mkdir -m 2775 s; mkdir s/below").success();
    let mode = |name: &str| fs::metadata(fixture.path(name)).unwrap().permissions().mode();
    assert_eq!(mode("f") & 0o7777, 0o640);
    assert_eq!(mode("d") & 0o7777, 0o750);
    assert_eq!(mode("s/below") & 0o2000, 0o2000, "set-group-id is passed on");
    for wanted in [0o600, 0o777, 0o000, 0o4755, 0o644] {
        fs::set_permissions(&path, fs::Permissions::from_mode(wanted)).unwrap();
        assert_eq!(mode("f") & 0o7777, wanted);
    }
    fixture.sh("printf '#!/bin/sh\\necho ran\\n' > run; chmod +x run; ./run").success();
}

// P7.1
#[test]
fn a_change_of_owner_that_changes_nothing_takes_set_user_id_away() {
    let fixture = Fixture::new();
    fixture.sh("touch f; mkdir d").success();
    let mode = |name: &str| fs::metadata(fixture.path(name)).unwrap().mode() & 0o7777;
    for name in ["f", "d"] {
        fs::set_permissions(fixture.path(name), fs::Permissions::from_mode(0o6755)).unwrap();
        std::os::unix::fs::chown(fixture.path(name), None, None).unwrap();
    }
    // As on ext4, for root too.
    assert_eq!((mode("f"), mode("d")), (0o755, 0o6755));
    fs::set_permissions(fixture.path("f"), fs::Permissions::from_mode(0o2644)).unwrap();
    std::os::unix::fs::chown(fixture.path("f"), None, None).unwrap();
    assert_eq!(mode("f"), 0o2644, "that is no right to run as the group");
}

// P7.1
#[test]
fn nobody_takes_set_user_id_from_what_is_another_s() {
    if !rustix::process::geteuid().is_root() {
        crate::harness::left_out("acting as several users needs root");
        return;
    }
    let fixture = Setup::default().arguments(&["-o", "allow_other,suid"]).start();
    fixture.sh("touch f; chmod 6777 f").success();
    let path = fixture.path("f");
    let mode = || fs::metadata(&path).unwrap().mode() & 0o7777;
    let by = |uid, act: &(dyn Fn() + Sync)| as_user(uid, uid, act).unwrap();
    // Who may write it does take it away, by writing: to `chown` nobody asks for that.
    by(1234, &|| {
        let _ = std::os::unix::fs::chown(&path, None, None);
    });
    assert_eq!(mode(), 0o6777);
    by(1234, &|| fs::write(&path, "x").unwrap());
    assert_eq!(mode(), 0o777);
    std::os::unix::fs::chown(&path, Some(1234), None).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4700)).unwrap();
    by(1234, &|| std::os::unix::fs::chown(&path, None, None).unwrap());
    assert_eq!(mode(), 0o700);
}

// P7.4
#[test]
fn who_owns_a_file_is_asked_anew_when_another_mount_gave_it_away() {
    if !rustix::process::geteuid().is_root() {
        crate::harness::left_out("acting as several users needs root");
        return;
    }
    let setup = Setup::default().arguments(&["-o", "allow_other,suid"]).mounts(2);
    let fixture = setup.start();
    let [here, there] = [0, 1].map(|nth| fixture.mount(nth).join("d"));
    fs::create_dir(&here).unwrap();
    fs::set_permissions(&here, fs::Permissions::from_mode(0o1777)).unwrap();
    let mode = |mode| fs::Permissions::from_mode(mode);
    for (round, (from, to)) in [(1234, 0), (0, 1234), (1234, 2345)].into_iter().enumerate() {
        let name = format!("f{round}");
        let [here, there] = [&here, &there].map(|dir| dir.join(&name));
        fs::write(&here, "x").unwrap();
        std::os::unix::fs::chown(&here, Some(from), Some(from)).unwrap();
        assert_eq!(fs::metadata(&there).unwrap().uid(), from);
        std::os::unix::fs::chown(&here, Some(to), Some(to)).unwrap();
        // No `stat` in between: the kernel there goes by what it was told last, or asks for the name.
        let by = |uid, act: &(dyn Fn() -> std::io::Result<()> + Sync)| {
            as_user(uid, uid, act).unwrap().map_err(|error| error.raw_os_error())
        };
        let denied = Err(Some(libc::EPERM));
        if from != 0 {
            assert_eq!(by(from, &|| fs::set_permissions(&there, mode(0o666))), denied, "{round}");
            assert_eq!(by(from, &|| fs::remove_file(&there)), denied, "{round}");
            assert_eq!(fs::metadata(&here).unwrap().mode() & 0o777, 0o644, "{round}");
        }
        if to != 0 {
            assert_eq!(by(to, &|| fs::set_permissions(&there, mode(0o640))), Ok(()), "{round}");
            std::os::unix::fs::chown(&here, Some(0), Some(0)).unwrap();
            std::os::unix::fs::chown(&here, Some(to), Some(to)).unwrap();
            assert_eq!(by(to, &|| fs::remove_file(&there)), Ok(()), "{round}");
        }
    }
    let [shared, seen] = [&here, &there].map(|dir| dir.join("shared"));
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, mode(0o777)).unwrap();
    assert_eq!(fs::metadata(&seen).unwrap().mode() & 0o7777, 0o777);
    fs::set_permissions(&shared, mode(0o1777)).unwrap();
    let set = || Ok(rustix::fs::setxattr(&seen, "user.a", b"1", rustix::fs::XattrFlags::empty())?);
    let set = as_user(1234, 1234, set).unwrap().map_err(|error: std::io::Error| error.kind());
    assert_eq!(set, Err(std::io::ErrorKind::PermissionDenied), "it is nobody's own by now");
}

// P7.1
#[test]
fn times_are_kept_to_the_nanosecond() {
    let fixture = Fixture::new();
    fs::write(fixture.path("f"), b"x").unwrap();
    let file = File::options().write(true).open(fixture.path("f")).unwrap();
    let at = UNIX_EPOCH + Duration::new(1_234_567_890, 123_456_789);
    let before = UNIX_EPOCH - Duration::new(100, 0);
    file.set_times(FileTimes::new().set_modified(at).set_accessed(before)).unwrap();
    drop(file);
    let metadata = fs::metadata(fixture.path("f")).unwrap();
    assert_eq!((metadata.mtime(), metadata.mtime_nsec()), (1_234_567_890, 123_456_789));
    assert_eq!(metadata.atime(), -100);
    fs::write(fixture.path("f"), b"y").unwrap();
    let now = fs::metadata(fixture.path("f")).unwrap();
    assert!(now.mtime() > 1_700_000_000 && now.ctime() > 1_700_000_000);
    let dir = || fs::metadata(fixture.path("scratchpad")).unwrap();
    fs::create_dir(fixture.path("scratchpad")).unwrap();
    let before = (dir().mtime(), dir().mtime_nsec());
    fs::write(fixture.path("scratchpad/new"), b"").unwrap();
    assert!((dir().mtime(), dir().mtime_nsec()) > before, "a new name touches its directory");
    fixture.sh("touch -d 2001-02-03T04:05:06Z f; touch -r f scratchpad/new").success();
    let copied = fs::metadata(fixture.path("scratchpad/new")).unwrap();
    assert_eq!(copied.mtime(), 981_173_106);
}

// P7.1
#[test]
fn owners_are_kept_and_checked() {
    let fixture = Fixture::new();
    if !rustix::process::geteuid().is_root() {
        crate::harness::left_out("changing owners needs root");
        return;
    }
    fixture
        .sh("echo x > f; chown 1234:2345 f; mkdir g; chgrp 77 g; chmod g+s g; : > g/f")
        .success();
    let metadata = fs::metadata(fixture.path("f")).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (1234, 2345));
    assert_eq!(fs::metadata(fixture.path("g/f")).unwrap().gid(), 77);
    // A new owner did not give a program its rights; root's `chown` takes them, too.
    let said = fixture.sh("for mode in 6755 4700 2710 2644 0755; do
        touch p.$mode; chmod $mode p.$mode; chown 1234 p.$mode; stat -c %a p.$mode; done
        mkdir d; chmod 6755 d; chown 1234 d; stat -c %a d");
    let modes: Vec<_> = said.success().stdout.lines().map(str::to_owned).collect();
    assert_eq!(modes, ["755", "700", "710", "2644", "755", "6755"]);
}

// P7.1
#[test]
fn extended_attributes() {
    if !needs(&["setfattr", "getfattr"]) {
        return;
    }
    let fixture = Fixture::new();
    let script = "set -e; echo x > f
        setfattr -n user.colour -v blue f; setfattr -n user.empty f
        getfattr --only-values -n user.colour f; echo
        getfattr -d -m user f | grep -c '^user'
        setfattr -x user.colour f
        getfattr -n user.colour f 2>&1 | grep -o 'No such attribute'
        cp --preserve=all f g; getfattr -d g | grep -c empty
        setfattr -x bad.x f 2>&1 | grep -o 'Operation not supported'
        setfattr -x user. f 2>&1 | grep -o 'Invalid argument'";
    let said = fixture.sh(script).success();
    let errors = "Operation not supported\nInvalid argument\n";
    assert_eq!(said.stdout, format!("blue\n2\nNo such attribute\n1\n{errors}"));
}

// P7.1
#[test]
fn who_meets_the_limit_of_attributes_is_told_so() {
    let fixture = Fixture::new();
    fixture.sh("echo x > f").success();
    let value = vec![b'x'; 60_000];
    let set = |nth: u32| {
        let name = format!("user.{nth}");
        setxattr(fixture.path("f"), name, &value, XattrFlags::empty())
    };
    let refused = (0..).find_map(|nth| set(nth).err().map(|errno| (nth, errno)));
    assert_eq!(refused, Some((17, Errno::NOSPC)));
    let why = fixture.why();
    assert!(why.contains("setxattr f ENOSPC") && why.contains("W044"), "{why}");
    assert!(why.contains("1048576 of values"), "{why}");
    fixture.sh("rm f; echo y > g").success();
}

// P7.1
#[test]
fn the_file_system_tells_its_size() {
    let fixture = Fixture::new();
    let said = fixture.sh("df -P . | tail -1; stat -f -c '%S %b %f %l' .").success();
    let numbers = said.stdout.lines().nth(1).unwrap().to_owned();
    let numbers: Vec<u64> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
    assert!(numbers[0] > 0 && numbers[1] > 0 && numbers[1] >= numbers[2], "{said}");
    assert_eq!(numbers[3], 255, "the longest name");
}

// P7.1
#[test]
fn access_is_what_modes_say() {
    let fixture = Fixture::new();
    if !rustix::process::geteuid().is_root() || !needs(&["setpriv"]) {
        return;
    }
    // A mount is its owner's alone, so that another user sees nothing of it.
    let script = "echo secret > f; chmod 600 f; cd /
        setpriv --reuid 65534 --regid 65534 --clear-groups cat \"$W/../f\"";
    let said = fixture.sh(script).failure();
    assert!(!said.stdout.contains("secret"), "{said}");
}

// P7.1
#[test]
fn what_nobody_may_run_root_may_not_run_either() {
    let own: &[&str] = &[];
    // Where others come in the kernel itself checks.
    let shared: &[&str] = &["-o", "allow_other"];
    let kinds = if rustix::process::geteuid().is_root() { vec![own, shared] } else { vec![own] };
    for arguments in kinds {
        let fixture = Setup::default().arguments(arguments).start();
        let script = "echo x > f; chmod 644 f; ln -s f l; mkdir -m 700 d; mkfifo -m 600 p
            for it in f l d p work/inbox AGENTS.md; do
                test -e $it || echo $it is not there; test -r $it || echo $it is not to be read
                test -x $it && echo $it runs
            done; chmod 755 f; test -x f && test -x l && echo now they run";
        let said = fixture.sh(script).success();
        let lines: Vec<&str> = said.stdout.lines().collect();
        assert_eq!(lines, ["d runs", "work/inbox runs", "now they run"], "{arguments:?}");
    }
}
