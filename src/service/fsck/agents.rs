//! Registered agents: each is what its last event says.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::engine::{Registered, Registry};
use crate::kind::Role;
use crate::ledger::EventName;
use crate::numbers::G;
use crate::store::{Read, StoreError};

use super::super::Failure;
use super::Check;

/// A role, and the user who is bound to the agent.
type Says = (String, Option<u64>);

/// What the ledger says of agents: by which event, and what each is since; nothing of one that is no more.
#[derive(Default)]
pub(super) struct Told(BTreeMap<String, (G, Option<Says>)>);

impl Told {
    /// Takes in an event, if it is of an agent. Those of workspaces and lanes name a workspace.
    pub fn note(&mut self, g: G, event: &Value) {
        let name = event.get("event").and_then(Value::as_str).unwrap_or_default();
        let is_new = name == EventName::REGISTERED.as_str();
        if !is_new && name != EventName::UNREGISTERED.as_str() {
            return;
        }
        let field = |name: &str| event.get("payload").and_then(|payload| payload.get(name));
        let Some(agent) = field("agent").and_then(Value::as_str) else { return };
        let role = || field("role").and_then(Value::as_str).unwrap_or_default().to_owned();
        let is = is_new.then(|| (role(), field("uid").and_then(Value::as_u64)));
        self.0.insert(agent.to_owned(), (g, is));
    }
}

pub(super) fn check(
    read: &dyn Read,
    (told, is_unbroken): (&Told, bool),
    check: &mut Check<'_>,
) -> Result<(), Failure> {
    // Of rows that cannot be read was told; and a ledger that is not whole may say nothing of some.
    let registry = match Registry::load(read) {
        Ok(registry) if is_unbroken => registry,
        Ok(_) | Err(StoreError::Impossible(_)) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let shown = |role: &str, uid: Option<u64>| {
        let uid = uid.map_or_else(String::new, |uid| format!(" of user {uid}"));
        format!("{role}{uid}")
    };
    let noted =
        |Registered { role, uid }: Registered| shown(Role::as_str(role), uid.map(u64::from));
    for (agent, _) in registry.all() {
        if !told.0.contains_key(agent.as_str()) {
            check.problem(format!("agent {agent}"), "is registered, and no event says so");
        }
    }
    for (agent, (g, said)) in &told.0 {
        let found = registry.all().find(|(name, _)| name.as_str() == agent);
        let found = found.map(|(_, found)| noted(*found));
        let said = said.as_ref().map(|(role, uid)| shown(role, *uid));
        if found != said {
            let [found, said] = [found, said].map(|one| one.unwrap_or_else(|| "no agent".into()));
            check.problem(
                format!("agent {agent}"),
                format!("is noted as {found}, and event {g} says {said}"),
            );
        }
    }
    Ok(())
}
