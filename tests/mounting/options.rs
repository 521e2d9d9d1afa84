//! What `-o` says is so.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use crate::harness::{
    Errno, Fixture, Setup, Task, left_out, needs, program, run, save, until_polled,
};

// P6.9
#[test]
fn through_a_read_only_mount_nothing_changes() {
    let fixture = Setup::default().mounts(2).prepare();
    fixture.mount_at(fixture.mount(0)).success();
    fixture.make_directories();
    fixture.task("inbox", &Task::new("t-1"));
    let reader = fixture.mount(1).to_str().unwrap();
    fixture.workfs(&["mount", reader, "-o", "ro"]).success();

    let there = fixture.mount(1).join("work/inbox/t-1.yaml");
    assert_eq!(fs::read_to_string(&there).unwrap(), Task::new("t-1").text());
    let lane = fixture.mount(1).join("work/assigned/bob/t-1.yaml");
    let errors = [
        fs::rename(&there, &lane).unwrap_err(),
        fs::write(fixture.mount(1).join("new"), b"x").unwrap_err(),
        fs::create_dir(fixture.mount(1).join("dir")).unwrap_err(),
        fs::remove_file(&there).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(Errno::from_io_error(&error), Some(Errno::ROFS));
    }
    assert_eq!(save(&there, b"status: new\n"), Err(Errno::ROFS));
    // Nor by commands that are called in it, which tell what they tell and renew leases.
    let saved = fixture.ledger().last_g();
    let inside = |arguments: &[&str]| {
        run(fixture.command(arguments).current_dir(fixture.mount(1).join("work")))
    };
    for arguments in [
        &["restore", "inbox/t-1.yaml", "--at", "1"][..],
        &["project", "new"],
        &["claim", "t-1", "--agent", "bob"],
        &["agent", "add", "zoe"],
        &["gc", "--delete"],
        &["txn", "--", "true"],
    ] {
        let ran = inside(arguments).failure();
        assert_eq!(ran.code, 6, "{ran}");
        assert!(ran.stderr.contains("is read-only [W009]"), "{ran}");
    }
    inside(&["show", "t-1"]).success();
    inside(&["gc", "--dry-run"]).success();
    assert_eq!(fixture.ledger().last_g(), saved);
    // The other mount goes on, and the reader sees it.
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    until_polled("the move is seen", || (lane.exists() && !there.exists()).then_some(()));
}

