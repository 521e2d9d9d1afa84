//! The rounds: load, kill, mount again, judge.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;

use crate::harness::{Fixture, Setup, Worker, Workers, await_end, long, send_signal};
use crate::load::WORKERS;
use crate::truth::{Truth, lanes_are_whole};

/// How many rounds go over one store.
const ROUNDS_OF_ONE_STORE: usize = 20;

/// When the daemon is killed.
#[derive(Clone, Copy, Debug)]
pub enum Kill {
    /// After so many acknowledgements, by somebody else.
    After(u64),
    /// By itself, the so-manieth time that it passes a named point.
    At(&'static str, u64),
}

impl Kill {
    /// What the daemon is told of it.
    pub fn fault(self) -> Option<String> {
        match self {
            Kill::After(_) => None,
            Kill::At(point, nth) => Some(format!("{point}:{nth}")),
        }
    }
}

/// Numbers that differ from run to run; a failed run prints its seed, `WORKFS_SEED` repeats it.
pub struct Random(u64);

impl Random {
    /// A new series.
    pub fn new() -> Random {
        let given = std::env::var("WORKFS_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
            now.as_nanos() as u64
        });
        println!("WORKFS_SEED={seed}");
        Random(seed)
    }

    /// The next number.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        low + (mixed ^ (mixed >> 31)) % (high - low)
    }
}

/// When each round's daemon is killed.
pub fn kills(random: &mut Random) -> Vec<Kill> {
    let rounds = if long() { 200 } else { 6 };
    let kill = |nth| match nth % 6 {
        0 | 4 => Kill::After(random.between(10, 400)),
        1 => Kill::At("before-commit", random.between(2, 150)),
        2 => Kill::At("after-commit", random.between(2, 150)),
        3 => Kill::At("before-reply", random.between(2, 150)),
        _ => Kill::At("after-commit", random.between(2, 20)),
    };
    (0..rounds).map(kill).collect()
}

fn lanes() -> Vec<String> {
    (0..WORKERS).map(|nth| format!("w{nth}")).collect()
}

fn rounds(setup: Setup) {
    let mut random = Random::new();
    let kills: Vec<(usize, Kill)> = kills(&mut random).into_iter().enumerate().collect();
    // All is judged after each round, so that a store that grows for ever would cost ever more.
    for some in kills.chunks(ROUNDS_OF_ONE_STORE) {
        rounds_of_one_store(setup.clone().lanes(lanes()).start(), some);
    }
}

fn rounds_of_one_store(mut fixture: Fixture, kills: &[(usize, Kill)]) {
    std::fs::create_dir(fixture.path("scratchpad")).unwrap();
    let mut truth = Truth::default();
    for &(nth, kill) in kills {
        println!("round {nth}: {kill:?}");
        fixture.unmount_all();
        fixture.set_variable("WORKFS_FAULT", kill.fault().as_deref());
        fixture.mount_all();
        round(&fixture, nth, kill, &mut truth);
        fixture.set_variable("WORKFS_FAULT", None);
        fixture.mount_all();
        truth.judge(&fixture);
    }
}

fn round(fixture: &Fixture, nth: usize, kill: Kill, truth: &mut Truth) {
    let pid = fixture.daemon_pid();
    let mounts = fixture.mounts();
    let dirs: Vec<PathBuf> =
        (0..WORKERS).map(|worker| mounts[worker % mounts.len()].join("work")).collect();
    let name = nth.to_string();
    let mut workers = Workers::start(&Worker::Test("load::worker_loads"), &dirs, &[&name]);
    let done = Arc::new(AtomicBool::new(false));
    let (stop, work) = (Arc::clone(&done), fixture.work());
    let reader = std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            lanes_are_whole(&work);
        }
    });
    workers.go();
    let mut acknowledged = 0;
    while let Some(said) = workers.next() {
        truth.hear(&said);
        let is_answer = said.line.starts_with("ok ");
        acknowledged += u64::from(is_answer);
        // Once: what is said without an answer comes after the end, too.
        if is_answer && matches!(kill, Kill::After(count) if count == acknowledged) {
            send_signal(pid, Signal::KILL);
        }
    }
    assert!(workers.finish().is_empty());
    done.store(true, Ordering::Relaxed);
    reader.join().unwrap_or_else(|torn| std::panic::resume_unwind(torn));
    await_end(pid);
}

// P4.1 P4.2 P5.2
#[test]
fn what_was_acknowledged_survives_sigkill_at_any_moment() {
    rounds(Setup::default());
}

// P4.1 P4.2 P5.2
#[test]
fn what_was_acknowledged_survives_sigkill_on_four_mounts_with_sync_normal() {
    rounds(Setup::default().mounts(4).arguments(&["--sync", "normal"]));
}
