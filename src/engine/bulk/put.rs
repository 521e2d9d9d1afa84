//! Putting what was brought from outside in its place: the change of which an import consists.
//!
//! What must stay true: putting the same thing in the same place again changes nothing; nothing
//! that is there is replaced; what a record-like file says is judged, and where its status
//! contradicts the directory, the directory wins. Deliberately not here: reading directories.

use std::sync::Arc;

use crate::engine::change::stop::gone;
use crate::engine::change::turn::Lookback;
use crate::engine::places::governed::Home;
use crate::engine::plain_files::files::Saved;
use crate::engine::plain_files::plain;
use crate::engine::records::record::Step;
use crate::engine::records::save::home_of;
use crate::engine::{About, Command, Effect, Link, Slot, Stop, Text, Turn};
use crate::kind::Statuses;
use crate::ledger::{EventName, Hash, Via};
use crate::limits::RECORD_BYTES_MAX;
use crate::names::{Dentry, FileName, TreePath};
use crate::numbers::{Ino, UnixNanos};
use crate::record::{Edit, patch};
use crate::refusal::{Refusal, Rule};
use crate::store::{
    Class, Draft, NewNode, Node, NodeType, Record, RefusedText, Standing, StoreError,
};

/// What is put.
#[derive(Clone, Debug)]
pub enum PutContent {
    /// A directory; one that is there is the one.
    Directory,
    /// A regular file.
    File(Arc<[u8]>),
    /// The text of a file that will be record-like, parsed already.
    Record(Box<Text>),
    /// A symbolic link to this target.
    Symlink(Vec<u8>),
    /// A further name of this plain file.
    Name(Ino),
}

/// Puts a node in its place, with its attributes.
#[derive(Clone, Debug)]
pub struct Put {
    /// The directory.
    pub parent: Ino,
    /// The name.
    pub name: FileName,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// When its content was last changed.
    pub mtime: UnixNanos,
    /// What it is.
    pub content: PutContent,
}

/// A field that was changed because it contradicted the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corrected {
    /// The field.
    pub field: String,
    /// What it said.
    pub from: String,
    /// What it says.
    pub to: String,
}

/// How a [`Put`] ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placed {
    /// It is there now: a directory, a link or a plain file.
    Plain(Ino),
    /// It is a record now.
    Record(Ino, Option<Corrected>),
    /// It is a draft now, for this reason; its bytes are as they came.
    Draft(Ino, Refusal),
    /// It was there already.
    Unchanged(Ino),
    /// It was put there before, and its record has moved on since; it was left alone.
    MovedOn(String),
    /// Something else is there, or it may not be; it was left alone.
    Left(String),
}

/// Asks whether the caller may put anything, so that who may not hears it also where nothing comes.
#[derive(Clone, Debug)]
pub struct MayPut {
    /// Where.
    pub to: TreePath,
}

impl Command for MayPut {
    type Out = ();

    fn operation(&self) -> &'static str {
        "import"
    }

    fn about(&self) -> About {
        About::Path(self.to.clone())
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        turn.require_operator("import", &self)
    }
}

impl Command for Put {
    type Out = Placed;

    fn operation(&self) -> &'static str {
        "import"
    }

    fn about(&self) -> About {
        About::Name(Dentry::of(self.parent, self.name.clone()))
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Placed, Stop> {
        turn.require_operator("import", &self)?;
        let parent = turn.directory(self.parent)?;
        match turn.require_not_computed(self.parent, &self.name) {
            // As in a copy of a mount.
            Err(Stop::Refused(_)) => {
                let reason = "workfs itself shows something of this name there";
                return Ok(Placed::Left(reason.to_owned()));
            }
            other => other?,
        }
        if let Some(there) = turn.txn.lookup(self.parent, &self.name)? {
            return self.compare(turn, &there);
        }
        if let PutContent::Name(ino) = self.content {
            let link = Link { ino, parent: self.parent, name: self.name };
            return Ok(Placed::Plain(link.run(turn)?.ino));
        }
        match turn.require_new_lane(self.parent, &self.name, self.node_type()) {
            // A lane of whoever is no agent: who makes one by `mkdir` is told so.
            Err(Stop::Refused(refused)) => return Ok(Placed::Left(refused.refusal.reason)),
            other => other?,
        }
        let placed = match (&self.content, turn.slot(self.parent, &self.name)?) {
            (PutContent::File(bytes), Slot::Record(home)) => {
                let text = Text::new(Arc::clone(bytes));
                self.record(turn, &home, &text)?
            }
            (PutContent::Record(text), Slot::Record(home)) => self.record(turn, &home, text)?,
            _ => self.plain(turn)?,
        };
        if matches!(placed, Placed::Left(_) | Placed::MovedOn(_)) {
            return Ok(placed);
        }
        let directory = matches!(self.content, PutContent::Directory);
        turn.touch_dir(parent, i32::from(directory))?;
        if let PutContent::File(_) | PutContent::Record(_) = self.content
            && let Placed::Plain(ino) | Placed::Record(ino, _) | Placed::Draft(ino, _) = placed
        {
            // To whoever watches, it was written and closed like any file that is copied there.
            turn.effect(Effect::Data(ino));
        }
        Ok(placed)
    }
}

