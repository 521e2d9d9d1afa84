//! A store with a plain mount and a mount for each of several agents.

use std::path::{Path, PathBuf};

use crate::harness::{Errno, Fixture, Setup, Shell};

/// The operator's mount is the fixture's first; agents have theirs beside it.
pub struct Team {
    pub fixture: Fixture,
}

impl Team {
    /// A mount for each `(agent, role)`; an empty role is the usual one.
    #[track_caller]
    pub fn of(agents: &[(&str, &str)]) -> Team {
        Team::with(agents, &[])
    }

    /// The same with more arguments of each agent's `workfs mount`.
    #[track_caller]
    pub fn with(agents: &[(&str, &str)], arguments: &[&str]) -> Team {
        let lanes = agents.iter().map(|(name, _)| *name);
        let team =
            Team { fixture: Setup::default().mounts(1 + agents.len()).lanes(lanes).prepare() };
        team.fixture.mount_at(team.fixture.root()).success();
        team.fixture.make_directories();
        for (nth, (name, role)) in agents.iter().enumerate() {
            let dir = team.fixture.mount(nth + 1);
            let mut all = vec!["mount", dir.to_str().unwrap(), "--agent", name];
            if !role.is_empty() {
                all.extend(["--role", role]);
            }
            all.extend(arguments);
            team.fixture.workfs(&all).success();
        }
        team
    }

    /// The workspace in the mount of the `nth` agent, from 1; 0 is the operator's.
    pub fn work(&self, nth: usize) -> PathBuf {
        self.fixture.mount(nth).join("work")
    }

    /// Bash in the mount of the `nth` agent.
    pub fn bash(&self, nth: usize) -> Shell<'_> {
        Shell::bash(self.fixture.mount(nth)).with("OUT", self.fixture.base().join("outside"))
    }

    /// Runs a snippet there.
    #[track_caller]
    pub fn sh(&self, nth: usize, snippet: &str) -> crate::harness::Ran {
        self.bash(nth).run(snippet)
    }

    /// What `.workfs/why` says in the mount of the `nth` agent.
    pub fn why(&self, nth: usize) -> String {
        std::fs::read_to_string(self.fixture.mount(nth).join(".workfs/why")).unwrap()
    }
}

/// The errno of a call that must fail.
#[track_caller]
pub fn errno<T: std::fmt::Debug>(result: std::io::Result<T>) -> Errno {
    Errno::from_io_error(&result.expect_err("this must be refused")).expect("an errno")
}

/// Renames a task between directories of a workspace.
pub fn mv(work: &Path, task: &str, from: &str, to: &str) -> std::io::Result<()> {
    let file = format!("{task}.yaml");
    std::fs::rename(work.join(from).join(&file), work.join(to).join(&file))
}
