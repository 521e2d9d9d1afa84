//! What goes where: results to standard output, nothing else there, no colours in a pipe.

use crate::harness::{Fixture, Setup, Task, long, program, python, run};

// P8.1
#[test]
fn what_is_not_for_people_is_not_listed() {
    let fixture = Setup::default().prepare();
    for arguments in [&[][..], &["-q"], &["--help"], &["completions", "fish"]] {
        let said = fixture.workfs(arguments).said();
        assert!(!said.contains("Serve a store") && !said.contains(", daemon"), "{said}");
    }
}

// P8.1
#[test]
fn a_pipe_gets_results_and_no_decoration() {
    let fixture = Fixture::new();
    fixture.tasks(3);
    let tasks = fixture.outside("tasks");
    std::fs::create_dir_all(tasks.join("inbox")).unwrap();
    std::fs::write(tasks.join("inbox/x.yaml"), Task::new("x").text()).unwrap();
    let tasks = tasks.to_str().unwrap().to_owned();
    let commands: [&[&str]; 7] = [
        &["list"],
        &["log"],
        &["status"],
        &["ps"],
        &["show", "t-0001"],
        &["import", &tasks, "work"],
        &["fsck"],
    ];
    for arguments in commands {
        let ran = fixture.workfs(arguments).success();
        assert!(!ran.said().contains('\u{1b}'), "colours in a pipe: {ran}");
        assert!(!ran.said().contains('\r'), "progress in a pipe: {ran}");
        assert!(ran.stderr.is_empty(), "chatter in a pipe: {ran}");
    }
}

// P8.1
#[test]
fn a_terminal_that_takes_text_alone_gets_no_progress() {
    if !crate::harness::needs(&["script"]) {
        return;
    }
    let fixture = Fixture::new();
    let is_drawn = |term| {
        let bash = fixture.bash().with("W", program()).with("S", fixture.store());
        let fsck = "script -qec '\"$W\" --store \"$S\" fsck' /dev/null";
        bash.with("TERM", term).run(fsck).success().stdout.contains("\r\u{1b}")
    };
    assert_eq!(["xterm", "dumb"].map(is_drawn), [true, false]);
}

// P8.1
#[test]
fn what_is_wrong_with_a_command_line_steers_no_terminal() {
    let fixture = Setup::default().prepare();
    let word = "\u{1b}[31mX\rY\n\u{202e}Z\u{7}";
    let option = format!("--{word}");
    let [agent, joined] = ["agent", "color"].map(|name| format!("--{name}={word}"));
    let lines: [&[&str]; 8] = [
        &[word],
        &[&option],
        &["list", &option],
        &["mount", "a", word],
        &["claim", &agent],
        &["list", &joined],
        &["agent", word],
        &["log", "--limit", word],
    ];
    let shown = r"\u{1b}[31mX\rY\n\u{202e}Z\u{7}";
    for line in lines {
        for colour in ["--color=never", "--color=always"] {
            let ran = fixture.workfs(&[&[colour], line].concat()).failure();
            let steers = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
            assert!(ran.code == 2 && !ran.said().contains(steers), "{line:?}: {ran}");
            assert!(ran.said().contains(shown), "{line:?}: {ran}");
        }
        let ran = fixture.workfs(&[&["--json"], line].concat()).failure();
        let error: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
        assert!(error["error"]["reason"].as_str().unwrap().contains(shown), "{ran}");
    }
    // The words of the environment are told as well.
    let mut command = fixture.command(&["claim"]);
    let ran = crate::harness::run(command.env("WORKFS_AGENT", word)).failure();
    assert!(ran.code == 2 && ran.said().contains(shown), "{ran}");
    let mut command = fixture.command(&["claim", "--help", "--color=always"]);
    let ran = crate::harness::run(command.env("WORKFS_AGENT", word)).success();
    assert!(ran.said().contains("WORKFS_AGENT]") && !ran.said().contains("[31mX"), "{ran}");
    // Colours are as ever where nothing steers.
    let ran = fixture.workfs(&["--color=always", "lsit"]).failure();
    assert!(ran.said().contains("\u{1b}["), "{ran}");
}

/// A directory of the host whose name would end the line it stands in, and begin one of its own.
fn deceitful(above: &std::path::Path) -> std::path::PathBuf {
    let dir = above.join("a\nworkfs: all is well\u{1b}[31m\r");
    std::fs::create_dir(&dir).unwrap();
    dir
}

/// How its name is shown.
const DECEITFUL: &str = r"a\nworkfs: all is well\u{1b}[31m\r";

