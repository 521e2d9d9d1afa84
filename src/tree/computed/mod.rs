//! Names that are not stored but computed: `AGENTS.md`, `.workfs/`, `X.yaml.why`, `ready/`.
//!
//! What must stay true: they are read-only, rendered when they are opened, and not listed, so that `grep -r` and `find`
//! do not touch them (`AGENTS.md` and `ready/` are: they are meant to be found). Their inode numbers lie above all stored
//! ones. Deliberately not here: what lies in `ready/`.

pub(super) mod at;
pub(super) mod events;
pub(super) mod history;
pub(super) mod hold;
pub(super) mod listing;
mod long;
mod numbers;
pub(super) mod pasts;
mod status;
mod viewer;
pub(super) mod why;

use std::collections::HashSet;
use std::sync::Arc;

use crate::config::{Binding, Config, Reader, agents_md};
use crate::engine::{Slot, governed, path_of, path_of_dir, slot};
use crate::kind::Role;
use crate::names::{AGENTS_FILE, CONTROL_DIR, Dentry, FileName};
use crate::numbers::{G, Ino, RecordKey, RefusalKey};
use crate::store::{Class, Read, Result};
use crate::tree::ready::links::LinkNumber;

pub(super) use long::takes_long;
use pasts::{PastDir, PastOf, Pasts};
pub(super) use viewer::Viewer;

/// What git is told of `ready/`, whose names are those of records that lie elsewhere and cannot be written.
const GIT_IGNORES: &str =
    "# These records lie in another directory; here they are only shown.\n*\n";

/// A computed node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Computed {
    /// `AGENTS.md` at the root.
    AgentsMd,
    /// `.workfs/`.
    Control,
    /// `.workfs/why`.
    Why,
    /// `.workfs/status`.
    Status,
    /// `.workfs/metrics`.
    Metrics,
    /// `.workfs/events`.
    Events,
    /// `.workfs/config.yaml`.
    Config,
    /// `.workfs/agents.yaml`.
    Agents,
    /// `.workfs/rejected/`.
    RejectedDir,
    /// `.workfs/rejected/<key>-<name>`.
    Rejected(RefusalKey),
    /// `.workfs/kinds/`.
    Kinds,
    /// A file in it, by its place.
    KindFile(u64),
    /// `.workfs/leases`.
    Leases,
    /// `.workfs/hold/`.
    HoldDir,
    /// `.workfs/hold/<id>`, of the record with this key.
    Hold(RecordKey),
    /// `X.yaml.why`, of the record or draft with this inode.
    FileWhy(Ino),
    /// `X.why` of a checked file that was refused when it was new, and is not there: this refusal.
    UnmadeWhy(RefusalKey),
    /// `ready/` of the workspace with this directory.
    Ready(Ino),
    /// `.next` in it, a link to the best, which is moved to claim that; or in a lane, a link to what came by it last.
    Next(LinkNumber),
    /// `.wait` in it.
    Wait(Ino),
    /// `.gitignore` in it.
    Ignored(Ino),
    /// `.workfs/history/` or a directory below it.
    History(PastDir),
    /// A version that this event made.
    Past(G),
    /// `.workfs/at/<time>`: a link to what this event, the last that had happened then, left.
    AsOf(G),
    /// `.workfs/txn/`, in which transactions are made.
    Txns,
    /// `.workfs/commit/`, into which they are moved.
    Commit,
}

/// Names in `.workfs/`, in the order they are listed.
const CONTROL: &[(&str, Computed)] = &[
    ("agents.yaml", Computed::Agents),
    ("at", Computed::History(PastDir::AT)),
    ("commit", Computed::Commit),
    ("config.yaml", Computed::Config),
    ("events", Computed::Events),
    ("history", Computed::History(PastDir::HISTORY)),
    ("hold", Computed::HoldDir),
    ("kinds", Computed::Kinds),
    ("leases", Computed::Leases),
    ("metrics", Computed::Metrics),
    ("rejected", Computed::RejectedDir),
    ("status", Computed::Status),
    ("txn", Computed::Txns),
    ("why", Computed::Why),
];

