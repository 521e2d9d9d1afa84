//! What is mounted where, as the kernel tells it in `/proc/self/mountinfo`.
//!
//! What must stay true: reading it touches no mounted file system, so it cannot hang on a dead
//! one. Deliberately not here: conclusions.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The type that the kernel shows for our mounts.
pub const FS_TYPE: &str = "fuse.workfs";

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountedHere {
    /// Where.
    pub dir: PathBuf,
    /// The kernel's number of its device.
    pub device: u64,
    /// For example `fuse.workfs`.
    pub fs_type: String,
    /// What was mounted; of ours, the store's path.
    pub source: OsString,
}

/// All mounts; of several on one directory the last is the top.
#[must_use]
pub fn all() -> Vec<MountedHere> {
    let text = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    text.split(|byte| *byte == b'\n').filter_map(parse).collect()
}

/// The topmost mount on exactly this absolute path.
#[must_use]
pub fn at(dir: &Path) -> Option<MountedHere> {
    all().into_iter().rfind(|mount| mount.dir == dir)
}

/// All mounts of workfs, the topmost first.
#[must_use]
pub fn of_workfs() -> Vec<MountedHere> {
    all().into_iter().rev().filter(|mount| mount.fs_type == FS_TYPE).collect()
}

/// The mount that this absolute path lies in.
#[must_use]
pub fn around(path: &Path) -> Option<MountedHere> {
    let lies_in = all().into_iter().filter(|mount| path.starts_with(&mount.dir));
    lies_in.max_by_key(|mount| mount.dir.components().count())
}

/// Reads `36 35 98:0 /root /dir rw,noatime master:1 - fuse.workfs source rw`.
fn parse(line: &[u8]) -> Option<MountedHere> {
    let mut fields = line.split(|byte| *byte == b' ');
    let device = String::from_utf8_lossy(fields.nth(2)?).into_owned();
    let (major, minor) = device.split_once(':')?;
    let device = major.parse::<u64>().ok()? << 20 | minor.parse::<u64>().ok()?;
    let dir = PathBuf::from(OsString::from_vec(unescape(fields.nth(1)?)));
    fields.find(|field| *field == b"-")?;
    let fs_type = String::from_utf8_lossy(&unescape(fields.next()?)).into_owned();
    let source = OsString::from_vec(unescape(fields.next()?));
    Some(MountedHere { dir, device, fs_type, source })
}

/// Undoes the kernel's escapes: a backslash and three octal digits.
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
    fn a_line_with_escapes_is_read() {
        let line = br"36 35 0:45 / /a\040b rw,nosuid shared:7 - fuse.workfs /x\054y.db rw";
        let mount = parse(line).unwrap();
        assert_eq!(mount.dir, Path::new("/a b"));
        assert_eq!(mount.fs_type, FS_TYPE);
        assert_eq!(mount.source, "/x,y.db");
        assert_eq!(parse(b"1 2 3"), None);
    }

    #[test]
    fn every_path_lies_in_a_mount() {
        assert!(around(Path::new("/no/such/place")).is_some());
        assert!(around(Path::new("/proc/self")).is_some_and(|mount| mount.fs_type == "proc"));
    }
}
