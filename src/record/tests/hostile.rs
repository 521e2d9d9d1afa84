//! Texts that are meant to exhaust: each ends, and without the stack of a big thread.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::limits::RECORD_BYTES_MAX;
use crate::record::{Document, Edit, patch, prefix, well_formed, well_formed_so_far};
use crate::refusal::Rule;

const M: usize = RECORD_BYTES_MAX;

/// Name, text, and whether it is taken.
fn cases() -> Vec<(&'static str, String, bool)> {
    let fill = |head: &str, unit: &str, tail: &str| {
        let count = (M - head.len() - tail.len()) / unit.len();
        format!("{head}{}{tail}", unit.repeat(count))
    };
    let lines = |line: &dyn Fn(usize) -> String| {
        let mut text = String::new();
        for n in 0.. {
            let next = line(n);
            if text.len() + next.len() > M {
                break;
            }
            text.push_str(&next);
        }
        text
    };
    let mut bomb = "a0: &a0 [x]\n".to_owned();
    let mut wide = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..64 {
        bomb.push_str(&format!("a{n}: &a{n} [*a{p}, *a{p}]\n", p = n - 1));
        let inner = format!("*a{}, ", n - 1).repeat(9);
        wide.push_str(&format!("a{n}: &a{n} [{inner}]\n"));
    }
    let nested_anchors = format!("k: {}", "&a [".repeat(60)) + &"x".repeat(900_000);
    let nested_anchors = nested_anchors + &"]".repeat(60);
    vec![
        ("400 KB of `{a: `", "{a: ".repeat(100_000), false),
        ("40 KB of `- `", "- ".repeat(20_000), false),
        ("k: 40 KB of `- `", format!("k:\n {}", "- ".repeat(20_000)), false),
        ("1 MiB of `[`", "[".repeat(M), false),
        ("1 MiB of `? `", "? ".repeat(M / 2), false),
        ("1 MiB of `? a`", fill("", "? a\n", ""), false),
        ("distinct `? k`", lines(&|n| format!("? k{n}\n")), false),
        ("deep block", lines(&|n| format!("{}a:\n", " ".repeat(n))), false),
        ("block then flow", format!("{}{}", deep_block(60), "[".repeat(60)), false),
        ("one plain scalar", fill("a: ", "x", ""), true),
        ("plain words", fill("a: ", "x ", "y"), true),
        ("plain lines", fill("a: x\n", "  x\n", ""), true),
        ("colons", fill("a: ", "a:", "b"), true),
        ("double quoted", fill("a: \"", "x", "\""), true),
        ("escapes", fill("a: \"", "\\u0041", "\""), true),
        ("NUL escapes", fill("a: \"", "\\u0000", "\""), false),
        ("escaped lines", fill("a: \"", "\\\n", "\""), true),
        ("quoted lines", fill("a: \"", "\n ", "\""), true),
        ("single quotes", fill("a: '", "''", "'"), true),
        ("literal lines", fill("a: |\n", "  x\n", ""), true),
        ("folded lines", fill("a: >\n", "  x\n", ""), true),
        ("literal CRLF", fill("a: |\r\n", " x\r\n", ""), true),
        ("blank literal", fill("a: |\n", "\n", ""), true),
        ("blanks", fill("a: b", " ", ""), true),
        ("line ends", fill("a: b", "\n", ""), true),
        ("comment lines", fill("", "#\n", ""), false),
        ("one comment", fill("a: b #", "#", ""), true),
        ("wide characters", fill("a: ", "é", ""), true),
        ("duplicate keys", fill("", "a: b\n", ""), false),
        ("distinct keys", lines(&|n| format!("k{n}: {n}\n")), false),
        ("list", fill("a:\n", "- b\n", ""), false),
        ("empty items", fill("a:\n", "-\n", ""), false),
        ("mappings", fill("a:\n", "- b: c\n  d: e\n", ""), false),
        ("flow list", fill("a: [", "x,", "]"), false),
        ("flow lines", fill("a: [", "x\n", "]"), true),
        ("empty flow", fill("a: [", "[],", "]"), false),
        ("empty quotes", fill("a: [", "\"\",", "]"), false),
        ("pairs", fill("a: [", "x: y,", "]"), false),
        ("tags", fill("a: [", "!!str x,", "]"), false),
        ("long tag", fill("a: !", "x", " b"), false),
        ("long anchor", fill("a: &", "x", " b"), true),
        ("long key", fill("", "x", ": a"), false),
        ("long quoted key", fill("\"", "x", "\": a"), false),
        ("long `? ` key", fill("? ", "x", "\n: a"), true),
        ("anchors", lines(&|n| format!("a{n}: &x{n} b\n")), false),
        ("anchored items", fill("a: [", "&a,", "]"), false),
        ("aliases", fill("a: &x b\nb: [", "*x,", "]"), false),
        ("big alias twice", format!("a: &x {}\nb: *x\nc: *x\n", "x".repeat(500_000)), false),
        ("nested anchors", nested_anchors, false),
        ("billion laughs", bomb, false),
        ("nine times nine", wide, false),
        ("directives", fill("", "%A b\n", ""), false),
        ("documents", fill("", "---\n", ""), false),
        ("document ends", fill("a: b\n", "...\n", ""), true),
        ("dashes", fill("", "-", ""), false),
        ("bytes over the limit", "x".repeat(M + 1), false),
    ]
}

