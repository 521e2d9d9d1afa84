//! A write that begins what cannot become the record whose id it has: it hears of it before `close`, since
//! shells look at no `close`.
//!
//! What must stay true: whatever is refused here `close` would refuse. Asked once a judgement: a save
//! pays for one look at a row.

use std::sync::Arc;

use parking_lot::Mutex;
use workfs_mount::{Caller, Errno, Reply};

use crate::config::Policy;
use crate::engine::{Context, Home, RefuseLate, RefuseText};
use crate::kind::Role;
use crate::names::TreePath;
use crate::numbers::Ino;
use crate::record::prefix;
use crate::refusal::{Door, Refusal};
use crate::store::{Record, Standing};

use super::WorkTree;
use super::handles::Open;
use super::staged::Staged;

/// What is known of a write when it is staged.
enum Lateness {
    /// Nothing is wrong with it so far.
    InTime,
    /// A draft whose id lives elsewhere begins so.
    Perhaps(Arc<[u8]>),
    /// A record begins so that was changed since the writer saw it, or cannot be moved to that status.
    Surely(Arc<[u8]>, Refusal, TreePath),
}

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
        let Some(me) = self.me() else { return reply.send(Ok(length)) };
        let context = self.context(caller, Door::Handle);
        match self.lateness(&context, ino, staged) {
            Lateness::InTime => reply.send(Ok(length)),
            Lateness::Perhaps(bytes) => {
                let command = RefuseLate { ino, sight: self.sight(caller), bytes };
                let open = Arc::clone(open);
                self.engine.submit(context, command, move |result| {
                    // Whatever else is wrong `close` tells.
                    let (Ok(Some(refusal)), Open::Staged(staged)) = (result, &*open) else {
                        return reply.send(Ok(length));
                    };
                    let errno = me.poison(ino, staged, refusal);
                    me.born(ino);
                    reply.send(Err(errno));
                });
            }
            Lateness::Surely(bytes, refusal, path) => {
                let errno = self.poison(ino, staged, refusal.clone());
                let command = RefuseText { path, bytes, refusal };
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
        self.note_dirty(ino, &staged, was_dirty);
        errno
    }

    /// Looks at the first write since the handle was judged.
    fn lateness(&self, context: &Context, ino: Ino, staged: &Mutex<Staged>) -> Lateness {
        let (home, record, base, fence, bytes) = {
            let mut staged = staged.lock();
            let was_asked = std::mem::replace(&mut staged.was_asked, true);
            let Some(home) = staged.home.clone().filter(|_| !was_asked) else {
                return Lateness::InTime;
            };
            (home, staged.record, staged.base, staged.fence.clone(), staged.whole())
        };
        let known = self.glance(|read| match record {
            Some(key) => read.record(key),
            None => read.record_named(home.governed.workspace, &home.id),
        });
        let Ok(Some(known)) = known else { return Lateness::InTime };
        if record.is_none() {
            let lives_elsewhere = match known.standing {
                Standing::Live { ino: lies, .. } => lies != ino,
                Standing::Parked { .. } => true,
                Standing::Gone => false,
            };
            return if lives_elsewhere { Lateness::Perhaps(bytes) } else { Lateness::InTime };
        }
        // That the record or the claim is gone weighs more, and `close` tells it.
        if known.ino().is_none() || fence.is_some_and(|fence| fence.is_over(&known)) {
            return Lateness::InTime;
        }
        let refused = base
            .require_current(&known, &home)
            .and_then(|()| require_status_move(&home, context.role, &known, &bytes));
        match refused {
            Ok(()) => Lateness::InTime,
            Err(refusal) => Lateness::Surely(bytes, refusal, home.file_path()),
        }
    }
}

/// Refuses a text whose status, which is complete, cannot follow the one that the record has.
fn require_status_move(
    home: &Home,
    role: Role,
    known: &Record,
    bytes: &[u8],
) -> Result<(), Refusal> {
    let kind = home.kind();
    // It may have been moved since it was opened; `close` knows where to.
    let is_there = kind.state(home.state).name == known.state;
    if home.governed.binding.policy != Policy::Refuse || !is_there {
        return Ok(());
    }
    // Whatever else is wrong was told already.
    let Ok(found) = prefix(bytes) else { return Ok(()) };
    let from = known.status.as_deref();
    kind.judge_status_so_far(home.state, from, &found.complete, role).map_err(|fault| {
        let place = crate::record::place_in(bytes, &fault.pointer);
        Refusal { place, ..Refusal::from(fault) }
    })
}
