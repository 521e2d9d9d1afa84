//! Each rule about a task's content.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use super::{Fault, Kind, Role, StateIx, builtin};
use crate::names::RecordId;
use crate::refusal::{Refusal, Rule};

fn state(name: &str) -> StateIx {
    builtin::task().state_named(name).unwrap()
}

fn judge(content: &Value, place: &str) -> Result<(), Fault> {
    builtin::task().judge(content, &RecordId::new("t1").unwrap(), state(place))
}

fn fault(content: &Value, place: &str) -> Fault {
    judge(content, place).expect_err(&content.to_string())
}

fn task() -> std::sync::Arc<Kind> {
    builtin::task()
}

#[test]
fn a_minimal_task_passes_in_every_state() {
    assert_eq!(judge(&json!({}), "inbox"), Ok(()));
    assert_eq!(judge(&json!({"id": "t1", "status": "new"}), "inbox"), Ok(()));
    assert_eq!(judge(&json!({"status": "in_progress", "own": {"kept": 1}}), "assigned"), Ok(()));
    assert_eq!(judge(&json!({"status": "done", "result": {"summary": "ok"}}), "done"), Ok(()));
    assert_eq!(judge(&json!({"status": "blocked"}), "fridge"), Ok(()));
    assert_eq!(judge(&json!({"status": "error"}), "archive"), Ok(()));
}

#[test]
fn known_fields_may_be_null_or_in_any_case() {
    let content = json!({
        "agent": null, "title": null, "priority": "HIGH", "artefacts": null, "context": null,
        "dependencies": null, "assigned_at": null, "result": null, "error": null,
    });
    assert_eq!(judge(&content, "inbox"), Ok(()));
    let content = json!({
        "priority": "nOrMaL", "context": "text", "dependencies": ["a", {"task_id": "b"}, {"id": "c"}],
    });
    assert_eq!(judge(&content, "inbox"), Ok(()));
    // It would bind nobody, and nobody would hear of it.
    assert!(judge(&json!({"dependencies": [{"id": 7}]}), "inbox").is_err());
    for one in [json!("a"), json!({"task_id": "a"}), json!(["a"]), json!(null)] {
        assert!(judge(&json!({"blocked_by": one, "blocks": one}), "inbox").is_ok(), "{one}");
    }
}

// P12.1
#[test]
fn a_lease_is_no_longer_than_the_longest() {
    for fine in ["1s", "30d", "720h", "43200m", "2592000s"] {
        assert_eq!(judge(&json!({ "lease": fine }), "inbox"), Ok(()), "{fine}");
    }
    for long in ["31d", "721h", "999999d", "2592001s", "999999999999d"] {
        let Fault { rule, pointer, reason, remedy } = fault(&json!({ "lease": long }), "assigned");
        assert_eq!((rule, pointer.as_str()), (Rule::Schema, "/lease"));
        assert_eq!(reason, format!("`lease: {long}` is longer than the longest lease, 30d"));
        assert!(remedy.starts_with("write `lease: 30d` or less"), "{remedy}");
    }
}

#[test]
fn examples_are_told_as_all_there_is_only_where_they_are() {
    let told = |content: &Value| {
        let Fault { reason, remedy, .. } = fault(content, "inbox");
        format!("{reason}; {remedy}")
    };
    let priority = told(&json!({"priority": "hihg"}));
    assert!(priority.contains("`high`, or another of critical"), "{priority}");
    assert!(priority.contains("(any case)"), "{priority}");
    for wrong in [json!("1H"), json!(0), json!(10)] {
        let lease = told(&json!({ "lease": wrong }));
        assert!(lease.contains("write `lease` like one of 30m, 4h, 2d"), "{lease}");
        assert!(!lease.contains("any case") && !lease.contains("quotes"), "{lease}");
    }
}

#[test]
fn content_that_is_no_mapping_is_refused() {
    for content in [json!([]), json!("text"), Value::Null] {
        assert_eq!(fault(&content, "inbox").rule, Rule::Syntax);
    }
}

