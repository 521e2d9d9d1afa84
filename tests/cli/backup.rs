//! Backup while others work, and restore.

use std::fs;

use crate::harness::{Fixture, Setup, Task, lies, pile};
use crate::lose_big_files;

// P4.6
#[test]
fn a_backup_under_load_is_one_moment_and_can_be_restored() {
    let fixture = Fixture::new();
    let ids = fixture.tasks(50);
    let backup = fixture.outside("backup.db");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for id in &ids {
                let from = fixture.work().join(format!("inbox/{id}.yaml"));
                fs::rename(from, fixture.work().join(format!("assigned/bob/{id}.yaml"))).unwrap();
            }
        });
        fixture.workfs(&["backup", backup.to_str().unwrap()]).success();
    });
    let again = fixture.workfs(&["backup", backup.to_str().unwrap()]).failure();
    assert!(again.stderr.contains("backup.db"), "an old backup is not overwritten: {again}");

    let other = Setup::default().prepare();
    other.workfs(&["restore", backup.to_str().unwrap()]).success();
    other.mount_all();
    let pile = pile(&other.work());
    assert_eq!(pile.len(), ids.len());
    let ledger = other.ledger();
    for id in &ids {
        let claimed = usize::from(lies(&other.work(), &pile, id) == "assigned/bob");
        assert_eq!(ledger.counts("claimed").get(id.as_str()).copied().unwrap_or(0), claimed);
    }
    other.fsck_clean();
}

// P4.6
#[test]
fn what_was_removed_counts_as_no_record_of_what_is_checked_and_restored() {
    let fixture = Fixture::new();
    let [one, gone] = ["t-1", "t-2"].map(|id| fixture.task("inbox", &Task::new(id)));
    fs::remove_file(gone).unwrap();
    fs::rename(&one, one.with_extension("yaml~")).unwrap();
    let backup = fixture.outside("backup.db");
    fixture.workfs(&["backup", backup.to_str().unwrap()]).success();
    let checked = fixture.workfs(&["fsck"]).success();
    assert!(checked.stdout.contains(" 1 record, "), "a parked one is there: {checked}");
    let other = Setup::default().prepare();
    let restored = other.workfs(&["restore", backup.to_str().unwrap()]).success();
    assert!(restored.stdout.contains(": 1 record, "), "{restored}");
}

// P4.6
#[test]
fn restore_replaces_nothing_unasked() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let backup = fixture.outside("backup.db");
    let backup = backup.to_str().unwrap();
    fixture.workfs(&["backup", backup]).success();
    fixture.task("inbox", &Task::new("t-2"));
    fixture.workfs(&["restore", backup]).failure();
    fixture.workfs(&["restore", backup, "--force"]).failure();
    assert!(fixture.path("work/inbox/t-2.yaml").exists(), "a store that is served stays");
    fixture.unmount_all();
    fixture.workfs(&["restore", backup]).failure();
    fixture.workfs(&["restore", backup, "--force"]).success();
    fixture.mount_all();
    assert!(fixture.path("work/inbox/t-1.yaml").exists());
    assert!(!fixture.path("work/inbox/t-2.yaml").exists());
    fs::write(fixture.outside("none.db"), b"no database").unwrap();
    let other = Setup::default().prepare();
    other.workfs(&["restore", fixture.outside("none.db").to_str().unwrap()]).failure();
}

// P4.6
#[test]
fn what_a_restoring_that_was_killed_has_left_goes_with_the_next_that_opens_the_store() {
    let fixture = Fixture::new();
    fixture.unmount_all();
    fixture.await_no_daemon();
    let left = ["", "-wal", "-shm", ".lock"];
    let left = left.map(|end| fixture.store().with_extension(format!("db.restoring{end}")));
    for command in [&["list"][..], &["fsck"], &["mount", fixture.root().to_str().unwrap()]] {
        for file in &left {
            fs::write(file, "half").unwrap();
        }
        fixture.workfs(command).success();
        assert!(!left.iter().any(|file| file.exists()), "{command:?}");
    }
}

