//! One way of saving, judged: a good save, two bad ones, and a good one after them.
//!
//! A way is a shell script that changes the record `$F`: it turns the line `$OLD_LINE` into
//! `$NEW_LINE`. A program that writes whole files takes them from `$NEW`.

use std::fs;

use crate::harness::{Fixture, Ran, Shell, Task, needs, python};

/// A way of saving.
pub struct Way<'a> {
    /// What must be installed.
    pub needs: &'a [&'a str],
    /// What is run.
    pub script: &'a str,
    /// Parts of the names of files that this way leaves beside the record.
    pub leaves: &'a [&'a str],
    /// Whether the program tells of a refusal by its exit code and with a message.
    pub tells: bool,
}

impl Default for Way<'_> {
    fn default() -> Self {
        Way { needs: &[], script: "", leaves: &[], tells: true }
    }
}

/// A change of one line.
struct Change {
    what: &'static str,
    old: &'static str,
    new: &'static str,
}

const GOOD: Change = Change { what: "good", old: "priority: normal", new: "priority: high" };
const GOOD_AGAIN: Change =
    Change { what: "good again", old: "priority: high", new: "priority: low # by hand" };
/// What no further byte can mend: refused as soon as it is written.
const WRONG: Change = Change { what: "wrong", old: "priority: high", new: "priority: nonsense" };
/// What only the end shows: refused when it is closed.
const UNFINISHED: Change =
    Change { what: "unfinished", old: "revision_at_end: 0", new: "revision_at_end: [0" };

impl Way<'_> {
    /// Judges this way in bash.
    #[track_caller]
    pub fn judge(&self) {
        self.judge_in(|fixture| fixture.bash());
    }

    /// Judges this way in dash.
    #[track_caller]
    pub fn judge_in_dash(&self) {
        self.judge_in(|fixture| Shell::dash(fixture.root()));
    }

    #[track_caller]
    fn judge_in(&self, shell: impl Fn(&Fixture) -> Shell<'_>) {
        if !needs(self.needs) {
            return;
        }
        let fixture = Fixture::new();
        let path = fixture.task("inbox", &Task::new("t-1"));
        let before = fixture.ledger();
        for change in [GOOD, WRONG, UNFINISHED, GOOD_AGAIN] {
            let old = fs::read_to_string(&path).unwrap();
            let new = old.replace(change.old, change.new);
            assert_ne!(old, new);
            let file = fixture.outside("new.yaml");
            fs::write(&file, &new).unwrap();
            let shell = shell(&fixture).with("F", &path).with("NEW", &file);
            let shell = shell.with("OLD_LINE", change.old).with("NEW_LINE", change.new);
            let shell = shell.with("PYTHON", python()).with("OUT", fixture.outside(""));
            let ran = shell.with("TERM", "dumb").run(self.script);
            let good = change.what.starts_with("good");
            if good {
                ran.success();
                let is = fs::read_to_string(&path).unwrap();
                assert_eq!(is, new, "{}: not the bytes that were written", change.what);
            } else {
                self.judge_refusal(&fixture, &ran, &old, &new, change.what);
            }
            self.judge_rest(&fixture, good);
        }
        let ledger = fixture.ledger();
        let mut events = ledger.after(before.last_g());
        // The program's own files may lie where saves are events, too.
        events.retain(|event| event.text("kind") == "task");
        let saves: Vec<_> = events.iter().filter(|event| event.name() == "saved").collect();
        let names: Vec<_> = events.iter().map(|event| event.name()).collect();
        assert_eq!(saves.len(), 2, "one save is one event: {names:?}");
        assert!(!names.iter().any(|n| ["removed", "created", "left"].contains(n)), "{names:?}");
        assert_eq!(saves[0].versions(), (Some(1), Some(2)));
        assert_eq!(saves[1].versions(), (Some(2), Some(3)));
        fixture.fsck_clean();
    }

    #[track_caller]
    fn judge_refusal(&self, fixture: &Fixture, ran: &Ran, old: &str, new: &str, what: &str) {
        println!("{what}: exit {}: {}", ran.code, ran.said().trim());
        if self.tells {
            assert!(ran.code != 0 && !ran.said().trim().is_empty(), "{what}: no word: {ran}");
        }
        let path = fixture.path("work/inbox/t-1.yaml");
        let is = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{error}: {ran}"));
        assert_eq!(is, old, "{what}: the old version is not there any more: {ran}");
        let why = fixture.why();
        assert!(why.contains("work/inbox/t-1.yaml"), "{what}: `why` does not name it:\n{why}");
        let beside = fs::read_to_string(fixture.path("work/inbox/t-1.yaml.why")).unwrap();
        let code = if what == "wrong" { "W011" } else { "W010" };
        assert!(why.contains(code), "{what}: `why` lacks {code}:\n{why}");
        assert!(beside.contains(code), "{what}: X.yaml.why lacks {code}:\n{beside}");
        // What is refused at once may be kept up to there only; what is refused at the end, whole.
        let kept = fixture.rejected();
        let mut kept = kept.iter().filter(|bytes| !bytes.is_empty());
        let is_kept = match what {
            "wrong" => kept.any(|bytes| {
                let text = String::from_utf8_lossy(bytes);
                new.as_bytes().starts_with(bytes) && text.contains("nonsense")
            }),
            _ => kept.any(|bytes| bytes == new.as_bytes()),
        };
        assert!(is_kept, "{what}: not kept in .workfs/rejected: {:?}", texts(fixture));
    }

    /// Nothing lies about afterwards but what the program is known to leave.
    #[track_caller]
    fn judge_rest(&self, fixture: &Fixture, good: bool) {
        for entry in fs::read_dir(fixture.path("work/inbox")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let known = name == "t-1.yaml" || self.leaves.iter().any(|part| name.contains(part));
            assert!(known, "left behind: {name} (good: {good})");
        }
    }
}

fn texts(fixture: &Fixture) -> Vec<String> {
    let kept = fixture.rejected();
    kept.into_iter().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect()
}
