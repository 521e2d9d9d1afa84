//! Records that come in many at once, leave, and come back; directories that come and go.

use std::fs;

use crate::harness::{Errno, Fixture, Task, lies, needs, pile};

/// A plain tree of tasks outside, as a team might have it.
const TREE: &str = "set -e; mkdir -p $OUT/team/inbox $OUT/team/assigned/bob; cd $OUT/team
for i in 1 2 3 4 5; do printf 'id: c-%s\\nstatus: new\\nend_of: x\\n' $i > inbox/c-$i.yaml; done
printf 'id: c-6\\nstatus: in_progress\\nagent: bob\\n' > assigned/bob/c-6.yaml
echo '# Log' > LOG.md; chmod 640 inbox/*; touch -d 2020-01-02T03:04:05Z inbox/* assigned/bob/*
";

#[track_caller]
fn becomes_records(script: &str) {
    let fixture = Fixture::new();
    fixture.sh(TREE).success();
    fixture.sh(&format!("set -e\n{script}")).success();
    let ledger = fixture.ledger();
    for nth in 1..=6 {
        let id = format!("c-{nth}");
        assert_eq!(ledger.names(&id), ["created"], "{id}");
    }
    let metadata = fs::metadata(fixture.path("work/inbox/c-1.yaml")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::mtime(&metadata), 1_577_934_245);
    fixture.sh("diff -r $OUT/team/inbox work/inbox && cat work/LOG.md").success();
    fixture.sh("mv work/inbox/c-*.yaml work/assigned/bob/").success();
    assert_eq!(pile(&fixture.work()).len(), 6);
    assert_eq!(fixture.ledger().counts("claimed").len(), 5);
    fixture.fsck_clean();
}

// P3.1 P5.1
#[test]
fn a_tree_that_cp_brings_becomes_records() {
    becomes_records("cp -a $OUT/team/. work/");
}

// P3.1 P5.1
#[test]
fn a_tree_that_tar_brings_becomes_records() {
    becomes_records("tar -C $OUT/team -cf - . | tar -C work -xpf -");
}

// P3.1 P5.1
#[test]
fn a_tree_that_rsync_brings_becomes_records() {
    if needs(&["rsync"]) {
        becomes_records("rsync -a $OUT/team/ work/; rsync -a $OUT/team/ work/");
    }
}

// P5.1
#[test]
fn a_record_that_leaves_is_a_plain_file_and_may_come_back() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.sh("mkdir scratchpad; mv work/inbox/t-1.yaml scratchpad/").success();
    let plain = fixture.path("scratchpad/t-1.yaml");
    assert_eq!(fs::read_to_string(&plain).unwrap(), Task::new("t-1").text());
    // Nobody minds what is written to it now.
    fixture.sh("echo 'status: nonsense' > scratchpad/t-1.yaml").success();
    fixture.sh("mv scratchpad/t-1.yaml work/inbox/").failure();
    fs::write(&plain, Task::new("t-1").revision(1).text()).unwrap();
    fixture
        .sh("mv scratchpad/t-1.yaml work/inbox/ && mv work/inbox/t-1.yaml work/assigned/bob/")
        .success();
    let ledger = fixture.ledger();
    assert_eq!(ledger.names("t-1"), ["created", "left", "created", "claimed"]);
    assert_eq!(ledger.of_record("t-1")[2].versions().1, Some(2), "the history goes on");
    fixture.fsck_clean();
}

// P5.1
#[test]
fn a_record_under_a_backup_name_is_the_same_record_when_it_returns() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.sh("cd work/inbox; mv t-1.yaml t-1.yaml.bak && mv t-1.yaml.bak t-1.yaml").success();
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "inbox");
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    let ledger = fixture.ledger();
    assert_eq!(ledger.names("t-1").last(), Some(&"claimed"));
    assert_eq!(ledger.counts("created")["t-1"], 1, "{:?}", ledger.names("t-1"));
    fixture.fsck_clean();
}

// P5.1
#[test]
fn attributes_of_a_record_make_no_version() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    fixture.sh("cd work/inbox; chmod 600 t-1.yaml; touch -d @5 t-1.yaml; chown 7:8 t-1.yaml");
    fixture.sh("setfattr -n user.a -v b work/inbox/t-1.yaml");
    assert_eq!(fixture.ledger().names("t-1"), ["created"]);
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::mtime(&metadata), 5);
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    let moved = fs::metadata(fixture.path("work/assigned/bob/t-1.yaml")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&moved) & 0o777, 0o600);
    assert_eq!(std::os::unix::fs::MetadataExt::mtime(&moved), 5);
}

// P1.7
#[test]
fn a_lane_goes_when_it_is_empty_and_not_before() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.sh("mkdir work/assigned/carol; mv work/inbox/t-1.yaml work/assigned/carol/").success();
    let lane = fixture.path("work/assigned/carol");
    let error = fs::remove_dir(&lane).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::NOTEMPTY));
    fixture.sh("mv work/assigned/carol/t-1.yaml work/inbox/; rmdir work/assigned/carol").success();
    assert!(!lane.exists());
    assert_eq!(fixture.ledger().names("t-1"), ["created", "claimed", "released"]);
    fixture.fsck_clean();
}

// P5.1
#[test]
fn each_change_is_one_event_and_a_refusal_is_none_unless_it_is_forbidden() {
    let fixture = Fixture::new();
    let steps = [
        ("cp $OUT/new work/inbox/t-1.yaml", Some("created")),
        ("sed -i s/normal/high/ work/inbox/t-1.yaml", Some("saved")),
        ("sed -i s/normal/high/ work/inbox/t-1.yaml", None),
        ("! sed -i s/high/none/ work/inbox/t-1.yaml", None),
        ("! mv work/inbox/t-1.yaml work/inbox/t-2.yaml", None),
        ("mv work/inbox/t-1.yaml work/assigned/bob/", Some("claimed")),
        ("! mv work/inbox/t-1.yaml work/assigned/ann/", None),
        ("mv work/assigned/bob/t-1.yaml work/assigned/ann/", Some("reassigned")),
        ("! ln work/assigned/ann/t-1.yaml x", Some("forbidden")),
        ("mv work/assigned/ann/t-1.yaml work/inbox/", Some("released")),
        ("cat work/inbox/t-1.yaml; ls -lR work; stat work/inbox/t-1.yaml", None),
        ("rm work/inbox/t-1.yaml", Some("removed")),
        ("! rm work/inbox/t-1.yaml", None),
    ];
    fs::write(fixture.outside("new"), Task::new("t-1").text()).unwrap();
    for (step, wanted) in steps {
        let g = fixture.ledger().last_g();
        fixture.sh(step).success();
        let ledger = fixture.ledger();
        let names: Vec<&str> = ledger.after(g).into_iter().map(|event| event.name()).collect();
        assert_eq!(names, wanted.into_iter().collect::<Vec<_>>(), "after {step}");
    }
    fixture.fsck_clean();
}