/// Those that a mount of a part of the tree has: the others tell of the rest.
const CONTROL_OF_A_PART: &[(&str, Computed)] = &[
    ("commit", Computed::Commit),
    ("hold", Computed::HoldDir),
    ("txn", Computed::Txns),
    ("why", Computed::Why),
];

/// The inode that `ready/` has in the workspace with this directory.
#[must_use]
pub fn ready_dir(workspace: Ino) -> Ino {
    Computed::Ready(workspace).ino()
}

impl Computed {
    pub fn is_dir(self) -> bool {
        matches!(
            self,
            Computed::Control
                | Computed::RejectedDir
                | Computed::Kinds
                | Computed::History(_)
                | Computed::HoldDir
                | Computed::Txns
                | Computed::Commit
                | Computed::Ready(_)
        )
    }

    pub fn is_link(self) -> bool {
        matches!(self, Computed::Next(_) | Computed::AsOf(_))
    }

    /// Whether it lies in `.workfs/`, which is no part of what a mount's options show otherwise.
    pub fn is_control(self) -> bool {
        !matches!(
            self,
            Computed::AgentsMd
                | Computed::FileWhy(_)
                | Computed::UnmadeWhy(_)
                | Computed::Ready(_)
                | Computed::Next(_)
                | Computed::Wait(_)
                | Computed::Ignored(_)
        )
    }

    /// Its permissions. The past of a file, and what was refused, may be of one that is not everybody's.
    pub fn mode(self) -> u32 {
        match self {
            Computed::Past(_) | Computed::Rejected(_) | Computed::UnmadeWhy(_) => 0o400,
            // A hold may be opened for writing, as shells' redirections do.
            Computed::Hold(_) => 0o666,
            // Whoever may come in may make a transaction, and end only its own.
            Computed::Txns => 0o1777,
            // The kernel lets nobody rename onto `commit` who may not write here. All else is refused, with the reason.
            Computed::Commit | Computed::Control => 0o777,
            other if other.is_dir() => 0o555,
            _ => 0o444,
        }
    }

    /// The directory that a computed directory lies in.
    pub fn parent(self) -> Ino {
        match self {
            Computed::RejectedDir
            | Computed::Kinds
            | Computed::HoldDir
            | Computed::Txns
            | Computed::Commit
            | Computed::History(_) => Computed::Control.ino(),
            Computed::Ready(dir) => dir,
            _ => workfs_mount::ROOT,
        }
    }
}

fn control_of(root: Ino) -> &'static [(&'static str, Computed)] {
    if root == workfs_mount::ROOT { CONTROL } else { CONTROL_OF_A_PART }
}

