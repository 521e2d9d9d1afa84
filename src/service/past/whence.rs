//! Whether a path's own events tell what lay there at a moment, or a directory above had brought
//! it.
//!
//! What must stay true: a directory that comes or goes is one event, and what lies in it has none.
//! So what was saved at a path before is not taken for what a directory above has brought there
//! since, unless that is the same directory that had gone. Nor is it taken for a file of several
//! names, whose saves are told under one of them.

use std::collections::HashMap;
use std::rc::Rc;

use super::field;
use super::pasts::{PastEvent, event_of, is_exchange, last_of, last_told, until, was_gone};
use crate::engine::path_of;
use crate::ledger::Via;
use crate::names::{Dentry, TreePath};
use crate::numbers::G;
use crate::service::find::node_at;
use crate::service::request::part::path_of_ledger;
use crate::service::{Exit, Failure, Part};
use crate::store::{FileVersion, Read};

/// How what lay at a path came there.
pub(super) enum Whence {
    /// By the path's own last event before this one.
    Own { before: G },
    /// With a directory above, by this event, which left that path, if it counted.
    Brought { by: G, from: Option<TreePath> },
}

/// The last events of paths, of which each is asked for earlier and earlier moments.
struct Walks<'r, F> {
    read: &'r dyn Read,
    includes: F,
    before: G,
    at: HashMap<TreePath, Option<Rc<PastEvent>>>,
}

/// A directory that came: from where, and before which event it was there.
struct Came {
    by: G,
    from: Option<TreePath>,
    before: G,
}

