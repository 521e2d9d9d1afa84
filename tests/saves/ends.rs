//! Where a file ends to who writes it, and where to everybody else meanwhile.

use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;

use crate::harness::{Fixture, Setup, Task, close, needs, python};

const CHECKED: &str = "
workspaces: [ { path: work, kind: task } ]
checks:
  - { path: \"notes/**/*.yaml\" }
";

fn fixture() -> Fixture {
    let fixture = Setup::default().mounts(2).layout(CHECKED).start();
    fixture.sh("mkdir notes").success();
    fixture
}

/// A record, a checked file, and a new one of each: with what it is before, and what its first lines
/// are to be.
fn files(fixture: &Fixture) -> Vec<(&'static str, String, String)> {
    fixture.task("inbox", &Task::new("t-1"));
    fs::write(fixture.path("notes/old.yaml"), "a: 1\n").unwrap();
    vec![
        ("work/inbox/t-1.yaml", Task::new("t-1").text(), Task::new("t-1").revision(1).text()),
        ("work/inbox/t-2.yaml", String::new(), Task::new("t-2").revision(1).text()),
        ("notes/old.yaml", "a: 1\n".to_owned(), "title: b\nrevision: 1\n".to_owned()),
        ("notes/new.yaml", String::new(), "title: b\nrevision: 1\n".to_owned()),
    ]
}

// P2.3, P4.1
#[test]
fn what_is_written_while_another_descriptor_s_close_is_judged_is_saved_too() {
    const WRITERS: usize = 4;
    let fixture = fixture();
    for (path, _, first) in files(&fixture) {
        let file = fixture.path(path);
        for round in 0..20 {
            let mut options = OpenOptions::new();
            let mut one = options.write(true).create(true).truncate(true).open(&file).unwrap();
            one.write_all(first.as_bytes()).unwrap();
            let begin = Barrier::new(WRITERS);
            std::thread::scope(|scope| {
                for writer in 0..WRITERS {
                    let (mut own, begin) = (one.try_clone().unwrap(), &begin);
                    scope.spawn(move || {
                        begin.wait();
                        own.write_all(format!("# {writer}\n").as_bytes()).unwrap();
                        // Both ways in which a program asks for it.
                        if writer + round % 2 == 0 {
                            own.sync_all().unwrap();
                        }
                        close(own).unwrap();
                    });
                }
            });
            let text = fs::read_to_string(&file).unwrap();
            let lines = text.strip_prefix(&first).map(|more| more.lines().count());
            assert_eq!(lines, Some(WRITERS), "{path}, round {round}: {text}");
            close(one).unwrap();
        }
    }
}

// P2.4
#[test]
fn a_writer_finds_the_end_of_what_it_wrote_whoever_looks_meanwhile() {
    let fixture = fixture();
    for (path, _, first) in files(&fixture) {
        let file = fixture.path(path);
        let mut options = OpenOptions::new();
        let mut writer =
            options.read(true).write(true).create(true).truncate(true).open(&file).unwrap();
        writer.write_all(first.as_bytes()).unwrap();
        fixture.sh(&format!("ls -l '{path}' \"$(dirname '{path}')\"; stat '{path}'"));
        assert_eq!(writer.metadata().unwrap().len(), first.len() as u64, "{path}: fstat");
        assert_eq!(writer.seek(SeekFrom::End(0)).unwrap(), first.len() as u64, "{path}: SEEK_END");
        writer.write_all(b"# the end\n").unwrap();
        fixture.sh(&format!("ls -l '{path}'"));
        let size = writer.metadata().unwrap().len();
        let mut text = vec![0; size as usize];
        writer.rewind().unwrap();
        writer.read_exact(&mut text).unwrap();
        let whole = format!("{first}# the end\n");
        assert_eq!(String::from_utf8(text).unwrap(), whole, "{path}");
        close(writer).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), whole, "{path}");
        assert_eq!(fs::metadata(&file).unwrap().len(), whole.len() as u64, "{path}");
    }
}

