//! What a store needs around it: the kernel, its device, the helper, its file's place and space.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use workfs_mount::Hindrance;

use super::doctor::{DoctorReport, word};
use crate::names::{Shown, printable};
use crate::service::reply::text::size;
use crate::store::is_made;
use crate::store::sqlite::refuse_other;

/// Free space below which a store is in danger, and below which it soon will be.
const FREE_BYTES_BAD: u64 = 16 << 20;
const FREE_BYTES_WARN: u64 = 512 << 20;

/// The oldest kernel on which workfs is tested: FUSE 7.31 and `openat2` are older.
const KERNEL_MIN: (u32, u32) = (5, 6);

/// The way out where there is no store yet.
const MAKES_IT: &str = "`workfs mount DIR` or `workfs init` makes it";

/// Looks at all of it, for the store at `store`; `is_open` where it could be opened.
pub(super) fn look(report: &mut DoctorReport, store: &Path, is_open: bool) {
    kernel(report);
    device(report);
    helper(report);
    files(report, store, is_open);
    space(report, store);
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
        Ok(_) if !is_made(store) => {
            report.warn("store file", format!("{shown} is empty"), MAKES_IT);
        }
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
            report.warn("store file", format!("{shown} is not there"), MAKES_IT);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::{Exit, Health, doctor};

    #[test]
    fn a_way_out_can_be_typed_whatever_the_store_is_called() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("it's one");
        let store = dir.join("my store.db");
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(&store, "a store").unwrap();
        let open = |path: &Path| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        };
        open(&store);
        open(&dir);
        let look = || {
            let mut report = DoctorReport { findings: Vec::new() };
            files(&mut report, &store, true);
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
        std::fs::write(&store, "a store").unwrap();
        let health = |mode: u32, dir_mode: u32| {
            let set = |path: &Path, mode| {
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
            };
            set(&store, mode);
            set(dir.path(), dir_mode);
            let mut report = DoctorReport { findings: Vec::new() };
            files(&mut report, &store, true);
            report.exit()
        };
        assert_eq!(health(0o600, 0o700), Exit::Done);
        assert_eq!(health(0o644, 0o700), Exit::Problems);
        assert_eq!(health(0o600, 0o777), Exit::Problems);
    }
    #[test]
    fn a_store_that_is_to_be_made_is_not_bad() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("s.db");
        for is_there in [false, true] {
            if is_there {
                std::fs::write(&store, "").unwrap();
            }
            let report = doctor(&store, Err(("none", "")), &mut |_| true);
            let of_store: Vec<_> =
                report.findings.iter().filter(|one| one.what.starts_with("store f")).collect();
            assert!(matches!(of_store[..], [one] if one.health == Health::Warn), "{of_store:?}");
            assert!(report.findings.iter().all(|one| one.what != "store"), "{report:?}");
        }
    }
}
