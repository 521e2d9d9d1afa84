//! Checked files that one saves in place while another replaces them.

use std::fs;
use std::path::Path;

use crate::harness::{Errno, Fixture, Setup, over_and_over, save};

const LAYOUT: &str = "workspaces: []
checks:
  - { path: \"notes/**/*.yaml\" }
";

fn text(who: &str, nth: usize) -> String {
    format!("who: {who}\nnth: {nth}\npad: \"{}\"\nend: {who} {nth}\n", who.repeat(3000))
}

/// Whether it is one text, and all of it.
fn is_whole(read: &str) -> bool {
    let field = |name: &str| read.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("");
    let nth = field("nth: ").parse();
    nth.is_ok_and(|nth| read == text(field("who: "), nth))
}

fn fixture() -> Fixture {
    let fixture = Setup::default().mounts(2).layout(LAYOUT).start();
    fixture.sh("mkdir notes").success();
    save(&fixture.path("notes/a.yaml"), text("first", 0).as_bytes()).unwrap();
    fixture
}

// P11.7
#[test]
fn who_reads_while_one_saves_in_place_and_another_replaces_reads_what_was_taken() {
    let fixture = fixture();
    let [here, there] = [0, 1].map(|nth| fixture.mount(nth).join("notes"));
    let read = |dir: &Path| {
        let read = fs::read_to_string(dir.join("a.yaml")).unwrap();
        assert!(is_whole(&read), "{} bytes: {:?}", read.len(), read.get(..40));
    };
    let in_place = |dir: &Path, nth: usize| {
        save(&dir.join("a.yaml"), text("in-place", nth).as_bytes()).unwrap();
        // What is not valid is refused, or nobody sees it.
        let refused = save(&dir.join("a.yaml"), b"pad: [");
        assert!(matches!(refused, Ok(()) | Err(Errno::INVAL)), "{refused:?}");
    };
    let replace = |dir: &Path, who: &str, nth: usize| {
        let new = dir.join(format!("a.{who}.tmp"));
        fs::write(&new, text(who, nth)).unwrap();
        fs::rename(&new, dir.join("a.yaml")).unwrap();
    };
    over_and_over(
        &[&here, &here, &there],
        |dir| read(dir),
        || {
            std::thread::scope(|scope| {
                scope.spawn(|| (0..400).for_each(|nth| in_place(&here, nth)));
                scope.spawn(|| (0..400).for_each(|nth| replace(&here, "one", nth)));
                scope.spawn(|| (0..400).for_each(|nth| replace(&there, "other", nth)));
            });
        },
    );
    fixture.fsck_clean();
}
