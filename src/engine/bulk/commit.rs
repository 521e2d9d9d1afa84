//! Many changes as one: what was done inside a transaction is made here, in its order, all of it or
//! nothing.
//!
//! What must stay true: each step is the ordinary command, under the ordinary rules, as the caller
//! who commits; the first refusal undoes them all; nothing is overwritten that changed since the
//! transaction used it. Deliberately not here: what the transaction looks like from inside (`tree/txn`).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::engine::change::stop::gone;
use crate::engine::claims::take::IsWritten;
use crate::engine::records::made::{Left, Made};
use crate::engine::records::save::{Saved, home_of};
use crate::engine::records::sight::{Base, Sight};
use crate::engine::{
    About, Command, Create, NewContent, Remove, RemoveWhat, Rename, RenameMode, Save,
    SetAttributes, Slot, Stop, Terms, Text, Turn, moved_by_copy,
};
use crate::limits::CONFLICTS_SHOWN_MAX;
use crate::names::{Dentry, FileName, TreePath, printable};
use crate::numbers::{Ino, RecordKey, UnixNanos};
use crate::refusal::{Refusal, Rule};
use crate::store::{Class, Node, StoreError};

/// A node as a transaction names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TxnNode {
    /// One of the store.
    Stored(Ino),
    /// The so-manieth that the transaction made.
    Made(u32),
}

/// A name in a directory of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TxnName {
    /// The directory.
    pub dir: TxnNode,
    /// The name in it.
    pub name: FileName,
}

/// One change of a transaction.
#[derive(Clone, Debug)]
pub enum Step {
    /// Makes a node.
    Create {
        /// Its name.
        at: TxnName,
        /// Permission bits.
        mode: u32,
        /// What it is.
        content: NewContent,
        /// Its number in the transaction.
        made: u32,
    },
    /// Saves a whole text.
    Save {
        /// The file.
        node: TxnNode,
        /// Its content.
        bytes: Arc<Vec<u8>>,
    },
    /// Sets attributes.
    Set {
        /// Of what.
        node: TxnNode,
        /// To what; the inode in it is not looked at.
        set: SetAttributes,
    },
    /// Renames.
    Rename {
        /// From.
        from: TxnName,
        /// To.
        to: TxnName,
        /// What else is wanted.
        mode: RenameMode,
    },
    /// Removes a name.
    Remove {
        /// The name.
        at: TxnName,
        /// Which call it is.
        what: RemoveWhat,
    },
}

/// What a transaction found in the store when it first used it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// What a name stood for; nothing, if it was free.
    Name(Option<Ino>),
    /// When the file last changed in any way.
    File(UnixNanos),
    /// The directory is there.
    Directory,
}

/// Something of the store that a transaction used.
#[derive(Clone, Debug)]
pub struct Used {
    /// Its path in the transaction, for who reads of it.
    pub path: TreePath,
    /// The name, or the file.
    pub what: UsedWhat,
    /// How it was found.
    pub found: Found,
    /// It is a file that was opened to be read.
    pub read: bool,
}

/// See [`Used`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UsedWhat {
    /// A name that was made, moved, replaced or removed.
    Name(Dentry),
    /// A file that was opened, changed, moved or removed.
    File(Ino),
    /// A directory whose attributes were set: what lies in it changes it, too, and is no use of it.
    Directory(Ino),
}

impl UsedWhat {
    /// How it is found now, `None` for a file or directory that is gone; and the node, of a file.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn find(
        &self,
        read: &dyn crate::store::Read,
    ) -> Result<(Option<Found>, Option<Node>), StoreError> {
        Ok(match self {
            UsedWhat::Name(Dentry { dir, name }) => {
                let found = read.lookup(*dir, name)?.map(|node| node.ino);
                (Some(Found::Name(found)), None)
            }
            UsedWhat::File(ino) => {
                let node = read.node(*ino)?.filter(|node| node.nlink > 0);
                (node.as_ref().map(|node| Found::File(node.ctime)), node)
            }
            UsedWhat::Directory(ino) => {
                let node = read.node(*ino)?.filter(|node| node.nlink > 0);
                (node.map(|_| Found::Directory), None)
            }
        })
    }
}

/// Makes all changes of a transaction.
pub struct Commit {
    /// The transaction's own path.
    pub path: TreePath,
    /// The steps, each with the path that it was about.
    pub steps: Vec<(Step, TreePath)>,
    /// What they rest on, in the order of its paths.
    pub used: Vec<Used>,
    /// Files of the transaction that a program has still open and wrote to.
    pub unsaved: Vec<TreePath>,
    /// Whether a file of the store is being written outside.
    pub is_written: IsWritten,
}

impl Command for Commit {
    type Out = ();

