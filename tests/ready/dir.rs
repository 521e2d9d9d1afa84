//! `ready/` and `.next` through real mounts.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Barrier;

use crate::harness::{Errno, Fixture, Setup, Task, needs, save};

fn names(dir: &Path) -> Vec<String> {
    let list = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    list.map(|name| name.into_string().unwrap()).collect()
}

fn put(fixture: &Fixture, task: &str, fields: &str) {
    let path = fixture.work().join("inbox").join(format!("{task}.yaml"));
    save(&path, format!("id: {task}\n{fields}").as_bytes()).unwrap();
}

// P9.5
#[test]
fn ready_lists_what_can_be_claimed_best_first_and_mv_claims_it() {
    let fixture = Setup::default().mounts(2).start();
    put(&fixture, "low", "priority: low\n");
    put(&fixture, "a", "");
    put(&fixture, "waits", "dependencies: [a]\n");
    put(&fixture, "high", "priority: high\n");
    let broken = fixture.path("work/inbox/broken.yaml");
    assert_eq!(save(&broken, b"status: [\n"), Err(Errno::INVAL));
    for mount in fixture.mounts() {
        let ready = mount.join("work/ready");
        assert_eq!(names(&ready), ["high.yaml", "a.yaml", "low.yaml"]);
        assert!(names(&mount.join("work")).contains(&"ready".to_owned()));
    }
    let work = fixture.work();
    let (here, there) = (work.join("ready/a.yaml"), work.join("inbox/a.yaml"));
    assert_eq!(fs::read(&here).unwrap(), fs::read(&there).unwrap());
    assert_eq!(fs::metadata(&here).unwrap().ino(), fs::metadata(&there).unwrap().ino());
    assert!(!work.join("ready/waits.yaml").exists() && !work.join("ready/broken.yaml").exists());

    // Both mounts know the old name before it is claimed by way of ready/.
    assert!(fixture.mount(1).join("work/inbox/a.yaml").exists());
    fixture.sh("mv work/ready/a.yaml work/assigned/bob/").success();
    for mount in fixture.mounts() {
        assert!(!mount.join("work/inbox/a.yaml").exists());
        assert!(mount.join("work/assigned/bob/a.yaml").exists());
        assert_eq!(names(&mount.join("work/ready")), ["high.yaml", "low.yaml"]);
    }
    let late = fixture.sh("mv work/ready/a.yaml work/assigned/ann/").failure();
    assert!(late.stderr.contains("No such file or directory"), "{late}");
    // Finished, it makes what waits for it ready, in the other mount, too.
    let done = work.join("assigned/bob/a.yaml");
    fs::read(&done).unwrap();
    save(&done, b"id: a\nstatus: assigned\nresult: {summary: it}\n").unwrap();
    fixture.sh("mv work/assigned/bob/a.yaml work/done/bob/").success();
    let ready = fixture.mount(1).join("work/ready");
    assert_eq!(names(&ready), ["high.yaml", "waits.yaml", "low.yaml"]);
    fixture.fsck_clean();
}

// P9.5
#[test]
fn nothing_is_made_or_removed_in_ready() {
    let fixture = Fixture::new();
    put(&fixture, "a", "");
    let ready = fixture.path("work/ready");
    let refused = |result: io::Result<()>| result.unwrap_err().raw_os_error().unwrap();
    let read_only = rustix::io::Errno::ROFS.raw_os_error();
    assert_eq!(refused(fs::write(ready.join("new.yaml"), "id: new\n")), read_only);
    assert_eq!(refused(fs::remove_file(ready.join("a.yaml"))), read_only);
    assert_eq!(refused(fs::create_dir(ready.join("dir"))), read_only);
    let from = fixture.path("work/inbox/a.yaml");
    assert_eq!(refused(fs::rename(&from, ready.join("b.yaml"))), read_only);
    let exists = rustix::io::Errno::EXIST.raw_os_error();
    assert_eq!(refused(fs::create_dir(&ready)), exists);
    // What works on whole trees goes on: the directory has the workspace's attributes.
    fixture
        .sh("chmod -R a+rX work && chown -R 0:0 work && find work -name '*.why' | wc -l")
        .success();
    // A save by its name there is a save.
    fixture.sh("cat >> work/ready/a.yaml <<< 'title: saved'").success();
    let text = fs::read_to_string(fixture.path("work/inbox/a.yaml")).unwrap();
    assert!(text.ends_with("title: saved\n"), "{text}");
    fixture.fsck_clean();
}

