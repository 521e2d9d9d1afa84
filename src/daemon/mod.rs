//! The daemon: one process a store, which serves the store's mounts and its control socket.
//!
//! What must stay true: one daemon a store (the store's lock says which); it ends when its last
//! mount is gone or when it is told to, and leaves no mount, no socket and no covered directory
//! behind; nothing that a client does or does not do holds it up. Deliberately not here: what a
//! mount shows (`tree`), what a command does (`service`), the command line (`cli`).

// The store that it serves.
mod chores;
mod lock_files;
mod logging;
mod open;
mod paths;
mod setup;

// Its mounts, and what lies below and around them.
mod mounts;
mod nudge;

// Its control socket, and who comes to it.
mod socket;
mod spare;

// The process: how it begins, is told to end, and fails.
mod failure;
mod signals;
mod spawn;

pub use failure::{Cause, Failure};
pub use logging::{start_log, trim_log};
pub use mounts::covers::Covers;
pub use mounts::mount_table::{
    around as mounted_around, at as mounted_at, here as mounted_here, of_workfs,
};
pub use mounts::options::{OwnOptions, durability, role, root, sync_name};
pub use mounts::point::{
    clean_up, expect_nothing_inside, is_dead, left_covered, resolve, unmount_at,
};
pub use mounts::users::{Keeper, users_of};
pub use mounts::wanted::{expect_mountable, expect_possible};
pub use open::{OpenStore, no_room_for_new, open, open_to_check, open_to_look};
pub use paths::{StorePaths, answered};
pub use setup::{Crowded, Made, Setup, crowded, finish, layout, set_up};
pub use signals::{Patience, hear_of_children, is_ignored, outlive_long_writes};
pub use socket::client::{Answers, Client};
pub use socket::held::{HeldWait, is_held};
pub use socket::wire::{Answer, Ask, DaemonInfo, MountAsk, MountInfo, UnmountAsk, part_of};
pub use spawn::{LOOK_AGAIN, Readiness, Spawned, detach_from_caller, ready_line, start};
pub use workfs_mount::{MOUNT_ON_OWN, MountLine, Unmounting, is_dead as is_dead_mount, within};

pub(crate) use paths::{await_answer, canonical, from_root};

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::{Receiver, Select, Sender, bounded};

use crate::limits::{DAEMON_END_WAIT, FIRST_MOUNT_WAIT, MEMORY_GIVEN_BACK_EVERY};
use crate::names::Shown;
use crate::service::Service;
use crate::store::Durability;
use crate::tree::{Hub, TxnTree, WorkTree};
use mounts::{Mounts, Place};
use socket::SocketFile;
use socket::server::Server;

/// What wakes the daemon's own thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A signal that ends it.
    Signal(i32),
    /// A mount came or went, or a request was served.
    MountsChanged,
    /// A client told it to end.
    Stop,
}

/// How a daemon is to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The store.
    pub paths: StorePaths,
    /// What a commit survives.
    pub sync: Durability,
    /// It goes on without mounts, until it is told to end.
    pub linger: bool,
}

/// What a started daemon offers to the process that it runs in.
pub struct Started<'d> {
    mounts: &'d Mounts,
    service: &'d Service,
}

impl Started<'_> {
    /// Mounts, as a client's request would.
    ///
    /// # Errors
    /// As such a request.
    pub fn mount(&self, ask: &MountAsk) -> Result<Answer, Failure> {
        let uid = rustix::process::getuid().as_raw();
        let added = self.mounts.add(ask, Place::Here, uid, self.service.engine.now())?;
        Ok(Answer::Mounted { mount: added.info, already: added.already, notes: added.notes })
    }
}

