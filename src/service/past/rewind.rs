//! `restore WHAT --at WHEN`: a record or a plain file becomes what it was.
//!
//! What must stay true: nothing of the past is lost by it: the old content is a new version, under
//! the rules of any save. Restoring a whole store from a backup is another thing (`restore`).

use serde::{Deserialize, Serialize};

use super::pasts::{how, how_with, require_record_there, was_gone, was_of};
use crate::config::Config;
use crate::engine::{
    Elsewhere, PastEvent, RestoreFile, RestoreRecord, Text, Told, VersionThen, Whence, counted,
    event_of, last_of, node_at, record_version_name, retention, until, usual_extension,
    version_then, versions_of, whence,
};
use crate::names::{ShownPath, TreePath, shell_word};
use crate::numbers::{G, UnixNanos};
use crate::refusal::Refusal;
use crate::service::find::{Found, FoundRecord, find_past, past_of};
use crate::service::request::permitted::{expect_own, is_bound, not_the_past};
use crate::service::request::refused::note_refused;
use crate::service::{Caller, Exit, Failure, Part, RewindArgs, Service};
use crate::store::{FileVersion, NodeType, Read, Standing, VersionRow, earlier};

/// See [`crate::service::Request::Rewind`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewindReport {
    /// What was restored.
    pub path: ShownPath,
    /// The event that made the content which is there again.
    pub from_g: G,
    /// When that was, RFC 3339.
    pub from_at: String,
    /// Its bytes.
    pub size: u64,
    /// It was gone: it is its restorer's alone now.
    #[serde(default)]
    pub made: bool,
}

impl RewindReport {
    /// One line.
    #[must_use]
    pub fn human(&self) -> String {
        let RewindReport { path, from_g, from_at, size, made } = self;
        let made = if *made { "\nit was gone: its mode is 0600 and its owner you now" } else { "" };
        format!("{path} is what it was at event {from_g} ({from_at}): {size} bytes{made}")
    }

    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        Exit::Done
    }
}

/// A moment of the past.
#[derive(Clone, Copy, Debug)]
enum When {
    Event(G),
    Time(UnixNanos),
}

impl When {
    fn parse(text: &str) -> Result<When, Failure> {
        let digits = text.strip_prefix('g').unwrap_or(text);
        if let Ok(g) = digits.parse() {
            return Ok(When::Event(G(g)));
        }
        let time = UnixNanos::parse_moment(text);
        time.map(When::Time).ok_or_else(|| {
            let shown = crate::names::printable(text.as_bytes());
            let remedy = "give an event's number, a day (2026-11-21: its beginning in UTC), or a time \
                          with its zone (2026-11-21T10:30:00Z, 2026-11-21T12:30:00+02:00)";
            Failure::new(Exit::Usage, format!("`{shown}` is no moment"), remedy)
        })
    }

    fn includes(self, g: G, at: UnixNanos) -> bool {
        match self {
            When::Event(last) => g <= last,
            When::Time(last) => at <= last,
        }
    }
}

/// What it is to become.
enum Past {
    Record(Box<FoundRecord>, G, VersionRow),
    File(TreePath, FileVersion, Vec<u8>),
}

impl Past {
    /// The event that made it.
    fn made_by(&self) -> G {
        match self {
            Past::Record(_, g, _) => *g,
            Past::File(_, version, _) => version.g,
        }
    }
}

