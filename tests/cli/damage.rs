//! Stores that somebody else wrote in: what fsck finds, what other commands say, and what is no damage.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{FileExt as _, symlink};
use std::path::PathBuf;

use workfs::service::fsck;
use workfs::store::sqlite::Sqlite;

use crate::harness::{Fixture, Ran, Setup, Task, run, save};

/// A store with something of everything, which nobody serves.
pub(super) fn store() -> Fixture {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("free").with("blocks: [later]\nlease: 30m\n"));
    fixture.task("inbox", &Task::new("waits").with("dependencies: [free]\n"));
    fixture.task("inbox", &Task::new("later").with("not_before: '2100-01-01'\n"));
    fixture.task("inbox", &Task::new("gone"));
    fs::remove_file(fixture.path("work/inbox/gone.yaml")).unwrap();
    fixture.task("inbox", &Task::new("mine"));
    fixture.workfs(&["claim", "mine", "--agent", "bob"]).success();
    fixture.task("inbox", &Task::new("aside"));
    fixture.workfs(&["claim", "aside", "--agent", "bob"]).success();
    fixture.sh("cd work/assigned/bob && mv aside.yaml aside.yaml~").success();
    save(&fixture.path("work/inbox/draft.yaml"), b"status: [").unwrap_err();
    fs::write(fixture.path("plain"), [b'x'; 9_000]).unwrap();
    symlink("plain", fixture.path("link")).unwrap();
    fixture.workfs(&["agent", "add", "carl"]).success();
    fixture.unmount_all();
    fixture
}

/// A copy of the store in which this was written.
pub(super) fn with(fixture: &Fixture, sql: &str) -> PathBuf {
    let copy = fixture.outside("copy.db");
    fs::copy(fixture.store(), &copy).unwrap();
    let open = rusqlite::Connection::open(&copy).unwrap();
    let no_checks = "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON;";
    open.execute_batch(&format!("{no_checks} {sql}")).unwrap_or_else(|why| panic!("{sql}: {why}"));
    copy
}

fn asked(fixture: &Fixture, sql: &str, arguments: &[&str]) -> Ran {
    let copy = with(fixture, sql);
    run(&mut fixture.command_on(&copy, arguments))
}

/// What is wrong in the store where this was written into it.
#[track_caller]
fn found(fixture: &Fixture, sql: &str) -> Vec<String> {
    let (store, _writer) = Sqlite::open(&with(fixture, sql)).unwrap();
    let report = fsck(&store, None, &mut |_| true).unwrap();
    report.problems.into_iter().map(|one| format!("{}: {}", one.thing, one.what)).collect()
}

/// The same by the command.
#[track_caller]
fn told(fixture: &Fixture, sql: &str) -> Vec<String> {
    let ran = asked(fixture, sql, &["fsck"]);
    assert_eq!(ran.code, 11, "{sql}: {ran}");
    let is_problem = |line: &&str| !line.contains(" problem") && !line.starts_with("ledger: ");
    ran.stdout.lines().take_while(is_problem).map(str::to_owned).collect()
}

