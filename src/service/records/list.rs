//! Records and drafts, without their content.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::engine::flaw;
use crate::kind::nearest;
use crate::names::{AgentName, FileName, ShownPath};
use crate::numbers::{Ino, Version};
use crate::refusal::Rule;
use crate::service::find::{StateDir, state_dirs, workspace};
use crate::service::reply::rows::{Rows, each};
use crate::service::request::permitted::{may_read, may_read_parked};
use crate::service::{Caller, Exit, Failure, ListArgs, Report, Service, Sink};
use crate::store::{Class, Node, Read, Record, Standing, Visit, WorkspaceRow};
use crate::units::counted;

/// One record or draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListRow {
    /// The record's id; a draft's name without the extension.
    pub id: String,
    /// Where it lies.
    pub path: ShownPath,
    /// Its workspace.
    pub workspace: ShownPath,
    /// The state of its directory.
    pub state: String,
    /// The status that its text says, of a flagged one the last that was right; a draft has none.
    #[serde(default)]
    pub status: Option<String>,
    /// Whose it is.
    pub owner: Option<AgentName>,
    /// Until when its owner has it at least, RFC 3339, if it is leased.
    pub lease_until: Option<String>,
    /// The record's version; a draft has none.
    pub version: Option<Version>,
    /// Why it cannot change state: the rule that it breaks.
    pub rule: Option<Rule>,
    /// The same in words.
    pub why: Option<String>,
    /// Its name went to a backup (`X.yaml~`) and is not there; `path` is where it lay.
    #[serde(default)]
    pub parked: bool,
}

/// See [`crate::service::Request::List`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListReport {
    /// By workspace, state, owner and name.
    pub rows: Vec<ListRow>,
}

impl ListReport {
    /// A table.
    #[must_use]
    pub fn human(&self) -> String {
        if self.rows.is_empty() {
            return "nothing".to_owned();
        }
        let mut out = String::new();
        let mut heading = ShownPath::default();
        let state_width = width(self.rows.iter().map(|row| row.state.as_str()));
        let owner_width = width(self.rows.iter().map(ListRow::owner));
        for row in &self.rows {
            if row.workspace != heading {
                heading.clone_from(&row.workspace);
                out.push_str(&format!("{heading}/\n"));
            }
            let version =
                row.version.map_or_else(|| "draft".to_owned(), |version| format!("v{version}"));
            let mark = match row {
                ListRow { parked: true, why: Some(_), .. } => "parked, flagged",
                ListRow { parked: true, .. } => "parked",
                ListRow { version: Some(_), why: Some(_), .. } => "flagged",
                _ => "",
            };
            let line = format!(
                "  {:state_width$}  {:owner_width$}  {version:>5}  {} {mark}",
                row.state,
                row.owner(),
                row.id
            );
            out.push_str(line.trim_end());
            out.push('\n');
            if let Some(why) = &row.why {
                let rule = row.rule.map_or_else(String::new, |rule| format!(" [{}]", rule.code()));
                out.push_str(&format!("      {why}{rule}\n"));
            }
        }
        let drafts = self.rows.iter().filter(|row| row.version.is_none()).count();
        out.push_str(&counted(self.rows.len() - drafts, "record"));
        if drafts > 0 {
            out.push_str(&format!(", {}", counted(drafts, "draft")));
        }
        out
    }

    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        Exit::Done
    }
}

impl ListRow {
    fn owner(&self) -> &str {
        self.owner.as_ref().map_or("-", AgentName::as_str)
    }
}

fn width<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(str::len).max().unwrap_or(0)
}

/// Lists.
///
/// # Errors
/// A workspace or state that there is not, or a failure of the store.
pub(in crate::service) fn list(
    service: &Service,
    caller: &Caller,
    args: &ListArgs,
    sink: Sink<'_>,
) -> Result<Report, Failure> {
    let (config, part) = (service.engine.config(), &caller.part);
    service.read(|read| {
        let workspaces = match &args.workspace {
            Some(path) => vec![workspace(read, part, path)?],
            None => part.workspaces(read)?,
        };
        if let Some(state) = &args.state {
            require_state(&config, &workspaces, state)?;
        }
        let mut rows = Rows::new(sink, |rows| Report::List(ListReport { rows }));
        for workspace in &workspaces {
            let parked = parked(read, workspace)?;
            for place in state_dirs(read, &config, workspace)? {
                let state = place.governed.binding.kind.state(place.state).name.as_str();
                let wanted = args.state.as_deref().is_none_or(|wanted| wanted == state)
                    && args.owner.as_ref().is_none_or(|owner| place.owner.as_ref() == Some(owner));
                if wanted && part.has(&place.governed.dir_path()) {
                    list_dir((service, read), (&config, caller), &place, &mut rows)?;
                    for record in parked.get(&place.dir).into_iter().flatten() {
                        rows.push(parked_row((service, read), (&config, caller), &place, record)?)?;
                    }
                }
            }
        }
        Ok(rows.end())
    })
}

