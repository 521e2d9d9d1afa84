//! Shells and the small programs that they call.

use std::fs;

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
