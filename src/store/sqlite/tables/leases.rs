//! [`ReadLeases`] and [`TxnLeases`] in SQL.

use rusqlite::{Row, params};

use super::columns::{damaged, int, number};
use super::read::record;
use crate::names::AgentName;
use crate::numbers::{Attempt, LeaseTime, RecordKey};
use crate::store::sqlite::Conn;
use crate::store::{LeaseRow, LeaseTold, ReadLeases, Record, Result, TxnLeases, Visit};

fn lease(row: &Row<'_>) -> rusqlite::Result<LeaseRow> {
    Ok(LeaseRow {
        record: RecordKey(number(row, 0)?),
        attempt: Attempt(number(row, 1)?),
        ttl_ns: number(row, 2)?,
        until: LeaseTime(number(row, 3)?),
        told: match row.get::<_, i64>(4)? {
            0 => LeaseTold::Nothing,
            1 => LeaseTold::Warning,
            2 => LeaseTold::End,
            other => return Err(damaged(format!("a lease of which {other} was told"))),
        },
    })
}

/// As the column has it, which is called after the warning.
fn told(lease: &LeaseRow) -> u8 {
    match lease.told {
        LeaseTold::Nothing => 0,
        LeaseTold::Warning => 1,
        LeaseTold::End => 2,
    }
}

impl ReadLeases for Conn {
    fn record(&self, key: RecordKey) -> Result<Option<Record>> {
        let sql = concat!("SELECT ", record_columns!(), " FROM records WHERE key = ?1");
        self.one(sql, [int(key.0)], record)
    }

    fn lease(&self, record: RecordKey) -> Result<Option<LeaseRow>> {
        let sql = "SELECT record, attempt, ttl, until, warned FROM leases WHERE record = ?1";
        self.one(sql, [int(record.0)], lease)
    }

    fn leases(&self, visit: Visit<'_, (LeaseRow, AgentName)>) -> Result<()> {
        let sql = "SELECT l.record, l.attempt, l.ttl, l.until, l.warned, r.owner FROM leases l \
                   JOIN records r ON r.key = l.record WHERE r.owner IS NOT NULL ORDER BY l.record";
        let read = |row: &Row<'_>| {
            let owner = AgentName::new(row.get::<_, String>(5)?).map_err(damaged)?;
            Ok((lease(row)?, owner))
        };
        self.each(sql, [], read, visit)
    }

    fn returns(&self) -> Result<Vec<RecordKey>> {
        self.all("SELECT record FROM returns ORDER BY record", [], |row| {
            Ok(RecordKey(number(row, 0)?))
        })
    }

    fn in_the_way(&self, record: RecordKey) -> Result<Option<String>> {
        let sql = "SELECT why FROM returns WHERE record = ?1";
        self.one(sql, [int(record.0)], |row| row.get(0))
    }
}

impl TxnLeases for Conn {
    fn put_record_lease(&mut self, lease: &LeaseRow) -> Result<()> {
        self.change(
            "INSERT INTO leases (record, attempt, ttl, until, warned) VALUES (?1, ?2, ?3, ?4, ?5) \
             ON CONFLICT (record) DO UPDATE SET attempt = excluded.attempt, ttl = excluded.ttl, \
             until = excluded.until, warned = excluded.warned",
            params![
                int(lease.record.0),
                int(lease.attempt.0),
                int(lease.ttl_ns),
                int(lease.until.0),
                told(lease),
            ],
        )?;
        Ok(())
    }

    fn delete_record_lease(&mut self, record: RecordKey) -> Result<()> {
        self.change("DELETE FROM leases WHERE record = ?1", [int(record.0)])?;
        Ok(())
    }

    fn put_return(&mut self, record: RecordKey, why: &str) -> Result<()> {
        self.change(
            "INSERT INTO returns (record, why) VALUES (?1, ?2) \
             ON CONFLICT (record) DO UPDATE SET why = excluded.why",
            params![int(record.0), why],
        )?;
        Ok(())
    }

    fn delete_return(&mut self, record: RecordKey) -> Result<()> {
        self.change("DELETE FROM returns WHERE record = ?1", [int(record.0)])?;
        Ok(())
    }
}
