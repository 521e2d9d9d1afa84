//! `.workfs/at/<g>/`: the tree as it was after an event.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::RenameFlags;
use serde_json::Value;
use workfs::engine::{AfterEvent, Rename, Then};
use workfs::names::{Dentry, FileName, TreePath};
use workfs::numbers::G;

use crate::harness::{Desk, Fixture, Random, SECOND, Setup, Task, long, rename_with, save};

/// The files below a directory, with their content.
fn files(dir: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(at) = waiting.pop() {
        for entry in fs::read_dir(&at).unwrap_or_else(|why| panic!("{}: {why}", at.display())) {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                waiting.push(entry.path());
            } else {
                let content = fs::read_to_string(entry.path()).unwrap();
                let path = entry.path().strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
                found.insert(path, content);
            }
        }
    }
    found
}

/// What there is.
struct Was {
    files: BTreeMap<String, String>,
    /// Those of several names, whose saves are told under one of them: what another was may be lost.
    linked: BTreeSet<String>,
}

impl Was {
    fn now(fixture: &Fixture) -> Was {
        let (mut all, mut linked) = (BTreeMap::new(), BTreeSet::new());
        for top in ["scratchpad", "work"] {
            for (below, content) in files(&fixture.path(top)) {
                let path = format!("{top}/{below}");
                // It is shown twice.
                if !path.contains("/ready/") {
                    if fs::metadata(fixture.path(&path)).unwrap().nlink() > 1 {
                        linked.insert(path.clone());
                    }
                    all.insert(path, content);
                }
            }
        }
        Was { files: all, linked }
    }

    /// All of it is there, but of what is lost nothing.
    fn assert_is(&self, there: &BTreeMap<String, String>, when: &str) {
        let is_there = |path: &&String| there.contains_key(*path) || !self.linked.contains(*path);
        let wanted = self.files.iter().filter(|(path, _)| is_there(path));
        assert_eq!(
            *there,
            wanted.map(|(path, text)| (path.clone(), text.clone())).collect(),
            "{when}"
        );
    }
}

