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
