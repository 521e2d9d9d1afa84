//! [`Txn`] in SQL, on the writer's connection, between BEGIN and COMMIT.

use std::cell::RefCell;

use rusqlite::{ToSql, params};

use super::chunks::End;
use super::columns::int;
use super::nodes::Nodes;
use super::read::{class_number, type_number};
use super::ready::when_columns;
use super::why::why_text;
use crate::limits;
use crate::names::{AgentName, FileName, TreePath};
use crate::numbers::{G, Ino, RecordKey, RefusalKey, WorkspaceKey};
use crate::store::sqlite::Conn;
use crate::store::sqlite::extents::Extent;
use crate::store::{
    Draft, EventRow, Expected, NewNode, Node, PlaceRow, Read, Record, RefusalRow, Result, Standing,
    Txn, VersionRow,
};

/// The columns of a record's row that any change of it may write; its file's is apart, see `update_record`.
macro_rules! row_columns {
    () => {
        "standing, dir, name, state, owner, attempt, version, version_g, last_g, status, done, fit, \
         open, priority, since, not_before, ready, due, lease, lapsed, lapses"
    };
}

/// The places of their values, as `Conn::write_row` binds them.
macro_rules! row_places {
    () => {
        "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, \
         ?21"
    };
}

/// The oldest of whoever has the most go: nobody pushes out what others are to be told. By an index alone, for
/// what is kept of the refused texts is megabytes.
pub(super) const REFUSALS_TO_GO: &str = "DELETE FROM refusals WHERE key IN (SELECT key FROM ( \
       SELECT key, row_number() OVER latest AS place, sum(bytes) OVER latest AS newer FROM ( \
           SELECT key, bytes, row_number() OVER (PARTITION BY uid, actor ORDER BY key DESC) AS nth \
           FROM (SELECT key, uid, actor, coalesce(length(rejected), 0) AS bytes FROM refusals)) \
       WINDOW latest AS (ORDER BY nth, key DESC)) \
     WHERE place > ?1 OR newer > ?2)";

impl Conn {
    pub(in crate::store::sqlite) fn change(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
    ) -> Result<usize> {
        self.sql
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(parameters))
            .map_err(|error| self.cause(error))
    }

    /// Begins a transaction's work: nothing is done yet, no inode is held.
    pub(in crate::store::sqlite) fn begin_work(&mut self) {
        self.is_first = true;
        self.space.begin();
        self.nodes = RefCell::new(Nodes::of_transaction());
    }

    /// Writes the inodes that the transaction changed, each once.
    pub(in crate::store::sqlite) fn write_nodes(&mut self) -> Result<()> {
        let nodes = self.nodes.take();
        nodes.changed().try_for_each(|node| self.write_node(node))?;
        self.write_charges(&nodes.charges)
    }

    /// Forgets what counts in the transaction that ended only; gives what it has freed beside the tables.
    pub(in crate::store::sqlite) fn end_work(&mut self, end: End) -> Vec<Extent> {
        self.nodes.take();
        self.places.get_mut().end(end == End::Committed);
        self.space.end(end)
    }

    fn write_node(&self, node: &Node) -> Result<()> {
        self.change(
            "UPDATE nodes SET class = ?2, mode = ?3, uid = ?4, gid = ?5, nlink = ?6, size = ?7, \
             atime = ?8, mtime = ?9, ctime = ?10, parent = ?11, chunks = ?12, quota = ?13 \
             WHERE ino = ?1",
            params![
                int(node.ino.0),
                class_number(node.class),
                node.mode,
                node.uid,
                node.gid,
                node.nlink,
                int(node.size),
                node.atime.0,
                node.mtime.0,
                node.ctime.0,
                int(node.parent.0),
                int(node.chunks),
                node.quota.map(|dir| int(dir.0)),
            ],
        )?;
        Ok(())
    }

    /// Writes a record's row by a statement with [`row_places`]; its file is ?22, `more` begin at ?23.
    fn write_row(&self, sql: &str, record: &Record, more: [&dyn ToSql; 3]) -> Result<usize> {
        let (standing, dir, name) = standing_columns(&record.standing);
        let readiness = &record.readiness;
        let (ready, due) = when_columns(readiness.when);
        let [first, second, third] = more;
        self.change(
            sql,
            params![
                standing,
                dir,
                name,
                record.state.as_str(),
                record.owner.as_ref().map(AgentName::as_str),
                int(record.attempt.0),
                int(record.version.0),
                int(record.version_g.0),
                int(record.last_g.0),
                record.status,
                readiness.done,
                readiness.fit,
                int(readiness.open),
                readiness.priority,
                readiness.since.0,
                readiness.not_before.map(|at| at.0),
                ready,
                due,
                record.lease_s,
                record.lapsed.as_ref().map(AgentName::as_str),
                int(record.lapses.0),
                record.ino().map(|ino| int(ino.0)),
                first,
                second,
                third,
            ],
        )
    }

    pub(super) fn inserted(&self) -> u64 {
        self.sql.last_insert_rowid().cast_unsigned()
    }

    /// A number for a new inode. SQLite gives that of a change which was undone again, and by then it may
    /// be known outside of the store.
    fn new_ino(&mut self) -> Result<Ino> {
        let last = match self.last_ino {
            Some(last) => last,
            None => {
                let sql = "SELECT seq FROM sqlite_sequence WHERE name = 'nodes'";
                Ino(self
                    .one(sql, [], |row| Ok(row.get::<_, i64>(0)?.cast_unsigned()))?
                    .unwrap_or(0))
            }
        };
        let next = Ino(last.0 + 1);
        self.last_ino = Some(next);
        Ok(next)
    }
}

