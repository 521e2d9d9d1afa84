//! Judges the real task files, where the shared corpus is at hand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Place, builtin};
use crate::names::{FileName, TreePath};
use crate::refusal::Rule;

fn corpus() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let named = std::env::var_os("WORKFS_SHARED").map(PathBuf::from);
    let places = [named, Some(here.join("../shared")), Some(here.join("../../shared"))];
    places.into_iter().flatten().map(|dir| dir.join("corpus/tasks")).find(|dir| dir.is_dir())
}

fn files(dir: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { files(&path, out) } else { out.push(path) }
    }
}

#[test]
fn real_task_files_pass_where_they_are_sane() {
    let Some(root) = corpus() else {
        println!("left out: no shared corpus (set WORKFS_SHARED)");
        return;
    };
    let root = root.join("collaboration");
    let task = builtin::task();
    let mut paths = Vec::new();
    files(&root, &mut paths);
    let mut passed: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for path in &paths {
        let relative = path.strip_prefix(&root).unwrap();
        let dir = relative.parent().unwrap();
        let place = task.place(TreePath::parse(dir.to_str().unwrap()).unwrap().names());
        let top = dir.iter().next().unwrap().to_str().unwrap().to_owned();
        let count = passed.entry(top.clone()).or_default();
        count.1 += 1;
        let Place::State { state, .. } = place else {
            *reasons.entry(format!("{top}: no state directory")).or_default() += 1;
            continue;
        };
        let name = FileName::new(relative.file_name().unwrap().to_str().unwrap()).unwrap();
        let id = task.record_id(&name).unwrap_or_else(|| panic!("{name} is no record"));
        let text = std::fs::read_to_string(path).unwrap();
        let Ok(value) = serde_saphyr::from_str::<serde_json::Value>(&text) else {
            println!("{}: not YAML", relative.display());
            *reasons.entry(format!("{top}: not YAML")).or_default() += 1;
            continue;
        };
        match task.judge(&value, &id, state) {
            Ok(()) => count.0 += 1,
            Err(fault) => {
                println!("{}: {fault} ({})", relative.display(), fault.remedy);
                let why = match fault.rule {
                    Rule::Schema => fault.reason,
                    rule => rule.title().to_owned(),
                };
                *reasons.entry(format!("{top}: {why}")).or_default() += 1;
            }
        }
    }
    for (dir, (good, all)) in &passed {
        println!("{dir}: {good} of {all} pass");
    }
    for (reason, count) in &reasons {
        println!("{count:4}  {reason}");
    }
    let all_good: usize = passed.values().map(|(good, _)| good).sum();
    assert!(all_good > 0, "not one real file passes");
}
