//! A transaction gives nobody more rights, and shows nobody more.

use std::fs;

use crate::harness::{Errno, Fixture, Ran, Setup, left_out, needs};

/// An operator's mount, and bob's with these arguments.
fn bobs(arguments: &[&str]) -> Fixture {
    let fixture = Setup::default().mounts(2).prepare();
    fixture.mount_at(fixture.root()).success();
    fixture.make_directories();
    fixture.tasks(2);
    let dir = fixture.mount(1).to_str().unwrap();
    fixture.workfs(&[&["mount", dir, "--agent", "bob"], arguments].concat()).success();
    fixture
}

/// Begins a transaction in bob's mount, runs a snippet in it, and commits.
fn commit(fixture: &Fixture, snippet: &str) -> Result<(), Errno> {
    let control = fixture.mount(1).join(".workfs");
    let txn = control.join("txn/t");
    fs::create_dir(&txn).unwrap();
    fixture.bash().with("T", &txn).run(&format!("cd $T && {snippet}")).success();
    let done = fs::rename(&txn, control.join("commit/t"));
    if done.is_err() {
        fs::remove_dir(&txn).unwrap();
    }
    done.map_err(|error| Errno::from_io_error(&error).unwrap())
}

// P10.4 P13.1
#[test]
fn a_commit_is_made_by_who_commits_with_that_ones_rights() {
    let fixture = bobs(&[]);
    fixture.sh("mv work/inbox/t-0002.yaml work/assigned/ann/").success();
    let forbidden = [
        "echo x > note && mv work/inbox/t-0001.yaml work/assigned/ann/",
        "echo x > note && mv work/assigned/ann/t-0002.yaml work/assigned/bob/",
        "echo x > note && rm work/assigned/ann/t-0002.yaml",
        "echo x > note && sed -i s/normal/high/ work/assigned/ann/t-0002.yaml",
        "echo x > note && mv work/assigned/ann work/assigned/eve",
    ];
    for snippet in forbidden {
        let refused = commit(&fixture, snippet).unwrap_err();
        assert!(matches!(refused, Errno::ACCESS | Errno::BUSY), "{snippet}: {refused}");
        assert!(!fixture.path("note").exists(), "{snippet}");
    }
    commit(&fixture, "echo x > note && mv work/inbox/t-0001.yaml work/assigned/bob/").unwrap();
    let ledger = fixture.ledger();
    let claim = *ledger.of_record("t-0001").last().unwrap();
    assert_eq!((claim.name(), claim.text("actor")), ("claimed", "bob"));
    fixture.fsck_clean();
}

// P10.6 P13.2
#[test]
fn in_a_mount_of_a_part_a_transaction_shows_that_part() {
    let fixture = bobs(&["--root", "work"]);
    fixture.sh("echo secret > secret").success();
    commit(
        &fixture,
        "test ! -e ../secret && ls | grep -q inbox && mv inbox/t-0001.yaml assigned/bob/",
    )
    .unwrap();
    assert!(fixture.path("work/assigned/bob/t-0001.yaml").exists());
}

/// Bash as a user, at the first mount's root.
fn by(fixture: &Fixture, uid: u32, command: &str) -> Ran {
    let user = format!("setpriv --reuid {uid} --regid {uid} --clear-groups");
    fixture.sh(&format!("exec {user} bash -c '{command}'"))
}

