//! The options of a mount that are workfs's own; the rest of an `-o` string is the kernel's.
//!
//! What must stay true: what is not known here goes on to [`workfs_mount::MountOptions`], which
//! refuses what it does not know either.

use std::path::PathBuf;

use workfs_mount::{KNOWN_OPTIONS, MountOptions, OptionError};

use crate::daemon::failure::{Cause, Failure};
use crate::kind::{Role, nearest};
use crate::names::{AgentName, TreePath, printable_start};
use crate::store::Durability;

/// The options that are workfs's own, those that take a value with `=`.
const OWN: [&str; 6] = ["agent=", "role=", "root=", "nonempty", "store=", "sync="];

/// An `-o` string, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnOptions {
    /// `agent=NAME`: for which agent.
    pub agent: Option<AgentName>,
    /// `role=ROLE`: in which role.
    pub role: Option<Role>,
    /// `root=PATH`: the directory of the tree that is shown.
    pub root: Option<TreePath>,
    /// `nonempty`: the directory may have files.
    pub nonempty: bool,
    /// `store=PATH`.
    pub store: Option<PathBuf>,
    /// `sync=full|normal`.
    pub sync: Option<Durability>,
    /// What is not workfs's own.
    pub rest: String,
}

impl OwnOptions {
    /// Takes `text` apart and checks all of it.
    ///
    /// # Errors
    /// An option that is not known, or a value that cannot be read.
    pub fn parse(text: &str) -> Result<OwnOptions, Failure> {
        let mut own = OwnOptions::default();
        let mut rest = Vec::new();
        for option in text.split(',').map(str::trim).filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("agent", name)) => own.agent = Some(agent(name)?),
                Some(("role", name)) => own.role = Some(role(name)?),
                Some(("root", path)) => own.root = Some(root(path)?),
                Some(("store", path)) => own.store = Some(path.into()),
                // `sync` and `async` without a value are mount(8)'s.
                Some(("sync", level)) => own.sync = Some(durability(level)?),
                _ if option == "nonempty" => own.nonempty = true,
                _ if option == "remount" => return Err(remount()),
                _ if option == "sync" => own.sync = Some(Durability::Power),
                _ => rest.push(option),
            }
        }
        own.rest = rest.join(",");
        own.kernel()?;
        Ok(own)
    }

    /// What the kernel is told.
    ///
    /// # Errors
    /// As [`OwnOptions::parse`].
    pub fn kernel(&self) -> Result<MountOptions, Failure> {
        MountOptions::parse(&self.rest).map_err(|error| {
            let near = match &error {
                OptionError::Unknown { name } => meant(name),
                OptionError::BadValue { .. } | OptionError::Conflict(..) => None,
            };
            let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
            let remedy = format!("{near}see `workfs mount --help`");
            Failure::new(Cause::Usage, error.to_string(), remedy)
        })
    }

    /// Whether the string names the source that `/proc/mounts` is to show.
    #[must_use]
    pub fn names_source(&self) -> bool {
        self.rest.split(',').any(|option| option.starts_with("fsname="))
    }
}

/// The kernel keeps a mount's `ro` and the like for itself, and mount(8) can change them without a helper;
/// workfs's own options hold for as long as a mount is there.
fn remount() -> Failure {
    let reason = "a mount is not changed by `remount`";
    let remedy = "`mount -i -o remount,ro DIR` (or `rw`), as root, leaves it to the kernel; else unmount it, \
                  and mount it with other options";
    Failure::new(Cause::Usage, reason, remedy)
}

/// What cannot be written, and why, is mounted read-only; gives what is to be said of that. As mount(8)
/// does it with what is write-protected.
pub fn protect(kernel: &mut MountOptions, why: Option<&str>) -> Option<String> {
    let why = why.filter(|_| !kernel.read_only)?;
    kernel.read_only = true;
    Some(format!(
        "the store cannot be written ({why}): mounted read-only; to write when it can be, unmount it \
         (`workfs unmount --all`) and mount it again"
    ))
}

/// What is to be said of options that fusermount3 leaves out, without a word, for who is not root.
pub fn left_out(kernel: &MountOptions) -> Option<String> {
    let is_asked = kernel.dev || kernel.suid;
    (is_asked && !rustix::process::geteuid().is_root()).then(|| {
        "`dev` and `suid` are root's to give: the mount has `nodev` and `nosuid`".to_owned()
    })
}

