//! The directories of the past, in `.workfs/history/` and `.workfs/at/`: which they are, and their numbers.
//!
//! What must stay true: they have no rows. That of a record, of which there may be millions, has the record's number;
//! each other gets one when it is first seen, and has it for as long as a kernel knows it. No number is used again.
//! Deliberately not here: what lies in them (`history`, `at`).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use crate::engine::path_of_past;
use crate::limits::{PASTS_LOOKED_AT_MIN, PASTS_TOLD_WITHIN};
use crate::names::{FileName, TreePath};
use crate::numbers::RecordKey;
use crate::store::{Read, Result};
use crate::tree::Hub;

use super::{Child, Computed};

/// `.workfs/history/`, `.workfs/at/`, or a directory below one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tree) enum PastDir {
    /// With a number of its own.
    Numbered(u64),
    /// Of a record, beside which nothing else has a past.
    Record(RecordKey),
}

impl PastDir {
    /// `.workfs/history/`.
    pub const HISTORY: PastDir = PastDir::Numbered(HISTORY);
    /// `.workfs/at/`.
    pub const AT: PastDir = PastDir::Numbered(AT);

    /// A directory in it that is of no record. One of a record has none: it has some since it was looked up, and
    /// whoever looks that up again finds them.
    pub(super) fn inner(self) -> Option<Child> {
        match self {
            PastDir::Numbered(dir) => Some(Child::Past { dir }),
            PastDir::Record(_) => None,
        }
    }
}

const HISTORY: u64 = 0;
const AT: u64 = 1;

/// What a directory of the past is of, by the names that lead to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PastOf {
    /// Of what was saved at this path, below `.workfs/history/`.
    Path(TreePath),
    /// Of an event and what lay at a path then, below `.workfs/at/`.
    Moment(TreePath),
}

/// The numbers of the directories of the past that are of no record.
pub(in crate::tree) struct Pasts {
    numbers: Mutex<Numbers>,
    hub: Arc<Hub>,
}

struct Numbers {
    last: u64,
    dirs: HashMap<u64, Named>,
    by_name: HashMap<(u64, FileName), u64>,
    /// How many were left when they were looked at last.
    left: usize,
}

impl Default for Numbers {
    fn default() -> Self {
        Numbers { last: AT, dirs: HashMap::new(), by_name: HashMap::new(), left: 0 }
    }
}

/// A directory with a number.
struct Named {
    parent: u64,
    name: FileName,
    /// When the number was last given: a kernel may be about to hear of it.
    told: Instant,
}

impl Pasts {
    /// No number was given yet.
    pub fn new(hub: Arc<Hub>) -> Pasts {
        Pasts { numbers: Mutex::default(), hub }
    }

    fn number(&self, parent: u64, name: &FileName) -> u64 {
        let knows = |number| self.hub.knows(Computed::History(PastDir::Numbered(number)).ino());
        self.numbers.lock().number((parent, name), Instant::now(), knows)
    }

    pub(super) fn of(&self, read: &dyn Read, dir: PastDir) -> Result<Option<PastOf>> {
        match dir {
            PastDir::Numbered(number) => Ok(self.numbers.lock().of(number)),
            PastDir::Record(key) => Ok(path_of_past(read, key)?.map(PastOf::Path)),
        }
    }

    /// What the child of this name is.
    pub fn node(&self, name: &FileName, child: Child) -> Computed {
        match child {
            Child::Node(computed) => computed,
            Child::Past { dir } => Computed::History(PastDir::Numbered(self.number(dir, name))),
        }
    }
}

impl Numbers {
    /// The number of a directory; `knows` says of which some kernel may hold anything.
    fn number(
        &mut self,
        (parent, name): (u64, &FileName),
        now: Instant,
        knows: impl Fn(u64) -> bool,
    ) -> u64 {
        let place = (parent, name.clone());
        if let Some(number) = self.by_name.get(&place) {
            if let Some(dir) = self.dirs.get_mut(number) {
                dir.told = now;
            }
            return *number;
        }
        // So each is looked at as often as one is added, on average.
        if self.dirs.len() >= PASTS_LOOKED_AT_MIN.max(2 * self.left) {
            self.forget(now, knows);
        }
        self.last += 1;
        self.dirs.insert(self.last, Named { parent, name: name.clone(), told: now });
        self.by_name.insert(place, self.last);
        self.last
    }

