//! When owners were last heard of through mounts that have ended.
//!
//! What must stay true: a sign of life counts also where its mount has ended since, as that of `workfs exec` with its
//! command, and all at the daemon's end, which writes what leases come to by them. Deliberately not here: what mounts
//! that are there have heard.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use workfs_mount::MountId;

use crate::limits::PARTED_USERS_MAX;
use crate::names::AgentName;

use super::Identity;
use super::hub::Member;

/// See the module; in nanoseconds of the steady clock.
#[derive(Default)]
pub(super) struct Parted(Mutex<Signs>);

#[derive(Default)]
struct Signs {
    /// As many as there were agents with mounts.
    agents: HashMap<AgentName, u64>,
    users: HashMap<u32, u64>,
}

impl Parted {
    /// One of the mounts ends, which acts for this identity.
    pub fn note(&self, members: &[Member], identity: Option<Arc<Identity>>, ends: MountId) {
        let ended = members.iter().find(|member| member.mount.id() == ends);
        let Some(Member { mount, .. }) = ended else { return };
        let mut signs = self.0.lock();
        if let Some(agent) = identity.as_ref().and_then(|identity| identity.agent.as_ref()) {
            let seen = signs.agents.entry(agent.clone()).or_default();
            *seen = (*seen).max(mount.last_seen_ns());
        }
        for (uid, at) in mount.last_seen_of_each_ns() {
            if signs.users.len() < PARTED_USERS_MAX || signs.users.contains_key(&uid) {
                let seen = signs.users.entry(uid).or_default();
                *seen = (*seen).max(at);
            }
        }
    }

    /// When something was last asked for through an agent's mounts.
    pub fn agent(&self, agent: &AgentName) -> Option<u64> {
        self.0.lock().agents.get(agent).copied()
    }

    /// When a user last asked for something, who is not the one that this process runs as.
    pub fn user(&self, uid: u32) -> Option<u64> {
        self.0.lock().users.get(&uid).copied()
    }
}
