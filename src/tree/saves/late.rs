//! Writes that begin a text which cannot become the record whose id it has, or for which there is
//! no room: they are refused before `close`, since shells do not look at `close`.
//!
//! What must stay true: whatever is refused here `close` would refuse. It is asked once for each
//! judgement, so that a save pays for one look at a row. Asked again are only a text that now says
//! a status, or another one than before, and a draft that so far is how a record's text begins.

use std::sync::Arc;

use parking_lot::Mutex;
use workfs_mount::{Caller, Errno, Handle, Reply, WriteAt};

use super::staged::Staged;
use super::unmade::Unmade;
use super::what::{Known, What};
use crate::engine::{AskRoom, Late, RefuseLate, RefuseText};
use crate::names::TreePath;
use crate::numbers::Ino;
use crate::refusal::{Door, Refusal, Rule};
use crate::store::Standing;
use crate::tree::WorkTree;
use crate::tree::handles::Open;

/// What is known of a write when it is staged.
enum Lateness {
    /// Nothing is wrong with it so far.
    InTime,
    /// A draft whose id lives elsewhere, or whose status no record there has, begins so.
    Perhaps,
    /// A record begins so that was changed since the writer saw it, is its no more, or cannot be moved to
    /// that status.
    Surely(Refusal, TreePath),
}

impl WorkTree {
    /// Stages a write where there was no room for its save, if there is by now. Else nothing of it is staged, so
    /// that it can be made later; but what was written before it, or comes after it, is not saved without it.
    pub(super) fn stage_if_room(
        &self,
        caller: &Caller,
        by: (Ino, Handle),
        open: &Arc<Open>,
        (at, data): (WriteAt, &[u8]),
        reply: Reply<u32>,
    ) {
        let Some(me) = self.me() else { return reply.send(Err(Errno::EIO)) };
        let (caller, open, data) = (*caller, Arc::clone(open), data.to_vec());
        self.engine.submit(self.context(&caller, Door::Handle), AskRoom, move |room| {
            let Open::Staged(staged) = &*open else { return reply.send(Err(Errno::EBADF)) };
            match room {
                Err(refusal) if refusal.rule == Rule::NoSpace => {
                    let errno = refusal.rule.errno(Door::Handle);
                    let mut own = staged.lock();
                    let is_another = |unmade: &Unmade| !unmade.is_made_by(at, &data);
                    if own.unsaved.is_any() || own.unmade.as_ref().is_some_and(is_another) {
                        drop(own);
                        me.poison(by.0, staged, refusal);
                    } else {
                        own.unmade = Some(Unmade::new(at, &data, refusal.clone()));
                        own.what.forget_emptied();
                        own.failed = Some(refusal);
                    }
                    reply.send(Err(errno));
                }
                // Whatever else is wrong the save tells.
                _ => me.stage(&caller, by, (&open, staged), (at, &data), reply),
            }
        });
    }

    /// Answers a write that was staged: at once, but where it may have come too late.
    pub(super) fn answer_if_in_time(
        &self,
        caller: &Caller,
        ino: Ino,
        open: &Arc<Open>,
        length: u32,
        reply: Reply<u32>,
    ) {
        let (Open::Staged(staged), Some(me)) = (&**open, self.me()) else {
            return reply.send(Ok(length));
        };
        match self.lateness(caller, ino, staged) {
            Lateness::InTime => reply.send(Ok(length)),
            Lateness::Perhaps => {
                let (bytes, status) = {
                    let staged = staged.lock();
                    let file = staged.what.record_like();
                    (staged.whole(), file.and_then(|file| file.status.clone()))
                };
                let command = RefuseLate { ino, sight: self.sight(caller), bytes, status };
                let open = Arc::clone(open);
                self.engine.submit(self.context(caller, Door::Handle), command, move |result| {
                    let Open::Staged(staged) = &*open else { return reply.send(Ok(length)) };
                    let refusal = match result {
                        Ok(Late::Refused(refusal)) => refusal,
                        Ok(Late::SoFar) => {
                            staged.lock().was_asked = false;
                            return reply.send(Ok(length));
                        }
                        // Whatever else is wrong `close` tells.
                        Ok(Late::InTime) | Err(_) => return reply.send(Ok(length)),
                    };
                    let errno = me.poison(ino, staged, refusal);
                    me.born(ino);
                    reply.send(Err(errno));
                });
            }
            Lateness::Surely(refusal, path) => {
                let bytes = staged.lock().whole();
                let errno = self.poison(ino, staged, refusal.clone());
                let command = RefuseText { path, bytes, refusal };
                let context = self.context(caller, Door::Handle);
                self.engine.submit(context, command, move |_| reply.send(Err(errno)));
            }
        }
    }

