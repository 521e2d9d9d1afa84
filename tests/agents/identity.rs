//! Who an event names: the mount decides, and where a user is bound to an agent, the user.

use std::fs;

use crate::harness::{Event, Fixture, Ran, Setup, Task, left_out, needs, program};
use crate::team::{Team, mv};

// P10.1
#[test]
fn what_is_done_through_an_agent_s_mount_is_done_by_the_agent() {
    let team = Team::of(&[("bob", ""), ("cleo", "coordinator")]);
    team.fixture.task("inbox", &Task::new("t-1"));
    mv(&team.work(1), "t-1", "inbox", "assigned/bob").unwrap();
    team.sh(1, "sed -i 's/^status: .*/status: in_progress/' work/assigned/bob/t-1.yaml").success();
    mv(&team.work(2), "t-1", "assigned/bob", "inbox").unwrap();

    let ledger = team.fixture.ledger();
    let events = ledger.of_record("t-1");
    let who =
        |nth: usize| (events[nth].name(), events[nth].text("actor"), events[nth].text("role"));
    let operator = events[0].text("actor").to_owned();
    assert_eq!(who(0), ("created", operator.as_str(), "operator"));
    assert_eq!(who(1), ("claimed", "bob", "agent"));
    assert_eq!(who(2), ("saved", "bob", "agent"));
    assert_eq!(who(3), ("released", "cleo", "coordinator"));
    team.fixture.fsck_clean();
}

// P10.1
#[test]
fn the_register_is_a_file_and_ps_says_who_is_mounted_where() {
    let team = Team::of(&[("bob", ""), ("olga", "observer")]);
    let yaml = fs::read_to_string(team.fixture.path(".workfs/agents.yaml")).unwrap();
    assert!(yaml.contains("name: \"bob\", role: agent"), "{yaml}");
    assert!(yaml.contains("name: \"olga\", role: observer"), "{yaml}");
    let listed = team.fixture.workfs(&["agent", "list", "--json"]).success().json();
    assert_eq!(listed["agents"][0]["name"], "bob");
    let mounts = team.fixture.workfs(&["ps", "--json"]).success().json();
    let roles: Vec<&str> =
        mounts["mounts"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["operator", "agent", "observer"]);
    let added = team.fixture.ledger();
    let registered = added
        .0
        .iter()
        .filter(|event| event.name() == "registered" && !event.0["payload"]["agent"].is_null());
    assert_eq!(registered.count(), 2);
}

// P10.1
#[test]
fn a_registered_role_stays_until_an_operator_changes_it() {
    let fixture = Setup::default().mounts(2).prepare();
    fixture.mount_at(fixture.root()).success();
    fixture.make_directories();
    fixture.workfs(&["agent", "add", "bob", "--role", "builder"]).success();
    let dir = fixture.mount(1).to_str().unwrap();
    let ran = fixture.workfs(&["mount", dir, "--agent", "bob", "--role", "manager"]).failure();
    assert!(ran.stderr.contains("registered as builder"), "{ran}");
    // As fstab would say it.
    fixture.workfs(&["mount", dir, "-o", "agent=bob,role=builder"]).success();
    fixture.task("inbox", &Task::new("t-1"));
    mv(&fixture.mount(1).join("work"), "t-1", "inbox", "assigned/bob").unwrap();
    assert_eq!(fixture.ledger().of_record("t-1")[1].text("role"), "builder");
    // It counts at once, for mounts that are there.
    fixture.workfs(&["agent", "add", "bob", "--role", "observer"]).success();
    assert!(mv(&fixture.mount(1).join("work"), "t-1", "assigned/bob", "inbox").is_err());
    fixture.workfs(&["agent", "remove", "bob"]).success();
    assert!(mv(&fixture.mount(1).join("work"), "t-1", "assigned/bob", "inbox").is_err());
    assert_eq!(fixture.workfs(&["agent", "remove", "bob"]).code, 4);
    assert_eq!(fixture.workfs(&["agent", "add", "x", "--uid", "0"]).code, 2);
}

