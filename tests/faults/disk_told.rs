//! What is heard of a full disk, and what is over there all the same.

use std::fs;
use std::path::PathBuf;

use super::disk::{fill, small_disk};
use crate::harness::{Fixture, Setup, Task};

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
