//! `.workfs/hold/<id>`: whoever has it open keeps the record; the end of the descriptor gives it
//! back at once, however the process ended.
//!
//! What must stay true: a hold ends with its handle, or with its mount; a mount holds what it shows, and
//! none that is read-only holds anything. Deliberately not here: what giving back is (the engine's
//! `let_go`).

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use workfs_mount::{Caller, Opened, ROOT};

use crate::config::Config;
use crate::engine::{
    About, Audience as _, Context, Fence, Origin, Refuse, Slot, forbids_taking, path_below,
    path_of, slot, told_of_return,
};
use crate::names::{AgentName, FileName, RecordId};
use crate::numbers::{Attempt, Ino, LeaseTime, RecordKey, UnixNanos};
use crate::refusal::{Door, Refusal, Rule};
use crate::store::{LeaseRow, Read, Record, Result, Standing};
use crate::tree::handles::Open;
use crate::tree::{Answer, WorkTree};

use super::{Computed, Viewer};

/// A descriptor that holds a record.
pub(in crate::tree) struct Hold {
    record: RecordKey,
    fence: Fence,
    context: Context,
    /// What reading it gives.
    pub text: Arc<[u8]>,
}

/// Which claim of a record.
type Claim = (RecordKey, Attempt);

impl Hold {
    fn claim(&self) -> Claim {
        (self.record, self.fence.attempt)
    }
}

/// How many descriptors hold each claim.
#[derive(Default)]
pub(in crate::tree) struct Holds(Mutex<HashMap<Claim, u32>>);

impl Holds {
    pub fn has(&self, record: RecordKey, attempt: Attempt) -> bool {
        self.0.lock().contains_key(&(record, attempt))
    }

    fn add(&self, claim: Claim) {
        *self.0.lock().entry(claim).or_insert(0) += 1;
    }

    /// Takes one away; says whether it was the last.
    fn remove(&self, claim: Claim) -> bool {
        let mut holds = self.0.lock();
        let Some(count) = holds.get_mut(&claim) else { return false };
        *count -= 1;
        *count == 0 && holds.remove(&claim).is_some()
    }
}

/// A record that somebody has for a time, with its lease, where it lies in the part of the tree that is
/// `root` and below.
fn leased(read: &dyn Read, root: Ino, key: RecordKey) -> Result<Option<(Record, LeaseRow)>> {
    let Some((record, row)) = read.record(key)?.zip(read.lease(key)?) else { return Ok(None) };
    let (Standing::Live { dir, .. } | Standing::Parked { dir }) = &record.standing else {
        return Ok(None);
    };
    // That of a parked record may be gone.
    let is_shown = root == ROOT || path_below(read, *dir, root)?.is_some();
    Ok((is_shown && record.owner.is_some()).then_some((record, row)))
}

/// The leased record of that id, in whichever workspace it is that a mount with this root shows; of
/// several that of `actor`, since each workspace has its own ids.
pub(in crate::tree) fn find(
    read: &dyn Read,
    (root, name): (Ino, &FileName),
    actor: Option<&AgentName>,
) -> Result<Option<Computed>> {
    let Some(id) = name.as_str().and_then(|name| RecordId::new(name).ok()) else {
        return Ok(None);
    };
    let mut found = None;
    for workspace in read.workspaces()? {
        let Some(record) = read.record_named(workspace.key, &id)? else { continue };
        let Some((record, _)) = leased(read, root, record.key)? else { continue };
        let hold = Some(Computed::Hold(record.key));
        if actor.is_some() && record.owner.as_ref() == actor {
            return Ok(hold);
        }
        found = found.or(hold);
    }
    Ok(found)
}

/// The records that the viewer has, by which they can be held.
pub(super) fn list(read: &dyn Read, viewer: &Viewer) -> Result<Vec<(FileName, Computed)>> {
    let mut own = Vec::new();
    read.leases(&mut |(row, owner)| {
        if owner == viewer.actor {
            own.push(row.record);
        }
        true
    })?;
    let mut names = Vec::new();
    for key in own {
        let shown = leased(read, viewer.root, key)?.filter(|(_, row)| !viewer.ends.has(row));
        let id = shown.and_then(|(record, _)| FileName::new(record.id.as_str()).ok());
        names.extend(id.map(|name| (name, Computed::Hold(key))));
    }
    Ok(names)
}

/// What `.workfs/hold/<id>` says.
pub(super) fn render(read: &dyn Read, viewer: &Viewer, key: RecordKey) -> Result<String> {
    let Some((record, row)) = leased(read, viewer.root, key)? else {
        return Ok("nobody has it any more\n".to_owned());
    };
    Ok(line(read, viewer, &record, &row)?.unwrap_or_default())
}

