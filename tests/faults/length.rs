//! A limit on the length of files (`ulimit -f`), which ends a process that does not mind it.

use std::fs;

use crate::harness::{Errno, Fixture, Ran, Setup, Task, lies, pile, program, run, save};

/// Runs `workfs` with files of at most so many KiB.
fn limited(fixture: &Fixture, kib: u32, arguments: &str) -> Ran {
    let shell = fixture.bash().with("WORKFS", program());
    let shell = shell.with("WORKFS_STORE", fixture.store()).with("M", fixture.root());
    shell.run(&format!("cd /; ulimit -f {kib}; exec \"$WORKFS\" {arguments}"))
}

// P4.3
#[test]
fn a_daemon_that_was_started_with_a_limit_meets_it_as_a_full_disk() {
    let fixture = Setup::default().prepare();
    limited(&fixture, 6144, "mount \"$M\"").success();
    fixture.make_directories();
    let pid = fixture.daemon_pid();
    let mut ids = Vec::new();
    let refused = loop {
        let task =
            Task::new(&format!("t-{:04}", ids.len())).with(&"# this fills it\n".repeat(5000));
        match save(&fixture.work().join("inbox").join(task.file()), task.text().as_bytes()) {
            Ok(()) => ids.push(format!("t-{:04}", ids.len())),
            Err(errno) => break errno,
        }
        assert!(ids.len() < 1000, "the limit is not met");
    };
    assert_eq!(refused, Errno::NOSPC);
    // More than fits beside the tables, which is a file of its own.
    let plain = fs::write(fixture.path("plain"), vec![1; 24 << 20]).unwrap_err();
    assert_eq!(Errno::from_io_error(&plain), Some(Errno::NOSPC));
    // Who looks for the cause finds no full disk.
    let log = fs::read_to_string(fixture.store().with_extension("db.log")).unwrap();
    assert!(log.contains("started with `ulimit -f`, 6291456 bytes"), "{log}");
    // As on a full disk, there can be made space.
    for id in ids.drain(..ids.len() / 2) {
        fs::remove_file(fixture.work().join(format!("inbox/{id}.yaml"))).unwrap();
    }
    assert_eq!(fixture.daemon_pid(), pid, "it is the same daemon");
    fixture.unmount_all();
    fixture.await_no_daemon();
    fixture.mount_all();
    let pile = pile(&fixture.work());
    for id in &ids {
        lies(&fixture.work(), &pile, id);
    }
    fixture.fsck_clean();
}

// P4.3 P8.1
#[test]
fn commands_without_a_daemon_meet_it_as_a_full_disk() {
    let fixture = Setup::default().prepare();
    let from = fixture.outside("from");
    fs::create_dir(&from).unwrap();
    (0..20).for_each(|nth| fs::write(from.join(nth.to_string()), vec![nth; 100_000]).unwrap());
    let commands =
        ["init", "import \"$OUT/from\" notes", "export \"$OUT/to\"", "backup \"$OUT/b\""];
    for (command, kib) in commands.into_iter().zip([100, 800, 50, 50]) {
        let ran = limited(&fixture, kib, command);
        assert_eq!(ran.code, 12, "{command}: {ran}");
        assert!(ran.stderr.contains("ulimit -f"), "{command}: {ran}");
        assert!(!ran.stderr.contains("disk I/O error"), "{command}: {ran}");
        // And then without the limit.
        if command == "init" {
            assert!(!fixture.store().exists());
            fixture.workfs(&["init"]).success();
        } else if command.starts_with("import") {
            fixture.workfs(&["import", from.to_str().unwrap(), "notes"]).success();
        }
        fixture.workfs(&["fsck"]).success();
    }
}

// P4.3 P4.6
#[test]
fn a_backup_for_which_there_is_no_room_is_none_however_much_of_it_there_was_room_for() {
    let fixture = Fixture::new();
    let text: Vec<u8> =
        (0..1_250_000_u32).flat_map(|n| (n.wrapping_mul(n) as u16).to_le_bytes()).collect();
    // What lies beside the tables comes last.
    fs::write(fixture.path("big"), &text).unwrap();
    fixture.unmount_all();
    fixture.await_no_daemon();
    let (whole, partly) = (fixture.outside("whole"), fixture.outside("partly"));
    fixture.workfs(&["backup", whole.to_str().unwrap()]).success();
    let kib = u32::try_from(fs::metadata(&whole).unwrap().len() / 1024).unwrap();
    for missing in [4, 40, 1000, 2000, kib - 100] {
        let ran = limited(&fixture, kib - missing, "backup \"$OUT/partly\"");
        assert!(ran.code == 12 && ran.stderr.contains("nothing was kept"), "{missing}: {ran}");
        let names = fs::read_dir(partly.parent().unwrap()).unwrap();
        let left = names.map(|one| one.unwrap().file_name());
        let left: Vec<_> =
            left.filter(|name| name.to_str().unwrap().starts_with("partly")).collect();
        assert!(left.is_empty(), "{missing}: {left:?}");
    }
    limited(&fixture, kib, "backup \"$OUT/partly\"").success();
    let restored = fixture.outside("restored.db");
    let mut restore = std::process::Command::new(program());
    restore.arg("--store").arg(&restored).arg("restore").arg(&partly);
    run(&mut restore).success();
    let mut export = std::process::Command::new(program());
    export.arg("--store").arg(&restored).arg("export").arg(fixture.outside("tree"));
    run(&mut export).success();
    assert!(fs::read(fixture.outside("tree/big")).unwrap() == text);
}

