//! What the steps of a commit are: all that was written, in the order in which it was done.

use std::fs;
use std::io::Write;

use rustix::fs::{Mode, OFlags, openat};

use crate::harness::{Fixture, Ran, Task, close, run, until_polled};

/// What lies at a path.
fn text(fixture: &Fixture, path: &str) -> String {
    fs::read_to_string(fixture.path(path)).unwrap()
}

/// `workfs txn -- sh -c SNIPPET`, at the mount's root.
fn txn(fixture: &Fixture, snippet: &str) -> Ran {
    let mut command = fixture.command(&["txn", "--", "sh", "-c", snippet]);
    run(command.current_dir(fixture.root()))
}

// P13.1 P13.5
#[test]
fn what_finds_no_room_any_more_is_refused_before_it_is_written() {
    let fixture = Fixture::new();
    fixture.sh("echo old > important && echo old > second && mkdir .workfs/txn/t").success();
    // One is left.
    let inside = fixture.path(".workfs/txn/t");
    for nth in 0..1_999 {
        fs::create_dir(inside.join(nth.to_string())).unwrap();
    }
    let wrote = |name: &str| fs::write(inside.join(name), "new\n").map_err(|e| e.raw_os_error());
    assert_eq!(wrote("third"), Err(Some(libc::EFBIG)), "a new file is two");
    assert_eq!(wrote("important"), Ok(()));
    assert_eq!(wrote("second"), Err(Some(libc::EFBIG)));
    assert_eq!(fs::read_to_string(inside.join("second")).unwrap(), "old\n");
    fixture.sh("mv .workfs/txn/t .workfs/commit").success();
    assert_eq!((&*text(&fixture, "important"), &*text(&fixture, "second")), ("new\n", "old\n"));
    assert!(!fixture.path("third").exists());

    // So a shell hears of it.
    let script = "rmdir $(seq 0 1998); echo new1 > important; echo new2 > second";
    let ran = txn(&fixture, script).failure();
    assert!(ran.stderr.contains("second"), "{ran}");
    assert_eq!(text(&fixture, "important"), "new\n");
    assert!(fixture.path("1998").exists());
    fixture.fsck_clean();
}

// P13.1 P13.2
#[test]
fn a_file_that_keeps_another_name_is_written_by_it() {
    let fixture = Fixture::new();
    let write = "echo more >&3; exec 3>&-";
    let cases = [
        ("removed", "exec 3>>a; rm b"),
        ("replaced", "exec 3>>a; echo x > c; mv c b"),
        ("moved and removed", "exec 3>>a; mv b c; rm c"),
        ("under its other name", "exec 3>>b; rm b"),
    ];
    for (name, take) in cases {
        fixture.sh("rm -f a b c && echo base > a && ln a b").success();
        let ran = txn(&fixture, &format!("{take}; {write}; cat a; stat -c %h a")).success();
        assert_eq!(ran.stdout, "base\nmore\n1\n", "{name}");
        assert_eq!(text(&fixture, "a"), "base\nmore\n", "{name}");
    }
    // What has none left is nobody's.
    fixture.sh("rm -f a b && echo base > a && ln a b").success();
    txn(&fixture, "exec 3>>a; rm a b; echo more >&3; exec 3>&-").success();
    assert!(!fixture.path("a").exists() && !fixture.path("b").exists());
    txn(&fixture, "exec 3>new; rm new; echo more >&3; exec 3>&-; test ! -e new").success();
    fixture.fsck_clean();
}

// P13.1
#[test]
fn steps_are_made_in_the_order_in_which_they_were_done() {
    let fixture = Fixture::new();
    let (from, to) = ("work/inbox/t-0001.yaml", "work/assigned/bob/t-0001.yaml");
    let claim =
        format!("sed 's/^status: .*/status: assigned/; s/^agent: .*/agent: bob/' {from} > {to}");
    fixture.task("inbox", &Task::new("t-0001"));
    txn(&fixture, &format!("{claim} && rm {from}; echo '# more' >> {to}")).success();
    assert_eq!(fixture.ledger().names("t-0001"), ["created", "claimed", "saved"]);
    assert!(text(&fixture, to).ends_with("# more\n"));

    // What a shell closes before it writes is no save, whatever others do in between.
    fixture.sh("echo x > a && mkdir .workfs/txn/t").success();
    let inside = fixture.path(".workfs/txn/t");
    let path = inside.join("work/inbox/t-0002.yaml");
    let mut file = fs::File::create(&path).unwrap();
    drop(file.try_clone().unwrap());
    fs::rename(inside.join("a"), inside.join("b")).unwrap();
    file.write_all(Task::new("t-0002").text().as_bytes()).unwrap();
    close(file).unwrap();
    // What nothing goes between is one, so that a log costs one step.
    for nth in 0..2_000 {
        for name in ["one", "two"] {
            let mut log = fs::OpenOptions::new().append(true).create(true).open(inside.join(name));
            writeln!(log.as_mut().unwrap(), "{nth}").unwrap();
        }
    }
    fixture.sh("mv .workfs/txn/t .workfs/commit").success();
    assert_eq!(fixture.ledger().names("t-0002"), ["created"]);
    assert_eq!(text(&fixture, "two").lines().count(), 2_000);
    fixture.fsck_clean();
}

