//! The texts that open files keep in memory: each once for a user, and of one user no more than a
//! limit.
//!
//! A record, a draft and a computed file are read as they were at `open`, and what is written to
//! them is kept until it is judged. So a program takes memory by opening files, whether it reads
//! them or not. What a transaction has written lies in memory until it ends, and counts for whoever
//! made it. What must stay true: what a user's open files keep is counted for as long as they keep
//! it; nobody shares a text with another user, who would be refused for what is not his.
//! Deliberately not here: how many handles there are (`handles`), and how much one transaction may
//! write (`txn`).

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use workfs_mount::{Caller, Errno};

use crate::engine::{About, Refuse};
use crate::limits::{
    OPENED_BYTES_OF_ONE_MAX, READ_BESIDE_BYTES_MAX, REMEMBERED_NAME_BYTES,
    SHARED_BY_CONTENT_BYTES_MIN, SHARED_BYTES_MIN,
};
use crate::numbers::G;
use crate::refusal::{Door, Refusal, Rule};
use crate::tree::{Answer, WorkTree};

/// What an open file reads.
#[derive(Clone)]
pub(in crate::tree) struct Text {
    bytes: Arc<[u8]>,
    /// The event that made it, where it is a version.
    version: Option<G>,
    /// It is counted, with all others who share it.
    counted: Option<Arc<Counted>>,
}

impl Text {
    /// A text.
    pub fn of(bytes: impl Into<Arc<[u8]>>) -> Self {
        Text { bytes: bytes.into(), version: None, counted: None }
    }

    /// The version that an event made.
    pub fn of_version(version: G, bytes: impl Into<Arc<[u8]>>) -> Self {
        Text { version: Some(version), ..Text::of(bytes) }
    }

    /// The event that made it, where it is a version.
    pub fn version(&self) -> Option<G> {
        self.version
    }

    /// The bytes.
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// What counts all that this text's user has open, if it is counted.
    pub fn meter(&self) -> Option<Arc<Meter>> {
        Some(Arc::clone(&self.counted.as_ref()?.charge.meter))
    }

    /// By what it is found to be the same as another's: a version by its event, another one that is
    /// large by what it says.
    fn key(&self) -> Option<Key> {
        let length = self.bytes.len();
        match self.version {
            Some(version) if length >= SHARED_BYTES_MIN => Some(Key::Version(version)),
            None if length >= SHARED_BY_CONTENT_BYTES_MIN => {
                let mut hasher = DefaultHasher::new();
                self.bytes.hash(&mut hasher);
                Some(Key::Content(hasher.finish()))
            }
            _ => None,
        }
    }
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Version(G),
    Content(u64),
}

/// A text that is counted for its user as long as somebody has it.
struct Counted {
    bytes: Arc<[u8]>,
    charge: Charge,
}

/// The bytes that the open files of one user keep.
pub(in crate::tree) struct Meter {
    bytes: AtomicU64,
    limits: Limits,
}

/// What one user's open files may keep.
#[derive(Clone, Copy)]
struct Limits {
    bytes: u64,
    /// How much more it may be by what is read.
    beside: u64,
}

/// A part of a meter's bytes.
pub(in crate::tree) struct Charge {
    meter: Arc<Meter>,
    bytes: u64,
}

impl Charge {
    /// A part of nothing yet.
    pub fn none(meter: Arc<Meter>) -> Self {
        Charge { meter, bytes: 0 }
    }

    /// Makes it `bytes`, if it is less.
    ///
    /// # Errors
    /// [`Rule::TooManyHandles`]: its user would have more than the limit.
    pub fn raise(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.raise_within(self.meter.limits.bytes, bytes)
    }

    /// The same of what is only read.
    fn raise_to_read(&mut self, bytes: usize) -> Result<(), Refusal> {
        let Limits { bytes: limit, beside } = self.meter.limits;
        self.raise_within(limit + beside, bytes)
    }

