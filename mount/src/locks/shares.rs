//! How many locks, and places to wait for one, a user may have.
//!
//! What must stay true: no user takes so many that nobody else has any, nor do all together who do not run this
//! process. Deliberately not here: counting, which is only done where somebody has many.

/// What there is has so many parts: who does not run this process has one of them at most, and one is left to who
/// does.
const PARTS: usize = 4;

/// Whether a user may have no more of what there are `all` by now, and `most` at most; `own` counts the user's.
pub(super) fn are_used_up(
    user: u32,
    (all, most): (usize, usize),
    own: impl FnOnce() -> usize,
) -> bool {
    let part = most / PARTS;
    if all < part {
        return false;
    }
    // SAFETY: it only returns a number and cannot fail.
    let runs_this = user == 0 || user == unsafe { libc::geteuid() };
    match runs_this {
        true => all >= most,
        false => all >= most - part || own() >= part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_run_this_has_a_part_and_leaves_one() {
        let other = u32::MAX - 1;
        let used_up = |user, all, own| are_used_up(user, (all, 100), || own);
        assert!(!used_up(other, 24, 24) && used_up(other, 25, 25) && !used_up(other, 25, 24));
        assert!(!used_up(other, 74, 0) && used_up(other, 75, 0));
        assert!(!used_up(0, 99, 99) && used_up(0, 100, 0));
    }
}
