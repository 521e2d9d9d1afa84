//! Agents by their user, in one mount that others may use, whose directories nobody opened.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use crate::harness::{Fixture, Ran, Setup, Task, asked, left_out, needs, program, until_polled};

pub const BOB: u32 = 64001;
const ANN: u32 = 64002;
const LEAD: u32 = 64003;
pub const NOBODY: u32 = 64004;

/// One mount that others may use, with bob, ann and a coordinator by their users; `None` if that
/// cannot be had.
pub fn shared() -> Option<Fixture> {
    if !rustix::process::geteuid().is_root() || !needs(&["setpriv"]) {
        left_out("acting as other users needs root and setpriv");
        return None;
    }
    let fixture = Setup::default().arguments(&["-o", "allow_other"]).start();
    // The way to the mount, not what is in it.
    fs::set_permissions(fixture.base(), fs::Permissions::from_mode(0o755)).unwrap();
    for id in ["t-1", "t-2", "t-3"] {
        fixture.task("inbox", &Task::new(id));
    }
    // Kernels know the bits by then.
    fixture.sh("ls -lR work > /dev/null").success();
    for (name, uid, role) in
        [("bob", BOB, "agent"), ("ann", ANN, "agent"), ("cleo", LEAD, "coordinator")]
    {
        fixture
            .workfs(&["agent", "add", name, "--uid", &uid.to_string(), "--role", role])
            .success();
    }
    Some(fixture)
}

/// Bash as a user, at the mount's root.
pub fn by(fixture: &Fixture, uid: u32, command: &str) -> Ran {
    let user = format!("setpriv --reuid {uid} --regid {uid} --clear-groups");
    fixture.sh(&format!("exec {user} bash -c \"$(cat <<'END'\n{command}\nEND\n)\""))
}

// P10.2 P10.9
#[test]
fn an_agent_by_its_user_works_in_a_mount_whose_directories_are_root_s() {
    let Some(fixture) = shared() else { return };
    let work = |uid, command: &str| by(&fixture, uid, command);
    assert_eq!(fs::metadata(fixture.path("work/inbox")).unwrap().uid(), 0);
    fixture.sh("chmod 6755 work/inbox/t-1.yaml").success();
    work(BOB, "mv work/inbox/t-1.yaml work/assigned/bob/").success();
    // What he took is his file: times and modes, which the kernel lets only owners set, too.
    let own = "work/assigned/bob/t-1.yaml";
    assert_eq!(fs::metadata(fixture.path(own)).unwrap().uid(), BOB);
    let set_user_id = || fs::metadata(fixture.path(own)).unwrap().mode() & 0o6000;
    assert_eq!(set_user_id(), 0, "its rights were another's to give");
    fixture.sh(&format!("chmod 6755 {own}")).success();
    work(BOB, &format!("echo 'notes: one' >> {own}")).success();
    assert_eq!(set_user_id(), 0);
    work(BOB, &format!("sed -i 's/^notes: one/notes: two/' {own}")).success();
    work(BOB, &format!("touch -d 2026-01-01 {own} && chmod 600 {own}")).success();
    work(BOB, "echo draft > work/assigned/bob/notes.md && mkdir work/assigned/bob/more").success();
    work(BOB, &format!("printf 'result:\\n  summary: it works\\n' >> {own}")).success();
    work(BOB, &format!("mv {own} work/done/bob/")).success();
    // A new one, a claim by copy, and the next that is ready.
    let text = Task::new("t-9").text();
    work(ANN, &format!("cat > work/inbox/t-9.yaml <<'EOF'\n{text}EOF")).success();
    work(BOB, "cp work/inbox/t-9.yaml work/assigned/bob/ && rm work/inbox/t-9.yaml").success();
    work(ANN, "mv work/ready/.next work/assigned/ann/").success();
    assert!(fixture.path("work/assigned/ann/t-2.yaml").exists());
    // An old record of root's that a lead puts into his lane is his to write, too.
    work(LEAD, "mv work/inbox/t-3.yaml work/assigned/bob/").success();
    work(BOB, "echo 'notes: mine' >> work/assigned/bob/t-3.yaml").success();
    work(BOB, "mkdir .workfs/txn/x && echo 'b: 1' >> .workfs/txn/x/work/assigned/bob/t-3.yaml")
        .success();
    work(BOB, "mv .workfs/txn/x .workfs/commit").success();
    fixture.fsck_clean();
}

