//! Another file for a record that is opened for writing, where somebody has mapped the file that it
//! has, or may have.
//!
//! What must stay true: nobody is kept from opening a record for writing only because others have
//! it open for reading. Deliberately not here: what follows a save (the engine's `records/apart`).

use workfs_mount::{Caller, Errno, OpenFlags, Opened, Reply};

use crate::engine::{Audience as _, SetApart};
use crate::numbers::{Ino, RecordKey};
use crate::refusal::Door;
use crate::tree::{Hub, WorkTree};

use super::open::Looked;
use super::{Held, Open};

impl WorkTree {
    /// The record that is to get another file before `looked` is opened to write. A kernel cuts its pages as
    /// soon as a file is opened to be cut, or is cut: whoever has mapped them would be killed by SIGBUS.
    /// That somebody only may have mapped them is no reason to open nothing, where this is the last attempt.
    pub(super) fn to_set_apart(
        &self,
        looked: &Looked,
        ino: Ino,
        flags: OpenFlags,
        again: bool,
    ) -> Option<RecordKey> {
        let Looked::Open(Open::Staged(staged)) = looked else { return None };
        if !flags.write && !flags.truncate {
            return None;
        }
        // Whoever writes it by now is known by the file that it has, and who was overtaken once opens what it
        // found, or hears of it.
        let record = staged.lock().what.key();
        let only_if_sure = again || self.busy.is_any((ino, record)) || self.overtaken.is_found(ino);
        let is_to_be = if only_if_sure { Hub::is_mapped } else { Hub::may_be_mapped };
        record.filter(|_| is_to_be(&self.hub, ino))
    }

    /// Gives a record another file, which the kernel then opens.
    pub(super) fn set_apart(
        &self,
        caller: &Caller,
        (held, record): (Held, RecordKey),
        flags: OpenFlags,
        reply: Reply<Opened>,
    ) {
        let Some(me) = self.me() else { return reply.send(Err(Errno::EIO)) };
        let (caller, context) = (*caller, self.context(caller, Door::Name));
        let command = SetApart { record, ino: held.ino(), had_bytes: None };
        self.engine.submit(context, command, move |result| match result {
            Ok(()) => me.open_overtaken(&caller, held, flags, reply),
            Err(refusal) => reply.send(Err(refusal.rule.errno(Door::Name))),
        });
    }
}
