//! Taking a ready record: the best one, chosen inside the transaction so that callers who come at
//! once get different records, or one by the name that it has in `ready/`.

use std::sync::Arc;

use super::ready::unwritable;
use crate::config::Config;
use crate::engine::change::stop::absent;
use crate::engine::nodes::rename::Rename;
use crate::engine::places::governed::{Governed, path_of};
use crate::engine::records::made::Made;
use crate::engine::records::sight::{Base, Sight};
use crate::engine::{
    About, Command, Effect, RenameMode, Slot, Stop, Terms, Turn, governed, hindrance,
    runs_the_store,
};
use crate::limits::{PASSED_OVER_BYTES_MAX, PASSED_OVER_MAX};
use crate::names::{Dentry, FileName, TreePath};
use crate::numbers::{Ino, UnixNanos, WorkspaceKey};
use crate::refusal::{Refusal, Rule};
use crate::store::{NodeType, OrderKey, Read, Record, Standing, StoreError, When};

/// Whether a file is still being written, where it is this record's: such a one is left for the next.
pub type IsWritten = Arc<dyn Fn(Ino, Option<&Record>) -> bool + Send + Sync>;

/// The name beside the ready records by which the best of them is taken, and by which its lane then
/// leads to it. Nothing else has it in a lane.
pub const NEXT: &[u8] = b".next";

/// Which record is to be taken.
#[derive(Clone)]
pub enum Wanted {
    /// The best that is ready and that nobody writes.
    Best(IsWritten),
    /// The one of this name; under the name that is given as the second.
    Named(FileName, FileName),
}

/// Takes a ready record of the workspace whose directory is `dir` into the directory `to`.
#[derive(Clone)]
pub struct Take {
    /// The workspace's directory.
    pub dir: Ino,
    /// Which record.
    pub wanted: Wanted,
    /// Where it goes.
    pub to: Ino,
    /// What to do where its name is taken there.
    pub mode: RenameMode,
}

impl Turn<'_> {
    /// Refuses a copy of `.next` in a lane, and whatever else would have its name there: it would look
    /// like a claim, and claim nothing; and what is copied over it later would.
    pub(in crate::engine) fn require_not_next(
        &self,
        parent: Ino,
        name: &FileName,
    ) -> Result<(), Stop> {
        if name.as_bytes() != NEXT {
            return Ok(());
        }
        let Some((lane, way)) = next_into(self.txn, self.config, parent)? else { return Ok(()) };
        let refusal = Refusal::new(
            Rule::Transition,
            format!("a copy of `.next` in `{lane}` claims nothing"),
            format!("move it: {way}"),
        );
        Err(Stop::kept(refusal, lane.join(name.clone())))
    }
}

/// The path of a lane, and the command that claims the best into it; `None` of another directory.
///
/// # Errors
/// A failure of the store.
pub fn next_into(
    read: &dyn Read,
    config: &Config,
    dir: Ino,
) -> Result<Option<(TreePath, String)>, StoreError> {
    let Some(lane) = governed(read, config, dir)?.filter(|here| here.place.is_lane()) else {
        return Ok(None);
    };
    let ready = lane.path.join(lane.binding.kind.order().dir.clone());
    let lane = lane.dir_path();
    let way = format!("mv {}/.next {}/", ready.in_shell(), lane.in_shell());
    Ok(Some((lane, way)))
}

/// A record that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The name of its file.
    pub name: FileName,
    /// The record, as it was found.
    pub record: Record,
    /// The version that was made, for what its maker has seen; none where it was taken out of its workspace,
    /// or to a backup.
    pub made: Option<Made>,
}

/// The best ready record of a workspace that nobody writes.
///
/// # Errors
/// A failure of the store.
pub fn best_ready(
    read: &dyn Read,
    workspace: WorkspaceKey,
    is_written: &dyn Fn(Ino, Option<&Record>) -> bool,
) -> Result<Option<Record>, StoreError> {
    best_after(read, workspace, None, is_written)
}

/// The same of those that come after a place in their order.
fn best_after(
    read: &dyn Read,
    workspace: WorkspaceKey,
    after: Option<OrderKey>,
    is_written: &dyn Fn(Ino, Option<&Record>) -> bool,
) -> Result<Option<Record>, StoreError> {
    let mut best = None;
    read.ready(workspace, after, &mut |record| {
        let free = record.ino().is_some_and(|ino| !is_written(ino, Some(&record)));
        if free {
            best = Some(record);
        }
        !free
    })?;
    Ok(best)
}

/// How far was looked for a record that can be taken: what is in the way of one is found by parsing its text.
#[derive(Default)]
struct Search {
    records: usize,
    bytes: u64,
}

impl Search {
    fn goes_on(&self) -> bool {
        self.records < PASSED_OVER_MAX && self.bytes < PASSED_OVER_BYTES_MAX
    }

