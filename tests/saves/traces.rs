//! Which larger piece of work an event belongs to.

use crate::harness::{Fixture, Task};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

fn with(line: &str) -> Task {
    Task::new("t-1").with(line)
}

// P5.4
#[test]
fn a_record_continues_the_trace_that_its_first_text_names() {
    let fixture = Fixture::new();
    fixture.task("inbox", &with(&format!("traceparent: 00-{TRACE}-{SPAN}-01\n")));
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    fixture.sh("sed -i 's/^traceparent: .*/priority2: none/' work/assigned/bob/t-1.yaml").success();
    let ledger = fixture.ledger();
    let events = ledger.of_record("t-1");
    assert_eq!(ledger.names("t-1"), ["created", "claimed", "saved"]);
    assert!(events.iter().all(|event| event.text("trace_id") == TRACE), "{events:?}");
    assert_eq!(events[0].text("parent_span_id"), SPAN);
    assert_ne!(events[0].text("span_id"), SPAN);
    fixture.fsck_clean();
}

// P5.4
#[test]
fn what_is_no_traceparent_is_left_alone() {
    let fixture = Fixture::new();
    let line = format!("traceparent: 00-{}-{SPAN}-01\n", "0".repeat(32));
    fixture.task("inbox", &with(&line));
    let other = Task::new("t-2").with("traceparent: 7\n");
    fixture.task("inbox", &other);
    let ledger = fixture.ledger();
    let traces: Vec<&str> =
        ["t-1", "t-2"].map(|id| ledger.of_record(id)[0].text("trace_id")).to_vec();
    assert!(traces.iter().all(|trace| trace.len() == 32 && *trace != "0".repeat(32)), "{traces:?}");
    assert_ne!(traces[0], traces[1]);
}

// P5.4 P11.1
#[test]
fn a_file_that_becomes_a_record_has_left_its_name_and_that_is_no_step_of_its_trace() {
    let fixture = Fixture::new();
    let task = with(&format!("traceparent: 00-{TRACE}-{SPAN}-01\n"));
    std::fs::write(fixture.outside("task"), task.text()).unwrap();
    fixture.sh("mkdir scratchpad; cp $OUT/task scratchpad/plan.yaml").success();
    let before = fixture.ledger().last_g();
    fixture.sh("mv scratchpad/plan.yaml work/inbox/t-1.yaml").success();
    let ledger = fixture.ledger();
    let events = ledger.after(before);
    let told = |nth: usize| (events[nth].name().to_owned(), &events[nth].0["payload"]);
    assert_eq!(events.len(), 2, "{events:?}");
    assert_eq!(told(0).0, "created");
    assert_eq!(events[0].text("trace_id"), TRACE);
    let (name, payload) = told(1);
    assert_eq!((&*name, &payload["path"]), ("removed", &"scratchpad/plan.yaml".into()));
    assert_eq!(payload["to"], "work/inbox/t-1.yaml");
    assert_ne!(events[1].text("trace_id"), TRACE);
    assert!(events[1].0["parent_span_id"].is_null(), "{events:?}");
    fixture.fsck_clean();
}
