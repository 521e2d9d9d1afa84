//! The store: rows in and out, in transactions. Rules, lifecycles and YAML are not known here, and
//! SQL is known nowhere else.
//!
//! What must stay true: [`Read`] never writes and never waits for a writer; everything that
//! changes rows goes through [`Txn`], inside one [`Writer::transaction`]; rows that cannot be are
//! refused when they are read. Deliberately not here: what a change means.

mod agents;
mod checks;
mod chores;
mod error;
mod files;
mod leases;
mod links;
mod own;
mod quotas;
mod ready;
mod rows;
pub mod sqlite;

pub use agents::{AgentRow, ReadAgents, TxnAgents};
pub use checks::{Chunks, Differs, EntryRow, Legible, Numbers, Part, ReadChecks, Way};
pub use chores::{ReadChores, TxnChores};
pub use error::{
    MORE_DESCRIPTORS, MORE_THREADS, OWN_STORE, StoreError, is_full, or_too_long, wants_descriptors,
};
pub use files::{FileVersion, History, ReadFiles, TxnFiles};
pub use leases::{LeaseRow, LeaseTold, ReadLeases, TxnLeases};
pub use links::{ReadLinks, TxnLinks};
pub use own::{Identity, NotOwn, beside, has_one_name, is_made, open_itself, open_own};
pub use quotas::{Charged, Growth, ReadQuotas, TxnQuotas, stored_bytes};
pub use ready::{Edge, OrderKey, ReadReady, Readiness, Sides, TxnReady, When};
pub use rows::*;

use std::sync::Arc;

use crate::names::{FileName, RecordId, StateName, TreePath};
use crate::numbers::{G, Ino, RecordKey, RefusalKey, Times, WorkspaceKey};

/// Result of a store operation.
pub type Result<T> = std::result::Result<T, StoreError>;

/// Called for each row of a listing; returns whether to go on.
pub type Visit<'a, T> = &'a mut dyn FnMut(T) -> bool;

