//! The number of a store's tables: where it is not the newest, the migrations between run forward, in one
//! transaction each.

use rusqlite::Connection;

use super::migrations::MIGRATIONS;
use crate::store::sqlite::{cause, fail};
use crate::store::{MAKING_BEGUN, MAKING_KEY, Result, StoreError};

/// `application_id` of a workfs store: "wkfs".
pub const APPLICATION_ID: i64 = 0x776b_6673;

/// The newest schema this program knows.
pub fn known() -> i64 {
    MIGRATIONS.len() as i64
}

/// Marks a store as one that is being made.
fn begun() -> String {
    format!("INSERT INTO meta (key, value) VALUES ('{MAKING_KEY}', '{MAKING_BEGUN}');")
}

/// Brings the store's schema up to [`known`].
///
/// # Errors
/// [`StoreError::Newer`] for a store of a later workfs, [`StoreError::NotAStore`] for another
/// program's database.
pub fn migrate(connection: &Connection, path: &str) -> Result<()> {
    let found = look(connection, path)?;
    for (index, migration) in MIGRATIONS.iter().enumerate().skip(found.unsigned_abs() as usize) {
        let version = index + 1;
        // With the first tables, so that there is no moment at which a new store looks whole.
        let begun = if index == 0 { begun() } else { String::new() };
        connection
            .execute_batch(&format!(
                "BEGIN IMMEDIATE; {migration} {begun} PRAGMA user_version = {version}; \
                 PRAGMA application_id = {APPLICATION_ID}; COMMIT;"
            ))
            .map_err(|error| cause(connection, error))?;
    }
    Ok(())
}

/// The store's schema, of which this program knows enough.
fn look(connection: &Connection, path: &str) -> Result<i64> {
    let number = |pragma: &str| -> Result<i64> {
        connection.pragma_query_value(None, pragma, |row| row.get(0)).map_err(fail)
    };
    let found = number("user_version")?;
    let application = number("application_id")?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(fail)?;
    if tables > 0 && application != APPLICATION_ID {
        return Err(StoreError::NotAStore(path.to_owned()));
    }
    if found > known() {
        return Err(StoreError::Newer { found, known: known() });
    }
    Ok(found)
}

