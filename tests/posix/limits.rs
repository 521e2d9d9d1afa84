//! The largest, the longest, the deepest, and what is one more than that.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use crate::harness::{Errno, Fixture, long};

fn errno<T: std::fmt::Debug>(result: io::Result<T>) -> Option<Errno> {
    Errno::from_io_error(&result.expect_err("this should have failed"))
}

fn scratch() -> (Fixture, PathBuf) {
    let fixture = Fixture::new();
    let dir = fixture.path("scratchpad");
    fs::create_dir(&dir).unwrap();
    (fixture, dir)
}

// P7.1
#[test]
fn one_file_has_thousands_of_names() {
    let (fixture, dir) = scratch();
    let (first, links) = (dir.join("first"), dir.join("links"));
    fs::create_dir(&links).unwrap();
    fs::write(&first, b"one file").unwrap();
    let many = if long() { 65_000 } else { 3_000 };
    for nth in 1..many {
        fs::hard_link(&first, links.join(nth.to_string())).unwrap();
    }
    assert_eq!(fs::metadata(&first).unwrap().nlink(), many);
    if long() {
        assert_eq!(errno(fs::hard_link(&first, dir.join("one more"))), Some(Errno::MLINK));
    }
    let ino = fs::metadata(&first).unwrap().ino();
    let listed = fs::read_dir(&links).unwrap().map(|entry| entry.unwrap());
    use std::os::unix::fs::DirEntryExt;
    assert_eq!(listed.filter(|entry| entry.ino() == ino).count() as u64, many - 1);
    fs::write(links.join("77"), b"the same").unwrap();
    assert_eq!(fs::read(&first).unwrap(), b"the same");
    // It goes on under another name, and under the next when that goes.
    fs::remove_file(&first).unwrap();
    fs::hard_link(links.join("77"), &first).unwrap();
    fs::remove_dir_all(&links).unwrap();
    assert_eq!(fs::metadata(&first).unwrap().nlink(), 1);
    fixture.fsck_clean();
}

// P7.1
#[test]
fn a_file_of_a_tebibyte_is_mostly_hole() {
    const TEBIBYTE: u64 = 1 << 40;
    let (fixture, dir) = scratch();
    let file = File::options();
    let file = file.clone().read(true).write(true).create(true).open(dir.join("f")).unwrap();
    file.set_len(TEBIBYTE).unwrap();
    file.write_all_at(b"the last bytes", TEBIBYTE - 14).unwrap();
    file.write_all_at(b"the middle", TEBIBYTE / 2).unwrap();
    assert_eq!(file.metadata().unwrap().len(), TEBIBYTE);
    assert!(file.metadata().unwrap().blocks() < 4096, "holes take room");
    let mut bytes = [1; 24];
    file.read_exact_at(&mut bytes, TEBIBYTE / 2 - 10).unwrap();
    assert_eq!(&bytes[..20], b"\0\0\0\0\0\0\0\0\0\0the middle");
    assert_eq!(errno(file.write_all_at(b"x", TEBIBYTE)), Some(Errno::FBIG));
    assert_eq!(errno(file.set_len(TEBIBYTE + 1)), Some(Errno::FBIG));
    // What is data and what is a hole is found without walking through the holes.
    let seek = |from, whence: fn(u64) -> rustix::fs::SeekFrom| {
        rustix::fs::seek(&file, whence(from)).map_err(|error| error.raw_os_error())
    };
    let middle = seek(0, rustix::fs::SeekFrom::Data).unwrap();
    assert!(middle <= TEBIBYTE / 2 && middle > TEBIBYTE / 2 - (1 << 20), "{middle}");
    let hole = seek(middle, rustix::fs::SeekFrom::Hole).unwrap();
    assert!(hole > TEBIBYTE / 2 && hole < TEBIBYTE / 2 + (1 << 20), "{hole}");
    let last = seek(hole, rustix::fs::SeekFrom::Data).unwrap();
    assert!(last > TEBIBYTE - (1 << 20) && last < TEBIBYTE, "{last}");
    // `cp` finds them, too; it would take hours otherwise.
    fixture.sh("cp --sparse=always scratchpad/f scratchpad/g; rm scratchpad/f").success();
    let copy = fs::metadata(dir.join("g")).unwrap();
    assert_eq!((copy.len(), copy.blocks() < 4096), (TEBIBYTE, true));
    file.set_len(TEBIBYTE / 2 + 3).unwrap();
    assert_eq!(file.metadata().unwrap().nlink(), 0);
    drop(file);
    fixture.fsck_clean();
}

