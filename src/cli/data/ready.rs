//! `workfs ready`.

use std::path::Path;

use clap::Args;

use crate::service::{self, Request};

/// See `workfs ready --help`.
#[derive(Debug, Args)]
pub struct ReadyArgs {
    /// A workspace, such as work [default: all]
    #[arg(value_parser = super::word())]
    workspace: Option<String>,
    /// List what waits in the first state, too, and say for what
    #[arg(long)]
    explain: bool,
}

impl ReadyArgs {
    /// The request.
    pub fn request(&self) -> Request {
        let workspace = self.workspace.clone();
        Request::Ready(service::ReadyArgs { workspace, explain: self.explain })
    }

    /// A path that may tell the store.
    pub fn hint(&self) -> Option<&Path> {
        self.workspace.as_deref().map(Path::new)
    }
}
