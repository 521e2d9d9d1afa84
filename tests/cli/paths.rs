//! What a word on the command line means, inside of mounts and outside.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::harness::{Fixture, Ran, Setup, Task, left_out, needs, program, run};

/// `workfs ARGUMENTS` in a directory.
#[track_caller]
fn inside(fixture: &Fixture, dir: &Path, arguments: &[&str]) -> Ran {
    run(fixture.command(arguments).current_dir(dir))
}

/// A plain directory with one file.
fn source(fixture: &Fixture) -> PathBuf {
    let dir = fixture.outside("from");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("a.txt"), "a\n").unwrap();
    dir
}

// P8.1
#[test]
fn in_a_mount_of_a_part_paths_begin_at_that_part() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.path("scratchpad/x/docs")).unwrap();
    fs::write(fixture.path("scratchpad/x/docs/notes"), "notes\n").unwrap();
    let part = fixture.base().join("part");
    fs::create_dir(&part).unwrap();
    fixture.workfs(&["mount", part.to_str().unwrap(), "--root", "scratchpad/x"]).success();

    let from = source(&fixture);
    inside(&fixture, &part, &["import", from.to_str().unwrap(), "docs"]).success();
    assert!(fixture.path("scratchpad/x/docs/a.txt").exists());
    let to = part.join("more");
    fixture.workfs(&["import", from.to_str().unwrap(), to.to_str().unwrap()]).success();
    assert!(fixture.path("scratchpad/x/more/a.txt").exists());
    assert!(!fixture.path("docs").exists() && !fixture.path("more").exists());
    for what in ["docs/notes", "./docs/notes", "more/../docs/notes"] {
        let shown = inside(&fixture, &part, &["show", what]).success();
        assert!(shown.stdout.starts_with("# docs/notes\n"), "{shown}");
    }
    let out = fixture.outside("out");
    inside(&fixture, &part, &["export", out.to_str().unwrap(), "--path", "docs"]).success();
    let find = format!("find '{}' -name notes", out.display());
    assert_eq!(fixture.sh(&find).success().stdout.lines().count(), 1);
    fixture.workfs(&["unmount", part.to_str().unwrap()]).success();
}

// P8.1
#[test]
fn steps_up_lead_out_of_a_mount() {
    let fixture = Fixture::new();
    let run_in = |dir: &Path, store: &str, arguments: &[&str]| {
        run(fixture.command_on(Path::new(store), arguments).current_dir(dir))
    };
    let name = fixture.store().file_name().unwrap().to_str().unwrap();
    let store = format!("../../store/{name}");
    run_in(&fixture.work(), &store, &["status"]).success();
    run_in(&fixture.work(), &format!("inbox/../../../store/{name}"), &["status"]).success();
    let inside = run_in(&fixture.work(), "../s.db", &["status"]);
    assert!(inside.code == 2 && inside.stderr.contains("lies inside"), "{inside}");
    // Nothing is asked of a mount that is dead.
    let dead = fixture.work();
    let script = format!(
        "cd '{}' && kill -9 {} && \"$WORKFS\" --store '{store}' unmount ../../m0",
        dead.display(),
        fixture.daemon_pid()
    );
    fixture.bash().with("WORKFS", program()).run(&script).success();
    assert!(crate::harness::mounted_below(fixture.base()).is_empty());
}

// P8.1
#[test]
fn in_a_bind_mount_paths_begin_at_what_is_bound() {
    if !rustix::process::geteuid().is_root() || !needs(&["unshare"]) {
        return left_out("a bind mount needs root and unshare");
    }
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let bound = fixture.base().join("bound");
    fs::create_dir(&bound).unwrap();
    // Also where what it was bound from is not to be seen.
    for hidden in ["", "umount \"$ROOT\" &&"] {
        let script = format!(
            "mount --bind work \"$BOUND\" && cd \"$BOUND\" && {hidden}
            exec \"$WORKFS\" --store \"$STORE\" show inbox/t-1.yaml"
        );
        let mut command = std::process::Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script]).current_dir(fixture.root());
        command.env("BOUND", &bound).env("ROOT", fixture.root());
        command.env("WORKFS", program());
        let shown = run(command.env("STORE", fixture.store())).success();
        assert!(shown.stdout.starts_with("# inbox/t-1.yaml\n"), "{shown}");
    }
}

