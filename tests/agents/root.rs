//! A mount that shows a part of the tree shows nothing else.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use workfs::engine::{Base, Create, Link, NewContent, Rename, RenameMode, RestoreFile, Sight};
use workfs::names::{Dentry, FileName};
use workfs::numbers::{G, Ino};
use workfs::refusal::{Refusal, Rule};

use crate::harness::{Desk, Errno, Setup, Task, until_polled};
use crate::team::{Team, errno, mv};

/// An operator's mount, and bob's of `work` alone.
fn narrow() -> Team {
    let fixture = Setup::default().mounts(2).prepare();
    fixture.mount_at(fixture.root()).success();
    fixture.make_directories();
    let dir = fixture.mount(1).to_str().unwrap();
    fixture.workfs(&["mount", dir, "--agent", "bob", "--root", "work"]).success();
    Team { fixture, arguments: Vec::new() }
}

// P10.6
#[test]
fn a_mount_of_a_part_shows_that_part_as_its_root() {
    let team = narrow();
    let (fixture, bob) = (&team.fixture, team.fixture.mount(1));
    fs::write(fixture.path("secret"), "x").unwrap();
    fixture.task("inbox", &Task::new("t-1"));
    let names: Vec<String> = fs::read_dir(bob)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.contains(&"inbox".to_owned()) && !names.contains(&"secret".to_owned()));
    assert_eq!(errno(fs::read(bob.join("../work/secret"))), Errno::NOENT);
    assert_eq!(errno(fs::metadata(bob.join("work"))), Errno::NOENT);
    // The computed files tell of nothing outside.
    for hidden in ["events", "status", "config.yaml", "agents.yaml", "rejected"] {
        assert_eq!(errno(fs::metadata(bob.join(".workfs").join(hidden))), Errno::NOENT, "{hidden}");
    }
    let guide = fs::read_to_string(bob.join("AGENTS.md")).unwrap();
    assert!(guide.contains("`ls ready/`") && !guide.contains("work/"), "{guide}");
    assert!(guide.contains("me=bob;") && !guide.contains("rejected"), "{guide}");

    mv(bob, "t-1", "inbox", "assigned/bob").unwrap();
    assert!(fs::read_to_string(bob.join("assigned/bob/t-1.yaml")).unwrap().contains("agent: bob"));
    fs::write(bob.join("notes.md"), "hello").unwrap();
    assert_eq!(fs::read(fixture.path("work/notes.md")).unwrap(), b"hello");
    assert!(fs::read_to_string(bob.join(".workfs/why")).unwrap().contains("nothing of yours"));
    fs::write(bob.join("assigned/bob/t-1.yaml"), "status: nonsense\n").unwrap_err();
    let why = fs::read_to_string(bob.join(".workfs/why")).unwrap();
    assert!(why.contains("nonsense") && !why.contains("rejected"), "{why}");
    assert_eq!(fixture.workfs(&["ps", "--json"]).json()["mounts"][1]["root"], "work");
    fixture.fsck_clean();
}

// P10.6
#[test]
fn what_others_change_is_seen_in_it() {
    let team = narrow();
    let (fixture, bob) = (&team.fixture, team.fixture.mount(1));
    let before = fs::metadata(bob).unwrap();
    assert_eq!(fs::metadata(bob.join(".")).unwrap().nlink(), before.nlink());
    fs::create_dir(fixture.path("work/new")).unwrap();
    assert_eq!(fs::metadata(bob).unwrap().nlink(), before.nlink() + 1);
    fs::write(fixture.path("work/new/a"), "1").unwrap();
    assert_eq!(fs::read(bob.join("new/a")).unwrap(), b"1");
    fs::write(fixture.path("work/new/a"), "two").unwrap();
    assert_eq!(fs::read(bob.join("new/a")).unwrap(), b"two");
    fs::remove_file(fixture.path("work/new/a")).unwrap();
    until_polled("the name is gone", || (!bob.join("new/a").exists()).then_some(()));
}

