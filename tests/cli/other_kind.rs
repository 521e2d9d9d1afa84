//! A layout whose kind changes while records are there: what their texts mean by it counts for them.

use std::fs;

use crate::harness::{Fixture, Ran, Setup, until_polled};

const SCHEMA: &str = r#"{"type": "object", "properties": {"id": {"type": "string"},
    "who": {"type": ["string", "null"]}, "status": {"enum": ["open", "taken", "shut"]},
    "title": {"type": "string"}, "needs": {"type": "array"}, "waits_for": {"type": "array"}}}"#;

/// A kind whose claims have this lease, and that waits for what is in this field.
fn kind(lease: &str, after: &str) -> String {
    let lease = match lease {
        "" => String::new(),
        ttl => format!(", lease: {{ ttl: {ttl}, on_expiry: open }}"),
    };
    format!(
        "kind: errand
schema: errand.v1.json
extensions: [yaml]
fields: {{ id: id, status: status, owner: who }}
order: {{ dir: ready, after: [{after}], done: {{ shut: any }} }}
states:
  open: {{ dirs: [open], status: [open], initial: true }}
  taken: {{ dirs: ['by/{{owner}}'], status: [taken]{lease} }}
  shut: {{ dirs: [shut], status: [shut] }}
transitions:
  - {{ from: open, to: taken, event: claimed, by: [agent, operator] }}
  - {{ from: taken, to: open, event: left, by: [agent, operator] }}
  - {{ from: taken, to: shut, event: ended, by: [agent, operator] }}
"
    )
}

/// Another kind for what is there.
fn change(fixture: &Fixture, kind: &str) {
    fixture.unmount_all();
    set_up(fixture, kind);
}

fn set_up(fixture: &Fixture, kind: &str) {
    fixture.init_with_kind((kind, SCHEMA), "{ path: errands, kind: errand }");
    fixture.mount_at(fixture.root()).success();
}

fn errands(kind: &str, texts: &[(&str, &str)]) -> Fixture {
    let fixture = Setup::default().prepare();
    set_up(&fixture, kind);
    for (id, more) in texts {
        let path = fixture.path(&format!("errands/open/{id}.yaml"));
        fs::write(path, format!("id: {id}\nstatus: open\n{more}")).unwrap();
    }
    fixture
}

fn leases(fixture: &Fixture) -> String {
    fs::read_to_string(fixture.path(".workfs/leases")).unwrap()
}

