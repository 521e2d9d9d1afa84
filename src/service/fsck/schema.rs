//! The file that SQLite has: whole, with our tables and no other objects, and numbers that go on.

use crate::store::{Differs, Read};

use super::super::Failure;
use super::Check;

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
    for found in [read.integrity(), read.unowned()] {
        for what in check.got(|| "store".to_owned(), found)?.unwrap_or_default() {
            check.problem("store", what);
        }
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
