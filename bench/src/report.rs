//! What was measured: rows, goals, the table and the JSON.

use std::fmt::Write as _;

use crate::ops::Sample;
use crate::stats::{median, ratio, spread};

/// The samples of one target in one test, a sample a repetition.
#[derive(Clone, Debug)]
pub struct Row {
    /// The test.
    pub test: String,
    /// The target.
    pub target: String,
    /// The unit of the figures.
    pub unit: &'static str,
    /// By repetition.
    pub samples: Vec<Sample>,
}

/// What is asked of a row.
#[derive(Clone, Debug)]
pub enum Goal {
    /// At most so many times another target of the same test.
    Ratio(String, f64),
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub struct Report {
    rows: Vec<Row>,
    goals: Vec<(String, String, Goal)>,
}

impl Report {
    /// Gives a row its place before it is measured.
    pub fn expect(&mut self, test: &str, target: &str, unit: &'static str) {
        let (test, target) = (test.to_owned(), target.to_owned());
        self.rows.push(Row { test, target, unit, samples: Vec::new() });
    }

    /// Adds the sample of a repetition.
    pub fn add(&mut self, test: &str, target: &str, unit: &'static str, sample: Sample) {
        let known = self.rows.iter_mut().find(|row| row.test == test && row.target == target);
        match known {
            Some(row) => row.samples.push(sample),
            None => self.rows.push(Row {
                test: test.to_owned(),
                target: target.to_owned(),
                unit,
                samples: vec![sample],
            }),
        }
    }

    /// Asks something of a row.
    pub fn goal(&mut self, test: &str, target: &str, goal: Goal) {
        self.goals.push((test.to_owned(), target.to_owned(), goal));
    }

    fn row(&self, test: &str, target: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.test == test && row.target == target)
    }

    /// The figure that a goal is about, and whether it is met.
    fn judge(&self, row: &Row, goal: &Goal) -> Option<(f64, bool)> {
        let value = median(&row.values());
        Some(match goal {
            Goal::Ratio(to, limit) => {
                let ratio = ratio(&row.values(), &self.row(&row.test, to)?.values());
                (ratio, ratio <= *limit)
            }
            Goal::AtMost(limit) => (value, value <= *limit),
            Goal::AtLeast(limit) => (value, value >= *limit),
        })
    }

    fn goal_of(&self, row: &Row) -> Option<&Goal> {
        let mut goals = self.goals.iter();
        goals.find(|(test, target, _)| *test == row.test && *target == row.target).map(|g| &g.2)
    }

    /// Goals that were missed.
    pub fn missed(&self) -> usize {
        let judged = self.rows.iter().filter_map(|row| self.judge(row, self.goal_of(row)?));
        judged.filter(|(_, met)| !met).count()
    }

    /// The share of the machine's CPU that others had while something was measured.
    pub fn others(&self) -> f64 {
        let samples: Vec<&Sample> = self.rows.iter().flat_map(|row| &row.samples).collect();
        others(&samples).unwrap_or(f64::NAN)
    }

    /// The table, for people and for docs/bench.md.
    pub fn table(&self) -> String {
        let heading = ["test", "target", "median", "unit", "p99 µs", "spread", "flushes/op"];
        let heading = heading.into_iter().chain(["others", "judged", "goal", "met"]);
        let mut lines: Vec<Vec<String>> = vec![heading.map(str::to_owned).collect()];
        let mut before = "";
        for row in &self.rows {
            let goal = self.goal_of(row);
            let judged = goal.and_then(|goal| self.judge(row, goal));
            let test = if row.test == before { "" } else { &row.test };
            before = &row.test;
            lines.push(vec![
                test.to_owned(),
                row.target.clone(),
                figure(median(&row.values())),
                row.unit.to_owned(),
                row.p99_us().map_or_else(String::new, figure),
                if row.samples.len() > 1 {
                    format!("{:.2}", spread(&row.values()))
                } else {
                    "".into()
                },
                row.flushes_per_op().map_or_else(String::new, |flushes| format!("{flushes:.2}")),
                row.others().map_or_else(String::new, |others| format!("{:.0} %", others * 100.0)),
                match (goal, judged) {
                    (Some(Goal::Ratio(to, _)), Some((ratio, _))) => format!("{ratio:.2} × {to}"),
                    _ => String::new(),
                },
                match goal {
                    Some(Goal::Ratio(_, limit)) => format!("≤ {limit} ×"),
                    Some(Goal::AtMost(limit)) => format!("≤ {}", figure(*limit)),
                    Some(Goal::AtLeast(limit)) => format!("≥ {}", figure(*limit)),
                    None => String::new(),
                },
                judged.map_or("", |(_, met)| if met { "yes" } else { "NO" }).to_owned(),
            ]);
        }
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
        let widths: Vec<usize> =
            (0..lines[0].len()).map(|column| width(column).unwrap_or(0)).collect();
        let mut out = String::new();
        for (nth, line) in lines.iter().enumerate() {
            let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            // Writing to a string cannot fail.
            let _ = writeln!(out, "| {} |", cells.collect::<Vec<_>>().join(" | "));
            if nth == 0 {
                let dashes = widths.iter().map(|width| "-".repeat(width + 2));
                let _ = writeln!(out, "|{}|", dashes.collect::<Vec<_>>().join("|"));
            }
        }
        out
    }