// P4.3
#[test]
fn where_no_file_may_be_written_the_store_is_read_and_the_limit_is_named() {
    let fixture = Setup::default().prepare();
    fixture.workfs(&["init"]).success();
    for kib in [0, 1] {
        let named = format!("`ulimit -f`, {} bytes", kib * 1024);
        limited(&fixture, kib, "list").success();
        let doctor = limited(&fixture, kib, "doctor");
        assert!(doctor.stdout.contains(&named), "{doctor}");
        let changed = limited(&fixture, kib, "project new");
        assert!(changed.code == 12 && changed.stderr.contains(&named), "{changed}");
        let mounted = limited(&fixture, kib, "mount \"$M\"").success();
        assert!(mounted.stderr.contains(&named), "{mounted}");
        assert!(fixture.path("scratchpad").is_dir());
        fixture.unmount_all();
        fixture.await_no_daemon();
        fixture.fsck_clean();
    }
}

// P4.3 P4.6
#[test]
fn a_restored_store_that_cannot_be_closed_whole_is_not_put_in_place() {
    let fixture = Setup::default().prepare();
    fixture.workfs(&["init"]).success();
    let backup = fixture.outside("backup.db");
    fixture.workfs(&["backup", backup.to_str().unwrap()]).success();
    // As an older program made it: to be opened it is given more tables, for which it must become longer.
    let older = "DROP INDEX refusals_by_whom; DROP INDEX records_parked; DROP INDEX chunks_at; \
         ALTER TABLE chunks DROP COLUMN at; DROP TABLE freed; DELETE FROM meta WHERE key = 'extents'; \
         PRAGMA user_version = 14; VACUUM;";
    rusqlite::Connection::open(&backup).unwrap().execute_batch(older).unwrap();
    let store = fixture.outside("new.db");
    // One page more is too few.
    let kib = fs::metadata(&backup).unwrap().len() / 1024 + 4;
    let restore = "--store \"$OUT/new.db\" restore \"$OUT/backup.db\"";
    let ran = limited(&fixture, kib as u32, restore);
    assert_eq!(ran.code, 12, "{ran}");
    let left = fs::read_dir(store.parent().unwrap()).unwrap();
    let left = left
        .filter(|one| one.as_ref().unwrap().file_name().to_string_lossy().starts_with("new.db"));
    assert_eq!(left.count(), 0, "nothing is left");
    for arguments in [&["restore", backup.to_str().unwrap()][..], &["fsck"]] {
        run(&mut fixture.command_on(&store, arguments)).success();
    }
}

// P8.1
#[test]
fn programs_that_are_started_have_the_limit_as_it_was() {
    let fixture = Setup::default().start();
    // SIGXFSZ ends the program, as it would without workfs.
    let too_long = "exec -- sh -c 'cd /; exec head -c 300000 /dev/zero > \"$OUT/long\"'";
    assert_eq!(limited(&fixture, 100, too_long).code, 128 + libc::SIGXFSZ);
}

// P8.2
#[test]
fn a_limit_on_descriptors_is_said_to_be_one() {
    let fixture = Setup::default().prepare();
    fixture.workfs(&["init"]).success();
    for descriptors in [6, 8, 10, 12] {
        let shell = fixture.bash().with("WORKFS", program());
        let shell = shell.with("WORKFS_STORE", fixture.store());
        let ran =
            shell.run(&format!("cd /; ulimit -n {descriptors}; exec \"$WORKFS\" list")).failure();
        let told = format!("`ulimit -n`, which is {descriptors} for process ");
        assert!(ran.code == 75 && ran.stderr.contains(&told), "{ran}");
        assert!(!ran.stderr.contains("writable"), "{ran}");
    }
    fixture.fsck_clean();
}