/// Restores.
///
/// # Errors
/// There is no such version (any more), or a rule refuses it now.
pub(in crate::service) fn rewind(
    service: &Service,
    caller: &Caller,
    args: &RewindArgs,
) -> Result<RewindReport, Failure> {
    let when = When::parse(&args.at)?;
    match when {
        When::Event(g) => service.read(|read| require_past(read, g))?,
        // As it is now it is already: whoever asks means another moment.
        When::Time(at) if at > service.engine.now() => {
            // As it was asked: a moment that is further than those of the ledger go is held to their end.
            let reason = format!("{} is still to come", args.at);
            return Err(Failure::new(Exit::Absent, reason, "`workfs log` says what happened when"));
        }
        When::Time(_) => {}
    }
    let past = service.read(|read| past(service, read, caller, (&args.what, when)));
    let past = past.inspect_err(|failure| {
        note_refused(service, caller, ("restore", Some(&args.what)), failure);
    })?;
    match past {
        Past::Record(found, g, version) => restore_record(service, caller, *found, (g, version)),
        Past::File(path, version, content) => {
            restore_file(service, caller, &path, (version, content))
        }
    }
}

/// What `what` was then, if its past is open to who asks.
fn past(
    service: &Service,
    read: &dyn Read,
    caller: &Caller,
    (what, when): (&str, When),
) -> Result<Past, Failure> {
    let (config, part) = (service.engine.config(), &caller.part);
    let is_bound = is_bound(service, caller);
    let found = find_past(read, &config, part, what);
    if is_bound && let Ok(found) = &found {
        // What it was is not shown to whom the past is closed but by becoming it.
        expect_own(read, caller, found.path().ok_or_else(|| not_the_past(caller))?)?;
    }
    let past = match found {
        Ok(Found::Record(found)) => record_past((read, part), found, when),
        Ok(Found::Node(path, _) | Found::Draft(path, ..)) => {
            file_past((read, &config, part), path, when)
        }
        Err(failure) if failure.exit == Exit::Absent => match past_of(read, part, what)? {
            Some(_) if is_bound => Err(not_the_past(caller)),
            Some(path) => file_past((read, &config, part), path, when),
            None => Err(failure),
        },
        Err(failure) => Err(failure),
    }?;
    // The past goes by the path: what lay there then may have been another's.
    if is_bound && !was_of(read, past.made_by(), caller.uid)? {
        return Err(not_the_past(caller));
    }
    Ok(past)
}

/// Saves a record's former version anew.
fn restore_record(
    service: &Service,
    caller: &Caller,
    found: FoundRecord,
    (g, version): (G, VersionRow),
) -> Result<RewindReport, Failure> {
    if found.record.standing == Standing::Gone {
        return Err(write_anew(&service.engine.config(), &found, g));
    }
    found.entry()?;
    let report = RewindReport {
        path: found.path.map_or_else(
            || ShownPath::new(found.record.id.as_str()),
            |path| caller.part.show(&path),
        ),
        from_g: g,
        from_at: version.at.rfc3339_seconds(),
        size: version.content.len() as u64,
        made: false,
    };
    let (record, seen) = (found.record.key, found.record.version);
    let text = Text::new(version.content);
    let restore = RestoreRecord { record, seen, from_g: g, text };
    let restored = service.engine.run(caller.context(), restore);
    restored.map_err(|refusal| not_now(&report.path, g, refusal))?;
    Ok(report)
}

/// Writes a file's former content at its path, where it is made if it is gone.
fn restore_file(
    service: &Service,
    caller: &Caller,
    path: &TreePath,
    (version, content): (FileVersion, Vec<u8>),
) -> Result<RewindReport, Failure> {
    let part = &caller.part;
    let Some((above, name)) = path.split_last() else { return Err(lost("the root")) };
    let parent = service.read(|read| Ok(node_at(read, &above)?))?.ok_or_else(|| {
        let reason = format!("the directory `{}` is gone", part.show(&above));
        Failure::new(Exit::Absent, reason, "make it first, then restore the file")
    })?;
    let name = name.clone();
    let restore = RestoreFile { parent: parent.ino, name, from_g: version.g, content };
    let restored = service.engine.run(caller.context(), restore);
    let made = restored.map_err(|refusal| not_now(&part.show(path), version.g, refusal))?;
    Ok(RewindReport {
        path: part.show(path),
        from_g: version.g,
        from_at: version.at.rfc3339_seconds(),
        size: version.size,
        made,
    })
}

