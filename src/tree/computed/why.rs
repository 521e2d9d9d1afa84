//! What `.workfs/why` and `X.yaml.why` say.
//!
//! What must stay true: an agent's mount shows what was refused to that agent, an operator's what
//! was refused to anybody, both only of what the mount shows. Of these each user sees its own;
//! root, and who runs the store, see all.

use std::fmt::Write as _;

use crate::config::Config;
use crate::engine::{
    Outlook, Who, breach, flaw, for_roles, governed, mode_allows, path_of, path_of_dir,
    sees_refusal,
};
use crate::names::{Dentry, FileName, TreePath, path_text, printable};
use crate::numbers::{Ino, RefusalKey};
use crate::refusal::Rule;
use crate::store::{Class, Read, Record, RefusalRow, RefusedText, Result, Standing};

use super::Viewer;

/// Refusals that `.workfs/why` shows, newest first.
const SHOWN_MAX: usize = 50;

/// What was refused to who looks.
pub(super) fn refusals(read: &dyn Read, viewer: &Viewer) -> Result<String> {
    let mut out = String::new();
    push_refused_to_all(&mut out, viewer);
    let mut shown = 0;
    let root = path_of_dir(read, viewer.root)?;
    // The root of a part that was removed has no name, and nothing is below it.
    let is_there = viewer.root == workfs_mount::ROOT || !root.names().is_empty();
    read.refusals(&mut |row| {
        if !is_there {
            return false;
        }
        if sees_refusal(&row, viewer.uid, (viewer.role, &viewer.actor)) {
            shown += usize::from(push_refusal(&mut out, &root, &row));
        }
        shown < SHOWN_MAX
    })?;
    if out.is_empty() {
        out.push_str("nothing of yours was refused\n");
    }
    Ok(out)
}

/// What was refused, if it is about something below `root`, the directory that is the mount's.
fn push_refusal(out: &mut String, root: &TreePath, row: &RefusalRow) -> bool {
    let RefusalRow { at, operation, path, errno, why, key, .. } = row;
    let path = match TreePath::parse(path) {
        Ok(path) => path.below(root).map(|below| below.to_string()),
        Err(_) => root.names().is_empty().then(|| path_text(path)),
    };
    let Some(path) = path else { return false };
    // What is refused at the socket may be about no path.
    let about = if path.is_empty() { path } else { format!(" {path}") };
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "{} {operation}{about} {errno} [{} {}]",
        at.rfc3339(),
        why.rule.code(),
        why.rule.title(),
    );
    push_reason(out, why);
    // A mount of a part has no such directory.
    if row.rejected_bytes > 0 && root.names().is_empty() {
        let name = printable(&row.rejected_name());
        let _ = writeln!(out, "  kept:   .workfs/rejected/{name} ({} bytes)", row.rejected_bytes);
    }
    let _ = writeln!(out, "  number: {key}\n");
    true
}

/// What is refused to all. Of whom it was refused to nothing is kept, since that cannot be written, either.
fn push_refused_to_all(out: &mut String, viewer: &Viewer) {
    let Some(refusal) = viewer.refuses.clone() else { return };
    let (code, title) = (refusal.rule.code(), refusal.rule.title());
    let _ = writeln!(out, "now changes are refused [{code} {title}]");
    push_reason(out, &refusal.into());
    out.push('\n');
}

/// What is wrong with a draft or a flagged record.
fn push_rule(out: &mut String, why: &RefusedText) {
    let _ = writeln!(out, "  rule:   {} {}", why.rule.code(), why.rule.title());
    push_reason(out, why);
}

fn push_reason(out: &mut String, why: &RefusedText) {
    let _ = writeln!(out, "  why:    {}", why.reason);
    if let Some(place) = why.place {
        let _ = writeln!(out, "  where:  line {}, column {}", place.line, place.column);
    }
    let _ = writeln!(out, "  do:     {}", why.remedy);
}

