//! Leases under random time, crashes, races and obstacles, against a model (`random_model`) that knows
//! nothing of the engine.

use proptest::prelude::*;
use workfs::config::Config;
use workfs::engine::{Heartbeat, SetAttributes, TimeOrNow};
use workfs::refusal::Rule;
use workfs::store::LeaseRow;

use crate::expiry::{ends_of, errands};
use crate::harness::{Desk, SECOND, Space};
use crate::random_model::{AGENTS, DONE, Known, Model, Rest, TASKS, TTL, Task};
use crate::random_ops::{How, Op, op};

/// Files and directories that the workspace can hold beside those of the walk's own: more than are
/// ever parked, since a backup stays.
const SPARE: usize = 70;

/// What the workspace of a walk is like.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sort {
    Tasks,
    /// Of the policy `flag`.
    Flagging,
    /// A kind that only tells of the end of a lease.
    OnlyTelling,
}

/// The engine and the model, which do the same.
struct Walk {
    desk: Desk,
    model: Model,
    /// Directories that use up the quota.
    fillers: Vec<String>,
    sort: Sort,
    step: usize,
}

impl Walk {
    fn new(sort: Sort) -> Walk {
        let only_tells = sort == Sort::OnlyTelling;
        let inodes = ["work", "inbox", "assigned", "done", "dead"].len() + SPARE;
        let inodes = inodes + AGENTS.len() + DONE.len() + TASKS.len();
        let kind = if only_tells { "errand" } else { "task" };
        let policy = if sort == Sort::Flagging { "flag" } else { "refuse" };
        let config = format!(
            "workspaces: [{{ path: work, kind: {kind}, policy: {policy} }}]\n\
             quotas: [{{ path: work, inodes: {inodes} }}]"
        );
        let config = Config::parse_with("c", &config, &errands("event")).unwrap();
        let mut desk = Desk::with(&AGENTS, config);
        assert_eq!(AGENTS.map(|name| desk.make_below("done", name)), DONE);
        for task in TASKS {
            desk.put(task, "lease: 10s");
        }
        Walk { desk, model: Model::new(only_tells), fillers: Vec::new(), sort, step: 0 }
    }

    fn pass(&mut self, nanos: u64) {
        self.model.pass(nanos);
        self.desk.pass(nanos);
    }

    /// As many directories as the quota has room for.
    fn fill(&mut self) {
        loop {
            let name = format!("filler-{}", self.fillers.len());
            if self.desk.fill("done", &name).is_err() {
                break;
            }
            self.fillers.push(name);
        }
        self.model.is_full = true;
    }

    fn empty(&mut self) {
        for name in self.fillers.drain(..) {
            self.desk.rmdir("done", &name);
        }
        self.model.is_full = false;
    }

    /// What is in a task's way there goes. In a quota that is used up the room that it leaves is used.
    fn unblock(&mut self, nth: usize, rest: Rest) {
        if std::mem::take(self.model.tasks[nth].blocked(rest)) {
            self.desk.unblock(rest.dir(), TASKS[nth]);
            if self.model.is_full {
                self.fill();
            }
        }
    }

    fn claim(&mut self, who: usize, nth: usize) {
        let known = &self.model.tasks[nth];
        // What lies there is a directory.
        if known.is_blocked(Rest::Inbox) {
            return;
        }
        self.model.acts(who);
        let is_free = self.model.tasks[nth].task == Task::Free;
        let claimed = self.desk.mv(AGENTS[who], TASKS[nth], "inbox", AGENTS[who]);
        assert_eq!(claimed.is_ok(), is_free, "{} {claimed:?}", self.step);
        if is_free {
            self.model.claimed(who, nth);
        }
    }

