//! `ready/` of a workspace: the records that can be claimed now, best first, under the names and
//! with the inodes that they have in their state directory; and, not listed, `.next`, `.wait` (`waits`) and
//! `.gitignore`.
//!
//! What must stay true: nothing is made or removed here but by moving it away, which is a claim;
//! a name is asked for each time, since it goes without a word when the record is claimed.
//! Deliberately not here: what is ready (the engine's `claims/ready`).

pub(super) mod links;
pub(super) mod nexts;
pub(super) mod waits;
mod wakes;

use std::sync::Arc;
use std::time::Duration;

use workfs_mount::{Caller, DirEntry, Entry, Errno, Reply, Shows};

use crate::engine::{
    self, About, NEXT, Refuse, RenameMode, Take, Wanted, best_claimable, best_ready, governed,
    next_into, ready_named, shown_as_ready,
};
use crate::kind::Place;
use crate::limits::LISTING_PAGE;
use crate::names::{Dentry, FileName};
use crate::numbers::{Ino, WorkspaceKey};
use crate::refusal::{Door, Refusal, Rule};
use crate::store::{Node, OrderKey, Read, Record, Standing, StoreError};
use crate::tree::callers::caller::allows;
use crate::tree::computed::Computed;
use crate::tree::nodes::attr::attr;
use crate::tree::nodes::cursor::{Cursor, FIRST_COOKIE};
use crate::tree::{Answer, WorkTree};

/// Reading it waits until something is ready.
const WAIT: &[u8] = b".wait";

/// Tells git that nothing here is to be added, and nothing to be written by a checkout.
const GIT_IGNORE: &[u8] = b".gitignore";

/// To search a directory, and to list it.
const SEARCH: u32 = 0o1;
const LIST: u32 = 0o4;

/// What is asked of who comes by a `ready/`.
struct Asks {
    shows: Shows,
    /// Where the kernel has asked it.
    asked: Ino,
    /// The workspace's directory.
    root: Ino,
}

impl WorkTree {
    /// The workspace whose directory is `dir`.
    pub(super) fn workspace_of(
        &self,
        read: &dyn Read,
        dir: Ino,
    ) -> Result<Option<engine::Governed>, StoreError> {
        let found = governed(read, &self.engine.config(), dir)?;
        Ok(found.filter(|found| found.place == Place::Root))
    }

    /// The name of the best ready record of the workspace with this directory.
    fn best_of(&self, read: &dyn Read, dir: Ino) -> Result<Option<FileName>, StoreError> {
        let Some(workspace) = self.workspace_of(read, dir)? else { return Ok(None) };
        let workspace = workspace.workspace;
        let best = best_ready(read, workspace, &|ino, record| self.busy.is_written(ino, record))?;
        Ok(best.and_then(name_of))
    }

    /// The name that `.wait` gives: of the best that can be claimed. Who was given one that nobody can claim
    /// would ask again at once, and be given it again.
    fn claimable_name(
        &self,
        read: &dyn Read,
        workspace: WorkspaceKey,
    ) -> Result<Option<FileName>, StoreError> {
        let config = self.engine.config();
        let written = |ino, record: Option<&Record>| self.busy.is_written(ino, record);
        let best = best_claimable(read, (workspace, &config), self.engine.now(), &written)?;
        Ok(best.and_then(name_of))
    }

    /// `.next` in a directory that has one: in `ready/` it leads to the best, in a lane to what came by it
    /// last.
    pub(super) fn find_next(&self, caller: &Caller, parent: Ino) -> Answer<Option<Entry>> {
        let (place, target) = match Computed::of(parent) {
            Some(Computed::Ready(dir)) => {
                let find = || self.read(|read| self.best_of(read, dir));
                // Who writes, and who ends to, makes no commit.
                let best =
                    if self.busy.is_idle() { self.hub.nexts.best(dir, find) } else { find() };
                (links::Place::Ready(dir), best?)
            }
            Some(_) => return Ok(None),
            None => (links::Place::Lane(parent), self.hub.nexts.last(parent)),
        };
        let Some(target) = target else { return Ok(None) };
        let link = Computed::Next(self.hub.links.number(caller.mount, place));
        Ok(Some(self.link_entry(link, &target)))
    }

