//! Somebody else has locked the store's database: no request waits for it for ever.

use std::fs;
use std::time::{Duration, Instant};

use crate::harness::{Errno, Fixture, Task, Worker, Workers};

/// Holds SQLite's write lock until it is told to let go.
const HOLDER: &str = "
import sqlite3
db = sqlite3.connect(args[0], isolation_level=None, timeout=1)
try:
    db.execute('begin immediate')
    say('held')
except sqlite3.OperationalError as error:
    say('refused')
ready()
db.close()
";

// P6.7
#[test]
fn a_store_that_somebody_else_locks_is_answered_within_the_deadline() {
    let fixture = Fixture::new();
    let from = fixture.task("inbox", &Task::new("t-1"));
    let to = fixture.path("work/assigned/bob/t-1.yaml");
    let store = fixture.store().to_str().unwrap().to_owned();
    let holder = Workers::start(&Worker::Python(HOLDER), &[fixture.work()], &[&store]);
    let start = Instant::now();
    let claimed = fs::rename(&from, &to);
    let took = start.elapsed();
    assert!(took < Duration::from_secs(10), "the claim took {took:?}");
    // Reading goes on in any case.
    let is = if claimed.is_ok() { &to } else { &from };
    assert!(fs::read_to_string(is).unwrap().contains("end_of: t-1"));
    if let Err(error) = &claimed {
        println!("after {took:?}: {error}");
        let errno = Errno::from_io_error(error);
        assert!(matches!(errno, Some(Errno::TIMEDOUT | Errno::BUSY)), "{error}");
    }
    drop(holder.go_and_finish());
    if claimed.is_err() {
        fs::rename(&from, &to).unwrap();
    }
    assert_eq!(fixture.ledger().names("t-1"), ["created", "claimed"]);
    fixture.fsck_clean();
}
