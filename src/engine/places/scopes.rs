//! Which rules about plain files count in a directory: found by its path, and remembered.
//!
//! What must stay true: what is remembered is forgotten whenever a directory moves. Where nothing
//! counts, as in most directories, asking costs one look into a table. Where a path is too long for
//! any call to name it nothing counts: each directory there would take as much memory, and each
//! event as much of the ledger, as all the names above it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use crate::config::{Config, Scope};
use crate::limits::{SCOPES_MAX, UNRULED_DIRS_MAX};
use crate::numbers::Ino;
use crate::store::{Read, Result};

use super::governed::path_of_dir;

/// The scopes of directories.
#[derive(Default)]
pub struct Scopes {
    known: RwLock<Known>,
    /// How often all was forgotten.
    times: AtomicU64,
}

/// What is remembered. A scope takes some hundred bytes, that there is none a few.
#[derive(Default)]
struct Known {
    ruled: HashMap<Ino, Arc<Scope>>,
    unruled: HashSet<Ino>,
}

/// What is remembered of one directory.
enum Remembered<'k> {
    Ruled(&'k Arc<Scope>),
    Unruled,
    Nothing,
}

impl Known {
    fn get(&self, dir: Ino) -> Remembered<'_> {
        match self.ruled.get(&dir) {
            Some(scope) => Remembered::Ruled(scope),
            None if self.unruled.contains(&dir) => Remembered::Unruled,
            None => Remembered::Nothing,
        }
    }

    /// Remembers it; where there are too many, in place of all others of its sort.
    fn insert(&mut self, dir: Ino, scope: Option<Arc<Scope>>) {
        if let Some(scope) = scope {
            if self.ruled.len() >= SCOPES_MAX {
                self.ruled.clear();
            }
            self.ruled.insert(dir, scope);
        } else {
            if self.unruled.len() >= UNRULED_DIRS_MAX {
                self.unruled.clear();
            }
            self.unruled.insert(dir);
        }
    }

    fn clear(&mut self) {
        self.ruled.clear();
        self.unruled.clear();
    }
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
        match self.known.read().get(dir) {
            Remembered::Ruled(scope) => return Ok(Some(Arc::clone(scope))),
            Remembered::Unruled => return Ok(None),
            Remembered::Nothing => {}
        }
        let path = path_of_dir(read, dir)?;
        let scope = config.files().scope(&path).filter(|_| path.can_be_named()).map(Arc::new);
        let mut known = self.known.write();
        if self.times.load(Ordering::Acquire) == ticket.0 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::TreePath;
    use crate::numbers::ROOT;
    use crate::store::read;
    use crate::store::sqlite::Sqlite;

    #[test]
    fn what_was_true_before_a_directory_moved_is_not_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let (store, _writer) = Sqlite::open(&dir.path().join("s.db")).unwrap();
        let (scopes, config) = (Scopes::default(), Config::default());
        let ask = |ticket| {
            let scope = read(&store, |read| scopes.of(ticket, read, &config, ROOT)).unwrap();
            assert!(scope.is_none(), "no rule counts at the root");
            matches!(scopes.known.read().get(ROOT), Remembered::Unruled)
        };
        let ticket = scopes.ticket();
        scopes.forget();
        assert!(!ask(ticket));
        assert!(ask(scopes.ticket()));
    }

    #[test]
    fn only_so_many_are_remembered_and_those_without_a_scope_keep_out_no_other() {
        let config = Config::default();
        let path = TreePath::parse(b"scratchpad/info/project").unwrap();
        let scope = config.files().scope(&path).map(Arc::new);
        assert!(scope.is_some(), "there is no test without rules");
        let mut known = Known::default();
        for nth in 0..3 * UNRULED_DIRS_MAX as u64 {
            known.insert(Ino(2 * nth), None);
            assert!(matches!(known.get(Ino(2 * nth)), Remembered::Unruled));
            if nth < 3 * SCOPES_MAX as u64 {
                known.insert(Ino(2 * nth + 1), scope.clone());
                assert!(matches!(known.get(Ino(2 * nth + 1)), Remembered::Ruled(_)));
            }
            assert!(known.ruled.len() <= SCOPES_MAX && known.unruled.len() <= UNRULED_DIRS_MAX);
        }
        let last = 2 * (3 * SCOPES_MAX as u64 - 1) + 1;
        assert!(matches!(known.get(Ino(last)), Remembered::Ruled(_)));
        known.clear();
        assert!(matches!(known.get(Ino(last)), Remembered::Nothing));
    }
}
