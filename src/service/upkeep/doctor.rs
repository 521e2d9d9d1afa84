//! Checks what workfs needs around it (`environment`), and the store itself: a line each, with the way out.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use workfs_mount::{DirState, MountLine};

use super::environment;
use super::govern::{Unfit, unfit};
use super::misfits::{Misfits, misfits};
use crate::config::{CONFIG_KEY, Config};
use crate::names::{first_few, printable, shell_word};
use crate::service::fsck::outline;
use crate::service::status::chores_that_wait;
use crate::service::{Exit, Reply, Service, Sink};
use crate::store::{MORE_THREADS, is_made};

/// How many directories are named in one finding.
const NAMED_MAX: usize = 10;

/// The way out where nothing else is known to help.
const RESTORE: &str = "restore a backup: `workfs restore FILE --force`, which keeps this one";

/// How long a mount may take to answer.
const MOUNT_ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// How well something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Well.
    Ok,
    /// It works, but not for long or not for all.
    Warn,
    /// It does not work.
    Bad,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What was looked at.
    pub what: String,
    /// How well it is.
    pub health: Health,
    /// What was found.
    pub found: String,
    /// The way out, where one is needed.
    pub remedy: Option<String>,
}

/// See [`crate::service::Request::Doctor`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoctorReport {
    /// What was looked at, in order.
    pub findings: Vec<Finding>,
}

