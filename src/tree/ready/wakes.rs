//! Which of those who only look are woken by a record that is ready.
//!
//! One for each record, and nobody waits for the sake of another who does not come. A poll that was
//! left alone looks like one in which somebody sleeps, but the kernel asks again only for the
//! latter. So whoever has not come a moment after the wake has not used it up, and more are woken,
//! each time four times as many. Whoever came and let the record lie (an observer, one who is
//! stopped by then) is from then on woken beside the others, and not in their place. First come
//! those of other mounts and users than were woken already, so that nobody gets more turns by
//! opening more descriptors.
//!
//! What must stay true: somebody who sleeps is woken a few moments after a record is ready, whoever
//! else has `.wait` open. Deliberately not here: the clock, and what is ready.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Instant;

use workfs_mount::{Errno, Handle, MountId, PollWake, Reply};

use crate::limits::{IDLE_LOOKERS_MAX, WAKE_ANSWERED_WITHIN, WAKE_MORE, WAKE_NEXT_AFTER};

/// Whose a descriptor is: a mount, and a user in it.
pub(super) type Whose = (MountId, u32);

/// Somebody who looks.
pub(super) struct Looker {
    pub whose: Whose,
    pub call: Call,
}

/// How it is told.
pub(super) enum Call {
    /// A read that is owed an answer.
    Read { until: Instant, reply: Reply<Vec<u8>> },
    /// A poll of this handle.
    Poll { handle: Handle, wake: PollWake },
}

/// Those who look into one workspace, and whom its ready records have woken.
#[derive(Default)]
pub(super) struct Lookers {
    queue: VecDeque<Looker>,
    /// Records for which nobody has come yet.
    owed: usize,
    /// How many are woken next.
    width: usize,
    /// When to look whether what somebody was woken for is still there.
    again: Option<Instant>,
    /// Polls that were woken and have not come, and whether a record is theirs alone.
    called: HashMap<Handle, (Whose, bool)>,
    /// Who was woken for what is ready now.
    woken: HashSet<Whose>,
    /// Who came since a record became ready last.
    came: HashSet<Whose>,
    /// Who let a record lie.
    idle: HashSet<Whose>,
}

impl Lookers {
    /// Somebody looks, in place of what the same handle waited for before: nothing is ready.
    pub fn join(&mut self, looker: Looker) {
        self.none();
        if let Call::Poll { handle, .. } = looker.call {
            self.queue.retain(|known| !known.polls(handle));
        }
        self.queue.push_back(looker);
    }

    /// A handle is closed.
    pub fn leave(&mut self, handle: Handle) {
        self.queue.retain(|known| !known.polls(handle));
        self.called.remove(&handle);
    }

    /// Nobody is here, and there is nothing to remember.
    pub fn is_void(&self) -> bool {
        self.queue.is_empty() && self.again.is_none() && self.idle.is_empty()
    }

    /// When to look next.
    pub fn again(&self) -> Option<Instant> {
        let reads = self.queue.iter().filter_map(|looker| match looker.call {
            Call::Read { until, .. } => Some(until),
            Call::Poll { .. } => None,
        });
        reads.chain(self.again).min()
    }

    /// Whether it is time to look whether what somebody was woken for is still there.
    pub fn is_time(&self, now: Instant) -> bool {
        self.again.is_some_and(|again| again <= now)
    }

    /// One more record became ready: who is to be told.
    pub fn one_more(&mut self, now: Instant) -> Vec<Looker> {
        (self.owed, self.width) = (self.owed + 1, 1);
        self.came.clear();
        self.call(now)
    }

    /// Something is still ready when it was time to look: who is to be told.
    pub fn still(&mut self, now: Instant) -> Vec<Looker> {
        if self.owed == 0 {
            if self.idle.len() >= IDLE_LOOKERS_MAX {
                self.idle.clear();
            }
            self.idle.extend(self.came.drain());
            (self.owed, self.width) = (1, 1);
        }
        self.call(now)
    }

    /// Nothing is ready any more.
    pub fn none(&mut self) {
        // Where others were woken, too, nobody knows who took it.
        let mut came = self.came.drain();
        if let (Some(alone), None) = (came.next(), came.next()) {
            self.idle.remove(&alone);
        }
        drop(came);
        (self.owed, self.again) = (0, None);
        self.called.clear();
        self.woken.clear();
    }

    /// Who was woken has asked, and heard of a record.
    pub fn come(&mut self, handle: Handle, now: Instant) {
        if let Some((whose, counts)) = self.called.remove(&handle) {
            self.came(whose, counts, now);
        }
    }

    /// Those whose time is over.
    pub fn late(&mut self, now: Instant) -> Vec<Looker> {
        let late =
            |looker: &Looker| matches!(looker.call, Call::Read { until, .. } if until <= now);
        let (late, queue) = std::mem::take(&mut self.queue).into_iter().partition(late);
        self.queue = queue;
        Vec::from(late)
    }

    fn came(&mut self, whose: Whose, counts: bool, now: Instant) {
        self.came.insert(whose);
        if counts && self.owed > 0 {
            self.owed -= 1;
            if self.owed == 0 {
                self.again = Some(now + WAKE_NEXT_AFTER);
            }
        }
    }

