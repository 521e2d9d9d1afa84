//! The tasks that are measured: valid ones of about 1.5 KB, as real ones are.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::fail::{During, Outcome};

/// The shortest text that a task may have.
pub const BYTES_MIN: usize = 1400;

/// The id of task `nth`.
pub fn id(nth: usize) -> String {
    let agents = ["ann", "bob", "cleo", "dan", "eve", "finn", "gus"];
    format!(
        "2026-{:02}-{:02}T{:02}{:02}-{}-adapter-{nth:07}",
        nth / 40320 % 12 + 1,
        nth / 1440 % 28 + 1,
        nth / 60 % 24,
        nth % 60,
        agents[nth % agents.len()]
    )
}

/// The file name of task `nth`.
pub fn name(nth: usize) -> String {
    id(nth) + ".yaml"
}

/// The text of task `nth`; `progress` is what a save changes.
pub fn text(nth: usize, progress: u64) -> String {
    let priority = ["critical", "high", "medium", "normal", "low"][nth % 5];
    let mut text = format!(
        "# Adapter {nth}\n\
         id: {}\n\
         title: \"Wire adapter {nth} to the store, and cover it with a test\"\n\
         status: new\n\
         priority: {priority}\n\
         created_at: \"2026-05-09T07:29:{:02}Z\"\n\
         created_by: bench\n\
         progress: {progress:010}\n\
         artefacts:\n  - src/adapters/a{nth}.rs\n  - tests/adapters/a{nth}.rs\n\
         context:\n  labels: [adapter, store]\n  repeat: true\n\
         description: |\n",
        id(nth),
        nth % 60,
    );
    for line in 0.. {
        if text.len() >= 1450 {
            break;
        }
        // Writing to a string cannot fail.
        let _ =
            writeln!(text, "  Step {line} of {nth}: read the inputs, change one thing, say why.");
    }
    text
}

/// Writes the tasks `from..to` into the directory `dir`.
pub fn write_all(dir: &Path, from: usize, to: usize) -> Outcome<()> {
    write_some(dir, from..to, |text| text)
}

/// Writes those tasks, with other texts, into the directory `dir`.
pub fn write_some(
    dir: &Path,
    tasks: std::ops::Range<usize>,
    other: impl Fn(String) -> String,
) -> Outcome<()> {
    fs::create_dir_all(dir).during(|| format!("making {}", dir.display()))?;
    for nth in tasks {
        let path = dir.join(name(nth));
        fs::write(&path, other(text(nth, 0))).during(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_have_the_size_of_real_ones() {
        for nth in [0, 1, 999_999] {
            let text = text(nth, u64::from(u32::MAX));
            assert!((BYTES_MIN..1700).contains(&text.len()), "{}", text.len());
            assert!(name(nth).starts_with(&id(nth)));
        }
    }
}
