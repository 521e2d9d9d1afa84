//! Renames that are refused, and the flags of `renameat2`.

use std::fs;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::harness::{Errno, Fixture, Setup, Task, rename_with, save};

/// What `rename` must never say: `mv` would copy and unlink, or say nonsense, or the kernel would
/// ask again.
const NEVER: [Errno; 4] = [Errno::XDEV, Errno::INVAL, Errno::NOSYS, Errno::STALE];

fn refused(from: &Path, to: &Path) -> Errno {
    let error = fs::rename(from, to).expect_err(&format!("{} to {}", from.display(), to.display()));
    let errno = Errno::from_io_error(&error).unwrap();
    assert!(!NEVER.contains(&errno), "{errno} from {} to {}", from.display(), to.display());
    errno
}

// P1.7
#[test]
fn a_bad_move_says_what_is_wrong_and_changes_nothing() {
    let fixture = Fixture::new();
    let work = fixture.work();
    fixture.sh("mkdir -p work/collaboration/inbox work/other scratchpad").success();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.task("inbox", &Task::new("t-2"));
    fixture.task("assigned/bob", &Task::new("t-3").status("assigned").owner("bob"));
    assert_eq!(save(&work.join("inbox/draft.yaml"), b"status: ["), Err(Errno::INVAL));
    let before = fixture.sh("cd work && find . -type f -exec sha256sum {} + | sort").success();
    let ledger = fixture.ledger().last_g();

    let moves = [
        // There is no result to be done with.
        ("assigned/bob/t-3.yaml", "done/bob/t-3.yaml", Errno::PERM),
        ("inbox/t-1.yaml", "done/bob/t-1.yaml", Errno::PERM),
        // An id is for life, and a name is taken.
        ("inbox/t-1.yaml", "inbox/t-9.yaml", Errno::PERM),
        ("inbox/t-1.yaml", "assigned/bob/t-9.yaml", Errno::PERM),
        ("inbox/t-1.yaml", "inbox/t-2.yaml", Errno::PERM),
        // Another workspace has its own ids.
        ("inbox/t-1.yaml", "collaboration/inbox/t-1.yaml", Errno::PERM),
        // A draft is no record yet.
        ("inbox/draft.yaml", "assigned/bob/draft.yaml", Errno::PERM),
        // Nothing there.
        ("inbox/none.yaml", "assigned/bob/none.yaml", Errno::NOENT),
        ("inbox/t-1.yaml", "assigned/nobody/t-1.yaml", Errno::NOENT),
        ("inbox/t-1.yaml", "assigned/bob/t-3.yaml/t-1.yaml", Errno::NOTDIR),
        // State directories that hold records stay.
        ("inbox", "outbox", Errno::BUSY),
        ("assigned/bob", "assigned/rob", Errno::BUSY),
        ("assigned", "other/assigned", Errno::BUSY),
    ];
    for (from, to, wanted) in moves {
        let said = refused(&work.join(from), &work.join(to));
        assert_eq!(said, wanted, "{from} to {to}");
    }
    assert_eq!(refused(&work, &fixture.path("play")), Errno::BUSY);
    let after = fixture.sh("cd work && find . -type f -exec sha256sum {} + | sort").success();
    assert_eq!(after.stdout, before.stdout);
    assert_eq!(fixture.ledger().last_g(), ledger, "a refused move is no event");
    fixture.fsck_clean();
}

// P3.2
#[test]
fn why_a_directory_above_a_workspace_stays_is_told() {
    let layout = "workspaces: [{ path: 'teams/*/work', kind: task }]\n";
    let fixture = Setup::default().layout(layout).start();
    let teams = fixture.path("teams");
    fs::create_dir_all(teams.join("a/work")).unwrap();
    assert_eq!(refused(&teams.join("a"), &teams.join("b")), Errno::BUSY);
    let why = fs::read_to_string(fixture.path(".workfs/why")).unwrap();
    assert!(why.contains("`a` has a workspace in it"), "{why}");
}

// P1.7
#[test]
fn the_one_einval_is_a_directory_below_itself() {
    let fixture = Fixture::new();
    fixture.sh("mkdir -p scratchpad/a/b").success();
    let said = fixture.sh("mv scratchpad/a scratchpad/a/b/").failure();
    assert!(said.stderr.contains("subdirectory of itself"), "{said}");
}

