//! Tidy is a test: the rules of style and layering that a compiler does not keep.
//!
//! Each test prints every place that breaks its rule. Deliberately not here: what rustfmt, clippy
//! and Cargo keep by themselves.

mod formats;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use workfs::refusal::{Door, Rule};

/// No file may be longer.
const LINES_MAX: usize = 800;
/// A file may be longer than this only if it stands in [`LONG_FILES`].
const LINES_WANTED: usize = 500;
/// Files over [`LINES_WANTED`] lines, each with the reason why it is not cut.
const LONG_FILES: &[(&str, &str)] = &[
    (
        "mount/src/requests/adapter.rs",
        "one impl of the library's trait, a callback after the other",
    ),
    ("src/limits.rs", "one list, so that each limit is found beside the others"),
];

/// Who may name `workfs_mount`: who serves the tree or looks at mounts, and who re-exports one of
/// its plain types (an inode number, a node type, a mount's number, an errno, what is wanted of a rename, a write or an
/// attribute) or asks who runs this process.
const NAMES_THE_MOUNT: &[&str] = &[
    "src/tree/",
    "src/daemon/",
    "src/cli/",
    "src/service/upkeep/doctor.rs",
    "src/service/upkeep/environment.rs",
    "src/service/export/target.rs",
    "src/engine/mod.rs",
    "src/engine/actors/context.rs",
    "src/engine/actors/modes.rs",
    "src/store/rows.rs",
    "src/numbers.rs",
    "src/refusal.rs",
];

/// What each layer names, besides itself and the files at the bottom.
const LAYERS: &[(&str, &str)] = &[
    ("record", ""),
    ("kind", "record"),
    ("ledger", ""),
    ("config", "record kind"),
    ("store", "ledger"),
    ("engine", "record kind ledger config store"),
    ("tree", "record kind ledger config store engine"),
    ("service", "record kind ledger config store engine"),
    ("daemon", "kind config store engine tree service"),
    ("cli", "kind config store engine service daemon"),
];

/// The files at the bottom, which all may name.
const BOTTOM: &str = "names numbers units limits refusal";

#[test]
fn no_file_is_too_long() {
    let mut broken = Vec::new();
    for (path, text) in rust_files(&["src", "mount", "tests"]) {
        let lines = text.lines().count();
        let allowed = LONG_FILES.iter().any(|(long, _)| *long == path);
        if lines > if allowed { LINES_MAX } else { LINES_WANTED } {
            broken.push(format!("{path}: {lines} lines"));
        }
    }
    for (long, _) in LONG_FILES {
        let lines = read(long).lines().count();
        if lines <= LINES_WANTED {
            broken.push(format!("{long}: {lines} lines, needs no allowance any more"));
        }
    }
    none_of(&broken);
}

#[test]
fn whatever_may_panic_is_proved_not_to() {
    let mut broken = Vec::new();
    for (path, text) in rust_files(&["src", "mount/src"]) {
        let text = without_tests(&path, &text);
        let mut before = "";
        for (nth, line) in text.lines().enumerate() {
            let panics = [
                ".unwrap()",
                ".expect(",
                ".unwrap_err()",
                ".expect_err(",
                "unreachable!",
                "panic!",
                "todo!",
                "unimplemented!",
            ];
            let panics = panics.iter().any(|call| code(line).contains(call));
            if panics && !before.trim_start().starts_with("// PROOF:") {
                broken.push(format!("{path}:{}: {}", nth + 1, line.trim()));
            }
            before = line;
        }
    }
    none_of(&broken);
}

#[test]
fn sql_stays_in_the_store() {
    let verbs =
        "SELECT INSERT UPDATE DELETE CREATE DROP ALTER PRAGMA BEGIN SAVEPOINT COMMIT ATTACH";
    broken_lines(&["src", "mount/src"], &["src/store/"], |line| {
        // A statement starts its string, or its line in a string of several lines.
        let starts = line.split('"').skip(1).chain([line]).map(str::trim_start);
        let sql = starts
            .filter_map(|text| text.split_once(' '))
            .any(|(verb, _)| verbs.split(' ').any(|known| known == verb));
        sql || words(line).any(|word| word == "rusqlite")
    });
}

