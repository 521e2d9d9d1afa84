//! Giving a plain directory back.
//!
//! What must stay true: all of it is of one moment; nothing that is there is overwritten, and no
//! link in the target is followed.

mod attributes;
mod listing;
mod target;
mod versions;

use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt as _;

use rustix::fs::{AtFlags, Mode, OFlags, linkat, mkdirat, openat, symlinkat, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::find::computed::expect_not_shown;
use super::reply::pace::Pace;
use super::reply::text::size;
use super::{Exit, ExportArgs, Failure, Part, Sink, Unreadable};
use crate::config::{CONFIG_KEY, Config};
use crate::engine::node_at;
use crate::engine::read_plain;
use crate::limits::CHUNK_BYTES;
use crate::names::{FileName, Shown, ShownPath, TreePath, printable};
use crate::numbers::Ino;
use crate::store::{Class, Node, NodeType, Read, Readers, StoreError, or_too_long};
use crate::units::counted;
use attributes::Written;
use target::{Others, is_of_one_name, target};

/// Deepest directory that is exported: each level on the way holds a descriptor.
const DEPTH_MAX: usize = 200;

/// A file up to here is written before it is asked whether anybody still waits for it.
const LARGE_BYTES: u64 = 1 << 20;

/// What was left out that is listed; all is counted.
const LISTED_MAX: usize = 1000;

/// See [`super::Request::Export`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportReport {
    /// What was exported, from the root of the tree.
    pub from: ShownPath,
    /// The directory that was filled.
    pub to: String,
    /// Files that were written.
    pub files: u64,
    /// Directories that were made.
    pub directories: u64,
    /// Symbolic links that were made.
    pub links: u64,
    /// Old and current versions that were written beside them.
    #[serde(default)]
    pub versions: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// How many were left out.
    pub left_out_count: u64,
    /// The first of them, with the reason.
    pub left_out: Vec<Unreadable>,
    /// How many of them cannot be read, since the store is damaged there.
    #[serde(default)]
    pub damaged_count: u64,
    /// The client went away before the end.
    pub interrupted: bool,
}

impl ExportReport {
    /// One line, and one for each that was left out.
    #[must_use]
    pub fn human(&self) -> String {
        let mut out = format!(
            "exported {} to {}: {} in {} ({}), {}",
            self.from,
            printable(self.to.as_bytes()),
            counted(self.files, "file"),
            counted(self.directories, "directory"),
            size(self.bytes),
            counted(self.links, "link")
        );
        if self.versions > 0 {
            let versions = counted(self.versions, "version");
            out.push_str(&format!(", {versions} in .workfs/history"));
        }
        if self.left_out_count > 0 {
            out.push_str(&format!("\nleft out ({}):", self.left_out_count));
            for one in &self.left_out {
                out.push_str(&format!("\n  {}: {}", one.path, one.why));
            }
        }
        if self.damaged_count > 0 {
            out.push_str(&format!(
                "\nthe store is damaged: {} of these cannot be read, all else is exported",
                self.damaged_count
            ));
        }
        if self.interrupted {
            out.push_str("\ninterrupted: the directory is not complete");
        }
        out
    }

    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            _ if self.interrupted => Exit::Problems,
            _ if self.damaged_count > 0 => Exit::Store,
            _ if self.left_out_count > 0 => Exit::Problems,
            _ => Exit::Done,
        }
    }
}

/// Exports; what the store keeps of the past, by the configuration that is in force, or by the one that it
/// keeps where none is.
///
/// # Errors
/// A path that is not there, a target that is not empty or cannot be written.
pub fn export(
    (readers, config): (&dyn Readers, Option<&Config>),
    part: &Part,
    args: &ExportArgs,
    sink: Sink<'_>,
) -> Result<ExportReport, Failure> {
    let from = part.path(args.path.as_deref().unwrap_or(""))?;
    let failed = |broken: Broken| {
        let error = match broken {
            Broken::Target(error) => error,
            Broken::Store(error) => return error.into(),
        };
        let remedy = "what was written until then is there, incomplete";
        let failure = Failure::of_file(args.to.shown(), &error, remedy);
        if failure.exit != Exit::NoSpace {
            return failure;
        }
        Failure { reason: or_too_long(&failure.reason), ..failure }
    };
    super::ask(readers, |read| {
        let Some(start) = node_at(read, &from)? else {
            if let Some(config) = config {
                expect_not_shown(read, config, part, &from)?;
            }
            let (from, remedy) = (part.show(&from), "`workfs list` shows what there is");
            return Err(Failure::new(Exit::Absent, format!("there is no `{from}`"), remedy));
        };
        // Made only when there is something to fill it with.
        let target = target(args)?;
        let report = ExportReport {
            from: part.show(&from),
            to: args.to.to_string_lossy().into_owned(),
            ..ExportReport::default()
        };
        let root = rustix::process::geteuid().is_root();
        let (links, others) = (HashMap::new(), Others::than(&target));
        let target_fd = target.as_fd();
        let pace = Pace::new(sink);
        let mut export =
            Export { read, part, report, target: target_fd, root, others, links, pace };
        if start.node_type == NodeType::Directory {
            export.fill(target.as_fd(), &start, &TreePath::root()).map_err(failed)?;
        } else if let Some((_, name)) = from.split_last() {
            let path = TreePath::root().join(name.clone());
            let done = export.one(target.as_fd(), name, &start, &path);
            export.or_leave_out(&path, done).map_err(failed)?;
        }
        if args.versions {
            // It only says how a version's name ends: where it cannot be read the usual one does.
            let kept = || Config::kept(read.meta(CONFIG_KEY).ok().flatten().as_deref());
            let kept = config.is_none().then(|| kept().unwrap_or_default());
            if let Some(config) = config.or(kept.as_ref()) {
                export.versions(config, &from).map_err(failed)?;
            }
        }
        let Export { mut report, mut pace, .. } = export;
        report.interrupted = pace.is_over();
        if !report.interrupted {
            let flush = move || rustix::fs::syncfs(&target);
            let told = (report.files, "files, being flushed");
            match pace.while_waited_for(told, flush) {
                Some(flushed) => flushed.map_err(|errno| failed(errno.into()))?,
                None => report.interrupted = true,
            }
        }
        Ok(report)
    })
}

