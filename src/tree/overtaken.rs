//! Who opens a file that is replaced again and again.
//!
//! An `open` that finds its file without a name is answered ESTALE, upon which the kernel looks the name
//! up once more, but not a third time. Who is overtaken twice is given the plain file that was there a
//! moment ago, as on other file systems. Of a record nothing is left under its old inode: who reads one
//! hears ESTALE then. Deliberately not here: how long nameless files stay (the engine's desk).

use std::collections::HashMap;
use std::time::Instant;

use parking_lot::Mutex;
use workfs_mount::{Caller, MountId, OpenFlags, Opened, Reply};

use crate::limits::{OVERTAKEN_MAX, OVERTAKEN_TWICE_WITHIN};
use crate::refusal::{Door, Rule};
use crate::store::Class;

use super::WorkTree;
use super::handles::Held;
use super::open::plain;
use super::plain_save::Wrote;

/// Threads whose `open` was overtaken, and is made once more.
#[derive(Default)]
pub(super) struct Overtaken(Mutex<HashMap<(MountId, u32), Instant>>);

impl Overtaken {
    /// Whether this is the second time in one `open`.
    fn is_again(&self, caller: &Caller) -> bool {
        let thread = (caller.mount, caller.pid);
        let mut threads = self.0.lock();
        let is_recent = |at: &Instant| at.elapsed() < OVERTAKEN_TWICE_WITHIN;
        if threads.remove(&thread).is_some_and(|at| is_recent(&at)) {
            return true;
        }
        if threads.len() >= OVERTAKEN_MAX {
            threads.retain(|_, at| is_recent(at));
        }
        if threads.len() < OVERTAKEN_MAX {
            threads.insert(thread, Instant::now());
        }
        false
    }
}

impl WorkTree {
    /// Opens an inode that has no name.
    pub(super) fn open_overtaken(
        &self,
        caller: &Caller,
        held: Held,
        flags: OpenFlags,
        reply: Reply<Opened>,
    ) {
        let only_reads = !flags.write && !flags.truncate;
        if !only_reads || !self.overtaken.is_again(caller) {
            return reply.send(Err(Rule::Gone.errno(Door::Handle)));
        }
        reply.send(match self.read(|read| read.node(held.ino())) {
            Ok(Some(gone))
                if gone.class == Class::Plain && !self.is_hidden(&gone.kind(), caller) =>
            {
                let open = plain(flags, Wrote::new(gone.parent, caller, false));
                self.opened(caller, held, open)
            }
            Ok(_) => Err(Rule::Gone.errno(Door::Handle)),
            Err(errno) => Err(errno),
        });
    }
}
