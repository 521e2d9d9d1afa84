//! Directory listings: `.` and `..` in front of what the tree emits.
//!
//! What must stay true: cookie 1 is `.`, cookie 2 is `..`, the tree's own are greater than 2, so
//! that a listing can go on anywhere. In a listing with attributes these two carry no lookup: the
//! kernel passes them over by name (`fuse_direntplus_link`), so that nothing is to be forgotten
//! for them, and their attributes need not be true. Deliberately not here: caching of listings.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use fuser::{ReplyDirectory, ReplyDirectoryPlus};

use super::answer::{self, GENERATION};
use super::times::Operation;
use super::view::{View, file_type};
use crate::errno::Errno;
use crate::ids::{Handle, Ino};
use crate::kernel::gate::Gate;
use crate::session::calls::Calls;
use crate::tree::{Attr, Caller, Detail, DirEntry, NodeType, Tree};

/// Where a listing is to go on.
pub(crate) struct Place {
    /// The directory.
    pub(crate) ino: Ino,
    /// Its handle.
    pub(crate) handle: Handle,
    /// The cookie of the last entry the reader had, or 0.
    pub(crate) cookie: u64,
}

/// What a listing answers that a tree has given up (`None`: by a panic), where it has told names before: those. The
/// kernel then knows what was noted as told, and hears of the failure when it asks for more.
fn ended(listed: Option<Result<(), Errno>>, has_told: bool) -> Result<(), Errno> {
    if has_told { Ok(()) } else { listed.unwrap_or(Err(Errno::EIO)) }
}

/// Answers with names and types.
pub(crate) fn plain(
    calls: &Calls,
    caller: &Caller,
    place: &Place,
    view: View,
    mut buffer: ReplyDirectory,
) {
    // Whether it has any of the tree's.
    let mut has_told = false;
    let listed = calls.tell(Operation::Readdir, |tree| {
        list(tree, caller, (place, Detail::Names, view), &mut |entry| {
            let name = OsStr::from_bytes(&entry.name);
            let kind = file_type(entry.attr.node_type);
            let full = buffer.add(view.number(entry.attr.ino), entry.cookie, kind, name);
            has_told |= !full && entry.cookie > 2;
            !full
        })
    });
    match ended(listed, has_told) {
        Ok(()) => buffer.ok(),
        Err(error) => buffer.error(answer::errno(error)),
    }
}

/// Answers with names and attributes; each entry that fits counts as one lookup. Those of a restless
/// directory the kernel asks for once more when they are used.
pub(crate) fn with_attributes(
    calls: &Calls,
    caller: &Caller,
    place: &Place,
    (view, gate): (View, &Gate),
    mut buffer: ReplyDirectoryPlus,
) {
    let (is_restless, mut has_told) = (gate.is_restless(place.ino), false);
    let listed = calls.tell(Operation::Readdirplus, |tree| {
        list(tree, caller, (place, Detail::Attributes, view), &mut |entry| {
            let name = OsStr::from_bytes(&entry.name);
            let attr = view.shown(&entry.attr);
            // What is told here counts by when the kernel reads it.
            let ttl = if is_restless { Duration::ZERO } else { entry.ttl };
            let full = buffer.add(attr.ino, entry.cookie, name, &ttl, &attr, GENERATION);
            if !full && entry.cookie > 2 {
                gate.note(entry.attr.ino);
                has_told = true;
            }
            !full
        })
    });
    gate.note_listing(place.handle);
    match ended(listed, has_told) {
        Ok(()) => buffer.ok(),
        Err(error) => buffer.error(answer::errno(error)),
    }
}

fn list(
    tree: &dyn Tree,
    caller: &Caller,
    (place, detail, view): (&Place, Detail, View),
    emit: &mut dyn FnMut(DirEntry) -> bool,
) -> Result<(), Errno> {
    if place.cookie < 1 && !emit(dot(b".", place.ino, 1)) {
        return Ok(());
    }
    if place.cookie < 2 {
        // Above a mount's root there is nothing of the mount.
        let above = if place.ino == view.root { view.root } else { tree.parent(place.ino)? };
        if !emit(dot(b"..", above, 2)) {
            return Ok(());
        }
    }
    let cookie = if place.cookie <= 2 { 0 } else { place.cookie };
    tree.readdir(caller, place.ino, place.handle, cookie, detail, emit)
}

fn dot(name: &[u8], ino: Ino, cookie: u64) -> DirEntry {
    let attr = Attr::bare(ino, NodeType::Directory);
    DirEntry { name: name.to_vec(), attr, cookie, ttl: Duration::ZERO }
}
