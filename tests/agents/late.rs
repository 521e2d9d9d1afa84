//! What a former owner writes late: it takes nothing back, and keeps nothing from others.

use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::harness::{Errno, Task, close, send_signal};
use crate::leases::await_event;
use crate::team::{Team, errno, mv};

/// Bob had `t-1` and kept a copy of its text; since then ann had it, and wrote to it.
fn ann_had_it_since(ends: impl Fn(&Team)) -> Team {
    let team = Team::of(&[("bob", ""), ("ann", "")]);
    team.fixture.task("inbox", &Task::new("t-1"));
    mv(&team.work(1), "t-1", "inbox", "assigned/bob").unwrap();
    team.sh(1, "cp work/assigned/bob/t-1.yaml $OUT/stale").success();
    ends(&team);
    mv(&team.work(2), "t-1", "inbox", "assigned/ann").unwrap();
    team.sh(2, "echo 'progress: half' >> work/assigned/ann/t-1.yaml").success();
    mv(&team.work(2), "t-1", "assigned/ann", "inbox").unwrap();
    team
}

#[track_caller]
fn is_untouched(team: &Team) {
    let text = fs::read_to_string(team.work(0).join("inbox/t-1.yaml")).unwrap();
    assert!(text.contains("progress: half"), "{text}");
    assert!(!team.work(0).join("assigned/bob/t-1.yaml").exists());
    assert!(team.why(1).contains("W035"), "{}", team.why(1));
}

// P1.3 P12.3
#[test]
fn a_former_owner_s_late_write_is_no_claim_however_its_own_ended() {
    let ends: [fn(&Team); 2] = [
        |team| mv(&team.work(1), "t-1", "assigned/bob", "inbox").unwrap(),
        // The operator takes it back.
        |team| mv(&team.work(0), "t-1", "assigned/bob", "inbox").unwrap(),
    ];
    for end in ends {
        let team = ann_had_it_since(end);
        let late = team.sh(1, "cp $OUT/stale work/assigned/bob/t-1.yaml").failure();
        assert!(late.stderr.contains("Stale file handle"), "{late}");
        is_untouched(&team);
        let kept = team.fixture.rejected();
        assert!(kept.contains(&fs::read(team.fixture.outside("stale")).unwrap()), "{kept:?}");
        let over = "cp $OUT/stale work/assigned/bob/t-1.tmp
                    mv work/assigned/bob/t-1.tmp work/assigned/bob/t-1.yaml";
        team.sh(1, over).failure();
        is_untouched(&team);
        // He may have it again as anybody, by `mv` or with what it says now.
        let again = "set -e; cd work; cp inbox/t-1.yaml $OUT/now
                     cp $OUT/now assigned/bob/t-1.yaml; mv assigned/bob/t-1.yaml inbox/
                     sed 's/half/most/' inbox/t-1.yaml > assigned/bob/t-1.yaml
                     mv assigned/bob/t-1.yaml inbox/; mv inbox/t-1.yaml assigned/bob/";
        team.sh(1, again).success();
        let text = fs::read_to_string(team.work(0).join("assigned/bob/t-1.yaml")).unwrap();
        assert!(text.contains("progress: most"), "{text}");
        team.fixture.fsck_clean();
    }
}

// P12.3 P3.3
#[test]
fn a_shell_of_a_former_owner_hears_of_its_late_write() {
    let team = ann_had_it_since(|team| mv(&team.work(1), "t-1", "assigned/bob", "inbox").unwrap());
    for late in [
        "echo 'notes: late' >> work/assigned/bob/t-1.yaml",
        "{ echo 'id: t-1'; echo 'notes: late'; } > work/assigned/bob/t-1.yaml",
    ] {
        // Each line is a write; nobody here looks at `close`.
        let ran = team.sh(1, late).failure();
        assert!(ran.stderr.contains("Stale file handle"), "{late}: {ran}");
        is_untouched(&team);
    }
    // Where nobody had it before, or this process has read it, it is told at the end or goes on.
    team.sh(1, "cp work/inbox/t-1.yaml work/assigned/bob/t-1.yaml").success();
    team.fixture.fsck_clean();
}