    fn operation(&self) -> &'static str {
        "commit"
    }

    fn about(&self) -> About {
        About::Path(self.path.clone())
    }

    /// As `Remove` by itself: what only removes makes space.
    fn terms(&self) -> Terms {
        Terms {
            is_seen_whole: true,
            needs_no_room: self.steps.iter().all(|(step, _)| matches!(step, Step::Remove { .. })),
            ..Terms::USUAL
        }
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        self.require_closed()?;
        let read = self.require_unchanged(turn)?;
        turn.trace = Some(turn.new_trace());
        let mut done = Done::after(read, Arc::clone(&self.is_written));
        for (step, path) in self.steps {
            step.run(turn, &mut done, &path).map_err(|stop| at(stop, path))?;
        }
        Ok(())
    }
}

/// A refusal of a step goes to `why`, whatever it is, and names the step's path.
fn at(stop: Stop, path: TreePath) -> Stop {
    match stop {
        Stop::Refused(mut refused) if !refused.kept => {
            (refused.kept, refused.path) = (true, path);
            Stop::Refused(refused)
        }
        other => other,
    }
}

impl Commit {
    fn require_closed(&self) -> Result<(), Stop> {
        let Some(first) = self.unsaved.first() else { return Ok(()) };
        let reason = format!("{} still open and written to", listed(&self.unsaved));
        let remedy = "commit when the programs that write have closed their files";
        Err(Stop::kept(Refusal::new(Rule::BeingWritten, reason, remedy), first.clone()))
    }

    /// Nothing that the transaction used was changed by others, and nobody outside is writing what is to be
    /// moved. Gives the records whose texts were read in it: they still say that. Everybody waits for this, so
    /// of each file its node is asked for once.
    fn require_unchanged(&self, turn: &Turn<'_>) -> Result<Arc<HashSet<RecordKey>>, Stop> {
        let (mut changed, mut written, mut read) = (Vec::new(), None, HashSet::new());
        for used in &self.used {
            let (found, node) = used.what.find(turn.txn)?;
            if found != Some(used.found) {
                if changed.last() != Some(&used.path) {
                    changed.push(used.path.clone());
                }
                continue;
            }
            let Some(node) = node.filter(|node| node.class != Class::Plain) else { continue };
            let record = turn.txn.record_at(node.ino)?;
            if written.is_none() && (self.is_written)(node.ino, record.as_ref()) {
                written = Some(&used.path);
            }
            read.extend(record.filter(|_| used.read).map(|record| record.key));
        }
        if !changed.is_empty() {
            let reason = format!("changed since the transaction used it: {}", listed(&changed));
            let remedy = "do it again from what is there now, in another transaction: rmdir throws this \
                          one away, as `workfs txn` has done by itself";
            return Err(Stop::kept(
                Refusal::new(Rule::Conflict, reason, remedy),
                self.path.clone(),
            ));
        }
        if let Some(path) = written {
            return Err(written_outside(path));
        }
        Ok(Arc::new(read))
    }
}

fn written_outside(path: &TreePath) -> Stop {
    let reason = format!("`{path}` is being written outside");
    let remedy = "try again when that program has closed it";
    Stop::kept(Refusal::new(Rule::BeingWritten, reason, remedy), path.clone())
}

