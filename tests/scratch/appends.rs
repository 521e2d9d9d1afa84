//! Checked files to which several append at once: whoever was told that its bytes were taken finds
//! them.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

use crate::harness::{Errno, Fixture, Setup, close, python};

const LAYOUT: &str = "workspaces: []
checks:
  - { path: \"scratchpad/**/*.json\" }
  - { path: \"scratchpad/**/*.yaml\" }
";

fn fixture() -> Fixture {
    let fixture = Setup::default().mounts(2).layout(LAYOUT).start();
    fixture.sh("mkdir -p scratchpad").success();
    fixture
}

fn append(path: &Path) -> File {
    OpenOptions::new().append(true).create(true).open(path).unwrap()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

// P11.7
#[test]
fn what_several_append_is_all_there() {
    let fixture = fixture();
    let path = fixture.path("scratchpad/m.yaml");
    // The first makes the file, and none knows of what the others wrote.
    let (mut a, mut b) = (append(&path), append(&path));
    a.write_all(b"- a\n").unwrap();
    b.write_all(b"- b\n").unwrap();
    close(b).unwrap();
    a.sync_all().unwrap();
    let mut c = append(&fixture.mount(1).join("scratchpad/m.yaml"));
    a.write_all(b"- a2\n").unwrap();
    c.write_all(b"- c\n").unwrap();
    close(c).unwrap();
    // A save of the same handle again adds what is new of it, not what it added before.
    close(a).unwrap();
    assert_eq!(read(&path), "- b\n- a\n- c\n- a2\n");
    assert_eq!(read(&fixture.mount(1).join("scratchpad/m.yaml")), "- b\n- a\n- c\n- a2\n");
    fixture
        .sh("for p in 1 2 3 4; do (for n in 1 2 3 4 5 6 7 8 9 10; do \
                echo \"- $p.$n\" >> scratchpad/n.yaml || echo failed >> $OUT/failed; \
             done) & done; wait; ! test -e $OUT/failed")
        .success();
    let mut lines: Vec<String> =
        read(&fixture.path("scratchpad/n.yaml")).lines().map(str::to_owned).collect();
    lines.sort();
    lines.dedup();
    assert_eq!(lines.len(), 40, "{lines:?}");
    fixture.fsck_clean();
}

// P11.7
#[test]
fn what_is_appended_is_judged_with_what_is_there_then() {
    let fixture = fixture();
    let path = fixture.path("scratchpad/m.yaml");
    fs::write(&path, "a: 1\n").unwrap();
    let (mut a, mut b) = (append(&path), append(&path));
    a.write_all(b"b: 1\n").unwrap();
    b.write_all(b"b: 2\n").unwrap();
    close(a).unwrap();
    assert_eq!(close(b), Err(Errno::INVAL));
    assert_eq!(read(&path), "a: 1\nb: 1\n");
    assert_eq!(fixture.rejected(), [b"a: 1\nb: 1\nb: 2\n".to_vec()]);
    // What was there at open may be gone, and with it what the new text would not go with.
    let mut a = append(&path);
    fs::write(&path, "- 1\n").unwrap();
    a.write_all(b"- 2\n").unwrap();
    a.write_all(b"- 3\n").unwrap();
    a.sync_all().unwrap();
    assert_eq!(read(&path), "- 1\n- 2\n- 3\n");
    // Refused as it is, mended by what follows.
    a.write_all(b"- [4,\n").unwrap();
    assert!(a.sync_all().is_err());
    append(&path).write_all(b"- 5\n").unwrap();
    a.write_all(b"  6]\n").unwrap();
    close(a).unwrap();
    assert_eq!(read(&path), "- 1\n- 2\n- 3\n- 5\n- [4,\n  6]\n");
    fixture.fsck_clean();
}

// P11.7
#[test]
fn who_cuts_the_file_saves_the_whole_of_what_it_left() {
    let fixture = fixture();
    let path = fixture.path("scratchpad/m.yaml");
    fs::write(&path, "- 1\n").unwrap();
    let mut a = OpenOptions::new().read(true).append(true).open(&path).unwrap();
    a.write_all(b"- 2\n").unwrap();
    append(&path).write_all(b"- other\n").unwrap();
    a.set_len(0).unwrap();
    a.write_all(b"- 3\n").unwrap();
    a.sync_all().unwrap();
    assert_eq!(read(&path), "- 3\n");
    append(&path).write_all(b"- 4\n").unwrap();
    a.write_all(b"- 5\n").unwrap();
    let mut own = String::new();
    a.read_to_string(&mut own).unwrap();
    close(a).unwrap();
    assert_eq!(read(&path), "- 3\n- 4\n- 5\n");
    fixture.fsck_clean();
}

// P7.4
#[test]
fn only_what_is_written_goes_to_the_end_and_only_while_the_descriptor_says_so() {
    let script = r#"
import fcntl, mmap, os, sys
def show(what):
    text = open(name, 'rb').read()
    print(what, os.path.getsize(name), [(n, c) for n, c in enumerate(text) if c != ord('1')])
for name in sys.argv[1:]:
    print(os.path.basename(name))
    with open(name, 'wb') as file:
        file.write(b'[' + b'1' * 9000 + b']')
    fd = os.open(name, os.O_RDWR | os.O_APPEND)
    mapped = mmap.mmap(fd, 9002)
    mapped[5000:5003] = b'222'
    mapped.flush()
    os.fsync(fd)
    show('mapped')
    os.pwrite(fd, b' ', 7)
    os.fsync(fd)
    show('appended')
    fcntl.fcntl(fd, fcntl.F_SETFL, 0)
    os.pwrite(fd, b'3', 7)
    os.fsync(fd)
    show('at its place')
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)
    os.write(fd, b'\n')
    mapped[1:2] = b'4'
    mapped.close()
    os.close(fd)
    show('closed')
    other = os.open(name, os.O_RDWR)
    fcntl.fcntl(other, fcntl.F_SETFL, os.O_APPEND)
    os.write(other, b'\n')
    os.close(other)
    show('by another')
"#;
    let fixture = fixture();
    fs::write(fixture.outside("appends.py"), script).unwrap();
    let run = |root: &Path, names: &[&str]| {
        let names: Vec<String> =
            names.iter().map(|name| format!("{}/{name}", root.display())).collect();
        let python = python().display();
        fixture.sh(&format!("{python} $OUT/appends.py {}", names.join(" "))).success().stdout
    };
    let of_system = run(&fixture.outside(""), &["plain", "x.yaml"]);
    assert!(of_system.contains("by another"), "{of_system}");
    fixture.sh("mkdir -p plain").success();
    assert_eq!(run(&fixture.path("plain"), &["plain", "x.yaml"]), of_system);
    assert_eq!(run(&fixture.mount(1).join("scratchpad"), &["plain", "x.yaml"]), of_system);
    fixture.sh("mkdir .workfs/txn/t").success();
    assert_eq!(run(&fixture.path(".workfs/txn/t/plain"), &["plain", "x.yaml"]), of_system);
    fixture.fsck_clean();
}
