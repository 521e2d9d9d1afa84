//! Quotas of directories at the top: kept at every way of filling one, told, and given back.

use rustix::fs::{CWD, RenameFlags};

use crate::harness::{Fixture, Setup, python};

const LAYOUT: &str = "
workspaces:
  - { path: work, kind: task }
quotas:
  - { path: scratchpad, bytes: 1MiB }
  - { path: 'team-*', inodes: 10 }
";

fn quota(fixture: &Fixture, dir: &str) -> (u64, u64) {
    let status = fixture.workfs(&["status", "--json"]).success().json();
    let all = status["quotas"].as_array().unwrap();
    let one = all.iter().find(|one| one["path"] == dir).unwrap();
    (one["bytes"].as_u64().unwrap(), one["inodes"].as_u64().unwrap())
}

// P11.11
#[test]
fn a_full_directory_refuses_bytes_and_takes_them_again_when_some_are_gone() {
    let fixture = Setup::default().layout(LAYOUT).start();
    let full = fixture.sh("head -c 3000000 /dev/zero > scratchpad/big");
    assert!(full.stderr.contains("quota"), "{full}");
    let kept = quota(&fixture, "scratchpad").0;
    assert!(kept <= 1 << 20, "{kept}");
    let why = fixture.sh("cat .workfs/why").success().stdout;
    assert!(why.contains("write scratchpad/big EDQUOT [W043"), "{why}");
    assert!(why.contains("`workfs gc` tells of old projects"), "{why}");
    fixture.sh("head -c 3000000 /dev/zero > elsewhere").success();
    let moved = fixture.sh("mv -T elsewhere scratchpad/big");
    assert!(moved.stderr.contains("quota"), "{moved}");
    fixture.sh("rm scratchpad/big; printf 1234 > scratchpad/small").success();
    assert_eq!(quota(&fixture, "scratchpad").0, 4);
    // Holes are free.
    fixture.sh("truncate -s 1G scratchpad/sparse").success();
    let free = fixture.sh("df --output=size,avail -B1 scratchpad | tail -1").success().stdout;
    let free: Vec<u64> = free.split_whitespace().map(|word| word.parse().unwrap()).collect();
    assert_eq!(free[0], 1 << 20);
    assert!(free[1] <= (1 << 20) - 4 && free[1] > 1 << 19, "{free:?}");
    fixture.fsck_clean();
}

// P11.11
#[test]
fn each_directory_that_a_glob_names_has_a_quota_of_its_own() {
    let fixture = Setup::default().layout(LAYOUT).start();
    fixture.sh("mkdir -p team-a/x/y team-b; touch team-a/x/y/{1,2,3,4,5,6,7}").success();
    assert_eq!((quota(&fixture, "team-a").1, quota(&fixture, "team-b").1), (10, 1));
    let left = fixture.sh("df --output=itotal,iavail team-a team-b | tail -n +2 | xargs").success();
    assert_eq!(left.stdout, "10 0 10 9\n");
    let refused = fixture.sh("touch team-a/8");
    assert!(refused.stderr.contains("quota"), "{refused}");
    let why = fixture.sh("cat .workfs/why").success().stdout;
    assert!(why.contains("W043") && !why.contains("workfs gc"), "it knows of no projects: {why}");
    // A directory is moved with all that it holds, or not at all.
    fixture.sh("mkdir team-b/z; touch team-b/z/{1,2,3,4,5,6,7,8}").success();
    assert!(fixture.sh("mv team-a/x team-b/").stderr.contains("quota"));
    fixture.sh("mv team-a/x . && mv team-b/z/1 .").success();
    assert_eq!((quota(&fixture, "team-a").1, quota(&fixture, "team-b").1), (1, 9));
    fixture.fsck_clean();
    // Another name, another quota; exchanged ones are charged where they are then.
    fixture.sh("mv x team-c && mv team-b b && touch b/z/9").success();
    assert_eq!(quota(&fixture, "team-c").1, 9);
    let (one, other) = (fixture.path("b"), fixture.path("team-c"));
    rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
    assert_eq!(quota(&fixture, "team-c").1, 10);
    fixture.fsck_clean();
}

// P11.11
#[test]
fn a_directory_that_holds_too_much_for_a_name_does_not_get_that_name() {
    let layout = "workspaces: []\nquotas:\n  - { path: big, bytes: 1MiB }\n  \
                  - { path: small, bytes: 1KiB }\n  - { path: few, inodes: 2 }\n";
    let fixture = Setup::default().layout(layout).start();
    fixture
        .sh("mkdir big small few && head -c 9000 /dev/zero | tr '\\0' x > big/f && touch big/g")
        .success();
    for name in ["small", "few"] {
        let refused = fixture.sh(&format!("mv -T big {name}"));
        assert!(refused.stderr.contains("quota"), "{refused}");
        let (one, other) = (fixture.path("big"), fixture.path(name));
        let swapped = rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
        assert_eq!(swapped, Err(rustix::io::Errno::DQUOT));
        // Nor by a detour, of which a commit sees the end alone.
        let detour = format!(
            "mkdir .workfs/txn/t && cd .workfs/txn/t && rmdir {name} && mv big zz && mv zz {name}
             cd ../../.. && mv .workfs/txn/t .workfs/commit"
        );
        let refused = fixture.sh(&detour);
        assert!(refused.stderr.contains("quota"), "{refused}");
        fixture.sh("rmdir .workfs/txn/t").success();
    }
    fixture.sh("truncate -s 1K big/f && mv -T big small && touch small/h").success();
    assert_eq!(quota(&fixture, "small"), (1 << 10, 4));
    fixture.fsck_clean();
}

