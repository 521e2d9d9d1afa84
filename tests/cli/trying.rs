//! What `scripts/try` says to type next runs as it is printed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::harness::{Fixture, Setup, Shell, Task, left_out, needs, program};

/// A shell for `scripts/try`, with where things are in its variables.
fn shell(fixture: &Fixture) -> Shell<'_> {
    let tools = fixture.outside("tools");
    let found = std::env::var("PATH").unwrap();
    fixture
        .bash()
        .with("PATH", format!("{}:{found}", tools.display()))
        .with("CARGO_TARGET_DIR", fixture.outside("target"))
        .with("TRY", concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/try"))
        .with("TASKS", fixture.outside("my tasks"))
        .with("SAID", fixture.outside("said"))
        .with("WORKFS_TRY_DIR", fixture.outside("tried, with $ and \""))
}

/// Ends what was tried, however the test ends.
struct Tried<'f>(&'f Fixture);

impl Drop for Tried<'_> {
    fn drop(&mut self) {
        shell(self.0).run("\"$TRY\" --stop");
    }
}

/// Types what is said after `scripts/try` on a directory with a task at `path`, and then what ends it.
#[track_caller]
fn type_what_is_said(fixture: &Fixture, path: &str) {
    let (tools, target) = (fixture.outside("tools"), fixture.outside("target"));
    fs::create_dir_all(&tools).unwrap();
    fs::create_dir_all(target.join("release")).unwrap();
    // It was built already.
    fs::write(tools.join("cargo"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(tools.join("cargo"), PermissionsExt::from_mode(0o755)).unwrap();
    let built = target.join("release/workfs");
    if !built.exists() {
        symlink(program(), &built).unwrap();
    }
    let tasks = fixture.outside("my tasks").join(path);
    fs::create_dir_all(tasks.parent().unwrap()).unwrap();
    fs::write(&tasks, Task::new("t-1").text()).unwrap();
    fs::write(fixture.outside("my tasks/a no id.yaml"), Task::new("t-1").text()).unwrap();
    let _tried = Tried(fixture);
    let ran = shell(fixture).run(
        "cd / && \"$TRY\" \"$TASKS\" > \"$SAID\" || exit 1
         while IFS= read -r typed <&3; do
             case $typed in
             *'# refused') ! eval \"$typed\" 2>/dev/null ;;
             *) eval \"$typed\" ;;
             esac || { echo \"$? of $typed\"; exit 2; }
         done 3< <(sed -n '/^Mounted/,/^How/s/^  //p' \"$SAID\")
         eval \"$(sed -n 's/^End and remove it: *//p' \"$SAID\")\"",
    );
    let said = fs::read_to_string(fixture.outside("said")).unwrap_or_default();
    assert!(ran.code == 0 && ran.stdout.contains("is removed"), "{ran}{said}");
    assert!(said.contains("mkdir -p work/assigned/you"), "{said}");
}

// P8.1
#[test]
fn what_try_says_to_type_next_runs_also_where_tasks_lie_in_no_inbox() {
    if !needs(&["sed"]) {
        return left_out("what is said uses sed");
    }
    let fixture = Setup::default().prepare();
    type_what_is_said(&fixture, "t-1.yaml");
    fs::remove_dir_all(fixture.outside("my tasks")).unwrap();
    type_what_is_said(&fixture, "inbox/t-1.yaml");
}
