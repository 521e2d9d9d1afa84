//! The commands, without a terminal and without a socket: a [`Request`] comes in, [`Reply`]s go
//! out, the last of which is a [`Report`] or a [`Failure`].
//!
//! The daemon serves them over its socket, and the command line calls them in its own process
//! where no daemon has the store. Every change is an engine command, the same that a mount sends.
//!
//! What must stay true: nothing here prints, reads the environment or the working directory, or
//! ends the process; whoever asks is named by [`Caller`], which the socket's peer credentials make.
//! Deliberately not here: argument parsing, where the store lies, mounts, SQL.

// The commands, one file each.
mod agents;
mod export;
mod fsck;
mod import;
mod past;
mod project;
mod records;
mod status;
mod upkeep;
mod watch;
mod why;

// What is asked, by whom, and what is answered.
mod reply;
mod request;

// What several of them need.
mod find;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

pub use agents::{AgentInfo, AgentsReport};
pub use export::{ExportReport, export};
pub use find::computed::ONLY_SHOWN;
pub use fsck::{FsckReport, Problem, fsck};
pub use import::Parts;
pub use import::{Correction, DraftReason, ImportReport, Listed, Unreadable};
pub use past::log::LogReport;
pub use past::rewind::RewindReport;
pub use project::{PARTS, ProjectReport, SCRATCHPAD};
pub use records::claim::{
    ClaimReport, claim_wish, is_any_left, is_as_claimed, waited_in_vain, waits_on, workspace_of,
};
pub use records::finish::MoveReport;
pub use records::heartbeat::{HeartbeatReport, LeaseInfo};
pub use records::list::{ListReport, ListRow};
pub use records::ready::{ReadyReport, ReadyRow};
pub use records::show::{HistoryRow, ShowReport};
pub use reply::rows::Whole;
pub use reply::{Exit, Failure, Reply, Report, Sink};
pub use request::caller::Caller;
pub use request::part::Part;
pub use request::permitted::expect_way_to_part;
pub use request::refused::expect_runner;
pub use request::*;
pub use status::{MetricsReport, StateCount, StatusReport, WorkspaceStatus};
pub use upkeep::anew::make_rows;
pub use upkeep::backup::BackupReport;
pub use upkeep::doctor::{DoctorReport, Finding, Health, doctor};
pub use upkeep::gc::{GcProject, GcReport};
pub use upkeep::govern::{GovernReport, Unfit, govern, unfit};
pub use upkeep::misfits::{Misfit, Misfits, misfits};
pub use upkeep::restore::{RestoreReport, restore};
pub use watch::WatchReport;
pub use why::{WhyReport, WhyRow};

use crate::engine::{Engine, IsWritten, runs_the_store};
use crate::names::AgentName;
use crate::refusal::{Refusal, Rule};
use crate::store::{Identity, Read, Readers, Record, StoreError};
use past::{log, rewind};
use records::{claim, finish, heartbeat, list, ready, show};
use upkeep::{backup, gc};

/// What serves requests: an engine, and where its store lies.
pub struct Service {
    /// The engine.
    pub engine: Engine,
    /// The store's file.
    pub store: PathBuf,
    /// Which file that is: its name may be another's by now.
    pub file: Identity,
    /// Whether a program writes a file through a mount.
    pub is_written: IsWritten,
    /// Waits a moment until none does; false: one still does.
    pub until_unwritten: IsWritten,
    /// The names by which imports write large files just now.
    pub importing: Parts,
}

impl Service {
    /// A service on a running engine whose store lies at `store`, and is that file, and that is not mounted.
    #[must_use]
    pub fn new(engine: Engine, store: impl Into<PathBuf>, file: Identity) -> Self {
        let (is_written, until_unwritten): (IsWritten, IsWritten) =
            (Arc::new(|_, _| false), Arc::new(|_, _| true));
        let (store, importing) = (store.into(), Parts::default());
        Service { engine, store, file, is_written, until_unwritten, importing }
    }

    /// The user whose the store's file is; of one whose name somebody gave to another nobody knows.
    fn owner(&self) -> Option<u32> {
        self.file.owner(&self.store)
    }

