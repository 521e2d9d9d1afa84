//! Editors, driven without a person.

use std::fs;

use crate::harness::{Fixture, Task, save};
use crate::way::Way;

fn vim(options: &str) {
    // Of what lies in `/tmp` it makes no backup, if it is not told to.
    // `cquit` is reached only where `wq` failed; silent mode prints nothing by itself.
    let script = format!(
        "vim -N -u NONE -i NONE -es -c 'set backupskip= {options}' -c \"%s/^$OLD_LINE\\$/$NEW_LINE/\" -c wq \
         -c 'call writefile([v:errmsg], \"/dev/stderr\", \"a\")' -c 'cquit 1' \"$F\""
    );
    // One that it copied stays where the save was refused.
    let keeps = options.contains(" backup ") || options.contains("backupcopy=yes");
    let leaves = if keeps { &["~"][..] } else { &[] };
    Way { needs: &["vim"], script: &script, leaves, ..Way::default() }.judge();
}

// P3.1
#[test]
fn vim_that_writes_in_place() {
    vim("backupcopy=yes nobackup writebackup");
}

// P3.1
#[test]
fn vim_that_renames_to_a_backup() {
    vim("backupcopy=no nobackup writebackup");
}

// P3.1
#[test]
fn vim_that_keeps_a_backup() {
    vim("backupcopy=no backup writebackup");
}

// P3.1
#[test]
fn vim_without_backup() {
    vim("nobackup nowritebackup");
}

/// Drives an editor in a terminal: waits for what it shows, then types.
const TERMINAL: &str = "
import os, pty, re, select, sys, time
old, new = os.environb[b'OLD_LINE'], os.environb[b'NEW_LINE']
line = open(os.environ['F'], 'rb').read().split(b'\\n').index(old) + 1
pid, fd = pty.fork()
if pid == 0:
    os.execvp('nano', ['nano', '--ignorercfiles', '+%d,1' % line, os.environ['F']])
shown = b''
def expect(pattern):
    global shown
    end = time.monotonic() + 30
    while not re.search(pattern, shown):
        if not select.select([fd], [], [], max(0, end - time.monotonic()))[0]:
            sys.exit('waited for %r in %r' % (pattern, shown))
        try:
            shown += os.read(fd, 65536)
        except OSError:
            break
    found = re.search(pattern, shown)
    shown = b''
    return found
def type(keys):
    os.write(fd, keys)
expect(b'GNU nano')
type(b'\\x0b')                       # ^K: cut the line, and write another one
type(new + b'\\r')
type(b'\\x0f')                       # ^O: write
expect(b'Name to Write')
type(b'\\r')
said = expect(b'Wrote \\\\d+ lines|Error [^\\x1b]*|Cannot [^\\x1b]*').group(0).decode()
type(b'\\x18')                       # ^X: leave
if not said.startswith('Wrote'):
    print(said, file=sys.stderr)
    expect(b'Save modified')
    type(b'n')
expect(b'$^')
os.waitpid(pid, 0)
sys.exit(0 if said.startswith('Wrote') else 1)
";

// P3.1
#[test]
fn nano() {
    let script = format!("export TERM=xterm; \"$PYTHON\" -c \"$(cat <<'END'\n{TERMINAL}\nEND\n)\"");
    Way { needs: &["nano"], script: &script, leaves: &[".save"], ..Way::default() }.judge();
}

