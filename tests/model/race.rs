//! Many threads, each with a mount of its own, for the same records: each is won once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Barrier;

use workfs::numbers::G;
use workfs_mount::RenameMode;

use super::client::{Answer, Client};
use super::text::Text;
use super::world::World;

const RECORDS: usize = 300;
const THREADS: usize = 8;

/// How a thread claims: the record's number, its old and its new path.
type Claim = fn(&Client, usize, &str, &str) -> Answer<()>;

fn by_rename(client: &Client, _: usize, from: &str, to: &str) -> Answer<()> {
    client.rename(from, to, RenameMode::Replace)
}

/// Reads, writes into its own lane, and removes what it read, which may be a ghost already.
fn by_copy(client: &Client, _: usize, from: &str, to: &str) -> Answer<()> {
    let text = client.cat(from)?;
    client.put(to, &text)
}

fn by_both(client: &Client, nth: usize, from: &str, to: &str) -> Answer<()> {
    if nth.is_multiple_of(2) {
        by_rename(client, nth, from, to)
    } else {
        by_copy(client, nth, from, to)
    }
}

/// Lets all threads claim all records; `lost` is what losers may hear.
fn race(claim: Claim, lost: &[&str]) {
    let mut world = World::new();
    world.lay_out().unwrap();
    let client = world.nobody();
    for thread in 0..THREADS {
        client.mkdir(&format!("work/assigned/w{thread}")).unwrap();
    }
    for nth in 0..RECORDS {
        let text = Text::New.of(&format!("t{nth}"));
        client.put(&format!("work/inbox/t{nth}.yaml"), text.as_bytes()).unwrap();
    }
    let start = Barrier::new(THREADS);
    let won: Vec<Vec<usize>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let tree = world.system.tree();
                let start = &start;
                scope.spawn(move || {
                    let pid = (1 << 30) + thread as u32;
                    let client = Client::new(tree, thread as u32 + 1, pid);
                    start.wait();
                    // All in about the same order, so that they meet all the time.
                    let attempts = (0..RECORDS).map(|nth| (nth + thread) % RECORDS);
                    let won = attempts.filter(|nth| {
                        let from = format!("work/inbox/t{nth}.yaml");
                        let to = format!("work/assigned/w{thread}/t{nth}.yaml");
                        match claim(&client, nth + thread, &from, &to) {
                            Ok(()) => true,
                            Err(errno) if lost.contains(&errno) => false,
                            Err(errno) => panic!("claiming {from}: {errno}"),
                        }
                    });
                    won.collect()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut winners = BTreeMap::new();
    for (thread, records) in won.iter().enumerate() {
        for nth in records {
            assert_eq!(winners.insert(*nth, thread), None, "t{nth} was won twice");
        }
    }
    assert_eq!(winners.len(), RECORDS, "records that nobody won");
    for (nth, thread) in winners {
        let text = client.cat(&format!("work/assigned/w{thread}/t{nth}.yaml")).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(&format!("agent: w{thread}\n")), "{text}");
        assert!(text.contains("status: assigned\n"), "{text}");
    }
    assert_eq!(client.list(client.stat("work/inbox").unwrap().ino, 99).unwrap().len(), 0);
    assert_eq!(claims(&world), RECORDS);
    world.check_store(&BTreeSet::new()).unwrap();
}

/// Events of claims in the ledger.
fn claims(world: &World) -> usize {
    world.system.read(|read| {
        let (mut g, mut claims) = (G(0), 0);
        while let Some(event) = read.event(g.next())? {
            g = g.next();
            claims += usize::from(event.line.contains("\"event\":\"claimed\""));
        }
        Ok(claims)
    })
}

// P1.1 P1.2
#[test]
fn eight_threads_claim_by_rename_and_each_record_is_won_once() {
    race(by_rename, &["ENOENT"]);
}

// P1.3
#[test]
fn eight_threads_claim_by_copy_and_each_record_is_won_once() {
    race(by_copy, &["ENOENT", "EEXIST"]);
}

// P1.2
#[test]
fn claims_by_rename_and_by_copy_meet_and_each_record_is_won_once() {
    race(by_both, &["ENOENT", "EEXIST"]);
}
