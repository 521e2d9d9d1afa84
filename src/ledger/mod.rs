//! The ledger's text: what one event looks like, how events are chained, who can check it.
//!
//! An event is one line of canonical JSON. The SHA-256 of line n, without its newline, stands in
//! line n + 1 as `prev_event_hash`, so that `sha256sum` alone can check the chain.
//!
//! What must stay true: the line is the hashed text. It is stored, shown and exported as it is and
//! never written anew from parsed fields. Deliberately not here: storage, the order of events
//! (the engine's transaction gives `g`), clocks and randomness (both are passed in).

mod canonical;
mod chain;
mod event;
mod hash;
mod payload;
mod trace;
mod via;

pub use canonical::{CanonicalError, canonical};
#[cfg(test)]
pub(crate) use chain::verify;
pub use chain::{ChainBreak, ChainError, Checked, Verifier};
pub use event::{
    Actor, Event, EventName, Role, SCHEMA, Sealed, field, is_transition, only_tells,
    path_of_ledger, seal,
};
pub use hash::{Hash, NotAHash};
pub use payload::{Field, Payload};
pub use trace::{NotATraceparent, SpanId, Trace, TraceId};
pub use via::Via;
