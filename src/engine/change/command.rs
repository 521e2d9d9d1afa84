//! What a change is to the desk: a [`Command`], and the [`Terms`] on which it is made.
//!
//! What must stay true: all that the desk asks before a command runs stands in its terms, so that a command
//! which wraps another has those of the other.

use crate::engine::{About, Stop, Turn};
use crate::store::Durability;

/// A change, waiting to be made.
pub trait Command: Send + 'static {
    /// What it gives back.
    type Out: Send + 'static;

    /// Its name in `why` and in the log: the system call or subcommand.
    fn operation(&self) -> &'static str;

    /// What it is about, for who is told that an observer may not do it.
    fn about(&self) -> About {
        About::Nothing
    }

    /// On which terms it is made.
    fn terms(&self) -> Terms {
        Terms::USUAL
    }

    /// Makes the change in the transaction of `turn`.
    ///
    /// # Errors
    /// A refusal, or a failure of the store; in both cases nothing of the change is kept.
    fn run(self, turn: &mut Turn<'_>) -> Result<Self::Out, Stop>;
}

/// On which terms a change is made: what whoever sits at the desk must know of it before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// What its commit must survive when the store is opened with `--sync full`.
    pub durability: Durability,
    /// Whether it changes anything: what an observer may not do.
    pub is_change: bool,
    /// Whether a reader who sees one part of it must see all others, whatever its kernel has cached.
    pub is_seen_whole: bool,
    /// Whether it is done on a full disk, too: it makes space, or needs none.
    pub needs_no_room: bool,
    /// Whether it is undone where it makes a sum larger than a quota.
    pub keeps_quotas: bool,
    /// Whether its caller may be answered, and others told, while the next changes are made: nothing that
    /// these do, or that follows from a change in its own turn, goes by what its answer notes. See `desk/announcer`.
    pub is_told_apart: bool,
}

impl Terms {
    /// Those of a change of what is governed.
    pub const USUAL: Terms = Terms {
        durability: Durability::Power,
        is_change: true,
        is_seen_whole: false,
        needs_no_room: false,
        keeps_quotas: true,
        is_told_apart: false,
    };

    /// Those of a change that a power cut may undo until `fsync`, as on other file systems; its turn may
    /// still find out that it must survive one.
    pub const UNFLUSHED: Terms = Terms { durability: Durability::Process, ..Terms::USUAL };

    /// Those of what changes nothing, such as a question: an observer may do it.
    pub const NO_CHANGE: Terms = Terms { is_change: false, ..Terms::UNFLUSHED };
}
