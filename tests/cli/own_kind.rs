//! Kinds of one's own: what a layout brings, and what the commands do to their records.

use std::fs;

use crate::harness::{Fixture, Setup, Task};

const SCHEMA: &str = r#"{"type": "object", "properties": {"id": {"type": "string"},
    "who": {"type": ["string", "null"]}, "status": {"enum": ["open", "taken", "lost", "shut"]},
    "note": {"type": "string"}, "trouble": {"type": "object"}}}"#;

const KIND: &str = "kind: errand
schema: errand.v1.json
extensions: [yaml]
fields: { id: id, status: status, owner: who }
states:
  open: { dirs: [open], status: [open], initial: true }
  taken: { dirs: ['by/{owner}'], status: [taken, lost] }
  shut: { dirs: ['shut/{owner}', shut], status: [shut], requires: [note] }
transitions:
  - { from: open, to: taken, event: claimed, by: [agent, operator] }
  - { from: taken, to: open, event: left, by: [agent, operator] }
  - { from: taken, to: shut, event: ended, by: [agent, operator] }
";

const COMMANDS: &str = "commands:
  done: { to: shut, text: note }
  fail: { status: lost, text: trouble.why }
";

const UNOWNED: &str = "kind: errand
schema: errand.v1.json
extensions: [yaml]
fields: { id: id, status: status }
states:
  open: { dirs: [open], status: [open], initial: true }
  shut: { dirs: [shut], status: [shut] }
transitions:
  - { from: open, to: shut, event: ended, by: [agent, operator] }
";

/// A mounted store whose `errands/` holds records of that kind.
fn errands(kind: &str) -> Fixture {
    let fixture = Setup::default().prepare();
    fixture.init_with_kind((kind, SCHEMA), "{ path: errands, kind: errand }");
    fixture.mount_at(fixture.root()).success();
    fs::create_dir(fixture.path("errands/by/ann")).unwrap();
    for id in ["e-1", "e-2", "e-3"] {
        let (open, taken) =
            (format!("errands/open/{id}.yaml"), format!("errands/by/ann/{id}.yaml"));
        fs::write(fixture.path(&open), format!("id: {id}\nstatus: open\n")).unwrap();
        fs::rename(fixture.path(&open), fixture.path(&taken)).unwrap();
    }
    fixture
}

// P8.2
#[test]
fn a_layout_brings_a_kind_of_ones_own_and_its_files() {
    let fixture = errands(KIND);
    let claimed = fs::read_to_string(fixture.path("errands/by/ann/e-1.yaml")).unwrap();
    assert!(claimed.contains("status: taken\n") && claimed.contains("who: ann\n"), "{claimed}");
    let kept = fs::read_to_string(fixture.path(".workfs/kinds/errand.v1.json")).unwrap();
    assert_eq!(kept, SCHEMA);
    let names = fs::read_dir(fixture.path(".workfs/kinds")).unwrap();
    assert_eq!(names.flatten().count(), 4);
    fixture.fsck_clean();
}

// P8.2
#[test]
fn kinds_may_share_a_schema() {
    let fixture = Setup::default().prepare();
    for (name, kind) in [("errand", UNOWNED), ("task-of-two", KIND)] {
        let kind = kind.replace("kind: errand", &format!("kind: {name}"));
        fs::write(fixture.outside(&format!("{name}.kind.yaml")), kind).unwrap();
    }
    fs::write(fixture.outside("errand.v1.json"), SCHEMA).unwrap();
    let layout = fixture.outside("layout.yaml");
    let text = "kinds: [{ file: errand.kind.yaml }, { file: task-of-two.kind.yaml }]\n\
                workspaces: [{ path: a, kind: errand }, { path: b, kind: task-of-two }]\n";
    fs::write(&layout, text).unwrap();
    fixture.workfs(&["init", "--layout", layout.to_str().unwrap()]).success();
    fixture.mount_at(fixture.root()).success();
    let listed = fixture.sh("ls .workfs/kinds && cat .workfs/kinds/errand.v1.json").success();
    let names = "errand.kind.yaml\nerrand.v1.json\ntask-of-two.kind.yaml\ntask.kind.yaml\n\
                 task.v1.json\n";
    assert_eq!(listed.stdout, format!("{names}{SCHEMA}"));
    for dir in ["a", "b"] {
        let path = fixture.path(&format!("{dir}/open/e-1.yaml"));
        fs::write(path, "id: e-1\nstatus: open\n").unwrap();
    }
    fixture.fsck_clean();
}

