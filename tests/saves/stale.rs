//! Saves by somebody who has not seen the present version.

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::harness::{Errno, Fixture, Setup, Task, Worker, Workers, close, program, python, save};

/// All have read before one may write.
const WORKER: &str = "
path = work + '/assigned/team/t-1.yaml'
text = open(path).read()
ready()
text = text.replace('status: assigned', 'status: in_progress')
text = text.replace('taken_by: none', 'taken_by: w%d' % nth)
try:
    with open(path, 'w') as f:
        f.write(text)
    say('won')
except OSError as error:
    say(errno.errorcode[error.errno])
";

fn of_eight_one_wins(mounts: usize) {
    let fixture = Setup::default().mounts(mounts).lanes(["team"]).start();
    fixture.task("assigned/team", &Task::new("t-1").status("assigned").owner("team"));
    let dirs: Vec<PathBuf> = (0..8).map(|nth| fixture.mount(nth % mounts).join("work")).collect();
    let said = Workers::start(&Worker::Python(WORKER), &dirs, &[]).go_and_finish();
    let won: Vec<usize> = said.iter().filter(|s| s.line == "won").map(|s| s.nth).collect();
    let busy = said.iter().filter(|said| said.line == "EBUSY").count();
    assert_eq!((won.len(), busy), (1, 7), "{said:?}");
    let text = fs::read_to_string(fixture.path("work/assigned/team/t-1.yaml")).unwrap();
    assert!(text.contains(&format!("taken_by: w{}\n", won[0])), "{text}");
    assert_eq!(fixture.ledger().names("t-1"), ["created", "saved"]);
    assert!(fixture.why().contains("W023"), "{}", fixture.why());
    assert_eq!(fixture.rejected().len(), 7);
    fixture.fsck_clean();
}

// P1.4
#[test]
fn of_eight_that_read_and_write_back_one_succeeds() {
    of_eight_one_wins(1);
}

// P1.4 P1.2
#[test]
fn of_eight_on_four_mounts_that_read_and_write_back_one_succeeds() {
    of_eight_one_wins(4);
}

/// Scripts read by one program and write by another.
fn of_six_scripts_one_wins(reads: &str, writes: &str) {
    of_scripts_one_wins(6, reads, writes);
}

fn of_scripts_one_wins(count: usize, reads: &str, writes: &str) {
    let fixture = Setup::default().mounts(2).lanes(["team"]).start();
    fixture.task("assigned/team", &Task::new("t-1").status("assigned").owner("team"));
    let script = format!(
        "cd \"$dir/assigned/team\"; new() {{ sed -e 's/^status: .*/status: in_progress/' \\
            -e \"s/^taken_by: .*/taken_by: w$nth/\" \"$@\"; }}
        {reads}; ready; if {writes}; then say won; else say lost; fi"
    );
    let dirs: Vec<PathBuf> = (0..count).map(|nth| fixture.mount(nth % 2).join("work")).collect();
    let said = Workers::start(&Worker::Shell(&script), &dirs, &[]).go_and_finish();
    let won: Vec<usize> = said.iter().filter(|s| s.line == "won").map(|s| s.nth).collect();
    assert_eq!((won.len(), said.len()), (1, count), "{said:?}");
    let text = fs::read_to_string(fixture.path("work/assigned/team/t-1.yaml")).unwrap();
    assert!(text.contains(&format!("taken_by: w{}\n", won[0])), "{text}");
    assert_eq!(fixture.ledger().names("t-1"), ["created", "saved"]);
    assert_eq!(fixture.rejected().len(), count - 1);
    fixture.fsck_clean();
}

// P1.4
#[test]
fn of_six_scripts_that_read_by_cat_and_write_themselves_one_succeeds() {
    of_six_scripts_one_wins(
        "text=$(cat t-1.yaml)",
        "printf '%s\\n' \"$text\" | new > .t-1.$nth.tmp; cat .t-1.$nth.tmp > t-1.yaml",
    );
}