    /// A late save is refused, whatever has become of the record.
    fn save(&mut self, fence: usize, how: How) {
        if self.model.fences.is_empty() {
            return;
        }
        let (who, nth, fence) = self.model.fences[fence % self.model.fences.len()].clone();
        let known = &self.model.tasks[nth];
        // Of what is parked that handle's file is an ordinary one; what a flagged text makes of finished work
        // is no matter of leases.
        if known.is_parked || (self.sort == Sort::Flagging && known.finished_by().is_some()) {
            return;
        }
        self.model.acts(who);
        let known = &mut self.model.tasks[nth];
        let is_held = known.owner() == Some(who) && known.attempts == fence.attempt.0;
        let may = is_held && (how != How::Flawed || self.sort == Sort::Flagging);
        let (agent, task, step) = (AGENTS[who], TASKS[nth], self.step);
        let status = match how {
            How::Sound => "in_progress",
            How::Odd => "&s in_progress\nnotes: *s",
            How::Flawed => "in_progress\npriority: 7",
        };
        let text = format!(
            "id: {task}\nresult: {{summary: made at {step}}}\nlease: 10s\nagent: {agent}\n\
             status: {status}\n"
        );
        let saved = self.desk.save_text(agent, task, (&fence, &text));
        assert_eq!(saved.is_ok(), may, "{step} {saved:?}");
        if may {
            (known.is_odd, known.is_flagged) = (how == How::Odd, how == How::Flawed);
            self.model.is_worked_on(nth);
        }
    }

    /// Where a descriptor of an earlier claim goes, nothing happens.
    fn let_go(&mut self, fence: usize) {
        let fences = self.model.fences.len();
        let Some((who, nth, fence)) = self.model.fences.get(fence % fences.max(1)).cloned() else {
            return;
        };
        let known = &self.model.tasks[nth];
        let is_held = known.owner() == Some(who) && known.attempts == fence.attempt.0;
        let can = known.can_be_moved() && !known.is_blocked(Rest::Inbox);
        if self.sort == Sort::OnlyTelling && is_held && !can {
            // Of what such a kind does with that `ended` has the tests.
            return;
        }
        self.model.acts(who);
        self.desk.let_go(TASKS[nth], &fence);
        if is_held {
            self.model.let_go(nth);
        }
    }

    /// Where the disk has no room nothing is done for an agent, nor known of it.
    fn is_refused(&mut self, op: &Op) {
        let (desk, step) = (&self.desk, self.step);
        let (who, refused) = match *op {
            Op::Claim(who, nth) if !self.model.tasks[nth].is_blocked(Rest::Inbox) => {
                (who, desk.mv(AGENTS[who], TASKS[nth], "inbox", AGENTS[who]))
            }
            Op::Release(who, nth) => (who, desk.mv(AGENTS[who], TASKS[nth], AGENTS[who], "inbox")),
            Op::Finish(who, nth) => (who, desk.mv(AGENTS[who], TASKS[nth], AGENTS[who], "done")),
            Op::Beat(who, nth) => {
                let beat = Heartbeat { record: desk.record(TASKS[nth]).key };
                (who, desk.act(AGENTS[who], beat).map(drop))
            }
            Op::Save(fence, _) if !self.model.fences.is_empty() => {
                let (who, nth, fence) = &self.model.fences[fence % self.model.fences.len()];
                if self.model.tasks[*nth].is_parked {
                    return;
                }
                (*who, desk.save(AGENTS[*who], TASKS[*nth], (fence, "lease: 10s")))
            }
            _ => return,
        };
        self.model.acts(who);
        assert_eq!(refused.unwrap_err().rule, Rule::NoSpace, "{step} {op:?}");
    }

    /// Its owner moves it out of its lane.
    fn leave(&mut self, who: usize, nth: usize, task: Task) {
        self.model.acts(who);
        let to = if task == Task::Free { "inbox" } else { DONE[who] };
        let moved = self.desk.mv(AGENTS[who], TASKS[nth], AGENTS[who], to);
        let known = &self.model.tasks[nth];
        let may = known.owner() == Some(who)
            && known.can_be_moved()
            && (task != Task::Free || !known.is_blocked(Rest::Inbox));
        assert_eq!(moved.is_ok(), may, "{} {moved:?}", self.step);
        if may {
            self.model.rests(nth, task);
        }
    }

