//! Long commands that are interrupted say how far they came.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Fixture, Setup, is_ignored, needs, program, send_signal, until_polled};

fn started(fixture: &Fixture, arguments: &[&str]) -> Child {
    let mut command = fixture.command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn tell(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Its exit code and what it printed; -1 where a signal ended it.
fn ended(child: Child) -> (i32, String) {
    let output = child.wait_with_output().unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    (output.status.code().unwrap_or(-1), said)
}

fn has_some(dir: &Path) -> Option<()> {
    fs::read_dir(dir).ok()?.next().map(drop)
}

// P8.1
#[test]
fn an_import_and_an_export_say_how_far_they_came_with_a_daemon_and_without() {
    let fixture = Setup::default().start();
    let from = fixture.outside("from");
    fs::create_dir(&from).unwrap();
    // Some seconds of work: whoever does it asks ten times a second whether it goes on.
    for nth in 0..20_000 {
        fs::write(from.join(format!("f{nth}")), "text\n").unwrap();
    }
    let from = from.to_str().unwrap();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        if is_ignored(signal) {
            continue;
        }
        let to = format!("notes{}", signal.as_raw());
        let import = started(&fixture, &["import", from, &to]);
        until_polled("the import has begun", || has_some(&fixture.path(&to)));
        tell(&import, signal);
        let (code, said) = ended(import);
        assert!(code == 130 && said.contains("interrupted: import again"), "{code}: {said}");
    }
    // What is left is taken.
    fixture.workfs(&["import", from, "notes"]).success();
    for way in ["with", "without"] {
        if way == "without" {
            fixture.unmount_all();
            fixture.await_no_daemon();
        }
        let to = fixture.outside(way);
        let export = started(&fixture, &["export", to.to_str().unwrap()]);
        until_polled("the export has begun", || has_some(&to));
        tell(&export, Signal::INT);
        let (code, said) = ended(export);
        assert!(
            code == 130 && said.contains("interrupted: the directory is not"),
            "{code}: {said}"
        );
    }
    fixture.fsck_clean();
}

// P6.3 P8.1
#[test]
fn a_daemon_that_is_told_to_end_breaks_off_what_takes_long_and_closes_the_store() {
    let fixture = Setup::default().start();
    let from = fixture.outside("from");
    fs::create_dir(&from).unwrap();
    for nth in 0..20_000 {
        fs::write(from.join(format!("f{nth}")), "text\n").unwrap();
    }
    let import = started(&fixture, &["import", from.to_str().unwrap(), "notes"]);
    until_polled("the import has begun", || has_some(&fixture.path("notes")));
    fixture.workfs(&["unmount", "--all"]).success();
    let (code, said) = ended(import);
    assert!(code == 11 && said.contains("interrupted: import again"), "{code}: {said}");
    fixture.await_no_daemon();
    let log = fixture.store().with_extension("db-wal");
    assert!(!log.exists());
    fixture.fsck_clean();
}

// P8.1
#[test]
fn a_backup_and_a_restore_that_are_interrupted_say_that_nothing_was_kept() {
    let fixture = Setup::default().start();
    // Long enough to be met before the end.
    let pieces: Vec<u8> = (0_u32..16 << 20).flat_map(u32::to_le_bytes).collect();
    fs::write(fixture.path("large"), pieces).unwrap();
    let copy = fixture.outside("copy.db");
    fixture.workfs(&["backup", copy.to_str().unwrap()]).success();
    let restoring = fixture.store().with_extension("db.restoring");
    let part = fixture.outside("other.db.workfs-part");
    let other = fixture.outside("other.db");
    let backup = ["--json", "backup", other.to_str().unwrap()];
    let restore = ["--json", "restore", "--force", copy.to_str().unwrap()];
    let cases = [(&backup[..], &part), (&backup, &part), (&restore, &restoring)];
    for (nth, (arguments, begun)) in cases.into_iter().enumerate() {
        if nth == 1 {
            fixture.unmount_all();
            fixture.await_no_daemon();
        }
        let child = started(&fixture, arguments);
        until_polled("it has begun", || begun.exists().then_some(()));
        // As timeout(1) does, to the process and to its group.
        for _ in 0..2 {
            tell(&child, Signal::INT);
        }
        let (code, said) = ended(child);
        let told: serde_json::Value = serde_json::from_str(&said).expect(&said);
        assert_eq!((code, &told["error"]["code"]), (130, &serde_json::json!(130)), "{said}");
        assert_eq!(told["error"]["reason"], "interrupted", "{said}");
        assert!(told["error"]["remedy"].as_str().unwrap().starts_with("nothing was "), "{said}");
        assert!(!begun.exists() && !other.exists());
    }
    fixture.fsck_clean();
}

// P8.1
#[test]
fn long_commands_show_on_a_terminal_how_far_they_are_and_are_quiet_elsewhere() {
    if !needs(&["script"]) {
        return;
    }
    let fixture = Setup::default().start();
    fs::write(fixture.path("file"), "text\n").unwrap();
    let out = |name: &str| fixture.outside(name).to_str().unwrap().to_owned();
    fs::create_dir(out("from")).unwrap();
    fs::write(fixture.outside("from/file"), "text\n").unwrap();
    let commands = [
        ("fsck".to_owned(), "file whole"),
        ("doctor".to_owned(), "file whole"),
        (format!("import {} notes", out("from")), "1 file"),
        (format!("export {}", out("to")), "files"),
        (format!("backup {}", out("copy")), "pages"),
        (format!("restore {} --force", out("copy")), "bytes"),
    ];
    let store = fixture.store().display();
    let program = format!("{} --store {store}", program());
    for (command, shown) in commands {
        if command.starts_with("restore") {
            fixture.unmount_all();
        }
        let on_terminal = |more: &str| {
            fixture
                .sh(&format!("script -qec '{program} {command}{more}' /dev/null </dev/null"))
                .stdout
        };
        let told = on_terminal("");
        assert!(told.contains(shown) && told.contains("\r\x1b[K"), "{command}: {told}");
        assert!(!on_terminal(" --quiet").contains("\x1b[K"), "{command}");
        let arguments: Vec<&str> = command.split(' ').collect();
        let piped = fixture.workfs(&arguments).said();
        assert!(!piped.contains("\x1b[K"), "{command}: {piped}");
    }
}

// P8.1
#[test]
fn who_does_not_wait_for_a_daemon_that_is_stopped_interrupts_twice() {
    let fixture = Setup::default().start();
    let daemon = fixture.daemon_pid();
    send_signal(daemon, Signal::STOP);
    let mut fsck = started(&fixture, &["fsck"]);
    // As soon as it can hear.
    let status = format!("/proc/{}/status", fsck.id());
    until_polled("it waits for signals", || {
        let blocked = fs::read_to_string(&status).ok()?;
        let blocked = blocked.lines().find_map(|line| line.strip_prefix("SigBlk:"))?.trim();
        let blocked = u64::from_str_radix(blocked, 16).ok()?;
        (blocked & (1 << (Signal::INT.as_raw() - 1)) != 0).then_some(())
    });
    tell(&fsck, Signal::INT);
    // Two that come at once are one.
    let pending = || {
        let told = fs::read_to_string(&status).ok()?;
        let shared = told.lines().find_map(|line| line.strip_prefix("ShdPnd:"))?.trim();
        (u64::from_str_radix(shared, 16).ok()? == 0).then_some(())
    };
    until_polled("the first is heard", pending);
    until_polled("the second ends it", || {
        tell(&fsck, Signal::INT);
        fsck.try_wait().unwrap()
    });
    let (code, said) = ended(fsck);
    send_signal(daemon, Signal::CONT);
    assert_eq!(code, 130, "{said}");
    fixture.workfs(&["fsck"]).success();
}
