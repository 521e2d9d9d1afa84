//! Directories that were there before the configuration wanted them for a workspace.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use rustix::fs::{XattrFlags, getxattr, setxattr};
use workfs::limits::MOVED_NAMES_MAX;

use crate::harness::{Fixture, Ran, Setup, Task, program};

const LAYOUT: &str = "workspaces:
  - path: tasks
    kind: task
    dirs: { inbox: pending, assigned: 'working/{owner}', done: completed }
";

/// A store with plain directories as the layout names them, not mounted any more.
fn filled(fill: impl FnOnce(&Fixture)) -> Fixture {
    let fixture = Fixture::new();
    fixture.sh("mkdir -p tasks/pending tasks/working/bob tasks/completed tasks/notes").success();
    fill(&fixture);
    fixture.unmount_all();
    fixture
}

fn govern(fixture: &Fixture, arguments: &[&str]) -> Ran {
    let layout = fixture.outside("layout.yaml");
    fs::write(&layout, LAYOUT).unwrap();
    fixture.workfs(&[&["init", "--layout", layout.to_str().unwrap()], arguments].concat())
}

/// Makes of the layout that the store keeps what a former version took, too.
fn keep_former(fixture: &Fixture, from: &str, to: &str) {
    let open = rusqlite::Connection::open(fixture.store()).unwrap();
    let keep = "UPDATE meta SET value = replace(value, ?1, ?2) WHERE key = 'config'";
    assert_eq!(open.execute(keep, [from, to]).unwrap(), 1);
}

fn write(fixture: &Fixture, path: &str, text: &str) {
    fs::write(fixture.path(path), text).unwrap();
}