    fn beat(&mut self, who: usize, nth: usize) {
        self.model.acts(who);
        let beat = Heartbeat { record: self.desk.record(TASKS[nth]).key };
        let renewed = self.desk.act(AGENTS[who], beat);
        let may = self.model.tasks[nth].owner() == Some(who);
        assert_eq!(renewed.is_ok(), may, "{} {renewed:?}", self.step);
        if may {
            self.model.is_worked_on(nth);
        }
    }

    /// Attributes are whose the record is: not of who had it before.
    fn touch(&mut self, who: usize, nth: usize) {
        let Some(ino) = self.desk.record(TASKS[nth]).ino() else { return };
        self.model.acts(who);
        let known = &self.model.tasks[nth];
        let mtime = Some(TimeOrNow::Now);
        let touch = SetAttributes { mtime, ..SetAttributes::none(ino) };
        let touched = self.desk.act(AGENTS[who], touch);
        let whose = known.owner().or(known.finished_by());
        let may = known.is_free() || whose == Some(who);
        assert_eq!(touched.is_ok(), may, "{} {touched:?}", self.step);
        if may {
            self.model.is_worked_on(nth);
        }
    }

    fn park(&mut self, who: usize, nth: usize) {
        self.model.acts(who);
        let name = format!("{}.yaml.~{}~", TASKS[nth], self.step);
        let parked = self.desk.rename_to(AGENTS[who], TASKS[nth], &name);
        let known = &mut self.model.tasks[nth];
        let may = known.owner() == Some(who) && !known.is_parked;
        assert_eq!(parked.is_ok(), may, "{} {parked:?}", self.step);
        known.is_parked |= may;
        if may {
            self.model.is_worked_on(nth);
        }
    }

    /// A file of its name is made in the lane that it was parked in, with a sound text.
    fn unpark(&mut self, nth: usize) {
        let known = &self.model.tasks[nth];
        let (Some(who), true) = (known.lane(), known.is_parked) else { return };
        self.model.acts(who);
        let written = self.desk.write(AGENTS[who], TASKS[nth], "status: in_progress\nlease: 10s");
        let known = &mut self.model.tasks[nth];
        let may = known.owner() == Some(who) && !self.model.is_full;
        assert_eq!(written.is_ok(), may, "{} {written:?}", self.step);
        // Of who lost it the text is not taken: the last version comes back instead.
        known.is_parked = self.model.is_full;
        (known.is_odd, known.is_flagged) = (known.is_odd && !may, known.is_flagged && !may);
        if may {
            self.model.is_worked_on(nth);
        }
    }

    /// It is a claim of what is free, but of who had it before a late write.
    fn copy(&mut self, who: usize, nth: usize) {
        if self.model.tasks[nth].lane() == Some(who) {
            return;
        }
        self.model.acts(who);
        let written = self.desk.write(AGENTS[who], TASKS[nth], "status: assigned\nlease: 10s");
        let known = &mut self.model.tasks[nth];
        let is_free = known.task == Task::Free && !self.model.is_full;
        let may = is_free && !known.had[who];
        assert_eq!(written.is_ok(), may, "{} {written:?}", self.step);
        if may {
            (known.is_odd, known.is_flagged) = (false, false);
            self.model.claimed(who, nth);
            return;
        }
        assert!(!is_free || written.unwrap_err().rule == Rule::LeaseOver, "{}", self.step);
        // A file that it opened for that goes with its handle.
        if self.desk.places(TASKS[nth]).contains(&AGENTS[who]) {
            self.desk.discard(AGENTS[who], TASKS[nth]);
        }
    }

    fn mend(&mut self, nth: usize) {
        let (known, task) = (&mut self.model.tasks[nth], TASKS[nth]);
        let Some(by) = known.lane().filter(|_| !known.is_parked) else { return };
        let more = format!("status: in_progress\nagent: {}\nlease: 10s", AGENTS[by]);
        self.desk.rewrite(task, &format!("{more}\nnote: {}", self.step));
        (known.is_odd, known.is_flagged) = (false, false);
        match known.task {
            // It goes back, if its text was what was in the way.
            Task::Stuck { .. } => self.model.is_mended(nth),
            _ => self.model.is_worked_on(nth),
        }
    }

