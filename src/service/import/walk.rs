//! The directory that is imported, as it lies there: listed, and opened without following links.
//!
//! What must stay true: nothing outside the directory is opened, whatever links lie in it and
//! whatever is swapped meanwhile; other file systems mounted in it are not entered (one of them
//! may be a mount of this very store).

use std::cell::OnceCell;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fgetxattr, flistxattr, openat, readlinkat,
    statat,
};
use rustix::io::Errno;

use super::super::Failure;
use super::report::Unreadable;
use crate::names::{FileName, Shown, TreePath};
use crate::numbers::UnixNanos;
use crate::service::reply::pace::Pace;
use crate::store::sqlite::is_of_store;
use crate::store::{Identity, wants_descriptors};

/// Deepest directory that is entered: each level on the way holds a descriptor.
const DEPTH_MAX: usize = 200;

/// The kernel's limit of a value, and of the names of a file.
const XATTR_BYTES_MAX: usize = 64 << 10;

const OPEN_DIR: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Which file it is on this host: also one of another file system can be mounted on a name.
pub(super) type Inode = (u64, u64);

/// What is kept of a node's attributes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meta {
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub mtime: UnixNanos,
    pub size: u64,
    /// Which file it is, if it may have several names.
    pub shared: Option<Inode>,
}

impl Meta {
    fn of(stat: &Stat) -> Self {
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let nanos = i64::try_from(stat.st_mtime_nsec).unwrap_or(0);
        Meta {
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            mtime: UnixNanos(stat.st_mtime.saturating_mul(1_000_000_000).saturating_add(nanos)),
            size: stat.st_size.cast_unsigned(),
            shared: (is_file && stat.st_nlink > 1).then_some((stat.st_dev, stat.st_ino)),
        }
    }
}

/// A directory that was found.
pub(super) struct FoundDir {
    /// Its path from the imported directory.
    pub path: TreePath,
    pub meta: Meta,
    pub xattrs: Xattrs,
}

/// What lies at a name, and can be taken in.
pub(super) enum Lies {
    File(Meta),
    /// A symbolic link and its target.
    Link(Meta, Vec<u8>),
}

/// A directory that is to be imported.
pub(super) struct Source {
    root: OwnedFd,
    device: u64,
    from: PathBuf,
    /// There was no descriptor to read it with: then there is no use in going on with other files.
    lacking: OnceCell<Failure>,
}

impl Source {
    /// Opens the directory `from`.
    pub fn open(from: &Path) -> Result<Source, Failure> {
        let wrong = |errno: Errno| {
            Failure::of_file(from.shown(), &errno.into(), "name a directory that can be read")
        };
        // The directory itself may be named through a link; nothing in it may.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, from, flags, Mode::empty()).map_err(wrong)?;
        let device = rustix::fs::fstat(&root).map_err(wrong)?.st_dev;
        Ok(Source { root, device, from: from.to_owned(), lacking: OnceCell::new() })
    }

    /// What ended the import for want of descriptors.
    pub fn lacking(&self) -> Option<&Failure> {
        self.lacking.get()
    }

    /// Why something in it cannot be opened.
    fn why(&self, error: impl Into<std::io::Error>) -> String {
        let error = error.into();
        if wants_descriptors(&error) {
            self.lacking.get_or_init(|| Failure::of_file(self.from.shown(), &error, ""));
        }
        error.to_string()
    }

    /// Every directory in it, each before those below it, in the order of names, and how many other things there are;
    /// fewer, once nobody waits for it any more. Those are not kept, since there may be millions.
    pub fn walk(
        &self,
        pace: &mut Pace<'_>,
        unreadable: &mut dyn FnMut(Unreadable),
    ) -> (Vec<FoundDir>, u64) {
        let (mut found, mut others, mut met) = (Vec::new(), 0, 0);
        let mut stack = vec![TreePath::root()];
        while self.lacking.get().is_none()
            && let Some(path) = stack.pop()
        {
            let mut below = Vec::new();
            let listed = self.list(&path, &mut |name, file_type| {
                met += 1;
                match file_type {
                    FileType::Directory => below.push(name),
                    _ => others += 1,
                }
                pace.goes_on(met, 0, "names")
            });
            match listed {
                Ok(dir) => {
                    found.push(dir);
                    below.sort_unstable();
                    stack.extend(below.into_iter().rev().map(|name| path.join(name)));
                }
                Err(why) => unreadable(Unreadable { path: (&path).into(), why }),
            }
        }
        (found, others)
    }

    /// Opens a directory in it by its path, a component at a time.
    pub fn dir(&self, path: &TreePath) -> Result<OwnedFd, String> {
        if path.names().len() > DEPTH_MAX {
            return Err(format!("it is over {DEPTH_MAX} directories deep"));
        }
        let open = |at: &OwnedFd, name: &[u8]| {
            let opened = openat(at, name, OPEN_DIR, Mode::empty());
            opened.map_err(|errno| self.why(errno))
        };
        let mut at = open(&self.root, b".")?;
        for name in path.names() {
            at = open(&at, name.as_bytes())?;
        }
        Ok(at)
    }