    /// All of it, a sample a repetition, for programs; `machine` is its head.
    pub fn json(&self, machine: &[(&str, String)]) -> String {
        let head: Vec<String> = machine
            .iter()
            .map(|(key, value)| format!("{}:{}", quoted(key), quoted(value)))
            .collect();
        let rows: Vec<String> = self.rows.iter().map(|row| self.row_json(row)).collect();
        format!("{{\"machine\":{{{}}},\n\"rows\":[\n{}\n]}}\n", head.join(","), rows.join(",\n"))
    }

    fn row_json(&self, row: &Row) -> String {
        let list = |values: Vec<f64>| {
            let values: Vec<String> = values.into_iter().map(number).collect();
            format!("[{}]", values.join(","))
        };
        let p99 = row.samples.iter().filter_map(|sample| sample.p99_us).collect();
        let judged = self.goal_of(row).and_then(|goal| {
            let (figure, met) = self.judge(row, goal)?;
            Some(match goal {
                Goal::Ratio(to, limit) => format!(
                    ",\"ratio\":{},\"ratio_to\":{},\"at_most\":{limit},\"met\":{met}",
                    number(figure),
                    quoted(to)
                ),
                Goal::AtMost(limit) => format!(",\"at_most\":{limit},\"met\":{met}"),
                Goal::AtLeast(limit) => format!(",\"at_least\":{limit},\"met\":{met}"),
            })
        });
        format!(
            "{{\"test\":{},\"target\":{},\"unit\":{},\"median\":{},\"values\":{},\"p99_us\":{},\
             \"ops\":{},\"flushes_per_op\":{},\"others\":{}{}}}",
            quoted(&row.test),
            quoted(&row.target),
            quoted(row.unit),
            number(median(&row.values())),
            list(row.values()),
            list(p99),
            row.samples.iter().map(|sample| sample.ops).sum::<usize>(),
            row.flushes_per_op().map_or_else(|| "null".into(), number),
            row.others().map_or_else(|| "null".into(), number),
            judged.unwrap_or_default()
        )
    }
}

impl Row {
    fn values(&self) -> Vec<f64> {
        self.samples.iter().map(|sample| sample.value).collect()
    }

    fn p99_us(&self) -> Option<f64> {
        let values: Vec<f64> = self.samples.iter().filter_map(|sample| sample.p99_us).collect();
        (!values.is_empty()).then(|| median(&values))
    }

    fn flushes_per_op(&self) -> Option<f64> {
        let each = |sample: &Sample| {
            sample.seen.flushes.map(|flushes| flushes as f64 / sample.ops.max(1) as f64)
        };
        let values: Vec<f64> = self.samples.iter().filter_map(each).collect();
        (!values.is_empty()).then(|| median(&values))
    }

    fn others(&self) -> Option<f64> {
        others(&self.samples.iter().collect::<Vec<_>>())
    }
}

/// The share of the CPU that others had; `None` of a time too short for a clock of 10 ms ticks.
fn others(samples: &[&Sample]) -> Option<f64> {
    let capacity: f64 = samples.iter().map(|sample| sample.seen.capacity_us).sum();
    let used: f64 = samples.iter().map(|sample| sample.seen.others_us).sum();
    (capacity >= 400_000.0).then(|| (used / capacity).clamp(0.0, 1.0))
}

/// Three digits or more, as far as they say something.
fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn number(value: f64) -> String {
    if value.is_finite() { format!("{value:.4}") } else { "null".to_owned() }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_judged_by_ratios_of_the_same_repetition() {
        let mut report = Report::default();
        for (slow, fast) in [(10.0, 5.0), (100.0, 50.0), (9.0, 5.0)] {
            report.add("claim", "a", "µs", Sample::figure(slow));
            report.add("claim", "b", "µs", Sample::figure(fast));
        }
        report.goal("claim", "a", Goal::Ratio("b".into(), 2.0));
        assert_eq!(report.missed(), 0);
        assert!(report.table().contains("2.00 × b"));
        report.goal("claim", "b", Goal::AtLeast(1000.0));
        assert_eq!(report.missed(), 1);
        let json = report.json(&[("kernel", "a \"b\"\n".into())]);
        assert!(json.contains(r#""kernel":"a \"b\"\u000a""#), "{json}");
        assert!(json.contains(r#""ratio":2.0000"#), "{json}");
    }
}
