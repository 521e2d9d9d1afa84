//! The places at the socket: how many clients a daemon serves at once, and how many of them are one
//! user's.
//!
//! What must stay true: a user who does not run the store has a share and no more, and all such users
//! together leave some places free; who holds a mount, or hears what happens, is in the way of nobody
//! who asks. Deliberately not here: for how long a place is held (`server`, `wire`).

use std::collections::HashMap;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use parking_lot::Mutex;

use super::failure::{Cause, Failure};
use crate::engine::runs_the_store;
use crate::limits::{CONNECTIONS_MAX, FOLLOWERS_MAX, MOUNTS_MAX, PLACES_PARTS};

/// So many places of one sort, by the users who have them.
#[derive(Debug)]
pub struct Shares {
    places: usize,
    taken: HashMap<u32, usize>,
}

impl Shares {
    /// So many places, all free.
    #[must_use]
    pub fn of(places: usize) -> Shares {
        Shares { places, taken: HashMap::new() }
    }

    /// Takes a place for a user; `what` is the word for those who have one.
    ///
    /// # Errors
    /// If there is none for that user.
    pub fn take(&mut self, uid: u32, what: &str) -> Result<(), Failure> {
        let part = self.places / PLACES_PARTS;
        let count = |counts: &dyn Fn(u32) -> bool| {
            let theirs = self.taken.iter().filter(|(uid, _)| counts(**uid));
            theirs.map(|(_, taken)| taken).sum::<usize>()
        };
        let all = count(&|_| true);
        let (own, others) = (count(&|one| one == uid), count(&|one| !runs_the_store(one)));
        let mut reason = None;
        if all >= self.places {
            reason = Some(format!("the daemon has {all} {what} already"));
        } else if !runs_the_store(uid) && own >= part {
            reason = Some(format!("the daemon has {own} {what} of user {uid} already, its share"));
        } else if !runs_the_store(uid) && others >= self.places - part {
            reason =
                Some(format!("the daemon has {all} {what} already; the rest is its own user's"));
        }
        match reason {
            Some(reason) => Err(Failure::new(Cause::Busy, reason, "try again in a moment")),
            None => {
                *self.taken.entry(uid).or_default() += 1;
                Ok(())
            }
        }
    }

    /// Gives a user's place back.
    pub fn give_back(&mut self, uid: u32) {
        if let Some(taken) = self.taken.get_mut(&uid) {
            *taken -= 1;
            if *taken == 0 {
                self.taken.remove(&uid);
            }
        }
    }
}

/// What a client has its place for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    /// It asks, and is answered soon.
    Asks,
    /// It hears what happens, as long as it likes.
    Follows,
    /// A mount lives as long as it does.
    Holds,
}

/// All places, and who has them.
#[derive(Debug)]
pub struct Places(Mutex<Table>);

#[derive(Debug)]
struct Table {
    clients: HashMap<u64, Client>,
    ask: Shares,
    follow: Shares,
    hold: Shares,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    uid: u32,
    seat: Seat,
}

impl Default for Places {
    fn default() -> Self {
        Places(Mutex::new(Table {
            clients: HashMap::new(),
            ask: Shares::of(CONNECTIONS_MAX),
            follow: Shares::of(FOLLOWERS_MAX),
            hold: Shares::of(MOUNTS_MAX),
        }))
    }
}

impl Table {
    fn shares(&mut self, seat: Seat) -> (&mut Shares, &'static str) {
        match seat {
            Seat::Asks => (&mut self.ask, "clients"),
            Seat::Follows => (&mut self.follow, "clients that follow what happens"),
            Seat::Holds => (&mut self.hold, "clients that hold a mount"),
        }
    }

    fn take(&mut self, seat: Seat, uid: u32) -> Result<(), Failure> {
        let (shares, what) = self.shares(seat);
        shares.take(uid, what)
    }
}

impl Places {
    /// Gives a new client a place to ask from.
    ///
    /// # Errors
    /// If there is none for its user.
    pub fn admit(&self, number: u64, uid: u32, stream: UnixStream) -> Result<(), Failure> {
        let mut table = self.0.lock();
        table.take(Seat::Asks, uid)?;
        table.clients.insert(number, Client { stream, uid, seat: Seat::Asks });
        Ok(())
    }

    /// Gives a client another place for the one that it has.
    ///
    /// # Errors
    /// If there is none for its user; it keeps its own then.
    pub fn change(&self, number: u64, to: Seat) -> Result<(), Failure> {
        let mut table = self.0.lock();
        let Some((uid, from)) = table.clients.get(&number).map(|client| (client.uid, client.seat))
        else {
            return Ok(());
        };
        if from == to {
            return Ok(());
        }
        table.take(to, uid)?;
        table.shares(from).0.give_back(uid);
        if let Some(client) = table.clients.get_mut(&number) {
            client.seat = to;
        }
        Ok(())
    }

    /// Takes a client's place from it.
    pub fn leave(&self, number: u64) {
        let mut table = self.0.lock();
        if let Some(client) = table.clients.remove(&number) {
            table.shares(client.seat).0.give_back(client.uid);
        }
    }

    /// Whether nobody has a place.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.lock().clients.is_empty()
    }

    /// Takes nothing more from any client.
    pub fn hear_no_more(&self) {
        for client in self.0.lock().clients.values() {
            // Whoever follows is told nothing more, and may not even take what it was told.
            let how = if client.seat == Seat::Follows { Shutdown::Both } else { Shutdown::Read };
            // Fails where the client was faster.
            let _ = client.stream.shutdown(how);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNS: u32 = 0;

    /// Takes places until there is none.
    fn fill(shares: &mut Shares, uid: u32) -> usize {
        (0..).find(|_| shares.take(uid, "clients").is_err()).unwrap()
    }

    #[test]
    fn each_user_has_a_share_and_who_runs_the_store_the_rest() {
        let mut shares = Shares::of(16);
        for uid in 64_001..64_004 {
            assert_eq!(fill(&mut shares, uid), 4);
        }
        assert_eq!(fill(&mut shares, 64_004), 0, "the last part is who runs the store's");
        assert_eq!(fill(&mut shares, RUNS), 4);
        shares.give_back(64_001);
        assert_eq!((fill(&mut shares, 64_002), fill(&mut shares, 64_004)), (0, 1));
        shares.give_back(RUNS);
        assert_eq!((fill(&mut shares, 64_005), fill(&mut shares, RUNS)), (0, 1));
    }

    #[test]
    fn who_holds_or_follows_has_a_place_of_its_own() {
        let places = Places::default();
        for number in 0..2 * CONNECTIONS_MAX as u64 {
            let (stream, _) = UnixStream::pair().unwrap();
            places.admit(number, RUNS, stream).unwrap();
            let to = if number % 2 == 0 { Seat::Holds } else { Seat::Follows };
            places.change(number, to).unwrap();
        }
        (0..2 * CONNECTIONS_MAX as u64).for_each(|number| places.leave(number));
        assert!(places.is_empty());
        assert!(places.0.lock().hold.taken.is_empty() && places.0.lock().follow.taken.is_empty());
    }
}