    /// Removes the link of a lane to what came by `.next` last; it is the lane's, and so for whose that is.
    pub(super) fn forget_next(&self, caller: &Caller, lane: Ino) -> Answer<()> {
        if self.hub.nexts.last(lane).is_none() {
            return Err(Rule::Absent.errno(Door::Name));
        }
        let context = self.context(caller, Door::Name);
        let may = self.read(|read| {
            let found = governed(read, &self.engine.config(), lane)?;
            Ok(found.is_none_or(|found| match &found.place {
                Place::State { state, owner } => {
                    context.may_write(&found.binding.kind, *state, owner.as_ref()).is_ok()
                }
                _ => true,
            }))
        })?;
        if !may {
            return Err(Rule::Forbidden.errno(Door::Name));
        }
        self.hub.nexts.forget(lane);
        self.hub.links.removed(caller.mount, links::Place::Lane(lane));
        Ok(())
    }

    /// Finds a name in `ready/` of the workspace at `dir`; [`Self::find_next`] has `.next`.
    pub(super) fn lookup_ready(
        &self,
        read: &dyn Read,
        caller: &Caller,
        dir: Ino,
        name: &FileName,
    ) -> Result<Option<Entry>, StoreError> {
        let Some(workspace) = self.workspace_of(read, dir)? else { return Ok(None) };
        let computed = match name.as_bytes() {
            NEXT => return Ok(None),
            WAIT => Some(Computed::Wait(dir)),
            GIT_IGNORE => Some(Computed::Ignored(dir)),
            _ => {
                let why = name.tells_why_of();
                let found = ready_file(read, &workspace, why.as_ref().unwrap_or(name))?;
                let Some((record, node)) = found else { return Ok(None) };
                let asks = self.asks(read, caller, (&workspace, dir))?;
                if !is_open(read, caller, asks.as_ref(), (&record, SEARCH))? {
                    return Ok(None);
                }
                if why.is_none() {
                    let attr = self.shown(read, caller, &node)?;
                    return Ok(Some(Entry::new(attr, Duration::ZERO)));
                }
                Some(Computed::FileWhy(node.ino))
            }
        };
        let entry = |computed| self.computed_entry(read, &self.viewer(caller), computed);
        computed.map(entry).transpose()
    }

    /// What is asked of who comes by the `ready/` of the workspace at `root`, if anything is.
    fn asks(
        &self,
        read: &dyn Read,
        caller: &Caller,
        (workspace, root): (&engine::Governed, Ino),
    ) -> Result<Option<Asks>, StoreError> {
        let asks = self.hub.identity(caller.mount).and_then(|identity| identity.asks);
        let Some(shows) = asks.filter(|_| caller.uid != 0) else { return Ok(None) };
        let asked = shown_as_ready(read, workspace, root, self.engine.now())?;
        Ok(Some(Asks { shows, asked, root }))
    }

    /// The `ready/` that shows what lies in `dir`, if that is where records are claimed from.
    pub(super) fn ready_beside(&self, dir: Ino) -> Option<Ino> {
        let found = self.read(|read| {
            let Some(found) = governed(read, &self.engine.config(), dir)? else { return Ok(None) };
            let initial = found.binding.kind.initial();
            if !matches!(found.place, Place::State { state, .. } if state == initial) {
                return Ok(None);
            }
            Ok(read.workspace(found.workspace)?.and_then(|workspace| workspace.dir))
        });
        Some(Computed::Ready(found.ok()??).ino())
    }

