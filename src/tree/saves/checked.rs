//! Checked files as the kernel opens them: like records, staged until they are judged.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use workfs_mount::{Caller, Entry, Errno, OpenFlags, Reply};

use crate::config::Check;
use crate::engine::{RefuseChecked, SaveChecked, ScopeTicket, Written, read_plain};
use crate::limits::{CACHE_TTL, RECORD_BYTES_MAX};
use crate::names::{Dentry, FileName};
use crate::numbers::Ino;
use crate::refusal::{Door, Refusal, Rule};
use crate::store::{Class, Node, NodeKind, NodeType, Read, StoreError};
use crate::tree::WorkTree;
use crate::tree::handles::Open;
use crate::tree::handles::open::Looked;
use crate::tree::handles::pins::Text;

use super::busy::Writer;
use super::judging::Call;
use super::staged::Staged;
use super::unborn::Sees;
use super::what::{Asked, Checked, Emptied, What};

impl WorkTree {
    /// Whether `caller` must not see a file yet: a new one that was not judged is its makers' alone.
    pub(in crate::tree) fn is_hidden(&self, node: &NodeKind, caller: &Caller) -> bool {
        self.seen_for(node, caller).is_none()
    }

    /// How long a node's name is true where `caller` looks it up or lists it; `None`: it is hidden. A
    /// name that may not be everyone's is asked for each time.
    pub(in crate::tree) fn seen_for(&self, node: &NodeKind, caller: &Caller) -> Option<Duration> {
        let may = match node.class {
            Class::Draft => true,
            Class::Plain => self.engine.config().files().has_checks(),
            Class::Record => false,
        };
        let sees = if may { self.unborn.sees(node.ino, caller) } else { Sees::All };
        match (sees, node.class) {
            (Sees::Others, _) => None,
            (Sees::Makers, _) | (Sees::All, Class::Draft) => Some(Duration::ZERO),
            (Sees::All, Class::Plain | Class::Record) => Some(CACHE_TTL),
        }
    }

    /// What the content of the file `name` in `dir` must be.
    fn check_of(
        &self,
        ticket: ScopeTicket,
        read: &dyn Read,
        dir: Ino,
        name: &FileName,
    ) -> Result<Option<Check>, StoreError> {
        let config = self.engine.config();
        if !config.files().has_checks() {
            return Ok(None);
        }
        let scope = self.hub.scopes.of(ticket, read, &config, dir)?;
        Ok(scope.and_then(|scope| config.files().check(&scope, name).cloned()))
    }

    /// What the content of a file must be by one of its names.
    fn check_of_any(
        &self,
        ticket: ScopeTicket,
        read: &dyn Read,
        node: &Node,
    ) -> Result<Option<Check>, StoreError> {
        let mut names = if node.nlink > 1 { read.further_names(node.ino)? } else { Vec::new() };
        let rules = self.engine.config();
        if self.hub.scopes.of(ticket, read, &rules, node.parent)?.is_some() {
            let noted = read.file_name(node.ino)?.filter(|noted| !names.contains(noted));
            let first = match noted {
                Some(noted) => Some(noted),
                None => {
                    read.name_in(node.parent, node.ino)?.map(|name| Dentry::of(node.parent, name))
                }
            };
            names.extend(first);
        }
        for Dentry { dir, name } in names {
            if let Some(check) = self.check_of(ticket, read, dir, &name)? {
                return Ok(Some(check));
            }
        }
        Ok(None)
    }

    /// Whether it is a file that some check could be for. What is larger came here unchecked, and is read
    /// as it is.
    fn may_be_checked(&self, node: &Node, is_emptied: bool) -> bool {
        let is_short = is_emptied || node.size <= RECORD_BYTES_MAX as u64;
        is_short && node.node_type == NodeType::File && self.engine.config().files().has_checks()
    }

