//! Inside, a transaction is a tree like the one outside, as far as programs look.

use std::fs;
use std::io::{ErrorKind, Read, Write as _};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, openat};

use crate::harness::{Fixture, Setup, close, needs, until_polled};

// P13.2
#[test]
fn programs_work_inside_as_outside() {
    let fixture = Fixture::new();
    let snippet = "mkdir -p src/deep && echo one > src/a && printf 'x\\ny\\n' > src/b
        cp -p src/a src/deep/c && sed -i 's/one/two/' src/a && echo three >> src/a
        python3 - <<'E'
import os, tempfile
with open('src/p', 'w') as f: f.write('p' * 300000)
with open('src/p', 'r+') as f: f.seek(10); f.write('Q'); f.truncate(100)
fd, name = tempfile.mkstemp(dir='src'); os.write(fd, b'temp'); os.rename(name, 'src/t'); os.close(fd)
E
        chmod 755 src/b && touch -d 2020-01-02T03:04:05Z src/deep && truncate -s 5 src/deep/c
        mv src/deep src/deeper && tar cf - src | tar xf - -C .. --one-top-level=copy";
    if !needs(&["python3", "tar"]) {
        return;
    }
    fixture.sh("mkdir plain").success();
    fixture.sh(&format!("mkdir -p plain/x && cd plain/x && {snippet}")).success();
    fixture.sh("mkdir txn .workfs/txn/t && rm -rf plain/copy && mkdir txn/x").success();
    fixture.sh("rmdir .workfs/txn/t && mkdir .workfs/txn/t").success();
    fixture.sh(&format!("cd .workfs/txn/t/txn/x && {snippet}")).success();
    let list = "find . -not -path './copy*' -printf '%P %y %m %s\\n' | sort; \
                find . -type f -not -path './copy*' | sort | xargs cat | sha256sum";
    let plain = fixture.sh(&format!("cd plain && {list}")).success().stdout;
    let inside = fixture.sh(&format!("cd .workfs/txn/t/txn && {list}")).success().stdout;
    let files = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.contains(" d ")).map(str::to_owned).collect()
    };
    assert_eq!(files(&plain), files(&inside));
    fixture.sh("mv .workfs/txn/t .workfs/commit").success();
    let after = fixture.sh(&format!("cd txn && {list}")).success().stdout;
    assert_eq!(files(&plain), files(&after));
    fixture.fsck_clean();
}

// P13.2
#[test]
fn it_falls_through_to_what_others_change_where_it_was_not_used() {
    let fixture = Setup::default().mounts(2).start();
    fixture.sh("echo one > a && mkdir .workfs/txn/t").success();
    let inside = fixture.path(".workfs/txn/t");
    assert_eq!(fs::read_to_string(inside.join("a")).unwrap(), "one\n");
    fs::write(fixture.mount(1).join("b"), "new\n").unwrap();
    assert_eq!(fs::read_to_string(inside.join("b")).unwrap(), "new\n");
    fs::write(fixture.mount(1).join("a"), "two\n").unwrap();
    assert_eq!(fs::read_to_string(inside.join("a")).unwrap(), "two\n");
}

// P2.1 P13.2
#[test]
fn what_is_open_is_read_as_it_was_whatever_others_do_to_its_name() {
    let fixture = Setup::default().mounts(2).start();
    fixture.tasks(1);
    fixture.sh("echo one > a && mkdir .workfs/txn/t").success();
    let task = "work/inbox/t-0001.yaml";
    let text = fs::read_to_string(fixture.path(task)).unwrap();
    for (path, text) in [(task, text.as_str()), ("a", "one\n")] {
        let (inside, outside) = (fixture.path(".workfs/txn/t").join(path), fixture.mount(1));
        let open = || fs::File::open(&inside).unwrap();
        let read = |mut file: fs::File| {
            let mut read = String::new();
            file.read_to_string(&mut read).map(|_| read)
        };
        let replaced = open();
        let change = text.replacen(&text[..1], "#", 1);
        fs::write(outside.join("new"), &change).unwrap();
        fs::rename(outside.join("new"), outside.join(path)).unwrap();
        let removed = open();
        fs::remove_file(outside.join(path)).unwrap();
        // What nobody has is reclaimed by then.
        std::thread::park_timeout(Duration::from_millis(500));
        assert_eq!(read(replaced).unwrap(), text);
        assert_eq!(read(removed).unwrap(), change);
        assert_eq!(fs::File::open(&inside).unwrap_err().kind(), ErrorKind::NotFound);
    }
    // It was used all the same.
    let commit = fs::rename(fixture.path(".workfs/txn/t"), fixture.path(".workfs/commit"));
    assert_eq!(commit.unwrap_err().raw_os_error(), Some(libc::EBUSY));
    fixture.sh("rmdir .workfs/txn/t").success();
    fixture.fsck_clean();
}

