//! A tree as one mount calls it, and the wall between the tree's panics and the FUSE library.
//!
//! What must stay true: no panic of a tree reaches the library's threads (it would end one of them,
//! and the last one the mount); a panicking call answers EIO and is logged with its operation.
//! Deliberately not here: the callbacks themselves (see `adapter`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::errno::Errno;
use crate::ids::MountId;
use crate::requests::reply::Reply;
use crate::requests::times::{Operation, Requests};
use crate::tree::{Look, Tree};

/// Calls of one tree, through one mount: counted, and their panics caught.
#[derive(Clone)]
pub(crate) struct Calls {
    pub(crate) tree: Arc<dyn Tree>,
    pub(crate) mount: MountId,
    pub(crate) requests: Arc<Requests>,
}

impl Calls {
    /// See [`Tree::takes_long`].
    pub(crate) fn takes_long(&self, look: Look<'_>) -> bool {
        self.guard("takes_long", |tree| tree.takes_long(look)).unwrap_or(false)
    }

    /// Asks the tree for something it answers at once.
    pub(crate) fn ask<T>(
        &self,
        operation: Operation,
        reply: Reply<T>,
        call: impl FnOnce(&dyn Tree) -> Result<T, Errno>,
    ) {
        let reply = reply.counted(self.requests.begin(operation));
        if let Some(result) = self.guard(operation.name(), call) {
            reply.send(result);
        }
    }

    /// Hands the tree something, together with the reply that it owes. If it panics, what it held of the
    /// request is dropped, which answers EIO.
    pub(crate) fn hand<T>(
        &self,
        operation: Operation,
        reply: Reply<T>,
        call: impl FnOnce(&dyn Tree, Reply<T>),
    ) {
        let reply = reply.counted(self.requests.begin(operation));
        self.guard(operation.name(), |tree| call(tree, reply));
    }

    /// Tells the tree something to which it owes no reply. `None`: it panicked.
    pub(crate) fn tell<R>(
        &self,
        operation: Operation,
        call: impl FnOnce(&dyn Tree) -> R,
    ) -> Option<R> {
        let _under = self.requests.begin(operation);
        self.guard(operation.name(), call)
    }

    /// The same without counting it.
    pub(crate) fn guard<R>(
        &self,
        operation: &'static str,
        call: impl FnOnce(&dyn Tree) -> R,
    ) -> Option<R> {
        // Unwind safety: a tree is shared between threads anyway and must keep its own order.
        let outcome = catch_unwind(AssertUnwindSafe(|| call(&*self.tree)));
        outcome.map_err(|panic| log_panic(self.mount, operation, panic.as_ref())).ok()
    }
}

fn log_panic(mount: MountId, operation: &'static str, panic: &(dyn std::any::Any + Send)) {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no text)");
    tracing::error!(mount = mount.0, operation, panic = text, "a request panicked: EIO");
}