// P8.1
#[test]
fn a_bare_word_is_what_lies_in_the_working_directory_else_an_id() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fs::write(fixture.path("work/README"), "read me\n").unwrap();
    let from = source(&fixture);
    let from = from.to_str().unwrap();

    inside(&fixture, &fixture.work(), &["import", from, "inbox"]).success();
    assert!(fixture.path("work/inbox/a.txt").exists());
    assert!(!fixture.path("inbox").exists(), "it was taken from the root of the tree");
    inside(&fixture, &fixture.work(), &["import", from, "new"]).success();
    assert!(fixture.path("work/new/a.txt").exists());
    for what in ["README", "./README"] {
        let shown = inside(&fixture, &fixture.work(), &["show", what]).success();
        assert!(shown.stdout.contains("work/README"), "{shown}");
    }
    let log = inside(&fixture, &fixture.work(), &["log", "inbox"]).success();
    assert!(log.stdout.contains("t-1"), "{log}");
    for dir in [fixture.root(), &fixture.work(), fixture.base()] {
        inside(&fixture, dir, &["show", "t-1"]).success();
        inside(&fixture, dir, &["list", "work"]).success();
    }
    // A file comes before an id of the same name, and the directory says which is meant.
    fs::write(fixture.path("work/t-1"), "not the task\n").unwrap();
    let shown = inside(&fixture, &fixture.work(), &["show", "t-1"]).success();
    assert!(shown.stdout.contains("not the task"), "{shown}");
    let shown = inside(&fixture, fixture.root(), &["show", "t-1"]).success();
    assert!(!shown.stdout.contains("not the task"), "{shown}");
    // Outside of mounts a word is a path from the root of the tree.
    inside(&fixture, fixture.base(), &["import", from, "top"]).success();
    assert!(fixture.path("top/a.txt").exists());
}

// P8.2
#[test]
fn what_lies_in_no_mount_of_the_store_is_refused() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let from = source(&fixture);
    let from = from.to_str().unwrap();
    let nowhere = fixture.outside("tasks");
    let nowhere = nowhere.to_str().unwrap();
    let ran = fixture.workfs(&["import", from, nowhere]).failure();
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.stderr.contains("lies in no mount") && ran.stderr.contains("slash"), "{ran}");
    let ran = fixture.workfs(&["show", "/work/inbox/t-1.yaml"]).failure();
    assert!(ran.code == 2 && ran.stderr.contains("`work/inbox/t-1.yaml`"), "{ran}");

    let ran = fixture.workfs(&["log", "/"]).failure();
    assert!(ran.code == 2 && ran.stderr.contains("`.`"), "{ran}");
    assert!(fixture.workfs(&["log", "."]).success().stdout.contains("t-1"));

    let other = Setup::default().prepare();
    other.workfs(&["init"]).success();
    for to in [fixture.path("work/inbox"), fixture.path("new")] {
        let ran = other.workfs(&["import", from, to.to_str().unwrap()]).failure();
        assert_eq!(ran.code, 2, "{ran}");
        assert!(ran.stderr.contains("another store") || ran.stderr.contains(", not of"), "{ran}");
    }
    let ran = inside(&other, &fixture.work(), &["import", from, "inbox"]).failure();
    assert_eq!(ran.code, 2, "{ran}");
    assert!(!fixture.path("tmp").exists() && !fixture.path("work/inbox/a.txt").exists());
    let names = other.workfs(&["log", "--json"]).success();
    assert!(!names.stdout.contains("a.txt"), "{names}");
}

