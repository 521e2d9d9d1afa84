//! The file system that holds the store becomes read-only.

use std::fs;

use crate::harness::{Errno, Setup, Shell, Task, left_out, lies, needs, pile};

// P4.5
#[test]
fn a_store_gone_read_only_can_be_read_and_refuses_changes() {
    if !rustix::process::geteuid().is_root() {
        return left_out("making a file system needs root");
    }
    if !needs(&["mkfs.ext4", "losetup"]) {
        return;
    }
    let mut fixture = Setup::default().prepare();
    let base = fixture.base().to_owned();
    let disk = base.join("disk");
    fs::create_dir(&disk).unwrap();
    let make = "truncate -s 32M image && mkfs.ext4 -q image && mount -o loop,errors=remount-ro \\
                image disk && losetup -n -O NAME -j image";
    let made = Shell::bash(&base).run(make);
    if !made.ok() {
        return left_out(&format!("no loop device can be mounted here: {}", made.stderr.trim()));
    }
    let device = made.stdout.trim().trim_start_matches("/dev/").to_owned();
    fixture.set_store(disk.join("team.db"));
    fixture.mount_all();
    fixture.make_directories();
    let ids = fixture.tasks(10);

    // As the kernel does when it finds the file system damaged.
    let trigger = format!("/sys/fs/ext4/{device}/trigger_fs_error");
    if let Err(error) = fs::write(&trigger, b"a test\n") {
        return left_out(&format!("{trigger}: {error}"));
    }
    let task = fixture.work().join("inbox/t-0001.yaml");
    let error = fs::rename(&task, fixture.work().join("assigned/bob/t-0001.yaml")).unwrap_err();
    let errno = Errno::from_io_error(&error);
    assert!(matches!(errno, Some(Errno::IO | Errno::ROFS)), "{error}");
    assert!(fs::create_dir(fixture.path("dir")).is_err());
    assert!(fs::write(fixture.path("file"), b"x").is_err());
    for id in &ids {
        assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), id), "inbox");
    }
    fixture.workfs(&["list"]).success();

    // Mended and mounted anew, all of it is there.
    fixture.unmount_all();
    let mend = "umount disk && fsck.ext4 -fy image > fsck.log; mount -o loop image disk";
    Shell::bash(&base).run(mend).success();
    fixture.mount_all();
    fixture.sh("mv work/inbox/* work/assigned/bob/").success();
    for id in &ids {
        assert_eq!(lies(&fixture.work(), &pile(&fixture.work()), id), "assigned/bob");
    }
    fixture.fsck_clean();
}

// P4.5
#[test]
fn a_store_on_a_read_only_file_system_is_said_to_be_so() {
    if !rustix::process::geteuid().is_root() {
        return left_out("mounting needs root");
    }
    let fixture = Setup::default().start();
    fixture.task("inbox", &Task::new("t-1"));
    fixture.unmount_all();
    let base = fixture.base().to_owned();
    let shell = Shell::bash(&base);
    shell.run("mount --bind store store && mount -o remount,bind,ro store").success();
    let ran = fixture.mount_at(fixture.root());
    println!("{ran}");
    if ran.ok() {
        assert!(fixture.path("work/inbox/t-1.yaml").exists());
        assert!(fs::write(fixture.path("file"), b"x").is_err());
        fixture.unmount_all();
    } else {
        assert!(!ran.stderr.trim().is_empty());
    }
    Shell::bash(&base).run("umount store").success();
    fixture.mount_all();
    fixture.fsck_clean();
}
