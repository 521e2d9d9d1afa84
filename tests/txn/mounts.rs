//! Transactions while mounts come and go.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::harness::{Setup, left_out, until_polled};

/// Runs its end when it is dropped, also by a panic.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

// P13.2
#[test]
fn mounts_come_and_go_while_transactions_are_committed() {
    const FILES: usize = 100;
    let fixture = Setup::default().mounts(3).start();
    fixture.sh(&format!("mkdir d && for n in $(seq {FILES}); do echo x > d/$n; done")).success();
    let (coming, done) = (fixture.mount(2), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                fixture.workfs(&["unmount", coming.to_str().unwrap()]).success();
                fixture.mount_at(coming).success();
            }
        });
        let _done = Done(&done);
        for nth in 0..40 {
            let script = format!(
                "mkdir .workfs/txn/t && cd .workfs/txn/t
                 for n in $(seq {FILES}); do echo {nth} > d/$n; done
                 stat $OTHER/d/* > /dev/null && cd ../../.. && mv .workfs/txn/t .workfs/commit"
            );
            fixture.bash().with("OTHER", fixture.mount(1)).run(&script).success();
            let seen = fs::read_to_string(fixture.mount(1).join("d/1")).unwrap();
            assert_eq!(seen, format!("{nth}\n"));
        }
    });
    fixture.fsck_clean();
}

// P13.5
#[test]
fn forgotten_transactions_of_one_mount_are_in_no_others_way() {
    let fixture = Setup::default().mounts(2).start();
    fixture.sh("for n in $(seq 16); do mkdir .workfs/txn/t$n || exit 1; done").success();
    let txn = |mount: usize| {
        let mut command = fixture.command(&["txn", "--", "true"]);
        crate::harness::run(command.current_dir(fixture.mount(mount)))
    };
    let ran = txn(0).failure();
    assert_eq!(ran.code, 75, "{ran}");
    assert!(ran.stderr.contains("rmdir"), "{ran}");
    txn(1).success();
}

// P6.4 P13.4
#[test]
fn what_is_open_in_a_transaction_ends_with_its_mount() {
    if !rustix::process::geteuid().is_root() {
        return left_out("another user may not end a connection by force");
    }
    let fixture = Setup::default().mounts(2).start();
    let nodes = || fixture.workfs(&["fsck", "--json"]).success().json()["nodes"].as_u64().unwrap();
    let before = nodes();
    fixture.sh("echo x > a").success();
    let mount = fixture.mount(1);
    fs::create_dir(mount.join(".workfs/txn/t")).unwrap();
    let file = fs::File::open(mount.join(".workfs/txn/t/a")).unwrap();
    // The kernel tells of no file's end after that.
    Command::new("umount").arg("-f").arg(mount).status().unwrap();
    until_polled("the mount ends", || file.metadata().is_err().then_some(()));
    fixture.sh("rm a").success();
    until_polled("what nobody has is reclaimed", || (nodes() == before).then_some(()));
    drop(file);
    fixture.fsck_clean();
}