    /// The operator takes a task away from whoever has it, or from where it has ended.
    fn free(&mut self, nth: usize) {
        let known = &self.model.tasks[nth];
        if known.task == Task::Free {
            return;
        }
        let moved = self.desk.hand_over(TASKS[nth], known.dir(), "inbox");
        let may = known.can_be_moved() && !known.is_blocked(Rest::Inbox);
        assert_eq!(moved.is_ok(), may, "{} {moved:?}", self.step);
        if may {
            self.model.rests(nth, Task::Free);
        }
    }

    /// To whoever has it not; of what is finished, also to who has finished it.
    fn give(&mut self, who: usize, nth: usize) {
        let known = &self.model.tasks[nth];
        if known.finished_by().is_none() && known.lane().is_none_or(|by| by == who) {
            return;
        }
        let moved = self.desk.hand_over(TASKS[nth], known.dir(), AGENTS[who]);
        // From lane to lane the status stays as it is.
        let may = !known.is_parked && !known.is_flagged;
        assert_eq!(moved.is_ok(), may, "{} {moved:?}", self.step);
        if may {
            self.model.claimed(who, nth);
        }
    }

    fn take(&mut self, op: &Op) {
        let is_time = matches!(op, Op::Pass(_) | Op::Wall(_) | Op::See(_) | Op::Restart(..));
        let has_room = self.model.space == Space::Room;
        match *op {
            Op::Disk(space) => self.disk(space),
            Op::LetGo(fence) => self.let_go(fence),
            _ if !has_room && !is_time => self.is_refused(op),
            Op::Pass(nanos) => self.pass(nanos),
            Op::Wall(by) => self.desk.set_wall(by),
            Op::See(who) => {
                self.desk.see(AGENTS[who]);
                self.model.lives(who);
            }
            Op::Claim(who, nth) => self.claim(who, nth),
            Op::Save(fence, how) => self.save(fence, how),
            Op::Release(who, nth) => self.leave(who, nth, Task::Free),
            Op::Finish(who, nth) => self.leave(who, nth, Task::Done { by: who }),
            Op::Beat(who, nth) => self.beat(who, nth),
            Op::Touch(who, nth) => self.touch(who, nth),
            Op::Park(who, nth) => self.park(who, nth),
            Op::Unpark(nth) => self.unpark(nth),
            Op::Copy(who, nth) => self.copy(who, nth),
            Op::Block(nth, rest) => {
                let known = &mut self.model.tasks[nth];
                let is_there = known.dir() == rest.dir() || known.is_blocked(rest);
                if !is_there && !self.model.is_full {
                    *known.blocked(rest) = true;
                    self.desk.block(rest.dir(), TASKS[nth]);
                }
            }
            Op::Unblock(nth, rest) => self.unblock(nth, rest),
            Op::Fill => self.fill(),
            Op::Empty => self.empty(),
            Op::Mend(nth) => self.mend(nth),
            Op::Free(nth) => self.free(nth),
            Op::Give(who, nth) => self.give(who, nth),
            Op::Restart(nanos, new_boot) => {
                self.disk(Space::Room);
                self.desk.restart_after(nanos.cast_signed(), new_boot);
                self.desk.settle();
                self.model.restart_after(nanos);
            }
        }
    }

    /// Of a kind that only tells, how a full disk delays that depends on more than the model knows.
    fn disk(&mut self, space: Space) {
        if self.sort != Sort::OnlyTelling {
            self.model.leaves(space);
            self.desk.leave(space);
        }
    }

    /// Everything is mended and nobody shows life any more: nothing stays with anybody.
    fn end(&mut self) {
        self.disk(Space::Room);
        self.empty();
        for nth in 0..TASKS.len() {
            self.unblock(nth, Rest::Inbox);
            self.unblock(nth, Rest::Dead);
            if self.model.tasks[nth].is_odd || self.model.tasks[nth].is_flagged {
                self.unpark(nth);
                self.mend(nth);
            }
        }
        self.pass(TTL);
        self.compare(&"the end");
        self.pass(30 * SECOND);
        self.compare(&"all is mended");
        let rests = |known: &Known| match self.sort {
            Sort::OnlyTelling => !known.has_lease(),
            Sort::Tasks | Sort::Flagging => {
                matches!(known.task, Task::Free | Task::Done { .. } | Task::Dead)
            }
        };
        assert!(self.model.tasks.iter().all(rests), "{:?}", self.model.tasks);
        self.desk.fsck_clean();
    }

