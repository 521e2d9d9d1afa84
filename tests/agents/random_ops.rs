//! What happens in the walk of `random`.

use proptest::prelude::*;

use crate::harness::{SECOND, Space};
use crate::random_model::{AGENTS, Rest, TASKS};

/// What a text is like that an agent saves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum How {
    Sound,
    /// Its status cannot be changed in place.
    Odd,
    /// It is not valid.
    Flawed,
}

#[derive(Clone, Debug)]
pub enum Op {
    Pass(u64),
    Wall(i64),
    See(usize),
    Claim(usize, usize),
    /// A save with what was opened at some earlier claim.
    Save(usize, How),
    /// What held a task at some earlier claim is closed.
    LetGo(usize),
    /// So much is left of the store's disk.
    Disk(Space),
    Release(usize, usize),
    Finish(usize, usize),
    Beat(usize, usize),
    Touch(usize, usize),
    /// An agent's task goes to a backup's name.
    Park(usize, usize),
    /// Whoever has it, or had it, writes it anew.
    Unpark(usize),
    /// An agent writes it into its lane, where it does not lie, without having read it.
    Copy(usize, usize),
    /// A directory takes the name that the task would have there, or goes.
    Block(usize, Rest),
    Unblock(usize, Rest),
    /// The quota is used up, or has room again.
    Fill,
    Empty,
    /// The operator saves a sound text.
    Mend(usize),
    /// The operator moves it to the inbox.
    Free(usize),
    /// The operator gives it to an agent.
    Give(usize, usize),
    /// A new daemon after so long a time, in a new boot of the machine or the same.
    Restart(u64, bool),
}

pub fn op() -> impl Strategy<Value = Op> {
    let (agents, tasks) = (0..AGENTS.len(), 0..TASKS.len());
    let both = (agents.clone(), tasks.clone());
    let place = (tasks.clone(), prop_oneof![3 => Just(Rest::Inbox), 1 => Just(Rest::Dead)]);
    prop_oneof![
        4 => (0u64..6_000).prop_map(|ms| Op::Pass(ms * SECOND / 1_000)),
        3 => (10u64..40).prop_map(|s| Op::Pass(s * SECOND)),
        1 => (-100_000i64..100_000).prop_map(|s| Op::Wall(s * SECOND as i64)),
        2 => agents.prop_map(Op::See),
        6 => both.clone().prop_map(|(a, t)| Op::Claim(a, t)),
        4 => (0usize..64).prop_map(|nth| Op::Save(nth, How::Sound)),
        2 => (0usize..64).prop_map(|nth| Op::Save(nth, How::Odd)),
        2 => (0usize..64).prop_map(|nth| Op::Save(nth, How::Flawed)),
        2 => (0usize..64).prop_map(Op::LetGo),
        1 => prop_oneof![Just(Space::Tight), Just(Space::Full)].prop_map(Op::Disk),
        2 => Just(Op::Disk(Space::Room)),
        1 => both.clone().prop_map(|(a, t)| Op::Release(a, t)),
        2 => both.clone().prop_map(|(a, t)| Op::Finish(a, t)),
        1 => both.clone().prop_map(|(a, t)| Op::Beat(a, t)),
        1 => both.clone().prop_map(|(a, t)| Op::Touch(a, t)),
        3 => both.clone().prop_map(|(a, t)| Op::Park(a, t)),
        1 => tasks.clone().prop_map(Op::Unpark),
        3 => both.clone().prop_map(|(a, t)| Op::Copy(a, t)),
        2 => place.clone().prop_map(|(t, rest)| Op::Block(t, rest)),
        2 => place.prop_map(|(t, rest)| Op::Unblock(t, rest)),
        1 => Just(Op::Fill),
        1 => Just(Op::Empty),
        1 => tasks.clone().prop_map(Op::Mend),
        1 => tasks.prop_map(Op::Free),
        2 => both.prop_map(|(a, t)| Op::Give(a, t)),
        1 => (0u64..40, any::<bool>()).prop_map(|(s, boot)| Op::Restart(s * SECOND, boot)),
    ]
}
