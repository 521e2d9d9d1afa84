//! [`Read`] in SQL. Every statement finds its rows by a key; none scans to find one row.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension as _, Row, params};

use super::columns::{damaged, file_name, int, number, tree_path};
use super::why::why;
use crate::names::{AgentName, FileName, RecordId, StateName, TreePath};
use crate::numbers::{
    Attempt, G, Ino, Lapses, RecordKey, RefusalKey, UnixNanos, Version, WorkspaceKey,
};
use crate::store::sqlite::{Conn, fail};
use crate::store::{
    Class, Draft, EventRow, Node, NodeKind, NodeType, PlaceRow, Read, Record, RefusalRow, Rejected,
    Result, Standing, StoreError, Usage, VersionRow, Visit, WorkspaceRow,
};

// The columns of a node, in the order `node` reads them.
macro_rules! node_columns {
    () => {
        "n.ino, n.type, n.class, n.mode, n.uid, n.gid, n.rdev, n.nlink, n.size, n.atime, \
         n.mtime, n.ctime, n.parent, n.chunks, n.quota"
    };
}

macro_rules! record_columns {
    () => {
        "key, workspace, id, standing, ino, dir, name, state, owner, attempt, version, \
         version_g, last_g, trace, status, done, fit, open, priority, since, not_before, \
         ready, due, lease, lapsed, lapses"
    };
}

pub(super) fn type_number(node_type: NodeType) -> i64 {
    match node_type {
        NodeType::File => 0,
        NodeType::Directory => 1,
        NodeType::Symlink => 2,
        NodeType::Fifo => 3,
        NodeType::Socket => 4,
        NodeType::CharDevice => 5,
        NodeType::BlockDevice => 6,
    }
}

fn node_type(number: i64) -> rusqlite::Result<NodeType> {
    Ok(match number {
        0 => NodeType::File,
        1 => NodeType::Directory,
        2 => NodeType::Symlink,
        3 => NodeType::Fifo,
        4 => NodeType::Socket,
        5 => NodeType::CharDevice,
        6 => NodeType::BlockDevice,
        other => return Err(damaged(format!("node type {other}"))),
    })
}

pub(super) fn class_number(class: Class) -> i64 {
    match class {
        Class::Plain => 0,
        Class::Draft => 1,
        Class::Record => 2,
    }
}

fn class(number: i64) -> rusqlite::Result<Class> {
    Ok(match number {
        0 => Class::Plain,
        1 => Class::Draft,
        2 => Class::Record,
        other => return Err(damaged(format!("node class {other}"))),
    })
}

/// Reads a node whose columns start at `at`.
pub(in crate::store::sqlite) fn node(row: &Row<'_>, at: usize) -> rusqlite::Result<Node> {
    Ok(Node {
        ino: Ino(number(row, at)?),
        node_type: node_type(row.get(at + 1)?)?,
        class: class(row.get(at + 2)?)?,
        mode: row.get(at + 3)?,
        uid: row.get(at + 4)?,
        gid: row.get(at + 5)?,
        rdev: row.get(at + 6)?,
        nlink: row.get(at + 7)?,
        size: number(row, at + 8)?,
        atime: UnixNanos(row.get(at + 9)?),
        mtime: UnixNanos(row.get(at + 10)?),
        ctime: UnixNanos(row.get(at + 11)?),
        parent: Ino(number(row, at + 12)?),
        chunks: number(row, at + 13)?,
        quota: row.get::<_, Option<i64>>(at + 14)?.map(|dir| Ino(dir.cast_unsigned())),
    })
}

fn state_name(row: &Row<'_>, at: usize) -> rusqlite::Result<StateName> {
    StateName::new(row.get::<_, String>(at)?).map_err(damaged)
}

pub(super) fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    let standing = match row.get::<_, i64>(3)? {
        live @ (0 | 1) => Standing::Live {
            ino: Ino(number(row, 4)?),
            dir: Ino(number(row, 5)?),
            name: file_name(row, 6)?,
            valid: live == 0,
        },
        2 => Standing::Parked { dir: Ino(number(row, 5)?) },
        3 => Standing::Gone,
        other => return Err(damaged(format!("a record's standing {other}"))),
    };
    let owner: Option<String> = row.get(8)?;
    let lapsed: Option<String> = row.get(24)?;
    let trace: Vec<u8> = row.get(13)?;
    Ok(Record {
        key: RecordKey(number(row, 0)?),
        workspace: WorkspaceKey(number(row, 1)?),
        id: RecordId::new(row.get::<_, String>(2)?).map_err(damaged)?,
        standing,
        state: state_name(row, 7)?,
        owner: owner.map(AgentName::new).transpose().map_err(damaged)?,
        status: row.get(14)?,
        attempt: Attempt(number(row, 9)?),
        version: Version(number(row, 10)?),
        version_g: G(number(row, 11)?),
        last_g: G(number(row, 12)?),
        trace: trace.try_into().map_err(|_| damaged("a trace that is not 16 bytes"))?,
        readiness: super::columns::readiness(row, 15)?,
        lease_s: row.get(23)?,
        lapsed: lapsed.map(AgentName::new).transpose().map_err(damaged)?,
        lapses: Lapses(number(row, 25)?),
    })
}

