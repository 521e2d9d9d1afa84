//! Kinds of one's own: who may make records, and what is left where one may not.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use crate::harness::{Errno, Event, Fixture, Setup, Task, close, save, until_polled};
use crate::team::errno;

const SCHEMA: &str = r#"{"type": "object", "properties": {"id": {"type": "string"},
    "who": {"type": ["string", "null"]}, "status": {"enum": ["open", "taken", "lost", "shut"]},
    "note": {"type": "string"}}}"#;

/// Whose errands operators make, and agents run.
const KIND: &str = "kind: errand
schema: errand.v1.json
extensions: [yaml]
fields: { id: id, status: status, owner: who }
states:
  open: { dirs: [open], status: [open], initial: true }
  taken: { dirs: ['by/{owner}'], status: [taken, lost], lease: { ttl: TTL, on_expiry: lost } }
  shut: { dirs: [shut], status: [shut] }
rights: { create: [operator], free: FREE, own: [agent, operator], others: [operator] }
transitions:
  - { from: open, to: taken, event: claimed, by: [agent, operator] }
  - { from: taken, to: open, event: left, by: [agent, operator] }
  - { from: taken, to: shut, event: ended, by: [agent, operator] }
";

/// A store of errands, with the operator's mount and bob's, and where they lie in bob's. A lease is
/// as long as `ttl`; `free` may write what nobody has.
fn errands(ttl: &str, free: &str) -> (Fixture, PathBuf) {
    let fixture = Setup::default().mounts(2).prepare();
    let kind = KIND.replace("TTL", ttl).replace("FREE", free);
    fixture.init_with_kind((&kind, SCHEMA), "{ path: errands, kind: errand }");
    fixture.mount_at(fixture.root()).success();
    let bobs = fixture.mount(1).to_owned();
    fixture.workfs(&["mount", bobs.to_str().unwrap(), "--agent", "bob"]).success();
    fs::create_dir(fixture.path("errands/by/bob")).unwrap();
    (fixture, bobs.join("errands"))
}

// P10.4
#[test]
fn who_may_make_no_record_leaves_no_draft() {
    let (fixture, bobs) = errands("1h", "[operator]");
    let new = bobs.join("open/e-1.yaml");
    let create = |path: &PathBuf| OpenOptions::new().create_new(true).write(true).open(path);
    assert_eq!(errno(create(&new)), Errno::ACCESS);
    let special = rustix::fs::mknodat(
        rustix::fs::CWD,
        &new,
        rustix::fs::FileType::RegularFile,
        rustix::fs::Mode::RUSR,
        0,
    );
    assert_eq!(special, Err(Errno::ACCESS));
    let plain = bobs.join("open/e-1.tmp");
    save(&plain, b"id: e-1\nstatus: open\n").unwrap();
    assert_eq!(errno(fs::rename(&plain, &new)), Errno::ACCESS);
    let said = fixture.bash().with("D", bobs.join("open")).run("echo 'id: e-1' > $D/e-1.yaml");
    assert!(said.failure().stderr.contains("Permission denied"));
    assert!(!new.exists());
    // Nor where it may not bring one.
    assert_eq!(errno(create(&bobs.join("shut/e-1.yaml"))), Errno::ACCESS);
    assert_eq!(errno(create(&bobs.join("by/ann/e-1.yaml"))), Errno::NOENT);
    assert_eq!(fs::read_dir(bobs.join("shut")).unwrap().count(), 0);
    let told = |event: &&Event| event.name() == "forbidden";
    assert!(fixture.ledger().0.iter().any(|event| told(&event)));
    // The operator makes one, which bob claims and changes, and by a copy, too.
    for id in ["e-1", "e-2"] {
        let text = format!("id: {id}\nstatus: open\n");
        save(&fixture.path(&format!("errands/open/{id}.yaml")), text.as_bytes()).unwrap();
    }
    fs::rename(&new, bobs.join("by/bob/e-1.yaml")).unwrap();
    let own = "cd $D && cp open/e-2.yaml by/bob/ && rm open/e-2.yaml && cd by/bob \
        && sed -i.bak '$anote: one' e-1.yaml && mv e-2.yaml e-2.yaml~ && cp e-2.yaml~ e-2.yaml";
    fixture.bash().with("D", &bobs).run(own).success();
    fixture.fsck_clean();
}

