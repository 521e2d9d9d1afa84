//! What is done through one mount is seen through all.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::harness::{Errno, Fixture, Setup, Task, over_and_over, until_polled};

fn two() -> Fixture {
    let fixture = Setup::default().mounts(2).start();
    fs::create_dir(fixture.path("scratchpad")).unwrap();
    fixture
}

/// A name that a kernel has cached may be there for a moment longer, until the notice has come.
fn soon_gone(path: &Path) {
    until_polled("the name goes", || (!path.exists()).then_some(()));
}

// P7.4
#[test]
fn a_change_is_seen_through_the_other_mount() {
    let fixture = two();
    let here = fixture.mount(0).join("scratchpad");
    let there = fixture.mount(1).join("scratchpad");
    for round in 0..100 {
        let (name, text) = (format!("f{}", round % 3), "x".repeat(round * 100));
        fs::write(here.join(&name), &text).unwrap();
        assert_eq!(fs::metadata(there.join(&name)).unwrap().len(), text.len() as u64, "{round}");
        assert_eq!(fs::read_to_string(there.join(&name)).unwrap(), text, "{round}");
        let moved = format!("g{}", round % 3);
        fs::rename(there.join(&name), there.join(&moved)).unwrap();
        soon_gone(&here.join(&name));
        assert_eq!(fs::read_to_string(here.join(&moved)).unwrap(), text, "{round}");
        fs::remove_file(here.join(&moved)).unwrap();
        soon_gone(&there.join(&moved));
        assert_eq!(fs::read_dir(&there).unwrap().count(), 0, "{round}");
    }
}

// P7.4
#[test]
fn what_is_gone_elsewhere_cannot_be_used_however_fresh_the_cache() {
    let fixture = two();
    for round in 0..50 {
        let [here, there] = [0, 1].map(|nth| fixture.mount(nth).join("scratchpad"));
        fs::write(here.join("f"), b"x").unwrap();
        assert!(there.join("f").exists());
        fs::rename(here.join("f"), here.join(format!("g{round}"))).unwrap();
        // At once: the kernel of the other mount may still know the name.
        let error = fs::rename(there.join("f"), there.join("h")).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{round}");
        let error = fs::remove_file(there.join("f")).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{round}");
    }
}

// P7.4
#[test]
fn an_absent_name_that_was_asked_for_appears() {
    let fixture = two();
    for round in 0..50 {
        let name = format!("scratchpad/n{round}");
        let there = fixture.mount(1).join(&name);
        assert!(!there.exists());
        fs::write(fixture.mount(0).join(&name), b"x").unwrap();
        assert!(there.exists(), "{round}");
    }
}

/// Below the root no name leads to the absent ones, so that the kernel is told of nothing else.
// P7.4
#[test]
fn an_absent_name_appears_where_absent_names_are_all_that_the_kernel_was_told() {
    let fixture = two();
    let [here, there] = [0, 1].map(|nth| fixture.mount(nth));
    for round in 0..20 {
        let names = ["a", "b", "c"].map(|name| format!("{name}{round}"));
        for name in &names {
            assert!(!there.join(name).exists());
            fs::write(here.join(name), b"x").unwrap();
        }
        assert!(names.iter().rev().all(|name| there.join(name).exists()), "{round}");
    }
}

// P7.4
#[test]
fn a_name_that_is_absent_again_and_again_appears_each_time() {
    let fixture = two();
    fs::create_dir(fixture.path("scratchpad/other")).unwrap();
    let [here, there] = [0, 1].map(|nth| fixture.mount(nth).join("scratchpad"));
    let ways: [fn(&Path, &Path); 4] = [
        |_, to| fs::write(to, b"x").unwrap(),
        |from, to| fs::rename(from, to).unwrap(),
        |from, to| fs::hard_link(from, to).unwrap(),
        |_, to| fs::create_dir(to).unwrap(),
    ];
    for round in 0..40 {
        let from = here.join("other/from");
        fs::write(&from, b"x").unwrap();
        for _ in 0..3 {
            assert!(!there.join("name").exists(), "{round}");
        }
        ways[round % ways.len()](&from, &here.join("name"));
        assert!(there.join("name").exists(), "{round}");
        // Its own kernel knows by itself what was done through it.
        let remove =
            |path: &Path| if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
        remove(&there.join("name")).unwrap();
        assert!(!there.join("name").exists(), "{round}");
        fs::write(there.join("name"), b"x").unwrap();
        assert!(here.join("name").exists(), "{round}");
        fs::remove_file(there.join("name")).unwrap();
    }
}

