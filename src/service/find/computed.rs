//! What a mount shows and no command finds, since it does not lie in the tree.
//!
//! Deliberately not here: what is ready, which commands find by its name there (`in_ready`).

use crate::config::Config;
use crate::engine::node_at;
use crate::engine::{is_shown, told_why};
use crate::names::{FileName, TreePath};
use crate::service::{Exit, Failure, Part};
use crate::store::Read;

/// What is said of it.
pub const ONLY_SHOWN: &str = "is what workfs shows, and not in the tree";

/// Fails, and says so, where a mount of this part shows something at `path`.
///
/// # Errors
/// [`Exit::Usage`], or a failure of the store.
pub(in crate::service) fn expect_not_shown(
    read: &dyn Read,
    config: &Config,
    part: &Part,
    path: &TreePath,
) -> Result<(), Failure> {
    // The root of a part is the root of its mount.
    let seen = path.below(part.root());
    let is_at_root =
        seen.is_some_and(|seen| seen.names().first().is_some_and(FileName::is_computed));
    if !is_at_root && !is_shown_below(read, config, path)? {
        return Ok(());
    }
    let reason = format!("`{}` {ONLY_SHOWN}", part.show(path));
    Err(Failure::new(Exit::Usage, reason, "read it in a mount"))
}

fn is_shown_below(read: &dyn Read, config: &Config, path: &TreePath) -> Result<bool, Failure> {
    let Some((above, name)) = path.split_last() else { return Ok(false) };
    let Some(dir) = node_at(read, &above)? else { return Ok(false) };
    if is_shown(read, config, dir.ino, name)? {
        return Ok(true);
    }
    let home = told_why(read, config, dir.ino, name)?;
    let beside = home.map(|home| read.lookup(home.dir, &home.name)).transpose()?.flatten();
    Ok(beside.is_some())
}