// P1.3
#[test]
fn what_does_not_say_whose_text_it_is_claims_nothing_and_erases_nothing() {
    let team = Team::of(&[("bob", "")]);
    let path = team.fixture.task("inbox", &Task::new("t-1"));
    let before = fs::read_to_string(&path).unwrap();
    let late = team.sh(1, "echo 'note: hi' | cat >> work/assigned/bob/t-1.yaml").failure();
    assert!(late.stderr.contains("File exists"), "{late}");
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    assert!(!team.work(1).join("assigned/bob/t-1.yaml").exists());
    assert!(team.why(1).contains("W002"), "{}", team.why(1));
    // A record that says no id is written as it ever was.
    team.sh(1, "grep -v ^id: work/inbox/t-1.yaml > $OUT/bare; cp $OUT/bare work/inbox/t-1.yaml")
        .success();
    team.sh(1, "cat $OUT/bare > work/assigned/bob/t-1.yaml").success();
    assert!(!path.exists());
    team.fixture.fsck_clean();
}

// P12.3 P1.6
#[test]
fn what_a_former_owner_has_written_and_not_closed_keeps_the_record_from_nobody() {
    let team = Team::of(&[("bob", ""), ("ann", "")]);
    // So long that also on a busy machine all below is done while he, or ann, has it.
    for id in ["t-1", "t-2", "t-3"] {
        team.fixture.task("inbox", &Task::new(id).with("lease: 3s\n"));
        mv(&team.work(1), id, "inbox", "assigned/bob").unwrap();
    }
    let open = |id| {
        let path = team.work(1).join(format!("assigned/bob/{id}.yaml"));
        let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(b"note: half\n").unwrap();
        file
    };
    let hung = ["t-1", "t-2", "t-3"].map(open);
    // While he has it, it is being written.
    assert_eq!(errno(mv(&team.work(0), "t-1", "assigned/bob", "inbox")), Errno::BUSY);
    for id in ["t-1", "t-2", "t-3"] {
        await_event(&team, id, "expired");
    }
    mv(&team.work(2), "t-1", "inbox", "assigned/ann").unwrap();
    team.fixture.workfs(&["claim", "t-2", "--agent", "ann"]).success();
    // In place, so that the file stays the one that bob has open.
    let now =
        "grep -v ^not_before: work/inbox/t-3.yaml > $OUT/now; cp $OUT/now work/inbox/t-3.yaml";
    team.sh(0, now).success();
    team.sh(2, "mv work/ready/.next work/assigned/ann/").success();
    assert!(team.work(2).join("assigned/ann/t-3.yaml").exists());
    for file in hung {
        assert_eq!(close(file), Err(Errno::STALE));
    }
    // What ann writes now counts.
    let path = team.work(2).join("assigned/ann/t-1.yaml");
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(b"note: whole\n").unwrap();
    assert_eq!(errno(mv(&team.work(2), "t-1", "assigned/ann", "inbox")), Errno::BUSY);
    close(file).unwrap();
    mv(&team.work(2), "t-1", "assigned/ann", "inbox").unwrap();
    team.fixture.fsck_clean();
}

// P12.3 P12.7
#[test]
fn what_waited_for_a_daemon_that_stood_still_over_the_end_of_a_lease_is_late() {
    let team = Team::of(&[("bob", "")]);
    team.fixture.task("inbox", &Task::new("t-1").with("lease: 2s\n"));
    let daemon = team.fixture.daemon_pid();
    mv(&team.work(1), "t-1", "inbox", "assigned/bob").unwrap();
    let end = Instant::now() + Duration::from_secs(3);
    send_signal(daemon, Signal::STOP);
    std::thread::scope(|scope| {
        // Enough that some are heard before the daemon looks at its clock.
        let looks: Vec<_> =
            (0..8).map(|nth| team.work(1).join(format!("assigned/bob/none-{nth}"))).collect();
        looks.into_iter().for_each(|look| drop(scope.spawn(|| fs::metadata(look))));
        let late = scope.spawn(|| mv(&team.work(1), "t-1", "assigned/bob", "inbox"));
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            std::thread::park_timeout(left);
        }
        send_signal(daemon, Signal::CONT);
        assert_eq!(errno(late.join().unwrap()), Errno::NOENT);
    });
    await_event(&team, "t-1", "expired");
    assert!(team.work(0).join("inbox/t-1.yaml").exists());
    team.fixture.fsck_clean();
}

// P12.3 P1.6
#[test]
fn who_claimed_by_copy_and_never_closed_keeps_the_record_from_nobody_either() {
    let team = Team::of(&[("bob", ""), ("ann", "")]);
    team.fixture.task("inbox", &Task::new("t-1").with("lease: 1s\n"));
    let read = fs::read_to_string(team.work(1).join("inbox/t-1.yaml")).unwrap();
    let path = team.work(1).join("assigned/bob/t-1.yaml");
    let mut file = fs::File::create(path).unwrap();
    file.write_all(read.replacen("\nstatus: new", "\nstatus: assigned", 1).as_bytes()).unwrap();
    file.sync_all().unwrap();
    file.write_all(b"# half\n").unwrap();
    assert_eq!(errno(mv(&team.work(0), "t-1", "assigned/bob", "inbox")), Errno::BUSY);
    await_event(&team, "t-1", "expired");
    mv(&team.work(2), "t-1", "inbox", "assigned/ann").unwrap();
    assert_eq!(close(file), Err(Errno::STALE));
    team.fixture.fsck_clean();
}

