//! Directories, large and changing.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::harness::{Fixture, Setup, Task};

fn names(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap();
    names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

// P7.3
#[test]
fn two_thousand_names_are_listed_once_each() {
    let fixture = Setup::default().mounts(2).start();
    let dir = fixture.path("scratchpad");
    fs::create_dir(&dir).unwrap();
    let wanted: BTreeSet<String> = (0..2000).map(|nth| format!("name-{nth}")).collect();
    for name in &wanted {
        fs::write(dir.join(name), b"").unwrap();
    }
    for mount in fixture.mounts() {
        let found = names(&mount.join("scratchpad"));
        assert_eq!(found.len(), 2000, "doubled or lost");
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), wanted);
    }
    assert_eq!(fixture.sh("ls -l scratchpad | wc -l").success().stdout, "2001\n");
    assert_eq!(fixture.sh("find scratchpad -type f | wc -l").success().stdout, "2000\n");
    fixture.sh("rm -r scratchpad").success();
    assert!(!dir.exists());
}

// P7.3
#[test]
fn what_stays_is_listed_once_while_others_come_and_go() {
    let fixture = Fixture::new();
    let dir = fixture.path("scratchpad");
    fs::create_dir(&dir).unwrap();
    for nth in 0..400 {
        fs::write(dir.join(format!("stays-{nth}")), b"").unwrap();
    }
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..300 {
                let path = dir.join(format!("goes-{}", round % 7));
                fs::write(&path, b"").unwrap();
                fs::rename(&path, dir.join("came")).unwrap();
                fs::remove_file(dir.join("came")).unwrap();
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        while !done.load(std::sync::atomic::Ordering::Relaxed) {
            let mut stays: Vec<_> =
                names(&dir).into_iter().filter(|name| name.starts_with("stays")).collect();
            assert_eq!(stays.len(), 400);
            stays.sort();
            stays.dedup();
            assert_eq!(stays.len(), 400);
        }
    });
}

// P7.3
#[test]
fn a_lane_lists_each_record_once_while_claims_go_on() {
    let fixture = Fixture::new();
    let ids = fixture.tasks(100);
    std::thread::scope(|scope| {
        let claims = scope.spawn(|| {
            for id in &ids {
                let from = fixture.work().join(format!("inbox/{id}.yaml"));
                fs::rename(from, fixture.work().join(format!("assigned/bob/{id}.yaml"))).unwrap();
            }
        });
        while !claims.is_finished() {
            for dir in ["inbox", "assigned/bob"] {
                let found = names(&fixture.work().join(dir));
                let once: BTreeSet<_> = found.iter().collect();
                assert_eq!(once.len(), found.len(), "{dir} lists a record twice");
            }
        }
    });
    assert_eq!(names(&fixture.work().join("assigned/bob")).len(), 100);
    assert!(names(&fixture.work().join("inbox")).is_empty());
}

// P7.3
#[test]
fn hidden_names_are_not_walked_into() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    let found = fixture.sh("find work | sort").success().stdout;
    assert!(!found.contains(".why") && !found.contains(".next"), "{found}");
    let found = fixture.sh("grep -rl 'end_of: t-1' . 2>/dev/null").success().stdout;
    assert!(found.contains("work/inbox/t-1.yaml"), "{found}");
}

fn touch_back(dir: &Path) {
    let status = std::process::Command::new("touch").args(["-d", "@5"]).arg(dir).status().unwrap();
    assert!(status.success());
}

// P7.4
#[test]
fn a_listing_that_a_kernel_kept_goes_when_another_mount_changes_the_directory() {
    let fixture = Setup::default().mounts(2).start();
    let [here, there] = [0, 1].map(|nth| fixture.mount(nth).join("scratchpad"));
    fs::create_dir(&here).unwrap();
    for round in 0..50 {
        // Its time is the same each time: that alone must not be what the kernel goes by.
        touch_back(&here);
        assert_eq!(names(&there).len(), round, "{round}");
        assert_eq!(names(&there).len(), round, "{round}");
        fs::write(here.join(format!("f{round}")), b"").unwrap();
        touch_back(&here);
        assert_eq!(names(&there).len(), round + 1, "{round}");
        fs::rename(there.join(format!("f{round}")), there.join(format!("g{round}"))).unwrap();
        assert!(names(&here).contains(&format!("g{round}")), "{round}");
    }
}

// P7.3
#[test]
fn who_goes_over_from_a_kept_listing_to_a_new_one_has_each_name_once() {
    let fixture = Setup::default().mounts(2).start();
    let [here, there] = [0, 1].map(|nth| fixture.mount(nth).join("scratchpad"));
    fs::create_dir(&here).unwrap();
    // Long names, so that a listing takes several calls.
    let long = "x".repeat(200);
    let wanted: BTreeSet<String> = (0..500).map(|nth| format!("stays-{nth}-{long}")).collect();
    for name in &wanted {
        fs::write(here.join(name), b"").unwrap();
    }
    for round in 0..20 {
        assert_eq!(names(&here).iter().filter(|name| name.starts_with("stays")).count(), 500);
        let mut reader = fs::read_dir(&here).unwrap();
        let mut found: Vec<String> = Vec::new();
        let changes = if round % 2 == 0 { &here } else { &there };
        for step in 0.. {
            let Some(entry) = reader.next() else { break };
            found.push(entry.unwrap().file_name().into_string().unwrap());
            if step == 50 {
                fs::write(changes.join(format!("comes-{round}")), b"").unwrap();
                let _ = fs::remove_file(changes.join(format!("comes-{}", round / 2)));
            }
        }
        found.retain(|name| name.starts_with("stays"));
        assert_eq!(found.len(), 500, "{round}: doubled or lost");
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), wanted, "{round}");
    }
}