// P9.6
#[test]
fn the_link_to_the_next_leads_where_the_next_is_now() {
    let fixture = Setup::default().mounts(2).start();
    for name in ["c", "b", "a"] {
        put(&fixture, name, "");
    }
    let targets = |at: &str| {
        [0, 1].map(|nth| fs::read_link(fixture.mount(nth).join(at)).unwrap().into_os_string())
    };
    let first = targets("work/ready/.next");
    fixture.sh("mv work/ready/.next work/assigned/bob/").success();
    assert_ne!(targets("work/ready/.next"), first, "ready/");
    assert_eq!(targets("work/assigned/bob/.next"), first);
    let second = targets("work/ready/.next");
    let other = fixture.bash().with("M", fixture.mount(1));
    other.run("mv $M/work/ready/.next $M/work/assigned/bob/").success();
    assert_eq!(targets("work/assigned/bob/.next"), second);
    assert_ne!(targets("work/ready/.next"), second);
}

// P9.6
#[test]
fn a_record_whose_text_cannot_be_changed_does_not_keep_others_from_the_rest() {
    let fixture = Fixture::new();
    let spoilt = "status: &s new\npriority: critical\nx: *s\n";
    save(&fixture.path("work/inbox/spoilt.yaml"), spoilt.as_bytes()).unwrap();
    for nth in 0..40 {
        save(&fixture.path(&format!("work/inbox/too-{nth}.yaml")), spoilt.as_bytes()).unwrap();
    }
    put(&fixture, "one", "");
    put(&fixture, "two", "");
    fixture.sh("mv work/ready/.next work/assigned/bob/").success();
    fixture.workfs(&["claim", "--next", "--agent", "bob"]).success();
    let lane = names(&fixture.path("work/assigned/bob"));
    assert_eq!(lane.len(), 2, "{lane:?}");
    let why = fs::read_to_string(fixture.path("work/inbox/spoilt.yaml.why")).unwrap();
    assert!(why.contains("W010"), "{why}");
    assert_eq!(fixture.why().matches("W010").count(), 1, "told once: {}", fixture.why());
    // Nothing else is left.
    let refused = fixture.sh("mv work/ready/.next work/assigned/bob/").failure();
    assert!(refused.stderr.contains("Operation not permitted"), "{refused}");
    fixture.fsck_clean();
}

// P9.6
#[test]
fn a_copy_of_next_claims_nothing_and_says_so() {
    let fixture = Fixture::new();
    put(&fixture, "one", "");
    for copy in ["cp", "cp -P", "ln -s x"] {
        let from = if copy == "ln -s x" { "" } else { "work/ready/.next" };
        let to = "work/assigned/bob/.next";
        let refused = fixture.sh(&format!("{copy} {from} {to}")).failure();
        assert!(refused.stderr.contains("Operation not permitted"), "{refused}");
    }
    let why = fixture.why();
    assert!(why.contains("mv work/ready/.next work/assigned/bob/"), "{why}");
    assert!(names(&fixture.path("work/assigned/bob")).is_empty());
    // Nor does anything else get its name there, over which it could be copied.
    for take in ["mv", "ln", "ln -s", "mkdir plain/d && mv -T plain/d"] {
        let from = if take.contains(" -T") { "" } else { "plain/f" };
        let to = "work/assigned/bob/.next";
        let refused = fixture
            .sh(&format!("rm -rf plain && mkdir plain && echo x > plain/f && {take} {from} {to}"));
        assert!(refused.failure().stderr.contains("Operation not permitted"), "{take}");
    }
    fixture.sh("mv work/ready/.next work/assigned/bob/").success();
    // Elsewhere it is a name like any other.
    fixture.sh("echo x > work/inbox/.next && echo x > .next").success();
    fixture.fsck_clean();
}