// P8.2
#[test]
fn a_move_asks_for_what_the_new_status_requires() {
    let fixture = errands(&KIND.replace("requires: [note]", "status_requires: { shut: [note] }"));
    fixture.sh("mkdir -p errands/shut/ann").success();
    let ran = fixture.sh("mv errands/by/ann/e-1.yaml errands/shut/ann/").failure();
    assert!(ran.stderr.contains("Operation not permitted"), "{ran}");
    assert!(fixture.why().contains("`note` is missing or empty, and status `shut`"));
    fixture.sh("echo 'note: done' >> errands/by/ann/e-1.yaml").success();
    fixture.sh("mv errands/by/ann/e-1.yaml errands/shut/ann/").success();
    fixture.fsck_clean();
}

// P8.2
#[test]
fn nobody_claims_what_the_schema_lets_them_not_own() {
    let fixture = Setup::default().prepare();
    let schema = SCHEMA.replace(r#""type": ["string", "null"]"#, r#""enum": ["ann", null]"#);
    fixture.init_with_kind((KIND, &schema), "{ path: errands, kind: errand }");
    fixture.mount_at(fixture.root()).success();
    fixture.sh("mkdir errands/by/bob errands/by/ann").success();
    fs::write(fixture.path("errands/open/e-1.yaml"), "id: e-1\nstatus: open\n").unwrap();
    let ran = fixture.sh("mv errands/open/e-1.yaml errands/by/bob/").failure();
    assert!(ran.stderr.contains("Operation not permitted"), "{ran}");
    let why = fixture.why();
    assert!(why.contains("W011") && why.contains("`who` is `bob`, not one of ann"), "{why}");
    fixture.sh("mv errands/open/e-1.yaml errands/by/ann/").success();
    fixture.sh("echo 'note: mine' >> errands/by/ann/e-1.yaml").success();
    fixture.fsck_clean();
}

// P8.2
#[test]
fn what_init_takes_every_command_reads() {
    let fixture = Setup::default().prepare();
    // Together they are longer than each may be, and YAML does not take DEL as it is.
    let note = "\u{7f}\u{fffe}".to_owned() + &"x".repeat(200_000);
    let note = format!("{{\"description\": \"{note}\", ");
    fs::write(fixture.outside("errand.v1.json"), SCHEMA.replacen('{', &note, 1)).unwrap();
    let mut layout =
        "workspaces: [{ path: a, kind: a }, { path: b, kind: b }]\nkinds:\n".to_owned();
    for name in ["a", "b"] {
        let kind = KIND.replace("kind: errand", &format!("kind: {name}"));
        fs::write(fixture.outside(&format!("{name}.kind.yaml")), kind).unwrap();
        layout += &format!("  - file: {name}.kind.yaml\n");
    }
    fs::write(fixture.outside("layout.yaml"), layout).unwrap();
    let init = |layout: &str| fixture.workfs(&["init", "--layout", layout]);
    init(fixture.outside("layout.yaml").to_str().unwrap()).success();
    fixture.workfs(&["list"]).success();
    fixture.mount_at(fixture.root()).success();
    fs::write(fixture.path("b/open/e-1.yaml"), "id: e-1\nstatus: open\n").unwrap();
    // What a mount shows of it is a layout, too.
    let shown = fs::read(fixture.path(".workfs/config.yaml")).unwrap();
    fs::write(fixture.outside("again.yaml"), shown).unwrap();
    fixture.unmount_all();
    init(fixture.outside("again.yaml").to_str().unwrap()).success();
    fixture.fsck_clean();
}

// P8.2
#[test]
fn a_field_that_the_schema_does_not_have_is_refused_with_its_line() {
    let fixture = Setup::default().prepare();
    fs::write(fixture.outside("errand.v1.json"), SCHEMA).unwrap();
    let layout = fixture.outside("layout.yaml");
    fs::write(&layout, "kinds: [{ file: errand.kind.yaml }]\nworkspaces: []\n").unwrap();
    let kind = format!("{KIND}{COMMANDS}").replace("text: note", "text: note.x");
    fs::write(fixture.outside("errand.kind.yaml"), kind).unwrap();
    let ran = fixture.workfs(&["init", "--layout", layout.to_str().unwrap()]).failure();
    assert!(ran.code == 2 && ran.stderr.contains("`note.x`"), "{ran}");
    assert!(ran.stderr.contains("errand.kind.yaml") && ran.stderr.contains("line 14"), "{ran}");
    assert!(ran.stderr.contains("`.workfs/kinds/` of a mount"), "{ran}");
    // What is wrong with the layout is told of by another document.
    fs::write(&layout, "workspaces: [{ path: a, kind: errnd }]\n").unwrap();
    let ran = fixture.workfs(&["init", "--layout", layout.to_str().unwrap()]).failure();
    assert!(ran.stderr.contains("`workfs init --help` shows one"), "{ran}");
}

// P8.2
#[test]
fn what_a_kind_hardly_means_init_warns_of() {
    let fixture = Setup::default().prepare();
    fs::write(fixture.outside("errand.kind.yaml"), UNOWNED).unwrap();
    fs::write(fixture.outside("errand.v1.json"), SCHEMA).unwrap();
    let layout = fixture.outside("layout.yaml");
    fs::write(&layout, "kinds: [{ file: errand.kind.yaml }]\nworkspaces: []\n").unwrap();
    let init = ["init", "--layout", layout.to_str().unwrap()];
    for more in [&["--dry-run"][..], &[]] {
        let ran = fixture.workfs(&[&init[..], more].concat()).success();
        let warns = ran.stderr.contains("warning: errand.kind.yaml:8: nothing of this kind");
        assert!(warns && ran.stderr.contains("event: claimed"), "{ran}");
        let ran = fixture.workfs(&[&["--json"], &init[..], more].concat()).success();
        assert!(ran.stderr.is_empty(), "{ran}");
        let warning = ran.json()["warnings"][0].as_str().unwrap().to_owned();
        assert!(warning.starts_with("errand.kind.yaml:8: "), "{warning}");
    }
    fs::write(fixture.outside("errand.kind.yaml"), KIND).unwrap();
    assert_eq!(fixture.workfs(&init).success().stderr, "");
}

// P8.2
#[test]
fn what_can_hardly_go_on_by_the_clock_init_and_doctor_warn_of() {
    let fixture = Setup::default().prepare();
    let taken = "{ dirs: ['by/{owner}'], status: [taken, lost],
    lease: { ttl: 4h, on_expiry: open },
    retries: { attempts: 3, first: 1m, longest: 1h, exhausted: shut } }";
    let kind = KIND.replace("{ dirs: ['by/{owner}'], status: [taken, lost] }", taken);
    let (kind, schema) =
        (kind.replace("[taken, lost]", "[taken]"), SCHEMA.replace("\"lost\"", "\"lost\", \"odd\""));
    fs::write(fixture.outside("errand.kind.yaml"), &kind).unwrap();
    fs::write(fixture.outside("errand.v1.json"), schema).unwrap();
    let layout = fixture.outside("layout.yaml");
    fs::write(&layout, "kinds: [{ file: errand.kind.yaml }]\nworkspaces: []\n").unwrap();
    let init = ["init", "--layout", layout.to_str().unwrap()];
    let told = fixture.workfs(&init).success().stderr;
    let spent = "errand.kind.yaml:9: `exhausted: shut` leads where `note` is required";
    let odd = "errand.kind.yaml:5: no state takes the status `lost`, `odd`";
    assert!(told.contains(spent) && told.contains(odd), "{told}");
    let seen = fixture.workfs(&["doctor"]).said();
    assert!(seen.contains("leads where `note` is required"), "{seen}");
    assert!(seen.contains("no state takes the status `lost`, `odd`"), "{seen}");
    // Where it is asked for before, all of it can happen.
    let asks = kind.replace("initial: true", "initial: true, requires: [note]");
    fs::write(fixture.outside("errand.kind.yaml"), asks).unwrap();
    let told = fixture.workfs(&init).success().stderr;
    assert!(!told.contains("exhausted"), "{told}");
}

