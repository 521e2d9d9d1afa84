//! Reading what is current when a lock is had.
//!
//! Who wants to change a file together with others opens it, waits for a lock of it, and only then reads. What must
//! stay true: by a handle that has neither read nor written before it has a lock one reads what was saved last
//! then, as if it were opened at that moment; by any other one what one has read stays.

use workfs_mount::Handle;

use crate::numbers::Ino;
use crate::tree::WorkTree;

use super::Open;
use super::open::Looked;

impl WorkTree {
    /// A lock was had through a handle. Who lets go of one may be the thread that makes all changes, and may have
    /// another handle in hand: nothing is waited for.
    pub(in crate::tree) fn look_again_when_locked(&self, ino: Ino, handle: Handle) {
        let Some(open) = self.handles.get(handle) else { return };
        let Open::Staged(staged) = &*open else { return };
        let Some((by, flags)) = staged.try_lock().and_then(|staged| staged.untouched()) else {
            return;
        };
        let ticket = self.hub.scopes.ticket();
        let looked = self.read(|read| self.look(ticket, read, &by, ino, flags));
        // What cannot be opened any more stays what it was.
        let Ok(Some(looked)) = looked else { return };
        if self.to_set_apart(&looked, ino, flags, true).is_some() {
            return;
        }
        let Looked::Open(mut now) = looked else { return };
        if now.count(&self.pins, by.uid).is_err() {
            return;
        }
        let Open::Staged(now) = now else { return };
        let mut now = now.into_inner();
        let Some(mut staged) = staged.try_lock().filter(|staged| staged.untouched().is_some())
        else {
            return;
        };
        (now.opened_by, now.pages) = (staged.opened_by, staged.pages);
        *staged = now;
        self.handles.note_text(&by, (ino, handle), &staged);
    }
}
