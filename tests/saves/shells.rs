//! Shells and the small programs that they call.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use crate::harness::{Fixture, Shell, Task};
use crate::way::Way;

// P3.1
#[test]
fn redirection_in_bash() {
    Way { script: "cat \"$NEW\" > \"$F\"", ..Way::default() }.judge();
}

// P3.1
#[test]
fn redirection_in_dash() {
    Way { script: "cat \"$NEW\" > \"$F\"", ..Way::default() }.judge_in_dash();
}

// P3.1
#[test]
fn tee() {
    Way { script: "tee \"$F\" < \"$NEW\" > /dev/null", ..Way::default() }.judge();
}

// P3.1
#[test]
fn cp() {
    Way { script: "cp \"$NEW\" \"$F\"", ..Way::default() }.judge();
}

// P3.1
#[test]
fn cp_with_all_attributes() {
    Way { script: "cp -a \"$NEW\" \"$F\"", ..Way::default() }.judge();
}

// P3.1
#[test]
fn dd_in_small_pieces() {
    let script = "dd if=\"$NEW\" of=\"$F\" bs=37 status=none";
    Way { script, ..Way::default() }.judge();
}

// P3.1
#[test]
fn dd_with_fsync() {
    let script = "cat \"$NEW\" | dd of=\"$F\" status=none conv=fsync";
    Way { script, ..Way::default() }.judge();
}

// P3.1
#[test]
fn sed_in_place() {
    let script = "sed -i \"s/^$OLD_LINE\\$/$NEW_LINE/\" \"$F\"";
    Way { script, ..Way::default() }.judge();
}

// P3.1
#[test]
fn printf_of_a_variable() {
    // The shell's own `printf` does not look at `close`: of what only the end shows it cannot tell.
    let script = "T=$(cat \"$NEW\"; echo .); printf %s \"${T%.}\" > \"$F\"";
    Way { script, tells: false, ..Way::default() }.judge();
}

// P3.1
#[test]
fn temp_file_beside_it_and_mv() {
    let script = "T=\"$F.tmp.$$.c0ffee\"; cp \"$NEW\" \"$T\" &&
                  { mv \"$T\" \"$F\" || { rm \"$T\"; exit 1; }; }";
    Way { script, ..Way::default() }.judge();
}

// P3.1
#[test]
fn temp_file_from_elsewhere_and_mv() {
    let script = "T=scratchpad/t-1.new; mkdir -p scratchpad; cp \"$NEW\" $T; mv $T \"$F\"";
    Way { script, ..Way::default() }.judge();
}

// P3.1 P2.3
#[test]
fn appending_is_a_save_too() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    fixture.sh("echo 'note: one more line' | cat >> work/inbox/t-1.yaml").success();
    let text = Task::new("t-1").text() + "note: one more line\n";
    assert_eq!(fs::read_to_string(&path).unwrap(), text);

    let said = fixture.sh("echo 'priority: high' | cat >> work/inbox/t-1.yaml").failure();
    assert!(said.stderr.contains("Invalid argument"), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    let kept = fixture.rejected();
    let bad = text.clone() + "priority: high\n";
    assert!(kept.iter().any(|bytes| bytes == bad.as_bytes()), "the second `priority` is not kept");
    assert!(fixture.why().contains("W010"), "{}", fixture.why());
    assert_eq!(fixture.ledger().names("t-1"), ["created", "saved"]);
    fixture.fsck_clean();
}

// P3.3
#[test]
fn echo_of_nonsense_prints_an_error_and_returns_1() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    for shell in [Shell::bash(fixture.root()), Shell::dash(fixture.root())] {
        let said = shell.run("echo \"status: nonsense\" > work/inbox/t-1.yaml").failure();
        assert_eq!(said.code, 1, "{said}");
        assert!(said.stderr.contains("echo"), "{said}");
        assert!(said.stderr.contains("Invalid argument") || said.stderr.contains("I/O"), "{said}");
        assert_eq!(fs::read_to_string(&path).unwrap(), Task::new("t-1").text());
    }
    let kept = fixture.rejected();
    assert!(kept.iter().any(|bytes| bytes == b"status: nonsense\n"), "{kept:?}");
    assert_eq!(fixture.ledger().names("t-1"), ["created"]);
}

