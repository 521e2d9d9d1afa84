//! One record, draft or file: its text, where it stands, what happened to it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::{Leaves, PastEvent, event_of, event_of_record};
use crate::ledger::{field, path_of_ledger};
use crate::names::{AgentName, ShownPath, TreePath, printable};
use crate::numbers::{Attempt, G, Version};
use crate::refusal::Rule;
use crate::service::find::{Found, FoundRecord, find_past, find_to_tell, past_of};
use crate::service::past::rewind::{kept_version, require_past};
use crate::service::reply::text::{placed, seconds};
use crate::service::request::permitted::{expect_readable, is_bound, not_the_past};
use crate::service::{Caller, Exit, Failure, Part, Service, ShowArgs};
use crate::store::{Node, NodeType, Read, Record, Standing, VersionRow, earlier};

/// Events of a record that are shown with it.
const HISTORY_ROWS_MAX: usize = 20;

/// Largest plain file that is shown.
const SHOWN_BYTES_MAX: u64 = 1 << 20;

/// One event of a record, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryRow {
    /// The event.
    pub g: G,
    /// When, RFC 3339.
    pub at: String,
    /// What happened.
    pub event: String,
    /// Who did it.
    pub actor: String,
    /// The version after it.
    pub version: Option<Version>,
}

/// See [`crate::service::Request::Show`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShowReport {
    /// `record`, `draft`, `file`, `directory` or `link`.
    pub what: String,
    /// The record's id.
    pub id: Option<String>,
    /// Where it lies; none if it has no file.
    pub path: Option<ShownPath>,
    /// Where it lay, and will again, if its name is a backup's (`X.yaml~`) at the moment.
    #[serde(default)]
    pub parked_in: Option<ShownPath>,
    /// The record's workspace.
    pub workspace: Option<ShownPath>,
    /// Its state.
    pub state: Option<String>,
    /// The status that its text says, as it is now.
    #[serde(default)]
    pub status: Option<String>,
    /// Whose it is.
    pub owner: Option<AgentName>,
    /// How often it was claimed.
    pub attempt: Option<Attempt>,
    /// Until when its owner has it at least, RFC 3339, if it is leased.
    pub lease_until: Option<String>,
    /// The version that `text` is.
    pub version: Option<Version>,
    /// When that was saved, or when the file was changed, RFC 3339.
    pub at: Option<String>,
    /// The rule that a draft or a flagged record breaks.
    pub rule: Option<Rule>,
    /// The same in words.
    pub why: Option<String>,
    /// The way out.
    pub remedy: Option<String>,
    /// The content; of a directory its names; what is not UTF-8 is replaced.
    pub text: String,
    /// So many bytes a file has that is too large to be shown: then `text` is empty.
    #[serde(default)]
    pub left_out_bytes: Option<u64>,
    /// The last events, newest first.
    pub history: Vec<HistoryRow>,
    /// Whether there are older events.
    pub more_history: bool,
}

impl ShowReport {
    /// What is known, as comments, then the text: still YAML.
    #[must_use]
    pub fn human(&self) -> String {
        let mut out = String::new();
        let mut say = |text: String| out.push_str(&format!("# {text}\n"));
        match (&self.path, &self.id) {
            (Some(path), _) => say(path.to_string()),
            (None, Some(id)) => say(match &self.parked_in {
                Some(dir) => {
                    format!("{id}: parked in {dir}/, until its name is no backup's any more")
                }
                None => format!("{id}: has no file any more"),
            }),
            (None, None) => {}
        }
        let mut facts = vec![self.what.clone()];
        facts.extend(self.state.as_ref().map(|state| format!("state {state}")));
        facts.extend(self.owner.as_ref().map(|owner| format!("owner {owner}")));
        facts.extend(self.lease_until.as_ref().map(|until| format!("leased until {until}")));
        facts.extend(self.version.map(|version| format!("version {version}")));
        facts.extend(self.at.clone());
        say(facts.join(" · "));
        if let Some(why) = &self.why {
            let rule = self.rule.map_or_else(String::new, |rule| format!(" [{}]", rule.code()));
            say(format!("not valid: {why}{rule}"));
        }
        if let Some(remedy) = &self.remedy {
            say(format!("  {remedy}"));
        }
        for row in &self.history {
            let version = row.version.map_or_else(String::new, |v| format!(" → version {v}"));
            say(format!("{} g{} {} by {}{version}", row.at, row.g, row.event, row.actor));
        }
        if self.more_history {
            say("and older events: workfs log".to_owned());
        }
        if let Some(bytes) = self.left_out_bytes {
            say(format!("{bytes} bytes: read it through a mount, or export it"));
        }
        out.push_str(self.text.trim_end_matches('\n'));
        out
    }

    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        Exit::Done
    }

    fn empty(what: &str) -> Self {
        ShowReport {
            what: what.to_owned(),
            id: None,
            path: None,
            parked_in: None,
            workspace: None,
            state: None,
            status: None,
            owner: None,
            attempt: None,
            lease_until: None,
            version: None,
            at: None,
            rule: None,
            why: None,
            remedy: None,
            text: String::new(),
            left_out_bytes: None,
            history: Vec::new(),
            more_history: false,
        }
    }
}

