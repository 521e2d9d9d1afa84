//! Unmodified watchers: inotify through one mount hears of what is done through another.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::fs::inotify::ReadFlags as Heard;

use crate::harness::{Fixture, Mapped, Setup, Task, save};
use crate::listener::{SOON, Watch};

fn two() -> Fixture {
    let fixture = Setup::default().mounts(2).start();
    fixture.sh("mkdir -p scratchpad other; echo 0 > scratchpad/known").success();
    fixture
}

// P11.8
#[test]
fn a_name_that_the_kernel_knows_to_be_absent_is_told_to_go() {
    let fixture = two();
    let mut watch = Watch::noticed(&fixture, "scratchpad");
    let there = fixture.mount(1).join("scratchpad");
    for round in 0..20 {
        let (name, moved) = (format!("n{round}"), format!("m{round}"));
        fixture.sh(&format!("echo x > scratchpad/{name}")).success();
        watch.comes_to_hear(Heard::CLOSE_WRITE, &name);
        fixture.sh(&format!("mv scratchpad/{name} scratchpad/{moved}")).success();
        assert!((0..3).all(|_| !there.join(&name).exists()));
        watch.comes_to_hear(Heard::MOVED_FROM, &name);
        watch.comes_to_hear(Heard::MOVED_TO, &moved);
        fixture.sh(&format!("rm scratchpad/{moved}")).success();
        assert!((0..3).all(|_| !there.join(&moved).exists()));
        watch.comes_to_hear(Heard::DELETE, &moved);
    }
}