impl Put {
    fn node_type(&self) -> NodeType {
        match self.content {
            PutContent::Directory => NodeType::Directory,
            PutContent::File(_) | PutContent::Record(_) | PutContent::Name(_) => NodeType::File,
            PutContent::Symlink(_) => NodeType::Symlink,
        }
    }

    /// Makes the node and its name.
    fn node(&self, turn: &mut Turn<'_>, class: Class, size: u64) -> Result<Node, StoreError> {
        let node_type = self.node_type();
        let quota = turn.txn.node(self.parent)?.and_then(|parent| parent.quota);
        let made = turn.txn.insert_node(&NewNode {
            mode: self.mode & 0o7777,
            uid: self.uid,
            gid: self.gid,
            size,
            ..NewNode::empty(node_type, class, self.parent, quota, self.mtime)
        })?;
        turn.txn.insert_entry(self.parent, &self.name, made.ino)?;
        let (parent, name) = (self.parent, self.name.clone());
        turn.effect(Effect::Appeared { parent, name, node_type });
        Ok(Node { ctime: turn.now, ..made })
    }

    fn plain(&self, turn: &mut Turn<'_>) -> Result<Placed, Stop> {
        let at = Dentry::of(self.parent, &self.name);
        if let PutContent::File(bytes) = &self.content
            && let Some(check) = turn.check_of(at)?
            && let Err(refusal) = check.judge(bytes)
        {
            return Ok(Placed::Left(format!("it is not what a check wants there: {refusal}")));
        }
        let mut node = self.node(turn, Class::Plain, 0)?;
        match &self.content {
            PutContent::Directory | PutContent::Name(_) => {}
            PutContent::File(bytes) => plain::put_sparse(turn, &mut node, bytes)?,
            PutContent::Record(text) => plain::put_sparse(turn, &mut node, &text.bytes)?,
            PutContent::Symlink(target) => {
                turn.txn.put_symlink(node.ino, target)?;
                node.size = target.len() as u64;
            }
        }
        turn.txn.update_node(&node)?;
        match node.node_type {
            NodeType::File => turn.name_file(at, node.ino)?,
            NodeType::Directory => turn.settle_dir(self.parent, &self.name, node.ino)?,
            _ => {}
        }
        let saved = Saved { event: EventName::IMPORTED, ..Saved::by(None) };
        turn.file_saved(at, &node, saved)?;
        Ok(Placed::Plain(node.ino))
    }

    /// A record-like file: a record, or a draft with the reason why not.
    fn record(&self, turn: &mut Turn<'_>, home: &Home, text: &Text) -> Result<Placed, Stop> {
        let (said, corrected) = correct(text, home);
        let known = turn.txn.record_named(home.governed.workspace, &home.id)?;
        if let Some(record) = &known
            && matches!(record.standing, Standing::Live { .. })
        {
            let lies = home_of(turn, record)?.file_path();
            let known = imported_as(turn, record, &home.file_path().to_string(), &said.bytes)?;
            if known == Lookback::HasIt {
                return Ok(Placed::MovedOn(format!("it is `{lies}` now")));
            }
            let refusal = Refusal::new(
                Rule::Taken,
                format!("`{}` is `{lies}` already: an id lives in one place", home.id),
                "remove one of the two, or give this one another id",
            );
            return self.draft(turn, home, text, refusal);
        }
        if let Err(mut refusal) = said.judge(home) {
            if let Some(Corrected { field, to, .. }) = &corrected {
                refusal.remedy = format!("{}; and set `{field}: {to}`", refusal.remedy);
            }
            return self.draft(turn, home, text, refusal);
        }
        let links = match turn.links(home, &said) {
            Ok(links) => links,
            Err(Stop::Refused(refused)) => return self.draft(turn, home, text, refused.refusal),
            Err(stop) => return Err(stop),
        };
        let links = links.as_ref();
        let mut node = self.node(turn, Class::Record, 0)?;
        let via = corrected.is_some().then_some(Via::Correction);
        match known {
            None => {
                let event = EventName::IMPORTED;
                turn.create_record(home, &mut node, event, (&said, links), via)?;
            }
            Some(mut record) => {
                record.begin_again(home.owner.is_some());
                record.status = said.status(home);
                let content = Some(&said.bytes[..]);
                let step = Step { content, via, links, ..Step::of(EventName::IMPORTED) };
                turn.step(record, home, &mut node, step)?;
            }
        }
        Ok(Placed::Record(node.ino, corrected))
    }

