//! Which transition of a task is whose, and what the daemon writes with it.

use serde_json::{Value, json};

use crate::kind::load::load_test::{SOUND, load};
use crate::kind::{FieldEdit, Role, StateIx, builtin};
use crate::names::AgentName;
use crate::numbers::UnixNanos;
use crate::refusal::Rule;

/// 2026-11-21T22:17:11Z and a bit.
const NOW: UnixNanos = UnixNanos(1_795_299_431_123_456_789);

fn state(name: &str) -> StateIx {
    builtin::task().state_named(name).unwrap()
}

fn event(from: &str, to: &str, role: Role) -> Result<String, Rule> {
    let task = builtin::task();
    let found = task.transition(state(from), state(to), role);
    found.map(|t| t.event.clone()).map_err(|refusal| refusal.rule)
}

/// The whole lifecycle, as `docs/kinds.md` has it: an agent's event, a coordinator's, an
/// operator's; `-` is forbidden, nothing is no transition.
#[test]
fn every_pair_of_states() {
    let states = ["inbox", "assigned", "done", "fridge", "archive"];
    #[rustfmt::skip]
    let table = [
        ("inbox", "assigned", ["claimed", "claimed", "claimed"]),
        ("inbox", "done", ["-", "closed", "closed"]),
        ("inbox", "fridge", ["-", "shelved", "shelved"]),
        ("inbox", "archive", ["-", "archived", "archived"]),
        ("assigned", "inbox", ["released", "released", "released"]),
        ("assigned", "assigned", ["-", "reassigned", "reassigned"]),
        ("assigned", "done", ["completed", "completed", "completed"]),
        ("assigned", "fridge", ["-", "shelved", "shelved"]),
        ("assigned", "archive", ["-", "archived", "archived"]),
        ("done", "inbox", ["-", "reopened", "reopened"]),
        ("done", "assigned", ["-", "reopened", "reopened"]),
        ("done", "done", ["-", "refiled", "refiled"]),
        ("done", "fridge", ["-", "shelved", "shelved"]),
        ("done", "archive", ["-", "archived", "archived"]),
        ("fridge", "inbox", ["-", "resumed", "resumed"]),
        ("fridge", "fridge", ["-", "refiled", "refiled"]),
        ("fridge", "archive", ["-", "archived", "archived"]),
        ("archive", "inbox", ["-", "-", "restored"]),
        ("archive", "done", ["-", "-", "restored"]),
        ("archive", "archive", ["-", "-", "refiled"]),
    ];
    for from in states {
        for to in states {
            let row = table.iter().find(|(a, b, _)| (*a, *b) == (from, to));
            let roles = [Role::Agent, Role::Coordinator, Role::Operator];
            for (at, role) in roles.into_iter().enumerate() {
                let expected = match row.map(|(_, _, events)| events[at]) {
                    None => Err(Rule::Transition),
                    Some("-") => Err(Rule::Forbidden),
                    Some(event) => Ok(event.to_owned()),
                };
                assert_eq!(event(from, to, role), expected, "{from} to {to} as {role}");
            }
            assert_eq!(event(from, to, Role::Builder), event(from, to, Role::Agent));
            assert_eq!(event(from, to, Role::Manager), event(from, to, Role::Coordinator));
            assert_eq!(event(from, to, Role::Supervisor), event(from, to, Role::Coordinator));
            assert!(event(from, to, Role::Observer).is_err());
        }
    }
}

#[test]
fn a_refused_transition_names_both_directories_and_the_ways_out() {
    let task = builtin::task();
    let none = task.transition(state("fridge"), state("assigned"), Role::Agent).unwrap_err();
    assert_eq!(none.rule, Rule::Transition);
    assert_eq!(none.reason, "a task cannot go from fridge/ to assigned/<agent>/");
    assert_eq!(none.remedy, "from fridge/ an agent can move it nowhere");
    let forbidden = task.transition(state("inbox"), state("done"), Role::Agent).unwrap_err();
    assert_eq!(
        forbidden.reason,
        "an agent may not move a task from inbox/ to done/<agent>/: that is for coordinator, \
         manager, supervisor or operator"
    );
    assert_eq!(
        forbidden.remedy,
        "ask one of them; from inbox/ an agent can move it to assigned/<agent>/"
    );
}

fn edits(from: &str, to: &str, content: &Value, owner: Option<&str>) -> Vec<(String, String)> {
    let task = builtin::task();
    let transition = task.transition(state(from), state(to), Role::Operator).unwrap();
    let owner = owner.map(|name| AgentName::new(name).unwrap());
    let edits = task.entry_edits(transition, content, owner.as_ref(), NOW);
    edits.into_iter().map(|FieldEdit { field, value }| (field, value)).collect()
}

fn expected(edits: &[(&str, &str)]) -> Vec<(String, String)> {
    edits.iter().map(|(field, value)| ((*field).to_owned(), (*value).to_owned())).collect()
}

const AT: &str = "2026-11-21T22:17:11Z";

#[test]
fn a_claim_writes_status_agent_and_time() {
    let claimed = expected(&[("status", "assigned"), ("agent", "bob"), ("assigned_at", AT)]);
    for content in [
        json!({}),
        json!({"status": "new", "agent": "alice", "assigned_at": "2020-01-01T00:00:00Z"}),
        json!({"status": 3, "agent": null}),
    ] {
        assert_eq!(edits("inbox", "assigned", &content, Some("bob")), claimed, "{content}");
    }
}

