//! fsck finds what was broken below the engine.

use super::*;
use crate::numbers::{G, Ino, LeaseTime};
use crate::refusal::Refusal;
use crate::store::{Class, Standing, StoreError, Txn};

/// Does this to the store, past all rules.
pub(super) struct Break<F>(pub F);

impl<F> crate::engine::Command for Break<F>
where
    F: FnOnce(&mut dyn Txn) -> Result<(), StoreError> + Send + 'static,
{
    type Out = ();

    fn operation(&self) -> &'static str {
        "break"
    }

    fn run(self, turn: &mut crate::engine::Turn<'_>) -> Result<(), crate::engine::Stop> {
        Ok((self.0)(turn.txn)?)
    }
}

fn damage(
    work: impl FnOnce(&mut dyn Txn) -> Result<(), StoreError> + Send + 'static,
) -> Vec<String> {
    let bench = Bench::new();
    bench.mkdir("work/inbox");
    bench.mkdir("work/assigned/bob");
    bench.mkdir("other/place");
    bench.save("work/inbox/a.yaml", "status: new\n");
    bench.save("work/inbox/a.yaml", "status: new\ntitle: x\n");
    bench.save("work/inbox/d.yaml", "status: 7\n");
    bench.save("other/file", "plain");
    bench.clean();
    let done: Result<(), Refusal> = bench.service.engine.run(bench.context(), Break(work));
    done.unwrap();
    let Report::Fsck(report) = bench.ask(Request::Fsck).unwrap() else { panic!() };
    assert_eq!(report.exit() == Exit::Problems, report.count > 0);
    report.problems.iter().map(|one| format!("{}: {}", one.thing, one.what)).collect()
}

fn name(text: &str) -> FileName {
    FileName::new(text).unwrap()
}

fn at(txn: &dyn Txn, path: &str) -> Node {
    let path = TreePath::parse(path).unwrap();
    let mut node = txn.node(crate::numbers::ROOT).unwrap().unwrap();
    for name in path.names() {
        node = txn.lookup(node.ino, name).unwrap().unwrap();
    }
    node
}

#[track_caller]
fn found(problems: &[String], wanted: &str) {
    assert!(problems.iter().any(|problem| problem.contains(wanted)), "{wanted}: {problems:#?}");
}

#[test]
fn nothing_broken_nothing_found() {
    assert_eq!(damage(|_| Ok(())), Vec::<String>::new());
}

#[test]
fn broken_links_and_names() {
    let problems = damage(|txn| {
        let mut node = at(txn, "other/file");
        node.nlink = 3;
        txn.update_node(&node)?;
        let mut dir = at(txn, "other");
        dir.nlink = 9;
        txn.update_node(&dir)?;
        txn.put_dir_name(at(txn, "other/place").ino, &name("elsewhere"))
    });
    found(&problems, "says 3 links and has 1");
    found(&problems, "says 9 links and has 3");
    found(&problems, "does not know that its name is place");
    assert_eq!(problems.len(), 3, "{problems:#?}");
}

#[test]
fn further_names_that_are_wrong() {
    let problems = damage(|txn| {
        let mut file = at(txn, "other/file");
        let place = at(txn, "other/place").ino;
        txn.insert_entry(place, &name("second"), file.ino)?;
        txn.insert_further_name(file.ino, place, &name("third"))?;
        file.nlink = 2;
        txn.update_node(&file)
    });
    found(&problems, "whose first name lies elsewhere");
    found(&problems, "is noted as a further one");
    found(&problems, "has 2 names, of which 0 are noted as further ones");
    assert_eq!(problems.len(), 3, "{problems:#?}");
}

#[test]
fn lost_nodes() {
    let problems = damage(|txn| {
        let other = at(txn, "other").ino;
        txn.delete_entry(other, &name("file"))?;
        let mut place = at(txn, "other/place");
        place.parent = place.ino;
        txn.update_node(&place)
    });
    found(&problems, "has no name and is not marked as nameless");
    found(&problems, "is a directory that the root does not reach");
}

// P5.2
#[test]
fn the_lease_of_a_lock_that_is_none() {
    let problems = damage(|txn| {
        let file = at(txn, "other/file").ino;
        txn.put_lease(file, LeaseTime(u64::MAX >> 1))
    });
    found(&problems, "file other/file (");
    found(&problems, "has the lease of a lock, and no name that the configuration calls one");
    assert_eq!(problems.len(), 1, "{problems:#?}");
}

#[test]
fn records_in_the_wrong_place() {
    let problems = damage(|txn| {
        let node = at(txn, "work/inbox/a.yaml");
        let mut record = txn.record_at(node.ino)?.unwrap();
        let expected = record.expected();
        record.last_g = G(1);
        record.standing = Standing::Live {
            ino: node.ino,
            dir: at(txn, "other").ino,
            name: name("a.yaml"),
            valid: true,
        };
        txn.update_record(&record, &expected)?;
        let mut draft = at(txn, "work/inbox/d.yaml");
        draft.class = Class::Record;
        txn.update_node(&draft)
    });
    found(&problems, "its name a.yaml does not lead to its file");
    found(&problems, "lies outside its workspace");
    found(&problems, "says event 1 is its last");
    found(&problems, "is a record's file of no record");
}

