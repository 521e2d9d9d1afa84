//! [`ReadFiles`] and [`TxnFiles`] in SQL.

use rusqlite::{Row, params};

use super::columns::{damaged, file_name, int, number, tree_path};
use crate::ledger::Hash;
use crate::names::{Dentry, FileName, TreePath};
use crate::numbers::{G, HistoryKey, Ino, LeaseTime, UnixNanos};
use crate::store::sqlite::Conn;
use crate::store::{FileVersion, History, ReadFiles, Result, TxnFiles, Visit};

fn history(row: &Row<'_>) -> rusqlite::Result<History> {
    Ok(History {
        key: HistoryKey(number(row, 0)?),
        path: tree_path(row, 1)?,
        last_g: G(number(row, 2)?),
        versions: number(row, 3)?,
        bytes: number(row, 4)?,
    })
}

fn file_version(row: &Row<'_>) -> rusqlite::Result<FileVersion> {
    let sha256: Vec<u8> = row.get(3)?;
    let sha256 = sha256.try_into().map_err(|_| damaged("a hash that is not 32 bytes"))?;
    Ok(FileVersion {
        g: G(number(row, 0)?),
        at: UnixNanos(row.get(1)?),
        size: number(row, 2)?,
        sha256: Hash::from_bytes(sha256),
    })
}

impl ReadFiles for Conn {
    fn file_name(&self, ino: Ino) -> Result<Option<Dentry>> {
        let sql = "SELECT f.dir, f.name FROM file_names f JOIN entries e \
                   ON e.parent = f.dir AND e.name = f.name AND e.ino = f.ino WHERE f.ino = ?1";
        self.one(sql, [int(ino.0)], |row| Ok(Dentry::of(Ino(number(row, 0)?), file_name(row, 1)?)))
    }

    fn name_in(&self, dir: Ino, ino: Ino) -> Result<Option<FileName>> {
        let sql = "SELECT name FROM entries e WHERE parent = ?1 AND ino = ?2 AND NOT EXISTS \
                   (SELECT 1 FROM further_names f \
                    WHERE f.ino = ?2 AND f.dir = ?1 AND f.name = e.name) LIMIT 1";
        self.one(sql, [int(dir.0), int(ino.0)], |row| file_name(row, 0))
    }

    fn history(&self, path: &TreePath) -> Result<Option<History>> {
        let sql = "SELECT key, path, last_g, versions, bytes FROM histories WHERE path = ?1";
        self.one(sql, [path.to_bytes()], history)
    }

    fn histories(
        &self,
        above: &TreePath,
        after: Option<&TreePath>,
        visit: Visit<'_, History>,
    ) -> Result<()> {
        // All paths that begin with the directory's and a slash; the byte after `/` is `0`.
        let dir = above.to_bytes();
        let below = |last: u8| [&dir[..], &[last]].concat();
        if dir.is_empty() {
            let first = after.map(TreePath::to_bytes).unwrap_or_default();
            let sql = "SELECT key, path, last_g, versions, bytes FROM histories \
                       WHERE path > ?1 ORDER BY path";
            return self.each(sql, [first], history, visit);
        }
        let (first, end) = (after.map_or_else(|| below(b'/'), TreePath::to_bytes), below(b'0'));
        let sql = "SELECT key, path, last_g, versions, bytes FROM histories \
                   WHERE path > ?1 AND path < ?2 ORDER BY path";
        self.each(sql, [first, end], history, visit)
    }

    fn file_versions(&self, key: HistoryKey, visit: Visit<'_, FileVersion>) -> Result<()> {
        let sql = "SELECT g, at, length(content), sha256 FROM file_versions \
                   WHERE history = ?1 ORDER BY g DESC";
        self.each(sql, [int(key.0)], file_version, visit)
    }

    fn file_version(&self, g: G) -> Result<Option<Vec<u8>>> {
        self.one("SELECT content FROM file_versions WHERE g = ?1", [int(g.0)], |row| row.get(0))
    }

