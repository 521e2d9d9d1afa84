//! A name that a kernel took for absent and asks to make, where another mount was faster.
//!
//! The kernel asks no permission bits of what it makes, so nobody has asked whether the caller may
//! open what lies there by now. What must stay true: nobody opens by this what the kernel would not
//! have let him open. Deliberately not here: names that may not be made (the engine's `nodes/create`).

use std::time::Duration;

use workfs_mount::{Attr, Caller, Entry, OpenFlags, Opened, Reply};

use crate::engine::{Slot, slot};
use crate::names::{Dentry, FileName};
use crate::refusal::{Door, Rule};
use crate::store::{Class, Node, NodeType, Read, StoreError};
use crate::tree::WorkTree;
use crate::tree::callers::caller::allows;

/// What lies under the name.
enum Found {
    File(Node, Attr),
    /// Something that the kernel must look at.
    Another,
    /// Nothing any more.
    Gone,
    /// It is not there, and may not be made.
    Refused,
}

/// Which attempt to make a name it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tree) enum Try {
    First,
    /// What was in its way was gone again.
    Second,
}

impl WorkTree {
    /// Opens what lies under a name that was to be made.
    pub(in crate::tree) fn open_taken(
        &self,
        caller: &Caller,
        at: Dentry,
        (mode, flags): (u32, OpenFlags),
        nth: Try,
        reply: Reply<(Entry, Opened)>,
    ) {
        let (node, shown) = match self.read(|read| self.find_taken(read, caller, at.as_ref())) {
            Ok(Found::File(node, shown)) => (node, shown),
            Ok(Found::Gone) if nth == Try::First => {
                return self.create_file(caller, at, mode, flags, Try::Second, reply);
            }
            // It looks the name up once more, not oftener, and goes on by what it finds.
            Ok(Found::Another | Found::Gone) => {
                return reply.send(Err(Rule::Elsewhere.errno(Door::Name)));
            }
            Ok(Found::Refused) => return reply.send(Err(Rule::Taken.errno(Door::Name))),
            Err(errno) => return reply.send(Err(errno)),
        };
        if !self.may_open(caller, &shown, flags) {
            return reply.send(Err(Rule::Forbidden.errno(Door::Name)));
        }
        let mut entry = self.entry(caller, &node);
        // It may be hidden still; who asks for it by making it works on it, too.
        if self.unborn.join(caller, node.ino) || node.class == Class::Draft {
            entry.ttl = Duration::ZERO;
        }
        self.open_file(caller, node.ino, flags, reply.map(move |opened| (entry, opened)));
    }

    fn find_taken(
        &self,
        read: &dyn Read,
        caller: &Caller,
        at: Dentry<&FileName>,
    ) -> Result<Found, StoreError> {
        Ok(match read.lookup(at.dir, at.name)? {
            Some(node) if node.node_type == NodeType::File => {
                let shown = self.shown(read, caller, &node)?;
                Found::File(node, shown)
            }
            Some(_) => Found::Another,
            // A record's name may be refused because its id is in use.
            None => match slot(read, &self.engine.config(), at.dir, at.name)? {
                Slot::Record(_) => Found::Refused,
                Slot::Plain => Found::Gone,
            },
        })
    }

    /// Whether the caller's kernel would have let it open a file with these attributes, if it had asked.
    fn may_open(&self, caller: &Caller, attr: &Attr, flags: OpenFlags) -> bool {
        let asks = self.hub.identity(caller.mount).and_then(|identity| identity.asks);
        let Some(shows) = asks.filter(|_| caller.uid != 0) else { return true };
        let reads = if flags.read { 0o4 } else { 0 };
        let writes = if flags.changes() { 0o2 } else { 0 };
        allows(&shows.shown(attr), caller, reads | writes)
    }
}
