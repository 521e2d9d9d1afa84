//! What the configuration says about plain files: whose saves are events and versions, what their
//! content must be, and which are locks.
//!
//! What must stay true: which rules count for the files of a directory can be said by its path
//! alone ([`FileRules::scope`]), so that it is asked once a directory and not once a file; of each
//! list the first rule that matches a file counts. Deliberately not here: the store, content.

mod check;
mod form;

use std::time::Duration;

pub use check::{Check, SCHEMAS, Syntax, allowed};
pub(super) use form::{CheckForm, FilesForm, KeepForm, Load, LockForm, SchemaForm, write};

use super::path_glob::FileGlob;
use crate::kind::{KindError, is_temporary_name, other_draft};
use crate::names::{FileName, TreePath};

/// What happens to saves of the files of a glob.
#[derive(Clone, Debug)]
pub struct Keep {
    /// The files.
    pub path: FileGlob,
    /// Whether their changes are events at all.
    pub log: bool,
    /// Which versions are kept.
    pub retention: Retention,
}

/// How much of a file's past is kept. What is over goes, the oldest first; the newest stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Versions of one path; with 0 saves are events alone.
    pub versions: u64,
    /// How old a version may be.
    pub age: Duration,
    /// Bytes of all versions of one path.
    pub bytes: u64,
    /// Largest file of which versions are kept; of larger ones there is the event with the hash.
    pub file_bytes: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Retention {
            versions: 32,
            age: Duration::from_secs(30 * 86_400),
            bytes: 64 << 20,
            file_bytes: 1 << 20,
        }
    }
}

/// Files that are locks: they vanish when their holder is silent for too long.
#[derive(Clone, Debug)]
pub struct LockRule {
    /// The files.
    pub path: FileGlob,
    /// How long a lock holds after it was made, touched or written.
    pub lease: Duration,
}

/// All rules about plain files.
#[derive(Clone, Debug, Default)]
pub struct FileRules {
    keeps: Vec<Keep>,
    checks: Vec<Check>,
    locks: Vec<LockRule>,
    schemas: Vec<(String, String)>,
}

/// The rules that count for files of one directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The directory.
    pub path: TreePath,
    keeps: Vec<usize>,
    checks: Vec<usize>,
    locks: Vec<usize>,
}

impl Scope {
    /// Whether files of the directory may be checked.
    #[must_use]
    pub fn has_checks(&self) -> bool {
        !self.checks.is_empty()
    }
}

impl FileRules {
    /// What is hardly meant in the schemas of a user's own.
    pub(super) fn warnings(&self) -> impl Iterator<Item = KindError> {
        self.schemas.iter().filter_map(|(name, text)| {
            let reason = other_draft(text)?;
            Some(KindError { file: format!("the schema {name}"), line: None, reason })
        })
    }

    /// What holds where the configuration says nothing: all of `scratchpad/` is kept, but not what
    /// tools make there by the thousands, and not databases, which change with each `fsync`.
    pub(super) fn standard() -> FileRules {
        let off = [
            "**/node_modules/**",
            "**/.git/**",
            "**/target/**",
            "**/*.{db,sqlite,sqlite3,db-wal,db-shm,db-journal,sqlite-wal,sqlite-shm}",
        ];
        let rule = |(path, log): (&str, bool)| Keep {
            path: FileGlob::parse(path)
                // PROOF: literals of this file, read by a test.
                .unwrap_or_else(|why| unreachable!("the default configuration is wrong: {why}")),
            log,
            retention: Retention::default(),
        };
        let rules = off.into_iter().map(|path| (path, false)).chain([("scratchpad/**", true)]);
        FileRules { keeps: rules.map(rule).collect(), ..FileRules::default() }
    }

