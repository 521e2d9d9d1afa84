//! Quotas: what lies below a directory with one is charged to it, and the sums are right.

use std::collections::HashMap;

use crate::numbers::{Ino, ROOT};
use crate::store::{Charged, NodeType, Read};

use super::super::Failure;
use super::tree::Nodes;
use super::{Check, shown};

pub(super) fn check(read: &dyn Read, nodes: &Nodes, check: &mut Check<'_>) -> Result<(), Failure> {
    let mut sums: HashMap<Ino, Charged> = HashMap::new();
    // Where none is charged to any no two can differ.
    for seen in nodes.all().iter().filter(|_| nodes.have_quotas()) {
        let top = seen.node_type == NodeType::Directory && seen.parent == ROOT;
        let below = seen.nlink > 0 && !top;
        let above = nodes.get(seen.parent).map(|above| nodes.quota(above.ino));
        if below && above.is_some_and(|above| nodes.quota(seen.ino) != above) {
            check.problem(shown(read, seen.ino), "is not charged to the quota of its parent");
        }
    }
    if nodes.have_quotas() {
        let listed = nodes.read_all(read, &mut |node| {
            let Some(quota) = node.quota else { return };
            let (sum, one) = (sums.entry(quota).or_default(), Charged::of(node));
            sum.bytes += one.bytes;
            sum.inodes += one.inodes;
        });
        check.got(|| "nodes".to_owned(), listed)?;
    }
    let quotas = check.got(|| "quotas".to_owned(), read.quotas())?.unwrap_or_default();
    for (dir, charged) in quotas {
        let Charged { bytes, inodes } = sums.get(&dir).copied().unwrap_or_default();
        if charged != (Charged { bytes, inodes }) {
            let said = format!("{} bytes and {} inodes", charged.bytes, charged.inodes);
            let what = format!("says {said} to its quota, and holds {bytes} and {inodes}");
            check.problem(shown(read, dir), what);
        }
    }
    Ok(())
}
