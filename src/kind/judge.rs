//! Judging content: what a record of a state must be. Pure; the caller finds the lines.

use serde_json::{Map, Value};

use super::error::Fault;
use super::field_path::FieldPath;
use super::lifecycle::state::{Statuses, Transition};
use super::lifecycle::transition::names;
use super::schema::one_of;
use super::{Kind, Role, StateIx};
use crate::limits::LEASE_MAX;
use crate::names::{AgentName, RecordId};
use crate::refusal::Rule;
use crate::units;

impl Kind {
    /// Judges the whole content of a record that lies, or is to lie, in `state`.
    ///
    /// # Errors
    /// The first rule it breaks: [`Rule::Syntax`] (no mapping), [`Rule::Schema`],
    /// [`Rule::IdDiffers`], [`Rule::StatusDiffers`], [`Rule::Required`].
    pub fn judge(&self, content: &Value, id: &RecordId, state: StateIx) -> Result<(), Fault> {
        if !content.is_object() {
            return Err(Fault {
                rule: Rule::Syntax,
                pointer: String::new(),
                reason: format!("the {} is not a mapping of fields", self.name()),
                remedy: "write it as `field: value` lines".to_owned(),
            });
        }
        let schema = self.schema.judge(content);
        schema.map_err(|fault| self.with_words_of(state, content.as_object(), fault))?;
        self.judge_lease(content)?;
        self.judge_id(content, id)?;
        self.judge_status(content, state)?;
        self.judge_required(content, &self.state(state).requires, state)?;
        if let Some(status) = self.status_of(content) {
            require_by(content, self.required_with(state, status), status)?;
        }
        Ok(())
    }

    /// Judges whether content has the kind's full set of fields, which a strict workspace wants.
    ///
    /// # Errors
    /// [`Rule::Required`] with the field that is missing.
    pub fn judge_strict(&self, content: &Value) -> Result<(), Fault> {
        require(content, self.strict.iter(), "this workspace (it is `strict`)")
    }

    /// Judges whether content may make a transition: what the transition and its target require.
    /// Its status is not judged, because the daemon writes it ([`Kind::entry_edits`]).
    ///
    /// # Errors
    /// [`Rule::Required`] with the field that is missing.
    pub fn judge_entry(&self, transition: &Transition, content: &Value) -> Result<(), Fault> {
        self.judge_entry_with(transition, content, self.status_of(content))
    }

    /// The same of a content as if it had this status.
    ///
    /// # Errors
    /// As [`Kind::judge_entry`].
    pub fn judge_entry_with(
        &self,
        transition: &Transition,
        content: &Value,
        status: Option<&str>,
    ) -> Result<(), Fault> {
        let to = transition.to;
        self.judge_required(content, &self.state(to).requires, to)?;
        if let Some(status) = self.entry_status(to, status) {
            require_by(content, self.required_on_entry(transition, status), status)?;
        }
        self.judge_required(content, &transition.requires, to)
    }