// P7.1
#[test]
fn a_path_of_4095_bytes() {
    let (_fixture, dir) = scratch();
    let below = |length: usize| {
        let mut path = dir.as_os_str().to_owned().into_string().unwrap();
        let name = "n".repeat(250);
        while length - path.len() > 500 {
            path = format!("{path}/{name}");
        }
        let left = length - path.len() - 2;
        format!("{path}/{}/{}", "a".repeat(left - left / 2), "b".repeat(left / 2))
    };
    let longest = below(4095);
    assert_eq!(longest.len(), 4095);
    let longest = Path::new(&longest);
    fs::create_dir_all(longest.parent().unwrap()).unwrap();
    fs::write(longest, b"deep").unwrap();
    assert_eq!(fs::read(longest).unwrap(), b"deep");
    fs::rename(longest, dir.join("up")).unwrap();
    fs::hard_link(dir.join("up"), longest).unwrap();
    let too_long = format!("{}x", longest.to_str().unwrap());
    assert_eq!(errno(fs::metadata(too_long)), Some(Errno::NAMETOOLONG));
    // A link's target may be as long.
    symlink(longest, dir.join("link")).unwrap();
    assert_eq!(fs::read_link(dir.join("link")).unwrap(), longest);
    assert_eq!(fs::read(dir.join("link")).unwrap(), b"deep");
    fs::remove_dir_all(dir.join("n".repeat(250))).unwrap();
}

// P7.1
#[test]
fn links_in_a_circle_end() {
    let (fixture, dir) = scratch();
    symlink("b", dir.join("a")).unwrap();
    symlink("a", dir.join("b")).unwrap();
    symlink("../scratchpad/self/x", dir.join("self")).unwrap();
    for name in ["a", "b", "self", "a/below", "self/below"] {
        assert_eq!(errno(fs::metadata(dir.join(name))), Some(Errno::LOOP), "{name}");
        let open = File::options().write(true).create(true).truncate(true).open(dir.join(name));
        assert_eq!(errno(open), Some(Errno::LOOP), "{name}");
    }
    // Forty links one after the other are the kernel's limit, not ours.
    fs::write(dir.join("end"), b"end").unwrap();
    symlink("end", dir.join("l0")).unwrap();
    for nth in 1..41 {
        symlink(format!("l{}", nth - 1), dir.join(format!("l{nth}"))).unwrap();
    }
    assert_eq!(fs::read(dir.join("l39")).unwrap(), b"end");
    assert_eq!(errno(fs::read(dir.join("l40"))), Some(Errno::LOOP));
    fixture.sh("find -L scratchpad 2>/dev/null | wc -l; rm -r scratchpad").success();
}

// P7.1
#[test]
fn what_lies_at_the_end_of_a_full_file_is_no_neighbours() {
    const TEBIBYTE: u64 = 1 << 40;
    let (fixture, dir) = scratch();
    let name = |nth: usize| dir.join(format!("f{nth}"));
    for nth in 0..6 {
        fs::write(name(nth), format!("file {nth}")).unwrap();
    }
    for nth in [1, 2, 4] {
        let file = File::options().write(true).open(name(nth)).unwrap();
        file.write_all_at(b"end", TEBIBYTE - 3).unwrap();
        let punch = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&file, punch, TEBIBYTE - 100_000, 100_000).unwrap();
        file.write_all_at(b"end", TEBIBYTE - 3).unwrap();
        file.set_len(6).unwrap();
    }
    for nth in 0..6 {
        assert_eq!(fs::read_to_string(name(nth)).unwrap(), format!("file {nth}"));
    }
    fixture.fsck_clean();
}
