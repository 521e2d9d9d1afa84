//! Whether a path's own events tell what lay there at a moment, or a directory above had brought
//! it.
//!
//! What must stay true: a directory that comes or goes is one event, and what lies in it has none.
//! So what was saved at a path before is not taken for what a directory above has brought there
//! since, unless that is the same directory that had gone. Nor is it taken for a file of several
//! names, whose saves are told under one of them. Nor is anything told of what has lain, since it
//! was saved, where no rule counts it: there it changes without an event.

use std::collections::HashMap;
use std::rc::Rc;

use super::event::{PastEvent, event_of, last_of};
use crate::engine::{node_at, path_of};
use crate::ledger::{Via, path_of_ledger};
use crate::names::{Dentry, TreePath};
use crate::numbers::G;
use crate::store::{FileVersion, Read, StoreError};

/// How what lay at a path came there.
pub enum Whence {
    /// By the path's own last event before this one.
    Own {
        /// This one.
        before: G,
    },
    /// With a directory above.
    Brought {
        /// The event by which that came.
        by: G,
        /// Where it lay before, if that counted.
        from: Option<TreePath>,
        /// Where its own events tell of it, if anywhere.
        told: Option<Told>,
        /// Where it lay since, of which no events tell, if that is why they do not.
        untold: Option<TreePath>,
    },
    /// Nothing lay there.
    Gone {
        /// The event that took it away.
        by: Rc<PastEvent>,
        /// The directory above with which it went, if it did.
        with: Option<TreePath>,
    },
}

/// The path whose own events tell of a file, until this one.
pub struct Told {
    /// The path.
    pub path: TreePath,
    /// The first event that is of something else.
    pub before: G,
}

/// The last events of paths, of which each is asked for earlier and earlier moments.
pub(super) struct Walks<'r, F> {
    read: &'r dyn Read,
    includes: F,
    /// Only events before this one are of the moment.
    pub before: G,
    at: HashMap<TreePath, Option<Rc<PastEvent>>>,
}

/// A directory that came: from where, and before which event it was there.
pub(super) struct Came {
    pub by: G,
    pub from: Option<TreePath>,
    pub before: G,
    /// Where else it lay between these two, if it was exchanged and came back.
    via: Option<TreePath>,
}

impl<'r, F: Fn(&PastEvent) -> bool> Walks<'r, F> {
    /// From the moment on back to which `includes` belongs what happened until then.
    pub fn new(read: &'r dyn Read, includes: F) -> Self {
        Walks { read, includes, before: G(u64::MAX), at: HashMap::new() }
    }

    /// The last event of a path by the moment.
    fn last(&mut self, path: &TreePath) -> Result<Option<Rc<PastEvent>>, StoreError> {
        let mut at = match self.at.remove(path) {
            Some(known) => known,
            None => last_of(self.read, path)?.map(Rc::new),
        };
        while let Some(event) = &at
            && !(event.row.g < self.before && (self.includes)(event))
        {
            at = event_of(self.read, path, event.before)?.map(Rc::new);
        }
        self.at.insert(path.clone(), at.clone());
        Ok(at)
    }

    /// The last event after `since` by which a directory came to `dir`, or what lay there went.
    fn turned(&mut self, dir: &TreePath, since: G) -> Result<Option<Rc<PastEvent>>, StoreError> {
        let mut at = self.last(dir)?;
        while let Some(event) = at.filter(|event| event.row.g > since) {
            let came = event.says("/payload/type") == "directory";
            let came = came && !event.says("/payload/via").is_empty();
            if event.is_end || came || event.is_exchange() {
                return Ok(Some(event));
            }
            // It was made, or what is told of was a file.
            at = event_of(self.read, dir, event.before)?.map(Rc::new);
        }
        Ok(None)
    }

    /// The same of all directories above `path`, with the one that it is of.
    fn turned_above(
        &mut self,
        path: &TreePath,
        since: G,
    ) -> Result<Option<(TreePath, Rc<PastEvent>)>, StoreError> {
        self.turned_from(path.split_last().map(|(above, _)| above), since)
    }

    /// The same of this directory and all above it.
    pub fn turned_from(
        &mut self,
        mut above: Option<TreePath>,
        since: G,
    ) -> Result<Option<(TreePath, Rc<PastEvent>)>, StoreError> {
        let mut newest: Option<(TreePath, Rc<PastEvent>)> = None;
        while let Some(dir) = above.filter(|dir| !dir.names().is_empty()) {
            let since = newest.as_ref().map_or(since, |(_, event)| event.row.g);
            if let Some(event) = self.turned(&dir, since)? {
                newest = Some((dir.clone(), event));
            }
            above = dir.split_last().map(|(above, _)| above);
        }
        Ok(newest)
    }

    pub fn came(&self, dir: &TreePath, event: &PastEvent) -> Result<Came, StoreError> {
        let by = event.row.g;
        if !event.is_exchange() {
            let from = path_of_ledger(&event.says("/payload/from_path"));
            let from = from.filter(|from| !from.names().is_empty());
            return Ok(Came { by, from, before: by, via: None });
        }
        // An exchange has two events, one for each way, and many may follow each other.
        let ends =
            |event: &PastEvent| ["/payload/path", "/payload/from_path"].map(|at| event.says(at));
        let [mut to, mut from] = ends(event);
        let other = if to == dir.to_string() { from.clone() } else { to.clone() };
        let (mut first, mut count) = (by, 1_u64);
        while let Some(row) = event_of(self.read, dir, G(first.0.saturating_sub(1)))?
            && row.is_exchange()
            && ends(&row) == [from.clone(), to.clone()]
        {
            [to, from] = [from, to];
            (first, count) = (row.row.g, count + 1);
        }
        let is_swapped = count.div_ceil(2) % 2 == 1;
        let other = path_of_ledger(&other).filter(|other| !other.names().is_empty());
        let (from, via) = if is_swapped { (other, None) } else { (Some(dir.clone()), other) };
        Ok(Came { by, from, before: first, via })
    }
}

