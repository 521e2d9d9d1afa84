//! `gc`: old projects go, by status and age; and versions that nothing keeps any more.
//!
//! What must stay true: nothing is removed unless `delete` says so, and what would be removed is
//! told before. A project whose status cannot be read is never removed, so what tells the status goes
//! last: whatever ends a removal half-way, the next one goes on with it. Events stay.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::{Config, allowed};
use crate::engine::node_at;
use crate::engine::{
    Engine, PruneVersions, Pruned, Removal, RemoveTree, Witness, late_versions, read_plain,
    retention,
};
use crate::limits::RECORD_BYTES_MAX;
use crate::names::{FileName, ShownPath, TreePath, printable};
use crate::numbers::{Ino, UnixNanos};
use crate::service::reply::pace::Pace;
use crate::service::reply::text::size;
use crate::service::request::part::tree_path;
use crate::service::{Caller, Exit, Failure, GcArgs, PARTS, SCRATCHPAD, Service, Sink};
use crate::store::{Class, Node, NodeType, Read};

/// The files of which one tells a project's status.
const STATUS_FILES: [&str; 3] = ["project.yaml", "project.yml", "project.json"];

/// A project in the scratchpad.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GcProject {
    /// Its id.
    pub project: ShownPath,
    /// What its `project.yaml` says; nothing if there is none that can be read.
    pub status: Option<String>,
    /// When anything of it was changed last, RFC 3339.
    pub changed_at: String,
    /// Files and directories.
    pub nodes: u64,
    /// Bytes of its files, but of those that have a name elsewhere, too.
    pub bytes: u64,
    /// Bytes of their versions.
    pub version_bytes: u64,
    /// Its status and age are such that it goes.
    pub goes: bool,
    /// They are, but for so many records and drafts in it, which are no rubbish, it stays with all that it has.
    #[serde(default)]
    pub stays_for: u64,
    /// It went in part: then its status was written anew, and what it still had stays.
    #[serde(default)]
    pub stopped: bool,
}

/// See [`crate::service::Request::Gc`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GcReport {
    /// All projects.
    pub projects: Vec<GcProject>,
    /// It was done, and not only told.
    pub deleted: bool,
    /// Bytes that are free now, or would be: files and versions of projects that go.
    pub freed_bytes: u64,
    /// Versions of other files that retention no longer keeps: that went, or would go.
    pub pruned_versions: u64,
    /// Their bytes.
    pub pruned_bytes: u64,
    /// The client went away before the end: not all was looked at; of what was to be deleted the last may
    /// be there still, in part or whole.
    #[serde(default)]
    pub interrupted: bool,
}

impl GcReport {
    /// A line for each project that goes, and the sum.
    #[must_use]
    pub fn human(&self) -> String {
        let mut out = String::new();
        for one in self.projects.iter().filter(|one| one.stays_for > 0) {
            out.push_str(&format!(
                "{}  stays for the records and drafts in it ({}): move them out first\n",
                one.project, one.stays_for
            ));
        }
        for one in self.projects.iter().filter(|one| one.stopped) {
            out.push_str(&format!(
                "{}  its status was written anew while it went: what it still has stays\n",
                one.project
            ));
        }
        for one in self.projects.iter().filter(|one| one.goes) {
            let status = one.status.as_deref().unwrap_or("unknown");
            out.push_str(&format!(
                "{}  {status}, last changed {}: {} files and directories, {}\n",
                one.project,
                one.changed_at,
                one.nodes,
                size(one.bytes + one.version_bytes),
            ));
        }
        if self.interrupted {
            out.push_str(match self.deleted {
                true => "interrupted: what went is gone; the same command again removes the rest",
                false => "interrupted: not all was looked at, and nothing was removed",
            });
            return out;
        }
        let goes = self.projects.iter().filter(|one| one.goes).count();
        let (freed, of) = (size(self.freed_bytes), self.projects.len());
        let (count, bytes) = (self.pruned_versions, size(self.pruned_bytes));
        if self.deleted {
            out.push_str(&format!(
                "removed {goes} of {of} projects ({freed}), and {count} old versions ({bytes})"
            ));
        } else {
            out.push_str(&format!(
                "{goes} of {of} projects would go ({freed}), and {count} old versions ({bytes}); \
                 --delete does it"
            ));
        }
        out
    }

    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        if self.interrupted { Exit::Problems } else { Exit::Done }
    }
}

