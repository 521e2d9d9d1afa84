//! Programs that remove what they could not write whole.

use std::fs;

use crate::harness::{Fixture, Ran, Task, lies, needs, pile, python};
use crate::way::Way;

/// `fs.copyFile` removes its target when it fails, by libuv.
const NODE: &str = "node -e 'const fs = require(\"fs\"), { NEW, F } = process.env;";

#[track_caller]
fn judge(program: &str, script: &str) {
    Way { needs: &[program], script, ..Way::default() }.judge();
}

// P3.1
#[test]
fn node_copy_file_sync() {
    judge("node", &format!("{NODE} fs.copyFileSync(NEW, F)'"));
}

// P3.1
#[test]
fn node_copy_file_of_promises() {
    judge("node", &format!("{NODE} fs.promises.copyFile(NEW, F)'"));
}

// P3.1
#[test]
fn node_copies_to_where_a_backup_was_made_of_what_was_there() {
    let copies =
        "try { fs.renameSync(F, F + \"~\"); fs.copyFileSync(NEW, F); fs.unlinkSync(F + \"~\") }
        catch (error) { fs.renameSync(F + \"~\", F); throw error }'";
    judge("node", &format!("{NODE} {copies}"));
}

// P3.1
#[test]
fn python_unlinks_what_it_could_not_write_and_takes_its_backup_back() {
    for mode in ["x", "w"] {
        let script = format!(
            "\"$PYTHON\" -c 'import os
F = os.environ[\"F\"]
os.rename(F, F + \".bak\")
try:
    with open(F, \"{mode}\") as f:
        f.write(open(os.environ[\"NEW\"]).read())
except OSError:
    try:
        os.unlink(F)
    finally:
        os.rename(F + \".bak\", F)
os.unlink(F + \".bak\")
'"
        );
        judge("sh", &script);
    }
}

// P1.4 P3.1
#[test]
fn node_copies_at_the_same_time() {
    if !needs(&["node"]) {
        return;
    }
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let text = Task::new("t-1").text();
    for (word, taken) in [("nonsense", false), ("high", true), ("nonsense", false)] {
        let old = fs::read_to_string(&path).unwrap();
        let new = fixture.outside("new");
        fs::write(&new, text.replace("normal", word)).unwrap();
        let copies = "Promise.allSettled([1, 2, 3, 4].map(() => fs.promises.copyFile(NEW, F)))
            .then(all => console.log(all.filter(one => one.status == \"fulfilled\").length))'";
        let shell = fixture.bash().with("NEW", &new).with("F", &path);
        let ran = shell.run(&format!("{NODE} {copies}")).success();
        // Who comes too late removes nothing, either.
        assert_eq!(ran.stdout.trim() != "0", taken, "{word}: {ran}");
        let now = fs::read_to_string(&path).unwrap();
        assert_eq!(now, if taken { text.replace("normal", word) } else { old }, "{word}");
    }
    fixture.fsck_clean();
}

// P3.1
#[test]
fn python_unlinks_what_it_could_not_write() {
    let script = "\"$PYTHON\" -c 'import os
F = os.environ[\"F\"]
try:
    with open(F, \"w\") as f:
        f.write(open(os.environ[\"NEW\"]).read())
except OSError:
    os.unlink(F)
'";
    // It is told of both: the save was refused, and so is the clean-up.
    judge("sh", script);
}

// P3.1
#[test]
fn copies_that_remove_nothing() {
    judge("cp", "cp -f \"$NEW\" \"$F\"");
    for name in ["copyfile", "copy"] {
        let call =
            format!("import os, shutil; shutil.{name}(os.environ[\"NEW\"], os.environ[\"F\"])");
        judge("sh", &format!("\"$PYTHON\" -c '{call}'"));
    }
}

/// What Python does with a record, a bad text and what it may use.
fn python_with(fixture: &Fixture, to: &str, script: &str) -> Ran {
    let head = "import os, subprocess
F, BAD = os.environ['F'], open(os.environ['OUT'] + '/bad').read()
def write(text):
    try:
        with open(F, 'w') as f:
            f.write(text)
    except OSError as error:
        print(error.errno, end=' ')
def unlink():
    try:
        os.unlink(F)
    except OSError as error:
        print(error.errno, end=' ')
";
    let shell = fixture.bash().with("PYTHON", python()).with("F", to);
    shell.with("SCRIPT", format!("{head}{script}")).run("\"$PYTHON\" -c \"$SCRIPT\"; exit $?")
}

// P3.1
#[test]
fn only_the_writer_s_own_clean_up_is_refused_and_only_once() {
    let fixture = Fixture::new();
    // What it does, the errnos that it hears (EINVAL, EBUSY), and whether the record stays.
    let rows = [
        ("write(BAD); unlink()", "22 16", true),
        ("write(BAD); unlink(); unlink()", "22 16", false),
        ("write(BAD); write(BAD); unlink(); unlink()", "22 22 16", false),
        ("unlink()", "", false),
        // Something else came between: it read the record, or saved it.
        ("write(BAD); write(open(os.environ['OUT'] + '/good').read()); unlink()", "22", false),
        // Who is another process means it, and so does who moves it.
        ("write(BAD); subprocess.run(['rm', F])", "22", false),
        ("write(BAD); os.rename(F, F + '~')", "22", false),
    ];
    for (nth, (script, heard, stays)) in rows.into_iter().enumerate() {
        let id = format!("t-{nth}");
        let path = fixture.task("inbox", &Task::new(&id));
        let text = Task::new(&id).text();
        fs::write(fixture.outside("bad"), text.replace("normal", "nonsense")).unwrap();
        fs::write(fixture.outside("good"), text.replace("normal", "high")).unwrap();
        let ran = python_with(&fixture, path.to_str().unwrap(), script).success();
        assert_eq!(ran.stdout.trim(), heard, "{script}: {ran}");
        let is = fs::read_to_string(&path).ok();
        assert_eq!(is, stays.then_some(text), "{script}: {ran}");
    }
    fixture.fsck_clean();
}

// P3.1
#[test]
fn what_was_not_there_before_goes() {
    if !needs(&["node"]) {
        return;
    }
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let copies = |id: &str, to: &str| {
        let bad = Task::new(id).text().replace("normal", "nonsense");
        fs::write(fixture.outside("bad"), bad).unwrap();
        let shell = fixture.bash().with("NEW", fixture.outside("bad")).with("F", to);
        shell.run(&format!("{NODE} fs.copyFileSync(NEW, F)'; exit $?")).failure();
        assert!(!fixture.path(to).exists(), "{to}");
    };
    copies("t-2", "work/inbox/t-2.yaml");
    // A claim by copy that was refused: the record is where it was.
    copies("t-1", "work/assigned/bob/t-1.yaml");
    assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), "t-1"), "inbox");
    assert_eq!(fixture.ledger().names("t-1"), ["created"]);
    fixture.fsck_clean();
}
