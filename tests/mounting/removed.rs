//! A store whose files somebody removes while a daemon has it.

use std::fs;
use std::path::Path;

use crate::Idle;
use crate::harness::{Fixture, Setup, Task, await_end, pid_alive, processes_of, run};

/// All files of the store.
fn files(fixture: &Fixture) -> Vec<std::path::PathBuf> {
    let all = fs::read_dir(fixture.store().parent().unwrap()).unwrap();
    all.map(|file| file.unwrap().path()).collect()
}

// P6.3 P6.2
#[test]
fn a_daemon_that_stays_for_a_mount_s_users_takes_nothing_from_the_next_store() {
    let fixture = Fixture::new();
    let old = fixture.daemon_pid();
    let user = Idle::standing_in(&fixture.work());
    let dir = fixture.root().to_str().unwrap();
    let ran = fixture.workfs(&["unmount", dir, "--lazy"]).success();
    assert!(ran.stderr.contains(&format!("its daemon, process {old}, stays")), "{ran}");
    files(&fixture).iter().for_each(|file| fs::remove_file(file).unwrap());
    fixture.workfs(&["init"]).success();
    fixture.mount_all();
    fixture.task("inbox", &Task::new("t-1"));
    let new = fixture.daemon_pid();
    assert!(old != new && pid_alive(old));
    let before = files(&fixture);
    drop(user);
    await_end(old);
    assert_eq!(files(&fixture), before);
    assert_eq!(fixture.daemon_pid(), new);
    fixture.workfs(&["show", "t-1"]).success();
    fixture.fsck_clean();
    // Nothing is said where nobody uses it.
    let ran = fixture.workfs(&["unmount", dir, "--lazy"]).success();
    assert!(!ran.stderr.contains("stays"), "{ran}");
    await_end(new);
}

// P6.8
#[test]
fn directories_are_given_back_also_when_the_list_of_them_was_removed() {
    let fixture = Setup::default().mounts(2).start();
    let pid = fixture.daemon_pid();
    files(&fixture).iter().for_each(|file| fs::remove_file(file).unwrap());
    for mount in fixture.mounts() {
        // Its socket is gone: the system unmounts.
        fixture.workfs(&["unmount", mount.to_str().unwrap()]).success();
    }
    await_end(pid);
    for mount in fixture.mounts() {
        fs::write(mount.join("probe"), b"").unwrap();
    }
}

// P6.3
#[test]
fn the_directory_is_free_when_unmount_returns_also_without_the_store_s_files() {
    for is_renamed in [false, true] {
        let fixture = Fixture::new();
        let store = fixture.store().parent().unwrap();
        match is_renamed {
            true => fs::rename(store, fixture.outside("store")).unwrap(),
            false => fs::remove_dir_all(store).unwrap(),
        }
        let dir = fixture.root();
        fixture.workfs(&["unmount", dir.to_str().unwrap()]).success();
        fs::remove_dir(dir).unwrap();
        assert!(processes_of(fixture.store()).is_empty());
    }
}

// P6.2 P4.1
#[test]
fn a_store_that_was_moved_has_all_when_its_daemon_has_ended() {
    let fixture = Fixture::new();
    fixture.sh("for i in $(seq 50); do echo x > before-$i; done").success();
    let moved = fixture.outside("moved.db");
    fs::rename(fixture.store(), &moved).unwrap();
    fixture.sh("df . && for i in $(seq 50); do echo x > after-$i; done").success();
    let ran = fixture.workfs(&["doctor"]);
    assert!(ran.stdout.contains("removed or replaced") && !ran.stdout.contains("dead"), "{ran}");
    fixture.workfs(&["unmount", "--all"]).success();
    let found = run(&mut fixture.command_on(&moved, &["fsck"]));
    assert!(found.code == 0, "{found}");
    let told = run(&mut fixture.command_on(&moved, &["show", "after-50"])).success();
    assert!(told.stdout.contains('x'), "{told}");
}

