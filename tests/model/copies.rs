//! The reference's claim by copy: a record's text that is written elsewhere.

use super::lifecycle::{may_move, status};
use super::records::{Base, Door};
use super::reference::{Home, Model, NodeId, Outcome, no};
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
        if record.state == home.state || record.owner.is_some() && record.owner != home.owner {
            self.met("a copy that came too late");
            return no("EEXIST");
        }
        let is_current = self.made_from(&home.id, base, pid) == Some(record.version);
        if let (Some(owner), None) = (&home.owner, &record.owner)
            && !is_current
            && record.content != text
        {
            if record.had.contains(owner) {
                self.met("a late write");
                return no(if door == Door::Handle { "ESTALE" } else { "ENOENT" });
            }
            match (says_id(text), says_id(&record.content)) {
                (Some(false), Some(true)) => {
                    self.met("a copy that says no id");
                    return no("EEXIST");
                }
                (None, _) | (Some(false), None) => self.lost = true,
                _ => {}
            }
        }
        if self.is_stale(&home.id, base, pid) {
            self.met("a stale copy");
            return no("EBUSY");
        }
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
