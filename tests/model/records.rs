//! The reference's records: saves, transitions, removal, in the words of the design.

use std::collections::BTreeSet;

use super::lifecycle::{self, State, edits, may_become, may_enter, may_move, status};
use super::reference::{Body, Home, Model, NodeId, Outcome, no};
use super::text::{Edits, Reading, Value, read};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has this file.
    Live(NodeId),
    /// Its name went to a backup, this file, in the directory.
    Parked {
        dir: NodeId,
        file: NodeId,
    },
    Gone,
}

#[derive(Clone, Debug)]
pub struct Record {
    pub standing: Standing,
    pub state: State,
    pub owner: Option<String>,
    /// Who had it at some time.
    pub had: BTreeSet<String>,
    /// How often it was claimed.
    pub claims: u64,
    pub version: u64,
    pub content: Vec<u8>,
}

impl Record {
    /// Whether it has the state and the owner of what lies there.
    fn has_place(&self, home: &Home) -> bool {
        self.state == home.state && self.owner == home.owner
    }

    /// Whether it lay there before it was parked. Its directory may be another state's by now.
    pub fn is_parked_at(&self, home: &Home) -> bool {
        matches!(self.standing, Standing::Parked { dir, .. } if dir == home.dir)
            && (self.state, &self.owner) == (home.state, &home.owner)
    }
}

/// Whose a record is, and by which of its claims.
pub type Claim = (String, u64);

/// Bytes that the daemon patched, by the record's id.
#[derive(Clone, Debug)]
pub struct Pending {
    pub id: String,
    pub edits: Edits,
}

/// Through which call content is judged: what is wrong with it is EINVAL, but EPERM for `rename`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    Handle,
    Rename,
}

/// Which version a save was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The one that the file was opened with, if it is known.
    Opened(Option<u64>),
    /// What the process saw last of the record that the save turns out to be of.
    Seen,
}

impl Door {
    pub fn bad<T>(self) -> Outcome<T> {
        no(if self == Door::Handle { "EINVAL" } else { "EPERM" })
    }
}

impl Model {
    /// Judges a text; where the reader is not sure, what really happened decides.
    pub fn judge(&self, text: &[u8], id: &str, state: State, door: Door) -> Outcome {
        match lifecycle::judge(text, id, state) {
            Ok(_) => Ok(()),
            Err(None) if self.hint => Ok(()),
            Err(_) => {
                self.met("a save of wrong content");
                door.bad()
            }
        }
    }

    /// Whether a text says that it is this record's.
    fn says_id(&mut self, text: &[u8], id: &str) -> bool {
        match read(text) {
            Reading::Fields(fields) => fields.get("id") == Some(&Value::Text(id.to_owned())),
            Reading::Broken => false,
            Reading::Unknown => {
                self.lost = true;
                false
            }
        }
    }

    fn is_mapping(&mut self, text: &[u8]) -> bool {
        let reading = read(text);
        self.lost |= reading == Reading::Unknown;
        matches!(reading, Reading::Fields(_))
    }

    /// Judges how a text changes the status.
    fn judge_move(&self, before: &[u8], text: &[u8], state: State, door: Door) -> Outcome {
        let (Reading::Fields(from), Reading::Fields(to)) = (read(before), read(text)) else {
            return if self.hint { Ok(()) } else { door.bad() };
        };
        if may_become(state, status(&from), status(&to)) {
            return Ok(());
        }
        self.met("a move of status that is none");
        door.bad()
    }

    /// The claim that a record is under.
    pub fn claim_of(&self, id: &str) -> Option<Claim> {
        let record = &self.records[id];
        Some((record.owner.clone()?, record.claims))
    }

    /// The version that a save was made from, if that is known.
    pub fn made_from(&self, id: &str, base: Base, pid: u32) -> Option<u64> {
        match base {
            Base::Opened(version) => version,
            Base::Seen => self.base(id, pid),
        }
    }

    pub fn is_stale(&self, id: &str, base: Base, pid: u32) -> bool {
        let base = self.made_from(id, base, pid);
        let stale = base.is_some_and(|base| base != self.records[id].version);
        if stale {
            self.met("a stale save");
        }
        stale
    }

    pub fn saw(&mut self, id: &str, pid: u32) {
        self.saw_version(id, pid, self.records[id].version);
    }

    pub fn saw_version(&mut self, id: &str, pid: u32, version: u64) {
        if pid != 0 {
            self.seen.insert((id.to_owned(), pid), version);
        }
    }