// P5.2
#[test]
fn fsck_finds_records_that_are_not_what_ledger_directory_and_text_say() {
    let fixture = store();
    for (change, thing, what) in [
        ("state = 'done' WHERE id = 'free'", "free", "is noted in state done, and event"),
        ("owner = 'eve' WHERE id = 'mine'", "mine", "is noted as eve's, and event"),
        ("owner = NULL WHERE id = 'mine'", "mine", "is noted as nobody's, and event"),
        ("attempt = 7 WHERE id = 'mine'", "mine", "is noted at attempt 7, and event"),
        ("standing = 1 WHERE id = 'free'", "free", "is noted as flagged, and event"),
        ("standing = 3, dir = NULL WHERE id = 'aside'", "aside", "is noted as gone, and event"),
        ("name = x'612e79616d6c' WHERE id = 'free'", "free", "lies at work/inbox/a.yaml, and not"),
        ("status = 'done' WHERE id = 'free'", "free", "with status done, and its text says new"),
        ("status = NULL WHERE id = 'gone'", "gone", "with status none, and its text says new"),
        ("priority = -5 WHERE id = 'free'", "free", "otherwise than its text says: priority"),
        ("fit = 0, ready = 0 WHERE id = 'free'", "free", "than its text says: fitness for a claim"),
        ("not_before = 5 WHERE id = 'waits'", "waits", "otherwise than its text says: not_before"),
        ("lease = 9999 WHERE id = 'waits'", "waits", "otherwise than its text says: lease"),
        ("lease = NULL WHERE id = 'free'", "free", "otherwise than its text says: lease"),
        ("fit = 1 WHERE id = 'gone'", "gone", "than its text says: fitness for a claim"),
        ("done = 1 WHERE id = 'waits'", "waits", "is noted as done for those that wait for it"),
        ("ready = 0 WHERE id = 'free'", "free", "is ready and is not noted as that"),
        ("ready = 1 WHERE id = 'waits'", "waits", "is noted as ready and is not"),
        ("ready = 1 WHERE id = 'mine'", "mine", "is noted as ready and is not"),
        (
            "due = 4000000000000000000 WHERE id = 'free'",
            "free",
            "is ready and is not noted as that",
        ),
        (
            "due = 4000000000000000000 WHERE id = 'waits'",
            "waits",
            "ready at another time than it says",
        ),
        ("open = 3 WHERE id = 'free'", "free", "is noted with 3 open dependencies, not 0"),
    ] {
        // A row says `ready`, or when it will be. A time that has come would be seen to at once.
        let change = change.replace("due = ", "ready = 0, due = ");
        let problems = found(&fixture, &format!("UPDATE records SET {change}"));
        let wanted = format!("record work:{thing}: ");
        let is_it = |problem: &String| problem.starts_with(&wanted) && problem.contains(what);
        assert!(problems.iter().any(is_it), "{change}: {problems:#?}");
        assert!(problems.iter().all(|one| one.starts_with(&wanted)), "{change}: {problems:#?}");
    }
    let more = [
        ("DELETE FROM leases", "record work:mine: is somebody's, and no lease says until when"),
        (
            "DELETE FROM leases WHERE record = (SELECT key FROM records WHERE id = 'aside')",
            "record work:aside: is somebody's, and no lease says until when",
        ),
        ("UPDATE leases SET ttl = 900 * ttl", "record work:mine: has a lease of 12960000 s"),
        ("UPDATE nodes SET mode = 32768 + mode WHERE size = 9000", "has the mode 100644, which is"),
        (
            "INSERT INTO leases SELECT key, 0, 9, 9, 0 FROM records WHERE id = 'free'",
            "record work:free: has a lease of attempt 0, which is over",
        ),
        (
            "UPDATE edges SET sides = 3",
            "record work:free: is noted otherwise than its text says: dependants",
        ),
        (
            "INSERT INTO edges VALUES (1, 'none', 'neither', 3)",
            "the edge of neither and none: is declared by a record that is not there",
        ),
        (
            "UPDATE workspaces SET kind = 'x' WHERE path = x'776f726b'",
            "is noted as of kind x, and event",
        ),
        ("DELETE FROM records WHERE id = 'gone'", "is of no record"),
        (
            "UPDATE records SET state = 'done' WHERE id = 'free'; \
             UPDATE events SET line = replace(line, '\"state\":\"inbox\"', '\"state\":\"done\"') \
             WHERE g = (SELECT last_g FROM records WHERE id = 'free')",
            "record work:free: lies where records of nobody in state inbox lie",
        ),
    ];
    for (sql, what) in more {
        let problems = found(&fixture, sql);
        assert!(problems.iter().any(|one| one.contains(what)), "{sql}: {problems:#?}");
    }
    assert_eq!(found(&fixture, ""), Vec::<String>::new());
}

