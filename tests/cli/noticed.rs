//! Whole stores of which fsck must not say that they are damaged.

use std::fs;

use crate::harness::{Setup, Task};

// P5.2
#[test]
fn a_file_at_the_root_is_no_record_of_a_workspace_there() {
    let layout = "workspaces: [{ path: '.', kind: task }]\nfiles: [{ path: '**' }]\n";
    let fixture = Setup::default().layout(layout).start();
    let [one, two] =
        ["one", "two"].map(|title| Task::new("t-1").with(&format!("n: {title}\n")).text());
    for (path, text) in
        [("t-1", "1"), ("inbox/t-1.yaml", &*one), ("t-1", "2"), ("inbox/t-1.yaml", &*two)]
    {
        fs::write(fixture.path(path), text).unwrap();
    }
    fixture.fsck_clean();
}

// P5.2
#[test]
fn a_lane_of_a_kind_that_is_called_file_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/kind/builtin");
    let kind = fs::read_to_string(here.join("task.kind.yaml")).unwrap();
    let kind = kind.replace("kind: task\n", "kind: file\n").replace("task.v1.json", "file.v1.json");
    fs::write(dir.path().join("file.kind.yaml"), kind).unwrap();
    fs::copy(here.join("task.v1.json"), dir.path().join("file.v1.json")).unwrap();
    let layout = format!(
        "kinds: [{{ file: '{}/file.kind.yaml' }}]\nworkspaces: [{{ path: w, kind: file }}]\n",
        dir.path().display()
    );
    let fixture = Setup::default().layout(&layout).start();
    fixture.sh("mkdir -p w/inbox; rmdir w/inbox; mkdir w/inbox").success();
    fixture.fsck_clean();
}
