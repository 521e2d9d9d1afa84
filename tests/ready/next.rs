//! The links called `.next`, and `ready/`: what a kernel keeps of them, and that they are told as they are all the same.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::harness::{Fixture, Setup};

fn claim(mount: &Path, lane: &str) -> io::Result<PathBuf> {
    let to = mount.join("work/assigned").join(lane).join(".next");
    fs::rename(mount.join("work/ready/.next"), &to)?;
    fs::read_link(to)
}

/// How many look-ups there were.
fn look_ups(fixture: &Fixture) -> u64 {
    let metrics = fixture.workfs(&["status", "--metrics"]).success().stdout;
    let name = "workfs_request_seconds_count{operation=\"lookup\"} ";
    metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap().parse().unwrap()
}

// P9.6
#[test]
fn who_claims_one_record_after_the_other_looks_up_two_names_for_each() {
    const CLAIMS: u64 = 20;
    let fixture = Setup::default().lanes(["bob"]).start();
    fixture.tasks(CLAIMS as usize + 1);
    let [from, to] = ["ready", "assigned/bob"].map(|dir| fixture.work().join(dir).join(".next"));
    fs::rename(&from, &to).unwrap();
    let before = look_ups(&fixture);
    (0..CLAIMS).for_each(|_| fs::rename(&from, &to).unwrap());
    let all = look_ups(&fixture) - before;
    // Both links; and `ready` once a second, of which a busy machine may take some.
    assert!(all < 5 * CLAIMS / 2, "{all}");
    assert_eq!(fs::rename(&from, &to).unwrap_err().kind(), io::ErrorKind::NotFound);
    fixture.fsck_clean();
}

// P9.5 P7.5
#[test]
fn where_no_workspace_is_any_more_ready_is_gone_at_once() {
    let fixture = Setup::default().mounts(2).start();
    fixture.tasks(1);
    let is_there = |dir: &str| {
        fixture.mounts().iter().all(|mount| {
            let ready = mount.join(dir).join("ready");
            let there =
                [ready.exists(), fs::read_dir(&ready).is_ok(), ready.join(".next").exists()];
            assert!(there.iter().all(|one| *one == there[0]), "{there:?}");
            there[0]
        })
    };
    assert!(is_there("work"));
    fixture.sh("mkdir work/collaboration && mkdir work/collaboration/inbox; echo 'title: x' > work/collaboration/inbox/c.yaml")
        .success();
    assert!(is_there("work/collaboration"));
    fixture.sh("rm -r work/collaboration").success();
    assert!(!is_there("work/collaboration") && is_there("work"));
    fixture.fsck_clean();
}

// P9.6
#[test]
fn a_link_leads_where_it_should_at_every_moment_through_every_mount() {
    let fixture = Setup::default().mounts(2).lanes(["ann", "bob"]).start();
    let ids = fixture.tasks(4);
    let (here, there) = (fixture.mount(0), fixture.mount(1));
    let is_gone = |path: &Path| {
        let gone = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
        fs::symlink_metadata(path).is_err_and(gone) && fs::read_link(path).is_err_and(gone)
    };
    let leads = |mount: &Path, lane: &str, to: &Path| {
        let link = mount.join("work").join(lane).join(".next");
        assert_eq!(fs::read_link(&link).unwrap(), to, "{}", link.display());
        let told = fs::symlink_metadata(&link).unwrap();
        assert_eq!(told.size() as usize, to.as_os_str().len());
    };
    let first = claim(here, "bob").unwrap();
    let second = claim(there, "ann").unwrap();
    assert_ne!(first, second);
    for mount in [here, there] {
        leads(mount, "assigned/bob", &first);
        leads(mount, "assigned/ann", &second);
    }
    let next = fs::read_link(there.join("work/ready/.next")).unwrap();
    leads(here, "ready", &next);
    // What came by it last is replaced, through any mount.
    assert_eq!(claim(there, "bob").unwrap(), next);
    leads(here, "assigned/bob", &next);
    // It goes with the record, and with its own removal.
    fs::rename(there.join("work/assigned/bob").join(&next), there.join("work/inbox").join(&next))
        .unwrap();
    assert!([here, there].iter().all(|mount| is_gone(&mount.join("work/assigned/bob/.next"))));
    leads(there, "ready", &next);
    fs::remove_file(here.join("work/assigned/ann/.next")).unwrap();
    assert!([here, there].iter().all(|mount| is_gone(&mount.join("work/assigned/ann/.next"))));
    // Over a link that a kernel remembers a claim is made, too.
    assert_eq!(claim(here, "bob").unwrap(), next);
    claim(here, "bob").unwrap();
    assert!([here, there].iter().all(|mount| is_gone(&mount.join("work/ready/.next"))));
    assert_eq!(ids.len(), 4);
    fixture.fsck_clean();
}

// P9.6
#[test]
fn who_wants_no_link_replaced_is_heard() {
    let fixture = Setup::default().lanes(["ann", "bob"]).start();
    fixture.tasks(3);
    let claim = |lane: &str| {
        let [from, to] = ["ready", lane].map(|dir| fixture.work().join(dir).join(".next"));
        renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)
    };
    claim("assigned/bob").unwrap();
    assert_eq!(claim("assigned/bob"), Err(rustix::io::Errno::EXIST));
    claim("assigned/ann").unwrap();
    fixture.sh("mv work/ready/.next work/assigned/bob/").success();
    fixture.fsck_clean();
}
