//! Changing fields in place.

use crate::record::{Document, Edit, patch};

fn patched(text: &str, edits: &[(&str, &str)]) -> String {
    let edits: Vec<Edit<'_>> = edits.iter().map(|&(field, value)| Edit { field, value }).collect();
    let bytes = patch(text.as_bytes(), &edits).unwrap_or_else(|flaw| panic!("{text:?}: {flaw:?}"));
    let result = String::from_utf8(bytes).expect("UTF-8");
    let document = Document::parse(result.as_bytes())
        .unwrap_or_else(|flaw| panic!("{text:?} became {result:?}: {flaw:?}"));
    for edit in &edits {
        assert_eq!(document.value()[edit.field], edit.value, "{text:?} became {result:?}");
    }
    result
}

#[test]
fn several_fields_come_into_empty_braces() {
    let edits = [("status", "done"), ("agent", "bob"), ("at", "x: y")];
    for (before, after) in [
        ("{}", "{status: done, agent: bob, at: 'x: y'}"),
        ("---\n{ } # c\n", "---\n{status: done, agent: bob, at: 'x: y' } # c\n"),
        ("{a: 1}", "{status: done, agent: bob, at: 'x: y', a: 1}"),
        ("{a: 1, agent: x}", "{status: done, at: 'x: y', a: 1, agent: bob}"),
    ] {
        assert_eq!(patched(before, &edits), after, "{before}");
    }
    assert_eq!(patched("{}", &edits[..1]), "{status: done}");
}

#[test]
fn a_value_is_replaced_in_its_style() {
    let cases = [
        ("status: new\n", "status: done\n"),
        ("status: 'new'\n", "status: 'done'\n"),
        ("status: \"new\"  # why\n", "status: \"done\"  # why\n"),
        ("status:   new", "status:   done"),
        ("status:\n", "status: done\n"),
        ("status:", "status: done"),
        ("status: # none\nid: x\n", "status: done # none\nid: x\n"),
        ("status: null\n", "status: done\n"),
        ("status: 7\r\nid: x\r\n", "status: done\r\nid: x\r\n"),
        ("\u{feff}status: new\r\n", "\u{feff}status: done\r\n"),
        ("\"status\": new\n", "\"status\": done\n"),
        ("'status' : new\n", "'status' : done\n"),
        ("? status\n: new\n", "? status\n: done\n"),
        ("status:\n  new\n", "status:\n  done\n"),
        ("status:\n  # why\n  new\nid: x\n", "status:\n  # why\n  done\nid: x\n"),
        ("status: new\n  and newer\nid: x\n", "status: done\nid: x\n"),
        ("status: 'new\n\n  er'\nid: x\n", "status: 'done'\nid: x\n"),
        ("status: \"n\\\new\"\nid: x\n", "status: \"done\"\nid: x\n"),
        ("status: |\n  new\nid: x\n", "status: done\nid: x\n"),
        ("status: >- # why\n  new\n  er\n\n# c\nid: x\n", "status: done # why\n\n# c\nid: x\n"),
        ("id: x\nstatus: |2+\n  new\n\n", "id: x\nstatus: done\n\n"),
        ("status: |\n  new", "status: done"),
        ("status: |\nid: x\n", "status: done\nid: x\n"),
        ("status: &s new\n", "status: done\n"),
        ("status: !!str  new\n", "status: done\n"),
        ("status: !!str &s 'new' # c\n", "status: 'done' # c\n"),
        ("status: &s !!str\nid: x\n", "status: done \nid: x\n"),
        ("status: &s\nid: x\n", "status: done\nid: x\n"),
        ("a: &s new\nstatus: *s\n", "a: &s new\nstatus: done\n"),
        ("a: [\nstatus: x\n]\nstatus: new\n", "a: [\nstatus: x\n]\nstatus: done\n"),
        ("a: \"b\\\nstatus: x\"\nstatus: new\n", "a: \"b\\\nstatus: x\"\nstatus: done\n"),
        ("a: |\n  status: x\nstatus: new\n", "a: |\n  status: x\nstatus: done\n"),
        ("---\nstatus: new\n...\n", "---\nstatus: done\n...\n"),
        ("# c\n--- # d\n  id: x\n  status: new\n", "# c\n--- # d\n  id: x\n  status: done\n"),
        ("{status: new}", "{status: done}"),
        ("{\"status\": \"new\", \"a\": 1}\n", "{\"status\": \"done\", \"a\": 1}\n"),
        ("{\"status\":null}", "{\"status\":\"done\"}"),
        ("{\"status\":\"new\"}", "{\"status\":\"done\"}"),
        ("{a: b, status, c: d}", "{a: b, status: done, c: d}"),
        ("{a: b, status: , c: d}", "{a: b, status: done , c: d}"),
        ("{status: new # c\n, a: b}", "{status: done # c\n, a: b}"),
        ("status: new\rid: x\r", "status: done\rid: x\r"),
    ];
    for (text, wanted) in cases {
        assert_eq!(patched(text, &[("status", "done")]), wanted, "{text:?}");
    }
}

