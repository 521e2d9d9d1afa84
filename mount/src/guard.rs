//! One mount's ear at the kernel, and the wall between a tree's panics and the FUSE library.
//!
//! What must stay true: no panic of a tree reaches the library's threads (it would end one of them,
//! and the last one the mount); a panicking call answers EIO and is logged with its operation.
//! Deliberately not here: the callbacks themselves (see `adapter`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use fuser::Request;

use crate::errno::Errno;
use crate::gate::Gate;
use crate::reply::Reply;
use crate::tree::{Caller, MountId, Tree};
use crate::view::View;

/// One mount's ear at the kernel.
pub(crate) struct Adapter {
    tree: Arc<dyn Tree>,
    mount: MountId,
    pub(crate) view: View,
    pub(crate) gate: Arc<Gate>,
}

impl Adapter {
    /// An adapter that serves `tree` as mount `mount`.
    pub(crate) fn new(tree: Arc<dyn Tree>, mount: MountId, view: View, gate: Arc<Gate>) -> Adapter {
        Adapter { tree, mount, view, gate }
    }

    /// Who asks.
    pub(crate) fn caller(&self, request: &Request) -> Caller {
        Caller {
            mount: self.mount,
            uid: request.uid(),
            gid: request.gid(),
            pid: request.pid(),
            files: None,
        }
    }

    /// Asks the tree for something it answers at once.
    pub(crate) fn ask<T>(
        &self,
        operation: &'static str,
        reply: Reply<T>,
        call: impl FnOnce(&dyn Tree) -> Result<T, Errno>,
    ) {
        if let Some(result) = self.hand(operation, call) {
            reply.send(result);
        }
    }

    /// Hands the tree something, together with the reply where it owes one. `None`: it panicked,
    /// and what it held of the request was dropped, which answered EIO.
    pub(crate) fn hand<R>(
        &self,
        operation: &'static str,
        call: impl FnOnce(&dyn Tree) -> R,
    ) -> Option<R> {
        // Unwind safety: a tree is shared between threads anyway and must keep its own order.
        let outcome = catch_unwind(AssertUnwindSafe(|| call(&*self.tree)));
        outcome.map_err(|panic| self.log_panic(operation, panic.as_ref())).ok()
    }

    fn log_panic(&self, operation: &'static str, panic: &(dyn std::any::Any + Send)) {
        let text = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("(no text)");
        tracing::error!(mount = self.mount.0, operation, panic = text, "a request panicked: EIO");
    }
}
