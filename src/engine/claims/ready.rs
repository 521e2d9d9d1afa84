//! When a record's turn comes: the one predicate for `ready/`, `.next`, the command line and `why`,
//! and the edges it rests on.
//!
//! Ready is a record in the kind's initial state, valid, with every dependency done and its
//! `not_before` past. What must stay true: each record's row says so at every commit (but for the
//! moment until the writer's timer fires), `open` counts its dependencies that are not done, and
//! the edges have no circle. Changing one record costs what its own edges cost. Deliberately not
//! here: what a content says about it (`kind::order`), and SQL.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt::Write as _;

use crate::engine::lease::{LeaseClock, ran_out, told_of_return};
use crate::engine::places::governed::Home;
use crate::engine::records::whereabouts::has_draft;
use crate::engine::{Command, Effect, Stop, Terms, Text, Turn};
use crate::kind::{Fault, Kind, Wants};
use crate::limits::{CIRCLE_LOOK_MAX, RIPE_MAX};
use crate::names::{AgentName, RecordId, StateName, with_article};
use crate::numbers::{UnixNanos, WorkspaceKey};
use crate::record::{Document, Edit, patch};
use crate::refusal::{Refusal, Rule};
use crate::store::{Edge, Read, Readiness, Record, Sides, Standing, StoreError, When};

/// Why a record is not ready: the first reason that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hindrance {
    /// It has no file, or its content is flagged as not valid.
    NotValid,
    /// It is in another state than the initial one.
    State(StateName),
    /// Its content does not allow a claim.
    Unfit,
    /// So many of its dependencies are not done.
    Waits(u64),
    /// Its `not_before` says something that is no time.
    NoTime,
    /// Its time has not come.
    Until(UnixNanos),
}

/// Why `record` is not ready at `now`; `None`: it is.
#[must_use]
pub fn hindrance(kind: &Kind, record: &Record, now: UnixNanos) -> Option<Hindrance> {
    let Readiness { fit, open, not_before, .. } = record.readiness;
    if !record.is_valid() {
        return Some(Hindrance::NotValid);
    }
    if record.state != kind.state(kind.initial()).name {
        return Some(Hindrance::State(record.state.clone()));
    }
    if !fit {
        return Some(Hindrance::Unfit);
    }
    if open > 0 {
        return Some(Hindrance::Waits(open));
    }
    match not_before {
        Some(Wants::NO_TIME) => Some(Hindrance::NoTime),
        Some(at) if at > now => Some(Hindrance::Until(at)),
        _ => None,
    }
}

/// When its turn comes.
#[must_use]
pub fn when(kind: &Kind, record: &Record, now: UnixNanos) -> When {
    match hindrance(kind, record, now) {
        None => When::Now,
        Some(Hindrance::Until(at)) => When::At(at),
        Some(_) => When::Waits,
    }
}

/// Whether those that wait for `record` need wait no longer.
#[must_use]
pub fn counts_as_done(kind: &Kind, record: &Record) -> bool {
    let state = kind.state_named(record.state.as_str());
    state.is_some_and(|state| kind.is_done(state, record.status.as_deref()))
}

/// What keeps everybody from claiming a ready record: its kind has no claims, or what a claim writes,
/// such as the owner, cannot be written into its text. That is parsed for it, so this is for who asks
/// why.
///
/// # Errors
/// A failure of the store.
pub fn unwritable(
    read: &dyn Read,
    kind: &Kind,
    record: &Record,
    now: UnixNanos,
) -> Result<Option<Refusal>, StoreError> {
    let Some(claim) = kind.claim() else {
        let one = with_article(kind.name().as_str());
        let reason = format!("{one} has no claim: no transition gives it an owner");
        let remedy = "move it where its kind leads it";
        return Ok(Some(Refusal::new(Rule::Transition, reason, remedy)));
    };
    let text = read.version(record.version_g)?.map(|version| version.content).unwrap_or_default();
    let Ok(said) = Document::parse(&text) else { return Ok(None) };
    // What takes not even the shortest name takes none.
    let owner = AgentName::new("a").ok();
    let edits = kind.entry_edits(claim, said.value(), owner.as_ref(), now);
    let edits: Vec<Edit<'_>> =
        edits.iter().map(|edit| Edit { field: &edit.field, value: &edit.value }).collect();
    if edits.is_empty() {
        return Ok(None);
    }
    Ok(patch(&text, &edits).err().map(Refusal::from))
}