#[test]
fn a_missing_field_is_added_where_it_is_sound() {
    let cases = [
        ("id: x\n", "id: x\nagent: bob\n"),
        ("id: x", "id: x\nagent: bob"),
        ("id: x # c\ntitle: y\n", "id: x # c\nagent: bob\ntitle: y\n"),
        ("id: x\r\nstatus: new\r\ntitle: y", "id: x\r\nstatus: new\r\nagent: bob\r\ntitle: y"),
        ("status:\ntitle: y\n", "status:\nagent: bob\ntitle: y\n"),
        ("status:\n  new\ntitle: y\n", "status:\n  new\nagent: bob\ntitle: y\n"),
        ("status: new\n  er\ntitle: y\n", "status: new\n  er\nagent: bob\ntitle: y\n"),
        ("title: y\n# end\n", "title: y\nagent: bob\n# end\n"),
        ("a: |\n  text\n", "agent: bob\na: |\n  text\n"),
        ("a: |\n  text", "agent: bob\na: |\n  text"),
        ("# c\na:\n- b\n", "# c\nagent: bob\na:\n- b\n"),
        ("\u{feff}a:\n- b\n", "\u{feff}agent: bob\na:\n- b\n"),
        ("---\n  a:\n  - b\n  c: |\n    d\n", "---\n  agent: bob\n  a:\n  - b\n  c: |\n    d\n"),
        ("id: x\n...\n", "id: x\nagent: bob\n...\n"),
        ("  id: x\n  b: c\n", "  id: x\n  agent: bob\n  b: c\n"),
        ("{}", "{agent: bob}"),
        ("{a: b}", "{agent: bob, a: b}"),
        ("{ # c\n  \"a\": 1}\n", "{\"agent\": \"bob\",  # c\n  \"a\": 1}\n"),
        ("? id\n: x\n", "? id\n: x\nagent: bob\n"),
        ("\"id\": x\n", "\"id\": x\nagent: bob\n"),
    ];
    for (text, wanted) in cases {
        assert_eq!(patched(text, &[("agent", "bob")]), wanted, "{text:?}");
    }
}

#[test]
fn edits_are_made_together_and_keep_their_order() {
    let edits = [("status", "assigned"), ("agent", "bob"), ("assigned_at", "2026-11-21T10:00:00Z")];
    let text = "id: x\nstatus:";
    let wanted = "id: x\nstatus: assigned\nagent: bob\nassigned_at: '2026-11-21T10:00:00Z'";
    assert_eq!(patched(text, &edits), wanted);
    let text = "assigned_at: 2025-01-01T00:00:00.5Z\nagent: 'a'\nid: x\nstatus: new\n";
    let wanted = "assigned_at: 2026-11-21T10:00:00Z\nagent: 'bob'\nid: x\nstatus: assigned\n";
    assert_eq!(patched(text, &edits), wanted);
    let last = patched("a: b\n", &[("a", "d")]);
    let both = [Edit { field: "a", value: "c" }, Edit { field: "a", value: "d" }];
    assert_eq!(patch(b"a: b\n", &both).expect("patched"), last.as_bytes());
    assert_eq!(patch(b"a: b\n", &[]).expect("patched"), b"a: b\n");
}

