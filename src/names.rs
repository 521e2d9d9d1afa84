//! Names, parsed once at the border: what arrives as bytes leaves here as a proof.
//!
//! What must stay true: a value of one of these types keeps its grammar; inner functions take the
//! type, never `&str`. Deliberately not here: OS paths; a [`TreePath`] is a path inside the mount.

mod shown;

use std::fmt;

use crate::limits::PATH_BYTES_MAX;
use crate::numbers::Ino;

pub use shown::{
    Shown, ShownPath, first_few, json_path, path_of_json, path_of_text, path_text, printable,
    printable_start, shell_quoted, shell_word, unsteering, with_article,
};

/// The directory at the root of each mount whose content is nobody's but workfs's.
pub const CONTROL_DIR: &[u8] = b".workfs";

/// The file at the root of each mount that tells how to work in it.
pub const AGENTS_FILE: &[u8] = b"AGENTS.md";

/// `X.yaml.why`, by this extension, tells why of the file `X.yaml` beside it.
pub const WHY: &str = "why";

/// Why a name is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No byte at all.
    #[error("a name cannot be empty")]
    Empty,
    /// Longer than its grammar allows.
    #[error("{bytes} bytes are over the limit of {limit}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The most that is allowed.
        limit: usize,
    },
    /// `/` or NUL, or `.` or `..`.
    #[error("a file name cannot be `.` or `..` or contain `/` or NUL")]
    Reserved,
    /// What kinds and configurations cannot name: it would hide what is computed.
    #[error("workfs shows `.workfs` and `AGENTS.md` itself at the root of each mount")]
    Computed,
    /// A character outside the strict grammar of ids and agents.
    #[error(
        "only letters, digits, `.`, `_` and `-` are allowed, starting with a letter or a digit"
    )]
    Grammar,
}

/// Refuses what a kind or a configuration calls so, where a part of it is computed at the root of a mount.
///
/// # Errors
/// [`NameError::Computed`].
pub fn expect_not_computed(path: &str) -> Result<(), NameError> {
    let is_computed = |part: &str| FileName::new(part).is_ok_and(|name| name.is_computed());
    if path.split('/').any(is_computed) { Err(NameError::Computed) } else { Ok(()) }
}

/// One component of a path inside the mount: 1 to 255 bytes, no `/`, no NUL, not `.` or `..`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileName(Box<[u8]>);

impl FileName {
    /// Checks `bytes`.
    ///
    /// # Errors
    /// Which rule is broken.
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self, NameError> {
        let bytes = bytes.as_ref();
        if bytes.is_empty() {
            return Err(NameError::Empty);
        }
        if bytes.len() > crate::limits::NAME_BYTES_MAX {
            let limit = crate::limits::NAME_BYTES_MAX;
            return Err(NameError::TooLong { bytes: bytes.len(), limit });
        }
        if bytes == b"." || bytes == b".." || bytes.iter().any(|&b| b == b'/' || b == 0) {
            return Err(NameError::Reserved);
        }
        Ok(FileName(bytes.into()))
    }

    /// The name beside this one of which this one would tell why, by its extension [`WHY`].
    #[must_use]
    pub fn tells_why_of(&self) -> Option<FileName> {
        let stem = self.0.strip_suffix(WHY.as_bytes())?.strip_suffix(b".")?;
        FileName::new(stem).ok()
    }

    /// Whether workfs shows something of its own under this name at the root of a mount, which any
    /// directory of the tree can be.
    #[must_use]
    pub fn is_computed(&self) -> bool {
        [CONTROL_DIR, AGENTS_FILE].contains(&self.as_bytes())
    }

    /// The bytes as the file system has them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The name as text, where it is UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl fmt::Display for FileName {
    /// See [`path_text`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&path_text(&self.0))
    }
}

impl fmt::Debug for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileName({self})")
    }
}

fn strict(text: &str, limit: usize) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty);
    }
    if text.len() > limit {
        return Err(NameError::TooLong { bytes: text.len(), limit });
    }
    let mut bytes = text.bytes();
    let starts_well = bytes.next().is_some_and(|b| b.is_ascii_alphanumeric());
    let goes_on_well = bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    if starts_well && goes_on_well { Ok(()) } else { Err(NameError::Grammar) }
}

macro_rules! strict_name {
    ($(#[$doc:meta])* $name:ident, $limit:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Box<str>);

        impl $name {
            /// Checks `text`.
            ///
            /// # Errors
            /// Which rule is broken.
            pub fn new(text: impl AsRef<str>) -> Result<Self, NameError> {
                strict(text.as_ref(), $limit)?;
                Ok($name(text.as_ref().into()))
            }

            /// As text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                $name::new(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0.into()
            }
        }
    };
}

strict_name! {
    /// A record's id: its file name without the extension.
    RecordId, crate::limits::RECORD_ID_BYTES_MAX
}
strict_name! {
    /// An agent: the name of a lane such as `assigned/bob`.
    AgentName, crate::limits::AGENT_NAME_BYTES_MAX
}
strict_name! {
    /// A kind of record, such as `task`.
    KindName, crate::limits::AGENT_NAME_BYTES_MAX
}
strict_name! {
    /// A state of a lifecycle, such as `assigned`.
    StateName, crate::limits::AGENT_NAME_BYTES_MAX
}

