//! What the room's other threads do: they make claims, and give back records whose clients have not
//! heard of them.
//!
//! What must stay true: a record at which somebody may be at work by now is not given back.
//! Deliberately not here: for whom a claim is made, and when (`room`).

use std::panic::{AssertUnwindSafe, catch_unwind};

use crossbeam_channel::Receiver;

use super::{Bell, Told};
use crate::names::AgentName;
use crate::service::{
    self, Caller, ClaimArgs, ClaimReport, Exit, Failure, ReleaseArgs, Reply, Request, Service,
    dispatch,
};

/// What is to be done.
pub(super) enum Job {
    Claim { number: u64, caller: Caller, args: ClaimArgs, registered: bool },
    GiveBack(Caller, Option<AgentName>, ClaimReport),
}

/// A thread that makes claims.
pub(super) fn serve(work: &Receiver<Job>, service: &Service, bell: &Bell) {
    while let Ok(job) = work.recv() {
        match job {
            Job::Claim { number, caller, args, registered } => {
                let reply = in_any_case(|| claim(service, &caller, args, registered));
                bell.ring(Told::Tried(number, reply));
            }
            Job::GiveBack(caller, agent, claimed) => {
                in_any_case(|| {
                    give_back(service, &caller, agent, claimed);
                    Reply::Idle
                });
            }
        }
    }
}

fn claim(service: &Service, caller: &Caller, args: ClaimArgs, registered: bool) -> Reply {
    let known = || match registered {
        true => service.expect_registered(args.agent.as_ref()),
        false => Ok(()),
    };
    match service.admits(caller.uid).and_then(|()| known()) {
        Ok(()) => ask(service, caller, Request::Claim(args)),
        Err(failure) => Reply::Error(failure),
    }
}

/// What comes of it also where it panics: whoever waits would wait for an answer that nobody gives, and the others
/// for a thread that is no more.
fn in_any_case(work: impl FnOnce() -> Reply) -> Reply {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        tracing::error!("a claim for one who waits, or its way back, panicked");
        Reply::Error(Failure {
            exit: Exit::Failed,
            rule: None,
            reason: "the daemon failed while it made this claim".to_owned(),
            remedy: "see the daemon's log beside the store, and whether it was made: `workfs list`"
                .to_owned(),
            place: None,
        })
    })
}

/// Gives back what was claimed for a client that has gone without having read it.
pub fn give_back(
    service: &Service,
    caller: &Caller,
    agent: Option<AgentName>,
    claimed: ClaimReport,
) {
    // Whoever is of that name may have found it, and be at work.
    let is_untouched = service::is_as_claimed(service, caller, &claimed);
    let args = ReleaseArgs { what: claimed.path.into(), agent };
    if !is_untouched.is_ok_and(|untouched| untouched) {
        tracing::warn!(what = args.what, "a record whose claimer is gone is left as it is");
    } else if let Reply::Error(failure) = ask(service, caller, Request::Release(args)) {
        tracing::warn!(%failure, "a record whose claimer is gone stays claimed");
    }
}

/// The last reply to a request.
fn ask(service: &Service, caller: &Caller, request: Request) -> Reply {
    let mut last = Reply::Idle;
    dispatch(service, caller, request, &mut |reply| {
        last = reply;
        true
    });
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_hears_of_a_claim_that_panicked() {
        let reply = in_any_case(|| panic!("a panic that a test asked for"));
        let Reply::Error(failure) = reply else { panic!("{reply:?}") };
        assert_eq!(failure.exit, Exit::Failed);
        assert!(!service::waits_on(&failure), "it would be tried again");
    }
}
