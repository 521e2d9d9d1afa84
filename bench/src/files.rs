//! Plain files: small saves, one big file, a clone of a repository, a directory with many names.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use crate::fail::{During, Outcome};
use crate::machine::{self, Disk, Watch};
use crate::ops::{Sample, settle};
use crate::report::Goal;
use crate::sys;
use crate::target::{Target, Workfs};
use crate::{Bench, say};

/// Where no rule counts, below a root.
const PLAIN: &str = "files";
/// Where each save is an event and a version.
const KEPT: &str = "scratchpad/documents";
/// What a program that reads or writes a big file hands over at once.
const BLOCK: usize = 1 << 20;
/// Files of a directory of the source tree.
const FILES_OF_A_DIR: usize = 20;
/// The word that is looked for, in each tenth file.
const NEEDLE: &str = "needle_in_a_haystack";

/// How much is measured.
pub struct Much {
    /// Bytes of the big file.
    pub big: usize,
    /// Files of the repository.
    pub files: usize,
    /// Names of the directory that is listed.
    pub names: usize,
}

/// Measures all of it; workfs is the last of `targets`.
pub fn measure(
    bench: &mut Bench<'_>,
    dir: &Path,
    targets: &[&dyn Target],
    workfs: &Workfs,
) -> Outcome<()> {
    for target in targets {
        for sub in [PLAIN, KEPT] {
            let dir = root(*target)?.join(sub);
            fs::create_dir_all(&dir).during(|| format!("making {}", dir.display()))?;
        }
    }
    small(bench, targets)?;
    big(bench, targets)?;
    repository(bench, dir, targets)?;
    names(bench, targets, workfs)
}

/// Write to a temporary name, fsync, rename over.
fn small(bench: &mut Bench<'_>, targets: &[&dyn Target]) -> Outcome<()> {
    let (disk, ops) = (bench.disk.clone(), bench.size.ops);
    let save = |target: &dyn Target, rep: usize, sub: &str| -> Outcome<Sample> {
        let dir = root(target)?.join(sub);
        settle();
        let watch = Watch::start(disk.as_ref(), &target.servers());
        let mut nanos = Vec::with_capacity(ops);
        for op in 0..ops {
            let content = vec![b'a' + ((rep + op) % 26) as u8; 4096];
            let (temp, name) = (dir.join("doc.tmp"), dir.join(format!("doc-{:02}", op % 50)));
            let start = Instant::now();
            let write = || -> std::io::Result<()> {
                let mut file = File::create(&temp)?;
                file.write_all(&content)?;
                file.sync_all()?;
                sys::close(file)?;
                fs::rename(&temp, &name)
            };
            write().during(|| format!("saving {}", name.display()))?;
            nanos.push(start.elapsed().as_nanos() as u64);
            if fs::read(&name).is_ok_and(|read| read != content) {
                return Err(format!("{} is not what was saved", name.display()));
            }
        }
        Ok(Sample::p50_us(&mut nanos, watch.stop()))
    };
    let full = targets[targets.len() - 1].label();
    for (test, sub) in
        [("small save (4 KiB, fsync, rename)", PLAIN), ("small save, kept as a version", KEPT)]
    {
        bench.turns(test, "µs", targets, &|target, rep| save(target, rep, sub))?;
        if targets.len() > 2 {
            bench.report.goal(test, &full, Goal::Ratio(targets[1].label(), 1.0));
        }
    }
    Ok(())
}

/// One big file, written anew and read from the kernel's cache.
fn big(bench: &mut Bench<'_>, targets: &[&dyn Target]) -> Outcome<()> {
    let (disk, bytes) = (bench.disk.clone(), bench.size.much.big);
    let mib = bytes >> 20;
    let plain = targets[0].label();
    let full = targets[targets.len() - 1].label();
    for (test, flush) in
        [(format!("write of {mib} MiB"), false), (format!("write of {mib} MiB, fsync"), true)]
    {
        bench.turns(&test, "ms", targets, &|target, rep| {
            write_big(target, bytes, rep, flush, disk.as_ref())
        })?;
        bench.report.goal(&test, &full, Goal::Ratio(plain.clone(), 3.33));
    }
    let test = format!("read of {mib} MiB, cached");
    bench.turns(&test, "ms", targets, &|target, _| read_big(target, bytes, disk.as_ref()))?;
    bench.report.goal(&test, &full, Goal::Ratio(plain, 1.25));
    for target in targets {
        let path = root(*target)?.join(PLAIN).join("big");
        fs::remove_file(&path).during(|| path.display().to_string())?;
    }
    Ok(())
}

