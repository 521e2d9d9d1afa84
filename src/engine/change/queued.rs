//! A change that waits for its turn, and whoever waits for its answer.
//!
//! What must stay true: each is answered once, whatever becomes of it. Deliberately not here: when it is
//! made (`desk`), and where it waits (`desk/queue`).

use crate::engine::{Command, Context, Stop, Terms, Turn};
use crate::refusal::{Refusal, Rule};

/// Answers one caller after the commit (or its failure).
pub(in crate::engine) type Finish = Box<dyn FnOnce(std::result::Result<(), Refusal>) + Send>;

/// What a queued command leaves to be done after the commit, and how it ended.
pub(super) type Ran = (Finish, std::result::Result<(), Stop>);

/// A queued command: runs in a turn; or, where there is none, answers why.
pub(super) type Job =
    Box<dyn FnOnce(std::result::Result<&mut Turn<'_>, Refusal>) -> Option<Ran> + Send>;

/// A change that waits for its turn.
pub(in crate::engine) struct Queued {
    pub context: Context,
    pub operation: &'static str,
    pub terms: Terms,
    /// The trace of the piece of work that it follows from, where that has one.
    pub trace: Option<[u8; 16]>,
    pub job: Job,
}

impl Queued {
    pub fn new<C: Command>(
        context: Context,
        command: C,
        answer: impl FnOnce(std::result::Result<C::Out, Refusal>) + Send + 'static,
    ) -> Self {
        let (operation, terms) = (command.operation(), command.terms());
        let job: Job = Box::new(move |turn| {
            let turn = match turn {
                Ok(turn) => turn,
                Err(refusal) => {
                    answer(Err(refusal));
                    return None;
                }
            };
            let ran = match turn.require_change(&command) {
                Err(stop) => Err(stop),
                Ok(()) if !terms.keeps_quotas => command.run(turn),
                Ok(()) => {
                    let about = turn.config.has_quotas().then(|| command.about());
                    let ran = command.run(turn);
                    let ran = ran.and_then(|out| turn.require_quotas().map(|()| out));
                    ran.map_err(|stop| turn.told_where(stop, about))
                }
            };
            Some(match ran.map_err(Stop::alone) {
                Ok(out) => {
                    let finish: Finish =
                        Box::new(move |committed| answer(committed.map(move |()| out)));
                    (finish, Ok(()))
                }
                Err(stop) => {
                    let refusal = match &stop {
                        Stop::Refused(refused) => Some(refused.refusal.clone()),
                        Stop::Store(_) => None,
                    };
                    let finish: Finish = Box::new(move |committed| match (refusal, committed) {
                        (_, Err(failure)) => answer(Err(failure)),
                        (Some(refusal), Ok(())) => answer(Err(refusal)),
                        (None, Ok(())) => answer(Err(lost())),
                    });
                    (finish, Err(stop))
                }
            })
        });
        Queued { context, operation, terms, trace: None, job }
    }

    /// Answers that it will not be made.
    pub fn answer(self, refusal: Refusal) {
        tracing::error!(operation = self.operation, "a change cannot be made");
        (self.job)(Err(refusal));
    }
}

pub(in crate::engine) fn too_busy() -> Refusal {
    Refusal::new(
        Rule::Deadline,
        "the queue of changes was full for too long, or the daemon ends",
        "try again: nothing was changed",
    )
}

pub(in crate::engine) fn lost() -> Refusal {
    Refusal::new(
        Rule::Store,
        "the daemon ended before the change was made",
        "start it again and look whether the change is there",
    )
}
