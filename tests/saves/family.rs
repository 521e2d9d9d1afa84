//! What a process has seen by those that it started, and what it has not.

use std::fs;

use crate::harness::{Fixture, Setup, Task, program, python};
use crate::shells::overtaken;

const PUT: &str = "put() { printf 'id: %s\\nstatus: new\\ntitle: %s\\n' $1 $2 > inbox/$1.yaml; }";

// P1.4
#[test]
fn a_shell_that_writes_itself_has_seen_what_its_children_saved_since() {
    let steps = [
        "put A one && sed -i s/one/two/ inbox/A.yaml && put A three",
        "put A four && printf 'id: A\\nstatus: new\\ntitle: five\\n' > $OUT/A \\
            && cp $OUT/A inbox/A.yaml && put A three",
        "put A one && (sed s/one/two/ inbox/A.yaml > .new && mv .new inbox/A.yaml) && put A three",
        "put A one && mv inbox/A.yaml assigned/bob/ && sed -i s/one/two/ assigned/bob/A.yaml \\
            && mv assigned/bob/A.yaml inbox/ && put A three",
        "put A one && $WORKFS claim A --agent bob && sed -i s/one/two/ assigned/bob/A.yaml \\
            && $WORKFS release A && put A three",
        // What it reads itself does not keep it from that.
        "put A one && read -r id < inbox/A.yaml && sed -i s/one/two/ inbox/A.yaml && put A three",
    ];
    for (shell, step) in ["bash", "dash"].iter().flat_map(|sh| steps.map(|step| (sh, step))) {
        let fixture = Fixture::new();
        let run = fixture.bash().with("WORKFS", program());
        let run = run.with("S", format!("{PUT}; cd work; {step}"));
        run.run(&format!("{shell} -c \"$S\"")).success();
        let text = fs::read_to_string(fixture.path("work/inbox/A.yaml")).unwrap();
        assert!(text.contains("title: three\n"), "{step}: {text}\n{}", fixture.why());
        fixture.fsck_clean();
    }
}

// P1.4
#[test]
fn a_shell_that_is_refused_reads_again_by_a_program_and_may_save() {
    let reads = ["cat X > /dev/null", "x=$(cat X)", "grep -q two X", "x=$(sed -n 1p X | cat)"];
    for read in reads {
        let fixture = Fixture::new();
        let script = format!(
            "cd ..; cd work; {PUT}; put A one; echo read; read -r go
            if put A three; then echo overwrote; fi; {}; put A three && echo saved",
            read.replace('X', "inbox/A.yaml")
        );
        let said = overtaken(&fixture, &script, || {
            fixture.sh("sed -i s/one/two/ work/inbox/A.yaml").success();
        });
        assert_eq!(said, "saved\n", "{read}: {}", fixture.why());
        let text = fs::read_to_string(fixture.path("work/inbox/A.yaml")).unwrap();
        assert!(text.contains("title: three\n"), "{text}");
        assert_eq!(fixture.ledger().names("A"), ["created", "saved", "saved"]);
        fixture.fsck_clean();
    }
}

// P1.4
#[test]
fn a_shell_has_not_seen_what_a_worker_saved_that_still_runs() {
    let fixture = Fixture::new();
    let script = format!(
        "cd work; {PUT}; put A one
        coproc worker {{ sed -i s/one/two/ inbox/A.yaml; echo saved; read -r go; }}
        read -r saved <&${{worker[0]}}; echo $saved; put A three || echo refused"
    );
    let ran = fixture.sh(&script);
    assert_eq!(ran.stdout, "saved\nrefused\n", "{}", fixture.why());
    let text = fs::read_to_string(fixture.path("work/inbox/A.yaml")).unwrap();
    assert!(text.contains("title: two\n"), "{text}");
    fixture.fsck_clean();
}

// P1.4
#[test]
fn a_program_that_reads_and_writes_itself_has_not_seen_what_its_agent_saved() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    // It keeps the text while the agent works, and writes what it knows.
    let program = "import subprocess
path = 'work/inbox/t-1.yaml'
def put(text):
    with open(path, 'w') as f:
        f.write(text)
text = open(path).read().replace('priority: normal', 'priority: high')
put(text)
subprocess.run(['sed', '-i', 's/^revision: 0/revision: 7/', path], check=True)
for again in range(2):
    try:
        put(text.replace('priority: high', 'priority: low'))
        print('saved')
    except OSError as error:
        print(error.strerror)
    text = open(path).read()";
    let ran = fixture.bash().with("PYTHON", python()).with("S", program).run("$PYTHON -c \"$S\"");
    assert_eq!(ran.stdout, "Device or resource busy\nsaved\n", "{ran}");
    let text = fs::read_to_string(fixture.path("work/inbox/t-1.yaml")).unwrap();
    assert!(text.contains("revision: 7\n") && text.contains("priority: low\n"), "{text}");
    fixture.fsck_clean();
}

/// Children of one shell, which wrote and read the record itself, read it, and write it back when all
/// have read; `write` says whether it won.
fn of_six_children_one_wins(read: &str, write: &str) {
    let fixture = Setup::default().mounts(2).lanes(["team"]).start();
    let path = fixture.path("work/assigned/team/t-1.yaml");
    let script = format!(
        "mkfifo $OUT/read $OUT/go; exec 3<>$OUT/read 4<>$OUT/go; cd work/assigned/team
        printf '%s' \"$TEXT\" > t-1.yaml; read -r id < t-1.yaml
        for nth in 1 2 3 4 5 6; do
            ( if [ $nth -gt 3 ]; then cd $OTHER/work/assigned/team; fi
            new() {{ sed -e 's/^status: .*/status: in_progress/' -e \"s/^taken_by: .*/taken_by: w$nth/\"; }}
            {read}; echo >&3; read -r go <&4; if {write}; then echo won; else echo lost; fi ) &
        done
        for nth in 1 2 3 4 5 6; do read -r one <&3; done; echo read >&2
        for nth in 1 2 3 4 5 6; do echo >&4; done; wait"
    );
    let text = Task::new("t-1").status("assigned").owner("team").text();
    let shell = fixture.bash().with("TEXT", text).with("OTHER", fixture.mount(1));
    let ran = shell.with("PYTHON", python()).run(&script);
    let won = ran.stdout.lines().filter(|line| *line == "won").count();
    assert_eq!((won, ran.stdout.lines().count()), (1, 6), "{ran}\n{}", fixture.why());
    assert!(fs::read_to_string(path).unwrap().contains("taken_by: w"));
    assert_eq!(fixture.ledger().names("t-1"), ["created", "saved"]);
    assert_eq!(fixture.rejected().len(), 5);
    fixture.fsck_clean();
}

// P1.4 P1.2
#[test]
fn of_six_children_of_one_shell_that_read_and_write_back_one_succeeds() {
    of_six_children_one_wins("text=$(cat t-1.yaml)", {
        "echo \"$text\" | new > .t-1.$nth && mv -f .t-1.$nth t-1.yaml"
    });
    of_six_children_one_wins("new < t-1.yaml > .t-1.$nth", "mv -f .t-1.$nth t-1.yaml");
    of_six_children_one_wins("mapfile -t text < t-1.yaml", {
        "printf '%s\\n' \"${text[@]}\" | new > .t-1.$nth && mv -f .t-1.$nth t-1.yaml"
    });
}