fn write_big(
    target: &dyn Target,
    bytes: usize,
    rep: usize,
    flush: bool,
    disk: Option<&Disk>,
) -> Outcome<Sample> {
    let path = root(target)?.join(PLAIN).join("big");
    let block = vec![rep as u8; BLOCK];
    // Whatever was there is not what is measured.
    if path.exists() {
        fs::remove_file(&path).during(|| path.display().to_string())?;
    }
    sync()?;
    settle();
    let watch = Watch::start(disk, &target.servers());
    let start = Instant::now();
    let write = || -> std::io::Result<()> {
        let mut file = File::create(&path)?;
        for _ in 0..bytes / BLOCK {
            file.write_all(&block)?;
        }
        if flush {
            file.sync_all()?;
        }
        sys::close(file)
    };
    write().during(|| format!("writing {}", path.display()))?;
    let sample = Sample::ms(start.elapsed(), watch.stop());
    sync()?;
    Ok(sample)
}

fn read_big(target: &dyn Target, bytes: usize, disk: Option<&Disk>) -> Outcome<Sample> {
    let path = root(target)?.join(PLAIN).join("big");
    let mut block = vec![0; BLOCK];
    settle();
    let watch = Watch::start(disk, &target.servers());
    let start = Instant::now();
    let mut read = || -> std::io::Result<usize> {
        let mut file = File::open(&path)?;
        let mut all = 0;
        loop {
            match file.read(&mut block)? {
                0 => return Ok(all),
                more => all += more,
            }
        }
    };
    let all = read().during(|| format!("reading {}", path.display()))?;
    let took = start.elapsed();
    if all != bytes {
        return Err(format!("{} gave {all} bytes of {bytes}", path.display()));
    }
    Ok(Sample::ms(took, watch.stop()))
}

/// What people do with a repository.
fn repository(bench: &mut Bench<'_>, dir: &Path, targets: &[&dyn Target]) -> Outcome<()> {
    let (disk, files) = (bench.disk.clone(), bench.size.much.files);
    let disk = disk.as_ref();
    for program in ["git", "tar"] {
        if Command::new(program).arg("--version").output().is_err() {
            say(&format!("left out: there is no {program}"));
            return Ok(());
        }
    }
    let (source, archive) = (dir.join("source"), dir.join("source.tar"));
    make_source(&source, &archive, files)?;
    for target in targets {
        let clone = root(*target)?.join(PLAIN).join("clone");
        let (from, to) = (source.display().to_string(), clone.display().to_string());
        ran(git(dir).args(["clone", "--quiet", "--no-hardlinks", &from, &to]))?;
    }
    let plain = targets[0].label();
    let full = targets[targets.len() - 1].label();
    let clone = |target: &dyn Target| Ok::<_, String>(root(target)?.join(PLAIN).join("clone"));

    let test = format!("git status of {files}, warm");
    bench.turns(&test, "ms", targets, &|target, _| {
        let (said, sample) =
            timed(git(&clone(target)?).args(["status", "--porcelain"]), target, disk)?;
        if said.stdout.is_empty() { Ok(sample) } else { Err("git status sees changes".into()) }
    })?;
    bench.report.goal(&test, &full, Goal::Ratio(plain.clone(), 3.0));

    if Command::new("rg").arg("--version").output().is_ok() {
        let test = format!("rg over {files}, warm");
        bench.turns(&test, "ms", targets, &|target, _| {
            let mut rg = Command::new("rg");
            rg.args(["--files-with-matches", NEEDLE]).arg(clone(target)?);
            let (said, sample) = timed(&mut rg, target, disk)?;
            let found = said.stdout.iter().filter(|byte| **byte == b'\n').count();
            let there = files.div_ceil(10);
            if found == there { Ok(sample) } else { Err(format!("rg found {found} of {there}")) }
        })?;
        bench.report.goal(&test, &full, Goal::Ratio(plain.clone(), 1.5));
    } else {
        say("left out: there is no rg");
    }

    let test = format!("tar x of {files}");
    bench.turns(&test, "ms", targets, &|target, _| {
        let to = root(target)?.join(PLAIN).join("unpacked");
        fs::create_dir(&to).during(|| to.display().to_string())?;
        let (_, sample) =
            timed(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&to), target, disk)?;
        fs::remove_dir_all(&to).during(|| to.display().to_string())?;
        Ok(sample)
    })?;
    bench.report.goal(&test, &full, Goal::Ratio(plain, 5.0));
    Ok(())
}

