//! What plain files say: their bytes, the saves that count where the configuration says so, how much of their past
//! is kept, and those that are checked or are locks.
//!
//! What must stay true: where no rule counts for a file, saving it makes no event and keeps no version.
//! Deliberately not here: names and attributes (`nodes`), and where bytes lie in the store.

pub(super) mod checked;
pub(super) mod files;
pub(super) mod lock_files;
pub(super) mod plain;
pub(super) mod versions;
