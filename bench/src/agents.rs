//! What agents cost by being there: renewing their leases, and the rounds of the chores.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::fail::{During, Outcome};
use crate::growth::grouped;
use crate::machine::{self, Watch};
use crate::ops::{self, INBOX, Sample};
use crate::report::Goal;
use crate::stats::percentile_us;
use crate::sys::{Dir, c_name};
use crate::target::{Target, Workfs};
use crate::{Bench, CLIENTS, say, task};

/// How long the measured leases are: long ones are renewed as often in their time.
const LEASE: Duration = Duration::from_secs(60);

/// How often an agent asks for something.
const SIGN_OF_LIFE_EVERY: Duration = Duration::from_secs(1);

/// The daemon's CPU while `leases` leases of agents that show life are renewed, and how long a
/// claim waits meanwhile.
pub fn leases(bench: &mut Bench<'_>, dir: &Path) -> Outcome<()> {
    let count = bench.size.leases / CLIENTS * CLIENTS;
    let label = format!("{} leases", grouped(count));
    let mut store = Workfs::new(&bench.options.workfs, &dir.join("leases"), &label, "full")?;
    say(&format!("importing {label}"));
    let load = dir.join("load");
    let lease = format!("lease: {}s\n", LEASE.as_secs());
    task::write_some(&load.join("inbox"), 0..count, |text| {
        text.replace("status: new\n", &{ format!("status: new\n{lease}") })
    })?;
    task::write_all(&load.join("inbox"), count, count + 1)?;
    store.import(&load, "work")?;
    fs::remove_dir_all(&load).during(|| format!("removing {}", load.display()))?;
    store.mount(CLIENTS)?;
    ops::make_lanes(&store, CLIENTS)?;
    let daemon = store.daemon().ok_or("there is no daemon")?;

    // Each agent shows life by asking for something.
    let alive = |time: Duration| {
        let begin = Instant::now();
        while begin.elapsed() < time {
            for root in store.roots() {
                // What is not there is asked for each time.
                let _ = fs::symlink_metadata(root.join("nothing"));
            }
            std::thread::sleep(SIGN_OF_LIFE_EVERY);
        }
    };
    std::thread::scope(|scope| {
        let roots = store.roots();
        let claim = |worker: usize| {
            let (root, lane) = (roots[worker].clone(), ops::lane(worker));
            scope.spawn(move || -> Outcome<()> {
                let open = |dir: &str| Dir::open(&root.join(dir)).during(|| dir.to_owned());
                let (inbox, lane) = (open(INBOX)?, open(&lane)?);
                for nth in (worker..count).step_by(CLIENTS) {
                    let name = task::name(nth);
                    inbox.rename(&c_name(&name), &lane).during(|| format!("claiming {name}"))?;
                }
                Ok(())
            })
        };
        let threads: Vec<_> = (0..CLIENTS).map(claim).collect();
        let lost = |_| Err("a worker panicked".to_owned());
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(lost))
    })?;

    let test = "leases: renewals in a lease's time";
    say(test);
    let watch = Watch::start(bench.disk.as_ref(), &store.servers());
    let before = machine::process_cpu_us(daemon);
    alive(LEASE);
    let used_us = (machine::process_cpu_us(daemon) - before) as f64;
    let sample = Sample { p99_us: None, ops: count, value: used_us / 1e3, seen: watch.stop() };
    bench.report.add(test, &label, "ms of CPU", sample);
    let share = used_us / LEASE.as_micros() as f64 * 100.0;
    let test = format!("leases: share of a core, leases of {} s", LEASE.as_secs());
    bench.report.add(&test, &label, "%", Sample::figure(share));
    bench.report.goal(&test, &label, Goal::AtMost(1.0));

    let test = "leases: a claim meanwhile";
    let mut nanos = Back::and_forth(&store, count, LEASE / 2)?.nanos();
    add_latency(bench, test, &label, &mut nanos);
    // By now each is older than its lease: nobody lost any.
    for worker in 0..CLIENTS {
        let dir = store.roots()[worker].join(ops::lane(worker));
        let there: HashSet<String> = ops::names(&dir)?;
        if there.len() != count / CLIENTS {
            return Err(format!("{} has {} tasks", dir.display(), there.len()));
        }
    }
    Ok(())
}