/// Finds a computed name in a mount with this root: of those that a stored one may hide only what it would be.
pub(super) fn lookup(
    read: &dyn Read,
    config: &Config,
    pasts: &Pasts,
    root: Ino,
    Dentry { dir: parent, name }: Dentry<&FileName>,
) -> Result<Option<Computed>> {
    let named = |table: &[(&str, Computed)]| {
        let found = table.iter().find(|(known, _)| known.as_bytes() == name.as_bytes());
        found.map(|(_, computed)| *computed)
    };
    match Computed::of(parent) {
        Some(Computed::Control) => Ok(named(control_of(root))),
        Some(Computed::Kinds) => {
            let mut files = (0..).zip(kind_files(config));
            let found = files.find(|(_, (known, _))| known.as_bytes() == name.as_bytes());
            Ok(found.map(|(nth, _)| Computed::KindFile(nth)))
        }
        Some(Computed::History(dir)) => {
            let child = match pasts.of(read, dir)? {
                Some(PastOf::Path(path)) => history::lookup(read, config, (dir, &path), name)?,
                Some(PastOf::Moment(path)) => at::lookup(read, config, (dir, &path), name)?,
                None => None,
            };
            Ok(child.map(|child| pasts.node(name, child)))
        }
        Some(Computed::HoldDir) => hold::find(read, Dentry::of(root, name), None),
        Some(Computed::RejectedDir) => {
            // What follows the number is of the file's own name, which may be any bytes, or cut.
            let number = name.as_bytes().split(|byte| *byte == b'-').next();
            let number = number.and_then(|number| std::str::from_utf8(number).ok()?.parse().ok());
            let Some(key) = number.map(RefusalKey) else { return Ok(None) };
            Ok(read.rejected(key)?.map(|_| Computed::Rejected(key)))
        }
        Some(_) => Ok(None),
        None if parent == root && name.as_bytes() == CONTROL_DIR => Ok(Some(Computed::Control)),
        None if parent == root && name.as_bytes() == AGENTS_FILE => Ok(Some(Computed::AgentsMd)),
        None => {
            let is_ready = |binding: &Arc<Binding>| binding.kind.order().dir == *name;
            if config.bindings().iter().any(is_ready)
                && let Some(governed) = governed(read, config, parent)?
                && governed.is_order_dir(name)
            {
                return Ok(Some(Computed::Ready(parent)));
            }
            let Some(stem) = name.tells_why_of() else { return Ok(None) };
            let Some(node) = read.lookup(parent, &stem)? else {
                if !is_checked(read, config, parent, &stem)? {
                    return Ok(None);
                }
                let last = read.last_refusal_of(&path_of(read, parent, &stem)?.to_bytes())?;
                return Ok(last.map(|row| Computed::UnmadeWhy(row.key)));
            };
            let explained = match node.class {
                Class::Plain => is_checked(read, config, parent, &stem)?,
                Class::Draft | Class::Record => {
                    matches!(slot(read, config, parent, &stem)?, Slot::Record(_))
                }
            };
            Ok(explained.then_some(Computed::FileWhy(node.ino)))
        }
    }
}

/// Whether a name of a plain directory may come to be computed there.
pub(super) fn is_computed_name(config: &Config, name: &FileName) -> bool {
    name.tells_why_of().is_some()
        || name.as_bytes() == crate::engine::NEXT
        || config.bindings().iter().any(|binding| binding.kind.order().dir == *name)
}

/// What a name of a computed directory stands for.
#[derive(Clone, Copy)]
pub(super) enum Child {
    Node(Computed),
    /// A directory of the past, in the one with this number: it has a number itself from when it is told of.
    Past {
        dir: u64,
    },
}

/// What a computed directory has.
#[derive(Default)]
pub(super) struct Listing {
    named: Vec<(FileName, Child)>,
    /// Behind those records, whose names are read when they are told.
    records: Vec<RecordKey>,
    of: Records,
}

/// What is told of the records of a computed directory.
#[derive(Clone, Copy, Default)]
enum Records {
    /// The directory of their past.
    #[default]
    Pasts,
    /// The file as it was after an event.
    After(G),
}

