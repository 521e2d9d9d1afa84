//! `.workfs/metrics`: counts for whoever watches over a daemon.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::process::Stdio;

use crate::harness::{Errno, Fixture, Task, save, until_polled};

/// A text of metrics.
struct Metrics {
    /// By name and labels.
    samples: BTreeMap<String, f64>,
    types: BTreeMap<String, String>,
}

impl Metrics {
    fn of_mount(fixture: &Fixture) -> Metrics {
        Metrics::read(&fs::read_to_string(fixture.path(".workfs/metrics")).unwrap())
    }

    fn of_command(fixture: &Fixture) -> Metrics {
        Metrics::read(&fixture.workfs(&["status", "--metrics"]).success().stdout)
    }

    /// Fails where the text is not what the format says.
    fn read(text: &str) -> Metrics {
        let (mut samples, mut types) = (BTreeMap::new(), BTreeMap::new());
        let (mut helped, mut typed) = (String::new(), String::new());
        assert!(text.ends_with('\n'), "a last line without its end");
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                helped = help.split_once(' ').expect("a help").0.to_owned();
            } else if let Some(of) = line.strip_prefix("# TYPE ") {
                let (name, of) = of.split_once(' ').unwrap();
                assert_eq!(name, helped, "a type stands below its help");
                assert!(["counter", "gauge", "histogram"].contains(&of), "{line}");
                assert_eq!(of == "counter", name.ends_with("_total"), "{line}");
                let has_unit =
                    ["_total", "_seconds", "_bytes"].iter().any(|end| name.ends_with(end));
                assert!(has_unit || of == "gauge", "{line}");
                assert!(types.insert(name.to_owned(), of.to_owned()).is_none(), "{name} twice");
                typed = name.to_owned();
            } else {
                let (series, value) = line.rsplit_once(' ').expect("a sample");
                let name = series.split('{').next().unwrap();
                let is_word = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
                assert!(name.bytes().all(is_word), "{line}");
                let ends = match types[&typed].as_str() {
                    "histogram" => &["_bucket", "_sum", "_count"][..],
                    _ => &[""],
                };
                let is_of_type = |end: &&str| name.strip_suffix(*end) == Some(&typed);
                assert!(ends.iter().any(is_of_type), "{line}: below the type of {typed}");
                let value: f64 = value.parse().unwrap();
                assert!(samples.insert(series.to_owned(), value).is_none(), "{series} twice");
            }
        }
        let read = Metrics { samples, types };
        read.expect_histograms();
        read
    }

    /// Each has buckets that grow, up to that of all.
    fn expect_histograms(&self) {
        let histograms = self.types.iter().filter(|(_, of)| *of == "histogram");
        for name in histograms.map(|(name, _)| name) {
            let of = format!("{name}_bucket{{");
            let mut found: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
            for (series, count) in self.samples.iter().filter(|(of_one, _)| of_one.starts_with(&of))
            {
                let (labels, bound) = series[of.len()..].rsplit_once("le=\"").expect("a bound");
                let bound = bound.strip_suffix("\"}").unwrap().replace("+Inf", "inf");
                let labels = labels.trim_end_matches(',').to_owned();
                found.entry(labels).or_default().push((bound.parse().unwrap(), *count));
            }
            assert!(!found.is_empty(), "{name} has no buckets");
            for (labels, mut buckets) in found {
                buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
                assert!(buckets.is_sorted_by_key(|(_, count)| *count), "{name}: {buckets:?}");
                let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
                let all = self.samples[&format!("{name}_count{labels}")];
                assert_eq!(buckets.last().copied(), Some((f64::INFINITY, all)), "{name}{labels}");
                assert!(self.samples.contains_key(&format!("{name}_sum{labels}")));
            }
        }
    }

    fn get(&self, series: &str) -> f64 {
        self.samples.get(series).copied().unwrap_or(0.0)
    }

    /// What has been added since; fails where a count fell.
    fn since<'m>(&'m self, before: &'m Metrics) -> impl Fn(&str) -> f64 + 'm {
        for (series, value) in &before.samples {
            let name = series.split('{').next().unwrap();
            let ends = ["", "_bucket", "_count"].map(|end| name.strip_suffix(end));
            let of = ends.into_iter().flatten().find_map(|name| self.types.get(name));
            let counts = of.is_some_and(|of| of != "gauge");
            assert!(!counts || self.get(series) >= *value, "{series} fell");
        }
        |series| self.get(series) - before.get(series)
    }
}

