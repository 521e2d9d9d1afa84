//! What the loader refuses, each with its line and its reason.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::kind::{Becomes, EndCommand, Kind, KindError, OnExpiry, Place, Role, Statuses};
use crate::names::{StateName, TreePath};

pub(in crate::kind) const SCHEMA: &str = r#"{
  "properties": {
    "id": {"type": "string"}, "status": {"enum": ["new", "busy", "done"]}, "by": {},
    "at": {}, "result": {}
  }
}"#;

pub(in crate::kind) const SOUND: &str = "\
kind: errand
schema: errand.v1.json
extensions: [yaml]
fields: { id: id, status: status, owner: by }
strict: [id]
states:
  open:
    dirs: [open]
    status: [new]
    initial: true
  taken:
    dirs: [\"taken/{owner}\"]
    status: [busy, new]
    moves:
      - { from: new, to: busy }
    status_requires: { busy: [at] }
    lease: { ttl: 4h, heartbeat: 30s, on_expiry: open }
    retries: { attempts: 3, first: 1s, longest: 64s, jitter_percent: 25, exhausted: shut }
  shut:
    dirs: [\"shut/{yyyy-mm}\", shut]
    status: any
    requires: [result.summary]
    terminal: true
transitions:
  - { from: open, to: taken, event: claimed, by: [agent], stamps: { at: always } }
  - { from: taken, to: [open, shut], event: left, by: [agent, operator], requires: [at] }
  - { from: shut, to: open, event: restored, by: [operator] }
";

pub(in crate::kind) fn load(definition: &str) -> Result<Kind, KindError> {
    Kind::load("errand.kind.yaml", definition, SCHEMA)
}

/// The sound definition with one part changed.
fn with(old: &str, new: &str) -> KindError {
    assert_eq!(SOUND.matches(old).count(), 1, "{old:?} is not there once");
    match load(&SOUND.replace(old, new)) {
        Err(error) => error,
        Ok(_) => panic!("{new:?} was taken for {old:?}"),
    }
}

#[test]
fn a_sound_definition_becomes_what_it_says() {
    let kind = load(SOUND).unwrap();
    assert_eq!(kind.file_names(), ["errand.kind.yaml", "errand.v1.json"]);
    assert_eq!(kind.extensions(), ["yaml"]);
    assert_eq!(kind.fields().owner.as_deref(), Some("by"));
    let [open, taken, shut] = ["open", "taken", "shut"].map(|name| kind.state_named(name).unwrap());
    assert_eq!(kind.initial(), open);
    assert_eq!(kind.state_named("nowhere"), None);
    assert_eq!(kind.states().map(|(ix, _)| ix).collect::<Vec<_>>(), [open, taken, shut]);
    let lease = kind.state(taken).lease.as_ref().unwrap();
    assert_eq!(
        (lease.ttl, lease.on_expiry.clone()),
        (Duration::from_secs(4 * 3600), OnExpiry::State(open))
    );
    let retries = kind.state(taken).retries.as_ref().unwrap();
    assert_eq!((retries.attempts, retries.jitter_percent, retries.exhausted), (3, 25, shut));
    assert_eq!(kind.state(shut).status, Statuses::Any);
    assert!(kind.state(shut).terminal && kind.state(taken).needs_owner);
    // A transition of two targets is two transitions.
    assert_eq!(kind.transitions().len(), 4);
    assert_eq!(kind.state(taken).moves.as_ref().unwrap()[0].by, Role::ALL);
}

#[test]
fn a_kind_may_have_no_status_at_all() {
    let text = "kind: job\nschema: s\nextensions: [yaml]\nfields: { id: id }\n\
                states:\n  queued: { dirs: [queued], initial: true }\n  gone: { dirs: [gone] }\n\
                transitions:\n  - { from: queued, to: gone, event: went, by: [operator] }\n";
    let kind = load(text).unwrap();
    assert_eq!(kind.state(kind.initial()).status, Statuses::Any);
    let with_status = text.replace("dirs: [gone]", "dirs: [gone], status: [new]");
    assert!(load(&with_status).unwrap_err().reason.contains("names no such field"));
    let back = load(&format!("{text}commands: {{ release: {{ to: queued }} }}\n")).unwrap_err();
    assert!(back.reason.contains("no transition leads to `queued`"), "{back}");
}

#[test]
fn unknown_words_are_refused_with_the_nearest_known_one() {
    for (old, new, line, part) in [
        ("extensions:", "extension:", 3, "did you mean `extensions`?"),
        ("    initial: true", "    inital: true", 10, "did you mean `initial`?"),
        ("owner: by }", "ownr: by }", 4, "did you mean `owner`?"),
        ("ttl: 4h", "tll: 4h", 17, "did you mean `ttl`?"),
        ("event: claimed", "evnt: claimed", 25, "did you mean `event`?"),
        ("by: [agent],", "by: [agnet],", 25, "did you mean `agent`?"),
        ("to: taken", "to: takn", 25, "did you mean `taken`?"),
        ("from: shut, to", "from: shot, to", 27, "did you mean `shut`?"),
        ("status: [new]", "status: [nw]", 7, "did you mean `new`?"),
        ("{ from: new, to: busy }", "{ from: new, to: bsy }", 15, "did you mean `busy`?"),
        ("{ from: new, to: busy }", "{ from: new, to: done }", 15, "unknown status `done`"),
        ("status_requires: { busy:", "status_requires: { bzy:", 16, "did you mean `busy`?"),
        ("on_expiry: open", "on_expiry: opn", 17, "did you mean `open`?"),
        ("exhausted: shut", "exhausted: shat", 18, "did you mean `shut`?"),
        ("id: id, status", "id: idd, status", 4, "did you mean `id`?"),
        ("stamps: { at:", "stamps: { att:", 25, "did you mean `at`?"),
        ("at: always", "at: alway", 25, "did you mean `always`?"),
        ("requires: [result.summary]", "requires: [reslt.summary]", 22, "did you mean `result`?"),
        ("requires: [at]", "requires: [ta]", 26, "unknown field `ta`"),
        ("strict: [id]", "strict: [id, stats]", 5, "did you mean `status`?"),
    ] {
        let error = with(old, new);
        assert!(error.reason.contains(part), "{new}: {error}");
        assert_eq!(error.line, Some(line), "{new}: {error}");
        assert_eq!(error.file, "errand.kind.yaml");
    }
}

#[test]
fn what_is_wrong_with_the_whole_of_a_key_has_its_line() {
    assert_eq!(with("extensions: [yaml]", "extensions: []").line, Some(3));
    for (key, reason) in [
        ("rights: { own: [observer] }", "an observer only reads"),
        ("commands: { done: { text: result } }", "needs one of `to` and `status`"),
    ] {
        let error = load(&format!("{SOUND}{key}\n")).unwrap_err();
        assert!(error.line == Some(28) && error.reason.contains(reason), "{error}");
    }
    let states = &SOUND[SOUND.find("states:").unwrap()..SOUND.find("transitions:").unwrap()];
    assert_eq!(with(states, "states: {}\n").line, Some(6));
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (old, new, part) in [
        ("kind: errand", "kind: 'er rand'", "the kind's name"),
        ("  open:\n", "  'o pen':\n", "the state's name"),
        ("extensions: [yaml]", "extensions: []", "needs an extension"),
        ("extensions: [yaml]", "extensions: [.yaml]", "no extension"),
        ("extensions: [yaml]", "extensions: ['']", "no extension"),
        ("    initial: true\n", "", "no state is `initial"),
        ("    terminal: true", "    terminal: true\n    initial: true", "second initial state"),
        ("    dirs: [open]", "    dirs: []", "no directory"),
        ("    dirs: [open]", "    dirs: [open, open]", "twice"),
        ("    dirs: [open]", "    dirs: [\"open/{what}\"]", "no placeholder"),
        ("    dirs: [open]", "    dirs: [../open]", "does not work"),
        ("    dirs: [open]", "    dirs: [open, .workfs/x]", "shows `.workfs`"),
        ("    dirs: [open]", "    dirs: [open, x/AGENTS.md]", "shows `.workfs`"),
        ("    dirs: [open]", "    dirs: [\"{any}\"]", "does not say where"),
        ("    dirs: [open]", "    dirs: [shut]", "clash"),
        ("    dirs: [open]", "    dirs: [open, taken/bob]", "clash"),
        ("    dirs: [open]", "    dirs: [open, \"shut/{any}\"]", "clash"),
        ("    status: [new]\n", "", "needs `status`"),
        ("    status: [new]\n", "    status: []\n", "no status at all"),
        ("    status: [new]\n", "    status: [new, new]\n", "twice"),
        ("- { from: new, to: busy }", "- { from: new, to: [busy, busy] }", "twice"),
        ("status: any\n", "status: any\n    moves: [{ from: new, to: done }]\n", "does not check"),
        ("requires: [result.summary]", "requires: [result..summary]", "no path"),
        ("event: claimed", "event: ''", "no name of an event"),
        ("event: claimed", "event: Claimed It", "no name of an event"),
        ("by: [agent],", "by: [],", "nobody may"),
        ("to: [open, shut]", "to: [open, shut, open]", "twice"),
        ("to: taken, event", "to: [], event", "no transition leads to the state `taken`"),
        ("to: [open, shut]", "to: [open]", "no transition leads to the state `shut`"),
        (
            "event: restored, by: [operator]",
            "event: restored, by: [agent, operator]",
            "only the operator",
        ),
        ("on_expiry: open", "on_expiry: taken", "a transition from `taken` to `taken`"),
        ("exhausted: shut", "exhausted: taken", "a transition from `taken` to `taken`"),
        ("exhausted: shut", "to: shat, exhausted: shut", "did you mean `shut`?"),
        ("jitter_percent: 25", "jitter_percent: 101", "`jitter_percent` is 0 to 100"),
        ("jitter_percent: 25", "jitter_percent: -1", "a whole number from 0 on"),
        ("attempts: 3", "attempts: many", "a whole number from 0 on"),
        ("attempts: 3", "attempts: 0", "at least 1"),
        ("longest: 64s", "longest: 4294967296d", "what never ends"),
        ("ttl: 4h", "ttl: 4", "is no time"),
        ("ttl: 4h", "ttl: 0h", "is no time"),
        ("ttl: 4h", "ttl: ü", "is no time"),
        ("ttl: 4h", "ttl: ''", "is no time"),
        ("schema: errand.v1.json\n", "", "`schema` is missing"),
        ("schema: errand.v1.json\n", "schema: a\nschema: b\n", "twice"),
    ] {
        let error = with(old, new);
        assert!(error.reason.contains(part), "{new}: {error}");
    }
    assert!(load("").is_err());
    assert!(load("kind: [").unwrap_err().line.is_some());
    assert!(load(&format!("{SOUND}---\nkind: b\n")).is_err());
}

#[test]
fn a_state_has_its_line_in_errors() {
    assert_eq!(with("    dirs: [open]", "    dirs: [open, 'a{']").line, Some(8));
    assert_eq!(with("to: [open, shut]", "to: [open]").line, Some(19));
    assert_eq!(with("    status: [new]\n", "").line, Some(7));
    assert_eq!(with("    initial: true\n", "").line, Some(7));
    assert_eq!(with("    terminal: true", "    terminal: true\n    initial: true").line, Some(19));
    assert_eq!(with("on_expiry: open", "on_expiry: taken").line, Some(17));
    assert_eq!(with("exhausted: shut", "exhausted: taken").line, Some(18));
    assert_eq!(with("jitter_percent: 25", "jitter_percent: 300").line, Some(18));
    assert_eq!(with("schema: errand.v1.json\n", "").line, None);
    assert_eq!(with("ttl: 4h, ", "").line, Some(17));
    let by = with("event: restored, by: [operator]", "event: restored, by: [agent, operator]");
    assert_eq!(by.line, Some(27));
    let error = with("ttl: 4h", "ttl: 31d");
    assert!(error.line == Some(17) && error.reason.contains("longer than 30d"), "{error:?}");
    load(&SOUND.replace("ttl: 4h", "ttl: 720h")).unwrap();
    let error = with("ttl: 4h", "ttl: soon");
    assert_eq!(error.to_string().find("errand.kind.yaml:17: "), Some(0), "{error}");
}

#[test]
fn a_directory_that_cannot_be_has_its_line_in_errors() {
    let dirs = "    dirs: [\"shut/{yyyy-mm}\", shut]";
    assert_eq!(with(dirs, "    dirs:\n      - shut\n      - open").line, Some(22));
    assert_eq!(with("    dirs: [open]", "    dirs: [open, shut]").line, Some(20));
    let error = with(dirs, "    dirs:\n      - shut\n      - ready");
    assert_eq!(error.line, Some(22), "{error}");
    assert!(error.reason.contains("what is ready"), "{error}");
    let sound = SOUND.replace("[open]\n", "[ready]\n") + "order: { dir: next }\n";
    assert!(load(&sound).is_ok());
    let error = load(&sound.replace("next", "ready")).err().unwrap();
    assert_eq!(error.line, Some(8), "{error}");
    let error = load(&sound.replace("next", ".workfs")).err().unwrap();
    assert!(error.line.is_some() && error.reason.contains("shows `.workfs`"), "{error}");
}

#[test]
fn a_field_of_a_field_is_looked_for_as_far_as_the_schema_says_what_there_is() {
    let load = |result: &str, definition: &str| {
        let schema = SCHEMA.replace("\"result\": {}", &format!("\"result\": {result}"));
        Kind::load("errand.kind.yaml", definition, &schema)
    };
    let says = r#"{"type": ["object", "null"], "properties": {
        "summary": {"type": ["string", "null"]}, "by": {"enum": ["a", null]}, "any": {},
        "more": {"properties": {"x": {}}, "additionalProperties": true}}}"#;
    load(says, SOUND).unwrap();
    for (field, said) in [
        ("result.sumary", "did you mean `result.summary`?"),
        ("at|result.sumary", "did you mean `result.summary`?"),
        ("result.by.x", "takes no mapping as `result.by`"),
        ("result.summary.x", "takes no mapping as `result.summary`"),
        ("id.x", "takes no mapping as `id`"),
        ("status.x", "takes no mapping as `status`"),
    ] {
        let error = load(says, &SOUND.replace("result.summary", field)).unwrap_err();
        assert_eq!((error.file.as_str(), error.line), ("errand.kind.yaml", Some(22)), "{error}");
        assert!(error.reason.contains(said), "{field}: {error}");
        let definition = SOUND.replace("result.summary", field);
        let schema = SCHEMA.replace("\"result\": {}", &format!("\"result\": {says}"));
        Kind::load_kept("kept", &definition, &schema).unwrap();
    }
    for field in ["result.any.x.y", "result.more.y", "by.x", "result.more.x.y"] {
        load(says, &SOUND.replace("result.summary", field)).unwrap();
    }
    // It may be said elsewhere.
    for open in [
        r#"{"properties": {"x": {}}, "allOf": [{"properties": {"summary": {}}}]}"#,
        r#"{"properties": {"x": {}}, "patternProperties": {"^s": {}}}"#,
        r#"{"type": "object"}"#,
        "true",
    ] {
        load(open, SOUND).unwrap();
    }
    let text = format!("{SOUND}commands:\n  done: {{ to: shut, text: at.x }}\n");
    let schema = SCHEMA.replace("\"at\": {}", "\"at\": {\"type\": \"string\"}");
    let error = Kind::load("errand.kind.yaml", &text, &schema).unwrap_err();
    let line = u32::try_from(text.lines().count()).ok();
    assert!(error.line == line && error.reason.contains("`at.x`"), "{error}");
}