    /// Judges how a save changes the status within one state.
    ///
    /// # Errors
    /// [`Rule::StatusDiffers`] where the new one does not belong to the state,
    /// [`Rule::StatusMove`] where the lifecycle has no such move, [`Rule::Forbidden`] where it is
    /// not this role's.
    pub fn judge_status_move(
        &self,
        state: StateIx,
        from: Option<&str>,
        to: Option<&str>,
        role: Role,
    ) -> Result<(), Fault> {
        let (Some(field), true) = (&self.fields.status, from != to) else { return Ok(()) };
        if let Some(to) = to
            && !self.state(state).status.contains(to)
        {
            return Err(self.status_differs(field, to, state, None));
        }
        // Where the old one has no place here (the kind was changed), any that has is right.
        let from = from.filter(|from| self.state(state).status.contains(from));
        let (Some(moves), Some(from)) = (&self.state(state).moves, from) else { return Ok(()) };
        let here = self.state(state).shown(None);
        let fault =
            |rule, reason, remedy| Fault { rule, pointer: format!("/{field}"), reason, remedy };
        let Some(to) = to else {
            let reason = format!("`{field}` was `{from}` and is gone");
            let mut fault = fault(Rule::StatusMove, reason, format!("keep `{field}: {from}`"));
            fault.pointer.clear();
            return Err(fault);
        };
        match moves.iter().find(|one| one.from == from && one.to == to) {
            Some(one) if one.by.contains(&role) => Ok(()),
            Some(one) => Err(fault(
                Rule::Forbidden,
                format!("{} may not set `{field}` from {from} to {to}", role.with_article()),
                format!("that is for {}: ask one of them", names(&one.by)),
            )),
            None => {
                let next: Vec<&str> = moves
                    .iter()
                    .filter(|one| one.from == from && one.by.contains(&role))
                    .map(|one| one.to.as_str())
                    .collect();
                let remedy = match next.as_slice() {
                    [] => format!("keep `{field}: {from}`"),
                    next => format!("from {from} it can become {}", next.join(", ")),
                };
                let reason = format!("in {here} `{field}` cannot go from {from} to {to}");
                Err(fault(Rule::StatusMove, reason, remedy))
            }
        }
    }

    /// Whether these fields, each for itself, are such as the schema has them.
    #[must_use]
    pub fn takes(&self, fields: &Map<String, Value>) -> bool {
        self.schema.judge_so_far(&Value::Object(fields.clone()), None).is_ok()
    }

    /// Whether a top-level field, for itself, may be this text.
    ///
    /// # Errors
    /// [`Rule::Schema`] with what it may be.
    pub(super) fn takes_text(&self, field: &str, text: &str) -> Result<(), Fault> {
        let said = Map::from_iter([(field.to_owned(), Value::from(text))]);
        self.schema.judge_so_far(&Value::Object(said), None)
    }

    /// Whether a record can be written as this owner's.
    ///
    /// # Errors
    /// [`Rule::Schema`] where the schema does not take the name.
    pub fn judge_owner(&self, owner: &AgentName) -> Result<(), Fault> {
        let Some(field) = &self.fields.owner else { return Ok(()) };
        self.takes_text(field, owner.as_str()).map_err(|fault| Fault {
            // Not as it is written, but as it would be.
            pointer: String::new(),
            remedy: format!(
                "move it to the directory of one whom the schema takes as `{field}`, or have the schema \
                 changed"
            ),
            ..fault
        })
    }

    /// Judges what is said so far while the rest is still being written: types, enumerations and what
    /// else of the schema nothing that follows can mend. It is for the record `id`, which lies, or is to
    /// lie, in `state`. `last` is where the last scalar is, if a further line could make it longer; at the
    /// top that is taken to be what was meant.
    ///
    /// # Errors
    /// As [`Kind::judge`], for the first field that no further byte can mend. (A line that continues the
    /// last one mends no id and no length of time: those have no blanks.)
    pub fn judge_so_far(
        &self,
        fields: &Map<String, Value>,
        last: Option<&str>,
        (id, state): (&RecordId, StateIx),
    ) -> Result<(), Fault> {
        let content = Value::Object(fields.clone());
        let below_top = last.filter(|last| last.matches('/').count() > 1);
        let judged = self.schema.judge_so_far(&content, below_top);
        judged.map_err(|fault| self.with_words_of(state, Some(fields), fault))?;
        self.judge_lease(&content)?;
        self.judge_id(&content, id)
    }

    /// Judges a status that is said while the rest is still being written, as
    /// [`Kind::judge_status_move`] does.
    ///
    /// # Errors
    /// The same, where no further byte can mend it.
    pub fn judge_status_so_far(
        &self,
        state: StateIx,
        from: Option<&str>,
        said: Option<&str>,
        role: Role,
    ) -> Result<(), Fault> {
        let Some(to) = said else { return Ok(()) };
        match &self.state(state).status {
            Statuses::Listed(all) if all.iter().any(|one| grows_to(to, one)) => Ok(()),
            _ => self.judge_status_move(state, from, Some(to), role),
        }
    }

