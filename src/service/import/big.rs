//! Files that are too large for one change: written under another name, which is then given up.
//!
//! What must stay true: what gets its name is the inode that was filled, whole; a name aside is that of
//! one import at a time, and what lies there otherwise was left by one that was killed.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;

use parking_lot::Mutex;

use crate::engine::{
    Base, Context, Placed, Put, PutContent, Remove, RemoveWhat, Rename, RenameMode, SetAttributes,
    Sight, TimeOrNow, WhileNamed, Write, WriteAt, read_plain,
};
use crate::ledger::Hash;
use crate::limits::CHUNK_BYTES;
use crate::names::FileName;
use crate::numbers::Ino;
use crate::refusal::{Refusal, Rule};
use crate::store::{Class, Node, NodeType};

use super::super::Service;
use super::super::pace::Pace;
use super::walk::Meta;

/// Bytes of one write.
const PIECE_BYTES: usize = 1 << 20;

/// The names that imports of this process write to. Nobody else does: they have the store.
#[derive(Default)]
pub struct Parts(Mutex<HashSet<(Ino, FileName)>>);

impl Parts {
    /// Such a name for one import alone; `None` while another has it.
    fn take(&self, name: (Ino, FileName)) -> Option<Part<'_>> {
        let is_free = self.0.lock().insert(name.clone());
        // Not `then_some`: whose end gives the name back must not be made where it is another's.
        is_free.then(|| Part { all: self, name })
    }
}

/// Held by the import whose name it is.
struct Part<'p> {
    all: &'p Parts,
    name: (Ino, FileName),
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