/// Expects the schema to be [`known`], where it cannot be brought there.
///
/// # Errors
/// As [`migrate`], and [`StoreError::Older`].
pub fn check(connection: &Connection, path: &str) -> Result<()> {
    match look(connection, path)? {
        found if found < known() => Err(StoreError::Older { found, known: known() }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    /// A store with the schema of that number.
    fn older(schema: usize) -> Connection {
        let sql = Connection::open_in_memory().unwrap();
        let (tables, id) = (super::MIGRATIONS[..schema].concat(), super::APPLICATION_ID);
        let numbers = format!("PRAGMA user_version = {schema}; PRAGMA application_id = {id};");
        sql.execute_batch(&(tables + &numbers)).unwrap();
        sql
    }

    /// Before there was `returns`, a record whose way back was blocked stayed for ever.
    #[test]
    fn who_was_stuck_in_an_older_store_is_tried_again() {
        let sql = older(8);
        let record = "INSERT INTO records (workspace, id, standing, ino, dir, name, state, owner, \
             lapsed, attempt, version, version_g, last_g, trace) VALUES (1, ";
        let more = "'assigned', 'bob', ";
        let end = ", 1, 1, 1, 1, zeroblob(16));";
        sql.execute_batch(&format!(
            "INSERT INTO workspaces (key, path, kind) VALUES (1, x'77', 'task'); \
             {record} 'stuck', 0, 7, 1, x'61', {more} 'bob' {end} \
             {record} 'parked', 2, NULL, 1, NULL, {more} 'bob' {end} \
             {record} 'gone', 3, NULL, NULL, NULL, {more} 'bob' {end} \
             {record} 'held', 0, 8, 1, x'62', {more} NULL {end}"
        ))
        .unwrap();
        super::migrate(&sql, "memory").unwrap();
        let ids = "SELECT group_concat(id ORDER BY key) FROM returns JOIN records ON key = record";
        let ids: String = sql.query_row(ids, [], |row| row.get(0)).unwrap();
        assert_eq!(ids, "stuck,parked");
    }

    /// Of a lock's lease is left what was left.
    #[test]
    fn the_leases_of_locks_go_over_to_the_lease_clock() {
        let left = |clock: Option<&str>, until: &str| -> i64 {
            let sql = older(10);
            if let Some(clock) = clock {
                let keep = "INSERT INTO meta (key, value) VALUES ('lease_clock', ?1)";
                sql.execute(keep, [clock]).unwrap();
            }
            let lock = format!("INSERT INTO lock_leases (ino, until) VALUES (1, {until})");
            sql.execute(&lock, []).unwrap();
            super::migrate(&sql, "memory").unwrap();
            sql.query_row("SELECT until FROM lock_leases", [], |row| row.get(0)).unwrap()
        };
        let clock = r#"{"at":5000,"steady":7,"boot":"b","wall":1764000000000000000}"#;
        assert_eq!(left(Some(clock), "1764000000000000300"), 5_300);
        assert_eq!(left(Some(clock), "1000"), 0, "long ago");
        let soon = left(None, "unixepoch() * 1000000000 + 60000000000");
        assert!((58_000_000_000..=60_000_000_000).contains(&soon), "{soon}");
    }

    /// Before there was `further_names`, a file whose first name went did not know of the others.
    #[test]
    fn every_file_of_an_older_store_lies_where_one_name_of_it_does() {
        let sql = older(10);
        let node = |ino: i64, kind: i64, nlink: i64, parent: i64, names: &[(i64, &str)]| {
            let node = "INSERT INTO nodes (ino, type, class, mode, uid, gid, rdev, nlink, size, \
                 atime, mtime, ctime, parent, quota) \
                 VALUES (?1, ?2, 0, 0, 0, 0, 0, ?3, 0, 0, 0, 0, ?4, 9)";
            sql.execute(node, (ino, kind, nlink, parent)).unwrap();
            for (dir, name) in names {
                let entry = "INSERT INTO entries (parent, name, ino) VALUES (?1, ?2, ?3)";
                sql.execute(entry, (dir, name.as_bytes(), ino)).unwrap();
            }
        };
        node(2, 1, 2, 1, &[(1, "a")]);
        node(3, 1, 2, 1, &[(1, "b")]);
        node(10, 0, 1, 2, &[(2, "whole")]);
        node(11, 0, 1, 2, &[(3, "fallen")]);
        node(12, 0, 2, 2, &[(2, "first"), (3, "further")]);
        node(13, 0, 2, 1, &[(2, "one"), (3, "other")]);
        node(14, 0, 3, 3, &[(3, "x"), (3, "y"), (2, "z")]);
        super::migrate(&sql, "memory").unwrap();
        let text = |query: &str| -> String { sql.query_row(query, [], |row| row.get(0)).unwrap() };
        let parents = "SELECT group_concat(ino || ' ' || parent, ', ') FROM nodes WHERE ino > 9";
        assert_eq!(text(parents), "10 2, 11 3, 12 2, 13 2, 14 3");
        let further = text(
            "SELECT group_concat(ino || ' ' || dir || ' ' || CAST(name AS TEXT), ', ') \
             FROM further_names",
        );
        assert_eq!(further, "12 3 further, 13 3 other, 14 2 z, 14 3 y");
        assert_eq!(text("SELECT CAST(count(quota) AS TEXT) FROM nodes"), "0");
    }

    /// A reference without an index makes each deletion of what is referred to read the whole table.
    #[test]
    fn every_reference_is_found_by_a_key() {
        let sql = Connection::open_in_memory().unwrap();
        super::migrate(&sql, "memory").unwrap();
        let unindexed = "SELECT group_concat(t.name || '.' || f.\"from\") \
             FROM sqlite_schema t, pragma_foreign_key_list(t.name) f \
             WHERE t.type = 'table' \
             AND NOT EXISTS (SELECT 1 FROM pragma_table_info(t.name) c \
                             WHERE c.name = f.\"from\" AND c.pk = 1) \
             AND NOT EXISTS (SELECT 1 FROM pragma_index_list(t.name) i, pragma_index_info(i.name) c \
                             WHERE c.seqno = 0 AND c.name = f.\"from\" AND i.partial = 0)";
        let found: Option<String> = sql.query_row(unindexed, [], |row| row.get(0)).unwrap();
        assert_eq!(found, None);
    }
}
