//! Whether a record would wait for itself: the one place that decides it.
//!
//! What must stay true: no circle is let through, and none is told of where there is none. A record for which nobody
//! waits, or that waits for nothing, costs no look at others; where many wait for each other, the order that
//! is known (`ranks`) says that there is none. Deliberately not here: what a text says (`kind/lifecycle/order`).

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write as _;

use super::links::{Links, others};
use super::ranks::{Ends, Ranks};
use crate::engine::places::governed::Home;
use crate::engine::records::judge::Text;
use crate::engine::{Stop, Turn};
use crate::kind::{Fault, Kind};
use crate::limits::{CIRCLE_LOOK_FIRST_MAX, CIRCLE_LOOK_MAX};
use crate::names::RecordId;
use crate::numbers::WorkspaceKey;
use crate::refusal::{Refusal, Rule};
use crate::store::{Edge, Read, StoreError};

/// Records of a circle that are named.
const NAMED_MAX: usize = 10;

/// What a search found.
enum Found {
    /// No circle.
    Clear,
    /// A circle, in words, and the place in the text that closes it.
    Circle { pointer: String, circle: String },
    /// So many wait for each other that it was not searched to the end.
    TooMany,
}

/// A search over edges in one direction, away from `root`, which it does not come back to.
struct Search<'r> {
    root: &'r RecordId,
    /// Each id that was reached, with the one that it was reached from; none: the root.
    seen: HashMap<RecordId, Option<RecordId>>,
    queue: VecDeque<RecordId>,
}

impl<'r> Search<'r> {
    fn new<'i>(root: &'r RecordId, first: impl Iterator<Item = &'i RecordId>) -> Self {
        let seen: HashMap<_, _> = first.map(|id| (id.clone(), None)).collect();
        Search { root, queue: seen.keys().cloned().collect(), seen }
    }

    /// Comes from `at` to `to`; gives it back if the other search has been there.
    fn reach(&mut self, to: &RecordId, at: &RecordId, other: &Search<'_>) -> Option<RecordId> {
        if to == self.root || self.seen.contains_key(to) {
            return None;
        }
        self.seen.insert(to.clone(), Some(at.clone()));
        self.queue.push_back(to.clone());
        other.seen.contains_key(to).then(|| to.clone())
    }

    /// The way from `to` back to the first after the root.
    fn way<'s>(&'s self, to: &'s RecordId) -> Vec<&'s RecordId> {
        let next = |at: &&'s RecordId| self.seen.get(*at).and_then(Option::as_ref);
        std::iter::successors(Some(to), next).collect()
    }
}

/// Whether the record with these links would wait for itself. The order, where there is one, is that of all edges of
/// the store, and takes these in.
fn circle(
    read: &dyn Read,
    (workspace, id): (WorkspaceKey, &RecordId),
    links: &Links,
    ranks: Option<&Ranks>,
) -> Result<Found, StoreError> {
    let Links { wants, dependants, dependencies } = links;
    if let Some(pointer) = wants.after.get(id).or_else(|| wants.before.get(id)) {
        let (pointer, circle) = (pointer.clone(), format!("`{id}` after `{id}`"));
        return Ok(Found::Circle { pointer, circle });
    }
    let brings = |edges: &[Edge], wanted: &BTreeMap<RecordId, String>| {
        let known = others(edges);
        wanted.keys().any(|other| !known.contains(other))
    };
    if !brings(dependencies, &wants.after) && !brings(dependants, &wants.before) {
        return Ok(Found::Clear);
    }
    let Some(ranks) = ranks else { return search(read, (workspace, id), links, CIRCLE_LOOK_MAX) };
    // With what it declared itself and does not any more: that comes back if the turn is undone.
    let (mut earlier, mut later) = (others(dependencies), others(dependants));
    earlier.extend(wants.after.keys());
    later.extend(wants.before.keys());
    let ends = Ends { earlier, later };
    if ranks.may_learn(workspace) {
        match search(read, (workspace, id), links, CIRCLE_LOOK_FIRST_MAX)? {
            Found::TooMany => ranks.learn(read, workspace)?,
            found => return Ok(found),
        }
    }
    if ranks.admits(read, (workspace, id), &ends)? {
        return Ok(Found::Clear);
    }
    search(read, (workspace, id), links, CIRCLE_LOOK_MAX)
}

