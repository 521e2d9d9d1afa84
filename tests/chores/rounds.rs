//! What a clock brings: finished tasks are put away, stuck ones told of, old drafts put aside.

use std::fs;

use workfs::config::Config;
use workfs::engine::{Chores, Create, NewContent, PutAgent, Remove, RemoveWhat};
use workfs::kind::{Kind, Kinds, builtin};
use workfs::names::FileName;
use workfs::numbers::Ino;

use crate::harness::{Desk, SECOND, Setup, agent, save, until_polled};
use crate::with_chores;

const HOUR: u64 = 3600 * SECOND;
pub(crate) const DAY: u64 = 24 * HOUR;

pub(crate) fn desk(chores: &str) -> (Desk, Chores) {
    let text = format!("workspaces: [{{ path: work, kind: task, chores: {{ {chores} }} }}]\n");
    let desk = Desk::with(&["bob"], Config::parse("layout", &text).unwrap());
    let chores = Chores::new(desk.engine(), "one");
    (desk, chores)
}

// P14.4
#[test]
fn what_was_finished_a_month_ago_is_put_away() {
    let (desk, chores) = desk("archive: true");
    for task in ["old", "touched"] {
        desk.put(task, "");
        desk.mv("bob", task, "inbox", "bob").unwrap();
        desk.mv("bob", task, "bob", "done").unwrap();
    }
    desk.put("waits", "");
    desk.pass(29 * DAY);
    assert_eq!(chores.round(), Ok(0));
    desk.rewrite("touched", "status: done\nnote: read again");
    desk.pass(2 * DAY);
    assert_eq!(chores.round(), Ok(1));
    assert_eq!(desk.record("old").state.as_str(), "archive");
    assert!(desk.at_path("archive/2025-12/old.yaml").is_some());
    assert_eq!(desk.record("touched").state.as_str(), "done");
    assert_eq!(desk.record("waits").state.as_str(), "inbox");
    assert_eq!(chores.round(), Ok(0));
    desk.pass(30 * DAY);
    assert_eq!(chores.round(), Ok(1));
    desk.fsck_clean();
}

// P6.3 P14.4
#[test]
fn a_round_is_broken_off_when_its_process_ends_and_the_next_goes_on() {
    let (desk, chores) = desk("archive: true");
    for nth in 0..5 {
        desk.put_at("done", &format!("t-{nth}"), "status: done");
    }
    desk.pass(31 * DAY);
    let engine = desk.engine().clone();
    let events = move || {
        let last = workfs::store::read(&**engine.readers(), |read| read.last_event());
        last.unwrap().unwrap().g.0
    };
    let before = events();
    assert_eq!(chores.until(move || events() > before).round(), Ok(1));
    assert_eq!(Chores::new(desk.engine(), "one").round(), Ok(4));
    desk.fsck_clean();
}

// P14.4 P14.8 P3.6
#[test]
fn a_flagged_record_that_cannot_be_put_away_is_told_of() {
    let text =
        "workspaces: [{ path: work, kind: task, policy: flag, chores: { archive: true } }]\n";
    let desk = Desk::with(&["bob"], Config::parse("layout", text).unwrap());
    let chores = Chores::new(desk.engine(), "one");
    for task in ["flagged", "fine"] {
        desk.put_at("done", task, "status: done");
    }
    desk.rewrite("flagged", "status: done\nartefacts: 7");
    desk.pass(31 * DAY);
    assert_eq!(chores.round(), Ok(1));
    assert_eq!(chores.round(), Ok(0));
    let (told, whys) = undone(&desk);
    assert!(told.len() == 1 && told[0].contains("flagged.yaml"), "{told:?}");
    assert!(told[0].contains("`artefacts`") && whys == 1, "{told:?}");
    desk.rewrite("flagged", "status: done");
    desk.pass(31 * DAY);
    assert_eq!(chores.round(), Ok(1));
    assert!(undone(&desk).0.is_empty());
    desk.fsck_clean();
}

