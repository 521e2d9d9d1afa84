//! The ledger: dense, chained, and each record's events linked.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use serde_json::Value;

use crate::engine::{Doors, FILE_KIND};
use crate::ledger::{EventName, Verifier};
use crate::numbers::{G, UnixNanos};
use crate::store::{EventRow, Read};

use super::super::Failure;
use super::Check;
use super::agents::Told;
use super::clock::SetBacks;
use super::lasts::Lasts;

/// What the events say, as far as records and files are compared with it.
pub(super) struct Ledger {
    /// The last event of each record, found by workspace and id. Their hash stands for them; a collision
    /// (of a million: 1 in 10^7) shows as a wrong link.
    lasts: Lasts,
    keys: RandomState,
    /// How many of them are plain files'.
    pub files: u64,
    /// The kind with which each workspace was registered last, by its path.
    kinds: HashMap<String, (G, String)>,
    /// What the events say of registered agents.
    pub agents: Told,
    set_backs: SetBacks,
    /// When it was looked at.
    now: UnixNanos,
    /// All events were looked at.
    pub is_whole: bool,
    /// None is missing or wrong.
    pub is_unbroken: bool,
}

impl Ledger {
    /// Of a record, or of a plain file, which has no workspace: that at the root has an empty path.
    fn key(&self, workspace: Option<&str>, id: &str) -> u64 {
        self.keys.hash_one((workspace, id))
    }

    /// The last event of a plain file.
    pub fn of_file(&self, path: &str) -> Option<G> {
        self.lasts.get(self.key(None, path))
    }

    /// Whether what happened after event `g` has a later time than that, `at`: as far as is known, the clock did not
    /// show it once more.
    pub fn is_datable(&self, g: G, at: UnixNanos) -> bool {
        at <= self.now && !self.set_backs.is_any_since(g, at)
    }

    /// The last event of a record.
    pub fn of(&self, workspace: &str, id: &str) -> Option<G> {
        self.lasts.get(self.key(Some(workspace), id))
    }

    /// The kind with which a workspace was registered, and by which event.
    pub fn kind_of(&self, workspace: &str) -> Option<&(G, String)> {
        self.kinds.get(workspace)
    }
}

/// A walk along the events.
struct Walk {
    ledger: Ledger,
    verifier: Verifier,
    /// Nothing was missing or wrong so far.
    is_whole: bool,
    /// The next event's number.
    next: G,
    /// Where the last one ends, if that is known.
    end: Option<u64>,
}

pub(super) fn check(read: &dyn Read, check: &mut Check<'_>) -> Result<Ledger, Failure> {
    let (keys, kinds) = (RandomState::new(), HashMap::new());
    let mut walk = Walk {
        ledger: Ledger {
            lasts: Lasts::default(),
            keys,
            files: 0,
            kinds,
            agents: Told::default(),
            set_backs: SetBacks::default(),
            now: (Doors::default().clock)(),
            is_whole: false,
            is_unbroken: false,
        },
        verifier: Verifier::new(),
        is_whole: true,
        next: G(1),
        end: Some(0),
    };
    let last = check.got(|| "last event".to_owned(), read.last_event())?.flatten();
    let total = last.map_or(0, |row| row.g.0);
    let walked = read.all_events(&mut |(g, row)| {
        walk.step(g, row, check);
        check.tick(g.0, total, "events")
    });
    walk.ledger.is_whole = check.got(|| "events".to_owned(), walked)?.is_some();
    walk.ledger.is_unbroken = walk.ledger.is_whole && walk.is_whole;
    let checked = walk.verifier.checked();
    check.report.last_g = checked.last_g;
    // Of one that is not the last nobody could use it: that of the end is what shows whether it was cut off.
    if !check.report.interrupted {
        check.report.last_hash = checked.last_hash.to_string();
    }
    Ok(walk.ledger)
}

impl Walk {
    fn step(&mut self, g: G, row: Result<EventRow, String>, check: &mut Check<'_>) {
        let thing = || format!("event {g}");
        if g < self.next || g.0 > i64::MAX as u64 {
            return check
                .problem(format!("event {}", g.0.cast_signed()), "has no place in the order");
        }
        if g > self.next {
            match g.0 - self.next.0 {
                1 => check.problem(format!("event {}", self.next), "is missing"),
                _ => check.problem(format!("events {} to {}", self.next, g.0 - 1), "are missing"),
            }
            (self.is_whole, self.end) = (false, None);
        }
        self.next = g.next();
        let row = match row {
            Ok(row) => row,
            Err(why) => {
                (self.is_whole, self.end) = (false, None);
                return check.illegible(thing(), &why);
            }
        };
        check.report.events += 1;
        // After the first break all that follows is off the chain: one problem, not thousands.
        if self.is_whole
            && let Err(error) = self.verifier.push(&row.line)
        {
            check.problem(thing(), error.what.to_string());
            self.is_whole = false;
        }
        if let Some(end) = self.end
            && row.end != end + row.line.len() as u64 + 1
        {
            let wanted = end + row.line.len() as u64 + 1;
            check.problem(thing(), format!("ends at byte {}, not at {wanted}", row.end));
        }
        self.end = Some(row.end);
        self.link(&row, check);
    }

    /// An event of a record points to the record's event before it.
    fn link(&mut self, row: &EventRow, check: &mut Check<'_>) {
        let Ok(event) = serde_json::from_str::<Value>(&row.line) else { return };
        let text = |key: &str| event.get(key).and_then(Value::as_str);
        if let Some(at) = text("at").and_then(UnixNanos::parse_rfc3339) {
            self.ledger.set_backs.note(row.g, at);
        }
        let path = event.pointer("/payload/path").and_then(Value::as_str).unwrap_or_default();
        let is_file = text("workspace").is_none() && text("kind") == Some(FILE_KIND);
        let key = match (text("workspace"), text("id")) {
            (Some(workspace), Some(id)) => Some(self.ledger.key(Some(workspace), id)),
            // A plain file is known by its path.
            _ if is_file => Some(self.ledger.key(None, path)),
            (Some(workspace), None) => {
                // Below it lanes are registered, too.
                if text("event") == Some(EventName::REGISTERED.as_str())
                    && workspace == path
                    && let Some(kind) = text("kind")
                {
                    self.ledger.kinds.insert(workspace.to_owned(), (row.g, kind.to_owned()));
                }
                None
            }
            _ => {
                self.ledger.agents.note(row.g, &event);
                None
            }
        };
        let known = key.and_then(|key| self.ledger.lasts.note(key, row.g)).unwrap_or(G(0));
        self.ledger.files += u64::from(is_file && known == G(0));
        if row.before_g != known {
            let before = row.before_g;
            let what = format!("points to event {before} as the one before it, not to {known}");
            check.problem(format!("event {}", row.g), what);
        }
        // A rename is an event of the path that it left, too.
        let left = event.pointer("/payload/from_before_g").and_then(Value::as_u64).map(G);
        let from = event.pointer("/payload/from_path").and_then(Value::as_str);
        if let (Some(left), Some(from)) = (left, from) {
            let key = self.ledger.key(None, from);
            let known = self.ledger.lasts.note(key, row.g).unwrap_or(G(0));
            self.ledger.files += u64::from(known == G(0));
            if left != known {
                let what = format!(
                    "points to event {left} as the one before it of `{from}`, not to {known}"
                );
                check.problem(format!("event {}", row.g), what);
            }
        }
    }
}
