//! Removing a name: unlink and rmdir.

use crate::engine::change::happening::Happening;
use crate::engine::places::governed::{Home, path_of};
use crate::engine::{About, Command, Effect, Fate, Slot, Stop, Terms, Turn};
use crate::ledger::{EventName, Field, Payload};
use crate::names::{Dentry, FileName};
use crate::numbers::{G, Ino, ROOT};
use crate::refusal::{Refusal, Rule};
use crate::store::{Class, Node, NodeType, Read, Record, Standing, StoreError};

/// Which call it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoveWhat {
    /// unlink: anything but a directory.
    File,
    /// rmdir: an empty directory.
    Directory,
}

/// Removes a name.
#[derive(Clone, Debug)]
pub struct Remove {
    /// The directory.
    pub parent: Ino,
    /// The name.
    pub name: FileName,
    /// Which call it is.
    pub what: RemoveWhat,
}

impl Command for Remove {
    type Out = ();

    fn operation(&self) -> &'static str {
        match self.what {
            RemoveWhat::File => "unlink",
            RemoveWhat::Directory => "rmdir",
        }
    }

    fn about(&self) -> About {
        About::Name(Dentry::of(self.parent, self.name.clone()))
    }

    /// Of plain files, as on other file systems: `fsync` flushes.
    fn terms(&self) -> Terms {
        Terms { needs_no_room: true, ..Terms::UNFLUSHED }
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        let parent = turn.directory(self.parent)?;
        let node = turn.existing(self.parent, &self.name)?;
        turn.require_lane(self.parent, &self.name)?;
        turn.require_loose(&parent, (&self.name, &node))?;
        let directory = node.node_type == NodeType::Directory;
        match (self.what, directory) {
            (RemoveWhat::File, true) => return Err(is_directory(&self.name).into()),
            (RemoveWhat::Directory, false) => {
                return Err(Refusal::new(
                    Rule::NotDirectory,
                    format!("`{}` is not a directory", self.name),
                    "use rm",
                )
                .into());
            }
            (RemoveWhat::Directory, true) => {
                turn.require_directory(&node)?;
                require_empty(turn.txn, &node, &self.name)?;
                require_meant(turn, self.parent, &self.name)?;
                turn.unsettle_dir(node.ino)?;
            }
            (RemoveWhat::File, false) => turn.lose_backup(self.parent, &node, None)?,
        }
        if node.class != Class::Plain {
            turn.must_survive_power_loss();
        }
        if node.class == Class::Record
            && let Some(record) = turn.txn.record_at(node.ino)?
        {
            let Slot::Record(home) = turn.slot(self.parent, &self.name)? else {
                return Err(StoreError::Impossible(format!("record at {}", self.name)).into());
            };
            turn.require_own(&record, &home)?;
            retire(turn, record, &home, Standing::Gone, EventName::REMOVED, None)?;
        }
        turn.txn.delete_entry(self.parent, &self.name)?;
        turn.unname(&node, self.parent, &self.name)?;
        turn.touch_dir(parent, -i32::from(directory))?;
        if node.class == Class::Plain {
            turn.file_gone(Dentry::of(self.parent, &self.name), node.node_type, None)?;
        }
        let (parent, name, ino) = (self.parent, self.name, node.ino);
        let fate = Fate::Removed(node.node_type);
        turn.effect(Effect::Name { parent, name, ino, also_origin: false, fate });
        Ok(())
    }
}

/// Takes a record's file away from it, with an event; its history stays.
pub(in crate::engine) fn retire(
    turn: &mut Turn<'_>,
    mut record: Record,
    home: &Home,
    standing: Standing,
    event: EventName,
    to: Option<&str>,
) -> Result<G, StoreError> {
    let expected = record.expected();
    let path = home.file_path().to_string();
    let payload = Payload::of(&[
        ("attempt", Field::Integer(record.attempt.0.cast_signed())),
        ("owner", record.owner.as_ref().into()),
        ("path", Field::Text(&path)),
        ("state", Field::Text(record.state.as_str())),
        ("to", to.map_or(Field::Absent, Field::Text)),
    ]);
    let happening = Happening { before: Some(record.version), ..home.happening(event, payload) };
    let g = turn.append(Some(&record), happening)?;
    record.last_g = g;
    record.standing = standing;
    // What it said about others goes with it; what others say about it stays.
    let links = match record.standing {
        Standing::Gone => Some(turn.no_links(&record)?),
        Standing::Live { .. } | Standing::Parked { .. } => None,
    };
    turn.write_back(&mut record, &expected, home.kind(), links.as_ref())?;
    if record.is_lapsed() && record.standing == Standing::Gone {
        turn.need_not_return(record.key)?;
    }
    Ok(g)
}

/// The refusal for a directory where a file is wanted.
pub(super) fn is_directory(name: &FileName) -> Refusal {
    Refusal::new(Rule::IsDirectory, format!("`{name}` is a directory"), "use rmdir")
}

/// Refuses a directory that has entries.
pub(super) fn require_empty(read: &dyn Read, dir: &Node, name: &FileName) -> Result<(), Stop> {
    let mut first = None;
    read.list(dir.ino, None, &mut |(entry, _)| {
        first = Some(entry);
        false
    })?;
    match first {
        None => Ok(()),
        Some(entry) => Err(Refusal::new(
            Rule::NotEmpty,
            format!("`{name}` is not empty: it holds `{entry}`"),
            "move or remove what it holds first",
        )
        .into()),
    }
}

/// Refuses, once, to take a directory away whose name the caller's kernel may have looked up before
/// another mount moved away what lay there.
pub(super) fn require_meant(turn: &Turn<'_>, parent: Ino, name: &FileName) -> Result<(), Stop> {
    if turn.audience.takes_moved_away(turn.context.origin, Dentry::of(parent, name)) {
        let reason = format!("the directory `{name}` is another one than was looked up");
        return Err(Refusal::new(Rule::Elsewhere, reason, "try again").into());
    }
    Ok(())
}

/// Refuses to move a directory that records need: it is a governed one and not empty, or lies above a
/// workspace.
pub(super) fn require_idle(turn: &Turn<'_>, dir: &Node, name: &FileName) -> Result<(), Stop> {
    let in_use = |turn: &Turn<'_>| -> Result<Option<&str>, StoreError> {
        if turn.txn.place(dir.ino)?.is_some() {
            let mut any = false;
            turn.txn.list(dir.ino, None, &mut |_| {
                any = true;
                false
            })?;
            return Ok(any.then_some("is part of a workspace that is in use"));
        }
        for workspace in turn.txn.workspaces()? {
            let mut at = workspace.dir;
            while let Some(ino) = at.filter(|ino| *ino != ROOT) {
                if ino == dir.ino {
                    return Ok(Some("has a workspace in it"));
                }
                at = turn.txn.node(ino)?.map(|node| node.parent);
            }
        }
        Ok(None)
    };
    if let Some(why) = in_use(turn)? {
        let refusal = Refusal::new(
            Rule::InUse,
            format!("`{name}` {why}"),
            "empty it first, or make the new directory and move the files one by one",
        );
        return Err(Stop::kept(refusal, path_of(turn.txn, dir.parent, name)?));
    }
    Ok(())
}
