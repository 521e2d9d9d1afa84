//! Flagged records: which saves the policy `flag` takes, what is wrong with what it took, and the
//! end of a flag.
//!
//! A row says only that its text was not right when it was saved; what is wrong with it is found
//! anew, by the rules that hold now. What must stay true: whoever tells of it, and whatever holds
//! the record back because of it, asks here; a record that is right by the present rules is held by
//! nothing; the status of a flagged text counts for nothing, so that a move of status that is not
//! allowed cannot be made by saving it twice. Deliberately not here: the rules of a text (`judge`),
//! and a draft's reason, which is kept.

use super::record::Step;
use super::whereabouts::{home_of_parked, is_parked_at, name_of_parked};
use crate::config::{Config, Policy};
use crate::engine::claims::circle::{Said, links_of};
use crate::engine::places::governed::{Home, Slot, governed, slot};
use crate::engine::plain_files::plain;
use crate::engine::{Stop, Text, Turn};
use crate::kind::Role;
use crate::ledger::EventName;
use crate::limits::RECORD_BYTES_MAX;
use crate::names::Dentry;
use crate::refusal::{Door, Refusal, Rule};
use crate::store::{Node, Read, Record, Standing, StoreError};

/// Why a record is flagged, or would be if it came back from its backup; `None`: it is not. `role` is whose
/// ways out are told.
///
/// # Errors
/// A failure of the store.
pub fn flaw(
    read: &dyn Read,
    config: &Config,
    record: &Record,
    role: Role,
) -> Result<Option<Refusal>, StoreError> {
    let wrong = wrong(read, config, record, role)?;
    let is_flagged = matches!(record.standing, Standing::Live { valid: false, .. });
    Ok(wrong.or_else(|| is_flagged.then(outlived)))
}

/// The reason of a flag for which there is none any more.
fn outlived() -> Refusal {
    let reason = "it was flagged when it was saved, and nothing is wrong with it now";
    Refusal::new(Rule::Draft, reason, "save it once more as it is, or move it on")
}

/// What is wrong with the text of such a record, by the rules that hold now.
fn wrong(
    read: &dyn Read,
    config: &Config,
    record: &Record,
    role: Role,
) -> Result<Option<Refusal>, StoreError> {
    let Some(Dentry { dir, name }) = place(read, config, record)? else { return Ok(None) };
    let Slot::Record(home) = slot(read, config, dir, &name)? else { return Ok(None) };
    if matches!(record.standing, Standing::Parked { .. }) && !is_parked_at(record, &home) {
        return Ok(None);
    }
    let text = Text::of(read, record)?;
    let next = || text.judge_next(&home, record.status.as_deref(), role);
    match text.judge(&home).and_then(|()| next()) {
        // Whoever saved it might do that, or it had been refused.
        Ok(()) | Err(Refusal { rule: Rule::Forbidden, .. }) => {}
        Err(refusal) => return Ok(Some(refusal)),
    }
    let of = (home.governed.workspace, &home.id);
    Ok(match links_of(read, of, home.kind(), &text, None)? {
        Said::Circle(refusal) => Some(refusal),
        Said::Nothing | Said::Links(_) => None,
    })
}

/// What the present rules say against a text that was saved when others held. The record is what it was
/// until its next text, which must be right, or is flagged.
#[derive(Clone, Debug)]
pub struct Breach {
    /// The first rule that it breaks.
    pub refusal: Refusal,
    /// Its status has no place where it lies.
    pub is_astray: bool,
    /// By the policy `flag` a text that breaks this is saved all the same.
    pub is_flagged: bool,
}

impl Breach {
    /// The same for who asks about the record.
    #[must_use]
    pub fn told(self) -> Refusal {
        let until = match self.is_flagged {
            true => "its next text is flagged unless this is mended",
            false => "no text of it can be saved before this is mended",
        };
        Refusal { reason: format!("{until}: {}", self.refusal.reason), ..self.refusal }
    }
}