// P6.9
#[test]
fn allow_other_lets_others_in_as_far_as_modes_say() {
    if !rustix::process::geteuid().is_root() {
        return left_out("acting as another user needs root");
    }
    if !needs(&["setpriv"]) {
        return;
    }
    let fixture = Setup::default().arguments(&["-o", "allow_other"]).start();
    let base = fixture.base();
    fixture.sh("echo secret > private; chmod 600 private; echo hello > public").success();
    fs::set_permissions(base, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let other = |command: &str| {
        let script =
            format!("exec setpriv --reuid 65534 --regid 65534 --clear-groups bash -c '{command}'");
        fixture.sh(&script)
    };
    assert_eq!(other("cat public").success().stdout, "hello\n");
    let refused = other("cat private").failure();
    assert!(refused.stderr.contains("Permission denied"), "{refused}");
    for command in ["echo x > private", "echo x > public", "rm public", "chmod 777 private"] {
        other(command).failure();
    }
    assert_eq!(fs::read(fixture.path("private")).unwrap(), b"secret\n");
}

// P6.9
#[test]
fn default_permissions_lets_root_without_capabilities_in_as_far_as_modes_say() {
    if !rustix::process::geteuid().is_root() || !needs(&["setpriv"]) {
        return left_out("giving up capabilities needs root and setpriv");
    }
    let fixture = Setup::default().arguments(&["-o", "default_permissions"]).start();
    fixture.sh("echo secret > private; echo hello > public; chmod 000 private").success();
    let bare = |command: &str| {
        fixture.sh(&format!("exec setpriv --bounding-set -all --inh-caps -all {command}"))
    };
    assert_eq!(bare("cat public").success().stdout, "hello\n");
    let refused = bare("cat private").failure();
    assert!(refused.stderr.contains("Permission denied"), "{refused}");
    // Whoever moves a record is asked for the rights of that, and has them.
    fixture.task("inbox", &Task::new("t-1"));
    bare("mv work/inbox/t-1.yaml work/assigned/bob/").success();
}

// P6.9
#[test]
fn what_only_root_is_to_see_or_have_others_do_not() {
    if !rustix::process::geteuid().is_root() {
        return left_out("acting as another user needs root");
    }
    if !needs(&["setpriv", "setfattr", "fallocate"]) {
        return;
    }
    let fixture = Setup::default().arguments(&["-o", "allow_other,suid"]).start();
    fs::set_permissions(fixture.base(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    fixture.sh("echo hello > f && chmod 666 f && setfattr -n trusted.x -v 1 f").success();
    fixture.sh("setfattr -n user.y -v 2 f").success();
    let other = |command: &str| {
        let script =
            format!("exec setpriv --reuid 65534 --regid 65534 --clear-groups bash -c '{command}'");
        fixture.sh(&script).success().stdout
    };
    let names = other("getfattr -m - f");
    assert!(names.contains("user.y") && !names.contains("trusted.x"), "{names}");
    assert!(fixture.sh("getfattr -m - f").success().stdout.contains("trusted.x"));
    for change in ["fallocate -z -l 10 f", "fallocate -l 8192 f", "echo x >> f"] {
        fixture.sh("chmod 4777 f").success();
        other(change);
        assert_eq!(fixture.sh("stat -c %a f").success().stdout, "777\n", "{change}");
    }
}

// P6.9
#[test]
fn uid_gid_and_umask_are_shown() {
    let arguments = ["-o", "uid=1234,gid=2345,umask=027"];
    let fixture = Setup::default().arguments(&arguments).start();
    fs::write(fixture.path("f"), b"x").unwrap();
    let metadata = fs::metadata(fixture.path("f")).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (1234, 2345));
    assert_eq!(metadata.mode() & 0o777, 0o750);
}

// P6.9 P3.10
#[test]
fn uid_gid_and_umask_leave_what_is_computed_below_workfs_alone() {
    let shown = |arguments: &[&str]| {
        let fixture = Setup::default().arguments(arguments).start();
        let bad = "cat > work/inbox/t-1.yaml <<< 'status: nonsense'";
        fixture.sh(bad).failure();
        fixture.task("inbox", &Task::new("t-2"));
        fs::create_dir(fixture.path(".workfs/txn/x")).unwrap();
        let listed = fixture
            .sh("find .workfs -path '*/x/*' -prune -o -printf '%m %U %G %p\\n' | sort -k4")
            .success();
        assert!(listed.stdout.contains("400 ") && listed.stdout.contains(".workfs/rejected/"));
        listed.stdout
    };
    assert_eq!(shown(&["-o", "uid=1234,gid=2345,umask=0"]), shown(&[]));
}

// P4.4
#[test]
fn a_mount_with_sync_normal_keeps_what_it_acknowledged_when_it_is_killed() {
    let fixture = Setup::default().arguments(&["--sync", "normal"]).start();
    let ids = fixture.tasks(20);
    fixture.sh("mv work/inbox/* work/assigned/bob/").success();
    fixture.kill_daemon();
    fixture.mount_all();
    for id in ids {
        assert!(fixture.path("work/assigned/bob").join(format!("{id}.yaml")).exists(), "{id}");
    }
    fixture.fsck_clean();
}

// P6.9
#[test]
fn an_option_wins_over_the_environment_and_contradicts_no_flag() {
    let fixture = Setup::default().prepare();
    let dir = fixture.root().to_str().unwrap();
    let (named, other) = (fixture.store().to_str().unwrap(), fixture.outside("other.db"));
    for (flags, option) in [
        (&["--agent", "bob"][..], "agent=eve"),
        (&["--agent", "bob", "--role", "observer"], "role=agent"),
        (&["--root", "work"], "root=scratchpad"),
        (&["--sync", "full"], "sync=normal"),
        (&[], &format!("store={}", other.display())),
    ] {
        let flag =
            if flags.is_empty() { &["--store", named][..] } else { &flags[flags.len() - 2..] };
        let ran = fixture.workfs(&[&["mount", dir, "-o", option], flags].concat()).failure();
        let both = format!("`{} {}` and `-o {option}` contradict", flag[0], flag[1]);
        assert!(ran.code == 2 && ran.stderr.contains(&both), "{both}: {ran}");
        if flags.first() != Some(&"--sync") {
            let exec = [&["exec", "-o", option], flags, &["--", "true"]].concat();
            let ran = fixture.workfs(&exec).failure();
            assert!(ran.code == 2 && ran.stderr.contains(&both), "{both}: {ran}");
        }
    }
    let nameless = fixture.workfs(&["mount", dir, "-o", "store="]).failure();
    assert!(nameless.code == 2 && nameless.stderr.contains("name a file"), "{nameless}");
    // What says the same twice contradicts nothing.
    let same = format!("store={named},root=/work/,agent=bob,sync=full,role=builder");
    let flags = ["--root", "work", "--agent", "bob", "--sync", "full", "--role", "builder"];
    fixture.workfs(&["init"]).success();
    fixture.workfs(&[&["mount", dir, "-o", &same], &flags[..]].concat()).success();
    fixture.workfs(&["unmount", "--all"]).success();

    let mut command = Command::new(program());
    let own = fixture.command(&[]);
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(fixture.base()).env("WORKFS_STORE", &other);
    command.args(["mount", dir, "-o", &format!("store={named},agent=eve")]);
    run(command.env("WORKFS_AGENT", "bob")).success();
    assert!(!other.exists());
    let mounts = fixture.workfs(&["ps", "--json"]).success().json()["mounts"].clone();
    assert_eq!(mounts[0]["agent"], "eve");
}

// P10.3
#[test]
fn the_environment_says_for_whom_a_mount_acts() {
    let fixture = Setup::default().mounts(2).prepare();
    let mount = |nth: usize, name: &str| {
        let mut command = fixture.command(&["mount", fixture.mount(nth).to_str().unwrap()]);
        run(command.env("WORKFS_AGENT", name)).success();
    };
    mount(0, "bob");
    mount(1, "");
    let mounts = fixture.workfs(&["ps", "--json"]).success().json()["mounts"].clone();
    assert_eq!((&mounts[0]["agent"], &mounts[0]["role"]), (&"bob".into(), &"agent".into()));
    assert_eq!((mounts[1]["agent"].as_str(), &mounts[1]["role"]), (None, &"operator".into()));
}

// P6.1
#[test]
fn a_mount_with_a_setting_that_does_not_exist_is_refused() {
    let fixture = Fixture::new();
    let dir = fixture.root().to_str().unwrap();
    let ran = fixture.workfs(&["mount", dir, "--sync", "sometimes"]).failure();
    assert_eq!(ran.code, 2, "{ran}");
}

// P6.9
#[test]
fn a_remount_is_the_kernel_s_alone_and_that_is_said() {
    let fixture = Fixture::new();
    let dir = fixture.root().to_str().unwrap();
    let ran = fixture.workfs(&["mount", dir, "-o", "remount,ro"]).failure();
    assert!(ran.code == 2 && ran.stderr.contains("`mount -i -o remount,ro DIR`"), "{ran}");
    if !rustix::process::geteuid().is_root() {
        return left_out("a remount needs root");
    }
    let remount =
        |how: &str| fixture.sh(&format!("cd /; mount -i -o remount,{how} '{dir}'")).success();
    remount("ro");
    fixture.sh("touch scratchpad").failure();
    let made = run(fixture.command(&["project", "new"]).current_dir(fixture.root())).failure();
    assert!(made.stderr.contains("is read-only [W009]"), "{made}");
    remount("rw");
    fixture.sh("mkdir scratchpad").success();
}

// P6.9
#[test]
fn permission_bits_hold_where_a_name_goes_without_a_call() {
    if !rustix::process::geteuid().is_root() || !needs(&["setpriv"]) {
        return left_out("acting as another user needs root and setpriv");
    }
    let fixture = Setup::default().arguments(&["-o", "allow_other"]).start();
    fs::set_permissions(fixture.base(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let other = |command: &str| {
        fixture.sh(&format!(
            "exec setpriv --reuid 65534 --regid 65534 --clear-groups bash -c '{command}'"
        ))
    };
    fixture.task("inbox", &Task::new("t-1"));
    fs::write(fixture.outside("t-1.yaml"), Task::new("t-1").text()).unwrap();
    let copy = format!("cp {} work/assigned/bob/", fixture.outside("t-1.yaml").display());
    let copy = copy.as_str();
    fixture.sh("chmod 777 work/assigned/bob").success();
    for mode in ["700", "755", "1777"] {
        fixture.sh(&format!("chmod {mode} work/inbox")).success();
        let refused = other(copy).failure();
        assert!(refused.stderr.contains("Permission denied"), "{mode}: {refused}");
        assert!(fixture.path("work/inbox/t-1.yaml").exists(), "{mode}");
        fixture.sh("rm -f work/assigned/bob/t-1.yaml").success();
    }
    assert!(fixture.why().contains("may not take a name out of `work/inbox`"), "{}", fixture.why());
    fixture.sh("chmod 777 work/inbox").success();
    other(copy).success();

    // Whoever could not move it back does not give it back.
    let hold = "exec 9< .workfs/hold/t-1";
    fixture.sh("chmod 755 work/assigned/bob").success();
    assert!(other(hold).failure().stderr.contains("Permission denied"));
    assert!(fixture.path("work/assigned/bob/t-1.yaml").exists());
    fixture.sh("chmod 777 work/assigned/bob").success();
    other(hold).success();
    until_polled("it is given back", || fixture.path("work/inbox/t-1.yaml").exists().then_some(()));
}

// P6.3
#[test]
fn a_daemon_lingers_also_where_a_later_mount_asks_for_that() {
    let fixture = Setup::default().mounts(2).prepare();
    let dirs: Vec<&str> = fixture.mounts().iter().map(|dir| dir.to_str().unwrap()).collect();
    fixture.workfs(&["mount", dirs[0]]).success();
    fixture.workfs(&["mount", "--linger", dirs[1]]).success();
    let pid = fixture.daemon_pid();
    for dir in dirs {
        fixture.workfs(&["unmount", dir]).success();
    }
    assert_eq!(fixture.daemon_pid(), pid);
    fixture.workfs(&["unmount", "--all"]).success();
    fixture.await_no_daemon();
}
