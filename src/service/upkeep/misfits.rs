//! Records that are not valid by a configuration's rules although they were saved under others:
//! nobody was asked when another layout was set.
//!
//! What must stay true: it changes nothing, and reads a few hundred records' texts in one snapshot,
//! one at a time. Deliberately not here: what a text must be (`Text::judge`); flagged records and
//! drafts, which say themselves what is wrong with them.

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::engine::{Breach, breach, path_of, path_of_backup};
use crate::limits::ROWS_AT_ONCE;
use crate::names::{ShownPath, first_few};
use crate::numbers::RecordKey;
use crate::refusal::{Refusal, Rule};
use crate::service::import::Listed;
use crate::store::{Read, Readers, Result, Standing};

/// So many are named, each with what is wrong.
const NAMED_MAX: usize = 3;

/// A record, and the first rule that it breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misfit {
    /// Where it lies.
    pub path: ShownPath,
    /// The rule.
    pub rule: Rule,
    /// What is wrong.
    pub reason: String,
    /// The way out.
    pub remedy: String,
}

/// What a configuration would not take as it is.
#[derive(Clone, Debug, Default)]
pub struct Misfits {
    /// Records whose status has no place in their directories: the two would disagree.
    pub astray: Listed<Misfit>,
    /// Records whose next text must be right, or is flagged by the policy, those among them.
    pub all: Listed<Misfit>,
}

impl Misfits {
    /// What that means for them.
    pub const TOLD: &str = "records are not valid by it: until that is mended no text of them can be saved, or is \
                            flagged where that is the policy";

    /// So many of them, and the first few.
    #[must_use]
    pub fn named(found: &Listed<Misfit>) -> String {
        let each = found.listed.iter().map(|one| format!("{} ({})", one.path, one.reason));
        format!("{}: {}", found.count, first_few(each, NAMED_MAX))
    }
}

/// Looks at all records; `progress` hears how many are done, and of how many, and ends it where it says false.
///
/// # Errors
/// A failure of the store.
pub fn misfits(
    readers: &dyn Readers,
    config: &Config,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Misfits> {
    let mut found = Misfits::default();
    let all = crate::store::read(readers, |read| live(read, config))?;
    let mut done = 0;
    for records in all.chunks(ROWS_AT_ONCE) {
        let some = crate::store::read(readers, |read| {
            let mut some = Vec::new();
            for key in records {
                some.extend(look(read, config, *key)?);
            }
            Ok(some)
        })?;
        for (is_astray, misfit) in some {
            if is_astray {
                found.astray.push(misfit.clone());
            }
            found.all.push(misfit);
        }
        done += records.len() as u64;
        if !progress(done, all.len() as u64) {
            break;
        }
    }
    Ok(found)
}

/// The records that are to be looked at.
fn live(read: &dyn Read, config: &Config) -> Result<Vec<RecordKey>> {
    let mut all = Vec::new();
    for workspace in read.workspaces()? {
        if workspace.dir.is_none() || config.bind(&workspace.path).is_none() {
            continue;
        }
        read.records(workspace.key, &mut |record| {
            if matches!(
                record.standing,
                Standing::Live { valid: true, .. } | Standing::Parked { .. }
            ) {
                all.push(record.key);
            }
            true
        })?;
    }
    Ok(all)
}

/// What is wrong with a record, and whether it is its status that has no place where it lies.
fn look(read: &dyn Read, config: &Config, key: RecordKey) -> Result<Option<(bool, Misfit)>> {
    let Some(record) = read.record(key)? else { return Ok(None) };
    let Some(Breach { refusal, is_astray, .. }) = breach(read, config, &record)? else {
        return Ok(None);
    };
    let path = match &record.standing {
        Standing::Live { dir, name, .. } => Some(path_of(read, *dir, name)?),
        Standing::Parked { .. } => path_of_backup(read, &record)?,
        Standing::Gone => None,
    };
    let Some(path) = path.as_ref().map(ShownPath::from) else { return Ok(None) };
    let Refusal { rule, reason, remedy, .. } = refusal;
    Ok(Some((is_astray, Misfit { path, rule, reason, remedy })))
}
