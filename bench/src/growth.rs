//! What may not grow with the number of tasks: a small store and a large one, in turns.

use std::path::Path;
use std::time::Instant;

use crate::fail::{During, Outcome};
use crate::machine;
use crate::ops::{self, Claims, INBOX, Sample};
use crate::report::Goal;
use crate::stats::Random;
use crate::target::{Target, Workfs};
use crate::{Bench, CLIENTS, next, say, task};

/// How many files are written before they are imported: the disk needs room for these only.
const PORTION: usize = 25_000;

/// How much slower the large store may be.
const GROWTH_MAX: f64 = 1.3;

/// Fills both and measures.
pub fn measure(bench: &mut Bench<'_>, dir: &Path) -> Outcome<()> {
    let (few, many) = (bench.size.small, bench.size.large);
    let program = &bench.options.workfs;
    let label = |count: usize| format!("{} tasks", grouped(count));
    let mut small = Workfs::new(program, &dir.join("small"), &label(few), "full")?;
    let mut large = Workfs::new(program, &dir.join("large"), &label(many), "full")?;
    fill(&small, &dir.join("load"), few)?;
    let start = Instant::now();
    fill(&large, &dir.join("load"), many)?;
    let rate = many as f64 / start.elapsed().as_secs_f64();
    bench.report.add("import", &label(many), "/s", Sample::figure(rate));

    let test = "a mount is ready";
    say(test);
    for store in [&small, &large] {
        bench.report.expect(test, &store.label(), "ms");
    }
    for _ in 0..bench.size.reps {
        for store in [&mut small, &mut large] {
            store.unmount()?;
            let took = store.mount(1)?;
            let sample = Sample { p99_us: None, ..Sample::figure(took.as_secs_f64() * 1e3) };
            bench.report.add(test, &store.label(), "ms", sample);
        }
    }
    bench.report.goal(test, &large.label(), Goal::AtMost(100.0));

    for (sync, survives) in [("full", "power loss"), ("normal", "the daemon")] {
        for store in [&mut small, &mut large] {
            store.unmount()?;
            store.set_sync(sync);
            store.mount(1)?;
            ops::make_lanes(store, 1)?;
        }
        changes(bench, &small, &large, survives)?;
        if sync == "full" {
            // Once for both: a read does not know how durable changes are.
            reads(bench, &small, &large)?;
        }
    }

    nexts(bench, &mut small, &mut large)?;

    let test = "readdir and stat, a task";
    let disk = bench.disk.clone();
    bench.turns(test, "µs", &[&small, &large], &|target, _| {
        let count = if target.label() == label(few) { few } else { many };
        let sample = ops::list(target, INBOX, count, disk.as_ref())?;
        Ok(Sample { value: sample.value * 1e3 / count as f64, ops: count, ..sample })
    })?;

    for (test, line) in [("memory of the daemon", "VmRSS"), ("at most, after all this", "VmHWM")] {
        for store in [&small, &large] {
            let kib = store.daemon().and_then(|pid| machine::memory_kib(pid, line));
            let kib = kib.ok_or("the daemon's memory cannot be read")?;
            bench.report.add(test, &store.label(), "MiB", Sample::figure(kib as f64 / 1024.0));
        }
        bench.report.goal(test, &large.label(), Goal::AtMost(100.0));
    }
    for store in [&small, &large] {
        let mib = store.bytes() as f64 / f64::from(1 << 20);
        bench.report.add("size of the store", &store.label(), "MiB", Sample::figure(mib));
    }
    Ok(())
}

/// Claims and saves, in turns.
fn changes(bench: &mut Bench<'_>, small: &Workfs, large: &Workfs, survives: &str) -> Outcome<()> {
    let disk = bench.disk.clone();
    let disk = disk.as_ref();
    let chosen = Chosen::of(bench, small);
    let durable = survives == "power loss";
    let test = format!("growth: claim, survives {survives}");
    bench.turns(&test, "µs", &[small, large], &|target, rep| {
        let tasks = chosen.tasks(target, rep);
        Claims { target, tasks: &tasks, workers: 1, durable }.latency(disk)
    })?;
    bench.report.goal(&test, &large.label(), Goal::Ratio(small.label(), GROWTH_MAX));
    let test = format!("growth: save, survives {survives}");
    bench.turns(&test, "µs", &[small, large], &|target, rep| {
        let progress = rep as u64 + 1 + if durable { 0 } else { 1000 };
        ops::save(target, &chosen.tasks(target, rep), durable, progress, disk)
    })?;
    bench.report.goal(&test, &large.label(), Goal::Ratio(small.label(), GROWTH_MAX));
    Ok(())
}

/// `.next` by many agents, each through a mount of its own.
fn nexts(bench: &mut Bench<'_>, small: &mut Workfs, large: &mut Workfs) -> Outcome<()> {
    for store in [&mut *small, &mut *large] {
        store.unmount()?;
        store.set_sync("full");
        store.mount(CLIENTS)?;
        ops::make_lanes(store, CLIENTS)?;
    }
    let disk = bench.disk.clone();
    // Some stay, so that the last takes the best of several, too.
    let each = bench.size.small * 4 / 5 / CLIENTS;
    let test = format!("growth: .next by {CLIENTS} agents, survives power loss");
    bench.turns(&test, "/s", &[&*small, &*large], &|target, _| {
        next::rate(target, CLIENTS, each, disk.as_ref())
    })?;
    for label in [small.label(), large.label()] {
        bench.report.goal(&test, &label, Goal::AtLeast(10_000.0));
    }
    Ok(())
}

fn reads(bench: &mut Bench<'_>, small: &Workfs, large: &Workfs) -> Outcome<()> {
    let disk = bench.disk.clone();
    let chosen = Chosen::of(bench, small);
    let test = "growth: cat of a task";
    bench.turns(test, "µs", &[small, large], &|target, rep| {
        ops::cat(target, &chosen.tasks(target, rep), disk.as_ref())
    })?;
    bench.report.goal(test, &large.label(), Goal::Ratio(small.label(), GROWTH_MAX));
    Ok(())
}

/// Which tasks of which store are used in which repetition: anywhere in it, other ones each time.
struct Chosen {
    small: String,
    few: usize,
    many: usize,
    ops: usize,
}

impl Chosen {
    fn of(bench: &Bench<'_>, small: &Workfs) -> Chosen {
        let size = &bench.size;
        Chosen { small: small.label(), few: size.small, many: size.large, ops: size.ops / 2 }
    }

    fn tasks(&self, target: &dyn Target, rep: usize) -> Vec<usize> {
        let end = if target.label() == self.small { self.few } else { self.many };
        Random(99 + rep as u64).some_below(self.ops, end)
    }
}

/// Imports the tasks `0..count`, in portions.
pub fn fill(store: &Workfs, dir: &Path, count: usize) -> Outcome<()> {
    say(&format!("importing {}", store.label()));
    for from in (0..count).step_by(PORTION) {
        task::write_all(&dir.join("inbox"), from, count.min(from + PORTION))?;
        store.import(dir, "work")?;
        std::fs::remove_dir_all(dir).during(|| format!("removing {}", dir.display()))?;
    }
    Ok(())
}

/// A number as people write it.
pub fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn thousands_are_grouped() {
        assert_eq!(super::grouped(999), "999");
        assert_eq!(super::grouped(1_000_000), "1,000,000");
    }
}
