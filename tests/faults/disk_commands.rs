//! Commands that find no room on the disk: the store's, or another.

use std::fs;
use std::path::Path;

use crate::disk::{fill, on_small_disk, small_disk};
use crate::harness::{Ran, Setup, Shell, run};

// P8.1
#[test]
fn copies_that_do_not_fit_say_whose_disk_is_full() {
    let fixture = Setup::default().start();
    let Some(disk) = small_disk(fixture.base(), "100k") else { return };
    fixture.sh("head -c 300000 /dev/zero > big").success();
    let to = |command| disk.join(command).to_str().unwrap().to_owned();
    let ran = ["export", "backup"].map(|command| fixture.workfs(&[command, &to(command)]));
    // Before anything can fail: it is not the store's, which would be unmounted at the end.
    Shell::bash(&disk).run("cd / && umount -l \"$OLDPWD\"").success();
    for (command, ran) in ["export", "backup"].iter().zip(ran) {
        assert_eq!(ran.code, 12, "{ran}");
        assert!(ran.stderr.contains(&to(command)), "{ran}");
    }
}

// P4.3 P8.3
#[test]
fn an_import_that_finds_no_room_leaves_no_part_of_a_file() {
    let Some((fixture, _)) = on_small_disk() else { return };
    let from = fixture.outside("from");
    fs::create_dir(&from).unwrap();
    fs::write(from.join("a"), "a\n").unwrap();
    fs::write(from.join("big"), vec![7; 20_000_000]).unwrap();
    for way in ["with", "without"] {
        if way == "without" {
            fixture.unmount_all();
            fixture.await_no_daemon();
        }
        let ran = fixture.workfs(&["import", from.to_str().unwrap(), "notes"]);
        assert!(ran.code == 12 && ran.stdout.contains("failed before the rest"), "{ran}");
    }
    fixture.mount_all();
    assert_eq!(fixture.sh("ls -A notes").success().stdout, "a\n");
    fixture.fsck_clean();
}

// P4.3 P13.6
#[test]
fn a_transaction_that_only_removes_makes_space_on_a_full_disk_and_others_say_that_it_is_full() {
    let Some((fixture, _)) = on_small_disk() else { return };
    fixture.sh("mkdir notes; echo 1 > notes/f; echo 2 > notes/g").success();
    fill(&fixture);
    // What was refused before is none of it.
    fixture.sh("mkdir work/ready").failure();
    let mut command = fixture.command(&["txn", "--json", "--", "cp", "notes/f", "notes/new"]);
    let ran = run(command.current_dir(fixture.root()));
    let error: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!((ran.code, &error["error"]["rule"]), (12, &"W040".into()), "{ran}");
    let mut command = fixture.command(&["txn", "--", "rm", "notes/f", "notes/g"]);
    run(command.current_dir(fixture.root())).success();
    assert_eq!(fixture.sh("ls -A notes").success().stdout, "");
    fixture.fsck_clean();
}

// P8.1
#[test]
fn a_restore_that_finds_no_room_says_that_it_is_the_stores_disk() {
    let fixture = Setup::default().start();
    let Some(disk) = small_disk(fixture.base(), "100k") else { return };
    let (backup, store) = (fixture.outside("backup"), disk.join("team.db"));
    fixture.workfs(&["backup", backup.to_str().unwrap()]).success();
    let restore = ["restore", backup.to_str().unwrap(), "--force"];
    let ran = run(&mut fixture.command_on(&store, &restore));
    let left = fs::read_dir(&disk).unwrap().count();
    Shell::bash(&disk).run("cd / && umount -l \"$OLDPWD\"").success();
    let told = format!("no space is left for {}", store.display());
    assert!(ran.code == 12 && ran.stderr.contains(&told), "{ran}");
    assert_eq!(left, 0);
}

/// Which store has no room to be made, and how much that takes.
fn says_what_it_takes(ran: &Ran, store: &Path) -> bool {
    ran.stderr.contains(&format!("{}: it needs 4.5 MB there", store.display()))
}

// P8.1
#[test]
fn an_init_that_finds_no_room_leaves_no_half_of_a_store() {
    for size in ["700k", "1200k", "1500k", "1800k"] {
        let mut fixture = Setup::default().prepare();
        let Some(disk) = small_disk(fixture.base(), size) else { return };
        fixture.set_store(disk.join("team.db"));
        let ran = fixture.workfs(&["init"]);
        let left: Vec<_> = fs::read_dir(&disk).unwrap().map(|entry| entry.unwrap()).collect();
        if ran.code == 0 {
            fixture.workfs(&["fsck"]).success();
            continue;
        }
        assert_eq!(ran.stderr.matches("[W040]").count(), 1, "{size}: {ran}");
        assert!(says_what_it_takes(&ran, fixture.store()), "{size}: {ran}");
        assert_eq!(ran.code, 12, "{size}: {ran}");
        assert!(left.is_empty(), "{size}: {left:?}");
    }
}

// P4.7
#[test]
fn a_mount_that_finds_no_room_for_a_new_store_leaves_no_half_of_one() {
    let mut fixture = Setup::default().prepare();
    let Some(disk) = small_disk(fixture.base(), "20m") else { return };
    fixture.set_store(disk.join("team.db"));
    let ballast = disk.join("ballast");
    // Not even tables; tables, but no log; no first directories.
    for left in [8, 120, 160, 400] {
        fs::write(&ballast, vec![1; (20 << 20) - (left << 10)]).unwrap();
        let ran = fixture.mount_at(fixture.root()).failure();
        assert_eq!(ran.code, 12, "{left}: {ran}");
        assert!(says_what_it_takes(&ran, fixture.store()), "{left}: {ran}");
        fixture.await_no_daemon();
        fs::remove_file(&ballast).unwrap();
        let names: Vec<_> = fs::read_dir(&disk).unwrap().map(|entry| entry.unwrap()).collect();
        assert!(names.is_empty(), "{left}: {names:?}");
        fixture.mount_all();
        assert!(fixture.work().join("inbox").is_dir(), "{left}");
        fixture.unmount_all();
        fixture.await_no_daemon();
        for name in fs::read_dir(&disk).unwrap() {
            fs::remove_file(name.unwrap().path()).unwrap();
        }
    }
}

// P4.7
#[test]
fn a_store_is_made_where_there_is_room_for_it_and_its_log() {
    let mut fixture = Setup::default().prepare();
    let Some(disk) = small_disk(fixture.base(), "5m") else { return };
    fixture.set_store(disk.join("team.db"));
    fixture.mount_all();
    fs::write(fixture.work().join("inbox/a.yaml"), "status: new\n").unwrap();
    fixture.fsck_clean();
}
