//! Languages and tools that write whole files.

use crate::way::Way;

/// The variables of a way, for Python.
const PYTHON: &str = "import os, sys, tempfile, pathlib
F, new = os.environ['F'], open(os.environ['NEW'], 'rb').read()
";

#[track_caller]
fn python(program: &str) {
    let script = format!("\"$PYTHON\" -c \"$(cat <<'END'\n{PYTHON}{program}\nEND\n)\"");
    Way { script: &script, ..Way::default() }.judge();
}

// P3.1
#[test]
fn python_truncates_and_writes() {
    python("with open(F, 'wb') as f:\n    f.write(new)");
}

// P3.1
#[test]
fn python_writes_line_by_line() {
    python(
        "with open(F, 'wb', buffering=0) as f:\n    for line in new.splitlines(True):\n        \
         f.write(line)",
    );
}

// P3.1
#[test]
fn python_write_text_of_pathlib() {
    python("pathlib.Path(F).write_text(new.decode())");
}

// P3.1
#[test]
fn python_mkstemp_and_replace() {
    python(
        "fd, name = tempfile.mkstemp(dir=os.path.dirname(F))
try:
    with os.fdopen(fd, 'wb') as f:
        f.write(new)
        f.flush()
        os.fsync(fd)
    os.replace(name, F)
except OSError:
    os.unlink(name)
    raise",
    );
}

// P3.1
#[test]
fn python_named_temporary_file_with_the_same_extension() {
    python(
        "f = tempfile.NamedTemporaryFile('wb', dir=os.path.dirname(F), suffix='.yaml', delete=False)
try:
    f.write(new)
    f.close()
    os.replace(f.name, F)
except OSError:
    os.unlink(f.name)
    raise",
    );
}

// P3.1
#[test]
fn python_mkstemp_named_after_the_record() {
    python(
        "stem, suffix = os.path.splitext(os.path.basename(F))
fd, name = tempfile.mkstemp(prefix=stem + '.', suffix=suffix, dir=os.path.dirname(F))
with os.fdopen(fd, 'wb') as f:
    f.write(new)
    f.flush()
    os.fsync(fd)
try:
    os.replace(name, F)
except OSError:
    os.unlink(name)
    raise",
    );
}

// P3.1
#[test]
fn python_reads_and_writes_in_place() {
    python(
        "with open(F, 'r+b') as f:
    old = f.read()
    assert old != new
    f.seek(0)
    f.write(new)
    f.truncate()",
    );
}

// P3.1
#[test]
fn python_os_open_without_truncation_and_pwrite() {
    python(
        "fd = os.open(F, os.O_WRONLY)
os.pwrite(fd, new, 0)
os.ftruncate(fd, len(new))
os.fsync(fd)
os.close(fd)",
    );
}

// P3.1
#[test]
fn node_write_file_sync() {
    let script = "node -e 'const fs = require(\"fs\");
        fs.writeFileSync(process.env.F, fs.readFileSync(process.env.NEW))'";
    Way { needs: &["node"], script, ..Way::default() }.judge();
}

// P3.1
#[test]
fn node_write_file_of_promises() {
    let script = "node -e 'const fs = require(\"fs\");
        fs.promises.writeFile(process.env.F, fs.readFileSync(process.env.NEW))'";
    Way { needs: &["node"], script, ..Way::default() }.judge();
}

// P3.1
#[test]
fn node_write_stream() {
    let script = "node -e 'const fs = require(\"fs\");
        fs.createReadStream(process.env.NEW).pipe(fs.createWriteStream(process.env.F))'";
    Way { needs: &["node"], script, ..Way::default() }.judge();
}

// P3.1
#[test]
fn perl_in_place() {
    let script = "perl -i -pe 's/^\\Q$ENV{OLD_LINE}\\E$/$ENV{NEW_LINE}/' \"$F\"";
    Way { needs: &["perl"], script, leaves: &["XX"], ..Way::default() }.judge();
}

// P3.1
#[test]
fn perl_opens_and_prints() {
    let script = "perl -e 'open(N, \"<\", $ENV{NEW}); local $/; $t = <N>;
        open(F, \">\", $ENV{F}) or die; print F $t or die \"print: $!\"; close F or die \"$!\"'";
    Way { needs: &["perl"], script, ..Way::default() }.judge();
}

// P3.1
#[test]
fn rsync_by_its_temp_file() {
    let script = "rsync --ignore-times \"$NEW\" \"$F\"";
    Way { needs: &["rsync"], script, ..Way::default() }.judge();
}

// P3.1
#[test]
fn rsync_with_attributes() {
    let script = "rsync -a --ignore-times \"$NEW\" \"$F\"";
    Way { needs: &["rsync"], script, ..Way::default() }.judge();
}

// P3.1
#[test]
fn rsync_in_place() {
    let script = "rsync --inplace --ignore-times \"$NEW\" \"$F\"";
    Way { needs: &["rsync"], script, ..Way::default() }.judge();
}

// P3.1
#[test]
fn patch() {
    let script = "diff -u --label a --label b \"$F\" \"$NEW\" > \"$OUT/p\"
        patch \"$F\" \"$OUT/p\"";
    Way { needs: &["patch", "diff"], script, leaves: &[".orig", ".rej"], ..Way::default() }.judge();
}