    /// Whether a user is an operator of this store, whom no agent's name binds: who runs it, and who
    /// has its file.
    #[must_use]
    pub fn is_operator(&self, uid: u32) -> bool {
        runs_the_store(uid) || self.owner() == Some(uid)
    }

    /// Whether the store's file is somebody's who does not run it.
    #[must_use]
    pub fn is_of_another(&self) -> bool {
        self.owner().is_some_and(|owner| !runs_the_store(owner))
    }

    /// Refuses a user of whom a daemon serves nothing: who neither runs the store, has its file, nor is bound
    /// to an agent. To be asked at each request, since a connection may outlive what let it in.
    ///
    /// # Errors
    /// Whom it refuses.
    pub fn admits(&self, uid: u32) -> Result<(), Failure> {
        if self.engine.agents().bound(uid).is_some() || self.is_operator(uid) {
            return Ok(());
        }
        let reason = format!("this store is not user {uid}'s");
        let remedy = format!(
            "ask its owner to make you an agent (`workfs agent add NAME --uid {uid}`), or use a store of \
             your own (`--store`)"
        );
        Err(Failure::new(Exit::Denied, reason, remedy))
    }

    /// Whether the agent that a request acts for by its name is registered.
    #[must_use]
    pub fn is_registered(&self, agent: Option<&AgentName>) -> bool {
        agent.is_some_and(|agent| self.engine.agents().get(agent).is_some())
    }

    /// Refuses who waits in the name of an agent that was registered when the waiting began, and is not any
    /// more. By its name alone it would be one that never was, and may act.
    ///
    /// # Errors
    /// Whom it refuses.
    pub fn expect_registered(&self, agent: Option<&AgentName>) -> Result<(), Failure> {
        let Some(agent) = agent.filter(|agent| !self.is_registered(Some(agent))) else {
            return Ok(());
        };
        let reason = format!("{agent} was removed from the agents while it waited");
        let remedy = format!("ask an operator to register it again (`workfs agent add {agent}`)");
        Err(Failure::by(Rule::Forbidden, reason, remedy))
    }

    /// Refuses a user that who may ask for something leaves out: the one rule for that, of requests and of
    /// what a daemon is asked about itself.
    ///
    /// # Errors
    /// Whom it refuses.
    pub fn permits(&self, uid: u32, by: By, operation: &str) -> Result<(), Failure> {
        if by != By::Agents
            && let Some(agent) = self.engine.agents().bound(uid)
        {
            let reason = format!("`{operation}` is not for {agent}, an agent");
            return Err(Failure::by(Rule::Forbidden, reason, "ask whoever runs the store"));
        }
        if by == By::Runner && !runs_the_store(uid) {
            let own = rustix::process::geteuid().as_raw();
            let reason = format!(
                "`{operation}` acts outside of the tree with the rights of user {own}, whom the daemon \
                 runs as, and is not for user {uid}, who only has the store's file"
            );
            let remedy = format!(
                "ask user {own} or root; or have the daemon run as user {uid}: `workfs unmount --all` by \
                 user {own}, then `workfs mount` by user {uid}"
            );
            return Err(Failure::by(Rule::Forbidden, reason, remedy));
        }
        Ok(())
    }

    /// Looks at a record that is to be taken: anew when somebody was writing it, who gets a moment to
    /// end that, as from a rename.
    fn unwritten<T>(
        &self,
        look: impl Fn() -> Result<T, Failure>,
        record: impl Fn(&T) -> &Record,
    ) -> Result<T, Failure> {
        let first = look()?;
        let found = record(&first);
        let Some(ino) = found.ino().filter(|ino| (self.is_written)(*ino, Some(found))) else {
            return Ok(first);
        };
        if (self.until_unwritten)(ino, Some(found)) {
            return look();
        }
        Err(Refusal::being_written(&found.id).into())
    }

    /// Asks one snapshot.
    fn read<T>(&self, work: impl FnOnce(&dyn Read) -> Result<T, Failure>) -> Result<T, Failure> {
        ask(&**self.engine.readers(), work)
    }
}

