//! What readers see while others save.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::harness::{
    Errno, Fixture, Mapped, Setup, Task, close, number_of, over_and_over, python, save,
    until_polled, whole,
};

// P2.1
#[test]
fn an_open_descriptor_keeps_its_version() {
    let fixture = Setup::default().mounts(2).start();
    let path = fixture.task("inbox", &Task::new("t-1").with(&"# padding\n".repeat(2000)));
    let old = fs::read(&path).unwrap();
    let readers = [&path, &fixture.mount(1).join("work/inbox/t-1.yaml")].map(File::open);
    let mut first = vec![0; 100];
    for reader in &readers {
        reader.as_ref().unwrap().read_exact_at(&mut first, 0).unwrap();
        assert_eq!(first, old[..100]);
    }
    let new = Task::new("t-1").revision(1).text();
    save(&path, new.as_bytes()).unwrap();
    for reader in readers {
        let mut rest = Vec::new();
        reader.unwrap().read_to_end(&mut rest).unwrap();
        assert_eq!(rest, old, "not the version that was opened");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), new);
}

// P2.2
#[test]
fn who_opens_during_a_save_sees_the_old_version_whole() {
    let fixture = Setup::default().mounts(2).start();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let elsewhere = fixture.mount(1).join("work/inbox/t-1.yaml");
    let old = Task::new("t-1").text();
    let new = Task::new("t-1").revision(1).text();
    let sees = |wanted: &str, when: &str| {
        for path in [&path, &elsewhere] {
            assert_eq!(fs::read_to_string(path).unwrap(), wanted, "{when}");
        }
        // Its size as another process sees it: to the writer it is that of what it wrote (`ends`).
        let size = format!("{}\n", wanted.len());
        assert_eq!(fixture.sh("stat -c %s work/inbox/t-1.yaml").success().stdout, size, "{when}");
        assert_eq!(fs::metadata(&elsewhere).unwrap().len(), wanted.len() as u64, "{when}");
    };
    let mut writer = OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
    sees(&old, "after the truncating open");
    writer.write_all(&new.as_bytes()[..100]).unwrap();
    sees(&old, "after the first write");
    writer.write_all(&new.as_bytes()[100..]).unwrap();
    sees(&old, "after the last write");
    close(writer).unwrap();
    sees(&new, "after the close");
}

// P2.3
#[test]
fn fsync_is_a_save_and_close_after_it_is_none() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let new = Task::new("t-1").revision(1).text();
    let mut writer = OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
    writer.write_all(new.as_bytes()).unwrap();
    writer.sync_all().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), new);
    close(writer).unwrap();
    assert_eq!(fixture.ledger().names("t-1"), ["created", "saved"]);
}

// P2.3
#[test]
fn a_descriptor_that_is_closed_twice_saves_once() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    fs::write(fixture.outside("new"), Task::new("t-1").revision(1).text()).unwrap();
    // Each child inherits the descriptor and flushes it at its end.
    let script = "{ cat $OUT/new; true; /bin/true; (exit 0); sh -c :; } > work/inbox/t-1.yaml";
    fixture.sh(script).success();
    assert_eq!(fs::read_to_string(&path).unwrap(), Task::new("t-1").revision(1).text());
    assert_eq!(fixture.ledger().names("t-1"), ["created", "saved"]);
}

// P2.3
#[test]
fn what_several_programs_write_by_one_descriptor_is_one_save() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    // By themselves the first two are no valid text.
    let script = "set -e; { /bin/echo 'id: t-1'; /bin/echo 'title: \"one'; /bin/echo '  two\"'; }";
    fixture.sh(&format!("{script} > work/inbox/t-1.yaml")).success();
    assert_eq!(fs::read_to_string(&path).unwrap(), "id: t-1\ntitle: \"one\n  two\"\n");
    assert_eq!(fixture.ledger().names("t-1"), ["created", "saved"]);
    // Whoever opened it lets go of it first: the last one ends it, and there is another open file.
    let script = "import os, subprocess, sys
f = open(sys.argv[1], 'w')
read = open(sys.argv[1])
child = subprocess.Popen(['sh', '-c', 'read x; echo \"id: t-1\"; echo title: $x'], stdin=subprocess.PIPE, stdout=f)
f.close()
child.communicate(b'three\\n')
";
    let shell = fixture.bash().with("PYTHON", python()).with("S", script).with("F", &path);
    shell.run("\"$PYTHON\" -c \"$S\" \"$F\"").success();
    until_polled("the save", || {
        (fs::read_to_string(&path).unwrap() == "id: t-1\ntitle: three\n").then_some(())
    });
    assert_eq!(fixture.ledger().names("t-1"), ["created", "saved", "saved"]);
    fixture.fsck_clean();
}

