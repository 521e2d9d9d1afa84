//! Big files, whose whole chunks lie beside the store's tables.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};

use crate::harness::{Fixture, Random, Setup, run, until_polled};

const MIB: usize = 1 << 20;

fn extents(fixture: &Fixture) -> PathBuf {
    fixture.store().with_extension("db-extents")
}

/// What the disk has of it.
fn taken(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |found| found.blocks() * 512)
}

/// The version of the kernel that runs.
fn kernel() -> (u32, u32) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split('.').map_while(|number| number.parse().ok());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

fn bytes(length: usize, seed: u64) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(2_654_435_761) >> 13 ^ seed) as u8).collect()
}

/// Does something to a file, and the same to what it should be.
fn change(random: &mut Random, file: &File, model: &mut Vec<u8>) -> String {
    const MOST: usize = 5 * MIB;
    let aligned = random.below(2) == 0;
    let place = |random: &mut Random, most: usize| {
        let at = random.below(most as u64) as usize;
        if aligned { at & !0xffff } else { at }
    };
    let (at, length) = (place(random, MOST), 1 + place(random, 3 * MIB));
    match random.below(8) {
        0 => {
            file.set_len(at as u64).unwrap();
            model.resize(at, 0);
            format!("cut to {at}")
        }
        1 => {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(file, flags, at as u64, length as u64).unwrap();
            let end = model.len().min(at + length);
            model[at.min(end)..end].fill(0);
            format!("a hole of {length} at {at}")
        }
        2..4 => {
            let some = bytes(1 + length % 9_000, random.below(256));
            write(file, model, at, &some);
            format!("{} bytes at {at}", some.len())
        }
        _ => {
            write(file, model, at, &bytes(length, random.below(256)));
            format!("{length} bytes at {at}")
        }
    }
}

fn write(file: &File, model: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    file.write_all_at(bytes, at as u64).unwrap();
    model.resize(model.len().max(at + bytes.len()), 0);
    model[at..at + bytes.len()].copy_from_slice(bytes);
}

// P7.1 P4.1
#[test]
fn a_big_file_is_what_was_written_whatever_was_done_to_it() {
    let fixture = Setup::default().mounts(2).start();
    let mut random = Random(0x5eed);
    let (mut model, mut told) = (Vec::new(), Vec::new());
    for round in 0..6 {
        let mut options = File::options();
        let file = options.create(true).truncate(false).read(true).write(true);
        let file = file.open(fixture.mount(0).join("big")).unwrap();
        for _ in 0..12 {
            told.push(change(&mut random, &file, &mut model));
        }
        if round % 2 == 0 {
            file.sync_all().unwrap();
        }
        drop(file);
        for mount in fixture.mounts() {
            assert!(fs::read(mount.join("big")).unwrap() == model, "{told:?}");
        }
        if round % 3 == 1 {
            fixture.kill_daemon();
        }
        fixture.unmount_all();
        fixture.mount_all();
        assert!(fs::read(fixture.mount(1).join("big")).unwrap() == model, "{told:?}");
        fixture.fsck_clean();
    }
    assert!(extents(&fixture).exists(), "{told:?}");
}

// P7.1
#[test]
fn what_is_removed_gives_its_space_back() {
    let fixture = Setup::default().mounts(2).start();
    let (big, other) = (fixture.path("big"), fixture.path("other"));
    fs::write(&big, bytes(24 * MIB, 1)).unwrap();
    File::open(&big).unwrap().sync_all().unwrap();
    fs::write(&other, bytes(3 * MIB, 2)).unwrap();
    assert!(taken(&extents(&fixture)) > 25 * MIB as u64);
    assert!(taken(fixture.store()) < 8 * MIB as u64, "it lies there only");
    // Another kernel that was told of it, and does not ask again, lets go of it from Linux 6.18 on.
    if kernel() >= (6, 18) {
        let elsewhere = fixture.mount(1).join("big");
        assert_eq!(fs::metadata(&elsewhere).unwrap().len(), 24 * MIB as u64);
        assert!(fs::read(&elsewhere).unwrap() == bytes(24 * MIB, 1));
    }
    let held = File::open(&big).unwrap();
    fs::remove_file(&big).unwrap();
    let mut read = vec![0; 24 * MIB];
    held.read_exact_at(&mut read, 0).unwrap();
    assert!(read == bytes(24 * MIB, 1), "whoever has it open reads it");
    drop(held);
    until_polled("the space", || (taken(&extents(&fixture)) < 3 * MIB as u64).then_some(()));
    assert!(fs::read(&other).unwrap() == bytes(3 * MIB, 2));
    fixture.fsck_clean();
}

