//! The operations that are measured. Each verifies what it did: a wrong result ends the run.

use std::collections::HashSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::fail::{During, Outcome};
use crate::machine::{Disk, Seen, Watch};
use crate::stats::percentile_us;
use crate::sys::{self, Dir, c_name};
use crate::target::{Target, agent};
use crate::task;

/// Where tasks wait, below a root.
pub const INBOX: &str = "work/inbox";
/// Where the tasks wait that are listed, below a root.
pub const LISTED: &str = "work/collaboration/inbox";

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The figure, in the unit of its row.
    pub value: f64,
    /// The 99th percentile of the operations, in microseconds, where there are many.
    pub p99_us: Option<f64>,
    /// Operations.
    pub ops: usize,
    /// What the machine did meanwhile.
    pub seen: Seen,
}

impl Sample {
    /// The median latency in microseconds.
    pub fn p50_us(nanos: &mut [u64], seen: Seen) -> Sample {
        Sample {
            value: percentile_us(nanos, 0.5),
            p99_us: Some(percentile_us(nanos, 0.99)),
            ops: nanos.len(),
            seen,
        }
    }

    /// One operation that took so long, in milliseconds.
    pub fn ms(took: Duration, seen: Seen) -> Sample {
        Sample { value: took.as_secs_f64() * 1e3, p99_us: None, ops: 1, seen }
    }

    /// A figure that is no time.
    pub fn figure(value: f64) -> Sample {
        Sample { value, p99_us: None, ops: 0, seen: Seen::default() }
    }
}

/// The directory of worker `w`, below a root.
pub fn lane(worker: usize) -> String {
    format!("work/assigned/{}", agent(worker))
}

fn root_of(roots: &[PathBuf], worker: usize) -> Outcome<&PathBuf> {
    roots.get(worker % roots.len().max(1)).ok_or_else(|| "the target is not mounted".into())
}

/// Makes the directories that workers claim into, as far as it is theirs to make them now.
pub fn make_lanes(target: &dyn Target, workers: usize) -> Outcome<()> {
    let roots = target.roots();
    let workers = if target.has_agents() { workers.min(roots.len()) } else { workers };
    for worker in 0..workers {
        let dir = root_of(&roots, worker)?.join(lane(worker));
        fs::create_dir_all(&dir).during(|| format!("making {}", dir.display()))?;
    }
    Ok(())
}

/// Claims tasks by rename(2), each worker its own share, all at once; moves them back afterwards.
pub struct Claims<'t> {
    /// The target.
    pub target: &'t dyn Target,
    /// Which tasks.
    pub tasks: &'t [usize],
    /// How many workers.
    pub workers: usize,
    /// Whether a claim must survive power loss.
    pub durable: bool,
}

