//! The further names of files that have more than one.
//!
//! What must stay true: of a file with `n` names `n - 1` stand here; the one that does not is its first
//! name, and lies in its node's `parent`. Files with one name have nothing here.

use crate::names::{Dentry, FileName};
use crate::numbers::Ino;

use super::{Result, Visit};

/// What can be asked about further names.
pub trait ReadLinks {
    /// The further names of a file, with their directories.
    fn further_names(&self, ino: Ino) -> Result<Vec<Dentry>>;
    /// One of them, whichever is found at once.
    fn further_name(&self, ino: Ino) -> Result<Option<Dentry>>;
    /// All of them with their files, for `fsck`.
    fn all_further_names(&self, visit: Visit<'_, (Ino, Ino, FileName)>) -> Result<()>;
}

/// The changes of further names.
pub trait TxnLinks: ReadLinks {
    /// Notes one.
    fn insert_further_name(&mut self, ino: Ino, dir: Ino, name: &FileName) -> Result<()>;
    /// Forgets one; false if it was none.
    fn delete_further_name(&mut self, ino: Ino, dir: Ino, name: &FileName) -> Result<bool>;
}