/// Lists a computed directory.
pub(super) fn list(
    read: &dyn Read,
    viewer: &Viewer,
    config: &Config,
    pasts: &Pasts,
    dir: Computed,
) -> Result<Listing> {
    let nodes = match dir {
        Computed::Control => {
            let named = control_of(viewer.root).iter().filter_map(|(name, computed)| {
                FileName::new(name).ok().map(|name| (name, *computed))
            });
            named.collect()
        }
        Computed::Kinds => {
            let files = (0..).zip(kind_files(config));
            let named = files.filter_map(|(nth, (name, _))| {
                FileName::new(name).ok().map(|name| (name, Computed::KindFile(nth)))
            });
            named.collect()
        }
        Computed::History(dir) => {
            return match pasts.of(read, dir)? {
                Some(PastOf::Path(path)) => history::list(read, config, (dir, &path)),
                Some(PastOf::Moment(path)) => at::list(read, config, (dir, &path)),
                None => Ok(Listing::default()),
            };
        }
        Computed::HoldDir => hold::list(read, viewer)?,
        Computed::RejectedDir => {
            let mut names = Vec::new();
            read.refusals(&mut |row| {
                if row.rejected_bytes > 0
                    && let Ok(name) = FileName::new(row.rejected_name())
                {
                    names.push((name, Computed::Rejected(row.key)));
                }
                true
            })?;
            names.reverse();
            names
        }
        _ => Vec::new(),
    };
    let named = nodes.into_iter().map(|(name, computed)| (name, Child::Node(computed))).collect();
    Ok(Listing { named, ..Listing::default() })
}

/// The files of all kinds: name and text.
fn kind_files(config: &Config) -> impl Iterator<Item = (String, &str)> {
    let files = config.kinds().all().flat_map(|kind| {
        let source = kind.source();
        kind.file_names().into_iter().zip([&source.definition[..], &source.schema[..]])
    });
    // Kinds may share a schema.
    let mut seen = HashSet::new();
    files.filter(move |(name, _)| seen.insert(name.clone()))
}

/// The content of a computed file.
pub(super) fn render(read: &dyn Read, viewer: &Viewer, file: Computed) -> Result<Vec<u8>> {
    let config = &*viewer.config;
    Ok(match file {
        Computed::AgentsMd => {
            let (name, role, is_read_only) = (&viewer.actor, viewer.role, viewer.is_read_only);
            // One that is not registered any more only reads.
            let is_agent = viewer.agents.get(name).is_some() || role == Role::Observer;
            let reader = Reader { agent: is_agent.then_some((name, role)), is_read_only };
            agents_md(config, &path_of_dir(read, viewer.root)?, reader).into_bytes()
        }
        Computed::Config => config.to_yaml().into_bytes(),
        Computed::Agents => viewer.agents.to_yaml().into_bytes(),
        Computed::KindFile(nth) => {
            let nth = usize::try_from(nth).unwrap_or(usize::MAX);
            let text = kind_files(config).nth(nth).map(|(_, text)| text);
            text.unwrap_or_default().as_bytes().to_vec()
        }
        Computed::Why => why::refusals(read, viewer)?.into_bytes(),
        Computed::Status => status::render(read, config)?.into_bytes(),
        Computed::Rejected(key) => read.rejected(key)?.map_or_else(Vec::new, |kept| kept.content),
        Computed::UnmadeWhy(key) => why::unmade(read, viewer, key)?.into_bytes(),
        Computed::FileWhy(ino) => why::file(read, viewer, ino)?.into_bytes(),
        Computed::Past(g) => history::content(read, g)?,
        Computed::Ignored(_) => GIT_IGNORES.as_bytes().to_vec(),
        Computed::Leases => hold::render_all(read, viewer)?.into_bytes(),
        Computed::Hold(key) => hold::render(read, viewer, key)?.into_bytes(),
        Computed::Events
        | Computed::Metrics
        | Computed::Control
        | Computed::RejectedDir
        | Computed::Kinds
        | Computed::History(_)
        | Computed::HoldDir
        | Computed::Txns
        | Computed::Commit
        | Computed::Ready(_)
        | Computed::Next(_)
        | Computed::Wait(_)
        | Computed::AsOf(_) => Vec::new(),
    })
}

/// Whether the content of the plain file `name` in `dir` is judged.
fn is_checked(read: &dyn Read, config: &Config, dir: Ino, name: &FileName) -> Result<bool> {
    if !config.files().has_checks() {
        return Ok(false);
    }
    let scope = config.files().scope(&path_of_dir(read, dir)?);
    Ok(scope.is_some_and(|scope| config.files().check(&scope, name).is_some()))
}
