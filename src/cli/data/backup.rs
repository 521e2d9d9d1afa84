//! `workfs backup`.

use std::path::PathBuf;

use clap::Args;

use super::super::output::Stop;
use super::super::store;
use crate::service::{self, Request};

/// See `workfs backup --help`.
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// The file to make; it must not be there
    file: PathBuf,
}

impl BackupArgs {
    /// The request.
    pub fn request(&self) -> Result<Request, Stop> {
        let file = store::outside(&self.file)?;
        Ok(Request::Backup(service::BackupArgs { file }))
    }
}
