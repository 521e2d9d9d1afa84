//! `.wait`: reading and polling until something is ready.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write as _};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::thread::Pid;

use crate::harness::{Echo, Fixture, Setup, close, prompt, save, state_of, until_polled};

fn put(fixture: &Fixture, task: &str) -> Instant {
    let path = fixture.work().join("inbox").join(format!("{task}.yaml"));
    save(&path, format!("id: {task}\n").as_bytes()).unwrap();
    Instant::now()
}

/// Says which thread is about to make the one call in which it sleeps.
fn about_to_wait(tell: &Sender<Pid>) {
    tell.send(rustix::thread::gettid()).unwrap();
}

/// Waits until a thread sleeps in the call that it was about to make.
fn await_waiting(told: &Receiver<Pid>) {
    let thread = format!("self/task/{}", told.recv().unwrap().as_raw_nonzero());
    until_polled("the call to wait", || (state_of(&thread) == Some('S')).then_some(()));
}

fn read(fixture: &Fixture, mount: usize) -> String {
    fs::read_to_string(fixture.mount(mount).join("work/ready/.wait")).unwrap()
}

// P9.8
#[test]
fn a_read_gives_the_best_at_once_or_when_there_is_one() {
    prompt(Duration::from_millis(500), || {
        let fixture = Setup::default().mounts(2).start();
        let took = std::thread::scope(|scope| {
            let (tell, told) = channel();
            let mut wait = File::open(fixture.mount(1).join("work/ready/.wait")).unwrap();
            let waits = scope.spawn(move || {
                let mut name = [0; 256];
                about_to_wait(&tell);
                let length = wait.read(&mut name).unwrap();
                (String::from_utf8_lossy(&name[..length]).into_owned(), Instant::now())
            });
            await_waiting(&told);
            let at = put(&fixture, "a");
            let (name, end) = waits.join().unwrap();
            assert_eq!(name, "a.yaml\n");
            end.saturating_duration_since(at)
        });
        let begin = Instant::now();
        assert_eq!(read(&fixture, 0), "a.yaml\n");
        let at_once = begin.elapsed();
        assert!(fixture.path("work/inbox/a.yaml").exists(), "it claims nothing");
        took.max(at_once)
    });
}

// P9.8
#[test]
fn a_read_ends_after_two_seconds_with_nothing() {
    let fixture = Fixture::new();
    prompt(Duration::from_millis(2500), || {
        let begin = Instant::now();
        // Many at once, and other requests through the same mount go on.
        let others = std::thread::scope(|scope| {
            let waits: Vec<_> = (0..8).map(|_| scope.spawn(|| read(&fixture, 0))).collect();
            for _ in 0..50 {
                fs::metadata(fixture.path("work/inbox")).unwrap();
                fs::read_to_string(fixture.path(".workfs/status")).unwrap();
            }
            let others = begin.elapsed();
            for wait in waits {
                assert_eq!(wait.join().unwrap(), "");
            }
            others
        });
        let took = begin.elapsed();
        assert!(took > Duration::from_millis(1500), "{took:?}");
        // Those are a second sooner.
        took.max(others + Duration::from_secs(1))
    });
}

// P9.8 P1.6
#[test]
fn who_waits_hears_of_a_record_that_its_writer_leaves_as_it_was() {
    let fixture = Setup::default().mounts(2).start();
    put(&fixture, "a");
    let mut writer = File::options().write(true).open(fixture.path("work/inbox/a.yaml")).unwrap();
    writer.write_all(b"id: a\n").unwrap();
    let wait = File::open(fixture.mount(1).join("work/ready/.wait")).unwrap();
    let epoll = epoll::create(CreateFlags::CLOEXEC).unwrap();
    epoll::add(&epoll, &wait, EventData::new_u64(7), EventFlags::IN).unwrap();
    let woken = |seconds| {
        let (mut events, long) = (Vec::with_capacity(4), Timespec { tv_sec: seconds, tv_nsec: 0 });
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), Some(&long)).unwrap()
    };
    assert_eq!(woken(0), 0, "it is being written");
    // It makes no version, and so no event tells of it.
    close(writer).unwrap();
    assert_eq!(woken(20), 1);
    assert_eq!(read(&fixture, 1), "a.yaml\n");
    assert_eq!(fixture.ledger().names("a"), ["created"]);
}

// P9.8
#[test]
fn what_nobody_can_claim_is_not_named() {
    let fixture = Fixture::new();
    // Nobody's name can be written into it: another field has it, too.
    let text = "id: z\nstatus: new\nagent: &a x\nother: *a\n";
    fs::write(fixture.path("work/inbox/z.yaml"), text).unwrap();
    assert_eq!(read(&fixture, 0), "");
    put(&fixture, "a");
    assert_eq!(read(&fixture, 0), "a.yaml\n");
}