// P10.2
#[test]
fn a_user_who_is_bound_to_an_agent_is_that_agent_through_every_mount() {
    if !rustix::process::geteuid().is_root() {
        return left_out("acting as another user needs root");
    }
    if !needs(&["setpriv"]) {
        return;
    }
    let team = Team::with(&[("bob", ""), ("ann", "")], &["-o", "allow_other"]);
    let fixture = &team.fixture;
    open_to_all(fixture);
    fixture.workfs(&["agent", "add", "bob", "--uid", "64001"]).success();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.task("inbox", &Task::new("t-2"));
    mv(&team.work(2), "t-2", "inbox", "assigned/ann").unwrap();
    let as_bob = |nth: usize, command: &str| {
        let script =
            format!("exec setpriv --reuid 64001 --regid 64001 --clear-groups bash -c '{command}'");
        team.sh(nth, &script)
    };
    // Bob in ann's mount is bob: her task is not his, and what he claims is his.
    as_bob(2, "mv work/assigned/ann/t-2.yaml work/inbox/").failure();
    as_bob(2, "mv work/inbox/t-1.yaml work/assigned/ann/").failure();
    as_bob(2, "mv work/inbox/t-1.yaml work/assigned/bob/").success();
    let ledger = fixture.ledger();
    let claimed = ledger.of_record("t-1")[1].clone();
    assert_eq!((claimed.text("actor"), claimed.text("role")), ("bob", "agent"));
    // Another user in bob's mount, who is bound to nobody, is bob: not the operator.
    let nobody = "setpriv --reuid 64002 --regid 64002 --clear-groups";
    team.sh(1, &format!("{nobody} mv work/assigned/bob/t-1.yaml work/done/ann/")).failure();
    team.sh(1, &format!("{nobody} mv work/assigned/bob/t-1.yaml work/inbox/")).success();
    assert_eq!(fixture.ledger().of_record("t-1")[2].text("actor"), "bob");
}

// P10.2
#[test]
fn at_the_socket_a_bound_user_has_the_rights_of_all_its_groups() {
    if !rustix::process::geteuid().is_root() || !needs(&["setpriv"]) {
        return left_out("acting as another user needs root and setpriv");
    }
    let fixture = Fixture::new();
    open_to_all(&fixture);
    fixture.workfs(&["agent", "add", "bob", "--uid", "64001"]).success();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.sh("chown 0:64010 work/inbox && chmod 770 work/inbox").success();
    let as_bob = |groups: &str, arguments: &str| {
        let (workfs, store) = (program(), fixture.store().display());
        let user = format!("setpriv --reuid 64001 --regid 64001 {groups}");
        fixture.sh(&format!("cd /; HOME=/tmp {user} {workfs} --store {store} {arguments}"))
    };
    let refused = as_bob("--clear-groups", "claim t-1").failure();
    assert!(refused.code == 6 && refused.stderr.contains("may not read"), "{refused}");
    as_bob("--groups 64010", "claim t-1").success();
}

