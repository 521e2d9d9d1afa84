//! `workfs list`.

use std::path::Path;

use clap::Args;

use crate::names::AgentName;
use crate::service::{self, Request};

/// See `workfs list --help`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// A workspace, such as work [default: all]
    #[arg(value_parser = super::word())]
    workspace: Option<String>,
    /// Only those in this state
    #[arg(long)]
    state: Option<String>,
    /// Only those of this agent
    #[arg(long, value_name = "AGENT", value_parser = super::agent)]
    owner: Option<AgentName>,
}

impl ListArgs {
    /// The request.
    pub fn request(&self) -> Request {
        let workspace = self.workspace.clone();
        let (state, owner) = (self.state.clone(), self.owner.clone());
        Request::List(service::ListArgs { workspace, state, owner })
    }

    /// A path that may tell the store.
    pub fn hint(&self) -> Option<&Path> {
        self.workspace.as_deref().map(Path::new)
    }
}
