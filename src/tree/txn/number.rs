//! The inode numbers of what lies in transactions: which transaction, and which node of it.

use crate::engine::TxnNode;
use crate::numbers::Ino;

/// Above all computed inode numbers.
const TXN: u64 = 1 << 62;
const SLOT_SHIFT: u32 = 48;
const MADE: u64 = 1 << 47;
const NODE_BITS: u64 = MADE - 1;

/// A transaction's place in the numbers. It is used again only when all others were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(u16);

impl Slot {
    /// The first.
    pub const FIRST: Slot = Slot(0);

    /// The one after this.
    pub fn next(self) -> Slot {
        Slot((self.0 + 1) % (1 << 14))
    }
}

/// The number of a node.
pub fn ino_of(slot: Slot, node: TxnNode) -> Ino {
    let node = match node {
        TxnNode::Stored(ino) => ino.0 & NODE_BITS,
        TxnNode::Made(nth) => MADE | u64::from(nth),
    };
    Ino(TXN | u64::from(slot.0) << SLOT_SHIFT | node)
}

/// The transaction and node of a number, if it is one of a transaction.
pub fn node_of(ino: Ino) -> Option<(Slot, TxnNode)> {
    if ino.0 & TXN == 0 {
        return None;
    }
    let slot = Slot(((ino.0 >> SLOT_SHIFT) & 0x3fff) as u16);
    let node = ino.0 & NODE_BITS;
    let made = ino.0 & MADE != 0;
    Some((slot, if made { TxnNode::Made(node as u32) } else { TxnNode::Stored(Ino(node)) }))
}

#[test]
fn a_number_says_what_it_is_of() {
    let slot = Slot::FIRST.next().next();
    for node in [TxnNode::Stored(Ino(1)), TxnNode::Stored(Ino(NODE_BITS)), TxnNode::Made(7)] {
        assert_eq!(node_of(ino_of(slot, node)), Some((slot, node)));
    }
    assert_eq!(node_of(Ino(1 << 57 | 3)), None);
}
