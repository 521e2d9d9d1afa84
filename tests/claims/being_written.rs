//! A record that somebody is writing is not there to be taken.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use crate::harness::{DEADLINE, Errno, Fixture, Mapped, Task, close};

// P1.6
#[test]
fn a_record_that_is_being_written_cannot_be_claimed_until_it_is_closed() {
    let fixture = Fixture::new();
    let from = fixture.task("inbox", &Task::new("t-1"));
    let to = fixture.path("work/assigned/bob/t-1.yaml");
    let mut writer = OpenOptions::new().write(true).truncate(true).open(&from).unwrap();
    writer.write_all(Task::new("t-1").revision(1).text().as_bytes()).unwrap();

    let start = Instant::now();
    let error = fs::rename(&from, &to).unwrap_err();
    let waited = start.elapsed();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::BUSY));
    assert!(waited >= Duration::from_millis(200), "it did not wait: {waited:?}");
    assert!(waited < DEADLINE, "it waited {waited:?}");
    assert!(fixture.why().contains("W024"), "{}", fixture.why());

    close(writer).unwrap();
    fs::rename(&from, &to).unwrap();
    let text = fs::read_to_string(&to).unwrap();
    assert!(text.contains("revision: 1\n"), "{text}");
    assert_eq!(fixture.ledger().names("t-1"), ["created", "saved", "claimed"]);
}

// P1.6
#[test]
fn a_record_that_is_being_written_is_not_claimed_where_it_got_another_file_meanwhile() {
    let fixture = Fixture::new();
    let from = fixture.task("inbox", &Task::new("t-1"));
    let to = fixture.path("work/assigned/bob/t-1.yaml");
    let mut open = OpenOptions::new();
    let mut writer = open.read(true).write(true).open(&from).unwrap();
    std::io::read_to_string(&writer).unwrap();
    // Who opens it to write, where somebody has mapped it, has it set apart.
    let mapped = Mapped::new(&fs::File::open(&from).unwrap()).unwrap();
    let before = (mapped.bytes(), fs::metadata(&from).unwrap().ino());
    drop(open.open(&from).unwrap());
    assert_ne!(fs::metadata(&from).unwrap().ino(), before.1);
    writer.write_all(b"# more\n").unwrap();
    let error = fs::rename(&from, &to).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::BUSY));
    close(writer).unwrap();
    fs::rename(&from, &to).unwrap();
    assert!(fs::read_to_string(&to).unwrap().ends_with("# more\n"));
    assert_eq!(mapped.bytes(), before.0);
}

// P1.6
#[test]
fn a_claim_that_waits_goes_on_as_soon_as_the_writer_closes() {
    let fixture = Fixture::new();
    let from = fixture.task("inbox", &Task::new("t-1"));
    let to = fixture.path("work/assigned/bob/t-1.yaml");
    let mut writer = OpenOptions::new().write(true).truncate(true).open(&from).unwrap();
    writer.write_all(Task::new("t-1").revision(1).text().as_bytes()).unwrap();
    // Which of the two is first is open, so only the outcome counts: the claim or EBUSY, never
    // the version before.
    let claim = std::thread::spawn(move || match fs::rename(&from, &to) {
        // This process was kept from closing it for longer than a claim waits.
        Err(error) if error.kind() == ErrorKind::ResourceBusy => fs::rename(&from, &to),
        claimed => claimed,
    });
    close(writer).unwrap();
    claim.join().unwrap().unwrap();
    let text = fs::read_to_string(fixture.path("work/assigned/bob/t-1.yaml")).unwrap();
    assert!(text.contains("revision: 1\n"), "{text}");
}

// P1.6
#[test]
fn a_reader_hinders_no_claim() {
    let fixture = Fixture::new();
    let from = fixture.task("inbox", &Task::new("t-1"));
    let reader = fs::File::open(&from).unwrap();
    fs::rename(&from, fixture.path("work/assigned/bob/t-1.yaml")).unwrap();
    let text = std::io::read_to_string(reader).unwrap();
    assert_eq!(text, Task::new("t-1").text(), "the version that was opened");
}

