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
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, move_mount,
};

use crate::attach::{self, attach, device, parameters};
use crate::error::MountError;
use crate::heal::detach_dead;
use crate::options::{MountOptions, SUBTYPE};

/// As [`attach`], on a directory on which a dead mount lies.
pub(crate) fn attach_in_its_place(
    dir: &Path,
    options: &MountOptions,
) -> Result<OwnedFd, MountError> {
    let device = device()?;
    match mount_beneath(dir, options, &device) {
        // It is the dead one: whoever is faster takes that away, and nobody ours.
        Ok(()) => match attach::unmount(dir, true) {
            Ok(()) => Ok(device.into()),
            Err(error) => Err(MountError::of_dir(dir, error)),
        },
        Err(error) => {
            tracing::info!(dir = %dir.display(), %error, "cannot mount beneath the dead mount");
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
    let mount = fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes(options))?;
    let how = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_BENEATH;
    Ok(move_mount(mount.as_fd(), "", CWD, dir, how)?)
}

fn attributes(options: &MountOptions) -> MountAttrFlags {
    let mut attributes = MountAttrFlags::empty();
    attributes.set(MountAttrFlags::MOUNT_ATTR_RDONLY, options.read_only);
    attributes.set(MountAttrFlags::MOUNT_ATTR_NODEV, !options.dev);
    attributes.set(MountAttrFlags::MOUNT_ATTR_NOSUID, !options.suid);
    attributes.set(MountAttrFlags::MOUNT_ATTR_NOEXEC, !options.exec);
    attributes.set(MountAttrFlags::MOUNT_ATTR_NOATIME, options.noatime);
    attributes
}
