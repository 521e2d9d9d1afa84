//! What a person who runs a daemon watches, in the text format of Prometheus: what `.workfs/metrics` and
//! `workfs status --metrics` say.
//!
//! What must stay true: a label has words of the program, of a kind or of the configuration, never an agent's name, a
//! file's or what a text says; each metric has its line in `docs/formats.md`. Deliberately not here: counting (the
//! desk's `tally`, `mount/`, and the store).
//!
//! The format is <https://prometheus.io/docs/instrumenting/exposition_formats/>. It is written here, since a library of
//! metrics keeps the counts itself, and half of these are the store's.

use std::fmt::{Display, Write as _};

use super::{Engine, kind_of, parked_records, running_leases};
use crate::config::Config;
use crate::names::ShownPath;
use crate::numbers::{G, Operation, Times};
use crate::refusal::Rule;
use crate::store::{Read, Result};

/// The text, metric after metric.
#[derive(Default)]
struct Text(String);

/// What a metric is, by the word that the format has for it.
type Kind = &'static str;

const COUNTER: Kind = "counter";
const GAUGE: Kind = "gauge";
const HISTOGRAM: Kind = "histogram";

/// Labels and what they say.
type Labels<'l> = &'l [(&'l str, &'l dyn Display)];

impl Text {
    fn head(&mut self, (name, kind, help): (&str, Kind, &str)) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: Labels<'_>, value: impl Display) {
        self.0.push_str(name);
        for (nth, (label, text)) in labels.iter().enumerate() {
            let text = text.to_string();
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{label}=\"{text}\"", if nth == 0 { "{" } else { "," });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    /// A metric of one value.
    fn one(&mut self, metric: (&str, Kind, &str), value: impl Display) {
        self.head(metric);
        self.sample(metric.0, &[], value);
    }

    /// The samples of a histogram.
    fn times(&mut self, name: &str, labels: Labels<'_>, times: &Times) {
        // Read before the counts: who reads twice finds no mean that is too great.
        let sum = times.sum().as_secs_f64();
        let (bucket, counts) = (format!("{name}_bucket"), times.within());
        let bounds = Times::BOUNDS.map(|bound| bound.as_secs_f64().to_string());
        let bounds = bounds.iter().map(String::as_str).chain(["+Inf"]);
        let mut within = 0;
        for (bound, count) in bounds.zip(counts) {
            within += count;
            let labels = [labels, &[("le", &bound)]].concat();
            self.sample(&bucket, &labels, within);
        }
        self.sample(&format!("{name}_sum"), labels, sum);
        self.sample(&format!("{name}_count"), labels, within);
    }

    fn histogram(&mut self, (name, help): (&str, &str), times: &Times) {
        self.head((name, HISTOGRAM, help));
        self.times(name, &[], times);
    }

    /// What the store says.
    fn store(&mut self, read: &dyn Read, config: &Config) -> Result<()> {
        let last = read.last_event()?.map_or(G(0), |event| event.g);
        self.one(("workfs_events_total", COUNTER, "Events in the ledger."), last);
        let mut workspaces = read.workspaces()?;
        workspaces.retain(|workspace| workspace.dir.is_some());
        let name = "workfs_records";
        self.head((name, GAUGE, "Records by workspace, kind and state."));
        for workspace in &workspaces {
            let (binding, kind) = (config.bind(&workspace.path), kind_of(config, workspace));
            let path = ShownPath::from(&workspace.path);
            let mut states = read.live_records(workspace.key)?;
            // A state that is emptied is told to be empty.
            let known = binding.iter().flat_map(|binding| binding.kind.states());
            for (_, state) in known {
                if states.iter().all(|(name, _)| *name != state.name) {
                    states.push((state.name.clone(), 0));
                }
            }
            for (state, count) in states {
                let labels: [(&str, &dyn Display); 3] =
                    [("workspace", &path), ("kind", &kind), ("state", &state)];
                self.sample(name, &labels, count);
            }
        }
        let name = "workfs_parked_records";
        self.head((name, GAUGE, "Records whose name went to a backup, by workspace and kind."));
        for workspace in &workspaces {
            let (path, kind) = (ShownPath::from(&workspace.path), kind_of(config, workspace));
            let labels: [(&str, &dyn Display); 2] = [("workspace", &path), ("kind", &kind)];
            self.sample(name, &labels, parked_records(read, workspace)?);
        }
        self.one(("workfs_leases", GAUGE, "Leases that run."), running_leases(read)?);
        Ok(())
    }

