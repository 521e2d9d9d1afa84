//! Reading the command line; what is wrong with it is told as every other failure is.
//!
//! What must stay true: `--json` and `--color` hold for that message, too, although the line that
//! has them could not be read. Deliberately not here: what the options are (each command's file).

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, ColorChoice, Command, CommandFactory, FromArgMatches, Id, ValueEnum};

use super::Cli;
use super::exit::Exit;
use super::output::{Colour, Output, Stop, written};
use super::stdout::expect_open;
use crate::names::{Shown as _, printable};

/// Why a command line is not run.
pub enum Unread {
    /// Help or the version was asked for, and printed.
    Told,
    /// It is wrong, which was not told yet.
    Wrong(Output, Stop),
    /// It is wrong, and that was told in the words of the library.
    ToldWrong,
}

/// Which options stand on the command line itself: the others are the environment's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Named {
    /// `--store`.
    pub store: bool,
    /// `--agent`.
    pub agent: bool,
}

impl Named {
    fn of(matches: &ArgMatches) -> Named {
        let is_said = |id: &str| {
            let known = matches.try_contains_id(id).is_ok();
            known && matches.value_source(id) == Some(ValueSource::CommandLine)
        };
        let below = matches.subcommand().map(|(_, below)| Named::of(below)).unwrap_or_default();
        Named { store: is_said("store") || below.store, agent: is_said("agent") || below.agent }
    }
}

/// Reads it.
pub fn read(arguments: &[OsString]) -> Result<Cli, Unread> {
    let (json, colour) = wishes(arguments);
    let mut unread = Vec::new();
    let command = heed_variables(Cli::command(), &mut unread).color(match colour {
        Colour::Auto => ColorChoice::Auto,
        Colour::Always => ColorChoice::Always,
        Colour::Never => ColorChoice::Never,
    });
    let wrong = |stop| Err(Unread::Wrong(Output::new(json, false, colour), stop));
    let read = command.try_get_matches_from(arguments).and_then(|mut matches| {
        let wanted = unread.iter().find(|variable| variable.is_wanted(&matches));
        let named = Named::of(&matches);
        let mut cli = Cli::from_arg_matches_mut(&mut matches)?;
        cli.global.named = named;
        Ok((cli, wanted))
    });
    let mut error = match read {
        Ok((cli, None)) => return Ok(cli),
        Ok((_, Some(variable))) => return wrong(variable.stop()),
        Err(error) => error,
    };
    if let Some(variable) = unread.first()
        && error.kind() == ErrorKind::MissingRequiredArgument
    {
        // Of another option, that is.
        return wrong(variable.stop());
    }
    if error.kind() == ErrorKind::InvalidUtf8 {
        return wrong(no_text(arguments));
    }
    name_the_variable(&mut error, arguments);
    let steers = make_printable(&mut error);
    // The library would list the hidden ones as well.
    if error.kind() == ErrorKind::MissingSubcommand || error.use_stderr() && json {
        return wrong(stop(&error));
    }
    if steers {
        // Without colours: of its own escapes and of those in a word the library makes no difference.
        Output::new(false, false, Colour::Never).told(&error.render().to_string());
        return Err(Unread::ToldWrong);
    }
    let may = if error.use_stderr() { Ok(()) } else { expect_open() };
    let printed = may.and_then(|()| error.print()).and_then(|()| std::io::stdout().flush());
    if error.use_stderr() {
        // Where standard error is gone there is nobody to tell.
        return Err(Unread::ToldWrong);
    }
    match written(printed) {
        Ok(()) | Err(Stop::NobodyReads) => Err(Unread::Told),
        Err(stop) => wrong(stop),
    }
}

/// A variable that is no text, of an option that takes one: the library would not say which.
struct NoText {
    option: Id,
    variable: OsString,
    value: OsString,
}

impl NoText {
    /// Whether the command that is called has the option, which is not given otherwise.
    fn is_wanted(&self, matches: &ArgMatches) -> bool {
        let lacks = |matches: &ArgMatches| {
            let id = self.option.as_str();
            matches.try_contains_id(id).is_ok() && matches.value_source(id).is_none()
        };
        lacks(matches) || matches.subcommand().is_some_and(|(_, below)| self.is_wanted(below))
    }

    fn stop(&self) -> Stop {
        let reason = format!("{} is not UTF-8: `{}`", self.variable.shown(), self.value.shown());
        Stop::failed(Exit::Usage, reason, "mend it, or unset it")
    }
}

