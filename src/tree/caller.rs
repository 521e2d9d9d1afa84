//! Who a request of the kernel comes from: mount and user decide, the rest are labels.

use std::collections::HashMap;

use parking_lot::Mutex;
use workfs_mount::Caller;

use crate::engine::{Context, Origin};
use crate::kind::Role;
use crate::ledger::{self, Actor};
use crate::names::AgentName;
use crate::refusal::Door;

/// User names by user id.
#[derive(Default)]
pub(super) struct Users(Mutex<HashMap<u32, AgentName>>);

impl Users {
    /// The context of a request. A plain mount acts for the user who calls, as operator.
    pub fn context(&self, caller: &Caller, agent: Option<AgentName>, door: Door) -> Context {
        let name = agent.unwrap_or_else(|| self.name(caller.uid));
        Context {
            origin: Origin::Mount(caller.mount),
            actor: Actor {
                name,
                role: ledger::Role::OPERATOR,
                uid: caller.uid,
                mount: Some(caller.mount.0),
                pid: (caller.pid != 0).then_some(caller.pid),
            },
            role: Role::Operator,
            gid: caller.gid,
            door,
        }
    }

    fn name(&self, uid: u32) -> AgentName {
        let mut names = self.0.lock();
        names.entry(uid).or_insert_with(|| user_name(uid)).clone()
    }
}

/// The user's name where it fits the grammar of agents, else `uid-N`.
#[must_use]
pub fn user_name(uid: u32) -> AgentName {
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then_some(name)
    });
    let fallback = || AgentName::new(format!("uid-{uid}"));
    named
        .map(AgentName::new)
        .and_then(Result::ok)
        .or_else(|| fallback().ok())
        // PROOF: `uid-` and digits fit the grammar and the length of an agent's name.
        .expect("uid-N is an agent's name")
}
