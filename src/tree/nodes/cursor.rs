//! Where the reader of a directory is: cookies are the places of names in its handle's listing.
//!
//! What must stay true: a name keeps the place that it had in a handle for as long as that is remembered;
//! what is remembered counts for the user who lists. Deliberately not here: listings that kernels keep,
//! whose cookies are the same in all handles (`kept_listing`).

use crate::limits::{LISTING_REMEMBERED_MAX, REMEMBERED_NAME_BYTES};
use crate::names::FileName;
use crate::tree::handles::pins::{Charge, Pins};

/// Cookies 1 and 2 are `.` and `..`.
pub(in crate::tree) const FIRST_COOKIE: u64 = 3;

/// See the module.
pub(in crate::tree) struct Cursor<Key = FileName> {
    /// The names that were listed last, by cookie: a reader may go on after any of them (`seekdir`),
    /// also when others are gone by then.
    pub recent: Vec<(u64, Key)>,
    /// Of those before them one in many.
    older: Vec<(u64, Key)>,
    /// The last cookie, once the reader has had all.
    pub end: Option<u64>,
    charge: Option<Charge>,
}

impl<Key> Default for Cursor<Key> {
    fn default() -> Self {
        Cursor { recent: Vec::new(), older: Vec::new(), end: None, charge: None }
    }
}

impl<Key> Cursor<Key> {
    /// Counts what is remembered for `user`. Who has too much open goes on after the last name, and may miss
    /// or hear again of names where it goes back.
    pub fn count(&mut self, pins: &Pins, user: u32) {
        let charge = self.charge.get_or_insert_with(|| pins.charge(user));
        if charge.raise(self.recent.len() * REMEMBERED_NAME_BYTES).is_err() {
            let last = self.recent.drain(..).next_back();
            self.leave_behind(last);
        }
    }

    /// Of the names before this one, and with it, only some are remembered from now on.
    fn leave_behind(&mut self, name: Option<(u64, Key)>) {
        let last = self.older.last().map_or(0, |(at, _)| *at);
        self.older.extend(name.filter(|(at, _)| last < *at));
    }
}

impl<Key: Clone> Cursor<Key> {
    /// Where a listing goes on: after the name that has `cookie`, or, where that is not remembered any
    /// more, after the nearest name before it.
    pub fn start(&mut self, cookie: u64) -> (u64, Option<Key>) {
        if cookie < FIRST_COOKIE {
            *self = Cursor::default();
            return (0, None);
        }
        let index = |list: &[(u64, Key)]| list.partition_point(|(at, _)| *at <= cookie);
        if self.recent.len() > LISTING_REMEMBERED_MAX && index(&self.recent) == self.recent.len() {
            let gone = self.recent.drain(..LISTING_REMEMBERED_MAX / 2).next_back();
            self.leave_behind(gone);
        }
        let last = index(&self.recent).checked_sub(1).map(|index| self.recent[index].clone());
        if let Some((at, name)) = last.as_ref().filter(|(at, _)| *at == cookie) {
            return (*at, Some(name.clone()));
        }
        // Of those that are remembered none has a gap before it: they are those from here on, and places are
        // counted from the nearest name before.
        self.recent.clear();
        self.older.truncate(index(&self.older));
        self.leave_behind(last);
        match self.older.last().cloned() {
            Some((at, name)) => (at, Some(name)),
            None => (FIRST_COOKIE - 1, None),
        }
    }
}

impl<Key: Ord> Cursor<Key> {
    /// How many names were listed, if the reader has gone back to `cookie` and hears again of some.
    pub fn listed_beyond(&self, cookie: u64) -> Option<usize> {
        let goes_back = self.recent.last().is_some_and(|(last, _)| *last > cookie);
        goes_back.then_some(self.recent.len())
    }

    /// The place of a name that follows the one at `at`, and whether it had it before. Where `again` names
    /// are listed again each keeps its place, and one that came since among them has none.
    pub fn place(&self, name: &Key, at: u64, again: Option<usize>) -> Option<(u64, bool)> {
        let Some(listed) = again else { return Some(((at + 1).max(FIRST_COOKIE), false)) };
        match self.recent[..listed].binary_search_by(|(_, known)| known.cmp(name)) {
            Ok(index) => Some((self.recent[index].0, true)),
            Err(index) if index < listed => None,
            Err(_) => Some((self.recent.last().map_or(at, |(last, _)| *last) + 1, false)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::OPENED_BYTES_OF_ONE_MAX;

    /// What a reader gets who has the name `cookie` and asks for `count` more; names are numbers, of
    /// which there are `names`, and the place of each is fixed by that.
    fn read(cursor: &mut Cursor<u64>, names: u64, cookie: u64, count: u64) -> Vec<u64> {
        let (at, after) = cursor.start(cookie);
        let skip = cookie.saturating_sub(at.max(FIRST_COOKIE - 1));
        let first = after.map_or(0, |name| name + 1) + skip;
        let got: Vec<u64> = (first..names.min(first + count)).collect();
        for name in &got {
            let place = name + FIRST_COOKIE;
            if cursor.recent.last().is_none_or(|(last, _)| *last < place) {
                cursor.recent.push((place, *name));
            }
        }
        got
    }

    #[test]
    fn whoever_goes_back_and_on_finds_each_name_at_its_place() {
        let names = 3 * LISTING_REMEMBERED_MAX as u64;
        let mut cursor = Cursor::default();
        let mut cookie = 0;
        loop {
            let got = read(&mut cursor, names, cookie, 100);
            let Some(last) = got.last() else { break };
            cookie = last + FIRST_COOKIE;
        }
        let mut place = 7;
        for nth in 0..500 {
            place = (place * 31 + nth) % (names - 1);
            let got = read(&mut cursor, names, place + FIRST_COOKIE, 1 + nth % 50);
            assert_eq!(got.first(), Some(&(place + 1)), "the {nth}th");
            let no_gap = cursor.recent.windows(2).all(|two| two[0].0 + 1 == two[1].0);
            assert!(no_gap, "the {nth}th");
        }
    }
    #[test]
    fn who_has_too_much_open_goes_on_after_the_last_name() {
        let pins = Pins::default();
        let most = OPENED_BYTES_OF_ONE_MAX as usize / REMEMBERED_NAME_BYTES;
        let other = pins.names(7, most - 100).unwrap();
        let mut cursor = Cursor::default();
        let mut cookie = 0;
        for nth in 0..5 {
            let got = read(&mut cursor, 1_000, cookie, 60);
            assert_eq!(got, Vec::from_iter(nth * 60..(nth + 1) * 60));
            cursor.count(&pins, 7);
            assert!(cursor.recent.len() <= 100);
            cookie = got[59] + FIRST_COOKIE;
        }
        drop(other);
        read(&mut cursor, 1_000, 0, 500);
        cursor.count(&pins, 7);
        assert_eq!(cursor.recent.len(), 500);
    }
}
