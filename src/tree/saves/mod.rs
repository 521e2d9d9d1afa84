//! What programs write: into the store at once for plain files, and staged until it is judged for records, drafts and
//! checked files.
//!
//! What must stay true: nobody else reads what was not judged; a handle that wrote nothing saves nothing; what is
//! refused before `close` would be refused by it. Deliberately not here: the judgement (the engine's `records`).

pub(super) mod busy;
mod checked;
pub(super) mod cut;
mod handed_on;
pub(super) mod judging;
mod late;
pub(super) mod plain_save;
pub(super) mod staged;
pub(super) mod unborn;
mod unmade;
pub(super) mod unsaved;
pub(super) mod what;
mod write;
