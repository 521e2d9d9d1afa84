//! `AGENTS.md` at the root of the mount: all that an agent with a shell needs, made from the
//! configuration.
//!
//! What must stay true: at most 60 lines (a test counts them); every directory, status and field in
//! it comes from a kind; it mentions only what exists.

use super::path_glob::PathGlob;
use super::{Binding, Config};
use crate::kind::{FieldPath, Kind, Role, State, Statuses, Transition};
use crate::names::TreePath;

/// More would not be read.
#[cfg(test)]
pub(super) const LINES_MAX: usize = 60;

/// Workspaces that are listed by name; the rest is in the configuration.
const LISTED_MAX: usize = 5;

/// The text of `AGENTS.md` for this configuration, in a mount that shows the directory `root` of the
/// tree.
#[must_use]
pub fn agents_md(config: &Config, root: &TreePath) -> String {
    let mut out = String::from(
        "# How to work here\n\n\
         This directory is a workfs mount: work lies in plain files, `mv` claims it, saving checks \
         it.\nPaths below count from this directory.\n",
    );
    let seen: Vec<(PathGlob, &Binding)> = config
        .bindings()
        .iter()
        .filter_map(|binding| Some((binding.path.seen_from(root.names())?, &**binding)))
        .collect();
    let guides = || seen.iter().filter_map(|(path, binding)| Guide::of(path, binding));
    let literal = guides().find(|guide| guide.path.literal().is_some());
    let Some(guide) = literal.or_else(|| guides().next()) else {
        out.push_str(if root.names().is_empty() {
            "\nNo directory here is a workspace yet: see `.workfs/config.yaml`.\n"
        } else {
            "\nNo workspace lies whole in the part of the tree that this mount shows.\n"
        });
        return out;
    };
    list_workspaces(&mut out, &seen);
    guide.steps(&mut out);
    guide.example(&mut out);
    guide.errors(&mut out);
    out
}

fn list_workspaces(out: &mut String, seen: &[(PathGlob, &Binding)]) {
    if seen.len() < 2 {
        return;
    }
    out.push_str("\nWorkspaces (each has its own ids; the same steps in each):\n");
    for (path, binding) in seen.iter().take(LISTED_MAX) {
        let dirs: Vec<String> =
            binding.kind.states().map(|(_, state)| format!("`{}`", state.shown(None))).collect();
        let kind = binding.kind.name();
        out.push_str(&format!("- `{path}` ({kind}): {}\n", dirs.join(" ")));
    }
    if seen.len() > LISTED_MAX {
        let more = seen.len() - LISTED_MAX;
        out.push_str(&format!("- and {more} more: `.workfs/config.yaml`\n"));
    }
}

/// The life that an agent leads a record through: found, claimed, finished.
struct Guide<'c> {
    /// Its workspaces, from the root of the mount.
    path: &'c PathGlob,
    kind: &'c Kind,
    inbox: &'c State,
    claim: &'c Transition,
    lane: &'c State,
    done: &'c State,
}

impl<'c> Guide<'c> {
    /// `None` where the kind has no such life for an agent.
    fn of(path: &'c PathGlob, binding: &'c Binding) -> Option<Self> {
        let kind = &*binding.kind;
        let inbox = kind.initial();
        let mut steps = kind.transitions().iter().filter(|t| t.by.contains(&Role::Agent));
        let claim = steps
            .clone()
            .find(|t| t.from == inbox && t.to != inbox && kind.state(t.to).has_owner())?;
        let finish = steps.find(|t| t.from == claim.to && t.to != inbox && t.to != claim.to)?;
        Some(Guide {
            path,
            kind,
            inbox: kind.state(inbox),
            claim,
            lane: kind.state(claim.to),
            done: kind.state(finish.to),
        })
    }

    /// The computed directory of what is ready, from the root of the mount.
    fn ready(&self) -> String {
        let literal = self.path.literal();
        let path = literal.map_or_else(|| "WORKSPACE".to_owned(), |path| path.to_string());
        let name = self.kind.order().dir.to_string();
        if path.is_empty() { name } else { format!("{path}/{name}") }
    }

