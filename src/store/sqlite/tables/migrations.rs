//! The tables, as they came to be: a store of any earlier schema is brought to the newest by what follows
//! its own.
//!
//! Why they look so: listing and claiming must not read content, so content lies in tables of its
//! own; a claim must touch few pages, so a record's history is a list linked from its newest event
//! and version (`before_g`) instead of an index; versions are keyed by the event that made them,
//! so that they append; a directory lists in name order from the primary key, so that a listing
//! can go on after any name however much the directory changes.
//!
//! What must stay true: none is ever changed, only followed.

pub(super) const MIGRATIONS: &[&str] = &[
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
    r"
-- Which refusals go is told by whom they were refused to and how much they keep, not by what that is.
CREATE INDEX refusals_by_whom ON refusals (uid, actor, length(rejected));
",
];
