//! What it is that a handle stages: a record or a draft, or a plain file that is checked. Each has what only it needs.

use workfs_mount::Caller;

use crate::config::Check;
use crate::engine::{Base, Fence, Home, Made};
use crate::numbers::{RecordKey, UnixNanos, Version};

/// What is staged.
pub(in crate::tree) enum What {
    /// A record or a draft.
    RecordLike(RecordLike),
    /// A plain file that is saved as a whole.
    Checked(Checked),
}

/// An open record or draft.
#[derive(Default)]
pub(in crate::tree) struct RecordLike {
    /// Where it lies, for rules that are asked while it is written.
    pub home: Option<Home>,
    /// The record; `None` as long as it is a draft.
    pub record: Option<Known>,
    /// The status that the text said when it was last judged so far.
    pub status: Option<String>,
    /// It is a draft that said something, and opening it emptied it.
    pub is_emptied_draft: bool,
}

/// A record, as who writes it knows it.
#[derive(Clone)]
pub(in crate::tree) struct Known {
    pub key: RecordKey,
    /// What the writer saw.
    pub base: Base,
    /// The version that its first read shows, and the thread that opened it: until then it counts as
    /// not seen.
    pub unread: Option<(u32, Version)>,
    /// The claim that it was opened under.
    pub fence: Option<Fence>,
}

/// An open plain file that is checked.
pub(in crate::tree) struct Checked {
    pub asked: Asked,
    /// This handle made it, and nothing of it was taken yet.
    pub is_new: bool,
    /// A refusal may take the name from it: it was not taken yet when this handle was opened by another than
    /// its first maker, or something that its maker wrote was refused.
    pub may_lose_name: bool,
    /// Opening it emptied it, and nothing was written since.
    pub emptied: Option<Emptied>,
    /// Where in its text begins what this handle appended and nobody has taken yet; `None` if the whole
    /// text is to be saved. Others may have saved something else before it meanwhile.
    pub appended_from: Option<usize>,
    /// Up to where its text is being judged, if it was only appended to since.
    pub taken_to: Option<usize>,
}

/// What is asked of the content of a plain file that is saved as a whole.
#[derive(Clone, Debug)]
pub(in crate::tree) enum Asked {
    /// What the check of its name asks.
    By(Check),
    /// Nothing: it has no name any more.
    Nothing,
}

/// Who emptied a checked file by opening it, and what it was then. Counts at the end only: shells
/// close a copy of the descriptor before anything is written.
#[derive(Clone, Copy, Debug)]
pub(in crate::tree) struct Emptied {
    /// Who opened it.
    pub by: Caller,
    /// Its time: what is saved meanwhile is not emptied.
    pub mtime: UnixNanos,
}

impl Known {
    /// As who has made this version knows it.
    pub fn by(made: &Made) -> Known {
        let (base, fence) = (Base::Seen(made.version), made.fence.clone());
        Known { key: made.record, base, unread: None, fence }
    }
}

impl Checked {
    pub fn new(asked: Asked) -> Checked {
        let (is_new, may_lose_name) = (false, false);
        let (emptied, appended_from, taken_to) = (None, None, None);
        Checked { asked, is_new, may_lose_name, emptied, appended_from, taken_to }
    }
}

impl What {
    pub fn draft(home: Option<Home>) -> What {
        What::RecordLike(RecordLike { home, ..RecordLike::default() })
    }

    pub fn record(home: Option<Home>, known: Known) -> What {
        What::RecordLike(RecordLike { home, record: Some(known), ..RecordLike::default() })
    }

    pub fn record_like(&self) -> Option<&RecordLike> {
        match self {
            What::RecordLike(file) => Some(file),
            What::Checked(_) => None,
        }
    }

    pub fn checked(&self) -> Option<&Checked> {
        match self {
            What::Checked(file) => Some(file),
            What::RecordLike(_) => None,
        }
    }

    pub fn checked_mut(&mut self) -> Option<&mut Checked> {
        match self {
            What::Checked(file) => Some(file),
            What::RecordLike(_) => None,
        }
    }

    /// The record, if it is one.
    pub fn known(&self) -> Option<&Known> {
        self.record_like()?.record.as_ref()
    }

    /// The record, if it is one.
    pub fn key(&self) -> Option<RecordKey> {
        self.known().map(|known| known.key)
    }

    /// Where it lies, if rules are asked while it is written.
    pub fn home(&self) -> Option<&Home> {
        self.record_like()?.home.as_ref()
    }

    /// What emptied it, if nothing was written since.
    pub fn emptied(&self) -> Option<Emptied> {
        self.checked()?.emptied
    }

    /// Something was written, or is saved.
    pub fn forget_emptied(&mut self) {
        if let What::Checked(file) = self {
            file.emptied = None;
        }
    }
}
