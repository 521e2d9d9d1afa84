//! `workfs export`.

use std::path::PathBuf;

use clap::Args;

use super::super::output::Stop;
use super::super::store;
use crate::service::{self, Request};

/// See `workfs export --help`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The directory to fill; made where it is missing, else it must be empty
    to: PathBuf,
    /// Only this part of the tree
    #[arg(long, value_name = "PATH", value_parser = super::word())]
    path: Option<String>,
    /// Fill it although it has files; none of them is overwritten
    #[arg(long)]
    force: bool,
    /// The versions that are kept, too, in TO/.workfs/history
    #[arg(long)]
    versions: bool,
}

impl ExportArgs {
    /// The request.
    pub fn request(&self) -> Result<Request, Stop> {
        let (to, path) = (store::outside(&self.to)?, self.path.clone());
        let ExportArgs { force, versions, .. } = *self;
        Ok(Request::Export(service::ExportArgs { to, path, force, versions }))
    }
}
