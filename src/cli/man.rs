//! `workfs man`: the manual's pages, from the same description as `--help`.

use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};

use super::exit::{ENVIRONMENT, Exit};
use super::output::{Output, Stop};
use crate::names::Shown;
use crate::service;

/// See `workfs man --help`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write the pages of all commands into this directory, such as /usr/local/share/man/man1
    dir: Option<PathBuf>,
}

/// Where the rest of what one may want to know is.
const FILES: &[(&str, &str)] = &[
    ("$XDG_DATA_HOME/workfs/default.db", "the store, where none is named (~/.local/share/workfs)"),
    ("AGENTS.md", "in a mount: how an agent that has never heard of workfs does its work there"),
    (".workfs/", "in a mount: what was refused and why, all events, the past, the configuration"),
];

/// Runs it.
pub fn run(args: &ManArgs, output: &Output) -> Result<Exit, Stop> {
    let mut whole = super::Cli::command().disable_help_subcommand(true);
    whole.build();
    let Some(dir) = &args.dir else {
        output.raw(page(&whole).as_bytes())?;
        return Ok(Exit::Done);
    };
    std::fs::create_dir_all(dir).map_err(|why| not_written(dir, &why))?;
    let mut count = 0;
    each(&whole, &mut |command| {
        let file = dir.join(described_by(command).get_filename());
        count += 1;
        std::fs::write(&file, page(command)).map_err(|why| not_written(&file, &why))
    })?;
    output.note(&format!("{count} pages in {}", dir.shown()));
    Ok(Exit::Done)
}

/// Calls `visit` for a command and all below it that help shows.
fn each(
    command: &Command,
    visit: &mut impl FnMut(&Command) -> Result<(), Stop>,
) -> Result<(), Stop> {
    visit(command)?;
    let shown = |below: &&Command| !below.is_hide_set();
    command.get_subcommands().filter(shown).try_for_each(|below| each(below, visit))
}

fn not_written(path: &Path, why: &std::io::Error) -> Stop {
    let exit = service::Exit::from(why.kind()).into();
    let remedy = "name a directory that you may write, or print one page: workfs man";
    Stop::failed(exit, format!("{} cannot be written: {why}", path.shown()), remedy)
}

fn described_by(command: &Command) -> Man {
    Man::new(command.clone()).source(concat!("workfs ", env!("CARGO_PKG_VERSION")))
}

/// The page of one command.
fn page(command: &Command) -> String {
    let man = described_by(command);
    let (mut text, mut more) = (Vec::new(), Roff::new());
    let is_whole = command.get_name() == "workfs";
    // Writing to memory cannot fail.
    let _ = man.render_title(&mut text);
    let _ = man.render_name_section(&mut text);
    let _ = man.render_synopsis_section(&mut text);
    let _ = man.render_description_section(&mut text);
    let _ = man.render_options_section(&mut text);
    if command.has_subcommands() {
        let _ = man.render_subcommands_section(&mut text);
    }
    if is_whole {
        more.control("SH", ["EXIT STATUS"]);
        for exit in Exit::ALL {
            described(&mut more, &exit.code().to_string(), exit.means());
        }
        more.control("SH", ["ENVIRONMENT"]);
        ENVIRONMENT.iter().for_each(|(name, means)| described(&mut more, name, means));
        more.control("SH", ["FILES"]);
        FILES.iter().for_each(|(name, means)| described(&mut more, name, means));
    } else {
        if let Some(after) = command.get_after_help() {
            more.control("SH", ["NOTES"]).control("nf", []);
            for line in after.to_string().lines() {
                more.text([roman(line)]);
            }
            more.control("fi", []);
        }
        more.control("SH", ["SEE ALSO"]);
        more.text([italic("workfs"), roman("(1), for exit codes too")]);
    }
    let _ = more.to_writer(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn described(page: &mut Roff, name: &str, means: &str) {
    page.control("TP", []).text([bold(name)]).text([roman(means)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_what_help_has_and_nothing_hidden_has_one() {
        let mut whole = super::super::Cli::command().disable_help_subcommand(true);
        whole.build();
        let text = page(&whole);
        for exit in Exit::ALL {
            assert!(text.contains(&format!("\\fB{}\\fR", exit.code())), "{exit:?}");
        }
        let mut names = Vec::new();
        let seen = each(&whole, &mut |command| {
            names.push(described_by(command).get_filename());
            Ok(())
        });
        assert!(seen.is_ok());
        for name in ["workfs.1", "workfs-mount.1", "workfs-agent-add.1"] {
            assert!(names.iter().any(|known| known == name), "{names:?}");
        }
        assert!(!names.iter().any(|name| name.contains("daemon")), "{names:?}");
    }
}
