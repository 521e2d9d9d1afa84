//! A judgement of what a handle has written: who waits for it, who counts as the writer meanwhile,
//! and what is kept of a text that no further byte can mend.

use workfs_mount::{Caller, Handle, Reply};

use crate::engine::{Home, renamed_over};
use crate::store::{Read, StoreError};

/// A judgement that is under way.
#[derive(Default)]
pub(in crate::tree) struct Judging {
    /// These wait for it, too.
    pub waiting: Vec<Reply<()>>,
    /// These ended or flushed what was written since it began: it says nothing of that.
    pub after: Vec<Ending>,
}

/// What asks for a judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tree) enum Call {
    Flush,
    Fsync,
}

/// A `flush` or `fsync` that is to be looked at again.
pub(in crate::tree) struct Ending {
    /// Whose.
    pub caller: Caller,
    /// By which handle.
    pub handle: Handle,
    /// Which of them.
    pub call: Call,
    /// Its answer.
    pub reply: Reply<()>,
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
