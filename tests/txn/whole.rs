//! All of it or nothing.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;

use crate::harness::{
    DEADLINE, Errno, Event, Fixture, Task, await_exit, close, program, python, run, send_signal,
    state_of, until_polled, whole,
};

/// What lies at a path, or nothing.
fn text(fixture: &Fixture, path: &str) -> Option<String> {
    fs::read_to_string(fixture.path(path)).ok()
}

// P13.1 P13.2
#[test]
fn a_commit_makes_all_changes_at_once_and_nothing_is_seen_before() {
    let fixture = Fixture::new();
    fixture.tasks(2);
    fixture.sh("mkdir -p notes/old && echo one > notes/a && echo x > notes/gone").success();
    fixture
        .sh("mkdir .workfs/txn/t && cd .workfs/txn/t
             echo two > notes/a && echo new > notes/b && mkdir notes/dir && echo in > notes/dir/f
             mv notes/dir notes/moved && rm notes/gone && rmdir notes/old && ln -s a notes/link
             mv work/inbox/t-0001.yaml work/assigned/bob/
             sed -i 's/priority: normal/priority: high/' work/inbox/t-0002.yaml
             test \"$(cat notes/a notes/moved/f)\" = \"two
in\" && ls notes > $OUT/inside && ls work/inbox work/assigned/bob >> $OUT/inside")
        .success();
    let inside = fs::read_to_string(fixture.outside("inside")).unwrap();
    assert_eq!(
        inside,
        "a\nb\nlink\nmoved\nwork/assigned/bob:\nt-0001.yaml\n\nwork/inbox:\nt-0002.yaml\n"
    );
    // Outside nothing has happened yet.
    assert_eq!(text(&fixture, "notes/a").unwrap(), "one\n");
    assert!(text(&fixture, "notes/b").is_none() && text(&fixture, "notes/gone").is_some());
    assert!(fixture.path("work/inbox/t-0001.yaml").exists());
    let before = fixture.ledger().last_g();

    fixture.sh("mv .workfs/txn/t .workfs/commit").success();
    assert_eq!(text(&fixture, "notes/a").unwrap(), "two\n");
    assert_eq!(text(&fixture, "notes/b").unwrap(), "new\n");
    assert_eq!(text(&fixture, "notes/moved/f").unwrap(), "in\n");
    assert_eq!(text(&fixture, "notes/link").unwrap(), "two\n");
    assert!(!fixture.path("notes/gone").exists() && !fixture.path("notes/old").exists());
    let claimed = text(&fixture, "work/assigned/bob/t-0001.yaml").unwrap();
    assert!(claimed.contains("status: assigned"), "{claimed}");
    assert!(text(&fixture, "work/inbox/t-0002.yaml").unwrap().contains("priority: high"));
    assert!(!fixture.path(".workfs/txn/t").exists());
    // One trace for all of it.
    let ledger = fixture.ledger();
    let traces: BTreeSet<&str> =
        ledger.after(before).iter().map(|event| event.text("trace_id")).collect();
    assert!(ledger.after(before).len() >= 2 && traces.len() == 1, "{ledger:?}");
    fixture.fsck_clean();
}

