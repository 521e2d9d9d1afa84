//! What is heard of a full disk, and what is over there all the same.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use super::disk::{fill, small_disk};
use crate::harness::{Errno, Fixture, Setup, Task, close, save, until_polled};

const LAYOUT: &str = "workspaces: [{ path: work, kind: task }]
checks: [{ path: 'scratchpad/*.yaml', syntax: yaml }]
";

/// A fixture of this layout whose store lies on a small disk, with a ballast that can be thrown off.
fn on_small_disk(layout: &str) -> Option<(Fixture, PathBuf)> {
    let mut fixture = Setup::default().prepare();
    let disk = small_disk(fixture.base(), "24m")?;
    fixture.set_store(disk.join("team.db"));
    let file = fixture.outside("layout.yaml");
    fs::write(&file, layout).unwrap();
    fixture.workfs(&["init", "--layout", file.to_str().unwrap()]).success();
    let ballast = disk.join("ballast");
    fs::write(&ballast, vec![1; 8 << 20]).unwrap();
    fixture.mount_all();
    fixture.make_directories();
    Some((fixture, ballast))
}

// P3.3 P4.3
#[test]
fn a_shell_hears_that_there_is_no_room_for_what_is_saved_as_a_whole_and_why_tells() {
    let Some((fixture, ballast)) = on_small_disk(LAYOUT) else { return };
    let old = Task::new("t-1").text();
    let record = fixture.task("inbox", &Task::new("t-1"));
    let checked = fixture.path("scratchpad/a.yaml");
    fs::write(&checked, "a: 1\n").unwrap();
    fill(&fixture);
    let new = Task::new("t-1").revision(1).text();
    for (file, text, was) in [(&record, &*new, &*old), (&checked, "b: 2\n", "a: 1\n")] {
        let echo = |end: &str| {
            let shell = fixture.bash().with("F", file).with("T", text);
            shell.run(&format!("printf %s \"$T\" {end}"))
        };
        for into in ["> \"$F\"", "1<> \"$F\""] {
            let ran = echo(into).failure();
            assert!(ran.stderr.contains("No space left on device"), "{into}: {ran}");
            assert_eq!(fs::read_to_string(file).unwrap(), was, "{into}");
        }
        let beside = fs::read_to_string(file.with_extension("yaml.why")).unwrap();
        for told in [fixture.why(), beside, fixture.workfs(&["why"]).success().stdout] {
            assert!(told.contains("W040"), "{told}");
        }
    }
    let ran = fixture.workfs(&["why", "nothing"]);
    assert_eq!(ran.code, 4, "{ran}");
    fs::remove_file(ballast).unwrap();
    for (file, text) in [(&record, &*new), (&checked, "b: 2\n")] {
        assert!(!fixture.why().contains("W040"), "there is room again");
        let shell = fixture.bash().with("F", file).with("T", text);
        shell.run("printf %s \"$T\" > \"$F\"").success();
        assert_eq!(fs::read_to_string(file).unwrap(), text);
    }
    fixture.fsck_clean();
}

// P4.3 P3.3
#[test]
fn what_a_full_disk_refused_no_later_write_of_an_open_file_goes_without() {
    let Some((fixture, ballast)) = on_small_disk(LAYOUT) else { return };
    let tasks = ["skips", "repeats", "grows"].map(Task::new);
    let paths = tasks.each_ref().map(|task| fixture.task("inbox", task));
    assert!(fill(&fixture).len() > 10);
    let new = tasks.each_ref().map(|task| format!("{}# new\n", task.text()));
    let pieces = new.each_ref().map(|new| new.split_at(new.find('\n').unwrap() + 1));
    let [mut skips, mut repeats, mut grows] = [0, 1, 2].map(|nth| {
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).truncate(true).open(&paths[nth]).unwrap();
        let refused = file.write_all(pieces[nth].0.as_bytes()).unwrap_err();
        assert_eq!(Errno::from_io_error(&refused), Some(Errno::NOSPC));
        file
    });
    fs::remove_file(ballast).unwrap();
    let other = fixture.work().join("inbox/other.yaml");
    until_polled("room", || save(&other, Task::new("other").text().as_bytes()).ok());

    let refused = skips.write_all(pieces[0].1.as_bytes()).unwrap_err();
    assert_eq!(Errno::from_io_error(&refused), Some(Errno::NOSPC));
    assert_eq!(close(skips), Err(Errno::NOSPC));
    repeats.write_all(pieces[1].0.as_bytes()).unwrap();
    repeats.write_all(pieces[1].1.as_bytes()).unwrap();
    close(repeats).unwrap();
    grows.write_all(new[2].as_bytes()).unwrap();
    close(grows).unwrap();
    let texts = paths.map(|path| fs::read_to_string(path).unwrap());
    assert_eq!(texts, [tasks[0].text(), new[1].clone(), new[2].clone()]);
    fixture.fsck_clean();
}

// P4.3
#[test]
fn a_disk_that_is_full_of_the_log_takes_what_it_has_room_for() {
    let Some((fixture, _)) = super::disk::on_small_disk() else { return };
    // 16 MiB are free. Each of many small writes puts all of a chunk into the log.
    let filled = fixture.sh("head -c 20000000 /dev/zero | tr '\\0' x > big").failure();
    assert!(filled.stderr.contains("No space left"), "{filled}");
    let size = fs::metadata(fixture.path("big")).unwrap().len();
    assert!(size > 8 << 20, "{size} bytes fit");
    fixture.sh("rm big").success();
    // What is removed goes a moment later.
    let free = || rustix::fs::statvfs(fixture.root()).map(|stat| stat.f_bavail * stat.f_frsize);
    until_polled("`df` to tell of it", || free().is_ok_and(|free| free > 8 << 20).then_some(()));
    let task = fixture.work().join("inbox/t-1.yaml");
    until_polled("room", || save(&task, Task::new("t-1").text().as_bytes()).ok());
    fixture.fsck_clean();
}
