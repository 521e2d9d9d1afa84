//! Who asks.

use std::sync::Arc;

use crate::engine::{Bits, Context, Origin, Registry, Who, ledger_role, user_name};
use crate::kind::Role;
use crate::ledger::Actor;
use crate::names::AgentName;
use crate::refusal::{Door, Rule};
use crate::service::{Failure, Part};

/// Who asks, as the socket's peer credentials (or the process's own) say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The name in the ledger: the user's name, else `uid-N`; or the agent that is acted for.
    pub name: AgentName,
    /// In which role.
    pub role: Role,
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The further groups.
    pub groups: Arc<[u32]>,
    /// The process, a label.
    pub pid: Option<u32>,
    /// Whether it is an agent by its user.
    pub is_bound: bool,
    /// Whether whom it acts for only reads, whatever the register says: in the mount of an agent that is
    /// none any more.
    pub observes: bool,
    /// What of the tree is in their sight.
    pub part: Part,
}

impl Caller {
    /// The caller with these credentials: an operator.
    #[must_use]
    pub fn new(uid: u32, gid: u32, pid: Option<u32>) -> Self {
        Caller {
            name: user_name(uid),
            role: Role::Operator,
            uid,
            gid,
            groups: Arc::default(),
            pid,
            is_bound: false,
            observes: false,
            part: Part::default(),
        }
    }

    /// The same caller, who is of these groups, too.
    #[must_use]
    pub fn of_groups(mut self, groups: Arc<[u32]>) -> Self {
        self.groups = groups;
        self
    }

    /// Whom modes are asked for.
    #[must_use]
    pub(in crate::service) fn who(&self) -> Who<'_> {
        Who { uid: self.uid, gid: self.gid, groups: &self.groups }
    }

    /// The same caller, who sees this of the tree.
    #[must_use]
    pub fn seeing(mut self, part: Part) -> Self {
        self.part = part;
        self
    }

    /// This process.
    #[must_use]
    pub fn this_process() -> Self {
        let (uid, gid) = (rustix::process::getuid(), rustix::process::getgid());
        let groups = rustix::process::getgroups().unwrap_or_default();
        Caller::new(uid.as_raw(), gid.as_raw(), Some(std::process::id()))
            .of_groups(groups.into_iter().map(rustix::process::Gid::as_raw).collect())
    }

    /// Whom the caller acts for who asks to act for `agent`: a user who is bound to an agent is
    /// that agent and no other; an operator may act for any, in its role.
    ///
    /// # Errors
    /// Where a bound user names somebody else.
    pub(in crate::service) fn acting(
        mut self,
        agents: &Registry,
        agent: Option<&AgentName>,
    ) -> Result<Self, Failure> {
        if let Some((name, role)) = agents.forced(self.uid) {
            if let Some(other) = agent.filter(|agent| **agent != name) {
                let reason = format!("user {} is the agent {name}, not {other}", self.uid);
                return Err(Failure::by(Rule::Forbidden, reason, "leave --agent out"));
            }
            (self.name, self.role, self.is_bound) = (name, role, true);
        } else if let Some(agent) = agent.filter(|agent| **agent != self.name) {
            agents.require_agents_name(agent)?;
            self.role = agents.get(agent).map_or(Role::Agent, |known| known.role);
            self.name = agent.clone();
        }
        if self.observes {
            self.role = Role::Observer;
        }
        Ok(self)
    }

    /// The context of its changes, at the socket.
    #[must_use]
    pub fn context(&self) -> Context {
        Context {
            origin: Origin::Socket,
            actor: Actor {
                name: self.name.clone(),
                role: ledger_role(self.role),
                uid: self.uid,
                mount: None,
                pid: self.pid,
            },
            role: self.role,
            gid: self.gid,
            groups: Arc::clone(&self.groups),
            bits: if self.is_bound { Bits::Roles } else { Bits::Kernel },
            door: Door::Socket,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_at_the_socket_is_an_operator_until_it_is_known_to_be_bound() {
        let context = Caller::new(0, 0, None).context();
        assert_eq!(context.origin, Origin::Socket);
        assert_eq!(context.role, Role::Operator);
    }
}
