//! How SQLite goes about queries that must not read what they do not find.

use rusqlite::{Connection, Params};

use super::chores::OLD_DRAFTS;
use super::read::PARKED;
use super::schema;

fn plan_of(query: &str, parameters: impl Params) -> Vec<String> {
    let sql = Connection::open_in_memory().unwrap();
    schema::migrate(&sql, "memory").unwrap();
    let mut plan = sql.prepare(&format!("EXPLAIN QUERY PLAN {query}")).unwrap();
    let steps = plan.query_map(parameters, |row| row.get(3)).unwrap();
    steps.map(|step| step.unwrap()).collect()
}

#[test]
fn old_drafts_are_found_by_the_drafts() {
    let steps = plan_of(OLD_DRAFTS, [0]);
    assert_eq!(steps, ["SCAN d", "SEARCH n USING INTEGER PRIMARY KEY (rowid=?)"]);
}

#[test]
fn who_is_parked_is_found_without_the_others() {
    let steps = plan_of(PARKED, [1]);
    assert_eq!(steps, ["SEARCH records USING INDEX records_parked (workspace=?)"]);
}