// P2.2, P2.4
#[test]
fn to_others_a_file_ends_where_it_was_saved_last_whatever_its_writer_asks() {
    let fixture = fixture();
    for (path, before, first) in files(&fixture) {
        if before.is_empty() {
            continue;
        }
        let mut writer = OpenOptions::new().write(true).open(fixture.path(path)).unwrap();
        writer.set_len(0).unwrap();
        writer.write_all(first.as_bytes()).unwrap();
        writer.write_all(b"# more\n").unwrap();
        let told =
            || fixture.sh(&format!("stat -c %s '{path}'; wc -c < '{path}'")).success().stdout;
        for _ in 0..3 {
            assert_eq!(writer.metadata().unwrap().len(), first.len() as u64 + 7, "{path}");
            assert_eq!(told(), format!("{0}\n{0}\n", before.len()), "{path}");
        }
        assert_eq!(fs::metadata(fixture.mount(1).join(path)).unwrap().len(), before.len() as u64);
        // Who also reads it has two files under one name, and hears of the one that its name gives.
        let reader = fs::File::open(fixture.path(path)).unwrap();
        assert_eq!(reader.metadata().unwrap().len(), before.len() as u64, "{path}");
        assert_eq!(writer.seek(SeekFrom::End(0)).unwrap(), first.len() as u64 + 7, "{path}");
        drop(reader);
        close(writer).unwrap();
    }
}

// P2.4
#[test]
fn a_file_that_was_given_a_length_has_it_for_who_did() {
    let fixture = fixture();
    fs::write(fixture.path("notes/a.yaml"), "a: 1\n").unwrap();
    let file = OpenOptions::new().write(true).open(fixture.path("notes/a.yaml")).unwrap();
    file.set_len(20).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 20);
    file.set_len(2).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 2);
    file.set_len(5).unwrap();
    // What it wrote is refused: zero bytes are no YAML.
    drop(file);
    assert_eq!(fs::read(fixture.path("notes/a.yaml")).unwrap(), b"a: 1\n");
}

// P2.4
#[test]
fn languages_that_ask_where_a_file_ends_lose_nothing() {
    let fixture = fixture();
    let first = Task::new("t-1").revision(1).text();
    fs::write(fixture.outside("first"), &first).unwrap();
    let first_file = fixture.outside("first");
    let python = format!(
        "'{}' -c \"
import os, subprocess, sys
first = open('{}').read()
for path in sys.argv[1:]:
    with open(path, 'w+') as f:
        f.write(first); f.flush()
        subprocess.run(['ls', '-l', path], stdout=subprocess.DEVNULL)
        assert os.fstat(f.fileno()).st_size == len(first), os.fstat(f.fileno()).st_size
        f.seek(0, 2)
        f.write('# the end\\n')
\" \"$@\"",
        python().display(),
        first_file.display()
    );
    let node = format!(
        "node -e \"
const fs = require('fs'), {{execFileSync}} = require('child_process');
const first = fs.readFileSync('{}');
for (const path of process.argv.slice(1)) {{
  const fd = fs.openSync(path, 'w+');
  fs.writeSync(fd, first);
  execFileSync('ls', ['-l', path]);
  fs.writeSync(fd, '# the end\\\\n', fs.fstatSync(fd).size);
  fs.closeSync(fd);
}}
\" \"$@\"",
        first_file.display()
    );
    let paths = ["work/inbox/t-1.yaml", "notes/t.yaml"];
    for (program, script) in [("python", &python), ("node", &node)] {
        if program == "node" && !needs(&["node"]) {
            continue;
        }
        for path in paths {
            fs::write(fixture.path(path), Task::new("t-1").text()).unwrap();
            fixture.sh(&format!("set -- {path}\n{script}")).success();
            let text = fs::read_to_string(fixture.path(path)).unwrap();
            assert_eq!(text, format!("{first}# the end\n"), "{program}: {path}");
            fs::remove_file(fixture.path(path)).unwrap();
        }
    }
}

/// A process that does something over and over, for as long as this lives.
struct Looker(Child);