/// What a rule refuses to become what it was.
fn not_now(path: &ShownPath, g: G, refusal: Refusal) -> Failure {
    let failure = Failure::from(refusal);
    let reason = format!("`{path}` cannot be what event {g} made it: {}", failure.reason);
    Failure { reason, ..failure }
}

/// A record that was removed has no file to be saved in; where it is to lie its restorer must say.
fn write_anew(config: &Config, found: &FoundRecord, g: G) -> Failure {
    let (id, workspace) = (&found.record.id, &found.workspace.path);
    let version = record_version_name(config, workspace, g);
    let extension = usual_extension(config, workspace);
    let reason = format!("`{id}` has no file any more: it was removed or moved out");
    let workspace = shell_word(&workspace.to_bytes());
    let remedy = format!(
        "write it anew where it is to lie, with what it was, in a mount of the whole tree: \
         cp .workfs/history/{workspace}/{id}/{version} {workspace}/DIRECTORY/{id}.{extension}"
    );
    Failure::new(Exit::Absent, reason, remedy)
}

fn lost(what: &str) -> Failure {
    Failure::new(Exit::Absent, format!("`{what}` is gone"), "look again at what there is")
}

fn record_past(
    (read, part): (&dyn Read, &Part),
    found: Box<FoundRecord>,
    when: When,
) -> Result<Past, Failure> {
    let mut at = found.record.version_g;
    while let Some(version) = read.version(at)? {
        if when.includes(at, version.at) {
            require_record_there((read, part), &found.record, at, |event| {
                when.includes(event.row.g, event.at())
            })?;
            return Ok(Past::Record(found, at, version));
        }
        at = earlier(at, version.before_g)?;
    }
    let id = &found.record.id;
    let remedy = format!("`workfs log {id}` shows its events");
    Err(Failure::new(Exit::Absent, format!("`{id}` was not there yet"), remedy))
}

fn file_past(
    (read, config, part): (&dyn Read, &Config, &Part),
    path: TreePath,
    when: When,
) -> Result<Past, Failure> {
    let (version, content) =
        kept_version((read, config, part), &path, |g, at| when.includes(g, at))?;
    Ok(Past::File(path, version, content))
}

/// An event that has not happened is a typing error: it would be the newest version.
pub(in crate::service) fn require_past(read: &dyn Read, g: G) -> Result<(), Failure> {
    if read.last_event()?.is_some_and(|last| g <= last.g) {
        return Ok(());
    }
    let remedy = "`workfs log` shows what has happened";
    Err(Failure::new(Exit::Absent, format!("event {g} has not happened yet"), remedy))
}

/// Whether a file was ever saved under this path, or came there with its content by a command: then
/// the event tells its size.
fn was_saved(read: &dyn Read, path: &TreePath) -> Result<bool, Failure> {
    let mut at = last_of(read, path)?;
    while let Some(event) = at {
        if !event.is_end && !event.is_left && event.event.pointer("/payload/size").is_some() {
            return Ok(true);
        }
        at = event_of(read, path, event.before)?;
    }
    Ok(false)
}

