//! A small client on top of the tree's trait: paths, whole reads, answers as names of errnos.
//!
//! What the kernel checks before it asks (the type of what is opened, each step of a path) is
//! checked here; what a second mount could bring about behind the kernel's back is not.

use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use workfs::tree::WorkTree;
use workfs_mount::{
    Attr, Caller, Detail, DirEntry, Entry, Errno, Handle, Ino, MountId, NewNode, NodeType,
    OpenFlags, ROOT, RenameMode, Reply, SetAttr, Tree, WriteAt, XattrMode,
};

/// What an operation gives: its result or the errno's name.
pub type Answer<T> = Result<T, &'static str>;

/// A process on a mount.
#[derive(Clone)]
pub struct Client {
    tree: Arc<WorkTree>,
    caller: Caller,
}

/// An open file.
#[derive(Clone, Copy, Debug)]
pub struct File {
    pub ino: Ino,
    pub handle: Handle,
    /// With O_APPEND, which the kernel tells with each write.
    pub append: bool,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    pub write: bool,
    pub truncate: bool,
    pub append: bool,
    pub create: bool,
}

/// Waits for the answer that a reply brings.
fn wait<T: Send + 'static>(call: impl FnOnce(Reply<T>)) -> Answer<T> {
    let (send, receive) = sync_channel(1);
    call(Reply::new(move |answer| send.send(answer).unwrap()));
    receive.recv().unwrap().map_err(Errno::name)
}

/// The directory and the last name of a path.
pub fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

impl Client {
    /// Process `pid` on mount `mount`; 0 is a process that the kernel does not name.
    pub fn new(tree: Arc<WorkTree>, mount: u32, pid: u32) -> Client {
        let files = Some(u64::from(pid));
        let (mount, nonblocking) = (MountId(mount), false);
        Client { tree, caller: Caller { mount, uid: 1000, gid: 1000, pid, files, nonblocking } }
    }

    /// The same of another user.
    pub fn of_user(self, uid: u32) -> Client {
        Client { caller: Caller { uid, gid: uid, ..self.caller }, ..self }
    }

    fn lookup(&self, parent: Ino, name: &str) -> Answer<Entry> {
        let found = self.tree.lookup(&self.caller, parent, OsStr::new(name));
        found.and_then(|found| found.ok_or(Errno::ENOENT)).map_err(Errno::name)
    }

