//! What commands write outside of the tree: exports, backups, and the store itself.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::harness::{Fixture, Ran, Setup, left_out, needs, program, run};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A script of root's in a name space of mounts of its own, which has `$STORE`, `$OUT` and the program, `w`; `None`
/// where there can be none.
fn in_private(fixture: &Fixture, script: &str) -> Option<Ran> {
    if !rustix::process::geteuid().is_root() || !needs(&["unshare"]) {
        left_out("to mount something needs root and unshare");
        return None;
    }
    let script = format!("w() {{ \"$WORKFS\" --store \"$STORE\" \"$@\"; }}\n{script}");
    let mut command = Command::new("unshare");
    command.args(["--mount", "bash", "-c", &script]);
    command.env("WORKFS", program()).env("OUT", fixture.outside("out"));
    Some(run(command.env("STORE", fixture.store())))
}

// P8.4
#[test]
fn what_cannot_be_written_is_left_out_and_named_and_all_else_is_exported() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("docs")).unwrap();
    fs::write(fixture.path("docs/a"), "a").unwrap();
    fs::write(fixture.path("z"), "z").unwrap();
    fixture.unmount_all();
    fixture.await_no_daemon();
    let out = fixture.outside("out");
    fs::create_dir_all(out.join("docs")).unwrap();
    let script = "mount -t tmpfs -o ro none \"$OUT/docs\" && w export --force \"$OUT\"";
    let Some(ran) = in_private(&fixture, script) else { return };
    assert!(ran.code == 11 && ran.stdout.contains("docs/a: it cannot be written there"), "{ran}");
    assert_eq!(fs::read_to_string(out.join("z")).unwrap(), "z");
    // Of a target that takes nothing there is nothing to name.
    let script = "mount -t tmpfs -o ro none \"$OUT/docs\" && w export --force \"$OUT/docs\"";
    let Some(ran) = in_private(&fixture, script) else { return };
    assert!(ran.code == 6 && ran.stderr.contains("Read-only file system"), "{ran}");
}

// P8.4
#[test]
fn a_target_that_is_closed_itself_keeps_nothing_from_the_directories_in_it() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("docs")).unwrap();
    fs::write(fixture.path("docs/a"), "a").unwrap();
    fs::write(fixture.path("z"), "z").unwrap();
    let to = fixture.outside("to");
    fs::create_dir_all(to.join("docs")).unwrap();
    // Bits alone close nothing to root.
    let cover = workfs_mount::cover(&to).unwrap();
    let is_closed = fs::write(to.join("probe"), "").is_err();
    let ran = fixture.workfs(&["export", "--force", text(&to)]);
    workfs_mount::uncover(&cover).unwrap();
    assert!(!is_closed || ran.code == 11 && ran.stdout.contains("z: "), "{ran}");
    assert_eq!(fs::read_to_string(to.join("docs/a")).unwrap(), "a");
}

// P8.4
#[test]
fn an_export_fills_no_mount_of_its_own_store() {
    let fixture = Fixture::new();
    let to = fixture.outside("to");
    fs::create_dir_all(to.join("docs")).unwrap();
    fixture.mount_at(&to.join("docs")).success();
    fs::create_dir(fixture.path("docs")).unwrap();
    fs::write(fixture.path("docs/a"), "a").unwrap();
    fs::write(fixture.path("z"), "z").unwrap();
    let ran = fixture.workfs(&["export", "--force", text(&to)]);
    assert!(ran.code == 11 && ran.stdout.contains("docs: a mount of workfs is there"), "{ran}");
    assert_eq!(fs::read_to_string(to.join("z")).unwrap(), "z");
    assert!(!fixture.path("a").exists(), "it filled the tree itself");
}

// P8.4
#[test]
fn what_an_export_makes_is_its_owner_s_alone_with_a_daemon_and_without() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("secret")).unwrap();
    fs::set_permissions(fixture.path("secret"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(fixture.path("secret/key"), "k").unwrap();
    for way in ["with", "without"] {
        if way == "without" {
            fixture.unmount_all();
            fixture.await_no_daemon();
        }
        let to = fixture.outside(way);
        fixture.workfs(&["export", "--path", "secret", text(&to)]).success();
        assert_eq!(to.metadata().unwrap().permissions().mode() & 0o777, 0o700, "{way}");
        assert!(to.join("key").exists());
    }
}

// P8.2
#[test]
fn a_disk_without_room_for_a_file_is_full() {
    let fixture = Setup::default().prepare();
    fixture.workfs(&["init"]).success();
    fs::create_dir(fixture.outside("out")).unwrap();
    let script = "
        mount -t tmpfs -o nr_inodes=9 none \"$OUT\" && cd \"$OUT\" || exit
        \"$WORKFS\" --quiet --store own.db init >&2
        for nth in {1..9}; do : > $nth; done 2>/dev/null
        \"$WORKFS\" --store own.db project new; echo \"changed: $?\"
        \"$WORKFS\" --store own.db list; echo \"read: $?\"
        w backup \"$OUT/copy.db\"; echo \"backed up: $?\"";
    let Some(ran) = in_private(&fixture, script) else { return };
    for said in ["changed: 12\n", "read: 0\n", "backed up: 12\n"] {
        assert!(ran.stdout.contains(said), "{said}{ran}");
    }
    assert!(ran.stderr.contains("no space left for the store"), "{ran}");
}

// P8.4
#[test]
fn what_somebody_puts_in_place_of_what_is_exported_stays_what_it_was() {
    use std::os::unix::fs::{MetadataExt as _, chown};
    use std::sync::atomic::{AtomicBool, Ordering};
    if !rustix::process::geteuid().is_root() {
        return left_out("to give a file to another user needs root");
    }
    let fixture = Fixture::new();
    fs::write(fixture.path("x"), vec![7; 8 << 20]).unwrap();
    fs::set_permissions(fixture.path("x"), fs::Permissions::from_mode(0o4755)).unwrap();
    let (out, trap) = (fixture.outside("out"), fixture.outside("trap"));
    let place = out.join("x");
    for _ in 0..3 {
        let _ = fs::remove_dir_all(&out);
        fs::create_dir(&out).unwrap();
        fs::write(&trap, "a program of another's").unwrap();
        chown(&trap, Some(64_001), Some(64_001)).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) && !place.exists() {
                    std::hint::spin_loop();
                }
                // Where the export was faster there is nothing to replace.
                let _ = fs::rename(&trap, &place);
            });
            fixture.workfs(&["export", "--path", "x", text(&out)]).success();
            is_over.store(true, Ordering::Relaxed);
        });
        let found = place.metadata().unwrap();
        assert_eq!((found.uid(), found.mode() & 0o6000), (64_001, 0));
    }
}