// P13.2
#[test]
fn a_task_is_claimed_written_and_completed_in_one_step() {
    let fixture = Fixture::new();
    fixture.tasks(1);
    fixture
        .sh("mkdir .workfs/txn/t && cd .workfs/txn/t/work
             mv inbox/t-0001.yaml assigned/bob/
             sed -i -e 's/^status: new/status: in_progress/' -e 's/^agent: .*/agent: bob/' \
                 assigned/bob/t-0001.yaml
             printf 'result:\\n  summary: it works\\n' >> assigned/bob/t-0001.yaml
             mv assigned/bob/t-0001.yaml done/bob/ && cd ../../../..
             mv .workfs/txn/t .workfs/commit && cat work/done/bob/t-0001.yaml")
        .success();
    let ledger = fixture.ledger();
    assert_eq!(ledger.names("t-0001"), ["created", "claimed", "saved", "saved", "completed"]);
    fixture.fsck_clean();
}

// P13.2
#[test]
fn directories_that_were_turned_around_outside_have_an_end() {
    let fixture = Fixture::new();
    fixture.sh("mkdir -p a/b .workfs/txn/t").success();
    let inner = fs::File::open(fixture.path(".workfs/txn/t/a/b")).unwrap();
    fixture.sh("mv a/b b && mv b a-b && mv a a-b/a").success();
    // The kernel says ELOOP to that, and the daemon was asked by then.
    let at = |name: &str, flags| rustix::fs::openat(&inner, name, flags, 0o644.into());
    let _ = at("a", rustix::fs::OFlags::RDONLY);
    at("new", rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY).unwrap();
    fixture.sh("rmdir .workfs/txn/t; ls a-b/a").ok();
    fixture.fsck_clean();
}

// P13.1 P13.2
#[test]
fn a_file_that_is_made_and_never_opened_is_in_nobody_s_way() {
    let fixture = Fixture::new();
    fixture.sh("mkdir .workfs/txn/t").success();
    let made = fixture.path(".workfs/txn/t/made");
    mknodat(CWD, &made, FileType::RegularFile, Mode::from_raw_mode(0o600), 0).unwrap();
    fixture.sh("mv .workfs/txn/t .workfs/commit && test -f made -a ! -s made").success();
    // Nor is one that is only read by who makes or cuts it, once that has closed it.
    fixture.sh("echo x > cut").success();
    for nth in 0..20 {
        fixture.sh("mkdir .workfs/txn/t").success();
        let txn = fixture.path(".workfs/txn/t");
        for (name, flag) in [(&*format!("read-{nth}"), OFlags::CREATE), ("cut", OFlags::TRUNC)] {
            let flags = OFlags::RDONLY | flag;
            drop(openat(CWD, txn.join(name), flags, Mode::from_raw_mode(0o600)).unwrap());
        }
        fs::rename(&txn, fixture.path(".workfs/commit/t")).unwrap();
        assert!(fixture.path(&format!("read-{nth}")).exists());
    }
    fixture.fsck_clean();
}

// P2.2 P13.2
#[test]
fn what_somebody_is_making_outside_is_in_no_transaction() {
    let fixture = Fixture::new();
    fixture.sh("mkdir .workfs/txn/t").success();
    let mut file = fs::File::create(fixture.path("work/inbox/t-1.yaml")).unwrap();
    file.write_all(b"id: t-1\n").unwrap();
    let there =
        "cd .workfs/txn/t/work/inbox; for f in t-1.yaml; do test -e $f && echo $f; done; ls";
    assert_eq!(fixture.sh(there).success().stdout, "");
    close(file).unwrap();
    assert_eq!(fixture.sh(there).success().stdout, "t-1.yaml\nt-1.yaml\n");
}

// P13.1 P13.2
#[test]
fn what_a_mapping_writes_after_the_last_close_is_committed() {
    if !needs(&["python3"]) {
        return;
    }
    let fixture = Fixture::new();
    fixture.sh("echo aaa > f; mkdir .workfs/txn/t").success();
    let script = "
import ctypes, os
c = ctypes.CDLL(None)
c.mmap.restype = ctypes.c_void_p
c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
c.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
fd = os.open('.workfs/txn/t/f', os.O_RDWR)
at = c.mmap(None, 4, 3, 1, fd, 0)
os.close(fd)
ctypes.memmove(at, b'bbb', 3)
c.munmap(at, 4)";
    fixture.bash().with("S", script).run("python3 -c \"$S\"").success();
    // The kernel says a moment later that nobody has it open any more.
    let commit = || fs::rename(fixture.path(".workfs/txn/t"), fixture.path(".workfs/commit/t"));
    until_polled("it can be committed", || commit().ok());
    assert_eq!(fs::read_to_string(fixture.path("f")).unwrap(), "bbb\n");
    fixture.fsck_clean();
}
