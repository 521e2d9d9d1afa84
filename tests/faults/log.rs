//! The daemon's log beside the store.

use std::fs;
use std::io::Write;

use workfs::limits::LOG_BYTES_MAX;

use crate::harness::{Fixture, Task, save};

// P6.10
#[test]
fn the_log_has_a_bound_while_the_daemon_runs_and_grows_by_nobody_s_refusals() {
    let fixture = Fixture::new();
    let log = fixture.store().with_extension("db.log");
    let aside = fixture.store().with_extension("db.log.1");
    fixture.task("inbox", &Task::new("t-1"));
    let length = || fs::metadata(&log).unwrap().len();
    let before = length();
    for _ in 0..50 {
        save(&fixture.path("work/inbox/t-1.yaml"), b"status: nonsense\n").unwrap_err();
    }
    assert_eq!(length(), before, "{}", fs::read_to_string(&log).unwrap());
    assert!(fixture.why().contains("nonsense"));
    // However it came to be so long.
    let mut file = fs::OpenOptions::new().append(true).open(&log).unwrap();
    file.write_all(&vec![b'\n'; LOG_BYTES_MAX as usize]).unwrap();
    let more = fixture.base().join("more");
    fs::create_dir(&more).unwrap();
    fixture.mount_at(&more).success();
    assert!(fs::metadata(&aside).unwrap().len() > LOG_BYTES_MAX);
    let said = fs::read_to_string(&log).unwrap();
    assert!(said.contains("mounted") && said.len() < 4096, "{said}");
    fixture.workfs(&["unmount", more.to_str().unwrap()]).success();
    assert!(fs::read_to_string(&log).unwrap().contains("unmounted"), "it goes on there");
}
