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
fn complete_fields_are_those_that_cannot_change() {
    let complete =
        |text: &str| serde_json::Value::Object(prefix(text.as_bytes()).expect(text).complete);
    assert_eq!(complete("status: nonsense"), json!({}));
    assert_eq!(complete("status: nonsense\n"), json!({"status": "nonsense"}));
    assert_eq!(complete("status: no\n"), json!({"status": "no"}));
    assert_eq!(complete("status: nonsense\r\n"), json!({"status": "nonsense"}));
    assert_eq!(complete("status: nonsense\r"), json!({}));
    assert_eq!(complete("status: nonsense # c\n"), json!({"status": "nonsense"}));
    assert_eq!(complete("status: nonsense # c"), json!({"status": "nonsense"}));
    assert_eq!(complete("status: \"non sense\"\n"), json!({"status": "non sense"}));
    assert_eq!(complete("\u{feff}status: é\n"), json!({"status": "é"}));
    assert_eq!(complete("status:\n"), json!({}));
    assert_eq!(complete("status:\n  x"), json!({}));
    assert_eq!(complete("status: |\n  x\n"), json!({}));
    assert_eq!(complete("status: [x]\n"), json!({"status": ["x"]}));
    assert_eq!(complete("status: [x"), json!({}));
    assert_eq!(complete("status: 'x\n"), json!({}));
    assert_eq!(
        complete("a: 1\nb:\nstatus: x\nr:\n  s: t\n"),
        json!({"a": 1, "b": null, "status": "x"})
    );
    assert_eq!(complete("r:\n- status: x\n"), json!({}));
    assert_eq!(complete("r:\n- status: x\nt: {u: v, w"), json!({"r": [{"status": "x"}]}));
    assert_eq!(complete("r: &a {s: t}\nu: *a\nv:"), json!({"r": {"s": "t"}, "u": {"s": "t"}}));
    // The parser holds back what is in brackets at the top: they could still be a key.
    assert_eq!(complete("{status: x,\n a"), json!({}));
}

#[test]
fn long_beginnings_are_judged_by_their_bytes_only() {
    let text = format!("a: b\na: c\n#{}", "x".repeat(crate::record::PREFIX_BYTES_MAX));
    assert!(prefix(text.as_bytes()).is_ok());
    assert!(prefix(format!("{text}\u{7f}").as_bytes()).is_err());
}
