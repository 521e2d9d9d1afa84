//! `AGENTS.md`: what it tells can be done as it is told, by whoever reads it there.

use std::fs;
use std::path::Path;

use crate::harness::{Fixture, Ran, Setup, run, until_polled};

const SCHEMA: &str = r#"{"type": "object", "properties": {"id": {"type": "string"},
    "who": {"type": ["string", "null"]}, "at": {"enum": ["open", "begun", "going", "shut"]},
    "cost": {"type": "number"}, "says": {"type": "object", "properties": {
        "all": {"type": "array", "items": {"type": "string"}}}}}}"#;

const KIND: &str = "kind: job
schema: job.v1.json
extensions: [yaml]
fields: { id: id, status: at, owner: who }
states:
  open: { dirs: [open], status: [open], initial: true }
  begun:
    dirs: ['by/{owner}']
    status: [begun, going]
    moves: [{ from: begun, to: going }]
    lease: { ttl: 3s, on_expiry: open }
  shut: { dirs: ['shut/{yyyy-mm}'], status: [shut], requires: [cost, says.all] }
transitions:
  - { from: open, to: begun, event: claimed, by: [agent, operator] }
  - { from: begun, to: open, event: left, by: [agent, operator] }
  - { from: begun, to: shut, event: ended, by: [agent, operator] }
";

/// A store whose `jobs/` holds records of that kind, with bob's mount.
fn jobs(kind: &str) -> Fixture {
    let fixture = Setup::default().prepare();
    fixture.init_with_kind((kind, SCHEMA), "{ path: jobs, kind: job }");
    let bob = fixture.root().to_str().unwrap();
    fixture.workfs(&["mount", bob, "--agent", "bob"]).success();
    fixture
}

fn guide(mount: &Path) -> String {
    let text = fs::read_to_string(mount.join("AGENTS.md")).unwrap();
    assert!(text.lines().count() <= 60, "{text}");
    text
}

/// Runs the script that is told, as it is told.
fn run_script(fixture: &Fixture) -> Ran {
    let text = guide(fixture.root());
    let script = text.split("```sh\n").nth(1).unwrap().split("```").next().unwrap().to_owned();
    run(std::process::Command::new("sh").args(["-c", &script]).current_dir(fixture.root()))
}

fn finished(fixture: &Fixture, name: &str) -> String {
    let month = fs::read_dir(fixture.path("jobs/shut")).unwrap().next().unwrap().unwrap();
    fs::read_to_string(month.path().join(name)).unwrap()
}

// P7.5
#[test]
fn the_script_fits_the_form_of_the_records_and_the_types_of_their_fields() {
    let fixture = jobs(KIND);
    fs::write(fixture.path("jobs/open/a.yaml"), "id: a\ntitle: x").unwrap();
    run_script(&fixture).success();
    let text = finished(&fixture, "a.yaml");
    assert!(text.contains("\ncost: 41\n") && text.contains("\n  all: [\"Added"), "{text}");
    assert_eq!(fixture.ledger().names("a"), ["created", "claimed", "saved", "saved", "ended"]);

    let fixture = jobs(&KIND.replace("[yaml]", "[json]"));
    fs::write(fixture.path("jobs/open/a.json"), "{\n  \"id\": \"a\"\n}\n").unwrap();
    run_script(&fixture).success();
    let text = finished(&fixture, "a.json");
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(value["cost"] == 41 && value["at"] == "shut" && value["id"] == "a", "{text}");
    assert_eq!(fixture.ledger().names("a"), ["created", "claimed", "saved", "saved", "ended"]);

    // Where it cannot be told what is to be written, that is said, and nothing is pretended.
    let fixture = jobs(&KIND.replace("[yaml]", "[yaml, json]"));
    assert!(guide(fixture.root()).contains("# Here save cost, says.all in \"$f\""));
    fs::write(fixture.path("jobs/open/a.json"), "{\"id\": \"a\"}\n").unwrap();
    let ran = run_script(&fixture).failure();
    assert!(ran.code == 1 && ran.stdout.contains("`cost` is missing"), "{ran}");
    fixture.fsck_clean();
}

