//! Changes of size: at `open`, of plain files, of what a handle stages, and by name.
//!
//! What must stay true: a record is never shown cut; a size that is set by its name is a save of what
//! is left. A draft is emptied where a program empties it.

use parking_lot::Mutex;
use workfs_mount::{Caller, Entry, Errno, Handle, OpenFlags, Opened, Reply};

use crate::engine::{
    About, Base, Command, EmptyDraft, Refuse, Save, Saved, SetAttributes, Sight, Text,
    forbids_writing,
};
use crate::numbers::Ino;
use crate::refusal::{Door, Rule};
use crate::store::{Class, Node};
use crate::tree::handles::{Held, Open};
use crate::tree::{Answer, Touch, WorkTree};

use super::staged::Staged;

impl WorkTree {
    /// O_TRUNC of a plain file or of a draft is a change like any other. It is made when there is a handle: what
    /// cannot be opened stays as it is.
    pub(in crate::tree) fn open_after(
        &self,
        caller: &Caller,
        (held, open): (Held, Open),
        cut: impl Command<Out = Node>,
        reply: Reply<Opened>,
    ) {
        let Some(me) = self.me() else { return reply.send(Err(Errno::EIO)) };
        let ino = held.ino();
        let handle = match self.handle_of(caller, held, open) {
            Ok(handle) => handle,
            Err(errno) => return reply.send(Err(errno)),
        };
        let (caller, context) = (*caller, self.context(caller, Door::Name));
        self.engine.submit(context, cut, move |result| {
            reply.send(match (result, me.handles.get(handle)) {
                (Ok(_), Some(open)) => {
                    let caching = me.caching(&caller, ino, me.kept(ino, &open));
                    Ok(Opened { handle, caching })
                }
                // Its mount has ended.
                (Ok(_), None) => Err(Errno::ENODEV),
                (Err(refusal), _) => {
                    me.handles.remove(handle);
                    // Whoever else had a draft open may have closed it meanwhile.
                    me.born_if_closed(ino);
                    Err(refusal.rule.errno(Door::Name))
                }
            });
        });
    }

    /// `truncate(2)` asks what an open for writing would.
    fn refuse_cut(&self, caller: &Caller, ino: Ino) -> Answer<()> {
        let (config, context) = (self.engine.config(), self.context(caller, Door::Name));
        let forbidden = self.read(|read| forbids_writing(read, &config, &context, ino))?;
        let Some(refusal) = forbidden else { return Ok(()) };
        let refuse = Refuse { operation: "truncate", about: About::Node(ino), refusal };
        Err(self.refuse(caller, Door::Name, refuse))
    }

    /// `truncate(2)` of a plain file: a save of what is left.
    pub(in crate::tree) fn cut_by_name(
        &self,
        caller: &Caller,
        command: SetAttributes,
        reply: Reply<Entry>,
    ) {
        let Some(me) = self.me() else { return reply.send(Err(Errno::EIO)) };
        let (caller, context) = (*caller, self.context(caller, Door::Name));
        self.engine.submit(context, command, move |result| match result {
            Ok(node) => {
                let entry = me.entry(&caller, &node);
                me.log_cut(&caller, &node, reply.map(move |()| entry));
            }
            Err(refusal) => reply.send(Err(refusal.rule.errno(Door::Name))),
        });
    }

    /// A change of size goes to the handle of a governed file, or is a save of its own.
    pub(in crate::tree) fn size(
        &self,
        caller: &Caller,
        ino: Ino,
        (handle, open): (Option<Handle>, Option<&Open>),
        size: u64,
    ) -> Answer<Sized> {
        match (handle, open) {
            (Some(handle), Some(Open::Staged(staged))) => {
                return self.stage_size(caller, (ino, handle), staged, size);
            }
            (_, Some(Open::Plain { wrote, .. })) => wrote.note(),
            (_, Some(_)) => {}
            (handle, None) => {
                if handle.is_none() {
                    self.refuse_other_file(caller, ino)?;
                }
                self.refuse_cut(caller, ino)?;
            }
        }
        let Some((class, sight, mut text)) = self.text_to_cut(caller, ino)? else {
            return Ok(Sized::Plain);
        };
        if size == 0 && class == Class::Draft {
            return Ok(Sized::EmptiesDraft);
        }
        let limit = crate::limits::RECORD_BYTES_MAX;
        let size = usize::try_from(size).ok().filter(|size| *size <= limit);
        text.resize(size.ok_or(Rule::TooLarge.errno(Door::Handle))?, 0);
        Ok(Sized::Cut(sight, text))
    }

