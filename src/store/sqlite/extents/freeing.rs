//! Giving back what big files freed beside the tables, beside the writer and not in its way.
//!
//! What must stay true: an extent becomes a hole only when the change that freed it is on the disk, since
//! power loss could bring its row back, and when no snapshot is read any more that began before. What is
//! not given back before the end stays noted (`freed`), and is at the next start.

use std::fs::File;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use crossbeam_channel::{
    Receiver, RecvTimeoutError, Sender, TryRecvError, bounded, select, unbounded,
};
use parking_lot::Mutex;

use super::{Extent, Extents, Flush};
use crate::limits::{FREED_GATHERED_FOR, FREED_PATIENCE};
use crate::store::{Result, StoreError, open_itself};

/// What the thread is told.
enum Told {
    /// This was freed.
    Freed(Vec<Extent>),
    /// Somebody waits for the space.
    Now(Sender<()>),
}

/// The thread that gives back.
pub(in crate::store::sqlite) struct Freeing {
    /// How many extents wait.
    waiting: Arc<AtomicUsize>,
    given_back: Arc<Mutex<Vec<Extent>>>,
    tell: Option<Sender<Told>>,
    /// Dropped where the thread is to wait for nobody any more.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Freeing {
    /// Begins with what was freed before; `log` is the store's.
    pub fn start(extents: Arc<Extents>, log: PathBuf, freed: Vec<Extent>) -> Result<Freeing> {
        let (waiting, given_back) = (Arc::default(), Arc::<Mutex<Vec<Extent>>>::default());
        let ((tell, told), (stop, stopped)) = (unbounded(), bounded(0));
        let shared = (Arc::clone(&waiting), Arc::clone(&given_back));
        let work = Work { extents, log, told, stopped, waiting: shared.0, given_back: shared.1 };
        let thread = std::thread::Builder::new().name("freeing".into()).spawn(move || work.run());
        let thread = thread.map_err(|error| StoreError::NoThread(error.to_string()))?;
        let (tell, stop, thread) = (Some(tell), Some(stop), Some(thread));
        let freeing = Freeing { waiting, given_back, tell, stop, thread };
        freeing.free(freed);
        Ok(freeing)
    }

    /// Takes what a committed transaction has freed.
    pub fn free(&self, extents: Vec<Extent>) {
        if let Some(tell) = self.tell.as_ref().filter(|_| !extents.is_empty()) {
            self.waiting.fetch_add(extents.len(), Ordering::Relaxed);
            // It ends after this one.
            let _ = tell.send(Told::Freed(extents));
        }
    }

    /// Gives back now what can be, and waits a moment for it.
    pub fn hurry(&self) {
        let (done, heard) = bounded(0);
        if let Some(tell) = &self.tell
            && self.waiting.load(Ordering::Relaxed) > 0
            && tell.send(Told::Now(done)).is_ok()
        {
            // It may wait for who reads for long.
            let _ = heard.recv_timeout(FREED_PATIENCE);
        }
    }

    /// Whether there is something to take.
    pub fn has_given_back(&self) -> bool {
        !self.given_back.lock().is_empty()
    }

    /// What was given back since it was asked last.
    pub fn take(&self) -> Vec<Extent> {
        std::mem::take(&mut self.given_back.lock())
    }
}

impl Drop for Freeing {
    fn drop(&mut self) {
        (self.tell, self.stop) = (None, None);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that gives back panicked");
        }
    }
}

struct Work {
    extents: Arc<Extents>,
    log: PathBuf,
    told: Receiver<Told>,
    stopped: Receiver<()>,
    waiting: Arc<AtomicUsize>,
    given_back: Arc<Mutex<Vec<Extent>>>,
}

impl Work {
    fn run(self) {
        // What waits for a flush, the one that will do, and until when somebody else may make it.
        let mut old = Vec::new();
        let (mut flush, mut until) = (self.extents.next_flush(), Instant::now());
        loop {
            let told = match old.is_empty() {
                true => self.told.recv().map_err(RecvTimeoutError::from),
                false => self.told.recv_deadline(until),
            };
            match told {
                Ok(Told::Freed(extents)) => {
                    // No log that was flushed names the others: power loss brings none of them back.
                    let flushed_to = self.extents.flushed_to();
                    let (before, fresh) =
                        extents.into_iter().partition::<Vec<_>, _>(|it| it.start < flushed_to);
                    if old.is_empty() {
                        until = Instant::now() + FREED_GATHERED_FOR;
                    }
                    old.extend(before);
                    flush = self.extents.next_flush();
                    self.give_back(fresh, None);
                }
                Ok(Told::Now(waiting)) => {
                    old = self.give_back(old, Some(flush));
                    until = Instant::now() + FREED_GATHERED_FOR;
                    drop(waiting);
                }
                Err(RecvTimeoutError::Timeout) => {
                    old = self.give_back(old, Some(flush));
                    until = Instant::now() + FREED_GATHERED_FOR;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.give_back(old, Some(flush));
                    return;
                }
            }
        }
    }

    /// Makes holes of these, after this flush, when nobody can be reading them any more. Gives those for which that
    /// cannot be yet.
    fn give_back(&self, mut freed: Vec<Extent>, after: Option<Flush>) -> Vec<Extent> {
        if freed.is_empty() || !self.is_unread() {
            return Vec::new();
        }
        if let Err(error) = self.flush(after) {
            tracing::debug!(%error, "what big files freed waits for a flush");
            return freed;
        }
        freed.sort_by_key(|extent| extent.start);
        let punched = self.punch(&freed);
        self.waiting.fetch_sub(freed.len(), Ordering::Relaxed);
        match punched {
            Ok(()) => self.given_back.lock().append(&mut freed),
            Err(error) => {
                tracing::warn!(%error, "what big files freed is given back at the next start");
            }
        }
        Vec::new()
    }

    /// Waits until all have ended who may read what was freed; false if the end comes first.
    fn is_unread(&self) -> bool {
        let ended = self.extents.end_of_looks();
        select! {
            recv(ended) -> _ => true,
            recv(self.stopped) -> _ => ended.try_recv() == Err(TryRecvError::Disconnected),
        }
    }

    /// Sees to it that this flush is done.
    fn flush(&self, wanted: Option<Flush>) -> std::io::Result<()> {
        if wanted.is_none_or(|flush| self.extents.was_flushed(flush)) {
            return Ok(());
        }
        match open_itself(File::options().read(true), &self.log) {
            Ok(log) => self.extents.flush_with(|| log.sync_data()),
            // A log that has gone meanwhile was moved into the main file, and that is flushed.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn punch(&self, freed: &[Extent]) -> std::io::Result<()> {
        for run in freed.chunk_by(|one, next| one.end == next.start) {
            if let (Some(first), Some(last)) = (run.first(), run.last()) {
                self.extents.give_back(&(first.start..last.end))?;
            }
        }
        Ok(())
    }
}