/// Why `record` is not ready, in one sentence that names what it waits for; `None`: it is.
///
/// # Errors
/// A failure of the store.
pub fn explain(
    read: &dyn Read,
    kind: &Kind,
    record: &Record,
    now: UnixNanos,
) -> Result<Option<String>, StoreError> {
    let Some(hindrance) = hindrance(kind, record, now) else { return Ok(None) };
    let inbox = kind.state(kind.initial()).shown(None);
    if let Some(told) = told_of_return(read, record)? {
        return Ok(Some(ran_out(record, &told)));
    }
    Ok(Some(match hindrance {
        Hindrance::NotValid => "its content is not valid".to_owned(),
        Hindrance::State(state) => format!("it is in {state}, not in {inbox}"),
        Hindrance::Unfit => {
            let content = read.version(record.version_g)?.map(|version| version.content);
            let text = Text::new(content.unwrap_or_default());
            let fault = text.document().ok().and_then(|said| kind.claim_fault(said.value()));
            fault.map_or_else(|| "it cannot be claimed".to_owned(), |fault| fault.reason)
        }
        Hindrance::Waits(_) => {
            let mut out = String::from("it waits for ");
            let mut named = 0;
            for Edge { other, .. } in read.dependencies(record.workspace, &record.id)? {
                let found = read.record_named(record.workspace, &other)?;
                if found.as_ref().is_some_and(|found| found.readiness.done) {
                    continue;
                }
                named += 1;
                if named > NAMED_MAX {
                    out.push_str(", …");
                    break;
                }
                let comma = if named > 1 { ", " } else { "" };
                let state = match found.map(|found| (found.standing, found.state)) {
                    None if has_draft(read, kind, record.workspace, &other)? => {
                        "a draft, and no record yet".to_owned()
                    }
                    None => "there is no such record".to_owned(),
                    Some((Standing::Live { .. }, state)) => format!("in {state}"),
                    Some((Standing::Parked { .. }, state)) => {
                        format!("in {state}, parked: its file has the name of a backup")
                    }
                    Some((Standing::Gone, _)) => "removed before it was done".to_owned(),
                };
                // Writing to a String cannot fail.
                let _ = write!(out, "{comma}`{other}` ({state})");
            }
            out
        }
        Hindrance::NoTime => {
            format!("its `{}` is no time: 2026-02-04T17:05:00Z is one", kind.shown_not_before())
        }
        // As far as times are counted: the text may say a later one.
        Hindrance::Until(UnixNanos::LAST) => "its time is in the year 2262 or later".to_owned(),
        Hindrance::Until(at) => format!("its time is {}", at.rfc3339_seconds()),
    }))
}

/// Dependencies that [`explain`] names.
const NAMED_MAX: usize = 10;

