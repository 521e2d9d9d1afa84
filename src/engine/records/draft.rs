//! Drafts: record-like files whose text is no record, or is not judged yet.
//!
//! What must stay true: a draft keeps what was written to it, and the reason why it is no record.
//! One that a program writes beside a record, to rename it over the record, is judged by that
//! rename. Deliberately not here: judging a text, and how a draft becomes a record (`save`).

use super::backup::come_back;
use super::whereabouts::{is_parked_at, is_theirs};
use crate::engine::change::stop::gone;
use crate::engine::places::governed::Home;
use crate::engine::{About, Command, Effect, Slot, Stop, Terms, Text, Turn};
use crate::ledger::{EventName, Field, Payload};
use crate::names::{Dentry, FileName};
use crate::numbers::Ino;
use crate::refusal::{Refusal, Rule};
use crate::store::{Class, Draft, Node, Read, Record, RefusedText, Standing, StoreError};

/// The record's name over which a program is about to rename the draft at `home`: it has the name for
/// it (see `Kind::renamed_over`), the record lies beside it, and there never was one of its own id.
/// A text that says this id makes it a record all the same.
///
/// # Errors
/// A failure of the store.
pub fn renamed_over(read: &dyn Read, home: &Home) -> Result<Option<FileName>, StoreError> {
    let Some(over) = home.kind().renamed_over(&home.name) else { return Ok(None) };
    let beside = read.lookup(home.dir, &over)?;
    if beside.is_none_or(|beside| beside.class != Class::Record) {
        return Ok(None);
    }
    let known = read.record_named(home.governed.workspace, &home.id)?;
    Ok(known.is_none().then_some(over))
}

/// The record that lies elsewhere and would be moved by a text at `home`, and its file.
///
/// # Errors
/// A failure of the store.
pub fn moved_by_copy(read: &dyn Read, home: &Home) -> Result<Option<(Record, Ino)>, StoreError> {
    let known = read.record_named(home.governed.workspace, &home.id)?;
    let known = known.filter(|record| !is_theirs(record, home));
    Ok(known.and_then(|record| record.ino().map(|file| (record, file))))
}

/// What is told of such a draft.
pub(super) fn told_of_rename(home: &Home, over: &FileName) -> Refusal {
    let field = &home.kind().fields().id;
    Refusal::new(
        Rule::Draft,
        format!("`{}` is named like what a program writes to rename it over `{over}`", home.name),
        format!("rename it over that; to make it a record of its own, say `{field}: {}`", home.id),
    )
}

/// Leaves a draft a draft, with the bytes and the reason; where a record is parked under its name
/// (an editor moved it to a backup), the record's last version comes back instead.
pub(super) fn leave_draft(
    turn: &mut Turn<'_>,
    mut node: Node,
    draft: Draft,
    home: &Home,
    refusal: &Refusal,
    bytes: &[u8],
) -> Result<(), Stop> {
    let known = turn.txn.record_named(home.governed.workspace, &home.id)?;
    let lives = known.as_ref().is_some_and(|known| !matches!(known.standing, Standing::Gone));
    if let Some(record) = known.filter(|record| is_parked_at(record, home)) {
        turn.txn.delete_draft(node.ino)?;
        come_back(turn, record, home, &mut node)?;
    } else if draft.why.is_none()
        && (matches!(refusal.rule, Rule::Taken | Rule::LeaseOver)
            || lives && matches!(refusal.rule, Rule::Stale | Rule::Forbidden | Rule::BeingWritten))
    {
        // A claim by copy that came too late: the id lives elsewhere, so nothing stays here.
        turn.take_away(&node, Dentry::of(home.dir, home.name.clone()))?;
    } else {
        keep_text(turn, node, draft, refusal, bytes)?;
        turn.drafted(home, refusal)?;
    }
    Ok(())
}

/// Keeps `bytes` as the text of a draft, and the reason why it is one.
pub(in crate::engine) fn keep_text(
    turn: &mut Turn<'_>,
    mut node: Node,
    draft: Draft,
    refusal: &Refusal,
    bytes: &[u8],
) -> Result<(), StoreError> {
    node.size = bytes.len() as u64;
    node.ctime = turn.now;
    turn.txn.update_node(&node)?;
    turn.effect(Effect::Attr { ino: node.ino, also_origin: true });
    let why = RefusedText::from(refusal.clone());
    turn.txn.put_draft(&Draft { why: Some(why), content: bytes.to_vec(), ..draft })
}

/// Empties a draft. A file that is none (any more), or has lost its name, stays as it is.
#[derive(Clone, Debug)]
pub struct EmptyDraft {
    /// The file.
    pub ino: Ino,
}

impl Command for EmptyDraft {
    type Out = Node;

    fn operation(&self) -> &'static str {
        "truncate"
    }

    fn about(&self) -> About {
        About::Node(self.ino)
    }

    fn terms(&self) -> Terms {
        Terms::UNFLUSHED
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Node, Stop> {
        let mut node = turn.txn.node(self.ino)?.ok_or_else(gone)?;
        let Some(draft) = turn.txn.draft(node.ino)? else { return Ok(node) };
        if draft.content.is_empty() {
            return Ok(node);
        }
        let Slot::Record(home) = turn.slot(draft.dir, &draft.name)? else { return Ok(node) };
        turn.require_write(&home)?;
        let refusal = match renamed_over(turn.txn, &home)? {
            Some(over) => Some(told_of_rename(&home, &over)),
            None => Text::new([]).document().err(),
        };
        (node.size, node.mtime) = (0, turn.now);
        if let Some(refusal) = refusal {
            keep_text(turn, node.clone(), draft, &refusal, &[])?;
        }
        node.ctime = turn.now;
        Ok(node)
    }
}

impl Turn<'_> {
    /// Whether a new file at `home` that was refused so is a draft all the same: saves are flagged there,
    /// and nothing else has its id.
    pub(in crate::engine) fn takes_as_draft(
        &self,
        home: &Home,
        refusal: &Refusal,
    ) -> Result<bool, StoreError> {
        if !home.governed.binding.policy.takes(refusal.rule) {
            return Ok(false);
        }
        let known = self.txn.record_named(home.governed.workspace, &home.id)?;
        Ok(known.is_none_or(|known| known.standing == Standing::Gone))
    }

    /// The event of a draft that was saved and not taken.
    pub(in crate::engine) fn drafted(
        &mut self,
        home: &Home,
        refusal: &Refusal,
    ) -> Result<(), StoreError> {
        let path = home.file_path().to_string();
        let payload = Payload::of(&[
            ("path", Field::Text(&path)),
            ("rule", Field::Text(refusal.rule.code())),
        ]);
        self.append(None, home.happening(EventName::DRAFTED, payload))?;
        Ok(())
    }
}
