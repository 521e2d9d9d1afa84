//! How many requests came, of which operation, and how long they took: for whoever watches over a process.
//!
//! What must stay true: no count falls, and who was answered is counted already; counting takes no lock and no
//! memory. Deliberately not here: how it is shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

macro_rules! operations {
    ($($name:ident = $word:literal,)*) => {
        /// What a kernel asks for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the word of each row says it")]
        pub enum Operation { $($name,)* }

        impl Operation {
            /// All of them.
            pub const ALL: &'static [Operation] = &[$(Operation::$name),*];

            /// Its name, as the kernel's protocol has it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Operation::$name => $word,)* }
            }
        }
    };
}

operations! {
    Access = "access",
    Create = "create",
    Fallocate = "fallocate",
    Flush = "flush",
    Forget = "forget",
    Fsync = "fsync",
    Fsyncdir = "fsyncdir",
    Getattr = "getattr",
    Getlk = "getlk",
    Getxattr = "getxattr",
    Link = "link",
    Listxattr = "listxattr",
    Lookup = "lookup",
    Lseek = "lseek",
    Mkdir = "mkdir",
    Mknod = "mknod",
    Open = "open",
    Opendir = "opendir",
    Poll = "poll",
    Read = "read",
    Readdir = "readdir",
    Readdirplus = "readdirplus",
    Readlink = "readlink",
    Release = "release",
    Releasedir = "releasedir",
    Removexattr = "removexattr",
    Rename = "rename",
    Rmdir = "rmdir",
    Setattr = "setattr",
    Setlk = "setlk",
    Setxattr = "setxattr",
    Statfs = "statfs",
    Symlink = "symlink",
    Unlink = "unlink",
    Write = "write",
}

/// Durations, by how many were no longer than each of some bounds.
#[derive(Debug, Default)]
pub struct Times {
    /// By the first bound of [`BOUNDS`](Self::BOUNDS) that they are within; the last: longer than all.
    within: [AtomicU64; Times::BOUNDS.len() + 1],
    sum_ns: AtomicU64,
}

impl Times {
    /// From what a request or a commit takes that waits for nothing to more than the deadline of one.
    pub const BOUNDS: [Duration; 8] = [
        Duration::from_micros(100),
        Duration::from_micros(250),
        Duration::from_micros(500),
        Duration::from_millis(1),
        Duration::from_micros(2_500),
        Duration::from_millis(10),
        Duration::from_millis(100),
        Duration::from_millis(2_500),
    ];

    /// One more.
    pub fn note(&self, time: Duration) {
        let at = Self::BOUNDS.iter().position(|bound| time <= *bound);
        self.within[at.unwrap_or(Self::BOUNDS.len())].fetch_add(1, Ordering::Relaxed);
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// How many there were by each bound, and at last by none.
    #[must_use]
    pub fn within(&self) -> [u64; Times::BOUNDS.len() + 1] {
        std::array::from_fn(|nth| self.within[nth].load(Ordering::Relaxed))
    }

    /// Their sum.
    #[must_use]
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_ns.load(Ordering::Relaxed))
    }
}

/// The requests of all mounts of a tree.
#[derive(Debug)]
pub struct Requests {
    of: [Times; Operation::ALL.len()],
    late: AtomicU64,
}

impl Default for Requests {
    fn default() -> Self {
        Requests { of: std::array::from_fn(|_| Times::default()), late: AtomicU64::new(0) }
    }
}

impl Requests {
    /// Those of one operation that were answered.
    #[must_use]
    pub fn of(&self, operation: Operation) -> &Times {
        &self.of[operation as usize]
    }

    /// How many were answered that their deadline had passed.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.late.load(Ordering::Relaxed)
    }

    /// Begins one: it is counted when what is returned is dropped.
    pub(crate) fn begin(self: &Arc<Self>, operation: Operation) -> Under {
        Under { requests: Arc::clone(self), operation, began: Instant::now() }
    }
}

/// A request under way.
pub(crate) struct Under {
    requests: Arc<Requests>,
    operation: Operation,
    began: Instant,
}

impl Under {
    /// It is answered that its deadline has passed.
    pub(crate) fn note_late(&self) {
        self.requests.late.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Under {
    fn drop(&mut self) {
        self.requests.of(self.operation).note(self.began.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_counted_where_it_belongs() {
        let times = Times::default();
        for micros in [10, 100, 101, 2_500, 3_000_000] {
            times.note(Duration::from_micros(micros));
        }
        assert_eq!(times.within(), [2, 1, 0, 0, 1, 0, 0, 0, 1]);
        assert_eq!(times.sum(), Duration::from_micros(3_002_711));
    }

    #[test]
    fn each_operation_has_a_place_of_its_own() {
        for (nth, operation) in Operation::ALL.iter().enumerate() {
            assert_eq!(*operation as usize, nth, "{operation:?}");
        }
    }
}