#[test]
fn fuser_stays_in_the_mount() {
    broken_lines(&["src", "tests"], &["tests/tidy/"], |line| {
        words(line).any(|word| word == "fuser")
    });
}

#[test]
fn only_the_tree_and_the_daemon_name_the_mount() {
    broken_lines(&["src"], NAMES_THE_MOUNT, |line| words(line).any(|word| word == "workfs_mount"));
}

#[test]
fn each_layer_names_what_lies_below_it() {
    let mut broken = Vec::new();
    for (path, text) in rust_files(&["src"]) {
        let part = path.trim_start_matches("src/").split(['/', '.']).next().unwrap_or_default();
        let below = LAYERS.iter().find(|(layer, _)| *layer == part);
        let below = match below {
            Some((_, below)) => below,
            None if BOTTOM.split(' ').any(|file| file == part) => "",
            None => continue,
        };
        let text = without_tests(&path, &text);
        let layers = crate_modules(text)
            .into_iter()
            .filter(|name| LAYERS.iter().any(|(layer, _)| layer == name) && name != part);
        let broken_here = layers.filter(|name| below.split(' ').all(|allowed| allowed != name));
        broken.extend(broken_here.map(|name| format!("{path}: names crate::{name}")));
    }
    none_of(&broken);
    let parts = files(&["src"], "rs");
    let parts = parts.iter().filter_map(|path| path.strip_prefix("src/")?.split_once('/'));
    let unknown: BTreeSet<&str> = parts.map(|(part, _)| part).collect();
    let is_known = |part: &&str| {
        LAYERS.iter().any(|(layer, _)| layer == part) || BOTTOM.split(' ').any(|file| file == *part)
    };
    let unknown = unknown.into_iter().filter(|part| !is_known(part));
    none_of(&unknown.map(|part| format!("src/{part}/ is no layer")).collect::<Vec<_>>());
}

#[test]
fn every_test_file_is_compiled() {
    let mut broken = Vec::new();
    for (path, _) in rust_files(&["tests"]) {
        let path = Path::new(&path);
        let (Some(dir), Some(name)) = (path.parent(), path.file_stem()) else { continue };
        let name = name.to_string_lossy();
        if name == "main" || dir == Path::new("tests") {
            continue;
        }
        // A file stands beside the `main.rs` or the `mod.rs` that names it.
        let parents = [dir.join("main.rs"), dir.join("mod.rs")];
        let named =
            parents.iter().filter_map(|parent| fs::read_to_string(root().join(parent)).ok());
        if name != "mod" && !named.into_iter().any(|text| has_module(&text, &name)) {
            broken.push(format!("{}: no `mod {name};` beside it", path.display()));
        }
    }
    none_of(&broken);
}

#[test]
fn no_link_in_the_documents_is_dead() {
    let mut documents = files(&["docs"], "md");
    documents.extend(files(&["."], "md").into_iter().filter(|path| !path.contains('/')));
    let mut broken = Vec::new();
    for path in documents {
        let text = read(&path);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
            if target.contains(':') {
                continue;
            }
            let base = root().join(&path);
            let base = base.parent().map(|dir| dir.join(target)).filter(|_| !target.is_empty());
            let base = base.unwrap_or_else(|| root().join(&path));
            let is_document = base.extension().is_some_and(|extension| extension == "md");
            let dead = !base.exists()
                || (is_document && !anchor.is_empty() && !anchors(&base).contains(anchor));
            if dead {
                broken.push(format!("{path}: {link}"));
            }
        }
    }
    none_of(&broken);
}

