//! Whose text a size is of: to who has closed, inherited or opened by now, while others write and claim.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::harness::{Fixture, Mapped, Setup, Task, close, python, save};

/// A task's text of some length.
fn text(lines: usize) -> String {
    Task::new("t-1").with(&"#\n".repeat(lines)).text()
}

/// A record with such a text.
fn record(fixture: &Fixture, lines: usize) -> std::path::PathBuf {
    let path = fixture.task("inbox", &Task::new("t-1"));
    save(&path, text(lines).as_bytes()).unwrap();
    path
}

fn size(seen: std::io::Result<fs::Metadata>) -> usize {
    usize::try_from(seen.unwrap().len()).unwrap()
}

/// Saves a text of some length by another process.
fn save_elsewhere(fixture: &Fixture, lines: usize) {
    fs::write(fixture.outside("text"), text(lines)).unwrap();
    fixture.sh("cat \"$OUT/text\" > work/inbox/t-1.yaml").success();
}

// P2.4
#[test]
fn who_has_closed_hears_the_size_of_what_was_saved_since_and_who_has_a_copy_does_not() {
    let fixture = Fixture::new();
    let path = record(&fixture, 0);
    let ino = fs::metadata(&path).unwrap().ino();
    let saves = |lines| {
        save(&path, text(lines).as_bytes()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().ino(), ino, "another file");
        text(lines).len()
    };

    // A kernel tells late that nobody has a file any more: here, when the mapping goes.
    let mut writer = OpenOptions::new().read(true).write(true).truncate(true).open(&path).unwrap();
    writer.write_all(text(0).as_bytes()).unwrap();
    let mapped = Mapped::new(&writer).unwrap();
    close(writer).unwrap();
    for lines in [10_000, 1] {
        assert_eq!(saves(lines), size(fs::metadata(&path)));
    }
    // Another descriptor is not that one's.
    let mut reader = File::open(&path).unwrap();
    std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
    saves(100);
    // Nor is it closed by a child, which closes its copies where its program begins.
    fixture.sh(":").success();
    assert_eq!(size(reader.metadata()), text(1).len());
    drop((reader, mapped));

    let mut reader = File::open(&path).unwrap();
    std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
    let (copy, mapped) = (reader.try_clone().unwrap(), Mapped::new(&reader).unwrap());
    std::thread::spawn(|| close(reader)).join().unwrap().unwrap();
    saves(20_000);
    assert_eq!(size(copy.metadata()), text(100).len(), "not that of what was opened");
    close(copy).unwrap();
    assert_eq!(saves(30_000), size(fs::metadata(&path)));
    drop(mapped);
    fixture.fsck_clean();
}

// P2.4
#[test]
fn what_was_refused_has_no_size_for_who_has_closed_it() {
    let fixture = Setup::default().mounts(2).start();
    let path = record(&fixture, 3);
    let mut writer = OpenOptions::new().read(true).write(true).truncate(true).open(&path).unwrap();
    writer.write_all(format!("{}notes: \"x\n", text(200)).as_bytes()).unwrap();
    let mapped = Mapped::new(&writer).unwrap();
    close(writer).unwrap_err();
    assert_eq!(size(fs::metadata(&path)), text(3).len());
    save_elsewhere(&fixture, 7);
    assert_eq!(size(fs::metadata(&path)), text(7).len());
    // Nor does a descriptor of another mount, whose files have the same numbers, count as one of this.
    let there = File::open(fixture.mount(1).join("work/inbox/t-1.yaml")).unwrap();
    assert_eq!(size(fs::metadata(&path)), text(7).len());
    drop((mapped, there));
}

// P2.2, P2.4
#[test]
fn who_reads_while_another_writes_anew_finds_its_own_end() {
    let fixture = Fixture::new();
    let path = record(&fixture, 9);
    let reads = || {
        let mut reader = File::open(&path).unwrap();
        let end = reader.seek(SeekFrom::End(0)).unwrap();
        reader.rewind().unwrap();
        let mut read = vec![0; usize::try_from(end).unwrap()];
        reader.read_exact(&mut read).unwrap();
        String::from_utf8(read).unwrap()
    };
    let told = || fixture.sh("stat -c %s work/inbox/t-1.yaml").success().stdout;
    let mut writer = OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
    for piece in ["", &text(300)[..100], &text(300)[100..]] {
        writer.write_all(piece.as_bytes()).unwrap();
        for _ in 0..3 {
            assert_eq!(reads(), text(9));
            assert_eq!(told(), format!("{}\n", text(9).len()));
        }
    }
    close(writer).unwrap();
    assert_eq!(reads(), text(300));
}