/// Asks one snapshot.
fn ask<T>(
    readers: &dyn Readers,
    work: impl FnOnce(&dyn Read) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut work = Some(work);
    let asked = crate::store::read(readers, |snapshot| Ok(work.take().map(|work| work(snapshot))))?;
    asked.unwrap_or_else(|| Err(StoreError::Impossible("a read that gave nothing".into()).into()))
}

/// Serves `request` for `caller`. What there is to say goes to `sink`; the last reply is
/// [`Reply::Report`] or [`Reply::Error`], and there is always exactly one of them, unless the
/// client is gone: `sink` returns false then, and the request ends as soon as that is sound.
pub fn dispatch(service: &Service, caller: &Caller, request: Request, sink: Sink<'_>) {
    let operation = request.properties().name;
    let caller = match admitted(service, caller, &request) {
        Ok(caller) => caller,
        Err(failure) => {
            refused::note_refused(service, caller, (operation, request.what()), &failure);
            let _ = sink(Reply::Error(failure));
            return;
        }
    };
    let caller = &caller;
    tracing::debug!(operation, actor = %caller.name, "a request");
    let done = match request {
        Request::Show(args) => show::show(service, caller, &args).map(Report::Show),
        Request::List(args) => list::list(service, caller, &args, sink),
        Request::Ready(args) => ready::ready(service, caller, &args, sink),
        Request::Claim(args) => claim::claim(service, caller, &args).map(Report::Claim),
        Request::Done(args) => finish::done(service, caller, &args).map(Report::Move),
        Request::Fail(args) => finish::fail(service, caller, &args).map(Report::Move),
        Request::Release(args) => finish::release(service, caller, &args).map(Report::Move),
        Request::Log(args) => log::log(service, &caller.part, &args, sink).map(Report::Log),
        Request::Watch(args) => watch::watch(service, &caller.part, &args, sink).map(Report::Watch),
        Request::Why(args) => why::why(service, caller, &args).map(Report::Why),
        Request::Heartbeat(args) => {
            heartbeat::heartbeat(service, caller, &args).map(Report::Heartbeat)
        }
        Request::Agents => Ok(Report::Agents(agents::list(service))),
        Request::AgentAdd(args) => agents::add(service, caller, &args).map(Report::Agents),
        Request::AgentRemove(args) => agents::remove(service, caller, &args).map(Report::Agents),
        Request::Status => status::status(service).map(Report::Status),
        Request::Metrics => status::metrics(service).map(Report::Metrics),
        Request::Import(args) => import::import(service, caller, &args, sink).map(Report::Import),
        Request::Export(args) => {
            let config = service.engine.config();
            let of = (&**service.engine.readers(), Some(&*config));
            export::export(of, &caller.part, &args, sink).map(Report::Export)
        }
        Request::Fsck => {
            let config = service.engine.config();
            fsck::fsck(&**service.engine.readers(), Some(&config), sink).map(Report::Fsck)
        }
        Request::Doctor => Ok(Report::Doctor(doctor(&service.store, Ok(service), sink))),
        Request::Gc(args) => gc::gc(service, caller, &args, sink).map(Report::Gc),
        Request::ProjectNew(args) => project::new(service, caller, &args).map(Report::Project),
        Request::Rewind(args) => rewind::rewind(service, caller, &args).map(Report::Rewind),
        Request::Backup(args) => backup::backup(service, &args, sink).map(Report::Backup),
    };
    let last = match done {
        Ok(report) => Reply::Report(Box::new(report)),
        Err(failure) => Reply::Error(failure),
    };
    // Whether anybody still hears it does not matter any more.
    let _ = sink(last);
}

/// Whom the caller acts for in this request, if it may ask it.
fn admitted(service: &Service, caller: &Caller, request: &Request) -> Result<Caller, Failure> {
    let registry = service.engine.agents();
    let Properties { name, by, of, .. } = request.properties();
    service.permits(caller.uid, by, name)?;
    match of {
        Of::Store => caller.part.expect_whole(name)?,
        Of::Tree => {}
    }
    caller.clone().acting(&registry, request.agent())
}
