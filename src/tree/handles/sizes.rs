//! What size a file has, and to whom.
//!
//! To everybody it has that of what was saved last. But who has it open reads what was current then, or
//! what it has written since, and goes by the size of that (`fstat`, SEEK_END): to read it to its end,
//! or to write on behind it. What must stay true: a kernel has one size of an inode, whoever asks, so
//! it keeps none while there are two, and while somebody writes it is the writer's: where another's
//! came in between, SEEK_END would lead the writer into its own text.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use workfs_mount::{Attr, Caller, Entry, Handle, MountId, Reply};

use crate::numbers::Ino;
use crate::tree::WorkTree;
use crate::tree::callers::inherited::has_open;

/// A handle that has a text of its own.
#[derive(Clone, Copy)]
struct Own {
    handle: u64,
    /// The thread that opened it, or the one that wrote last.
    by: u32,
    size: u64,
    /// It was opened to be written, and was not closed since it was written last.
    writes: bool,
    closed: Option<Closed>,
}

/// How a handle is of which a descriptor was closed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Closed {
    /// Nothing of what it wrote is to be saved.
    Saved,
    /// What it wrote was refused, or is not judged yet.
    Unsaved,
}

/// All such handles, by what each mount's kernel knows.
#[derive(Default)]
pub(in crate::tree) struct Sizes {
    files: Mutex<HashMap<(MountId, Ino), Vec<Own>>>,
    /// How many files they are: where there is none, nobody takes the lock.
    count: AtomicUsize,
}

impl Sizes {
    /// A thread opens a handle with a text of this size, or changes it.
    pub fn note(&self, by: &Caller, (ino, handle): (Ino, Handle), size: u64, writes: bool) {
        let mut files = self.files.lock();
        let owns = files.entry((by.mount, ino)).or_default();
        // The newest comes last.
        owns.retain(|own| own.handle != handle.0);
        owns.push(Own { handle: handle.0, by: by.pid, size, writes, closed: None });
        self.count.store(files.len(), Ordering::Release);
    }

    /// A descriptor of a handle was closed, with which its writing ends. That the handle is gone is told later, when
    /// other calls may have been answered.
    pub fn close(&self, mount: MountId, ino: Ino, handle: Handle) {
        let mut files = self.files.lock();
        let owns = files.get_mut(&(mount, ino)).into_iter().flatten();
        for own in owns.filter(|own| own.handle == handle.0) {
            let wrote = std::mem::replace(&mut own.writes, false);
            own.closed = Some(if wrote { Closed::Unsaved } else { Closed::Saved });
        }
    }

    /// What was written until a descriptor of a handle was closed is saved.
    fn saved(&self, mount: MountId, ino: Ino, handle: Handle) {
        let mut files = self.files.lock();
        let owns = files.get_mut(&(mount, ino)).into_iter().flatten();
        let closed =
            owns.filter(|own| own.handle == handle.0).filter_map(|own| own.closed.as_mut());
        closed.for_each(|closed| *closed = Closed::Saved);
    }

    /// A handle is gone.
    pub fn end(&self, mount: MountId, ino: Ino, handle: Handle) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut files = self.files.lock();
        if let Some(owns) = files.get_mut(&(mount, ino)) {
            owns.retain(|own| own.handle != handle.0);
            if owns.is_empty() {
                files.remove(&(mount, ino));
            }
        }
        self.count.store(files.len(), Ordering::Release);
    }

    /// The handles of a file, the newest last, if one has another size than this.
    fn other_than(&self, size: u64, mount: MountId, ino: Ino) -> Option<Vec<Own>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let files = self.files.lock();
        let owns = files.get(&(mount, ino))?;
        owns.iter().any(|own| own.size != size).then(|| owns.clone())
    }
}

impl WorkTree {
    /// A descriptor of a handle is closed; the reply is that of the save of what it wrote.
    pub(in crate::tree) fn noting_closed(
        &self,
        mount: MountId,
        (ino, handle): (Ino, Handle),
        reply: Reply<()>,
    ) -> Reply<()> {
        self.handles.sizes.close(mount, ino, handle);
        let Some(me) = self.me() else { return reply };
        Reply::new(move |saved| {
            if saved.is_ok() {
                me.handles.sizes.saved(mount, ino, handle);
            }
            reply.send(saved);
        })
    }

    /// What a kernel is told of a file for the caller, and for how long that is true.
    pub(in crate::tree) fn told(&self, caller: &Caller, attr: Attr, ttl: Duration) -> Entry {
        self.told_by(caller, None, attr, ttl)
    }

    /// The same for the holder of a handle.
    pub(in crate::tree) fn told_by(
        &self,
        caller: &Caller,
        handle: Option<Handle>,
        mut attr: Attr,
        ttl: Duration,
    ) -> Entry {
        let (ino, saved) = (attr.ino, attr.size);
        let owns = self.handles.sizes.other_than(saved, caller.mount, ino);
        let Some(owns) = owns else { return Entry::new(attr, ttl) };
        let by_handle = owns.iter().find(|own| Some(Handle(own.handle)) == handle);
        if let Some(size) =
            by_handle.map(|own| own.size).or_else(|| self.of_process(caller, ino, &owns))
        {
            attr.size = size;
        }
        // SEEK_END goes by what the kernel knows, and brings its handle.
        let is_for_seeking = by_handle.is_some();
        let writer = owns.iter().rfind(|own| own.writes).map(|own| own.size);
        let known = writer.unwrap_or(if is_for_seeking { attr.size } else { saved });
        if known != attr.size {
            self.hub.outdate_answers(caller.mount, ino);
        }
        Entry::new(attr, Duration::ZERO)
    }

    /// The size that a process goes by which has a file open. `fstat` does not say by which descriptor: to
    /// who has several texts of it the size is what its name gives.
    fn of_process(&self, caller: &Caller, ino: Ino, owns: &[Own]) -> Option<u64> {
        let process_of = |thread| self.seen.lineages.process_of(thread);
        let is_own = |own: &&Own| {
            let by = own.by;
            by == caller.pid || process_of(by).is_some_and(|by| process_of(caller.pid) == Some(by))
        };
        // What its kernel has not told yet to be gone, or has for a mapping, no descriptor goes by. Where a text was
        // refused, whoever has a copy of the descriptor may mend that.
        let is_had = |own: &&Own| own.closed != Some(Closed::Saved) || has_open(caller.pid, ino);
        let mut sizes = owns.iter().filter(is_own).filter(is_had).map(|own| own.size);
        let first = sizes.next()?;
        sizes.all(|size| size == first).then_some(first)
    }
}
