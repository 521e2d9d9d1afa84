//! Races by rename: many processes, few tasks each, one winner for each task.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::harness::{Errno, Fixture, Said, Setup, Worker, Workers, lies, long, pile, whole, work};

/// Workers in every race.
pub const WORKERS: usize = 8;

/// The lanes of the workers.
pub fn lanes() -> Vec<String> {
    (0..WORKERS).map(|nth| format!("w{nth}")).collect()
}

/// How many tasks they race for.
pub fn tasks_wanted() -> usize {
    if long() { 5000 } else { 500 }
}

/// The workers' directories, spread over the mounts.
pub fn spread(fixture: &Fixture) -> Vec<PathBuf> {
    let mounts = fixture.mounts();
    (0..WORKERS).map(|nth| mounts[nth % mounts.len()].join("work")).collect()
}

/// A reader that goes over all files again and again until it is stopped, and fails the test if
/// one of them is torn.
pub struct Reader {
    stop: std::sync::Arc<AtomicBool>,
    thread: JoinHandle<usize>,
}

impl Reader {
    /// Starts it on a workspace.
    pub fn start(workspace: &Path) -> Reader {
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let (workspace, stopped) = (workspace.to_owned(), std::sync::Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let mut read = 0;
            while !stopped.load(Ordering::Relaxed) {
                for (id, dirs) in pile(&workspace) {
                    for dir in dirs {
                        let path = workspace.join(&dir).join(format!("{id}.yaml"));
                        // It may have gone to another place since it was listed.
                        let Ok(text) = fs::read(&path) else { continue };
                        whole(&id, &text).unwrap_or_else(|torn| panic!("{dir}/{id}: {torn}"));
                        read += 1;
                    }
                }
            }
            read
        });
        Reader { stop, thread }
    }

    /// Stops it.
    #[track_caller]
    pub fn finish(self) {
        self.stop.store(true, Ordering::Relaxed);
        let read = self.thread.join().unwrap_or_else(|torn| std::panic::resume_unwind(torn));
        assert!(read > 0, "the reader read nothing");
    }
}

/// Judges a race for claims: each task was won once, lies in its winner's lane, and has one event.
#[track_caller]
pub fn judge_claims(fixture: &Fixture, ids: &[String], said: &[Said]) {
    let mut winners: BTreeMap<&str, usize> = BTreeMap::new();
    for Said { nth, line } in said {
        let id = line.strip_prefix("won ").unwrap_or_else(|| panic!("worker {nth}: {line}"));
        let before = winners.insert(id, *nth);
        assert!(before.is_none(), "{id} was won twice, by {before:?} and {nth}");
    }
    assert_eq!(winners.len(), ids.len(), "not every task was won");
    let pile = pile(&fixture.work());
    assert_eq!(pile.len(), ids.len());
    let ledger = fixture.ledger();
    let claims = ledger.counts("claimed");
    for id in ids {
        let lane = format!("assigned/w{}", winners[id.as_str()]);
        assert_eq!(lies(&fixture.work(), &pile, id), lane, "{id}");
        assert_eq!(claims[id.as_str()], 1, "{id} in the ledger");
    }
    fixture.fsck_clean();
}

fn race(mounts: usize) {
    let fixture = Setup::default().mounts(mounts).lanes(lanes()).start();
    let ids = fixture.tasks(tasks_wanted());
    let reader = Reader::start(&fixture.mounts()[mounts - 1].join("work"));
    let workers = Workers::start(&Worker::Test("race::worker_renames"), &spread(&fixture), &[]);
    let said = workers.go_and_finish();
    reader.finish();
    judge_claims(&fixture, &ids, &said);
}

#[test]
#[ignore = "a worker process of other tests"]
fn worker_renames() {
    let Some(work) = work() else { return };
    let lane = work.dir.join(format!("assigned/w{}", work.nth));
    work.await_go();
    // In the order of the names, so that all of them want the same task at the same time.
    let mut names: Vec<_> =
        fs::read_dir(work.dir.join("inbox")).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    for name in names {
        match fs::rename(work.dir.join("inbox").join(&name), lane.join(&name)) {
            Ok(()) => work.say(&format!("won {}", name.to_str().unwrap().replace(".yaml", ""))),
            Err(error) => {
                let errno = Errno::from_io_error(&error);
                assert_eq!(errno, Some(Errno::NOENT), "a loser must see ENOENT: {error}");
            }
        }
    }
}

// P1.1 P2.2
#[test]
fn eight_processes_rename_and_each_task_has_one_winner() {
    race(1);
}

// P1.2 P2.2
#[test]
fn eight_processes_on_four_mounts_rename_and_each_task_has_one_winner() {
    race(4);
}

// P1.1
#[test]
fn mv_in_shell_loops_has_one_winner_each() {
    let fixture = Setup::default().mounts(4).lanes(lanes()).start();
    let ids = fixture.tasks(40);
    let script = "for n in 0 1 2 3 4 5 6 7; do (
            cd $BASE/m$((n % 4))/work
            for f in inbox/*.yaml; do
                if mv \"$f\" assigned/w$n/ 2>>$OUT/errors.$n; then echo \"$n won $f\"; fi
            done ) & done; wait";
    let ran = fixture.bash().with("BASE", fixture.base()).run(script).success();
    let said: Vec<Said> = ran
        .stdout
        .lines()
        .map(|line| {
            let (nth, rest) = line.split_once(' ').unwrap();
            let line = rest.replace("inbox/", "").replace(".yaml", "");
            Said { nth: nth.parse().unwrap(), line }
        })
        .collect();
    judge_claims(&fixture, &ids, &said);
    // What losers are told is what `mv` makes of ENOENT, and nothing else.
    for nth in 0..WORKERS {
        let file = fixture.outside(&format!("errors.{nth}"));
        for line in fs::read_to_string(file).unwrap_or_default().lines() {
            assert!(line.contains("No such file or directory"), "{line}");
        }
    }
}
