//! Plain files whose changes count: events, versions, and the table of their names.
//!
//! What must stay true: one save is one event, in the transaction that makes it visible or in the
//! one that `close` waits for; a version has the content that its event hashed; where no rule
//! counts nothing is read or written here. Deliberately not here: records, which have their own.

use std::sync::{Arc, LazyLock};

use super::plain;
use crate::config::{Retention, Scope};
use crate::engine::change::happening::Happening;
use crate::engine::{About, Command, Effect, Stop, Terms, Turn, path_of};
use crate::ledger::{EventName, Field, Hash, Payload, Via};
use crate::limits::{HASHED_IN_TURN_BYTES_MAX, VERSION_BYTES_MAX};
use crate::names::{Dentry, FileName, KindName, TreePath};
use crate::numbers::{G, Ino, UnixNanos};
use crate::store::{Class, Durability, History, Node, NodeType, StoreError};

/// What events about plain files have in the place of a kind.
pub const FILE_KIND: &str = "file";

static KIND: LazyLock<KindName> = LazyLock::new(|| {
    // PROOF: a literal that is a kind's name.
    KindName::new(FILE_KIND).unwrap_or_else(|why| unreachable!("{FILE_KIND}: {why}"))
});

/// The hash of a large file's content, found before the change so that the writer need not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    /// Its size.
    pub size: u64,
    /// The file's `ctime` at which it was that.
    pub ctime: UnixNanos,
    /// The hash.
    pub sha256: Hash,
}

/// A handle that wrote was closed or synced: the event of what is there now.
#[derive(Clone, Debug)]
pub struct SaveFile {
    /// The file.
    pub ino: Ino,
    /// Of a large one: its hash.
    pub digest: Option<Digest>,
    /// What its commit must survive: more for `fsync` than for `close`.
    pub durability: Durability,
}

impl Command for SaveFile {
    type Out = ();

    fn operation(&self) -> &'static str {
        "save"
    }

    fn about(&self) -> About {
        About::Node(self.ino)
    }

    fn terms(&self) -> Terms {
        Terms { durability: self.durability, ..Terms::USUAL }
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        let node = turn.txn.node(self.ino)?;
        let Some(node) = node.filter(|node| node.nlink > 0 && node.class == Class::Plain) else {
            return Ok(());
        };
        if let Some(Dentry { dir, name }) = turn.name_of_file(&node)? {
            turn.renew_lock(&node)?;
            let saved = Saved { digest: self.digest, ..Saved::by(None) };
            turn.file_saved(dir, &name, &node, saved)?;
        }
        Ok(())
    }
}

/// How a file came to be what it is.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Saved {
    /// What happened.
    pub event: EventName,
    /// By which way, where that is worth saying.
    pub via: Option<Via>,
    /// Where it was before, if its event says so: it is one of that path, too.
    pub from: Option<TreePath>,
    /// The version that came back.
    pub from_g: Option<G>,
    /// Of a large one: its hash.
    pub digest: Option<Digest>,
}

impl Saved {
    /// A save.
    pub fn by(via: Option<Via>) -> Saved {
        Saved { event: EventName::SAVED, via, from: None, from_g: None, digest: None }
    }
}

