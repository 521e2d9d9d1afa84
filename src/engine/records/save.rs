//! Saving: one validated version of a record, whichever way a program writes it.
//!
//! What must stay true: nothing invalid replaces something valid; a save that has not seen the
//! current version replaces nothing; an id lives in one place, so that saving it in another state
//! directory is the transition.

use std::sync::Arc;

use super::arrival::{Arrival, arrival};
use super::backup::come_back;
use super::draft::{keep_text, leave_draft, renamed_over, told_of_rename};
use super::made::{Left, Made};
use super::record::{Moving, Step};
use super::sight::Sight;
use super::whereabouts::is_theirs;
use crate::config::Policy;
use crate::engine::actors::privileges::drop_privileges;
use crate::engine::change::stop::gone;
use crate::engine::places::governed::{Home, path_of};
use crate::engine::plain_files::{files, plain};
use crate::engine::{About, Command, Fence, Refused, Slot, Stop, Terms, Text, Turn};
use crate::ledger::{EventName, Via};
use crate::names::{Dentry, FileName, TreePath};
use crate::numbers::{G, Ino, RecordKey};
use crate::refusal::{Refusal, Rule};
use crate::store::{Class, Draft, Node, NodeType, Record, Standing, StoreError};

/// Saves a whole text as the content of a governed file, by its inode.
#[derive(Clone, Debug)]
pub struct Save {
    /// The file.
    pub ino: Ino,
    /// What the writer saw.
    pub sight: Sight,
    /// The record that it was opened as: it may have another file by now.
    pub record: Option<RecordKey>,
    /// What it wrote.
    pub text: Text,
    /// The writer set the file's time after its last write: that time stays.
    pub keeps_time: bool,
    /// The claim under which it was opened.
    pub fence: Option<Fence>,
    /// Where it lay when it was opened: what is told where it is gone.
    pub lay: Option<TreePath>,
}

/// How a save ended.
#[derive(Clone, Debug)]
pub enum Saved {
    /// It is the content now; a record's version, or none for a plain file or a flagged draft.
    Kept(Option<Made>),
    /// It was refused, and something was changed all the same (a draft keeps its bytes).
    Refused(Refusal),
}

/// Keeps what was written to a draft that cannot become valid any more, with the reason.
#[derive(Clone, Debug)]
pub struct SaveDraft {
    /// The file.
    pub ino: Ino,
    /// The record that it was opened as: it may have another file by now.
    pub record: Option<RecordKey>,
    /// What was written.
    pub bytes: Arc<[u8]>,
    /// Why it is refused.
    pub refusal: Refusal,
    /// Where it lay when it was opened: what is told where it is gone.
    pub lay: Option<TreePath>,
}

impl Command for Save {
    type Out = Saved;

    fn operation(&self) -> &'static str {
        "save"
    }

    fn about(&self) -> About {
        self.record.map_or(About::Node(self.ino), About::Record)
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Saved, Stop> {
        let file = file_of(turn, self.ino, self.record)?;
        let mut node = file.ok_or_else(|| lost(gone(), self.lay.clone(), &self.text.bytes))?;
        if !self.keeps_time {
            node.mtime = turn.now;
        }
        drop_privileges(turn, &mut node);
        match node.class {
            Class::Plain => {
                plain::save(turn, &mut node, &self.text.bytes)?;
                if let Some(at) = turn.name_of_file(&node)? {
                    turn.file_saved(at.as_ref(), &node, files::Saved::by(None))?;
                }
                Ok(Saved::Kept(None))
            }
            Class::Draft => {
                let draft = turn.txn.draft(node.ino)?.ok_or_else(gone)?;
                save_draft(turn, node, draft, &self.sight, &self.text)
            }
            Class::Record => {
                let record = turn.txn.record_at(node.ino)?.ok_or_else(gone)?;
                let home = home_of(turn, &record)?;
                if let Some(fence) = &self.fence {
                    fence.allows(turn.context, &record, &home).map_err(|refusal| {
                        Stop::rejected(refusal, home.file_path(), Arc::clone(&self.text.bytes))
                    })?;
                }
                let text = (&self.sight, &self.text);
                let made = next_version(turn, record, &home, &mut node, text, None)?;
                Ok(Saved::Kept(Some(made)))
            }
        }
    }
}

impl Save {
    /// A save of a file by its inode alone.
    #[must_use]
    pub fn of(ino: Ino, sight: Sight, text: Text) -> Save {
        Save { ino, record: None, sight, text, keeps_time: false, fence: None, lay: None }
    }
}

