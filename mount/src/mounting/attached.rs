//! A mount before anything is answered on it: [`attach`], [`Attached`], and [`serve`].
//!
//! What must stay true: what was attached and is not served is taken away again. Deliberately not here: the
//! session (`session`), and mount(2) itself (`attach`).

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::attach::{Unmounting, attach as mount_on, unmount};
use super::heal::resolved;
use super::options::MountOptions;
use super::replace;
use crate::error::MountError;
use crate::ids::MountId;
use crate::session::run::take_away;
use crate::session::{Lies, Mount, lazy_buffers, mount_point, start};
use crate::tree::Tree;
use crate::whereabouts::Whereabouts;
use crate::whereabouts::mountinfo::{MountLine, stack_at};

/// A mount that the kernel has, and every use of which waits until it is served. Dropping it takes it away.
#[derive(Debug)]
pub struct Attached {
    options: MountOptions,
    connection: OwnedFd,
    made: Made,
}

/// What is taken away unless it is served.
#[derive(Debug)]
struct Made {
    dir: PathBuf,
    here: Arc<Whereabouts>,
    is_served: bool,
}

/// Serves `tree` on `dir` as mount `id`; returns when the kernel has the mount.
///
/// Four threads a mount: two that take requests, one that delivers invalidations, one that waits
/// for the session's end. Calls [`lazy_buffers`].
///
/// # Errors
/// If `dir` is no directory to mount on, FUSE is not to be had here, or it is not permitted.
pub fn serve(
    tree: Arc<dyn Tree>,
    id: MountId,
    dir: &Path,
    options: &MountOptions,
) -> Result<Mount, MountError> {
    attach(dir, options)?.serve(tree, id)
}

/// Mounts on `dir`; nothing is answered yet. Whoever mounts must not touch it until it is served.
///
/// # Errors
/// As [`serve`].
pub fn attach(dir: &Path, options: &MountOptions) -> Result<Attached, MountError> {
    let dir = mount_point(dir)?;
    let connection = mount_on(&dir, options)?;
    Attached::of(dir, options, connection)
}

/// As [`attach`], on a directory on which a dead mount lies: it takes that one's place, and what is below is
/// not seen meanwhile, where the kernel can mount beneath (Linux 6.5). Not for those who mount by the helper.
///
/// # Errors
/// As [`serve`]; the dead mount may be gone all the same.
pub fn attach_in_place_of_dead(dir: &Path, options: &MountOptions) -> Result<Attached, MountError> {
    let dir = resolved(dir).map_err(|error| MountError::of_dir(dir, error))?;
    let connection = replace::attach_in_its_place(&dir, options)?;
    Attached::of(dir, options, connection)
}

impl Attached {
    fn of(dir: PathBuf, options: &MountOptions, connection: OwnedFd) -> Result<Self, MountError> {
        let source = match find_made(&dir, &options.fs_name, &connection) {
            Ok(Some(here)) => {
                let made = Made { dir, here: Arc::new(here), is_served: false };
                return Ok(Attached { options: options.clone(), connection, made });
            }
            Ok(None) => io::Error::other("the mount was taken away at once"),
            Err(error) => {
                // What was made just now lies on top.
                drop(connection);
                if let Err(error) = unmount(&dir, Unmounting::Lazily) {
                    tracing::error!(?dir, %error, "cannot take the mount away");
                }
                error
            }
        };
        Err(MountError::Other { dir, source })
    }

    /// Serves `tree` there as mount `id`.
    ///
    /// # Errors
    /// As [`serve`].
    pub fn serve(self, tree: Arc<dyn Tree>, id: MountId) -> Result<Mount, MountError> {
        lazy_buffers();
        let Attached { options, connection, mut made } = self;
        let lies = Lies::Here(Arc::clone(&made.here));
        let mount = start(tree, id, &made.dir, lies, &options, connection)
            .map_err(|source| MountError::Other { dir: made.dir.clone(), source })?;
        made.is_served = true;
        Ok(mount)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if !self.is_served {
            take_away(&self.dir, &self.here);
        }
    }
}

/// Where the mount of this source is that was just made on `dir` over this connection; `None`: nowhere any more.
/// Somebody may have been as fast, and lie on top.
fn find_made(dir: &Path, source: &str, connection: &OwnedFd) -> io::Result<Option<Whereabouts>> {
    let stack = stack_at(dir)?;
    let is_it = |line: &&MountLine| line.is_workfs() && line.source == *source;
    let found = stack.iter().rfind(is_it).or_else(|| stack.last());
    let Some(line) = found.filter(|line| line.is_fuse()) else { return Ok(None) };
    Ok(Some(Whereabouts::new(dir, line, connection.try_clone()?)))
}
