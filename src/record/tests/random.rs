//! Random texts: whatever was made, what is patched reads as the same but for the edited fields.

use proptest::prelude::*;

use crate::record::{Document, Edit, patch, prefix, well_formed, well_formed_so_far};

/// Pieces of lines that have fooled, or could fool, a reader that goes line by line.
const LINES: &[&str] = &[
    "status: new",
    "status: 'new'",
    "status: \"new\"",
    "status:",
    "status: new # c",
    "status: &s new",
    "status: *s",
    "status: !!str new",
    "status: |",
    "status: >-",
    "status: [",
    "status: \"new\\",
    "status: 'new",
    "status: new\\",
    "status : new",
    "\"status\": new",
    "? status",
    ": new",
    "agent: a",
    "agent: ",
    "agent: 'it''s'",
    "id: x",
    "id: 2026-01-01",
    "a: [",
    "a: {",
    "a: [x",
    "]",
    "}",
    "], b: c",
    "a: ['x', \"y\"]",
    "a: [don't]",
    "a: [x 'y, [z, w' v]",
    "b: \"x\\",
    "b: \"x",
    "x\"",
    "x'",
    "b: 'x",
    "  x",
    "  y: z",
    "  - z",
    "- z",
    "- status: x",
    "- [",
    "- \"x\\",
    "-",
    "# c",
    "  # c",
    "",
    " ",
    "\t",
    "---",
    "--- # c",
    "...",
    "  status: x",
    "c: |",
    "  [",
    "  \"\\",
    "    x",
    "p: |-",
    "c: >",
    "c: |2",
    "d: {x: [1, 2]}",
    "e: x [y",
    "e: [y] z",
    "f: \"a\":[",
    "  \"a\":[",
    "g: &g",
    "  &h i: j",
    "  k: l\\",
    "l: - m",
    "m: 'a' # '",
    "n: \"a # b\"",
    "o: a # \"b",
    "status: a:b",
    "assigned_at: 2026-01-01T00:00:00Z",
    "{status: x,",
    "a: b}",
    "{",
    "%TAG",
    "q: [a]: b",
    "q: [\"a\\",
    "q: [a, # c",
    "r: 'a\\",
    "s: [\"]\", x",
    "t: {\"a\":[",
    "u: [a, 'b",
    "é: ü",
];

fn text() -> impl Strategy<Value = String> {
    let line = prop::sample::select(LINES);
    let end = prop::sample::select(&["\n", "\n", "\n", "\r\n", "\r"][..]);
    (prop::collection::vec(line, 1..12), end, any::<bool>(), any::<bool>(), 0..8u8).prop_map(
        |(lines, end, is_ended, has_mark, indent)| {
            let indent = if indent == 0 { "  " } else { "" };
            let lines: Vec<String> = lines.iter().map(|line| format!("{indent}{line}")).collect();
            let mark = if has_mark { "\u{feff}" } else { "" };
            format!("{mark}{}{}", lines.join(end), if is_ended { end } else { "" })
        },
    )
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z_]{1,12}",
        "[0-9TZ:. -]{0,20}",
        "[ -~]{0,12}",
        any::<String>().prop_map(|s| s.chars().filter(|c| !c.is_control()).collect()),
    ]
}

/// A value in one of the ways YAML has for it, as the text behind `key:`.
fn written() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,8}".prop_map(|s| format!(" {s}")),
        "[a-z ,:\"{}]{0,12}".prop_map(|s| format!(" '{s}'")),
        "[a-z ,:#'\\[\\]]{0,12}".prop_map(|s| format!("   \"{s}\" # c")),
        Just(String::new()),
        Just(" # nothing".to_owned()),
        "[a-z]{1,8}".prop_map(|s| format!(" |\n    {s}: [\n\n    status: x")),
        "[a-z]{1,8}".prop_map(|s| format!("\n  - {s}\n  # c\n  - status: y")),
        "[a-z]{1,8}".prop_map(|s| format!("\n  status: {s}\n  b: {{c: [d]}}")),
        "[a-z]{1,8}".prop_map(|s| format!(" [{s},\nstatus, 'x']")),
        "[a-z]{1,8}".prop_map(|s| format!(" \"{s}\\\nstatus: x\"")),
        "[a-z]{1,8}".prop_map(|s| format!(" &{s} !!str {s}")),
        "[a-z]{1,8}".prop_map(|s| format!(" one\n  {s}\n\n  three")),
    ]
}

