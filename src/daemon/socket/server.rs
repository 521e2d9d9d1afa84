//! Serving the control socket: a thread a connection, at most so many (`places`).
//!
//! What must stay true: served are only root, the daemon's user, the store's owner, and users who
//! are bound to agents, as these agents; a client that is gone, silent or slow holds a thread for a
//! bounded time and nothing else. Deliberately not here: the form of what is said (`wire`), and
//! what the commands do (`service`).

mod farewells;
mod mounting;

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use parking_lot::Mutex;

use farewells::{Farewells, Why};
use mounting::tell_unmounted;

use super::lines::Lines;
use super::places::{Places, Seat};
use super::room::{Room, give_back};
use super::wire::{Answer, Ask, DaemonInfo};
use super::working::Work;
use super::{Peer, SocketFile};
use crate::daemon::failure::{Cause, Failure};
use crate::daemon::mounts::Mounts;
use crate::daemon::mounts::options::sync_name;
use crate::daemon::open::StoreFile;
use crate::daemon::{Event, Options, socket, spare};
use crate::engine::runs_the_store;
use crate::limits::{DAEMON_END_WAIT, SOCKET_PATIENCE};
use crate::names::Shown;
use crate::service::{
    self, Caller, ClaimArgs, ClaimReport, Effect, Of, Properties, Reply, Request, Service,
    dispatch, expect_runner, expect_way_to_part,
};
use crate::store::Readers;

/// The serving of one socket.
pub struct Server {
    shared: Arc<Shared>,
    /// Until no more connections are taken.
    listener: Option<UnixListener>,
    accepting: JoinHandle<()>,
}

struct Shared {
    info: DaemonInfo,
    file: StoreFile,
    socket: SocketFile,
    mounts: Arc<Mounts>,
    service: Arc<Service>,
    wake: Sender<Event>,
    /// The daemon goes on without mounts: it was told so when it began, or with one of its mounts.
    linger: AtomicBool,
    stopping: AtomicBool,
    work: Work,
    places: Places,
    /// Those who want to see the end: closed when all is over.
    farewells: Farewells,
    /// Those who wait for a record; opened by the first of them.
    room: Mutex<Option<Room>>,
}

impl Server {
    /// Starts to serve.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn start(
        (listener, socket): (UnixListener, SocketFile),
        (options, file): (&Options, StoreFile),
        mounts: Arc<Mounts>,
        service: Arc<Service>,
        wake: Sender<Event>,
    ) -> io::Result<Server> {
        let info = DaemonInfo {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            store: options.paths.store().to_string_lossy().into_owned(),
            since: service.engine.now().rfc3339_seconds(),
            sync: sync_name(options.sync).to_owned(),
            is_removed: false,
        };
        let shared = Arc::new(Shared {
            info,
            file,
            socket,
            mounts,
            service,
            work: Work::new(wake.clone()),
            wake,
            linger: AtomicBool::new(options.linger),
            stopping: AtomicBool::new(false),
            places: Places::default(),
            farewells: Farewells::default(),
            room: Mutex::default(),
        });
        shared.let_others_in();
        let (taking, taker) = (listener.try_clone()?, Arc::clone(&shared));
        let accepting = std::thread::Builder::new()
            .name("socket".into())
            .stack_size(256 << 10)
            .spawn(move || accept(&taking, &taker))?;
        Ok(Server { shared, listener: Some(listener), accepting })
    }

    /// Whether the daemon goes on without mounts.
    #[must_use]
    pub fn lingers(&self) -> bool {
        self.shared.lingers()
    }

    /// Whether a request is being served that the daemon's end should wait for.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.shared.work.is_any()
    }

    /// Whether the daemon may end because nothing is left to do: nobody is being served, and who asks for
    /// a mount from now on hears nothing, and asks the next daemon.
    #[must_use]
    pub fn ends_idle(&self) -> bool {
        self.shared.work.end_idle()
    }

    /// Takes no more connections, and no more requests from those there are.
    pub fn stop_accepting(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Wakes the accepting thread: on Linux `accept` then fails at once.
        if let Some(listener) = self.listener.take()
            && let Err(error) = rustix::net::shutdown(&listener, rustix::net::Shutdown::Both)
        {
            tracing::warn!(%error, "the socket does not close");
        }
        if let Some(room) = &*self.shared.room.lock() {
            room.close();
        }
        self.shared.places.hear_no_more();
    }

    /// Waits, not for long, until the requests under way are answered. What is returned is to be
    /// closed by nothing but the end of the process: some clients wait for that.
    #[must_use]
    pub fn finish(self) -> Vec<UnixStream> {
        if self.accepting.join().is_err() {
            tracing::error!("the socket's thread panicked");
        }
        let begin = Instant::now();
        let room = self.shared.room.lock().take();
        room.into_iter().for_each(|room| room.finish(DAEMON_END_WAIT));
        while !self.shared.places.is_empty() && begin.elapsed() < DAEMON_END_WAIT {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.shared.farewells.take()
    }
}