    /// Forgets those that no kernel knows any more, but for what lies above one that is known.
    fn forget(&mut self, now: Instant, knows: impl Fn(u64) -> bool) {
        let mut kept = HashSet::new();
        for (number, dir) in &self.dirs {
            if now.duration_since(dir.told) >= PASTS_TOLD_WITHIN && !knows(*number) {
                continue;
            }
            let mut next = Some((number, dir));
            while let Some((_, dir)) = next.filter(|(number, _)| kept.insert(**number)) {
                next = self.dirs.get_key_value(&dir.parent);
            }
        }
        self.dirs.retain(|number, _| kept.contains(number));
        self.by_name.retain(|_, number| kept.contains(number));
        self.left = self.dirs.len();
        self.dirs.shrink_to(2 * self.left);
        self.by_name.shrink_to(2 * self.left);
    }

    fn of(&self, number: u64) -> Option<PastOf> {
        let (mut names, mut next) = (Vec::new(), number);
        while ![HISTORY, AT].contains(&next) {
            let dir = self.dirs.get(&next)?;
            names.push(dir.name.clone());
            next = dir.parent;
        }
        names.reverse();
        let path = names.into_iter().collect();
        Some(if next == AT { PastOf::Moment(path) } else { PastOf::Path(path) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(nth: u64) -> FileName {
        FileName::new(nth.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn what_no_kernel_knows_any_more_has_no_number_and_what_lies_above_the_rest_has() {
        let mut numbers = Numbers::default();
        let begin = Instant::now();
        let top = numbers.number((0, &name(1)), begin, |_| false);
        let dir = numbers.number((top, &name(2)), begin, |_| false);
        let known = numbers.number((dir, &name(3)), begin, |_| false);
        let told = numbers.number((top, &name(4)), begin, |_| false);
        let later = begin + PASTS_TOLD_WITHIN;
        for nth in 10..10 * PASTS_LOOKED_AT_MIN as u64 {
            // It is told of again and again, and so it stays.
            assert_eq!(
                numbers.number((top, &name(4)), later + PASTS_TOLD_WITHIN * nth as u32, |_| false),
                told
            );
            numbers.number((dir, &name(nth)), later + PASTS_TOLD_WITHIN * nth as u32, |number| {
                number == known
            });
            assert!(numbers.dirs.len() <= PASTS_LOOKED_AT_MIN, "{nth}");
            assert_eq!(numbers.dirs.len(), numbers.by_name.len());
        }
        let path = |path: &str| TreePath::parse(path).unwrap();
        assert_eq!(numbers.of(known), Some(PastOf::Path(path("1/2/3"))));
        assert_eq!(numbers.of(told), Some(PastOf::Path(path("1/4"))));
        assert_eq!(numbers.of(known + 7), None, "nobody knows it");
        assert_eq!(numbers.of(HISTORY), Some(PastOf::Path(TreePath::root())));
        let moment = numbers.number((AT, &name(1)), later, |_| false);
        assert_eq!(
            numbers.of(moment),
            Some(PastOf::Moment(path("1"))),
            "it is another's name, too"
        );
        let again = numbers.number((dir, &name(10)), later, |_| false);
        assert!(again > 10 * PASTS_LOOKED_AT_MIN as u64 - 10, "its number is not another's");
    }

    #[test]
    fn all_that_kernels_know_stay_however_many_they_are() {
        let (mut numbers, asked) = (Numbers::default(), std::cell::Cell::new(0));
        let now = Instant::now();
        let all = 10 * PASTS_LOOKED_AT_MIN as u64;
        for nth in 0..all {
            numbers.number((0, &name(nth)), now + PASTS_TOLD_WITHIN * nth as u32, |_| {
                asked.set(asked.get() + 1);
                true
            });
        }
        assert_eq!(numbers.dirs.len() as u64, all);
        assert!(asked.get() <= 2 * all, "{}", asked.get());
    }
}
