//! Which computed nodes take long to look at: those that are made of as many rows as there are events, records or leases.
//!
//! What must stay true: like all that is computed, they are kept by no kernel. Deliberately not here: `ready/`, which
//! is told page by page, and whose names are those of records.

use workfs_mount::Look;

use super::{CONTROL, Computed};

/// See [`workfs_mount::Tree::takes_long`].
pub(in crate::tree) fn takes_long(look: Look<'_>) -> bool {
    match look {
        Look::At(ino) => Computed::of(ino).is_some_and(is_long),
        Look::For(dir, name) => match Computed::of(dir) {
            Some(Computed::History(_)) => true,
            Some(Computed::Control) => {
                CONTROL.iter().any(|(known, file)| is_long(*file) && name == *known)
            }
            _ => false,
        },
        // A listing tells of each file how long it is.
        Look::Through(dir) => matches!(
            Computed::of(dir),
            Some(Computed::Control | Computed::History(_) | Computed::HoldDir)
        ),
    }
}

/// Of a file whose size is known when all of it is.
fn is_long(file: Computed) -> bool {
    matches!(file, Computed::Leases | Computed::Metrics | Computed::Status)
}
