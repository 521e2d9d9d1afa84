//! Files that are too large for one change: written under another name, which is then given up.
//!
//! What must stay true: what gets its name is the inode that was filled, whole; a name aside is that of
//! one import at a time, and what lies there otherwise was left by one that was killed.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;

use parking_lot::Mutex;

use super::super::Service;
use super::walk::Meta;
use crate::engine::{
    Command, Context, Placed, Put, PutContent, Remove, RemoveWhat, Rename, SetAttributes,
    TimeOrNow, WhileNamed, Write, WriteAt, read_plain,
};
use crate::ledger::Hash;
use crate::limits::CHUNK_BYTES;
use crate::names::{Dentry, FileName};
use crate::numbers::Ino;
use crate::refusal::{Refusal, Rule};
use crate::service::reply::pace::Pace;
use crate::store::Node;

/// Bytes of one write.
const PIECE_BYTES: usize = 1 << 20;

/// The names that imports of this process write to. Nobody else does: they have the store.
#[derive(Default)]
pub struct Parts(Mutex<HashSet<Dentry>>);

impl Parts {
    /// Such a name for one import alone; `None` while another has it.
    fn take(&self, name: Dentry) -> Option<Part<'_>> {
        let is_free = self.0.lock().insert(name.clone());
        // Not `then_some`: whose end gives the name back must not be made where it is another's.
        is_free.then(|| Part { all: self, name })
    }
}

/// Held by the import whose name it is.
struct Part<'p> {
    all: &'p Parts,
    name: Dentry,
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.name);
    }
}

/// Why a large file was not put.
pub(super) enum Why {
    /// Nobody waits for it any more.
    Interrupted,
    Unreadable(String),
    Refused(Refusal),
}

impl From<std::io::Error> for Why {
    fn from(error: std::io::Error) -> Self {
        Why::Unreadable(error.to_string())
    }
}

impl From<Refusal> for Why {
    fn from(refusal: Refusal) -> Self {
        Why::Refused(refusal)
    }
}

/// A large file on its way into the store.
pub(super) struct Big<'a, 'p> {
    pub service: &'a Service,
    pub context: Context,
    /// Where it goes, and with which attributes; its content is not this one's.
    pub put: Put,
    pub meta: &'a Meta,
    /// Its content.
    pub file: &'a mut File,
    pub pace: &'a mut Pace<'p>,
}

impl Big<'_, '_> {
    /// Puts it in its place.
    pub fn put(mut self) -> Result<Placed, Why> {
        let (parent, name) = (self.put.parent, self.put.name.clone());
        if let Some(there) = self.look(&name)? {
            return self.compared(&there);
        }
        let hash = Hash::of(name.as_bytes()).to_string();
        let aside = format!(".import-{}.tmp", &hash[..16]);
        let wrong = |why: crate::names::NameError| Refusal::new(Rule::BadName, why.to_string(), "");
        let aside = FileName::new(aside).map_err(wrong)?;
        let service = self.service;
        let Some(_part) = service.importing.take(Dentry::of(parent, aside.clone())) else {
            return Ok(Placed::Left("another import writes it just now".to_owned()));
        };
        if let Some(there) = self.look(&name)? {
            // One that has just ended has put it.
            return self.compared(&there);
        }
        if self.look(&aside)?.is_some() {
            // What an import that was interrupted left behind.
            self.run(Remove { parent, name: aside.clone(), what: RemoveWhat::File })?;
        }
        let empty = PutContent::File(std::sync::Arc::from(Vec::new()));
        let ino = match self.run(Put { name: aside.clone(), content: empty, ..self.put.clone() })? {
            Placed::Plain(ino) => ino,
            other => return Ok(other),
        };
        match self.fill(ino, &aside) {
            Ok(()) => Ok(Placed::Plain(ino)),
            Err(why) => Err(self.without_part(ino, &aside, why)),
        }
    }

    fn run<C: Command>(&self, command: C) -> Result<C::Out, Refusal> {
        self.service.engine.run(self.context.clone(), command)
    }