// P7.4
#[test]
fn an_absent_name_appears_while_others_look_for_it_all_the_time() {
    let fixture = two();
    let [here, there] = [0, 1].map(|nth| fixture.mount(nth).join("scratchpad"));
    let name = there.join("name");
    let look = |name: &&PathBuf| {
        let _ = name.exists();
    };
    over_and_over(&[&name, &name], look, || {
        for round in 0..300 {
            fs::write(here.join("name"), b"x").unwrap();
            assert!(there.join("name").exists(), "{round}");
            fs::rename(here.join("name"), here.join("old")).unwrap();
            assert!(!there.join("name").exists(), "{round}");
            fs::rename(here.join("old"), here.join("name")).unwrap();
            assert!(there.join("name").exists(), "{round}");
            fs::remove_file(here.join("name")).unwrap();
            assert!(!there.join("name").exists(), "{round}");
        }
    });
}

// P7.4
#[test]
fn an_absent_name_that_a_commit_makes_appears() {
    let fixture = two();
    let all = [0, 1].map(|nth| fixture.mount(nth).join("scratchpad/committed"));
    for _ in 0..2 {
        assert!(all.iter().all(|path| !path.exists()));
    }
    fixture
        .sh("mkdir .workfs/txn/t && echo x > .workfs/txn/t/scratchpad/committed
             mv .workfs/txn/t .workfs/commit")
        .success();
    assert!(all.iter().all(|path| path.exists()));
}

/// The same directory through both mounts, with some names in it.
fn with_names(fixture: &Fixture) -> [PathBuf; 2] {
    let dirs = [0, 1].map(|nth| fixture.mount(nth).join("scratchpad"));
    for nth in 0..20 {
        fs::write(dirs[0].join(format!("f{nth}")), "").unwrap();
    }
    dirs
}

/// Lists a directory with attributes: a kernel takes what was answered before a move for true after it.
fn list(dir: &&PathBuf) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let _ = entry.metadata();
    }
}

// P7.4
#[test]
fn nobody_opens_a_moved_file_by_the_name_that_a_listing_brought_back() {
    let fixture = two();
    let [a, b] = &with_names(&fixture);
    over_and_over(&[a, b, a, b, a, b], list, || {
        for round in 0..1_000 {
            let (old, new) = (format!("f{}", round % 20), format!("g{}", round % 20));
            let (here, there) = if round % 3 == 0 { (a, b) } else { (b, a) };
            fs::write(here.join(&old), "old").unwrap();
            fs::rename(here.join(&old), here.join(&new)).unwrap();
            fs::write(there.join(&old), "new").unwrap();
            assert_eq!(fs::read_to_string(here.join(&new)).unwrap(), "old", "{round}");
            assert_eq!(fs::read_to_string(here.join(&old)).unwrap(), "new", "{round}");
        }
    });
}

// P7.4
#[test]
fn a_name_that_was_left_leads_hardly_anywhere_whatever_it_is_used_for() {
    let fixture = two();
    let [a, b] = &with_names(&fixture);
    let is_absent = |error: std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    let mut astray = 0;
    over_and_over(&[a, b, a, b, a, b], list, || {
        // From here on the directory is restless.
        fs::rename(a.join("f0"), a.join("g0")).unwrap();
        for round in 0..300 {
            let [file, dir, link] = ["file", "dir", "link"].map(|name| format!("{name}{round}"));
            let new = |name: &str| format!("{name}.new");
            fs::write(a.join(&file), "old").unwrap();
            fs::create_dir(a.join(&dir)).unwrap();
            fs::write(a.join(&dir).join("x"), "old").unwrap();
            std::os::unix::fs::symlink("1", a.join(&link)).unwrap();
            std::os::unix::fs::symlink("2", a.join(new(&link))).unwrap();
            for name in [&file, &dir, &link] {
                fs::rename(a.join(name), a.join(new(name))).unwrap();
            }
            let linked = fs::hard_link(b.join(&file), b.join("linked"));
            astray += usize::from(!linked.is_err_and(is_absent));
            let written = fs::write(b.join(&dir).join("x"), "new");
            astray += usize::from(!written.is_err_and(is_absent));
            let target = fs::read_link(b.join(new(&link))).unwrap();
            astray += usize::from(target != Path::new("1"));
            fs::remove_dir_all(a.join(new(&dir))).unwrap();
            for name in [&file, &link] {
                fs::remove_file(a.join(new(name))).unwrap();
            }
            let _ = fs::remove_file(a.join("linked"));
        }
    });
    println!("{astray} of 900 went astray");
    // Where nothing is done about it these are 5 to 7. One or the other may be left: a kernel dates a name anew by a
    // listing that came in late, and takes the answer to an older look-up then.
    assert!(astray <= 2, "{astray} of 900");
}

