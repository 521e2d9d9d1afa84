//! Programs that use a file system as it comes.

use crate::harness::{Fixture, needs, python};

/// A tree with a bit of everything, outside the mount.
const TREE: &str = "set -e
mkdir -p $OUT/tree/a/b/c $OUT/tree/empty; cd $OUT/tree
head -c 300000 /dev/urandom > a/random; echo text > a/b/text; ln -s ../a/b/text link
ln a/random a/b/hard; chmod 750 a/b; chmod 600 a/b/text; touch -d 2020-01-02T03:04:05.678Z a/random
truncate -s 1M a/sparse; printf x > 'a/a name
with a newline'; : > a/b/c/.hidden
";

/// Fails unless two trees are the same in content, modes, times and links.
const SAME: &str = "
tell() { (cd \"$1\"; find . -printf '%p %y %m %s %l %n\\n' | sed 's/\\(d [0-9]*\\) .*/\\1/' | sort
          find . -type f -printf '%p %T@\\n' | sort; find . -type f -exec sha256sum {} + | sort); }
diff <(tell \"$1\") <(tell \"$2\")
";

#[track_caller]
fn same_after(script: &str) {
    let fixture = Fixture::new();
    fixture.sh(TREE).success();
    fixture.sh(&format!("set -e\nmkdir scratchpad\n{script}")).success();
    let same = format!("set -- $OUT/tree scratchpad/tree\n{SAME}");
    fixture.sh(&same).success();
    fixture.fsck_clean();
}

// P7.1
#[test]
fn cp_keeps_a_tree_as_it_is() {
    same_after("cp -a $OUT/tree scratchpad/");
}

// P7.1
#[test]
fn tar_keeps_a_tree_as_it_is() {
    same_after(
        "tar -C $OUT --format=posix -cf scratchpad/x.tar tree; cd scratchpad; tar -xpf x.tar",
    );
}

// P7.1
#[test]
fn rsync_keeps_a_tree_as_it_is() {
    if needs(&["rsync"]) {
        same_after("rsync -aH $OUT/tree scratchpad/; rsync -aHc --delete $OUT/tree scratchpad/");
    }
}

// P7.1
#[test]
fn moving_a_tree_within_the_mount_keeps_it_as_it_is() {
    same_after("cp -a $OUT/tree scratchpad/other; mv scratchpad/other scratchpad/tree");
}

// P7.1
#[test]
fn git_works_in_the_scratchpad() {
    if !needs(&["git"]) {
        return;
    }
    let fixture = Fixture::new();
    let script = "set -e
        export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org
        export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
        mkdir scratchpad; cd scratchpad; git init -q repo; cd repo
        for i in $(seq 1 50); do mkdir -p d$((i % 5)); echo $i > d$((i % 5))/f$i; done
        mkdir -p work/inbox; echo 'status: [ not a task here' > work/inbox/t.yaml
        git add -A; git commit -qm one; git status --porcelain
        git checkout -qb other; echo changed > d1/f1; git mv d2/f2 d3/f2; git commit -qam two
        git checkout -q -; git merge -q other; git gc -q; git fsck --strict
        git clone -q . ../clone; cd ../clone; git log --oneline | wc -l; git status --porcelain";
    let said = fixture.sh(script).success();
    assert_eq!(said.stdout, "2\n", "{said}");
}

// P7.1
#[test]
fn sqlite_databases_lie_here_in_both_journal_modes() {
    let fixture = Fixture::new();
    let script = "import sqlite3, sys
for mode in ('delete', 'wal'):
    db = sqlite3.connect('scratchpad/%s.db' % mode)
    print(db.execute('pragma journal_mode=' + mode).fetchone()[0])
    db.execute('create table t(a)')
    for n in range(50):
        with db:
            db.execute('insert into t values(?)', (n,))
    print(db.execute('select count(*), sum(a) from t').fetchone())
    print(db.execute('pragma integrity_check').fetchone()[0])
    db.close()";
    let shell = fixture.bash().with("PYTHON", python()).with("S", script);
    let said = shell.run("mkdir scratchpad; \"$PYTHON\" -c \"$S\"").success();
    assert_eq!(said.stdout, "delete\n(50, 1225)\nok\nwal\n(50, 1225)\nok\n");
}

// P7.1
#[test]
fn the_file_functions_of_python() {
    let fixture = Fixture::new();
    let script = "
import errno, os, pathlib, shutil, tempfile, glob, fcntl
os.chdir('scratchpad')
p = pathlib.Path('a/b'); p.mkdir(parents=True); (p / 'f').write_text('x'); (p / 'f').touch()
shutil.copytree('a', 'c'); shutil.move('c', 'd'); shutil.copy2('a/b/f', 'g')
assert sorted(glob.glob('**/*', recursive=True)) == ['a','a/b','a/b/f','d','d/b','d/b/f','g']
with open('g', 'r+b') as f:
    fcntl.lockf(f, fcntl.LOCK_EX); f.truncate(10); assert f.read() == b'x' + bytes(9)
with tempfile.TemporaryFile(dir='.') as f:
    f.write(b'1'); f.seek(0); assert f.read() == b'1'
fd = os.open('.', os.O_RDONLY); os.fsync(fd); os.close(fd)
os.replace('g', 'd/g'); os.symlink('g', 'd/s'); assert os.path.samefile('d/g', 'd/s')
os.utime('d/g', ns=(1, 2)); assert os.stat('d/g').st_mtime_ns == 2
try:
    os.setxattr('d/g', 'user.a', b'1'); assert os.listxattr('d/g') == ['user.a']
    try: os.setxattr('d/g', 'user.', b'1'); assert False
    except OSError as error: assert error.errno == errno.EINVAL, error
finally:
    shutil.rmtree('a'); shutil.rmtree('d')
assert os.listdir('.') == []
";
    let shell = fixture.bash().with("PYTHON", python()).with("S", script);
    shell.run("mkdir scratchpad; \"$PYTHON\" -c \"$S\"").success();
}

// P7.1
#[test]
fn the_file_functions_of_node() {
    if !needs(&["node"]) {
        return;
    }
    let fixture = Fixture::new();
    let script = "
const fs = require('fs'), assert = require('assert'); process.chdir('scratchpad');
fs.mkdirSync('a/b', { recursive: true }); fs.writeFileSync('a/b/f', 'x');
fs.appendFileSync('a/b/f', 'y'); fs.copyFileSync('a/b/f', 'g'); fs.renameSync('g', 'a/g');
assert.equal(fs.readFileSync('a/g', 'utf8'), 'xy'); fs.linkSync('a/g', 'h');
fs.symlinkSync('h', 's');
assert.equal(fs.statSync('h').nlink, 2); fs.truncateSync('h', 1); fs.chmodSync('h', 0o600);
assert.equal(fs.realpathSync('s'), fs.realpathSync('h')); fs.cpSync('a', 'c', { recursive: true });
assert.throws(() => fs.mkdirSync('a'), { code: 'EEXIST' });
assert.throws(() => fs.openSync('h', 'wx'), { code: 'EEXIST' });
assert.deepEqual(fs.readdirSync('.').sort(), ['a', 'c', 'h', 's']);
fs.rmSync('a', { recursive: true }); fs.accessSync('h');
";
    fixture.bash().with("S", script).run("mkdir scratchpad; node -e \"$S\"").success();
}

// P7.1
#[test]
fn builds_and_scripts_run_here() {
    if !needs(&["make"]) {
        return;
    }
    let fixture = Fixture::new();
    let script = "set -e; mkdir scratchpad; cd scratchpad
        printf 'all: b\\nb: a\\n\\tcp a b\\n' > Makefile; echo 1 > a; make -s; cat b
        make -q; touch -d '1 minute' a; ! make -q";
    assert_eq!(fixture.sh(script).success().stdout, "1\n");
}
