//! When a record's turn comes: the one predicate for `ready/`, `.next`, the command line and `why`,
//! and the edges it rests on.
//!
//! Ready is a record in the kind's initial state, valid, with every dependency done and its
//! `not_before` past. What must stay true: each record's row says so at every commit (but for the
//! moment until the writer's timer fires), `open` counts its dependencies that are not done, and
//! the edges have no circle. Changing one record costs what its own edges cost. Deliberately not
//! here: what a content says about it (`kind/lifecycle/order`), what a circle is (`circle`), and SQL.

use std::fmt::Write as _;

use super::links::{Links, changed, others};
use crate::engine::lease::{LeaseClock, ran_out, told_of_return};
use crate::engine::records::whereabouts::has_draft;
use crate::engine::{Command, Effect, Stop, Terms, Text, Turn};
use crate::kind::{Kind, Wants};
use crate::limits::RIPE_MAX;
use crate::names::{AgentName, RecordId, StateName, with_article};
use crate::numbers::{UnixNanos, WorkspaceKey};
use crate::record::{Edit, patch};
use crate::refusal::{Refusal, Rule};
use crate::store::{Edge, Read, Readiness, Record, Standing, StoreError, When};

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
    let text = Text::of(read, record)?;
    let Ok(said) = &text.parsed else { return Ok(None) };
    // What takes not even the shortest name takes none.
    let owner = AgentName::new("a").ok();
    let edits = kind.entry_edits(claim, said.value(), owner.as_ref(), now);
    let edits: Vec<Edit<'_>> =
        edits.iter().map(|edit| Edit { field: &edit.field, value: &edit.value }).collect();
    if edits.is_empty() {
        return Ok(None);
    }
    Ok(patch(&text.bytes, &edits).err().map(Refusal::from))
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
            let text = Text::of(read, record)?;
            let fault = text.document().ok().and_then(|said| kind.claim_fault(said.value()));
            fault.map_or_else(|| "it cannot be claimed".to_owned(), |fault| fault.reason)
        }
        Hindrance::Waits(_) => waits_for(read, kind, record)?,
        Hindrance::NoTime => {
            format!("its `{}` is no time: 2026-02-04T17:05:00Z is one", kind.shown_not_before())
        }
        // As far as times are counted: the text may say a later one.
        Hindrance::Until(UnixNanos::LAST) => "its time is in the year 2262 or later".to_owned(),
        Hindrance::Until(at) => format!("its time is {}", at.rfc3339_seconds()),
    }))
}

/// For whom a record waits, and how it stands with each.
fn waits_for(read: &dyn Read, kind: &Kind, record: &Record) -> Result<String, StoreError> {
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
    Ok(out)
}

/// Dependencies that [`waits_for`] names.
const NAMED_MAX: usize = 10;

impl Turn<'_> {
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
                self.found_ready(record, is_new_text);
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
            self.ranks.note(workspace, (&other, &id), sides);
        }
        let waited = others(dependants);
        for (other, sides) in changed(dependants, &wants.before, |sides| &mut sides.dependency) {
            self.txn.put_edge(workspace, &id, &other, sides)?;
            self.ranks.note(workspace, (&id, &other), sides);
            let was = waited.contains(&other);
            let is = sides.dependant || sides.dependency;
            if was != is && !was_done {
                self.shift(workspace, &other, kind, if is { 1 } else { -1 })?;
            }
        }
        let alone = dependencies.is_empty() && wants.after.is_empty();
        let open = if alone { 0 } else { self.txn.open_dependencies(workspace, &id)? };
        let since = match wants.since {
            Some(since) => since,
            None => self.own_age(record, kind)?,
        };
        let readiness = &mut record.readiness;
        readiness.since = since;
        readiness.open = open;
        readiness.fit = wants.fit;
        readiness.priority = wants.priority;
        readiness.not_before = wants.not_before;
        record.lease_s = wants.lease_s;
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

/// Those whose time has come are ready.
pub(in crate::engine) struct Ripened {
    /// When the next record becomes ready by itself, if one does: then it is to be done again.
    pub next: Option<UnixNanos>,
}

impl Command for Ripen {
    type Out = Ripened;

    fn operation(&self) -> &'static str {
        "ripen"
    }

    /// It would be done again after a crash.
    fn terms(&self) -> Terms {
        Terms::UNFLUSHED
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Ripened, Stop> {
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
        Ok(Ripened { next: turn.txn.next_turn()? })
    }
}