impl<F: Fn(&PastEvent) -> bool> Walks<'_, F> {
    /// The last event of a path by the moment.
    fn last(&mut self, path: &TreePath) -> Result<Option<Rc<PastEvent>>, Failure> {
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
    fn turned(&mut self, dir: &TreePath, since: G) -> Result<Option<Rc<PastEvent>>, Failure> {
        let mut at = self.last(dir)?;
        while let Some(event) = at.filter(|event| event.row.g > since) {
            let came = of(&event, "/payload/type") == "directory";
            let came = came && !of(&event, "/payload/via").is_empty();
            if event.is_end || came || is_exchange(&event.event) {
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
    ) -> Result<Option<(TreePath, Rc<PastEvent>)>, Failure> {
        let mut newest: Option<(TreePath, Rc<PastEvent>)> = None;
        let mut above = path.split_last().map(|(above, _)| above);
        while let Some(dir) = above.filter(|dir| !dir.names().is_empty()) {
            let since = newest.as_ref().map_or(since, |(_, event)| event.row.g);
            if let Some(event) = self.turned(&dir, since)? {
                newest = Some((dir.clone(), event));
            }
            above = dir.split_last().map(|(above, _)| above);
        }
        Ok(newest)
    }

    fn came(&self, dir: &TreePath, event: &PastEvent) -> Result<Came, Failure> {
        let by = event.row.g;
        if !is_exchange(&event.event) {
            let from = path_of_ledger(&field(&event.event, "/payload/from_path"));
            let from = from.filter(|from| !from.names().is_empty());
            return Ok(Came { by, from, before: by });
        }
        // An exchange has two events, one for each way, and many may follow each other.
        let ends = |event: &PastEvent| {
            ["/payload/path", "/payload/from_path"].map(|at| field(&event.event, at))
        };
        let [mut to, mut from] = ends(event);
        let other = if to == dir.to_string() { from.clone() } else { to.clone() };
        let (mut first, mut count) = (by, 1_u64);
        while let Some(row) = event_of(self.read, dir, G(first.0.saturating_sub(1)))?
            && is_exchange(&row.event)
            && ends(&row) == [from.clone(), to.clone()]
        {
            [to, from] = [from, to];
            (first, count) = (row.row.g, count + 1);
        }
        let is_swapped = count.div_ceil(2) % 2 == 1;
        let from = if is_swapped { path_of_ledger(&other) } else { Some(dir.clone()) };
        let from = from.filter(|from| !from.names().is_empty());
        Ok(Came { by, from, before: first })
    }
}

/// How what lay at `path` at a moment came there, to which `includes` belongs what happened until then; event
/// `version` made what was kept of it last.
///
/// # Errors
/// Nothing lay there, or a failure of the store.
pub(in crate::service) fn whence(
    (read, part): (&dyn Read, &Part),
    path: &TreePath,
    version: G,
    includes: impl Fn(&PastEvent) -> bool,
) -> Result<Whence, Failure> {
    let last = last_of(read, path)?;
    let (_, after) = until(last, &includes, |before| event_of(read, path, before))?;
    let gone = |how: &str| Err(was_gone(&part.show(path).to_string(), how, (version, after)));
    let mut walks = Walks { read, includes, before: G(u64::MAX), at: HashMap::new() };
    let (mut there, mut brought) = (path.clone(), None);
    loop {
        let own = walks.last(&there)?;
        let since = own.as_ref().map_or(G(0), |own| own.row.g);
        let turned = walks.turned_above(&there, since)?;
        let is_back = there == *path;
        match (turned, brought.take()) {
            (None, _) if is_back => {
                return match own.filter(|own| own.is_end) {
                    Some(end) => gone(&end.how(part)),
                    None => Ok(Whence::Own { before: walks.before }),
                };
            }
            (Some((dir, event)), _) if is_back && event.is_end => {
                return gone(&event.how_with(&dir, part));
            }
            (Some((dir, event)), known) if !event.is_end => {
                let came = walks.came(&dir, &event)?;
                let rest = there.below(&dir).unwrap_or_default();
                let from = came.from.map(|from| from.join_all(&rest));
                let known = known.unwrap_or((came.by, from.clone()));
                let Some(from) = from else {
                    return Ok(Whence::Brought { by: known.0, from: known.1 });
                };
                (there, walks.before, brought) = (from, came.before, Some(known));
            }
            (_, known) => {
                let (by, from) = known.unwrap_or_default();
                return Ok(Whence::Brought { by, from });
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

/// What an event says there.
fn of(event: &PastEvent, at: &str) -> String {
    field(&event.event, at)
}

fn told_as(read: &dyn Read, path: &TreePath, told: &PastEvent) -> Result<ToldAs, Failure> {
    let noted = path_of_ledger(&of(told, "/payload/told_as"));
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
        None if of(told, "/payload/via") == Via::Link.as_str() => ToldAs::Unknown,
        _ => ToldAs::This,
    })
}

/// Fails where the file at `path` may have been saved by another of its names after a version and by a moment,
/// to which `includes` belongs what happened until then.
///
/// # Errors
/// It may, or a failure of the store.
pub(super) fn require_told_here(
    (read, part): (&dyn Read, &Part),
    path: &TreePath,
    version: &FileVersion,
    includes: impl Fn(&PastEvent) -> bool,
) -> Result<(), Failure> {
    let Some(told) = last_told(read, path, version.g, &includes)? else { return Ok(()) };
    let other = match told_as(read, path, &told)? {
        ToldAs::This => return Ok(()),
        ToldAs::Other(other) => Some(other),
        ToldAs::Unknown => None,
    };
    let reason = format!("no version of `{}` is kept from then", part.show(path));
    let lost = |remedy| Err(Failure::new(Exit::Absent, reason, remedy));
    let Some(other) = other.filter(|other| part.has(other)) else {
        let remedy =
            "it was another name of a file then, and saves of that are told under one alone";
        return lost(remedy.to_owned());
    };
    let shown = part.show(&other);
    let (since, mut ends, mut newest) = (told.row.g, None, None);
    let mut at = last_of(read, &other)?;
    while let Some(event) = at.filter(|event| event.row.g > since) {
        let (g, before) = (event.row.g, event.before);
        if includes(&event) {
            // Something else may lie there since.
            let ended = event.is_end || event.is_left || !of(&event, "/payload/via").is_empty();
            ends = if ended { Some(g) } else { ends };
            newest = newest.or(Some((g, of(&event, "/payload/content_sha256"))));
        }
        at = event_of(read, &other, before)?;
    }
    let is_there = match whence((read, part), &other, since, &includes) {
        Ok(whence) => matches!(whence, Whence::Own { .. }),
        Err(failure) if failure.exit == Exit::Absent => false,
        Err(failure) => return Err(failure),
    };
    match (ends, newest) {
        (None, Some((g, hash))) if is_there && hash != version.sha256.to_string() => lost(format!(
            "it was the file of `{shown}` by another name, and event {g} tells what that was: ask for that name"
        )),
        (None, _) if is_there => Ok(()),
        _ => lost(format!(
            "it was the file of `{shown}` by another name, which was moved or replaced: what was saved by others \
             is not told of this one"
        )),
    }
}