/// How what lay at `path` at a moment came there, to which `includes` belongs what happened until then. `counts` says of
/// which paths events tell all that happens to a file.
///
/// # Errors
/// A failure of the store.
pub fn whence(
    read: &dyn Read,
    path: &TreePath,
    counts: impl Fn(&TreePath) -> bool,
    includes: impl Fn(&PastEvent) -> bool,
) -> Result<Whence, StoreError> {
    let mut walks = Walks::new(read, includes);
    let (mut there, mut brought) = (path.clone(), None);
    loop {
        let own = walks.last(&there)?;
        let since = own.as_ref().map_or(G(0), |own| own.row.g);
        let turned = walks.turned_above(&there, since)?;
        let is_back = there == *path;
        match (turned, brought.take()) {
            (None, _) if is_back => {
                return Ok(match own.filter(|own| own.is_end) {
                    Some(by) => Whence::Gone { by, with: None },
                    None => Whence::Own { before: walks.before },
                });
            }
            (Some((dir, by)), _) if is_back && by.is_end => {
                return Ok(Whence::Gone { by, with: Some(dir) });
            }
            (Some((dir, event)), known) if !event.is_end => {
                let came = walks.came(&dir, &event)?;
                let rest = there.below(&dir).unwrap_or_default();
                let from = came.from.map(|from| from.join_all(&rest));
                let (by, first) = known.unwrap_or((came.by, from.clone()));
                let via = came.via.map(|via| via.join_all(&rest));
                let untold = std::iter::once(there).chain(via).find(|lay| !counts(lay));
                let Some(from) = from.filter(|_| untold.is_none()) else {
                    return Ok(Whence::Brought { by, from: first, told: None, untold });
                };
                (there, walks.before, brought) = (from, came.before, Some((by, first)));
            }
            (turned, known) => {
                let (by, from) = known.unwrap_or_default();
                let lies = turned.is_none() && own.is_some_and(|own| !own.is_end);
                if !counts(&there) {
                    return Ok(Whence::Brought { by, from, told: None, untold: Some(there) });
                }
                let told = lies.then_some(Told { path: there, before: walks.before });
                return Ok(Whence::Brought { by, from, told, untold: None });
            }
        }
    }
}

/// Under which name saves of the file are told that `path` was when event `told` told of it.
enum ToldAs {
    /// Its own.
    This,
    /// Another.
    Other(TreePath),
    /// Another; a ledger of a former version does not say which.
    Unknown,
}

fn told_as(read: &dyn Read, path: &TreePath, told: &PastEvent) -> Result<ToldAs, StoreError> {
    let noted = path_of_ledger(&told.says("/payload/told_as"));
    if let Some(other) = noted.filter(|other| !other.names().is_empty()) {
        return Ok(if other == *path { ToldAs::This } else { ToldAs::Other(other) });
    }
    // As a former version has it: of what is as it was then, the name that is noted is known.
    let is_last = read.history(path)?.is_some_and(|history| history.last_g == told.row.g);
    let node = node_at(read, path)?.filter(|node| is_last && node.nlink > 1);
    let noted = node.map(|node| read.file_name(node.ino)).transpose()?.flatten();
    let noted = noted.map(|Dentry { dir, name }| path_of(read, dir, &name)).transpose()?;
    Ok(match noted {
        Some(noted) if noted != *path => ToldAs::Other(noted),
        None if told.says("/payload/via") == Via::Link.as_str() => ToldAs::Unknown,
        _ => ToldAs::This,
    })
}

/// Where saves of a file of several names were told, that the version of one of them is not from.
pub enum Elsewhere {
    /// Under another name, which the ledger does not tell.
    Unknown,
    /// Under this one, by this event.
    Told(TreePath, G),
    /// Under this one, which was moved or replaced since.
    Lost(TreePath),
}

/// Where the file at `path`, of which event `told` told last, may have been saved by another of its names since and by a
/// moment, to which `includes` belongs what happened until then; `None` if it is as that version of it all the same.
/// `counts` is as for [`whence`].
///
/// # Errors
/// A failure of the store.
pub(super) fn told_elsewhere(
    read: &dyn Read,
    path: &TreePath,
    (version, told): (&FileVersion, &PastEvent),
    counts: impl Fn(&TreePath) -> bool,
    includes: impl Fn(&PastEvent) -> bool,
) -> Result<Option<Elsewhere>, StoreError> {
    let other = match told_as(read, path, told)? {
        ToldAs::This => return Ok(None),
        ToldAs::Other(other) => other,
        ToldAs::Unknown => return Ok(Some(Elsewhere::Unknown)),
    };
    let (since, mut is_ended, mut newest) = (told.row.g, false, None);
    let mut at = last_of(read, &other)?;
    while let Some(event) = at.filter(|event| event.row.g > since) {
        if includes(&event) {
            // Something else may lie there since.
            is_ended |= event.is_end || event.is_left || !event.says("/payload/via").is_empty();
            newest = newest.or_else(|| Some((event.row.g, event.says("/payload/content_sha256"))));
        }
        at = event_of(read, &other, event.before)?;
    }
    let is_own = |whence| matches!(whence, Whence::Own { .. });
    if is_ended || !counts(&other) || !is_own(whence(read, &other, &counts, &includes)?) {
        return Ok(Some(Elsewhere::Lost(other)));
    }
    let newest = newest.filter(|(_, hash)| *hash != version.sha256.to_string());
    Ok(newest.map(|(g, _)| Elsewhere::Told(other, g)))
}