#[test]
fn a_bad_schema_is_named_by_its_own_file() {
    let error = Kind::load("errand.kind.yaml", SOUND, "{\n\n x}").unwrap_err();
    assert_eq!((error.file.as_str(), error.line), ("errand.v1.json", Some(3)));
    assert!(error.reason.ends_with("(errand.kind.yaml:2: the schema)"), "{error}");
    let error = Kind::load_with("errand.kind.yaml", SOUND, &|_| Err("no such file".to_owned()));
    assert_eq!(error.unwrap_err().to_string(), "errand.kind.yaml:2: `schema`: no such file");
    let no_enum = r#"{"properties": {"id": {}, "status": {}, "by": {}, "at": {}, "result": {}}}"#;
    let error = Kind::load("errand.kind.yaml", SOUND, no_enum).unwrap_err();
    assert!(error.reason.contains("lists no values"), "{error}");
}

#[test]
fn where_a_record_is_tried_again_the_lease_says() {
    let kind = load(&SOUND.replace("exhausted: shut", "to: open, exhausted: shut")).unwrap();
    let taken = kind.state(kind.state_named("taken").unwrap());
    assert_eq!(taken.lease.as_ref().unwrap().on_expiry, OnExpiry::State(kind.initial()));
    assert_eq!(
        taken.retries,
        load(SOUND).unwrap().state(kind.state_named("taken").unwrap()).retries
    );
}

