//! show, list, claim, done, fail, release, log, why, status.

use super::*;
use crate::engine::Saved;
use crate::kind::Role;
use crate::limits::ROWS_IN_A_PART;
use crate::numbers::{G, Version};
use crate::refusal::Rule;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.mkdir("work/inbox");
    bench.save("work/inbox/low.yaml", "priority: low\nstatus: new\n");
    bench.save(
        "work/inbox/a.yaml",
        "# keep me\nid: a\nstatus: new\ncreated_at: 2026-02-02T00:00:00Z\n",
    );
    bench.save("work/inbox/b.yaml", "id: b\nstatus: new\ncreated_at: 2026-02-01T00:00:00Z\n");
    bench
}

fn claim(bench: &Bench, what: Option<&str>, by: &str) -> Result<ClaimReport, Failure> {
    let what = what.map(str::to_owned);
    let args = ClaimArgs { what, agent: Some(agent(by)), workspace: None, wait_ms: None };
    bench.ask(Request::Claim(args)).map(|report| match report {
        Report::Claim(report) => report,
        other => panic!("{other:?}"),
    })
}

fn moved(report: Result<Report, Failure>) -> Result<MoveReport, Failure> {
    report.map(|report| match report {
        Report::Move(report) => report,
        other => panic!("{other:?}"),
    })
}

fn done(bench: &Bench, what: &str, summary: Option<&str>) -> Result<MoveReport, Failure> {
    let (what, summary) = (what.to_owned(), summary.map(str::to_owned));
    moved(bench.ask(Request::Done(DoneArgs { what, summary, agent: None })))
}

#[test]
fn a_record_goes_its_whole_way() {
    let bench = bench();
    let claimed = claim(&bench, Some("a"), "bob").unwrap();
    assert_eq!(utf8(&claimed.path), "work/assigned/bob/a.yaml");
    assert_eq!((claimed.version, claimed.attempt.0), (Version(2), 1));
    let shown = bench.show("a");
    assert!(shown.text.starts_with("# keep me\nid: a\n"), "{}", shown.text);
    assert!(shown.text.contains("status: assigned") && shown.text.contains("agent: bob"));
    assert_eq!(shown.history.len(), 2);
    assert_eq!(shown.history[0].event, "claimed");

    let refused = done(&bench, "a", None).unwrap_err();
    assert_eq!((refused.rule, refused.exit), (Some(Rule::Required), Exit::Invalid));
    let way = "add it: `result: { summary: … }`; `--summary TEXT` writes `result.summary`";
    assert_eq!(refused.remedy, way);
    assert!(bench.node("work/done").is_none(), "a refusal leaves no lane");
    let finished = done(&bench, "work/assigned/bob/a.yaml", Some("all: well\nreally")).unwrap();
    assert_eq!((utf8(&finished.path), finished.version), ("work/done/bob/a.yaml", Version(3)));
    assert_eq!(finished.owner, Some(agent("bob")));
    let shown = bench.show("a.yaml");
    assert!(shown.text.contains("status: done"));
    assert!(shown.text.contains("result:\n  summary: \"all: well\\nreally\"\n"), "{}", shown.text);
    // One event, one version, one change.
    assert_eq!(shown.history[0].event, "completed");
    assert_eq!(shown.history.len(), 3);
    assert_eq!(bench.node("work/assigned/bob/a.yaml"), None);
    let gone = done(&bench, "work/assigned/bob/a.yaml", None).unwrap_err();
    assert_eq!(gone.exit, Exit::Absent);
    assert!(gone.remedy.contains("it is `work/done/bob/a.yaml` now"), "{gone:?}");

    let at = |at: Option<u64>, g: Option<u64>| {
        let (at, g) = (at.map(Version), g.map(G));
        let report = bench.ask(Request::Show(ShowArgs { what: "a".into(), at, g }));
        report.map(|report| match report {
            Report::Show(report) => report,
            other => panic!("{other:?}"),
        })
    };
    let first = at(Some(1), None).unwrap();
    assert!(first.text.contains("status: new"));
    assert_eq!(at(Some(9), None).unwrap_err().exit, Exit::Absent);
    let then = at(None, Some(shown.history[1].g.0)).unwrap();
    assert_eq!((then.state.as_deref(), then.version), (Some("assigned"), Some(Version(2))));
    assert_eq!(at(None, Some(1)).unwrap_err().exit, Exit::Absent);
    bench.clean();
}

