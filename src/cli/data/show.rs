//! `workfs show`.

use std::path::Path;

use clap::Args;

use crate::numbers::{G, Version};
use crate::service::{self, Request};

/// See `workfs show --help`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// An id, or a path in a mount or from the root of the tree
    #[arg(value_parser = super::word())]
    what: String,
    /// That version of it
    #[arg(long, value_name = "VERSION", conflicts_with = "g", value_parser = super::number)]
    at: Option<u64>,
    /// As it was after that event
    #[arg(long, value_name = "G", value_parser = super::number)]
    g: Option<u64>,
}

impl ShowArgs {
    /// The request.
    pub fn request(&self) -> Request {
        let what = self.what.clone();
        Request::Show(service::ShowArgs { what, at: self.at.map(Version), g: self.g.map(G) })
    }

    /// Whether it asks for the past, which what is gone has, too.
    pub fn is_past(&self) -> bool {
        self.at.is_some() || self.g.is_some()
    }

    /// A path that may tell the store.
    pub fn hint(&self) -> &Path {
        Path::new(&self.what)
    }
}
