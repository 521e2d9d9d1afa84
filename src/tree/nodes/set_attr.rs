//! Setting attributes: of what is computed, of what a handle stages, and of all else by the engine.
//!
//! Deliberately not here: what becomes of a size (`saves/cut`).

use std::time::Duration;

use workfs_mount::{Caller, Entry, Handle, Reply, SetAttr};

use crate::engine::{SetAttributes, TimeOrNow};
use crate::numbers::{Ino, UnixNanos};
use crate::refusal::{Door, Rule};
use crate::tree::computed::Computed;
use crate::tree::handles::Open;
use crate::tree::saves::cut::Sized;
use crate::tree::{Answer, WorkTree};

impl WorkTree {
    pub(in crate::tree) fn set_attributes(
        &self,
        caller: &Caller,
        ino: Ino,
        handle: Option<Handle>,
        mut set: SetAttr,
        reply: Reply<Entry>,
    ) {
        if let Some(computed) = Computed::of(ino) {
            return reply.send(self.set_computed(caller, computed));
        }
        if self.teller(caller).is_some() {
            return reply.send(self.set_nothing(caller, ino));
        }
        // For `chown(-1, -1)` the kernel sets nothing, and leaves it to us to take set-user-id away.
        let is_chown = set == SetAttr::default();
        let open = handle.and_then(|handle| self.handles.get(handle));
        let open = open.as_deref();
        let reply = match (handle, open) {
            (Some(handle), Some(Open::Staged(staged))) => {
                self.noting_unsaved(caller, (ino, handle), &staged.lock(), reply)
            }
            _ => reply,
        };
        let mut staged_size = None;
        if let Some(size) = set.size {
            match self.size(caller, ino, (handle, open), size) {
                Err(errno) => return reply.send(Err(errno)),
                Ok(Sized::Staged) => staged_size = set.size.take(),
                Ok(Sized::Cut(sight, text)) => {
                    return self.save_cut(caller, ino, sight, text, reply);
                }
                Ok(Sized::EmptiesDraft) => {
                    let by = match open {
                        Some(Open::Staged(staged)) => staged.lock().in_whose_name(caller),
                        _ => *caller,
                    };
                    return self.empty_draft(&by, ino, reply);
                }
                Ok(Sized::Plain) => {}
            }
        }
        if set.mtime.is_some() && self.busy.is_any((ino, None)) {
            self.timed.lock().insert(ino);
        }
        let command = command(ino, set, is_chown);
        if command.size.is_some() && !matches!(open, Some(Open::Plain { .. })) {
            return self.cut_by_name(caller, command, reply);
        }
        let door = if open.is_some() { Door::Handle } else { Door::Name };
        let reply = reply.map(move |mut entry: Entry| {
            if let Some(size) = staged_size {
                entry.attr.size = size;
                entry.ttl = Duration::ZERO;
            }
            entry
        });
        self.submit_for_entry(caller, door, command, reply);
    }

    /// Of what is computed nothing can be set. `ready/` shows the attributes of the directory in which its records lie
    /// first: `chmod -R` and `chown -R` have just changed those and come here, too, which is no reason to fail.
    fn set_computed(&self, caller: &Caller, computed: Computed) -> Answer<Entry> {
        let Computed::Ready(_) = computed else { return Err(Rule::ReadOnly.errno(Door::Name)) };
        let viewer = self.viewer(caller);
        self.read(|read| self.computed_entry(read, &viewer, computed))
    }

    /// For the thread that raises an event for those who watch through its mount, and changes nothing.
    fn set_nothing(&self, caller: &Caller, ino: Ino) -> Answer<Entry> {
        let node = self.read(|read| read.node(ino))?;
        Ok(self.entry(caller, &node.ok_or(Rule::Gone.errno(Door::Handle))?))
    }
}

/// A time to set, as the engine takes it.
pub(in crate::tree) fn time_of(time: workfs_mount::TimeOrNow) -> TimeOrNow {
    match time {
        workfs_mount::TimeOrNow::At(at) => TimeOrNow::At(UnixNanos(at)),
        workfs_mount::TimeOrNow::Now => TimeOrNow::Now,
    }
}

/// The change that sets this.
fn command(ino: Ino, set: SetAttr, is_chown: bool) -> SetAttributes {
    let SetAttr { mode, uid, gid, size, atime, mtime } = set;
    let (atime, mtime) = (atime.map(time_of), mtime.map(time_of));
    SetAttributes { ino, mode, uid, gid, is_chown, size, atime, mtime }
}
