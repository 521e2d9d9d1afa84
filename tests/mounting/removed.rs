//! A store whose files somebody removes while a daemon has it.

use std::fs;
use std::process::{Child, Command};

use crate::harness::{Fixture, Setup, Task, await_end, pid_alive};

/// A process that stands in the first mount until it is ended.
fn stands_in(fixture: &Fixture) -> Child {
    Command::new("sleep").arg("600").current_dir(fixture.work()).spawn().unwrap()
}

/// All files of the store.
fn files(fixture: &Fixture) -> Vec<std::path::PathBuf> {
    let all = fs::read_dir(fixture.store().parent().unwrap()).unwrap();
    all.map(|file| file.unwrap().path()).collect()
}

// P6.3 P6.2
#[test]
fn a_daemon_that_stays_for_a_mount_s_users_takes_nothing_from_the_next_store() {
    let fixture = Fixture::new();
    let old = fixture.daemon_pid();
    let mut user = stands_in(&fixture);
    let dir = fixture.root().to_str().unwrap();
    let ran = fixture.workfs(&["unmount", dir, "--lazy"]).success();
    assert!(ran.stderr.contains(&format!("its daemon, process {old}, stays")), "{ran}");
    files(&fixture).iter().for_each(|file| fs::remove_file(file).unwrap());
    fixture.workfs(&["init"]).success();
    fixture.mount_all();
    fixture.task("inbox", &Task::new("t-1"));
    let new = fixture.daemon_pid();
    assert!(old != new && pid_alive(old));
    let before = files(&fixture);
    user.kill().unwrap();
    user.wait().unwrap();
    await_end(old);
    assert_eq!(files(&fixture), before);
    assert_eq!(fixture.daemon_pid(), new);
    fixture.workfs(&["show", "t-1"]).success();
    fixture.fsck_clean();
    // Nothing is said where nobody uses it.
    let ran = fixture.workfs(&["unmount", dir, "--lazy"]).success();
    assert!(!ran.stderr.contains("stays"), "{ran}");
    await_end(new);
}

// P6.8
#[test]
fn directories_are_given_back_also_when_the_list_of_them_was_removed() {
    let fixture = Setup::default().mounts(2).start();
    let pid = fixture.daemon_pid();
    files(&fixture).iter().for_each(|file| fs::remove_file(file).unwrap());
    for mount in fixture.mounts() {
        // Its socket is gone: the system unmounts.
        fixture.workfs(&["unmount", mount.to_str().unwrap()]).success();
    }
    await_end(pid);
    for mount in fixture.mounts() {
        fs::write(mount.join("probe"), b"").unwrap();
    }
}