// P10.9
#[test]
fn who_took_a_record_has_the_file_from_the_next_call_on() {
    let Some(fixture) = shared() else { return };
    let from = fixture.path("work/inbox/t-1.yaml");
    let to = fixture.path("work/assigned/bob/t-1.yaml");
    // The kernel knows the owner before, and nobody looks in between.
    assert_eq!(fs::metadata(&from).unwrap().uid(), 0);
    let take = || {
        fs::rename(&from, &to)?;
        fs::set_permissions(&to, fs::Permissions::from_mode(0o600))
    };
    workfs_mount::as_user(BOB, BOB, take).unwrap().unwrap();
    assert_eq!(fs::metadata(&to).unwrap().uid(), BOB);
}

// P10.2 P10.4 P10.9
#[test]
fn what_is_another_s_stays_so_and_why_says_it() {
    let Some(fixture) = shared() else { return };
    by(&fixture, BOB, "mv work/inbox/t-1.yaml work/assigned/bob/").success();
    for refused in [
        "mv work/assigned/bob/t-1.yaml work/assigned/ann/",
        "mv work/assigned/bob/t-1.yaml work/inbox/",
        "rm -f work/assigned/bob/t-1.yaml",
        "echo 'notes: hers' >> work/assigned/bob/t-1.yaml",
        "truncate -s 0 work/assigned/bob/t-1.yaml",
        "touch work/assigned/bob/t-1.yaml",
        "echo x > work/assigned/bob/hers.md",
        "mv work/inbox/t-2.yaml work/assigned/bob/",
        "rmdir work/assigned/bob",
        "mv work/inbox work/outbox",
    ] {
        by(&fixture, ANN, refused).failure();
    }
    let why = by(&fixture, ANN, "cat .workfs/why").success().stdout;
    assert!(why.contains("ann (agent) may not change bob's tasks"), "{why}");
    by(&fixture, ANN, "cat work/assigned/bob/t-1.yaml").success();
    // Whoever is nobody's agent is bound by the bits as they are stored.
    for refused in [
        "mv work/inbox/t-2.yaml work/assigned/ann/",
        "mv work/ready/.next work/assigned/ann/",
        "echo 'notes: theirs' >> work/inbox/t-2.yaml",
        "truncate -s 0 work/inbox/t-2.yaml",
        "touch work/inbox/t-2.yaml",
        "cp work/inbox/t-2.yaml work/assigned/ann/",
        "rm -f work/inbox/t-2.yaml",
        "mkdir work/assigned/eve",
        "echo x > work/inbox/x.md",
    ] {
        by(&fixture, NOBODY, refused).failure();
    }
    let why = by(&fixture, NOBODY, "cat .workfs/why").success().stdout;
    assert!(why.contains("user 64004 is no agent, and `work/inbox` has the mode 755"), "{why}");
    fixture.sh("chmod a+w work/inbox/t-2.yaml").success();
    by(&fixture, NOBODY, "echo 'notes: theirs' >> work/inbox/t-2.yaml").success();
    fixture.fsck_clean();
}

// P10.9
#[test]
fn who_may_read_the_bits_say_and_what_roles_say_ends_with_the_last_user() {
    let Some(fixture) = shared() else { return };
    let mode = |path: &str| fs::metadata(fixture.path(path)).unwrap().mode() & 0o777;
    assert_eq!((mode("work/inbox"), mode("work/inbox/t-1.yaml")), (0o777, 0o666));
    assert_eq!((mode("work"), mode("work/assigned"), mode("work/ready")), (0o755, 0o777, 0o777));
    fixture.sh("mkdir -p scratchpad").success();
    assert_eq!(mode("scratchpad"), 0o755, "what is not governed is a plain directory");
    fixture.sh("chmod 600 work/inbox/t-1.yaml; chmod 700 work/assigned/ann").success();
    by(&fixture, BOB, "cat work/inbox/t-1.yaml").failure();
    by(&fixture, ANN, "ls work/assigned/ann").failure();
    // What he took he may read.
    by(&fixture, BOB, "mv work/inbox/t-1.yaml work/assigned/bob/").success();
    by(&fixture, BOB, "cat work/assigned/bob/t-1.yaml").success();
    for name in ["bob", "ann", "cleo", "uid-64001", "uid-64002", "uid-64003"] {
        fixture.workfs(&["agent", "remove", name]).success();
    }
    assert_eq!((mode("work/inbox"), mode("work/inbox/t-2.yaml")), (0o755, 0o644));
    let why = by(&fixture, ANN, "cat work/inbox/t-2.yaml.why").success().stdout;
    assert!(why.contains("mode:   644 of user 0: user 64002 may not write it"), "{why}");
    by(&fixture, ANN, "mv work/inbox/t-2.yaml work/assigned/bob/").failure();
    fixture.fsck_clean();
}

