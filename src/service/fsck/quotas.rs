//! Quotas: what lies below a directory with one is charged to it, and the sums are right.

use std::collections::HashMap;

use crate::numbers::Ino;
use crate::store::{Charged, NodeType, Read};

use super::super::Failure;
use super::super::find::ROOT;
use super::tree::Nodes;
use super::{Check, shown};

pub(super) fn check(read: &dyn Read, nodes: &Nodes, check: &mut Check<'_>) -> Result<(), Failure> {
    let mut sums: HashMap<Ino, Charged> = HashMap::new();
    let listed = nodes.read_all(read, &mut |node| {
        if let Some(quota) = node.quota {
            let (sum, one) = (sums.entry(quota).or_default(), Charged::of(node));
            sum.bytes += one.bytes;
            sum.inodes += one.inodes;
        }
        let top = node.node_type == NodeType::Directory && node.parent == ROOT;
        let below = node.nlink > 0 && !top;
        let above = nodes.get(node.parent).map(|above| above.quota());
        if below && above.is_some_and(|above| node.quota != above) {
            check.problem(shown(read, node.ino), "is not charged to the quota of its parent");
        }
    });
    check.got(|| "nodes".to_owned(), listed)?;
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
