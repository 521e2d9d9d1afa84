//! Hostile and broken content: each case ends with an errno, loses no version and stops nothing.

use std::fs;
use std::io::Write;
use std::time::Duration;

use crate::harness::{Errno, Fixture, Setup, Task, close, save, save_synced, ticks_of};

struct Case {
    what: &'static str,
    bytes: Vec<u8>,
    errno: Errno,
}

fn cases() -> Vec<Case> {
    let task = Task::new("t-1").text();
    let bad = |what, bytes: Vec<u8>| Case { what, bytes, errno: Errno::INVAL };
    let line = |line: &str| (task.clone() + line).into_bytes();
    let nested = |open: &str, close: &str, depth: usize| {
        line(&format!("deep: {}{}\n", open.repeat(depth), close.repeat(depth)))
    };
    let mut bomb = String::from("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for level in 1..30 {
        let last = level - 1;
        let many = vec![format!("*a{last}"); 9].join(", ");
        bomb += &format!("a{level}: &a{level} [{many}]\n");
    }
    let big = |bytes: usize| {
        let mut text = line("big: |\n");
        while text.len() < bytes {
            let left = bytes - text.len();
            text.extend("  0123456789012345678901234567890123456789\n".bytes().take(left));
        }
        text
    };
    vec![
        bad("not YAML", b"status: new\n  : : [}\n".into()),
        bad("a list", b"- a\n- b\n".into()),
        bad("a scalar", b"hello\n".into()),
        bad("two documents", line("---\nid: t-1\n")),
        bad("two documents in one", line("...\n---\na: b\n")),
        bad("a duplicate key", line("priority: low\n")),
        bad("a duplicate key below", line("context:\n  a: 1\n  b: 2\n  a: 3\n")),
        bad("a tab for indentation", line("context:\n\ta: 1\n")),
        Case { what: "anchors that explode", bytes: line(&bomb), errno: Errno::FBIG },
        bad("an alias to itself", line("a: &a [*a]\n")),
        bad("an unknown alias", line("a: *nowhere\n")),
        bad("65 levels of lists", nested("[", "]", 65)),
        bad("65 levels of mappings", nested("{a: ", "}", 65)),
        bad("a hundred thousand levels", nested("[", "", 100_000)),
        bad("a hundred thousand mappings", nested("{a: ", "", 100_000)),
        bad("a long flight of dashes", line(&format!("a:\n{}x\n", "- ".repeat(20_000)))),
        bad("invalid UTF-8", [task.as_bytes(), b"more: \xff\xfe\n"].concat()),
        bad("a surrogate", [task.as_bytes(), b"more: \xed\xa0\x80\n"].concat()),
        bad("UTF-16", "status: new\n".encode_utf16().flat_map(u16::to_le_bytes).collect()),
        bad("NUL", line("more: a\0b\n")),
        bad("only NULs", vec![0; 4096]),
        bad("an escape character", line("more: \u{1b}[31m\n")),
        bad("a NUL by escape", line("more: \"\\0\"\n")),
        bad("an unknown status", task.replace("status: new", "status: nonsense").into()),
        bad("another directory's status", task.replace("status: new", "status: done").into()),
        bad("a status that is a list", task.replace("status: new", "status: [new]").into()),
        bad("a status that is a number", task.replace("status: new", "status: 7").into()),
        bad("an id that is another", task.replace("id: t-1", "id: t-2").into()),
        bad("an id that is a number", task.replace("id: t-1", "id: 1").into()),
        bad("artefacts that are numbers", task.replace("b.md", "7").into()),
        bad("a title that is a mapping", task.replace("'Task t-1'", "{a: b}").into()),
        bad("a result that is a list", line("result: [a]\n")),
        bad("an unknown priority", task.replace("normal", "sometime").into()),
        bad("a newline alone", b"\n".into()),
        bad("a comment alone", b"# nothing\n".into()),
        bad("null", b"null\n".into()),
        Case { what: "1 MiB and 1 byte", bytes: big((1 << 20) + 1), errno: Errno::FBIG },
        Case { what: "3 MiB", bytes: big(3 << 20), errno: Errno::FBIG },
    ]
}

// P3.5
#[test]
fn bad_input_replaces_no_record() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let daemon = fixture.daemon_pid();
    for Case { what, bytes, errno } in cases() {
        let before = ticks_of(daemon);
        assert_eq!(save(&path, &bytes), Err(errno), "{what}");
        // Of the processor's time: the machine may be busy.
        let took = Duration::from_millis(10 * (ticks_of(daemon) - before));
        assert!(took < Duration::from_secs(2), "{what} took {took:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), Task::new("t-1").text(), "{what}");
    }
    assert_eq!(fixture.daemon_pid(), daemon);
    assert_eq!(fixture.ledger().names("t-1"), ["created"]);
    assert_eq!(fixture.rejected().len(), cases().len());
    fixture.fsck_clean();
}