    /// No rule counts for any file: nothing needs to be asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.keeps.iter().any(|keep| keep.log) && self.checks.is_empty() && self.locks.is_empty()
    }

    /// Whether some files are checked.
    #[must_use]
    pub fn has_checks(&self) -> bool {
        !self.checks.is_empty()
    }

    /// Whether some files are locks.
    #[must_use]
    pub fn has_locks(&self) -> bool {
        !self.locks.is_empty()
    }

    /// Whether files in `dir` or below it may be locks.
    #[must_use]
    pub fn may_lock_below(&self, dir: &TreePath) -> bool {
        self.locks.iter().any(|lock| lock.path.may_lie_below(dir.names()))
    }

    /// Whether saves of files in `dir` or below it may count.
    #[must_use]
    pub fn may_keep_below(&self, dir: &TreePath) -> bool {
        for keep in &self.keeps {
            if keep.log && keep.path.may_lie_below(dir.names()) {
                return true;
            }
            if !keep.log && keep.path.takes_all_below(dir.names()) {
                return false;
            }
        }
        false
    }

    /// The rules that may count for files of the directory `dir`; `None` if there are none.
    #[must_use]
    pub fn scope(&self, dir: &TreePath) -> Option<Scope> {
        let holds = |glob: &FileGlob| glob.may_lie_in(dir.names());
        let mut keeps = Vec::new();
        for (index, keep) in self.keeps.iter().enumerate().filter(|(_, keep)| holds(&keep.path)) {
            keeps.push(index);
            if keep.path.takes_every_name() {
                break;
            }
        }
        if !keeps.iter().any(|index| self.keeps[*index].log) {
            keeps.clear();
        }
        let places = |globs: &mut dyn Iterator<Item = &FileGlob>| -> Vec<usize> {
            globs.enumerate().filter(|(_, glob)| holds(glob)).map(|(index, _)| index).collect()
        };
        let checks = places(&mut self.checks.iter().map(|check| &check.path));
        let locks = places(&mut self.locks.iter().map(|lock| &lock.path));
        let any = !(keeps.is_empty() && checks.is_empty() && locks.is_empty());
        any.then(|| Scope { path: dir.clone(), keeps, checks, locks })
    }

    /// What is kept of the file `name` in a directory of this scope; `None`: nothing, no event. Names that programs
    /// give to files which they rename later do not count: the rename is the save.
    #[must_use]
    pub fn keep(&self, scope: &Scope, name: &FileName) -> Option<Retention> {
        if is_temporary_name(name) {
            return None;
        }
        let mut rules = scope.keeps.iter().filter_map(|index| self.keeps.get(*index));
        let keep = rules.find(|keep| keep.path.takes_name(name))?;
        keep.log.then_some(keep.retention)
    }

    /// What the content of the file `name` must be. One with such a name is judged when it is renamed.
    #[must_use]
    pub fn check(&self, scope: &Scope, name: &FileName) -> Option<&Check> {
        if is_temporary_name(name) {
            return None;
        }
        let mut rules = scope.checks.iter().filter_map(|index| self.checks.get(*index));
        rules.find(|check| check.path.takes_name(name))
    }

    /// How long the file `name` is a lock, if it is one.
    #[must_use]
    pub fn lock(&self, scope: &Scope, name: &FileName) -> Option<Duration> {
        let mut rules = scope.locks.iter().filter_map(|index| self.locks.get(*index));
        rules.find(|lock| lock.path.takes_name(name)).map(|lock| lock.lease)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> TreePath {
        TreePath::parse(text).unwrap()
    }

    fn kept(rules: &FileRules, file: &str) -> bool {
        let file = path(file);
        let (dir, name) = file.split_last().unwrap();
        rules.scope(&dir).is_some_and(|scope| rules.keep(&scope, name).is_some())
    }

    #[test]
    fn the_scratchpad_is_kept_and_what_tools_make_is_not() {
        let rules = FileRules::standard();
        for file in ["scratchpad/a", "scratchpad/info/001/project.yaml", "scratchpad/x.md"] {
            assert!(kept(&rules, file), "{file}");
        }
        for file in [
            "notes.md",
            "work/inbox/x.yaml",
            "scratchpad/node_modules/a/b.js",
            "scratchpad/repo/.git/HEAD",
            "scratchpad/t.db",
            "scratchpad/t.db-wal",
        ] {
            assert!(!kept(&rules, file), "{file}");
        }
        assert!(rules.scope(&path("work/inbox")).is_none());
        assert!(rules.scope(&path("scratchpad/repo/.git/objects")).is_none());
        assert!(rules.scope(&path("")).is_none());
    }

    #[test]
    fn the_first_rule_counts() {
        let rule = |glob: &str, log| Keep {
            path: FileGlob::parse(glob).unwrap(),
            log,
            retention: Retention::default(),
        };
        let rules = FileRules {
            keeps: vec![rule("a/*.md", true), rule("a/**", false), rule("**", true)],
            ..FileRules::default()
        };
        assert!(kept(&rules, "a/x.md") && !kept(&rules, "a/x.txt") && kept(&rules, "b/x.txt"));
        assert!(!kept(&rules, "a/b/x.md") && kept(&rules, "x"));
        assert!(!rules.is_empty() && FileRules::default().is_empty());
    }
}
