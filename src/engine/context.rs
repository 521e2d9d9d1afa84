//! Who makes a change, and through which door.

use crate::ledger::Actor;
use crate::refusal::Door;
use workfs_mount::MountId;

/// Where a change came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Through a mount: its kernel knows what it did itself.
    Mount(MountId),
    /// Over the socket.
    Socket,
    /// From the daemon itself.
    Daemon,
}

/// The context of one change.
#[derive(Clone, Debug)]
pub struct Context {
    /// Where it came from.
    pub origin: Origin,
    /// Who is answerable: identity is mount and uid, the rest are labels.
    pub actor: Actor,
    /// In which role, for the lifecycle's rules.
    pub role: crate::kind::Role,
    /// The group that new files get.
    pub gid: u32,
    /// Which errors the caller can be given.
    pub door: Door,
}

impl Context {
    /// The same caller at another door.
    #[must_use]
    pub fn at(&self, door: Door) -> Self {
        Context { door, ..self.clone() }
    }
}