// P8.2
#[test]
fn in_a_directory_that_was_removed_what_one_names_is_not_there() {
    let fixture = Setup::default().prepare();
    fixture.workfs(&["init"]).success();
    let dir = fixture.outside("gone");
    fs::create_dir(&dir).unwrap();
    let shell = |arguments: &str| {
        let snippet = format!("cd \"$OUT/gone\" && rmdir \"$OUT/gone\" && \"$W\" {arguments}");
        let ran = fixture.bash().with("W", program()).with("STORE", fixture.store()).run(&snippet);
        fs::create_dir(&dir).unwrap();
        ran.failure()
    };
    let words = ["import . work", "export out", "backup x.db", "restore x.db --force", "mount ."];
    let words = words.map(|words| format!("--store \"$STORE\" {words}"));
    for arguments in words.iter().map(String::as_str).chain(["--store x.db list"]) {
        let ran = shell(arguments);
        assert!(ran.code == 4 && ran.stderr.contains("by its whole path"), "{ran}");
    }
}

// P10.2
#[test]
fn a_store_that_others_may_read_is_its_owner_s_alone_once_it_is_opened_and_that_is_said() {
    let fixture = Setup::default().prepare();
    fixture.workfs(&["init"]).success();
    let set = |mode| {
        fs::set_permissions(fixture.store(), fs::Permissions::from_mode(mode)).unwrap();
    };
    let mode = || fs::metadata(fixture.store()).unwrap().permissions().mode() & 0o777;
    let root = text(fixture.root());
    let commands: [&[&str]; 4] =
        [&["list"], &["list", "--quiet"], &["exec", "true"], &["mount", root]];
    for (arguments, told) in commands.into_iter().zip([0o640, 0o644, 0o660, 0o604]) {
        set(told);
        let ran = fixture.workfs(arguments).success();
        assert_eq!(mode(), 0o600, "{ran}");
        let says = ran.stderr.contains("its owner's alone (0600");
        assert_eq!(says, !arguments.contains(&"--quiet"), "{ran}");
        assert!(!says || ran.stderr.contains(&format!("it had the mode {told:04o}")), "{ran}");
        let again = fixture.workfs(&["list"]).success();
        assert!(again.stderr.is_empty(), "{again}");
        if arguments[0] == "exec" {
            fixture.await_no_daemon();
        }
    }
    let log = fs::read_to_string(fixture.store().with_extension("db.log")).unwrap();
    assert!(log.contains("was open to others") && log.contains("0604"), "{log}");
    // A daemon that has it does nothing about it.
    set(0o640);
    let ran = fixture.workfs(&["list"]).success();
    assert!(ran.stderr.is_empty() && mode() == 0o640, "{ran}");
}

// P8.2
#[test]
fn who_is_not_the_owner_of_a_store_that_its_group_may_write_is_told_the_way_out() {
    const OWNER: u32 = 64_031;
    if !rustix::process::geteuid().is_root() || !needs(&["setpriv"]) {
        left_out("acting as other users needs root");
        return;
    }
    let fixture = Setup::default().prepare();
    fixture.workfs(&["init"]).success();
    let dir = fixture.store().parent().unwrap();
    fs::set_permissions(fixture.base(), fs::Permissions::from_mode(0o711)).unwrap();
    for (path, mode) in [
        (dir, 0o777),
        (fixture.store(), 0o666),
        (&fixture.store().with_extension("db.lock"), 0o666),
    ] {
        std::os::unix::fs::chown(path, Some(OWNER), None).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=64032", "--regid=64032", "--clear-groups"]).arg(program());
    command.arg("--store").arg(fixture.store()).arg("list").current_dir("/");
    let ran = run(command.env("XDG_RUNTIME_DIR", "/nonexistent")).failure();
    let says = ["has the mode 0666", &format!("user {OWNER}"), "-o allow_other"];
    assert!(ran.code == 6 && says.iter().all(|says| ran.stderr.contains(says)), "{ran}");
}