// P8.2
#[test]
fn what_is_not_in_the_tree_though_it_is_shown_in_a_mount_is_refused() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let from = source(&fixture);
    let from = from.to_str().unwrap();
    fs::create_dir(fixture.path("scratchpad")).unwrap();
    let part = fixture.base().join("part");
    fs::create_dir(&part).unwrap();
    fixture.workfs(&["mount", part.to_str().unwrap(), "--root", "scratchpad"]).success();
    for root in [fixture.root(), &part] {
        for what in [".workfs", ".workfs/why", ".workfs/new"] {
            let ran = inside(&fixture, root, &["import", from, what]).failure();
            assert!(ran.code == 2 && ran.stderr.contains("what workfs shows"), "{ran}");
        }
    }
    fixture.sh("mkdir .workfs/txn/mine").success();
    let dir = fixture.path(".workfs/txn/mine/work");
    for arguments in [&["import", from, "inbox"][..], &["show", "inbox/t-1.yaml"]] {
        let ran = inside(&fixture, &dir, arguments).failure();
        assert!(ran.code == 2 && ran.stderr.contains("lies in a transaction"), "{ran}");
    }
    fixture.sh("rmdir .workfs/txn/mine").success();
    fixture.workfs(&["unmount", part.to_str().unwrap()]).success();
}

// P8.1
#[test]
fn commands_work_where_a_name_is_not_utf_8() {
    let fixture = Fixture::new();
    let from = source(&fixture);
    let dir = fixture.path("scratchpad").join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir_all(&dir).unwrap();
    let before = fs::read_dir(fixture.root()).unwrap().count();
    inside(&fixture, &dir, &["import", from.to_str().unwrap(), "in"]).success();
    assert_eq!(fs::read(dir.join("in/a.txt")).unwrap(), b"a\n");
    assert_eq!(fs::read_dir(fixture.root()).unwrap().count(), before);
    let shown = inside(&fixture, &dir, &["show", "./in/a.txt", "--json"]).success().json();
    assert_eq!(shown["path"], "scratchpad/caf\\xe9/in/a.txt");
    let absent = inside(&fixture, &dir, &["show", "./x"]).failure();
    assert_eq!(absent.code, 4, "{absent}");
    let mut command = fixture.command(&["show"]);
    let ran = run(command.arg(OsStr::from_bytes(b"caf\xe9"))).failure();
    assert_eq!(ran.code, 4, "{ran}");
}

