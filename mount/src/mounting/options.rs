//! Mount options: what a mount may be told, and the reading of `-o` strings.
//!
//! What must stay true: the default is a mount that is its owner's alone, without device files and
//! set-user-id programs; the kernel checks permissions (`default_permissions`) where it is asked to,
//! and wherever anybody but root comes in, because with `allow_other` and without it another user
//! read and overwrote a 0600 file. An option that is not known is refused, never ignored.
//! Deliberately not here: options of workfs itself.

use thiserror::Error;

use crate::ids::{Ino, ROOT};
use crate::requests::view::{Shows, View};

/// What `/proc/mounts` shows as the type, after `fuse.`.
pub(crate) const SUBTYPE: &str = "workfs";

/// How a mount is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountOptions {
    /// Nothing can be changed through this mount.
    pub read_only: bool,
    /// Other users may use the mount, as far as modes let them.
    pub allow_other: bool,
    /// Root may use the mount besides its owner.
    pub allow_root: bool,
    /// The kernel checks permissions also where nobody but root comes in, who may have given up the
    /// capability to pass them.
    pub default_permissions: bool,
    /// Device files work.
    pub dev: bool,
    /// Set-user-id and set-group-id bits work.
    pub suid: bool,
    /// Programs can be run.
    pub exec: bool,
    /// Access times are not kept up.
    pub noatime: bool,
    /// Owner shown for everything.
    pub uid: Option<u32>,
    /// Group shown for everything.
    pub gid: Option<u32>,
    /// Permission bits shown as off; all others are shown as on.
    pub umask: Option<u32>,
    /// What `/proc/mounts` shows as the source.
    pub fs_name: String,
    /// The directory of the tree that is this mount's root. Set by the program, not by `-o`.
    pub root: Ino,
    /// Its kernel numbers threads otherwise than this process does (another name space of processes): callers
    /// are told without. Set by the program, not by `-o`.
    pub other_numbers: bool,
}

impl Default for MountOptions {
    fn default() -> MountOptions {
        MountOptions {
            read_only: false,
            allow_other: false,
            allow_root: false,
            default_permissions: false,
            dev: false,
            suid: false,
            exec: true,
            noatime: false,
            uid: None,
            gid: None,
            umask: None,
            fs_name: SUBTYPE.to_owned(),
            root: ROOT,
            other_numbers: false,
        }
    }
}

/// Why an `-o` string was refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum OptionError {
    /// There is no such option.
    #[error("unknown mount option `{name}`")]
    Unknown {
        /// What was given.
        name: String,
    },
    /// The option's value cannot be read.
    #[error("mount option `{name}`: `{value}` is not {expected}")]
    BadValue {
        /// The option.
        name: &'static str,
        /// What was given.
        value: String,
        /// What would have been right.
        expected: &'static str,
    },
    /// Two options that exclude each other.
    #[error("mount options `{0}` and `{1}` exclude each other; give one of them")]
    Conflict(&'static str, &'static str),
}

/// Options that take no value, and options that do (with `=`): for whoever says which one might have
/// been meant.
pub const KNOWN: [&str; 22] = [
    "ro",
    "rw",
    "allow_other",
    "allow_root",
    "default_permissions",
    "dev",
    "nodev",
    "suid",
    "nosuid",
    "exec",
    "noexec",
    "atime",
    "noatime",
    "auto_unmount",
    "uid=",
    "gid=",
    "umask=",
    "fsname=",
    "subtype=",
    "max_read=",
    "nofail",
    "noauto",
];

/// What `mount`, `fstab` and service managers write for themselves, and what is always so here.
/// `auto_unmount` is among them: the daemon unmounts when it ends, and after a crash the next one
/// heals the mount point; fuser's helper process for it would uncover the directory below.
const IGNORED: [&str; 28] = [
    "defaults",
    "auto_unmount",
    "auto",
    "noauto",
    "nofail",
    "user",
    "users",
    "nouser",
    "owner",
    "group",
    "_netdev",
    "_rnetdev",
    "async",
    "dirsync",
    "silent",
    "loud",
    "mand",
    "nomand",
    "iversion",
    "noiversion",
    "relatime",
    "norelatime",
    "strictatime",
    "nostrictatime",
    "diratime",
    "nodiratime",
    "lazytime",
    "nolazytime",
];

