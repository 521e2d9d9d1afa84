//! Checks what workfs needs around it: a line each, with the way out.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use workfs_mount::{DirState, Hindrance, MountLine};

use super::govern::{Unfit, unfit};
use super::misfits::{Misfits, misfits};
use crate::config::{CONFIG_KEY, Config};
use crate::names::{Shown, first_few, printable, shell_word};
use crate::service::fsck::outline;
use crate::service::reply::text::size;
use crate::service::status::chores_that_wait;
use crate::service::{Exit, Reply, Service, Sink};
use crate::store::sqlite::refuse_other;

/// Free space below which a store is in danger, and below which it soon will be.
const FREE_BYTES_BAD: u64 = 16 << 20;
const FREE_BYTES_WARN: u64 = 512 << 20;

/// The oldest kernel on which workfs is tested: FUSE 7.31 and `openat2` are older.
const KERNEL_MIN: (u32, u32) = (5, 6);

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

    fn ok(&mut self, what: &str, found: impl Into<String>) {
        self.add(what, Health::Ok, found, None);
    }

    fn warn(&mut self, what: &str, found: impl Into<String>, remedy: impl Into<String>) {
        self.add(what, Health::Warn, found, Some(remedy.into()));
    }

    fn bad(&mut self, what: &str, found: impl Into<String>, remedy: impl Into<String>) {
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
    kernel(&mut report);
    device(&mut report);
    helper(&mut report);
    files(&mut report, store, service.is_ok());
    space(&mut report, store);
    match service {
        Ok(service) => {
            inside(&mut report, service, sink);
            chores(&mut report, service);
        }
        // What is said of its file says that already.
        Err(_) if !store.exists() => {}
        // This is what that names.
        Err((why, remedy)) if remedy.is_empty() || remedy.contains("workfs doctor") => {
            report.bad("store", why, RESTORE);
        }
        Err((why, remedy)) => report.bad("store", why, remedy),
    }
    mounts(&mut report, store);
    report
}

fn kernel(report: &mut DoctorReport) {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim().to_owned();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let found = match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Some((major, minor)),
        _ => None,
    };
    match found {
        Some(found) if found >= KERNEL_MIN => report.ok("kernel", release),
        _ if release.is_empty() => {
            let remedy = "mount it: without /proc nothing is known of mounts and of processes";
            report.bad("kernel", "/proc is not there", remedy);
        }
        _ => {
            let (major, minor) = KERNEL_MIN;
            report.warn("kernel", release, format!("use Linux {major}.{minor} or newer"));
        }
    }
}

fn device(report: &mut DoctorReport) {
    match std::fs::File::options().read(true).write(true).open("/dev/fuse") {
        Ok(_) => report.ok("/dev/fuse", "can be opened"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let remedy = "load it with `modprobe fuse`; in a container, start it with \
                          --device /dev/fuse --cap-add SYS_ADMIN";
            report.bad("/dev/fuse", "is not there", remedy);
        }
        Err(error) => {
            let remedy = "let this user open it: it is 0666 where udev made it";
            report.bad("/dev/fuse", error.to_string(), remedy);
        }
    }
}

fn helper(report: &mut DoctorReport) {
    let found = workfs_mount::find_fusermount();
    let root = rustix::process::geteuid().is_root();
    let install = "apt-get install fuse3";
    match found {
        Some(path) => {
            let shown = path.shown();
            match workfs_mount::hindrance(&path).filter(|_| !root) {
                None => report.ok("fusermount3", shown),
                Some(Hindrance::NotSetUserId) => {
                    let found = format!("{shown} is not set-user-id and root's");
                    let word = word(&path);
                    report.bad(
                        "fusermount3",
                        found,
                        format!("chown root {word}; chmod u+s {word}"),
                    );
                }
                Some(Hindrance::NoSuid) => {
                    let found =
                        format!("{shown} lies on a file system that is mounted with nosuid");
                    report.bad("fusermount3", found, "mount that without nosuid, or mount as root");
                }
                // A daemon that was started elsewhere mounts all the same.
                Some(Hindrance::NoNewPrivileges) => {
                    let found = format!("{shown} gets no rights of root from here (no_new_privs)");
                    let remedy = "start the daemon outside of this sandbox (`workfs mount DIR` there), or \
                                  allow new rights in it (`NoNewPrivileges=no` of a systemd unit)";
                    report.warn("fusermount3", found, remedy);
                }
            }
        }
        None if root => report.warn("fusermount3", "is not there; root mounts without", install),
        None => report.bad("fusermount3", "is not there", install),
    }
}