/// The version that a plain file had at a moment, to which `includes` belongs what happened until then, if it
/// is kept.
pub(in crate::service) fn kept_version(
    (read, config, part): (&dyn Read, &Config, &Part),
    path: &TreePath,
    includes: impl Fn(G, UnixNanos) -> bool,
) -> Result<(FileVersion, Vec<u8>), Failure> {
    let kept = versions_of(read, path)?;
    let before = kept.iter().find(|version| includes(version.g, version.at));
    let reason = format!("no version of `{}` is kept from then", part.show(path));
    let lost = |remedy| Err(Failure::new(Exit::Absent, reason.clone(), remedy));
    let of_path = |event: &PastEvent| includes(event.row.g, event.at());
    let node_type = node_at(read, path)?.map(|node| node.node_type);
    let (is_file, is_dir) =
        (node_type == Some(NodeType::File), node_type == Some(NodeType::Directory));
    let counts = counted(config);
    let told = match (whence(read, path, counts, of_path)?, before) {
        (Whence::Own { before }, _) => Some(Told { path: path.clone(), before }),
        (Whence::Brought { told: Some(told), .. }, _) if part.has(&told.path) => Some(told),
        // Of a directory it is said below what tells of what lay in it.
        (Whence::Brought { by, from, untold: Some(untold), .. }, _)
            if part.has(&untold) && !is_dir =>
        {
            let way =
                from.is_some().then_some("; what it was before is told of the path that it had");
            return lost(format!(
                "{}; `files` in the configuration keeps nothing of `{}`, where it lay since, so what changed \
                 there is in no event{}",
                brought(from.as_ref(), by, part),
                part.show(&untold),
                way.unwrap_or_default(),
            ));
        }
        (Whence::Brought { by, from, .. }, Some(_)) => {
            return lost(brought(from.as_ref(), by, part));
        }
        (Whence::Gone { by, with }, Some(version)) => {
            let how = with.map_or_else(|| how(&by, part), |dir| how_with(&by, &dir, part));
            let last = last_of(read, path)?;
            let (_, after) = until(last, of_path, |g| event_of(read, path, g))?;
            return Err(was_gone(&part.show(path).to_string(), &how, (version.g, after)));
        }
        (Whence::Brought { .. } | Whence::Gone { .. }, None) => None,
    };
    if let Some(told) = told {
        match version_then(read, &told, counts, includes)? {
            VersionThen::Kept(version) => {
                if let Some(content) = read.file_version(version.g)? {
                    return Ok((version, content));
                }
            }
            VersionThen::Elsewhere(elsewhere) => return lost(told_elsewhere(elsewhere, part)),
            VersionThen::None => {}
        }
    }
    let remedy = match (kept.last(), kept.first()) {
        (Some(oldest), Some(newest)) => {
            format!("kept are those of events {} to {}", oldest.g, newest.g)
        }
        _ if was_saved(read, path)? => {
            "none is kept at all: `files` in the configuration says of which".to_owned()
        }
        _ if is_file && retention(config, path).is_none() => {
            "none was ever saved here, and none will be: `files` in the configuration keeps nothing of \
             this path"
                .to_owned()
        }
        _ if is_file => {
            "none was ever saved here: it was moved here with its directory, or lay here before its \
             saves counted. Its next save makes its first version"
                .to_owned()
        }
        _ => "none was ever saved: a directory or a link has no versions, nor has a file that was moved \
              here with its directory. What lay in a directory after event G is in `.workfs/at/G/` \
              of a mount: copy that, or make the directory anew and restore file by file (`workfs log` of \
              its path names them)"
            .to_owned(),
    };
    lost(remedy)
}

/// With what a directory has brought came.
fn brought(from: Option<&TreePath>, by: G, part: &Part) -> String {
    let from = from.map_or_else(String::new, |from| format!(" from `{}`", part.show(from)));
    format!("what lay there then had come{from} with its directory, by event {by}")
}

/// The way to what was saved by another name of a file.
fn told_elsewhere(elsewhere: Elsewhere, part: &Part) -> String {
    match elsewhere {
        Elsewhere::Told(other, g) if part.has(&other) => format!(
            "it was the file of `{}` by another name, and event {g} tells what that was: ask for that name",
            part.show(&other)
        ),
        Elsewhere::Lost(other) if part.has(&other) => format!(
            "it was the file of `{}` by another name, which was moved or replaced: what was saved by others \
             is not told of this one",
            part.show(&other)
        ),
        Elsewhere::Unknown | Elsewhere::Told(..) | Elsewhere::Lost(_) => {
            "it was another name of a file then, and saves of that are told under one alone"
                .to_owned()
        }
    }
}
