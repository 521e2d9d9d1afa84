//! The engine: every change of the store goes through here, one after the other.
//!
//! A change is a [`Command`]. It waits in a bounded queue before the desk; who sits there takes all
//! that wait, runs each inside its own savepoint, commits once, and only then answers them all. A
//! command that breaks a rule rolls back its own savepoint only.
//!
//! What must stay true: nobody hears of a change before its commit; nothing that decides is cached
//! outside the transaction. Deliberately not here: the kernel, threads that wait for a commit
//! (the answer travels with the change), and rules of kinds (they are data, see `kind`).

// The desk: who writes, what waits there, and who hears of it.
mod alarm;
mod announcer;
mod bell;
mod command;
mod context;
mod desk;
mod doors;
mod effects;
mod line;
mod nameless;
mod no_room;
mod queue;
mod queued;
mod reclaim;
mod turn;
mod writer;

// What a change asks in its turn: places, rights, rules, and what is to be said.
mod agents;
mod arrival;
mod backup;
mod computed;
mod filling;
mod flaw;
mod governed;
mod judge;
mod late;
mod modes;
mod names;
mod outlook;
mod past_names;
mod quota;
mod ready;
mod refuse;
mod rights;
mod rules;
mod scopes;
mod sight;
mod users;
mod versions;

// Changes of names and nodes.
mod apart;
mod create;
mod exchange;
mod govern;
mod lane;
mod link;
mod make_dirs;
mod remove;
mod remove_tree;
mod rename;
mod setattr;
mod sync;
mod while_named;
mod xattr;

// Changes of what records, drafts and plain files say.
mod checked;
mod draft;
mod files;
mod finish;
mod plain;
mod record;
mod restore;
mod save;
mod take;

// Many changes as one, and what comes from outside or from other rules.
mod anew;
mod commit;
mod put;

// What the clock brings.
mod chores;
mod lease;
mod lock_files;

pub use agents::{PutAgent, Registered, Registry, RemoveAgent};
pub use anew::{MakeRows, RowsMade};
pub use apart::SetApart;
pub use backup::{home_of_parked, path_of_backup};
pub use bell::{Bell, Subscription};
pub use checked::{RefuseChecked, SaveChecked, Written};
pub use chores::{Chores, Undone};
pub use command::{Command, Terms};
pub use commit::{Commit, Found, Step, TxnName, TxnNode, Used, UsedWhat};
pub use computed::{is_shown, only_shown, told_why};
pub use context::{Context, Origin, ledger_role};
pub use create::{Create, NewContent, OnDraft};
pub use doors::{Doors, FaultPoint, kill_at};
pub use draft::{EmptyDraft, moved_by_copy, renamed_over};
pub use effects::{Audience, Effect, Fate, Nobody, Silence};
pub use files::{Digest, FILE_KIND, SaveFile};
pub use finish::SaveAndMove;
pub use flaw::{Breach, breach, flaw};
pub use govern::{Govern, GovernRoot};
pub use governed::{
    Governed, Home, Slot, governed, is_plain, path_below, path_of, path_of_dir, slot,
    would_be_governed,
};
pub use judge::Text;
pub use lane::IntoLane;
pub use late::{Late, RefuseLate};
pub use lease::{Ends, Fence, Heartbeat, LeaseClock, LeaseNote, lease_of, told_of_return};
pub use line::{Line, Place, Wish};
pub use link::Link;
pub use lock_files::ExpireLocks;
pub use make_dirs::MakeDirs;
pub use modes::{
    Bits, Who, for_roles, forbids_taking, forbids_writing, goes_by_roles, has_bits, how_to_bind,
    is_stuck, mode_allows, runs_the_store,
};
pub use no_room::AskRoom;
pub use outlook::Outlook;
pub use past_names::{
    Past, PastNames, names_below, past_at, past_record, path_of_past, record_version_name,
    usual_extension, version_name,
};
pub use plain::{Allocate, Write, WriteAt, read as read_plain};
pub use put::{Corrected, MayPut, Placed, Put, PutContent};
pub use quota::inodes_in;
pub use ready::{Hindrance, counts_as_done, explain, hindrance, unwritable, when};
pub use refuse::{About, Refuse, RefuseText};
pub use remove::{Remove, RemoveWhat};
pub use remove_tree::{PruneVersions, Pruned, Removal, RemoveTree, Witness};
pub use rename::{Rename, RenameMode, below_itself};
pub use restore::{RestoreFile, RestoreRecord};
pub use rights::sees_refusal;
pub use rules::{has_old_rows, rules_since};
pub use save::{Left, Made, Save, SaveDraft, Saved};
pub use scopes::{ScopeTicket, Scopes};
pub use setattr::{SetAttributes, TimeOrNow};
pub use sight::{Base, Sight};
pub use sync::Sync;
pub use take::{
    IsWritten, NEXT, Take, Taken, Wanted, best_claimable, best_ready, next_into, ready_named,
    shown_as_ready,
};
pub use turn::{Refused, Stop, Turn, absent, taken};
pub use users::user_name;
pub use versions::{late_versions, retention};
pub use while_named::WhileNamed;
pub use writer::{Engine, start};
pub use xattr::{RemoveXattr, SetXattr, XattrMode};

use lease::nanos as lease_nanos;

/// Runs what must not end: a panic is a bug, and a thread that is gone would let every later change hang. The
/// daemon ends instead, and what was acknowledged is in the store.
fn or_abort(who: &str, work: impl FnOnce()) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err() {
        tracing::error!("{who} panicked: the daemon ends");
        std::process::abort();
    }
}
