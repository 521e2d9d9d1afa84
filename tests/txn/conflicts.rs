//! What others changed meanwhile is not overwritten.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use crate::harness::{Errno, Fixture, Setup, Task, Worker, Workers, close, work};

fn commit(fixture: &Fixture, nth: usize, name: &str) -> Result<(), Errno> {
    let control = fixture.mount(nth).join(".workfs");
    fs::rename(control.join("txn").join(name), control.join("commit").join(name))
        .map_err(|error| Errno::from_io_error(&error).unwrap())
}

// P13.3
#[test]
fn a_conflict_is_ebusy_and_why_lists_what_changed() {
    let fixture = Setup::default().mounts(2).start();
    fixture.tasks(2);
    let cases = [
        ("written", "echo x > notes/f", "echo y > notes/f", "notes/f"),
        ("read", "cat notes/f > notes/copy", "echo y > notes/f", "notes/f"),
        ("removed", "rm notes/f", "echo y > notes/f", "notes/f"),
        ("made", "echo x > notes/new", "echo y > notes/new", "notes/new"),
        ("moved", "mv notes/f notes/g", "rm notes/f", "notes/f"),
        ("moved-to", "mv notes/f notes/g", "echo y > notes/g", "notes/g"),
        ("set", "chmod 700 notes/d", "rmdir notes/d && mkdir notes/d", "notes/d"),
        (
            "claimed",
            "mv work/inbox/t-0001.yaml work/assigned/bob/",
            "mv work/inbox/t-0001.yaml work/assigned/ann/",
            "work/inbox/t-0001.yaml",
        ),
        (
            "saved",
            "sed -i s/normal/high/ work/inbox/t-0002.yaml",
            "sed -i s/normal/low/ work/inbox/t-0002.yaml",
            "work/inbox/t-0002.yaml",
        ),
    ];
    for (name, inside, outside, path) in cases {
        fixture
            .sh("rm -rf notes && mkdir -p notes/d && echo x > notes/f && echo z > other")
            .success();
        let ran = fixture.sh(&format!(
            "mkdir .workfs/txn/{name} && cd .workfs/txn/{name} && {inside} && echo mine > other"
        ));
        ran.success();
        let other = fixture.bash().with("M", fixture.mount(1));
        other.run(&format!("cd $M && {outside}")).success();
        assert_eq!(commit(&fixture, 0, name), Err(Errno::BUSY), "{name}");
        let why = fixture.why();
        let newest = why.split("\n\n").next().unwrap();
        assert!(newest.contains("W036") && newest.contains(&format!("`{path}`")), "{name}: {why}");
        assert!(newest.contains("in another transaction: rmdir"), "{name}: {why}");
        assert_eq!(fs::read_to_string(fixture.path("other")).unwrap(), "z\n", "{name}");
        fixture.sh(&format!("rmdir .workfs/txn/{name}")).success();
    }
    fixture.fsck_clean();
}

// P1.6 P13.1
#[test]
fn a_record_that_is_written_outside_is_not_claimed_by_a_text_that_was_made_without_it() {
    let fixture = Fixture::new();
    for (id, by) in [("t-0001", "> {t}"), ("t-0002", "> x && mv x {t}")] {
        let text = Task::new(id).text();
        let path = fixture.task("inbox", &Task::new(id));
        let mut writing = fs::OpenOptions::new().append(true).open(path).unwrap();
        writing.write_all(b"# more\n").unwrap();
        let by = by.replace("{t}", &format!("work/assigned/bob/{id}.yaml"));
        fixture.sh("mkdir .workfs/txn/t").success();
        let inside = fixture.bash().with("TEXT", &text).with("D", fixture.path(".workfs/txn/t"));
        inside.run(&format!("cd $D && printf %s \"$TEXT\" {by}")).success();
        assert_eq!(commit(&fixture, 0, "t"), Err(Errno::BUSY), "{id}");
        assert!(fixture.why().contains("W024"), "{}", fixture.why());
        close(writing).unwrap();
        assert_eq!(fixture.ledger().names(id), ["created", "saved"]);
        commit(&fixture, 0, "t").unwrap();
        assert_eq!(fixture.ledger().names(id), ["created", "saved", "claimed"]);
    }
    fixture.fsck_clean();
}

