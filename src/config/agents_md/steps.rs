//! The steps by which an agent leads a record through its life, and what the errors on the way mean.

use super::super::Policy;
use super::{Guide, kept, word};
use crate::kind::{Becomes, EndCommand, FieldPath, OnExpiry, StatusMove, Statuses};
use crate::units::shown_duration;

impl<'c> Guide<'c> {
    pub(super) fn steps(&self, out: &mut String, is_whole: bool) {
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
            "1. Find: `ls {ready}/` is what can be claimed (`ls -U`: best first). Why others in \
             `ls {inbox}/` are not: `cat {inbox}/X.{ext}.why`.\n\
             2. Claim: `mkdir -p {lane}`, then `mv {ready}/.next {lane}/` takes the best: \
             `{lane}/.next` leads to it.\n   Or `mv {inbox}/X.{ext} {lane}/`: of several, one wins; \
             for the others `mv` fails.\n   {}`cat {ready}/.wait` waits two seconds for something.\n\
             3. Save: edit `{lane}/X.{ext}` in place with any tool and check its exit status. Not \
             0: nothing was saved, the old text is there.\n",
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
        out.push('\n');
        self.keep(out);
        self.new_one(out, is_whole);
    }

    /// How long a claim holds, how to keep it, and how to give it back.
    fn keep(&self, out: &mut String) {
        let me = self.me.unwrap_or("YOU");
        let (lane, ext) = (self.dir(self.lane, me), self.ext());
        let back = self.way_back().map(|dir| format!("`mv {lane}/X.{ext} {dir}/`"));
        let Some((ttl, then)) = self.end_of_claim(me) else {
            if let Some(back) = back {
                out.push_str(&format!("5. Give it back, if you cannot finish it: {back}.\n"));
            }
            return;
        };
        let own = match &self.kind.fields().lease {
            Some(field) => format!(", or what its `{field}` says"),
            None => String::new(),
        };
        out.push_str(&format!(
            "5. Keep: a claim ends when no sign of you was seen for {ttl}{own}: {then}.\n"
        ));
        let sign = match self.me {
            Some(_) => "Any use of this mount",
            None => "A save",
        };
        out.push_str(&format!(
            "   {sign} is a sign, so is `touch {lane}/X.{ext}`. `exec 9< .workfs/hold/X` keeps it \
             until the shell's end, which gives it back.\n"
        ));
        if let Some(back) = back {
            out.push_str(&format!("   Give it back, if you cannot finish it: {back}.\n"));
        }
    }

    /// How long a claim holds without a sign of its owner, and what then becomes of the record;
    /// `None` where nothing does.
    fn end_of_claim(&self, me: &str) -> Option<(String, String)> {
        let lease = self.lane.lease.as_ref()?;
        let status = self.kind.fields().status.as_deref();
        let then = match &lease.on_expiry {
            OnExpiry::State(to) => {
                format!("it is then in `{}/`, not yours", self.dir(self.kind.state(*to), me))
            }
            OnExpiry::Status(value) => {
                format!("it then has `{}: {value}`, and is not yours", status.unwrap_or("status"))
            }
            OnExpiry::Event => return None,
        };
        Some((shown_duration(lease.ttl), then))
    }

    /// Where somebody who cannot finish a record gives it back.
    fn way_back(&self) -> Option<String> {
        let Some(Becomes::State(to)) =
            self.kind.ending(EndCommand::Release).map(|one| &one.becomes)
        else {
            return None;
        };
        self.kind.transition(self.claim.to, *to, self.role).ok()?;
        Some(self.kind.state(*to))
            .filter(|state| !state.has_owner())
            .map(|state| self.dir(state, "YOU"))
    }

    fn new_one(&self, out: &mut String, is_whole: bool) {
        let inbox = self.dir(self.inbox, self.me.unwrap_or("YOU"));
        let id = &self.kind.fields().id;
        let mut always: Vec<String> = self.kind.required_always().map(str::to_owned).collect();
        if self.binding.strict {
            always.extend(self.kind.strict().iter().map(ToString::to_string));
        }
        let begin: Vec<String> = self.inbox.requires.iter().map(ToString::to_string).collect();
        let rest =
            if always.iter().chain(&begin).any(|one| one == id) { "" } else { " or left out" };
        let (always, begin) = (quoted(&always, &[]), quoted(&begin, &always));
        let needs = match begin.as_slice() {
            [] => String::new(),
            all => format!(" It must have {}.", all.join(", ")),
        };
        let [_, schema] = self.kind.file_names();
        let fields = if is_whole {
            format!(" Its fields: `{}`.", word(format!(".workfs/kinds/{schema}")))
        } else {
            String::new()
        };
        out.push_str(&format!(
            "\nA new {}: write `{inbox}/ID.{}` (letters, digits, `.`, `_`, `-`). Its `{id}` is \
             ID{rest}.{needs}{fields}\n",
            self.kind.name(),
            self.ext(),
        ));
        if !always.is_empty() {
            out.push_str(&format!("Every text that is saved must have {}.\n", always.join(", ")));
        }
    }

