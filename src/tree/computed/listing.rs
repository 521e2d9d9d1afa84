//! Listing a computed directory: what it has is found once for a handle, and what each name stands for is looked at
//! when it is told; of the pasts of records the names are, too.
//!
//! Why: there may be as many as there are records, and a listing is told in thousands of pieces.

use parking_lot::Mutex;
use workfs_mount::{Caller, DirEntry};

use crate::config::Config;
use crate::engine::{AfterEvent, path_of_past};
use crate::names::FileName;
use crate::store::{Read, StoreError};
use crate::tree::computed::pasts::PastDir;
use crate::tree::computed::{self, Child, Computed, Listing, Records, Viewer};
use crate::tree::handles::pins::Charge;
use crate::tree::nodes::cursor::FIRST_COOKIE;
use crate::tree::{Answer, WorkTree};

/// The names of an open computed directory.
#[derive(Default)]
pub(in crate::tree) struct ComputedNames(Mutex<Option<Listed>>);

struct Listed {
    listing: Listing,
    /// What it has counts for who lists.
    _charge: Charge,
}

impl Listing {
    fn len(&self) -> usize {
        self.named.len() + self.records.len()
    }

    /// The name at a place and what it stands for; `None`: there is nothing any more.
    fn at(
        &self,
        read: &dyn Read,
        config: &Config,
        nth: usize,
    ) -> Result<Option<(FileName, Child)>, StoreError> {
        if let Some(named) = self.named.get(nth) {
            return Ok(Some(named.clone()));
        }
        let key = self.records[nth - self.named.len()];
        let found = match self.of {
            Records::Pasts => {
                let name = path_of_past(read, key)?.and_then(|path| path.names().last().cloned());
                name.map(|name| (name, Computed::History(PastDir::Record(key))))
            }
            Records::After(g) => {
                let file = AfterEvent::new(read, config, g).file_of(key)?;
                file.map(|(name, version)| (name, Computed::Past(version)))
            }
        };
        Ok(found.map(|(name, computed)| (name, Child::Node(computed))))
    }
}

impl WorkTree {
    pub(in crate::tree) fn list_computed(
        &self,
        caller: &Caller,
        (dir, open): (Computed, &ComputedNames),
        cookie: u64,
        emit: &mut dyn FnMut(DirEntry) -> bool,
    ) -> Answer<()> {
        let viewer = self.viewer(caller);
        let mut listed = open.0.lock();
        if cookie < FIRST_COOKIE {
            *listed = None;
        }
        self.read(|read| {
            if let Some(Listed { listing, .. }) = &*listed {
                return self.tell(read, &viewer, (listing, cookie), emit);
            }
            let listing = computed::list(read, &viewer, &self.engine.config(), &self.pasts, dir)?;
            self.tell(read, &viewer, (&listing, cookie), emit)?;
            // Who has too much open has it listed anew for each piece.
            let charge = self.pins.names(caller.uid, listing.len()).ok();
            *listed = charge.map(|charge| Listed { listing, _charge: charge });
            Ok(())
        })
    }

    /// Tells the names behind the one with this cookie.
    fn tell(
        &self,
        read: &dyn Read,
        viewer: &Viewer,
        (listing, cookie): (&Listing, u64),
        emit: &mut dyn FnMut(DirEntry) -> bool,
    ) -> Result<(), StoreError> {
        let told = cookie.saturating_sub(FIRST_COOKIE - 1);
        let told_of = usize::try_from(told).unwrap_or(usize::MAX);
        for (cookie, nth) in (FIRST_COOKIE + told..).zip(told_of..listing.len()) {
            let Some((name, child)) = listing.at(read, &viewer.config, nth)? else { continue };
            let computed = self.pasts.node(&name, child);
            let entry = self.computed_entry(read, viewer, computed)?;
            let (name, attr, ttl) = (name.as_bytes().to_vec(), entry.attr, entry.ttl);
            if !emit(DirEntry { name, attr, cookie, ttl }) {
                break;
            }
        }
        Ok(())
    }
}
