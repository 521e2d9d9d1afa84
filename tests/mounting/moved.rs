//! A mount whose directory is called otherwise by now, or by two names, or is hidden: it ends like any other, and the
//! directory below is as it was.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::mount::{OpenTreeFlags, open_tree};
use rustix::process::Signal;

use crate::harness::{
    Fixture, Ran, Setup, await_end, left_out, mounted_below, needs, processes_of, run, send_signal,
    until_polled,
};

/// A directory to mount on in one that has nothing else, and what is not yet mounted there.
struct Moved {
    fixture: Fixture,
    outer: PathBuf,
    other: PathBuf,
}

/// `None` where one is not root.
fn moved() -> Option<Moved> {
    if !rustix::process::geteuid().is_root() {
        left_out("mounting other things needs root");
        return None;
    }
    if !needs(&["mount", "umount", "unshare"]) {
        return None;
    }
    let fixture = Setup::default().prepare();
    let [outer, other] = ["outer", "other"].map(|name| fixture.base().join(name));
    fs::create_dir_all(outer.join("m")).unwrap();
    Some(Moved { fixture, outer, other })
}

impl Moved {
    fn workfs(&self, command: &str, dir: &Path) -> Ran {
        self.fixture.workfs(&[command, dir.to_str().unwrap()])
    }

    /// mount(8), umount(8) and others.
    #[track_caller]
    fn system(&self, words: &[&str], dirs: &[&Path]) {
        run(Command::new(words[0]).args(&words[1..]).args(dirs)).success();
    }

    /// A file system of its own, in which what is mounted is not seen elsewhere.
    fn volume(&self, dir: &Path) {
        self.system(&["mount", "-t", "tmpfs", "none"], &[dir]);
        self.system(&["mount", "--make-private"], &[dir]);
    }

    #[track_caller]
    fn is_as_it_was(&self, dir: &Path) {
        assert_eq!(fs::metadata(dir).unwrap().mode() & 0o7777, 0o755);
        fs::write(dir.join("probe"), b"").expect("it is writable");
        fs::remove_file(dir.join("probe")).unwrap();
    }

    #[track_caller]
    fn nothing_is_left(&self) {
        assert_eq!(mounted_below(self.fixture.base()), Vec::<PathBuf>::new());
        assert!(processes_of(self.fixture.store()).is_empty());
        assert!(!self.fixture.store().with_extension("db.covers").exists());
    }
}

// P6.3 P6.8
#[test]
fn a_mount_below_a_directory_with_another_name_ends_as_any_other() {
    let Some(moved) = moved() else { return };
    let new = moved.other.join("m");
    let ends: [&dyn Fn(); 4] = [
        &|| drop(moved.workfs("unmount", &new).success()),
        &|| drop(moved.fixture.workfs(&["unmount", "--all"]).success()),
        &|| send_signal(moved.fixture.daemon_pid(), Signal::TERM),
        &|| moved.system(&["umount"], &[&new]),
    ];
    for end in ends {
        moved.workfs("mount", &moved.outer.join("m")).success();
        fs::rename(&moved.outer, &moved.other).unwrap();
        let pid = moved.fixture.daemon_pid();
        assert!(moved.fixture.workfs(&["ps"]).stdout.contains(new.to_str().unwrap()));
        end();
        await_end(pid);
        moved.nothing_is_left();
        moved.is_as_it_was(&new);
        assert!(!moved.fixture.store().with_extension("db-wal").exists());
        fs::rename(&moved.other, &moved.outer).unwrap();
    }
}

// P6.4 P6.8
#[test]
fn a_dead_mount_below_a_directory_with_another_name_is_taken_away_or_replaced() {
    let Some(moved) = moved() else { return };
    let new = moved.other.join("m");
    for is_replaced in [false, true] {
        moved.workfs("mount", &moved.outer.join("m")).success();
        moved.fixture.kill_daemon();
        fs::rename(&moved.outer, &moved.other).unwrap();
        if is_replaced {
            let ran = moved.workfs("mount", &new).success();
            assert!(!ran.stderr.contains("chattr"), "{ran}");
        }
        moved.workfs("unmount", &new).success();
        moved.nothing_is_left();
        moved.is_as_it_was(&new);
        fs::rename(&moved.other, &moved.outer).unwrap();
    }
}

// P6.8
#[test]
fn a_directory_by_two_names_is_given_back_when_it_has_no_mount_by_either() {
    let Some(moved) = moved() else { return };
    let volume = &moved.outer;
    moved.volume(volume);
    let (one, two) = (volume.join("m"), moved.other.join("m"));
    fs::create_dir(&one).unwrap();
    fs::create_dir(&moved.other).unwrap();
    // Where it is bound without the mount there is none, and the directory is not writable, since there is one.
    moved.workfs("mount", &one).success();
    moved.system(&["mount", "--bind"], &[volume, &moved.other]);
    let ran = moved.workfs("unmount", &two).failure();
    assert!(ran.code == 4 && !ran.stderr.contains("chattr"), "{ran}");
    assert!(fs::write(two.join("probe"), b"").is_err());
    moved.system(&["umount"], &[&moved.other]);
    // With the mount: whoever unmounts the one ends the other; but not the other way round.
    moved.system(&["mount", "--rbind"], &[volume, &moved.other]);
    moved.workfs("unmount", &two).success();
    assert!(fs::write(two.join("probe"), b"").is_err());
    assert_eq!(fs::read_dir(&one).unwrap().count(), 2);
    moved.system(&["umount"], &[&moved.other]);
    moved.system(&["mount", "--rbind"], &[volume, &moved.other]);
    let pid = moved.fixture.daemon_pid();
    moved.workfs("unmount", &one).success();
    await_end(pid);
    moved.is_as_it_was(&two);
    moved.system(&["umount"], &[&moved.other]);
    // After a crash.
    moved.workfs("mount", &one).success();
    moved.system(&["mount", "--rbind"], &[volume, &moved.other]);
    moved.fixture.kill_daemon();
    moved.workfs("unmount", &two).success();
    assert!(fs::write(two.join("probe"), b"").is_err(), "a dead mount lies on it still");
    moved.workfs("unmount", &one).success();
    moved.is_as_it_was(&two);
    moved.system(&["umount"], &[&moved.other, volume]);
    moved.nothing_is_left();
}

