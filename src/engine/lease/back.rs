//! The way back of a record whose lease ran out: to where it can be claimed, or to where it has ended.
//!
//! What must stay true: a record that cannot go back is tried again now and then, silently, until it
//! can, or until somebody who acts for others sees to it. Deliberately not here: when a lease ends.

use std::time::Duration;

use super::LeaseNote;
use crate::engine::change::stop::gone;
use crate::engine::places::governed::{Governed, Home, governed, path_of};
use crate::engine::records::record::{Entry, Moving};
use crate::engine::records::save::home_of;
use crate::engine::records::whereabouts::name_of_parked;
use crate::engine::{Command, Create, Effect, NewContent, Slot, Stop, Text, Turn};
use crate::kind::{Kind, OnExpiry, Retries, StateIx};
use crate::ledger::Via;
use crate::names::{AgentName, Dentry, FileName, TreePath};
use crate::numbers::{Attempt, Lapses, RecordKey};
use crate::record::{Edit, patch};
use crate::refusal::{Refusal, Rule};
use crate::store::{Node, Record, Standing, StoreError};

/// A record that somebody had, and where it is.
pub(super) struct Had {
    pub record: Record,
    /// A directory of its workspace.
    pub governed: Governed,
    /// Its state.
    pub state: StateIx,
    /// The name of its file, or the one it would have.
    pub name: FileName,
    /// Its path, or the one it had.
    pub path: TreePath,
    /// Where it lies. A record whose name went to a backup has no file.
    pub file: Option<(Home, Node)>,
}

/// Whether a record can go back.
pub(super) enum Way {
    /// It can.
    Open(Box<OpenWay>),
    /// This is in its way.
    Blocked(String),
}

/// A way on which nothing stops a record any more.
pub(super) struct OpenWay {
    home: Home,
    entry: Entry,
}

/// Where a record goes whose owner is not to keep it. Where the end of a lease moves it nowhere, somebody
/// let go of it.
pub(super) fn goes_to(kind: &Kind, on_expiry: &OnExpiry) -> StateIx {
    match on_expiry {
        OnExpiry::State(to) => *to,
        OnExpiry::Status(_) | OnExpiry::Event => kind.initial(),
    }
}

/// What is told of a lease that ran out.
pub(super) fn ran_out(record: &Record, attempt: Attempt) -> String {
    let who = record.owner.as_ref().map_or("nobody", |owner| owner.as_str());
    format!("the lease of {who} ran out (attempt {attempt})")
}

impl Had {
    /// The record, if it is anywhere and still of a workspace.
    pub fn find(turn: &Turn<'_>, record: Record) -> Result<Option<Had>, Stop> {
        match record.standing {
            Standing::Live { ino, .. } => {
                let lies = home_of(turn, &record)?;
                let node = turn.txn.node(ino)?.ok_or_else(gone)?;
                let (governed, state) = (lies.governed.clone(), lies.state);
                let (name, path) = (lies.name.clone(), lies.file_path());
                Ok(Some(Had { record, governed, state, name, path, file: Some((lies, node)) }))
            }
            Standing::Parked { dir } => {
                let workspace = turn.txn.workspace(record.workspace)?;
                let Some(root) = workspace.and_then(|workspace| workspace.dir) else {
                    return Ok(None);
                };
                let Some(governed) = governed(turn.txn, turn.config, root)? else {
                    return Ok(None);
                };
                let kind = &governed.binding.kind;
                let state = kind.state_named(record.state.as_str());
                let name = name_of_parked(turn.txn, kind, &record)?;
                let (Some(state), Some(name)) = (state, name) else {
                    return Ok(None);
                };
                let path = match turn.txn.node(dir)? {
                    Some(_) => path_of(turn.txn, dir, &name)?,
                    None => governed.path.join(name.clone()),
                };
                Ok(Some(Had { record, governed, state, name, path, file: None }))
            }
            Standing::Gone => Ok(None),
        }
    }

