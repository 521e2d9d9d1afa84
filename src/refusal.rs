//! A refusal: which rule said no to whom about what, and the way out.
//!
//! What must stay true: every refusal that a user can meet has a [`Rule`] with a code and a
//! paragraph in `docs/errors.md`; its code, errno and grounds are chosen in its row, and nowhere else.

use workfs_mount::Errno;

/// Through which door the refused change came: some errors mean something else to some callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// `rename(2)`: must never fail with EXDEV, EINVAL or ENOSYS, and with ESTALE only where the kernel is
    /// to look again ([`Rule::Elsewhere`]).
    Rename,
    /// `write`, `close`, `fsync` of a handle.
    Handle,
    /// Any other call on a name.
    Name,
    /// The control socket.
    Socket,
}

/// A place in a file, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TextPlace {
    /// Line.
    pub line: u32,
    /// Column, in characters.
    pub column: u32,
}

/// What kind of no a rule says. The exit code of a command goes by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grounds {
    /// What is named is not there.
    Absent,
    /// Others were faster, or something is in the way.
    Lost,
    /// The request makes no sense.
    Usage,
    /// What a text says.
    Content,
    /// How large something is, or how much there is of it.
    Size,
    /// The lifecycle, a role or the kind of thing does not allow it.
    Denied,
    /// A limit or a deadline.
    Limit,
    /// A disk is full.
    NoSpace,
    /// The store failed.
    Failed,
    /// The store is damaged.
    Damage,
}

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $grounds:ident,
        $errno:ident $(($($door:ident: $there:ident),*))?, $title:literal;)*) => {
        /// A rule that can refuse a change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum Rule { $($(#[$doc])* #[serde(rename = $code)] $name,)* }

        impl Rule {
            /// All rules, in the order of their codes.
            pub const ALL: &'static [Rule] = &[$(Rule::$name),*];

            /// The code that `why`, the log and `docs/errors.md` use.
            #[must_use]
            pub fn code(self) -> &'static str {
                match self { $(Rule::$name => $code,)* }
            }

            /// The rule that has this code.
            #[must_use]
            pub fn of_code(code: &str) -> Option<Rule> {
                Rule::ALL.iter().copied().find(|rule| rule.code() == code)
            }

            /// The rule in a few words.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self { $(Rule::$name => $title,)* }
            }

            /// What kind of no it says.
            #[must_use]
            pub fn grounds(self) -> Grounds {
                match self { $(Rule::$name => Grounds::$grounds,)* }
            }

            /// The errno that unmodified tools see.
            #[must_use]
            pub fn errno(self, door: Door) -> Errno {
                match (self, door) {
                    $($($((Rule::$name, Door::$door) => Errno::$there,)*)?
                    (Rule::$name, _) => Errno::$errno,)*
                }
            }
        }
    };
}

