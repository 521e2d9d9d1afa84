//! `AGENTS.md` of kinds of a user's own.

use super::{Config, Reader, agents_md};
use crate::kind::{Kind, Kinds, Role};
use crate::names::{AgentName, TreePath};

const SCHEMA: &str = r#"{"properties": {"id": {}, "who": {}, "note": {}, "tests": {},
    "phase": {"enum": ["todo", "broken", "waiting", "doing", "finished"]}, "trouble": {}}}"#;

const JOB: &str = "kind: job
schema: job.v1.json
extensions: [yaml]
fields: { id: id, status: phase, owner: who }
states:
  queue: { dirs: [queue], status: [todo], initial: true }
  run:
    dirs: ['run/{owner}']
    status: [broken, waiting, todo, doing]
    moves:
      - { from: todo, to: [broken, waiting, doing] }
      - { from: [waiting, doing], to: [waiting, doing, broken] }
      - { from: broken, to: todo, by: [operator] }
  failed: { dirs: ['failed/{owner}'], status: [broken] }
  over: { dirs: ['over/{owner}'], status: [finished], requires: [note.said] }
transitions:
  - { from: queue, to: run, event: claimed, by: [agent, operator] }
  - { from: run, to: failed, event: failed, by: [agent, operator] }
  - { from: run, to: over, event: ended, by: [agent, operator], requires: [note.why, tests] }
";

/// The text for a workspace of that kind.
fn told(definition: &str) -> String {
    told_at("jobs", definition)
}

fn told_at(path: &str, definition: &str) -> String {
    told_of(path, definition, SCHEMA)
}

fn told_with(definition: &str, schema: &str) -> String {
    told_of("jobs", definition, schema)
}

fn told_of(path: &str, definition: &str, schema: &str) -> String {
    let mut kinds = Kinds::default();
    let kind = Kind::load("job.kind.yaml", definition, schema).unwrap();
    kinds.add("job.kind.yaml", kind).unwrap();
    let text = format!("workspaces: [{{ path: \"{path}\", kind: job }}]");
    let config = Config::parse_with("config.yaml", &text, &kinds).unwrap();
    agents_md(&config, &TreePath::root(), Reader::default())
}