// P13.1 P11.1
#[test]
fn a_directory_that_a_refused_commit_moved_keeps_its_rules() {
    let fixture = Fixture::new();
    fixture.sh("mkdir -p scratchpad/a plain && echo 1 > scratchpad/a/f").success();
    let ran = fixture.sh("mkdir .workfs/txn/t && cd .workfs/txn/t
         mv scratchpad/a plain/a && echo new > plain/a/new
         echo 'status: nonsense' > work/inbox/t-0001.yaml
         cd ../../.. && mv .workfs/txn/t .workfs/commit");
    assert!(!ran.ok() && ran.stderr.contains("Operation not permitted"), "{ran}");
    let before = fixture.ledger().last_g();
    fixture.sh("echo 2 > scratchpad/a/f && echo 1 > scratchpad/a/g").success();
    let events = fixture.ledger();
    let events = events.after(before);
    assert_eq!(events.len(), 2, "each save in scratchpad/ is an event: {events:?}");
    let versions = fixture.sh("ls .workfs/history/scratchpad/a/f | wc -l").success();
    assert_eq!(versions.stdout.trim(), "2");
}

// P13.1
#[test]
fn one_refused_record_among_plain_files_refuses_all() {
    let fixture = Fixture::new();
    fixture.tasks(1);
    let ran = fixture.sh("mkdir .workfs/txn/t && cd .workfs/txn/t
         echo a > before && echo 'status: nonsense' > work/inbox/t-0001.yaml && echo b > after
         cd ../../.. && mv .workfs/txn/t .workfs/commit");
    assert!(!ran.ok() && ran.stderr.contains("Operation not permitted"), "{ran}");
    assert!(!fixture.path("before").exists() && !fixture.path("after").exists());
    let record = fs::read(fixture.path("work/inbox/t-0001.yaml")).unwrap();
    whole("t-0001", &record).unwrap();
    let why = fixture.why();
    assert!(why.contains("commit work/inbox/t-0001.yaml EPERM"), "{why}");
    // It is still there, can be mended and then committed.
    let mended = Task::new("t-0001").revision(7).text();
    fs::write(fixture.path(".workfs/txn/t/work/inbox/t-0001.yaml"), mended).unwrap();
    fixture.sh("mv .workfs/txn/t .workfs/commit").success();
    assert!(fixture.path("before").exists() && fixture.path("after").exists());
    let record = fs::read(fixture.path("work/inbox/t-0001.yaml")).unwrap();
    assert_eq!(whole("t-0001", &record), Ok(7));
    fixture.fsck_clean();
}

// P13.2
#[test]
fn who_writes_after_a_move_is_told_what_the_text_must_say() {
    let fixture = Fixture::new();
    fixture.tasks(1);
    let txn = |script: &str| {
        let mut command = fixture.command(&["txn", "--", "sh", "-c", script]);
        crate::harness::run(command.current_dir(fixture.root()))
    };
    // In place, and by a rename over it.
    for write in ["echo 'notes: more' >>", "sed -i 's/^priority: .*/priority: high/'"] {
        let ran = txn(&format!(
            "mv work/inbox/t-0001.yaml work/assigned/bob/ && {write} work/assigned/bob/t-0001.yaml"
        ));
        assert!(!ran.ok(), "{ran}");
        let why = fixture.why();
        let newest = why.split("\n\n").next().unwrap();
        let remedy = "write the text before the `mv`, or write in it what the `mv` brings: \
                      `status: assigned` and `agent: bob`";
        assert!(newest.contains("W013") && newest.contains(remedy), "{write}: {why}");
    }
    // What is told helps, either way.
    let ways = [
        "echo 'notes: more' >> work/inbox/t-0001.yaml && mv work/inbox/t-0001.yaml work/assigned/bob/",
        "mv work/assigned/bob/t-0001.yaml work/inbox/ && \
         mv work/inbox/t-0001.yaml work/assigned/bob/ && \
         sed -i 's/^status: .*/status: assigned/; s/^agent: .*/agent: bob/' \
             work/assigned/bob/t-0001.yaml",
    ];
    for way in ways {
        txn(way).success();
    }
    fixture.fsck_clean();
}

// P13.4
#[test]
fn rmdir_throws_it_away() {
    let fixture = Fixture::new();
    fixture.sh("mkdir .workfs/txn/t && echo a > .workfs/txn/t/a && rmdir .workfs/txn/t").success();
    assert!(!fixture.path("a").exists() && !fixture.path(".workfs/txn/t").exists());
    // A name may be used again, and is empty-handed then.
    fixture.sh("mkdir .workfs/txn/t && mv .workfs/txn/t .workfs/commit && ! test -e a").success();
}

// P13.4
#[test]
fn with_the_mount_it_is_gone() {
    let fixture = Fixture::new();
    fixture.sh("mkdir .workfs/txn/t && echo a > .workfs/txn/t/a").success();
    fixture.unmount_all();
    fixture.mount_all();
    fixture.sh("! test -e .workfs/txn/t && ! test -e a").success();
}

// P13.1
#[test]
fn a_file_that_is_still_being_written_holds_the_commit_up() {
    let fixture = Fixture::new();
    let (txn, commit) = (fixture.path(".workfs/txn/t"), fixture.path(".workfs/commit/t"));
    fs::create_dir(&txn).unwrap();
    fs::write(txn.join("b"), "all").unwrap();
    let mut file = fs::File::create(txn.join("a")).unwrap();
    file.write_all(b"half").unwrap();
    let error = fs::rename(&txn, &commit).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::BUSY));
    assert!(fixture.why().contains("W024") && !fixture.path("b").exists());
    file.write_all(b" and half").unwrap();
    close(file).unwrap();
    fs::rename(&txn, &commit).unwrap();
    assert_eq!(text(&fixture, "a").unwrap(), "half and half");
}

