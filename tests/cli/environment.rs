//! What the environment says, and is wrong: the message names the variable.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use crate::harness::{Setup, run};

// P8.1
#[test]
fn a_variable_that_is_no_text_or_names_no_agent_is_named() {
    let fixture = Setup::default().prepare();
    fixture.workfs(&["init"]).success();
    let root = fixture.root().to_str().unwrap();
    let commands: [&[&str]; 9] = [
        &["claim", "--next"],
        &["done", "x"],
        &["heartbeat"],
        &["project", "new"],
        &["mount", root],
        &["mount", root, "--role", "builder"],
        &["exec", "true"],
        &["exec", "--role", "builder", "true"],
        &["claim", "--next", "--json"],
    ];
    for (value, shown) in [(b"\xff\xfe".as_slice(), r"\xff\xfe"), (b"a b", "a b")] {
        let value = OsStr::from_bytes(value);
        for arguments in commands {
            let ran = run(fixture.command(arguments).env("WORKFS_AGENT", value)).failure();
            let told = ran.stderr.replace(r"\\", r"\");
            assert!(ran.code == 2 && told.contains("WORKFS_AGENT"), "{ran}");
            assert!(told.contains(shown), "{ran}");
            if arguments.contains(&"--json") {
                let error: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
                assert_eq!(error["error"]["code"], 2, "{ran}");
            }
        }
        // Where it is not wanted, or something else is said, it is nobody's trouble.
        let named = ["claim", "--next", "--agent", "ann"];
        let ran = run(fixture.command(&named).env("WORKFS_AGENT", value)).failure();
        assert_eq!(ran.code, 3, "{ran}");
        run(fixture.command(&["list"]).env("WORKFS_AGENT", value)).success();
        run(fixture.command(&["claim", "--help"]).env("WORKFS_AGENT", value)).success();
    }
    // What was said there is not the environment's.
    let ran = fixture.workfs(&["claim", "--agent", "a b"]).failure();
    assert!(ran.code == 2 && !ran.stderr.contains("WORKFS_AGENT"), "{ran}");
}

// P8.1
#[test]
fn each_other_variable_is_named_likewise() {
    let fixture = Setup::default().prepare();
    fixture.workfs(&["init"]).success();
    let root = fixture.root().to_str().unwrap();
    let no_text = OsStr::from_bytes(b"\xff");
    for (variable, command) in [("WORKFS_LOG", &["mount", root][..]), ("WORKFS_FAULT", &["list"])] {
        let ran = run(fixture.command(command).env(variable, no_text)).failure();
        assert!(ran.code == 2 && ran.stderr.contains(variable), "{ran}");
    }
    let mut command = std::process::Command::new(crate::harness::program());
    command.arg("list").current_dir(fixture.base()).env("HOME", fixture.outside("home"));
    let ran = run(command.env("WORKFS_STORE", fixture.outside("").join(no_text))).failure();
    assert!(ran.code == 2 && ran.stderr.contains("WORKFS_STORE"), "{ran}");
}

// P8.1
#[test]
fn a_word_that_is_no_text_is_shown() {
    let fixture = Setup::default().prepare();
    let mut command = fixture.command(&["agent", "add"]);
    let ran = run(command.arg(OsStr::from_bytes(b"b\xffb"))).failure();
    assert!(ran.code == 2 && ran.stderr.contains(r"`b\xffb`"), "{ran}");
}