    /// Opens a plain file that is checked; `None` if it is not.
    pub(in crate::tree) fn open_checked(
        &self,
        ticket: ScopeTicket,
        read: &dyn Read,
        (caller, node): (&Caller, &Node),
        flags: OpenFlags,
    ) -> Result<Option<Open>, StoreError> {
        if !self.may_be_checked(node, flags.truncate) {
            return Ok(None);
        }
        let Some(check) = self.check_of_any(ticket, read, node)? else { return Ok(None) };
        let pinned =
            if flags.truncate { Vec::new() } else { read_plain(read, node, 0, RECORD_BYTES_MAX)? };
        let is_emptied = flags.truncate && node.size > 0;
        let emptied = is_emptied.then_some(Emptied { by: *caller, mtime: node.mtime });
        let may_lose_name = self.unborn.has(node.ino);
        let file = Checked { may_lose_name, emptied, ..Checked::new(Asked::By(check)) };
        let mut staged = Staged::new(What::Checked(file), Text::of(pinned));
        staged.was_there = !may_lose_name;
        staged.opened(flags);
        Ok(Some(Open::Staged(Box::new(Mutex::new(staged)))))
    }

    /// What a checked file says; one without a name is taken for checked where any file is that lies where
    /// it lay.
    pub(in crate::tree) fn text_of_checked(
        &self,
        ticket: ScopeTicket,
        read: &dyn Read,
        node: &Node,
    ) -> Result<Option<Text>, StoreError> {
        if !self.may_be_checked(node, false) {
            return Ok(None);
        }
        let config = self.engine.config();
        let is_checked = if node.nlink > 0 {
            self.check_of_any(ticket, read, node)?.is_some()
        } else {
            let scope = self.hub.scopes.of(ticket, read, &config, node.parent)?;
            scope.is_some_and(|scope| scope.has_checks())
        };
        if !is_checked {
            return Ok(None);
        }
        Ok(Some(Text::of(read_plain(read, node, 0, RECORD_BYTES_MAX)?)))
    }

    /// Opens what a checked file was when it lost its name: whatever others write to it meanwhile, nobody
    /// reads it half written or emptied.
    pub(in crate::tree) fn open_nameless(
        &self,
        caller: &Caller,
        (node, text): (&Node, Text),
        flags: OpenFlags,
    ) -> Looked {
        let looked = self.look_at_plain(caller, (node.parent, node.ino), flags);
        if let Looked::Refused(..) = looked {
            return looked;
        }
        let mut staged = Staged::new(What::Checked(Checked::new(Asked::Nothing)), text);
        staged.opened(flags);
        Looked::Open(Open::Staged(Box::new(Mutex::new(staged))))
    }

    /// The handle of a new file that is checked; `None` if it is not.
    pub(in crate::tree) fn created_checked(
        &self,
        parent: Ino,
        name: &FileName,
        flags: OpenFlags,
    ) -> Option<Open> {
        if !self.engine.config().files().has_checks() {
            return None;
        }
        let ticket = self.hub.scopes.ticket();
        let check = self.read(|read| self.check_of(ticket, read, parent, name)).ok()??;
        let file = Checked { is_new: true, ..Checked::new(Asked::By(check)) };
        let mut staged = Staged::new(What::Checked(file), Text::of([]));
        // It is empty as it is, and others may append to it before this handle does.
        staged.opened(OpenFlags { truncate: false, ..flags });
        Some(Open::Staged(Box::new(Mutex::new(staged))))
    }

    /// The entry of a file that was just made; one that is hidden is asked for each time.
    pub(in crate::tree) fn made_entry(&self, caller: &Caller, node: &Node, open: &Open) -> Entry {
        let mut entry = self.entry(caller, node);
        if matches!(open, Open::Staged(_)) {
            entry.ttl = Duration::ZERO;
        }
        entry
    }

    /// Answers a write that no further byte can mend.
    pub(super) fn refuse_checked(
        &self,
        caller: &Caller,
        ino: Ino,
        (bytes, is_new): (Arc<[u8]>, bool),
        refusal: Refusal,
        reply: Reply<u32>,
    ) {
        let errno = refusal.rule.errno(Door::Handle);
        let command = RefuseChecked { ino, bytes, is_new, refusal };
        self.engine.submit(self.context(caller, Door::Handle), command, move |_| {
            reply.send(Err(errno));
        });
    }