    fn draft(
        &self,
        turn: &mut Turn<'_>,
        home: &Home,
        text: &Text,
        refusal: Refusal,
    ) -> Result<Placed, Stop> {
        let node = self.node(turn, Class::Draft, text.bytes.len() as u64)?;
        turn.txn.update_node(&node)?;
        let why = RefusedText::from(refusal.clone());
        turn.txn.put_draft(&Draft {
            ino: node.ino,
            dir: self.parent,
            name: self.name.clone(),
            why: Some(why),
            content: text.bytes.to_vec(),
        })?;
        turn.drafted(home, &refusal)?;
        Ok(Placed::Draft(node.ino, refusal))
    }

    /// Something is there: the same, or something to be left alone.
    fn compare(&self, turn: &Turn<'_>, there: &Node) -> Result<Placed, Stop> {
        let unchanged = Ok(Placed::Unchanged(there.ino));
        let left = |why: &str| Ok(Placed::Left(why.to_owned()));
        let bytes = match (&self.content, there.node_type) {
            (PutContent::Directory, NodeType::Directory) => return unchanged,
            (PutContent::Symlink(target), NodeType::Symlink) => {
                if turn.txn.symlink(there.ino)?.as_ref() == Some(target) {
                    return unchanged;
                }
                return left("a link to something else is there");
            }
            (PutContent::Name(ino), NodeType::File) if *ino == there.ino => return unchanged,
            (PutContent::Name(_), NodeType::File) => return left("another file is there"),
            (PutContent::File(bytes), NodeType::File) => bytes,
            (PutContent::Record(text), NodeType::File) => &text.bytes,
            _ => return left("something of another type is there"),
        };
        let same = match there.class {
            Class::Plain => {
                there.size == bytes.len() as u64
                    && plain::read(turn.txn, there, 0, bytes.len())?[..] == bytes[..]
            }
            Class::Draft => turn.txn.draft(there.ino)?.ok_or_else(gone)?.content == bytes[..],
            Class::Record => {
                let text = match &self.content {
                    PutContent::Record(text) => Text::clone(text),
                    _ => Text::new(Arc::clone(bytes)),
                };
                return compare_record(turn, there, &text);
            }
        };
        if same { unchanged } else { left("other content is there") }
    }
}

/// A record is there: with this text now, or once, or with another one.
fn compare_record(turn: &Turn<'_>, there: &Node, text: &Text) -> Result<Placed, Stop> {
    let record = turn.txn.record_at(there.ino)?.ok_or_else(gone)?;
    let home = home_of(turn, &record)?;
    let content = turn.content(&record)?;
    if content[..] == text.bytes[..] {
        return Ok(Placed::Unchanged(there.ino));
    }
    let (said, _) = correct(text, &home);
    if content[..] == said.bytes[..] {
        return Ok(Placed::Unchanged(there.ino));
    }
    let version = record.version;
    let known = imported_as(turn, &record, &home.file_path().to_string(), &said.bytes)?;
    Ok(match known {
        Lookback::HasIt => Placed::MovedOn(format!("it is at version {version} now")),
        // Of a long past nothing is overwritten for it: somebody looks.
        Lookback::HasNot | Lookback::TooLong => {
            Placed::Left(format!("another text of it is there, at version {version}"))
        }
    })
}

/// The text with the directory's status, where it has one that is not the directory's.
fn correct(text: &Text, home: &Home) -> (Text, Option<Corrected>) {
    let as_it_is = || (text.clone(), None);
    let kind = home.kind();
    let (Ok(document), Some(field)) = (&text.parsed, &kind.fields().status) else {
        return as_it_is();
    };
    let statuses = &kind.state(home.state).status;
    let (Statuses::Listed(_), Some(first)) = (statuses, statuses.first()) else {
        return as_it_is();
    };
    match kind.status_of(document.value()) {
        Some(status) if !statuses.contains(status) => {
            let edit = Edit { field, value: first };
            let Ok(bytes) = patch(&text.bytes, &[edit]) else { return as_it_is() };
            let corrected =
                Corrected { field: field.clone(), from: status.to_owned(), to: first.to_owned() };
            (Text::new(bytes), Some(corrected))
        }
        _ => as_it_is(),
    }
}

/// Whether `record` was imported to `path` with this content.
fn imported_as(
    turn: &Turn<'_>,
    record: &Record,
    path: &str,
    content: &[u8],
) -> Result<Lookback, StoreError> {
    debug_assert!(content.len() <= RECORD_BYTES_MAX * 16, "only small files come as one change");
    let sha256 = Hash::of(content).to_string();
    turn.past_of(record, |line| {
        let said = |pointer: &str| line.pointer(pointer).and_then(serde_json::Value::as_str);
        said("/event") == Some(EventName::IMPORTED.as_str())
            && said("/payload/path") == Some(path)
            && said("/payload/content_sha256") == Some(&sha256)
    })
}
