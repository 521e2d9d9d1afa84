//! The inode numbers of computed nodes.
//!
//! What must stay true: they lie above all stored ones, and each says by itself which node it is.

use crate::numbers::{G, Ino, RecordKey, RefusalKey};
use crate::tree::ready::links::LinkNumber;

use super::pasts::PastDir;
use super::{CONTROL, Computed};

/// Stored inode numbers stay below this.
const FIRST: u64 = 1 << 48;
const REJECTED: u64 = 1 << 49;
const WHY: u64 = 1 << 50;
const READY: u64 = 1 << 51;
const NEXT: u64 = 1 << 52;
const WAIT: u64 = 1 << 53;
const AS_OF: u64 = 1 << 54;
const HISTORY: u64 = 1 << 55;
const PAST: u64 = 1 << 56;
const HOLD: u64 = 1 << 57;
// 1 << 58 is that of stand-ins (see `kernels/told`).
const IGNORED: u64 = 1 << 59;
const UNMADE: u64 = 1 << 60;
const PAST_OF: u64 = 1 << 61;
// Those above it are those of transactions (see `txn`).

/// The numbers of files in `.workfs/kinds/`, from [`FIRST`] on: more than two a kind.
const KIND_FILES: std::ops::Range<u64> = 64..256;

impl Computed {
    /// The node's inode number.
    pub fn ino(self) -> Ino {
        Ino(match self {
            Computed::Control => FIRST,
            Computed::AgentsMd => FIRST + 1,
            Computed::Why => FIRST + 2,
            Computed::Status => FIRST + 3,
            Computed::Events => FIRST + 4,
            Computed::Config => FIRST + 5,
            Computed::RejectedDir => FIRST + 6,
            Computed::Kinds => FIRST + 7,
            Computed::KindFile(nth) => FIRST + KIND_FILES.start + nth,
            Computed::Agents => FIRST + 32,
            Computed::Leases => FIRST + 33,
            Computed::HoldDir => FIRST + 34,
            Computed::Txns => FIRST + 35,
            Computed::Commit => FIRST + 36,
            Computed::Metrics => FIRST + 37,
            Computed::Hold(key) => HOLD | key.0,
            Computed::Rejected(key) => REJECTED | key.0,
            Computed::FileWhy(ino) => WHY | ino.0,
            Computed::UnmadeWhy(key) => UNMADE | key.0,
            Computed::Ready(dir) => READY | dir.0,
            Computed::Next(LinkNumber(number)) => NEXT | number,
            Computed::Wait(dir) => WAIT | dir.0,
            Computed::Ignored(dir) => IGNORED | dir.0,
            Computed::History(PastDir::Numbered(number)) => HISTORY | number,
            Computed::History(PastDir::Record(key)) => PAST_OF | key.0,
            Computed::Past(g) => PAST | g.0,
            Computed::AsOf(g) => AS_OF | g.0,
        })
    }

    /// Those of which there is one in each mount.
    fn fixed() -> impl Iterator<Item = Computed> {
        let control = CONTROL.iter().map(|(_, known)| *known);
        [Computed::Control, Computed::AgentsMd].into_iter().chain(control)
    }

    /// The computed node of a number, if it is one.
    pub fn of(ino: Ino) -> Option<Computed> {
        Some(match ino.0 {
            number if number & PAST_OF != 0 => {
                Computed::History(PastDir::Record(RecordKey(number & !PAST_OF)))
            }
            number if number & UNMADE != 0 => Computed::UnmadeWhy(RefusalKey(number & !UNMADE)),
            number if number & IGNORED != 0 => Computed::Ignored(Ino(number & !IGNORED)),
            number if number & HOLD != 0 => Computed::Hold(RecordKey(number & !HOLD)),
            number if number & PAST != 0 => Computed::Past(G(number & !PAST)),
            number if number & HISTORY != 0 => {
                Computed::History(PastDir::Numbered(number & !HISTORY))
            }
            number if number & AS_OF != 0 => Computed::AsOf(G(number & !AS_OF)),
            number if number & WAIT != 0 => Computed::Wait(Ino(number & !WAIT)),
            number if number & NEXT != 0 => Computed::Next(LinkNumber(number & !NEXT)),
            number if number & READY != 0 => Computed::Ready(Ino(number & !READY)),
            number if number & WHY != 0 => Computed::FileWhy(Ino(number & !WHY)),
            number if number & REJECTED != 0 => Computed::Rejected(RefusalKey(number & !REJECTED)),
            number if number >= FIRST => match number - FIRST {
                nth if KIND_FILES.contains(&nth) => Computed::KindFile(nth - KIND_FILES.start),
                _ => Computed::fixed().find(|known| known.ino() == ino)?,
            },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_number_of_its_own() {
        let kinds = [0, KIND_FILES.end - KIND_FILES.start - 1].map(Computed::KindFile);
        let key = RecordKey(7);
        let past =
            [Computed::History(PastDir::Record(key)), Computed::Past(G(7)), Computed::AsOf(G(7))];
        for known in Computed::fixed().chain(kinds).chain(past) {
            assert_eq!(Computed::of(known.ino()), Some(known));
        }
    }
}
