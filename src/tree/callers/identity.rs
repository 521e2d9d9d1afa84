//! Whom a mount acts for.

use workfs_mount::Shows;

use crate::names::AgentName;
use crate::numbers::Ino;

/// Whom a mount acts for, and what it shows.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The agent, where the mount was made for one.
    pub agent: Option<AgentName>,
    /// The user who made the mount, for whom a plain one acts.
    pub maker: AgentName,
    /// The directory that is the mount's root.
    pub root: Ino,
    /// Whether it shows owners and permission bits as they are stored.
    pub shows_stored: bool,
    /// Whether its kernel asks those, as shown.
    pub is_checked: bool,
    /// Whether its kernel lets nobody change anything.
    pub is_read_only: bool,
    /// What its kernel is shown, where it asks permission bits.
    pub asks: Option<Shows>,
}

impl Identity {
    /// A plain mount of the whole tree, made by this user.
    #[must_use]
    pub fn plain(maker: AgentName) -> Identity {
        Identity {
            agent: None,
            maker,
            root: workfs_mount::ROOT,
            shows_stored: true,
            is_checked: false,
            is_read_only: false,
            asks: None,
        }
    }
}