    #[track_caller]
    fn compare(&self, at: &dyn std::fmt::Debug) {
        let (desk, model, mut returns) = (&self.desk, &self.model, Vec::new());
        // What came to light while time passed is seen to: that an owner lives again, say.
        desk.settle();
        for (known, task) in model.tasks.iter().zip(TASKS) {
            let at = format!("{task} after {} {at:?}, now {}: {known:?}", self.step, model.now);
            let record = desk.record(task);
            let whose = known.lane().or(known.finished_by()).map(|by| AGENTS[by]);
            let found = (record.state.as_str(), record.owner.as_ref().map(|owner| owner.as_str()));
            assert_eq!(found, (known.state(), whose), "{at}");
            assert_eq!(record.attempt.0, known.attempts, "{at}");
            // At most one lives, and has a lease as long as it does.
            let lease = desk.lease(task).filter(LeaseRow::runs).map(|row| row.attempt);
            assert_eq!(lease, known.has_lease().then_some(record.attempt), "{at}");
            if self.sort == Sort::OnlyTelling {
                assert_eq!(ends_of(desk, task) as u64, known.ends, "{at}");
            }
            let is_stuck = matches!(known.task, Task::Stuck { .. });
            assert_eq!(record.is_lapsed(), is_stuck, "{at}");
            // It lies in one place, or its name is a backup's.
            let places: &[&str] = if known.is_parked { &[] } else { &[known.dir()] };
            assert_eq!(desk.places(task), places, "{at}");
            // Nobody has it, and it does not rest: it is tried again.
            let why = desk.read(|read| read.in_the_way(record.key));
            assert_eq!(why.is_some(), known.again.is_some(), "{at}");
            assert!(why.is_none_or(|why| !why.is_empty()), "{at}");
            assert!(known.again.is_some() || !is_stuck, "{at}");
            returns.extend(known.again.map(|_| record.key));
        }
        assert_eq!(desk.read(|read| read.returns()), returns, "after {} {at:?}", self.step);
    }
}

fn walk(ops: &[Op], sort: Sort) {
    let mut walk = Walk::new(sort);
    for op in ops {
        walk.step += 1;
        walk.take(op);
        walk.compare(op);
    }
    walk.end();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 400, ..ProptestConfig::default() })]
    // P12.7
    #[test]
    fn at_most_one_lives_none_is_stuck_and_nothing_late_is_taken(
        ops in proptest::collection::vec(op(), 1..80),
    ) {
        walk(&ops, Sort::Tasks);
    }

    // P12.1 P12.7
    #[test]
    fn so_it_is_where_flawed_texts_are_kept(
        ops in proptest::collection::vec(op(), 1..80),
    ) {
        walk(&ops, Sort::Flagging);
    }

    // P12.1 P12.7
    #[test]
    fn of_each_end_is_told_once_and_who_is_heard_of_has_a_lease_again(
        ops in proptest::collection::vec(op(), 1..80),
    ) {
        walk(&ops, Sort::OnlyTelling);
    }
}

// P12.7
#[test]
fn a_wall_clock_that_was_set_back_before_another_boot_makes_no_lease_longer() {
    let ops = [
        Op::Pass(3 * SECOND),
        Op::Claim(0, 0),
        Op::Wall(-(SECOND as i64)),
        Op::Restart(0, true),
        Op::Pass(TTL),
    ];
    walk(&ops, Sort::Tasks);
}

// P12.1
#[test]
fn a_sign_of_life_that_says_nothing_new_counts_after_the_next_daemon_too() {
    let ops = [
        Op::Claim(2, 0),
        Op::Restart(3 * SECOND, false),
        Op::See(2),
        Op::Restart(17 * SECOND, false),
    ];
    walk(&ops, Sort::OnlyTelling);
    walk(&ops, Sort::Tasks);
}