// P8.1
#[test]
fn a_user_who_is_an_agent_calls_commands_in_mounts_as_anybody() {
    if !rustix::process::geteuid().is_root() || !needs(&["setpriv"]) {
        return left_out("acting as another user needs root and setpriv");
    }
    let fixture = Setup::default().arguments(&["-o", "allow_other"]).start();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.sh("echo mine > secret && chmod 600 secret && echo all > open").success();
    let store_dir = fixture.store().parent().unwrap();
    fs::set_permissions(fixture.base(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(store_dir, fs::Permissions::from_mode(0o700)).unwrap();
    let socket = || fs::metadata(store_dir.join("team.db.sock")).unwrap().mode() & 0o777;
    assert_eq!(socket(), 0o600);
    let added = fixture.workfs(&["agent", "add", "bob", "--uid", "64001"]).success();
    assert!(added.stdout.contains("chmod o+x"), "what is in his way is told: {added}");
    fs::set_permissions(store_dir, fs::Permissions::from_mode(0o711)).unwrap();
    let added = fixture.workfs(&["agent", "add", "bob", "--uid", "64001"]).success();
    assert!(!added.stdout.contains("chmod") && socket() == 0o666, "{added}");
    let as_user = |uid: u32, arguments: &[&str]| {
        let mut command = std::process::Command::new("setpriv");
        command.args([format!("--reuid={uid}"), format!("--regid={uid}")]).arg("--clear-groups");
        command.arg(program()).args(arguments);
        command.current_dir(fixture.work()).env("HOME", "/").env_remove("WORKFS_STORE");
        run(&mut command)
    };
    let as_bob = |arguments: &[&str]| as_user(64001, arguments);
    for what in ["t-1", "inbox/t-1.yaml"] {
        let shown = as_bob(&["show", what]).success();
        assert!(shown.stdout.contains("work/inbox/t-1.yaml"), "{shown}");
    }
    assert!(as_bob(&["ps"]).success().stdout.contains(fixture.root().to_str().unwrap()));
    // He claims for himself, whoever made the mount.
    assert_eq!(as_bob(&["claim", "--next"]).success().stdout, "work/assigned/bob/t-1.yaml\n");
    as_bob(&["heartbeat"]).success();
    // At the socket he reads no more than in the mount, and a user who is nobody's agent nothing.
    assert!(as_bob(&["show", "../open"]).success().stdout.ends_with("all\n"));
    for arguments in [
        &["show", "../secret"][..],
        &["show", "t-1", "--at", "1"],
        &["unmount", "--all"],
        &["export", "/tmp/not-to-be-made"],
    ] {
        assert_eq!(as_bob(arguments).failure().code, 6, "{arguments:?}");
    }
    for arguments in [&["list"][..], &["show", "../open"], &["ps"], &["claim", "t-1"]] {
        let ran = as_user(64002, arguments).failure();
        assert!(ran.code == 6 && ran.stderr.contains("not user 64002's"), "{ran}");
    }
    // Where no user is an agent any more, the socket is its owner's alone.
    fixture.workfs(&["agent", "remove", "bob"]).success();
    assert_eq!(as_bob(&["project", "new"]).failure().code, 6);
    fixture.workfs(&["agent", "remove", "uid-64001"]).success();
    assert_eq!(socket(), 0o600);
}

// P13.2
#[test]
fn a_command_in_a_transaction_changes_nothing_outside_of_it_and_says_what_it_tells() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.sh("mkdir .workfs/txn/mine").success();
    let dir = fixture.path(".workfs/txn/mine/work");
    let before = fixture.ledger().last_g();
    for arguments in [
        &["claim", "t-1"][..],
        &["claim", "--next"],
        &["done", "t-1"],
        &["project", "new"],
        &["restore", "t-1", "--at", "1"],
        &["agent", "add", "eve"],
    ] {
        let ran = inside(&fixture, &dir, arguments).failure();
        assert!(ran.code == 2 && ran.stderr.contains("not the transaction mine"), "{ran}");
    }
    assert_eq!(fixture.ledger().last_g(), before);
    for arguments in [&["show", "t-1"][..], &["why", "t-1"], &["log", "t-1"], &["list"]] {
        let ran = inside(&fixture, &dir, arguments).success();
        assert!(ran.stderr.contains("nothing of the transaction mine"), "{ran}");
        let ran = inside(&fixture, &dir, &[&["-q"], arguments].concat()).success();
        assert!(ran.stderr.is_empty(), "{ran}");
    }
    // A lease is no part of the tree.
    let ran = inside(&fixture, &dir, &["heartbeat"]).failure();
    assert!(ran.code == 3 && !ran.stderr.contains("transaction"), "{ran}");
    fixture.sh("rmdir .workfs/txn/mine").success();
}

// P8.1
#[test]
fn what_a_command_printed_is_understood_by_the_next_wherever_one_is() {
    let fixture = Fixture::new();
    for nth in 1..4 {
        fixture.task("inbox", &Task::new(&format!("t-{nth}")));
    }
    let part = fixture.base().join("part");
    fs::create_dir(&part).unwrap();
    fixture.workfs(&["mount", part.to_str().unwrap(), "--root", "work"]).success();
    let here = [
        (fixture.base().to_owned(), "work/"),
        (fixture.path("work/inbox"), "work/"),
        // A mount of a part names things as it shows them.
        (part.join("done"), ""),
    ];
    for (dir, above) in here {
        let claimed = inside(&fixture, &dir, &["claim", "--next", "--agent", "bob"]).success();
        let path = claimed.stdout.trim();
        assert!(path.starts_with(&format!("{above}assigned/bob/t-")), "{claimed}");
        inside(&fixture, &dir, &["show", path]).success();
        inside(&fixture, &dir, &["release", path, "--agent", "bob"]).success();
        // It is not there any more: where it is is told.
        let gone = inside(&fixture, &dir, &["show", path]).failure();
        assert!(gone.stderr.contains(&format!("it is `{above}inbox/t-")), "{gone}");
    }
    // What lies where one is comes first.
    fs::create_dir_all(fixture.path("work/work/inbox")).unwrap();
    fs::write(fixture.path("work/work/inbox/t-1.yaml"), "another\n").unwrap();
    let shown = inside(&fixture, &fixture.work(), &["show", "work/inbox/t-1.yaml"]).success();
    assert!(shown.stdout.contains("another"), "{shown}");
    fixture.workfs(&["unmount", part.to_str().unwrap()]).success();
}

// P8.1
#[test]
fn a_record_s_log_is_told_by_each_path_that_it_had() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let moves = [
        ("inbox/t-1.yaml", "assigned/bob/t-1.yaml"),
        ("assigned/bob/t-1.yaml", "assigned/bob/t-1.yml"),
        ("assigned/bob/t-1.yml", "assigned/bob/t-1.yml~"),
    ];
    for (from, to) in moves {
        fs::rename(fixture.work().join(from), fixture.work().join(to)).unwrap();
        let by_id = fixture.workfs(&["log", "t-1"]).success().stdout;
        let by_path = fixture.workfs(&["log", &format!("work/{from}")]).success().stdout;
        assert_eq!(by_path, by_id, "{from}");
    }
    let log = fixture.workfs(&["log", "t-1"]).success().stdout;
    assert!(log.contains("t-1.yml v2 by root from work/assigned/bob/t-1.yaml\n"), "{log}");
    // Where it never was there is nothing to tell of.
    let never = fixture.workfs(&["log", "work/done/bob/t-1.yaml"]).failure();
    assert_eq!(never.code, 4, "{never}");
    // A part names both as it shows them.
    let part = fixture.base().join("part");
    fs::create_dir(&part).unwrap();
    fixture.workfs(&["mount", part.to_str().unwrap(), "--root", "work/assigned"]).success();
    let log = inside(&fixture, &part, &["log", "bob/t-1.yaml"]).success().stdout;
    assert!(log.contains(" bob/t-1.yml v2 by root from bob/t-1.yaml\n"), "{log}");
    assert!(log.contains(" to bob/t-1.yml~\n") && !log.contains("work/"), "{log}");
    fixture.workfs(&["unmount", part.to_str().unwrap()]).success();
    // The lane may be gone, too, and the record as well.
    let script = "cd work/assigned/bob && mv t-1.yml~ t-1.yml && mv t-1.yml ../../inbox/t-1.yaml";
    for script in [&format!("{script} && rmdir \"$PWD\""), "rm work/inbox/t-1.yaml"] {
        fixture.sh(script).success();
        let by_id = fixture.workfs(&["log", "t-1"]).success().stdout;
        let by_path = fixture.workfs(&["log", "work/assigned/bob/t-1.yml"]).success().stdout;
        assert_eq!(by_path, by_id, "{script}");
    }
    fixture.fsck_clean();
}

