//! `project new`, by a user whom modes bind.

use super::*;
use crate::service::request::ProjectNewArgs;

/// A user who has neither the store nor anything in it.
const NOBODY: u32 = 65_534;

fn new_project(bench: &Bench, id: &str) -> Reply {
    let caller = Caller::new(NOBODY, NOBODY, None);
    let args = ProjectNewArgs { id: Some(id.to_owned()), agent: None };
    let mut last = None;
    dispatch(&bench.service, &caller, Request::ProjectNew(args), &mut |reply| {
        last = Some(reply);
        true
    });
    last.unwrap()
}

fn chmod(bench: &Bench, path: &str, mode: u32) {
    let ino = bench.node(path).unwrap().ino;
    let set = SetAttributes { mode: Some(mode), ..SetAttributes::none(ino) };
    bench.service.engine.run(bench.context(), set).unwrap();
}

#[test]
fn who_is_an_agent_by_the_user_makes_a_project_where_the_modes_allow_it() {
    let bench = Bench::new();
    let parts =
        ["info", "documents", "issues", "progress"].map(|part| format!("scratchpad/{part}"));
    parts.iter().for_each(|part| bench.mkdir(part));
    let (name, role) = (AgentName::new("nob").unwrap(), Some(crate::kind::Role::Agent));
    let args = AgentAddArgs { name, role, uid: Some(NOBODY), agent: None };
    bench.ask(Request::AgentAdd(args)).unwrap();
    let refused = |id: &str| match new_project(&bench, id) {
        Reply::Error(failure) => assert_eq!(failure.rule, Some(Rule::Forbidden), "{failure:?}"),
        other => panic!("{id}: {other:?}"),
    };
    refused("x");
    parts[..3].iter().for_each(|part| chmod(&bench, part, 0o777));
    refused("x");
    chmod(&bench, &parts[3], 0o777);
    chmod(&bench, "scratchpad", 0o700);
    refused("x");
    chmod(&bench, "scratchpad", 0o755);
    assert!(matches!(new_project(&bench, "x"), Reply::Report(_)));
    assert_eq!(bench.node("scratchpad/progress/x/reviews").unwrap().uid, NOBODY);
    // What somebody else has made is no part of a new one.
    bench.mkdir("scratchpad/issues/y");
    match new_project(&bench, "y") {
        Reply::Error(failure) => assert_eq!(failure.exit, Exit::Lost, "{failure:?}"),
        other => panic!("{other:?}"),
    }
    assert!(bench.node("scratchpad/info/y").is_none());
    bench.clean();
}