// P3.5
#[test]
fn bad_input_in_a_new_file_is_a_draft_that_cannot_move() {
    let fixture = Fixture::new();
    let path = fixture.path("work/inbox/t-1.yaml");
    let to = fixture.path("work/assigned/bob/t-1.yaml");
    for Case { what, bytes, errno } in cases() {
        assert_eq!(save(&path, &bytes), Err(errno), "{what}");
        assert!(path.exists(), "{what} is not there any more");
        let error = fs::rename(&path, &to).expect_err(what);
        assert_eq!(Errno::from_io_error(&error), Some(Errno::PERM), "{what}");
        let why = fs::read_to_string(fixture.path("work/inbox/t-1.yaml.why")).unwrap();
        assert!(why.contains("W0"), "{what}: {why}");
        fs::remove_file(&path).unwrap();
    }
    assert_eq!(fixture.ledger().counts("created").len(), 0);
    fixture.fsck_clean();
}

// P3.5
#[test]
fn bad_input_by_rename_replaces_no_record() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let temp = fixture.path("work/inbox/.t-1.new");
    for Case { what, bytes, .. } in cases() {
        fs::write(&temp, &bytes).unwrap();
        let error = fs::rename(&temp, &path).expect_err(what);
        let errno = Errno::from_io_error(&error);
        assert!(matches!(errno, Some(Errno::PERM | Errno::FBIG)), "{what}: {error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), Task::new("t-1").text(), "{what}");
    }
    // An empty file is as bad as any.
    fs::write(&temp, b"").unwrap();
    assert!(fs::rename(&temp, &path).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), Task::new("t-1").text());
    fixture.fsck_clean();
}

// P3.5 P6.7
#[test]
fn a_schema_whose_alternatives_refer_to_themselves_stops_nobody() {
    let below = r##""items": {"$ref": "#/$defs/a"}"##;
    let layout = format!(
        r##"workspaces: []
checks: [{{ path: "plans/*", schema: deep }}]
schemas:
- name: deep
  text: '{{"$ref": "#/$defs/a", "$defs": {{"a": {{"anyOf": [{{"type": "string"}},
    {{"type": "array", {below}}}, {{"type": "array", "minItems": 0, {below}}}]}}}}}}'
"##
    );
    let fixture = Setup::default().layout(&layout).start();
    fixture.sh("mkdir plans").success();
    let path = fixture.path("plans/deep.json");
    let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(60), "]".repeat(60));
    save(&path, deep("\"x\"").as_bytes()).unwrap();
    // It doubled with each level what the daemon took: its memory for these is beyond any machine's.
    assert_eq!(save(&path, deep("1").as_bytes()), Err(Errno::INVAL));
    let why = fixture.why();
    assert!(why.contains("the document does not fit the schema"), "{why}");
    let status = fs::read_to_string(format!("/proc/{}/status", fixture.daemon_pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 200_000, "{peak} KiB");
    assert_eq!(fs::read_to_string(&path).unwrap(), deep("\"x\""));
}

/// A task of exactly so many bytes.
fn sized(bytes: usize) -> Vec<u8> {
    let mut text = Task::new("t-1").text() + "# ";
    text += &"x".repeat(bytes - text.len() - 1);
    (text + "\n").into()
}

// P3.9
#[test]
fn one_mebibyte_is_the_limit() {
    let fixture = Fixture::new();
    let path = fixture.path("work/inbox/t-1.yaml");
    save(&path, &sized(1 << 20)).unwrap();
    assert!(fs::read(&path).unwrap() == sized(1 << 20));
    assert_eq!(save(&path, &sized((1 << 20) + 1)), Err(Errno::FBIG));
    assert!(fs::read(&path).unwrap() == sized(1 << 20));
    // No room for what a claim writes: refused, and nothing is half done.
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").failure();
    assert!(fs::read(&path).unwrap() == sized(1 << 20));
    fixture.fsck_clean();
}