// P13.1 P2.3
#[test]
fn a_child_that_inherits_a_descriptor_does_not_end_what_is_written() {
    let fixture = Fixture::new();
    fixture.sh("mkdir .workfs/txn/t").success();
    // The child's exec closes its copy of the descriptor, which the kernel tells like any close.
    let script = "import errno, os, subprocess, sys
f = open('.workfs/txn/t/a', 'w')
f.write('half')
f.flush()
subprocess.run(['true'])
try:
    os.rename('.workfs/txn/t', '.workfs/commit/t')
    sys.exit('half a file was committed')
except OSError as error:
    assert error.errno == errno.EBUSY, error
f.write(' and half')
f.close()
os.rename('.workfs/txn/t', '.workfs/commit/t')";
    let shell = fixture.bash().with("PYTHON", python()).with("S", script);
    shell.run("\"$PYTHON\" -c \"$S\"").success();
    assert_eq!(text(&fixture, "a").unwrap(), "half and half");
}

// P13.6
#[test]
fn the_command_commits_at_exit_0_and_throws_away_else() {
    let fixture = Fixture::new();
    let txn = |snippet: &str| {
        let mut command = fixture.command(&["txn", "--", "sh", "-c", snippet]);
        crate::harness::run(command.current_dir(fixture.root()))
    };
    txn("echo a > a && echo b > b").success();
    assert_eq!(text(&fixture, "b").unwrap(), "b\n");
    let ran = txn("echo c > c; exit 7");
    assert_eq!(ran.code, 7, "{ran}");
    assert!(!fixture.path("c").exists());
    // Somebody else was faster: the code of a conflict, and the reason.
    let ran = txn(&format!("echo mine > a; echo theirs > {}", fixture.path("a").display()));
    assert_eq!(ran.code, 5, "{ran}");
    assert!(ran.stderr.contains("`a`") && ran.stderr.contains("run the command again"), "{ran}");
    assert!(!ran.stderr.contains("rmdir"), "it is thrown away: {ran}");
    assert_eq!(text(&fixture, "a").unwrap(), "theirs\n");
    assert_eq!(fs::read_dir(fixture.path(".workfs/txn")).unwrap().count(), 0);
    // Outside a mount there is nothing to work in.
    let ran = fixture.workfs(&["txn", "--", "true"]);
    assert!(!ran.ok() && ran.stderr.contains("mount"), "{ran}");
}

// P13.5
#[test]
fn what_cannot_be_done_inside_is_refused() {
    let fixture = Fixture::new();
    fixture.sh("echo a > a && mkdir .workfs/txn/t").success();
    let inside = fixture.path(".workfs/txn/t");
    let errno = |result: std::io::Result<()>| {
        Errno::from_io_error(&result.expect_err("must be refused")).unwrap()
    };
    assert_eq!(errno(fs::hard_link(inside.join("a"), inside.join("b"))), Errno::OPNOTSUPP);
    assert_eq!(errno(fs::rename(inside.join("a"), fixture.path("b"))), Errno::PERM);
    assert_eq!(errno(fs::rename(fixture.path("a"), inside.join("b"))), Errno::PERM);
    assert_eq!(errno(fs::create_dir(inside.join(".workfs"))), Errno::OPNOTSUPP);
    assert_eq!(errno(fs::remove_dir(inside.join("a"))), Errno::NOTDIR);
    assert_eq!(errno(fs::create_dir(fixture.path(".workfs/txn/t"))), Errno::EXIST);
    fixture.sh("! mkfifo .workfs/txn/t/p && ! test -e .workfs/txn/t/.workfs").success();
}