fn deep_block(levels: usize) -> String {
    (0..levels).map(|n| format!("{}a:\n", " ".repeat(n))).collect::<String>() + &" ".repeat(levels)
}

#[test]
fn every_hostile_text_ends_soon_on_a_small_stack() {
    let run = || {
        // Ten milliseconds in release on an idle machine; tests are neither.
        let limit = if cfg!(debug_assertions) { 2000 } else { 100 };
        // Of a processor, which may be busy with others.
        let spent = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
        for (name, text, is_taken) in cases() {
            let start = spent();
            let parsed = Document::parse(text.as_bytes());
            let parse = spent() - start;
            let start = spent();
            let begun = prefix(text.as_bytes());
            let prefix = spent() - start;
            let start = spent();
            let edits = [Edit { field: "status", value: "done" }];
            let patched = patch(text.as_bytes(), &edits);
            let patch = spent() - start;
            let start = spent();
            let formed = well_formed(text.as_bytes());
            let formed_begun = well_formed_so_far(text.as_bytes());
            let form = spent() - start;
            assert!(!is_taken || formed.is_ok(), "{name}: {formed:?}");
            assert!(formed.is_err() || formed_begun.is_ok(), "{name}: {formed_begun:?}");
            println!(
                "{name:20} parse {parse:>9.1?} prefix {prefix:>9.1?} patch {patch:>9.1?} \
                 form {form:>9.1?} {}",
                formed.is_ok()
            );
            assert_eq!(parsed.is_ok(), is_taken, "{name}: {:?}", parsed.err());
            assert!(!is_taken || begun.is_ok(), "{name}: {begun:?}");
            if let Ok(patched) = patched.filter_valid(is_taken) {
                assert!(Document::parse(&patched).is_ok(), "{name}");
            }
            assert!(parse.max(prefix) < Duration::from_millis(limit), "{name}");
            // Ten times as many values are taken here.
            assert!(form < 5 * Duration::from_millis(limit), "{name}");
        }
    };
    let thread = std::thread::Builder::new().stack_size(512 * 1024).spawn(run);
    thread.expect("a thread").join().expect("no panic");
}

/// What `patch` makes of a text that was never a record does not matter.
trait FilterValid: Sized {
    fn filter_valid(self, is_taken: bool) -> Result<Vec<u8>, ()>;
}

impl<E> FilterValid for Result<Vec<u8>, E> {
    fn filter_valid(self, is_taken: bool) -> Result<Vec<u8>, ()> {
        self.map_err(|_| ()).and_then(|bytes| if is_taken { Ok(bytes) } else { Err(()) })
    }
}

#[test]
fn size_and_depth_are_refused_at_the_limit_not_below() {
    let full = format!("a: {}", "x".repeat(M - 3));
    assert!(Document::parse(full.as_bytes()).is_ok());
    let over = Document::parse(format!("{full}x").as_bytes()).expect_err("over");
    assert_eq!(over.rule, Rule::TooLarge);
    assert_eq!(prefix(format!("{full}x").as_bytes()).expect_err("over").rule, Rule::TooLarge);
    assert_eq!(patch(full.as_bytes(), &[Edit { field: "b", value: "c" }]).map_err(|f| f.rule), {
        Err(Rule::TooLarge)
    });
    let flow = |n: usize| format!("a: {}{}", "[".repeat(n), "]".repeat(n));
    assert!(Document::parse(flow(63).as_bytes()).is_ok());
    let deep = Document::parse(flow(64).as_bytes()).expect_err("65 levels");
    assert!(deep.reason.contains("deeper than 64"), "{deep:?}");
    let block = |n: usize| deep_block(n).trim_end().to_owned() + " x";
    assert!(Document::parse(block(64).as_bytes()).is_ok());
    let deep = Document::parse(block(65).as_bytes()).expect_err("65 levels");
    assert!(deep.reason.contains("deeper than 64"), "{deep:?}");
    let by_alias = format!(
        "a: &x {}{}\nb: {}*x{}",
        "[".repeat(40),
        "]".repeat(40),
        "[".repeat(30),
        "]".repeat(30)
    );
    let deep = Document::parse(by_alias.as_bytes()).expect_err("71 levels");
    assert!(deep.reason.contains("deeper than 64"), "{deep:?}");
}