// P1.4
#[test]
fn of_six_scripts_that_sed_to_a_file_and_move_it_one_succeeds() {
    of_six_scripts_one_wins("new t-1.yaml > .t-1.$nth.tmp", "mv -f .t-1.$nth.tmp t-1.yaml");
}

// P1.4
#[test]
fn of_a_hundred_scripts_that_read_and_write_back_one_succeeds() {
    of_scripts_one_wins(100, "new t-1.yaml > .t-1.$nth.tmp", "mv -f .t-1.$nth.tmp t-1.yaml");
}

// P1.4
#[test]
fn a_script_has_seen_what_those_did_that_it_started() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    // It reads by a pipeline, claims by a command, changes by a subshell, by `sed -i` and in a
    // transaction: each time it goes on from what there is then.
    let script = "
        put() { printf 'id: t-1\nstatus: %s\nrevision: 0\nnote: %s\nend_of: t-1\n' $2 $3 > $1; }
        lane=work/assigned/bob/t-1.yaml
        (cat work/inbox/t-1.yaml | grep -c id: ) && $WORKFS claim t-1 --agent bob > /dev/null \
            && (put $lane in_progress one) && sed -i 's/^note:.*/note: two/' $lane \
            && (put $lane in_progress three) \
            && $WORKFS txn -- sed -i 's/^note:.*/note: four/' $lane && put $lane in_progress five";
    let shell = fixture.bash().with("WORKFS", program());
    shell.run(script).success();
    let lane = fixture.path("work/assigned/bob/t-1.yaml");
    assert!(fs::read_to_string(&lane).unwrap().contains("note: five\n"), "{}", fixture.why());
    assert!(!path.exists());
    fixture.fsck_clean();
}

/// Not seen is what was opened to be written, and not read, by whoever read another version before.
fn opens_without_cutting(open: impl Fn(&mut OpenOptions) -> &mut OpenOptions) {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let text = fs::read_to_string(&path).unwrap();
    fixture.sh("sed -i 's/^revision: 0/revision: 1/' work/inbox/t-1.yaml").success();
    let mut mine = open(&mut OpenOptions::new()).open(&path).unwrap();
    mine.set_len(0).unwrap();
    let written = mine.write_all(text.replace("revision: 0", "revision: 2").as_bytes());
    assert_eq!(written.unwrap_err().kind(), std::io::ErrorKind::ResourceBusy);
    assert_eq!(close(mine), Err(Errno::BUSY));
    assert!(fs::read_to_string(&path).unwrap().contains("revision: 1\n"));
    // Who reads by the handle that it writes has seen what it changes.
    let mut mine = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let mut text = String::new();
    mine.read_to_string(&mut text).unwrap();
    mine.set_len(0).unwrap();
    mine.rewind().unwrap();
    mine.write_all(text.replace("revision: 1", "revision: 3").as_bytes()).unwrap();
    close(mine).unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains("revision: 3\n"));
    fixture.fsck_clean();
}

// P1.4
#[test]
fn a_record_that_is_cut_after_it_was_opened_is_stale_all_the_same() {
    opens_without_cutting(|options| options.write(true));
    opens_without_cutting(|options| options.read(true).write(true));
}

// P1.4
#[test]
fn a_descriptor_of_a_record_that_was_saved_by_rename_is_stale_and_not_lost() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let mut mine = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    fixture.sh("sed -i 's/^revision: 0/revision: 1/' work/inbox/t-1.yaml").success();
    let written = mine.write_all(Task::new("t-1").revision(2).text().as_bytes());
    assert_eq!(written.unwrap_err().kind(), std::io::ErrorKind::ResourceBusy);
    assert_eq!(close(mine), Err(Errno::BUSY));
    assert!(fixture.why().contains("work/inbox/t-1.yaml"), "{}", fixture.why());
    let theirs = Task::new("t-1").text().replace("revision: 0", "revision: 1");
    assert_eq!(fs::read_to_string(&path).unwrap(), theirs);
    assert_eq!(fixture.rejected().len(), 1);
}