impl Shared {
    fn readers(&self) -> &dyn Readers {
        &**self.service.engine.readers()
    }

    /// The socket's mode follows the register, and who has the store's file: nobody else has anything to ask.
    fn let_others_in(&self) {
        let service = &self.service;
        let let_in = service.engine.agents().binds_users() || service.is_of_another();
        if let Err(error) = self.socket.let_others_in(let_in) {
            tracing::warn!(%error, let_in, "the socket's mode stays as it is");
        }
    }
}

fn accept(listener: &UnixListener, shared: &Arc<Shared>) {
    for number in 0.. {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(_) if shared.stopping.load(Ordering::SeqCst) => return,
            Err(error) => {
                // Out of descriptors, most likely: some will be free in a moment.
                tracing::warn!(%error, "a connection was not accepted");
                std::thread::sleep(Duration::from_millis(50));
                continue;
            }
        };
        if let Err(error) = admit(number, stream, shared) {
            tracing::debug!(%error, "a connection was dropped");
        }
    }
}

fn admit(number: u64, stream: UnixStream, shared: &Arc<Shared>) -> io::Result<()> {
    stream.set_read_timeout(Some(SOCKET_PATIENCE))?;
    let mut lines = Lines::within(stream, SOCKET_PATIENCE);
    let peer = socket::peer(lines.stream())?;
    let copies =
        || -> io::Result<_> { Ok((lines.stream().try_clone()?, lines.stream().try_clone()?)) };
    let admitted = match refused(shared, peer) {
        Some(failure) => Err(failure),
        None => spare::expect(lines.stream(), spare::Use::Asks, shared.readers())
            .and_then(|()| copies().map_err(|error| Failure::io("taking a connection", &error)))
            .and_then(|(copy, spare)| shared.places.admit(number, peer.uid, copy).map(|()| spare)),
    };
    let spare = match admitted {
        Ok(spare) => spare,
        // Whoever accepts waits for nobody.
        Err(failure) => return lines.send_at_once(&Answer::Failed(failure)),
    };
    let own = Arc::clone(shared);
    let serving = std::thread::Builder::new().name(format!("client-{number}")).spawn(move || {
        let served = Served { shared: &own, number };
        if let Err(error) = serve(&served, peer, lines) {
            tracing::debug!(client = peer.pid, %error, "the connection ended");
        }
        drop(served);
    });
    let Err(error) = serving else { return Ok(()) };
    shared.places.leave(number);
    tracing::warn!(%error, "no thread for a connection");
    // Whoever hears nothing takes the daemon for one that is ending, and asks again.
    let failure = Failure::start("the daemon has no thread for this connection", &error);
    Lines::within(spare, SOCKET_PATIENCE).send_at_once(&Answer::Failed(failure))
}

/// A client that has a place, which it gives up also when its thread panics.
struct Served<'s> {
    shared: &'s Shared,
    number: u64,
}

impl Drop for Served<'_> {
    fn drop(&mut self) {
        self.shared.places.leave(self.number);
    }
}

impl Shared {
    fn lingers(&self) -> bool {
        self.linger.load(Ordering::SeqCst)
    }

    /// What `ps` says of this daemon.
    fn info(&self) -> DaemonInfo {
        DaemonInfo { is_removed: self.file.is_removed(), ..self.info.clone() }
    }
}

/// What a user hears whom the daemon does not serve, or not any more.
fn refused(shared: &Shared, peer: Peer) -> Option<Failure> {
    shared.service.admits(peer.uid).err().map(denied)
}

/// What `service` refuses to who asks.
fn denied(refused: service::Failure) -> Failure {
    let rule = refused.rule;
    Failure { rule, ..Failure::new(Cause::Denied, refused.reason, refused.remedy) }
}

