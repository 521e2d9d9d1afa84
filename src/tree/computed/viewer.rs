//! Who looks at what is computed, and through what.

use std::sync::Arc;

use crate::config::Config;
use crate::engine::{Ends, LeaseClock, Registry};
use crate::kind::Role;
use crate::names::AgentName;
use crate::numbers::{Ino, UnixNanos};
use crate::refusal::Refusal;

/// See the module.
pub(in crate::tree) struct Viewer {
    /// The user.
    pub uid: u32,
    /// Its first group.
    pub gid: u32,
    /// Whether the kernel is shown that roles say who may write what is governed.
    pub shows_roles: bool,
    pub config: Arc<Config>,
    pub agents: Arc<Registry>,
    /// Whom it acts for.
    pub actor: AgentName,
    pub role: Role,
    /// The root of its mount.
    pub root: Ino,
    /// Whether nothing can be changed through it.
    pub is_read_only: bool,
    /// The time.
    pub now: UnixNanos,
    pub lease_clock: LeaseClock,
    /// Leases that are over, of which the store does not say so yet.
    pub ends: Arc<Ends>,
    /// Why changes are refused, whatever they are, where that was asked.
    pub refuses: Option<Refusal>,
}
