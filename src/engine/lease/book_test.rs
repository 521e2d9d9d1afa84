//! When leases are looked at, and what renews them.

use super::*;
use crate::engine::{Audience, Effect, Nobody, Origin, Registry, Silence};
use crate::numbers::Ino;

const S: u64 = 1_000_000_000;

/// Bob has a lease of `seconds` from the beginning on.
fn book(seconds: u64) -> Book {
    let row = LeaseRow {
        record: RecordKey(1),
        attempt: Attempt(1),
        ttl_ns: seconds * S,
        until: LeaseTime(seconds * S),
        told: LeaseTold::Nothing,
    };
    let mut book = Book::default();
    let owner = AgentName::new("bob").unwrap();
    book.note(&LeaseNote::Runs(row, owner), LeaseTime(0));
    book
}

#[test]
fn an_owner_is_listened_for_before_the_end_however_late_one_looks() {
    let (agents, clock) = (Arc::new(Registry::default()), LeaseClock::at_rest());
    let signs = Signs::of(&Nobody, &agents, &clock);
    for looks in [&[2 * S, 3 * S][..], &[3 * S + S / 2]] {
        let mut book = book(4);
        for look in looks {
            let due = book.due(LeaseTime(*look), &signs);
            assert!(due.over.is_empty() && due.unheard.len() == 1, "at {look}: {due:?}");
        }
        let due = book.due(LeaseTime(4 * S), &signs);
        assert_eq!(due.over, [Expire::now(RecordKey(1), Attempt(1), Cause::RanOut)], "{due:?}");
    }
}

/// Mounts that saw bob at these seconds, and have a descriptor that holds his record since that one.
struct Mounts(&'static [u64], Option<u64>);

impl Audience for Mounts {
    fn make_forget(&self, _: &[(Origin, Effect)]) {}
    fn silence(&self, _: &[(Origin, Effect)]) -> Box<dyn Silence> {
        Box::new(())
    }
    fn is_in_use(&self, _: Ino) -> bool {
        false
    }
    fn last_seen(&self, _: &AgentName, by: u64) -> Option<u64> {
        self.0.iter().map(|at| at * S).filter(|at| *at <= by).max()
    }
    fn is_held(&self, _: RecordKey, _: Attempt, by: LeaseTime) -> bool {
        self.1.is_some_and(|since| since * S <= by.0)
    }
}

#[test]
fn what_an_owner_does_after_the_end_renews_nothing_however_late_one_looks() {
    let (agents, clock) = (Arc::new(Registry::default()), LeaseClock::at_rest_at(9 * S));
    let bob = AgentName::new("bob").unwrap();
    // Of four seconds, and looked at after nine.
    for (mounts, changes, until) in [
        (Mounts(&[], None), &[][..], None),
        (Mounts(&[9], None), &[], None),
        (Mounts(&[1, 9], None), &[], None),
        (Mounts(&[], None), &[1, 9], None),
        (Mounts(&[], Some(8)), &[], None),
        // He was there all the time.
        (Mounts(&[3, 6, 9], None), &[], Some(13)),
        (Mounts(&[3, 9], None), &[1, 7], Some(13)),
        (Mounts(&[], None), &[3, 7, 8], Some(12)),
        (Mounts(&[], Some(3)), &[], Some(13)),
    ] {
        let mut book = book(4);
        changes.iter().for_each(|at| book.note_agent(&bob, LeaseTime(at * S)));
        book.note(&LeaseNote::Seen(RecordKey(1)), LeaseTime(9 * S));
        let signs = Signs::of(&mounts, &agents, &clock);
        let renewed = |rows: &[LeaseRow]| rows.last().map(|row| row.until.0 / S);
        let kept = renewed(&book.unwritten(&signs));
        let due = book.due(LeaseTime(9 * S), &signs);
        assert_eq!(due.over.is_empty(), until.is_some(), "{due:?}");
        let until_at_most = until.unwrap_or(9);
        assert!(kept.is_none_or(|kept| kept <= until_at_most), "{kept:?}");
        if until.is_some() {
            assert_eq!((renewed(&due.renewed), kept), (until, until), "{due:?}");
        }
    }
    // One whose end was told of goes on with what comes after it.
    let mut told = book(4);
    told.note(&LeaseNote::Told(RecordKey(1)), LeaseTime(4 * S));
    let mounts = Mounts(&[9], None);
    let due = told.due(LeaseTime(40 * S), &Signs::of(&mounts, &agents, &clock));
    assert_eq!(due.renewed[0].until, LeaseTime(13 * S));
}

#[test]
fn an_end_is_not_undone_by_what_is_heard_after_it() {
    let (agents, clock) = (Arc::new(Registry::default()), LeaseClock::at_rest());
    let signs = Signs::of(&Nobody, &agents, &clock);
    let bob = AgentName::new("bob").unwrap();
    let (record, attempt) = (RecordKey(1), Attempt(1));
    for (cause, at) in [(Cause::RanOut, 40 * S), (Cause::LetGo, 10 * S)] {
        let mut book = book(40);
        if cause == Cause::LetGo {
            book.let_go(record, Attempt(7), LeaseTime(at));
            assert!(!book.has_ends(), "that is another claim");
            book.let_go(record, attempt, LeaseTime(at));
            assert_eq!((book.has_ends(), book.next_look()), (true, Some(LeaseTime(at))));
        }
        // What fails is tried after a while, and before its owner does anything.
        for later in [0, 30, 31] {
            let now = LeaseTime(at + later * S);
            if later == 31 {
                book.end_before(&bob, now);
            }
            let due = book.due(now, &signs);
            let ends: Vec<_> = due.over.iter().chain(&due.again).collect();
            assert_eq!(ends, [&Expire::now(record, attempt, cause)], "{due:?}");
            assert_eq!(due.over.is_empty(), later > 0 || cause == Cause::LetGo, "{due:?}");
            assert!(due.renewed.is_empty() && book.has_lost(&bob), "{due:?}");
            book.note_agent(&bob, now);
            book.note(&LeaseNote::Seen(record), now);
            assert!(book.next_look().is_some_and(|look| look > now));
            assert!(book.due(now, &signs).again.is_empty());
        }
        assert!(book.unwritten(&signs).is_empty());
        book.note(&LeaseNote::Ended(record), LeaseTime(at + 31 * S));
        assert!(!book.has_ends() && book.next_look().is_none());
    }
}

// A full disk, say: nothing of it is in the store.
#[test]
fn what_was_not_committed_is_tried_again() {
    let (agents, clock) = (Arc::new(Registry::default()), LeaseClock::at_rest());
    let signs = Signs::of(&Nobody, &agents, &clock);
    let mut book = book(400);
    let warned = |book: &mut Book, at| {
        let due = book.due(LeaseTime(at * S), &signs);
        (due.warned.len(), book.next_look().map(|look| look.0 / S))
    };
    assert_eq!(warned(&mut book, 360), (1, Some(390)));
    assert_eq!(warned(&mut book, 390), (1, Some(400)));
    book.note(&LeaseNote::Warned(RecordKey(1)), LeaseTime(390 * S));
    assert_eq!(warned(&mut book, 395), (0, Some(400)));

    book.note(&LeaseNote::Seen(RecordKey(1)), LeaseTime(396 * S));
    let due = book.due(LeaseTime(400 * S), &signs);
    let until = due.renewed[0].until;
    assert_eq!(until, LeaseTime(796 * S));
    assert_eq!(book.unwritten(&signs).len(), 1);
    book.note(&LeaseNote::Written(RecordKey(1), until), LeaseTime(400 * S));
    assert!(book.unwritten(&signs).is_empty());
}