/// A tree like a program's source, committed and packed.
fn make_source(source: &Path, archive: &Path, files: usize) -> Outcome<()> {
    for file in 0..files {
        let dir = source.join(format!("part-{:03}", file / FILES_OF_A_DIR));
        fs::create_dir_all(&dir).during(|| dir.display().to_string())?;
        let lines = 20 + file * 7 % 400;
        let mut text: String =
            (0..lines).map(|n| format!("let line_{n} = {};\n", n * file)).collect();
        if file % 10 == 0 {
            text.push_str(NEEDLE);
        }
        let path = dir.join(format!("file_{file:05}.rs"));
        fs::write(&path, text).during(|| path.display().to_string())?;
    }
    ran(Command::new("tar").arg("-cf").arg(archive).arg("-C").arg(source).arg("."))?;
    ran(git(source).args(["init", "--quiet"]))?;
    ran(git(source).args(["add", "."]))?;
    ran(git(source).args(["commit", "--quiet", "--message", "all"])).map(drop)
}

/// git, whatever the user's configuration says.
fn git(dir: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for role in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{role}_NAME"), "bench")
            .env(format!("GIT_{role}_EMAIL"), "bench@local");
    }
    git
}

/// Names of one directory, without looking at what they stand for.
fn names(bench: &mut Bench<'_>, targets: &[&dyn Target], workfs: &Workfs) -> Outcome<()> {
    let (disk, count) = (bench.disk.clone(), bench.size.much.names);
    // The pass-through has a descriptor open for each name that it was asked for: not so many.
    let targets = [targets[0], targets[targets.len() - 1]];
    let test = format!("readdir of {count}");
    for target in targets {
        let dir = root(target)?.join(PLAIN).join("many");
        fs::create_dir(&dir).during(|| dir.display().to_string())?;
        for name in 0..count {
            let path = dir.join(format!("name-{name:07}"));
            File::create(&path).during(|| path.display().to_string())?;
        }
    }
    bench.turns(&test, "ms", &targets, &|target, _| {
        let dir = root(target)?.join(PLAIN).join("many");
        settle();
        let watch = Watch::start(disk.as_ref(), &target.servers());
        let start = Instant::now();
        let listed = fs::read_dir(&dir).during(|| dir.display().to_string())?.flatten().count();
        let took = start.elapsed();
        if listed != count {
            return Err(format!("{} lists {listed} names of {count}", dir.display()));
        }
        Ok(Sample::ms(took, watch.stop()))
    })?;
    let label = targets[1].label();
    bench.report.goal(&test, &label, Goal::Ratio(targets[0].label(), 3.0));
    let kib = workfs.daemon().and_then(|pid| machine::memory_kib(pid, "VmRSS"));
    let kib = kib.ok_or("the daemon's memory cannot be read")?;
    let test = "memory of the daemon, after readdir";
    bench.report.add(test, &label, "MiB", Sample::figure(kib as f64 / 1024.0));
    bench.report.goal(test, &label, Goal::AtMost(64.0));
    Ok(())
}

fn root(target: &dyn Target) -> Outcome<PathBuf> {
    target.roots().into_iter().next().ok_or_else(|| "the target is not mounted".into())
}

fn ran(command: &mut Command) -> Outcome<Output> {
    let output = command.stdin(Stdio::null()).output().during(|| format!("{command:?}"))?;
    if output.status.success() {
        return Ok(output);
    }
    Err(format!("{command:?}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
}

fn timed(
    command: &mut Command,
    target: &dyn Target,
    disk: Option<&Disk>,
) -> Outcome<(Output, Sample)> {
    settle();
    let watch = Watch::start(disk, &target.servers());
    let start = Instant::now();
    let output = ran(command)?;
    Ok((output, Sample::ms(start.elapsed(), watch.stop())))
}

/// What one target has left to be written is not written in the other's turn.
fn sync() -> Outcome<()> {
    Command::new("sync").status().map(drop).during(|| "sync".into())
}