/// What a round of the chores costs among many records, and how long a claim waits meanwhile.
pub fn rounds(bench: &mut Bench<'_>, dir: &Path) -> Outcome<()> {
    let count = bench.size.large;
    let label = format!("{} tasks", grouped(count));
    let layout = layout(&dir.join("layout"))?;
    let program = &bench.options.workfs;
    let mut store = Workfs::with_layout(program, &dir.join("rounds"), &label, "full", &layout)?;
    crate::growth::fill(&store, &dir.join("load"), count)?;
    let old = bench.size.old;
    for (what, finished) in [("nothing to do", 0), ("1,024 to put away", old)] {
        if finished > 0 {
            let load = dir.join("load");
            let done = "status: done\nresult: {summary: made}\n";
            let text = |text: String| text.replace("status: new\n", done);
            task::write_some(&load.join("done"), count..count + finished, text)?;
            store.unmount()?;
            store.import(&load, "work")?;
            fs::remove_dir_all(&load).during(|| format!("removing {}", load.display()))?;
            // So old that it is put away.
            std::thread::sleep(Duration::from_millis(1500));
        }
        let test = format!("chores: a round, {what}");
        say(&test);
        for rep in 1..=bench.size.reps.min(3) {
            // A daemon begins with a round; the next is a minute away.
            store.unmount()?;
            store.mount(1)?;
            ops::make_lanes(&store, 1)?;
            let daemon = store.daemon().ok_or("there is no daemon")?;
            let mut meanwhile = Back::and_forth(&store, 0, Duration::from_secs(4))?;
            let cpu = machine::thread_cpu_us(daemon, "chores").ok_or("there are no chores")?;
            let afterwards = meanwhile.split_off(Duration::from_secs(2));
            if finished > 0 {
                let left = ops::names(&store.roots()[0].join("work/done"))?.len();
                if left != finished - rep * 1024 {
                    return Err(format!("{left} of {finished} tasks are left in done"));
                }
            }
            bench.report.add(&test, &label, "ms of CPU", Sample::figure(cpu as f64 / 1e3));
            let (mut first, mut rest) = (meanwhile.nanos(), afterwards.nanos());
            add_latency(bench, &format!("{test}: a claim meanwhile"), &label, &mut first);
            add_latency(bench, &format!("{test}: a claim afterwards"), &label, &mut rest);
        }
    }
    Ok(())
}

/// The median and the 99th percentile, and the longest in a row of its own.
fn add_latency(bench: &mut Bench<'_>, test: &str, label: &str, nanos: &mut [u64]) {
    let most = nanos.iter().copied().max().unwrap_or(0) as f64 / 1e6;
    let p99_us = Some(percentile_us(nanos, 0.99));
    let sample = Sample { p99_us, ops: 0, ..Sample::figure(percentile_us(nanos, 0.5)) };
    bench.report.add(test, label, "µs", sample);
    bench.report.add(&format!("{test}, the longest"), label, "ms", Sample::figure(most));
}

/// One task that goes to a lane and back, again and again: when each move ended, and how long it
/// took.
struct Back(Vec<(Duration, u64)>);

impl Back {
    fn and_forth(store: &Workfs, nth: usize, time: Duration) -> Outcome<Back> {
        let root = store.roots().first().cloned().ok_or("nothing is mounted")?;
        let open = |dir: &str| Dir::open(&root.join(dir)).during(|| dir.to_owned());
        let (inbox, lane) = (open(INBOX)?, open(&ops::lane(0))?);
        let name = c_name(&task::name(nth));
        let (begin, mut moves) = (Instant::now(), Vec::new());
        while begin.elapsed() < time {
            for (from, to) in [(&inbox, &lane), (&lane, &inbox)] {
                let start = Instant::now();
                from.rename(&name, to).during(|| format!("moving {name:?}"))?;
                moves.push((begin.elapsed(), start.elapsed().as_nanos() as u64));
            }
        }
        Ok(Back(moves))
    }

    /// What ended after `time`.
    fn split_off(&mut self, time: Duration) -> Back {
        let at = self.0.partition_point(|(ended, _)| *ended < time);
        Back(self.0.split_off(at))
    }

    fn nanos(&self) -> Vec<u64> {
        self.0.iter().map(|(_, took)| *took).collect()
    }
}

/// A layout in `dir` with all chores, and a kind whose tasks are old after a second.
fn layout(dir: &Path) -> Outcome<std::path::PathBuf> {
    let kind = include_str!("../../src/kind/builtin/task.kind.yaml")
        .replace("kind: task\n", "kind: ageing\n")
        .replace("schema: task.v1.json", "schema: ageing.json")
        .replace("after: 30d", "after: 1s")
        .replace("after: 4h", "after: 1s")
        .replace("after: 7d", "after: 1s");
    let chores = "{ handoff: false, archive: true, escalate: true, drafts: true }";
    let layout = format!(
        "kinds: [{{ file: ageing.kind.yaml }}]\n\
         workspaces: [{{ path: work, kind: ageing, chores: {chores} }}]\n"
    );
    fs::create_dir_all(dir).during(|| format!("making {}", dir.display()))?;
    for (name, text) in [
        ("ageing.kind.yaml", &*kind),
        ("ageing.json", include_str!("../../src/kind/builtin/task.v1.json")),
        ("layout.yaml", &*layout),
    ] {
        fs::write(dir.join(name), text).during(|| format!("writing {name}"))?;
    }
    Ok(dir.join("layout.yaml"))
}