/// What can be asked of a committed snapshot (or, inside a transaction, of its own state).
pub trait Read:
    ReadFiles + ReadLinks + ReadReady + ReadLeases + ReadAgents + ReadQuotas + ReadChores + ReadChecks
{
    /// One inode.
    fn node(&self, ino: Ino) -> Result<Option<Node>>;
    /// What a name in a directory stands for.
    fn lookup(&self, parent: Ino, name: &FileName) -> Result<Option<Node>>;
    /// Names of a directory after `after`, in byte order, with what they stand for.
    fn list(
        &self,
        parent: Ino,
        after: Option<&FileName>,
        visit: Visit<'_, (FileName, Node)>,
    ) -> Result<()>;
    /// The same, of each no more than where it leads.
    fn list_names(
        &self,
        parent: Ino,
        after: Option<&FileName>,
        visit: Visit<'_, (FileName, NodeKind)>,
    ) -> Result<()>;
    /// The name of a directory in its parent; `None` for the root.
    fn dir_name(&self, dir: Ino) -> Result<Option<FileName>>;
    /// The target of a symbolic link.
    fn symlink(&self, ino: Ino) -> Result<Option<Vec<u8>>>;
    /// One chunk of a plain file; `None` is a hole.
    fn chunk(&self, ino: Ino, index: u32) -> Result<Option<Vec<u8>>>;
    /// The first stored chunk at or after `index`.
    fn next_chunk(&self, ino: Ino, index: u32) -> Result<Option<u32>>;
    /// One extended attribute.
    fn xattr(&self, ino: Ino, name: &[u8]) -> Result<Option<Vec<u8>>>;
    /// Names of all extended attributes of an inode.
    fn xattr_names(&self, ino: Ino) -> Result<Vec<Vec<u8>>>;
    /// How long they are, each with the NUL that ends it in a list, and how long all values are.
    fn xattr_bytes(&self, ino: Ino) -> Result<(u64, u64)>;
    /// How many names a directory has, counted up to `most`.
    fn count_names(&self, dir: Ino, most: usize) -> Result<usize>;
    /// What a directory is to a workspace, if anything.
    fn place(&self, dir: Ino) -> Result<Option<PlaceRow>>;
    /// Places of a workspace.
    fn places_of(&self, workspace: WorkspaceKey) -> Result<Vec<(Ino, PlaceRow)>>;
    /// One workspace.
    fn workspace(&self, key: WorkspaceKey) -> Result<Option<WorkspaceRow>>;
    /// The workspace at a path, living or not.
    fn workspace_at(&self, path: &TreePath) -> Result<Option<WorkspaceRow>>;
    /// All workspaces.
    fn workspaces(&self) -> Result<Vec<WorkspaceRow>>;
    /// The record whose file is this inode.
    fn record_at(&self, ino: Ino) -> Result<Option<Record>>;
    /// The parked record whose backup this inode is.
    fn parked_by(&self, ino: Ino) -> Result<Option<Record>>;
    /// Those of a workspace that are parked.
    fn parked(&self, workspace: WorkspaceKey, visit: Visit<'_, Record>) -> Result<()>;
    /// The file that a record's name went to when it was last parked, if that was ever noted.
    fn backup_of(&self, record: RecordKey) -> Result<Option<Ino>>;
    /// The name that a record's file had when it was last parked, if that was ever noted.
    fn parked_name(&self, record: RecordKey) -> Result<Option<FileName>>;
    /// The record with this id, whatever its standing.
    fn record_named(&self, workspace: WorkspaceKey, id: &RecordId) -> Result<Option<Record>>;
    /// All records of a workspace, in key order.
    fn records(&self, workspace: WorkspaceKey, visit: Visit<'_, Record>) -> Result<()>;
    /// How many of them lie in each state.
    fn live_records(&self, workspace: WorkspaceKey) -> Result<Vec<(StateName, u64)>>;
    /// The version of a record's content that event `g` made.
    fn version(&self, g: G) -> Result<Option<VersionRow>>;
    /// A draft.
    fn draft(&self, ino: Ino) -> Result<Option<Draft>>;
    /// One event's line.
    fn event(&self, g: G) -> Result<Option<EventRow>>;
    /// The last event.
    fn last_event(&self) -> Result<Option<EventRow>>;
    /// Refusals, newest first.
    fn refusals(&self, visit: Visit<'_, RefusalRow>) -> Result<()>;
    /// The bytes that a refusal kept.
    fn rejected(&self, key: RefusalKey) -> Result<Option<Rejected>>;
    /// The newest refusal that names this path.
    fn last_refusal_of(&self, path: &[u8]) -> Result<Option<RefusalRow>>;
    /// Inodes with no name, kept for open handles.
    fn orphans(&self) -> Result<Vec<Ino>>;
    /// A named setting of the store.
    fn meta(&self, key: &str) -> Result<Option<String>>;
    /// Sizes.
    fn usage(&self) -> Result<Usage>;
}

/// The few operations the rules need to change rows.
pub trait Txn:
    Read + TxnFiles + TxnLinks + TxnReady + TxnLeases + TxnAgents + TxnQuotas + TxnChores
{
    /// Notes of a record that is parked which name goes, and to which file.
    fn put_backup(&mut self, record: RecordKey, name: &FileName, ino: Ino) -> Result<()>;
    /// Makes an inode; its number is chosen here.
    fn insert_node(&mut self, node: &NewNode) -> Result<Node>;
    /// Writes an inode's attributes back.
    fn update_node(&mut self, node: &Node) -> Result<()>;
    /// Deletes an inode with its chunks and extended attributes.
    fn delete_node(&mut self, ino: Ino) -> Result<()>;
    /// Adds a name. The name must be free.
    fn insert_entry(&mut self, parent: Ino, name: &FileName, ino: Ino) -> Result<()>;
    /// Points an existing name at another inode.
    fn replace_entry(&mut self, parent: Ino, name: &FileName, ino: Ino) -> Result<()>;
    /// Removes a name; false if it was not there.
    fn delete_entry(&mut self, parent: Ino, name: &FileName) -> Result<bool>;
    /// Says which name a directory has.
    fn put_dir_name(&mut self, dir: Ino, name: &FileName) -> Result<()>;
    /// Stores a symbolic link's target.
    fn put_symlink(&mut self, ino: Ino, target: &[u8]) -> Result<()>;
    /// Writes a chunk of a plain file.
    fn put_chunk(&mut self, ino: Ino, index: u32, data: &[u8]) -> Result<()>;
    /// Writes whole chunks of a plain file from `first` on, of which none is there.
    fn insert_whole_chunks(&mut self, ino: Ino, first: u32, data: &[u8]) -> Result<()>;
    /// Deletes the chunks `first..=last` and says how many there were.
    fn delete_chunks(&mut self, ino: Ino, first: u32, last: u32) -> Result<u64>;
    /// Frees at most so many chunks of a file, whichever; says how many.
    fn delete_some_chunks(&mut self, ino: Ino, most: u64) -> Result<u64>;
    /// Sets an extended attribute.
    fn put_xattr(&mut self, ino: Ino, name: &[u8], value: &[u8]) -> Result<()>;
    /// Removes an extended attribute; false if it was not there.
    fn delete_xattr(&mut self, ino: Ino, name: &[u8]) -> Result<bool>;
    /// Says what a directory is to a workspace.
    fn put_place(&mut self, dir: Ino, place: &PlaceRow) -> Result<()>;
    /// Forgets what a directory was.
    fn delete_place(&mut self, dir: Ino) -> Result<()>;
    /// Makes a workspace.
    fn insert_workspace(&mut self, path: &TreePath, dir: Ino, kind: &str) -> Result<WorkspaceKey>;
    /// Sets a workspace's directory and kind (`None`: the directory is gone).
    fn update_workspace(
        &mut self,
        key: WorkspaceKey,
        path: &TreePath,
        dir: Option<Ino>,
        kind: &str,
    ) -> Result<()>;
    /// Makes a record; its key is chosen here.
    fn insert_record(&mut self, record: &Record) -> Result<RecordKey>;
    /// Writes a record back if it is still at `expected` (key, version, state); false if not.
    fn update_record(&mut self, record: &Record, expected: &Expected) -> Result<bool>;
    /// Adds a version of a record's content, made by event `g`.
    fn insert_version(&mut self, g: G, version: &VersionRow) -> Result<()>;
    /// Makes or replaces a draft.
    fn put_draft(&mut self, draft: &Draft) -> Result<()>;
    /// Deletes a draft.
    fn delete_draft(&mut self, ino: Ino) -> Result<()>;
    /// Appends an event.
    fn insert_event(&mut self, event: &EventRow) -> Result<()>;
    /// Adds a refusal; its key is chosen here, each one more than the last.
    fn insert_refusal(
        &mut self,
        refusal: &RefusalRow,
        rejected: Option<&[u8]>,
    ) -> Result<RefusalKey>;
    /// Deletes the oldest refusals beyond the limits.
    fn prune_refusals(&mut self) -> Result<()>;
    /// Marks an inode as nameless (kept for its open handles).
    fn insert_orphan(&mut self, ino: Ino) -> Result<()>;
    /// Unmarks it.
    fn delete_orphan(&mut self, ino: Ino) -> Result<()>;
    /// Sets a named setting.
    fn put_meta(&mut self, key: &str, value: &str) -> Result<()>;
    /// Opens a savepoint. A transaction's first comes before its first change.
    fn savepoint(&mut self) -> Result<()>;
    /// Keeps what was done since the last savepoint.
    fn release(&mut self) -> Result<()>;
    /// Undoes what was done since the last savepoint.
    fn rollback(&mut self) -> Result<()>;
}

/// The setting that says how far the making of a store has come. One from before there was this
/// setting has none, and is whole.
pub const MAKING_KEY: &str = "making";

/// There are tables, and what a new store begins with is still missing.
pub const MAKING_BEGUN: &str = "begun";

/// All of it is there; after this word stands what it was then (`daemon/setup`).
pub const MAKING_DONE: &str = "done";

/// What a commit must survive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// The daemon's death.
    #[default]
    Process,
    /// Power loss, where the store is opened with `--sync full`.
    Power,
    /// Power loss, whatever the store was opened with: somebody asked by `fsync`.
    Flush,
}

/// The one writer of a store.
pub trait Writer: Send {
    /// Runs `work` in one transaction and commits it so that it survives what `work` says in the
    /// end. An error of `work` rolls everything back.
    ///
    /// # Errors
    /// What the store or `work` said; nothing of the transaction is then kept.
    fn transaction(
        &mut self,
        work: &mut dyn FnMut(&mut dyn Txn) -> Result<Durability>,
    ) -> Result<()>;
    /// Runs `work` on what is committed now, with the pages that the last transaction left at hand.
    ///
    /// # Errors
    /// What the store or `work` said.
    fn read(&self, work: &mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()>;
    /// Makes all that is committed survive power loss.
    fn sync(&mut self) -> Result<()>;
    /// Whether the disk is as good as full: what does not make space is then to be refused, so that
    /// what does can be made.
    fn is_tight(&self) -> bool;
    /// What every change is refused with, where the store cannot be written.
    fn refuses(&self) -> Option<StoreError> {
        None
    }
    /// Looks for space; true if there is some for any change.
    fn find_room(&mut self) -> bool;
    /// Whether [`checkpoint`](Self::checkpoint) has something to do.
    fn wants_checkpoint(&self) -> bool;
    /// Whether that can wait no longer for a moment in which nobody has anything to write.
    fn needs_checkpoint(&self) -> bool {
        false
    }
    /// Moves the write-ahead log into the main file where it has grown.
    fn checkpoint(&mut self) -> Result<()>;
}

/// See [`Readers::figures`].
#[derive(Clone, Debug)]
pub struct Figures {
    /// Bytes of its files, without holes and room that is taken ahead.
    pub bytes: u64,
    /// Those of its log, which are among them.
    pub log_bytes: u64,
    /// Connections that read it, whether somebody uses them or not.
    pub readers: usize,
    /// Those of them that somebody uses.
    pub readers_used: usize,
    /// How long flushes of the log took.
    pub flushes: Arc<Times>,
}

/// Snapshots for readers, from any thread.
pub trait Readers: Send + Sync {
    /// Runs `work` on one snapshot.
    ///
    /// # Errors
    /// What the store or `work` said.
    fn read(&self, work: &mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()>;
    /// Where the store lies.
    fn path(&self) -> &std::path::Path;
    /// The disk that it lies on, whatever it is called by now.
    ///
    /// # Errors
    /// If the system does not say.
    fn disk(&self) -> std::io::Result<rustix::fs::StatVfs>;
    /// How much there is of it, and what it does.
    fn figures(&self) -> Figures;
    /// Closes most of what stays open for those who read next, for want of descriptors.
    fn close_idle(&self);
    /// Why nothing can be changed, where nothing can: what hinders writing the store.
    fn write_protection(&self) -> Option<&str>;
    /// Every problem that the engine's own integrity check of the file finds, as of one commit; empty is well.
    /// `goes_on` is asked now and then; where it says false the check is given up, and there is nothing.
    ///
    /// # Errors
    /// What the store said.
    fn integrity(&self, goes_on: &mut dyn FnMut() -> bool) -> Result<Option<Vec<String>>>;
    /// Copies the whole store, as of one commit, to `target`, which is this file and no other. `progress` hears of pages that are
    /// done and of all; where it says false the copy is given up, and this is false.
    fn backup(
        &self,
        target: (&std::path::Path, Identity),
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<bool>;
}

/// Runs `work` on one snapshot and returns what it returned.
///
/// # Errors
/// What the store or `work` said.
pub fn read<T>(readers: &dyn Readers, work: impl FnMut(&dyn Read) -> Result<T>) -> Result<T> {
    given(|work| readers.read(work), work)
}

/// The same through the writer, for whoever holds it.
///
/// # Errors
/// What the store or `work` said.
pub fn read_by<T>(writer: &dyn Writer, work: impl FnMut(&dyn Read) -> Result<T>) -> Result<T> {
    given(|work| writer.read(work), work)
}

/// What `work` gives to one that only runs it.
fn given<T>(
    run: impl FnOnce(&mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()>,
    mut work: impl FnMut(&dyn Read) -> Result<T>,
) -> Result<T> {
    let mut out = None;
    run(&mut |snapshot| {
        out = Some(work(snapshot)?);
        Ok(())
    })?;
    out.ok_or_else(|| StoreError::Impossible("a read that gave nothing".into()))
}
