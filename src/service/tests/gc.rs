//! gc that is interrupted.

use super::*;
use crate::engine::Rename;
use crate::names::Dentry;

// P11.9
#[test]
fn who_goes_away_stops_it_and_the_next_goes_on() {
    let bench = Bench::new();
    for part in ["info", "progress"] {
        bench.mkdir(&format!("scratchpad/{part}/001"));
        // More than two changes of `gc` remove; some sort before and some after what tells the status.
        for nth in 0..300 {
            bench.save(&format!("scratchpad/{part}/001/a{nth}"), "1");
            bench.save(&format!("scratchpad/{part}/001/x{nth}"), "1");
        }
    }
    bench.save("scratchpad/info/001/project.yaml", "status: completed\n");
    let status = vec!["completed".to_owned()];
    let args = GcArgs { status, delete: true, older_than_s: 0, agent: None };
    let mut rounds = 0;
    while bench.node("scratchpad/info/001").is_some() {
        assert!(bench.node("scratchpad/info/001/project.yaml").is_some(), "round {rounds}");
        let mut told = 0;
        dispatch(&bench.service, &bench.caller(), Request::Gc(args.clone()), &mut |reply| {
            told += u64::from(matches!(&reply, Reply::Progress { what, .. } if what == "changes"));
            // Each time the first past is let go of, then some names.
            told < 3
        });
        assert!(told <= 3, "{told}");
        rounds += 1;
        assert!(rounds < 100);
    }
    assert!(rounds > 3, "{rounds}");
    bench.clean();
}

// P11.9
#[test]
fn what_is_made_active_while_it_goes_keeps_what_it_still_has() {
    let bench = Bench::new();
    for id in ["001", "002"] {
        for part in ["info", "progress"] {
            bench.mkdir(&format!("scratchpad/{part}/{id}"));
        }
        for nth in 0..600 {
            bench.save(&format!("scratchpad/progress/{id}/{nth}"), "1");
        }
        bench.save(&format!("scratchpad/info/{id}/project.yaml"), "status: completed\n");
    }
    let status = vec!["completed".to_owned()];
    let args = GcArgs { status, delete: true, older_than_s: 0, agent: None };
    let left = |id: &str| {
        let places = 0..600;
        places
            .filter(|nth| bench.node(&format!("scratchpad/progress/{id}/{nth}")).is_some())
            .count()
    };
    let (mut report, mut has_thought_better) = (None, false);
    dispatch(&bench.service, &bench.caller(), Request::Gc(args), &mut |reply| {
        match reply {
            Reply::Progress { .. } if !has_thought_better && left("001") < 600 => {
                bench.save("scratchpad/info/001/project.yaml", "status: active\n");
                has_thought_better = true;
            }
            Reply::Report(done) => report = Some(*done),
            Reply::Error(failure) => panic!("{failure:?}"),
            _ => {}
        }
        true
    });
    let Some(Report::Gc(report)) = report else { panic!("{report:?}") };
    let told: Vec<_> = report.projects.iter().map(|one| (one.goes, one.stopped)).collect();
    assert_eq!(told, [(false, true), (true, false)], "{report:?}");
    assert!(
        report.human().contains("001  its status was written anew while it went"),
        "{report:?}"
    );
    assert!((1..600).contains(&left("001")), "{}", left("001"));
    assert!(bench.node("scratchpad/progress/002").is_none());
    bench.clean();
}

// P11.9
#[test]
fn what_becomes_a_record_or_its_backup_while_it_goes_stays() {
    let layout = "workspaces: [{ path: 'scratchpad/progress/*/work', kind: task }]\n\
                  files: [{ path: 'scratchpad/**' }]\n";
    for is_parked in [false, true] {
        let bench = Bench::with(Config::parse("layout", layout).unwrap());
        for part in ["info", "progress"] {
            bench.mkdir(&format!("scratchpad/{part}/001"));
        }
        bench.mkdir("scratchpad/progress/001/work/inbox");
        for nth in 0..600 {
            bench.save(&format!("scratchpad/progress/001/{nth}"), "1");
        }
        bench.save("scratchpad/info/001/project.yaml", "status: completed\n");
        let status = vec!["completed".to_owned()];
        let args = GcArgs { status, delete: true, older_than_s: 0, agent: None };
        let inbox = "scratchpad/progress/001/work/inbox";
        let mut is_there = false;
        dispatch(&bench.service, &bench.caller(), Request::Gc(args), &mut |reply| {
            let has_begun = || bench.node("scratchpad/progress/001/0").is_none();
            if !is_there && matches!(reply, Reply::Progress { .. }) && has_begun() {
                bench.save(&format!("{inbox}/t-1.yaml"), "status: new\n");
                if is_parked {
                    let dir = bench.node(inbox).unwrap().ino;
                    let at = |name: &str| Dentry::of(dir, FileName::new(name).unwrap());
                    let rename = Rename::to_free(at("t-1.yaml"), at("t-1.yaml~"));
                    bench.service.engine.run(bench.context(), rename).unwrap();
                }
                is_there = true;
            }
            true
        });
        assert!(is_there);
        let file = if is_parked { "t-1.yaml~" } else { "t-1.yaml" };
        assert!(bench.node(&format!("{inbox}/{file}")).is_some(), "{is_parked}");
        let listed = bench.list(ListArgs::default());
        assert_eq!(listed.iter().map(|row| &*row.id).collect::<Vec<_>>(), ["t-1"], "{is_parked}");
        bench.clean();
    }
}
