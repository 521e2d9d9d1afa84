//! New files that are not valid (yet).

use std::fs;

use crate::harness::{Errno, Fixture, Setup, Task, python, save, save_synced};

// P3.4
#[test]
fn a_new_file_that_is_not_valid_is_a_draft() {
    let fixture = Fixture::new();
    let path = fixture.path("work/inbox/t-1.yaml");
    let bad = Task::new("t-1").status("done").text();
    assert_eq!(save(&path, bad.as_bytes()), Err(Errno::INVAL));
    // Listed, readable, writable.
    assert_eq!(fs::read_to_string(&path).unwrap(), bad);
    assert!(fixture.sh("ls work/inbox").success().stdout.contains("t-1.yaml"));
    let why = fs::read_to_string(fixture.path("work/inbox/t-1.yaml.why")).unwrap();
    assert!(why.contains("W013"), "{why}");
    // Not to be claimed, however one tries.
    let moved = fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").failure();
    assert!(moved.stderr.contains("Operation not permitted"), "{moved}");
    fixture.sh("sed -i 's/^status: .*/status: new/' work/inbox/t-1.yaml").success();
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    assert_eq!(fixture.ledger().names("t-1"), ["created", "claimed"]);
    fixture.fsck_clean();
}

// P3.4
#[test]
fn a_draft_can_be_renamed_and_removed() {
    let fixture = Fixture::new();
    save(&fixture.path("work/inbox/t-1.yaml"), b"status: [").unwrap_err();
    let script = "cd work/inbox && mv t-1.yaml t-2.yaml && cat t-2.yaml && rm t-2.yaml && ls -A";
    assert_eq!(fixture.sh(script).success().stdout, "status: [");
    save(&fixture.path("work/inbox/t-1.yaml"), b"status: [").unwrap_err();
    fixture.sh("mkdir scratchpad; mv work/inbox/t-1.yaml scratchpad/").success();
    assert_eq!(fs::read(fixture.path("scratchpad/t-1.yaml")).unwrap(), b"status: [");
    fixture.fsck_clean();
}

// P3.4
#[test]
fn a_draft_can_be_emptied() {
    let fixture = Setup::default().mounts(2).start();
    let path = fixture.path("work/inbox/t-1.yaml");
    let elsewhere = fixture.mount(1).join("work/inbox/t-1.yaml");
    let ways = [
        ": > t-1.yaml",
        "cp /dev/null t-1.yaml",
        "truncate -s 0 t-1.yaml",
        "\"$PYTHON\" -c 'import os; os.truncate(\"t-1.yaml\", 0)'",
        "\"$PYTHON\" -c 'import os
f = os.open(\"t-1.yaml\", os.O_WRONLY | os.O_TRUNC); os.fsync(f); os.close(f)'",
        "\"$PYTHON\" -c 'import os; os.close(os.open(\"t-1.yaml\", os.O_RDONLY | os.O_TRUNC))'",
    ];
    for way in ways {
        save(&path, b"status: [").unwrap_err();
        assert_eq!(fs::metadata(&elsewhere).unwrap().len(), 9, "before {way}");
        let run = fixture.bash().with("PYTHON", python());
        run.run(&format!("cd work/inbox; {way}")).success();
        assert_eq!(fs::read(&path).unwrap(), b"", "after {way}");
        assert_eq!(fs::metadata(&elsewhere).unwrap().len(), 0, "after {way}");
        let why = fs::read_to_string(path.with_extension("yaml.why")).unwrap();
        assert!(why.contains("the text is empty"), "{why}");
    }
    // Who writes it anew, and who goes on with what is there.
    save(&path, b"status: [").unwrap_err();
    fixture.sh("echo 'status: new' > work/inbox/t-1.yaml").success();
    assert_eq!(fixture.ledger().names("t-1"), ["created"]);
    save(&fixture.path("work/inbox/t-2.yaml"), b"title: [\n").unwrap_err();
    fixture.sh(": > work/inbox/t-2.yaml; echo 'status: new' >> work/inbox/t-2.yaml").success();
    assert_eq!(fixture.ledger().names("t-2"), ["created"]);
    fixture.fsck_clean();
}

// P3.4
#[test]
fn a_draft_replaces_no_record() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let draft = fixture.path("work/inbox/t-2.yaml");
    save(&draft, b"status: [").unwrap_err();
    let error = fs::rename(&draft, &path).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::PERM));
    assert_eq!(fs::read_to_string(&path).unwrap(), Task::new("t-1").text());
    assert_eq!(fs::read(&draft).unwrap(), b"status: [");
}

// P3.1
#[test]
fn fsync_judges_and_close_does_not_say_it_twice() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let bad = Task::new("t-1").text() + "more: [";
    let [written, synced, closed] = save_synced(&path, bad.as_bytes());
    assert_eq!((written, synced), (Ok(()), Err(Errno::INVAL)));
    println!("close after a refused fsync: {closed:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), Task::new("t-1").text());
    let kept = fixture.rejected();
    assert_eq!(kept.len(), 1, "one save, one rejection");
    assert_eq!(kept[0], bad.as_bytes());
}

