//! Names that a claim by copy took away: for the program that did it they still answer `unlink`,
//! as it expects of the second half of its claim; for everyone else they are gone.

use std::time::Instant;

use parking_lot::Mutex;
use workfs_mount::{Attr, Caller};

use crate::limits::COPY_SOURCE_GRACE;
use crate::names::FileName;
use crate::numbers::Ino;

use super::lineage::{has_ended, parent_of, process_of, removes_files};

struct Ghost {
    uid: u32,
    process: Option<u32>,
    parent_process: Option<u32>,
    dir: Ino,
    name: FileName,
    attr: Attr,
    until: Instant,
}

/// All ghosts.
#[derive(Default)]
pub(super) struct Ghosts(Mutex<Vec<Ghost>>);

impl Ghosts {
    /// `caller` took `name` in `dir` away, which was `attr`.
    pub fn add(&self, caller: &Caller, dir: Ino, name: FileName, attr: Attr) {
        let ghost = Ghost {
            uid: caller.uid,
            process: process_of(caller.pid),
            parent_process: parent_of(caller.pid),
            dir,
            name,
            attr,
            until: Instant::now() + COPY_SOURCE_GRACE,
        };
        self.0.lock().push(ghost);
    }

    /// The attributes under which `caller` still sees the name.
    pub fn find(&self, caller: &Caller, dir: Ino, name: &FileName) -> Option<Attr> {
        let mut ghosts = self.0.lock();
        if ghosts.is_empty() {
            return None;
        }
        let now = Instant::now();
        ghosts.retain(|ghost| ghost.until > now);
        let found = ghosts.iter().find(|ghost| ghost.is(caller, dir, name))?;
        Some(found.attr)
    }

    /// Lays a ghost to rest, as its own unlink does, or what it makes there anew: what others try to make
    /// there takes it from nobody. False if `caller` has none there.
    pub fn remove(&self, caller: &Caller, dir: Ino, name: &FileName) -> bool {
        let mut ghosts = self.0.lock();
        let before = ghosts.len();
        if before > 0 {
            ghosts.retain(|ghost| !ghost.is(caller, dir, name));
        }
        ghosts.len() < before
    }

    /// Whether an inode is that of a ghost: there is nothing left to open.
    pub fn is_one(&self, ino: Ino) -> bool {
        self.0.lock().iter().any(|ghost| ghost.attr.ino == ino)
    }
}

impl Ghost {
    /// The process that copied, through whichever mount (`mv` from one mount to another copies, and
    /// unlinks in the first); and, once that has ended, whoever started it to copy and unlinks by
    /// itself, and a `rm` that it starts as well (`cp …; rm …`). A shell does not unlink by itself: to
    /// it, and to everything else that it starts, the name is gone, as it is to everybody, since
    /// `test -e` asks for the truth. What `/proc` says decides no right here, only whether an unlink
    /// hears success or ENOENT for a name that is gone either way.
    fn is(&self, caller: &Caller, dir: Ino, name: &FileName) -> bool {
        if (self.dir, &self.name, self.uid) != (dir, name, caller.uid) {
            return false;
        }
        let process = process_of(caller.pid);
        if process.is_some() && process == self.process {
            return true;
        }
        let Some(starter) = self.parent_process.filter(|starter| *starter > 1) else {
            return false;
        };
        if !self.process.is_some_and(has_ended) {
            return false;
        }
        if process == Some(starter) {
            return removes_files(caller.pid) || is_no_shell(starter);
        }
        parent_of(caller.pid) == Some(starter) && removes_files(caller.pid)
    }
}

/// Programs whose commands are processes of their own.
const SHELLS: [&str; 12] =
    ["sh", "ash", "bash", "busybox", "csh", "dash", "fish", "ksh", "mksh", "tcsh", "yash", "zsh"];

/// Whether a process surely runs no shell. Its name does not tell: that of a script is the script's.
fn is_no_shell(process: u32) -> bool {
    let Ok(program) = std::fs::read_link(format!("/proc/{process}/exe")) else { return false };
    // `ksh93`, `zsh-5.9`, and what an upgrade has replaced: `bash (deleted)`.
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let name = name.trim_end_matches(" (deleted)").trim_end_matches(|c: char| !c.is_alphabetic());
    !SHELLS.contains(&name)
}
