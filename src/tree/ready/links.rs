//! The links called `.next`, in `ready/` and in lanes: each has a number of its own, by which a kernel knows it.
//!
//! What must stay true: a link that a kernel has moved from `ready/` into a lane is the same there, as that kernel takes
//! it for, and in `ready/` is another one by then. Under one number for both it would make nothing of a rename, since
//! two names of one file stay as they are; under a number for each it would look in vain for the one it had moved, and
//! ask again. Deliberately not here: where they lead (`nexts`).

use std::collections::HashMap;

use parking_lot::Mutex;
use workfs_mount::MountId;

use crate::limits::NEXTS_MAX;
use crate::numbers::Ino;

/// A link's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::tree) struct LinkNumber(pub u64);

/// Where a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::tree) enum Place {
    /// In `ready/` of the workspace with this directory.
    Ready(Ino),
    /// In this lane.
    Lane(Ino),
}

/// The links that kernels were told of.
#[derive(Default)]
pub(in crate::tree) struct Links(Mutex<Told>);

#[derive(Default)]
struct Told {
    last: u64,
    places: HashMap<LinkNumber, Place>,
    numbers: HashMap<(MountId, Place), LinkNumber>,
}

impl Told {
    fn end(&mut self, at: (MountId, Place)) {
        if let Some(number) = self.numbers.remove(&at) {
            self.places.remove(&number);
        }
    }
}

impl Links {
    /// The number that a mount's kernel knows the link at a place by, from now on if it knows none.
    pub fn number(&self, mount: MountId, place: Place) -> LinkNumber {
        let told = &mut *self.0.lock();
        if let Some(number) = told.numbers.get(&(mount, place)) {
            return *number;
        }
        // Who asks for one that is gone so is answered ESTALE, and looks its name up again.
        if told.numbers.len() >= NEXTS_MAX {
            told.numbers.clear();
            told.places.clear();
        }
        told.last += 1;
        let number = LinkNumber(told.last);
        told.numbers.insert((mount, place), number);
        told.places.insert(number, place);
        number
    }

    /// A mount's kernel is about to hear that it has moved its link from one place to another, over the one there.
    pub fn moved(&self, mount: MountId, from: Place, to: Place) {
        let told = &mut *self.0.lock();
        told.end((mount, to));
        if let Some(number) = told.numbers.remove(&(mount, from)) {
            told.numbers.insert((mount, to), number);
            told.places.insert(number, to);
        }
    }

    /// A mount's kernel is about to hear that it has removed its link.
    pub fn removed(&self, mount: MountId, place: Place) {
        self.0.lock().end((mount, place));
    }

    /// A mount has ended.
    pub fn remove_mount(&self, mount: MountId) {
        let Told { places, numbers, .. } = &mut *self.0.lock();
        numbers.retain(|(of, _), number| {
            let stays = *of != mount;
            if !stays {
                places.remove(number);
            }
            stays
        });
    }

    /// Where the link with this number is, if it is still there.
    pub fn place(&self, number: LinkNumber) -> Option<Place> {
        self.0.lock().places.get(&number).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // P9.6
    #[test]
    fn a_link_that_is_moved_is_the_same_and_the_one_that_was_there_is_gone() {
        let (links, one, two) = (Links::default(), MountId(1), MountId(2));
        let (ready, lane) = (Place::Ready(Ino(7)), Place::Lane(Ino(8)));
        let first = links.number(one, ready);
        assert_eq!((links.number(one, ready), links.place(first)), (first, Some(ready)));
        links.moved(one, ready, lane);
        assert_eq!((links.number(one, lane), links.place(first)), (first, Some(lane)));
        let second = links.number(one, ready);
        assert!(second != first && links.number(two, lane) != first);
        links.moved(one, ready, lane);
        assert_eq!((links.number(one, lane), links.place(first)), (second, None));
        // Another mount's claim moves none that this kernel knows.
        links.moved(two, ready, lane);
        assert_eq!(links.place(second), Some(lane));
        links.removed(one, lane);
        assert_eq!(links.place(second), None);
    }

    #[test]
    fn of_too_many_all_are_forgotten_and_no_number_is_used_again() {
        let links = Links::default();
        let first = links.number(MountId(1), Place::Lane(Ino(0)));
        for lane in 1..=NEXTS_MAX as u64 {
            links.number(MountId(1), Place::Lane(Ino(lane)));
        }
        assert_eq!(links.place(first), None);
        assert!(links.number(MountId(1), Place::Lane(Ino(0))) > first);
        links.remove_mount(MountId(1));
        assert!(links.0.lock().places.is_empty() && links.0.lock().numbers.is_empty());
    }
}