#[test]
fn directories_are_called_by_their_names_and_not_by_what_is_shown_of_them() {
    // A backslash, and an accent of its own: what is shown of both has escapes.
    let order = "order: { dir: \"re\\\\ady\" }\n";
    let definition = JOB.replace("['run/{owner}']", "[\"cafe\\u0301/{owner}\"]");
    let text = told_at("-j\u{65}\u{301}", &format!("{definition}{order}"));
    for part in [
        "`mv './-je\u{301}/re\\ady'/.next './-je\u{301}/cafe\u{301}/YOU'/`",
        "ready=\"./-je\u{301}/re\\\\ady\"; lane=\"./-je\u{301}/cafe\u{301}/$me\"",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

fn begins_with(definition: &str, status: Option<&str>) {
    let text = told(definition);
    let line = text.lines().find(|line| line.starts_with("sed -i"));
    let wanted = status.map(|to| format!("s/^phase:.*/phase: {to}/"));
    match (line, wanted) {
        (Some(line), Some(wanted)) => assert!(line.contains(&wanted), "{text}"),
        (None, None) => {}
        (line, wanted) => panic!("{line:?} for {wanted:?}:\n{text}"),
    }
}

#[test]
fn whoever_begins_sets_no_status_of_what_does_not_go_on() {
    let after = |what: &str| JOB.replace("    moves:", &format!("{what}\n    moves:"));
    let with = |more: &str| format!("{JOB}{more}");
    let fail = "commands:\n  fail: { status: broken, text: trouble }\n";
    begins_with(&with(fail), Some("waiting"));
    begins_with(&after("    status_requires: { broken: [trouble] }"), Some("waiting"));
    let lease = "    lease: { ttl: 1h, on_expiry: broken }";
    begins_with(&after(lease), Some("waiting"));
    let stuck = "chores:\n  escalate: { file: L, stuck: [{ state: run, status: [broken, waiting], \
                 after: 1h }] }\n";
    begins_with(&with(stuck), Some("doing"));
    let none = with(stuck).replace("to: [broken, waiting, doing]", "to: [broken, waiting]");
    begins_with(&none, None);
}

#[test]
fn a_status_that_the_lane_has_too_stays_as_it_is() {
    assert!(told(JOB).contains("The `mv` itself writes `who`."), "{}", told(JOB));
    let other = JOB.replace("status: [broken, waiting, todo, doing]", "status: [doing, broken]");
    let (from, to) = (other.find("    moves:").unwrap(), other.find("  failed:").unwrap());
    let other = format!("{}{}", &other[..from], &other[to..]);
    assert!(told(&other).contains("The `mv` itself writes `phase`, `who`."), "{}", told(&other));
}

#[test]
fn a_record_is_finished_where_work_counts_as_done() {
    for more in ["commands:\n  done: { to: over }\n", "order:\n  done: { over: any }\n"] {
        let text = told(&format!("{JOB}{more}"));
        assert!(text.contains("`mv jobs/run/YOU/X.yaml jobs/over/YOU/`"), "{text}");
        assert!(text.contains("save `note.said`, `note.why`, `tests`, then"), "{text}");
        let fields = "note:\n  said: Added the retry; 41 tests pass.\n  \
                      why: Added the retry; 41 tests pass.\n\
                      tests: Added the retry; 41 tests pass.\nEND\n";
        assert!(text.contains(fields), "{text}");
    }
    let text = told(&format!("{JOB}commands:\n  fail: {{ to: failed }}\n"));
    assert!(text.contains("finished=\"jobs/over/$me\""), "{text}");
}

#[test]
fn where_no_agent_claims_nothing_is_told_of_claims() {
    for definition in [
        JOB.replace("event: claimed, by: [agent, operator]", "event: claimed, by: [operator]"),
        JOB.replace("run/{owner}", "run").replace("event: claimed", "event: taken"),
    ] {
        let text = told(&definition);
        assert!(!text.contains(".next") && text.contains("`jobs` (job): `queue/`"), "{text}");
        assert!(text.contains("`.workfs/kinds/`") && !text.contains("No directory"), "{text}");
    }
}

#[test]
fn where_nothing_is_a_workspace_it_is_told_where_refusals_are() {
    let config = Config::parse("config.yaml", "workspaces: []").unwrap();
    for (root, rejected) in [(TreePath::root(), true), (TreePath::parse(b"a").unwrap(), false)] {
        let text = agents_md(&config, &root, Reader { agent: None, is_read_only: false });
        assert!(text.contains("`cat .workfs/why`"), "{text}");
        assert_eq!(text.contains("`.workfs/rejected/`"), rejected, "{text}");
    }
}

#[test]
fn the_text_is_for_whose_mount_it_is_and_for_what_its_workspace_wants() {
    let text = |more: &str| {
        let text = format!("workspaces: [{{ path: work, kind: task{more} }}]");
        Config::parse("config.yaml", &text).unwrap()
    };
    let name = AgentName::new("bob").unwrap();
    let read = |config: &Config, role| {
        agents_md(
            config,
            &TreePath::root(),
            Reader { agent: Some((&name, role)), is_read_only: false },
        )
    };
    let own = read(&text(""), Role::Agent);
    assert!(own.contains("me=bob;") && own.contains("`mkdir -p work/assigned/bob`"), "{own}");
    assert!(!own.contains("YOU") && !own.contains("observer"), "{own}");
    assert!(read(&text(""), Role::Observer).contains("You are bob, an observer"));
    let strict = read(&text(", strict: true"), Role::Agent);
    assert!(
        strict.contains("Its `id` is ID. ")
            && strict.contains("\nEvery text that is saved must have `id`"),
        "{strict}"
    );
    assert!(!own.contains("must have") && own.contains("is ID or left out."), "{own}");
    let flag = read(&text(", policy: flag"), Role::Agent);
    assert!(flag.contains("is saved, too") && !own.contains("is saved, too"), "{flag}");
}

#[test]
fn what_is_to_be_typed_is_quoted_for_the_shell() {
    let text = told_at("bob's (team)", JOB);
    let dir = r"'bob'\''s (team)/run/YOU'";
    assert!(text.contains(&format!("`mkdir -p {dir}`")), "{text}");
    let ready = r"'bob'\''s (team)/ready'";
    assert!(text.contains(&format!("`mv {ready}/.next {dir}/`")), "{text}");
    assert!(text.contains("lane=\"bob's (team)/run/$me\""), "{text}");
    assert!(told(JOB).contains("`mkdir -p jobs/run/YOU`"));
}

#[test]
fn what_a_new_record_must_have_is_told() {
    let line = |text: &str| {
        let at = text.find("A new job: ").unwrap();
        text[at..].lines().next().unwrap().to_owned()
    };
    let required = JOB.replace("initial: true", "initial: true, requires: [note.said, tests]");
    let told_of = line(&told(&required));
    let wanted = "Its `id` is ID or left out. It must have `note.said`, `tests`.";
    assert!(told_of.contains(wanted), "{told_of}");
    let fields = "Its fields: `.workfs/kinds/job.v1.json`.";
    let left_out = format!("Its `id` is ID or left out. {fields}");
    assert!(line(&told(JOB)).ends_with(&left_out), "{}", told(JOB));
    let schema = SCHEMA.replacen('{', r#"{"required": ["id", "tests"], "#, 1);
    let text = told_with(&required, &schema);
    let must = format!("Its `id` is ID. It must have `note.said`. {fields}");
    assert!(line(&text).ends_with(&must), "{text}");
    assert!(text.contains("Every text that is saved must have `id`, `tests`."), "{text}");
}
