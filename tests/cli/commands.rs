//! Each command once, as people use it, with a mount and without.

use std::fs;

use rustix::io::ioctl_fionread;
use serde_json::Value;

use crate::harness::{DEADLINE, Fixture, Setup, Task, lies, pile, program, until_polled};

/// A fixture without a mount: the commands open the store themselves.
fn unmounted() -> Fixture {
    let fixture = Setup::default().prepare();
    fixture.workfs(&["init"]).success();
    fixture
}

/// Two tasks in a plain directory, to be imported.
fn plain_tasks(fixture: &Fixture) -> String {
    let dir = fixture.outside("tasks");
    fs::create_dir_all(dir.join("inbox")).unwrap();
    for id in ["t-1", "t-2"] {
        fs::write(dir.join(format!("inbox/{id}.yaml")), Task::new(id).text()).unwrap();
    }
    dir.to_str().unwrap().to_owned()
}

#[track_caller]
fn json(fixture: &Fixture, arguments: &[&str]) -> Value {
    let mut arguments = arguments.to_vec();
    arguments.push("--json");
    fixture.workfs(&arguments).success().json()
}

/// A task's whole life by commands alone.
fn a_life(fixture: &Fixture) {
    let tasks = plain_tasks(fixture);
    let report = json(fixture, &["import", &tasks, "work"]);
    assert_eq!(report["records"], 2, "{report}");

    let listed = json(fixture, &["list", "work"]).to_string();
    assert!(listed.contains("t-1") && listed.contains("t-2"), "{listed}");
    assert!(listed.contains(r#""status":"new""#), "{listed}");
    let claimed = json(fixture, &["claim", "t-1", "--agent", "bob"]);
    assert_eq!(claimed["id"], "t-1", "{claimed}");
    let next = json(fixture, &["claim", "--next", "--agent", "bob"]);
    assert_eq!(next["id"], "t-2", "{next}");
    let none = fixture.workfs(&["claim", "--next", "--agent", "bob"]);
    assert_eq!(none.code, 3, "nothing to claim has its own code: {none}");

    let shown = json(fixture, &["show", "t-1"]);
    assert_eq!((&shown["state"], &shown["owner"]), (&"assigned".into(), &"bob".into()), "{shown}");
    json(fixture, &["done", "t-1", "--agent", "bob", "--summary", "it works"]);
    json(fixture, &["fail", "t-2", "--agent", "bob", "--message", "it does not"]);
    let shown = json(fixture, &["show", "t-2"]);
    assert!(shown["text"].as_str().unwrap().contains("it does not"), "{shown}");

    let log = fixture.workfs(&["log", "--json", "t-1"]).success().json_lines();
    let names: Vec<&str> = log.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names.first().copied(), Some("imported"), "{names:?}");
    assert_eq!(names.last().copied(), Some("completed"), "{names:?}");
    let status = json(fixture, &["status"]);
    assert_eq!(status["last_g"], fixture.ledger().last_g(), "{status}");
    json(fixture, &["doctor"]);
    json(fixture, &["fsck"]);
    for command in ["list", "status", "log", "why", "fsck"] {
        let said = fixture.workfs(&[command]).success();
        assert!(command == "why" || !said.stdout.is_empty(), "{said}");
    }
    fixture.workfs(&["show", "t-1"]).success();
}

// P8.1
#[test]
fn who_is_added_again_without_a_role_keeps_it_and_that_is_said() {
    let fixture = Fixture::new();
    let add = |more: &[&str]| fixture.workfs(&[&["agent", "add"], more].concat()).success();
    assert!(!add(&["olga", "--role", "observer"]).stdout.contains("stays"));
    let again = add(&["olga"]);
    assert!(again.stdout.contains("olga was registered as observer and stays it"), "{again}");
    let told = add(&["olga", "--json"]).json();
    assert!(told["note"].as_str().unwrap().contains("--role agent"), "{told}");
    assert!(!add(&["olga", "--role", "agent"]).stdout.contains("stays"));
    assert!(add(&["olga", "--json"]).json()["note"].is_null());
}

// P8.1
#[test]
fn a_task_lives_by_commands_through_the_daemon() {
    let fixture = Fixture::new();
    a_life(&fixture);
    let pile = pile(&fixture.work());
    assert_eq!(pile["t-1"], ["done/bob"]);
    assert_eq!(lies(&fixture.work(), &pile, "t-2"), "assigned/bob");
    fixture.fsck_clean();
}

// P8.1
#[test]
fn a_task_lives_by_commands_without_any_mount() {
    let fixture = unmounted();
    a_life(&fixture);
    assert!(crate::harness::processes_of(fixture.store()).is_empty());
    fixture.mount_all();
    assert_eq!(pile(&fixture.work())["t-1"], ["done/bob"]);
}

// P8.1
#[test]
fn release_gives_a_task_back() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.workfs(&["claim", "t-1", "--agent", "bob"]).success();
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "assigned/bob");
    fixture.workfs(&["release", "t-1", "--agent", "bob"]).success();
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "inbox");
    assert_eq!(fixture.ledger().names("t-1"), ["created", "claimed", "released"]);
}