    fn call(&mut self, now: Instant) -> Vec<Looker> {
        let (taken, beside) = self.take();
        self.width = self.width.saturating_mul(WAKE_MORE);
        self.again = Some(now + WAKE_ANSWERED_WITHIN);
        for looker in &taken {
            let counts = !beside || !self.idle.contains(&looker.whose);
            match looker.call {
                // Somebody sleeps in it.
                Call::Read { .. } => self.came(looker.whose, counts, now),
                Call::Poll { handle, .. } => {
                    self.called.insert(handle, (looker.whose, counts));
                }
            }
        }
        if self.queue.is_empty() {
            // There is nobody to wake in their place.
            self.owed = self.owed.min(self.called.len());
            self.again = self.again.filter(|_| self.owed == 0 && !self.came.is_empty());
        }
        taken
    }

    /// Takes as many as are to be woken, in the order in which they came, of each user first one; and as
    /// many beside them of those who let a record lie. Says whether there was anybody else.
    fn take(&mut self) -> (Vec<Looker>, bool) {
        let mut taken = Vec::new();
        let (mut others, mut beside) = (0, 0);
        for only_new in [true, false] {
            if others >= self.width {
                break;
            }
            for looker in std::mem::take(&mut self.queue) {
                let is_idle = self.idle.contains(&looker.whose);
                let count = if is_idle { &mut beside } else { &mut others };
                if *count >= self.width || only_new && self.woken.contains(&looker.whose) {
                    self.queue.push_back(looker);
                    continue;
                }
                *count += 1;
                self.woken.insert(looker.whose);
                taken.push(looker);
            }
        }
        (taken, others > 0)
    }
}

impl Looker {
    /// Tells it the name of what is ready, or that its time is over.
    pub fn wake(self, name: Option<Vec<u8>>) {
        match self.call {
            Call::Read { reply, .. } => reply.send(Ok::<_, Errno>(name.unwrap_or_default())),
            Call::Poll { wake, .. } => wake.now(),
        }
    }

    fn polls(&self, handle: Handle) -> bool {
        matches!(self.call, Call::Poll { handle: own, .. } if own == handle)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Lookers, and a clock.
    struct Room {
        lookers: Lookers,
        now: Instant,
    }

    impl Room {
        fn new() -> Room {
            Room { lookers: Lookers::default(), now: Instant::now() }
        }

        fn join(&mut self, mount: u32, handle: u64) {
            let call = Call::Poll { handle: Handle(handle), wake: PollWake::new(|| ()) };
            self.lookers.join(Looker { whose: (MountId(mount), 0), call });
        }

        fn handles(woken: Vec<Looker>) -> Vec<u64> {
            let handle = |looker: Looker| match looker.call {
                Call::Poll { handle, .. } => handle.0,
                Call::Read { .. } => unreachable!("nobody reads"),
            };
            woken.into_iter().map(handle).collect()
        }

        fn one_more(&mut self) -> Vec<u64> {
            Room::handles(self.lookers.one_more(self.now))
        }

        fn come(&mut self, handle: u64) {
            self.lookers.come(Handle(handle), self.now);
        }

        /// What happens when it is time to look, and how long that takes.
        fn still(&mut self) -> (Vec<u64>, Duration) {
            let at = self.lookers.again().unwrap();
            let took = at - self.now;
            self.now = at;
            (Room::handles(self.lookers.still(at)), took)
        }
    }

    #[test]
    fn each_record_wakes_one_and_the_next_if_it_lies() {
        let mut room = Room::new();
        (1..=4).for_each(|handle| room.join(1, handle));
        assert_eq!(room.one_more(), [1]);
        assert_eq!(room.one_more(), [2]);
        room.come(2);
        room.come(1);
        assert_eq!(room.still(), (vec![3], WAKE_NEXT_AFTER));
        room.lookers.none();
        assert_eq!(room.lookers.again(), None);
        assert_eq!(room.one_more(), [4]);
    }

    #[test]
    fn polls_that_were_left_alone_delay_nobody() {
        let mut room = Room::new();
        (1..=1000).for_each(|handle| room.join(1, handle));
        // In the same mount it takes a few moments, in another it is the next.
        room.join(1, 1001);
        room.join(2, 2000);
        assert_eq!(room.one_more(), [1]);
        let (woken, mut took) = room.still();
        assert_eq!(woken[0], 2000);
        loop {
            let (woken, more) = room.still();
            took += more;
            if woken.contains(&1001) {
                break;
            }
        }
        assert!(took <= Duration::from_millis(8), "{took:?}");
    }

    #[test]
    fn who_let_a_record_lie_is_woken_beside_the_others() {
        let mut room = Room::new();
        room.join(1, 1);
        room.join(2, 2);
        assert_eq!(room.one_more(), [1]);
        room.come(1);
        assert_eq!(room.still(), (vec![2], WAKE_NEXT_AFTER));
        room.come(2);
        room.lookers.none();
        for (mount, handle) in [(1, 1), (1, 3), (2, 2), (2, 4)] {
            room.join(mount, handle);
        }
        assert_eq!(room.one_more(), [1, 2]);
        // That it comes is no sign that somebody takes the record.
        room.come(1);
        assert_eq!(room.still().1, WAKE_ANSWERED_WITHIN);
        room.lookers.none();
        // Also who was alone; and until it takes one.
        let mut room = Room::new();
        room.join(1, 1);
        assert_eq!(room.one_more(), [1]);
        room.come(1);
        assert_eq!(room.still(), (vec![], WAKE_NEXT_AFTER));
        room.join(1, 1);
        room.join(2, 2);
        assert_eq!(room.one_more(), [1, 2]);
        room.lookers.none();
        room.join(1, 1);
        assert_eq!(room.one_more(), [1]);
        room.come(1);
        room.join(1, 1);
        room.join(2, 2);
        assert_eq!(room.one_more(), [1]);
    }
}