#[test]
fn types_and_enumerations_of_known_fields_are_checked() {
    for (content, pointer, reason) in [
        (json!({"id": 7}), "/id", "`id` is a number, not text"),
        (json!({"status": null}), "/status", "`status` is null, not one of new,"),
        (json!({"status": "compelted"}), "/status", "`status` is `compelted`, not one of new,"),
        (json!({"priority": "urgent"}), "/priority", "critical, high, medium, normal, low (any"),
        (json!({"priority": 1}), "/priority", "`priority` is a number, not text"),
        (json!({"artefacts": "x"}), "/artefacts", "`artefacts` is text, not a list"),
        (json!({"artifacts": [1]}), "/artifacts/0", "`artifacts[0]` is a number, not text"),
        (json!({"context": []}), "/context", "`context` is a list, not"),
        (json!({"context": {"dependencies": 1}}), "/context/dependencies", "context.dependencies"),
        (json!({"dependencies": "a"}), "/dependencies", "`dependencies` is text, not a list"),
        (json!({"dependencies": [[]]}), "/dependencies/0", "`dependencies[0]` is a list"),
        (json!({"blocked_by": 12}), "/blocked_by", "`blocked_by` is a number, not text"),
        (json!({"blocks": true}), "/blocks", "`blocks` is true or false, not text"),
        (json!({"blocked_by": {"id": 7}}), "/blocked_by/id", "`blocked_by.id` is a number"),
        (json!({"created_at": 2026}), "/created_at", "`created_at` is a number, not text"),
        (json!({"result": "done"}), "/result", "`result` is text, not a mapping"),
        (json!({"result": {"summary": []}}), "/result/summary", "`result.summary` is a list"),
        (json!({"error": "boom"}), "/error", "`error` is text, not a mapping"),
    ] {
        let fault = fault(&content, "inbox");
        assert_eq!((fault.rule, fault.pointer.as_str()), (Rule::Schema, pointer), "{fault}");
        assert!(fault.reason.contains(reason), "{fault}");
        assert!(!fault.remedy.is_empty());
    }
    let near = fault(&json!({"status": "Inprogress"}), "assigned");
    assert!(near.remedy.starts_with("set `status` to `in_progress`"), "{}", near.remedy);
    // Another directory's word would be refused next.
    let near = fault(&json!({"status": "don"}), "assigned");
    assert_eq!(near.remedy, "set `status` to one of assigned, in_progress, blocked, error");
}

#[test]
fn the_id_is_the_file_name() {
    let fault = fault(&json!({"id": "other"}), "inbox");
    assert_eq!((fault.rule, fault.pointer.as_str()), (Rule::IdDiffers, "/id"));
    assert_eq!(fault.remedy, "set `id: t1`, or leave `id` out");
}

// P3.8
#[test]
fn what_is_to_be_written_as_the_id_is_read_as_one() {
    for name in ["7", "2026-11-20", "1e3", "0x1f", "true", "No", "null"] {
        let id = RecordId::new(name).unwrap();
        let judged = task().judge(&json!({"id": "t1"}), &id, state("inbox"));
        let fault = judged.unwrap_err();
        assert_eq!(fault.rule, Rule::IdDiffers);
        assert_eq!(fault.remedy, format!("set `id: '{name}'`, or leave `id` out"));
    }
}

#[test]
fn the_status_belongs_to_the_directory() {
    let fault_of = |status: &str, place: &str| {
        let fault = fault(&json!({"status": status, "agent": "bob"}), place);
        assert_eq!((fault.rule, fault.pointer.as_str()), (Rule::StatusDiffers, "/status"));
        fault
    };
    let done = fault_of("done", "assigned");
    assert!(done.reason.contains("assigned, in_progress, blocked, error"), "{done}");
    assert!(done.remedy.contains("`mv` the file to done/bob/"), "{}", done.remedy);
    let claimed = fault_of("assigned", "inbox");
    assert!(claimed.remedy.contains("`mv` the file to assigned/bob/"), "{}", claimed.remedy);
    let again = fault_of("new", "done");
    assert!(again.remedy.starts_with("set `status` to one of done; "), "{}", again.remedy);
    assert!(again.remedy.contains("coordinator"), "{}", again.remedy);
    let nameless = fault(&json!({"status": "done", "agent": "a b"}), "assigned");
    assert!(nameless.remedy.contains("done/<agent>/"), "{}", nameless.remedy);
}

