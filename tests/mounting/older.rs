//! A store that an older workfs made.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};

use crate::harness::{Fixture, Setup};

const SCHEMA_7: &str = include_str!("older/schema-7.sql");

fn of_schema_7() -> Fixture {
    let fixture = Setup::default().prepare();
    let store = fixture.store();
    rusqlite::Connection::open(store).unwrap().execute_batch(SCHEMA_7).unwrap();
    fs::set_permissions(store, PermissionsExt::from_mode(0o600)).unwrap();
    fixture.mount_all();
    fixture
}

// P4.8
#[test]
fn an_older_store_has_all_that_it_had() {
    let fixture = of_schema_7();
    let read = |path: &str| fs::read_to_string(fixture.path(path)).unwrap();
    // Its lease may have run out since.
    let shown = fixture.workfs(&["show", "t-2"]).success();
    assert!(shown.stdout.contains("title: saved\n"), "{shown}");
    assert!(read("work/done/bob/t-3.yaml").ends_with("result:\n  summary: \"all of it\"\n"));
    assert_eq!(read("work/inbox/draft.yaml"), "status: [");
    assert!(fixture.rejected().len() == 2 && fixture.why().contains("W011"));

    let plain = fs::metadata(fixture.path("files/plain")).unwrap();
    assert_eq!(
        (plain.mode() & 0o777, plain.nlink(), read("files/hard")),
        (0o640, 2, "text\n".into())
    );
    assert_eq!(fs::read_link(fixture.path("files/link")).unwrap().to_str(), Some("plain"));
    let mut value = [0; 32];
    let length = rustix::fs::getxattr(fixture.path("files/link"), "user.from", &mut value).unwrap();
    assert_eq!(&value[..length], b"november");
    let hole = fs::read(fixture.path("files/hole")).unwrap();
    assert!(hole.len() == (3 << 20) + 4 && hole.ends_with(b"\0end\n"));
    assert_eq!(read(".workfs/history/scratchpad/info/notes.md/24"), "text 1\n");
    assert_eq!(read("scratchpad/info/notes.md"), "text 3\n");

    let log = fixture.workfs(&["log", "--json"]).success().json_lines();
    let before = "8f723263cdf22e065d603f58a637a1451011bc323925f2d0dfdc4ba01a762b7a";
    assert_eq!(
        (log[25]["g"].as_u64(), log[25]["prev_event_hash"].as_str()),
        (Some(26), Some(before))
    );
    fixture.fsck_clean();
}

// P4.8 P1.1
#[test]
fn an_older_store_is_gone_on_with() {
    let fixture = of_schema_7();
    let claimed = "cd work && mv inbox/t-1.yaml assigned/bob/ && grep -q 'status: assigned' assigned/bob/t-1.yaml
        sed -i s/waits/works/ assigned/bob/t-1.yaml && cd .. && echo more >> files/hole && echo 4 > scratchpad/info/notes.md";
    fixture.sh(claimed).success();
    fixture.workfs(&["done", "t-1", "--summary", "it too"]).success();
    let done = fs::read_to_string(fixture.path("work/done/bob/t-1.yaml")).unwrap();
    assert!(done.contains("title: works\n"), "{done}");
    assert_eq!(fixture.ledger().names("t-1"), ["created", "claimed", "saved", "completed"]);
    fixture.unmount_all();
    fixture.fsck_clean();
}
