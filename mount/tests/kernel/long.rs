//! What takes long keeps nobody else waiting.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::Duration;

use crossbeam_channel::RecvTimeoutError;
use workfs_mount::{Ino, Invalidation, NodeType, ROOT};

use crate::support::{PATIENCE, Served, until};

/// A mount with a directory and a file beside it, one of which is slow, and the number of the other.
fn served(slow: &str, other: &str) -> (Served, Ino) {
    let served = Served::new();
    {
        let mut state = served.tree.state();
        let mut make = |parent, name: &str, node_type| {
            let ino = state.make(parent, node_type, 0o755);
            state.put(parent, name.as_bytes(), ino);
            ino
        };
        let dir = make(ROOT, "dir", NodeType::Directory);
        for (parent, name) in [(dir, "x"), (dir, "y"), (ROOT, "a")] {
            make(parent, name, NodeType::File);
        }
    }
    // The kernel knows these two.
    let ino = |name: &str| Ino(fs::metadata(served.path(name)).unwrap().ino());
    let (slow, other) = (ino(slow), ino(other));
    *served.tree.slow.ino.lock() = Some(slow);
    (served, other)
}

impl Served {
    /// That it answers, and its kernel forgets, while something takes long.
    fn is_alive(&self, other: Ino, name: &str) {
        fs::write(self.path("b"), "x").unwrap();
        self.tree.state().resize(other, 77).unwrap();
        self.mount.invalidate([&Invalidation::Attr(other)]);
        assert_eq!(fs::metadata(self.path(name)).unwrap().len(), 77);
        drop(self.mount.silence());
    }
}

#[test]
fn while_a_look_into_a_directory_takes_long_the_mount_answers_and_its_kernel_forgets() {
    let (served, file) = served("dir", "a");
    let slow = &served.tree.slow;
    thread::scope(|scope| {
        let list = || fs::read_dir(served.path("dir")).unwrap().count();
        let lists = [(); 3].map(|()| scope.spawn(list));
        let looks = ["x", "y"].map(|name| {
            let path = served.path("dir").join(name);
            scope.spawn(move || path.metadata().unwrap().len())
        });
        // As many as are answered at once.
        (0..2).for_each(|_| slow.looks.recv_timeout(PATIENCE).unwrap());
        served.is_alive(file, "a");
        assert!(lists.iter().all(|list| !list.is_finished()));
        assert!(looks.iter().all(|look| !look.is_finished()));
        // A listing asks twice, the second time for what comes after the last.
        (0..3 * 2 + 2).for_each(|_| slow.allow.send(()).unwrap());
        assert!(lists.into_iter().all(|list| list.join().unwrap() == 2));
        assert!(looks.into_iter().all(|look| look.join().unwrap() == 0));
    });
}

#[test]
fn while_a_look_at_a_file_takes_long_the_mount_answers_and_its_kernel_forgets() {
    let (served, dir) = served("a", "dir");
    let slow = &served.tree.slow;
    let file = slow.ino.lock().unwrap();
    served.mount.invalidate([&Invalidation::Attr(file)]);
    thread::scope(|scope| {
        let looks = scope.spawn(|| served.path("a").metadata().unwrap().len());
        slow.looks.recv_timeout(PATIENCE).unwrap();
        let reads = scope.spawn(|| File::open(served.path("a")).is_ok());
        slow.looks.recv_timeout(PATIENCE).unwrap();
        served.is_alive(dir, "dir");
        assert!(!looks.is_finished() && !reads.is_finished());
        (0..2).for_each(|_| slow.allow.send(()).unwrap());
        assert!(looks.join().unwrap() == 0 && reads.join().unwrap());
    });
}

#[test]
fn a_session_ends_when_a_look_that_takes_long_does_and_leaves_no_thread() {
    let (served, _) = served("dir", "a");
    let slow = &served.tree.slow;
    thread::scope(|scope| {
        let looks = scope.spawn(|| served.path("dir/x").metadata().map(|found| found.len()));
        slow.looks.recv_timeout(PATIENCE).unwrap();
        let ended = served.mount.ended();
        let cut = scope.spawn(|| served.mount.cut_off());
        // Who waits for the answer hears of the end at once.
        assert_eq!(looks.join().unwrap().unwrap_err().raw_os_error(), Some(libc::ECONNABORTED));
        // Without waiting for its tree's answer it ends in less than a millisecond.
        assert_eq!(ended.recv_timeout(Duration::from_millis(50)), Err(RecvTimeoutError::Timeout));
        slow.allow.send(()).unwrap();
        cut.join().unwrap().unwrap();
    });
    until("the session has ended", || served.mount.has_ended());
}
