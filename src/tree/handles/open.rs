//! Opening and creating.

use std::sync::Arc;

use parking_lot::Mutex;
use workfs_mount::{Caching, Caller, Entry, Errno, Handle, OpenFlags, Opened, Reply};

use crate::engine::{
    About, Base, Create, EmptyDraft, Fence, Home, NewContent, OnDraft, Refuse, ScopeTicket,
    SetAttributes, Slot, forbids_writing, runs_the_store, slot,
};
use crate::names::{Dentry, FileName};
use crate::numbers::Ino;
use crate::refusal::{Door, Refusal, Rule};
use crate::store::{Class, Node, Read, Record, Standing, StoreError, VersionRow};
use crate::tree::computed::{self, Computed, Viewer};
use crate::tree::kernels::taken::Try;
use crate::tree::ready::waits::Waited;
use crate::tree::saves::judging::to_judge;
use crate::tree::saves::plain_save::{Wrote, dir_that_counts};
use crate::tree::saves::staged::Staged;
use crate::tree::saves::what::{Known, RecordLike, What};
use crate::tree::{Answer, WorkTree};

use super::pins::Text;
use super::{Held, Open};

/// What there is to open.
pub(in crate::tree) enum Looked {
    Open(Open),
    /// It is not the caller's to write.
    Refused(Refusal, About),
}

impl WorkTree {
    pub(in crate::tree) fn open_file(
        &self,
        caller: &Caller,
        ino: Ino,
        flags: OpenFlags,
        reply: Reply<Opened>,
    ) {
        if let Some(computed) = Computed::of(ino) {
            return reply.send(self.open_computed(caller, computed, flags));
        }
        if self.is_to_look_again(caller, ino) {
            return reply.send(Err(Rule::Gone.errno(Door::Handle)));
        }
        let held = self.handles.hold(ino);
        let ticket = self.hub.scopes.ticket();
        match self.glance(|read| self.look(ticket, read, caller, ino, flags)) {
            Err(errno) => reply.send(Err(errno)),
            Ok(None) if self.ghosts.is_one(ino) => {
                reply.send(Err(Rule::Absent.errno(Door::Name)));
            }
            Ok(None) => self.open_overtaken(caller, held, flags, reply),
            Ok(Some(looked)) if self.is_news(caller, &looked, flags) => {
                reply.send(Err(Rule::Gone.errno(Door::Handle)));
            }
            Ok(Some(looked)) => {
                let again = self.overtaken.end(caller);
                let seen = again.as_ref().and_then(|again| self.as_seen(caller, again, ino, flags));
                let looked = seen.unwrap_or(looked);
                match self.to_set_apart(&looked, ino, flags, again.is_some()) {
                    Some(record) => self.set_apart(caller, (held, record), flags, reply),
                    None => self.give(caller, held, looked, flags, reply),
                }
            }
        }
    }

    /// Answers with what was found.
    pub(super) fn give(
        &self,
        caller: &Caller,
        held: Held,
        looked: Looked,
        flags: OpenFlags,
        reply: Reply<Opened>,
    ) {
        match looked {
            Looked::Refused(refusal, about) => self.refuse_open(caller, refusal, about, reply),
            Looked::Open(Open::Plain { .. }) if self.breaks_running(caller, held.ino(), flags) => {
                reply.send(Err(Rule::Running.errno(Door::Name)));
            }
            Looked::Open(open @ Open::Plain { .. }) if flags.truncate => {
                let cut = SetAttributes { size: Some(0), ..SetAttributes::none(held.ino()) };
                self.open_after(caller, (held, open), cut, reply);
            }
            Looked::Open(Open::Staged(staged)) if staged.lock().is_emptied_draft() => {
                let empty = EmptyDraft { ino: held.ino() };
                self.open_after(caller, (held, Open::Staged(staged)), empty, reply);
            }
            Looked::Open(open) => reply.send(self.opened(caller, held, open)),
        }
    }

    /// A file that is run cannot be opened for writing. Each kernel sees to that in its own mount (and knows who has
    /// ended before we hear of it), but O_TRUNC without writing it checks when we have cut already.
    fn breaks_running(&self, caller: &Caller, ino: Ino, flags: OpenFlags) -> bool {
        match flags.write {
            true => self.handles.is_running_beside(caller.mount, ino),
            false => flags.truncate && self.handles.is_running(ino),
        }
    }