// P8.5
#[test]
fn what_a_layout_wants_is_taken_over_with_its_files() {
    let fixture = filled(|fixture| {
        write(fixture, "tasks/pending/t-1.yaml", &Task::new("t-1").text());
        write(fixture, "tasks/working/bob/t-2.yaml", &Task::new("t-2").text());
        write(fixture, "tasks/pending/bad.yaml", "id: bad\ntitle: [1]\n");
        write(fixture, "tasks/working/bob/t-1.yaml", &Task::new("t-1").text());
        write(fixture, "tasks/pending/README.md", "# Not a task\n");
        write(fixture, "tasks/notes/t-9.yaml", "not: governed\n");
        let mode = fs::Permissions::from_mode(0o640);
        fs::set_permissions(fixture.path("tasks/pending/t-1.yaml"), mode).unwrap();
        fixture.sh("touch -d 2024-02-03T04:05:06Z tasks/pending/t-1.yaml").success();
        let path = fixture.path("tasks/pending/t-1.yaml");
        setxattr(path, "user.from", b"ann", XattrFlags::empty()).unwrap();
        fixture.sh("ln tasks/pending/README.md tasks/notes/README.md").success();
    });
    let ran = govern(&fixture, &["--json"]).success();
    let taken = &ran.json()["taken_over"];
    let listed = |what: &str| taken[what]["listed"].to_string();
    assert_eq!(
        listed("directories"),
        r#"["tasks","tasks/completed","tasks/pending","tasks/working","tasks/working/bob"]"#
    );
    assert_eq!((taken["records"].as_u64(), taken["left"]["count"].as_u64()), (Some(2), Some(0)));
    // The directory wins; the second of an id and what breaks a rule are drafts.
    assert!(listed("corrected").contains(r#""path":"tasks/working/bob/t-2.yaml""#), "{taken}");
    for draft in ["tasks/working/bob/t-1.yaml", "tasks/pending/bad.yaml"] {
        assert!(listed("drafts").contains(draft), "{taken}");
    }

    fixture.mount_at(fixture.root()).success();
    let text = |path: &str| fs::read_to_string(fixture.path(path)).unwrap();
    assert_eq!(text("tasks/pending/t-1.yaml"), Task::new("t-1").text());
    let attributes = fs::metadata(fixture.path("tasks/pending/t-1.yaml")).unwrap();
    assert_eq!((attributes.mode() & 0o7777, attributes.mtime()), (0o640, 1_706_933_106));
    let mut value = [0; 8];
    let length = getxattr(fixture.path("tasks/pending/t-1.yaml"), "user.from", &mut value);
    assert_eq!(&value[..length.unwrap()], b"ann");
    assert!(text("tasks/working/bob/t-2.yaml").contains("status: assigned\n"));
    assert_eq!(text("tasks/pending/README.md"), "# Not a task\n");
    assert_eq!(text("tasks/notes/t-9.yaml"), "not: governed\n");
    assert!(text("tasks/pending/bad.yaml.why").contains("title"));
    // From now on the rules hold there.
    fixture.sh("echo nonsense > tasks/working/bob/t-2.yaml").failure();
    fixture.sh("mv tasks/working/bob/t-2.yaml tasks/completed/").failure();
    fixture.sh("mv tasks/working/bob/t-2.yaml tasks/pending/").success();
    assert!(text("tasks/pending/t-2.yaml").contains("status: new\n"));
    fixture.unmount_all();
    fixture.fsck_clean();

    // Again there is nothing to take over.
    let before = fixture.ledger().last_g();
    let again = govern(&fixture, &["--json"]).success();
    assert_eq!(again.json()["taken_over"]["directories"]["count"], 0);
    assert_eq!(fixture.ledger().last_g(), before);
}

// P8.5
#[test]
fn a_directory_that_cannot_be_taken_over_stays_as_it_was() {
    let large = "#".repeat(2 << 20);
    let fixture = filled(|fixture| {
        write(fixture, "tasks/pending/t-1.yaml", &Task::new("t-1").text());
        write(fixture, "tasks/pending/large.yaml", &large);
        write(fixture, "tasks/completed/t-2.yaml", "id: t-2\n");
    });
    let ran = govern(&fixture, &[]);
    assert_eq!(ran.code, 11, "{ran}");
    assert!(ran.said().contains("tasks/pending: `large.yaml` has 2097152 bytes"), "{ran}");
    assert!(ran.said().contains("move it elsewhere"), "{ran}");
    let doctor = |fixture: &Fixture| fixture.workfs(&["doctor"]).stdout;
    let told = doctor(&fixture);
    assert!(told.contains("not as it wants them: tasks/pending\n"), "{told}");
    assert!(told.contains("`workfs init` says"), "{told}");
    fixture.mount_at(fixture.root()).success();
    fixture.sh("echo anything > tasks/pending/t-1.yaml").success();
    fixture.sh("test -e tasks/completed/t-2.yaml.why").success();
    fixture.sh("mv tasks/pending/large.yaml tasks/large").success();
    fixture.unmount_all();

    let ran = govern(&fixture, &[]).success();
    assert!(ran.stdout.contains("took over 1 directory that was there: 0 records"), "{ran}");
    assert!(!doctor(&fixture).contains("not as it wants"));
    fixture.mount_at(fixture.root()).success();
    let text = Task::new("t-1").text();
    write(&fixture, "tasks/pending/t-1.yaml", &text);
    fixture.sh("echo anything > tasks/pending/t-1.yaml").failure();
    assert_eq!(fs::read_to_string(fixture.path("tasks/pending/t-1.yaml")).unwrap(), text);
}

// P8.5
#[test]
fn what_lies_where_a_directory_is_to_be_is_named_and_the_rest_is_done() {
    let fixture = Fixture::new();
    fixture
        .sh("mkdir tasks; echo x > tasks/pending; ln -s / tasks/completed; echo x > jobs")
        .success();
    fixture.unmount_all();
    let layout = format!(
        "{LAYOUT}  - {{ path: jobs/mine, kind: task }}\n  - {{ path: good, kind: task }}\n"
    );
    let file = fixture.outside("layout.yaml");
    fs::write(&file, layout).unwrap();
    let init = || fixture.workfs(&["init", "--layout", file.to_str().unwrap()]);
    let in_the_way = ["jobs", "tasks/completed", "tasks/pending"];
    for _ in 0..2 {
        let ran = init();
        assert_eq!(ran.code, 11, "{ran}");
        for path in in_the_way {
            let told =
                format!("{path}: it lies where a workspace has a directory: move it elsewhere");
            assert!(ran.said().contains(&told), "{ran}");
        }
    }
    let doctor = fixture.workfs(&["doctor"]);
    let told = format!("not as it wants them: {}\n", in_the_way.join(", "));
    assert!(doctor.stdout.contains(&told), "{doctor}");
    fixture.mount_at(fixture.root()).success();
    fixture
        .sh("test -d good/inbox -a -d tasks/working && rm jobs tasks/pending tasks/completed")
        .success();
    fixture.unmount_all();
    init().success();
    fixture.mount_at(fixture.root()).success();
    fixture.sh("test -d jobs/mine/inbox -a -d tasks/pending -a -d tasks/completed").success();
}

// P8.5
#[test]
fn what_hides_a_workspaces_ready_is_named_until_it_is_gone() {
    let fixture = filled(|fixture| {
        fixture.sh("mkdir tasks/ready; echo mine > tasks/ready/mine").success();
        write(fixture, "tasks/pending/t-1.yaml", &Task::new("t-1").text());
    });
    for _ in 0..2 {
        let ran = govern(&fixture, &[]);
        assert_eq!(ran.code, 11, "{ran}");
        assert!(ran.stdout.contains("tasks/ready") && ran.stdout.contains("move it"), "{ran}");
    }
    fixture.mount_at(fixture.root()).success();
    fixture.sh("mv tasks/ready tasks/other && mv tasks/ready/.next tasks/working/bob/").success();
    fixture.sh("cat tasks/other/mine tasks/working/bob/t-1.yaml").success();
    fixture.unmount_all();
    govern(&fixture, &[]).success();
    fixture.fsck_clean();
}

// P8.5
#[test]
fn files_that_came_while_nothing_was_governed_are_taken_over() {
    let fixture = filled(|fixture| {
        fixture.sh("mkdir -p tasks/pending").success();
    });
    govern(&fixture, &[]).success();
    let none = fixture.outside("none.yaml");
    fs::write(&none, "workspaces: []\n").unwrap();
    fixture.workfs(&["init", "--layout", none.to_str().unwrap()]).success();
    fixture.mount_at(fixture.root()).success();
    write(&fixture, "tasks/pending/t-1.yaml", &Task::new("t-1").text());
    write(&fixture, "tasks/pending/t-2.yaml", "nonsense");
    write(&fixture, "tasks/pending/t-3.yaml", &Task::new("t-3").text());
    fixture.unmount_all();

    let taken = govern(&fixture, &["--json"]).success().json()["taken_over"].clone();
    assert_eq!(taken["directories"]["listed"].to_string(), r#"["tasks/pending"]"#);
    assert_eq!((taken["records"].as_u64(), taken["drafts"]["count"].as_u64()), (Some(2), Some(1)));
    fixture.mount_at(fixture.root()).success();
    fixture.sh("for t in 1 3; do mv tasks/pending/t-$t.yaml tasks/working/bob/; done").success();
    assert_eq!(fixture.ledger().names("t-1"), ["imported", "claimed"]);
    fixture.fsck_clean();
}

// P8.5
#[test]
fn a_layout_that_has_no_place_for_records_is_refused() {
    let fixture = Fixture::new();
    fixture.tasks(3);
    fixture
        .sh("mkdir -p work/assigned/bob; mv work/inbox/t-0001.yaml work/assigned/bob/")
        .success();
    // One of them waits under a backup's name.
    fixture.sh("mv work/inbox/t-0003.yaml work/inbox/t-0003.bak").success();
    fixture.unmount_all();
    let layout = fixture.outside("layout.yaml");
    let path = layout.to_str().unwrap();
    for (text, named) in [
        ("workspaces: []", "work/assigned/bob (1), work/inbox (2)"),
        ("workspaces: [{ path: other, kind: task }]", "work/assigned/bob (1), work/inbox (2)"),
        ("workspaces: [{ path: work, kind: task, dirs: { inbox: new } }]", ": work/inbox (2)"),
        (
            "workspaces: [{ path: work, kind: task, dirs: { inbox: fridge, fridge: inbox } }]",
            ": work/inbox (2)",
        ),
    ] {
        fs::write(&layout, text).unwrap();
        let ran = fixture.workfs(&["init", "--layout", path]).failure();
        assert!(ran.code == 5 && ran.stderr.contains(named), "{ran}");
        assert!(ran.stderr.contains("workfs export"), "{ran}");
    }
    fixture.workfs(&["doctor"]).success();
    fs::write(&layout, "workspaces: [{ path: work, kind: task, policy: flag }]").unwrap();
    fixture.workfs(&["init", "--layout", path]).success();
    fixture.mount_all();
    fixture.sh("mv work/inbox/t-0002.yaml work/assigned/bob/; rm work/inbox/t-0003.bak").success();
    fixture.fsck_clean();
    // As the refusal says: they are taken out, and what nothing but a backup shows is one of them.
    fixture.sh("cd work/assigned/bob; mv t-0001.yaml t-0001.yaml~; rm t-0002.yaml").success();
    fixture.unmount_all();
    fs::write(&layout, "workspaces: []").unwrap();
    let ran = fixture.workfs(&["init", "--layout", path]).failure();
    assert!(ran.code == 5 && ran.stderr.contains(": work/assigned/bob (1)"), "{ran}");
    assert!(ran.stderr.contains("`workfs list` calls parked"), "{ran}");
    assert!(ran.stderr.contains("does not show them, a former layout left them so"), "{ran}");
    fixture.mount_all();
    fixture.sh("rm work/assigned/bob/*").success();
    fixture.unmount_all();
    fs::write(&layout, "workspaces: []").unwrap();
    fixture.workfs(&["init", "--layout", path]).success();
}

// P8.5
#[test]
fn a_glob_finds_directories_at_any_depth_and_a_new_name_of_a_state_those_in_a_workspace() {
    let fixture = Setup::default().start();
    fixture.sh("mkdir -p a/b/collab/inbox c/collab work/todo").success();
    write(&fixture, "a/b/collab/inbox/t-1.yaml", &Task::new("t-1").text());
    write(&fixture, "work/todo/t-2.yaml", &Task::new("t-2").text());
    fixture.unmount_all();
    let layout = fixture.outside("layout.yaml");
    let text = "workspaces:
  - { path: '**/collab', kind: task }
  - { path: work, kind: task, dirs: { inbox: todo } }
";
    fs::write(&layout, text).unwrap();
    let ran = fixture.workfs(&["init", "--json", "--layout", layout.to_str().unwrap()]).success();
    let taken = &ran.json()["taken_over"];
    assert_eq!(
        taken["directories"]["listed"].to_string(),
        r#"["c/collab","work/todo","a/b/collab","a/b/collab/inbox"]"#
    );
    assert_eq!(taken["records"], 2);
    fixture.mount_at(fixture.root()).success();
    fixture.sh("mkdir -p a/b/collab/assigned/bob").success();
    fixture.sh("mv a/b/collab/inbox/t-1.yaml a/b/collab/assigned/bob/").success();
    fixture.sh("mkdir -p work/assigned/bob; mv work/todo/t-2.yaml work/assigned/bob/").success();
}

// P8.5
#[test]
fn a_directory_that_was_a_state_s_can_be_a_workspace_of_its_own() {
    let fixture = Fixture::new();
    fixture.sh("mkdir -p work/done/inbox; echo n > work/inbox/notes.md").success();
    fixture.unmount_all();
    let layout = fixture.outside("layout.yaml");
    let text = "workspaces:
  - { path: work, kind: task, dirs: { inbox: pending, done: 'ended/{owner}' } }
  - { path: work/inbox, kind: task }
  - { path: '*/done', kind: task }
";
    let set = |text: &str| {
        fs::write(&layout, text).unwrap();
        let layout = layout.to_str().unwrap();
        let ran = fixture.workfs(&["init", "--json", "--layout", layout]).success();
        ran.json()["taken_over"]["directories"]["listed"].to_string()
    };
    let taken = r#"["work/done","work/inbox","work/done/inbox"]"#;
    assert_eq!(set(text), taken);
    // And back.
    set("workspaces: [{ path: work, kind: task }]");
    let doctor = fixture.workfs(&["doctor"]).success().stdout;
    assert!(!doctor.contains("work/inbox"), "{doctor}");
    assert_eq!(set(text), taken);
    fixture.workfs(&["doctor"]).success();
    fixture.mount_at(fixture.root()).success();
    for dir in ["work/inbox", "work/done"] {
        write(&fixture, &format!("{dir}/inbox/t-1.yaml"), &Task::new("t-1").text());
        fixture
            .sh(&format!("cd {dir}; mkdir -p assigned/bob; mv ready/.next assigned/bob/"))
            .success();
    }
    fixture.fsck_clean();
}

// P8.5 P11.10
#[test]
fn a_layout_that_is_refused_cuts_no_lock_s_lease() {
    let fixture = Fixture::new();
    fixture.unmount_all();
    let layout = fixture.outside("layout.yaml");
    let set = |workspaces: &str, lease: &str| {
        let text = format!("{workspaces}\nlocks: [{{ path: '**/*.lock', lease: {lease} }}]\n");
        fs::write(&layout, text).unwrap();
        fixture.workfs(&["init", "--layout", layout.to_str().unwrap()])
    };
    set("workspaces: [{ path: work, kind: task }]", "1h").success();
    fixture.mount_all();
    fixture.tasks(1);
    fixture.sh("mkdir locks; touch locks/a.lock").success();
    fixture.unmount_all();
    let until = || -> i64 {
        let open = rusqlite::Connection::open(fixture.store()).unwrap();
        open.query_row("SELECT until FROM lock_leases", [], |row| row.get(0)).unwrap()
    };
    let before = until();
    assert_eq!(set("workspaces: []", "1s").failure().code, 5);
    assert_eq!(until(), before);
}

// P8.5
#[test]
fn the_root_of_the_mount_can_be_a_workspace() {
    let fixture = Setup::default().prepare();
    let layout = fixture.outside("layout.yaml");
    fs::write(&layout, "workspaces: [{ path: ., kind: task }]\n").unwrap();
    fixture.workfs(&["init", "--layout", layout.to_str().unwrap()]).success();
    fixture.mount_all();
    write(&fixture, "inbox/t-1.yaml", &Task::new("t-1").text());
    fixture.sh("mkdir assigned/bob && ls ready/t-1.yaml && mv ready/.next assigned/bob/").success();
    let text = fs::read_to_string(fixture.path("assigned/bob/t-1.yaml")).unwrap();
    assert!(text.contains("agent: bob\n"), "{text}");
    assert_eq!(fixture.ledger().names("t-1"), ["created", "claimed"]);
    assert!(fs::read(fixture.path("AGENTS.md")).is_ok());
    let fsck = fixture.workfs(&["fsck"]).success();
    assert!(fsck.stdout.starts_with("clean"), "{fsck}");
}

// P8.5 P6.7
#[test]
fn a_layout_names_regular_files_of_text_that_are_no_longer_than_one_may_be() {
    let fixture = Setup::default().prepare();
    fixture
        .sh("cd $OUT && mkfifo pipe && head -c 300000 /dev/zero | tr '\\0' '#' > long")
        .success();
    fs::write(fixture.outside("bytes"), b"# a\n# \xff\n").unwrap();
    let init = |layout: &str| {
        let file = fixture.outside("layout.yaml");
        fs::write(&file, layout).unwrap();
        fixture.workfs(&["init", "--layout", file.to_str().unwrap()]).failure()
    };
    for (named, why) in [
        ("pipe", "it is no regular file (line 2)"),
        ("/dev/zero", "it is no regular file (line 2)"),
        ("long", "more than 262144 bytes"),
        ("bytes", "it is not UTF-8 in line 2"),
        (".", "Is a directory"),
    ] {
        for layout in [
            format!("workspaces: []\nkinds: [{{ file: {named} }}]\n"),
            format!("workspaces: []\nschemas: [{{ name: s, file: {named} }}]\n"),
        ] {
            let ran = init(&layout);
            assert!(ran.code == 2 && ran.stderr.contains(why), "{layout}: {ran}");
        }
    }
    for (layout, why) in [
        (fixture.outside("bytes").display().to_string(), "it is not UTF-8 (line 2)"),
        ("/dev/zero".to_owned(), "more than 8388608 bytes"),
    ] {
        let ran = fixture.workfs(&["init", "--layout", &layout]).failure();
        assert!(ran.code == 2 && ran.stderr.contains(why), "{layout}: {ran}");
    }
    assert!(!fixture.store().exists());
    // What is written by a program may come without a file.
    let shell = fixture.bash().with("WORKFS", program());
    let shell = shell.with("WORKFS_STORE", fixture.store());
    shell.run("\"$WORKFS\" init --layout <(echo 'workspaces: []')").success();
}

// P8.5
#[test]
fn a_layout_that_hides_what_is_shown_opens_where_a_former_version_took_it() {
    let fixture = Setup::default().prepare();
    let layout = fixture.outside("layout.yaml");
    let init = |dirs: &str| {
        let text = format!("workspaces: [{{ path: work, kind: task, dirs: {{ inbox: {dirs} }} }}]");
        fs::write(&layout, text).unwrap();
        fixture.workfs(&["init", "--layout", layout.to_str().unwrap()])
    };
    init("[in, former]").success();
    keep_former(&fixture, "former", ".workfs");
    fixture.mount_all();
    fixture.sh("mkdir work/.workfs").success();
    write(&fixture, "work/.workfs/t-1.yaml", &Task::new("t-1").text());
    assert!(fixture.workfs(&["list", "--state", "inbox"]).success().stdout.contains("t-1"));
    // Whoever runs it is told.
    let reason = "state `inbox`: the directory `.workfs`: workfs shows `.workfs`";
    let doctor = fixture.workfs(&["doctor"]).said();
    assert!(doctor.contains(reason), "{doctor}");
    let log = fs::read_to_string(fixture.store().with_extension("db.log")).unwrap();
    assert!(log.contains("WARN") && log.contains(reason), "{log}");
    fixture.unmount_all();
    fixture.await_no_daemon();
    // What is given anew is judged as ever, and where records lie it stays what it is.
    assert_eq!(init("[in, .workfs]").code, 2);
    assert_eq!(init("in").code, 5);
    fixture.mount_all();
    fixture.sh("cd work; mv .workfs/t-1.yaml fridge/ && rmdir .workfs").success();
    fixture.unmount_all();
    fixture.await_no_daemon();
    init("in").success();
    let doctor = fixture.workfs(&["doctor"]).said();
    assert!(!doctor.contains("former version"), "{doctor}");
    fixture.fsck_clean();
}

// P8.5 P10.5
#[test]
fn what_would_be_the_lane_of_whoever_is_no_agent_stays_a_plain_directory() {
    let fixture = filled(|fixture| {
        fixture.sh("mkdir tasks/working/uid-5").success();
        let task = Task::new("t-1").status("assigned").owner("eve");
        write(fixture, "tasks/working/uid-5/t-1.yaml", &task.text());
    });
    let ran = govern(&fixture, &[]);
    assert_eq!(ran.code, 11, "{ran}");
    assert!(ran.stdout.contains("tasks/working/uid-5: `uid-5` is the name of"), "{ran}");
    let list = fixture.workfs(&["list"]).success();
    assert!(!list.stdout.contains("uid-5"), "{list}");
    fixture.fsck_clean();
    fixture.mount_all();
    fixture.sh("mkdir tasks/working/eve && mv tasks/working/uid-5/* tasks/working/eve/").success();
    assert!(fixture.workfs(&["list"]).success().stdout.contains("eve"));
}

// P8.5
#[test]
fn a_directory_with_too_many_names_to_look_at_is_not_moved_to_where_workspaces_lie() {
    let layout = "workspaces: [{ path: 'projects/*/tasks', kind: task }]\n";
    let fixture = Setup::default().layout(layout).start();
    fixture.sh("mkdir -p projects/x/tasks box; touch box/0").success();
    let (few, too_many) = (MOVED_NAMES_MAX, MOVED_NAMES_MAX + 1);
    let mv = || fixture.sh("mv -T box projects/box");
    for (count, fits) in [(few, true), (too_many, false)] {
        fixture.unmount_all();
        // As if somebody had made so many names: that would take minutes.
        let open = rusqlite::Connection::open(fixture.store()).unwrap();
        let fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)
                    INSERT OR IGNORE INTO entries (parent, name, ino)
                    SELECT parent, CAST(i AS BLOB), ino FROM entries, n WHERE name = CAST('0' AS BLOB)";
        assert!(open.execute(fill, [count as i64]).unwrap() > 0);
        drop(open);
        fixture.mount_at(fixture.root()).success();
        if fits {
            mv().success();
            fixture.sh("mv -T projects/box box").success();
            continue;
        }
        let ran = mv().failure();
        assert!(ran.stderr.contains("Operation not permitted"), "{ran}");
        let why = fixture.why();
        assert!(why.contains(&format!("is over {MOVED_NAMES_MAX} names")), "{why}");
        // Elsewhere nobody looks.
        fixture.sh("mv -T box elsewhere").success();
    }
}