/// Refuses who only has the store's file, or is an agent, what the daemon does outside of the tree; of
/// commands `service` does.
fn permitted(shared: &Shared, peer: Peer, ask: Ask) -> Result<Ask, Failure> {
    let operation = match &ask {
        Ask::Mount(_) => "mount",
        Ask::Unmount(_) => "unmount",
        Ask::Stop => "unmount --all",
        Ask::Ps | Ask::Do(_) | Ask::Within(_) | Ask::Interrupt => return Ok(ask),
    };
    let caller = Caller::new(peer.uid, peer.gid, Some(peer.pid));
    match expect_runner(&shared.service, &caller, operation) {
        // Nobody would find what is written in a new mount.
        Ok(()) if matches!(ask, Ask::Mount(_)) => shared.info().expect_store().map(|()| ask),
        Ok(()) => Ok(ask),
        Err(refused) => Err(denied(refused)),
    }
}

/// Who asks as from a part of the tree, if it may.
fn within(shared: &Shared, caller: Result<Caller, Failure>) -> Result<Caller, Failure> {
    let caller = caller?;
    let shown = || shared.mounts.shown_to_others();
    expect_way_to_part(&shared.service, &caller, shown).map_err(denied)?;
    Ok(caller)
}

fn serve(served: &Served<'_>, peer: Peer, mut lines: Lines) -> io::Result<()> {
    let shared = served.shared;
    // Of whom modes are asked.
    let groups: Arc<[u32]> = match runs_the_store(peer.uid) {
        true => Arc::default(),
        false => socket::peer_groups(lines.stream()).into(),
    };
    let mut has_asked = false;
    // Who held a mount or followed asks again, if there is a place.
    while shared.places.change(served.number, Seat::Asks).is_ok()
        && let Some(ask) = lines.ask()?
    {
        if socket::is_gone(lines.stream()) {
            // It has waited long enough (for a daemon that was stopped), and was told that nothing
            // was done.
            return Ok(());
        }
        if let Some(failure) = refused(shared, peer) {
            return lines.send(&Answer::Failed(failure));
        }
        let caller =
            || Caller::new(peer.uid, peer.gid, Some(peer.pid)).of_groups(Arc::clone(&groups));
        let is_first = !std::mem::replace(&mut has_asked, true);
        let asked = match ask.and_then(|ask| permitted(shared, peer, ask)) {
            Ok(ask) => attend(served, (peer, caller), (ask, is_first), &mut lines)?,
            Err(failure) => lines.send(&Answer::Failed(failure)).map(|()| None)?,
        };
        match asked {
            None => {}
            Some((caller, Request::Claim(args)))
                if args.wait_ms.is_some() && args.what.is_none() =>
            {
                return enter_room(shared, caller, args, lines);
            }
            Some((caller, request)) => serve_command(served, &caller, request, &mut lines)?,
        }
        if shared.stopping.load(Ordering::SeqCst) {
            break;
        }
    }
    Ok(())
}

/// Answers what is asked of the daemon; what is asked of the store is the caller's to do.
fn attend(
    served: &Served<'_>,
    (peer, caller): (Peer, impl Fn() -> Caller),
    (ask, is_first): (Ask, bool),
    lines: &mut Lines,
) -> io::Result<Option<(Caller, Request)>> {
    let shared = served.shared;
    let answer = match ask {
        Ask::Do(request) => return Ok(Some((caller(), request))),
        Ask::Within(ask) => match within(shared, ask.of(caller())) {
            Ok(caller) => return Ok(Some((caller, ask.request))),
            Err(failure) => Answer::Failed(failure),
        },
        Ask::Mount(ask) => {
            return mounting::serve(served, peer, &ask, lines).map(|()| None);
        }
        Ask::Unmount(ask) => {
            let _working = shared.work.begin(true);
            match shared.mounts.remove(&ask) {
                Ok(was_last) => return tell_unmounted(shared, was_last, lines).map(|()| None),
                Err(failure) => Answer::Failed(failure),
            }
        }
        Ask::Ps => Answer::Mounts { daemon: shared.info(), mounts: shared.mounts.list() },
        Ask::Interrupt if is_first => {
            let reason = "nothing was asked that could be interrupted";
            let remedy = "ask for something first, over the same connection";
            Answer::Failed(Failure::new(Cause::Usage, reason, remedy))
        }
        // What it was about has ended already.
        Ask::Interrupt => return Ok(None),
        Ask::Stop => {
            shared.farewells.note(lines, Why::Told)?;
            lines.send(&Answer::Stopping)?;
            let _ = shared.wake.send(Event::Stop);
            return Ok(None);
        }
    };
    lines.send(&answer).map(|()| None)
}

