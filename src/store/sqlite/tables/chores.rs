//! [`ReadChores`] and [`TxnChores`] in SQL.

use rusqlite::params;

use super::columns::{int, number};
use super::read::record;
use crate::names::{AgentName, RecordId, StateName};
use crate::numbers::{G, Ino, LeaderFence, LeaseTime, UnixNanos, WorkspaceKey};
use crate::store::sqlite::Conn;
use crate::store::sqlite::log::checkpoint::Mover;
use crate::store::{ReadChores, Record, Result, StoreError, TxnChores, Visit};

/// By the drafts, of which there are few: SQLite would go through all inodes, a million perhaps, in each round.
pub(super) const OLD_DRAFTS: &str = "SELECT d.ino FROM drafts d CROSS JOIN nodes n ON n.ino = d.ino \
                          WHERE n.mtime <= ?1 AND n.nlink > 0";

impl ReadChores for Conn {
    fn is_followed_up(
        &self,
        workspace: WorkspaceKey,
        previous: &RecordId,
        agent: &AgentName,
    ) -> Result<bool> {
        let sql = "SELECT 1 FROM follow_ups WHERE workspace = ?1 AND previous = ?2 AND agent = ?3";
        let found = params![int(workspace.0), previous.as_str(), agent.as_str()];
        Ok(self.one(sql, found, |row| row.get::<_, i64>(0))?.is_some())
    }

    fn idle(
        &self,
        workspace: WorkspaceKey,
        state: &StateName,
        last: G,
        visit: Visit<'_, Record>,
    ) -> Result<()> {
        let sql = concat!(
            "SELECT ",
            record_columns!(),
            " FROM records WHERE workspace = ?1 AND state = ?2 AND last_g <= ?3 AND standing < 2",
        );
        self.each(sql, params![int(workspace.0), state.as_str(), int(last.0)], record, visit)
    }

    fn old_drafts(&self, at: UnixNanos, visit: Visit<'_, Ino>) -> Result<()> {
        self.each(OLD_DRAFTS, [at.0], |row| Ok(Ino(number(row, 0)?)), visit)
    }
}

/// Ends the lead of whoever had the store open before: its lock is ours now. On a full disk the log must begin anew
/// for it.
pub(in crate::store::sqlite) fn forget_leader(writer: &Conn) -> Result<()> {
    let forget = || {
        let forgotten = writer.sql.execute("UPDATE leader SET until = 0 WHERE until > 0", []);
        forgotten.map(drop).map_err(|error| writer.cause(error))
    };
    match forget() {
        Err(StoreError::Full(_)) => {
            Mover::default().checkpoint(writer)?;
            forget()
        }
        forgotten => forgotten,
    }
}

impl TxnChores for Conn {
    fn put_follow_up(
        &mut self,
        workspace: WorkspaceKey,
        previous: &RecordId,
        agent: &AgentName,
    ) -> Result<()> {
        self.change(
            "INSERT INTO follow_ups (workspace, previous, agent) VALUES (?1, ?2, ?3) \
             ON CONFLICT DO NOTHING",
            params![int(workspace.0), previous.as_str(), agent.as_str()],
        )?;
        Ok(())
    }

    fn lead(
        &mut self,
        holder: &str,
        now: LeaseTime,
        until: LeaseTime,
    ) -> Result<Option<LeaderFence>> {
        self.change(
            "INSERT INTO leader (only, holder, fence, until) VALUES (1, ?1, 1, ?3) \
             ON CONFLICT (only) DO UPDATE SET fence = fence + (holder <> excluded.holder), \
             holder = excluded.holder, until = excluded.until \
             WHERE holder = excluded.holder OR until <= ?2",
            params![holder, int(now.0), int(until.0)],
        )?;
        let sql = "SELECT fence FROM leader WHERE holder = ?1 AND until = ?2";
        self.one(sql, params![holder, int(until.0)], |row| Ok(LeaderFence(number(row, 0)?)))
    }

    fn resign(&mut self, holder: &str) -> Result<()> {
        self.change("UPDATE leader SET until = 0 WHERE holder = ?1", [holder])?;
        Ok(())
    }
}
