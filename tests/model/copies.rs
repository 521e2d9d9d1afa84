//! The reference's claim by copy: a record's text that is written elsewhere.

use super::lifecycle::{State, may_become, may_move, status};
use super::records::{Base, Claim, Door, Record, Standing};
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

    /// Whether a text written at `home` would move a record that is being written: it waits for that.
    pub fn moves_what_is_written(&self, home: &Home) -> bool {
        let Some(Record { standing: Standing::Live(file), .. }) = self.records.get(&home.id) else {
            return false;
        };
        !self.is_anothers(home) && self.is_busy(*file)
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

    /// What a text begins with: what cannot become the record's any more, or says (`said`) a status that
    /// cannot be there, is refused at once.
    pub fn begins(
        &mut self,
        node: NodeId,
        text: &[u8],
        said: Option<&str>,
        (base, claim): (Base, Option<&Claim>),
        pid: u32,
    ) -> Outcome {
        match self.nodes[node].body.clone() {
            Body::Draft(_) if self.nodes[node].nlink > 0 => {
                self.draft_begins(node, text, said, pid)
            }
            Body::Record(id) => self.record_begins((node, &id), said, (base, claim), pid),
            _ => Ok(()),
        }
    }

    fn draft_begins(&mut self, node: NodeId, text: &[u8], said: Option<&str>, pid: u32) -> Outcome {
        let home = self.slot(self.nodes[node].parent, &self.nodes[node].name).unwrap();
        let known = self.records.get(&home.id).cloned();
        let wrong = self.new_status(&home, known.as_ref(), said);
        let Some(record) = known else { return wrong };
        let elsewhere = match record.standing {
            Standing::Live(lies) => lies != node,
            Standing::Parked { .. } => !record.is_parked_at(&home),
            Standing::Gone => false,
        };
        let seen = self.base(&home.id, pid);
        let has_read = seen == Some(record.version);
        if elsewhere && has_read && wrong.is_err() && self.is_taken(&home) {
            self.met("a copy that came too late");
            return no("EEXIST");
        }
        if !elsewhere || has_read || record.content.starts_with(text) {
            return wrong;
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
            _ => wrong,
        }
    }

    /// Judges the status that a new file says: it is of the state, or what the record says that is
    /// copied there.
    fn new_status(&mut self, home: &Home, known: Option<&Record>, said: Option<&str>) -> Outcome {
        let Some(to) = said else { return Ok(()) };
        let before = known.map(|record| (record, read(&record.content)));
        let from = match &before {
            Some((record, Reading::Fields(fields))) if record.standing != Standing::Gone => {
                status(fields)
            }
            Some((record, Reading::Unknown)) if record.standing != Standing::Gone => {
                self.lost = true;
                return Ok(());
            }
            _ => None,
        };
        let fits = match known {
            Some(record) if record.is_parked_at(home) => fits(home.state, from, to),
            Some(Record { standing: Standing::Live(_), .. }) if from == Some(to) => true,
            _ => home.state.takes(to),
        };
        if fits {
            return Ok(());
        }
        self.met("a new status refused at once");
        no("EINVAL")
    }

    fn record_begins(
        &mut self,
        (node, id): (NodeId, &str),
        said: Option<&str>,
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
        let Some(to) = said.filter(|_| record.standing == Standing::Live(node)) else {
            return Ok(());
        };
        let before = read(&record.content);
        if let Reading::Fields(before) = &before
            && fits(record.state, status(before), to)
        {
            return Ok(());
        }
        self.lost |= before == Reading::Unknown;
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

/// Whether a record may go from one status to the other within a state.
fn fits(state: State, from: Option<&str>, to: &str) -> bool {
    from == Some(to) || state.takes(to) && may_become(state, from, Some(to))
}
