//! `workfs txn -- COMMAND`: a transaction around a command.
//!
//! It does what a shell could do in `.workfs/`, and asks no daemon. Deliberately not here: what a
//! transaction is (`tree/txn`).

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use clap::Args;

use super::exec::child;
use super::exit::Exit;
use super::output::{Output, Stop};

/// See `workfs txn --help`.
#[derive(Debug, Args)]
pub struct TxnArgs {
    /// The command, run in the transaction's root
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs it.
pub fn run(args: &TxnArgs, output: &Output) -> Result<Exit, Stop> {
    let control = control()?;
    let dir = begin(&control.join("txn"))?;
    // A signal that would end us is the command's, so that what it began is thrown away. Whoever
    // waits for a daemon that does not answer, before and after, can be ended.
    child::hold_signals();
    let ended = child::run(&args.command, &dir, &[]);
    let ended = match child::release_signals() {
        Some(interrupted) => Ok(interrupted),
        None => ended,
    };
    let result = match &ended {
        Ok(status) if status.success() => commit(&control, &dir),
        _ => Ok(()),
    };
    let committed = result.is_ok() && ended.as_ref().is_ok_and(ExitStatus::success);
    if !committed && let Err(error) = fs::remove_dir(&dir) {
        output.note(&format!("{} is still there: {error}", dir.display()));
    }
    result?;
    let status = ended?;
    if committed { Ok(Exit::Done) } else { Err(Stop::ended(status)) }
}

/// `.workfs` of the mount that the working directory lies in.
fn control() -> Result<PathBuf, Stop> {
    let here = std::env::current_dir().map_err(|error| failed("the working directory", &error))?;
    let mut found = here.ancestors().map(|dir| dir.join(".workfs"));
    let control = found.find(|control| control.join("txn").is_dir()).ok_or_else(|| {
        let reason = format!("{} does not lie in a mount", here.display());
        Stop::failed(Exit::Absent, reason, "change to a directory of a mount")
    })?;
    // It would commit at once what is to come with the outer one, or with nothing.
    if here.starts_with(control.join("txn")) {
        let reason = format!("{} lies in a transaction already", here.display());
        let remedy = "run the command without `workfs txn`: it is part of that one";
        return Err(Stop::failed(Exit::Usage, reason, remedy));
    }
    Ok(control)
}

/// Makes a transaction under a name that is free.
fn begin(txns: &Path) -> Result<PathBuf, Stop> {
    let names = (0..).map(|nth: u32| format!("workfs-{}-{nth}", std::process::id()));
    for dir in names.map(|name| txns.join(name)) {
        match fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed("beginning the transaction", &error)),
        }
    }
    Err(Stop::failed(Exit::Busy, "no name is free for a transaction", "remove some"))
}

/// Commits, or says why not.
fn commit(control: &Path, dir: &Path) -> Result<(), Stop> {
    let name = dir.file_name().unwrap_or_default();
    fs::rename(dir, control.join("commit").join(name)).map_err(|error| {
        let exit = match error.raw_os_error() {
            Some(libc::EBUSY) => Exit::Conflict,
            Some(libc::EPERM | libc::EACCES) => Exit::Denied,
            Some(libc::ENOTCONN | libc::ECONNABORTED) => return failed("committing", &error),
            Some(libc::EDQUOT) => Exit::Busy,
            _ => Exit::Failed,
        };
        let why = fs::read_to_string(control.join("why")).unwrap_or_default();
        let newest = why.split("\n\n").next().unwrap_or_default();
        let reason = format!("nothing was committed: {error}\n{newest}");
        Stop::failed(exit, reason, "all of `why`: cat .workfs/why")
    })
}

fn failed(what: &str, error: &io::Error) -> Stop {
    let (exit, remedy) = match error.raw_os_error() {
        Some(libc::EMFILE) => {
            (Exit::Busy, "too many are open: `rmdir` those in .workfs/txn/ that nobody uses")
        }
        Some(libc::ENOTCONN | libc::ECONNABORTED) => {
            (Exit::Mount, "the daemon has ended: mount the store again")
        }
        _ => (Exit::Failed, ""),
    };
    Stop::failed(exit, format!("{what}: {error}"), remedy)
}