// P3.2
#[test]
fn who_writes_on_to_what_was_renamed_to_a_record_is_told_why() {
    let fixture = Fixture::new();
    let new = fixture.path("work/inbox/new");
    let mut file = fs::File::create(&new).unwrap();
    file.write_all(Task::new("t-1").text().as_bytes()).unwrap();
    let path = fixture.path("work/inbox/t-1.yaml");
    fs::rename(&new, &path).unwrap();
    let error = file.write_all(b"more: 1\n").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StaleNetworkFileHandle);
    let why = fixture.why();
    assert!(
        why.contains("work/inbox/t-1.yaml ESTALE") && why.contains("open it by that name"),
        "{why}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), Task::new("t-1").text());
}

// P1.4
#[test]
fn who_is_refused_reads_again_and_may_save() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let mine = fs::read_to_string(&path).unwrap().replace("normal", "high");
    fixture.sh("sed -i 's/^revision: 0/revision: 1/' work/inbox/t-1.yaml").success();
    let theirs = Task::new("t-1").text().replace("revision: 0", "revision: 1");

    assert_eq!(save(&path, mine.as_bytes()), Err(Errno::BUSY));
    let again = fs::read_to_string(&path).unwrap();
    assert_eq!(again, theirs);
    let mine = again.replace("normal", "high");
    save(&path, mine.as_bytes()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), mine);
    assert_eq!(fixture.ledger().names("t-1"), ["created", "saved", "saved"]);
}

// P1.4
#[test]
fn a_rename_over_what_has_changed_since_is_stale_too() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let mine = fs::read_to_string(&path).unwrap().replace("normal", "high");
    fixture.sh("sed -i 's/^revision: 0/revision: 1/' work/inbox/t-1.yaml").success();
    let temp = fixture.path("work/inbox/.t-1.yaml.new");
    fs::write(&temp, mine).unwrap();
    let error = fs::rename(&temp, &path).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::BUSY));
    assert!(fs::read_to_string(&path).unwrap().contains("revision: 1\n"));
}

// P1.4
#[test]
fn who_never_read_the_record_may_replace_it() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    fs::write(fixture.outside("new"), Task::new("t-1").revision(5).text()).unwrap();
    fixture.sh("sed -i 's/^priority: .*/priority: high/' work/inbox/t-1.yaml").success();
    fixture.sh("cat $OUT/new > work/inbox/t-1.yaml").success();
    assert_eq!(fs::read_to_string(&path).unwrap(), Task::new("t-1").revision(5).text());
}

// P1.4
#[test]
fn a_program_may_save_again_and_again() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let script = "import sys
path = sys.argv[1]
for n in range(1, 20):
    text = open(path).read()
    text = text.replace('revision: %d\\n' % (n - 1), 'revision: %d\\n' % n)
    with open(path, 'w') as f:
        f.write(text)
f = open(path, 'r+')
for n in range(20, 25):
    f.seek(0)
    text = f.read()
    f.seek(0)
    f.write(text.replace('revision: %d\\n' % (n - 1), 'revision: %d\\n' % n))
    f.flush()
    import os
    os.fsync(f.fileno())
f.close()";
    let shell = fixture.bash().with("PYTHON", python()).with("S", script).with("F", &path);
    shell.run("\"$PYTHON\" -c \"$S\" \"$F\"").success();
    assert!(fs::read_to_string(&path).unwrap().contains("revision: 24\n"));
    assert_eq!(fixture.ledger().counts("saved")["t-1"], 24);
    fixture.fsck_clean();
}

