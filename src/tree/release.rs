//! The end of open files: by RELEASE, or with their mount.
//!
//! What must stay true: whatever an open file counts in (writers, open inodes, holds, waiters) ends with
//! it. Deliberately not here: judging what was written, which `flush` does before, unless that was put off
//! (`inherited`).

use workfs_mount::{Handle, MountId, Reply};

use crate::numbers::Ino;

use super::WorkTree;
use super::handles::Open;

impl WorkTree {
    /// A mount has ended: so have its handles, of which its kernel may have told nothing more. To be called before
    /// the hub forgets the mount, and after: what was asked for by it may just be opened, and nothing is later.
    pub fn end_mount(&self, mount: MountId) {
        for (ino, handle) in self.handles.of_mount(mount) {
            self.release_file(ino, handle);
        }
    }

    pub(super) fn release_file(&self, ino: Ino, handle: Handle) {
        let Some(open) = self.handles.remove(handle) else { return };
        let staged = match &*open {
            Open::Staged(staged) => staged,
            Open::Plain { wrote, .. } => return self.release_plain(ino, wrote),
            Open::Hold(hold) => return self.end_hold(hold),
            Open::Wait(_) => return self.waits.closed(handle),
            Open::Fixed(_)
            | Open::Events
            | Open::Directory(_)
            | Open::Short(_)
            | Open::Ready(_) => return,
        };
        // A handle that others opened meanwhile, or its maker once more, is not the one that is waited for.
        if self.unborn.has(ino) && !self.handles.is_open(ino) {
            self.born(ino);
        }
        let staged = staged.lock();
        let (is_unsaved, emptied) = (staged.unsaved.is_any(), staged.emptied);
        if let Some(by) = staged.put_off.filter(|_| is_unsaved) {
            return self.judge_now(&by, (ino, &open), staged, Reply::new(|_| {}));
        }
        let under = staged.fence.clone();
        drop(staged);
        if let Some(emptied) = emptied {
            return self.save_emptied(ino, open, emptied);
        }
        if is_unsaved {
            // `flush` comes before every release, so that only a write through a mapping that
            // outlived its descriptor gets here. Nobody would hear a verdict.
            tracing::warn!(ino = ino.0, "bytes written after the last close were dropped");
            self.end_writing(ino, under.as_ref());
        }
    }
}