// P13.6
#[test]
fn what_refuses_a_commit_is_told_with_its_rule_and_its_place() {
    let fixture = Fixture::new();
    fixture.tasks(1);
    let script = "printf 'id: t-0001\\ntitle: [\\n' > work/inbox/t-0001.yaml";
    let mut command = fixture.command(&["--json", "txn", "--", "sh", "-c", script]);
    let ran = run(command.current_dir(fixture.root())).failure();
    let told: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    let error = &told["error"];
    assert_eq!((&error["rule"], &error["place"]["line"]), (&"W010".into(), &2.into()), "{ran}");
    assert!(error["reason"].as_str().unwrap().contains("work/inbox/t-0001.yaml: "), "{ran}");
    assert!(fixture.why().contains("W010"));
    // Whichever errno the rule has.
    fixture
        .sh("mkdir -p work/assigned/bob; mv work/inbox/t-0001.yaml work/assigned/bob/")
        .success();
    for (script, rule) in [
        ("printf 'id: t-0001\\nstatus: new\\n' > work/inbox/t-0001.yaml", "W002"),
        ("head -c 1100000 /dev/zero | tr '\\0' x > work/inbox/t-2.yaml", "W008"),
    ] {
        let mut command = fixture.command(&["txn", "--", "sh", "-c", script]);
        let ran = run(command.current_dir(fixture.root())).failure();
        assert!(ran.code == 6 && ran.stderr.contains(rule), "{ran}");
    }
}

// P13.5
#[test]
fn what_all_transactions_of_one_user_have_written_has_a_limit() {
    const MIB: usize = 1 << 20;
    let fixture = Fixture::new();
    let begin = |nth: usize| {
        let txn = fixture.path(&format!(".workfs/txn/t{nth}"));
        fs::create_dir(&txn).unwrap();
        txn
    };
    let full: Vec<_> = (0..8).map(begin).collect();
    for txn in &full {
        fs::write(txn.join("big"), vec![b'x'; 31 * MIB]).unwrap();
    }
    let one_more = begin(8);
    let refused = fs::write(one_more.join("big"), vec![b'x'; 31 * MIB]).unwrap_err();
    assert_eq!(Errno::from_io_error(&refused), Some(Errno::MFILE));
    // Not a byte more can be written, and why can be read all the same.
    let mut last = fs::File::create(begin(9).join("last")).unwrap();
    for bit in (0..20).rev() {
        let _ = last.write_all(&vec![b'x'; 1 << bit]);
    }
    let refused = last.write_all(b"x").unwrap_err();
    assert_eq!(Errno::from_io_error(&refused), Some(Errno::MFILE));
    until_polled("it says which limit", || {
        fixture.why().contains("one user keep 256 MiB").then_some(())
    });
    // Who ends one has its room again.
    fs::remove_dir(&full[0]).unwrap();
    fs::write(begin(10).join("big"), vec![b'x'; 10 * MIB]).unwrap();
}

// P13.5
#[test]
fn there_is_a_limit_on_everything() {
    let fixture = Fixture::new();
    let errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap();
    let txn = fixture.path(".workfs/txn/t");
    fs::create_dir(&txn).unwrap();
    let told = |limit: &str, remedy: &str| {
        let row = until_polled("it says which limit", || {
            let why = fixture.why();
            let row = why.split("\n\n").next().filter(|row| row.contains(limit))?;
            Some(row.to_owned())
        });
        assert!(row.contains(".workfs/txn/") && row.contains(remedy), "{row}");
    };
    let big = fs::write(txn.join("big"), vec![b'x'; 33 << 20]).map_err(errno);
    assert_eq!(big, Err(Errno::FBIG));
    told("at most 32 MiB", "several transactions");
    let last = (0..).find_map(|nth| fs::create_dir(txn.join(nth.to_string())).err());
    assert_eq!(last.map(errno), Some(Errno::FBIG));
    told("at most 2000 changes", "several transactions");
    let more = (0..).find_map(|nth| fs::create_dir(txn.with_file_name(format!("u{nth}"))).err());
    assert_eq!(more.map(errno), Some(Errno::MFILE));
    told("at most 16 transactions of one agent or user in a mount", "`rmdir` yours");
    // What was done before a limit was met can be committed.
    fixture.sh("mv .workfs/txn/t .workfs/commit && test -d 1900").success();
}