#[test]
fn a_removed_record_is_found_by_its_path() {
    let fixture = Fixture::new();
    fixture.sh("mkdir -p work/collaboration/inbox").success();
    for dir in ["work/inbox", "work/collaboration/inbox"] {
        fixture.sh(&format!("echo 'title: {dir}' > {dir}/x.yaml && rm {dir}/x.yaml")).success();
    }
    let both = fixture.workfs(&["log", "x"]).failure();
    assert!(both.stderr.contains("work/collaboration/inbox/x.yaml"), "{both}");
    for path in ["work/inbox/x.yaml", "work/collaboration/inbox/x.yaml"] {
        let said = fixture.workfs(&["log", path]).success();
        let lines: Vec<&str> = said.stdout.lines().collect();
        assert!(lines.len() == 2 && lines[1].contains(&format!(" removed {path}")), "{said}");
        let dir = path.strip_suffix("/x.yaml").unwrap();
        let text = fixture.workfs(&["show", path, "--at", "1"]).success();
        assert!(text.stdout.contains(&format!("title: {dir}")), "{text}");
    }
    let never = fixture.workfs(&["log", "work/inbox/y.yaml"]).failure();
    assert!(never.stderr.contains("there is no `work/inbox/y.yaml`"), "{never}");
}

// P8.1
#[test]
fn symbolic_links_in_a_mount_are_followed_as_a_program_follows_them() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.task("inbox", &Task::new("t-2"));
    fixture
        .sh("mv work/inbox/t-1.yaml work/assigned/bob/ && ln -s work/assigned/bob mine
             ln -s $PWD/work/assigned/bob absolute && ln -s mine/t-1.yaml last && ln -s work all
             mkdir scratchpad && echo text > scratchpad/text && ln -s text scratchpad/link
             ln -s nothing scratchpad/dangling && ln -s /etc/hostname scratchpad/outside
             ln -s $PWD $OUT/mount")
        .success();
    let here = |arguments: &[&str]| inside(&fixture, fixture.root(), arguments);
    let outside = fixture.outside("mount/mine/t-1.yaml");
    let outside = outside.to_str().unwrap();
    for what in ["mine/t-1.yaml", "./absolute/t-1.yaml", "last", "all/../mine/t-1.yaml", outside] {
        for command in ["log", "show", "why", "heartbeat"] {
            here(&[command, what]).success();
        }
        let shown = here(&["show", what]).success();
        assert!(shown.stdout.starts_with("# work/assigned/bob/t-1.yaml\n"), "{shown}");
    }
    // Also from a directory in which nothing has the first name.
    let below = inside(&fixture, &fixture.path("scratchpad"), &["show", "mine/t-1.yaml"]);
    assert!(below.success().stdout.starts_with("# work/assigned/bob/t-1.yaml\n"));
    assert_eq!(here(&["list", "all"]).success().stdout, here(&["list", "work"]).stdout);
    let log = here(&["log", "scratchpad/link"]).success().stdout;
    assert!(log.contains(" scratchpad/text ") && !log.contains("scratchpad/link"), "{log}");

    // What leads to nothing in the tree is meant itself, and so is what is exported.
    for name in ["scratchpad/dangling", "scratchpad/outside"] {
        let shown = here(&["show", name]).success().stdout;
        assert!(shown.starts_with(&format!("# {name}\n# link ")), "{shown}");
    }
    for (path, exported) in [("mine", "./mine"), ("mine/", "./t-1.yaml")] {
        let to = fixture.outside(exported);
        here(&["export", to.to_str().unwrap(), "--path", path]).success();
        let find = format!("cd '{}' && find -mindepth 1", to.display());
        assert_eq!(fixture.sh(&find).success().stdout, format!("{exported}\n"));
    }

    // In `ready/`, too.
    for what in ["work/ready/.next", "all/ready/t-2.yaml"] {
        let shown = here(&["show", what]).success().stdout;
        assert!(shown.starts_with("# work/inbox/t-2.yaml\n"), "{shown}");
    }
    here(&["claim", "all/ready/t-2.yaml", "--agent", "bob"]).success();
    here(&["release", "mine/t-2.yaml"]).success();
    here(&["done", "last", "--summary", "all is well"]).success();
    let now = fixture.ledger().last_g().to_string();
    here(&["restore", "scratchpad/link", "--at", &now]).success();
    let link = fs::read_link(fixture.path("scratchpad/link")).unwrap();
    assert_eq!(link, Path::new("text"));
    fixture.fsck_clean();
}