#[test]
fn the_definition_in_the_reference_is_sound() {
    let reference = include_str!("../../../docs/kinds.md");
    let first = |form: &str| {
        reference.split(&format!("```{form}\n")).nth(1).unwrap().split("```").next().unwrap()
    };
    let kind = Kind::load("errand.kind.yaml", first("yaml"), first("json")).unwrap();
    assert_eq!(kind.warnings(), []);
}

/// Every field of the task's schema stands in the reference, and so does what else it is made of.
#[test]
fn the_reference_names_every_field_of_a_task() {
    let reference = include_str!("../../../docs/kinds.md");
    let fields = &reference[reference.find("### Fields").unwrap()..];
    let task = crate::kind::builtin::task();
    let schema: serde_json::Value = serde_json::from_str(&task.source().schema).unwrap();
    let properties = |value: &serde_json::Value| -> Vec<String> {
        value["properties"].as_object().into_iter().flat_map(|all| all.keys().cloned()).collect()
    };
    for field in properties(&schema) {
        assert!(fields.contains(&format!("`{field}`")), "{field}");
        for inner in properties(&schema["properties"][&field]) {
            assert!(fields.contains(&format!("`{field}.{inner}`")), "{field}.{inner}");
        }
    }
    for (_, state) in task.states() {
        let shown = format!("`{}`", state.dirs[0]);
        assert!(reference.contains(&shown), "{shown}");
    }
}

