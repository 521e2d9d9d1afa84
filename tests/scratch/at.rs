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
#[derive(Default)]
struct Was {
    files: BTreeMap<String, String>,
    /// Those of several names, whose saves are told under one of them: what another was may be lost. So may what is of
    /// one that lay where none is told.
    loose: BTreeSet<String>,
    /// What no rule counts.
    uncounted: BTreeSet<String>,
}

impl Was {
    /// What there is now; `untold` are the inodes that have ever lain where nothing counts.
    fn now(fixture: &Fixture, untold: &mut BTreeSet<u64>) -> Was {
        let mut was = Was::default();
        for top in ["scratchpad", "work"] {
            for (below, content) in files(&fixture.path(top)) {
                let path = format!("{top}/{below}");
                // It is shown twice.
                if path.contains("/ready/") {
                    continue;
                }
                let node = fs::metadata(fixture.path(&path)).unwrap();
                if path.contains("/target/") {
                    untold.insert(node.ino());
                    was.uncounted.insert(path);
                    continue;
                }
                if node.nlink() > 1 || untold.contains(&node.ino()) {
                    was.loose.insert(path.clone());
                }
                was.files.insert(path, content);
            }
        }
        was
    }

    /// All that counts of it is there, but of what is lost nothing.
    fn assert_is(&self, there: &BTreeMap<String, String>, when: &str) {
        let is_there = |path: &&String| there.contains_key(*path) || !self.loose.contains(*path);
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

/// Few names, so that they meet; below one nothing counts.
fn place(random: &mut Random) -> String {
    let mut path = "scratchpad".to_owned();
    for _ in 0..=random.below(3) {
        path.push_str(["/a", "/b", "/target"][random.below(3) as usize]);
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
        0..3 => {
            let path = at(random);
            let path = if path.is_dir() { path.join("c") } else { path };
            save(&path, format!("{nth}\n").as_bytes()).map_err(Into::into)
        }
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
    // With these two what had come where nothing counts was shown as it was before.
    let seeds = if long() { (1..=60).collect() } else { vec![5, 10] };
    for seed in seeds {
        let fixture = Fixture::new();
        fs::create_dir_all(fixture.path("scratchpad")).unwrap();
        for lane in ["ann", "bob"] {
            fs::create_dir_all(fixture.work().join("assigned").join(lane)).unwrap();
        }
        let (mut random, mut then) = (Random(seed), BTreeMap::new());
        let mut untold = BTreeSet::new();
        for nth in 0..100 {
            change(&fixture, &mut random, nth);
            // Where nothing was told it is another tree after the same event.
            then.insert(last_g(&fixture), Was::now(&fixture, &mut untold));
        }
        let all =
            |was: &'_ Was| was.files.keys().chain(&was.uncounted).cloned().collect::<Vec<_>>();
        let paths: BTreeSet<String> = then.values().flat_map(all).collect();
        for (g, was) in &then {
            let (at, when) =
                (fixture.path(&format!(".workfs/at/{g}")), format!("{g}, seed {seed}"));
            let listed = files(&at);
            was.assert_is(&listed, &when);
            // By its name each is found, too, and nothing else is.
            let text =
                |path: &String| Some((path.clone(), fs::read_to_string(at.join(path)).ok()?));
            assert_eq!(paths.iter().filter_map(text).collect::<BTreeMap<_, _>>(), listed);
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

// P11.12 P11.3
#[test]
fn of_what_came_where_no_rule_counts_it_nothing_is_told() {
    let layout = "workspaces: []\n\
                  files:\n  - { path: '**/off/**', log: false }\n  - { path: 'plans/*.md' }\n  \
                    - { path: 'scratchpad/**' }\n";
    let fixture = Setup::default().layout(layout).start();
    let at = |path: &str| fixture.path(path);
    let listed = || -> Vec<_> {
        let all = files(&at(&format!(".workfs/at/{}", last_g(&fixture))));
        all.into_iter().map(|(path, text)| format!("{path}: {}", text.trim_end())).collect()
    };
    let exchange = |a, b| rename_with(&at(a), &at(b), RenameFlags::EXCHANGE).unwrap();
    fixture.sh("mkdir -p scratchpad").success();
    let fill = "cd scratchpad; mkdir -p d/e; echo 1 > d/f; echo 1 > d/k.md; echo 1 > d/e/f.md";
    for is_exchange in [false, true] {
        for (to, stays) in [("scratchpad/off", vec![]), ("plans", vec!["plans/k.md: 1".to_owned()])]
        {
            fixture.sh(fill).success();
            let before = last_g(&fixture);
            if is_exchange {
                fixture.sh(&format!("mkdir {to}; echo 0 > {to}/f")).success();
                exchange("scratchpad/d", to);
            } else {
                fixture.sh(&format!("mv scratchpad/d {to}")).success();
            }
            let came = last_g(&fixture);
            // Of that no event tells, not even that it was right until now.
            fixture.sh(&format!("cd {to}; rm e/f.md; echo 2 > f; echo 2 > new")).success();
            assert_eq!((last_g(&fixture), listed()), (came, stays), "{to} {is_exchange}");
            let f = format!("{to}/f");
            for ask in [["show", "--g"], ["restore", "--at"]] {
                let ran = fixture.workfs(&[ask[0], &f, ask[1], &came.to_string()]).failure();
                let named = [
                    "had come from `scratchpad/d/f` with its directory, by event ".to_owned(),
                    format!("keeps nothing of `{f}`"),
                ];
                assert!(ran.code == 4 && named.iter().all(|it| ran.stderr.contains(it)), "{ran}");
                // The way: what it was before is told where it lay then.
                let before = ["show", "scratchpad/d/f", "--g", &before.to_string()];
                assert!(fixture.workfs(&before).success().stdout.contains('1'));
            }
            // Nor is it known where it counts again, if it had another name for a moment or not, until it is saved.
            if is_exchange {
                exchange("scratchpad/d", to);
            } else {
                fixture.sh(&format!("mv {to} scratchpad/d")).success();
            }
            let known = match to {
                "plans" => vec!["scratchpad/d/k.md: 1".to_owned()],
                _ => vec![],
            };
            assert_eq!(listed(), known, "{to} {is_exchange}");
            let back = last_g(&fixture).to_string();
            for gone in ["e/f.md", "f"] {
                let gone = format!("scratchpad/d/{gone}");
                let ran = fixture.workfs(&["show", &gone, "--g", &back]).failure();
                assert!(ran.stderr.contains("keeps nothing of"), "{ran}");
            }
            fixture.sh("echo 3 > scratchpad/d/f").success();
            assert_eq!(listed(), [vec!["scratchpad/d/f: 3".to_owned()], known].concat());
            fixture.sh(&format!("rm -rf scratchpad/* {to}")).success();
        }
    }
    // Exchanges that follow each other bring it there and back, and something happens between them.
    fixture.sh("cd scratchpad; mkdir d off; echo 1 > d/f").success();
    exchange("scratchpad/d", "scratchpad/off");
    fixture.sh("echo 2 > scratchpad/off/f").success();
    exchange("scratchpad/d", "scratchpad/off");
    assert_eq!(listed(), Vec::<String>::new());
    // Nor is another name's of a file whose saves are told under one that was there.
    fixture.sh("rm -rf scratchpad/*; cd scratchpad; mkdir d; echo 1 > d/f; ln d/f n").success();
    assert_eq!(listed(), ["scratchpad/d/f: 1", "scratchpad/n: 1"]);
    fixture.sh("cd scratchpad; mv d off; echo 2 > off/f; mv off d").success();
    assert_eq!(listed(), Vec::<String>::new());
    fixture.fsck_clean();
}

// P11.12 P11.3
#[test]
fn what_a_rule_counted_that_is_gone_is_no_past_of_the_tree_any_more() {
    let layout = |files: &str| format!("workspaces: []\nfiles: [{files}{{ path: 'b/**' }}]\n");
    let fixture = Setup::default().layout(&layout("{ path: 'a/**' }, ")).start();
    fixture.sh("mkdir -p a a/d b; echo 1 > a/f; echo 1 > a/d/f; echo 1 > b/f").success();
    let before = last_g(&fixture).to_string();
    fixture.sh("mv a/d b/d; echo 2 > b/f").success();
    let listed = |g: &str| files(&fixture.path(&format!(".workfs/at/{g}"))).into_keys();
    let all = |g: &str| listed(g).collect::<Vec<_>>();
    assert_eq!(all(&before), ["a/d/f", "a/f", "b/f"]);
    let moved = last_g(&fixture).to_string();
    assert_eq!(all(&moved), ["a/f", "b/d/f", "b/f"]);
    let less = fixture.outside("less.yaml");
    fs::write(&less, layout("")).unwrap();
    fixture.unmount_all();
    fixture.workfs(&["init", "--layout", less.to_str().unwrap()]).success();
    fixture.mount_all();
    fixture.sh("echo 2 > a/f").success();
    // Since when no rule counts it the ledger does not tell.
    for g in [&before, &moved, &last_g(&fixture).to_string()] {
        assert_eq!(all(g), ["b/f"]);
    }
    let ran = fixture.workfs(&["show", "b/d/f", "--g", &moved]).failure();
    assert!(ran.stderr.contains("keeps nothing of `a/d/f`"), "{ran}");
    // Who asks for a version by its path gets it, and is told which it is.
    fixture.workfs(&["restore", "a/f", "--at", &before]).success();
    assert_eq!(fs::read_to_string(fixture.path("a/f")).unwrap(), "1\n");
    fixture.fsck_clean();
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