/// A standing as its columns, but for the file's.
fn standing_columns(standing: &Standing) -> (i64, Option<i64>, Option<&[u8]>) {
    match standing {
        Standing::Live { dir, name, valid, .. } => {
            (i64::from(!valid), Some(int(dir.0)), Some(name.as_bytes()))
        }
        Standing::Parked { dir } => (2, Some(int(dir.0)), None),
        Standing::Gone => (3, None, None),
    }
}

impl Txn for Conn {
    fn put_backup(&mut self, record: RecordKey, name: &FileName, ino: Ino) -> Result<()> {
        let sql = "INSERT OR REPLACE INTO backups (record, name, ino) VALUES (?1, ?2, ?3)";
        self.change(sql, params![int(record.0), name.as_bytes(), int(ino.0)])?;
        Ok(())
    }

    fn insert_node(&mut self, node: &NewNode) -> Result<Node> {
        let ino = self.new_ino()?;
        self.change(
            "INSERT INTO nodes (ino, type, class, mode, uid, gid, rdev, nlink, size, atime, mtime, \
             ctime, parent, quota) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10, ?10, ?11, ?12)",
            params![
                int(ino.0),
                type_number(node.node_type),
                class_number(node.class),
                node.mode,
                node.uid,
                node.gid,
                node.rdev,
                node.nlink,
                int(node.size),
                node.at.0,
                int(node.parent.0),
                node.quota.map(|dir| int(dir.0)),
            ],
        )?;
        let made = node.made(ino);
        self.nodes.get_mut().charges.replace(None, Some(&made));
        Ok(made)
    }

    fn update_node(&mut self, node: &Node) -> Result<()> {
        let before = self.node(node.ino)?;
        let nodes = self.nodes.get_mut();
        nodes.charges.replace(before.as_ref(), Some(node));
        nodes.change(node);
        Ok(())
    }

    fn delete_node(&mut self, ino: Ino) -> Result<()> {
        let before = self.node(ino)?;
        let nodes = self.nodes.get_mut();
        nodes.charges.replace(before.as_ref(), None);
        nodes.remove(ino);
        self.delete_chunks(ino, 0, limits::CHUNK_INDEX_MAX)?;
        self.delete_orphan(ino)?;
        self.change("DELETE FROM nodes WHERE ino = ?1", [int(ino.0)])?;
        Ok(())
    }

    fn insert_entry(&mut self, parent: Ino, name: &FileName, ino: Ino) -> Result<()> {
        self.change(
            "INSERT INTO entries (parent, name, ino) VALUES (?1, ?2, ?3)",
            params![int(parent.0), name.as_bytes(), int(ino.0)],
        )?;
        Ok(())
    }

    fn replace_entry(&mut self, parent: Ino, name: &FileName, ino: Ino) -> Result<()> {
        self.change(
            "UPDATE entries SET ino = ?3 WHERE parent = ?1 AND name = ?2",
            params![int(parent.0), name.as_bytes(), int(ino.0)],
        )?;
        Ok(())
    }

