//! `.workfs/metrics`: counts for whoever watches over a daemon.

use std::collections::BTreeMap;
use std::fs;

use crate::harness::{Errno, Fixture, Task, save};

/// The samples of a text, each by its name and labels, and the metrics that have a type; fails where the text is not what
/// the format says.
fn read(text: &str) -> (BTreeMap<String, f64>, BTreeMap<String, String>) {
    let (mut samples, mut types) = (BTreeMap::new(), BTreeMap::new());
    let mut helped = String::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            helped = help.split_once(' ').expect("a help").0.to_owned();
        } else if let Some(of) = line.strip_prefix("# TYPE ") {
            let (name, of) = of.split_once(' ').unwrap();
            assert_eq!(name, helped, "a type stands below its help");
            assert!(["counter", "gauge", "histogram"].contains(&of), "{line}");
            assert!(types.insert(name.to_owned(), of.to_owned()).is_none(), "{name} twice");
        } else {
            let (series, value) = line.rsplit_once(' ').expect("a sample");
            let name = series.split('{').next().unwrap();
            let ends = ["_bucket", "_sum", "_count"].map(|end| name.strip_suffix(end));
            let of_histogram = ends.into_iter().flatten().any(|name| types.contains_key(name));
            assert!(types.contains_key(name) || of_histogram, "{line}: no type");
            let value: f64 = value.parse().unwrap();
            assert!(samples.insert(series.to_owned(), value).is_none(), "{series} twice");
        }
    }
    (samples, types)
}

// P5.5
#[test]
fn what_was_done_and_refused_is_counted() {
    let fixture = Fixture::new();
    for nth in 1..=4 {
        fixture.task("inbox", &Task::new(&format!("t-{nth}")));
    }
    let metrics = || read(&fs::read_to_string(fixture.path(".workfs/metrics")).unwrap());
    let (before, types) = metrics();
    fixture.sh("mv work/inbox/t-[123].yaml work/assigned/bob/").success();
    let bad = Task::new("t-4").status("nonsense").text();
    assert_eq!(save(&fixture.path("work/inbox/t-4.yaml"), bad.as_bytes()), Err(Errno::INVAL));
    fixture.sh("sed -i 's/^title: .*/title: other/' work/assigned/bob/t-1.yaml").success();
    let (after, _) = metrics();
    let rise = |series: &str| {
        after.get(series).copied().unwrap_or(0.0) - before.get(series).copied().unwrap_or(0.0)
    };
    let moved = rise("workfs_changes_total{operation=\"rename\",outcome=\"made\"}");
    assert!(moved == 4.0, "three claims and a save by rename: {moved}");
    assert_eq!(rise("workfs_refusals_total{rule=\"W011\"}"), 1.0);
    assert_eq!(rise("workfs_events_total"), 4.0);
    let records =
        |state| format!("workfs_records{{workspace=\"work\",kind=\"task\",state=\"{state}\"}}");
    assert_eq!((after[&records("inbox")], after[&records("assigned")]), (1.0, 3.0));
    assert_eq!((after["workfs_leases"], after["workfs_mounts"]), (3.0, 1.0));
    assert!(after["process_resident_memory_bytes"] > 1e6);
    let commits = rise("workfs_commit_seconds_count");
    assert!(commits >= 4.0 && rise("workfs_commit_seconds_sum") > 0.0, "{commits} commits");
    let within = after.iter().filter_map(|(series, count)| {
        let bound =
            series.strip_prefix("workfs_commit_seconds_bucket{le=\"")?.strip_suffix("\"}")?;
        Some((bound.replace("+Inf", "inf").parse().unwrap(), *count))
    });
    let mut within: Vec<(f64, f64)> = within.collect();
    within.sort_by(|one, other| one.0.total_cmp(&other.0));
    assert!(within.is_sorted_by_key(|(_, count)| *count), "{within:?}");
    let all = after["workfs_commit_seconds_count"];
    assert_eq!(within.last().copied(), Some((f64::INFINITY, all)));
    for (series, value) in &before {
        let is_count =
            types.get(series.split('{').next().unwrap()).is_some_and(|of| of == "counter");
        assert!(!is_count || after[series] >= *value, "{series} fell");
    }
    fixture.fsck_clean();
}

// P5.5
#[test]
fn each_metric_is_documented_and_the_reverse() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    let text = fs::read_to_string(fixture.path(".workfs/metrics")).unwrap();
    let there: Vec<String> = read(&text).1.into_keys().collect();
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/formats.md");
    let document = fs::read_to_string(document).unwrap();
    let rows = document.split("### `metrics`").nth(1).unwrap().lines();
    let rows = rows.filter_map(|row| row.strip_prefix("| `")?.split(['`', '{']).next());
    let mut documented: Vec<String> = rows.map(str::to_owned).collect();
    documented.sort();
    assert_eq!(there, documented);
}