impl DoctorReport {
    /// A line each, with the way out below.
    #[must_use]
    pub fn human(&self) -> String {
        let line = |one: &Finding| {
            let word = match one.health {
                Health::Ok => "ok  ",
                Health::Warn => "warn",
                Health::Bad => "BAD ",
            };
            let remedy =
                one.remedy.as_ref().map_or_else(String::new, |way| format!("\n      → {way}"));
            format!("{word}  {}: {}{remedy}", one.what, one.found)
        };
        self.findings.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// How the process ends: warnings are none.
    #[must_use]
    pub fn exit(&self) -> Exit {
        let bad = self.findings.iter().any(|one| one.health == Health::Bad);
        if bad { Exit::Problems } else { Exit::Done }
    }

    pub(super) fn ok(&mut self, what: &str, found: impl Into<String>) {
        self.add(what, Health::Ok, found, None);
    }

    pub(super) fn warn(&mut self, what: &str, found: impl Into<String>, remedy: impl Into<String>) {
        self.add(what, Health::Warn, found, Some(remedy.into()));
    }

    pub(super) fn bad(&mut self, what: &str, found: impl Into<String>, remedy: impl Into<String>) {
        self.add(what, Health::Bad, found, Some(remedy.into()));
    }

    fn add(
        &mut self,
        what: &str,
        health: Health,
        found: impl Into<String>,
        remedy: Option<String>,
    ) {
        let found = found.into();
        self.findings.push(Finding { what: what.to_owned(), health, found, remedy });
    }
}

/// Looks at the environment of the store at `store`, and at the store through `service`; where it
/// could not be opened, the reason and the way out are there instead.
#[must_use]
pub fn doctor(
    store: &Path,
    service: Result<&Service, (&str, &str)>,
    sink: Sink<'_>,
) -> DoctorReport {
    let mut report = DoctorReport { findings: Vec::new() };
    environment::look(&mut report, store, service.is_ok());
    match service {
        Ok(service) => {
            inside(&mut report, service, sink);
            chores(&mut report, service);
        }
        // What is said of its file says that already.
        Err(_) if !is_made(store) => {}
        // This is what that names.
        Err((why, remedy)) if remedy.is_empty() || remedy.contains("workfs doctor") => {
            report.bad("store", why, RESTORE);
        }
        Err((why, remedy)) => report.bad("store", why, remedy),
    }
    mounts(&mut report, store);
    report
}

/// A path in a command that somebody is told to give.
pub(super) fn word(path: &Path) -> String {
    shell_word(path.as_os_str().as_encoded_bytes())
}

fn inside(report: &mut DoctorReport, service: &Service, sink: Sink<'_>) {
    rows(report, service, sink);
    if let Some(why) = service.engine.write_protection() {
        let found = format!("cannot be written: {why}");
        let remedy = "make it writable, unmount it (`workfs unmount --all`) and mount it again; till then it \
                      can be read";
        report.warn("store", found, remedy);
    } else if let Some(refusal) = service.engine.refuses() {
        report.bad("store", format!("takes no change: {refusal}"), refusal.remedy);
    }
    entries(report, service);
    kept_layout(report, service);
    let config = service.engine.config();
    let unfit = crate::store::read(&**service.engine.readers(), |read| unfit(read, &config));
    let Unfit { left, homeless } = unfit.unwrap_or_default();
    if !homeless.is_empty() {
        let named = first_few(homeless.iter().map(|(dir, _)| dir.to_string()), NAMED_MAX);
        let found = format!(
            "{} directories have records for which it has no place as they are, and which nobody, or not who \
             should, can change: {named}",
            homeless.len(),
        );
        let remedy =
            "set a layout that has their workspaces as they were: `workfs init --layout FILE`";
        report.bad("configuration", found, remedy);
    }
    not_valid(report, service, sink);
    if !left.is_empty() {
        let named = first_few(left.iter().map(ToString::to_string), NAMED_MAX);
        let found = format!("{} directories are not as it wants them: {named}", left.len());
        let remedy = "`workfs init` says of each what is in its way, and tries again \
                      (`workfs unmount --all` first)";
        report.warn("configuration", found, remedy);
    }
}

/// Whether the store's rows can be.
fn rows(report: &mut DoctorReport, service: &Service, sink: Sink<'_>) {
    match outline(&**service.engine.readers(), sink) {
        Ok(found) if found.interrupted => {
            report.warn("store", "not looked at to the end: interrupted", "call it again");
        }
        Ok(found) if found.count == 0 => {
            let found = "whole (integrity, schema, rows); what they say: `workfs fsck`";
            report.ok("store", found);
        }
        Ok(found) => {
            let problems = found.problems.iter().map(|one| format!("{}: {}", one.thing, one.what));
            let told = format!("damaged: {}", first_few(problems, NAMED_MAX));
            let all = "`workfs fsck` says all";
            // What is lost in the store itself no backup of it has either.
            let remedy = match found.count > found.lost {
                true => format!("{all}; export what can be read; {RESTORE}"),
                false => all.to_owned(),
            };
            report.bad("store", told, remedy);
        }
        Err(failure) => report.bad("store", failure.reason, RESTORE),
    }
}

/// Whether each workspace that there is has an entry.
fn entries(report: &mut DoctorReport, service: &Service) {
    let config = service.engine.config();
    let rows = crate::store::read(&**service.engine.readers(), |read| read.workspaces());
    let rows = rows.unwrap_or_default();
    let unbound: Vec<String> = rows
        .iter()
        .filter(|row| row.dir.is_some() && config.bind(&row.path).is_none())
        .map(|row| row.path.to_string())
        .collect();
    let entries = config.bindings().len();
    if unbound.is_empty() {
        // A store of plain files only is as good as any.
        report.ok("configuration", format!("{entries} entries"));
    } else {
        let found = format!("no entry for {} any more", unbound.join(", "));
        let remedy = "put the entry back, if records are to be there again";
        report.warn("configuration", found, remedy);
    }
}

/// Whether the layout that is kept would be taken today, and what in it is hardly meant.
fn kept_layout(report: &mut DoctorReport, service: &Service) {
    let kept = crate::store::read(&**service.engine.readers(), |read| read.meta(CONFIG_KEY));
    if let Some(why) = Config::would_be_refused(kept.unwrap_or_default().as_deref()) {
        let found = format!("a former version took it, and none takes it any more: {why}");
        let remedy = "set a layout without it, once no records lie in what it would not take: `workfs init --layout FILE`";
        report.warn("configuration", found, remedy);
    }
    for warning in service.engine.config().warnings() {
        let remedy = "mend it in the layout, and set that again: `workfs init --layout FILE`";
        report.warn("configuration", format!("hardly meant: {warning}"), remedy);
    }
}

/// Records that the configuration would not take as they are.
fn not_valid(report: &mut DoctorReport, service: &Service, sink: Sink<'_>) {
    let mut is_cut = false;
    let mut progress = |done, total| {
        let goes_on = sink(Reply::Progress { done, total, what: "records".to_owned() });
        is_cut |= !goes_on && done < total;
        goes_on
    };
    match misfits(&**service.engine.readers(), &service.engine.config(), &mut progress) {
        Ok(Misfits { all, .. }) if all.count > 0 => {
            let named = Misfits::named(&all);
            let found = format!("{}, {named}", Misfits::TOLD);
            report.warn("configuration", found, "`workfs why ID` says what each needs");
        }
        // What of the store cannot be read is told of elsewhere.
        Ok(_) | Err(_) => {}
    }
    if is_cut {
        let found = "its records were not looked at to the end: interrupted";
        report.warn("configuration", found, "call it again");
    }
}

/// What chores could not do, of which a daemon knows that makes them.
fn chores(report: &mut DoctorReport, service: &Service) {
    // What of the store cannot be read is told of elsewhere.
    let waiting = service.read(|read| chores_that_wait(service, read)).unwrap_or_default();
    for (path, why) in waiting {
        let remedy = "`workfs why` has the way out; it is tried again each minute";
        report.warn("chores", format!("{path}: {why}"), remedy);
    }
}

/// Mounts of workfs that do not answer. Those of another store are its daemon's affair; one that was
/// given another source (`fsname=`) may be of this one.
fn mounts(report: &mut DoctorReport, store: &Path) {
    let mounts = workfs_mount::mounts().unwrap_or_default();
    let mut alive = 0;
    let is_other =
        |mount: &MountLine| mount.source != *store && Path::new(&mount.source).is_absolute();
    for mount in mounts.into_iter().filter(|mount| mount.is_workfs() && !is_other(mount)) {
        let dir = printable(mount.dir.as_os_str().as_encoded_bytes());
        let is_dead = workfs_mount::state_of(&mount.dir) == DirState::Dead;
        let answered = match answers(mount.dir.clone()) {
            Ok(answered) => answered,
            Err(error) => {
                let found = format!("{dir} was not looked at: no thread can be started ({error})");
                report.warn("mount", found, MORE_THREADS);
                continue;
            }
        };
        // Who asks nicely waits for a daemon that does not answer.
        let lazy = if !is_dead && answered.is_none() { "--lazy " } else { "" };
        let found = match answered {
            _ if is_dead => format!("{dir} is dead: its daemon has ended without unmounting it"),
            Some(Ok(())) => {
                alive += 1;
                continue;
            }
            // Another user's, where he sees it: not to be looked into, and so not ours to mend.
            Some(Err(error)) if error.kind() == std::io::ErrorKind::PermissionDenied => continue,
            Some(Err(error)) => format!("{dir} does not answer: {error}"),
            None => format!("{dir} does not answer"),
        };
        let way = format!("workfs unmount {lazy}{}", word(&mount.dir));
        if mount.source == store.as_os_str() {
            report.bad("mount", found, way);
        } else {
            report.warn("mount", format!("{found} (of which store cannot be told)"), way);
        }
    }
    report.ok("mounts", format!("{alive} alive"));
}

/// Asks a mount, which may hang; fails where there can be no thread for it.
fn answers(dir: PathBuf) -> std::io::Result<Option<std::io::Result<()>>> {
    // Not a `stat`: the kernel may answer that for a process long gone.
    let ask = move || rustix::fs::statvfs(&dir).map(drop).map_err(Into::into);
    workfs_mount::within(MOUNT_ANSWERS_WITHIN, ask)
}
