//! What kernels have cached is true, whatever answers were on their way when something changed.

use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{AtFlags, CWD, RenameFlags, Statx, StatxFlags, statx};

use crate::harness::{Setup, long, rename_with};

/// Times that something is changed while others look.
fn rounds() -> usize {
    if long() { 50_000 } else { 1_500 }
}

/// What the kernel says by itself, or (`asked`) what it hears when it asks.
fn times(path: &Path, asked: bool) -> (i64, u32, i64, u32) {
    let sync = if asked { AtFlags::STATX_FORCE_SYNC } else { AtFlags::empty() };
    let Statx { stx_mtime: m, stx_ctime: c, .. } =
        statx(CWD, path, sync, StatxFlags::BASIC_STATS).unwrap();
    (m.tv_sec, m.tv_nsec, c.tv_sec, c.tv_nsec)
}

/// Makes changes that give `path` other times, while others ask for them all the time.
fn while_others_look(path: &Path, mut change: impl FnMut(usize)) {
    let is_done = AtomicBool::new(false);
    thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    times(path, true);
                }
            });
        }
        let mut wrong = Vec::new();
        for nth in 0..rounds() {
            change(nth);
            if times(path, false) != times(path, true) {
                wrong.push(nth);
            }
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(wrong.is_empty(), "{} of {}, the first: {}", wrong.len(), rounds(), wrong[0]);
    });
}

// P7.4
#[test]
fn a_directory_that_changes_while_others_look_at_it() {
    let fixture = Setup::default().start();
    let dir = fixture.path("scratchpad");
    fs::create_dir(&dir).unwrap();
    while_others_look(&dir, |nth| {
        let file = dir.join("file");
        if nth % 2 == 0 {
            drop(File::create(file).unwrap())
        } else {
            fs::remove_file(file).unwrap()
        }
    });
}

// P7.4
#[test]
fn a_file_that_is_renamed_while_others_look_at_it() {
    let fixture = Setup::default().start();
    let dir = fixture.path("scratchpad");
    fs::create_dir(&dir).unwrap();
    // Under one of its names it stays.
    let names = ["a", "b", "stays"].map(|name| dir.join(name));
    fs::write(&names[0], "text").unwrap();
    fs::hard_link(&names[0], &names[2]).unwrap();
    while_others_look(&names[2], |nth| {
        fs::rename(&names[nth % 2], &names[(nth + 1) % 2]).unwrap();
    });
}

// P7.4
#[test]
fn a_directory_that_another_mount_moves_away_before_its_name_is_removed() {
    let fixture = Setup::default().mounts(2).start();
    fs::create_dir(fixture.path("scratchpad")).unwrap();
    let [one, other] = [0, 1].map(|nth| fixture.mount(nth).join("scratchpad"));
    let (is_done, mut open) = (AtomicBool::new(false), Vec::new());
    thread::scope(|threads| {
        threads.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                // Which of those it is that lies there is for the race to say.
                let _ = fs::remove_dir(one.join("dir"));
            }
        });
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
        is_done.store(true, Ordering::Relaxed);
    });
    assert!(open.len() > rounds() / 100, "{}", open.len());
    let show = |mount: &Path| {
        let find = "find -printf '%p %i %n %s %m %T@\n' | sort";
        fixture.sh(&format!("cd '{}' && {find}", mount.display())).success().stdout
    };
    assert_eq!(show(&one), show(&other));
}
