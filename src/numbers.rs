//! The numbers of the design, each its own type, so that none is taken for another.
//!
//! What must stay true: none of these is ever reused or decreases. Deliberately not here:
//! arithmetic beyond "the next one", and "so much later" of moments.

use std::fmt;
use std::time::Duration;

pub use workfs_mount::{Ino, Operation, Presence, ROOT, Requests, Times};

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The one after this.
            #[must_use]
            pub fn next(self) -> Self {
                $name(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

counter! {
    /// A place in the ledger's one total order. Dense: the first event is 1, none is missing.
    G
}
counter! {
    /// A version of one record's content; the first is 1.
    Version
}
counter! {
    /// How often a record has been claimed; the fencing token of its lease.
    Attempt
}
counter! {
    /// How many leases of a record ran out since it last lay anywhere but where it waits or is worked
    /// on: what the kind's `retries` are counted by.
    Lapses
}
counter! {
    /// A record's key in the store: stays the same while names, states and inodes change.
    RecordKey
}
counter! {
    /// How often the lead over a store's chores has changed hands; the fencing token of the leader.
    LeaderFence
}
counter! {
    /// A moment of the store's lease clock, in nanoseconds: it never goes back, and does not care
    /// what the wall clock is set to.
    LeaseTime
}
counter! {
    /// A workspace's key in the store.
    WorkspaceKey
}
counter! {
    /// The key of a plain file's past in the store.
    HistoryKey
}
counter! {
    /// A refusal's place in the order in which refusals happened.
    RefusalKey
}

impl LeaseTime {
    /// So many nanoseconds later.
    #[must_use]
    pub fn after(self, nanos: u64) -> Self {
        LeaseTime(self.0.saturating_add(nanos))
    }

    /// So many nanoseconds earlier.
    #[must_use]
    pub fn before(self, nanos: u64) -> Self {
        LeaseTime(self.0.saturating_sub(nanos))
    }
}

fn signed_nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// Nanoseconds since the Unix epoch, UTC. Orders what people read, never what the engine decides.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(transparent)]
pub struct UnixNanos(pub i64);

impl UnixNanos {
    /// So much later.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        UnixNanos(self.0.saturating_add(signed_nanos(time)))
    }

    /// So much earlier.
    #[must_use]
    pub fn before(self, time: Duration) -> Self {
        UnixNanos(self.0.saturating_sub(signed_nanos(time)))
    }

    /// RFC 3339 in UTC with nanoseconds, as the ledger and the logs write it.
    #[must_use]
    pub fn rfc3339(self) -> String {
        self.format(time::macros::format_description!(
            "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:9]Z"
        ))
    }

    /// RFC 3339 in UTC with whole seconds, as records carry it.
    #[must_use]
    pub fn rfc3339_seconds(self) -> String {
        self.format(time::macros::format_description!(
            "[year]-[month]-[day]T[hour]:[minute]:[second]Z"
        ))
    }

    /// The last time that somebody can name: of the year 2262. The one after it is free for what is no time.
    pub const LAST: UnixNanos = UnixNanos(i64::MAX - 1);

    /// A time in RFC 3339, in any zone. One that lies further away than can be counted is the first or the
    /// last that can, since texts have such for "always" and "never".
    #[must_use]
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let form = &time::format_description::well_known::Rfc3339;
        time::OffsetDateTime::parse(text, form).ok().map(UnixNanos::of)
    }

    /// A moment as people name it: a time with its zone, as [`Self::parse_rfc3339`], or a day in UTC, `2026-11-21`,
    /// which is its beginning.
    #[must_use]
    pub fn parse_moment(text: &str) -> Option<Self> {
        UnixNanos::parse_rfc3339(text).or_else(|| UnixNanos::parse_day(text))
    }

    /// A day in UTC, `2026-11-21`, which is its beginning; further away as [`Self::parse_rfc3339`].
    #[must_use]
    pub fn parse_day(text: &str) -> Option<Self> {
        let form = time::macros::format_description!("[year]-[month]-[day]");
        let day = time::Date::parse(text, form).ok()?;
        Some(UnixNanos::of(day.midnight().assume_utc()))
    }

    fn of(at: time::OffsetDateTime) -> Self {
        let (first, last) = (i128::from(i64::MIN), i128::from(UnixNanos::LAST.0));
        let nanos = at.unix_timestamp_nanos().clamp(first, last);
        UnixNanos(i64::try_from(nanos).unwrap_or(UnixNanos::LAST.0))
    }

    /// Year and month, `2026-11`, as archive directories are named.
    #[must_use]
    pub fn year_month(self) -> String {
        self.format(time::macros::format_description!("[year]-[month]"))
    }

    fn format(self, form: &[time::format_description::BorrowedFormatItem<'_>]) -> String {
        // An i64 of nanoseconds spans the years 1677 to 2262, all of which `time` can write.
        time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0))
            .ok()
            .and_then(|at| at.format(form).ok())
            .unwrap_or_else(|| format!("@{}ns", self.0))
    }
}
