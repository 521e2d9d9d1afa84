use std::collections::BTreeSet;

use super::*;
use crate::kind::{Place, Role, StateIx};
use crate::names::{AgentName, TreePath};

fn path(text: &str) -> TreePath {
    TreePath::parse(text).unwrap()
}

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse("config.yaml", text)
}

fn workspace(lines: &str) -> Config {
    parse(&format!("workspaces:\n  - path: work\n    kind: task\n{lines}")).unwrap()
}

fn refused(text: &str) -> ConfigError {
    parse(text).unwrap_err()
}

/// Refused, but kept by a store that was given it before.
fn outlived(text: &str) -> ConfigError {
    let error = refused(text);
    let config = Config::kept(Some(text)).unwrap();
    assert_eq!(Config::would_be_refused(Some(&config.to_yaml())).unwrap().reason, error.reason);
    error
}

#[test]
fn the_default_governs_work_and_work_collaboration_and_nothing_else() {
    let config = Config::default();
    assert!(config.bind(&path("work")).is_some());
    let inner = config.bind(&path("work/collaboration")).unwrap();
    assert_eq!((inner.policy, inner.strict), (Policy::Refuse, false));
    for other in ["", "work/inbox", "scratchpad/work", "a/work", "work/collaboration/work"] {
        assert!(config.bind(&path(other)).is_none(), "{other}");
    }
    for (at, may) in [
        ("", true),
        ("work", true),
        ("work/collaboration", false),
        ("scratchpad", false),
        (".workfs", false),
        ("AGENTS.md", false),
    ] {
        assert_eq!(config.may_lie_below(&path(at)), may, "{at}");
    }
}

#[test]
fn a_scratchpad_is_governed_only_where_a_path_says_so() {
    let any = parse("workspaces: [{ path: '**/work', kind: task }]").unwrap();
    assert!(any.bind(&path("team/work")).is_some());
    assert!(any.bind(&path("scratchpad/repo/work")).is_none());
    assert!(!any.may_lie_below(&path("scratchpad/repo")));
    let literal = parse("workspaces: [{ path: 'scratchpad/*/work', kind: task }]").unwrap();
    assert!(literal.bind(&path("scratchpad/repo/work")).is_some());
    assert!(literal.may_lie_below(&path("scratchpad")));
    let any_root = parse("workspaces: [{ path: '*/work', kind: task }]").unwrap();
    assert!(any_root.bind(&path("scratchpad/work")).is_none());
    assert!(any_root.bind(&path(".workfs/work")).is_none());
    let all = parse("workspaces: [{ path: '*', kind: task }]").unwrap();
    assert!(all.bind(&path("team")).is_some() && all.bind(&path("AGENTS.md")).is_none());
}

#[test]
fn the_first_entry_that_matches_wins() {
    let text = "workspaces:\n- { path: team/a, kind: task, strict: true }\n\
                - { path: 'team/*', kind: task, policy: flag }\n";
    let config = parse(text).unwrap();
    let (a, b) = (config.bind(&path("team/a")).unwrap(), config.bind(&path("team/b")).unwrap());
    assert!(a.strict && a.policy == Policy::Refuse);
    assert!(!b.strict && b.policy == Policy::Flag);
}

#[test]
fn the_root_of_the_mount_can_be_a_workspace() {
    let config = parse("workspaces: [{ path: ., kind: task }]").unwrap();
    assert!(config.bind(&TreePath::root()).is_some());
    assert!(config.bind(&path("inbox")).is_none());
    assert!(agents_md(&config, &TreePath::root(), Reader::default()).contains("`ls inbox/`"));
}