impl Claims<'_> {
    /// The median latency of a claim.
    pub fn latency(&self, disk: Option<&Disk>) -> Outcome<Sample> {
        let (mut nanos, _, seen) = self.run(disk)?;
        Ok(Sample::p50_us(&mut nanos, seen))
    }

    /// Claims a second.
    pub fn rate(&self, disk: Option<&Disk>) -> Outcome<Sample> {
        let (mut nanos, took, seen) = self.run(disk)?;
        let value = nanos.len() as f64 / took.as_secs_f64();
        Ok(Sample { value, ..Sample::p50_us(&mut nanos, seen) })
    }

    fn run(&self, disk: Option<&Disk>) -> Outcome<(Vec<u64>, Duration, Seen)> {
        let flush = self.durable && !self.target.acknowledges();
        settle();
        let watch = Watch::start(disk, &self.target.servers());
        let (nanos, took) = self.all_move(flush, false)?;
        let seen = watch.stop();
        self.verify()?;
        self.all_move(false, true)?;
        if flush {
            // The next turn must not pay for what this one left behind.
            for root in self.target.roots() {
                let dir = root.join(INBOX);
                Dir::open(&dir).and_then(|dir| dir.flush()).during(|| "flushing".into())?;
            }
        }
        Ok((nanos, took, seen))
    }

    fn share(&self, worker: usize) -> impl Iterator<Item = usize> {
        self.tasks.iter().copied().skip(worker).step_by(self.workers)
    }

    /// Every worker moves its share to its lane, or back.
    fn all_move(&self, flush: bool, back: bool) -> Outcome<(Vec<u64>, Duration)> {
        let roots = self.target.roots();
        let gate = Barrier::new(self.workers);
        let (gate, roots) = (&gate, &roots);
        let outcomes: Vec<Outcome<(Vec<u64>, Instant, Instant)>> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.workers)
                .map(|worker| scope.spawn(move || self.one_moves(worker, roots, gate, flush, back)))
                .collect();
            let lost = |_| Err("a worker panicked".to_owned());
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(lost)).collect()
        });
        let mut nanos = Vec::with_capacity(self.tasks.len());
        let mut span: Option<(Instant, Instant)> = None;
        for outcome in outcomes {
            let (own, start, end) = outcome?;
            nanos.extend(own);
            span = Some(span.map_or((start, end), |(s, e)| (s.min(start), e.max(end))));
        }
        let took = span.map_or(Duration::ZERO, |(start, end)| end - start);
        Ok((nanos, took))
    }

    fn one_moves(
        &self,
        worker: usize,
        roots: &[PathBuf],
        gate: &Barrier,
        flush: bool,
        back: bool,
    ) -> Outcome<(Vec<u64>, Instant, Instant)> {
        let prepared = root_of(roots, worker).and_then(|root| {
            let open = |dir: PathBuf| Dir::open(&dir).during(|| format!("{}", dir.display()));
            Ok((open(root.join(INBOX))?, open(root.join(lane(worker)))?))
        });
        // Whoever fails must not let the others wait.
        gate.wait();
        let (inbox, lane) = prepared?;
        let (from, to) = if back { (&lane, &inbox) } else { (&inbox, &lane) };
        let names: Vec<_> = self.share(worker).map(|nth| c_name(&task::name(nth))).collect();
        let mut nanos = Vec::with_capacity(names.len());
        let begin = Instant::now();
        for name in names {
            let start = Instant::now();
            let moved = from.rename(&name, to).and_then(|()| {
                if flush {
                    from.flush()?;
                    to.flush()?;
                }
                Ok(())
            });
            nanos.push(start.elapsed().as_nanos() as u64);
            moved.during(|| format!("moving {name:?} in {}", self.target.label()))?;
        }
        Ok((nanos, begin, Instant::now()))
    }

    /// Every task is in its winner's lane and nowhere else.
    fn verify(&self) -> Outcome<()> {
        let label = self.target.label();
        let roots = self.target.roots();
        for worker in 0..self.workers {
            let root = root_of(&roots, worker)?;
            let dir = root.join(lane(worker));
            let there = names(&dir)?;
            let wanted: HashSet<String> = self.share(worker).map(task::name).collect();
            if there != wanted {
                let (has, should) = (there.len(), wanted.len());
                return Err(format!("{label}: {} has {has} tasks, not {should}", dir.display()));
            }
            let first = self.share(worker).next().map(task::name);
            let Some(path) = first.map(|name| dir.join(name)) else { continue };
            let text = fs::read_to_string(&path).during(|| format!("{}", path.display()))?;
            if self.target.acknowledges() && !text.contains("\nstatus: assigned\n") {
                return Err(format!("{label}: {} is not assigned:\n{text}", path.display()));
            }
        }
        let inbox = inbox(self.target)?;
        for name in self.tasks.iter().map(|nth| c_name(&task::name(*nth))) {
            match inbox.size(&name) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                other => return Err(format!("{label}: {name:?} was claimed; stat: {other:?}")),
            }
        }
        Ok(())
    }
}

/// stat(2) of tasks that the kernel knows, in batches, since one is too short for a clock.
pub fn stat(target: &dyn Target, tasks: &[usize], disk: Option<&Disk>) -> Outcome<Sample> {
    const BATCH: usize = 50;
    let dir = inbox(target)?;
    let names: Vec<_> = tasks.iter().map(|nth| c_name(&task::name(*nth))).collect();
    for name in &names {
        dir.size(name).during(|| format!("stat of {name:?}"))?;
    }
    settle();
    let watch = Watch::start(disk, &target.servers());
    let mut nanos = Vec::new();
    for _ in 0..10 {
        for batch in names.chunks_exact(BATCH) {
            let start = Instant::now();
            for name in batch {
                let size = dir.size(name).during(|| format!("stat of {name:?}"))?;
                if size < task::BYTES_MIN as u64 {
                    return Err(format!("{}: {name:?} has {size} bytes", target.label()));
                }
            }
            nanos.push(start.elapsed().as_nanos() as u64);
        }
    }
    let sample = Sample::p50_us(&mut nanos, watch.stop());
    let each = BATCH as f64;
    let p99_us = sample.p99_us.map(|p99| p99 / each);
    Ok(Sample { value: sample.value / each, p99_us, ops: sample.ops * BATCH, ..sample })
}

/// What cat(1) does: open, read until nothing comes any more, close.
pub fn cat(target: &dyn Target, tasks: &[usize], disk: Option<&Disk>) -> Outcome<Sample> {
    let dir = inbox(target)?;
    let mut buffer = vec![0; 128 << 10];
    settle();
    let watch = Watch::start(disk, &target.servers());
    let mut nanos = Vec::with_capacity(tasks.len());
    for nth in tasks {
        let name = c_name(&task::name(*nth));
        let start = Instant::now();
        let mut read = || -> std::io::Result<usize> {
            let mut file = dir.open_file(&name, libc::O_RDONLY)?;
            let mut length = 0;
            loop {
                let more = file.read(&mut buffer[length..])?;
                length += more;
                if more == 0 {
                    sys::close(file)?;
                    return Ok(length);
                }
            }
        };
        let length = read().during(|| format!("reading {name:?}"))?;
        nanos.push(start.elapsed().as_nanos() as u64);
        let text = &buffer[..length];
        let id = format!("\nid: {}\n", task::id(*nth));
        let is_whole = length >= task::BYTES_MIN
            && text.ends_with(b"\n")
            && text.windows(id.len()).any(|part| part == id.as_bytes());
        if !is_whole {
            return Err(format!("{}: {name:?} is torn: {length} bytes", target.label()));
        }
    }
    Ok(Sample::p50_us(&mut nanos, watch.stop()))
}