// P9.6
#[test]
fn a_copy_over_the_link_that_a_lane_has_claims_nothing_and_says_what_does() {
    let fixture = Fixture::new();
    put(&fixture, "first", "priority: critical\n");
    put(&fixture, "second", "");
    fixture.sh("mv work/ready/.next work/assigned/bob/").success();
    let claimed = fs::read(fixture.path("work/assigned/bob/first.yaml")).unwrap();
    let refused = fixture.sh("cp work/ready/.next work/assigned/bob/").failure();
    assert!(refused.stderr.contains("Invalid argument"), "{refused}");
    let why = fixture.why();
    assert!(why.contains("this is the text of `second`, in the file of `first`"), "{why}");
    assert!(why.contains("mv work/inbox/second.yaml work/assigned/bob/"), "{why}");
    assert_eq!(fs::read(fixture.path("work/assigned/bob/first.yaml")).unwrap(), claimed);
    // What it says is the way.
    fixture.sh("mv work/inbox/second.yaml work/assigned/bob/").success();
    fixture.fsck_clean();
}

// P9.6
#[test]
fn next_gives_the_best_under_its_own_name_and_a_link_to_it() {
    let fixture = Fixture::new();
    put(&fixture, "second", "");
    put(&fixture, "first", "priority: critical\n");
    assert_eq!(fs::read_link(fixture.path("work/ready/.next")).unwrap(), Path::new("first.yaml"));
    for expected in ["first", "second"] {
        fixture.sh("mv work/ready/.next work/assigned/bob/").success();
        let lane = fixture.path("work/assigned/bob");
        let link = fs::read_link(lane.join(".next")).unwrap();
        assert_eq!(link, Path::new(&format!("{expected}.yaml")));
        let text = fs::read_to_string(lane.join(".next")).unwrap();
        assert!(text.contains(&format!("id: {expected}")) && text.contains("agent: bob"), "{text}");
        assert!(!fixture.path(&format!("work/inbox/{expected}.yaml")).exists());
    }
    assert_eq!(names(&fixture.path("work/assigned/bob")).len(), 2, ".next is not listed");
    let none = fixture.sh("mv work/ready/.next work/assigned/bob/").failure();
    assert!(none.stderr.contains("No such file or directory"), "{none}");
    // The link goes with what it leads to, or by rm.
    fixture.sh("rm work/assigned/bob/.next && ! ls work/assigned/bob/.next").success();
    put(&fixture, "third", "result: {summary: x}\n");
    fixture.sh("mv work/ready/.next work/assigned/ann/").success();
    fixture.sh("mv work/assigned/ann/third.yaml work/done/ann/").success();
    assert!(fs::symlink_metadata(fixture.path("work/assigned/ann/.next")).is_err());
    fixture.fsck_clean();
}

// P9.6
#[test]
fn next_is_moved_into_a_lane_and_nowhere_else() {
    let fixture = Fixture::new();
    put(&fixture, "a", "");
    let next = fixture.path("work/ready/.next");
    let to = |to: &str| fs::rename(&next, fixture.path(to)).unwrap_err().raw_os_error().unwrap();
    let [perm, noent] = [rustix::io::Errno::PERM, rustix::io::Errno::NOENT];
    assert_eq!(to("work/assigned/bob/mine.yaml"), perm.raw_os_error());
    assert_eq!(to("work/done/bob/.next"), perm.raw_os_error(), "a result is missing");
    assert_eq!(to("work/assigned/nobody/.next"), noent.raw_os_error());
    assert!(fixture.path("work/inbox/a.yaml").exists());
    assert!(fixture.why().contains("mv work/ready/.next work/assigned/bob/"), "{}", fixture.why());
    // Python's way.
    let python = "import shutil; shutil.move('work/ready/.next', 'work/assigned/bob')";
    fixture.sh(&format!("python3 -c \"{python}\"")).success();
    assert!(fixture.path("work/assigned/bob/a.yaml").exists());
    fixture.fsck_clean();
}

