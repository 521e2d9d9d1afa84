//! Names that a claim by copy took away: for the program that did it they still answer `unlink`,
//! as it expects of the second half of its claim; for everyone else they are gone.

use std::time::Instant;

use parking_lot::Mutex;
use workfs_mount::{Attr, Caller};

use crate::limits::COPY_SOURCE_GRACE;
use crate::names::FileName;
use crate::numbers::Ino;
use crate::tree::callers::lineage::{family, is_shell, line_of, removes_files};

struct Ghost {
    uid: u32,
    /// The process that copied, and those that started it, the nearest first.
    line: Vec<u32>,
    dir: Ino,
    /// The directory that showed the name as well, of what is ready.
    shown_in: Option<Ino>,
    name: FileName,
    attr: Attr,
    until: Instant,
}

/// All ghosts.
#[derive(Default)]
pub(in crate::tree) struct Ghosts(Mutex<Vec<Ghost>>);

impl Ghosts {
    /// `caller` took `name` in `dir` away, which was `attr` and was shown in another directory, too.
    pub fn add(
        &self,
        caller: &Caller,
        (dir, shown_in): (Ino, Option<Ino>),
        name: FileName,
        attr: Attr,
    ) {
        let ghost = Ghost {
            uid: caller.uid,
            line: line_of(caller.pid),
            dir,
            shown_in,
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
    /// Whose the name is to unlink: the process's that copied, through whichever mount (`mv` from one
    /// mount to another copies, and unlinks in the first), or, once that has ended, the program's that
    /// started it. Both often leave it to a `rm`: one that a family of theirs has started, or that they
    /// have become by `exec`. A shell does not unlink by itself: to it, and to everything else that it
    /// starts, the name is gone, as it is to everybody, since `test -e` asks for the truth. What
    /// `/proc` says decides no right here, only whether an unlink hears success or ENOENT for a name
    /// that is gone either way.
    fn is(&self, caller: &Caller, dir: Ino, name: &FileName) -> bool {
        let is_here = self.dir == dir || self.shown_in == Some(dir);
        if !is_here || (&self.name, self.uid) != (name, caller.uid) {
            return false;
        }
        let line = line_of(caller.pid);
        let Some(process) = line.first() else { return false };
        if removes_files(caller.pid) {
            return family(&self.line).any(|one| line.contains(&one));
        }
        // A loser that one of them starts while the winner is at work is no family.
        family(&self.line).take(2).any(|one| one == *process) && !is_shell(*process)
    }
}
