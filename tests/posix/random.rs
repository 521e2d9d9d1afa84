//! Random operations of eight processes in one small tree, through two mounts, where names collide
//! all the time. What each call may say is not checked here (the reference model does that); that
//! no call fails in a way no file system does, that nothing hangs, and that the store is well is.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::PathBuf;

use crate::harness::{Errno, Random, Setup, Work, Worker, Workers, long, rename_with, work};

const PROCESSES: usize = 8;

/// Errors that a call may meet where others change the tree meanwhile.
const USUAL: [Errno; 9] = [
    Errno::NOENT,
    Errno::EXIST,
    Errno::NOTDIR,
    Errno::ISDIR,
    Errno::NOTEMPTY,
    Errno::INVAL,
    Errno::LOOP,
    Errno::PERM,
    Errno::NXIO,
];

fn path(random: &mut Random, work: &Work) -> PathBuf {
    let mut path = work.dir.with_file_name("scratchpad");
    for _ in 0..=random.below(3) {
        path.push(["a", "b", "c", "d\n", "\u{fc}"][random.below(5) as usize]);
    }
    path
}

fn open(random: &mut Random, path: PathBuf) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(random.below(2) == 0);
    options.append(random.below(8) == 0).truncate(false);
    options.open(path)
}

fn operation(which: u64, random: &mut Random, work: &Work, kept: &mut Vec<File>) -> io::Result<()> {
    let one = path(random, work);
    match which {
        0 | 1 => fs::create_dir(one),
        2 => fs::remove_dir(one),
        3 => fs::remove_file(one),
        4 | 5 => fs::rename(one, path(random, work)),
        6 => rename_with(&one, &path(random, work), rustix::fs::RenameFlags::EXCHANGE)
            .map_err(io::Error::from),
        7 => rename_with(&one, &path(random, work), rustix::fs::RenameFlags::NOREPLACE)
            .map_err(io::Error::from),
        8 | 9 => fs::hard_link(one, path(random, work)),
        10 => symlink(["a", "../b", "../../scratchpad/c/d", "."][random.below(4) as usize], one),
        11 => fs::set_permissions(one, fs::Permissions::from_mode(0o700)),
        12 => fs::read_dir(one)?.try_for_each(|entry| entry.map(drop)),
        13 => open(random, one)?.set_len(random.below(200_000)),
        14 => open(random, one)?.write_all(&vec![7; random.below(100_000) as usize]),
        15 => open(random, one)?.write_all_at(b"far", random.below(1 << 30)),
        16 => open(random, one)?.take(100_000).read_to_end(&mut Vec::new()).map(drop),
        17 => open(random, one)?.sync_all(),
        // Open files outlive their names.
        _ => {
            if kept.len() > 10 {
                kept.clear();
            }
            kept.push(open(random, one)?);
            Ok(())
        }
    }
}

#[test]
#[ignore = "a worker process of other tests"]
fn worker_at_random() {
    let Some(work) = work() else { return };
    let operations: usize = work.argument(0).parse().unwrap();
    let mut random = Random(0x9e37_79b9 + work.nth as u64);
    // A directory that another mount moves makes this mount's kernel say so now and then: see "What
    // is not promised" in docs/semantics.md.
    let alone = work.argument(1) == "1";
    let (mut kept, mut done) = (Vec::new(), 0);
    work.await_go();
    for nth in 0..operations {
        if nth % 100 == 0 {
            work.say("goes on");
        }
        let which = random.below(19);
        match operation(which, &mut random, &work, &mut kept) {
            Ok(()) => done += 1,
            Err(error) => {
                let errno = Errno::from_io_error(&error).unwrap();
                let usual = USUAL.contains(&errno) || (errno == Errno::STALE && !alone);
                assert!(usual, "{which}: {error}");
            }
        }
    }
    work.say(&format!("done {done}"));
}

/// Runs the workers; fails unless the tree and the store are well.
fn run_on(mounts: usize) {
    let operations = if long() { 50_000 } else { 1_500 };
    let fixture = Setup::default().mounts(mounts).start();
    fs::create_dir(fixture.path("scratchpad")).unwrap();
    let dirs: Vec<_> = (0..PROCESSES).map(|nth| fixture.mount(nth % mounts).join("work")).collect();
    let worker = Worker::Test("random::worker_at_random");
    let arguments = [operations.to_string(), mounts.to_string()];
    let workers = Workers::start(&worker, &dirs, &arguments.each_ref().map(String::as_str));
    let said = workers.go_and_finish();
    let done = said.iter().filter_map(|said| said.line.strip_prefix("done "));
    let done: usize = done.map(|done| done.parse::<usize>().unwrap()).sum();
    assert!(done > operations, "{done} calls of {} did something", PROCESSES * operations);
    // All mounts show the same.
    let walks = fixture.mounts().iter().map(|mount| fixture.walk(&mount.join("scratchpad")));
    let first = fixture.walk(&fixture.path("scratchpad"));
    walks.for_each(|walk| assert_eq!(walk, first));
    fixture.fsck_clean();
    fixture.sh("rm -r scratchpad").success();
    fixture.fsck_clean();
}

// P7.1
#[test]
fn eight_processes_at_random_in_one_mount() {
    run_on(1);
}

// P7.1 P7.4
#[test]
fn eight_processes_at_random_in_two_mounts() {
    run_on(2);
}