// P10.4 P3.1
#[test]
fn who_may_write_what_nobody_has_saves_it_by_a_backup_though_it_may_make_none() {
    let (fixture, bobs) = errands("1h", "[agent, operator]");
    let path = fixture.path("errands/open/e-1.yaml");
    save(&path, b"id: e-1\nstatus: open\n").unwrap();
    let script = "cd $D/open && mv e-1.yaml e-1.yaml~ && echo 'id: e-1
status: open
note: by bob' > e-1.yaml && rm e-1.yaml~ \
        && sed 's/by bob/by bob again/' e-1.yaml > e-1.ab12cd_3.yaml && mv e-1.ab12cd_3.yaml e-1.yaml";
    fixture.bash().with("D", &bobs).run(script).success();
    assert!(fs::read_to_string(&path).unwrap().contains("by bob again"));
    assert_eq!(errno(fs::write(bobs.join("open/e-2.yaml"), "id: e-2\n")), Errno::ACCESS);
    fixture.fsck_clean();
}

// P12.3 P3.3
#[test]
fn the_old_owner_of_what_stays_hears_of_it_before_it_has_written() {
    let (fixture, bobs) = errands("2s", "[operator]");
    let path = fixture.path("errands/open/e-1.yaml");
    save(&path, b"id: e-1\nstatus: open\n").unwrap();
    let own = bobs.join("by/bob/e-1.yaml");
    fs::rename(bobs.join("open/e-1.yaml"), &own).unwrap();
    let cut = OpenOptions::new().write(true).truncate(true).open(&own).unwrap();
    let kept = fixture.path("errands/by/bob/e-1.yaml");
    let lost = until_polled("the lease ends", || {
        fs::read_to_string(&kept).ok().filter(|text| text.contains("status: lost"))
    });
    // What was open hears of it when it writes, and a shell when it opens.
    let mut cut = cut;
    assert_eq!(errno(cut.write_all(b"id: e-1\nstatus: taken\n")), Errno::STALE);
    assert_eq!(close(cut), Err(Errno::STALE));
    for write in ["echo 'status: lost' > e-1.yaml", "echo 'note: late' >> e-1.yaml"] {
        let ran = fixture.bash().with("D", bobs.join("by/bob")).run(&format!("cd $D; {write}"));
        assert!(ran.failure().stderr.contains("Permission denied"), "{write}");
    }
    assert_eq!(fs::read_to_string(&kept).unwrap(), lost);
    let why = fs::read_to_string(bobs.join("../.workfs/why")).unwrap();
    assert!(why.contains("W035") && why.contains("ask who acts for others"), "{why}");
    assert!(!why.contains("claim it again"), "{why}");
    // As the way out says.
    fs::rename(&kept, &path).unwrap();
    fs::rename(bobs.join("open/e-1.yaml"), &own).unwrap();
    fixture.fsck_clean();
}

// P12.1
#[test]
fn what_one_may_not_renew_keeps_one_s_other_leases_from_nothing() {
    let fixture = Setup::default().prepare();
    let kind = KIND.replace("TTL", "1h").replace("FREE", "[operator]");
    let kind = kind.replace("own: [agent, operator]", "own: [operator]");
    let both = "{ path: errands, kind: errand }\n  - { path: work, kind: task }";
    fixture.init_with_kind((&kind, SCHEMA), both);
    fixture.mount_at(fixture.root()).success();
    fs::create_dir(fixture.path("errands/by/bob")).unwrap();
    save(&fixture.path("errands/open/e-1.yaml"), b"id: e-1\nstatus: open\n").unwrap();
    let (open, his) =
        (fixture.path("errands/open/e-1.yaml"), fixture.path("errands/by/bob/e-1.yaml"));
    fs::rename(open, his).unwrap();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.workfs(&["claim", "t-1", "--agent", "bob"]).success();
    let until =
        || fixture.workfs(&["--json", "show", "t-1"]).success().json()["lease_until"].clone();
    let before = until();
    std::thread::sleep(Duration::from_secs(2));
    let ran = fixture.workfs(&["heartbeat", "--agent", "bob"]).failure();
    assert!(ran.code == 6 && ran.stderr.contains("may not change errands"), "{ran}");
    assert_ne!(until(), before, "bob lost t-1 for want of a right to e-1");
}