fn files(report: &mut DoctorReport, store: &Path, is_open: bool) {
    let shown = printable(store.as_os_str().as_encoded_bytes());
    let mode = |path: &Path| std::fs::metadata(path).map(|meta| meta.permissions().mode() & 0o7777);
    match mode(store) {
        // What is told of the store says so; nobody is to change another program's file.
        Ok(_) if !is_open && refuse_other(store).is_err() => {}
        Ok(mode) if mode & 0o077 == 0 => {
            report.ok("store file", format!("{} ({mode:04o})", shown));
        }
        Ok(mode) => {
            let found = format!("{} is {mode:04o}: others can read it", shown);
            report.bad("store file", found, format!("chmod 600 {}", word(store)));
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let found = format!("{} is not there", shown);
            report.warn("store file", found, "`workfs mount DIR` or `workfs init` makes it");
        }
        Err(error) => {
            let found = format!("{}: {error}", shown);
            report.bad("store file", found, "use a store of your own: `--store`");
        }
    }
    let dir = parent(store);
    let shown_dir = printable(dir.as_os_str().as_encoded_bytes());
    match mode(&dir) {
        Ok(mode) if mode & 0o022 != 0 && mode & 0o1000 == 0 => {
            let found = format!("{} is {mode:04o}: others can replace the store", shown_dir);
            report.bad("store directory", found, format!("chmod 700 {}", word(&dir)));
        }
        Ok(mode) => report.ok("store directory", format!("{} ({mode:04o})", shown_dir)),
        Err(error) => {
            let found = format!("{}: {error}", shown_dir);
            report.warn("store directory", found, "`workfs mount` makes it");
        }
    }
}

/// A path in a command that somebody is told to give.
fn word(path: &Path) -> String {
    shell_word(path.as_os_str().as_encoded_bytes())
}

fn parent(store: &Path) -> PathBuf {
    match store.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn space(report: &mut DoctorReport, store: &Path) {
    let Ok(stat) = rustix::fs::statvfs(parent(store)) else { return };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let found = format!("{} where the store lies", size(free));
    match free {
        0..FREE_BYTES_BAD => report.bad("free space", found, "free some now"),
        FREE_BYTES_BAD..FREE_BYTES_WARN => report.warn("free space", found, "free some soon"),
        _ => report.ok("free space", found),
    }
}

fn inside(report: &mut DoctorReport, service: &Service, sink: Sink<'_>) {
    rows(report, service, sink);
    if let Some(why) = service.engine.write_protection() {
        let found = format!("cannot be written: {why}");
        let remedy = "make it writable, unmount it (`workfs unmount --all`) and mount it again; till then it \
                      can be read";
        report.warn("store", found, remedy);
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
        let answered = answers(mount.dir.clone());
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

/// Asks a mount, which may hang.
fn answers(dir: PathBuf) -> Option<std::io::Result<()>> {
    // Not a `stat`: the kernel may answer that for a process long gone.
    let ask = move || rustix::fs::statvfs(&dir).map(drop).map_err(Into::into);
    workfs_mount::within(MOUNT_ANSWERS_WITHIN, ask).unwrap_or_else(|error| Some(Err(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_out_can_be_typed_whatever_the_store_is_called() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("it's one");
        let store = dir.join("my store.db");
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(&store, "").unwrap();
        let open = |path: &Path| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        };
        open(&store);
        open(&dir);
        let look = || {
            let mut report = DoctorReport { findings: Vec::new() };
            files(&mut report, &store, false);
            report
        };
        let ways: Vec<_> = look().findings.into_iter().filter_map(|one| one.remedy).collect();
        assert_eq!(ways.len(), 2, "{ways:?}");
        for way in ways {
            let typed = std::process::Command::new("sh").args(["-c", &way]).status().unwrap();
            assert!(typed.success(), "{way}");
        }
        assert_eq!(look().exit(), Exit::Done);
    }

    #[test]
    fn what_others_can_read_or_replace_is_bad() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("s.db");
        std::fs::write(&store, "").unwrap();
        let health = |mode: u32, dir_mode: u32| {
            let set = |path: &Path, mode| {
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
            };
            set(&store, mode);
            set(dir.path(), dir_mode);
            let mut report = DoctorReport { findings: Vec::new() };
            files(&mut report, &store, false);
            report.exit()
        };
        assert_eq!(health(0o600, 0o700), Exit::Done);
        assert_eq!(health(0o644, 0o700), Exit::Problems);
        assert_eq!(health(0o600, 0o777), Exit::Problems);
    }
}
