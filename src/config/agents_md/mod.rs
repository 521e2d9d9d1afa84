//! `AGENTS.md` at the root of the mount: all that an agent with a shell needs, made from the
//! configuration.
//!
//! What must stay true: at most 60 lines (a test counts them); every directory, status and field in
//! it comes from a kind; it mentions only what exists, and tells nobody to do what is refused to him.

mod look;
mod script;
mod steps;

use super::path_glob::PathGlob;
use super::{Binding, Config};
use crate::kind::{Component, Kind, Pattern, Role, State, Transition};
use crate::names::{AgentName, FileName, TreePath, shell_word};

/// More would not be read.
#[cfg(test)]
pub(super) const LINES_MAX: usize = 60;

/// Workspaces that are listed by name; the rest is in the configuration.
const LISTED_MAX: usize = 4;

/// Who reads `AGENTS.md`, and where.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reader<'a> {
    /// The agent whom it acts for, and what that may do; none: an operator.
    pub agent: Option<(&'a AgentName, Role)>,
    /// Nothing can be changed through its mount, whoever it is.
    pub is_read_only: bool,
}

/// The text of `AGENTS.md` for this configuration, in a mount that shows the directory `root` of the
/// tree.
#[must_use]
pub fn agents_md(config: &Config, root: &TreePath, reader: Reader<'_>) -> String {
    let mut out = String::from(
        "# How to work here\n\n\
         This directory is a workfs mount: work lies in plain files, `mv` claims it, saving checks \
         it. Paths below count from here.\n",
    );
    // In a mount of a part `.workfs/` has little.
    let is_whole = root.names().is_empty();
    let seen: Vec<Seen<'_>> = config
        .bindings()
        .iter()
        .filter_map(|binding| Some((binding.path.seen_from(root.names())?, &**binding)))
        .collect();
    if reader.only_looks() {
        reader.look(&mut out, &seen, is_whole);
        return out;
    }
    let me = reader.agent.map(|(name, _)| name.as_str());
    let role = reader.agent.map_or(Role::Agent, |(_, role)| role);
    let guides = || seen.iter().filter_map(|(path, binding)| Guide::of(path, binding, (me, role)));
    let literal = guides().find(|guide| guide.path.literal().is_some());
    let Some(guide) = literal.or_else(|| guides().next()) else {
        list_workspaces(&mut out, (&seen, is_whole), None);
        out.push_str(match (seen.is_empty(), is_whole) {
            (true, true) => "\nNo directory here is a workspace yet: see `.workfs/config.yaml`.\n",
            (true, false) => {
                "\nNo workspace lies whole in the part of the tree that this mount shows.\n"
            }
            (false, true) => {
                "\nNo agent claims and finishes records here: who moves what is in \
                 `.workfs/kinds/`.\n"
            }
            (false, false) => "\nNo agent claims and finishes records here.\n",
        });
        out.push_str("What was refused, and the way out: `cat .workfs/why`.");
        out.push_str(kept(is_whole));
        out.push('\n');
        return out;
    };
    list_workspaces(&mut out, (&seen, is_whole), Some(guide.kind));
    guide.steps(&mut out, is_whole);
    guide.script(&mut out, is_whole);
    guide.errors(&mut out, is_whole);
    out
}

/// Where refused text is kept, in a mount that shows it.
fn kept(is_whole: bool) -> &'static str {
    if is_whole { " Refused text is kept in `.workfs/rejected/`." } else { "" }
}

/// A workspace's path from the root of the mount, and what is bound to it.
type Seen<'c> = (PathGlob, &'c Binding);