// P13.1
#[test]
fn who_only_reads_a_file_ends_nothing_of_what_another_writes_to_it() {
    let fixture = Fixture::new();
    let inside = fixture.path(".workfs/txn/t");
    for begun in ["half", ""] {
        fixture.sh("echo old > a && mkdir .workfs/txn/t").success();
        let mut writing = fs::File::create(inside.join("a")).unwrap();
        writing.write_all(begun.as_bytes()).unwrap();
        assert_eq!(fs::read_to_string(inside.join("a")).unwrap(), begun);
        let commit = || fs::rename(&inside, fixture.path(".workfs/commit/t"));
        assert_eq!(commit().map_err(|e| e.raw_os_error()), Err(Some(libc::EBUSY)), "{begun}");
        writing.write_all(b" and all").unwrap();
        close(writing).unwrap();
        commit().unwrap();
        assert_eq!(text(&fixture, "a"), format!("{begun} and all"));
    }
    fixture.fsck_clean();
}

// P1.3 P13.1
#[test]
fn a_record_that_was_claimed_by_a_copy_is_removed_where_it_was_without_harm() {
    let fixture = Fixture::new();
    for (id, copy) in [("t-0001", "cp {f} {t}"), ("t-0002", "cp {f} x && mv x {t}")] {
        fixture.task("inbox", &Task::new(id));
        let [from, to] = ["inbox", "assigned/bob"].map(|dir| format!("work/{dir}/{id}.yaml"));
        let copy = copy.replace("{f}", &from).replace("{t}", &to);
        txn(&fixture, &format!("{copy} && rm {from}")).success();
        assert!(fixture.path(&to).exists() && !fixture.path(&from).exists());
        assert_eq!(fixture.ledger().names(id), ["created", "claimed"]);
    }
    // But there is no record to be written there any more, and it is said where.
    fixture.task("inbox", &Task::new("t-0003"));
    let [from, to] = ["inbox", "assigned/bob"].map(|dir| format!("work/{dir}/t-0003.yaml"));
    let ran = txn(&fixture, &format!("cp {from} {to} && echo '# more' >> {from}")).failure();
    assert!(ran.stderr.contains(&from), "{ran}");
    fixture.fsck_clean();
}

// P13.1
#[test]
fn a_new_file_that_is_removed_again_is_in_nobody_s_way_whatever_it_said() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-0001"));
    let (bad, copy) = ("work/inbox/t-0002.yaml", "work/assigned/bob/t-0001.yaml");
    let script = format!(
        "echo 'title: [x' > {bad} && rm {bad} && cp work/inbox/t-0001.yaml {copy} && rm {copy} && \
         echo x > a"
    );
    txn(&fixture, &script).success();
    assert!(fixture.path("a").exists() && !fixture.path(bad).exists());
    assert_eq!(fixture.ledger().names("t-0001"), ["created"], "as it was seen inside");
    // But a copy goes by what was saved.
    fs::write(fixture.path("new"), Task::new("t-0003").text()).unwrap();
    let (from, to) = ("work/inbox/t-0003.yaml", "work/assigned/bob/t-0003.yaml");
    txn(&fixture, &format!("cp new {from} && cp {from} {to} && rm {from}")).success();
    assert_eq!(fixture.ledger().names("t-0003"), ["created", "claimed"]);
    fixture.fsck_clean();
}