#[test]
fn a_value_that_would_read_as_something_else_gets_quotes() {
    for value in [
        "7",
        "yes",
        "No",
        "null",
        "~",
        "",
        " x",
        "x ",
        "a: b",
        "a #b",
        "#a",
        "- a",
        "*a",
        "&a",
        "!a",
        "'a'",
        "\"a\"",
        "[a]",
        "{a}",
        "a,b",
        "1e3",
        "0x1f",
        "1_000",
        "12:30",
        "2026-11-21",
        "2026-11-21T10:00:00Z",
        "a:",
        ".inf",
        "---",
        "...",
        "a\nb",
        "a\tb",
        "é",
        "\u{2028}",
        "@a",
        "`a",
        "%a",
        "it's",
        "\\",
        "true",
        "?",
        "-",
        "=",
        "<<",
        "a\\",
        "\u{feff}",
    ] {
        for text in [
            "s: new\n",
            "s: 'n'\n",
            "s: \"n\"\n",
            "{s: new}",
            "{\"s\": 1}",
            "s: 2026-01-01\n",
            "id: 1",
        ] {
            patched(text, &[("s", value)]);
        }
        patched("id: x\n", &[("s", value), ("t", value)]);
    }
    assert!(patch(b"s: a\n", &[Edit { field: "s", value: "\u{1b}" }]).is_err());
    for field in ["a b", "7", "a: b", "#", "'", "é", "yes"] {
        patched("id: x\n", &[(field, "v")]);
        patched("{id: x}\n", &[(field, "v")]);
    }
}

#[test]
fn what_cannot_be_changed_alone_is_refused() {
    for text in [
        "status: [a]\n",
        "status:\n  a: b\n",
        "status:\n- a\n",
        "status: &s new\nother: *s\n",
        "? status\nid: x\n",
        "- a\n",
        "",
        "a: [\n",
    ] {
        let result = patch(text.as_bytes(), &[Edit { field: "status", value: "done" }]);
        assert!(result.is_err(), "{text:?}: {result:?}");
    }
}

#[test]
fn a_patch_makes_no_record_that_has_too_many_values() {
    // 98 times a list of a hundred, and its list, by an alias of four bytes.
    let list = format!("x: &a [{}1]\n", "1, ".repeat(99));
    let of = |more: usize| {
        let (aliases, more) = ("- *a\n".repeat(97), "- 1\n".repeat(more));
        format!("status: new\n{list}y:\n{aliases}z:\n{more}")
    };
    let fits = |text: &str| Document::parse(text.as_bytes()).is_ok();
    let most = (1..200).rev().map(of).find(|text| fits(text)).unwrap();
    assert!(!fits(&format!("{most}- 1\n")) && most.len() < 2048);
    assert!(patched(&most, &[("status", "done")]).contains("status: done\n"));
    let edit = Edit { field: "agent", value: "bob" };
    let flaw = patch(most.as_bytes(), &[edit]).unwrap_err();
    assert_eq!(flaw.rule, crate::refusal::Rule::TooLarge);
    // What is no alias does not keep it from the quick way.
    for text in ["status: new\na: 2 * 3 & 4\n", "status: new\na: R&D\n", "status: new\na: '*'\n"] {
        assert!(crate::record::patch_is_by_lines(text.as_bytes(), &[edit]), "{text}");
    }
}
