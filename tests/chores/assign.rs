//! A task that names a registered agent goes to its lane.

use std::fs::OpenOptions;
use std::io::Write;

use crate::harness::{Fixture, Setup, Task, python, save, until_polled};
use crate::{names, with_chores};

fn assigning() -> Fixture {
    let fixture = with_chores("assign: true", Setup::default());
    fixture.workfs(&["agent", "add", "bob"]).success();
    fixture.workfs(&["agent", "add", "carol"]).success();
    fixture
}

// P14.3
#[test]
fn a_task_that_names_a_registered_agent_goes_to_its_lane() {
    let fixture = assigning();
    fixture.task("inbox", &Task::new("t-1").owner("bob"));
    // The lane is made where there is none.
    fixture.task("inbox", &Task::new("t-2").owner("carol"));
    fixture.task("inbox", &Task::new("t-3").owner("stranger"));
    assert_eq!(names(&fixture, "inbox"), ["t-3.yaml"]);
    assert_eq!(names(&fixture, "assigned/bob"), ["t-1.yaml"]);
    assert_eq!(names(&fixture, "assigned/carol"), ["t-2.yaml"]);
    let text = std::fs::read_to_string(fixture.work().join("assigned/bob/t-1.yaml")).unwrap();
    assert!(text.contains("status: assigned") && !text.contains("assigned_at: null"), "{text}");
    let ledger = fixture.ledger();
    let events = ledger.of_record("t-1");
    assert_eq!((events[1].name(), events[1].text("role")), ("claimed", "daemon"));
    fixture.sh("mv work/assigned/bob/t-1.yaml work/inbox/").success();
    assert_eq!(names(&fixture, "inbox"), ["t-1.yaml", "t-3.yaml"], "who gave it back keeps it not");
    fixture.fsck_clean();
}

// P14.3
#[test]
fn a_task_that_waits_is_assigned_when_it_is_ready() {
    let fixture = assigning();
    fixture.task("inbox", &Task::new("first"));
    fixture.task("inbox", &Task::new("then").owner("bob").with("dependencies: [first]\n"));
    assert_eq!(names(&fixture, "assigned/bob").len(), 0);
    fixture.workfs(&["claim", "first", "--agent", "carol"]).success();
    fixture.workfs(&["done", "first", "--agent", "carol", "--summary", "made"]).success();
    assert_eq!(names(&fixture, "assigned/bob"), ["then.yaml"]);
}

// P14.3
#[test]
fn a_task_that_is_ready_and_is_given_its_agent_later_goes_to_its_lane() {
    let fixture = assigning();
    fixture.sh("cd work/inbox; echo 'title: x' > t-1.yaml").success();
    assert_eq!(names(&fixture, "inbox"), ["t-1.yaml"]);
    fixture.sh("cd work/inbox; echo 'agent: bob' >> t-1.yaml").success();
    assert_eq!(names(&fixture, "assigned/bob"), ["t-1.yaml"]);
    // Who gave it back keeps it not, whatever is saved then.
    fixture
        .sh("mv work/assigned/bob/t-1.yaml work/inbox/; echo '#' >> work/inbox/t-1.yaml")
        .success();
    assert_eq!(names(&fixture, "inbox"), ["t-1.yaml"]);
    fixture.fsck_clean();
}

// P14.3 P14.8
#[test]
fn who_is_registered_gets_what_is_ready_and_names_it() {
    let fixture = assigning();
    for (id, agent) in [("t-1", "dan"), ("t-2", "daniel"), ("t-3", "eve")] {
        fixture.task("inbox", &Task::new(id).owner(agent));
    }
    fixture.workfs(&["agent", "add", "eve", "--role", "observer"]).success();
    fixture.workfs(&["agent", "add", "dan"]).success();
    assert_eq!(names(&fixture, "assigned/dan"), ["t-1.yaml"]);
    assert_eq!(names(&fixture, "inbox"), ["t-2.yaml", "t-3.yaml"]);
    let waits = || fixture.workfs(&["status"]).success().stdout.contains("a chore waits: ");
    assert!(waits(), "an observer gets none");
    fixture.workfs(&["agent", "add", "eve", "--role", "agent"]).success();
    assert_eq!(names(&fixture, "assigned/eve"), ["t-3.yaml"]);
    assert!(!waits(), "it is done");
    // By a mount, too.
    let dir = fixture.outside("daniel");
    std::fs::create_dir(&dir).unwrap();
    fixture.workfs(&["mount", dir.to_str().unwrap(), "--agent", "daniel"]).success();
    assert_eq!(names(&fixture, "assigned/daniel"), ["t-2.yaml"]);
    fixture.fsck_clean();
}

