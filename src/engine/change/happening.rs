//! What happened, as a turn tells it to the ledger.

use crate::ledger::{EventName, Payload};
use crate::names::{KindName, TreePath};
use crate::numbers::Version;

/// What happened, for [`crate::engine::Turn::append`].
pub struct Happening<'a> {
    /// The event's name.
    pub name: EventName,
    /// The kind of the record.
    pub kind: Option<&'a KindName>,
    /// The workspace's path.
    pub workspace: Option<&'a TreePath>,
    /// The version before.
    pub before: Option<Version>,
    /// The version after.
    pub after: Option<Version>,
    /// What more there is to say.
    pub payload: Payload,
}

impl Happening<'static> {
    /// An event about no record.
    pub fn of(name: EventName, payload: Payload) -> Self {
        Happening { name, kind: None, workspace: None, before: None, after: None, payload }
    }
}