// P5.2
#[test]
fn fsck_finds_content_that_is_missing_numbers_that_begin_anew_and_what_is_not_ours() {
    let fixture = store();
    let plain = "(SELECT ino FROM entries WHERE name = x'706c61696e')";
    for (sql, what) in [
        ("DELETE FROM chunks".to_owned(), "says 1 chunks of content and has none"),
        (
            "INSERT INTO chunks (key, data) SELECT key + 1, x'00' FROM chunks".into(),
            "chunks of content and has 2",
        ),
        (format!("UPDATE nodes SET size = 77 WHERE ino = {plain}"), "up to 9000 after its end, 77"),
        (format!("INSERT INTO symlinks VALUES ({plain}, x'61')"), "target of a link of node"),
        (
            format!("INSERT INTO drafts SELECT {plain}, 1, x'61', NULL, x''"),
            "text of a draft of node",
        ),
        (format!("INSERT INTO dirs VALUES ({plain}, x'61')"), "name of a directory of node"),
        (
            "INSERT INTO xattrs VALUES (999, x'61', x'')".into(),
            "attributes of node 999: the node does",
        ),
        (
            "INSERT INTO chunks (key, data) VALUES (999 << 24, x'00')".into(),
            "node 999: has content and does not",
        ),
        ("UPDATE sqlite_sequence SET seq = 1".into(), "numbers of inodes: go up to"),
        ("DELETE FROM sqlite_sequence WHERE name = 'records'".into(), "as given up to 0"),
        (
            "CREATE TRIGGER evil AFTER INSERT ON refusals BEGIN DELETE FROM records; END".into(),
            "trigger evil: is none of workfs",
        ),
        (
            "UPDATE entries SET name = x'' WHERE name = x'6c696e6b'".into(),
            "name `` in node 1: is none that a file can have",
        ),
        ("UPDATE drafts SET name = x''".into(), "cannot be read: "),
        ("CREATE VIEW v AS SELECT 1".into(), "view v: is none of workfs"),
        ("CREATE TABLE theirs (a)".into(), "table theirs: is none of workfs"),
        ("DROP INDEX records_ready".into(), "index records_ready: is missing"),
        ("ALTER TABLE edges ADD COLUMN more INT".into(), "table edges: is not as workfs makes it"),
        (
            "DROP INDEX records_due; CREATE INDEX records_due ON records (id)".into(),
            "records_due: is not",
        ),
    ] {
        let problems = found(&fixture, &sql);
        assert!(problems.iter().any(|one| one.contains(what)), "{sql}: {problems:#?}");
    }
}

/// What a command meets that cannot be read: what was written into the store, what fsck says of it, and the
/// command.
fn illegible() -> Vec<(String, &'static str, Vec<&'static str>)> {
    let entry = |name: &str| format!("UPDATE entries SET name = {name} WHERE name = x'6c696e6b'");
    let export = vec!["export", "outside/export"];
    let record = |set: &str| format!("UPDATE records SET {set} WHERE id = 'mine'");
    let (list, show, log) = (vec!["list"], vec!["show", "free"], vec!["log"]);
    vec![
        (entry("x'612f62'"), "name `a/b` in node 1: is none that a file can", export.clone()),
        (entry("x'2e2e'"), "name `..` in node 1: is none that a file can have", export.clone()),
        (
            "UPDATE nodes SET mode = -1 WHERE size = 9000".into(),
            "cannot be read: -1 is out of range",
            export,
        ),
        (record("id = 'a/b'"), ": cannot be read: ", list.clone()),
        (record("trace = x''"), "cannot be read: a trace that is not 16", list.clone()),
        (record("standing = 7"), "cannot be read: a record's standing 7", list.clone()),
        (
            "UPDATE workspaces SET path = x'2e2e' WHERE path <> x'776f726b'".into(),
            "workspace 2: cannot be read",
            list.clone(),
        ),
        (
            "UPDATE events SET line = CAST(x'ff' AS TEXT) WHERE g = 2".into(),
            "event 2: cannot be read: a text is not UTF-8",
            log,
        ),
        ("UPDATE agents SET role = 'king'".into(), "agents: cannot be read: role `king`", list),
        (
            "DROP TABLE edges".into(),
            "table edges: is missing",
            vec!["done", "mine", "--agent", "bob", "--summary", "x"],
        ),
        ("DROP TABLE orphans".into(), "table orphans: is missing", vec!["mount", "m0"]),
        ("DROP TABLE leader".into(), "table leader: is missing", show.clone()),
        ("DROP TABLE versions".into(), "table versions: is missing", show),
    ]
}

// P8.2
#[test]
fn what_cannot_be_read_is_damage_to_whoever_meets_it() {
    let fixture = store();
    for (sql, _, arguments) in illegible() {
        let ran = asked(&fixture, &sql, &arguments).failure();
        // An export does what it can, and its report says so.
        let _ = fs::remove_dir_all(fixture.outside("export"));
        let told = ran.stdout.clone() + &ran.stderr;
        assert!(ran.code == 10 && told.contains("the store is damaged"), "{sql}: {ran}");
    }
}

