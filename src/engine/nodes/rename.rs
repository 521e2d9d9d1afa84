//! Renaming: of ordinary nodes as POSIX has it, of records as transitions, of files into records
//! as saves. What a rename is depends on what lies where it starts and what the target name stands
//! for; the table is in `docs/semantics.md`.

use std::sync::Arc;

use super::filling::require_not_filling;
use super::remove::{is_directory, require_empty, require_idle, require_meant, retire};
use crate::engine::change::stop;
use crate::engine::change::stop::{gone, taken};
use crate::engine::places::governed::{Home, path_of};
use crate::engine::plain_files::plain;
use crate::engine::records::backup::tell_of_backup;
use crate::engine::records::made::Made;
use crate::engine::records::record::{Moving, Step};
use crate::engine::records::save::{admit, content_of, home_of, next_version};
use crate::engine::records::sight::{Base, Sight};
use crate::engine::{About, Command, Effect, Fate, RenameMode, Slot, Stop, Terms, Turn};
use crate::ledger::{EventName, Via};
use crate::names::{Dentry, FileName};
use crate::numbers::Ino;
use crate::refusal::{Refusal, Rule};
use crate::store::{Class, Node, NodeType, Record, Standing};

/// Renames `from` to `to`.
#[derive(Clone, Debug)]
pub struct Rename {
    /// Its name.
    pub from: Dentry,
    /// What it is to be.
    pub to: Dentry,
    /// What else is wanted.
    pub mode: RenameMode,
    /// Which version of the target record the caller saw, for a rename that is a save.
    pub sight: Sight,
}

impl Rename {
    /// To a name that nothing has; nobody goes by what the record says.
    #[must_use]
    pub fn to_free(from: Dentry, to: Dentry) -> Rename {
        let (mode, sight) = (RenameMode::NoReplace, Sight::Known(Base::Unseen));
        Rename { from, to, mode, sight }
    }
}

impl Command for Rename {
    type Out = Option<Made>;

    fn operation(&self) -> &'static str {
        "rename"
    }

    fn about(&self) -> About {
        About::Name(self.from.clone())
    }

    /// Of plain files, as on other file systems: `fsync` flushes.
    fn terms(&self) -> Terms {
        Terms { is_told_apart: true, ..Terms::UNFLUSHED }
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Option<Made>, Stop> {
        let parent = turn.directory(self.from.dir)?;
        let new_parent = turn.directory(self.to.dir)?;
        let source = match turn.existing(self.from.dir, &self.from.name) {
            Err(Stop::Refused(refused)) => return Err(self.lost(turn, refused.refusal)?),
            other => other?,
        };
        turn.require_lane(self.from.dir, &self.from.name)?;
        turn.require_lane(self.to.dir, &self.to.name)?;
        if source.node_type == NodeType::Directory {
            turn.require_directory(&source)?;
        }
        if source.class == Class::Record {
            turn.require_named_among_lanes(Some(&source), self.to.dir, &self.to.name)?;
        }
        turn.require_new_lane(self.to.dir, &self.to.name, source.node_type)?;
        turn.require_not_computed(self.to.dir, &self.to.name)?;
        if self.mode == RenameMode::Exchange {
            turn.require_not_computed(self.from.dir, &self.from.name)?;
        }
        let target = turn.txn.lookup(self.to.dir, &self.to.name)?;
        if let Some(target) = target.as_ref().filter(|t| t.node_type == NodeType::Directory) {
            turn.require_directory(target)?;
        }
        if self.mode == RenameMode::NoReplace && target.is_some() {
            return Err(taken(&self.to.name).into());
        }
        if target.as_ref().is_some_and(|target| target.ino == source.ino) {
            return Ok(None);
        }
        turn.require_loose(&parent, (&self.from.name, &source))?;
        if let Some(target) = &target {
            turn.require_loose(&new_parent, (&self.to.name, target))?;
        }
        // Also where nothing lies there by now: the kernel may still know a directory there, over which it lets nothing
        // but directories come.
        if self.mode == RenameMode::Replace && source.node_type == NodeType::Directory {
            require_meant(turn, self.to.dir, &self.to.name)?;
        }
        let governed = |node: &Node| node.class != Class::Plain;
        if governed(&source) || target.as_ref().is_some_and(governed) {
            turn.must_survive_power_loss();
        }
        match (self.mode, target) {
            (RenameMode::Exchange, None) => Err(stop::absent(&self.to.name).into()),
            (RenameMode::Exchange, Some(target)) => {
                self.exchange(turn, source, target).map(|()| None)
            }
            (_, target) => match source.class {
                Class::Record => self.record(turn, source, target),
                Class::Draft => self.draft(turn, source, target),
                Class::Plain => self.plain(turn, source, target),
            },
        }
    }
}

