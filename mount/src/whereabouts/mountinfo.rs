//! What is mounted where, read from `/proc/self/mountinfo`, or from that of another process.
//!
//! What must stay true: reading it touches no mounted file system, so that it cannot hang on a
//! dead one. Deliberately not here: conclusions (see `heal` and `session`).

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::mounting::options::SUBTYPE;

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountLine {
    /// Its number in its name space.
    pub id: u64,
    /// The number of the mount that it lies on.
    pub parent: u64,
    /// The device number, as the kernel keeps it; a FUSE mount's own as long as it lives.
    pub device: u64,
    /// What of its file system is shown: `/`, or the directory of which it is a bind mount.
    pub bound: PathBuf,
    /// Where it is mounted; `.` of one that is not in the table ([`MountLine::is_seen`]).
    pub dir: PathBuf,
    /// For example `fuse.workfs`.
    pub fs_type: String,
    /// Nothing can be changed through it: the mount is read-only, or what is mounted is.
    pub read_only: bool,
    /// The user whose mount it is, where it is a FUSE one.
    pub user: Option<u32>,
    /// The group that it was made by, where it is a FUSE one.
    pub group: Option<u32>,
    /// What was mounted; of ours, what [`crate::serve`] was given as the source.
    pub source: OsString,
}

impl MountLine {
    /// Whether a process serves this file system, so that asking it may block.
    #[must_use]
    pub fn is_fuse(&self) -> bool {
        self.fs_type == "fuse" || self.fs_type.starts_with("fuse.")
    }

    /// Whether it is one of ours.
    #[must_use]
    pub fn is_workfs(&self) -> bool {
        self.fs_type.strip_prefix("fuse.") == Some(SUBTYPE)
    }

    /// Whether the table has it: a mount that was taken from sight while somebody is in it, it has not. Of
    /// that one no more is known than its numbers, and whether it can be written.
    #[must_use]
    pub fn is_seen(&self) -> bool {
        self.dir != Path::new(UNSEEN)
    }

    /// One that is not in the table, and that a process serves. That it is one of ours is not told.
    pub(crate) fn unseen(id: u64, device: u64, read_only: bool) -> MountLine {
        MountLine {
            id,
            parent: id,
            device,
            bound: PathBuf::from("/"),
            dir: PathBuf::from(UNSEEN),
            fs_type: format!("fuse.{SUBTYPE}"),
            read_only,
            user: None,
            group: None,
            source: OsString::new(),
        }
    }
}

/// Where a mount is that no table has any more: where one is.
const UNSEEN: &str = ".";

/// Whether its directory leads to it, and not past it, to what was mounted over one above.
pub(crate) fn is_reached(all: &[MountLine], line: &MountLine) -> bool {
    way_to(all, &line.dir).iter().any(|there| there.id == line.id)
}

/// Whether a mount may lie on a directory of this device.
pub(crate) fn may_lie_on(all: &[MountLine], line: &MountLine, device: u64) -> bool {
    // Of these a part may have a number of its own, which the table does not tell.
    let has_parts = |on: &MountLine| matches!(&*on.fs_type, "btrfs" | "bcachefs");
    let on = all.iter().find(|on| on.id == line.parent);
    on.is_none_or(|on| on.device == device || has_parts(on))
}

/// Whether the way to a mount leads through what a process serves, so that whoever goes it may wait.
pub(crate) fn lies_in_fuse(all: &[MountLine], line: &MountLine) -> bool {
    let mut way = way_to(all, &line.dir);
    way.retain(|there| there.dir != line.dir);
    way.into_iter().any(MountLine::is_fuse)
}

/// All mounts of this process's name space; of several on one directory the last is the top.
///
/// # Errors
/// If `/proc` is not there.
pub fn mounts() -> io::Result<Vec<MountLine>> {
    mounts_of(Path::new("/proc/self")).map_err(|error| match error.kind() {
        // By its number the error would be one of whatever is looked for in the table.
        io::ErrorKind::NotFound => io::Error::other(error),
        _ => error,
    })
}