// P1.1
#[test]
fn claim_next_gives_each_caller_another_task() {
    let fixture = Fixture::new();
    fixture.tasks(8);
    let mut ids: Vec<String> = std::thread::scope(|scope| {
        let claims: Vec<_> = (0..8)
            .map(|nth| {
                let (fixture, agent) = (&fixture, format!("w{nth}"));
                scope.spawn(move || {
                    json(fixture, &["claim", "--next", "--agent", &agent])["id"].to_string()
                })
            })
            .collect();
        claims.into_iter().map(|claim| claim.join().unwrap()).collect()
    });
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 8, "{ids:?}");
    fixture.fsck_clean();
}

// P8.1
#[test]
fn what_only_a_mount_shows_is_said_to_be_no_part_of_the_tree() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let out = fixture.outside("out");
    let out = out.to_str().unwrap();
    for what in ["AGENTS.md", ".workfs/why", "work/ready", "work/inbox/t-1.yaml.why"] {
        let export = ["export", out, "--path", what];
        for arguments in [&["show", what][..], &["why", what], &["log", what], &export] {
            let ran = fixture.workfs(arguments).failure();
            assert!(ran.code == 2 && ran.stderr.contains("what workfs shows"), "{ran}");
        }
    }
    let mut command = fixture.command(&["mount", "--root", "work"]);
    let part = fixture.outside("part");
    std::fs::create_dir(&part).unwrap();
    crate::harness::run(command.arg(&part)).success();
    let mut command = fixture.command(&["show", "AGENTS.md"]);
    let ran = crate::harness::run(command.current_dir(&part)).failure();
    assert!(ran.code == 2 && ran.stderr.contains("`AGENTS.md` is what workfs shows"), "{ran}");
    // It tells of nothing that is there.
    assert_eq!(fixture.workfs(&["show", "work/inbox/t-2.yaml.why"]).code, 4);
    fixture.workfs(&["unmount", part.to_str().unwrap()]).success();
}

// P8.1
#[test]
fn inside_a_mount_nothing_needs_to_be_named() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let mut command = std::process::Command::new(program());
    command.args(["claim", "inbox/t-1.yaml", "--agent", "bob", "--json"]);
    command.current_dir(fixture.work()).env("HOME", fixture.base()).env_remove("WORKFS_STORE");
    let ran = crate::harness::run(&mut command).success();
    assert_eq!(ran.json()["id"], "t-1", "{ran}");
    assert!(fixture.path("work/assigned/bob/t-1.yaml").exists());
}