/// What `>` does: open with truncation, write, (fsync,) close.
pub fn save(
    target: &dyn Target,
    tasks: &[usize],
    durable: bool,
    progress: u64,
    disk: Option<&Disk>,
) -> Outcome<Sample> {
    let dir = inbox(target)?;
    let flush = durable && !target.acknowledges();
    // Whoever saves a task has read it; a save from an older version would be refused.
    for nth in tasks {
        let path = root_of(&target.roots(), 0)?.join(INBOX).join(task::name(*nth));
        fs::read(&path).during(|| format!("{}", path.display()))?;
    }
    settle();
    let watch = Watch::start(disk, &target.servers());
    let mut nanos = Vec::with_capacity(tasks.len());
    for nth in tasks {
        let name = c_name(&task::name(*nth));
        let text = task::text(*nth, progress);
        let start = Instant::now();
        let write = || -> std::io::Result<()> {
            let mut file = dir.open_file(&name, libc::O_WRONLY | libc::O_TRUNC)?;
            file.write_all(text.as_bytes())?;
            if flush {
                file.sync_all()?;
            }
            sys::close(file)
        };
        write().during(|| format!("saving {name:?} in {}", target.label()))?;
        nanos.push(start.elapsed().as_nanos() as u64);
    }
    let seen = watch.stop();
    let root = target.roots();
    for nth in tasks {
        let path = root_of(&root, 0)?.join(INBOX).join(task::name(*nth));
        let text = fs::read_to_string(&path).during(|| format!("{}", path.display()))?;
        if text != task::text(*nth, progress) {
            return Err(format!("{}: {} is not what was saved", target.label(), path.display()));
        }
    }
    Ok(Sample::p50_us(&mut nanos, seen))
}

/// `ls -l`, the program.
pub fn ls(target: &dyn Target, dir: &str, count: usize, disk: Option<&Disk>) -> Outcome<Sample> {
    let path = root_of(&target.roots(), 0)?.join(dir);
    settle();
    let watch = Watch::start(disk, &target.servers());
    let start = Instant::now();
    let output = Command::new("ls")
        .arg("-l")
        .arg(&path)
        .env("LC_ALL", "C")
        .stderr(Stdio::inherit())
        .output()
        .during(|| "ls -l".into())?;
    let took = start.elapsed();
    let lines = output.stdout.iter().filter(|byte| **byte == b'\n').count();
    // The first line is the total.
    if !output.status.success() || lines != count + 1 {
        return Err(format!("{}: ls -l listed {lines} lines of {count}", target.label()));
    }
    Ok(Sample::ms(took, watch.stop()))
}

/// readdir(3) and stat(2) of each, in this process.
pub fn list(target: &dyn Target, dir: &str, count: usize, disk: Option<&Disk>) -> Outcome<Sample> {
    let path = root_of(&target.roots(), 0)?.join(dir);
    settle();
    let watch = Watch::start(disk, &target.servers());
    let start = Instant::now();
    let mut listed = 0;
    for entry in fs::read_dir(&path).during(|| format!("listing {}", path.display()))? {
        let metadata = entry.and_then(|entry| entry.metadata());
        let length = metadata.during(|| format!("listing {}", path.display()))?.len();
        listed += usize::from(length >= task::BYTES_MIN as u64);
    }
    let took = start.elapsed();
    if listed != count {
        return Err(format!("{}: {listed} whole tasks of {count} listed", target.label()));
    }
    Ok(Sample::ms(took, watch.stop()))
}

fn inbox(target: &dyn Target) -> Outcome<Dir> {
    let path = root_of(&target.roots(), 0)?.join(INBOX);
    Dir::open(&path).during(|| format!("opening {}", path.display()))
}

/// The names in a directory, each of which is listed once.
pub fn names(dir: &Path) -> Outcome<HashSet<String>> {
    let mut names = HashSet::new();
    for entry in fs::read_dir(dir).during(|| format!("listing {}", dir.display()))? {
        let name = entry.during(|| format!("listing {}", dir.display()))?.file_name();
        if !names.insert(name.to_string_lossy().into_owned()) {
            return Err(format!("{} lists {name:?} twice", dir.display()));
        }
    }
    Ok(names)
}

/// What the turn before left running (write-back, a checkpoint) has a moment to end.
pub fn settle() {
    std::thread::sleep(Duration::from_millis(100));
}
