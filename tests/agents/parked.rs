//! A record whose name went to a backup is still whose it was, where it was.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Errno, Task, lies, pile, save, until_polled};
use crate::leases::await_event;
use crate::team::{Team, mv};

/// Bob has `t-1` with this lease, and its name is a backup's.
#[track_caller]
fn bob_has_parked(more: &str) -> Team {
    let team = Team::of(&[("bob", ""), ("carol", "")]);
    team.fixture.task("inbox", &Task::new("t-1").with(more));
    mv(&team.work(1), "t-1", "inbox", "assigned/bob").unwrap();
    park(&team);
    team
}

fn park(team: &Team) {
    team.sh(1, "mv work/assigned/bob/t-1.yaml work/assigned/bob/t-1.yaml~").success();
}

fn leases(team: &Team) -> String {
    fs::read_to_string(team.fixture.path(".workfs/leases")).unwrap()
}

// P10.4
#[test]
fn another_agent_cannot_take_it() {
    let team = bob_has_parked("");
    let text = Task::new("t-1").status("assigned").text();
    let taken = save(&team.work(2).join("assigned/carol/t-1.yaml"), text.as_bytes());
    assert!(taken.is_err(), "carol has bob's task");
    assert!(!leases(&team).contains("carol"), "{}", leases(&team));
    // Nor does she give it back for him.
    let given_back = save(&team.work(2).join("inbox/t-1.yaml"), Task::new("t-1").text().as_bytes());
    assert_eq!(given_back, Err(Errno::ACCESS));
    assert!(leases(&team).contains(" bob attempt 1 t-1\n"), "{}", leases(&team));
    // Nor does it get where its own agent may not move it.
    let inbox = Task::new("t-2").text();
    team.fixture.task("inbox", &Task::new("t-2"));
    mv(&team.work(1), "t-2", "inbox", "assigned/bob").unwrap();
    mv(&team.work(1), "t-2", "assigned/bob", "inbox").unwrap();
    team.sh(1, "mv work/inbox/t-2.yaml work/inbox/t-2.yaml~; mkdir -p work/done/bob").success();
    let done = inbox.replace("status: new", "status: done\nresult: {summary: x}");
    assert!(save(&team.work(1).join("done/bob/t-2.yaml"), done.as_bytes()).is_err());
    team.fixture.fsck_clean();
}

// P10.4 P12.1
#[test]
fn brought_back_elsewhere_it_makes_the_transition_and_its_lease_ends() {
    let team = bob_has_parked("");
    save(&team.work(1).join("inbox/t-1.yaml"), Task::new("t-1").text().as_bytes()).unwrap();
    assert!(!leases(&team).contains("bob"), "{}", leases(&team));
    assert_eq!(team.fixture.ledger().names("t-1").last(), Some(&"released"));
    team.fixture.fsck_clean();
    mv(&team.work(2), "t-1", "inbox", "assigned/carol").unwrap();
    assert!(leases(&team).contains("carol attempt 2"), "{}", leases(&team));
}

// P12.1 P12.3
#[test]
fn when_its_lease_runs_out_it_goes_back_with_the_text_it_had() {
    let team = bob_has_parked("lease: 1s\n");
    let expired = await_event(&team, "t-1", "expired");
    assert_eq!(expired["payload"]["path"], "work/inbox/t-1.yaml");
    // The backup is a plain file; bob's late save of it is none.
    let backup = fs::read(team.work(1).join("assigned/bob/t-1.yaml~")).unwrap();
    assert!(save(&team.work(1).join("assigned/bob/t-1.yaml"), &backup).is_err());
    let text = fs::read_to_string(team.work(0).join("inbox/t-1.yaml")).unwrap();
    assert!(text.contains("lease of bob ran out (attempt 1)"), "{text}");
    mv(&team.work(2), "t-1", "inbox", "assigned/carol").unwrap();
    assert!(leases(&team).contains("carol attempt 2"), "{}", leases(&team));
    team.fixture.fsck_clean();
}

