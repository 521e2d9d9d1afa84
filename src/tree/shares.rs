//! How many open files each user has, of those that a daemon can have.
//!
//! What must stay true: a user who does not run the store has a share and no more, and all such users
//! together leave a share to who runs it. Deliberately not here: what open files keep in memory (`pins`).

use std::collections::HashMap;

use crate::engine::runs_the_store;
use crate::limits::{HANDLES_MAX, HANDLES_OF_ONE_MAX};
use crate::refusal::{Refusal, Rule};

/// Open files by the users who opened them.
#[derive(Default)]
pub(super) struct Shares {
    of_user: HashMap<u32, usize>,
    all: usize,
}

impl Shares {
    /// Counts one more for a user.
    ///
    /// # Errors
    /// [`Rule::TooManyHandles`].
    pub fn take(&mut self, user: u32) -> Result<(), Refusal> {
        self.take_as(user, runs_the_store(user))
    }

    /// Whether a user could have one more.
    ///
    /// # Errors
    /// [`Rule::TooManyHandles`].
    pub fn require(&self, user: u32) -> Result<(), Refusal> {
        self.require_as(user, runs_the_store(user))
    }

    fn take_as(&mut self, user: u32, runs_the_store: bool) -> Result<(), Refusal> {
        self.require_as(user, runs_the_store)?;
        *self.of_user.entry(user).or_default() += 1;
        self.all += 1;
        Ok(())
    }

    fn require_as(&self, user: u32, runs_the_store: bool) -> Result<(), Refusal> {
        let own = self.of_user.get(&user).copied().unwrap_or_default();
        let most = if runs_the_store { HANDLES_MAX } else { HANDLES_MAX - HANDLES_OF_ONE_MAX };
        let reason = if !runs_the_store && own >= HANDLES_OF_ONE_MAX {
            format!("user {user} has {own} files open, which is one user's share")
        } else if self.all >= most {
            format!("{} files are open in this daemon", self.all)
        } else {
            return Ok(());
        };
        Err(Refusal::new(Rule::TooManyHandles, reason, "close some"))
    }

    /// One of a user's is closed.
    pub fn give_back(&mut self, user: u32) {
        let Some(own) = self.of_user.get_mut(&user) else { return };
        (*own, self.all) = (*own - 1, self.all - 1);
        if *own == 0 {
            self.of_user.remove(&user);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_user_takes_all_and_what_is_closed_can_be_had_again() {
        let mut shares = Shares::default();
        let mut fill =
            |user, runs| (0..).take_while(|_| shares.take_as(user, runs).is_ok()).count();
        assert_eq!([7, 8, 9, 10].map(|user| fill(user, false)), {
            let one = HANDLES_OF_ONE_MAX;
            [one, one, HANDLES_MAX - 3 * one, 0]
        });
        assert_eq!(fill(1, true), HANDLES_OF_ONE_MAX, "what is left is for who runs the store");
        shares.give_back(7);
        assert!(shares.take_as(7, false).is_err() && shares.take_as(1, true).is_ok());
        (0..HANDLES_OF_ONE_MAX - 1).for_each(|_| shares.give_back(7));
        assert!(shares.take_as(7, false).is_err(), "of the others' none is left to others");
        (0..=HANDLES_OF_ONE_MAX).for_each(|_| shares.give_back(1));
        shares.give_back(8);
        assert!(shares.take_as(7, false).is_ok() && shares.take_as(11, false).is_ok());
    }
}
