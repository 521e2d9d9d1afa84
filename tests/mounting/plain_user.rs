//! All of it by a user who is not root: mounting goes through fusermount3.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use crate::harness::{
    Fixture, Ran, Setup, Task, left_out, mounted_below, needs, processes_of, run, until_polled,
};

/// User and group `nobody` of Debian.
const NOBODY: u32 = 65534;

fn can_become_another() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    let is_open = fs::metadata("/dev/fuse").is_ok_and(|device| device.mode() & 0o006 == 0o006);
    if !is_root || !is_open {
        left_out("another user needs root to become one, and /dev/fuse with its usual mode");
    }
    is_root && is_open && needs(&["setpriv", "fusermount3"])
}

/// A fixture that is that user's.
fn of_nobody() -> Fixture {
    let fixture = Setup::default().prepare();
    own(fixture.base());
    fixture
}

fn own(path: &Path) {
    std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| own(&entry.unwrap().path()));
    }
}

/// Runs a command as that user.
fn as_nobody(fixture: &Fixture, command: &Command) -> Ran {
    let mut own = Command::new("setpriv");
    own.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]);
    own.arg(command.get_program()).args(command.get_args()).current_dir(fixture.base());
    own.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    run(&mut own)
}

fn workfs(fixture: &Fixture, arguments: &[&str]) -> Ran {
    as_nobody(fixture, &fixture.command(arguments))
}

/// Runs a snippet with the mount as `M`.
fn sh(fixture: &Fixture, snippet: &str) -> Ran {
    let mut command = Command::new("bash");
    as_nobody(fixture, command.arg("-c").arg(snippet).env("M", fixture.root()))
}

fn nothing_is_left(fixture: &Fixture) {
    until_polled("the daemon ends", || processes_of(fixture.store()).is_empty().then_some(()));
    assert!(mounted_below(fixture.base()).is_empty());
}

#[test]
fn who_is_not_root_mounts_claims_saves_and_unmounts() {
    if !can_become_another() {
        return;
    }
    let fixture = of_nobody();
    let mount = fixture.root().to_str().unwrap();
    workfs(&fixture, &["mount", mount]).success();
    let task = Task::new("t-1").text();
    fs::write(fixture.outside("t-1.yaml"), &task).unwrap();
    let out = fixture.outside("");
    sh(&fixture, "mkdir -p $M/work/inbox $M/work/assigned/bob").success();
    sh(&fixture, &format!("cp {}/t-1.yaml $M/work/inbox/", out.display())).success();
    sh(&fixture, "mv $M/work/inbox/t-1.yaml $M/work/assigned/bob/").success();
    sh(&fixture, "grep -q 'status: assigned' $M/work/assigned/bob/t-1.yaml").success();
    sh(&fixture, "sed -i s/assigned/nonsense/ $M/work/assigned/bob/t-1.yaml").failure();
    sh(&fixture, "sed -i s/assigned/in_progress/ $M/work/assigned/bob/t-1.yaml").success();
    // Nobody else comes in, root included.
    assert!(fs::read_dir(fixture.root()).is_err());
    workfs(&fixture, &["fsck"]).success();
    let said = workfs(&fixture, &["unmount", mount]);
    assert!(said.ok(), "{said}");
    nothing_is_left(&fixture);
}

#[test]
fn who_is_not_root_unmounts_with_fusermount() {
    if !can_become_another() {
        return;
    }
    let fixture = of_nobody();
    let mount = fixture.root().to_str().unwrap();
    workfs(&fixture, &["mount", mount]).success();
    sh(&fixture, "echo x > $M/note && cat $M/note").success();
    sh(&fixture, "fusermount3 -u $M").success();
    nothing_is_left(&fixture);
    workfs(&fixture, &["exec", "--agent", "bob", "--", "sh", "-c", "cat note && id -u"]).success();
    nothing_is_left(&fixture);
}
