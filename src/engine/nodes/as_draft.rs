//! A rename to a record's name of what is no record, where saves are flagged.

use super::rename::Rename;
use crate::engine::records::draft::keep_text;
use crate::engine::{Home, Stop, Text, Turn};
use crate::limits::CHUNK_INDEX_MAX;
use crate::refusal::Refusal;
use crate::store::{Class, Draft, Node};

impl Rename {
    /// Where saves are flagged, what is no record is a draft, as if it had been written there.
    pub(in crate::engine) fn take_as_draft(
        self,
        turn: &mut Turn<'_>,
        mut source: Node,
        target: Option<Node>,
        home: &Home,
        text: &Text,
        refusal: &Refusal,
    ) -> Result<(), Stop> {
        let before = source.clone();
        if source.class == Class::Plain {
            turn.txn.delete_chunks(source.ino, 0, CHUNK_INDEX_MAX)?;
            (source.class, source.chunks) = (Class::Draft, 0);
        }
        let (dir, name) = (self.to.dir, self.to.name.clone());
        let draft = Draft { ino: source.ino, dir, name, why: None, content: Vec::new() };
        keep_text(turn, source.clone(), draft, refusal, &text.bytes)?;
        turn.drafted(home, refusal)?;
        source.size = text.bytes.len() as u64;
        turn.lose_backup(self.from.dir, &before, None)?;
        turn.relink(self.from.as_ref(), self.to.as_ref(), &source, target)?;
        if before.class == Class::Plain {
            turn.file_left(self.from.as_ref(), source.ino, &home.file_path())?;
        }
        Ok(())
    }
}
