//! Leases under random time, crashes and races, against a model that knows nothing of the engine.

use std::collections::BTreeMap;

use proptest::prelude::*;
use workfs::engine::Fence;
use workfs::numbers::Attempt;

use crate::harness::{Desk, SECOND, agent};

const AGENTS: [&str; 3] = ["ann", "bob", "eve"];
const TASKS: [&str; 3] = ["t-0", "t-1", "t-2"];
const TTL: u64 = 10 * SECOND;
/// As the built-in kind has it.
const ATTEMPTS: u64 = 5;

#[derive(Clone, Debug)]
enum Op {
    Pass(u64),
    Wall(i64),
    See(usize),
    Claim(usize, usize),
    /// A save with what was opened at some earlier claim.
    Save(usize),
    Release(usize, usize),
    Finish(usize, usize),
    /// A directory takes the name that the task would have in the inbox.
    Block(usize),
    /// It goes, and half a minute passes.
    Unblock(usize),
    Restart(bool),
}

fn op() -> impl Strategy<Value = Op> {
    let (agents, tasks) = (0..AGENTS.len(), 0..TASKS.len());
    prop_oneof![
        4 => (0u64..6_000).prop_map(|ms| Op::Pass(ms * SECOND / 1_000)),
        1 => (10u64..40).prop_map(|s| Op::Pass(s * SECOND)),
        1 => (-100_000i64..100_000).prop_map(|s| Op::Wall(s * SECOND as i64)),
        3 => agents.clone().prop_map(Op::See),
        5 => (agents.clone(), tasks.clone()).prop_map(|(a, t)| Op::Claim(a, t)),
        5 => (0usize..64).prop_map(Op::Save),
        1 => (agents.clone(), tasks.clone()).prop_map(|(a, t)| Op::Release(a, t)),
        1 => (agents, tasks.clone()).prop_map(|(a, t)| Op::Finish(a, t)),
        1 => tasks.clone().prop_map(Op::Block),
        1 => tasks.prop_map(Op::Unblock),
        1 => any::<bool>().prop_map(Op::Restart),
    ]
}

/// What the model knows of a task.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Task {
    Free,
    Held {
        by: usize,
        until: u64,
    },
    /// Its lease is over, and something is in its way back.
    Stuck {
        by: usize,
    },
    Dead,
    Done,
}

struct Model {
    now: u64,
    tasks: [Task; 3],
    attempts: [u64; 3],
    /// How many leases ran out; what is given back does not count.
    lapses: [u64; 3],
    blocked: [bool; 3],
    /// The last sign of life through each agent's mount.
    seen: BTreeMap<usize, u64>,
}

impl Model {
    /// A sign of life of an agent, now.
    fn lives(&mut self, who: usize) {
        let until = self.now + TTL;
        for task in &mut self.tasks {
            if let Task::Held { by, until: old } = task
                && *by == who
            {
                *old = (*old).max(until);
            }
        }
    }

    /// What is in a task's way goes; what is stuck is tried again at least every half a minute.
    fn unblock(&mut self, desk: &Desk, task: usize) {
        if std::mem::take(&mut self.blocked[task]) {
            desk.unblock("inbox", TASKS[task]);
            self.now += 30 * SECOND;
            desk.pass(30 * SECOND);
            if let Task::Stuck { .. } = self.tasks[task] {
                self.tasks[task] = Task::Free;
            }
            self.settle();
        }
    }

    /// Ends what is over.
    fn settle(&mut self) {
        for (nth, task) in self.tasks.iter_mut().enumerate() {
            if let Task::Held { by, until } = *task
                && self.now >= until
            {
                self.lapses[nth] += 1;
                *task = if self.lapses[nth] >= ATTEMPTS {
                    Task::Dead
                } else if self.blocked[nth] {
                    // It stays, and what is under the old claim is fenced off.
                    self.attempts[nth] += 1;
                    Task::Stuck { by }
                } else {
                    Task::Free
                };
            }
        }
    }
}

