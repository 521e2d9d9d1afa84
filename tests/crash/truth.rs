//! What must be there after a crash, from what the workers said.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::harness::{Fixture, Said, lies, number_of, pile, whole};

/// What is known of one task: what was acknowledged, and what was tried and not answered.
#[derive(Debug, Default)]
struct Known {
    created: bool,
    owner: Option<usize>,
    may_own: BTreeSet<usize>,
    finished: bool,
    may_be_finished: bool,
    revision: u64,
    may_be_revision: u64,
}

/// All that is known.
#[derive(Debug, Default)]
pub struct Truth {
    tasks: BTreeMap<String, Known>,
    /// Lines of plain files that were acknowledged.
    lines: BTreeMap<String, usize>,
}

impl Truth {
    /// Takes in what a worker said.
    pub fn hear(&mut self, Said { nth, line }: &Said) {
        let words: Vec<&str> = line.split(' ').collect();
        let [word, what, id, ref rest @ ..] = words[..] else { panic!("{line}") };
        if what == "append" {
            *self.lines.entry(id.to_owned()).or_default() += usize::from(word == "ok");
            return;
        }
        let known = self.tasks.entry(id.to_owned()).or_default();
        let revision = || rest[0].parse::<u64>().unwrap();
        match (word, what) {
            ("try", "claim") => drop(known.may_own.insert(*nth)),
            ("no", "claim") => drop(known.may_own.remove(nth)),
            ("ok", "claim") => {
                assert!(known.owner.is_none(), "{id} was claimed twice: {known:?}");
                known.owner = Some(*nth);
            }
            ("try", "save") => known.may_be_revision = revision(),
            ("ok", "save") => known.revision = revision(),
            ("try", "finish") => known.may_be_finished = true,
            ("no", "finish") => known.may_be_finished = false,
            ("ok", "finish") => known.finished = true,
            ("ok", "create") => known.created = true,
            // Somebody may have claimed it between the write and the close, or not at all.
            ("try" | "no", "create") | ("no", "save") => {}
            _ => panic!("{line}"),
        }
    }

    /// Fails unless all that was acknowledged is there, and nothing is half there.
    #[track_caller]
    pub fn judge(&self, fixture: &Fixture) {
        let pile = pile(&fixture.work());
        let ledger = fixture.ledger();
        let claims = ledger.counts("claimed");
        for (id, known) in &self.tasks {
            if known.owner.is_none() && known.may_own.is_empty() && !known.created {
                self.judge_unacknowledged(fixture, id, pile.get(id));
                continue;
            }
            if !known.created && !pile.contains_key(id) {
                assert!(known.owner.is_none(), "{id} was claimed and is gone: {known:?}");
                continue;
            }
            if !known.created && known.owner.is_none() && self.is_draft(fixture, id) {
                continue;
            }
            let place = lies(&fixture.work(), &pile, id);
            let allowed = known.places();
            assert!(
                allowed.contains(&place),
                "{id} lies in {place}, not in {allowed:?}: {known:?}"
            );
            let claimed = usize::from(place != "inbox");
            assert_eq!(claims.get(id.as_str()).copied().unwrap_or(0), claimed, "{id}: {known:?}");
            let path = fixture.work().join(&place).join(format!("{id}.yaml"));
            let revision = whole(id, &fs::read(path).unwrap()).unwrap();
            assert!(
                revision == known.revision || revision == known.may_be_revision,
                "{id} has revision {revision}: {known:?}"
            );
        }
        self.judge_plain_files(fixture);
        for id in pile.keys() {
            assert!(self.tasks.contains_key(id), "{id} came from nowhere");
        }
        fixture.fsck_clean();
    }

    /// All lines that were acknowledged, in order, and at most one more.
    fn judge_plain_files(&self, fixture: &Fixture) {
        for (name, acknowledged) in &self.lines {
            let text = fs::read_to_string(fixture.path("scratchpad").join(name));
            let text = text.unwrap_or_default();
            let wanted: String = (0..=*acknowledged).map(|nth| format!("line {nth}\n")).collect();
            let lines = text.lines().count();
            let enough = lines == *acknowledged || lines == acknowledged + 1;
            assert!(enough && wanted.starts_with(&text), "{name}: {acknowledged}:\n{text}");
        }
    }

    /// A new file whose `close` did not return: not there, a draft, or whole.
    fn judge_unacknowledged(&self, fixture: &Fixture, id: &str, dirs: Option<&Vec<String>>) {
        let Some(dirs) = dirs else { return };
        assert_eq!(dirs, &["inbox"], "{id}");
        let text = fs::read(fixture.work().join(format!("inbox/{id}.yaml"))).unwrap();
        assert!(text.is_empty() || whole(id, &text).is_ok(), "half of {id} is there");
    }

    fn is_draft(&self, fixture: &Fixture, id: &str) -> bool {
        let text = fs::read(fixture.work().join(format!("inbox/{id}.yaml")));
        text.is_ok_and(|text| text.is_empty())
    }
}

impl Known {
    fn places(&self) -> Vec<String> {
        let lane = |state: &str, nth: &usize| format!("{state}/w{nth}");
        match (self.owner, self.finished) {
            (Some(nth), true) => vec![lane("done", &nth)],
            (Some(nth), false) if self.may_be_finished => {
                vec![lane("assigned", &nth), lane("done", &nth)]
            }
            (Some(nth), false) => vec![lane("assigned", &nth)],
            (None, _) => {
                let lanes = self.may_own.iter().map(|nth| lane("assigned", nth));
                lanes.chain(["inbox".to_owned()]).collect()
            }
        }
    }
}

/// The reader's part: each record in a lane is whole, whenever it is read.
pub fn lanes_are_whole(workspace: &std::path::Path) -> usize {
    let mut read = 0;
    for state in ["assigned", "done"] {
        for lane in fs::read_dir(workspace.join(state)).into_iter().flatten().flatten() {
            for entry in fs::read_dir(lane.path()).into_iter().flatten().flatten() {
                let name = entry.file_name().into_string().unwrap();
                let Some(id) = name.strip_suffix(".yaml") else { continue };
                // It may have moved on, or the daemon is dead.
                let Ok(text) = fs::read(entry.path()) else { continue };
                let revision = whole(id, &text).unwrap_or_else(|torn| panic!("{id}: {torn}"));
                let text = String::from_utf8(text).unwrap();
                assert_eq!(number_of(&text, "revision_at_end"), Some(revision));
                read += 1;
            }
        }
    }
    read
}
