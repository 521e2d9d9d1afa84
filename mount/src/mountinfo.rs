//! What is mounted where, read from `/proc/self/mountinfo`, or from that of another process.
//!
//! What must stay true: reading it touches no mounted file system, so that it cannot hang on a
//! dead one. Deliberately not here: conclusions (see `heal` and `session`).

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::options::SUBTYPE;

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountLine {
    /// The device number, as the kernel keeps it; a FUSE mount's own as long as it lives.
    pub device: u64,
    /// What of its file system is shown: `/`, or the directory of which it is a bind mount.
    pub bound: PathBuf,
    /// Where it is mounted.
    pub dir: PathBuf,
    /// For example `fuse.workfs`.
    pub fs_type: String,
    /// Nothing can be changed through it: the mount is read-only, or what is mounted is.
    pub read_only: bool,
    /// The user whose mount it is, where it is a FUSE one.
    pub user: Option<u32>,
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
}

/// All mounts of this process's name space; of several on one directory the last is the top.
///
/// # Errors
/// If `/proc` is not there.
pub fn mounts() -> io::Result<Vec<MountLine>> {
    mounts_of(Path::new("/proc/self"))
}

/// The same of the name space of the process that has this directory in `/proc`.
///
/// # Errors
/// If it has ended, or `/proc` is not there.
pub fn mounts_of(process: &Path) -> io::Result<Vec<MountLine>> {
    let text = std::fs::read(process.join("mountinfo"))?;
    Ok(text.split(|byte| *byte == b'\n').filter_map(parse).collect())
}

/// The topmost mount on exactly this absolute path.
///
/// # Errors
/// If `/proc` is not there.
pub fn mount_at(dir: &Path) -> io::Result<Option<MountLine>> {
    Ok(mounts()?.into_iter().rfind(|line| line.dir == dir))
}

/// The mount that this absolute path lies in.
///
/// # Errors
/// If `/proc` is not there.
pub fn mount_around(path: &Path) -> io::Result<Option<MountLine>> {
    let lies_in = mounts()?.into_iter().filter(|mount| path.starts_with(&mount.dir));
    Ok(lies_in.max_by_key(|mount| mount.dir.components().count()))
}

/// Reads `36 35 98:0 /root /dir rw,noatime master:1 - fuse.workfs source rw`.
fn parse(line: &[u8]) -> Option<MountLine> {
    let mut fields = line.split(|byte| *byte == b' ');
    let (major, minor) = std::str::from_utf8(fields.nth(2)?).ok()?.split_once(':')?;
    let device = major.parse::<u64>().ok()? << 20 | minor.parse::<u64>().ok()?;
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
    let user = options.split(|byte| *byte == b',').find_map(|one| one.strip_prefix(b"user_id="));
    let user = user.and_then(|user| std::str::from_utf8(user).ok()?.parse().ok());
    Some(MountLine { device, bound, dir, fs_type, read_only, user, source })
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
        assert_eq!(mount.device, 45);
        assert_eq!((&*mount.bound, &*mount.dir), (Path::new("/"), Path::new("/a b\\c")));
        assert_eq!(mount.fs_type, "fuse.workfs");
        assert_eq!(mount.source, "x\ty");
        assert!(mount.is_fuse() && mount.is_workfs() && !mount.read_only);
        for line in ["1 2 0:3 / /d ro,nosuid - fuse s rw", "1 2 0:3 / /d rw - fuse s ro,user_id=0"]
        {
            assert!(parse(line.as_bytes()).unwrap().read_only, "{line}");
        }
        for (options, user) in [("rw,user_id=7,group_id=0", Some(7)), ("rw", None)] {
            let line = format!("1 2 0:3 / /d rw - fuse s {options}");
            assert_eq!(parse(line.as_bytes()).unwrap().user, user, "{line}");
        }
    }

    #[test]
    fn lines_that_are_none_are_passed_over() {
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"1 2 3 4 5 6 7"), None);
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
