//! What a mount is asked to be: for whom, and which part of the tree.
//!
//! What must stay true: only what no daemon would mount is refused here. Deliberately not here:
//! mounting (`mounts`), and the rest of the options (`options`).

use std::path::Path;

use super::options::{self, OwnOptions};
use super::point::{IfFiles, expect_free};
use crate::daemon::failure::{Cause, Failure};
use crate::daemon::socket::wire::MountAsk;
use crate::kind::Role;
use crate::names::{AgentName, TreePath};

/// Fails where no daemon would mount this: asked before a store is made for it.
///
/// # Errors
/// As a daemon's.
pub fn expect_mountable(ask: &MountAsk) -> Result<(), Failure> {
    let own = expect_possible(ask)?;
    let dir = Path::new(&ask.dir);
    let if_files = IfFiles { nonempty: ask.nonempty || own.nonempty, crashed: false };
    match workfs_mount::state_of(dir) {
        workfs_mount::DirState::Dead => Ok(()),
        state => expect_free(dir, state, if_files).map(drop),
    }
}

/// The same, of a directory that is still to be made.
///
/// # Errors
/// As [`expect_mountable`].
pub fn expect_possible(ask: &MountAsk) -> Result<OwnOptions, Failure> {
    let own = OwnOptions::parse(&ask.options)?;
    own.kernel()?;
    Who::of(ask, &own)?;
    Ok(own)
}

/// Whom a mount is to act for, and what it is to show.
pub(in crate::daemon) struct Who {
    /// For this agent; nobody's where it is none's.
    pub agent: Option<AgentName>,
    /// In this role, if it is not registered.
    pub role: Option<Role>,
    /// This directory; the whole tree where it is none.
    pub root: Option<TreePath>,
}

impl Who {
    /// As the request says it, else its options.
    ///
    /// # Errors
    /// If that is none of a mount.
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

    /// An agent that is registered keeps its role, `known`.
    ///
    /// # Errors
    /// If another one was asked for.
    pub fn expect_role(&self, known: Option<Role>) -> Result<(), Failure> {
        match (&self.agent, known, self.role) {
            (Some(name), Some(known), Some(role)) if known != role => {
                let reason = format!("{name} is registered as {known}, not as {role}");
                let remedy =
                    format!("leave --role out, or `workfs agent add {name} --role {role}`");
                Err(Failure::new(Cause::Conflict, reason, remedy))
            }
            _ => Ok(()),
        }
    }
}
