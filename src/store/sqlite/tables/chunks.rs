//! Chunks of plain files: rows of a table, of big files rows that say where in the file beside it
//! ([`crate::store::sqlite::extents`]).
//!
//! What must stay true: whoever takes a row away that names a place there notes what is freed, in the same
//! transaction; a row with neither content nor a place is a chunk that is lost, which is never read as zeros.
//! Deliberately not here: what a chunk is to a file (`engine/plain_files/plain`).

use rusqlite::params;

use super::columns::{int, number};
use crate::limits::{BESIDE_FROM_CHUNK, CHUNK_BYTES, CHUNK_INDEX_MAX, EXTENTS_BYTES_MAX};
use crate::numbers::Ino;
use crate::store::sqlite::Conn;
use crate::store::sqlite::extents::{Extent, lost};
use crate::store::{Result, StoreError};

/// Where the writer's transaction puts chunks beside the tables, and what it has freed there.
#[derive(Default)]
pub(in crate::store::sqlite) struct Space {
    /// The end of what any row names, and of what the transaction has put there.
    end: u64,
    freed: Vec<Extent>,
    /// Both, as they were at the last savepoint.
    mark: (u64, usize),
    /// The end as it was when the transaction began.
    begin: u64,
    /// What transactions have put there of which the end is in doubt.
    doubtful: Vec<Extent>,
}

/// How a transaction ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::store::sqlite) enum End {
    Committed,
    Undone,
    /// It counts as undone. But the log has it, until the next one takes its place there: a kill before that
    /// brings it back.
    Doubtful,
}

impl Space {
    /// After what there is.
    pub fn after(end: u64) -> Space {
        Space { end, ..Space::default() }
    }

    pub fn begin(&mut self) {
        (self.begin, self.mark) = (self.end, (self.end, 0));
        self.freed.clear();
    }

    pub fn mark(&mut self) {
        self.mark = (self.end, self.freed.len());
    }

    pub fn back_to_mark(&mut self) {
        self.end = self.mark.0;
        self.freed.truncate(self.mark.1);
    }

    /// Ends a transaction; gives what it has freed.
    pub fn end(&mut self, end: End) -> Vec<Extent> {
        let freed = std::mem::take(&mut self.freed);
        match end {
            End::Committed => {
                self.doubtful.clear();
                return freed;
            }
            End::Undone => self.end = self.begin,
            End::Doubtful if self.end > self.begin => self.doubtful.push(self.begin..self.end),
            End::Doubtful => {}
        }
        Vec::new()
    }
}

/// The key of a plain file's chunk.
fn chunk_key(ino: Ino, index: u32) -> i64 {
    int(ino.0 << 24 | u64::from(index))
}

