//! The directory below a mount.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use rustix::mount::{UnmountFlags, unmount};

use crate::harness::{Fixture, Setup, left_out, mounted_below, until_polled};

/// Kills the daemon and takes its dead mount away, as an administrator might.
fn uncovered(fixture: &Fixture) {
    fixture.kill_daemon();
    unmount(fixture.root(), UnmountFlags::DETACH).unwrap();
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        left_out("taking a mount away needs root");
    }
    root
}

// P6.8
#[test]
fn nothing_can_be_written_below_a_mount_that_has_died() {
    if !is_root() {
        return;
    }
    let fixture = Fixture::new();
    uncovered(&fixture);
    let error = fs::write(fixture.path("lost"), b"to everyone").unwrap_err();
    println!("{error}");
    fixture.mount_all();
    fs::write(fixture.path("kept"), b"x").unwrap();
    fixture.workfs(&["unmount", fixture.root().to_str().unwrap()]).success();
    fs::write(fixture.path("allowed"), b"again").unwrap();
    fs::remove_file(fixture.path("allowed")).unwrap();
}

// P6.8
#[test]
fn files_found_below_are_named() {
    if !is_root() {
        return;
    }
    let fixture = Fixture::new();
    uncovered(&fixture);
    let chattr = "cd /; chattr -i \"$DIR\"; chmod u+w \"$DIR\"; echo x > \"$DIR/stray-file\"";
    let base = fixture.base().to_owned();
    let shell = crate::harness::Shell::bash(&base).with("DIR", fixture.root());
    shell.run(chattr).success();
    let said = fixture.mount_at(fixture.root()).failure();
    assert!(said.stderr.contains("stray-file"), "{said}");
    assert!(mounted_below(fixture.base()).is_empty());
    fs::remove_file(fixture.path("stray-file")).unwrap();
    fixture.mount_all();
    fs::read_dir(fixture.path("work/inbox")).unwrap();
}

/// Whether the kernel can mount beneath another mount (Linux 6.5).
fn mounts_beneath() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let numbers: Vec<u32> = release.split('.').take(2).filter_map(|n| n.parse().ok()).collect();
    let can = numbers >= vec![6, 5];
    if !can {
        left_out("this kernel cannot mount beneath another mount");
    }
    can
}

/// How often an attempt succeeds until it is over.
fn count(is_over: &AtomicBool, attempt: impl Fn() -> bool) -> usize {
    let attempts = std::iter::repeat_with(attempt).take_while(|_| !is_over.load(Relaxed));
    attempts.filter(|succeeds| *succeeds).count()
}

// P4.1 P6.4 P6.8
#[test]
fn while_a_dead_mount_is_replaced_nobody_writes_or_lists_the_directory_below() {
    if !is_root() {
        return;
    }
    let fixture = Fixture::new();
    let (root, is_over) = (fixture.root(), AtomicBool::new(false));
    let writes = || {
        let is_made = fs::create_dir_all(root.join("notes/new")).is_ok();
        is_made && fs::remove_dir_all(root.join("notes")).is_ok()
    };
    let lists_nothing = || fs::read_dir(root).is_ok_and(|mut entries| entries.next().is_none());
    let written = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| count(&is_over, || writes() && written.fetch_add(1, Relaxed) > 0));
        let reader = scope.spawn(|| count(&is_over, lists_nothing));
        let crashes = scope.spawn(|| {
            for _ in 0..8 {
                fixture.kill_daemon();
                let before = written.load(Relaxed);
                fixture.mount_all();
                until_polled("a write", || (written.load(Relaxed) > before).then_some(()));
            }
        });
        let ended = crashes.join();
        is_over.store(true, Relaxed);
        ended.unwrap();
        let empty = reader.join().unwrap();
        assert!(empty == 0 || !mounts_beneath(), "{empty} listings of the directory below");
    });
    let below = workfs_mount::Underlay::below(root).unwrap().names(9).unwrap();
    assert!(below.is_empty(), "{below:?}");
    fixture.unmount_all();
    assert_eq!(fs::metadata(root).unwrap().mode() & 0o777, 0o755);
}

