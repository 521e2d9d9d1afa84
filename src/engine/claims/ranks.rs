//! An order in which all that waits for each other could be done, kept while the daemon runs: what goes by
//! it closes no circle, which saves the search for one.
//!
//! What must stay true: where the order of a workspace is known, each edge of the store leads from a lower rank to a
//! higher one. Edges that go leave that true, those that come are looked at when they are put ([`Ranks::note`]), and
//! what cannot be sure is forgotten. It is no second opinion: what it does not admit the search decides
//! (`circle`). Deliberately not here: the store, which knows no ranks; whoever starts learns them anew.
//!
//! Where a record contradicts the order, either what it waits for is moved down or what waits for it is moved up,
//! whichever is found first, just as far as it must. So a text costs what lies between its ends on the smaller side,
//! and none where its ends lie right already. Ids of which none waits for the other may have the same rank.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::RangeInclusive;

use parking_lot::Mutex;

use crate::limits::RANKED_MAX;
use crate::names::RecordId;
use crate::numbers::WorkspaceKey;
use crate::store::{Edge, Read, Result, Sides, StoreError};

/// The orders of all workspaces in which one was needed.
#[derive(Default)]
pub struct Ranks(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// `None`: too many wait in that workspace, or the store is damaged: some wait for themselves, or a row
    /// cannot be read.
    orders: HashMap<WorkspaceKey, Option<Order>>,
    /// An edge went in this turn. If that is undone it comes back, and may contradict what was ranked since.
    has_lost: bool,
}

/// Where an id stands.
type Rank = i128;

/// What lies between two ranks at first: who comes between takes a part of it, and so on.
const STEP: Rank = 1 << 80;

/// Ranks further out are given anew before there could be none.
const OUTERMOST: Rank = 1 << 120;

#[derive(Default)]
struct Order {
    ranks: HashMap<RecordId, Rank>,
}

/// A record's ends: what it would wait for, and who would wait for it, with what was so before.
pub(super) struct Ends<'e> {
    pub earlier: HashSet<&'e RecordId>,
    pub later: HashSet<&'e RecordId>,
}

impl Ranks {
    /// Whether it is known that a record with these ends would not wait for itself. The order is then one
    /// for these, too.
    pub(super) fn admits(
        &self,
        read: &dyn Read,
        (workspace, id): (WorkspaceKey, &RecordId),
        ends: &Ends<'_>,
    ) -> Result<bool> {
        let mut known = self.0.lock();
        let Some(Some(order)) = known.orders.get_mut(&workspace) else { return Ok(false) };
        order.admits(read, (workspace, id), ends)
    }

    /// Whether it was not tried yet to learn the order of this workspace.
    pub(super) fn may_learn(&self, workspace: WorkspaceKey) -> bool {
        !self.0.lock().orders.contains_key(&workspace)
    }

    /// Learns the order of a workspace from its edges.
    pub(super) fn learn(&self, read: &dyn Read, workspace: WorkspaceKey) -> Result<()> {
        let mut known = self.0.lock();
        let others: usize = known.orders.values().flatten().map(|order| order.ranks.len()).sum();
        let order = match Order::of(read, workspace, RANKED_MAX.saturating_sub(others)) {
            // A damaged row is in the way of who comes upon it, and of nobody else.
            Err(StoreError::Impossible(_)) => None,
            order => order?,
        };
        known.orders.insert(workspace, order);
        Ok(())
    }

    /// Hears of an edge that is put, or goes.
    pub(super) fn note(
        &self,
        workspace: WorkspaceKey,
        (dependency, dependant): (&RecordId, &RecordId),
        sides: Sides,
    ) {
        let mut known = self.0.lock();
        if !sides.dependant && !sides.dependency {
            known.has_lost = true;
        } else if let Some(Some(order)) = known.orders.get(&workspace)
            && !order.has(dependency, dependant)
        {
            known.orders.remove(&workspace);
        }
    }

    /// A turn begins.
    pub(in crate::engine) fn begin(&self) {
        self.0.lock().has_lost = false;
    }

    /// What this turn did was undone.
    pub(in crate::engine) fn undo(&self) {
        if self.0.lock().has_lost {
            self.forget();
        }
    }

