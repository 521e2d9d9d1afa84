//! Names under which the tree shows something of its own. No command stores anything new under
//! them: what is stored would hide what is shown.
//!
//! Deliberately not here: what is shown (`tree/computed`), and the roots of mounts of a part, where
//! what is computed comes before what is stored.

use std::sync::Arc;

use crate::config::{Binding, Config};
use crate::engine::{Home, Slot, Stop, Turn, governed, slot};
use crate::names::FileName;
use crate::numbers::{Ino, ROOT};
use crate::refusal::{Refusal, Rule};
use crate::store::{Read, StoreError};

use super::governed::path_of;

impl Turn<'_> {
    /// Refuses such a name for what is made, linked or moved there.
    pub(in crate::engine) fn require_not_computed(
        &self,
        dir: Ino,
        name: &FileName,
    ) -> Result<(), Stop> {
        self.require_not_next(dir, name)?;
        if let Some(home) = told_why(self.txn, self.config, dir, name)? {
            let refusal = Refusal::new(
                Rule::ReadOnly,
                format!("`{name}` is computed: it tells why `{}` is refused", home.name),
                "choose another name",
            );
            return Err(Stop::kept(refusal, home.governed.dir_path().join(name.clone())));
        }
        if is_shown(self.txn, self.config, dir, name)? {
            return Err(Stop::kept(only_shown(name), path_of(self.txn, dir, name)?));
        }
        Ok(())
    }
}

/// Whether workfs shows something of this name there: at the root, or of what is ready in a workspace. Where
/// something of that name was before there was a workspace, that is what lies there.
///
/// # Errors
/// A failure of the store.
pub fn is_shown(
    read: &dyn Read,
    config: &Config,
    dir: Ino,
    name: &FileName,
) -> Result<bool, StoreError> {
    if dir == ROOT && name.is_computed() {
        return Ok(true);
    }
    let is_order_dir = |binding: &Arc<Binding>| binding.kind.order().dir == *name;
    if !config.bindings().iter().any(is_order_dir) {
        return Ok(false);
    }
    let above = governed(read, config, dir)?;
    let is_order_dir = above.is_some_and(|above| above.is_order_dir(name));
    Ok(is_order_dir && read.lookup(dir, name)?.is_none())
}

/// The record of which this name beside it tells why, whether there is one.
///
/// # Errors
/// A failure of the store.
pub fn told_why(
    read: &dyn Read,
    config: &Config,
    dir: Ino,
    name: &FileName,
) -> Result<Option<Box<Home>>, StoreError> {
    let Some(stem) = name.tells_why_of() else { return Ok(None) };
    Ok(match slot(read, config, dir, &stem)? {
        Slot::Record(home) => Some(home),
        Slot::Plain => None,
    })
}

/// The refusal for what is only shown.
#[must_use]
pub fn only_shown(name: &FileName) -> Refusal {
    let reason = format!("`{name}` is computed, and can only be read");
    let remedy = "leave it: it shows what lies elsewhere, and takes no space";
    Refusal::new(Rule::ReadOnly, reason, remedy)
}