// P10.2
#[test]
fn at_the_socket_a_bound_user_is_its_agent_and_no_operator() {
    if !rustix::process::geteuid().is_root() || !needs(&["setpriv"]) {
        return left_out("acting as another user needs root and setpriv");
    }
    let fixture = Fixture::new();
    open_to_all(&fixture);
    fixture.workfs(&["agent", "add", "bob", "--uid", "64001"]).success();
    let store = fixture.store().parent().unwrap().to_owned();
    for path in std::fs::read_dir(&store).unwrap().map(|entry| entry.unwrap().path()) {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
    }
    fixture.task("inbox", &Task::new("t-1"));
    let as_bob = |arguments: &str| {
        let (workfs, store) = (program(), fixture.store().display());
        let user = "setpriv --reuid 64001 --regid 64001 --clear-groups";
        fixture.sh(&format!("cd /; HOME=/tmp {user} {workfs} --store {store} {arguments}"))
    };
    assert_eq!(as_bob("claim t-1 --agent ann").code, 6);
    assert_eq!(as_bob("agent add eve --role operator").code, 6);
    assert_eq!(as_bob("export /tmp/not-to-be-made").code, 6);
    assert_eq!(as_bob("unmount --all").code, 6);
    // Who runs the store is told of each, and so is who tried it.
    let forbidden = || {
        let ledger = fixture.ledger();
        let tried = ledger.0.iter().filter(|event| event.name() == "forbidden");
        tried.map(|event| (event.text("actor").to_owned(), event.0.to_string())).collect::<Vec<_>>()
    };
    let told = forbidden();
    assert!(told.len() == 2 && told.iter().all(|(actor, _)| actor == "bob"), "{told:?}");
    assert!(told[0].1.contains("work/inbox/t-1.yaml"), "{told:?}");
    let whys = [as_bob("why"), fixture.workfs(&["why"])];
    for why in whys.map(Ran::success) {
        for said in [
            "claim work/inbox/t-1.yaml EACCES",
            "user 64001 is the agent bob, not ann",
            "`agent add` is not for bob",
            "`export` is not for bob",
            "`unmount` is not for bob, an agent",
        ] {
            assert!(why.stdout.contains(said), "{said}: {why}");
        }
        // What is about no path names none.
        assert!(why.stdout.contains("Z export EACCES\n"), "{why}");
    }
    as_bob("claim t-1 --agent bob").success();
    assert_eq!(fixture.ledger().of_record("t-1")[1].text("role"), "agent");
    fixture.sh("mv work/assigned/bob/t-1.yaml work/assigned/bob/x.yaml").failure();
    assert!(fixture.workfs(&["why"]).success().stdout.contains("rename"));
    assert!(!as_bob("why").success().stdout.contains("rename"));
}

// P10.3
#[test]
fn a_command_acts_for_the_operator_unless_an_agent_is_named() {
    let team = Team::of(&[("bob", ""), ("ann", "")]);
    for id in ["t-1", "t-2"] {
        team.fixture.task("inbox", &Task::new(id));
    }
    team.fixture.workfs(&["claim", "t-1", "--agent", "bob"]).success();
    let ran = team.fixture.workfs(&["release", "t-1", "--agent", "ann"]).failure();
    assert_eq!(ran.code, 6, "{ran}");
    team.fixture.workfs(&["release", "t-1"]).success();
    let ledger = team.fixture.ledger();
    let events = ledger.of_record("t-1");
    assert_eq!((events[1].text("actor"), events[1].text("role")), ("bob", "agent"));
    assert_eq!(events[2].text("role"), "operator");
    // In an agent's mount, a command is the agent's.
    let mut command = team.fixture.command(&["claim", "t-2"]);
    command.current_dir(team.fixture.mount(2));
    crate::harness::run(&mut command).success();
    assert_eq!(team.fixture.ledger().of_record("t-2")[1].text("actor"), "ann");
}