#[test]
fn what_is_right_already_is_left_alone() {
    let content = json!({"status": "in_progress", "agent": "bob"});
    let claimed = edits("inbox", "assigned", &content, Some("bob"));
    assert_eq!(claimed, expected(&[("assigned_at", AT)]));
    let content = json!({"status": "done", "agent": "bob", "completed_at": "2020"});
    assert_eq!(edits("assigned", "done", &content, Some("bob")), []);
}

#[test]
fn the_time_of_completion_is_written_once() {
    let content = json!({"status": "in_progress", "agent": "bob", "completed_at": null});
    let done = expected(&[("status", "done"), ("completed_at", AT)]);
    assert_eq!(edits("assigned", "done", &content, Some("bob")), done);
    // A flat done/ names no owner, so the agent stays who it was.
    assert_eq!(edits("assigned", "done", &content, None), done);
}

#[test]
fn a_release_gives_the_first_status_back() {
    let content = json!({"status": "blocked", "agent": "bob", "assigned_at": AT});
    assert_eq!(edits("assigned", "inbox", &content, None), expected(&[("status", "new")]));
}

#[test]
fn states_of_any_status_touch_nothing() {
    let content = json!({"status": "blocked", "agent": "bob"});
    assert_eq!(edits("assigned", "fridge", &content, None), []);
    assert_eq!(edits("assigned", "archive", &content, None), []);
}

/// `docs/kinds.md` has one row for each transition of a task, and no other.
#[test]
fn the_reference_lists_every_transition() {
    let reference = include_str!("../../../docs/kinds.md");
    let section = reference.split("### Who moves it where").nth(1).unwrap();
    let section = section.split("###").next().unwrap();
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    let task = builtin::task();
    assert_eq!(rows.len(), task.transitions().len());
    for transition in task.transitions() {
        let name = |ix| task.state(ix).name.as_str();
        let by = match transition.by.len() {
            1 => "operator",
            4 => "leads",
            _ => "workers",
        };
        let (from, to, event) = (name(transition.from), name(transition.to), &transition.event);
        let start = format!("| {from} | {to} | {event} | {by} |");
        assert!(rows.iter().any(|row| row.starts_with(&start)), "no row {start}");
    }
}

#[test]
fn the_status_that_a_record_gets_asks_for_what_it_requires() {
    let of = |definition: &str| {
        let kind = load(definition).unwrap();
        let claim = kind.claim().unwrap().clone();
        (kind, claim)
    };
    // The claim itself writes it.
    let (kind, claim) = of(SOUND);
    assert_eq!(kind.judge_entry(&claim, &json!({})), Ok(()));
    assert!(!kind.reads_content(&claim, None));
    let (kind, claim) = of(&SOUND.replace(", stamps: { at: always }", ""));
    for (content, is_right) in [
        (json!({}), false),
        (json!({"status": "done"}), false),
        (json!({"status": "busy"}), false),
        (json!({"status": "new"}), true),
        (json!({"at": "now"}), true),
    ] {
        let judged = kind.judge_entry(&claim, &content);
        assert_eq!(judged.is_ok(), is_right, "{content}: {judged:?}");
        let status = kind.status_of(&content);
        assert_eq!(kind.reads_content(&claim, status), status != Some("new"), "{content}");
        // Where it is claimed it has the status of that state, or none.
        let is_fit = is_right || status.is_some();
        assert_eq!(kind.wants(&content).fit, is_fit, "{content}");
    }
    let fault = kind.judge_entry(&claim, &json!({})).unwrap_err();
    assert_eq!(fault.reason, "`at` is missing or empty, and status `busy` requires it");
    // Whether it is there already only the text says.
    let (kind, claim) = of(&SOUND.replace("at: always", "at: if_absent"));
    assert!(kind.reads_content(&claim, Some("new")));
    // The built-in claim reads no text.
    let task = builtin::task();
    for status in [None, Some("new"), Some("inbox"), Some("done")] {
        assert!(!task.reads_content(task.claim().unwrap(), status), "{status:?}");
    }
}

#[test]
fn neither_back_to_the_beginning_nor_to_where_it_failed_is_a_record_finished() {
    let finish = |definition: &str| {
        let kind = load(definition).unwrap();
        let taken = kind.state_named("taken").unwrap();
        let way = kind.finish_from(taken, Role::Agent);
        way.map(|way| kind.state(way.to).name.to_string())
    };
    // An end of the lease that leads nowhere.
    let stays = SOUND.replace("on_expiry: open", "on_expiry: event");
    let exhausted = "    retries: { attempts: 3, first: 1s, longest: 64s, jitter_percent: 25, exhausted: shut }\n";
    let ends = stays.replace(exhausted, "");
    assert_ne!(ends, stays);
    assert_eq!(
        (finish(SOUND), finish(&stays), finish(&ends)),
        (None, None, Some("shut".to_owned()))
    );
}

#[test]
fn what_begins_with_an_owner_is_claimed_by_nobody() {
    let claims = |definition: &str| load(definition).unwrap().claim().is_some();
    let unnamed = SOUND.replace("event: claimed", "event: begun");
    let owned = unnamed.replace("dirs: [open]", "dirs: [\"open/{owner}\"]");
    let owned = owned.replace("on_expiry: open", "on_expiry: event");
    assert_eq!((claims(&unnamed), claims(&owned)), (true, false));
}
