//! `AGENTS.md` at the root of the mount: all that an agent with a shell needs, made from the
//! configuration.
//!
//! What must stay true: at most 60 lines (a test counts them); every directory, status and field in
//! it comes from a kind; it mentions only what exists.

use super::path_glob::PathGlob;
use super::{Binding, Config, Policy};
use crate::kind::{FieldPath, Kind, Role, State, StatusMove, Statuses, Transition};
use crate::names::{AgentName, TreePath};

/// More would not be read.
#[cfg(test)]
pub(super) const LINES_MAX: usize = 60;

/// Workspaces that are listed by name; the rest is in the configuration.
const LISTED_MAX: usize = 5;

/// Who reads `AGENTS.md` of an agent's mount.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    /// The agent.
    pub name: &'a AgentName,
    /// What it may do.
    pub role: Role,
}

/// The text of `AGENTS.md` for this configuration, in a mount that shows the directory `root` of the
/// tree; for the agent whose mount it is, if it is one's.
#[must_use]
pub fn agents_md(config: &Config, root: &TreePath, reader: Option<Reader<'_>>) -> String {
    let mut out = String::from(
        "# How to work here\n\n\
         This directory is a workfs mount: work lies in plain files, `mv` claims it, saving checks \
         it.\nPaths below count from this directory.\n",
    );
    if let Some(Reader { name, role: Role::Observer }) = reader {
        out.push_str(&format!("You are {name}, an observer: you read, and change nothing.\n"));
    }
    let me = reader.map(|reader| reader.name.as_str());
    // In a mount of a part `.workfs/` has little.
    let is_whole = root.names().is_empty();
    let seen: Vec<(PathGlob, &Binding)> = config
        .bindings()
        .iter()
        .filter_map(|binding| Some((binding.path.seen_from(root.names())?, &**binding)))
        .collect();
    let guides = || seen.iter().filter_map(|(path, binding)| Guide::of(path, binding, me));
    let literal = guides().find(|guide| guide.path.literal().is_some());
    let Some(guide) = literal.or_else(|| guides().next()) else {
        list_workspaces(&mut out, (&seen, is_whole), None);
        out.push_str(match (seen.is_empty(), is_whole) {
            (true, true) => "\nNo directory here is a workspace yet: see `.workfs/config.yaml`.\n",
            (true, false) => {
                "\nNo workspace lies whole in the part of the tree that this mount shows.\n"
            }
            (false, true) => {
                "\nNo agent claims and finishes records here: who moves what is in \
                 `.workfs/kinds/`.\n"
            }
            (false, false) => "\nNo agent claims and finishes records here.\n",
        });
        return out;
    };
    list_workspaces(&mut out, (&seen, is_whole), Some(guide.kind));
    guide.steps(&mut out);
    guide.example(&mut out);
    guide.errors(&mut out, is_whole);
    out
}

/// Lists them; `guided` is the kind of which the steps are told. Where it is the only workspace, the
/// steps say all.
fn list_workspaces(
    out: &mut String,
    (seen, is_whole): (&[(PathGlob, &Binding)], bool),
    guided: Option<&Kind>,
) {
    let steps = match guided {
        Some(_) if seen.len() < 2 => return,
        None if seen.is_empty() => return,
        None => String::new(),
        Some(kind) if seen.iter().all(|(_, one)| one.kind.name() == kind.name()) => {
            "; the same steps in each".to_owned()
        }
        Some(kind) => format!("; the steps are those of a {}", kind.name()),
    };
    out.push_str(&format!("\nWorkspaces (each has its own ids{steps}):\n"));
    for (path, binding) in seen.iter().take(LISTED_MAX) {
        let dirs: Vec<String> =
            binding.kind.states().map(|(_, state)| format!("`{}`", state.shown(None))).collect();
        let kind = binding.kind.name();
        out.push_str(&format!("- `{path}` ({kind}): {}\n", dirs.join(" ")));
    }
    if seen.len() > LISTED_MAX {
        let more = seen.len() - LISTED_MAX;
        let all = if is_whole { ": `.workfs/config.yaml`" } else { "" };
        out.push_str(&format!("- and {more} more{all}\n"));
    }
}