// P14.1
#[test]
fn what_is_not_asked_for_is_not_done() {
    let (desk, chores) = desk("archive: false");
    desk.put_at("done", "old", "status: done");
    desk.put_at("bob", "stuck", "status: blocked\nagent: bob");
    desk.put("draft", "artefacts: 7");
    desk.pass(40 * DAY);
    assert_eq!(chores.round(), Ok(0));
    assert_eq!(desk.record("old").state.as_str(), "done");
    assert_eq!(desk.at_path("WORKFLOW_LOG.md"), None);
}

// P14.5
#[test]
fn what_does_not_go_on_is_told_of_once() {
    let (desk, chores) = desk("escalate: true");
    desk.put_at("bob", "stuck", "status: blocked\nagent: bob");
    desk.put_at("bob", "works", "status: in_progress\nagent: bob");
    let hours = |count: u64| {
        for _ in 0..count {
            desk.see("bob");
            desk.pass(HOUR);
        }
    };
    hours(3);
    assert_eq!(chores.round(), Ok(0));
    hours(2);
    assert_eq!(chores.round(), Ok(1));
    let log = String::from_utf8(desk.at_path("WORKFLOW_LOG.md").unwrap()).unwrap();
    assert_eq!(
        log,
        "2025-11-24T21:00:00Z escalated work/assigned/bob/stuck.yaml: blocked since \
         2025-11-24T16:00:00Z\n"
    );
    hours(20);
    assert_eq!(chores.round(), Ok(0), "once");
    desk.rewrite("stuck", "status: blocked\nagent: bob\nlast_error: 'no\n\n  key'");
    hours(5);
    assert_eq!(chores.round(), Ok(1), "something had happened to it");
    let log = String::from_utf8(desk.at_path("WORKFLOW_LOG.md").unwrap()).unwrap();
    assert!(log.lines().count() == 2 && log.ends_with("(no\\nkey)\n"), "{log}");
    // What a text says at length it says itself.
    let long = "ä".repeat(300_000);
    desk.rewrite("stuck", &format!("status: blocked\nagent: bob\nlast_error: '{long}'"));
    hours(5);
    assert_eq!(chores.round(), Ok(1));
    let log = String::from_utf8(desk.at_path("WORKFLOW_LOG.md").unwrap()).unwrap();
    let last = log.lines().last().unwrap();
    assert!(last.len() < 1_200 && last.ends_with("ä…: its `last_error` says the rest)"), "{last}");
    desk.fsck_clean();
}

// P14.4 P14.5
#[test]
fn what_was_told_of_where_it_rests_is_put_away_all_the_same() {
    let desk = errands(&[("{ state: dead, after: 1m }", "{ state: done, after: 1h }")]);
    let chores = Chores::new(desk.engine(), "one");
    desk.put_at("done", "old", "status: done");
    desk.pass(2 * HOUR);
    assert_eq!(chores.round(), Ok(1), "it is told of");
    desk.pass(30 * DAY - 3 * HOUR);
    assert_eq!(chores.round(), Ok(0), "once");
    assert_eq!(desk.record("old").state.as_str(), "done");
    // Since it was finished, not since it was told of.
    desk.pass(HOUR);
    assert_eq!(chores.round(), Ok(1));
    assert_eq!(desk.record("old").state.as_str(), "archive");
    desk.fsck_clean();
}

/// A kind that is the task's but for this, with all chores that a clock brings.
fn errands(changed: &[(&str, &str)]) -> Desk {
    let (task, file) = (builtin::task(), "errand.kind.yaml");
    let named = [("kind: task", "kind: errand"), ("task.v1.json", "errand.v1.json")];
    let definition =
        named.iter().chain(changed).fold(task.source().definition.clone(), |text, (old, new)| {
            assert!(text.contains(old), "{old}");
            text.replace(old, new)
        });
    let mut kinds = Kinds::default();
    kinds.add(file, Kind::load(file, &definition, &task.source().schema).unwrap()).unwrap();
    let text = "workspaces: [{ path: work, kind: errand, \
                chores: { archive: true, escalate: true, drafts: true } }]\n";
    Desk::with(&["bob"], Config::parse_with("layout", text, &kinds).unwrap())
}

