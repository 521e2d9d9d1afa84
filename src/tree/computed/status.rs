//! `.workfs/status`: how many records lie where.

use std::fmt::Write as _;

use crate::config::Config;
use crate::engine::{kind_of, parked_records};
use crate::numbers::G;
use crate::store::{Read, Result};

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
        match parked_records(read, workspace)? {
            0 => {}
            parked => {
                let _ = writeln!(out, "  parked: {parked}");
            }
        }
    }
    Ok(out)
}
