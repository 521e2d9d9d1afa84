//! What is taken and what is refused.

use serde_json::json;

use super::{flaw, parsed};
use crate::record::Document;
use crate::refusal::{Refusal, Rule, TextPlace};

#[test]
fn scalars_mean_what_yaml_1_2_says() {
    let text = "a: 7\nb: '7'\nc: yes\nd: no\ne: true\nf: ~\ng:\nh: 007\ni: 0o17\nj: 0x1F\nk: -0x1\n\
                l: 1_000\nm: 2026-11-21T10:00:00Z\nn: 2026-11-21\no: 1.5\np: 1e3\nq: .5\nr: +7\n\
                s: 12:30:45\nt: \"true\"\nu: null\nv: 1.\nw: .\nx: -\u{20}\ny: !!str 7\nz: ! 7\n";
    let text = text.replace("x: - \n", "x: \"-\"\n");
    let wanted = json!({
        "a": 7, "b": "7", "c": "yes", "d": "no", "e": true, "f": null, "g": null, "h": 7,
        "i": 15, "j": 31, "k": "-0x1", "l": "1_000", "m": "2026-11-21T10:00:00Z",
        "n": "2026-11-21", "o": 1.5, "p": 1000.0, "q": 0.5, "r": 7, "s": "12:30:45",
        "t": "true", "u": null, "v": 1.0, "w": ".", "x": "-", "y": "7", "z": "7",
    });
    assert_eq!(parsed(&text), wanted);
}

#[test]
fn integers_hold_64_bits_and_no_more() {
    assert_eq!(parsed("a: 9223372036854775807"), json!({"a": i64::MAX}));
    assert_eq!(parsed("a: -9223372036854775808"), json!({"a": i64::MIN}));
    for text in ["a: 9223372036854775808", "a: 0xFFFFFFFFFFFFFFFF", "a: 123456789012345678901234"] {
        assert!(flaw(text).remedy.contains("quotes"), "{text}");
    }
}

