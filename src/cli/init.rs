//! `workfs init`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};

use super::exit::Exit;
use super::output::{Output, Stop};
use super::{Global, local, mounts, store};
use crate::config::{Binding, Config};
use crate::daemon::{self, Crowded, DaemonInfo, Failure, Made, Setup, StorePaths};
use crate::engine::Engine;
use crate::names::{Shown, first_few, printable};
use crate::service::{self, Caller, GovernReport, Misfits};
use crate::store::{Durability, Readers};

/// So many directories are named.
const NAMED_MAX: usize = 5;

/// A layout, for who has no documentation at hand.
const LAYOUT: &str = r#"workspaces:
  - path: tasks                  # a path or a glob from the root of the mount, which is `.`
    kind: task
    dirs: { inbox: pending, assigned: "in-progress/{owner}", done: completed }
    policy: refuse               # or flag: invalid saves are kept and marked
    strict: false
    chores: { assign: false, handoff: true, archive: false, escalate: false, drafts: false }
"#;

/// See `workfs init --help`.
#[derive(Debug, Args)]
#[command(after_help = format!("A layout; of a workspace `path` and `kind` are needed:\n\n{LAYOUT}"))]
pub struct InitArgs {
    /// A file that says which directories hold records of which kind; it becomes the store's
    /// configuration
    #[arg(long, value_name = "FILE")]
    layout: Option<PathBuf>,
    /// Make no directories
    #[arg(long)]
    bare: bool,
    /// Only check the layout and say what it would govern
    #[arg(long)]
    dry_run: bool,
}

/// Runs it.
pub fn run(args: &InitArgs, global: &Global, output: &Output) -> Result<Exit, Stop> {
    let config = args.layout.as_deref().map(daemon::layout).transpose()?.map(Arc::new);
    let paths = store::paths(global, &[])?;
    if args.dry_run {
        return only_say(&paths, &config.unwrap_or_default(), args.bare, output);
    }
    if let Some((daemon, _)) = mounts::ask(&paths)? {
        return leave_to(&daemon, config.is_some(), output);
    }
    let judged = match &config {
        Some(config) => require_fit_before(&paths, config, args.bare, output)?,
        None => None,
    };
    let store = local::open(&paths, Durability::Power, config, output);
    let store = store.map_err(|stop| stop.of(paths.store()))?;
    let (is_new, config) = (store.is_new, store.engine.config());
    let keep = (args.layout.is_some() || is_new).then(|| Arc::clone(&config));
    let done = prepare(&store.engine, (keep, judged), args.bare, output).and_then(|prepared| {
        if is_new {
            daemon::finish(&store.engine)?;
        }
        Ok(prepared)
    });
    if is_new && done.is_err() {
        // A half-made one would be served as if that were all.
        local::discard(store, &paths);
    } else {
        local::close(store);
    }
    let prepared = done.map_err(|stop| match stop {
        Stop::Failed(mut failed) if is_new && failed.exit == Exit::NoSpace => {
            failed.reason = daemon::no_room_for_new(&paths);
            Stop::Failed(failed)
        }
        stop => stop,
    })?;
    let exit = if prepared.taken.left.count > 0 { Exit::Problems } else { Exit::Done };
    let told = tell_done(&paths, is_new, (&config, &prepared), output);
    output.of_done(told, || made_or_set_up(&paths, is_new))?;
    Ok(exit)
}

/// Says what a layout would govern; nothing is changed.
fn only_say(
    paths: &StorePaths,
    config: &Config,
    bare: bool,
    output: &Output,
) -> Result<Exit, Stop> {
    let misfits = look_ahead(paths, config, bare, output)?;
    if output.json {
        output.value(&json!({
            "governs": governs(config), "warnings": warnings(config),
            "misfits": misfits.map(|misfits| misfits.all),
        }))?;
    } else {
        tell(config, output)?;
        warn(config, misfits.as_ref(), output);
    }
    Ok(Exit::Done)
}

/// A store that is served is there, and is given no layout.
fn leave_to(daemon: &DaemonInfo, has_layout: bool, output: &Output) -> Result<Exit, Stop> {
    daemon.expect_store()?;
    let served = format!("{} is served by process {}", daemon.store.shown(), daemon.pid);
    if has_layout {
        let remedy = "unmount it first (`workfs unmount --all`): a daemon reads its \
                      configuration when it starts";
        return Err(Stop::failed(Exit::Held, served, remedy));
    }
    if output.json {
        // What it governs stands in its own `.workfs/config.yaml`; here nothing was done.
        output.value(&json!({
            "store": daemon.store, "new": false, "served_by": daemon.pid,
            "made": [], "there": [], "warnings": [], "misfits": null,
        }))?;
    } else {
        output.note(&format!("{served}; nothing to do"));
    }
    Ok(Exit::Done)
}