    fn passes(&mut self) {
        self.records += 1;
    }

    fn looks_at(&mut self, read: &dyn Read, record: &Record) -> Result<(), StoreError> {
        let file = record.ino().map(|ino| read.node(ino)).transpose()?.flatten();
        self.bytes += file.map_or(0, |file| file.size);
        self.passes();
        Ok(())
    }
}

/// The best ready record of a workspace whose own text keeps nobody from claiming it: for who
/// looks on somebody's behalf, and has no lane yet. It parses what it finds, as a claim does. In a kind
/// without claims ready records are there to be moved, and it is the best of them.
///
/// # Errors
/// A failure of the store.
pub fn best_claimable(
    read: &dyn Read,
    (workspace, config): (WorkspaceKey, &Config),
    now: UnixNanos,
    is_written: &dyn Fn(Ino, Option<&Record>) -> bool,
) -> Result<Option<Record>, StoreError> {
    let row = read.workspace(workspace)?;
    let Some(binding) = row.and_then(|row| config.bind(&row.path)) else { return Ok(None) };
    let kind = &binding.kind;
    let mut passed = None;
    let mut search = Search::default();
    // A claim gives up after as many.
    while search.goes_on() {
        let Some(found) = best_after(read, workspace, passed, is_written)? else { break };
        search.looks_at(read, &found)?;
        if kind.claim().is_none() || unwritable(read, kind, &found, now)?.is_none() {
            return Ok(Some(found));
        }
        passed = Some(found.order_key());
    }
    Ok(None)
}

/// The ready record that has its file's name in a workspace.
///
/// # Errors
/// A failure of the store.
pub fn ready_named(
    read: &dyn Read,
    workspace: &Governed,
    name: &FileName,
) -> Result<Option<Record>, StoreError> {
    let Some(id) = workspace.binding.kind.record_id(name) else { return Ok(None) };
    let found = read.record_named(workspace.workspace, &id)?;
    Ok(found.filter(|record| {
        let has_it = matches!(&record.standing, Standing::Live { name: own, .. } if own == name);
        has_it && record.readiness.when == When::Now
    }))
}

/// The directory that `ready/` of the workspace at `dir` has its bits and its owner from: that in which its kind
/// puts what is ready, from which moving it away takes it, or the workspace's where there is none.
///
/// # Errors
/// A failure of the store.
pub fn shown_as_ready(
    read: &dyn Read,
    workspace: &Governed,
    dir: Ino,
    now: UnixNanos,
) -> Result<Ino, StoreError> {
    let kind = &workspace.binding.kind;
    let mut at = dir;
    for name in kind.directory(kind.initial(), None, now).unwrap_or_default() {
        match read.lookup(at, &name)? {
            Some(node) if node.node_type == NodeType::Directory => at = node.ino,
            _ => return Ok(dir),
        }
    }
    Ok(at)
}

impl Command for Take {
    type Out = Taken;

    fn operation(&self) -> &'static str {
        "rename"
    }

    fn about(&self) -> About {
        match &self.wanted {
            Wanted::Named(_, name) => About::Name(Dentry::of(self.to, name.clone())),
            Wanted::Best(_) => About::Node(self.to),
        }
    }

    fn terms(&self) -> Terms {
        Terms { is_told_apart: true, ..Terms::USUAL }
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Taken, Stop> {
        let Some(governed) = governed(turn.txn, turn.config, self.dir)? else {
            return Err(nothing_ready().into());
        };
        let (workspace, kind) = (governed.workspace, &governed.binding.kind);
        match &self.wanted {
            Wanted::Best(is_written) => {
                let asked = self.asked(turn, &governed)?;
                self.best(turn, (workspace, asked), &**is_written)
            }
            Wanted::Named(name, new_name) => {
                let id = kind.record_id(name).ok_or_else(|| absent(name))?;
                let found = turn.txn.record_named(workspace, &id)?;
                let found = found.filter(|found| hindrance(kind, found, turn.now).is_none());
                let found = found.ok_or_else(|| absent(name))?;
                let asked = self.asked(turn, &governed)?;
                require_taking(turn, asked, &found)?;
                self.one(turn, found, Some(new_name))
            }
        }
    }
}

