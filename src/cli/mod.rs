//! The command line: arguments in, a request to the daemon or the store, text or JSON out.
//!
//! What must stay true: a subcommand's file reads arguments, asks, prints, and decides nothing
//! about records; every failure ends with a code of [`exit::Exit`]. Deliberately not here: what a
//! command does (`service`), mounts and the daemon (`daemon`).

mod asked;
mod completions;
mod daemon;
mod data;
mod exec;
mod exit;
mod helper;
mod here;
mod init;
mod local;
mod man;
mod mount;
mod mounts;
mod output;
mod place;
mod ps;
mod reader;
mod stdout;
mod store;
mod txn;
mod unmount;
mod usage;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

pub use exit::Exit;
use output::{Colour, Output, Stop};
use usage::{Named, Unread};

/// A team's work as plain files: `mv` claims a task, saving validates it, one ledger of everything
#[derive(Debug, Parser)]
#[command(name = "workfs", version, after_help = Exit::help(), max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// What every subcommand takes.
#[derive(Debug, Args)]
struct Global {
    /// The store's file [default: that of the mount one is in, else
    /// $XDG_DATA_HOME/workfs/default.db]
    #[arg(long, global = true, env = "WORKFS_STORE", value_name = "PATH")]
    store: Option<PathBuf>,
    /// Print results as JSON
    #[arg(long, global = true)]
    json: bool,
    /// Print only results and failures
    #[arg(long, short, global = true)]
    quiet: bool,
    /// When to colour
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    color: Colour,
    /// What of it was said by the command line itself.
    #[arg(skip)]
    named: Named,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a store, or set its configuration
    Init(init::InitArgs),
    /// Mount the store on a directory; makes the store if there is none
    Mount(mount::MountArgs),
    /// Unmount a directory
    #[command(visible_alias = "umount")]
    Unmount(unmount::UnmountArgs),
    /// Run a command in a mount of its own
    Exec(exec::ExecArgs),
    /// List the mounts of the store's daemon
    Ps,
    #[command(flatten)]
    Data(data::DataCommand),
    /// Run a command whose changes are made all at once when it succeeds, or not at all
    Txn(txn::TxnArgs),
    /// Print completions for a shell
    Completions(completions::CompletionsArgs),
    /// Print the manual page, or write those of all commands
    Man(man::ManArgs),
    /// Serve a store (what `mount` starts in the background)
    #[command(hide = true)]
    Daemon(daemon::DaemonArgs),
}

/// Runs the command line.
#[must_use]
pub fn main() -> ExitCode {
    crate::daemon::outlive_long_writes();
    crate::daemon::hear_of_children();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let arguments = match helper::translate(&arguments) {
        Ok(Some(translated)) => translated,
        Ok(None) => arguments,
        Err(stop) => return end(&Output::new(false, false, Colour::Auto), Err(stop)),
    };
    let cli = match usage::read(&arguments) {
        Ok(cli) => cli,
        Err(Unread::Told) => return ExitCode::from(Exit::Done.code()),
        Err(Unread::ToldWrong) => return ExitCode::from(Exit::Usage.code()),
        Err(Unread::Wrong(output, stop)) => return end(&output, Err(stop)),
    };
    let output = Output::new(cli.global.json, cli.global.quiet, cli.global.color);
    let result = run(&cli, &output).and_then(|exit| output.flush().map(|()| exit));
    end(&output, result)
}

fn run(cli: &Cli, output: &Output) -> Result<Exit, Stop> {
    let global = &cli.global;
    match &cli.command {
        Command::Init(args) => init::run(args, global, output),
        Command::Mount(args) => mount::run(args, global, output),
        Command::Unmount(args) => unmount::run(args, global, output),
        Command::Exec(args) => exec::run(args, global, output),
        Command::Ps => ps::run(global, output),
        Command::Data(command) => data::run(command, global, output),
        Command::Txn(args) => txn::run(args, output),
        Command::Completions(args) => completions::run(args, output),
        Command::Man(args) => man::run(args, output),
        Command::Daemon(args) => daemon::run(args, global, output),
    }
}

