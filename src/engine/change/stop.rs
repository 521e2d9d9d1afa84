//! Why a change stopped: a rule said no, or the store failed.

use std::sync::Arc;

use crate::names::{FileName, TreePath};
use crate::refusal::{Refusal, Rule};
use crate::store::StoreError;

/// A refusal with what is to be kept of it.
#[derive(Debug)]
pub struct Refused {
    /// Why.
    pub refusal: Refusal,
    /// The path it was about.
    pub path: TreePath,
    /// The bytes that were refused.
    pub rejected: Option<Arc<[u8]>>,
    /// Whether it goes to `why`: refusals that any file system would give do not.
    pub kept: bool,
}

/// Why a command stopped.
#[derive(Debug)]
pub enum Stop {
    /// A rule said no.
    Refused(Box<Refused>),
    /// The store failed; the whole transaction is off, but where it met damage (see [`Stop::alone`]).
    Store(StoreError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Stop::Store(error)
    }
}

/// A refusal that any file system would give: answered, not kept.
impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        let path = TreePath::root();
        Stop::Refused(Box::new(Refused { refusal, path, rejected: None, kept: false }))
    }
}

impl Stop {
    /// What a whole change ends with: a row or a content that is damaged is in the way of who came upon it, and
    /// of nobody else.
    pub(super) fn alone(self) -> Self {
        match self {
            Stop::Store(damage @ StoreError::Impossible(_)) => {
                tracing::error!(%damage, "a change is not made");
                Refusal::from(damage).into()
            }
            stop => stop,
        }
    }

    /// A refusal that goes to `why`.
    #[must_use]
    pub fn kept(refusal: Refusal, path: TreePath) -> Self {
        Stop::Refused(Box::new(Refused { refusal, path, rejected: None, kept: true }))
    }

    /// A refusal of content, which is kept with it.
    #[must_use]
    pub fn rejected(refusal: Refusal, path: TreePath, bytes: Arc<[u8]>) -> Self {
        Stop::Refused(Box::new(Refused { refusal, path, rejected: Some(bytes), kept: true }))
    }
}

/// The refusal for a name that is not there.
#[must_use]
pub fn absent(name: &FileName) -> Refusal {
    Refusal::new(
        Rule::Absent,
        format!("`{name}` is not there (any more)"),
        "list the directory again: someone else may have claimed, moved or removed it",
    )
}

/// The refusal for a name that is taken.
#[must_use]
pub fn taken(name: &FileName) -> Refusal {
    Refusal::new(
        Rule::Taken,
        format!("`{name}` is there already"),
        "choose another name, or look at what is there",
    )
}

/// The refusal for an inode that is gone.
pub(in crate::engine) fn gone() -> Refusal {
    Refusal::new(
        Rule::Gone,
        "the file of this handle is gone",
        "open it again by its name: it may have been moved or removed",
    )
}