fn mapping() -> impl Strategy<Value = String> {
    let keys = ["id", "agent", "status", "title", "a key", "context", "assigned_at"];
    let entries = prop::collection::vec((any::<bool>(), written(), 0..4u8), keys.len());
    (entries, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        move |(entries, is_crlf, is_ended, has_start)| {
            let mut text = if has_start { "---\n".to_owned() } else { String::new() };
            for (key, (is_there, written, quotes)) in keys.iter().zip(entries) {
                let key = if quotes == 0 { format!("\"{key}\"") } else { (*key).to_owned() };
                if is_there {
                    text.push_str(&format!("# about {key}\n{key}:{written}\n"));
                }
            }
            let text = if is_ended { text } else { text.trim_end_matches('\n').to_owned() };
            if is_crlf { text.replace('\n', "\r\n") } else { text }
        },
    )
}

fn check(text: &str, edits: &[(String, String)]) -> Result<bool, TestCaseError> {
    let Ok(before) = Document::parse(text.as_bytes()) else { return Ok(false) };
    let edits: Vec<Edit<'_>> = edits.iter().map(|(field, value)| Edit { field, value }).collect();
    let Ok(patched) = patch(text.as_bytes(), &edits) else { return Ok(false) };
    let mut wanted = before.into_fields();
    for edit in &edits {
        wanted.insert(edit.field.to_owned(), edit.value.into());
    }
    let after = Document::parse(&patched)
        .map_err(|flaw| TestCaseError::fail(format!("{text:?}: {flaw:?}")))?;
    prop_assert_eq!(after.into_fields(), wanted, "{:?} became {:?}", text, patched);
    Ok(true)
}

fn edits() -> impl Strategy<Value = Vec<(String, String)>> {
    let field = prop::sample::select(&["status", "agent", "assigned_at", "id", "new_one"][..]);
    prop::collection::vec((field.prop_map(str::to_owned), value()), 1..4)
}

fn cases(count: u32) -> ProptestConfig {
    let more = std::env::var("WORKFS_CASES").ok().and_then(|n| n.parse().ok());
    ProptestConfig { cases: more.unwrap_or(count), failure_persistence: None, ..Default::default() }
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn patching_a_mapping_changes_the_edited_fields_only(text in mapping(), edits in edits()) {
        let edits: Vec<_> = edits.into_iter().collect();
        check(&text, &edits)?;
    }

    #[test]
    fn patching_a_soup_of_lines_changes_the_edited_fields_only(text in text(), edits in edits()) {
        check(&text, &edits)?;
    }

    #[test]
    fn no_beginning_of_a_valid_text_is_refused(text in prop_oneof![text(), mapping()]) {
        if Document::parse(text.as_bytes()).is_ok() {
            for cut in 0..=text.len() {
                let begun = prefix(&text.as_bytes()[..cut]);
                prop_assert!(begun.is_ok(), "{:?} cut at {}: {:?}", text, cut, begun);
            }
        }
        let formed = well_formed(text.as_bytes());
        prop_assert!(formed.is_ok() || Document::parse(text.as_bytes()).is_err(), "{:?}", formed);
        for cut in (0..=text.len()).filter(|_| formed.is_ok()) {
            let begun = well_formed_so_far(&text.as_bytes()[..cut]);
            prop_assert!(begun.is_ok(), "{:?} cut at {}: {:?}", text, cut, begun);
        }
    }

    #[test]
    fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..64), text in any::<String>()) {
        for bytes in [&bytes[..], text.as_bytes()] {
            let _ = (Document::parse(bytes), prefix(bytes));
            let _ = (well_formed(bytes), well_formed_so_far(bytes));
            let _ = patch(bytes, &[Edit { field: "status", value: "x" }]);
        }
    }
}