// P11.8
#[test]
fn what_is_done_through_one_mount_is_heard_in_the_other() {
    let fixture = two();
    let mut watch = Watch::of(&fixture.mount(1).join("scratchpad"));
    fixture.sh("echo x > scratchpad/new").success();
    assert!(watch.hears("new", SOON), "a new file");
    fixture.sh("echo y >> scratchpad/known").success();
    assert!(watch.hears("known", SOON), "a write");
    fixture.sh("echo z > scratchpad/t.tmp; mv scratchpad/t.tmp scratchpad/moved").success();
    assert!(watch.hears("moved", SOON), "a rename");
    fixture.sh("rm scratchpad/moved").success();
    assert!(watch.hears("moved", SOON), "a removal");
    let before = std::fs::metadata(fixture.path("scratchpad/known")).unwrap();
    fixture.sh("chmod 600 scratchpad/known").success();
    assert!(watch.hears("known", SOON), "attributes");
    let after = std::fs::metadata(fixture.mount(1).join("scratchpad/known")).unwrap();
    assert_eq!(before.modified().unwrap(), after.modified().unwrap(), "nothing is changed by it");

    // While others watch already, a new watcher is noticed within half a second.
    let mut file = Watch::of(&fixture.mount(1).join("scratchpad/known"));
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
fn who_watches_below_a_directory_with_another_name_hears() {
    let fixture = two();
    let [old, new] = ["old", "new"].map(|name| fixture.base().join(name));
    fs::create_dir_all(old.join("m")).unwrap();
    fixture.mount_at(&old.join("m")).success();
    fs::rename(&old, &new).unwrap();
    let mut watch = Watch::of(&new.join("m/scratchpad"));
    fixture.sh("echo x > scratchpad/new").success();
    assert!(watch.hears("new", SOON), "a new file");
    drop(watch);
    fixture.workfs(&["unmount", new.join("m").to_str().unwrap()]).success();
}

// P11.8
#[test]
fn what_is_done_at_the_socket_is_heard_in_every_mount() {
    let fixture = two();
    let mut watches = [0, 1].map(|nth| Watch::of(&fixture.mount(nth).join("scratchpad")));
    let g = fixture.ledger().last_g().to_string();
    fixture.sh("echo 1 > scratchpad/known").success();
    for watch in &mut watches {
        assert!(watch.hears("known", SOON));
    }
    while watches[0].hears("known", Duration::from_millis(200)) {}
    fixture.workfs(&["restore", "scratchpad/known", "--at", &g]).success();
    for watch in &mut watches {
        assert!(watch.hears("known", SOON));
    }
}

// P11.8 P6.4
#[test]
fn a_daemon_that_is_killed_while_it_tells_leaves_nobody_hanging() {
    let fixture = two();
    for _ in 0..5 {
        let mut watch = Watch::of(&fixture.mount(1).join("scratchpad"));
        fixture.sh("echo x > scratchpad/known").success();
        assert!(watch.hears("known", SOON), "before it is killed");
        let writer = std::thread::scope(|scope| {
            let root = fixture.root();
            let writing = scope.spawn(move || {
                let path = |name: &str| root.join("scratchpad").join(name);
                let mut written = 0;
                let mut all = || -> std::io::Result<()> {
                    fs::write(path("known"), written.to_string())?;
                    fs::write(path("new"), "new")?;
                    fs::rename(path("new"), path("moved"))?;
                    fs::remove_file(path("moved"))?;
                    fs::create_dir(path("dir"))?;
                    fs::remove_dir(path("dir"))?;
                    written += 1;
                    Ok(())
                };
                while all().is_ok() {}
                written
            });
            assert!(watch.hears("known", SOON));
            fixture.kill_daemon();
            writing.join().unwrap()
        });
        println!("{writer} writes before the end");
        drop(watch);
        fixture.mount_all();
        fixture.sh("rm -rf scratchpad/dir").success();
    }
    fixture.fsck_clean();
}

// P11.8
#[test]
fn who_watches_ready_hears_in_every_mount_that_something_is_ready() {
    let fixture = Setup::default().mounts(2).start();
    let mut watches = [0, 1].map(|nth| Watch::of(&fixture.mount(nth).join("work/ready")));
    for (nth, name) in ["t-1", "t-2"].into_iter().enumerate() {
        // Through one mount, then through the other.
        let task = Task::new(name);
        let path = fixture.mount(nth).join("work/inbox").join(task.file());
        save(&path, task.text().as_bytes()).unwrap();
        for (mount, watch) in watches.iter_mut().enumerate() {
            assert!(watch.hears("", SOON), "{name} in mount {mount}");
        }
    }
    fixture.fsck_clean();
}

// P11.8
#[test]
fn each_event_is_of_its_kind_and_name() {
    let fixture = two();
    let there = fixture.mount(1).join("scratchpad");
    let mut watch = Watch::noticed(&fixture, "scratchpad");
    // A file, made and written in one go: names first, then the content.
    fixture.sh("echo x > scratchpad/a").success();
    watch.awaits(Heard::CREATE, "a");
    watch.awaits(Heard::MODIFY, "a");
    watch.awaits(Heard::CLOSE_WRITE, "a");
    // What is held open is told to be written, and to be closed when it is.
    fixture.sh("exec 3>> scratchpad/a; echo y >&3; exec 3>&-").success();
    watch.awaits(Heard::MODIFY, "a");
    watch.awaits(Heard::CLOSE_WRITE, "a");
    fixture.sh("mkdir scratchpad/d; ln -s a scratchpad/l; mkfifo scratchpad/p").success();
    watch.awaits(Heard::CREATE | Heard::ISDIR, "d");
    watch.awaits(Heard::CREATE, "l");
    watch.awaits(Heard::CREATE, "p");
    fixture.sh("ln scratchpad/a scratchpad/h").success();
    watch.awaits(Heard::CREATE, "h");
    for (from, to, kind) in [("a", "b", Heard::empty()), ("d", "e", Heard::ISDIR)] {
        fixture.sh(&format!("mv -T scratchpad/{from} scratchpad/{to}")).success();
        let gone = watch.awaits(Heard::MOVED_FROM | kind, from);
        let come = watch.awaits(Heard::MOVED_TO | kind, to);
        assert_eq!(gone.cookie, come.cookie, "the two halves of one move");
    }
    // Over another, and out of the directory and in again.
    fixture
        .sh("mv scratchpad/h scratchpad/l; mv scratchpad/l other; mv other/l scratchpad/m")
        .success();
    for (what, name) in [
        (Heard::MOVED_FROM, "h"),
        (Heard::MOVED_TO, "l"),
        (Heard::MOVED_FROM, "l"),
        (Heard::MOVED_TO, "m"),
    ] {
        watch.awaits(what, name);
    }
    fixture.sh("rm scratchpad/m scratchpad/p; rmdir scratchpad/e").success();
    watch.awaits(Heard::DELETE, "m");
    watch.awaits(Heard::DELETE, "p");
    watch.awaits(Heard::DELETE | Heard::ISDIR, "e");
    // Through the other mount is what is there, and no stand-in.
    let names = |dir: &Path| {
        let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
        let mut names: Vec<_> =
            entries.map(|e| (e.file_name(), e.metadata().unwrap().ino())).collect();
        names.sort();
        names
    };
    assert_eq!(names(&there), names(&fixture.path("scratchpad")));
    fixture.fsck_clean();
}

// P11.8
#[test]
fn attributes_of_directories_are_told_and_what_goes_with_a_name_is_not() {
    let fixture = two();
    fixture.sh("mkdir -p scratchpad/d/e; touch scratchpad/d/g").success();
    let mut above = Watch::noticed(&fixture, "scratchpad");
    let mut itself = Watch::noticed(&fixture, "scratchpad/d");
    for change in [
        "chmod 700 d",
        "touch d",
        "touch -d 2020-01-01 d",
        "python3 -c 'import os; os.setxattr(\"d\", \"user.x\", b\"1\")'",
        "python3 -c 'import os; os.removexattr(\"d\", \"user.x\")'",
    ] {
        fixture.sh(&format!("cd scratchpad; {change}")).success();
        above.awaits(Heard::ATTRIB | Heard::ISDIR, "d");
        itself.awaits(Heard::ATTRIB | Heard::ISDIR, "");
    }
    fixture.sh("chmod 711 scratchpad/d/e").success();
    itself.awaits(Heard::ATTRIB | Heard::ISDIR, "e");
    fixture.sh("cd scratchpad/d; mv e f; mv g h; mkdir k; chmod 600 h").success();
    itself.awaits(Heard::ATTRIB, "h");
    fixture.fsck_clean();
}

// P11.8
#[test]
fn who_watches_a_new_directory_at_once_hears_what_comes_into_it() {
    let fixture = two();
    let there = fixture.mount(1).join("scratchpad");
    let mut top = Watch::noticed(&fixture, "scratchpad");
    for nth in 0..20 {
        let name = format!("d{nth}");
        fixture.sh(&format!("mkdir scratchpad/{name}")).success();
        top.awaits(Heard::CREATE | Heard::ISDIR, &name);
        let mut inside = Watch::of(&there.join(&name));
        fixture.sh(&format!("echo x > scratchpad/{name}/f")).success();
        inside.awaits(Heard::CREATE, "f");
        inside.awaits(Heard::CLOSE_WRITE, "f");
    }
}

// P11.8
#[test]
fn who_watches_a_file_hears_of_its_end() {
    let fixture = two();
    let there = fixture.mount(1).join("scratchpad");
    fixture.sh("cd scratchpad; echo 1 > removed; echo 1 > replaced; mkdir dir").success();
    for (name, end) in [
        ("removed", "rm scratchpad/removed"),
        ("replaced", "echo 2 > scratchpad/t; mv scratchpad/t scratchpad/replaced"),
        ("dir", "rmdir scratchpad/dir"),
    ] {
        let mut watch = Watch::of(&there.join(name));
        crate::harness::until_polled("it is watched", || {
            fixture.sh(&format!("touch scratchpad/{name}")).success();
            watch.hears("", Duration::from_millis(100)).then_some(()).or_else(|| {
                // Of a directory's own times nobody is told: what comes into it is.
                let probe = format!("! [ -d scratchpad/{name} ] || {{ touch scratchpad/{name}/x; rm scratchpad/{name}/x; }}");
                fixture.sh(&probe).success();
                watch.hears("x", Duration::from_millis(100)).then_some(())
            })
        });
        fixture.sh(end).success();
        watch.awaits(Heard::DELETE_SELF, "");
    }
    fixture.fsck_clean();
}

// P11.7 P11.8
#[test]
fn who_was_not_told_that_a_file_came_is_not_told_that_it_went() {
    let layout = "workspaces: [{ path: work, kind: task }]\nchecks: [{ path: \"work/*.json\" }]";
    let fixture = Setup::default().mounts(2).layout(layout).start();
    let mut there = Watch::of(&fixture.path("work"));
    there.also(&fixture.path("work/inbox"));
    // With this one the other one is noticed, too.
    let mut here = Watch::noticed(&fixture, "work");
    let work = fixture.mount(1).join("work");
    let (refused, given_up) = (work.join("x.json"), work.join("inbox/t-1.yaml"));
    save(&refused, b"{").unwrap_err();
    for what in [Heard::CREATE, Heard::DELETE] {
        here.awaits(what, "x.json");
    }
    let open = File::create(&given_up).unwrap();
    fs::remove_file(&given_up).unwrap();
    drop(open);
    fs::create_dir(work.join("other")).unwrap();
    fs::remove_dir(work.join("other")).unwrap();
    there.awaits(Heard::DELETE | Heard::ISDIR, "other");
    fixture.fsck_clean();
}

// P11.8
#[test]
fn a_record_is_told_of_when_it_is_there() {
    let fixture = Setup::default().mounts(2).start();
    let there = fixture.mount(1).join("work");
    fixture.sh("mkdir -p work/assigned/ann").success();
    let mut inbox = Watch::noticed(&fixture, "work/inbox");
    let task = Task::new("t-1");
    // Written in place: what is not judged yet nobody else sees.
    fs::write(fixture.path("work/inbox/t-1.yaml"), task.text()).unwrap();
    inbox.awaits(Heard::CREATE, "t-1.yaml");
    inbox.awaits(Heard::CLOSE_WRITE, "t-1.yaml");
    assert_eq!(fs::read_to_string(there.join("inbox/t-1.yaml")).unwrap(), task.text());
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/ann/").success();
    inbox.awaits(Heard::MOVED_FROM, "t-1.yaml");
    fixture.fsck_clean();
}

// P11.8 P2.2
#[test]
fn a_record_that_somebody_has_mapped_is_told_of_when_it_is_saved() {
    let fixture = two();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let mut watch = Watch::noticed(&fixture, "work/inbox");
    // The task's own beginning may be told after the watch's.
    fixture.sh("touch work/inbox/later").success();
    watch.comes_to_hear(Heard::CREATE, "later");
    let mapped = Mapped::new(&File::open(&path).unwrap()).unwrap();
    assert!(!mapped.bytes().is_empty());
    let ino = fs::metadata(&path).unwrap().ino();
    save(&path, Task::new("t-1").revision(1).text().as_bytes()).unwrap();
    assert_ne!(fs::metadata(&path).unwrap().ino(), ino, "a mapped version keeps its file");
    watch.comes_to_hear(Heard::MODIFY, "t-1.yaml");
    watch.comes_to_hear(Heard::CLOSE_WRITE, "t-1.yaml");
}

/// Many work in both mounts, in names that are told of all the time; nobody notices.
// P11.8 P7.4
#[test]
fn being_told_changes_nothing_for_those_who_work_there() {
    let fixture = two();
    let mounts: Vec<_> = (0..2).map(|nth| fixture.mount(nth).join("scratchpad")).collect();
    let watches: Vec<_> = mounts.iter().map(|dir| Watch::of(dir)).collect();
    std::thread::scope(|scope| {
        for (mount, dir) in mounts.iter().enumerate() {
            let (own, other) = (mount, 1 - mount);
            let (base, mounts) = (dir, &mounts);
            scope.spawn(move || {
                for round in 0..150 {
                    let name = |what: &str| format!("{what}-{own}-{round}");
                    let here = |what: &str| base.join(name(what));
                    let there = |what: &str| mounts[other].join(name(what));
                    fs::create_dir(here("dir")).unwrap();
                    // It is used in the other mount before its watchers can have been told.
                    fs::write(there("dir").join("in"), b"1").unwrap();
                    let inside = fs::File::open(there("dir")).unwrap();
                    fs::write(here("file"), name("text")).unwrap();
                    assert_eq!(fs::read_to_string(there("file")).unwrap(), name("text"));
                    fs::rename(here("file"), here("moved")).unwrap();
                    assert_eq!(fs::read_to_string(there("moved")).unwrap(), name("text"));
                    fs::rename(here("dir"), here("dir2")).unwrap();
                    assert_eq!(fs::read(there("dir2").join("in")).unwrap(), b"1");
                    let link =
                        format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&inside));
                    assert!(fs::read_dir(link).unwrap().count() == 1, "an open directory lives on");
                    fs::remove_file(there("moved")).unwrap();
                    assert!(!here("moved").try_exists().unwrap());
                    // Gone and there again: the new one stays.
                    fs::write(here("moved"), b"new").unwrap();
                    assert_eq!(fs::read(there("moved")).unwrap(), b"new");
                    fs::remove_file(here("dir2").join("in")).unwrap();
                    fs::remove_dir(there("dir2")).unwrap();
                    fs::create_dir(there("dir2")).unwrap();
                    fs::write(here("dir2").join("again"), b"2").unwrap();
                }
            });
        }
    });
    let all = |dir: &Path| fs::read_dir(dir).unwrap().count();
    assert_eq!((all(&mounts[0]), all(&mounts[1])), (601, 601), "and what was known before");
    for (mount, round) in (0..2).flat_map(|mount| (0..150).map(move |round| (mount, round))) {
        for dir in &mounts {
            assert_eq!(fs::read(dir.join(format!("moved-{mount}-{round}"))).unwrap(), b"new");
            let again = dir.join(format!("dir2-{mount}-{round}/again"));
            assert_eq!(fs::read(again).unwrap(), b"2");
        }
    }
    drop(watches);
    fixture.fsck_clean();
}

