//! What records and drafts say, and what becomes of it: judging, saving, parking, restoring, and the row that each
//! change leaves.
//!
//! What must stay true: nothing invalid replaces something valid, except where the policy flags it; whoever has
//! not seen what is there does not replace it; an id lies in one place. Deliberately not here: the rules of a kind
//! (they are data, see `kind`), when a record is ready (`claims`), and who may write it (`actors/rights`).

pub(super) mod anew;
pub(super) mod apart;
mod arrival;
pub(super) mod backup;
pub(super) mod draft;
pub(super) mod finish;
pub(super) mod flaw;
pub(super) mod judge;
pub(super) mod late;
pub(super) mod made;
pub(super) mod record;
pub(super) mod restore;
pub(super) mod rules;
pub(super) mod save;
pub(super) mod sight;
pub(super) mod whereabouts;
