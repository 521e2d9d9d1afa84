//! `.workfs/at/<g>/`: the tree as it was after event `g`, as far as records and versions that are kept tell.
//!
//! What must stay true: `at/` lists no moment, so that whoever walks through the tree does not walk through each of its
//! pasts. Its files are the versions that `.workfs/history/` has. A time leads to an event by a link, so that each past has
//! one directory.

use crate::config::Config;
use crate::engine::{AfterEvent, Had, Then, last_before};
use crate::names::{FileName, TreePath};
use crate::numbers::{G, UnixNanos};
use crate::store::{Read, Result};

use super::pasts::PastDir;
use super::{Child, Computed, Listing, Records};

/// The event and the path that the names below `.workfs/at/` mean, if that event happened.
fn moment(read: &dyn Read, names: &TreePath) -> Result<Option<(G, TreePath)>> {
    let Some((first, rest)) = names.names().split_first() else { return Ok(None) };
    let g = first.as_str().and_then(|text| text.parse().ok()).map(G);
    let Some(g) = g.filter(|g| g.to_string().as_bytes() == first.as_bytes()) else {
        return Ok(None);
    };
    let has_happened = g > G(0) && read.last_event()?.is_some_and(|last| g <= last.g);
    Ok(has_happened.then(|| (g, rest.iter().cloned().collect())))
}

/// The event that had happened last at the time that a name in `.workfs/at/` is, if that time has come: what happens
/// later does not change it.
pub(in crate::tree) fn as_of(
    read: &dyn Read,
    name: &FileName,
    now: UnixNanos,
) -> Result<Option<G>> {
    let time = name.as_str().and_then(UnixNanos::parse_moment);
    let Some(time) = time.filter(|time| *time < now) else { return Ok(None) };
    Ok(Some(last_before(read, time)?).filter(|g| *g > G(0)))
}

/// What stands for what lay at a name of a directory.
fn child(dir: PastDir, then: Then) -> Option<Child> {
    match then {
        Then::Version(g) => Some(Child::Node(Computed::Past(g))),
        Then::Directory => dir.inner(),
    }
}

/// What `name` is in the directory below `.workfs/at/` to which these names lead.
pub(super) fn lookup(
    read: &dyn Read,
    config: &Config,
    (dir, names): (PastDir, &TreePath),
    name: &FileName,
) -> Result<Option<Child>> {
    let Some((g, path)) = moment(read, &names.join(name.clone()))? else { return Ok(None) };
    let then = AfterEvent::new(read, config, g).at(&path)?;
    Ok(then.and_then(|then| child(dir, then)))
}

/// What that directory has.
pub(super) fn list(
    read: &dyn Read,
    config: &Config,
    (dir, names): (PastDir, &TreePath),
) -> Result<Listing> {
    let Some((g, path)) = moment(read, names)? else { return Ok(Listing::default()) };
    let Had { named, records } = AfterEvent::new(read, config, g).below(&path)?;
    let named = named.into_iter().filter_map(|(name, then)| Some((name, child(dir, then)?)));
    Ok(Listing { named: named.collect(), records, of: Records::After(g) })
}
