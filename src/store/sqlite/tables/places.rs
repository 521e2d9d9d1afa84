//! What directories are to workspaces, and the places that the writer remembers.
//!
//! Each change looks at the places of the directories that it is about, and they change only when
//! directories are made, moved or removed. There is one writer, so that nobody else changes the
//! table: what it read stays true until it writes to the table itself.
//!
//! What must stay true: whoever writes to `places` or `workspaces` forgets what is remembered, and
//! what was read after that is forgotten, too, if the change is undone.

use std::collections::HashMap;

use rusqlite::{Row, params};

use super::columns::{int, number, tree_path};
use crate::limits::PLACES_REMEMBERED_MAX;
use crate::numbers::{Ino, WorkspaceKey};
use crate::store::PlaceRow;
use crate::store::sqlite::{Conn, Result};

/// The places that a connection remembers; only the writer's does.
#[derive(Default)]
pub(in crate::store::sqlite) struct Places {
    remembered: Option<HashMap<Ino, Option<PlaceRow>>>,
    /// Whether the transaction under way wrote to the tables.
    changed: bool,
}

/// What is remembered of a directory.
#[derive(Debug, PartialEq)]
enum Remembered {
    Place(PlaceRow),
    NoPlace,
    Nothing,
}

impl Places {
    /// Those of the one connection that writes.
    pub fn of_writer() -> Places {
        Places { remembered: Some(HashMap::new()), changed: false }
    }

    fn get(&self, dir: Ino) -> Remembered {
        match self.remembered.as_ref().and_then(|remembered| remembered.get(&dir)) {
            Some(Some(place)) => Remembered::Place(place.clone()),
            Some(None) => Remembered::NoPlace,
            None => Remembered::Nothing,
        }
    }

    fn remember(&mut self, dir: Ino, place: Option<&PlaceRow>) {
        let Some(remembered) = &mut self.remembered else { return };
        if remembered.len() >= PLACES_REMEMBERED_MAX {
            remembered.clear();
        }
        remembered.insert(dir, place.cloned());
    }

    /// The tables are written to.
    pub fn change(&mut self) {
        self.forget();
        self.changed = true;
    }

    /// What the transaction did up to now is undone, in part or whole.
    pub fn undo(&mut self) {
        if self.changed {
            self.forget();
        }
    }

    /// The transaction is over.
    pub fn end(&mut self, committed: bool) {
        if !committed {
            self.undo();
        }
        self.changed = false;
    }

    fn forget(&mut self) {
        if let Some(remembered) = &mut self.remembered {
            remembered.clear();
        }
    }
}

fn place(row: &Row<'_>, at: usize) -> rusqlite::Result<PlaceRow> {
    Ok(PlaceRow {
        workspace: WorkspaceKey(number(row, at)?),
        relative: tree_path(row, at + 1)?.names().to_vec(),
        path: tree_path(row, at + 2)?,
    })
}

impl Conn {
    pub(super) fn place_of(&self, dir: Ino) -> Result<Option<PlaceRow>> {
        match self.places.borrow().get(dir) {
            Remembered::Place(place) => return Ok(Some(place)),
            Remembered::NoPlace => return Ok(None),
            Remembered::Nothing => {}
        }
        let sql = "SELECT p.workspace, p.relative, w.path FROM places p \
                   JOIN workspaces w ON w.key = p.workspace WHERE p.dir = ?1";
        let place = self.one(sql, [int(dir.0)], |row| place(row, 0))?;
        self.places.borrow_mut().remember(dir, place.as_ref());
        Ok(place)
    }

    pub(super) fn all_places_of(&self, workspace: WorkspaceKey) -> Result<Vec<(Ino, PlaceRow)>> {
        let sql = "SELECT p.dir, p.workspace, p.relative, w.path FROM places p \
                   JOIN workspaces w ON w.key = p.workspace WHERE p.workspace = ?1";
        self.all(sql, [int(workspace.0)], |row| Ok((Ino(number(row, 0)?), place(row, 1)?)))
    }

    pub(super) fn write_place(&mut self, dir: Ino, place: &PlaceRow) -> Result<()> {
        self.places.get_mut().change();
        let relative = place.relative.iter().cloned().collect::<crate::names::TreePath>();
        self.change(
            "INSERT INTO places (dir, workspace, relative) VALUES (?1, ?2, ?3) \
             ON CONFLICT (dir) DO UPDATE SET workspace = excluded.workspace, \
             relative = excluded.relative",
            params![int(dir.0), int(place.workspace.0), relative.to_bytes()],
        )?;
        Ok(())
    }

    pub(super) fn remove_place(&mut self, dir: Ino) -> Result<()> {
        self.places.get_mut().change();
        self.change("DELETE FROM places WHERE dir = ?1", [int(dir.0)])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> PlaceRow {
        let path = crate::names::TreePath::parse(b"work").unwrap();
        PlaceRow { workspace: WorkspaceKey(1), path, relative: Vec::new() }
    }

    #[test]
    fn a_place_is_remembered_from_one_transaction_to_the_next() {
        let mut places = Places::of_writer();
        places.remember(Ino(5), Some(&row()));
        places.remember(Ino(6), None);
        places.end(true);
        places.undo();
        assert_eq!(places.get(Ino(5)), Remembered::Place(row()));
        assert_eq!(places.get(Ino(6)), Remembered::NoPlace);
        assert_eq!(places.get(Ino(7)), Remembered::Nothing);
    }

    #[test]
    fn who_writes_forgets_and_what_is_undone_is_not_remembered() {
        let mut places = Places::of_writer();
        places.remember(Ino(5), None);
        places.change();
        assert_eq!(places.get(Ino(5)), Remembered::Nothing);
        places.remember(Ino(5), Some(&row()));
        places.undo();
        assert_eq!(places.get(Ino(5)), Remembered::Nothing);
        places.remember(Ino(5), Some(&row()));
        places.end(false);
        assert_eq!(places.get(Ino(5)), Remembered::Nothing);
    }

    #[test]
    fn a_reader_remembers_nothing() {
        let mut places = Places::default();
        places.remember(Ino(5), None);
        assert_eq!(places.get(Ino(5)), Remembered::Nothing);
    }
}
