//! The claim as public scripts do it: write the file into the lane, then unlink the old one.

use std::fs;

use crate::harness::{Errno, Fixture, Ran, Task, lies, pile, python, save, until_polled};

// P1.3
#[test]
fn cp_and_rm_is_the_same_claim_as_mv() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let script = "set -e; cp work/inbox/t-1.yaml work/assigned/bob/t-1.yaml
                  rm work/inbox/t-1.yaml";
    // `rm` is another process than `cp`, with the same parent.
    fixture.sh(script).success();
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "assigned/bob");
    let ledger = fixture.ledger();
    assert_eq!(ledger.names("t-1"), ["created", "claimed"]);
    assert_eq!(ledger.of_record("t-1")[1].0["payload"]["via"], "copy");
    fixture.fsck_clean();
}

/// What the public script does, in its own words.
const SCRIPT: &str = "
import sys, os
src, dst, agent = sys.argv[1:]
text = open(src).read()
text = text.replace('status: new', 'status: assigned').replace('agent: nobody', 'agent: ' + agent)
with open(dst, 'w') as f:
    f.write(text)
os.unlink(src)
";

// P1.3
#[test]
fn a_python_script_that_writes_and_unlinks_claims() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let call = "\"$PYTHON\" -c \"$SCRIPT\" work/inbox/t-1.yaml work/assigned/bob/t-1.yaml bob";
    fixture.bash().with("PYTHON", python()).with("SCRIPT", SCRIPT).run(call).success();
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "assigned/bob");
    assert_eq!(fixture.ledger().names("t-1"), ["created", "claimed"]);
}

/// The same, where the copy is made by a program that the script starts.
const STARTS: &str = "
import subprocess, sys, os
src, dst = sys.argv[1:]
subprocess.run(['cp', src, dst], check=True)
os.remove(src)
try:
    os.remove(src)
except FileNotFoundError:
    print('once')
";

// P1.3
#[test]
fn whoever_starts_the_copy_may_unlink_the_source() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.task("inbox", &Task::new("t-2"));
    let call = |id: &str, script: &str| {
        let paths = format!("work/inbox/{id}.yaml work/assigned/bob/");
        let shell = fixture.bash().with("PYTHON", python()).with("SCRIPT", script);
        shell.run(&format!("\"$PYTHON\" -c \"$SCRIPT\" {paths}; exit $?"))
    };
    assert_eq!(call("t-1", STARTS).success().stdout, "once\n");
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "assigned/bob");
    // A shell asks for the truth, whatever its program's file or its script is called.
    fs::write(
        fixture.outside("claim.sh"),
        "#!/bin/sh\ncp \"$1\" \"$2\"\n[ -e \"$1\" ] && echo there\nrm \"$1\"\n",
    )
    .unwrap();
    let ran =
        fixture.sh("chmod +x $OUT/claim.sh; $OUT/claim.sh work/inbox/t-2.yaml work/assigned/bob/");
    assert_eq!(ran.success().stdout, "");
    // Who did not start it hears that it is gone, also where it comes from the same parent.
    fixture.task("inbox", &Task::new("t-3"));
    fixture.sh("cp work/inbox/t-3.yaml work/assigned/bob/; true").success();
    let late = fixture.bash().with("PYTHON", python());
    late.run("\"$PYTHON\" -c 'import os; os.remove(\"work/inbox/t-3.yaml\")'").failure();
    fixture.fsck_clean();
}

// P1.3
#[test]
fn who_copies_too_late_gets_eexist_and_overwrites_nothing() {
    let fixture = Fixture::new();
    let task = Task::new("t-1");
    fixture.task("inbox", &task);
    fixture.sh("cp work/inbox/t-1.yaml $OUT/copy").success();
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/ann/").success();
    let winner = fs::read(fixture.path("work/assigned/ann/t-1.yaml")).unwrap();

    let late = fixture.sh("cp $OUT/copy work/assigned/bob/t-1.yaml").failure();
    assert!(late.stderr.contains("File exists"), "{late}");
    let text = task.clone().status("assigned").owner("bob").text();
    let path = fixture.path("work/assigned/bob/t-1.yaml");
    assert_eq!(save(&path, text.as_bytes()), Err(Errno::EXIST));
    assert_eq!(fs::read(fixture.path("work/assigned/ann/t-1.yaml")).unwrap(), winner);
    assert_eq!(fixture.ledger().counts("claimed")["t-1"], 1);
    assert!(fixture.why().contains("W002"), "{}", fixture.why());
    fixture.fsck_clean();
}