// P9.8
#[test]
fn poll_and_epoll_wake_when_something_is_ready() {
    let fixture = Setup::default().mounts(2).start();
    let [one, other] =
        [0, 1].map(|nth| File::open(fixture.mount(nth).join("work/ready/.wait")).unwrap());
    let none = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    let mut fds = [PollFd::from_borrowed_fd(one.as_fd(), PollFlags::IN)];
    assert_eq!(poll(&mut fds, Some(&none)).unwrap(), 0, "nothing is ready");
    let epoll = epoll::create(CreateFlags::CLOEXEC).unwrap();
    epoll::add(&epoll, &other, EventData::new_u64(7), EventFlags::IN).unwrap();
    std::thread::scope(|scope| {
        let (tell, told) = channel();
        let tell_too = tell.clone();
        let polls = scope.spawn(|| {
            let tell = tell;
            let long = Timespec { tv_sec: 20, tv_nsec: 0 };
            let mut fds = [PollFd::from_borrowed_fd(one.as_fd(), PollFlags::IN)];
            about_to_wait(&tell);
            let woken = poll(&mut fds, Some(&long)).unwrap();
            (woken, fds[0].revents(), Instant::now())
        });
        let epolls = scope.spawn(|| {
            let tell = tell_too;
            let long = Timespec { tv_sec: 20, tv_nsec: 0 };
            let mut events = Vec::with_capacity(4);
            about_to_wait(&tell);
            epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), Some(&long)).unwrap();
            (events.len(), Instant::now())
        });
        await_waiting(&told);
        await_waiting(&told);
        let at = put(&fixture, "a");
        let (woken, what, end) = polls.join().unwrap();
        assert_eq!(woken, 1);
        assert!(what.contains(PollFlags::IN));
        let (events, other_end) = epolls.join().unwrap();
        assert_eq!(events, 1);
        // One is woken at once, the next when the record is still there after a moment.
        for end in [end, other_end] {
            assert!(end.saturating_duration_since(at) < Duration::from_secs(1));
        }
    });
    let mut text = String::new();
    (&one).read_to_string(&mut text).unwrap();
    assert_eq!(text, "a.yaml\n");
    fixture.sh("mv work/ready/.next work/assigned/bob/").success();
    let mut fds = [PollFd::from_borrowed_fd(other.as_fd(), PollFlags::IN)];
    assert_eq!(poll(&mut fds, Some(&none)).unwrap(), 0, "it is claimed");
    // An ordinary file is always ready.
    let file = File::open(fixture.path("work/assigned/bob/a.yaml")).unwrap();
    let mut fds = [PollFd::from_borrowed_fd(file.as_fd(), PollFlags::IN | PollFlags::OUT)];
    assert_eq!(poll(&mut fds, Some(&none)).unwrap(), 1);
}

// P9.8
#[test]
fn an_epoll_that_is_told_of_edges_hears_of_each_record_after_it_has_read_all() {
    let fixture = Setup::default().start();
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let wait = rustix::fs::open(fixture.path("work/ready/.wait"), flags, 0.into()).unwrap();
    let epoll = epoll::create(CreateFlags::CLOEXEC).unwrap();
    epoll::add(&epoll, &wait, EventData::new_u64(7), EventFlags::IN | EventFlags::ET).unwrap();
    let long = Timespec { tv_sec: 20, tv_nsec: 0 };
    for task in ["a", "b", "c"] {
        std::thread::scope(|scope| {
            let (tell, told) = channel();
            let waits = scope.spawn(|| {
                let tell = tell;
                let mut events = Vec::with_capacity(4);
                about_to_wait(&tell);
                epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), Some(&long))
                    .unwrap();
                events.len()
            });
            await_waiting(&told);
            put(&fixture, task);
            assert_eq!(waits.join().unwrap(), 1, "{task}");
        });
        fixture.sh("mv work/ready/.next work/assigned/bob/").success();
        while rustix::io::read(&wait, &mut [0u8; 100]).is_ok() {}
    }
}

// P9.8
#[test]
fn descriptors_that_were_polled_and_left_alone_delay_nobody() {
    let fixture = Setup::default().mounts(2).start();
    let open = |mount| File::open(fixture.mount(mount).join("work/ready/.wait")).unwrap();
    let [one, other] = [open(0), open(1)];
    let idle: Vec<File> = (0..200).map(|_| open(1)).collect();
    let none = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    // In another mount than theirs, and in theirs.
    for (task, mine) in [("a", &one), ("b", &one), ("c", &other), ("d", &other)] {
        let mut fds: Vec<_> =
            idle.iter().map(|file| PollFd::from_borrowed_fd(file.as_fd(), PollFlags::IN)).collect();
        assert_eq!(poll(&mut fds, Some(&none)).unwrap(), 0);
        std::thread::scope(|scope| {
            let (tell, told) = channel();
            let polls = scope.spawn(move || {
                let long = Timespec { tv_sec: 60, tv_nsec: 0 };
                let mut fds = [PollFd::from_borrowed_fd(mine.as_fd(), PollFlags::IN)];
                about_to_wait(&tell);
                assert_eq!(poll(&mut fds, Some(&long)).unwrap(), 1);
                Instant::now()
            });
            await_waiting(&told);
            let at = put(&fixture, task);
            let late = polls.join().unwrap().saturating_duration_since(at);
            // It is some 5 ms; each took its turn of 0.1 s before.
            assert!(late < Duration::from_secs(1), "{task}: {late:?}");
        });
        fixture.sh("mv work/ready/.next work/assigned/bob/").success();
    }
}