// P1.8
#[test]
fn a_taken_name_is_not_replaced() {
    let fixture = Fixture::new();
    let to = fixture.path("work/assigned/bob/t-1.yaml");
    save(&to, b"status: [").unwrap_err();
    let from = fixture.task("inbox", &Task::new("t-1"));
    assert_eq!(refused(&from, &to), Errno::EXIST);
    assert_eq!(fs::read(&to).unwrap(), b"status: [");
    fs::remove_file(&to).unwrap();
    fs::create_dir(&to).unwrap();
    assert_eq!(refused(&from, &to), Errno::ISDIR);
    assert_eq!(fs::read_to_string(&from).unwrap(), Task::new("t-1").text());
}

// P1.8
#[test]
fn noreplace_never_replaces() {
    let fixture = Fixture::new();
    fixture.sh("mkdir scratchpad; echo a > scratchpad/a; echo b > scratchpad/b").success();
    let (a, b) = (fixture.path("scratchpad/a"), fixture.path("scratchpad/b"));
    assert_eq!(rename_with(&a, &b, RenameFlags::NOREPLACE), Err(Errno::EXIST));
    assert_eq!(fs::read(&b).unwrap(), b"b\n");
    rename_with(&a, &fixture.path("scratchpad/c"), RenameFlags::NOREPLACE).unwrap();
    assert_eq!(fs::read(fixture.path("scratchpad/c")).unwrap(), b"a\n");

    let from = fixture.task("inbox", &Task::new("t-1"));
    let to = fixture.path("work/assigned/bob/t-1.yaml");
    rename_with(&from, &to, RenameFlags::NOREPLACE).unwrap();
    assert_eq!(rename_with(&from, &to, RenameFlags::NOREPLACE), Err(Errno::NOENT));
    fixture.sh("mv -n scratchpad/b scratchpad/c; cat scratchpad/c").success();
    assert_eq!(fs::read(fixture.path("scratchpad/c")).unwrap(), b"a\n");
}

// P1.8
#[test]
fn exchange_swaps_plain_files_and_leaves_records_alone() {
    let fixture = Fixture::new();
    fixture.sh("mkdir -p scratchpad/d; echo a > scratchpad/a; echo b > scratchpad/d/b").success();
    let (a, b) = (fixture.path("scratchpad/a"), fixture.path("scratchpad/d/b"));
    rename_with(&a, &b, RenameFlags::EXCHANGE).unwrap();
    assert_eq!((fs::read(&a).unwrap(), fs::read(&b).unwrap()), (b"b\n".into(), b"a\n".into()));
    let absent = fixture.path("scratchpad/absent");
    assert_eq!(rename_with(&a, &absent, RenameFlags::EXCHANGE), Err(Errno::NOENT));

    let one = fixture.task("inbox", &Task::new("t-1"));
    let two = fixture.task("inbox", &Task::new("t-2"));
    for (from, to) in [(&one, &two), (&one, &a), (&a, &one)] {
        assert_eq!(rename_with(from, to, RenameFlags::EXCHANGE), Err(Errno::PERM));
    }
    assert_eq!(fs::read_to_string(&one).unwrap(), Task::new("t-1").text());
    assert_eq!(fs::read_to_string(&two).unwrap(), Task::new("t-2").text());
    fixture.fsck_clean();
}

// P1.8
#[test]
fn a_record_has_one_name() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let error = fs::hard_link(&path, fixture.path("work/assigned/bob/t-1.yaml")).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::PERM));
    let error = fs::hard_link(&path, fixture.path("backup")).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::PERM));
}

// P1.7
#[test]
fn programs_that_copy_when_rename_fails_change_nothing_either() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    fixture.sh("mkdir -p work/collaboration/inbox").success();
    let python = crate::harness::python().to_str().unwrap();
    let moved = format!(
        "{python} -c 'import shutil; shutil.move(\"work/inbox/t-1.yaml\", \"work/done/bob/\")'"
    );
    let said = fixture.sh(&moved).failure();
    assert!(said.stderr.contains("Error"), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), Task::new("t-1").text());
    assert_eq!(fixture.ledger().counts("closed").len(), 0);
    fixture.fsck_clean();
}

// P1.9
#[test]
fn a_task_does_not_become_the_lane_that_is_not_there() {
    let fixture = Setup::default().lanes(["ann"]).start();
    let from = fixture.task("inbox", &Task::new("t-1"));
    let lane = fixture.path("work/assigned/bob");
    assert_eq!(refused(&from, &lane), Errno::NOENT);
    assert!(from.exists() && !lane.exists());
    assert!(fixture.why().contains("mkdir work/assigned/bob"), "{}", fixture.why());
    fs::create_dir(&lane).unwrap();
    fs::rename(&from, lane.join("t-1.yaml")).unwrap();
}

