//! What goes on beside something else.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

/// Does `again` for each of `who` in a thread of its own, over and over and at least once, for as long
/// as `meanwhile` takes. Where one panics the test fails, and nothing goes on.
pub fn over_and_over<W: Sync>(who: &[W], again: impl Fn(&W) + Sync, meanwhile: impl FnOnce()) {
    let (stop, again) = (AtomicBool::new(false), &again);
    std::thread::scope(|scope| {
        for one in who {
            let stop = &stop;
            scope.spawn(move || {
                loop {
                    again(one);
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        let done = catch_unwind(AssertUnwindSafe(meanwhile));
        stop.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|panic| resume_unwind(panic));
    });
}
