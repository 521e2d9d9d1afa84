//! Checks that what must stay true is true: the tree, the records, the ledger.
//!
//! What must stay true: it only reads, from one snapshot, and goes on after a problem, also where
//! something cannot be read. Problems are named with the thing and not mended here. What is legal is no
//! problem: a layout that does not fit what is there is `doctor`'s.

mod agents;
mod clock;
mod content;
mod files;
mod lasts;
mod ledger;
mod lies;
mod noted;
mod one;
mod quotas;
mod records;
mod report;
mod rows;
mod schema;
mod told;
mod tree;

use super::reply::pace::Pace;
use super::{Failure, Sink};
use crate::config::{CONFIG_KEY, Config};
use crate::engine::{rules_noted, rules_since};
use crate::numbers::{G, Ino};
use crate::store::{self, Read, Readers, StoreError};

pub use report::{FsckReport, Problem};

/// Problems that are listed; all are counted.
const LISTED_MAX: usize = 1000;

/// A check under way.
struct Check<'s> {
    report: FsckReport,
    pace: Pace<'s>,
    /// Tables are missing, which was told: what asks them finds nothing.
    is_incomplete: bool,
}

impl<'s> Check<'s> {
    fn new(sink: Sink<'s>) -> Self {
        Check { report: FsckReport::default(), pace: Pace::new(sink), is_incomplete: false }
    }

    fn problem(&mut self, thing: impl Into<String>, what: impl Into<String>) {
        self.add(Problem { thing: thing.into(), what: what.into(), lost: false });
    }

    /// Power loss took a part of it.
    fn lost(&mut self, thing: impl Into<String>, what: impl Into<String>) {
        self.report.lost += 1;
        self.add(Problem { thing: thing.into(), what: what.into(), lost: true });
    }

    fn add(&mut self, problem: Problem) {
        self.report.count += 1;
        if self.report.problems.len() < LISTED_MAX {
            self.report.problems.push(problem);
        }
    }

    /// What was read, unless it cannot be: that is a problem of `thing`, and the check goes on.
    fn got<T>(
        &mut self,
        thing: impl FnOnce() -> String,
        read: store::Result<T>,
    ) -> Result<Option<T>, Failure> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(StoreError::Impossible(why)) => {
                if !(self.is_incomplete && why.starts_with("no such ")) {
                    self.illegible(thing(), &why);
                }
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn illegible(&mut self, thing: String, why: &str) {
        self.problem(thing, format!("cannot be read: {why}"));
    }

    /// Counts one thing; false when nobody waits for the result any more.
    fn tick(&mut self, done: u64, total: u64, what: &str) -> bool {
        if !self.pace.goes_on(done, total, what) && !self.report.interrupted {
            self.report.interrupted = true;
            self.report.reached = Some(format!("{done} of {total} {what}"));
        }
        !self.report.interrupted
    }
}

/// The rules by which records' rows are judged.
struct Rules<'c> {
    config: &'c Config,
    /// The last event before they held, as far as that is known.
    since: Option<G>,
    /// The last one after which others may have held, also if for no event.
    noted: Option<G>,
}

impl Rules<'_> {
    /// Whether what event `g` did was done by them.
    fn held_at(&self, g: G) -> bool {
        self.since.is_some_and(|since| g > since)
    }

    /// Whether no others have held since event `g`.
    fn hold_since(&self, g: G) -> bool {
        self.noted.is_some_and(|noted| g > noted)
    }
}

/// Checks a store, by the configuration that is in force; by the one that it keeps where none is.
///
/// # Errors
/// A store that cannot be read at all.
pub fn fsck(
    readers: &dyn Readers,
    config: Option<&Config>,
    sink: Sink<'_>,
) -> Result<FsckReport, Failure> {
    let mut check = Check::new(sink);
    if !schema::whole(readers, &mut check)? {
        return Ok(check.report);
    }
    super::ask(readers, |read| {
        schema::check(read, &mut check)?;
        let ledger = ledger::check(read, &mut check)?;
        if check.report.interrupted {
            return Ok(check.report);
        }
        let kept = if config.is_none() { kept_config(read, &mut check)? } else { None };
        let config = config.or(kept.as_ref());
        rows::lists(read, &mut check)?;
        agents::check(read, (&ledger.agents, ledger.is_unbroken), &mut check)?;
        let mut nodes = tree::check(read, &mut check)?;
        if check.report.interrupted {
            return Ok(check.report);
        }
        content::check(read, &nodes, &mut check)?;
        quotas::check(read, &nodes, &mut check)?;
        let rules = config.map(|config| {
            let (since, noted) = (rules_since(read, config)?, rules_noted(read, config)?);
            Ok(Rules { config, since, noted })
        });
        let unknown = config.map(|config| Rules { config, since: None, noted: None });
        let rules = check.got(|| "rules".to_owned(), rules.transpose())?.unwrap_or(unknown);
        records::check(read, &mut nodes, (&ledger, rules.as_ref()), &mut check)?;
        files::check(read, &nodes, (&ledger, rules.as_ref()), &mut check)?;
        if let Some(config) = config {
            files::locks(read, &nodes, config, &mut check)?;
        }
        Ok(check.report)
    })
}

/// The cheap part of it: whether the file is whole, has our tables and rows that can be read. Not what the
/// rows say.
///
/// # Errors
/// A store that cannot be read at all.
pub fn outline(readers: &dyn Readers, sink: Sink<'_>) -> Result<FsckReport, Failure> {
    let mut check = Check::new(sink);
    if !schema::whole(readers, &mut check)? {
        return Ok(check.report);
    }
    super::ask(readers, |read| {
        schema::check(read, &mut check)?;
        rows::lists(read, &mut check)?;
        rows::all(read, &mut check)?;
        content::outline(read, &mut check)?;
        Ok(check.report)
    })
}

fn kept_config(read: &dyn Read, check: &mut Check<'_>) -> Result<Option<Config>, Failure> {
    let Some(text) = check.got(|| "configuration".to_owned(), read.meta(CONFIG_KEY))? else {
        return Ok(None);
    };
    match Config::kept(text.as_deref()) {
        Ok(config) => Ok(Some(config)),
        Err(error) => {
            check.problem("configuration", error.to_string());
            Ok(None)
        }
    }
}

/// Longer paths are not shown: a directory that lies below itself has one without end.
const SHOWN_DEPTH_MAX: usize = 64;

/// A path for a message: that of a directory, or the number where there is none.
fn shown(read: &dyn Read, ino: Ino) -> String {
    match crate::engine::path_of_dir(read, ino) {
        Ok(path) if (1..=SHOWN_DEPTH_MAX).contains(&path.names().len()) => {
            format!("directory {path} ({})", ino.0)
        }
        _ => format!("node {}", ino.0),
    }
}

/// The same of a file, by its number and where its first name lies: the path by one of its names.
fn shown_file(read: &dyn Read, (file, parent): (Ino, Ino)) -> String {
    let path = || {
        let name = read.name_in(parent, file).ok()??;
        crate::engine::path_of(read, parent, &name).ok()
    };
    match path() {
        Some(path) if path.names().len() <= SHOWN_DEPTH_MAX => {
            format!("file {path} ({})", file.0)
        }
        _ => format!("node {}", file.0),
    }
}