// P2.4
#[test]
fn an_inherited_descriptor_has_the_size_of_what_it_reads() {
    let fixture = Fixture::new();
    let path = record(&fixture, 2);
    let (python, path) = (python(), path.to_str().unwrap());
    let script = format!(
        "exec 5< {path}; cat \"$OUT/text\" > {path}; \
         '{}' -c 'import os; s = os.fstat(5).st_size, os.lseek(5, 0, 2); os.lseek(5, 0, 0)\n\
         print(*s, len(os.read(5, 99999)))'; :",
        python.display()
    );
    fs::write(fixture.outside("text"), text(900)).unwrap();
    let told = fixture.sh(&script).success().stdout;
    let own = text(2).len();
    assert_eq!(told, format!("{own} {own} {own}\n"));
    // What a child has written its parent's descriptor has, too.
    fs::write(fixture.outside("text"), text(70)).unwrap();
    let script = format!(
        "'{}' -c 'import os, subprocess\n\
         f = os.open(\"{path}\", os.O_RDWR | os.O_TRUNC)\n\
         subprocess.run([\"cat\", os.environ[\"OUT\"] + \"/text\"], stdout=f, check=True)\n\
         print(os.fstat(f).st_size)'",
        python.display()
    );
    assert_eq!(fixture.sh(&script).success().stdout, format!("{}\n", text(70).len()));
}

// P2.4
#[test]
fn what_a_thread_has_written_that_is_gone_has_its_size() {
    let fixture = Fixture::new();
    let path = record(&fixture, 2);
    let mut file = OpenOptions::new().read(true).write(true).truncate(true).open(&path).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| (&file).write_all(text(40).as_bytes()).unwrap());
    });
    assert_eq!(size(file.metadata()), text(40).len());
    file.rewind().unwrap();
    close(file).unwrap();
}

/// Does something over and over in another thread while this lives.
fn meanwhile<T>(again: impl Fn() + Sync, work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                again();
            }
        });
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        is_over.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

// P2.2, P2.4
#[test]
fn who_opens_while_another_mount_changes_it_reads_as_much_as_fstat_says() {
    let fixture = Setup::default().mounts(2).start();
    record(&fixture, 5);
    let there = |dir: &str| fixture.mount(1).join(dir).join("t-1.yaml");
    let (inbox, lane) = (there("work/inbox"), there("work/assigned/bob"));
    let claims = || {
        fs::rename(&inbox, &lane).unwrap();
        fs::rename(&lane, &inbox).unwrap();
    };
    let saves = || {
        for lines in [60, 5] {
            // What this process has read meanwhile is another version: that it hears so is not the point here.
            let _ = save(&inbox, text(lines).as_bytes());
        }
    };
    let reads = |path: &Path| {
        let mut read = 0;
        for _ in 0..4000 {
            let Ok(mut file) = File::open(path) else { continue };
            let told = size(file.metadata());
            let mut whole = Vec::new();
            file.read_to_end(&mut whole).unwrap();
            assert_eq!(whole.len(), told, "{}", String::from_utf8_lossy(&whole));
            read += 1;
        }
        assert!(read > 100, "{read}");
    };
    meanwhile(claims, || reads(&fixture.path("work/inbox/t-1.yaml")));
    meanwhile(saves, || reads(&fixture.path("work/inbox/t-1.yaml")));
}

// P3.7, P7.4
#[test]
fn by_the_name_that_a_record_leaves_nobody_opens_what_it_becomes() {
    let fixture = Setup::default().mounts(2).start();
    for nth in 0..60 {
        let id = format!("t-{nth}");
        fixture.task("inbox", &Task::new(&id));
        let name = format!("{id}.yaml");
        let seen = fixture.path("work/inbox").join(&name);
        let [from, to] = ["work/inbox", "work/assigned/bob"]
            .map(|dir| fixture.mount(nth % 2).join(dir).join(&name));
        let is_claimed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while let Ok(text) = fs::read_to_string(&seen) {
                    assert!(!text.contains("agent: bob"), "{text}");
                    assert!(!is_claimed.load(Ordering::Acquire), "it is there still");
                }
            });
            fs::rename(from, to).unwrap();
        });
        is_claimed.store(true, Ordering::Release);
    }
}