    /// The handle takes no more writes.
    fn poison(&self, ino: Ino, staged: &Mutex<Staged>, refusal: Refusal) -> Errno {
        let errno = refusal.rule.errno(Door::Handle);
        let mut staged = staged.lock();
        let was_dirty = staged.unsaved.is_any();
        staged.poison(refusal);
        let ended = self.note_dirty(ino, &staged, was_dirty);
        drop(staged);
        self.end_writing(ino, ended);
        errno
    }

    /// Looks at the first write since the handle was judged, at the next while that decides nothing, and
    /// at each that says another status.
    fn lateness(&self, caller: &Caller, ino: Ino, staged: &Mutex<Staged>) -> Lateness {
        let (home, writes, status) = {
            let mut staged = staged.lock();
            if std::mem::replace(&mut staged.was_asked, true) {
                return Lateness::InTime;
            }
            let What::RecordLike(file) = &staged.what else { return Lateness::InTime };
            let Some(home) = file.home.clone() else { return Lateness::InTime };
            (home, file.record.clone(), file.status.clone())
        };
        let known = self.glance(|read| {
            let Some(written) = &writes else {
                return read.record_named(home.governed.workspace, &home.id);
            };
            let Some(known) = read.record(written.key)? else { return Ok(None) };
            // Its file may be a plain one by now: then it is not this record that is written.
            let is_another =
                known.ino() != Some(ino) && read.node(ino)?.is_some_and(|file| file.nlink > 0);
            Ok((!is_another).then_some(known))
        });
        let Ok(known) = known else { return Lateness::InTime };
        let writer = self.context(caller, Door::Handle);
        let (kind, said) = (home.kind(), status.as_deref());
        let policy = home.governed.binding.policy;
        let Some(Known { base, fence, .. }) = writes else {
            let lives_elsewhere = match known.map(|known| known.standing) {
                Some(Standing::Live { ino: lies, .. }) => lies != ino,
                Some(Standing::Parked { .. }) => true,
                Some(Standing::Gone) | None => false,
            };
            let judged = kind.judge_new_status_so_far(home.state, None, said, writer.role);
            let is_wrong = judged.is_err_and(|fault| !policy.takes(fault.rule));
            return if lives_elsewhere || is_wrong { Lateness::Perhaps } else { Lateness::InTime };
        };
        let Some(known) = known else { return Lateness::InTime };
        // That the record is gone weighs more, and `close` tells it.
        if known.ino().is_none() {
            return Lateness::InTime;
        }
        if let Some(Err(refusal)) = fence.map(|fence| fence.allows(&writer, &known, &home)) {
            return Lateness::Surely(refusal, home.file_path());
        }
        let refused = base.require_current(&known, &home).and_then(|()| {
            // It may have been moved since it was opened; `close` knows where to.
            if kind.state(home.state).name != known.state {
                return Ok(());
            }
            let from = known.status.as_deref();
            let judged = kind.judge_status_so_far(home.state, from, said, writer.role);
            match judged {
                Err(fault) if !policy.takes(fault.rule) => Err(staged.lock().refusal(fault)),
                _ => Ok(()),
            }
        });
        match refused {
            Ok(()) => Lateness::InTime,
            // What the writer saved itself is no other's change.
            Err(_) if !staged.lock().is_based_on(base) => Lateness::InTime,
            Err(refusal) => Lateness::Surely(refusal, home.file_path()),
        }
    }
}
