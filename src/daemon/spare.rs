//! The descriptors that the daemon keeps for those who use its mounts.
//!
//! What must stay true: only those who ask at the socket are refused for want of descriptors, and
//! they are told so; in a mount files can be read however many wait at the socket. Deliberately not
//! here: how many places there are (`places`).

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use rustix::process::{Resource, getrlimit};

use super::failure::Failure;
use crate::limits::{DESCRIPTORS_KEPT_MAX, DESCRIPTORS_PARTS};
use crate::store::Readers;

/// What a client wants a descriptor for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// To ask, and to be answered soon.
    Asks,
    /// To stay, or to make a mount that does.
    Stays,
}

/// Whether a client may have what it has, and a few more, of this daemon's descriptors.
///
/// # Errors
/// If there are too few left.
pub fn expect(stream: &UnixStream, wanted: Use, readers: &dyn Readers) -> Result<(), Failure> {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    // The kernel gives the lowest number that is free, so that a new one says how many are taken. That of the
    // connection itself was given before there was one.
    let has_more = || stream.try_clone().is_ok_and(|next| fits(next.as_raw_fd(), limit, wanted));
    if has_more() {
        return Ok(());
    }
    // What many have read by at once stays open, for those who read next.
    readers.close_idle();
    if has_more() { Ok(()) } else { Err(lacking(limit)) }
}

/// So many places, or as many as there can be where each costs a descriptor.
#[must_use]
pub fn places(most: usize) -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    most.min(usize::try_from(limit / 4 * 3).unwrap_or(usize::MAX))
}

fn fits(taken: i32, limit: u64, wanted: Use) -> bool {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let kept = (limit / DESCRIPTORS_PARTS).min(DESCRIPTORS_KEPT_MAX);
    let kept = if wanted == Use::Stays { 2 * kept } else { kept };
    usize::try_from(taken).is_ok_and(|taken| taken < limit - kept)
}

fn lacking(limit: u64) -> Failure {
    let own = std::process::id();
    let what = format!("process {own} may open {limit} files, and keeps the last for its mounts");
    Failure::io(what, &io::Error::from_raw_os_error(libc::EMFILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_descriptors_are_for_nobody_at_the_socket() {
        let most = |limit, wanted| (0..).find(|taken| !fits(*taken, limit, wanted)).unwrap();
        assert_eq!((most(1024, Use::Asks), most(1024, Use::Stays)), (960, 896));
        assert_eq!((most(20_000, Use::Asks), most(20_000, Use::Stays)), (19_872, 19_744));
        assert_eq!((most(15, Use::Asks), most(15, Use::Stays)), (15, 15));
        assert!(fits(i32::MAX, u64::MAX, Use::Stays));
        assert!(
            lacking(1024).reason.contains("1024") && lacking(1024).remedy.contains("ulimit -n")
        );
    }
}