    /// The way from its state, whose kind says `to`; `ended` is the attempt that is over.
    pub fn way_back(&self, turn: &mut Turn<'_>, to: StateIx, ended: Attempt) -> Result<Way, Stop> {
        match self.open_way(turn, to, ended) {
            Ok(open) => Ok(Way::Open(Box::new(open))),
            Err(Stop::Refused(why)) => Ok(Way::Blocked(why.refusal.reason)),
            Err(stop) => Err(stop),
        }
    }

    fn open_way(&self, turn: &mut Turn<'_>, to: StateIx, ended: Attempt) -> Result<OpenWay, Stop> {
        let kind = self.governed.binding.kind.clone();
        let retries = kind.state(self.state).retries.as_ref();
        let lapses = self.record.lapses;
        let spent = retries.filter(|retries| lapses.0 >= u64::from(retries.attempts));
        let to = spent.map_or(to, |retries| retries.exhausted);
        let bytes = turn.content(&self.record)?;
        self.require_fit(&Text::new(&bytes[..])).map_err(mended_by_others)?;
        let owner = self.record.owner.as_ref();
        let home = home_in(turn, &self.governed, &self.name, (to, owner))?;
        // What counts nowhere yet, or elsewhere, is one node more there.
        let charged = self.file.as_ref().map(|(_, node)| node.quota);
        if charged != turn.txn.node(home.dir)?.map(|dir| dir.quota) {
            turn.require_room(home.dir)?;
        }
        let wait = match (retries, spent) {
            (Some(retries), None) => Some(back_off(turn, retries, lapses)),
            _ => None,
        };
        let not_before = wait.map(|wait| {
            // The record carries whole seconds: the next one, or it would be left alone for less.
            turn.now.after(wait).after(Duration::from_nanos(999_999_999)).rfc3339_seconds()
        });
        let reason = ran_out(&self.record, ended);
        let mut edits = Vec::new();
        if let (Some(field), Some(value)) = (kind.not_before_field(), &not_before) {
            edits.push(Edit { field, value });
        }
        let timed = edits.len();
        if let Some(field) = &kind.fields().reason {
            edits.push(Edit { field, value: &reason });
        }
        // A text in which the reason cannot be written in place says only until when it is left alone; the
        // ledger says why. One that cannot say that would be claimed again at once.
        let mut refused = None;
        for edits in [&edits[..], &edits[..timed]] {
            let patched = match patch(&bytes, edits) {
                Ok(patched) => patched,
                Err(flaw) => {
                    refused = Some(Refusal::from(flaw));
                    continue;
                }
            };
            match turn.entry(&self.record, &home, Moving::New(&Text::new(patched))) {
                Ok(entry) => return Ok(OpenWay { home, entry }),
                Err(Stop::Refused(why)) => refused = Some(why.refusal),
                Err(stop) => return Err(stop),
            }
        }
        Err(mended_by_others(refused.unwrap_or_else(gone)).into())
    }

    /// Refuses a text with which it cannot leave: a flagged one, and what it had when its name went
    /// to a backup, if that would not be taken now.
    fn require_fit(&self, text: &Text) -> Result<(), Refusal> {
        if self.file.is_some() && self.record.is_valid() {
            return Ok(());
        }
        let content = text.document()?.value();
        let judged = self.governed.binding.judge(content, &self.record.id, self.state);
        judged.map_err(|fault| text.refusal(fault))
    }

    /// Back to where it can be claimed, or to where it has ended.
    pub fn go_back(self, turn: &mut Turn<'_>, way: OpenWay) -> Result<(), Stop> {
        let Had { mut record, file, .. } = self;
        let OpenWay { home, entry } = way;
        record.lapsed = record.owner.clone();
        let Some((lies, mut node)) = file else {
            let (parent, name) = (home.dir, home.name.clone());
            let content = NewContent::File;
            let mut node = Create::new(parent, name, 0o644, content).run(turn)?;
            turn.txn.delete_draft(node.ino)?;
            // The daemon makes it; it is whose the directory is.
            if let Some(dir) = turn.txn.node(home.dir)? {
                (node.uid, node.gid) = (dir.uid, dir.gid);
            }
            turn.enter(record, &home, &mut node, entry, Some(Via::Expiry))?;
            return Ok(());
        };
        turn.enter(record, &home, &mut node, entry, Some(Via::Expiry))?;
        turn.relink(Dentry::of(lies.dir, &lies.name), Dentry::of(home.dir, &home.name), &node, None)
    }
}

