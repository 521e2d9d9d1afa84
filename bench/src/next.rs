//! `.next` by many agents at once: each takes the best that is ready, whichever that is.

use std::collections::HashSet;
use std::sync::Barrier;
use std::time::Instant;

use crate::fail::{During, Outcome};
use crate::machine::{Disk, Watch};
use crate::ops::{self, INBOX, Sample};
use crate::sys::{Dir, c_name};
use crate::target::Target;

/// Where the best is taken from, below a root.
const READY: &str = "work/ready";

/// One agent's directories.
struct Agent {
    ready: Dir,
    lane: Dir,
    inbox: Dir,
}

/// Claims a second, by `workers` agents of whom each takes `each`; moves all back afterwards.
pub fn rate(
    target: &dyn Target,
    workers: usize,
    each: usize,
    disk: Option<&Disk>,
) -> Outcome<Sample> {
    let roots = target.roots();
    let open = |worker: usize, below: &str| {
        let dir = roots[worker % roots.len()].join(below);
        Dir::open(&dir).during(|| format!("opening {}", dir.display()))
    };
    let agents = (0..workers).map(|worker| {
        let (ready, inbox) = (open(worker, READY)?, open(worker, INBOX)?);
        Ok(Agent { ready, inbox, lane: open(worker, &ops::lane(worker))? })
    });
    let agents = agents.collect::<Outcome<Vec<Agent>>>()?;
    ops::settle();
    let watch = Watch::start(disk, &target.servers());
    let gate = Barrier::new(workers + 1);
    let (taken, took) = std::thread::scope(|scope| {
        let take = |agent: &Agent| take(agent, each, &gate);
        let threads: Vec<_> = agents.iter().map(|agent| scope.spawn(move || take(agent))).collect();
        gate.wait();
        let begin = Instant::now();
        let lost = |_| Err("a worker panicked".to_owned());
        let taken: Vec<_> =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(lost)).collect();
        (taken, begin.elapsed())
    });
    let seen = watch.stop();
    let mut nanos = Vec::with_capacity(workers * each);
    for own in taken {
        nanos.extend(own?);
    }
    put_back(target, &agents, each)?;
    let value = nanos.len() as f64 / took.as_secs_f64();
    Ok(Sample { value, ..Sample::p50_us(&mut nanos, seen) })
}

fn take(agent: &Agent, each: usize, gate: &Barrier) -> Outcome<Vec<u64>> {
    let next = c_name(".next");
    let mut nanos = Vec::with_capacity(each);
    gate.wait();
    for _ in 0..each {
        let start = Instant::now();
        agent.ready.rename(&next, &agent.lane).during(|| "taking .next".into())?;
        nanos.push(start.elapsed().as_nanos() as u64);
    }
    Ok(nanos)
}

/// Each agent has as many as it took, and nobody has another's.
fn put_back(target: &dyn Target, agents: &[Agent], each: usize) -> Outcome<()> {
    let roots = target.roots();
    let mut all = HashSet::new();
    for (worker, agent) in agents.iter().enumerate() {
        let dir = roots[worker % roots.len()].join(ops::lane(worker));
        let names = ops::names(&dir)?.into_iter().filter(|name| !name.starts_with('.'));
        let names: Vec<String> = names.collect();
        if names.len() != each {
            return Err(format!("{} has {} tasks, not {each}", dir.display(), names.len()));
        }
        for name in names {
            let back = agent.lane.rename(&c_name(&name), &agent.inbox);
            back.during(|| format!("moving {name} back"))?;
            if !all.insert(name) {
                return Err(format!("{}: a task was taken twice", dir.display()));
            }
        }
    }
    Ok(())
}
