//! What a new mount is to be: said by flags, by `-o` and by the environment.
//!
//! What must stay true: what stands on the command line, either way, wins over the environment;
//! flags and `-o` may both say a thing, if they say the same. Deliberately not here: what the
//! options mean (`daemon`).

use std::ffi::OsStr;
use std::fmt::Display;
use std::path::Path;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::Global;
use super::exit::Exit;
use super::here::named_agent;
use super::output::Stop;
use super::store;
use crate::daemon::{self, OwnOptions, StorePaths};
use crate::kind::Role;
use crate::names::printable;
use crate::store::Durability;

/// How a role is read: so that help and completions list them, and the nearest is offered.
pub fn role() -> impl TypedValueParser<Value = Role> {
    let known = PossibleValuesParser::new(Role::ALL.iter().map(|role| role.as_str()));
    known.try_map(|name| daemon::role(&name))
}

/// What the flags say.
pub struct Flags<'a> {
    /// Each `-o`.
    pub options: &'a [String],
    /// `--agent`, or the environment.
    pub agent: Option<&'a str>,
    /// `--role`.
    pub role: Option<Role>,
    /// `--root`.
    pub root: Option<&'a str>,
    /// `--sync`.
    pub sync: Option<&'a str>,
    /// A dead mount that is to be replaced: where no store is named it is of this one's.
    pub dead: Option<&'a Path>,
}

/// What is asked for. What only `-o` says of agent, role and root stands in `text`.
pub struct Asked {
    /// All options, as one text.
    pub text: String,
    /// The same, taken apart.
    pub own: OwnOptions,
    /// The store.
    pub paths: StorePaths,
    /// How durable it is to be, if that is said.
    pub sync: Option<Durability>,
    /// For which agent, where `-o` does not say it.
    pub agent: Option<String>,
}

impl Asked {
    /// Takes both ways together.
    pub fn of(flags: &Flags<'_>, global: &Global) -> Result<Asked, Stop> {
        let text = flags.options.join(",");
        let own = OwnOptions::parse(&text)?;
        let named = flags.agent.filter(|_| global.named.agent);
        agree("agent", named, own.agent.as_ref())?;
        agree("role", flags.role, own.role)?;
        let root = flags.root.map(daemon::root).transpose()?;
        agree("root", root.as_ref(), own.root.as_ref())?;
        let sync = flags.sync.map(daemon::durability).transpose()?;
        agree("sync", sync.map(daemon::sync_name), own.sync.map(daemon::sync_name))?;
        let agent = flags.agent.filter(|_| own.agent.is_none()).map(str::to_owned);
        if let Some(name) = agent.as_ref().filter(|_| !global.named.agent) {
            named_agent(OsStr::new(name))?;
        }
        let (paths, sync) = (paths(&own, flags.dead, global)?, sync.or(own.sync));
        Ok(Asked { text, own, paths, sync, agent })
    }
}

/// The store that is meant.
fn paths(own: &OwnOptions, dead: Option<&Path>, global: &Global) -> Result<StorePaths, Stop> {
    let Some(option) = &own.store else { return store::paths(global, dead.as_slice()) };
    let option = StorePaths::of(option)?;
    if let Some(flag) = global.store.as_ref().filter(|_| global.named.store) {
        let flag = StorePaths::of(flag)?;
        agree(
            "store",
            Some(flag.store().to_string_lossy()),
            Some(option.store().to_string_lossy()),
        )?;
    }
    Ok(option)
}

/// Refuses what says one thing by a flag and another by `-o`.
fn agree(what: &str, flag: Option<impl Display>, option: Option<impl Display>) -> Result<(), Stop> {
    let (Some(flag), Some(option)) = (flag, option) else { return Ok(()) };
    let (flag, option) = (flag.to_string(), option.to_string());
    if flag == option {
        return Ok(());
    }
    let [flag, option] = [flag, option].map(|said| printable(said.as_bytes()));
    let reason = format!("`--{what} {flag}` and `-o {what}={option}` contradict each other");
    Err(Stop::failed(Exit::Usage, reason, "give one of the two"))
}
