//! What size a file has, and to whom.
//!
//! To everybody it has that of what was saved last. But who has it open reads what was current then, or
//! what it has written since, and goes by the size of that (`fstat`, SEEK_END): to read it to its end,
//! or to write on behind it. What must stay true: a kernel has one size of an inode, whoever asks, and SEEK_END goes by
//! it, so it keeps none while there are two. Where a writer goes by its end that is the writer's: where another's
//! came in between, it would write into its own text.

use std::cell::LazyCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use workfs_mount::{Attr, Caller, Entry, Handle, MountId};

use crate::numbers::Ino;
use crate::tree::WorkTree;
use crate::tree::callers::inherited::descriptors;
use crate::tree::saves::staged::Staged;

/// A handle that has a text of its own.
#[derive(Clone, Copy)]
pub(super) struct Own {
    handle: Handle,
    /// The thread that opened it, or the one that wrote last; and its process, where that is known.
    by: (u32, Option<u32>),
    size: u64,
    /// It was opened to be written, and was not closed since it was written last.
    writes: bool,
    /// Who writes by it goes by where it ends: it has asked, or it may.
    seeks: bool,
    /// A descriptor of it was closed.
    is_closed: bool,
}

impl Own {
    pub fn new(handle: Handle, by: (u32, Option<u32>), staged: &Staged) -> Own {
        let (size, writes) = (staged.text().len() as u64, staged.writes);
        // Who writes a file anew from its beginning has no reason to.
        let seeks = writes && !staged.replaces;
        Own { handle, by, size, writes, seeks, is_closed: false }
    }

    fn is_of(&self, thread: u32, process: Option<u32>) -> bool {
        self.by.0 == thread || self.by.1.is_some() && self.by.1 == process
    }
}

/// Such handles of a file, the newest last.
#[derive(Clone, Default)]
struct File {
    owns: Vec<Own>,
    /// The kernel was told the size of one that only reads, which asked where it ends.
    is_lent: bool,
}

impl File {
    /// The one that writes, if any does; before others one that goes by its end.
    fn writer(&self) -> Option<&Own> {
        let last = |is_it: fn(&Own) -> bool| self.owns.iter().rfind(|own| is_it(own));
        last(|own| own.writes && own.seeks).or_else(|| last(|own| own.writes))
    }

    /// The size that a kernel is to go by, which was saved last, or is a writer's; `None` where anybody's does.
    fn known(&self, saved: u64) -> Option<u64> {
        match self.writer() {
            Some(writer) if self.is_lent && !writer.seeks => None,
            writer => Some(writer.map_or(saved, |writer| writer.size)),
        }
    }
}

/// All such handles, by what each mount's kernel knows.
#[derive(Default)]
pub(in crate::tree) struct Sizes {
    files: Mutex<HashMap<(MountId, Ino), File>>,
    /// How many files they are: where there is none, nobody takes the lock.
    count: AtomicUsize,
}

impl Sizes {
    /// A thread opens a handle with a text of its own, or changes it.
    pub(super) fn note(&self, file: (MountId, Ino), own: Own) {
        let mut files = self.files.lock();
        let owns = &mut files.entry(file).or_default().owns;
        // The newest comes last.
        let before = owns.iter().position(|known| known.handle == own.handle);
        let seeks = before.is_some_and(|at| owns.remove(at).seeks);
        owns.push(Own { seeks: seeks || own.seeks, ..own });
        self.count.store(files.len(), Ordering::Release);
    }

    /// A thread, of a process where that is known, closed a descriptor of a handle, with which its writing ends. That
    /// the handle is gone is told later, when other calls may have been answered.
    pub(super) fn close(
        &self,
        file: (MountId, Ino),
        handle: Handle,
        (thread, process): (u32, Option<u32>),
    ) {
        let mut files = self.files.lock();
        let owns = files.get_mut(&file).map(|file| &mut file.owns);
        for own in owns.into_iter().flatten().filter(|own| own.handle == handle) {
            own.writes = false;
            // What another process closes is a copy: each that is started closes those it was given, where its
            // program begins.
            let is_known = own.by.1.is_some() && process.is_some();
            own.is_closed |= !is_known || own.is_of(thread, process);
        }
    }

