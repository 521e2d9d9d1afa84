//! What kernels hear of a commit that must be seen whole: a store, its engine and its mounts in this process.

use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use crossbeam_channel::bounded;
use tempfile::TempDir;
use workfs::config::Config;
use workfs::engine::{
    self, Audience, Command, Context, Doors, Effect, Engine, Origin, Stop, Terms, Turn,
};
use workfs::names::{AgentName, FileName};
use workfs::numbers::Ino;
use workfs::store::sqlite::Sqlite;
use workfs::store::{Durability, NodeType};
use workfs::tree::{Hub, Identity, WorkTree};
use workfs_mount::{Mount, MountId, MountOptions, serve};

use crate::harness::{state_of, until_polled};

/// A store that is mounted, by this process.
struct Served {
    hub: Arc<Hub>,
    engine: Engine,
    mounts: Vec<Arc<Mount>>,
    _dirs: Vec<TempDir>,
}

impl Served {
    fn new(mounts: u32) -> Served {
        let dir = tempfile::tempdir().unwrap();
        let (store, writer) = Sqlite::open(&dir.path().join("store.db")).unwrap();
        let (hub, config) = (Hub::new(), Arc::new(Config::default()));
        let audience = Arc::clone(&hub) as Arc<dyn Audience>;
        let (store, sync, doors) = (Arc::new(store), Durability::Process, Doors::default());
        let (engine, _) =
            engine::start(Box::new(writer), store, config, sync, doors, audience).unwrap();
        let tree = WorkTree::new(engine.clone(), Arc::clone(&hub));
        let mut served = Served { hub, engine, mounts: Vec::new(), _dirs: vec![dir] };
        for id in 1..=mounts {
            let dir = tempfile::tempdir().unwrap();
            let id = MountId(id);
            served.hub.introduce(id, Identity::plain(AgentName::new("root").unwrap()));
            let tree = Arc::clone(&tree) as Arc<dyn workfs_mount::Tree>;
            let mount = Arc::new(serve(tree, id, dir.path(), &MountOptions::default()).unwrap());
            served.hub.add_mount(Arc::clone(&mount), None);
            served.mounts.push(mount);
            served._dirs.push(dir);
        }
        served
    }

    /// Whether a mount's kernel asks us where somebody looks at a path; what is there does not matter.
    fn asks(&self, nth: usize, path: &str) -> bool {
        let mount = &self.mounts[nth];
        let before = mount.last_seen_ns();
        // It is told by a clock that stands still for some milliseconds.
        let coarse = || rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
        let begin = coarse();
        while coarse() == begin {
            std::thread::yield_now();
        }
        let _ = std::fs::symlink_metadata(mount.dir().join(path));
        mount.last_seen_ns() != before
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.mounts.iter().for_each(|mount| mount.unmount().unwrap());
    }
}

/// Changes what all files are shown as, together with what must be seen whole.
struct Modes;

impl Command for Modes {
    type Out = ();

    fn operation(&self) -> &'static str {
        "modes"
    }

    fn terms(&self) -> Terms {
        Terms { is_seen_whole: true, ..Terms::USUAL }
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        turn.effect(Effect::Modes);
        Ok(())
    }
}

#[test]
fn other_modes_are_seen_also_where_a_transaction_comes_with_them() {
    let served = Served::new(1);
    std::fs::write(served.mounts[0].dir().join("file"), "x").unwrap();
    served.asks(0, "file");
    assert!(!served.asks(0, "file"), "it keeps what it was told");
    served.engine.run(Context::daemon(), Modes).unwrap();
    assert!(served.asks(0, "file"));
}

#[test]
fn a_name_that_comes_with_a_transaction_is_not_remembered_as_absent() {
    let served = Served::new(2);
    let dir = served.mounts[0].dir().join("dir");
    std::fs::create_dir(&dir).unwrap();
    let parent = Ino(std::fs::metadata(&dir).unwrap().ino());
    let effect = Effect::Appeared {
        parent,
        name: FileName::new("name").unwrap(),
        node_type: NodeType::File,
    };
    std::fs::metadata(served.mounts[1].dir().join("dir")).unwrap();
    // An answer of the first mount is under way, upon which the silence of all waits.
    let under_way = served.mounts[0].silence();
    let hub = Arc::clone(&served.hub);
    let (tell, told) = bounded(1);
    let silent = std::thread::spawn(move || {
        tell.send(rustix::thread::gettid()).unwrap();
        drop(hub.silence(&[(Origin::Daemon, effect)]));
    });
    let thread = format!("self/task/{}", told.recv().unwrap().as_raw_nonzero());
    until_polled("it waits", || (state_of(&thread) == Some('S')).then_some(()));
    // The first look only notes that names there are told of; on kernels that cannot be told none is kept.
    let kept = [served.asks(1, "dir/name"), served.asks(1, "dir/name"), served.asks(1, "dir/name")];
    assert_eq!(kept[..2], [true, true]);
    drop(under_way);
    silent.join().unwrap();
    assert!(served.asks(1, "dir/name"), "{kept:?}");
}