    /// Judges the status of a new file in `state` while the rest is still being written. `carried` is
    /// that of the record, where it lies elsewhere: the transition writes the new one.
    ///
    /// # Errors
    /// As [`Kind::judge`], where no further byte can mend it.
    pub fn judge_new_status_so_far(
        &self,
        state: StateIx,
        carried: Option<&str>,
        said: Option<&str>,
        role: Role,
    ) -> Result<(), Fault> {
        match (carried, said) {
            (Some(one), Some(to)) if one == to || grows_to(to, one) => Ok(()),
            _ => self.judge_status_so_far(state, None, said, role),
        }
    }

    /// Of a status that the schema does not know: the way out is a word that the state has, since
    /// the next rule refuses all others.
    fn with_words_of(
        &self,
        state: StateIx,
        fields: Option<&Map<String, Value>>,
        fault: Fault,
    ) -> Fault {
        let Some(field) = &self.fields.status else { return fault };
        match (&self.state(state).status, fields.and_then(|fields| fields.get(field))) {
            (Statuses::Listed(all), Some(found)) if fault.pointer == format!("/{field}") => {
                let all: Vec<&str> = all.iter().map(String::as_str).collect();
                let (_, remedy) = one_of(&format!("`{field}`"), found, &all, "");
                Fault { remedy, ..fault }
            }
            _ => fault,
        }
    }

    /// The status that is said while the rest is still being written, if it is text.
    #[must_use]
    pub fn status_so_far<'v>(&self, said: &'v Map<String, Value>) -> Option<&'v str> {
        said.get(self.fields.status.as_deref()?)?.as_str()
    }

    /// The status that content carries, if it is text.
    #[must_use]
    pub fn status_of<'v>(&self, content: &'v Value) -> Option<&'v str> {
        self.status_so_far(content.as_object()?)
    }

    /// A schema cannot compare times.
    fn judge_lease(&self, content: &Value) -> Result<(), Fault> {
        let Some(field) = &self.fields.lease else { return Ok(()) };
        let text = content.get(field).and_then(Value::as_str);
        match text.and_then(|text| Some((text, units::duration(text).ok()?))) {
            Some((text, wanted)) if wanted > LEASE_MAX => {
                let longest = units::shown_duration(LEASE_MAX);
                Err(Fault {
                    rule: Rule::Schema,
                    pointer: format!("/{field}"),
                    reason: format!(
                        "`{field}: {text}` is longer than the longest lease, {longest}"
                    ),
                    remedy: format!(
                        "write `{field}: {longest}` or less: each sign of its owner's life makes it \
                         whole again"
                    ),
                })
            }
            _ => Ok(()),
        }
    }

    fn judge_id(&self, content: &Value, id: &RecordId) -> Result<(), Fault> {
        let field = &self.fields.id;
        match content.get(field) {
            None => Ok(()),
            Some(Value::String(found)) if found == id.as_str() => Ok(()),
            Some(_) => Err(Fault {
                rule: Rule::IdDiffers,
                pointer: format!("/{field}"),
                reason: format!("`{field}` is not the file's name without its extension: {id}"),
                remedy: format!("set `{field}: {}`, or leave `{field}` out", in_yaml(id)),
            }),
        }
    }

    fn judge_status(&self, content: &Value, state: StateIx) -> Result<(), Fault> {
        let Some(field) = &self.fields.status else { return Ok(()) };
        match content.get(field).and_then(Value::as_str) {
            Some(status) if !self.state(state).status.contains(status) => {
                let owner = self.fields.owner.as_ref().and_then(|field| content.get(field));
                let owner =
                    owner.and_then(Value::as_str).and_then(|name| AgentName::new(name).ok());
                Err(self.status_differs(field, status, state, owner.as_ref()))
            }
            _ => Ok(()),
        }
    }

    /// Directory and status never disagree: the way to another status is `mv`, if there is one.
    fn status_differs(
        &self,
        field: &str,
        status: &str,
        state: StateIx,
        owner: Option<&AgentName>,
    ) -> Fault {
        let allowed: Vec<&str> = match &self.state(state).status {
            Statuses::Listed(allowed) => allowed.iter().map(String::as_str).collect(),
            Statuses::Any => Vec::new(),
        };
        let here = self.state(state).shown(None);
        let target = self.transitions.iter().find(|t| {
            t.from == state && t.to != state && {
                let there = &self.state(t.to).status;
                *there != Statuses::Any && there.contains(status)
            }
        });
        let shown = Value::String(status.to_owned());
        let (reason, remedy) = one_of(&format!("`{field}`"), &shown, &allowed, "");
        let reason = format!("{reason}, as {here} demands");
        let remedy = match target {
            Some(transition) => {
                let there = self.state(transition.to).shown(owner);
                let way = format!("`mv` the file to {there}");
                if transition.by.contains(&Role::Agent) {
                    format!(
                        "leave `{field}` as it was, save, then {way}: the `mv` changes `{field}`"
                    )
                } else {
                    format!("{remedy}; or, as {}, {way}", names(&transition.by))
                }
            }
            None => remedy,
        };
        Fault { rule: Rule::StatusDiffers, pointer: format!("/{field}"), reason, remedy }
    }

    fn judge_required(
        &self,
        content: &Value,
        required: &[FieldPath],
        state: StateIx,
    ) -> Result<(), Fault> {
        if required.iter().all(|path| path.is_in(content)) {
            return Ok(());
        }
        require(content, required.iter(), &self.state(state).shown(None))
    }

    /// The fields at the top without which the schema takes no content.
    pub fn required_always(&self) -> impl Iterator<Item = &str> {
        let names = self.schema.source.get("required").and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str)
    }

    /// What a record of `state` must have besides, where its status is this.
    pub fn required_with(&self, state: StateIx, status: &str) -> impl Iterator<Item = &FieldPath> {
        let with = self.state(state).status_requires.iter();
        with.filter(move |(when, _)| when == status).flat_map(|(_, required)| required)
    }
}