// P2.3
#[test]
fn a_child_that_is_started_in_the_middle_saves_nothing() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    // The child's exec closes its copy of the descriptor, which the kernel tells like any close.
    let script = "import subprocess, sys
f = open(sys.argv[1], 'w')
f.write('id: t-1\\nstatus: new\\ntitle: half\\n')
f.flush()
subprocess.run(['true'])
seen = subprocess.run(['cat', sys.argv[1]], capture_output=True).stdout
assert b'end_of' in seen, seen
f.write('description: the other half\\n')
f.close()";
    let shell = fixture.bash().with("PYTHON", python()).with("S", script).with("F", &path);
    shell.run("\"$PYTHON\" -c \"$S\" \"$F\"").success();
    let whole = "id: t-1\nstatus: new\ntitle: half\ndescription: the other half\n";
    assert_eq!(fs::read_to_string(&path).unwrap(), whole);
    assert_eq!(fixture.ledger().names("t-1"), ["created", "saved"]);
}

// P2.2
#[test]
fn a_reader_sees_whole_versions_only_whichever_way_they_are_saved() {
    let fixture = Setup::default().mounts(2).start();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = fixture
        .mounts()
        .iter()
        .map(|mount| {
            let (path, done) = (mount.join("work/inbox/t-1.yaml"), Arc::clone(&done));
            std::thread::spawn(move || {
                let (mut read, mut last) = (0, 0);
                while !done.load(Ordering::Relaxed) {
                    // Never absent: no way of saving takes the name away.
                    let text = fs::read(&path).unwrap();
                    let revision = whole("t-1", &text).unwrap();
                    assert!(revision >= last, "{revision} after {last}");
                    (read, last) = (read + 1, revision);
                }
                read
            })
        })
        .collect();
    let temp = fixture.path("work/inbox/.t-1.new");
    for revision in 1..=240 {
        // Lengths change, so that a mixture would show.
        let padding = "# padding\n".repeat(revision as usize * 7 % 50);
        let text = Task::new("t-1").revision(revision).with(&padding).text();
        // This process has the readers in it, so that it has seen each version it replaces; a
        // reader may be between two versions, though, and then it is stale.
        loop {
            let saved = match revision % 3 {
                0 => save(&path, text.as_bytes()),
                1 => {
                    fs::write(&temp, &text).unwrap();
                    let renamed = fs::rename(&temp, &path);
                    renamed.map_err(|error| Errno::from_io_error(&error).unwrap())
                }
                _ => in_place(&path, text.as_bytes()),
            };
            match saved {
                Ok(()) => break,
                Err(Errno::BUSY) => assert!(whole("t-1", &fs::read(&path).unwrap()).is_ok()),
                Err(error) => panic!("revision {revision}: {error}"),
            }
        }
    }
    done.store(true, Ordering::Relaxed);
    for reader in readers {
        assert!(reader.join().unwrap() > 0);
    }
    fixture.fsck_clean();
}

// P7.4
#[test]
fn who_is_overtaken_by_one_save_after_the_other_reads_a_whole_record_all_the_same() {
    let fixture = Setup::default().mounts(2).start();
    fixture.task("inbox", &Task::new("t-1"));
    let [here, there] = [0, 1].map(|nth| fixture.mount(nth).join("work/inbox"));
    let read = |dir: &&PathBuf| {
        let text = fs::read(dir.join("t-1.yaml")).unwrap();
        whole("t-1", &text).unwrap();
    };
    let write = |nth: usize, dir: &Path| {
        for round in 0..250 {
            let new = dir.join(format!(".t-1.{nth}"));
            fs::write(&new, Task::new("t-1").revision(round).text()).unwrap();
            // The three have not seen what they replace, or others were faster.
            if let Err(error) = fs::rename(&new, dir.join("t-1.yaml")) {
                assert_eq!(Errno::from_io_error(&error), Some(Errno::BUSY));
            }
        }
    };
    over_and_over(&[&here, &here, &there, &there], read, || {
        std::thread::scope(|scope| {
            for (nth, dir) in [&here, &here, &there].into_iter().enumerate() {
                scope.spawn(move || write(nth, dir));
            }
        });
    });
}

