//! What the walk of `random` knows of leases: nothing of the engine, only what is promised.

use workfs::engine::Fence;
use workfs::numbers::Attempt;

use crate::harness::{SECOND, Space, agent};

pub const AGENTS: [&str; 3] = ["ann", "bob", "eve"];
/// Where each puts what it has finished.
pub const DONE: [&str; 3] = ["done/ann", "done/bob", "done/eve"];
pub const TASKS: [&str; 3] = ["t-0", "t-1", "t-2"];
pub const TTL: u64 = 10 * SECOND;
/// How often a lease may run out, as the built-in kind has it.
const ATTEMPTS: u64 = 5;
/// What cannot go back is tried again after this.
const AGAIN: u64 = 30 * SECOND;

/// Where a task stands. The first four are where it rests, or lives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Task {
    Free,
    Held {
        by: usize,
        until: u64,
    },
    Done {
        by: usize,
    },
    Dead,
    /// Its lease is over, and nothing could be written yet. Nobody acts on it any more.
    Over {
        by: usize,
        /// When it is tried again, if its owner does nothing before.
        again: u64,
    },
    /// Its lease is over, and something is in its way back.
    Stuck {
        by: usize,
    },
}

impl Task {
    fn owner(self) -> Option<usize> {
        match self {
            Task::Held { by, .. } => Some(by),
            Task::Free
            | Task::Done { .. }
            | Task::Dead
            | Task::Over { .. }
            | Task::Stuck { .. } => None,
        }
    }
}

/// A directory that a task goes back to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rest {
    Inbox,
    Dead,
}

impl Rest {
    pub fn dir(self) -> &'static str {
        if self == Rest::Inbox { "inbox" } else { "dead" }
    }
}

/// One task, and what is in its way.
#[derive(Clone, Debug)]
pub struct Known {
    pub task: Task,
    pub attempts: u64,
    /// Who had it at some time.
    pub had: [bool; AGENTS.len()],
    /// How many leases ran out; what is given back does not count.
    lapses: u64,
    /// Something else has its name in the inbox, or where what has ended lies.
    blocked: [bool; 2],
    /// Its text says its status in a way that nobody can change in place.
    pub is_odd: bool,
    /// Its text is flagged as not valid.
    pub is_flagged: bool,
    /// Its name is a backup's.
    pub is_parked: bool,
    /// When it is looked at whether it can go back, if it could not.
    pub again: Option<u64>,
    /// It does not end before this, which a new daemon gave it; counted from its own end.
    grace: u64,
    /// How often its end was told of, where nothing else comes of that.
    pub ends: u64,
    /// It was, and its owner goes on without a lease.
    told: Option<Told>,
}

/// What is known of an owner since the end of its lease was told of.
#[derive(Clone, Copy, Debug)]
struct Told {
    /// When it is looked at next whether it was heard of.
    look: u64,
    heard: Option<u64>,
}

impl Known {
    pub fn blocked(&mut self, rest: Rest) -> &mut bool {
        &mut self.blocked[rest as usize]
    }

    pub fn is_blocked(&self, rest: Rest) -> bool {
        self.blocked[rest as usize]
    }

    /// Whose it is to change, if it is anybody's.
    pub fn owner(&self) -> Option<usize> {
        self.task.owner()
    }

    /// Whether nobody has it and an agent may take it from there.
    pub fn is_free(&self) -> bool {
        matches!(self.task, Task::Free)
    }

    /// In whose lane it lies.
    pub fn lane(&self) -> Option<usize> {
        match self.task {
            Task::Held { by, .. } | Task::Over { by, .. } | Task::Stuck { by } => Some(by),
            Task::Free | Task::Done { .. } | Task::Dead => None,
        }
    }

    /// Who has finished it.
    pub fn finished_by(&self) -> Option<usize> {
        if let Task::Done { by } = self.task { Some(by) } else { None }
    }