// P9.6
#[test]
fn many_who_call_next_at_once_get_different_records_and_none_is_left() {
    const MOUNTS: usize = 4;
    const EACH: usize = 3;
    let lanes: Vec<String> = (0..MOUNTS * EACH).map(|nth| format!("agent-{nth}")).collect();
    let fixture = Setup::default().mounts(MOUNTS).lanes(&lanes).start();
    let ids = fixture.tasks(90);
    let barrier = Barrier::new(lanes.len());
    let claimed: Vec<BTreeSet<String>> = std::thread::scope(|scope| {
        let agents: Vec<_> = lanes
            .iter()
            .enumerate()
            .map(|(nth, lane)| {
                let (mount, barrier) = (fixture.mount(nth % MOUNTS), &barrier);
                scope.spawn(move || {
                    let next = mount.join("work/ready/.next");
                    let to = mount.join("work/assigned").join(lane);
                    let mut mine = BTreeSet::new();
                    barrier.wait();
                    loop {
                        match fs::rename(&next, to.join(".next")) {
                            Ok(()) => {
                                let link = fs::read_link(to.join(".next")).unwrap();
                                assert!(mine.insert(link.to_str().unwrap().to_owned()));
                            }
                            Err(error) => {
                                assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}");
                                return mine;
                            }
                        }
                    }
                })
            })
            .collect();
        agents.into_iter().map(|agent| agent.join().unwrap()).collect()
    });
    let all: Vec<&String> = claimed.iter().flatten().collect();
    assert_eq!(all.len(), ids.len(), "one each, none wasted");
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), ids.len());
    for (lane, mine) in lanes.iter().zip(&claimed) {
        let lies: BTreeSet<String> =
            names(&fixture.path(&format!("work/assigned/{lane}"))).into_iter().collect();
        assert_eq!(lies, *mine);
    }
    fixture.fsck_clean();
}

// P9.6 P9.9
#[test]
fn what_has_its_name_in_the_lane_is_passed_over_for_that_agent_alone() {
    let fixture = Fixture::new();
    for (task, priority) in [("a", "critical"), ("b", "high"), ("c", "normal"), ("d", "low")] {
        put(&fixture, task, &format!("priority: {priority}\n"));
    }
    let leftovers = "cd work/assigned/bob; ln -s nowhere a.yaml; echo 'status: [' > b.yaml; true";
    fixture.sh(leftovers).success();
    fixture.sh("mv work/ready/.next work/assigned/bob/").success();
    assert!(fixture.path("work/assigned/bob/c.yaml").exists());
    let claimed = fixture.workfs(&["claim", "--next", "--agent", "bob"]).success();
    assert_eq!(claimed.stdout, "work/assigned/bob/d.yaml\n");
    assert_eq!(fixture.why().matches("work/assigned/bob/a.yaml").count(), 2, "told once");
    // Where there is nothing else, it is said what is to be done.
    let nothing = fixture.workfs(&["claim", "--next", "--agent", "bob"]).failure();
    assert!(nothing.stderr.contains("remove `work/assigned/bob/a.yaml`"), "{nothing}");
    let nothing = fixture.sh("mv work/ready/.next work/assigned/bob/").failure();
    assert!(nothing.stderr.contains("File exists"), "{nothing}");
    // Others have it, and so has bob when the name is free.
    fixture.sh("mv work/ready/.next work/assigned/ann/").success();
    assert!(fixture.path("work/assigned/ann/a.yaml").exists());
    fixture.sh("rm work/assigned/bob/b.yaml; mv work/ready/.next work/assigned/bob/").success();
    assert!(fixture.path("work/assigned/bob/b.yaml").exists());
    fixture.fsck_clean();
}

// P9.7
#[test]
fn a_record_that_nobody_can_claim_says_so_before_anybody_tries() {
    let fixture = Fixture::new();
    let text = "id: t-1\nstatus: new\nagent: &who nobody\nreviewer: *who\n";
    fs::write(fixture.path("work/inbox/t-1.yaml"), text).unwrap();
    let full = |bytes: usize| {
        let head = "id: t-2\nstatus: new\n";
        head.to_owned() + "#" + &"-".repeat(bytes - head.len() - 2) + "\n"
    };
    fs::write(fixture.path("work/inbox/t-2.yaml"), full(1 << 20)).unwrap();
    fixture.task("inbox", &Task::new("t-3"));
    let why = |id: &str| {
        let path = format!("work/inbox/{id}.yaml.why");
        fs::read_to_string(fixture.path(&path)).unwrap()
    };
    assert!(why("t-3").contains("it can be claimed now"), "{}", why("t-3"));
    let explained = fixture.workfs(&["ready", "--explain"]).success().stdout;
    for id in ["t-1", "t-2"] {
        assert!(why(id).contains("nobody can claim it"), "{}", why(id));
        let row = format!("work/inbox/{id}.yaml: nobody can claim it");
        assert!(explained.contains(&row), "{explained}");
        fixture.sh(&format!("mv work/inbox/{id}.yaml work/assigned/bob/")).failure();
    }
    assert!(explained.lines().any(|line| line == "work/inbox/t-3.yaml"), "{explained}");
    fs::write(fixture.path("work/inbox/t-2.yaml"), full((1 << 20) - 200)).unwrap();
    fixture.sh("mv work/inbox/t-2.yaml work/assigned/bob/").success();
}