/// What the kernel says of the mount on a directory, but for its numbers.
fn mount_line(dir: &std::path::Path) -> String {
    let all = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let place = format!(" {} ", dir.display());
    let line = all.lines().find(|line| line.contains(&place)).expect("it is mounted");
    line.split_once(&place).unwrap().1.to_owned()
}

// P6.4
#[test]
fn a_mount_in_the_place_of_a_dead_one_has_the_options_that_it_was_given() {
    if !is_root() {
        return;
    }
    for options in ["ro,noexec,noatime", "dev,suid,allow_other,default_permissions", "rw"] {
        let fixture = Setup::default().prepare();
        let root = fixture.root();
        let mount = ["mount", root.to_str().unwrap(), "-o", options];
        fixture.workfs(&mount).success();
        let first = mount_line(root);
        fixture.kill_daemon();
        fixture.workfs(&mount).success();
        assert_eq!(mount_line(root), first, "{options}");
        fixture.unmount_all();
    }
}

// P6.8
#[test]
fn what_is_written_while_a_first_mount_is_made_is_refused_or_named() {
    if !is_root() {
        return;
    }
    let fixture = Setup::default().prepare();
    let (root, is_over) = (fixture.root(), AtomicBool::new(false));
    let writes = || {
        let is_made = fs::create_dir(root.join("notes")).is_ok();
        is_made && fs::remove_dir(root.join("notes")).is_ok()
    };
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| count(&is_over, writes));
        let mounts = scope.spawn(|| {
            for _ in 0..12 {
                let ran = fixture.mount_at(root);
                if ran.ok() {
                    let below = workfs_mount::Underlay::below(root).unwrap().names(9).unwrap();
                    assert!(below.is_empty(), "{below:?}");
                    fixture.unmount_all();
                } else {
                    assert!(ran.code == 5 && ran.stderr.contains("has files: notes"), "{ran}");
                }
            }
        });
        let ended = mounts.join();
        is_over.store(true, Relaxed);
        ended.unwrap();
        assert!(writer.join().unwrap() > 0, "nothing was ever written");
    });
    assert_eq!(fs::metadata(root).unwrap().mode() & 0o777, 0o755);
}

// P6.8
#[test]
fn a_directory_with_files_is_not_hidden() {
    let fixture = Setup::default().prepare();
    for name in ["one", "two"] {
        fs::write(fixture.path(name), b"x").unwrap();
    }
    let said = fixture.mount_at(fixture.root()).failure();
    assert!(said.stderr.contains("one") && said.stderr.contains("two"), "{said}");
    assert!(mounted_below(fixture.base()).is_empty());
    assert_eq!(fs::read(fixture.path("one")).unwrap(), b"x");
    fs::write(fixture.path("three"), b"still writable").unwrap();
}

/// Immutable flags of a directory, as lsattr(1) shows them.
fn is_immutable(dir: &std::path::Path) -> bool {
    let mut flags: libc::c_int = 0;
    let open = fs::File::open(dir).unwrap();
    // SAFETY: in spite of its name's type this call writes one `int`, to a place that is one.
    let done = unsafe {
        libc::ioctl(std::os::fd::AsRawFd::as_raw_fd(&open), libc::FS_IOC_GETFLAGS, &raw mut flags)
    };
    done == 0 && flags & 0x10 != 0
}

