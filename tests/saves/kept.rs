//! How much is kept of what was refused.

use std::fs;

use workfs::limits::{
    REFUSALS_KEPT_MAX, REFUSALS_STRIDE, REJECTED_BYTES_MAX, REJECTED_SMALL_BYTES,
};

use crate::harness::{Fixture, Task, save};

// P3.2
#[test]
fn the_oldest_refused_saves_go_of_records_and_of_drafts() {
    let fixture = Fixture::new();
    let record = fixture.task("inbox", &Task::new("t-1"));
    let draft = fixture.path("work/inbox/t-2.yaml");
    let most = REFUSALS_KEPT_MAX + REFUSALS_STRIDE;
    for path in [draft, record] {
        for n in 0..=most {
            save(&path, format!("status: [ # {n}").as_bytes()).unwrap_err();
        }
        let kept = fixture.rejected();
        let count = kept.len() as u64;
        assert!((REFUSALS_KEPT_MAX..most).contains(&count), "{count}: {}", path.display());
        let newest = format!("status: [ # {most}");
        assert!(kept.iter().any(|bytes| bytes == newest.as_bytes()), "the newest stays");
    }
    fixture.fsck_clean();
}

// P3.2
#[test]
fn the_oldest_refused_bytes_go_of_a_draft_too() {
    let fixture = Fixture::new();
    let draft = fixture.path("work/inbox/t-1.yaml");
    let large = 1_000_000;
    let text = format!("status: [ #{}", "x".repeat(large));
    for _ in 0..REJECTED_BYTES_MAX / large as u64 + 10 {
        save(&draft, text.as_bytes()).unwrap_err();
    }
    let sizes = fs::read_dir(fixture.path(".workfs/rejected"))
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len());
    let kept: u64 = sizes.sum();
    let most = REJECTED_BYTES_MAX + REFUSALS_STRIDE * REJECTED_SMALL_BYTES as u64;
    assert!(kept <= most && kept > REJECTED_BYTES_MAX / 2, "{kept} bytes");
}