// P1.3
#[test]
fn a_rename_into_the_lane_is_a_copy_too() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let text = Task::new("t-1").status("assigned").owner("bob").revision(1).text();
    fs::write(fixture.outside("new"), text).unwrap();
    let script = "cd work; cp $OUT/new assigned/bob/t-1.yaml.tmp.77.c0ffee
                  mv assigned/bob/t-1.yaml.tmp.77.c0ffee assigned/bob/t-1.yaml";
    fixture.sh(script).success();
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "assigned/bob");
    assert_eq!(fixture.ledger().names("t-1"), ["created", "claimed"]);
    fixture.fsck_clean();
}

// P1.4
#[test]
fn a_copy_of_an_old_version_claims_nothing() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let old = fs::read_to_string(&path).unwrap();
    fixture.sh("sed -i 's/^revision: 0/revision: 1/' work/inbox/t-1.yaml").success();
    // It read the version before, and would undo the save in between unseen.
    let to = fixture.path("work/assigned/bob/t-1.yaml");
    let mine = old.replace("status: new", "status: assigned");
    assert_eq!(save(&to, mine.as_bytes()), Err(Errno::BUSY));
    assert!(fs::read_to_string(&path).unwrap().contains("revision: 1\n"));
    let mine = fs::read_to_string(&path).unwrap().replace("status: new", "status: assigned");
    save(&to, mine.as_bytes()).unwrap();
    assert!(fs::read_to_string(&to).unwrap().contains("revision: 1\n"));
    assert_eq!(fixture.ledger().names("t-1"), ["created", "saved", "claimed"]);
    fixture.fsck_clean();
}

// P1.3
#[test]
fn a_temp_file_that_comes_after_a_claim_takes_nothing_back() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let temp = fixture.path("work/inbox/.t-1.new");
    fs::write(&temp, Task::new("t-1").revision(1).text()).unwrap();
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    let error = fs::rename(&temp, &path).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::EXIST));
    assert!(!path.exists());
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "assigned/bob");
}

// P1.3
#[test]
fn an_id_lives_once_whatever_the_extension() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let text = Task::new("t-1").text();
    let other = fixture.path("work/inbox/t-1.yml");
    assert_eq!(save(&other, text.as_bytes()), Err(Errno::EXIST));
    assert!(!other.exists());
    fixture.sh("mv work/inbox/t-1.yaml work/inbox/t-1.yml").success();
    fixture.sh("mv work/inbox/t-1.yml work/assigned/bob/").success();
    assert_eq!(fixture.ledger().names("t-1"), ["created", "renamed", "claimed"]);
    fixture.fsck_clean();
}

// P1.3
#[test]
fn a_copy_that_is_not_valid_claims_nothing() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let bad = Task::new("t-1").status("nonsense").text();
    let to = fixture.path("work/assigned/bob/t-1.yaml");
    assert_eq!(save(&to, bad.as_bytes()), Err(Errno::INVAL));
    assert_eq!(fs::read_to_string(path).unwrap(), Task::new("t-1").text());
    assert_eq!(fixture.ledger().counts("claimed").len(), 0);
}

// P1.3
#[test]
fn the_old_name_is_gone_for_all_others_at_once() {
    let fixture = crate::harness::Setup::default().mounts(2).start();
    let from = fixture.task("inbox", &Task::new("t-1"));
    let elsewhere = fixture.mount(1).join("work/inbox/t-1.yaml");
    assert!(elsewhere.exists());
    // By a process that this one did not start.
    fixture.sh("cp work/inbox/t-1.yaml work/assigned/bob/t-1.yaml; true").success();
    let error = fs::rename(&elsewhere, fixture.mount(1).join("x")).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::NOENT));
    for name in [&from, &elsewhere] {
        until_polled("the old name goes", || (!name.exists()).then_some(()));
        let error = fs::remove_file(name).unwrap_err();
        assert_eq!(Errno::from_io_error(&error), Some(Errno::NOENT));
    }
    assert!(fixture.path("work/assigned/bob/t-1.yaml").exists());
}

/// What a process finds that nobody of its family has read anything of: a session of its own.
fn stranger(fixture: &Fixture, script: &str) -> Ran {
    fixture.bash().with("SCRIPT", script).run("setsid --wait bash -c \"$SCRIPT\"")
}