/// The failure of a word that is no text where one is wanted: the library does not say which.
fn no_text(arguments: &[OsString]) -> Stop {
    let words = arguments.iter().filter(|word| word.to_str().is_none());
    let shown: Vec<String> = words.map(|word| format!("`{}`", word.shown())).collect();
    let reason = format!("a word that must be UTF-8 is not: {}", shown.join(", "));
    Stop::failed(Exit::Usage, reason, "only a path may have any bytes")
}

/// Where a wrong value of an option is one of the environment, the failure says so.
fn name_the_variable(error: &mut clap::Error, arguments: &[OsString]) {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return };
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else { return };
    fn variable(command: &Command, option: &str, value: &str) -> Option<String> {
        let long = option.strip_prefix("--").and_then(|option| option.split(' ').next());
        let is_it = |arg: &&Arg| {
            let of_environment = arg.get_env().and_then(std::env::var_os);
            arg.get_long() == long && of_environment.is_some_and(|it| it == value)
        };
        let own = command.get_arguments().find(is_it).and_then(Arg::get_env).map(OsStr::shown);
        own.or_else(|| command.get_subcommands().find_map(|it| variable(it, option, value)))
    }
    let is_said = arguments.iter().any(|word| word.as_bytes().ends_with(value.as_bytes()));
    if let Some(variable) = variable(&Cli::command(), option, value).filter(|_| !is_said) {
        let named = format!("{variable} ({option})");
        error.insert(ContextKind::InvalidArg, ContextValue::String(named));
    }
}

/// Variables that are set to nothing count as unset, and so do those that are no text, which are told of where
/// they are wanted; help shows none that is not printable.
fn heed_variables(command: Command, unread: &mut Vec<NoText>) -> Command {
    let mut heed = |arg: Arg| match arg.get_env().and_then(std::env::var_os) {
        Some(value) if value.is_empty() => arg.env(Resettable::Reset),
        // A path has any bytes.
        Some(value) if value.to_str().is_none() && arg.get_id() != "store" => {
            let variable = arg.get_env().unwrap_or_default().to_owned();
            unread.push(NoText { option: arg.get_id().clone(), variable, value });
            arg.env(Resettable::Reset)
        }
        Some(value) if printable(value.as_bytes()).as_bytes() != value.as_bytes() => {
            arg.hide_env_values(true)
        }
        _ => arg,
    };
    command.mut_args(&mut heed).mut_subcommands(|below| heed_variables(below, unread))
}

/// Makes printable what the library quotes from the command line, or from the environment; gives whether
/// anything was not.
fn make_printable(error: &mut clap::Error) -> bool {
    let shown = |(kind, value): (ContextKind, &ContextValue)| {
        let shown = |word: &String| printable(word.as_bytes());
        let shown = match value {
            ContextValue::String(word) => ContextValue::String(shown(word)),
            ContextValue::Strings(words) => {
                ContextValue::Strings(words.iter().map(shown).collect())
            }
            _ => return None,
        };
        (shown != *value).then_some((kind, shown))
    };
    let changed: Vec<_> = error.context().filter_map(shown).collect();
    let steers = !changed.is_empty();
    for (kind, value) in changed {
        error.insert(kind, value);
    }
    if steers {
        // It tells to give the same word in another way.
        error.remove(ContextKind::Suggested);
    }
    steers
}

/// What is wrong, and below it what the library says of the way out.
fn stop(error: &clap::Error) -> Stop {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Stop::failed(Exit::Usage, "no command is given", "see `workfs --help`");
    }
    if error.kind() == ErrorKind::MissingSubcommand
        && let Some(ContextValue::String(of)) = error.get(ContextKind::InvalidSubcommand)
    {
        let reason = format!("`{of}` wants a command");
        return Stop::failed(Exit::Usage, reason, format!("see `{of} --help`"));
    }
    let text = error.render().to_string();
    let (reason, remedy) = text.split_once("\n\n").unwrap_or((&text, ""));
    let reason = reason.strip_prefix("error: ").unwrap_or(reason);
    Stop::failed(Exit::Usage, one_line(reason), one_line(remedy))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether JSON is wanted, and which colours: as far as they can be seen before it is read.
fn wishes(arguments: &[OsString]) -> (bool, Colour) {
    let words: Vec<&str> = arguments.iter().filter_map(|word| OsStr::to_str(word)).collect();
    let words = words.split(|word| *word == "--").next().unwrap_or_default();
    let pairs = words.windows(2).filter(|pair| pair[0] == "--color").map(|pair| pair[1]);
    let joined = words.iter().filter_map(|word| word.strip_prefix("--color="));
    let colour = pairs.chain(joined).find_map(|when| Colour::from_str(when, false).ok());
    (words.contains(&"--json"), colour.unwrap_or_default())
}
