//! The file that SQLite has: whole, with our tables and no other objects, and numbers that go on.

use std::time::Instant;

use crate::store::{Differs, Read, Readers};

use super::super::Failure;
use super::Check;

/// What the engine itself finds in the file; false when nobody waits for the result any more. It is one question,
/// which takes as long as reading the file.
pub(super) fn whole(readers: &dyn Readers, check: &mut Check<'_>) -> Result<bool, Failure> {
    let begin = Instant::now();
    let found = readers.integrity(&mut || {
        check.pace.goes_on(begin.elapsed().as_secs(), 0, "s: is the file whole?")
    });
    match check.got(|| "store".to_owned(), found)? {
        Some(None) => {
            check.report.interrupted = true;
            check.report.reached = Some("the file".to_owned());
            return Ok(false);
        }
        found => {
            for what in found.flatten().unwrap_or_default() {
                check.problem("store", what);
            }
        }
    }
    Ok(true)
}

pub(super) fn check(read: &dyn Read, check: &mut Check<'_>) -> Result<(), Failure> {
    let differences = check.got(|| "schema".to_owned(), read.schema_differences())?;
    for (object, differs) in differences.unwrap_or_default() {
        check.is_incomplete |= differs != Differs::Foreign;
        check.problem(
            object,
            match differs {
                Differs::Missing => "is missing",
                Differs::Foreign => "is none of workfs",
                Differs::Other => "is not as workfs makes it",
            },
        );
    }
    for what in check.got(|| "store".to_owned(), read.unowned())?.unwrap_or_default() {
        check.problem("store", what);
    }
    let numbers = check.got(|| "numbers".to_owned(), read.numbers())?;
    for one in numbers.unwrap_or_default() {
        if one.noted < one.highest {
            let what =
                format!("go up to {}, and are noted as given up to {}", one.highest, one.noted);
            check.problem(format!("numbers of {}", one.of), what);
        }
    }
    Ok(())
}
