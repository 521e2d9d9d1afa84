//! The content of ordinary files.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};

use crate::harness::{Errno, Fixture, Mapped, Setup, Task, python, until_polled};

fn scratch() -> (Fixture, std::path::PathBuf) {
    let fixture = Fixture::new();
    let dir = fixture.path("scratchpad");
    fs::create_dir(&dir).unwrap();
    (fixture, dir)
}

// P7.1
#[test]
fn what_is_written_is_read() {
    let (_fixture, dir) = scratch();
    // Around the size of a chunk in the store, and far above it.
    for length in [0, 1, 4095, 4096, 65_535, 65_536, 65_537, 131_072, 1_000_003, 5 << 20] {
        let bytes: Vec<u8> = (0..length).map(|at: usize| (at * 31 % 251) as u8).collect();
        let path = dir.join(format!("f{length}"));
        fs::write(&path, &bytes).unwrap();
        assert_eq!(fs::read(&path).unwrap(), bytes, "{length} bytes");
        assert_eq!(fs::metadata(&path).unwrap().len(), length as u64);
    }
}

// P7.1
#[test]
fn pieces_are_written_anywhere() {
    let (_fixture, dir) = scratch();
    let path = dir.join("f");
    let file = File::create(&path).unwrap();
    let mut model = vec![0_u8; 300_000];
    let mut seed = 1_u64;
    let mut end = 0;
    for round in 0..200 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let at = (seed >> 33) as usize % 290_000;
        let piece = vec![round as u8; 1 + (seed >> 20) as usize % 9_000];
        file.write_all_at(&piece, at as u64).unwrap();
        model[at..at + piece.len()].copy_from_slice(&piece);
        end = end.max(at + piece.len());
    }
    assert!(fs::read(&path).unwrap() == model[..end], "through another descriptor");
    let mut again = vec![0; end];
    File::open(&path).unwrap().read_exact_at(&mut again, 0).unwrap();
    assert!(again == model[..end]);
}

// P7.1
#[test]
fn what_is_no_plain_file_has_no_holes() {
    let fixture = Fixture::new();
    let (plain, task) = (fixture.path("work/t-1"), Task::new("t-1"));
    fs::write(&plain, task.text()).unwrap();
    let file = File::open(&plain).unwrap();
    fs::rename(&plain, fixture.path("work/inbox/t-1.yaml")).unwrap();
    // A program that leaves out holes would have copied nothing.
    for file in [file, File::open(fixture.path(".workfs/events")).unwrap()] {
        use rustix::fs::{SeekFrom, seek};
        let size = file.metadata().unwrap().len();
        assert_eq!(seek(&file, SeekFrom::Data(1)), Ok(1));
        assert_eq!(seek(&file, SeekFrom::Hole(1)), Ok(size));
        assert_eq!(seek(&file, SeekFrom::Data(size)), Err(rustix::io::Errno::NXIO));
    }
}

// P7.1
#[test]
fn append_truncate_and_seek() {
    let (_fixture, dir) = scratch();
    let path = dir.join("f");
    let mut one = OpenOptions::new().append(true).create(true).open(&path).unwrap();
    let mut two = OpenOptions::new().append(true).open(&path).unwrap();
    for nth in 0..100 {
        writeln!(one, "one {nth}").unwrap();
        writeln!(two, "two {nth}").unwrap();
    }
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 200);
    assert!((0..100).all(|nth| text.contains(&format!("one {nth}\ntwo {nth}\n"))), "{text}");

    let mut file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    file.set_len(3).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"one");
    file.set_len(100_000).unwrap();
    let bytes = fs::read(&path).unwrap();
    assert!(bytes.len() == 100_000 && bytes[3..].iter().all(|byte| *byte == 0));
    file.seek(SeekFrom::End(-1)).unwrap();
    file.write_all(b"xy").unwrap();
    assert_eq!(file.metadata().unwrap().len(), 100_001);
    let mut last = String::new();
    file.seek(SeekFrom::Start(99_999)).unwrap();
    file.read_to_string(&mut last).unwrap();
    assert_eq!(last, "xy");
}

// P7.1
#[test]
fn truncation_by_name_and_by_open() {
    let (fixture, dir) = scratch();
    let path = dir.join("f");
    fs::write(&path, vec![7; 200_000]).unwrap();
    fixture.sh("truncate -s 70000 scratchpad/f").success();
    assert!(fs::read(&path).unwrap() == vec![7; 70_000]);
    fixture.sh("truncate -s 70001 scratchpad/f").success();
    assert_eq!(fs::read(&path).unwrap()[70_000], 0, "what was cut off does not come back");
    drop(OpenOptions::new().write(true).truncate(true).open(&path).unwrap());
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);
}

