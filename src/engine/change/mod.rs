//! What a change is, from its command to its effects: on which terms it is made, how it waits, what it has in its
//! turn, and what it leaves to be told.
//!
//! What must stay true: the time, the caller and all else that a change goes by come with its turn; what is to
//! happen outside is returned as an effect. Deliberately not here: any one change, and where they are made, one
//! after the other (`desk`).

pub(super) mod command;
pub(super) mod doors;
pub(super) mod effects;
pub(super) mod happening;
pub(super) mod queued;
pub(super) mod refuse;
pub(super) mod stop;
pub(super) mod turn;
