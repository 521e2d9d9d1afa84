//! A record's life: created, saved, moved. Every event about a record is made here (or in
//! `nodes/remove`), together with the row that it changes.
//!
//! What must stay true: one event, one version row where the content changed, one guarded update
//! of the record, in the same transaction; directory and status never disagree.

use super::whereabouts::path_of_backup;
use crate::engine::actors::privileges::clear_privileges;
use crate::engine::change::happening::Happening;
use crate::engine::claims::links::Links;
use crate::engine::places::governed::{Home, path_of};
use crate::engine::{Bits, Effect, Origin, Stop, Text, Turn, lease};
use crate::kind::{Kind, Transition};
use crate::ledger::{EventName, Field, Hash, Payload, Via};
use crate::names::StateName;
use crate::numbers::{Attempt, G, Lapses, RecordKey, Version};
use crate::record::{Edit, patch};
use crate::refusal::{Refusal, Rule};
use crate::store::{Class, Expected, Node, Readiness, Record, Standing, StoreError, VersionRow};

/// What an event about a record's content or place says.
pub(in crate::engine) struct Step<'a> {
    pub event: EventName,
    /// The state it comes from, where that changes.
    pub from: Option<&'a StateName>,
    /// The new content, where that changes.
    pub content: Option<&'a [u8]>,
    /// Whether the content is valid (under the policy `flag` it may not be).
    pub valid: bool,
    /// How it came, where that is worth saying.
    pub via: Option<Via>,
    /// What a new content says about the record's turn.
    pub links: Option<&'a Links>,
    /// The event whose version the content is, where it is brought back.
    pub from_g: Option<G>,
}

impl Step<'_> {
    /// One that says no more than what happened to a valid record, whose content and state stay.
    pub fn of(event: EventName) -> Self {
        let (from, content, via) = (None, None, None);
        Step { event, from, content, valid: true, via, links: None, from_g: None }
    }
}

/// The text with which a record makes a transition.
#[derive(Clone, Copy)]
pub(in crate::engine) enum Moving<'t> {
    /// The one that it has.
    Own,
    /// A new one, judged already.
    New(&'t Text),
}

/// A transition that nothing refuses, before it is made.
pub(in crate::engine) struct Entry {
    transition: Transition,
    /// The new content, where that changes.
    content: Option<Vec<u8>>,
    /// How long the content is then.
    size: usize,
    /// The status that it says.
    status: Option<String>,
    /// What a new text says about the record's turn.
    links: Option<Links>,
}

fn state_name(home: &Home) -> StateName {
    home.kind().state(home.state).name.clone()
}