#[test]
fn done_requires_a_result_and_error_requires_a_message() {
    let fault_at = |content: Value, place: &str| {
        let fault = fault(&content, place);
        assert_eq!(fault.rule, Rule::Required);
        fault
    };
    let missing = fault_at(json!({"status": "done"}), "done");
    assert_eq!(missing.pointer, "");
    assert_eq!(missing.remedy, "add it: `result: { summary: … }`");
    assert_eq!(fault_at(json!({"result": {"a": 1}}), "done").pointer, "/result");
    assert_eq!(fault_at(json!({"status": "error"}), "assigned").pointer, "");
    let blank = json!({"status": "error", "error": {"message": " "}});
    assert_eq!(fault_at(blank, "assigned").pointer, "/error/message");
    let told = json!({"status": "error", "error": {"message": "disk full"}});
    assert_eq!(judge(&told, "assigned"), Ok(()));
}

#[test]
fn strict_demands_the_full_set() {
    let task = task();
    let id = RecordId::new("t1").unwrap();
    let strict = |content: &Value| {
        task.judge(content, &id, state("inbox")).and_then(|()| task.judge_strict(content))
    };
    let full = json!({"id": "t1", "agent": "bob", "status": "new", "artefacts": []});
    assert_eq!(strict(&full), Ok(()));
    let other = json!({"id": "t1", "agent": "bob", "status": "new", "artifacts": ["a"]});
    assert_eq!(strict(&other), Ok(()));
    for field in ["id", "agent", "status", "artefacts"] {
        let mut part = full.clone();
        part.as_object_mut().unwrap().remove(field);
        let fault = strict(&part).unwrap_err();
        assert_eq!(fault.rule, Rule::Required);
        assert!(fault.reason.contains(field), "{fault}");
        assert_eq!(judge(&part, "inbox"), Ok(()));
    }
}

#[test]
fn a_target_judges_who_enters_it() {
    let task = task();
    let finish = task.transition(state("assigned"), state("done"), Role::Agent).unwrap();
    let working = json!({"status": "in_progress"});
    assert_eq!(task.judge_entry(finish, &working).unwrap_err().rule, Rule::Required);
    let ready = json!({"status": "in_progress", "result": {"summary": "ok"}});
    assert_eq!(task.judge_entry(finish, &ready), Ok(()));
    let claim = task.transition(state("inbox"), state("assigned"), Role::Agent).unwrap();
    assert_eq!(task.judge_entry(claim, &json!({})), Ok(()));
}

/// Every pair of statuses inside assigned/, for an agent and for an operator.
#[test]
fn status_moves_inside_a_lane() {
    let all = ["new", "inbox", "assigned", "in_progress", "blocked", "done", "error"];
    let legal = [
        ("assigned", "in_progress"),
        ("assigned", "blocked"),
        ("assigned", "error"),
        ("in_progress", "blocked"),
        ("in_progress", "error"),
        ("blocked", "in_progress"),
        ("blocked", "error"),
    ];
    let lane = ["assigned", "in_progress", "blocked", "error"];
    for from in lane {
        for to in all {
            let expected = if from == to || legal.contains(&(from, to)) {
                None
            } else if !lane.contains(&to) {
                Some(Rule::StatusDiffers)
            } else if (from, to) == ("error", "assigned") {
                Some(Rule::Forbidden)
            } else {
                Some(Rule::StatusMove)
            };
            let judge = |role| {
                let judged =
                    task().judge_status_move(state("assigned"), Some(from), Some(to), role);
                judged.err().map(|fault| fault.rule)
            };
            assert_eq!(judge(Role::Agent), expected, "{from} to {to}");
            let operator = expected.filter(|rule| *rule != Rule::Forbidden);
            assert_eq!(judge(Role::Operator), operator, "{from} to {to}, operator");
        }
    }
}

