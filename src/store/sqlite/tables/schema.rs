//! The tables, as numbered migrations that run forward in one transaction each.
//!
//! Why they look so: listing and claiming must not read content, so content lies in tables of its
//! own; a claim must touch few pages, so a record's history is a list linked from its newest event
//! and version (`before_g`) instead of an index; versions are keyed by the event that made them,
//! so that they append; a directory lists in name order from the primary key, so that a listing
//! can go on after any name however much the directory changes.

use rusqlite::Connection;

use crate::store::sqlite::{cause, fail};
use crate::store::{MAKING_BEGUN, MAKING_KEY, Result, StoreError};

/// `application_id` of a workfs store: "wkfs".
pub const APPLICATION_ID: i64 = 0x776b_6673;

const MIGRATIONS: &[&str] = &[
    r"
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Numbers are never reused, hence AUTOINCREMENT.
CREATE TABLE nodes (
  ino    INTEGER PRIMARY KEY AUTOINCREMENT,
  type   INTEGER NOT NULL CHECK (type BETWEEN 0 AND 6),
  class  INTEGER NOT NULL CHECK (class BETWEEN 0 AND 2),
  mode   INTEGER NOT NULL,
  uid    INTEGER NOT NULL,
  gid    INTEGER NOT NULL,
  rdev   INTEGER NOT NULL,
  nlink  INTEGER NOT NULL CHECK (nlink >= 0),
  size   INTEGER NOT NULL CHECK (size >= 0),
  atime  INTEGER NOT NULL,
  mtime  INTEGER NOT NULL,
  ctime  INTEGER NOT NULL,
  parent INTEGER NOT NULL,
  chunks INTEGER NOT NULL DEFAULT 0 CHECK (chunks >= 0)
) STRICT;

-- `ino` is no declared reference: for each node that goes SQLite would look through all names for
-- one that still leads to it, and an index would cost every change of a name. `fsck` looks.
CREATE TABLE entries (
  parent INTEGER NOT NULL REFERENCES nodes(ino),
  name   BLOB NOT NULL,
  ino    INTEGER NOT NULL,
  PRIMARY KEY (parent, name)
) STRICT, WITHOUT ROWID;

-- A directory's own name, so that its path is found by climbing.
CREATE TABLE dirs (
  ino  INTEGER PRIMARY KEY REFERENCES nodes(ino) ON DELETE CASCADE,
  name BLOB NOT NULL
) STRICT;

CREATE TABLE symlinks (
  ino    INTEGER PRIMARY KEY REFERENCES nodes(ino) ON DELETE CASCADE,
  target BLOB NOT NULL
) STRICT;

-- key = ino << 24 | index: one b-tree, in which a file's chunks lie side by side.
CREATE TABLE chunks (
  key  INTEGER PRIMARY KEY,
  data BLOB NOT NULL
) STRICT;

CREATE TABLE xattrs (
  ino   INTEGER NOT NULL REFERENCES nodes(ino) ON DELETE CASCADE,
  name  BLOB NOT NULL,
  value BLOB NOT NULL,
  PRIMARY KEY (ino, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE orphans (ino INTEGER PRIMARY KEY REFERENCES nodes(ino)) STRICT;

CREATE TABLE workspaces (
  key  INTEGER PRIMARY KEY AUTOINCREMENT,
  path BLOB NOT NULL UNIQUE,
  dir  INTEGER UNIQUE,
  kind TEXT NOT NULL
) STRICT;

CREATE TABLE places (
  dir       INTEGER PRIMARY KEY,
  workspace INTEGER NOT NULL REFERENCES workspaces(key),
  relative  BLOB NOT NULL
) STRICT;
CREATE INDEX places_workspace ON places (workspace);

-- standing: 0 live and valid, 1 live and flagged, 2 parked, 3 gone.
CREATE TABLE records (
  key       INTEGER PRIMARY KEY AUTOINCREMENT,
  workspace INTEGER NOT NULL REFERENCES workspaces(key),
  id        TEXT NOT NULL,
  standing  INTEGER NOT NULL CHECK (standing BETWEEN 0 AND 3),
  ino       INTEGER UNIQUE CHECK ((standing < 2) = (ino IS NOT NULL)),
  dir       INTEGER CHECK ((standing < 3) = (dir IS NOT NULL)),
  name      BLOB CHECK ((standing < 2) = (name IS NOT NULL)),
  state     TEXT NOT NULL,
  owner     TEXT,
  status    TEXT,
  attempt   INTEGER NOT NULL,
  version   INTEGER NOT NULL,
  version_g INTEGER NOT NULL,
  last_g    INTEGER NOT NULL,
  trace     BLOB NOT NULL CHECK (length(trace) = 16),
  UNIQUE (workspace, id)
) STRICT;

CREATE TABLE versions (
  g        INTEGER PRIMARY KEY,
  record   INTEGER NOT NULL,
  version  INTEGER NOT NULL,
  before_g INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  content  BLOB NOT NULL
) STRICT;

CREATE TABLE drafts (
  ino     INTEGER PRIMARY KEY REFERENCES nodes(ino) ON DELETE CASCADE,
  dir     INTEGER NOT NULL,
  name    BLOB NOT NULL,
  why     TEXT,
  content BLOB NOT NULL
) STRICT;

CREATE TABLE events (
  g        INTEGER PRIMARY KEY,
  before_g INTEGER NOT NULL,
  end      INTEGER NOT NULL,
  line     TEXT NOT NULL
) STRICT;

CREATE TABLE refusals (
  key       INTEGER PRIMARY KEY AUTOINCREMENT,
  at        INTEGER NOT NULL,
  mount     INTEGER,
  uid       INTEGER NOT NULL,
  pid       INTEGER NOT NULL,
  operation TEXT NOT NULL,
  path      BLOB NOT NULL,
  errno     TEXT NOT NULL,
  why       TEXT NOT NULL,
  rejected  BLOB
) STRICT;
CREATE INDEX refusals_path ON refusals (path);

INSERT INTO nodes (ino, type, class, mode, uid, gid, rdev, nlink, size, atime, mtime, ctime, parent)
VALUES (1, 1, 0, 493, 0, 0, 0, 2, 0, 0, 0, 0, 1);
",
    r"
-- The order of work lies in the record's own row and in indexes of few rows: a claim takes one
-- entry out of records_ready and touches nothing else of it.
ALTER TABLE records ADD COLUMN done       INTEGER NOT NULL DEFAULT 0;
ALTER TABLE records ADD COLUMN fit        INTEGER NOT NULL DEFAULT 0;
ALTER TABLE records ADD COLUMN open       INTEGER NOT NULL DEFAULT 0;
ALTER TABLE records ADD COLUMN priority   INTEGER NOT NULL DEFAULT 0;
ALTER TABLE records ADD COLUMN since      INTEGER NOT NULL DEFAULT 0;
ALTER TABLE records ADD COLUMN not_before INTEGER;
ALTER TABLE records ADD COLUMN ready      INTEGER NOT NULL DEFAULT 0;
ALTER TABLE records ADD COLUMN due        INTEGER;
CREATE INDEX records_ready ON records (workspace, priority, since) WHERE ready = 1;
CREATE INDEX records_due ON records (due) WHERE due IS NOT NULL;

-- sides: 1 declared by the dependant, 2 by the dependency, 3 by both. Ids, not keys: one may
-- depend on a record that is not there yet.
CREATE TABLE edges (
  workspace  INTEGER NOT NULL REFERENCES workspaces(key),
  dependency TEXT NOT NULL,
  dependant  TEXT NOT NULL,
  sides      INTEGER NOT NULL CHECK (sides BETWEEN 1 AND 3),
  PRIMARY KEY (workspace, dependency, dependant)
) STRICT, WITHOUT ROWID;
CREATE INDEX edges_dependant ON edges (workspace, dependant);
",
    r"
CREATE TABLE agents (
  name TEXT PRIMARY KEY,
  role TEXT NOT NULL,
  uid  INTEGER UNIQUE
) STRICT, WITHOUT ROWID;

ALTER TABLE refusals ADD COLUMN actor TEXT NOT NULL DEFAULT 'unknown';
",
    r"
-- Plain files whose saves count: their names by inode, so that `close` finds the path.
CREATE TABLE file_names (
  ino  INTEGER PRIMARY KEY REFERENCES nodes(ino) ON DELETE CASCADE,
  dir  INTEGER NOT NULL,
  name BLOB NOT NULL
) STRICT;

-- The past of a path; it goes on when the file is removed and made anew.
CREATE TABLE histories (
  key      INTEGER PRIMARY KEY AUTOINCREMENT,
  path     BLOB NOT NULL UNIQUE,
  last_g   INTEGER NOT NULL,
  versions INTEGER NOT NULL CHECK (versions >= 0),
  bytes    INTEGER NOT NULL CHECK (bytes >= 0)
) STRICT;

CREATE TABLE file_versions (
  g       INTEGER PRIMARY KEY,
  history INTEGER NOT NULL REFERENCES histories(key),
  at      INTEGER NOT NULL,
  sha256  BLOB NOT NULL CHECK (length(sha256) = 32),
  content BLOB NOT NULL
) STRICT;
CREATE INDEX file_versions_history ON file_versions (history, g);

-- Files that are locks by the configuration, and until when.
CREATE TABLE lock_leases (
  ino   INTEGER PRIMARY KEY REFERENCES nodes(ino) ON DELETE CASCADE,
  until INTEGER NOT NULL
) STRICT;
CREATE INDEX lock_leases_until ON lock_leases (until);
",
    r"
CREATE TABLE leases (
  record  INTEGER PRIMARY KEY REFERENCES records(key),
  attempt INTEGER NOT NULL,
  ttl     INTEGER NOT NULL CHECK (ttl > 0),
  until   INTEGER NOT NULL,
  warned  INTEGER NOT NULL
) STRICT;

ALTER TABLE records ADD COLUMN lease INTEGER;
ALTER TABLE records ADD COLUMN lapsed TEXT;
",
    r"
-- What is charged to directories that have a quota; each node says to which.
ALTER TABLE nodes ADD COLUMN quota INTEGER;
CREATE TABLE quotas (
  dir    INTEGER PRIMARY KEY REFERENCES nodes(ino) ON DELETE CASCADE,
  bytes  INTEGER NOT NULL,
  inodes INTEGER NOT NULL
) STRICT;
",
    r"
-- Which records go on where another one ended, so that each is made once.
CREATE TABLE follow_ups (
  workspace INTEGER NOT NULL REFERENCES workspaces(key),
  previous  TEXT NOT NULL,
  agent     TEXT NOT NULL,
  PRIMARY KEY (workspace, previous, agent)
) STRICT, WITHOUT ROWID;

-- Which daemon does the chores of the store, and until when.
CREATE TABLE leader (
  only   INTEGER PRIMARY KEY CHECK (only = 1),
  holder TEXT NOT NULL,
  fence  INTEGER NOT NULL,
  until  INTEGER NOT NULL
) STRICT;
",
    r"
-- How many leases of a record ran out: retries are counted by it, and not by claims.
ALTER TABLE records ADD COLUMN lapses INTEGER NOT NULL DEFAULT 0;
",
    r"
-- Records whose lease is over and that could not go back yet.
CREATE TABLE returns (record INTEGER PRIMARY KEY REFERENCES records(key)) STRICT;
",
    r"
-- What is in the way of each. Those that stayed before there was this table are tried again, too.
ALTER TABLE returns ADD COLUMN why TEXT NOT NULL DEFAULT '';
INSERT OR IGNORE INTO returns (record)
SELECT key FROM records WHERE owner IS NOT NULL AND lapsed = owner AND standing <> 3;
",
    r"
-- Lock files' leases ended by the wall clock; now by the lease clock, as it was when it was kept last. A
-- store from before that clock begins it at 0.
UPDATE lock_leases SET until = max(0, until
    - coalesce((SELECT value ->> 'wall' FROM meta WHERE key = 'lease_clock'),
               unixepoch() * 1000000000)
    + coalesce((SELECT value ->> 'at' FROM meta WHERE key = 'lease_clock'), 0));
",
    r"
-- Files with more than one name: all names but the first, which lies in the node's `parent`.
CREATE TABLE further_names (
  ino  INTEGER NOT NULL,
  dir  INTEGER NOT NULL,
  name BLOB NOT NULL,
  PRIMARY KEY (ino, dir, name)
) STRICT, WITHOUT ROWID;
INSERT INTO further_names
SELECT n.ino, e.parent, e.name FROM entries e JOIN nodes n ON n.ino = e.ino
WHERE n.type <> 1 AND n.nlink > 1;

-- Before there was this table a file whose first name went did not know where the others lie.
UPDATE nodes SET parent = e.parent FROM entries e
WHERE e.ino = nodes.ino AND nodes.type <> 1 AND nodes.nlink = 1 AND nodes.parent <> e.parent;
UPDATE nodes SET parent = (SELECT min(dir) FROM further_names f WHERE f.ino = nodes.ino)
WHERE ino IN (SELECT ino FROM further_names) AND NOT EXISTS
  (SELECT 1 FROM further_names f WHERE f.ino = nodes.ino AND f.dir = nodes.parent);
DELETE FROM further_names WHERE (ino, dir, name) IN
  (SELECT f.ino, f.dir, min(f.name) FROM further_names f
   JOIN nodes n ON n.ino = f.ino AND n.parent = f.dir GROUP BY f.ino);
-- Who opens the store charges all anew.
UPDATE nodes SET quota = NULL WHERE quota IS NOT NULL;
DELETE FROM quotas;
",
    r"
-- The file that a record's name went to when it was parked. It counts while the record is parked.
CREATE TABLE backups (
  record INTEGER PRIMARY KEY REFERENCES records(key),
  ino    INTEGER NOT NULL UNIQUE
) STRICT;
",
    r"
-- The name that it went from. Of what was parked before there was this column none is known.
ALTER TABLE backups ADD COLUMN name BLOB;
",
    r"
-- Chunks that lie beside the tables (`extents`), from this place on; their `data` is empty.
ALTER TABLE chunks ADD COLUMN at INTEGER;
CREATE UNIQUE INDEX chunks_at ON chunks (at) WHERE at IS NOT NULL;

-- What nothing names there any more, and is not given back yet.
CREATE TABLE freed (
  at     INTEGER PRIMARY KEY,
  length INTEGER NOT NULL CHECK (length > 0)
) STRICT;

-- By this the file beside knows its store.
INSERT INTO meta (key, value) VALUES ('extents', lower(hex(randomblob(16))));
",
    r"
-- Few are parked, and whoever lists a directory asks for them.
CREATE INDEX records_parked ON records (workspace) WHERE standing = 2;
",
];

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
