//! `workfs txn -- COMMAND`: a transaction around a command.
//!
//! It does what a shell could do in `.workfs/`, and asks no daemon. Deliberately not here: what a
//! transaction is (`tree/txn`).

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

use clap::Args;

use super::exit::Exit;
use super::output::{Output, Stop};
use crate::daemon;

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
    let ended = start(&args.command, &dir).and_then(|mut child| child.wait());
    let result = match &ended {
        Ok(status) if status.success() => commit(&control, &dir),
        _ => Ok(()),
    };
    let committed = result.is_ok() && ended.as_ref().is_ok_and(ExitStatus::success);
    if !committed && let Err(error) = fs::remove_dir(&dir) {
        output.note(&format!("{} is still there: {error}", dir.display()));
    }
    result?;
    let status = ended.map_err(|error| {
        let shown = args.command[0].to_string_lossy();
        Stop::failed(Exit::Failed, format!("{shown} cannot be run: {error}"), "")
    })?;
    if committed {
        return Ok(Exit::Done);
    }
    Err(Stop::ended(status))
}

/// `.workfs` of the mount that the working directory lies in.
fn control() -> Result<PathBuf, Stop> {
    let here = std::env::current_dir().map_err(|error| failed("the working directory", &error))?;
    let found = here.ancestors().map(|dir| dir.join(".workfs"));
    found.into_iter().find(|control| control.join("txn").is_dir()).ok_or_else(|| {
        let reason = format!("{} does not lie in a mount", here.display());
        Stop::failed(Exit::Absent, reason, "change to a directory of a mount")
    })
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

/// Starts the command. A signal that would end us ends it instead, so that what it began is thrown
/// away.
fn start(command: &[OsString], dir: &Path) -> io::Result<Child> {
    let child = Command::new(&command[0]).args(&command[1..]).current_dir(dir).spawn()?;
    let pid = rustix::process::Pid::from_child(&child);
    daemon::on_first_signal(i32::from(Exit::Interrupted.code()), move || {
        // One that has ended needs no signal.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    })?;
    Ok(child)
}

/// Commits, or says why not.
fn commit(control: &Path, dir: &Path) -> Result<(), Stop> {
    let name = dir.file_name().unwrap_or_default();
    fs::rename(dir, control.join("commit").join(name)).map_err(|error| {
        let exit = match error.raw_os_error() {
            Some(libc::EBUSY) => Exit::Conflict,
            Some(libc::EPERM | libc::EACCES) => Exit::Denied,
            _ => Exit::Failed,
        };
        let why = fs::read_to_string(control.join("why")).unwrap_or_default();
        let newest = why.split("\n\n").next().unwrap_or_default();
        let reason = format!("nothing was committed: {error}\n{newest}");
        Stop::failed(exit, reason, "all of `why`: cat .workfs/why")
    })
}

fn failed(what: &str, error: &io::Error) -> Stop {
    Stop::failed(Exit::Failed, format!("{what}: {error}"), "")
}
