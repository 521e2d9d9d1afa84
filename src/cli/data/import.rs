//! `workfs import`.

use std::path::{Path, PathBuf};

use clap::Args;
use rustix::fs::Mode;

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
        let umask = Some(umask()).filter(|umask| *umask != service::USUAL_UMASK);
        Ok(Request::Import(service::ImportArgs { from, to, umask, agent: None }))
    }

    /// A path that may tell the store.
    pub fn hint(&self) -> &Path {
        Path::new(&self.to)
    }
}

/// What directories lack that the caller makes. It is told only to who sets another; nothing is made meanwhile.
fn umask() -> u32 {
    let mask = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    rustix::process::umask(mask);
    mask.bits()
}
