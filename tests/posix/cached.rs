//! What kernels have cached is true, whatever answers were on their way when something changed.

use std::ffi::OsString;
use std::fmt::Debug;
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{AtFlags, CWD, RenameFlags, StatxFlags, XattrFlags, setxattr, statx};

use crate::harness::{Fixture, Setup, long, python, rename_with};

/// Times that something is changed while others look.
fn rounds() -> usize {
    if long() { 50_000 } else { 1_500 }
}

/// Does `work` while each of `others` does the same again and again in a thread of its own.
fn beside(others: &[&(dyn Fn() + Sync)], work: impl FnOnce()) {
    /// Ends them also where the work fails.
    struct Done<'d>(&'d AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_done = &AtomicBool::new(false);
    thread::scope(|threads| {
        let _done = Done(is_done);
        for other in others {
            threads.spawn(move || {
                while !is_done.load(Ordering::Relaxed) {
                    other();
                }
            });
        }
        work();
    });
}

/// Fails if one of the rounds went wrong.
fn none_wrong(wrong: &[impl Debug]) {
    assert!(wrong.is_empty(), "{} of {}, the first: {:?}", wrong.len(), rounds(), wrong[0]);
}

/// Times in seconds and nanoseconds, mode, number of names, size.
type Attributes = ([(i64, u32); 2], u16, u32, u64);

/// What a kernel says of a file by itself, or (`asked`) what it hears when it asks.
fn attributes(path: &Path, asked: bool) -> Attributes {
    let sync = if asked { AtFlags::STATX_FORCE_SYNC } else { AtFlags::empty() };
    let stat = statx(CWD, path, sync, StatxFlags::BASIC_STATS).unwrap();
    let times = [stat.stx_mtime, stat.stx_ctime].map(|time| (time.tv_sec, time.tv_nsec));
    (times, stat.stx_mode, stat.stx_nlink, stat.stx_size)
}

/// What a kernel says by itself. It sets one after the other what it hears, and who reads meanwhile has
/// some new and some old.
fn known(path: &Path) -> Attributes {
    let say = || attributes(path, false);
    let mut known = say();
    loop {
        match say() {
            again if again == known => return known,
            again => known = again,
        }
    }
}

/// Makes changes to `path` while others ask for its attributes all the time; fails if a kernel has old
/// ones when a change has returned.
fn while_others_look(path: &Path, mut change: impl FnMut(usize)) {
    let look = || {
        attributes(path, true);
    };
    beside(&[&look, &look, &look], || {
        let mut wrong = Vec::new();
        for nth in 0..rounds() {
            change(nth);
            let (known, asked) = (known(path), attributes(path, true));
            if known != asked {
                wrong.push((nth, known, asked));
            }
        }
        none_wrong(&wrong);
    });
}

/// Changes a directory's entries.
fn change_entries(dir: &Path, nth: usize) {
    let file = dir.join("file");
    if nth.is_multiple_of(2) {
        drop(File::create(file).unwrap());
    } else {
        fs::remove_file(file).unwrap();
    }
}

/// Changes a file in each way that there is.
fn change_file(file: &Path, nth: usize) {
    let other = |name| file.with_file_name(name);
    match nth % 8 {
        0 => fs::hard_link(file, other("a")).unwrap(),
        1 => fs::rename(other("a"), other("b")).unwrap(),
        2 => fs::remove_file(other("b")).unwrap(),
        3 => File::options().append(true).open(file).unwrap().write_all(b"more").unwrap(),
        4 => fs::set_permissions(file, Permissions::from_mode(0o600 + nth as u32 % 64)).unwrap(),
        5 => setxattr(file, "user.nth", &nth.to_ne_bytes(), XattrFlags::empty()).unwrap(),
        6 => File::options().write(true).open(file).unwrap().set_len(nth as u64).unwrap(),
        _ => fs::write(file, nth.to_string()).unwrap(),
    }
}

/// A directory with a file in it, changed through a mount while others look through another, or through
/// the same one.
fn change_through(mounts: usize, name: &str, change: fn(&Path, usize)) {
    let fixture = Setup::default().mounts(mounts).start();
    let [changed, seen] = [0, mounts - 1].map(|nth| fixture.mount(nth).join("scratchpad"));
    fs::create_dir(&changed).unwrap();
    fs::write(changed.join("stays"), "text").unwrap();
    while_others_look(&seen.join(name), |nth| change(&changed.join(name), nth));
}

// P7.4
#[test]
fn a_directory_that_changes_while_others_look_at_it() {
    change_through(1, ".", change_entries);
}

// P7.4
#[test]
fn a_directory_that_another_mount_changes() {
    change_through(2, ".", change_entries);
}

// P7.4
#[test]
fn a_file_that_changes_while_others_look_at_it() {
    change_through(1, "stays", change_file);
}

