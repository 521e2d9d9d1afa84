//! A store with its engine and its tree, without a kernel: what the mount calls, called directly.
//!
//! What must stay true: clock and randomness come through the engine's doors and are the same in
//! every run. Deliberately not here: what an answer should be.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread::JoinHandle;

use workfs::config::Config;
use workfs::engine::{self, Doors, Engine};
use workfs::numbers::UnixNanos;
use workfs::store::{Durability, Read, Readers, Result, read, sqlite::Sqlite};
use workfs::tree::{Hub, Identity, WorkTree};
use workfs_mount::Shows;

/// 2025-11-24, and one second more at each look.
const FIRST_MOMENT_NS: i64 = 1_764_000_000_000_000_000;

/// A daemon's inside.
pub struct System {
    running: Option<Running>,
    clock: Arc<AtomicI64>,
    path: PathBuf,
    _dir: tempfile::TempDir,
}

struct Running {
    tree: Arc<WorkTree>,
    hub: Arc<Hub>,
    engine: Engine,
    writer: JoinHandle<()>,
}

impl System {
    /// A new store, in memory where the machine has a file system there: nothing here is about
    /// power loss.
    pub fn new() -> System {
        let memory = std::path::Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let dir = dir.unwrap();
        let path = dir.path().join("store.db");
        let clock = Arc::new(AtomicI64::new(FIRST_MOMENT_NS));
        let mut system = System { running: None, clock, path, _dir: dir };
        system.start();
        system
    }

    /// Ends the daemon's inside and starts it again on the same store.
    pub fn restart(&mut self) {
        self.stop();
        self.start();
    }

    fn start(&mut self) {
        let (store, writer) = Sqlite::open(&self.path).unwrap();
        let readers: Arc<dyn Readers> = Arc::new(store);
        let hub = Hub::new();
        for mount in 1..=32 {
            let maker = workfs::names::AgentName::new("root").unwrap();
            hub.introduce(workfs_mount::MountId(mount), Identity::plain(maker));
        }
        let (engine, thread) = engine::start(
            Box::new(writer),
            readers,
            Arc::new(Config::default()),
            Durability::Process,
            doors(&self.clock),
            Arc::clone(&hub) as Arc<dyn engine::Audience>,
        )
        .unwrap();
        let tree = WorkTree::new(engine.clone(), Arc::clone(&hub));
        self.running = Some(Running { tree, hub, engine, writer: thread });
    }

    fn stop(&mut self) {
        let Some(Running { tree, hub, engine, writer }) = self.running.take() else { return };
        drop((tree, hub));
        drop(engine);
        writer.join().unwrap();
    }

    /// The tree that a mount would serve.
    pub fn tree(&self) -> Arc<WorkTree> {
        Arc::clone(&self.running.as_ref().unwrap().tree)
    }

    /// Has the kernel of a mount ask permission bits.
    pub fn let_ask(&self, mount: u32) {
        let maker = workfs::names::AgentName::new("root").unwrap();
        let asks = Some(Shows { uid: None, gid: None, umask: None });
        let identity = Identity { is_checked: true, asks, ..Identity::plain(maker) };
        let hub = &self.running.as_ref().unwrap().hub;
        hub.introduce(workfs_mount::MountId(mount), identity);
    }

    /// Asks the store itself.
    pub fn read<T>(&self, work: impl FnMut(&dyn Read) -> Result<T>) -> T {
        read(&**self.readers(), work).unwrap()
    }

    /// What is wrong with its file.
    pub fn integrity(&self) -> Vec<String> {
        self.readers().integrity(&mut || true).unwrap().unwrap()
    }

    fn readers(&self) -> &Arc<dyn Readers> {
        self.running.as_ref().unwrap().engine.readers()
    }
}

impl Drop for System {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.stop();
        }
    }
}

fn doors(clock: &Arc<AtomicI64>) -> Doors {
    let clock = Arc::clone(clock);
    let random = AtomicU64::new(1);
    Doors {
        clock: Arc::new(move || UnixNanos(clock.fetch_add(1_000_000_000, Ordering::Relaxed))),
        steady: Arc::new(|| 0),
        boot: "the only one".into(),
        random: Arc::new(move |buffer: &mut [u8]| {
            for chunk in buffer.chunks_mut(8) {
                let next = random.fetch_add(1, Ordering::Relaxed);
                let mixed = next.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
                chunk.copy_from_slice(&mixed[..chunk.len()]);
            }
        }),
        fault: Arc::new(|_| {}),
    }
}
