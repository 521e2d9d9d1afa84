//! `workfs agent`.

use clap::{Args, Subcommand};

use super::super::asked::role;
use super::ask::Missing;
use crate::kind::Role;
use crate::names::AgentName;
use crate::service::{self, Request};

/// See `workfs agent --help`.
#[derive(Debug, Args)]
pub struct AgentArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Register an agent, or change what is registered of it
    Add(AddArgs),
    /// Take an agent from the register: its mounts can only read from then on
    Remove {
        /// Its name
        #[arg(value_parser = super::agent)]
        name: AgentName,
    },
    /// List the registered agents
    List,
}

#[derive(Debug, Args)]
struct AddArgs {
    /// Its name
    #[arg(value_parser = super::agent)]
    name: AgentName,
    /// Its role [default: what it is registered as; of a new one agent]
    #[arg(long, value_name = "ROLE", value_parser = role())]
    role: Option<Role>,
    /// The user who is this agent, through whichever mount
    #[arg(long, value_name = "UID")]
    uid: Option<u32>,
}

impl AgentArgs {
    /// Only whoever registers somebody wants a store.
    pub fn missing(&self) -> Missing {
        if matches!(self.what, What::Add(_)) { Missing::Make } else { Missing::Refuse }
    }

    /// The request.
    pub fn request(&self) -> Request {
        match &self.what {
            What::Add(AddArgs { name, role, uid }) => {
                let (name, role, uid) = (name.clone(), *role, *uid);
                Request::AgentAdd(service::AgentAddArgs { name, role, uid, agent: None })
            }
            What::Remove { name } => {
                let name = name.clone();
                Request::AgentRemove(service::AgentRemoveArgs { name, agent: None })
            }
            What::List => Request::Agents,
        }
    }
}