// P11.3
#[test]
fn a_record_is_restored_of_no_moment_at_which_it_was_gone() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let text = fs::read_to_string(&path).unwrap();
    let restore = |g: u64| fixture.workfs(&["restore", "t-1", "--at", &g.to_string()]).failure();
    let last = || fixture.ledger().last_g();
    for (take_away, how) in [
        ("rm $W/inbox/t-1.yaml", "removed it"),
        ("mv $W/inbox/t-1.yaml t-1.txt", "moved it to `t-1.txt`"),
    ] {
        let made = last();
        fixture.sh(take_away).success();
        let end = last();
        let ran = restore(end);
        assert!(ran.code == 4 && ran.stderr.contains(&format!("event {end} ")), "{ran}");
        assert!(ran.stderr.contains(how), "{ran}");
        assert!(ran.stderr.contains(&format!("event {made} made the last")), "{ran}");
        // What it was is at hand.
        let ran = restore(made);
        let version = format!(".workfs/history/work/t-1/{made}.yaml");
        assert!(ran.code == 4 && ran.stderr.contains(&format!("cp {version} ")), "{ran}");
        fixture.sh(&format!("cp {version} $W/inbox/t-1.yaml")).success();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        let ran = restore(end);
        assert!(ran.stderr.contains(&format!("event {} the next after it", last())), "{ran}");
    }
    fixture.fsck_clean();
}

// P8.1
#[test]
fn log_follows() {
    use std::io::BufRead;
    let fixture = Fixture::new();
    let since = fixture.ledger().last_g().to_string();
    let mut command = fixture.command(&["log", "--json", "--follow", "--since", &since]);
    command.stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    for nth in 0..3 {
        let task = Task::new(&format!("t-{nth}"));
        fixture.task("inbox", &task);
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(line["id"], format!("t-{nth}"), "{line}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

// P8.1
#[test]
fn without_a_daemon_log_follows_also_who_reads_it_slowly() {
    use std::io::BufRead;
    let fixture = unmounted();
    let many = fixture.outside("many/inbox");
    fs::create_dir_all(&many).unwrap();
    for nth in 0..200 {
        let task = Task::new(&format!("t-{nth:03}"));
        fs::write(many.join(task.file()), task.text()).unwrap();
    }
    fixture.workfs(&["import", many.parent().unwrap().to_str().unwrap(), "work"]).success();
    let mut command = fixture.command(&["log", "--json", "--follow"]);
    command.stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stdout = child.stdout.take().unwrap();
    // It waits in the middle of what it tells for who reads it, and has no store open.
    until_polled("the pipe is full", || (ioctl_fionread(&stdout).unwrap() > 60_000).then_some(()));
    fixture.workfs(&["agent", "add", "bob"]).success();
    let (tell, told) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut lines = std::io::BufReader::new(stdout).lines().map_while(Result::ok);
        let _ = tell.send(lines.find(|line| line.contains("\"agent\":\"bob\"")));
    });
    let line = told.recv_timeout(DEADLINE);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap();
    assert!(line.is_ok_and(|line| line.is_some()), "what happened meanwhile was not told");
}

// P8.1
#[test]
fn completions_manual_and_version() {
    let fixture = Setup::default().prepare();
    let version = fixture.workfs(&["--version"]).success();
    assert!(version.stdout.contains(env!("CARGO_PKG_VERSION")), "{version}");
    for shell in ["bash", "zsh", "fish"] {
        let said = fixture.workfs(&["completions", shell]).success();
        assert!(said.stdout.contains("unmount"), "{said}");
    }
    let page = fixture.workfs(&["man"]).success();
    assert!(page.stdout.contains(".SH \"EXIT STATUS\"") && page.stderr.is_empty(), "{page}");
    let (dir, file) = (fixture.outside("share/man1"), fixture.outside("file"));
    let told = fixture.workfs(&["man", dir.to_str().unwrap()]).success();
    assert!(told.stdout.is_empty() && told.stderr.contains(" pages in "), "{told}");
    assert_eq!(fs::read_to_string(dir.join("workfs.1")).unwrap(), page.stdout);
    assert!(fs::read_to_string(dir.join("workfs-claim.1")).unwrap().contains("timeout"));
    fs::write(&file, "").unwrap();
    let refused = fixture.workfs(&["man", file.join("x").to_str().unwrap()]).failure();
    assert!(refused.code == 2 && refused.stderr.contains("workfs man"), "{refused}");
    assert!(!fixture.store().exists());
}

// P10.2
#[test]
fn the_log_names_the_agent_that_was_registered() {
    let fixture = Fixture::new();
    fixture.workfs(&["agent", "add", "bob"]).success();
    let log = fixture.workfs(&["log"]).success();
    assert!(log.stdout.contains(" bob by "), "{log}");
}

// P8.2
#[test]
fn what_cannot_be_done_says_why_and_the_way_out() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    fixture.workfs(&["done", "t-1", "--summary", "it works"]).success();
    let before = fixture.ledger().last_g();
    for summary in [&[][..], &["--summary", "again"]] {
        let twice = fixture.workfs(&[&["done", "t-1"], summary].concat());
        assert_eq!(twice.code, 5, "{twice}");
        assert!(twice.stderr.contains("`work/done/bob/t-1.yaml` is in done already"), "{twice}");
    }
    let tasks = plain_tasks(&fixture);
    for target in [".workfs", ".workfs/in", "work/ready", "AGENTS.md"] {
        let ran = fixture.workfs(&["import", &tasks, target]);
        assert!(ran.code == 2 && ran.stderr.contains("workfs itself shows"), "{ran}");
    }
    assert_eq!(fixture.ledger().last_g(), before);

    fixture.task("inbox", &Task::new("t-2"));
    let made = fixture.ledger().last_g();
    fixture.sh("rm work/inbox/t-2.yaml").success();
    let ran = fixture.workfs(&["restore", "t-2", "--at", &made.to_string()]);
    let (_, way) = ran.stderr.split_once("cp ").unwrap_or_else(|| panic!("{ran}"));
    fixture.sh(&format!("cp {}", way.trim().replace("DIRECTORY", "inbox"))).success();
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-2"), "inbox");
    assert_eq!(fixture.ledger().names("t-2"), ["created", "removed", "created"]);
}