    /// Forgets all orders, as when a transaction has failed.
    pub(in crate::engine) fn forget(&self) {
        self.0.lock().orders.retain(|_, order| order.is_none());
    }
}

impl Order {
    /// The order of all edges that there are; `None` if they are too many, or have a circle.
    fn of(read: &dyn Read, workspace: WorkspaceKey, max: usize) -> Result<Option<Order>> {
        let mut open: HashMap<RecordId, u64> = HashMap::new();
        let mut later: HashMap<RecordId, Vec<RecordId>> = HashMap::new();
        read.edges(workspace, &mut |(dependency, dependant)| {
            open.entry(dependency.clone()).or_default();
            *open.entry(dependant.clone()).or_default() += 1;
            later.entry(dependency).or_default().push(dependant);
            open.len() <= max
        })?;
        if open.len() > max {
            return Ok(None);
        }
        let mut order = Order::default();
        let free = open.iter().filter(|(_, open)| **open == 0);
        let mut free: VecDeque<RecordId> = free.map(|(id, _)| id.clone()).collect();
        let mut at = 0;
        while let Some(id) = free.pop_front() {
            for one in later.remove(&id).unwrap_or_default() {
                if let Some(open) = open.get_mut(&one) {
                    *open -= 1;
                    if *open == 0 {
                        free.push_back(one);
                    }
                }
            }
            order.ranks.insert(id, at);
            at += STEP;
        }
        Ok((order.ranks.len() == open.len()).then_some(order))
    }

    fn rank(&self, id: &RecordId) -> Option<Rank> {
        self.ranks.get(id).copied()
    }

    fn has(&self, dependency: &RecordId, dependant: &RecordId) -> bool {
        let ranks = self.rank(dependency).zip(self.rank(dependant));
        ranks.is_some_and(|(dependency, dependant)| dependency < dependant)
    }

    /// The highest rank of what is waited for, and the lowest of those that wait.
    fn bounds(&self, ends: &Ends<'_>) -> (Option<Rank>, Option<Rank>) {
        let top = ends.earlier.iter().filter_map(|id| self.rank(id)).max();
        (top, ends.later.iter().filter_map(|id| self.rank(id)).min())
    }

    /// See [`Ranks::admits`].
    fn admits(
        &mut self,
        read: &dyn Read,
        of: (WorkspaceKey, &RecordId),
        ends: &Ends<'_>,
    ) -> Result<bool> {
        if ends.earlier.intersection(&ends.later).next().is_some()
            || self.ranks.len() + ends.earlier.len() + ends.later.len() >= RANKED_MAX
        {
            return Ok(false);
        }
        // What contradicts is moved, and the record placed; before either, room may have to be made.
        for _ in 0..4 {
            let has_room = match self.bounds(ends) {
                (Some(highest), Some(lowest)) if highest >= lowest => {
                    let Some(side) = self.contradicting(read, of, ends, lowest..=highest)? else {
                        return Ok(false);
                    };
                    self.shift(side)
                }
                (top, bottom) => {
                    if self.place(of.1, ends, top, bottom) {
                        return Ok(true);
                    }
                    false
                }
            };
            if !has_room {
                self.spread();
            }
        }
        Ok(false)
    }

    /// Finds all that must come after the record and is ranked as what comes before it, or the other way round:
    /// whichever are fewer. `None`: something is both, or has no rank.
    fn contradicting(
        &self,
        read: &dyn Read,
        (workspace, id): (WorkspaceKey, &RecordId),
        ends: &Ends<'_>,
        span: RangeInclusive<Rank>,
    ) -> Result<Option<Side>> {
        let mut later = Side::new(self, &ends.later, &span, true);
        let mut earlier = Side::new(self, &ends.earlier, &span, false);
        // Both together are no more than have ranks.
        loop {
            let is_later = later.seen.len() <= earlier.seen.len();
            let (side, others) =
                if is_later { (&mut later, &ends.earlier) } else { (&mut earlier, &ends.later) };
            let Some(at) = side.queue.pop() else {
                return Ok(Some(if is_later { later } else { earlier }));
            };
            let edges = if is_later {
                read.dependants(workspace, &at)?
            } else {
                read.dependencies(workspace, &at)?
            };
            for Edge { other, .. } in edges {
                if other == *id {
                    continue;
                }
                let Some(rank) = self.rank(&other) else { return Ok(None) };
                if others.contains(&other) {
                    return Ok(None);
                }
                side.meet(&other, rank);
            }
        }
    }

