//! The reference's open files: what a handle reads, stages and saves.

use super::client::Flags;
use super::lifecycle;
use super::records::{Base, Claim};
use super::reference::{Body, Model, Node, NodeId, Outcome, no};
use super::text::{Reading, Text, Value, read};

/// An open file.
#[derive(Clone, Debug)]
pub struct Open {
    pub node: NodeId,
    pub pid: u32,
    append: bool,
    /// A record or draft: private to the handle until it is judged.
    staged: Option<Staged>,
}

#[derive(Clone, Debug)]
struct Staged {
    text: Vec<u8>,
    base: Base,
    /// The record and the version that its first read shows, which counts as seen from then on.
    unread: Option<(String, u64)>,
    /// Written and not judged.
    dirty: bool,
    /// The text only grew at its end, so that `write` can judge it.
    grows: bool,
    /// No write is taken any more.
    poisoned: bool,
    /// Whether a write was looked at since it was judged, or says this status: see `Model::begins`.
    was_asked: bool,
    /// The status that it said when a write was last looked at.
    said: Option<String>,
    /// The record that it was when it was opened, or became by its own save.
    record: Option<String>,
    /// The claim that it was opened under.
    claim: Option<Claim>,
    /// It is judged when it is renamed over a record, and not before.
    waits: bool,
    /// How the last judgement ended.
    failed: Option<Vec<&'static str>>,
}

pub type OpenId = usize;

impl Model {
    pub fn open(&mut self, path: &str, flags: Flags, pid: u32) -> Outcome<OpenId> {
        let (dir, name) = self.parent(path)?;
        let Some(node) = self.child(dir, name) else {
            if !flags.create {
                return no("ENOENT");
            }
            let node = self.create(dir, name)?;
            return Ok(self.opened(node, Flags { truncate: true, ..flags }, Base::Seen, pid));
        };
        match self.nodes[node].body.clone() {
            Body::Dir(_) => no("EISDIR"),
            Body::Symlink(_) => no("ELOOP"),
            Body::Record(id) => {
                let may_cut = flags.write && !flags.append;
                if !flags.truncate && !may_cut {
                    self.saw(&id, pid);
                }
                let version = self.records[&id].version;
                let this = (!flags.truncate).then_some(version);
                let base = Base::Opened(self.base(&id, pid).or(this));
                let open = self.opened(node, flags, base, pid);
                if let Some(staged) = &mut self.opens[open].staged
                    && may_cut
                    && !flags.truncate
                {
                    staged.unread = Some((id, version));
                }
                Ok(open)
            }
            Body::Draft(_) => {
                if flags.truncate {
                    self.empty_draft(node);
                }
                Ok(self.opened(node, flags, Base::Seen, pid))
            }
            Body::Plain(_) => {
                if flags.truncate {
                    self.plain_mut(node).clear();
                }
                Ok(self.opened(node, flags, Base::Seen, pid))
            }
        }
    }

    fn opened(&mut self, node: NodeId, flags: Flags, base: Base, pid: u32) -> OpenId {
        let plain = matches!(self.nodes[node].body, Body::Plain(_));
        let staged = (!plain).then(|| Staged {
            text: if flags.truncate { Vec::new() } else { self.content(node).to_vec() },
            base,
            unread: None,
            dirty: false,
            grows: true,
            poisoned: false,
            was_asked: false,
            said: None,
            waits: matches!(self.nodes[node].body, Body::Draft(_)) && {
                let Node { parent, name, .. } = &self.nodes[node];
                self.slot(*parent, name).is_some_and(|home| self.waits_for_rename(&home))
            },
            record: self.record_of(node),
            claim: self.record_of(node).and_then(|id| self.claim_of(&id)),
            failed: None,
        });
        self.opens.push(Open { node, pid, append: flags.append, staged });
        self.opens.len() - 1
    }

    fn record_of(&self, node: NodeId) -> Option<String> {
        match &self.nodes[node].body {
            Body::Record(id) => Some(id.clone()),
            _ => None,
        }
    }

