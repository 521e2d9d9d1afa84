//! `scripts/bench`: workfs against a plain directory and a FUSE pass-through, in one run.
//!
//! What must stay true: within a repetition all targets take turns, in an order that rotates, so
//! that whatever else the machine does hits all of them alike; goals are judged by medians of
//! ratios; every operation is verified. Deliberately not here: peers that are no file systems.

mod agents;
mod fail;
mod files;
mod growth;
mod machine;
mod next;
mod ops;
mod report;
mod stats;
mod sys;
mod target;
mod task;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use clap::Parser;

use fail::{During, Outcome};
use machine::Disk;
use ops::{Claims, INBOX, LISTED, Sample};
use report::{Goal, Report};
use stats::Random;
use target::{PassThrough, Plain, Target, Workfs};

/// Measures workfs against a plain directory and a FUSE pass-through
#[derive(Debug, Parser)]
pub struct Options {
    /// The workfs binary
    #[arg(long)]
    workfs: PathBuf,
    /// The pass-through's binary; without it what it is compared with is left out
    #[arg(long)]
    passthrough: Option<PathBuf>,
    /// A directory for everything, on the disk that is measured; it must be empty
    #[arg(long)]
    dir: PathBuf,
    /// Where the JSON goes
    #[arg(long)]
    json: Option<PathBuf>,
    /// Little of everything: whether the benchmark works, not how fast workfs is
    #[arg(long)]
    quick: bool,
    /// Tasks in the large store of the growth tests
    #[arg(long, value_name = "N")]
    tasks: Option<usize>,
    /// The same as --tasks 1000000
    #[arg(long, conflicts_with_all = ["tasks", "quick"])]
    million: bool,
    /// Repetitions
    #[arg(long, value_name = "N")]
    reps: Option<usize>,
    /// Only these parts, separated by commas
    #[arg(long, value_delimiter = ',', value_enum)]
    only: Vec<Part>,
    /// End with 1 where a goal is missed
    #[arg(long)]
    strict: bool,
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Claims by one client
    Claim,
    /// Claims by 16 clients
    Clients,
    /// stat and cat
    Read,
    /// Saves
    Save,
    /// Listings
    List,
    /// Plain files: small saves, a big one, a repository, many names
    Files,
    /// What grows with the number of tasks
    Growth,
    /// Renewals of leases
    Leases,
    /// Rounds of the chores
    Chores,
}

/// How much is measured.
struct Size {
    reps: usize,
    /// Tasks that are claimed, read and saved.
    tasks: usize,
    /// Tasks that are listed.
    listed: usize,
    /// Operations of one client in a repetition.
    ops: usize,
    small: usize,
    large: usize,
    /// Leases that run at once.
    leases: usize,
    /// Tasks that are so old that a chore puts them away.
    old: usize,
    much: files::Much,
}

impl Options {
    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    fn size(&self) -> Size {
        let large = if self.million { 1_000_000 } else { 100_000 };
        let much = files::Much { big: 256 << 20, files: 5_000, names: 100_000 };
        let full = Size {
            reps: 7,
            tasks: 4_000,
            listed: 10_000,
            ops: 1_000,
            small: 1_000,
            large,
            leases: 10_000,
            old: 4_000,
            much,
        };
        let much = files::Much { big: 8 << 20, files: 100, names: 1_000 };
        let quick = Size {
            reps: 2,
            tasks: 320,
            listed: 500,
            ops: 100,
            small: 200,
            large: 2_000,
            leases: 320,
            old: 4_000,
            much,
        };
        let size = if self.quick { quick } else { full };
        Size {
            reps: self.reps.unwrap_or(size.reps).max(1),
            large: self.tasks.unwrap_or(size.large),
            ..size
        }
    }
}

/// What the parts work with.
pub struct Bench<'o> {
    options: &'o Options,
    size: Size,
    disk: Option<Disk>,
    report: Report,
}

/// What is compared: the same tasks in four file systems.
struct FileSystems {
    plain: Plain,
    through: Option<PassThrough>,
    full: Workfs,
    normal: Workfs,
}

impl FileSystems {
    fn with<'t>(&'t self, workfs: &'t Workfs) -> Vec<&'t dyn Target> {
        let through = self.through.as_ref().map(|through| through as &dyn Target);
        [Some(&self.plain as &dyn Target), through, Some(workfs)].into_iter().flatten().collect()
    }

    /// Those whose changes survive power loss, with fsync(2) where it needs one; workfs is last.
    fn durable(&self) -> Vec<&dyn Target> {
        self.with(&self.full)
    }

    /// Those whose changes survive the end of the daemon; workfs is last.
    fn light(&self) -> Vec<&dyn Target> {
        self.with(&self.normal)
    }

    /// Mounts anew what is mounted.
    fn forget(&mut self) -> Outcome<()> {
        self.full.forget()?;
        self.through.as_mut().map_or(Ok(()), PassThrough::forget)
    }
}

