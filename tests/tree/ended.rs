//! What a mount has asked for that ends: a store and its engine in this process, and no kernel.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::bounded;
use workfs::config::Config;
use workfs::engine::{self, Audience, Doors};
use workfs::names::AgentName;
use workfs::store::Durability;
use workfs::store::sqlite::Sqlite;
use workfs::tree::{Hub, Identity, WorkTree};
use workfs_mount::{Caller, MountId, OpenFlags, ROOT, Reply, Tree};

// P7.1
#[test]
fn what_a_mount_opens_that_has_ended_stays_open_for_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let (store, writer) = Sqlite::open(&dir.path().join("store.db")).unwrap();
    let (hub, config) = (Hub::new(), Arc::new(Config::default()));
    let audience = Arc::clone(&hub) as Arc<dyn Audience>;
    let (store, doors) = (Arc::new(store), Doors::default());
    let (engine, _) =
        engine::start(Box::new(writer), store, config, Durability::Process, doors, audience)
            .unwrap();
    let tree = WorkTree::new(engine, Arc::clone(&hub));
    let ends = MountId(1);
    hub.introduce(ends, Identity::plain(AgentName::new("root").unwrap()));
    let by = |mount| Caller { mount, uid: 0, gid: 0, pid: 0, files: None, nonblocking: false };
    let make = |name: &str| {
        let (send, answer) = bounded(1);
        let reply = Reply::new(move |made| send.send(made).unwrap());
        let flags = OpenFlags { write: true, ..OpenFlags::default() };
        tree.create(&by(ends), ROOT, OsStr::new(name), 0o644, flags, reply);
        answer.recv_timeout(Duration::from_secs(20)).unwrap().map(|(entry, _)| entry.attr.ino)
    };
    let before = make("before").unwrap();
    assert!(!hub.is_closed(before));
    tree.end_mount(ends);
    assert!(hub.is_closed(before));
    // It was asked for before, and is made now.
    let between = make("between").unwrap();
    hub.remove_mount(ends);
    tree.end_mount(ends);
    assert!(hub.is_closed(between));
    let (send, answer) = bounded(1);
    let reply = Reply::new(move |opened| send.send(opened.map(|_| ())).unwrap());
    let flags = OpenFlags { read: true, ..OpenFlags::default() };
    tree.open(&by(ends), between, flags, reply);
    let opened = answer.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(opened.is_err(), "nobody would close it");
    assert!(hub.is_closed(between));
}
