//! The log: what is written, where, and how much of it is kept.
//!
//! What must stay true: contents of files are never logged, at no level. Deliberately not here:
//! what is said.

use std::io::IsTerminal;
use std::path::PathBuf;

use tracing_subscriber::EnvFilter;

use super::failure::{Cause, Failure};
use super::paths::StorePaths;
use crate::limits::LOG_BYTES_MAX;

/// The environment variable that chooses what is logged.
const FILTER_VARIABLE: &str = "WORKFS_LOG";

/// Logs to standard error: what `WORKFS_LOG` says, else from `default` up.
///
/// # Errors
/// If `WORKFS_LOG` cannot be read.
pub fn start_log(default: &str) -> Result<(), Failure> {
    let text = std::env::var(FILTER_VARIABLE).unwrap_or_default();
    let text = if text.is_empty() { default } else { &text };
    let filter = EnvFilter::try_new(text).map_err(|error| {
        let reason = format!("{FILTER_VARIABLE} cannot be read: {error}");
        Failure::new(Cause::Usage, reason, "for example `info` or `warn,workfs::daemon=debug`")
    })?;
    let colour = std::io::stderr().is_terminal() && !is_set("NO_COLOR");
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(colour)
        // On a full disk the log cannot be written; saying so to the same file would panic.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    // Fails if there is a log already, which then goes on.
    let _ = log.try_init();
    Ok(())
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// Puts a log that has grown too long aside, in place of the one put aside before. Gives the
/// log's path.
///
/// # Errors
/// If the store's directory cannot be made.
pub fn trim_log(paths: &StorePaths) -> Result<PathBuf, Failure> {
    let log = paths.log();
    paths.make_directory()?;
    if std::fs::metadata(&log).is_ok_and(|metadata| metadata.len() > LOG_BYTES_MAX) {
        let mut aside = log.as_os_str().to_owned();
        aside.push(".1");
        if let Err(error) = std::fs::rename(&log, &aside) {
            tracing::warn!(%error, "the log stays long");
        }
    }
    Ok(log)
}
