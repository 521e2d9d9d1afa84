//! The past that the store keeps, as files: `.workfs/history/` below the target, with the names
//! that the mount shows there.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

use crate::config::Config;
use crate::engine::{names_below, version_name};
use crate::names::{FileName, TreePath};
use crate::numbers::UnixNanos;

use super::{Export, Io, store};

/// Where versions go, below the target.
const HISTORY: [&[u8]; 2] = [b".workfs", b"history"];

impl Export<'_, '_> {
    /// Writes all versions of what lies, or lay, at `from` or below.
    pub(super) fn versions(&mut self, config: &Config, from: &TreePath) -> Io<()> {
        let mut pasts = Vec::new();
        let (read, mut all) = (self.read, |history| {
            pasts.push(history);
            true
        });
        read.histories(from, None, &mut all).map_err(store)?;
        for history in pasts {
            let mut versions = Vec::new();
            let mut all = |version| {
                versions.push(version);
                true
            };
            read.file_versions(history.key, &mut all).map_err(store)?;
            let below = names_below(read, &history.path).map_err(store)?;
            for version in versions {
                let name = version_name(&below, version.g.to_string());
                let content = read.file_version(version.g).map_err(store)?.unwrap_or_default();
                self.version(&history.path, name, version.at, &content)?;
            }
        }
        self.records_versions(config, from)
    }

    fn records_versions(&mut self, config: &Config, from: &TreePath) -> Io<()> {
        let read = self.read;
        for workspace in read.workspaces().map_err(store)? {
            if !workspace.path.names().starts_with(from.names()) {
                continue;
            }
            let binding = config.bind(&workspace.path);
            let extension = binding.as_ref().map_or("yaml", |it| it.kind.usual_extension());
            let mut records = Vec::new();
            let mut all = |record| {
                records.push(record);
                true
            };
            read.records(workspace.key, &mut all).map_err(store)?;
            for record in records {
                let id = FileName::new(record.id.as_str());
                let Ok(id) = id else { continue };
                let path = workspace.path.join(id);
                let below = names_below(read, &path).map_err(store)?;
                let mut g = record.version_g;
                while let Some(row) = read.version(g).map_err(store)? {
                    let name = version_name(&below, format!("{g}.{extension}"));
                    self.version(&path, name, row.at, &row.content)?;
                    g = row.before_g;
                }
            }
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
        file.write_all(content)?;
        self.report.versions += 1;
        self.report.bytes += content.len() as u64;
        rustix::fs::futimens(&file, &super::times(at, at))?;
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
