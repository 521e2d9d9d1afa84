//! A refusal: which rule said no to whom about what, and the way out.
//!
//! What must stay true: every refusal that a user can meet has a [`Rule`] with a code and a
//! paragraph in `docs/errors.md`; the errno is chosen in [`Rule::errno`] and nowhere else.

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

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $title:literal;)*) => {
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
        }
    };
}

rules! {
    /// The name is not there (any more).
    Absent = "W001", "the name is not there";
    /// The name or id is taken.
    Taken = "W002", "the name or id is taken";
    /// Not a file name, or too long.
    BadName = "W003", "not a valid name";
    /// Not a directory.
    NotDirectory = "W004", "not a directory";
    /// A directory.
    IsDirectory = "W005", "is a directory";
    /// The directory is not empty.
    NotEmpty = "W006", "the directory is not empty";
    /// A directory cannot be moved below itself.
    Loop = "W007", "a directory cannot be moved below itself";
    /// Too large.
    TooLarge = "W008", "too large";
    /// Computed or read-only.
    ReadOnly = "W009", "read-only";
    /// The text is not one strict YAML mapping.
    Syntax = "W010", "not a well-formed text";
    /// A field breaks the kind's schema.
    Schema = "W011", "a field breaks the schema";
    /// The `id` is not the file's name.
    IdDiffers = "W012", "the id differs from the file name";
    /// The status is not one of the directory's.
    StatusDiffers = "W013", "the status does not belong to the directory";
    /// The lifecycle has no such move of `status`.
    StatusMove = "W014", "the lifecycle has no such move of status";
    /// A field the state requires is missing.
    Required = "W015", "a field that the state requires is missing";
    /// A record would wait for itself.
    Cycle = "W016", "a record would wait for itself";
    /// The lifecycle has no such transition.
    Transition = "W020", "the lifecycle has no such transition";
    /// A draft cannot change state or replace a record.
    Draft = "W021", "a draft cannot change state or replace a record";
    /// Role or ownership forbids it.
    Forbidden = "W022", "role or ownership forbids it";
    /// Another version was committed since the caller read the record.
    Stale = "W023", "another version was committed since you read it";
    /// A handle that wrote the record is still open.
    BeingWritten = "W024", "still being written";
    /// A governed directory that is in use cannot be moved or removed.
    InUse = "W025", "the directory is in use";
    /// A record cannot have a second name.
    OneName = "W026", "a record has one name";
    /// A record's id cannot change.
    Renamed = "W027", "a record keeps its id";
    /// A directory with files cannot become a governed one.
    Governed = "W028", "a filled directory cannot become a governed one";
    /// The handle's record is gone.
    Gone = "W029", "the record of this handle is gone";
    /// Not supported here.
    Unsupported = "W030", "not supported here";
    /// Longer than 255 bytes.
    NameTooLong = "W031", "the name is too long";
    /// There is no such extended attribute.
    NoAttribute = "W032", "no such extended attribute";
    /// The file is being run.
    Running = "W033", "the file is being run";
    /// Too many names.
    TooManyLinks = "W034", "too many names of one file";
    /// The claim that a change was begun under is over.
    LeaseOver = "W035", "the claim is over";
    /// Others changed what a transaction used.
    Conflict = "W036", "others changed what the transaction used";
    /// The caller's kernel may mean a directory that was moved away.
    Elsewhere = "W037", "another directory lies there";
    /// The caller's own save of it was refused just before.
    JustRefused = "W038", "your save of it was just refused";
    /// The disk is full.
    NoSpace = "W040", "no space left for the store";
    /// Too many open files.
    TooManyHandles = "W041", "too many open files";
    /// The deadline passed.
    Deadline = "W042", "the deadline passed";
    /// The directory may not hold more.
    Quota = "W043", "the directory may not hold more";
    /// More extended attributes, or longer ones, than a file can have.
    AttributesRoom = "W044", "too much for the extended attributes of a file";
    /// The store failed.
    Store = "W050", "the store failed";
    /// Something in the store cannot be.
    Damaged = "W051", "the store is damaged";
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
        matches!(
            self,
            Rule::Syntax
                | Rule::Schema
                | Rule::IdDiffers
                | Rule::StatusDiffers
                | Rule::StatusMove
                | Rule::Required
                | Rule::Cycle
        )
    }

    /// The errno that unmodified tools see.
    #[must_use]
    pub fn errno(self, door: Door) -> Errno {
        match self {
            Rule::Absent => Errno::ENOENT,
            Rule::Taken => Errno::EEXIST,
            Rule::NameTooLong => Errno::ENAMETOOLONG,
            Rule::NoAttribute => Errno::ENODATA,
            Rule::BadName if door == Door::Rename => Errno::EPERM,
            Rule::BadName => Errno::EINVAL,
            Rule::NotDirectory => Errno::ENOTDIR,
            Rule::IsDirectory => Errno::EISDIR,
            Rule::NotEmpty => Errno::ENOTEMPTY,
            // The one EINVAL that rename may return: POSIX demands it, and what `mv` then says
            // ("to a subdirectory of itself") is the truth.
            Rule::Loop => Errno::EINVAL,
            Rule::TooLarge => Errno::EFBIG,
            Rule::ReadOnly => Errno::EROFS,
            // `mv` reads EINVAL as "to a subdirectory of itself", so content that a rename would
            // put in place is refused as what it is to a rename: not permitted.
            rule if door == Door::Rename && rule.is_of_content() => Errno::EPERM,
            Rule::Syntax
            | Rule::Schema
            | Rule::IdDiffers
            | Rule::StatusDiffers
            | Rule::StatusMove
            | Rule::Required
            | Rule::Cycle => Errno::EINVAL,
            Rule::Transition | Rule::Draft | Rule::OneName | Rule::Renamed | Rule::Governed => {
                Errno::EPERM
            }
            Rule::Forbidden => Errno::EACCES,
            Rule::Stale | Rule::BeingWritten | Rule::InUse | Rule::Conflict | Rule::JustRefused => {
                Errno::EBUSY
            }
            // ESTALE from rename would be sent twice by the kernel.
            Rule::Gone if door == Door::Rename => Errno::ENOENT,
            Rule::Gone => Errno::ESTALE,
            // The old owner's name for it is gone, or soon to be.
            Rule::LeaseOver if door == Door::Rename => Errno::ENOENT,
            Rule::LeaseOver if door == Door::Handle => Errno::ESTALE,
            Rule::LeaseOver => Errno::EACCES,
            // The kernel looks the name up again, and repeats the call.
            Rule::Elsewhere => Errno::ESTALE,
            Rule::Unsupported if door == Door::Rename => Errno::EPERM,
            Rule::Unsupported => Errno::EOPNOTSUPP,
            Rule::Running => Errno::ETXTBSY,
            Rule::TooManyLinks => Errno::EMLINK,
            // What setxattr(2) names for it, and what ext4 answers.
            Rule::NoSpace | Rule::AttributesRoom => Errno::ENOSPC,
            Rule::TooManyHandles => Errno::EMFILE,
            Rule::Quota => Errno::EDQUOT,
            Rule::Deadline => Errno::ETIMEDOUT,
            Rule::Store | Rule::Damaged => Errno::EIO,
        }
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