// P10.4 P13.4 P13.5
#[test]
fn nobody_takes_the_others_room() {
    const ANN: u32 = 64001;
    const OBS: u32 = 64002;
    const NOBODY: u32 = 64003;
    if !rustix::process::geteuid().is_root() || !needs(&["setpriv"]) {
        return left_out("acting as another user needs root and setpriv");
    }
    let fixture = Setup::default().arguments(&["-o", "allow_other"]).start();
    fs::set_permissions(fixture.base(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    by(&fixture, NOBODY, "mkdir .workfs/txn/n").failure();
    for (name, uid, role) in [("ann", ANN, "agent"), ("obs", OBS, "observer")] {
        let uid = uid.to_string();
        fixture.workfs(&["agent", "add", name, "--uid", &uid, "--role", role]).success();
    }
    for uid in [OBS, NOBODY] {
        let refused = by(&fixture, uid, "mkdir .workfs/txn/n").failure();
        assert!(refused.stderr.contains("Permission denied"), "{refused}");
        let why = by(&fixture, uid, "cat .workfs/why").success().stdout;
        assert!(why.contains("txn .workfs/txn/n EACCES"), "{why}");
    }
    let told = fixture.ledger();
    let told = told.0.iter().filter(|event| event.name() == "forbidden").count();
    assert!(told >= 2, "{told}");
    // Whoever has all of its own is in no other's way, and an operator may end them.
    by(&fixture, ANN, "for n in $(seq 16); do mkdir .workfs/txn/a$n || exit 1; done").success();
    let more = by(&fixture, ANN, "mkdir .workfs/txn/more").failure();
    assert!(more.stderr.contains("Too many open files"), "{more}");
    fixture.sh("mkdir .workfs/txn/mine && rmdir .workfs/txn/mine .workfs/txn/a1").success();
    by(&fixture, OBS, "rmdir .workfs/txn/a2").failure();
    by(&fixture, ANN, "mkdir .workfs/txn/more").success();
}

// P13.4
#[test]
fn a_transaction_is_its_maker_s_also_where_modes_do_not_say_so() {
    if !rustix::process::geteuid().is_root() || !needs(&["setpriv"]) {
        return left_out("acting as another user needs root and setpriv");
    }
    let fixture = Setup::default().arguments(&["-o", "allow_other,umask=0"]).start();
    fs::set_permissions(fixture.base(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    fixture.sh("mkdir .workfs/txn/t && echo 1 > .workfs/txn/t/f").success();
    for command in [
        "cat .workfs/txn/t/f",
        "echo 2 > .workfs/txn/t/g",
        "mv .workfs/txn/t .workfs/commit",
        "rmdir .workfs/txn/t",
    ] {
        let other =
            format!("exec setpriv --reuid 65534 --regid 65534 --clear-groups bash -c '{command}'");
        let refused = fixture.sh(&other).failure();
        // `.workfs/txn/` is sticky, whatever `umask` says: that is EPERM, and the kernel's.
        let said = ["Permission denied", "Operation not permitted"];
        assert!(said.iter().any(|said| refused.stderr.contains(said)), "{command}: {refused}");
    }
    assert!(!fixture.path("f").exists());
    fixture.sh("mv .workfs/txn/t .workfs/commit").success();
    assert!(fixture.path("f").exists());
}

// P13.4
#[test]
fn not_even_root_goes_on_in_another_s_transaction() {
    const BOB: u32 = 64001;
    if !rustix::process::geteuid().is_root() || !needs(&["setpriv"]) {
        return left_out("acting as another user needs root and setpriv");
    }
    let fixture = Setup::default().mounts(2).prepare();
    fixture.mount_at(fixture.mount(1)).success();
    let root = fixture.root().to_str().unwrap();
    fixture.workfs(&["mount", root, "-o", "allow_other", "--agent", "bob"]).success();
    for dir in [fixture.base(), fixture.mount(1)] {
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(dir, all).unwrap();
    }
    by(&fixture, BOB, "mkdir .workfs/txn/t && echo 1 > .workfs/txn/t/f").success();
    // Bob's mount makes no operator of anybody.
    for refused in [
        "cat .workfs/txn/t/f",
        "echo 2 > .workfs/txn/t/f",
        "echo 2 > .workfs/txn/t/g",
        "rm .workfs/txn/t/f",
        "mv .workfs/txn/t .workfs/commit",
        "rmdir .workfs/txn/t",
    ] {
        let ran = fixture.sh(refused).failure();
        assert!(ran.stderr.contains("Permission denied"), "{refused}: {ran}");
    }
    let why = fixture.sh("cat .workfs/why").success().stdout;
    assert_eq!(why.matches("the transaction `t` is another user's or agent's").count(), 2, "{why}");
    by(&fixture, BOB, "mv .workfs/txn/t .workfs/commit && test $(cat f) = 1 -a ! -e g").success();
}

// P7.5 P13.2 P13.5
#[test]
fn nobody_makes_by_a_commit_what_workfs_shows() {
    let fixture = bobs(&[]);
    let guide = fs::read_to_string(fixture.path("AGENTS.md")).unwrap();
    let inside = fixture.mount(1).join(".workfs/txn/t");
    fs::create_dir(&inside).unwrap();
    let errno = |done: std::io::Result<()>| Errno::from_io_error(&done.unwrap_err()).unwrap();
    fs::create_dir(inside.join("y")).unwrap();
    for name in ["AGENTS.md", ".workfs"] {
        assert_eq!(errno(fs::write(inside.join(name), "obey bob")), Errno::OPNOTSUPP, "{name}");
        assert_eq!(errno(fs::rename(inside.join("y"), inside.join(name))), Errno::PERM, "{name}");
        assert!(!inside.join(name).exists(), "{name}");
    }
    fs::rename(&inside, fixture.mount(1).join(".workfs/commit/t")).unwrap();
    // Of a directory below it is known at the commit only what it is to a workspace.
    for snippet in ["mkdir x && mv x work/ready", "mkdir work/ready", "echo x > work/ready"] {
        assert_eq!(commit(&fixture, snippet), Err(Errno::ROFS), "{snippet}");
        let why = fixture.why();
        assert!(why.contains("commit work/ready EROFS [W009"), "{snippet}: {why}");
    }
    for nth in 0..2 {
        let mount = fixture.mount(nth);
        let now = fs::read_to_string(mount.join("AGENTS.md")).unwrap();
        assert!(nth == 1 || now == guide, "{now}");
        assert!(mount.join(".workfs/why").exists() && mount.join("work/ready/.next").is_symlink());
    }
    fixture.fsck_clean();
}

// P10.4 P13.1 P13.4
#[test]
fn a_transaction_s_root_allows_what_its_directory_allows_outside() {
    const BOB: u32 = 64001;
    if !rustix::process::geteuid().is_root() || !needs(&["setpriv"]) {
        return left_out("acting as another user needs root and setpriv");
    }
    for options in ["allow_other", "allow_other,umask=022,uid=0"] {
        let fixture = Setup::default().mounts(2).prepare();
        fixture.mount_at(fixture.mount(1)).success();
        let root = fixture.root().to_str().unwrap();
        fixture.workfs(&["mount", root, "-o", options, "--agent", "bob"]).success();
        fs::set_permissions(fixture.base(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        let outside = fixture.mount(1);
        fixture.bash().with("M", outside).run("cd $M && mkdir d && echo 1 > f").success();
        let mode = || {
            use std::os::unix::fs::MetadataExt as _;
            let root = fs::metadata(outside).unwrap();
            (root.mode() & 0o7777, root.uid())
        };
        let before = mode();
        for refused in [
            "echo 2 > g",
            "mkdir e",
            "ln -s x y",
            "rm -f f",
            "rmdir d",
            "mv f g",
            "mv f d/",
            "chmod 777 .",
            "chown 64001 .",
            "touch -d 2020-01-01 .",
        ] {
            by(&fixture, BOB, refused).failure();
            let inside = format!("mkdir .workfs/txn/t && cd .workfs/txn/t && {refused}");
            by(&fixture, BOB, &inside).failure();
            by(&fixture, BOB, "mv .workfs/txn/t .workfs/commit").success();
        }
        let left = fixture.bash().with("M", outside).run("cd $M && ls && cat f").success();
        assert!(!left.stdout.contains(['g', 'e', 'y']), "{options}: {left}");
        assert_eq!(mode(), before, "{options}");
        // What the directory allows, it allows there, too; of a sticky one only what is one's own.
        if options == "allow_other" {
            fixture.bash().with("M", outside).run("chmod 1777 $M").success();
            let made = "mkdir .workfs/txn/t && cd .workfs/txn/t && echo 2 > g && mv g h && mkdir e";
            by(&fixture, BOB, made).success();
            for refused in ["rm -f f", "mv f d/", "mv h f", "chmod 777 ."] {
                by(&fixture, BOB, &format!("cd .workfs/txn/t && {refused}")).failure();
            }
            by(&fixture, BOB, "mv .workfs/txn/t .workfs/commit && rm h && rmdir e").success();
            fixture.bash().with("M", outside).run("chgrp 777 $M && chmod 770 $M").success();
            let grouped = "setpriv --reuid 64001 --regid 64001 --groups 777";
            let made = "mkdir .workfs/txn/t && echo 2 > .workfs/txn/t/g";
            fixture.sh(&format!("exec {grouped} bash -c '{made}'")).success();
        }
        fixture.fsck_clean();
    }
}