#[test]
fn directories_get_other_names() {
    let config =
        workspace("    dirs: { inbox: todo, assigned: \"working/{owner}\", done: [ok] }\n");
    let kind = &config.bind(&path("work")).unwrap().kind;
    let state = |name| kind.state_named(name).unwrap();
    let place = |text| kind.place(path(text).names());
    assert_eq!(place("todo"), Place::State { state: state("inbox"), owner: None });
    assert_eq!(place("inbox"), Place::Outside);
    assert!(matches!(place("working/bob"), Place::State { owner: Some(_), .. }));
    assert_eq!(place("ok"), Place::State { state: state("done"), owner: None });
    assert!(matches!(place("fridge"), Place::State { .. }));
}

#[test]
fn states_can_swap_their_directories() {
    let config = workspace("    dirs: { inbox: [fridge], fridge: [inbox] }\n");
    let kind = &config.bind(&path("work")).unwrap().kind;
    let state: StateIx = kind.state_named("inbox").unwrap();
    assert_eq!(kind.place(path("fridge").names()), Place::State { state, owner: None });
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (text, line, part) in [
        ("workspace: []", Some(1), "did you mean `workspaces`?"),
        ("{}", None, "`workspaces` is missing"),
        ("", None, ""),
        ("workspaces:\n  - path: a\n    kid: task\n", Some(3), "did you mean `kind`?"),
        ("workspaces:\n  - kind: task\n", Some(2), "`path` is missing"),
        ("workspaces:\n  - path: a\n    kind: taks\n", Some(3), "did you mean `task`?"),
        ("workspaces:\n  - path: a/**\n    kind: task\n", Some(2), "ends in `**`"),
        ("workspaces:\n  - path: .workfs/x\n    kind: task\n", Some(2), ".workfs"),
        (
            "workspaces:\n  - path: a\n    kind: task\n    policy: flga\n",
            Some(4),
            "did you mean `flag`?",
        ),
        ("workspaces:\n  - path: a\n    kind: task\n    strict: maybe\n", Some(4), ""),
        (
            "workspaces:\n  - path: a\n    kind: task\n    dirs:\n      inbx: b\n",
            Some(5),
            "did you mean `inbox`?",
        ),
        (
            "workspaces:\n  - path: a\n    kind: task\n    dirs:\n      inbox: b\n      done: '{x}'\n",
            Some(6),
            "no placeholder",
        ),
        ("workspaces:\n  - path: a\n    kind: task\n    dirs: { inbox: done }\n", Some(4), "clash"),
        (
            "workspaces:\n  - path: a\n    kind: task\n    dirs: { assigned: working }\n",
            Some(4),
            "{owner}",
        ),
        ("workspaces:\n  - path: a\n    kind: task\n    dirs: { inbox: [] }\n", Some(4), ""),
        (
            "workspaces:\n- { path: a, kind: task }\n- { path: a/, kind: task }\n",
            Some(3),
            "already, by the entry in line 2",
        ),
        (
            "workspaces:\n- { path: a, kind: task }\n- { path: a/inbox, kind: task }\n",
            Some(3),
            "directory of the lifecycle",
        ),
        (
            "workspaces:\n- { path: a/assigned, kind: task }\n- { path: a, kind: task }\n",
            Some(3),
            "directory of the lifecycle of `task`; see the entry in line 2",
        ),
        ("workspaces: [\n", None, ""),
    ] {
        let error = refused(text);
        assert!(error.reason.contains(part), "{text}: {error}");
        if line.is_some() {
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.to_string().starts_with("config.yaml:"), "{error}");
        }
    }
    let many = "- { path: 'a/*', kind: task }\n".repeat(65);
    assert!(refused(&format!("workspaces:\n{many}")).reason.contains("over 64"));
}

