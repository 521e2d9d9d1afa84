//! What a directory of a workspace is, and where a state's directory lies.

use crate::kind::{Kind, StateIx};
use crate::names::{AgentName, FileName, NameError};
use crate::numbers::UnixNanos;

/// What a directory below a workspace is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The workspace's root.
    Root,
    /// On the way to a state's directory: `assigned/`.
    Prefix,
    /// A state's directory.
    State {
        /// Which state.
        state: StateIx,
        /// The owner it names.
        owner: Option<AgentName>,
    },
    /// None of the kind's business.
    Outside,
}

impl Place {
    /// Whether records lie in it.
    #[must_use]
    pub fn is_state(&self) -> bool {
        matches!(self, Place::State { .. })
    }

    /// Whether it is somebody's own.
    #[must_use]
    pub fn is_lane(&self) -> bool {
        matches!(self, Place::State { owner: Some(_), .. })
    }
}

impl Kind {
    /// What the directory at `relative`, counted from the workspace's root, is.
    #[must_use]
    pub fn place(&self, relative: &[FileName]) -> Place {
        if relative.is_empty() {
            return Place::Root;
        }
        let dirs = || self.states().flat_map(|(ix, state)| state.dirs.iter().map(move |d| (ix, d)));
        if let Some((state, dir)) = dirs().find(|(_, dir)| dir.matches(relative)) {
            return Place::State { state, owner: dir.owner_of(relative) };
        }
        if dirs().any(|(_, dir)| dir.is_prefix(relative)) { Place::Prefix } else { Place::Outside }
    }

    /// Why `relative` is no lane, where that is for its name alone.
    #[must_use]
    pub fn misnamed_lane(&self, relative: &[FileName]) -> Option<NameError> {
        if self.place(relative) != Place::Outside {
            return None;
        }
        self.states().flat_map(|(_, state)| &state.dirs).find_map(|dir| dir.misses(relative))
    }

    /// The canonical directory of a state; `None` if it needs an owner and there is none.
    #[must_use]
    pub fn directory(
        &self,
        state: StateIx,
        owner: Option<&AgentName>,
        now: UnixNanos,
    ) -> Option<Vec<FileName>> {
        self.state(state).dirs.first()?.fill(owner, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::builtin;
    use crate::names::TreePath;

    fn place(text: &str) -> Place {
        builtin::task().place(TreePath::parse(text).unwrap().names())
    }

    fn state(name: &str, owner: Option<&str>) -> Place {
        let state = builtin::task().state_named(name).unwrap();
        Place::State { state, owner: owner.map(|name| AgentName::new(name).unwrap()) }
    }

    #[test]
    fn every_directory_of_a_task_workspace_has_its_place() {
        for (path, expected) in [
            ("", Place::Root),
            ("inbox", state("inbox", None)),
            ("assigned", Place::Prefix),
            ("assigned/bob", state("assigned", Some("bob"))),
            ("assigned/.bob", Place::Outside),
            ("assigned/bob/sub", Place::Outside),
            ("done", state("done", None)),
            ("done/bob", state("done", Some("bob"))),
            ("fridge", state("fridge", None)),
            ("fridge/legacy-tooling", state("fridge", None)),
            ("archive", state("archive", None)),
            ("archive/2025-11", state("archive", None)),
            ("archive/2025-11-epic-55", state("archive", None)),
            ("archive/.git", Place::Outside),
            ("inbox/sub", Place::Outside),
            ("backups", Place::Outside),
            ("collaboration/inbox", Place::Outside),
        ] {
            assert_eq!(place(path), expected, "{path}");
        }
    }

    #[test]
    fn the_canonical_directory_leads_back_to_its_state() {
        let task = builtin::task();
        let bob = AgentName::new("bob").unwrap();
        let now = UnixNanos(1_764_000_000_000_000_000);
        for (ix, state) in task.states() {
            let dir = task.directory(ix, Some(&bob), now).unwrap();
            let owner = state.has_owner().then(|| bob.clone());
            assert_eq!(task.place(&dir), Place::State { state: ix, owner }, "{}", state.name);
        }
        let archive = task.state_named("archive").unwrap();
        let dir: TreePath = task.directory(archive, None, now).unwrap().into_iter().collect();
        assert_eq!(dir.to_string(), "archive/2025-11");
        let assigned = task.state_named("assigned").unwrap();
        assert_eq!(task.directory(assigned, None, now), None);
    }

    #[test]
    fn a_directory_of_a_state_is_no_misnamed_lane_of_another() {
        use crate::kind::load::load_test::{SOUND, load};
        let dirs = SOUND.replace("\"shut/{yyyy-mm}\", shut", "taken/.shut");
        let kind = load(&dirs).unwrap();
        let misnamed = |path: &str| kind.misnamed_lane(TreePath::parse(path).unwrap().names());
        assert_eq!(misnamed("taken/.shut"), None);
        assert_eq!(misnamed("taken/.other"), Some(NameError::Grammar));
        assert_eq!(misnamed("taken/bob"), None);
    }
}
