//! What is kept of what was refused, and how much.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use workfs::limits::{
    REFUSALS_KEPT_MAX, REFUSALS_STRIDE, REJECTED_BYTES_MAX, REJECTED_SMALL_BYTES,
};

use crate::harness::{Errno, Fixture, Task, close, needs, save, until_polled};

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

// P3.2
#[test]
fn what_a_write_refuses_is_kept_where_the_file_is_another_s_by_now() {
    let fixture = Fixture::new();
    let inbox = |name: &str| fixture.path("work/inbox").join(name);
    let changes: [&dyn Fn(&Path); 3] = [
        &|path| {
            fs::write(inbox("new"), Task::new("t-0").revision(1).text()).unwrap();
            fs::rename(inbox("new"), path).unwrap();
        },
        &|path| fs::rename(path, inbox("t-1.yaml~")).unwrap(),
        &|path| fs::remove_file(path).unwrap(),
    ];
    for (nth, change) in changes.iter().enumerate() {
        let path = fixture.task("inbox", &Task::new(&format!("t-{nth}")));
        let mut file = OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
        change(&path);
        let text = format!("status: ] # {nth}\n");
        let refused = file.write_all(text.as_bytes()).unwrap_err();
        assert_eq!(Errno::from_io_error(&refused), Some(Errno::INVAL));
        assert_eq!(close(file), Err(Errno::INVAL));
        assert!(fixture.rejected().contains(&text.into_bytes()), "{nth}");
        let told = format!("write work/inbox/t-{nth}.yaml EINVAL");
        assert!(fixture.why().contains(&told), "{nth}: {}", fixture.why());
    }
    fixture.fsck_clean();
}

/// Maps the files in turn, closes them, writes into the mapping and lets it go, by its end or that of the process.
const WRITES_BY_MAPPING: &str = "
import ctypes, os, sys
c = ctypes.CDLL(None)
c.mmap.restype = ctypes.c_void_p
c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
c.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
for path, old, new, unmaps in (line.split('|') for line in sys.stdin.read().splitlines()):
    fd = os.open(path, os.O_RDWR)
    size = os.fstat(fd).st_size
    at = c.mmap(None, size, 3, 1, fd, 0)
    os.close(fd)
    text = ctypes.string_at(at, size)
    ctypes.memmove(at + text.index(old.encode()), new.encode(), len(new))
    if unmaps:
        c.munmap(at, size)
";

// P3.1 P3.2
#[test]
fn what_a_mapping_writes_after_the_last_close_is_judged_when_it_ends() {
    if !needs(&["python3"]) {
        return;
    }
    let fixture = Fixture::new();
    let task = |id| fixture.task("inbox", &Task::new(id).with("note: aaa\n"));
    let [kept, at_end, bad] = ["t-1", "t-2", "t-3"].map(task);
    let lines = [(&kept, "bbb", "x"), (&at_end, "bbb", ""), (&bad, "[bb", "x")];
    let lines = lines.map(|(path, new, unmaps)| {
        format!("work/inbox/{}|aaa|{new}|{unmaps}\n", path.file_name().unwrap().display())
    });
    fs::write(fixture.outside("lines"), lines.concat()).unwrap();
    fixture.sh(&format!("python3 -c \"{WRITES_BY_MAPPING}\" < $OUT/lines")).success();
    let says = |path: &Path| fs::read_to_string(path).unwrap().contains("note: bbb");
    until_polled("both are saved", || (says(&kept) && says(&at_end)).then_some(()));
    until_polled("the third is kept", || {
        let is_it = |text: &Vec<u8>| String::from_utf8_lossy(text).contains("note: [bb");
        fixture.rejected().iter().any(is_it).then_some(())
    });
    assert!(fs::read_to_string(&bad).unwrap().contains("note: aaa"));
    fixture.fsck_clean();
}
