//! A store with a plain mount and a mount for each of several agents.

use std::path::{Path, PathBuf};

use crate::harness::{Errno, Fixture, Setup, Shell};

/// The operator's mount is the fixture's first; agents have theirs beside it.
pub struct Team {
    pub fixture: Fixture,
    /// The arguments of each agent's `workfs mount`.
    pub arguments: Vec<Vec<String>>,
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
        let fixture = Setup::default().mounts(1 + agents.len()).lanes(lanes).prepare();
        let of = |(name, role): &(&str, &str)| {
            let role = if role.is_empty() { vec![] } else { vec!["--role", role] };
            let all = [&["--agent", name], &*role, arguments].concat();
            all.into_iter().map(str::to_owned).collect()
        };
        let team = Team { fixture, arguments: agents.iter().map(of).collect() };
        team.fixture.mount_at(team.fixture.root()).success();
        team.fixture.make_directories();
        team.mount();
        team
    }

    /// Mounts what is not mounted (any more).
    #[track_caller]
    pub fn mount(&self) {
        self.fixture.mount_at(self.fixture.root()).success();
        for (nth, arguments) in self.arguments.iter().enumerate() {
            let mut all = vec!["mount", self.fixture.mount(nth + 1).to_str().unwrap()];
            all.extend(arguments.iter().map(String::as_str));
            self.fixture.workfs(&all).success();
        }
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

    /// The paths at which the ledger says that this agent tried what is forbidden, one for each event.
    pub fn forbidden_to(&self, agent: &str) -> Vec<String> {
        let ledger = self.fixture.ledger();
        let by = ledger.0.iter().filter(|event| event.name() == "forbidden");
        let by = by.filter(|event| event.text("actor") == agent);
        by.map(|event| event.0["payload"]["path"].as_str().unwrap().to_owned()).collect()
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