/// Paths for a reason, not too many.
fn listed(paths: &[TreePath]) -> String {
    let shown: Vec<String> =
        paths.iter().take(CONFLICTS_SHOWN_MAX).map(|path| format!("`{path}`")).collect();
    let more = paths.len().saturating_sub(CONFLICTS_SHOWN_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &more
}

/// What the steps before have done.
struct Done {
    /// The nodes that were made, by their number in the transaction.
    made: HashMap<u32, Ino>,
    /// The files of records that were moved to another state.
    moved: HashSet<Ino>,
    /// The names that claims by copy took away.
    left: HashSet<Dentry>,
    /// The records that the transaction has read.
    read: Arc<HashSet<RecordKey>>,
    is_written: IsWritten,
}

impl Done {
    fn after(read: Arc<HashSet<RecordKey>>, is_written: IsWritten) -> Done {
        let (made, moved, left) = (HashMap::new(), HashSet::new(), HashSet::new());
        Done { made, moved, left, read, is_written }
    }

    fn ino(&self, node: TxnNode) -> Result<Ino, Stop> {
        match node {
            TxnNode::Stored(ino) => Ok(ino),
            TxnNode::Made(nth) => self.made.get(&nth).copied().ok_or_else(|| gone().into()),
        }
    }

    fn place(&self, at: TxnName) -> Result<Dentry, Stop> {
        Ok(Dentry::of(self.ino(at.dir)?, at.name))
    }

    /// Refuses a text under this name that would move a record which is being written outside: who wrote it need
    /// not have used its file.
    fn require_unwritten(
        &self,
        turn: &Turn<'_>,
        Dentry { dir, name }: Dentry<&FileName>,
    ) -> Result<(), Stop> {
        let Slot::Record(home) = turn.slot(dir, name)? else { return Ok(()) };
        match moved_by_copy(turn.txn, &home)? {
            Some((record, file)) if (self.is_written)(file, Some(&record)) => {
                Err(written_outside(&home_of(turn, &record)?.file_path()))
            }
            _ => Ok(()),
        }
    }

    /// Notes the name that a claim by copy took away, if one did.
    fn note_left(&mut self, left: Option<Left>) {
        self.left.extend(left.map(|left| Dentry::of(left.parent, left.name)));
    }

    /// What who commits has seen of a record.
    fn sight(&self) -> Sight {
        let read = Arc::clone(&self.read);
        Sight::Ask(Arc::new(move |record| match read.contains(&record) {
            true => Base::Current,
            false => Base::Unseen,
        }))
    }
}

impl Step {
    fn run(self, turn: &mut Turn<'_>, done: &mut Done, path: &TreePath) -> Result<(), Stop> {
        let sight = done.sight();
        match self {
            Step::Create { at, mode, content, made: nth } => {
                let Dentry { dir: parent, name } = done.place(at)?;
                let node = Create::new(parent, name, mode, content).run(turn)?;
                done.made.insert(nth, node.ino);
            }
            Step::Save { node, bytes } => {
                let ino = done.ino(node)?;
                if let Some(draft) = turn.txn.draft(ino)? {
                    done.require_unwritten(turn, Dentry::of(draft.dir, &draft.name))?;
                }
                let saved = save(turn, (ino, sight), &bytes, path);
                let saved = match done.moved.contains(&ino) {
                    true => saved.map_err(|stop| written_after(turn, ino, stop)),
                    false => saved,
                };
                done.note_left(saved?.and_then(|made| made.left));
            }
            Step::Set { node, set } => {
                SetAttributes { ino: done.ino(node)?, ..set }.run(turn)?;
            }
            Step::Rename { from, to, mode } => {
                let (from, to) = (done.place(from)?, done.place(to)?);
                done.require_unwritten(turn, to.as_ref())?;
                let replaced = turn.txn.lookup(to.dir, &to.name)?.map(|node| node.ino);
                let rename = Rename { from, to, mode, sight };
                let renamed = match replaced.filter(|ino| done.moved.contains(ino)) {
                    Some(ino) => rename.run(turn).map_err(|stop| written_after(turn, ino, stop)),
                    None => rename.run(turn),
                };
                if let Some(made) = renamed? {
                    done.moved.extend(made.moved.and(made.ino));
                    done.note_left(made.left);
                }
            }
            Step::Remove { at, what } => {
                let at = done.place(at)?;
                // As outside: who copied a record takes its old name away without harm.
                let is_left = done.left.contains(&at);
                let Dentry { dir: parent, name } = at;
                if !is_left || turn.txn.lookup(parent, &name)?.is_some() {
                    Remove { parent, name, what }.run(turn)?;
                }
            }
        }
        Ok(())
    }
}

/// A text that was written after a move still says what it said before: in a transaction the move
/// itself is made only now. What it says of the status then looks like another move.
fn written_after(turn: &Turn<'_>, ino: Ino, stop: Stop) -> Stop {
    let Stop::Refused(mut refused) = stop else { return stop };
    if !matches!(refused.refusal.rule, Rule::StatusDiffers | Rule::StatusMove) {
        return Stop::Refused(refused);
    }
    match said_by_move(turn, ino) {
        Ok(said) => {
            refused.refusal.remedy = format!(
                "in a transaction a move changes the text at the commit: write the text before the \
                 `mv`, or write in it what the `mv` brings: {said}"
            );
            Stop::Refused(refused)
        }
        Err(stop) => stop,
    }
}

/// The fields that a move has just written into a record.
fn said_by_move(turn: &Turn<'_>, ino: Ino) -> Result<String, Stop> {
    let record = turn.txn.record_at(ino)?.ok_or_else(gone)?;
    let home = home_of(turn, &record)?;
    let fields = home.kind().fields();
    let owner = record.owner.as_ref().map(|owner| owner.as_str());
    let said = [(&fields.status, record.status.as_deref()), (&fields.owner, owner)];
    let said = said.into_iter().filter_map(|(field, value)| {
        Some(format!("`{}: {}`", field.as_ref()?, printable(value?.as_bytes())))
    });
    Ok(said.collect::<Vec<_>>().join(" and "))
}

/// Saves a text. What was seen of a record is asked once, for the whole transaction. A text that
/// would leave a draft is refused: half of the work would be done.
fn save(
    turn: &mut Turn<'_>,
    (ino, sight): (Ino, Sight),
    bytes: &[u8],
    path: &TreePath,
) -> Result<Option<Made>, Stop> {
    let class = turn.txn.node(ino)?.ok_or_else(gone)?.class;
    let text = match class {
        Class::Plain => Text::unread(bytes.to_vec()),
        Class::Draft | Class::Record => Text::new(bytes),
    };
    let bytes = Arc::clone(&text.bytes);
    let save = Save { lay: Some(path.clone()), ..Save::of(ino, sight, text) };
    match save.run(turn)? {
        Saved::Kept(made) => Ok(made),
        Saved::Refused(refusal) => Err(Stop::rejected(refusal, path.clone(), bytes)),
    }
}