// P10.2 P11.3
#[test]
fn a_bound_user_restores_files_of_its_own_and_no_others() {
    let Some(fixture) = shared() else { return };
    let store = fixture.store().parent().unwrap();
    fs::set_permissions(store, fs::Permissions::from_mode(0o711)).unwrap();
    let workfs = |uid, arguments: &str| {
        let (program, store) = (program(), fixture.store().display());
        by(&fixture, uid, &format!("HOME=/tmp {program} --store {store} {arguments}"))
    };
    fixture.sh("mkdir -p scratchpad && chmod 1777 scratchpad").success();
    let last = || fixture.ledger().0.len();
    by(&fixture, BOB, "echo one > scratchpad/bob.txt").success();
    let one = last();
    by(&fixture, BOB, "echo two > scratchpad/bob.txt").success();
    workfs(BOB, &format!("restore scratchpad/bob.txt --at {one}")).success();
    assert_eq!(fs::read_to_string(fixture.path("scratchpad/bob.txt")).unwrap(), "one\n");
    by(&fixture, BOB, "mv work/inbox/t-1.yaml work/assigned/bob/").success();
    let claimed = last();
    let before = fs::read_to_string(fixture.path("work/assigned/bob/t-1.yaml")).unwrap();
    by(&fixture, BOB, "echo 'notes: one' >> work/assigned/bob/t-1.yaml").success();
    workfs(BOB, &format!("restore t-1 --at {claimed}")).success();
    assert_eq!(fs::read_to_string(fixture.path("work/assigned/bob/t-1.yaml")).unwrap(), before);
    for (uid, refused) in [(ANN, "scratchpad/bob.txt"), (ANN, "t-1"), (BOB, "t-2")] {
        let ran = workfs(uid, &format!("restore {refused} --at {claimed}"));
        assert_eq!(ran.code, 6, "{refused}: {ran}");
    }
    // Of what is gone nobody knows any more whose it was.
    by(&fixture, BOB, "rm scratchpad/bob.txt").success();
    let ran = workfs(BOB, &format!("restore scratchpad/bob.txt --at {one}"));
    assert_eq!(ran.code, 6, "{ran}");
    fixture.fsck_clean();
}

// P10.2
#[test]
fn a_connection_outlives_no_right_to_it() {
    let Some(fixture) = shared() else { return };
    let store = fixture.store().parent().unwrap();
    fs::set_permissions(store, fs::Permissions::from_mode(0o711)).unwrap();
    let (idle, waits) = (fixture.connected_as(BOB), fixture.connected_as(BOB));
    assert!(asked(&idle, &serde_json::json!("ps")).contains("mounts"));
    fixture.sh("rm work/inbox/*").success();
    let claim = serde_json::json!({"do": {"claim": {"wait_ms": 600_000}}});
    let waiting = std::thread::spawn(move || asked(&waits, &claim));
    // Who waits for a record has no thread of its own any more.
    let threads =
        || fs::read_dir(format!("/proc/{}/task", fixture.daemon_pid())).unwrap().flatten();
    let name = |path: std::path::PathBuf| fs::read_to_string(path.join("comm")).unwrap_or_default();
    until_polled("the claim to wait", || {
        let names: Vec<String> = threads().map(|thread| name(thread.path())).collect();
        let serving = names.iter().filter(|name| name.starts_with("client-")).count();
        (serving == 1 && names.iter().any(|name| name == "waiting\n")).then_some(())
    });
    for name in ["bob", "uid-64001"] {
        fixture.workfs(&["agent", "remove", name]).success();
    }
    let add = serde_json::json!({"do": {"agent_add": {"name": "bob", "role": "operator"}}});
    let said = asked(&idle, &add);
    assert!(said.contains("this store is not user 64001's"), "{said}");
    fixture.task("inbox", &Task::new("t-9"));
    let said = waiting.join().unwrap();
    assert!(said.contains("this store is not user 64001's"), "{said}");
    assert!(fixture.path("work/inbox/t-9.yaml").exists());
}

