//! The past that the store keeps, as files: `.workfs/history/` below the target, with the names
//! that the mount shows there.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use crate::config::Config;
use crate::engine::{PastNames, record_version_name};
use crate::names::{FileName, TreePath};
use crate::numbers::{G, UnixNanos};
use crate::store::{History, WorkspaceRow, earlier};

use super::{Broken, Export, Io};

/// Where versions go, below the target.
const HISTORY: [&[u8]; 2] = [b".workfs", b"history"];

impl Export<'_, '_> {
    /// Writes all versions of what lies, or lay, at `from` or below.
    pub(super) fn versions(&mut self, config: &Config, from: &TreePath) -> Io<()> {
        let (read, mut failed) = (self.read, None);
        let listed = read.histories(from, None, &mut |past| {
            if !self.goes_on() {
                return false;
            }
            let done = self.versions_of(&past);
            failed = self.or_leave_out(&past.path, done).err();
            failed.is_none()
        });
        failed.map_or(Ok(()), Err)?;
        self.or_leave_out(from, listed.map_err(Broken::Store))?;
        for workspace in self.read.workspaces()? {
            if workspace.path.names().starts_with(from.names()) {
                let done = self.records_versions(config, &workspace);
                self.or_leave_out(&workspace.path, done)?;
            }
        }
        Ok(())
    }

    /// Those of a plain file.
    fn versions_of(&mut self, past: &History) -> Io<()> {
        let mut versions = Vec::new();
        self.read.file_versions(past.key, &mut |version| {
            versions.push(version);
            true
        })?;
        let below = PastNames::below(self.read, &past.path)?;
        for version in versions {
            let name = below.version_name(self.read, version.g.to_string())?;
            let content = self.read.file_version(version.g)?.unwrap_or_default();
            self.version(&past.path, name, version.at, &content)?;
        }
        Ok(())
    }

    fn records_versions(&mut self, config: &Config, workspace: &WorkspaceRow) -> Io<()> {
        let (read, mut failed) = (self.read, None);
        let listed = read.records(workspace.key, &mut |record| {
            let Ok(id) = FileName::new(record.id.as_str()) else { return true };
            let path = workspace.path.join(id);
            let usual = |g| record_version_name(config, &workspace.path, g);
            let done = self.versions_of_record(&path, record.version_g, usual);
            failed = self.or_leave_out(&path, done).err();
            failed.is_none() && self.goes_on()
        });
        failed.map_or(Ok(()), Err)?;
        self.or_leave_out(&workspace.path, listed.map_err(Broken::Store))
    }

    fn versions_of_record(
        &mut self,
        path: &TreePath,
        last: G,
        usual: impl Fn(G) -> String,
    ) -> Io<()> {
        let below = PastNames::below(self.read, path)?;
        let mut g = last;
        while let Some(row) = self.read.version(g)? {
            let name = below.version_name(self.read, usual(g))?;
            self.version(path, name, row.at, &row.content)?;
            g = earlier(g, row.before_g)?;
        }
        Ok(())
    }

    /// One version, with the time of the save that made it.
    fn version(
        &mut self,
        of: &TreePath,
        name: Option<FileName>,
        at: UnixNanos,
        content: &[u8],
    ) -> Io<()> {
        if !self.goes_on() {
            return Ok(());
        }
        let Some(name) = name else {
            self.leave_out(of, "a version for which no name is free");
            return Ok(());
        };
        let dir = match self.past(of) {
            Ok(dir) => dir,
            Err(Errno::NOTDIR | Errno::LOOP) => {
                self.leave_out(of, "its versions: something that is no directory is there already");
                return Ok(());
            }
            Err(errno) => return Err(errno.into()),
        };
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = match openat(&dir, name.as_bytes(), flags, Mode::RUSR | Mode::WUSR) {
            Ok(made) => made,
            Err(errno) => return self.there(Err(errno), of).map(|_| ()),
        };
        let mut file = File::from(made);
        if let Err(error) = file.write_all(content) {
            // A file that has its name is whole.
            unlinkat(&dir, name.as_bytes(), AtFlags::empty())?;
            return Err(error.into());
        }
        self.report.versions += 1;
        self.report.bytes += content.len() as u64;
        rustix::fs::futimens(&file, &super::attributes::times(at, at))?;
        Ok(())
    }

    /// The directory of a path's versions, made as far as it is not there.
    fn past(&self, of: &TreePath) -> Result<OwnedFd, Errno> {
        let mut dir = rustix::io::fcntl_dupfd_cloexec(self.target, 0)?;
        let shown = of.below(self.part.root()).unwrap_or_default();
        let names = shown.names().iter().map(|name| name.as_bytes());
        for name in HISTORY.into_iter().chain(names) {
            match mkdirat(&dir, name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            dir = openat(dir.as_fd(), name, flags, Mode::empty())?;
        }
        Ok(dir)
    }
}