// P8.2
#[test]
fn what_can_never_work_in_a_layout_is_refused_with_its_place() {
    let fixture = Setup::default().prepare();
    let layout = fixture.outside("layout.yaml");
    let init = ["init", "--layout", layout.to_str().unwrap()];
    let plain = "kinds: [{ file: errand.kind.yaml }]\nworkspaces: [{ path: w, kind: errand }]\n";
    let check = "workspaces: []\nschemas: [{ name: odd, file: odd.json }]\n";
    let number = SCHEMA.replace("[\"string\", \"null\"]", "\"integer\"");
    let nowhere = SCHEMA.replace("{\"type\": \"object\"}", "{\"$ref\": \"#/$defs/none\"}");
    fs::write(fixture.outside("odd.json"), "{\n \"type\": \"object\",\n \"type\": \"array\" }")
        .unwrap();
    let cases = [
        (plain, KIND, &number, "errand.kind.yaml: the schema takes no text as `who`", 4),
        (
            plain,
            KIND,
            &nowhere,
            "errand.v1.json: not a JSON Schema 2020-12: at `/properties/trouble/$ref`",
            3,
        ),
        (
            check,
            KIND,
            &SCHEMA.to_owned(),
            "the schema `odd`: odd.json:3: the key `type` is there twice",
            2,
        ),
    ];
    for (text, kind, schema, said, line) in cases {
        fs::write(&layout, text).unwrap();
        fs::write(fixture.outside("errand.kind.yaml"), kind).unwrap();
        fs::write(fixture.outside("errand.v1.json"), schema).unwrap();
        let ran = fixture.workfs(&init).failure();
        assert!(ran.code == 2 && ran.stderr.contains(said), "{said}: {ran}");
        assert!(ran.stderr.contains(&format!("(line {line})")), "{said}: {ran}");
    }
    // What can be meant is only told of.
    let hands_over =
        "chores: { handoff: { state: shut, agent: trouble.next, previous: trouble.of } }\n";
    let handoff =
        format!("{KIND}{hands_over}").replace("initial: true", "initial: true, requires: [note]");
    for (kind, is_told) in
        [(handoff.replace("of }", "of, copy: { note: note } }"), false), (handoff, true)]
    {
        fs::write(&layout, plain).unwrap();
        fs::write(fixture.outside("errand.kind.yaml"), kind).unwrap();
        fs::write(fixture.outside("errand.v1.json"), SCHEMA).unwrap();
        let ran = fixture.workfs(&[&init[..], &["--dry-run"]].concat()).success();
        let said = "`handoff` can never make a record: `open` requires `note`";
        assert_eq!(ran.stderr.contains(said), is_told, "{ran}");
    }
}