#[test]
fn a_parked_record_whose_backup_is_elsewhere_or_gone() {
    fn parked(txn: &mut dyn Txn, backup: &str) -> Result<(), StoreError> {
        let backup = if backup.is_empty() { Ino(9_999) } else { at(txn, backup).ino };
        let node = at(txn, "work/inbox/a.yaml");
        let mut record = txn.record_at(node.ino)?.unwrap();
        let (expected, dir) = (record.expected(), node.parent);
        record.standing = Standing::Parked { dir };
        txn.update_record(&record, &expected)?;
        txn.put_backup(record.key, &name("a.yaml"), backup)
    }
    let problems = damage(|txn| parked(txn, ""));
    found(&problems, "record work:a: is parked, and its backup, node 9999, is gone");
    let problems = damage(|txn| parked(txn, "other/file"));
    found(&problems, "does not lie where it lay");
    let problems = damage(|txn| parked(txn, "work/inbox/d.yaml"));
    found(&problems, "is not a plain file");
}

#[test]
fn versions_and_drafts_without_content() {
    let problems = damage(|txn| {
        let record = txn.record_at(at(txn, "work/inbox/a.yaml").ino)?.unwrap();
        let mut forged = txn.version(record.version_g)?.unwrap();
        forged.content = b"status: forged\n".to_vec();
        // A version cannot be written over; the record is pointed at another one.
        txn.insert_version(G(9_999), &forged)?;
        let expected = record.expected();
        let record = crate::store::Record { version_g: G(9_999), ..record };
        txn.update_record(&record, &expected)?;
        txn.delete_draft(at(txn, "work/inbox/d.yaml").ino)?;
        txn.put_chunk(at(txn, "other").ino, 0, b"x")
    });
    found(&problems, "its file has another size than its content");
    found(&problems, "is a draft without content");
    found(&problems, "is no plain file and has chunks");
}

#[test]
fn a_forged_event() {
    let problems = damage(|txn| {
        let mut last = txn.last_event()?.unwrap();
        last.g = last.g.next();
        last.before_g = G(1);
        txn.insert_event(&last)
    });
    found(&problems, "its place is taken by event");
    found(&problems, "ends at byte");
}

// P5.2
#[test]
fn a_version_that_another_event_made() {
    let files = "workspaces: []\nfiles: [ { path: \"notes/**\" } ]\n";
    let bench = Bench::with(crate::config::Config::parse("files", files).unwrap());
    bench.mkdir("notes");
    for text in ["one", "two"] {
        bench.save("notes/a", text);
    }
    bench.clean();
    let swap = |txn: &mut dyn Txn| {
        let history = txn.history(&TreePath::parse("notes/a").unwrap())?.unwrap();
        let mut versions = Vec::new();
        txn.file_versions(history.key, &mut |version| (versions.push(version), true).1)?;
        let contents = versions.iter().map(|one| txn.file_version(one.g));
        let contents = contents.collect::<Result<Vec<_>, _>>()?;
        for one in &versions {
            txn.delete_file_version(one.g)?;
        }
        let others = versions.iter().rev().map(|one| one.g);
        for ((g, one), content) in others.zip(&versions).zip(contents) {
            let moved =
                crate::store::FileVersion { g, at: one.at, size: one.size, sha256: one.sha256 };
            txn.insert_file_version(history.key, &moved, &content.unwrap())?;
        }
        Ok(())
    };
    let done: Result<(), Refusal> = bench.service.engine.run(bench.context(), Break(swap));
    done.unwrap();
    let Report::Fsck(report) = bench.ask(Request::Fsck).unwrap() else { panic!() };
    let what = report.problems.iter().map(|one| format!("{}: {}", one.thing, one.what));
    let what: Vec<_> = what.collect();
    found(&what, "file notes/a: event 2 has not saved the version that is noted as its");
    assert_eq!(what.len(), 2, "{what:#?}");
}

// P5.2
#[test]
fn agents_that_are_not_what_their_events_say() {
    let agent = |name: &str| crate::names::AgentName::new(name).unwrap();
    let row = |name: &str, role: &str| {
        let (name, role) = (agent(name), role.to_owned());
        crate::store::AgentRow { name, role, uid: Some(64_003) }
    };
    let bench = Bench::new();
    for name in ["carl", "dora", "gone", "same"] {
        let (role, uid) = (Some(crate::kind::Role::Observer), None);
        let put = crate::engine::PutAgent { name: agent(name), role, uid, only_new: false };
        bench.service.engine.run(bench.context(), put).unwrap();
    }
    let remove = crate::engine::RemoveAgent { name: agent("gone") };
    bench.service.engine.run(bench.context(), remove).unwrap();
    bench.clean();
    let (changed, new) = (row("dora", "operator"), row("eve", "agent"));
    let carl = agent("carl");
    let work = move |txn: &mut dyn Txn| {
        txn.delete_agent(&carl)?;
        txn.put_agent(&changed)?;
        txn.put_agent(&crate::store::AgentRow { uid: None, ..new })
    };
    let done: Result<(), Refusal> = bench.service.engine.run(bench.context(), Break(work));
    done.unwrap();
    let Report::Fsck(report) = bench.ask(Request::Fsck).unwrap() else { panic!() };
    let what = report.problems.iter().map(|one| format!("{}: {}", one.thing, one.what));
    let what: Vec<_> = what.collect();
    found(&what, "agent carl: is noted as no agent, and event 1 says observer");
    found(&what, "agent dora: is noted as operator of user 64003, and event 2 says observer");
    found(&what, "agent eve: is registered, and no event says so");
    assert_eq!(what.len(), 3, "{what:#?}");
}