// P13.6
#[test]
fn a_signal_ends_the_command_and_throws_all_away() {
    let fixture = Fixture::new();
    let txns = fixture.path(".workfs/txn");
    for (signal, code) in [(Signal::TERM, 128 + 15), (Signal::INT, 130)] {
        let script = "echo x > y && exec sleep 60";
        let mut command = fixture.command(&["txn", "--", "sh", "-c", script]);
        let mut child = command.current_dir(fixture.root()).spawn().unwrap();
        until_polled("the command's file", || {
            let txn = fs::read_dir(&txns).unwrap().next()?.unwrap().path();
            fs::read_to_string(txn.join("y")).ok().filter(|text| text == "x\n")
        });
        send_signal(child.id(), signal);
        assert!(await_exit(child.id(), DEADLINE));
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert!(!fixture.path("y").exists());
        assert_eq!(fs::read_dir(&txns).unwrap().count(), 0);
    }
}

// P13.6
#[test]
fn who_waits_for_the_commit_can_be_interrupted() {
    let fixture = Fixture::new();
    let daemon = fixture.daemon_pid();
    // Some of its threads stop a moment later; what they have taken on could not be interrupted.
    let script = format!("echo x > y && kill -STOP {daemon} && sleep 0.5");
    let mut command = fixture.command(&["txn", "--", "sh", "-c", &script]);
    let mut child = command.current_dir(fixture.root()).spawn().unwrap();
    until_polled("the daemon is stopped", || (state_of(daemon) == Some('T')).then_some(()));
    std::thread::sleep(Duration::from_secs(1));
    send_signal(child.id(), Signal::INT);
    let ended = await_exit(child.id(), DEADLINE);
    send_signal(daemon, Signal::CONT);
    assert!(ended, "it waits for the daemon");
    assert_eq!(child.wait().unwrap().signal(), Some(2));
}

// P6.7 P13.6
#[test]
fn a_transaction_is_not_begun_at_a_daemon_that_is_stopped() {
    let fixture = Fixture::new();
    let daemon = fixture.daemon_pid();
    // It is there already: whoever changes into the mount now waits.
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "echo; read go; exec \"$0\" txn -- true", program()]);
    command.current_dir(fixture.root()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
    send_signal(daemon, Signal::STOP);
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let ended = await_exit(child.id(), Duration::from_secs(10));
    send_signal(daemon, Signal::CONT);
    assert_eq!((ended, child.wait().unwrap().code()), (true, Some(75)));
    assert_eq!(fs::read_dir(fixture.path(".workfs/txn")).unwrap().count(), 0);
}

// P13.6
#[test]
fn a_signal_that_comes_when_the_command_has_ended_throws_all_away() {
    let fixture = Fixture::new();
    // While `workfs` is stopped nobody sees that its command has ended.
    let script = "echo x > y && kill -STOP $PPID";
    let mut command = fixture.command(&["txn", "--", "sh", "-c", script]);
    let mut child = command.current_dir(fixture.root()).spawn().unwrap();
    until_polled("it is stopped", || (state_of(child.id()) == Some('T')).then_some(()));
    send_signal(child.id(), Signal::INT);
    send_signal(child.id(), Signal::CONT);
    child.wait().unwrap();
    assert!(!fixture.path("y").exists());
    assert_eq!(fs::read_dir(fixture.path(".workfs/txn")).unwrap().count(), 0);
}

// P13.6
#[test]
fn what_cannot_be_run_or_lies_in_a_transaction_already_is_told() {
    let fixture = Fixture::new();
    let txn = |command: &[&str]| {
        let mut command = fixture.command(&[&["txn", "--"], command].concat());
        crate::harness::run(command.current_dir(fixture.root()))
    };
    assert_eq!(txn(&["no-such-command"]).code, 127);
    fixture.sh("echo x > plain").success();
    assert_eq!(txn(&["./plain"]).code, 126);
    let (workfs, store) = (program(), fixture.store().to_str().unwrap());
    let script = "echo a > a; mkdir -p d; cd d; \"$0\" --store \"$1\" txn -- touch b";
    let ran = txn(&["sh", "-c", script, workfs, store]);
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.stderr.contains("lies in a transaction already"), "{ran}");
    fixture.sh("! test -e a && ! test -e b && ! test -e d/b").success();
    assert_eq!(fs::read_dir(fixture.path(".workfs/txn")).unwrap().count(), 0);
}

