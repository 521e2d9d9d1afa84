//! `workfs doctor`.

use super::super::exit::Exit;
use super::super::output::{Output, Stop};
use super::super::{Global, store};
use super::ask::{Missing, ask, print};
use crate::service::{Report, Request, doctor};

/// Runs it: also where the store is missing or cannot be opened, which it then says.
pub fn run(global: &Global, output: &Output) -> Result<Exit, Stop> {
    let paths = store::paths(global, &[])?;
    match ask(&paths, Request::Doctor, Missing::Refuse, output) {
        Err(Stop::Failed(failed)) => {
            let report = Report::Doctor(doctor(paths.store(), Err(&failed.reason)));
            print(&report, output)?;
            Ok(report.exit().into())
        }
        asked => asked,
    }
}
