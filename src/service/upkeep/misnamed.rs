//! Files that have a record's name and are no records, because of that name, of their directory's, or since they lie
//! beside the directories of records.
//!
//! Deliberately not here: which names those are (the kind knows).

use std::fmt;
use std::sync::Arc;

use crate::config::Config;
use crate::engine::governed;
use crate::engine::node_at;
use crate::kind::{Kind, Place};
use crate::names::{FileName, NameError, TreePath};
use crate::numbers::Ino;
use crate::refusal::{Refusal, Rule};
use crate::service::Failure;
use crate::store::{Node, NodeType, Read};

/// Why a file is no record.
#[derive(Clone, Copy, Debug)]
pub(in crate::service) enum Misnamed {
    /// Its directory would be a lane.
    Lane(NameError),
    /// Records lie in directories below its own: in lanes, say.
    Beside,
    /// It is called as no id can be.
    Record(NameError),
}

impl fmt::Display for Misnamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misnamed::Lane(why) => write!(f, "its directory is no agent's lane: {why}"),
            Misnamed::Beside => f.write_str("records lie in the directories beside it"),
            Misnamed::Record(why) => write!(f, "its name is no id: {why}"),
        }
    }
}

/// A directory in which names say whether files are records.
pub(in crate::service) struct Named {
    kind: Arc<Kind>,
    /// Why none are that are called so.
    none: Option<Misnamed>,
}

impl Named {
    /// What `dir` is; `None` if names say nothing there.
    pub fn of(read: &dyn Read, config: &Config, dir: Ino) -> Result<Option<Named>, Failure> {
        let here = governed(read, config, dir)?;
        let is = |place: &Place| match place {
            Place::State { .. } => Some(None),
            Place::Prefix => Some(Some(Misnamed::Beside)),
            Place::Root | Place::Outside => None,
        };
        if let Some((here, none)) = here.and_then(|here| is(&here.place).map(|none| (here, none))) {
            return Ok(Some(Named { kind: Arc::clone(&here.binding.kind), none }));
        }
        let (Some(node), Some(name)) = (read.node(dir)?, read.dir_name(dir)?) else {
            return Ok(None);
        };
        let Some(above) = governed(read, config, node.parent)? else { return Ok(None) };
        let relative: Vec<FileName> = above.relative.into_iter().chain([name]).collect();
        let kind = &above.binding.kind;
        let why = kind.misnamed_lane(&relative);
        Ok(why.map(|why| Named { kind: Arc::clone(kind), none: Some(Misnamed::Lane(why)) }))
    }

    /// Whether a file of this name is a record there, or a draft.
    pub fn is_record_like(&self, name: &FileName) -> bool {
        self.none.is_none() && self.kind.record_id(name).is_some()
    }

    /// Why a file of this name is neither, where that is for a name alone.
    pub fn misnamed(&self, name: &FileName) -> Option<Misnamed> {
        match self.none {
            Some(why) => self.kind.record_id(name).map(|_| why),
            None => self.kind.misnamed_record(name).map(Misnamed::Record),
        }
    }
}

/// What is to be told of an ordinary file at `path` that is misnamed.
pub(in crate::service) fn told(
    read: &dyn Read,
    config: &Config,
    (path, node): (&TreePath, &Node),
) -> Result<Option<Refusal>, Failure> {
    let Some((above, name)) = path.split_last() else { return Ok(None) };
    let dir = node_at(read, &above)?.filter(|_| node.node_type == NodeType::File);
    let named = dir.map(|dir| Named::of(read, config, dir.ino)).transpose()?.flatten();
    Ok(named.and_then(|named| named.misnamed(name)).map(|why| {
        let remedy = match why {
            Misnamed::Lane(_) => "rename the directory, and it is judged",
            Misnamed::Beside => "move it into one of them, and it is judged",
            Misnamed::Record(_) => "rename it, and it is judged",
        };
        Refusal::new(Rule::BadName, format!("an ordinary file, and no record: {why}"), remedy)
    }))
}
