//! Writing: into the store for plain files, staged and judged for records.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use workfs_mount::{Caller, Errno, Handle, Reply, WriteAt};

use crate::engine::{
    Allocate, Audience as _, Base, Command, Home, Made, Save, SaveDraft, Saved, Sight, Sync, Text,
    Write,
};
use crate::numbers::Ino;
use crate::refusal::{Door, Refusal, Rule};
use crate::store::When;
use crate::tree::callers::inherited::is_kept_open;
use crate::tree::handles::Open;
use crate::tree::nodes::attr;
use crate::tree::{Touch, WorkTree};

use super::busy::Writer;
use super::judging::{Call, Ending, Judging};
use super::staged::Staged;
use super::what::{Known, RecordLike, What};

impl WorkTree {
    pub(in crate::tree) fn write_file(
        &self,
        caller: &Caller,
        ino: Ino,
        handle: Handle,
        at: WriteAt,
        data: &[u8],
        reply: Reply<u32>,
    ) {
        let Some(open) = self.handles.get(handle) else { return reply.send(Err(Errno::EBADF)) };
        match &*open {
            Open::Plain { wrote, .. } => {
                wrote.note();
                let length = data.len() as u32;
                let command = Write { ino, at, data: data.to_vec() };
                let reply = self.hub.noting_refused(caller.mount, ino, reply);
                self.submit(caller, Door::Handle, command, reply, move |_| length);
            }
            Open::Staged(staged) => {
                let by = (ino, handle);
                let caller = &staged.lock().in_whose_name(caller);
                let reply = self.noting_unsaved(caller, by, &staged.lock(), reply);
                if self.engine.had_no_room() && !staged.lock().was_asked {
                    return self.stage_if_room(caller, by, &open, (at, data), reply);
                }
                self.stage(caller, by, (&open, staged), (at, data), reply);
            }
            _ => {
                reply.send(Err(Rule::ReadOnly.errno(Door::Handle)));
            }
        }
    }

    pub(super) fn stage(
        &self,
        caller: &Caller,
        (ino, handle): (Ino, Handle),
        (open, staged): (&Arc<Open>, &Mutex<Staged>),
        (at, data): (WriteAt, &[u8]),
        reply: Reply<u32>,
    ) {
        let (refuse, ended) = {
            let mut staged = staged.lock();
            let was_dirty = staged.unsaved.is_any();
            let known = staged.failed.is_some();
            let mut written = staged.write(caller.files, at, data);
            if let Err(refusal) = &written
                && !known
                && self.is_forgiven(ino, &mut staged, refusal)
            {
                staged.forgive(caller.files);
                written = Ok(());
            }
            self.timed.lock().remove(&ino);
            let ended = self.note_dirty(ino, &staged, was_dirty);
            self.handles.note_text(caller, (ino, handle), &staged);
            let refuse = written.err().map(|refusal| {
                let is_new = staged.what.checked().is_some_and(|file| file.is_new);
                let kept = (!known).then(|| (staged.refused_text(ino, refusal.clone()), is_new));
                (refusal, kept, staged.is_checked())
            });
            (refuse, ended)
        };
        self.end_writing(ino, ended);
        let Some((refusal, kept, is_checked)) = refuse else {
            return self.answer_if_in_time(caller, ino, open, data.len() as u32, reply);
        };
        let errno = refusal.rule.errno(Door::Handle);
        let (Some((command, is_new)), Some(me)) = (kept, self.me()) else {
            return reply.send(Err(errno));
        };
        if is_checked {
            return self.refuse_checked(caller, ino, (command.bytes, is_new), refusal, reply);
        }
        // What was written is kept with the reason, and can be read when the caller hears of it.
        self.engine.submit(self.context(caller, Door::Handle), command, move |_| {
            me.born(ino);
            reply.send(Err(errno));
        });
    }

    /// Counts whether a handle has written what is not judged. What is given is to be ended when the handle is
    /// not locked any more, since what waits for that goes on then, and may want it.
    #[must_use]
    pub(super) fn note_dirty(&self, ino: Ino, staged: &Staged, was: bool) -> Option<Writer> {
        match (was, staged.unsaved.is_any()) {
            (false, true) => self.busy.begin(ino, staged.writer()),
            (true, false) => return Some(staged.writer()),
            _ => {}
        }
        None
    }

    /// A handle of `ino` has nothing unjudged any more. Whoever waits to claim what is ready, and
    /// left its record for that, hears of it.
    pub(in crate::tree) fn end_writing(&self, ino: Ino, writer: Option<Writer>) {
        let Some(writer) = writer.filter(|writer| self.busy.end(ino, writer)) else { return };
        let record = self.read(|read| match writer.record {
            Some(record) => read.record(record),
            None => read.record_at(ino),
        });
        match record {
            Ok(Some(record)) if record.readiness.when == When::Now => {
                self.engine.line().call(record.workspace);
            }
            _ => {}
        }
    }

