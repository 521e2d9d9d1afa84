//! `workfs doctor`.

use super::super::exit::Exit;
use super::super::here::Here;
use super::super::output::{Output, Stop};
use super::super::{Global, store};
use super::ask::{Missing, ask, print};
use crate::service::{Report, Request, doctor};

/// Runs it: also where the store is missing or cannot be opened, which it then says.
pub fn run(global: &Global, output: &Output) -> Result<Exit, Stop> {
    let paths = store::paths(global, &[])?;
    // A daemon that hangs does not answer this either, and that is not waited for without end.
    let here = Here::new(paths, output);
    let part = here.part();
    if let Ok(part) = &part {
        part.expect_whole("doctor")?;
    }
    let asked =
        part.and_then(|_| here.daemon()).and_then(|_| ask(&here, Request::Doctor, Missing::Refuse));
    match asked {
        Err(Stop::Failed(failed)) => {
            let why = (&*failed.reason, &*failed.remedy);
            let report = Report::Doctor(doctor(here.paths().store(), Err(why)));
            print(&report, output)?;
            Ok(report.exit().into())
        }
        asked => asked,
    }
}