/// Puts the file at `put.parent/put.name`, whose content is `file` and not that of `put`.
pub(super) fn put(
    service: &Service,
    context: &Context,
    put: Put,
    meta: &Meta,
    (file, pace): (&mut File, &mut Pace<'_>),
) -> Result<Placed, Why> {
    let (parent, name) = (put.parent, put.name.clone());
    let look = |name: &FileName| {
        let found =
            crate::store::read(&**service.engine.readers(), |read| read.lookup(parent, name));
        found.map_err(Refusal::from)
    };
    let compared = |there: &Node, how: (&mut File, &mut Pace<'_>)| {
        Ok(if is_same(service, there, meta, how)? {
            Placed::Unchanged(there.ino)
        } else {
            Placed::Left("other content is there".to_owned())
        })
    };
    if let Some(there) = look(&name)? {
        return compared(&there, (file, pace));
    }
    let hash = Hash::of(name.as_bytes()).to_string();
    let aside = format!(".import-{}.tmp", &hash[..16]);
    let wrong = |why: crate::names::NameError| Refusal::new(Rule::BadName, why.to_string(), "");
    let aside = FileName::new(aside).map_err(wrong)?;
    let Some(_part) = service.importing.take((parent, aside.clone())) else {
        return Ok(Placed::Left("another import writes it just now".to_owned()));
    };
    if let Some(there) = look(&name)? {
        // One that has just ended has put it.
        return compared(&there, (file, pace));
    }
    let run = |put| service.engine.run(context.clone(), put);
    if look(&aside)?.is_some() {
        // What an import that was interrupted left behind.
        let remove = Remove { parent, name: aside.clone(), what: RemoveWhat::File };
        service.engine.run(context.clone(), remove)?;
    }
    let empty = PutContent::File(std::sync::Arc::from(Vec::new()));
    let ino = match run(Put { name: aside.clone(), content: empty, ..put.clone() })? {
        Placed::Plain(ino) => ino,
        other => return Ok(other),
    };
    match fill(service, context, (ino, &put, &aside), meta, (file, pace)) {
        Ok(()) => Ok(Placed::Plain(ino)),
        Err(why) => Err(without_part(service, context, (parent, aside, ino), why)),
    }
}

/// Writes the content to the file, which lies aside, and gives it its attributes and its name.
fn fill(
    service: &Service,
    context: &Context,
    (ino, put, aside): (Ino, &Put, &FileName),
    meta: &Meta,
    (file, pace): (&mut File, &mut Pace<'_>),
) -> Result<(), Why> {
    let size = copy(service, context, ino, (file, meta.size, pace))?;
    let attributes = SetAttributes {
        ino,
        mode: Some(put.mode),
        uid: None,
        gid: None,
        is_chown: false,
        size: Some(size),
        atime: Some(TimeOrNow::At(meta.mtime)),
        mtime: Some(TimeOrNow::At(meta.mtime)),
    };
    service.engine.run(context.clone(), attributes)?;
    let rename = Rename {
        parent: put.parent,
        name: aside.clone(),
        new_parent: put.parent,
        new_name: put.name.clone(),
        mode: RenameMode::NoReplace,
        sight: Sight::Known(Base::Unseen),
    };
    let (parent, name) = (put.parent, aside.clone());
    service.engine.run(context.clone(), WhileNamed { parent, name, ino, command: rename })?;
    Ok(())
}

/// Removes the part that was written, which a full disk and a full quota allow, and says so where it stays.
fn without_part(
    service: &Service,
    context: &Context,
    (parent, aside, ino): (Ino, FileName, Ino),
    why: Why,
) -> Why {
    let remove = Remove { parent, name: aside.clone(), what: RemoveWhat::File };
    let removal = WhileNamed { parent, name: aside.clone(), ino, command: remove };
    let stays = match service.engine.run(context.clone(), removal) {
        // Whoever took it away, or put something else there.
        Err(refusal) if refusal.rule == Rule::Absent => return why,
        Ok(()) => return why,
        Err(stays) => stays,
    };
    let told =
        format!("; a part of it stays as `{aside}` until it is imported again: {}", stays.reason);
    match why {
        Why::Interrupted => Why::Unreadable(format!("interrupted{told}")),
        Why::Unreadable(why) => Why::Unreadable(why + &told),
        Why::Refused(refusal) => {
            Why::Refused(Refusal { reason: refusal.reason.clone() + &told, ..refusal })
        }
    }
}

/// Copies all pieces; chunks of zeros only stay holes.
fn copy(
    service: &Service,
    context: &Context,
    ino: Ino,
    (file, size, pace): (&mut File, u64, &mut Pace<'_>),
) -> Result<u64, Why> {
    let mut at = 0;
    loop {
        go_on(at, size, pace)?;
        let data = piece(file)?;
        if data.is_empty() {
            return Ok(at);
        }
        let hole = |chunk: &[u8]| chunk.iter().all(|&byte| byte == 0);
        let chunks: Vec<&[u8]> = data.chunks(CHUNK_BYTES).collect();
        for run in chunks.chunk_by(|one, next| hole(one) == hole(next)) {
            if run.first().is_some_and(|chunk| !hole(chunk)) {
                let write = Write { ino, at: WriteAt::Offset(at), data: run.concat() };
                service.engine.run(context.clone(), write)?;
            }
            at += run.iter().map(|chunk| chunk.len() as u64).sum::<u64>();
        }
    }
}

/// Before each piece.
fn go_on(at: u64, size: u64, pace: &mut Pace<'_>) -> Result<(), Why> {
    let goes_on = pace.goes_on(at >> 20, size >> 20, "MiB of a file");
    if goes_on { Ok(()) } else { Err(Why::Interrupted) }
}

fn piece(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut data = Vec::with_capacity(PIECE_BYTES);
    file.take(PIECE_BYTES as u64).read_to_end(&mut data)?;
    Ok(data)
}

fn is_same(
    service: &Service,
    there: &Node,
    meta: &Meta,
    (file, pace): (&mut File, &mut Pace<'_>),
) -> Result<bool, Why> {
    let comparable = there.node_type == NodeType::File && there.class == Class::Plain;
    if !comparable || there.size != meta.size {
        return Ok(false);
    }
    let mut at = 0;
    loop {
        go_on(at, meta.size, pace)?;
        let ours = piece(file)?;
        let theirs = crate::store::read(&**service.engine.readers(), |read| {
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