// P5.2
#[test]
fn what_cannot_be_read_is_one_problem_and_the_rest_is_looked_at() {
    let fixture = store();
    let also = "UPDATE records SET priority = -5 WHERE id = 'waits';";
    for (sql, what, _) in illegible() {
        let problems = told(&fixture, &format!("{also} {sql}"));
        assert!(problems.iter().any(|one| one.contains(what)), "{sql}: {problems:#?}");
        assert!(problems.len() < 9, "not all that follows from it: {sql}: {problems:#?}");
        let needs_texts = sql.ends_with("edges") || sql.ends_with("versions");
        let is_also = |one: &String| one.contains("record work:waits") && one.contains("priority");
        assert!(needs_texts || problems.iter().any(is_also), "{sql}: {problems:#?}");
        let doctor = asked(&fixture, &sql, &["doctor"]);
        assert!(doctor.code == 11 && doctor.stdout.contains("BAD"), "{sql}: {doctor}");
    }
    let whole = asked(&fixture, "", &["doctor"]).success();
    assert!(whole.stdout.contains("what they say: `workfs fsck`"), "{whole}");
}

// P5.2
#[test]
fn where_the_events_are_lost_the_rest_is_looked_at() {
    const PAGE_BYTES: u64 = 4096;
    let fixture = store();
    let copy = with(&fixture, "UPDATE nodes SET nlink = 7 WHERE size = 9000");
    let open = rusqlite::Connection::open(&copy).unwrap();
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'events'";
    let root: u32 = open.query_row(root, [], |row| row.get(0)).unwrap();
    drop(open);
    let file = fs::File::options().write(true).open(&copy).unwrap();
    file.write_all_at(&[0; PAGE_BYTES as usize], u64::from(root - 1) * PAGE_BYTES).unwrap();
    let ran = run(&mut fixture.command_on(&copy, &["fsck"])).failure();
    assert!(ran.code == 11 && ran.stdout.contains("\nevents: cannot be read: "), "{ran}");
    assert!(ran.stdout.contains("says 7 links and has 1"), "{ran}");
    assert!(!ran.stdout.contains("the ledger says"), "{ran}");
    let ran = run(&mut fixture.command_on(&copy, &["list"])).failure();
    assert!(ran.code == 10 && ran.stderr.contains("the store is damaged"), "{ran}");
}

// P5.2 P6.1
#[test]
fn who_goes_back_in_the_past_of_a_damaged_store_comes_to_an_end() {
    let mut fixture = store();
    let itself = "SET before_g = g WHERE g IN (SELECT";
    for (table, command) in [("events", "log mine"), ("versions", "restore mine --at 1")] {
        let sql = format!("UPDATE {table} {itself} last_g FROM records WHERE id = 'mine')");
        let ran = asked(&fixture, &sql, &command.split(' ').collect::<Vec<_>>()).failure();
        assert!(ran.code == 10 && ran.stderr.contains("is said to be before event"), "{ran}");
    }
    // Whoever does not go back is not kept from anything.
    asked(&fixture, "UPDATE events SET before_g = g", &["log"]).success();
    fixture.set_store(with(&fixture, "UPDATE events SET end = 1 << 60 WHERE before_g > 0"));
    fixture.mount_all();
    let mut begin = fs::File::open(fixture.path(".workfs/events")).unwrap().take(1 << 20);
    assert_eq!(begin.read_to_end(&mut vec![]).unwrap_err().raw_os_error(), Some(5));
}

// P4.1
#[test]
fn a_file_that_has_a_name_is_not_taken_for_one_that_has_none() {
    let fixture = store();
    let copy = with(&fixture, "INSERT INTO orphans SELECT ino FROM nodes WHERE size = 9000");
    for _ in 0..2 {
        let ran = run(&mut fixture.command_on(&copy, &["fsck"])).failure();
        assert!(ran.code == 11 && ran.stdout.contains("1 problem: "), "{ran}");
        assert!(ran.stdout.contains("is marked as nameless, and is not"), "{ran}");
    }
    let to = fixture.outside("to");
    let export = ["export", to.to_str().unwrap(), "--path", "plain"];
    run(&mut fixture.command_on(&copy, &export)).success();
    assert_eq!(fs::read(to.join("plain")).unwrap().len(), 9_000);
}

const SCHEMA: &str = r#"{"type": "object", "properties": {"id": {"type": "string"}, "how": {"enum": ["one"]},
    "now": {"enum": ["other", "new"]}, "urgent": {"type": "integer"}, "rank": {"type": "integer"}}}"#;

