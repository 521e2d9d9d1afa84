//! What a file has besides its content, given to what was written of it.
//!
//! What must stay true: by an export nobody gets another's rights, neither who makes it, nor who
//! finds it, nor whose directory it goes to: attributes are given to the very thing that was
//! written, and not to what has its name by then.

use std::os::fd::BorrowedFd;

use rustix::fs::{
    AtFlags, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags, chownat, fchmod, fchown, fsetxattr,
    futimens, utimensat,
};

use crate::names::{FileName, TreePath};
use crate::numbers::UnixNanos;
use crate::store::{Node, NodeType};

use super::target::is_of_one_name;
use super::{Broken, Export, Io};

/// The bits by which a program runs as its file's owner, or as its group.
const SET_IDS: u32 = 0o6000;
const SET_GROUP_ID: u32 = 0o2000;

/// What was written.
#[derive(Clone, Copy)]
pub(super) enum Written<'w> {
    /// A file or directory, which is open.
    Open(BorrowedFd<'w>),
    /// A symbolic link of this name, which has no bits.
    Link(BorrowedFd<'w>, &'w FileName),
}

impl Export<'_, '_> {
    /// Owner (where that is allowed), extended attributes, permissions and time, in the order in
    /// which they hold.
    pub(super) fn attributes(
        &mut self,
        written: Written<'_>,
        node: &Node,
        path: &TreePath,
    ) -> Io<()> {
        match self.give(written, node, path) {
            Err(Broken::Target(error)) if is_of_one_name(&error) => {
                self.leave_out(path, format!("its owner, mode or times: {error}"));
                Ok(())
            }
            given => given,
        }
    }

    fn give(&mut self, written: Written<'_>, node: &Node, path: &TreePath) -> Io<()> {
        let owner = (Some(Uid::from_raw(node.uid)), Some(Gid::from_raw(node.gid)));
        let times = times(node.atime, node.mtime);
        match written {
            Written::Open(fd) => {
                if self.root {
                    fchown(fd, owner.0, owner.1)?;
                }
                let kept = self.xattrs(fd, node, path);
                self.or_leave_out(path, kept)?;
                fchmod(fd, Mode::from_raw_mode(self.mode(node)))?;
                futimens(fd, &times)?;
            }
            Written::Link(dir, name) => {
                if self.root {
                    chownat(dir, name.as_bytes(), owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW)?;
                }
                utimensat(dir, name.as_bytes(), &times, AtFlags::SYMLINK_NOFOLLOW)?;
            }
        }
        Ok(())
    }

    /// Who exports without root owns what comes of it: a set-user-id bit of another's file would lend them that
    /// user's rights.
    fn mode(&self, node: &Node) -> u32 {
        let is_own = |id: u32, own: u32| self.root || id == own;
        let user = is_own(node.uid, rustix::process::geteuid().as_raw());
        let group = is_own(node.gid, rustix::process::getegid().as_raw());
        match node.node_type {
            _ if !user => node.mode & !SET_IDS,
            NodeType::Directory => node.mode,
            _ if !group => node.mode & !SET_GROUP_ID,
            _ => node.mode,
        }
    }

    fn xattrs(&mut self, fd: BorrowedFd<'_>, node: &Node, path: &TreePath) -> Io<()> {
        for name in self.read.xattr_names(node.ino)? {
            let value = self.read.xattr(node.ino, &name)?.unwrap_or_default();
            if let Err(errno) = fsetxattr(fd, &name[..], &value, XattrFlags::empty()) {
                let name = crate::names::printable(&name);
                self.leave_out(path, format!("its attribute `{name}`: {errno}"));
            }
        }
        Ok(())
    }
}

pub(super) fn times(accessed: UnixNanos, modified: UnixNanos) -> Timestamps {
    let time = |at: UnixNanos| Timespec {
        tv_sec: at.0.div_euclid(1_000_000_000),
        tv_nsec: at.0.rem_euclid(1_000_000_000),
    };
    Timestamps { last_access: time(accessed), last_modification: time(modified) }
}