    /// `flush` and `fsync`: judges what was written since the last time, and commits it.
    pub(in crate::tree) fn judge(
        &self,
        caller: &Caller,
        ino: Ino,
        handle: Handle,
        call: Call,
        reply: Reply<()>,
    ) {
        let sync = call == Call::Fsync;
        let Some(open) = self.handles.get(handle) else { return reply.send(Err(Errno::EBADF)) };
        let is_put_off = |wrote: bool| {
            let opener = self.handles.opener(handle).filter(|_| !sync);
            opener.is_some_and(|opener| {
                let of = (ino, || self.hub.device(caller.mount));
                is_kept_open(&self.seen.lineages, opener, (caller.pid, wrote), of)
            })
        };
        let Open::Staged(staged) = &*open else {
            return match &*open {
                Open::Plain { wrote, .. } if !wrote.is_any() || !is_put_off(true) => {
                    self.save_plain(caller, ino, wrote, call, reply)
                }
                _ => reply.send(Ok(())),
            };
        };
        let mut staged = staged.lock();
        let caller = &staged.in_whose_name(caller);
        let is_unsaved = staged.unsaved.is_any();
        if let Some(judging) = staged.judging.as_mut().filter(|_| is_unsaved) {
            return judging.after.push(Ending { caller: *caller, handle, call, reply });
        }
        let reply = self.noting_unsaved(caller, (ino, handle), &staged, reply);
        if let Some(judging) = &mut staged.judging {
            return judging.waiting.push(reply);
        }
        if let Some(failed) = &staged.failed {
            return reply.send(Err(failed.rule.errno(Door::Handle)));
        }
        let wrote = staged.unsaved.is_ended_by(caller.files);
        if sync && !is_unsaved && staged.what.emptied().is_some() {
            self.busy.begin(ino, staged.writer());
        } else if sync && !is_unsaved {
            drop(staged);
            // Its name or mode may be what is to be flushed, or what was saved by another name.
            return self.submit(caller, Door::Handle, Sync, reply, |()| ());
        } else if !(sync || wrote || staged.put_off.is_some()) {
            // By a copy of its descriptor whoever opened it may go on to write.
            if !staged.writes || self.handles.opener(handle) == Some(caller.pid) {
                self.handles.note_closed(caller, (ino, handle));
            }
            return reply.send(Ok(()));
        } else if is_put_off(wrote) {
            staged.put_off = Some(*caller);
            return reply.send(Ok(()));
        }
        if !sync {
            self.handles.note_closed(caller, (ino, handle));
        }
        let reply = self.noting_uncopied(caller, (ino, handle), &staged, reply);
        self.judge_now(caller, (ino, &open), staged, reply);
    }

    /// Judges what was staged in `open`, and commits it.
    pub(in crate::tree) fn judge_now(
        &self,
        caller: &Caller,
        (ino, open): (Ino, &Arc<Open>),
        mut staged: MutexGuard<'_, Staged>,
        reply: Reply<()>,
    ) {
        let open = Arc::clone(open);
        let What::RecordLike(RecordLike { home, record: known, .. }) = &staged.what else {
            let command = self.checked_save(ino, &mut staged);
            drop(staged);
            return self.save(caller, (ino, open), command, reply);
        };
        let (home, record) = (home.clone(), staged.what.key());
        let (sight, fence) = match known {
            Some(known) => (Sight::Known(known.base), known.fence.clone()),
            // A draft may be a record on its way from another directory: what was seen of that?
            None => (self.sight(caller), None),
        };
        let whole = staged.take();
        drop(staged);
        let keeps_time = self.timed.lock().remove(&ino);
        let text = Text::new(whole);
        let may_move = record.is_none() && text.parsed.is_ok() && !self.busy.is_idle_but(ino);
        let moves = home.as_ref().filter(|_| may_move).and_then(|home| {
            let written = self.read(|read| self.written_elsewhere(read, home)).ok()??;
            let (bytes, refusal) = (Arc::clone(&text.bytes), Refusal::being_written(&home.name));
            let lay = Some(home.file_path());
            Some((written, SaveDraft { ino, record, bytes, refusal, lay }))
        });
        let lay = home.as_ref().map(Home::file_path);
        let command = Save { ino, record, sight, text, keeps_time, fence, lay };
        let (Some((written, refuse)), Some(me)) = (moves, self.me()) else {
            return self.save(caller, (ino, open), command, reply);
        };
        // Somebody writes the record that this text would move.
        let caller = *caller;
        let save = move |busy: bool| match busy {
            true => me.save(&caller, (ino, open), refuse, reply),
            false => me.save(&caller, (ino, open), command, reply),
        };
        self.busy.when_idle(written, Box::new(save));
    }