// P11.11
#[test]
fn a_new_configuration_counts_what_is_there() {
    let fixture = Setup::default().layout("workspaces: []\n").start();
    fixture.sh("mkdir -p team-a/b; printf 12345 > team-a/b/c; ln team-a/b/c d").success();
    fixture.unmount_all();
    let file = fixture.outside("other.yaml");
    std::fs::write(&file, LAYOUT).unwrap();
    fixture.workfs(&["init", "--layout", file.to_str().unwrap()]).success();
    fixture.mount_all();
    assert_eq!(quota(&fixture, "team-a"), (5, 3));
    fixture.sh("rm -r team-a/b; cat d").success();
    assert_eq!(quota(&fixture, "team-a").1, 1, "it lies elsewhere now");
    fixture.sh("rm d").success();
    fixture.fsck_clean();
}

// P11.11
#[test]
fn a_layout_whose_quota_has_no_room_for_its_own_directories_is_refused_before_anything_is_done() {
    let fixture = Setup::default().layout("workspaces: []\n").start();
    fixture.sh("mkdir -p work/inbox; echo 'status: new' > work/inbox/t-1.yaml").success();
    fixture.unmount_all();
    let file = fixture.outside("other.yaml");
    let init = |inodes: u64, more: &[&str]| {
        let text = format!(
            "workspaces: [{{ path: work, kind: task }}]\nquotas: [{{ path: work, inodes: {inodes} }}]\n"
        );
        std::fs::write(&file, text).unwrap();
        fixture.workfs(&[&["init", "--layout", file.to_str().unwrap()], more].concat())
    };
    for more in [&["--dry-run"][..], &[]] {
        let ran = init(4, more).failure();
        let told = "`work` may hold 4 files and directories, and would have";
        assert!(ran.code == 5 && ran.stderr.contains(told), "{ran}");
    }
    fixture.mount_all();
    let kept = fixture.sh("cat .workfs/config.yaml; ls work").success().stdout;
    assert!(kept.contains("workspaces: []") && kept.ends_with("\ninbox\n"), "{kept}");
    fixture.unmount_all();
    init(4, &["--bare"]).success();
    let wanted = init(4, &[]).failure().stderr;
    let wanted = wanted.split_once("would have ").unwrap().1.split_once(' ').unwrap().0;
    init(wanted.parse().unwrap(), &[]).success();
    fixture.mount_all();
    assert_eq!(quota(&fixture, "work").1.to_string(), wanted);
    fixture.fsck_clean();
}

