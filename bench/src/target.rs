//! What is measured: a plain directory, a FUSE pass-through over one, and workfs.
//!
//! What must stay true: what is mounted here is unmounted when its value is dropped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::fail::{During, Outcome};
use crate::machine::is_mount_point;
use crate::sys;

/// How long a mount or a daemon may take to come or go.
const PATIENCE: Duration = Duration::from_secs(20);

/// The agent of worker `w`.
pub fn agent(worker: usize) -> String {
    format!("agent-{worker:02}")
}

/// A tree with `work/` in it that can be measured.
pub trait Target: Sync {
    /// What the table calls it.
    fn label(&self) -> String;
    /// Where the tree is seen; worker `w` uses the `w`th of them, modulo their number.
    fn roots(&self) -> Vec<PathBuf>;
    /// The processes that serve it.
    fn servers(&self) -> Vec<u32>;
    /// Whether a change is as durable as it will be when its call returns; else a durable change
    /// needs fsync(2).
    fn acknowledges(&self) -> bool;
    /// Whether each root is one agent's, who makes his own lane and nobody else's.
    fn has_agents(&self) -> bool {
        false
    }
}

/// An ordinary directory.
pub struct Plain {
    /// It.
    pub root: PathBuf,
    /// Its file system.
    pub file_system: String,
}

impl Target for Plain {
    fn label(&self) -> String {
        self.file_system.clone()
    }
    fn roots(&self) -> Vec<PathBuf> {
        vec![self.root.clone()]
    }
    fn servers(&self) -> Vec<u32> {
        Vec::new()
    }
    fn acknowledges(&self) -> bool {
        false
    }
}

/// `passthrough_ll` of libfuse's examples over an ordinary directory.
pub struct PassThrough {
    program: PathBuf,
    below: PathBuf,
    mount: PathBuf,
    child: Option<Child>,
}

impl PassThrough {
    /// Mounts `below` on `mount`.
    pub fn start(program: &Path, below: &Path, mount: &Path) -> Outcome<PassThrough> {
        let mut started = PassThrough {
            program: program.to_owned(),
            below: below.to_owned(),
            mount: mount.to_owned(),
            child: None,
        };
        started.serve()?;
        Ok(started)
    }

    fn serve(&mut self) -> Outcome<()> {
        fs::create_dir_all(&self.mount).during(|| format!("making {}", self.mount.display()))?;
        let mut command = Command::new(&self.program);
        command.arg("-f").arg("-o").arg(format!("source={}", self.below.display()));
        command.arg(&self.mount).stdin(Stdio::null()).stdout(Stdio::null());
        sys::die_with_parent(&mut command);
        let child = command.spawn().during(|| format!("starting {}", self.program.display()))?;
        self.child = Some(child);
        wait_until("the pass-through is mounted", || is_mount_point(&self.mount))
    }

    /// Ends it and starts it anew: it and the kernel have forgotten everything.
    pub fn forget(&mut self) -> Outcome<()> {
        self.end()?;
        self.serve()
    }

    fn end(&mut self) -> Outcome<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        unmount(&self.mount)?;
        child.wait().during(|| "waiting for the pass-through".into())?;
        Ok(())
    }
}

impl Target for PassThrough {
    fn label(&self) -> String {
        "pass-through".into()
    }
    fn roots(&self) -> Vec<PathBuf> {
        vec![self.mount.clone()]
    }
    fn servers(&self) -> Vec<u32> {
        self.child.iter().map(Child::id).collect()
    }
    fn acknowledges(&self) -> bool {
        false
    }
}

impl Drop for PassThrough {
    fn drop(&mut self) {
        if let Err(failure) = self.end() {
            eprintln!("scripts/bench: {failure}");
        }
    }
}

/// A store of workfs with its mounts.
pub struct Workfs {
    program: PathBuf,
    dir: PathBuf,
    label: String,
    sync: &'static str,
    mounts: usize,
}

impl Workfs {
    /// Makes a store in the directory `dir`, which must not be there; nothing is mounted yet.
    pub fn new(program: &Path, dir: &Path, label: &str, sync: &'static str) -> Outcome<Workfs> {
        Workfs::init(program, dir, label, sync, &["init"])
    }

    /// The same with this layout.
    pub fn with_layout(
        program: &Path,
        dir: &Path,
        label: &str,
        sync: &'static str,
        layout: &Path,
    ) -> Outcome<Workfs> {
        Workfs::init(program, dir, label, sync, &["init", "--layout", &layout.to_string_lossy()])
    }