// P12.1
#[test]
fn an_operator_mends_one_whose_lease_ran_out_and_nobody_has_a_lease_by_that() {
    let team = Team::of(&[("bob", "")]);
    team.fixture.task("inbox", &Task::new("t-1").with("lease: 1s\n"));
    mv(&team.work(1), "t-1", "inbox", "assigned/bob").unwrap();
    // There it would go back to, so that it stays.
    fs::create_dir(team.work(0).join("inbox/t-1.yaml")).unwrap();
    let path = "assigned/bob/t-1.yaml";
    // That it is over is told before it is written, and what is in its way only then.
    until_polled("the lease ends", || {
        let why = fs::read_to_string(team.work(0).join("assigned/bob/t-1.yaml.why")).unwrap();
        why.contains("it goes back when nothing is in its way").then_some(())
    });
    let told = leases(&team);
    assert!(told.contains("over bob's lease of work/assigned/bob/t-1.yaml"), "{told}");
    let text = fs::read_to_string(team.work(0).join(path)).unwrap();
    let mended = format!("{text}notes: mended\n");
    assert_eq!(save(&team.work(1).join(path), mended.as_bytes()), Err(Errno::ACCESS));
    save(&team.work(0).join(path), mended.as_bytes()).unwrap();
    assert!(leases(&team).contains("over bob's lease"), "{}", leases(&team));
    fs::remove_dir(team.work(0).join("inbox/t-1.yaml")).unwrap();
    save(&team.work(0).join(path), format!("{mended}and: again\n").as_bytes()).unwrap();
    let back = fs::read_to_string(team.work(0).join("inbox/t-1.yaml")).unwrap();
    assert!(back.contains("and: again"), "{back}");
    team.fixture.fsck_clean();
}

// P12.1 P12.2
#[test]
fn its_lease_is_shown_and_renewed_as_any_other() {
    let team = bob_has_parked("");
    assert!(leases(&team).contains(" bob attempt 1 t-1\n"), "{}", leases(&team));
    for what in [&["t-1"][..], &[]] {
        let arguments = [&["heartbeat"], what, &["--agent", "bob"]].concat();
        let ran = team.fixture.workfs(&arguments).success();
        assert!(ran.stdout.contains("t-1 until 20"), "{ran}");
    }
    let renewed = team.fixture.workfs(&["heartbeat", "--agent", "bob", "--json"]).success().json();
    assert_eq!(renewed["leases"][0]["path"], Value::Null, "{renewed}");
    // It is listed and shown where it has its place.
    let listed = team.fixture.workfs(&["list", "--owner", "bob", "--json"]).success().json();
    let row = &listed["rows"][0];
    assert_eq!((&row["id"], &row["parked"]), (&"t-1".into(), &true.into()), "{listed}");
    assert_eq!((&row["path"], &row["owner"]), (&"work/assigned/bob".into(), &"bob".into()));
    let listed = team.fixture.workfs(&["list"]).success();
    assert!(listed.stdout.contains(" t-1 parked\n1 record"), "{listed}");
    let shown = team.fixture.workfs(&["show", "t-1"]).success();
    assert!(shown.stdout.starts_with("# t-1: parked in work/assigned/bob/"), "{shown}");
    let why = team.fixture.workfs(&["why", "t-1"]).success().stdout;
    assert!(why.contains("no; its name is a backup's") && why.contains("mv X.yaml~"), "{why}");
    team.sh(0, "cd work/inbox; echo 'title: x' > t-2.yaml; mv t-2.yaml t-2.yaml~").success();
    let explained = team.fixture.workfs(&["ready", "--explain"]).stdout;
    assert!(explained.contains("work/inbox/t-2.yaml~") && explained.contains("a backup's"));
    let ran = team.fixture.workfs(&["done", "t-1", "--summary", "x"]).failure();
    assert!(ran.code == 4 && ran.stderr.contains("its name is a backup's"), "{ran}");
    let ran = team.fixture.workfs(&["heartbeat", "t-1", "--agent", "carol"]).failure();
    assert!(ran.stderr.contains("bob's tasks"), "{ran}");
}