// P14.4 P14.8
#[test]
fn what_cannot_be_put_away_keeps_nothing_else_in_its_place_however_much_it_is() {
    let text =
        "workspaces: [{ path: work, kind: task, policy: flag, chores: { archive: true } }]\n";
    let desk = Desk::with(&["bob"], Config::parse("layout", text).unwrap());
    let chores = Chores::new(desk.engine(), "one");
    let flagged: Vec<String> = (0..1030).map(|nth| format!("flagged-{nth}")).collect();
    for task in &flagged {
        desk.put_at("done", task, "status: done");
        desk.rewrite(task, "status: done\nartefacts: 7");
    }
    desk.put_at("done", "last", "status: done");
    desk.pass(31 * DAY);
    let told = || (chores.round(), undone(&desk).0.len());
    assert_eq!((told(), told()), ((Ok(0), 64), (Ok(1), 64)));
    assert_eq!(desk.record("last").state.as_str(), "archive");
    // What was tried in vain is tried again.
    desk.rewrite(&flagged[0], "status: done");
    desk.pass(31 * DAY);
    assert_eq!(chores.round().unwrap() + chores.round().unwrap(), 1);
    desk.fsck_clean();
}

// P14.4 P14.5 P5.2
#[test]
fn a_transition_may_be_called_as_what_workfs_tells_of_itself() {
    let desk = errands(&[
        ("event: completed", "event: escalated"),
        ("event: released", "event: removed"),
        ("{ state: dead, after: 1m }", "{ state: done, after: 1h }"),
    ]);
    let chores = Chores::new(desk.engine(), "one");
    for task in ["ended", "back"] {
        desk.put(task, "");
        desk.mv("bob", task, "inbox", "bob").unwrap();
    }
    desk.pass(2 * HOUR);
    desk.mv("bob", "ended", "bob", "done").unwrap();
    desk.mv("bob", "back", "bob", "inbox").unwrap();
    desk.fsck_clean();
    assert_eq!(chores.round(), Ok(0), "it went there just now");
    desk.pass(2 * HOUR);
    assert_eq!(chores.round(), Ok(1), "nobody was told of it");
    desk.pass(29 * DAY);
    assert_eq!(chores.round(), Ok(0));
    desk.pass(DAY);
    assert_eq!(chores.round(), Ok(1));
    assert_eq!(desk.record("ended").state.as_str(), "archive");
    desk.fsck_clean();
}

// P14.5
#[test]
fn a_warning_of_a_lease_s_end_is_nothing_that_happens_to_it() {
    let (desk, chores) = desk("escalate: true");
    desk.put_at("bob", "stuck", "status: blocked\nagent: bob");
    let warned = || {
        let last = desk.record("stuck").last_g;
        let event = desk.read(|read| read.event(last)).unwrap();
        assert!(event.line.contains("\"event\":\"lease_ending\""), "{}", event.line);
    };
    desk.pass(4 * HOUR - 300 * SECOND);
    warned();
    desk.see("bob");
    desk.pass(600 * SECOND);
    assert_eq!(chores.round(), Ok(1));
    let log = String::from_utf8(desk.at_path("WORKFLOW_LOG.md").unwrap()).unwrap();
    assert!(log.ends_with("blocked since 2025-11-24T16:00:00Z\n"), "{log}");
    // Nor is it after the line was written.
    desk.see("bob");
    desk.pass(3 * HOUR);
    desk.pass(HOUR - 300 * SECOND);
    warned();
    desk.see("bob");
    desk.pass(600 * SECOND);
    assert_eq!(chores.round(), Ok(0));
    // Whoever is silent for that long has lost it by then: there is nothing to tell of.
    desk.rewrite("stuck", "status: blocked\nagent: bob\nnote: again");
    desk.pass(4 * HOUR + 300 * SECOND);
    assert_eq!(desk.record("stuck").state.as_str(), "inbox");
    assert_eq!(chores.round(), Ok(0));
    desk.fsck_clean();
}

