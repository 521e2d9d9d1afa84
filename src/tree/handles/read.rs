//! Reading by a handle, and asking whether one can.

use workfs_mount::{Caller, Errno, Handle, PollReady, PollWake, Reply};

use crate::engine::{Base, read_plain};
use crate::numbers::Ino;
use crate::store::{Class, NodeType};
use crate::tree::computed::events;
use crate::tree::saves::staged::Staged;
use crate::tree::saves::what::{RecordLike, What};
use crate::tree::{Answer, WorkTree};

use super::Open;

impl WorkTree {
    pub(in crate::tree) fn read_file(
        &self,
        caller: &Caller,
        ino: Ino,
        handle: Handle,
        (offset, size): (u64, usize),
        reply: Reply<Vec<u8>>,
    ) {
        self.hub.settling.reads(caller.mount, ino, caller.pid);
        let Some(open) = self.handles.get(handle) else { return reply.send(Err(Errno::EBADF)) };
        match &*open {
            Open::Wait(waited) => self.await_ready(caller, waited, size, reply),
            // Only to fill a page the kernel names no table of open files.
            _ => reply.send(self.read_now(ino, &open, (offset, size), caller.files.is_none())),
        }
    }

    /// Whether a handle can be read and written without waiting: all can, but `.wait`.
    pub(in crate::tree) fn poll_file(
        &self,
        handle: Handle,
        wake: Option<PollWake>,
    ) -> Answer<PollReady> {
        let open = self.handles.get(handle).ok_or(Errno::EBADF)?;
        let Open::Wait(waited) = &*open else { return Ok(PollReady::BOTH) };
        Ok(PollReady { read: self.poll_ready(waited, handle, wake)?, write: false })
    }

    fn read_now(
        &self,
        ino: Ino,
        open: &Open,
        (offset, size): (u64, usize),
        fills_page: bool,
    ) -> Answer<Vec<u8>> {
        match open {
            Open::Staged(staged) => {
                let mut staged = staged.lock();
                self.handles.note_asked(ino, &mut staged, fills_page);
                self.note_read(&mut staged);
                staged.was_read = true;
                Ok(part(staged.text(), offset, size))
            }
            Open::Fixed(bytes) => Ok(part(bytes, offset, size)),
            Open::Hold(hold) => Ok(part(&hold.text, offset, size)),
            Open::Events => self.read(|read| events::at(read, offset, size)),
            Open::Directory(_) | Open::Short(_) | Open::Computed(_) | Open::Ready(_) => {
                Err(Errno::EISDIR)
            }
            Open::Wait(_) => Ok(Vec::new()),
            Open::Plain { .. } => self.read(|read| match read.node(ino)? {
                // It became a record while this handle was open.
                Some(node) if node.class == Class::Record => match read.record_at(ino)? {
                    Some(record) => {
                        let version = read.version(record.version_g)?;
                        let content = version.map(|version| version.content).unwrap_or_default();
                        Ok(part(&content, offset, size))
                    }
                    None => Ok(Vec::new()),
                },
                Some(node) if node.node_type == NodeType::File => {
                    self.handles.filled.note(&node, (offset, size), |ino| self.hub.knows(ino));
                    read_plain(read, &node, offset, size)
                }
                _ => Ok(Vec::new()),
            }),
        }
    }

    /// A handle reads what it was opened at, unless it has changed that already.
    fn note_read(&self, staged: &mut Staged) {
        if !staged.is_changed()
            && let What::RecordLike(RecordLike { record: Some(record), .. }) = &mut staged.what
            && let Some((thread, version)) = record.unread.take()
        {
            record.base = Base::Seen(version);
            self.seen.note(record.key, thread, version);
        }
    }
}

/// Up to `size` bytes of `bytes` at `offset`.
pub(in crate::tree) fn part(bytes: &[u8], offset: u64, size: usize) -> Vec<u8> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let end = start.saturating_add(size).min(bytes.len());
    bytes[start..end].to_vec()
}
