//! The configuration of a store: which directories of the mount are workspaces of which kind.
//!
//! What must stay true: a configuration that exists is consistent; `scratchpad/` is governed only
//! where a path says so literally, `.workfs/` never. Deliberately not here: reading files, the
//! store, what a kind is.

mod agents_md;
mod files;
mod form;
mod kinds;
mod path_glob;
mod quotas;

#[cfg(test)]
mod agents_md_test;
#[cfg(test)]
mod config_test;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

pub use agents_md::{Reader, agents_md};
pub use files::{Check, FileRules, Keep, LockRule, Retention, SCHEMAS, Scope, Syntax, allowed};
pub use path_glob::{FileGlob, PathGlob};
pub use quotas::Quota;

use crate::kind::{
    Component, Fault, Kind, KindError, Kinds, Pattern, StateIx, builtin, where_and_why,
};
use crate::names::{FileName, RecordId, StateName, TreePath};
use crate::refusal::Rule;

/// The setting under which a store keeps its configuration, as text.
pub const CONFIG_KEY: &str = "config";

/// The name of a configuration that a store keeps, for errors.
const KEPT: &str = "config.yaml";

/// The directory at the root of the mount that is left alone.
pub const SCRATCH_DIR: &[u8] = b"scratchpad";

/// Why a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", where_and_why(&self.file, self.line, &self.reason))]
pub struct ConfigError {
    /// The file.
    pub file: String,
    /// The line in it, where it is known.
    pub line: Option<u32>,
    /// What is wrong, naming the thing.
    pub reason: String,
    /// What the file is.
    pub subject: Subject,
}

/// What a file is that is wrong, and so which reference helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A configuration.
    Layout,
    /// The definition or the schema of a kind.
    Kind,
}

/// When a configuration was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    /// Now: whatever is wrong with it is refused.
    Anew,
    /// Before, perhaps to a former version, and a store keeps it. What hides something that workfs shows at the
    /// root of each mount was taken then, and so was a command that can never work; both are now, since a store
    /// that cannot be opened helps nobody.
    Before,
}

/// What happens to a save that is not valid.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// It fails and the old version stays.
    #[default]
    Refuse,
    /// It is kept and marked; the record cannot change state until it is mended.
    Flag,
}

impl Policy {
    /// Whether a text that breaks this rule is kept and marked. What a text is by itself can be wrong so; who
    /// may save it, and what it would make of other records (a circle), is no matter of its own.
    #[must_use]
    pub fn takes(self, rule: Rule) -> bool {
        self == Policy::Flag && rule.is_of_content() && rule != Rule::Cycle
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Policy::Refuse => "refuse",
            Policy::Flag => "flag",
        })
    }
}

/// Which chores are done in a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Chores {
    /// A record that names a registered agent goes to its lane when it is ready for the first time.
    pub assign: bool,
    /// A finished record that names the next agent makes a record for it.
    pub handoff: bool,
    /// Finished records are put away after a time.
    pub archive: bool,
    /// Records that do not go on are told of.
    pub escalate: bool,
    /// Drafts that nobody mends are put aside.
    pub drafts: bool,
}

impl Default for Chores {
    /// A team's own coordinator may do the rest.
    fn default() -> Self {
        Chores { assign: false, handoff: true, archive: false, escalate: false, drafts: false }
    }
}

/// One entry of the configuration: directories that are workspaces of a kind.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The directories.
    pub path: PathGlob,
    /// The kind, with this entry's directory names.
    pub kind: Arc<Kind>,
    /// What happens to a save that is not valid.
    pub policy: Policy,
    /// What the daemon does by itself there.
    pub chores: Chores,
    /// Does every save need the kind's full set of fields?
    pub strict: bool,
    /// The directory names that differ from the kind's own.
    pub dirs: BTreeMap<StateName, Vec<String>>,
}

impl Binding {
    /// Judges the whole content of a record that lies, or is to lie, in `state`.
    ///
    /// # Errors
    /// The first rule that it breaks; see [`Kind::judge`].
    pub fn judge(&self, content: &Value, id: &RecordId, state: StateIx) -> Result<(), Fault> {
        self.kind.judge(content, id, state)?;
        if self.strict { self.kind.judge_strict(content) } else { Ok(()) }
    }
}

/// The configuration of a store.
#[derive(Clone, Debug)]
pub struct Config {
    kinds: Kinds,
    bindings: Vec<Arc<Binding>>,
    files: FileRules,
    quotas: Vec<Quota>,
}

impl Default for Config {
    /// `work` and `work/collaboration` hold tasks; saves in `scratchpad/` are kept.
    fn default() -> Self {
        let bind = |name: &str| {
            let path = PathGlob::parse(name)
                // PROOF: literals of this file, read by a test.
                .unwrap_or_else(|why| unreachable!("the default configuration is wrong: {why}"));
            let (kind, policy, chores) = (builtin::task(), Policy::Refuse, Chores::default());
            let (strict, dirs) = (false, BTreeMap::new());
            Arc::new(Binding { path, kind, policy, chores, strict, dirs })
        };
        Config {
            kinds: Kinds::default(),
            bindings: ["work", "work/collaboration"].into_iter().map(bind).collect(),
            files: FileRules::standard(),
            quotas: Vec::new(),
        }
    }
}

impl Config {
    /// The directories that it names outright: no globs, no owners, no months.
    #[must_use]
    pub fn directories(&self) -> Vec<TreePath> {
        let mut all = Vec::new();
        for binding in &self.bindings {
            let Some(root) = binding.path.literal() else { continue };
            all.push(root.clone());
            for (_, state) in binding.kind.states() {
                all.extend(state.dirs.iter().filter_map(|dir| literal_start(&root, dir)));
            }
        }
        let mut seen = std::collections::HashSet::new();
        all.retain(|path| seen.insert(path.clone()));
        all
    }