    /// The directory that its file lies in, or lay in before it was parked.
    pub fn dir(&self) -> &'static str {
        match (self.task, self.lane()) {
            (_, Some(by)) => AGENTS[by],
            (Task::Done { by }, _) => DONE[by],
            (Task::Dead, _) => "dead",
            _ => "inbox",
        }
    }

    /// The name of its state.
    pub fn state(&self) -> &'static str {
        match self.task {
            Task::Done { .. } => "done",
            _ if self.lane().is_some() => "assigned",
            _ => self.dir(),
        }
    }

    /// Whether nothing of itself keeps it from another state: its file, or its text.
    pub fn can_be_moved(&self) -> bool {
        !self.is_parked && !self.is_odd && !self.is_flagged
    }

    /// Goes to where it rests, if nothing is in its way.
    fn goes_back(&mut self, (is_full, space): (bool, Space)) -> bool {
        let rest = if self.lapses < ATTEMPTS { Rest::Inbox } else { Rest::Dead };
        // What has ended says nothing of its status, and what has no file needs one.
        let is_odd = self.is_odd && rest == Rest::Inbox;
        if space != Space::Room || self.is_flagged {
            return false;
        }
        if self.is_blocked(rest) || is_odd || (self.is_parked && is_full) {
            return false;
        }
        self.is_parked = false;
        match rest {
            Rest::Inbox => self.task = Task::Free,
            Rest::Dead => (self.task, self.lapses) = (Task::Dead, 0),
        }
        true
    }

    /// Whether somebody has it with a lease.
    pub fn has_lease(&self) -> bool {
        let is_over = matches!(self.task, Task::Over { .. });
        (self.owner().is_some() || is_over) && self.told.is_none()
    }

    /// The end of a lease is an event only, and its owner goes on.
    fn tell(&mut self, now: u64) {
        let Task::Held { by, mut until } = self.task else { return };
        if let Some(told) = self.told
            && now >= told.look
        {
            self.told = told.heard.is_none().then_some(Told { look: now + AGAIN, heard: None });
            until = told.heard.map_or(until, |heard| heard + TTL);
        }
        if self.told.is_none() && now >= until.max(self.grace) {
            self.ends += 1;
            self.told = Some(Told { look: now + AGAIN, heard: None });
        }
        self.task = Task::Held { by, until };
    }

    /// What is over ends, as soon as that can be written.
    fn end(&mut self, now: u64, room: (bool, Space)) {
        let Task::Over { by, again } = &mut self.task else { return };
        if now < *again || room.1 == Space::Full {
            *again = if now < *again { *again } else { now + AGAIN };
            return;
        }
        let by = *by;
        self.lapses += 1;
        if !self.goes_back(room) {
            // It stays, and what is under the old claim is fenced off.
            self.attempts += 1;
            (self.task, self.again) = (Task::Stuck { by }, Some(now + AGAIN));
        }
    }

    fn settle(&mut self, now: u64, room: (bool, Space)) {
        if let Task::Held { by, until } = self.task
            && now >= until.max(self.grace)
        {
            self.task = Task::Over { by, again: now };
        }
        self.end(now, room);
        if self.again.is_some_and(|again| now >= again) {
            let is_stuck = matches!(self.task, Task::Stuck { .. });
            // Where nothing can be written it is not seen either that it need not go back any more.
            let stays = room.1 != Space::Room || (is_stuck && !self.goes_back(room));
            self.again = stays.then_some(now + AGAIN);
        }
    }
}

pub struct Model {
    pub now: u64,
    pub tasks: [Known; 3],
    /// The workspace's quota has no room for one file more.
    pub is_full: bool,
    /// What is left of the store's disk.
    pub space: Space,
    /// Its kind only tells of the end of a lease.
    only_tells: bool,
    /// What agents opened, each under some claim.
    pub fences: Vec<(usize, usize, Fence)>,
}

impl Model {
    pub fn new(only_tells: bool) -> Model {
        let known = Known {
            task: Task::Free,
            attempts: 0,
            lapses: 0,
            had: [false; AGENTS.len()],
            blocked: [false; 2],
            is_odd: false,
            is_flagged: false,
            is_parked: false,
            again: None,
            grace: 0,
            ends: 0,
            told: None,
        };
        let tasks = [(); 3].map(|()| known.clone());
        let space = Space::Room;
        Model { now: 0, tasks, is_full: false, space, only_tells, fences: Vec::new() }
    }