impl Rename {
    /// The source is gone. In a workspace that is worth a line in `why`: a race was lost.
    fn lost(&self, turn: &Turn<'_>, refusal: Refusal) -> Result<Stop, Stop> {
        Ok(match turn.slot(self.from.dir, &self.from.name)? {
            Slot::Record(home) => Stop::kept(refusal, home.file_path()),
            Slot::Plain => refusal.into(),
        })
    }

    /// An ordinary node, or a file that becomes (the next version of) a record.
    fn plain(
        self,
        turn: &mut Turn<'_>,
        source: Node,
        target: Option<Node>,
    ) -> Result<Option<Made>, Stop> {
        match turn.slot(self.to.dir, &self.to.name)? {
            Slot::Record(home) if source.node_type == NodeType::File => {
                self.save(turn, source, target, &home)
            }
            Slot::Record(home) if target.as_ref().is_some_and(|t| t.class != Class::Plain) => {
                let reason = format!("`{}` is no regular file", self.from.name);
                let refusal = Refusal::new(Rule::Draft, reason, "replace a record by a file only");
                Err(Stop::kept(refusal, home.file_path()))
            }
            _ => self.move_name(turn, source, target).map(|()| None),
        }
    }

    /// Temp file + rename: the save of a record.
    fn save(
        self,
        turn: &mut Turn<'_>,
        mut source: Node,
        target: Option<Node>,
        home: &Home,
    ) -> Result<Option<Made>, Stop> {
        turn.require_readable(&source, (&self.from.name, &home.file_path()))?;
        let text = content_of(turn, &source, &self.from.name)?;
        if source.nlink > 1 {
            let reason =
                format!("`{}` has {} names; a record has one", self.from.name, source.nlink);
            let refusal = Refusal::new(Rule::OneName, reason, "remove the other names first");
            return Err(Stop::kept(refusal, home.file_path()));
        }
        if target.as_ref().is_some_and(|target| target.node_type == NodeType::Directory) {
            return Err(is_directory(&self.to.name).into());
        }
        let record = match &target {
            Some(target) if target.class == Class::Record => turn.txn.record_at(target.ino)?,
            _ => None,
        };
        // The file's own class comes from the record it now is.
        let (was, before) = (source.class, source.clone());
        let made = match record {
            Some(record) => {
                let before = record.version;
                let made =
                    next_version(turn, record, home, &mut source, (&self.sight, &text), None)?;
                if made.version == before {
                    self.adopt(turn, home, &mut source)?;
                }
                made
            }
            None => {
                match admit(turn, home, &mut source, (&self.sight, &text), EventName::CREATED) {
                    Ok(made) => made,
                    Err(Stop::Refused(why)) if turn.takes_as_draft(home, &why.refusal)? => {
                        self.take_as_draft(turn, source, target, home, &text, &why.refusal)?;
                        return Ok(None);
                    }
                    Err(stop) => return Err(tell_of_backup(turn, home, &before, stop)),
                }
            }
        };
        match was {
            Class::Draft => turn.txn.delete_draft(source.ino)?,
            _ => {
                turn.txn.delete_chunks(source.ino, 0, crate::limits::CHUNK_INDEX_MAX)?;
                source.chunks = 0;
            }
        }
        // It may have been another record's backup.
        turn.lose_backup(self.from.dir, &before, None)?;
        turn.relink(self.from.as_ref(), self.to.as_ref(), &source, target)?;
        if was == Class::Plain {
            let to = home.file_path();
            turn.file_left(self.from.as_ref(), source.ino, &to)?;
        }
        Ok(Some(made))
    }

    /// A save that changed no byte still makes the new file the record's file.
    fn adopt(&self, turn: &mut Turn<'_>, home: &Home, source: &mut Node) -> Result<(), Stop> {
        let known = turn.txn.record_named(home.governed.workspace, &home.id)?;
        let mut record = known.ok_or_else(gone)?;
        let expected = record.expected();
        let (ino, dir, name, valid) = (source.ino, home.dir, home.name.clone(), record.is_valid());
        record.standing = Standing::Live { ino, dir, name, valid };
        turn.write_back(&mut record, &expected, home.kind(), None)?;
        source.class = Class::Record;
        source.ctime = turn.now;
        turn.txn.update_node(source)?;
        Ok(())
    }

