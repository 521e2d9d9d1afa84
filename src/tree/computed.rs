//! Names that are not stored but computed: `AGENTS.md`, `.workfs/`, `X.yaml.why`, `ready/`.
//!
//! What must stay true: they are read-only, rendered when they are opened, and not listed, so
//! that `grep -r` and `find` do not touch them (`AGENTS.md` and `ready/` are: they are meant to be
//! found).
//! Their inode numbers lie above all stored ones.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::config::{Binding, Config, agents_md};
use crate::engine::{Registry, Slot, Text, explain, governed, path_of, path_of_dir, slot};
use crate::kind::{Place, Role, builtin};
use crate::names::{AgentName, FileName, TreePath, printable};
use crate::numbers::{G, Ino, LeaseTime, RecordKey, RefusalKey, UnixNanos};
use crate::refusal::Refusal;
use crate::store::{Class, Read, RefusalRow, RefusedText, Result, Standing};

use super::history::{self, Pasts};

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
    /// `.workfs/kinds/task.kind.yaml`.
    TaskKind,
    /// `.workfs/kinds/task.v1.json`.
    TaskSchema,
    /// `.workfs/leases`.
    Leases,
    /// `.workfs/hold/`.
    HoldDir,
    /// `.workfs/hold/<id>`, of the record with this key.
    Hold(RecordKey),
    /// `X.yaml.why`, of the record or draft with this inode.
    FileWhy(Ino),
    /// `ready/` of the workspace with this directory.
    Ready(Ino),
    /// `.next` in it: a link to the best, and what is moved to claim that.
    Next(Ino),
    /// `.wait` in it.
    Wait(Ino),
    /// `.next` in this lane: a link to what came by it last.
    Last(Ino),
    /// `.workfs/history/` (0) or a directory below it.
    History(u64),
    /// A version that this event made.
    Past(G),
}

/// Names in `.workfs/`, in the order they are listed.
const CONTROL: &[(&str, Computed)] = &[
    ("agents.yaml", Computed::Agents),
    ("config.yaml", Computed::Config),
    ("events", Computed::Events),
    ("history", Computed::History(0)),
    ("hold", Computed::HoldDir),
    ("kinds", Computed::Kinds),
    ("leases", Computed::Leases),
    ("rejected", Computed::RejectedDir),
    ("status", Computed::Status),
    ("why", Computed::Why),
];

/// Those that a mount of a part of the tree has: the others tell of the rest.
const CONTROL_OF_A_PART: &[(&str, Computed)] =
    &[("hold", Computed::HoldDir), ("why", Computed::Why)];

const KINDS: &[(&str, Computed)] =
    &[("task.kind.yaml", Computed::TaskKind), ("task.v1.json", Computed::TaskSchema)];

