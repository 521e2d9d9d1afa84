//! Who is told to use a mount.

use std::process::{Child, Command};

use crate::harness::{Setup, Task};

fn stands_in(dir: &std::path::Path) -> Child {
    Command::new("sleep").arg("600").current_dir(dir).spawn().unwrap()
}

// P6.3
#[test]
fn who_uses_a_mount_is_named_and_nobody_else() {
    let fixture = Setup::default().prepare();
    // It stands in the directory below, and hinders nobody.
    let mut below = stands_in(fixture.root());
    fixture.mount_all();
    fixture.make_directories();
    let task = fixture.task("inbox", &Task::new("t-1"));
    let daemon = fixture.daemon_pid();
    let mut inside = stands_in(&fixture.work());
    let mut reads = Command::new("sleep");
    let mut reads = reads.arg("600").stdin(std::fs::File::open(task).unwrap()).spawn().unwrap();
    let ran = fixture.workfs(&["unmount", fixture.root().to_str().unwrap()]);
    let users = [inside.id(), reads.id()];
    assert_eq!(ran.code, 5, "{ran}");
    let named = |pid: u32| ran.stderr.contains(&format!("({pid})"));
    assert!(users.into_iter().all(named) && !named(daemon) && !named(below.id()), "{ran}");
    for child in [&mut below, &mut inside, &mut reads] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