#[test]
fn nothing_hides_what_is_computed_at_the_root_of_a_mount() {
    for path in [".workfs", ".workfs/x", "a/.workfs", "AGENTS.md", "*/AGENTS.md/x"] {
        let error = outlived(&format!("workspaces:\n- {{ path: '{path}', kind: task }}\n"));
        assert!(error.line == Some(2) && error.reason.contains("cannot be a workspace"), "{error}");
    }
    for dir in [".workfs", ".workfs/x", "AGENTS.md", "a/.workfs", "AGENTS.md/{any}"] {
        for at in [".", "work"] {
            let error = outlived(&format!(
                "workspaces:\n- path: {at}\n  kind: task\n  dirs:\n    inbox: [in, '{dir}']\n"
            ));
            assert!(
                error.line == Some(5) && error.reason.contains("itself at the root"),
                "{error}"
            );
        }
    }
    assert!(Config::would_be_refused(None).is_none());
    assert!(Config::would_be_refused(Some(&Config::default().to_yaml())).is_none());
    // A rule hides nothing, and there is nothing that it could be about.
    parse(
        "workspaces: []\nfiles: [{ path: '.workfs/**' }]\nquotas: [{ path: .workfs, inodes: 9 }]",
    )
    .unwrap();
    // What lies deeper is somebody's, and so is what a glob takes besides.
    parse("workspaces: [{ path: '*', kind: task }]\nfiles: [{ path: '**/AGENTS.md' }]").unwrap();
}

#[test]
fn no_agent_s_lane_hides_what_is_computed_at_the_root() {
    let task = builtin::task();
    let source = task.source();
    let names = [
        ("kind: task", "kind: own"),
        ("task.v1.json", "own.v1.json"),
        ("dir: ready", "dir: .ready"),
        ("WORKFLOW_LOG.md", ".log"),
        ("put-aside", ".aside"),
    ];
    let own =
        names.iter().fold(source.definition.clone(), |text, (from, to)| text.replace(from, to));
    let kind = format!(
        "kinds:\n- definition: {}\n  schema: {}\n",
        serde_json::Value::from(own),
        serde_json::Value::from(source.schema.clone())
    );
    let at = |path: &str| {
        let dirs = "dirs: { assigned: '{owner}/.doing' }";
        format!("{kind}workspaces: [{{ path: '{path}', kind: own, {dirs} }}]")
    };
    parse(&at("work")).unwrap();
    let error = outlived(&at("."));
    assert!(error.reason.contains("`AGENTS.md` could be a directory"), "{error}");
    for name in [".ready", ".log", ".aside"] {
        let error = outlived(&at("work").replace(name, ".workfs"));
        assert!(error.reason.contains("`.workfs`: workfs shows"), "{error}");
    }
}

#[test]
fn what_is_written_reads_back_the_same() {
    for config in [
        Config::default(),
        parse("workspaces: []").unwrap(),
        parse(
            "workspaces:\n- { path: '**/work', kind: task, policy: flag, strict: true,\n\
             dirs: { inbox: 'to \"do\"', assigned: ['w/{owner}', 'yes/{owner}'] } }\n\
             - { path: 'on', kind: task }\n- { path: '1', kind: task }\n- { path: ., kind: task }\n",
        )
        .unwrap(),
    ] {
        let text = config.to_yaml();
        let again = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(again.to_yaml(), text);
        assert_eq!(again.bindings().len(), config.bindings().len());
        for (a, b) in again.bindings().iter().zip(config.bindings()) {
            assert_eq!(
                (a.path.as_str(), &a.dirs, a.policy, a.strict),
                (b.path.as_str(), &b.dirs, b.policy, b.strict)
            );
        }
        assert_eq!(Config::from_layout("layout", &text, &|_| unreachable!()).unwrap().to_yaml(), text);
    }
}

#[test]
fn entries_without_other_names_share_one_kind() {
    let config = Config::default();
    let [a, b] = config.bindings() else { panic!("two by default") };
    assert!(Arc::ptr_eq(&a.kind, &b.kind));
}

