//! What a text says about its record's turn: for whom that waits, and who waits for it.

use std::collections::{BTreeMap, HashSet};

use crate::engine::Turn;
use crate::kind::Wants;
use crate::names::RecordId;
use crate::store::{Edge, Record, Sides, StoreError};

/// What a text says about its record's turn, looked at: its edges close no circle.
pub(in crate::engine) struct Links {
    pub(super) wants: Wants,
    /// The edges that touch the record now: who waits for it, and for whom it waits.
    pub(super) dependants: Vec<Edge>,
    pub(super) dependencies: Vec<Edge>,
}

/// The records at the other ends of these edges, of which a record may have thousands.
pub(super) fn others(edges: &[Edge]) -> HashSet<&RecordId> {
    edges.iter().map(|edge| &edge.other).collect()
}

/// The edges whose declaration at one end changes, with what they are then.
pub(super) fn changed(
    edges: &[Edge],
    wanted: &BTreeMap<RecordId, String>,
    side: fn(&mut Sides) -> &mut bool,
) -> Vec<(RecordId, Sides)> {
    let old = edges.iter().filter_map(|Edge { other, sides }| {
        let (mut sides, is) = (*sides, wanted.contains_key(other));
        let was = std::mem::replace(side(&mut sides), is);
        (was != is).then(|| (other.clone(), sides))
    });
    let known = others(edges);
    let new = wanted.keys().filter(|id| !known.contains(*id));
    let new = new.map(|id| {
        let mut sides = Sides { dependant: false, dependency: false };
        *side(&mut sides) = true;
        (id.clone(), sides)
    });
    old.chain(new).collect()
}

impl Turn<'_> {
    /// What a record that is gone says: nothing.
    pub(in crate::engine) fn no_links(&self, record: &Record) -> Result<Links, StoreError> {
        let Record { workspace, id, .. } = record;
        let dependants = self.txn.dependants(*workspace, id)?;
        let dependencies = self.txn.dependencies(*workspace, id)?;
        Ok(Links { wants: Wants::default(), dependants, dependencies })
    }
}
