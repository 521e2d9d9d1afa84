//! The way back of a record whose lease ran out: to where it can be claimed, or to where it has ended.
//!
//! What must stay true: a record that cannot go back is tried again now and then, silently, until it
//! can, or until somebody who acts for others sees to it. Deliberately not here: when a lease ends.

use std::time::Duration;

use crate::kind::{OnExpiry, Retries, StateIx};
use crate::ledger::Via;
use crate::names::{FileName, TreePath};
use crate::numbers::{Attempt, Lapses, RecordKey, UnixNanos};
use crate::record::{Edit, patch};
use crate::store::{Node, Record, Standing};

use super::super::governed::{Governed, Home, governed, path_of};
use super::super::record::Moving;
use super::super::save::home_of;
use super::super::setattr::gone;
use super::super::sight::{Base, Sight};
use super::super::{
    Command, Create, Effect, NewContent, Rename, RenameMode, Slot, Stop, Text, Turn,
};
use super::LeaseNote;

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
                let extension = kind.extensions().first().map_or("", String::as_str);
                let name = FileName::new(format!("{}.{extension}", record.id));
                let (Some(state), Ok(name)) = (state, name) else { return Ok(None) };
                let path = match turn.txn.node(dir)? {
                    Some(_) => path_of(turn.txn, dir, &name)?,
                    None => governed.path.join(name.clone()),
                };
                Ok(Some(Had { record, governed, state, name, path, file: None }))
            }
            Standing::Gone => Ok(None),
        }
    }

    /// Where it goes from its state, whose kind says `to`, and how long it is left alone there; `None`
    /// while there is no place for it.
    pub fn way_back(
        &self,
        turn: &mut Turn<'_>,
        to: StateIx,
    ) -> Result<Option<(Home, Option<Duration>)>, Stop> {
        let kind = self.governed.binding.kind.clone();
        let retries = kind.state(self.state).retries.as_ref();
        let lapses = self.record.lapses;
        let spent = retries.filter(|retries| lapses.0 >= u64::from(retries.attempts));
        let to = spent.map_or(to, |retries| retries.exhausted);
        let fit = match self.file {
            Some(_) => self.record.is_valid(),
            None => Text::new(turn.content(&self.record)?).document().is_ok(),
        };
        let home = home_in(turn, &self.governed, &self.name, to)?.filter(|_| fit);
        let wait = match (retries, spent) {
            (Some(retries), None) => Some(back_off(turn, retries, lapses)),
            _ => None,
        };
        Ok(home.map(|home| (home, wait)))
    }

    /// Back to where it can be claimed, or to where it has ended.
    pub fn go_back(
        self,
        turn: &mut Turn<'_>,
        home: &Home,
        (ended, wait): (Attempt, Option<Duration>),
    ) -> Result<(), Stop> {
        let Had { mut record, file, .. } = self;
        let kind = home.kind();
        let reason = ran_out(&record, ended);
        let not_before = wait.map(|wait| {
            let wait = i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX);
            UnixNanos(turn.now.0.saturating_add(wait)).rfc3339_seconds()
        });
        let mut edits = Vec::new();
        if let (Some(field), Some(value)) = (kind.not_before_field(), &not_before) {
            edits.push(Edit { field, value });
        }
        if let Some(field) = &kind.fields().reason {
            edits.push(Edit { field, value: &reason });
        }
        let bytes = turn.content(&record)?;
        // A text that cannot be changed in place says nothing of it; the ledger does.
        let bytes = patch(&bytes, &edits).unwrap_or(bytes);
        let text = Text::new(bytes);
        record.lapsed = record.owner.clone();
        let Some((lies, mut node)) = file else {
            let (parent, name) = (home.dir, home.name.clone());
            let content = NewContent::File;
            let mut node =
                Create { parent, name, mode: 0o644, content, on_draft: None }.run(turn)?;
            turn.txn.delete_draft(node.ino)?;
            // The daemon makes it; it is whose the directory is.
            if let Some(dir) = turn.txn.node(home.dir)? {
                (node.uid, node.gid) = (dir.uid, dir.gid);
            }
            turn.transition(record, home, &mut node, Moving::New(&text), Some(Via::Expiry))?;
            return Ok(());
        };
        let rename = Rename {
            parent: lies.dir,
            name: lies.name.clone(),
            new_parent: home.dir,
            new_name: home.name.clone(),
            mode: RenameMode::NoReplace,
            sight: Sight::Known(Base::Unseen),
        };
        turn.transition(record, home, &mut node, Moving::New(&text), Some(Via::Expiry))?;
        rename.relink(turn, &node, None)?;
        Ok(())
    }
}

/// How long a record is left alone before its next attempt.
fn back_off(turn: &Turn<'_>, retries: &Retries, lapses: Lapses) -> Duration {
    let doublings = u32::try_from(lapses.0.saturating_sub(1)).unwrap_or(u32::MAX).min(20);
    let wait = retries.first.saturating_mul(1 << doublings).min(retries.longest);
    let mut random = [0; 2];
    (turn.doors.random)(&mut random);
    let part = u32::from(u16::from_le_bytes(random)) * u32::from(retries.jitter_percent) / 65_536;
    wait.saturating_add(wait.saturating_mul(part) / 100)
}

/// Where a file of this name lies in another state, whose directory is made where it is missing;
/// `None` where there is no place for it.
pub(super) fn home_in(
    turn: &mut Turn<'_>,
    governed: &Governed,
    name: &FileName,
    to: StateIx,
) -> Result<Option<Home>, Stop> {
    let Some(at) = turn.state_dir(governed, to, None)? else { return Ok(None) };
    let taken = turn.txn.lookup(at, name)?.is_some();
    Ok(match turn.slot(at, name)? {
        Slot::Record(home) if !taken => Some(*home),
        _ => None,
    })
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
            let lease = kind.state(had.state).lease.as_ref();
            if let Some(OnExpiry::State(to)) = lease.map(|lease| &lease.on_expiry) {
                let Some((home, wait)) = had.way_back(turn, *to)? else { return Ok(()) };
                let ended = Attempt(had.record.attempt.0.saturating_sub(1));
                had.go_back(turn, &home, (ended, wait))?;
            }
        }
        turn.txn.delete_return(self.record)?;
        turn.effect(Effect::Lease(LeaseNote::Returned(self.record)));
        Ok(())
    }
}