// P6.8
#[test]
fn a_directory_that_no_list_knows_any_more_is_told_of_with_the_way_out() {
    if !is_root() || !crate::harness::needs(&["chattr"]) {
        return;
    }
    let fixture = Fixture::new();
    uncovered(&fixture);
    if !is_immutable(fixture.root()) {
        return left_out("this file system has no immutable directories");
    }
    let forget = || {
        for file in fs::read_dir(fixture.store().parent().unwrap()).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
    };
    forget();
    let dir = fixture.root().to_str().unwrap();
    let way_out = format!("as root `chattr -i {dir} && chmod u+w {dir}`");
    let ran = fixture.workfs(&["unmount", dir]).failure();
    assert!(ran.code == 4 && ran.stderr.contains(&way_out), "{ran}");
    let ran = fixture.mount_at(fixture.root()).success();
    assert!(ran.stderr.contains(&way_out), "{ran}");
    // Also where the dead mount still lies on it.
    fixture.kill_daemon();
    forget();
    let ran = fixture.mount_at(fixture.root()).success();
    assert!(ran.stderr.contains(&way_out), "{ran}");
    fixture.unmount_all();
    let ran = crate::harness::run(fixture.command(&["doctor"]).current_dir(dir));
    assert!(ran.code == 0 && ran.stdout.contains(&way_out), "{ran}");
    let elsewhere = fixture.workfs(&["doctor"]).success();
    assert!(!elsewhere.stdout.contains("chattr"), "{elsewhere}");
    // It works.
    let command = way_out.trim_start_matches("as root `").trim_end_matches('`').to_owned();
    let base = fixture.base().to_owned();
    crate::harness::Shell::bash(&base).run(&command).success();
    fs::write(fixture.path("probe"), b"").unwrap();
    fs::remove_file(fixture.path("probe")).unwrap();
    let ran = fixture.mount_at(fixture.root()).success();
    assert!(!ran.stderr.contains("chattr"), "{ran}");
}

// P6.4
#[test]
fn a_directory_that_could_not_be_closed_is_unmounted_after_a_crash_like_any_other() {
    if !is_root() || !crate::harness::needs(&["chattr", "mount"]) {
        return;
    }
    let fixture = Setup::default().prepare();
    let shell = |script: &str| {
        let base = fixture.base().to_owned();
        crate::harness::Shell::bash(&base).with("DIR", fixture.root()).run(script).success();
    };
    let (appended, read_only) = (fixture.base().join("m0"), fixture.base().join("m0/m"));
    shell("chattr +a \"$DIR\" || mount -t tmpfs none -o ro \"$DIR\"");
    for dir in [&appended, &read_only] {
        let ran = fixture.mount_at(dir).success();
        assert!(ran.stderr.contains("stays writable below the mount"), "{ran}");
        fixture.kill_daemon();
        let unmount = ["unmount", dir.to_str().unwrap()];
        fixture.workfs(&unmount).success();
        assert!(!fixture.store().with_extension("db.covers").exists());
        assert_eq!(fs::metadata(dir).unwrap().mode() & 0o7777, 0o755);
        assert_eq!(fixture.workfs(&unmount).failure().code, 4);
        if dir == &appended {
            shell("chattr -a \"$DIR\"; mount -t tmpfs none \"$DIR\"; mkdir \"$DIR/m\"");
            shell("mount -o remount,ro \"$DIR\"");
        }
    }
    unmount(&appended, UnmountFlags::empty()).unwrap();
}

// P6.8
#[test]
fn files_that_lay_there_before_are_not_called_new() {
    if !is_root() {
        return;
    }
    let fixture = Setup::default().prepare();
    let dir = fixture.root().to_str().unwrap();
    fs::write(fixture.path("old"), b"x").unwrap();
    fixture.workfs(&["mount", dir, "--nonempty"]).success();
    fixture.kill_daemon();
    unmount(dir, UnmountFlags::DETACH).unwrap();
    let closed = is_immutable(fixture.root());
    let ran = fixture.mount_at(fixture.root()).failure();
    assert!(ran.stderr.contains("has files"), "{ran}");
    assert!(!closed || !ran.stderr.contains("nothing was mounted"), "{ran}");
}

// P6.4 P6.8
#[test]
fn what_a_killed_daemon_has_left_is_told_wherever_one_asks() {
    if !is_root() {
        return;
    }
    let fixture = Fixture::new();
    let dir = fixture.root().to_str().unwrap().to_owned();
    let left = format!("{dir} is read-only");
    let says = |command: &str, what: &str| {
        let ran = fixture.workfs(&[command]);
        assert!(!ran.stdout.contains(&left) || what == left, "{ran}");
        assert!(ran.stdout.contains(what), "{ran}");
    };
    says("doctor", "1 alive");
    fixture.kill_daemon();
    says("doctor", &format!("{dir} is dead"));
    says("status", &format!("no daemon; dead mounts, which `workfs mount` replaces: {dir}"));
    unmount(fixture.root(), UnmountFlags::DETACH).unwrap();
    says("doctor", &left);
    says("status", "no daemon, not mounted");
    fixture.mount_all();
    says("doctor", "1 alive");
}
