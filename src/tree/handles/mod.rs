//! Open files and directories: opening, reading and closing them, and what a handle pins and stages meanwhile.
//!
//! What must stay true: whoever has a record open reads the version that was current at its `open` (or when it had
//! a lock, and had not read before), or what it has written since; whatever an open file counts in ends with it.
//! Deliberately not here: what is written (`saves`), and names (`nodes`).

mod apart;
mod filled;
pub(super) mod hold;
mod locked;
pub(super) mod open;
pub(super) mod overtaken;
pub(super) mod pins;
pub(super) mod read;
mod release;
mod seek;
mod sizes;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::{Mutex, RwLock};
use workfs_mount::{Caller, Handle, MountId, Shares, UsedUp};

use crate::limits::{HANDLES_MAX, READ_AT_ONCE_WITHIN};
use crate::numbers::Ino;
use crate::refusal::{Refusal, Rule};
use crate::store::OrderKey;
use crate::tree::Hub;
use crate::tree::computed::listing::ComputedNames;
use crate::tree::nodes::cleanups::Cleanups;
use crate::tree::nodes::cursor::Cursor;
use crate::tree::nodes::kept_listing::Short;
use crate::tree::ready::waits::Waited;
use crate::tree::saves::plain_save::Wrote;
use crate::tree::saves::staged::{Pages, Staged};
use filled::{Filled, Ranges};
use hold::Hold;
use pins::{Pins, Text};
use sizes::{Own, Sizes};

/// An open file or directory.
pub(super) enum Open {
    /// A plain file: reads and writes go to the store.
    Plain {
        /// It was opened to append.
        append: bool,
        /// The kernel runs the file.
        runs: bool,
        /// Whether it wrote.
        wrote: Wrote,
        /// It is only read.
        reads: bool,
        /// It may be mapped to be written: such bytes we hear of when the kernel writes them.
        maps: bool,
    },
    /// A record or draft: reads come from the version that was current at `open`, writes are
    /// staged until they are judged.
    Staged(Box<Mutex<Staged>>),
    /// A record that its owner holds.
    Hold(Box<Hold>),
    /// A computed file, rendered at `open`.
    Fixed(Text),
    /// The event stream, which grows.
    Events,
    /// A directory.
    Directory(Mutex<Cursor>),
    /// A plain directory of few names, whose listing kernels keep.
    Short(Short),
    /// A computed directory.
    Computed(ComputedNames),
    /// `ready/`.
    Ready(Mutex<Cursor<OrderKey>>),
    /// `.wait` of a workspace.
    Wait(Box<Waited>),
}

impl Open {
    /// Counts what it keeps in memory for the user who opens it.
    pub fn count(&mut self, pins: &Pins, user: u32) -> Result<(), Refusal> {
        match self {
            Open::Staged(staged) => pins.count(user, &mut staged.get_mut().pinned),
            Open::Fixed(text) => pins.count(user, text),
            _ => Ok(()),
        }
    }

    /// Whether it is a plain file whose content is judged.
    pub fn is_checked(&self) -> bool {
        matches!(self, Open::Staged(staged) if staged.lock().is_checked())
    }
}

/// How many handles an inode has, and whether it has come to lie where rules count since it has any.
#[derive(Default)]
pub(super) struct OpenCounts(Mutex<HashMap<Ino, (u32, bool)>>);

impl OpenCounts {
    pub fn is_open(&self, ino: Ino) -> bool {
        self.0.lock().contains_key(&ino)
    }

    /// What is saved by the handles of a file counts from now on, wherever they were opened.
    pub fn count_from_now(&self, ino: Ino) {
        if let Some((_, counts)) = self.0.lock().get_mut(&ino) {
            *counts = true;
        }
    }

    /// Whether it does.
    pub fn counts(&self, ino: Ino) -> bool {
        self.0.lock().get(&ino).is_some_and(|(_, counts)| *counts)
    }

    /// How many handles all have together.
    pub fn sum(&self) -> u64 {
        self.0.lock().values().map(|(count, _)| u64::from(*count)).sum()
    }

    pub fn add(&self, ino: Ino) {
        self.0.lock().entry(ino).or_default().0 += 1;
    }

    pub fn remove(&self, ino: Ino) {
        let mut counts = self.0.lock();
        if let Some((count, _)) = counts.get_mut(&ino) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&ino);
            }
        }
    }
}

/// Since when handles are open by which nobody has read yet, by inode.
#[derive(Default)]
pub(super) struct Unread(Mutex<HashMap<Ino, Vec<Instant>>>);

