//! What happens behind the kernel's back: invalidations, held replies, panics.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use workfs_mount::{Caching, Ino, Invalidation, NodeType, ROOT};

use crate::support::{PATIENCE, Served, errno, until};

#[test]
fn a_name_removed_behind_the_kernel_is_gone_once_invalidated() {
    let served = Served::new();
    fs::write(served.path("a"), "").unwrap();
    let child = Ino(fs::metadata(served.path("a")).unwrap().ino());
    served.tree.state().take(ROOT, b"a").unwrap();
    assert!(served.path("a").exists(), "the name is cached");
    served.mount.invalidate([&Invalidation::Entry { parent: ROOT, name: b"a".to_vec(), child }]);
    until("the name is gone", || !served.path("a").exists());
}

#[test]
fn attributes_are_fresh_as_soon_as_invalidate_returns() {
    let served = Served::new();
    fs::write(served.path("a"), "x").unwrap();
    let ino = fs::metadata(served.path("a")).unwrap().ino();
    served.tree.state().resize(Ino(ino), 77).unwrap();
    assert_eq!(fs::metadata(served.path("a")).unwrap().len(), 1, "the size is cached");
    served.mount.invalidate([&Invalidation::Attr(Ino(ino))]);
    assert_eq!(fs::metadata(served.path("a")).unwrap().len(), 77);
}

type Ask = fn(&Path);

/// Ways in which a kernel comes to know something (again).
const ASKED: [(&str, Ask); 4] = [
    ("it was not", |_| ()),
    ("by getattr", |path| assert!(path.metadata().is_ok())),
    ("by setattr", |path| fs::set_permissions(path, Permissions::from_mode(0o640)).unwrap()),
    ("by a listing", |path| {
        let entries = fs::read_dir(path.parent().unwrap()).unwrap();
        assert!(entries.flatten().all(|entry| entry.metadata().is_ok()));
    }),
];

#[test]
fn attributes_that_change_again_are_fresh_however_the_kernel_was_told_of_them() {
    let served = Served::new();
    fs::write(served.path("a"), "").unwrap();
    let ino = Ino(fs::metadata(served.path("a")).unwrap().ino());
    let mut size = 0;
    let mut change = || {
        size += 1;
        served.tree.state().resize(ino, size).unwrap();
        served.mount.invalidate([&Invalidation::Attr(ino)]);
        size as u64
    };
    for (how, ask) in ASKED.repeat(3) {
        change();
        change();
        ask(&served.path("a"));
        let size = change();
        assert_eq!(fs::metadata(served.path("a")).unwrap().len(), size, "{how}");
    }
}

#[test]
fn a_name_that_goes_again_is_gone_however_the_kernel_was_told_of_it() {
    let served = Served::new();
    fs::write(served.path("a"), "").unwrap();
    fs::write(served.path("other"), "").unwrap();
    let [child, other] =
        ["a", "other"].map(|name| Ino(fs::metadata(served.path(name)).unwrap().ino()));
    let goes = |name: &[u8], child| {
        let entry = Invalidation::Entry { parent: ROOT, name: name.to_vec(), child };
        served.mount.invalidate([&entry]);
    };
    for (how, ask) in ASKED.repeat(3) {
        served.tree.state().take(ROOT, b"a").unwrap();
        goes(b"a", child);
        until(how, || !served.path("a").exists());
        served.tree.state().put(ROOT, b"a", child);
        ask(&served.path("a"));
        // Of all names it is the same: this one did not go, and its notice changes nothing.
        goes(b"other", other);
        ask(&served.path("a"));
    }
}

#[test]
fn names_are_forgotten_once_more_when_a_listing_ends_during_which_some_were() {
    let served = Served::new();
    fs::write(served.path("a"), "").unwrap();
    let child = Ino(fs::metadata(served.path("a")).unwrap().ino());
    let mut listing = fs::read_dir(served.path("")).unwrap();
    assert!(listing.next().is_some());
    served.mount.invalidate([&Invalidation::Entry { parent: ROOT, name: b"b".to_vec(), child }]);
    // As if the listing had brought it after that.
    assert!(served.path("a").exists());
    served.tree.state().take(ROOT, b"a").unwrap();
    assert!(served.path("a").exists(), "the name is cached");
    drop(listing);
    until("the name is gone", || !served.path("a").exists());
}

#[test]
fn names_that_a_listing_of_a_restless_directory_tells_are_asked_for_again() {
    let list = |served: &Served| fs::read_dir(served.path("")).unwrap().count();
    for is_restless in [false, true] {
        let served = Served::new();
        fs::write(served.path("a"), "").unwrap();
        if is_restless {
            served.mount.invalidate([&Invalidation::Restless(ROOT)]);
        }
        assert_eq!(list(&served), 1);
        served.tree.state().take(ROOT, b"a").unwrap();
        assert_eq!(served.path("a").exists(), !is_restless);
    }
}