// P7.1
#[test]
fn a_sparse_file_takes_no_room_for_its_holes() {
    let (fixture, dir) = scratch();
    let path = dir.join("f");
    let before = fs::metadata(fixture.store()).unwrap().len();
    let file = File::create(&path).unwrap();
    file.write_all_at(b"end", 1 << 30).unwrap();
    drop(file);
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!(metadata.len(), (1 << 30) + 3);
    assert!(metadata.blocks() * 512 < 10 << 20, "{} blocks", metadata.blocks());
    let mut middle = [1; 4096];
    File::open(&path).unwrap().read_exact_at(&mut middle, 500 << 20).unwrap();
    assert_eq!(middle, [0; 4096]);
    let after = fs::metadata(fixture.store()).unwrap().len();
    assert!(after - before < 10 << 20, "the store grew by {}", after - before);
    let said = fixture.sh("truncate -s 2T scratchpad/g").failure();
    assert!(said.stderr.contains("File too large"), "{said}");
}

// P7.1
#[test]
fn an_unlinked_file_lives_until_it_is_closed() {
    let (_fixture, dir) = scratch();
    let path = dir.join("f");
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    file.write_all(b"still ").unwrap();
    fs::remove_file(&path).unwrap();
    assert!(!path.exists());
    fs::write(&path, b"another file").unwrap();
    file.write_all(b"here").unwrap();
    file.rewind().unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "still here");
    assert_eq!(file.metadata().unwrap().nlink(), 0);
    // It can be opened once more by its descriptor.
    let again = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    assert_eq!(fs::read_to_string(&again).unwrap(), "still here");
    let mut writer = OpenOptions::new().append(true).open(&again).unwrap();
    writer.write_all(b", too").unwrap();
    drop(writer);
    assert_eq!(fs::read_to_string(&again).unwrap(), "still here, too");
    assert_eq!(fs::read(&path).unwrap(), b"another file");
}

// P7.1
#[test]
fn what_is_held_without_our_hearing_of_it_lives_until_it_is_let_go() {
    let fixture = Setup::default().mounts(2).start();
    // While it looks, files go for good, and with them what is not held.
    let script = "
import os, time
def hold(way, name):
    os.mkfifo('pipe')
    pipe = os.open('pipe', os.O_RDWR | os.O_NONBLOCK)
    path = os.open(way(name), os.O_PATH)
    os.mkdir('dir')
    os.chdir(way('dir'))
    for gone, how in [('pipe', os.unlink), (name, os.unlink), ('dir', os.rmdir)]:
        how(f'{here}/{gone}')
    return pipe, path
def still(pipe, path):
    assert os.write(pipe, b'x') == 1 and os.read(pipe, 1) == b'x'
    for flags in [os.O_RDONLY, os.O_RDWR | os.O_CREAT]:
        again = os.open(f'/proc/self/fd/{path}', flags)
        assert os.read(again, 9) == text.encode()
        os.close(again)
    for what in [pipe, path, '.']:
        # What a kernel remembers is not asked for: a change is.
        os.chmod(what if what == '.' else f'/proc/self/fd/{what}', 0o700)
        assert os.stat(what).st_nlink == 0, what
    assert os.listdir('.') == []
other = lambda name: f'{os.environ[\"OTHER\"]}/{name}'
for way, text in [(lambda name: name, 'text'), (other, 'text'), (lambda name: name, ''), (other, '')]:
    here = os.getcwd()
    open('text', 'w').write(text)
    held = hold(way, 'text')
    end = time.monotonic() + 1
    while time.monotonic() < end:
        open(f'{here}/passing', 'w').close()
        os.unlink(f'{here}/passing')
        still(*held)
    os.chdir(here)
    for one in held:
        os.close(one)
";
    fs::write(fixture.outside("held.py"), script).unwrap();
    let run = format!("OTHER={} {} $OUT/held.py", fixture.mount(1).display(), python().display());
    fixture.sh(&run).success();
    fixture.fsck_clean();
}

// P7.1
#[test]
fn a_replaced_file_stays_for_who_has_it_open() {
    let (_fixture, dir) = scratch();
    let (old, new) = (dir.join("old"), dir.join("new"));
    fs::write(&old, b"old").unwrap();
    fs::write(&new, b"new").unwrap();
    let file = File::open(&old).unwrap();
    fs::rename(&new, &old).unwrap();
    assert_eq!(std::io::read_to_string(file).unwrap(), "old");
    assert_eq!(fs::read(&old).unwrap(), b"new");
}