    fn file_version_of(&self, g: G) -> Result<Option<(HistoryKey, UnixNanos)>> {
        let sql = "SELECT history, at FROM file_versions WHERE g = ?1";
        self.one(sql, [int(g.0)], |row| Ok((HistoryKey(number(row, 0)?), UnixNanos(row.get(1)?))))
    }

    fn lock_lease(&self, ino: Ino) -> Result<Option<LeaseTime>> {
        let sql = "SELECT until FROM lock_leases WHERE ino = ?1";
        self.one(sql, [int(ino.0)], |row| Ok(LeaseTime(number(row, 0)?)))
    }

    fn leases_from(&self, at: LeaseTime, visit: Visit<'_, (Ino, LeaseTime)>) -> Result<()> {
        let sql = "SELECT ino, until FROM lock_leases WHERE until >= ?1 ORDER BY until";
        let read = |row: &Row<'_>| Ok((Ino(number(row, 0)?), LeaseTime(number(row, 1)?)));
        self.each(sql, [int(at.0)], read, visit)
    }

    fn all_file_names(&self, visit: Visit<'_, (Ino, Ino, FileName)>) -> Result<()> {
        let read =
            |row: &Row<'_>| Ok((Ino(number(row, 0)?), Ino(number(row, 1)?), file_name(row, 2)?));
        self.each("SELECT ino, dir, name FROM file_names ORDER BY ino", [], read, visit)
    }
}

impl TxnFiles for Conn {
    fn put_file_name(&mut self, ino: Ino, dir: Ino, name: &FileName) -> Result<()> {
        let sql = "INSERT INTO file_names (ino, dir, name) VALUES (?1, ?2, ?3) \
                   ON CONFLICT (ino) DO UPDATE SET dir = excluded.dir, name = excluded.name";
        self.change(sql, params![int(ino.0), int(dir.0), name.as_bytes()])?;
        Ok(())
    }

    fn delete_file_name(&mut self, ino: Ino) -> Result<()> {
        self.change("DELETE FROM file_names WHERE ino = ?1", [int(ino.0)])?;
        Ok(())
    }

    fn put_lease(&mut self, ino: Ino, until: LeaseTime) -> Result<()> {
        let sql = "INSERT INTO lock_leases (ino, until) VALUES (?1, ?2) \
                   ON CONFLICT (ino) DO UPDATE SET until = excluded.until";
        self.change(sql, [int(ino.0), int(until.0)])?;
        Ok(())
    }

    fn delete_lease(&mut self, ino: Ino) -> Result<()> {
        self.change("DELETE FROM lock_leases WHERE ino = ?1", [int(ino.0)])?;
        Ok(())
    }

    fn insert_history(&mut self, path: &TreePath, last_g: G) -> Result<HistoryKey> {
        let sql = "INSERT INTO histories (path, last_g, versions, bytes) VALUES (?1, ?2, 0, 0)";
        self.change(sql, params![path.to_bytes(), int(last_g.0)])?;
        Ok(HistoryKey(self.inserted()))
    }

    fn update_history(&mut self, history: &History) -> Result<()> {
        let History { key, last_g, versions, bytes, .. } = history;
        let sql = "UPDATE histories SET last_g = ?2, versions = ?3, bytes = ?4 WHERE key = ?1";
        self.change(sql, [int(key.0), int(last_g.0), int(*versions), int(*bytes)])?;
        Ok(())
    }

    fn insert_file_version(
        &mut self,
        history: HistoryKey,
        version: &FileVersion,
        content: &[u8],
    ) -> Result<()> {
        let sql = "INSERT INTO file_versions (g, history, at, sha256, content) \
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        let sha256 = &version.sha256.as_bytes()[..];
        let (g, at) = (int(version.g.0), version.at.0);
        self.change(sql, params![g, int(history.0), at, sha256, content])?;
        Ok(())
    }

    fn delete_file_version(&mut self, g: G) -> Result<()> {
        self.change("DELETE FROM file_versions WHERE g = ?1", [int(g.0)])?;
        Ok(())
    }
}
