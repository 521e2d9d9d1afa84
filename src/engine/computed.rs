//! Names under which the tree shows something of its own: nothing new is stored under them, by whatever
//! command, since what is stored would hide it.
//!
//! Deliberately not here: what is shown (`tree/computed`), and the roots of mounts of a part, where it
//! comes before what is stored.

use std::sync::Arc;

use crate::config::Binding;
use crate::names::FileName;
use crate::numbers::Ino;
use crate::refusal::{Refusal, Rule};
use crate::store::StoreError;

use super::governed::path_of;
use super::quota::ROOT;
use super::{Home, Slot, Stop, Turn, governed};

impl Turn<'_> {
    /// Refuses such a name for what is made, linked or moved there.
    pub(super) fn require_not_computed(&self, dir: Ino, name: &FileName) -> Result<(), Stop> {
        self.require_not_next(dir, name)?;
        if let Some(home) = self.told_why(dir, name)? {
            let refusal = Refusal::new(
                Rule::ReadOnly,
                format!("`{name}` is computed: it tells why `{}` is refused", home.name),
                "choose another name",
            );
            return Err(Stop::kept(refusal, home.governed.dir_path().join(name.clone())));
        }
        if self.is_shown(dir, name)? {
            return Err(Stop::kept(only_shown(name), path_of(self.txn, dir, name)?));
        }
        Ok(())
    }

    /// Whether it lies at the root, or shows what is ready in a workspace. Where something of that name was
    /// before there was a workspace, that is what lies there.
    fn is_shown(&self, dir: Ino, name: &FileName) -> Result<bool, StoreError> {
        if dir == ROOT && name.is_computed() {
            return Ok(true);
        }
        let is_order_dir = |binding: &Arc<Binding>| binding.kind.order().dir == *name;
        if !self.config.bindings().iter().any(is_order_dir) {
            return Ok(false);
        }
        let above = governed(self.txn, self.config, dir)?;
        let is_order_dir = above.is_some_and(|above| above.is_order_dir(name));
        Ok(is_order_dir && self.txn.lookup(dir, name)?.is_none())
    }

    /// The record of which this name beside it tells why, whether there is one.
    fn told_why(&self, dir: Ino, name: &FileName) -> Result<Option<Box<Home>>, StoreError> {
        let Some(stem) = name.tells_why_of() else { return Ok(None) };
        Ok(match self.slot(dir, &stem)? {
            Slot::Record(home) => Some(home),
            Slot::Plain => None,
        })
    }
}

/// The refusal for what is only shown.
#[must_use]
pub fn only_shown(name: &FileName) -> Refusal {
    let reason = format!("`{name}` is computed, and can only be read");
    let remedy = "leave it: it shows what lies elsewhere, and takes no space";
    Refusal::new(Rule::ReadOnly, reason, remedy)
}