#[test]
fn each_refusal_has_rule_place_and_remedy() {
    let cases = [
        ("a: b\na: c\n", 2, 1, "`a` is there twice"),
        ("r:\n  s: 1\n  t: 2\n  s: 3\n", 4, 3, "`s` is there twice"),
        ("a: {b: 1, b: 2}\n", 1, 11, "`b` is there twice"),
        ("a: b\n---\nc: d\n", 2, 1, "second document"),
        ("a: b\n...\n---\n", 3, 1, "second document"),
        ("- a\n", 1, 1, "not a mapping"),
        ("hello\n", 1, 1, "not a mapping"),
        ("--- null\n", 1, 5, "not a mapping"),
        ("1: a\n", 1, 1, "a key is not a text"),
        ("a:\n  true: a\n", 2, 3, "a key is not a text"),
        ("? [a]\n: b\n", 1, 3, "a key is not a text"),
        ("? {a: b}\n: b\n", 1, 3, "a key is not a text"),
        (": b\n", 1, 1, "a key is not a text"),
        ("b: &x k\n*x : b\n", 2, 1, "a key is not a text"),
        ("a: &x {b: c}\nd:\n  <<: *x\n", 3, 3, "`<<`"),
        ("a: .nan\n", 1, 4, "not a number"),
        ("a: -.inf\n", 1, 4, "infinite"),
        ("a: 1e999\n", 1, 4, "infinite"),
        ("a: \"x\\u0000y\"\n", 1, 4, "control character `\\u{0}`"),
        ("a: \"\\e[31m\"\n", 1, 4, "control character"),
        ("a: b\nc: x\u{1b}y\n", 2, 5, "control character"),
        ("a: x\u{0}y\n", 1, 5, "control character"),
        ("a: é\u{80}y\n", 1, 5, "control character"),
        ("a:\n\tb: c\n", 2, 1, "tab"),
        ("a:\n  - b\n\t- c\n", 3, 1, "tab"),
        ("a: b\nc: d\n\te: 1\n", 3, 1, "tab"),
        ("a:\n  b: 1\n \tc: 2\n", 3, 2, "tab"),
        ("a: |\n\tb\n", 2, 1, "tab"),
        ("\tx: 1\n", 1, 1, "tab"),
        ("\u{feff}\tx: 1\n", 1, 1, "tab"),
        (" \ta: 1\n", 1, 2, "tab"),
        ("# c\r\n\r\n \t\ta: 1\n", 3, 2, "tab"),
        ("---\n\ta: 1\n", 2, 1, "tab"),
        ("\t\"a\": 1\n", 1, 1, "tab"),
        ("\t? a\n\t: b\n", 1, 1, "tab"),
        ("\t&x a: 1\n", 1, 1, "tab"),
        ("\t!!str a: 1\n", 1, 1, "tab"),
        ("\t{a: 1}\n", 1, 1, "tab"),
        ("\t- a\n", 1, 1, "tab"),
        ("a:\n \tb: 1\n", 2, 2, "tab"),
        ("a:\n \t- b\n", 2, 2, "tab"),
        ("a:\n  -\n   \tb: 1\n", 3, 4, "tab"),
        ("a:\n  b: c\n  d:\n    \te: 1\n", 4, 5, "tab"),
        ("a: !!python/object:os.system x\n", 1, 4, "tag"),
        ("a: !!binary aGk=\n", 1, 4, "tag"),
        ("a: !!int x\n", 1, 4, "tag"),
        ("a: !!seq {}\n", 1, 4, "tag"),
        ("%YAML 1.1\n---\na: b\n", 1, 1, "directive"),
        ("a: b: c\n", 1, 5, "inside a value"),
        ("a: @b\n", 1, 4, "cannot start with `@`"),
        ("a: *b\n", 1, 4, "alias"),
        ("a: &x [*x]\n", 1, 8, "alias stands inside"),
        ("a: 'b' c\n", 1, 8, "closing quote"),
        ("a: \"b\nc: d\n", 2, 1, "quote"),
        ("a: [b\n", 1, 4, "`[`"),
        ("a: b\nhello\nc: d\n", 2, 1, "neither `key: value`"),
    ];
    for (text, line, column, says) in cases {
        let flaw = flaw(text);
        assert_eq!(flaw.rule, Rule::Syntax, "{text:?}: {flaw:?}");
        assert!(flaw.reason.contains(says), "{text:?}: {flaw:?}");
        assert!(!flaw.remedy.is_empty());
        let place = flaw.place.unwrap_or_else(|| panic!("{text:?}: {flaw:?}"));
        assert_eq!((place.line, place.column), (line, column), "{text:?}: {flaw:?}");
    }
}

#[test]
fn tabs_that_yaml_allows_are_taken() {
    let cases = [
        ("a: |\n  b\n  \tc\n", json!({"a": "b\n\tc\n"})),
        ("a: >\n  b\n\n  c\td\n", json!({"a": "b\nc\td\n"})),
        ("a: \"b\n  \tc\"\n", json!({"a": "b c"})),
        ("a: 'b\n  \tc: d'\n", json!({"a": "b c: d"})),
        ("a: b\n  \tc\n", json!({"a": "b c"})),
        ("a:\tb\nc:\t\td\t\n", json!({"a": "b", "c": "d"})),
        ("a:\n-\tb\n- \tc\n", json!({"a": ["b", "c"]})),
        ("\t# c\na: 1\t# d\n", json!({"a": 1})),
        ("a: 1\n\t\n \t \nb: 2\n", json!({"a": 1, "b": 2})),
        ("a: [\n \tb,\n \t{c: d}]\n", json!({"a": ["b", {"c": "d"}]})),
        ("a: {\n \tb: {\n \tc: d}}\n", json!({"a": {"b": {"c": "d"}}})),
        ("a:\n \t{b: 1}\n", json!({"a": {"b": 1}})),
        ("{\n \ta: 1}\n", json!({"a": 1})),
    ];
    for (text, wanted) in cases {
        assert_eq!(parsed(text), wanted, "{text:?}");
    }
}

#[test]
fn nothing_is_not_a_record() {
    for text in ["", "\n\n", "# only a comment\n", "\u{feff}", "   ", "\u{feff}# x"] {
        assert!(flaw(text).reason.contains("is empty"), "{text:?}");
        assert!(flaw(text).at_end);
    }
}

