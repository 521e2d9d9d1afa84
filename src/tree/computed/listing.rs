//! Listing a computed directory: its names are found once for a handle, and what each stands for is looked at
//! when it is told.
//!
//! Why: there may be as many as there are records, and a listing is told in thousands of pieces.

use parking_lot::Mutex;
use workfs_mount::{Caller, DirEntry};

use crate::names::FileName;
use crate::store::{Read, StoreError};
use crate::tree::handles::pins::Charge;
use crate::tree::nodes::cursor::FIRST_COOKIE;
use crate::tree::{Answer, WorkTree};

use crate::tree::computed::{self, Child, Computed, Viewer};

/// The names of an open computed directory.
#[derive(Default)]
pub(in crate::tree) struct ComputedNames(Mutex<Option<Listed>>);

struct Listed {
    names: Vec<(FileName, Child)>,
    /// They count for who lists.
    _charge: Charge,
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
            if let Some(Listed { names, .. }) = &*listed {
                return self.tell(read, &viewer, (names, cookie), emit);
            }
            let names = computed::list(read, &viewer, &self.engine.config(), &self.pasts, dir)?;
            self.tell(read, &viewer, (&names, cookie), emit)?;
            // Who has too much open has it listed anew for each piece.
            let charge = self.pins.names(caller.uid, names.len()).ok();
            *listed = charge.map(|charge| Listed { names, _charge: charge });
            Ok(())
        })
    }

    /// Tells the names behind the one with this cookie.
    fn tell(
        &self,
        read: &dyn Read,
        viewer: &Viewer,
        (names, cookie): (&[(FileName, Child)], u64),
        emit: &mut dyn FnMut(DirEntry) -> bool,
    ) -> Result<(), StoreError> {
        let told = cookie.saturating_sub(FIRST_COOKIE - 1);
        let left = names.get(usize::try_from(told).unwrap_or(usize::MAX)..).unwrap_or_default();
        for (cookie, (name, child)) in (FIRST_COOKIE + told..).zip(left) {
            let computed = self.pasts.node(name, *child);
            let entry = self.computed_entry(read, viewer, computed)?;
            let (name, attr, ttl) = (name.as_bytes().to_vec(), entry.attr, entry.ttl);
            if !emit(DirEntry { name, attr, cookie, ttl }) {
                break;
            }
        }
        Ok(())
    }
}