// P7.4
#[test]
fn who_is_overtaken_by_one_rename_after_the_other_opens_a_whole_file_all_the_same() {
    let fixture = two();
    let [here, there] = [0, 1].map(|nth| fixture.mount(nth).join("scratchpad"));
    fs::write(here.join("f"), "000000").unwrap();
    let read = |dir: &&PathBuf| {
        let text = fs::read_to_string(dir.join("f")).unwrap();
        assert_eq!(text.len(), 6, "{text:?}");
    };
    let write = |nth: usize, dir: &Path| {
        for round in 0..700 {
            let new = dir.join(format!("f.{nth}"));
            fs::write(&new, format!("{round:06}")).unwrap();
            fs::rename(&new, dir.join("f")).unwrap();
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

// P7.4
#[test]
fn who_is_overtaken_by_one_rename_after_the_other_opens_a_file_for_writing_all_the_same() {
    let fixture = two();
    let [here, there] = [0, 1].map(|nth| fixture.mount(nth).join("scratchpad"));
    fs::write(here.join("f"), "0").unwrap();
    let (opened, stale) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let open = |(dir, cuts): &(&PathBuf, bool)| {
        let mut how = OpenOptions::new();
        match how.write(true).truncate(*cuts).open(dir.join("f")) {
            Ok(mut file) => {
                file.write_all(b"1").unwrap();
                opened.fetch_add(1, Ordering::Relaxed);
            }
            // Now and then: it was replaced more often than the kernel looks its name up.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::STALE) => {
                stale.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => panic!("{error}"),
        }
    };
    let write = |nth: usize, dir: &Path| {
        for _ in 0..250 {
            let new = dir.join(format!("f.{nth}"));
            fs::write(&new, "0").unwrap();
            fs::rename(&new, dir.join("f")).unwrap();
        }
    };
    over_and_over(&[(&here, false), (&here, true), (&there, false), (&there, true)], open, || {
        std::thread::scope(|scope| {
            for (nth, dir) in [&here, &here, &there].into_iter().enumerate() {
                scope.spawn(move || write(nth, dir));
            }
        });
    });
    let (opened, stale) = (opened.into_inner(), stale.into_inner());
    println!("{opened} opened, {stale} heard ESTALE");
    assert!(opened > 0 && stale * 100 <= opened, "{stale} of {opened}");
    fixture.fsck_clean();
}

// P7.4
#[test]
fn appends_through_two_mounts_do_not_lose_each_other() {
    let fixture = two();
    let script = "for m in 0 1; do ( cd $BASE/m$m/scratchpad
        for i in $(seq 1 50); do echo \"$m $i\" >> log; done ) & done; wait";
    fixture.bash().with("BASE", fixture.base()).run(script).success();
    let text = fs::read_to_string(fixture.path("scratchpad/log")).unwrap();
    assert_eq!(text.lines().count(), 100, "{text}");
}

// P7.4
#[test]
fn modes_times_and_attributes_are_seen_too() {
    let fixture = two();
    let script = "cd $BASE/m0/scratchpad; echo x > f; stat $BASE/m1/scratchpad/f > /dev/null
        chmod 640 f; touch -d @5 f; stat -c '%a %Y' $BASE/m1/scratchpad/f";
    let said = fixture.bash().with("BASE", fixture.base()).run(script).success();
    assert_eq!(said.stdout, "640 5\n");
}

// P7.4
#[test]
fn a_change_after_which_length_and_time_are_as_before_is_seen_too() {
    let fixture = two();
    let script = "cd $BASE/m0/scratchpad; printf aaaa > f; touch -d @5 f; cat $BASE/m1/scratchpad/f
        printf bbbb | dd of=f conv=notrunc status=none; touch -d @5 f; cat $BASE/m1/scratchpad/f";
    let said = fixture.bash().with("BASE", fixture.base()).run(script).success();
    assert_eq!(said.stdout, "aaaabbbb");
}

// P7.4
#[test]
fn saves_and_claims_are_seen_through_the_other_mount() {
    let fixture = two();
    fixture.task("inbox", &Task::new("t-1"));
    let there = fixture.mount(1).join("work");
    for round in 1..20 {
        assert!(fs::read_to_string(there.join("inbox/t-1.yaml")).is_ok());
        let save = format!("sed -i 's/^revision: .*/revision: {round}/' work/inbox/t-1.yaml");
        fixture.sh(&save).success();
        let text = fs::read_to_string(there.join("inbox/t-1.yaml")).unwrap();
        assert!(text.contains(&format!("revision: {round}\n")), "{round}: {text}");
    }
    assert!(!there.join("assigned/bob/t-1.yaml").exists());
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    soon_gone(&there.join("inbox/t-1.yaml"));
    assert!(fs::read_to_string(there.join("assigned/bob/t-1.yaml")).unwrap().contains("bob"));
}
