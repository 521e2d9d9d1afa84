//! Who is registered as an agent, and whom a caller therefore acts for.
//!
//! What must stay true: where a user id is bound to an agent, it alone decides who its processes
//! are, whatever a mount or a command says; the registry that is asked is the committed one; a user
//! who was an agent once becomes no operator by what is registered of the agent.
//! Deliberately not here: what a role may do (`rights`).

use std::collections::{BTreeMap, HashMap};

use super::context::is_reserved;
use crate::engine::change::happening::Happening;
use crate::engine::{Command, Effect, Stop, Turn};
use crate::kind::Role;
use crate::ledger::{EventName, Field, Payload};
use crate::names::AgentName;
use crate::refusal::{Refusal, Rule};
use crate::store::{AgentRow, Read, Result, StoreError};

/// What is registered of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registered {
    /// Its role.
    pub role: Role,
    /// The user who is this agent, whatever a mount says.
    pub uid: Option<u32>,
}

/// All registered agents.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    by_name: BTreeMap<AgentName, Registered>,
    by_uid: HashMap<u32, AgentName>,
}

impl Registry {
    /// The registry of a snapshot.
    ///
    /// # Errors
    /// A failure of the store, or a role that is none.
    pub fn load(read: &dyn Read) -> Result<Registry> {
        let mut registry = Registry::default();
        for AgentRow { name, role, uid } in read.agents()? {
            let role = Role::named(&role)
                .ok_or_else(|| StoreError::Impossible(format!("role `{role}` of {name}")))?;
            if let Some(uid) = uid {
                registry.by_uid.insert(uid, name.clone());
            }
            registry.by_name.insert(name, Registered { role, uid });
        }
        Ok(registry)
    }

    /// What is registered of an agent.
    #[must_use]
    pub fn get(&self, name: &AgentName) -> Option<Registered> {
        self.by_name.get(name).copied()
    }

    /// All, by name.
    pub fn all(&self) -> impl Iterator<Item = (&AgentName, &Registered)> {
        self.by_name.iter()
    }

    /// Refuses a name that is no agent's, but what the ledger calls whoever is none.
    ///
    /// # Errors
    /// [`Rule::BadName`].
    pub fn require_agents_name(&self, name: &AgentName) -> std::result::Result<(), Refusal> {
        if self.get(name).is_some() || !is_reserved(name, None) {
            return Ok(());
        }
        let reason = format!("`{name}` is the name of whoever is no agent in the ledger");
        Err(Refusal::new(Rule::BadName, reason, "name an agent"))
    }

    /// Whether any user id is bound to an agent.
    #[must_use]
    pub fn binds_users(&self) -> bool {
        !self.by_uid.is_empty()
    }

    /// The agent that a user id is bound to.
    #[must_use]
    pub fn bound(&self, uid: u32) -> Option<&AgentName> {
        self.by_uid.get(&uid)
    }

    /// The agent that a user id is bound to, and its role.
    #[must_use]
    pub fn forced(&self, uid: u32) -> Option<(AgentName, Role)> {
        let name = self.by_uid.get(&uid)?;
        Some((name.clone(), self.by_name.get(name)?.role))
    }

    /// The registry as a file: `.workfs/agents.yaml`.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let mut text = String::from(
            "# Computed. To change it: workfs agent add NAME [--role ROLE] [--uid UID]\nagents:",
        );
        if self.by_name.is_empty() {
            text.push_str(" []");
        }
        text.push('\n');
        for (name, Registered { role, uid }) in &self.by_name {
            // Names may look like numbers to YAML.
            let uid = uid.map_or_else(String::new, |uid| format!(", uid: {uid}"));
            text.push_str(&format!("  - {{ name: \"{name}\", role: {role}{uid} }}\n"));
        }
        text
    }
}

/// Registers an agent, or changes what is registered of it: what is not given stays as it is in the
/// command's own turn, whoever changes the rest meanwhile.
#[derive(Clone, Debug)]
pub struct PutAgent {
    /// Its name.
    pub name: AgentName,
    /// Its role; of one that is new [`Role::Agent`].
    pub role: Option<Role>,
    /// The user who is this agent, whatever a mount says.
    pub uid: Option<u32>,
    /// One that is registered already stays what it is.
    pub only_new: bool,
}

/// Forgets an agent; mounts that were made for it can only read from then on, and so can the user
/// who was bound to it.
#[derive(Clone, Debug)]
pub struct RemoveAgent {
    /// Its name.
    pub name: AgentName,
}

impl Command for PutAgent {
    /// What was registered of it before.
    type Out = Option<Registered>;