#[test]
fn without_an_id_the_first_by_priority_and_age_is_claimed() {
    let bench = bench();
    bench.save("work/inbox/draft.yaml", "status: [\n");
    let order: Vec<String> = (0..3).map(|_| claim(&bench, None, "bob").unwrap().id).collect();
    assert_eq!(order, ["b", "a", "low"]);
    let nothing = claim(&bench, None, "bob").unwrap_err();
    assert_eq!(nothing.exit, Exit::Nothing);
}

#[test]
fn what_is_ready_is_told_in_the_order_in_which_it_is_claimed() {
    let bench = bench();
    bench.mkdir("work/collaboration/inbox");
    for n in 0..80 {
        for dir in ["work", "work/collaboration"] {
            let priority = ["low", "critical", "medium", "high"][(n + dir.len()) % 4];
            let text = format!("priority: {priority}\n");
            let letter = if dir == "work" { "w" } else { "c" };
            bench.save(&format!("{dir}/inbox/{letter}{n}.yaml"), &text);
        }
    }
    bench.save("work/inbox/waits.yaml", "priority: critical\ndependencies: [never]\n");
    let ready = |explain| {
        let args = ReadyArgs { explain, ..ReadyArgs::default() };
        let Ok(Report::Ready(report)) = bench.ask(Request::Ready(args)) else { panic!() };
        report.rows.into_iter().map(|row| (row.id, row.ready)).collect::<Vec<_>>()
    };
    let (told, explained) = (ready(false), ready(true));
    let (last, others) = explained.split_last().unwrap();
    assert_eq!((last, others), (&("waits".to_owned(), false), &told[..]));
    let claimed = told.iter().map(|_| (claim(&bench, None, "bob").unwrap().id, true));
    assert_eq!(claimed.collect::<Vec<_>>(), told);
    assert_eq!(ready(false), []);
}

