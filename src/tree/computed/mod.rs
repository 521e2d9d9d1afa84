//! Names that are not stored but computed: `AGENTS.md`, `.workfs/`, `X.yaml.why`, `ready/`.
//!
//! What must stay true: they are read-only, rendered when they are opened, and not listed, so that `grep -r` and `find`
//! do not touch them (`AGENTS.md` and `ready/` are: they are meant to be found). Their inode numbers lie above all stored
//! ones. Deliberately not here: what lies in `ready/`.

mod at;
pub(super) mod events;
pub(super) mod history;
pub(super) mod hold;
pub(super) mod listing;
mod long;
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

pub(super) use long::takes_long;
use pasts::{PastDir, PastOf, Pasts};
pub(super) use viewer::Viewer;

/// Stored inode numbers stay below this.
const FIRST: u64 = 1 << 48;
const REJECTED: u64 = 1 << 49;
const WHY: u64 = 1 << 50;
const READY: u64 = 1 << 51;
const NEXT: u64 = 1 << 52;
const WAIT: u64 = 1 << 53;
const LAST: u64 = 1 << 54;
const HISTORY: u64 = 1 << 55;
const PAST: u64 = 1 << 56;
const HOLD: u64 = 1 << 57;
// 1 << 58 is that of stand-ins (see `kernels/told`).
const IGNORED: u64 = 1 << 59;
const UNMADE: u64 = 1 << 60;
const PAST_OF: u64 = 1 << 61;

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
    /// `.next` in it: a link to the best, and what is moved to claim that.
    Next(Ino),
    /// `.wait` in it.
    Wait(Ino),
    /// `.gitignore` in it.
    Ignored(Ino),
    /// `.next` in this lane: a link to what came by it last.
    Last(Ino),
    /// `.workfs/history/` or a directory below it.
    History(PastDir),
    /// A version that this event made.
    Past(G),
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

/// The numbers of files in `.workfs/kinds/`, from [`FIRST`] on: more than two a kind.
const KIND_FILES: std::ops::Range<u64> = 64..256;

/// The inode that `ready/` has in the workspace with this directory.
#[must_use]
pub fn ready_dir(workspace: Ino) -> Ino {
    Computed::Ready(workspace).ino()
}

impl Computed {
    /// The node's inode number.
    pub fn ino(self) -> Ino {
        Ino(match self {
            Computed::Control => FIRST,
            Computed::AgentsMd => FIRST + 1,
            Computed::Why => FIRST + 2,
            Computed::Status => FIRST + 3,
            Computed::Events => FIRST + 4,
            Computed::Config => FIRST + 5,
            Computed::RejectedDir => FIRST + 6,
            Computed::Kinds => FIRST + 7,
            Computed::KindFile(nth) => FIRST + KIND_FILES.start + nth,
            Computed::Agents => FIRST + 32,
            Computed::Leases => FIRST + 33,
            Computed::HoldDir => FIRST + 34,
            Computed::Txns => FIRST + 35,
            Computed::Commit => FIRST + 36,
            Computed::Metrics => FIRST + 37,
            Computed::Hold(key) => HOLD | key.0,
            Computed::Rejected(key) => REJECTED | key.0,
            Computed::FileWhy(ino) => WHY | ino.0,
            Computed::UnmadeWhy(key) => UNMADE | key.0,
            Computed::Ready(dir) => READY | dir.0,
            Computed::Next(dir) => NEXT | dir.0,
            Computed::Wait(dir) => WAIT | dir.0,
            Computed::Ignored(dir) => IGNORED | dir.0,
            Computed::Last(lane) => LAST | lane.0,
            Computed::History(PastDir::Numbered(number)) => HISTORY | number,
            Computed::History(PastDir::Record(key)) => PAST_OF | key.0,
            Computed::Past(g) => PAST | g.0,
        })
    }

    /// Those of which there is one in each mount.
    fn fixed() -> impl Iterator<Item = Computed> {
        let control = CONTROL.iter().map(|(_, known)| *known);
        [Computed::Control, Computed::AgentsMd].into_iter().chain(control)
    }

    /// The computed node of a number, if it is one.
    pub fn of(ino: Ino) -> Option<Computed> {
        Some(match ino.0 {
            number if number & PAST_OF != 0 => {
                Computed::History(PastDir::Record(RecordKey(number & !PAST_OF)))
            }
            number if number & UNMADE != 0 => Computed::UnmadeWhy(RefusalKey(number & !UNMADE)),
            number if number & IGNORED != 0 => Computed::Ignored(Ino(number & !IGNORED)),
            number if number & HOLD != 0 => Computed::Hold(RecordKey(number & !HOLD)),
            number if number & PAST != 0 => Computed::Past(G(number & !PAST)),
            number if number & HISTORY != 0 => {
                Computed::History(PastDir::Numbered(number & !HISTORY))
            }
            number if number & LAST != 0 => Computed::Last(Ino(number & !LAST)),
            number if number & WAIT != 0 => Computed::Wait(Ino(number & !WAIT)),
            number if number & NEXT != 0 => Computed::Next(Ino(number & !NEXT)),
            number if number & READY != 0 => Computed::Ready(Ino(number & !READY)),
            number if number & WHY != 0 => Computed::FileWhy(Ino(number & !WHY)),
            number if number & REJECTED != 0 => Computed::Rejected(RefusalKey(number & !REJECTED)),
            number if number >= FIRST => match number - FIRST {
                nth if KIND_FILES.contains(&nth) => Computed::KindFile(nth - KIND_FILES.start),
                _ => Computed::fixed().find(|known| known.ino() == ino)?,
            },
            _ => return None,
        })
    }

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
                | Computed::Last(_)
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
        | Computed::Last(_) => Vec::new(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_number_of_its_own() {
        let kinds = [0, KIND_FILES.end - KIND_FILES.start - 1].map(Computed::KindFile);
        for known in Computed::fixed().chain(kinds) {
            assert_eq!(Computed::of(known.ino()), Some(known));
        }
    }
}