#[test]
fn too_many_states_are_refused() {
    let states = |number: u32| {
        let states: String = (0..number).map(|n| format!("  s{n}: {{ dirs: [s{n}] }}\n")).collect();
        let text = format!(
            "kind: k\nschema: s\nextensions: [yaml]\nfields: {{ id: id }}\nstates:\n{states}\
             transitions: []\n"
        );
        load(&text).unwrap_err().reason
    };
    assert!(states(65).contains("1 to 64 states"));
    assert!(!states(64).contains("1 to 64 states"));
}

#[test]
fn the_longest_and_the_largest_of_each_are_taken() {
    let event = |letters: usize| format!("event: {}_2", "e".repeat(letters));
    for (old, new) in [
        ("event: claimed", event(62).as_str()),
        ("longest: 64s", "longest: 4294967295d"),
        ("jitter_percent: 25", "jitter_percent: 100"),
        ("ttl: 4h", "ttl: 30d"),
    ] {
        load(&SOUND.replace(old, new)).unwrap();
    }
    assert!(with("event: claimed", &event(63)).reason.contains("no name of an event"));
}

fn overrides(dirs: &[(&str, &[&str])]) -> BTreeMap<StateName, Vec<String>> {
    let one = |(state, dirs): &(&str, &[&str])| {
        (StateName::new(state).unwrap(), dirs.iter().map(|dir| (*dir).to_owned()).collect())
    };
    dirs.iter().map(one).collect()
}