    /// A sign of life of an agent, now.
    pub fn lives(&mut self, who: usize) {
        let until = self.now + TTL;
        for known in &mut self.tasks {
            match &mut known.told {
                _ if known.task.owner() != Some(who) => {}
                Some(told) => told.heard = Some(self.now),
                None => known.task = Task::Held { by: who, until },
            }
        }
    }

    /// An agent does something, or tries to: what it has lost ends before.
    pub fn acts(&mut self, who: usize) {
        for known in &mut self.tasks {
            if let Task::Over { by, again } = &mut known.task
                && *by == who
            {
                *again = self.now;
                known.end(self.now, (self.is_full, self.space));
            }
        }
        if self.space == Space::Room {
            self.lives(who);
        }
    }

    /// A sign of life about this very task, which is known at once.
    pub fn is_worked_on(&mut self, nth: usize) {
        if let Task::Held { by, .. } = self.tasks[nth].task {
            self.tasks[nth].task = Task::Held { by, until: self.now + TTL };
            self.tasks[nth].told = None;
        }
    }

    /// Whoever acts for others saved a sound text of a task whose lease is over: nobody has it by that.
    pub fn is_mended(&mut self, nth: usize) {
        let known = &mut self.tasks[nth];
        if known.goes_back((self.is_full, self.space)) {
            known.again = None;
        }
    }

    /// Somebody who may has the task from now on, or has it anew: another claim.
    pub fn claimed(&mut self, by: usize, nth: usize) {
        let known = &mut self.tasks[nth];
        known.task = Task::Held { by, until: self.now + TTL };
        known.attempts += 1;
        known.had[by] = true;
        known.told = None;
        let fence = Fence { owner: agent(AGENTS[by]), attempt: Attempt(known.attempts) };
        self.fences.push((by, nth, fence));
    }

    /// It goes out of somebody's hands, and rests.
    pub fn rests(&mut self, nth: usize, task: Task) {
        let known = &mut self.tasks[nth];
        // Who takes it back from where it has ended gives it all its attempts again.
        if task != Task::Free {
            known.lapses = 0;
        }
        (known.task, known.told) = (task, None);
    }

    /// So much is left of the disk.
    pub fn leaves(&mut self, space: Space) {
        self.space = space;
        self.pass(0);
    }

    /// What an agent held a task with is closed, under a claim that it still has.
    pub fn let_go(&mut self, nth: usize) {
        let known = &mut self.tasks[nth];
        let Some(by) = known.owner() else { return };
        if self.space == Space::Room && known.can_be_moved() && !known.is_blocked(Rest::Inbox) {
            return self.rests(nth, Task::Free);
        }
        known.task = Task::Over { by, again: self.now };
        known.end(self.now, (self.is_full, self.space));
    }

    pub fn pass(&mut self, nanos: u64) {
        self.now += nanos;
        for known in &mut self.tasks {
            match self.only_tells {
                true => known.tell(self.now),
                false => known.settle(self.now, (self.is_full, self.space)),
            }
        }
    }

    /// Another daemon, so long after the one before: nobody could show life meanwhile, who has some time
    /// for that, but no more than so much from the end. What could not go back is tried at once.
    pub fn restart_after(&mut self, nanos: u64) {
        for known in &mut self.tasks {
            if let Some(Told { heard: Some(heard), .. }) = known.told
                && let Task::Held { until, .. } = &mut known.task
            {
                (*until, known.told) = (heard + TTL, None);
            }
        }
        // What could not be written before is when the daemon ends.
        for known in &mut self.tasks {
            if let Task::Over { again, .. } = &mut known.task {
                *again = self.now;
                known.end(self.now, (self.is_full, self.space));
            }
        }
        self.now += nanos;
        for known in &mut self.tasks {
            match (known.task, &mut known.told) {
                (Task::Held { .. }, Some(told)) => told.look = self.now,
                (Task::Held { until, .. }, None) => known.grace = self.now.min(until) + TTL,
                _ => {}
            }
            known.again = known.again.map(|_| self.now);
        }
        self.pass(0);
    }
}