// P13.6
#[test]
fn the_command_runs_in_the_transaction_where_it_was_called_in_the_mount() {
    let fixture = Fixture::new();
    fixture.sh("mkdir -p plain/deep && echo old > plain/deep/f").success();
    let from = |dir: &str, snippet: &str| {
        let mut command = fixture.command(&["txn", "--", "sh", "-c", snippet]);
        command.current_dir(fixture.path(dir));
        crate::harness::run(&mut command)
    };
    from("plain/deep", "cat f && echo new > f && echo more > ../g").success();
    assert_eq!(fs::read_to_string(fixture.path("plain/deep/f")).unwrap(), "new\n");
    assert_eq!(fs::read_to_string(fixture.path("plain/g")).unwrap(), "more\n");
    from("", "mv plain/g g").success();
    assert!(fixture.path("g").exists());
    // Only the mount's own `.workfs` has transactions.
    fixture.sh("mkdir -p plain/.workfs/txn plain/.workfs/commit").success();
    from("plain/deep", "cat f && echo newer > f").success();
    assert_eq!(fs::read_to_string(fixture.path("plain/deep/f")).unwrap(), "newer\n");
    // Programs that are no shells ask for it by this, as `make` does.
    let mut command = fixture.command(&["txn", "--", "printenv", "PWD"]);
    let ran = crate::harness::run(command.current_dir(fixture.path("plain"))).success();
    assert!(ran.stdout.contains(".workfs/txn/") && ran.stdout.ends_with("/plain\n"), "{ran}");
    // What is computed is in no transaction; nothing is left of the one that was begun.
    for computed in ["work/ready", ".workfs/kinds"] {
        let ran = from(computed, "touch x").failure();
        assert!(ran.code == 2 && ran.stderr.contains("in a transaction"), "{computed}: {ran}");
    }
    assert_eq!(fs::read_dir(fixture.path(".workfs/txn")).unwrap().count(), 0);
}

// P13.2 P13.6
#[test]
fn what_agents_md_says_of_transactions_is_so() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let text = fs::read_to_string(fixture.path("AGENTS.md")).unwrap();
    assert!(text.contains("There, save a file before you `mv` it"), "{text}");
    let script = "f=work/inbox/t-1.yaml; printf 'result:\n  summary: x\n' >> $f
        mv $f work/assigned/bob/ && mv work/assigned/bob/t-1.yaml work/done/bob/";
    let mut command = fixture.command(&["txn", "--", "sh", "-c", script]);
    crate::harness::run(command.current_dir(fixture.root())).success();
    assert!(fixture.path("work/done/bob/t-1.yaml").exists());
}

// P11.1 P13.1
#[test]
fn a_directory_that_was_undone_gives_no_other_its_rules() {
    let fixture = Fixture::new();
    fixture.sh("mkdir -p scratchpad plain work/inbox").success();
    for (undone, made) in [("plain/a", "scratchpad/b"), ("scratchpad/c", "plain/d")] {
        let script = format!(
            "mkdir .workfs/txn/t && cd .workfs/txn/t && mkdir {undone} && echo one > {undone}/x
             printf 'id: t-1\\nstatus: nonsense\\n' > work/inbox/t-1.yaml
             cd ../../.. && mv .workfs/txn/t .workfs/commit"
        );
        fixture.sh(&script).failure();
        fixture.sh("rmdir .workfs/txn/t").success();
        let before = fixture.ledger().last_g();
        fixture.sh(&format!("mkdir {made} && echo one > {made}/y")).success();
        let ledger = fixture.ledger();
        let path = |event: &&Event| event.0["payload"]["path"].as_str().unwrap().to_owned();
        let paths: Vec<String> = ledger.after(before).iter().map(path).collect();
        let wanted = if made.starts_with("plain") { vec![] } else { vec![made, "scratchpad/b/y"] };
        assert_eq!(paths, wanted, "{undone}");
    }
    fixture.fsck_clean();
}
