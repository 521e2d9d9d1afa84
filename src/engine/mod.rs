//! The engine: every change of the store goes through here, one after the other.
//!
//! A change is a [`Command`]. It waits in a bounded queue before the desk; who sits there takes all
//! that wait, runs each inside its own savepoint, commits once, and only then answers them all. A
//! command that breaks a rule rolls back its own savepoint only.
//!
//! What must stay true: nobody hears of a change before its commit; nothing that decides is cached
//! outside the transaction. Deliberately not here: the kernel, threads that wait for a commit
//! (the answer travels with the change), and rules of kinds (they are data, see `kind`).

// What a change is, and where all of them are made.
mod change;
mod desk;

// What a change asks in its turn.
mod actors;
mod places;

// The changes: of names, of what files and records say, of who has them, and of many things at once.
mod bulk;
mod claims;
mod nodes;
mod plain_files;
mod records;

// What was.
mod past;

// What the clock brings, and what follows from other changes.
mod chores;
mod lease;

// What is told of all that.
mod metrics;

pub use actors::agents::{PutAgent, Registered, Registry, RemoveAgent};
pub use actors::context::{Context, Origin, ledger_role};
pub use actors::modes::{
    Bits, Who, for_roles, forbids_taking, forbids_writing, goes_by_roles, has_bits, how_to_bind,
    is_stuck, mode_allows, runs_the_store,
};
pub use actors::rights::sees_refusal;
pub use actors::users::{groups_of, user_name};
pub use bulk::commit::{Commit, Found, Step, TxnName, TxnNode, Used, UsedWhat};
pub use bulk::govern::{Govern, GovernRoot};
pub use bulk::make_dirs::MakeDirs;
pub use bulk::put::{Corrected, MayPut, Placed, Put, PutContent};
pub use bulk::remove_tree::{PruneVersions, Pruned, Removal, RemoveTree, Witness};
pub use change::command::{Command, Terms};
pub use change::doors::{Doors, FaultPoint, kill_at};
pub use change::effects::{Audience, Effect, Fate, Live, Nobody, Silence};
pub use change::refuse::{About, Refuse, RefuseText};
pub use change::stop::{Refused, Stop, absent, taken};
pub use change::turn::Turn;
pub use chores::{Chores, Undone, offer};
pub use claims::line::{Line, Place, Wish};
pub use claims::outlook::{Outlook, PARKED, UNPARK};
pub use claims::ranks::Ranks;
pub use claims::ready::{Hindrance, counts_as_done, explain, hindrance, unwritable, when};
pub use claims::take::{
    IsWritten, NEXT, Take, Taken, Wanted, best_claimable, best_ready, next_into, ready_named,
    shown_as_ready,
};
pub use desk::bell::{Bell, Subscription};
pub use desk::sync::Sync;
pub use desk::trouble::AskRoom;
pub use desk::writer::{Engine, start};
pub use lease::{
    Ends, Fence, Heartbeat, LeaseClock, LeaseNote, lease_of, running_leases, told_of_return,
};
pub use nodes::create::{Create, NewContent, OnDraft};
pub use nodes::lane::IntoLane;
pub use nodes::link::Link;
pub use nodes::remove::{Remove, RemoveWhat};
pub use nodes::rename::{Rename, below_itself};
pub use nodes::setattr::{SetAttributes, TimeOrNow};
pub use nodes::while_named::WhileNamed;
pub use nodes::xattr::{RemoveXattr, SetXattr};
pub use past::event::{Leaves, PastEvent, event_of, event_of_record, last_of, until};
pub use past::names::{
    Past, PastNames, past_at, past_record, path_of_past, record_version_name, usual_extension,
};
pub use past::then::{AfterEvent, Had, Then};
pub use past::versions::{VersionThen, version_then, versions_of};
pub use past::when::last_before;
pub use past::whence::{Elsewhere, Told, Whence, whence};
pub use places::at_path::{as_far_as_there, node_at};
pub use places::computed::{is_shown, only_shown, told_why};
pub use places::governed::{
    Governed, Home, Slot, governed, is_plain, kind_of, parked_records, path_below, path_of,
    path_of_dir, slot, would_be_governed,
};
pub use places::quota::inodes_in;
pub use places::scopes::{ScopeTicket, Scopes};
pub use plain_files::checked::{RefuseChecked, SaveChecked, Written};
pub use plain_files::files::{Digest, FILE_KIND, SaveFile};
pub use plain_files::lock_files::ExpireLocks;
pub use plain_files::plain::{Allocate, Write, read as read_plain};
pub use plain_files::versions::{counted, late_versions, retention};
pub use records::anew::{MakeRows, RowsMade};
pub use records::apart::SetApart;
pub use records::draft::{EmptyDraft, moved_by_copy, renamed_over};
pub use records::finish::SaveAndMove;
pub use records::flaw::{Breach, breach, flaw};
pub use records::judge::Text;
pub use records::late::{Late, RefuseLate};
pub use records::made::{Left, Made};
pub use records::restore::{RestoreFile, RestoreRecord};
pub use records::rules::{has_old_rows, rules_noted, rules_since};
pub use records::save::{Save, SaveDraft, Saved};
pub use records::sight::{Base, Sight};
pub use records::whereabouts::{home_of_parked, path_of_backup};
/// Words of the kernel's requests that changes are made by.
pub use workfs_mount::{RenameMode, WriteAt, XattrMode};

use lease::nanos as lease_nanos;

/// Runs what must not end: a panic is a bug, and a thread that is gone would let every later change hang. The
/// daemon ends instead, and what was acknowledged is in the store.
fn or_abort(who: &str, work: impl FnOnce()) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err() {
        tracing::error!("{who} panicked: the daemon ends");
        std::process::abort();
    }
}