// P8.1
#[test]
fn a_refused_command_leaves_no_lane_and_no_event() {
    let fixture = Setup::default().lanes(["bob"]).start();
    fixture.task("assigned/bob", &Task::new("t-1").status("assigned").owner("bob"));
    // The owner cannot be written into it.
    let text = "id: t-2\nstatus: new\nagent: &who nobody\nreviewer: *who\n";
    crate::harness::save(&fixture.work().join("inbox/t-2.yaml"), text.as_bytes()).unwrap();
    fs::remove_dir(fixture.path("work/done/bob")).unwrap();
    let before = fixture.ledger().last_g();
    for (arguments, code) in [
        (&["done", "t-1", "--agent", "bob"][..], 7),
        (&["claim", "t-2", "--agent", "eve"], 7),
        (&["claim", "t-1", "--agent", "eve"], 5),
        (&["claim", "--agent", "eve"], 7),
    ] {
        let ran = fixture.workfs(arguments).failure();
        assert_eq!(ran.code, code, "{ran}");
    }
    for lane in ["done/bob", "assigned/eve"] {
        assert!(!fixture.work().join(lane).exists(), "{lane}");
    }
    assert_eq!(fixture.ledger().last_g(), before);
    fixture.workfs(&["done", "t-1", "--agent", "bob", "--summary", "x"]).success();
    fixture.task("inbox", &Task::new("t-3"));
    fixture.workfs(&["claim", "--agent", "eve"]).success();
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-3"), "assigned/eve");
}

