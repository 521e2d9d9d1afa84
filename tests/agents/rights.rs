//! What a role may do to whose record.

use std::collections::BTreeSet;
use std::fs;

use workfs::refusal::Rule;

use crate::harness::{Desk, Errno, Event, Task, save};
use crate::team::{Team, errno, mv};

// P10.4
#[test]
fn an_agent_works_on_what_is_free_and_on_its_own() {
    let team = Team::of(&[("bob", ""), ("ann", "")]);
    let bob = team.work(1);
    save(&bob.join("inbox/t-1.yaml"), Task::new("t-1").text().as_bytes()).unwrap();
    let more = Task::new("t-1").revision(2).text();
    save(&bob.join("inbox/t-1.yaml"), more.as_bytes()).unwrap();
    mv(&bob, "t-1", "inbox", "assigned/bob").unwrap();
    team.sh(1, "printf 'result:\\n  summary: it works\\n' >> work/assigned/bob/t-1.yaml").success();
    team.sh(
        1,
        "echo notes > work/assigned/bob/notes.md && mkdir work/done/bob/x && rmdir work/done/bob/x",
    )
    .success();
    mv(&bob, "t-1", "assigned/bob", "done/bob").unwrap();
    team.sh(1, "echo x > scratch && mkdir -p notes/a && mv scratch notes/a/ && rm -r notes")
        .success();
    team.sh(1, "rmdir work/assigned/bob/ 2>/dev/null; rm work/assigned/bob/notes.md").success();
    team.fixture.fsck_clean();
}