/// What `X.yaml.why` says.
pub(super) fn file(read: &dyn Read, viewer: &Viewer, ino: Ino) -> Result<String> {
    let (config, now) = (&*viewer.config, viewer.now);
    let mut out = String::new();
    let last = if let Some(draft) = read.draft(ino)? {
        out.push_str("this file is a draft: it cannot be claimed or moved to another state\n");
        match &draft.why {
            Some(why) => {
                push_rule(&mut out, why);
            }
            None => out.push_str("  why:    nothing was written to it yet\n"),
        }
        last_refusal_at(read, draft.dir, &draft.name)?
    } else if let Some(record) = read.record_at(ino)? {
        if let Some(outlook) = Outlook::of(read, config, &record, (now, &viewer.ends))? {
            let _ = writeln!(out, "{outlook}");
        }
        if let Some(flaw) = flaw(read, config, &record, viewer.role)? {
            push_rule(&mut out, &flaw.into());
        } else if let Some(breach) = breach(read, config, &record)? {
            push_rule(&mut out, &breach.told().into());
        }
        last_refusal_since(read, config, &record)?
    } else if let Some(Dentry { dir, name }) = read.file_name(ino)? {
        out.push_str("this file is checked when it is saved\n");
        last_refusal_at(read, dir, &name)?
    } else {
        return Ok("this file is gone\n".to_owned());
    };
    push_mode(&mut out, read, viewer, ino)?;
    push_refused_to_all(&mut out, viewer);
    if let Some(row) = last {
        out.push_str("last refused:\n");
        push_refusal(&mut out, &path_of_dir(read, viewer.root)?, &row);
    }
    Ok(out)
}

/// What the kernel refuses by permission bits it tells nobody, so that nothing is noted of it.
fn push_mode(out: &mut String, read: &dyn Read, viewer: &Viewer, ino: Ino) -> Result<()> {
    let Some(mut node) = read.node(ino)? else { return Ok(()) };
    if viewer.shows_roles && viewer.agents.bound(viewer.uid).is_some() && node.class != Class::Plain
    {
        node.mode = for_roles(node.mode);
    }
    let who = Who { uid: viewer.uid, gid: viewer.gid, groups: &[] };
    if !mode_allows(&node, who, 0o2) {
        let (mode, owner, uid) = (node.mode & 0o7777, node.uid, viewer.uid);
        let _ = writeln!(out, "  mode:   {mode:03o} of user {owner}: user {uid} may not write it");
    }
    Ok(())
}

fn last_refusal_at(read: &dyn Read, dir: Ino, name: &FileName) -> Result<Option<RefusalRow>> {
    read.last_refusal_of(&path_of(read, dir, name)?.to_bytes())
}

/// The newest refusal of a record since it changed, under whichever of its names it was filed: that
/// of a move names where the record was to go.
fn last_refusal_since(
    read: &dyn Read,
    config: &Config,
    record: &Record,
) -> Result<Option<RefusalRow>> {
    let Standing::Live { dir, name, .. } = &record.standing else { return Ok(None) };
    let Some(home) = governed(read, config, *dir)? else { return Ok(None) };
    // Not the file's time: editors set modes and times after a save that was refused.
    let Some(version) = read.version(record.version_g)? else { return Ok(None) };
    let lies = home.dir_path().join(name.clone()).to_bytes();
    let mut last = None;
    read.refusals(&mut |row| {
        if row.at < version.at {
            return false;
        }
        // Who looked for it where it is not came too late: nothing was refused to this record.
        let late = matches!(row.why.rule, Rule::Absent | Rule::Taken);
        if row.path == lies || (!late && home.names(&row.path, &record.id)) {
            last = Some(row);
        }
        last.is_none()
    })?;
    Ok(last)
}

/// What `X.why` says of a file that was refused when it was new, and is not there.
pub(super) fn unmade(read: &dyn Read, viewer: &Viewer, key: RefusalKey) -> Result<String> {
    let mut out = String::from("this file was refused when it was new, and is not there\n");
    if let Some(row) = refusal(read, key)?
        && sees_refusal(&row, viewer.uid, (viewer.role, &viewer.actor))
    {
        out.push_str("last refused:\n");
        push_refusal(&mut out, &path_of_dir(read, viewer.root)?, &row);
    }
    Ok(out)
}

/// The refusal of this number, if it is kept.
pub(in crate::tree) fn refusal(read: &dyn Read, key: RefusalKey) -> Result<Option<RefusalRow>> {
    let mut found = None;
    read.refusals(&mut |row| {
        let goes_on = row.key > key;
        found = Some(row).filter(|row| row.key == key);
        goes_on
    })?;
    Ok(found)
}