// P14.6
#[test]
fn a_draft_that_nobody_mends_is_put_aside_and_not_lost() {
    let (desk, chores) = desk("drafts: true");
    desk.put("broken", "artefacts: 7");
    desk.put("fine", "");
    desk.pass(8 * DAY);
    assert_eq!(chores.round(), Ok(1));
    let text = String::from_utf8(desk.at_path("put-aside/broken.yaml").unwrap()).unwrap();
    assert!(text.contains("artefacts: 7"), "{text}");
    assert_eq!(desk.at_path("inbox/broken.yaml"), None);
    assert!(desk.at_path("inbox/fine.yaml").is_some());
    desk.put("broken", "artefacts: 8");
    desk.pass(8 * DAY);
    assert_eq!(chores.round(), Ok(1));
    assert!(desk.at_path("put-aside/broken.yaml.2").is_some());
    desk.fsck_clean();
}

/// What is told of chores that cannot be done, and how often `why` was told.
pub(crate) fn undone(desk: &Desk) -> (Vec<String>, usize) {
    let told =
        desk.engine().undone().told().into_iter().map(|(path, why)| format!("{path}: {why}"));
    let mut whys = 0;
    desk.read(|read| read.refusals(&mut |_| (whys += 1, true).1));
    (told.collect(), whys)
}

/// What is in the way: a plain file of the workspace's directory, or a directory.
pub(crate) fn remove(desk: &Desk, name: &str, what: RemoveWhat) {
    let parent = desk.read(|read| Ok(read.workspaces()?[0].dir)).unwrap();
    let remove = Remove { parent, name: FileName::new(name).unwrap(), what };
    desk.engine().run(Desk::operator(), remove).unwrap();
}

// P14.8
#[test]
fn what_cannot_be_done_is_told_once_stops_nothing_else_and_is_tried_again() {
    let (desk, chores) = desk("archive: true, drafts: true");
    desk.put_at("done", "old", "status: done");
    desk.put("broken", "artefacts: 7");
    desk.make("archive");
    desk.pass(31 * DAY);
    assert_eq!(chores.round(), Ok(1), "the draft is put aside");
    let way = "work/done/old.yaml: `archive`, where it would go, is no directory";
    assert_eq!(undone(&desk), (vec![way.to_owned()], 1));
    for _ in 0..3 {
        assert_eq!(chores.round(), Ok(0));
    }
    assert_eq!(undone(&desk), (vec![way.to_owned()], 1));
    remove(&desk, "archive", RemoveWhat::File);
    assert_eq!(chores.round(), Ok(1));
    assert_eq!(desk.record("old").state.as_str(), "archive");
    assert_eq!(undone(&desk).0, Vec::<String>::new());
    desk.fsck_clean();
}

// P14.8
#[test]
fn a_draft_waits_for_the_place_where_it_is_put() {
    let (desk, chores) = desk("drafts: true");
    desk.put("broken", "artefacts: 7");
    desk.make("put-aside");
    desk.pass(8 * DAY);
    assert_eq!(chores.round(), Ok(0));
    let (told, whys) = undone(&desk);
    assert!(whys == 1 && told[0].contains("`put-aside`"), "{told:?}");
    remove(&desk, "put-aside", RemoveWhat::File);
    assert_eq!(chores.round(), Ok(1));
    assert!(desk.at_path("put-aside/broken.yaml").is_some());
}

