//! What `AGENTS.md` tells who may only look: an observer, or whoever reads it in a read-only mount.

use super::{LISTED_MAX, Reader, Role, Seen, list_workspaces, ready_of, state_dir, word};

impl Reader<'_> {
    pub(super) fn only_looks(&self) -> bool {
        self.is_read_only || self.is_observer()
    }

    fn is_observer(&self) -> bool {
        self.agent.is_some_and(|(_, role)| role == Role::Observer)
    }

    pub(super) fn look(&self, out: &mut String, seen: &[Seen<'_>], is_whole: bool) {
        if let Some((name, _)) = self.agent.filter(|_| self.is_observer()) {
            out.push_str(&format!("You are {name}, an observer: you read, and change nothing.\n"));
        }
        if self.is_read_only {
            out.push_str("This mount is read-only: nothing can be changed through it.\n");
        }
        list_workspaces(out, (seen, is_whole), None);
        out.push_str("\n## What there is to see\n");
        for (path, binding) in seen.iter().take(LISTED_MAX) {
            let kind = &*binding.kind;
            let inbox = word(state_dir(path, kind.state(kind.initial()), "AGENT"));
            let ext = kind.usual_extension();
            out.push_str(&format!(
                "- `ls {}/`: what can be claimed now (`ls -U`: best first); `cat {inbox}/X.{ext}.why`: why X \
                 cannot.\n",
                word(ready_of(path, kind)),
            ));
        }
        if is_whole {
            out.push_str(
                "- `.workfs/leases`: who has what, and until when. `.workfs/events`: all that \
                 happened, a JSON value a line.\n- `.workfs/history/`: the versions before this \
                 one; `.workfs/at/17/`: all as it was after event 17.\n",
            );
        }
        out.push_str(match self.is_read_only {
            true => "\nWhatever would change something fails with EROFS (Read-only file system).\n",
            false => {
                "\nWhatever would change something fails with EACCES (Permission denied): `cat \
                 .workfs/why`.\n"
            }
        });
    }
}
