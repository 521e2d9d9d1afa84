//! What is hardly meant, and what can never be.

use crate::kind::Kind;
use crate::kind::load::load_test::{SCHEMA, SOUND, load};

/// The sound definition where all that the end of a lease leads to requires is required before.
fn asks_before() -> String {
    SOUND.replace("busy: [at]", "busy: [at, result.summary]")
}

#[test]
fn a_command_that_can_never_work_is_refused_but_for_a_store_that_has_it() {
    let by = |status: &str| {
        asks_before().replace("{ from: new, to: busy }", "{ from: busy, to: new }") + status
    };
    // `taken` lets it become `new` only, and the others, but for `shut`, never let it become anything.
    let busy =
        by("commands: { done: { status: busy } }\n").replace("status: any", "status: [done]");
    let error = load(&busy).unwrap_err();
    assert_eq!(error.line, Some(28), "{error}");
    assert!(error.reason.contains("`done` can never work"), "{error}");
    assert!(error.reason.contains("move the record to `taken`"), "{error}");
    assert!(Kind::load_kept("errand.kind.yaml", &busy, SCHEMA).is_ok());
    assert!(load(&busy.replace("status: busy }", "status: new }")).is_ok());
    // Where `any` takes it, it can work, and is hardly meant.
    let shut = by("commands: { fail: { status: done } }\n");
    let [one] = &load(&shut).unwrap().warnings()[..] else { panic!("{shut}") };
    assert!(one.line == Some(28) && one.reason.contains("in `taken` no status"), "{one}");
}

#[test]
fn a_schema_of_another_draft_is_told_of() {
    for (draft, is_told) in [
        ("https://json-schema.org/draft/2020-12/schema", false),
        ("http://json-schema.org/draft-07/schema#", true),
        ("https://json-schema.org/draft/2019-09/schema", true),
    ] {
        let schema = SCHEMA.replacen('{', &format!("{{ \"$schema\": \"{draft}\","), 1);
        let found = Kind::load("errand.kind.yaml", &asks_before(), &schema).unwrap().warnings();
        assert_eq!(found.len(), usize::from(is_told), "{found:?}");
        assert!(found.iter().all(|one| one.reason.contains(draft)), "{found:?}");
    }
}

#[test]
fn what_is_hardly_meant_is_told_of_and_not_refused() {
    let sound = asks_before();
    let warned = |definition: &str| {
        let found = load(definition).unwrap().warnings();
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(warned(&sound), Vec::<String>::new());
    let says = |definition: &str, at: &str, parts: &[&str]| {
        let all = warned(definition);
        let [one] = &all[..] else { panic!("{all:?}") };
        assert!(one.starts_with(&format!("errand.kind.yaml:{at}")), "{one}");
        assert!(parts.iter().all(|part| one.contains(part)), "{one}");
    };
    let renamed = sound.replace("event: claimed", "event: begun");
    assert_eq!(load(&renamed).unwrap().claim().unwrap().event, "begun");
    assert_eq!(warned(&renamed), Vec::<String>::new());
    says(&renamed.replace("taken/{owner}", "taken"), "24: ", &["`open` gives an owner", "claimed"]);
    let flat = sound.replace("taken/{owner}", "taken");
    says(&flat, "17: ", &["the `lease` of `taken` has no effect"]);
    let only_back = SOUND
        .replace("to: [open, shut]", "to: open")
        .replace("{ from: shut,", "{ from: open, to: shut, event: dropped, by: [operator] }\n  - { from: shut,")
        .replace("    retries: { attempts: 3, first: 1s, longest: 64s, jitter_percent: 25, exhausted: shut }\n", "");
    says(&only_back, "24: ", &["no transition leads on from `taken`"]);
    says(&sound.replace("exhausted: shut", "to: shut, exhausted: shut"), "18: ", &["`to: shut`"]);
    let idle = ["have no effect", "`taken`"];
    says(&sound.replace("on_expiry: open", "on_expiry: event"), "18: ", &idle);
    let lease = "    lease: { ttl: 4h, heartbeat: 30s, on_expiry: open }\n";
    says(&sound.replace(lease, ""), "17: ", &idle);
    let back = sound.replace("exhausted: shut", "exhausted: open");
    says(&back, "18: ", &["have no effect", "`exhausted` leads to `open`"]);
    says(&sound.replace("first: 1s", "first: 2m"), "18: ", &["`first`", "longer than"]);
    // Who waits between attempts counts them, too.
    let waits = format!("{back}order: {{ not_before: at }}\n");
    assert_eq!(warned(&waits), Vec::<String>::new());
    says(&format!("{sound}order: {{ after: [result] }}\n"), "28: ", &["waits for ever"]);
    assert_eq!(
        warned(&format!("{sound}order: {{ after: [result], done: {{ shut: any }} }}\n")).len(),
        0
    );
}
