//! Which roles may write whose records: a table of the kind's definition.

use super::role::Role;

/// Whose a record is to a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holding {
    /// Nobody's.
    Free,
    /// The caller's.
    Own,
    /// Somebody else's.
    Others,
}

/// Who may make and write records. Moving them is also a matter of the transition's `by`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Make records where nobody owns them.
    pub create: Vec<Role>,
    /// Write and remove those that nobody owns.
    pub free: Vec<Role>,
    /// Write, move and remove those that one owns.
    pub own: Vec<Role>,
    /// Act for others: write, move and remove what they own, and all where work has ended.
    pub others: Vec<Role>,
}

impl Default for Rights {
    fn default() -> Self {
        let all = || Role::ALL.iter().copied().filter(|role| *role != Role::Observer);
        let leads = all().filter(|role| !matches!(role, Role::Agent | Role::Builder)).collect();
        Rights {
            create: all().collect(),
            free: all().collect(),
            own: all().collect(),
            others: leads,
        }
    }
}

impl Rights {
    /// Who may write what is held so.
    #[must_use]
    pub fn of(&self, holding: Holding) -> &[Role] {
        match holding {
            Holding::Free => &self.free,
            Holding::Own => &self.own,
            Holding::Others => &self.others,
        }
    }
}
