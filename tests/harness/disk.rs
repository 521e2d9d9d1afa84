//! The disk of a [`Desk`](super::Desk), which is as full as a test says.

use std::sync::Arc;

use parking_lot::Mutex;
use workfs::store::{Durability, Read, Result, StoreError, Txn, Writer};

/// What is left of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Space {
    /// Room for anything.
    #[default]
    Room,
    /// Room for what makes space.
    Tight,
    /// None.
    Full,
}

/// What a test sets.
#[derive(Clone, Default)]
pub struct Disk(Arc<Mutex<Space>>);

impl Disk {
    pub fn set(&self, space: Space) {
        *self.0.lock() = space;
    }

    pub fn space(&self) -> Space {
        *self.0.lock()
    }
}

/// A store on that disk.
pub struct OnDisk<W> {
    pub writer: W,
    pub disk: Disk,
}

impl<W: Writer> Writer for OnDisk<W> {
    fn transaction(
        &mut self,
        work: &mut dyn FnMut(&mut dyn Txn) -> Result<Durability>,
    ) -> Result<()> {
        let is_full = self.disk.space() == Space::Full;
        self.writer.transaction(&mut |txn| {
            let done = work(txn)?;
            if is_full { Err(StoreError::Full("the test's disk".to_owned())) } else { Ok(done) }
        })
    }

    fn read(&self, work: &mut dyn FnMut(&dyn Read) -> Result<()>) -> Result<()> {
        self.writer.read(work)
    }

    fn sync(&mut self) -> Result<()> {
        self.writer.sync()
    }

    fn is_tight(&self) -> bool {
        self.disk.space() != Space::Room
    }

    fn find_room(&mut self) -> bool {
        !self.is_tight()
    }

    fn wants_checkpoint(&self) -> bool {
        self.writer.wants_checkpoint()
    }

    fn checkpoint(&mut self) -> Result<()> {
        self.writer.checkpoint()
    }
}
