//! A disk that has little room, though not none, when a daemon starts.

use std::fs;

use crate::disk::small_disk;
use crate::harness::Setup;

// P4.3
#[test]
fn with_room_for_one_of_a_store_s_two_files_names_can_be_removed() {
    let mut fixture = Setup::default().prepare();
    let Some(disk) = small_disk(fixture.base(), "24m") else { return };
    fixture.set_store(disk.join("team.db"));
    fixture.mount_all();
    fixture.make_directories();
    let mut ids = fixture.tasks(90).into_iter();
    fixture.unmount_all();
    fixture.await_no_daemon();
    let ballast = disk.join("ballast");
    // About what the main file takes ahead, and about what the log does.
    for left in [600, 1100, 2060, 2080, 2100, 2116, 2200, 2600, 4000] {
        let free = rustix::fs::statvfs(&disk).unwrap();
        let free = free.f_bavail * free.f_frsize;
        fs::write(&ballast, vec![1; (free - (left << 10)) as usize]).unwrap();
        fixture.mount_all();
        for id in ids.by_ref().take(10) {
            let path = fixture.work().join(format!("inbox/{id}.yaml"));
            fs::remove_file(&path).unwrap_or_else(|error| panic!("{left}: {id}: {error}"));
        }
        fixture.unmount_all();
        fixture.await_no_daemon();
        fs::remove_file(&ballast).unwrap();
    }
    assert!(ids.next().is_none());
    fixture.mount_all();
    fixture.fsck_clean();
}