fn walk(ops: Vec<Op>) {
    let mut desk = Desk::new(&AGENTS);
    for task in TASKS {
        desk.put(task, "lease: 10s");
    }
    let mut model = Model {
        now: 0,
        tasks: [Task::Free; 3],
        attempts: [0; 3],
        lapses: [0; 3],
        blocked: [false; 3],
        seen: BTreeMap::new(),
    };
    let mut fences: Vec<(usize, usize, Fence)> = Vec::new();
    for (step, op) in ops.into_iter().enumerate() {
        match op.clone() {
            Op::Pass(nanos) => {
                model.now += nanos;
                model.settle();
                desk.pass(nanos);
            }
            Op::Wall(by) => desk.set_wall(by),
            Op::See(who) => {
                desk.see(AGENTS[who]);
                model.lives(who);
                model.seen.insert(who, model.now);
            }
            // What lies there is a directory.
            Op::Claim(_, task) if model.blocked[task] => {}
            Op::Claim(who, task) => {
                model.lives(who);
                let claimed = desk.mv(AGENTS[who], TASKS[task], "inbox", AGENTS[who]);
                assert_eq!(claimed.is_ok(), model.tasks[task] == Task::Free, "{step} {claimed:?}");
                if claimed.is_ok() {
                    model.tasks[task] = Task::Held { by: who, until: model.now + TTL };
                    model.attempts[task] += 1;
                    let attempt = Attempt(model.attempts[task]);
                    fences.push((who, task, Fence { owner: agent(AGENTS[who]), attempt }));
                }
            }
            Op::Save(nth) if !fences.is_empty() => {
                let (who, task, fence) = &fences[nth % fences.len()];
                model.lives(*who);
                let is_held = matches!(model.tasks[*task], Task::Held { by, .. } if by == *who)
                    && Attempt(model.attempts[*task]) == fence.attempt;
                let more = format!("note: {step}\nlease: 10s");
                let saved = desk.save(AGENTS[*who], TASKS[*task], (fence, &more));
                assert_eq!(saved.is_ok(), is_held, "{step} {op:?} {saved:?}");
            }
            Op::Save(_) => {}
            Op::Release(who, task) | Op::Finish(who, task) => {
                model.lives(who);
                let done = matches!(op, Op::Finish(..));
                let to = if done { "done" } else { "inbox" };
                let moved = desk.mv(AGENTS[who], TASKS[task], AGENTS[who], to);
                let held = matches!(model.tasks[task], Task::Held { by, .. } if by == who)
                    && (done || !model.blocked[task]);
                assert_eq!(moved.is_ok(), held, "{step} {op:?} {moved:?}");
                if held {
                    model.tasks[task] = if done { Task::Done } else { Task::Free };
                }
            }
            Op::Block(task) => {
                if !model.blocked[task] && model.tasks[task] != Task::Free {
                    desk.block("inbox", TASKS[task]);
                    model.blocked[task] = true;
                }
            }
            Op::Unblock(task) => model.unblock(&desk, task),
            Op::Restart(new_boot) => {
                desk.restart(new_boot);
                // Nobody could show life meanwhile.
                for task in &mut model.tasks {
                    if let Task::Held { until, .. } = task {
                        *until = model.now + TTL;
                    }
                }
            }
        }
        compare(&desk, &model, (step, &op));
    }
    // Nobody shows life any more: nothing stays with anybody.
    for task in 0..TASKS.len() {
        model.unblock(&desk, task);
    }
    model.now += 20 * TTL;
    model.settle();
    desk.pass(20 * TTL);
    compare(&desk, &model, (usize::MAX, &Op::Pass(20 * TTL)));
    desk.fsck_clean();
}

#[track_caller]
fn compare(desk: &Desk, model: &Model, at: (usize, &Op)) {
    for (nth, task) in TASKS.iter().enumerate() {
        let record = desk.record(task);
        let found = (record.state.as_str(), record.owner.as_ref().map(|owner| owner.as_str()));
        let wanted = match model.tasks[nth] {
            Task::Free => ("inbox", None),
            Task::Held { by, .. } | Task::Stuck { by } => ("assigned", Some(AGENTS[by])),
            Task::Dead => ("dead", None),
            Task::Done => ("done", None),
        };
        assert_eq!(found, wanted, "{task} after {at:?}, now {}: {:?}", model.now, model.tasks);
        assert_eq!(record.attempt.0, model.attempts[nth], "{task} after {at:?}");
        // A lease is there exactly as long as somebody has the record.
        let lease = desk.lease(task);
        assert_eq!(lease.is_some(), matches!(model.tasks[nth], Task::Held { .. }), "{task} {at:?}");
        assert!(lease.is_none_or(|row| row.attempt == record.attempt), "{task} {at:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 400, ..ProptestConfig::default() })]
    // P12.7
    #[test]
    fn at_most_one_lives_none_is_stuck_and_nothing_late_is_taken(
        ops in proptest::collection::vec(op(), 1..60),
    ) {
        walk(ops);
    }
}

// P12.7
#[test]
fn a_wall_clock_that_was_set_back_before_another_boot_makes_no_lease_longer() {
    walk(vec![
        Op::Pass(3 * SECOND),
        Op::Claim(0, 0),
        Op::Wall(-(SECOND as i64)),
        Op::Restart(true),
        Op::Pass(TTL),
    ]);
}

// P12.7
#[test]
fn the_wall_clock_may_be_set_to_anything() {
    let desk = Desk::new(&["bob"]);
    desk.put("t-0", "lease: 10s");
    desk.mv("bob", "t-0", "inbox", "bob").unwrap();
    for days in [400, -800, 1] {
        desk.set_wall(days * 86_400 * SECOND as i64);
        assert_eq!(desk.record("t-0").state.as_str(), "assigned");
    }
    desk.pass(9 * SECOND);
    assert_eq!(desk.record("t-0").state.as_str(), "assigned");
    desk.pass(SECOND);
    assert_eq!(desk.record("t-0").state.as_str(), "inbox");
}

// P12.5
#[test]
fn time_goes_on_over_restarts_and_boots_and_owners_get_time_to_come_back() {
    let mut desk = Desk::new(&["bob"]);
    desk.put("t-0", "lease: 4h");
    desk.mv("bob", "t-0", "inbox", "bob").unwrap();
    desk.pass(3 * 3600 * SECOND);
    let left = |desk: &Desk| {
        let until = desk.lease("t-0").unwrap().until.0;
        (until - desk.engine().lease_now().0) / SECOND
    };
    assert_eq!(left(&desk), 3600);
    desk.restart(false);
    assert_eq!(left(&desk), 3600);
    // Another boot: the wall clock says how long it took.
    desk.set_wall(1800 * SECOND as i64);
    desk.restart(true);
    assert_eq!(left(&desk), 1800);
    // Set back meanwhile: no time has passed.
    desk.set_wall(-86_400 * SECOND as i64);
    desk.restart(true);
    assert_eq!(left(&desk), 1800);
    // It is over, but bob has a minute to show that he is back.
    desk.set_wall(7200 * SECOND as i64);
    desk.restart(true);
    desk.pass(50 * SECOND);
    assert_eq!(desk.record("t-0").state.as_str(), "assigned");
    desk.pass(20 * SECOND);
    assert_eq!(desk.record("t-0").state.as_str(), "inbox");
}