/// What a text says about its record's turn, looked at: its edges close no circle.
pub(in crate::engine) struct Links {
    wants: Wants,
    /// The edges that touch the record now: who waits for it, and for whom it waits.
    dependants: Vec<Edge>,
    dependencies: Vec<Edge>,
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

/// The records at the other ends of these edges, of which a record may have thousands.
fn others(edges: &[Edge]) -> HashSet<&RecordId> {
    edges.iter().map(|edge| &edge.other).collect()
}

/// The edges whose declaration at one end changes, with what they are then.
fn changed(
    edges: &[Edge],
    wanted: &BTreeMap<RecordId, String>,
    side: fn(&mut Sides) -> &mut bool,
) -> Vec<(RecordId, Sides)> {
    let old = edges.iter().filter_map(|Edge { other, sides }| {
        let (mut sides, is) = (*sides, wanted.contains_key(other));
        let was = std::mem::replace(side(&mut sides), is);
        (was != is).then(|| (other.clone(), sides))
    });
    let known = others(edges);
    let new = wanted.keys().filter(|id| !known.contains(*id));
    let new = new.map(|id| {
        let mut sides = Sides { dependant: false, dependency: false };
        *side(&mut sides) = true;
        (id.clone(), sides)
    });
    old.chain(new).collect()
}

/// The circle that these edges close, if there are not too many, with the place in the text that closes it. Looks from
/// the record in both directions at once and ends when either is exhausted, so that a record
/// which nobody waits for yet costs nothing.
fn circle(
    read: &dyn Read,
    workspace: WorkspaceKey,
    id: &RecordId,
    links: &Links,
) -> Result<Option<(String, Option<String>)>, StoreError> {
    let wants = &links.wants;
    if let Some(pointer) = wants.after.get(id).or_else(|| wants.before.get(id)) {
        return Ok(Some((pointer.clone(), Some(format!("`{id}` after `{id}`")))));
    }
    let brings = |edges: &[Edge], wanted: &BTreeMap<RecordId, String>| {
        let known = others(edges);
        wanted.keys().any(|other| !known.contains(other))
    };
    if !brings(&links.dependencies, &wants.after) && !brings(&links.dependants, &wants.before) {
        return Ok(None);
    }
    // What others declare about the record stays; what it declared itself is replaced.
    let later = links.dependants.iter().filter(|edge| edge.sides.dependant);
    let earlier = links.dependencies.iter().filter(|edge| edge.sides.dependency);
    let later = later.map(|edge| &edge.other).chain(wants.before.keys());
    let earlier = earlier.map(|edge| &edge.other).chain(wants.after.keys());
    let mut forward = Search::new(id, later);
    let mut backward = Search::new(id, earlier);
    let mut meeting = forward.seen.keys().find(|one| backward.seen.contains_key(*one)).cloned();
    while meeting.is_none() {
        if forward.seen.len() + backward.seen.len() > CIRCLE_LOOK_MAX {
            return Ok(Some((String::new(), None)));
        }
        let Some(at) = forward.queue.pop_front() else { return Ok(None) };
        for edge in read.dependants(workspace, &at)? {
            meeting = meeting.or(forward.reach(&edge.other, &at, &backward));
        }
        let Some(at) = backward.queue.pop_front() else { return Ok(None) };
        for edge in read.dependencies(workspace, &at)? {
            meeting = meeting.or(backward.reach(&edge.other, &at, &forward));
        }
    }
    let Some(meeting) = meeting else { return Ok(None) };
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
    Ok(Some((pointer.cloned().unwrap_or_default(), Some(circle))))
}

/// See [`Turn::links`]; of a record of this id. The refusal is that of a circle.
pub(in crate::engine) fn links_of(
    read: &dyn Read,
    (workspace, id): (WorkspaceKey, &RecordId),
    kind: &Kind,
    text: &Text,
) -> Result<Result<Option<Links>, Refusal>, StoreError> {
    let Ok(document) = &text.parsed else { return Ok(Ok(None)) };
    let wants = kind.wants(document.value());
    let dependants = read.dependants(workspace, id)?;
    let dependencies = read.dependencies(workspace, id)?;
    let links = Links { wants, dependants, dependencies };
    if let Some((pointer, circle)) = circle(read, workspace, id, &links)? {
        let fault = Fault {
            rule: Rule::Cycle,
            pointer,
            reason: circle.map_or_else(
                || format!("`{id}` may wait for itself: over {CIRCLE_LOOK_MAX} records wait here"),
                |circle| format!("`{id}` would wait for itself: {circle}"),
            ),
            remedy: "take one of these dependencies out".to_owned(),
        };
        return Ok(Err(text.refusal(fault)));
    }
    Ok(Ok(Some(links)))
}

impl Turn<'_> {
    /// Looks at what a text says about the turn of the record at `home`; `None` where it says
    /// nothing that could be read.
    ///
    /// # Errors
    /// [`Rule::Cycle`] where the record would wait for itself.
    pub(in crate::engine) fn links(&self, home: &Home, text: &Text) -> Result<Option<Links>, Stop> {
        let of = (home.governed.workspace, &home.id);
        links_of(self.txn, of, home.kind(), text)?.map_err(|circle| {
            Stop::rejected(circle, home.file_path(), std::sync::Arc::clone(&text.bytes))
        })
    }

    /// What a record that is gone says: nothing.
    pub(in crate::engine) fn no_links(&self, record: &Record) -> Result<Links, StoreError> {
        let Record { workspace, id, .. } = record;
        let dependants = self.txn.dependants(*workspace, id)?;
        let dependencies = self.txn.dependencies(*workspace, id)?;
        Ok(Links { wants: Wants::default(), dependants, dependencies })
    }

    /// Brings `record`, changed already but not written, into the order of work: its edges, if its
    /// content changed, and when its turn comes. Returns whether those that wait for it must be
    /// told (see [`Turn::tell_dependants`]).
    pub(in crate::engine) fn put_in_order(
        &mut self,
        record: &mut Record,
        kind: &Kind,
        links: Option<&Links>,
    ) -> Result<bool, StoreError> {
        if let Some(links) = links {
            self.put_links(record, kind, links)?;
        }
        let done = counts_as_done(kind, record);
        let turned = std::mem::replace(&mut record.readiness.done, done) != done;
        self.settle(record, kind, links.is_some());
        Ok(turned)
    }