impl Turn<'_> {
    /// The rules that count for files of `dir`.
    pub(in crate::engine) fn scope(&self, dir: Ino) -> Result<Option<Arc<Scope>>, StoreError> {
        if self.config.files().is_empty() {
            return Ok(None);
        }
        self.scopes.of(self.scopes.ticket(), self.txn, self.config, dir)
    }

    /// What is kept of the file `name` in `dir`, if its changes count.
    fn kept(&self, dir: Ino, name: &FileName) -> Result<Option<(Retention, TreePath)>, StoreError> {
        let Some(scope) = self.scope(dir)? else { return Ok(None) };
        let keep = self.config.files().keep(&scope, name);
        Ok(keep.map(|keep| (keep, scope.path.join(name.clone()))))
    }

    /// The path of `name` in `dir`, if it counts what comes there or leaves it: of a directory also where only
    /// what lies in it does, whose events do not tell of that.
    fn counts(
        &self,
        dir: Ino,
        name: &FileName,
        is_dir: bool,
    ) -> Result<Option<TreePath>, StoreError> {
        let kept = self.kept(dir, name)?.map(|(_, path)| path);
        if kept.is_some() || !is_dir {
            return Ok(kept);
        }
        let path = path_of(self.txn, dir, name)?;
        let counts = self.config.files().may_keep_below(&path) && path.can_be_named();
        Ok(counts.then_some(path))
    }

    /// Whether that counts of one of these two nodes, which are exchanged.
    pub(in crate::engine) fn counts_exchange(
        &self,
        dir: Ino,
        name: &FileName,
        nodes: [&Node; 2],
    ) -> Result<bool, StoreError> {
        let is_dir = nodes.iter().any(|node| node.node_type == NodeType::Directory);
        Ok(self.counts(dir, name, is_dir)?.is_some())
    }

    /// Notes the name of the file `ino`, where rules count.
    pub(in crate::engine) fn name_file(
        &mut self,
        dir: Ino,
        name: &FileName,
        ino: Ino,
    ) -> Result<(), StoreError> {
        if self.scope(dir)?.is_some() {
            self.txn.put_file_name(ino, dir, name)?;
            self.renew_lock_named(dir, name, ino)?;
        }
        Ok(())
    }

    /// A name of `node` in `dir` is gone; `next` has become its first one by this.
    pub(in crate::engine) fn forget_file_name(
        &mut self,
        node: &Node,
        dir: Ino,
        next: Option<Dentry>,
    ) -> Result<(), StoreError> {
        if !node.is_plain_file() || self.config.files().is_empty() {
            return Ok(());
        }
        if node.nlink == 0 {
            return match self.scope(dir)? {
                Some(_) => self.txn.delete_file_name(node.ino),
                None => Ok(()),
            };
        }
        if self.txn.file_name(node.ino)?.is_some() {
            return Ok(());
        }
        let next = match next {
            None => self.counting_further_name(node.ino)?,
            first => first,
        };
        let Some(Dentry { dir, name }) = next else { return Ok(()) };
        self.take_over(node, dir, &name)
    }

    /// Saves of a file are told under this name from now on; what was saved until now was told of the name before.
    fn take_over(&mut self, node: &Node, dir: Ino, name: &FileName) -> Result<(), StoreError> {
        self.name_file(dir, name, node.ino)?;
        self.file_saved(dir, name, node, Saved::by(Some(Via::Link)))
    }

    /// A further name of a file, if it counts; no others are looked at, of which there may be thousands.
    fn counting_further_name(&self, ino: Ino) -> Result<Option<Dentry>, StoreError> {
        let further = self.txn.further_name(ino)?;
        let Some(Dentry { dir, name }) = further else { return Ok(None) };
        Ok(self.kept(dir, &name)?.map(|_| Dentry { dir, name }))
    }

    /// A plain file has the further name `name` in `dir` from now on.
    pub(in crate::engine) fn file_linked(
        &mut self,
        node: &Node,
        dir: Ino,
        name: &FileName,
    ) -> Result<(), StoreError> {
        // It stands for the file where nothing is told of the name that did.
        if node.node_type == NodeType::File && self.kept(dir, name)?.is_some() {
            let told = match self.name_of_file(node)? {
                Some(Dentry { dir, name }) => self.kept(dir, &name)?.is_some(),
                None => false,
            };
            if !told {
                self.txn.put_file_name(node.ino, dir, name)?;
                self.effect(Effect::Counts(node.ino));
            }
        }
        self.renew_lock_named(dir, name, node.ino)?;
        self.file_saved(dir, name, node, Saved::by(Some(Via::Link)))
    }

    /// The directory and name of a file, where rules count.
    pub(in crate::engine) fn name_of_file(
        &mut self,
        node: &Node,
    ) -> Result<Option<Dentry>, StoreError> {
        if let Some(noted) = self.txn.file_name(node.ino)? {
            return Ok(Some(noted));
        }
        // It came with a directory that was moved here, or lost the name that was noted.
        if self.scope(node.parent)?.is_none() {
            return Ok(None);
        }
        let Some(name) = self.txn.name_in(node.parent, node.ino)? else { return Ok(None) };
        self.txn.put_file_name(node.ino, node.parent, &name)?;
        Ok(Some(Dentry::of(node.parent, name)))
    }

    /// The path under which saves of a file of several names are told, where that is not `name` in `dir`.
    fn told_as(
        &self,
        node: &Node,
        dir: Ino,
        name: &FileName,
    ) -> Result<Option<TreePath>, StoreError> {
        if node.node_type != NodeType::File || node.nlink < 2 {
            return Ok(None);
        }
        let noted = self.txn.file_name(node.ino)?;
        let Some(told) = noted.filter(|told| told.as_ref() != Dentry { dir, name }) else {
            return Ok(None);
        };
        Ok(self.kept(told.dir, &told.name)?.map(|(_, path)| path))
    }

    /// [`Turn::file_saved`] of what was changed by the name `name`: where saves of the file are told under another
    /// of its names, it is a save there, too.
    pub(in crate::engine) fn file_changed(
        &mut self,
        dir: Ino,
        name: &FileName,
        node: &Node,
        saved: Saved,
    ) -> Result<(), StoreError> {
        if node.nlink > 1
            && let Some(told) = self.name_of_file(node)?
            && told.as_ref() != (Dentry { dir, name })
        {
            self.file_saved(told.dir, &told.name, node, Saved::by(None))?;
        }
        self.file_saved(dir, name, node, saved)
    }

    /// The event, and where it is wanted the version, of what lies at `dir/name` now.
    pub(in crate::engine) fn file_saved(
        &mut self,
        dir: Ino,
        name: &FileName,
        node: &Node,
        saved: Saved,
    ) -> Result<(), StoreError> {
        let Some((keep, path)) = self.kept(dir, name)? else { return Ok(()) };
        self.file_told((&path, Some(&keep)), Dentry { dir, name }, node, saved)
    }

    /// The same of what lies at `path`, of which `keep` is kept.
    fn file_told(
        &mut self,
        (path, keep): (&TreePath, Option<&Retention>),
        Dentry { dir, name }: Dentry<&FileName>,
        node: &Node,
        saved: Saved,
    ) -> Result<(), StoreError> {
        let file = node.node_type == NodeType::File;
        let is_wanted = |keep: &&Retention| {
            keep.versions > 0 && node.size <= keep.file_bytes.min(VERSION_BYTES_MAX)
        };
        let wanted = keep.filter(|_| file).filter(is_wanted);
        let content = if wanted.is_some() || (file && node.size <= HASHED_IN_TURN_BYTES_MAX) {
            Some(plain::read(self.txn, node, 0, node.size as usize)?)
        } else {
            None
        };
        let fits = |digest: &Digest| digest.size == node.size && digest.ctime == node.ctime;
        let found = saved.digest.filter(fits).map(|digest| digest.sha256);
        let sha256 = content.as_ref().map(Hash::of).or(found);
        let shown = path.to_string();
        let from = saved.from.as_ref().map(ToString::to_string);
        let left = saved.from.as_ref().map(|from| self.txn.history(from)).transpose()?;
        let mut told_as = self.told_as(node, dir, name)?;
        if file && told_as.is_none() && saved.via == Some(Via::Link) {
            told_as = Some(path.clone());
        }
        let told_as = told_as.map(|told| told.to_string());
        let left_g = left.as_ref().map(|left| left.as_ref().map_or(0, |left| left.last_g.0));
        let payload = Payload::of(&[
            ("content_sha256", sha256.into()),
            ("from_before_g", left_g.into()),
            ("from_g", saved.from_g.map(|g| g.0).into()),
            ("from_path", from.as_deref().into()),
            // What it is may be of another than of who did this.
            (
                "owner_uid",
                (node.uid != self.context.actor.uid).then_some(u64::from(node.uid)).into(),
            ),
            ("path", Field::Text(&shown)),
            ("size", if file { node.size.into() } else { Field::Absent }),
            // Saves of this file are told under another of its names.
            ("told_as", told_as.as_deref().into()),
            ("type", told_type(node.node_type)),
            ("via", saved.via.into()),
        ]);
        let mut history = self.file_event(saved.event, path, payload)?;
        if let Some(from) = &saved.from {
            match left.flatten() {
                Some(left) => {
                    self.txn.update_history(&History { last_g: history.last_g, ..left })?;
                }
                None => drop(self.txn.insert_history(from, history.last_g)?),
            }
        }
        if let (Some(keep), Some(content), Some(sha256)) = (wanted, content, sha256) {
            self.keep_version(&mut history, keep, sha256, &content)?;
        }
        self.txn.update_history(&history)
    }

    /// The event of a name that is gone; `to` is where it went.
    pub(in crate::engine) fn file_gone(
        &mut self,
        Dentry { dir, name }: Dentry<&FileName>,
        node_type: NodeType,
        to: Option<&TreePath>,
    ) -> Result<(), StoreError> {
        match self.kept(dir, name)? {
            Some((_, path)) => self.path_gone((&path, node_type), to),
            None => Ok(()),
        }
    }

    fn path_gone(
        &mut self,
        (path, node_type): (&TreePath, NodeType),
        to: Option<&TreePath>,
    ) -> Result<(), StoreError> {
        let (shown, to) = (path.to_string(), to.map(ToString::to_string));
        let payload = Payload::of(&[
            ("path", Field::Text(&shown)),
            ("to", to.as_deref().into()),
            ("type", told_type(node_type)),
        ]);
        let history = self.file_event(EventName::REMOVED, path, payload)?;
        self.txn.update_history(&history)
    }

    /// A file became a record's content: its name is gone from where it was.
    pub(in crate::engine) fn file_left(
        &mut self,
        dir: Ino,
        name: &FileName,
        ino: Ino,
        to: &TreePath,
    ) -> Result<(), StoreError> {
        if self.scope(dir)?.is_some() {
            self.txn.delete_file_name(ino)?;
            self.file_gone(Dentry { dir, name }, NodeType::File, Some(to))?;
        }
        Ok(())
    }

    /// The node `node` went from one name to another.
    pub(in crate::engine) fn file_moved(
        &mut self,
        Dentry { dir: from_dir, name: from_name }: Dentry<&FileName>,
        Dentry { dir, name }: Dentry<&FileName>,
        node: &Node,
        via: Via,
    ) -> Result<(), Stop> {
        if self.config.files().is_empty() {
            return Ok(());
        }
        let file = node.node_type == NodeType::File;
        if file && node.nlink == 1 && self.lock_named(from_dir, from_name)?.is_some() {
            self.require_lock_runs(node)?;
        }
        if node.node_type == NodeType::Directory {
            self.scopes.forget();
            self.effect(Effect::DirectoryMoved);
            self.begin_locks_below(node.ino)?;
        }
        let comes_from_scope = self.scope(from_dir)?.is_some();
        let goes_to_scope = self.scope(dir)?.is_some();
        // Who asks for the name that its saves are told under hears of all of them, as long as it has that name.
        let is_told_otherwise = self.told_as(node, dir, name)?.is_some();
        if file && goes_to_scope {
            if !is_told_otherwise {
                self.txn.put_file_name(node.ino, dir, name)?;
            }
            if !comes_from_scope {
                self.effect(Effect::Counts(node.ino));
            }
            // Another of its names may be a lock's.
            if node.nlink == 1 {
                self.txn.delete_lease(node.ino)?;
            }
            self.renew_lock_named(dir, name, node.ino)?;
        } else if file && comes_from_scope && !is_told_otherwise {
            self.txn.delete_file_name(node.ino)?;
            if node.nlink > 1
                && let Some(Dentry { dir, name }) = self.counting_further_name(node.ino)?
            {
                self.take_over(node, dir, &name)?;
            }
        }
        let is_dir = node.node_type == NodeType::Directory;
        let from = self.counts(from_dir, from_name, is_dir)?;
        if let Some(path) = self.counts(dir, name, is_dir)? {
            let event = match (&from, file) {
                (None, true) => EventName::SAVED,
                (None, false) => EventName::CREATED,
                (Some(_), _) => EventName::RENAMED,
            };
            let saved = Saved { event, via: Some(via), from, from_g: None, digest: None };
            let keep = self.kept(dir, name)?.map(|(keep, _)| keep);
            self.file_told((&path, keep.as_ref()), Dentry { dir, name }, node, saved)?;
        } else if let Some(from) = from {
            let to = Some(path_of(self.txn, dir, name)?).filter(TreePath::can_be_named);
            self.path_gone((&from, node.node_type), to.as_ref())?;
        }
        Ok(())
    }

    /// Appends an event about the file at `path`, linked to the one before.
    pub(super) fn file_event(
        &mut self,
        name: EventName,
        path: &TreePath,
        payload: Payload,
    ) -> Result<History, StoreError> {
        let known = self.txn.history(path)?;
        let before = known.as_ref().map_or(G(0), |history| history.last_g);
        let happening = Happening { kind: Some(&KIND), ..Happening::of(name, payload) };
        let g = self.append_after(before, None, happening)?;
        Ok(match known {
            Some(history) => History { last_g: g, ..history },
            None => {
                let key = self.txn.insert_history(path, g)?;
                History { key, path: path.clone(), last_g: g, versions: 0, bytes: 0 }
            }
        })
    }
}

/// What an event says of the type of what it is about: of a regular file nothing.
fn told_type(node_type: NodeType) -> Field<'static> {
    match node_type {
        NodeType::File => Field::Absent,
        NodeType::Directory => Field::Text("directory"),
        NodeType::Symlink => Field::Text("link"),
        NodeType::Fifo | NodeType::Socket | NodeType::CharDevice | NodeType::BlockDevice => {
            Field::Text("special")
        }
    }
}
