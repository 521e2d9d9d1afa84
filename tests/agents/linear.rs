//! Claims, releases and completions of 16 processes over the mounts of eight agents, while the
//! daemon is killed again and again: what all of them heard must fit one order for each record.
//!
//! Deliberately not here: looking. A kernel may show a name for a moment longer (P7.4), so only
//! what is looked at when all is quiet counts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use rustix::process::Signal;

use crate::harness::{
    Errno, Said, Task, Worker, Workers, await_end, lies, long, pid_alive, pile, send_signal, work,
};
use crate::history::{Call, Heard, Op, State, check};
use crate::team::{Team, mv};

const AGENTS: usize = 8;
const PROCESSES: usize = 16;
const RECORDS: usize = 8;

/// Calls after which a daemon is killed that did not end by itself.
const CALLS: usize = 3_000;

/// How the daemon ends in a round: by somebody else, or by itself at its worst moments.
const ENDS: [Option<&str>; 4] =
    [None, Some("after-commit"), Some("before-reply"), Some("before-commit")];

fn name(agent: usize) -> String {
    format!("w{agent}")
}

/// Nanoseconds of one clock for all processes.
fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

#[test]
#[ignore = "a worker process of other tests"]
fn worker_claims_releases_and_completes() {
    let Some(work) = work() else { return };
    let agent = work.nth % AGENTS;
    let (lane, done) = (format!("assigned/{}", name(agent)), format!("done/{}", name(agent)));
    let seed = work.argument(0).parse::<u64>().unwrap() + work.nth as u64;
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    work.await_go();
    loop {
        let (record, dice) = (random.next_u64() % RECORDS as u64, random.next_u64() % 1_000);
        let id = format!("{}-{record}", work.argument(1));
        let (what, from, to) = match dice {
            0 => ("complete", &*lane, &*done),
            1..600 => ("claim", "inbox", &*lane),
            _ => ("release", &*lane, "inbox"),
        };
        let start = now();
        let result = mv(&work.dir, &id, from, to);
        let end = now();
        let heard = match result.map_err(|error| Errno::from_io_error(&error).unwrap()) {
            Ok(()) => "made",
            Err(Errno::NOENT) => "refused",
            Err(errno) if work.is_end(errno) => "nothing",
            Err(errno) => panic!("{what} {id}: {errno}"),
        };
        work.say(&format!("{id} {what} {start} {end} {heard}"));
        if heard == "nothing" {
            return;
        }
    }
}

/// All histories, by record.
type Histories = BTreeMap<String, Vec<Op>>;

fn note(histories: &mut Histories, said: &Said) {
    let words: Vec<&str> = said.line.split(' ').collect();
    let [id, what, from, to, heard] = words[..] else { panic!("{said:?}") };
    let agent = said.nth % AGENTS;
    let call = match what {
        "claim" => Call::Claim(agent),
        "release" => Call::Release(agent),
        "complete" => Call::Complete(agent),
        _ => panic!("{said:?}"),
    };
    let heard = match heard {
        "made" => Heard::Made,
        "refused" => Heard::Refused,
        _ => Heard::Nothing,
    };
    let op = Op { from: from.parse().unwrap(), to: to.parse().unwrap(), call, heard };
    histories.entry(id.to_owned()).or_default().push(op);
}

/// New records, which can be completed as they are.
fn make_records(team: &Team, prefix: &str) {
    for nth in 0..RECORDS {
        let task = Task::new(&format!("{prefix}-{nth}")).with("result:\n  summary: it works\n");
        team.fixture.task("inbox", &task);
    }
}

/// Lets all work until the daemon's end.
fn round(team: &mut Team, seed: u64, records: &str, end: Option<&str>, histories: &mut Histories) {
    let fault = end.map(|point| format!("{point}:{}", 50 + seed % 200));
    team.fixture.set_variable("WORKFS_FAULT", fault.as_deref());
    team.mount();
    let daemon = team.fixture.daemon_pid();
    let dirs: Vec<PathBuf> = (0..PROCESSES).map(|nth| team.work(1 + nth % AGENTS)).collect();
    let worker = Worker::Test("linear::worker_claims_releases_and_completes");
    let mut workers = Workers::start(&worker, &dirs, &[&seed.to_string(), records]);
    workers.go();
    for calls in 1.. {
        let Some(said) = workers.next() else { break };
        note(histories, &said);
        if calls == CALLS && pid_alive(daemon) {
            send_signal(daemon, Signal::KILL);
        }
    }
    assert!(workers.finish().is_empty());
    await_end(daemon);
    team.fixture.set_variable("WORKFS_FAULT", None);
}

/// Looks where each record lies, when nobody else does anything.
fn look(team: &Team, histories: &mut Histories) {
    let work = team.work(0);
    let pile = pile(&work);
    for (id, ops) in histories {
        let place = lies(&work, &pile, id);
        let (state, owner) = place.split_once("/w").unwrap_or((&place, "0"));
        let owner = owner.parse().unwrap();
        let state = match state {
            "assigned" => State::Held(owner),
            "done" => State::Done(owner),
            _ => State::Free,
        };
        ops.push(Op { from: now(), to: now(), call: Call::See(state), heard: Heard::Made });
    }
}

// P1.10 P4.1 P4.2
#[test]
fn what_sixteen_processes_heard_fits_one_order_though_the_daemon_is_killed() {
    let names: Vec<String> = (0..AGENTS).map(name).collect();
    let agents: Vec<(&str, &str)> = names.iter().map(|name| (&**name, "")).collect();
    let mut team = Team::of(&agents);
    let seed = now();
    println!("seed {seed}");
    let mut histories = Histories::new();
    for nth in 0..if long() { 60 } else { 4 } {
        // The same records see several ends of the daemon.
        let records = format!("r{}", nth / 4);
        if nth % 4 == 0 {
            make_records(&team, &records);
        }
        team.fixture.unmount_all();
        round(&mut team, seed + nth as u64 * 100, &records, ENDS[nth % 4], &mut histories);
        team.mount();
        look(&team, &mut histories);
    }
    let all = || histories.values().flatten();
    let count = |heard| all().filter(|op| op.heard == heard).count();
    println!(
        "{} calls: {:?}",
        all().count(),
        [Heard::Made, Heard::Refused, Heard::Nothing].map(count)
    );
    assert!(count(Heard::Nothing) > 0 && count(Heard::Refused) > 0, "nothing was tried");
    for (id, ops) in histories {
        check(ops).unwrap_or_else(|unfit| panic!("{id}: {unfit:?}"));
    }
    team.fixture.fsck_clean();
}
