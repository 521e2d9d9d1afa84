//! `.workfs/metrics`: what a person who runs a daemon watches, in the text format of Prometheus.
//!
//! What must stay true: a label has words of the program, of a kind or of the configuration, never an agent's name, a
//! file's or what a text says; each metric has its line in `docs/formats.md`. Deliberately not here: counting (the
//! engine's `desk/tally`, and the store).
//!
//! The format is <https://prometheus.io/docs/instrumenting/exposition_formats/>. It is written here, since a library of
//! metrics keeps the counts itself, and half of these are the store's.

use std::fmt::{Display, Write as _};

use workfs_mount::proc_text;

use super::status::kind_of;
use crate::config::Config;
use crate::engine::{Counts, Times};
use crate::names::ShownPath;
use crate::numbers::{G, UnixNanos};
use crate::store::{Read, Result};
use crate::tree::WorkTree;

/// What the store does not know.
struct Figures {
    counts: Counts,
    queue: usize,
    mounts: usize,
    handles: usize,
    started: UnixNanos,
    resident_bytes: Option<u64>,
}

/// The text, metric after metric.
#[derive(Default)]
struct Text(String);

/// What a metric is.
#[derive(Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
}

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &dyn Display)], value: impl Display) {
        self.0.push_str(name);
        for (nth, (label, text)) in labels.iter().enumerate() {
            let text = text.to_string();
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{label}=\"{text}\"", if nth == 0 { "{" } else { "," });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    /// A metric of one value.
    fn one(&mut self, (name, kind, help): (&str, Kind, &str), value: impl Display) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        self.head(name, kind, help);
        self.sample(name, &[], value);
    }

    fn histogram(&mut self, (name, help): (&str, &str), times: &Times) {
        self.head(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        let mut within = 0;
        for (bound, count) in Times::BOUNDS.iter().zip(times.within) {
            within += count;
            self.sample(&bucket, &[("le", &bound.as_secs_f64())], within);
        }
        self.sample(&bucket, &[("le", &"+Inf")], times.count);
        self.sample(&format!("{name}_sum"), &[], times.sum.as_secs_f64());
        self.sample(&format!("{name}_count"), &[], times.count);
    }

    /// What was counted at the desk.
    fn counts(&mut self, counts: &Counts) {
        let name = "workfs_changes_total";
        self.head(
            name,
            "counter",
            "Changes that the writer was asked for, by operation and outcome.",
        );
        for (operation, of) in &counts.changes {
            for (outcome, count) in [("made", of.made), ("refused", of.refused)] {
                let labels: [(&str, &dyn Display); 2] =
                    [("operation", operation), ("outcome", &outcome)];
                self.sample(name, &labels, count);
            }
        }
        let name = "workfs_refusals_total";
        self.head(name, "counter", "Refusals by the writer, by the rule (docs/errors.md).");
        for (rule, count) in &counts.refusals {
            self.sample(name, &[("rule", rule)], count);
        }
        let help = "How long transactions took, from their begin to their end on the disk.";
        self.histogram(("workfs_commit_seconds", help), &counts.commits);
        let help = "Transactions that the store failed.";
        self.one(("workfs_failed_commits_total", Kind::Counter, help), counts.failed);
    }

    /// What the store says.
    fn store(&mut self, read: &dyn Read, config: &Config) -> Result<()> {
        let last = read.last_event()?.map_or(G(0), |event| event.g);
        self.one(("workfs_events_total", Kind::Counter, "Events in the ledger."), last);
        let name = "workfs_records";
        self.head(name, "gauge", "Records by workspace, kind and state.");
        for workspace in read.workspaces()?.iter().filter(|workspace| workspace.dir.is_some()) {
            let kind = kind_of(config, workspace);
            let path = ShownPath::from(&workspace.path);
            for (state, count) in read.live_records(workspace.key)? {
                let labels: [(&str, &dyn Display); 3] =
                    [("workspace", &path), ("kind", &kind), ("state", &state)];
                self.sample(name, &labels, count);
            }
        }
        let mut leases = 0_u64;
        read.leases(&mut |(row, _)| {
            leases += u64::from(row.runs());
            true
        })?;
        self.one(("workfs_leases", Kind::Gauge, "Leases that run."), leases);
        Ok(())
    }
}

impl WorkTree {
    /// What `.workfs/metrics` says.
    pub(in crate::tree) fn metrics(&self, read: &dyn Read, config: &Config) -> Result<String> {
        let figures = Figures {
            counts: self.engine.counts(),
            queue: self.engine.queue_length(),
            mounts: self.hub.count(),
            handles: self.handles.count(),
            started: self.started,
            resident_bytes: resident_bytes(),
        };
        render(read, config, &figures)
    }
}

fn render(read: &dyn Read, config: &Config, figures: &Figures) -> Result<String> {
    let mut text = Text::default();
    text.head("workfs_build_info", "gauge", "The version that runs.");
    text.sample("workfs_build_info", &[("version", &env!("CARGO_PKG_VERSION"))], 1);
    text.counts(&figures.counts);
    let help = "Changes that wait for the writer.";
    text.one(("workfs_queue_length", Kind::Gauge, help), figures.queue);
    text.store(read, config)?;
    text.one(("workfs_mounts", Kind::Gauge, "Mounts of this daemon."), figures.mounts);
    text.one(("workfs_open_files", Kind::Gauge, "Open files and directories."), figures.handles);
    let started = figures.started.0 as f64 / 1e9;
    let help = "When the daemon began, since the epoch.";
    text.one(("process_start_time_seconds", Kind::Gauge, help), started);
    if let Some(bytes) = figures.resident_bytes {
        text.one(("process_resident_memory_bytes", Kind::Gauge, "Memory of the daemon."), bytes);
    }
    Ok(text.0)
}

/// The memory of this process, as `/proc` tells it.
fn resident_bytes() -> Option<u64> {
    let pages = proc_text("/proc/self/statm").ok()?;
    let pages: u64 = pages.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
