//! Mounting: a mount answers when the command returns, and nothing is left when it ends.
//!
//! Each test names the promise of docs/semantics.md that it keeps.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../harness/mod.rs"]
mod harness;

mod again;
mod below;
mod dead;
mod end;
mod exec;
mod in_front;
mod in_use;
mod moved;
mod nested;
mod older;
mod options;
mod plain_user;
mod ready;
mod refused;
mod removed;
mod standing;

use std::process::{Child, Command};

use harness::{Fixture, left_out};

fn may_have_a_name_space() -> bool {
    let may = rustix::process::geteuid().is_root();
    if !may {
        left_out("a name space of mounts needs root");
    }
    may
}

/// Where the kernel lets who mounted end a FUSE connection.
const CONTROL: &str = "/sys/fs/fuse/connections";

/// A process that does nothing, until it is let go of.
struct Idle(Child);

impl Idle {
    fn of(command: &mut Command) -> Idle {
        Idle(command.spawn().unwrap())
    }

    fn standing_in(dir: &std::path::Path) -> Idle {
        Idle::of(Command::new("sleep").arg("600").current_dir(dir))
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        let ended = self.0.kill().and_then(|()| self.0.wait());
        assert!(ended.is_ok() || std::thread::panicking(), "{ended:?}");
    }
}

/// Whether connections can be ended: root's always can.
fn ends_connections() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    is_root || std::fs::read_dir(CONTROL).is_ok_and(|mut all| all.next().is_some())
}

/// The same command where there is no FUSE.
fn without_fuse(fixture: &Fixture, given: &Command) -> Command {
    let nodes = "mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/urandom c 1 9";
    with_devices(nodes, fixture, given)
}

/// The same command where `/dev` has no more than these.
fn with_devices(nodes: &str, fixture: &Fixture, given: &Command) -> Command {
    let hide = format!("mount -t tmpfs none /dev && {nodes} && exec \"$@\"");
    let mut hidden = Command::new("unshare");
    hidden.args(["--mount", "sh", "-c", &hide, "sh"]).arg(given.get_program());
    hidden.args(given.get_args()).current_dir(fixture.base());
    hidden.envs(given.get_envs().filter_map(|(name, value)| Some((name, value?))));
    hidden
}