// P10.4 P3.1
#[test]
fn its_backup_goes_as_it_would_go_itself() {
    let team = Team::of(&[("bob", "")]);
    for id in ["t-1", "t-2", "t-3", "t-4"] {
        team.fixture.task("inbox", &Task::new(id));
        team.sh(1, &format!("cd work/inbox; mv {id}.yaml {id}.bak")).success();
    }
    // Where the record may not go, nor the backup; and it has one name.
    for command in
        ["mv t-1.bak ../../", "mv t-1.bak ../fridge/", "ln t-1.bak other", "ln t-1.bak ../../other"]
    {
        let ran = team.sh(1, &format!("cd work/inbox; {command}")).failure();
        assert!(ran.stderr.contains("ermi"), "{command}: {ran}");
    }
    let events = |id: &str| -> Vec<String> {
        team.fixture.ledger().names(id).iter().map(|name| (*name).to_owned()).collect()
    };
    assert_eq!(events("t-1"), ["created", "renamed"]);
    team.sh(1, "cd work/inbox; mv t-1.bak t-1.orig; rm t-1.orig").success();
    assert_eq!(events("t-1"), ["created", "renamed", "removed"]);
    // Another file takes its place, or it becomes another record.
    team.sh(1, "cd work/inbox; echo note > note; mv note t-2.bak").success();
    assert_eq!(events("t-2"), ["created", "renamed", "removed"]);
    team.sh(1, "cd work/inbox; sed -i s/t-3/t-5/ t-3.bak; mv t-3.bak t-5.yaml").success();
    assert_eq!(events("t-3"), ["created", "renamed", "removed"]);
    assert_eq!(events("t-5"), ["created"]);
    // Operators may take it out.
    team.sh(0, "mv work/inbox/t-4.bak kept").success();
    assert_eq!(events("t-4"), ["created", "renamed", "left"]);
    let listed = team.fixture.workfs(&["list"]).success();
    assert!(!listed.stdout.contains("parked"), "{listed}");
    // Of what came back, the backup is any file.
    team.sh(1, "cd work/inbox; cp t-5.yaml x; mv t-5.yaml t-5.bak; mv x t-5.yaml; rm t-5.bak")
        .success();
    assert_eq!(lies(&team.work(1), &pile(&team.work(1)), "t-5"), "inbox");
    team.fixture.fsck_clean();
}

/// Its events name the file that the record had, whatever its ending, and the backup that it comes from.
// P10.4 P3.1
#[test]
fn its_events_name_the_file_it_had() {
    let team = Team::of(&[("bob", "")]);
    let work = team.work(0);
    for id in ["t-1", "t-2", "t-3"] {
        save(&work.join(format!("inbox/{id}.yml")), Task::new(id).text().as_bytes()).unwrap();
        team.sh(1, &format!("cd work/inbox; mv {id}.yml {id}.yml~")).success();
    }
    let told = |id: &str| -> Value {
        let ledger = team.fixture.ledger();
        let payload = &ledger.of_record(id).last().unwrap().0["payload"];
        ["path", "to", "from_path"]
            .into_iter()
            .filter_map(|key| Some((key.to_owned(), payload.get(key)?.clone())))
            .collect()
    };
    let parked = json!({ "path": "work/inbox/t-1.yml", "to": "work/inbox/t-1.yml~" });
    assert_eq!(told("t-1"), parked);
    // It goes, from where it was.
    team.sh(1, "cd work/inbox; rm t-1.yml~").success();
    assert_eq!(told("t-1"), json!({ "path": "work/inbox/t-1.yml" }));
    team.sh(0, "cd work/inbox; mv t-2.yml~ ../../kept").success();
    assert_eq!(told("t-2"), json!({ "path": "work/inbox/t-2.yml", "to": "kept" }));
    // It comes back: from the backup, as that is called by now.
    team.sh(1, "cd work/inbox; mv t-3.yml~ t-3.bak; mv t-3.bak t-3.yaml").success();
    let back = json!({ "path": "work/inbox/t-3.yaml", "from_path": "work/inbox/t-3.bak" });
    assert_eq!(told("t-3"), back);
    // The name that it has now is the one that is noted from now on.
    team.sh(1, "cd work/inbox; mv t-3.yaml t-3.bak; cp t-3.bak t-3.yml").success();
    let back = json!({ "path": "work/inbox/t-3.yml", "from_path": "work/inbox/t-3.bak" });
    assert_eq!(told("t-3"), back);
    team.sh(1, "cd work/inbox; rm t-3.yml").success();
    assert_eq!(told("t-3"), json!({ "path": "work/inbox/t-3.yml" }));
    team.fixture.fsck_clean();
}