    /// The status of a new record, where a claim leaves it alone: the lane has it, too.
    pub(super) fn status_kept(&self) -> Option<&str> {
        let new = self.inbox.status.first();
        new.or(self.lane.status.first()).filter(|status| self.lane.status.contains(status))
    }

    /// The fields without which a record cannot be finished.
    pub(super) fn required_at_the_end(&self) -> Vec<&'c FieldPath> {
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
        match all.as_slice() {
            [] => String::new(),
            all => format!("The `mv` itself writes {}. ", all.join(", ")),
        }
    }

    /// The moves of the status that an agent can make, and what they need.
    fn moves(&self, status: &str) -> String {
        let Some(moves) = &self.lane.moves else { return String::new() };
        let mut by_from: Vec<(&str, Vec<&str>)> = Vec::new();
        let change = |one: &&StatusMove| one.by.contains(&self.role) && one.from != one.to;
        for one in moves.iter().filter(change) {
            match by_from.iter_mut().find(|(from, _)| *from == one.from) {
                Some((_, to)) => to.push(&one.to),
                None => by_from.push((&one.from, vec![&one.to])),
            }
        }
        let said: Vec<String> = by_from
            .iter()
            .map(|(from, to)| format!("{from} can become {}", to.join(" or ")))
            .collect();
        let needs = |(when, paths): &(String, Vec<FieldPath>)| {
            let paths: Vec<String> = paths.iter().map(|path| format!("`{path}`")).collect();
            format!("`{status}: {when}` needs {}", paths.join(", "))
        };
        let needs: Vec<String> = self.lane.status_requires.iter().map(needs).collect();
        let lines = [said.join("; "), needs.join("; ")];
        let lines = lines.iter().filter(|line| !line.is_empty());
        lines.map(|line| format!("\n   {line}.")).collect()
    }

    pub(super) fn errors(&self, out: &mut String, is_whole: bool) {
        let me = self.me.unwrap_or("YOU");
        let kept = kept(is_whole);
        let (lane, ext) = (self.dir(self.lane, me), self.ext());
        let [gone, moved] = match self.end_of_claim(me) {
            Some(_) => [
                ", nothing is ready, or your claim has ended (5)",
                "it went elsewhere while you had it open, or your claim has ended (5): look where \
                 it is, claim it again",
            ],
            None => [
                ", or nothing is ready",
                "it went elsewhere while you had it open: look where it is",
            ],
        };
        out.push_str(&format!(
            "\n## When it fails\n\
             Why, and the way out: `cat {lane}/X.{ext}.why`, or `cat .workfs/why` (your last \
             refusals).{kept}\n\
             - ENOENT (No such file or directory): someone else claimed, moved or removed it{gone}.\n\
             {ERRORS}\
             - ESTALE (Stale file handle): {moved}.\n\
             {LAST}"
        ));
    }
}

/// Fields as they are told of, each once, without those that are told of already.
fn quoted(fields: &[String], told: &[String]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for field in fields {
        if !told.contains(field) && !all.contains(field) {
            all.push(field.clone());
        }
    }
    all.iter().map(|field| format!("`{field}`")).collect()
}

const ERRORS: &str = "\
- EEXIST (File exists): the id or name is taken. Look for it; overwrite nothing.
- EINVAL (Invalid argument): the text is not valid. Read why, mend it, save again.
- EPERM (Operation not permitted): the lifecycle has no such move, or the file is not valid yet.
- EACCES (Permission denied): the move is not yours to make. The reason names whose it is.
- EBUSY (Device or resource busy): it changed since you read it, or is still being written. Read it again, then save.
";

const LAST: &str = "
Several files all at once or not at all: `workfs txn -- sh -c '...'`, in a copy. There, save a file before you `mv` it.
In a shell `echo ... >> file`, in python `open(f, 'w').write(t)` hide a failed save: use `sed -i`, `cat >>`, `cp`, `with open(f, 'w')`.
";