#[test]
fn agents_md_is_short_and_names_the_configured_directories() {
    let text = agents_md(&Config::default(), &TreePath::root(), Reader::default());
    for part in [
        "`ls work/inbox/`",
        "`mkdir -p work/assigned/YOU`",
        "`ls work/ready/`",
        "`mv work/ready/.next work/assigned/YOU/`",
        "`mv work/inbox/X.yaml work/assigned/YOU/`",
        "`mv work/assigned/YOU/X.yaml work/done/YOU/`",
        "result.summary",
        "error.message",
        "assigned, in_progress, blocked, error",
        "sed -i 's/^status:.*/status: in_progress/'",
        ".workfs/rejected/",
        ".workfs/why",
        "X.yaml.why",
        "work/collaboration",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    for errno in ["ENOENT", "EEXIST", "EINVAL", "EPERM", "EACCES", "EBUSY", "ESTALE"] {
        assert!(text.contains(errno), "{errno}");
    }
    let renamed = workspace("    dirs: { inbox: to do, assigned: \"working/{owner}\" }\n");
    let text = agents_md(&renamed, &TreePath::root(), Reader::default());
    assert!(text.contains("ready=\"work/ready\"; lane=\"work/working/$me\""), "{text}");
    assert!(!text.contains("work/inbox") && !text.contains("assigned/"), "{text}");
}

#[test]
fn agents_md_of_a_part_names_what_is_in_the_part() {
    let seen = |config: &Config, root: &str| agents_md(config, &path(root), Reader::default());
    let text = seen(&Config::default(), "work");
    assert!(!text.contains("rejected") && text.contains("`cat .workfs/why`"), "{text}");
    assert!(text.contains("`ls ready/`") && text.contains("mkdir -p assigned/YOU"), "{text}");
    assert!(text.contains("- `collaboration` (task)") && !text.contains("work/"), "{text}");
    let text = seen(&Config::default(), "work/collaboration");
    assert!(text.contains("`ls inbox/`") && !text.contains("collaboration"), "{text}");
    let text = seen(&Config::default(), "work/assigned/bob");
    assert!(text.contains("No workspace lies whole"), "{text}");
    let globs = parse("workspaces: [{ path: 'team-*/x/**/todo', kind: task }]").unwrap();
    assert!(seen(&globs, "team-a/x").contains("matches `**/todo`"), "{}", seen(&globs, "team-a/x"));
    assert!(seen(&globs, "team-a/x/y/todo").contains("`ls inbox/`"));
    assert!(seen(&globs, "other").contains("No workspace lies whole"));
    let glob = parse("workspaces: [{ path: 'team-*/todo', kind: task }]").unwrap();
    assert!(seen(&glob, "team-a").contains("`ls todo/inbox/`"), "{}", seen(&glob, "team-a"));
}

#[test]
fn agents_md_never_gets_long() {
    let entry =
        |n: usize| format!("- {{ path: 'team{n}/*', kind: task, strict: true, policy: flag }}\n");
    let many: String = (0..64).map(entry).collect();
    let globs = parse(&format!("workspaces:\n{many}")).unwrap();
    let bob = AgentName::new("bob").unwrap();
    for config in [Config::default(), parse("workspaces: []").unwrap(), globs] {
        for (agent, is_read_only) in [
            (None, false),
            (None, true),
            (Some((&bob, Role::Agent)), false),
            (Some((&bob, Role::Observer)), true),
        ] {
            let text = agents_md(&config, &TreePath::root(), Reader { agent, is_read_only });
            let lines = text.lines().count();
            assert!(lines <= agents_md::LINES_MAX, "{lines} lines:\n{text}");
            assert!(text.lines().all(|line| line.len() <= 160), "{text}");
        }
    }
}

/// Runs the worked example on plain directories, on a file that has the claim's status already:
/// what agents are told to type has to work as shell.
#[test]
fn the_worked_example_of_agents_md_runs() {
    let config = workspace("    dirs: { inbox: [to do], assigned: \"$w on/{owner}\" }\n");
    let text = agents_md(&config, &TreePath::root(), Reader::default());
    let script = text.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let script = script.replace("me=YOU", "me=bob");
    let root = tempfile::tempdir().unwrap();
    let lane = root.path().join("work/$w on/bob");
    std::fs::create_dir_all(&lane).unwrap();
    // What a mount does with `.next` is the mount's to test: here the link alone is moved.
    std::fs::create_dir_all(root.path().join("work/ready")).unwrap();
    std::os::unix::fs::symlink("a.yaml", root.path().join("work/ready/.next")).unwrap();
    // Without a line end, as editors leave it.
    std::fs::write(lane.join("a.yaml"), "status: assigned\ntitle: x").unwrap();
    let run = std::process::Command::new("sh")
        .args(["-euc", &script])
        .current_dir(root.path())
        .output()
        .unwrap();
    assert!(run.status.success(), "{script}\n{}", String::from_utf8_lossy(&run.stderr));
    let done = std::fs::read_to_string(root.path().join("work/done/bob/a.yaml")).unwrap();
    let value: serde_json::Value = serde_saphyr::from_str(&done).unwrap();
    let kind = &config.bindings()[0].kind;
    assert_eq!(value["status"], "in_progress");
    let finish = kind
        .transition(
            kind.state_named("assigned").unwrap(),
            kind.state_named("done").unwrap(),
            crate::kind::Role::Agent,
        )
        .unwrap();
    assert_eq!(kind.judge_entry(finish, &value), Ok(()));
    let left: BTreeSet<_> =
        std::fs::read_dir(lane).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, BTreeSet::from([".next".into()]));
}