// P14.3
#[test]
fn who_is_registered_gets_all_of_it_however_it_is_written_and_however_much_it_is() {
    let fixture = assigning();
    let many = "
import os
for nth in range(600):
    with open(f'work/inbox/t-{nth:03}.yaml', 'w') as file:
        file.write('agent: nobody\\n' if nth % 2 else 'agent: dan\\n')
    os.makedirs('work/collaboration/inbox', exist_ok=True)
with open('work/inbox/escaped.yaml', 'w') as file:
    file.write('agent: \"d\\\\x61n\"\\n')
with open('work/collaboration/inbox/other.yaml', 'w') as file:
    file.write('agent: dan\\n')
";
    fixture.sh(&format!("{} - <<'END'\n{many}END", python().display())).success();
    fixture.workfs(&["agent", "add", "dan"]).success();
    let got = names(&fixture, "assigned/dan");
    assert_eq!((got.len(), got[0].as_str()), (301, "escaped.yaml"));
    assert_eq!(names(&fixture, "inbox").len(), 300);
    fixture.fsck_clean();
}

// P14.1 P14.3
#[test]
fn who_switches_it_on_has_what_is_ready_assigned() {
    let fixture = with_chores("assign: false", Setup::default());
    fixture.workfs(&["agent", "add", "bob"]).success();
    fixture.sh("cd work/inbox; for i in 1 2 3; do echo 'agent: bob' > t-$i.yaml; done").success();
    fixture
        .sh("mv work/inbox/t-3.yaml work/assigned/ann; mv work/assigned/ann/t-3.yaml work/inbox")
        .success();
    let layout = fixture.outside("other.yaml");
    let on = "workspaces: [{ path: work, kind: task, chores: { assign: true } }]\n";
    std::fs::write(&layout, on).unwrap();
    fixture.unmount_all();
    fixture.workfs(&["init", "--layout", layout.to_str().unwrap()]).success();
    fixture.mount_all();
    assert_eq!(names(&fixture, "assigned/bob"), ["t-1.yaml", "t-2.yaml"]);
    assert_eq!(names(&fixture, "inbox"), ["t-3.yaml"], "who gave it back keeps it not");
    fixture.fsck_clean();
}

// P14.2 P14.3
#[test]
fn a_follow_up_is_assigned_too() {
    let fixture = assigning();
    let result = "result: { summary: built, next_agent: carol }\n";
    fixture.task("inbox", &Task::new("t-1").owner("bob").with(result));
    fixture.sh("mv work/assigned/bob/t-1.yaml work/done/bob/").success();
    let made = names(&fixture, "assigned/carol");
    assert!(made.len() == 1 && made[0].ends_with("-followup-t-1.yaml"), "{made:?}");
    assert_eq!(names(&fixture, "inbox").len(), 0);
    fixture.fsck_clean();
}

// P14.2 P14.3
#[test]
fn an_observer_is_given_nothing() {
    let fixture = assigning();
    fixture.workfs(&["agent", "add", "eve", "--role", "observer"]).success();
    fixture.task("inbox", &Task::new("t-1").owner("eve"));
    assert_eq!(names(&fixture, "inbox"), ["t-1.yaml"]);
    let why = fixture.workfs(&["why"]).success();
    assert!(why.stdout.contains("eve is an observer, who may have no task"), "{why}");
    // It is anybody's to claim; and nobody tried what is forbidden.
    fixture.workfs(&["claim", "t-1", "--agent", "bob"]).success();
    let result = "result: { summary: built, next_agent: eve }\n";
    fixture.task("inbox", &Task::new("t-2").owner("bob").with(result));
    fixture.sh("mv work/assigned/bob/t-2.yaml work/done/bob/").success();
    assert_eq!(names(&fixture, "inbox").len(), 0);
    let why = fixture.workfs(&["why"]).success();
    assert!(why.stdout.contains("handoff work/done/bob/t-2.yaml"), "{why}");
    assert!(fixture.ledger().0.iter().all(|event| event.name() != "forbidden"));
    fixture.fsck_clean();
}

// P14.3 P14.8
#[test]
fn nobody_is_given_what_would_be_no_record_in_its_lane() {
    let layout = "workspaces: [{ path: '**/tasks', kind: task, chores: { assign: true } }]\n";
    let fixture = Setup::default().layout(layout).start();
    fixture.workfs(&["agent", "add", "tasks"]).success();
    fixture.sh("mkdir -p tasks/inbox; echo 'agent: tasks' > tasks/inbox/t-1.yaml").success();
    assert!(fixture.path("tasks/inbox/t-1.yaml").exists());
    let why = fixture.workfs(&["why"]).success().stdout;
    assert!(why.contains("`tasks/assigned/tasks` is no directory of the workspace's"), "{why}");
    let ran = fixture.workfs(&["claim", "t-1", "--agent", "tasks"]).failure();
    assert!(ran.stderr.contains("`tasks/assigned/tasks` is no directory of"), "{ran}");
    assert!(fixture.path("tasks/inbox/t-1.yaml").exists());
    fixture.fsck_clean();
}

