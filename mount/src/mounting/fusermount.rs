//! Mounting for users that are not root, through the set-user-id helper `fusermount3`.
//!
//! What must stay true: the helper gets one end of a socket as its standard input and sends the
//! open `/dev/fuse` over it; nothing else is inherited. Deliberately not here: its `auto_unmount`.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::StatVfsMountFlags;

use super::attach::Unmounting;
use super::options::{MountOptions, SUBTYPE};
use crate::error::MountError;

/// Mounts on `dir` and returns the connection to the kernel.
pub(crate) fn mount(dir: &Path, options: &MountOptions) -> Result<OwnedFd, MountError> {
    let helper = find().ok_or(MountError::NoFusermount)?;
    let other = |source| MountError::Other { dir: dir.to_owned(), source };
    let (ours, theirs) = UnixStream::pair().map_err(other)?;
    let child = Command::new(helper)
        .arg("-o")
        .arg(option_string(options))
        .arg("--")
        .arg(dir)
        .env("_FUSE_COMMFD", "0")
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(other)?;
    // The socket's other end is the child's alone by now: when it ends without a word, this
    // reads the end of the stream.
    let received = receive_descriptor(&ours);
    let output = child.wait_with_output().map_err(other)?;
    match received.map_err(other)? {
        Some(device) => Ok(device),
        None => Err(refusal(dir, String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// Unmounts `dir`, as [`super::attach::unmount`].
pub(crate) fn unmount(dir: &Path, how: Unmounting) -> io::Result<()> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, "fusermount3 was not found");
    let mut command = Command::new(find().ok_or_else(missing)?);
    command.arg("-u");
    if how == Unmounting::Lazily {
        command.arg("-z");
    }
    let output = command.arg("--").arg(dir).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if text.contains("busy") {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    let is_denied = text.contains("permitted") || text.contains("denied");
    let kind = if is_denied { io::ErrorKind::PermissionDenied } else { io::ErrorKind::Other };
    Err(io::Error::new(kind, text))
}

/// Why the helper, which is there, has none of root's rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hindrance {
    /// It is not root's, or has not the bit.
    NotSetUserId,
    /// Its file system takes no notice of the bit.
    NoSuid,
    /// This process, and what it starts, gets no rights that it has not.
    NoNewPrivileges,
}

/// What hinders `helper` from mounting for a user, as far as one can see.
#[must_use]
pub fn hindrance(helper: &Path) -> Option<Hindrance> {
    let found = std::fs::metadata(helper).ok()?;
    let flags = rustix::fs::statvfs(helper).map(|system| system.f_flag);
    if found.uid() != 0 || found.mode() & 0o4000 == 0 {
        Some(Hindrance::NotSetUserId)
    } else if flags.is_ok_and(|flags| flags.contains(StatVfsMountFlags::NOSUID)) {
        Some(Hindrance::NoSuid)
    } else {
        rustix::thread::no_new_privs().unwrap_or(false).then_some(Hindrance::NoNewPrivileges)
    }
}

/// The helper that mounts for users, if it is installed.
#[must_use]
pub fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/bin", "/bin", "/usr/local/bin"].map(PathBuf::from);
    let dirs: Vec<PathBuf> = std::env::split_paths(&path).chain(usual).collect();
    ["fusermount3", "fusermount"]
        .iter()
        .flat_map(|name| dirs.iter().map(move |dir| dir.join(name)))
        .find(|helper| helper.is_file())
}

fn option_string(options: &MountOptions) -> String {
    // The helper takes a comma for the end of an option unless a backslash stands before it.
    let name = options.fs_name.replace('\\', "\\\\").replace(',', "\\,");
    let mut words = vec![
        format!("fsname={name}"),
        format!("subtype={SUBTYPE}"),
        "default_permissions".to_owned(),
    ];
    for (wanted, word) in [
        (options.read_only, "ro"),
        (options.allow_other || options.allow_root, "allow_other"),
        (options.dev, "dev"),
        (!options.dev, "nodev"),
        (options.suid, "suid"),
        (!options.suid, "nosuid"),
        (!options.exec, "noexec"),
        (options.noatime, "noatime"),
    ] {
        if wanted {
            words.push(word.to_owned());
        }
    }
    words.join(",")
}

/// The helper speaks English only, and has no exit codes.
fn refusal(dir: &Path, text: &str) -> MountError {
    let dir = dir.to_owned();
    if text.contains("user_allow_other") {
        MountError::OthersRefused
    } else if text.contains("too many FUSE") {
        MountError::TooMany { dir, detail: text.to_owned() }
    } else if text.contains("Too many open files") {
        // Its own limit is that of who starts it.
        let errno = if text.contains("in system") { libc::ENFILE } else { libc::EMFILE };
        MountError::Other { dir, source: io::Error::from_raw_os_error(errno) }
    } else if text.contains("/dev/fuse") && text.contains("denied") {
        MountError::DeviceRefused(io::Error::other(text.to_owned()))
    } else if text.contains("fuse device not found") || text.contains("/dev/fuse") {
        MountError::NoFuseDevice(io::Error::other(text.to_owned()))
    } else if text.contains("permitted") || text.contains("denied") || text.contains("no write") {
        MountError::NotPermitted { dir, detail: text.to_owned() }
    } else {
        MountError::Other { dir, source: io::Error::other(text.to_owned()) }
    }
}

/// The descriptor sent over `socket`, or `None` if it was closed without one.
fn receive_descriptor(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut byte = 0u8;
    let mut part =
        libc::iovec { iov_base: std::ptr::from_mut(&mut byte).cast(), iov_len: size_of::<u8>() };
    // Room for one control message with one descriptor, aligned as its header must be.
    let mut control = [0u64; 8];
    // SAFETY: all zeroes is a valid `msghdr`: no name, no parts, no control data.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    loop {
        // SAFETY: the message points to one byte and to control space of the length it says; all
        // of it outlives the call.
        let got =
            unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
        match got {
            0 => return Ok(None),
            1.. => break,
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    // SAFETY: `message` was filled by recvmsg; the header macro returns null or a pointer into
    // `control`, which is alive and aligned.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message).as_ref() };
    match header {
        Some(header)
            if header.cmsg_level == libc::SOL_SOCKET && header.cmsg_type == libc::SCM_RIGHTS =>
        {
            // SAFETY: a message of this type carries at least one descriptor, which is ours now
            // and nobody else's.
            let device = unsafe {
                OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned())
            };
            Ok(Some(device))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounting::attach::is_root;
    use crate::whereabouts::mountinfo::mount_at;

    /// The helper speaks the same way to root, who needs no further rights for this test.
    #[test]
    fn the_helper_mounts_hands_over_the_device_and_unmounts() {
        if find().is_none() || !is_root() {
            eprintln!("not tested here: fusermount3 or its rights are missing");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let options = MountOptions { fs_name: "a,b\\c".into(), ..MountOptions::default() };
        let device = mount(dir.path(), &options).unwrap();
        let line = mount_at(dir.path()).unwrap();
        let unmounted = unmount(dir.path(), Unmounting::Lazily);
        let line = line.unwrap();
        assert_eq!((line.fs_type.as_str(), line.source.to_str()), ("fuse.workfs", Some("a,b\\c")));
        unmounted.unwrap();
        drop(device);
        assert!(mount_at(dir.path()).unwrap().is_none());
    }

    #[test]
    fn what_the_helper_refuses_is_named() {
        let dir = tempfile::tempdir().unwrap();
        if find().is_some() {
            assert!(mount(&dir.path().join("none"), &MountOptions::default()).is_err());
            assert!(unmount(dir.path(), Unmounting::IfUnused).is_err());
        }
        let kind = |text| refusal(Path::new("/x"), text);
        let text = "fusermount3: option allow_other only allowed if 'user_allow_other' is set in";
        assert!(matches!(kind(text), MountError::OthersRefused));
        let text = "fusermount3: failed to open /dev/fuse: Permission denied";
        assert!(matches!(kind(text), MountError::DeviceRefused(_)));
        let text = "fusermount3: user has no write access to mountpoint /x";
        assert!(matches!(kind(text), MountError::NotPermitted { .. }));
        let text = "fusermount3: mount failed: Operation not permitted";
        assert!(matches!(kind(text), MountError::NotPermitted { .. }));
        assert!(kind(text).remedy().is_some_and(|way| way.contains("root's rights")));
        assert!(matches!(kind("something else"), MountError::Other { .. }));
        let text = "fusermount3: too many FUSE filesystems mounted; mount_max=N can be set in /etc/fuse.conf";
        assert!(matches!(kind(text), MountError::TooMany { .. }));
        assert!(kind(text).remedy().is_some_and(|way| way.contains("unmount one")));
        // Of a user whom a container was started as, say.
        let nameless = kind("fusermount3: could not determine username").remedy();
        assert!(nameless.is_some_and(|way| way.contains("/etc/passwd")));
        for (of, errno) in [("", libc::EMFILE), (" in system", libc::ENFILE)] {
            let text = format!("fusermount3: failed to open /dev/fuse: Too many open files{of}");
            let MountError::Other { source, .. } = refusal(Path::new("/x"), &text) else {
                panic!("{text}")
            };
            assert_eq!(source.raw_os_error(), Some(errno));
        }
    }
}