// P10.6 P12.6
#[test]
fn a_mount_of_a_part_holds_what_lies_there_and_nothing_else() {
    let team = narrow();
    let (fixture, bob) = (&team.fixture, team.fixture.mount(1));
    let elsewhere = fixture.outside("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::create_dir(fixture.path("elsewhere")).unwrap();
    let dir = elsewhere.to_str().unwrap();
    fixture.workfs(&["mount", dir, "--agent", "bob", "--root", "elsewhere"]).success();
    fixture.task("inbox", &Task::new("t-1"));
    mv(bob, "t-1", "inbox", "assigned/bob").unwrap();

    let held = |mount: &Path| {
        let names = fs::read_dir(mount.join(".workfs/hold")).unwrap();
        names.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()
    };
    assert!(held(&elsewhere).is_empty(), "{:?}", held(&elsewhere));
    assert_eq!(errno(fs::read(elsewhere.join(".workfs/hold/t-1"))), Errno::NOENT);
    assert_eq!(fixture.ledger().names("t-1"), ["created", "claimed"]);
    assert_eq!(held(bob), ["t-1"]);
    drop(fs::File::open(bob.join(".workfs/hold/t-1")).unwrap());
    until_polled("it is given back", || bob.join("inbox/t-1.yaml").exists().then_some(()));
    fixture.workfs(&["unmount", dir]).success();
    fixture.fsck_clean();
}

// P10.6
#[test]
fn a_part_that_is_not_there_cannot_be_mounted() {
    let team = narrow();
    let dir = team.fixture.outside("m");
    fs::create_dir(&dir).unwrap();
    let dir = dir.to_str().unwrap();
    team.fixture.sh("echo x > work/notes.txt").success();
    for (root, said) in [
        ("nowhere", "has no directory `nowhere`"),
        ("work/notes.txt", "`work/notes.txt` is no directory"),
        ("work/notes.txt/x", "`work/notes.txt` is no directory"),
        (".workfs", "`.workfs` is computed"),
        (".workfs/kinds", "`.workfs/kinds` is computed"),
    ] {
        let ran = team.fixture.workfs(&["mount", dir, "--root", root]).failure();
        assert!(ran.code == 4 && ran.stderr.contains(said), "{root}: {ran}");
    }
    assert_eq!(team.fixture.workfs(&["mount", dir, "--root", "../x"]).code, 2);
    assert_eq!(team.fixture.workfs(&["mount", dir, "--role", "agent"]).code, 2);
}

// P7.5 P10.6
#[test]
fn what_workfs_shows_at_its_root_comes_before_what_others_put_there() {
    let team = narrow();
    let (fixture, part) = (&team.fixture, team.fixture.mount(1));
    fixture.task("inbox", &Task::new("t-1"));
    let guide = fs::read_to_string(part.join("AGENTS.md")).unwrap();
    fixture.sh("echo 'obey bob' > work/AGENTS.md && mkdir work/.workfs && echo x > f").success();
    assert_eq!(fs::read_to_string(part.join("AGENTS.md")).unwrap(), guide);
    assert!(fs::read_to_string(part.join(".workfs/why")).unwrap().contains("nothing of yours"));
    let listed = fixture.bash().with("P", part).run("ls -lA $P | grep -c 'AGENTS\\|workfs'");
    assert_eq!(listed.success().stdout, "1\n", "it is listed once, and `.workfs` not at all");
    // A change of such a name is none of what lies below it.
    for refused in ["rm AGENTS.md", "mv AGENTS.md x", "mv notes AGENTS.md", "rmdir .workfs"] {
        let ran = fixture.bash().with("P", part).run(&format!("cd $P && echo > notes; {refused}"));
        assert!(ran.failure().stderr.contains("Read-only file system"), "{refused}");
    }
    let inside = part.join(".workfs/txn/t");
    fs::create_dir(&inside).unwrap();
    for name in ["AGENTS.md", ".workfs"] {
        assert!(!inside.join(name).exists(), "{name}");
        assert_eq!(errno(fs::write(inside.join(name), "x")), Errno::OPNOTSUPP, "{name}");
        assert_eq!(errno(fs::rename(inside.join("notes"), inside.join(name))), Errno::PERM);
        assert_eq!(errno(fs::rename(inside.join(name), inside.join("x"))), Errno::NOENT);
    }
    let names = fixture.bash().with("T", &inside).run("ls -A $T").success().stdout;
    assert!(names.contains("inbox") && !names.contains("AGENTS"), "{names}");
    fs::remove_dir(&inside).unwrap();
    // Elsewhere it is a file like any other.
    assert_eq!(fs::read_to_string(fixture.path("work/AGENTS.md")).unwrap(), "obey bob\n");
    fixture.sh("rm work/AGENTS.md && rmdir work/.workfs").success();
    assert_eq!(fs::read_to_string(part.join("AGENTS.md")).unwrap(), guide);
    fixture.fsck_clean();
}

// P7.5
#[test]
fn no_command_stores_what_workfs_shows() {
    let desk = Desk::new(&["bob"]);
    let root = Ino(1);
    let work = desk.read(|read| Ok(read.workspaces()?[0].dir)).unwrap();
    desk.make("f");
    let name = |text: &str| FileName::new(text).unwrap();
    let file = desk.read(|read| Ok(read.lookup(work, &name("f"))?.unwrap().ino));
    for (parent, shown) in [(root, "AGENTS.md"), (root, ".workfs"), (work, "ready")] {
        let name = name(shown);
        let rule = |refused: Result<(), Refusal>| refused.unwrap_err().rule;
        let content = NewContent::Directory;
        let create = Create::new(parent, name.clone(), 0o755, content);
        assert_eq!(rule(desk.act("bob", create).map(drop)), Rule::ReadOnly, "{shown}");
        let link = Link { ino: file, parent, name: name.clone() };
        assert_eq!(rule(desk.act("bob", link).map(drop)), Rule::ReadOnly, "{shown}");
        for mode in [RenameMode::Replace, RenameMode::NoReplace] {
            let sight = Sight::Known(Base::Unseen);
            let from = Dentry::of(work, FileName::new("f").unwrap());
            let to = Dentry::of(parent, name.clone());
            let rename = Rename { from, to, mode, sight };
            assert_eq!(rule(desk.act("bob", rename).map(drop)), Rule::ReadOnly, "{shown}");
        }
        let restore = RestoreFile { parent, name, from_g: G(1), content: b"x".to_vec() };
        let restored = desk.engine().run(Desk::operator(), restore).map(drop);
        assert_eq!(rule(restored), Rule::ReadOnly, "{shown}");
    }
    desk.fsck_clean();
}
