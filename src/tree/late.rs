//! A write that begins what cannot become the record whose id it has: it hears of it before `close`.

use std::sync::Arc;

use parking_lot::Mutex;
use workfs_mount::{Caller, Reply};

use crate::engine::RefuseLate;
use crate::numbers::Ino;
use crate::refusal::Door;
use crate::store::Standing;

use super::WorkTree;
use super::handles::Open;
use super::staged::Staged;

impl WorkTree {
    /// Answers a write that was staged: at once, but where it may have come too late.
    pub(super) fn answer_staged(
        &self,
        caller: &Caller,
        ino: Ino,
        open: &Arc<Open>,
        length: u32,
        reply: Reply<u32>,
    ) {
        let Open::Staged(staged) = &**open else { return reply.send(Ok(length)) };
        let (Some(bytes), Some(me)) = (self.asks_whether_late(ino, staged), self.me()) else {
            return reply.send(Ok(length));
        };
        let command = RefuseLate { ino, sight: self.sight(caller), bytes };
        let open = Arc::clone(open);
        self.engine.submit(self.context(caller, Door::Handle), command, move |result| {
            // Whatever else is wrong `close` tells.
            let (Ok(Some(refusal)), Open::Staged(staged)) = (result, &*open) else {
                return reply.send(Ok(length));
            };
            let errno = refusal.rule.errno(Door::Handle);
            {
                let mut staged = staged.lock();
                let was_dirty = staged.unsaved.is_any();
                staged.poison(refusal);
                me.note_dirty(ino, &staged, was_dirty);
            }
            me.born(ino);
            reply.send(Err(errno));
        });
    }

    /// What is written so far of a draft whose id lives elsewhere; asked once a handle.
    fn asks_whether_late(&self, ino: Ino, staged: &Mutex<Staged>) -> Option<Arc<[u8]>> {
        let (home, bytes) = {
            let mut staged = staged.lock();
            if staged.record.is_some() || std::mem::replace(&mut staged.was_asked, true) {
                return None;
            }
            (staged.home.clone()?, staged.whole())
        };
        let known = self.read(|read| read.record_named(home.governed.workspace, &home.id)).ok()?;
        let elsewhere = known.is_some_and(|known| match known.standing {
            Standing::Live { ino: lies, .. } => lies != ino,
            Standing::Parked { .. } => true,
            Standing::Gone => false,
        });
        elsewhere.then_some(bytes)
    }
}
