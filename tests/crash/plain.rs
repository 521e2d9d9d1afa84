//! Ordinary files under SIGKILL: each is old or new, never a mix; names, links and counts are those
//! that were acknowledged; nothing is left of what had no name.
//!
//! Each worker has a directory of its own. It says what it is about to do to a name and what the
//! name then stands for (a text's number, or nothing), and says so again when it is done.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::harness::{Errno, Fixture, Setup, Work, Worker, Workers, await_end, send_signal, work};
use crate::points::{Kill, Random, kills};

const WORKERS: usize = 8;

/// How many rounds a directory is looked at again: what more of them would tell is not worth their time.
const ROUNDS_KEPT: usize = 5;

/// A text that tells its number, as long as no other near it.
fn text(number: u64) -> Vec<u8> {
    let mut text = format!("{number}\n").into_bytes();
    // Some are so long that most of them lies beside the store's tables.
    let more = if number % 8 == 3 { 3 << 20 } else { 0 };
    text.resize(1 + number as usize * 7919 % 200_000 + more + text.len(), (number % 251) as u8);
    text
}

/// The number of a text, which must be whole.
#[track_caller]
fn number_of(path: &Path) -> u64 {
    let mut found = Vec::new();
    File::open(path).unwrap().read_to_end(&mut found).unwrap();
    let line = found.split(|byte| *byte == b'\n').next().unwrap();
    let number = std::str::from_utf8(line).ok().and_then(|line| line.parse().ok());
    let number = number.unwrap_or_else(|| panic!("{}: {line:?}", path.display()));
    assert!(found == text(number), "{}: {number} is torn", path.display());
    number
}

/// What a call gave; `None` at the daemon's end.
#[track_caller]
fn alive<T>(work: &Work, result: std::io::Result<T>) -> Option<T> {
    match result.map_err(|error| Errno::from_io_error(&error).unwrap()) {
        Ok(value) => Some(value),
        Err(errno) if work.is_end(errno) => None,
        Err(errno) => panic!("{errno}"),
    }
}

/// Does something to a name that then stands for `after`; `None` at the daemon's end.
fn step(
    work: &Work,
    name: &str,
    after: &str,
    call: impl FnOnce() -> std::io::Result<()>,
) -> Option<()> {
    let what = format!("{} {name} {after}", work.argument(0));
    work.say(&format!("try {what}"));
    alive(work, call())?;
    work.say(&format!("ok {what}"));
    Some(())
}

/// Everything of one number. What is not told by a step is not judged.
fn turn(work: &Work, dir: &Path, number: u64, kept: &mut Vec<File>) -> Option<()> {
    let (doc, temp) = (dir.join("doc"), dir.join("temp"));
    let mut file = alive(work, File::create(&temp))?;
    alive(work, file.write_all(&text(number)))?;
    if number.is_multiple_of(2) {
        alive(work, file.sync_all())?;
    }
    drop(file);
    step(work, "doc", &number.to_string(), || fs::rename(&temp, &doc))?;
    let link = format!("link-{}", number % 5);
    if number > 5 {
        step(work, &link, "-", || fs::remove_file(dir.join(&link)))?;
    }
    step(work, &link, &number.to_string(), || fs::hard_link(&doc, dir.join(&link)))?;
    // A file without a name lives as long as the daemon, at most.
    let nameless = dir.join("nameless");
    let mut file = alive(work, File::create(&nameless))?;
    alive(work, fs::remove_file(&nameless))?;
    alive(work, file.write_all(&text(number)))?;
    kept.push(file);
    kept.truncate(20);
    let (made, old) = (format!("dir-{number}"), format!("dir-{}", number.saturating_sub(2)));
    step(work, &made, "0", || fs::create_dir(dir.join(&made)))?;
    if number > 2 {
        step(work, &old, "-", || fs::remove_dir(dir.join(&old)))?;
    }
    Some(())
}

