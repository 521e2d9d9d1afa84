//! The transactions that are open, and the files that are open in them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use workfs_mount::{Caller, Errno, Handle, MountId, Shares};

use crate::limits::{HANDLES_MAX, TXNS_IN_MOUNT_MAX, TXNS_MAX, TXNS_OF_ONE_MAX};
use crate::names::{AgentName, FileName};
use crate::numbers::Ino;
use crate::refusal::{Door, Refusal, Rule};
use crate::tree::handles::pins::{Charge, Text};
use crate::tree::handles::{Held, OpenCounts};

use super::number::Slot;
use super::view::{TxnEntry, View};

/// An open transaction: it belongs to the mount that it was made through.
#[derive(Clone)]
pub struct Txn {
    pub slot: Slot,
    pub mount: MountId,
    /// The user and group that made it.
    pub maker: (u32, u32),
    /// For whom: who has too many has them whatever the mount.
    pub whose: AgentName,
    pub name: FileName,
    pub view: Arc<Mutex<View>>,
}

/// All that are open.
pub struct Table {
    open: BTreeMap<Slot, Txn>,
    next: Slot,
}

impl Default for Table {
    fn default() -> Self {
        Table { open: BTreeMap::new(), next: Slot::FIRST }
    }
}

impl Txn {
    /// Whether it is the caller's. What the kernel does of itself, as writing a mapping's pages, it does
    /// as nobody.
    pub fn is_of(&self, caller: &Caller) -> bool {
        caller.uid == self.maker.0 || caller.pid == 0
    }
}

impl Table {
    /// The transaction of a number.
    pub fn get(&self, slot: Slot) -> Option<Txn> {
        self.open.get(&slot).cloned()
    }

    /// The one of this name in a mount.
    pub fn find(&self, mount: MountId, name: &FileName) -> Option<Txn> {
        self.of(mount).find(|txn| txn.name == *name).cloned()
    }

    /// Those of a mount.
    pub fn of(&self, mount: MountId) -> impl Iterator<Item = &Txn> {
        self.open.values().filter(move |txn| txn.mount == mount)
    }

    /// Opens one, for whom the caller acts.
    pub fn begin(
        &mut self,
        (caller, whose): (&Caller, AgentName),
        name: FileName,
        view: View,
    ) -> Result<Txn, Refusal> {
        let (mount, maker) = (caller.mount, (caller.uid, caller.gid));
        if self.find(mount, &name).is_some() {
            let reason = format!("`{name}` is a transaction already");
            return Err(Refusal::new(Rule::Taken, reason, "give yours another name"));
        }
        let own = |txn: &&Txn| txn.whose == whose;
        let limits = [
            (
                self.of(mount).filter(own).count(),
                TXNS_IN_MOUNT_MAX,
                "of one agent or user in a mount",
            ),
            (self.open.values().filter(own).count(), TXNS_OF_ONE_MAX, "of one agent or user"),
            (self.open.len(), TXNS_MAX, "in a daemon"),
        ];
        if let Some((_, most, of)) = limits.into_iter().find(|(count, most, _)| count >= most) {
            let reason = format!("at most {most} transactions {of} are open at once");
            let remedy =
                "`rmdir` yours in .workfs/txn/ that are not in use (an operator, anybody's)";
            return Err(Refusal::new(Rule::TooManyHandles, reason, remedy));
        }
        while self.open.contains_key(&self.next) {
            self.next = self.next.next();
        }
        let slot = self.next;
        self.next = slot.next();
        let txn = Txn { slot, mount, maker, whose, name, view: Arc::new(Mutex::new(view)) };
        self.open.insert(slot, txn.clone());
        Ok(txn)
    }

    /// Ends one.
    pub fn end(&mut self, slot: Slot) {
        self.open.remove(&slot);
    }

    /// Ends those of a mount.
    pub fn end_mount(&mut self, mount: MountId) {
        self.open.retain(|_, txn| txn.mount != mount);
    }
}

/// An open file or directory of a transaction.
pub enum TxnOpen {
    File {
        /// The file, if it may be written by this, or was made or cut.
        writes: Option<Ino>,
        /// What the file was at `open`, where it is governed.
        pinned: Option<Text>,
        /// What lies below stays for as long as this is open, whatever others do to its name.
        _held: Option<Held>,
    },
    Directory(Mutex<Listed>),
}

impl TxnOpen {
    /// What a governed file was at `open`.
    pub fn pinned(&self) -> Option<&[u8]> {
        match self {
            TxnOpen::File { pinned, .. } => pinned.as_deref(),
            TxnOpen::Directory(_) => None,
        }
    }

    /// The file that may be written by this.
    pub fn writes(&self) -> Option<Ino> {
        match self {
            TxnOpen::File { writes, .. } => *writes,
            TxnOpen::Directory(_) => None,
        }
    }
}

/// The names of a directory as they were when the listing began.
#[derive(Default)]
pub struct Listed {
    pub names: Vec<TxnEntry>,
    /// They count for who lists.
    pub _charge: Option<Charge>,
}

/// Above all other handles.
const OURS: u64 = 1 << 63;

/// Whether a handle is one of a transaction. All others pass by without a lock.
pub fn is_ours(handle: Handle) -> bool {
    handle.0 & OURS != 0
}

/// All that are open.
pub struct Handles {
    /// Each with the mount that it was opened through, and who opened it.
    table: HashMap<u64, ((MountId, u32), Arc<TxnOpen>)>,
    /// By how many of them each file may be written.
    writers: OpenCounts,
    shares: Shares,
    last: u64,
}

impl Default for Handles {
    fn default() -> Self {
        Handles {
            table: HashMap::new(),
            writers: OpenCounts::default(),
            shares: Shares::of(HANDLES_MAX),
            last: 0,
        }
    }
}

impl Handles {
    /// Makes a handle for who opens it.
    pub fn insert(&mut self, by: &Caller, open: TxnOpen) -> Result<Handle, Errno> {
        self.shares.take(by.uid).map_err(|_| Rule::TooManyHandles.errno(Door::Name))?;
        self.last += 1;
        if let Some(ino) = open.writes() {
            self.writers.add(ino);
        }
        self.table.insert(self.last, ((by.mount, by.uid), Arc::new(open)));
        Ok(Handle(OURS | self.last))
    }

    /// What a handle of a transaction has open.
    pub fn get(&self, handle: Handle) -> Option<Arc<TxnOpen>> {
        let (_, open) = self.table.get(&(handle.0 & !OURS))?;
        Some(Arc::clone(open))
    }

    /// Forgets those of a mount that has ended, of which its kernel may have told nothing more.
    pub fn end_mount(&mut self, mount: MountId) {
        let ended = self.table.extract_if(|_, ((through, _), _)| *through == mount);
        let ended: Vec<_> = ended.map(|(_, ((_, user), open))| (user, open)).collect();
        ended.into_iter().for_each(|(user, open)| self.forget(user, &open));
    }

    /// Forgets a handle of a transaction.
    pub fn remove(&mut self, handle: Handle) {
        if let Some(((_, user), open)) = self.table.remove(&(handle.0 & !OURS)) {
            self.forget(user, &open);
        }
    }

    /// Whether a file may be written by a handle that is open.
    pub fn may_be_written(&self, ino: Ino) -> bool {
        self.writers.is_open(ino)
    }

    fn forget(&mut self, user: u32, open: &TxnOpen) {
        self.shares.give_back(user);
        if let Some(ino) = open.writes() {
            self.writers.remove(ino);
        }
    }
}
