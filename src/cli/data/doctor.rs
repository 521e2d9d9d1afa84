//! `workfs doctor`.

use super::super::exit::Exit;
use super::super::output::{Output, Stop};
use super::super::{Global, ps, store};
use super::ask::{Missing, ask, print};
use crate::service::{Report, Request, doctor};

/// Runs it: also where the store is missing or cannot be opened, which it then says.
pub fn run(global: &Global, output: &Output) -> Result<Exit, Stop> {
    let paths = store::paths(global, &[])?;
    // A daemon that hangs does not answer this either, and that is not waited for without end.
    let asked = ps::ask(&paths).and_then(|_| ask(&paths, Request::Doctor, Missing::Refuse, output));
    match asked {
        Err(Stop::Failed(failed)) => {
            let why = (&*failed.reason, &*failed.remedy);
            let report = Report::Doctor(doctor(paths.store(), Err(why)));
            print(&report, output)?;
            Ok(report.exit().into())
        }
        asked => asked,
    }
}