// P8.1
#[test]
fn the_path_of_a_store_or_of_a_mount_breaks_no_message() {
    let above = tempfile::tempdir().unwrap();
    let dir = deceitful(above.path());
    let fixture = Setup::default().store_dir(&dir).prepare();
    let [store, mount, file] = ["team.db", "m", "file"].map(|name| dir.join(name));
    let [mount, file] = [&mount, &file].map(|path| path.to_str().unwrap());
    std::fs::write(file, "no store").unwrap();
    let refused = |arguments: &[&str]| {
        let ran = fixture.workfs(arguments).failure();
        assert!(ran.stderr.starts_with("workfs: ") && ran.stderr.contains(DECEITFUL), "{ran}");
        assert!(!ran.said().contains("\nworkfs:") && !ran.said().contains('\u{1b}'), "{ran}");
        assert!(ran.stderr.lines().count() <= 2, "a reason and a remedy: {ran}");
    };
    let layout = ["init", "--layout", mount];
    for arguments in [&["list"][..], &["unmount", "--all"], &["unmount", mount], &layout] {
        refused(arguments);
    }
    std::fs::copy(file, &store).unwrap();
    refused(&["list"]);
    refused(&["mount", mount]);
    std::fs::remove_file(&store).unwrap();
    refused(&["mount", file]);

    std::fs::create_dir(mount).unwrap();
    fixture.workfs(&["mount", mount]).success();
    let again = fixture.workfs(&["mount", mount]).success();
    assert!(again.said().contains(&format!("{DECEITFUL}/m is mounted already")), "{again}");
    let status = fixture.workfs(&["status"]).success();
    assert!(status.stdout.contains(&format!("{DECEITFUL}/team.db (")), "{status}");
    refused(&["mount", mount, "-o", "ro"]);
    refused(&["restore", file]);
    let mut inside = fixture.command(&["mount", "in"]);
    let ran = crate::harness::run(inside.current_dir(mount)).failure();
    assert!(ran.said().contains(DECEITFUL) && ran.stderr.lines().count() <= 2, "{ran}");
    fixture.workfs(&["unmount", "--all"]).success();
    let log = std::fs::read_to_string(dir.join("team.db.log")).unwrap();
    assert!(log.contains(DECEITFUL), "{log}");
    assert!(!log.contains("\nworkfs:") && !log.contains("[31m\r"), "{log}");
}

// P8.1
#[test]
fn the_path_that_a_command_is_given_breaks_no_message() {
    let fixture = Fixture::new();
    let dir = deceitful(&fixture.outside(""));
    let [file, absent, out] = ["file", "absent", "out"].map(|name| dir.join(name));
    let [file, absent, out] = [&file, &absent, &out].map(|path| path.to_str().unwrap());
    std::fs::write(file, "{").unwrap();
    let commands: [&[&str]; 7] = [
        &["export", file],
        &["export", &format!("{absent}/{absent}")],
        &["backup", file],
        &["backup", &format!("{absent}/{file}")],
        &["import", absent, "work"],
        &["import", file, "work"],
        &["mount", file],
    ];
    for arguments in commands {
        let ran = fixture.workfs(arguments).failure();
        assert!(ran.stderr.contains(DECEITFUL) && ran.stderr.lines().count() <= 2, "{ran}");
        assert!(!ran.said().contains("\nworkfs:") && !ran.said().contains('\u{1b}'), "{ran}");
    }
    // What was made there is what was meant, and programs are told its name.
    let told = fixture.workfs(&["export", out, "--json"]).success().json();
    assert_eq!(told["to"], out);
    let backup = format!("{out}/backup");
    let told = fixture.workfs(&["backup", &backup, "--json"]).success().json();
    assert_eq!(told["file"], backup.as_str());
    assert!(std::fs::metadata(&backup).unwrap().len() > 0);
}

// P8.1
#[test]
fn an_init_of_a_store_that_is_served_is_told_with_json_too() {
    let fixture = Fixture::new();
    let ran = fixture.workfs(&["init", "--json"]).success();
    assert!(ran.stderr.is_empty(), "{ran}");
    let told = ran.json();
    assert_eq!((&told["new"], &told["served_by"]), (&false.into(), &fixture.daemon_pid().into()));
}

// P8.1
#[test]
fn with_json_there_is_nothing_but_json() {
    let fixture = Fixture::new();
    fixture.tasks(3);
    let commands: [&[&str]; 8] = [
        &["list"],
        &["status"],
        &["ps"],
        &["show", "t-0001"],
        &["why"],
        &["fsck"],
        &["doctor"],
        &["claim", "t-0002", "--agent", "bob"],
    ];
    for arguments in commands {
        let mut arguments = arguments.to_vec();
        arguments.push("--json");
        let ran = fixture.workfs(&arguments).success();
        assert!(ran.json().is_object() || ran.json().is_array(), "{ran}");
    }
    for line in fixture.workfs(&["log", "--json"]).success().json_lines() {
        assert!(line.is_object());
    }
}