/// What is saved: the handle's file, or that of its record now.
fn file_of(
    turn: &Turn<'_>,
    ino: Ino,
    record: Option<RecordKey>,
) -> Result<Option<Node>, StoreError> {
    let named = turn.txn.node(ino)?.filter(|node| node.nlink > 0);
    let (None, Some(record)) = (&named, record) else { return Ok(named) };
    match turn.txn.record(record)?.map(|record| record.standing) {
        Some(Standing::Live { ino, .. }) => turn.txn.node(ino),
        _ => Ok(None),
    }
}

/// The handle's file is gone: what was written is kept as rejected.
fn lost(refusal: Refusal, lay: Option<TreePath>, bytes: &Arc<[u8]>) -> Stop {
    Stop::rejected(refusal, lay.unwrap_or_else(TreePath::root), Arc::clone(bytes))
}

impl Command for SaveDraft {
    type Out = Saved;

    fn operation(&self) -> &'static str {
        "write"
    }

    fn terms(&self) -> Terms {
        Terms::UNFLUSHED
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Saved, Stop> {
        let lost = || lost(self.refusal.clone(), self.lay.clone(), &self.bytes);
        let node = file_of(turn, self.ino, self.record)?.ok_or_else(lost)?;
        match node.class {
            Class::Draft => {
                let draft = turn.txn.draft(node.ino)?.ok_or_else(gone)?;
                let home = match turn.slot(draft.dir, &draft.name)? {
                    Slot::Record(home) => home,
                    Slot::Plain => return Err(gone().into()),
                };
                leave_draft(turn, node, draft, &home, &self.refusal, &self.bytes)?;
                turn.keep(refused(&home, self.refusal.clone(), self.bytes))?;
                Ok(Saved::Refused(self.refusal))
            }
            Class::Record => {
                let record = turn.txn.record_at(node.ino)?.ok_or_else(gone)?;
                let home = home_of(turn, &record)?;
                let text = Text::new(Arc::clone(&self.bytes));
                let refusal = turn.told_whose(&text, &home, self.refusal)?;
                Err(Stop::rejected(refusal, home.file_path(), self.bytes))
            }
            Class::Plain => Err(lost()),
        }
    }
}

/// Where a live record lies.
pub(in crate::engine) fn home_of(turn: &Turn<'_>, record: &Record) -> Result<Home, Stop> {
    if let Standing::Live { dir, name, .. } = &record.standing
        && let Slot::Record(home) = turn.slot(*dir, name)?
    {
        return Ok(*home);
    }
    Err(gone().into())
}

/// Makes `text` the next version of `record`; that of the event `from_g`, where it is brought back.
pub(in crate::engine) fn next_version(
    turn: &mut Turn<'_>,
    mut record: Record,
    home: &Home,
    node: &mut Node,
    (sight, text): (&Sight, &Text),
    from_g: Option<G>,
) -> Result<Made, Stop> {
    let refuse = |refusal| Stop::rejected(refusal, home.file_path(), Arc::clone(&text.bytes));
    turn.context.may_write(home.kind(), home.state, home.owner.as_ref()).map_err(refuse)?;
    sight.require_current(&record, home).map_err(refuse)?;
    if turn.revives(&record, home).map_err(refuse)? {
        turn.take_up(&mut record)?;
    }
    let before = turn.content(&record)?;
    if before[..] == text.bytes[..] {
        // The same bytes make no version, and mend nothing; but they end a flag by rules that hold no more.
        if !record.is_valid() && turn.flaw(&record)?.is_none() {
            record = turn.unflag(record, home, node, text)?;
        }
        turn.note_life(&record)?;
        return Ok(Made::of(&record));
    }
    let before = Text::new(before);
    turn.require_own_names(home, &before, text).map_err(refuse)?;
    let judged = match text.judge_next(home, record.status.as_deref(), turn.context.role) {
        Err(refusal) => Err(turn.told_whose(text, home, refusal)?),
        judged => judged,
    };
    let (valid, links) = match judged.map_err(refuse).and_then(|()| turn.links(home, text)) {
        Ok(links) => (true, links),
        Err(Stop::Refused(why)) if turn.flags(home, text, &why.refusal) => (false, None),
        Err(stop) => return Err(stop),
    };
    if valid {
        record.status = text.status(home);
    }
    let (content, links) = (Some(&text.bytes[..]), links.as_ref());
    let event = if from_g.is_some() { EventName::RESTORED } else { EventName::SAVED };
    let step = Step { content, valid, links, from_g, ..Step::of(event) };
    Ok(Made::of(&turn.step(record, home, node, step)?))
}