fn ready(fixture: &Fixture) -> Vec<String> {
    let names = fs::read_dir(fixture.path("errands/ready")).unwrap();
    let mut names: Vec<String> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

// P12.1 P12.7
#[test]
fn who_has_a_record_has_a_lease_of_it_when_its_kind_comes_to_give_one() {
    let fixture = errands(&kind("4h", ""), &[("e-1", ""), ("e-2", "")]);
    fixture.workfs(&["claim", "e-1", "--agent", "ann"]).success();
    assert!(leases(&fixture).contains("ann attempt 1 errands/by/ann/e-1.yaml"));
    change(&fixture, &kind("", ""));
    assert_eq!(leases(&fixture), "nobody has a lease\n");
    fixture.workfs(&["claim", "e-2", "--agent", "ann"]).success();
    let events = fixture.ledger().0.len();
    change(&fixture, &kind("4h", ""));
    for id in ["e-1", "e-2"] {
        let lease = format!("ann attempt 1 errands/by/ann/{id}.yaml");
        assert!(leases(&fixture).contains(&lease), "{}", leases(&fixture));
        fixture.workfs(&["heartbeat", id, "--agent", "ann"]).success();
    }
    assert_eq!(fixture.ledger().0.len(), events, "it is no event of a record");
    // One that runs is no longer for it, nor shorter.
    change(&fixture, &kind("1s", ""));
    assert!(leases(&fixture).contains("ann attempt 1"), "{}", leases(&fixture));
    change(&fixture, &kind("", ""));
    change(&fixture, &kind("1s", ""));
    for id in ["e-1", "e-2"] {
        let back = fixture.path(&format!("errands/open/{id}.yaml"));
        until_polled("nobody is heard of", || back.exists().then_some(()));
        assert_eq!(fixture.ledger().names(id).last(), Some(&"expired"));
    }
    fixture.fsck_clean();
}

// P12.1 P12.2
#[test]
fn who_was_only_told_of_a_lease_s_end_has_one_again_by_a_kind_that_takes_records_back() {
    let tells = kind("1s", "").replace("on_expiry: open", "on_expiry: event");
    let fixture = errands(&tells, &[("e-1", "")]);
    fixture.workfs(&["claim", "e-1", "--agent", "ann"]).success();
    let is_told = || fixture.ledger().names("e-1").contains(&"expired").then_some(());
    until_polled("nobody is heard of", is_told);
    // Told of it once is enough by a kind that does no more.
    change(&fixture, &tells.replace("1s", "2s"));
    assert!(leases(&fixture).contains("over ann's lease of errands/by/ann/e-1.yaml"));
    change(&fixture, &kind("1s", ""));
    let back = fixture.path("errands/open/e-1.yaml");
    until_polled("nobody is heard of", || back.exists().then_some(()));
    fixture.fsck_clean();
}

const TEXTS: [(&str, &str); 4] =
    [("a", "needs: [b]\n"), ("b", ""), ("c", "waits_for: [d]\n"), ("d", "")];

// P9.1
#[test]
fn what_waits_for_what_is_said_by_the_fields_of_the_present_kind() {
    let (old, new) = (kind("", "needs"), kind("", "waits_for"));
    let fixture = errands(&old, &TEXTS);
    assert_eq!(ready(&fixture), ["b.yaml", "c.yaml", "d.yaml"]);
    change(&fixture, &new);
    assert_eq!(ready(&fixture), ["a.yaml", "b.yaml", "d.yaml"]);
    let why = fs::read_to_string(fixture.path("errands/open/c.yaml.why")).unwrap();
    assert!(why.contains("it waits for `d` (in open)"), "{why}");
    // What was done by then makes ready.
    fixture.workfs(&["claim", "d", "--agent", "ann"]).success();
    fs::rename(fixture.path("errands/by/ann/d.yaml"), fixture.path("errands/shut/d.yaml")).unwrap();
    assert_eq!(ready(&fixture), ["a.yaml", "b.yaml", "c.yaml"]);
    fixture.fsck_clean();
}

// P9.1
#[test]
fn in_which_states_a_record_is_done_is_said_by_the_present_kind() {
    let old = kind("", "needs");
    let new = old.replace("done: { shut: any }", "done: { taken: [taken] }");
    assert_ne!(old, new);
    let texts = [("a", "needs: [b]\n"), ("b", ""), ("c", "needs: [d]\n"), ("d", "")];
    let fixture = errands(&old, &texts);
    fixture.sh("mkdir errands/by/ann && mv errands/open/[bd].yaml errands/by/ann/").success();
    fixture.sh("mv errands/by/ann/d.yaml errands/shut/").success();
    assert_eq!(ready(&fixture), ["c.yaml"]);
    for (kind, wanted) in [(&new, "a.yaml"), (&old, "c.yaml")] {
        change(&fixture, kind);
        assert_eq!(ready(&fixture), [wanted]);
        let listed = fixture.workfs(&["ready"]).success().stdout;
        assert_eq!(listed.lines().collect::<Vec<_>>(), [format!("errands/open/{wanted}")]);
    }
    // What is counted so goes on from there.
    change(&fixture, &new);
    fixture.sh("mv errands/by/ann/b.yaml errands/open/").success();
    assert_eq!(ready(&fixture), ["b.yaml"]);
    fixture.fsck_clean();
}

// P9.1 P9.6 P9.7
#[test]
fn a_text_that_lacks_what_a_claim_requires_is_ready_nowhere() {
    let kind = kind("", "needs").replace("status: [taken]", "status: [taken], requires: [title]");
    let fixture = errands(&kind, &[("a", ""), ("b", "title: b\n")]);
    fixture.sh("mkdir errands/by/ann").success();
    let next = || fixture.sh("mv errands/ready/.next errands/by/ann/");
    let wait = || fs::read_to_string(fixture.path("errands/ready/.wait")).unwrap();
    assert_eq!(ready(&fixture), ["b.yaml"]);
    next().success();
    assert!(fixture.path("errands/by/ann/b.yaml").exists());
    assert_eq!((ready(&fixture), wait()), (Vec::new(), String::new()));
    let ran = next().failure();
    assert!(ran.stderr.contains("No such file or directory"), "{ran}");
    for command in [&["ready"][..], &["claim", "--next", "--agent", "ann"]] {
        assert_eq!(fixture.workfs(command).code, 3, "{command:?}");
    }
    let why = fs::read_to_string(fixture.path("errands/open/a.yaml.why")).unwrap();
    assert!(why.contains("ready:  no; `title` is missing or empty"), "{why}");
    // A text that has it makes the record ready, one that has it no more does not.
    let write = |more: &str| {
        fs::write(fixture.path("errands/open/a.yaml"), format!("id: a\nstatus: open\n{more}"))
            .unwrap();
    };
    write("title: a\n");
    assert_eq!((ready(&fixture), wait()), (vec!["a.yaml".to_owned()], "a.yaml\n".to_owned()));
    write("");
    assert_eq!((ready(&fixture), wait()), (Vec::new(), String::new()));
    fixture.fsck_clean();
}

// P9.7
#[test]
fn that_what_is_waited_for_is_a_draft_is_told() {
    let fixture = errands(&kind("", "needs"), &[("a", "needs: [b, c]\n")]);
    assert!(fs::write(fixture.path("errands/open/b.yaml"), "status: none\n").is_err());
    let why = fs::read_to_string(fixture.path("errands/open/a.yaml.why")).unwrap();
    assert!(why.contains("`b` (a draft, and no record yet)"), "{why}");
    assert!(why.contains("`c` (there is no such record)"), "{why}");
}

// P9.1 P9.4
#[test]
fn what_would_wait_for_itself_by_the_new_kind_is_named_and_waits_as_before() {
    let texts = [("a", "needs: [b]\n"), ("b", "waits_for: [a]\n")];
    let fixture = errands(&kind("", "needs"), &texts);
    fixture.unmount_all();
    fs::write(fixture.outside("errand.kind.yaml"), kind("", "needs, waits_for")).unwrap();
    let layout = fixture.outside("layout.yaml");
    let ran = fixture.workfs(&["init", "--layout", layout.to_str().unwrap()]).failure();
    assert_eq!(ran.code, 11, "{ran}");
    assert!(ran.stdout.contains("errands/open/b.yaml: `b` would wait for itself"), "{ran}");
    fixture.mount_at(fixture.root()).success();
    assert_eq!(ready(&fixture), ["b.yaml"]);
    fixture.fsck_clean();
}

// P9.1 P9.4
#[test]
fn what_is_waited_for_by_the_old_kind_alone_closes_no_circle() {
    // The old edges are there yet when the first of them is made anew.
    let texts =
        [("a", "waits_for: [b]\n"), ("b", "waits_for: [c]\nneeds: [a]\n"), ("c", "needs: [b]\n")];
    let fixture = errands(&kind("", "needs"), &texts);
    assert_eq!(ready(&fixture), ["a.yaml"]);
    change(&fixture, &kind("", "waits_for"));
    assert_eq!(ready(&fixture), ["c.yaml"]);
    fixture.fsck_clean();
}

// P4.2 P9.1
#[test]
fn a_change_of_the_kind_that_is_killed_is_gone_on_with_by_whoever_opens_the_store() {
    let (old, new) = (kind("", "needs"), kind("", "waits_for"));
    let mut fixture = errands(&old, &TEXTS);
    let mut killed = 0;
    for nth in 1..=4 {
        change(&fixture, &old);
        fixture.unmount_all();
        fs::write(fixture.outside("errand.kind.yaml"), &new).unwrap();
        let layout = fixture.outside("layout.yaml");
        fixture.set_variable("WORKFS_FAULT", Some(&format!("after-commit:{nth}")));
        let ran = fixture.workfs(&["init", "--layout", layout.to_str().unwrap()]);
        fixture.set_variable("WORKFS_FAULT", None);
        killed += usize::from(ran.code != 0);
        fixture.mount_at(fixture.root()).success();
        assert_eq!(ready(&fixture), ["a.yaml", "b.yaml", "d.yaml"], "{nth}: {ran}");
    }
    assert!(killed > 1, "{killed}");
    fixture.fsck_clean();
}

/// Sets a layout of this text for a store that is not mounted.
fn init(fixture: &Fixture, workspace: &str, more: &[&str]) -> Ran {
    let layout = fixture.outside("layout.yaml");
    let text = format!("kinds: [{{ file: errand.kind.yaml }}]\nworkspaces: [{workspace}]\n");
    fs::write(&layout, text).unwrap();
    fixture.workfs(&[&["init", "--layout", layout.to_str().unwrap()], more].concat())
}

// P3.1 P9.1
#[test]
fn a_backup_that_a_new_schema_does_not_take_is_mended_itself() {
    let fixture = errands(&kind("", "needs"), &[("e-1", "title: x\n")]);
    fixture.sh("cd errands/open; mv e-1.yaml e-1.yaml~").success();
    fixture.unmount_all();
    let schema = SCHEMA.replace(r#""title": {"type": "string"}"#, r#""title": {"type": "number"}"#);
    fs::write(fixture.outside("errand.v1.json"), schema).unwrap();
    let ran = init(&fixture, "{ path: errands, kind: errand }", &[]).success();
    assert!(ran.stderr.contains("errands/open/e-1.yaml~ (`title` is text"), "{ran}");
    fixture.mount_at(fixture.root()).success();
    let why = fixture.workfs(&["why", "e-1"]).success().stdout;
    assert!(why.contains("errands/open/e-1.yaml~\n"), "{why}");
    fixture.sh("cd errands/open; mv e-1.yaml~ e-1.yaml").failure();
    let why = fixture.workfs(&["why"]).success().stdout;
    assert!(why.contains("do it in the backup, and write into that file"), "{why}");
    assert!(!why.contains("first"), "{why}");
    // A backup that could not come back for what it says now is mended the same way.
    let waiting = "printf 'id: e-1\\nneeds: [e-1]\\n' >e-1.yaml~";
    let huge = "head -c 1100000 /dev/zero | tr '\\0' '#' >e-1.yaml~";
    for (text, rule) in [(waiting, "W016"), (huge, "W008"), ("echo 'title: \"' >e-1.yaml~", "")] {
        fixture.sh(&format!("cd errands/open; {text}; mv e-1.yaml~ e-1.yaml")).failure();
        let why = fixture.workfs(&["why", "--limit", "1"]).success().stdout;
        assert!(why.contains(rule) && why.contains("do it in the backup"), "{why}");
        assert!(!why.contains("first") && !why.contains(".;"), "{why}");
    }
    let mend = "printf 'id: e-1\\nstatus: open\\ntitle: 7\\n' >e-1.yaml~; mv e-1.yaml~ e-1.yaml";
    fixture.sh(&format!("cd errands/open; {mend}")).success();
    assert!(!fixture.ledger().names("e-1").contains(&"removed"));
    fixture.fsck_clean();
}

// P9.1
#[test]
fn a_workspace_is_told_to_be_of_the_kind_that_it_is_bound_to() {
    let fixture = errands(&kind("", ""), &[("e-1", "")]);
    fixture.unmount_all();
    let other = kind("", "").replace("kind: errand", "kind: job");
    fs::write(fixture.outside("errand.kind.yaml"), other).unwrap();
    init(&fixture, "{ path: errands, kind: job }", &[]).success();
    fixture.mount_at(fixture.root()).success();
    let status = fixture.workfs(&["status"]).success().stdout;
    assert!(status.contains("errands/ (job): "), "{status}");
    let status = fs::read_to_string(fixture.path(".workfs/status")).unwrap();
    assert!(status.contains("errands (job):\n"), "{status}");
    fixture.fsck_clean();
}

const STRICT: &str = "strict: [title]\n";

// P9.1
#[test]
fn what_a_stricter_layout_would_not_take_is_told_of_and_stays() {
    let old = format!("{}{STRICT}", kind("", ""));
    let fixture = errands(&old, &[("e-1", ""), ("e-2", "title: x\n"), ("e-3", "")]);
    fixture.unmount_all();
    let strict = "{ path: errands, kind: errand, strict: true }";
    let named = "2: errands/open/e-1.yaml (`title` is missing";
    for more in [&["--dry-run"][..], &[]] {
        let ran = init(&fixture, strict, more).success();
        assert!(ran.stderr.contains("warning: ") && ran.stderr.contains(named), "{ran}");
        let ran = init(&fixture, strict, &[more, &["--json"]].concat()).success();
        let misfits = &ran.json()["misfits"];
        assert_eq!((misfits["count"].as_u64(), ran.stderr.as_str()), (Some(2), ""), "{ran}");
        assert_eq!(misfits["listed"][1]["path"], "errands/open/e-3.yaml", "{ran}");
    }
    let doctor = fixture.workfs(&["doctor"]).success();
    assert!(doctor.stdout.contains(named), "{doctor}");
    fixture.mount_at(fixture.root()).success();
    let ran = init(&fixture, strict, &["--dry-run"]).success();
    assert!(ran.stderr.contains("the records in the store were not looked at"), "{ran}");
    let by_file = fs::read_to_string(fixture.path("errands/open/e-1.yaml.why")).unwrap();
    for why in [by_file, fixture.workfs(&["why", "e-1"]).success().stdout] {
        assert!(why.contains("no text of it can be saved before this is mended: `title`"), "{why}");
    }
    fixture.sh("echo 'title: y' >> errands/open/e-1.yaml").success();
    let mended = fixture.workfs(&["why", "e-1"]).success().stdout;
    assert!(!mended.contains("mended"), "{mended}");
    fixture.unmount_all();
    init(&fixture, "{ path: errands, kind: errand, strict: true, policy: flag }", &[]).success();
    fixture.mount_at(fixture.root()).success();
    let why = fixture.workfs(&["why", "e-3"]).success().stdout;
    assert!(why.contains("its next text is flagged unless this is mended: `title`"), "{why}");
}

// P9.1
#[test]
fn what_a_new_schema_would_not_take_is_told_of() {
    let fixture = errands(&kind("", ""), &[("e-1", ""), ("e-2", "")]);
    fixture.unmount_all();
    let schema = SCHEMA.replacen('{', r#"{"required": ["team"], "#, 1);
    fs::write(fixture.outside("errand.v1.json"), schema).unwrap();
    let ran = init(&fixture, "{ path: errands, kind: errand }", &[]).success();
    assert!(
        ran.stderr.contains("2: errands/open/e-1.yaml (the record lacks the field `team`"),
        "{ran}"
    );
}

// P3.7
#[test]
fn a_layout_that_has_no_place_for_a_status_is_refused() {
    let both = kind("", "").replace("status: [open]", "status: [open, taken]");
    let fixture = errands(&both, &[("e-1", ""), ("e-2", "")]);
    fixture.sh("sed -i 's/status: open/status: taken/' errands/open/e-2.yaml").success();
    fixture.unmount_all();
    fs::write(fixture.outside("errand.kind.yaml"), kind("", "")).unwrap();
    let workspace = "{ path: errands, kind: errand }";
    for more in [&["--dry-run"][..], &[]] {
        let ran = init(&fixture, workspace, more).failure();
        assert!(ran.code == 5 && ran.stderr.contains(", 1: errands/open/e-2.yaml"), "{ran}");
    }
    // Under a backup's name it is the same.
    fixture.mount_at(fixture.root()).success();
    fixture.sh("cd errands/open; mv e-2.yaml e-2.yaml~").success();
    fixture.unmount_all();
    let ran = init(&fixture, workspace, &[]).failure();
    assert!(ran.code == 5 && ran.stderr.contains(", 1: errands/open/e-2.yaml~"), "{ran}");
    assert!(ran.stderr.contains("give a parked one its name back for that, or mend"), "{ran}");
    fixture.mount_at(fixture.root()).success();
    fixture.sh("printf 'id: e-2\\nstatus: open\\n' >errands/open/e-2.yaml~").success();
    fixture.unmount_all();
    let ran = init(&fixture, workspace, &[]).success();
    assert_eq!(ran.stderr, "");
    fixture.mount_at(fixture.root()).success();
    fixture.fsck_clean();
    fixture.sh("cd errands/open; mv e-2.yaml~ e-2.yaml").success();
    assert!(!fixture.ledger().names("e-2").contains(&"removed"));
    fixture.fsck_clean();
}
