//! Real task files, where they are at hand.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;

use crate::record::{Document, Edit, patch, patch_at, prefix};

/// Name and bytes of each file, or nothing, said aloud.
fn files(test: &str) -> Vec<(String, Vec<u8>)> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let shared = std::env::var_os("WORKFS_SHARED").map_or_else(beside, PathBuf::from);
    let mut found = Vec::new();
    let mut open = vec![shared.join("corpus/tasks")];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                found.push((path.display().to_string(), bytes));
            }
        }
    }
    if found.is_empty() {
        println!("left out: {test}: no corpus; set WORKFS_SHARED");
    }
    found.sort();
    found
}

fn with_crlf(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\n', "\r\n");
    [&b"\xef\xbb\xbf"[..], text.as_bytes()].concat()
}

#[test]
fn real_files_are_taken_and_mean_what_another_reader_says() {
    for (name, bytes) in files("parse") {
        let document = Document::parse(&bytes).unwrap_or_else(|flaw| panic!("{name}: {flaw:?}"));
        let text = std::str::from_utf8(&bytes).expect("UTF-8");
        let other: Value = serde_saphyr::from_str(text).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(document.value(), &other, "{name}");
        let crlf = Document::parse(&with_crlf(&bytes)).expect("CRLF");
        assert_eq!(document, crlf, "{name}");
    }
}

/// Whether a value can become another one by what follows.
fn is_begin_of(now: &Value, then: &Value) -> bool {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            now.iter().all(|(key, now)| then.get(key).is_some_and(|then| is_begin_of(now, then)))
        }
        (Value::Array(now), Value::Array(then)) => {
            now.len() <= then.len()
                && now.iter().zip(then).all(|(now, then)| is_begin_of(now, then))
        }
        (Value::String(now), Value::String(then)) => then.starts_with(now.as_str()),
        _ => now == then,
    }
}

#[test]
fn no_beginning_of_a_real_file_is_refused() {
    for (at, (name, bytes)) in files("prefix").into_iter().enumerate() {
        for bytes in [bytes.clone(), with_crlf(&bytes)] {
            let whole = Document::parse(&bytes).expect("valid");
            let every = match bytes.len() {
                0..4096 if at % 32 == 0 => 1,
                0..16_384 => 509,
                _ => 4093,
            };
            for cut in (0..bytes.len()).step_by(every).chain([bytes.len()]) {
                let begun = prefix(&bytes[..cut]).unwrap_or_else(|f| panic!("{name} {cut}: {f:?}"));
                let said = Value::Object(begun.said);
                assert!(is_begin_of(&said, whole.value()), "{name} {cut}: {said}");
            }
        }
    }
}

#[test]
fn real_files_are_patched_in_the_edited_fields_only() {
    let edits = [
        Edit { field: "status", value: "assigned" },
        Edit { field: "agent", value: "bob" },
        Edit { field: "assigned_at", value: "2026-11-21T10:00:00Z" },
        Edit { field: "brand_new", value: "yes" },
    ];
    for (name, bytes) in files("patch") {
        for bytes in [bytes.clone(), with_crlf(&bytes)] {
            let patched = patch(&bytes, &edits).unwrap_or_else(|flaw| panic!("{name}: {flaw:?}"));
            let mut wanted = Document::parse(&bytes).expect("valid").into_fields();
            for edit in edits {
                wanted.insert(edit.field.into(), edit.value.into());
            }
            let document = Document::parse(&patched).unwrap_or_else(|f| panic!("{name}: {f:?}"));
            assert_eq!(document.into_fields(), wanted, "{name}");
            let kept = |bytes: &[u8]| {
                let text = String::from_utf8_lossy(bytes).replace('\u{feff}', "");
                let is_kept = |line: &&str| !edits.iter().any(|e| line.starts_with(e.field));
                text.split('\n').filter(is_kept).collect::<Vec<_>>().join("\n")
            };
            let (before, after) = (kept(&bytes), kept(&patched));
            assert!(patched.starts_with(b"\xef\xbb\xbf") == bytes.starts_with(b"\xef\xbb\xbf"));
            assert_eq!(before, after, "{name}");
        }
    }
}

#[test]
fn a_field_of_a_field_is_set_in_real_files() {
    for (name, bytes) in files("patch_at") {
        let document = Document::parse(&bytes).expect("valid");
        for path in [["result", "summary"], ["error", "message"]] {
            let there = document.value().get(path[0]);
            // What is a text already stays one.
            if there.is_some_and(|there| !there.is_null() && !there.is_object()) {
                continue;
            }
            for bytes in [bytes.clone(), with_crlf(&bytes)] {
                let set = patch_at(&bytes, &path, "it \"works\": # so\n");
                set.unwrap_or_else(|flaw| panic!("{name}: {flaw:?}"));
            }
        }
    }
}

/// No judgement, only figures: `cargo test --release record::tests::corpus -- --nocapture`.
#[test]
fn figures() {
    let files = files("figures");
    let Some((_, bytes)) = files.iter().min_by_key(|(_, bytes)| bytes.len().abs_diff(1500)) else {
        return;
    };
    let edits = [
        Edit { field: "status", value: "assigned" },
        Edit { field: "agent", value: "bob" },
        Edit { field: "assigned_at", value: "2026-11-21T10:00:00Z" },
    ];
    let rounds = 500;
    let time = |what: &str, work: &dyn Fn()| {
        let mut best = std::time::Duration::MAX;
        for _ in 0..10 {
            let start = Instant::now();
            (0..rounds).for_each(|_| work());
            best = best.min(start.elapsed());
        }
        println!("{what} of {} bytes: {:?}", bytes.len(), best / rounds);
    };
    time("parse", &|| drop(std::hint::black_box(Document::parse(bytes))));
    time("prefix", &|| drop(std::hint::black_box(prefix(bytes))));
    time("patch", &|| drop(std::hint::black_box(patch(bytes, &edits))));
    // A comment behind a key's brackets is what the line reader leaves to the events.
    let odd = [&bytes[..], b"odd: [ # c\n]\n"].concat();
    time("patch by events", &|| drop(std::hint::black_box(patch(&odd, &edits))));
    let by_lines = |bytes: &[u8]| crate::record::patch_is_by_lines(bytes, &edits);
    let count = files.iter().filter(|(_, bytes)| by_lines(bytes)).count();
    println!("patched by lines: {count} of {}", files.len());
    if std::env::var_os("WORKFS_LIST").is_some() {
        files.iter().filter(|(_, bytes)| !by_lines(bytes)).for_each(|(name, _)| println!("{name}"));
    }
}