// P12.1 P12.6
#[test]
fn a_claim_is_kept_and_given_back_as_it_is_told() {
    let fixture = jobs(KIND);
    let text = guide(fixture.root());
    let told = |text: &str, line: &str| assert!(text.contains(line), "{line} is not in\n{text}");
    told(&text, "no sign of you was seen for 3s: it is then in `jobs/open/`, not yours.");
    told(&text, "Any use of this mount is a sign");
    told(&text, "or your claim has ended (5)");
    told(&text, "`mv jobs/by/bob/X.yaml jobs/open/`");
    fs::write(fixture.path("jobs/open/a.yaml"), "id: a\n").unwrap();
    let take = "mkdir -p jobs/by/bob && mv jobs/open/a.yaml jobs/by/bob/";
    fixture.sh(&format!("{take} && mv jobs/by/bob/a.yaml jobs/open/")).success();
    told(&text, "`exec 9< .workfs/hold/X` keeps it until the shell's end");
    // The shell ends, and with it the claim.
    fixture
        .sh(&format!("{take} && exec 9< .workfs/hold/a && test -e jobs/by/bob/a.yaml"))
        .success();
    until_polled("it is given back", || fixture.path("jobs/open/a.yaml").exists().then_some(()));
    assert_eq!(
        fixture.ledger().names("a"),
        ["created", "claimed", "left", "claimed", "left"],
        "{}",
        fixture.why()
    );
}

// P8.2
#[test]
fn a_store_that_agent_add_made_has_what_agents_are_told_of() {
    let fixture = Setup::default().prepare();
    fixture.workfs(&["agent", "add", "bob"]).success();
    let bob = fixture.root().to_str().unwrap();
    fixture.workfs(&["mount", bob, "--agent", "bob"]).success();
    fs::write(fixture.path("work/inbox/t-1.yaml"), "title: x\n").unwrap();
    run_script(&fixture).success();
    assert!(fixture.path("work/done/bob/t-1.yaml").exists());
}

// P10.4 P6.9
#[test]
fn who_may_only_look_is_told_to_do_nothing_else() {
    let fixture = Setup::default().mounts(3).prepare();
    let mount = |nth: usize, arguments: &[&str]| {
        let dir = fixture.mount(nth).to_str().unwrap();
        fixture.workfs(&[&["mount", dir], arguments].concat()).success();
    };
    mount(0, &[]);
    mount(1, &["--agent", "eve", "--role", "observer"]);
    mount(2, &["--agent", "bob", "-o", "ro"]);
    for (nth, says) in [(1, "You are eve, an observer"), (2, "This mount is read-only")] {
        let text = guide(fixture.mount(nth));
        assert!(text.contains(says), "{text}");
        for lacking in ["mv work", "mkdir", "save", "```sh", "YOU"] {
            assert!(!text.contains(lacking), "{lacking}:\n{text}");
        }
        fs::read_dir(fixture.mount(nth).join("work/ready")).unwrap();
        fs::read(fixture.mount(nth).join(".workfs/leases")).unwrap();
        fs::read_dir(fixture.mount(nth).join(".workfs/history")).unwrap();
    }
    assert!(guide(fixture.mount(1)).contains("EACCES"));
    fs::create_dir(fixture.mount(1).join("x")).unwrap_err();
    assert!(guide(fixture.mount(2)).contains("EROFS"));
    // Who is no agent any more is told the same.
    fixture.workfs(&["agent", "add", "eve", "--role", "agent"]).success();
    until_polled("eve may work", || guide(fixture.mount(1)).contains("you are eve").then_some(()));
    fixture.workfs(&["agent", "remove", "eve"]).success();
    until_polled("eve may not", || {
        guide(fixture.mount(1)).contains("You are eve, an observer").then_some(())
    });
}