/// Says what was made of the store.
fn tell_done(
    paths: &StorePaths,
    is_new: bool,
    (config, prepared): (&Config, &Prepared),
    output: &Output,
) -> Result<(), Stop> {
    let Prepared { made, taken, misfits } = prepared;
    let path = paths.source();
    if output.json {
        output.value(&json!({
            "store": path, "new": is_new, "governs": governs(config),
            "made": made.made, "there": made.there, "taken_over": taken,
            "warnings": warnings(config), "misfits": misfits.all,
        }))?;
        return Ok(());
    }
    output.line(&made_or_set_up(paths, is_new))?;
    tell(config, output)?;
    warn(config, Some(misfits), output);
    if !made.made.is_empty() {
        let made: Vec<String> = made.made.iter().map(ToString::to_string).collect();
        output.line(&format!("made {}", made.join(", ")))?;
    }
    if let Some(taken) = taken.human() {
        output.line(&taken)?;
    }
    output.line("mount it: workfs mount DIR")?;
    Ok(())
}

fn made_or_set_up(paths: &StorePaths, is_new: bool) -> String {
    let what = if is_new { "made the store" } else { "set up the store" };
    format!("{what} {}", printable(paths.source().as_bytes()))
}

/// Refuses a layout that some records would not fit into; nothing was changed.
fn require_homes(readers: &dyn Readers, config: &Config) -> Result<(), Stop> {
    let unfit = crate::store::read(readers, |read| service::unfit(read, config));
    let found = unfit.map_err(Failure::from)?.homeless;
    if found.is_empty() {
        return Ok(());
    }
    let named = first_few(found.iter().map(|(dir, count)| format!("{dir} ({count})")), NAMED_MAX);
    let reason = format!(
        "there are records in directories that the layout no longer governs, or governs otherwise (as another \
         state's, no more by their owner, or by other extensions): {named}"
    );
    let remedy = "keep their workspaces in it as they were; or take the records out first (`workfs export \
                  DIR`, remove them through a mount, and the backups of those that `workfs list` calls parked), \
                  then bring them in again with `workfs import`. Where `workfs list` does not show them, a former layout \
                  left them so: first set one that has their workspaces as they were";
    Err(Stop::failed(Exit::Conflict, reason, remedy))
}

/// Refuses a layout whose quotas have no room for the directories that are made by it.
fn require_room(readers: Option<&dyn Readers>, config: &Config, bare: bool) -> Result<(), Stop> {
    if bare {
        return Ok(());
    }
    let found = match readers {
        Some(readers) => crate::store::read(readers, |read| daemon::crowded(Some(read), config)),
        None => daemon::crowded(None, config),
    };
    let Some(Crowded { name, limit, wanted }) = found.map_err(Failure::from)? else {
        return Ok(());
    };
    let reason = format!(
        "by the layout's quota `{name}` may hold {limit} files and directories, and would have {wanted} with the \
         directories that are made in it"
    );
    let remedy = "give it more `inodes`, or make no directories (`--bare`)";
    Err(Stop::failed(Exit::Conflict, reason, remedy))
}

/// Refuses a layout by which the status of some records would not be their directory's.
fn require_statuses(misfits: &Misfits) -> Result<(), Stop> {
    if misfits.astray.count == 0 {
        return Ok(());
    }
    let named = Misfits::named(&misfits.astray);
    let reason =
        format!("the layout has no place for the status of records where they lie, {named}");
    let remedy = "keep the status in their state's list until none has it: save or move them first, \
                  through a mount (give a parked one its name back for that, or mend its backup)";
    Err(Stop::failed(Exit::Conflict, reason, remedy))
}

/// The same before the store is opened by the layout: at once the time that locks have left would be cut to what it
/// gives them, and what is over would end as it says. `None` where there is no store that can be opened without it.
fn require_fit_before(
    paths: &StorePaths,
    config: &Config,
    bare: bool,
    output: &Output,
) -> Result<Option<Misfits>, Stop> {
    if !paths.exists() {
        return Ok(None);
    }
    let store = match local::open(paths, Durability::Power, None, output) {
        Ok(store) => store,
        Err(Stop::Failed(failed)) if failed.exit == Exit::Held => return Err(Stop::Failed(failed)),
        // What cannot be opened by its own configuration may be by this one.
        Err(_) => return Ok(None),
    };
    let asked = require_fit(&**store.engine.readers(), config, bare, output);
    local::close(store);
    asked.map(Some)
}

/// Refuses a layout for which a store has what it has no place or no room for; says which records it would not take
/// as they are.
fn require_fit(
    readers: &dyn Readers,
    config: &Config,
    bare: bool,
    output: &Output,
) -> Result<Misfits, Stop> {
    require_place(readers, config, bare)?;
    let misfits = look(readers, config, output)?;
    require_statuses(&misfits)?;
    Ok(misfits)
}