fn emacs(setting: &str, leaves: &[&str]) {
    let script = format!(
        "emacs -Q --batch --eval '(progn {setting} (find-file (getenv \"F\"))
           (goto-char (point-min))
           (re-search-forward (concat \"^\" (regexp-quote (getenv \"OLD_LINE\")) \"$\"))
           (replace-match (getenv \"NEW_LINE\") t t)
           (save-buffer))'"
    );
    Way { needs: &["emacs"], script: &script, leaves, ..Way::default() }.judge();
}

// P3.1
#[test]
fn emacs_that_renames_to_a_backup() {
    emacs("(setq make-backup-files t backup-by-copying nil)", &["~"]);
}

// P3.1
#[test]
fn emacs_that_copies_to_a_backup() {
    emacs("(setq make-backup-files t backup-by-copying t)", &["~"]);
}

// P3.1
#[test]
fn emacs_that_writes_a_temp_file_first() {
    emacs("(setq make-backup-files nil file-precious-flag t)", &["tmp"]);
}

// P3.1
#[test]
fn emacs_without_backup() {
    emacs("(setq make-backup-files nil)", &[]);
}

// P3.1
#[test]
fn sed_with_a_backup_saves_or_leaves_the_record_in_the_backup_and_says_so() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    fixture.sh("cd work/inbox; sed -i.bak 's/^priority: .*/priority: high/' t-1.yaml").success();
    let good = fs::read_to_string(&path).unwrap();
    assert!(good.contains("priority: high"));
    let bad = "cd work/inbox; sed -i.bak 's/^status: .*/status: nonsense/' t-1.yaml";
    let ran = fixture.sh(bad).failure();
    assert!(ran.stderr.contains("Operation not permitted"), "{ran}");
    assert!(!path.exists());
    assert_eq!(fs::read_to_string(fixture.path("work/inbox/t-1.yaml.bak")).unwrap(), good);
    let why = fixture.why();
    assert!(why.contains("W011") && why.contains("in the backup"), "{why}");
    // As it says.
    fixture.sh("cd work/inbox; mv t-1.yaml.bak t-1.yaml").success();
    assert_eq!(fs::read_to_string(&path).unwrap(), good);
    let names = ["created", "renamed", "saved", "renamed", "renamed"];
    assert_eq!(fixture.ledger().names("t-1"), names);
    assert!(
        !fs::read_to_string(fixture.path("work/inbox/t-1.yaml.why")).unwrap().contains("draft")
    );
    fixture.fsck_clean();
}

// P3.1
#[test]
fn a_backup_may_have_any_ending() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let old = fs::read_to_string(&path).unwrap();
    for ending in ["~", ".bak", ".orig", ".old", ".~1~"] {
        let backup = fixture.path(&format!("work/inbox/t-1.yaml{ending}"));
        fs::rename(&path, &backup).unwrap();
        save(&path, old.replace("status: new", "status: nonsense").as_bytes()).unwrap_err();
        assert_eq!(fs::read_to_string(&path).unwrap(), old, "{ending}");
        assert_eq!(fs::read_to_string(&backup).unwrap(), old, "{ending}");
        fs::rename(&path, &backup).unwrap();
        let new = format!("{old}# saved beside {ending}\n");
        save(&path, new.as_bytes()).unwrap();
        save(&path, old.as_bytes()).unwrap();
    }
    let ledger = fixture.ledger();
    let saved = ledger.names("t-1").into_iter().filter(|name| *name == "saved");
    assert_eq!(saved.count(), 10);
    fixture.fsck_clean();
}

// P3.1 P5.1
#[test]
fn a_backup_that_becomes_another_record_takes_its_own_along() {
    let fixture = Fixture::new();
    for (id, other) in [("t-1", "new"), ("t-2", "there")] {
        let text = format!("status: new\ntitle: of {id}\n");
        let inbox = fixture.work().join("inbox");
        save(&inbox.join(format!("{id}.yaml")), text.as_bytes()).unwrap();
        if other == "there" {
            save(&inbox.join("there.yaml"), b"status: new\n").unwrap();
        }
        let rename = |from: &str, to: &str| fs::rename(inbox.join(from), inbox.join(to)).unwrap();
        rename(&format!("{id}.yaml"), &format!("{id}.yaml~"));
        rename(&format!("{id}.yaml~"), &format!("{other}.yaml"));
        let saved = if other == "there" { &["created", "saved"][..] } else { &["created"] };
        assert_eq!(fs::read_to_string(inbox.join(format!("{other}.yaml"))).unwrap(), text);
        let ledger = fixture.ledger();
        assert_eq!(ledger.names(other), saved);
        assert_eq!(ledger.names(id), ["created", "renamed", "removed"]);
        // Its name is free for another task, and comes back as that.
        save(&inbox.join(format!("{id}.yaml")), b"status: new\ntitle: another\n").unwrap();
        assert_eq!(fixture.ledger().names(id).last(), Some(&"created"));
        fixture.fsck_clean();
    }
}