impl Take {
    /// The best that can be taken. Passed over are a record whose own text is in the way, such as one into
    /// which no owner can be written, since it would keep everybody from the rest; one whose name is taken
    /// where it would go, since it would keep that lane's agent from the rest; and one that the caller may
    /// not take.
    fn best(
        &self,
        turn: &mut Turn<'_>,
        (workspace, asked): (WorkspaceKey, Asked),
        is_written: &dyn Fn(Ino, Option<&Record>) -> bool,
    ) -> Result<Taken, Stop> {
        let (mut passed, mut first, mut forbidden) = (None, None, None);
        let mut search = Search::default();
        while search.goes_on() {
            let Some(found) = best_after(turn.txn, workspace, passed, is_written)? else { break };
            let Standing::Live { dir, name, .. } = found.standing.clone() else { break };
            passed = Some(found.order_key());
            match require_taking(turn, asked, &found) {
                Err(Stop::Refused(refused)) => {
                    forbidden.get_or_insert(refused);
                    search.passes();
                    continue;
                }
                asked => asked?,
            }
            search.looks_at(turn.txn, &found)?;
            match self.one(turn, found, None) {
                Err(Stop::Refused(mut refused)) if refused.refusal.rule.passes_over() => {
                    if refused.refusal.rule == Rule::Taken {
                        refused.refusal = in_its_place(&path_of(turn.txn, self.to, &name)?);
                    }
                    refused.kept = true;
                    refused.path = path_of(turn.txn, dir, &name)?;
                    first.get_or_insert(refused);
                }
                Ok(taken) => {
                    // Whoever asks why it is not taken finds it, once.
                    if let Some(refused) = first {
                        let last = turn.txn.last_refusal_of(&refused.path.to_bytes())?;
                        if last.is_none_or(|last| last.why.rule != refused.refusal.rule) {
                            turn.keep(*refused)?;
                        }
                    }
                    return Ok(taken);
                }
                failed => return failed,
            }
        }
        Err(first.or(forbidden).map_or_else(|| nothing_ready().into(), Stop::Refused))
    }

    /// Takes the record `found`.
    fn one(
        &self,
        turn: &mut Turn<'_>,
        found: Record,
        new_name: Option<&FileName>,
    ) -> Result<Taken, Stop> {
        let Standing::Live { dir, name, .. } = &found.standing else {
            return Err(nothing_ready().into());
        };
        let (dir, name) = (*dir, name.clone());
        let rename = Rename {
            to: Dentry::of(self.to, new_name.unwrap_or(&name).clone()),
            from: Dentry::of(dir, name.clone()),
            mode: self.mode,
            sight: Sight::Known(Base::Unseen),
        };
        let before = turn.effects.len();
        let made = rename.run(turn)?;
        // The caller's kernel was asked to move another name than the one that moved.
        for effect in &mut turn.effects[before..] {
            match effect {
                Effect::Attr { also_origin, .. } | Effect::Name { also_origin, .. } => {
                    *also_origin = true;
                }
                _ => {}
            }
        }
        if made.is_none() && new_name.is_none() {
            return Err(Stop::kept(no_lane(&name), path_of(turn.txn, dir, &name)?));
        }
        Ok(Taken { name, record: found, made })
    }
}

/// Which permission bits the kernel has asked for whoever takes a record.
#[derive(Clone, Copy)]
enum Asked {
    /// None need be asked: no mode binds the caller.
    Enough,
    /// Those of this directory.
    Of(Ino),
    /// None: the caller came by no kernel.
    Nothing,
}

impl Take {
    fn asked(&self, turn: &Turn<'_>, workspace: &Governed) -> Result<Asked, StoreError> {
        if runs_the_store(turn.context.actor.uid) {
            return Ok(Asked::Enough);
        }
        if turn.context.actor.mount.is_none() {
            return Ok(Asked::Nothing);
        }
        shown_as_ready(turn.txn, workspace, self.dir, turn.now).map(Asked::Of)
    }
}

/// The kernel asked the bits of one directory at most; where the record lies in another one, they are asked here.
fn require_taking(turn: &Turn<'_>, asked: Asked, found: &Record) -> Result<(), Stop> {
    let Standing::Live { ino, dir, name, .. } = &found.standing else { return Ok(()) };
    match asked {
        Asked::Enough => return Ok(()),
        Asked::Of(asked) if asked == *dir => return Ok(()),
        Asked::Of(_) | Asked::Nothing => {}
    }
    match turn.slot(*dir, name)? {
        Slot::Record(lies) => turn.require_taking(&lies, *ino),
        _ => Ok(()),
    }
}

fn in_its_place(path: &TreePath) -> Refusal {
    let reason = format!("`{path}` is there already, where it would go");
    Refusal::new(Rule::Taken, reason, format!("remove `{path}`, or give it another name"))
}

/// The best is taken to be worked on, and not to a place where it would be no record any more.
fn no_lane(name: &FileName) -> Refusal {
    let reason = format!("`.next`, which is `{name}` now, can only go where records lie");
    Refusal::new(Rule::Transition, reason, "name a lane, or move that record by its own name")
}

fn nothing_ready() -> Refusal {
    let reason = "nothing is ready";
    Refusal::new(Rule::Absent, reason, "wait for it: read `.wait` beside `.next`, or look later")
}
