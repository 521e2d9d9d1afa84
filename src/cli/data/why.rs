//! `workfs why`.

use std::path::Path;

use clap::Args;

use crate::service::{self, Request};

/// See `workfs why --help`.
#[derive(Debug, Args)]
pub struct WhyArgs {
    /// An id, or a path in a mount or from the root of the tree [default: the last refusals]
    #[arg(value_parser = super::word())]
    what: Option<String>,
    /// At most so many, the newest first
    #[arg(long, short = 'n', value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
}

impl WhyArgs {
    /// The request.
    pub fn request(&self) -> Request {
        let what = self.what.clone();
        Request::Why(service::WhyArgs { what, limit: self.limit })
    }

    /// A path that may tell the store.
    pub fn hint(&self) -> Option<&Path> {
        self.what.as_deref().map(Path::new)
    }
}
