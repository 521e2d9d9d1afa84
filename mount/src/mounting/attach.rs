//! Mounting and unmounting: `/dev/fuse`, `mount(2)`, `umount2(2)`.
//!
//! What must stay true: `default_permissions` is given wherever anybody but root comes in; the type
//! is `fuse.workfs`; the cause of a refusal is kept (the FUSE library's own mounting loses it, and
//! forgets a mount that was busy once, hence ours). Deliberately not here: the mount helper for
//! users (`fusermount`) and the session.

use std::ffi::{CString, OsStr};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags as Attr, fsconfig_create, fsmount, fsopen,
};

use super::fusermount;
use super::options::{MountOptions, SUBTYPE};
use crate::error::MountError;

/// Mounts on `dir` and returns the connection to the kernel; nothing is answered on it yet.
pub(crate) fn attach(dir: &Path, options: &MountOptions) -> Result<OwnedFd, MountError> {
    let device = device()?;
    match mount(dir, options, &device) {
        Ok(()) => Ok(device.into()),
        Err(error) => match error.raw_os_error() {
            Some(libc::EPERM) if !is_root() => fusermount::mount(dir, options),
            Some(libc::ENODEV) => Err(MountError::NoFuseDevice(error)),
            _ => Err(MountError::of_dir(dir, error)),
        },
    }
}

pub(crate) fn device() -> Result<File, MountError> {
    let device = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    device.map_err(|error| match error.kind() {
        // The helper opens it with the user's rights too, so there is no way round.
        io::ErrorKind::PermissionDenied => MountError::DeviceRefused(error),
        _ => MountError::NoFuseDevice(error),
    })
}

/// Whether a descriptor that another process sent is a `/dev/fuse`: reading from another file
/// could wait for ever.
pub(crate) fn is_connection(connection: &OwnedFd) -> io::Result<()> {
    let file = File::from(connection.try_clone()?);
    let device = std::fs::metadata("/dev/fuse")?.rdev();
    if file.metadata()?.rdev() == device {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "this is no connection of FUSE"))
}

/// What the kernel's FUSE is told of a mount: words, and keys with values.
pub(crate) fn parameters(
    options: &MountOptions,
    device: &File,
) -> Vec<(&'static str, Option<String>)> {
    // SAFETY: these two only return numbers and cannot fail.
    let (uid, gid) = unsafe { (libc::getuid(), libc::getgid()) };
    let mut parameters = vec![
        ("fd", Some(device.as_raw_fd().to_string())),
        ("rootmode", Some(format!("{:o}", libc::S_IFDIR | 0o755))),
        ("user_id", Some(uid.to_string())),
        ("group_id", Some(gid.to_string())),
    ];
    // Root's own mount lets nobody else in, and root passes every check: unless they are asked for,
    // the kernel is spared them, and need not ask for both directories' attributes at each rename.
    if options.is_checked(uid) {
        parameters.push(("default_permissions", None));
    }
    if options.allow_other || options.allow_root {
        parameters.push(("allow_other", None));
    }
    parameters
}

fn mount(dir: &Path, options: &MountOptions, device: &File) -> io::Result<()> {
    let word = |(key, value): (&str, Option<String>)| match value {
        Some(value) => format!("{key}={value}"),
        None => key.to_owned(),
    };
    let data: Vec<String> = parameters(options, device).into_iter().map(word).collect();
    let source = c_string(OsStr::new(&options.fs_name))?;
    let target = c_string(dir.as_os_str())?;
    let fs_type = c_string(OsStr::new(&format!("fuse.{SUBTYPE}")))?;
    let data = c_string(OsStr::new(&data.join(",")))?;
    // SAFETY: the four pointers are to strings that end in NUL and outlive the call.
    let done = unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            fs_type.as_ptr(),
            switches(options).fold(0, |flags, (flag, _)| flags | flag),
            data.as_ptr().cast(),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What is switched on of a mount, as mount(2) and as fsmount(2) call it.
pub(crate) fn switches(options: &MountOptions) -> impl Iterator<Item = (libc::c_ulong, Attr)> {
    let all = [
        (options.read_only, libc::MS_RDONLY, Attr::MOUNT_ATTR_RDONLY),
        (!options.dev, libc::MS_NODEV, Attr::MOUNT_ATTR_NODEV),
        (!options.suid, libc::MS_NOSUID, Attr::MOUNT_ATTR_NOSUID),
        (!options.exec, libc::MS_NOEXEC, Attr::MOUNT_ATTR_NOEXEC),
        (options.noatime, libc::MS_NOATIME, Attr::MOUNT_ATTR_NOATIME),
    ];
    all.into_iter().filter(|(is_on, ..)| *is_on).map(|(_, flag, attribute)| (flag, attribute))
}

/// How a mount is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmounting {
    /// Not while it is in use.
    IfUnused,
    /// Also when it is in use: from sight at once, and in fact when the last user lets go.
    Lazily,
}

/// Takes the topmost mount on `dir` away. The path's end is not followed, and no file system is
/// asked anything, so that this does not hang on a dead mount.
///
/// # Errors
/// If it is in use (EBUSY), or the system refuses.
pub fn unmount(dir: &Path, how: Unmounting) -> io::Result<()> {
    let target = c_string(dir.as_os_str())?;
    let lazily = match how {
        Unmounting::IfUnused => 0,
        Unmounting::Lazily => libc::MNT_DETACH,
    };
    let flags = libc::UMOUNT_NOFOLLOW | lazily;
    // SAFETY: the pointer is to a string that ends in NUL and outlives the call.
    let done = unsafe { libc::umount2(target.as_ptr(), flags) };
    if done == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::EPERM) && !is_root() {
        return fusermount::unmount(dir, how);
    }
    Err(error)
}

/// Takes the topmost mount on `dir` away and ends its connection, so that whoever still uses it fails.
pub(crate) fn cut_off(dir: &Path) -> io::Result<()> {
    let target = c_string(dir.as_os_str())?;
    let flags = libc::UMOUNT_NOFOLLOW | libc::MNT_DETACH | libc::MNT_FORCE;
    // SAFETY: the pointer is to a string that ends in NUL and outlives the call.
    let done = unsafe { libc::umount2(target.as_ptr(), flags) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Ends the connection of the mount whose files have this device number, wherever it lies by now: the
/// kernel gives the file for that (Documentation/filesystems/fuse, "Control filesystem") to whoever
/// mounted it. Root need not have that file system mounted anywhere.
pub(crate) fn abort(device: u64) -> io::Result<()> {
    let own = Path::new(CONTROL).join(format!("{device}/abort"));
    match std::fs::write(&own, b"1") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            abort_unseen(device).map_err(|_| error)
        }
        done => done,
    }
}

/// Where the control file system of FUSE lies, if it is mounted.
const CONTROL: &str = "/sys/fs/fuse/connections";

/// The same by a control file system of its own, which is nowhere to be seen.
fn abort_unseen(device: u64) -> io::Result<()> {
    let context = fsopen("fusectl", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(context.as_fd())?;
    let control = fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, Attr::empty())?;
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(&control, format!("{device}/abort"), flags, Mode::empty())?;
    File::from(file).write_all(b"1")
}

pub(crate) fn is_root() -> bool {
    // SAFETY: it only returns a number and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(io::Error::from)
}