/// Shows.
///
/// # Errors
/// Nothing is meant by `what`, or there is no such version.
pub(in crate::service) fn show(
    service: &Service,
    caller: &Caller,
    args: &ShowArgs,
) -> Result<ShowReport, Failure> {
    let part = &caller.part;
    let config = service.engine.config();
    if args.at.is_some() && args.g.is_some() {
        let remedy = "give one of the two";
        return Err(Failure::new(Exit::Usage, "a version and an event were given", remedy));
    }
    let is_bound = is_bound(service, caller);
    let is_past = args.at.is_some() || args.g.is_some();
    if is_bound && is_past {
        return Err(not_the_past(caller));
    }
    let look = if is_past { find_past } else { find_to_tell };
    if let Some(g) = args.g {
        service.read(|read| require_past(read, g))?;
    }
    service.read(|read| match look(read, &config, part, &args.what) {
        // A file that is gone has a past.
        Err(failure) if failure.exit == Exit::Absent && args.g.is_some() => {
            match past_of(read, part, &args.what)? {
                Some(path) => file((read, &config, part), &path, None, args),
                None => Err(failure),
            }
        }
        Err(failure) => Err(failure),
        Ok(found) => {
            if is_bound {
                let path = found.path().ok_or_else(|| not_the_past(caller))?;
                expect_readable(read, caller, path)?;
            }
            shown(service, (read, caller), found, args)
        }
    })
}

fn shown(
    service: &Service,
    (read, caller): (&dyn Read, &Caller),
    found: Found,
    args: &ShowArgs,
) -> Result<ShowReport, Failure> {
    let (config, part) = (service.engine.config(), &caller.part);
    match found {
        Found::Record(found) => {
            let mut report = record((read, caller), &config, &found, args)?;
            // The lease of now is nothing of the past.
            if args.at.is_none() && args.g.is_none() {
                let key = found.record.key;
                report.lease_until = super::heartbeat::lease_until(service, read, key)?;
            }
            Ok(report)
        }
        Found::Draft(path, node, draft) => {
            no_versions(args)?;
            let mut report = ShowReport::empty("draft");
            let slot = crate::engine::slot(read, &config, draft.dir, &draft.name)?;
            if let crate::engine::Slot::Record(home) = slot {
                report.id = Some(home.id.to_string());
                report.workspace = Some(part.show(&home.governed.path));
                report.state = Some(home.kind().state(home.state).name.to_string());
                report.owner = home.owner;
            }
            report.path = Some(part.show(&path));
            report.at = Some(node.mtime.rfc3339_seconds());
            report.text = String::from_utf8_lossy(&draft.content).into_owned();
            match draft.why {
                Some(why) => {
                    report.rule = Some(why.rule);
                    report.why = Some(placed(&why.reason, why.place));
                    report.remedy = Some(why.remedy);
                }
                None => report.why = Some("nothing was saved to it yet".to_owned()),
            }
            Ok(report)
        }
        Found::Node(path, node) if node.node_type == NodeType::File => {
            file((read, &config, part), &path, Some(&node), args)
        }
        // A file may have lain there before.
        Found::Node(path, _) if args.g.is_some() && read.history(&path)?.is_some() => {
            file((read, &config, part), &path, None, args)
        }
        Found::Node(path, node) => {
            no_versions(args)?;
            let mut report = plain(read, &node)?;
            report.path = Some(part.show(&path));
            report.at = Some(node.mtime.rfc3339_seconds());
            Ok(report)
        }
    }
}