    fn raise_within(&mut self, limit: u64, bytes: usize) -> Result<(), Refusal> {
        let more = (bytes as u64).saturating_sub(self.bytes);
        if more > 0 && self.meter.bytes.fetch_add(more, Ordering::Relaxed) + more > limit {
            self.meter.bytes.fetch_sub(more, Ordering::Relaxed);
            return Err(Refusal::new(
                Rule::TooManyHandles,
                format!(
                    "the open files and the transactions of one user keep {} MiB of texts and names \
                     at most",
                    self.meter.limits.bytes >> 20
                ),
                "close some, or end transactions that nobody needs (`rmdir`)",
            ));
        }
        self.bytes += more;
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.meter.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// All texts that open files keep.
pub(in crate::tree) struct Pins {
    kept: Mutex<Kept>,
    limits: Limits,
}

#[derive(Default)]
struct Kept {
    meters: HashMap<u32, Arc<Meter>>,
    shared: HashMap<(u32, Key), Weak<Counted>>,
    /// How many it may be until those that nobody has any more are forgotten.
    full: usize,
}

impl Default for Pins {
    fn default() -> Self {
        let limits = Limits { bytes: OPENED_BYTES_OF_ONE_MAX, beside: READ_BESIDE_BYTES_MAX };
        Pins { kept: Mutex::default(), limits }
    }
}

impl Pins {
    /// Counts a text for `user`, who opens it: once, if another file of that user has it.
    ///
    /// # Errors
    /// [`Rule::TooManyHandles`].
    pub fn count(&self, user: u32, text: &mut Text) -> Result<(), Refusal> {
        let key = text.key().map(|key| (user, key));
        let mut kept = self.kept.lock();
        let shared = key.and_then(|key| kept.shared.get(&key)?.upgrade());
        // Two texts may have one hash.
        if let Some(shared) = shared.filter(|shared| shared.bytes == text.bytes) {
            text.bytes = Arc::clone(&shared.bytes);
            text.counted = Some(shared);
            return Ok(());
        }
        let mut charge = Charge::none(kept.meter(user, self.limits));
        charge.raise_to_read(text.bytes.len())?;
        let counted = Arc::new(Counted { bytes: Arc::clone(&text.bytes), charge });
        if let Some(key) = key {
            kept.shared.insert(key, Arc::downgrade(&counted));
            kept.forget_what_nobody_has();
        }
        text.counted = Some(counted);
        Ok(())
    }

    /// Counts so many names of an open directory for `user`.
    ///
    /// # Errors
    /// [`Rule::TooManyHandles`].
    pub fn names(&self, user: u32, count: usize) -> Result<Charge, Refusal> {
        let mut charge = self.charge(user);
        charge.raise(count * REMEMBERED_NAME_BYTES)?;
        Ok(charge)
    }

    /// Something of which nothing is kept yet.
    pub fn charge(&self, user: u32) -> Charge {
        Charge::none(self.kept.lock().meter(user, self.limits))
    }
}

impl WorkTree {
    /// Counts what a file of a transaction shows.
    pub(in crate::tree) fn counted(&self, caller: &Caller, mut text: Text) -> Answer<Text> {
        let counted = self.pins.count(caller.uid, &mut text);
        counted.map_err(|refusal| self.refuse_too_many(caller, About::Nothing, refusal))?;
        Ok(text)
    }

    /// Tells `why` that nothing more can be opened.
    pub(super) fn refuse_too_many(&self, caller: &Caller, about: About, refusal: Refusal) -> Errno {
        self.refuse(caller, Door::Name, Refuse { operation: "open", about, refusal })
    }
}

impl Kept {
    fn meter(&mut self, user: u32, limits: Limits) -> Arc<Meter> {
        let meter = self.meters.entry(user);
        let none = || Arc::new(Meter { bytes: AtomicU64::new(0), limits });
        Arc::clone(meter.or_insert_with(none))
    }

    fn forget_what_nobody_has(&mut self) {
        if self.shared.len() <= self.full {
            return;
        }
        self.shared.retain(|_, counted| counted.strong_count() > 0);
        self.meters.retain(|_, meter| Arc::strong_count(meter) > 1);
        self.full = (2 * self.shared.len()).max(FORGOTTEN_FROM);
    }
}

/// Fewer are not worth looking through.
const FORGOTTEN_FROM: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 1 << 20;

    fn pins() -> Pins {
        Pins { limits: Limits { bytes: LIMIT, beside: 0 }, ..Pins::default() }
    }

    fn kept_of(pins: &Pins, user: u32) -> u64 {
        let kept = pins.kept.lock();
        kept.meters.get(&user).map_or(0, |meter| meter.bytes.load(Ordering::Relaxed))
    }

    fn opened(pins: &Pins, user: u32, version: u64, bytes: usize) -> Result<Text, Refusal> {
        let mut text = Text::of_version(G(version), vec![version as u8; bytes]);
        pins.count(user, &mut text)?;
        Ok(text)
    }

    #[test]
    fn a_version_is_kept_once_for_a_user_however_often_it_is_opened() {
        let pins = pins();
        let texts: Vec<Text> =
            (0..100).map(|_| opened(&pins, 1, 7, LIMIT as usize).unwrap()).collect();
        assert!(texts.iter().all(|text| Arc::ptr_eq(text.bytes(), texts[0].bytes())));
        assert_eq!(kept_of(&pins, 1), LIMIT);
        // Another user pays for itself, and another version is another one.
        let other = opened(&pins, 2, 7, 10_000).unwrap();
        assert!(!Arc::ptr_eq(other.bytes(), texts[0].bytes()));
        assert!(opened(&pins, 1, 8, 10_000).is_err());
        drop(texts);
        assert_eq!((kept_of(&pins, 1), kept_of(&pins, 2)), (0, 10_000));
        assert!(opened(&pins, 1, 8, 10_000).is_ok());
    }

    #[test]
    fn large_texts_that_say_the_same_are_one() {
        let pins = pins();
        let open = |bytes: &[u8]| {
            let mut text = Text::of(bytes);
            pins.count(1, &mut text).unwrap();
            text
        };
        let texts = [open(&[b'x'; 100_000]), open(&[b'x'; 100_000]), open(&[b'y'; 100_000])];
        assert!(Arc::ptr_eq(texts[0].bytes(), texts[1].bytes()));
        assert_eq!(kept_of(&pins, 1), 200_000);
    }

    #[test]
    fn what_is_written_counts_until_the_file_is_closed() {
        let pins = pins();
        let text = opened(&pins, 1, 7, 100).unwrap();
        let mut charge = Charge::none(text.meter().unwrap());
        charge.raise(1000).unwrap();
        charge.raise(500).unwrap();
        assert_eq!(kept_of(&pins, 1), 1100);
        assert!(charge.raise(LIMIT as usize).is_err());
        assert_eq!(kept_of(&pins, 1), 1100);
        drop((charge, text));
        assert_eq!(kept_of(&pins, 1), 0);
    }

    #[test]
    fn who_has_written_all_that_he_may_can_still_read_why() {
        let limits = Limits { bytes: LIMIT, beside: 1000 };
        let pins = Pins { limits, ..Pins::default() };
        let mut written = pins.charge(1);
        written.raise(LIMIT as usize).unwrap();
        let why = opened(&pins, 1, 1, 1000).unwrap();
        assert!(opened(&pins, 1, 2, 1).is_err() && pins.names(1, 1).is_err());
        drop(why);
        assert!(written.raise(LIMIT as usize + 1).is_err());
        assert!(opened(&pins, 1, 2, 1).is_ok());
    }

    #[test]
    fn names_count_beside_texts_for_as_long_as_they_are_remembered() {
        let pins = pins();
        let text = opened(&pins, 1, 7, LIMIT as usize / 2).unwrap();
        let names = pins.names(1, 1000).unwrap();
        assert_eq!(kept_of(&pins, 1), LIMIT / 2 + 1000 * REMEMBERED_NAME_BYTES as u64);
        assert!(pins.names(1, 10_000).is_err() && pins.names(2, 10_000).is_ok());
        drop((text, names));
        assert!(pins.names(1, 10_000).is_ok());
        assert_eq!(kept_of(&pins, 1), 0);
    }

    #[test]
    fn what_nobody_has_is_forgotten() {
        let pins = pins();
        let kept: Vec<Text> =
            (0..10).map(|nth| opened(&pins, 1, nth, SHARED_BYTES_MIN).unwrap()).collect();
        for nth in 10..10_000 {
            drop(opened(&pins, nth as u32, nth, SHARED_BYTES_MIN).unwrap());
        }
        let table = pins.kept.lock();
        assert!(table.shared.len() <= 2 * FORGOTTEN_FROM, "{}", table.shared.len());
        assert!(table.meters.len() <= 2 * FORGOTTEN_FROM, "{}", table.meters.len());
        drop((table, kept));
    }
}
