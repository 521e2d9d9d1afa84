//! What is refused at the socket before the engine is asked. It stands in `why` and in the ledger
//! all the same, as in a mount, so that whoever runs the store sees who tried.
//!
//! Deliberately not here: what is refused (`admitted`, `permitted`), and what the engine refuses.

use crate::engine::{About, Refuse, runs_the_store};
use crate::refusal::{Refusal, Rule};
use crate::service::find::find;
use crate::service::{By, Caller, Failure, Service};

/// Notes that a user who does not run the store tried what it may not. `what` is the record that it was
/// about, by an id or a path.
pub fn note_refused(
    service: &Service,
    caller: &Caller,
    (operation, what): (&'static str, Option<&str>),
    failure: &Failure,
) {
    let agents = service.engine.agents();
    if failure.rule != Some(Rule::Forbidden) || runs_the_store(caller.uid) {
        return;
    }
    // It is itself that tried, whoever it said it was.
    let Ok(caller) = caller.clone().acting(&agents, None) else { return };
    let config = service.engine.config();
    let lies = what.and_then(|what| {
        let found = service.read(|read| find(read, &config, &caller.part, what)).ok()?;
        found.path().cloned()
    });
    let about = lies.map_or(About::Nothing, About::Path);
    let refusal = Refusal::new(Rule::Forbidden, failure.reason.clone(), failure.remedy.clone());
    // The answer is the refusal, which the caller has already.
    let _ = service.engine.run(caller.context(), Refuse { operation, about, refusal });
}

/// Refuses what only who runs the daemon may ask it about itself.
///
/// # Errors
/// Whom it refuses.
pub fn expect_runner(
    service: &Service,
    caller: &Caller,
    operation: &'static str,
) -> Result<(), Failure> {
    let may = service.permits(caller.uid, By::Runner, operation);
    may.inspect_err(|failure| note_refused(service, caller, (operation, None), failure))
}