/// Looks whether the text of a record that is not flagged is right by the rules that hold now.
///
/// # Errors
/// A failure of the store.
pub fn breach(
    read: &dyn Read,
    config: &Config,
    record: &Record,
) -> Result<Option<Breach>, StoreError> {
    let home = match &record.standing {
        Standing::Live { dir, name, valid: true, .. } => match slot(read, config, *dir, name)? {
            Slot::Record(home) => Some(*home),
            Slot::Plain => None,
        },
        // By the policy `flag` it comes back with whatever it says.
        Standing::Parked { .. } => home_of_parked(read, config, record)?
            .filter(|home| home.governed.binding.policy != Policy::Flag),
        Standing::Live { .. } | Standing::Gone => None,
    };
    let Some(home) = home else { return Ok(None) };
    let saved = Text::of(read, record)?;
    // What comes back is what the backup says by then.
    let backup = match &record.standing {
        Standing::Parked { .. } => backup_text(read, record)?,
        Standing::Live { .. } | Standing::Gone => None,
    };
    let text = backup.as_ref().unwrap_or(&saved);
    let Err(refusal) = text.judge(&home) else { return Ok(None) };
    let here = &home.kind().state(home.state).status;
    let is_out = |text: &Text| text.status(&home).is_some_and(|said| !here.contains(&said));
    let is_flagged = home.governed.binding.policy.takes(refusal.rule);
    Ok(Some(Breach { refusal, is_astray: is_out(text) && is_out(&saved), is_flagged }))
}

/// What the backup of a parked record says now; of one that is too large for a record, its beginning.
fn backup_text(read: &dyn Read, record: &Record) -> Result<Option<Text>, StoreError> {
    let Some(ino) = read.backup_of(record.key)? else { return Ok(None) };
    let Some(file) = read.node(ino)? else { return Ok(None) };
    Ok(Some(Text::new(plain::read(read, &file, 0, RECORD_BYTES_MAX + 1)?)))
}

/// Where a flagged record lies, or one lay that would be flagged.
fn place(read: &dyn Read, config: &Config, record: &Record) -> Result<Option<Dentry>, StoreError> {
    match &record.standing {
        Standing::Live { dir, name, valid: false, .. } => Ok(Some(Dentry::of(*dir, name.clone()))),
        Standing::Parked { dir } => {
            let Some(governed) = governed(read, config, *dir)? else { return Ok(None) };
            if governed.binding.policy != Policy::Flag {
                return Ok(None);
            }
            let name = name_of_parked(read, &governed.binding.kind, record)?;
            Ok(name.map(|name| Dentry::of(*dir, name)))
        }
        Standing::Live { .. } | Standing::Gone => Ok(None),
    }
}

impl Turn<'_> {
    /// Whether a text that was refused so is the record's all the same, flagged. A command flags nothing:
    /// who gave it hears what is wrong; and emptying a record leaves it as it is.
    pub(super) fn flags(&self, home: &Home, text: &Text, refusal: &Refusal) -> bool {
        home.governed.binding.policy.takes(refusal.rule)
            && self.context.door != Door::Socket
            && !text.bytes.is_empty()
    }

    /// What is wrong with a flagged record, or one that comes back from its backup, by the rules that hold
    /// now.
    pub(super) fn flaw(&self, record: &Record) -> Result<Option<Refusal>, StoreError> {
        wrong(self.txn, self.config, record, self.context.role)
    }

    /// A flagged record cannot change state. `home` is where it was to go.
    pub(super) fn require_unflagged(&self, record: &Record, home: &Home) -> Result<(), Stop> {
        if record.is_valid() {
            return Ok(());
        }
        let Some(Refusal { rule, reason, remedy, .. }) = self.flaw(record)? else { return Ok(()) };
        let refusal = Refusal::new(
            Rule::Draft,
            format!(
                "`{}` is flagged as not valid ({}) and cannot change state: {reason}",
                home.name,
                rule.code()
            ),
            format!("mend it first: {remedy}"),
        );
        Err(Stop::kept(refusal, home.file_path()))
    }

    /// Takes the flag from a record with whose text, `text`, nothing is wrong.
    pub(super) fn unflag(
        &mut self,
        record: Record,
        home: &Home,
        node: &mut Node,
        text: &Text,
    ) -> Result<Record, Stop> {
        let links = self.links(home, text)?;
        let record = Record { status: text.status(home), ..record };
        let step = Step { links: links.as_ref(), ..Step::of(EventName::MENDED) };
        Ok(self.step(record, home, node, step)?)
    }
}
