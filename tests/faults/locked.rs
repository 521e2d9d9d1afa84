//! Another process at the store's database: it can read it, and if it locks it no request waits for
//! ever.

use std::fs;
use std::time::{Duration, Instant};

use crate::harness::{Errno, Fixture, Setup, Task, Worker, Workers};

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

/// Reads what is committed, over and over, until it is told to go, and then once more.
const BESIDE: &str = "
import sqlite3, threading
db = sqlite3.connect('file:%s?mode=ro' % args[0], uri=True, isolation_level=None, timeout=1)
told = threading.Event()
def listen():
    ready()
    told.set()
threading.Thread(target=listen).start()
seen, is_last = 0, False
while not is_last:
    is_last = told.is_set()
    (last, count), = db.execute('select max(g), count(*) from events')
    if last != count or last < seen:
        say('wrong: %s after %s, of %s' % (last, seen, count))
    seen = last
say('read to %s' % seen)
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

// P6.7
#[test]
fn another_process_reads_the_store_while_it_is_written() {
    let fixture = Setup::default().mounts(2).start();
    let tasks: Vec<_> =
        (0..200).map(|nth| fixture.task("inbox", &Task::new(&format!("t-{nth}")))).collect();
    let store = fixture.store().to_str().unwrap().to_owned();
    let beside = Workers::start(&Worker::Python(BESIDE), &[fixture.work()], &[&store]);
    let names: Vec<_> = tasks.iter().map(|task| task.file_name().unwrap().to_owned()).collect();
    std::thread::scope(|scope| {
        for (mount, names) in fixture.mounts().iter().zip(names.chunks(100)) {
            scope.spawn(move || {
                for name in names {
                    let lane = mount.join("work/assigned/bob").join(name);
                    fs::rename(mount.join("work/inbox").join(name), &lane).unwrap();
                    assert!(fs::read_to_string(&lane).unwrap().contains("end_of: t-"));
                }
            });
        }
    });
    let said = beside.go_and_finish();
    let said: Vec<String> = said.into_iter().map(|said| said.line).collect();
    assert_eq!(said, [format!("read to {}", fixture.ledger().last_g())]);
    fixture.fsck_clean();
}