fn last_g(fixture: &Fixture) -> u64 {
    let status = fs::read_to_string(fixture.path(".workfs/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix("g: ")).unwrap().parse().unwrap()
}

/// Few names, so that they meet.
fn place(random: &mut Random) -> String {
    let mut path = "scratchpad".to_owned();
    for _ in 0..=random.below(3) {
        path.push_str(["/a", "/b"][random.below(2) as usize]);
    }
    path
}

/// One change that may fail, as it does elsewhere.
fn change(fixture: &Fixture, random: &mut Random, nth: u64) {
    let at = |random: &mut Random| fixture.path(&place(random));
    let task = format!("t-{}", random.below(3));
    let lies = ["inbox", "assigned/ann", "assigned/bob", "done"]
        .map(|dir| fixture.work().join(dir).join(format!("{task}.yaml")));
    let there = lies.iter().find(|path| path.exists());
    let _ = match random.below(12) {
        0..3 => save(&at(random), format!("{nth}\n").as_bytes()).map_err(Into::into),
        3 | 4 => fs::create_dir_all(at(random)),
        5 | 6 => fs::rename(at(random), at(random)),
        7 => rename_with(&at(random), &at(random), RenameFlags::EXCHANGE).map_err(Into::into),
        8 => fs::remove_file(at(random)),
        9 => fs::remove_dir_all(at(random)),
        10 => fs::hard_link(at(random), at(random)),
        _ => match there {
            None => save(&lies[0], Task::new(&task).text().as_bytes()).map_err(Into::into),
            Some(lay) => match random.below(4) {
                0 => fs::remove_file(lay),
                1 => {
                    let text = fs::read_to_string(lay).unwrap();
                    save(lay, format!("{text}# {nth}\n").as_bytes()).map_err(Into::into)
                }
                _ => fs::rename(lay, &lies[random.below(3) as usize]),
            },
        },
    };
}

// P11.12
#[test]
fn the_tree_after_an_event_is_what_it_was_whatever_moved_since() {
    for seed in 1..=if long() { 60 } else { 2 } {
        let fixture = Fixture::new();
        fs::create_dir_all(fixture.path("scratchpad")).unwrap();
        for lane in ["ann", "bob"] {
            fs::create_dir_all(fixture.work().join("assigned").join(lane)).unwrap();
        }
        let (mut random, mut then) = (Random(seed), BTreeMap::new());
        for nth in 0..100 {
            change(&fixture, &mut random, nth);
            then.insert(last_g(&fixture), Was::now(&fixture));
        }
        let paths: BTreeSet<&String> = then.values().flat_map(|was| was.files.keys()).collect();
        for (g, was) in &then {
            let (at, when) =
                (fixture.path(&format!(".workfs/at/{g}")), format!("{g}, seed {seed}"));
            let listed = files(&at);
            was.assert_is(&listed, &when);
            // By its name each is found, too, and nothing else is.
            let text =
                |path: &String| Some((path.clone(), fs::read_to_string(at.join(path)).ok()?));
            assert_eq!(paths.iter().copied().filter_map(text).collect::<BTreeMap<_, _>>(), listed);
        }
        fixture.fsck_clean();
    }
}

// P11.12
#[test]
fn what_the_ledger_does_not_tell_is_left_out_and_no_past_is_listed() {
    let layout = "workspaces: [{ path: work, kind: task }]\n\
                  files: [{ path: 'scratchpad/**', versions: 1 }]\n";
    let fixture = Setup::default().layout(layout).start();
    fixture.make_directories();
    fixture.task("inbox", &Task::new("t-1"));
    save(&fixture.work().join("inbox/t-2.yaml"), b"status: no such\n").unwrap_err();
    fixture
        .sh("mkdir -p scratchpad/empty other; echo 1 > other/f; ln -s f scratchpad/link; \
             echo 1 > scratchpad/f; echo 1 > scratchpad/g")
        .success();
    let first = last_g(&fixture);
    fixture.sh("echo 2 > scratchpad/f; rm -r work/inbox scratchpad/g").success();
    let at = |g: u64| -> Vec<_> {
        files(&fixture.path(&format!(".workfs/at/{g}"))).into_keys().collect()
    };
    assert_eq!(at(first), ["scratchpad/g", "work/inbox/t-1.yaml"], "one version of f is kept");
    assert_eq!(at(last_g(&fixture)), ["scratchpad/f"]);
    let ran = fixture.sh(&format!(
        "cd .workfs/at; ls -A; ls 0 01 1x {} 2>/dev/null; for g in {first}; do echo > $g/new; rm -f \
         $g/scratchpad/g; mkdir $g/d; done; ls -A $g $g/scratchpad",
        last_g(&fixture) + 1,
    ));
    assert_eq!(
        ran.success().stdout,
        format!("{first}:\nscratchpad\nwork\n\n{first}/scratchpad:\ng\n")
    );
}

// P11.12
#[test]
fn a_time_leads_to_what_the_last_event_had_left_then() {
    let fixture = Fixture::new();
    fixture
        .sh("mkdir -p scratchpad/p; for n in 1 2 3; do echo $n > scratchpad/p/f; done")
        .success();
    let events = fixture.workfs(&["log", "--json"]).success().stdout;
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let moments: BTreeMap<u64, String> = events
        .map(|event| (event["g"].as_u64().unwrap(), event["at"].as_str().unwrap().to_owned()))
        .collect();
    assert!(moments.len() > 5, "{moments:?}");
    let link = |time: &str| fs::read_link(fixture.path(".workfs/at").join(time));
    for (g, at) in &moments {
        // Those of one commit may have one time.
        let last = moments.iter().rev().find(|(_, other)| *other == at).unwrap().0;
        assert_eq!(link(at).unwrap(), Path::new(&last.to_string()), "{g} {at}");
        assert_eq!(link(&at.replace('Z', "+00:00")).unwrap(), Path::new(&last.to_string()));
    }
    let [.., (before, _), (last, at)] = moments.iter().collect::<Vec<_>>()[..] else { panic!() };
    let then = |path: &str| files(&fixture.path(&format!(".workfs/at/{path}")));
    assert_eq!(then(at), then(&last.to_string()));
    assert_eq!(then(at)["scratchpad/p/f"], "3\n");
    assert_ne!(then(at), then(&before.to_string()));
    for never in ["2026-11-20", "2026-11-20T10:00:00Z", "2999-01-01", "2026-13-01", "2026-11-20T10"]
    {
        assert_eq!(link(never).unwrap_err().kind(), std::io::ErrorKind::NotFound, "{never}");
    }
    let ran = fixture.sh(&format!(
        "cd .workfs/at; ls -A; touch {at}; rm -f {at}; mv {at} ../../x; ln -s 1 2026-11-20; \
         mv ../../scratchpad {at}; ls -A; ls {at}/scratchpad ../../scratchpad/p"
    ));
    assert_eq!(ran.success().stdout, format!("../../scratchpad/p:\nf\n\n{at}/scratchpad:\np\n"));
}

// P11.12 P12.1
#[test]
fn an_event_that_only_tells_of_a_record_puts_it_nowhere() {
    let desk = Desk::new(&["bob"]);
    desk.put("t-1", "lease: 60s");
    desk.mv("bob", "t-1", "inbox", "bob").unwrap();
    let lay = |desk: &Desk, g: G| {
        let below = TreePath::parse("assigned/bob/t-1.yaml").unwrap();
        let config = desk.engine().config();
        desk.read(|read| {
            let path = read.workspaces()?[0].path.join_all(&below);
            AfterEvent::new(read, &config, g).at(&path)
        })
    };
    let last = |desk: &Desk| desk.read(|read| Ok(read.last_event()?.unwrap().g));
    let there = last(&desk);
    desk.rename_to("bob", "t-1", "t-1.yaml~").unwrap();
    let parked = last(&desk);
    desk.pass(30 * SECOND);
    desk.pass(25 * SECOND);
    let told = last(&desk);
    let event = desk.read(|read| read.event(told)).unwrap().line;
    assert!(told > parked && event.contains("\"event\":\"lease_ending\""), "{event}");
    // Something more, so that its row tells of a later moment.
    let [from, to] = ["t-1.yaml~", "t-1.yaml"].map(|name| FileName::new(name).unwrap());
    let [from, to] = [from, to].map(|name| Dentry::of(desk.dir("bob"), name));
    desk.act("bob", Rename::to_free(from, to)).unwrap();
    assert_eq!(lay(&desk, there), Some(Then::Version(there)));
    assert_eq!((lay(&desk, parked), lay(&desk, told)), (None, None), "it is parked");
    assert_eq!(lay(&desk, last(&desk)), Some(Then::Version(there)));
    desk.fsck_clean();
}
