//! `workfs import`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::super::exit::Exit;
use super::super::output::Stop;
use super::super::store;
use crate::service::{self, Request};

/// See `workfs import --help`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The directory to take in
    from: PathBuf,
    /// Where it goes: a path in a mount or from the root of the tree, such as work
    #[arg(value_parser = super::word())]
    to: String,
}

impl ImportArgs {
    /// The request.
    pub fn request(&self) -> Result<Request, Stop> {
        let (from, to) = (store::outside(&self.from)?, self.to.clone());
        // A shell's variable that is not set must not mean the whole tree.
        if to.is_empty() {
            let remedy =
                "name the directory it goes to; outside of mounts `.` is the root of the tree";
            return Err(Stop::failed(Exit::Usage, "a path cannot be empty", remedy));
        }
        Ok(Request::Import(service::ImportArgs { from, to, agent: None }))
    }

    /// A path that may tell the store.
    pub fn hint(&self) -> &Path {
        Path::new(&self.to)
    }
}
