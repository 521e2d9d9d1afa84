//! `.workfs/history/`: versions as files, `<path…>/<g>` of plain files and
//! `<workspace>/<id>/<g>.yaml` of records (or with their kind's first extension); and the numbers of its directories
//! and of those in `.workfs/at/`.
//!
//! What must stay true: only names that lead to a version are shown. Their directories have no
//! rows: that of a record, of which there may be millions, has the record's number; each other gets one when it
//! is first seen, and has it for as long as a kernel knows it. No number is used again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use crate::config::Config;
use crate::engine::{Past, PastNames, past_at, past_record, path_of_past, record_version_name};
use crate::limits::{PASTS_LOOKED_AT_MIN, PASTS_TOLD_WITHIN};
use crate::names::{FileName, TreePath};
use crate::numbers::{G, RecordKey, UnixNanos};
use crate::store::{Read, Result, earlier};
use crate::tree::Hub;

use super::{Child, Computed, Listing, Records};

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

/// What stands for what has a past at a name of a directory of the past.
fn child(dir: PastDir, past: Past) -> Option<Child> {
    match (past, dir) {
        (Past::Record(key), _) => Some(Child::Node(Computed::History(PastDir::Record(key)))),
        (Past::Path, PastDir::Numbered(dir)) => Some(Child::Past { dir }),
        // It has some since the directory was looked up: whoever looks that up again finds it.
        (Past::Path, PastDir::Record(_)) => None,
    }
}

/// What `name` is in a directory of the past of `path`.
pub(super) fn lookup(
    read: &dyn Read,
    config: &Config,
    (dir, path): (PastDir, &TreePath),
    name: &FileName,
) -> Result<Option<Child>> {
    if let Some(past) = past_at(read, &path.join(name.clone()))? {
        return Ok(child(dir, past));
    }
    // A version has another name than usual only where that is the name of a directory.
    let usual = !name.as_bytes().ends_with(b"~");
    let below = if usual { PastNames::default() } else { PastNames::below(read, path)? };
    let version = version_named(read, config, (path, name), &below)?;
    Ok(version.map(|g| Child::Node(Computed::Past(g))))
}

/// The version that has this name among the [`versions`]. It is found by its number, since whoever looks at all
/// of them would else have each read for each.
fn version_named(
    read: &dyn Read,
    config: &Config,
    (path, name): (&TreePath, &FileName),
    below: &PastNames,
) -> Result<Option<G>> {
    let digits = name.as_str().and_then(|name| name.split(|c: char| !c.is_ascii_digit()).next());
    let Some(g) = digits.and_then(|digits| digits.parse().ok()).map(G) else { return Ok(None) };
    let is_its_name =
        |usual| -> Result<bool> { Ok(below.version_name(read, usual)?.as_ref() == Some(name)) };
    if is_its_name(g.to_string())?
        && let Some(history) = read.history(path)?
    {
        let is_one = read.file_version_of(g)?.is_some_and(|(of, _)| of == history.key);
        return Ok(is_one.then_some(g));
    }
    let Some((above, record)) = past_record(read, path)? else { return Ok(None) };
    let is_one = is_its_name(record_version_name(config, &above, g))?
        && read.version(g)?.is_some_and(|version| version.record == record.key);
    Ok(is_one.then_some(g))
}

/// What a directory of the past of `path` has.
pub(super) fn list(
    read: &dyn Read,
    config: &Config,
    (dir, path): (PastDir, &TreePath),
) -> Result<Listing> {
    let below = PastNames::below(read, path)?;
    let versions = versions(read, config, path, &below)?;
    let paths = below.paths().filter_map(|name| Some((name.clone(), child(dir, Past::Path)?)));
    let versions = versions.into_iter().map(|(name, g)| (name, Child::Node(Computed::Past(g))));
    Ok(Listing {
        named: paths.chain(versions).collect(),
        records: below.records(read)?,
        of: Records::Pasts,
    })
}

/// The files of the versions that `path` has, beside the directories `below`: of the plain file there,
/// or of the record whose id is its last component.
fn versions(
    read: &dyn Read,
    config: &Config,
    path: &TreePath,
    below: &PastNames,
) -> Result<BTreeMap<FileName, G>> {
    let mut found = BTreeMap::new();
    if let Some(history) = read.history(path)? {
        let mut gs = Vec::new();
        read.file_versions(history.key, &mut |version| {
            gs.push(version.g);
            true
        })?;
        for g in gs {
            let name = below.version_name(read, g.to_string())?;
            found.extend(name.map(|name| (name, g)));
        }
    }
    if let Some((above, record)) = past_record(read, path)? {
        let mut at = record.version_g;
        while let Some(row) = read.version(at)? {
            let name = below.version_name(read, record_version_name(config, &above, at))?;
            found.extend(name.map(|name| (name, at)));
            at = earlier(at, row.before_g)?;
        }
    }
    Ok(found)
}

/// When the version that event `g` made was saved.
pub(in crate::tree) fn saved_at(read: &dyn Read, g: G) -> Result<Option<UnixNanos>> {
    match read.file_version_of(g)? {
        Some((_, at)) => Ok(Some(at)),
        None => Ok(read.version(g)?.map(|version| version.at)),
    }
}

/// The content of the version that event `g` made.
pub(super) fn content(read: &dyn Read, g: G) -> Result<Vec<u8>> {
    if let Some(content) = read.file_version(g)? {
        return Ok(content);
    }
    Ok(read.version(g)?.map(|version| version.content).unwrap_or_default())
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
