//! The 172 real files, where they are.

use std::collections::BTreeMap;

use super::*;

fn corpus() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus/tasks");
    let root = [root, PathBuf::from("/work/shared/corpus/tasks")];
    let found = root.into_iter().find(|root| root.is_dir());
    if found.is_none() {
        println!("left out: ../shared/corpus/tasks is missing");
    }
    found.map(|root| root.canonicalize().unwrap())
}

#[test]
fn the_real_files_come_in_and_go_out() {
    let Some(root) = corpus() else { return };
    let bench = Bench::new();
    let report = bench.import(&root, "work/");
    println!("{}", report.human());
    let drafts = report.drafts.count;
    assert_eq!(report.files, 172);
    assert_eq!(report.records + report.plain + drafts, 172);
    assert_eq!((report.unreadable.count, report.moved_on.count), (0, 0));
    let mut rules: BTreeMap<&str, u64> = BTreeMap::new();
    for draft in &report.drafts.listed {
        *rules.entry(draft.rule.code()).or_default() += 1;
    }
    println!("{rules:?}");
    bench.clean();

    let again = bench.import(&root, "work/");
    assert_eq!(again.unchanged, 172, "{}", again.human());

    let out = bench.path("out");
    let exported = bench.export(&out, Some("work")).unwrap();
    assert_eq!((exported.files, exported.left_out_count), (172, 0));
    let corrected: Vec<&str> = report.corrected.listed.iter().map(|one| utf8(&one.path)).collect();
    let mut differ = 0;
    let mut stack = vec![root.clone()];
    while let Some(dir) = stack.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                stack.push(entry.path());
                continue;
            }
            let relative = entry.path().strip_prefix(&root).unwrap().to_owned();
            let same =
                std::fs::read(entry.path()).unwrap() == std::fs::read(out.join(&relative)).unwrap();
            let path = format!("work/{}", relative.display());
            assert_eq!(same, !corrected.contains(&path.as_str()), "{path}");
            differ += u64::from(!same);
        }
    }
    assert_eq!(differ, report.corrected.count);
}
