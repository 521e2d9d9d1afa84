//! Refusals: what was refused to whom, by which rule, and the way out.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::find::{Found, find_to_tell};
use super::request::permitted::{may_read, may_read_parked, not_the_past, not_theirs};
use super::upkeep::misnamed;
use super::{Caller, Exit, Failure, Part, Service, WhyArgs};
use crate::config::Config;
use crate::engine::{Breach, Outlook, breach, flaw, path_of_backup, sees_refusal};
use crate::kind::Kind;
use crate::names::{FileName, ShownPath, TreePath, printable};
use crate::refusal::{Refusal, Rule, TextPlace};
use crate::service::reply::text::placed;
use crate::store::{Read, RefusalRow};

/// Rows that are given if nobody says how many.
const ROWS: u64 = 10;

/// One refusal, or what is wrong with a draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhyRow {
    /// When, RFC 3339; none for what is wrong now.
    pub at: Option<String>,
    /// What was tried, such as `rename`; none for what is wrong with a draft or record.
    pub operation: Option<String>,
    /// The errno that the program saw.
    pub errno: Option<String>,
    /// Who tried.
    pub uid: Option<u32>,
    /// What it was about.
    pub path: ShownPath,
    /// The rule.
    pub rule: Rule,
    /// What is wrong.
    pub reason: String,
    /// Where.
    pub place: Option<TextPlace>,
    /// The way out.
    pub remedy: String,
    /// The name below `.workfs/rejected/` of the bytes that were kept.
    pub rejected: Option<String>,
}

/// See [`super::Request::Why`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhyReport {
    /// How it stands with the record that was asked about.
    pub about: Option<Outlook>,
    /// What is wrong now, then refusals, newest first.
    pub rows: Vec<WhyRow>,
}

impl WhyReport {
    /// Some lines a refusal.
    #[must_use]
    pub fn human(&self) -> String {
        if self.rows.is_empty() && self.about.is_none() {
            return "nothing was refused".to_owned();
        }
        let row = |row: &WhyRow| {
            let mut head = Vec::new();
            head.extend(row.at.clone());
            head.extend(row.operation.clone());
            head.push(row.path.to_string());
            head.extend(row.errno.clone());
            // What is refused at the socket may be about no path.
            head.retain(|word| !word.is_empty());
            let code = row.rule.code();
            let reason = placed(&row.reason, row.place);
            let kept = row.rejected.as_ref();
            let kept =
                kept.map_or_else(String::new, |name| format!("\n  kept: .workfs/rejected/{name}"));
            format!("{}\n  {reason} [{code}]\n  {}{kept}", head.join(" "), row.remedy)
        };
        let about = self.about.iter().map(ToString::to_string);
        about.chain(self.rows.iter().map(row)).collect::<Vec<_>>().join("\n")
    }

    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        Exit::Done
    }
}

/// Says why.
///
/// # Errors
/// Nothing is meant by `what`, and nothing of that name was ever refused.
pub(super) fn why(
    service: &Service,
    caller: &Caller,
    args: &WhyArgs,
) -> Result<WhyReport, Failure> {
    let config = service.engine.config();
    let part = &caller.part;
    let limit = usize::try_from(args.limit.unwrap_or(ROWS)).unwrap_or(usize::MAX);
    let of_all = |_: &RefusalRow| true;
    // Of those to whom it is refused nothing is kept, since that cannot be written, either.
    let refuses = service.engine.refuses();
    service.read(|read| {
        let to_all = refuses.clone().map(refused_to_all);
        let Some(what) = &args.what else {
            let rows = refusals(read, limit, caller, &of_all)?;
            return Ok(WhyReport { about: None, rows: to_all.into_iter().chain(rows).collect() });
        };
        let found = find_to_tell(read, &config, part, what);
        let mut now = how_it_stands((service, read, &config), caller, what, found.as_ref().ok())?;
        let (about, mut rows) = (now.about.take(), std::mem::take(&mut now.rows));
        let wanted = |row: &RefusalRow| now.is_about(row, &config);
        rows.extend(refusals(read, limit.saturating_sub(rows.len()), caller, &wanted)?);
        match found {
            Err(failure) if rows.is_empty() => Err(failure),
            Ok(Found::Record(_) | Found::Draft(..)) if rows.is_empty() && !now.may_read => {
                let not_theirs = |path| not_theirs(caller, &path);
                Err(now.path.map_or_else(|| not_the_past(caller), not_theirs))
            }
            _ => Ok(WhyReport { about, rows: to_all.into_iter().chain(rows).collect() }),
        }
    })
}

/// What is wrong now with what was asked about, and by what its refusals are known.
#[derive(Default)]
struct Standing {
    about: Option<Outlook>,
    rows: Vec<WhyRow>,
    path: Option<TreePath>,
    id: Option<String>,
    /// That of a record.
    workspace: Option<TreePath>,
    /// Whether the caller may read it: what is wrong with it may quote it.
    may_read: bool,
}