impl MountOptions {
    /// Reads a comma-separated `-o` string on top of the defaults.
    ///
    /// # Errors
    /// If an option is unknown, a value cannot be read, or two options exclude each other.
    pub fn parse(text: &str) -> Result<MountOptions, OptionError> {
        let mut options = MountOptions::default();
        options.apply(text)?;
        Ok(options)
    }

    /// Reads a further `-o` string on top of what is set; later options win.
    ///
    /// # Errors
    /// As [`MountOptions::parse`].
    pub fn apply(&mut self, text: &str) -> Result<(), OptionError> {
        for option in text.split(',').map(str::trim).filter(|option| !option.is_empty()) {
            self.set(option)?;
        }
        if self.allow_other && self.allow_root {
            return Err(OptionError::Conflict("allow_other", "allow_root"));
        }
        Ok(())
    }

    fn set(&mut self, option: &str) -> Result<(), OptionError> {
        match option {
            "ro" => self.read_only = true,
            "rw" => self.read_only = false,
            "allow_other" => self.allow_other = true,
            "allow_root" => self.allow_root = true,
            "default_permissions" => self.default_permissions = true,
            "dev" => self.dev = true,
            "nodev" => self.dev = false,
            "suid" => self.suid = true,
            "nosuid" => self.suid = false,
            "exec" => self.exec = true,
            "noexec" => self.exec = false,
            "atime" => self.noatime = false,
            "noatime" => self.noatime = true,
            _ => return self.set_value(option),
        }
        Ok(())
    }

    fn set_value(&mut self, option: &str) -> Result<(), OptionError> {
        match option.split_once('=') {
            Some(("uid", value)) => self.uid = Some(id("uid", value)?),
            Some(("gid", value)) => self.gid = Some(id("gid", value)?),
            Some(("umask", value)) => self.umask = Some(octal("umask", value)?),
            Some(("fsname", value)) => self.fs_name = printable("fsname", value)?,
            // The kernel asks for no more than it is told at the beginning; what it asks for is given.
            Some(("max_read", value)) => drop(number("max_read", value)?),
            // It is always this one, by which our mounts are known.
            Some(("subtype", SUBTYPE)) => {}
            Some(("subtype", value)) => {
                let (name, value, expected) = ("subtype", value.to_owned(), "`workfs`");
                return Err(OptionError::BadValue { name, value, expected });
            }
            // Who mounted it, as mount(8) notes it for umount(8).
            Some(("comment" | "user", _)) => {}
            _ if IGNORED.contains(&option) => {}
            // Of mount(8) and of service managers.
            _ if option.starts_with("x-") || option.starts_with("X-") => {}
            _ => return Err(OptionError::Unknown { name: option.to_owned() }),
        }
        Ok(())
    }

    /// Whether owners and permission bits are shown as the tree has them.
    #[must_use]
    pub fn shows_stored(&self) -> bool {
        self.uid.is_none() && self.gid.is_none() && self.umask.is_none()
    }

    /// Whether the kernel checks permissions in a mount that this user makes: wherever anybody but root
    /// comes in, and where it was asked for.
    #[must_use]
    pub fn is_checked(&self, maker: u32) -> bool {
        maker != 0 || self.allow_other || self.allow_root || self.default_permissions
    }

    /// What kernels are shown.
    #[must_use]
    pub fn shows(&self) -> Shows {
        Shows { uid: self.uid, gid: self.gid, umask: self.umask }
    }

    pub(crate) fn view(&self) -> View {
        View { shows: self.shows(), root: self.root }
    }
}

impl std::str::FromStr for MountOptions {
    type Err = OptionError;

