//! Whether what callers heard about one record fits some order in which the calls were made one
//! after the other: the search of Wing and Gong, with Lowe's memory of what was tried.
//!
//! It knows a record's sequential life and nothing of the engine. A call whose outcome nobody heard
//! was made or was not, at some moment before its end, which is the daemon's: what is dead makes
//! nothing later. Records do not depend on each other, so each has a history of its own.

use std::collections::{BTreeSet, HashSet};
use std::fmt;

/// Where a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Anybody can claim it.
    Free,
    /// This agent has it.
    Held(usize),
    /// This agent has completed it.
    Done(usize),
}

/// What is asked for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Claim(usize),
    Release(usize),
    Complete(usize),
    /// Somebody looked when nothing else was under way.
    See(State),
}

/// What the caller heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    Made,
    /// ENOENT: it does not lie there.
    Refused,
    /// The daemon died meanwhile.
    Nothing,
}

/// A call, from the moment before it to the moment after it by one steady clock.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    pub from: u64,
    pub to: u64,
    pub call: Call,
    pub heard: Heard,
}

impl Op {
    /// The states that this call can leave a record in that was in `state`.
    fn after(self, state: State) -> impl Iterator<Item = State> {
        let made = match (self.call, state) {
            (Call::Claim(by), State::Free) => Some(State::Held(by)),
            (Call::Release(by), State::Held(owner)) if by == owner => Some(State::Free),
            (Call::Complete(by), State::Held(owner)) if by == owner => Some(State::Done(by)),
            (Call::See(seen), _) if seen == state => Some(state),
            _ => None,
        };
        let not_made = match self.heard {
            Heard::Made => None,
            Heard::Refused => made.is_none().then_some(state),
            Heard::Nothing => Some(state),
        };
        made.filter(|_| self.heard != Heard::Refused).into_iter().chain(not_made)
    }
}

/// How far a search has come: all calls before `first` were made, and `ahead` of those after it, in
/// whatever order, and that left `state`.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Point {
    first: usize,
    ahead: BTreeSet<usize>,
    state: State,
}

impl Point {
    fn after(&self, nth: usize, state: State) -> Point {
        let mut after = Point { state, ..self.clone() };
        after.ahead.insert(nth);
        while after.ahead.remove(&after.first) {
            after.first += 1;
        }
        after
    }

    fn made(&self) -> usize {
        self.first + self.ahead.len()
    }

    /// The calls that can be next: those that began before any other that is left had ended.
    fn next(&self, ops: &[Op]) -> Vec<usize> {
        let (mut next, mut first_end) = (Vec::new(), u64::MAX);
        for nth in (self.first..ops.len()).filter(|nth| !self.ahead.contains(nth)) {
            if ops[nth].from > first_end {
                break;
            }
            first_end = first_end.min(ops[nth].to);
            next.push(nth);
        }
        next
    }
}

/// What fits no order: the longest beginning that does, and what was open there.
pub struct Unfit {
    fits: usize,
    state: State,
    next: Vec<Op>,
}

impl fmt::Debug for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} calls fit and leave {:?}; none of these can be next:",
            self.fits, self.state
        )?;
        self.next.iter().try_for_each(|op| writeln!(f, "  {op:?}"))
    }
}

/// Searches for an order of a record's calls, from its making on.
pub fn check(mut ops: Vec<Op>) -> Result<(), Unfit> {
    ops.sort_by_key(|op| op.from);
    let start = Point { first: 0, ahead: BTreeSet::new(), state: State::Free };
    let mut best = Unfit { fits: 0, state: State::Free, next: Vec::new() };
    let mut tried = HashSet::from([start.clone()]);
    let mut waiting = vec![start];
    while let Some(point) = waiting.pop() {
        if point.made() == ops.len() {
            return Ok(());
        }
        let next = point.next(&ops);
        if point.made() >= best.fits {
            let next = next.iter().map(|&nth| ops[nth]).collect();
            best = Unfit { fits: point.made(), state: point.state, next };
        }
        // What fits now and changes nothing can come first in any order in which it comes later.
        let idle = |nth: &&usize| {
            let op = ops[**nth];
            op.heard != Heard::Nothing && op.after(point.state).eq([point.state])
        };
        let next = next.iter().find(idle).map_or(next.clone(), |&nth| vec![nth]);
        for nth in next {
            for state in ops[nth].after(point.state) {
                let after = point.after(nth, state);
                if tried.insert(after.clone()) {
                    waiting.push(after);
                }
            }
        }
    }
    Err(best)
}

fn op(from: u64, to: u64, call: Call, heard: Heard) -> Op {
    Op { from, to, call, heard }
}

use Call::{Claim, Complete, Release, See};
use Heard::{Made, Nothing, Refused};

#[test]
fn what_fits_is_found() {
    check(vec![]).unwrap();
    // Side by side, in either order.
    check(vec![op(0, 9, Claim(1), Refused), op(1, 8, Claim(2), Made)]).unwrap();
    check(vec![op(0, 9, Claim(1), Made), op(1, 8, Claim(2), Made), op(2, 7, Release(1), Made)])
        .unwrap();
    // Nobody heard of it, and it was made; or it was not.
    check(vec![op(0, 5, Claim(1), Nothing), op(6, 7, Complete(1), Made)]).unwrap();
    check(vec![op(0, 5, Claim(1), Nothing), op(6, 7, Claim(2), Made)]).unwrap();
    // It did not fit at first, and was made all the same.
    let released = op(3, 4, Release(1), Made);
    let ops = vec![op(0, 1, Claim(1), Made), op(2, 9, Claim(2), Nothing), released];
    check([ops, vec![op(10, 11, Complete(2), Made)]].concat()).unwrap();
}

#[test]
fn what_does_not_fit_is_told() {
    let cases = [
        ("two owners", vec![op(0, 1, Claim(1), Made), op(2, 3, Claim(2), Made)]),
        ("two owners side by side", vec![op(0, 3, Claim(1), Made), op(1, 2, Claim(2), Made)]),
        ("refused although it was free", vec![op(0, 1, Claim(1), Refused)]),
        ("released by another", vec![op(0, 1, Claim(1), Made), op(2, 3, Release(2), Made)]),
        (
            "an acknowledged claim is lost",
            vec![op(0, 1, Claim(1), Made), op(9, 9, See(State::Free), Made)],
        ),
        (
            "made after the daemon's end",
            vec![
                op(0, 5, Claim(1), Nothing),
                op(6, 7, Claim(2), Made),
                op(8, 9, Release(2), Made),
                op(10, 11, Release(1), Made),
            ],
        ),
        (
            "completed and claimed again",
            vec![op(0, 1, Claim(1), Made), op(2, 3, Complete(1), Made), op(2, 9, Claim(2), Made)],
        ),
    ];
    for (what, ops) in cases {
        assert!(check(ops).is_err(), "{what}");
    }
}

// A history as long as those of the real test must not take long.
#[test]
fn a_long_history_is_searched_in_no_time() {
    let mut ops = Vec::new();
    for turn in 0..2_000 {
        let at = turn * 10;
        let by = (turn % 8) as usize;
        // Eleven who lose, beside one who claims and releases.
        ops.extend((0..11).map(|other| op(at, at + 9, Claim(8 + other), Refused)));
        ops.push(op(at, at + 4, Claim(by), Made));
        ops.push(op(at + 5, at + 9, Release(by), Made));
    }
    check(ops).unwrap();
}
