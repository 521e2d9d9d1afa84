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
        if let Some(at) = turn.name_of_file(&node)? {
            turn.renew_lock(&node)?;
            let saved = Saved { digest: self.digest, ..Saved::by(None) };
            turn.file_saved(at.as_ref(), &node, saved)?;
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

    /// What is kept of the file of this name, if its changes count.
    fn kept(&self, at: Dentry<&FileName>) -> Result<Option<(Retention, TreePath)>, StoreError> {
        let Some(scope) = self.scope(at.dir)? else { return Ok(None) };
        let keep = self.config.files().keep(&scope, at.name);
        Ok(keep.map(|keep| (keep, scope.path.join(at.name.clone()))))
    }

    /// The path of a name, if it counts what comes there or leaves it: of a directory also where only
    /// what lies in it does, whose events do not tell of that.
    fn counts(&self, at: Dentry<&FileName>, is_dir: bool) -> Result<Option<TreePath>, StoreError> {
        let kept = self.kept(at)?.map(|(_, path)| path);
        if kept.is_some() || !is_dir {
            return Ok(kept);
        }
        let path = path_of(self.txn, at.dir, at.name)?;
        let counts = self.config.files().may_keep_below(&path) && path.can_be_named();
        Ok(counts.then_some(path))
    }

    /// Whether that counts of one of these two nodes, which are exchanged.
    pub(in crate::engine) fn counts_exchange(
        &self,
        at: Dentry<&FileName>,
        nodes: [&Node; 2],
    ) -> Result<bool, StoreError> {
        let is_dir = nodes.iter().any(|node| node.node_type == NodeType::Directory);
        Ok(self.counts(at, is_dir)?.is_some())
    }

    /// Notes the name of the file `ino`, where rules count.
    pub(in crate::engine) fn name_file(
        &mut self,
        at: Dentry<&FileName>,
        ino: Ino,
    ) -> Result<(), StoreError> {
        if self.scope(at.dir)?.is_some() {
            self.txn.put_file_name(ino, at.dir, at.name)?;
            self.renew_lock_named(at, ino)?;
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
        next.map_or(Ok(()), |at| self.take_over(node, at.as_ref()))
    }

    /// Saves of a file are told under this name from now on; what was saved until now was told of the name before.
    fn take_over(&mut self, node: &Node, at: Dentry<&FileName>) -> Result<(), StoreError> {
        self.name_file(at, node.ino)?;
        self.file_saved(at, node, Saved::by(Some(Via::Link)))
    }

    /// A further name of a file, if it counts; no others are looked at, of which there may be thousands.
    fn counting_further_name(&self, ino: Ino) -> Result<Option<Dentry>, StoreError> {
        let Some(at) = self.txn.further_name(ino)? else { return Ok(None) };
        Ok(self.kept(at.as_ref())?.map(|_| at))
    }

    /// A plain file has this further name from now on.
    pub(in crate::engine) fn file_linked(
        &mut self,
        node: &Node,
        at: Dentry<&FileName>,
    ) -> Result<(), StoreError> {
        // It stands for the file where nothing is told of the name that did.
        if node.node_type == NodeType::File && self.kept(at)?.is_some() {
            let told = match self.name_of_file(node)? {
                Some(noted) => self.kept(noted.as_ref())?.is_some(),
                None => false,
            };
            if !told {
                self.txn.put_file_name(node.ino, at.dir, at.name)?;
                self.effect(Effect::Counts(node.ino));
            }
        }
        self.renew_lock_named(at, node.ino)?;
        self.file_saved(at, node, Saved::by(Some(Via::Link)))
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

    /// The path under which saves of a file of several names are told, where that is not this one's.
    fn told_as(&self, node: &Node, at: Dentry<&FileName>) -> Result<Option<TreePath>, StoreError> {
        if node.node_type != NodeType::File || node.nlink < 2 {
            return Ok(None);
        }
        let noted = self.txn.file_name(node.ino)?;
        let Some(told) = noted.filter(|told| told.as_ref() != at) else { return Ok(None) };
        Ok(self.kept(told.as_ref())?.map(|(_, path)| path))
    }

    /// [`Turn::file_saved`] of what was changed by this name: where saves of the file are told under another
    /// of its names, it is a save there, too.
    pub(in crate::engine) fn file_changed(
        &mut self,
        at: Dentry<&FileName>,
        node: &Node,
        saved: Saved,
    ) -> Result<(), StoreError> {
        if node.nlink > 1
            && let Some(told) = self.name_of_file(node)?
            && told.as_ref() != at
        {
            self.file_saved(told.as_ref(), node, Saved::by(None))?;
        }
        self.file_saved(at, node, saved)
    }

    /// The event, and where it is wanted the version, of what lies there now.
    pub(in crate::engine) fn file_saved(
        &mut self,
        at: Dentry<&FileName>,
        node: &Node,
        saved: Saved,
    ) -> Result<(), StoreError> {
        let Some((keep, path)) = self.kept(at)? else { return Ok(()) };
        self.file_told((&path, Some(&keep)), at, node, saved)
    }

    /// The same of what lies at `path`, of which `keep` is kept.
    fn file_told(
        &mut self,
        (path, keep): (&TreePath, Option<&Retention>),
        at: Dentry<&FileName>,
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
        let mut told_as = self.told_as(node, at)?;
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
        at: Dentry<&FileName>,
        node_type: NodeType,
        to: Option<&TreePath>,
    ) -> Result<(), StoreError> {
        match self.kept(at)? {
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
        at: Dentry<&FileName>,
        ino: Ino,
        to: &TreePath,
    ) -> Result<(), StoreError> {
        if self.scope(at.dir)?.is_some() {
            self.txn.delete_file_name(ino)?;
            self.file_gone(at, NodeType::File, Some(to))?;
        }
        Ok(())
    }

    /// The node `node` went from one name to another.
    pub(in crate::engine) fn file_moved(
        &mut self,
        from: Dentry<&FileName>,
        to: Dentry<&FileName>,
        node: &Node,
        via: Via,
    ) -> Result<(), Stop> {
        if self.config.files().is_empty() {
            return Ok(());
        }
        let file = node.node_type == NodeType::File;
        if file
            && node.nlink == 1
            && let Some(lease) = self.lock_named(from)?
        {
            self.require_lock_runs(node, lease)?;
        }
        if node.node_type == NodeType::Directory {
            self.scopes.forget();
            self.effect(Effect::DirectoryMoved);
            self.begin_locks_below(node.ino)?;
        }
        let comes_from_scope = self.scope(from.dir)?.is_some();
        let goes_to_scope = self.scope(to.dir)?.is_some();
        // Who asks for the name that its saves are told under hears of all of them, as long as it has that name.
        let is_told_otherwise = self.told_as(node, to)?.is_some();
        if file && goes_to_scope {
            if !is_told_otherwise {
                self.txn.put_file_name(node.ino, to.dir, to.name)?;
            }
            if !comes_from_scope {
                self.effect(Effect::Counts(node.ino));
            }
            // Another of its names may be a lock's.
            if node.nlink == 1 {
                self.txn.delete_lease(node.ino)?;
            }
            self.renew_lock_named(to, node.ino)?;
        } else if file && comes_from_scope && !is_told_otherwise {
            self.txn.delete_file_name(node.ino)?;
            if node.nlink > 1
                && let Some(further) = self.counting_further_name(node.ino)?
            {
                self.take_over(node, further.as_ref())?;
            }
        }
        let is_dir = node.node_type == NodeType::Directory;
        let left = self.counts(from, is_dir)?;
        if let Some(path) = self.counts(to, is_dir)? {
            let event = match (&left, file) {
                (None, true) => EventName::SAVED,
                (None, false) => EventName::CREATED,
                (Some(_), _) => EventName::RENAMED,
            };
            let saved = Saved { event, from: left, ..Saved::by(Some(via)) };
            let keep = self.kept(to)?.map(|(keep, _)| keep);
            self.file_told((&path, keep.as_ref()), to, node, saved)?;
        } else if let Some(left) = left {
            let to = Some(path_of(self.txn, to.dir, to.name)?).filter(TreePath::can_be_named);
            self.path_gone((&left, node.node_type), to.as_ref())?;
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