// P1.3
#[test]
fn a_new_text_under_an_id_in_use_takes_nothing_back() {
    let fixture = Fixture::new();
    fixture.task("archive", &Task::new("t-1").status("done"));
    let there = fixture.path("work/archive/t-1.yaml");
    let text = fs::read_to_string(&there).unwrap();
    let ledger = fixture.ledger();
    let new = Task::new("t-1").revision(7).text();
    fs::write(fixture.outside("new"), &new).unwrap();
    let blind = [
        "cp $OUT/new work/inbox/t-1.yaml",
        "cat $OUT/new > work/inbox/t-1.yaml",
        "cp $OUT/new work/inbox/.new && mv work/inbox/.new work/inbox/t-1.yaml",
        // A shell asks of no `close` whether it went well.
        "echo 'title: New' > work/inbox/t-1.yaml",
        // How the record begins, and then something else.
        "{ echo '# A task of the tests: comments and quoting stay as they are.'; echo 'id: t-1'
         echo 'title: New'; } > work/inbox/t-1.yaml",
    ];
    for script in blind {
        let ran = stranger(&fixture, script).failure();
        // `mv` takes EEXIST of a name that is absent for a directory now and then.
        let says = ran.stderr.contains("File exists") || script.contains("mv ");
        assert!(says, "{script}: {ran}");
        assert!(!fixture.path("work/inbox/t-1.yaml").exists(), "{script}");
        assert_eq!(fs::read_to_string(&there).unwrap(), text, "{script}");
        assert!(fixture.why().contains("`work/archive/t-1.yaml` is there already"), "{script}");
    }
    assert_eq!(fixture.ledger().names("t-1"), ledger.names("t-1"));
    // Who has read it may take it back, as it is or changed.
    let script = "sed 's/^status: .*/status: new/; s/^revision: .*/revision: 8/' \
                  work/archive/t-1.yaml > work/inbox/t-1.yaml";
    stranger(&fixture, script).success();
    assert!(!there.exists());
    let kept = fs::read_to_string(fixture.path("work/inbox/t-1.yaml")).unwrap();
    assert!(kept.contains("revision: 8\n"), "{kept}");
    fixture.fsck_clean();
}

// P1.3
#[test]
fn a_file_of_anothers_id_is_not_even_made() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/ann/").success();
    for name in ["work/inbox/t-1.yaml", "work/assigned/bob/t-1.yaml", "work/done/t-1.yml"] {
        let ran = fixture.sh(&format!("touch {name}")).failure();
        assert!(ran.stderr.contains("File exists"), "{name}: {ran}");
        assert!(!fixture.path(name).exists(), "{name}");
    }
    let why = fixture.why();
    assert!(why.contains("`t-1` is `work/assigned/ann/t-1.yaml` already"), "{why}");
    fixture.fsck_clean();
}

// P1.3
#[test]
fn a_new_text_takes_no_parked_record_either() {
    let fixture = Fixture::new();
    for (id, dir) in [("t-1", "assigned/ann"), ("t-2", "fridge"), ("t-3", "archive")] {
        fixture.task("inbox", &Task::new(id));
        let script =
            format!("cd work; mv inbox/{id}.yaml {dir}/; mv {dir}/{id}.yaml {dir}/{id}.yaml~");
        fixture.sh(&script).success();
        let names = fixture.ledger();
        let new = format!("printf 'id: {id}\\nstatus: new\\n' > work/inbox/{id}.yaml");
        let ran = stranger(&fixture, &new).failure();
        assert!(ran.stderr.contains("File exists"), "{id}: {ran}");
        assert!(!fixture.path(&format!("work/inbox/{id}.yaml")).exists(), "{id}");
        assert_eq!(fixture.ledger().names(id), names.names(id));
        // Its own file gives it its name back, whoever does it.
        let back = format!("cd work/{dir}; mv {id}.yaml~ {id}.yaml");
        stranger(&fixture, &back).success();
        assert!(fixture.path(&format!("work/{dir}/{id}.yaml")).exists(), "{id}");
    }
    fixture.fsck_clean();
}

// P1.3
#[test]
fn an_old_copy_of_a_lane_takes_no_finished_work_back() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let script = "mv work/inbox/t-1.yaml work/assigned/bob/; cp -a work/assigned $OUT/old";
    fixture.sh(script).success();
    let done = ["done", "t-1", "--summary", "precious", "--agent", "bob"];
    fixture.workfs(&done).success();
    let ran = stranger(&fixture, "cp -a $OUT/old/. work/assigned/").failure();
    assert!(ran.stderr.contains("File exists"), "{ran}");
    assert!(!fixture.path("work/assigned/bob/t-1.yaml").exists());
    let text = fs::read_to_string(fixture.path("work/done/bob/t-1.yaml")).unwrap();
    assert!(text.contains("precious"), "{text}");
    fixture.fsck_clean();
}