pub(super) fn event(row: &Row<'_>) -> rusqlite::Result<EventRow> {
    Ok(EventRow {
        g: G(number(row, 0)?),
        before_g: G(number(row, 1)?),
        end: number(row, 2)?,
        line: row.get(3)?,
    })
}

pub(super) fn workspace(row: &Row<'_>) -> rusqlite::Result<WorkspaceRow> {
    Ok(WorkspaceRow {
        key: WorkspaceKey(number(row, 0)?),
        path: tree_path(row, 1)?,
        dir: row.get::<_, Option<i64>>(2)?.map(|dir| Ino(dir.cast_unsigned())),
        kind: row.get(3)?,
    })
}

macro_rules! refusal_columns {
    () => {
        "key, at, mount, uid, pid, operation, path, errno, why, coalesce(length(rejected), 0), \
         actor"
    };
}

fn refusal(row: &Row<'_>) -> rusqlite::Result<RefusalRow> {
    Ok(RefusalRow {
        key: RefusalKey(number(row, 0)?),
        at: UnixNanos(row.get(1)?),
        mount: row.get(2)?,
        uid: row.get(3)?,
        pid: row.get(4)?,
        operation: row.get(5)?,
        path: row.get(6)?,
        errno: row.get(7)?,
        why: why(row.get_ref(8)?.as_str()?)?,
        rejected_bytes: number(row, 9)?,
        actor: AgentName::new(row.get::<_, String>(10)?).map_err(damaged)?,
    })
}

impl Conn {
    pub(in crate::store::sqlite) fn one<T>(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        self.sql
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row(parameters, read).optional())
            .map_err(fail)
    }

    /// Calls `visit` for each row until it returns false.
    pub(in crate::store::sqlite) fn each<T>(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
        visit: Visit<'_, T>,
    ) -> Result<()> {
        let mut statement = self.sql.prepare_cached(sql).map_err(fail)?;
        let mut rows = statement.query(parameters).map_err(fail)?;
        while let Some(row) = rows.next().map_err(fail)? {
            if !visit(read(row).map_err(fail)?) {
                break;
            }
        }
        Ok(())
    }

    pub(in crate::store::sqlite) fn all<T>(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let mut rows = Vec::new();
        self.each(sql, parameters, read, &mut |row| {
            rows.push(row);
            true
        })?;
        Ok(rows)
    }
}

pub(super) const PARKED: &str = concat!(
    "SELECT ",
    record_columns!(),
    " FROM records WHERE workspace = ?1 AND standing = 2 ORDER BY key"
);

/// Counted here, and not by SQLite, which sorts all of them in memory to do it: 46 MiB of a million.
pub(super) const LIVE_STATES: &str =
    "SELECT state FROM records WHERE workspace = ?1 AND standing < 2";

impl Read for Conn {
    fn node(&self, ino: Ino) -> Result<Option<Node>> {
        if let Some(node) = self.nodes.borrow().get(ino) {
            return Ok(Some(node.clone()));
        }
        let sql = concat!("SELECT ", node_columns!(), " FROM nodes n WHERE ino = ?1");
        let found = self.one(sql, [int(ino.0)], |row| node(row, 0))?;
        Ok(found.map(|node| self.as_changed(node)))
    }

    fn lookup(&self, parent: Ino, name: &FileName) -> Result<Option<Node>> {
        let sql = concat!(
            "SELECT ",
            node_columns!(),
            " FROM entries e JOIN nodes n ON n.ino = e.ino WHERE e.parent = ?1 AND e.name = ?2"
        );
        let found = self.one(sql, params![int(parent.0), name.as_bytes()], |row| node(row, 0))?;
        Ok(found.map(|node| self.as_changed(node)))
    }

    fn list(
        &self,
        parent: Ino,
        after: Option<&FileName>,
        visit: Visit<'_, (FileName, Node)>,
    ) -> Result<()> {
        let sql = concat!(
            "SELECT ",
            node_columns!(),
            ", e.name FROM entries e CROSS JOIN nodes n ON n.ino = e.ino \
             WHERE e.parent = ?1 AND e.name > ?2 ORDER BY e.name"
        );
        let after = after.map_or(&b""[..], FileName::as_bytes);
        let read = |row: &Row<'_>| Ok((file_name(row, 15)?, self.as_changed(node(row, 0)?)));
        self.each(sql, params![int(parent.0), after], read, visit)
    }

