//! Somebody who listens at the name of a store's socket, where the directory lets him.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;

use workfs::daemon::StorePaths;

use crate::harness::{Fixture, Setup, asked, left_out, needs, program, run};

const BOB: u32 = 64_031;
const ANN: u32 = 64_032;

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

// P10.2 P4.5
#[test]
fn who_only_reads_a_store_is_kept_from_it_by_nobody_who_listens_beside_it() {
    let Some((fixture, socket)) = among_others().filter(|_| needs(&["setpriv"])) else { return };
    let everybody_s = |path: PathBuf, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    everybody_s(fixture.store().to_owned(), 0o644);
    everybody_s(fixture.store().with_extension("db.lock"), 0o644);
    let _listener = listening_as(BOB, socket.clone());
    everybody_s(socket, 0o666);
    // Where what cannot lie beside the store lies.
    let own = fixture.outside("ann");
    fs::create_dir(&own).unwrap();
    chown(&own, Some(ANN), Some(ANN)).unwrap();
    let as_ann = |script: &str| {
        let mut command = Command::new("setpriv");
        command.args([&format!("--reuid={ANN}"), &format!("--regid={ANN}"), "--clear-groups"]);
        command.args(["sh", "-c", script]).env("HOME", &own).env("XDG_RUNTIME_DIR", &own);
        let program = program();
        run(command.env("W", program).env("WORKFS_STORE", fixture.store()).current_dir("/"))
    };
    as_ann("exec \"$W\" status").success();
    let ran = as_ann(
        "\"$W\" daemon --store \"$WORKFS_STORE\" --linger >/dev/null 2>&1 &
         for n in $(seq 100); do \"$W\" ps >/dev/null && break; sleep 0.1; done
         \"$W\" status && \"$W\" unmount --all && wait",
    );
    assert!(ran.success().stdout.contains("served by process"));
}

// P10.2
#[test]
fn who_gives_the_store_s_name_to_a_file_of_its_own_is_no_operator() {
    let Some((fixture, _)) = among_others() else { return };
    fs::set_permissions(fixture.store().parent().unwrap(), fs::Permissions::from_mode(0o777))
        .unwrap();
    fixture.mount_all();
    fs::write(fixture.path("secret"), "root's alone").unwrap();
    // Others come to the socket then.
    fixture.workfs(&["agent", "add", "ann", "--uid", &ANN.to_string()]).success();
    let aside = fixture.outside("aside");
    fs::rename(fixture.store(), &aside).unwrap();
    fs::write(fixture.store(), "").unwrap();
    chown(fixture.store(), Some(BOB), None).unwrap();
    let show = serde_json::json!({"do": {"show": {"what": "secret"}}});
    // He is sent away unheard.
    let mut said = String::new();
    BufReader::new(fixture.connected_as(BOB)).read_line(&mut said).unwrap();
    assert!(said.contains(&format!("this store is not user {BOB}'s")), "{said}");
    fs::rename(&aside, fixture.store()).unwrap();
    // To whom it is given is one.
    chown(fixture.store(), Some(BOB), None).unwrap();
    let said = asked(&fixture.connected_as(BOB), &show);
    assert!(said.contains("root's alone"), "{said}");
}

// P4.1
#[test]
fn nothing_is_written_to_what_a_link_in_place_of_the_log_leads_to() {
    let Some((fixture, _)) = among_others() else { return };
    fixture.mount_all();
    let (log, precious) = (fixture.store().with_extension("db-wal"), fixture.outside("precious"));
    fs::write(&precious, "kept").unwrap();
    fs::rename(&log, fixture.outside("log")).unwrap();
    std::os::unix::fs::symlink(&precious, &log).unwrap();
    for nth in 0..40 {
        fs::write(fixture.path(&format!("f{nth}")), vec![nth; 100_000]).unwrap();
    }
    assert_eq!(fs::read(&precious).unwrap(), b"kept");
    fs::rename(fixture.outside("log"), &log).unwrap();
    fixture.fsck_clean();
}