/// Tells what would go, and lets it go if that is wanted.
///
/// # Errors
/// A refusal (a record that came meanwhile), or a failure of the store. What went before stays gone.
pub(in crate::service) fn gc(
    service: &Service,
    caller: &Caller,
    args: &GcArgs,
    sink: Sink<'_>,
) -> Result<GcReport, Failure> {
    let now = service.engine.now();
    let oldest = now.before(Duration::from_secs(args.older_than_s));
    let mut report = GcReport { deleted: args.delete, ..GcReport::default() };
    let found = service.read(|read| projects(read))?;
    refuse_unknown(service, args, &found)?;
    let mut sweep = Sweep { engine: &service.engine, caller, pace: Pace::new(sink), changes: 0 };
    let mut going = Vec::new();
    let mut shared = Links::default();
    for (name, places) in found {
        let mut one = GcProject { project: (&name).into(), ..GcProject::default() };
        let (mut newest, mut records) = (UnixNanos(0), 0);
        let mut links = Links::default();
        let mut witness = None;
        service.read(|read| {
            (one.status, witness) = status(read, &name)?.unzip();
            for (path, _) in &places {
                let path = path.join(name.clone());
                let met = (&mut newest, &mut records, &mut links);
                measure(read, &path, &mut one, met, &mut sweep.pace)?;
            }
            Ok(())
        })?;
        // Of what was not looked at to the end nobody knows whether it may go.
        if sweep.pace.is_over() {
            break;
        }
        one.bytes += links.whole();
        one.changed_at = newest.rfc3339_seconds();
        let named = one.status.as_ref().is_some_and(|status| args.status.contains(status));
        if named && newest <= oldest {
            (one.goes, one.stays_for) = (records == 0, records);
        }
        if let Some(witness) = witness.filter(|_| one.goes) {
            if args.delete {
                one.stopped = !sweep.project(&name, &places, &witness)?;
                one.goes = !one.stopped;
            }
            if one.goes {
                going.extend(places.iter().map(|(path, _)| path.join(name.clone())));
                shared.add(links);
                report.freed_bytes += one.bytes + one.version_bytes + shared.whole();
            }
        }
        report.projects.push(one);
    }
    let pruned = if args.delete {
        sweep.prune(None)?
    } else {
        service.read(|read| late(read, &service.engine.config(), (now, &going), &mut sweep.pace))?
    };
    (report.pruned_versions, report.pruned_bytes) = (pruned.versions, pruned.bytes);
    report.interrupted = sweep.pace.is_over();
    if report.interrupted {
        tracing::info!(changes = sweep.changes, "gc ends early: nobody waits for the rest");
    }
    Ok(report)
}

/// What [`Sweep::prune`] would let go of, but for what lies in projects that go.
fn late(
    read: &dyn Read,
    config: &Config,
    (now, going): (UnixNanos, &[TreePath]),
    pace: &mut Pace<'_>,
) -> Result<Pruned, Failure> {
    let (mut sum, mut failed) = (Pruned::default(), Ok(()));
    let mut count = 0;
    read.histories(&TreePath::root(), None, &mut |history| {
        count += 1;
        if !pace.goes_on(count, 0, "histories") {
            return false;
        }
        let goes_anyway = going.iter().any(|path| history.path.names().starts_with(path.names()));
        if goes_anyway {
            return true;
        }
        let keep = retention(config, &history.path);
        match late_versions(read, &history, keep.as_ref(), now) {
            Ok(late) => {
                sum.versions += late.len() as u64;
                sum.bytes += late.iter().map(|version| version.size).sum::<u64>();
            }
            Err(error) => failed = Err(error),
        }
        failed.is_ok()
    })?;
    failed?;
    Ok(sum)
}

type Places = Vec<(TreePath, Ino)>;

/// The projects, with the directories in which each has one.
fn projects(read: &dyn Read) -> Result<Vec<(FileName, Places)>, Failure> {
    let mut found: std::collections::BTreeMap<FileName, Places> = Default::default();
    for part in PARTS {
        let path = tree_path(&format!("{SCRATCHPAD}/{part}"))?;
        let Some(dir) = node_at(read, &path)? else { continue };
        read.list(dir.ino, None, &mut |(name, node)| {
            if node.node_type == NodeType::Directory {
                found.entry(name).or_default().push((path.clone(), dir.ino));
            }
            true
        })?;
    }
    Ok(found.into_iter().collect())
}

/// The status that a project's file says, and what to go by as long as it says so.
fn status(read: &dyn Read, project: &FileName) -> Result<Option<(String, Witness)>, Failure> {
    let names: Vec<FileName> =
        STATUS_FILES.iter().filter_map(|name| FileName::new(name).ok()).collect();
    let path = tree_path(&format!("{SCRATCHPAD}/{}", PARTS[0]))?.join(project.clone());
    let Some(dir) = node_at(read, &path)? else { return Ok(None) };
    for name in &names {
        let found = read.lookup(dir.ino, name)?;
        let Some(node) = found.filter(|node| node.class == Class::Plain) else { continue };
        let bytes = read_plain(read, &node, 0, RECORD_BYTES_MAX)?;
        // JSON is YAML.
        let value = crate::record::parse_any(&bytes).unwrap_or_default();
        let Some(status) = value.get("status").and_then(|text| text.as_str()) else { break };
        let status = status.to_owned();
        return Ok(Some((status, Witness::new(read, dir.ino, names)?)));
    }
    Ok(None)
}