fn in_place(path: &std::path::Path, text: &[u8]) -> Result<(), Errno> {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let step =
        |done: std::io::Result<()>| done.map_err(|error| Errno::from_io_error(&error).unwrap());
    let written = step(file.write_all_at(text, 0)).and(step(file.set_len(text.len() as u64)));
    let closed = close(file);
    written.and(closed)
}

// P2.2
#[test]
fn a_mapped_record_is_never_empty_or_mixed() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let texts: Vec<String> =
        (0..10).map(|revision| Task::new("t-1").revision(revision).text()).collect();
    let file = File::open(&path).unwrap();
    let mapped = match Mapped::new(&file) {
        Ok(mapped) => mapped,
        Err(error) => panic!("a record cannot be mapped: {error}"),
    };
    for round in 1..200 {
        let text = &texts[round % 10];
        let script_free = save(&path, text.as_bytes());
        script_free.unwrap();
        // A mapping is no version that was opened, but all that it shows is some version's.
        let shown = String::from_utf8(mapped.bytes()).expect("text");
        let revision = number_of(&shown, "revision").expect("a revision");
        assert_eq!(shown, texts[revision as usize], "round {round}");
        fs::read(&path).unwrap();
    }
}

/// A text of many pages, each of which tells the revision.
fn large(revision: u64) -> String {
    Task::new("t-1").revision(revision).with(&format!("# {revision:013}\n").repeat(30_000)).text()
}

/// A mapping of the record as it is now, of which the kernel has read a first part.
#[track_caller]
fn map(path: &Path, at: impl Fn(usize) -> usize) -> (Mapped, Vec<u8>) {
    let text = fs::read(path).unwrap();
    let mapped = Mapped::new(&File::open(path).unwrap()).unwrap();
    let at = at(text.len());
    assert_eq!(mapped.part(at..at + 100), text[at..at + 100]);
    (mapped, text)
}

// P2.2
#[test]
fn a_mapped_record_outlives_that_others_begin_to_write_it() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let next = Task::new("t-1").revision(1).text();
    for cuts_at_open in [true, false] {
        let before = fs::read(&path).unwrap();
        let file = File::open(&path).unwrap();
        let mapped = Mapped::new(&file).unwrap();
        assert_eq!(mapped.bytes(), before);
        let opened = OpenOptions::new().write(true).truncate(cuts_at_open).open(&path);
        let mut writer = opened.unwrap();
        if !cuts_at_open {
            writer.set_len(0).unwrap();
        }
        // Pages that went would be beyond the end now, and reading them SIGBUS.
        assert_eq!(mapped.bytes(), before);
        writer.write_all(next.as_bytes()).unwrap();
        close(writer).unwrap();
        assert_eq!(mapped.bytes(), before);
        assert_eq!(fs::read_to_string(&path).unwrap(), next);
    }
    fixture.fsck_clean();
}

/// Maps the record `F` before anybody has read it, saves it shorter by the name `BY`, and looks at the mapping.
const MAPS_UNREAD: &str = "
import mmap, os, time
path, by = os.environ['F'], os.environ['BY']
text = open(by, 'rb').read()
short = text.replace(b'# more\\n', b'')
def in_place():
    with open(by, 'r+b') as file:
        file.write(short)
        file.truncate()
def emptied():
    with open(by, 'wb') as file:
        touches()
        file.write(short)
def by_name():
    os.truncate(by, len(short))
for save in (in_place, emptied, by_name):
    for flags in (mmap.MAP_SHARED, mmap.MAP_PRIVATE):
        fd = os.open(path, os.O_RDONLY)
        mapped = mmap.mmap(fd, len(text), flags, mmap.PROT_READ)
        os.close(fd)
        def touches():
            assert mapped[:] == text, (save.__name__, flags)
        # Who opens it and reads at once has not mapped it.
        time.sleep(0.05)
        save()
        touches()
        assert os.stat(path).st_size == len(short)
        assert open(path, 'rb').read() == short
        with open(by, 'wb') as file:
            file.write(text)
";

// P2.2
#[test]
fn a_record_that_was_mapped_and_never_read_outlives_that_it_is_saved_shorter() {
    let fixture = Setup::default().mounts(2).start();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let text = fs::read_to_string(&path).unwrap() + &"# more\n".repeat(1500);
    save(&path, text.as_bytes()).unwrap();
    for by in [&path, &fixture.mount(1).join("work/inbox/t-1.yaml")] {
        let shell = fixture.bash().with("PYTHON", python()).with("S", MAPS_UNREAD);
        shell.with("F", &path).with("BY", by).run("$PYTHON -c \"$S\"").success();
    }
    fixture.fsck_clean();
}