// P3.2
#[test]
fn the_why_beside_a_task_tells_of_its_last_refusal_until_it_changes() {
    let fixture = Fixture::new();
    let free = fixture.task("inbox", &Task::new("t-1"));
    let taken = fixture.path("work/assigned/bob/t-1.yaml");
    let finished = fixture.path("work/done/bob/t-1.yaml");
    let why = |file: &Path| fs::read_to_string(file.with_extension("yaml.why")).unwrap();

    assert_eq!(save(&free, b"status: ["), Err(Errno::INVAL));
    assert!(
        why(&free).contains("last refused:\n") && why(&free).contains("save"),
        "{}",
        why(&free)
    );
    // It is filed under where the task was to go, and is newer than the save.
    assert_eq!(refused(&free, &finished), Errno::PERM);
    let said = why(&free);
    assert!(said.contains("rename work/done/bob/t-1.yaml EPERM [W015"), "{said}");
    assert!(!said.contains("W010"), "{said}");

    fs::rename(&free, &taken).unwrap();
    assert!(!why(&taken).contains("last refused"), "{}", why(&taken));
    assert_eq!(refused(&taken, &finished), Errno::PERM);
    assert!(why(&taken).contains("result.summary"), "{}", why(&taken));
    // Who comes too late for it was refused nothing of it.
    assert_eq!(refused(&free, &fixture.path("work/assigned/ann/t-1.yaml")), Errno::NOENT);
    assert!(why(&taken).contains("result.summary"), "{}", why(&taken));
}

// P8.5
#[test]
fn a_directory_is_not_moved_to_where_one_below_it_would_be_governed() {
    let layout = "workspaces:
  - { path: 'teams/*/tasks', kind: task }
  - { path: '**/collab', kind: task }
";
    let fixture = Setup::default().layout(layout).start();
    let path = |name: &str| fixture.path(name);
    fixture.sh("mkdir -p a/z/tasks/inbox b/z teams/y c/collab").success();
    assert_eq!(refused(&path("a/z"), &path("teams/z")), Errno::PERM);
    let why = fixture.why();
    assert!(why.contains("W028") && why.contains("`teams/z/tasks` would be"), "{why}");
    assert_eq!(
        rename_with(&path("a/z"), &path("teams/y"), RenameFlags::EXCHANGE),
        Err(Errno::PERM)
    );
    // At any depth, but not below a scratchpad, where the configuration says nothing.
    fixture.sh("mkdir -p scratchpad/x/y/collab").success();
    assert_eq!(refused(&path("scratchpad/x"), &path("x")), Errno::PERM);
    fs::rename(path("scratchpad/x"), path("scratchpad/z")).unwrap();

    fs::rename(path("b/z"), path("teams/z")).unwrap();
    fixture.sh("mkdir -p teams/z/tasks/inbox").success();
    assert_eq!(save(&path("teams/z/tasks/inbox/t.yaml"), b"status: nonsense"), Err(Errno::INVAL));
    fixture.fsck_clean();
}

// P1.9
#[test]
fn a_directory_whose_name_is_no_agents_is_no_lane() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.sh("mkdir 'work/assigned/Bob Smith'").success();
    let lane = fixture.path("work/assigned/Bob Smith");
    let from = fixture.path("work/inbox/t-1.yaml");
    assert_eq!(refused(&from, &lane.join("t-1.yaml")), Errno::PERM);
    let why = fixture.why();
    assert!(why.contains("Bob Smith` is no agent's lane: only letters"), "{why}");
    assert_eq!(fixture.ledger().names("t-1"), ["created"]);
    // Elsewhere it leaves, as ever.
    fixture.sh("mkdir work/kept && mv work/inbox/t-1.yaml work/kept/").success();
    assert_eq!(fixture.ledger().names("t-1"), ["created", "left"]);
    fixture.fsck_clean();
}

// P1.7 P1.8
#[test]
fn no_directory_of_a_workspace_in_use_is_exchanged() {
    let fixture = Fixture::new();
    fixture.tasks(1);
    fixture.sh("mkdir other").success();
    let before = fixture.ledger().last_g();
    for dir in ["work/inbox", "work"] {
        for (one, other) in [(dir, "other"), ("other", dir)] {
            let (one, other) = (fixture.path(one), fixture.path(other));
            let swapped = renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
            assert_eq!(swapped, Err(Errno::BUSY), "{dir}");
        }
    }
    assert!(fixture.why().contains("in use"), "{}", fixture.why());
    assert_eq!(fixture.ledger().last_g(), before);
    fixture.sh("mv work/inbox/t-0001.yaml work/assigned/bob/").success();
    fixture.fsck_clean();
}
