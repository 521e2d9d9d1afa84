//! `log` and `watch` over a long past of which nothing is wanted: whoever asks is not forgotten over it.

use std::time::{Duration, Instant};

use super::*;
use crate::numbers::G;

/// A store with more events than are read at once, the last of a directory, and how many.
fn bench() -> (Bench, G) {
    let bench = Bench::new();
    bench.mkdir("work/inbox");
    for round in 0..1_100 {
        bench.save("work/inbox/a.yaml", &format!("status: new\ntitle: round {round}\n"));
    }
    bench.mkdir("work/other");
    let all = bench.lines(LogArgs::default()).len();
    assert!(all > 1_100);
    (bench, G(all as u64))
}

fn watch(timeout_s: Option<u64>) -> Request {
    let (glob, since) = ("none/**".to_owned(), Some(G(0)));
    Request::Watch(WatchArgs { glob, timeout_s, count: None, since, json: false })
}

/// What whoever asks for that is told in the end, who is gone when `hears` says no.
fn told(bench: &Bench, request: Request, mut hears: impl FnMut(&Reply) -> bool) -> Report {
    let mut last = None;
    dispatch(&bench.service, &bench.caller(), request, &mut |reply| {
        let goes_on = hears(&reply);
        last = Some(reply);
        goes_on
    });
    let Some(Reply::Report(report)) = last else { panic!("{last:?}") };
    *report
}

#[test]
fn who_is_gone_ends_it() {
    let (bench, all) = bench();
    // The first is before anything was read.
    let mut asked = 0;
    let is_gone = |reply: &Reply| {
        asked += u64::from(*reply == Reply::Idle);
        asked < 2
    };
    let Report::Watch(report) = told(&bench, watch(None), is_gone) else { panic!() };
    assert!(!report.timed_out && report.last_g < all, "{report:?} of {all}");
    for limit in [None, Some(1_000)] {
        let args = LogArgs { what: Some("work/other".into()), limit, ..LogArgs::default() };
        let Report::Log(report) = told(&bench, Request::Log(args), |_| false) else { panic!() };
        assert!(report.events == 0 && report.last_g < all, "{limit:?}: {report:?} of {all}");
    }
}

#[test]
fn a_watch_ends_when_its_time_is_over_and_without_any_when_all_was_read() {
    let (bench, all) = bench();
    let (begin, time) = (Instant::now(), Duration::from_millis(1_500));
    let tarries = |_: &Reply| {
        while let Some(left) = time.checked_sub(begin.elapsed()).filter(|left| !left.is_zero()) {
            std::thread::park_timeout(left);
        }
        true
    };
    let Report::Watch(report) = told(&bench, watch(Some(1)), tarries) else { panic!() };
    assert!(report.timed_out && report.last_g < all, "{report:?} of {all}");
    let Report::Watch(report) = told(&bench, watch(Some(0)), |_| true) else { panic!() };
    assert!(report.timed_out && report.last_g == all, "{report:?} of {all}");
}
