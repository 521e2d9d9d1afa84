//! Which rules about plain files count in a directory: found by its path, and remembered.
//!
//! What must stay true: what is remembered is forgotten whenever a directory moves. Where nothing
//! counts, as in most directories, asking costs one look into a table. Nothing counts where no call can name what
//! lies there by its path: each directory would cost memory, and each event the ledger, what all above it have in names.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use crate::config::{Config, Scope};
use crate::limits::SCOPES_MAX;
use crate::numbers::Ino;
use crate::store::{Read, Result};

use super::governed::path_of_dir;

/// The scopes of directories.
#[derive(Default)]
pub struct Scopes {
    known: RwLock<HashMap<Ino, Option<Arc<Scope>>>>,
    /// How often all was forgotten.
    times: AtomicU64,
}

/// Taken before the snapshot that a scope is found in: what was true then is not remembered if a
/// directory has moved since.
#[derive(Clone, Copy, Debug)]
pub struct ScopeTicket(u64);

impl Scopes {
    /// See [`ScopeTicket`].
    #[must_use]
    pub fn ticket(&self) -> ScopeTicket {
        ScopeTicket(self.times.load(Ordering::Acquire))
    }

    /// The rules that count for files of the directory `dir`.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn of(
        &self,
        ticket: ScopeTicket,
        read: &dyn Read,
        config: &Config,
        dir: Ino,
    ) -> Result<Option<Arc<Scope>>> {
        if let Some(scope) = self.known.read().get(&dir) {
            return Ok(scope.clone());
        }
        let path = path_of_dir(read, dir)?;
        let scope = config.files().scope(&path).filter(|_| path.can_be_named()).map(Arc::new);
        let mut known = self.known.write();
        if self.times.load(Ordering::Acquire) == ticket.0 {
            if known.len() >= SCOPES_MAX {
                known.clear();
            }
            known.insert(dir, scope.clone());
        }
        Ok(scope)
    }

    /// A directory has moved.
    pub fn forget(&self) {
        let mut known = self.known.write();
        self.times.fetch_add(1, Ordering::AcqRel);
        known.clear();
    }
}
