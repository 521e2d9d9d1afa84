//! How it stands with a record: what `X.yaml.why` and `workfs why X` say of it.
//!
//! What must stay true: both say the same, by the predicate that `ready/` goes by. Deliberately not
//! here: what was refused, of which each shows what its caller may see.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::engine::lease::{Ends, ran_out};
use crate::engine::places::governed::governed;
use crate::names::AgentName;
use crate::numbers::{Attempt, UnixNanos, Version};
use crate::refusal::Refusal;
use crate::store::{Read, Record, Standing, StoreError};

use super::ready::{explain, unwritable};

/// What keeps everybody from a parked record.
pub const PARKED: &str = "its name is a backup's";
/// The way out of that.
pub const UNPARK: &str = "give it its name back (`mv X.yaml~ X.yaml`), or save it under that name";

/// How it stands with a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outlook {
    /// Its id.
    pub id: String,
    /// Its state.
    pub state: String,
    /// Whose it is.
    pub owner: Option<AgentName>,
    /// Its version.
    pub version: Version,
    /// How often it has been claimed.
    pub attempt: Attempt,
    /// Whether its content is valid; of a parked one that is looked at when it has its name again.
    pub valid: bool,
    /// Whether it is ready.
    pub ready: bool,
    /// Why not; of what is ready, why nobody can claim it all the same.
    pub why: Option<String>,
    /// The way out, where nobody can claim what is ready.
    pub remedy: Option<String>,
}

impl Outlook {
    /// Looks; `None` for a record that is gone.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn of(
        read: &dyn Read,
        config: &Config,
        record: &Record,
        (now, ends): (UnixNanos, &Ends),
    ) -> Result<Option<Outlook>, StoreError> {
        let (dir, is_parked) = match record.standing {
            Standing::Live { dir, .. } => (dir, false),
            Standing::Parked { dir } => (dir, true),
            Standing::Gone => return Ok(None),
        };
        let home = governed(read, config, dir)?;
        let hindered = match (&home, ends.told(record)) {
            (_, Some(told)) => Some(ran_out(record, told)),
            _ if is_parked => Some(PARKED.to_owned()),
            (None, None) => Some("its directory is no workspace's any more".to_owned()),
            (Some(home), None) => explain(read, &home.binding.kind, record, now)?,
        };
        let ready = hindered.is_none();
        let flaw = match &home {
            Some(home) if ready => unwritable(read, &home.binding.kind, record, now)?,
            _ => None,
        };
        let (why, remedy) = match flaw {
            Some(Refusal { reason, remedy, .. }) => (Some(reason), Some(remedy)),
            None => (hindered, is_parked.then(|| UNPARK.to_owned())),
        };
        Ok(Some(Outlook {
            id: record.id.to_string(),
            state: record.state.to_string(),
            owner: record.owner.clone(),
            version: record.version,
            attempt: record.attempt,
            valid: is_parked || record.is_valid(),
            ready,
            why,
            remedy,
        }))
    }
}

impl fmt::Display for Outlook {
    /// Lines, the last without its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is in state {}", self.id, self.state)?;
        if let Some(owner) = &self.owner {
            write!(f, " of {owner}")?;
        }
        write!(f, ", version {}, attempt {}", self.version, self.attempt)?;
        if !self.valid {
            f.write_str("; its content is flagged as not valid")?;
        }
        f.write_str("\n  ready:  ")?;
        match (self.ready, &self.why) {
            (true, None) => f.write_str("it can be claimed now")?,
            (true, Some(why)) => write!(f, "yes, but nobody can claim it: {why}")?,
            (false, why) => write!(f, "no; {}", why.as_deref().unwrap_or_default())?,
        }
        self.remedy.iter().try_for_each(|remedy| write!(f, "\n  do:     {remedy}"))
    }
}