#[test]
fn what_ends_too_early_says_so() {
    for text in ["a: \"b", "a: 'b\n  c", "a: [b,", "a: {b: [c", "a: b\nc"] {
        assert!(flaw(text).at_end, "{text:?}: {:?}", flaw(text));
    }
    for text in ["a: b: c\nd: e\n", "a: [b}\nc: d\n", "a: 1\na: 2\nb: 3\n"] {
        assert!(!flaw(text).at_end, "{text:?}: {:?}", flaw(text));
    }
}

#[test]
fn bytes_that_are_not_utf8_are_refused_with_their_place() {
    let flaw = Document::parse(b"a: b\nc: \xc3\xa9\xff\n").expect_err("0xff");
    assert_eq!(flaw.place, Some(TextPlace { line: 2, column: 5 }));
    assert!(Document::parse(b"a: \xc3").expect_err("cut").at_end);
    assert!(Document::parse(b"\xff\xfea\0:\0").is_err(), "UTF-16");
}

#[test]
fn line_ends_and_byte_order_mark_are_taken() {
    let wanted = json!({"a": "b", "c": ["d", "e\nf\n"]});
    let text = "a: b\nc:\n- d\n- |\n  e\n  f\n";
    for text in [text.to_owned(), text.replace('\n', "\r\n"), text.replace('\n', "\r")] {
        assert_eq!(parsed(&text), wanted);
        assert_eq!(parsed(&format!("\u{feff}{text}")), wanted);
        assert_eq!(parsed(&format!("# c\n---\n{text}...\n# d\n")), wanted);
    }
    let flaw = flaw("\u{feff}a: b\r\na: c\r\n");
    assert_eq!(flaw.place, Some(TextPlace { line: 2, column: 1 }));
}

#[test]
fn a_few_aliases_are_taken() {
    let text = "a: &x {k: [1, 2]}\nb: *x\nc: [*x, &y t, *y]\n";
    let x = json!({"k": [1, 2]});
    assert_eq!(parsed(text), json!({"a": x, "b": x, "c": [x, "t", "t"]}));
    assert_eq!(parsed("\"<<\": x\n"), json!({"<<": "x"}));
}

#[test]
fn places_of_nested_fields() {
    let text = "id: x\nresult:\n  summary: 'y'\n  artefacts:\n    - one\n    - {k: two}\n\
                a/b~c: 1\nd: &q [5]\ne: *q\nempty:\n";
    let document = Document::parse(text.as_bytes()).expect("valid");
    let place = |pointer: &str| {
        document.place_of(text.as_bytes(), pointer).map(|place| (place.line, place.column))
    };
    assert_eq!(place(""), Some((1, 1)));
    assert_eq!(place("/id"), Some((1, 5)));
    assert_eq!(place("/result"), Some((3, 3)));
    assert_eq!(place("/result/summary"), Some((3, 12)));
    assert_eq!(place("/result/artefacts/0"), Some((5, 7)));
    assert_eq!(place("/result/artefacts/1/k"), Some((6, 11)));
    assert_eq!(place("/a~1b~0c"), Some((7, 8)));
    assert_eq!(place("/e/0"), Some((9, 4)));
    assert_eq!(place("/empty"), Some((10, 6)));
    assert_eq!(place("/result/none"), None);
    assert_eq!(document.pointer("/result/artefacts/1/k"), Some(&json!("two")));
    assert_eq!(document.value()["id"], "x");
}

#[test]
fn a_flaw_becomes_a_refusal_and_shows_no_value() {
    let flaw = flaw("password: marker-secret: x\n");
    assert!(!format!("{flaw:?}").contains("marker"));
    let refusal = Refusal::from(flaw.clone());
    assert_eq!((refusal.rule, refusal.place), (flaw.rule, flaw.place));
    let odd = super::flaw("\"a\\nb\u{202e}\": 1\n\"a\\nb\u{202e}\": 2\n");
    assert!(odd.reason.contains("`a\\nb\\u{202e}`"), "{odd:?}");
}