// P7.1
#[test]
fn exclusive_creation_has_one_winner() {
    let (_fixture, dir) = scratch();
    let path = dir.join("lock");
    let winners: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let mut options = OpenOptions::new();
                    match options.write(true).create_new(true).open(&path) {
                        Ok(_) => 1,
                        Err(error) => {
                            assert_eq!(Errno::from_io_error(&error), Some(Errno::EXIST));
                            0
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(winners, 1);
}

// P7.1
#[test]
fn direct_and_mapped_access() {
    let (_fixture, dir) = scratch();
    let path = dir.join("f");
    fs::write(&path, vec![b'a'; 10_000]).unwrap();
    let mapped = Mapped::new(&File::open(&path).unwrap()).unwrap();
    assert!(mapped.bytes() == vec![b'a'; 10_000]);
    let mut options = OpenOptions::new();
    let file = options.write(true).custom_flags(libc::O_DSYNC).open(&path).unwrap();
    file.write_all_at(&[b'b'; 5000], 0).unwrap();
    assert!(mapped.bytes()[..5000] == [b'b'; 5000], "a mapping sees what is written");
}

// P7.1
#[test]
fn locks_hold_between_processes() {
    let (fixture, _dir) = scratch();
    if !crate::harness::needs(&["flock"]) {
        return;
    }
    let script = "cd scratchpad; : > n; echo 0 > count; for i in 1 2 3 4; do (
        for j in 1 2 3 4 5 6 7 8 9 10; do
            flock n bash -c 'read c < count; echo $((c + 1)) > count'; done ) & done; wait
        cat count";
    assert_eq!(fixture.sh(script).success().stdout, "40\n");
}

// P7.1
#[test]
fn a_running_program_is_not_emptied() {
    let fixture = Setup::default().mounts(2).start();
    let [path, beside] = [0, 1].map(|nth| fixture.mount(nth).join("program"));
    // Another process writes it: a child that another test starts in that moment would inherit this
    // one's descriptor, and what is open for writing cannot be run.
    fixture.bash().with("F", &path).run("cp \"$(command -v sleep)\" \"$F\"").success();
    let length = fs::metadata(&path).unwrap().len();
    let mut running = std::process::Command::new(&path).arg("600").spawn().unwrap();
    for path in [&path, &beside] {
        for (write, flags) in [(true, 0), (true, libc::O_TRUNC), (false, libc::O_TRUNC)] {
            let mut options = OpenOptions::new();
            let opened = options.read(true).write(write).custom_flags(flags).open(path);
            assert_eq!(Errno::from_io_error(&opened.unwrap_err()), Some(Errno::TXTBSY));
        }
        let cut =
            format!("{} -c 'import os; os.truncate(os.environ[\"F\"], 0)'", python().display());
        assert!(fixture.bash().with("F", path).run(&cut).stderr.contains("Text file busy"));
    }
    assert_eq!(fs::metadata(&path).unwrap().len(), length);
    assert!(running.try_wait().unwrap().is_none(), "it still runs");
    running.kill().unwrap();
    running.wait().unwrap();
    drop(OpenOptions::new().write(true).open(&path).unwrap());
    // The kernel tells a moment later that it has ended.
    until_polled("a writer beside", || fs::write(&beside, "new").ok());
}

// P7.1
#[test]
fn lines_that_are_appended_through_two_mounts_stay_whole() {
    let fixture = Setup::default().mounts(2).start();
    let line = |writer: usize, nth: usize| format!("{writer} {nth} {}\n", "x".repeat(250));
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let path = fixture.mount(writer % 2).join("log");
            scope.spawn(move || {
                for nth in 0..200 {
                    let mut log = OpenOptions::new().append(true).create(true).open(&path).unwrap();
                    log.write_all(line(writer, nth).as_bytes()).unwrap();
                }
            });
        }
    });
    let text = fs::read_to_string(fixture.path("log")).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    let mut expected: Vec<String> = (0..4)
        .flat_map(|writer| (0..200).map(move |nth| line(writer, nth).trim_end().to_owned()))
        .collect();
    expected.sort_unstable();
    assert_eq!(lines, expected);
    assert_eq!(fs::metadata(fixture.mount(1).join("log")).unwrap().len(), text.len() as u64);
}

// P7.1
#[test]
fn what_a_large_file_had_is_free_when_it_is_removed() {
    let (fixture, dir) = scratch();
    let path = dir.join("large");
    let file = File::create(&path).unwrap();
    for at in 0..80 {
        file.write_all_at(&vec![at as u8; 1 << 20], at << 20).unwrap();
    }
    let open = rusqlite::Connection::open(fixture.store()).unwrap();
    let chunks = || {
        let count = "SELECT count(*) FROM chunks";
        open.query_row(count, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!(chunks(), 80 * 16);
    drop(file);
    fs::remove_file(&path).unwrap();
    until_polled("it is gone", || (chunks() == 0).then_some(()));
    drop(open);
    fixture.fsck_clean();
}
