//! The form of a configuration, as it is read and as it is written.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::files::{self, FilesForm};
use super::kinds::{self, OwnKindForm};
use super::path_glob::PathGlob;
use super::{Binding, Chores, Config, ConfigError, Given, Policy, SCRATCH_DIR, Subject, quotas};
use crate::kind::yaml::{self, OneOrMany, Ordered, Wrong, line, unknown};
use crate::kind::{Component, Kind, Kinds, Pattern, Place, Role};
use crate::limits::CONFIG_BYTES_MAX;
use crate::names::{AGENTS_FILE, FileName, StateName, TreePath, expect_not_computed};
use crate::record::word_or_quoted;

/// Most bindings: each is asked at every mkdir.
const BINDINGS_MAX: usize = 64;

/// Stands for whatever name a directory could have; hardly one that somebody means.
const ANY_NAME: &str = "any";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigForm {
    #[serde(default)]
    kinds: Vec<OwnKindForm>,
    workspaces: Option<Vec<BindingForm>>,
    #[serde(default)]
    files: Option<Vec<files::KeepForm>>,
    #[serde(default)]
    checks: Vec<files::CheckForm>,
    #[serde(default)]
    schemas: Vec<files::SchemaForm>,
    #[serde(default)]
    locks: Vec<files::LockForm>,
    #[serde(default)]
    quotas: Vec<quotas::QuotaForm>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BindingForm {
    path: Spanned<String>,
    kind: Spanned<String>,
    #[serde(default)]
    dirs: Ordered<OneOrMany<String>>,
    #[serde(default)]
    policy: Policy,
    #[serde(default)]
    strict: bool,
    #[serde(default)]
    chores: Option<Spanned<Chores>>,
}

pub(super) fn parse(
    file: &str,
    text: &str,
    kinds: &Kinds,
    (load, given): (files::Load<'_>, Given),
) -> Result<Config, ConfigError> {
    let wrong = |(line, reason): Wrong| {
        let file = file.to_owned();
        ConfigError { file, line, reason, subject: Subject::Layout }
    };
    let text = if text.trim().is_empty() { "{}" } else { text };
    let form: ConfigForm = yaml::read_within(text, CONFIG_BYTES_MAX)
        .map_err(|error| wrong((error.line, error.reason)))?;
    let ConfigForm { kinds: own, workspaces, files, checks, schemas, locks, quotas } = form;
    let Some(workspaces) = workspaces else {
        // Left out it might be meant to stay what it is, or be the default.
        let reason = "`workspaces` is missing; where nothing is to be one: `workspaces: []`";
        return Err(wrong((None, reason.to_owned())));
    };
    if workspaces.len() > BINDINGS_MAX {
        return Err(wrong((None, format!("over {BINDINGS_MAX} workspaces"))));
    }
    let mut kinds = kinds.clone();
    kinds::add(&mut kinds, own, file, (load, given))?;
    let mut bindings: Vec<Arc<Binding>> = Vec::new();
    for one in &workspaces {
        let at = line(&one.path);
        let binding = bind(one, &kinds).map_err(wrong)?;
        if given == Given::Anew {
            hides_nothing(one, &binding).map_err(wrong)?;
            can_archive(one, &binding).map_err(wrong)?;
            may_do_chores(one, &binding).map_err(wrong)?;
        }
        for (earlier, form) in bindings.iter().zip(&workspaces) {
            disagree((earlier, line(&form.path)), &binding)
                .map_err(|reason| wrong((at, reason)))?;
            if given == Given::Anew {
                keeps_states(earlier, (&binding, at)).map_err(wrong)?;
                keeps_states(&binding, (earlier, line(&form.path))).map_err(wrong)?;
            }
        }
        bindings.push(Arc::new(binding));
    }
    let files = FilesForm { files, checks, schemas, locks }.rules((load, given)).map_err(wrong)?;
    let quotas = quotas::parse(quotas).map_err(wrong)?;
    Ok(Config { kinds, bindings, files, quotas })
}

fn bind(form: &BindingForm, kinds: &Kinds) -> Result<Binding, Wrong> {
    let path = PathGlob::parse(&form.path.value).map_err(|why| (line(&form.path), why))?;
    let Some(kind) = kinds.get(&form.kind.value) else {
        let known: Vec<&str> = kinds.names().map(|name| name.as_str()).collect();
        return Err((line(&form.kind), unknown("kind", &form.kind.value, &known)));
    };
    let mut dirs = BTreeMap::new();
    for (state, directories) in &form.dirs.0 {
        let name = StateName::new(&state.value)
            .map_err(|why| (line(state), format!("the state `{}`: {why}", state.value)))?;
        // Each by itself first, because only here its line is known.
        kind.other_dirs(&state.value, &directories.0).map_err(|why| (line(state), why))?;
        dirs.insert(name, directories.0.clone());
    }
    let kind = if dirs.is_empty() {
        Arc::clone(kind)
    } else {
        let at = form.dirs.0.first().and_then(|(state, _)| line(state));
        Arc::new(kind.with_dirs(&dirs).map_err(|error| (at, error.reason))?)
    };
    let chores = chores(form.chores.as_ref(), &kind)?;
    let (policy, strict) = (form.policy, form.strict);
    Ok(Binding { path, kind, policy, chores, strict, dirs })
}

/// A workspace, or a directory of one, under the name of what is computed at the root of a mount would hide
/// that.
fn hides_nothing(form: &BindingForm, binding: &Binding) -> Result<(), Wrong> {
    let Binding { path, kind, .. } = binding;
    let at = line(&form.path);
    let named = path
        .literals()
        .map(FileName::as_str)
        .try_for_each(|name| expect_not_computed(name.unwrap_or_default()));
    named.map_err(|why| (at, format!("`{path}` cannot be a workspace: {why}")))?;
    for (state, dirs) in &form.dirs.0 {
        for dir in &dirs.0 {
            expect_not_computed(dir).map_err(|why| {
                let state_name = &state.value;
                (line(state), format!("state `{state_name}`: the directory `{dir}`: {why}"))
            })?;
        }
    }
    // An agent may be called so.
    let lies = |name: FileName| kind.place(&[name]) != Place::Outside;
    if path.matches(&[]) && FileName::new(AGENTS_FILE).is_ok_and(lies) {
        let reason = format!(
            "at the root of the mount `AGENTS.md` could be a directory of a state of `{}`: give its \
             directories a name before the placeholder",
            kind.name()
        );
        return Err((at, reason));
    }
    Ok(())
}

/// By other names for its directories a state can get owners, and nothing can be put away there then.
fn can_archive(form: &BindingForm, Binding { kind, chores, .. }: &Binding) -> Result<(), Wrong> {
    let to = kind.chores().archive.as_ref().map(|archive| kind.state(archive.to));
    match to.filter(|to| chores.archive && to.has_owner()) {
        None => Ok(()),
        Some(to) => {
            let reason = format!(
                "`archive` cannot be done: the directory of `{}` names an owner, and nothing can be put away \
                 there; give it one without `{{owner}}` first",
                to.name
            );
            Err((form.chores.as_ref().and_then(line), reason))
        }
    }
}

/// The daemon does as an operator what it is asked for; a kind may keep that from operators.
fn may_do_chores(form: &BindingForm, Binding { kind, chores, .. }: &Binding) -> Result<(), Wrong> {
    let assign = chores.assign.then(|| kind.claim()).flatten();
    let archive = kind.chores().archive.as_ref().filter(|_| chores.archive);
    let archive = archive.and_then(|archive| {
        kind.transitions().iter().find(|way| way.from == archive.from && way.to == archive.to)
    });
    let ways = [("assign", assign), ("archive", archive)];
    let ways = ways.into_iter().filter_map(|(chore, way)| Some((chore, way?)));
    match ways.into_iter().find(|(_, way)| !way.by.contains(&Role::Operator)) {
        None => Ok(()),
        Some((chore, way)) => {
            let reason = format!(
                "`{chore}` cannot be done: workfs does it as an operator, whom the `by` of the transition \
                 `{}` from {} to {} does not name",
                way.event,
                kind.state(way.from).name,
                kind.state(way.to).name
            );
            Err((form.chores.as_ref().and_then(line), reason))
        }
    }
}

/// What is asked for must be there to be done; what is on by default need not.
fn chores(form: Option<&Spanned<Chores>>, kind: &Kind) -> Result<Chores, Wrong> {
    let Some(form) = form else { return Ok(Chores::default()) };
    let (on, has) = (form.value, kind.chores());
    let missing = [
        ("assign", on.assign && !kind.can_assign()),
        ("archive", on.archive && has.archive.is_none()),
        ("escalate", on.escalate && has.escalate.is_none()),
        ("drafts", on.drafts && has.drafts.is_none()),
    ];
    match missing.iter().find(|(_, missing)| *missing) {
        None => Ok(on),
        Some((chore, _)) => {
            let reason = format!("the kind {} does not say how to do `{chore}`", kind.name());
            Err((line(form), reason))
        }
    }
}

/// Two bindings that cannot both be meant.
fn disagree((earlier, at): (&Binding, Option<u32>), later: &Binding) -> Result<(), String> {
    let (Some(upper), Some(lower)) = (earlier.path.literal(), later.path.literal()) else {
        return Ok(());
    };
    if upper == lower {
        let by = entry(at);
        return Err(format!("`{}` is a workspace already, by {by}; leave one out", later.path));
    }
    for (above, binding, below) in [(&upper, earlier, &lower), (&lower, later, &upper)] {
        if let Some(rest) = below.names().strip_prefix(above.names())
            && matches!(binding.kind.place(rest), Place::State { .. } | Place::Prefix)
        {
            let (by, kind) = (entry(at), binding.kind.name());
            return Err(format!(
                "`{below}` cannot be a workspace: in the workspace `{above}` it is a directory of \
                 the lifecycle of `{kind}`; see {by}, and give one another path"
            ));
        }
    }
    Ok(())
}

/// A glob that would make a workspace of its own of a directory in which another one has a state's records.
fn keeps_states(binding: &Binding, (glob, at): (&Binding, Option<u32>)) -> Result<(), Wrong> {
    let any = FileName::new(ANY_NAME).map_err(|why| (at, why.to_string()))?;
    let root = binding.path.example(&any).filter(|_| glob.path.literal().is_none());
    let Some(root) = root else { return Ok(()) };
    // There it has no say.
    let is_scratch =
        |name: Option<&FileName>| name.is_some_and(|name| name.as_bytes() == SCRATCH_DIR);
    if is_scratch(root.names().first()) && !is_scratch(glob.path.first_literal()) {
        return Ok(());
    }
    // A glob that names a state's directory may name an owner in it, too.
    let names_one = |dir: &Pattern| {
        let literal = |part: &Component| match part {
            Component::Literal(name) => glob.path.literals().any(|named| named == name),
            Component::Owner | Component::Any | Component::YearMonth => false,
        };
        dir.components().iter().any(literal)
    };
    let called = |dir: &Pattern| {
        let named = if names_one(dir) { glob.path.literals().collect() } else { Vec::new() };
        named.into_iter().chain([&any])
    };
    let dirs = binding.kind.states().flat_map(|(_, state)| &state.dirs);
    for last in dirs.flat_map(|dir| called(dir).map(|called| example(&root, dir, called))) {
        let own = root.names().len() + 1..=last.names().len();
        let mut on_the_way = own.map(|len| &last.names()[..len]);
        if let Some(dir) = on_the_way.find(|dir| glob.path.matches(dir)) {
            let dir: TreePath = dir.iter().cloned().collect();
            let reason = format!(
                "`{}` would make a workspace of `{dir}`, which is a directory of the lifecycle of `{}` in the \
                 workspace `{}`: name what is meant more exactly",
                glob.path,
                binding.kind.name(),
                binding.path
            );
            return Err((at, reason));
        }
    }
    Ok(())
}

/// One of the directories that a pattern stands for in the workspace `root`.
fn example(root: &TreePath, dir: &Pattern, any: &FileName) -> TreePath {
    let month = FileName::new("2026-01").unwrap_or_else(|_| any.clone());
    let name = |part: &Component| match part {
        Component::Literal(name) => name.clone(),
        Component::Owner | Component::Any => any.clone(),
        Component::YearMonth => month.clone(),
    };
    root.names().iter().cloned().chain(dir.components().iter().map(name)).collect()
}

fn entry(line: Option<u32>) -> String {
    line.map_or_else(|| "an entry before".to_owned(), |line| format!("the entry in line {line}"))
}

impl Config {
    /// The configuration as a commented file, which is read back to the same wherever
    /// [`Config::to_keep`] succeeds.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let mut out = String::from(HEAD);
        kinds::write(&self.kinds, &mut out);
        if self.bindings.is_empty() {
            out.push_str("workspaces: []\n");
        } else {
            out.push_str("workspaces:\n");
        }
        for binding in &self.bindings {
            out.push_str(&format!("  - path: {}\n", word_or_quoted(binding.path.as_str())));
            out.push_str(&format!("    kind: {}\n", word_or_quoted(binding.kind.name().as_str())));
            if !binding.dirs.is_empty() {
                out.push_str("    dirs:\n");
                for (state, dirs) in &binding.dirs {
                    let dirs: Vec<String> = dirs.iter().map(|dir| word_or_quoted(dir)).collect();
                    let state = word_or_quoted(state.as_str());
                    out.push_str(&format!("      {state}: [{}]\n", dirs.join(", ")));
                }
            }
            out.push_str(&format!("    policy: {}\n", binding.policy));
            out.push_str(&format!("    strict: {}\n", binding.strict));
            let Chores { assign, handoff, archive, escalate, drafts } = binding.chores;
            out.push_str(&format!(
                "    chores: {{ assign: {assign}, handoff: {handoff}, archive: {archive}, \
                 escalate: {escalate}, drafts: {drafts} }}\n"
            ));
        }
        out.push_str(FILES_HEAD);
        files::write(&self.files, &mut out);
        out.push_str(QUOTAS_HEAD);
        quotas::write(&self.quotas, &mut out);
        out
    }
}

const HEAD: &str = "\
# Which directories of the mount hold records of which kind.
#
# path:   a path or a glob from the root of the mount: work, projects/*/tasks,
#         \"**/work/collaboration\". The first entry that matches a directory counts.
#         Nothing in scratchpad/ is a workspace unless a path begins with scratchpad.
# kind:   a lifecycle: task, or one of your own, which a layout brings by its file:
#         kinds: [{ file: errand.kind.yaml }]
# dirs:   other names for the directories of its states, each a name or a list of names (the
#         first is where workfs puts things): { inbox: todo, assigned: \"working/{owner}\" }
# policy: refuse (a save that is not valid fails) or flag (it is kept and marked, and such a
#         record cannot change state).
# strict: true demands the kind's full set of fields on every save.
# chores: what the daemon does by itself: assign (a record that names a registered agent goes to
#         its lane), handoff (a finished record that names the next agent makes one for it),
#         archive (finished records are put away), escalate (what is stuck is told of in a log),
#         drafts (those that nobody mends are put aside). How and when, the kind says.
";

const FILES_HEAD: &str = "\
# Plain files: of each list the first rule that matches a file counts.
#
# files:   whose saves are events (log) and of which versions are kept: at most so many of a path
#          (versions; 0: none), not older than age, not more than bytes in all, and only of files
#          of at most file_bytes. Without this list scratchpad/ is kept, but for databases,
#          node_modules, .git and target.
# checks:  what is refused when it is saved: syntax yaml or json, and a schema by its name.
# schemas: JSON Schemas of your own: { name: plan, text: '{...}' }, in a layout also file: plan.json
# locks:   files that vanish when they were not touched or written for the time of their lease.
";

const QUOTAS_HEAD: &str = "\
# quotas:  how much a directory at the root of the mount may hold, by its name or a glob of names:
#          bytes of plain files, inodes (files, directories, links): { path: scratchpad, bytes: 10GiB }
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::builtin;

    #[test]
    fn what_the_daemon_is_to_do_an_operator_may() {
        let source = builtin::task();
        let source = source.source();
        let load = |chore: &str, old: &str, new: &str| {
            let definition = source.definition.replace("kind: task", "kind: errand");
            let definition = definition.replace("task.v1.json", "errand.v1.json");
            assert!(definition.contains(old), "{old}");
            let definition = definition.replacen(old, new, 1);
            let mut kinds = Kinds::default();
            let kind = Kind::load("errand.kind.yaml", &definition, &source.schema).unwrap();
            kinds.add("errand.kind.yaml", kind).unwrap();
            let text =
                format!("workspaces:\n- path: w\n  kind: errand\n  chores: {{ {chore}: true }}\n");
            Config::parse_with("layout", &text, &kinds)
        };
        let claimed = ("event: claimed\n    by: *workers", "event: claimed\n    by: [agent]");
        let archived = ("event: archived, by: *leads", "event: archived, by: [manager]");
        for (chore, (old, new), other) in
            [("assign", claimed, archived), ("archive", archived, claimed)]
        {
            load(chore, other.0, other.1).unwrap();
            let error = load(chore, old, new).unwrap_err();
            assert!(error.reason.contains(&format!("`{chore}` cannot be done")), "{error}");
            assert_eq!(error.line, Some(4), "{error}");
        }
    }

    #[test]
    fn what_the_daemon_is_to_do_the_kind_says_how() {
        let definition = "kind: job\nschema: s\nextensions: [yaml]\nfields: { id: id }\n\
                          states:\n  queued: { dirs: [queued], initial: true }\n  gone: { dirs: [gone] }\n\
                          transitions:\n  - { from: queued, to: gone, event: went, by: [operator] }\n";
        let schema = r#"{"properties": {"id": {"type": "string"}}}"#;
        let mut kinds = Kinds::default();
        kinds
            .add("job.kind.yaml", Kind::load("job.kind.yaml", definition, schema).unwrap())
            .unwrap();
        let with = |chore: &str, on: bool| {
            let text =
                format!("workspaces:\n- path: w\n  kind: job\n  chores: {{ {chore}: {on} }}\n");
            Config::parse_with("layout", &text, &kinds)
        };
        for chore in ["assign", "archive", "escalate", "drafts"] {
            with(chore, false).unwrap();
            let error = with(chore, true).unwrap_err();
            assert!(error.reason.contains(&format!("does not say how to do `{chore}`")), "{error}");
            assert_eq!(error.line, Some(4), "{error}");
        }
        // By default a finished record hands over, where its kind says how.
        with("handoff", true).unwrap();
    }

    #[test]
    fn no_glob_takes_a_workspace_its_directories() {
        let layout = |paths: [&str; 2]| {
            let entries = paths.map(|path| format!("- path: \"{path}\"\n  kind: task\n"));
            Config::parse("layout", &format!("workspaces:\n{}", entries.concat()))
        };
        for (paths, line) in [
            (["work", "work/*"], 4),
            (["**/inbox", "."], 2),
            (["w", "*/done"], 4),
            (["work", "work/assigned/*"], 4),
            (["work/archive/*", "work"], 2),
            (["teams/*", "teams/*/inbox"], 4),
            (["**/tasks", "**/inbox"], 4),
            (["team", "*/assigned/bob"], 4),
            (["**/assigned/collaboration", "work"], 2),
        ] {
            let error = layout(paths).unwrap_err();
            assert!(error.reason.contains("would make a workspace of"), "{error}");
            assert_eq!(error.line, Some(line), "{error}");
        }
        for paths in [
            ["work", "work/teams/*"],
            ["**/tasks", "work"],
            ["*", "work/inner"],
            ["teams/*", "teams/*/notes/*"],
            ["work", "**/tasks"],
            ["scratchpad/w", "**/inbox"],
            ["work", "**/work/collaboration"],
        ] {
            layout(paths).unwrap();
        }
        let text = "workspaces:\n- { path: work, kind: task }\n- { path: 'work/*', kind: task }\n";
        Config::kept(Some(text)).unwrap();
    }
}
