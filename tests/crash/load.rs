//! The load: processes that create, claim, save and finish tasks, and say what was acknowledged.
//!
//! Each says `try …` before a call and what became of it after the call has returned, to a pipe
//! that does not lie in the mount.

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::harness::{Errno, Task, Work, close, number_of, save, work};

/// Workers in every round.
pub const WORKERS: usize = 8;

fn renamed(from: &Path, to: &Path) -> Result<(), Errno> {
    fs::rename(from, to).map_err(|error| Errno::from_io_error(&error).unwrap())
}

/// Says what a call is to do, does it, and says what became of it. Gives `None` at the daemon's
/// end; losing a race, or being refused for it, is no change.
fn step(work: &Work, what: &str, call: impl FnOnce() -> Result<(), Errno>) -> Option<bool> {
    work.say(&format!("try {what}"));
    match call() {
        Ok(()) => {
            work.say(&format!("ok {what}"));
            Some(true)
        }
        Err(errno) if work.is_end(errno) => None,
        // Gone, being written, or a draft whose writer was killed.
        Err(Errno::NOENT | Errno::BUSY | Errno::PERM) => {
            work.say(&format!("no {what}"));
            Some(false)
        }
        Err(errno) => panic!("{what}: {errno}"),
    }
}

#[test]
#[ignore = "a worker process of other tests"]
fn worker_loads() {
    let Some(work) = work() else { return };
    let round = work.argument(0).to_owned();
    work.await_go();
    for count in 0.. {
        if turn(&work, &round, count).is_none() {
            return;
        }
    }
}

/// One turn: notes it in a plain file, creates a task, claims one, saves it, finishes every other.
fn turn(work: &Work, round: &str, count: u64) -> Option<()> {
    let me = format!("w{}", work.nth);
    let log = work.dir.join(format!("../scratchpad/r{round}-{me}"));
    step(work, &format!("append r{round}-{me} {count}"), || append(&log, count))?;
    let inbox = work.dir.join("inbox");
    let lane = work.dir.join("assigned").join(&me);
    let new = Task::new(&format!("r{round}-{me}-{count}"));
    let path = inbox.join(new.file());
    step(work, &format!("create {} 0", path_id(&path)), || save(&path, new.text().as_bytes()))?;

    let mut names: Vec<_> = match fs::read_dir(&inbox) {
        Ok(entries) => entries.flatten().map(|entry| entry.file_name()).collect(),
        Err(_) => return None,
    };
    names.sort();
    // Each begins somewhere else, but not so far apart that they never meet.
    let start = names.len() * (work.nth / 2) / 4;
    let name = names.get(start)?.to_owned();
    let (from, mine) = (inbox.join(&name), lane.join(&name));
    let id = path_id(&from);
    if !step(work, &format!("claim {id}"), || renamed(&from, &mine))? {
        return Some(());
    }
    for _ in 0..2 {
        let text = fs::read_to_string(&mine).ok()?;
        let before = number_of(&text, "revision").unwrap();
        let after = before + 1;
        let text = text
            .replace(&format!("revision: {before}\n"), &format!("revision: {after}\n"))
            .replace(
                &format!("revision_at_end: {before}\n"),
                &format!("revision_at_end: {after}\n"),
            )
            .replace("status: assigned\n", "status: in_progress\n");
        let saved = if after.is_multiple_of(2) {
            step(work, &format!("save {id} {after}"), || save(&mine, text.as_bytes()))?
        } else {
            let temp = lane.join(format!("{id}.tmp.{}.c0ffee", std::process::id()));
            let replace = || save(&temp, text.as_bytes()).and_then(|()| renamed(&temp, &mine));
            step(work, &format!("save {id} {after}"), replace)?
        };
        assert!(saved, "nobody else works on {id}");
    }
    if count.is_multiple_of(2) {
        let text = fs::read_to_string(&mine).ok()?;
        let result = text.clone() + "result:\n  summary: it works\n";
        let revision = number_of(&text, "revision").unwrap();
        step(work, &format!("save {id} {revision}"), || save(&mine, result.as_bytes()))?;
        let done = work.dir.join("done").join(&me).join(&name);
        step(work, &format!("finish {id}"), || renamed(&mine, &done))?;
    }
    Some(())
}

/// Adds a line to a plain file.
fn append(path: &Path, count: u64) -> Result<(), Errno> {
    let errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap();
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path).map_err(errno)?;
    let written = file.write_all(format!("line {count}\n").as_bytes()).map_err(errno);
    written.and(close(file))
}

fn path_id(path: &Path) -> String {
    path.file_stem().unwrap().to_str().unwrap().to_owned()
}