impl Looker {
    fn start(fixture: &Fixture, how: &str) -> Looker {
        let mut bash = Command::new("bash");
        bash.args(["-c", &format!("while :; do {how}; done")]).current_dir(fixture.mount(0));
        let [nothing, nowhere] = [Stdio::null(), Stdio::null()];
        Looker(bash.stdout(nothing).stderr(nowhere).spawn().unwrap())
    }
}

impl Drop for Looker {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

// P2.4, P2.5
#[test]
fn a_writer_that_seeks_the_end_finds_it_while_others_look_without_a_pause() {
    let fixture = fixture();
    for (path, _, first) in files(&fixture) {
        let file = fixture.path(path);
        fs::write(&file, &first).unwrap();
        // In processes of their own: to the writer's own the size is the writer's.
        let _lookers =
            ["stat", "tail -n1"].map(|how| Looker::start(&fixture, &format!("{how} '{path}'")));
        for round in 0..60 {
            let mut options = OpenOptions::new();
            let mut writer =
                options.read(true).write(true).truncate(round % 2 == 0).open(&file).unwrap();
            if round % 2 == 0 {
                writer.write_all(first.as_bytes()).unwrap();
            }
            let mut whole = fs::read_to_string(&file).unwrap();
            if round % 2 == 0 {
                whole.clone_from(&first);
            }
            for line in 0..4 {
                let line = format!("# {round} {line}\n");
                writer.seek(SeekFrom::End(0)).unwrap();
                writer.write_all(line.as_bytes()).unwrap();
                whole += &line;
            }
            close(writer).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), whole, "{path}: round {round}");
        }
    }
}

// P2.1, P2.4
#[test]
fn who_reads_an_old_version_finds_the_end_of_that() {
    let fixture = fixture();
    for (path, before, first) in files(&fixture) {
        let file = fixture.path(path);
        if before.is_empty() {
            continue;
        }
        for new in [format!("{first}# {}\n", "longer ".repeat(2000)), first] {
            let before = fs::read(&file).unwrap();
            fs::write(fixture.outside("new"), &new).unwrap();
            let mut reader = fs::File::open(&file).unwrap();
            fixture.sh(&format!("cat \"$OUT/new\" > '{path}'; stat '{path}'")).success();
            assert_eq!(reader.metadata().unwrap().len(), before.len() as u64, "{path}: fstat");
            assert_eq!(reader.seek(SeekFrom::End(0)).unwrap(), before.len() as u64, "{path}");
            reader.rewind().unwrap();
            let mut read = Vec::new();
            reader.read_to_end(&mut read).unwrap();
            assert_eq!(read, before, "{path}");
            let told = fixture.sh(&format!("stat -c %s '{path}'")).success().stdout;
            assert_eq!(told, format!("{}\n", new.len()), "{path}: to others");
        }
    }
}

// P2.1, P2.4
#[test]
fn who_reads_an_old_version_finds_its_end_also_before_the_descriptor_that_saved_is_gone() {
    let fixture = fixture();
    for (path, before, first) in files(&fixture) {
        if before.is_empty() {
            continue;
        }
        fs::write(fixture.outside("new"), format!("{first}# longer\n")).unwrap();
        let mut reader = fs::File::open(fixture.path(path)).unwrap();
        // As where the kernel is late with telling: one that writes nothing has the saved file open still.
        let script = format!(
            "exec 3> '{path}'; cat >/dev/null <&0 & cat \"$OUT/new\" >&3; exec 3>&-; exec >&-; wait"
        );
        let mut shell = Command::new("bash");
        shell.args(["-c", &script]).env("OUT", fixture.outside("")).current_dir(fixture.root());
        let mut saver = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        saver.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        fixture.sh(&format!("cmp \"$OUT/new\" '{path}' && stat '{path}'")).success();
        assert_eq!(reader.seek(SeekFrom::End(0)).unwrap(), before.len() as u64, "{path}");
        drop(saver.stdin.take());
        assert!(saver.wait().unwrap().success());
    }
}
