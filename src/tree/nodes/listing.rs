//! Listing a directory: in name order, so that a listing goes on after any name however much the
//! directory changes meanwhile. Each reply is of one snapshot and reads no more names than fit. A plain
//! directory of few names is listed otherwise (`kept_listing`), and so is a computed one (`computed/listing`).

use parking_lot::Mutex;
use workfs_mount::{Attr, Caching, Caller, Detail, DirEntry, Errno, Handle, Opened};

use crate::names::{AGENTS_FILE, Dentry, FileName};
use crate::numbers::Ino;
use crate::refusal::Door;
use crate::store::{NodeKind, Read, StoreError};
use crate::tree::computed::Computed;
use crate::tree::computed::listing::ComputedNames;
use crate::tree::handles::Open;
use crate::tree::{Answer, WorkTree};

use super::attr::attr;
use super::cursor::FIRST_COOKIE;

impl WorkTree {
    pub(in crate::tree) fn open_directory(&self, caller: &Caller, dir: Ino) -> Answer<Opened> {
        let held = self.handles.hold(dir);
        let (open, caching) = match Computed::of(dir) {
            Some(ready @ Computed::Ready(_)) => {
                if self.read(|read| self.is_gone(read, ready))? {
                    return Err(Errno::ESTALE);
                }
                (Open::Ready(Mutex::default()), Caching::Direct)
            }
            Some(_) => (Open::Computed(ComputedNames::default()), Caching::Direct),
            None => match self.open_short(caller, dir)? {
                Some(short) => {
                    let caching = short.caching();
                    (Open::Short(short), caching)
                }
                None => (Open::Directory(Mutex::default()), Caching::Direct),
            },
        };
        let handle = self.handles.insert(caller, held, open);
        let handle = handle.map_err(|refusal| refusal.rule.errno(Door::Name))?;
        Ok(Opened { handle, caching })
    }

    pub(in crate::tree) fn list(
        &self,
        caller: &Caller,
        dir: Ino,
        (handle, cookie, detail): (Handle, u64, Detail),
        emit: &mut dyn FnMut(DirEntry) -> bool,
    ) -> Answer<()> {
        let open = self.handles.get(handle).ok_or(Errno::EBADF)?;
        let mut cursor = match (&*open, Computed::of(dir)) {
            (Open::Short(short), _) => return self.list_short(caller, (dir, short), cookie, emit),
            (Open::Computed(names), Some(computed)) => {
                return self.list_computed(caller, (computed, names), cookie, emit);
            }
            (Open::Directory(cursor), _) => cursor.lock(),
            (Open::Ready(cursor), Some(Computed::Ready(dir))) => {
                let mut cursor = cursor.lock();
                let listed = self.list_ready(caller, dir, &mut cursor, cookie, emit);
                cursor.count(&self.pins, caller.uid);
                return listed;
            }
            _ => return Err(Errno::ENOTDIR),
        };
        if cookie >= FIRST_COOKIE && cursor.end == Some(cookie) {
            return Ok(());
        }
        let (mut at, after) = cursor.start(cookie);
        let mut skip = cookie.saturating_sub(at);
        let again = cursor.listed_beyond(cookie);
        let listed = self.read(|read| {
            let mut full = false;
            let mut each = |name: FileName, kind: NodeKind, attr: Attr| {
                let Some(ttl) = self.seen_for(&kind, caller) else { return true };
                if self.is_at_root(caller, Dentry::of(dir, &name)) {
                    return true;
                }
                let Some((place, had_it)) = cursor.place(&name, at, again) else { return true };
                at = place;
                if skip > 0 {
                    skip -= 1;
                    return true;
                }
                full = !emit(DirEntry { name: name.as_bytes().to_vec(), attr, cookie: at, ttl });
                if !full && !had_it {
                    cursor.recent.push((at, name));
                }
                !full
            };
            match detail {
                Detail::Names => read.list_names(dir, after.as_ref(), &mut |(name, kind)| {
                    each(name, kind, Attr::bare(kind.ino, kind.node_type))
                })?,
                Detail::Attributes => read.list(dir, after.as_ref(), &mut |(name, node)| {
                    // The callback's answer is no place for a failure: the kernel asks again.
                    let shown = self.shown(read, caller, &node).unwrap_or_else(|_| attr(&node));
                    each(name, node.kind(), shown)
                })?,
            }
            if !full {
                cursor.end = self.list_last(read, (caller, dir), (at, cookie), &mut *emit)?;
            }
            Ok(())
        });
        cursor.count(&self.pins, caller.uid);
        listed
    }

    /// What is computed comes last: `AGENTS.md` in the root, and `ready/` in a workspace, where no stored
    /// file has its name. `at` is the last stored name's cookie, `cookie` the last that the
    /// reader has had. Gives the last cookie, if the reader has all now.
    fn list_last(
        &self,
        read: &dyn Read,
        (caller, dir): (&Caller, Ino),
        (at, cookie): (u64, u64),
        emit: &mut dyn FnMut(DirEntry) -> bool,
    ) -> Result<Option<u64>, StoreError> {
        const LAST: u64 = 1 << 62;
        let mut end = cookie.max(at);
        let mut found = Vec::new();
        if dir == self.root(caller) {
            // PROOF: a literal that is a file name.
            found.push((FileName::new(AGENTS_FILE).expect("a file name"), Computed::AgentsMd));
        }
        if let Some(workspace) = self.workspace_of(read, dir)? {
            found.push((workspace.binding.kind.order().dir.clone(), Computed::Ready(dir)));
        }
        if found.is_empty() {
            return Ok(Some(end));
        }
        let viewer = self.viewer(caller);
        let mut own = LAST;
        for (name, computed) in found {
            if !self.is_at_root(caller, Dentry::of(dir, &name))
                && read.lookup(dir, &name)?.is_some()
            {
                continue;
            }
            if own > end {
                let entry = self.computed_entry(read, &viewer, computed)?;
                let (name, attr, ttl) = (name.as_bytes().to_vec(), entry.attr, entry.ttl);
                if !emit(DirEntry { name, attr, cookie: own, ttl }) {
                    return Ok(None);
                }
                end = own;
            }
            own += 1;
        }
        Ok(Some(end))
    }
}