struct Export<'r, 's> {
    read: &'r dyn Read,
    part: &'r Part,
    report: ExportReport,
    target: BorrowedFd<'r>,
    root: bool,
    others: Others,
    /// Files with several names, and the first path that was written of each.
    links: HashMap<Ino, TreePath>,
    pace: Pace<'s>,
}

/// Why something is not exported.
enum Broken {
    /// The target cannot be written.
    Target(std::io::Error),
    /// The store cannot be read.
    Store(StoreError),
}

type Io<T> = Result<T, Broken>;

impl From<std::io::Error> for Broken {
    fn from(error: std::io::Error) -> Broken {
        Broken::Target(error)
    }
}

impl From<Errno> for Broken {
    fn from(errno: Errno) -> Broken {
        Broken::Target(errno.into())
    }
}

impl From<StoreError> for Broken {
    fn from(error: StoreError) -> Broken {
        Broken::Store(error)
    }
}

impl Export<'_, '_> {
    fn leave_out(&mut self, path: &TreePath, why: impl Into<String>) {
        self.report.left_out_count += 1;
        if self.report.left_out.len() < LISTED_MAX {
            self.report.left_out.push(Unreadable { path: path.into(), why: why.into() });
        }
    }

    /// Goes on where the store is damaged, since what is left of it is to be saved; and where something cannot be
    /// written which hinders nothing else.
    fn or_leave_out<T: Default>(&mut self, path: &TreePath, done: Io<T>) -> Io<T> {
        match done {
            Err(Broken::Store(StoreError::Impossible(what))) => {
                self.report.damaged_count += 1;
                self.leave_out(path, format!("damaged: {what}"));
            }
            Err(Broken::Target(error)) if is_of_one_name(&error) => {
                self.leave_out(path, format!("it cannot be written there: {error}"));
            }
            done => return done,
        }
        Ok(T::default())
    }

    /// Writes what lies in the directory `node` into the directory `dir`.
    fn fill(&mut self, dir: BorrowedFd<'_>, node: &Node, path: &TreePath) -> Io<()> {
        if path.names().len() >= DEPTH_MAX {
            self.leave_out(path, format!("what lies over {DEPTH_MAX} directories deep"));
            return Ok(());
        }
        self.listing(node, path, &mut |export, name, node| {
            if !export.goes_on() {
                return Ok(false);
            }
            let path = path.join(name.clone());
            let done = export.one(dir, &name, &node, &path);
            export.or_leave_out(&path, done)?;
            Ok(true)
        })
    }

    fn one(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &FileName,
        node: &Node,
        path: &TreePath,
    ) -> Io<()> {
        if let Some(first) = self.links.get(&node.ino) {
            let done =
                linkat(self.target, first.to_bytes(), dir, name.as_bytes(), AtFlags::empty());
            match done {
                // The first one's path is too long for a call, or leads through a directory that has its own mode
                // by now; or the file system has no further names. Then it is written once more.
                Err(Errno::NAMETOOLONG | Errno::ACCESS | Errno::MLINK | Errno::PERM) => {}
                done => return self.there(done, path).map(|_| ()),
            }
        }
        let file;
        let written = match node.node_type {
            NodeType::Directory => return self.directory(dir, name, node, path),
            NodeType::File => {
                file = self.file(dir, name, node, path)?;
                file.as_ref().map(|file| Written::Open(file.as_fd()))
            }
            NodeType::Symlink => {
                let target = self.read.symlink(node.ino)?;
                let missing =
                    || StoreError::Impossible(format!("node {} has no target", node.ino.0));
                let target = target.ok_or_else(missing)?;
                let made = self.there(symlinkat(target, dir, name.as_bytes()), path)?;
                self.report.links += u64::from(made);
                made.then_some(Written::Link(dir, name))
            }
            NodeType::Fifo | NodeType::Socket | NodeType::CharDevice | NodeType::BlockDevice => {
                self.leave_out(path, "a pipe, socket or device");
                return Ok(());
            }
        };
        let Some(written) = written else { return Ok(()) };
        if node.nlink > 1 {
            self.links.insert(node.ino, path.clone());
        }
        self.attributes(written, node, path)
    }