// P12.1
#[test]
fn given_back_it_has_the_name_it_had() {
    let team = Team::of(&[("bob", "")]);
    let text = Task::new("t-1").with("lease: 1s\n").text();
    save(&team.work(0).join("inbox/t-1.yml"), text.as_bytes()).unwrap();
    team.sh(1, "cd work; mv inbox/t-1.yml assigned/bob/; cd assigned/bob; mv t-1.yml t-1.yml~")
        .success();
    let expired = await_event(&team, "t-1", "expired");
    assert_eq!(expired["payload"]["path"], "work/inbox/t-1.yml");
    team.fixture.fsck_clean();
}

// P8.1
#[test]
fn of_two_with_one_id_each_is_told_of_by_its_path() {
    let team = Team::of(&[("bob", "")]);
    let (fixture, works) = (&team.fixture, ["work", "work/collaboration"]);
    for work in works {
        fixture.sh(&format!(
            "mkdir -p {work}/inbox; cd {work}/inbox; echo 'title: {work}' > dup.yaml"
        ));
        fixture.sh(&format!("cd {work}/inbox; mv dup.yaml dup.yaml~")).success();
    }
    let ran = fixture.workfs(&["show", "dup"]).failure();
    let paths = "work/inbox/dup.yaml or work/collaboration/inbox/dup.yaml";
    assert!(ran.code == 2 && ran.stderr.contains(paths), "{ran}");
    let last = fixture.ledger().last_g().to_string();
    for work in works {
        let path = format!("{work}/inbox/dup.yaml");
        for more in [&[][..], &["--at", "1"], &["--g", &last]] {
            let arguments = [&["show", "--json", &path], more].concat();
            let shown = fixture.workfs(&arguments).success().json();
            assert_eq!(shown["text"], format!("title: {work}\n"));
            let parked_in =
                if more == ["--at", "1"] { Value::Null } else { json!(format!("{work}/inbox")) };
            assert_eq!(shown["parked_in"], parked_in, "{shown}");
        }
        let why = fixture.workfs(&["why", &path]).success();
        assert!(why.stdout.contains("its name is a backup's"), "{why}");
        fixture.workfs(&["log", &path]).success();
        // What would change it says that it has no file.
        for arguments in
            [&["claim", "--agent", "bob", &path][..], &["restore", "--at", &last, &path]]
        {
            let ran = fixture.workfs(arguments).failure();
            assert!([4, 5].contains(&ran.code) && ran.stderr.contains("a backup's"), "{ran}");
        }
        let ran = fixture.workfs(&["show", &format!("{work}/done/dup.yaml")]).failure();
        assert!(ran.code == 4 && ran.stderr.contains("a backup's"), "{ran}");
    }
    fixture.fsck_clean();
}

// P8.1
#[test]
fn the_past_is_where_it_was_then() {
    let team = bob_has_parked("");
    let fixture = &team.fixture;
    let shown = |g: u64| {
        let shown = fixture.workfs(&["show", "t-1", "--json", "--g", &g.to_string()]);
        let shown = shown.success().json();
        (shown["path"].clone(), shown["parked_in"].clone())
    };
    let gs = || {
        let ledger = fixture.ledger();
        ledger
            .of_record("t-1")
            .iter()
            .map(|event| event.0["g"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    let (lane, file) = ("work/assigned/bob", "work/assigned/bob/t-1.yaml");
    let [created, claimed, parked] = gs()[..] else { panic!("{:?}", gs()) };
    let all = || [shown(created), shown(claimed), shown(parked)];
    let wanted = [
        ("work/inbox/t-1.yaml".into(), Value::Null),
        (file.into(), Value::Null),
        (Value::Null, lane.into()),
    ];
    assert_eq!(all(), wanted);
    team.sh(1, &format!("mv {file}~ {file}")).success();
    assert_eq!(all(), wanted);
    assert_eq!(shown(gs()[3]), (file.into(), Value::Null));
    fixture.fsck_clean();
}
