//! `workfs ps`.

use serde_json::json;

use super::exit::Exit;
use super::mounts::ask_it;
use super::output::{Output, Stop};
use super::{Global, store};
use crate::daemon::Client;
use crate::names::Shown;

/// Runs it.
pub fn run(global: &Global, output: &Output) -> Result<Exit, Stop> {
    let paths = store::paths(global, &[])?;
    let asked = match Client::connect_or_nobody(&paths)? {
        Some(client) => ask_it(client)?,
        None => None,
    };
    let Some((daemon, mounts)) = asked else {
        if output.json {
            output.value(&json!({"daemon": null, "mounts": []}))?;
        } else {
            output.note(&format!("no daemon serves {}", paths.store().shown()));
        }
        return Ok(Exit::Nothing);
    };
    if output.json {
        output.value(&json!({"daemon": daemon, "mounts": mounts}))?;
        return Ok(Exit::Done);
    }
    let mut rows = vec![
        ["DIR", "PID", "SINCE", "AGENT", "ROLE", "ROOT", "OPTIONS", "STORE"].map(str::to_owned),
    ];
    let dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    for mount in &mounts {
        let gone = match (mount.detached, mount.private) {
            (true, _) => " (detached)",
            (false, true) => " (private)",
            (false, false) => "",
        };
        rows.push([
            format!("{}{gone}", crate::names::printable(mount.dir.as_bytes())),
            daemon.pid.to_string(),
            mount.since.clone(),
            dash(mount.agent.as_deref().unwrap_or_default()),
            mount.role.clone(),
            dash(&mount.root.to_string()),
            dash(&crate::names::printable(mount.options.as_bytes())),
            crate::names::printable(daemon.store.as_bytes()),
        ]);
    }
    for line in columns(&rows) {
        output.line(&line)?;
    }
    Ok(Exit::Done)
}

fn columns<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..N).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
