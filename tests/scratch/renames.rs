//! Checked files that are renamed by who still has them open.

use std::fs::{self, File};
use std::io::Write;

use rustix::fs::RenameFlags;
use workfs::config::Config;
use workfs::engine::{Base, Save, SetAttributes, Sight, Text};
use workfs::names::FileName;
use workfs::refusal::Rule;

use crate::harness::{Desk, Errno, Setup, close, rename_with};

const LAYOUT: &str = "workspaces: []
files: [{ path: \"plans/*\" }]
checks:
  - { path: \"plans/*.json\" }
  - { path: \"strict/*.json\", schema: plan }
schemas:
  - { name: plan, text: '{\"type\": \"object\", \"required\": [\"goal\"]}' }
";

// P11.1 P11.7
#[test]
fn who_renames_a_checked_file_that_it_is_writing_saves_it() {
    let fixture = Setup::default().mounts(2).layout(LAYOUT).start();
    fixture.sh("mkdir plans strict plain; echo '{\"old\": 1}' > plans/there.json").success();
    let plan = |name: &str| fixture.mount(0).join(name);
    let other = |name: &str| fixture.mount(1).join(name);
    let began = |name: &str, text: &str| {
        let mut file = File::create(plan(name)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    };
    let (good, better) = ("{\"a\": 1}", "{\"goal\": 1}");
    // A new one, over another, to where more is asked, and to where nothing is.
    for (text, to) in [
        (good, "plans/free.json"),
        (good, "plans/there.json"),
        (better, "strict/x.json"),
        (good, "plain/x"),
    ] {
        let file = began("plans/new.json", text);
        fs::rename(plan("plans/new.json"), plan(to)).unwrap();
        assert_eq!(fs::read_to_string(other(to)).unwrap(), text, "{to}");
        close(file).unwrap();
    }
    // What is written afterwards is the new name's.
    let mut file = File::options().append(true).open(plan("plans/free.json")).unwrap();
    file.write_all(b" ").unwrap();
    fs::rename(plan("plans/free.json"), plan("plans/next.json")).unwrap();
    file.write_all(b"x").unwrap_err();
    assert_eq!(close(file), Err(Errno::INVAL));
    assert_eq!(fs::read_to_string(other("plans/next.json")).unwrap(), "{\"a\": 1} ");
    let ledger = fixture.ledger();
    let of_it = |path: &str| {
        let events = ledger.0.iter().filter(|event| event.0["payload"]["path"] == path);
        events.map(|event| event.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of_it("plans/free.json"), ["renamed", "saved"]);
    assert_eq!(of_it("plans/next.json"), ["renamed"]);
    fixture.fsck_clean();
}

// P11.1 P11.7
#[test]
fn a_rename_of_a_checked_file_saves_nothing_that_is_not_valid_and_nobody_else_s() {
    let fixture = Setup::default().layout(LAYOUT).start();
    fixture.sh("mkdir plans strict; echo '{\"old\": 1}' > plans/there.json").success();
    let path = |name: &str| fixture.path(name);
    let rename = |from: &str, to: &str| rename_with(&path(from), &path(to), RenameFlags::empty());
    for (text, to) in [("{\"a\": ", "plans/b.json"), ("{\"a\": 1}", "strict/b.json")] {
        let mut file =
            File::options().write(true).truncate(true).open(path("plans/there.json")).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        assert_eq!(rename("plans/there.json", to), Err(Errno::PERM), "{to}");
        assert!(path("plans/there.json").exists() && !path(to).exists(), "{to}");
    }
    assert_eq!(fs::read_to_string(path("plans/there.json")).unwrap(), "{\"a\": 1}");
    // Half of a text that another program writes is none of a rename's.
    let mut file = File::create(path("plans/there.json")).unwrap();
    file.write_all(b"{\"half\": 1}").unwrap();
    let ran = fixture.sh("mv plans/there.json plans/b.json").failure();
    assert!(ran.stderr.contains("resource busy") && fixture.why().contains("W024"), "{ran}");
    close(file).unwrap();
    fixture.sh("mv plans/there.json plans/b.json").success();
    fixture.fsck_clean();
}

// P11.7
#[test]
fn what_has_got_a_checked_name_meanwhile_is_not_cut_to_what_that_does_not_take() {
    let layout = "workspaces: [{ path: work, kind: task }]\nchecks: [{ path: \"work/*.json\" }]";
    let desk = Desk::with(&["bob"], Config::parse("layout", layout).unwrap());
    desk.make("plan.json");
    let name = FileName::new("plan.json").unwrap();
    let look = || desk.read(|read| read.lookup(read.workspaces()?[0].dir.unwrap(), &name)).unwrap();
    let ino = look().ino;
    let text = Text::new(b"{\"a\": [1, 2]}".to_vec());
    let save = Save::of(ino, Sight::Known(Base::Unseen), text);
    desk.engine().run(Desk::operator(), save).unwrap();
    // As a mount asks for it where the name was another one when it looked.
    for size in [3, 0, 100] {
        let cut = SetAttributes { size: Some(size), ..SetAttributes::none(ino) };
        let refused = desk.engine().run(Desk::operator(), cut).unwrap_err();
        assert_eq!(refused.rule, Rule::Syntax, "{size}");
        assert_eq!(look().size, 13, "{size}");
    }
    desk.fsck_clean();
}