#[test]
fn directories_take_other_names() {
    let kind = load(SOUND).unwrap();
    let other =
        kind.with_dirs(&overrides(&[("open", &["todo", "next"]), ("taken", &["on/{owner}"])]));
    let other = other.unwrap();
    let place = |kind: &Kind, text: &str| kind.place(TreePath::parse(text).unwrap().names());
    let open = Place::State { state: kind.initial(), owner: None };
    assert_eq!(place(&other, "todo"), open);
    assert_eq!(place(&other, "next"), open);
    assert_eq!(place(&other, "open"), Place::Outside);
    assert_eq!(place(&other, "on"), Place::Prefix);
    assert_eq!(place(&kind, "open"), open, "the original has changed");
}

#[test]
fn other_names_are_checked_as_the_definition_is() {
    let kind = load(SOUND).unwrap();
    for (dirs, part) in [
        (overrides(&[("opne", &["todo"])]), "did you mean `open`?"),
        (overrides(&[("open", &[])]), "no directory"),
        (overrides(&[("open", &["{x}"])]), "no placeholder"),
        (overrides(&[("open", &["shut"])]), "clash"),
        (overrides(&[("open", &["ready"])]), "what is ready"),
        (overrides(&[("open", &["ready/new"])]), "what is ready"),
        (overrides(&[("open", &["x/{owner}"]), ("taken", &["x/{owner}"])]), "clash"),
        (overrides(&[("taken", &["taken"])]), "need {owner}"),
        (overrides(&[("taken", &["a/{owner}", "b"])]), "need {owner}"),
    ] {
        let error = kind.with_dirs(&dirs).unwrap_err();
        assert!(error.reason.contains(part), "{dirs:?}: {error}");
        assert_eq!(error.file, "kind errand");
    }
}

