//! What somebody means: an id, or a path from the root of what is in sight.

pub(super) mod computed;
mod in_ready;

use super::request::permitted::may_read;
use super::{Caller, Exit, Failure, Part, Service};
use crate::config::Config;
use crate::engine::{
    self, Governed, NEXT, PARKED, Slot, UNPARK, as_far_as_there, governed, node_at, path_of_dir,
    slot,
};
use crate::kind::Place;
use crate::ledger::{field, path_of_ledger};
use crate::names::{Dentry, FileName, RecordId, TreePath, path_of_json};
use crate::numbers::Ino;
use crate::refusal::Rule;
use crate::store::{Class, Draft, Node, NodeType, Read, Record, Standing, WorkspaceRow};
use computed::expect_not_shown;
use in_ready::InReady;

/// What was meant.
pub(super) enum Found {
    /// A record, living or not.
    Record(Box<FoundRecord>),
    /// A draft, and the path where it lies.
    Draft(TreePath, Node, Draft),
    /// Anything else that has a name.
    Node(TreePath, Node),
}

impl Found {
    /// Where it lies; `None` if it is a record without a file.
    pub fn path(&self) -> Option<&TreePath> {
        match self {
            Found::Record(found) => found.path.as_ref(),
            Found::Draft(path, ..) | Found::Node(path, _) => Some(path),
        }
    }
}

/// A record that was meant.
pub(super) struct FoundRecord {
    /// The record.
    pub record: Record,
    /// Its workspace.
    pub workspace: WorkspaceRow,
    /// Where it lies; `None` if it has no file.
    pub path: Option<TreePath>,
    /// The directory that it lies in, or in which it has its place; `None` if it is gone.
    pub dir: Option<TreePath>,
}

impl FoundRecord {
    /// The directory it lies in and its name there.
    pub fn entry(&self) -> Result<Dentry, Failure> {
        match &self.record.standing {
            Standing::Live { dir, name, .. } => Ok(Dentry::of(*dir, name.clone())),
            Standing::Parked { .. } => Err(Failure::new(
                Exit::Absent,
                format!("`{}` has no file at the moment: {PARKED}", self.record.id),
                UNPARK,
            )),
            Standing::Gone => Err(Failure::new(
                Exit::Absent,
                format!("`{}` has no file any more: it was removed or moved out", self.record.id),
                format!("`workfs log {}` says when and by whom", self.record.id),
            )),
        }
    }

    /// What its directory is.
    pub fn governed(&self, read: &dyn Read, config: &Config) -> Result<Governed, Failure> {
        let dir = self.entry()?.dir;
        governed(read, config, dir)?.ok_or_else(|| {
            Failure::new(
                Exit::Refused,
                format!("the configuration has no workspace `{}` any more", self.workspace.path),
                "put its entry back into the configuration",
            )
        })
    }
}

/// The workspace at `path`, as somebody typed it.
pub(super) fn workspace(read: &dyn Read, part: &Part, path: &str) -> Result<WorkspaceRow, Failure> {
    let path = part.path(path)?;
    let found = read.workspace_at(&path)?;
    let reason = match found {
        Some(row) if row.dir.is_some() => return Ok(row),
        Some(_) => "is no workspace any more: its directory is gone",
        None => "is no workspace",
    };
    let mut known = part.workspaces(read)?;
    known.retain(|row| row.dir.is_some());
    let known: Vec<String> = known.iter().map(|row| part.show(&row.path).to_string()).collect();
    let remedy = match known.as_slice() {
        [] => "there is none yet: make its directory, or import one".to_owned(),
        known => format!("there are {}", known.join(", ")),
    };
    Err(Failure::new(Exit::Absent, format!("`{}` {reason}", part.show(&path)), remedy))
}

/// Where a living record's file lies.
pub(super) fn path_of(read: &dyn Read, record: &Record) -> Result<Option<TreePath>, Failure> {
    match &record.standing {
        Standing::Live { dir, name, .. } => Ok(Some(engine::path_of(read, *dir, name)?)),
        Standing::Parked { .. } | Standing::Gone => Ok(None),
    }
}

/// The directory that a record lies in, or has its place in; `None` if it is gone.
pub(super) fn dir_of(read: &dyn Read, record: &Record) -> Result<Option<TreePath>, Failure> {
    match &record.standing {
        Standing::Live { dir, .. } | Standing::Parked { dir } => Ok(Some(path_of_dir(read, *dir)?)),
        Standing::Gone => Ok(None),
    }
}

