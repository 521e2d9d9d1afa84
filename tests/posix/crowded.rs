//! One directory with very many files, listed while it changes.

use std::collections::HashSet;
use std::fs::{self, File};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::harness::{Setup, long};

/// What the daemon uses of the machine's memory, in KiB.
fn memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

// P7.3
#[test]
fn a_crowd_is_listed_once_each_while_it_changes() {
    let many = if long() { 1_000_000 } else { 5_000 };
    let fixture = Setup::default().mounts(2).start();
    let dir = fixture.path("scratchpad");
    fs::create_dir(&dir).unwrap();
    std::thread::scope(|scope| {
        for part in 0..4 {
            let dir = &dir;
            scope.spawn(move || {
                for nth in (part..many).step_by(4) {
                    File::create(dir.join(format!("stays-{nth}"))).unwrap();
                }
            });
        }
    });
    let pid = fixture.daemon_pid();
    let before = memory(pid);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Changes come through the mount that is listed, and through another.
        for mount in fixture.mounts() {
            let (dir, done) = (mount.join("scratchpad"), &done);
            let me = mount.file_name().unwrap().to_str().unwrap().to_owned();
            scope.spawn(move || {
                for round in 0.. {
                    let name = dir.join(format!("goes-{me}-{}", round % 997));
                    fs::write(&name, b"x").unwrap();
                    fs::rename(&name, dir.join(format!("zz-{me}"))).unwrap();
                    fs::remove_file(dir.join(format!("zz-{me}"))).unwrap();
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        for _ in 0..3 {
            let mut seen = HashSet::with_capacity(many);
            for entry in fs::read_dir(&dir).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                if let Some(number) = name.strip_prefix("stays-") {
                    assert!(seen.insert(number.parse::<usize>().unwrap()), "{name} twice");
                }
            }
            assert_eq!(seen.len(), many, "lost");
        }
        done.store(true, Ordering::Relaxed);
    });
    let grown = memory(pid).saturating_sub(before);
    assert!(grown < 64 << 10, "listing took {grown} KiB of the daemon");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), many);
    fixture.fsck_clean();
}