    /// Moves these to the other end of the span, before what bounds them there; not if there is no room.
    fn shift(&mut self, side: Side) -> bool {
        let Side { seen, span, is_later, border, .. } = side;
        let (end, away) = if is_later { (*span.end(), 1) } else { (*span.start(), -1) };
        let Ok(parts) = Rank::try_from(seen.len() + 2) else { return false };
        if end.abs() > OUTERMOST {
            return false;
        }
        let room = border.map_or(parts * STEP, |border| (border - end).abs());
        let part = room / parts;
        if part == 0 {
            return false;
        }
        let mut side: Vec<(Rank, RecordId)> =
            seen.into_iter().map(|(id, rank)| (rank * away, id)).collect();
        side.sort_unstable();
        let mut at = end + away * part;
        for (_, id) in side {
            // The first part is the record's own.
            at += away * part;
            self.ranks.insert(id, at);
        }
        true
    }

    /// Places the record between what it waits for and those that wait for it; not if there is no room.
    fn place(
        &mut self,
        id: &RecordId,
        ends: &Ends<'_>,
        top: Option<Rank>,
        bottom: Option<Rank>,
    ) -> bool {
        let lies = self.rank(id).filter(|rank| {
            top.is_none_or(|top| top < *rank) && bottom.is_none_or(|bottom| *rank < bottom)
        });
        let Some(at) = lies.or_else(|| between(top, bottom)) else { return false };
        self.ranks.insert(id.clone(), at);
        // Of these, those that have no rank have no edge but the one to this record.
        for (ends, at) in [(&ends.earlier, at - STEP), (&ends.later, at + STEP)] {
            for end in ends {
                if !self.ranks.contains_key(*end) {
                    self.ranks.insert((*end).clone(), at);
                }
            }
        }
        true
    }

    /// Gives all ranks anew, with room between them.
    fn spread(&mut self) {
        let mut all: Vec<(Rank, RecordId)> =
            self.ranks.drain().map(|(id, rank)| (rank, id)).collect();
        all.sort_unstable();
        let places = (0..).map(|nth| nth * STEP);
        self.ranks.extend(all.into_iter().map(|(_, id)| id).zip(places));
    }
}

/// What is on one side of a record, as far as it contradicts the order.
struct Side {
    is_later: bool,
    /// The ranks that contradict.
    span: RangeInclusive<Rank>,
    seen: HashMap<RecordId, Rank>,
    queue: Vec<RecordId>,
    /// The nearest rank beyond the span of something that these must not pass.
    border: Option<Rank>,
}

impl Side {
    fn new(
        order: &Order,
        ends: &HashSet<&RecordId>,
        span: &RangeInclusive<Rank>,
        is_later: bool,
    ) -> Side {
        let (seen, queue, span) = (HashMap::new(), Vec::new(), span.clone());
        let mut side = Side { is_later, span, seen, queue, border: None };
        for end in ends {
            if let Some(rank) = order.rank(end) {
                side.meet(end, rank);
            }
        }
        side
    }

    fn meet(&mut self, id: &RecordId, rank: Rank) {
        if !self.span.contains(&rank) {
            let nearer = if self.is_later { Rank::min } else { Rank::max };
            self.border = Some(self.border.map_or(rank, |border| nearer(border, rank)));
        } else if self.seen.insert(id.clone(), rank).is_none() {
            self.queue.push(id.clone());
        }
    }
}

/// A place between these; `None`: there is no room.
fn between(top: Option<Rank>, bottom: Option<Rank>) -> Option<Rank> {
    let at = match (top, bottom) {
        (None, None) => 0,
        (Some(top), None) => top + STEP,
        (None, Some(bottom)) => bottom - STEP,
        (Some(top), Some(bottom)) => {
            return Some(top + (bottom - top) / 2).filter(|at| top < *at && *at < bottom);
        }
    };
    (-OUTERMOST..=OUTERMOST).contains(&at).then_some(at)
}
