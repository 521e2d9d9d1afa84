//! A client that asks for a mount, and one that holds it for a command.
//!
//! What must stay true: what was mounted for somebody who is gone does not stay. Deliberately not here: mounting
//! (`mounts`).

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use workfs_mount::Mount;

use super::farewells::Why;
use super::{Served, Shared};
use crate::daemon::failure::Failure;
use crate::daemon::mounts::{Place, point};
use crate::daemon::socket::lines::Lines;
use crate::daemon::socket::places::Seat;
use crate::daemon::socket::wire::{Answer, MountAsk};
use crate::daemon::socket::{self, End, Peer};
use crate::daemon::spare;
use crate::names::Shown;

/// Mounts, and goes on as long as the client holds what was mounted.
///
/// # Errors
/// If the client is gone, or the system refuses to wait for it.
pub(super) fn serve(
    served: &Served<'_>,
    peer: Peer,
    ask: &MountAsk,
    lines: &mut Lines,
) -> io::Result<()> {
    let shared = served.shared;
    let working = shared.work.begin(true);
    if shared.work.is_ending() {
        // Before it makes a name space of its own, in which it could start no daemon.
        return Ok(());
    }
    if !shared.lingers() && shared.mounts.leaves_to_next(ask) {
        return Ok(());
    }
    if let Err(failure) = spare::expect(lines.stream(), spare::Use::Stays, shared.readers()) {
        shared.mounts.note_try();
        return lines.send(&Answer::Failed(failure));
    }
    // What it made for a mount that is not made goes, if it is gone before it could see to that.
    let is_gone = |_: &io::Error| {
        if ask.temporary {
            point::remove_own(Path::new(&ask.dir), peer.uid);
        }
    };
    let place = if ask.private {
        let sent = lines.send(&Answer::SendConnection);
        let sent = sent.and_then(|()| lines.receive_descriptor());
        // It could not mount, or is gone.
        let sent = sent.inspect_err(|_| shared.mounts.note_try()).inspect_err(is_gone)?;
        Place::Elsewhere(sent, peer.pid)
    } else {
        Place::Here
    };
    let added = match shared.mounts.add(ask, place, peer.uid, shared.service.engine.now()) {
        Ok(added) => added,
        Err(failure) => return lines.send(&Answer::Failed(failure)).inspect_err(is_gone),
    };
    if shared.stopping.load(Ordering::SeqCst) {
        // It ends, and may have taken its mounts away before this one was made, which would keep it from
        // that. Whoever hears nothing asks the next daemon.
        shared.mounts.remove_all();
        return Ok(());
    }
    shared.farewells.goes_on();
    if ask.linger {
        shared.linger.store(true, Ordering::SeqCst);
    }
    let (mount, already) = (added.mount, added.already);
    // Before it is told of: what nobody can be heard to let go of would stay for good.
    let ended = match (ask.hold && !already).then(|| mount.end_signal()).transpose() {
        Ok(ended) => ended,
        Err(error) => {
            let failed = Answer::Failed(Failure::io("holding the mount", &error));
            return leave(shared, &mount, || lines.send(&failed));
        }
    };
    let answer = Answer::Mounted { mount: added.info, already, notes: added.notes };
    if let Err(error) = lines.send(&answer) {
        // Whoever asked has given up, and knows of no mount.
        if !already {
            drop(ended);
            return leave(shared, &mount, || Err(error));
        }
        return Err(error);
    }
    let Some(ended) = ended else { return Ok(()) };
    // There are as many places as mounts.
    if let Err(failure) = shared.places.change(served.number, Seat::Holds) {
        tracing::warn!(%failure, "who holds a mount keeps its place among those that ask");
    }
    if ask.private {
        return await_private_end(shared, &ended, lines);
    }
    drop(working);
    hold(shared, &mount, ended, lines)
}

/// Keeps what a client holds until that, or the mount, has ended; tells the client of the mount's end.
fn hold(shared: &Shared, mount: &Mount, ended: OwnedFd, lines: &mut Lines) -> io::Result<()> {
    loop {
        // The connections of a daemon that ends are shut: then only the mount's end is waited for.
        let stopping = shared.stopping.load(Ordering::SeqCst);
        let client = (!stopping).then(|| lines.stream());
        let came = socket::await_end(&ended, client);
        match came {
            Ok(End::Watched) => return lines.send(&Answer::Ended),
            Ok(End::Client) if stopping || shared.stopping.load(Ordering::SeqCst) => continue,
            Ok(End::Client) => {
                tracing::info!(dir = %mount.dir().shown(), "whoever held this mount is gone");
            }
            Err(_) => {}
        }
        drop(ended);
        // One that was only told to end hears that it is done.
        return leave(shared, mount, || came.and_then(|_| lines.send(&Answer::Ended)));
    }
}

/// Waits until the client has taken its private mount away, and tells it whether the daemon ends
/// now. One who is gone took it along, with the last process of its name space.
fn await_private_end(shared: &Shared, ended: &OwnedFd, lines: &mut Lines) -> io::Result<()> {
    if socket::await_end(ended, Some(lines.stream()))? == End::Client {
        return Ok(());
    }
    tell_unmounted(shared, shared.mounts.is_empty(), lines)
}

/// Tells whoever took a mount away, and whether the daemon ends now; who is told that hears of the end by that of
/// the connection.
///
/// # Errors
/// If the client is gone, or there are no descriptors left.
pub(super) fn tell_unmounted(shared: &Shared, was_last: bool, lines: &mut Lines) -> io::Result<()> {
    let ending = was_last && !shared.lingers();
    lines.send(&Answer::Unmounted { ending })?;
    if ending {
        shared.farewells.note(lines, Why::Idle)?;
        // One that came since the last was taken away may have come before this was waited for.
        if !shared.mounts.is_empty() {
            shared.farewells.goes_on();
        }
    }
    Ok(())
}

/// How long who could not take a mount away waits before it tries again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Takes a mount away that nobody wants any more, and does what is to be done `then`. Where it could not be taken
/// away, for want of a descriptor or since another mount lies on it, it is tried again after that.
fn leave(shared: &Shared, mount: &Mount, then: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let tried = shared.mounts.leave(mount);
    let done = then();
    // One that lies elsewhere whoever made it takes along.
    if let Err(error) = tried
        && mount.lies_here()
    {
        tracing::warn!(dir = %mount.dir().shown(), %error, "cannot detach yet");
        while !shared.stopping.load(Ordering::SeqCst) && shared.mounts.leave(mount).is_err() {
            std::thread::sleep(AGAIN_AFTER);
        }
    }
    done
}