    /// Where a computed link leads.
    pub(super) fn link_target(
        &self,
        read: &dyn Read,
        link: Computed,
    ) -> Result<Option<FileName>, StoreError> {
        match link {
            Computed::Next(link) => match self.hub.links.place(link) {
                Some(links::Place::Ready(dir)) => self.best_of(read, dir),
                Some(links::Place::Lane(lane)) => {
                    let Some(name) = self.hub.nexts.last(lane) else { return Ok(None) };
                    Ok(read.lookup(lane, &name)?.map(|_| name))
                }
                None => Ok(None),
            },
            Computed::AsOf(g) => Ok(FileName::new(g.to_string()).ok()),
            _ => Ok(None),
        }
    }

    /// Lists what is ready, page by page, best first.
    pub(super) fn list_ready(
        &self,
        caller: &Caller,
        dir: Ino,
        cursor: &mut Cursor<OrderKey>,
        cookie: u64,
        emit: &mut dyn FnMut(DirEntry) -> bool,
    ) -> Answer<()> {
        let found = self.read(|read| self.workspace_of(read, dir))?;
        let Some(workspace) = found else { return Ok(()) };
        let (mut at, mut after) = cursor.start(cookie);
        let mut skip = cookie.saturating_sub(at);
        loop {
            let page = self.read(|read| {
                let asks = self.asks(read, caller, (&workspace, dir))?;
                let is_open =
                    |record: &Record| is_open(read, caller, asks.as_ref(), (record, SEARCH | LIST));
                ready_page(read, workspace.workspace, after, &is_open)
            })?;
            let last_page = page.len() < LISTING_PAGE;
            for (key, found) in page {
                after = Some(key);
                let Some((name, node)) = found else { continue };
                at = if at < FIRST_COOKIE { FIRST_COOKIE } else { at + 1 };
                if skip > 0 {
                    skip -= 1;
                    continue;
                }
                let (name, ttl) = (name.as_bytes().to_vec(), Duration::ZERO);
                if !emit(DirEntry { name, attr: self.entry(caller, &node).attr, cookie: at, ttl }) {
                    return Ok(());
                }
                // Who goes back hears of what is ready now; each place keeps the name that had it first.
                if cursor.recent.last().is_none_or(|(last, _)| *last < at) {
                    cursor.recent.push((at, key));
                }
            }
            if last_page {
                return Ok(());
            }
        }
    }

    /// Moving something out of `ready/` claims it.
    pub(super) fn rename_ready(
        &self,
        caller: &Caller,
        Dentry { dir, name }: Dentry,
        Dentry { dir: to, name: new_name }: Dentry,
        mode: RenameMode,
        reply: Reply<()>,
    ) {
        if mode == RenameMode::Exchange {
            return reply.send(Err(Rule::Transition.errno(Door::Rename)));
        }
        let is_next = name.as_bytes() == NEXT;
        if is_next && new_name != name {
            let lane = self.read(|read| next_into(read, &self.engine.config(), to)).ok().flatten();
            let refusal = Refusal::new(
                Rule::Renamed,
                format!("`{new_name}` is no name for what comes next: a record keeps its own"),
                lane.map_or("name a lane".to_owned(), |(_, way)| format!("name the lane: {way}")),
            );
            let about = About::Name(Dentry::of(to, new_name));
            let command = Refuse { operation: "rename", about, refusal };
            return self.submit(caller, Door::Rename, command, reply, |()| ());
        }
        let Some(me) = self.me() else { return reply.send(Err(Errno::EIO)) };
        let caller = *caller;
        if is_next {
            let wanted = Wanted::Best(self.hub.is_written());
            // The link of that name that the lane has already is no obstacle.
            let mode = RenameMode::NoReplace;
            return me.take(&caller, Take { dir, wanted, to, mode }, reply);
        }
        let written = if self.busy.is_idle() {
            None
        } else {
            let found = self.read(|read| match self.workspace_of(read, dir)? {
                Some(workspace) => ready_file(read, &workspace, &name),
                None => Ok(None),
            });
            let written = |(record, node): (Record, Node)| {
                let of = (node.ino, Some(record.key));
                let is_written = self.busy.is_written(node.ino, Some(&record));
                match record.standing {
                    Standing::Live { dir, name, .. } if is_written => {
                        Some((of, Dentry { dir, name }))
                    }
                    _ => None,
                }
            };
            found.ok().flatten().and_then(written)
        };
        let take = Take { dir, wanted: Wanted::Named(name, new_name), to, mode };
        // It is told of as from where it lies: no name below `ready/` is anything's own.
        let Some((of, lies)) = written else { return me.take(&caller, take, reply) };
        self.busy.when_idle(
            of,
            Box::new(move |busy| {
                if busy {
                    return me.refuse_busy(&caller, lies, reply);
                }
                me.take(&caller, take, reply);
            }),
        );
    }

