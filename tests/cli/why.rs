//! What `workfs why` tells of one record.

use std::fs;

use crate::harness::{Setup, save};

// P1.9 P3.2
#[test]
fn why_of_a_record_tells_of_no_namesake_s_refusals() {
    let layout = "workspaces: [{ path: work, kind: task }, { path: sub/work, kind: task }]\n";
    let fixture = Setup::default().layout(layout).start();
    let files = ["work/inbox/t-1.yaml", "work/inbox/t-1.2.yaml", "sub/work/inbox/t-1.yaml"];
    for file in files {
        save(&fixture.path(file), b"status: new\n").unwrap();
        save(&fixture.path(file), b"status: bogus\n").unwrap_err();
    }
    // As programs and Python call what they rename then.
    for made in ["t-1.yaml.tmp.7", "t-1.ab12cd_3.yaml"] {
        let made = fixture.path("work/inbox").join(made);
        fs::write(&made, "status: odd\n").unwrap();
        fs::rename(&made, fixture.path(files[0])).unwrap_err();
    }
    for (file, refusals) in files.into_iter().zip([3, 1, 1]) {
        let rows = fixture.workfs(&["why", file, "--json"]).success().json()["rows"].clone();
        let rows = rows.as_array().unwrap();
        let stem = file.strip_suffix("yaml").unwrap();
        let about = |row: &serde_json::Value| row["path"].as_str().unwrap().starts_with(stem);
        assert!(rows.len() == refusals && rows.iter().all(about), "{file}: {rows:?}");
    }
}

// P8.1
#[test]
fn none_is_no_number_of_refusals_to_tell() {
    let fixture = Setup::default().start();
    save(&fixture.path("work/inbox/t-1.yaml"), b"status: bogus\n").unwrap_err();
    assert_eq!(fixture.workfs(&["why", "-n", "0"]).failure().code, 2);
}
