//! `.workfs/hold/<id>`: whoever has it open keeps the record; the end of the descriptor gives it
//! back at once, however the process ended.
//!
//! What must stay true: a hold ends with its handle, or with its mount; a mount holds what it shows, and
//! none that is read-only holds anything. Deliberately not here: what giving back is (the engine's
//! `let_go`), and what is to be read there (`computed/hold`).

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use workfs_mount::{Caller, Opened};

use super::Open;
use crate::config::Config;
use crate::engine::{
    About, Audience as _, Context, Fence, Origin, Refuse, Slot, forbids_taking, slot,
};
use crate::numbers::{Attempt, LeaseTime, RecordKey};
use crate::refusal::{Door, Refusal, Rule};
use crate::store::{Read, Record, Result, Standing};
use crate::tree::computed::Computed;
use crate::tree::computed::hold::{leased, render};
use crate::tree::{Answer, WorkTree};

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

/// How many descriptors hold each claim, and since when some do.
#[derive(Default)]
pub(in crate::tree) struct Holds(Mutex<HashMap<Claim, (u32, LeaseTime)>>);

impl Holds {
    /// Whether some do, and did at this moment.
    pub fn has(&self, claim: Claim, by: LeaseTime) -> bool {
        self.0.lock().get(&claim).is_some_and(|(_, since)| *since <= by)
    }

    pub(super) fn add(&self, claim: Claim, now: LeaseTime) {
        self.0.lock().entry(claim).or_insert((0, now)).0 += 1;
    }

    /// Takes one away; says whether it was the last.
    pub(super) fn remove(&self, claim: Claim) -> bool {
        let mut holds = self.0.lock();
        let Some((count, _)) = holds.get_mut(&claim) else { return false };
        *count -= 1;
        *count == 0 && holds.remove(&claim).is_some()
    }
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
            Ok(Some((fence, refusal, text)))
        })?;
        let (fence, refusal, text) = found.ok_or(Rule::Absent.errno(Door::Name))?;
        if let Some(refusal) = refusal {
            let refuse = Refuse { operation: "hold", about: About::Record(key), refusal };
            return Err(self.refuse(caller, Door::Name, refuse));
        }
        let context = Context { origin: Origin::Daemon, ..context };
        let text = text.into_bytes().into();
        let hold = Hold { record: key, fence, context, text };
        let claim = hold.claim();
        self.hub.holds.add(claim, self.engine.lease_now());
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