// P8.1
#[test]
fn the_end_of_a_daemon_is_json_also_where_there_is_none() {
    let fixture = crate::harness::Setup::default().mounts(3).start();
    let mut dirs: Vec<_> = fixture.mounts().iter().map(|dir| dir.to_str().unwrap()).collect();
    let last = dirs.pop().unwrap();
    let one = fixture.workfs(&["unmount", last, "--json"]).success().json();
    assert_eq!(one["unmounted"], serde_json::json!([last]));
    let mut ended = fixture.workfs(&["unmount", "--all", "--json"]).success().json();
    let unmounted = ended["unmounted"].as_array_mut().unwrap();
    unmounted.sort_by_key(ToString::to_string);
    assert_eq!(unmounted, &dirs);
    let ran = fixture.workfs(&["unmount", "--all", "--json"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, "{\"unmounted\":[]}\n"), "{ran}");
    assert!(ran.stderr.is_empty(), "{ran}");
}

// P8.2
#[test]
fn a_wrong_command_line_is_json_and_without_colour_where_that_is_asked_for() {
    let fixture = crate::harness::Setup::default().prepare();
    let wrong: [&[&str]; 7] = [
        &["--json", "show"],
        &["show", "--bogus", "--json"],
        &["no-such-command", "--json"],
        &["--json"],
        &["claim", "--timeout", "1s", "--json"],
        &["--json", "agent", "add", "a b"],
        &["exec", "--json", "--role"],
    ];
    for arguments in wrong {
        let ran = fixture.workfs(arguments).failure();
        let error: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
        assert_eq!((ran.code, &error["error"]["code"]), (2, &2.into()), "{ran}");
        assert!(!error["error"]["reason"].as_str().unwrap().is_empty(), "{ran}");
        assert!(!ran.stderr.contains("error: "), "{ran}");
    }
    let plain = fixture.workfs(&["show", "--", "--json", "x"]).failure();
    assert!(plain.stderr.starts_with("error: "), "it is a word of the command's: {plain}");

    let coloured = |when: &str, arguments: &[&str]| {
        let mut command = fixture.command(&["--color", when]);
        command.args(arguments).env_remove("NO_COLOR").env("CLICOLOR_FORCE", "1");
        crate::harness::run(&mut command).said().contains('\u{1b}')
    };
    for arguments in [&["--help"][..], &["show"], &["show", "x", "--bogus"]] {
        assert!(!coloured("never", arguments), "{arguments:?}");
        assert!(coloured("always", arguments), "{arguments:?}");
    }
}

// P8.1
#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let fixture = Fixture::new();
    fixture.tasks(if long() { 2000 } else { 200 });
    let binary = program();
    // Who follows has nothing more to say.
    for command in ["log", "log --follow", "log --follow --json", "watch '**' --since 0"] {
        let script = format!(
            "set -o pipefail; \"$WORKFS\" --store \"$STORE\" {command} | head -1 > /dev/null; echo $?"
        );
        let shell = fixture.bash().with("WORKFS", binary).with("STORE", fixture.store());
        let ran = shell.run(&script).success();
        assert!(ran.stderr.is_empty(), "{ran}");
        assert_eq!(ran.stdout, "0\n", "{ran}");
    }
}

// P8.1
#[test]
fn names_with_control_characters_are_escaped() {
    let fixture = Fixture::new();
    let script = "import os
os.mkdir(b'work/assigned/x\\x1b[2J')
try:
    open(b'work/inbox/a\\x1b]0;t.yaml', 'w').write('status: [')
    os.rename(b'work/inbox/a\\x1b]0;t.yaml', b'work/inbox/b.yaml')
except OSError:
    pass
open('work/inbox/c.yaml', 'w').write('status: \"\\\\x1b[2J\"\\n')";
    let shell = fixture.bash().with("PYTHON", python()).with("S", script);
    shell.run("\"$PYTHON\" -c \"$S\"");
    for command in ["list", "log", "why", "status", "ps"] {
        let ran = fixture.workfs(&[command]);
        assert!(!ran.said().contains('\u{1b}'), "{command}: {:?}", ran.said());
    }
}