/// Does what is asked of the store. What was claimed for a client that has not heard of it is given back.
fn serve_command(
    served: &Served<'_>,
    caller: &Caller,
    request: Request,
    lines: &mut Lines,
) -> io::Result<()> {
    let agent = request.agent().cloned();
    let (claimed, sent) = serve_request(served, caller, request, lines);
    if let Some(claimed) = claimed.filter(|_| sent.is_err() || !lines.is_read(SOCKET_PATIENCE)) {
        let _working = served.shared.work.begin(true);
        give_back(&served.shared.service, caller, agent, claimed);
    }
    sent
}

/// Who waits for a record waits in the room, and its thread is free.
fn enter_room(
    shared: &Shared,
    caller: Caller,
    args: ClaimArgs,
    mut lines: Lines,
) -> io::Result<()> {
    let mut room = shared.room.lock();
    if shared.stopping.load(Ordering::SeqCst) {
        return Ok(());
    }
    if let Err(failure) = spare::expect(lines.stream(), spare::Use::Stays, shared.readers()) {
        return lines.send(&Answer::Failed(failure));
    }
    let open = match room.take() {
        Some(open) => open,
        None => match Room::open(&shared.service) {
            Ok(open) => open,
            Err(error) => {
                let failure = Failure::io("opening the waiting room", &error);
                return lines.send(&Answer::Failed(failure));
            }
        },
    };
    open.enter(&shared.service, caller, args, lines);
    *room = Some(open);
    Ok(())
}

/// Gives what was claimed for the client, and whether it could be told.
fn serve_request(
    served: &Served<'_>,
    caller: &Caller,
    request: Request,
    lines: &mut Lines,
) -> (Option<ClaimReport>, io::Result<()>) {
    let shared = served.shared;
    if let Err(failure) = refuse_own_place(shared, &request) {
        return (None, lines.send(&Answer::Failed(failure)));
    }
    let Properties { effect, of, .. } = request.properties();
    let endless = effect == Effect::Follows;
    // Who reads lines may do so in a pager, or do something for each.
    let at_leisure = matches!(request, Request::Log(_) | Request::Watch(_));
    if endless
        && let Err(failure) = spare::expect(lines.stream(), spare::Use::Stays, shared.readers())
            .and_then(|()| shared.places.change(served.number, Seat::Follows))
    {
        return (None, lines.send(&Answer::Failed(failure)));
    }
    let registers = of == Of::Store && effect == Effect::Changes;
    let mut working = Some(shared.work.begin(!endless));
    let (mut claimed, mut lost, mut was_interrupted) = (None, None, false);
    dispatch(&shared.service, caller, request, &mut |reply: Reply| {
        let is_over =
            || shared.stopping.load(Ordering::SeqCst) || shared.service.admits(caller.uid).is_err();
        if lost.is_some() || (endless && is_over()) {
            return false;
        }
        if registers && matches!(reply, Reply::Report(_)) {
            shared.let_others_in();
        }
        let is_end = matches!(reply, Reply::Report(_) | Reply::Error(_));
        // The daemon's end does not wait for what takes long: it says how far it came. Who reads lines would take
        // what he has for all.
        let ends = || !at_leisure && shared.stopping.load(Ordering::SeqCst);
        was_interrupted |= !is_end && (ends() || lines.was_interrupted().unwrap_or(false));
        if was_interrupted && !is_end {
            return false;
        }
        claimed = reply.claimed().cloned();
        let is_left_out = matches!(reply, Reply::Progress { .. } | Reply::Idle);
        let answer = Answer::Reply(reply);
        let sent = match (is_left_out, at_leisure) {
            (true, _) => lines.send_unless_behind(&answer),
            (false, false) => lines.send(&answer),
            // The daemon's end waits for such a one no longer, and none of those who ask.
            (false, true) => lines.send_while(&answer, &mut || {
                drop(working.take());
                !is_over() && shared.places.change(served.number, Seat::Follows).is_ok()
            }),
        };
        lost = sent.err();
        lost.is_none()
    });
    (claimed, lost.map_or(Ok(()), Err))
}

/// A daemon that reads or writes in its own mounts may wait for itself.
fn refuse_own_place(shared: &Shared, request: &Request) -> Result<(), Failure> {
    let Some(path) = request.outside() else { return Ok(()) };
    match shared.mounts.reached_by(path)? {
        None => Ok(()),
        Some(dir) => Err(Failure::new(
            Cause::Usage,
            format!("{} lies inside the mount {}", path.shown(), dir.shown()),
            "name a place outside of the store's mounts (inside, `cp -a` does it)",
        )),
    }
}