/// Looks from the record in both directions and ends when either is exhausted; goes on in that which has led to fewer.
fn search(
    read: &dyn Read,
    (workspace, id): (WorkspaceKey, &RecordId),
    links: &Links,
    look_max: usize,
) -> Result<Found, StoreError> {
    let Links { wants, dependants, dependencies } = links;
    // What others declare about the record stays; what it declared itself is replaced.
    let later = dependants.iter().filter(|edge| edge.sides.dependant);
    let earlier = dependencies.iter().filter(|edge| edge.sides.dependency);
    let later = later.map(|edge| &edge.other).chain(wants.before.keys());
    let earlier = earlier.map(|edge| &edge.other).chain(wants.after.keys());
    let mut forward = Search::new(id, later);
    let mut backward = Search::new(id, earlier);
    let mut meeting = forward.seen.keys().find(|one| backward.seen.contains_key(*one)).cloned();
    while meeting.is_none() {
        if forward.queue.is_empty() || backward.queue.is_empty() {
            return Ok(Found::Clear);
        }
        if forward.seen.len() + backward.seen.len() > look_max {
            return Ok(Found::TooMany);
        }
        let is_forward = forward.seen.len() <= backward.seen.len();
        let (here, there) =
            if is_forward { (&mut forward, &backward) } else { (&mut backward, &forward) };
        let Some(at) = here.queue.pop_front() else { break };
        let edges = if is_forward {
            read.dependants(workspace, &at)?
        } else {
            read.dependencies(workspace, &at)?
        };
        for edge in edges {
            meeting = meeting.or(here.reach(&edge.other, &at, there));
        }
    }
    let Some(meeting) = meeting else { return Ok(Found::Clear) };
    // From the record back to the meeting, and on to the record.
    let back = backward.way(&meeting);
    let on = forward.way(&meeting);
    let way: Vec<&RecordId> = back.iter().rev().chain(on.iter().skip(1)).copied().collect();
    let mut circle = format!("`{id}`");
    for one in way.iter().take(NAMED_MAX) {
        let _ = write!(circle, " after `{one}`");
    }
    let _ = write!(circle, "{} after `{id}`", if way.len() > NAMED_MAX { " …" } else { "" });
    let ends = [way.first(), way.last()];
    let pointer = ends[0].and_then(|first| wants.after.get(*first));
    let pointer = pointer.or_else(|| ends[1].and_then(|last| wants.before.get(*last)));
    Ok(Found::Circle { pointer: pointer.cloned().unwrap_or_default(), circle })
}

/// What a text says about the turn of its record.
pub(in crate::engine) enum Said {
    /// Nothing that could be read.
    Nothing,
    Links(Links),
    /// The record would wait for itself.
    Circle(Refusal),
}

/// What a text says about the turn of the record of this id. Who changes the store has the ranks.
pub(in crate::engine) fn links_of(
    read: &dyn Read,
    (workspace, id): (WorkspaceKey, &RecordId),
    kind: &Kind,
    text: &Text,
    ranks: Option<&Ranks>,
) -> Result<Said, StoreError> {
    let Ok(document) = &text.parsed else { return Ok(Said::Nothing) };
    let wants = kind.wants(document.value());
    let dependants = read.dependants(workspace, id)?;
    let dependencies = read.dependencies(workspace, id)?;
    let links = Links { wants, dependants, dependencies };
    let (pointer, reason) = match circle(read, (workspace, id), &links, ranks)? {
        Found::Clear => return Ok(Said::Links(links)),
        Found::Circle { pointer, circle } => {
            (pointer, format!("`{id}` would wait for itself: {circle}"))
        }
        Found::TooMany => {
            let reason = "may wait for itself: over";
            (String::new(), format!("`{id}` {reason} {CIRCLE_LOOK_MAX} records wait here"))
        }
    };
    let remedy = "take one of these dependencies out".to_owned();
    Ok(Said::Circle(text.refusal(Fault { rule: Rule::Cycle, pointer, reason, remedy })))
}

impl Turn<'_> {
    /// Looks at what a text says about the turn of the record at `home`; `None` where it says
    /// nothing that could be read.
    ///
    /// # Errors
    /// [`Rule::Cycle`] where the record would wait for itself.
    pub(in crate::engine) fn links(&self, home: &Home, text: &Text) -> Result<Option<Links>, Stop> {
        let of = (home.governed.workspace, &home.id);
        match links_of(self.txn, of, home.kind(), text, Some(self.ranks))? {
            Said::Nothing => Ok(None),
            Said::Links(links) => Ok(Some(links)),
            Said::Circle(refusal) => {
                Err(Stop::rejected(refusal, home.file_path(), std::sync::Arc::clone(&text.bytes)))
            }
        }
    }
}
