//! Judging what lies in a workspace after many have worked on it.

use std::collections::BTreeMap;
use std::path::Path;

use super::task::whole;

/// Every task of a workspace: its id, and the directory from the workspace that it lies in.
pub type Pile = BTreeMap<String, Vec<String>>;

/// Where each task lies. All are listed, whatever their state.
#[track_caller]
pub fn pile(workspace: &Path) -> Pile {
    let mut found = Pile::new();
    let mut waiting = vec![workspace.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in std::fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() && entry.file_name() != "ready" {
                waiting.push(entry.path());
                continue;
            }
            let name = entry.file_name().into_string().unwrap();
            if let Some(id) = name.strip_suffix(".yaml") {
                let dir = dir.strip_prefix(workspace).unwrap().to_str().unwrap().to_owned();
                found.entry(id.to_owned()).or_default().push(dir);
            }
        }
    }
    found
}

/// Where task `id` lies, if it is whole, in one place, and says of itself what its place says.
#[track_caller]
pub fn lies(workspace: &Path, pile: &Pile, id: &str) -> String {
    let dirs = pile.get(id).unwrap_or_else(|| panic!("{id} is lost"));
    assert_eq!(dirs.len(), 1, "{id} lies in {dirs:?}");
    let dir = &dirs[0];
    let text = std::fs::read(workspace.join(dir).join(format!("{id}.yaml"))).unwrap();
    whole(id, &text).unwrap_or_else(|torn| panic!("{id} in {dir} is torn: {torn}"));
    let text = String::from_utf8(text).unwrap();
    let says = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(key));
        lines.next().unwrap_or_default().trim().to_owned()
    };
    let (state, owner) = dir.split_once('/').unwrap_or((dir, ""));
    let allowed: &[&str] = match state {
        "inbox" => &["new", "inbox"],
        "assigned" => &["assigned", "in_progress", "blocked", "error"],
        "done" => &["done"],
        other => panic!("{id} lies in {other}"),
    };
    let status = says("status:");
    assert!(allowed.contains(&status.as_str()), "{id} in {dir} says status {status}");
    if state == "assigned" {
        assert_eq!(says("agent:"), owner, "{id} in {dir} says of its agent:\n{text}");
    }
    dir.clone()
}
