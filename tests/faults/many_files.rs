//! Ten thousand open files.

use std::fs::{self, File};
use std::io::Read;

use crate::harness::{Fixture, Task, left_out, lies, pile, set_soft_open_files};

const FILES: usize = 10_000;

// P6.6
#[test]
fn ten_thousand_open_files_hinder_nobody() {
    if !set_soft_open_files(FILES as u64 + 2_000) {
        return left_out("this process may not open ten thousand files");
    }
    let fixture = Fixture::new();
    let ids = fixture.tasks(100);
    fs::create_dir(fixture.path("scratchpad")).unwrap();
    for nth in 0..100 {
        fs::write(fixture.path(&format!("scratchpad/f{nth}")), format!("plain {nth}")).unwrap();
    }
    let path = |nth: usize| match nth % 2 {
        0 => fixture.work().join(format!("inbox/{}.yaml", ids[nth / 2 % 100])),
        _ => fixture.path(&format!("scratchpad/f{}", nth / 2 % 100)),
    };
    let files: Vec<File> = (0..FILES).map(|nth| File::open(path(nth)).unwrap()).collect();
    // Others open, save and claim as if nothing were.
    fixture
        .sh("mv work/inbox/t-00*.yaml work/assigned/bob/; echo x > f; ls -l work/inbox")
        .success();
    fixture.task("inbox", &Task::new("new"));
    for (nth, mut file) in files.into_iter().enumerate() {
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        match nth % 2 {
            0 => assert_eq!(text, Task::new(&ids[nth / 2 % 100]).text(), "the opened version"),
            _ => assert_eq!(text, format!("plain {}", nth / 2 % 100)),
        }
    }
    let pile = pile(&fixture.work());
    for id in &ids {
        let place = if id.as_str() < "t-0100" { "assigned/bob" } else { "inbox" };
        assert_eq!(lies(&fixture.work(), &pile, id), place);
    }
    fixture.fsck_clean();
}
