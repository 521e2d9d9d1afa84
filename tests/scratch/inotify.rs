//! Unmodified watchers: inotify through one mount hears of what is done through another.

use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

use crate::harness::{Fixture, Setup, Task, save};

struct Watch {
    queue: OwnedFd,
}

impl Watch {
    fn of(path: &Path) -> Watch {
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        let flags = WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_TO
            | WatchFlags::CLOSE_WRITE;
        inotify::add_watch(&queue, path, flags).unwrap();
        Watch { queue }
    }

    /// Waits until there is an event for this name (of the watched thing itself: an empty one).
    fn hears(&self, name: &str, within: Duration) -> bool {
        let until = Instant::now() + within;
        let mut heard = BTreeSet::new();
        while !heard.contains(name) {
            let left = until.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).unwrap();
            let mut fds = [PollFd::new(&self.queue, PollFlags::IN)];
            if poll(&mut fds, Some(&timeout)).unwrap() == 0 {
                return false;
            }
            let mut buffer = [MaybeUninit::uninit(); 4096];
            let mut reader = Reader::new(&self.queue, &mut buffer);
            while let Ok(event) = reader.next() {
                assert!(!event.events().contains(ReadFlags::QUEUE_OVERFLOW));
                let name = event.file_name().map(|name| name.to_string_lossy().into_owned());
                heard.insert(name.unwrap_or_default());
            }
        }
        true
    }
}

const SOON: Duration = Duration::from_secs(5);

fn two() -> Fixture {
    let fixture = Setup::default().mounts(2).start();
    fixture.sh("mkdir -p scratchpad other; echo 0 > scratchpad/known").success();
    fixture
}

// P11.8
#[test]
fn what_is_done_through_one_mount_is_heard_in_the_other() {
    let fixture = two();
    let watch = Watch::of(&fixture.mount(1).join("scratchpad"));
    fixture.sh("echo x > scratchpad/new").success();
    assert!(watch.hears("new", SOON), "a new file");
    fixture.sh("echo y >> scratchpad/known").success();
    assert!(watch.hears("known", SOON), "a write");
    fixture.sh("echo z > scratchpad/t.tmp; mv scratchpad/t.tmp scratchpad/moved").success();
    assert!(watch.hears("moved", SOON), "a rename");
    fixture.sh("rm scratchpad/moved").success();
    assert!(watch.hears("", SOON), "of what is gone its directory tells");
    let before = std::fs::metadata(fixture.path("scratchpad/known")).unwrap();
    fixture.sh("chmod 600 scratchpad/known").success();
    assert!(watch.hears("known", SOON), "attributes");
    let after = std::fs::metadata(fixture.mount(1).join("scratchpad/known")).unwrap();
    assert_eq!(before.modified().unwrap(), after.modified().unwrap(), "nothing is changed by it");

    // While others watch already, a new watcher is noticed within half a second.
    let file = Watch::of(&fixture.mount(1).join("scratchpad/known"));
    crate::harness::until_polled("the file itself is watched", || {
        fixture.sh("echo y >> scratchpad/known").success();
        file.hears("", Duration::from_millis(100)).then_some(())
    });
    // Elsewhere nobody watches.
    fixture.sh("echo y > other/f").success();
    assert!(!watch.hears("f", Duration::from_millis(300)));
    fixture.fsck_clean();
}

// P11.8
#[test]
fn what_is_done_at_the_socket_is_heard_in_every_mount() {
    let fixture = two();
    let watches = [0, 1].map(|nth| Watch::of(&fixture.mount(nth).join("scratchpad")));
    let g = fixture.ledger().last_g().to_string();
    fixture.sh("echo 1 > scratchpad/known").success();
    for watch in &watches {
        assert!(watch.hears("known", SOON));
    }
    while watches[0].hears("known", Duration::from_millis(200)) {}
    fixture.workfs(&["restore", "scratchpad/known", "--at", &g]).success();
    for watch in &watches {
        assert!(watch.hears("known", SOON));
    }
}

// P11.8 P6.4
#[test]
fn a_daemon_that_is_killed_while_it_tells_leaves_nobody_hanging() {
    let fixture = two();
    for _ in 0..5 {
        let watch = Watch::of(&fixture.mount(1).join("scratchpad"));
        fixture.sh("echo x > scratchpad/known").success();
        assert!(watch.hears("known", SOON), "before it is killed");
        let writer = std::thread::scope(|scope| {
            let root = fixture.root();
            let writing = scope.spawn(move || {
                let mut written = 0;
                while std::fs::write(root.join("scratchpad/known"), written.to_string()).is_ok() {
                    written += 1;
                }
                written
            });
            assert!(watch.hears("known", SOON));
            fixture.kill_daemon();
            writing.join().unwrap()
        });
        println!("{writer} writes before the end");
        drop(watch);
        fixture.mount_all();
    }
    fixture.fsck_clean();
}

// P11.8
#[test]
fn who_watches_ready_hears_in_every_mount_that_something_is_ready() {
    let fixture = Setup::default().mounts(2).start();
    let watches = [0, 1].map(|nth| Watch::of(&fixture.mount(nth).join("work/ready")));
    for (nth, name) in ["t-1", "t-2"].into_iter().enumerate() {
        // Through one mount, then through the other.
        let task = Task::new(name);
        let path = fixture.mount(nth).join("work/inbox").join(task.file());
        save(&path, task.text().as_bytes()).unwrap();
        for (mount, watch) in watches.iter().enumerate() {
            assert!(watch.hears("", SOON), "{name} in mount {mount}");
        }
    }
    fixture.fsck_clean();
}