    /// A record: to another state, to a backup name, or out of its workspace.
    fn record(
        self,
        turn: &mut Turn<'_>,
        source: Node,
        target: Option<Node>,
    ) -> Result<Option<Made>, Stop> {
        let record = turn.txn.record_at(source.ino)?.ok_or_else(gone)?;
        let lies = home_of(turn, &record)?;
        match turn.slot(self.to.dir, &self.to.name)? {
            Slot::Record(home) => {
                self.change_state(turn, source, target, record, &lies, &home).map(Some)
            }
            Slot::Plain => self.take_out(turn, source, target, record, &lies).map(|()| None),
        }
    }

    fn change_state(
        self,
        turn: &mut Turn<'_>,
        mut source: Node,
        target: Option<Node>,
        record: Record,
        lies: &Home,
        home: &Home,
    ) -> Result<Made, Stop> {
        let refuse = |refusal| Stop::kept(refusal, lies.file_path());
        lies.require_same_workspace(home).map_err(refuse)?;
        if lies.id != home.id {
            return Err(refuse(Refusal::new(
                Rule::Renamed,
                format!("`{}` would become `{}`: a record keeps its id", lies.id, home.id),
                "keep the file's name, or copy the text to a new record",
            )));
        }
        if target.is_some() {
            return Err(refuse(taken(&self.to.name)));
        }
        let before = record.version;
        let moved = if self.from.dir == self.to.dir {
            turn.require_own(&record, lies)?;
            // Another extension of the same id.
            let step = Step { valid: record.is_valid(), ..Step::of(EventName::RENAMED) };
            turn.step(record, home, &mut source, step)?
        } else {
            turn.transition(record, home, &mut source, Moving::Own, None)?
        };
        turn.relink(self.from.as_ref(), self.to.as_ref(), &source, None)?;
        Ok(Made { moved: Some(before), ..Made::of(&moved) })
    }

    /// To a name that is no record's: a backup beside it, or out of the workspace's care.
    fn take_out(
        self,
        turn: &mut Turn<'_>,
        mut source: Node,
        target: Option<Node>,
        record: Record,
        lies: &Home,
    ) -> Result<(), Stop> {
        turn.require_own(&record, lies)?;
        if self.from.dir != self.to.dir {
            turn.require_no_lane(lies, self.to.dir, &self.to.name)?;
            turn.require_named_lane(lies, self.to.dir)?;
            turn.require_leave(lies)?;
        }
        let content = turn.content(&record)?;
        let to = path_of(turn.txn, self.to.dir, &self.to.name)?.to_string();
        if self.from.dir == self.to.dir {
            let parked = Standing::Parked { dir: self.from.dir };
            turn.txn.put_backup(record.key, &lies.name, source.ino)?;
            retire(turn, record, lies, parked, EventName::RENAMED, Some(&to))?;
        } else {
            retire(turn, record, lies, Standing::Gone, EventName::LEFT, Some(&to))?;
        }
        source.class = Class::Plain;
        source.size = 0;
        plain::put(turn, &mut source, 0, &content)?;
        self.move_name(turn, source, target)
    }

    /// A draft: to another name of its directory, or out of it; not to another state.
    fn draft(
        self,
        turn: &mut Turn<'_>,
        mut source: Node,
        target: Option<Node>,
    ) -> Result<Option<Made>, Stop> {
        match turn.slot(self.to.dir, &self.to.name)? {
            Slot::Plain => {
                let text = content_of(turn, &source, &self.from.name)?;
                turn.txn.delete_draft(source.ino)?;
                source.class = Class::Plain;
                source.size = 0;
                plain::put(turn, &mut source, 0, &text.bytes)?;
                self.move_name(turn, source, target).map(|()| None)
            }
            Slot::Record(home) if self.from.dir == self.to.dir => {
                turn.require_readable(&source, (&self.from.name, &home.file_path()))?;
                let text = content_of(turn, &source, &self.from.name)?;
                let stays = target.is_none() && text.judge(&home).is_err();
                if !stays {
                    return self.save(turn, source, target, &home);
                }
                let found = turn.txn.draft(source.ino)?;
                let mut draft = found.ok_or_else(gone)?;
                draft.name = self.to.name.clone();
                turn.txn.put_draft(&draft)?;
                turn.relink(self.from.as_ref(), self.to.as_ref(), &source, None)?;
                Ok(None)
            }
            Slot::Record(home) => {
                turn.require_readable(&source, (&self.from.name, &home.file_path()))?;
                let why = turn.txn.draft(source.ino)?.and_then(|draft| draft.why);
                let because = why.map_or_else(String::new, |why| format!(": {}", why.reason));
                let refusal = Refusal::new(
                    Rule::Draft,
                    format!("`{}` is a draft and cannot change state{because}", self.from.name),
                    format!("mend it where it is: cat {}.why says what is wrong", self.from.name),
                );
                let text = content_of(turn, &source, &self.from.name)?;
                Err(Stop::rejected(refusal, home.file_path(), Arc::clone(&text.bytes)))
            }
        }
    }