/// The suffix that asks why.
const WHY_SUFFIX: &[u8] = b".why";

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
            Computed::TaskKind => FIRST + 8,
            Computed::TaskSchema => FIRST + 9,
            Computed::Agents => FIRST + 32,
            Computed::Leases => FIRST + 33,
            Computed::HoldDir => FIRST + 34,
            Computed::Hold(key) => HOLD | key.0,
            Computed::Rejected(key) => REJECTED | key.0,
            Computed::FileWhy(ino) => WHY | ino.0,
            Computed::Ready(dir) => READY | dir.0,
            Computed::Next(dir) => NEXT | dir.0,
            Computed::Wait(dir) => WAIT | dir.0,
            Computed::Last(lane) => LAST | lane.0,
            Computed::History(number) => HISTORY | number,
            Computed::Past(g) => PAST | g.0,
        })
    }

    /// The computed node of a number, if it is one.
    pub fn of(ino: Ino) -> Option<Computed> {
        Some(match ino.0 {
            number if number & HOLD != 0 => Computed::Hold(RecordKey(number & !HOLD)),
            number if number & PAST != 0 => Computed::Past(G(number & !PAST)),
            number if number & HISTORY != 0 => Computed::History(number & !HISTORY),
            number if number & LAST != 0 => Computed::Last(Ino(number & !LAST)),
            number if number & WAIT != 0 => Computed::Wait(Ino(number & !WAIT)),
            number if number & NEXT != 0 => Computed::Next(Ino(number & !NEXT)),
            number if number & READY != 0 => Computed::Ready(Ino(number & !READY)),
            number if number & WHY != 0 => Computed::FileWhy(Ino(number & !WHY)),
            number if number & REJECTED != 0 => Computed::Rejected(RefusalKey(number & !REJECTED)),
            number if number >= FIRST => match number - FIRST {
                0 => Computed::Control,
                1 => Computed::AgentsMd,
                2 => Computed::Why,
                3 => Computed::Status,
                4 => Computed::Events,
                5 => Computed::Config,
                6 => Computed::RejectedDir,
                7 => Computed::Kinds,
                8 => Computed::TaskKind,
                9 => Computed::TaskSchema,
                32 => Computed::Agents,
                33 => Computed::Leases,
                34 => Computed::HoldDir,
                _ => return None,
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
                | Computed::Ready(_)
        )
    }

    /// Its permissions. The past of a file may be of one that was not everybody's.
    pub fn mode(self) -> u32 {
        match self {
            Computed::Past(_) => 0o400,
            // A hold may be opened for writing, as shells' redirections do.
            Computed::Hold(_) => 0o666,
            other if other.is_dir() => 0o555,
            _ => 0o444,
        }
    }

    /// The directory that a computed directory lies in.
    pub fn parent(self) -> Ino {
        match self {
            Computed::RejectedDir | Computed::Kinds | Computed::HoldDir | Computed::History(_) => {
                Computed::Control.ino()
            }
            Computed::Ready(dir) => dir,
            _ => Ino(1),
        }
    }
}

/// Who looks, and through what.
pub(super) struct Viewer {
    pub config: Arc<Config>,
    pub agents: Arc<Registry>,
    /// Whom it acts for.
    pub actor: AgentName,
    pub role: Role,
    /// The root of its mount.
    pub root: Ino,
    /// The time.
    pub now: UnixNanos,
    pub lease_now: LeaseTime,
}

impl Viewer {
    /// What lies in `.workfs/`.
    fn control(&self) -> &'static [(&'static str, Computed)] {
        control_of(self.root)
    }
}

fn control_of(root: Ino) -> &'static [(&'static str, Computed)] {
    if root == workfs_mount::ROOT { CONTROL } else { CONTROL_OF_A_PART }
}

