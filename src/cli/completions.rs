//! `workfs completions`.

use clap::{Args, Command, CommandFactory};
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
    clap_complete::generate(args.shell, &mut visible(), "workfs", &mut text);
    output.raw(&text)?;
    Ok(Exit::Done)
}

/// The command line as help shows it: the library would complete what is hidden, too.
fn visible() -> Command {
    let all = super::Cli::command();
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    Command::new("workfs").args(all.get_arguments().cloned()).subcommands(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_not_completed() {
        let names: Vec<String> =
            visible().get_subcommands().map(|command| command.get_name().to_owned()).collect();
        assert!(names.contains(&"mount".to_owned()) && !names.contains(&"daemon".to_owned()));
    }
}