// P5.5
#[test]
fn what_was_done_and_refused_is_counted() {
    let fixture = Fixture::new();
    for nth in 1..=4 {
        fixture.task("inbox", &Task::new(&format!("t-{nth}")));
    }
    let before = Metrics::of_mount(&fixture);
    fixture.sh("mv work/inbox/t-[123].yaml work/assigned/bob/").success();
    let bad = Task::new("t-4").status("nonsense").text();
    assert_eq!(save(&fixture.path("work/inbox/t-4.yaml"), bad.as_bytes()), Err(Errno::INVAL));
    fixture.sh("sed -i 's/^title: .*/title: other/' work/assigned/bob/t-1.yaml").success();
    let after = Metrics::of_mount(&fixture);
    let rise = after.since(&before);
    let moved = rise("workfs_changes_total{operation=\"rename\",outcome=\"made\"}");
    assert!(moved == 4.0, "three claims and a save by rename: {moved}");
    assert_eq!(rise("workfs_refusals_total{rule=\"W011\"}"), 1.0);
    assert_eq!(rise("workfs_events_total"), 4.0);
    let events = |name| rise(&format!("workfs_events_written_total{{event=\"{name}\"}}"));
    assert_eq!(["claimed", "saved", "refused"].map(events), [3.0, 1.0, 0.0]);
    let records =
        |state| format!("workfs_records{{workspace=\"work\",kind=\"task\",state=\"{state}\"}}");
    assert_eq!((after.get(&records("inbox")), after.get(&records("assigned"))), (1.0, 3.0));
    assert!(after.samples.contains_key(&records("done")), "a state without records is told");
    assert_eq!((after.get("workfs_leases"), after.get("workfs_mounts")), (3.0, 1.0));
    assert!(after.get("workfs_resident_memory_bytes") > 1e6);
    let commits = rise("workfs_commit_seconds_count");
    assert!(commits >= 4.0 && rise("workfs_commit_seconds_sum") > 0.0, "{commits} commits");
    let said = fs::read_to_string(fixture.path(".workfs/metrics")).unwrap();
    assert!(!said.contains("bob") && !said.contains("t-1"), "no agents and no records: {said}");
    fixture.fsck_clean();
}

// P5.5
#[test]
fn what_kernels_ask_is_counted_when_they_are_answered() {
    let fixture = Fixture::new();
    for nth in 1..=3 {
        fixture.task("inbox", &Task::new(&format!("t-{nth}")));
    }
    fs::create_dir_all(fixture.path("scratchpad")).unwrap();
    let before = Metrics::of_mount(&fixture);
    for nth in 1..=3 {
        let name = format!("t-{nth}.yaml");
        let (from, to) = (fixture.path("work/inbox"), fixture.path("work/assigned/bob"));
        fs::rename(from.join(&name), to.join(&name)).unwrap();
    }
    let gone = fs::rename(fixture.path("work/inbox/t-1.yaml"), fixture.path("work/done/t-1.yaml"));
    assert_eq!(gone.unwrap_err().kind(), io::ErrorKind::NotFound);
    fs::write(fixture.path("scratchpad/note"), "one").unwrap();
    let open = File::open(fixture.path("scratchpad/note")).unwrap();
    open.sync_all().unwrap();
    let after = Metrics::of_mount(&fixture);
    let rise = after.since(&before);
    let asked = |operation: &str| {
        rise(&format!("workfs_request_seconds_count{{operation=\"{operation}\"}}"))
    };
    // The kernel answers by itself for a name that it has seen leave.
    assert_eq!((asked("rename"), asked("create"), asked("write")), (3.0, 1.0, 1.0));
    assert_eq!((asked("fsync"), asked("getlk")), (1.0, 0.0));
    let took = rise("workfs_request_seconds_sum{operation=\"rename\"}");
    assert!(took > 0.0 && took < 60.0, "{took} s");
    assert!(rise("workfs_flush_seconds_count") >= 1.0, "an fsync flushes the log");
    assert_eq!(rise("workfs_requests_late_total"), 0.0);
    assert!(after.get("workfs_open_files") >= 1.0, "one file is open");
    assert!(after.get("workfs_readers_used") <= after.get("workfs_readers"));
    let (store, log) = (after.get("workfs_store_bytes"), after.get("workfs_log_bytes"));
    assert!(log > 0.0 && log < store, "{log} of {store}");
    drop(open);
}