    /// Whether it was made; false, and listed, if something is there already.
    fn there(&mut self, done: Result<(), Errno>, path: &TreePath) -> Io<bool> {
        match done {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => {
                self.leave_out(path, "something is there already, and was not overwritten");
                Ok(false)
            }
            Err(errno) => Err(errno.into()),
        }
    }

    fn directory(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &FileName,
        node: &Node,
        path: &TreePath,
    ) -> Io<()> {
        // Its owner's alone until it is filled: it may be meant to be read-only, or secret.
        let made = match mkdirat(dir, name.as_bytes(), Mode::RWXU) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(errno.into()),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let below = match openat(dir, name.as_bytes(), flags, Mode::empty()) {
            Ok(below) => below,
            Err(Errno::NOTDIR | Errno::LOOP) => {
                self.leave_out(path, "something that is no directory is there already");
                return Ok(());
            }
            // Another's, say, or a dead mount.
            Err(errno) if !made => {
                self.leave_out(path, format!("what is there cannot be entered: {errno}"));
                return Ok(());
            }
            Err(errno) => return Err(errno.into()),
        };
        if self.others.have(&below)? {
            self.leave_out(path, "a mount of workfs is there: export to it by itself");
            return Ok(());
        }
        self.fill(below.as_fd(), node, path)?;
        if made {
            self.report.directories += 1;
            self.attributes(Written::Open(below.as_fd()), node, path)?;
        }
        Ok(())
    }

    /// The file that was written; `None`, and listed, if something is there already, and where nobody waits for it
    /// any more.
    fn file(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &FileName,
        node: &Node,
        path: &TreePath,
    ) -> Io<Option<File>> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = openat(dir, name.as_bytes(), flags, Mode::RUSR | Mode::WUSR);
        let mut file = match made {
            Ok(fd) => File::from(fd),
            Err(errno) => return self.there(Err(errno), path).map(|_| None),
        };
        let written = self.content(node, &mut file);
        if written.is_err() || self.pace.is_over() {
            // A file that has its name is whole.
            unlinkat(dir, name.as_bytes(), AtFlags::empty())?;
        }
        let bytes = written?;
        if self.pace.is_over() {
            return Ok(None);
        }
        self.report.files += 1;
        self.report.bytes += bytes;
        Ok(Some(file))
    }

    /// Tells how far it is, now and then; false when nobody waits for the end any more.
    fn goes_on(&mut self) -> bool {
        let done = self.report.files + self.report.links + self.report.versions;
        self.pace.goes_on(done, 0, "files")
    }

    /// The same in the middle of a file; of a small one it was asked already.
    fn goes_on_at(&mut self, at: u64, size: u64) -> bool {
        at < LARGE_BYTES || self.pace.goes_on(at >> 20, size >> 20, "MiB of a file")
    }

    /// Writes a file's bytes, as long as somebody waits for it, and says how many.
    fn content(&mut self, node: &Node, file: &mut File) -> Io<u64> {
        let whole = match node.class {
            Class::Plain => return self.plain(node, file),
            Class::Draft => self.read.draft(node.ino)?.map(|draft| draft.content),
            Class::Record => match self.read.record_at(node.ino)? {
                Some(record) => {
                    let version = self.read.version(record.version_g)?;
                    version.map(|version| version.content)
                }
                None => None,
            },
        };
        let missing = || StoreError::Impossible(format!("node {} has no content", node.ino.0));
        let whole = whole.ok_or_else(missing)?;
        file.write_all(&whole)?;
        Ok(whole.len() as u64)
    }

    /// Writes what a plain file has, and leaves its holes.
    fn plain(&mut self, node: &Node, file: &mut File) -> Io<u64> {
        let chunk = CHUNK_BYTES as u64;
        let (mut at, mut chunks) = (0, 0);
        while at < node.size && self.goes_on_at(at, node.size) {
            let next = self.read.next_chunk(node.ino, (at / chunk) as u32)?;
            let Some(start) = next.map(|index| u64::from(index) * chunk) else { break };
            let piece = read_plain(self.read, node, start, CHUNK_BYTES)?;
            file.write_all_at(&piece, start)?;
            at = start + chunk;
            chunks += 1;
        }
        if chunks != node.chunks && !self.pace.is_over() {
            let what = format!("{chunks} of the {} chunks of its content are there", node.chunks);
            return Err(StoreError::Impossible(what).into());
        }
        file.set_len(node.size)?;
        Ok(node.size)
    }
}
