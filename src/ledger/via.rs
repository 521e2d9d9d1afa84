//! How a change came about, where its event's name alone does not say it.

use super::Field;

/// The way of a change, in an event's payload as `via`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// A copy was written beside the original.
    Copy,
    /// A second name was given.
    Link,
    /// A rename.
    Rename,
    /// An exchange of two names.
    Exchange,
    /// The daemon made the status agree with the directory.
    Correction,
    /// An editor's backup was put back.
    Backup,
    /// The lease ran out; nobody did it.
    Expiry,
}

impl Via {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Via::Copy => "copy",
            Via::Link => "link",
            Via::Rename => "rename",
            Via::Exchange => "exchange",
            Via::Correction => "correction",
            Via::Backup => "backup",
            Via::Expiry => "expiry",
        }
    }
}

impl From<Option<Via>> for Field<'static> {
    fn from(via: Option<Via>) -> Field<'static> {
        via.map_or(Field::Absent, |via| Field::Text(via.as_str()))
    }
}