// P9.9
#[test]
fn whatever_gives_an_owner_is_a_claim_for_every_way_to_claim() {
    let fixture = errands(&KIND.replace("event: claimed", "event: begun"));
    for id in ["e-4", "e-5"] {
        let text = format!("id: {id}\nstatus: open\n");
        fs::write(fixture.path(&format!("errands/open/{id}.yaml")), text).unwrap();
    }
    let ran = fixture.workfs(&["claim", "e-5", "--agent", "ann"]).success();
    assert_eq!(ran.stdout, "errands/by/ann/e-5.yaml\n");
    let ran = fixture.workfs(&["claim", "--agent", "ann"]).success();
    assert_eq!(ran.stdout, "errands/by/ann/e-4.yaml\n");
    assert_eq!(fixture.ledger().names("e-4"), ["created", "begun"]);
    let guide = fs::read_to_string(fixture.path("AGENTS.md")).unwrap();
    assert!(guide.contains("`mv errands/ready/.next errands/by/YOU/`"), "{guide}");
}

// P8.2
#[test]
fn the_commands_do_what_a_kind_says() {
    let fixture = errands(&format!("{KIND}{COMMANDS}"));
    fixture.workfs(&["done", "e-1", "--summary", "was easy"]).success();
    let text = fs::read_to_string(fixture.path("errands/shut/ann/e-1.yaml")).unwrap();
    assert!(text.contains("note: was easy\n") && text.contains("status: shut\n"), "{text}");
    let again = fixture.workfs(&["done", "e-1", "--agent", "ann"]).failure();
    assert!(again.code == 5 && again.stderr.contains("there is nothing to do"), "{again}");
    assert!(!again.stderr.contains("W002"), "no name is taken: {again}");
    fixture.workfs(&["fail", "e-2", "--message", "no way"]).success();
    let text = fs::read_to_string(fixture.path("errands/by/ann/e-2.yaml")).unwrap();
    assert!(text.contains("why: \"no way\"\n") && text.contains("status: lost\n"), "{text}");
    fixture.workfs(&["release", "e-3"]).success();
    let text = fs::read_to_string(fixture.path("errands/open/e-3.yaml")).unwrap();
    assert!(text.contains("status: open\n"), "{text}");
    assert_eq!(fixture.ledger().names("e-3"), ["created", "claimed", "left"]);
}