    fn delete_entry(&mut self, parent: Ino, name: &FileName) -> Result<bool> {
        let sql = "DELETE FROM entries WHERE parent = ?1 AND name = ?2";
        Ok(self.change(sql, params![int(parent.0), name.as_bytes()])? > 0)
    }

    fn put_dir_name(&mut self, dir: Ino, name: &FileName) -> Result<()> {
        let sql = "INSERT INTO dirs (ino, name) VALUES (?1, ?2) \
                   ON CONFLICT (ino) DO UPDATE SET name = excluded.name";
        self.change(sql, params![int(dir.0), name.as_bytes()])?;
        Ok(())
    }

    fn put_symlink(&mut self, ino: Ino, target: &[u8]) -> Result<()> {
        let sql = "INSERT INTO symlinks (ino, target) VALUES (?1, ?2)";
        self.change(sql, params![int(ino.0), target])?;
        Ok(())
    }

    fn put_chunk(&mut self, ino: Ino, index: u32, data: &[u8]) -> Result<()> {
        self.write_chunk(ino, index, data)
    }

    fn insert_whole_chunks(&mut self, ino: Ino, first: u32, data: &[u8]) -> Result<()> {
        self.insert_chunks(ino, first, data)
    }

    fn delete_chunks(&mut self, ino: Ino, first: u32, last: u32) -> Result<u64> {
        self.remove_chunks(ino, first, last)
    }

    fn delete_some_chunks(&mut self, ino: Ino, most: u64) -> Result<u64> {
        self.remove_some_chunks(ino, most)
    }

    fn put_xattr(&mut self, ino: Ino, name: &[u8], value: &[u8]) -> Result<()> {
        let sql = "INSERT INTO xattrs (ino, name, value) VALUES (?1, ?2, ?3) \
                   ON CONFLICT (ino, name) DO UPDATE SET value = excluded.value";
        self.change(sql, params![int(ino.0), name, value])?;
        Ok(())
    }

    fn delete_xattr(&mut self, ino: Ino, name: &[u8]) -> Result<bool> {
        let sql = "DELETE FROM xattrs WHERE ino = ?1 AND name = ?2";
        Ok(self.change(sql, params![int(ino.0), name])? > 0)
    }

    fn put_place(&mut self, dir: Ino, place: &PlaceRow) -> Result<()> {
        self.write_place(dir, place)
    }

    fn delete_place(&mut self, dir: Ino) -> Result<()> {
        self.remove_place(dir)
    }

    fn insert_workspace(&mut self, path: &TreePath, dir: Ino, kind: &str) -> Result<WorkspaceKey> {
        self.places.get_mut().change();
        let sql = "INSERT INTO workspaces (path, dir, kind) VALUES (?1, ?2, ?3)";
        self.change(sql, params![path.to_bytes(), int(dir.0), kind])?;
        Ok(WorkspaceKey(self.inserted()))
    }

    fn update_workspace(
        &mut self,
        key: WorkspaceKey,
        path: &TreePath,
        dir: Option<Ino>,
        kind: &str,
    ) -> Result<()> {
        self.places.get_mut().change();
        self.change(
            "UPDATE workspaces SET path = ?2, dir = ?3, kind = ?4 WHERE key = ?1",
            params![int(key.0), path.to_bytes(), dir.map(|dir| int(dir.0)), kind],
        )?;
        Ok(())
    }

    fn insert_record(&mut self, record: &Record) -> Result<RecordKey> {
        self.write_row(
            concat!(
                "INSERT INTO records (",
                row_columns!(),
                ", ino, workspace, id, trace) VALUES (",
                row_places!(),
                ", ?22, ?23, ?24, ?25)"
            ),
            record,
            [&int(record.workspace.0), &record.id.as_str(), &&record.trace[..]],
        )?;
        Ok(RecordKey(self.inserted()))
    }

