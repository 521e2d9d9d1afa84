//! [`ReadReady`] and [`TxnReady`] in SQL.

use rusqlite::{Row, params};

use super::columns::{damaged, int, number};
use super::read::record;
use crate::names::RecordId;
use crate::numbers::{RecordKey, UnixNanos, WorkspaceKey};
use crate::store::sqlite::Conn;
use crate::store::{
    Edge, OrderKey, ReadReady, Readiness, Record, Result, Sides, TxnReady, Visit, When,
};

macro_rules! ready {
    ($after:literal) => {
        concat!(
            "SELECT ",
            record_columns!(),
            " FROM records WHERE ready = 1 AND workspace = ?1",
            $after,
            " ORDER BY priority, since, key"
        )
    };
}

/// What is ready, in the order of work. Of a place in that order SQLite searches an index by all but the row's
/// number: so those that are as urgent and as old, which may be all, are asked for by themselves.
pub(super) const READY: &str = ready!("");
pub(super) const READY_TIED: &str = ready!(" AND priority = ?2 AND since = ?3 AND key > ?4");
pub(super) const READY_BEHIND: &str = ready!(" AND (priority, since) > (?2, ?3)");

/// A record's turn as its two columns, `ready` and `due`.
pub(super) fn when_columns(when: When) -> (bool, Option<i64>) {
    match when {
        When::Waits => (false, None),
        When::At(at) => (false, Some(at.0)),
        When::Now => (true, None),
    }
}

fn edge(row: &Row<'_>) -> rusqlite::Result<Edge> {
    let sides: i64 = row.get(1)?;
    Ok(Edge {
        other: RecordId::new(row.get::<_, String>(0)?).map_err(damaged)?,
        sides: Sides { dependant: sides & 1 != 0, dependency: sides & 2 != 0 },
    })
}

impl ReadReady for Conn {
    fn ready(
        &self,
        workspace: WorkspaceKey,
        after: Option<OrderKey>,
        visit: Visit<'_, Record>,
    ) -> Result<()> {
        let workspace = int(workspace.0);
        let Some(OrderKey { priority, since, record: key }) = after else {
            return self.each(READY, [workspace], record, visit);
        };
        let mut goes_on = true;
        let tied = params![workspace, priority, since.0, int(key.0)];
        self.each(READY_TIED, tied, record, &mut |record| {
            goes_on = visit(record);
            goes_on
        })?;
        if goes_on {
            self.each(READY_BEHIND, params![workspace, priority, since.0], record, visit)?;
        }
        Ok(())
    }

    fn next_turn(&self) -> Result<Option<UnixNanos>> {
        let sql = "SELECT due FROM records WHERE due IS NOT NULL ORDER BY due LIMIT 1";
        self.one(sql, [], |row| Ok(UnixNanos(row.get(0)?)))
    }

    fn due(&self, now: UnixNanos, visit: Visit<'_, Record>) -> Result<()> {
        let sql = concat!(
            "SELECT ",
            record_columns!(),
            " FROM records WHERE due IS NOT NULL AND due <= ?1 ORDER BY due"
        );
        self.each(sql, [now.0], record, visit)
    }

    fn early(&self, now: UnixNanos, visit: Visit<'_, Record>) -> Result<()> {
        let sql = concat!(
            "SELECT ",
            record_columns!(),
            " FROM records WHERE ready = 1 AND not_before > ?1"
        );
        self.each(sql, [now.0], record, visit)
    }

    fn dependants(&self, workspace: WorkspaceKey, id: &RecordId) -> Result<Vec<Edge>> {
        let sql = "SELECT dependant, sides FROM edges WHERE workspace = ?1 AND dependency = ?2";
        self.all(sql, params![int(workspace.0), id.as_str()], edge)
    }

    fn dependencies(&self, workspace: WorkspaceKey, id: &RecordId) -> Result<Vec<Edge>> {
        let sql = "SELECT dependency, sides FROM edges INDEXED BY edges_dependant \
                   WHERE workspace = ?1 AND dependant = ?2";
        self.all(sql, params![int(workspace.0), id.as_str()], edge)
    }

    fn edges(&self, workspace: WorkspaceKey, visit: Visit<'_, (RecordId, RecordId)>) -> Result<()> {
        let sql = "SELECT dependant, sides, dependency FROM edges WHERE workspace = ?1";
        let both = |row: &Row<'_>| {
            let dependency = RecordId::new(row.get::<_, String>(2)?).map_err(damaged)?;
            Ok((dependency, edge(row)?.other))
        };
        self.each(sql, [int(workspace.0)], both, visit)
    }

    fn open_dependencies(&self, workspace: WorkspaceKey, id: &RecordId) -> Result<u64> {
        let sql = "SELECT count(*) FROM edges e INDEXED BY edges_dependant \
                   LEFT JOIN records r ON r.workspace = e.workspace AND r.id = e.dependency \
                   WHERE e.workspace = ?1 AND e.dependant = ?2 AND coalesce(r.done, 0) = 0";
        let count = self.one(sql, params![int(workspace.0), id.as_str()], |row| number(row, 0))?;
        Ok(count.unwrap_or(0))
    }
}

impl TxnReady for Conn {
    fn update_readiness(&mut self, record: RecordKey, readiness: &Readiness) -> Result<()> {
        let (ready, due) = when_columns(readiness.when);
        // What orders the ready ones is left alone where it stays: see `update_record`.
        self.change(
            "UPDATE records SET open = ?2, ready = ?3, due = ?4 WHERE key = ?1",
            params![int(record.0), int(readiness.open), ready, due],
        )?;
        Ok(())
    }

    fn put_edge(
        &mut self,
        workspace: WorkspaceKey,
        dependency: &RecordId,
        dependant: &RecordId,
        sides: Sides,
    ) -> Result<()> {
        let sides = i64::from(sides.dependant) | i64::from(sides.dependency) << 1;
        let (dependency, dependant) = (dependency.as_str(), dependant.as_str());
        let workspace = int(workspace.0);
        if sides == 0 {
            let sql = "DELETE FROM edges WHERE workspace = ?1 AND dependency = ?2 \
                       AND dependant = ?3";
            self.change(sql, params![workspace, dependency, dependant])?;
        } else {
            let sql = "INSERT INTO edges (workspace, dependency, dependant, sides) \
                       VALUES (?1, ?2, ?3, ?4) ON CONFLICT (workspace, dependency, dependant) \
                       DO UPDATE SET sides = excluded.sides";
            self.change(sql, params![workspace, dependency, dependant, sides])?;
        }
        Ok(())
    }
}