    /// Refuses to open for writing what the caller may not write, so that it hears of it before
    /// it has written anything. The writer asks again, in the transaction.
    fn refuse_open(&self, caller: &Caller, refusal: Refusal, about: About, reply: Reply<Opened>) {
        let refuse = Refuse { operation: "open", about, refusal };
        self.refuse_and_answer(caller, refuse, reply);
    }

    pub(in crate::tree) fn opened(
        &self,
        caller: &Caller,
        held: Held,
        open: Open,
    ) -> Answer<Opened> {
        let (ino, kept) = (held.ino(), self.kept(held.ino(), &open));
        let handle = self.handle_of(caller, held, open)?;
        Ok(Opened { handle, caching: self.caching(caller, ino, kept) })
    }

    /// A handle of what is opened, if there is one left.
    pub(in crate::tree) fn handle_of(
        &self,
        caller: &Caller,
        held: Held,
        mut open: Open,
    ) -> Answer<Handle> {
        let ino = held.ino();
        let counted = open.count(&self.pins, caller.uid);
        let handle = counted.and_then(|()| self.handles.insert(caller, held, open));
        handle.map_err(|refusal| match refusal.rule {
            // Nobody hears of it any more.
            Rule::Gone => refusal.rule.errno(Door::Handle),
            _ => self.refuse_too_many(caller, about(ino), refusal),
        })
    }

    /// What the kernel of who has opened it may keep of it, where it would be `kept`. It is asked when the handle is
    /// there, since by an open that fails no pages go.
    pub(in crate::tree) fn caching(&self, caller: &Caller, ino: Ino, kept: Caching) -> Caching {
        match kept {
            Caching::KeepCache | Caching::KeepCacheUnflushed
                if self.hub.takes_old_pages(caller.mount, ino) =>
            {
                Caching::Cached
            }
            kept => kept,
        }
    }

    /// What any kernel may keep of it whose pages are those of now.
    pub(in crate::tree) fn kept(&self, ino: Ino, open: &Open) -> Caching {
        match open {
            // Of what goes through its pages a kernel makes one write for each page that it does not
            // have, and between two of them another mount's may come to lie.
            Open::Plain { append: true, .. } => Caching::Direct,
            // Who only reads has nothing to flush. Of a file that is used to be locked each close is to be heard:
            // it ends locks.
            Open::Plain { reads: true, .. } if !self.hub.locks.was_held(ino) => {
                Caching::KeepCacheUnflushed
            }
            Open::Plain { .. } => Caching::KeepCache,
            _ => Caching::Direct,
        }
    }

    /// What opening `ino` gives; `None` if it is gone.
    pub(super) fn look(
        &self,
        ticket: ScopeTicket,
        read: &dyn Read,
        caller: &Caller,
        ino: Ino,
        flags: OpenFlags,
    ) -> Result<Option<Looked>, StoreError> {
        // A name that a kernel cached may stand for another file by now: it is to look again.
        let is_there = |node: &Node| node.nlink > 0;
        let Some(node) = read.node(ino)?.filter(is_there) else { return Ok(None) };
        let config = self.engine.config();
        let mut lapsed = None;
        let mut staged = match node.class {
            Class::Plain => {
                let dir = dir_that_counts(read, &node)?;
                let looked = self.look_at_plain(caller, (dir, ino), flags);
                if let Looked::Open(_) = &looked
                    && let Some(open) = self.open_checked(ticket, read, (caller, &node), flags)?
                {
                    let hidden = self.is_hidden(&node.kind(), caller);
                    return Ok((!hidden).then_some(Looked::Open(open)));
                }
                return Ok(Some(looked));
            }
            Class::Draft => {
                if self.is_hidden(&node.kind(), caller) {
                    return Ok(None);
                }
                let Some(draft) = read.draft(ino)? else { return Ok(None) };
                let home = if flags.changes() {
                    home(slot(read, &config, draft.dir, &draft.name)?)
                } else {
                    None
                };
                Staged::new(What::draft(home), Text::of(draft.content))
            }
            Class::Record => {
                let Some(record) = read.record_at(ino)? else { return Ok(None) };
                let Some(version) = read.version(record.version_g)? else { return Ok(None) };
                let home = match &record.standing {
                    Standing::Live { dir, name, .. } if flags.write => {
                        home(slot(read, &config, *dir, name)?)
                    }
                    _ => None,
                };
                let staged = self.staged(caller, &record, version, (home, flags));
                lapsed = Some(record).filter(Record::is_lapsed);
                staged
            }
        };
        if let Some(home) = staged.what.home().filter(|_| flags.changes())
            && let Some(refusal) = self.forbidden(read, caller, ino, (home, lapsed.as_ref()))?
        {
            let about = About::Name(Dentry::of(home.dir, home.name.clone()));
            return Ok(Some(Looked::Refused(refusal, about)));
        }
        if let What::RecordLike(file @ RecordLike { record: None, .. }) = &mut staged.what {
            file.home = to_judge(read, file.home.take())?;
        }
        staged.opened(flags);
        Ok(Some(Looked::Open(Open::Staged(Box::new(Mutex::new(staged))))))
    }

