//! `workfs completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::exit::Exit;
use super::output::{Output, Stop};

/// See `workfs completions --help`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Runs it.
pub fn run(args: &CompletionsArgs, output: &Output) -> Result<Exit, Stop> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut super::Cli::command(), "workfs", &mut text);
    output.raw(&text)?;
    Ok(Exit::Done)
}