    /// Whether a write that was refused would be taken by now: the file was unlinked, or what this
    /// handle appends comes after what others have saved since it was opened.
    pub(super) fn is_forgiven(&self, ino: Ino, staged: &mut Staged, refusal: &Refusal) -> bool {
        // Of what is too large, or too much, nothing was written.
        let is_nothing = matches!(refusal.rule, Rule::TooLarge | Rule::TooManyHandles);
        if !staged.is_checked() || is_nothing {
            return false;
        }
        let now = self.read(|read| match read.node(ino)? {
            Some(node) if node.nlink == 0 => Ok(None),
            Some(node) => read_plain(read, &node, 0, RECORD_BYTES_MAX + 1).map(Some),
            None => Ok(None),
        });
        match (now, &mut staged.what) {
            (Ok(Some(content)), _) => staged.rebase(content),
            (Ok(None), What::Checked(file)) if !file.may_lose_name => {
                // It was unlinked: whatever is written to it is taken.
                file.asked = Asked::Nothing;
                true
            }
            _ => false,
        }
    }

    /// `close` and `fsync` of a checked file that was written.
    pub(super) fn checked_save(&self, ino: Ino, staged: &mut Staged) -> SaveChecked {
        let written = staged.take_checked();
        let file = staged.what.checked();
        SaveChecked {
            ino,
            written,
            // Another may have saved it meanwhile.
            is_new: file.is_some_and(|file| file.is_new) && self.unborn.has(ino),
            keeps_time: self.timed.lock().remove(&ino),
            may_lack_name: !file.is_some_and(|file| file.may_lose_name),
            only_at: None,
        }
    }

    /// Saves what the caller's process has written to a checked file and not closed: it renames that, which counts
    /// as a save. What others write is not waited for here.
    pub(in crate::tree) fn save_own_checked(&self, caller: &Caller, ino: Ino, then: Reply<()>) {
        let process_of = |thread| self.seen.lineages.process_of(thread);
        let process = process_of(caller.pid);
        let is_own_unsaved = |opener: u32, open: &Open| {
            let Open::Staged(staged) = open else { return false };
            let staged = staged.lock();
            let is_unsaved = staged.is_checked() && staged.unsaved.is_any();
            is_unsaved && process.is_some() && process_of(opener) == process
        };
        let open = self.handles.of_file(caller.mount, ino);
        let own = open.into_iter().find(|(_, opener, open)| is_own_unsaved(*opener, open));
        let (Some((handle, _, open)), Some(me)) = (own, self.me()) else {
            return then.send(Ok(()));
        };
        let by = *caller;
        let next = move |saved: Result<(), Errno>| match saved {
            Ok(()) => me.save_own_checked(&by, ino, then),
            Err(errno) => {
                let refused = match &*open {
                    Open::Staged(staged) => staged.lock().failed.clone(),
                    _ => None,
                };
                let errno = refused.map_or(errno, |refusal| refusal.rule.errno(Door::Rename));
                then.send(Err(errno));
            }
        };
        self.judge(caller, ino, handle, Call::Fsync, Reply::new(next));
    }

    /// The last descriptor of a checked file is gone that emptied it and wrote nothing. Whether it may
    /// be empty nobody hears but `why`.
    pub(in crate::tree) fn save_emptied(&self, ino: Ino, open: Arc<Open>, emptied: Emptied) {
        let keeps_time = self.timed.lock().remove(&ino);
        let (written, only_at) = (Written::Whole(Arc::from([])), Some(emptied.mtime));
        let command =
            SaveChecked { ino, written, is_new: false, keeps_time, may_lack_name: true, only_at };
        self.busy.begin(ino, Writer { record: None, under: None, saw: None });
        self.save(&emptied.by, (ino, open), command, Reply::new(|_| {}));
    }
}
