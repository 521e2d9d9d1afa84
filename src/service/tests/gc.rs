//! gc that is interrupted.

use super::*;

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