/// Finds what `what` means: a path if it has a slash, else an id, else a name at the root. An id is
/// first a record's that is there, then a draft's, then that of a record that is gone.
pub(super) fn find(
    read: &dyn Read,
    config: &Config,
    part: &Part,
    what: &str,
) -> Result<Found, Failure> {
    let path = part.path(what)?;
    if !what.contains('/') {
        let mut found = by_id(read, config, part, what)?;
        if found.iter().all(|one| one.dir.is_none()) {
            let mut drafts = drafts_by_id(read, config, part, what)?;
            if drafts.len() > 1 {
                let paths = drafts.iter().map(|(path, _)| part.show(path).to_string()).collect();
                return Err(ambiguous(what, "directories", paths));
            }
            if let Some((path, node)) = drafts.pop() {
                return at_node(read, path, node);
            }
        }
        match found.len() {
            0 => {}
            1 => return Ok(Found::Record(Box::new(found.remove(0)))),
            _ => return Err(ambiguous(what, "workspaces", places_of(read, part, &found)?)),
        }
    }
    if let Some(node) = node_at(read, &path)? {
        return at_node(read, path, node);
    }
    if let Some(printed) = printed(part, what)
        && let Some(node) = node_at(read, &printed)?
    {
        return at_node(read, printed, node);
    }
    if let Some(in_ready) = InReady::of(read, config, &path)? {
        match in_ready.leads_to(read)? {
            Some((path, node)) => return at_node(read, path, node),
            None if in_ready.is_next() => return Err(nothing_ready(part, &path)),
            None => {}
        }
    }
    expect_not_shown(read, config, part, &path)?;
    match named(read, config, &path)? {
        // Of what was removed the past is there.
        Some((record, workspace)) if record.standing == Standing::Gone => {
            let found = FoundRecord { record, workspace, path: None, dir: None };
            Ok(Found::Record(Box::new(found)))
        }
        named => Err(absent((read, config), part, &path, named.map(|(record, _)| record))?),
    }
}

/// The same for what only tells: what is parked is found by its path, too.
pub(super) fn find_to_tell(
    read: &dyn Read,
    config: &Config,
    part: &Part,
    what: &str,
) -> Result<Found, Failure> {
    match find(read, config, part, what) {
        Err(failure) if failure.exit == Exit::Absent => {
            let without_file = without_file_at(read, config, &part.path(what)?)?;
            without_file.map_or(Err(failure), |found| Ok(Found::Record(Box::new(found))))
        }
        found => found,
    }
}

/// The same where the past is meant: where a draft, a directory or a link lies it is that of the record that was
/// there before.
pub(super) fn find_past(
    read: &dyn Read,
    config: &Config,
    part: &Part,
    what: &str,
) -> Result<Found, Failure> {
    let found = find_to_tell(read, config, part, what)?;
    let path = match &found {
        Found::Draft(path, ..) => path,
        Found::Node(path, node) if node.node_type != NodeType::File => path,
        _ => return Ok(found),
    };
    let without_file = without_file_at(read, config, path)?;
    Ok(without_file.map_or(found, |found| Found::Record(Box::new(found))))
}

/// The record of that path that is gone, or is parked there.
fn without_file_at(
    read: &dyn Read,
    config: &Config,
    path: &TreePath,
) -> Result<Option<FoundRecord>, Failure> {
    let Some((record, workspace)) = named(read, config, path)? else { return Ok(None) };
    let dir = dir_of(read, &record)?;
    let is_here = match record.standing {
        Standing::Live { .. } => false,
        Standing::Parked { .. } => dir == path.split_last().map(|(above, _)| above),
        Standing::Gone => true,
    };
    Ok(is_here.then_some(FoundRecord { record, workspace, path: None, dir }))
}

/// What a path would be if it was copied from what a command prints for people, or from the ledger.
pub(super) fn printed(part: &Part, what: &str) -> Option<TreePath> {
    let typed = String::from_utf8(path_of_json(what)).ok().filter(|typed| typed.contains('\\'))?;
    Some(part.join(&path_of_ledger(&typed)?))
}