// P10.2
#[test]
fn whose_agent_was_removed_is_told_how_it_becomes_one_again() {
    let Some(fixture) = shared() else { return };
    fixture.workfs(&["agent", "remove", "bob"]).success();
    by(&fixture, BOB, "mv work/inbox/t-1.yaml work/assigned/bob/").failure();
    let why = by(&fixture, BOB, "cat .workfs/why").success().stdout;
    assert!(why.contains("(`workfs agent add NAME --uid 64001`)"), "{why}");
    fixture.workfs(&["agent", "add", "robert", "--uid", "64001"]).success();
    by(&fixture, BOB, "mv work/inbox/t-1.yaml work/assigned/robert/").failure();
    fixture.sh("mkdir work/assigned/robert").success();
    by(&fixture, BOB, "mv work/inbox/t-1.yaml work/assigned/robert/").success();
    // An observer by name keeps that.
    fixture.workfs(&["agent", "add", "robert", "--role", "observer"]).success();
    by(&fixture, BOB, "mv work/assigned/robert/t-1.yaml work/inbox/").failure();
    let why = by(&fixture, BOB, "cat .workfs/why").success().stdout;
    assert!(why.contains("(`workfs agent add robert --role ROLE`)"), "{why}");
}

// P7.1
#[test]
fn set_user_id_goes_with_a_write_by_somebody_unprivileged_whichever_way_it_comes() {
    let Some(fixture) = shared() else { return };
    let layout = fixture.outside("checking.yaml");
    let rules = "files: [{ path: 's/**' }]\nchecks: [{ path: 's/*.json' }]\n";
    fs::write(&layout, format!("workspaces: [{{ path: work, kind: task }}]\n{rules}")).unwrap();
    fixture.unmount_all();
    fixture.workfs(&["init", "--layout", layout.to_str().unwrap()]).success();
    fixture.mount_all();
    fixture.sh("mkdir s; chmod 777 s; echo '{}' | tee s/in-txn s/plain s/checked.json").success();
    fixture.sh(&format!("chown root:{BOB} s/* && chmod 6775 s/*")).success();
    let store = fixture.store().parent().unwrap();
    fs::set_permissions(store, fs::Permissions::from_mode(0o711)).unwrap();
    let mode = |path: &str| fs::metadata(fixture.path(path)).unwrap().mode() & 0o7777;
    for (path, way) in [
        ("s/plain", "echo 1 > s/plain"),
        ("s/checked.json", "echo 1 > s/checked.json"),
        ("s/checked.json", "echo >> s/checked.json"),
        (
            "s/in-txn",
            "mkdir .workfs/txn/x; echo 1 > .workfs/txn/x/s/in-txn; mv .workfs/txn/x .workfs/commit",
        ),
    ] {
        fixture.sh(&format!("touch {path}; chown root:{BOB} {path}; chmod 6775 {path}")).success();
        let before = mode(path);
        by(&fixture, BOB, way).success();
        assert_eq!((before & 0o6000, mode(path) & 0o6000), (0o6000, 0), "{way}");
    }
    // Root keeps it.
    fixture.sh("chmod 6775 s/checked.json; echo 2 > s/checked.json").success();
    assert_eq!(mode("s/checked.json"), 0o6775);
}

/// The command line as a user, who can reach the store's socket.
fn workfs_by(fixture: &Fixture, uid: u32, arguments: &str) -> Ran {
    let (program, store) = (program(), fixture.store());
    fs::set_permissions(store.parent().unwrap(), fs::Permissions::from_mode(0o711)).unwrap();
    by(fixture, uid, &format!("HOME=/tmp {program} --store {} {arguments}", store.display()))
}