    fn from_str(text: &str) -> Result<MountOptions, OptionError> {
        MountOptions::parse(text)
    }
}

fn number(name: &'static str, value: &str) -> Result<u32, OptionError> {
    let refusal = || OptionError::BadValue { name, value: value.to_owned(), expected: "a number" };
    value.parse().map_err(|_| refusal())
}

/// The number of a user or a group: the last one stands for none in the system's calls.
fn id(name: &'static str, value: &str) -> Result<u32, OptionError> {
    match number(name, value)? {
        u32::MAX => {
            let expected = "a number below 4294967295";
            Err(OptionError::BadValue { name, value: value.to_owned(), expected })
        }
        id => Ok(id),
    }
}

fn octal(name: &'static str, value: &str) -> Result<u32, OptionError> {
    let expected = "an octal number of at most 777";
    let refusal = || OptionError::BadValue { name, value: value.to_owned(), expected };
    u32::from_str_radix(value, 8).ok().filter(|mask| *mask <= 0o777).ok_or_else(refusal)
}

fn printable(name: &'static str, value: &str) -> Result<String, OptionError> {
    if value.is_empty() || value.chars().any(char::is_control) {
        let expected = "a name without control characters";
        return Err(OptionError::BadValue { name, value: value.to_owned(), expected });
    }
    Ok(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_private() {
        let options = MountOptions::default();
        assert!(!options.allow_other && !options.allow_root && !options.dev && !options.suid);
        assert!(options.exec && !options.read_only);
    }

    #[test]
    fn the_habits_of_mount_and_fstab_are_understood() {
        let text = "ro,allow_other,default_permissions,uid=1000,gid=100,umask=027,dev,suid,noexec,\
                    noatime,fsname=team,auto_unmount,_netdev,x-systemd.automount,nofail,user,\
                    nodiratime,lazytime,max_read=131072,subtype=workfs,X-mount.mkdir,user=bob,\
                    comment=systemd.automount,strictatime";
        let options = MountOptions::parse(text).unwrap();
        assert_eq!(
            options,
            MountOptions {
                read_only: true,
                allow_other: true,
                allow_root: false,
                default_permissions: true,
                dev: true,
                suid: true,
                exec: false,
                noatime: true,
                uid: Some(1000),
                gid: Some(100),
                umask: Some(0o27),
                fs_name: "team".into(),
                root: ROOT,
                other_numbers: false,
            }
        );
        assert_eq!(MountOptions::parse("").unwrap(), MountOptions::default());
        assert_eq!(MountOptions::parse("defaults,ro,rw,").unwrap(), MountOptions::default());
    }

    #[test]
    fn an_unknown_option_is_named() {
        let refusal = MountOptions::parse("rw,alow_other").unwrap_err();
        assert_eq!(refusal.to_string(), "unknown mount option `alow_other`");
        for known in KNOWN {
            let unknown = OptionError::Unknown { name: known.into() };
            assert_ne!(MountOptions::parse(known), Err(unknown), "{known}");
        }
    }

    #[test]
    fn values_that_cannot_be_read_are_refused() {
        for wrong in ["uid=bob", "uid=4294967295", "gid=4294967295"] {
            assert!(
                matches!(MountOptions::parse(wrong), Err(OptionError::BadValue { .. })),
                "{wrong}"
            );
        }
        assert!(matches!(MountOptions::parse("umask=8"), Err(OptionError::BadValue { .. })));
        assert!(matches!(MountOptions::parse("umask=1777"), Err(OptionError::BadValue { .. })));
        assert!(matches!(MountOptions::parse("subtype=sshfs"), Err(OptionError::BadValue { .. })));
        assert!(matches!(MountOptions::parse("max_read=x"), Err(OptionError::BadValue { .. })));
        assert!(matches!(MountOptions::parse("fsname="), Err(OptionError::BadValue { .. })));
        let both = MountOptions::parse("allow_other,allow_root");
        assert_eq!(both, Err(OptionError::Conflict("allow_other", "allow_root")));
    }
}