/// The same of the name space of the process that has this directory in `/proc`.
///
/// # Errors
/// If it has ended, or `/proc` is not there.
pub fn mounts_of(process: &Path) -> io::Result<Vec<MountLine>> {
    let text = std::fs::read(process.join("mountinfo"))?;
    Ok(text.split(|byte| *byte == b'\n').filter_map(parse).collect())
}

/// The topmost mount on exactly this absolute path, which has no symbolic links: one that this path does not
/// lead to, since something was mounted over a directory above it, is none.
///
/// # Errors
/// If `/proc` is not there.
pub fn mount_at(dir: &Path) -> io::Result<Option<MountLine>> {
    Ok(stack_at(dir)?.pop())
}

/// The mounts that lie on each other at exactly this path, the topmost last.
///
/// # Errors
/// If `/proc` is not there.
pub fn stack_at(dir: &Path) -> io::Result<Vec<MountLine>> {
    let all = mounts()?;
    let way = way_to(&all, dir).into_iter();
    Ok(way.filter(|line| line.dir == dir).cloned().collect())
}

/// The mount that this absolute path lies in.
///
/// # Errors
/// If `/proc` is not there.
pub fn mount_around(path: &Path) -> io::Result<Option<MountLine>> {
    // Not by the way there: who stands in a mount below another one has this path, too.
    let lies_in = mounts()?.into_iter().filter(|mount| path.starts_with(&mount.dir));
    Ok(lies_in.max_by_key(|mount| mount.dir.components().count()))
}

/// What lies in a mount, and in what lies there.
#[must_use]
pub fn mounts_inside(all: &[MountLine], outer: &MountLine) -> Vec<MountLine> {
    let (mut inside, mut looked) = (Vec::new(), 0);
    let mut on = outer.id;
    loop {
        let lies = |line: &&MountLine| line.parent == on && line.id != on;
        inside.extend(all.iter().filter(lies).cloned());
        let Some(next) = inside.get(looked) else { return inside };
        on = next.id;
        looked += 1;
    }
}

/// A device number, as the kernel keeps it, from the two that it tells.
#[must_use]
pub fn device_number(major: u32, minor: u32) -> u64 {
    u64::from(major) << 20 | u64::from(minor)
}

/// The mounts that the kernel crosses on its way to a path, each of which lies on the one before.
fn way_to<'m>(all: &'m [MountLine], path: &Path) -> Vec<&'m MountLine> {
    let mut way: Vec<&MountLine> = Vec::new();
    let mut above: Vec<&Path> = path.ancestors().collect();
    above.reverse();
    for dir in above {
        // On one directory of one mount lies one mount at most, so that this ends.
        while let Some(next) = all.iter().find(|line| {
            line.dir == dir
                && match way.last() {
                    Some(last) => line.parent == last.id && line.id != last.id,
                    // What the root itself lies on is not told.
                    None => all.iter().all(|other| other.id != line.parent || other.id == line.id),
                }
        }) {
            way.push(next);
        }
    }
    way
}

/// Reads `36 35 98:0 /root /dir rw,noatime master:1 - fuse.workfs source rw`.
fn parse(line: &[u8]) -> Option<MountLine> {
    let mut fields = line.split(|byte| *byte == b' ');
    let mut number = || std::str::from_utf8(fields.next()?).ok();
    let (id, parent) = (number()?.parse().ok()?, number()?.parse().ok()?);
    let (major, minor) = number()?.split_once(':')?;
    let device = device_number(major.parse().ok()?, minor.parse().ok()?);
    let bound = PathBuf::from(OsString::from_vec(unescape(fields.next()?)));
    let dir = PathBuf::from(OsString::from_vec(unescape(fields.next()?)));
    let says_so = |options: &[u8]| options.split(|byte| *byte == b',').any(|one| one == b"ro");
    let mount_options = fields.next()?;
    // Optional fields follow the options, up to a dash.
    fields.find(|field| *field == b"-")?;
    let fs_type = String::from_utf8_lossy(&unescape(fields.next()?)).into_owned();
    let source = OsString::from_vec(unescape(fields.next()?));
    let options = fields.next().unwrap_or_default();
    let read_only = says_so(mount_options) || says_so(options);
    let number = |key: &str| {
        let mut options = options.split(|byte| *byte == b',');
        let value = options.find_map(|one| one.strip_prefix(key.as_bytes()))?;
        std::str::from_utf8(value).ok()?.parse().ok()
    };
    let (user, group) = (number("user_id="), number("group_id="));
    Some(MountLine { id, parent, device, bound, dir, fs_type, read_only, user, group, source })
}