/// Runs the daemon until its end, or until `patience` is over. `ready` is called once, when clients are
/// served; an error of it ends the daemon.
///
/// # Errors
/// If the store cannot be opened or the socket not be bound, or what `ready` said.
pub fn run(
    options: &Options,
    patience: &Patience,
    ready: impl FnOnce(&Started<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    workfs_mount::lazy_buffers();
    let (wake, events) = bounded(1024);
    let told = wake.clone();
    // Where the daemon does not come to hear it, whoever runs it asks.
    patience.outlast(move |signal| {
        let _ = told.send(Event::Signal(signal));
    });
    let hub = Hub::new();
    let audience = Arc::clone(&hub);
    // A file that was there is its owner's, also one that is empty.
    let was_there = std::fs::symlink_metadata(options.paths.store()).is_ok();
    let opened = open(&options.paths, options.sync, None, audience);
    let store = opened.inspect_err(|_| {
        if !was_there && !options.paths.exists() {
            open::remove_log(&options.paths);
        }
    })?;
    let began = begin(options, &store, &options.paths.socket()).and_then(|(listener, socket)| {
        let begun = Serving::start(options, &store, hub, (listener, &socket), wake);
        begun.map(|serving| (serving, socket.clone())).inspect_err(|_| leave(&socket))
    });
    let (serving, socket) = match began {
        Ok(began) => began,
        Err(failure) => {
            end(store, options, false);
            return Err(failure);
        }
    };
    tracing::info!(
        store = %options.paths.store().shown(),
        sync = sync_name(options.sync),
        version = env!("CARGO_PKG_VERSION"),
        "the daemon serves"
    );
    let Serving { service, mounts, mut server, looks } = serving;
    let started = Started { mounts: &mounts, service: &service };
    let result = ready(&started);
    if result.is_ok() {
        wait_for_the_end(&mounts, &server, &events);
    }
    // No new client finds it; those that wait for an answer of the mounts get it.
    leave(&socket);
    server.stop_accepting();
    mounts.remove_all();
    let farewells = server.finish();
    let was_used = mounts.were_any();
    drop((mounts, service, looks));
    end(store, options, was_used || options.linger);
    tracing::info!("the daemon ends");
    // Closed with the process: whoever waits for its end hears of it then, and not a moment before.
    std::mem::forget(farewells);
    result
}

/// Takes the socket away.
fn leave(socket: &SocketFile) {
    if let Err(error) = socket.remove() {
        tracing::warn!(%error, "the socket stays behind");
    }
}

/// What serves clients and mounts.
struct Serving {
    service: Arc<Service>,
    mounts: Arc<Mounts>,
    server: Server,
    /// The threads of the chores and the locks end with it.
    looks: Sender<()>,
}

impl Serving {
    /// Starts it all.
    ///
    /// # Errors
    /// Where the system has no more threads or descriptors; whatever was started ends by itself.
    fn start(
        options: &Options,
        store: &OpenStore,
        hub: Arc<Hub>,
        (listener, socket): (UnixListener, &SocketFile),
        wake: Sender<Event>,
    ) -> Result<Serving, Failure> {
        let unmounted = store.service(&options.paths);
        let (is_written, until_unwritten) = (hub.is_written(), hub.until_unwritten());
        let service = Arc::new(Service { is_written, until_unwritten, ..unmounted });
        let (looks, ends) = bounded(0);
        if store.engine.write_protection().is_none() {
            chores::start(&store.engine, ends.clone())
                .map_err(not_started("starting the chores"))?;
            let looked = lock_files::start(&store.engine, ends);
            looked.map_err(not_started("starting to look after locks"))?;
        }
        nudge::start(&hub, &store.engine).map_err(not_started("starting to tell watchers"))?;
        let tree = TxnTree::new(WorkTree::new(store.engine.clone(), Arc::clone(&hub)));
        let mounts = Arc::new(Mounts::new(
            options.paths.clone(),
            options.sync,
            tree,
            (hub, store.engine.clone()),
            wake.clone(),
        ));
        let (own, shared) = (Arc::clone(&mounts), Arc::clone(&service));
        let (listens, served) = ((listener, socket.clone()), (options, store.file(&options.paths)));
        let server = Server::start(listens, served, own, shared, wake);
        let server = server.map_err(not_started("starting to serve the socket"))?;
        Ok(Serving { service, mounts, server, looks })
    }
}

/// A failure to start this.
fn not_started(what: &str) -> impl Fn(std::io::Error) -> Failure {
    move |error| Failure::start(what, &error)
}

/// Closes the store; one that was made, and was of no use to anybody, is not left behind.
fn end(store: OpenStore, options: &Options, was_used: bool) {
    if was_used || !store.is_as_made() {
        store.close(DAEMON_END_WAIT);
    } else {
        store.discard(&options.paths, DAEMON_END_WAIT);
    }
}

/// What may fail before anything else has the store's engine, so that the store can be closed then: a
/// new store's first content, and the socket. Who connects is heard when the server starts.
fn begin(
    options: &Options,
    store: &OpenStore,
    socket: &Path,
) -> Result<(UnixListener, SocketFile), Failure> {
    store.set_up(&options.paths, &Setup::default())?;
    options.paths.make_directory()?;
    let is_shared = store.engine.write_protection().is_some();
    let alone = is_shared.then(|| socket::alone(socket, options.paths.store())).transpose()?;
    let (listener, file) = socket::bind(socket).map_err(|error| {
        let failure = Failure::io(format!("the socket {}", socket.shown()), &error);
        if failure.remedy.is_empty() {
            // What lies at its name is another's, where the directory lets nobody else remove it, or no socket.
            let remedy = "have what lies there removed by whose it is, or use a store in a directory where \
                          nobody else makes files (`--store`)";
            Failure { remedy: remedy.into(), ..failure }
        } else {
            failure
        }
    })?;
    Ok((listener, file.held_by(alone)))
}

/// Returns when a signal or a client says so, or the last mount is gone.
fn wait_for_the_end(mounts: &Mounts, server: &Server, events: &Receiver<Event>) {
    let begin = Instant::now();
    let mut given_back = begin;
    loop {
        mounts.finish_ended();
        if given_back.elapsed() >= MEMORY_GIVEN_BACK_EVERY {
            workfs_mount::give_back_memory();
            given_back = Instant::now();
        }
        let ends = mounts.ends();
        let mut timeout = MEMORY_GIVEN_BACK_EVERY.saturating_sub(given_back.elapsed());
        if ends.is_empty() && !server.lingers() && !server.is_busy() {
            timeout = FIRST_MOUNT_WAIT.saturating_sub(begin.elapsed());
            let was_tried = mounts.tries() > 0;
            if was_tried || timeout.is_zero() {
                if !server.ends_idle() {
                    continue;
                }
                let why =
                    if was_tried { "the last mount is gone" } else { "nobody mounted anything" };
                tracing::info!("{why}");
                return;
            }
        }
        let mut select = Select::new();
        let event = select.recv(events);
        for end in &ends {
            select.recv(end);
        }
        // A time-out and the end of a mount are seen at the head of the loop.
        let Ok(operation) = select.select_timeout(timeout) else { continue };
        if operation.index() == event {
            match operation.recv(events) {
                Ok(Event::MountsChanged) => {}
                Ok(Event::Stop) => return,
                Ok(Event::Signal(signal)) => {
                    tracing::info!(signal, "told to end");
                    return;
                }
                Err(_) => return,
            }
        } else if let Some(end) = ends.get(operation.index().saturating_sub(1)) {
            let _ = operation.recv(end);
        }
    }
}