#[test]
#[ignore = "a worker process of other tests"]
fn worker_writes() {
    let Some(work) = work() else { return };
    let round = work.argument(0);
    let dir = work.dir.join(format!("{round}-{}", work.nth));
    work.await_go();
    if alive(&work, fs::create_dir(&dir)).is_none() {
        return;
    }
    let mut kept = Vec::new();
    for number in 1.. {
        if turn(&work, &dir, number, &mut kept).is_none() {
            return;
        }
    }
}

/// What a name stands for, as far as it is known; `None` is nothing.
#[derive(Debug, Default)]
struct Name {
    acknowledged: Option<u64>,
    tried: Option<Option<u64>>,
}

#[derive(Default)]
struct Names(BTreeMap<(String, String), Name>);

impl Names {
    fn hear(&mut self, nth: usize, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let [word, round, name, after] = words[..] else { panic!("{line}") };
        let name = self.0.entry((format!("{round}-{nth}"), name.to_owned())).or_default();
        let after = after.parse().ok();
        match word {
            "try" => name.tried = Some(after),
            _ => *name = Name { acknowledged: after, tried: None },
        }
    }

    #[track_caller]
    fn judge(&self, fixture: &Fixture) {
        let root = fixture.path("scratchpad");
        for ((dir, name), known) in &self.0 {
            let path = root.join(dir).join(name);
            let found = match fs::symlink_metadata(&path) {
                Err(_) => None,
                Ok(metadata) if metadata.is_dir() => Some(0),
                Ok(_) => Some(number_of(&path)),
            };
            let right = found == known.acknowledged || Some(found) == known.tried;
            assert!(right, "{dir}/{name} is {found:?}: {known:?}");
        }
        for dir in fs::read_dir(&root).unwrap() {
            let mut names: HashMap<u64, u64> = HashMap::new();
            for entry in fs::read_dir(dir.unwrap().path()).unwrap() {
                let metadata = entry.unwrap().metadata().unwrap();
                if metadata.is_file() {
                    let count = names.entry(metadata.ino()).or_insert(metadata.nlink());
                    *count -= 1;
                }
            }
            assert!(names.values().all(|left| *left == 0), "{names:?} names are counted too much");
        }
        fixture.fsck_clean();
    }

    /// Takes away what the workers of a round made.
    fn remove(&mut self, fixture: &Fixture, round: usize) {
        for dir in (0..WORKERS).map(|nth| format!("{round}-{nth}")) {
            match fs::remove_dir_all(fixture.path("scratchpad").join(&dir)) {
                // The daemon ended before it made one.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                removed => removed.unwrap(),
            }
            self.0.retain(|(known, _), _| *known != dir);
        }
    }
}

// P4.1 P4.2 P7.1
#[test]
fn plain_files_are_old_or_new_and_their_links_are_right() {
    let mut random = Random::new();
    let mut fixture = Setup::default().mounts(2).start();
    fs::create_dir(fixture.path("scratchpad")).unwrap();
    let mut names = Names::default();
    for (nth, kill) in kills(&mut random).into_iter().enumerate() {
        println!("round {nth}: {kill:?}");
        fixture.unmount_all();
        fixture.set_variable("WORKFS_FAULT", kill.fault().as_deref());
        fixture.mount_all();
        let dirs: Vec<PathBuf> =
            (0..WORKERS).map(|nth| fixture.mount(nth % 2).join("scratchpad")).collect();
        let (pid, round) = (fixture.daemon_pid(), nth.to_string());
        let mut workers = Workers::start(&Worker::Test("plain::worker_writes"), &dirs, &[&round]);
        workers.go();
        let mut acknowledged = 0;
        while let Some(said) = workers.next() {
            names.hear(said.nth, &said.line);
            let is_answer = said.line.starts_with("ok ");
            acknowledged += u64::from(is_answer);
            if is_answer && matches!(kill, Kill::After(count) if count == acknowledged) {
                send_signal(pid, Signal::KILL);
            }
        }
        assert!(workers.finish().is_empty());
        await_end(pid);
        fixture.set_variable("WORKFS_FAULT", None);
        fixture.mount_all();
        names.judge(&fixture);
        if let Some(old) = nth.checked_sub(ROUNDS_KEPT) {
            names.remove(&fixture, old);
        }
    }
}