    /// A state's directory from the root of the mount, without the last slash.
    fn dir(&self, state: &State, me: &str) -> String {
        let root = match self.path.as_str() {
            "." => String::new(),
            path if self.path.literal().is_some() => {
                format!("{}/", path.trim_end_matches('/'))
            }
            _ => "WORKSPACE/".to_owned(),
        };
        let dir = state.shown(None).replace("<agent>", me);
        format!("{root}{}", dir.trim_end_matches('/'))
    }

    fn ext(&self) -> &str {
        self.kind.extensions().first().map_or("yaml", String::as_str)
    }

    fn steps(&self, out: &mut String) {
        let dir = |state| self.dir(state, "YOU");
        let (inbox, lane, done) = (dir(self.inbox), dir(self.lane), dir(self.done));
        let ready = self.ready();
        let (fields, ext) = (self.kind.fields(), self.ext());
        out.push_str("\n## Steps (YOU: your name, of letters, digits, `.`, `_`, `-`)\n");
        if self.path.literal().is_none() {
            out.push_str(&format!("WORKSPACE: a directory that matches `{}`.\n", self.path));
        }
        out.push_str(&format!(
            "1. Find: `ls {ready}/` is what can be claimed now, best first. What else is in `ls \
             {inbox}/` waits for something.\n\
             2. Claim: `mkdir -p {lane}`, then `mv {ready}/.next {lane}/` takes the best: \
             `{lane}/.next` leads to it.\n   Or `mv {inbox}/X.{ext} {lane}/`: of several, one wins; \
             for the others `mv` fails.\n   The `mv` itself writes {}. `cat {ready}/.wait` waits two \
             seconds for something.\n\
             3. Save: edit `{lane}/X.{ext}` in place with any tool and check its exit status.\n   \
             Not 0: nothing was saved and the old text is still there.\n",
            self.written_on_claim(),
        ));
        if let (Some(status), Statuses::Listed(values)) = (&fields.status, &self.lane.status) {
            let moves = self.moves(status);
            out.push_str(&format!("   `{status}` is one of {}.{moves}\n", values.join(", ")));
        }
        let required: Vec<String> =
            self.done.requires.iter().map(|path| format!("`{path}`")).collect();
        let first = match required.as_slice() {
            [] => String::new(),
            all => format!("save {}, then ", all.join(", ")),
        };
        out.push_str(&format!("4. Finish: {first}`mkdir -p {done}`, `mv {lane}/X.{ext} {done}/`."));
        if let (Some(status), Some(value)) = (&fields.status, self.done.status.first()) {
            out.push_str(&format!(
                "\n   The `mv` writes `{status}: {value}`: do not write it yourself."
            ));
        }
        out.push_str(&format!(
            "\n\nA new {}: write `{inbox}/ID.{ext}` (letters, digits, `.`, `_`, `-`). Its `{}` is \
             ID or left out.\n",
            self.kind.name(),
            fields.id,
        ));
    }

    fn written_on_claim(&self) -> String {
        let fields = self.kind.fields();
        let named = [fields.status.as_deref(), fields.owner.as_deref()];
        let stamps = self.claim.stamps.iter().map(|stamp| stamp.field.as_str());
        let all: Vec<String> =
            named.into_iter().flatten().chain(stamps).map(|field| format!("`{field}`")).collect();
        all.join(", ")
    }

    /// The moves of the status that an agent can make, and what they need.
    fn moves(&self, status: &str) -> String {
        let Some(moves) = &self.lane.moves else { return String::new() };
        let mut by_from: Vec<(&str, Vec<&str>)> = Vec::new();
        for one in moves.iter().filter(|one| one.by.contains(&Role::Agent)) {
            match by_from.iter_mut().find(|(from, _)| *from == one.from) {
                Some((_, to)) => to.push(&one.to),
                None => by_from.push((&one.from, vec![&one.to])),
            }
        }
        let ways: Vec<String> = by_from
            .iter()
            .map(|(from, to)| format!("{from} can become {}", to.join(" or ")))
            .collect();
        let needs = |(when, paths): &(String, Vec<FieldPath>)| {
            let paths: Vec<String> = paths.iter().map(|path| format!("`{path}`")).collect();
            format!("\n   `{status}: {when}` needs {}.", paths.join(", "))
        };
        let needs: String = self.lane.status_requires.iter().map(needs).collect();
        format!("\n   {}.{needs}", ways.join("; "))
    }