// P14.8
#[test]
fn what_waits_is_told_of_at_once_and_not_with_the_next_round() {
    let fixture = assigning();
    fixture.workfs(&["agent", "add", "eve", "--role", "observer"]).success();
    fixture.task("inbox", &Task::new("t-1").owner("eve"));
    for command in ["status", "doctor"] {
        let ran = fixture.workfs(&[command]);
        assert!(ran.stdout.contains("eve is an observer"), "{command}: {ran}");
    }
}

// P14.1
#[test]
fn by_default_nobody_is_assigned_anything() {
    let fixture = Fixture::new();
    fixture.workfs(&["agent", "add", "bob"]).success();
    fixture.task("inbox", &Task::new("t-1").owner("bob"));
    assert_eq!(names(&fixture, "inbox"), ["t-1.yaml"]);
}

// P14.1
#[test]
fn an_unknown_chore_is_refused() {
    let fixture = Setup::default().prepare();
    let layout = fixture.outside("layout.yaml");
    for (chores, wrong) in [("asign: true", "asign"), ("archive: 3", "")] {
        let text = format!("workspaces: [{{ path: work, kind: task, chores: {{ {chores} }} }}]\n");
        std::fs::write(&layout, text).unwrap();
        let ran = fixture.workfs(&["init", "--layout", layout.to_str().unwrap()]);
        assert!(ran.code == 2 && ran.stderr.contains(wrong), "{ran}");
    }
}

// P14.1
#[test]
fn nothing_is_assigned_in_a_workspace_for_which_the_layout_does_not_ask_it() {
    let layout = "workspaces:\n  - { path: work, kind: task, chores: { assign: true } }\n  \
                  - { path: other, kind: task }\n";
    let fixture = Setup::default().layout(layout).start();
    fixture.workfs(&["agent", "add", "bob"]).success();
    fixture.sh("mkdir -p work/inbox other/inbox").success();
    let text = Task::new("t-1").owner("bob").text();
    for dir in ["work", "other"] {
        save(&fixture.path(dir).join("inbox/t-1.yaml"), text.as_bytes()).unwrap();
    }
    assert_eq!(names(&fixture, "assigned/bob"), ["t-1.yaml"]);
    fixture.sh("test -e other/inbox/t-1.yaml && ! test -e other/assigned/bob/t-1.yaml").success();
    fixture.fsck_clean();
}

// P14.3 P14.8
#[test]
fn what_waits_in_a_workspace_within_another_is_assigned_by_the_next_daemon_too() {
    let workspace = |path| format!("{{ path: {path}, kind: task, chores: {{ assign: true }} }}");
    let layout = format!("workspaces: [{}, {}]\n", workspace("work"), workspace("work/team"));
    let fixture = Setup::default().layout(&layout).start();
    fixture.workfs(&["agent", "add", "bob"]).success();
    fixture.sh("mkdir -p work/inbox work/team/{inbox,assigned/bob/t-1.yaml}").success();
    // What has the same name in the one around is another record, and nobody's.
    fixture.task("inbox", &Task::new("t-1"));
    fixture.task("team/inbox", &Task::new("t-1").owner("bob"));
    let status = || fixture.workfs(&["status"]).success().stdout;
    assert!(status().contains("a chore waits: work/team/inbox/t-1.yaml: "), "{}", status());
    fixture.sh("rmdir work/team/assigned/bob/t-1.yaml").success();
    // The next daemon begins with a round.
    fixture.unmount_all();
    fixture.mount_all();
    let lane = fixture.path("work/team/assigned/bob/t-1.yaml");
    until_polled("it is assigned", || lane.is_file().then_some(()));
    assert_eq!(names(&fixture, "inbox"), ["t-1.yaml"]);
    assert!(!status().contains("a chore waits"), "{}", status());
    fixture.fsck_clean();
}

// P1.6 P14.3
#[test]
fn what_somebody_writes_is_assigned_when_it_is_saved() {
    let fixture = assigning();
    fixture.task("inbox", &Task::new("first"));
    fixture.task("inbox", &Task::new("then").owner("bob").with("dependencies: [first]\n"));
    let then = fixture.work().join("inbox/then.yaml");
    let mut written = OpenOptions::new().append(true).open(then).unwrap();
    written.write_all(b"note: mine\n").unwrap();
    fixture.workfs(&["claim", "first", "--agent", "carol"]).success();
    fixture.workfs(&["done", "first", "--agent", "carol", "--summary", "made"]).success();
    assert_eq!(names(&fixture, "inbox"), ["then.yaml"]);
    // A `close` that fails is silent here; what was saved tells.
    drop(written);
    assert_eq!(names(&fixture, "assigned/bob"), ["then.yaml"]);
    let text = std::fs::read_to_string(fixture.work().join("assigned/bob/then.yaml")).unwrap();
    assert!(text.contains("note: mine"), "{text}");
    fixture.fsck_clean();
}
