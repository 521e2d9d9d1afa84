//! docs/formats.md names all that programs get.

use super::{files, none_of, read};

/// The structs of a source that are written as JSON, each with its fields.
fn written(source: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    source.split("#[derive(").skip(1).filter_map(|part| {
        let (derived, rest) = part.split_once(")]\n")?;
        let rest = rest.lines().find(|line| !line.starts_with("#["))?;
        let name = rest.strip_prefix("pub struct ")?.split([' ', '<', '(']).next()?;
        let (_, body) = part.split_once(&format!("pub struct {name}"))?;
        let body = body.split("\n}").next()?;
        let field = |line: &'_ str| line.trim().strip_prefix("pub ").is_some();
        let names = body.lines().filter(|line| field(line));
        let names = names.filter_map(|line| line.trim().strip_prefix("pub ")?.split(':').next());
        derived.contains("Serialize").then(|| (name, names.collect()))
    })
}

#[test]
fn every_field_of_a_result_is_documented() {
    let document = read("docs/formats.md");
    let mut sources = files(&["src/service"], "rs");
    sources.retain(|path| !path.contains("/request/") && !path.contains("/tests/"));
    sources
        .extend(["src/daemon/socket/wire.rs", "src/engine/claims/outlook.rs"].map(str::to_owned));
    let (mut broken, mut seen) = (Vec::new(), 0);
    for path in sources {
        for (name, fields) in written(&read(&path)) {
            // What is asked, and a failure, which docs/cli.md shows.
            if name == "Failure" || path.ends_with("wire.rs") && !name.ends_with("Info") {
                continue;
            }
            seen += fields.len();
            let lacking = fields.iter().filter(|field| !document.contains(&format!("`{field}`")));
            broken.extend(lacking.map(|field| format!("{path}: {name}.{field}")));
        }
    }
    assert!(seen > 150, "{seen} fields are no longer all");
    none_of(&broken);
}

#[test]
fn every_event_and_every_key_of_its_line_is_documented() {
    let document = read("docs/formats.md");
    let ledger = read("src/ledger/event.rs");
    let mut broken = Vec::new();
    let mut named = |word: &str| {
        let is = document.contains(&format!("`{word}`"));
        (!is).then(|| broken.push(word.to_owned()));
    };
    // Those that the engine gives itself, and those of the built-in kind.
    let engine: String = files(&["src/engine"], "rs").iter().map(|path| read(path)).collect();
    for (constant, rest) in ledger.lines().filter_map(|line| line.trim().split_once(" = \"")) {
        let is_given = engine.contains(&format!("EventName::{constant}"));
        if let Some(text) = rest.strip_suffix("\",").filter(|_| is_given) {
            named(text);
        }
    }
    let kind = read("src/kind/builtin/task.kind.yaml");
    let lines = kind.lines().filter(|line| !line.trim().starts_with('#'));
    lines.filter_map(|line| Some(line.split_once("event: ")?.1)).for_each(|rest| {
        named(rest.split(|c: char| !c.is_ascii_lowercase() && c != '_').next().unwrap_or_default());
    });
    let seal = ledger.split("pub fn seal").nth(1).and_then(|rest| rest.split("\n}").next());
    for key in seal.unwrap_or_default().split("(\"").skip(1) {
        named(key.split('"').next().unwrap_or_default());
    }
    none_of(&broken);
}