/// The plain file or directory that is meant, if it has a past: also one that is gone.
pub(super) fn past_of(
    read: &dyn Read,
    part: &Part,
    what: &str,
) -> Result<Option<TreePath>, Failure> {
    for path in [Some(part.path(what)?), printed(part, what)].into_iter().flatten() {
        if read.history(&path)?.is_some() || has_past_below(read, &path)? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Whether something below `path` has a past: a directory is there, or was.
pub(super) fn has_past_below(read: &dyn Read, path: &TreePath) -> Result<bool, Failure> {
    let mut has = false;
    read.histories(path, None, &mut |_| {
        has = true;
        false
    })?;
    Ok(has)
}

/// Whether `what` is the path of a record that is elsewhere by now.
pub(super) fn has_moved_on(
    read: &dyn Read,
    config: &Config,
    part: &Part,
    what: &str,
) -> Result<bool, Failure> {
    let named = named(read, config, &part.path(what)?)?;
    Ok(named.is_some_and(|(record, _)| record.standing != Standing::Gone))
}

/// The record that `path` would be, wherever it is.
fn named(
    read: &dyn Read,
    config: &Config,
    path: &TreePath,
) -> Result<Option<(Record, WorkspaceRow)>, Failure> {
    let Some((above, name)) = path.split_last() else { return Ok(None) };
    let Some(dir) = node_at(read, &above)? else {
        let Some(in_ready) = InReady::of(read, config, path)? else { return Ok(None) };
        let Some(record) = in_ready.record(read)? else { return Ok(None) };
        return Ok(read.workspace(record.workspace)?.map(|workspace| (record, workspace)));
    };
    let Slot::Record(home) = slot(read, config, dir.ino, name)? else { return Ok(None) };
    let Some(record) = read.record_named(home.governed.workspace, &home.id)? else {
        return Ok(None);
    };
    Ok(read.workspace(record.workspace)?.map(|workspace| (record, workspace)))
}

fn at_node(read: &dyn Read, path: TreePath, node: Node) -> Result<Found, Failure> {
    match node.class {
        Class::Record => {
            if let Some(record) = read.record_at(node.ino)?
                && let Some(workspace) = read.workspace(record.workspace)?
            {
                let (dir, path) = (dir_of(read, &record)?, Some(path));
                return Ok(Found::Record(Box::new(FoundRecord { record, workspace, path, dir })));
            }
        }
        Class::Draft => {
            if let Some(draft) = read.draft(node.ino)? {
                return Ok(Found::Draft(path, node, draft));
            }
        }
        Class::Plain => {}
    }
    Ok(Found::Node(path, node))
}

/// All records of that id in sight; those that are not gone come alone where there are any.
fn by_id(
    read: &dyn Read,
    config: &Config,
    part: &Part,
    what: &str,
) -> Result<Vec<FoundRecord>, Failure> {
    let mut found = Vec::new();
    for workspace in part.workspaces(read)? {
        let as_name = FileName::new(what).ok().and_then(|name| {
            config.bind(&workspace.path).and_then(|binding| binding.kind.record_id(&name))
        });
        for id in [RecordId::new(what).ok(), as_name].into_iter().flatten() {
            if let Some(record) = read.record_named(workspace.key, &id)? {
                let (path, dir) = (path_of(read, &record)?, dir_of(read, &record)?);
                found.push(FoundRecord { record, workspace: workspace.clone(), path, dir });
            }
        }
    }
    found.retain(|one| part.has(one.dir.as_ref().unwrap_or(&one.workspace.path)));
    if found.iter().any(|one| one.dir.is_some()) {
        found.retain(|one| one.dir.is_some());
    }
    Ok(found)
}

/// All drafts of that id in sight, and where they lie.
fn drafts_by_id(
    read: &dyn Read,
    config: &Config,
    part: &Part,
    what: &str,
) -> Result<Vec<(TreePath, Node)>, Failure> {
    let mut found = Vec::new();
    for workspace in part.workspaces(read)? {
        let Some(binding) = config.bind(&workspace.path) else { continue };
        let names = binding.kind.names_of(what);
        for place in state_dirs(read, config, &workspace)? {
            let dir = place.governed.dir_path();
            for name in names.iter().filter(|_| part.has(&dir)) {
                let node = read.lookup(place.dir, name)?;
                let draft = node.filter(|node| node.class == Class::Draft);
                found.extend(draft.map(|node| (dir.join(name.clone()), node)));
            }
        }
    }
    Ok(found)
}

fn ambiguous(what: &str, holders: &str, places: Vec<String>) -> Failure {
    let reason = format!("{} {holders} have `{what}`", places.len());
    Failure::new(Exit::Usage, reason, format!("give the path: {}", places.join(" or ")))
}

/// Where records are, or were.
fn places_of(read: &dyn Read, part: &Part, found: &[FoundRecord]) -> Result<Vec<String>, Failure> {
    let place = |one: &FoundRecord| match &one.path {
        Some(path) => Ok(part.show(path).to_string()),
        None => last_path(read, part, one),
    };
    found.iter().map(place).collect()
}

/// Where a record lay that was removed, as its last event says.
fn last_path(read: &dyn Read, part: &Part, found: &FoundRecord) -> Result<String, Failure> {
    let last = read.event(found.record.last_g)?;
    let said = last.and_then(|row| serde_json::from_str::<serde_json::Value>(&row.line).ok());
    let path = said.map(|event| field(&event, "/payload/path"));
    let known = path.filter(|path| !path.is_empty());
    let shown =
        known.map_or_else(|| part.show(&found.workspace.path), |path| part.show_text(&path));
    Ok(shown.to_string())
}

fn nothing_ready(part: &Part, next: &TreePath) -> Failure {
    let reason = format!("nothing is ready: `{}` leads nowhere", part.show(next));
    Failure::new(Exit::Nothing, reason, "`workfs ready --explain` says what waits for what")
}

/// What to look at where there is nothing at `path`: what was there, or would be if the path began in a
/// workspace, else what lies beside it.
fn instead(
    (read, config): (&dyn Read, &Config),
    part: &Part,
    path: &TreePath,
) -> Result<String, Failure> {
    for workspace in part.workspaces(read)? {
        let inside = workspace.path.join_all(path);
        let dir = inside.split_last().map(|(dir, _)| node_at(read, &dir)).transpose()?.flatten();
        if (dir.is_some() && path.names().len() > 1)
            || InReady::of(read, config, &inside)?.is_some()
        {
            let inside = part.show(&inside);
            return Ok(format!("a path begins at the root of the tree: `{inside}`"));
        }
    }
    if path.split_last().is_some_and(|(_, name)| name.as_bytes() == NEXT) {
        let remedy =
            "a lane's `.next` is known in mounts alone; `workfs list --owner AGENT` lists all";
        return Ok(remedy.to_owned());
    }
    if read.history(path)?.is_some() {
        let path = part.show(path).in_shell();
        return Ok(format!(
            "`workfs log {path}` tells what became of it, `workfs restore {path} --at G` makes it again"
        ));
    }
    let (last, names) = as_far_as_there(read, path)?;
    // What is there and no directory has one around it.
    let is_dir = last.is_none_or(|last| last.node_type == NodeType::Directory);
    let names = names.saturating_sub(usize::from(!is_dir));
    let dir: TreePath = path.names().iter().take(names).cloned().collect();
    if part.has(&dir) && !dir.names().is_empty() {
        let dir = part.show(&dir).in_shell();
        return Ok(format!("`workfs show {dir}` lists what is there, `workfs list` the records"));
    }
    Ok("`workfs list` lists the records, `workfs show .` what lies at the root".to_owned())
}

/// There is nothing at `path`; a record that was there may be elsewhere.
fn absent(
    (read, config): (&dyn Read, &Config),
    part: &Part,
    path: &TreePath,
    named: Option<Record>,
) -> Result<Failure, Failure> {
    let remedy = match named {
        None => instead((read, config), part, path)?,
        Some(record) => match path_of(read, &record)? {
            None => "its name is a backup's now, and it comes back with the name".to_owned(),
            Some(now) if part.has(&now) => format!("it is `{}` now", part.show(&now)),
            Some(_) => "it is not in what this mount shows any more".to_owned(),
        },
    };
    Ok(Failure::new(Exit::Absent, format!("there is no `{}`", part.show(path)), remedy))
}

/// A record that somebody wants to change; drafts and plain files are refused with the reason.
pub(super) fn record(
    (service, read): (&Service, &dyn Read),
    config: &Config,
    caller: &Caller,
    what: &str,
) -> Result<FoundRecord, Failure> {
    let part = &caller.part;
    match find(read, config, part, what)? {
        Found::Record(found) => Ok(*found),
        Found::Draft(path, _, draft) => {
            // The reason may quote it.
            let is_told = may_read((service, read), caller, &path)?;
            let why = draft.why.filter(|_| is_told);
            let because = why.as_ref().map_or_else(String::new, |why| format!(": {}", why.reason));
            let path = part.show(&path);
            let reason = format!("`{path}` is a draft and no record yet{because}");
            let remedy = why.map_or_else(|| "save it with content".to_owned(), |why| why.remedy);
            Err(Failure::by(Rule::Draft, reason, remedy))
        }
        Found::Node(path, _) => Err(Failure::new(
            Exit::Usage,
            format!("`{}` is no record", part.show(&path)),
            "give a record's id, or its path",
        )),
    }
}

/// A state's directory: its inode and what the kind makes of it.
pub(super) struct StateDir {
    pub dir: Ino,
    pub governed: Governed,
    pub state: crate::kind::StateIx,
    pub owner: Option<crate::names::AgentName>,
}

/// The state directories of a workspace, in the order of the kind's states, then of their paths.
pub(super) fn state_dirs(
    read: &dyn Read,
    config: &Config,
    workspace: &WorkspaceRow,
) -> Result<Vec<StateDir>, Failure> {
    let mut dirs = Vec::new();
    for (dir, _) in read.places_of(workspace.key)? {
        if let Some(governed) = governed(read, config, dir)?
            && let Place::State { state, owner } = governed.place.clone()
        {
            dirs.push(StateDir { dir, governed, state, owner });
        }
    }
    dirs.sort_by_key(|one| {
        let order = one.governed.binding.kind.states().position(|(ix, _)| ix == one.state);
        (order, one.governed.relative.clone())
    });
    Ok(dirs)
}
