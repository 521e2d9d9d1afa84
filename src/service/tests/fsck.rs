//! fsck that is interrupted.

use super::*;

// P5.2
#[test]
fn who_goes_away_hears_how_far_it_came_and_neither_that_it_is_clean_nor_a_hash() {
    let bench = Bench::new();
    bench.mkdir("scratchpad");
    // More events and more nodes than lie between two replies about progress.
    for nth in 0..1100 {
        bench.save(&format!("scratchpad/f{nth}"), "1");
    }
    for until in ["events", "nodes"] {
        let mut last = None;
        dispatch(&bench.service, &bench.caller(), Request::Fsck, &mut |reply| {
            let goes_on = !matches!(&reply, Reply::Progress { what, .. } if what == until);
            last = Some(reply);
            goes_on
        });
        let Some(Reply::Report(report)) = last else { panic!("{last:?}") };
        let said = report.human();
        assert!(said.starts_with("interrupted at "), "{said}");
        let rest = format!(" {until}, the rest was not checked: no problem so far: ");
        assert!(said.contains(&rest), "{said}");
        assert!(!said.contains("clean") && !said.contains("hash"), "{said}");
        assert!(report.is_cut_short() && report.exit() == Exit::Problems, "{said}");
    }
    let whole = bench.clean();
    assert!(whole.human().starts_with("clean: ") && whole.human().contains(&whole.last_hash));
}
