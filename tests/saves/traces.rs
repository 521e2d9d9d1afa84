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