/// Saves a draft: it becomes a record, or stays a draft with the reason.
fn save_draft(
    turn: &mut Turn<'_>,
    node: Node,
    draft: Draft,
    sight: &Sight,
    text: &Text,
) -> Result<Saved, Stop> {
    let Slot::Record(home) = turn.slot(draft.dir, &draft.name)? else {
        return Err(gone().into());
    };
    if text.says_id(&home) != Some(home.id.as_str())
        && let Some(over) = renamed_over(turn.txn, &home)?
    {
        // Its rename is the save, and is judged.
        keep_text(turn, node, draft, &told_of_rename(&home, &over), &text.bytes)?;
        return Ok(Saved::Kept(None));
    }
    let mut admitted = node.clone();
    match admit(turn, &home, &mut admitted, (sight, text), EventName::CREATED) {
        Ok(made) => {
            turn.txn.delete_draft(node.ino)?;
            Ok(Saved::Kept(Some(made)))
        }
        Err(Stop::Store(error)) => Err(Stop::Store(error)),
        Err(Stop::Refused(why)) => {
            let (refusal, bytes) = (why.refusal, &text.bytes);
            // A copy of a record that is not valid moves nothing, and whoever made it must hear that.
            let is_taken = turn.takes_as_draft(&home, &refusal)?;
            leave_draft(turn, node, draft, &home, &refusal, bytes)?;
            if is_taken {
                return Ok(Saved::Kept(None));
            }
            turn.keep(refused(&home, refusal.clone(), Arc::clone(bytes)))?;
            Ok(Saved::Refused(refusal))
        }
    }
}

/// A text that was refused, as `why` is told of it.
fn refused(home: &Home, refusal: Refusal, bytes: Arc<[u8]>) -> Refused {
    Refused { refusal, path: home.file_path(), rejected: Some(bytes), kept: true }
}

/// Takes `text` in the file `node` as a record at `home`: a new one, one that comes back, or one
/// that lies elsewhere and hereby makes a transition. Refuses without having changed anything.
pub(in crate::engine) fn admit(
    turn: &mut Turn<'_>,
    home: &Home,
    node: &mut Node,
    (sight, text): (&Sight, &Text),
    event: EventName,
) -> Result<Made, Stop> {
    let refuse = |refusal| Stop::rejected(refusal, home.file_path(), Arc::clone(&text.bytes));
    let known = turn.txn.record_named(home.governed.workspace, &home.id)?;
    if let Some(record) = &known
        && record.ino().is_some_and(|ino| ino != node.ino)
    {
        return move_by_copy(turn, record.clone(), home, node, (sight, text));
    }
    turn.context.may_make(home, known.as_ref()).map_err(refuse)?;
    let is_parked = matches!(&known, Some(Record { standing: Standing::Parked { .. }, .. }));
    let arrival = arrival(turn, known.as_ref(), home, (sight, text))?;
    let judged = match (arrival, home.governed.binding.policy) {
        (Arrival::Anew, _) => text.judge(home),
        // It comes back as it was: whether that is flagged it is asked anew.
        (Arrival::AsItWas, Policy::Flag) => Ok(()),
        (Arrival::AsItWas | Arrival::Next, _) => {
            let status = known.as_ref().and_then(|record| record.status.as_deref());
            text.judge_next(home, status, turn.context.role)
        }
    };
    let valid = judged.is_ok();
    if let Err(refusal) = judged
        && (arrival == Arrival::Anew || !turn.flags(home, text, &refusal))
    {
        return Err(refuse(refusal));
    }
    turn.require_own_names(home, &Text::new([]), text).map_err(refuse)?;
    // It comes back elsewhere: whose it is and where it lay count as if it had never left.
    if let Some(record) = &known
        && is_parked
        && (record.state != home.kind().state(home.state).name || record.owner != home.owner)
    {
        turn.legal(record, home).map_err(refuse)?;
        let (record, via) = (record.clone(), Some(Via::Backup));
        return Ok(Made::of(&turn.transition(record, home, node, Moving::New(text), via)?));
    }
    let links = if valid && arrival != Arrival::AsItWas { turn.links(home, text)? } else { None };
    let links = links.as_ref();
    let record = match known {
        Some(record) if arrival == Arrival::AsItWas => come_back(turn, record, home, node)?,
        None => turn.create_record(home, node, event, (text, links), None)?,
        Some(mut record) => {
            let event = if is_parked { EventName::SAVED } else { event };
            if is_parked && record.is_lapsed() {
                turn.take_up(&mut record)?;
            }
            record.begin_again(home.owner.is_some());
            if valid {
                record.status = text.status(home);
            }
            let content = Some(&text.bytes[..]);
            turn.step(record, home, node, Step { content, valid, links, ..Step::of(event) })?
        }
    };
    Ok(Made::of(&record))
}