// P3.3
#[test]
fn echo_of_what_is_good_so_far_is_no_way_around() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    // Whole and valid: what the shell writes is the record now.
    fixture.sh("echo 'status: new' > work/inbox/t-1.yaml").success();
    assert_eq!(fs::read_to_string(&path).unwrap(), "status: new\n");
    // Not whole: the shell does not look at `close`, but nothing is lost.
    fixture.sh("echo 'title: [' > work/inbox/t-1.yaml");
    assert_eq!(fs::read_to_string(&path).unwrap(), "status: new\n");
    assert!(fixture.rejected().iter().any(|bytes| bytes == b"title: [\n"));
    fixture.fsck_clean();
}

// P3.3
#[test]
fn of_many_small_writes_those_of_a_shell_are_refused_at_once_and_thousands_at_the_end() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let good = fs::read(&path).unwrap();
    // Nothing that a shell's user waits for: each line is heard of.
    let ran = fixture.sh("{ echo 'id: t-1'; echo 'title: hello there'; echo 'notes:'
           for i in $(seq 100); do echo \"- line $i\" || exit 3; done
           echo 'status: nonsense'; } > work/inbox/t-1.yaml");
    assert!(ran.code == 1 && ran.stderr.contains("Invalid argument"), "{ran}");
    assert_eq!(fs::read(&path).unwrap(), good);
    let script = "import os; fd = os.open('work/inbox/t-1.yaml', os.O_WRONLY | os.O_TRUNC)
write = lambda text: os.write(fd, text)
write(b'id: t-1\\ntitle: hello there\\nnotes:\\n')
for i in range(4000): write(b'- a%06d\\n' % i)
write(b'status: nonsense\\n')
os.close(fd)";
    let shell = fixture.bash().with("PYTHON", crate::harness::python()).with("S", script);
    let ran = shell.run("\"$PYTHON\" -c \"$S\"");
    assert!(!ran.ok() && ran.stderr.contains("Invalid argument"), "{ran}");
    assert_eq!(fs::read(&path).unwrap(), good);
}

// P3.1
#[test]
fn emptying_a_record_leaves_it_as_it_is() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let ways = [
        ": > work/inbox/t-1.yaml",
        "> work/inbox/t-1.yaml",
        "cp /dev/null work/inbox/t-1.yaml",
        "cat /dev/null > work/inbox/t-1.yaml",
        "truncate -s 0 work/inbox/t-1.yaml",
        "\"$PYTHON\" -c 'import os; os.truncate(\"work/inbox/t-1.yaml\", 0)'",
        "\"$PYTHON\" -c 'open(\"work/inbox/t-1.yaml\", \"w\").close()'",
    ];
    for way in ways {
        let ran = fixture.bash().with("PYTHON", crate::harness::python()).run(way);
        println!("{way}: exit {}: {}", ran.code, ran.stderr.trim());
        let is = fs::read_to_string(&path).unwrap();
        assert_eq!(is, Task::new("t-1").text(), "after {way}");
        assert_eq!(fs::metadata(&path).unwrap().len(), is.len() as u64, "size after {way}");
    }
    assert_eq!(fixture.ledger().names("t-1"), ["created"]);
    fixture.fsck_clean();
}

// P2.5
#[test]
fn a_save_of_the_same_bytes_makes_no_version() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.sh("cp work/inbox/t-1.yaml $OUT/x; cp $OUT/x work/inbox/t-1.yaml").success();
    fixture.sh("touch work/inbox/t-1.yaml").success();
    assert_eq!(fixture.ledger().names("t-1"), ["created"]);
}

/// A script that reads, waits until `between` is done, and goes on; what it prints then.
pub fn overtaken(fixture: &Fixture, script: &str, between: impl FnOnce()) -> String {
    let mut bash = Command::new("bash")
        .args(["-c", script])
        .current_dir(fixture.work())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(bash.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "read\n");
    between();
    drop(bash.stdin.take());
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    bash.wait().unwrap();
    rest
}

// P1.4 P3.3
#[test]
fn a_shell_that_was_overtaken_hears_of_it_when_it_writes() {
    let ways = [
        "s=$(cat F); echo read; read -r go; if echo \"$s\" > F; then echo won; else echo lost; fi",
        "exec 3>> F; cat F > /dev/null; echo read; read -r go; \\
         if echo 'x: 1' >&3; then echo won; else echo lost; fi; exec 3>&-",
    ];
    for (nth, way) in ways.iter().enumerate() {
        let fixture = Fixture::new();
        let path = fixture.task("inbox", &Task::new("t-1"));
        let script = way.replace('F', "inbox/t-1.yaml");
        let said = overtaken(&fixture, &script, || {
            fixture.sh("sed -i 's/^revision: 0/revision: 1/' work/inbox/t-1.yaml").success();
        });
        assert_eq!(said, "lost\n", "way {nth}: {}", fixture.why());
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, Task::new("t-1").text().replace("revision: 0", "revision: 1"));
        assert!(fixture.why().contains("W023"), "{}", fixture.why());
        assert_eq!(fixture.ledger().names("t-1"), ["created", "saved"]);
        fixture.fsck_clean();
    }
}

