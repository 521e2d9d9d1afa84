//! What a staged text is to others: its writer, whom a claim waits for, and what is kept of it where it is refused.

use super::busy::Writer;
use super::staged::Staged;
use crate::engine::{Base, Home, SaveDraft};
use crate::numbers::Ino;
use crate::refusal::Refusal;

impl Staged {
    /// What it counts as while it has written what is not judged.
    pub fn writer(&self) -> Writer {
        let Some(known) = self.what.known() else { return Writer::default() };
        let saw = match known.base {
            Base::Seen(version) | Base::Heard(version) => Some(version),
            Base::Unseen | Base::Current => None,
        };
        Writer { record: Some(known.key), under: known.fence.clone(), saw }
    }

    /// What keeps its text, which is refused.
    pub fn refused_text(&self, ino: Ino, refusal: Refusal) -> SaveDraft {
        let lay = self.what.home().map(Home::file_path);
        SaveDraft { ino, record: self.what.key(), bytes: self.whole(), refusal, lay }
    }
}