// P9.7
#[test]
fn why_says_what_is_missing() {
    let fixture = Fixture::new();
    put(&fixture, "a", "dependencies: [b]\nnot_before: 2100-01-01\n");
    let why = |path: &str| fs::read_to_string(fixture.path(path)).unwrap();
    let text = why("work/inbox/a.yaml.why");
    assert!(text.contains("ready:  no; it waits for `b` (there is no such record)"), "{text}");
    put(&fixture, "b", "");
    assert!(why("work/inbox/a.yaml.why").contains("`b` (in inbox)"));
    assert!(why("work/ready/b.yaml.why").contains("ready:  it can be claimed now"));
    fixture.sh("sed -i s/^dependencies.*// work/inbox/a.yaml").success();
    assert!(why("work/inbox/a.yaml.why").contains("ready:  no; its time is 2100-01-01T00:00:00Z"));
    fixture.sh("mv work/ready/b.yaml work/assigned/bob/").success();
    let text = why("work/assigned/bob/b.yaml.why");
    assert!(text.contains("ready:  no; it is in assigned"), "{text}");
}

// P9.4
#[test]
fn a_circle_is_refused_at_close_and_by_rename() {
    let fixture = Fixture::new();
    put(&fixture, "a", "");
    put(&fixture, "b", "dependencies: [a]\n");
    let path = fixture.path("work/inbox/a.yaml");
    let error = save(&path, b"id: a\ndependencies: [b]\n").unwrap_err();
    assert_eq!(error, Errno::INVAL);
    let temp = fixture.path("work/inbox/.tmp-a");
    fs::write(&temp, "id: a\ndependencies: [b]\n").unwrap();
    assert_eq!(fs::rename(&temp, &path).unwrap_err().raw_os_error(), Some(1));
    assert_eq!(fs::read_to_string(&path).unwrap(), "id: a\n");
    assert!(fixture.why().contains("W016"), "{}", fixture.why());
    fixture.fsck_clean();
}

// P9.5
#[test]
fn a_long_list_of_ready_records_comes_whole_and_in_order_while_it_changes() {
    let fixture = Fixture::new();
    for nth in 0..1500 {
        put(&fixture, &format!("t{nth:04}"), "");
    }
    let mut list = fs::read_dir(fixture.path("work/ready")).unwrap();
    let first = list.next().unwrap().unwrap();
    assert_eq!(first.file_name(), "t0000.yaml");
    fixture
        .sh("for i in 1 2 3 4 5 6 7 8; do mv work/ready/.next work/assigned/bob/; done")
        .success();
    put(&fixture, "urgent", "priority: critical\n");
    let rest: Vec<String> =
        list.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let is_stable = |name: &&String| name.starts_with('t') && name.as_str() > "t0007.yaml";
    let stable: Vec<&String> = rest.iter().filter(is_stable).collect();
    assert_eq!(stable.len(), 1492);
    assert!(stable.is_sorted());
    assert_eq!(names(&fixture.path("work/ready"))[0], "urgent.yaml");
}

// P7.5
#[test]
fn rm_takes_a_workspace_without_records_with_its_ready() {
    let fixture = Fixture::new();
    fixture.sh("rm -r work/collaboration").success();
    assert!(!fixture.path("work/collaboration").exists());
    // As long as anything is left, `ready/` shows what lies there.
    put(&fixture, "a", "status: new\n");
    let ready = fixture.path("work/ready");
    let refused = fs::remove_dir(&ready).unwrap_err();
    assert_eq!(Errno::from_io_error(&refused), Some(Errno::ROFS));
    assert_eq!(names(&ready), ["a.yaml"]);
    fixture.sh("rm work/inbox/a.yaml && rm -r work").success();
    assert!(!fixture.path("work").exists());

    // One that stays has its `ready/` as before.
    fixture.sh("mkdir -p work/inbox && rmdir work/inbox work/ready && mkdir work/inbox").success();
    put(&fixture, "b", "status: new\n");
    assert_eq!(names(&ready), ["b.yaml"]);
    fixture.fsck_clean();
}