// P8.1
#[test]
fn the_past_is_shown_as_it_was_and_has_no_lease() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("x"));
    fixture.sh("mv work/inbox/x.yaml work/assigned/bob/").success();
    let show = |more: &[&str]| fixture.workfs(&[&["show", "x", "--json"], more].concat());
    let now = show(&[]).success().json();
    assert!(now["lease_until"].is_string() && now["attempt"] == 1, "{now}");
    let created = fixture.ledger().of_record("x")[0].0["g"].to_string();
    for past in [["--g", created.as_str()], ["--at", "1"]] {
        let then = show(&past).success().json();
        assert_eq!((&then["state"], &then["attempt"]), (&"inbox".into(), &0.into()), "{then}");
        assert!(then["lease_until"].is_null() && then["owner"].is_null(), "{then}");
        assert_eq!(then["path"], "work/inbox/x.yaml");
        assert_eq!(then["version"], 1);
    }
}

// P8.1 P11.3
#[test]
fn the_past_of_a_path_is_shown_whatever_lies_there_now() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("x"));
    fixture
        .sh("mkdir -p scratchpad; echo 1 > scratchpad/f; rm scratchpad/f work/inbox/x.yaml")
        .success();
    let created = fixture.ledger().of_record("x")[0].0["g"].to_string();
    let saved = fixture.workfs(&["log", "--json", "scratchpad/f"]).success().json_lines();
    let saved = saved[0]["g"].to_string();
    for make in ["mkdir", "mkfifo", "ln -s nothing"] {
        fixture.sh(&format!("{make} scratchpad/f; {make} work/inbox/x.yaml")).success();
        let then = fixture.workfs(&["show", "scratchpad/f", "--g", &saved]).success();
        assert!(then.stdout.ends_with("\n1\n"), "{make}: {then}");
        let then = fixture.workfs(&["show", "work/inbox/x.yaml", "--json", "--g", &created]);
        assert_eq!(then.success().json()["version"], 1, "{make}");
        fixture.sh("rm -d scratchpad/f work/inbox/x.yaml").success();
    }
}

// P8.1
#[test]
fn show_says_what_list_says() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    crate::harness::save(&fixture.path("work/inbox/d.yaml"), b"status: [").unwrap_err();
    let rows = fixture.workfs(&["list", "--json"]).success().json()["rows"].clone();
    for row in rows.as_array().unwrap() {
        let id = row["id"].as_str().unwrap();
        let shown = fixture.workfs(&["show", id, "--json"]).success().json();
        for field in ["id", "path", "workspace", "state", "status", "owner", "version", "rule"] {
            assert_eq!(shown[field], row[field], "{field}: {shown}");
        }
    }
    assert_eq!(rows.as_array().unwrap().len(), 2);
}

// P8.1
#[test]
fn what_is_not_there_is_told_with_where_to_look() {
    let fixture = Fixture::new();
    fixture
        .sh("echo x > scratchpad/f 2>/dev/null || { mkdir -p scratchpad; echo x > scratchpad/f; }")
        .success();
    let absent = |what: &str, remedy: &str| {
        let ran = fixture.workfs(&["show", what]).failure();
        assert!(ran.code == 4 && ran.stderr.contains(remedy), "{ran}");
    };
    absent("scratchpad/none", "`workfs show scratchpad` lists what is there");
    absent("no/such/place", "`workfs show .` what lies at the root");
    fixture.sh("rm scratchpad/f").success();
    absent("scratchpad/f", "`workfs log scratchpad/f` tells what became of it");
    fixture.workfs(&["log", "scratchpad/f"]).success();
    fixture.workfs(&["show", "scratchpad"]).success();
}

