//! The claim of programs that copy by themselves and leave it to `rm` to take the old name away.

use std::fs;

use crate::harness::{Fixture, Ran, Task, lies, needs, pile, python};

/// What each does with the record at `$A` and its name in the lane, `$B`, or with what `ready/` shows, `$R`.
const CLAIMS: &[(&str, &str)] = &[
    // dash opens `B` itself, and `cat` writes to it.
    ("dash -c", "cat $A > $B && rm $A"),
    ("dash -c", "cat $A > $B; rm $A; exit $?"),
    ("dash -c", "text=$(cat $A); echo \"$text\" > $B; rm $A; exit $?"),
    ("bash -c", "cat $A > $B && rm $A"),
    ("bash -c", "printf '%s\\n' \"$(cat $A)\" > $B; rm $A; exit $?"),
    ("bash -c", "printf '%s\\n' \"$(cat $A)\" > $B; exec rm $A"),
    ("bash -c", "printf '%s\\n' \"$(cat $A)\" > $B; unlink $A; exit $?"),
    // What copies, and what removes, is not always the shell's own child.
    ("bash -c", "(cat $A > $B; true) && rm $A; exit $?"),
    ("bash -c", "timeout 60 cp $A $B && rm $A; exit $?"),
    ("bash -c", "sh -c 'cp $A $B; true'; sh -c 'rm $A; exit $?'; exit $?"),
    ("bash -c", "cat $A > $B && echo $A | xargs rm; exit $?"),
    ("bash -c", "setsid --wait cp $A $B; rm $A; exit $?"),
    ("bash -c", "cp $R $B && rm $R; exit $?"),
    ("bash -c", "cat $R > $B && rm $A; exit $?"),
    ("python -c", "copy(); subprocess.run(['rm', A], check=True)"),
    ("python -c", "copy(); subprocess.run(f'rm {A}; exit $?', shell=True, check=True)"),
    ("python -c", "copy(); sys.exit(os.system('rm ' + A) != 0)"),
    ("python -c", "copy(); os.execvp('rm', ['rm', A])"),
    ("python -c", "copy(); os.unlink(A)"),
    // A name is cut after fifteen bytes, also within a character.
    (
        "python -c",
        "open('/proc/self/comm', 'wb').write(b'warteschlange-\\xc3\\xbc'); copy(); os.unlink(A)",
    ),
    ("dash -c", "printf 'warteschlange-\\303\\274' > /proc/$$/comm; cat $A > $B && rm $A; exit $?"),
    ("python -c", "shutil.copy(A, B); subprocess.run(['rm', A], check=True)"),
    (
        "python -c",
        "subprocess.run(['cp', A, B], check=True); subprocess.run(['rm', A], check=True)",
    ),
    ("python -c", "subprocess.run(['cp', A, B], check=True); os.unlink(A)"),
    ("perl -e", "copy(); exit(system('rm', $A) >> 8)"),
    ("perl -e", "copy(); exec('rm', $A)"),
    ("perl -e", "copy(); unlink $A or die $!"),
    ("awk", "BEGIN { copy(); exit system(\"rm \" A) }"),
    ("node -e", "fs.writeFileSync(B, fs.readFileSync(A)); child.execFileSync('rm', [A])"),
    ("node -e", "fs.copyFileSync(A, B); child.execSync('rm ' + A)"),
    ("node -e", "fs.copyFileSync(A, B); fs.unlinkSync(A)"),
    ("node -e", "fs.promises.copyFile(A, B).then(() => fs.promises.unlink(A))"),
];

const PYTHON: &str = "
import os, shutil, subprocess, sys
A, B = os.environ['A'], os.environ['B']
def copy():
    text = open(A).read()
    with open(B, 'w') as f:
        f.write(text)
";

const PERL: &str = "
our ($A, $B) = @ENV{qw(A B)};
sub copy {
    open my $from, '<', $A or die; my $text = join '', <$from>; close $from;
    open my $to, '>', $B or die; print $to $text; close $to or die;
}
";