// P4.6
#[test]
fn a_log_that_was_left_alone_does_not_get_into_a_restored_store() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let backup = fixture.outside("backup.db");
    fixture.workfs(&["backup", backup.to_str().unwrap()]).success();
    fixture.task("inbox", &Task::new("t-2"));
    fixture.kill_daemon();
    fixture.unmount_all();
    let log = fixture.store().with_extension("db-wal");
    assert!(fs::metadata(&log).unwrap().len() > 0, "this needs a log");
    fs::remove_file(fixture.store()).unwrap();
    fixture.workfs(&["restore", backup.to_str().unwrap()]).success();
    fixture.fsck_clean();
    fixture.mount_all();
    assert!(fixture.path("work/inbox/t-1.yaml").exists());
    assert!(!fixture.path("work/inbox/t-2.yaml").exists(), "what came after the backup is back");
    let kept = fixture.store().with_extension("db.before-restore-wal");
    assert!(kept.exists(), "nothing is thrown away");
}

// P4.4 P4.6
#[test]
fn a_backup_of_a_store_in_which_files_lost_a_part_is_restored_and_says_which() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    for name in ["lost", "gone"] {
        fs::write(fixture.path(name), vec![b'x'; 3 << 20]).unwrap();
    }
    fixture.unmount_all();
    lose_big_files(&fixture);
    fixture.mount_all();
    fs::remove_file(fixture.path("gone")).unwrap();
    let backup = fixture.outside("backup.db");
    fixture.workfs(&["backup", backup.to_str().unwrap()]).success();
    let told = fixture.workfs(&["doctor"]).stdout;
    assert!(told.contains("32 chunks of big files were not on the disk"), "{told}");

    let other = Setup::default().prepare();
    let ran = other.workfs(&["restore", backup.to_str().unwrap()]);
    assert_eq!(ran.code, 11, "{ran}");
    assert!(ran.stdout.starts_with("restored ") && ran.stdout.contains("1 record,"), "{ran}");
    assert!(ran.stdout.contains("\nfile lost (") && !ran.stdout.contains("gone"), "{ran}");
    other.mount_all();
    assert!(other.path("work/inbox/t-1.yaml").exists());
    fs::read(other.path("lost")).unwrap_err();
    let ran = other.workfs(&["fsck"]);
    assert!(ran.code == 11 && ran.stdout.contains("\n1 problem: "), "{ran}");
    // Written anew it is whole.
    fs::write(other.path("lost"), vec![b'y'; 3 << 20]).unwrap();
    other.fsck_clean();
}

// P4.6
#[test]
fn the_journal_of_a_making_that_was_killed_takes_no_restored_store_back() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let backup = fixture.outside("backup.db");
    fixture.workfs(&["backup", backup.to_str().unwrap()]).success();
    fixture.unmount_all();
    fs::remove_file(fixture.store()).unwrap();
    // Killed when the journal of the first tables was on the disk, and none of them: an empty file.
    let magic = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    let numbers = [0_u32, 0, 0, 512, 4096].map(u32::to_be_bytes);
    let mut journal = [&magic[..], numbers.as_flattened()].concat();
    journal.resize(512, 0);
    fs::write(fixture.store(), "").unwrap();
    fs::write(fixture.store().with_extension("db-journal"), journal).unwrap();
    fixture.workfs(&["restore", backup.to_str().unwrap()]).success();
    fixture.mount_all();
    assert!(fixture.path("work/inbox/t-1.yaml").exists(), "the next start took it back");
    fixture.fsck_clean();
}

// P4.6
#[test]
fn a_backup_takes_no_name_of_what_the_store_has_beside_it() {
    let fixture = Setup::default().start();
    for end in ["", "-wal", "-shm", "-journal", "-extents", ".sock", ".lock", ".log", ".covers"] {
        let mut file = fixture.store().as_os_str().to_owned();
        file.push(end);
        let ran = fixture.workfs(&["backup", file.to_str().unwrap()]).failure();
        assert_eq!(ran.code, 2, "{end}: {ran}");
    }
}

// P4.6 P8.2
#[test]
fn what_lies_where_a_backup_is_put_first_is_named_and_stays() {
    let fixture = Setup::default().prepare();
    fixture.workfs(&["init"]).success();
    let backup = fixture.outside("backup.db");
    let backup = backup.to_str().unwrap();
    fixture.workfs(&["backup", backup]).success();
    let aside = fixture.store().with_extension("db.restoring");
    fs::create_dir(&aside).unwrap();
    let ran = fixture.workfs(&["restore", "--force", backup]).failure();
    let told = format!("{} is there, where", aside.display());
    assert!(ran.code == 5 && ran.stderr.contains(&told), "{ran}");
    assert!(ran.stderr.contains("move it away") && aside.is_dir(), "{ran}");
    fs::remove_dir(&aside).unwrap();
    fixture.workfs(&["restore", "--force", backup]).success();
}