/// What is in the way is the record's own text.
fn mended_by_others(refusal: Refusal) -> Refusal {
    let reason = format!("{}; whoever acts for others can mend its text", refusal.reason);
    Refusal { reason, ..refusal }
}

/// How long a record is left alone before its next attempt.
fn back_off(turn: &Turn<'_>, retries: &Retries, lapses: Lapses) -> Duration {
    let doublings = u32::try_from(lapses.0.saturating_sub(1)).unwrap_or(u32::MAX).min(20);
    let wait = retries.first.saturating_mul(1 << doublings).min(retries.longest);
    let mut random = [0; 2];
    (turn.doors.random)(&mut random);
    let part = u32::from(u16::from_le_bytes(random)) * retries.jitter_percent / 65_536;
    wait.saturating_add(wait.saturating_mul(part) / 100)
}

/// Where a file of this name lies in another state, whose directory is made where it is missing. Where that
/// names an owner, it is who had the record: as when they give it back.
///
/// # Errors
/// [`Rule::Absent`] and [`Rule::Taken`] where there is no place for it.
pub(super) fn home_in(
    turn: &mut Turn<'_>,
    governed: &Governed,
    name: &FileName,
    (to, owner): (StateIx, Option<&AgentName>),
) -> Result<Home, Stop> {
    let state = &governed.binding.kind.state(to).name;
    let nowhere = || {
        let reason = format!("nothing of this name can lie in the state {state}");
        Refusal::new(Rule::Absent, reason, "see that its directory is there")
    };
    let at = turn.state_dir(governed, to, owner)?.ok_or_else(nowhere)?;
    if turn.txn.lookup(at, name)?.is_some() {
        let reason = format!("`{}` is there already", path_of(turn.txn, at, name)?);
        return Err(Refusal::new(Rule::Taken, reason, "move it away").into());
    }
    match turn.slot(at, name)? {
        Slot::Record(home) => Ok(*home),
        Slot::Plain => Err(nowhere().into()),
    }
}

/// Tries again to take a record back whose way was blocked when its lease ran out.
pub(in crate::engine) struct Return {
    pub record: RecordKey,
}

impl Command for Return {
    type Out = ();

    fn operation(&self) -> &'static str {
        "return"
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        // Whoever acts for others may have given it to somebody, or taken it away.
        let record = turn.txn.record(self.record)?.filter(Record::is_lapsed);
        let had = record.map(|record| Had::find(turn, record)).transpose()?.flatten();
        if let Some(had) = had {
            let kind = had.governed.binding.kind.clone();
            if let Some(lease) = &kind.state(had.state).lease {
                let to = goes_to(&kind, &lease.on_expiry);
                let ended = Attempt(had.record.attempt.0.saturating_sub(1));
                match had.way_back(turn, to, ended)? {
                    Way::Open(way) => had.go_back(turn, *way)?,
                    Way::Blocked(why) => {
                        if turn.txn.in_the_way(self.record)?.is_none_or(|told| told != why) {
                            turn.txn.put_return(self.record, &why)?;
                        }
                        return Ok(());
                    }
                }
            }
        }
        Ok(turn.need_not_return(self.record)?)
    }
}

impl Turn<'_> {
    /// A record went back, or is where it need not.
    pub(in crate::engine) fn need_not_return(
        &mut self,
        record: RecordKey,
    ) -> Result<(), StoreError> {
        self.txn.delete_return(record)?;
        self.effect(Effect::Lease(LeaseNote::Returned(record)));
        Ok(())
    }
}