// P7.4
#[test]
fn a_file_that_another_mount_changes() {
    change_through(2, "stays", change_file);
}

/// What `show` says of a directory is, through two mounts, what it is when a change of it has returned,
/// while others ask for the same in both all the time.
fn shown_while_others_look<T: PartialEq + Debug>(
    show: fn(&Path) -> T,
    change: impl Fn(&Path, usize) -> T,
) {
    let fixture = Setup::default().mounts(2).start();
    let dirs = [0, 1].map(|nth| fixture.mount(nth).join("scratchpad"));
    fs::create_dir(&dirs[0]).unwrap();
    change(&dirs[0], 0);
    let (one, other) = (|| drop(show(&dirs[0])), || drop(show(&dirs[1])));
    beside(&[&one, &other, &one, &other], || {
        let mut wrong = Vec::new();
        for nth in 1..rounds() {
            let right = change(&dirs[0], nth);
            let shown = dirs.each_ref().map(|dir| show(dir));
            if shown.iter().any(|shown| *shown != right) {
                wrong.push((right, shown));
            }
        }
        none_wrong(&wrong);
    });
}

// P7.4
#[test]
fn a_listing_that_changes_while_others_list() {
    let list = |dir: &Path| -> Vec<OsString> {
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    shown_while_others_look(list, |dir, nth| {
        change_entries(dir, nth);
        Vec::from_iter(nth.is_multiple_of(2).then(|| "file".into()))
    });
}

// P7.4
#[test]
fn a_file_that_is_written_while_others_read() {
    let read = |dir: &Path| fs::read_to_string(dir.join("file")).unwrap();
    shown_while_others_look(read, |dir, nth| {
        let text = nth.to_string().repeat(nth % 7 * 1_000 + 1);
        fs::write(dir.join("file"), &text).unwrap();
        text
    });
}

// P7.4
#[test]
fn a_file_that_is_replaced_while_others_read() {
    let read = |dir: &Path| fs::read_to_string(dir.join("file")).unwrap();
    shown_while_others_look(read, |dir, nth| {
        let text = nth.to_string();
        fs::write(dir.join("new"), &text).unwrap();
        fs::rename(dir.join("new"), dir.join("file")).unwrap();
        text
    });
}

// P7.4
#[test]
fn a_directory_that_another_mount_moves_away_before_its_name_is_removed() {
    let fixture = Setup::default().mounts(2).start();
    fs::create_dir(fixture.path("scratchpad")).unwrap();
    let [one, other] = [0, 1].map(|nth| fixture.mount(nth).join("scratchpad"));
    let mut open = Vec::new();
    // Which of those it is that lies there is for the race to say.
    let remove = || drop(fs::remove_dir(one.join("dir")));
    beside(&[&remove], || {
        for nth in 0..rounds() / 3 {
            let (dir, kept) = (other.join("dir"), other.join(format!("kept{nth}")));
            fs::create_dir(&kept).unwrap();
            fs::create_dir(&dir).unwrap();
            // While it is filled it stays; the empty one that takes its name does not.
            if fs::write(dir.join("file"), "text").is_ok() {
                // What is open is not forgotten.
                open.extend(File::open(one.join("dir/file")));
                rename_with(&dir, &kept, RenameFlags::EXCHANGE).unwrap();
            }
            let _ = fs::remove_dir(&dir);
        }
    });
    assert!(open.len() > rounds() / 100, "{}", open.len());
    assert_eq!(fixture.walk(&one), fixture.walk(&other));
}

// P7.1
#[test]
fn what_a_mapping_has_written_into_a_hole_is_no_hole_for_who_copies() {
    let fixture = Fixture::new();
    // Its descriptor is open in no other process: each close would have the kernel write its pages.
    let mapper = "\
import mmap, os, sys
fd = os.open('scratchpad/f', os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 256 << 20)
mapped = mmap.mmap(fd, 256 << 20)
for at in (300000, 200 << 20):
    mapped[at:at + 10] = b'0123456789'
print('mapped', flush=True)
sys.stdin.read()
";
    fs::write(fixture.outside("mapper.py"), mapper).unwrap();
    let copy = "cp --sparse=$how scratchpad/f scratchpad/$how";
    let ran = fixture.sh(&format!(
        "mkdir scratchpad; coproc {{ exec {} $OUT/mapper.py; }}; read -r said <&${{COPROC[0]}}
         for how in auto always; do {copy}; done
         for how in auto always; do
             for at in 300000 209715200; do tail -c +$((at + 1)) scratchpad/$how | head -c 10; echo; done
             (($(stat -c %b scratchpad/$how) < 32768)) && echo sparse
         done",
        python().display()
    ));
    let each = "0123456789\n0123456789\nsparse\n";
    assert_eq!(ran.success().stdout, each.repeat(2));
    fixture.fsck_clean();
}