impl Turn<'_> {
    /// Makes a new record whose file is `node`, at `home`.
    pub(in crate::engine) fn create_record(
        &mut self,
        home: &Home,
        node: &mut Node,
        event: EventName,
        (text, links): (&Text, Option<&Links>),
        via: Option<Via>,
    ) -> Result<Record, StoreError> {
        self.continues = text.sender();
        let trace = self.continues.map(|sender| *sender.trace_id.as_bytes());
        let record = Record {
            key: RecordKey(0),
            workspace: home.governed.workspace,
            id: home.id.clone(),
            standing: Standing::Gone,
            state: state_name(home),
            owner: home.owner.clone(),
            status: text.status(home),
            attempt: Attempt(u64::from(home.owner.is_some())),
            version: Version(0),
            version_g: G(0),
            last_g: G(0),
            trace: trace.unwrap_or_else(|| self.new_trace()),
            readiness: Readiness::default(),
            lease_s: None,
            lapsed: None,
            lapses: Lapses(0),
        };
        // Between its number and its first event no other is made: by the one the other is found (`past/then`).
        let key = self.txn.insert_record(&record)?;
        let record = Record { key, ..record };
        let content = Some(&text.bytes[..]);
        let created = event == EventName::CREATED;
        let step = Step { content, via, links, ..Step::of(event) };
        let record = self.step(record, home, node, step)?;
        if let Ok(document) = &text.parsed {
            self.note_previous(home, document.value())?;
        }
        // What is brought in was finished elsewhere.
        if created {
            self.reached(&record, home);
        }
        Ok(record)
    }

    /// Takes `record` one step further: event, version, row, node.
    pub(in crate::engine) fn step(
        &mut self,
        mut record: Record,
        home: &Home,
        node: &mut Node,
        step: Step<'_>,
    ) -> Result<Record, StoreError> {
        let expected = record.expected();
        let before = (record.version != Version(0)).then_some(record.version);
        let after = match step.content {
            Some(_) => record.version.next(),
            None => record.version,
        };
        let payload = self.told_of_step(&record, home, &step)?;
        let happening =
            Happening { before, after: Some(after), ..home.happening(step.event, payload) };
        let g = self.append(Some(&record), happening)?;
        if let Some(content) = step.content {
            let version = VersionRow {
                record: record.key,
                version: after,
                before_g: record.version_g,
                at: self.now,
                content: content.to_vec(),
            };
            self.txn.insert_version(g, &version)?;
            record.version = after;
            record.version_g = g;
            self.set_apart(&record, node.ino, (node.size, content.len() as u64));
            node.size = content.len() as u64;
        }
        record.last_g = g;
        record.state = state_name(home);
        record.owner.clone_from(&home.owner);
        record.standing = Standing::Live {
            ino: node.ino,
            dir: home.dir,
            name: home.name.clone(),
            valid: step.valid,
        };
        self.write_back(&mut record, &expected, home.kind(), step.links)?;
        node.class = Class::Record;
        node.ctime = self.now;
        self.txn.update_node(node)?;
        self.effect(Effect::Attr { ino: node.ino, also_origin: true });
        if step.content.is_some()
            && let (Origin::Socket, Some(by)) = (self.context.origin, self.context.actor.pid)
        {
            let (record, version, moved) = (record.key, after, before);
            self.effect(Effect::Made { record, version, moved, by });
        }
        Ok(record)
    }

    /// What the ledger is told of a step, beside what each event has.
    fn told_of_step(
        &self,
        record: &Record,
        home: &Home,
        step: &Step<'_>,
    ) -> Result<Payload, StoreError> {
        let path = home.file_path().to_string();
        // A step that is nothing but another name says which it had, as that of a plain file does.
        let from_path = match &record.standing {
            _ if step.event != EventName::RENAMED => None,
            Standing::Live { dir, name, .. } => Some(path_of(self.txn, *dir, name)?),
            Standing::Parked { .. } => path_of_backup(self.txn, record)?,
            Standing::Gone => None,
        };
        let from_path = from_path.map(|path| path.to_string());
        let state = &home.kind().state(home.state).name;
        Ok(Payload::of(&[
            ("attempt", Field::Integer(record.attempt.0.cast_signed())),
            ("content_sha256", step.content.map_or(Field::Absent, |c| Hash::of(c).into())),
            ("flagged", if step.valid { Field::Absent } else { Field::Flag(true) }),
            ("from", step.from.map_or(Field::Absent, |from| Field::Text(from.as_str()))),
            ("from_g", step.from_g.map(|g| g.0).into()),
            ("from_path", from_path.as_deref().into()),
            ("owner", Field::from(home.owner.as_ref())),
            ("path", Field::Text(&path)),
            ("size", step.content.map_or(Field::Absent, |c| Field::Integer(c.len() as i64))),
            ("state", Field::Text(state.as_str())),
            ("via", step.via.into()),
        ]))
    }

    /// Writes a changed record, and what follows for those that wait for it.
    pub(in crate::engine) fn write_back(
        &mut self,
        record: &mut Record,
        expected: &Expected,
        kind: &Kind,
        links: Option<&Links>,
    ) -> Result<(), StoreError> {
        let asked_s = record.lease_s;
        let turned = self.put_in_order(record, kind, links)?;
        self.settle_lease(record, (expected, asked_s), kind)?;
        self.put_record(record, expected)?;
        if turned { self.tell_dependants(record, kind) } else { Ok(()) }
    }

    /// Writes a record's row, which is still as expected: nobody else writes in this turn.
    pub(in crate::engine) fn put_record(
        &mut self,
        record: &Record,
        expected: &Expected,
    ) -> Result<(), StoreError> {
        if self.txn.update_record(record, expected)? {
            return Ok(());
        }
        let id = &record.id;
        Err(StoreError::Impossible(format!("record {id} changed under the writer")))
    }

    /// The current content of a record.
    pub(in crate::engine) fn content(&self, record: &Record) -> Result<Vec<u8>, StoreError> {
        let version = self.txn.version(record.version_g)?;
        let missing = || StoreError::Impossible(format!("record {} has no content", record.id));
        Ok(version.ok_or_else(missing)?.content)
    }

    /// The transition that takes `record` to `home`, if the lifecycle and the caller's role
    /// allow it.
    pub(super) fn legal<'h>(
        &self,
        record: &Record,
        home: &'h Home,
    ) -> Result<&'h Transition, Refusal> {
        let kind = home.kind();
        let from = kind.state_named(record.state.as_str()).ok_or_else(|| {
            Refusal::new(
                Rule::Transition,
                format!("the kind {} has no state `{}` (any more)", kind.name(), record.state),
                "give the kind that state back, or move the file out of the workspace",
            )
        })?;
        let transition = kind.transition(from, home.state, self.context.role)?;
        if let Some(lies) = &record.owner
            && record.is_lapsed()
            && !self.context.acts_for_others(kind)
        {
            return Err(lease::over(record, lies));
        }
        // One's own leaves one's lane, and enters no other's.
        if record.owner.is_some() {
            self.context.may_write(kind, from, record.owner.as_ref())?;
        }
        if home.owner.is_some() {
            self.context.may_write(kind, home.state, home.owner.as_ref())?;
        }
        Ok(transition)
    }

    /// Looks at what takes `record` to `home` by a transition: what the daemon must change of its
    /// text is patched, and nothing else. Refuses without having changed anything.
    pub(in crate::engine) fn entry(
        &self,
        record: &Record,
        home: &Home,
        moving: Moving<'_>,
    ) -> Result<Entry, Stop> {
        let refuse = |refusal| Stop::kept(refusal, home.file_path());
        let kind = home.kind();
        let transition = self.legal(record, home).map_err(refuse)?.clone();
        let own;
        let (text, status_alone) = match moving {
            Moving::New(text) => (text, None),
            Moving::Own => {
                self.require_unflagged(record, home)?;
                let bytes = self.content(record)?;
                // A claim depends on no more of the content than the status, and that is in the
                // record's row: parsing is what would cost it most.
                let status = record.status.as_deref();
                let alone = !kind.reads_content(&transition, status) && record.is_valid();
                own = if alone { Text::unread(bytes) } else { Text::new(bytes) };
                (&own, alone.then(|| kind.with_status(status)))
            }
        };
        let said = match &status_alone {
            Some(said) => said,
            None => text.document().map_err(refuse)?.value(),
        };
        kind.judge_entry(&transition, said).map_err(|fault| refuse(text.refusal(fault)))?;
        let edits = kind.entry_edits(&transition, said, home.owner.as_ref(), self.now);
        if let Some(owner) = &home.owner
            && edits.iter().any(|edit| kind.is_owner(&edit.field))
        {
            kind.judge_owner(owner).map_err(|fault| refuse(text.refusal(fault)))?;
        }
        let status = match edits.iter().find(|edit| kind.is_status(&edit.field)) {
            Some(edit) => Some(edit.value.clone()),
            None => kind.status_of(said).map(str::to_owned),
        };
        let edits: Vec<Edit<'_>> =
            edits.iter().map(|edit| Edit { field: &edit.field, value: &edit.value }).collect();
        let patched = if edits.is_empty() {
            None
        } else {
            Some(patch(&text.bytes, &edits).map_err(|flaw| refuse(Refusal::from(flaw)))?)
        };
        let size = patched.as_ref().map_or(text.bytes.len(), Vec::len);
        let (content, links) = match moving {
            Moving::New(text) => {
                let next = patched.unwrap_or_else(|| text.bytes.to_vec());
                let same = next == self.content(record)?;
                // What the same bytes say counts already, unless they were flagged.
                let links = if same && record.is_valid() { None } else { self.links(home, text)? };
                ((!same).then_some(next), links)
            }
            // It was flagged by rules that hold no more: what it says counts from now on.
            Moving::Own if !record.is_valid() => (patched, self.links(home, text)?),
            Moving::Own => (patched, None),
        };
        Ok(Entry { transition, content, size, status, links })
    }

    /// Moves `record` to `home` by a transition. The caller moves the name.
    pub(in crate::engine) fn transition(
        &mut self,
        record: Record,
        home: &Home,
        node: &mut Node,
        moving: Moving<'_>,
        via: Option<Via>,
    ) -> Result<Record, Stop> {
        let entry = self.entry(&record, home, moving)?;
        Ok(self.enter(record, home, node, entry, via)?)
    }

    /// Makes a transition that was looked at. The caller moves the name.
    pub(in crate::engine) fn enter(
        &mut self,
        mut record: Record,
        home: &Home,
        node: &mut Node,
        entry: Entry,
        via: Option<Via>,
    ) -> Result<Record, StoreError> {
        let Entry { transition, content, size, status, links } = entry;
        // Taking a record is a new attempt: the number that fences off the one before. So is taking it back from
        // where it rested, such as from `done`: whoever held it before that holds it no more.
        let is_taken = |kind: &Kind| {
            let from = kind.state_named(record.state.as_str());
            record.owner != home.owner || record.is_lapsed() || kind.claims_anew(from, home.state)
        };
        if home.owner.is_some() && is_taken(home.kind()) {
            record.attempt = record.attempt.next();
            record.lapsed = None;
            // Who takes it by its own user has the file, too: only an owner may set times and modes.
            if self.context.bits == Bits::Roles
                && home.owner.as_ref() == Some(&self.context.actor.name)
            {
                // As with `chown`: who owns it now is not who gave it its rights.
                if node.uid != self.context.actor.uid {
                    clear_privileges(node);
                    self.effect(Effect::Rights { ino: node.ino, also_origin: true });
                }
                node.uid = self.context.actor.uid;
            }
        }
        if !home.kind().counts_lapses(home.state) {
            record.lapses = Lapses(0);
        }
        record.status = status;
        let from = record.state.clone();
        let event = match via {
            Some(Via::Expiry) => EventName::EXPIRED,
            _ => EventName::new(transition.event.as_str())
                .map_err(|why| StoreError::Impossible(format!("event of a transition: {why}")))?,
        };
        // Another file comes to have the text as it is.
        if content.is_none() && record.ino() != Some(node.ino) {
            self.set_apart(&record, node.ino, (node.size, size as u64));
            node.size = size as u64;
        }
        let (content, links) = (content.as_deref(), links.as_ref());
        let step = Step { from: Some(&from), content, via, links, ..Step::of(event) };
        let record = self.step(record, home, node, step)?;
        if record.state != from {
            self.reached(&record, home);
        }
        Ok(record)
    }
}