/// How it stands with what was found by `what`. Of what was not found only the name is known: what was refused
/// may not be there.
fn how_it_stands(
    (service, read, config): (&Service, &dyn Read, &Config),
    caller: &Caller,
    what: &str,
    found: Option<&Found>,
) -> Result<Standing, Failure> {
    let part = &caller.part;
    let Some(found) = found else {
        let (path, id) = (part.path(what).ok(), Some(what.to_owned()));
        return Ok(Standing { path, id, may_read: true, ..Standing::default() });
    };
    let may_read = match found {
        Found::Record(found) if found.path.is_none() => {
            may_read_parked((service, read), caller, &found.record)?
        }
        found => match found.path() {
            Some(path) => may_read((service, read), caller, path)?,
            None => true,
        },
    };
    let mut now = Standing { path: found.path().cloned(), may_read, ..Standing::default() };
    match found {
        Found::Record(found) => {
            now.id = Some(found.record.id.to_string());
            now.workspace = read.workspace(found.record.workspace)?.map(|workspace| workspace.path);
            if may_read {
                let (time, ends) = (service.engine.now(), service.engine.ends());
                now.about = Outlook::of(read, config, &found.record, (time, ends))?;
                let flaw = match flaw(read, config, &found.record, caller.role)? {
                    None => breach(read, config, &found.record)?.map(Breach::told),
                    flaw => flaw,
                };
                // A parked one lies where its backup does.
                let lies = match &found.path {
                    Some(path) => Some(path.clone()),
                    None => path_of_backup(read, &found.record)?.filter(|path| part.has(path)),
                };
                let lies = lies.map(|path| part.show(&path)).unwrap_or_default();
                now.rows.extend(flaw.map(|flaw| wrong_now(lies, Some(&flaw.into()))));
            }
        }
        Found::Draft(path, _, draft) if may_read => {
            now.rows.push(wrong_now(part.show(path), draft.why.as_ref()));
        }
        Found::Draft(..) => {}
        Found::Node(path, node) => {
            let misnamed = misnamed::told(read, config, (path, node))?;
            now.rows.extend(misnamed.map(|why| wrong_now(part.show(path), Some(&why.into()))));
        }
    }
    Ok(now)
}

impl Standing {
    /// Whether a refusal is about this path, or about a file that is named after this id where the record lives.
    fn is_about(&self, row: &RefusalRow, config: &Config) -> bool {
        if self.path.as_ref().is_some_and(|path| path.to_bytes() == row.path) {
            return true;
        }
        let name = row.path.rsplit(|&b| b == b'/').next().unwrap_or_default();
        let rest = self.id.as_ref().and_then(|id| name.strip_prefix(id.as_bytes()));
        if !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b".")) {
            return false;
        }
        let refused = TreePath::parse(&row.path).ok();
        match (&self.workspace, refused.as_ref().and_then(|path| workspace_of(config, path))) {
            // Another workspace has another record of that id.
            (Some(own), Some((its, kind, name))) => {
                *own == its && !is_of_another(&kind, name, self.id.as_deref())
            }
            _ => true,
        }
    }
}

/// The workspace that a path lies in, its kind, and the path's last name.
fn workspace_of<'p>(
    config: &Config,
    path: &'p TreePath,
) -> Option<(TreePath, Arc<Kind>, &'p FileName)> {
    let (name, above) = path.names().split_last()?;
    let dirs = (0..=above.len()).rev().map(|len| above[..len].iter().cloned().collect());
    dirs.into_iter().find_map(|dir: TreePath| {
        let kind = Arc::clone(&config.bind(&dir)?.kind);
        Some((dir, kind, name))
    })
}

/// Whether a file of this name, which begins with the id of a record, is another record, whose id is longer; and none by
/// which a program saves that one.
fn is_of_another(kind: &Kind, name: &FileName, id: Option<&str>) -> bool {
    let is_other = |name: &FileName| kind.record_id(name).is_some_and(|of| Some(of.as_str()) != id);
    is_other(name) && kind.renamed_over(name).is_none_or(|over| is_other(&over))
}

/// The newest refusals in the caller's sight.
fn refusals(
    read: &dyn Read,
    limit: usize,
    caller: &Caller,
    wanted: &dyn Fn(&RefusalRow) -> bool,
) -> Result<Vec<WhyRow>, Failure> {
    let mut rows = Vec::new();
    read.refusals(&mut |row| {
        let theirs = sees_refusal(&row, caller.uid, (caller.role, &caller.name));
        if rows.len() < limit && theirs && wanted(&row) {
            rows.extend(of_refusal(&caller.part, row));
        }
        rows.len() < limit
    })?;
    Ok(rows)
}

fn of_refusal(part: &Part, row: RefusalRow) -> Option<WhyRow> {
    let named = TreePath::parse(&row.path).ok().filter(|path| !path.names().is_empty());
    let path = match named {
        Some(path) => part.has(&path).then(|| part.show(&path))?,
        // It was about no path, or about one that cannot be.
        None => part.is_whole().then(|| ShownPath::new(&row.path))?,
    };
    // A part has no `.workfs/rejected/`.
    let is_kept_here = row.rejected_bytes > 0 && part.is_whole();
    let rejected = is_kept_here.then(|| printable(&row.rejected_name()));
    Some(WhyRow {
        at: Some(row.at.rfc3339_seconds()),
        operation: Some(row.operation),
        errno: Some(row.errno),
        uid: Some(row.uid),
        path,
        rule: row.why.rule,
        reason: row.why.reason,
        place: row.why.place,
        remedy: row.why.remedy,
        rejected,
    })
}

/// What is refused now, whatever it is about.
fn refused_to_all(refusal: Refusal) -> WhyRow {
    let (text, operation) = (refusal.into(), Some("any change".to_owned()));
    WhyRow { operation, ..wrong_now(ShownPath::new([]), Some(&text)) }
}

fn wrong_now(path: ShownPath, why: Option<&crate::store::RefusedText>) -> WhyRow {
    let (rule, reason, remedy, place) = match why {
        Some(why) => (why.rule, why.reason.clone(), why.remedy.clone(), why.place),
        None => (
            Rule::Draft,
            "nothing was saved to it yet".to_owned(),
            "write its content and close it".to_owned(),
            None,
        ),
    };
    WhyRow {
        at: None,
        operation: None,
        errno: None,
        uid: None,
        path,
        rule,
        reason,
        place,
        remedy,
        rejected: None,
    }
}