    /// By a path: the name may have left the file, or the file may be run.
    fn refuse_other_file(&self, caller: &Caller, ino: Ino) -> Answer<()> {
        if self.is_to_look_again(caller, ino) {
            return Err(Rule::Gone.errno(Door::Handle));
        }
        self.overtaken.end(caller);
        if self.handles.is_running_beside(caller.mount, ino) {
            return Err(Rule::Running.errno(Door::Name));
        }
        Ok(())
    }

    fn stage_size(
        &self,
        caller: &Caller,
        (ino, handle): (Ino, Handle),
        staged: &Mutex<Staged>,
        size: u64,
    ) -> Answer<Sized> {
        let mut staged = staged.lock();
        let was = staged.unsaved.is_any();
        let resized = staged.resize(size);
        let ended = self.note_dirty(ino, &staged, was);
        self.handles.note_text(caller, (ino, handle), &staged);
        let is_draft = staged.is_draft();
        drop(staged);
        self.end_writing(ino, ended);
        match resized {
            Ok(()) if size == 0 && is_draft => Ok(Sized::EmptiesDraft),
            Ok(()) => Ok(Sized::Staged),
            Err(refusal) => Err(refusal.rule.errno(Door::Handle)),
        }
    }

    /// The text of a governed file that is cut without a handle, and what its cutter has seen.
    fn text_to_cut(&self, caller: &Caller, ino: Ino) -> Answer<Option<(Class, Sight, Vec<u8>)>> {
        let (ticket, cut) = (self.hub.scopes.ticket(), OpenFlags::default());
        self.read(|read| {
            let Some(node) = read.node(ino)? else { return Ok(None) };
            let found = match node.class {
                Class::Plain => match self.open_checked(ticket, read, (caller, &node), cut)? {
                    Some(Open::Staged(staged)) => {
                        Some((Sight::Known(Base::Unseen), staged.lock().text().to_vec()))
                    }
                    _ => None,
                },
                Class::Draft => read.draft(ino)?.map(|draft| (self.sight(caller), draft.content)),
                Class::Record => {
                    let Some(record) = read.record_at(ino)? else { return Ok(None) };
                    let version = read.version(record.version_g)?;
                    // Who never opened it cuts what is there now, and nothing newer.
                    let base = match self.seen.base(record.key, caller.pid) {
                        Base::Unseen => Base::Seen(record.version),
                        seen => seen,
                    };
                    version.map(|version| (Sight::Known(base), version.content))
                }
            };
            Ok(found.map(|(sight, text)| (node.class, sight, text)))
        })
    }

    /// `truncate(2)` of a record by its name: a save of what is left.
    pub(in crate::tree) fn save_cut(
        &self,
        caller: &Caller,
        ino: Ino,
        sight: Sight,
        text: Vec<u8>,
        reply: Reply<Entry>,
    ) {
        let Some(me) = self.me() else { return reply.send(Err(Errno::EIO)) };
        let command = Save::of(ino, sight, Text::new(text));
        let (caller, context) = (*caller, self.context(caller, Door::Handle));
        self.engine.submit(context, command, move |result| {
            use workfs_mount::Tree as _;
            reply.send(match result {
                Ok(Saved::Kept(made)) => {
                    if let Some(made) = made {
                        me.note_made(&caller, made);
                    }
                    me.getattr(&caller, ino, None)
                }
                Ok(Saved::Refused(refusal)) | Err(refusal) => Err(refusal.rule.errno(Door::Handle)),
            });
        });
    }

    /// A draft is emptied at once: nobody relies on what it says.
    pub(in crate::tree) fn empty_draft(&self, caller: &Caller, ino: Ino, reply: Reply<Entry>) {
        let Some(me) = self.me() else { return reply.send(Err(Errno::EIO)) };
        let (caller, context) = (*caller, self.context(caller, Door::Handle));
        self.engine.submit(context, EmptyDraft { ino }, move |result| {
            reply.send(match result {
                Ok(node) => {
                    me.hub.note_file(caller.mount, Touch::Content(ino));
                    Ok(me.entry(&caller, &node))
                }
                Err(refusal) => Err(refusal.rule.errno(Door::Handle)),
            });
        });
    }
}

/// What becomes of a change of size.
pub(in crate::tree) enum Sized {
    /// It is staged in the handle.
    Staged,
    /// It is a save of this text.
    Cut(Sight, Vec<u8>),
    /// A draft is emptied.
    EmptiesDraft,
    /// The file is plain: the engine does it.
    Plain,
}