/// A kind with this field for the status, and that one for the priority.
fn kind(status: &str, priority: &str) -> String {
    format!(
        "kind: errand\nschema: errand.v1.json\nextensions: [yaml]\n\
         fields: {{ id: id, status: {status} }}\n\
         order: {{ dir: ready, priority: {{ field: {priority}, order: [high], absent: high }} }}\n\
         states:\n  open: {{ dirs: [open], status: any, initial: true }}\n\
         \x20 shut: {{ dirs: [shut], status: any }}\n\
         transitions:\n  - {{ from: open, to: shut, event: ended, by: [agent, operator] }}\n"
    )
}

// P5.2
#[test]
fn what_was_noted_by_other_rules_is_no_problem() {
    let fixture = Setup::default().prepare();
    let layout = |kind: &str| {
        fixture.init_with_kind((kind, SCHEMA), "{ path: errands, kind: errand, policy: flag }");
    };
    layout(&kind("how", "urgent"));
    fixture.mount_at(fixture.root()).success();
    let path = |id: &str| fixture.path(&format!("errands/open/{id}.yaml"));
    for id in ["old", "new"] {
        fs::write(path(id), "how: one\nnow: other\nurgent: 1\nrank: 2\n").unwrap();
    }
    // Kept, and marked.
    fs::write(path("old"), "how: one\nurgent: 3\nrank: [\n").unwrap();
    fixture.fsck_clean();
    fixture.unmount_all();
    layout(&kind("now", "rank"));
    fixture.mount_at(fixture.root()).success();
    fixture.fsck_clean();
    fs::write(path("new"), "how: one\nnow: new\nurgent: 1\nrank: 5\n").unwrap();
    fixture.fsck_clean();
    fixture.unmount_all();
    // A layout that is refused was in force for nothing.
    fs::write(fixture.outside("none.yaml"), "workspaces: []\n").unwrap();
    let none = fixture.outside("none.yaml");
    fixture.workfs(&["init", "--layout", none.to_str().unwrap()]).failure();
    fixture.workfs(&["fsck"]).success();
    let change = "UPDATE records SET priority = 99, status = 'x'";
    let problems = found(&fixture, change);
    assert!(
        !problems.is_empty() && problems.iter().all(|one| one.contains("errands:new")),
        "{problems:#?}"
    );

    // A store of a program that kept no note of its rules: all that there is came before it.
    assert_eq!(
        found(&fixture, &format!("DELETE FROM meta WHERE key = 'rules'; {change}")),
        [""; 0]
    );
}

// P8.2 P5.2
#[test]
fn an_export_saves_what_can_be_read_and_names_the_rest() {
    let fixture = store();
    let plain = "(SELECT ino FROM entries WHERE name = x'706c61696e')";
    let cases = [
        (
            "DELETE FROM versions WHERE g = (SELECT version_g FROM records WHERE id = 'free')"
                .into(),
            "work/inbox/free.yaml",
            "has no content",
            1,
        ),
        (format!("DELETE FROM chunks WHERE key >> 24 = {plain}"), "plain", "0 of the 1 chunks", 1),
        ("DELETE FROM symlinks".to_owned(), "link", "no target", 0),
        (
            format!("UPDATE entries SET name = x'612f62' WHERE ino = {plain}"),
            ".",
            "one of its names cannot be read",
            1,
        ),
    ];
    let arguments = |to: &str| ["export".to_owned(), fixture.outside(to).display().to_string()];
    let files = |to: &str| {
        let find = fixture.sh(&format!("find $OUT/{to} -type f | wc -l")).success().stdout;
        find.trim().parse::<usize>().unwrap()
    };
    let run_on =
        |sql: &str, to: &str| asked(&fixture, sql, &arguments(to).each_ref().map(String::as_str));
    run_on("", "whole").success();
    let whole = files("whole");
    for (nth, (sql, path, why, missing)) in cases.iter().enumerate() {
        let to = format!("part-{nth}");
        let ran = run_on(sql, &to);
        assert_eq!(ran.code, 10, "{sql}: {ran}");
        let line =
            ran.stdout.lines().find(|line| line.starts_with(&format!("  {path}: damaged: ")));
        assert!(line.is_some_and(|line| line.contains(why)), "{sql}: {ran}");
        assert!(ran.stdout.contains("1 of these cannot be read"), "{sql}: {ran}");
        assert!(files(&to) + missing <= whole && files(&to) >= 4, "{sql}: {ran}");
    }
}