// P12.3
#[test]
fn who_acts_for_others_and_writes_under_a_claim_that_is_over_is_not_told_to_claim() {
    let team = Team::of(&[("bob", ""), ("ann", "")]);
    team.fixture.task("inbox", &Task::new("t-1").with("lease: 1s\n"));
    mv(&team.work(1), "t-1", "inbox", "assigned/bob").unwrap();
    let path = team.work(0).join("assigned/bob/t-1.yaml");
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(b"note: half\n").unwrap();
    await_event(&team, "t-1", "expired");
    mv(&team.work(2), "t-1", "inbox", "assigned/ann").unwrap();
    assert_eq!(close(file), Err(Errno::STALE));
    let why = team.why(0);
    assert!(why.contains("W035") && why.contains("ann has it now"), "{why}");
    assert!(why.contains("write it anew from there") && !why.contains("claim it"), "{why}");
    team.fixture.fsck_clean();
}

// P12.3 P13.1
#[test]
fn in_a_transaction_too_only_who_has_read_the_record_writes_a_claim() {
    let team = ann_had_it_since(|team| mv(&team.work(1), "t-1", "assigned/bob", "inbox").unwrap());
    let late = "cp $OUT/stale work/assigned/bob/t-1.yaml && rm work/inbox/t-1.yaml";
    let workfs = team.fixture.command(&[]);
    let bash = || team.bash(1).with("W", workfs.get_program()).with("S", team.fixture.store());
    let txn = |snippet: &str| bash().run(&format!("$W --store $S txn -- sh -c '{snippet}'"));
    let refused = txn(late).failure();
    assert!(refused.stderr.contains("W035"), "{refused}");
    is_untouched(&team);
    // To open it for writing is not to read it.
    txn(&format!(": >> work/inbox/t-1.yaml; {late}")).failure();
    is_untouched(&team);
    txn("sed s/half/most/ work/inbox/t-1.yaml > work/assigned/bob/t-1.yaml &&
         rm work/inbox/t-1.yaml")
    .success();
    let text = fs::read_to_string(team.work(0).join("assigned/bob/t-1.yaml")).unwrap();
    assert!(text.contains("progress: most\n"), "{text}");
    team.fixture.fsck_clean();
}

// P1.3 P12.3
#[test]
fn a_former_owner_s_late_write_takes_no_record_whose_name_is_a_backup_s() {
    let team = ann_had_it_since(|team| mv(&team.work(1), "t-1", "assigned/bob", "inbox").unwrap());
    team.sh(2, "mv work/inbox/t-1.yaml work/inbox/t-1.yaml~").success();
    let late = team.sh(1, "cp $OUT/stale work/assigned/bob/t-1.yaml").failure();
    assert!(late.stderr.contains("Stale file handle"), "{late}");
    let over = "cp $OUT/stale work/assigned/bob/t-1.tmp
                mv work/assigned/bob/t-1.tmp work/assigned/bob/t-1.yaml";
    team.sh(1, over).failure();
    assert!(!team.work(0).join("assigned/bob/t-1.yaml").exists());
    team.sh(2, "mv work/inbox/t-1.yaml~ work/inbox/t-1.yaml").success();
    is_untouched(&team);
    team.fixture.fsck_clean();
}

// P3.4 P1.3
#[test]
fn a_draft_that_was_kept_stays_where_its_id_is_another_s_record_by_now() {
    let team = Team::of(&[("bob", ""), ("ann", "")]);
    let draft = "assigned/bob/t-1.yaml";
    team.sh(1, &format!("echo 'status: [' | dd of=work/{draft}; test -e work/{draft}")).success();
    team.fixture.task("inbox", &Task::new("t-1"));
    mv(&team.work(2), "t-1", "inbox", "assigned/ann").unwrap();
    let mended = Task::new("t-1").status("assigned").with("notes: mended\n").text();
    let saved = crate::harness::save(&team.work(1).join(draft), mended.as_bytes());
    assert_eq!(saved, Err(Errno::EXIST));
    assert_eq!(fs::read_to_string(team.work(1).join(draft)).unwrap(), mended);
    assert!(team.work(0).join("assigned/ann/t-1.yaml").exists());
    team.fixture.fsck_clean();
}