#[test]
fn only_where_a_definition_can_be_changed_another_name_is_offered_there() {
    let error = load(SOUND).unwrap().with_dirs(&overrides(&[("open", &["ready"])])).unwrap_err();
    assert!(
        error.reason.contains("or name another with `order: { dir: NAME }` in the kind"),
        "{error}"
    );
    let own = with("dirs: [open]", "dirs: [ready]");
    assert!(own.reason.contains("take another name, or name another"), "{own}");
    let task = crate::kind::builtin::task();
    let error = task.with_dirs(&overrides(&[("inbox", &["ready"])])).unwrap_err();
    assert!(error.reason.ends_with("state `inbox`: take another name"), "{error}");
}

#[test]
fn chores_that_make_no_sense_are_refused() {
    let with_chores = |chores: &str| load(&format!("{SOUND}chores: {{ {chores} }}\n"));
    let sound = "archive: { from: taken, to: shut, after: 1h }, drafts: { after: 1d, dir: old }, \
                 escalate: { file: LOG.md, stuck: [{ state: taken, status: busy, after: 5m }] }, \
                 handoff: { state: shut, agent: result.next, previous: result.of, copy: { at: at } }";
    let kind = with_chores(sound).unwrap();
    for dir in ["old", "LOG.md", "old/{owner}"] {
        let error = kind.with_dirs(&overrides(&[("open", &[dir])])).unwrap_err();
        assert!(
            error.reason.contains("of the chores: that is a directory of the state `open`"),
            "{error}"
        );
    }
    assert_eq!(kind.chores().archive.as_ref().unwrap().after, Duration::from_secs(3600));
    for (chores, said) in [
        ("archiv: {}", "did you mean `archive`?"),
        ("archive: { from: taken, to: shout, after: 1h }", "did you mean `shut`?"),
        ("archive: { from: open, to: shut, after: 1h }", "no transition leads from open to shut"),
        ("archive: { from: open, to: taken, after: 1h }", "`taken` has owners"),
        ("archive: { from: taken, to: shut, after: 1w }", "`1w` is no time"),
        ("drafts: { after: 1d, dir: taken }", "that is a directory of the state `taken`"),
        ("drafts: { after: 1d, dir: ready }", "the directory of what is ready"),
        ("drafts: { after: 1d, dir: .workfs }", "shows `.workfs`"),
        ("escalate: { file: AGENTS.md, stuck: [] }", "shows `.workfs`"),
        ("escalate: { file: a/b, stuck: [] }", "`a/b`"),
        (
            "escalate: { file: L, stuck: [{ state: taken, status: done, after: 1m }] }",
            "unknown status `done`",
        ),
        ("handoff: { state: open, agent: by, previous: result.of }", "without end"),
        ("handoff: { state: shut, agent: buy.x, previous: result.of }", "did you mean `by`?"),
        (
            "handoff: { state: shut, agent: by, previous: id, copy: { it: by } }",
            "unknown field `it`",
        ),
    ] {
        let error = with_chores(chores).unwrap_err();
        assert!(error.reason.contains(said), "{chores}: {error}");
        assert_eq!(error.line, Some(SOUND.lines().count() as u32 + 1), "{chores}: {error}");
    }
}

