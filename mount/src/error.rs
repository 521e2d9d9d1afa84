//! Why a mount did not come about; each says what is wrong and the way out.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The way out where one may not mount on a directory.
pub const MOUNT_ON_OWN: &str = "mount on a directory you own and can write (`chmod u+w` where a crash left it \
                                read-only), or as root; a container needs CAP_SYS_ADMIN";

/// Why a mount did not come about.
#[derive(Debug, Error)]
pub enum MountError {
    /// There is no FUSE in this kernel, container or sandbox.
    #[error("/dev/fuse cannot be used here ({0})")]
    NoFuseDevice(#[source] io::Error),
    /// `/dev/fuse` is there, but not for this user or container.
    #[error("/dev/fuse cannot be opened ({0})")]
    DeviceRefused(#[source] io::Error),
    /// Not root, and the helper that mounts for users is missing.
    #[error("fusermount3 was not found")]
    NoFusermount,
    /// The mount point is no directory.
    #[error("{0:?} is not a directory")]
    NotADirectory(PathBuf),
    /// The mount point does not exist.
    #[error("{0:?} does not exist")]
    NotFound(PathBuf),
    /// A mount whose process is gone still lies on the directory.
    #[error("{0:?} is a dead mount, its process is gone")]
    DeadMount(PathBuf),
    /// The kernel or fusermount3 refused.
    #[error("mounting on {dir:?} is not permitted ({detail})")]
    NotPermitted {
        /// The mount point.
        dir: PathBuf,
        /// What was said.
        detail: String,
    },
    /// `allow_other` or `allow_root` is not for users here.
    #[error("allow_other and allow_root are refused to users here")]
    OthersRefused,
    /// fusermount3 makes no more mounts for users.
    #[error("mounting on {dir:?} failed: {detail}")]
    TooMany {
        /// The mount point.
        dir: PathBuf,
        /// What was said.
        detail: String,
    },
    /// Anything else.
    #[error("mounting on {dir:?} failed: {source}")]
    Other {
        /// The mount point.
        dir: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl MountError {
    /// The way out, where one is known.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        let known = match self {
            MountError::NoFuseDevice(_) => {
                "load the module (`modprobe fuse`), or give the container the device (`--device \
                 /dev/fuse --cap-add SYS_ADMIN`)"
            }
            MountError::DeviceRefused(_) => {
                "as root, `chmod 0666 /dev/fuse` (its usual mode), or give the container the device \
                 (`--device /dev/fuse --cap-add SYS_ADMIN`)"
            }
            MountError::NoFusermount => "install the package `fuse3`, or mount as root",
            MountError::NotADirectory(_) => "name a directory to mount on",
            MountError::NotFound(_) => "make it first (`mkdir`)",
            MountError::DeadMount(_) => {
                "detach it first (`fusermount3 -u -z`, or `umount -l` as root)"
            }
            // The kernel's own word to the helper, which has looked at the directory before.
            MountError::NotPermitted { detail, .. } if detail.contains("mount failed") => {
                "`workfs doctor` says whether fusermount3 has root's rights here; have a daemon mount that \
                 was started outside of this sandbox, or mount as root; a container needs CAP_SYS_ADMIN"
            }
            MountError::NotPermitted { .. } => MOUNT_ON_OWN,
            MountError::OthersRefused => {
                "put `user_allow_other` into /etc/fuse.conf, which users must be able to read, or leave \
                 them out, or mount as root"
            }
            MountError::TooMany { .. } => "unmount one, or raise `mount_max` in /etc/fuse.conf",
            MountError::Other { source, .. } if source.to_string().contains("username") => {
                "fusermount3 mounts only for users that have a line in /etc/passwd: give this one such a line \
                 (`useradd --uid UID NAME` as root), or mount as root"
            }
            MountError::Other { .. } => return None,
        };
        Some(known.to_owned())
    }

    /// The variant for an error of the operating system about the mount point itself.
    pub(crate) fn of_dir(dir: &Path, source: io::Error) -> MountError {
        let dir = dir.to_owned();
        match source.raw_os_error() {
            Some(libc::ENOENT) => MountError::NotFound(dir),
            Some(libc::ENOTDIR) => MountError::NotADirectory(dir),
            Some(libc::ENOTCONN | libc::ESTALE | libc::ECONNABORTED) => MountError::DeadMount(dir),
            Some(libc::EPERM | libc::EACCES) => {
                MountError::NotPermitted { dir, detail: source.to_string() }
            }
            _ => MountError::Other { dir, source },
        }
    }
}
