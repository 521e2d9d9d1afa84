//! Who a request of the kernel comes from: mount and user decide, the rest are labels.

use std::sync::Arc;

use workfs_mount::{Attr, Caller, thread_here};

use super::identity::Identity;
use super::lineage::told;
use crate::engine::{
    Bits, Context, Origin, Registry, has_bits, how_to_bind, ledger_role, runs_the_store, user_name,
};
use crate::kind::Role;
use crate::ledger::Actor;
use crate::names::AgentName;
use crate::numbers::Ino;
use crate::refusal::{Door, Refusal, Rule};
use crate::tree::WorkTree;
use crate::tree::computed::Viewer;

impl WorkTree {
    /// Who changes something.
    pub(in crate::tree) fn context(&self, caller: &Caller, door: Door) -> Context {
        let identity = self.hub.identity(caller.mount);
        context(caller, identity.as_deref(), &self.engine.agents(), door)
    }

    /// Whether the caller is an operator: by a plain mount, and not only because it was let into one.
    pub(in crate::tree) fn is_operator(&self, caller: &Caller) -> bool {
        let context = self.context(caller, Door::Name);
        context.role == Role::Operator && !self.is_nobody_s(caller, &context)
    }

    /// Whether the caller is a user who is nobody's agent, in a mount that others may use.
    fn is_nobody_s(&self, caller: &Caller, context: &Context) -> bool {
        let identity = self.hub.identity(caller.mount);
        let made_it = |identity: &Identity| identity.maker == user_name(caller.uid);
        let is_let_in = || {
            !runs_the_store(caller.uid)
                && self.engine.agents().bound(caller.uid).is_none()
                && identity.is_some_and(|identity| identity.agent.is_none() && !made_it(&identity))
        };
        context.bits == Bits::Stored || is_let_in()
    }

    /// Whether the caller may begin a transaction.
    pub(in crate::tree) fn may_begin_txn(
        &self,
        caller: &Caller,
        context: &Context,
    ) -> Result<(), Refusal> {
        context.may_change()?;
        if self.is_nobody_s(caller, context) {
            let uid = caller.uid;
            return Err(Refusal::new(
                Rule::Forbidden,
                format!("user {uid} is no agent, and has no transactions"),
                how_to_bind(uid),
            ));
        }
        Ok(())
    }

    /// Whether the caller's kernel is shown that roles say who may write what is governed.
    pub(in crate::tree) fn shows_roles(&self, caller: &Caller) -> bool {
        let agents = self.engine.agents();
        agents.binds_users() && opens(self.hub.identity(caller.mount).as_deref(), &agents)
    }

    /// The directory that is the root of the caller's mount.
    pub(in crate::tree) fn root(&self, caller: &Caller) -> Ino {
        self.hub.identity(caller.mount).map_or(workfs_mount::ROOT, |identity| identity.root)
    }

    fn is_read_only(&self, caller: &Caller) -> bool {
        self.hub.identity(caller.mount).is_some_and(|identity| identity.is_read_only)
    }

    /// Who looks, for what is computed.
    pub(in crate::tree) fn viewer(&self, caller: &Caller) -> Viewer {
        let context = self.context(caller, Door::Name);
        Viewer {
            uid: caller.uid,
            gid: caller.gid,
            shows_roles: self.shows_roles(caller),
            config: self.engine.config(),
            agents: self.engine.agents(),
            actor: context.actor.name,
            role: context.role,
            root: self.root(caller),
            is_read_only: self.is_read_only(caller),
            now: self.engine.now(),
            lease_clock: self.engine.lease_clock().clone(),
            ends: Arc::clone(self.engine.ends()),
            refuses: None,
        }
    }
}