    pub fn base(&self, id: &str, pid: u32) -> Option<u64> {
        self.seen.get(&(id.to_owned(), pid)).copied()
    }

    /// A file's text was saved by its handle (or by `truncate`): the answer, and what becomes of
    /// it. Gives the version that the saver now knows.
    pub fn save(
        &mut self,
        node: NodeId,
        (base, claim): (Base, Option<&Claim>),
        text: &[u8],
        pid: u32,
    ) -> Outcome<Option<u64>> {
        let Some(node) = self.saved_file(node, &base) else {
            self.met("a save of a nameless file");
            return no("ESTALE");
        };
        match self.nodes[node].body.clone() {
            Body::Plain(_) => {
                *self.plain_mut(node) = text.to_vec();
                Ok(None)
            }
            Body::Draft(_) => {
                let (dir, name) = (self.nodes[node].parent, self.nodes[node].name.clone());
                let home = self.slot(dir, &name).unwrap();
                self.drop_privileges(node);
                if self.waits_for_rename(&home) && !self.says_id(text, &home.id) {
                    self.met("a draft that waits for its rename");
                    self.keep_draft(node, text, false);
                    return Ok(None);
                }
                let waited = self.moves_what_is_written(&home) && self.is_mapping(text);
                let admitted = match waited {
                    true => no("EBUSY"),
                    false => self.admit(&home, node, text, Door::Handle, base, pid),
                };
                match admitted {
                    Ok(()) => Ok(Some(self.records[&home.id].version)),
                    Err(why) => {
                        self.keep_refused(node, text, &why);
                        Err(why)
                    }
                }
            }
            Body::Record(id) => {
                if claim.is_some() && claim != self.claim_of(&id).as_ref() {
                    self.met("a save under a claim that is over");
                    return no("ESTALE");
                }
                let (home, before) = (self.home_of(node), self.records[&id].version);
                self.next_version(&home, node, text, Door::Handle, base, pid)?;
                let version = self.records[&id].version;
                if version != before {
                    self.drop_privileges(node);
                }
                Ok(Some(version))
            }
            Body::Dir(_) | Body::Symlink(_) => panic!("no file"),
        }
    }

    /// What a handle's save is one of: a record that was opened as such, wherever it lies by now.
    fn saved_file(&mut self, node: NodeId, base: &Base) -> Option<NodeId> {
        if self.nodes[node].nlink > 0 {
            return Some(node);
        }
        let (Base::Opened(_), Body::Record(id)) = (base, &self.nodes[node].body) else {
            return None;
        };
        match self.records[id].standing {
            Standing::Live(now) => {
                self.met("a save of a record that has another file");
                Some(now)
            }
            _ => None,
        }
    }

    fn home_of(&self, node: NodeId) -> Home {
        self.slot(self.nodes[node].parent, &self.nodes[node].name).unwrap()
    }

    pub fn next_version(
        &mut self,
        home: &Home,
        node: NodeId,
        text: &[u8],
        door: Door,
        base: Base,
        pid: u32,
    ) -> Outcome {
        if self.is_stale(&home.id, base, pid) {
            return no("EBUSY");
        }
        let record = &self.records[&home.id];
        if record.content != text {
            let before = record.content.clone();
            self.judge(text, &home.id, home.state, door)?;
            self.judge_move(&before, text, home.state, door)?;
            self.put(home, node, Some(text.to_vec()));
        } else {
            self.met("a save that changes nothing");
        }
        self.saw(&home.id, pid);
        Ok(())
    }

    /// Takes a text as a record: a new one, one that comes back, or one that lies elsewhere and
    /// hereby moves.
    pub fn admit(
        &mut self,
        home: &Home,
        node: NodeId,
        text: &[u8],
        door: Door,
        base: Base,
        pid: u32,
    ) -> Outcome {
        match self.records.get(&home.id).map(|record| record.standing.clone()) {
            Some(Standing::Live(old)) if old != node => {
                return self.move_by_copy(home, old, node, text, (door, base), pid);
            }
            // A backup dance is a save like any other.
            Some(_) if self.records[&home.id].is_parked_at(home) => {
                let same = self.records[&home.id].content == text;
                if !same && self.is_stale(&home.id, base, pid) {
                    return no("EBUSY");
                }
                let before = self.records[&home.id].content.clone();
                self.judge(text, &home.id, home.state, door)?;
                self.judge_move(&before, text, home.state, door)?;
                self.met("a backup dance that ended well");
                if same {
                    self.put(home, node, None);
                    self.saw(&home.id, pid);
                    return Ok(());
                }
            }
            Some(Standing::Parked { .. }) => {
                self.made_of(home, text, (door, base), pid)?;
                self.judge(text, &home.id, home.state, door)?;
                if self.records[&home.id].has_place(home) {
                    self.put(home, node, Some(text.to_vec()));
                } else {
                    self.enter(home, node, text, true, door)?;
                    self.met("a parked record that comes back elsewhere");
                }
                self.saw(&home.id, pid);
                return Ok(());
            }
            known => {
                self.judge(text, &home.id, home.state, door)?;
                self.met(if known.is_some() { "a record made again" } else { "a new record" });
            }
        }
        self.put(home, node, Some(text.to_vec()));
        self.saw(&home.id, pid);
        Ok(())
    }

