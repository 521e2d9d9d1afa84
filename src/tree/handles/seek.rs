//! `lseek` for holes and data.

use workfs_mount::{Errno, Handle, SeekHole};

use crate::limits::CHUNK_BYTES;
use crate::numbers::Ino;
use crate::store::{Class, Read, StoreError};
use crate::tree::computed::events;
use crate::tree::{Answer, WorkTree};

use super::Open;
use super::filled::Ranges;

impl WorkTree {
    pub(in crate::tree) fn seek_file(
        &self,
        ino: Ino,
        handle: Handle,
        offset: u64,
        seek: SeekHole,
    ) -> Answer<u64> {
        let whole = match self.handles.get(handle).as_deref() {
            Some(Open::Staged(staged)) => Some(staged.lock().text().len() as u64),
            Some(Open::Fixed(bytes)) => Some(bytes.len() as u64),
            Some(Open::Hold(hold)) => Some(hold.text.len() as u64),
            Some(Open::Events) => Some(self.read(|read| events::size(read))?),
            _ => None,
        };
        let found = match whole {
            Some(size) => seek_whole(size, offset, seek),
            None => {
                let unwritten = self.handles.unwritten(ino);
                self.read(|read| seek_plain(read, ino, (offset, seek), &unwritten))?
            }
        };
        found.ok_or(Errno::ENXIO)
    }
}

/// What has no holes: its end counts as one.
fn seek_whole(size: u64, offset: u64, seek: SeekHole) -> Option<u64> {
    (offset < size).then_some(if seek == SeekHole::Data { offset } else { size })
}

/// Data and holes of a plain file: a missing chunk is a hole, but for those in which something may be that is
/// `unwritten`.
fn seek_plain(
    read: &dyn Read,
    ino: Ino,
    (offset, seek): (u64, SeekHole),
    unwritten: &Ranges,
) -> Result<Option<u64>, StoreError> {
    let chunk = CHUNK_BYTES as u64;
    let Some(node) = read.node(ino)?.filter(|node| offset < node.size) else { return Ok(None) };
    let first = (offset / chunk) as u32;
    // It became a record while this handle was open, and has no chunks any more.
    if node.class != Class::Plain {
        return Ok(seek_whole(node.size, offset, seek));
    }
    match seek {
        SeekHole::Data => {
            let unwritten = unwritten.from(first).map(|range| range.start);
            let next = read.next_chunk(ino, first)?.into_iter().chain(unwritten).min();
            let at = next.map(|index| offset.max(u64::from(index) * chunk));
            Ok(at.filter(|at| *at < node.size))
        }
        // As many chunks as it can have: no holes to look for.
        SeekHole::Hole if node.chunks >= node.size.div_ceil(chunk) => Ok(Some(node.size)),
        SeekHole::Hole => {
            let mut index = first;
            loop {
                if let Some(range) = unwritten.from(index).filter(|range| range.start == index) {
                    index = range.end;
                } else if read.next_chunk(ino, index)? == Some(index) {
                    index += 1;
                } else {
                    return Ok(Some(offset.max(u64::from(index) * chunk).min(node.size)));
                }
            }
        }
    }
}
