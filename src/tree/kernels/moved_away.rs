//! Directories that were moved away from the names under which kernels may know them.
//!
//! A kernel whose `rmdir` succeeds, or `rename` over a directory, takes the one for dead that it had
//! looked up there, and shows it empty for as long as something in it is open. Another mount may have
//! moved that one away since, so that it was a different one that went. Such a call is therefore
//! refused once with ESTALE, upon which the kernel looks the name up again and repeats the call.
//!
//! What must stay true: bounded; a kernel hears of a name once for each directory that left it, so that
//! the repeated call is made. Deliberately not here: files, whose attributes kernels ask for anew.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;
use workfs_mount::MountId;

use crate::limits::{MOVED_AWAY_FROM_ONE_MAX, MOVED_AWAY_MAX};
use crate::names::Dentry;
use crate::numbers::Ino;

/// What left a name.
#[derive(Default)]
struct Left {
    /// The directories, and through which mount each was moved: its kernel moved what it knew itself.
    dirs: Vec<(Ino, Option<MountId>)>,
    /// There were more, which any kernel may mean.
    is_more: bool,
    /// Mounts whose kernels were told since.
    told: Vec<MountId>,
}

impl Left {
    fn may_mislead(&self, mount: MountId, knows: impl Fn(Ino) -> bool) -> bool {
        self.is_more || self.dirs.iter().any(|(dir, mover)| *mover != Some(mount) && knows(*dir))
    }
}

/// Names that directories left.
#[derive(Default)]
pub(super) struct MovedAway(Mutex<Names>);

#[derive(Default)]
struct Names {
    names: HashMap<Dentry, Left>,
    /// There were more, so that any kernel may mean another directory by any name.
    is_more: bool,
    /// Who was told so of which name that is not noted, the last ones, and has not tried again yet.
    told: VecDeque<(MountId, Dentry)>,
}

impl MovedAway {
    /// `dir` leaves a name, by `mover` if a kernel did it. `is_known`: whether any kernel knows a
    /// directory, for when there are too many.
    pub fn note(
        &self,
        from: Dentry,
        dir: Ino,
        mover: Option<MountId>,
        is_known: impl Fn(Ino) -> bool,
    ) {
        let mut state = self.0.lock();
        let Names { names, is_more, .. } = &mut *state;
        if names.len() >= MOVED_AWAY_MAX && !names.contains_key(&from) {
            names.retain(|_, left| left.is_more || left.dirs.iter().any(|(dir, _)| is_known(*dir)));
            if names.len() >= MOVED_AWAY_MAX {
                names.clear();
                *is_more = true;
            }
        }
        let new = Left { is_more: *is_more, ..Left::default() };
        let left = names.entry(from).or_insert(new);
        if left.dirs.len() >= MOVED_AWAY_FROM_ONE_MAX {
            left.dirs.remove(0);
            left.is_more = true;
        }
        left.dirs.push((dir, mover));
        left.told.clear();
    }

    /// Whether no kernel may mean another directory by any name.
    pub fn is_empty(&self) -> bool {
        let state = self.0.lock();
        state.names.is_empty() && !state.is_more
    }

    /// Whether this mount's kernel may take a directory that left a name for the one that lies there;
    /// it is told so by this.
    pub fn takes(&self, from: &Dentry, mount: MountId, knows: impl Fn(Ino) -> bool) -> bool {
        let mut state = self.0.lock();
        let Names { names, is_more, told } = &mut *state;
        let Some(left) = names.get_mut(from) else { return *is_more && tell(told, mount, from) };
        let misleads = !left.told.contains(&mount) && left.may_mislead(mount, knows);
        if misleads {
            left.told.push(mount);
        }
        misleads
    }
}

/// Whether somebody is to be told of a name: who was, and tries again, has looked it up since.
fn tell(told: &mut VecDeque<(MountId, Dentry)>, mount: MountId, from: &Dentry) -> bool {
    let is_it = |(to, of): &(MountId, Dentry)| (to, of) == (&mount, from);
    if let Some(nth) = told.iter().position(is_it) {
        told.remove(nth);
        return false;
    }
    if told.len() >= MOVED_AWAY_MAX {
        told.pop_front();
    }
    told.push_back((mount, from.clone()));
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::FileName;

    const MOVER: MountId = MountId(1);
    const OTHER: MountId = MountId(2);

    fn at(name: &str) -> Dentry {
        Dentry::of(Ino(7), FileName::new(name.as_bytes()).unwrap())
    }

    #[test]
    fn who_knows_what_left_is_told_once_for_each() {
        let moved = MovedAway::default();
        assert!(moved.is_empty());
        let takes =
            |mount, known: &[u64]| moved.takes(&at("dir"), mount, |ino| known.contains(&ino.0));
        assert!(!takes(OTHER, &[8, 9]));
        moved.note(at("dir"), Ino(8), Some(MOVER), |_| true);
        assert!(!takes(MOVER, &[8]), "its kernel moved it");
        assert!(!takes(OTHER, &[9]), "it does not know it");
        assert!(takes(OTHER, &[8]) && !takes(OTHER, &[8]));
        moved.note(at("dir"), Ino(9), None, |_| true);
        assert!(takes(OTHER, &[8]), "of which of the two it is thinking nobody knows");
        assert!(takes(MOVER, &[9]) && !takes(MOVER, &[9]));
    }

    #[test]
    fn only_so_many_are_remembered() {
        let moved = MovedAway::default();
        for nth in 0..3 * MOVED_AWAY_MAX as u64 {
            moved.note(at(&nth.to_string()), Ino(nth), None, |ino| ino == Ino(0));
            assert!(moved.0.lock().names.len() <= MOVED_AWAY_MAX);
            moved.note(at("0"), Ino(0), None, |_| true);
        }
        assert!(moved.takes(&at("0"), OTHER, |ino| ino == Ino(0)), "one that is known stays");
        assert_eq!(moved.0.lock().names[&at("0")].dirs.len(), MOVED_AWAY_FROM_ONE_MAX);
    }

    #[test]
    fn of_what_is_remembered_no_more_everybody_is_told() {
        let moved = MovedAway::default();
        let takes = |name: &str, mount| moved.takes(&at(name), mount, |ino| ino == Ino(1));
        // Of one name so many, and one more.
        for ino in 1..=MOVED_AWAY_FROM_ONE_MAX as u64 + 1 {
            moved.note(at("one"), Ino(ino), None, |_| true);
        }
        assert!(takes("one", OTHER), "which may mean the first");
        assert!(!takes("one", OTHER), "and has looked since");
        assert!(!takes("never", OTHER));
        for nth in 0..MOVED_AWAY_MAX as u64 {
            moved.note(at(&nth.to_string()), Ino(1), None, |_| true);
        }
        assert!(!moved.is_empty());
        for name in ["0", "one", "never"] {
            for _ in 0..2 {
                assert!(takes(name, OTHER) && takes(name, MOVER), "{name}");
                assert!(!takes(name, OTHER) && !takes(name, MOVER), "{name}");
            }
        }
        for nth in 0..=MOVED_AWAY_MAX {
            assert!(takes(&format!("other-{nth}"), OTHER));
        }
        assert!(takes("other-0", OTHER), "told once more, rather than never");
    }
}