// P3.8
#[test]
fn the_id_is_the_name() {
    let fixture = Fixture::new();
    let path = fixture.path("work/inbox/t-1.yaml");
    assert_eq!(save(&path, Task::new("t-2").text().as_bytes()), Err(Errno::INVAL));
    let why = fs::read_to_string(fixture.path("work/inbox/t-1.yaml.why")).unwrap();
    assert!(why.contains("W012"), "{why}");
    save(&path, b"title: no id is fine\nstatus: new\n").unwrap();
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
}

// P3.4
#[test]
fn plain_files_beside_records_are_nobodys_business() {
    let fixture = Fixture::new();
    let names = [
        "README.md",
        ".gitkeep",
        "sedAb12Cd",
        ".t-1.yaml.swp",
        "t-1.yaml~",
        "4913",
        "t-1.3f2b.tmp",
        "t-1.tmp.77.c0ffee",
        "t-1.yaml.tmp",
        "a b.yaml",
    ];
    for name in names {
        save(&fixture.path("work/inbox").join(name), b"status: [ not yaml").unwrap();
    }
    let before = fixture.ledger().last_g();
    for name in names {
        let to = fixture.path("work/assigned/bob").join(name);
        fs::rename(fixture.path("work/inbox").join(name), &to).unwrap();
        fs::remove_file(to).unwrap();
    }
    assert_eq!(fixture.ledger().last_g(), before, "plain files make no events");
}

// P3.4
#[test]
fn a_record_that_is_removed_comes_back_with_its_history() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.sh("rm work/inbox/t-1.yaml").success();
    fixture.task("inbox", &Task::new("t-1").revision(1));
    let ledger = fixture.ledger();
    assert_eq!(ledger.names("t-1"), ["created", "removed", "created"]);
    assert_eq!(ledger.of_record("t-1")[2].versions().1, Some(2), "no version is used twice");
    fixture.fsck_clean();
}

// P3.4
#[test]
fn what_a_program_writes_to_rename_it_over_a_record_is_judged_by_the_rename() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let before = fixture.ledger().last_g();
    let draft = fixture.path("work/inbox/t-1.ab12cd_3.yaml");
    save(&draft, Task::new("t-1").revision(1).text().as_bytes()).unwrap();
    // Empty, written again by its name, not even YAML: nobody's business until it is renamed.
    save(&draft, b"").unwrap();
    save(&draft, b"status: [").unwrap();
    assert_eq!(fixture.rejected(), Vec::<Vec<u8>>::new());
    assert_eq!(fixture.ledger().last_g(), before, "it makes no events");
    let why = fs::read_to_string(fixture.path("work/inbox/t-1.ab12cd_3.yaml.why")).unwrap();
    assert!(why.contains("`t-1.yaml`") && why.contains("id: t-1.ab12cd_3"), "{why}");
    let error = fs::rename(&draft, &path).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::PERM));
    assert_eq!(fs::read_to_string(&path).unwrap(), Task::new("t-1").text());
    save(&draft, Task::new("t-1").revision(1).text().as_bytes()).unwrap();
    fs::rename(&draft, &path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), Task::new("t-1").revision(1).text());
    assert_eq!(fixture.ledger().names("t-1"), ["created", "saved"]);
    fixture.fsck_clean();
}

// P3.4
#[test]
fn a_record_that_is_named_like_what_is_renamed_over_another_is_one_all_the_same() {
    let fixture = Fixture::new();
    let alone = fixture.task("inbox", &Task::new("t-2.rollback"));
    // By saying so, by a date, because there is no record beside it, because it was one before.
    fixture.task("inbox", &Task::new("t-1"));
    fixture.task("inbox", &Task::new("t-1.rollback"));
    save(&fixture.path("work/inbox/t-1.20260204.yaml"), b"status: new\n").unwrap();
    fixture.task("inbox", &Task::new("t-2"));
    save(&alone, b"status: new\ntitle: no id\n").unwrap();
    assert_eq!(save(&alone, b"status: ["), Err(Errno::INVAL));
    fixture.sh("rm work/inbox/t-2.rollback.yaml").success();
    save(&alone, b"status: new\n").unwrap();
    for id in ["t-1.rollback", "t-1.20260204", "t-2.rollback"] {
        fixture.sh(&format!("mv work/inbox/{id}.yaml work/assigned/bob/")).success();
    }
    // A copy of it is its claim, beside whatever record.
    fixture.task("inbox", &Task::new("t-3.ab12cd_3"));
    fixture.task("inbox", &Task::new("t-3"));
    fixture.sh("mv work/inbox/t-3.yaml work/assigned/bob/").success();
    fixture.sh("cp work/inbox/t-3.ab12cd_3.yaml work/assigned/bob/").success();
    assert_eq!(fixture.ledger().names("t-3.ab12cd_3"), ["created", "claimed"]);
    // What says no id, and what is wrong as soon as it is written.
    let draft = fixture.path("work/assigned/bob/t-3.rollback.yaml");
    save(&draft, b"status: assigned\n").unwrap();
    let moved = fixture.sh("mv work/assigned/bob/t-3.rollback.yaml work/inbox/").failure();
    assert!(moved.stderr.contains("Operation not permitted"), "{moved}");
    save(&draft, Task::new("t-3.rollback").status("assigned").text().as_bytes()).unwrap();
    assert_eq!(fixture.ledger().names("t-3.rollback"), ["created"]);
    fixture.fsck_clean();
}