/// Refuses a status that no project has and none can have.
fn refuse_unknown(
    service: &Service,
    args: &GcArgs,
    found: &[(FileName, Places)],
) -> Result<(), Failure> {
    let mut known: BTreeSet<String> = allowed("project", "status").into_iter().collect();
    if args.status.iter().all(|status| known.contains(status)) {
        return Ok(());
    }
    service.read(|read| {
        for (name, _) in found {
            known.extend(status(read, name)?.map(|(status, _)| status));
        }
        Ok(())
    })?;
    let Some(unknown) = args.status.iter().find(|status| !known.contains(*status)) else {
        return Ok(());
    };
    let known = known.iter().map(|status| printable(status.as_bytes())).collect::<Vec<_>>();
    let reason = format!("no project is `{}`", printable(unknown.as_bytes()));
    Err(Failure::new(Exit::Usage, reason, format!("there are {}", known.join(", "))))
}

/// Files with several names: their size, how many names they have, and how many were met. Their content
/// goes with the last name.
#[derive(Default)]
struct Links(HashMap<Ino, (u64, u32, u32)>);

impl Links {
    fn met(&mut self, node: &Node) {
        self.0.entry(node.ino).or_insert((node.size, node.nlink, 0)).2 += 1;
    }

    /// Takes the bytes of those of which all names were met.
    fn whole(&mut self) -> u64 {
        let mut bytes = 0;
        self.0.retain(|_, (size, names, met)| {
            let goes_on = *met < *names;
            bytes += if goes_on { 0 } else { *size };
            goes_on
        });
        bytes
    }

    /// What else is left of a project that goes, too.
    fn add(&mut self, others: Links) {
        for (ino, (size, names, met)) in others.0 {
            self.0.entry(ino).or_insert((size, names, 0)).2 += met;
        }
    }
}

/// Adds up what lies at and below `path`.
fn measure(
    read: &dyn Read,
    path: &TreePath,
    one: &mut GcProject,
    (newest, records, links): (&mut UnixNanos, &mut u64, &mut Links),
    pace: &mut Pace<'_>,
) -> Result<(), Failure> {
    let (mut waiting, mut files): (Vec<Ino>, Vec<Ino>) = Default::default();
    let mut count = |one: &mut GcProject, node: &Node, waiting: &mut Vec<Ino>| {
        one.nodes += 1;
        *records += u64::from(node.class != Class::Plain);
        *newest = (*newest).max(node.mtime);
        if node.node_type == NodeType::Directory {
            waiting.push(node.ino);
        } else if node.nlink > 1 {
            links.met(node);
        } else {
            one.bytes += node.size;
            files.push(node.ino);
        }
    };
    if let Some(node) = node_at(read, path)? {
        count(one, &node, &mut waiting);
    }
    while let Some(dir) = waiting.pop() {
        read.list(dir, None, &mut |(_, node)| {
            count(one, &node, &mut waiting);
            pace.goes_on(one.nodes, 0, "files")
        })?;
    }
    // A backup has one name.
    for file in files {
        *records += u64::from(read.parked_by(file)?.is_some());
    }
    read.histories(path, None, &mut |history| {
        one.version_bytes += history.bytes;
        pace.goes_on(one.nodes, 0, "files")
    })?;
    Ok(())
}

/// A removal under way: one change after the other, as long as somebody waits for it.
struct Sweep<'s> {
    engine: &'s Engine,
    caller: &'s Caller,
    pace: Pace<'s>,
    changes: u64,
}

impl Sweep<'_> {
    /// Counts a change; false when nobody waits for the next.
    fn goes_on(&mut self) -> bool {
        self.changes += 1;
        self.pace.tell(self.changes, 0, "changes")
    }

    /// Removes a project with its versions; says whether nothing made it stop before the end but the client.
    fn project(
        &mut self,
        name: &FileName,
        places: &Places,
        witness: &Witness,
    ) -> Result<bool, Failure> {
        // The first place tells the status.
        for (path, dir) in places.iter().rev() {
            // In this order: of what is gone nobody would look for the versions.
            self.prune(Some((path.join(name.clone()), witness.clone())))?;
            if !self.remove(*dir, name, witness)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn remove(&mut self, parent: Ino, name: &FileName, witness: &Witness) -> Result<bool, Failure> {
        let remove = RemoveTree { parent, name: name.clone(), witness: witness.clone() };
        while !self.pace.is_over() {
            match self.engine.run(self.caller.context(), remove.clone())? {
                Removal::InPart => self.goes_on(),
                Removal::Whole => break,
                Removal::Stopped => return Ok(false),
            };
        }
        Ok(true)
    }

    fn prune(&mut self, all_of: Option<(TreePath, Witness)>) -> Result<Pruned, Failure> {
        let mut sum = Pruned::default();
        while !self.pace.is_over() {
            let prune = PruneVersions { after: sum.last.take(), all_of: all_of.clone() };
            let pruned = self.engine.run(self.caller.context(), prune)?;
            sum.versions += pruned.versions;
            sum.bytes += pruned.bytes;
            sum.last = pruned.last;
            if !self.goes_on() || sum.last.is_none() {
                break;
            }
        }
        Ok(sum)
    }
}