// P8.1
#[test]
fn what_a_layout_says_is_escaped() {
    let fixture = Setup::default().prepare();
    let layout = fixture.outside("layout.yaml");
    let said = |workspace: &str, more: &[&str]| {
        let text = format!("workspaces:\n  - {{ {workspace} }}\n");
        std::fs::write(&layout, text).unwrap();
        let init = [&["init", "--layout", layout.to_str().unwrap()][..], more].concat();
        fixture.workfs(&init)
    };
    for refused in [r#"path: "e\e[31mx", kind: task"#, r#"path: x, kind: "ta\e[31msk""#] {
        let ran = said(refused, &[]).failure();
        assert!(ran.code == 2 && !ran.said().contains('\u{1b}'), "{:?}", ran.said());
    }
    let odd = r#"path: "a\nb", kind: task, dirs: { inbox: "in\e7box" }"#;
    let ran = said(odd, &[]).success();
    assert!(ran.stdout.contains("\na\\nb: a workspace of tasks"), "{ran}");
    assert!(ran.stdout.contains("a\\nb/in\\u{1b}7box, "), "{ran}");
    assert!(!ran.said().contains('\u{1b}'), "{:?}", ran.said());
    // To a program it is the name.
    let json = said(odd, &["--json"]).success().json();
    assert_eq!(json["governs"][0]["path"], "a\nb");
    assert!(json["there"].as_array().unwrap().contains(&"a\nb/in\u{1b}7box".into()), "{json}");
}

// P8.1
#[test]
fn what_cannot_be_printed_is_an_error_and_says_what_was_done() {
    let fixture = Setup::default().start();
    fixture.task("inbox", &Task::new("t-1"));
    let claim = ["claim", "--next", "--agent", "bob"];
    for arguments in [&["--help"][..], &["--version"], &["claim", "--help"], &claim] {
        let mut command = fixture.command(arguments);
        command.stdout(std::fs::File::options().write(true).open("/dev/full").unwrap());
        let ended = command.stderr(std::process::Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(12), "{arguments:?}: {said}");
        assert!(said.contains("standard output: No space left"), "{arguments:?}: {said}");
        assert!(said.contains("make space where it goes"), "{arguments:?}: {said}");
        let names_it = said.contains("it was done all the same: work/assigned/bob/t-1.yaml");
        assert_eq!(names_it, arguments == claim, "{said}");
    }
    // Whoever reads no more wanted no more.
    let ran = fixture.bash().with("WORKFS", program());
    let ran = ran.run("\"$WORKFS\" --help | :; exit ${PIPESTATUS[0]}").success();
    assert_eq!(ran.stderr, "");
}

// P8.1
#[test]
fn who_could_not_hear_of_it_claims_nothing_and_makes_nothing() {
    let fixture = Setup::default().start();
    fixture.task("inbox", &Task::new("t-1"));
    let run = |command: &str| {
        let shell = fixture.bash().with("WORKFS", program()).with("STORE", fixture.store());
        shell.run(&format!("\"$WORKFS\" --store \"$STORE\" {command}"))
    };
    let before = fixture.workfs(&["log"]).success().stdout;
    for is_served in [true, false] {
        let asked = ["claim --next --agent bob", "claim t-1 --agent bob", "project new"];
        // Closed, and open for reading only.
        for closed in [">&-", "1< /dev/null"] {
            for command in asked {
                let ran = run(&format!("{command} {closed}")).failure();
                let why =
                    ["standard output: Bad file descriptor", "so it gave nothing", "/dev/null"];
                assert!(ran.code == 1 && why.iter().all(|why| ran.stderr.contains(why)), "{ran}");
            }
            for command in ["list", "log", "claim --help", "--version"] {
                let ran = run(&format!("{command} {closed}")).failure();
                assert!(ran.code == 1 && ran.stderr.contains("standard output"), "{ran}");
            }
        }
        assert_eq!(fixture.workfs(&["log"]).success().stdout, before);
        if is_served {
            fixture.unmount_all();
        }
    }
    // What is done for itself is done, as on a full disk.
    let ran = run("agent add eve >&-").failure();
    assert!(ran.code == 1 && ran.stderr.contains("it was done all the same"), "{ran}");
    // Who wants to hear nothing says so.
    assert_eq!(run("claim --next --agent bob > /dev/null").success().said(), "");
}