#[test]
fn many_who_claim_at_once_get_different_records() {
    let bench = Bench::new();
    bench.mkdir("work/inbox");
    for n in 0..40 {
        bench.save(&format!("work/inbox/t{n:02}.yaml"), "status: new\n");
    }
    let won: Vec<String> = std::thread::scope(|scope| {
        let names = ["ann", "bob", "cem", "dan"];
        let work = |name: &'static str| {
            let bench = &bench;
            scope.spawn(move || {
                let mut won = Vec::new();
                while let Ok(report) = claim(bench, None, name) {
                    won.push(report.id);
                }
                won
            })
        };
        let all: Vec<_> = names.into_iter().map(work).collect();
        all.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let different: std::collections::BTreeSet<_> = won.iter().collect();
    assert_eq!((won.len(), different.len()), (40, 40));
    // Losing a race for "any" is nobody's refusal.
    assert_eq!(why(&bench, None), []);
    bench.clean();
}

#[test]
fn what_somebody_has_is_lost_and_says_to_whom() {
    let bench = bench();
    claim(&bench, Some("a"), "bob").unwrap();
    let lost = claim(&bench, Some("a"), "ann").unwrap_err();
    assert_eq!(lost.exit, Exit::Lost);
    assert!(lost.reason.contains("bob has `a`"), "{lost:?}");
    let absent = claim(&bench, Some("nope"), "ann").unwrap_err();
    assert_eq!(absent.exit, Exit::Absent);
    // Nobody's lane was made for nothing.
    assert_eq!(bench.node("work/assigned/ann"), None);
    bench.save("work/inbox/draft.yaml", "id: other\n");
    let draft = claim(&bench, Some("work/inbox/draft.yaml"), "ann").unwrap_err();
    assert_eq!((draft.exit, draft.rule), (Exit::Denied, Some(Rule::Draft)));
    assert!(draft.reason.contains("`id` is not the file's name"), "{draft:?}");
}

#[test]
fn fail_marks_and_release_gives_back() {
    let bench = bench();
    claim(&bench, Some("a"), "bob").unwrap();
    let args =
        |what: &str| FailArgs { what: what.into(), message: Some("no: disk".into()), agent: None };
    let failed = moved(bench.ask(Request::Fail(args("a")))).unwrap();
    assert_eq!((utf8(&failed.path), failed.version), ("work/assigned/bob/a.yaml", Version(3)));
    let text = bench.show("a").text;
    assert!(text.contains("status: error") && text.contains("message: \"no: disk\""), "{text}");
    let refused = bench.ask(Request::Fail(args("b"))).unwrap_err();
    assert_eq!((refused.exit, refused.rule), (Exit::Invalid, Some(Rule::StatusDiffers)));
    assert_eq!(refused.reason, "`b` is in inbox, where no task is `status: error`");
    assert_eq!(refused.remedy, "claim it first");
    assert!(bench.show("b").text.contains("status: new"));

    let release = |what: &str, by: Option<&str>| {
        let args = ReleaseArgs { what: what.into(), agent: by.map(agent) };
        moved(bench.ask(Request::Release(args)))
    };
    assert_eq!(release("a", Some("ann")).unwrap_err().rule, Some(Rule::Forbidden));
    let back = release("a", Some("bob")).unwrap();
    assert_eq!((utf8(&back.path), back.owner), ("work/inbox/a.yaml", None));
    assert_eq!(claim(&bench, Some("a"), "ann").unwrap().attempt.0, 2);
    bench.clean();
}

#[test]
fn done_where_there_is_no_lane_yet_and_from_the_inbox() {
    let bench = bench();
    let args = DoneArgs { what: "b".into(), summary: Some("x".into()), agent: Some(agent("ann")) };
    // Skipping the claim is for leads, and named agents act in their role.
    let refused = bench.ask(Request::Done(args.clone())).unwrap_err();
    assert_eq!(refused.rule, Some(Rule::Forbidden));
    let (name, role) = (agent("ann"), Some(crate::kind::Role::Coordinator));
    bench.ask(Request::AgentAdd(AgentAddArgs { name, role, uid: None, agent: None })).unwrap();
    let report = moved(bench.ask(Request::Done(args))).unwrap();
    assert_eq!(utf8(&report.path), "work/done/ann/b.yaml");
    // Without an owner: the flat directory.
    let report = done(&bench, "a", Some("y")).unwrap();
    assert_eq!(utf8(&report.path), "work/done/a.yaml");
    // Who may move what has ended does not make it its own by saying again that it has.
    let (text, ann) = (bench.show("a").text, Some(agent("ann")));
    for summary in [None, Some("z".to_owned())] {
        let args = DoneArgs { what: "a".into(), summary, agent: ann.clone() };
        assert_eq!(bench.ask(Request::Done(args)).unwrap_err().exit, Exit::Lost);
    }
    let shown = bench.show("a");
    assert_eq!((shown.path, shown.text), (Some(report.path), text));
    bench.clean();
}

fn why(bench: &Bench, what: Option<&str>) -> Vec<WhyRow> {
    let args = WhyArgs { what: what.map(str::to_owned), limit: None };
    match bench.ask(Request::Why(args)).unwrap() {
        Report::Why(report) => report.rows,
        other => panic!("{other:?}"),
    }
}

#[test]
fn lists_and_counts_tell_drafts_from_records() {
    let bench = bench();
    let saved = bench.save("work/inbox/d.yaml", "status: nonsense\n");
    assert!(matches!(saved, Saved::Refused(_)), "{saved:?}");
    claim(&bench, Some("a"), "bob").unwrap();
    let rows = bench.list(ListArgs::default());
    let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(ids, ["b", "d", "low", "a"]);
    assert_eq!((rows[1].version, rows[1].rule), (None, Some(Rule::Schema)));
    let of = |args: ListArgs| bench.list(args).len();
    assert_eq!(of(ListArgs { state: Some("inbox".into()), ..ListArgs::default() }), 3);
    assert_eq!(of(ListArgs { owner: Some(agent("bob")), ..ListArgs::default() }), 1);
    assert_eq!(of(ListArgs { workspace: Some("work".into()), ..ListArgs::default() }), 4);
    let wrong = |args: ListArgs| bench.ask(Request::List(args)).unwrap_err();
    let near = wrong(ListArgs { state: Some("inbx".into()), ..ListArgs::default() });
    assert_eq!((near.exit, near.remedy.as_str()), (Exit::Usage, "`inbox`?"));
    let none = wrong(ListArgs { workspace: Some("play".into()), ..ListArgs::default() });
    assert_eq!(none.exit, Exit::Absent);

    let Report::Status(status) = bench.ask(Request::Status).unwrap() else { panic!() };
    assert!(status.store_bytes < 1 << 20, "{} with room ahead", status.store_bytes);
    let inbox = &status.workspaces[0].states[0];
    assert_eq!((inbox.records, inbox.drafts), (2, 1));
    assert!(status.human().contains("inbox 2 (+1 draft), assigned 1"), "{}", status.human());

    let rows = why(&bench, Some("work/inbox/d.yaml"));
    assert_eq!(rows.len(), 2, "what is wrong now, and the refused save");
    assert_eq!((rows[0].at.as_ref(), rows[0].rule), (None, Rule::Schema));
    assert_eq!(rows[1].errno.as_deref(), Some("EINVAL"));
    assert!(rows[1].rejected.is_some());
    assert_eq!(why(&bench, None).len(), 1);
    assert_eq!(why(&bench, Some("b")), []);
    let draft = bench.show("work/inbox/d.yaml");
    assert_eq!((draft.what.as_str(), draft.rule), ("draft", Some(Rule::Schema)));
}

#[test]
fn what_has_many_rows_is_told_in_parts() {
    let bench = bench();
    let others = bench.list(ListArgs::default()).len();
    let more = 2 * ROWS_IN_A_PART;
    let ids: Vec<String> = (0..more).map(|nth| format!("t-{nth:04}")).collect();
    for id in &ids {
        bench.save(&format!("work/inbox/{id}.yaml"), &format!("id: {id}\n"));
    }
    let named = |id: &str| id.starts_with("t-");
    let rows = bench.list(ListArgs::default());
    let listed: Vec<&String> = rows.iter().map(|row| &row.id).filter(|id| named(id)).collect();
    assert_eq!((rows.len(), listed), (others + more, ids.iter().collect()));
    let Report::Ready(ready) = bench.ask(Request::Ready(ReadyArgs::default())).unwrap() else {
        panic!()
    };
    assert_eq!(ready.rows.iter().filter(|row| named(&row.id)).count(), more);

    for request in [Request::List(ListArgs::default()), Request::Ready(ReadyArgs::default())] {
        let told = |goes_on: bool| {
            let mut told = Vec::new();
            dispatch(&bench.service, &bench.caller(), request.clone(), &mut |reply| {
                told.push(reply);
                goes_on
            });
            told
        };
        let parts = told(true);
        assert_eq!(parts.len(), 3, "{parts:?}");
        for reply in &parts {
            let (Reply::Part(report) | Reply::Report(report)) = reply else { panic!("{reply:?}") };
            let rows = match &**report {
                Report::List(report) => report.rows.len(),
                Report::Ready(report) => report.rows.len(),
                other => panic!("{other:?}"),
            };
            assert!(rows <= ROWS_IN_A_PART, "{rows}");
        }
        // Nobody takes the first part for the whole.
        let cut = told(false);
        assert!(matches!(&cut[..], [Reply::Part(_), Reply::Error(_)]), "{cut:?}");
    }
}

#[test]
fn the_log_is_the_ledger() {
    let bench = bench();
    claim(&bench, Some("a"), "bob").unwrap();
    let json = |args: LogArgs| bench.lines(LogArgs { json: true, ..args });
    let all = json(LogArgs::default());
    let text: Vec<&str> = all.iter().map(String::as_str).collect();
    crate::ledger::verify(text).unwrap();
    let of_a = json(LogArgs { what: Some("a".into()), ..LogArgs::default() });
    assert_eq!(of_a.len(), 2);
    assert!(of_a.iter().all(|line| all.contains(line)));
    let newest = json(LogArgs { limit: Some(2), ..LogArgs::default() });
    assert_eq!(newest, all[all.len() - 2..]);
    let since = json(LogArgs { since: Some(G(all.len() as u64 - 1)), ..LogArgs::default() });
    assert_eq!(since, all[all.len() - 1..]);
    let of_lane = json(LogArgs { what: Some("work/assigned".into()), ..LogArgs::default() });
    assert_eq!(of_lane.len(), 2, "the lane was registered, the record claimed: {of_lane:#?}");
    let readable = bench.lines(LogArgs { what: Some("a".into()), ..LogArgs::default() });
    assert!(readable[1].contains("claimed work/assigned/bob/a.yaml v2 by"), "{readable:?}");
}

#[test]
fn following_ends_when_the_client_is_gone() {
    let bench = bench();
    let mut seen = Vec::new();
    let args = LogArgs { follow: true, json: true, ..LogArgs::default() };
    let before = bench.lines(LogArgs::default()).len();
    dispatch(&bench.service, &bench.caller(), Request::Log(args), &mut |reply| {
        match reply {
            Reply::Line(line) => seen.push(line),
            Reply::Idle if seen.len() == before => {
                bench.save("work/inbox/new.yaml", "status: new\n");
            }
            _ => return false,
        }
        true
    });
    assert_eq!(seen.len(), before + 1);
    assert!(seen[before].contains("\"event\":\"created\""));
}

#[test]
fn watching_for_longer_than_any_clock_goes_is_watching() {
    let bench = bench();
    let args = WatchArgs {
        glob: "**".into(),
        timeout_s: Some(u64::MAX),
        count: None,
        since: None,
        json: false,
    };
    let mut replies = 0;
    dispatch(&bench.service, &bench.caller(), Request::Watch(args), &mut |_| {
        replies += 1;
        replies < 2
    });
    assert!(replies >= 2, "it waits, and asks whether it should");
}

#[test]
fn requests_have_one_form() {
    let request: Request = serde_json::from_str(r#"{"claim":{"agent":"bob"}}"#).unwrap();
    let ClaimArgs { what, agent: by, workspace, wait_ms: _ } = match &request {
        Request::Claim(args) => args.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!((what, by, workspace), (None, Some(agent("bob")), None));
    assert_eq!(serde_json::from_str::<Request>("\"status\"").unwrap(), Request::Status);
    assert!(serde_json::from_str::<Request>(r#"{"claim":{"agent":"../x"}}"#).is_err());
    assert!(serde_json::from_str::<Request>(r#"{"claim":{"agent":"b","x":1}}"#).is_err());
}

#[test]
fn doctor_looks_at_a_store_that_is_well() {
    let bench = bench();
    let Report::Doctor(report) = bench.ask(Request::Doctor).unwrap() else { panic!() };
    println!("{}", report.human());
    let of = |what: &str| report.findings.iter().find(|one| one.what == what).unwrap();
    for what in ["store", "store file", "store directory", "configuration"] {
        assert_eq!(of(what).health, Health::Ok, "{what}: {:?}", of(what));
    }
    let without =
        doctor(&bench.service.store, Err(("held by process 4711", "end it")), &mut |_| true);
    assert_eq!(without.exit(), Exit::Problems);
}

/// A change of nothing that does this when its turn comes.
struct Does<F>(F);

impl<F: FnOnce() + Send + 'static> crate::engine::Command for Does<F> {
    type Out = ();

    fn operation(&self) -> &'static str {
        "test"
    }

    fn run(self, _: &mut crate::engine::Turn<'_>) -> Result<(), crate::engine::Stop> {
        (self.0)();
        Ok(())
    }
}

#[test]
fn an_answer_that_brings_a_change_does_not_wait_for_room_that_only_it_can_make() {
    use std::sync::mpsc::channel;
    let bench = Bench::new();
    let (begins, begun) = channel();
    let (go_on, may_go_on) = channel::<()>();
    let (answers, answered) = channel();
    let (engine, context) = (bench.service.engine.clone(), bench.context());
    let thread = std::thread::spawn(move || {
        let first = Does(move || {
            begins.send(()).unwrap();
            may_go_on.recv().unwrap();
        });
        let (own, again) = (engine.clone(), context.clone());
        engine.submit(context, first, move |_| {
            own.submit(again, Does(|| ()), move |made| answers.send(made.is_ok()).unwrap());
        });
    });
    begun.recv().unwrap();
    for _ in 0..crate::limits::QUEUE_CHANGES_MAX {
        bench.service.engine.submit(bench.context(), Does(|| ()), |_| ());
    }
    go_on.send(()).unwrap();
    assert!(answered.recv().unwrap(), "it was refused");
    thread.join().unwrap();
}

#[test]
fn of_an_agent_that_two_change_at_once_neither_change_is_lost() {
    let bench = Bench::new();
    for round in 0..40 {
        let name = AgentName::new(format!("agent-{round}")).unwrap();
        let uid = 70_000 + round;
        let add = |role, uid| {
            let args = AgentAddArgs { name: name.clone(), role, uid, agent: None };
            bench.ask(Request::AgentAdd(args)).unwrap();
        };
        std::thread::scope(|scope| {
            scope.spawn(|| add(Some(Role::Coordinator), None));
            scope.spawn(|| add(None, Some(uid)));
        });
        let now = bench.service.engine.agents().get(&name).unwrap();
        assert_eq!((now.role, now.uid), (Role::Coordinator, Some(uid)), "round {round}");
    }
}