impl Conn {
    pub(super) fn chunk_of(&self, ino: Ino, index: u32) -> Result<Option<Vec<u8>>> {
        let sql = "SELECT data, at FROM chunks WHERE key = ?1";
        let read = |row: &rusqlite::Row<'_>| {
            Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, Option<i64>>(1)?))
        };
        match self.one(sql, [chunk_key(ino, index)], read)? {
            None => Ok(None),
            Some((data, None)) if data.is_empty() => Err(lost()),
            Some((data, None)) => Ok(Some(data)),
            Some((_, Some(at))) => self.extents.read(at.cast_unsigned()).map(Some),
        }
    }

    pub(super) fn next_chunk_of(&self, ino: Ino, index: u32) -> Result<Option<u32>> {
        let sql = "SELECT key FROM chunks WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT 1";
        if index > CHUNK_INDEX_MAX {
            return Ok(None);
        }
        let range = params![chunk_key(ino, index), chunk_key(ino, CHUNK_INDEX_MAX)];
        let key = self.one(sql, range, |row| number(row, 0))?;
        let next = key.map(|key| (key & u64::from(CHUNK_INDEX_MAX)) as u32);
        // A damaged table may find one before it, and whoever goes on from there would never come to an end.
        match next {
            Some(next) if next < index => {
                let what = format!("chunk {next} of node {} is said to follow on {index}", ino.0);
                Err(StoreError::Impossible(what))
            }
            next => Ok(next),
        }
    }

    pub(super) fn write_chunk(&mut self, ino: Ino, index: u32, data: &[u8]) -> Result<()> {
        if index >= BESIDE_FROM_CHUNK {
            let sql = "SELECT at IS NOT NULL, length(data) FROM chunks WHERE key = ?1";
            let was = |row: &rusqlite::Row<'_>| Ok((row.get::<_, bool>(0)?, number(row, 1)?));
            let (was_beside, length) =
                self.one(sql, [chunk_key(ino, index)], was)?.unwrap_or_default();
            let was_whole = was_beside || length == CHUNK_BYTES as u64;
            // One that was whole before lies in the table from then on: a page of a database that lies in the
            // mount must not take two flushes. One that grew to be whole is a file's that is written in pieces.
            let grew = data.len() == CHUNK_BYTES && !was_whole;
            if was_beside || grew {
                self.remove_chunks(ino, index, index)?;
            }
            if grew {
                return self.insert_chunks(ino, index, data);
            }
        }
        let sql = "INSERT INTO chunks (key, data) VALUES (?1, ?2) \
                   ON CONFLICT (key) DO UPDATE SET data = excluded.data";
        self.change(sql, params![chunk_key(ino, index), data]).map(drop)
    }

    /// Stores whole chunks, of which none is there.
    pub(super) fn insert_chunks(&mut self, ino: Ino, first: u32, data: &[u8]) -> Result<()> {
        let small = BESIDE_FROM_CHUNK.saturating_sub(first) as usize * CHUNK_BYTES;
        let (inside, beside) = data.split_at(small.min(data.len()));
        self.insert_inside(ino, first, inside)?;
        let index = first + (inside.len() / CHUNK_BYTES) as u32;
        let has_room = self.space.end + beside.len() as u64 <= EXTENTS_BYTES_MAX;
        if beside.is_empty() || !has_room || !self.extents.keeps_chunks() {
            return self.insert_inside(ino, index, beside);
        }
        match self.extents.write(self.space.end, beside) {
            // What was removed from the tables may have left space in them; and what somebody else has put beside them
            // is not written to.
            Err(StoreError::Full(_) | StoreError::Beside { .. }) => {
                return self.insert_inside(ino, index, beside);
            }
            written => written?,
        }
        for (_, index) in beside.chunks_exact(CHUNK_BYTES).zip(index..) {
            let sql = "INSERT INTO chunks (key, data, at) VALUES (?1, x'', ?2)";
            self.change(sql, params![chunk_key(ino, index), int(self.space.end)])?;
            self.space.end += CHUNK_BYTES as u64;
        }
        Ok(())
    }

    fn insert_inside(&self, ino: Ino, first: u32, data: &[u8]) -> Result<()> {
        for (chunk, index) in data.chunks_exact(CHUNK_BYTES).zip(first..) {
            let sql = "INSERT INTO chunks (key, data) VALUES (?1, ?2)";
            self.change(sql, params![chunk_key(ino, index), chunk])?;
        }
        Ok(())
    }

    /// Removes the chunks `first..=last`; says how many there were.
    pub(super) fn remove_chunks(&mut self, ino: Ino, first: u32, last: u32) -> Result<u64> {
        let sql = "DELETE FROM chunks WHERE key BETWEEN ?1 AND ?2 RETURNING at";
        self.remove(sql, params![chunk_key(ino, first), chunk_key(ino, last)])
    }

    /// Removes at most so many chunks, whichever; says how many.
    pub(super) fn remove_some_chunks(&mut self, ino: Ino, most: u64) -> Result<u64> {
        let sql = "DELETE FROM chunks WHERE key IN \
                   (SELECT key FROM chunks WHERE key BETWEEN ?1 AND ?2 LIMIT ?3) RETURNING at";
        let (first, last) = (chunk_key(ino, 0), chunk_key(ino, CHUNK_INDEX_MAX));
        self.remove(sql, params![first, last, int(most)])
    }

    fn remove(&mut self, sql: &str, parameters: impl rusqlite::Params) -> Result<u64> {
        let (mut count, mut freed) = (0, Vec::<Extent>::new());
        let mut note = |at: u64| match freed.last_mut() {
            Some(last) if last.end == at => last.end += CHUNK_BYTES as u64,
            _ => freed.push(at..at + CHUNK_BYTES as u64),
        };
        let removed = self.sql.prepare_cached(sql).and_then(|mut statement| {
            let mut rows = statement.query(parameters)?;
            while let Some(row) = rows.next()? {
                count += 1;
                row.get::<_, Option<i64>>(0)?
                    .map(i64::cast_unsigned)
                    .into_iter()
                    .for_each(&mut note);
            }
            Ok(())
        });
        removed.map_err(|error| self.cause(error))?;
        self.note_freed(&freed)?;
        self.space.freed.extend(freed);
        Ok(count)
    }

    /// Frees what those have put beside the tables that this transaction takes the place of.
    pub(in crate::store::sqlite) fn free_doubtful(&mut self) -> Result<()> {
        let doubtful = self.space.doubtful.clone();
        self.note_freed(&doubtful)?;
        self.space.freed.extend(doubtful);
        Ok(())
    }

    fn note_freed(&self, freed: &[Extent]) -> Result<()> {
        for extent in freed {
            let sql = "INSERT INTO freed (at, length) VALUES (?1, ?2)";
            self.change(sql, [int(extent.start), int(extent.end - extent.start)])?;
        }
        Ok(())
    }

    /// What was freed and is not given back yet; but not where a row has something: one of the two is wrong, which
    /// a check says, and nothing is lost before it has.
    pub(in crate::store::sqlite) fn freed(&self) -> Result<Vec<Extent>> {
        let sql = "SELECT at, length FROM freed f WHERE NOT EXISTS \
                   (SELECT 1 FROM chunks c WHERE c.at > f.at - ?1 AND c.at < f.at + f.length) ORDER BY at";
        self.all(sql, [CHUNK_BYTES as i64], |row| {
            let at = number(row, 0)?;
            Ok(at..at + number(row, 1)?)
        })
    }

    /// Forgets what was given back.
    pub(in crate::store::sqlite) fn forget_freed(&self, extents: &[Extent]) -> Result<()> {
        for extent in extents {
            self.change("DELETE FROM freed WHERE at = ?1", [int(extent.start)])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::store::sqlite::Sqlite;
    use crate::store::sqlite::extents::extents_test::{FILE, change};
    use crate::store::{StoreError, read};

    // P4.4
    #[test]
    fn who_goes_from_chunk_to_chunk_of_a_damaged_table_comes_to_an_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        let (store, mut writer) = Sqlite::open(&path).unwrap();
        change(&mut writer, |txn| {
            // A page has four of them.
            (1..=8).try_for_each(|index| txn.put_chunk(FILE, index, &[b'x'; 1000]))?;
            txn.delete_chunks(FILE, 4, 4).map(drop)
        });
        assert_eq!(read(&store, |read| read.next_chunk(FILE, 4)).unwrap(), Some(5));
        drop((store, writer));
        // The key of the first on the second page, as SQLite writes it.
        let mut main = std::fs::read(&path).unwrap();
        let key = [0x80 | (FILE.0 << 3) as u8, 0x80, 0x80, 5];
        let mut found = (0..main.len() - 4).filter(|at| main[*at..*at + 4] == key);
        let (at, None) = (found.next().unwrap(), found.next()) else { panic!("it is there twice") };
        main[at + 3] = 0;
        std::fs::write(&path, main).unwrap();
        let (store, _writer) = Sqlite::open(&path).unwrap();
        let said = read(&store, |read| read.next_chunk(FILE, 4)).unwrap_err();
        assert!(
            matches!(&said, StoreError::Impossible(what) if what.contains("chunk 0")),
            "{said}"
        );
    }
}