#[test]
fn a_listing_that_breaks_off_tells_what_it_has_and_then_fails() {
    let served = Served::new();
    for name in ["a", "b", "c"] {
        std::fs::write(served.path(name), b"x").unwrap();
    }
    {
        let mut state = served.tree.state();
        let entries = &state.nodes[&ROOT].entries;
        let b = entries.values().find(|(name, _)| name == b"b").unwrap().1;
        state.nodes.remove(&b);
    }
    let listed = std::fs::read_dir(served.mount.dir()).unwrap();
    let told: Vec<_> = listed.take(2).map(|entry| entry.map(|entry| entry.file_name())).collect();
    assert_eq!(told[0].as_ref().unwrap(), "a", "what was noted as told is told");
    let failed = told[1].as_ref().unwrap_err();
    assert_eq!(failed.raw_os_error(), Some(libc::EIO));
}

#[test]
fn kept_pages_are_fresh_once_invalidated() {
    let served = Served::new();
    *served.tree.caching.lock() = Caching::KeepCache;
    fs::write(served.path("a"), "old").unwrap();
    assert_eq!(fs::read_to_string(served.path("a")).unwrap(), "old");
    let ino = Ino(fs::metadata(served.path("a")).unwrap().ino());
    {
        let mut state = served.tree.state();
        let node = state.node(ino).unwrap();
        node.data = b"new".to_vec();
        node.attr.mtime_ns += 1;
    }
    assert_eq!(fs::read_to_string(served.path("a")).unwrap(), "old", "the page is cached");
    served.mount.invalidate([&Invalidation::Attr(ino)]);
    assert_eq!(fs::read_to_string(served.path("a")).unwrap(), "new");
}

#[test]
fn a_size_that_changed_never_shows_an_old_page() {
    let served = Served::new();
    *served.tree.caching.lock() = Caching::KeepCache;
    fs::write(served.path("a"), "old").unwrap();
    assert_eq!(fs::read_to_string(served.path("a")).unwrap(), "old");
    let ino = Ino(fs::metadata(served.path("a")).unwrap().ino());
    {
        let mut state = served.tree.state();
        state.resize(ino, 7).unwrap();
        state.node(ino).unwrap().data = b"new one".to_vec();
    }
    // Attributes overtake data: without the pages' own invalidation there must be no NULs.
    served.mount.invalidate([&Invalidation::Attr(ino)]);
    assert_eq!(fs::metadata(served.path("a")).unwrap().len(), 7);
    assert_eq!(fs::read_to_string(served.path("a")).unwrap(), "new one");
}

#[test]
fn neither_a_held_reply_nor_a_blocked_invalidation_blocks_anyone_else() {
    let served = Served::new();
    fs::create_dir(served.path("d")).unwrap();
    fs::write(served.path("d/held"), "").unwrap();
    fs::write(served.path("other"), "x").unwrap();
    let directory = Ino(fs::metadata(served.path("d")).unwrap().ino());
    let held = served.path("d/held");
    let remover = std::thread::spawn(move || fs::remove_file(held));
    let answer = served.tree.held.recv_timeout(PATIENCE).unwrap();
    // The kernel holds the directory's lock until the removal is answered.
    for number in 0..1000 {
        let name = format!("n{number}").into_bytes();
        // Any inode that the kernel knows makes the notice leave.
        let child = directory;
        served.mount.invalidate([&Invalidation::Entry { parent: directory, name, child }]);
    }
    let name = b"held".to_vec();
    let child = directory;
    served.mount.invalidate([&Invalidation::Entry { parent: directory, name, child }]);
    served.mount.invalidate([&Invalidation::Attr(directory)]);
    assert_eq!(fs::read_to_string(served.path("other")).unwrap(), "x");
    assert!(!remover.is_finished());
    answer();
    remover.join().unwrap().unwrap();
    assert_eq!(errno(fs::metadata(served.path("d/held"))), libc::ENOENT);
}

#[test]
fn a_panic_answers_eio_and_the_mount_lives_on() {
    let served = Served::new();
    for _ in 0..5 {
        assert_eq!(errno(fs::metadata(served.path("panic"))), libc::EIO);
    }
    // With the reply in its hands.
    for _ in 0..5 {
        assert_eq!(errno(fs::File::create(served.path("boom"))), libc::EIO);
        assert_eq!(errno(fs::create_dir(served.path("boom"))), libc::EIO);
    }
    let mut state = served.tree.state();
    let ino = state.make(ROOT, NodeType::File, 0o600);
    state.put(ROOT, b"boom", ino);
    drop(state);
    assert_eq!(errno(fs::remove_file(served.path("boom"))), libc::EIO);
    fs::write(served.path("after"), "lives").unwrap();
    assert_eq!(fs::read_to_string(served.path("after")).unwrap(), "lives");
    assert!(!served.mount.has_ended());
}