#[test]
fn commands_say_what_becomes_of_a_record() {
    let with_commands = |commands: &str| load(&format!("{SOUND}commands: {{ {commands} }}\n"));
    let state = |kind: &Kind, name: &str| Becomes::State(kind.state_named(name).unwrap());
    let kind = load(SOUND).unwrap();
    assert_eq!((kind.ending(EndCommand::Done), kind.ending(EndCommand::Fail)), (None, None));
    assert_eq!(kind.ending(EndCommand::Release).unwrap().becomes, state(&kind, "open"));
    let sound = "done: { to: shut, text: result.summary }, fail: { status: new }, \
                 release: { to: shut }";
    let kind = with_commands(sound).unwrap();
    let done = kind.ending(EndCommand::Done).unwrap();
    assert_eq!(done.becomes, state(&kind, "shut"));
    assert_eq!(done.text.as_ref().unwrap().first_way(), ["result", "summary"]);
    let fail = kind.ending(EndCommand::Fail).unwrap();
    assert_eq!((&fail.becomes, &fail.text), (&Becomes::Status("new".into()), &None));
    assert_eq!(kind.ending(EndCommand::Release).unwrap().becomes, state(&kind, "shut"));
    for (commands, said) in [
        ("doen: { to: shut }", "did you mean `done`?"),
        ("done: { to: shout }", "did you mean `shut`?"),
        ("done: { status: dune }", "did you mean `done`?"),
        ("done: { to: shut, status: done }", "`commands.done` needs one of"),
        ("fail: { text: at }", "`commands.fail` needs one of"),
        ("done: { to: shut, text: notes }", "unknown field `notes`"),
        ("done: { to: shut, text: result.a.b }", "`result.a.b` is not one field"),
        ("done: { to: shut, text: at|by }", "`at|by` is not one field"),
    ] {
        let error = with_commands(commands).unwrap_err();
        assert!(error.reason.contains(said), "{commands}: {error}");
    }
}
