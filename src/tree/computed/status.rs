//! `.workfs/status`: how many records lie where.

use std::fmt::Write as _;

use crate::config::Config;
use crate::numbers::G;
use crate::store::{Read, Result};

/// What it says.
pub(super) fn render(read: &dyn Read, config: &Config) -> Result<String> {
    let mut out = String::new();
    let last = read.last_event()?.map_or(G(0), |event| event.g);
    let _ = writeln!(out, "g: {last}");
    for workspace in read.workspaces()?.iter().filter(|workspace| workspace.dir.is_some()) {
        // A layout may have made it one of another kind than it was made for.
        let kind = config.bind(&workspace.path).map(|binding| binding.kind.name().to_string());
        let kind = kind.unwrap_or_else(|| workspace.kind.clone());
        let _ = writeln!(out, "{} ({kind}):", workspace.path);
        for (state, count) in read.live_records(workspace.key)? {
            let _ = writeln!(out, "  {state}: {count}");
        }
    }
    Ok(out)
}
