//! `workfs done`, `workfs fail`, `workfs release`: an owner lets go of a record.

use std::path::Path;

use clap::Args;

use crate::names::AgentName;
use crate::service::{self, Request};

/// What the three have in common.
#[derive(Debug, Args)]
struct Owned {
    /// An id, or a path in a mount or from the root of the tree
    #[arg(value_parser = super::word())]
    what: String,
    /// For whom [default: the agent of the mount one is in, else the user, as operator]
    #[arg(long, env = "WORKFS_AGENT", value_name = "NAME", value_parser = super::agent)]
    agent: Option<AgentName>,
}

impl Owned {
    fn what(&self) -> String {
        self.what.clone()
    }
}

/// See `workfs done --help`.
#[derive(Debug, Args)]
pub struct DoneArgs {
    #[command(flatten)]
    owned: Owned,
    /// What came out of it; of a task, for result.summary
    #[arg(long, short, value_name = "TEXT")]
    summary: Option<String>,
}

/// See `workfs fail --help`.
#[derive(Debug, Args)]
pub struct FailArgs {
    #[command(flatten)]
    owned: Owned,
    /// What went wrong; of a task, for error.message
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
}

/// See `workfs release --help`.
#[derive(Debug, Args)]
pub struct ReleaseArgs {
    #[command(flatten)]
    owned: Owned,
}

impl DoneArgs {
    /// The request.
    pub fn request(&self) -> Request {
        let (what, agent) = (self.owned.what(), self.owned.agent.clone());
        Request::Done(service::DoneArgs { what, summary: self.summary.clone(), agent })
    }

    /// A path that may tell the store.
    pub fn hint(&self) -> &Path {
        Path::new(&self.owned.what)
    }
}

impl FailArgs {
    /// The request.
    pub fn request(&self) -> Request {
        let (what, agent) = (self.owned.what(), self.owned.agent.clone());
        Request::Fail(service::FailArgs { what, message: self.message.clone(), agent })
    }

    /// A path that may tell the store.
    pub fn hint(&self) -> &Path {
        Path::new(&self.owned.what)
    }
}

impl ReleaseArgs {
    /// The request.
    pub fn request(&self) -> Request {
        let (what, agent) = (self.owned.what(), self.owned.agent.clone());
        Request::Release(service::ReleaseArgs { what, agent })
    }

    /// A path that may tell the store.
    pub fn hint(&self) -> &Path {
        Path::new(&self.owned.what)
    }
}
