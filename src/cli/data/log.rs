//! `workfs log`.

use std::path::Path;

use clap::Args;

use super::super::store;
use crate::numbers::G;
use crate::service::{self, Request};

/// See `workfs log --help`.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// A record's id, or a path: only what happened to it or below it
    what: Option<String>,
    /// Go on with events as they happen
    #[arg(long, short)]
    follow: bool,
    /// Only events after this one
    #[arg(long, value_name = "G")]
    since: Option<u64>,
    /// Only so many, the newest
    #[arg(long, short = 'n', value_name = "COUNT")]
    limit: Option<u64>,
}

impl LogArgs {
    /// The request.
    pub fn request(&self, json: bool) -> Request {
        Request::Log(service::LogArgs {
            what: self.what.as_deref().map(store::in_tree),
            follow: self.follow,
            since: self.since.map(G),
            limit: self.limit,
            json,
        })
    }

    /// A path that may tell the store.
    pub fn hint(&self) -> Option<&Path> {
        self.what.as_deref().map(Path::new)
    }
}