    fn look(&self, name: &FileName) -> Result<Option<Node>, Refusal> {
        let readers = self.service.engine.readers();
        Ok(crate::store::read(&**readers, |read| read.lookup(self.put.parent, name))?)
    }

    fn compared(&mut self, there: &Node) -> Result<Placed, Why> {
        Ok(if self.is_same(there)? {
            Placed::Unchanged(there.ino)
        } else {
            Placed::Left("other content is there".to_owned())
        })
    }

    /// Writes the content to the file, which lies aside, and gives it its attributes and its name.
    fn fill(&mut self, ino: Ino, aside: &FileName) -> Result<(), Why> {
        let size = self.copy(ino)?;
        let mtime = Some(TimeOrNow::At(self.meta.mtime));
        self.run(SetAttributes {
            mode: Some(self.put.mode),
            size: Some(size),
            atime: mtime,
            mtime,
            ..SetAttributes::none(ino)
        })?;
        let (parent, name) = (self.put.parent, aside.clone());
        let to = Dentry::of(parent, self.put.name.clone());
        let rename = Rename::to_free(Dentry::of(parent, name.clone()), to);
        self.run(WhileNamed { parent, name, ino, command: rename })?;
        Ok(())
    }

    /// Removes the part that was written, which a full disk and a full quota allow, and says so where it stays.
    fn without_part(&self, ino: Ino, aside: &FileName, why: Why) -> Why {
        let (parent, name) = (self.put.parent, aside.clone());
        let remove = Remove { parent, name: name.clone(), what: RemoveWhat::File };
        let stays = match self.run(WhileNamed { parent, name, ino, command: remove }) {
            // Whoever took it away, or put something else there.
            Err(refusal) if refusal.rule == Rule::Absent => return why,
            Ok(()) => return why,
            Err(stays) => stays,
        };
        let told = format!(
            "; a part of it stays as `{aside}` until it is imported again: {}",
            stays.reason
        );
        match why {
            Why::Interrupted => Why::Unreadable(format!("interrupted{told}")),
            Why::Unreadable(why) => Why::Unreadable(why + &told),
            Why::Refused(refusal) => {
                Why::Refused(Refusal { reason: refusal.reason.clone() + &told, ..refusal })
            }
        }
    }

    /// Copies all pieces; chunks of zeros only stay holes.
    fn copy(&mut self, ino: Ino) -> Result<u64, Why> {
        let mut at = 0;
        loop {
            let data = self.piece(at)?;
            if data.is_empty() {
                return Ok(at);
            }
            let hole = |chunk: &[u8]| chunk.iter().all(|&byte| byte == 0);
            let chunks: Vec<&[u8]> = data.chunks(CHUNK_BYTES).collect();
            for run in chunks.chunk_by(|one, next| hole(one) == hole(next)) {
                if run.first().is_some_and(|chunk| !hole(chunk)) {
                    self.run(Write { ino, at: WriteAt::Offset(at), data: run.concat() })?;
                }
                at += run.iter().map(|chunk| chunk.len() as u64).sum::<u64>();
            }
        }
    }

    /// The next piece of the content, which begins at `at`, if anybody waits for it still.
    fn piece(&mut self, at: u64) -> Result<Vec<u8>, Why> {
        if !self.pace.goes_on(at >> 20, self.meta.size >> 20, "MiB of a file") {
            return Err(Why::Interrupted);
        }
        let mut data = Vec::with_capacity(PIECE_BYTES);
        (&mut *self.file).take(PIECE_BYTES as u64).read_to_end(&mut data)?;
        Ok(data)
    }

    fn is_same(&mut self, there: &Node) -> Result<bool, Why> {
        if !there.is_plain_file() || there.size != self.meta.size {
            return Ok(false);
        }
        let mut at = 0;
        loop {
            let ours = self.piece(at)?;
            let theirs = crate::store::read(&**self.service.engine.readers(), |read| {
                read_plain(read, there, at, PIECE_BYTES)
            });
            if ours != theirs.map_err(Refusal::from)? {
                return Ok(false);
            }
            if ours.is_empty() {
                return Ok(true);
            }
            at += ours.len() as u64;
        }
    }
}
