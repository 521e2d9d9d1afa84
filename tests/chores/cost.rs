//! What a round of the chores costs where there is nothing to do: once a minute, whatever else there is.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use workfs::config::Config;
use workfs::engine::Chores;
use workfs::names::{RecordId, StateName};
use workfs::numbers::{G, Ino, RecordKey};
use workfs::store::{Durability, EventRow, Record, Standing};

use crate::harness::Desk;

/// Records of a state and status, as many as that, to each of which something has just happened.
type Many = (&'static str, &'static str, u64);

/// A store with these besides one that the engine made, after which they are.
fn with(many: &[Many]) -> Desk {
    let chores = "chores: { archive: true, escalate: true, drafts: true }";
    let text = format!("workspaces: [{{ path: work, kind: task, {chores} }}]\n");
    let mut desk = Desk::with(&["bob"], Config::parse("layout", &text).unwrap());
    desk.put_at("bob", "t-0", "status: blocked\nagent: bob");
    let like = desk.record("t-0");
    let event = desk.read(|read| read.event(like.last_g)).unwrap();
    desk.fill_store(|txn| {
        let (mut ino, mut event) = (1_000_000, event.clone());
        for (state, status, count) in many {
            for _ in 0..*count {
                ino += 1;
                let (g, line) = (event.g.next(), event.line.clone());
                let end = event.end + line.len() as u64 + 1;
                event = EventRow { g, before_g: G(0), end, line };
                txn.insert_event(&event)?;
                let Standing::Live { dir, name, valid, .. } = like.standing.clone() else {
                    unreachable!("it was just made");
                };
                txn.insert_record(&Record {
                    key: RecordKey(0),
                    id: RecordId::new(format!("t-{ino}")).unwrap(),
                    standing: Standing::Live { ino: Ino(ino), dir, name, valid },
                    state: StateName::new(*state).unwrap(),
                    status: Some((*status).to_owned()),
                    last_g: g,
                    ..like.clone()
                })?;
            }
        }
        Ok(Durability::Process)
    });
    desk
}

/// What a round costs the thread that makes it: the least of some.
fn round(desk: &Desk) -> Duration {
    let chores = Chores::new(desk.engine(), "one");
    let used = || {
        let used = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(used.tv_sec.unsigned_abs(), used.tv_nsec as u32)
    };
    let rounds = (0..5).map(|_| {
        let begin = used();
        assert_eq!(chores.round(), Ok(0), "there is nothing to do");
        used() - begin
    });
    rounds.min().unwrap()
}

// P14.5
#[test]
#[ignore = "a measurement"]
fn a_round_among_many_who_are_stuck_and_live() {
    for count in [1_000, 10_000, 100_000] {
        let desk = with(&[("assigned", "blocked", count)]);
        println!("{count} leased and blocked: {:?}", round(&desk));
    }
}

// P14.4 P14.5
#[test]
#[ignore = "a measurement"]
fn a_round_among_a_million() {
    for count in [100_000, 1_000_000] {
        let (done, assigned) = (count / 20, count / 100);
        let archived = count - done - assigned;
        let desk = with(&[
            ("archive", "done", archived),
            ("done", "done", done),
            ("assigned", "in_progress", assigned),
        ]);
        println!("{count} records: {:?}", round(&desk));
    }
}