/// Lists them; `guided` is the kind of which the steps are told. Where it is the only workspace, the
/// steps say all.
fn list_workspaces(out: &mut String, (seen, is_whole): (&[Seen<'_>], bool), guided: Option<&Kind>) {
    let steps = match guided {
        Some(_) if seen.len() < 2 => return,
        None if seen.is_empty() => return,
        None => String::new(),
        Some(kind) if seen.iter().all(|(_, one)| one.kind.name() == kind.name()) => {
            "; the same steps in each".to_owned()
        }
        Some(kind) => format!("; the steps are those of the kind `{}`", kind.name()),
    };
    out.push_str(&format!("\nWorkspaces (each has its own ids{steps}):\n"));
    for (path, binding) in seen.iter().take(LISTED_MAX) {
        let dirs: Vec<String> =
            binding.kind.states().map(|(_, state)| format!("`{}`", state.shown(None))).collect();
        let kind = binding.kind.name();
        out.push_str(&format!("- `{path}` ({kind}): {}\n", dirs.join(" ")));
    }
    if seen.len() > LISTED_MAX {
        let more = seen.len() - LISTED_MAX;
        let all = if is_whole { ": `.workfs/config.yaml`" } else { "" };
        out.push_str(&format!("- and {more} more{all}\n"));
    }
}

/// The life that an agent leads a record through: found, claimed, finished.
struct Guide<'c> {
    /// The agent whose mount it is, if it is one's.
    me: Option<&'c str>,
    /// What it may do.
    role: Role,
    binding: &'c Binding,
    /// Its workspaces, from the root of the mount.
    path: &'c PathGlob,
    kind: &'c Kind,
    inbox: &'c State,
    claim: &'c Transition,
    lane: &'c State,
    finish: &'c Transition,
    done: &'c State,
}

impl<'c> Guide<'c> {
    /// `None` where the kind has no such life for an agent.
    fn of(
        path: &'c PathGlob,
        binding: &'c Binding,
        (me, role): (Option<&'c str>, Role),
    ) -> Option<Self> {
        let kind = &*binding.kind;
        let inbox = kind.initial();
        let claim = kind.claim().filter(|claim| claim.by.contains(&role))?;
        let lane = Some(kind.state(claim.to)).filter(|lane| lane.has_owner())?;
        let finish = kind.finish_from(claim.to, role)?;
        let (inbox, done) = (kind.state(inbox), kind.state(finish.to));
        Some(Guide { me, role, binding, path, kind, inbox, claim, lane, finish, done })
    }

    /// The computed directory of what is ready, from the root of the mount, for a shell.
    fn ready(&self) -> String {
        word(ready_of(self.path, self.kind))
    }

    /// A state's directory from the root of the mount, without the last slash, for a shell.
    fn dir(&self, state: &State, me: &str) -> String {
        word(state_dir(self.path, state, me))
    }

    fn ext(&self) -> &str {
        self.kind.usual_extension()
    }
}

/// A workspace's computed directory of what is ready, from the root of the mount.
fn ready_of(path: &PathGlob, kind: &Kind) -> String {
    below(path, itself(&kind.order().dir))
}

/// A state's directory from the root of the mount, without the last slash.
fn state_dir(path: &PathGlob, state: &State, me: &str) -> String {
    let parts = state.dirs.first().into_iter().flat_map(Pattern::components);
    let parts = parts.map(|part| match part {
        Component::Literal(name) => itself(name),
        Component::Owner => me,
        Component::YearMonth => "<yyyy-mm>",
        Component::Any => "<any>",
    });
    below(path, &parts.collect::<Vec<_>>().join("/"))
}

/// A path of a workspace from the root of the mount. No program takes it for an option.
fn below(path: &PathGlob, rest: &str) -> String {
    let path = match path.as_str() {
        "." => rest.to_owned(),
        text if path.literal().is_some() => format!("{}/{rest}", text.trim_end_matches('/')),
        _ => format!("WORKSPACE/{rest}"),
    };
    if path.starts_with('-') { format!("./{path}") } else { path }
}

/// A name of a configuration, which is a text: as it is, since a shell is to find it.
fn itself(name: &FileName) -> &str {
    name.as_str().unwrap_or_default()
}

/// A path as a shell reads it, or the beginning of one.
fn word(path: String) -> String {
    shell_word(path.as_bytes())
}