    fn example(&self, out: &mut String) {
        let dir = |state| quoted(&self.dir(state, "<agent>")).replace("<agent>", "$me");
        out.push_str(&format!(
            "\n## All of it, in sh\n```sh\n\
             me=YOU; ready={}; lane={}; finished={}\n\
             mkdir -p \"$lane\" \"$finished\"\n\
             mv \"$ready/.next\" \"$lane/\" || exit 1\n\
             f=\"$lane/$(readlink \"$lane/.next\")\"; cat \"$f\"\n",
            quoted(&self.ready()),
            dir(self.lane),
            dir(self.done),
        ));
        if let Some((field, to)) = self.first_move() {
            out.push_str(&format!(
                "sed -i 's/^{field}:.*/{field}: {to}/' \"$f\" || cat \"$f.why\"\n"
            ));
        }
        out.push_str("# ... the work itself ...\n");
        for required in &self.done.requires {
            out.push_str(&append(required));
        }
        out.push_str("mv \"$f\" \"$finished/\" || cat \"$f.why\"\n```\n");
    }

    /// The status that an agent sets when it begins.
    fn first_move(&self) -> Option<(&str, &str)> {
        let field = self.kind.fields().status.as_deref()?;
        let from = self.lane.status.first()?;
        let moves = self.lane.moves.as_ref()?;
        let first = moves.iter().find(|one| one.from == from && one.by.contains(&Role::Agent))?;
        Some((field, &first.to))
    }

    fn errors(&self, out: &mut String) {
        let (lane, ext) = (self.dir(self.lane, "YOU"), self.ext());
        out.push_str(&format!(
            "\n## When it fails\n\
             Why, and the way out: `cat {lane}/X.{ext}.why`, or `cat .workfs/why` (your last \
             refusals). Refused text is kept in `.workfs/rejected/`.\n{ERRORS}"
        ));
    }
}

/// Adds a field at the end in one write; where it is already, a second one would be refused.
fn append(required: &FieldPath) -> String {
    let keys = required.first_way();
    let Some(top) = keys.first() else { return String::new() };
    let mut text = String::new();
    for (depth, key) in keys.iter().enumerate() {
        let value = if depth + 1 == keys.len() { " Added the retry; 41 tests pass." } else { "" };
        text.push_str(&format!("{}{key}:{value}\n", "  ".repeat(depth)));
    }
    // The empty line first: the file may not end in one.
    format!(
        "if grep -q '^{top}:' \"$f\"; then echo \"edit the {top}: that is in $f\"; exit 1; fi\n\
         cat >> \"$f\" <<'END' || cat \"$f.why\"\n\n{text}END\n"
    )
}

/// In double quotes, in which a variable can be put afterwards.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        if matches!(c, '"' | '\\' | '`' | '$') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

const ERRORS: &str = "\
- ENOENT (No such file or directory): someone else claimed, moved or removed it, or nothing is ready.
- EEXIST (File exists): the id or name is taken. Look for it; overwrite nothing.
- EINVAL (Invalid argument): the text is not valid. Read why, mend it, save again.
- EPERM (Operation not permitted): the lifecycle has no such move, or the file is not valid yet.
- EACCES (Permission denied): the move is not yours to make. The reason names whose it is.
- EBUSY (Device or resource busy): it changed since you read it, or is still being written. Read
  it again, then save.
- ESTALE (Stale file handle): it went elsewhere while you had it open. Look where it is now.

Several files all at once or not at all: `workfs txn -- sh -c '...'` (in it, `.` is a copy of the mount).

`echo ... >> file` in a shell hides a failed save: use `sed -i`, `cat >>`, `cp`, python, an editor.
";