// A row each: the rule's code, its grounds, its errno (and through which doors it is another one), and the rule in
// a few words.
rules! {
    /// The name is not there (any more).
    Absent = "W001", Absent, ENOENT, "the name is not there";
    /// The name or id is taken.
    Taken = "W002", Lost, EEXIST, "the name or id is taken";
    /// Not a file name, or too long.
    BadName = "W003", Usage, EINVAL (Rename: EPERM), "not a valid name";
    /// Not a directory.
    NotDirectory = "W004", Usage, ENOTDIR, "not a directory";
    /// A directory.
    IsDirectory = "W005", Usage, EISDIR, "is a directory";
    /// The directory is not empty.
    NotEmpty = "W006", Lost, ENOTEMPTY, "the directory is not empty";
    // The one EINVAL that rename may return: POSIX demands it, and what `mv` then says
    // ("to a subdirectory of itself") is the truth.
    /// A directory cannot be moved below itself.
    Loop = "W007", Usage, EINVAL, "a directory cannot be moved below itself";
    /// Too large.
    TooLarge = "W008", Size, EFBIG, "too large";
    /// Computed or read-only.
    ReadOnly = "W009", Denied, EROFS, "read-only";
    // `mv` reads EINVAL as "to a subdirectory of itself", so content that a rename would
    // put in place is refused as what it is to a rename: not permitted.
    /// The text is not one strict YAML mapping.
    Syntax = "W010", Content, EINVAL (Rename: EPERM), "not a well-formed text";
    /// A field breaks the kind's schema.
    Schema = "W011", Content, EINVAL (Rename: EPERM), "a field breaks the schema";
    /// The `id` is not the file's name.
    IdDiffers = "W012", Content, EINVAL (Rename: EPERM), "the id differs from the file name";
    /// The status is not one of the directory's.
    StatusDiffers = "W013", Content, EINVAL (Rename: EPERM), "the status does not belong to the directory";
    /// The lifecycle has no such move of `status`.
    StatusMove = "W014", Content, EINVAL (Rename: EPERM), "the lifecycle has no such move of status";
    /// A field the state requires is missing.
    Required = "W015", Content, EINVAL (Rename: EPERM), "a field that the state requires is missing";
    /// A record would wait for itself.
    Cycle = "W016", Content, EINVAL (Rename: EPERM), "a record would wait for itself";
    /// The lifecycle has no such transition.
    Transition = "W020", Denied, EPERM, "the lifecycle has no such transition";
    /// A draft cannot change state or replace a record.
    Draft = "W021", Denied, EPERM, "a draft cannot change state or replace a record";
    /// Role or ownership forbids it.
    Forbidden = "W022", Denied, EACCES, "role or ownership forbids it";
    /// Another version was committed since the caller read the record.
    Stale = "W023", Lost, EBUSY, "another version was committed since you read it";
    /// A handle that wrote the record is still open.
    BeingWritten = "W024", Lost, EBUSY, "still being written";
    /// A governed directory that is in use cannot be moved or removed.
    InUse = "W025", Lost, EBUSY, "the directory is in use";
    /// A record cannot have a second name.
    OneName = "W026", Denied, EPERM, "a record has one name";
    /// A record's id cannot change.
    Renamed = "W027", Denied, EPERM, "a record keeps its id";
    /// A directory with files cannot become a governed one.
    Governed = "W028", Denied, EPERM, "a filled directory cannot become a governed one";
    // ESTALE from rename would be sent twice by the kernel.
    /// The handle's record is gone.
    Gone = "W029", Absent, ESTALE (Rename: ENOENT), "the record of this handle is gone";
    /// Not supported here.
    Unsupported = "W030", Denied, EOPNOTSUPP (Rename: EPERM), "not supported here";
    /// Longer than 255 bytes.
    NameTooLong = "W031", Usage, ENAMETOOLONG, "the name is too long";
    /// There is no such extended attribute.
    NoAttribute = "W032", Absent, ENODATA, "no such extended attribute";
    /// The file is being run.
    Running = "W033", Lost, ETXTBSY, "the file is being run";
    /// Too many names.
    TooManyLinks = "W034", Limit, EMLINK, "too many names of one file";
    // The old owner's name for it is gone, or soon to be.
    /// The claim that a change was begun under is over.
    LeaseOver = "W035", Lost, EACCES (Rename: ENOENT, Handle: ESTALE), "the claim is over";
    /// Others changed what a transaction used.
    Conflict = "W036", Lost, EBUSY, "others changed what the transaction used";
    // The kernel looks the name up again, and repeats the call.
    /// The caller's kernel may mean a directory that was moved away.
    Elsewhere = "W037", Lost, ESTALE, "another directory lies there";
    /// The caller's own save of it was refused just before.
    JustRefused = "W038", Lost, EBUSY, "your save of it was just refused";
    /// The disk is full.
    NoSpace = "W040", NoSpace, ENOSPC, "no space left for the store";
    /// Too many open files.
    TooManyHandles = "W041", Limit, EMFILE, "too many open files";
    /// The deadline passed.
    Deadline = "W042", Limit, ETIMEDOUT, "the deadline passed";
    /// The directory may not hold more.
    Quota = "W043", Limit, EDQUOT, "the directory may not hold more";
    // What setxattr(2) names for it, and what ext4 answers.
    /// More extended attributes, or longer ones, than a file can have.
    AttributesRoom = "W044", Size, ENOSPC, "too much for the extended attributes of a file";
    /// The store failed.
    Store = "W050", Failed, EIO, "the store failed";
    /// Something in the store cannot be.
    Damaged = "W051", Damage, EIO, "the store is damaged";
}

impl Rule {
    /// Whether it keeps one record from who may take any, who is then given the next best: the record's
    /// own text is in the way, or its name is taken where it would go.
    #[must_use]
    pub fn passes_over(self) -> bool {
        matches!(self, Rule::TooLarge | Rule::Syntax | Rule::Required | Rule::Taken)
    }

    /// Whether it is about what a text says.
    #[must_use]
    pub fn is_of_content(self) -> bool {
        self.grounds() == Grounds::Content
    }
}

/// A change that was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} [{}]", rule.code())]
pub struct Refusal {
    /// The rule that refused it.
    pub rule: Rule,
    /// What is wrong, naming the thing.
    pub reason: String,
    /// The way out.
    pub remedy: String,
    /// Where in the content, if it is about content.
    pub place: Option<TextPlace>,
}

impl Refusal {
    /// A refusal that is not about a place in content.
    pub fn new(rule: Rule, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Refusal { rule, reason: reason.into(), remedy: remedy.into(), place: None }
    }

    /// The refusal for a record that a program writes.
    pub fn being_written(name: impl std::fmt::Display) -> Self {
        let reason = format!("`{name}` is still open in a program that wrote to it");
        Refusal::new(Rule::BeingWritten, reason, "try again when that program has closed it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // P1.7. EXDEV is none of the mount's errnos at all.
    #[test]
    fn no_rule_gives_rename_an_errno_that_mv_would_misread() {
        for &rule in Rule::ALL {
            let errno = rule.errno(Door::Rename);
            assert!(errno != Errno::ENOSYS, "{rule:?}");
            assert!(errno != Errno::EINVAL || rule == Rule::Loop, "{rule:?}");
            assert!(errno != Errno::ESTALE || rule == Rule::Elsewhere, "{rule:?}");
        }
    }
}
