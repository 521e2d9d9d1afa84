//! The beginnings of texts.

use serde_json::json;

use crate::record::{Document, prefix};
use crate::refusal::Rule;

#[test]
fn what_no_byte_can_mend_is_refused_at_once() {
    let cases: &[&[u8]] = &[
        b"status: a: b\n",
        b"title: x: y\nmore: z\n",
        b"id: x\nid: y\n",
        b"desc: |\n  text\n  text\nid: x\nid: y\n",
        b"a: b\n---\nc: d\n",
        b"a:\n\tb: c\n",
        b"\tb: c\n",
        b"\xef\xbb\xbfa:\n \t- b\n",
        b"a: b\n\x1b[0m",
        b"a: \x00",
        b"a: \xff",
        b"- a\n- b\n",
        b"hello\n",
        b"\"hello\" # c\n",
        b"1: a\n",
        b"<<: a\n",
        b"a: \"\\u0000\"\nb: c\n",
        b"a: [b}\n",
        b"a: 'b' c\n",
        b"a: @b\n",
        b"a: 99999999999999999999\nb: c\n",
    ];
    for case in cases {
        let text = String::from_utf8_lossy(case);
        assert!(prefix(case).is_err(), "{text:?}: {:?}", prefix(case));
        let more = [case, &b"more: 1\n"[..]].concat();
        assert!(Document::parse(&more).is_err(), "{text:?}");
    }
    let deep = "[".repeat(100);
    assert_eq!(prefix(deep.as_bytes()).map_err(|flaw| flaw.rule), Err(Rule::Syntax));
}

#[test]
fn what_may_still_become_valid_is_taken() {
    let cases: &[&[u8]] = &[
        b"",
        b"\xef",
        b"\xef\xbb\xbf",
        b"a",
        b"status",
        b"status:",
        b"status: 'new",
        b"a: \xc3",
        b"a: [b, {c: ",
        b"a: b\n--",
        b"a: b\n---",
        b"a: |\n  x\n\n",
        b"id: x\nid",
        b"a: &x",
        b"a: \"\\u00",
        b"a: 99999999999999999999\n",
        b"? a\n",
    ];
    for case in cases {
        assert!(prefix(case).is_ok(), "{:?}: {:?}", String::from_utf8_lossy(case), prefix(case));
    }
}

#[test]
fn what_is_said_so_far_does_not_change_but_grows() {
    let read = |text: &str| {
        let found = prefix(text.as_bytes()).expect(text);
        (serde_json::Value::Object(found.said), found.last)
    };
    let said = |text: &str| read(text).0;
    assert_eq!(said("status: nonsense"), json!({}));
    assert_eq!(said("status: nonsense\n"), json!({"status": "nonsense"}));
    assert_eq!(said("status: no\n"), json!({"status": "no"}));
    assert_eq!(said("status: nonsense\r\n"), json!({"status": "nonsense"}));
    assert_eq!(said("status: nonsense\r"), json!({}));
    assert_eq!(said("status: nonsense # c\n"), json!({"status": "nonsense"}));
    assert_eq!(said("status: nonsense # c"), json!({"status": "nonsense"}));
    assert_eq!(said("status: \"non sense\"\n"), json!({"status": "non sense"}));
    assert_eq!(said("\u{feff}status: é\n"), json!({"status": "é"}));
    assert_eq!(said("status:\n"), json!({}));
    assert_eq!(said("status:\n  x"), json!({}));
    assert_eq!(said("status: |\n  x\n"), json!({}));
    assert_eq!(said("status: 'x\n"), json!({}));
    // Lists and mappings, as far as they are written.
    assert_eq!(said("status: [x]\n"), json!({"status": ["x"]}));
    assert_eq!(said("status: [x, {y: z}, a"), json!({"status": ["x", {"y": "z"}]}));
    assert_eq!(said("status:\n- x\n- y: 1\n"), json!({"status": ["x", {"y": 1}]}));
    assert_eq!(
        said("a: 1\nb:\nstatus: x\nr:\n  s: t\n  u:\n"),
        json!({"a": 1, "b": null, "status": "x", "r": {"s": "t"}})
    );
    // The parser holds back what is in brackets at the top: they could still be a key.
    assert_eq!(said("{status: x,\n a"), json!({}));
    assert_eq!(said("{status: x}"), json!({}));
    assert_eq!(said("{status: x,\n a: [1]}\n"), json!({"status": "x", "a": [1]}));
    // What may still get longer.
    let last = |text: &str| read(text).1;
    assert_eq!(last("a: b\n").as_deref(), Some("/a"));
    assert_eq!(last("a: b\nc/d:\n- e\n- f: g\n").as_deref(), Some("/c~1d/1/f"));
    for ended in ["a: 'b'\n", "a: b\nc:\n", "a: b\nc", "a: [b]\n", "{a: b}\n", ""] {
        assert_eq!(last(ended), None, "{ended:?}");
    }
}

#[test]
fn nothing_follows_what_is_in_brackets_at_the_top_once_its_line_is_ended() {
    for text in ["{a: 1}\n", "{a: 1,\n b: {c: 2}}\n", "{a: 1} # c\n"] {
        let whole = Document::parse(text.as_bytes()).expect(text);
        let before = whole.value();
        for more in
            [": x\n", ", b: 2\n", "b: 2\n", "- x\n", " : x\n", "# c\n", "...\n", "\n", "}\n"]
        {
            let text = format!("{text}{more}");
            if let Ok(longer) = Document::parse(text.as_bytes()) {
                assert_eq!(longer.value(), before, "{text:?}");
            }
        }
    }
}

#[test]
fn long_beginnings_are_judged_by_their_bytes_only() {
    let text = format!("a: b\na: c\n#{}", "x".repeat(crate::record::PREFIX_BYTES_MAX));
    assert!(prefix(text.as_bytes()).is_ok());
    assert!(prefix(format!("{text}\u{7f}").as_bytes()).is_err());
}
