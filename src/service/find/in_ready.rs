//! What a path in a workspace's computed directory of what is ready names: `work/ready/X.yaml`, and
//! `work/ready/.next`, which is the best.
//!
//! Deliberately not here: what is ready (the engine's `ready`), and the directory itself (`tree`).

use super::path_of;
use crate::config::Config;
use crate::engine::node_at;
use crate::engine::{Governed, NEXT, best_ready, governed, ready_named};
use crate::kind::Place;
use crate::names::{FileName, TreePath};
use crate::service::Failure;
use crate::store::{Node, Read, Record};

/// A name in such a directory.
pub(super) struct InReady {
    workspace: Governed,
    name: FileName,
}

impl InReady {
    /// What `path` is there; `None` if it lies elsewhere.
    pub fn of(read: &dyn Read, config: &Config, path: &TreePath) -> Result<Option<Self>, Failure> {
        let Some((above, name)) = path.split_last() else { return Ok(None) };
        let Some((dir, ready)) = above.split_last() else { return Ok(None) };
        let Some(dir) = node_at(read, &dir)? else { return Ok(None) };
        let workspace = governed(read, config, dir.ino)?.filter(|it| it.place == Place::Root);
        let is_ready = |it: &Governed| it.binding.kind.order().dir == *ready;
        let workspace = workspace.filter(is_ready);
        Ok(workspace.map(|workspace| InReady { workspace, name: name.clone() }))
    }

    /// Whether it is the best, whichever that is.
    pub fn is_next(&self) -> bool {
        self.name.as_bytes() == NEXT
    }

    /// What it leads to now, and where that lies.
    pub fn leads_to(&self, read: &dyn Read) -> Result<Option<(TreePath, Node)>, Failure> {
        let record = if self.is_next() {
            best_ready(read, self.workspace.workspace, &|_, _| false)?
        } else {
            ready_named(read, &self.workspace, &self.name)?
        };
        let Some(record) = record else { return Ok(None) };
        let node = record.ino().map(|ino| read.node(ino)).transpose()?.flatten();
        Ok(path_of(read, &record)?.zip(node))
    }

    /// The record of that name, ready or not.
    pub fn record(&self, read: &dyn Read) -> Result<Option<Record>, Failure> {
        let Some(id) = self.workspace.binding.kind.record_id(&self.name) else { return Ok(None) };
        Ok(read.record_named(self.workspace.workspace, &id)?)
    }
}