    fn init(
        program: &Path,
        dir: &Path,
        label: &str,
        sync: &'static str,
        init: &[&str],
    ) -> Outcome<Workfs> {
        fs::create_dir_all(dir).during(|| format!("making {}", dir.display()))?;
        let workfs = Workfs {
            program: program.to_owned(),
            dir: dir.to_owned(),
            label: label.to_owned(),
            sync,
            mounts: 0,
        };
        workfs.run(init)?;
        Ok(workfs)
    }

    fn store(&self) -> PathBuf {
        self.dir.join("team.db")
    }

    fn root(&self, nth: usize) -> PathBuf {
        self.dir.join(format!("mount-{nth:02}"))
    }

    fn run(&self, arguments: &[&str]) -> Outcome<()> {
        let mut command = Command::new(&self.program);
        command.env_remove("WORKFS_AGENT").arg("--quiet");
        command.arg("--store").arg(self.store()).args(arguments);
        let output = command.output().during(|| format!("starting {}", self.program.display()))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let told = String::from_utf8_lossy(&output.stdout);
        Err(format!("workfs {}: {}: {said}{told}", arguments.join(" "), output.status))
    }

    /// Takes a directory in.
    pub fn import(&self, from: &Path, to: &str) -> Outcome<()> {
        self.run(&["import", &from.to_string_lossy(), to])
    }

    /// Mounts until there are `count` mounts; gives how long the last one took to be ready.
    pub fn mount(&mut self, count: usize) -> Outcome<Duration> {
        let mut took = Duration::ZERO;
        while self.mounts < count {
            let root = self.root(self.mounts);
            fs::create_dir_all(&root).during(|| format!("making {}", root.display()))?;
            let agent = agent(self.mounts);
            let start = Instant::now();
            let root = root.to_string_lossy();
            self.run(&["mount", "--sync", self.sync, "--agent", &agent, &root])?;
            took = start.elapsed();
            self.mounts += 1;
        }
        Ok(took)
    }

    /// Unmounts everything; the daemon ends.
    pub fn unmount(&mut self) -> Outcome<()> {
        if std::mem::take(&mut self.mounts) > 0 {
            self.run(&["unmount", "--all"])?;
        }
        Ok(())
    }

    /// Ends the daemon and starts it anew: it and the kernel have forgotten everything.
    pub fn forget(&mut self) -> Outcome<()> {
        let mounts = self.mounts;
        self.unmount()?;
        self.mount(mounts).map(drop)
    }

    /// Goes on with another durability; nothing must be mounted.
    pub fn set_sync(&mut self, sync: &'static str) {
        self.sync = sync;
    }

    /// The daemon.
    pub fn daemon(&self) -> Option<u32> {
        if self.mounts == 0 {
            return None;
        }
        let mut lock = self.store().into_os_string();
        lock.push(".lock");
        fs::read_to_string(lock).ok()?.trim().parse().ok()
    }

    /// How long the store's files are, in bytes.
    pub fn bytes(&self) -> u64 {
        let mut sum = 0;
        for suffix in ["", "-wal"] {
            let mut path = self.store().into_os_string();
            path.push(suffix);
            sum += fs::metadata(path).map_or(0, |metadata| metadata.len());
        }
        sum
    }
}

impl Target for Workfs {
    fn label(&self) -> String {
        self.label.clone()
    }
    fn roots(&self) -> Vec<PathBuf> {
        (0..self.mounts).map(|nth| self.root(nth)).collect()
    }
    fn servers(&self) -> Vec<u32> {
        self.daemon().into_iter().collect()
    }
    fn acknowledges(&self) -> bool {
        true
    }
    fn has_agents(&self) -> bool {
        true
    }
}

impl Drop for Workfs {
    fn drop(&mut self) {
        if let Err(failure) = self.unmount() {
            eprintln!("scripts/bench: {failure}");
        }
    }
}

fn unmount(dir: &Path) -> Outcome<()> {
    let with = |program: &str, flags: &[&str]| {
        let mut command = Command::new(program);
        command.args(flags).arg("--").arg(dir).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    wait_until(&format!("{} is unmounted", dir.display()), || {
        !is_mount_point(dir) || with("fusermount3", &["-u"]) || with("umount", &[])
    })
}

fn wait_until(what: &str, so: impl Fn() -> bool) -> Outcome<()> {
    let start = Instant::now();
    while !so() {
        if start.elapsed() > PATIENCE {
            return Err(format!("waited in vain until {what}"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