/// A record that lives elsewhere was written here: the transition by copy.
fn move_by_copy(
    turn: &mut Turn<'_>,
    record: Record,
    home: &Home,
    node: &mut Node,
    (sight, text): (&Sight, &Text),
) -> Result<Made, Stop> {
    let refuse = |refusal| Stop::rejected(refusal, home.file_path(), Arc::clone(&text.bytes));
    let lies = home_of(turn, &record)?;
    let old_ino = record.ino().ok_or_else(gone)?;
    require_not_theirs(&record, &lies, home).map_err(refuse)?;
    turn.require_taking(&lies, old_ino)?;
    turn.require_made_of(&record, (&lies.file_path(), home), (sight, text))?;
    judge_on_the_way(turn, &record, &lies, home, text)?;
    let moved = turn.transition(record, home, node, Moving::New(text), Some(Via::Copy))?;
    let old = turn.txn.node(old_ino)?.ok_or_else(gone)?;
    turn.take_away(&old, Dentry::of(lies.dir, lies.name.clone()))?;
    let left = Left { parent: lies.dir, name: lies.name, node: old };
    Ok(Made { left: Some(left), ..Made::of(&moved) })
}

/// A record that is another's, or lies in that state already, is not moved by being written at `home`.
pub(in crate::engine) fn require_not_theirs(
    record: &Record,
    lies: &Home,
    home: &Home,
) -> Result<(), Refusal> {
    if !is_theirs(record, home) {
        return Ok(());
    }
    let lies = lies.file_path();
    let remedy = match home.owner {
        None if record.owner.is_some() => {
            let (from, to) = (lies.in_shell(), home.governed.dir_path().in_shell());
            format!("to move it there: mv {from} {to}/; for a new record take another id")
        }
        _ => "someone else was faster, or the id is in use: take another one".to_owned(),
    };
    let reason = format!("`{}` is `{lies}` already: an id lives in one place", home.id);
    Err(Refusal::new(Rule::Taken, reason, remedy))
}

/// Judges a new text of `record`, which lies at `lies` and is on its way to `home`. It may still
/// carry the status that the record had, because the transition writes the new one; all else must
/// be right for the new state.
pub(super) fn judge_on_the_way(
    turn: &Turn<'_>,
    record: &Record,
    lies: &Home,
    home: &Home,
    text: &Text,
) -> Result<(), Stop> {
    let refuse = |refusal| Stop::rejected(refusal, home.file_path(), Arc::clone(&text.bytes));
    turn.legal(record, home).map_err(refuse)?;
    let document = text.document().map_err(refuse)?;
    // A copy of what is flagged is flagged.
    if turn.content(record)?[..] == text.bytes[..] {
        turn.require_unflagged(record, home)?;
    }
    if text.status(home) == record.status {
        let judged = home.governed.binding.judge(document.value(), &home.id, lies.state);
        judged.map_err(|fault| refuse(text.refusal(fault)))
    } else {
        text.judge(home).map_err(refuse)
    }
}

/// The content of a plain file or a draft, to be judged as a record's.
pub(in crate::engine) fn content_of(
    turn: &Turn<'_>,
    node: &Node,
    name: &FileName,
) -> Result<Text, Stop> {
    if node.node_type != NodeType::File {
        let refusal = Refusal::new(
            Rule::Draft,
            format!("`{name}` is not a regular file and cannot be a record"),
            "write a regular file",
        );
        return Err(Stop::kept(refusal, path_of(turn.txn, node.parent, name)?));
    }
    let bytes = match node.class {
        Class::Draft => turn.txn.draft(node.ino)?.ok_or_else(gone)?.content,
        // One byte more than allowed is enough to be judged as too large.
        _ => plain::read(turn.txn, node, 0, crate::limits::RECORD_BYTES_MAX + 1)?,
    };
    Ok(Text::new(bytes))
}