// P1.3 P3.3
#[test]
fn a_claim_by_copy_that_was_overtaken_takes_nothing_away() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let script = "s=$(cat inbox/t-1.yaml); echo read; read -r go; \\
        echo \"$s\" > assigned/bob/t-1.yaml && rm inbox/t-1.yaml && echo claimed";
    let said = overtaken(&fixture, script, || {
        fixture.sh("sed -i 's/^revision: 0/revision: 1/' work/inbox/t-1.yaml").success();
    });
    assert_eq!(said, "", "{}", fixture.why());
    assert!(fs::read_to_string(&path).unwrap().contains("revision: 1\n"));
    assert!(!fixture.path("work/assigned/bob/t-1.yaml").exists());
    fixture.fsck_clean();
}

// P3.3
#[test]
fn a_shell_hears_of_a_status_and_of_an_id_that_cannot_be() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.task("assigned/bob", &Task::new("t-2").status("in_progress").owner("bob"));
    let refused = [
        ("inbox/t-1", "status: done", "W013"),
        ("inbox/t-1", "status: assigned", "W013"),
        ("inbox/t-1", "id: other", "W012"),
        ("inbox/t-1", "lease: 90d", "W011"),
        ("assigned/bob/t-2", "status: done", "W013"),
        ("assigned/bob/t-2", "status: inbox", "W013"),
        ("assigned/bob/t-2", "status: assigned", "W014"),
    ];
    for (file, line, rule) in refused {
        let path = fixture.path(&format!("work/{file}.yaml"));
        let before = fs::read_to_string(&path).unwrap();
        for shell in ["bash", "dash"] {
            let ran = fixture.sh(&format!("{shell} -c \"echo '{line}' > work/{file}.yaml\""));
            assert!(!ran.failure().stderr.is_empty(), "{shell}: {line}");
            assert_eq!(fs::read_to_string(&path).unwrap(), before, "{shell}: {line}");
        }
        let why = fixture.why();
        assert!(why.lines().next().is_some_and(|first| first.contains(rule)), "{line}: {why}");
    }
    fixture.fsck_clean();
}

// P3.3
#[test]
fn a_shell_hears_of_a_list_or_mapping_where_there_is_none_and_of_what_is_wrong_in_one() {
    let fixture = Fixture::new();
    let refused = [
        "agent: [x]\\n",
        "title: {a: 1}\\ndescription: d\\n",
        "title:\\n  - a\\nmode: x\\n",
        "id: [x]\\nb: 1\\n",
        "status: [new]\\nb: 1\\n",
        "artefacts:\\n- a.rs\\n- [b]\\n- c\\n",
        "result:\\n  summary: [x]\\ntitle: t\\n",
        "error:\\n  message: 5\\ntitle: t\\n",
        "{title: t, error: {message: 5}}\\n",
    ];
    for text in refused {
        let ran = fixture.sh(&format!("printf '{text}' > work/inbox/t-1.yaml"));
        assert!(ran.failure().stderr.contains("Invalid argument"), "{text}");
        let why = fixture.why();
        assert!(why.lines().next().is_some_and(|first| first.contains("W011")), "{text}: {why}");
    }
    // What may still be mended, or is right, is no error.
    for text in ["result:\\n  summary: 5\\n", "context: text\\n", "artefacts: [a]\\nerror: {}\\n"] {
        fixture.sh(&format!("printf '{text}' > work/inbox/t-1.yaml")).success();
    }
    fixture.sh("rm work/inbox/t-1.yaml").success();
    fixture.sh("echo 'result: {summary: x,' > work/inbox/t-1.yaml").success();
    fixture.sh("echo '  next_agent: bob}' >> work/inbox/t-1.yaml").success();
    fixture.fsck_clean();
}