// P3.9
#[test]
fn odd_but_valid_bytes_are_kept() {
    let fixture = Fixture::new();
    let task = Task::new("t-1").text();
    let odd: Vec<(&str, Vec<u8>)> = vec![
        ("CRLF", task.replace('\n', "\r\n").into()),
        ("a byte order mark", [b"\xef\xbb\xbf", task.as_bytes()].concat()),
        ("both", [b"\xef\xbb\xbf", task.replace('\n', "\r\n").as_bytes()].concat()),
        ("a document marker", format!("---\n{task}").into()),
        ("no newline at the end", task.trim_end().into()),
        (
            "64 levels",
            (task.clone() + &format!("deep: {}{}\n", "[".repeat(63), "]".repeat(63))).into(),
        ),
        ("an anchor used twice", (task.clone() + "a: &a [1, 2]\nb: *a\n").into()),
        ("letters of many scripts", (task.clone() + "more: \"žluťoučký 工作 🛠\"\n").into()),
        ("tabs where they may be", (task.clone() + "more:\t\"a\"\t# x\n").into()),
        // The claim itself writes some bytes, for which there must be room.
        ("nearly 1 MiB", sized((1 << 20) - 100)),
    ];
    for (nth, (what, bytes)) in odd.iter().enumerate() {
        let path = fixture.path("work/inbox/t-1.yaml");
        save(&path, bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(&fs::read(&path).unwrap(), bytes, "{what} is not kept");
        // A claim patches three fields and leaves all else.
        let lane = format!("work/assigned/lane{nth}");
        fixture.sh(&format!("mkdir {lane}; mv work/inbox/t-1.yaml {lane}/")).success();
        let claimed = fs::read(fixture.path(&lane).join("t-1.yaml")).unwrap();
        let is = String::from_utf8(claimed).unwrap();
        assert!(is.contains(&format!("agent: lane{nth}")), "{what}");
        let rest = |text: &str| -> Vec<String> {
            let keys = ["status:", "agent:", "assigned_at:"];
            let lines = text.split_inclusive('\n');
            lines
                .filter(|l| !keys.iter().any(|key| l.starts_with(key)))
                .map(str::to_owned)
                .collect()
        };
        let was = std::str::from_utf8(bytes).unwrap();
        assert_eq!(rest(&is), rest(was), "{what} after the claim");
        if was.contains("\r\n") {
            assert!(!is.replace("\r\n", "").contains('\n'), "{what}: line ends are mixed");
        }
        fs::remove_file(fixture.path(&lane).join("t-1.yaml")).unwrap();
    }
    fixture.fsck_clean();
}

// P3.5
#[test]
fn names_at_their_limits() {
    let fixture = Fixture::new();
    let id = "x".repeat(200);
    let path = fixture.path("work/inbox").join(format!("{id}.yaml"));
    save(&path, b"status: new\n").unwrap();
    let to = fixture.path("work/assigned/bob").join(format!("{id}.yaml"));
    fs::rename(&path, &to).unwrap();
    assert!(fs::read_to_string(&to).unwrap().contains("agent: bob"));
    // Too long for an id, not for a name: a plain file.
    let long = format!("{}.yaml", "y".repeat(250));
    save(&fixture.path("work/inbox").join(&long), b"status: [").unwrap();
    let too_long = format!("{}.yaml", "z".repeat(251));
    let path = fixture.path("work/inbox").join(too_long);
    assert_eq!(save(&path, b"status: new\n"), Err(Errno::NAMETOOLONG));
    let path = fixture.path("work/inbox").join("z".repeat(2000));
    assert_eq!(save(&path, b""), Err(Errno::NAMETOOLONG));
    fixture.fsck_clean();
}

// P3.2
#[test]
fn a_save_of_what_was_removed_meanwhile_says_what_that_was() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"notes: late\n").unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(close(file), Err(Errno::STALE));
    let why = fixture.why();
    assert!(why.contains("save work/inbox/t-1.yaml ESTALE [W029"), "{why}");
}

// P3.2
#[test]
fn the_text_of_a_neighbour_is_not_to_be_moved_to_where_it_lies() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let other = fixture.task("inbox", &Task::new("t-2"));
    let text = Task::new("t-2").text() + "notes: one more line\n";
    let saved = save(&fixture.path("work/inbox/t-1.yaml"), text.as_bytes());
    assert_eq!(saved, Err(Errno::INVAL));
    let why = fixture.why();
    assert!(!why.contains("mv "), "{why}");
    assert!(why.contains("say `id: t-1` in it, or save it as `work/inbox/t-2.yaml`"), "{why}");
    save(&other, text.as_bytes()).unwrap();
}

// P3.1
#[test]
fn who_does_not_look_at_write_hears_of_it_by_fsync_and_by_close() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    for path in [&path, &fixture.path("work/inbox/t-2.yaml")] {
        let refused = save_synced(path, b"status: nonsense\npriority: low\n");
        assert_eq!(refused, [Err(Errno::INVAL); 3], "{path:?}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), Task::new("t-1").text());
    assert_eq!(fixture.rejected().len(), 2, "each is kept once");
    fixture.fsck_clean();
}
