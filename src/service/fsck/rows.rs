//! Whether rows can be read, each by itself: what the other checks take for granted.

use crate::engine::Registry;
use crate::store::Read;

use super::super::Failure;
use super::Check;

/// Lists that no other check goes through.
pub(super) fn lists(read: &dyn Read, check: &mut Check<'_>) -> Result<(), Failure> {
    check.got(|| "agents".to_owned(), Registry::load(read))?;
    check.got(|| "refusals".to_owned(), read.refusals(&mut |_| true))?;
    check.got(|| "leases".to_owned(), read.leases(&mut |_| true))?;
    check.got(|| "returns".to_owned(), read.returns())?;
    check.got(|| "next chore".to_owned(), read.next_turn())?;
    Ok(())
}

/// All rows of the tree, the records and the ledger. None is kept: there may be millions.
pub(super) fn all(read: &dyn Read, check: &mut Check<'_>) -> Result<(), Failure> {
    let mut rows = Rows { check, count: 0 };
    let listed = read.all_nodes(&mut |(ino, row)| rows.note(|| format!("node {}", ino.0), row));
    rows.check.got(|| "nodes".to_owned(), listed)?;
    let listed = read.all_entries(&mut |entry| {
        let (name, parent) = (entry.name.as_ref().err().cloned(), entry.parent);
        let thing = || format!("name `{}` in node {}", name.unwrap_or_default(), parent.0);
        rows.note(thing, entry.name.map_err(|_| "no file can have it".to_owned()))
    });
    rows.check.got(|| "names".to_owned(), listed)?;
    let listed =
        read.all_workspaces(&mut |(key, row)| rows.note(|| format!("workspace {}", key.0), row));
    rows.check.got(|| "workspaces".to_owned(), listed)?;
    let listed =
        read.all_records(&mut |(key, _, row)| rows.note(|| format!("record {}", key.0), row));
    rows.check.got(|| "records".to_owned(), listed)?;
    let listed = read.all_events(&mut |(g, row)| rows.note(|| format!("event {g}"), row));
    rows.check.got(|| "events".to_owned(), listed)?;
    Ok(())
}

/// A walk along rows, of whichever table.
struct Rows<'c, 's> {
    check: &'c mut Check<'s>,
    count: u64,
}

impl Rows<'_, '_> {
    /// Tells of a row that cannot be read, and goes on as long as somebody waits for it.
    fn note<T>(&mut self, thing: impl FnOnce() -> String, row: Result<T, String>) -> bool {
        if let Err(why) = row {
            self.check.illegible(thing(), &why);
        }
        self.count += 1;
        self.check.tick(self.count, 0, "rows")
    }
}
