//! When owners were last heard of through mounts that have ended since.
//!
//! What must stay true: such a sign of life counts all the same: that of `workfs exec`, whose mount
//! ends with its command, and those of all mounts at the daemon's end, when what leases come to is
//! written. Deliberately not here: what the mounts have heard that are there.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use workfs_mount::{Mount, Presence};

use crate::limits::PARTED_USERS_MAX;
use crate::names::AgentName;
use crate::tree::Identity;

/// See the module; in nanoseconds of the steady clock.
#[derive(Default)]
pub(super) struct Parted(Mutex<Signs>);

#[derive(Default)]
struct Signs {
    /// As many as there were agents with mounts.
    agents: HashMap<AgentName, Presence>,
    users: HashMap<u32, Presence>,
}

impl Signs {
    /// Of too many who was seen longest ago is forgotten.
    fn note_user(&mut self, uid: u32, seen: &Presence) {
        self.users.entry(uid).or_default().join(seen);
        if self.users.len() > PARTED_USERS_MAX
            && let Some((uid, _)) = self.users.iter().min_by_key(|(_, seen)| seen.last())
        {
            let uid = *uid;
            self.users.remove(&uid);
        }
    }
}

impl Parted {
    /// A mount ends, which acts for this identity.
    pub fn note(&self, mount: &Mount, identity: Option<Arc<Identity>>) {
        let mut signs = self.0.lock();
        if let Some(agent) = identity.as_ref().and_then(|identity| identity.agent.as_ref()) {
            signs.agents.entry(agent.clone()).or_default().join(&mount.seen());
        }
        for (uid, seen) in mount.seen_of_each() {
            signs.note_user(uid, &seen);
        }
    }

    /// When something was asked for through an agent's mounts.
    pub fn agent(&self, agent: &AgentName) -> Option<Presence> {
        self.0.lock().agents.get(agent).copied()
    }

    /// When a user asked for something, who is not the one that this process runs as.
    pub fn user(&self, uid: u32) -> Option<Presence> {
        self.0.lock().users.get(&uid).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_users_those_who_were_seen_last_are_remembered() {
        let mut signs = Signs::default();
        let at = |now| {
            let mut seen = Presence::default();
            seen.note(now);
            seen
        };
        let users = 0..2 * PARTED_USERS_MAX as u32;
        users.clone().for_each(|uid| signs.note_user(uid, &at(7 + u64::from(uid))));
        let last = users.end - PARTED_USERS_MAX as u32..users.end;
        assert_eq!(signs.users.len(), PARTED_USERS_MAX);
        assert!(last.clone().all(|uid| signs.users.contains_key(&uid)));
        signs.note_user(last.start, &at(1));
        assert_eq!(signs.users[&last.start].last(), 7 + u64::from(last.start), "the last counts");
    }
}