    fn list(
        &self,
        path: &TreePath,
        visit: &mut dyn FnMut(FileName, FileType) -> bool,
    ) -> Result<FoundDir, String> {
        let fd = self.dir(path)?;
        let stat = rustix::fs::fstat(&fd).map_err(|errno| errno.to_string())?;
        if stat.st_dev != self.device {
            return Err("another file system is mounted here: import it by itself".to_owned());
        }
        self.entries(&fd, visit)?;
        Ok(FoundDir { path: path.clone(), meta: Meta::of(&stat), xattrs: xattrs(&fd)? })
    }

    /// Visits what a directory has, until that says that it is enough.
    fn entries(
        &self,
        dir: &OwnedFd,
        visit: &mut dyn FnMut(FileName, FileType) -> bool,
    ) -> Result<(), String> {
        for entry in Dir::read_from(dir).map_err(|errno| self.why(errno))? {
            let entry = entry.map_err(|errno| errno.to_string())?;
            // `.` and `..` are no file names; the kernel gives no others that are none.
            let Ok(name) = FileName::new(entry.file_name().to_bytes()) else { continue };
            let file_type = match entry.file_type() {
                // Not every file system says it here. What cannot be looked at is told of when it is taken.
                FileType::Unknown => statat(dir, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
                said => said,
            };
            if !visit(name, file_type) {
                break;
            }
        }
        Ok(())
    }

    /// The names of what lies in a directory but for its directories, in their order.
    pub fn names(&self, dir: &OwnedFd) -> Result<Vec<FileName>, String> {
        let mut names = Vec::new();
        self.entries(dir, &mut |name, file_type| {
            if file_type != FileType::Directory {
                names.push(name);
            }
            true
        })?;
        names.sort_unstable();
        Ok(names)
    }

    /// What lies at a name of a directory.
    pub fn look(&self, dir: &OwnedFd, name: &FileName) -> Result<Lies, String> {
        let text = |errno: Errno| errno.to_string();
        let stat = statat(dir, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW).map_err(text)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Lies::File(Meta::of(&stat))),
            FileType::Symlink => {
                let target = readlinkat(dir, name.as_bytes(), Vec::new()).map_err(text)?;
                Ok(Lies::Link(Meta::of(&stat), target.into_bytes()))
            }
            FileType::Directory => Err("it became a directory meanwhile".to_owned()),
            _ => Err("a pipe, socket or device: only files, directories and links".to_owned()),
        }
    }

    /// Opens a regular file of the directory `dir`, but none of those of the store itself: a process that closes any
    /// descriptor of a file loses all locks of fcntl(2) that it has on it, and SQLite has some on its files.
    pub fn file(&self, dir: &OwnedFd, name: &FileName, store: &Path) -> Result<File, String> {
        let text = |error: std::io::Error| self.why(error);
        // Such a descriptor has no part in that.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = openat(dir, name.as_bytes(), flags, Mode::empty());
        let found = File::from(found.map_err(|errno| text(errno.into()))?);
        expect_foreign(&found, store)?;
        let same = format!("/proc/self/fd/{}", found.as_raw_fd());
        match File::options().read(true).custom_flags(libc::O_NONBLOCK).open(same) {
            Err(error) if error.kind() == ErrorKind::NotFound => by_name(dir, name, store),
            opened => opened.map_err(text),
        }
    }
}

/// [`Source::file`] where `/proc` is not there, or another name space's.
fn by_name(dir: &OwnedFd, name: &FileName, store: &Path) -> Result<File, String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = openat(dir, name.as_bytes(), flags, Mode::empty());
    let opened = File::from(opened.map_err(|errno| errno.to_string())?);
    match expect_foreign(&opened, store) {
        Ok(()) => Ok(opened),
        Err(why) => {
            // What was swapped for one of the store's only now must not be closed.
            if opened.metadata().is_ok_and(|there| there.is_file()) {
                std::mem::forget(opened);
            }
            Err(why)
        }
    }
}

/// Fails for what is no regular file, or one of the store's own.
fn expect_foreign(file: &File, store: &Path) -> Result<(), String> {
    let there = file.metadata().map_err(|error| error.to_string())?;
    if !there.is_file() {
        return Err("it was swapped for something else meanwhile".to_owned());
    }
    if is_of_store(store, Identity::of(&there)) {
        return Err("it is a file of this store itself".to_owned());
    }
    Ok(())
}

/// Extended attributes: names and values.
pub(super) type Xattrs = Vec<(Vec<u8>, Vec<u8>)>;

/// The `user.` attributes of a file or directory; none where the file system has none.
pub(super) fn xattrs(fd: impl AsFd) -> Result<Xattrs, String> {
    let text = |errno: Errno| errno.to_string();
    let mut names = vec![0; XATTR_BYTES_MAX];
    let length = match flistxattr(&fd, &mut names[..]) {
        Ok(length) => length,
        Err(Errno::NOTSUP) => 0,
        Err(errno) => return Err(text(errno)),
    };
    names.truncate(length);
    let mut found = Vec::new();
    for name in names.split(|&byte| byte == 0).filter(|name| name.starts_with(b"user.")) {
        let mut value = vec![0; XATTR_BYTES_MAX];
        match fgetxattr(&fd, name, &mut value[..]) {
            Ok(length) => value.truncate(length),
            // Removed meanwhile.
            Err(Errno::NODATA) => continue,
            Err(errno) => return Err(text(errno)),
        }
        found.push((name.to_vec(), value));
    }
    Ok(found)
}
