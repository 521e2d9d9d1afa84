//! Versions: kept as the configuration says, read as files, brought back.

use std::fs;

use crate::harness::{Fixture, Setup, Task, save};

fn keeping(rule: &str) -> Fixture {
    let layout = format!("workspaces: []\nfiles:\n  - {{ path: \"scratchpad/**\", {rule} }}\n");
    let fixture = Setup::default().layout(&layout).start();
    fs::create_dir_all(fixture.path("scratchpad")).unwrap();
    fixture
}

fn versions(fixture: &Fixture, path: &str) -> Vec<String> {
    let Ok(dir) = fs::read_dir(fixture.path(".workfs/history").join(path)) else {
        return Vec::new();
    };
    let mut files: Vec<_> = dir.map(|entry| entry.unwrap().path()).collect();
    files.sort_by_key(|path| {
        path.file_stem().unwrap().to_str().unwrap().parse::<u64>().unwrap_or(u64::MAX)
    });
    files.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// When each version was saved, as its file says, the first first.
fn times(fixture: &Fixture, path: &str) -> Vec<std::time::SystemTime> {
    let dir = fs::read_dir(fixture.path(".workfs/history").join(path)).unwrap();
    let of = |entry: fs::DirEntry| entry.metadata().unwrap().modified().unwrap();
    let mut times: Vec<_> = dir.map(|entry| of(entry.unwrap())).collect();
    times.sort();
    times
}

// P11.3
#[test]
fn each_version_is_a_file_and_comes_back() {
    let fixture = Fixture::new();
    fixture
        .sh("mkdir -p scratchpad/p; cd scratchpad/p; for n in 1 2 3; do echo $n > f.md; done; \
                echo 3 > f.md")
        .success();
    assert_eq!(versions(&fixture, "scratchpad/p/f.md"), ["1\n", "2\n", "3\n"]);
    let saved = times(&fixture, "scratchpad/p/f.md");
    assert!(saved[0] < saved[1] && saved[1] < saved[2], "each has its time: {saved:?}");
    let now = fs::metadata(fixture.path("scratchpad/p/f.md")).unwrap().modified().unwrap();
    assert!(saved[2] <= now, "{saved:?} {now:?}");
    let gs = fixture.sh("ls .workfs/history/scratchpad/p/f.md").success();
    let first: u64 = gs.stdout.lines().next().unwrap().parse().unwrap();
    fixture.sh("echo x > .workfs/history/scratchpad/p/f.md/1").failure();
    let events = fixture.workfs(&["log", "--json", "scratchpad/p/f.md"]).success().json_lines();
    assert_eq!(events.len(), 4);
    assert_eq!(events[0]["g"], first);

    let at = (first + 1).to_string();
    let shown = fixture.workfs(&["show", "scratchpad/p/f.md", "--g", &at]).success();
    assert!(shown.stdout.ends_with("\n2\n") && shown.stdout.contains("saved by"), "{shown}");
    let again = (first + 3).to_string();
    let shown = fixture.workfs(&["show", "scratchpad/p/f.md", "--g", &again]).success();
    assert!(shown.stdout.ends_with("\n3\n"), "it has no version of its own: {shown}");
    fixture.workfs(&["show", "scratchpad/p/f.md", "--at", "1"]).failure();
    let future = fixture.workfs(&["restore", "scratchpad/p/f.md", "--at", "99999"]).failure();
    assert!(future.code == 4 && future.stderr.contains("99999"), "{future}");
    fixture.workfs(&["restore", "scratchpad/p/f.md", "--at", &at]).success();
    assert_eq!(fs::read_to_string(fixture.path("scratchpad/p/f.md")).unwrap(), "2\n");
    fixture.sh("rm scratchpad/p/f.md").success();
    let shown = fixture.workfs(&["show", "scratchpad/p/f.md", "--g", &at]).success();
    assert!(shown.stdout.ends_with("\n2\n"), "also when it is gone: {shown}");
    let future = fixture.workfs(&["show", "scratchpad/p/f.md", "--g", "99999"]).failure();
    assert_eq!(future.code, 4, "{future}");
    let time = events[0]["at"].as_str().unwrap();
    fixture.workfs(&["restore", "scratchpad/p/f.md", "--at", time]).success();
    assert_eq!(fs::read_to_string(fixture.path("scratchpad/p/f.md")).unwrap(), "1\n");
    let names: Vec<String> = fixture
        .workfs(&["log", "--json", "scratchpad/p/f.md"])
        .success()
        .json_lines()
        .iter()
        .map(|event| event["event"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names[4..], ["restored", "removed", "restored"]);
    let early = fixture.workfs(&["restore", "scratchpad/p/f.md", "--at", "1"]).failure();
    assert!(early.stderr.contains("kept are those of events"), "{early}");
    // A day is its beginning, a time has its zone.
    for (day, code) in [("2020-01-01", 4), ("2200-01-01T00:00:00+02:00", 4), ("9999-12-31", 4)] {
        let ran = fixture.workfs(&["restore", "scratchpad/p/f.md", "--at", day]);
        assert_eq!(ran.code, code, "{ran}");
        let said = ran.stderr.contains(&format!("{day} is still to come"));
        assert_eq!(said, !day.starts_with("2020"), "{ran}");
    }
    let last = fixture.workfs(&["log", "--json"]).success().json_lines();
    let last = last.last().unwrap()["at"].as_str().unwrap().to_owned();
    for now in [last.clone(), last.replace('Z', "+00:00")] {
        fixture.workfs(&["restore", "scratchpad/p/f.md", "--at", &now]).success();
    }
    for wrong in ["2200-01-32", "2200-01-01T00:00:00", "yesterday"] {
        let ran = fixture.workfs(&["restore", "scratchpad/p/f.md", "--at", wrong]).failure();
        assert!(ran.code == 2 && ran.stderr.contains("2026-11-21T10:30:00Z"), "{ran}");
    }
    fixture.sh("rm -r scratchpad/p").success();
    let gone = fixture.workfs(&["restore", "scratchpad/p", "--at", &at]).failure();
    assert!(gone.code == 4 && gone.stderr.contains("file by file"), "{gone}");
    fixture
        .sh(&format!("cp -r --no-preserve=mode .workfs/at/{at}/scratchpad/p scratchpad/"))
        .success();
    assert_eq!(fs::read_to_string(fixture.path("scratchpad/p/f.md")).unwrap(), "2\n");
    fixture.fsck_clean();
}

// P11.3, P5.1
#[test]
fn a_record_s_versions_are_files_and_come_back() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let first = fs::read_to_string(&path).unwrap();
    let second = format!("{first}# a note\n");
    save(&path, second.as_bytes()).unwrap();
    assert_eq!(versions(&fixture, "work/t-1"), [first.clone(), second]);
    let saved = times(&fixture, "work/t-1");
    assert!(saved[0] < saved[1], "{saved:?}");
    let g = fixture.ledger().of_record("t-1")[0].g();
    fixture.workfs(&["restore", "t-1", "--at", &g.to_string()]).success();
    assert_eq!(fs::read_to_string(&path).unwrap(), first);
    let ledger = fixture.ledger();
    assert_eq!(ledger.names("t-1"), ["created", "saved", "restored"]);
    let restored = ledger.of_record("t-1")[2];
    assert_eq!(restored.0["payload"]["from_g"], g);
    assert_eq!(restored.versions(), (Some(2), Some(3)));
    let shown = fixture.workfs(&["show", "t-1", "--json"]).success().json();
    assert_eq!(shown["history"][0]["event"], "restored");
    fixture.workfs(&["unmount", "--all"]).success();
    let second = restored.0["g"].as_u64().unwrap() - 1;
    fixture.workfs(&["restore", "t-1", "--at", &second.to_string()]).success();
    let alone = fixture.ledger();
    let last = alone.of_record("t-1")[3];
    let from_g = last.0["payload"]["from_g"].as_u64();
    assert_eq!((last.name(), from_g), ("restored", Some(second)), "without a daemon");
    fixture.fsck_clean();
}

// P11.4
#[test]
fn as_many_versions_are_kept_as_the_configuration_says() {
    let fixture = keeping("versions: 3");
    fixture.sh("for n in $(seq 9); do echo $n > scratchpad/f; done").success();
    assert_eq!(versions(&fixture, "scratchpad/f"), ["7\n", "8\n", "9\n"]);
    fixture.fsck_clean();

    let small = keeping("bytes: 10B, file_bytes: 6B");
    small
        .sh("cd scratchpad; for n in 1111 2222 3333; do echo $n > f; done; echo 7777777 > g")
        .success();
    assert_eq!(versions(&small, "scratchpad/f"), ["2222\n", "3333\n"]);
    assert!(versions(&small, "scratchpad/g").is_empty());
    let event = small.workfs(&["log", "--json", "scratchpad/g"]).success().json_lines();
    assert_eq!(event[0]["payload"]["size"], 8);
    assert!(event[0]["payload"]["content_sha256"].is_string());
    small.fsck_clean();

    let none = keeping("versions: 0");
    let before = none.ledger().last_g();
    none.sh("echo x > scratchpad/f").success();
    assert_eq!(none.ledger().last_g(), before + 1);
    assert!(versions(&none, "scratchpad/f").is_empty());
}

// P11.4
#[test]
fn a_file_of_100_mb_has_its_hash_and_no_version() {
    let fixture = keeping("versions: 3");
    fixture
        .sh("cd scratchpad; head -c 104857600 /dev/urandom > big; sha256sum < big > $OUT/sum
             cp big $OUT/big; printf more >> big; cmp -n 104857600 big $OUT/big
             head -c 3000000 big > mid; mv mid mid2")
        .success();
    // The event of a very large file comes when it is hashed.
    let found = crate::harness::until_polled("both events are there", || {
        let lines = fixture.workfs(&["log", "--json", "scratchpad/big"]).success().json_lines();
        (lines.len() == 2).then_some(lines)
    });
    let sum = fs::read_to_string(fixture.outside("sum")).unwrap();
    let hashes: Vec<_> =
        found.iter().filter_map(|event| event["payload"]["content_sha256"].as_str()).collect();
    assert!(hashes.iter().any(|hash| sum.starts_with(hash)) || hashes.len() == 1, "{found:?}");
    assert_eq!(found[1]["payload"]["size"], 104_857_604);
    assert!(versions(&fixture, "scratchpad/big").is_empty());
    fixture.fsck_clean();
}

// P11.3
#[test]
fn an_export_gives_the_versions_that_are_kept() {
    let fixture = Fixture::new();
    fixture
        .sh("mkdir -p scratchpad/documents; cd scratchpad/documents
             for n in 1 2 3; do echo $n > plan.md; done
             echo gone > gone.md; rm gone.md")
        .success();
    fixture.tasks(1);
    let to = fixture.outside("out");
    let report = fixture.workfs(&["export", "--versions", "--json", to.to_str().unwrap()]);
    assert_eq!(report.success().json()["versions"], 5);
    let tree = |of: &std::path::Path| {
        let script = format!(
            "cd {} && find . -type f -printf '%P %s\n' | sort && \
             find . -type f | sort | xargs sha256sum",
            of.display()
        );
        fixture.sh(&script).success().stdout
    };
    let (here, there) = (fixture.path(".workfs/history"), to.join(".workfs/history"));
    assert_eq!(tree(&there), tree(&here));
    assert!(tree(&there).contains("work/") && tree(&there).contains("gone.md"));
}

// P11.3
#[test]
fn a_version_and_a_directory_of_one_name_are_both_there() {
    let fixture = Fixture::new();
    fixture.sh("mkdir scratchpad && cd scratchpad && echo one > a && echo two > a").success();
    let gs = fixture.sh("ls .workfs/history/scratchpad/a").success().stdout;
    let g = gs.lines().next().unwrap();
    // What was a file is a directory now, with files of the names of its versions.
    let snippet = format!("cd scratchpad && rm a && mkdir a && echo three > a/{g} && echo > a/b");
    fixture.sh(&snippet).success();
    fixture.sh("cd scratchpad && mkdir c && echo four > c/d && rm -r c && echo five > c").success();
    let listed = fixture.sh("ls -p .workfs/history/scratchpad/a").success().stdout;
    let second: u64 = gs.lines().nth(1).unwrap().parse().unwrap();
    assert_eq!(listed, format!("{g}/\n{g}~\n{second}\nb/\n"));
    let shown = format!("cd .workfs/history/scratchpad && cat a/{g}~ a/{g}/* c/d/*");
    assert_eq!(fixture.sh(&shown).success().stdout, "one\nthree\nfour\n");
    fixture.sh(&format!("ls .workfs/history/scratchpad/a/{second}~")).failure();

    let to = fixture.outside("out");
    let export = ["export", "--versions", "--json", to.to_str().unwrap()];
    let report = fixture.workfs(&export).success().json();
    assert_eq!((&report["versions"], &report["left_out_count"]), (&6.into(), &0.into()));
    fixture.sh("diff -r .workfs/history/scratchpad $OUT/out/.workfs/history/scratchpad").success();

    // Where a file lies in the way of a directory, what can be written is.
    let other = "mkdir -p $OUT/other/.workfs/history/scratchpad && cd $OUT/other/.workfs/history && \
                 echo mine > scratchpad/a";
    fixture.sh(other).success();
    let to = fixture.outside("other");
    let ran = fixture.workfs(&["export", "--versions", "--force", "--json", to.to_str().unwrap()]);
    assert_eq!(ran.code, 11, "{ran}");
    let report = ran.json();
    assert_eq!((&report["versions"], &report["left_out_count"]), (&2.into(), &4.into()));
    assert_eq!(report["left_out"][0]["path"], "scratchpad/a");
    fixture.sh("cat $OUT/other/.workfs/history/scratchpad/a | grep -x mine").success();
}

// P11.3
#[test]
fn names_that_look_the_same_have_pasts_of_their_own() {
    let fixture = Fixture::new();
    let dir = fixture.path("scratchpad/documents");
    fs::create_dir_all(&dir).unwrap();
    // Composed and decomposed; a byte and its escape.
    let names = ["caf\u{e9}", "cafe\u{301}", "a\u{1}", "a\\u{1}", "a\\\\u{1}"];
    for (nth, name) in names.iter().enumerate() {
        for time in 0..2 {
            fs::write(dir.join(name), format!("{nth} {time}\n")).unwrap();
        }
    }
    for (nth, name) in names.iter().enumerate() {
        let path = format!("scratchpad/documents/{name}");
        assert_eq!(versions(&fixture, &path), [format!("{nth} 0\n"), format!("{nth} 1\n")]);
        let events = fixture.workfs(&["log", "--json", &path]).success().json_lines();
        assert_eq!(events.len(), 2, "{name:?}: {events:?}");
        let printed = events[0]["payload"]["path"].as_str().unwrap();
        // Where another file has that very name it is meant.
        let meant = names.iter().position(|name| printed.ends_with(&format!("/{name}")));
        let shown = fixture.workfs(&["show", printed]).success();
        let text = format!("{} 1\n", meant.unwrap_or(nth));
        assert!(shown.stdout.ends_with(&text), "{printed:?}: {shown}");
    }
    fixture.fsck_clean();
    let backup = fixture.outside("backup.db");
    let backup = backup.to_str().unwrap();
    fixture.workfs(&["backup", backup]).success();
    Setup::default().prepare().workfs(&["restore", backup]).success();
}

// P11.4
#[test]
fn versions_that_are_too_old_go_with_the_next_save() {
    let fixture = keeping("age: 1s");
    let begin = std::time::Instant::now();
    fixture.sh("for n in 1 2 3; do echo $n > scratchpad/f; done").success();
    assert!(
        begin.elapsed() > std::time::Duration::from_secs(1) || {
            versions(&fixture, "scratchpad/f") == ["1\n", "2\n", "3\n"]
        }
    );
    let saved = std::time::Instant::now();
    let second = std::time::Duration::from_millis(1100);
    crate::harness::until_polled("a second is over", || (saved.elapsed() > second).then_some(()));
    fixture.sh("echo 4 > scratchpad/f").success();
    assert_eq!(versions(&fixture, "scratchpad/f"), ["4\n"]);
    fixture.fsck_clean();
}

// P11.3
#[test]
fn a_file_that_is_gone_comes_back_to_who_restores_it_alone() {
    use std::os::unix::fs::MetadataExt;
    let fixture = Fixture::new();
    fixture
        .sh("mkdir -p scratchpad/documents; cd scratchpad/documents
             (umask 027; echo secret > f); echo 2 > f")
        .success();
    let path = fixture.path("scratchpad/documents/f");
    let gs = fixture.sh("ls .workfs/history/scratchpad/documents/f").success();
    let first = gs.stdout.lines().next().unwrap().to_owned();
    let restore = || {
        let ran = fixture.workfs(&["restore", "scratchpad/documents/f", "--at", &first]).success();
        assert_eq!(fs::read(&path).unwrap(), b"secret\n");
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!(metadata.uid(), rustix::process::geteuid().as_raw());
        (metadata.mode() & 0o777, ran.stdout.contains("0600"))
    };
    assert_eq!(restore(), (0o640, false));
    fixture.sh("rm scratchpad/documents/f").success();
    assert_eq!(restore(), (0o600, true));
    fixture.fsck_clean();
}

// P11.3
#[test]
fn what_was_not_there_then_or_is_refused_now_is_told_with_its_path() {
    let layout = "workspaces: []\nfiles: [ { path: \"scratchpad/**\" } ]\n";
    let fixture = Setup::default().layout(layout).start();
    fixture
        .sh("mkdir -p scratchpad/d; cd scratchpad; echo 1 > d/f; rm d/f; echo 2 > d/f")
        .success();
    let events = fixture.workfs(&["log", "--json", "scratchpad/d/f"]).success().json_lines();
    let gs: Vec<String> = events.iter().map(|event| event["g"].to_string()).collect();
    let restore = |path: &str, at: &str| fixture.workfs(&["restore", path, "--at", at]);
    for at in [&*gs[1], events[1]["at"].as_str().unwrap()] {
        let absent = restore("scratchpad/d/f", at).failure();
        assert_eq!(absent.code, 4, "{absent}");
        for named in ["`scratchpad/d/f`", &gs[0], &gs[1], &gs[2]] {
            assert!(absent.stderr.contains(named), "{named}: {absent}");
        }
    }
    assert_eq!(fs::read(fixture.path("scratchpad/d/f")).unwrap(), b"2\n");
    // Where its directory was there is a file.
    fixture.sh("rm -r scratchpad/d; echo x > scratchpad/d").success();
    let refused = restore("scratchpad/d/f", &gs[0]).failure();
    assert!(refused.stderr.contains("scratchpad/d"), "{refused}");
    // A check that there was not yet.
    fixture.sh("cd scratchpad; echo [ > a.json; echo {} > a.json").success();
    let events = fixture.workfs(&["log", "--json", "scratchpad/a.json"]).success().json_lines();
    let checking = fixture.outside("checking.yaml");
    let text = format!("{layout}checks: [ {{ path: \"scratchpad/*.json\" }} ]\n");
    fs::write(&checking, text).unwrap();
    fixture.unmount_all();
    fixture.workfs(&["init", "--layout", checking.to_str().unwrap()]).success();
    let g = events[0]["g"].to_string();
    let refused = restore("scratchpad/a.json", &g).failure();
    assert_eq!(refused.code, 7, "{refused}");
    for named in ["`scratchpad/a.json`", &*g, "W010"] {
        assert!(refused.stderr.contains(named), "{named}: {refused}");
    }
    fixture.fsck_clean();
}

// P11.3
#[test]
fn the_log_of_a_directory_that_is_gone_has_what_lay_in_it() {
    let fixture = Fixture::new();
    let log = |dir: &str| {
        let path = format!("scratchpad/{dir}");
        let lines = fixture.workfs(&["log", "--json", &path]).success().json_lines();
        let told = lines.iter().map(|event| {
            let text = |at| event.pointer(at).unwrap().as_str().unwrap().to_owned();
            (text("/event"), text("/payload/path").replace("scratchpad/", ""))
        });
        told.collect::<Vec<_>>()
    };
    let has = |told: &[(String, String)], event: &str, path: &str| {
        told.iter().any(|(what, at)| (&**what, &**at) == (event, path))
    };
    fixture.sh("mkdir -p scratchpad && cd scratchpad && mkdir gone gone-not; echo 1 >gone/a; echo 2 >gone-not/b").success();
    let before = log("gone");
    fixture.sh("cd scratchpad; rm -r gone").success();
    let gone = log("gone");
    assert_eq!(gone[..before.len()], before);
    for (event, path) in [("saved", "gone/a"), ("removed", "gone/a"), ("removed", "gone")] {
        assert!(has(&gone, event, path), "{event} {path}: {gone:?}");
    }
    assert!(gone.iter().all(|(_, path)| !path.contains("gone-not")), "{gone:?}");
    let newest = fixture.workfs(&["log", "--json", "-n", "1", "scratchpad/gone"]).success();
    assert_eq!(newest.json_lines().len(), 1, "{newest}");
    fixture.sh("cd scratchpad; mkdir gone").success();
    assert_eq!(log("gone")[..gone.len()], gone, "as for one that is there");

    // One that went elsewhere, also with nothing in it.
    fixture.sh("cd scratchpad; mv gone-not there; mkdir empty; mv empty full").success();
    let moved = log("gone-not");
    assert!(has(&moved, "saved", "gone-not/b") && has(&moved, "renamed", "there"), "{moved:?}");
    let empty = log("empty");
    assert!(has(&empty, "created", "empty") && has(&empty, "renamed", "full"), "{empty:?}");
    fixture.workfs(&["log", "scratchpad/never"]).failure();

    // Also where nothing is told of directories.
    let layout = "workspaces: []\nfiles:\n  - { path: \"scratchpad/**/*.md\", versions: 1 }\n";
    let other = Setup::default().layout(layout).start();
    other.sh("mkdir -p scratchpad/d; echo 1 >scratchpad/d/a.md; rm -r scratchpad/d").success();
    let told = other.workfs(&["log", "--json", "scratchpad/d"]).success().json_lines();
    assert_eq!(told.len(), 2, "saved and removed: {told:?}");
}

// P11.1 P11.3
#[test]
fn what_fallocate_changes_is_saved_at_close() {
    use rustix::fs::FallocateFlags as How;
    let fixture = Fixture::new();
    fixture.sh("mkdir -p scratchpad").success();
    let path = fixture.path("scratchpad/f");
    let text = "x".repeat(20_000);
    save(&path, text.as_bytes()).unwrap();
    let saves = || fixture.workfs(&["log", "--json", "scratchpad/f"]).success().json_lines();
    for (how, length, saved) in [
        (How::PUNCH_HOLE | How::KEEP_SIZE, 4_096, 2),
        (How::ZERO_RANGE, 8_192, 3),
        (How::empty(), 30_000, 4),
        // This reserves what comes after the end, and changes nothing.
        (How::KEEP_SIZE, 50_000, 4),
    ] {
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        rustix::fs::fallocate(&file, how, 4_096, length).unwrap();
        drop(file);
        let (events, now) = (saves(), fs::read(&path).unwrap());
        assert_eq!(events.len(), saved, "{how:?}: {events:?}");
        assert!(events.iter().all(|event| event["event"] == "saved"), "{how:?}: {events:?}");
        let sum = fixture.sh("sha256sum < scratchpad/f").success().stdout;
        let told = events[saved - 1]["payload"]["content_sha256"].as_str().unwrap();
        assert!(sum.starts_with(told), "{how:?}");
        let kept = versions(&fixture, "scratchpad/f");
        assert_eq!((kept.len(), kept[saved - 1].as_bytes()), (saved, &now[..]), "{how:?}");
    }
    let at = saves()[3]["g"].to_string();
    fixture.sh("echo later > scratchpad/f").success();
    fixture.workfs(&["restore", "scratchpad/f", "--at", &at]).success();
    let back = fs::read(&path).unwrap();
    assert_eq!((back.len(), back[4_095], back[4_096], back[12_288]), (34_096, b'x', 0, b'x'));
    fixture.fsck_clean();
}

// P11.1
#[test]
fn what_came_with_a_directory_has_no_version_and_says_so() {
    let fixture = Fixture::new();
    fixture.sh("mkdir -p scratchpad other/d; echo 1 > other/d/f").success();
    let before = fixture.ledger().last_g();
    fixture.sh("mv other/d scratchpad/").success();
    let at = fixture.ledger().last_g();
    assert_eq!(at, before + 1, "the directory has the one event");
    let at = at.to_string();
    let none = fixture.workfs(&["restore", "scratchpad/d/f", "--at", &at]).failure();
    assert!(none.code == 4 && none.stderr.contains("moved here with its directory"), "{none}");
    assert!(!none.stderr.contains("a link"), "{none}");
    let dir = fixture.workfs(&["restore", "scratchpad/d", "--at", &at]).failure();
    assert!(dir.code == 4 && dir.stderr.contains("file by file"), "{dir}");
    // From its next save on it has a past.
    fixture.sh("echo 2 > scratchpad/d/f; echo 3 > scratchpad/d/f").success();
    let at = fixture.ledger().last_g() - 1;
    fixture.workfs(&["restore", "scratchpad/d/f", "--at", &at.to_string()]).success();
    assert_eq!(fs::read_to_string(fixture.path("scratchpad/d/f")).unwrap(), "2\n");
    fixture.fsck_clean();
}

// P11.4
#[test]
fn what_was_imported_and_is_too_large_to_be_kept_says_so() {
    let fixture = keeping("file_bytes: 6B");
    let from = fixture.outside("from");
    fs::create_dir(&from).unwrap();
    fs::write(from.join("f"), "7777777").unwrap();
    fixture.workfs(&["import", from.to_str().unwrap(), "scratchpad"]).success();
    let at = fixture.ledger().last_g().to_string();
    let none = fixture.workfs(&["restore", "scratchpad/f", "--at", &at]).failure();
    assert!(none.code == 4 && none.stderr.contains("none is kept at all"), "{none}");
    fixture.fsck_clean();
}

// P11.3
#[test]
fn of_what_no_rule_keeps_no_first_version_is_promised() {
    let fixture = keeping("log: false");
    fixture.sh("echo 1 > scratchpad/f; echo 1 > elsewhere").success();
    for path in ["scratchpad/f", "elsewhere"] {
        let ran = fixture.workfs(&["restore", path, "--at", "2020-01-01"]);
        assert!(ran.code == 4 && ran.stderr.contains("keeps nothing of this path"), "{ran}");
    }
}