// P14.5 P14.8
#[test]
fn where_no_line_can_be_written_the_event_tells_and_the_line_follows() {
    let (desk, chores) = desk("escalate: true");
    desk.put_at("dead", "stuck", "status: error");
    let parent = desk.read(|read| Ok(read.workspaces()?[0].dir)).unwrap();
    let (name, content) = (FileName::new("WORKFLOW_LOG.md").unwrap(), NewContent::Directory);
    let create = Create::new(parent, name, 0o755, content);
    desk.engine().run(Desk::operator(), create).unwrap();
    let last = || desk.record("stuck").last_g;
    desk.pass(5 * HOUR);
    assert_eq!(chores.round(), Ok(1));
    let event = desk.read(|read| read.event(last())).unwrap();
    assert!(event.line.contains("\"event\":\"escalated\""), "{}", event.line);
    for _ in 0..3 {
        assert_eq!(chores.round(), Ok(0));
        assert_eq!(last(), event.g, "once");
    }
    let (told, whys) = undone(&desk);
    assert!(whys == 1 && told[0].contains("WORKFLOW_LOG.md"), "{told:?}");
    remove(&desk, "WORKFLOW_LOG.md", RemoveWhat::Directory);
    assert_eq!(chores.round(), Ok(1));
    let log = String::from_utf8(desk.at_path("WORKFLOW_LOG.md").unwrap()).unwrap();
    assert!(log.ends_with("dead since 2025-11-24T16:00:00Z\n"), "{log}");
    assert_eq!(chores.round(), Ok(0));
    assert_eq!(undone(&desk).0.len(), 0);
    desk.fsck_clean();
}

// P14.3 P14.8
#[test]
fn what_could_not_be_assigned_is_assigned_when_its_lane_is_free() {
    let (desk, chores) = desk("assign: true");
    let add = PutAgent { name: agent("bob"), role: None, uid: None, only_new: false };
    desk.engine().run(Desk::operator(), add).unwrap();
    desk.block("bob", "t-1");
    desk.put("t-1", "agent: bob");
    desk.put("t-2", "agent: bob");
    assert_eq!(desk.record("t-2").state.as_str(), "assigned");
    let place = || (desk.record("t-1").state.to_string(), undone(&desk).1);
    assert_eq!(place(), ("inbox".to_owned(), 1), "`why` tells");
    for _ in 0..2 {
        assert_eq!(chores.round(), Ok(0));
        let (told, whys) = undone(&desk);
        assert!(whys == 1 && told[0].starts_with("work/inbox/t-1.yaml: "), "{told:?}");
    }
    desk.unblock("bob", "t-1");
    assert_eq!(chores.round(), Ok(1));
    assert_eq!(place(), ("assigned".to_owned(), 1));
    assert_eq!(chores.round(), Ok(0));
    assert_eq!(undone(&desk).0.len(), 0);
    desk.fsck_clean();
}

// P14.3 P14.8
#[test]
fn what_could_not_be_assigned_is_assigned_after_a_restart_too() {
    let (mut desk, first) = desk("assign: true");
    let add = PutAgent { name: agent("bob"), role: None, uid: None, only_new: false };
    desk.engine().run(Desk::operator(), add).unwrap();
    desk.block("bob", "t-1");
    desk.put("t-1", "agent: bob");
    desk.put("t-2", "agent: nobody");
    assert_eq!(first.round(), Ok(0));
    drop(first);
    desk.restart(true);
    let chores = Chores::new(desk.engine(), "later");
    assert_eq!(chores.round(), Ok(0));
    let (told, whys) = undone(&desk);
    assert!(whys == 1 && told[0].starts_with("work/inbox/t-1.yaml: "), "{told:?}");
    desk.unblock("bob", "t-1");
    assert_eq!(chores.round(), Ok(1));
    assert_eq!(desk.record("t-1").state.as_str(), "assigned");
    assert_eq!(desk.record("t-2").state.as_str(), "inbox");
    desk.fsck_clean();
}

