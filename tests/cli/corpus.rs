//! Real files: imported, imported again, exported.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::{Fixture, Setup, Task, shared};

#[track_caller]
fn import(fixture: &Fixture, from: &Path) -> Value {
    let from = from.to_str().unwrap();
    let ran = fixture.workfs(&["import", from, "work", "--json"]);
    assert!(ran.code == 0 || ran.code == 11, "{ran}");
    ran.json()
}

/// Every file below a directory, with its content.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(at) = waiting.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
                found.push((name, fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

// P8.3 P8.4
#[test]
fn the_corpus_comes_in_once_and_goes_out_as_it_came() {
    let Some(corpus) = shared("corpus/tasks") else { return };
    let fixture = Setup::default().lanes([] as [&str; 0]).start();
    let report = import(&fixture, &corpus);
    let before = files(&corpus);
    println!("{} files: {}", before.len(), report["records"]);
    assert_eq!(report["files"].as_u64().unwrap(), before.len() as u64, "{report}");
    // What is ready is listed twice: where it lies and in `ready/`.
    let find = "find work -path '*/ready' -prune -o -name '*.y*ml' -type f -print | wc -l";
    let yaml = fixture.sh(find).success();
    let wanted = before.iter().filter(|(name, _)| name.ends_with("yaml") || name.ends_with("yml"));
    assert_eq!(yaml.stdout.trim(), wanted.count().to_string());

    let g = fixture.ledger().last_g();
    let again = import(&fixture, &corpus);
    assert_eq!(fixture.ledger().last_g(), g, "importing again made events: {again}");
    fixture.fsck_clean();

    // All that was not corrected is as it was, through the mount and in the export.
    let out = fixture.outside("export");
    fixture.workfs(&["export", out.to_str().unwrap(), "--path", "work"]).success();
    let out = if out.join("work").is_dir() { out.join("work") } else { out };
    let after = files(&out);
    let corrected = report["corrected"]["listed"].to_string();
    let mut same = 0;
    for (name, bytes) in &before {
        let exported = after.iter().find(|(other, _)| other == name);
        let (_, exported) = exported.unwrap_or_else(|| panic!("{name} is not exported"));
        let mounted = fs::read(fixture.work().join(name)).unwrap();
        assert!(&mounted == exported, "{name} differs between mount and export");
        if exported == bytes {
            same += 1;
        } else {
            assert!(corrected.contains(&**name), "{name} was changed, and no report says so");
        }
    }
    println!("{same} of {} byte for byte", before.len());
    assert!(same * 2 > before.len());
}

// P8.3
#[test]
fn import_says_what_it_took_what_it_corrected_and_what_is_a_draft() {
    let fixture = Fixture::new();
    let dir = fixture.outside("tasks");
    for sub in ["inbox", "assigned/bob", "done/bob"] {
        fs::create_dir_all(dir.join(sub)).unwrap();
    }
    let write = |path: &str, text: &str| fs::write(dir.join(path), text).unwrap();
    write("inbox/t-1.yaml", &Task::new("t-1").text());
    write("assigned/bob/t-2.yaml", &Task::new("t-2").status("new").owner("ann").text());
    write("inbox/t-3.yaml", "status: [");
    write("WORKFLOW_LOG.md", "# Log\n");
    let report = import(&fixture, &dir);
    assert_eq!(report["records"], 2, "{report}");
    assert_eq!(report["drafts"]["count"], 1, "{report}");
    assert!(report["drafts"].to_string().contains("t-3.yaml"), "{report}");
    assert!(report["corrected"].to_string().contains("t-2.yaml"), "{report}");
    let text = fs::read_to_string(fixture.work().join("assigned/bob/t-2.yaml")).unwrap();
    assert!(text.contains("status: assigned\n"), "the directory wins:\n{text}");
    assert_eq!(fs::read(fixture.work().join("WORKFLOW_LOG.md")).unwrap(), b"# Log\n");

    // What has moved on here since is not brought back.
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    let g = fixture.ledger().last_g();
    let again = import(&fixture, &dir);
    assert_eq!(fixture.ledger().last_g(), g, "{again}");
    assert!(!fixture.path("work/inbox/t-1.yaml").exists());
    fixture.fsck_clean();
}

/// The workspaces of the corpus.
const WORKSPACES: &str = "workspaces:
  - { path: work, kind: task }
  - { path: work/collaboration, kind: task }
";

// P8.5
#[test]
fn real_files_that_are_taken_over_are_what_an_import_makes_of_them() {
    let Some(corpus) = shared("corpus/tasks") else { return };
    let fixture = Setup::default().layout(WORKSPACES).start();
    let imported = import(&fixture, &corpus);

    let other = Setup::default().layout("workspaces: []\n").start();
    other.sh(&format!("mkdir -p work; cp -a {}/. work/", corpus.display())).success();
    other.unmount_all();
    let layout = other.outside("workspaces.yaml");
    fs::write(&layout, WORKSPACES).unwrap();
    let ran = other.workfs(&["init", "--json", "--layout", layout.to_str().unwrap()]).success();
    let taken = &ran.json()["taken_over"];
    for what in ["/records", "/corrected/count", "/drafts/count"] {
        assert_eq!(taken.pointer(what), imported.pointer(what), "{what}");
    }
    assert!(taken["records"].as_u64() > Some(100), "{taken}");
    other.fsck_clean();
    other.mount_at(other.root()).success();
    let below = |fixture: &Fixture| {
        let mut all = files(&fixture.work());
        all.retain(|(name, _)| !name.contains("ready/"));
        all
    };
    assert!(below(&fixture) == below(&other), "the files differ");
}

// P9.5
#[test]
fn a_copy_of_a_mount_hides_nothing_that_workfs_shows() {
    let fixture = Fixture::new();
    fixture.tasks(2);
    let copy = fixture.outside("copy");
    fixture.bash().with("COPY", &copy).run("cp -a . \"$COPY\"").success();
    assert!(copy.join("work/ready").is_dir() && copy.join("AGENTS.md").exists());
    let other = Setup::default().prepare();
    let ran = other.workfs(&["import", copy.to_str().unwrap(), "."]);
    assert!(ran.code == 11 && ran.stdout.contains("work/ready"), "it says what it left: {ran}");
    other.mount_all();
    other.sh("mv work/ready/.next work/assigned/bob/ && test -e .workfs/why").success();
    assert_eq!(fs::read_dir(other.path("work/ready")).unwrap().count(), 1);
    other.fsck_clean();
}