// P1.6
#[test]
fn a_new_file_is_no_record_before_it_is_closed() {
    let fixture = Fixture::new();
    let from = fixture.path("work/inbox/t-1.yaml");
    let mut writer = fs::File::create(&from).unwrap();
    writer.write_all(&Task::new("t-1").text().as_bytes()[..40]).unwrap();
    let error = fs::rename(&from, fixture.path("work/assigned/bob/t-1.yaml")).unwrap_err();
    let errno = Errno::from_io_error(&error);
    assert!(matches!(errno, Some(Errno::BUSY | Errno::PERM)), "{error}");
    writer.write_all(&Task::new("t-1").text().as_bytes()[40..]).unwrap();
    close(writer).unwrap();
    fs::rename(&from, fixture.path("work/assigned/bob/t-1.yaml")).unwrap();
}

// P1.6
#[test]
fn the_command_line_leaves_a_record_that_is_being_written() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let mut writer = OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
    writer.write_all(Task::new("t-1").revision(1).text().as_bytes()).unwrap();
    let start = Instant::now();
    let named = fixture.workfs(&["claim", "t-1", "--agent", "bob"]).failure();
    assert!(named.stderr.contains("W024"), "{named}");
    let waited = start.elapsed();
    assert!(waited >= Duration::from_millis(200), "it did not wait: {waited:?}");
    let moved = fixture.workfs(&["release", "t-1"]).failure();
    assert!(moved.stderr.contains("W024"), "{moved}");
    let next = fixture.workfs(&["claim", "--agent", "bob"]).failure();
    assert!(next.stderr.contains("nothing to claim"), "{next}");
    close(writer).unwrap();
    fixture.workfs(&["claim", "t-1", "--agent", "bob"]).success();
    assert_eq!(fixture.ledger().names("t-1"), ["created", "saved", "claimed"]);
}

// P1.6
#[test]
fn the_command_line_goes_on_as_soon_as_the_writer_closes() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let mut writer = OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
    writer.write_all(Task::new("t-1").revision(1).text().as_bytes()).unwrap();
    std::thread::scope(|scope| {
        // Which of the two is first is open, so only the outcome counts.
        let claim = scope.spawn(|| fixture.workfs(&["claim", "t-1", "--agent", "bob"]));
        close(writer).unwrap();
        assert_eq!(claim.join().unwrap().success().stdout, "work/assigned/bob/t-1.yaml\n");
    });
    let text = fs::read_to_string(fixture.path("work/assigned/bob/t-1.yaml")).unwrap();
    assert!(text.contains("revision: 1\n"), "{text}");
}

// P1.6 P1.3
#[test]
fn a_claim_by_copy_waits_for_the_writer_as_a_rename_does() {
    let fixture = Fixture::new();
    let from = fixture.task("inbox", &Task::new("t-1"));
    let to = fixture.path("work/assigned/bob/t-1.yaml");
    let mut writer = OpenOptions::new().read(true).write(true).open(&from).unwrap();
    writer.write_all(Task::new("t-1").revision(1).text().as_bytes()).unwrap();

    // By `close`, and by a rename of the text to the name.
    for copy in
        ["cp inbox/t-1.yaml assigned/bob/", "cp inbox/t-1.yaml x && mv x assigned/bob/t-1.yaml"]
    {
        let start = Instant::now();
        let ran = fixture.sh(&format!("cd work; {copy}")).failure();
        let waited = start.elapsed();
        assert!(ran.stderr.contains("resource busy"), "{copy}: {ran}");
        assert!(waited >= Duration::from_millis(200), "it did not wait: {waited:?}");
        assert!(fixture.why().lines().next().is_some_and(|line| line.contains("W024")), "{copy}");
        assert!(!to.exists() && from.exists(), "{copy}");
    }
    close(writer).unwrap();
    assert!(fs::read_to_string(&from).unwrap().contains("revision: 1\n"));
    fixture.sh("cd work; cp inbox/t-1.yaml assigned/bob/ && rm inbox/t-1.yaml").success();
    assert_eq!(fixture.ledger().names("t-1"), ["created", "saved", "claimed"]);

    // Who closes in time hinders nobody.
    let path = fixture.task("inbox", &Task::new("t-2"));
    let mut writer = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    writer.write_all(Task::new("t-2").text().as_bytes()).unwrap();
    std::thread::scope(|scope| {
        let claim = scope.spawn(|| fixture.sh("cd work; cp inbox/t-2.yaml assigned/bob/"));
        close(writer).unwrap();
        claim.join().unwrap().success();
    });
    assert_eq!(fixture.ledger().names("t-2"), ["created", "claimed"]);
    fixture.fsck_clean();
}