    /// Whether a handle has written and was not judged, under a claim that is not over: moves wait for it
    /// then, also where the record has another file by now, of the same version.
    pub fn is_busy(&self, node: NodeId) -> bool {
        let record = self.record_of(node);
        let now = record.as_deref().and_then(|id| self.claim_of(id));
        let version = record.as_ref().map(|id| self.records[id].version);
        let holds = |claim: &Option<Claim>| claim.is_none() || *claim == now;
        let is_present = |base| !matches!(base, Base::Opened(seen) if seen.is_some_and(|seen| Some(seen) != version));
        let writes = |open: &Open, staged: &Staged| {
            let by_another =
                || record.is_some() && staged.record == record && is_present(staged.base);
            staged.dirty && holds(&staged.claim) && (open.node == node || by_another())
        };
        self.opens
            .iter()
            .any(|open| open.staged.as_ref().is_some_and(|staged| writes(open, staged)))
    }

    pub fn read(&mut self, open: OpenId) -> &[u8] {
        let Open { pid, .. } = self.opens[open];
        if let Some(staged) = &mut self.opens[open].staged
            && let Some((id, version)) = staged.unread.take()
        {
            staged.base = Base::Opened(Some(version));
            self.saw_version(&id, pid, version);
        }
        match &self.opens[open].staged {
            Some(staged) => &staged.text,
            None => self.content(self.opens[open].node),
        }
    }

    pub fn write(&mut self, open: OpenId, offset: usize, data: &[u8]) -> Outcome {
        let Open { node, pid, append, .. } = self.opens[open];
        let put = |text: &mut Vec<u8>| {
            let at = if append { text.len() } else { offset };
            if text.len() < at + data.len() {
                text.resize(at + data.len(), 0);
            }
            text[at..at + data.len()].copy_from_slice(data);
            at
        };
        let hint = self.hint;
        let Some(staged) = &mut self.opens[open].staged else {
            if !matches!(self.nodes[node].body, Body::Plain(_)) {
                return no("ESTALE");
            }
            put(self.plain_mut(node));
            return Ok(());
        };
        if staged.poisoned {
            return Err(staged.failed.clone().unwrap());
        }
        let end = staged.text.len();
        let at = put(&mut staged.text);
        staged.unread = None;
        staged.grows &= at == end;
        staged.dirty = true;
        staged.failed = None;
        // `write` may refuse what is wrong, and must refuse what nothing can mend.
        let id = lifecycle::record_id(&self.nodes[node].name).unwrap_or("").to_owned();
        let wrong = may_be_refused(&staged.text, &id);
        let hopeless = staged.grows && Text::is_hopeless(&staged.text, &id);
        if staged.grows && !staged.waits && wrong && (hopeless || !hint) {
            let (text, first) = (staged.text.clone(), !staged.was_asked);
            let seen = (staged.base, staged.claim.clone());
            if !hopeless
                && first
                && let Err(mut why) = self.begins(node, &text, None, (seen.0, seen.1.as_ref()), pid)
            {
                // Which of the two rules it breaks cannot be told.
                self.lost = true;
                why.push("EINVAL");
                let staged = self.opens[open].staged.as_mut().unwrap();
                (staged.poisoned, staged.dirty, staged.failed) = (true, false, Some(why.clone()));
                return Err(why);
            }
            let staged = self.opens[open].staged.as_mut().unwrap();
            staged.poisoned = true;
            staged.dirty = false;
            staged.failed = Some(vec!["EINVAL"]);
            if self.nodes[node].nlink > 0 && matches!(self.nodes[node].body, Body::Draft(_)) {
                self.keep_draft(node, &text, false);
            }
            self.met("a write refused at once");
            return no("EINVAL");
        }
        // A line that is not ended may be looked at, and one that is must be.
        let said = if staged.grows && !staged.waits { says(&staged.text) } else { None };
        let is_sure = staged.text.ends_with(b"\n");
        if said != staged.said && (is_sure || !hint) {
            (staged.was_asked, staged.said) = (false, said.clone());
        }
        if std::mem::replace(&mut staged.was_asked, true) {
            return Ok(());
        }
        let said = said.filter(|_| is_sure || !hint);
        let (text, base, claim) = (staged.text.clone(), staged.base, staged.claim.clone());
        let begun = self.begins(node, &text, said.as_deref(), (base, claim.as_ref()), pid);
        if let Err(why) = &begun {
            let staged = self.opens[open].staged.as_mut().unwrap();
            (staged.poisoned, staged.dirty, staged.failed) = (true, false, Some(why.clone()));
            if matches!(self.nodes[node].body, Body::Draft(_)) {
                self.keep_refused(node, &text, why);
            }
        }
        begun
    }

