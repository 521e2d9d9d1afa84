//! Versions of what was saved very often.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use rustix::fs::RawDir;

use crate::harness::{Fixture, save};

// P11.3
#[test]
fn a_version_is_found_by_its_name_alone_however_many_there_are() {
    let fixture = Fixture::new();
    let save_times = |id: &str, times: usize| {
        let path = fixture.work().join(format!("inbox/{id}.yaml"));
        for nth in 0..times {
            let notes = "x".repeat(8_000);
            save(&path, format!("id: {id}\nnotes: {notes}{nth}\n").as_bytes()).unwrap();
        }
        let dir = fixture.path(".workfs/history/work").join(id);
        let names = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name());
        let names: Vec<_> = names.collect();
        assert_eq!(names.len(), times);
        (dir, names)
    };
    let (few, many) = (save_times("few", 3), save_times("many", 400));
    // A number of another's, and one that is written otherwise, are no versions of it.
    let other = few.1[0].to_str().unwrap();
    for name in [other.to_owned(), format!("0{other}"), format!("{other}~"), "0.yaml".to_owned()] {
        assert!(!many.0.join(&name).exists(), "{name}");
    }
    let took = |(dir, names): &(PathBuf, Vec<OsString>)| {
        let round = || {
            let begun = Instant::now();
            for name in names.iter().cycle().take(20) {
                assert!(fs::metadata(dir.join(name)).unwrap().len() > 8_000);
            }
            begun.elapsed()
        };
        // The best of some, since whatever else runs only makes it longer.
        (0..5).map(|_| round()).min().unwrap()
    };
    let (few, many) = (took(&few), took(&many));
    assert!(many < 8 * few, "{few:?} among 3, {many:?} among 400");
}

/// How many nanoseconds a process has computed.
fn computed(pid: u32) -> u64 {
    let of_thread = |thread: PathBuf| {
        let text = fs::read_to_string(thread.join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    };
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    threads.filter_map(|thread| of_thread(thread.unwrap().path())).sum()
}

// P11.3
#[test]
fn what_has_a_past_is_listed_with_work_that_grows_with_it_however_many_pieces_that_takes() {
    let fixture = Fixture::new();
    let (dir, daemon) = (fixture.path(".workfs/history/work"), fixture.daemon_pid());
    let work = |names: usize| {
        fixture.tasks(names);
        let round = || {
            let begin = computed(daemon);
            // Pieces of one page.
            let (open, mut piece) = (fs::File::open(&dir).unwrap(), Vec::with_capacity(4096));
            let mut pieces = RawDir::new(&open, piece.spare_capacity_mut());
            let mut listed = BTreeSet::new();
            while let Some(entry) = pieces.next() {
                listed.insert(entry.unwrap().file_name().to_owned());
            }
            let work = computed(daemon) - begin;
            // Beside `.`, `..` and the workspace below.
            assert_eq!(listed.len(), names + 3);
            work
        };
        (0..5).map(|_| round()).min().unwrap()
    };
    let (few, many) = (work(100), work(1_600));
    assert!(many < 40 * few, "{few} ns for 100, {many} ns for 1,600");
}
