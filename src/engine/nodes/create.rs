//! Making a node: mkdir, mknod, create, symlink.

use crate::engine::change::stop::taken;
use crate::engine::places::governed::Home;
use crate::engine::plain_files::files::Saved;
use crate::engine::records::draft::renamed_over;
use crate::engine::records::save::{home_of, require_not_theirs};
use crate::engine::{About, Command, Effect, Origin, Slot, Stop, Terms, Turn};
use crate::ledger::EventName;
use crate::limits::SYMLINK_BYTES_MAX;
use crate::names::{Dentry, FileName};
use crate::numbers::Ino;
use crate::refusal::{Refusal, Rule};
use crate::store::{Class, Draft, NewNode, Node, NodeType, Standing};

/// What the new node is.
#[derive(Clone, Debug)]
pub enum NewContent {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link to this target.
    Symlink(Vec<u8>),
    /// A pipe, socket or device node.
    Special(NodeType, u32),
}

impl NewContent {
    /// Its type, size and device number.
    fn shape(&self) -> Result<(NodeType, u64, u32), Refusal> {
        Ok(match self {
            NewContent::Directory => (NodeType::Directory, 0, 0),
            NewContent::File => (NodeType::File, 0, 0),
            NewContent::Symlink(target) => {
                check_target(target)?;
                (NodeType::Symlink, target.len() as u64, 0)
            }
            NewContent::Special(node_type, rdev) => (*node_type, 0, *rdev),
        })
    }
}

/// Told of a new draft or checked file before it is committed, so that it can be hidden before
/// anybody sees it.
#[derive(Clone)]
pub struct OnDraft(pub std::sync::Arc<dyn Fn(Ino) + Send + Sync>);

impl std::fmt::Debug for OnDraft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OnDraft")
    }
}

/// Makes a node with a name.
#[derive(Clone, Debug)]
pub struct Create {
    /// The directory.
    pub parent: Ino,
    /// The name.
    pub name: FileName,
    /// Permission bits, after the caller's umask.
    pub mode: u32,
    /// What to make.
    pub content: NewContent,
    /// Who is told if it is a draft.
    pub on_draft: Option<OnDraft>,
}

/// The set-group-id bit: a directory with it passes its group on.
const S_ISGID: u32 = 0o2000;

impl Create {
    /// One of which nobody is told before it is committed.
    #[must_use]
    pub fn new(parent: Ino, name: FileName, mode: u32, content: NewContent) -> Create {
        Create { parent, name, mode, content, on_draft: None }
    }
}

impl Command for Create {
    type Out = Node;

    fn operation(&self) -> &'static str {
        match self.content {
            NewContent::Directory => "mkdir",
            NewContent::File => "create",
            NewContent::Symlink(_) => "symlink",
            NewContent::Special(..) => "mknod",
        }
    }

    fn about(&self) -> About {
        About::Name(Dentry::of(self.parent, self.name.clone()))
    }

    /// As on other file systems: flushed with `fsync` of the file or of the directory. A governed
    /// directory says more (see `Turn::append`).
    fn terms(&self) -> Terms {
        Terms::UNFLUSHED
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Node, Stop> {
        let parent = turn.directory(self.parent)?;
        turn.require_lane(self.parent, &self.name)?;
        if turn.txn.lookup(self.parent, &self.name)?.is_some() {
            return Err(taken(&self.name).into());
        }
        let (node_type, size, rdev) = self.content.shape()?;
        turn.require_new_lane(self.parent, &self.name, node_type)?;
        turn.require_not_computed(self.parent, &self.name)?;
        let draft = match turn.slot(self.parent, &self.name)? {
            Slot::Record(home) if node_type == NodeType::File => {
                turn.require_makeable(&home)?;
                true
            }
            _ => false,
        };
        let directory = node_type == NodeType::Directory;
        let class = if draft { Class::Draft } else { Class::Plain };
        let new = new_node(turn, &parent, (node_type, class), self.mode);
        let node = turn.txn.insert_node(&NewNode { size, rdev, ..new })?;
        let ino = node.ino;
        turn.txn.insert_entry(self.parent, &self.name, ino)?;
        if let NewContent::Symlink(target) = &self.content {
            turn.txn.put_symlink(ino, target)?;
        }
        let checked = !draft
            && node_type == NodeType::File
            && turn.check_of(Dentry::of(self.parent, &self.name))?.is_some();
        let hides = self.on_draft.as_ref().filter(|_| draft || checked);
        if let Some(OnDraft(tell)) = hides {
            tell(ino);
        }
        if draft {
            let (dir, name) = (self.parent, self.name.clone());
            turn.txn.put_draft(&Draft { ino, dir, name, why: None, content: Vec::new() })?;
        }
        if directory {
            turn.settle_dir(self.parent, &self.name, ino)?;
        }
        turn.touch_dir(parent, i32::from(directory))?;
        match (node.node_type, node.class) {
            // Its `close` is its event.
            (NodeType::File, Class::Plain) => {
                turn.name_file(Dentry::of(self.parent, &self.name), ino)?
            }
            (NodeType::File, _) => {}
            _ => {
                let saved = Saved { event: EventName::CREATED, ..Saved::by(None) };
                turn.file_saved(Dentry::of(self.parent, &self.name), &node, saved)?;
            }
        }
        // What is hidden appears when it is judged.
        if hides.is_none() {
            let (parent, name) = (self.parent, self.name.clone());
            turn.effect(Effect::Appeared { parent, name, node_type });
        }
        Ok(node)
    }
}

/// What is made in `parent` by whoever has the turn: as on other file systems a directory with the set-group-ID
/// bit passes its group on, and the bit to directories.
fn new_node(
    turn: &Turn<'_>,
    parent: &Node,
    (node_type, class): (NodeType, Class),
    mode: u32,
) -> NewNode {
    let directory = node_type == NodeType::Directory;
    let inherits = parent.mode & S_ISGID != 0;
    NewNode {
        mode: mode & 0o7777 | if inherits && directory { S_ISGID } else { 0 },
        uid: turn.context.actor.uid,
        gid: if inherits { parent.gid } else { turn.context.gid },
        ..NewNode::empty(node_type, class, parent.ino, parent.quota, turn.now)
    }
}

impl Turn<'_> {
    /// Refuses a new file in which nothing that the caller writes could become a record: its id is in
    /// use, or it is not the caller's to make one there. A draft that stayed would be nobody's to mend.
    fn require_makeable(&self, home: &Home) -> Result<(), Stop> {
        let known = self.txn.record_named(home.governed.workspace, &home.id)?;
        let refused = match &known {
            Some(record) if matches!(record.standing, Standing::Live { .. }) => {
                require_not_theirs(record, &home_of(self, record)?, home)
            }
            // What a program is about to rename over a record is none of its own.
            _ if renamed_over(self.txn, home)?.is_some() => Ok(()),
            _ if self.context.origin == Origin::Daemon => Ok(()),
            known => self.context.may_make(home, known.as_ref()),
        };
        refused.map_err(|refusal| Stop::kept(refusal, home.file_path()))
    }
}

fn check_target(target: &[u8]) -> Result<(), Refusal> {
    if target.len() > SYMLINK_BYTES_MAX {
        return Err(Refusal::new(
            Rule::NameTooLong,
            format!("a link target of {} bytes is over {SYMLINK_BYTES_MAX}", target.len()),
            "use a shorter target",
        ));
    }
    if target.is_empty() {
        return Err(Refusal::new(Rule::Absent, "a link target cannot be empty", "name a target"));
    }
    Ok(())
}