/// The life that an agent leads a record through: found, claimed, finished.
struct Guide<'c> {
    /// The agent whose mount it is, if it is one's.
    me: Option<&'c str>,
    binding: &'c Binding,
    /// Its workspaces, from the root of the mount.
    path: &'c PathGlob,
    kind: &'c Kind,
    inbox: &'c State,
    claim: &'c Transition,
    lane: &'c State,
    finish: &'c Transition,
    done: &'c State,
}

impl<'c> Guide<'c> {
    /// `None` where the kind has no such life for an agent.
    fn of(path: &'c PathGlob, binding: &'c Binding, me: Option<&'c str>) -> Option<Self> {
        let kind = &*binding.kind;
        let inbox = kind.initial();
        let claim = kind.claim().filter(|claim| claim.by.contains(&Role::Agent))?;
        let lane = Some(kind.state(claim.to)).filter(|lane| lane.has_owner())?;
        let finish = kind.finish_from(claim.to, Role::Agent)?;
        let (inbox, done) = (kind.state(inbox), kind.state(finish.to));
        Some(Guide { me, binding, path, kind, inbox, claim, lane, finish, done })
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
        let me = self.me.unwrap_or("YOU");
        let dir = |state| self.dir(state, me);
        let (inbox, lane, done) = (dir(self.inbox), dir(self.lane), dir(self.done));
        let ready = self.ready();
        let (fields, ext) = (self.kind.fields(), self.ext());
        out.push_str(&match self.me {
            Some(me) => format!("\n## Steps (you are {me}: this mount is {me}'s)\n"),
            None => "\n## Steps (YOU: your name, of letters, digits, `.`, `_`, `-`)\n".to_owned(),
        });
        if self.path.literal().is_none() {
            out.push_str(&format!("WORKSPACE: a directory that matches `{}`.\n", self.path));
        }
        out.push_str(&format!(
            "1. Find: `ls {ready}/` is what is ready to be claimed, best first. Why others in `ls \
             {inbox}/` are not: `cat {inbox}/X.{ext}.why`.\n\
             2. Claim: `mkdir -p {lane}`, then `mv {ready}/.next {lane}/` takes the best: \
             `{lane}/.next` leads to it.\n   Or `mv {inbox}/X.{ext} {lane}/`: of several, one wins; \
             for the others `mv` fails.\n   The `mv` itself writes {}. `cat {ready}/.wait` waits two \
             seconds for something.\n\
             3. Save: edit `{lane}/X.{ext}` in place with any tool and check its exit status.\n   \
             Not 0: nothing was saved and the old text is still there.\n",
            self.written_on_claim(),
        ));
        if self.binding.policy == Policy::Flag {
            out.push_str(&format!(
                "   A text that is not valid is saved, too, and then cannot be moved until you mend it: \
                 `cat {lane}/X.{ext}.why`.\n"
            ));
        }
        if let (Some(status), Statuses::Listed(values)) = (&fields.status, &self.lane.status) {
            let moves = self.moves(status);
            out.push_str(&format!("   `{status}` is one of {}.{moves}\n", values.join(", ")));
        }
        let required: Vec<String> =
            self.required_at_the_end().iter().map(|path| format!("`{path}`")).collect();
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
        let strict: Vec<String> = match self.binding.strict {
            true => self.kind.strict().iter().map(|path| format!("`{path}`")).collect(),
            false => Vec::new(),
        };
        let rest = if strict.is_empty() { " or left out" } else { "" };
        out.push_str(&format!(
            "\n\nA new {}: write `{inbox}/ID.{ext}` (letters, digits, `.`, `_`, `-`). Its `{}` is \
             ID{rest}.\n",
            self.kind.name(),
            fields.id,
        ));
        if !strict.is_empty() {
            out.push_str(&format!("Every text that is saved must have {}.\n", strict.join(", ")));
        }
    }

    /// The status of a new record, where a claim leaves it alone: the lane has it, too.
    fn status_kept(&self) -> Option<&str> {
        let new = self.inbox.status.first();
        new.or(self.lane.status.first()).filter(|status| self.lane.status.contains(status))
    }