// P11.11
#[test]
fn a_directory_that_leaves_its_quota_and_comes_back_in_one_commit_is_counted_once() {
    let fixture = Setup::default().layout(LAYOUT).start();
    fixture.sh("mkdir -p team-a/b; printf 12345 > team-a/b/c; touch team-a/d").success();
    let there = quota(&fixture, "team-a");
    fixture
        .sh("mkdir .workfs/txn/t && cd .workfs/txn/t && mv team-a zz && mv zz team-b
             cd ../../.. && mv .workfs/txn/t .workfs/commit")
        .success();
    assert_eq!(quota(&fixture, "team-b"), there);
    fixture.sh("rm -r team-b/b team-b/d && touch team-b/e").success();
    assert_eq!(quota(&fixture, "team-b"), (0, 2));
    fixture.fsck_clean();
}

// P11.11 P7.4
#[test]
fn what_a_mapping_wrote_and_a_quota_refused_is_seen_in_no_mount() {
    let layout = "workspaces: []\nquotas:\n  - { path: 'team-*', bytes: 1MiB }\n";
    let fixture = Setup::default().mounts(2).layout(layout).start();
    fixture.sh("mkdir team-x; head -c 1000000 /dev/zero > team-x/pad").success();
    let script = "import errno, mmap, os
fd = os.open('team-x/m', os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 100000)
m = mmap.mmap(fd, 100000)
m[:] = b'y' * 100000
try:
    m.flush()
except OSError as error:
    assert error.errno == errno.EDQUOT, error
else:
    raise SystemExit('it was not refused')
m.close()
os.close(fd)
";
    std::fs::write(fixture.outside("map.py"), script).unwrap();
    let python = python();
    fixture.sh(&format!("{} $OUT/map.py", python.display())).success();
    for mount in [0, 1] {
        let seen = std::fs::read(fixture.mount(mount).join("team-x/m")).unwrap();
        assert!(seen == vec![0; 100_000], "mount {mount} shows what was refused: {:?}", &seen[..3]);
    }
    // When there is room, what is written is what is seen.
    fixture.sh("rm team-x/pad; printf zz | dd of=team-x/m conv=notrunc").success();
    for mount in [0, 1] {
        let seen = std::fs::read(fixture.mount(mount).join("team-x/m")).unwrap();
        assert_eq!(seen[..3], *b"zz\0", "in mount {mount}");
    }
    fixture.fsck_clean();
}

// P7.2 P11.11
#[test]
fn a_file_that_was_refused_hides_no_other() {
    const LAYOUT: &str = "
workspaces:
  - { path: work, kind: task }
checks:
  - { path: 'scratchpad/**/*.json' }
quotas:
  - { path: scratchpad, inodes: 6 }
";
    let fixture = Setup::default().layout(LAYOUT).mounts(2).start();
    let fill = "mkdir plain; for n in $(seq 30); do echo {} > scratchpad/$n.json || exit 1; done";
    assert!(fixture.sh(fill).failure().stderr.contains("quota"));
    // Made by another process than those that were refused theirs.
    fixture.sh("for n in 1 2 3 4; do echo data > plain/$n; done").success();
    for mount in [0, 1] {
        let listed = std::fs::read_dir(fixture.mount(mount).join("plain")).unwrap();
        assert_eq!(listed.count(), 4, "mount {mount}");
    }
    fixture.fsck_clean();
}

// P11.11
#[test]
fn a_directory_that_was_removed_has_no_quota_any_more() {
    let fixture = Setup::default().layout(LAYOUT).start();
    fixture.sh("mkdir team-a && touch team-a/f && rm team-a/f").success();
    // It stays as long as somebody has it open.
    let held = std::fs::File::open(fixture.path("team-a")).unwrap();
    fixture.sh("rmdir team-a && mkdir team-a && touch team-a/1").success();
    let status = fixture.workfs(&["status", "--json"]).success().json();
    let all = status["quotas"].as_array().unwrap().iter();
    let named: Vec<_> = all.filter(|one| one["path"] == "team-a").collect();
    assert_eq!(named.len(), 1, "{status}");
    assert_eq!(named[0]["inodes"], 2);
    drop(held);
    fixture.fsck_clean();
}

// P11.11
#[test]
fn a_directory_that_holds_too_much_by_now_is_renamed_to_no_lower_quota_alone() {
    let layout = |big: &str| {
        format!(
            "workspaces: []\nquotas:\n  - {{ path: big, bytes: {big} }}\n  \
             - {{ path: same, bytes: 4KiB }}\n  - {{ path: lower, bytes: 2KiB }}\n"
        )
    };
    let fixture = Setup::default().layout(&layout("1MiB")).start();
    fixture.sh("mkdir big && head -c 9000 /dev/zero | tr '\\0' x > big/f").success();
    fixture.unmount_all();
    let file = fixture.outside("other.yaml");
    std::fs::write(&file, layout("4KiB")).unwrap();
    fixture.workfs(&["init", "--layout", file.to_str().unwrap()]).success();
    fixture.mount_all();
    assert!(fixture.sh("mv -T big lower").stderr.contains("quota"));
    fixture.sh("mv -T big same").success();
    assert!(fixture.sh("mv -T same lower").stderr.contains("quota"));
    assert!(fixture.sh("echo >> same/f").stderr.contains("quota"));
    fixture.sh("truncate -s 100 same/f && mv -T same lower").success();
    assert_eq!(quota(&fixture, "lower").0, 100);
    fixture.fsck_clean();
}

// P11.11
#[test]
fn a_size_without_a_unit_is_bytes() {
    let layout = "workspaces: []
quotas: [{ path: scratchpad, bytes: 1000000 }]
files: [{ path: 'scratchpad/**', bytes: 2097152, file_bytes: 1000 }]
";
    let fixture = Setup::default().layout(layout).prepare();
    let file = fixture.outside("layout.yaml");
    std::fs::write(&file, layout).unwrap();
    fixture.workfs(&["init", "--layout", file.to_str().unwrap()]).success();
    fixture.mount_all();
    let kept = std::fs::read_to_string(fixture.path(".workfs/config.yaml")).unwrap();
    for line in ["bytes: 1000000B", "bytes: 2MiB", "file_bytes: 1000B"] {
        assert!(kept.contains(line), "{kept}");
    }
    fixture.sh("head -c 900000 /dev/zero | tr '\\0' x > scratchpad/f").success();
    let full = fixture.sh("head -c 100001 /dev/zero | tr '\\0' x > scratchpad/g");
    assert!(full.stderr.contains("quota"), "{full}");
}
