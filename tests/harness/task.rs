//! Tasks as tests write them: valid, and such that half of one can be told from a whole one.

/// A task's text in the making.
#[derive(Clone, Debug)]
pub struct Task {
    id: String,
    status: String,
    owner: String,
    revision: u64,
    more: String,
}

impl Task {
    /// A new task.
    pub fn new(id: &str) -> Task {
        let (status, owner, more) = ("new".into(), "nobody".into(), String::new());
        Task { id: id.to_owned(), status, owner, revision: 0, more }
    }

    /// With this status.
    pub fn status(mut self, status: &str) -> Task {
        status.clone_into(&mut self.status);
        self
    }

    /// With this `agent:`.
    pub fn owner(mut self, owner: &str) -> Task {
        owner.clone_into(&mut self.owner);
        self
    }

    /// With this revision, which stands at both ends of the text.
    pub fn revision(mut self, revision: u64) -> Task {
        self.revision = revision;
        self
    }

    /// With more lines before the end mark.
    pub fn with(mut self, lines: &str) -> Task {
        self.more.push_str(lines);
        self
    }

    /// The name of its file.
    pub fn file(&self) -> String {
        format!("{}.yaml", self.id)
    }

    /// Its text.
    pub fn text(&self) -> String {
        let Task { id, status, owner, revision, more } = self;
        format!(
            "# A task of the tests: comments and quoting stay as they are.\n\
             id: {id}\n\
             revision: {revision}\n\
             title:   'Task {id}'   # with odd spaces\n\
             agent: {owner}\n\
             status: {status}\n\
             taken_by: none\n\
             priority: normal\n\
             artefacts: [ \"a.md\",   b.md ]\n\
             assigned_at: null\n\
             description: |\n  \
               Some lines of text,\n  \
               status: not this one\n\
             {more}\
             revision_at_end: {revision}\n\
             end_of: {id}\n"
        )
    }
}

/// What `revision:` says in a text that is one whole version of task `id`; the error says what is
/// torn about it. Whatever a program may have added at the end does not matter.
pub fn whole(id: &str, text: &[u8]) -> Result<u64, String> {
    let Ok(text) = std::str::from_utf8(text) else { return Err("not UTF-8".to_owned()) };
    if text.is_empty() {
        return Err("empty".to_owned());
    }
    let value = |key: &str| -> Result<&str, String> {
        let mut found = text.lines().filter_map(|line| line.strip_prefix(key)).map(str::trim);
        let first = found.next().ok_or_else(|| format!("no `{key}` in:\n{text}"))?;
        if found.next().is_some() { Err(format!("`{key}` twice in:\n{text}")) } else { Ok(first) }
    };
    if value("id:")? != id || value("end_of:")? != id {
        return Err(format!("another task's id in:\n{text}"));
    }
    let revision = value("revision:")?;
    if revision != value("revision_at_end:")? {
        return Err(format!("two revisions in:\n{text}"));
    }
    if !text.ends_with('\n') {
        return Err(format!("cut at the end:\n{text}"));
    }
    revision.parse().map_err(|_| format!("revision {revision}"))
}

/// The number in a text's line `key: number`.
pub fn number_of(text: &str, key: &str) -> Option<u64> {
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(':')?.trim().parse().ok())
}
