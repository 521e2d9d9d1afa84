//! The reference's claim by copy: a record's text that is written elsewhere.

use super::lifecycle::{State, may_become, may_move, status};
use super::records::{Base, Claim, Door, Standing};
use super::reference::{Body, Home, Model, NodeId, Outcome, no};
use super::text::{Reading, read};

/// Whether a text says an id, where that is known. What is no text at all is refused as that.
fn says_id(text: &[u8]) -> Option<bool> {
    match read(text) {
        Reading::Fields(fields) => Some(fields.contains_key("id")),
        Reading::Broken => Some(true),
        Reading::Unknown => None,
    }
}

impl Model {
    /// Whether the id is that of a record which does not move by being written at `home`.
    fn is_anothers(&self, home: &Home) -> bool {
        let record = &self.records[&home.id];
        record.state == home.state || record.owner.is_some() && record.owner != home.owner
    }

    /// Whether nothing written to a new file at `home` could become a record.
    pub fn is_taken(&self, home: &Home) -> bool {
        let known = self.records.get(&home.id);
        known.is_some_and(|known| matches!(known.standing, Standing::Live(_)))
            && self.is_anothers(home)
    }

    /// Whether who never read a record would move it by writing something else: to nobody's directory,
    /// or from where it rests.
    fn is_blind(&self, home: &Home, seen: Option<u64>) -> bool {
        let from = self.records[&home.id].state;
        seen.is_none() && (home.owner.is_none() || !matches!(from, State::Inbox | State::Assigned))
    }

    /// Refuses a text that moves a record and was not made from what that says.
    pub fn made_of(
        &mut self,
        home: &Home,
        text: &[u8],
        (door, base): (Door, Base),
        pid: u32,
    ) -> Outcome {
        let record = self.records[&home.id].clone();
        let seen = self.made_from(&home.id, base, pid);
        if seen != Some(record.version) && record.content != text {
            let had = home.owner.as_ref().is_some_and(|owner| record.had.contains(owner));
            if had && record.owner.is_none() {
                self.met("a late write");
                return no(if door == Door::Handle { "ESTALE" } else { "ENOENT" });
            }
            if self.is_blind(home, seen) {
                self.met("a new text of an id in use");
                return no("EEXIST");
            }
            if record.owner.is_none() {
                match (says_id(text), says_id(&record.content)) {
                    (Some(false), Some(true)) => {
                        self.met("a copy that says no id");
                        return no("EEXIST");
                    }
                    (None, _) | (Some(false), None) => self.lost = true,
                    _ => {}
                }
            }
        }
        if self.is_stale(&home.id, base, pid) {
            self.met("a stale copy");
            return no("EBUSY");
        }
        Ok(())
    }

    /// What a text begins with: what cannot become the record's any more is refused at once.
    pub fn begins(
        &mut self,
        node: NodeId,
        text: &[u8],
        (base, claim): (Base, Option<&Claim>),
        pid: u32,
    ) -> Outcome {
        match self.nodes[node].body.clone() {
            Body::Draft(_) if self.nodes[node].nlink > 0 => self.draft_begins(node, text, pid),
            Body::Record(id) => self.record_begins((node, &id), text, (base, claim), pid),
            _ => Ok(()),
        }
    }

    fn draft_begins(&mut self, node: NodeId, text: &[u8], pid: u32) -> Outcome {
        let home = self.slot(self.nodes[node].parent, &self.nodes[node].name).unwrap();
        let Some(record) = self.records.get(&home.id).cloned() else { return Ok(()) };
        let elsewhere = match record.standing {
            Standing::Live(lies) => lies != node,
            Standing::Parked { .. } => !record.is_parked_at(&home),
            Standing::Gone => false,
        };
        let seen = self.base(&home.id, pid);
        if !elsewhere || seen == Some(record.version) || record.content.starts_with(text) {
            return Ok(());
        }
        match &home.owner {
            _ if self.is_taken(&home) => {
                self.met("a copy that came too late");
                no("EEXIST")
            }
            Some(owner) if record.owner.is_none() && record.had.contains(owner) => {
                self.met("a late write");
                no("ESTALE")
            }
            _ if self.is_blind(&home, seen) => {
                self.met("a new text of an id in use");
                no("EEXIST")
            }
            _ if self.is_stale(&home.id, Base::Seen, pid) => no("EBUSY"),
            _ => Ok(()),
        }
    }

    fn record_begins(
        &mut self,
        (node, id): (NodeId, &str),
        text: &[u8],
        (base, claim): (Base, Option<&Claim>),
        pid: u32,
    ) -> Outcome {
        let record = self.records[id].clone();
        let is_live = matches!(record.standing, Standing::Live(_));
        if !is_live {
            return Ok(());
        }
        if claim.is_some() && claim != self.claim_of(id).as_ref() {
            self.met("a save under a claim that is over");
            return no("ESTALE");
        }
        if self.is_stale(id, base, pid) {
            self.met("a stale write");
            return no("EBUSY");
        }
        // Whether its line is ended, and where it was opened, decides whether it is looked at.
        let (Reading::Fields(said), Reading::Fields(before)) = (read(text), read(&record.content))
        else {
            return Ok(());
        };
        let to = status(&said);
        let fits = to.is_none_or(|to| record.state.takes(to))
            && (to.is_none() || may_become(record.state, status(&before), to));
        if fits || self.hint || record.standing != Standing::Live(node) {
            return Ok(());
        }
        self.met("a status refused at once");
        no("EINVAL")
    }

    /// The claim by copy: the id lives in one place, so that writing it elsewhere moves it.
    pub fn move_by_copy(
        &mut self,
        home: &Home,
        old: NodeId,
        node: NodeId,
        text: &[u8],
        (door, base): (Door, Base),
        pid: u32,
    ) -> Outcome {
        let record = self.records[&home.id].clone();
        if self.is_anothers(home) {
            self.met("a copy that came too late");
            return no("EEXIST");
        }
        self.made_of(home, text, (door, base), pid)?;
        if !may_move(record.state, home.state) {
            self.met("a copy that the lifecycle forbids");
            return no("EPERM");
        }
        // The copy may say the old status still: the move writes the new one.
        let fields = |text: &[u8]| match read(text) {
            Reading::Fields(fields) => Some(fields),
            _ => None,
        };
        let (Some(before), Some(after)) = (fields(&record.content), fields(text)) else {
            self.lost = read(text) == Reading::Unknown || read(&record.content) == Reading::Unknown;
            return door.bad();
        };
        let moved = status(&before) != status(&after);
        let judged_in = if moved { home.state } else { record.state };
        self.judge(text, &home.id, judged_in, door)?;
        self.enter(home, node, text, true, door)?;
        self.met("a move by copy");
        let (dir, name) = (self.nodes[old].parent, self.nodes[old].name.clone());
        self.drop_name(dir, &name);
        self.saw(&home.id, pid);
        Ok(())
    }
}
