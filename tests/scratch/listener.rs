//! Somebody who watches by inotify, and what it hears.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags as Heard, Reader, WatchFlags};

use crate::harness::Fixture;

/// A file that only shows whether its directory's watcher is noticed.
pub const PROBE: &str = "probe";

pub const SOON: Duration = Duration::from_secs(60);

/// One event: what, of which name (none: of the watched thing itself), and what it belongs to.
#[derive(Clone, Debug)]
pub struct Event {
    pub what: Heard,
    pub name: String,
    pub cookie: u32,
}

pub struct Watch {
    queue: OwnedFd,
    heard: VecDeque<Event>,
}

impl Watch {
    pub fn of(path: &Path) -> Watch {
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        let mut watch = Watch { queue, heard: VecDeque::new() };
        watch.also(path);
        watch
    }

    pub fn also(&mut self, path: &Path) {
        let flags = WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE
            | WatchFlags::CLOSE_WRITE;
        inotify::add_watch(&self.queue, path, flags).unwrap();
    }

    /// Watches a directory of the second mount, and waits until the daemon knows of it.
    pub fn noticed(fixture: &Fixture, dir: &str) -> Watch {
        let mut watch = Watch::of(&fixture.mount(1).join(dir));
        crate::harness::until_polled("the watcher is noticed", || {
            fixture.sh(&format!("touch {dir}/{PROBE}")).success();
            watch.hears(PROBE, Duration::from_millis(100)).then_some(())
        });
        watch
    }

    /// The next event that comes in this time.
    pub fn next(&mut self, within: Duration) -> Option<Event> {
        let until = Instant::now() + within;
        while self.heard.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).unwrap();
            let mut fds = [PollFd::new(&self.queue, PollFlags::IN)];
            if poll(&mut fds, Some(&timeout)).unwrap() == 0 {
                return None;
            }
            let mut buffer = [MaybeUninit::uninit(); 4096];
            let mut reader = Reader::new(&self.queue, &mut buffer);
            while let Ok(event) = reader.next() {
                assert!(!event.events().contains(Heard::QUEUE_OVERFLOW));
                let name = event.file_name().map(|name| name.to_string_lossy().into_owned());
                let (what, name) = (event.events(), name.unwrap_or_default());
                self.heard.push_back(Event { what, name, cookie: event.cookie() });
            }
        }
        self.heard.pop_front()
    }

    /// Waits until there is an event for this name (of the watched thing itself: an empty one).
    pub fn hears(&mut self, name: &str, within: Duration) -> bool {
        let until = Instant::now() + within;
        loop {
            match self.next(until.saturating_duration_since(Instant::now())) {
                None => return false,
                Some(event) if event.name == name => return true,
                Some(_) => {}
            }
        }
    }

    /// Waits for an event of this kind and name, whatever comes before it.
    pub fn comes_to_hear(&mut self, what: Heard, name: &str) {
        let is_it = |event: &Event| event.name == name && event.what.contains(what);
        loop {
            match self.next(SOON) {
                None => panic!("nobody tells {what:?} of `{name}`"),
                Some(event) if is_it(&event) => return,
                Some(_) => {}
            }
        }
    }

    /// The next event of these kinds, which must be of this name; others may come before it.
    pub fn awaits(&mut self, what: Heard, name: &str) -> Event {
        loop {
            let event = self.next(SOON);
            let event = event.unwrap_or_else(|| panic!("nobody tells {what:?} of `{name}`"));
            let is_asked = event.name != PROBE;
            if is_asked && event.what.intersects(what.difference(Heard::ISDIR)) {
                assert_eq!((event.what, event.name.as_str()), (what, name));
                return event;
            }
        }
    }
}
