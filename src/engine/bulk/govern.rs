//! Taking over a plain directory that the configuration wants for a workspace, as after `init --layout`.
//!
//! What must stay true: the directory and its files come under the rules together, or not at all;
//! each file is judged as an import judges it: the directory wins over a status, and what is no
//! record becomes a draft with the reason. Deliberately not here: which directories there are.

use crate::engine::places::governed::{governed, is_plain, path_of};
use crate::engine::plain_files::plain;
use crate::engine::{
    About, Command, Placed, Put, PutContent, Remove, RemoveWhat, Slot, Stop, Text, Turn,
};
use crate::limits::RECORD_BYTES_MAX;
use crate::names::{Dentry, FileName, TreePath};
use crate::numbers::Ino;
use crate::refusal::{Refusal, Rule};
use crate::store::{Node, NodeType};

/// Takes over one directory, without those below it; or the files that came to lie in one while no
/// configuration wanted it.
#[derive(Clone, Debug)]
pub struct Govern {
    /// The directory above it.
    pub parent: Ino,
    /// Its name.
    pub name: FileName,
}

impl Command for Govern {
    /// What became of each record-like file.
    type Out = Vec<(FileName, Placed)>;

    fn operation(&self) -> &'static str {
        "init"
    }

    fn about(&self) -> About {
        About::Name(Dentry::of(self.parent, self.name.clone()))
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Self::Out, Stop> {
        turn.require_operator("govern a directory", &self)?;
        let dir = turn.existing(self.parent, &self.name)?;
        let dir = turn.directory(dir.ino)?;
        if is_plain(turn.txn, turn.config, dir.ino)? {
            // As for who makes one.
            turn.require_new_lane(self.parent, &self.name, NodeType::Directory)?;
            // By the configuration before it may have been a workspace's, or one of its own.
            turn.unsettle_dir(dir.ino)?;
            turn.settle_dir(self.parent, &self.name, dir.ino)?;
        }
        let mut files = Vec::new();
        turn.txn.list(dir.ino, None, &mut |(name, node)| {
            if node.is_plain_file() {
                files.push((name, node));
            }
            true
        })?;
        let mut placed = Vec::new();
        for (name, node) in files {
            if matches!(turn.slot(dir.ino, &name)?, Slot::Record(_)) {
                placed.push((name.clone(), take_over(turn, dir.ino, name, &node)?));
            }
        }
        Ok(placed)
    }
}

/// Takes over the root of the tree where the configuration wants it for a workspace: nobody makes it, and
/// nobody moves it there.
#[derive(Clone, Copy, Debug)]
pub struct GovernRoot {
    /// The root.
    pub root: Ino,
}

impl Command for GovernRoot {
    type Out = ();

    fn operation(&self) -> &'static str {
        "init"
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        turn.require_operator("govern a directory", &self)?;
        match turn.config.bind(&TreePath::root()) {
            Some(binding) if governed(turn.txn, turn.config, self.root)?.is_none() => {
                Ok(turn.settle_workspace(TreePath::root(), self.root, binding.kind.name())?)
            }
            _ => Ok(()),
        }
    }
}

/// Makes of a plain file what its name says: a record, or a draft.
fn take_over(turn: &mut Turn<'_>, dir: Ino, name: FileName, file: &Node) -> Result<Placed, Stop> {
    if file.size > RECORD_BYTES_MAX as u64 {
        let refusal = Refusal::new(
            Rule::TooLarge,
            format!("`{name}` has {} bytes, a record at most {RECORD_BYTES_MAX}", file.size),
            "move it elsewhere, or give it another extension, and run this again",
        );
        return Err(Stop::kept(refusal, path_of(turn.txn, dir, &name)?));
    }
    let bytes = plain::read(turn.txn, file, 0, RECORD_BYTES_MAX)?;
    Remove { parent: dir, name: name.clone(), what: RemoveWhat::File }.run(turn)?;
    let content = PutContent::Record(Box::new(Text::new(bytes)));
    let (mode, uid, gid, mtime) = (file.mode, file.uid, file.gid, file.mtime);
    let put = Put { parent: dir, name: name.clone(), mode, uid, gid, mtime, content };
    let placed = put.run(turn)?;
    let ino = match &placed {
        Placed::Record(ino, _) | Placed::Draft(ino, _) => *ino,
        Placed::Plain(ino) | Placed::Unchanged(ino) => *ino,
        // Its record was imported from this very path, and has moved on.
        Placed::MovedOn(why) | Placed::Left(why) => {
            let remedy = "remove this file, and run this again";
            let refusal = Refusal::new(Rule::Taken, format!("`{name}`: {why}"), remedy);
            return Err(Stop::kept(refusal, path_of(turn.txn, dir, &name)?));
        }
    };
    // It keeps them until it is reclaimed.
    turn.copy_xattrs(file.ino, ino)?;
    Ok(placed)
}