// P10.4
#[test]
fn an_agent_goes_round_the_lifecycle_neither_where_work_rests_nor_by_making_it_anew() {
    let team = Team::of(&[("bob", ""), ("ann", "")]);
    let (all, bob, ann) = (team.work(0), team.work(1), team.work(2));
    let finished = |id: &str| Task::new(id).with("result: {summary: it}\n");
    for id in ["t-1", "t-2", "t-3", "t-4", "t-5"] {
        team.fixture.task("inbox", &finished(id));
    }
    fs::create_dir_all(all.join("dead")).unwrap();
    fs::create_dir_all(all.join("fridge")).unwrap();
    // What ann has finished, where it is nobody's; what was given up; what is shelved.
    mv(&ann, "t-1", "inbox", "assigned/ann").unwrap();
    mv(&ann, "t-1", "assigned/ann", "done").unwrap();
    mv(&all, "t-2", "inbox", "assigned/ann").unwrap();
    mv(&all, "t-2", "assigned/ann", "dead").unwrap();
    mv(&all, "t-3", "inbox", "fridge").unwrap();
    for (id, dir) in [("t-1", "done"), ("t-2", "dead"), ("t-3", "fridge")] {
        let path = bob.join(dir).join(format!("{id}.yaml"));
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(errno(fs::remove_file(&path)), Errno::ACCESS, "{dir}");
        let other = text.replace("priority: normal", "priority: high");
        assert_eq!(save(&path, other.as_bytes()), Err(Errno::ACCESS), "{dir}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "{dir}");
    }
    // Removed and made anew where it may not be moved to.
    let done = |id: &str| finished(id).status("done").owner("bob").text();
    fs::remove_file(bob.join("inbox/t-4.yaml")).unwrap();
    for dir in ["done/bob", "dead", "fridge"] {
        let path = bob.join(dir).join("t-4.yaml");
        assert_eq!(save(&path, done("t-4").as_bytes()), Err(Errno::ACCESS), "{dir}");
    }
    let ledger = team.fixture.ledger();
    let told = |path: &str| {
        let is_it =
            |event: &Event| event.name() == "forbidden" && event.0.to_string().contains(path);
        ledger.0.iter().any(is_it)
    };
    assert!(told("work/dead/t-4.yaml") && told("work/done/t-1.yaml"), "{ledger:?}");
    // The other way round it is the move that bob may make.
    mv(&bob, "t-5", "inbox", "assigned/bob").unwrap();
    fs::remove_file(bob.join("assigned/bob/t-5.yaml")).unwrap();
    save(&bob.join("done/bob/t-5.yaml"), done("t-5").as_bytes()).unwrap();
    // But not of what another had.
    team.fixture.task("inbox", &finished("t-8"));
    mv(&ann, "t-8", "inbox", "assigned/ann").unwrap();
    fs::remove_file(ann.join("assigned/ann/t-8.yaml")).unwrap();
    let hers = bob.join("done/bob/t-8.yaml");
    assert_eq!(save(&hers, done("t-8").as_bytes()), Err(Errno::ACCESS));
    // Where work begins, and in its own lane, an agent makes some.
    save(&bob.join("inbox/t-6.yaml"), Task::new("t-6").text().as_bytes()).unwrap();
    let own = Task::new("t-7").status("assigned").owner("bob");
    save(&bob.join("assigned/bob/t-7.yaml"), own.text().as_bytes()).unwrap();
    team.fixture.fsck_clean();
}

// P3.2, P10.4
#[test]
fn what_a_command_may_not_do_is_told_of_the_record_also_where_its_lane_is_not_there() {
    let team = Team::of(&[("bob", ""), ("ann", "")]);
    team.fixture.task("inbox", &Task::new("t-1"));
    mv(&team.work(1), "t-1", "inbox", "assigned/bob").unwrap();
    fs::remove_dir(team.work(0).join("done/bob")).unwrap();
    let why = || {
        let rows = team.fixture.workfs(&["why", "t-1", "--json"]).success().json();
        let row = rows["rows"][0].clone();
        [&row["path"], &row["rule"]].map(|text| text.as_str().unwrap_or_default().to_owned())
    };
    let refused = |arguments: &[&str]| {
        assert_eq!(team.fixture.workfs(arguments).failure().code, 6, "{arguments:?}");
    };
    refused(&["done", "t-1", "--agent", "ann", "--summary", "x"]);
    let there = "work/done/bob/t-1.yaml";
    assert_eq!(why(), [there, "W022"]);
    let told = fs::read_to_string(team.work(0).join("assigned/bob/t-1.yaml.why")).unwrap();
    assert!(told.contains("last refused:") && told.contains(there), "{told}");
    let ledger = team.fixture.ledger();
    let last = ledger.0.last().unwrap();
    assert_eq!((last.name(), last.0["payload"]["path"].as_str()), ("forbidden", Some(there)));
    // What the lifecycle has no way for, too.
    team.fixture.workfs(&["done", "t-1", "--summary", "x"]).success();
    refused(&["release", "t-1", "--agent", "bob"]);
    assert_eq!(why(), ["work/inbox/t-1.yaml", "W022"]);
    team.fixture.fsck_clean();
}

// P10.4
#[test]
fn an_agent_changes_nothing_of_another_s() {
    let team = Team::of(&[("bob", ""), ("ann", "")]);
    let (bob, ann) = (team.work(1), team.work(2));
    team.fixture.task("inbox", &Task::new("t-1"));
    team.fixture.task("inbox", &Task::new("t-2"));
    mv(&ann, "t-1", "inbox", "assigned/ann").unwrap();
    let hers = bob.join("assigned/ann/t-1.yaml");
    let text = fs::read_to_string(&hers).unwrap();
    let before = team.fixture.ledger().last_g();

    // Claiming for her, taking, giving back, finishing, taking out of the workspace.
    assert_eq!(errno(mv(&bob, "t-2", "inbox", "assigned/ann")), Errno::ACCESS);
    assert_eq!(errno(mv(&bob, "t-1", "assigned/ann", "assigned/bob")), Errno::ACCESS);
    assert_eq!(errno(mv(&bob, "t-1", "assigned/ann", "inbox")), Errno::ACCESS);
    assert_eq!(errno(mv(&bob, "t-1", "assigned/ann", "done/ann")), Errno::ACCESS);
    assert_eq!(errno(fs::rename(&hers, bob.join("../t-1.txt"))), Errno::ACCESS);
    assert_eq!(errno(fs::rename(&hers, bob.join("assigned/ann/t-1.yaml~"))), Errno::ACCESS);
    // Writing, whichever way.
    assert_eq!(save(&hers, text.replace("t-1", "t-1 ").as_bytes()), Err(Errno::ACCESS));
    let open = |options: &mut fs::OpenOptions| options.open(&hers).map(drop);
    assert_eq!(errno(open(fs::OpenOptions::new().append(true))), Errno::ACCESS);
    assert_eq!(errno(open(fs::OpenOptions::new().read(true).write(true))), Errno::ACCESS);
    fs::write(bob.join("assigned/bob/mine.tmp"), &text).unwrap();
    assert_eq!(errno(fs::rename(bob.join("assigned/bob/mine.tmp"), &hers)), Errno::ACCESS);
    assert_eq!(errno(fs::write(bob.join("assigned/ann/new.yaml"), "x: 1")), Errno::ACCESS);
    assert_eq!(errno(fs::write(bob.join("assigned/ann/notes.md"), "x")), Errno::ACCESS);
    // Removing, and what is around it.
    assert_eq!(errno(fs::remove_file(&hers)), Errno::ACCESS);
    team.sh(1, "chmod 0 work/assigned/ann/t-1.yaml").failure();
    team.sh(1, "touch work/assigned/ann/t-1.yaml").failure();
    assert_eq!(errno(fs::create_dir(bob.join("assigned/carol"))), Errno::ACCESS);

    assert_eq!(fs::read_to_string(&hers).unwrap(), text);
    let ledger = team.fixture.ledger();
    let since: BTreeSet<&str> =
        ledger.0.iter().filter(|event| event.g() > before).map(Event::name).collect();
    assert_eq!(since, BTreeSet::from(["forbidden"]), "nothing else is told");
    let why = team.why(1);
    assert!(why.contains("W022") && why.contains("bob (agent) may not change ann"), "{why}");
    // What bob was refused is bob's; ann reads hers.
    assert!(team.why(2).contains("nothing of yours"), "{}", team.why(2));
    // She goes on.
    mv(&ann, "t-1", "assigned/ann", "inbox").unwrap();
    team.fixture.fsck_clean();
}

// P10.4
#[test]
fn leads_act_for_others() {
    let team = Team::of(&[("bob", ""), ("cleo", "coordinator")]);
    let cleo = team.work(2);
    team.fixture.task("inbox", &Task::new("t-1"));
    mv(&cleo, "t-1", "inbox", "assigned/bob").unwrap();
    save(&cleo.join("assigned/bob/t-1.yaml"), &{
        let text = fs::read_to_string(cleo.join("assigned/bob/t-1.yaml")).unwrap();
        text.replace("status: assigned", "status: blocked").into_bytes()
    })
    .unwrap();
    mv(&cleo, "t-1", "assigned/bob", "assigned/cleo").unwrap();
    fs::create_dir(cleo.join("assigned/dora")).unwrap();
    // Out of a workspace takes an operator.
    let left = fs::rename(cleo.join("assigned/cleo/t-1.yaml"), cleo.join("../t-1.txt"));
    assert_eq!(errno(left), Errno::ACCESS);
    fs::rename(team.work(0).join("assigned/cleo/t-1.yaml"), team.fixture.path("t-1.txt")).unwrap();
}

// P10.4
#[test]
fn an_observer_only_reads() {
    let team = Team::of(&[("olga", "observer")]);
    let olga = team.work(1);
    team.fixture.task("inbox", &Task::new("t-1"));
    fs::write(team.fixture.path("plain"), "x").unwrap();
    let text = fs::read_to_string(olga.join("inbox/t-1.yaml")).unwrap();
    assert_eq!(text, Task::new("t-1").text());
    let plain = team.fixture.mount(1).join("plain");
    assert_eq!(fs::read(&plain).unwrap(), b"x");

    assert_eq!(errno(mv(&olga, "t-1", "inbox", "assigned/olga")), Errno::ACCESS);
    assert_eq!(save(&olga.join("inbox/t-1.yaml"), b"status: new\n"), Err(Errno::ACCESS));
    assert_eq!(errno(fs::write(olga.join("inbox/t-2.yaml"), "status: new\n")), Errno::ACCESS);
    assert_eq!(errno(fs::remove_file(olga.join("inbox/t-1.yaml"))), Errno::ACCESS);
    assert_eq!(errno(fs::write(&plain, "y")), Errno::ACCESS);
    assert_eq!(errno(fs::create_dir(olga.join("assigned/olga/x"))), Errno::ACCESS);
    assert_eq!(errno(std::os::unix::fs::symlink("x", olga.join("link"))), Errno::ACCESS);
    team.sh(1, "chmod 600 plain").failure();
    team.sh(1, "touch plain").failure();
    assert_eq!(fs::read(&plain).unwrap(), b"x");
    assert!(team.why(1).contains("observer"), "{}", team.why(1));
}

// P10.4 P10.5
#[test]
fn what_an_observer_tries_is_told_with_its_path() {
    let team = Team::of(&[("olga", "observer")]);
    let olga = team.work(1);
    for nth in 1..=4 {
        team.fixture.task("inbox", &Task::new(&format!("t-{nth}")));
    }
    for file in ["write", "cut", "append", "unlink", "move", "link", "chmod", "xattr", "x.yaml"] {
        fs::write(team.fixture.path(file), "x").unwrap();
    }
    fs::create_dir(team.fixture.path("dir")).unwrap();
    let ways = [
        ("echo y 1<> write", "write"),
        ("echo y > cut", "cut"),
        ("echo y >> append", "append"),
        ("rm -f unlink", "unlink"),
        ("mv move moved", "move"),
        ("ln link second", "second"),
        ("chmod 600 chmod", "chmod"),
        ("setfattr -n user.x -v y xattr", "xattr"),
        ("chmod 700 dir", "dir"),
        ("echo y > new", "new"),
        ("mkdir made", "made"),
        ("rmdir dir", "dir"),
        ("ln -s x symbolic", "symbolic"),
        ("mknod pipe p", "pipe"),
        ("echo 'title: x' >> work/inbox/t-1.yaml", "work/inbox/t-1.yaml"),
        ("rm -f work/inbox/t-2.yaml", "work/inbox/t-2.yaml"),
        ("mv work/inbox/t-3.yaml work/assigned/olga/", "work/inbox/t-3.yaml"),
        ("mv work/ready/.next work/assigned/olga/.next", "work/assigned/olga"),
        ("echo x > work/inbox/t-9.yaml", "work/inbox/t-9.yaml"),
    ];
    let mut tried = BTreeSet::new();
    for (way, path) in ways {
        let ran = team.sh(1, way).failure();
        assert!(ran.stderr.contains("ermission denied"), "{way}: {ran}");
        tried.insert(path.to_owned());
        let told = team.forbidden_to("olga");
        assert!(told.contains(&path.to_owned()), "{way}: {told:?}");
        let why = team.why(1);
        assert!(why.lines().next().unwrap().contains(path), "{way}: {why}");
    }
    assert_eq!(errno(mv(&olga, "t-4", "inbox", "done")), Errno::ACCESS);
    for _ in 0..20 {
        team.sh(1, "echo y > cut; rm -f unlink; touch cut").failure();
    }
    let told = team.forbidden_to("olga");
    assert_eq!(told.len(), tried.len() + 1, "once a minute of each path: {told:?}");
    team.fixture.fsck_clean();
}

// P10.4
#[test]
fn a_file_is_brought_back_in_no_lane_of_another() {
    let desk = Desk::new(&["bob", "ann"]);
    desk.restore("bob", "bob", "note.txt").unwrap();
    assert_eq!(desk.restore("ann", "bob", "note.txt").unwrap_err().rule, Rule::Forbidden);
    assert_eq!(desk.restore("ann", "bob", "new.txt").unwrap_err().rule, Rule::Forbidden);
    desk.restore("ann", "inbox", "note.txt").unwrap();
    // Nor under a name that would be one, or that is a record's.
    for (who, dir, name, rule) in [
        ("ann", "assigned", "eve", Rule::Forbidden),
        ("ann", "inbox", "t-1.yaml", Rule::Transition),
    ] {
        assert_eq!(desk.restore(who, dir, name).unwrap_err().rule, rule, "{dir}/{name}");
    }
    desk.fsck_clean();
}

// P10.4 P10.5
#[test]
fn where_a_lane_s_next_leads_is_for_whose_lane_it_is_to_forget() {
    let team = Team::of(&[("bob", ""), ("ann", "")]);
    team.fixture.task("inbox", &Task::new("t-1"));
    team.sh(1, "mv work/ready/.next work/assigned/bob/").success();
    let refused = team.sh(2, "unlink work/assigned/bob/.next").failure();
    assert!(refused.stderr.contains("ermission denied"), "{refused}");
    team.sh(1, "test $(readlink work/assigned/bob/.next) = t-1.yaml").success();
    team.sh(1, "rm work/assigned/bob/.next && ! test -h work/assigned/bob/.next").success();
}

// P10.4 P3.1
#[test]
fn the_backup_of_a_record_that_is_not_the_agent_s_to_remove_is_not_either() {
    let team = Team::of(&[("bob", ""), ("ann", "")]);
    let (all, ann) = (team.work(0), team.work(2));
    team.fixture.task("inbox", &Task::new("t-1").with("result: {summary: it}\n"));
    mv(&team.work(1), "t-1", "inbox", "assigned/bob").unwrap();
    mv(&team.work(1), "t-1", "assigned/bob", "done").unwrap();
    let backup = "done/t-1.yaml~";
    fs::rename(all.join("done/t-1.yaml"), all.join(backup)).unwrap();
    let before = team.fixture.ledger().names("t-1").len();
    assert_eq!(errno(fs::remove_file(ann.join(backup))), Errno::ACCESS);
    let other = ann.join("inbox/other");
    fs::write(&other, "x").unwrap();
    assert_eq!(errno(fs::rename(&other, ann.join(backup))), Errno::ACCESS);
    assert_eq!(errno(fs::rename(ann.join(backup), ann.join("inbox/mine"))), Errno::ACCESS);
    assert_eq!(team.fixture.ledger().names("t-1").len(), before);
    fs::rename(all.join(backup), all.join("done/t-1.yaml")).unwrap();
    team.fixture.fsck_clean();
}

// P10.4
#[test]
fn attributes_of_another_s_draft_are_not_the_agent_s_to_set() {
    let team = Team::of(&[("bob", ""), ("ann", "")]);
    let draft = "work/assigned/bob/t-1.yaml";
    team.sh(1, &format!("echo 'status: [' > {draft}; test -e {draft}")).success();
    for change in ["chmod 600", "touch", "setfattr -n user.a -v 1", "truncate -s 0"] {
        let before = team.sh(0, &format!("stat -c '%a %Y %s' {draft}; cat {draft}")).success();
        let refused = team.sh(2, &format!("{change} {draft}")).failure();
        assert!(refused.stderr.contains("ermission denied"), "{change}: {refused}");
        let after = team.sh(0, &format!("stat -c '%a %Y %s' {draft}; cat {draft}")).success();
        assert_eq!(after.stdout, before.stdout, "{change}");
        team.sh(1, &format!("{change} {draft}")).success();
    }
    team.fixture.fsck_clean();
}

// P10.5
#[test]
fn a_name_that_somebody_else_wrote_into_an_agent_s_text_keeps_it_from_no_save() {
    let team = Team::of(&[("bob", ""), ("ann", "")]);
    team.fixture.task("inbox", &Task::new("t-1"));
    mv(&team.work(1), "t-1", "inbox", "assigned/bob").unwrap();
    let path = |nth: usize| team.work(nth).join("assigned/bob/t-1.yaml");
    let text = fs::read_to_string(path(0)).unwrap();
    let of = |name: &str| text.replace("agent: bob", &format!("agent: {name}"));
    assert_eq!(save(&path(1), of("ann").as_bytes()), Err(Errno::ACCESS));
    save(&path(0), of("ann").as_bytes()).unwrap();
    let more = format!("{}notes: going on\n", of("ann"));
    fs::read_to_string(path(1)).unwrap();
    save(&path(1), more.as_bytes()).unwrap();
    assert_eq!(save(&path(1), of("carol").as_bytes()), Err(Errno::ACCESS));
    assert_eq!(fs::read_to_string(path(0)).unwrap(), more);
    team.fixture.fsck_clean();
}