// P8.1
#[test]
fn a_file_that_is_too_large_to_be_shown_has_no_words_for_its_text() {
    let fixture = Fixture::new();
    fs::write(fixture.path("big"), vec![b'x'; (1 << 20) + 1]).unwrap();
    let shown = fixture.workfs(&["show", "big", "--json"]).success().json();
    assert_eq!((&shown["text"], &shown["left_out_bytes"]), (&"".into(), &1_048_577.into()));
    let shown = fixture.workfs(&["show", "big"]).success();
    assert!(shown.stdout.contains("# 1048577 bytes: read it through a mount"), "{shown}");
    fs::write(fixture.path("big"), "x\n").unwrap();
    let shown = fixture.workfs(&["show", "big", "--json"]).success().json();
    assert!(shown["text"] == "x\n" && shown["left_out_bytes"].is_null(), "{shown}");
}

// P8.1
#[test]
fn a_draft_is_found_by_its_id() {
    let fixture = Fixture::new();
    let save = |dir: &str, text: &str| {
        crate::harness::save(&fixture.work().join(dir).join("x.yaml"), text.as_bytes())
    };
    fixture.task("inbox", &Task::new("x"));
    fs::remove_file(fixture.work().join("inbox/x.yaml")).unwrap();
    save("inbox", "status: [").unwrap_err();
    let why = fixture.workfs(&["why", "x"]).success();
    assert!(why.stdout.starts_with("work/inbox/x.yaml"), "{why}");
    let kept = why.stdout.lines().find_map(|line| line.strip_prefix("  kept: ")).unwrap();
    assert_eq!(fs::read(fixture.path(kept)).unwrap(), b"status: [");
    let shown = fixture.workfs(&["show", "x"]).success();
    assert!(shown.stdout.contains("# draft") && shown.stdout.contains("status: ["), "{shown}");
    let claimed = fixture.workfs(&["claim", "x", "--agent", "bob"]).failure();
    assert!(claimed.code == 6 && claimed.stderr.contains("draft"), "{claimed}");
    let future = fixture.workfs(&["show", "x", "--g", "99999"]).failure();
    assert!(future.code == 4 && future.stderr.contains("has not happened"), "{future}");
    // What was there before it has its past under the same id.
    assert!(fixture.workfs(&["log", "x"]).success().stdout.contains("removed"));
    let past = fixture.workfs(&["show", "x", "--at", "1"]).success();
    assert!(past.stdout.contains("title:"), "{past}");

    save("assigned/bob", "status: [").unwrap_err();
    let both = fixture.workfs(&["show", "x"]).failure();
    assert!(both.code == 2 && both.stderr.contains("work/inbox/x.yaml or"), "{both}");
}

// P8.1
#[test]
fn a_record_is_finished_however_its_text_is_written() {
    let fixture = Setup::default().start();
    let texts = [
        (r#"{"id": "t-1", "status": "new", "title": "x"}"#, r#""title": "x"}"#),
        ("{\n  \"id\": \"t-1\",\n  \"status\": \"new\"\n}\n", "\n  \"id\": \"t-1\",\n"),
        ("{id: t-1, status: new, result: {summary: null, x: [1]}} # c\n", ", x: [1]}} # c\n"),
        ("\"id\": t-1\n\"status\": \"new\" # c\n\"result\":\n", "\"id\": t-1\n"),
        ("'id': t-1\n'status': new\n'error':\n  'message': old\n  z: 1\n", "\n  z: 1\n"),
    ];
    for (text, kept) in texts {
        std::fs::write(fixture.path("work/inbox/t-1.yaml"), text).unwrap();
        fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
        let said = "it \"works\": {so} # far";
        fixture.workfs(&["fail", "t-1", "--agent", "bob", "--message", said]).success();
        fixture.workfs(&["done", "t-1", "--agent", "bob", "--summary", said]).success();
        let done = std::fs::read_to_string(fixture.path("work/done/bob/t-1.yaml")).unwrap();
        assert!(done.contains(kept), "{done}");
        assert_eq!(done.matches(r#""it \"works\": {so} # far""#).count(), 2, "{done}");
        fixture.sh("rm work/done/bob/t-1.yaml").success();
    }
    fixture.fsck_clean();
}