    /// Why the caller may not write a record or draft that lies at `home`, if it may not; of a record whose lease ran
    /// out, that.
    fn forbidden(
        &self,
        read: &dyn Read,
        caller: &Caller,
        ino: Ino,
        (home, lapsed): (&Home, Option<&Record>),
    ) -> Result<Option<Refusal>, StoreError> {
        let (config, writer) = (self.engine.config(), self.context(caller, Door::Name));
        let may = writer.may_change();
        let may = may.and_then(|()| writer.may_write(home.kind(), home.state, home.owner.as_ref()));
        let may = may.and_then(|()| match lapsed {
            Some(record) => writer.revives(record, home).map(drop),
            None => Ok(()),
        });
        match may {
            Ok(()) => forbids_writing(read, &config, &writer, ino),
            Err(refusal) => Ok(Some(refusal)),
        }
    }

    /// A plain file for which the rules of `dir` count, where nothing more is known of it.
    pub(in crate::tree) fn look_at_plain(
        &self,
        caller: &Caller,
        (dir, ino): (Ino, Ino),
        flags: OpenFlags,
    ) -> Looked {
        if flags.changes() {
            let writer = self.context(caller, Door::Name);
            if let Err(refusal) = writer.may_change() {
                return Looked::Refused(refusal, About::Node(ino));
            }
        }
        Looked::Open(plain(flags, Wrote::new(dir, caller, flags.truncate)))
    }

    /// A version of a record that a program opens, with what it has seen of it. Who may write has seen
    /// this version only when it reads: it may have read another one before, and cut this one now.
    fn staged(
        &self,
        caller: &Caller,
        record: &Record,
        version: VersionRow,
        (home, flags): (Option<Home>, OpenFlags),
    ) -> Staged {
        let (key, thread, this) = (record.key, caller.pid, Base::Seen(record.version));
        let may_cut = flags.write && !flags.append;
        let base = if flags.truncate {
            self.seen.base(key, thread)
        } else if may_cut {
            // What it leaves of this version is then part of what it saves.
            Some(self.seen.base(key, thread)).filter(|base| *base != Base::Unseen).unwrap_or(this)
        } else {
            self.seen.note(key, thread, record.version);
            this
        };
        let text = Text::of_version(record.version_g, version.content);
        let unread = (may_cut && !flags.truncate).then_some((thread, record.version));
        let known = Known { key, base, unread, fence: Fence::of(record) };
        let mut staged = Staged::new(What::record(home, known), text);
        staged.was_there = true;
        staged
    }

    /// A version of a record that a program reads.
    pub(super) fn pinned(&self, caller: &Caller, record: &Record, version: VersionRow) -> Open {
        let staged = self.staged(caller, record, version, (None, OpenFlags::default()));
        Open::Staged(Box::new(Mutex::new(staged)))
    }

    fn open_computed(
        &self,
        caller: &Caller,
        computed: Computed,
        flags: OpenFlags,
    ) -> Answer<Opened> {
        if let Computed::Hold(key) = computed {
            return self.open_hold(caller, key);
        }
        if flags.changes() {
            return Err(Rule::ReadOnly.errno(Door::Name));
        }
        let open = match computed {
            // Asked here, too: `uid=` and `umask=` show the kernel another owner.
            Computed::Rejected(key) => {
                let kept = self.read(|read| read.rejected(key))?;
                let kept = kept.ok_or(Rule::Gone.errno(Door::Handle))?;
                if caller.uid != kept.uid && !runs_the_store(caller.uid) {
                    return Err(Rule::Forbidden.errno(Door::Name));
                }
                Open::Fixed(Text::of(kept.content))
            }
            Computed::Events => Open::Events,
            Computed::Metrics => {
                let text = self.read(|read| self.engine.metrics(read))?;
                Open::Fixed(Text::of(text.into_bytes()))
            }
            Computed::Wait(dir) => {
                let workspace = self.read(|read| self.workspace_of(read, dir))?;
                let workspace = workspace.ok_or(Rule::Gone.errno(Door::Handle))?.workspace;
                Open::Wait(Box::new(Waited::of(workspace, caller)))
            }
            file => {
                let viewer = Viewer { refuses: self.engine.refuses(), ..self.viewer(caller) };
                let text = self.read(|read| computed::render(read, &viewer, file))?;
                Open::Fixed(Text::of(text))
            }
        };
        self.opened(caller, self.handles.hold(computed.ino()), open)
    }

