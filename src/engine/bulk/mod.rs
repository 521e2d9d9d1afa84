//! Changes of many things at once: the commit of a transaction, what an import puts in its place, directories that
//! come under the rules, several that are made as one, and whole trees that are removed.
//!
//! What must stay true: each consists of the ordinary changes, under the ordinary rules, so that none is
//! written twice; what is not made as one change goes on where it was broken off. Deliberately not here: how the
//! single changes are made (`nodes`, `records`, `plain_files`).

pub(super) mod commit;
pub(super) mod govern;
pub(super) mod make_dirs;
pub(super) mod put;
pub(super) mod remove_tree;