    fn list_names(
        &self,
        parent: Ino,
        after: Option<&FileName>,
        visit: Visit<'_, (FileName, NodeKind)>,
    ) -> Result<()> {
        let sql = "SELECT n.ino, n.type, n.class, e.name \
                   FROM entries e CROSS JOIN nodes n ON n.ino = e.ino \
                   WHERE e.parent = ?1 AND e.name > ?2 ORDER BY e.name";
        let after = after.map_or(&b""[..], FileName::as_bytes);
        let read = |row: &Row<'_>| {
            let (node_type, class) = (node_type(row.get(1)?)?, class(row.get(2)?)?);
            Ok((file_name(row, 3)?, NodeKind { ino: Ino(number(row, 0)?), node_type, class }))
        };
        self.each(sql, params![int(parent.0), after], read, visit)
    }

    fn dir_name(&self, dir: Ino) -> Result<Option<FileName>> {
        self.one("SELECT name FROM dirs WHERE ino = ?1", [int(dir.0)], |row| file_name(row, 0))
    }

    fn symlink(&self, ino: Ino) -> Result<Option<Vec<u8>>> {
        self.one("SELECT target FROM symlinks WHERE ino = ?1", [int(ino.0)], |row| row.get(0))
    }

    fn chunk(&self, ino: Ino, index: u32) -> Result<Option<Vec<u8>>> {
        self.chunk_of(ino, index)
    }

    fn next_chunk(&self, ino: Ino, index: u32) -> Result<Option<u32>> {
        self.next_chunk_of(ino, index)
    }

    fn xattr(&self, ino: Ino, name: &[u8]) -> Result<Option<Vec<u8>>> {
        let sql = "SELECT value FROM xattrs WHERE ino = ?1 AND name = ?2";
        self.one(sql, params![int(ino.0), name], |row| row.get(0))
    }

    fn xattr_names(&self, ino: Ino) -> Result<Vec<Vec<u8>>> {
        let sql = "SELECT name FROM xattrs WHERE ino = ?1 ORDER BY name";
        self.all(sql, [int(ino.0)], |row| row.get(0))
    }

    fn xattr_bytes(&self, ino: Ino) -> Result<(u64, u64)> {
        let sql = "SELECT ifnull(sum(length(name) + 1), 0), ifnull(sum(length(value)), 0) \
                   FROM xattrs WHERE ino = ?1";
        let bytes = self.one(sql, [int(ino.0)], |row| Ok((number(row, 0)?, number(row, 1)?)))?;
        Ok(bytes.unwrap_or_default())
    }

    fn count_names(&self, dir: Ino, most: usize) -> Result<usize> {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM entries WHERE parent = ?1 LIMIT ?2)";
        let count = self.one(sql, params![int(dir.0), int(most as u64)], |row| number(row, 0))?;
        Ok(count.unwrap_or(0) as usize)
    }

    fn place(&self, dir: Ino) -> Result<Option<PlaceRow>> {
        self.place_of(dir)
    }

    fn places_of(&self, workspace: WorkspaceKey) -> Result<Vec<(Ino, PlaceRow)>> {
        self.all_places_of(workspace)
    }

    fn workspace(&self, key: WorkspaceKey) -> Result<Option<WorkspaceRow>> {
        let sql = "SELECT key, path, dir, kind FROM workspaces WHERE key = ?1";
        self.one(sql, [int(key.0)], workspace)
    }

    fn workspace_at(&self, path: &TreePath) -> Result<Option<WorkspaceRow>> {
        let sql = "SELECT key, path, dir, kind FROM workspaces WHERE path = ?1";
        self.one(sql, [path.to_bytes()], workspace)
    }

    fn workspaces(&self) -> Result<Vec<WorkspaceRow>> {
        self.all("SELECT key, path, dir, kind FROM workspaces ORDER BY path", [], workspace)
    }

    fn record_at(&self, ino: Ino) -> Result<Option<Record>> {
        let sql = concat!("SELECT ", record_columns!(), " FROM records WHERE ino = ?1");
        self.one(sql, [int(ino.0)], record)
    }

    fn parked_by(&self, ino: Ino) -> Result<Option<Record>> {
        let sql = concat!(
            "SELECT ",
            record_columns!(),
            " FROM records WHERE key = (SELECT record FROM backups WHERE ino = ?1) AND standing = 2"
        );
        self.one(sql, [int(ino.0)], record)
    }

    fn parked(&self, workspace: WorkspaceKey, visit: Visit<'_, Record>) -> Result<()> {
        self.each(PARKED, [int(workspace.0)], record, visit)
    }

    fn backup_of(&self, record: RecordKey) -> Result<Option<Ino>> {
        let sql = "SELECT ino FROM backups WHERE record = ?1";
        self.one(sql, [int(record.0)], |row| Ok(Ino(number(row, 0)?)))
    }

    fn parked_name(&self, record: RecordKey) -> Result<Option<FileName>> {
        let sql = "SELECT name FROM backups WHERE record = ?1 AND name IS NOT NULL";
        self.one(sql, [int(record.0)], |row| file_name(row, 0))
    }

    fn record_named(&self, workspace: WorkspaceKey, id: &RecordId) -> Result<Option<Record>> {
        let sql =
            concat!("SELECT ", record_columns!(), " FROM records WHERE workspace = ?1 AND id = ?2");
        self.one(sql, params![int(workspace.0), id.as_str()], record)
    }

    fn records(&self, workspace: WorkspaceKey, visit: Visit<'_, Record>) -> Result<()> {
        let sql =
            concat!("SELECT ", record_columns!(), " FROM records WHERE workspace = ?1 ORDER BY id");
        self.each(sql, [int(workspace.0)], record, visit)
    }

    fn live_records(&self, workspace: WorkspaceKey) -> Result<Vec<(StateName, u64)>> {
        let mut counts = BTreeMap::new();
        let state = |row: &Row<'_>| state_name(row, 0);
        self.each(LIVE_STATES, [int(workspace.0)], state, &mut |state| {
            *counts.entry(state).or_insert(0) += 1;
            true
        })?;
        Ok(counts.into_iter().collect())
    }

    fn version(&self, g: G) -> Result<Option<VersionRow>> {
        let sql = "SELECT record, version, before_g, at, content FROM versions WHERE g = ?1";
        self.one(sql, [int(g.0)], |row| {
            Ok(VersionRow {
                record: RecordKey(number(row, 0)?),
                version: Version(number(row, 1)?),
                before_g: G(number(row, 2)?),
                at: UnixNanos(row.get(3)?),
                content: row.get(4)?,
            })
        })
    }

    fn draft(&self, ino: Ino) -> Result<Option<Draft>> {
        let sql = "SELECT dir, name, why, content FROM drafts WHERE ino = ?1";
        self.one(sql, [int(ino.0)], |row| {
            let text: Option<String> = row.get(2)?;
            Ok(Draft {
                ino,
                dir: Ino(number(row, 0)?),
                name: file_name(row, 1)?,
                why: text.as_deref().map(why).transpose()?,
                content: row.get(3)?,
            })
        })
    }

    fn event(&self, g: G) -> Result<Option<EventRow>> {
        self.one("SELECT g, before_g, end, line FROM events WHERE g = ?1", [int(g.0)], event)
    }

    fn last_event(&self) -> Result<Option<EventRow>> {
        self.one("SELECT g, before_g, end, line FROM events ORDER BY g DESC LIMIT 1", [], event)
    }

    fn refusals(&self, visit: Visit<'_, RefusalRow>) -> Result<()> {
        let sql = concat!("SELECT ", refusal_columns!(), " FROM refusals ORDER BY key DESC");
        self.each(sql, [], refusal, visit)
    }

    fn rejected(&self, key: RefusalKey) -> Result<Option<Rejected>> {
        let sql = "SELECT uid, rejected FROM refusals WHERE key = ?1 AND rejected IS NOT NULL";
        let read = |row: &Row<'_>| Ok(Rejected { uid: row.get(0)?, content: row.get(1)? });
        self.one(sql, [int(key.0)], read)
    }

    fn last_refusal_of(&self, path: &[u8]) -> Result<Option<RefusalRow>> {
        let sql = concat!(
            "SELECT ",
            refusal_columns!(),
            " FROM refusals WHERE path = ?1 ORDER BY key DESC LIMIT 1"
        );
        self.one(sql, [path], refusal)
    }

    fn orphans(&self) -> Result<Vec<Ino>> {
        self.all("SELECT ino FROM orphans", [], |row| Ok(Ino(number(row, 0)?)))
    }

    fn meta(&self, key: &str) -> Result<Option<String>> {
        self.one("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0))
    }

    fn usage(&self) -> Result<Usage> {
        let count = |sql| self.one(sql, [], |row| number(row, 0));
        // The highest number bounds the count from above without a scan.
        let nodes = count("SELECT max(ino) FROM nodes")?.unwrap_or(0);
        let pages = count("SELECT page_count FROM pragma_page_count")?.unwrap_or(0);
        let size = count("SELECT page_size FROM pragma_page_size")?.unwrap_or(0);
        let free = count("SELECT freelist_count FROM pragma_freelist_count")?.unwrap_or(0);
        Ok(Usage { nodes, bytes: pages * size, free_bytes: free * size })
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        fail(error)
    }
}
