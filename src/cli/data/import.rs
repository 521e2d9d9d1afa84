//! `workfs import`.

use std::path::{Path, PathBuf};

use clap::Args;

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
        Ok(Request::Import(service::ImportArgs { from, to, agent: None }))
    }

    /// A path that may tell the store.
    pub fn hint(&self) -> &Path {
        Path::new(&self.to)
    }
}
