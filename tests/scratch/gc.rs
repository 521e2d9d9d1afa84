//! Old projects: told first, then gone.

use crate::harness::{Fixture, Setup};

fn projects(fixture: &Fixture, arguments: &[&str]) -> (Vec<String>, serde_json::Value) {
    let mut all = vec!["gc", "--json"];
    all.extend(arguments);
    let report = fixture.workfs(&all).success().json();
    let goes = report["projects"].as_array().unwrap().iter().filter(|one| one["goes"] == true);
    let goes = goes.map(|one| one["project"].as_str().unwrap().to_owned()).collect();
    (goes, report)
}

// P11.9
#[test]
fn what_has_a_name_elsewhere_is_not_freed() {
    let fixture = Fixture::new();
    for id in ["001", "002"] {
        fixture.workfs(&["project", "new"]).success();
        fixture
            .sh(&format!("echo 'status: completed' > scratchpad/info/{id}/project.yaml"))
            .success();
    }
    let freed = || {
        let (goes, report) = projects(&fixture, &["--older-than", "0", "--status", "completed"]);
        assert_eq!(goes, ["001", "002"]);
        report["freed_bytes"].as_u64().unwrap()
    };
    let before = freed();
    fixture
        .sh("cd scratchpad; mkdir node_modules; head -c 2000000 /dev/zero > node_modules/big
             ln node_modules/big progress/001/big; ln node_modules/big documents/001/big")
        .success();
    assert_eq!(freed(), before, "its name outside stays");
    fixture.sh("cd scratchpad; mv node_modules/big progress/002/").success();
    assert_eq!(freed(), before + 2_000_000, "it is counted once, with the last that goes");
    let delete = ["gc", "--json", "--older-than", "0", "--status", "completed", "--delete"];
    assert_eq!(fixture.workfs(&delete).success().json()["freed_bytes"], before + 2_000_000);
    fixture.fsck_clean();
}

// P11.9
#[test]
fn old_projects_are_told_and_go_when_that_is_said() {
    let fixture = Fixture::new();
    // 002 has more files than one change of `gc` looks at.
    for (id, status, files) in
        [("001", "active", 3), ("002", "completed", 600), ("003", "archived", 3)]
    {
        fixture.workfs(&["project", "new"]).success();
        fixture
            .sh(&format!(
                "cd scratchpad; echo 'status: {status}' > info/{id}/project.yaml
                 for n in $(seq {files}); do echo $n > progress/{id}/results/$n; done
                 echo 1 > documents/{id}/d; echo 22 > documents/{id}/d"
            ))
            .success();
    }
    fixture.workfs(&["project", "new"]).success();
    let ran = fixture.workfs(&["gc", "--status", "complete"]).failure();
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.stderr.contains("active, archived, completed"), "{ran}");
    fixture.sh("echo 'status: paused' > scratchpad/info/004/project.yaml").success();
    fixture.workfs(&["gc", "--status", "paused"]).success();
    assert!(projects(&fixture, &[]).0.is_empty(), "they are young");
    // Only 002 is old: its clock is set back.
    fixture.sh("find scratchpad/*/002 -depth -exec touch -d '40 days ago' {} + ").success();
    let (goes, report) = projects(&fixture, &["--dry-run"]);
    assert_eq!(goes, ["002"]);
    assert_eq!(report["deleted"], false);
    let freed = report["freed_bytes"].as_u64().unwrap();
    assert!(freed > 600 * 4, "{report}");
    assert!(fixture.path("scratchpad/info/002").exists());
    assert_eq!(projects(&fixture, &["--older-than", "0"]).0, ["002", "003"]);
    assert_eq!(projects(&fixture, &["--older-than", "0", "--status", "active"]).0, ["001"]);

    let (goes, report) = projects(&fixture, &["--delete"]);
    assert_eq!((goes, &report["deleted"]), (vec!["002".to_owned()], &true.into()));
    assert_eq!(report["freed_bytes"], freed);
    let past = ".workfs/history/scratchpad";
    let left = fixture.sh(&format!("ls -d scratchpad/*/002 {past}/*/002"));
    assert_eq!(left.stdout, "", "{left}");
    assert!(fixture.path("scratchpad/info/001/project.yaml").exists());
    let log = fixture.workfs(&["log", "--json", "scratchpad/documents/002/d"]).success();
    let names: Vec<String> =
        log.json_lines().iter().map(|e| e["event"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names, ["saved", "saved", "removed"], "events stay");
    fixture.fsck_clean();
}

// P11.9
#[test]
fn what_retention_no_longer_keeps_is_told_and_goes() {
    let fixture = Fixture::new();
    fixture
        .sh("mkdir -p scratchpad/documents; cd scratchpad/documents
             for n in 1 2 3 4 5; do echo $n > plan.md; done")
        .success();
    let layout = fixture.outside("layout.yaml");
    let text = "workspaces: []\nfiles:\n  - { path: \"scratchpad/**\", versions: 2 }\n";
    std::fs::write(&layout, text).unwrap();
    fixture.unmount_all();
    fixture.workfs(&["init", "--layout", layout.to_str().unwrap()]).success();
    let (_, told) = projects(&fixture, &[]);
    assert_eq!((&told["pruned_versions"], &told["pruned_bytes"]), (&3.into(), &6.into()), "{told}");
    let (_, gone) = projects(&fixture, &["--delete"]);
    assert_eq!(gone["pruned_versions"], told["pruned_versions"]);
    let (_, none) = projects(&fixture, &[]);
    assert_eq!(none["pruned_versions"], 0);
    fixture.fsck_clean();
}

// P11.9
#[test]
fn versions_of_what_no_rule_keeps_any_more_are_told_and_go() {
    let layouts = ["docs/**", "other/**"]
        .map(|path| format!("workspaces: []\nfiles: [{{ path: '{path}' }}]\n"));
    let fixture = Setup::default().layout(&layouts[0]).start();
    fixture.sh("mkdir docs; for n in 1 2 3 4; do echo $n > docs/f; done").success();
    fixture.unmount_all();
    let layout = fixture.outside("layout.yaml");
    std::fs::write(&layout, &layouts[1]).unwrap();
    fixture.workfs(&["init", "--layout", layout.to_str().unwrap()]).success();
    let (_, told) = projects(&fixture, &[]);
    assert_eq!((&told["pruned_versions"], &told["pruned_bytes"]), (&4.into(), &8.into()), "{told}");
    let (_, gone) = projects(&fixture, &["--delete"]);
    assert_eq!(gone["pruned_versions"], 4, "{gone}");
    assert_eq!(projects(&fixture, &[]).1["pruned_versions"], 0);
    fixture.mount_all();
    assert_eq!(fixture.sh("cat docs/f; test ! -e .workfs/history/docs/f").success().stdout, "4\n");
    fixture.fsck_clean();
}

// P11.9
#[test]
fn a_project_whose_removal_was_cut_short_goes_the_next_time() {
    let mut fixture = Fixture::new();
    fixture.workfs(&["project", "new"]).success();
    fixture
        .sh("cd scratchpad; echo 'status: completed' > info/001/project.yaml
             for n in $(seq 400); do echo $n > progress/001/$n; echo $n > info/001/x$n; done")
        .success();
    let gc = ["gc", "--delete", "--older-than", "0"];
    let mut rounds = 0;
    while fixture.path("scratchpad/info/001").exists() {
        assert!(fixture.path("scratchpad/info/001/project.yaml").exists(), "round {rounds}");
        fixture.unmount_all();
        // It ends with its fourth commit: some let go of versions, the others remove names.
        fixture.set_variable("WORKFS_FAULT", Some("after-commit:4"));
        let _ = fixture.workfs(&gc);
        fixture.set_variable("WORKFS_FAULT", None);
        fixture.mount_all();
        rounds += 1;
        assert!(rounds < 50);
    }
    assert!(!fixture.path("scratchpad/progress/001").exists());
    assert!(rounds > 1, "{rounds}");
    fixture.fsck_clean();
}

// P11.9
#[test]
fn a_project_counts_and_goes_however_deep_it_is() {
    const DEPTH: usize = 500;
    let fixture = Fixture::new();
    fixture.workfs(&["project", "new"]).success();
    fixture
        .sh(&format!(
            "cd scratchpad; echo 'status: completed' > info/001/project.yaml; cd documents/001
             for n in $(seq {DEPTH}); do mkdir d; cd -P d; done"
        ))
        .success();
    let (goes, report) = projects(&fixture, &["--delete", "--older-than", "0"]);
    assert_eq!(goes, ["001"]);
    let nodes = report["projects"][0]["nodes"].as_u64().unwrap();
    assert!(nodes > DEPTH as u64, "{report}");
    assert!(!fixture.path("scratchpad/documents/001").exists());
    fixture.fsck_clean();
}

// P11.9
#[test]
fn a_project_with_records_in_it_stays_with_its_versions_and_keeps_no_other() {
    let layout = "workspaces: [{ path: 'scratchpad/progress/*/work_orders', kind: task }]\n\
                  files: [{ path: 'scratchpad/**', versions: 9 }]\n";
    let fixture = Setup::default().layout(layout).start();
    for id in ["001", "002"] {
        fixture.workfs(&["project", "new"]).success();
        fixture
            .sh(&format!(
                "cd scratchpad; echo 'status: completed' > info/{id}/project.yaml
                 for n in 1 2 3; do echo $n > progress/{id}/log.md; done"
            ))
            .success();
    }
    fixture
        .sh("cd scratchpad/progress/001/work_orders; mkdir inbox; echo 'title: a' > inbox/t-1.yaml")
        .success();
    let versions = || {
        let dir = fixture.path(".workfs/history/scratchpad/progress/001/log.md");
        std::fs::read_dir(dir).unwrap().count()
    };
    assert_eq!(versions(), 3);
    let (goes, report) = projects(&fixture, &["--older-than", "0", "--delete"]);
    assert_eq!((goes, report["projects"][0]["stays_for"].as_u64()), (vec!["002".into()], Some(1)));
    assert_eq!(versions(), 3);
    assert!(!fixture.path("scratchpad/info/002").exists());
    let told = fixture.workfs(&["gc", "--older-than", "0"]).success();
    assert!(told.stdout.contains("001  stays for the records and drafts in it (1)"), "{told}");
    // So is one that is parked.
    fixture.sh("cd scratchpad/progress/001/work_orders/inbox; mv t-1.yaml t-1.yaml~").success();
    let (goes, report) = projects(&fixture, &["--older-than", "0", "--delete"]);
    assert_eq!((goes, report["projects"][0]["stays_for"].as_u64()), (vec![], Some(1)));
    fixture.fsck_clean();
}

// P11.4
#[test]
fn the_newest_version_stays_also_where_it_alone_is_too_large_or_too_old() {
    let layout = "workspaces: []\nfiles:\n  - { path: 'large/**', bytes: 3B }\n  \
                  - { path: 'old/**', age: 0s }\n";
    let fixture = Setup::default().layout(layout).start();
    fixture
        .sh("mkdir large old; for f in large/f old/f; do echo 12345 > $f; echo 67890 > $f; done");
    let kept = |dir: &str| {
        let versions =
            std::fs::read_dir(fixture.path(&format!(".workfs/history/{dir}/f"))).unwrap();
        let versions = versions.map(|version| std::fs::read_to_string(version.unwrap().path()));
        versions.collect::<Result<Vec<_>, _>>().unwrap()
    };
    assert_eq!(kept("large"), ["67890\n"]);
    projects(&fixture, &["--delete"]);
    for dir in ["large", "old"] {
        assert_eq!(kept(dir), ["67890\n"], "{dir}");
    }
    fixture.fsck_clean();
}