#[test]
fn a_status_can_appear_but_not_vanish_in_a_lane() {
    let task = task();
    let judge = |place, from, to| task.judge_status_move(state(place), from, to, Role::Agent);
    assert_eq!(judge("assigned", None, Some("blocked")), Ok(()));
    assert_eq!(judge("assigned", None, None), Ok(()));
    let gone = judge("assigned", Some("error"), None).unwrap_err();
    assert_eq!((gone.rule, gone.pointer.as_str()), (Rule::StatusMove, ""));
    assert_eq!(judge("inbox", Some("new"), None), Ok(()));
    assert_eq!(judge("inbox", Some("new"), Some("inbox")), Ok(()));
    assert_eq!(judge("fridge", Some("new"), Some("done")), Ok(()));
    assert_eq!(judge("inbox", None, Some("done")).unwrap_err().rule, Rule::StatusDiffers);
}

#[test]
fn from_a_status_that_the_state_has_not_each_of_its_own_can_come() {
    let judge = |from, to| {
        task().judge_status_move(state("assigned"), Some(from), Some(to), Role::Agent).is_ok()
    };
    // As where another layout took the status away.
    assert!(judge("gone", "assigned") && judge("gone", "blocked") && !judge("gone", "done"));
    assert!(!judge("blocked", "assigned"));
}

#[test]
fn a_refused_status_move_says_what_is_possible() {
    let task = task();
    let judge = |from, to| {
        task.judge_status_move(state("assigned"), Some(from), Some(to), Role::Agent).unwrap_err()
    };
    let back = judge("in_progress", "assigned");
    assert_eq!(back.remedy, "from in_progress it can become blocked, error");
    assert!(back.reason.contains("assigned/<agent>/"), "{back}");
    assert_eq!(judge("error", "blocked").remedy, "keep `status: error`");
    assert_eq!(judge("error", "assigned").remedy, "that is for operator: ask one of them");
}

#[test]
fn what_is_said_so_far_is_judged_while_the_rest_is_being_written() {
    let done = task().state_named("done").unwrap();
    let id = RecordId::new("x").unwrap();
    let judge = |fields: Value| task().judge_so_far(fields.as_object().unwrap(), None, (&id, done));
    assert_eq!(judge(json!({})), Ok(()));
    assert_eq!(judge(json!({"status": "done", "priority": "low", "own": 1})), Ok(()));
    let fault = judge(json!({"id": "x", "status": "dne"})).unwrap_err();
    assert_eq!((fault.rule, fault.pointer.as_str()), (Rule::Schema, "/status"));
    assert!(fault.remedy.contains("`done`"), "{}", fault.remedy);
    assert!(judge(json!({"id": 1})).is_err());
    assert_eq!(judge(json!({"id": "y"})).unwrap_err().rule, Rule::IdDiffers);
    assert_eq!(judge(json!({"lease": "90d"})).unwrap_err().rule, Rule::Schema);
    // What is copied here gets its status from the daemon.
    assert_eq!(judge(json!({"status": "new"})), Ok(()));
    let status = |from, to: Option<&str>| {
        let assigned = task().state_named("assigned").unwrap();
        let judged = task().judge_status_so_far(assigned, Some(from), to, Role::Agent);
        judged.map_err(|fault| fault.rule)
    };
    assert_eq!(status("assigned", Some("in_progress")), Ok(()));
    assert_eq!(status("in_progress", Some("assigned")), Err(Rule::StatusMove));
    assert_eq!(status("assigned", Some("done")), Err(Rule::StatusDiffers));
    assert_eq!(status("assigned", None), Ok(()));
    // A new file is of the state, or says what the record does that is copied there.
    let new = |carried, said| {
        let judged = task().judge_new_status_so_far(done, carried, Some(said), Role::Agent);
        judged.map_err(|fault| fault.rule)
    };
    assert_eq!(new(None, "done"), Ok(()));
    assert_eq!(new(None, "in_progress"), Err(Rule::StatusDiffers));
    assert_eq!(new(Some("in_progress"), "in_progress"), Ok(()));
    assert_eq!(new(Some("assigned"), "in_progress"), Err(Rule::StatusDiffers));
}

