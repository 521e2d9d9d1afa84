//! Who is registered as an agent.

use crate::names::AgentName;

use super::Result;

/// A registered agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRow {
    /// Its name.
    pub name: AgentName,
    /// Its role, by the name that kinds use.
    pub role: String,
    /// The user who is this agent, whatever a mount says.
    pub uid: Option<u32>,
}

/// What can be asked of the register.
pub trait ReadAgents {
    /// All registered agents, by name.
    fn agents(&self) -> Result<Vec<AgentRow>>;
}

/// The operations that change the register.
pub trait TxnAgents {
    /// Registers an agent, or changes what is registered of it.
    fn put_agent(&mut self, agent: &AgentRow) -> Result<()>;
    /// Forgets an agent; false if it was not registered.
    fn delete_agent(&mut self, name: &AgentName) -> Result<bool>;
}
