//! What finishing a record costs in a large graph: its dependants, and nothing else.

use std::time::{Duration, Instant};

use crossbeam_channel::bounded;
use workfs::engine::Placed;

use crate::desk::Desk;

/// Puts `count` records, each but the first few after three earlier ones. None of the first
/// twenty has dependants but those that the measurement makes.
fn graph(desk: &Desk, count: usize) -> u64 {
    let (send, placed) = bounded(1024);
    let mut edges = 0;
    for nth in 0..count {
        let first = 20 + nth / 2;
        let after: Vec<String> = if nth < 30 {
            Vec::new()
        } else {
            (0..3).map(|k| format!("t{}", (first + k * 7).min(nth - 1 - k))).collect()
        };
        edges += after.len() as u64;
        let fields = format!("dependencies: [{}]\n", after.join(", "));
        let put = Desk::put_of(desk.inbox, &format!("t{nth}"), &fields);
        let send = send.clone();
        desk.engine().submit(Desk::context(), put, move |end| send.send(end).unwrap());
        while placed.len() > 512 {
            assert!(matches!(placed.recv().unwrap().unwrap(), Placed::Record(..)));
        }
    }
    drop(send);
    for end in placed {
        assert!(matches!(end.unwrap(), Placed::Record(..)));
    }
    edges
}

/// The median time of finishing one record, and of taking that back.
fn finishing(desk: &Desk, task: &str, rounds: usize) -> Duration {
    let mut took: Vec<Duration> = (0..rounds)
        .map(|_| {
            let begin = Instant::now();
            desk.mv(desk.inbox, desk.done, task);
            desk.mv(desk.done, desk.inbox, task);
            begin.elapsed() / 2
        })
        .collect();
    took.sort();
    took[rounds / 2]
}

// P9.1
#[test]
#[ignore = "a measurement"]
fn finishing_costs_what_the_dependants_cost() {
    for count in [1_000, 100_000] {
        let desk = Desk::new();
        let begin = Instant::now();
        let edges = graph(&desk, count);
        let made = begin.elapsed();
        for dependants in [0, 1, 10, 100] {
            let task = format!("one-{dependants}");
            desk.put(&task, "");
            for nth in 0..dependants {
                desk.put(
                    &format!("after-{dependants}-{nth}"),
                    &format!("dependencies: [{task}]\n"),
                );
            }
            let took = finishing(&desk, &task, 200);
            println!(
                "{count} records, {edges} edges (made in {made:.1?}): finishing one with \
                 {dependants} dependants takes {took:?}"
            );
        }
        desk.fsck_clean();
    }
}

/// What a claim costs where no kernel asks for it: the best of some rounds, since whatever else runs on
/// the machine only adds to it.
// P2.1
#[test]
#[ignore = "a measurement"]
fn a_claim_without_a_kernel() {
    const TASKS: usize = 10_000;
    const ROUNDS: usize = 10;
    let desk = Desk::new();
    let text = "words ".repeat(240);
    let fields = format!("title: a task\nstatus: pending\ndescription: {text}\n");
    let names: Vec<String> = (0..TASKS).map(|nth| format!("t{}", nth * 7919 % TASKS)).collect();
    names.iter().for_each(|name| {
        desk.put(name, &fields);
    });
    let context = Desk::context();
    let round = |from, to| {
        let begin = Instant::now();
        for name in &names {
            desk.engine().run(context.clone(), Desk::rename_of(from, to, name)).unwrap();
        }
        begin.elapsed() / TASKS as u32
    };
    let rounds = (0..ROUNDS).map(|_| (round(desk.inbox, desk.lane), round(desk.lane, desk.inbox)));
    let (claims, returns): (Vec<_>, Vec<_>) = rounds.unzip();
    let best = |all: Vec<Duration>| all.into_iter().min().unwrap();
    println!("a claim takes {:?}, giving it back {:?}", best(claims), best(returns));
}
