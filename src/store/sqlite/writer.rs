//! [`Writer`]: transactions on the one connection that writes.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::checkpoint::Checkpointer;
use super::{Conn, fail};
use crate::store::{Durability, Result, StoreError, Txn, Writer};

/// The one writer of a store.
pub struct SqliteWriter {
    // Dropped first: the checkpointer's thread ends before the connection that it watches.
    checkpointer: Checkpointer,
    connection: Conn,
    wal_path: PathBuf,
    wal: Option<File>,
    flushing: Option<bool>,
    /// Something was committed that power loss could still take.
    unflushed: bool,
}

impl SqliteWriter {
    pub(super) fn new(mut connection: Conn, second: Conn, path: &Path) -> Result<Self> {
        let checkpointer = Checkpointer::start(&mut connection, second)?;
        let mut wal_path = path.as_os_str().to_owned();
        wal_path.push("-wal");
        let wal_path = wal_path.into();
        let (wal, flushing) = (None, None);
        Ok(SqliteWriter { checkpointer, connection, wal_path, wal, flushing, unflushed: true })
    }

    fn step(&self, sql: &str) -> Result<()> {
        self.connection
            .sql
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([]))
            .map_err(fail)?;
        Ok(())
    }

    /// Sets whether COMMIT flushes the log: FULL does, NORMAL does not.
    fn set_flushing(&mut self, flush: bool) -> Result<()> {
        if self.flushing != Some(flush) {
            let level = if flush { "FULL" } else { "NORMAL" };
            self.connection.sql.pragma_update(None, "synchronous", level).map_err(fail)?;
            self.flushing = Some(flush);
        }
        Ok(())
    }
}

impl Writer for SqliteWriter {
    fn transaction(
        &mut self,
        durability: Durability,
        work: &mut dyn FnMut(&mut dyn Txn) -> Result<()>,
    ) -> Result<()> {
        let flush = durability >= Durability::Power;
        self.set_flushing(flush)?;
        self.step("BEGIN IMMEDIATE")?;
        let worked = work(&mut self.connection);
        let committed = worked.and_then(|()| self.step("COMMIT"));
        if committed.is_err() && !self.connection.sql.is_autocommit() {
            self.step("ROLLBACK")?;
        }
        committed?;
        // An empty transaction flushes nothing: only `sync` can tell what is on the disk.
        self.unflushed = true;
        if durability == Durability::Flush { self.sync() } else { Ok(()) }
    }

    fn sync(&mut self) -> Result<()> {
        if !self.unflushed {
            return Ok(());
        }
        let failed = |error| StoreError::Failed(format!("flushing the log: {error}"));
        let wal = match self.wal.take() {
            Some(wal) => wal,
            None => File::open(&self.wal_path).map_err(failed)?,
        };
        wal.sync_data().map_err(failed)?;
        self.wal = Some(wal);
        self.unflushed = false;
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<()> {
        self.checkpointer.consider(&self.connection, &self.wal_path)
    }
}