    pub fn flush(&mut self, open: OpenId) -> Outcome {
        let Open { node, pid, .. } = self.opens[open];
        let Some(staged) = &mut self.opens[open].staged else { return Ok(()) };
        if let Some(failed) = &staged.failed {
            return Err(failed.clone());
        }
        if !staged.dirty {
            return Ok(());
        }
        (staged.dirty, staged.was_asked) = (false, false);
        let (base, claim, text) = (staged.base, staged.claim.clone(), staged.text.clone());
        let saved = self.save(node, (base, claim.as_ref()), &text, pid);
        let staged = self.opens[open].staged.as_mut().unwrap();
        match saved {
            Ok(version) => {
                staged.base = version.map_or(staged.base, |version| Base::Opened(Some(version)));
                if version.is_some() {
                    self.opens[open].staged.as_mut().unwrap().record = self.record_of(node);
                }
                Ok(())
            }
            Err(why) => {
                staged.failed = Some(why.clone());
                Err(why)
            }
        }
    }

    pub fn release(&mut self, open: OpenId) {
        // Ids of open files stay what they are; this one is of nothing.
        self.opens[open].node = usize::MAX;
        if let Some(staged) = &mut self.opens[open].staged {
            staged.record = None;
        }
    }

    pub fn ftruncate(&mut self, open: OpenId, size: usize) -> Outcome {
        let Open { node, pid, .. } = self.opens[open];
        let Some(staged) = &mut self.opens[open].staged else { return self.cut(node, size, pid) };
        if staged.text.len() != size {
            staged.text.resize(size, 0);
            staged.unread = None;
            staged.dirty |= size > 0;
            staged.grows = size == 0;
            staged.poisoned = false;
            staged.failed = None;
            staged.said = None;
        }
        if size == 0 && matches!(self.nodes[node].body, Body::Draft(_)) {
            self.empty_draft(node);
        }
        Ok(())
    }

    /// A draft is emptied by who empties it, at once.
    fn empty_draft(&mut self, node: NodeId) {
        if !self.content(node).is_empty() {
            self.met("a draft emptied");
            self.nodes[node].touched += 1;
            self.nodes[node].body = Body::Draft(Vec::new());
        }
    }

    /// `truncate`: of a governed file a save of what is left.
    pub fn cut(&mut self, node: NodeId, size: usize, pid: u32) -> Outcome {
        let mut text = match &self.nodes[node].body {
            Body::Dir(_) => return no("EISDIR"),
            Body::Symlink(_) => return no("ELOOP"),
            Body::Plain(_) => {
                self.plain_mut(node).resize(size, 0);
                return Ok(());
            }
            Body::Draft(_) | Body::Record(_) => self.content(node).to_vec(),
        };
        if size == 0 && matches!(self.nodes[node].body, Body::Draft(_)) {
            self.empty_draft(node);
            return Ok(());
        }
        text.resize(size, 0);
        self.save(node, (Base::Seen, None), &text, pid).map(drop)
    }
}

/// The status that a text says.
fn says(text: &[u8]) -> Option<String> {
    match read(text) {
        Reading::Fields(fields) => lifecycle::status(&fields).map(str::to_owned),
        _ => None,
    }
}

/// Whether a text could be one that is refused while it is written: never if it is right so far.
fn may_be_refused(text: &[u8], id: &str) -> bool {
    match read(text) {
        Reading::Fields(fields) => {
            let is_anothers = |said: &Value| *said != Value::Text(id.to_owned());
            !lifecycle::fits_schema(&fields) || fields.get("id").is_some_and(is_anothers)
        }
        Reading::Broken => !text.is_empty(),
        Reading::Unknown => true,
    }
}
