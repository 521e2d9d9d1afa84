//! What waits: follow-ups for which there is no room, names of nobody, and very many.

use workfs::config::Config;
use workfs::engine::{Chores, PutAgent, RemoveWhat, Text, Write, WriteAt};
use workfs::kind::Role;
use workfs::names::FileName;

use crate::harness::{Desk, SECOND, agent};
use crate::rounds::{DAY, desk, remove, undone};

/// Says in bob's task who is to go on.
fn finishing_with(desk: &Desk, next: &str) {
    goes_on("t-1", desk, next);
}

/// The same in another task of his.
fn goes_on(task: &str, desk: &Desk, next: &str) {
    let text =
        format!("id: {task}\nstatus: assigned\nresult: {{ summary: s, next_agent: {next} }}\n");
    desk.rewrite_all(task, Text::new(text.into_bytes()));
}

/// A workspace in which so few files and directories have room, and whose inbox is full.
fn full_desk() -> (Desk, Chores) {
    let text = "workspaces: [{ path: work, kind: task }]\nquotas: [{ path: work, inodes: 9 }]\n";
    let desk = Desk::with(&["bob"], Config::parse("layout", text).unwrap());
    desk.put_at("bob", "t-1", "status: assigned\nagent: bob");
    let chores = Chores::new(desk.engine(), "one");
    finishing_with(&desk, "ann");
    for filler in 0.. {
        if desk.fill("inbox", &format!("filler-{filler}")).is_err() {
            break;
        }
    }
    (desk, chores)
}

/// How many records go on from a task.
fn follow_ups(desk: &Desk) -> usize {
    let (mut count, workspace) = (0, desk.workspace());
    desk.read(|read| {
        read.records(workspace, &mut |record| {
            count += usize::from(record.id.as_str().contains("-ann-followup-t-"));
            true
        })
    });
    count
}

// P14.2 P14.8
#[test]
fn a_follow_up_for_which_there_is_no_room_waits_for_it() {
    let (desk, chores) = full_desk();
    desk.mv("bob", "t-1", "bob", "done").unwrap();
    for _ in 0..2 {
        let (told, whys) = undone(&desk);
        // One is of the filler that had no room.
        assert!(whys == 2 && told.len() == 1, "{told:?}");
        assert!(told[0].starts_with("work/done/t-1.yaml: `work` may hold 9 files"), "{told:?}");
        assert_eq!((chores.round(), follow_ups(&desk)), (Ok(0), 0));
    }
    desk.rmdir("inbox", "filler-0");
    assert_eq!((chores.round(), follow_ups(&desk)), (Ok(1), 1));
    assert_eq!((chores.round(), follow_ups(&desk)), (Ok(0), 1));
    assert_eq!(undone(&desk).0, Vec::<String>::new());
    desk.fsck_clean();
}

// P1.6 P14.8
#[test]
fn what_somebody_writes_is_neither_put_away_nor_aside_before_that_is_judged() {
    let (desk, chores) = desk("archive: true, drafts: true");
    desk.put_at("done", "t-1", "status: done");
    desk.put("broken", "artefacts: 7");
    desk.pass(31 * DAY);
    let draft = FileName::new("broken.yaml").unwrap();
    let draft = desk.read(|read| read.lookup(desk.dir("inbox"), &draft)).unwrap().ino;
    let task = desk.record("t-1").ino().unwrap();
    [task, draft].iter().for_each(|file| desk.is_written(*file, true));
    for _ in 0..2 {
        assert_eq!(chores.round(), Ok(0));
        let (told, whys) = undone(&desk);
        assert!(told.len() == 2 && whys == 2 && told[0].contains("still open"), "{told:?}");
    }
    assert_eq!(desk.record("t-1").state.as_str(), "done");
    [task, draft].iter().for_each(|file| desk.is_written(*file, false));
    assert_eq!((chores.round(), undone(&desk).0), (Ok(2), Vec::new()));
    assert_eq!(desk.record("t-1").state.as_str(), "archive");
    assert!(desk.at_path("put-aside/broken.yaml").is_some());
    desk.fsck_clean();
}

// P14.2 P14.8
#[test]
fn a_follow_up_that_waits_is_made_after_a_restart_too() {
    let (mut desk, first) = full_desk();
    desk.mv("bob", "t-1", "bob", "done").unwrap();
    drop(first);
    desk.restart(true);
    desk.rmdir("inbox", "filler-0");
    let chores = Chores::new(desk.engine(), "later");
    assert_eq!((chores.round(), follow_ups(&desk)), (Ok(1), 1));
    desk.fsck_clean();
}

// P14.2 P14.8
#[test]
fn a_follow_up_waits_over_a_restart_also_where_a_round_was_the_last_to_tell_of_it() {
    let (mut desk, first) = full_desk();
    desk.mv("bob", "t-1", "bob", "done").unwrap();
    // What was told when it followed goes from `why`.
    (0..1100).for_each(|nth| drop(desk.fill("inbox", &format!("more-{nth}")).unwrap_err()));
    assert_eq!(first.round(), Ok(0));
    drop(first);
    desk.restart(true);
    desk.rmdir("inbox", "filler-0");
    let chores = Chores::new(desk.engine(), "later");
    assert_eq!((chores.round(), follow_ups(&desk)), (Ok(1), 1));
}