// P3.3
#[test]
fn a_shell_hears_of_a_status_that_cannot_be_in_whichever_piece_it_comes() {
    let fixture = Fixture::new();
    fixture.task("assigned/bob", &Task::new("t-2").status("in_progress").owner("bob"));
    let path = fixture.path("work/assigned/bob/t-2.yaml");
    let before = fs::read_to_string(&path).unwrap();
    // bash writes line by line.
    for (status, rule) in [("done", "W013"), ("inbox", "W013"), ("assigned", "W014")] {
        let text = format!("id: t-2\ntitle: t\nstatus: {status}\nx: 1");
        let ran = fixture.sh(&format!("echo '{text}' > work/assigned/bob/t-2.yaml"));
        assert!(ran.failure().stderr.contains("Invalid argument"), "{status}");
        assert_eq!(fs::read_to_string(&path).unwrap(), before, "{status}");
        let why = fixture.why();
        assert!(why.lines().next().is_some_and(|first| first.contains(rule)), "{status}: {why}");
    }
    // One that was judged by `fsync`, and one that began anew.
    let again = "import os; fd = os.open('work/assigned/bob/t-2.yaml', os.O_WRONLY | os.O_TRUNC)
os.write(fd, b'id: t-2\\nstatus: blocked\\n'); os.fsync(fd)
for text in b'id: t-2\\nstatus: done\\n', b'status: done\\n':
    os.ftruncate(fd, 0); os.lseek(fd, 0, 0)
    try: os.write(fd, text); raise SystemExit('taken')
    except OSError as error: assert error.errno == 22, error
os.ftruncate(fd, 0); os.lseek(fd, 0, 0)
os.write(fd, b'id: t-2\\n'); os.write(fd, b'status: in_progress\\n'); os.close(fd)";
    let shell = fixture.bash().with("PYTHON", crate::harness::python()).with("S", again);
    shell.run("\"$PYTHON\" -c \"$S\"").success();
    assert_eq!(fs::read_to_string(&path).unwrap(), "id: t-2\nstatus: in_progress\n");
    fixture.fsck_clean();
}

// P3.3 P1.3
#[test]
fn a_shell_hears_of_the_status_of_a_new_file_and_of_a_copy_that_cannot_be() {
    let fixture = Fixture::new();
    for shell in ["bash", "dash"] {
        for (file, status) in [("assigned/bob/new", "done"), ("inbox/new", "in_progress")] {
            let text = format!("id: new\nstatus: {status}\ntitle: t");
            let script = format!("{shell} -c 'echo \"{text}\" > work/{file}.yaml'");
            let ran = fixture.sh(&script).failure();
            assert!(ran.stderr.contains("Invalid argument") || ran.stderr.contains("I/O"), "{ran}");
            let why = fs::read_to_string(fixture.path(&format!("work/{file}.yaml.why"))).unwrap();
            assert!(why.contains("W013") && why.contains("line 2, column 9"), "{why}");
            fixture.sh(&format!("rm work/{file}.yaml")).success();
        }
        // A winner by this text would take away what it was made of.
        let task = Task::new("t-1");
        let from = fixture.task("inbox", &task);
        for status in ["done", "archived"] {
            let claim = format!(
                "x=$(sed \"s/^status: .*/status: {status}/\" inbox/t-1.yaml)
                 echo \"$x\" > assigned/bob/t-1.yaml && rm inbox/t-1.yaml"
            );
            fixture.sh(&format!("cd work; {shell} -c '{claim}'")).failure();
            assert_eq!(fs::read_to_string(&from).unwrap(), task.text(), "{shell}: {status}");
            fixture.sh("rm work/assigned/bob/t-1.yaml").success();
        }
        // One that may be there, and the one that the record has, which the claim replaces.
        for (status, is) in [("in_progress", "in_progress"), ("new", "assigned")] {
            let id = format!("{shell}-{is}");
            fixture.task("inbox", &Task::new(&id));
            let claim = format!(
                "x=$(sed \"s/^status: .*/status: {status}/\" inbox/{id}.yaml)
                 echo \"$x\" > assigned/bob/{id}.yaml && rm inbox/{id}.yaml"
            );
            fixture.sh(&format!("cd work; {shell} -c '{claim}'")).success();
            let path = fixture.path(&format!("work/assigned/bob/{id}.yaml"));
            let text = fs::read_to_string(path).unwrap();
            assert!(text.contains(&format!("\nstatus: {is}\n")), "{text}");
        }
        fixture.sh("rm work/inbox/t-1.yaml").success();
    }
    fixture.fsck_clean();
}