// P14.7
#[test]
fn one_leads_until_its_lease_ends_or_it_resigns() {
    let (desk, first) = desk("archive: true");
    let second = Chores::new(desk.engine(), "two");
    desk.put_at("done", "old", "status: done");
    assert_eq!(first.round(), Ok(0));
    desk.pass(31 * DAY);
    assert_eq!(first.round(), Ok(1));
    desk.put_at("done", "next", "status: done");
    desk.set_wall(31 * DAY.cast_signed());
    assert_eq!(second.round(), Ok(0), "the first leads");
    first.resign();
    assert_eq!(second.round(), Ok(1));
    desk.put_at("done", "last", "status: done");
    desk.set_wall(31 * DAY.cast_signed());
    assert_eq!(first.round(), Ok(0), "the second leads");
    desk.pass(200 * SECOND);
    assert_eq!(first.round(), Ok(1), "it is silent for too long");
    desk.fsck_clean();
}

// P14.7
#[test]
fn who_led_when_the_store_was_open_before_leads_no_more() {
    let (mut desk, first) = desk("archive: true");
    desk.put_at("done", "old", "status: done");
    assert_eq!(first.round(), Ok(0), "it leads");
    desk.pass(30 * DAY - 10 * SECOND);
    assert_eq!(first.round(), Ok(0), "it leads on");
    drop(first);
    // It ended without a word, as one that is killed.
    desk.restart(false);
    desk.pass(20 * SECOND);
    let next = Chores::new(desk.engine(), "two");
    assert_eq!(next.round(), Ok(1), "nobody else can be there");
    drop(next);
    desk.fsck_clean();
}

// P14.6 P14.7
#[test]
fn the_daemon_makes_the_rounds() {
    let fixture = with_chores("drafts: true, archive: true", Setup::default());
    save(&fixture.path("work/inbox/t-1.yaml"), b"status: nonsense\n").unwrap_err();
    fixture.sh("touch -d '9 days ago' work/inbox/t-1.yaml").success();
    fixture.unmount_all();
    fixture.mount_all();
    let aside = fixture.path("work/put-aside/t-1.yaml");
    until_polled("it is put aside", || aside.exists().then_some(()));
    assert_eq!(fs::read(aside).unwrap(), b"status: nonsense\n");
    let events = fixture.ledger();
    let last = events.0.iter().rfind(|event| event.name() == "put_aside").unwrap();
    let payload = &last.0["payload"];
    assert_eq!(payload["to_path"], "work/put-aside/t-1.yaml");
    // Which rule, and not what the draft says: the ledger tells everybody.
    assert!(payload["rule"].as_str().is_some_and(|rule| rule.starts_with('W')), "{payload}");
    assert!(!payload.to_string().contains("nonsense"), "{payload}");
    fixture.fsck_clean();
}

// P14.6 P14.8
#[test]
fn drafts_of_another_workspace_keep_nobody_s_from_being_put_aside() {
    let text = "workspaces: [{ path: work, kind: task }, \
                { path: other, kind: task, chores: { drafts: true } }]\n";
    let desk = Desk::with(&["bob"], Config::parse("layout", text).unwrap());
    let chores = Chores::new(desk.engine(), "one");
    // More than one round takes up.
    for nth in 0..1100 {
        desk.put(&format!("theirs-{nth}"), "artefacts: 7");
    }
    let name = |name: &str| FileName::new(name).unwrap();
    let make = |parent, dir: &str, content| {
        let create = Create::new(parent, name(dir), 0o755, content);
        desk.engine().run(Desk::operator(), create).unwrap().ino
    };
    let other = make(Ino(1), "other", NewContent::Directory);
    let inbox = make(other, "inbox", NewContent::Directory);
    make(inbox, "own.yaml", NewContent::File);
    desk.pass(8 * DAY);
    assert_eq!(chores.round(), Ok(1));
    assert!(desk.read(|read| read.lookup(inbox, &name("own.yaml"))).is_none());
    assert_eq!(chores.round(), Ok(0));
    desk.fsck_clean();
}