/// Undoes the kernel's escapes: a backslash and three octal digits for space, tab, newline,
/// backslash and `#`.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        match (byte, tail) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..]) => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = tail;
            }
            _ => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_escapes_and_optional_fields_is_read() {
        let line =
            br"36 35 0:45 / /a\040b\134c rw,nosuid shared:7 master:1 - fuse.workfs x\011y rw";
        let mount = parse(line).unwrap();
        assert_eq!((mount.id, mount.parent, mount.device), (36, 35, 45));
        assert_eq!((&*mount.bound, &*mount.dir), (Path::new("/"), Path::new("/a b\\c")));
        assert_eq!(mount.fs_type, "fuse.workfs");
        assert_eq!(mount.source, "x\ty");
        assert!(mount.is_fuse() && mount.is_workfs() && !mount.read_only);
        for line in ["1 2 0:3 / /d ro,nosuid - fuse s rw", "1 2 0:3 / /d rw - fuse s ro,user_id=0"]
        {
            assert!(parse(line.as_bytes()).unwrap().read_only, "{line}");
        }
        for (options, whose) in
            [("rw,user_id=7,group_id=0", (Some(7), Some(0))), ("rw", (None, None))]
        {
            let line = format!("1 2 0:3 / /d rw - fuse s {options}");
            let found = parse(line.as_bytes()).unwrap();
            assert_eq!((found.user, found.group), whose, "{line}");
        }
    }

    #[test]
    fn lines_that_are_none_are_passed_over() {
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"1 2 3 4 5 6 7"), None);
    }

    #[test]
    fn what_lies_below_another_mount_is_not_there() {
        let table = "1 1 0:1 / / rw - rootfs r rw
            2 1 0:2 / /a/m rw - fuse.workfs s rw
            3 1 0:3 / /a rw - tmpfs t rw
            4 3 0:4 / /a/n rw - fuse.workfs s rw
            5 4 0:5 / /a/n rw - fuse.workfs s rw
            6 5 0:6 / /a/n/x rw - tmpfs t rw";
        let all: Vec<MountLine> =
            table.lines().filter_map(|line| parse(line.trim().as_bytes())).collect();
        let way = |path: &str| -> Vec<u64> {
            way_to(&all, Path::new(path)).into_iter().map(|line| line.id).collect()
        };
        assert_eq!(way("/a/m"), [1, 3]);
        assert_eq!(way("/a/n"), [1, 3, 4, 5]);
        assert_eq!(way("/a/n/x/y"), [1, 3, 4, 5, 6]);
        assert_eq!(way("/b"), [1]);
        let inside = mounts_inside(&all, &all[3]).into_iter().map(|line| line.id);
        assert_eq!(inside.collect::<Vec<_>>(), [5, 6]);
        // In a root directory that is no mount, what the mounts lie on is not told.
        assert_eq!(way_to(&all[2..], Path::new("/a/n/x")).len(), 4);
        assert!(way_to(&all[2..], Path::new("/b")).is_empty());
    }

    #[test]
    fn the_root_is_mounted() {
        assert!(mount_at(Path::new("/")).unwrap().is_some());
        assert!(mount_at(Path::new("/no/such/place")).unwrap().is_none());
        assert!(mount_around(Path::new("/no/such/place")).unwrap().is_some());
        let proc = mount_around(Path::new("/proc/self")).unwrap().unwrap();
        assert_eq!(proc.fs_type, "proc");
    }
}