/// The options of a mount that was made read-only although nobody asked for that.
pub fn read_only(options: &str) -> String {
    let others = options.split(',').filter(|one| !matches!(*one, "" | "ro" | "rw"));
    std::iter::once("ro").chain(others).collect::<Vec<_>>().join(",")
}

/// The known option that an unknown one is nearest to.
fn meant(option: &str) -> Option<&'static str> {
    // A value is not part of the resemblance: `uids=1000` is near `uid=`.
    let name = match option.split_once('=') {
        Some((name, _)) => format!("{name}="),
        None => option.to_owned(),
    };
    nearest(&name, OWN.into_iter().chain(KNOWN_OPTIONS))
}

/// The agent of that name.
///
/// # Errors
/// If it cannot be one.
pub fn agent(name: &str) -> Result<AgentName, Failure> {
    AgentName::new(name).map_err(|why| {
        let name = crate::names::printable(name.as_bytes());
        Failure::new(Cause::Usage, format!("`{name}` is no agent's name: {why}"), "choose another")
    })
}

/// The role of that name.
///
/// # Errors
/// If there is none.
pub fn role(name: &str) -> Result<Role, Failure> {
    Role::named(name).ok_or_else(|| {
        let name = crate::names::printable(name.as_bytes());
        let known: Vec<&str> = Role::ALL.iter().map(|role| role.as_str()).collect();
        let remedy = format!("use one of {}", known.join(", "));
        Failure::new(Cause::Usage, format!("role `{name}` is not known"), remedy)
    })
}

/// Of a path that is no directory of the tree; `file` is what is no directory on the way there.
pub fn no_root(path: &TreePath, file: Option<TreePath>) -> Failure {
    let is_computed = path.names().first().is_some_and(|top| top.as_bytes() == b".workfs");
    let (reason, remedy) = match file {
        Some(file) => (format!("`{file}` is no directory"), "give the one that it lies in"),
        None if is_computed => {
            let reason = format!("`{path}` is computed, and no directory of the tree");
            (reason, "every mount has it: give a directory in which work lies")
        }
        None => {
            let remedy = "make it first, through a mount of the whole tree";
            (format!("the tree has no directory `{path}`"), remedy)
        }
    };
    Failure::new(Cause::Absent, reason, remedy)
}

/// A path from the root of the tree.
///
/// # Errors
/// If it is none.
pub fn root(path: &str) -> Result<TreePath, Failure> {
    TreePath::asked(path.trim_matches('/')).map_err(|why| {
        let path = printable_start(path.as_bytes());
        let reason = format!("`{path}` is no path in the tree: {why}");
        Failure::new(Cause::Usage, reason, "give one such as `work`")
    })
}

/// The durability of that name.
///
/// # Errors
/// If there is none.
pub fn durability(name: &str) -> Result<Durability, Failure> {
    match name {
        "full" => Ok(Durability::Power),
        "normal" => Ok(Durability::Process),
        _ => {
            let name = crate::names::printable(name.as_bytes());
            let reason = format!("sync level `{name}` is not known");
            Err(Failure::new(Cause::Usage, reason, "use full or normal"))
        }
    }
}

/// The name of a durability.
#[must_use]
pub fn sync_name(sync: Durability) -> &'static str {
    match sync {
        Durability::Power | Durability::Flush => "full",
        Durability::Process => "normal",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_options_and_the_kernels_are_told_apart() {
        let own = OwnOptions::parse("ro,agent=bob,sync=normal,nonempty,allow_other").unwrap();
        assert_eq!(own.agent.as_ref().unwrap().as_str(), "bob");
        assert_eq!(own.sync, Some(Durability::Process));
        assert!(own.nonempty && !own.names_source());
        assert_eq!(own.rest, "ro,allow_other");
        assert!(own.kernel().unwrap().read_only);
        for wrong in ["agnt=bob", "agent=a b", "sync=half", "alow_other", "role=boss", "root=.."] {
            assert_eq!(OwnOptions::parse(wrong).unwrap_err().cause, Cause::Usage, "{wrong}");
        }
        for (wrong, meant) in
            [("agnt=bob", "`agent=`"), ("rw,alow_other", "`allow_other`"), ("uids=7", "`uid=`")]
        {
            let remedy = OwnOptions::parse(wrong).unwrap_err().remedy;
            assert!(remedy.starts_with(&format!("did you mean {meant}? ")), "{remedy}");
        }
        let remedy = OwnOptions::parse("sky_is_blue").unwrap_err().remedy;
        assert_eq!(remedy, "see `workfs mount --help`");
    }
}
