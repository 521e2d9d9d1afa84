//! How many of what there is a user may have: open files, locks, places to wait.
//!
//! What must stay true: no user takes so many that nobody else has any, nor do all together who do not run this
//! process. Deliberately not here: what is shared, and what who has none is told.

use std::collections::HashMap;

/// Why a user may have no more, and how many there are of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsedUp {
    /// All are taken.
    All(usize),
    /// The user has one user's share.
    Own(usize),
    /// The rest is for who runs this process.
    Rest(usize),
}

/// Whether a user runs this process, or could: root.
#[must_use]
pub fn runs_this_process(user: u32) -> bool {
    user == 0 || user == rustix::process::geteuid().as_raw()
}

/// Why a user may have no more of what there are `all` by now, and `most` at most. `count` counts those of the
/// users that it is told; it is asked only where many are taken.
pub(crate) fn used_up(
    user: u32,
    (all, most): (usize, usize),
    count: impl Fn(&dyn Fn(u32) -> bool) -> usize,
) -> Option<UsedUp> {
    let part = most / Shares::PARTS;
    if all < part {
        return None;
    }
    if all >= most {
        return Some(UsedUp::All(all));
    }
    if runs_this_process(user) {
        return None;
    }
    let own = count(&|one| one == user);
    if own >= part {
        return Some(UsedUp::Own(own));
    }
    // Others have no more than all have.
    if all < most - part {
        return None;
    }
    let runs_this = rustix::process::geteuid().as_raw();
    let others = count(&|one| one != 0 && one != runs_this);
    (others >= most - part).then_some(UsedUp::Rest(all))
}

/// So many of something, by the users who have them.
#[derive(Debug)]
pub struct Shares {
    most: usize,
    all: usize,
    of_user: HashMap<u32, usize>,
}

impl Shares {
    /// What there is has so many parts: who does not run this process has one of them at most, and one is kept
    /// for who does.
    pub const PARTS: usize = 4;

    /// So many, all free.
    #[must_use]
    pub fn of(most: usize) -> Shares {
        Shares { most, all: 0, of_user: HashMap::new() }
    }

    /// Whether a user could have one more.
    ///
    /// # Errors
    /// Why not.
    pub fn require(&self, user: u32) -> Result<(), UsedUp> {
        let count = |counts: &dyn Fn(u32) -> bool| {
            let theirs = self.of_user.iter().filter(|(user, _)| counts(**user));
            theirs.map(|(_, own)| own).sum()
        };
        used_up(user, (self.all, self.most), count).map_or(Ok(()), Err)
    }

    /// Counts one more for a user.
    ///
    /// # Errors
    /// Why it has none.
    pub fn take(&mut self, user: u32) -> Result<(), UsedUp> {
        self.require(user)?;
        *self.of_user.entry(user).or_default() += 1;
        self.all += 1;
        Ok(())
    }

    /// A user has one less.
    pub fn give_back(&mut self, user: u32) {
        let Some(own) = self.of_user.get_mut(&user) else { return };
        (*own, self.all) = (*own - 1, self.all - 1);
        if *own == 0 {
            self.of_user.remove(&user);
        }
    }

    /// Whether nobody has any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.of_user.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNS: u32 = 0;

    /// Takes until there is no more.
    fn fill(shares: &mut Shares, user: u32) -> (usize, UsedUp) {
        let mut taken = 0;
        loop {
            match shares.take(user) {
                Ok(()) => taken += 1,
                Err(why) => return (taken, why),
            }
        }
    }

    #[test]
    fn each_user_has_a_share_and_who_runs_this_the_rest() {
        let mut shares = Shares::of(16);
        for user in 64_001..64_004 {
            assert_eq!(fill(&mut shares, user), (4, UsedUp::Own(4)));
        }
        assert_eq!(fill(&mut shares, 64_004), (0, UsedUp::Rest(12)));
        assert_eq!(fill(&mut shares, RUNS), (4, UsedUp::All(16)));
        shares.give_back(64_001);
        assert_eq!(fill(&mut shares, 64_002), (0, UsedUp::Own(4)));
        assert_eq!(fill(&mut shares, 64_004), (1, UsedUp::All(16)));
        shares.give_back(RUNS);
        assert_eq!(fill(&mut shares, 64_005), (0, UsedUp::Rest(15)));
        assert_eq!(fill(&mut shares, RUNS), (1, UsedUp::All(16)));
        for user in [64_001, 64_002, 64_003, 64_004, RUNS] {
            (0..4).for_each(|_| shares.give_back(user));
        }
        assert!(shares.is_empty() && shares.all == 0);
    }

    #[test]
    fn what_who_runs_this_has_takes_nothing_from_others_until_all_are_taken() {
        let mut shares = Shares::of(16);
        (0..8).for_each(|_| shares.take(RUNS).unwrap());
        assert_eq!(fill(&mut shares, 64_001), (4, UsedUp::Own(4)));
        assert_eq!(fill(&mut shares, 64_002), (4, UsedUp::All(16)));
    }
}
