//! The claim by copy whose text is refused only at `close`, by programs that do not look at that: what
//! they take for copied stays, whoever is left to remove it.

use std::fs;

use crate::harness::{Fixture, Ran, Task, needs, python};

/// Writes `$TEXT` to `$B`, and removes `$A`.
const CLAIMS: &[(&str, &str)] = &[
    ("bash", "bash -c 'echo \"$TEXT\" > $B && rm $A'"),
    ("bash", "bash -c 'echo \"$TEXT\" > $B; exec rm $A'"),
    ("bash", "bash -c 'echo \"$TEXT\" > $B; unlink $A; exit $?'"),
    ("bash", "bash -c '(echo \"$TEXT\" > $B) && (true; rm -f $A)'"),
    ("bash", "bash -c 'echo \"$TEXT\" > $B'; rm $A"),
    ("dash", "dash -c 'printf \"%s\\n\" \"$TEXT\" > $B && rm $A; exit $?'"),
    ("perl", "perl -e 'print $ENV{TEXT}' > $B && rm $A"),
    (
        "perl",
        "perl -e 'open F, \">\", $ENV{B}; print F $ENV{TEXT}; close F; unlink $ENV{A} or die $!'",
    ),
    (
        "python",
        "\"$PYTHON\" -c 'import os
fd = os.open(os.environ[\"B\"], os.O_WRONLY | os.O_CREAT)
os.write(fd, os.environ[\"TEXT\"].encode())
try: os.close(fd)
except OSError: pass
os.unlink(os.environ[\"A\"])'",
    ),
    // Who hears of it and goes on all the same.
    ("cp", "echo \"$TEXT\" > $OUT/text; cp $OUT/text $B; rm $A"),
];

fn claim(fixture: &Fixture, text: &str, (from, to): (&str, &str), script: &str) -> Ran {
    let shell = fixture.bash().with("PYTHON", python()).with("TEXT", text);
    shell.with("A", from).with("B", to).run(&format!("cd work; {script}"))
}

// P1.3 P3.3
#[test]
fn who_does_not_hear_that_a_copy_was_refused_removes_nothing() {
    let fixture = Fixture::new();
    let from = fixture.task("inbox", &Task::new("t-1"));
    let was = fs::read_to_string(&from).unwrap();
    // What it lacks might still come.
    let bad = was.replace("status: new", "status: error");
    assert!(bad.contains("status: error"), "{bad}");
    for (program, script) in CLAIMS {
        if *program != "python" && !needs(&[program]) {
            continue;
        }
        let places = ("inbox/t-1.yaml", "assigned/bob/t-1.yaml");
        let ran = claim(&fixture, &bad, places, script).failure();
        assert_eq!(fs::read_to_string(&from).unwrap(), was, "{script}: {ran}");
        assert!(ran.stderr.contains("Device or resource busy"), "{script}: {ran}");
        // `why` goes on to say what is wrong with the text.
        assert!(fixture.why().contains("W015"), "{script}: {}", fixture.why());
        fixture.sh("rm -f work/assigned/bob/t-1.yaml").success();
    }
    assert_eq!(fixture.ledger().names("t-1"), ["created"]);
    fixture.fsck_clean();
}

// P1.3
#[test]
fn what_the_lifecycle_forbids_costs_no_record_either() {
    let fixture = Fixture::new();
    let from = fixture.task("archive", &Task::new("t-1").status("done"));
    let text = fs::read_to_string(&from).unwrap();
    let places = ("archive/t-1.yaml", "assigned/bob/t-1.yaml");
    claim(&fixture, &text, places, "bash -c 'echo \"$TEXT\" > $B && rm $A'").failure();
    assert_eq!(fs::read_to_string(&from).unwrap(), text);
    fixture.fsck_clean();
}

// P1.3
#[test]
fn who_means_it_removes_it() {
    let fixture = Fixture::new();
    let from = fixture.task("inbox", &Task::new("t-1"));
    let bad = fs::read_to_string(&from).unwrap().replace("status: new", "status: error");
    let places = ("inbox/t-1.yaml", "assigned/bob/t-1.yaml");
    // The second time, and at once whoever is of another family.
    let script = "bash -c 'echo \"$TEXT\" > $B; rm $A; rm $A'";
    claim(&fixture, &bad, places, script).success();
    assert!(!from.exists());
    fixture.sh("rm work/assigned/bob/t-1.yaml").success();
    fixture.task("inbox", &Task::new("t-1"));
    let script = "mkfifo $OUT/go $OUT/said
        bash -c 'echo \"$TEXT\" > $B; echo said > $OUT/said; read end < $OUT/go' & read said < $OUT/said
        rm $A && echo > $OUT/go; wait";
    claim(&fixture, &bad, places, script).success();
    assert!(!from.exists());
    fixture.fsck_clean();
}

// P1.3
#[test]
fn who_has_a_record_gives_it_back_by_mv_and_hears_so_of_a_copy() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.sh("mkdir -p work/assigned/bob && mv work/inbox/t-1.yaml work/assigned/bob/").success();
    for to in ["inbox", "fridge"] {
        fixture.sh(&format!("cp work/assigned/bob/t-1.yaml work/{to}/")).failure();
        let why = fixture.why();
        assert!(why.contains(&format!("mv work/assigned/bob/t-1.yaml work/{to}/")), "{why}");
    }
    fixture.sh("mv work/assigned/bob/t-1.yaml work/inbox/").success();
    fixture.fsck_clean();
}