// P10.3
#[test]
fn in_an_agent_s_mount_all_that_commands_change_is_the_agent_s() {
    let team = Team::of(&[("bob", ""), ("ann", ""), ("olga", "operator")]);
    let fixture = &team.fixture;
    let here = |nth: usize, arguments: &[&str]| {
        let mut command = fixture.command(arguments);
        command.current_dir(fixture.mount(nth));
        crate::harness::run(&mut command)
    };
    let last_actor = || fixture.ledger().0.last().unwrap().text("actor").to_owned();
    here(1, &["project", "new"]).success();
    assert_eq!(last_actor(), "bob");
    team.sh(1, "echo one > scratchpad/a.txt").success();
    let g = fixture.ledger().0.len().to_string();
    team.sh(0, "echo two > scratchpad/a.txt").success();
    here(1, &["restore", "scratchpad/a.txt", "--at", &g]).success();
    assert_eq!(fs::read_to_string(fixture.path("scratchpad/a.txt")).unwrap(), "one\n");
    assert_eq!(last_actor(), "bob");

    // What is not bob's is not his by a command either.
    fixture.task("inbox", &Task::new("t-1"));
    mv(&team.work(2), "t-1", "inbox", "assigned/ann").unwrap();
    let claimed = fixture.ledger().0.len().to_string();
    team.sh(2, "echo 'notes: more' >> work/assigned/ann/t-1.yaml").success();
    let before = fixture.ledger().0.len();
    let refused = |arguments: &[&str]| {
        let ran = here(1, arguments);
        assert_eq!(ran.code, 6, "{arguments:?}: {ran}");
    };
    refused(&["restore", "work/assigned/ann/t-1.yaml", "--at", &claimed]);
    refused(&["agent", "add", "eve", "--role", "operator"]);
    refused(&["agent", "add", "bob", "--role", "operator"]);
    refused(&["agent", "remove", "ann"]);
    let from = fixture.outside("from");
    fs::create_dir_all(from.join("inbox")).unwrap();
    fs::write(from.join("inbox/t-9.yaml"), Task::new("t-9").text()).unwrap();
    here(1, &["import", from.to_str().unwrap(), "work"]).failure();
    assert_eq!(fixture.workfs(&["show", "t-9"]).code, 4);
    let ledger = fixture.ledger();
    assert!(ledger.0[before..].iter().all(|event| event.name() == "forbidden"));
    // Of each he is told, and who runs the store.
    let tried = |operation: &str, path: &str| {
        ledger.0[before..].iter().any(|event| {
            let payload = &event.0["payload"];
            event.text("actor") == "bob"
                && (&payload["operation"], &payload["path"]) == (&operation.into(), &path.into())
        })
    };
    assert!(tried("agent add", "") && tried("import", "work"), "{ledger:?}");
    let why = here(1, &["why"]).success();
    for said in ["register agents", "remove agents", "import"] {
        let reason = format!("bob (agent) may not {said} [W022]");
        assert!(why.stdout.contains(&reason), "{why}");
    }
    // The environment of `workfs exec` says the same wherever the command goes.
    let mut command = fixture.command(&["agent", "add", "eve"]);
    command.env("WORKFS_AGENT", "bob");
    assert_eq!(crate::harness::run(&mut command).code, 6);
    // An agent who is an operator does it in its own name.
    here(3, &["agent", "add", "eve"]).success();
    assert_eq!(last_actor(), "olga");
    // One who is registered no more can only read.
    fixture.workfs(&["agent", "remove", "bob"]).success();
    refused(&["project", "new"]);
    here(1, &["show", "t-1"]).success();
}