// P4.6
#[test]
fn a_backup_and_an_export_have_big_files_too() {
    let fixture = Fixture::new();
    let content = bytes(5 * MIB + 77, 3);
    fs::write(fixture.path("big"), &content).unwrap();
    let backup = fixture.outside("backup.db");
    fixture.workfs(&["backup", backup.to_str().unwrap()]).success();
    assert!(!fixture.outside("backup.db-extents").exists(), "one file");
    let plain = fixture.outside("plain");
    fixture.workfs(&["export", plain.to_str().unwrap()]).success();
    assert!(fs::read(plain.join("big")).unwrap() == content);

    let other = Setup::default().start();
    fs::write(other.path("older"), bytes(4 * MIB, 4)).unwrap();
    other.unmount_all();
    other.await_no_daemon();
    other.workfs(&["restore", "--force", backup.to_str().unwrap()]).success();
    assert!(!extents(&other).exists(), "those of the older store lie beside it");
    other.mount_all();
    assert!(fs::read(other.path("big")).unwrap() == content);
    other.fsck_clean();
}

// P5.2 P4.6
#[test]
fn a_store_without_its_extents_says_so_and_serves_the_rest() {
    let fixture = Fixture::new();
    fixture.tasks(3);
    fs::write(fixture.path("big"), bytes(3 * MIB, 5)).unwrap();
    fixture.unmount_all();
    fixture.await_no_daemon();
    let aside = fixture.outside("aside");
    fs::rename(extents(&fixture), &aside).unwrap();
    fixture.mount_all();
    assert_eq!(fs::read_dir(fixture.path("work/inbox")).unwrap().count(), 3);
    fs::read(fixture.path("big")).unwrap_err();
    fs::write(fixture.path("new"), bytes(3 * MIB, 6)).unwrap();
    assert!(fs::read(fixture.path("new")).unwrap() == bytes(3 * MIB, 6));
    for command in ["fsck", "doctor"] {
        let said = fixture.workfs(&[command]).failure();
        assert!(said.said().contains("db-extents is missing"), "{command}: {said}");
    }
    fixture.unmount_all();
    fixture.await_no_daemon();
    fs::rename(&aside, extents(&fixture)).unwrap();
    fixture.mount_all();
    assert!(fs::read(fixture.path("big")).unwrap() == bytes(3 * MIB, 5));
    fixture.fsck_clean();
}

// P4.6 P5.2
#[test]
fn what_big_files_lie_in_may_be_moved_away_while_a_daemon_has_it_and_that_is_said() {
    let fixture = Fixture::new();
    let content = bytes(3 << 20, 7);
    let write = |name: &str| fs::write(fixture.path(name), &content).unwrap();
    write("before");
    let (own, aside) = (extents(&fixture), fixture.outside("aside"));
    fs::rename(&own, &aside).unwrap();
    for command in ["fsck", "doctor"] {
        let ran = fixture.workfs(&[command]);
        let told = ran.stdout.contains("was removed, moved or replaced while the store is served");
        assert!(ran.code == 11 && told, "{ran}");
    }
    // What is written from now on is in the store all the same.
    write("after");
    let backup = fixture.outside("backup.db");
    fixture.workfs(&["backup", backup.to_str().unwrap()]).success();
    fixture.unmount_all();
    fixture.await_no_daemon();
    let shows = |store: &Path, name: &str| {
        let out = fixture.outside(name);
        let get = ["export", out.to_str().unwrap()];
        run(&mut fixture.command_on(store, &get)).success();
        ["before", "after"].map(|file| fs::read(out.join(file)).is_ok_and(|it| it == content))
    };
    assert_eq!(shows(&backup, "of-backup"), [true, true]);
    fs::rename(&aside, &own).unwrap();
    assert_eq!(shows(fixture.store(), "of-store"), [true, true]);
    fixture.mount_all();
    fixture.fsck_clean();
}

// P4.4 P5.2
#[test]
fn power_loss_takes_only_what_was_not_flushed_and_fsck_names_it() {
    let fixture = Fixture::new();
    let (kept, lost) = (fixture.path("kept"), fixture.path("lost"));
    fs::write(&kept, bytes(8 * MIB, 1)).unwrap();
    File::open(&kept).unwrap().sync_all().unwrap();
    let flushed = fs::metadata(extents(&fixture)).unwrap().len();
    fs::write(&lost, bytes(8 * MIB, 2)).unwrap();
    fixture.kill_daemon();
    // The kernel has written the log by itself, and not yet what it names.
    let file = File::options().write(true).open(extents(&fixture)).unwrap();
    file.set_len(flushed).unwrap();
    fixture.unmount_all();
    fixture.mount_all();
    assert!(fs::read(&kept).unwrap() == bytes(8 * MIB, 1));
    let error = fs::read(&lost).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EIO));
    let said = fixture.workfs(&["fsck"]).failure();
    assert!(said.said().contains("file lost ("), "{said}");
    assert!(!said.said().contains("kept"), "{said}");
    fixture.workfs(&["doctor"]).failure();
    fixture.workfs(&["backup", fixture.outside("backup.db").to_str().unwrap()]).success();
    // It is another file's place by now.
    fs::write(fixture.path("new"), bytes(8 * MIB, 3)).unwrap();
    fixture.unmount_all();
    fixture.mount_all();
    fs::read(&lost).unwrap_err();
    fs::write(&lost, bytes(8 * MIB, 4)).unwrap();
    for (name, seed) in [("kept", 1), ("new", 3), ("lost", 4)] {
        assert!(fs::read(fixture.path(name)).unwrap() == bytes(8 * MIB, seed), "{name}");
    }
    fixture.fsck_clean();
}