// P9.5, P7.1
#[test]
fn a_workspace_is_copied_with_all_but_its_ready() {
    let layout = "workspaces:\n  - { path: \"**/work\", kind: task }\n";
    let fixture = Setup::default().layout(layout).start();
    let done = "id: c\nresult: {summary: it}\n";
    fixture
        .sh(&format!(
            "mkdir -p a/work/{{inbox,assigned/bob,done/bob}} b c d e f && cd a/work
             for id in a b; do echo id: $id > inbox/$id.yaml; done && mv inbox/b.yaml assigned/bob/
             printf '{done}' > inbox/c.yaml && mv inbox/c.yaml assigned/bob/
             mv assigned/bob/c.yaml done/bob/ && cd .. && cp -a work $OUT/plain
             tar cf $OUT/with.tar work && tar cf $OUT/without.tar --exclude=ready work"
        ))
        .success();
    let same = |dir: &str| fixture.sh(&format!("diff -r a/work {dir}/work")).success();

    // The kernel itself refuses to make what is there, and cp does not look in a directory that it made.
    let copied = fixture.sh("cp -a a/work b/").failure();
    assert_eq!(copied.stderr.lines().count(), 1, "{copied}");
    assert!(copied.stderr.contains("'b/work/ready': File exists"), "{copied}");
    same("b");
    // In one that is there it does, and goes by inode numbers, of which that of `ready` is the highest.
    fixture.sh("cp -a a/work b/ && mkdir c/work && cp -a a/work/. c/work/").success();
    same("c");
    fixture.sh("tar xf $OUT/with.tar -C d").failure();
    same("d");
    fixture.sh("tar xf $OUT/without.tar -C e").success();
    same("e");
    if needs(&["rsync"]) {
        fixture.sh("rsync -a --exclude=/ready/ $OUT/plain/ f/work/").success();
        same("f");
        fixture.sh("rsync -a $OUT/plain/ f/work/").success();
    }
    fixture.fsck_clean();
}

// The table of renames: what a move out of `ready/` is.
#[test]
fn what_is_moved_out_of_ready_goes_where_it_would_from_where_it_lies() {
    let fixture = Fixture::new();
    for task in ["a", "b", "c"] {
        put(&fixture, task, "");
    }
    fixture.sh("mkdir -p notes && mv work/ready/a.yaml notes/").success();
    fixture.sh("mv work/ready/b.yaml work/inbox/b.yaml~ && test -e work/inbox/b.yaml~").success();
    assert!(fixture.path("notes/a.yaml").exists() && !fixture.path("work/inbox/a.yaml").exists());
    let (work, notes) = (fixture.work(), fixture.path("notes"));
    let next = fs::rename(work.join("ready/.next"), notes.join(".next"));
    assert_eq!(Errno::from_io_error(&next.unwrap_err()), Some(Errno::PERM));
    assert!(fixture.why().contains("can only go where records lie"), "{}", fixture.why());
    assert_eq!(names(&work.join("ready")), ["c.yaml"]);
    let ledger = fixture.ledger();
    let last = |task: &str| ledger.of_record(task).last().unwrap().name().to_owned();
    assert_eq!(
        (last("a"), last("b"), last("c")),
        ("left".into(), "renamed".into(), "created".into())
    );
    fixture.fsck_clean();
}

// P1.6 P3.2
#[test]
fn what_is_being_written_is_told_of_where_it_lies_when_it_is_moved_out_of_ready() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let path = fixture.path("work/inbox/t-1.yaml");
    let mut writer = fs::OpenOptions::new().append(true).open(&path).unwrap();
    writer.write_all(b"notes: half\n").unwrap();
    let moved = fixture.sh("mv work/ready/t-1.yaml work/assigned/bob/").failure();
    assert!(moved.stderr.contains("resource busy"), "{moved}");
    for why in ["work/inbox/t-1.yaml.why", ".workfs/why"] {
        let told = fs::read_to_string(fixture.path(why)).unwrap();
        assert!(told.contains("rename work/inbox/t-1.yaml EBUSY"), "{told}");
    }
}
