//! What a team's coordinator does by hand where nobody else does: which chores a kind has, and what
//! they take from a record's content.
//!
//! What must stay true: this reads content and nothing else; whether a chore is done at all the
//! configuration says. Deliberately not here: other records, files, time.

use std::time::Duration;

use serde_json::{Map, Value};

use super::state::{StateIx, Statuses};
use crate::kind::Kind;
use crate::kind::field_path::FieldPath;
use crate::names::{AgentName, FileName, RecordId};
use crate::numbers::UnixNanos;

/// The chores of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindChores {
    /// A record that is finished makes the next one.
    pub handoff: Option<Handoff>,
    /// What has ended is put away.
    pub archive: Option<Archive>,
    /// What does not go on is told of.
    pub escalate: Option<Escalate>,
    /// Drafts that nobody mends are put aside.
    pub drafts: Option<Drafts>,
}

/// How a finished record makes the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handoff {
    /// The state that is reached.
    pub(in crate::kind) state: StateIx,
    /// Who is to go on.
    pub(in crate::kind) agent: FieldPath,
    /// Where the next one says which one came before it.
    pub(in crate::kind) previous: FieldPath,
    /// The fields of the next one, and where they come from.
    pub(in crate::kind) copy: Vec<(String, FieldPath)>,
}

/// What is put away, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// From which state.
    pub from: StateIx,
    /// To which.
    pub to: StateIx,
    /// When nothing has happened to it for so long.
    pub after: Duration,
}

/// What is told of, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Escalate {
    /// The file in the workspace's directory that gets a line.
    pub file: FileName,
    /// Which records.
    pub stuck: Vec<Stuck>,
}

/// Which records do not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Those of this state,
    pub state: StateIx,
    /// with one of these statuses,
    pub status: Statuses,
    /// to which nothing has happened for so long.
    pub after: Duration,
}

/// What becomes of old drafts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drafts {
    /// When nobody has written to one for so long.
    pub after: Duration,
    /// The directory in the workspace's that takes them.
    pub dir: FileName,
}

impl Kind {
    /// The chores that can be done for it.
    #[must_use]
    pub fn chores(&self) -> &KindChores {
        &self.chores
    }

    /// Whether a record can be given to the agent that it names.
    #[must_use]
    pub fn can_assign(&self) -> bool {
        self.fields.owner.is_some()
            && self.claim().is_some_and(|claim| self.state(claim.to).has_owner())
    }

    /// Whom this content names as its owner.
    #[must_use]
    pub fn owner_named(&self, content: &Value) -> Option<AgentName> {
        AgentName::new(content.get(self.fields.owner.as_ref()?)?.as_str()?.trim()).ok()
    }

    /// Whether a record that reaches this state may hand over.
    #[must_use]
    pub fn hands_over(&self, state: StateIx) -> bool {
        self.chores.handoff.as_ref().is_some_and(|handoff| handoff.state == state)
    }

    /// To whom a content hands over; the error is the name, where it is no agent's.
    #[must_use]
    pub fn next_agent(&self, content: &Value) -> Option<Result<AgentName, String>> {
        let agent = &self.chores.handoff.as_ref()?.agent;
        let Some(named) = agent.text(content) else {
            // Without quotes a number names nobody, and is hardly there to name nobody.
            let number = agent.values(content).find(|(_, value)| value.is_number())?.1;
            return Some(Err(number.to_string()));
        };
        Some(AgentName::new(named).map_err(|_| named.to_owned()))
    }

    /// The record that this content says came before it.
    #[must_use]
    pub fn previous(&self, content: &Value) -> Option<RecordId> {
        RecordId::new(self.chores.handoff.as_ref()?.previous.text(content)?).ok()
    }

    /// What the record `id` for `agent` says that goes on where `done`, the record `before`, ended.
    #[must_use]
    pub fn follow_up(
        &self,
        (id, agent): (&RecordId, &AgentName),
        (before, done): (&RecordId, &Value),
        now: UnixNanos,
    ) -> Option<Value> {
        let handoff = self.chores.handoff.as_ref()?;
        let text = |text: &str| Value::from(text.to_owned());
        let mut next = Map::new();
        next.insert(self.fields.id.clone(), text(id.as_str()));
        if let Some(field) = &self.fields.owner {
            next.insert(field.clone(), text(agent.as_str()));
        }
        if let (Some(field), Some(first)) =
            (&self.fields.status, self.state(self.initial).status.first())
        {
            next.insert(field.clone(), text(first));
        }
        for (field, from) in &handoff.copy {
            if let Some((_, value)) = from.values(done).find(|(_, value)| !value.is_null()) {
                next.insert(field.clone(), value.clone());
            }
        }
        if let Some(since) = &self.order.since {
            put_at(&mut next, since.first_way(), text(&now.rfc3339_seconds()));
        }
        put_at(&mut next, handoff.previous.first_way(), text(before.as_str()));
        Some(Value::Object(next))
    }
}