// P8.1 P6.7
#[test]
fn a_path_longer_than_the_kernel_takes_one_is_refused_at_once() {
    let fixture = Fixture::new();
    let at = fixture.ledger().last_g().to_string();
    let asks = |what: &str| {
        let restore = ["restore", what, "--at", &at];
        let asks: [&[&str]; 5] =
            [&["show", what], &["log", what], &["claim", what], &["why", what], &restore];
        asks.map(|arguments| fixture.workfs(arguments).failure())
    };
    // Such a one took a time that grew with the square of its names, and no deadline counted for it.
    for ran in asks(&"a/".repeat(50_000)) {
        assert_eq!(ran.code, 2, "{ran}");
        assert!(ran.stderr.contains("100000 bytes are over the limit of 4095"), "{ran}");
        assert!(ran.stderr.len() < 1000, "{ran}");
    }
    for ran in asks(&format!("work/{}", "n".repeat(256))) {
        assert_eq!(ran.code, 2, "{ran}");
        assert!(ran.stderr.contains("256 bytes are over the limit of 255"), "{ran}");
    }
    for ran in asks(&format!("work/inbox/{}", "a/".repeat(2000))) {
        assert_eq!(ran.code, 4, "{ran}");
        assert!(ran.stderr.contains("`workfs show work/inbox` lists what is there"), "{ran}");
    }
}