    /// What lies at a path; `""` is the root.
    pub fn stat(&self, path: &str) -> Answer<Attr> {
        let mut at = self.getattr(ROOT)?;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            if at.node_type != NodeType::Directory {
                return Err("ENOTDIR");
            }
            at = self.lookup(at.ino, name)?.attr;
        }
        Ok(at)
    }

    pub fn getattr(&self, ino: Ino) -> Answer<Attr> {
        self.tree.getattr(&self.caller, ino, None).map(|entry| entry.attr).map_err(Errno::name)
    }

    /// The directory that a path's last name is in.
    fn parent<'p>(&self, path: &'p str) -> Answer<(Ino, &'p OsStr)> {
        let (dir, name) = split(path);
        let dir = self.stat(dir)?;
        if dir.node_type != NodeType::Directory {
            return Err("ENOTDIR");
        }
        Ok((dir.ino, OsStr::new(name)))
    }

    fn make(&self, path: &str, mode: u32, node: NewNode) -> Answer<()> {
        let (parent, name) = self.parent(path)?;
        wait(|reply| self.tree.make(&self.caller, parent, name, mode, node, reply)).map(drop)
    }

    pub fn mkdir(&self, path: &str) -> Answer<()> {
        self.make(path, 0o755, NewNode::Directory)
    }

    pub fn symlink(&self, target: &str, path: &str) -> Answer<()> {
        self.make(path, 0o777, NewNode::Symlink(target.into()))
    }

    pub fn unlink(&self, path: &str) -> Answer<()> {
        let (parent, name) = self.parent(path)?;
        wait(|reply| self.tree.unlink(&self.caller, parent, name, reply))
    }

    pub fn rmdir(&self, path: &str) -> Answer<()> {
        let (parent, name) = self.parent(path)?;
        wait(|reply| self.tree.rmdir(&self.caller, parent, name, reply))
    }

    pub fn link(&self, from: &str, to: &str) -> Answer<()> {
        let ino = self.stat(from)?.ino;
        let (parent, name) = self.parent(to)?;
        wait(|reply| self.tree.link(&self.caller, ino, parent, name, reply)).map(drop)
    }

    pub fn rename(&self, from: &str, to: &str, mode: RenameMode) -> Answer<()> {
        let (from, to) = (self.parent(from)?, self.parent(to)?);
        wait(|reply| self.tree.rename(&self.caller, from, to, mode, reply))
    }

    /// Opens as the kernel does: where the inode is gone since it was looked up, it looks again.
    pub fn open(&self, path: &str, flags: Flags) -> Answer<File> {
        match self.open_once(path, flags) {
            Err("ESTALE") => self.open_once(path, flags),
            answer => answer,
        }
    }

    fn open_once(&self, path: &str, flags: Flags) -> Answer<File> {
        let (parent, name) = self.parent(path)?;
        let open = OpenFlags {
            read: true,
            write: flags.write,
            truncate: flags.truncate,
            append: flags.append,
            exclusive: false,
            execute: false,
        };
        match self.stat(path) {
            Err("ENOENT") if flags.create => {
                let made = wait(|reply| {
                    self.tree.create(&self.caller, parent, name, 0o644, open, reply);
                });
                made.map(|(entry, opened)| File {
                    ino: entry.attr.ino,
                    handle: opened.handle,
                    append: flags.append,
                })
            }
            Err(errno) => Err(errno),
            Ok(attr) => match attr.node_type {
                NodeType::Directory => Err("EISDIR"),
                NodeType::Symlink => Err("ELOOP"),
                _ => self.open_ino(attr.ino, open),
            },
        }
    }

    pub fn open_ino(&self, ino: Ino, flags: OpenFlags) -> Answer<File> {
        let opened = wait(|reply| self.tree.open(&self.caller, ino, flags, reply))?;
        Ok(File { ino, handle: opened.handle, append: flags.append })
    }

    pub fn write(&self, file: File, offset: u64, data: &[u8]) -> Answer<()> {
        let File { ino, handle, append } = file;
        let at = if append { WriteAt::End } else { WriteAt::Offset(offset) };
        let written = wait(|reply| self.tree.write(&self.caller, ino, handle, at, data, reply))?;
        assert_eq!(written as usize, data.len(), "a short write");
        Ok(())
    }

    /// The whole of an open file, as its handle sees it.
    pub fn read(&self, file: File) -> Answer<Vec<u8>> {
        let File { ino, handle, .. } = file;
        wait(|reply| self.tree.read(&self.caller, ino, handle, 0, 1 << 20, reply))
    }

    pub fn flush(&self, file: File) -> Answer<()> {
        wait(|reply| self.tree.flush(&self.caller, file.ino, file.handle, reply))
    }

    pub fn fsync(&self, file: File) -> Answer<()> {
        wait(|reply| self.tree.fsync(&self.caller, file.ino, file.handle, reply))
    }

    pub fn release(&self, file: File) {
        self.tree.release(file.ino, file.handle);
    }

    /// Opens, reads and closes.
    pub fn cat(&self, path: &str) -> Answer<Vec<u8>> {
        let file = self.open(path, Flags::default())?;
        let text = self.read(file);
        self.release(file);
        text
    }

    /// Opens with truncation, writes, closes; the first error is the answer.
    pub fn put(&self, path: &str, text: &[u8]) -> Answer<()> {
        let flags = Flags { write: true, truncate: true, create: true, append: false };
        let file = self.open(path, flags)?;
        let written = self.write(file, 0, text);
        let closed = self.flush(file);
        self.release(file);
        written.and(closed)
    }

    pub fn set(&self, ino: Ino, handle: Option<Handle>, set: SetAttr) -> Answer<()> {
        wait(|reply| self.tree.setattr(&self.caller, ino, handle, set, reply)).map(drop)
    }

    pub fn truncate(&self, path: &str, size: u64) -> Answer<()> {
        let attr = self.stat(path)?;
        match attr.node_type {
            NodeType::Directory => Err("EISDIR"),
            NodeType::Symlink => Err("ELOOP"),
            _ => self.set(attr.ino, None, SetAttr { size: Some(size), ..SetAttr::default() }),
        }
    }

    pub fn ftruncate(&self, file: File, size: u64) -> Answer<()> {
        self.set(file.ino, Some(file.handle), SetAttr { size: Some(size), ..SetAttr::default() })
    }

    pub fn chmod(&self, path: &str, mode: u32) -> Answer<()> {
        let ino = self.stat(path)?.ino;
        self.set(ino, None, SetAttr { mode: Some(mode), ..SetAttr::default() })
    }

    pub fn set_xattr(&self, path: &str, name: &str, value: &[u8], mode: XattrMode) -> Answer<()> {
        self.set_xattr_ino(self.stat(path)?.ino, name, value, mode)
    }

    pub fn set_xattr_ino(&self, ino: Ino, name: &str, value: &[u8], mode: XattrMode) -> Answer<()> {
        let name = OsStr::new(name);
        wait(|reply| self.tree.setxattr(&self.caller, ino, name, value, mode, reply))
    }

    pub fn remove_xattr(&self, path: &str, name: &str) -> Answer<()> {
        let (ino, name) = (self.stat(path)?.ino, OsStr::new(name));
        wait(|reply| self.tree.removexattr(&self.caller, ino, name, reply))
    }

    pub fn xattrs(&self, ino: Ino) -> Answer<Vec<(String, Vec<u8>)>> {
        let names = self.tree.listxattr(&self.caller, ino).map_err(Errno::name)?;
        let named = names.into_iter().map(|name| {
            let name = String::from_utf8(name).unwrap();
            let value = self.tree.getxattr(&self.caller, ino, OsStr::new(&name));
            value.map(|value| (name, value)).map_err(Errno::name)
        });
        named.collect()
    }

    // What only another mount can ask for, which has not heard yet that something is gone.

    pub fn link_ino(&self, ino: Ino, to: &str) -> Answer<()> {
        let (parent, name) = self.parent(to)?;
        wait(|reply| self.tree.link(&self.caller, ino, parent, name, reply)).map(drop)
    }

    pub fn rename_into(&self, from: &str, to: Ino, name: &str) -> Answer<()> {
        let (from, to) = (self.parent(from)?, (to, OsStr::new(name)));
        wait(|reply| self.tree.rename(&self.caller, from, to, RenameMode::Replace, reply))
    }

    pub fn make_in(&self, dir: Ino, name: &str) -> Answer<()> {
        let (name, node) = (OsStr::new(name), NewNode::Directory);
        wait(|reply| self.tree.make(&self.caller, dir, name, 0o755, node, reply)).map(drop)
    }

    pub fn create_in(&self, dir: Ino, name: &str) -> Answer<()> {
        let (name, flags) = (OsStr::new(name), OpenFlags { write: true, ..OpenFlags::default() });
        wait(|reply| self.tree.create(&self.caller, dir, name, 0o644, flags, reply)).map(drop)
    }

    pub fn rename_in(&self, dir: Ino, from: &str, to: &str, mode: RenameMode) -> Answer<()> {
        let (from, to) = ((dir, OsStr::new(from)), (dir, OsStr::new(to)));
        wait(|reply| self.tree.rename(&self.caller, from, to, mode, reply))
    }

    pub fn unlink_in(&self, dir: Ino, name: &str) -> Answer<()> {
        wait(|reply| self.tree.unlink(&self.caller, dir, OsStr::new(name), reply))
    }

    pub fn readlink(&self, ino: Ino) -> Answer<Vec<u8>> {
        self.tree.readlink(&self.caller, ino).map_err(Errno::name)
    }

    /// All entries of a directory, fetched in pages of `page`.
    pub fn list(&self, dir: Ino, page: usize) -> Answer<Vec<DirEntry>> {
        let handle = self.tree.opendir(&self.caller, dir).map_err(Errno::name)?.handle;
        let mut entries: Vec<DirEntry> = Vec::new();
        loop {
            let cookie = entries.last().map_or(0, |entry| entry.cookie);
            let mut took = 0;
            let listed = self.tree.readdir(
                &self.caller,
                dir,
                handle,
                cookie,
                Detail::Attributes,
                &mut |entry| {
                    // Like the kernel: the entry that does not fit is offered and not taken.
                    if took == page {
                        return false;
                    }
                    took += 1;
                    entries.push(entry);
                    true
                },
            );
            listed.map_err(Errno::name)?;
            if took == 0 {
                break;
            }
        }
        self.tree.releasedir(handle);
        Ok(entries)
    }

    /// Waits until everything that was asked before is done, also what nobody waits for.
    pub fn barrier(&self) {
        wait(|reply| self.tree.fsyncdir(&self.caller, ROOT, reply)).unwrap();
    }
}