impl Unread {
    /// Whether one is open for longer than who is about to read takes for it.
    pub fn has_rested(&self, ino: Ino) -> bool {
        let handles = self.0.lock();
        let Some(since) = handles.get(&ino) else { return false };
        since.iter().any(|since| since.elapsed() >= READ_AT_ONCE_WITHIN)
    }

    fn add(&self, ino: Ino, since: Instant) {
        self.0.lock().entry(ino).or_default().push(since);
    }

    fn remove(&self, ino: Ino, since: Instant) {
        let mut handles = self.0.lock();
        let Some(all) = handles.get_mut(&ino) else { return };
        if let Some(at) = all.iter().position(|of| *of == since) {
            all.swap_remove(at);
        }
        if all.is_empty() {
            handles.remove(&ino);
        }
    }
}

/// A handle's row.
struct Row {
    ino: Ino,
    /// The mount that it was opened through.
    mount: MountId,
    /// Who opened it.
    user: u32,
    /// The thread that opened it.
    opener: u32,
    open: Arc<Open>,
}

struct Table {
    rows: HashMap<u64, Row>,
    shares: Shares,
}

/// All open handles.
pub(super) struct Handles {
    table: RwLock<Table>,
    next: AtomicU64,
    /// Handles that run their file, by inode.
    running: OpenCounts,
    /// Handles that may be mapped to be written, by inode.
    mappable: OpenCounts,
    filled: Filled,
    /// Of what size the texts are that handles have.
    pub sizes: Sizes,
    /// Saves by handles that were refused a moment ago.
    pub cleanups: Cleanups,
    hub: Arc<Hub>,
}

impl Table {
    fn remove(&mut self, handle: Handle) -> Option<Row> {
        let row = self.rows.remove(&handle.0)?;
        self.shares.give_back(row.user);
        Some(row)
    }
}

/// An inode that is held open, before its handle exists: registered first, so that it is not
/// reclaimed while `open` looks at it.
pub(super) struct Held {
    ino: Ino,
    hub: Arc<Hub>,
    kept: bool,
}

impl Held {
    pub fn ino(&self) -> Ino {
        self.ino
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.kept {
            self.hub.open.remove(self.ino);
        }
    }
}

/// What a user is told who can have no handle.
fn no_handle(user: u32, why: UsedUp) -> Refusal {
    let reason = match why {
        UsedUp::Own(own) => {
            format!("user {user} has {own} files open, which is one user's share")
        }
        UsedUp::All(all) | UsedUp::Rest(all) => format!("{all} files are open in this daemon"),
    };
    Refusal::new(Rule::TooManyHandles, reason, "close some")
}

impl Handles {
    pub fn new(hub: Arc<Hub>) -> Self {
        Handles {
            table: RwLock::new(Table { rows: HashMap::new(), shares: Shares::of(HANDLES_MAX) }),
            next: AtomicU64::new(1),
            running: OpenCounts::default(),
            mappable: OpenCounts::default(),
            filled: Filled::default(),
            sizes: Sizes::default(),
            cleanups: Cleanups::default(),
            hub,
        }
    }

    /// Holds `ino` open.
    pub fn hold(&self, ino: Ino) -> Held {
        self.hub.open.add(ino);
        Held { ino, hub: Arc::clone(&self.hub), kept: false }
    }