/// The context of a request. A user who is bound to an agent is that agent through every mount;
/// else the mount decides: an agent's mount acts for the agent, a plain one for the operator who
/// made it.
fn context(caller: &Caller, identity: Option<&Identity>, agents: &Registry, door: Door) -> Context {
    let (name, role) = acting(caller.uid, identity, agents);
    let bits = if agents.bound(caller.uid).is_some() {
        Bits::Roles
    } else if opens(identity, agents) && !runs_the_store(caller.uid) {
        Bits::Stored
    } else {
        Bits::Kernel
    };
    Context {
        origin: Origin::Mount(caller.mount),
        actor: Actor {
            name,
            role: ledger_role(role),
            uid: caller.uid,
            mount: Some(caller.mount.0),
            pid: thread_here(caller.pid),
        },
        role,
        gid: caller.gid,
        groups: Arc::default(),
        bits,
        door,
    }
}

/// Whether a mount's kernel is shown that roles say who may write what is governed.
fn opens(identity: Option<&Identity>, agents: &Registry) -> bool {
    agents.binds_users() && identity.is_some_and(|identity| identity.is_checked)
}

/// Whom a user acts for through a mount.
fn acting(uid: u32, identity: Option<&Identity>, agents: &Registry) -> (AgentName, Role) {
    if let Some(forced) = agents.forced(uid) {
        return forced;
    }
    // Only a mount that has ended is not known: nobody acts through it any more.
    let Some(identity) = identity else { return (user_name(uid), Role::Observer) };
    match &identity.agent {
        // One that is not registered any more has lost its rights, not its mount.
        Some(agent) => {
            (agent.clone(), agents.get(agent).map_or(Role::Observer, |known| known.role))
        }
        None => (identity.maker.clone(), Role::Operator),
    }
}

/// Whether these attributes allow the caller, who waits for its call, all these bits (4 to read, 2 to write,
/// 1 to search), as its kernel would say.
pub(in crate::tree) fn allows(attr: &Attr, caller: &Caller, bits: u32) -> bool {
    let is_of_group = || attr.gid == caller.gid || has_group(caller.pid, attr.gid);
    has_bits(attr.mode, attr.uid == caller.uid, is_of_group, bits)
}

/// Whether a group is one of the further ones of a thread that waits for its call.
pub(in crate::tree) fn has_group(thread: u32, group: u32) -> bool {
    let groups = told(thread, "Groups:").unwrap_or_default();
    groups.split_whitespace().any(|one| one.parse() == Ok(group))
}

/// Whether a thread that waits for its call may do with any file what its owner may.
pub(in crate::tree) fn acts_as_owner(thread: u32) -> bool {
    const CAP_FOWNER: u64 = 1 << 3;
    has_capability(thread, CAP_FOWNER)
}

/// Whether a thread that waits for its call may read any file.
pub(in crate::tree) fn reads_all(thread: u32) -> bool {
    const CAP_DAC_OVERRIDE: u64 = 1 << 1;
    const CAP_DAC_READ_SEARCH: u64 = 1 << 2;
    has_capability(thread, CAP_DAC_OVERRIDE | CAP_DAC_READ_SEARCH)
}

/// Whether a thread that waits for its call has one of these capabilities where this process is. In a name space of
/// users of its own it has them of its own users' files.
fn has_capability(thread: u32, any: u64) -> bool {
    let space = |of: &str| std::fs::read_link(format!("/proc/{of}/ns/user")).ok();
    let all = told(thread, "CapEff:").and_then(|all| u64::from_str_radix(&all, 16).ok());
    let has = all.is_some_and(|all| all & any != 0);
    has && space("self").is_some_and(|own| space(&thread.to_string()) == Some(own))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_capability_counts_where_it_is_one_over_the_files_of_this_process() {
        let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!((acts_as_owner(own), reads_all(own)), (is_root, is_root));
        // Root of a name space of users of its own has them all, as it is told.
        let mut child = Command::new("unshare")
            .args(["-Ur", "sh", "-c", "echo begun; read end"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        // Not every user may have one.
        if said == "begun\n" {
            assert_ne!(told(child.id(), "CapEff:").unwrap().trim_matches('0'), "");
            assert!(!acts_as_owner(child.id()));
        }
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
