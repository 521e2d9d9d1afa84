//! Signs of an owner's life that only the mounts know of: what was asked for through them, and which
//! descriptors hold records.

use std::sync::Arc;

use crate::engine::{Audience, Registry};
use crate::names::AgentName;
use crate::numbers::LeaseTime;
use crate::store::LeaseRow;

use super::LeaseClock;

/// Who tells of them.
pub(in crate::engine) struct Signs<'a> {
    audience: &'a dyn Audience,
    agents: Arc<Registry>,
    pub clock: &'a LeaseClock,
}

impl<'a> Signs<'a> {
    pub fn of(audience: &'a dyn Audience, agents: &Arc<Registry>, clock: &'a LeaseClock) -> Self {
        Signs { audience, agents: Arc::clone(agents), clock }
    }

    /// When something was last asked for through an agent's mounts, or by its user through any, but not after
    /// `by`.
    pub fn last_seen(&self, agent: &AgentName, by: LeaseTime) -> Option<LeaseTime> {
        let by = self.clock.steady_at(by);
        let through_any = self.uid(agent).and_then(|uid| self.audience.last_seen_user(uid, by));
        let at = self.audience.last_seen(agent, by).max(through_any);
        at.map(|at| self.clock.of_steady(at))
    }

    /// Whether a descriptor holds a record, and one did at this moment.
    pub fn is_held(&self, row: &LeaseRow, by: LeaseTime) -> bool {
        self.audience.is_held(row.record, row.attempt, by)
    }

    /// Nothing was heard of an agent for long: kernels are to ask for what they would answer.
    pub fn listen_for(&self, agent: &AgentName) {
        self.audience.listen_for(agent, self.uid(agent));
    }

    fn uid(&self, agent: &AgentName) -> Option<u32> {
        self.agents.get(agent).and_then(|known| known.uid)
    }
}
