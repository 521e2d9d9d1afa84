//! Random work in a transaction does what it does in a directory of another file system: each call
//! gives the same, the tree looks the same inside, and after the commit outside.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::harness::{Errno, Fixture, long};

#[derive(Clone, Debug)]
enum Op {
    Write(String, usize),
    Append(String, usize),
    Truncate(String, u64),
    Rename(String, String),
    Unlink(String),
    Mkdir(String),
    Rmdir(String),
    Symlink(String, String),
    Chmod(String, u32),
}

/// Few names, so that they meet.
fn path() -> impl Strategy<Value = String> {
    prop_oneof!["[ab]", "[ab]/[ab]", "[ab]/[ab]/[ab]"]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (path(), 0usize..9_000).prop_map(|(at, size)| Op::Write(at, size)),
        2 => (path(), 1usize..100).prop_map(|(at, size)| Op::Append(at, size)),
        1 => (path(), 0u64..5_000).prop_map(|(at, size)| Op::Truncate(at, size)),
        4 => (path(), path()).prop_map(|(from, to)| Op::Rename(from, to)),
        2 => path().prop_map(Op::Unlink),
        4 => path().prop_map(Op::Mkdir),
        2 => path().prop_map(Op::Rmdir),
        1 => (path(), "[ab]").prop_map(|(at, to)| Op::Symlink(at, to)),
        1 => (path(), 0u32..8).prop_map(|(at, bits)| Op::Chmod(at, 0o700 | bits)),
    ]
}

fn run(dir: &Path, op: &Op) -> Result<(), Errno> {
    let at = |path: &String| dir.join(path);
    let done: io::Result<()> = match op {
        Op::Write(path, size) => fs::write(at(path), vec![b'w'; *size]),
        Op::Append(path, size) => OpenOptions::new()
            .append(true)
            .open(at(path))
            .and_then(|mut file| file.write_all(&vec![b'a'; *size])),
        Op::Truncate(path, size) => {
            OpenOptions::new().write(true).open(at(path)).and_then(|file| file.set_len(*size))
        }
        Op::Rename(from, to) => fs::rename(at(from), at(to)),
        Op::Unlink(path) => fs::remove_file(at(path)),
        Op::Mkdir(path) => fs::create_dir(at(path)),
        Op::Rmdir(path) => fs::remove_dir(at(path)),
        Op::Symlink(path, to) => symlink(to, at(path)),
        Op::Chmod(path, mode) => {
            fs::set_permissions(at(path), fs::Permissions::from_mode(0o100_000 | mode))
        }
    };
    done.map_err(|error| Errno::from_io_error(&error).unwrap())
}

/// Everything below a directory: type, mode and content by path.
fn tree(dir: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(at) = waiting.pop() {
        for entry in fs::read_dir(&at).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let content = if meta.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else if meta.is_dir() {
                waiting.push(path.clone());
                Vec::new()
            } else {
                let content = fs::read(&path).unwrap();
                assert_eq!(content.len() as u64, meta.len(), "{}", path.display());
                content
            };
            let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
            found.insert(name, (meta.permissions().mode(), content));
        }
    }
    found
}

// P13.1 P13.2
#[test]
fn random_work_in_a_transaction_is_as_elsewhere() {
    let fixture = Fixture::new();
    let config = Config { cases: if long() { 1_000 } else { 60 }, ..Config::default() };
    let some = || proptest::collection::vec(op(), 0..25);
    let nth = std::cell::Cell::new(0);
    let walked = TestRunner::new(config).run(&(some(), some()), |(before, inside)| {
        nth.set(nth.get() + 1);
        let name = format!("case-{}", nth.get());
        let (here, there) = (fixture.path(&name), fixture.outside(&name));
        for dir in [&here, &there] {
            fs::create_dir(dir).unwrap();
        }
        for op in &before {
            prop_assert_eq!(run(&here, op), run(&there, op), "outside: {:?}", op);
        }
        let txn = fixture.path(".workfs/txn/t");
        // What a case left that failed.
        let _ = fs::remove_dir(&txn);
        fs::create_dir(&txn).unwrap();
        let view = txn.join(&name);
        let untouched = tree(&here);
        for op in &inside {
            prop_assert_eq!(run(&view, op), run(&there, op), "inside: {:?}", op);
        }
        prop_assert_eq!(tree(&view), tree(&there));
        prop_assert_eq!(tree(&here), untouched);
        fs::rename(&txn, fixture.path(".workfs/commit/t")).unwrap();
        prop_assert_eq!(tree(&here), tree(&there));
        Ok(())
    });
    walked.unwrap_or_else(|why| panic!("{why}"));
    fixture.fsck_clean();
}