fn no_versions(args: &ShowArgs) -> Result<(), Failure> {
    if args.at.is_none() && args.g.is_none() {
        return Ok(());
    }
    let reason =
        format!("`{}` is no record and has no versions", ShownPath::from(args.what.clone()));
    Err(Failure::new(Exit::Usage, reason, "show it as it is"))
}

/// A plain file as it is, or as it was after an event.
fn file(
    (read, config, part): (&dyn Read, &crate::config::Config, &Part),
    path: &TreePath,
    node: Option<&Node>,
    args: &ShowArgs,
) -> Result<ShowReport, Failure> {
    let mut report = ShowReport::empty("file");
    let mut newest = read.history(path)?.map(|history| history.last_g);
    if args.at.is_some() {
        let path = part.show(path);
        let reason = format!("versions of files such as `{path}` have no numbers of their own");
        return Err(Failure::new(
            Exit::Usage,
            reason,
            "name the event: `--g G`, from `workfs log`",
        ));
    }
    if let Some(g) = args.g {
        let (version, content) = kept_version((read, config, part), path, |then, _| then <= g)?;
        report.text = String::from_utf8_lossy(&content).into_owned();
        report.at = Some(version.at.rfc3339_seconds());
        newest = Some(version.g);
    } else if let Some(node) = node {
        report = plain(read, node)?;
        report.at = Some(node.mtime.rfc3339_seconds());
    }
    report.path = Some(part.show(path));
    if let Some(newest) = newest {
        (report.history, report.more_history) = history(read, newest, Some(path))?;
    }
    Ok(report)
}

fn plain(read: &dyn Read, node: &Node) -> Result<ShowReport, Failure> {
    let mut report;
    match node.node_type {
        NodeType::Directory => {
            report = ShowReport::empty("directory");
            read.list(node.ino, None, &mut |(name, node)| {
                let slash = if node.node_type == NodeType::Directory { "/" } else { "" };
                report.text.push_str(&format!("{name}{slash}\n"));
                true
            })?;
        }
        NodeType::Symlink => {
            report = ShowReport::empty("link");
            report.text = printable(&read.symlink(node.ino)?.unwrap_or_default());
        }
        NodeType::File if node.size <= SHOWN_BYTES_MAX => {
            report = ShowReport::empty("file");
            let bytes = crate::engine::read_plain(read, node, 0, node.size as usize)?;
            report.text = String::from_utf8_lossy(&bytes).into_owned();
        }
        NodeType::File => {
            report = ShowReport::empty("file");
            report.left_out_bytes = Some(node.size);
        }
        _ => report = ShowReport::empty("special file"),
    }
    Ok(report)
}

fn record(
    (read, caller): (&dyn Read, &Caller),
    config: &crate::config::Config,
    found: &FoundRecord,
    args: &ShowArgs,
) -> Result<ShowReport, Failure> {
    let (record, part) = (&found.record, &caller.part);
    let mut report = ShowReport::empty("record");
    report.id = Some(record.id.to_string());
    report.path = found.path.as_ref().map(|path| part.show(path));
    let is_parked = matches!(record.standing, Standing::Parked { .. });
    report.parked_in = found.dir.as_ref().filter(|_| is_parked).map(|dir| part.show(dir));
    report.workspace = Some(part.show(&found.workspace.path));
    report.state = Some(record.state.to_string());
    report.status.clone_from(&record.status);
    report.owner.clone_from(&record.owner);
    report.attempt = Some(record.attempt);
    if let Some(why) = crate::engine::flaw(read, config, record, caller.role)? {
        report.rule = Some(why.rule);
        report.why = Some(placed(&why.reason, why.place));
        report.remedy = Some(why.remedy);
    }
    let mut wanted = None;
    let mut newest = record.last_g;
    let past = match (args.g, args.at) {
        (Some(g), _) => Some(g),
        (None, Some(at)) => Some(version_of(read, record, at)?.0),
        (None, None) => None,
    };
    if let Some(g) = past {
        let then = as_of(read, record, g)?;
        wanted = then.version;
        newest = then.g;
        (report.state, report.status) = (then.state, None);
        report.attempt = then.attempt;
        report.owner = then.owner.and_then(|owner| AgentName::new(owner).ok());
        (report.path, report.parked_in) = match then.lay {
            Some(Leaves::At(path)) => (Some(part.show_text(&path)), None),
            Some(Leaves::Parked(path)) => {
                let dir = path_of_ledger(&path).and_then(|path| Some(path.split_last()?.0));
                (None, dir.map(|dir| part.show(&dir)))
            }
            Some(Leaves::Nowhere) | None => (None, None),
        };
    }
    let (_, version) = version_of(read, record, wanted.unwrap_or(record.version))?;
    report.version = Some(version.version);
    report.at = Some(version.at.rfc3339_seconds());
    report.text = String::from_utf8_lossy(&version.content).into_owned();
    (report.history, report.more_history) = history(read, newest, None)?;
    Ok(report)
}