    /// Runs the save of what was staged in `open`, and tells all who wait for its judgement.
    pub(super) fn save(
        &self,
        caller: &Caller,
        (ino, open): (Ino, Arc<Open>),
        command: impl Command<Out = Saved>,
        reply: Reply<()>,
    ) {
        let Some(me) = self.me() else { return reply.send(Err(Errno::EIO)) };
        let (caller, context) = (*caller, self.context(caller, Door::Handle));
        self.engine.submit(context, command, move |result| {
            // Of a checked file that was not taken there is nothing to see.
            if matches!(&result, Ok(Saved::Kept(_))) || !open.is_checked() {
                me.born(ino);
            }
            let verdict = match result {
                Ok(Saved::Kept(made)) => {
                    let file = me.file_now(ino, made.as_ref());
                    me.hub.note_file(caller.mount, Touch::Content(file));
                    me.hub.note_file(caller.mount, Touch::Closed(file));
                    Ok(made)
                }
                Ok(Saved::Refused(refusal)) | Err(refusal) => Err(refusal),
            };
            let (answer, judging) = me.judged(&caller, (ino, &open), verdict);
            for reply in judging.waiting.into_iter().chain([reply]) {
                reply.send(answer);
            }
            for Ending { caller, handle, call, reply } in judging.after {
                me.judge(&caller, ino, handle, call, reply);
            }
        });
    }

    /// What was saved through `ino`. A record may have another file, and gets one where somebody has
    /// mapped the one that it had.
    fn file_now(&self, ino: Ino, made: Option<&Made>) -> Ino {
        let saved = made.and_then(|made| made.ino).unwrap_or(ino);
        let Some(made) = made.filter(|_| self.hub.is_mapped(saved)) else { return saved };
        let record = self.read(|read| read.record(made.record)).ok().flatten();
        record.and_then(|record| record.ino()).unwrap_or(saved)
    }

    /// Notes how a judgement ended, in the handle and in what the process has seen.
    fn judged(
        &self,
        caller: &Caller,
        (ino, open): (Ino, &Open),
        verdict: Result<Option<Made>, Refusal>,
    ) -> (Result<(), Errno>, Judging) {
        let Open::Staged(staged) = open else { return (Ok(()), Judging::default()) };
        let mut staged = staged.lock();
        let writer = staged.writer();
        let judging = staged.judging.take().unwrap_or_default();
        let answer = match verdict {
            Ok(made) => {
                staged.saved();
                if let Some(made) = made {
                    if let What::RecordLike(file) = &mut staged.what {
                        file.record = Some(Known::by(&made));
                    }
                    self.note_made(caller, made);
                }
                Ok(())
            }
            Err(refusal) => {
                let errno = refusal.rule.errno(Door::Handle);
                staged.refused();
                // What was written meanwhile is judged for itself.
                if !staged.unsaved.is_any() {
                    staged.failed = Some(refusal);
                }
                Err(errno)
            }
        };
        // What was written meanwhile is written to what it is now.
        let now = staged.writer();
        let counts_anew = now != writer && staged.unsaved.is_any();
        if counts_anew {
            self.busy.begin(ino, now);
        }
        drop(staged);
        self.end_writing(ino, counts_anew.then(|| writer.clone()));
        self.end_writing(ino, Some(writer));
        (answer, judging)
    }

    /// What the caller saw of each record, for a save that may turn out to be one of any.
    pub(in crate::tree) fn sight(&self, caller: &Caller) -> Sight {
        let (me, thread) = (self.me.clone(), caller.pid);
        Sight::Ask(Arc::new(move |record| match me.upgrade() {
            Some(me) => me.seen.base(record, thread),
            None => Base::Unseen,
        }))
    }

    /// The caller made this version: it has seen it. A name that it took away by copying stays its
    /// to unlink.
    pub(in crate::tree) fn note_made(&self, caller: &Caller, made: Made) {
        self.seen.note_made(made.record, caller.pid, made.version, made.moved);
        if let Some(left) = made.left {
            let dirs = (left.parent, self.ready_beside(left.parent));
            self.ghosts.add(caller, dirs, left.name, attr::attr(&left.node));
        }
    }

    pub(in crate::tree) fn allocate(
        &self,
        caller: &Caller,
        ino: Ino,
        handle: Handle,
        range: (u64, u64),
        mode: i32,
        reply: Reply<()>,
    ) {
        let open = self.handles.get(handle);
        let Some(Open::Plain { wrote, .. }) = open.as_deref() else {
            return reply.send(Err(Rule::Unsupported.errno(Door::Handle)));
        };
        let has = |flag: i32| mode & flag != 0;
        let known =
            libc::FALLOC_FL_KEEP_SIZE | libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE;
        if mode & !known != 0 {
            return reply.send(Err(Rule::Unsupported.errno(Door::Handle)));
        }
        let command = Allocate {
            ino,
            offset: range.0,
            length: range.1,
            keep_size: has(libc::FALLOC_FL_KEEP_SIZE),
            zero: has(libc::FALLOC_FL_PUNCH_HOLE) || has(libc::FALLOC_FL_ZERO_RANGE),
        };
        // A reservation beyond the end leaves the content as it is.
        if command.zero || !command.keep_size {
            wrote.note();
        }
        self.submit(caller, Door::Handle, command, reply, |()| ());
    }
}