// P8.2
#[test]
fn what_a_kind_does_not_say_a_command_refuses() {
    let fixture = errands(KIND);
    for command in [&["done", "e-1"][..], &["fail", "e-1", "--message", "no way"]] {
        let ran = fixture.workfs(command).failure();
        assert_eq!(ran.code, 6, "{ran}");
        let says = |word: &str| ran.stderr.contains(word);
        assert!(says("errand") && says(command[0]) && says("commands"), "{ran}");
    }
    let without = format!("{KIND}commands:\n  done: {{ to: shut }}\n");
    let fixture = errands(&format!("{without}  fail: {{ status: lost }}\n"));
    for command in
        [["done", "e-1", "--summary", "was easy"], ["fail", "e-1", "--message", "no way"]]
    {
        let ran = fixture.workfs(&command).failure();
        assert!(ran.code == 2 && ran.stderr.contains("leave it out"), "{ran}");
    }
    assert_eq!(fixture.ledger().names("e-1").len(), 2);
    fixture.workfs(&["fail", "e-1"]).success();
    let text = fs::read_to_string(fixture.path("errands/by/ann/e-1.yaml")).unwrap();
    assert!(text.contains("status: lost\n"), "{text}");
    // Where there is a field for it, it is wanted.
    let fixture = errands(&format!("{KIND}{COMMANDS}"));
    let ran = fixture.workfs(&["fail", "e-1"]).failure();
    assert!(ran.code == 2 && ran.stderr.contains("`trouble.why`"), "{ran}");
    assert!(ran.stderr.contains("--message TEXT"), "{ran}");
    assert_eq!(fixture.ledger().names("e-1").len(), 2);
}

/// A kind whose files end in `.bug`, and whose fields have names of their own.
const BUG: &str = "kind: bug
schema: bug.v1.json
extensions: [bug, yaml]
fields: { id: id, status: status }
order: { dir: ready, not_before: wakeup, done: { shut: any } }
states:
  new: { dirs: [new], status: [open], initial: true }
  shut: { dirs: [shut], status: [shut] }
transitions:
  - { from: new, to: shut, event: ended, by: [agent, operator] }
";

const BUG_SCHEMA: &str = r#"{"type": "object", "properties": {"id": {"type": "string"},
    "status": {"enum": ["open", "shut"]}, "wakeup": {"type": "string"}}}"#;

fn bugs(workspace: &str) -> Fixture {
    let fixture = Setup::default().prepare();
    fixture.init_with_kind((BUG, BUG_SCHEMA), workspace);
    fixture.mount_at(fixture.root()).success();
    fixture
}

// P11.3
#[test]
fn the_way_to_what_a_gone_record_was_names_the_file_that_is_there() {
    let fixture = bugs("{ path: bugs, kind: bug }");
    fs::write(fixture.path("bugs/new/d-1.bug"), "title: x\n").unwrap();
    let made = fixture.ledger().last_g().to_string();
    fs::remove_file(fixture.path("bugs/new/d-1.bug")).unwrap();
    let ran = fixture.workfs(&["restore", "d-1", "--at", &made]).failure();
    let (_, way) = ran.stderr.split_once("cp ").unwrap_or_else(|| panic!("{ran}"));
    fixture.sh(&format!("cp {}", way.trim().replace("DIRECTORY", "new"))).success();
    assert_eq!(fs::read_to_string(fixture.path("bugs/new/d-1.bug")).unwrap(), "title: x\n");
    assert_eq!(fixture.ledger().names("d-1"), ["created", "removed", "created"]);
}

// P9.6
#[test]
fn what_is_no_time_is_told_of_by_its_own_field() {
    let fixture = bugs("{ path: bugs, kind: bug }");
    fs::write(fixture.path("bugs/new/d-1.bug"), "wakeup: soon\n").unwrap();
    let why = fs::read_to_string(fixture.path("bugs/new/d-1.bug.why")).unwrap();
    let ready = fixture.workfs(&["ready", "--explain"]).stdout;
    for told in [why, ready] {
        assert!(told.contains("its `wakeup` is no time"), "{told}");
    }
}