// P3.1
#[test]
fn who_lost_a_race_of_edits_gives_the_record_its_name_back() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let text = fs::read_to_string(&path).unwrap();
    // As `sed -i.bak` does, when another saves after it has read.
    stranger(&fixture, "sed -i 's/^revision: .*/revision: 1/' work/inbox/t-1.yaml").success();
    let backup = fixture.path("work/inbox/t-1.yaml.bak");
    fs::rename(&path, &backup).unwrap();
    let temp = fixture.path("work/inbox/sedAb12Cd");
    fs::write(&temp, text.replace("revision: 0", "revision: 7")).unwrap();
    let late = fs::rename(&temp, &path).unwrap_err();
    assert_eq!(Errno::from_io_error(&late), Some(Errno::BUSY));
    let names = fixture.ledger();
    let versions = |ledger: &crate::harness::Ledger| {
        let all = ledger.of_record("t-1");
        all.iter().filter_map(|event| event.0["version_after"].as_u64()).max()
    };
    fs::rename(&backup, &path).unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains("revision: 1"));
    assert_eq!(versions(&fixture.ledger()), versions(&names));
    fixture.fsck_clean();
}

// P1.3
#[test]
fn a_copy_from_what_was_read_long_ago_leaves_no_draft() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let text = fs::read_to_string(&path).unwrap();
    stranger(
        &fixture,
        "sed -i 's/^revision: .*/revision: 1/' work/inbox/t-1.yaml
        mv work/inbox/t-1.yaml work/archive/",
    )
    .success();
    assert_eq!(save(&path, text.as_bytes()), Err(Errno::BUSY));
    assert!(!path.exists());
    stranger(&fixture, "mv work/archive/t-1.yaml work/inbox/").success();
    fixture.fsck_clean();
}

// P1.3
#[test]
fn what_others_try_under_the_old_name_does_not_fail_the_winner_s_rm() {
    let tries = [
        "echo 'status: new' > work/inbox/t-1.yaml",
        "cp work/assigned/bob/t-1.yaml work/inbox/",
        "echo 'status: new' > work/inbox/.t && mv -f work/inbox/.t work/inbox/t-1.yaml",
        "mkdir work/inbox/t-1.yaml && rmdir work/inbox/t-1.yaml",
    ];
    for other in tries {
        let fixture = Fixture::new();
        fixture.task("inbox", &Task::new("t-1"));
        let script = "cp work/inbox/t-1.yaml work/assigned/bob/; setsid bash -c \"$OTHER\"; \
             rm work/inbox/t-1.yaml";
        let ran = fixture.bash().with("OTHER", other).run(script);
        assert_eq!(ran.code, 0, "{other}: {ran}");
        assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "assigned/bob", "{other}");
        fixture.fsck_clean();
    }
}

// P1.3 P2.5
#[test]
fn a_copy_of_the_same_bytes_where_a_move_writes_nothing_makes_no_version() {
    let fixture = Fixture::new();
    let text = "title: x\n";
    for (id, dir) in [("a", "fridge"), ("b", "archive")] {
        save(&fixture.work().join(format!("inbox/{id}.yaml")), text.as_bytes()).unwrap();
        let copy = format!("cd work; A=inbox/{id}.yaml; B={dir}/{id}.yaml; mkdir -p {dir}");
        fixture.sh(&format!("{copy}; cat $A > $B && rm $A; exit $?")).success();
        let copied = fixture.path(&format!("work/{dir}/{id}.yaml"));
        assert_eq!(fs::metadata(&copied).unwrap().len(), text.len() as u64);
        assert_eq!(fs::read_to_string(&copied).unwrap(), text);
        let ledger = fixture.ledger();
        let moved = &ledger.of_record(id)[1].0;
        assert_eq!(moved["payload"]["via"], "copy", "{moved}");
        assert_eq!((&moved["version_before"], &moved["version_after"]), (&1.into(), &1.into()));
        assert!(moved["payload"]["content_sha256"].is_null(), "{moved}");
    }
    // Another text is another version.
    save(&fixture.work().join("inbox/d.yaml"), text.as_bytes()).unwrap();
    fixture.sh("cd work; echo 'title: y' > d; mv d fridge/d.yaml").success();
    assert_eq!(fixture.ledger().of_record("d")[1].0["version_after"], 2);
    fixture.fsck_clean();
}