/// Prints what judging costs this thread of a processor, which may be busy with others; the bound is wide, because
/// tests run unoptimized.
#[test]
fn judging_a_typical_task_is_fast() {
    let content = json!({
        "id": "t1", "agent": "bob", "status": "in_progress", "priority": "high",
        "title": "Write the parser", "mode": "/programming", "description": "x".repeat(600),
        "artefacts": ["src/a.rs", "src/b.rs", "docs/c.md"], "dependencies": ["t0", "t00"],
        "context": {"background": "y".repeat(300), "notes": ["a", "b"], "dependencies": []},
        "created_at": "2026-02-04T19:20:00Z", "assigned_at": "2026-02-04T19:26:05.763744Z",
        "started_at": "2026-02-04T19:29:00Z", "created_by": "orchestrator",
        "acceptance_criteria": ["one", "two", "three"], "estimated_hours": 4,
        "result": {"summary": "done", "artefacts": ["a"], "metrics": {"tests": 41}},
    });
    assert_eq!(judge(&content, "assigned"), Ok(()));
    let rounds = 2000u32;
    let spent = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let start = spent();
    for _ in 0..rounds {
        assert!(judge(&content, "assigned").is_ok());
    }
    let each = (spent() - start) / rounds;
    println!("judge: {each:?}");
    assert!(each.as_micros() < 1000, "{each:?}");
}

#[test]
fn of_a_field_that_the_schema_does_not_have_is_told_which_and_where() {
    let definition = "kind: job\nschema: job.v1.json\nextensions: [yaml]\nfields: { id: id }\n\
                      states:\n  open: { dirs: [open], initial: true }\n  shut: { dirs: [shut] }\n\
                      transitions:\n  - { from: open, to: shut, event: ended, by: [agent] }\n";
    let schema = r#"{"additionalProperties": false, "properties": {"id": {},
        "on": {"unevaluatedProperties": false, "properties": {"a": {}}}}}"#;
    let kind = Kind::load("job.kind.yaml", definition, schema).unwrap();
    let id = RecordId::new("t1").unwrap();
    for (content, pointer, remedy) in [
        (json!({"x": 1}), "/x", "remove `x`"),
        (json!({"on": {"a": 1, "b/c": 2}}), "/on/b~1c", "remove `on.b/c`"),
    ] {
        let fault = kind.judge(&content, &id, kind.initial()).unwrap_err();
        assert_eq!((fault.pointer.as_str(), fault.remedy.as_str()), (pointer, remedy));
    }
}

// P3.2
#[test]
fn what_a_schema_calls_a_field_steers_no_terminal() {
    let source = builtin::task().source().definition.clone();
    let definition = source.replace("kind: task", "kind: job").replace("task.v1", "job.v1");
    let schema = builtin::task().source().schema.clone();
    let schema = schema.replacen('{', r#"{"required": ["on\u001b[2J"],"#, 1);
    let kind = Kind::load("job.kind.yaml", &definition, &schema).unwrap();
    let id = RecordId::new("t1").unwrap();
    let fault = kind.judge(&json!({}), &id, kind.initial()).unwrap_err();
    let refusal = Refusal::from(fault);
    assert_eq!(refusal.reason, "the record lacks the field `on\\u{1b}[2J`");
    assert_eq!(refusal.remedy, "add `on\\u{1b}[2J`");
}
