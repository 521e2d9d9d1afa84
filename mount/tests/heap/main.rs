//! What threads keep that have freed what they had; alone in its process, because it weighs the process.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::Barrier;

use workfs_mount::{give_back_memory, lazy_buffers};

/// Resident memory of this process, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// So many threads of sixteen mounts each take what large writes take, and give it back.
const THREADS: usize = 32;

#[test]
fn threads_that_wrote_keep_little_memory_and_what_lies_between_goes_when_it_is_given_back() {
    lazy_buffers();
    let before = resident();
    let (all, weighed) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1));
    let (kept, given_back) = std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let taken: Vec<Vec<u8>> = (0..6).map(|_| vec![1; 1 << 20]).collect();
                // It lies behind what is freed, so that the heap cannot become shorter.
                let stays = vec![1_u8; 4096];
                all.wait();
                drop(black_box(taken));
                all.wait();
                weighed.wait();
                drop(black_box(stays));
            });
        }
        all.wait();
        all.wait();
        let kept = resident().saturating_sub(before);
        give_back_memory();
        let given_back = resident().saturating_sub(before);
        weighed.wait();
        (kept, given_back)
    });
    eprintln!("{THREADS} threads keep {kept} KiB, {given_back} when it was given back");
    assert!(given_back < 48 << 10, "{given_back} KiB of {kept}");
}