// P10.3
#[test]
fn a_mount_that_is_seen_at_another_place_is_still_its_agent_s() {
    if !rustix::process::geteuid().is_root() || !needs(&["unshare"]) {
        return left_out("binding mounts needs root and unshare");
    }
    let team = Team::of(&[("bob", "")]);
    let elsewhere = team.fixture.outside("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    let (workfs, store) = (program(), team.fixture.store().display());
    let added = |more: &str| {
        let (from, to) = (team.fixture.mount(1).display(), elsewhere.display());
        team.fixture.sh(&format!(
            "unshare -m sh -c 'mount --bind {from} {to} && {more} cd {to} && \
             {workfs} --store {store} agent add eve --role operator'"
        ))
    };
    let ran = added("");
    assert!(ran.code == 6 && ran.stderr.contains("bob (agent) may not"), "{ran}");
    let ran = added(&format!("umount {} &&", team.fixture.mount(1).display()));
    assert!(ran.code == 6 && ran.stderr.contains("bob (agent) may not"), "{ran}");
    // Where nothing tells whose it is, it is nobody's, and what it shows is not known either.
    for (command, refused) in
        [("agent add eve", "cannot be told whose mount"), ("list", "cannot be told what")]
    {
        let script = format!(
            "mount --bind . {to} && cd {to} && umount \"$WORKFS_MOUNT\" && \
             env -u WORKFS_AGENT -u WORKFS_MOUNT {workfs} --store {store} {command}",
            to = elsewhere.display()
        );
        let ran = team.fixture.workfs(&["exec", "--agent", "bob", "--", "sh", "-c", &script]);
        assert!(ran.code == 6 && ran.stderr.contains(refused), "{ran}");
    }
}

// P10.4
#[test]
fn a_lead_s_commands_act_for_others() {
    let team = Team::of(&[("bob", ""), ("cleo", "coordinator")]);
    team.fixture.task("inbox", &Task::new("t-1"));
    mv(&team.work(1), "t-1", "inbox", "assigned/bob").unwrap();
    let mut command = team.fixture.command(&["release", "t-1"]);
    command.current_dir(team.fixture.mount(2));
    crate::harness::run(&mut command).success();
    assert_eq!(team.fixture.ledger().of_record("t-1")[2].text("actor"), "cleo");
}

// P10.2
#[test]
fn a_user_whose_agent_is_gone_is_no_operator() {
    if !rustix::process::geteuid().is_root() || !needs(&["setpriv"]) {
        return left_out("acting as another user needs root and setpriv");
    }
    let team = Team::with(&[("ann", "")], &["-o", "allow_other"]);
    let fixture = &team.fixture;
    let plain = fixture.base().join("plain");
    fs::create_dir(&plain).unwrap();
    fixture.workfs(&["mount", plain.to_str().unwrap(), "-o", "allow_other"]).success();
    open_to_all(fixture);
    fixture.task("inbox", &Task::new("t-1"));
    mv(&team.work(1), "t-1", "inbox", "assigned/ann").unwrap();
    let steals = |uid: u32| {
        let script = format!(
            "cd {} && setpriv --reuid {uid} --regid {uid} --clear-groups \
             mv work/assigned/ann/t-1.yaml work/inbox/",
            plain.display()
        );
        team.sh(0, &script).ok()
    };
    fixture.workfs(&["agent", "add", "bob", "--uid", "64001"]).success();
    fixture.workfs(&["agent", "add", "bob", "--uid", "64002"]).success();
    assert!(!steals(64001) && !steals(64002));
    fixture.workfs(&["agent", "remove", "bob"]).success();
    assert!(!steals(64001) && !steals(64002));
    let why = fixture.why();
    assert!(why.contains("`workfs agent add NAME --uid 64002`"), "{why}");
    let listed = fixture.workfs(&["agent", "list"]).success();
    assert!(listed.stdout.contains("uid-64001  observer  uid 64001"), "{listed}");
    // Bound anew it is that agent, and freed by its name it is whoever the mount says.
    fixture.workfs(&["agent", "add", "eve", "--uid", "64001"]).success();
    assert!(!fixture.workfs(&["agent", "list"]).success().stdout.contains("uid-64001"));
    fixture.workfs(&["agent", "remove", "uid-64002"]).success();
    assert!(!steals(64001) && steals(64002));
    assert_eq!(fixture.workfs(&["agent", "add", "eve", "--uid", "4294967295"]).code, 2);
    fixture.workfs(&["unmount", plain.to_str().unwrap()]).success();
    fixture.fsck_clean();
}

/// Lets other users come to the mounts.
fn open_to_all(fixture: &Fixture) {
    use std::os::unix::fs::PermissionsExt;
    let all = |mode| fs::Permissions::from_mode(mode);
    fs::set_permissions(fixture.base(), all(0o755)).unwrap();
    fs::set_permissions(fixture.store().parent().unwrap(), all(0o777)).unwrap();
    fixture.sh("chmod -R a+rwX work").success();
}

// P1.3 P10.1
#[test]
fn a_claim_by_mv_from_another_mount_succeeds_and_says_so() {
    let team = Team::of(&[("bob", ""), ("eye", "observer")]);
    for id in ["t-1", "t-2"] {
        team.fixture.task("inbox", &Task::new(id));
    }
    let from = |nth, id| team.work(nth).join(format!("inbox/{id}.yaml")).display().to_string();
    team.sh(1, &format!("mv {} work/assigned/bob/", from(0, "t-1"))).success();
    let ledger = team.fixture.ledger();
    assert_eq!(ledger.names("t-1"), ["created", "claimed"]);
    assert!(!team.work(0).join("inbox/t-1.yaml").exists());
    assert!(team.work(1).join("assigned/bob/t-1.yaml").exists());
    // What a mount may not do it may not do as the second half of a claim, either.
    team.sh(1, &format!("mv {} work/assigned/bob/", from(2, "t-2"))).failure();
    team.fixture.fsck_clean();
}

// P10.3, P10.4, P10.5
#[test]
fn a_removed_agent_acts_by_no_command_in_its_mount() {
    let fixture = Fixture::new();
    for id in ["t-1", "t-2"] {
        fixture.task("inbox", &Task::new(id));
    }
    fixture.workfs(&["agent", "add", "eve"]).success();
    fixture.workfs(&["claim", "t-1", "--agent", "eve"]).success();
    // `exec` tells the command its agent by the environment, as well as by the mount.
    let script = "cd / && env -u WORKFS_AGENT \"$WORKFS\" --store \"$STORE\" agent remove eve
        cd \"$OLDPWD\"
        for it in 'done t-1 --summary x' 'release t-1' 'claim t-2' 'project new' heartbeat; do
            \"$WORKFS\" --store \"$STORE\" $it; echo $?
        done";
    let mut command = fixture.command(&["exec", "--agent", "eve", "--", "sh", "-c", script]);
    command.env("WORKFS", program()).env("STORE", fixture.store());
    let ran = crate::harness::run(&mut command).success();
    let codes: Vec<&str> = ran.stdout.lines().rev().take(5).collect();
    assert_eq!(codes, ["6"; 5], "{ran}");
    told_of(&fixture, "eve", 5);
    fixture.workfs(&["claim", "t-2", "--agent", "ann"]).success();
    fixture.fsck_clean();
}

/// So much was refused to an agent, told with its rule and way out, and by the ledger.
fn told_of(fixture: &Fixture, agent: &str, times: usize) {
    let why = fixture.workfs(&["why", "--json"]).success().json();
    let reason = format!("{agent} is an observer and may only read");
    let rows = why["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["rule"] == "W022" && row["reason"] == reason), "{why}");
    assert_eq!(rows.len(), times, "{why}");
    let ledger = fixture.ledger();
    let is_its = |event: &Event| event.name() == "forbidden" && event.text("actor") == agent;
    assert!(ledger.0.iter().any(is_its), "{ledger:?}");
}

// P10.4, P10.5
#[test]
fn what_an_observer_asks_for_in_its_mount_is_told_of_by_its_rule() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.workfs(&["agent", "add", "eve", "--role", "observer"]).success();
    let mut command = fixture.command(&["exec", "--agent", "eve", "--"]);
    command.arg(program()).arg("--store").arg(fixture.store());
    let ran = crate::harness::run(command.args(["claim", "--next", "--json"])).failure();
    assert!(ran.code == 6 && ran.stderr.contains("\"rule\":\"W022\""), "{ran}");
    told_of(&fixture, "eve", 1);
    fixture.fsck_clean();
}

// P10.1 P10.2
#[test]
fn nobody_is_called_as_the_ledger_calls_whoever_is_no_agent() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let dir = fixture.outside("agents");
    fs::create_dir(&dir).unwrap();
    let operator = fixture.ledger().of_record("t-1")[0].text("actor").to_owned();
    for name in ["workfs", "root", "uid-7", operator.as_str()] {
        let ran = fixture.workfs(&["agent", "add", name]);
        let mounted = fixture.workfs(&["mount", dir.to_str().unwrap(), "--agent", name]);
        let run = fixture.workfs(&["exec", "--agent", name, "--", "true"]);
        for ran in [ran, mounted, run] {
            assert!(ran.code == 2 && ran.stderr.contains("in the ledger"), "{name}: {ran}");
            assert_eq!(ran.stderr.matches("[W003]").count(), 1, "{name}: {ran}");
        }
        let claimed = fixture.workfs(&["claim", "t-1", "--agent", name]);
        // The operator's own name says no more than leaving it out.
        assert!(name == operator || claimed.code == 2, "{name}: {claimed}");
    }
    assert!(!fixture.workfs(&["agent", "list"]).success().stdout.contains("workfs"));
    fixture.workfs(&["agent", "add", "uid-64001", "--uid", "64001"]).success();
    fixture.fsck_clean();
}