    /// Whoever has this handle asks where its text ends, if it has one. The kernel goes by the answer (it has locked the
    /// inode until the end of the call), but where a writer goes by its own: then true.
    fn seek(&self, file: (MountId, Ino), handle: Handle) -> bool {
        let mut files = self.files.lock();
        let Some(file) = files.get_mut(&file) else { return false };
        let Some(own) = file.owns.iter_mut().find(|own| own.handle == handle) else { return false };
        let writes = own.writes;
        own.seeks |= writes;
        let is_kept = !writes && file.writer().is_some_and(|writer| writer.seeks);
        file.is_lent = !writes && file.writer().is_some_and(|writer| !writer.seeks);
        is_kept
    }

    /// A handle is gone.
    pub fn end(&self, mount: MountId, ino: Ino, handle: Handle) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut files = self.files.lock();
        if let Some(file) = files.get_mut(&(mount, ino)) {
            file.owns.retain(|own| own.handle != handle);
            if file.owns.is_empty() {
                files.remove(&(mount, ino));
            }
        }
        self.count.store(files.len(), Ordering::Release);
    }

    /// The handles of a file, if one has another size than this.
    fn other_than(&self, size: u64, mount: MountId, ino: Ino) -> Option<File> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let files = self.files.lock();
        let file = files.get(&(mount, ino))?;
        file.owns.iter().any(|own| own.size != size).then(|| file.clone())
    }
}

impl WorkTree {
    /// What a kernel is told of a file for the caller, and for how long that is true.
    pub(in crate::tree) fn told(&self, caller: &Caller, attr: Attr, ttl: Duration) -> Entry {
        self.told_by(caller, None, attr, ttl)
    }

    /// The same for the holder of a handle, which the kernel names where it asks for SEEK_END.
    pub(in crate::tree) fn told_by(
        &self,
        caller: &Caller,
        handle: Option<Handle>,
        mut attr: Attr,
        ttl: Duration,
    ) -> Entry {
        let (ino, saved) = (attr.ino, attr.size);
        self.hub.settling.told(caller.mount, ino, caller.pid);
        let sizes = &self.handles.sizes;
        let Some(file) = sizes.other_than(saved, caller.mount, ino) else {
            return Entry::new(attr, ttl);
        };
        let by_handle = file.owns.iter().find(|own| Some(own.handle) == handle);
        let size = by_handle.map(|own| own.size);
        attr.size = size.or_else(|| self.of_process(caller, ino, &file.owns)).unwrap_or(saved);
        let is_only_the_callers = match by_handle {
            Some(own) => sizes.seek((caller.mount, ino), own.handle),
            None => file.known(saved).is_some_and(|known| known != attr.size),
        };
        if is_only_the_callers {
            self.hub.outdate_answers(caller.mount, ino);
        }
        Entry::new(attr, Duration::ZERO)
    }

    /// The size that a process goes by which has a file open. `fstat` does not say by which descriptor: to
    /// who has several texts of it the size is what its name gives.
    fn of_process(&self, caller: &Caller, ino: Ino, owns: &[Own]) -> Option<u64> {
        let (thread, process) = (caller.pid, self.seen.lineages.process_of(caller.pid));
        let device = self.hub.device(caller.mount);
        let has = LazyCell::new(|| descriptors(thread, ino, device));
        let of_process = |own: &&Own| own.is_of(thread, process);
        let live = owns.iter().filter(of_process).filter(|own| !own.is_closed).count();
        // What was closed is had by a copy of its descriptor; else its kernel has not told yet that it is gone, or has
        // it for a mapping. What another process has opened may be inherited.
        let inherits = LazyCell::new(|| !owns.iter().any(|own| of_process(&own)) && *has > 0);
        let is_had = |own: &&Own| match own.is_of(thread, process) {
            true => !own.is_closed || *has > live,
            false => *inherits,
        };
        let mut sizes = owns.iter().filter(is_had).map(|own| own.size);
        let first = sizes.next()?;
        sizes.all(|size| size == first).then_some(first)
    }
}
