//! What only a check of the whole store asks: every row, and what no row says of itself.
//!
//! What must stay true: a row that cannot be read ends no listing. Deliberately not here: what rows
//! must say of each other.

use crate::names::FileName;
use crate::numbers::{G, Ino, RecordKey, WorkspaceKey};

use super::{EventRow, Node, Record, Result, Visit, WorkspaceRow};

/// A row, or why it cannot be read.
pub type Legible<T> = std::result::Result<T, String>;

/// How an object of the schema differs from what workfs makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Differs {
    /// It is not there.
    Missing,
    /// It is not one of ours.
    Foreign,
    /// It is another one than ours of that name.
    Other,
}

/// A name in a directory, as its row has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRow {
    /// The directory.
    pub parent: Ino,
    /// The name; where it is none, its bytes as far as they can be shown.
    pub name: std::result::Result<FileName, String>,
    /// Where it leads.
    pub ino: Ino,
}

/// A way to the names in a directory, of which a damaged page of names ends one and not all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the first name on.
    Forwards,
    /// From the last name on.
    Backwards,
    /// What directories say of themselves.
    Directories,
    /// What records say of their files.
    Records,
    /// What drafts say of themselves.
    Drafts,
}

impl Way {
    /// All of them; the first has all names where it does not end early.
    pub const ALL: [Way; 5] =
        [Way::Forwards, Way::Backwards, Way::Directories, Way::Records, Way::Drafts];
}

/// The stored content of one inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    /// The inode.
    pub ino: Ino,
    /// How many chunks there are.
    pub count: u64,
    /// Where the last one ends.
    pub end: u64,
    /// The bytes of the longest.
    pub longest: u64,
    /// How many of them cannot be read: they are not there.
    pub lost: u64,
}

/// The numbers of a table, none of which is given out twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// What they number.
    pub of: &'static str,
    /// Up to which they are noted as given out.
    pub noted: u64,
    /// The highest that is in use.
    pub highest: u64,
}

/// What a row of its own says about an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A directory's name.
    DirName,
    /// A link's target.
    Target,
    /// A draft's text.
    Draft,
    /// Extended attributes.
    Attributes,
    /// That it has no name.
    Nameless,
    /// That it is a lock, and until when.
    Lock,
    /// What is charged to it.
    Quota,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 7] = [
        Part::DirName,
        Part::Target,
        Part::Draft,
        Part::Attributes,
        Part::Nameless,
        Part::Lock,
        Part::Quota,
    ];
}

/// What can be asked of the whole store.
pub trait ReadChecks {
    /// Rows that belong to others that are not there, but for those of inodes.
    fn unowned(&self) -> Result<Vec<String>>;
    /// How the schema differs from the one that this program makes: `trigger x` is foreign.
    fn schema_differences(&self) -> Result<Vec<(String, Differs)>>;
    /// All numbers that are given out one after the other.
    fn numbers(&self) -> Result<Vec<Numbers>>;
    /// Every inode, in the order of their numbers.
    fn all_nodes(&self, visit: Visit<'_, (Ino, Legible<Node>)>) -> Result<()>;
    /// Every name.
    fn all_entries(&self, visit: Visit<'_, EntryRow>) -> Result<()>;
    /// The names in a directory that are found in this way.
    fn entries_of(&self, dir: Ino, way: Way, visit: Visit<'_, EntryRow>) -> Result<()>;
    /// All inodes of which there is such a row.
    fn inodes_with(&self, part: Part, visit: Visit<'_, Ino>) -> Result<()>;
    /// The stored content of every inode that has some.
    fn all_chunks(&self, visit: Visit<'_, Chunks>) -> Result<()>;
    /// Every event, in order.
    fn all_events(&self, visit: Visit<'_, (G, Legible<EventRow>)>) -> Result<()>;
    /// Every workspace.
    fn all_workspaces(&self, visit: Visit<'_, (WorkspaceKey, Legible<WorkspaceRow>)>)
    -> Result<()>;
    /// Every record, by workspace, with the file that its row names.
    fn all_records(
        &self,
        visit: Visit<'_, (RecordKey, Option<Ino>, Legible<Record>)>,
    ) -> Result<()>;
    /// Versions whose record there is not, by the events that made them.
    fn stray_versions(&self, visit: Visit<'_, G>) -> Result<()>;
    /// Edges that are declared by a record that is not there: which one, and the other end.
    fn stray_edges(&self, visit: Visit<'_, (String, String)>) -> Result<()>;
}
