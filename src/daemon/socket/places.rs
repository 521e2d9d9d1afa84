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
use workfs_mount::{Shares, UsedUp};

use crate::daemon::failure::{Cause, Failure};
use crate::limits::{CONNECTIONS_MAX, FOLLOWERS_MAX, MOUNTS_MAX};

/// What a user is told who can have no place; `what` is the word for those who have one.
pub fn no_place(user: u32, why: UsedUp, what: &str) -> Failure {
    let reason = match why {
        UsedUp::All(all) => format!("the daemon has {all} {what} already"),
        UsedUp::Own(own) => {
            format!("the daemon has {own} {what} of user {user} already, its share")
        }
        UsedUp::Rest(all) => {
            format!("the daemon has {all} {what} already; the rest is its own user's")
        }
    };
    Failure::new(Cause::Busy, reason, "try again in a moment")
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
        shares.take(uid).map_err(|why| no_place(uid, why, what))
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
        assert!(places.0.lock().hold.is_empty() && places.0.lock().follow.is_empty());
    }
}
