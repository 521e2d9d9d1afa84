//! Columns that mean the same in every table.

use rusqlite::Row;

use crate::names::{FileName, TreePath};

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