#[test]
fn every_source_that_the_documents_name_is_there() {
    let folders = fs::read_dir(root().join("src")).expect("the sources");
    let folders = folders.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir());
    let mut tops: Vec<_> = folders
        .filter_map(|path| Some(format!("{}/", path.file_name()?.to_str()?)))
        .map(|top| (top, "src/"))
        .collect();
    tops.extend(["src/", "mount/", "scripts/", "bench/"].map(|top| (top.to_owned(), "")));
    let mut broken = Vec::new();
    let mut seen = 0;
    for path in files(&["docs"], "md") {
        let text = read(&path);
        let spans = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
        for name in spans.filter(|span| !span.contains([' ', '<', '*', '{'])) {
            let Some((_, base)) = tops.iter().find(|(top, _)| name.starts_with(top)) else {
                continue;
            };
            seen += 1;
            let bare = root().join(format!("{base}{name}"));
            if !bare.exists() && !bare.with_extension("rs").exists() {
                broken.push(format!("{path}: {name}"));
            }
        }
    }
    assert!(seen > 60, "{seen} names are no longer all");
    none_of(&broken);
}

#[test]
fn every_script_says_what_it_does_wherever_its_caller_stands() {
    let mut broken = Vec::new();
    for entry in fs::read_dir(root().join("scripts")).expect("the scripts") {
        let path = entry.expect("a script").path();
        if !path.is_file() {
            continue;
        }
        let name = path.file_name().and_then(OsStr::to_str).expect("a name");
        let called = Command::new("bash")
            .args([&format!("../{name}"), "--help"])
            .current_dir(root().join("scripts/lib"))
            .output()
            .expect("bash");
        let said = String::from_utf8_lossy(&called.stdout);
        if !called.status.success() || !said.starts_with(&format!("Usage: scripts/{name}")) {
            broken.push(format!("{name}: {said}{}", String::from_utf8_lossy(&called.stderr)));
        }
    }
    none_of(&broken);
}

#[test]
fn every_rule_has_its_paragraph() {
    let text = read("docs/errors.md");
    let mut sections: BTreeMap<&str, &str> = BTreeMap::new();
    let mut broken = Vec::new();
    for section in text.split("\n## ").skip(1) {
        let (heading, body) = section.split_once('\n').unwrap_or((section, ""));
        if sections.insert(heading, body).is_some() {
            broken.push(format!("twice: {heading}"));
        }
    }
    for rule in Rule::ALL {
        let heading = format!("{}: {}", rule.code(), rule.title());
        let Some(body) = sections.remove(heading.as_str()) else {
            broken.push(format!("no paragraph: {heading}"));
            continue;
        };
        let body = body.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [errnos(*rule).as_str(), "What to do:"] {
            if !body.contains(part) {
                broken.push(format!("{heading}: lacks {part:?}"));
            }
        }
    }
    broken.extend(sections.keys().map(|heading| format!("no such rule: {heading}")));
    none_of(&broken);
}

/// The rule's errno, and the doors where it is another one.
fn errnos(rule: Rule) -> String {
    let usual = rule.errno(Door::Name);
    let mut text = format!("Errno: `{usual}`");
    for (door, name) in
        [(Door::Rename, "rename"), (Door::Handle, "handle"), (Door::Socket, "socket")]
    {
        if rule.errno(door) != usual {
            text += &format!("; through `{name}`: `{}`", rule.errno(door));
        }
    }
    text + "."
}

#[test]
fn every_promise_has_a_test_and_the_reverse() {
    let Ok(text) = fs::read_to_string(root().join("docs/semantics.md")) else {
        println!("left out: there is no docs/semantics.md yet");
        return;
    };
    let promised: BTreeSet<&str> = text.lines().flat_map(promises).collect();
    let files = rust_files(&["src", "mount", "tests"]);
    let comments = files.iter().filter(|(path, _)| !path.starts_with("tests/tidy/"));
    let comments = comments.flat_map(|(_, text)| text.lines()).filter_map(|l| l.split_once("//"));
    let tested: BTreeSet<&str> = comments.flat_map(|(_, comment)| promises(comment)).collect();
    let mut broken = Vec::new();
    broken.extend(promised.difference(&tested).map(|id| format!("{id} has no test")));
    broken.extend(tested.difference(&promised).map(|id| format!("{id} is not promised")));
    none_of(&broken);
}

/// Words such as `P1.2`.
fn promises(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '.');
    words.map(|word| word.trim_matches('.')).filter(|word| {
        let numbers = word.strip_prefix('P').and_then(|rest| rest.split_once('.'));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        numbers.is_some_and(|(section, nth)| digits(section) && digits(nth))
    })
}