// P7.3
#[test]
fn who_goes_back_to_a_place_in_a_listing_misses_no_name_that_stayed() {
    let fixture = Fixture::new();
    for many in [300, 3000] {
        let dir = fixture.path(&format!("scratchpad-{many}"));
        fs::create_dir(&dir).unwrap();
        for nth in 0..many {
            fs::write(dir.join(format!("n{nth:04}")), b"").unwrap();
        }
        // The libc's own: Rust has no seekdir.
        let path = std::ffi::CString::new(dir.to_str().unwrap()).unwrap();
        // SAFETY: the path ends with NUL; the stream is used and closed below, by this thread alone.
        let stream = unsafe { libc::opendir(path.as_ptr()) };
        assert!(!stream.is_null());
        let next = || {
            // SAFETY: the stream is open; an entry is valid until the next call.
            let name = unsafe {
                let entry = libc::readdir(stream);
                if entry.is_null() {
                    return None;
                }
                std::ffi::CStr::from_ptr((*entry).d_name.as_ptr())
            };
            Some(name.to_str().unwrap().to_owned())
        };
        let first: Vec<String> = (0..many / 2).map_while(|_| next()).collect();
        // SAFETY: the stream is open.
        let place = unsafe { libc::telldir(stream) };
        let mut rest: Vec<String> = (0..many / 4).map_while(|_| next()).collect();
        // SAFETY: the stream is open.
        let later = unsafe { libc::telldir(stream) };
        rest.extend(std::iter::from_fn(next));
        // Those that come before the place go, and some after it.
        let mut stay: BTreeSet<String> = rest.iter().cloned().collect();
        for name in first.iter().filter(|name| !name.starts_with('.')) {
            fs::remove_file(dir.join(name)).unwrap();
        }
        for name in rest.iter().step_by(7) {
            fs::remove_file(dir.join(name)).unwrap();
            stay.remove(name);
        }
        // SAFETY: the stream is open, and the place is one of it.
        unsafe { libc::seekdir(stream, place) };
        // Forward again to a place from before: it is where it was.
        let some = (0..5).map_while(|_| next()).count();
        assert_eq!(some, 5);
        // SAFETY: the stream is open, and both places are of it.
        let after = unsafe {
            libc::seekdir(stream, later);
            next()
        };
        assert!(
            after.is_some_and(|after| rest[many / 4..many / 4 + 20].contains(&after)),
            "{many}"
        );
        // SAFETY: as above.
        unsafe { libc::seekdir(stream, place) };
        let again: Vec<String> = std::iter::from_fn(next).collect();
        // SAFETY: the stream is open, and not used any more.
        unsafe { libc::closedir(stream) };
        let found: BTreeSet<String> = again.iter().cloned().collect();
        assert_eq!(found.len(), again.len(), "{many}: doubled");
        // Those that went after the directory was opened may be listed or not.
        assert!(found.is_superset(&stay), "{many}: {} lost", stay.difference(&found).count());
        assert!(found.is_subset(&rest.into_iter().collect()), "{many}");
    }
}

// P7.3
#[test]
fn every_place_of_a_listing_stays_good_in_whatever_order_it_is_gone_to() {
    const NAMES: usize = 3000;
    let fixture = Fixture::new();
    let dir = fixture.path("scratchpad-many");
    fs::create_dir(&dir).unwrap();
    for nth in 0..NAMES {
        fs::write(dir.join(format!("n{nth:04}")), b"").unwrap();
    }
    let path = std::ffi::CString::new(dir.to_str().unwrap()).unwrap();
    // SAFETY: the path ends with NUL; the stream is used and closed below, by this thread alone; an entry
    // is read before the next call; the places are of this stream.
    unsafe {
        let stream = libc::opendir(path.as_ptr());
        assert!(!stream.is_null());
        let next = || {
            let entry = libc::readdir(stream);
            if entry.is_null() {
                return None;
            }
            let name = std::ffi::CStr::from_ptr((*entry).d_name.as_ptr());
            Some(name.to_str().unwrap().to_owned())
        };
        let places = std::iter::from_fn(|| {
            let place = libc::telldir(stream);
            next().map(|name| (place, name))
        });
        let places: Vec<_> = places.collect();
        assert_eq!(places.len(), NAMES + 2);
        for nth in 0..400 {
            let (place, name) = &places[nth * 7919 % places.len()];
            libc::seekdir(stream, *place);
            assert_eq!(next().as_ref(), Some(name), "the {nth}th");
        }
        libc::closedir(stream);
    }
}