// P6.1 P6.2
#[test]
fn the_daemon_of_a_store_that_was_removed_takes_no_more_mounts_and_says_so() {
    let fixture = Setup::default().mounts(2).start();
    fixture.task("inbox", &Task::new("t-1"));
    let pid = fixture.daemon_pid().to_string();
    let more = fixture.base().join("more");
    fs::create_dir(&more).unwrap();
    let more = more.to_str().unwrap();
    let backup = fixture.outside("backup.db");
    let calls: [&[&str]; 3] = [&["mount", more], &["exec", "true"], &["init"]];
    let refused = || {
        for call in calls {
            let ran = fixture.workfs(call);
            let told = ran.stderr.contains("removed or replaced") && ran.stderr.contains(&pid);
            assert!(ran.code == 9 && told && !ran.stderr.contains("made the store"), "{ran}");
        }
        let ran = fixture.workfs(&["status"]).success();
        assert!(ran.stdout.contains("removed or replaced"), "{ran}");
        let ran = fixture.workfs(&["doctor"]);
        assert!(ran.code == 11 && ran.stdout.contains("removed or replaced"), "{ran}");
    };
    fs::remove_file(fixture.store()).unwrap();
    refused();
    // What it has is saved by it, and by nothing else.
    fixture.workfs(&["backup", backup.to_str().unwrap()]).success();
    fs::copy(&backup, fixture.store()).unwrap();
    refused();
    // Nothing of the former store gets into the one that was put there.
    fixture
        .sh("for i in $(seq 300); do echo later > later-$i; done; rm work/inbox/t-1.yaml")
        .success();
    fixture.workfs(&["unmount", "--all"]).success();
    fixture.fsck_clean();
    fixture.mount_at(Path::new(more)).success();
    assert!(!Path::new(more).join("later-1").exists());
    fixture.workfs(&["show", "t-1"]).success();
    fixture.workfs(&["unmount", more]).success();
}

// P4.9 P4.6
#[test]
fn what_is_put_by_hand_where_a_daemon_was_killed_is_left_as_it_is_and_so_is_its_log() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let [backup, own] = ["backup.db", "own.db"].map(|name| fixture.outside(name));
    fixture.workfs(&["backup", backup.to_str().unwrap()]).success();
    fixture.sh("for i in $(seq 50); do echo later > later-$i; done").success();
    fixture.kill_daemon();
    fs::copy(fixture.store(), &own).unwrap();
    let log = fixture.store().with_extension("db-wal");
    let (logged, root) = (fs::read(&log).unwrap(), fixture.root().to_str().unwrap());
    let restore = ["restore", backup.to_str().unwrap(), "--force"];
    let calls: [&[&str]; 6] =
        [&["mount", root], &["list"], &["fsck"], &["init"], &["status"], &restore];

    fs::copy(&backup, fixture.store()).unwrap();
    for call in calls {
        let ran = fixture.workfs(call);
        let told = ran.stderr.contains("db-wal is the log of another file");
        assert!(ran.code == 6 && told && ran.stderr.contains("`mv "), "{ran}");
    }
    let ran = fixture.workfs(&["doctor"]);
    assert!(ran.code == 11 && ran.stdout.contains("log of another file"), "{ran}");
    assert!(fs::read(fixture.store()).unwrap() == fs::read(&backup).unwrap());
    fs::remove_file(fixture.store()).unwrap();
    let ran = fixture.workfs(&["mount", root]);
    assert!(ran.code == 6 && ran.stderr.contains("is gone"), "{ran}");
    assert!(!fixture.store().exists() && fs::read(&log).unwrap() == logged);

    fs::copy(&own, fixture.store()).unwrap();
    fixture.mount_all();
    fixture.sh("cat later-50").success();
    // By another name it is not served without that log.
    fixture.kill_daemon();
    let other = fixture.outside("other.db");
    fs::hard_link(fixture.store(), &other).unwrap();
    let ran = run(&mut fixture.command_on(&other, &["list"]));
    assert!(ran.code == 6 && ran.stderr.contains("lies elsewhere"), "{ran}");
    fs::remove_file(&other).unwrap();
    fixture.mount_all();
    // By `restore` it may be done at any time.
    fixture.kill_daemon();
    fixture.workfs(&restore).success();
    fixture.mount_all();
    fixture.sh("! test -e later-50 && test -e work/inbox/t-1.yaml").success();
    fixture.fsck_clean();
}
