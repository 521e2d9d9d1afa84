//! `.workfs/status`: how many records lie where.

use std::fmt::Write as _;

use crate::config::Config;
use crate::numbers::G;
use crate::store::{Read, Result, WorkspaceRow};

/// What it says.
pub(super) fn render(read: &dyn Read, config: &Config) -> Result<String> {
    let mut out = String::new();
    let last = read.last_event()?.map_or(G(0), |event| event.g);
    let _ = writeln!(out, "g: {last}");
    for workspace in read.workspaces()?.iter().filter(|workspace| workspace.dir.is_some()) {
        let _ = writeln!(out, "{} ({}):", workspace.path, kind_of(config, workspace));
        for (state, count) in read.live_records(workspace.key)? {
            let _ = writeln!(out, "  {state}: {count}");
        }
    }
    Ok(out)
}

/// The kind of a workspace's records: a layout may have made it one of another kind than it was made for.
pub(super) fn kind_of(config: &Config, workspace: &WorkspaceRow) -> String {
    let kind = config.bind(&workspace.path).map(|binding| binding.kind.name().to_string());
    kind.unwrap_or_else(|| workspace.kind.clone())
}