/// Clients that claim at once.
pub const CLIENTS: usize = 16;

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(missed) if missed > 0 && options.strict => ExitCode::FAILURE,
        Ok(_) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("scripts/bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Outcome<usize> {
    let start = Instant::now();
    fs::create_dir_all(&options.dir).during(|| format!("making {}", options.dir.display()))?;
    let dir = fs::canonicalize(&options.dir).during(|| options.dir.display().to_string())?;
    let load_before = machine::load();
    let disk = Disk::below(&dir);
    let size = options.size();
    let mut bench = Bench { options, size, disk, report: Report::default() };
    bench.file_systems(&dir)?;
    if options.wants(Part::Growth) {
        growth::measure(&mut bench, &dir)?;
    }
    if options.wants(Part::Leases) {
        agents::leases(&mut bench, &dir)?;
    }
    if options.wants(Part::Chores) {
        agents::rounds(&mut bench, &dir)?;
    }
    let load_after = machine::load();
    let report = &bench.report;
    print!("{}", report.table());
    let others = report.others();
    println!(
        "\nOther processes had {:.0} % of the CPU while something was measured; load {load_before} \
         before, {load_after} after.",
        others * 100.0
    );
    if others > 0.10 {
        println!("That is no quiet run: look at ratios, and measure again.");
    }
    let missed = report.missed();
    println!("{missed} goals missed; {:.0} s.", start.elapsed().as_secs_f64());
    let machine = [
        ("kernel", machine::kernel()),
        ("cpus", machine::cpus().to_string()),
        ("file_system", machine::file_system(&dir)),
        ("disk", bench.disk.as_ref().map_or_else(String::new, |disk| disk.name.clone())),
        ("load_before", load_before.to_string()),
        ("load_after", load_after.to_string()),
        ("others", format!("{others:.3}")),
        ("repetitions", bench.size.reps.to_string()),
        ("workfs", version(&options.workfs)),
    ];
    if let Some(path) = &options.json {
        fs::write(path, report.json(&machine)).during(|| format!("{}", path.display()))?;
        println!("All samples: {}", path.display());
    }
    Ok(missed)
}

fn version(program: &Path) -> String {
    let output = Command::new(program).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.unwrap_or_default()
}

/// Says what comes now.
pub fn say(what: &str) {
    eprintln!("scripts/bench: {what}");
}

/// A measurement of one target in one repetition.
type Measure<'m> = &'m dyn Fn(&dyn Target, usize) -> Outcome<Sample>;

