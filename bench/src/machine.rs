//! What the machine is, and what it did meanwhile: flushes of the disk, CPU of others.
//!
//! What must stay true: what cannot be known is `None`, not zero.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::sys;

/// The disk below a directory.
#[derive(Clone, Debug)]
pub struct Disk {
    /// For example `vda`.
    pub name: String,
    stat: PathBuf,
}

impl Disk {
    /// `None` where the file system names no single block device.
    pub fn below(dir: &Path) -> Option<Disk> {
        let (major, minor) = sys::device(&fs::metadata(dir).ok()?);
        let mut device = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
        // Flushes are counted for the whole disk.
        if device.join("partition").exists() {
            device.pop();
        }
        let name = device.file_name()?.to_str()?.to_owned();
        let disk = Disk { name, stat: device.join("stat") };
        disk.flushes().map(|_| disk)
    }

    /// Flushes since the machine started.
    fn flushes(&self) -> Option<u64> {
        let text = fs::read_to_string(&self.stat).ok()?;
        text.split_whitespace().nth(15)?.parse().ok()
    }
}

/// Which file system a directory lies on.
pub fn file_system(dir: &Path) -> String {
    let dir = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let found = text.lines().filter_map(|line| {
        let (place, rest) = line.split_once(" - ")?;
        let at = place.split(' ').nth(4)?;
        dir.starts_with(at).then(|| (at.len(), rest.split(' ').next().unwrap_or("").to_owned()))
    });
    // Of several mounts on one place the last is on top.
    found.max_by_key(|(length, _)| *length).map_or_else(|| "?".to_owned(), |(_, name)| name)
}

/// Whether something is mounted on exactly this directory.
pub fn is_mount_point(dir: &Path) -> bool {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    text.lines().any(|line| line.split(' ').nth(4).is_some_and(|at| Path::new(at) == dir))
}

/// The load of the last minute.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(f64::NAN)
}

/// The kernel's release.
pub fn kernel() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

/// CPUs that may be used.
pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// A line of /proc/PID/status in KiB, such as `VmRSS` or `VmHWM`.
pub fn memory_kib(pid: u32, line: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let rest = text.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(':'))?;
    rest.trim().trim_end_matches("kB").trim().parse().ok()
}

/// Microseconds of CPU that a process has used.
pub fn process_cpu_us(pid: u32) -> u64 {
    cpu_us(&fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default())
}

/// Microseconds of CPU that the thread of this name has used; `None` where there is none.
pub fn thread_cpu_us(pid: u32, name: &str) -> Option<u64> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let mut stats = tasks.flat_map(|task| fs::read_to_string(task.path().join("stat")));
    stats.find(|stat| stat.contains(&format!("({name})"))).map(|stat| cpu_us(&stat))
}

/// Microseconds of CPU that a line of `/proc/PID/stat` tells of.
fn cpu_us(text: &str) -> u64 {
    // The name may contain anything; after its last parenthesis the third field follows.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields = rest.split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<u64>().ok()).sum::<u64>() * 1_000_000
        / sys::ticks_per_second()
}

/// Microseconds of CPU that the whole machine has used.
fn machine_cpu_us() -> u64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let first = text.lines().next().unwrap_or("");
    let ticks: Vec<u64> =
        first.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    // user nice system, then idle and iowait, then irq softirq
    let busy = [0, 1, 2, 5, 6].iter().filter_map(|at| ticks.get(*at)).sum::<u64>();
    busy * 1_000_000 / sys::ticks_per_second()
}

/// Counts while something is measured.
pub struct Watch {
    disk: Option<Disk>,
    servers: Vec<u32>,
    start: Instant,
    flushes: Option<u64>,
    machine_us: u64,
    own_us: u64,
}

/// What happened while something was measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Flushes of the disk, by whomever.
    pub flushes: Option<u64>,
    /// CPU time of the machine that neither we nor the servers used.
    pub others_us: f64,
    /// CPU time that there was.
    pub capacity_us: f64,
}

impl Watch {
    /// Starts counting; `servers` serve the file system that is measured.
    pub fn start(disk: Option<&Disk>, servers: &[u32]) -> Watch {
        Watch {
            disk: disk.cloned(),
            servers: servers.to_vec(),
            machine_us: machine_cpu_us(),
            own_us: used(servers),
            flushes: disk.and_then(Disk::flushes),
            start: Instant::now(),
        }
    }

    /// What was counted.
    pub fn stop(self) -> Seen {
        let passed = self.start.elapsed().as_secs_f64();
        let after = self.disk.as_ref().and_then(Disk::flushes);
        let flushes = after.zip(self.flushes).map(|(after, before)| after - before);
        let own = used(&self.servers).saturating_sub(self.own_us);
        let machine = machine_cpu_us().saturating_sub(self.machine_us);
        Seen {
            flushes,
            others_us: machine as f64 - own as f64,
            capacity_us: passed * 1e6 * cpus() as f64,
        }
    }
}

fn used(servers: &[u32]) -> u64 {
    sys::own_cpu_us() + servers.iter().map(|pid| process_cpu_us(*pid)).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_can_be_read() {
        assert!(load() >= 0.0);
        assert!(machine_cpu_us() > 0);
        let me = std::process::id();
        assert!(memory_kib(me, "VmRSS").unwrap() > 100);
        assert!(is_mount_point(Path::new("/proc")) && !is_mount_point(Path::new("/proc/self")));
        assert_eq!(file_system(Path::new("/proc")), "proc");
        let seen = Watch::start(None, &[me]).stop();
        assert!(seen.flushes.is_none() && seen.capacity_us > 0.0);
    }
}
