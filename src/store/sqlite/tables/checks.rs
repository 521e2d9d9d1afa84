//! [`ReadChecks`] in SQL: scans of whole tables, each row by itself.

use std::collections::BTreeMap;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::columns::{file_name, int, number};
use super::read::{event, node, record, workspace};
use super::schema;
use crate::limits::{CHUNK_BYTES, CHUNK_INDEX_MAX};
use crate::names::printable;
use crate::numbers::{G, Ino, RecordKey, WorkspaceKey};
use crate::store::sqlite::{Conn, fail, unreadable};
use crate::store::{
    Chunks, Differs, EntryRow, EventRow, Legible, Node, Numbers, Part, ReadChecks, Record, Result,
    StoreError, Visit, Way, WorkspaceRow,
};

/// The number that a column has; 0 where it has none.
fn any_number(row: &Row<'_>, column: usize) -> u64 {
    match row.get_ref(column) {
        Ok(ValueRef::Integer(number)) => number.cast_unsigned(),
        _ => 0,
    }
}

/// A name, whose columns are its directory, itself and where it leads.
fn entry(row: &Row<'_>) -> rusqlite::Result<EntryRow> {
    let shown = || match row.get_ref(1) {
        Ok(ValueRef::Blob(bytes) | ValueRef::Text(bytes)) => printable(bytes),
        _ => String::new(),
    };
    let (parent, ino) = (Ino(any_number(row, 0)), Ino(any_number(row, 2)));
    Ok(EntryRow { parent, name: file_name(row, 1).map_err(|_| shown()), ino })
}

fn legible<T>(read: rusqlite::Result<T>) -> Legible<T> {
    read.map_err(|error| unreadable(&error).unwrap_or_else(|| error.to_string()))
}