fn require_place(readers: &dyn Readers, config: &Config, bare: bool) -> Result<(), Stop> {
    require_homes(readers, config)?;
    require_room(Some(readers), config, bare)
}

fn look(readers: &dyn Readers, config: &Config, output: &Output) -> Result<Misfits, Stop> {
    let mut progress = |done, total| {
        output.progress(done, total, "records");
        true
    };
    Ok(service::misfits(readers, config, &mut progress).map_err(Failure::from)?)
}

/// What the layout would be refused for, or would not take, of what is in the store; nothing is opened for
/// it but to be read. `None` where that cannot be told.
fn look_ahead(
    paths: &StorePaths,
    config: &Config,
    bare: bool,
    output: &Output,
) -> Result<Option<Misfits>, Stop> {
    if !paths.exists() {
        require_room(None, config, bare)?;
        return Ok(Some(Misfits::default()));
    }
    match daemon::open_to_look(paths) {
        Ok(store) => require_fit(&store, config, bare, output).map(Some),
        Err(failure) => {
            output
                .note(&format!("the records in the store were not looked at: {}", failure.reason));
            Ok(None)
        }
    }
}

/// What was done to a store.
struct Prepared {
    made: Made,
    taken: GovernReport,
    misfits: Misfits,
}

/// Keeps the configuration, of which the records were `judged` before, takes over what it wants of what is there, and makes what is missing.
fn prepare(
    engine: &Engine,
    (config, judged): (Option<Arc<Config>>, Option<Misfits>),
    bare: bool,
    output: &Output,
) -> Result<Prepared, Stop> {
    let readers = &**engine.readers();
    let misfits = match (&config, judged) {
        // Nobody looks at all records twice; where they may lie is asked once more, now that the store is held.
        (Some(config), Some(misfits)) => require_place(readers, config, bare).map(|()| misfits)?,
        (Some(config), None) => require_fit(readers, config, bare, output)?,
        (None, _) => look(readers, &engine.config(), output)?,
    };
    daemon::set_up(engine, &Setup { config, bare: true, scratchpad: false })?;
    let mut progress = |done, total| output.progress(done, total, "directories");
    let mut taken = service::govern(engine, &Caller::this_process(), &mut progress)?;
    let mut progress = |done, total| output.progress(done, total, "records");
    service::make_rows(engine, &Caller::this_process(), &mut taken.left, &mut progress)?;
    let made = daemon::set_up(engine, &Setup { config: None, bare, scratchpad: true })?;
    Ok(Prepared { made, taken, misfits })
}

/// What a configuration governs, for people.
fn tell(config: &Config, output: &Output) -> Result<(), Stop> {
    for binding in config.bindings() {
        let strict = if binding.strict { ", strict" } else { "" };
        output.line(&format!(
            "{}: a workspace of {}s, policy {}{strict}",
            binding.path,
            binding.kind.name(),
            binding.policy
        ))?;
        for (state, dirs) in states(binding) {
            output.line(&format!("  {state:<12} {}", dirs.join(", ")))?;
        }
    }
    if config.bindings().is_empty() {
        output.line("no directory is governed")?;
    }
    Ok(())
}

fn warnings(config: &Config) -> Vec<String> {
    config.warnings().iter().map(ToString::to_string).collect()
}

/// What is hardly meant, for people; and what lies there that is not as the configuration wants it.
fn warn(config: &Config, misfits: Option<&Misfits>, output: &Output) {
    for warning in warnings(config) {
        output.note(&format!("warning: {warning}"));
    }
    if let Some(misfits) = misfits.filter(|misfits| misfits.all.count > 0) {
        let named = Misfits::named(&misfits.all);
        output.note(&format!("warning: {}, {named}", Misfits::TOLD));
    }
}

fn governs(config: &Config) -> Vec<Value> {
    let value = |binding: &Arc<Binding>| {
        let states: serde_json::Map<String, Value> =
            states(binding).into_iter().map(|(state, dirs)| (state, json!(dirs))).collect();
        json!({
            "path": binding.path.as_str(), "kind": binding.kind.name().as_str(),
            "policy": binding.policy.to_string(), "strict": binding.strict, "states": states,
        })
    };
    config.bindings().iter().map(value).collect()
}

/// Each state with its directories, the first of which is where workfs puts things.
fn states(binding: &Binding) -> Vec<(String, Vec<String>)> {
    let dirs = |state: &crate::kind::State| state.dirs.iter().map(|dir| dir.shown(None)).collect();
    binding.kind.states().map(|(_, state)| (state.name.to_string(), dirs(state))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_that_help_shows_is_the_documented_one() {
        assert!(include_str!("../../docs/cli.md").contains(LAYOUT));
        Config::parse("layout.yaml", LAYOUT).unwrap();
    }
}