    /// The fields without which a record cannot be finished.
    fn required_at_the_end(&self) -> Vec<&'c FieldPath> {
        let status = self.done.status.first();
        let by_status =
            self.done.status_requires.iter().filter(|(when, _)| Some(&**when) == status);
        let by_status = by_status.flat_map(|(_, paths)| paths);
        let mut all: Vec<&FieldPath> = Vec::new();
        for path in self.done.requires.iter().chain(by_status).chain(&self.finish.requires) {
            if !all.contains(&path) {
                all.push(path);
            }
        }
        all
    }

    fn written_on_claim(&self) -> String {
        let fields = self.kind.fields();
        let status = fields.status.as_deref().filter(|_| self.status_kept().is_none());
        let named = [status, fields.owner.as_deref()];
        let stamps = self.claim.stamps.iter().map(|stamp| stamp.field.as_str());
        let all: Vec<String> =
            named.into_iter().flatten().chain(stamps).map(|field| format!("`{field}`")).collect();
        all.join(", ")
    }

    /// The moves of the status that an agent can make, and what they need.
    fn moves(&self, status: &str) -> String {
        let Some(moves) = &self.lane.moves else { return String::new() };
        let mut by_from: Vec<(&str, Vec<&str>)> = Vec::new();
        let change = |one: &&StatusMove| one.by.contains(&Role::Agent) && one.from != one.to;
        for one in moves.iter().filter(change) {
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
             me={}; ready={}; lane={}; finished={}\n\
             mkdir -p \"$lane\" \"$finished\"\n\
             mv \"$ready/.next\" \"$lane/\" || exit 1\n\
             f=\"$lane/$(readlink \"$lane/.next\")\"; cat \"$f\"\n",
            self.me.unwrap_or("YOU"),
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
        let ways: Vec<&[String]> =
            self.required_at_the_end().iter().map(|path| path.first_way()).collect();
        for (top, text) in written_out(&ways, 0) {
            out.push_str(&append(top, &text));
        }
        out.push_str("mv \"$f\" \"$finished/\" || cat \"$f.why\"\n```\n");
    }

    /// The status that an agent sets when it begins, where the kind has one for that.
    fn first_move(&self) -> Option<(&str, &str)> {
        let field = self.kind.fields().status.as_deref()?;
        let from = self.status_kept().or(self.lane.status.first())?;
        let begins = |one: &&StatusMove| {
            one.from == from
                && one.to != from
                && one.by.contains(&Role::Agent)
                && !self.kind.is_setback(self.claim.to, &one.to)
        };
        let first = self.lane.moves.as_ref()?.iter().find(begins)?;
        Some((field, &first.to))
    }

    fn errors(&self, out: &mut String, is_whole: bool) {
        let kept = if is_whole { " Refused text is kept in `.workfs/rejected/`." } else { "" };
        let (lane, ext) = (self.dir(self.lane, self.me.unwrap_or("YOU")), self.ext());
        out.push_str(&format!(
            "\n## When it fails\n\
             Why, and the way out: `cat {lane}/X.{ext}.why`, or `cat .workfs/why` (your last \
             refusals).{kept}\n{ERRORS}"
        ));
    }
}

/// Each field that these paths begin with, and its YAML with a text for each path.
fn written_out<'p>(ways: &[&'p [String]], depth: usize) -> Vec<(&'p str, String)> {
    let mut all: Vec<(&str, String)> = Vec::new();
    for way in ways {
        let Some(key) = way.first().filter(|key| all.iter().all(|(known, _)| known != key)) else {
            continue;
        };
        let same = ways.iter().filter(|way| way.first() == Some(key));
        let below: Vec<&[String]> =
            same.map(|way| &way[1..]).filter(|rest| !rest.is_empty()).collect();
        let value = if below.is_empty() { " Added the retry; 41 tests pass." } else { "" };
        let inner: String =
            written_out(&below, depth + 1).into_iter().map(|(_, text)| text).collect();
        all.push((key, format!("{}{key}:{value}\n{inner}", "  ".repeat(depth))));
    }
    all
}

/// Adds a field at the end in one write; where it is already, a second one would be refused.
fn append(top: &str, text: &str) -> String {
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

Several files all at once or not at all: `workfs txn -- sh -c '...'`, in a copy. There, save a file before you `mv` it.

`echo ... >> file` in a shell hides a failed save: use `sed -i`, `cat >>`, `cp`, python, an editor.
";