    /// The rename of POSIX: checks types, replaces the target, moves the name.
    fn move_name(
        self,
        turn: &mut Turn<'_>,
        source: Node,
        target: Option<Node>,
    ) -> Result<(), Stop> {
        let directory = source.node_type == NodeType::Directory;
        if directory {
            require_not_below(turn, source.ino, self.to.dir, &self.from.name)?;
            require_idle(turn, &source, &self.from.name)?;
            require_not_filling(turn, &source, &self.from.name, self.to.dir, &self.to.name)?;
        }
        if let Some(target) = &target {
            let onto_directory = target.node_type == NodeType::Directory;
            match (directory, onto_directory) {
                (true, false) => {
                    let reason = format!("`{}` is not a directory", self.to.name);
                    let remedy = "remove it first";
                    return Err(Refusal::new(Rule::NotDirectory, reason, remedy).into());
                }
                (false, true) => return Err(is_directory(&self.to.name).into()),
                (true, true) => {
                    require_empty(turn.txn, target, &self.to.name)?;
                    turn.unsettle_dir(target.ino)?;
                }
                (false, false) => {}
            }
        }
        turn.require_checked((&source, &self.from.name), self.to.as_ref())?;
        if self.from.dir != self.to.dir {
            turn.lose_backup(self.from.dir, &source, Some(self.to.as_ref()))?;
        }
        if let Some(target) = &target {
            turn.lose_backup(self.to.dir, target, None)?;
        }
        turn.relink(self.from.as_ref(), self.to.as_ref(), &source, target)?;
        turn.file_moved(self.from.as_ref(), self.to.as_ref(), &source, Via::Rename)
    }
}

impl Turn<'_> {
    /// Moves a name of `source` to another one, over `target`.
    pub(in crate::engine) fn relink(
        &mut self,
        from: Dentry<&FileName>,
        to: Dentry<&FileName>,
        source: &Node,
        target: Option<Node>,
    ) -> Result<(), Stop> {
        let is_dir = |node: &Node| node.node_type == NodeType::Directory;
        let directory = is_dir(source);
        let over_directory = i32::from(target.as_ref().is_some_and(is_dir));
        self.txn.delete_entry(from.dir, from.name)?;
        match &target {
            Some(target) => {
                self.txn.replace_entry(to.dir, to.name, source.ino)?;
                self.unname(target, to.dir, to.name)?;
            }
            None => self.txn.insert_entry(to.dir, to.name, source.ino)?,
        }
        let mut source = source.clone();
        source.ctime = self.now;
        self.shift_name(&mut source, from, to)?;
        self.txn.update_node(&source)?;
        self.effect(Effect::Times(source.ino));
        if directory {
            self.unsettle_dir(source.ino)?;
            self.settle_dir(to.dir, to.name, source.ino)?;
            self.require_quota_of_name(from, to, source.ino)?;
        }
        let left = self.directory(from.dir)?;
        if from.dir == to.dir {
            self.touch_dir(left, -over_directory)?;
        } else {
            let moved = i32::from(directory);
            self.touch_dir(left, -moved)?;
            let entered = self.directory(to.dir)?;
            self.touch_dir(entered, moved - over_directory)?;
        }
        let fate = Fate::Moved {
            to: to.to_owned(),
            node_type: source.node_type,
            over: target.as_ref().map(|target| (target.ino, target.node_type)),
        };
        let (Dentry { dir: parent, name }, ino) = (from.to_owned(), source.ino);
        self.effect(Effect::Name { parent, name, ino, also_origin: false, fate });
        if let Some(target) = target {
            let (Dentry { dir: parent, name }, ino) = (to.to_owned(), target.ino);
            let fate = Fate::Replaced;
            self.effect(Effect::Name { parent, name, ino, also_origin: false, fate });
        }
        Ok(())
    }
}

/// A directory cannot be moved into itself or below. The kernel checks that for its own mount; what
/// another mount moves meanwhile it does not know.
pub(super) fn require_not_below(
    turn: &Turn<'_>,
    dir: Ino,
    to: Ino,
    name: &FileName,
) -> Result<(), Stop> {
    let mut at = to;
    loop {
        if at == dir {
            return Err(below_itself(name).into());
        }
        match turn.txn.node(at)? {
            Some(node) if node.parent != at => at = node.parent,
            _ => return Ok(()),
        }
    }
}

/// What is said of a directory that was to be moved into itself or below.
#[must_use]
pub fn below_itself(name: &FileName) -> Refusal {
    let reason = format!("`{name}` would lie below itself");
    Refusal::new(Rule::Loop, reason, "choose a target outside")
}
