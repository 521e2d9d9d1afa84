//! The register of agents: shown, added to, taken from.

use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::engine::{PutAgent, Registered, RemoveAgent, groups_of, offer};
use crate::kind::Role;
use crate::names::{AgentName, Shown, shell_word};

use super::{AgentAddArgs, AgentRemoveArgs, Caller, Exit, Failure, Service};

/// A registered agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentInfo {
    /// Its name.
    pub name: AgentName,
    /// Its role.
    pub role: Role,
    /// The user who is this agent, whatever a mount says.
    pub uid: Option<u32>,
}

/// See [`super::Request::Agents`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentsReport {
    /// All registered agents, by name.
    pub agents: Vec<AgentInfo>,
    /// What the one that was just added is still, and what stands in its way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl AgentsReport {
    /// One line an agent.
    #[must_use]
    pub fn human(&self) -> String {
        let line = |agent: &AgentInfo| {
            let uid = agent.uid.map_or_else(String::new, |uid| format!("  uid {uid}"));
            format!("{}  {}{uid}", agent.name, agent.role)
        };
        self.agents.iter().map(line).chain(self.note.clone()).collect::<Vec<_>>().join("\n")
    }

    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        Exit::Done
    }
}

/// Shows all.
pub(super) fn list(service: &Service) -> AgentsReport {
    let registry = service.engine.agents();
    let info = |(name, Registered { role, uid }): (&AgentName, &Registered)| AgentInfo {
        name: name.clone(),
        role: *role,
        uid: *uid,
    };
    AgentsReport { agents: registry.all().map(info).collect(), note: None }
}

/// Registers one, or changes what is registered of it: what is not given stays.
pub(super) fn add(
    service: &Service,
    caller: &Caller,
    args: &AgentAddArgs,
) -> Result<AgentsReport, Failure> {
    if let Some(uid) = args.uid {
        refuse_operator(service, uid)?;
    }
    let (name, role, uid) = (args.name.clone(), args.role, args.uid);
    let add = PutAgent { name, role, uid, only_new: false };
    let known = service.engine.run(caller.context(), add)?;
    // Also where nothing was changed: it may be done again because it was interrupted.
    offer(&service.engine, &caller.context(), &args.name)?;
    let kept = known.filter(|known| args.role.is_none() && known.role != Role::Agent);
    let kept = kept.map(|known| stays(&args.name, known.role));
    let notes = [kept, args.uid.and_then(|uid| out_of_reach(&service.store, uid))];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    let note = (!notes.is_empty()).then(|| notes.join("\n"));
    Ok(AgentsReport { note, ..list(service) })
}

/// What is said where no role is given: who leaves it out may think of the one that new agents have.
fn stays(name: &AgentName, role: Role) -> String {
    format!("{name} was registered as {role} and stays it: `--role agent` makes it an agent")
}

/// Which directory keeps a user from the store's socket, if one does.
fn out_of_reach(store: &Path, uid: u32) -> Option<String> {
    if uid == 0 {
        return None;
    }
    let groups = groups_of(uid);
    // Of the bits those count whose the user is, and no others.
    let bit = |dir: &Metadata| match () {
        () if dir.uid() == uid => ("u", 0o100),
        () if groups.contains(&dir.gid()) => ("g", 0o010),
        () => ("o", 0o001),
    };
    let shut = |dir: &Path| {
        let found = std::fs::metadata(dir).ok()?;
        let (whose, bit) = bit(&found);
        (found.permissions().mode() & bit == 0).then_some(whose)
    };
    let mut above = store.ancestors().skip(1);
    let (dir, whose) = above.find_map(|dir| Some((dir, shut(dir)?)))?;
    let word = shell_word(dir.as_os_str().as_encoded_bytes());
    Some(format!(
        "user {uid} works in mounts, and can call no commands: {} does not let that user pass to \
         the store's socket (`chmod {whose}+x {word}` would; the store itself stays its owner's)",
        dir.shown()
    ))
}

/// Takes one from the register.
pub(super) fn remove(
    service: &Service,
    caller: &Caller,
    args: &AgentRemoveArgs,
) -> Result<AgentsReport, Failure> {
    service.engine.run(caller.context(), RemoveAgent { name: args.name.clone() })?;
    Ok(list(service))
}

/// Whoever runs the store cannot be an agent by user id: nobody could undo it.
fn refuse_operator(service: &Service, uid: u32) -> Result<(), Failure> {
    // What system calls mean by it is "leave the user as it is".
    if uid == u32::MAX {
        let reason = format!("{uid} is no user's id");
        return Err(Failure::new(Exit::Usage, reason, "`id -u NAME` tells a user's"));
    }
    if service.is_operator(uid) {
        let reason = format!("user {uid} runs this store and is its operator");
        let remedy = "give the agent a user of its own, or leave --uid out";
        return Err(Failure::new(Exit::Usage, reason, remedy));
    }
    Ok(())
}