    fn operation(&self) -> &'static str {
        "agent add"
    }

    fn run(self, turn: &mut Turn<'_>) -> std::result::Result<Option<Registered>, Stop> {
        turn.require_operator("register agents", &self)?;
        let registry = Registry::load(turn.txn)?;
        let known = registry.get(&self.name);
        let new = Registered {
            role: self.role.or(known.map(|known| known.role)).unwrap_or(Role::Agent),
            uid: self.uid.or(known.and_then(|known| known.uid)),
        };
        match known {
            Some(known) if known == new || self.only_new => return Ok(Some(known)),
            Some(_) => {}
            None => self.require_unreserved(&turn.context.actor.name)?,
        }
        if let Some(uid) = self.uid
            && let Some(other) = registry.bound(uid).filter(|other| **other != self.name)
        {
            if *other != stand_in(uid)? {
                let reason = format!("user {uid} is the agent {other} already");
                return Err(Refusal::new(Rule::Taken, reason, "a user is one agent").into());
            }
            turn.txn.delete_agent(other)?;
            turn.agent_event(EventName::UNREGISTERED, other, None)?;
        }
        let role = new.role.as_str().to_owned();
        turn.txn.put_agent(&AgentRow { name: self.name.clone(), role, uid: new.uid })?;
        turn.agent_event(EventName::REGISTERED, &self.name, Some(new))?;
        let was = known.and_then(|known| known.uid);
        turn.keep_bound(&registry, was.filter(|was| Some(*was) != new.uid), &self.name)?;
        turn.tell_of_bits(&registry)?;
        Ok(known)
    }
}

impl PutAgent {
    /// What an actor's name in the ledger says must be one thing.
    fn require_unreserved(&self, operator: &AgentName) -> std::result::Result<(), Refusal> {
        let whose = match &self.name {
            name if is_reserved(name, self.uid) => "of whoever is no agent",
            name if name == operator => "of the operator who registers it",
            _ => return Ok(()),
        };
        let reason = format!("`{}` is the name {whose} in the ledger", self.name);
        Err(Refusal::new(Rule::BadName, reason, "give the agent another name"))
    }
}

impl Command for RemoveAgent {
    type Out = ();

    fn operation(&self) -> &'static str {
        "agent remove"
    }

    fn run(self, turn: &mut Turn<'_>) -> std::result::Result<(), Stop> {
        turn.require_operator("remove agents", &self)?;
        let registry = Registry::load(turn.txn)?;
        if !turn.txn.delete_agent(&self.name)? {
            let reason = format!("`{}` is not registered", self.name);
            return Err(Refusal::new(Rule::Absent, reason, "see `workfs agent list`").into());
        }
        turn.agent_event(EventName::UNREGISTERED, &self.name, None)?;
        let was = registry.get(&self.name).and_then(|known| known.uid);
        turn.keep_bound(&registry, was, &self.name)?;
        turn.tell_of_bits(&registry)
    }
}

/// The agent that a user becomes whose own is gone: it only reads. Removing it in turn, by its name, is
/// the operator's word that the user may be anybody.
fn stand_in(uid: u32) -> Result<AgentName> {
    let name = AgentName::new(format!("uid-{uid}"));
    name.map_err(|why| StoreError::Impossible(format!("the name of user {uid}: {why}")))
}

impl Turn<'_> {
    /// Keeps a user who was bound to `agent` from being an operator in plain mounts by now.
    fn keep_bound(
        &mut self,
        registry: &Registry,
        uid: Option<u32>,
        agent: &AgentName,
    ) -> std::result::Result<(), Stop> {
        let Some(uid) = uid else { return Ok(()) };
        let name = stand_in(uid)?;
        if name == *agent {
            return Ok(());
        }
        if registry.get(&name).is_some() {
            let reason = format!("user {uid} would become the agent {name}, which is another");
            let remedy = format!("`workfs agent remove {name}` first");
            return Err(Refusal::new(Rule::Taken, reason, remedy).into());
        }
        let left = Registered { role: Role::Observer, uid: Some(uid) };
        let role = left.role.as_str().to_owned();
        self.txn.put_agent(&AgentRow { name: name.clone(), role, uid: left.uid })?;
        self.agent_event(EventName::REGISTERED, &name, Some(left))?;
        Ok(())
    }

    /// Where the first user was bound, or the last one freed, kernels are shown other bits.
    fn tell_of_bits(&mut self, before: &Registry) -> std::result::Result<(), Stop> {
        if Registry::load(self.txn)?.binds_users() != before.binds_users() {
            self.effect(Effect::Modes);
        }
        Ok(())
    }

    fn agent_event(
        &mut self,
        name: EventName,
        agent: &AgentName,
        registered: Option<Registered>,
    ) -> Result<()> {
        let role = registered.map_or(Field::Absent, |now| Field::Text(now.role.as_str()));
        let uid = registered.and_then(|now| now.uid);
        let uid = uid.map_or(Field::Absent, |uid| Field::Integer(i64::from(uid)));
        let fields = [("agent", Field::Text(agent.as_str())), ("role", role), ("uid", uid)];
        let payload = Payload::of(&fields);
        self.append(None, Happening::of(name, payload))?;
        self.effect(Effect::Agents);
        Ok(())
    }
}