    /// Reads a configuration that names built-in kinds. `file` is its name, for errors.
    ///
    /// # Errors
    /// Syntax, unknown keys, kinds and states (with the nearest known one), bad paths and
    /// patterns, and workspaces that lie in each other's directories.
    pub fn parse(file: &str, text: &str) -> Result<Config, ConfigError> {
        Config::parse_with(file, text, &Kinds::default())
    }

    /// The same with kinds of a user's own.
    ///
    /// # Errors
    /// As [`Config::parse`].
    pub fn parse_with(file: &str, text: &str, kinds: &Kinds) -> Result<Config, ConfigError> {
        let none = |file: &str| Err(format!("the file `{file}` is read by `init --layout` only"));
        form::parse(file, text, kinds, (&none, Given::Anew))
    }

    /// Reads a layout (`workfs init --layout FILE`): a configuration that may name files of
    /// kinds and of schemas, which `load` reads.
    ///
    /// # Errors
    /// As [`Config::parse`].
    pub fn from_layout(
        file: &str,
        text: &str,
        load: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Config, ConfigError> {
        form::parse(file, text, &Kinds::default(), (load, Given::Anew))
    }

    /// The configuration that a store keeps under [`CONFIG_KEY`], else the default.
    ///
    /// # Errors
    /// As [`Config::parse`], but for what [`Config::would_be_refused`] tells.
    pub fn kept(text: Option<&str>) -> Result<Config, ConfigError> {
        let none = |file: &str| Err(format!("the store keeps no file `{file}`"));
        let kept = |text| form::parse(KEPT, text, &Kinds::default(), (&none, Given::Before));
        text.map_or_else(|| Ok(Config::default()), kept)
    }

    /// The text by which a store keeps it: one that was read back to the same.
    ///
    /// # Errors
    /// That it was not: it is too long with all that it holds.
    pub fn to_keep(&self) -> Result<String, ConfigError> {
        let text = self.to_yaml();
        let not = |line, why: &str| ConfigError {
            file: KEPT.to_owned(),
            line,
            reason: format!("a store could not read back what it would keep: {why}"),
            subject: Subject::Layout,
        };
        match Config::kept(Some(&text)) {
            Ok(again) if again.to_yaml() == text => Ok(text),
            Ok(_) => Err(not(None, "it would mean something else")),
            Err(error) => Err(not(error.line, &error.reason)),
        }
    }

    /// Why a configuration that a store keeps would not be taken if it were given now.
    #[must_use]
    pub fn would_be_refused(text: Option<&str>) -> Option<ConfigError> {
        text.and_then(|text| Config::parse(KEPT, text).err())
    }

    /// All kinds that a workspace may be of.
    #[must_use]
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// What is hardly meant in the kinds and schemas of a user's own: nothing is refused for it.
    #[must_use]
    pub fn warnings(&self) -> Vec<KindError> {
        let kinds = self.kinds.own().flat_map(|kind| kind.warnings());
        kinds.chain(self.files.warnings()).collect()
    }

    /// The rules about plain files.
    #[must_use]
    pub fn files(&self) -> &FileRules {
        &self.files
    }

    /// Whether there are chores anywhere that a clock brings.
    #[must_use]
    pub fn has_rounds(&self) -> bool {
        let mut all = self.bindings.iter().map(|binding| binding.chores);
        all.any(|chores| chores.archive || chores.escalate || chores.drafts)
    }

    /// Whether there are chores anywhere that follow from changes, and are tried again by the clock.
    #[must_use]
    pub fn has_follows(&self) -> bool {
        let hands_over = |one: &Binding| one.chores.handoff && one.kind.chores().handoff.is_some();
        self.assigns() || self.bindings.iter().any(|binding| hands_over(binding))
    }

    /// Whether records are assigned anywhere.
    #[must_use]
    pub fn assigns(&self) -> bool {
        self.bindings.iter().any(|binding| binding.chores.assign)
    }

    /// All entries, in order.
    #[must_use]
    pub fn bindings(&self) -> &[Arc<Binding>] {
        &self.bindings
    }

    /// The entry that makes this directory a workspace's root, if one does; the first wins.
    #[must_use]
    pub fn bind(&self, path: &TreePath) -> Option<Arc<Binding>> {
        let found = |binding: &&Arc<Binding>| binding.path.matches(path.names());
        self.governing(path).find(found).map(Arc::clone)
    }

    /// Could a workspace's root lie strictly below this directory?
    #[must_use]
    pub fn may_lie_below(&self, path: &TreePath) -> bool {
        self.governing(path).any(|binding| binding.path.may_lie_below(path.names()))
    }

    /// The entries that have a say about `path`.
    fn governing(&self, path: &TreePath) -> impl Iterator<Item = &Arc<Binding>> {
        let first = path.names().first();
        let control = first.is_some_and(FileName::is_computed);
        let scratch = first.is_some_and(|first| first.as_bytes() == SCRATCH_DIR);
        self.bindings.iter().filter(move |binding| {
            let says = || binding.path.first_literal().map(FileName::as_bytes);
            !control && (!scratch || says() == Some(SCRATCH_DIR))
        })
    }
}

/// The longest path that the pattern surely begins with; `None` if it begins with a variable.
fn literal_start(root: &TreePath, dir: &Pattern) -> Option<TreePath> {
    let mut path = root.clone();
    for component in dir.components() {
        let Component::Literal(name) = component else { break };
        path = path.join(name.clone());
    }
    (path != *root).then_some(path)
}