    fn take(self: Arc<Self>, caller: &Caller, take: Take, reply: Reply<()>) {
        let (dir, lane) = (take.dir, take.to);
        let best = matches!(take.wanted, Wanted::Best(_));
        let (caller, context) = (*caller, self.context(caller, Door::Rename));
        let engine = self.engine.clone();
        engine.submit(context, take, move |result| {
            reply.send(match result {
                Ok(taken) => {
                    if let Some(made) = taken.made {
                        self.note_made(&caller, made);
                    }
                    if best {
                        self.hub.nexts.note_last(lane, taken.name);
                        let [from, to] = [links::Place::Ready(dir), links::Place::Lane(lane)];
                        self.hub.links.moved(caller.mount, from, to);
                    }
                    Ok(())
                }
                Err(refusal) => Err(refusal.rule.errno(Door::Rename)),
            });
        });
    }
}

/// The name of a record's file.
fn name_of(record: Record) -> Option<FileName> {
    match record.standing {
        Standing::Live { name, .. } => Some(name),
        Standing::Parked { .. } | Standing::Gone => None,
    }
}

/// What is ready after a place in the order, and of what is open its name and its file.
type ReadyPage = Vec<(OrderKey, Option<(FileName, Node)>)>;

/// Whether a caller that its kernel let into `ready/` may come to what lies elsewhere than where that is asked:
/// there its bits are asked here, to search or to list.
fn is_open(
    read: &dyn Read,
    caller: &Caller,
    asks: Option<&Asks>,
    (record, bits): (&Record, u32),
) -> Result<bool, StoreError> {
    let (Some(Asks { shows, asked, root }), Standing::Live { dir, .. }) = (asks, &record.standing)
    else {
        return Ok(true);
    };
    let mut at = *dir;
    while at != *asked && at != *root {
        let bits = if at == *dir { bits } else { SEARCH };
        match read.node(at)? {
            // Of a damaged store: it lies in nothing.
            Some(node) if node.parent == at => return Ok(false),
            Some(node) if allows(&shows.shown(&attr(&node)), caller, bits) => at = node.parent,
            _ => return Ok(false),
        }
    }
    Ok(true)
}

fn ready_page(
    read: &dyn Read,
    workspace: WorkspaceKey,
    after: Option<OrderKey>,
    is_open: &dyn Fn(&Record) -> Result<bool, StoreError>,
) -> Result<ReadyPage, StoreError> {
    let mut records = Vec::new();
    read.ready(workspace, after, &mut |record| {
        records.push(record);
        records.len() < LISTING_PAGE
    })?;
    let mut page = Vec::new();
    for record in records {
        let node = match record.ino() {
            Some(ino) if is_open(&record)? => read.node(ino)?,
            _ => None,
        };
        page.push((record.order_key(), name_of(record).zip(node)));
    }
    Ok(page)
}

/// The ready record of this name, with its file.
fn ready_file(
    read: &dyn Read,
    workspace: &engine::Governed,
    name: &FileName,
) -> Result<Option<(Record, Node)>, StoreError> {
    let Some(record) = ready_named(read, workspace, name)? else { return Ok(None) };
    let node = record.ino().map(|ino| read.node(ino)).transpose()?.flatten();
    Ok(node.map(|node| (record, node)))
}