    /// Makes a handle of a held inode for who opens it.
    pub fn insert(&self, by: &Caller, mut held: Held, mut open: Open) -> Result<Handle, Refusal> {
        let mut table = self.table.write();
        // Its kernel closes nothing any more: see `WorkTree::end_mount`.
        if self.hub.identity(by.mount).is_none() {
            return Err(Refusal::new(Rule::Gone, "the mount has ended", "mount it again"));
        }
        table.shares.take(by.uid).map_err(|why| no_handle(by.uid, why))?;
        held.kept = true;
        if matches!(open, Open::Plain { runs: true, .. }) {
            self.running.add(held.ino);
        }
        if matches!(open, Open::Plain { maps: true, .. }) {
            self.mappable.add(held.ino);
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // Nobody else has it yet: who has locked one looks for others in the table.
        if let Open::Staged(staged) = &mut open {
            let staged = staged.get_mut();
            staged.opened_by = Some(*by);
            self.note_text(by, (held.ino, Handle(number)), staged);
            if !staged.writes {
                self.note_pages(held.ino, staged, Pages::Perhaps(Instant::now()));
            }
        }
        let (mount, user, opener, open) = (by.mount, by.uid, by.pid, Arc::new(open));
        table.rows.insert(number, Row { ino: held.ino, mount, user, opener, open });
        Ok(Handle(number))
    }

    /// Whether who asks could have one more handle.
    pub fn require_room(&self, by: &Caller) -> Result<(), Refusal> {
        self.table.read().shares.require(by.uid).map_err(|why| no_handle(by.uid, why))
    }

    /// The thread that opened a handle.
    pub fn opener(&self, handle: Handle) -> Option<u32> {
        self.table.read().rows.get(&handle.0).map(|row| row.opener)
    }

    pub fn get(&self, handle: Handle) -> Option<Arc<Open>> {
        self.table.read().rows.get(&handle.0).map(|row| Arc::clone(&row.open))
    }

    /// The handles of a file that were opened through this mount, each with the thread that opened it. It looks
    /// at all handles.
    pub fn of_file(&self, mount: MountId, ino: Ino) -> Vec<(Handle, u32, Arc<Open>)> {
        let table = self.table.read();
        let rows = table.rows.iter().filter(|(_, row)| row.mount == mount && row.ino == ino);
        rows.map(|(number, row)| (Handle(*number), row.opener, Arc::clone(&row.open))).collect()
    }

    /// Whether a file is open through any mount. It looks at all handles.
    pub fn is_open(&self, ino: Ino) -> bool {
        self.table.read().rows.values().any(|row| row.ino == ino)
    }

    /// The handles that were opened through `mount`, each with its inode.
    pub fn of_mount(&self, mount: MountId) -> Vec<(Ino, Handle)> {
        let table = self.table.read();
        let rows = table.rows.iter().filter(|(_, row)| row.mount == mount);
        rows.map(|(number, row)| (row.ino, Handle(*number))).collect()
    }

    /// Forgets a handle.
    pub fn remove(&self, handle: Handle) -> Option<Arc<Open>> {
        let Row { ino, mount, open, .. } = self.table.write().remove(handle)?;
        self.sizes.end(mount, ino, handle);
        self.hub.settling.closed(mount, ino, handle);
        if matches!(*open, Open::Plain { runs: true, .. }) {
            self.running.remove(ino);
        }
        if matches!(*open, Open::Plain { maps: true, .. }) {
            self.mappable.remove(ino);
        }
        if let Open::Staged(staged) = &*open {
            self.note_pages(ino, &mut staged.lock(), Pages::None);
        }
        self.hub.open.remove(ino);
        Some(open)
    }

    /// Notes what a handle has: a thread opened it, or changed it.
    pub fn note_text(&self, by: &Caller, of: (Ino, Handle), staged: &Staged) {
        let process = self.hub.seen.lineages.process_of(by.pid);
        self.sizes.note((by.mount, of.0), Own::new(of.1, (by.pid, process), staged));
    }

    /// Notes that a descriptor of a handle was closed, with which its writing ends.
    pub fn note_closed(&self, by: &Caller, (ino, handle): (Ino, Handle)) {
        let process = self.hub.seen.lineages.process_of(by.pid);
        self.sizes.close((by.mount, ino), handle, (by.pid, process));
    }

    /// Notes that the kernel asks for what this handle reads: for a program that reads, or to fill a page.
    pub fn note_asked(&self, ino: Ino, staged: &mut Staged, fills_page: bool) {
        match (staged.pages, fills_page) {
            (_, true) => self.note_pages(ino, staged, Pages::Some),
            // Whoever reads has no need to map.
            (Pages::Perhaps(_), false) => self.note_pages(ino, staged, Pages::None),
            (Pages::None | Pages::Some, false) => {}
        }
    }

    fn note_pages(&self, ino: Ino, staged: &mut Staged, now: Pages) {
        let was = std::mem::replace(&mut staged.pages, now);
        if was == now {
            return;
        }
        match now {
            Pages::None => {}
            Pages::Perhaps(since) => self.hub.unread.add(ino, since),
            Pages::Some => self.hub.mapped.add(ino),
        }
        // Afterwards, so that it is never in neither.
        match was {
            Pages::None => {}
            Pages::Perhaps(since) => self.hub.unread.remove(ino, since),
            Pages::Some => self.hub.mapped.remove(ino),
        }
    }

    /// Whether this file is run.
    pub fn is_running(&self, ino: Ino) -> bool {
        self.running.is_open(ino)
    }

    /// Where a mapping may have written what is not told of yet.
    fn unwritten(&self, ino: Ino) -> Ranges {
        match self.mappable.is_open(ino) {
            true => self.filled.of(ino),
            false => Ranges::default(),
        }
    }

    /// Whether it is run through another mount than this.
    pub fn is_running_beside(&self, mount: MountId, ino: Ino) -> bool {
        let runs = |row: &Row| matches!(*row.open, Open::Plain { runs: true, .. });
        let beside = |row: &Row| row.ino == ino && row.mount != mount && runs(row);
        self.is_running(ino) && self.table.read().rows.values().any(beside)
    }
}
