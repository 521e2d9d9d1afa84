//! Whether rows can be read, each by itself: what a check of their sense takes for granted.

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
    let listed = read.all_nodes(&mut |(ino, row)| note(check, || format!("node {}", ino.0), row));
    check.got(|| "nodes".to_owned(), listed)?;
    let listed = read.all_entries(&mut |entry| {
        let (name, parent) = (entry.name.as_ref().err().cloned(), entry.parent);
        let thing = || format!("name `{}` in node {}", name.unwrap_or_default(), parent.0);
        note(check, thing, entry.name.map_err(|_| "no file can have it".to_owned()))
    });
    check.got(|| "names".to_owned(), listed)?;
    let listed =
        read.all_workspaces(&mut |(key, row)| note(check, || format!("workspace {}", key.0), row));
    check.got(|| "workspaces".to_owned(), listed)?;
    let listed =
        read.all_records(&mut |(key, _, row)| note(check, || format!("record {}", key.0), row));
    check.got(|| "records".to_owned(), listed)?;
    let listed = read.all_events(&mut |(g, row)| note(check, || format!("event {g}"), row));
    check.got(|| "events".to_owned(), listed)?;
    Ok(())
}

/// Tells of a row that cannot be read, and goes on.
fn note<T>(check: &mut Check<'_>, thing: impl FnOnce() -> String, row: Result<T, String>) -> bool {
    if let Err(why) = row {
        check.illegible(thing(), &why);
    }
    true
}