// P5.5
#[test]
fn who_waits_is_counted_as_long_as_it_waits() {
    let fixture = Fixture::new();
    assert_eq!(Metrics::of_mount(&fixture).get("workfs_waiters"), 0.0);
    let mut claim = fixture.command(&["claim", "--next", "--wait", "--agent", "bob"]);
    let mut claim = claim.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let waiters = |wanted: f64| {
        until_polled("those who wait", || {
            (Metrics::of_mount(&fixture).get("workfs_waiters") == wanted).then_some(())
        });
    };
    waiters(1.0);
    fixture.task("inbox", &Task::new("t-1"));
    assert!(claim.wait().unwrap().success());
    waiters(0.0);
}

// P5.5
#[test]
fn the_command_says_the_same_also_where_nothing_is_mounted() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let (mounted, asked) = (Metrics::of_mount(&fixture), Metrics::of_command(&fixture));
    assert_eq!(mounted.types, asked.types);
    // The same daemon's: it goes on counting.
    let rise = asked.since(&mounted);
    assert_eq!((rise("workfs_events_total"), rise("workfs_mounts")), (0.0, 0.0));
    assert!(asked.get("workfs_request_seconds_count{operation=\"lookup\"}") > 0.0);
    let started = rise("workfs_start_time_seconds");
    assert_eq!(started, 0.0);
    let json = fixture.workfs(&["status", "--metrics", "--json"]).success().json();
    assert_eq!(Metrics::read(json["text"].as_str().unwrap()).types, asked.types);
    fixture.unmount_all();
    let alone = Metrics::of_command(&fixture);
    assert_eq!((alone.get("workfs_mounts"), alone.get("workfs_leases")), (0.0, 0.0));
    let inbox = "workfs_records{workspace=\"work\",kind=\"task\",state=\"inbox\"}";
    assert_eq!(alone.get(inbox), 1.0);
}

// P10.8
#[test]
fn a_mount_of_a_part_has_none_and_that_of_an_agent_has() {
    let fixture = Fixture::new();
    let mount = |name: &str, more: &[&str]| {
        let dir = fixture.base().join(name);
        fs::create_dir(&dir).unwrap();
        fixture.workfs(&[&["mount", dir.to_str().unwrap()], more].concat()).success();
        dir
    };
    let (part, agents) = (mount("part", &["--root", "work"]), mount("bob", &["--agent", "bob"]));
    for name in ["metrics", "status"] {
        let there = fs::read_to_string(part.join(".workfs").join(name));
        assert_eq!(there.unwrap_err().kind(), io::ErrorKind::NotFound, "{name}");
        fs::read_to_string(agents.join(".workfs").join(name)).unwrap();
        assert!(fs::write(agents.join(".workfs").join(name), "x").is_err(), "{name}");
    }
    let mut there = fixture.command(&["status", "--metrics"]);
    let ran = crate::harness::run(there.current_dir(&part)).failure();
    assert!(ran.said().contains("whole store"), "{ran}");
    for dir in [part, agents] {
        fixture.workfs(&["unmount", dir.to_str().unwrap()]).success();
    }
}

// P5.5
#[test]
fn each_metric_is_documented_and_the_reverse() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let there: Vec<String> = Metrics::of_mount(&fixture).types.into_keys().collect();
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/formats.md");
    let document = fs::read_to_string(document).unwrap();
    let rows = document.split("### `metrics`").nth(1).unwrap().lines();
    let rows = rows.filter_map(|row| row.strip_prefix("| `")?.split(['`', '{']).next());
    let mut documented: Vec<String> = rows.map(str::to_owned).collect();
    documented.sort();
    assert_eq!(there, documented);
}