fn end(output: &Output, result: Result<Exit, Stop>) -> ExitCode {
    let exit = match result {
        Ok(exit) => exit,
        Err(Stop::NobodyReads) => Exit::Done,
        Err(Stop::Interrupted) => Exit::Interrupted,
        Err(Stop::Ended(code)) => return ExitCode::from(code),
        Err(Stop::Failed(failed)) => {
            // What was printed before it comes first.
            let _ = output.flush();
            output.failure(&failed);
            failed.exit
        }
    };
    ExitCode::from(exit.code())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn unmount_wants_a_directory_or_all() {
        let wrong = Cli::command().try_get_matches_from(["workfs", "unmount"]).unwrap_err();
        assert!(wrong.to_string().contains("<DIR|--all>"), "{wrong}");
        for fine in [["unmount", "d", "--lazy"], ["unmount", "--all", "-l"]] {
            assert!(Cli::command().try_get_matches_from([&["workfs"], &fine[..]].concat()).is_ok());
        }
        assert!(Cli::command().try_get_matches_from(["workfs", "unmount", "d", "--all"]).is_err());
    }

    #[test]
    fn roles_are_listed_wherever_one_is_asked_for() {
        use crate::kind::Role;
        let all = Cli::command();
        let roles = |way: &[&str]| -> Vec<String> {
            let find = |at: &clap::Command, name: &&str| at.find_subcommand(name).unwrap().clone();
            let command = way.iter().fold(all.clone(), |at, name| find(&at, name));
            let role = command.get_arguments().find(|arg| arg.get_id() == "role").unwrap().clone();
            role.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect()
        };
        let known: Vec<&str> = Role::ALL.iter().map(|role| role.as_str()).collect();
        for way in [&["mount"][..], &["exec"], &["agent", "add"]] {
            assert_eq!(roles(way), known, "{way:?}");
        }
        let wrong = ["workfs", "mount", "d", "--agent", "bob", "--role", "agnet"];
        let wrong = all.try_get_matches_from(wrong).unwrap_err().to_string();
        assert!(wrong.contains("similar value exists: 'agent'"), "{wrong}");
    }

    #[test]
    fn every_command_is_documented() {
        let document = include_str!("../../docs/cli.md");
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let heading = format!("### `workfs {}", command.get_name());
            assert!(document.contains(&heading), "docs/cli.md lacks {heading}`");
        }
    }

    /// What the section that begins with a heading says, and those of the same beginning.
    fn sections(document: &str, heading: &str) -> String {
        let mut is_in = false;
        let lines = document.lines().filter(|line| {
            if line.starts_with('#') {
                is_in = line.starts_with(heading);
            }
            is_in
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Whether a text has a word that is not a part of another one.
    fn has_word(text: &str, word: &str) -> bool {
        let is_part = |c: char| c.is_alphanumeric() || c == '-';
        text.match_indices(word).any(|(at, _)| {
            !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part)
        })
    }

    /// The options of a command, and its other names, that its section does not have.
    fn undocumented(command: &clap::Command, section: &str) -> Vec<String> {
        let long = |name: &str| format!("--{name}");
        let mut wanted: Vec<String> =
            command.get_visible_aliases().map(|alias| format!("workfs {alias}")).collect();
        for arg in command.get_arguments() {
            wanted.extend(arg.get_long().map(long));
            wanted.extend(arg.get_visible_aliases().into_iter().flatten().map(long));
            wanted.extend(arg.get_short().map(|short| format!("-{short}")));
        }
        wanted.retain(|word| !has_word(section, word));
        wanted.iter().map(|word| format!("{}: {word}", command.get_name())).collect()
    }

    /// Hidden ones, too: they are part of what programs can call.
    #[test]
    fn every_option_is_documented() {
        let document = include_str!("../../docs/cli.md");
        let all = Cli::command();
        let mut lacks = undocumented(&all, &sections(document, "## Options of all commands"));
        for command in all.get_subcommands().filter(|command| !command.is_hide_set()) {
            let section = sections(document, &format!("### `workfs {}", command.get_name()));
            lacks.extend(undocumented(command, &section));
            lacks.extend(command.get_subcommands().flat_map(|one| undocumented(one, &section)));
        }
        assert!(lacks.is_empty(), "docs/cli.md lacks {lacks:#?}");
        assert!(
            has_word("`-n COUNT`", "-n") && !has_word("--no", "-n") && !has_word("--now", "--no")
        );
    }
}
