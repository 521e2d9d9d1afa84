//! Somebody who listens at the name of a store's socket, where the directory lets him.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use workfs::daemon::StorePaths;

use crate::harness::{Fixture, Setup, left_out};

const BOB: u32 = 64_031;

/// A socket that a user listens at.
fn listening_as(uid: u32, socket: PathBuf) -> UnixListener {
    // Whose it is the kernel notes when it is listened at; of a thread of its own no other is changed.
    let listen = move || {
        rustix::thread::set_thread_uid(rustix::thread::Uid::from_raw(uid)).unwrap();
        UnixListener::bind(socket).unwrap()
    };
    std::thread::spawn(listen).join().unwrap()
}

/// A store in a directory in which everybody makes files; `None` if acting as others cannot be had.
fn among_others() -> Option<(Fixture, PathBuf)> {
    if !rustix::process::geteuid().is_root() {
        left_out("acting as other users needs root");
        return None;
    }
    let fixture = Setup::default().prepare();
    fixture.workfs(&["init"]).success();
    fs::set_permissions(fixture.base(), fs::Permissions::from_mode(0o711)).unwrap();
    let dir = fixture.store().parent().unwrap();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o1777)).unwrap();
    let socket = StorePaths::of(fixture.store()).unwrap().socket();
    Some((fixture, socket))
}

// P10.2
#[test]
fn who_may_not_write_the_store_is_asked_nothing_and_sent_nothing() {
    let Some((fixture, socket)) = among_others() else { return };
    let listener = listening_as(BOB, socket.clone());
    let root = fixture.root().to_str().unwrap();
    for arguments in [
        &["list"][..],
        &["mount", root],
        &["mount", "-f", root],
        &["exec", "--agent", "ann", "--", "true"],
        &["unmount", "--all"],
    ] {
        let ran = fixture.workfs(arguments);
        assert_eq!(ran.code, 6, "{ran}");
        assert!(ran.stderr.contains(&format!("user {BOB} listens at the socket")), "{ran}");
        assert!(ran.stderr.contains(socket.to_str().unwrap()), "{ran}");
        assert!(ran.stderr.contains("remove that socket"), "{ran}");
        let mut sent = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut sent).unwrap();
        assert_eq!(sent, b"", "{arguments:?}");
    }
    // Root removes it, and all goes on.
    fs::remove_file(&socket).unwrap();
    fixture.mount_all();
}

// P10.2
#[test]
fn whoever_may_write_the_store_may_have_its_daemon() {
    let Some((fixture, socket)) = among_others() else { return };
    let listener = listening_as(BOB, socket);
    for (owner, mode) in [(BOB, 0o600), (0, 0o666)] {
        chown(fixture.store(), Some(owner), None).unwrap();
        fs::set_permissions(fixture.store(), fs::Permissions::from_mode(mode)).unwrap();
        let mut list = fixture.command(&["list"]).spawn().unwrap();
        let mut asked = [0; 9];
        listener.accept().unwrap().0.read_exact(&mut asked).unwrap();
        assert_eq!(&asked, b"{\"workfs\"");
        list.kill().unwrap();
        list.wait().unwrap();
    }
}