// P8.1
#[test]
fn what_was_made_and_cannot_be_told_is_named() {
    let fixture = Setup::default().start();
    let made = fixture.outside("made");
    std::fs::create_dir(&made).unwrap();
    let [backup, export, dir, store] = ["b.db", "out", "dir", "s.db"].map(|name| made.join(name));
    std::fs::create_dir(&dir).unwrap();
    let [backup, export, dir, store] =
        [&backup, &export, &dir, &store].map(|path| path.to_str().unwrap());
    let cases: [(&[&str], &str); 6] = [
        (&["backup", backup], &format!("backed up to {backup}")),
        (&["export", export], &format!("exported . to {export}")),
        (&["--json", "mount", dir], &format!("mounted on {dir}")),
        (&["--json", "unmount", dir], &format!("unmounted {dir}")),
        (&["--store", store, "init"], &format!("made the store {store}")),
        (&["--store", store, "restore", "--force", backup], &format!("restored {store}")),
    ];
    for (arguments, what) in cases {
        let mut command = if arguments[0] == "--store" {
            let mut command = std::process::Command::new(program());
            command.args(arguments);
            command
        } else {
            fixture.command(arguments)
        };
        command.stdout(std::fs::File::options().write(true).open("/dev/full").unwrap());
        let ended = command.stderr(std::process::Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(12), "{arguments:?}: {said}");
        assert!(
            said.contains(&format!("it was done all the same: {what}")),
            "{arguments:?}: {said}"
        );
    }
}

// P8.1
#[test]
fn texts_with_control_characters_are_escaped() {
    let fixture = Setup::default().start();
    let from = fixture.outside("from/inbox");
    std::fs::create_dir_all(&from).unwrap();
    std::fs::write(from.join("t-1.yaml"), "status: \"do\\nne\\x85\"\n").unwrap();
    let from = fixture.outside("from");
    let ran = fixture.workfs(&["import", from.to_str().unwrap(), "work"]).success();
    assert!(ran.stdout.contains("work/inbox/t-1.yaml: status: do\\nne\\u{85} → new\n"), "{ran}");
}

// P8.1
#[test]
fn a_place_outside_is_told_on_one_line() {
    let fixture = Setup::default().start();
    let odd = fixture.outside("a\nb");
    std::fs::create_dir_all(odd.join("in")).unwrap();
    let [from, out, backup, store] =
        ["in", "out", "b.db", "s.db"].map(|name| odd.join(name).to_str().unwrap().to_owned());
    for (arguments, place) in [
        (["import", &from, "work"].as_slice(), "a\\nb/in into"),
        (&["export", &out], "a\\nb/out: "),
        (&["backup", &backup], "a\\nb/b.db ("),
    ] {
        let said = fixture.workfs(arguments).success().stdout;
        assert!(said.contains(place), "{said}");
    }
    let mut restore = std::process::Command::new(program());
    let ran = run(restore.args(["--store", &store, "restore", &backup])).success();
    assert!(ran.stdout.contains("a\\nb/s.db from "), "{ran}");
    assert!(ran.stdout.contains("a\\nb/b.db: "), "{ran}");
    assert_eq!(
        fixture.workfs(&["--json", "export", &format!("{out}2")]).success().json()["to"],
        format!("{out}2")
    );
}

// P8.1
#[test]
fn the_root_of_the_tree_has_a_name() {
    let fixture = Setup::default().start();
    let (from, out) = (fixture.outside("from"), fixture.outside("out"));
    std::fs::create_dir(&from).unwrap();
    let shown = fixture.workfs(&["show", "."]).success().stdout;
    assert!(shown.starts_with("# .\n"), "{shown}");
    let said = fixture.workfs(&["import", from.to_str().unwrap(), "."]).success().stdout;
    assert!(said.contains("from into ./: 0 files"), "{said}");
    let said = fixture.workfs(&["export", out.to_str().unwrap()]).success().stdout;
    assert!(said.starts_with("exported . to "), "{said}");
}

// P8.2
#[test]
fn a_word_that_is_mistyped_is_told_in_words_and_does_nothing() {
    let fixture = Fixture::new();
    let refused = |words: &[&str], says: &str| {
        let ran = fixture.workfs(words).failure();
        assert!(ran.code == 2 && ran.stderr.contains(says), "{words:?}: {ran}");
    };
    refused(&["exec", "--agnet", "bob", "--", "true"], "unexpected argument '--agnet'");
    refused(&["gc", "--older-than", "soon"], "is no time: `90s`");
    refused(&["show", "scratchpad", "--g", "x"], "no whole number");
    refused(&["log", "-n", "1.5"], "no whole number");
    fixture.workfs(&["gc", "--older-than", "12h"]).success();
    fixture.workfs(&["gc", "--older-than", "30"]).success();
    // What stands behind the command is the command's.
    let echo = fixture.workfs(&["exec", "echo", "--agnet", "-n"]).success();
    assert_eq!(echo.stdout, "--agnet -n\n");
}
