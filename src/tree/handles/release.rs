//! The end of open files: by RELEASE, or with their mount.
//!
//! What must stay true: whatever an open file counts in (writers, open inodes, holds, waiters) ends with
//! it. Deliberately not here: judging what was written, which `flush` does before, unless that was put off
//! (`callers/inherited`), or it came by a mapping that was there longer than any descriptor.

use workfs_mount::{Handle, MountId, Reply};

use crate::numbers::Ino;
use crate::tree::WorkTree;

use super::Open;

impl WorkTree {
    /// A mount has ended: so have its handles, of which its kernel may have told nothing more. To be called before
    /// the hub forgets the mount, and after: what was asked for by it may just be opened, and nothing is later.
    pub fn end_mount(&self, mount: MountId) {
        for (ino, handle) in self.handles.of_mount(mount) {
            self.end_file(ino, handle, false);
        }
    }

    pub(in crate::tree) fn release_file(&self, ino: Ino, handle: Handle) {
        self.end_file(ino, handle, true);
    }

    /// `by_kernel`: all who had it have let go of it. Else it was cut off, perhaps in the middle of a save.
    fn end_file(&self, ino: Ino, handle: Handle, by_kernel: bool) {
        let counts = self.hub.open.counts(ino);
        let Some(open) = self.handles.remove(handle) else { return };
        let staged = match &*open {
            Open::Staged(staged) => staged,
            Open::Plain { wrote, .. } => return self.release_plain(ino, wrote, counts),
            Open::Hold(hold) => return self.end_hold(hold),
            Open::Wait(_) => return self.waits.closed(handle),
            Open::Fixed(_)
            | Open::Events
            | Open::Directory(_)
            | Open::Short(_)
            | Open::Computed(_)
            | Open::Ready(_) => return,
        };
        let staged = staged.lock();
        let (is_unsaved, emptied) = (staged.unsaved.is_any(), staged.what.emptied());
        let by = staged.put_off.or(staged.opened_by.filter(|_| by_kernel));
        if let (Some(by), Some(me)) = (by.filter(|_| is_unsaved), self.me()) {
            // Nobody hears the verdict but `why`. A new file is not seen before.
            let then = Reply::new(move |_| me.born_if_closed(ino));
            return self.judge_now(&by, (ino, &open), staged, then);
        }
        self.born_if_closed(ino);
        let writer = staged.writer();
        drop(staged);
        if let Some(emptied) = emptied {
            return self.save_emptied(ino, open, emptied);
        }
        if is_unsaved {
            tracing::warn!(ino = ino.0, "what was written and not closed ended with its mount");
            self.end_writing(ino, Some(writer));
        }
    }

    /// A handle that others opened meanwhile, or its maker once more, is not the one that is waited for.
    pub(in crate::tree) fn born_if_closed(&self, ino: Ino) {
        if self.unborn.has(ino) && !self.handles.is_open(ino) {
            self.born(ino);
        }
    }
}