    fn update_record(&mut self, record: &Record, expected: &Expected) -> Result<bool> {
        macro_rules! update {
            ($ino:literal, $where:literal) => {
                concat!(
                    "UPDATE records SET (",
                    row_columns!(),
                    ") = (",
                    row_places!(),
                    ")",
                    $ino,
                    " WHERE key = ?23 AND version = ?24 AND state = ?25",
                    $where
                )
            };
        }
        // Where the file stays, its column is left alone: SQLite would write the entry of its
        // index anew even with the same value, one page of a claim's ten.
        let sql = if expected.ino == record.ino() {
            update!("", " AND ino IS ?22")
        } else {
            update!(", ino = ?22", "")
        };
        let changed = self.write_row(
            sql,
            record,
            [&int(record.key.0), &int(expected.version.0), &expected.state.as_str()],
        )?;
        Ok(changed == 1)
    }

    fn insert_version(&mut self, g: G, version: &VersionRow) -> Result<()> {
        self.change(
            "INSERT INTO versions (g, record, version, before_g, at, content) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                int(g.0),
                int(version.record.0),
                int(version.version.0),
                int(version.before_g.0),
                version.at.0,
                version.content,
            ],
        )?;
        Ok(())
    }

    fn put_draft(&mut self, draft: &Draft) -> Result<()> {
        self.change(
            "INSERT INTO drafts (ino, dir, name, why, content) VALUES (?1, ?2, ?3, ?4, ?5) \
             ON CONFLICT (ino) DO UPDATE SET dir = excluded.dir, name = excluded.name, \
             why = excluded.why, content = excluded.content",
            params![
                int(draft.ino.0),
                int(draft.dir.0),
                draft.name.as_bytes(),
                draft.why.as_ref().map(why_text),
                draft.content,
            ],
        )?;
        Ok(())
    }

    fn delete_draft(&mut self, ino: Ino) -> Result<()> {
        self.change("DELETE FROM drafts WHERE ino = ?1", [int(ino.0)])?;
        Ok(())
    }

    fn insert_event(&mut self, event: &EventRow) -> Result<()> {
        self.change(
            "INSERT INTO events (g, before_g, end, line) VALUES (?1, ?2, ?3, ?4)",
            params![int(event.g.0), int(event.before_g.0), int(event.end), event.line],
        )?;
        Ok(())
    }

    fn insert_refusal(
        &mut self,
        refusal: &RefusalRow,
        rejected: Option<&[u8]>,
    ) -> Result<RefusalKey> {
        self.change(
            "INSERT INTO refusals (at, mount, uid, pid, operation, path, errno, why, rejected, \
             actor) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                refusal.at.0,
                refusal.mount,
                refusal.uid,
                refusal.pid,
                refusal.operation,
                refusal.path,
                refusal.errno,
                why_text(&refusal.why),
                rejected,
                refusal.actor.as_str(),
            ],
        )?;
        Ok(RefusalKey(self.inserted()))
    }

    fn prune_refusals(&mut self) -> Result<()> {
        let most = [limits::REFUSALS_KEPT_MAX, limits::REJECTED_BYTES_MAX];
        self.change(REFUSALS_TO_GO, most.map(int)).map(drop)
    }

    fn insert_orphan(&mut self, ino: Ino) -> Result<()> {
        self.change("INSERT INTO orphans (ino) VALUES (?1)", [int(ino.0)])?;
        Ok(())
    }

    fn delete_orphan(&mut self, ino: Ino) -> Result<()> {
        self.change("DELETE FROM orphans WHERE ino = ?1", [int(ino.0)])?;
        Ok(())
    }

    fn put_meta(&mut self, key: &str, value: &str) -> Result<()> {
        let sql = "INSERT INTO meta (key, value) VALUES (?1, ?2) \
                   ON CONFLICT (key) DO UPDATE SET value = excluded.value";
        self.change(sql, [key, value])?;
        Ok(())
    }

    fn savepoint(&mut self) -> Result<()> {
        self.nodes.get_mut().mark();
        self.space.mark();
        if !self.is_first {
            self.change("SAVEPOINT change", [])?;
        }
        Ok(())
    }

    fn release(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.is_first) {
            self.change("RELEASE change", [])?;
        }
        Ok(())
    }

    fn rollback(&mut self) -> Result<()> {
        self.nodes.get_mut().back_to_mark();
        self.places.get_mut().undo();
        self.space.back_to_mark();
        if std::mem::take(&mut self.is_first) {
            self.change("ROLLBACK", [])?;
            self.change("BEGIN IMMEDIATE", [])?;
            return Ok(());
        }
        self.change("ROLLBACK TO change", [])?;
        self.release()
    }
}
