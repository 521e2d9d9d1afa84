//! Listing a directory: in name order, so that a listing goes on after any name however much the
//! directory changes meanwhile. Each reply is of one snapshot and reads no more names than fit. A plain
//! directory of few names is listed otherwise (`kept_listing`).

use parking_lot::Mutex;
use workfs_mount::{Attr, Caching, Caller, Detail, DirEntry, Errno, Handle, Opened};

use crate::limits::LISTING_REMEMBERED_MAX;
use crate::names::FileName;
use crate::numbers::Ino;
use crate::refusal::Door;
use crate::store::{NodeKind, Read, StoreError};

use super::attr::attr;
use super::computed::{self, Computed};
use super::handles::{Cursor, Open};
use super::{Answer, WorkTree};

/// Cookies 1 and 2 are `.` and `..`.
pub(super) const FIRST_COOKIE: u64 = 3;

impl WorkTree {
    pub(super) fn open_directory(&self, caller: &Caller, dir: Ino) -> Answer<Opened> {
        let held = self.handles.hold(dir);
        let is_ready = matches!(Computed::of(dir), Some(Computed::Ready(_)));
        let (open, caching) = if is_ready {
            (Open::Ready(Mutex::default()), Caching::Direct)
        } else if let Some(short) = self.open_short(caller, dir)? {
            let caching = short.caching();
            (Open::Short(short), caching)
        } else {
            (Open::Directory(Mutex::default()), Caching::Direct)
        };
        let handle = self.handles.insert(caller, held, open);
        let handle = handle.map_err(|refusal| refusal.rule.errno(Door::Name))?;
        Ok(Opened { handle, caching })
    }

    pub(super) fn list(
        &self,
        caller: &Caller,
        dir: Ino,
        (handle, cookie, detail): (Handle, u64, Detail),
        emit: &mut dyn FnMut(DirEntry) -> bool,
    ) -> Answer<()> {
        let open = self.handles.get(handle).ok_or(Errno::EBADF)?;
        let mut cursor = match (&*open, Computed::of(dir)) {
            (Open::Short(short), _) => return self.list_short(dir, short, cookie, emit),
            (Open::Directory(cursor), _) => cursor.lock(),
            (Open::Ready(cursor), Some(Computed::Ready(dir))) => {
                return self.list_ready(caller, dir, &mut cursor.lock(), cookie, emit);
            }
            _ => return Err(Errno::ENOTDIR),
        };
        if let Some(computed) = Computed::of(dir) {
            return self.list_computed(caller, computed, cookie, emit);
        }
        if cookie >= FIRST_COOKIE && cursor.end == Some(cookie) {
            return Ok(());
        }
        let (mut at, after) = start(&mut cursor, cookie);
        let mut skip = cookie.saturating_sub(at);
        // Who went back hears again of the names that were listed, each at the place that it had; not of
        // those that came since, which have none.
        let listed = cursor.recent.len();
        let goes_back = cursor.recent.last().is_some_and(|(last, _)| *last > cookie);
        self.read(|read| {
            let mut full = false;
            let mut each = |name: FileName, kind: NodeKind, attr: Attr| {
                let Some(ttl) = self.seen_for(&kind, caller) else { return true };
                let known = match goes_back {
                    true => cursor.recent[..listed].binary_search_by(|(_, known)| known.cmp(&name)),
                    false => Err(listed),
                };
                at = match known {
                    Ok(index) => cursor.recent[index].0,
                    Err(index) if index < listed => return true,
                    Err(_) if goes_back => cursor.recent.last().map_or(at, |(last, _)| *last) + 1,
                    Err(_) if at < FIRST_COOKIE => FIRST_COOKIE,
                    Err(_) => at + 1,
                };
                if skip > 0 {
                    skip -= 1;
                    return true;
                }
                full = !emit(DirEntry { name: name.as_bytes().to_vec(), attr, cookie: at, ttl });
                if !full && known.is_err() {
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
        })
    }

    /// What is computed comes last, where no stored file has its name: `AGENTS.md` in the root,
    /// `ready/` in a workspace. `at` is the last stored name's cookie, `cookie` the last that the
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
            found.push((FileName::new("AGENTS.md").expect("a file name"), Computed::AgentsMd));
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
            if read.lookup(dir, &name)?.is_some() {
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
            entries.collect::<Result<Vec<_>, StoreError>>()
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

/// Where a listing goes on: after the name that has `cookie`, or, where that is not remembered any
/// more, after the nearest name before it.
pub(super) fn start<Key: Clone>(cursor: &mut Cursor<Key>, cookie: u64) -> (u64, Option<Key>) {
    if cookie < FIRST_COOKIE {
        *cursor = Cursor::default();
        return (0, None);
    }
    let index = |list: &[(u64, Key)]| list.partition_point(|(at, _)| *at <= cookie);
    if cursor.recent.len() > LISTING_REMEMBERED_MAX && index(&cursor.recent) == cursor.recent.len()
    {
        let gone = cursor.recent.drain(..LISTING_REMEMBERED_MAX / 2).next_back();
        cursor
            .older
            .extend(gone.filter(|(at, _)| cursor.older.last().is_none_or(|old| old.0 < *at)));
    }
    let last = index(&cursor.recent).checked_sub(1).map(|index| cursor.recent[index].clone());
    if let Some((at, name)) = last.as_ref().filter(|(at, _)| *at == cookie) {
        return (*at, Some(name.clone()));
    }
    // Of those that are remembered none has a gap before it: they are those from here on, and places are
    // counted from the nearest name before.
    cursor.recent.clear();
    cursor.older.truncate(index(&cursor.older));
    cursor.older.extend(last.filter(|(at, _)| cursor.older.last().is_none_or(|old| old.0 < *at)));
    match cursor.older.last().cloned() {
        Some((at, name)) => (at, Some(name)),
        None => (FIRST_COOKIE - 1, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a reader gets who has the name `cookie` and asks for `count` more; names are numbers, of
    /// which there are `names`, and the place of each is fixed by that.
    fn read(cursor: &mut Cursor<u64>, names: u64, cookie: u64, count: u64) -> Vec<u64> {
        let (at, after) = start(cursor, cookie);
        let skip = cookie.saturating_sub(at.max(FIRST_COOKIE - 1));
        let first = after.map_or(0, |name| name + 1) + skip;
        let got: Vec<u64> = (first..names.min(first + count)).collect();
        for name in &got {
            let place = name + FIRST_COOKIE;
            if cursor.recent.last().is_none_or(|(last, _)| *last < place) {
                cursor.recent.push((place, *name));
            }
        }
        got
    }

    #[test]
    fn whoever_goes_back_and_on_finds_each_name_at_its_place() {
        let names = 3 * LISTING_REMEMBERED_MAX as u64;
        let mut cursor = Cursor::default();
        let mut cookie = 0;
        loop {
            let got = read(&mut cursor, names, cookie, 100);
            let Some(last) = got.last() else { break };
            cookie = last + FIRST_COOKIE;
        }
        let mut place = 7;
        for nth in 0..500 {
            place = (place * 31 + nth) % (names - 1);
            let got = read(&mut cursor, names, place + FIRST_COOKIE, 1 + nth % 50);
            assert_eq!(got.first(), Some(&(place + 1)), "the {nth}th");
            let no_gap = cursor.recent.windows(2).all(|two| two[0].0 + 1 == two[1].0);
            assert!(no_gap, "the {nth}th");
        }
    }
}
