//! `workfs claim --next --wait` when the daemon ends: nobody has what nobody was told.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;

use serde_json::json;

use super::claim::crowd;
use crate::harness::{Fixture, Task, ask_line, asked, await_end};

// P9.9
#[test]
fn what_is_claimed_at_the_daemon_s_end_is_told_or_given_back() {
    let fixture = Fixture::new();
    let pid = fixture.daemon_pid();
    fixture.task("inbox", &Task::new("gate"));
    fixture.workfs(&["claim", "gate", "--agent", "ann"]).success();
    let clients = crowd(&fixture, 100);
    for nth in 0..clients.len() {
        let text = format!("id: t{nth}\ndependencies: [gate]\n");
        fs::write(fixture.work().join(format!("inbox/t{nth}.yaml")), text).unwrap();
    }
    let stops = fixture.connected_as(rustix::process::getuid().as_raw());
    // All become ready at once, and wake all: more than can be claimed before the daemon hears the next.
    let done = json!({"done": {"what": "gate", "agent": "ann", "summary": "it is open"}});
    assert!(asked(&stops, &json!({"do": done})).contains("report"));
    (&stops).write_all(&ask_line(&json!("stop"))).unwrap();
    let told: BTreeSet<String> = clients.iter().filter_map(|one| one.answer().ok()).collect();
    await_end(pid);
    println!("{} of {} were told", told.len(), clients.len());
    fixture.mount_all();
    let names = fs::read_dir(fixture.path("work/assigned/bob")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let has: BTreeSet<String> =
        names.filter_map(|name| name.strip_suffix(".yaml").map(str::to_owned)).collect();
    assert_eq!(has, told);
    fixture.fsck_clean();
}