impl Bench<'_> {
    /// Each of `targets` in turn, once unmeasured and then in each repetition.
    pub fn turns(
        &mut self,
        test: &str,
        unit: &'static str,
        targets: &[&dyn Target],
        measure: Measure<'_>,
    ) -> Outcome<()> {
        say(test);
        for target in targets {
            self.report.expect(test, &target.label(), unit);
            measure(*target, 0)?;
        }
        for rep in 1..=self.size.reps {
            for turn in 0..targets.len() {
                let target = targets[(rep + turn) % targets.len()];
                let sample = measure(target, rep)?;
                self.report.add(test, &target.label(), unit, sample);
            }
        }
        Ok(())
    }

    /// What is compared with other file systems.
    fn file_systems(&mut self, dir: &Path) -> Outcome<()> {
        let parts = [Part::Claim, Part::Clients, Part::Read, Part::Save, Part::List, Part::Files];
        if !parts.iter().any(|part| self.options.wants(*part)) {
            return Ok(());
        }
        say("filling");
        let file_system = machine::file_system(dir);
        let plain = Plain { root: dir.join("plain"), file_system };
        let below = dir.join("below");
        for root in [&plain.root, &below] {
            task::write_all(&root.join(INBOX), 0, self.size.tasks)?;
            let last = self.size.tasks + self.size.listed;
            task::write_all(&root.join(LISTED), self.size.tasks, last)?;
        }
        let store = |name: &str, label: &str, sync| -> Outcome<Workfs> {
            let mut store = Workfs::new(&self.options.workfs, &dir.join(name), label, sync)?;
            store.import(&plain.root.join("work"), "work")?;
            store.mount(1)?;
            Ok(store)
        };
        let full = store("full", "workfs", "full")?;
        let normal = store("normal", "workfs --sync normal", "normal")?;
        let through = match &self.options.passthrough {
            Some(program) => Some(PassThrough::start(program, &below, &dir.join("through"))?),
            None => None,
        };
        let mut all = FileSystems { plain, through, full, normal };
        for target in all.durable().into_iter().chain([&all.normal as &dyn Target]) {
            ops::make_lanes(target, CLIENTS)?;
        }
        self.one_client(&all.durable(), &all.light())?;
        if self.options.wants(Part::List) {
            self.warm_listings(&all.durable())?;
            self.cold_listings(&mut all)?;
        }
        if self.options.wants(Part::Files) {
            files::measure(self, dir, &all.durable(), &all.full)?;
        }
        if self.options.wants(Part::Clients) {
            all.full.mount(CLIENTS)?;
            ops::make_lanes(&all.full, CLIENTS)?;
            self.clients(&all.durable())?;
        }
        Ok(())
    }

    /// What one client waits for.
    fn one_client(&mut self, durable: &[&dyn Target], light: &[&dyn Target]) -> Outcome<()> {
        let (disk, tasks, ops) = (self.disk.clone(), self.size.tasks, self.size.ops);
        let disk = disk.as_ref();
        let some = |rep: usize| Random(7 + rep as u64).some_below(ops, tasks);
        let label = |targets: &[&dyn Target], nth: usize| targets[nth].label();
        let last = durable.len() - 1;
        let (plain, full, normal) =
            (label(durable, 0), label(durable, last), label(light, light.len() - 1));
        let through = (durable.len() > 2).then(|| label(durable, 1));
        if self.options.wants(Part::Claim) {
            for (test, targets, durable) in [
                ("claim, survives power loss", durable, true),
                ("claim, survives the daemon", light, false),
            ] {
                self.turns(test, "µs", targets, &|target, rep| {
                    let tasks = some(rep);
                    Claims { target, tasks: &tasks, workers: 1, durable }.latency(disk)
                })?;
            }
            self.report.goal("claim, survives power loss", &full, Goal::Ratio(plain.clone(), 1.0));
            if let Some(through) = &through {
                let goal = Goal::Ratio(through.clone(), 2.0);
                self.report.goal("claim, survives the daemon", &normal, goal);
            }
        }
        if self.options.wants(Part::Read) {
            let test = "stat, cached";
            self.turns(test, "µs", durable, &|target, rep| ops::stat(target, &some(rep), disk))?;
            // As fast as there, within what the clock can tell.
            self.report.goal(test, &full, Goal::Ratio(plain, 1.1));
            let test = "cat of a task";
            self.turns(test, "µs", durable, &|target, rep| ops::cat(target, &some(rep), disk))?;
            if let Some(through) = through {
                self.report.goal(test, &full, Goal::Ratio(through, 2.0));
            }
        }
        if self.options.wants(Part::Save) {
            for (test, targets, durable) in [
                ("save, survives power loss", durable, true),
                ("save, survives the daemon", light, false),
            ] {
                self.turns(test, "µs", targets, &|target, rep| {
                    ops::save(target, &some(rep), durable, rep as u64 + 1, disk)
                })?;
            }
        }
        Ok(())
    }

    /// Listings of what the kernel knows already.
    fn warm_listings(&mut self, targets: &[&dyn Target]) -> Outcome<()> {
        let (disk, count) = (self.disk.clone(), self.size.listed);
        let (plain, full) = (targets[0].label(), targets[targets.len() - 1].label());
        let test = format!("ls -l of {count}, warm");
        self.turns(&test, "ms", targets, &|target, _| {
            ops::ls(target, LISTED, count, disk.as_ref())
        })?;
        self.report.goal(&test, &full, Goal::Ratio(plain, 1.5));
        let test = format!("readdir and stat of {count}, warm");
        self.turns(&test, "ms", targets, &|target, _| {
            ops::list(target, LISTED, count, disk.as_ref())
        })
    }

    /// Listings of what nobody knows: mounted anew, and with the kernel's caches dropped.
    fn cold_listings(&mut self, all: &mut FileSystems) -> Outcome<()> {
        let count = self.size.listed;
        let test = format!("ls -l of {count}, cold");
        say(&test);
        if let Err(why) = drop_caches() {
            say(&format!("left out: the kernel's caches cannot be dropped: {why}"));
            return Ok(());
        }
        for target in all.durable() {
            self.report.expect(&test, &target.label(), "ms");
        }
        let count_of_targets = all.durable().len();
        for rep in 0..self.size.reps.min(5) {
            for turn in 0..count_of_targets {
                all.forget()?;
                drop_caches()?;
                // The program itself is not what is cold.
                Command::new("ls")
                    .arg("-l")
                    .arg("/proc/self/fd")
                    .output()
                    .during(|| "ls".into())?;
                let targets = all.durable();
                let target = targets[(rep + turn) % count_of_targets];
                let sample = ops::ls(target, LISTED, count, self.disk.as_ref())?;
                self.report.add(&test, &target.label(), "ms", sample);
            }
        }
        let goal = Goal::Ratio(all.plain.label(), 3.0);
        self.report.goal(&test, &all.full.label(), goal);
        Ok(())
    }

    /// Many clients at once, each through a mount of its own where the target has them.
    fn clients(&mut self, targets: &[&dyn Target]) -> Outcome<()> {
        let (disk, tasks) = (self.disk.clone(), self.size.tasks);
        let test = format!("claims of {CLIENTS} clients, survive power loss");
        let all: Vec<usize> = (0..tasks).collect();
        self.turns(&test, "/s", targets, &|target, _| {
            Claims { target, tasks: &all, workers: CLIENTS, durable: true }.rate(disk.as_ref())
        })?;
        let full = targets[targets.len() - 1].label();
        self.report.goal(&test, &full, Goal::AtLeast(10_000.0));
        Ok(())
    }
}

/// Drops the kernel's caches of what is on disks, as root.
fn drop_caches() -> Outcome<()> {
    if !sys::is_root() {
        return Err("only root may".into());
    }
    let synced = Command::new("sync").status();
    synced.during(|| "sync".into())?;
    fs::write("/proc/sys/vm/drop_caches", "3").during(|| "drop_caches".into())
}
