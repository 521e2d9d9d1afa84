//! What a mount is asked to be: for whom it acts, and what it shows; from the request and its `-o`.
//!
//! Deliberately not here: making it (`mounts`).

use std::path::Path;

use super::failure::{Cause, Failure};
use super::options::{self, OwnOptions};
use super::point;
use super::wire::MountAsk;
use crate::kind::Role;
use crate::names::{AgentName, TreePath};

/// Fails where no daemon would mount this: asked before a store is made for it.
///
/// # Errors
/// As [`super::mounts::Mounts::add`].
pub fn expect_mountable(ask: &MountAsk) -> Result<(), Failure> {
    let own = OwnOptions::parse(&ask.options)?;
    own.kernel()?;
    Who::of(ask, &own)?;
    let dir = Path::new(&ask.dir);
    if workfs_mount::state_of(dir) != workfs_mount::DirState::Dead {
        point::expect_free(dir, false, ask.nonempty || own.nonempty)?;
    }
    Ok(())
}

/// Whom a mount is to act for, and what it is to show.
pub(super) struct Who {
    /// The agent, if it is one's.
    pub agent: Option<AgentName>,
    /// The role to register it in.
    pub role: Option<Role>,
    /// The directory that is shown, where that is not the root.
    pub root: Option<TreePath>,
}

impl Who {
    pub fn of(ask: &MountAsk, own: &OwnOptions) -> Result<Who, Failure> {
        let agent = match &ask.agent {
            Some(name) => Some(options::agent(name)?),
            None => own.agent.clone(),
        };
        let role = match &ask.role {
            Some(name) => Some(options::role(name)?),
            None => own.role,
        };
        let root = match &ask.root {
            Some(path) => Some(options::root(path)?),
            None => own.root.clone(),
        };
        if role.is_some() && agent.is_none() {
            let remedy = "name the agent with --agent";
            return Err(Failure::new(Cause::Usage, "a role is an agent's", remedy));
        }
        Ok(Who { agent, role, root: root.filter(|path| !path.names().is_empty()) })
    }
}
