//! Editors, driven without a person.

use crate::way::Way;

fn vim(options: &str) {
    // `cquit` is reached only where `wq` failed; silent mode prints nothing by itself.
    let script = format!(
        "vim -N -u NONE -i NONE -es -c 'set {options}' -c \"%s/^$OLD_LINE\\$/$NEW_LINE/\" -c wq \
         -c 'call writefile([v:errmsg], \"/dev/stderr\", \"a\")' -c 'cquit 1' \"$F\""
    );
    let leaves = if options.contains(" backup ") { &["~"][..] } else { &[] };
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
