//! How SQLite goes about queries that must not read what they do not find.

use rusqlite::{Connection, Params};

use super::chores::OLD_DRAFTS;
use super::read::{LIVE_STATES, PARKED};
use super::ready::{READY, READY_BEHIND, READY_TIED};
use super::schema;
use super::write::REFUSALS_TO_GO;

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

#[test]
fn states_are_counted_without_sorting_the_records() {
    let steps = plan_of(LIVE_STATES, [1]);
    assert_eq!(steps, ["SEARCH records USING INDEX sqlite_autoindex_records_2 (workspace=?)"]);
}

#[test]
fn what_is_ready_after_another_is_found_without_what_is_ready_before_it() {
    let steps =
        |query, parameters: &[i64]| plan_of(query, rusqlite::params_from_iter(parameters)).concat();
    let by = |what: &str| format!("SEARCH records USING INDEX records_ready (workspace=?{what})");
    assert_eq!(steps(READY, &[1]), by(""));
    assert_eq!(steps(READY_TIED, &[1, 2, 3, 4]), by(" AND priority=? AND since=? AND rowid>?"));
    assert_eq!(steps(READY_BEHIND, &[1, 2, 3]), by(" AND (priority,since)>(?,?)"));
}

#[test]
fn which_refusals_go_is_told_without_what_was_refused() {
    let steps = plan_of(REFUSALS_TO_GO, [1, 2]);
    let of_table = steps.iter().filter(|step| step.contains("refusals"));
    let by_key = "SEARCH refusals USING INTEGER PRIMARY KEY (rowid=?)";
    let by_index = "SCAN refusals USING COVERING INDEX refusals_by_whom";
    assert_eq!(of_table.collect::<Vec<_>>(), [by_key, by_index]);
}
