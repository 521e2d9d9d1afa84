//! What the kernel sees of nodes, stored and computed.

use std::time::Duration;

use workfs_mount::{Attr, Caller, Entry, Errno, Handle};

use crate::engine::{for_roles, shown_as_ready};
use crate::limits::{CACHE_TTL, READY_TTL};
use crate::names::FileName;
use crate::numbers::Ino;
use crate::refusal::{Door, Rule};
use crate::store::{Class, Node, NodeType, Read, StoreError, stored_bytes};
use crate::tree::computed::{self, Computed, Viewer, events, history, why};
use crate::tree::{Answer, WorkTree};

/// The attributes that the kernel sees.
pub(in crate::tree) fn attr(node: &Node) -> Attr {
    Attr {
        ino: node.ino,
        node_type: node.node_type,
        mode: node.mode,
        nlink: node.nlink,
        uid: node.uid,
        gid: node.gid,
        rdev: node.rdev,
        size: node.size,
        blocks: blocks(node),
        atime_ns: node.atime.0,
        mtime_ns: node.mtime.0,
        ctime_ns: node.ctime.0,
        is_fixed: false,
    }
}

/// Space used, in units of 512 bytes: holes of a plain file use none.
fn blocks(node: &Node) -> u64 {
    let used = match (node.node_type, node.class) {
        (NodeType::File, Class::Plain) => stored_bytes(node),
        _ => node.size,
    };
    used.div_ceil(512)
}

impl WorkTree {
    /// The entry of any node, as the holder of `handle` sees it.
    pub(in crate::tree) fn attributes(
        &self,
        caller: &Caller,
        ino: Ino,
        handle: Option<Handle>,
    ) -> Answer<Entry> {
        if let Some(computed) = Computed::of(ino) {
            let viewer = self.viewer(caller);
            let entry = self.read(|read| match self.is_gone(read, computed)? {
                true => Ok(None),
                false => self.computed_entry(read, &viewer, computed).map(Some),
            });
            return entry?.ok_or(Errno::ESTALE);
        }
        if let Some(told) = self.teller(caller).and_then(|stage| stage.getattr(caller, ino)) {
            return Ok(told);
        }
        let shown = |read: &dyn Read| match read.node(ino)? {
            Some(node) => self.shown(read, caller, &node).map(Some),
            None => Ok(None),
        };
        let attr = self.glance(shown)?.ok_or(Rule::Gone.errno(Door::Handle))?;
        Ok(self.told_by(caller, handle, attr, CACHE_TTL))
    }

    /// The entry of a computed node.
    pub(in crate::tree) fn computed_entry(
        &self,
        read: &dyn Read,
        viewer: &Viewer,
        computed: Computed,
    ) -> Result<Entry, StoreError> {
        let size = match computed {
            Computed::Events => events::size(read)?,
            Computed::Metrics => self.engine.metrics(read)?.len() as u64,
            link if link.is_link() => {
                self.link_target(read, link)?.map_or(0, |target| target.as_bytes().len() as u64)
            }
            file if !file.is_dir() => computed::render(read, viewer, file)?.len() as u64,
            _ => 0,
        };
        let mut attr = self.computed_attr(computed, size);
        match computed {
            Computed::Ready(dir) => {
                take_over(&mut attr, read, self.shown_as_ready(read, dir)?)?;
                if viewer.shows_roles {
                    attr.mode = for_roles(attr.mode);
                }
            }
            Computed::FileWhy(file) => {
                take_over(&mut attr, read, file)?;
                attr.mode &= computed.mode();
            }
            Computed::UnmadeWhy(key) => {
                attr.is_fixed = true;
                attr.uid = why::refusal(read, key)?.map_or(attr.uid, |row| row.uid);
            }
            Computed::Past(g) => {
                if let Some(at) = history::saved_at(read, g)? {
                    (attr.atime_ns, attr.mtime_ns, attr.ctime_ns) = (at.0, at.0, at.0);
                }
            }
            Computed::Rejected(key) => {
                attr.uid = read.rejected(key)?.map_or(attr.uid, |kept| kept.uid);
            }
            _ => {}
        }
        let is_ready = matches!(computed, Computed::Ready(_));
        let name_ttl = if is_ready { READY_TTL } else { Duration::ZERO };
        Ok(Entry { name_ttl, ..Entry::new(attr, Duration::ZERO) })
    }

    /// Whether a computed node is not there any more, of which a kernel may have the name: it is to look that up again.
    pub(in crate::tree) fn is_gone(
        &self,
        read: &dyn Read,
        computed: Computed,
    ) -> Result<bool, StoreError> {
        match computed {
            link if link.is_link() => Ok(self.link_target(read, link)?.is_none()),
            Computed::Ready(dir) => Ok(self.workspace_of(read, dir)?.is_none()),
            _ => Ok(false),
        }
    }

    fn shown_as_ready(&self, read: &dyn Read, workspace: Ino) -> Result<Ino, StoreError> {
        match self.workspace_of(read, workspace)? {
            Some(found) => shown_as_ready(read, &found, workspace, self.engine.now()),
            None => Ok(workspace),
        }
    }

    /// The entry of a computed link that leads to `target`.
    pub(in crate::tree) fn link_entry(&self, link: Computed, target: &FileName) -> Entry {
        let attr = self.computed_attr(link, target.as_bytes().len() as u64);
        Entry::new(attr, Duration::ZERO)
    }

    fn computed_attr(&self, computed: Computed, size: u64) -> Attr {
        let (node_type, mode, nlink) = match computed {
            link if link.is_link() => (NodeType::Symlink, 0o777, 1),
            dir if dir.is_dir() => (NodeType::Directory, dir.mode(), 2),
            file => (NodeType::File, file.mode(), 1),
        };
        Attr {
            ino: computed.ino(),
            node_type,
            mode,
            nlink,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            rdev: 0,
            size,
            blocks: size.div_ceil(512),
            atime_ns: self.started.0,
            mtime_ns: self.started.0,
            ctime_ns: self.started.0,
            is_fixed: computed.is_control(),
        }
    }
}

/// Moving something out of `ready/` is moving it out of the directory in which it lies, and `X.why` quotes
/// what was written to X: who may do the one may do the other.
fn take_over(attr: &mut Attr, read: &dyn Read, of: Ino) -> Result<(), StoreError> {
    if let Some(node) = read.node(of)? {
        (attr.mode, attr.uid, attr.gid) = (node.mode, node.uid, node.gid);
    }
    Ok(())
}
