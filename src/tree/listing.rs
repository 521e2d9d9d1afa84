//! Listing a directory: in name order, page by page, so that a listing goes on after any name
//! however much the directory changes meanwhile.

use workfs_mount::{Caller, DirEntry, Errno, Handle};

use crate::limits::LISTING_PAGE;
use crate::names::FileName;
use crate::numbers::Ino;
use crate::store::Node;

use super::computed::{self, Computed};
use super::handles::{Cursor, Open};
use super::{Answer, WorkTree, attr};

/// Cookies 1 and 2 are `.` and `..`.
pub(super) const FIRST_COOKIE: u64 = 3;

impl WorkTree {
    pub(super) fn list(
        &self,
        caller: &Caller,
        dir: Ino,
        handle: Handle,
        cookie: u64,
        emit: &mut dyn FnMut(DirEntry) -> bool,
    ) -> Answer<()> {
        let open = self.handles.get(handle).ok_or(Errno::EBADF)?;
        let mut cursor = match (&*open, Computed::of(dir)) {
            (Open::Directory(cursor), _) => cursor.lock(),
            (Open::Ready(cursor), Some(Computed::Ready(dir))) => {
                return self.list_ready(dir, &mut cursor.lock(), cookie, emit);
            }
            _ => return Err(Errno::ENOTDIR),
        };
        if let Some(computed) = Computed::of(dir) {
            return self.list_computed(caller, computed, cookie, emit);
        }
        let (mut at, mut after) = start(&mut cursor, cookie);
        let mut skip = cookie.saturating_sub(at);
        cursor.recent.clear();
        loop {
            let page = self.page(dir, after.as_ref())?;
            let last_page = page.len() < LISTING_PAGE;
            for (name, node) in page {
                after = Some(name.clone());
                if self.is_hidden(&node, caller) {
                    continue;
                }
                at = if at < FIRST_COOKIE { FIRST_COOKIE } else { at + 1 };
                if skip > 0 {
                    skip -= 1;
                    continue;
                }
                let entry = DirEntry {
                    name: name.as_bytes().to_vec(),
                    attr: attr(&node),
                    cookie: at,
                    ttl: self.seen_entry(&node).ttl,
                };
                if !emit(entry) {
                    return Ok(());
                }
                cursor.recent.push((at, name));
            }
            if last_page {
                break;
            }
        }
        self.list_last((caller, dir), cookie.max(at), cookie, emit)
    }

    fn page(&self, dir: Ino, after: Option<&FileName>) -> Answer<Vec<(FileName, Node)>> {
        self.read(|read| {
            let mut page = Vec::new();
            read.list(dir, after, &mut |row| {
                page.push(row);
                page.len() < LISTING_PAGE
            })?;
            Ok(page)
        })
    }

    /// What is computed comes last, where no stored file has its name: `AGENTS.md` in the root,
    /// `ready/` in a workspace.
    fn list_last(
        &self,
        (caller, dir): (&Caller, Ino),
        at: u64,
        cookie: u64,
        emit: &mut dyn FnMut(DirEntry) -> bool,
    ) -> Answer<()> {
        const LAST: u64 = 1 << 62;
        let viewer = self.viewer(caller);
        let found = self.read(|read| {
            let mut found = Vec::new();
            if dir == self.root(caller) {
                // PROOF: a literal that is a file name.
                found.push((FileName::new("AGENTS.md").expect("a file name"), Computed::AgentsMd));
            }
            if let Some(workspace) = self.workspace_of(read, dir)? {
                found.push((workspace.binding.kind.order().dir.clone(), Computed::Ready(dir)));
            }
            let mut free = Vec::new();
            for (name, computed) in found {
                if read.lookup(dir, &name)?.is_none() {
                    free.push((name, self.computed_entry(read, &viewer, computed)?));
                }
            }
            Ok(free)
        })?;
        for ((name, entry), own) in found.into_iter().zip(LAST..) {
            let (name, attr, ttl) = (name.as_bytes().to_vec(), entry.attr, entry.ttl);
            if own > at && own > cookie && !emit(DirEntry { name, attr, cookie: own, ttl }) {
                break;
            }
        }
        Ok(())
    }

    fn list_computed(
        &self,
        caller: &Caller,
        dir: Computed,
        cookie: u64,
        emit: &mut dyn FnMut(DirEntry) -> bool,
    ) -> Answer<()> {
        let viewer = self.viewer(caller);
        let names = self.read(|read| {
            let names = computed::list(read, &viewer, &self.engine.config(), &self.pasts, dir)?;
            let entries = names.into_iter().map(|(name, computed)| {
                let entry = self.computed_entry(read, &viewer, computed)?;
                Ok((name, entry))
            });
            entries.collect::<Result<Vec<_>, crate::store::StoreError>>()
        })?;
        for ((name, entry), at) in names.into_iter().zip(FIRST_COOKIE..) {
            let name = name.as_bytes().to_vec();
            let entry = DirEntry { name, attr: entry.attr, cookie: at, ttl: entry.ttl };
            if at > cookie && !emit(entry) {
                break;
            }
        }
        Ok(())
    }
}

/// Where a listing goes on: after the name that has `cookie`, or, where that is not remembered,
/// after the nearest name before it.
pub(super) fn start<Key: Clone>(cursor: &mut Cursor<Key>, cookie: u64) -> (u64, Option<Key>) {
    if cookie < FIRST_COOKIE {
        *cursor = Cursor::default();
        return (0, None);
    }
    let before = |list: &[(u64, Key)]| {
        let index = list.partition_point(|(at, _)| *at <= cookie);
        index.checked_sub(1).map(|index| list[index].clone())
    };
    if let Some(last) = cursor.recent.last().cloned()
        && cursor.pages.last().is_none_or(|(at, _)| *at < last.0)
    {
        cursor.pages.push(last);
    }
    match before(&cursor.recent).or_else(|| before(&cursor.pages)) {
        Some((at, name)) => (at, Some(name)),
        None => (FIRST_COOKIE - 1, None),
    }
}