// P1.4
#[test]
fn a_claim_in_between_makes_a_save_stale() {
    let fixture = Fixture::new();
    let from = fixture.task("inbox", &Task::new("t-1"));
    let mut file = fs::OpenOptions::new().read(true).write(true).open(&from).unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut file, &mut text).unwrap();
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    std::io::Seek::rewind(&mut file).unwrap();
    let written = std::io::Write::write_all(&mut file, text.replace("normal", "high").as_bytes());
    let closed = crate::harness::close(file);
    assert!(written.is_err() || closed.is_err(), "a save over a claim was taken");
    let now = fs::read_to_string(fixture.path("work/assigned/bob/t-1.yaml")).unwrap();
    assert!(now.contains("agent: bob\n") && now.contains("priority: normal\n"), "{now}");
    fixture.fsck_clean();
}

// P1.4
#[test]
fn a_script_goes_on_writing_after_its_own_mv() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let script = "
        put() { printf 'id: t-1\nstatus: %s\nrevision: 0\nnote: %s\nend_of: t-1\n' $2 $3 > $1; }
        cd work; put inbox/t-1.yaml new one && (mv inbox/t-1.yaml assigned/bob/) \
            && put assigned/bob/t-1.yaml in_progress two";
    fixture.sh(script).success();
    let text = fs::read_to_string(fixture.path("work/assigned/bob/t-1.yaml")).unwrap();
    assert!(text.contains("note: two\n"), "{text}\n{}", fixture.why());
    // Another's move is another's.
    let mine = fixture.path("work/assigned/bob/t-1.yaml");
    fs::read(&mine).unwrap();
    // Nobody of this process's family: whoever started it has ended by then.
    let script = "setsid -f sh -c 'tail --pid=$0 -s 0.02 -f /dev/null
        mv work/assigned/bob/t-1.yaml work/inbox/' $$ </dev/null";
    fixture.bash().run(script).success();
    let path = fixture.path("work/inbox/t-1.yaml");
    let moved = crate::harness::until_polled("it was moved", || fs::metadata(&path).ok());
    assert!(moved.len() > 0);
    assert_eq!(save(&path, text.replace("in_progress", "new").as_bytes()), Err(Errno::BUSY));
    fixture.fsck_clean();
}

// P1.4 P3.3
#[test]
fn who_has_saved_by_fsync_hears_of_another_version_at_the_next_write() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    // One that was there, and one that this made.
    for id in ["t-1", "t-2"] {
        let path = fixture.path(&format!("work/inbox/{id}.yaml"));
        let mut mine = fs::File::create(&path).unwrap();
        mine.write_all(Task::new(id).revision(1).text().as_bytes()).unwrap();
        mine.sync_all().unwrap();
        fixture.sh(&format!("sed -i 's/^revision: 1/revision: 2/' work/inbox/{id}.yaml")).success();
        let error = mine.write_all(b"# more\n").unwrap_err();
        assert_eq!(Errno::from_io_error(&error), Some(Errno::BUSY), "{id}");
        assert_eq!(close(mine), Err(Errno::BUSY), "{id}");
        assert!(fs::read_to_string(&path).unwrap().contains("revision: 2\n"), "{id}");
    }
    fixture.fsck_clean();
}

// P1.4
#[test]
fn who_read_by_a_descriptor_for_both_has_read_for_what_it_opens_next() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    // In a process of its own: this one has seen what it just made.
    let script = "
import errno, os, sys
path = os.environ['F']
with open(path, 'r+') as both:
    text = both.read()
print('read', flush=True)
sys.stdin.readline()
try:
    with open(path, 'w') as f:
        f.write(text)
except OSError as error:
    print(errno.errorcode[error.errno])";
    let mut python = Command::new(python());
    python.args(["-c", script]).env("F", &path).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = python.spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "read\n");
    fixture.sh("sed -i 's/^revision: 0/revision: 1/' work/inbox/t-1.yaml").success();
    drop(child.stdin.take());
    said.read_line(&mut line).unwrap();
    child.wait().unwrap();
    assert_eq!(line, "read\nEBUSY\n");
    assert!(fs::read_to_string(&path).unwrap().contains("revision: 1\n"));
    fixture.fsck_clean();
}