/// A name in a directory. What only looks at one borrows the name: `Dentry<&FileName>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dentry<N = FileName> {
    /// The directory.
    pub dir: Ino,
    /// The name in it.
    pub name: N,
}

impl<N> Dentry<N> {
    /// That name in that directory.
    pub const fn of(dir: Ino, name: N) -> Self {
        Dentry { dir, name }
    }
}

impl Dentry {
    /// To look at.
    #[must_use]
    pub fn as_ref(&self) -> Dentry<&FileName> {
        Dentry { dir: self.dir, name: &self.name }
    }
}

impl Dentry<&FileName> {
    /// To keep.
    #[must_use]
    pub fn to_owned(self) -> Dentry {
        Dentry { dir: self.dir, name: self.name.clone() }
    }
}

/// A path inside the mount, from its root: `work/inbox/x.yaml`. The empty path is the root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TreePath(Vec<FileName>);

impl TreePath {
    /// The root.
    #[must_use]
    pub fn root() -> Self {
        TreePath(Vec::new())
    }

    /// Parses `a/b/c`; leading, trailing and doubled slashes do not matter.
    ///
    /// # Errors
    /// Where a component is no file name (`..` is none).
    pub fn parse(bytes: impl AsRef<[u8]>) -> Result<Self, NameError> {
        bytes
            .as_ref()
            .split(|&b| b == b'/')
            .filter(|part| !part.is_empty() && *part != b".")
            .map(FileName::new)
            .collect::<Result<Vec<_>, _>>()
            .map(TreePath)
    }

    /// The same of a path that somebody asks for. In the tree itself they may be longer.
    ///
    /// # Errors
    /// As [`TreePath::parse`], and where it is longer than one that the kernel takes.
    pub fn asked(bytes: impl AsRef<[u8]>) -> Result<Self, NameError> {
        match bytes.as_ref().len() {
            ..=PATH_BYTES_MAX => TreePath::parse(bytes),
            bytes => Err(NameError::TooLong { bytes, limit: PATH_BYTES_MAX }),
        }
    }

    /// Whether it is as long as one that somebody asks for at most.
    #[must_use]
    pub fn can_be_named(&self) -> bool {
        // Each with the slash after it, which the last has not.
        let bytes = self.0.iter().map(|name| name.as_bytes().len() + 1).sum::<usize>();
        bytes <= PATH_BYTES_MAX + 1
    }

    /// Its components.
    #[must_use]
    pub fn names(&self) -> &[FileName] {
        &self.0
    }

    /// This path and one more component.
    #[must_use]
    pub fn join(&self, name: FileName) -> Self {
        let mut names = self.0.clone();
        names.push(name);
        TreePath(names)
    }

    /// This path, and what lies at `below` from there.
    #[must_use]
    pub fn join_all(&self, below: &TreePath) -> Self {
        self.0.iter().chain(&below.0).cloned().collect()
    }

    /// Last component and the path before it; `None` at the root.
    #[must_use]
    pub fn split_last(&self) -> Option<(TreePath, &FileName)> {
        let (last, before) = self.0.split_last()?;
        Some((TreePath(before.to_vec()), last))
    }

    /// The rest of this path below `root`, if it lies there; the empty path if it is `root`.
    #[must_use]
    pub fn below(&self, root: &TreePath) -> Option<TreePath> {
        self.0.strip_prefix(&root.0[..]).map(|rest| TreePath(rest.to_vec()))
    }

    /// The components as bytes joined by `/`, for globs and for the store.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let parts: Vec<&[u8]> = self.0.iter().map(FileName::as_bytes).collect();
        parts.join(&b'/')
    }
}

impl FromIterator<FileName> for TreePath {
    fn from_iter<I: IntoIterator<Item = FileName>>(names: I) -> Self {
        TreePath(names.into_iter().collect())
    }
}

impl fmt::Display for TreePath {
    /// See [`path_text`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&path_text(&self.to_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // P7.2
    #[test]
    fn names_and_paths_are_as_long_as_the_kernel_takes_them() {
        for (bytes, is_taken) in [(0, false), (1, true), (255, true), (256, false)] {
            assert_eq!(FileName::new(vec![b'a'; bytes]).is_ok(), is_taken, "{bytes}");
        }
        // A dot names nothing; the slashes between names count, and none else.
        let path = |last: usize| [&b"./"[..], &b"a/".repeat(2000), &vec![b'b'; last]].concat();
        for (last, is_taken) in [(95, true), (96, false)] {
            let parsed = TreePath::parse(path(last)).unwrap();
            assert_eq!(parsed.names().len(), 2001);
            assert_eq!(parsed.can_be_named(), is_taken, "{last}");
            assert_eq!(TreePath::asked(parsed.to_bytes()).is_ok(), is_taken, "{last}");
        }
    }
}