// P8.2 P5.2
#[test]
fn an_export_goes_round_a_damaged_page_of_names() {
    const PAGE_BYTES: usize = 4096;
    /// The type of a page of names that has none below it.
    const LEAF: u8 = 10;
    let fixture = Fixture::new();
    let ids = fixture.tasks(300);
    fixture
        .sh("mkdir many; cd many; touch f-{0001..1000}; mkdir f-{0001..1000..50}.d; for d in *.d; do touch $d/x; done").success();
    fixture.unmount_all();
    let files = |to: &str, which: &str| {
        let find = fixture.sh(&format!("cd $OUT/{to} && find {which} | wc -l")).success().stdout;
        find.trim().parse::<usize>().unwrap()
    };
    for (nth, name) in ["f-0500", &format!("{}.yaml", ids[150])].into_iter().enumerate() {
        let copy = with(&fixture, "");
        let bytes = fs::read(&copy).unwrap();
        let is_it = |page: &[u8]| {
            page[0] == LEAF && page.windows(name.len()).any(|part| part == name.as_bytes())
        };
        let page = bytes.chunks(PAGE_BYTES).position(is_it).unwrap();
        let file = fs::File::options().write(true).open(&copy).unwrap();
        file.write_all_at(&[0; PAGE_BYTES], (page * PAGE_BYTES) as u64).unwrap();
        let to = format!("round-{nth}");
        let out = fixture.outside(&to);
        let ran = run(&mut fixture.command_on(&copy, &["export", out.to_str().unwrap()]));
        assert!(ran.code == 10 && ran.stdout.contains("not all of its names can be read"), "{ran}");
        // Of that page plain files are lost, and nothing else.
        assert_eq!(files(&to, "work/inbox -name '*.yaml'"), ids.len(), "{ran}");
        assert_eq!(files(&to, "many -name x"), 20, "{ran}");
        let plain = files(&to, "many -name 'f-????'");
        let lost = if nth == 0 { 20..400 } else { 0..1 };
        assert!(lost.contains(&(1_000 - plain)), "{plain}: {ran}");
        assert!(out.join("many/f-0001").exists() && out.join("many/f-1000").exists(), "{ran}");
    }
}

// P8.2 P6.1
#[test]
fn a_damaged_head_is_damage_to_every_command_and_nothing_is_written() {
    let fixture = store();
    let copy = with(&fixture, "");
    let head = fs::read(&copy).unwrap();
    // The versions by which it can be written and read, and the form of its schema.
    for (at, byte) in [(18, 3), (18, 255), (19, 0), (47, 255)] {
        let mut bytes = head.clone();
        bytes[at] = byte;
        fs::write(&copy, &bytes).unwrap();
        let mount = fixture.root().to_str().unwrap();
        let asks: [&[&str]; 4] = [&["list"], &["fsck"], &["claim", "--next"], &["mount", mount]];
        for arguments in asks {
            let ran = run(&mut fixture.command_on(&copy, arguments)).failure();
            assert_eq!(ran.code, 10, "byte {at}: {ran}");
            assert!(ran.stderr.contains("damaged: its head"), "byte {at}: {ran}");
        }
        assert!(fs::read(&copy).unwrap() == bytes, "byte {at}: something was written");
    }
}

// P5.2
#[test]
fn a_store_that_is_cut_off_is_told_as_damaged_and_not_sent_in_circles() {
    let fixture = store();
    let cut = fixture.outside("cut.db");
    let bytes = fs::read(fixture.store()).unwrap();
    fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let fsck = run(&mut fixture.command_on(&cut, &["fsck"])).failure();
    assert!(fsck.code == 10 && fsck.stderr.contains("damaged"), "{fsck}");
    assert!(fsck.stderr.contains("restore a backup") && !fsck.stderr.contains("fsck` says"));
    let restored = fixture.workfs(&["restore", "--force", cut.to_str().unwrap()]).failure();
    assert!(restored.code == 10 && restored.stderr.contains("cut.db is damaged"), "{restored}");
    assert!(restored.stderr.contains("take another backup"), "{restored}");
    fixture.workfs(&["fsck"]).success();
}
