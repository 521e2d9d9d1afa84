//! Taking the place of a dead mount: mounted beneath it, and seen when it goes.
//!
//! What must stay true: nobody sees the directory below meanwhile, which is empty to who only reads
//! it. Where the kernel cannot mount beneath (before Linux 6.5, or where what lies there is shared with
//! another name space), it is seen for a moment. Deliberately not here: whether a mount is dead (`heal`).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::CWD;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MoveMountFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, move_mount,
};

use super::attach::{self, Unmounting, attach, device, parameters, switches};
use super::heal::detach_dead;
use super::options::{MountOptions, SUBTYPE};
use crate::error::MountError;

/// As [`attach()`], on a directory on which a dead mount lies.
pub(crate) fn attach_in_its_place(
    dir: &Path,
    options: &MountOptions,
) -> Result<OwnedFd, MountError> {
    let device = device()?;
    match mount_beneath(dir, options, &device) {
        // The dead one. If somebody else took that away in between this is ours, which is then missed at once.
        Ok(()) => match attach::unmount(dir, Unmounting::Lazily) {
            Ok(()) => Ok(device.into()),
            Err(error) => Err(MountError::of_dir(dir, error)),
        },
        Err(error) => {
            tracing::info!(?dir, %error, "cannot mount beneath the dead mount");
            detach_dead(dir).map_err(|error| MountError::of_dir(dir, error))?;
            attach(dir, options)
        }
    }
}

fn mount_beneath(dir: &Path, options: &MountOptions, device: &File) -> io::Result<()> {
    let context = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let context = context.as_fd();
    fsconfig_set_string(context, "source", options.fs_name.as_str())?;
    fsconfig_set_string(context, "subtype", SUBTYPE)?;
    for (key, value) in parameters(options, device) {
        match value {
            Some(value) => fsconfig_set_string(context, key, value)?,
            None => fsconfig_set_flag(context, key)?,
        }
    }
    if options.read_only {
        fsconfig_set_flag(context, "ro")?;
    }
    fsconfig_create(context)?;
    let attributes = switches(options).map(|(_, attribute)| attribute).collect();
    let mount = fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    let how = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_BENEATH;
    Ok(move_mount(mount.as_fd(), "", CWD, dir, how)?)
}