    pub(in crate::tree) fn create_file(
        &self,
        caller: &Caller,
        Dentry { dir: parent, name }: Dentry,
        mode: u32,
        flags: OpenFlags,
        nth: Try,
        reply: Reply<(Entry, Opened)>,
    ) {
        if Computed::of(parent).is_some() {
            return reply.send(Err(Rule::ReadOnly.errno(Door::Name)));
        }
        let Some(me) = self.me() else { return reply.send(Err(Errno::EIO)) };
        // What cannot be opened is not made: a lock file would be nobody's.
        if let Err(refusal) = self.handles.require_room(caller) {
            let about = About::Name(Dentry::of(parent, name));
            return reply.send(Err(self.refuse_too_many(caller, about, refusal)));
        }
        self.ghosts.remove(caller, parent, &name);
        let (tree, maker) = (self.me.clone(), *caller);
        let hidden = Arc::new(Mutex::new(None));
        let made = Arc::clone(&hidden);
        let hide = OnDraft(Arc::new(move |ino| {
            if let Some(tree) = tree.upgrade() {
                tree.unborn.begin(&maker, ino);
                *made.lock() = Some(ino);
            }
        }));
        let (content, on_draft) = (NewContent::File, Some(hide));
        let command = Create { parent, name: name.clone(), mode, content, on_draft };
        let shared = !flags.exclusive;
        let (caller, context) = (*caller, self.context(caller, Door::Name));
        self.engine.submit(context, command, move |result| {
            // Somebody else was faster: without O_EXCL that file is the one to open.
            if shared && matches!(&result, Err(refusal) if refusal.rule == Rule::Taken) {
                return me.open_taken(&caller, Dentry::of(parent, name), (mode, flags), nth, reply);
            }
            reply.send(match result {
                Ok(node) => {
                    let opened = me.created(&caller, parent, &name, &node, flags);
                    if opened.is_err() {
                        // Nobody has it open who could end that it is hidden.
                        me.born(node.ino);
                    }
                    opened
                }
                Err(refusal) => {
                    // What was made was undone.
                    if let Some(ino) = hidden.lock().take() {
                        me.unborn.end(ino);
                    }
                    Err(refusal.rule.errno(Door::Name))
                }
            });
        });
    }

    fn created(
        &self,
        caller: &Caller,
        parent: Ino,
        name: &FileName,
        node: &Node,
        flags: OpenFlags,
    ) -> Answer<(Entry, Opened)> {
        let open = if node.class == Class::Draft {
            let config = self.engine.config();
            let home =
                self.read(|read| to_judge(read, home(slot(read, &config, parent, name)?)))?;
            let mut staged = Staged::new(What::draft(home), Text::of([]));
            staged.opened(OpenFlags { truncate: true, ..flags });
            Open::Staged(Box::new(Mutex::new(staged)))
        } else {
            let checked = self.created_checked(parent, name, flags);
            checked.unwrap_or_else(|| plain(flags, Wrote::new(parent, caller, true)))
        };
        let entry = self.made_entry(caller, node, &open);
        let opened = self.opened(caller, self.handles.hold(node.ino), open)?;
        Ok((entry, opened))
    }
}

pub(super) fn plain(flags: OpenFlags, wrote: Wrote) -> Open {
    let (reads, maps) = (!flags.write, flags.read && flags.write);
    Open::Plain { append: flags.append, runs: flags.execute, reads, maps, wrote }
}

/// What `why` tells of a computed file has no path.
fn about(ino: Ino) -> About {
    if Computed::of(ino).is_some() { About::Nothing } else { About::Node(ino) }
}

fn home(slot: Slot) -> Option<Home> {
    match slot {
        Slot::Record(home) => Some(*home),
        Slot::Plain => None,
    }
}
