//! Which transition is legal, for whom, and what the daemon writes with it. Asked here only.

use serde_json::Value;

use super::state::{StampWhen, Statuses, Transition};
use crate::kind::field_path::FieldPath;
use crate::kind::{Kind, Role, StateIx};
use crate::names::{AgentName, with_article};
use crate::numbers::UnixNanos;
use crate::refusal::{Refusal, Rule};

/// A top-level scalar that the daemon writes into a record: plain text, quoted by the writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldEdit {
    /// The field.
    pub field: String,
    /// Its new value.
    pub value: String,
}

impl Kind {
    /// The transition from one state to another. A move between two directories of one state
    /// (another lane) is a transition too, from the state to itself.
    ///
    /// # Errors
    /// [`Rule::Transition`] where the lifecycle has none, [`Rule::Forbidden`] where this role may
    /// not make it; both say what this role can do from here.
    pub fn transition(
        &self,
        from: StateIx,
        to: StateIx,
        role: Role,
    ) -> Result<&Transition, Refusal> {
        let found = self.transitions.iter().find(|t| t.from == from && t.to == to);
        let (here, there) = (self.state(from).shown(None), self.state(to).shown(None));
        match found {
            Some(transition) if transition.by.contains(&role) => Ok(transition),
            Some(transition) => {
                let who = names(&transition.by);
                Err(Refusal::new(
                    Rule::Forbidden,
                    format!(
                        "{} may not move {} from {here} to {there}: that is for {who}",
                        role.with_article(),
                        with_article(self.name().as_str()),
                    ),
                    format!("ask one of them; {}", self.ways_out(from, role)),
                ))
            }
            None => Err(Refusal::new(
                Rule::Transition,
                format!("{} cannot go from {here} to {there}", with_article(self.name().as_str())),
                self.ways_out(from, role),
            )),
        }
    }

    /// Whether this role may move a record on from a state, or records begin there.
    #[must_use]
    pub fn moves_on(&self, from: StateIx, role: Role) -> bool {
        let moves = |t: &Transition| t.from == from && t.to != from && t.by.contains(&role);
        self.state(from).initial || self.transitions.iter().any(moves)
    }

    /// Whether records begin in a state, or come there from where they begin, by this role.
    #[must_use]
    pub fn begins_in(&self, to: StateIx, role: Role) -> bool {
        let comes =
            |t: &Transition| t.to == to && t.by.contains(&role) && self.state(t.from).initial;
        self.state(to).initial || self.transitions.iter().any(comes)
    }

    /// "from `inbox/` an agent can move it to `assigned/<agent>/`".
    fn ways_out(&self, from: StateIx, role: Role) -> String {
        let here = self.state(from).shown(None);
        let ways: Vec<String> = self
            .transitions
            .iter()
            .filter(|t| t.from == from && t.by.contains(&role))
            .map(|t| self.state(t.to).shown(None))
            .collect();
        let who = role.with_article();
        if ways.is_empty() {
            format!("from {here} {who} can move it nowhere")
        } else {
            format!("from {here} {who} can move it to {}", ways.join(", "))
        }
    }

    /// Whether a transition of a record with this status depends on more of its content.
    #[must_use]
    pub fn reads_content(&self, transition: &Transition, status: Option<&str>) -> bool {
        let required = self.required_for(transition, status).next().is_some();
        required || transition.stamps.iter().any(|stamp| stamp.when != StampWhen::Always)
    }

    /// What a record with this status must have for a transition: what the target requires, also with
    /// the status that it has there, and what the transition itself does.
    pub fn required_for<'k, 's: 'k>(
        &'k self,
        transition: &'k Transition,
        status: Option<&'s str>,
    ) -> impl Iterator<Item = &'k FieldPath> {
        let status = self.entry_status(transition.to, status);
        let with = status.map(|status| self.required_on_entry(transition, status));
        let target = &self.state(transition.to).requires;
        target.iter().chain(with.into_iter().flatten()).chain(&transition.requires)
    }

    /// What a record that comes with a transition must have because of the status that it has then, but
    /// for what the daemon writes with it.
    pub(in crate::kind) fn required_on_entry<'k>(
        &'k self,
        transition: &'k Transition,
        status: &'k str,
    ) -> impl Iterator<Item = &'k FieldPath> {
        let owner = self.fields.owner.as_ref().filter(|_| self.state(transition.to).has_owner());
        let writes = move |field: &String| {
            owner == Some(field) || transition.stamps.iter().any(|stamp| stamp.field == *field)
        };
        let is_written =
            move |way: &Vec<String>| matches!(way.as_slice(), [field] if writes(field));
        self.required_with(transition.to, status)
            .filter(move |path| !path.ways().iter().any(&is_written))
    }

    /// The status that a record with this one has when it comes to `state`: the same, if it is one of
    /// those there.
    #[must_use]
    pub fn entry_status<'s>(&'s self, state: StateIx, status: Option<&'s str>) -> Option<&'s str> {
        match (&self.fields.status, &self.state(state).status) {
            (Some(_), Statuses::Listed(all))
                if !status.is_some_and(|status| all.iter().any(|one| one == status)) =>
            {
                all.first().map(String::as_str).or(status)
            }
            _ => status,
        }
    }

    /// Content that says only this status, for a transition that depends on no more.
    #[must_use]
    pub fn with_status(&self, status: Option<&str>) -> Value {
        match (&self.fields.status, status) {
            (Some(field), Some(status)) => serde_json::json!({ field: status }),
            _ => serde_json::json!({}),
        }
    }

    /// Whether a field is the kind's status.
    #[must_use]
    pub fn is_status(&self, field: &str) -> bool {
        self.fields.status.as_deref() == Some(field)
    }

    /// Whether a field is the kind's owner.
    #[must_use]
    pub fn is_owner(&self, field: &str) -> bool {
        self.fields.owner.as_deref() == Some(field)
    }

    /// All transitions, in the order of the definition.
    #[must_use]
    pub fn transitions(&self) -> &[Transition] {
        &self.transitions
    }

    /// What the daemon writes when a record of this content makes `transition` into a directory
    /// of `owner`: the status, only if the target does not take the present one; the owner, only
    /// if it is another; time stamps in UTC.
    #[must_use]
    pub fn entry_edits(
        &self,
        transition: &Transition,
        content: &Value,
        owner: Option<&AgentName>,
        now: UnixNanos,
    ) -> Vec<FieldEdit> {
        let mut edits = Vec::new();
        let mut set = |field: &str, value: &str| {
            edits.push(FieldEdit { field: field.to_owned(), value: value.to_owned() });
        };
        let text = |field: &str| content.get(field).and_then(Value::as_str);
        if let Some(field) = &self.fields.status
            && let Some(status) = self.entry_status(transition.to, text(field))
            && text(field) != Some(status)
        {
            set(field, status);
        }
        if let (Some(field), Some(owner)) = (&self.fields.owner, owner)
            && text(field) != Some(owner.as_str())
        {
            set(field, owner.as_str());
        }
        for stamp in &transition.stamps {
            let absent = content.get(&stamp.field).is_none_or(Value::is_null);
            if stamp.when == StampWhen::Always || absent {
                set(&stamp.field, &now.rfc3339_seconds());
            }
        }
        edits
    }
}

/// "coordinator, manager or operator".
pub(crate) fn names(roles: &[Role]) -> String {
    match roles {
        [] => "nobody".to_owned(),
        [one] => one.to_string(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(|role| role.as_str()).collect();
            format!("{} or {last}", first.join(", "))
        }
    }
}