    /// Says when the record's turn comes, and what follows from it, and from a new text: what was in the way of a
    /// claim may be gone, for whoever waits, and an agent be named.
    fn settle(&mut self, record: &mut Record, kind: &Kind, is_new_text: bool) {
        let before = record.readiness.when;
        record.readiness.when = when(kind, record, self.now);
        match record.readiness.when {
            When::Now if before != When::Now || is_new_text => {
                self.effect(Effect::Ready(record.workspace, record.key));
                self.found_ready(record);
            }
            When::At(at) => self.effect(Effect::Due(at)),
            When::Now | When::Waits => {}
        }
    }

    /// Replaces the edges that a record declares, and takes over what its text says.
    fn put_links(
        &mut self,
        record: &mut Record,
        kind: &Kind,
        links: &Links,
    ) -> Result<(), StoreError> {
        let Links { wants, dependants, dependencies } = links;
        let (workspace, id) = (record.workspace, record.id.clone());
        let was_done = record.readiness.done;
        for (other, sides) in changed(dependencies, &wants.after, |sides| &mut sides.dependant) {
            self.txn.put_edge(workspace, &other, &id, sides)?;
        }
        let waited = others(dependants);
        for (other, sides) in changed(dependants, &wants.before, |sides| &mut sides.dependency) {
            self.txn.put_edge(workspace, &id, &other, sides)?;
            let was = waited.contains(&other);
            let is = sides.dependant || sides.dependency;
            if was != is && !was_done {
                self.shift(workspace, &other, kind, if is { 1 } else { -1 })?;
            }
        }
        let alone = dependencies.is_empty() && wants.after.is_empty();
        let open = if alone { 0 } else { self.txn.open_dependencies(workspace, &id)? };
        let readiness = &mut record.readiness;
        readiness.open = open;
        readiness.fit = wants.fit;
        readiness.priority = wants.priority;
        readiness.not_before = wants.not_before;
        record.lease_s = wants.lease_s;
        match wants.since {
            Some(since) => readiness.since = since,
            // The time of its making, and no save makes it younger.
            None if readiness.since == UnixNanos(0) => readiness.since = self.now,
            None => {}
        }
        Ok(())
    }

    /// Tells those that wait for `record` that it is done now, or not any more.
    pub(in crate::engine) fn tell_dependants(
        &mut self,
        record: &Record,
        kind: &Kind,
    ) -> Result<(), StoreError> {
        let by = if record.readiness.done { -1 } else { 1 };
        for edge in self.txn.dependants(record.workspace, &record.id)? {
            self.shift(record.workspace, &edge.other, kind, by)?;
        }
        Ok(())
    }

    /// Changes how many open dependencies the record `id`, if there is one, has.
    fn shift(
        &mut self,
        workspace: WorkspaceKey,
        id: &RecordId,
        kind: &Kind,
        by: i64,
    ) -> Result<(), StoreError> {
        let Some(mut record) = self.txn.record_named(workspace, id)? else { return Ok(()) };
        record.readiness.open = record.readiness.open.saturating_add_signed(by);
        self.settle(&mut record, kind, false);
        self.txn.update_readiness(record.key, &record.readiness)
    }
}

/// Makes those ready whose time has come.
pub(in crate::engine) struct Ripen {
    /// The wall clock was set back: what is ready before its time by now is not any more.
    pub was_set_back: bool,
    /// Kept with what it makes ready, so that the next daemon, too, sees that it was set back after that.
    pub clock: LeaseClock,
}

impl Command for Ripen {
    /// When it is to be run again.
    type Out = Option<UnixNanos>;

    fn operation(&self) -> &'static str {
        "ripen"
    }

    /// It would be done again after a crash.
    fn terms(&self) -> Terms {
        Terms::UNFLUSHED
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Option<UnixNanos>, Stop> {
        let mut due = Vec::new();
        turn.txn.due(turn.now, &mut |record| {
            due.push(record);
            due.len() < RIPE_MAX
        })?;
        if self.was_set_back {
            turn.txn.early(turn.now, &mut |record| {
                due.push(record);
                true
            })?;
        }
        if !due.is_empty() {
            self.clock.keep(turn.txn, turn.now)?;
        }
        for mut record in due {
            let workspace = turn.txn.workspace(record.workspace)?;
            match workspace.and_then(|workspace| turn.config.bind(&workspace.path)) {
                Some(binding) => turn.settle(&mut record, &binding.kind, false),
                None => record.readiness.when = When::Waits,
            }
            turn.txn.update_readiness(record.key, &record.readiness)?;
        }
        Ok(turn.txn.next_turn()?)
    }
}