#[test]
fn a_layout_brings_kinds_and_the_kept_configuration_holds_them() {
    let task = builtin::task();
    let definition = task.source().definition.replace("kind: task", "kind: errand");
    let definition = definition.replace("task.v1.json", "errand.v1.json");
    let schema = &task.source().schema;
    let layout = "kinds: [{ file: kinds/errand.kind.yaml }]\n\
                  workspaces: [{ path: errands, kind: errand }]\n";
    let load = |definition: &str| {
        let definition = definition.to_owned();
        move |name: &str| match name {
            "kinds/errand.kind.yaml" => Ok(definition.clone()),
            "kinds/errand.v1.json" => Ok(schema.clone()),
            other => Err(format!("no {other}")),
        }
    };
    let config = Config::from_layout("layout.yaml", layout, &load(&definition)).unwrap();
    let kept = parse(&config.to_yaml()).unwrap();
    for config in [&config, &kept] {
        let kind = &config.bind(&path("errands")).unwrap().kind;
        assert_eq!(kind.name().as_str(), "errand");
        assert_eq!((&kind.source().definition, &kind.source().schema), (&definition, schema));
        assert_eq!(config.kinds().own().count(), 1);
    }
    // What is wrong is told in the file and the line where it is.
    let refused = |layout: &str, definition: &str| {
        Config::from_layout("layout.yaml", layout, &load(definition)).unwrap_err()
    };
    let error = refused(layout, &definition.replace("    terminal: true", "    terminl: true"));
    assert_eq!(error.file, "kinds/errand.kind.yaml");
    assert!(error.line.is_some() && error.reason.contains("terminal"), "{error}");
    let error = refused(layout, &definition.replace("errand.v1.json", "other.json"));
    assert!(error.line == Some(3) && error.reason.contains("no kinds/other.json"), "{error}");
    let error = refused(layout, &definition.replace("kind: errand", "kind: task"));
    assert!(error.reason.contains("already"), "{error}");
    let error = refused(&layout.replace("file:", "definition:"), &definition);
    assert!(error.reason.contains("`file`, or"), "{error}");
    let error = refused(&layout.replace("errand.kind", "missing.kind"), &definition);
    assert_eq!((error.file.as_str(), error.line), ("layout.yaml", Some(1)));
    // Files are read for a layout alone.
    assert!(parse(layout).unwrap_err().reason.contains("init --layout"));
}