// P10.2 P11.3
#[test]
fn what_lay_at_a_path_before_is_not_restored_to_whom_it_was_closed() {
    let Some(fixture) = shared() else { return };
    fixture.sh("mkdir -p scratchpad/stuck scratchpad/open").success();
    fixture.sh("chmod 1777 scratchpad/stuck; chmod 777 scratchpad scratchpad/open").success();
    let secret = |path: &str| {
        by(&fixture, ANN, &format!("umask 077; echo 'ann secret' > {path}")).success();
        fixture.ledger().0.len()
    };
    let refused = |path: &str, at: usize| {
        by(&fixture, BOB, &format!("echo mine > {path}")).success();
        let ran = workfs_by(&fixture, BOB, &format!("restore {path} --at {at}"));
        assert_eq!(ran.code, 6, "{path}: {ran}");
        assert_eq!(fs::read_to_string(fixture.path(path)).unwrap(), "mine\n");
    };
    let at = secret("scratchpad/stuck/s");
    by(&fixture, ANN, "rm scratchpad/stuck/s").success();
    refused("scratchpad/stuck/s", at);
    // Who may move a file has not read it by that.
    secret("scratchpad/open/a");
    by(&fixture, BOB, "mv scratchpad/open/a scratchpad/open/b").success();
    let at = fixture.ledger().0.len();
    by(&fixture, BOB, "rm -f scratchpad/open/b").success();
    refused("scratchpad/open/b", at);
    // Its own it has back, also what an editor renamed.
    by(&fixture, BOB, "cd scratchpad/open && echo one > b.tmp && mv b.tmp b").success();
    let at = fixture.ledger().0.len();
    by(&fixture, BOB, "echo two > scratchpad/open/b").success();
    workfs_by(&fixture, BOB, &format!("restore scratchpad/open/b --at {at}")).success();
    assert_eq!(fs::read_to_string(fixture.path("scratchpad/open/b")).unwrap(), "one\n");
    fixture.fsck_clean();
}

// P3.10
#[test]
fn what_is_wrong_with_a_closed_draft_is_told_to_its_readers_only() {
    let Some(fixture) = shared() else { return };
    let draft = "work/inbox/t-9.yaml";
    by(&fixture, ANN, &format!("umask 077; echo 'status: hushhush' > {draft}")).failure();
    let told = |uid| {
        let why = workfs_by(&fixture, uid, &format!("why {draft}"));
        let list = workfs_by(&fixture, uid, "list").success();
        assert!(list.stdout.contains("t-9"), "{list}");
        (why.code, why.said().contains("hushhush"), list.stdout.contains("hushhush"))
    };
    assert_eq!(told(ANN), (0, true, true));
    assert_eq!(told(BOB), (6, false, false));
    fixture.fsck_clean();
}

// P10.4 P10.9
#[test]
fn who_takes_out_of_ready_is_asked_as_where_the_record_lies() {
    if !rustix::process::geteuid().is_root() || !needs(&["setpriv"]) {
        return left_out("acting as another user needs root and setpriv");
    }
    let fixture = Setup::default().mounts(2).prepare();
    fixture.mount_at(fixture.mount(1)).success();
    let root = fixture.root().to_str().unwrap();
    fixture.workfs(&["mount", root, "-o", "allow_other", "--agent", "bob"]).success();
    fs::set_permissions(fixture.base(), fs::Permissions::from_mode(0o755)).unwrap();
    let work = fixture.mount(1).join("work");
    fs::create_dir_all(work.join("assigned/bob")).unwrap();
    for id in ["t-1", "t-2", "t-3", "t-4"] {
        fs::write(work.join("inbox").join(format!("{id}.yaml")), Task::new(id).text()).unwrap();
    }
    let lead = |snippet: &str| {
        fixture
            .bash()
            .with("M", fixture.mount(1))
            .run(&format!("cd $M/work && {snippet}"))
            .success()
    };
    let ways = [
        "mv work/ready/t-1.yaml work/assigned/bob/",
        "mv work/ready/.next work/assigned/bob/",
        "mv work/inbox/t-4.yaml work/assigned/bob/",
    ];
    // That the workspace may be written says nothing of its inbox.
    lead(&format!("chown {BOB} assigned/bob && chmod 777 . && chmod 755 inbox"));
    ways.iter().for_each(|way| drop(by(&fixture, BOB, way).failure()));
    lead("chmod 700 inbox");
    by(&fixture, BOB, "ls work/ready").failure();
    by(&fixture, BOB, "cat work/ready/t-1.yaml").failure();
    // Nor that it may not.
    lead("chmod 755 . && chmod 777 inbox");
    ways.iter().for_each(|way| drop(by(&fixture, BOB, way).success()));
    fixture.fsck_clean();
}