const AWK: &str = "
function copy(line) {
    A = ENVIRON[\"A\"]; B = ENVIRON[\"B\"]
    while ((getline line < A) > 0) print line > B
    close(B)
}
";

const NODE: &str = "
const fs = require('fs'), child = require('child_process'), { A, B } = process.env;
";

/// Runs it about the record `id`.
fn claim(fixture: &Fixture, id: &str, (program, code): (&str, &str)) -> Ran {
    let beginning = match program.split(' ').next().unwrap() {
        "python" => PYTHON,
        "perl" => PERL,
        "awk" => AWK,
        "node" => NODE,
        _ => "",
    };
    let call = match program.strip_prefix("python") {
        Some(rest) => format!("\"$PYTHON\"{rest}"),
        None => program.to_owned(),
    };
    let shell = fixture.bash().with("PYTHON", python()).with("CODE", format!("{beginning}{code}"));
    let shell = shell.with("A", format!("work/inbox/{id}.yaml"));
    let shell = shell.with("B", format!("work/assigned/bob/{id}.yaml"));
    let shell = shell.with("R", format!("work/ready/{id}.yaml"));
    shell.run(&format!("{call} \"$CODE\"; exit $?"))
}

// P1.3
#[test]
fn whoever_copies_may_leave_it_to_rm_to_take_the_old_name_away() {
    let fixture = Fixture::new();
    let mut claimed = Vec::new();
    for (nth, row) in CLAIMS.iter().enumerate() {
        let program = row.0.split(' ').next().unwrap();
        if program != "python" && !needs(&[program]) {
            continue;
        }
        let id = format!("t-{nth}");
        fixture.task("inbox", &Task::new(&id));
        let ran = claim(&fixture, &id, *row);
        assert_eq!((ran.code, &*ran.said()), (0, ""), "{row:?}: {ran}");
        claimed.push(id);
    }
    let (work, ledger) = (fixture.work(), fixture.ledger());
    for id in claimed {
        assert_eq!(lies(&work, &pile(&work), &id), "assigned/bob", "{id}");
        assert_eq!(ledger.names(&id), ["created", "claimed"], "{id}");
    }
    fixture.fsck_clean();
}

// P1.3
#[test]
fn what_a_claim_by_copy_left_is_removed_once_and_nobody_else_finds_it() {
    let fixture = Fixture::new();
    let script = "printf '%s\\n' \"$(cat $A)\" > $B
        test -e $A && echo there
        cat $A && echo read
        rm $A && echo removed
        rm $A && echo again
        exit 0";
    for (nth, shell) in ["bash -c", "dash -c"].into_iter().enumerate() {
        let id = format!("t-{nth}");
        fixture.task("inbox", &Task::new(&id));
        let ran = claim(&fixture, &id, (shell, script));
        assert_eq!(ran.stdout, "removed\n", "{ran}");
        assert_eq!(ran.stderr.matches("No such file or directory").count(), 2, "{ran}");
    }
    fixture.fsck_clean();
}

/// What too late comes, and looks only at what its `rm` says.
const LOSERS: &[(&str, &str)] = &[
    ("bash -c", "cp $OUT/text $B; rm $A"),
    ("bash -c", "cat $OUT/text > $B; rm $A"),
    ("dash -c", "cat $OUT/text > $B; rm $A"),
    ("bash -c", "printf '%s\\n' \"$(cat $OUT/text)\" > $B; rm $A; exit $?"),
    ("bash -c", "mv $A $B; rm $R"),
    ("python -c", "subprocess.run(['cp', A, B]); sys.exit(subprocess.run(['rm', A]).returncode)"),
];

// P1.3
#[test]
fn a_loser_s_rm_hears_that_the_name_is_gone() {
    let fixture = Fixture::new();
    fixture.sh("mkfifo $OUT/copied $OUT/go").success();
    for (nth, loser) in LOSERS.iter().enumerate() {
        let id = format!("t-{nth}");
        let path = fixture.task("inbox", &Task::new(&id));
        fs::copy(&path, fixture.outside("text")).unwrap();
        // The winner is not at its own `rm` yet.
        let wins = "printf '%s\\n' \"$(cat $A)\" > work/assigned/ann/${A##*/}
            echo $? > $OUT/copied; read end < $OUT/go; rm $A";
        std::thread::scope(|scope| {
            let winner = scope.spawn(|| claim(&fixture, &id, ("bash -c", wins)));
            assert_eq!(fs::read_to_string(fixture.outside("copied")).unwrap(), "0\n");
            let lost = claim(&fixture, &id, *loser);
            fs::write(fixture.outside("go"), "\n").unwrap();
            assert_eq!(winner.join().unwrap().success().said(), "");
            let lost = lost.failure();
            let gone = format!("{id}.yaml': No such file or directory");
            assert!(lost.stderr.contains("rm: ") && lost.stderr.contains(&gone), "{lost}");
        });
        assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), &id), "assigned/ann", "{loser:?}");
    }
    fixture.fsck_clean();
}
