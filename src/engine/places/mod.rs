//! What a directory, or a name in one, is by the configuration: governed or plain, computed, counted against a
//! quota, under rules about plain files.
//!
//! What must stay true: it is asked in the transaction that goes by the answer, and follows a directory that moves.
//! Deliberately not here: who may do what there (`actors`).

pub(super) mod at_path;
pub(super) mod computed;
pub(super) mod governed;
pub(super) mod quota;
pub(super) mod scopes;
