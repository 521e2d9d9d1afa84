//! Columns that mean the same in every table.

use rusqlite::Row;

use crate::names::{FileName, TreePath};
use crate::numbers::UnixNanos;
use crate::store::{Readiness, When};

pub(super) fn int(value: u64) -> i64 {
    value as i64
}

pub(in crate::store::sqlite) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::cast_unsigned)
}

pub(in crate::store::sqlite) fn damaged(what: impl std::fmt::Display) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(
        0,
        rusqlite::types::Type::Blob,
        what.to_string().into(),
    )
}

pub(in crate::store::sqlite) fn file_name(
    row: &Row<'_>,
    column: usize,
) -> rusqlite::Result<FileName> {
    FileName::new(row.get_ref(column)?.as_blob()?).map_err(damaged)
}

pub(super) fn tree_path(row: &Row<'_>, column: usize) -> rusqlite::Result<TreePath> {
    TreePath::parse(row.get_ref(column)?.as_blob()?).map_err(damaged)
}

/// How a record stands, from columns that begin at `at`.
pub(super) fn readiness(row: &Row<'_>, at: usize) -> rusqlite::Result<Readiness> {
    let due: Option<i64> = row.get(at + 7)?;
    let when = match (row.get(at + 6)?, due) {
        (true, _) => When::Now,
        (false, Some(due)) => When::At(UnixNanos(due)),
        (false, None) => When::Waits,
    };
    Ok(Readiness {
        done: row.get(at)?,
        fit: row.get(at + 1)?,
        open: number(row, at + 2)?,
        priority: row.get(at + 3)?,
        since: UnixNanos(row.get(at + 4)?),
        not_before: row.get::<_, Option<i64>>(at + 5)?.map(UnixNanos),
        when,
    })
}