/// The version `wanted` of a record, found by the list of its versions, and the event that made it.
fn version_of(
    read: &dyn Read,
    record: &Record,
    wanted: Version,
) -> Result<(G, VersionRow), Failure> {
    let mut at = record.version_g;
    while let Some(row) = read.version(at)? {
        if row.version == wanted {
            return Ok((at, row));
        }
        at = earlier(at, row.before_g)?;
    }
    let (id, last) = (&record.id, record.version);
    let remedy = format!("it has versions 1 to {last}");
    Err(Failure::new(Exit::Absent, format!("`{id}` has no version {wanted}"), remedy))
}

struct Then {
    g: G,
    version: Option<Version>,
    state: Option<String>,
    owner: Option<String>,
    attempt: Option<Attempt>,
    lay: Option<Leaves>,
}

/// How a record stood after event `g`.
fn as_of(read: &dyn Read, record: &Record, g: G) -> Result<Then, Failure> {
    let mut at = record.last_g;
    while let Some(event) = event_of_record(read, at)? {
        if event.row.g > g {
            at = event.before;
            continue;
        }
        let line = &event.event;
        let text = |pointer| line.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let count = |key: &str| line.get(key).and_then(Value::as_u64).map(Version);
        return Ok(Then {
            g: event.row.g,
            version: count("version_after").or_else(|| count("version_before")),
            state: text("/payload/state"),
            owner: text("/payload/owner"),
            attempt: line.pointer("/payload/attempt").and_then(Value::as_u64).map(Attempt),
            lay: lay(read, event)?,
        });
    }
    let reason = format!("`{}` was not there yet at event {g}", record.id);
    Err(Failure::new(Exit::Absent, reason, format!("`workfs log {}` shows its events", record.id)))
}

/// Where a record lay after this event: what only tells of it leaves it where the one before did.
fn lay(read: &dyn Read, last: PastEvent) -> Result<Option<Leaves>, Failure> {
    let mut event = Some(last);
    while let Some(last) = event {
        if let Some(leaves) = last.leaves() {
            return Ok(Some(leaves));
        }
        event = event_of_record(read, last.before)?;
    }
    Ok(None)
}

/// The newest events of one thing; of a path, where it is one.
fn history(
    read: &dyn Read,
    newest: G,
    path: Option<&TreePath>,
) -> Result<(Vec<HistoryRow>, bool), Failure> {
    let mut rows = Vec::new();
    let mut at = newest;
    while let Some(row) = read.event(at)? {
        if rows.len() == HISTORY_ROWS_MAX {
            return Ok((rows, true));
        }
        let line = row.said();
        rows.push(HistoryRow {
            g: row.g,
            at: seconds(&field(&line, "/at")),
            event: field(&line, "/event"),
            actor: field(&line, "/actor"),
            version: line.get("version_after").and_then(Value::as_u64).map(Version),
        });
        at = match path {
            Some(path) => event_of(read, path, at)?.map_or(G(0), |event| event.before),
            None => earlier(at, row.before_g)?,
        };
    }
    Ok((rows, false))
}
