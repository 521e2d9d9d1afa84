//! The role that a caller has in a lifecycle.

use std::fmt;

use crate::names::with_article;

/// What a caller may be. The names are those of the kinds' definitions.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Works on tasks.
    Agent,
    /// Works on tasks, reads inventory.
    Builder,
    /// Hands out work.
    Coordinator,
    /// Hands out work, owns inventory.
    Manager,
    /// As a manager, above several.
    Supervisor,
    /// Runs the store; may do all that a lifecycle knows.
    Operator,
    /// Reads only.
    Observer,
}

impl Role {
    /// All roles.
    pub const ALL: &'static [Role] = &[
        Role::Agent,
        Role::Builder,
        Role::Coordinator,
        Role::Manager,
        Role::Supervisor,
        Role::Operator,
        Role::Observer,
    ];

    /// Its name in definitions.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Agent => "agent",
            Role::Builder => "builder",
            Role::Coordinator => "coordinator",
            Role::Manager => "manager",
            Role::Supervisor => "supervisor",
            Role::Operator => "operator",
            Role::Observer => "observer",
        }
    }

    /// The role of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Role> {
        Role::ALL.iter().copied().find(|role| role.as_str() == name)
    }

    /// Its name in a sentence: `an agent`, `a coordinator`.
    #[must_use]
    pub fn with_article(self) -> String {
        with_article(self.as_str())
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_serde_agree() {
        for role in Role::ALL {
            let text = serde_json::to_string(role).unwrap();
            assert_eq!(text, format!("\"{role}\""));
            assert_eq!(Role::named(role.as_str()), Some(*role));
        }
        assert_eq!(Role::named("boss"), None);
        assert_eq!(Role::Agent.with_article(), "an agent");
    }
}
