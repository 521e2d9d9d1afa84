//! A move to where lanes lie, of which none was named.

use std::fs;

use crate::harness::{Errno, Fixture, Setup, Task};

/// The command that the last refusal says.
fn way_out(fixture: &Fixture, index: usize) -> String {
    let why = fs::read_to_string(fixture.mount(index).join(".workfs/why")).unwrap();
    let told = why.lines().find_map(|line| line.trim().strip_prefix("do:")).unwrap();
    told.trim().strip_prefix("name a lane: ").unwrap_or_else(|| panic!("{why}")).to_owned()
}

// P3.2
#[test]
fn the_way_out_can_be_typed_in_whatever_a_workspace_is_called() {
    for name in ["my work", "it's $HOME", "-r", "two\\nlines"] {
        let layout = format!("workspaces: [{{ path: \"{name}\", kind: task }}]\n");
        let fixture = Setup::default().layout(&layout).start();
        let mount = fixture.mount(0).to_owned();
        let work = mount.join(name.replace("\\n", "\n"));
        fs::write(work.join("inbox/t-1.yaml"), "status: new\n").unwrap();
        fs::rename(work.join("inbox/t-1.yaml"), work.join("assigned/t-1.yaml")).unwrap_err();
        let told = way_out(&fixture, 0);
        fixture.bash().run(&format!("cd '{}' && {told}", mount.display())).success();
        assert!(work.join("assigned/YOU/t-1.yaml").exists(), "{told}");
    }
}

/// The first mount is the operator's, the second zoe's, who has no lane.
fn operator_and_zoe() -> Fixture {
    let fixture = Setup::default().mounts(2).prepare();
    fixture.mount_at(fixture.mount(0)).success();
    fixture.make_directories();
    let agents = fixture.mount(1).to_str().unwrap().to_owned();
    fixture.workfs(&["mount", &agents, "--agent", "zoe"]).success();
    fixture
}

// P1.9 P3.2
#[test]
fn an_agent_s_task_does_not_become_the_lane_that_it_lacks() {
    let fixture = operator_and_zoe();
    fixture.task("inbox", &Task::new("t-1"));
    let mount = fixture.mount(1).to_owned();
    let claim = "mv work/inbox/t-1.yaml work/assigned/zoe";
    let sh = |command: &str| fixture.bash().run(&format!("cd '{}' && {command}", mount.display()));
    let refused = sh(claim).failure();
    assert!(refused.stderr.contains("No such file or directory"), "{refused}");
    let why = fs::read_to_string(mount.join(".workfs/why")).unwrap();
    assert!(why.contains("make it first: mkdir work/assigned/zoe"), "{why}");
    sh(&format!("mkdir work/assigned/zoe && {claim}")).success();
    assert!(mount.join("work/assigned/zoe/t-1.yaml").exists());
}

// P3.2
#[test]
fn a_lane_that_was_forgotten_has_a_way_out_that_works() {
    let fixture = operator_and_zoe();
    for (index, you) in [(0, "YOU"), (1, "zoe")] {
        let mount = fixture.mount(index).to_owned();
        for from in ["work/inbox/t-1.yaml", "work/ready/t-1.yaml", "work/ready/.next"] {
            fixture.task("inbox", &Task::new("t-1"));
            let to = mount.join("work/assigned").join(from.rsplit('/').next().unwrap());
            let refused = fs::rename(mount.join(from), to).unwrap_err();
            assert_eq!(Errno::from_io_error(&refused), Some(Errno::PERM), "{from}: {you}");
            let told = way_out(&fixture, index);
            fixture.bash().run(&format!("cd '{}' && {told}", mount.display())).success();
            let lane = format!("work/assigned/{you}/t-1.yaml");
            assert!(mount.join(&lane).exists(), "{from}: {told}");
            fs::remove_file(fixture.path(&lane)).unwrap();
        }
        assert!(!mount.join("work/assigned/t-1.yaml").exists());
    }
    // An agent that writes there is not told of a lane of the file's name, either.
    fs::write(fixture.mount(1).join("work/assigned/t-2.yaml"), "id: t-2\n").unwrap_err();
    let told = way_out(&fixture, 1);
    assert_eq!(told, "cp FILE work/assigned/zoe/");
}

// P9.6 P3.2
#[test]
fn next_under_another_name_has_a_way_out_of_this_workspace() {
    let layout = "workspaces:\n  - { path: tasks, kind: task, dirs: { inbox: todo, assigned: 'doing/{owner}' } }\n";
    let fixture = Setup::default().layout(layout).start();
    let tasks = fixture.mount(0).join("tasks");
    fs::create_dir(tasks.join("doing/bob")).unwrap();
    fs::write(tasks.join("todo/t-1.yaml"), "status: new\n").unwrap();
    fs::rename(tasks.join("ready/.next"), tasks.join("doing/bob/mine")).unwrap_err();
    let why = fs::read_to_string(fixture.mount(0).join(".workfs/why")).unwrap();
    let told = why.lines().find_map(|line| line.trim().strip_prefix("do:")).unwrap();
    let told = told.split_once(": ").unwrap().1;
    fixture.bash().run(&format!("cd '{}' && {told}", fixture.mount(0).display())).success();
    assert!(tasks.join("doing/bob/t-1.yaml").exists(), "{why}");
}

// P10.1
#[test]
fn whoever_can_be_no_agent_has_no_lane() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    for name in ["workfs", "uid-7"] {
        for made in [
            format!("mkdir work/assigned/{name}"),
            format!("mkdir work/x && mv work/x work/assigned/{name}"),
        ] {
            fixture.sh(&made).failure();
            let why = fs::read_to_string(fixture.mount(0).join(".workfs/why")).unwrap();
            assert!(why.contains(&format!("`{name}` is the name of whoever is no agent")), "{why}");
        }
        fs::remove_dir(fixture.path("work/x")).unwrap();
    }
    fixture.workfs(&["agent", "add", "uid-7", "--uid", "7"]).success();
    fixture.sh("mkdir work/assigned/uid-7 && echo x > work/done/workfs").success();
    fixture.fsck_clean();
}

// P10.4
#[test]
fn what_somebody_has_who_is_no_agent_somebody_else_can_finish() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.workfs(&["agent", "add", "lead", "--role", "operator"]).success();
    let me = fixture.workfs(&["claim", "t-1", "--json"]).success().json();
    assert_eq!(me["path"], "work/assigned/root/t-1.yaml", "{me}");
    let done = ["done", "t-1", "--agent", "lead", "--summary", "x"];
    fixture.workfs(&done).success();
    assert!(fixture.path("work/done/root/t-1.yaml").exists());
    // Whoever has nothing there has no lane either.
    fixture.sh("mkdir work/done/workfs").failure();
    fixture.fsck_clean();
}