    /// The record lies at `home` in `node` now, with new content where there is some.
    pub fn put(&mut self, home: &Home, node: NodeId, content: Option<Vec<u8>>) {
        let record = self.records.entry(home.id.clone()).or_insert(Record {
            standing: Standing::Gone,
            state: home.state,
            owner: None,
            had: BTreeSet::new(),
            claims: u64::from(home.owner.is_some()),
            version: 0,
            content: Vec::new(),
        });
        record.standing = Standing::Live(node);
        record.state = home.state;
        record.owner.clone_from(&home.owner);
        record.had.extend(home.owner.clone());
        if let Some(content) = content {
            record.version += 1;
            record.content = content;
            self.nodes[node].touched += 1;
        }
        self.nodes[node].body = Body::Record(home.id.clone());
    }

    /// A transition of a record with this text; the name is moved by others.
    pub fn enter(
        &mut self,
        home: &Home,
        node: NodeId,
        text: &[u8],
        changed: bool,
        door: Door,
    ) -> Outcome {
        let from = self.records[&home.id].state;
        if !may_move(from, home.state) {
            self.met("a move that the lifecycle has not");
            return no("EPERM");
        }
        let Reading::Fields(fields) = read(text) else {
            self.lost = true;
            return door.bad();
        };
        if may_enter(&fields, home.state).is_err() {
            self.met("a move that lacks a field");
            return door.bad();
        }
        let edits = edits(from, home.state, home.owner.as_deref(), &fields);
        match (from, home.state) {
            (State::Inbox, State::Assigned) => self.met("a claim"),
            (State::Assigned, State::Inbox) => self.met("a release"),
            (State::Assigned, State::Done) => self.met("a completion"),
            _ => {}
        }
        let record = self.records.get_mut(&home.id).unwrap();
        record.claims += u64::from(home.owner.is_some() && record.owner != home.owner);
        // The same bytes make no version.
        let is_new = changed && record.content != text;
        // A transition is no save: the modification time stays.
        let touched = self.nodes[node].touched + u64::from(changed);
        let content = (is_new || !edits.is_empty()).then(|| text.to_vec());
        self.put(home, node, content);
        self.nodes[node].touched = touched;
        if !edits.is_empty() {
            self.pending.push(Pending { id: home.id.clone(), edits });
        }
        Ok(())
    }

    /// What was written to a draft and refused.
    pub fn keep_refused(&mut self, node: NodeId, text: &[u8], why: &[&str]) {
        let known = self.records.get(&self.home_of(node).id);
        let lives = known.is_some_and(|known| known.standing != Standing::Gone);
        let is_elsewhere =
            why.contains(&"EEXIST") || why.contains(&"ESTALE") || lives && why.contains(&"EBUSY");
        self.keep_draft(node, text, is_elsewhere);
    }

    /// A draft keeps what was written to it; where its record is parked, that comes back instead;
    /// of a new file whose id is elsewhere (`taken`) nothing stays.
    pub fn keep_draft(&mut self, node: NodeId, text: &[u8], taken: bool) {
        let home = self.home_of(node);
        self.nodes[node].touched += 1;
        match self.records.get(&home.id) {
            Some(record) if record.is_parked_at(&home) => {
                self.put(&home, node, None);
                self.met("a backup dance that ended badly");
            }
            _ if taken && !self.nodes[node].judged => {
                self.drop_name(home.dir, &home.name);
            }
            _ => {
                self.met("a draft kept");
                if taken {
                    self.met("a copy that came too late over a draft");
                }
                self.nodes[node].judged = true;
                self.nodes[node].body = Body::Draft(text.to_vec());
            }
        }
    }
}
