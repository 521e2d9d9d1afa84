//! The task's lifecycle, written down a second time from the design: directories, texts, moves.

use super::text::{self, Edits, Fields, Reading, Value};

/// A state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Inbox,
    Assigned,
    Done,
    Fridge,
    Archive,
}

/// What a directory of the workspace is, by its path from the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The workspace, or a directory on the way to a state's.
    Way,
    /// A state's directory, with its owner.
    State(State, Option<String>),
    /// No business of the workspace.
    Outside,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Inbox => "inbox",
            State::Assigned => "assigned",
            State::Done => "done",
            State::Fridge => "fridge",
            State::Archive => "archive",
        }
    }

    /// The values of `status` here; `None`: any.
    fn statuses(self) -> Option<&'static [&'static str]> {
        match self {
            State::Inbox => Some(&["new", "inbox"]),
            State::Assigned => Some(&["assigned", "in_progress", "blocked", "error"]),
            State::Done => Some(&["done"]),
            State::Fridge | State::Archive => None,
        }
    }

    pub fn takes(self, status: &str) -> bool {
        self.statuses().is_none_or(|known| known.contains(&status))
    }
}

/// What the directory at this path is; the path starts with the workspace's own name.
pub fn place(path: &[String]) -> Place {
    let Some((first, relative)) = path.split_first() else { return Place::Outside };
    if first != "work" {
        return Place::Outside;
    }
    let relative: Vec<&str> = relative.iter().map(String::as_str).collect();
    let agent = |name: &str| !name.starts_with(['.', '_', '-']);
    match relative[..] {
        [] | ["assigned"] => Place::Way,
        ["inbox"] => Place::State(State::Inbox, None),
        ["assigned", owner] if agent(owner) => Place::State(State::Assigned, Some(owner.into())),
        ["done"] => Place::State(State::Done, None),
        ["done", owner] if agent(owner) => Place::State(State::Done, Some(owner.into())),
        ["fridge"] => Place::State(State::Fridge, None),
        ["fridge", any] if !any.starts_with('.') => Place::State(State::Fridge, None),
        ["archive"] => Place::State(State::Archive, None),
        ["archive", any] if !any.starts_with('.') => Place::State(State::Archive, None),
        _ => Place::Outside,
    }
}

/// The id that a file name stands for, if it is record-like.
pub fn record_id(name: &str) -> Option<&str> {
    let stem = name.strip_suffix(".yaml").or_else(|| name.strip_suffix(".yml"))?;
    let random = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let temporary = stem.starts_with("tmp") && stem.len() >= 9 && stem.chars().all(random)
        || stem.starts_with('.')
        || stem.ends_with(".tmp")
        || stem.contains(".tmp.");
    (!temporary).then_some(stem)
}

/// The name of the record that a file of this name is made to be renamed over: as mkstemp names it,
/// with 8 random characters before the extension.
pub fn renamed_over(name: &str) -> Option<String> {
    let [before @ .., random, extension] = &name.split('.').collect::<Vec<_>>()[..] else {
        return None;
    };
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_random = random.len() == 8
        && random.chars().all(word)
        && !random.chars().all(|c| c.is_ascii_digit());
    let over = format!("{}.{extension}", before.join("."));
    (is_random && !before.is_empty() && record_id(&over).is_some()).then_some(over)
}

/// What is wrong with a text in a state; `None` in the error: the reader is not sure.
pub fn judge(bytes: &[u8], id: &str, state: State) -> Result<Fields, Option<&'static str>> {
    let fields = match text::read(bytes) {
        Reading::Fields(fields) => fields,
        Reading::Broken => return Err(Some("broken")),
        Reading::Unknown => return Err(None),
    };
    if !fits_schema(&fields) {
        return Err(Some("schema"));
    }
    match fields.get("id") {
        None => {}
        Some(Value::Text(found)) if found == id => {}
        Some(_) => return Err(Some("id")),
    }
    let status = status(&fields);
    if status.is_some_and(|status| !state.takes(status)) {
        return Err(Some("status"));
    }
    if may_enter(&fields, state).is_err()
        || state == State::Assigned && status == Some("error") && !has(&fields, "error", "message")
    {
        return Err(Some("required"));
    }
    Ok(fields)
}

/// Types and enumerations of the known fields.
pub fn fits_schema(fields: &Fields) -> bool {
    let known = ["new", "inbox", "assigned", "in_progress", "blocked", "done", "error"].as_slice();
    let text_or_null = |value: &Value| matches!(value, Value::Text(_) | Value::Null);
    fields.iter().all(|(key, value)| match key.as_str() {
        "id" => matches!(value, Value::Text(_)),
        "status" => matches!(value, Value::Text(status) if known.contains(&status.as_str())),
        "agent" | "title" | "assigned_at" | "completed_at" => text_or_null(value),
        "result" | "error" => match value {
            Value::Null => true,
            Value::Map(inner) => inner.iter().all(|(key, value)| {
                !["summary", "message"].contains(&key.as_str()) || text_or_null(value)
            }),
            _ => false,
        },
        _ => true,
    })
}

/// Whether what the state requires of whatever enters it is there.
pub fn may_enter(fields: &Fields, state: State) -> Result<(), ()> {
    if state == State::Done && !has(fields, "result", "summary") { Err(()) } else { Ok(()) }
}

fn has(fields: &Fields, outer: &str, inner: &str) -> bool {
    matches!(fields.get(outer), Some(Value::Map(map))
        if matches!(map.get(inner), Some(Value::Text(text)) if !text.trim().is_empty()))
}

pub fn status(fields: &Fields) -> Option<&str> {
    match fields.get("status") {
        Some(Value::Text(status)) => Some(status),
        _ => None,
    }
}

/// Whether an operator's save may change the status so within a state.
pub fn may_become(state: State, from: Option<&str>, to: Option<&str>) -> bool {
    if from == to || state != State::Assigned {
        return true;
    }
    matches!(
        (from, to),
        (None, _)
            | (Some("assigned"), Some("in_progress" | "blocked" | "error"))
            | (Some("in_progress"), Some("blocked" | "error"))
            | (Some("blocked"), Some("in_progress" | "error"))
            | (Some("error"), Some("assigned"))
    )
}

/// Whether the lifecycle has this transition, for an operator.
pub fn may_move(from: State, to: State) -> bool {
    use State::{Archive, Assigned, Done, Fridge, Inbox};
    match (from, to) {
        (Inbox, Inbox) => false,
        (Inbox | Assigned | Done, _) | (Fridge, Inbox | Fridge | Archive) => true,
        (Archive, Inbox | Done | Archive) => true,
        (Fridge | Archive, _) => false,
    }
}

/// What the daemon writes into a text that makes this transition.
pub fn edits(from: State, to: State, owner: Option<&str>, fields: &Fields) -> Edits {
    let mut edits = Edits::new();
    if let Some(known) = to.statuses()
        && status(fields).is_none_or(|status| !known.contains(&status))
    {
        edits.push(("status", Some(known[0].to_owned())));
    }
    if let Some(owner) = owner
        && fields.get("agent") != Some(&Value::Text(owner.to_owned()))
    {
        edits.push(("agent", Some(owner.to_owned())));
    }
    match to {
        State::Assigned => edits.push(("assigned_at", None)),
        State::Done if matches!(from, State::Assigned | State::Inbox) => {
            if matches!(fields.get("completed_at"), None | Some(Value::Null)) {
                edits.push(("completed_at", None));
            }
        }
        _ => {}
    }
    edits
}