// P6.4 P6.8
#[test]
fn what_is_mounted_over_a_dead_mount_s_parent_does_not_have_it() {
    let Some(moved) = moved() else { return };
    let dir = moved.outer.join("m");
    moved.workfs("mount", &dir).success();
    moved.fixture.kill_daemon();
    moved.volume(&moved.outer);
    assert_eq!(moved.workfs("unmount", &dir).failure().code, 4);
    fs::create_dir(&dir).unwrap();
    moved.workfs("mount", &dir).success();
    fs::write(dir.join("note"), b"x").unwrap();
    moved.workfs("unmount", &dir).success();
    moved.is_as_it_was(&dir);
    moved.system(&["umount"], &[&moved.outer]);
    // The other one is known still.
    moved.workfs("unmount", &dir).success();
    moved.is_as_it_was(&dir);
    moved.nothing_is_left();
}

// P6.8
#[test]
fn what_is_mounted_in_another_name_space_is_not_unmounted_here() {
    let Some(moved) = moved() else { return };
    let dir = moved.outer.join("m");
    let mount = moved.fixture.command(&["mount", dir.to_str().unwrap()]);
    let mut child = Command::new("unshare");
    child.args(["--mount", "--propagation", "private", "--"]);
    child.arg(mount.get_program()).args(mount.get_args()).stdout(Stdio::null());
    child.envs(mount.get_envs().filter_map(|(name, value)| Some((name, value?))));
    run(&mut child).success();
    for command in ["unmount", "mount"] {
        let ran = moved.workfs(command, &dir).failure();
        assert!(ran.stderr.contains("not to be seen here"), "{ran}");
        assert!(fs::write(dir.join("probe"), b"").is_err(), "{command}");
    }
    let pid = moved.fixture.daemon_pid();
    moved.fixture.workfs(&["unmount", "--all"]).success();
    await_end(pid);
    moved.nothing_is_left();
    moved.is_as_it_was(&dir);
}

/// A process that ends with the test, also with one that fails.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

// P6.1 P6.8
#[test]
fn a_copy_in_another_name_space_keeps_nobody_from_mounting_anew() {
    let Some(moved) = moved() else { return };
    let dir = moved.outer.join("m");
    moved.workfs("mount", &dir).success();
    let mut copy = Command::new("unshare");
    copy.args(["--mount", "--propagation", "private", "sleep", "600"]);
    let copy = Ended(copy.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let (own, its) = ("/proc/self/ns/mnt", format!("/proc/{}/ns/mnt", copy.0.id()));
    until_polled("its name space", || {
        (fs::read_link(own).unwrap() != fs::read_link(&its).unwrap()).then_some(())
    });
    moved.system(&["umount"], &[&dir]);
    moved.workfs("mount", &dir).success();
    fs::write(dir.join("note"), b"x").unwrap();
    // That the first one ends changes nothing for the second.
    drop(copy);
    until_polled("its end", || {
        let mounts = moved.fixture.workfs(&["ps"]).success().stdout;
        (mounts.matches(dir.to_str().unwrap()).count() == 1).then_some(())
    });
    let below = workfs_mount::Underlay::below(&dir).unwrap();
    assert_eq!(below.cover().mode, 0o555);
    drop(below);
    moved.workfs("unmount", &dir).success();
    moved.nothing_is_left();
    moved.is_as_it_was(&dir);
}

/// The newest mount of the machine, by the number that no other ever has; `None` where the kernel has none.
fn newest_mount() -> Option<u64> {
    /// `STATX_MNT_ID_UNIQUE` of `linux/stat.h` (Linux 6.8).
    const MNT_ID_UNIQUE: u32 = 0x4000;
    let how = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let copy = open_tree(CWD, "/", how).unwrap();
    let asked = StatxFlags::from_bits_retain(MNT_ID_UNIQUE);
    let found = statx(&copy, "", AtFlags::EMPTY_PATH, asked).unwrap();
    (found.stx_mask & MNT_ID_UNIQUE != 0).then_some(found.stx_mnt_id)
}

// P6.3
#[test]
fn a_directory_is_given_back_without_a_look_below_each_mount_beside_it() {
    const OTHERS: u64 = 30;
    if !rustix::process::geteuid().is_root() || newest_mount().is_none() {
        return left_out("telling how many mounts were made needs root and Linux 6.8");
    }
    let fixture = Setup::default().mounts(OTHERS as usize + 1).start();
    let dir = fixture.root().to_str().unwrap();
    // Other tests make some, too, but not each time.
    let made = (0..5).map(|_| {
        let before = newest_mount();
        fixture.workfs(&["unmount", dir]).success();
        let made = newest_mount().zip(before).map(|(now, before)| now - before).unwrap();
        fixture.mount_at(fixture.root()).success();
        made
    });
    let made: Vec<u64> = made.collect();
    assert!(made.iter().any(|made| *made < OTHERS), "{made:?}");
}