// P11.8
#[test]
fn what_is_imported_is_told_of_as_what_is_copied() {
    let fixture = two();
    let from = fixture.outside("from");
    fs::create_dir(&from).unwrap();
    let mut watch = Watch::noticed(&fixture, "scratchpad");
    for name in ["small", "empty", "script"] {
        fs::write(from.join(name), if name == "empty" { "" } else { "text" }).unwrap();
    }
    rustix::fs::chmod(from.join("script"), rustix::fs::Mode::RWXU).unwrap();
    fixture.workfs(&["import", from.to_str().unwrap(), "scratchpad"]).success();
    // Of `empty` nothing was written; and the kernel runs no file that is open for writing, so that a
    // script is not shown to be closed.
    let mut awaited = vec![
        ("small", Heard::CREATE),
        ("small", Heard::MODIFY),
        ("small", Heard::CLOSE_WRITE),
        ("empty", Heard::CREATE),
        ("empty", Heard::CLOSE_WRITE),
        ("script", Heard::CREATE),
        ("script", Heard::MODIFY),
    ];
    while !awaited.is_empty() {
        let event = watch.next(SOON).unwrap_or_else(|| panic!("nobody tells {awaited:?}"));
        assert!(event.name != "script" || !event.what.contains(Heard::CLOSE_WRITE), "{event:?}");
        awaited.retain(|(name, what)| *name != event.name || !event.what.contains(*what));
    }
    fixture.fsck_clean();
}