/// Refuses a content that lacks what its status requires.
fn require_by<'p>(
    content: &Value,
    required: impl Iterator<Item = &'p FieldPath>,
    status: &str,
) -> Result<(), Fault> {
    let mut required = required.peekable();
    if required.peek().is_none() {
        return Ok(());
    }
    require(content, required, &format!("status `{status}`"))
}

fn require<'p>(
    content: &Value,
    mut required: impl Iterator<Item = &'p FieldPath>,
    by: &str,
) -> Result<(), Fault> {
    match required.find(|path| !path.is_in(content)) {
        None => Ok(()),
        Some(path) => Err(Fault {
            rule: Rule::Required,
            pointer: path.nearest_pointer(content),
            reason: format!("`{path}` is missing or empty, and {by} requires it"),
            remedy: format!("add it: {}", example(path)),
        }),
    }
}

/// Whether a further line could make `one` of what is said.
fn grows_to(said: &str, one: &str) -> bool {
    one.strip_prefix(said).is_some_and(|rest| rest.starts_with(char::is_whitespace))
}

/// How a field is written: `result: { summary: … }`.
fn example(path: &FieldPath) -> String {
    let mut text = "…".to_owned();
    for (depth, key) in path.first_way().iter().rev().enumerate() {
        text = if depth == 0 { format!("{key}: {text}") } else { format!("{key}: {{ {text} }}") };
    }
    format!("`{text}`")
}

/// An id as it is to be written: in quotes where YAML would read a number, a truth or nothing, by the eye too.
fn in_yaml(id: &RecordId) -> String {
    let of_no_number =
        |b: u8| matches!(b.to_ascii_lowercase(), b'g'..=b'n' | b'p'..=b'w' | b'y' | b'z');
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"];
    let is_text = id.as_str().bytes().any(of_no_number)
        && !words.contains(&id.as_str().to_ascii_lowercase().as_str());
    if is_text { id.to_string() } else { format!("'{id}'") }
}