// P13.1 P13.2
#[test]
fn what_other_files_do_in_between_does_not_make_two_saves_of_one() {
    let fixture = Fixture::new();
    fixture.sh("mkdir .workfs/txn/t && echo x > a").success();
    let (inside, path) = (fixture.path(".workfs/txn/t"), "work/inbox/t-0001.yaml");
    fs::write(inside.join(path), "title: [x\n").unwrap();
    let commit = || fs::rename(&inside, fixture.path(".workfs/commit/t"));
    fs::rename(inside.join("a"), inside.join("b")).unwrap();
    commit().unwrap_err();
    assert!(fixture.why().contains(path));
    // Whatever else was moved: it can be mended.
    fs::write(inside.join(path), Task::new("t-0001").text()).unwrap();
    commit().unwrap();
    assert_eq!(fixture.ledger().names("t-0001"), ["created"]);

    // By a file that replaces it, too, whether it was there before or not.
    for path in [path, "work/inbox/t-0002.yaml"] {
        fs::create_dir(&inside).unwrap();
        let id = path.split(['/', '.']).nth(2).unwrap();
        let bad = Task::new(id).text().replace("\nid: ", "\nid: [");
        fs::write(inside.join(path), bad).unwrap();
        commit().unwrap_err();
        fixture.sh(&format!("sed -i 's/^id: \\[/id: /' .workfs/txn/t/{path}")).success();
        commit().unwrap();
        assert_eq!(text(&fixture, path), Task::new(id).text());
    }
    assert_eq!(fixture.ledger().names("t-0002"), ["created"]);

    // A log costs one step, also of a program that moves what it writes.
    let script = "mkdir logs; for n in $(seq 700); do echo $n >> logs/log; mv b c; mv c b; done";
    txn(&fixture, script).success();
    assert_eq!(text(&fixture, "logs/log").lines().count(), 700);

    // But a backup's name may be any beside its record.
    fixture.sh(&format!("mv {path} work/inbox/old")).success();
    let script = format!("cp work/inbox/old {path}; rm work/inbox/old; echo '# more' >> {path}");
    txn(&fixture, &script).success();
    let ledger = fixture.ledger();
    assert!(!ledger.names("t-0001").contains(&"removed"), "{:?}", ledger.names("t-0001"));
    fixture.fsck_clean();
}

// P13.3 P13.5
#[test]
fn what_a_transaction_uses_has_a_limit_and_what_it_looks_at_none() {
    let fixture = Fixture::new();
    let (used_max, many) = (workfs::limits::TXN_USED_MAX, fixture.outside("many"));
    fs::create_dir(&many).unwrap();
    for nth in 1..used_max {
        fs::File::create(many.join(nth.to_string())).unwrap();
    }
    fixture.workfs(&["import", many.to_str().unwrap(), "many"]).success();
    fixture.sh("mkdir -p deep/dir .workfs/txn/t && echo old > deep/dir/f && touch more").success();
    let inside = fixture.path(".workfs/txn/t");
    let dir = fs::File::open(inside.join("deep/dir")).unwrap();
    fixture.sh("mkdir -p far/away && touch far/away/g").success();
    let mut writing = fs::OpenOptions::new().append(true).open(inside.join("far/away/g")).unwrap();
    writing.write_all(b"new").unwrap();
    let read = |name: &str| fs::File::open(inside.join(name)).map(drop);
    for nth in 2..used_max {
        read(&format!("many/{nth}")).unwrap();
    }
    fs::metadata(inside.join("many/1")).unwrap();
    // Where the way to what it has was forgotten, too.
    let refused = fs::rename(&inside, fixture.path(".workfs/commit/t")).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EBUSY));
    let why = fixture.why();
    assert!(why.contains("`far/away/g` still open"), "{}", why.lines().take(3).collect::<String>());
    close(writing).unwrap();
    // Who is in a directory since before its place was forgotten is told its path all the same.
    drop(openat(&dir, "f", OFlags::RDONLY, Mode::empty()).unwrap());
    assert_eq!(read("more").unwrap_err().raw_os_error(), Some(libc::EFBIG));
    until_polled("it says which limit", || {
        let why = fixture.why();
        let row = why.split("\n\n").next()?;
        (row.contains("W008") && row.contains(&format!("at most {used_max} files"))).then_some(())
    });
    read("many/7").unwrap();
    fs::metadata(inside.join("more")).unwrap();
    fixture.sh("echo new > deep/dir/f").success();
    let refused = fs::rename(&inside, fixture.path(".workfs/commit/t")).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EBUSY));
    let why = fixture.why();
    assert!(why.contains("since the transaction used it: `deep/dir/f`"), "{why}");
    fs::remove_dir(&inside).unwrap();
    fixture.fsck_clean();
}

// P13.1
#[test]
fn what_is_renamed_over_a_record_before_it_is_closed_is_a_save_of_it() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let control = fixture.path(".workfs");
    fs::create_dir(control.join("txn/t")).unwrap();
    let inbox = control.join("txn/t/work/inbox");
    let mut file = fs::File::create(inbox.join(".t-1.tmp")).unwrap();
    file.write_all(Task::new("t-1").revision(1).text().as_bytes()).unwrap();
    fs::rename(inbox.join(".t-1.tmp"), inbox.join("t-1.yaml")).unwrap();
    close(file).unwrap();
    fs::rename(control.join("txn/t"), control.join("commit/t")).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), Task::new("t-1").revision(1).text());
    assert_eq!(fixture.ledger().names("t-1"), ["created", "saved"]);
    fixture.fsck_clean();
}