/// Finds a computed name that no stored one hides, in a mount with this root.
pub(super) fn lookup(
    read: &dyn Read,
    config: &Config,
    pasts: &Pasts,
    root: Ino,
    (parent, name): (Ino, &FileName),
) -> Result<Option<Computed>> {
    let named = |table: &[(&str, Computed)]| {
        let found = table.iter().find(|(known, _)| known.as_bytes() == name.as_bytes());
        found.map(|(_, computed)| *computed)
    };
    match Computed::of(parent) {
        Some(Computed::Control) => Ok(named(control_of(root))),
        Some(Computed::Kinds) => Ok(named(KINDS)),
        Some(Computed::History(dir)) => history::lookup(read, config, pasts, dir, name),
        Some(Computed::HoldDir) => super::hold::find(read, name),
        Some(Computed::RejectedDir) => {
            let number = name.as_str().and_then(|name| name.split('-').next()?.parse().ok());
            let Some(key) = number.map(RefusalKey) else { return Ok(None) };
            Ok(read.rejected(key)?.map(|_| Computed::Rejected(key)))
        }
        Some(_) => Ok(None),
        None if parent == root && name.as_bytes() == b".workfs" => Ok(Some(Computed::Control)),
        None if parent == root && name.as_bytes() == b"AGENTS.md" => Ok(Some(Computed::AgentsMd)),
        None => {
            let is_ready = |binding: &Arc<Binding>| binding.kind.order().dir == *name;
            if config.bindings().iter().any(is_ready)
                && let Some(governed) = governed(read, config, parent)?
                && governed.place == Place::Root
                && is_ready(&governed.binding)
            {
                return Ok(Some(Computed::Ready(parent)));
            }
            let Some(stem) = name.as_bytes().strip_suffix(WHY_SUFFIX) else { return Ok(None) };
            let Ok(stem) = FileName::new(stem) else { return Ok(None) };
            let Some(node) = read.lookup(parent, &stem)? else { return Ok(None) };
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

/// The names of a computed directory.
pub(super) fn list(
    read: &dyn Read,
    viewer: &Viewer,
    config: &Config,
    pasts: &Pasts,
    dir: Computed,
) -> Result<Vec<(FileName, Computed)>> {
    let fixed = |table: &[(&str, Computed)]| {
        let named = table
            .iter()
            .filter_map(|(name, computed)| FileName::new(name).ok().map(|name| (name, *computed)));
        named.collect()
    };
    match dir {
        Computed::Control => Ok(fixed(viewer.control())),
        Computed::Kinds => Ok(fixed(KINDS)),
        Computed::History(dir) => history::list(read, config, pasts, dir),
        Computed::HoldDir => super::hold::list(read, viewer),
        Computed::RejectedDir => {
            let mut names = Vec::new();
            read.refusals(&mut |row| {
                if row.rejected_bytes > 0
                    && let Ok(name) = FileName::new(rejected_name(&row))
                {
                    names.push((name, Computed::Rejected(row.key)));
                }
                true
            })?;
            names.reverse();
            Ok(names)
        }
        _ => Ok(Vec::new()),
    }
}

/// `17-X.yaml`: the refusal's number and the file's name.
fn rejected_name(row: &RefusalRow) -> Vec<u8> {
    let last = row.path.rsplit(|&b| b == b'/').next().unwrap_or_default();
    let mut name = format!("{}-", row.key).into_bytes();
    name.extend(last.iter().take(crate::limits::NAME_BYTES_MAX - name.len()));
    name
}

/// The content of a computed file.
pub(super) fn render(read: &dyn Read, viewer: &Viewer, file: Computed) -> Result<Vec<u8>> {
    let config = &*viewer.config;
    Ok(match file {
        Computed::AgentsMd => agents_md(config).into_bytes(),
        Computed::Config => config.to_yaml().into_bytes(),
        Computed::Agents => viewer.agents.to_yaml().into_bytes(),
        Computed::TaskKind => builtin::TASK_DEFINITION.as_bytes().to_vec(),
        Computed::TaskSchema => builtin::TASK_SCHEMA.as_bytes().to_vec(),
        Computed::Why => {
            let mut out = String::new();
            let mut shown = 0;
            read.refusals(&mut |row| {
                if viewer.role == Role::Operator || row.actor == viewer.actor {
                    push_refusal(&mut out, &row);
                    shown += 1;
                }
                shown < SHOWN_MAX
            })?;
            if out.is_empty() {
                out.push_str("nothing of yours was refused\n");
            }
            out.into_bytes()
        }
        Computed::Status => status(read)?.into_bytes(),
        Computed::Rejected(key) => read.rejected(key)?.unwrap_or_default(),
        Computed::FileWhy(ino) => file_why(read, config, ino, viewer.now)?.into_bytes(),
        Computed::Past(g) => history::content(read, g)?,
        Computed::Leases => super::hold::render_all(read, viewer)?.into_bytes(),
        Computed::Hold(key) => super::hold::render(read, viewer, key)?.into_bytes(),
        Computed::Events
        | Computed::Control
        | Computed::RejectedDir
        | Computed::Kinds
        | Computed::History(_)
        | Computed::HoldDir
        | Computed::Ready(_)
        | Computed::Next(_)
        | Computed::Wait(_)
        | Computed::Last(_) => Vec::new(),
    })
}

/// Refusals that `.workfs/why` shows, newest first.
const SHOWN_MAX: usize = 50;

fn push_refusal(out: &mut String, row: &RefusalRow) {
    let RefusalRow { at, operation, path, errno, why, key, .. } = row;
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "{} {operation} {} {errno} [{} {}]",
        at.rfc3339(),
        printable(path),
        why.rule.code(),
        why.rule.title(),
    );
    push_reason(out, why);
    if row.rejected_bytes > 0 {
        let name = printable(&rejected_name(row));
        let _ = writeln!(out, "  kept:   .workfs/rejected/{name} ({} bytes)", row.rejected_bytes);
    }
    let _ = writeln!(out, "  number: {key}\n");
}

fn push_reason(out: &mut String, why: &RefusedText) {
    let _ = writeln!(out, "  why:    {}", why.reason);
    if let Some(place) = why.place {
        let _ = writeln!(out, "  where:  line {}, column {}", place.line, place.column);
    }
    let _ = writeln!(out, "  do:     {}", why.remedy);
}

/// Whether the content of the plain file `name` in `dir` is judged.
fn is_checked(read: &dyn Read, config: &Config, dir: Ino, name: &FileName) -> Result<bool> {
    if !config.files().has_checks() {
        return Ok(false);
    }
    let scope = config.files().scope(&path_of_dir(read, dir)?);
    Ok(scope.is_some_and(|scope| config.files().check(&scope, name).is_some()))
}

/// What `X.yaml.why` says.
fn file_why(read: &dyn Read, config: &Config, ino: Ino, now: UnixNanos) -> Result<String> {
    let mut out = String::new();
    let path = if let Some(draft) = read.draft(ino)? {
        out.push_str("this file is a draft: it cannot be claimed or moved to another state\n");
        match &draft.why {
            Some(why) => {
                let _ = writeln!(out, "  rule:   {} {}", why.rule.code(), why.rule.title());
                push_reason(&mut out, why);
            }
            None => out.push_str("  why:    nothing was written to it yet\n"),
        }
        path_of(read, draft.dir, &draft.name)?
    } else if let Some(record) = read.record_at(ino)? {
        let owner = record.owner.as_ref().map_or_else(String::new, |o| format!(" of {o}"));
        let _ = writeln!(
            out,
            "`{}` is in state {}{owner}, version {}, attempt {}{}",
            record.id,
            record.state,
            record.version,
            record.attempt,
            if record.is_valid() { "" } else { "; its content is flagged as not valid" },
        );
        if let Standing::Live { dir, .. } = record.standing
            && let Some(home) = governed(read, config, dir)?
        {
            let _ = match explain(read, &home.binding.kind, &record, now)? {
                None => writeln!(out, "  ready:  it can be claimed now"),
                Some(reason) => writeln!(out, "  ready:  no; {reason}"),
            };
        }
        match record.standing {
            Standing::Live { dir, name, valid, .. } => {
                if !valid {
                    push_flaw(&mut out, read, config, dir, &name, record.version_g)?;
                }
                path_of(read, dir, &name)?
            }
            Standing::Parked { .. } | Standing::Gone => TreePath::root(),
        }
    } else if let Some((dir, name)) = read.file_name(ino)? {
        out.push_str("this file is checked when it is saved\n");
        path_of(read, dir, &name)?
    } else {
        return Ok("this file is gone\n".to_owned());
    };
    if let Some(row) = read.last_refusal_of(&path.to_bytes())? {
        out.push_str("last refused:\n");
        push_refusal(&mut out, &row);
    }
    Ok(out)
}

/// What is wrong with a flagged record: judged anew, since only its bytes are kept.
fn push_flaw(
    out: &mut String,
    read: &dyn Read,
    config: &Config,
    dir: Ino,
    name: &FileName,
    version: G,
) -> Result<()> {
    let content = read.version(version)?.map(|version| version.content).unwrap_or_default();
    if let Slot::Record(home) = slot(read, config, dir, name)?
        && let Err(refusal) = Text::new(content).judge(&home)
    {
        let Refusal { rule, reason, remedy, place } = refusal;
        let _ = writeln!(out, "  rule:   {} {}", rule.code(), rule.title());
        push_reason(out, &RefusedText { rule, reason, remedy, place });
    }
    Ok(())
}

fn status(read: &dyn Read) -> Result<String> {
    let mut out = String::new();
    let last = read.last_event()?.map_or(G(0), |event| event.g);
    let _ = writeln!(out, "g: {last}");
    for workspace in read.workspaces()?.iter().filter(|workspace| workspace.dir.is_some()) {
        let mut counts = std::collections::BTreeMap::<String, u64>::new();
        read.records(workspace.key, &mut |record| {
            if matches!(record.standing, Standing::Live { .. }) {
                *counts.entry(record.state.to_string()).or_default() += 1;
            }
            true
        })?;
        let _ = writeln!(out, "{} ({}):", workspace.path, workspace.kind);
        for (state, count) in counts {
            let _ = writeln!(out, "  {state}: {count}");
        }
    }
    Ok(out)
}