// P9.6 P10.9
#[test]
fn what_may_not_be_taken_keeps_nobody_from_the_rest() {
    if !rustix::process::geteuid().is_root() || !needs(&["setpriv"]) {
        return left_out("acting as another user needs root and setpriv");
    }
    let layout = "workspaces: [{ path: work, kind: task, dirs: { inbox: [inbox, closed] } }]\n";
    let fixture = Setup::default().mounts(2).prepare();
    let file = fixture.outside("layout.yaml");
    fs::write(&file, layout).unwrap();
    fixture.workfs(&["init", "--layout", file.to_str().unwrap()]).success();
    fixture.mount_at(fixture.mount(1)).success();
    let root = fixture.root().to_str().unwrap();
    fixture.workfs(&["mount", root, "-o", "allow_other", "--agent", "bob"]).success();
    fs::set_permissions(fixture.base(), fs::Permissions::from_mode(0o755)).unwrap();
    let lead = |snippet: &str| {
        let bash = fixture.bash().with("M", fixture.mount(1));
        bash.run(&format!("cd $M/work && {snippet}")).success()
    };
    lead(&format!(
        "mkdir -p closed assigned/bob && chown {BOB} assigned/bob && chmod 777 inbox
         echo 'priority: critical' > closed/a.yaml && echo 'priority: low' > inbox/b.yaml
         chmod 700 closed"
    ));
    // Nor does `ready/` show what lies there to whom that is closed.
    assert_eq!(by(&fixture, BOB, "ls work/ready").success().stdout, "b.yaml\n");
    by(&fixture, BOB, "cat work/ready/a.yaml || cat work/ready/a.yaml.why").failure();
    lead("chgrp 64010 closed && chmod 750 closed");
    by(&fixture, BOB, "cat work/ready/a.yaml").failure();
    let of_group = format!("setpriv --reuid {BOB} --regid {BOB} --groups 64010");
    let seen = fixture.sh(&format!("{of_group} ls work/ready && {of_group} cat work/ready/a.yaml"));
    assert!(seen.success().stdout.starts_with("a.yaml\nb.yaml\n"));
    lead("chmod 711 closed");
    assert_eq!(by(&fixture, BOB, "ls work/ready").success().stdout, "b.yaml\n");
    by(&fixture, BOB, "cat work/ready/a.yaml").success();
    lead("chmod 700 closed");
    let take = "mv work/ready/.next work/assigned/bob/";
    by(&fixture, BOB, take).success();
    assert!(fixture.mount(1).join("work/assigned/bob/b.yaml").exists());
    let refused = by(&fixture, BOB, take).failure();
    assert!(refused.stderr.contains("Permission denied"), "{refused}");
    fixture.fsck_clean();
}

// P10.2
#[test]
fn what_a_mount_closes_to_an_agent_s_user_it_takes_by_no_command() {
    let Some(fixture) = shared() else { return };
    fixture.sh("mkdir work/fridge/cold && echo 'id: t-9' > work/inbox/t-9.yaml").success();
    fixture.sh("mv work/inbox/t-9.yaml work/fridge/cold/").success();
    fixture.sh("chmod 700 work/inbox work/fridge/cold").success();
    by(&fixture, BOB, "mv work/inbox/t-1.yaml work/assigned/bob/").failure();
    for command in ["claim t-1", "claim --next", "done t-1 -s x", "fail t-1 -m x", "release t-9"] {
        assert_eq!(workfs_by(&fixture, BOB, command).code, 6, "{command}");
    }
    // Nor where only what lies above is closed.
    fixture.sh("chmod 755 work/inbox && chmod 700 work").success();
    assert_eq!(workfs_by(&fixture, BOB, "claim t-1").code, 6);
    assert_eq!(workfs_by(&fixture, BOB, "claim --next").code, 3);
    // Whoever runs the store gives it what it likes, and its own is its own.
    fixture.sh("chmod 755 work && chmod 700 work/inbox").success();
    fixture.workfs(&["claim", "t-1", "--agent", "bob"]).success();
    workfs_by(&fixture, BOB, "done t-1 -s x").success();
    fixture.sh("chmod 755 work/inbox").success();
    workfs_by(&fixture, BOB, "claim --next").success();
    fixture.fsck_clean();
}