    /// What was counted at the desk.
    fn desk(&mut self, engine: &Engine) {
        let counts = engine.tally().counts();
        let name = "workfs_changes_total";
        self.head((name, COUNTER, "Changes asked of the writer, by operation and outcome."));
        for (operation, of) in &counts.changes {
            for (outcome, count) in [("made", of.made), ("refused", of.refused)] {
                self.sample(name, &[("operation", operation), ("outcome", &outcome)], count);
            }
        }
        let name = "workfs_refusals_total";
        self.head((name, COUNTER, "Refusals by the writer, by the rule (docs/errors.md)."));
        for rule in Rule::ALL {
            let count = counts.refusals.get(rule.code()).copied().unwrap_or(0);
            self.sample(name, &[("rule", &rule.code())], count);
        }
        let name = "workfs_events_written_total";
        self.head((name, COUNTER, "Events that this daemon wrote to the ledger, by name."));
        for (event, count) in &counts.events {
            self.sample(name, &[("event", event)], count);
        }
        let help = "How long transactions took, from their begin to their end on the disk.";
        self.histogram(("workfs_commit_seconds", help), engine.tally().commits());
        let help = "Transactions that the store failed.";
        self.one(("workfs_failed_commits_total", COUNTER, help), counts.failed);
        let help = "Changes that wait for the writer.";
        self.one(("workfs_queue_length", GAUGE, help), engine.queue_length());
        let help = "Those who wait to take a record as soon as one is ready.";
        self.one(("workfs_waiters", GAUGE, help), engine.line().length());
    }

    /// What the mounts do.
    fn mounts(&mut self, engine: &Engine) {
        let live = engine.audience().live();
        let name = "workfs_request_seconds";
        self.head((name, HISTOGRAM, "How long kernels waited for answers, by operation."));
        for operation in Operation::ALL {
            self.times(name, &[("operation", &operation.name())], live.requests.of(*operation));
        }
        let help = "Requests that were answered that their deadline had passed.";
        self.one(("workfs_requests_late_total", COUNTER, help), live.requests.late());
        self.one(("workfs_mounts", GAUGE, "Mounts of this daemon."), live.mounts);
        self.one(("workfs_open_files", GAUGE, "Open files and directories."), live.open);
    }

    /// The store's files and connections.
    fn disk(&mut self, engine: &Engine) {
        let figures = engine.readers().figures();
        let help = "How long flushes of the log took, with what lies beside it.";
        self.histogram(("workfs_flush_seconds", help), &figures.flushes);
        let help = "The store's files, with its log, without room that is taken ahead.";
        self.one(("workfs_store_bytes", GAUGE, help), figures.bytes);
        self.one(("workfs_log_bytes", GAUGE, "The log of the store."), figures.log_bytes);
        let help = "Connections that read the store, used or not.";
        self.one(("workfs_readers", GAUGE, help), figures.readers);
        let help = "Those of them that somebody reads by, the one of this reading among them.";
        self.one(("workfs_readers_used", GAUGE, help), figures.readers_used);
    }
}

impl Engine {
    /// What `.workfs/metrics` says.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn metrics(&self, read: &dyn Read) -> Result<String> {
        let mut text = Text::default();
        let name = "workfs_build_info";
        text.head((name, GAUGE, "The version that runs."));
        text.sample(name, &[("version", &env!("CARGO_PKG_VERSION"))], 1);
        let began = self.started().0 as f64 / 1e9;
        let help = "When the daemon began, since the epoch.";
        text.one(("workfs_start_time_seconds", GAUGE, help), began);
        if let Some(bytes) = resident_bytes() {
            text.one(("workfs_resident_memory_bytes", GAUGE, "Memory of the daemon."), bytes);
        }
        text.store(read, &self.config())?;
        text.desk(self);
        text.mounts(self);
        text.disk(self);
        Ok(text.0)
    }
}

/// The memory of this process, as `/proc` tells it.
fn resident_bytes() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = pages.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
