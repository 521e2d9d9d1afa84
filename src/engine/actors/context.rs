//! Who makes a change, and through which door.

use std::sync::Arc;

use crate::engine::{Bits, Who};
use crate::kind::Role;
use crate::ledger::{self, Actor};
use crate::names::AgentName;
use crate::refusal::Door;
use workfs_mount::MountId;

/// The daemon's name in the ledger.
const DAEMON: &str = "workfs";

/// Whether the ledger has this name for somebody who is no agent: the daemon, root, or a user without a
/// name. `uid` is the user who is to be the agent, whose own name is nobody else's.
pub(super) fn is_reserved(name: &AgentName, uid: Option<u32>) -> bool {
    let number = name.as_str().strip_prefix("uid-").and_then(|rest| rest.parse::<u32>().ok());
    name.as_str() == DAEMON || name.as_str() == "root" || number.is_some_and(|n| Some(n) != uid)
}

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

impl Origin {
    /// The mount, if it was one.
    #[must_use]
    pub fn mount(self) -> Option<MountId> {
        match self {
            Origin::Mount(mount) => Some(mount),
            Origin::Socket | Origin::Daemon => None,
        }
    }
}

/// The context of one change.
#[derive(Clone, Debug)]
pub struct Context {
    /// Where it came from.
    pub origin: Origin,
    /// Who is answerable: identity is mount and uid, the rest are labels.
    pub actor: Actor,
    /// In which role, for the lifecycle's rules.
    pub role: Role,
    /// The group that new files get.
    pub gid: u32,
    /// The caller's further groups, where the socket says them.
    pub groups: Arc<[u32]>,
    /// What permission bits are to the caller.
    pub bits: Bits,
    /// Which errors the caller can be given.
    pub door: Door,
}

/// A role as the ledger names it.
#[must_use]
pub fn ledger_role(role: Role) -> ledger::Role {
    match role {
        Role::Agent => ledger::Role::AGENT,
        Role::Builder => ledger::Role::BUILDER,
        Role::Coordinator => ledger::Role::COORDINATOR,
        Role::Manager => ledger::Role::MANAGER,
        Role::Supervisor => ledger::Role::SUPERVISOR,
        Role::Operator => ledger::Role::OPERATOR,
        Role::Observer => ledger::Role::OBSERVER,
    }
}

impl Context {
    /// The daemon's own: what it does by itself, for nobody.
    #[must_use]
    pub fn daemon() -> Self {
        let name = AgentName::new(DAEMON)
            // PROOF: a literal that is an agent's name.
            .expect("an agent's name");
        let actor = Actor { name, role: ledger::Role::DAEMON, uid: 0, mount: None, pid: None };
        let (origin, role, door) = (Origin::Daemon, Role::Operator, Door::Socket);
        let groups = Arc::default();
        Context { origin, actor, role, gid: 0, groups, bits: Bits::Kernel, door }
    }

    /// Whom modes are asked for.
    #[must_use]
    pub fn who(&self) -> Who<'_> {
        Who { uid: self.actor.uid, gid: self.gid, groups: &self.groups }
    }

    /// The same caller at another door.
    #[must_use]
    pub fn at(&self, door: Door) -> Self {
        Context { door, ..self.clone() }
    }
}