/// What `.workfs/leases` says: a line for each, the first to end first, then those that are over and
/// whose records cannot go back yet.
pub(super) fn render_all(read: &dyn Read, viewer: &Viewer) -> Result<String> {
    let mut rows = Vec::new();
    read.leases(&mut |(row, _)| {
        rows.push(row);
        true
    })?;
    rows.sort_by_key(|row| viewer.lease_clock.end_of(row));
    let mut out = String::new();
    for row in rows {
        if let Some(record) = read.record(row.record)?
            && let Some(line) = line(read, viewer, &record, &row)?
        {
            out.push_str(&line);
        }
    }
    for record in read.returns()? {
        if let Some(record) = read.record(record)?
            && let Some(told) = told_of_return(read, &record)?
        {
            out.push_str(&over(read, &record, &told)?);
        }
    }
    if out.is_empty() {
        out.push_str("nobody has a lease\n");
    }
    Ok(out)
}

/// What is said of a record that cannot go back yet.
fn over(read: &dyn Read, record: &Record, told: &str) -> Result<String> {
    let owner = record.owner.as_ref().map_or("nobody", |owner| owner.as_str());
    Ok(format!("over {owner}'s lease of {}: {told}\n", place(read, record)?))
}

/// Where a record lies; one whose name went to a backup is called by its id.
fn place(read: &dyn Read, record: &Record) -> Result<String> {
    Ok(match &record.standing {
        Standing::Live { dir, name, .. } => path_of(read, *dir, name)?.to_string(),
        Standing::Parked { .. } | Standing::Gone => record.id.to_string(),
    })
}

fn line(
    read: &dyn Read,
    viewer: &Viewer,
    record: &Record,
    row: &LeaseRow,
) -> Result<Option<String>> {
    let Some(owner) = &record.owner else { return Ok(None) };
    let place = place(read, record)?;
    if let Some(told) = viewer.ends.told(record) {
        return Ok(Some(over(read, record, told)?));
    }
    if !row.runs() {
        let told = "it keeps it, and has a lease again when it is heard of";
        return Ok(Some(over(read, record, told)?));
    }
    let until = wall(viewer, viewer.lease_clock.end_of(row)).rfc3339_seconds();
    Ok(Some(format!("{until} {owner} attempt {} {place}\n", row.attempt)))
}

/// A moment of the lease clock as the wall clock would show it now.
fn wall(viewer: &Viewer, at: LeaseTime) -> UnixNanos {
    let left = (at.0 as i64).saturating_sub(viewer.lease_clock.now().0 as i64);
    UnixNanos(viewer.now.0.saturating_add(left))
}

/// The end of a hold takes the record out of its lane.
fn not_to_hold(
    (context, as_stored): (&Context, bool),
    config: &Config,
    read: &dyn Read,
    record: &Record,
) -> Result<Option<Refusal>> {
    let Standing::Live { ino, dir, name, .. } = &record.standing else { return Ok(None) };
    let Slot::Record(home) = slot(read, config, *dir, name)? else { return Ok(None) };
    let may = context.may_change();
    let may = may.and_then(|()| context.may_write(home.kind(), home.state, home.owner.as_ref()));
    match may {
        Err(refusal) => Ok(Some(refusal)),
        Ok(()) => {
            let there = (*dir, *ino, &home.governed.dir_path());
            forbids_taking(read, context, as_stored, there)
        }
    }
}

impl WorkTree {
    /// Opens `.workfs/hold/<id>`.
    pub(in crate::tree) fn open_hold(&self, caller: &Caller, key: RecordKey) -> Answer<Opened> {
        let (config, viewer) = (self.engine.config(), self.viewer(caller));
        // The kernel asks who only reads for no more than the file's bits, and the end of a hold
        // changes something.
        if viewer.is_read_only {
            return Err(Rule::ReadOnly.errno(Door::Name));
        }
        let context = self.context(caller, Door::Name);
        let as_stored = self.hub.shows_stored(caller.mount.0);
        let found = self.read(|read| {
            let held = leased(read, viewer.root, key)?.filter(|(_, row)| !viewer.ends.has(row));
            let Some((record, _)) = held else { return Ok(None) };
            let Some(fence) = Fence::of(&record) else { return Ok(None) };
            let refusal = not_to_hold((&context, as_stored), &config, read, &record)?;
            let text = render(read, &viewer, key)?;
            Ok(Some((record, fence, refusal, text)))
        })?;
        let (record, fence, refusal, text) = found.ok_or(Rule::Absent.errno(Door::Name))?;
        if let Some(refusal) = refusal {
            let errno = refusal.rule.errno(Door::Name);
            if let Standing::Live { dir, name, .. } = record.standing {
                let refuse = Refuse { operation: "hold", about: About::Name(dir, name), refusal };
                self.engine.submit(context, refuse, |_| ());
            }
            return Err(errno);
        }
        let context = Context { origin: Origin::Daemon, ..context };
        let text = text.into_bytes().into();
        let hold = Hold { record: key, fence, context, text };
        let claim = hold.claim();
        self.hub.holds.add(claim);
        let held = self.handles.hold(Computed::Hold(key).ino());
        let opened = self.opened(caller, held, Open::Hold(Box::new(hold)));
        if opened.is_err() {
            self.hub.holds.remove(claim);
        }
        opened
    }

    /// A descriptor that held a record is gone.
    pub(in crate::tree) fn end_hold(&self, hold: &Hold) {
        if !self.hub.holds.remove(hold.claim()) {
            return;
        }
        self.engine.let_go(hold.context.clone(), hold.record, hold.fence.clone());
    }
}