// P8.2
#[test]
fn the_events_of_a_draft_that_is_gone_are_told_by_its_path() {
    let fixture = bugs("{ path: bugs, kind: bug }");
    for (id, leave) in [("d-1", "rm bugs/new/d-1.bug"), ("d-2", "mv bugs/new/d-2.bug out")] {
        let path = format!("bugs/new/{id}.bug");
        assert!(fs::write(fixture.path(&path), "status: none\n").is_err());
        fixture.sh(leave).success();
        let ran = fixture.workfs(&["log", &path]).success();
        assert!(ran.stdout.contains("drafted") && ran.stdout.contains(&path), "{ran}");
    }
    // One that never was is no more there than any other path.
    for path in ["bugs/new/d-3.bug", "bugs/new/d-1.txt", "bugs/d-1.bug"] {
        let ran = fixture.workfs(&["log", path]).failure();
        assert_eq!(ran.code, 4, "{ran}");
    }
}

// P8.2
#[test]
fn what_happened_in_a_governed_directory_that_is_gone_is_told_by_its_path() {
    let fixture = Setup::default().start();
    fixture.task("inbox", &Task::new("t-1"));
    let lane = "mkdir work/assigned/zoe && mv work/inbox/t-1.yaml work/assigned/zoe/ &&
                rm work/assigned/zoe/t-1.yaml && rmdir work/assigned/zoe";
    fixture.sh(lane).success();
    let events = |path: &str| {
        let ran = fixture.workfs(&["log", path, "--json"]).success();
        let event = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
        ran.stdout.lines().map(|line| event(line)["event"].as_str().unwrap().to_owned()).collect()
    };
    let in_lane: Vec<String> = events("work/assigned/zoe");
    assert_eq!(in_lane, ["registered", "claimed", "removed"]);
    fixture.sh("rm -r work").success();
    let inbox: Vec<String> = events("work/inbox");
    assert!(inbox.contains(&"created".to_owned()), "{inbox:?}");
    let all: Vec<String> = events("work");
    assert!(all.len() > inbox.len() && all.contains(&"claimed".to_owned()), "{all:?}");
    // One that never was, and one that is none of its workspace's.
    for path in ["work/assigned/eve", "work/nothing", "nothing"] {
        assert_eq!(fixture.workfs(&["log", path]).failure().code, 4, "{path}");
    }
}

// P8.2
#[test]
fn a_workspace_that_was_removed_is_none() {
    let fixture = bugs("{ path: 'teams/*/bugs', kind: bug }");
    fixture.sh("mkdir -p teams/{a,b}/bugs/new && rm -r teams/b").success();
    for command in [&["ready", "teams/b/bugs"][..], &["list", "teams/b/bugs"]] {
        let ran = fixture.workfs(command).failure();
        assert!(ran.code == 4 && ran.stderr.contains("no workspace any more"), "{ran}");
        assert!(ran.stderr.contains("there are teams/a/bugs\n"), "{ran}");
    }
    let next = ["claim", "--next", "--agent", "ann", "--workspace", "teams/b/bugs"];
    assert_eq!(fixture.workfs(&next).code, 4);
    assert_eq!(fixture.workfs(&["ready"]).code, 3);
    // It is the same when it comes back.
    fixture.sh("mkdir -p teams/b/bugs/new && echo 'title: x' > teams/b/bugs/new/d-1.bug").success();
    fixture.workfs(&["ready", "teams/b/bugs"]).success();
}

// P8.5
#[test]
fn a_layout_that_would_leave_records_with_an_owner_and_no_lane_is_refused() {
    let fixture = errands(KIND);
    fixture.unmount_all();
    let (kind, layout) = (fixture.outside("errand.kind.yaml"), fixture.outside("layout.yaml"));
    let set = |text: &str| {
        fs::write(&kind, text).unwrap();
        fixture.workfs(&["init", "--layout", layout.to_str().unwrap()])
    };
    let open = KIND.replace("['by/{owner}']", "[by, 'by/{any}']");
    let ran = set(&open).failure();
    assert!(ran.code == 5 && ran.stderr.contains(": errands/by/ann (3)"), "{ran}");
    set(KIND).success();
    fixture.mount_all();
    fixture.sh("for e in 1 2 3; do mv errands/by/ann/e-$e.yaml errands/open/; done").success();
    fixture.unmount_all();
    set(&open).success();
    fixture.mount_all();
    // And back: nobody has what lies there.
    fixture.sh("mv errands/open/e-1.yaml errands/by/ann/").success();
    fixture.unmount_all();
    let ran = set(KIND).failure();
    assert!(ran.code == 5 && ran.stderr.contains(": errands/by/ann (1)"), "{ran}");
    fixture.mount_all();
    fixture.fsck_clean();
}