// What the tests above are made of.

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All files with this extension below `dirs`, as paths from the root of the repository.
fn files(dirs: &[&str], extension: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting: Vec<PathBuf> = dirs.iter().map(|dir| root().join(dir)).collect();
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() && name != "target" && !name.to_string_lossy().starts_with('.') {
                waiting.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                let path = path.strip_prefix(root()).unwrap_or(&path);
                found.push(path.to_string_lossy().trim_start_matches("./").to_owned());
            }
        }
    }
    found.sort();
    found
}

fn rust_files(dirs: &[&str]) -> Vec<(String, String)> {
    files(dirs, "rs").into_iter().map(|path| (path.clone(), read(&path))).collect()
}

/// Fails where a line of code in `dirs`, but not in `except`, is `wrong`.
fn broken_lines(dirs: &[&str], except: &[&str], wrong: impl Fn(&str) -> bool) {
    let mut broken = Vec::new();
    for (path, text) in rust_files(dirs) {
        if !except.iter().any(|prefix| path.starts_with(prefix)) {
            let lines = text.lines().enumerate().filter(|(_, line)| wrong(code(line)));
            broken.extend(lines.map(|(nth, line)| format!("{path}:{}: {}", nth + 1, line.trim())));
        }
    }
    none_of(&broken);
}

/// A line without its comment.
fn code(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// The text up to its module of tests; nothing of a file of tests.
fn without_tests<'a>(path: &str, text: &'a str) -> &'a str {
    if path.contains("/tests/") || path.ends_with("/tests.rs") || path.ends_with("_test.rs") {
        return "";
    }
    let end = text.match_indices("#[cfg(test)]").map(|(at, _)| at).find(|&at| {
        let next = text[at..].lines().nth(1).unwrap_or("");
        next.contains("mod ") && next.ends_with('{')
    });
    &text[..end.unwrap_or(text.len())]
}

/// The modules that come right after `crate::`, also in groups.
fn crate_modules(text: &str) -> BTreeSet<String> {
    let code: String = text.lines().map(|line| code(line).to_owned() + "\n").collect();
    let mut named = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let Some(group) = rest.strip_prefix('{') else {
            named.extend(words(rest).next().map(str::to_owned));
            continue;
        };
        let (mut depth, mut item) = (0, String::new());
        for c in group.chars() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    named.extend(words(item.trim()).next().map(str::to_owned));
                    item.clear();
                }
                _ if depth == 0 => item.push(c),
                _ => {}
            }
        }
        named.extend(words(item.trim()).next().map(str::to_owned));
    }
    named
}

fn has_module(text: &str, name: &str) -> bool {
    text.lines()
        .any(|line| words(code(line)).skip_while(|word| *word != "mod").nth(1) == Some(name))
}

/// The anchors that the headings of a document make.
fn anchors(path: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| -> String {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

fn none_of(broken: &[String]) {
    assert!(broken.is_empty(), "{} broken:\n  {}", broken.len(), broken.join("\n  "));
}

#[test]
fn the_scanners_see_what_they_should() {
    let text = "use crate::{names::{A, B}, engine::C};\nuse crate::store::D; // crate::tree\n";
    assert_eq!(crate_modules(text).into_iter().collect::<Vec<_>>(), ["engine", "names", "store"]);
    assert_eq!(promises("// P1.2, P10.3. PS.4 P5 XP1.2").collect::<Vec<_>>(), ["P1.2", "P10.3"]);
    assert!(has_module("#[path = \"x\"] mod a;\npub mod b;", "b") && !has_module("mod ab;", "a"));
    let text = "a\n#[cfg(test)]\nfn b() {}\n#[cfg(test)]\npub(super) mod tests {\n";
    assert_eq!(without_tests("src/x.rs", text), "a\n#[cfg(test)]\nfn b() {}\n");
    assert!(words("use fuser::X").any(|word| word == "fuser"));
    assert!(!words("fusermount3").any(|word| word == "fuser"));
}