/// Sets a field in mappings of mappings; what is there and is none becomes the `text` of one.
fn put_at(into: &mut Map<String, Value>, way: &[String], value: Value) {
    match way {
        [] => {}
        [last] => {
            into.insert(last.clone(), value);
        }
        [first, rest @ ..] => {
            let at = into.entry(first.clone()).or_insert(Value::Null);
            if !at.is_object() {
                let mut mapping = Map::new();
                if !at.is_null() {
                    mapping.insert("text".to_owned(), at.take());
                }
                *at = Value::Object(mapping);
            }
            if let Value::Object(inner) = at {
                put_at(inner, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::builtin;
    use serde_json::json;

    #[test]
    fn a_time_below_another_field_leaves_that_what_it_is() {
        let task = builtin::task();
        let definition = task.source().definition.replace("since: created_at", "since: context.at");
        let definition = definition.replace("not_before: not_before", "not_before: context.from");
        let fields = "\"context\": { \"additionalProperties\": true,";
        let schema = task.source().schema.replace("\"context\": {", fields);
        let kind = Kind::load("task.kind.yaml", &definition, &schema).unwrap();
        let (id, before) = (RecordId::new("next").unwrap(), RecordId::new("t-1").unwrap());
        let done = json!({"context": {"plan": 7}});
        let agent = AgentName::new("ann").unwrap();
        let next = kind.follow_up((&id, &agent), (&before, &done), UnixNanos(0)).unwrap();
        let context = json!({"plan": 7, "at": "1970-01-01T00:00:00Z", "previous_task": "t-1"});
        assert_eq!(next["context"], context);
        assert_eq!((kind.not_before_field(), task.not_before_field()), (None, Some("not_before")));
    }

    fn follow_up(done: &Value) -> Value {
        let (id, before) = (RecordId::new("next").unwrap(), RecordId::new("t-1").unwrap());
        let agent = AgentName::new("ann").unwrap();
        builtin::task().follow_up((&id, &agent), (&before, done), UnixNanos(0)).unwrap()
    }

    #[test]
    fn the_next_task_takes_over_what_it_needs() {
        let next = follow_up(&json!({
            "title": "Build it", "priority": "high", "agent": "bob", "context": {"plan": 7},
            "result": {"summary": "built", "next_agent": "ann", "next_task_title": "Test it",
                       "next_artefacts": ["a.txt"], "next_task_notes": "mind the gap"},
        }));
        assert_eq!(
            next,
            json!({
                "id": "next", "agent": "ann", "status": "new", "title": "Test it",
                "description": "mind the gap", "priority": "high", "artefacts": ["a.txt"],
                "context": {"plan": 7, "previous_task": "t-1"}, "created_by": "bob",
                "created_at": "1970-01-01T00:00:00Z",
            })
        );
    }

    #[test]
    fn what_is_absent_is_left_out_and_a_context_of_text_is_kept() {
        let next = follow_up(&json!({"title": "Build it", "context": "see the plan"}));
        assert_eq!(next["title"], "Build it");
        assert_eq!(next["context"], json!({"text": "see the plan", "previous_task": "t-1"}));
        assert!(next.get("artefacts").is_none());
    }

    #[test]
    fn whom_a_content_names() {
        let task = builtin::task();
        assert!(task.can_assign());
        assert_eq!(task.owner_named(&json!({"agent": "bob"})).unwrap().as_str(), "bob");
        assert_eq!(task.owner_named(&json!({"agent": "a b"})), None);
        let next = |name: Value| task.next_agent(&json!({"result": {"next_agent": name}}));
        assert_eq!(next(json!("ann")).unwrap().unwrap().as_str(), "ann");
        assert_eq!(next(json!("a/b")), Some(Err("a/b".to_owned())));
        assert_eq!(next(json!(7)), Some(Err("7".to_owned())));
        assert_eq!((next(json!(null)), next(json!(" "))), (None, None));
    }
}