/// What a database is made of: each object with its columns and the text that defines it. Columns alone do not show a
/// condition or a reference; and of a store that is only read SQLite leaves conditions out.
fn outline(sql: &Connection) -> rusqlite::Result<BTreeMap<String, String>> {
    // Texts are as the migrations wrote them, whichever of them a store began with: of those that stores have run only
    // this reference is gone since.
    let objects = "SELECT o.type || ' ' || o.name, o.tbl_name || ' ' || coalesce(CASE o.type \
         WHEN 'table' THEN (SELECT l.wr || l.strict || group_concat(c.name || ' ' || c.type || ' ' \
             || c.\"notnull\" || ' ' || coalesce(c.dflt_value, '') || ' ' || c.pk || c.hidden) \
             FROM pragma_table_list l, pragma_table_xinfo(l.name) c \
             WHERE l.schema = 'main' AND l.name = o.name) \
         WHEN 'index' THEN (SELECT group_concat(coalesce(c.name, '') || c.desc || c.key) \
             FROM pragma_index_xinfo(o.name) c) END, '') || coalesce(replace(o.sql, \
                 'ino    INTEGER NOT NULL REFERENCES nodes(ino),', 'ino    INTEGER NOT NULL,'), '') \
         FROM sqlite_schema o WHERE o.name NOT LIKE 'sqlite\\_stat%' ESCAPE '\\'";
    let mut statement = sql.prepare(objects)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// What was read, or why it cannot be; what is no damage ends the check.
fn damage<T>(read: Result<T>) -> Result<Legible<T>> {
    match read {
        Ok(read) => Ok(Ok(read)),
        Err(StoreError::Impossible(why)) => Ok(Err(why)),
        Err(error) => Err(error),
    }
}

impl Conn {
    fn each_legible<K, T>(
        &self,
        sql: &str,
        key: impl Fn(&Row<'_>) -> K,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
        visit: Visit<'_, (K, Legible<T>)>,
    ) -> Result<()> {
        self.each(sql, [], |row| Ok((key(row), legible(read(row)))), visit)
    }

    /// Every problem that SQLite's own check finds, and those of what lies beside the tables.
    pub(in crate::store::sqlite) fn integrity(&self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        if let Err(why) = damage(self.own_check(&mut found))? {
            // It ends at the first condition that it cannot ask; without them it comes to all tables.
            let ignored = self.sql.pragma_update(None, "ignore_check_constraints", true);
            ignored.map_err(fail)?;
            let mut again = Vec::new();
            let walked = damage(self.own_check(&mut again));
            let asked = self.sql.pragma_update(None, "ignore_check_constraints", false);
            asked.map_err(fail)?;
            again.retain(|line| !found.contains(line));
            found.extend(again);
            // What it found says more than that it could not go on.
            if walked?.is_ok() || found.is_empty() {
                found.insert(0, format!("cannot be read: {why}"));
            }
        }
        found.extend(self.extents.problem());
        match damage(self.misplaced())? {
            Ok(misplaced) => found.extend(misplaced),
            Err(why) if found.is_empty() => found.push(format!("cannot be read: {why}")),
            // Of the same damage.
            Err(_) => {}
        }
        Ok(found)
    }

    fn own_check(&self, found: &mut Vec<String>) -> Result<()> {
        let mut note = |line: String| {
            found.extend(Some(line).filter(|line| line != "ok"));
            true
        };
        self.each("SELECT * FROM pragma_integrity_check", [], |row| row.get(0), &mut note)
    }

    /// What the rows say of big files that cannot be.
    fn misplaced(&self) -> Result<Vec<String>> {
        let count = |sql| self.one(sql, [CHUNK_BYTES as i64], |row| number(row, 0));
        let nowhere = "SELECT count(*) FROM chunks WHERE at IS NOT NULL AND (at < ?1 OR at % ?1)";
        let freed = "SELECT count(*) FROM freed f \
                     CROSS JOIN chunks c ON c.at > f.at - ?1 AND c.at < f.at + f.length";
        let of = [(count(nowhere)?, "where none can lie"), (count(freed)?, "in what was freed")];
        let wrong =
            of.into_iter().filter_map(|(count, what)| Some((count.filter(|n| *n > 0)?, what)));
        Ok(wrong.map(|(count, what)| format!("{count} chunks of big files lie {what}")).collect())
    }
}

impl ReadChecks for Conn {
    fn unowned(&self) -> Result<Vec<String>> {
        // What belongs to an inode is looked at one by one; and where a table is missing, all that
        // belongs to it would be told of.
        let belong = "SELECT \"table\", parent, count(*) FROM pragma_foreign_key_check(?1) \
                      WHERE parent <> 'nodes' AND parent IN (SELECT name FROM sqlite_schema) \
                      GROUP BY 1, 2";
        let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
        let tables: Vec<String> = self.all(tables, [], |row| row.get(0))?;
        let mut unowned = Vec::new();
        // Each by itself: one whose references cannot be followed hides no other's.
        for table in tables {
            let rows = self.all(belong, [&table], |row| {
                let (table, parent): (String, String) = (row.get(0)?, row.get(1)?);
                let count = number(row, 2)?;
                Ok(format!("{count} rows of {table} belong to rows of {parent} that are not there"))
            });
            match damage(rows)? {
                Ok(rows) => unowned.extend(rows),
                Err(why) => {
                    unowned.push(format!("the references of {table} cannot be read: {why}"))
                }
            }
        }
        Ok(unowned)
    }

    fn schema_differences(&self) -> Result<Vec<(String, Differs)>> {
        let made = Connection::open_in_memory().map_err(fail)?;
        schema::migrate(&made, "memory")?;
        let ours = outline(&made).map_err(fail)?;
        let found = outline(&self.sql).map_err(fail)?;
        let mut differences = Vec::new();
        for (object, form) in &ours {
            match found.get(object) {
                None => differences.push((object.clone(), Differs::Missing)),
                Some(other) if other != form => differences.push((object.clone(), Differs::Other)),
                Some(_) => {}
            }
        }
        let foreign = found.into_keys().filter(|object| !ours.contains_key(object));
        differences.extend(foreign.map(|object| (object, Differs::Foreign)));
        Ok(differences)
    }

    fn numbers(&self) -> Result<Vec<Numbers>> {
        let tables = [
            ("inodes", "nodes", "SELECT max(ino) FROM nodes"),
            // Of a file that is gone.
            ("inodes", "nodes", "SELECT max(ino) FROM backups"),
            ("workspaces", "workspaces", "SELECT max(key) FROM workspaces"),
            ("records", "records", "SELECT max(key) FROM records"),
            ("refusals", "refusals", "SELECT max(key) FROM refusals"),
            ("histories", "histories", "SELECT max(key) FROM histories"),
        ];
        let mut all = Vec::new();
        for (of, table, highest) in tables {
            let first = |row: &Row<'_>| Ok(any_number(row, 0));
            let highest = self.one(highest, [], first)?.unwrap_or(0);
            let noted = "SELECT seq FROM sqlite_sequence WHERE name = ?1";
            let noted = self.one(noted, [table], first)?.unwrap_or(0);
            all.push(Numbers { of, noted, highest });
        }
        Ok(all)
    }

    fn all_nodes(&self, visit: Visit<'_, (Ino, Legible<Node>)>) -> Result<()> {
        let sql = concat!("SELECT ", node_columns!(), " FROM nodes n ORDER BY ino");
        self.each_legible(sql, |row| Ino(any_number(row, 0)), |row| node(row, 0), visit)
    }

    fn all_entries(&self, visit: Visit<'_, EntryRow>) -> Result<()> {
        let sql = "SELECT parent, name, ino FROM entries ORDER BY parent, name";
        self.each(sql, [], entry, visit)
    }

    fn entries_of(&self, dir: Ino, way: Way, visit: Visit<'_, EntryRow>) -> Result<()> {
        let sql = match way {
            Way::Forwards => {
                "SELECT parent, name, ino FROM entries WHERE parent = ?1 ORDER BY name"
            }
            Way::Backwards => {
                "SELECT parent, name, ino FROM entries WHERE parent = ?1 ORDER BY name DESC"
            }
            Way::Directories => {
                "SELECT parent, name, ino FROM dirs JOIN nodes USING (ino) WHERE parent = ?1"
            }
            Way::Records => "SELECT dir, name, ino FROM records WHERE dir = ?1 AND standing < 2",
            Way::Drafts => "SELECT dir, name, ino FROM drafts WHERE dir = ?1",
        };
        self.each(sql, [int(dir.0)], entry, visit)
    }

    fn inodes_with(&self, part: Part, visit: Visit<'_, Ino>) -> Result<()> {
        let sql = match part {
            Part::DirName => "SELECT ino FROM dirs",
            Part::Target => "SELECT ino FROM symlinks",
            Part::Draft => "SELECT ino FROM drafts",
            Part::Attributes => "SELECT DISTINCT ino FROM xattrs",
            Part::Nameless => "SELECT ino FROM orphans",
            Part::Lock => "SELECT ino FROM lock_leases",
            Part::Quota => "SELECT dir FROM quotas",
        };
        self.each(sql, [], |row| Ok(Ino(any_number(row, 0))), visit)
    }

    fn all_chunks(&self, visit: Visit<'_, Chunks>) -> Result<()> {
        // Of a length that is asked for by itself SQLite reads no content, which an aggregate of it would.
        let sql = "SELECT key, CASE WHEN at IS NULL THEN length(data) WHEN at > ?2 - ?1 THEN 0 ELSE ?1 END \
                   FROM chunks ORDER BY key";
        let mut last: Option<Chunks> = None;
        let mut goes_on = true;
        let read = |row: &Row<'_>| Ok((any_number(row, 0), any_number(row, 1)));
        let bounds = [CHUNK_BYTES as i64, int(self.extents.reach())];
        self.each(sql, bounds, read, &mut |(key, length)| {
            let (ino, index) = (Ino(key >> 24), key & u64::from(CHUNK_INDEX_MAX));
            if last.is_some_and(|last| last.ino != ino) {
                goes_on = last.take().is_none_or(&mut *visit);
            }
            let one = last.get_or_insert(Chunks { ino, count: 0, end: 0, longest: 0, lost: 0 });
            one.count += 1;
            one.end = index * CHUNK_BYTES as u64 + length;
            one.longest = one.longest.max(length);
            one.lost += u64::from(length == 0);
            goes_on
        })?;
        if goes_on {
            last.map(visit);
        }
        Ok(())
    }

    fn all_events(&self, visit: Visit<'_, (G, Legible<EventRow>)>) -> Result<()> {
        let sql = "SELECT g, before_g, end, line FROM events ORDER BY g";
        self.each_legible(sql, |row| G(any_number(row, 0)), event, visit)
    }

    fn all_workspaces(
        &self,
        visit: Visit<'_, (WorkspaceKey, Legible<WorkspaceRow>)>,
    ) -> Result<()> {
        let sql = "SELECT key, path, dir, kind FROM workspaces ORDER BY path";
        self.each_legible(sql, |row| WorkspaceKey(any_number(row, 0)), workspace, visit)
    }

    fn all_records(
        &self,
        visit: Visit<'_, (RecordKey, Option<Ino>, Legible<Record>)>,
    ) -> Result<()> {
        let sql = concat!("SELECT ", record_columns!(), " FROM records ORDER BY workspace, id");
        let key = |row: &Row<'_>| {
            let file = Some(Ino(any_number(row, 4))).filter(|ino| ino.0 > 0);
            (RecordKey(any_number(row, 0)), file)
        };
        self.each_legible(sql, key, record, &mut |((key, file), row)| visit((key, file, row)))
    }

    fn stray_versions(&self, visit: Visit<'_, G>) -> Result<()> {
        let sql = "SELECT g FROM versions v \
                   WHERE NOT EXISTS (SELECT 1 FROM records WHERE key = v.record)";
        self.each(sql, [], |row| Ok(G(any_number(row, 0))), visit)
    }

    fn stray_edges(&self, visit: Visit<'_, (String, String)>) -> Result<()> {
        let sql = "SELECT e.dependant, e.dependency FROM edges e WHERE e.sides & 1 AND NOT EXISTS \
                     (SELECT 1 FROM records r WHERE r.workspace = e.workspace AND r.id = e.dependant) \
                   UNION ALL \
                   SELECT e.dependency, e.dependant FROM edges e WHERE e.sides & 2 AND NOT EXISTS \
                     (SELECT 1 FROM records r WHERE r.workspace = e.workspace AND r.id = e.dependency)";
        self.each(sql, [], |row| Ok((row.get(0)?, row.get(1)?)), visit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store in whose definitions this part is another one.
    fn with(table: &str, part: &str, other: &str) -> Connection {
        let sql = Connection::open_in_memory().unwrap();
        schema::migrate(&sql, "memory").unwrap();
        let change = format!(
            "PRAGMA writable_schema = ON; \
             UPDATE sqlite_schema SET sql = replace(sql, '{part}', '{other}') WHERE name = '{table}'; \
             PRAGMA writable_schema = RESET"
        );
        sql.execute_batch(&change).unwrap();
        sql
    }

    // P5.2
    #[test]
    fn a_reference_that_older_stores_declare_is_no_difference() {
        let now = with("entries", "", "");
        let older = with(
            "entries",
            "ino    INTEGER NOT NULL,",
            "ino    INTEGER NOT NULL REFERENCES nodes(ino),",
        );
        let declared = "SELECT count(*) FROM pragma_foreign_key_list('entries')";
        let count =
            |sql: &Connection| -> i64 { sql.query_row(declared, [], |r| r.get(0)).unwrap() };
        assert_eq!((count(&now), count(&older)), (1, 2));
        assert_eq!(outline(&now).unwrap(), outline(&older).unwrap());
    }

    // P5.2
    #[test]
    fn a_condition_or_a_reference_that_is_another_is_a_difference() {
        let ours = outline(&with("entries", "", "")).unwrap();
        for (table, part, other) in [
            ("records", "length(trace) = 16", "length(trace) = 17"),
            ("leases", "ttl > 0", "ttl < 0"),
            ("backups", "REFERENCES records(key)", "REFERENCES recorts(key)"),
        ] {
            let theirs = outline(&with(table, part, other)).unwrap();
            let differing: Vec<_> =
                ours.iter().filter(|(object, form)| theirs.get(*object) != Some(form)).collect();
            let differing: Vec<_> = differing.iter().map(|(object, _)| object.as_str()).collect();
            assert_eq!(differing, [format!("table {table}")]);
        }
    }
}