// P1.5 P2.2
#[test]
fn who_opens_a_record_to_read_it_changes_no_inode_of_it() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1").with(&"# more\n".repeat(1500)));
    let ino = fs::metadata(&path).unwrap().ino();
    let mut read = File::open(&path).unwrap();
    read.read_exact(&mut [0; 100]).unwrap();
    save(&path, Task::new("t-1").text().as_bytes()).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().ino(), ino, "who reads has no need to map");
    let unread = File::open(&path).unwrap();
    save(&path, Task::new("t-1").revision(1).text().as_bytes()).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().ino(), ino, "it is about to be read");
    std::thread::sleep(Duration::from_millis(50));
    let claimed = fixture.path("work/assigned/bob/t-1.yaml");
    fs::rename(&path, &claimed).unwrap();
    assert_eq!(fs::metadata(&claimed).unwrap().ino(), ino, "a claim makes the text longer");
    drop((read, unread));
    fixture.fsck_clean();
}

// P2.2
#[test]
fn mappings_of_two_versions_show_one_each() {
    let fixture = Setup::default().mounts(2).start();
    let path = fixture.task("inbox", &Task::new("t-1"));
    save(&path, large(0).as_bytes()).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
    fixture.bash().with("F", &path).run("setfattr -n user.kept -v yes \"$F\"").success();
    let is_itself = |path: &Path| {
        let metadata = fs::metadata(path).unwrap();
        assert_eq!((metadata.mode() & 0o7777, metadata.nlink()), (0o640, 1));
        let kept = fixture.bash().with("F", path).run("getfattr -n user.kept --only-values \"$F\"");
        assert_eq!(kept.success().stdout, "yes");
    };
    for revision in 1..8 {
        let (first, old) = map(&path, |_| 0);
        let mut writer = OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
        writer.write_all(large(revision).as_bytes()).unwrap();
        writer.sync_all().unwrap();
        let (second, new) = map(&path, |size| size - 100);
        assert!(first.bytes() == old, "revision {revision}: the first is not as it was opened");
        assert!(second.bytes() == new, "revision {revision}: the second is not as it was opened");
        // Who saved goes on with the same descriptor.
        writer.write_all(b"# more\n").unwrap();
        close(writer).unwrap();
        let more = large(revision) + "# more\n";
        for mount in fixture.mounts() {
            assert!(fs::read_to_string(mount.join("work/inbox/t-1.yaml")).unwrap() == more);
        }
        assert!(second.bytes() == new, "revision {revision}: the second changed by a save");
        is_itself(&path);
    }
    // A claim writes a version, too.
    let (first, old) = map(&path, |_| 0);
    let claimed = fixture.path("work/assigned/bob/t-1.yaml");
    fs::rename(&path, &claimed).unwrap();
    let (second, new) = map(&claimed, |size| size - 100);
    assert!(old != new);
    assert!(first.bytes() == old, "the first is not as it was opened");
    assert!(second.bytes() == new, "the second is not as it was opened");
    is_itself(&claimed);
    fixture.fsck_clean();
}

// P2.2 P7.6
#[test]
fn a_record_that_is_locked_and_mapped_stays_the_file_that_it_is() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let file = File::open(&path).unwrap();
    let mapped = Mapped::new(&file).unwrap();
    assert!(!mapped.bytes().is_empty());
    file.lock().unwrap();
    let ino = fs::metadata(&path).unwrap().ino();
    save(&path, Task::new("t-1").revision(1).text().as_bytes()).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().ino(), ino);
    assert!(File::open(&path).unwrap().try_lock().is_err(), "nobody else knows of the lock");
    drop((file, mapped));
    // The lock goes with the mapping, and no kernel waits until a file system has heard of that.
    until_polled("the lock is free", || File::open(&path).unwrap().try_lock().ok());
}

// P2.4
#[test]
fn the_size_is_that_of_what_is_read() {
    let fixture = Setup::default().mounts(2).start();
    let path = fixture.task("inbox", &Task::new("t-1"));
    for length in [0, 10_000, 1, 4096, 70_000] {
        let text = Task::new("t-1").with(&"#\n".repeat(length)).text();
        fs::read(&path).unwrap();
        save(&path, text.as_bytes()).unwrap();
        for mount in fixture.mounts() {
            let path = mount.join("work/inbox/t-1.yaml");
            assert_eq!(fs::metadata(&path).unwrap().len(), text.len() as u64);
            assert_eq!(fs::read(&path).unwrap().len(), text.len());
        }
    }
}