// P9.8
#[test]
fn who_looks_and_takes_nothing_delays_the_others_once_at_most() {
    let fixture = Setup::default().mounts(2).start();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (stop, fixture) = (&stop, &fixture);
        let polls = |mount: usize| {
            let wait = File::open(fixture.mount(mount).join("work/ready/.wait")).unwrap();
            move || {
                let short = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
                let mut fds = [PollFd::from_borrowed_fd(wait.as_fd(), PollFlags::IN)];
                poll(&mut fds, Some(&short)).unwrap() == 1
            }
        };
        for _ in 0..8 {
            let looks = polls(1);
            scope.spawn(move || {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    if looks() {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                }
            });
        }
        let (tell, told) = channel();
        let worker = scope.spawn(move || {
            let takes = polls(0);
            let mut ends = Vec::new();
            for _ in 0..10 {
                about_to_wait(&tell);
                while !takes() {}
                ends.push(Instant::now());
                fixture.sh("mv work/ready/.next work/assigned/bob/").success();
            }
            ends
        });
        let (mut begins, mut echo) = (Vec::new(), Echo::start());
        for nth in 0..10 {
            await_waiting(&told);
            echo.sound();
            begins.push(put(fixture, &format!("t-{nth}")));
        }
        let ends = worker.join().unwrap();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let mut late: Vec<_> =
            ends.iter().zip(&begins).map(|(end, at)| end.saturating_duration_since(*at)).collect();
        late.sort();
        assert!(late[7] < Duration::from_millis(50) + echo.ten(), "{late:?}");
    });
}

// P9.8
#[test]
fn who_never_waits_is_told_so_at_once() {
    let fixture = Fixture::new();
    let mut wait = File::open(fixture.path("work/ready/.wait")).unwrap();
    rustix::fs::fcntl_setfl(&wait, OFlags::NONBLOCK).unwrap();
    let begin = Instant::now();
    let refused = wait.read(&mut [0; 256]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::WouldBlock);
    assert!(begin.elapsed() < Duration::from_secs(1));
    put(&fixture, "a");
    let mut name = String::new();
    wait.read_to_string(&mut name).unwrap();
    assert_eq!(name, "a.yaml\n");
}

// P9.8
#[test]
fn a_descriptor_gives_a_name_after_each_poll_and_an_end_to_who_reads_on() {
    let fixture = Fixture::new();
    let mut wait = File::open(fixture.path("work/ready/.wait")).unwrap();
    let is_readable = |wait: &File| {
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::from_borrowed_fd(wait.as_fd(), PollFlags::IN)], Some(&none)).unwrap()
            == 1
    };
    let give = |mut wait: &File| {
        let mut name = [0; 256];
        let length = wait.read(&mut name).unwrap();
        String::from_utf8_lossy(&name[..length]).into_owned()
    };
    for task in ["a", "b"] {
        put(&fixture, task);
        for _ in 0..2 {
            assert!(is_readable(&wait));
            assert_eq!(give(&wait), format!("{task}.yaml\n"));
        }
        fixture.sh("mv work/ready/.next work/assigned/bob/").success();
        assert!(!is_readable(&wait));
    }
    // Who does not poll has an end after each name; and a name byte by byte, as shells read.
    put(&fixture, "c");
    for _ in 0..2 {
        let mut name = String::new();
        wait.read_to_string(&mut name).unwrap();
        assert_eq!(name, "c.yaml\n");
    }
    assert_eq!(
        fixture.sh("read name < work/ready/.wait; echo \"$name\"").success().stdout,
        "c.yaml\n"
    );
}

// P9.8
#[test]
fn a_shell_loop_of_wait_and_next_works_through_what_comes() {
    let fixture = Fixture::new();
    std::thread::scope(|scope| {
        let agent = scope.spawn(|| {
            fixture
                .sh("for i in 1 2 3; do \
                       until [ -n \"$(cat work/ready/.wait)\" ] && \
                             mv work/ready/.next work/assigned/bob/ 2>/dev/null; do :; done; \
                     done")
                .success();
        });
        for task in ["a", "b", "c"] {
            put(&fixture, task);
        }
        agent.join().unwrap();
    });
    assert_eq!(fs::read_dir(fixture.path("work/assigned/bob")).unwrap().count(), 3);
    fixture.fsck_clean();
}
