//! `workfs heartbeat`.

use std::path::Path;

use clap::Args;

use crate::names::AgentName;
use crate::service::{self, Request};

/// See `workfs heartbeat --help`.
#[derive(Debug, Args)]
pub struct HeartbeatArgs {
    /// An id, or a path in a mount or from the root of the tree [default: all that one has]
    #[arg(value_parser = super::word())]
    what: Option<String>,
    /// Whose they are [default: the agent of the mount one is in, else the user]
    #[arg(long, env = "WORKFS_AGENT", value_name = "NAME", value_parser = super::agent)]
    agent: Option<AgentName>,
}

impl HeartbeatArgs {
    /// The request.
    pub fn request(&self) -> Request {
        let what = self.what.clone();
        Request::Heartbeat(service::HeartbeatArgs { what, agent: self.agent.clone() })
    }

    /// A path that may tell the store.
    pub fn hint(&self) -> Option<&Path> {
        self.what.as_deref().map(Path::new)
    }
}
