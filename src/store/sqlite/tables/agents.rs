//! [`ReadAgents`] and [`TxnAgents`] in SQL.

use rusqlite::params;

use super::columns::damaged;
use crate::names::AgentName;
use crate::store::sqlite::Conn;
use crate::store::{AgentRow, ReadAgents, Result, TxnAgents};

impl ReadAgents for Conn {
    fn agents(&self) -> Result<Vec<AgentRow>> {
        self.all("SELECT name, role, uid FROM agents ORDER BY name", [], |row| {
            Ok(AgentRow {
                name: AgentName::new(row.get::<_, String>(0)?).map_err(damaged)?,
                role: row.get(1)?,
                uid: row.get(2)?,
            })
        })
    }
}

impl TxnAgents for Conn {
    fn put_agent(&mut self, agent: &AgentRow) -> Result<()> {
        self.change(
            "INSERT INTO agents (name, role, uid) VALUES (?1, ?2, ?3) \
             ON CONFLICT (name) DO UPDATE SET role = excluded.role, uid = excluded.uid",
            params![agent.name.as_str(), agent.role, agent.uid],
        )?;
        Ok(())
    }

    fn delete_agent(&mut self, name: &AgentName) -> Result<bool> {
        Ok(self.change("DELETE FROM agents WHERE name = ?1", [name.as_str()])? > 0)
    }
}
