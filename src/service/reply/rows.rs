//! Reports of many rows, told in parts: a daemon keeps no more of one in memory, however many there are. Whoever
//! asks joins them.

use std::time::{Duration, Instant};

use crate::limits::{PARTS_TAKEN_WITHIN, ROWS_IN_A_PART};
use crate::service::{Exit, Failure, Reply, Report, Sink};
use crate::store::{self, Visit};

/// The rows of a report that is being made.
pub(in crate::service) struct Rows<'s, Row> {
    sink: Sink<'s>,
    report: fn(Vec<Row>) -> Report,
    kept: Vec<Row>,
    /// How long parts may still wait until they are taken.
    left: Duration,
}

impl<'s, Row> Rows<'s, Row> {
    /// None yet; `report` makes one of a part.
    pub fn new(sink: Sink<'s>, report: fn(Vec<Row>) -> Report) -> Self {
        Rows { sink, report, kept: Vec::new(), left: PARTS_TAKEN_WITHIN }
    }

    /// Adds one.
    ///
    /// # Errors
    /// Nobody waits for the end any more, or who does takes too long.
    pub fn push(&mut self, row: Row) -> Result<(), Failure> {
        self.kept.push(row);
        if self.kept.len() < ROWS_IN_A_PART {
            return Ok(());
        }
        let part = (self.report)(std::mem::take(&mut self.kept));
        let begin = Instant::now();
        if !(self.sink)(Reply::Part(Box::new(part))) {
            return Err(Failure::new(Exit::Failed, "interrupted", "ask again"));
        }
        self.left = self.left.saturating_sub(begin.elapsed());
        if self.left.is_zero() {
            let reason = format!("what there is was not taken within {PARTS_TAKEN_WITHIN:?}");
            let remedy = "ask again, or for less (`workfs list --help`)";
            return Err(Failure::new(Exit::Busy, reason, remedy));
        }
        Ok(())
    }

    /// The report with the rows that are left.
    pub fn end(self) -> Report {
        (self.report)(self.kept)
    }
}

/// Does something with each row of a query, until that fails.
pub(in crate::service) fn each<Row>(
    query: impl FnOnce(Visit<'_, Row>) -> store::Result<()>,
    mut work: impl FnMut(Row) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut done = Ok(());
    query(&mut |row| {
        done = work(row);
        done.is_ok()
    })?;
    done
}

/// What joins the parts of a report.
#[derive(Default)]
pub struct Whole(Option<Report>);

impl Whole {
    /// The reply that is to be acted on, if this one is no part: a report with the parts that came before it.
    pub fn join(&mut self, reply: Reply) -> Option<Reply> {
        let (part, is_last) = match reply {
            Reply::Part(part) => (part, false),
            Reply::Report(last) => (last, true),
            other => return Some(other),
        };
        let joined = match self.0.take() {
            Some(first) => first.followed_by(*part),
            None => *part,
        };
        if is_last {
            return Some(Reply::Report(Box::new(joined)));
        }
        self.0 = Some(joined);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::ReadyReport;

    #[test]
    fn who_takes_parts_slowly_is_given_up() {
        let mut told = 0;
        let mut sink = |_| {
            told += 1;
            true
        };
        let mut rows =
            Rows::new(&mut sink, |_: Vec<()>| Report::Ready(ReadyReport { rows: vec![] }));
        let mut add_part = |left: Duration| {
            rows.left = left;
            (0..ROWS_IN_A_PART).try_for_each(|_| rows.push(()))
        };
        assert!(add_part(PARTS_TAKEN_WITHIN).is_ok());
        // The part itself takes longer.
        let failure = add_part(Duration::from_nanos(1)).unwrap_err();
        assert_eq!(failure.exit, Exit::Busy);
        assert_eq!(told, 2);
    }
}
