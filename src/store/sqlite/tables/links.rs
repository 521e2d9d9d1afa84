//! [`ReadLinks`] and [`TxnLinks`] in SQL.

use rusqlite::{Row, params};

use super::columns::{file_name, int, number};
use crate::names::{Dentry, FileName};
use crate::numbers::Ino;
use crate::store::sqlite::Conn;
use crate::store::{ReadLinks, Result, TxnLinks, Visit};

fn further(row: &Row<'_>) -> rusqlite::Result<(Ino, Ino, FileName)> {
    Ok((Ino(number(row, 0)?), Ino(number(row, 1)?), file_name(row, 2)?))
}

impl ReadLinks for Conn {
    fn further_names(&self, ino: Ino) -> Result<Vec<Dentry>> {
        let mut all = Vec::new();
        let sql = "SELECT ino, dir, name FROM further_names WHERE ino = ?1";
        self.each(sql, [int(ino.0)], further, &mut |(_, dir, name)| {
            all.push(Dentry { dir, name });
            true
        })?;
        Ok(all)
    }

    fn further_name(&self, ino: Ino) -> Result<Option<Dentry>> {
        let sql = "SELECT ino, dir, name FROM further_names WHERE ino = ?1 LIMIT 1";
        let found = self.one(sql, [int(ino.0)], further)?;
        Ok(found.map(|(_, dir, name)| Dentry { dir, name }))
    }

    fn all_further_names(&self, visit: Visit<'_, (Ino, Ino, FileName)>) -> Result<()> {
        self.each("SELECT ino, dir, name FROM further_names", [], further, visit)
    }
}

impl TxnLinks for Conn {
    fn insert_further_name(&mut self, ino: Ino, dir: Ino, name: &FileName) -> Result<()> {
        let sql = "INSERT INTO further_names (ino, dir, name) VALUES (?1, ?2, ?3)";
        self.change(sql, params![int(ino.0), int(dir.0), name.as_bytes()])?;
        Ok(())
    }

    fn delete_further_name(&mut self, ino: Ino, dir: Ino, name: &FileName) -> Result<bool> {
        let sql = "DELETE FROM further_names WHERE ino = ?1 AND dir = ?2 AND name = ?3";
        Ok(self.change(sql, params![int(ino.0), int(dir.0), name.as_bytes()])? > 0)
    }
}
