//! A judgement of what a handle has written: who waits for it, who counts as the writer meanwhile,
//! and what is kept of a text that no further byte can mend.

use workfs_mount::{Caller, Handle, Reply};

use crate::engine::{Base, Home, SaveDraft, renamed_over};
use crate::numbers::Ino;
use crate::refusal::Refusal;
use crate::store::{Read, StoreError};

use super::busy::Writer;
use super::staged::Staged;

/// A judgement that is under way.
#[derive(Default)]
pub(in crate::tree) struct Judging {
    /// These wait for it, too.
    pub waiting: Vec<Reply<()>>,
    /// These ended or flushed what was written since it began: it says nothing of that.
    pub after: Vec<Ending>,
}

/// A `flush` or `fsync` that is to be looked at again.
pub(in crate::tree) struct Ending {
    /// Whose.
    pub caller: Caller,
    /// By which handle.
    pub handle: Handle,
    /// It is an `fsync`.
    pub sync: bool,
    /// Its answer.
    pub reply: Reply<()>,
}

impl Staged {
    /// What it counts as while it has written what is not judged.
    pub fn writer(&self) -> Writer {
        let saw = match self.base {
            Base::Seen(version) | Base::Heard(version) => Some(version),
            Base::Unseen | Base::Current => None,
        };
        Writer { record: self.record, under: self.fence.clone(), saw }
    }

    /// What keeps its text, which is refused.
    pub fn refused_text(&self, ino: Ino, refusal: Refusal) -> SaveDraft {
        let lay = self.home.as_ref().map(Home::file_path);
        SaveDraft { ino, record: self.record, bytes: self.whole(), refusal, lay }
    }
}

/// By whose rules what is written to a draft is judged at once: by none's where the draft is judged
/// when it is renamed over a record.
pub(in crate::tree) fn to_judge(
    read: &dyn Read,
    home: Option<Home>,
) -> Result<Option<Home>, StoreError> {
    match home {
        Some(home) if renamed_over(read, &home)?.is_none() => Ok(Some(home)),
        _ => Ok(None),
    }
}