// P13.3
#[test]
fn what_was_only_looked_at_is_no_conflict() {
    let fixture = Setup::default().mounts(2).start();
    fixture.sh("mkdir notes && echo x > notes/f && mkdir .workfs/txn/t").success();
    fixture.sh("cd .workfs/txn/t && ls -l notes && stat notes/f && echo a > notes/a").success();
    // Who sets attributes of a directory uses that, and not what lies in it.
    fixture.sh("chmod 700 .workfs/txn/t/notes").success();
    fixture.sh("echo y > notes/f && echo b > notes/b").success();
    commit(&fixture, 0, "t").unwrap();
    fixture.sh("test \"$(ls notes | tr '\\n' ' ')\" = 'a b f '").success();
    fixture.sh("test $(stat -c %a notes) = 700").success();
}

// P13.4
#[test]
fn a_transaction_is_its_mounts_alone() {
    let fixture = Setup::default().mounts(2).start();
    fixture.sh("mkdir .workfs/txn/t && echo a > .workfs/txn/t/a").success();
    assert_eq!(fs::read_dir(fixture.mount(1).join(".workfs/txn")).unwrap().count(), 0);
    assert_eq!(commit(&fixture, 1, "t"), Err(Errno::NOENT));
    commit(&fixture, 0, "t").unwrap();
    assert!(fixture.mount(1).join("a").exists());
}

#[test]
#[ignore = "a worker process of other tests"]
fn worker_counts_in_two_files() {
    let Some(work) = work() else { return };
    let control = work.dir.join("../.workfs");
    work.await_go();
    for turn in 0..20 {
        let name = format!("w{}-{turn}", work.nth);
        let txn = control.join("txn").join(&name);
        fs::create_dir(&txn).unwrap();
        let number: u64 = fs::read_to_string(txn.join("a")).unwrap().trim().parse().unwrap();
        for file in ["a", "b"] {
            fs::write(txn.join(file), format!("{}\n", number + 1)).unwrap();
        }
        match fs::rename(&txn, control.join("commit").join(&name)) {
            Ok(()) => work.say("committed"),
            Err(error) => {
                assert_eq!(Errno::from_io_error(&error), Some(Errno::BUSY), "{error}");
                fs::remove_dir(&txn).unwrap();
            }
        }
    }
}

// P13.1 P13.3
#[test]
fn of_many_that_race_each_commit_counts_once_and_no_half_is_seen() {
    let fixture = Setup::default().mounts(4).start();
    fixture.sh("echo 0 > a && echo 0 > b").success();
    let dirs: Vec<PathBuf> = fixture.mounts().iter().map(|mount| mount.join("work")).collect();
    let worker = Worker::Test("conflicts::worker_counts_in_two_files");
    let mut workers = Workers::start(&worker, &dirs, &[]);
    workers.go();
    let mut committed = 0;
    while let Some(said) = workers.next() {
        assert_eq!(said.line, "committed");
        committed += 1;
    }
    workers.finish();
    let read = |name: &str| fs::read_to_string(fixture.path(name)).unwrap();
    assert!(committed > 0);
    assert_eq!(read("a").trim(), committed.to_string());
    assert_eq!(read("b"), read("a"));
    fixture.fsck_clean();
}

// P1.6 P13.1
#[test]
fn a_record_that_is_written_outside_is_not_changed_by_a_commit() {
    let fixture = Fixture::new();
    let changes =
        ["mv {t} work/assigned/bob/", "rm {t}", "sed -i s/normal/high/ {t}", "echo '# x' >> {t}"];
    for (nth, change) in changes.into_iter().enumerate() {
        let id = format!("t-{nth}");
        let path = fixture.task("inbox", &Task::new(&id));
        let change = change.replace("{t}", &format!("work/inbox/{id}.yaml"));
        fixture.sh(&format!("mkdir .workfs/txn/t && cd .workfs/txn/t && {change}")).success();
        let mut writing = fs::OpenOptions::new().append(true).open(&path).unwrap();
        writing.write_all(b"# more\n").unwrap();
        assert_eq!(commit(&fixture, 0, "t"), Err(Errno::BUSY), "{change}");
        let why = fixture.why();
        let newest = why.split("\n\n").next().unwrap();
        assert!(newest.contains("W024") && newest.contains(&id), "{change}: {why}");
        assert_eq!(fixture.ledger().names(&id), ["created"], "{change}");
        close(writing).unwrap();
        assert_eq!(fixture.ledger().names(&id), ["created", "saved"], "{change}");
        fixture.sh("rmdir .workfs/txn/t").success();
    }
    fixture.fsck_clean();
}