// P14.2 P14.4
#[test]
fn what_has_a_follow_up_to_make_is_put_away_after_that() {
    let (desk, chores) = desk("handoff: true, archive: true");
    let is = |role| {
        let add = PutAgent { name: agent("ann"), role: Some(role), uid: None, only_new: false };
        desk.engine().run(Desk::operator(), add).unwrap();
    };
    is(Role::Observer);
    desk.put_at("bob", "t-1", "status: assigned\nagent: bob");
    finishing_with(&desk, "ann");
    desk.mv("bob", "t-1", "bob", "done").unwrap();
    desk.pass(31 * DAY);
    for _ in 0..2 {
        assert_eq!((chores.round(), undone(&desk).0.len()), (Ok(0), 1));
        assert_eq!(desk.record("t-1").state.as_str(), "done");
    }
    is(Role::Agent);
    assert_eq!(chores.round().unwrap() + chores.round().unwrap(), 2);
    assert_eq!((follow_ups(&desk), desk.record("t-1").state.as_str()), (1, "archive"));
    desk.fsck_clean();
}

// P14.2 P14.8
#[test]
fn no_follow_up_is_made_of_what_is_not_finished_any_more() {
    let (desk, chores) = full_desk();
    desk.mv("bob", "t-1", "bob", "done").unwrap();
    desk.take("t-1", "done", "bob");
    desk.rmdir("inbox", "filler-0");
    assert_eq!((chores.round(), follow_ups(&desk)), (Ok(0), 0));
    assert_eq!(undone(&desk).0, Vec::<String>::new());
    desk.mv("bob", "t-1", "bob", "done").unwrap();
    assert_eq!(follow_ups(&desk), 1, "with its end");
}

// P14.2
#[test]
fn a_name_that_is_no_agent_s_is_told_of_once_and_does_not_wait() {
    let (mut desk, chores) = desk("handoff: true");
    desk.put_at("bob", "t-1", "status: assigned\nagent: bob");
    finishing_with(&desk, "../ann");
    desk.mv("bob", "t-1", "bob", "done").unwrap();
    assert_eq!((undone(&desk), chores.round()), ((Vec::new(), 1), Ok(0)));
    drop(chores);
    desk.restart(true);
    let chores = Chores::new(desk.engine(), "later");
    assert_eq!((chores.round(), undone(&desk)), (Ok(0), (Vec::new(), 1)));
}

// P14.2 P14.8
#[test]
fn however_many_follow_ups_wait_each_is_made() {
    let text = "workspaces: [{ path: work, kind: task }]\n";
    let desk = Desk::with(&["bob"], Config::parse("layout", text).unwrap());
    let chores = Chores::new(desk.engine(), "one");
    let is = |role| {
        let add = PutAgent { name: agent("ann"), role: Some(role), uid: None, only_new: false };
        desk.engine().run(Desk::operator(), add).unwrap();
    };
    is(Role::Observer);
    // More than one round takes up.
    let tasks: Vec<String> = (0..1030).map(|nth| format!("t-{nth}")).collect();
    for task in &tasks {
        desk.put_at("bob", task, "status: assigned\nagent: bob");
        goes_on(task, &desk, "ann");
        desk.mv("bob", task, "bob", "done").unwrap();
    }
    for _ in 0..3 {
        assert_eq!((chores.round(), undone(&desk).0.len()), (Ok(0), 64));
    }
    is(Role::Agent);
    assert_eq!(chores.round().unwrap() + chores.round().unwrap(), 1030);
    assert_eq!((chores.round(), follow_ups(&desk), undone(&desk).0), (Ok(0), 1030, Vec::new()));
    desk.fsck_clean();
}

// P14.8
#[test]
fn however_much_waits_there_is_room_for_others_in_why() {
    let (desk, chores) = desk("archive: true");
    for nth in 0..1030 {
        desk.put_at("done", &format!("old-{nth}"), "status: done");
    }
    desk.make("archive");
    desk.pass(31 * DAY);
    let whys = || (chores.round(), undone(&desk).1).1;
    assert_eq!([whys(), whys(), whys(), whys()], [64, 70, 70, 70]);
    remove(&desk, "archive", RemoveWhat::File);
    assert_eq!(chores.round().unwrap() + chores.round().unwrap(), 1030);
    desk.fsck_clean();
}

// P14.5
#[test]
fn the_line_that_tells_is_one_of_its_own_also_after_a_text_without_an_end() {
    let (desk, chores) = desk("escalate: true");
    desk.put_at("bob", "stuck", "status: blocked\nagent: bob");
    desk.make("WORKFLOW_LOG.md");
    let name = FileName::new("WORKFLOW_LOG.md").unwrap();
    let root = desk.read(|read| Ok(read.workspaces()?[0].dir)).unwrap();
    let ino = desk.read(|read| read.lookup(root, &name)).unwrap().ino;
    let write = Write { ino, at: WriteAt::End, data: b"by hand".to_vec() };
    desk.engine().run(Desk::operator(), write).unwrap();
    for _ in 0..5 {
        desk.see("bob");
        desk.pass(3600 * SECOND);
    }
    assert_eq!(chores.round(), Ok(1));
    let log = String::from_utf8(desk.at_path("WORKFLOW_LOG.md").unwrap()).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines.len() == 2 && lines[0] == "by hand" && lines[1].contains(" escalated "), "{log}");
    desk.fsck_clean();
}
