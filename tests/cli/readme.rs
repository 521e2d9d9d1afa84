//! What README.md shows runs as it is printed, and says what it is shown to say.

use std::fs;
use std::path::Path;

use crate::harness::{Setup, left_out, needs, program};

/// A command, and the lines that are shown below it.
struct Shown<'r> {
    command: &'r str,
    said: Vec<&'r str>,
}

/// The commands of the screens that begin under this heading.
fn screens<'r>(readme: &'r str, heading: &str) -> Vec<Shown<'r>> {
    let section = readme.split(heading).nth(1).unwrap().split("\n## ").next().unwrap();
    let mut shown: Vec<Shown<'r>> = Vec::new();
    for screen in section.split("```console\n").skip(1) {
        for line in screen.split("```").next().unwrap().lines().filter(|line| !line.is_empty()) {
            match (line.strip_prefix("$ "), shown.last_mut()) {
                (Some(command), _) => shown.push(Shown { command, said: Vec::new() }),
                (None, Some(last)) => last.said.push(line),
                (None, None) => panic!("{line} was said by nothing"),
            }
        }
    }
    shown
}

/// Whether a line is that, with anything where the other has `…`.
fn is_like(line: &str, shown: &str) -> bool {
    let mut parts = shown.split('…');
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else {
        return false;
    };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.is_empty() || shown.ends_with('…')
}

// P8.1
#[test]
fn one_screen_of_the_readme_runs_as_it_is_printed() {
    if !needs(&["sed"]) {
        return left_out("the screen shows sed");
    }
    let fixture = Setup::default().prepare();
    let shown = screens(include_str!("../../README.md"), "## One screen");
    assert!(shown.len() >= 14, "{}", shown.len());
    let out = fixture.outside("screens");
    fs::create_dir(&out).unwrap();
    let mut script = String::from("cd \"$REPOSITORY\"\n");
    for (nth, Shown { command, .. }) in shown.iter().enumerate() {
        fs::write(out.join(format!("{nth}.sh")), format!("{command}\n")).unwrap();
        let file = format!("\"$SCREENS\"/{nth}");
        // In this shell, whose directory it may change.
        script += &format!(". {file}.sh > {file}.said 2>&1; echo $? > {file}.code\n");
    }
    let program = Path::new(program()).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let shell = fixture.bash().with("PATH", path).with("SCREENS", &out);
    let shell = shell
        .with("HOME", fixture.base())
        .with("WORKFS_STORE", fixture.store())
        .with("WORKFS_AGENT", "");
    shell.with("REPOSITORY", env!("CARGO_MANIFEST_DIR")).run(&script).success();
    for (nth, Shown { command, said }) in shown.iter().enumerate() {
        let read = |what: &str| fs::read_to_string(out.join(format!("{nth}.{what}"))).unwrap();
        let (told, code) = (read("said"), read("code"));
        let fails = said.iter().any(|line| line.starts_with("mv: "));
        assert_eq!(code.trim() != "0", fails, "{command} ended with {code}{told}");
        for line in said {
            assert!(told.lines().any(|told| is_like(told, line)), "{command}:\n{told}\n{line}");
        }
    }
    assert!(!fixture.store().with_extension("db-wal").exists(), "the last screen ends the daemon");
}
