//! What is kept about plain files whose saves count: their names by inode, their past by path.

use crate::ledger::Hash;
use crate::names::{Dentry, FileName, TreePath};
use crate::numbers::{G, HistoryKey, Ino, LeaseTime, UnixNanos};

use super::{Result, Visit};

/// The past of the file at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// Its key.
    pub key: HistoryKey,
    /// The path from the root of the tree.
    pub path: TreePath,
    /// The last event about it.
    pub last_g: G,
    /// Versions that are kept.
    pub versions: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What is known of a version without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileVersion {
    /// The event that made it.
    pub g: G,
    /// When.
    pub at: UnixNanos,
    /// Its bytes.
    pub size: u64,
    /// The hash of its content.
    pub sha256: Hash,
}

/// What can be asked about plain files.
pub trait ReadFiles {
    /// The directory and name under which a file was made or last renamed, where rules count, as long as
    /// it is called so: where none count nobody notes that it lost a name.
    fn file_name(&self, ino: Ino) -> Result<Option<Dentry>>;
    /// The first name of `ino`, if it lies in `dir`, found by looking at all: for files that came in
    /// unnoticed.
    fn name_in(&self, dir: Ino, ino: Ino) -> Result<Option<FileName>>;
    /// The past of a path.
    fn history(&self, path: &TreePath) -> Result<Option<History>>;
    /// The pasts of all paths below `above`, in the order of their bytes; those behind `after`, if that
    /// is one of them.
    fn histories(
        &self,
        above: &TreePath,
        after: Option<&TreePath>,
        visit: Visit<'_, History>,
    ) -> Result<()>;
    /// The versions of a past, the newest first.
    fn file_versions(&self, history: HistoryKey, visit: Visit<'_, FileVersion>) -> Result<()>;
    /// The content of a version.
    fn file_version(&self, g: G) -> Result<Option<Vec<u8>>>;
    /// Of which past that is, and when it was saved.
    fn file_version_of(&self, g: G) -> Result<Option<(HistoryKey, UnixNanos)>>;
    /// When the lease of this lock file ends, if it has one.
    fn lock_lease(&self, ino: Ino) -> Result<Option<LeaseTime>>;
    /// The lock files whose leases end at `at` or later, in the order of their ends.
    fn leases_from(&self, at: LeaseTime, visit: Visit<'_, (Ino, LeaseTime)>) -> Result<()>;
    /// All names of files by inode, for `fsck`.
    fn all_file_names(&self, visit: Visit<'_, (Ino, Ino, FileName)>) -> Result<()>;
}

/// The changes of what is kept about plain files.
pub trait TxnFiles: ReadFiles {
    /// Notes a file's directory and name.
    fn put_file_name(&mut self, ino: Ino, dir: Ino, name: &FileName) -> Result<()>;
    /// Forgets them.
    fn delete_file_name(&mut self, ino: Ino) -> Result<()>;
    /// Sets until when a lock file holds.
    fn put_lease(&mut self, ino: Ino, until: LeaseTime) -> Result<()>;
    /// It is no lock (any more).
    fn delete_lease(&mut self, ino: Ino) -> Result<()>;
    /// Begins the past of a path.
    fn insert_history(&mut self, path: &TreePath, last_g: G) -> Result<HistoryKey>;
    /// Writes it back.
    fn update_history(&mut self, history: &History) -> Result<()>;
    /// Adds a version.
    fn insert_file_version(
        &mut self,
        history: HistoryKey,
        version: &FileVersion,
        content: &[u8],
    ) -> Result<()>;
    /// Deletes a version.
    fn delete_file_version(&mut self, g: G) -> Result<()>;
}
