//! Names of any bytes.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::harness::{Errno, Fixture, Setup};

// P7.2
#[test]
fn a_name_is_any_bytes_but_slash_and_nul() {
    let fixture = Fixture::new();
    let dir = fixture.path("scratchpad");
    fs::create_dir(&dir).unwrap();
    let longest = [b'x'; 255];
    let wide = "ü".repeat(127);
    let names: [&[u8]; 12] = [
        b"a\nb",
        b"\xff\xfe\x80",
        &longest,
        wide.as_bytes(),
        b" ",
        b"-rf",
        b"...",
        b"*?[]'\"\\$`",
        b"\x1b[31mred",
        "\u{202e}gnp.exe".as_bytes(),
        b"A",
        b"a",
    ];
    for name in names {
        let path = dir.join(OsStr::from_bytes(name));
        fs::write(&path, name).unwrap_or_else(|error| panic!("{name:?}: {error}"));
    }
    let mut listed: Vec<Vec<u8>> =
        fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name().into_vec()).collect();
    listed.sort();
    let mut wanted = names.map(<[u8]>::to_vec);
    wanted.sort();
    assert_eq!(listed, wanted);
    for name in names {
        let path = dir.join(OsStr::from_bytes(name));
        assert_eq!(fs::read(&path).unwrap(), name);
        fs::rename(&path, dir.join("moved")).unwrap();
        fs::rename(dir.join("moved"), &path).unwrap();
        fs::remove_file(path).unwrap();
    }
}

// P7.2
#[test]
fn a_longer_name_is_too_long() {
    let fixture = Fixture::new();
    for length in [256, 1000, 1024, 1025, 5000] {
        let path = fixture.path(&"x".repeat(length));
        let errno = |error: std::io::Error| Errno::from_io_error(&error);
        assert_eq!(fs::write(&path, b"").map_err(errno), Err(Some(Errno::NAMETOOLONG)));
        assert_eq!(fs::create_dir(&path).map_err(errno), Err(Some(Errno::NAMETOOLONG)));
        let found = fs::metadata(&path).map(drop).map_err(errno);
        assert_eq!(found, Err(Some(Errno::NAMETOOLONG)), "{length}");
        fs::write(fixture.path("f"), b"").unwrap();
        let moved = fs::rename(fixture.path("f"), &path).map_err(errno);
        assert_eq!(moved, Err(Some(Errno::NAMETOOLONG)));
    }
}

// P7.2 P5.3
#[test]
fn hostile_names_do_not_break_what_is_told_of_them() {
    let fixture = Fixture::new();
    let lane = OsStr::from_bytes(b"evil\n\x1b[2J\xff");
    // Not an agent's name, so no lane: a directory like any other.
    fs::create_dir(fixture.work().join("assigned").join(lane)).unwrap();
    let bad = OsStr::from_bytes(b"work/inbox/x\n\x1b[2J.yaml");
    fs::write(fixture.root().join(bad), b"status: [").unwrap();
    let _ = fs::rename(fixture.root().join(bad), fixture.work().join("assigned/bob/y.yaml"));
    fixture.ledger();
    for text in [fixture.why(), fs::read_to_string(fixture.path(".workfs/events")).unwrap()] {
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
    fixture.fsck_clean();
}

// P7.2
#[test]
fn a_deep_path_works() {
    let fixture = Fixture::new();
    let script = "set -e; mkdir scratchpad; cd scratchpad
        for i in $(seq 1 200); do mkdir d; cd d; done; echo deep > f; cat f";
    assert_eq!(fixture.sh(script).success().stdout, "deep\n");
    fixture.sh("rm -r scratchpad").success();
}

// P3.2
#[test]
fn what_was_refused_can_be_read_whatever_its_file_is_called() {
    let layout = "workspaces: []\nchecks: [{ path: \"f/*\", syntax: json }]\n";
    let fixture = Setup::default().layout(layout).start();
    fs::create_dir(fixture.path("f")).unwrap();
    // The longest is cut for its number, within a character.
    let long = format!("{}xx", "ü".repeat(126));
    let names: [&[u8]; 4] = [b"a\xff", b"b\n\xfe", long.as_bytes(), b"7-c"];
    for (nth, name) in names.iter().enumerate() {
        let path = fixture.path("f").join(OsStr::from_bytes(name));
        fs::write(path, format!("{{]{nth}")).unwrap_err();
    }
    let mut kept = fixture.rejected();
    kept.sort();
    assert_eq!(kept, [b"{]0", b"{]1", b"{]2", b"{]3"]);
}