/// A task's schema with a description.
fn described(text: &str) -> String {
    let mut schema: serde_json::Value =
        serde_json::from_str(&builtin::task().source().schema).unwrap();
    schema["description"] = text.into();
    schema.to_string()
}

/// The definition of a task under another name, with the schema in this file.
fn task_as(name: &str, schema: &str) -> String {
    let definition = builtin::task().source().definition.replace("task.v1.json", schema);
    definition.replace("kind: task", &format!("kind: {name}"))
}

#[test]
fn whatever_the_texts_of_a_configuration_hold_it_is_kept_and_read_back() {
    // All that one plane of Unicode has: some of it YAML does not take as it is.
    let odd: String = (1..=0xffff_u32).filter_map(char::from_u32).collect();
    let (odd, long) = (described(&odd), described(&"x".repeat(200_000)));
    let load = |name: &str| match name.strip_suffix(".kind.yaml") {
        Some(id) => Ok(task_as(id, &format!("{id}.json"))),
        None => Ok(if name == "odd.json" { odd.clone() } else { long.clone() }),
    };
    let layout = "kinds: [{ file: odd.kind.yaml }, { file: a.kind.yaml }, { file: b.kind.yaml }]\n\
                  schemas: [{ name: \"s\\u007f\", file: odd.json }]\n\
                  workspaces: [{ path: \"w\\x7f\\uFFFE\", kind: odd }]\n";
    let config = Config::from_layout("layout.yaml", layout, &load).unwrap();
    let kept = Config::kept(Some(&config.to_keep().unwrap())).unwrap();
    assert_eq!(kept.to_yaml(), config.to_yaml());
    assert_eq!(kept.bindings()[0].kind.source().schema, odd);
    assert_eq!(kept.bindings()[0].path.as_str(), "w\u{7f}\u{fffe}");
}

#[test]
fn nothing_is_put_away_where_a_directory_names_an_owner() {
    let layout = |dir: &str| {
        format!(
            "workspaces:\n- path: w\n  kind: task\n  dirs: {{ archive: \"{dir}\" }}\n  \
             chores: {{ archive: true }}\n"
        )
    };
    Config::parse("layout", &layout("old")).unwrap();
    let error = Config::parse("layout", &layout("old/{owner}")).unwrap_err();
    assert!(error.reason.contains("the directory of `archive` names an owner"), "{error}");
    assert_eq!(error.line, Some(5), "{error}");
    Config::kept(Some(&layout("old/{owner}"))).unwrap();
}

#[test]
fn what_could_not_be_read_back_is_not_kept() {
    // Each of its characters takes six bytes in the text that is kept.
    let odd = described(&"\u{7f}".repeat(250_000));
    let load = |name: &str| match name.strip_suffix(".kind.yaml") {
        Some(id) => Ok(task_as(id, "s.json")),
        None => Ok(odd.clone()),
    };
    let files: Vec<String> = (0..6).map(|n| format!("{{ file: k{n}.kind.yaml }}")).collect();
    let layout = |kinds: &[String]| format!("kinds: [{}]\nworkspaces: []\n", kinds.join(", "));
    let parse = |kinds: &[String]| Config::from_layout("layout", &layout(kinds), &load).unwrap();
    assert!(parse(&files[..1]).to_keep().is_ok());
    let error = parse(&files).to_keep().unwrap_err();
    assert!(error.reason.contains("over the limit"), "{error}");
}

#[test]
fn the_default_directories_are_those_of_tasks() {
    let all: Vec<String> =
        Config::default().directories().iter().map(ToString::to_string).collect();
    assert_eq!(all[..5], ["work", "work/inbox", "work/assigned", "work/done", "work/dead"]);
    assert_eq!(all[5..7], ["work/fridge", "work/archive"]);
    assert!(all.contains(&"work/collaboration/inbox".to_owned()));
    let globs = Config::parse("layout", "workspaces: [{path: 'x/*/work', kind: task}]\n").unwrap();
    assert!(globs.directories().is_empty());
}