fn require_state(config: &Config, workspaces: &[WorkspaceRow], state: &str) -> Result<(), Failure> {
    let kinds: Vec<_> = workspaces
        .iter()
        .filter_map(|row| config.bind(&row.path))
        .map(|b| b.kind.clone())
        .collect();
    let known: Vec<&str> =
        kinds.iter().flat_map(|kind| kind.states()).map(|(_, one)| one.name.as_str()).collect();
    if known.is_empty() || known.contains(&state) {
        return Ok(());
    }
    let mut names = known.clone();
    names.sort_unstable();
    names.dedup();
    let near = nearest(state, names.iter().copied())
        .map_or_else(|| format!("there are {}", names.join(", ")), |near| format!("`{near}`?"));
    Err(Failure::new(Exit::Usage, format!("there is no state `{state}`"), near))
}

fn list_dir(
    (service, read): (&Service, &dyn Read),
    (config, caller): (&Config, &Caller),
    place: &StateDir,
    rows: &mut Rows<'_, ListRow>,
) -> Result<(), Failure> {
    let part = &caller.part;
    let path = place.governed.dir_path();
    let kind = &place.governed.binding.kind;
    let names = |visit: Visit<'_, (FileName, Node)>| read.list(place.dir, None, visit);
    each(names, |(name, node)| {
        let (mut status, mut lease_until) = (None, None);
        let (version, why) = match node.class {
            Class::Plain => return Ok(()),
            Class::Record => {
                let Some(record) = read.record_at(node.ino)? else { return Ok(()) };
                let flaw = flaw(read, config, &record, caller.role)?;
                if record.owner.is_some() {
                    lease_until = super::heartbeat::lease_until(service, read, record.key)?;
                }
                status.clone_from(&record.status);
                (Some(record.version), flaw.map(|why| (why.rule, why.reason)))
            }
            Class::Draft => (None, draft_reason(read, &node)?),
        };
        // What is wrong with it may quote it.
        let path = path.join(name.clone());
        let why =
            if why.is_some() && !may_read((service, read), caller, &path)? { None } else { why };
        let id = kind.record_id(&name).map_or_else(|| name.to_string(), |id| id.to_string());
        let (rule, why) = why.map_or((None, None), |(rule, why)| (Some(rule), Some(why)));
        rows.push(ListRow {
            id,
            path: part.show(&path),
            workspace: part.show(&place.governed.path),
            state: kind.state(place.state).name.to_string(),
            status,
            owner: place.owner.clone(),
            lease_until,
            version,
            rule,
            why,
            parked: false,
        })
    })
}

/// Records whose names are backups' at the moment, by the directories that they lie in.
fn parked(read: &dyn Read, workspace: &WorkspaceRow) -> Result<HashMap<Ino, Vec<Record>>, Failure> {
    let mut parked: HashMap<Ino, Vec<Record>> = HashMap::new();
    read.parked(workspace.key, &mut |record| {
        if let Standing::Parked { dir } = record.standing {
            parked.entry(dir).or_default().push(record);
        }
        true
    })?;
    Ok(parked)
}

fn parked_row(
    (service, read): (&Service, &dyn Read),
    (config, caller): (&Config, &Caller),
    place: &StateDir,
    record: &Record,
) -> Result<ListRow, Failure> {
    let part = &caller.part;
    let flaw = match may_read_parked((service, read), caller, record)? {
        true => flaw(read, config, record, caller.role)?,
        false => None,
    };
    let (rule, why) = flaw.map_or((None, None), |flaw| (Some(flaw.rule), Some(flaw.reason)));
    Ok(ListRow {
        id: record.id.to_string(),
        path: part.show(&place.governed.dir_path()),
        workspace: part.show(&place.governed.path),
        state: place.governed.binding.kind.state(place.state).name.to_string(),
        status: record.status.clone(),
        owner: place.owner.clone(),
        lease_until: super::heartbeat::lease_until(service, read, record.key)?,
        version: Some(record.version),
        rule,
        why,
        parked: true,
    })
}

/// What is wrong with a draft.
fn draft_reason(read: &dyn Read, node: &Node) -> Result<Option<(Rule, String)>, Failure> {
    let Some(draft) = read.draft(node.ino)? else { return Ok(None) };
    Ok(Some(match draft.why {
        Some(why) => (why.rule, why.reason),
        None => (Rule::Draft, "nothing was saved to it yet".to_owned()),
    }))
}
