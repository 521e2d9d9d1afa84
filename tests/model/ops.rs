//! What is done: operations over a tiny alphabet, so that names meet often.

use proptest::prelude::*;
use proptest::sample::select;
use workfs_mount::{RenameMode, XattrMode};

use super::client::{Flags, split};
use super::lifecycle::record_id;
use super::reference::Body;
use super::text::{TEXTS, Text};
use super::world::{Slot, Step, Who, World};

/// Directories that a laid out tree has, those of the workspace twice so that they are met oftener.
const DIRS: &[&str] = &[
    "work/inbox",
    "work/assigned/a",
    "work/assigned/b",
    "work/done/a",
    "work/inbox",
    "work/assigned/a",
    "work/done",
    "work/fridge",
    "work/archive",
    "scratch/d",
    "scratch/e",
    "work/fridge",
    "work",
];

const NAMES: &[&str] = &[
    "t1.yaml",
    "t1.yaml",
    "t1.yaml",
    "t2.yaml",
    "t1.yml",
    "t1.yaml~",
    "x.tmp",
    "tmpab12cd.yaml",
    "README.md",
    "sub",
];

/// Directories that are made, removed and moved.
const MOVED: &[&str] = &[
    "scratch/d",
    "scratch/e",
    "scratch/d/sub",
    "scratch/e/sub",
    "work/assigned/b",
    "work/assigned/c",
    "work/inbox",
    "work/inbox/sub",
    "work/done/a",
    "work/done",
    "work/fridge",
    "work/archive",
    "work/assigned",
    "work",
    "scratch",
];

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// The one of this path.
    Path(String),
    /// The record of this number, counted round, among those there are.
    Record(usize),
    /// The draft of this number.
    Draft(usize),
    /// The draft or record of this number.
    Governed(usize),
    /// The file of this number.
    File(usize),
}

/// A path, for tests that write their operations down.
pub fn at(path: &str) -> At {
    At::Path(path.to_owned())
}

/// How a program saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// `>`: truncate, write, close.
    Truncate,
    /// The same in two writes, with fsync before close.
    Pieces,
    /// Over what is there, without truncation.
    InPlace,
    /// `>>`.
    Append,
    /// A temporary file beside it, then rename.
    Temp,
    /// A file of the same name elsewhere, then rename.
    Elsewhere,
    /// The old one to `X~`, then a new one.
    Backup,
}

#[derive(Clone, Debug)]
pub enum Op {
    Put(At, Text, How, Who),
    /// Reads the one, writes the other, removes the first: a claim by copy.
    Copy(At, At, Who),
    /// The same, to another directory under the same name.
    CopyTo(At, &'static str, Who),
    /// Reads, sets the status, writes back.
    SetStatus(At, &'static str, Who),
    /// To another directory under the same name.
    Move(At, &'static str, Who),
    Rename(At, At, RenameMode, Who),
    /// To another name in its directory.
    RenameHere(At, &'static str, Who),
    MoveDir(&'static str, &'static str, RenameMode),
    Unlink(At, Who),
    Mkdir(&'static str),
    Rmdir(&'static str),
    Link(At, At),
    Symlink(At),
    Truncate(At, usize, Who),
    Chmod(At, u32),
    SetXattr(At, XattrMode),
    RemoveXattr(At),
    Open(usize, At, Flags, Who),
    Write(usize, Text, usize),
    Read(usize),
    Ftruncate(usize, usize),
    Fsync(usize),
    Close(usize),
    Compare,
    Restart,
}

/// Files that stay open between operations.
pub const OPEN_MAX: usize = 3;

fn named(dirs: &'static [&'static str]) -> impl Strategy<Value = At> {
    (select(dirs), select(NAMES)).prop_map(|(dir, name)| At::Path(format!("{dir}/{name}")))
}

/// Any path; often one where there is something.
fn path() -> impl Strategy<Value = At> {
    prop_oneof![
        3 => named(DIRS),
        1 => (0..8_usize).prop_map(At::File),
        1 => (0..8_usize).prop_map(At::Governed),
    ]
}

fn file() -> impl Strategy<Value = At> {
    prop_oneof![1 => named(&DIRS[9..11]), 2 => (0..8_usize).prop_map(At::File)]
}

fn draft() -> impl Strategy<Value = At> {
    (0..8_usize).prop_map(At::Draft)
}

/// A path where records live; often one where there is one.
fn record() -> impl Strategy<Value = At> {
    let named = (select(&DIRS[..6]), select(&NAMES[..4]));
    prop_oneof![
        2 => named.prop_map(|(dir, name)| At::Path(format!("{dir}/{name}"))),
        2 => (0..8_usize).prop_map(At::Record),
        1 => (0..8_usize).prop_map(At::Governed),
    ]
}

fn who() -> impl Strategy<Value = Who> {
    select(&[Who::Ann, Who::Bob][..])
}

fn mode() -> impl Strategy<Value = RenameMode> {
    use RenameMode::{Exchange, NoReplace, Replace};
    select(&[Replace, Replace, NoReplace, Exchange][..])
}

fn flags() -> impl Strategy<Value = Flags> {
    (any::<[bool; 3]>()).prop_map(|[truncate, append, create]| Flags {
        write: true,
        truncate,
        append,
        create,
    })
}

pub fn op() -> impl Strategy<Value = Op> {
    use How::{Append, Backup, Elsewhere, InPlace, Pieces, Temp, Truncate};
    let how = select(&[Truncate, Pieces, InPlace, Append, Temp, Elsewhere, Backup][..]);
    // The simple texts oftener than those that are wrong.
    let texts = || prop_oneof![2 => Just(Text::Fitting), 1 => select(TEXTS)];
    let status = select(&["in_progress", "assigned", "blocked", "done", "new", "nonsense"][..]);
    let size = || select(&[0_usize, 3, 7, 24, 60][..]);
    let xattr = select(&[XattrMode::Set, XattrMode::Create, XattrMode::Replace][..]);
    let bits = select(&[0o600_u32, 0o4755, 0o2750][..]);
    let slot = || 0..OPEN_MAX;
    prop_oneof![
        12 => (record(), texts(), how.clone(), who()).prop_map(|(a, t, h, w)| Op::Put(a, t, h, w)),
        4 => (path(), texts(), how, who()).prop_map(|(a, t, h, w)| Op::Put(a, t, h, w)),
        1 => (path(), record(), who()).prop_map(|(a, b, w)| Op::Copy(a, b, w)),
        3 => (record(), select(DIRS), who()).prop_map(|(a, d, w)| Op::CopyTo(a, d, w)),
        3 => (path(), select(NAMES), who()).prop_map(|(a, n, w)| Op::RenameHere(a, n, w)),
        2 => (draft(), select(NAMES), who()).prop_map(|(a, n, w)| Op::RenameHere(a, n, w)),
        4 => (record(), status, who()).prop_map(|(a, s, w)| Op::SetStatus(a, s, w)),
        9 => (record(), select(DIRS), who()).prop_map(|(a, d, w)| Op::Move(a, d, w)),
        6 => (path(), path(), mode(), who()).prop_map(|(a, b, m, w)| Op::Rename(a, b, m, w)),
        3 => (select(MOVED), select(MOVED), mode()).prop_map(|(a, b, m)| Op::MoveDir(a, b, m)),
        3 => (path(), who()).prop_map(|(a, w)| Op::Unlink(a, w)),
        3 => select(MOVED).prop_map(Op::Mkdir),
        3 => select(MOVED).prop_map(Op::Rmdir),
        4 => (file(), named(&DIRS[9..])).prop_map(|(a, b)| Op::Link(a, b)),
        1 => path().prop_map(Op::Symlink),
        2 => (path(), size(), who()).prop_map(|(a, s, w)| Op::Truncate(a, s, w)),
        1 => (path(), bits).prop_map(|(a, m)| Op::Chmod(a, m)),
        1 => (path(), xattr).prop_map(|(a, m)| Op::SetXattr(a, m)),
        1 => path().prop_map(Op::RemoveXattr),
        4 => (slot(), path(), flags(), who()).prop_map(|(s, a, f, w)| Op::Open(s, a, f, w)),
        4 => (slot(), texts(), size()).prop_map(|(s, t, o)| Op::Write(s, t, o)),
        2 => slot().prop_map(Op::Read),
        1 => (slot(), size()).prop_map(|(s, z)| Op::Ftruncate(s, z)),
        1 => slot().prop_map(Op::Fsync),
        3 => slot().prop_map(Op::Close),
        3 => Just(Op::Compare),
        1 => Just(Op::Restart),
    ]
}

impl World {
    /// The directories that most cases start with.
    pub fn lay_out(&mut self) -> Step {
        for dir in [
            "work",
            "work/inbox",
            "work/assigned",
            "work/assigned/a",
            "work/assigned/b",
            "work/done",
            "work/done/a",
            "work/fridge",
            "work/archive",
            "scratch",
            "scratch/d",
            "scratch/e",
        ] {
            self.mkdir(dir)?;
        }
        Ok(())
    }

    /// The path that is meant now.
    fn path(&self, at: &At) -> String {
        let nth = match at {
            At::Path(path) => return path.clone(),
            At::Record(nth) | At::Draft(nth) | At::Governed(nth) | At::File(nth) => nth,
        };
        let mut paths = self.model.files();
        paths.retain(|(_, body)| match body {
            Body::Record(_) => !matches!(at, At::Draft(_)),
            Body::Draft(_) => !matches!(at, At::Record(_)),
            _ => matches!(at, At::File(_)),
        });
        match paths.len() {
            0 => "work/inbox/t1.yaml".to_owned(),
            len => paths[nth % len].0.clone(),
        }
    }

    /// Does one operation with the open files `open`.
    pub fn run(&mut self, op: &Op, open: &mut [Option<Slot>; OPEN_MAX]) -> Step {
        self.trace.push(format!("{op:?}"));
        match op {
            Op::Put(at, text, how, who) => self.put(&self.path(at), *text, *how, *who),
            Op::Copy(from, to, who) => self.copy(&self.path(from), &self.path(to), *who),
            Op::CopyTo(from, dir, who) => {
                let from = self.path(from);
                self.copy(&from, &format!("{dir}/{}", split(&from).1), *who)
            }
            Op::SetStatus(at, status, who) => self.set_status(&self.path(at), status, *who),
            Op::Move(at, dir, who) => {
                let from = self.path(at);
                let to = format!("{dir}/{}", split(&from).1);
                self.rename(&from, &to, RenameMode::Replace, *who).map(drop)
            }
            Op::Rename(from, to, mode, who) => {
                self.rename(&self.path(from), &self.path(to), *mode, *who).map(drop)
            }
            Op::RenameHere(at, name, who) => {
                let from = self.path(at);
                let to = format!("{}/{name}", split(&from).0);
                self.rename(&from, &to, RenameMode::Replace, *who).map(drop)
            }
            Op::MoveDir(from, to, mode) => self.rename(from, to, *mode, Who::Ann).map(drop),
            Op::Unlink(at, who) => self.unlink(&self.path(at), *who).map(drop),
            Op::Mkdir(path) => self.mkdir(path),
            Op::Rmdir(path) => self.rmdir(path),
            Op::Link(from, to) => self.link(&self.path(from), &self.path(to)),
            Op::Symlink(at) => self.symlink("t1.yaml", &self.path(at)),
            Op::Truncate(at, size, who) => self.truncate(&self.path(at), *size, *who),
            Op::Chmod(at, bits) => self.chmod(&self.path(at), *bits),
            Op::SetXattr(at, mode) => {
                let value = self.trace.len().to_string();
                self.set_xattr(&self.path(at), "user.x", value.as_bytes(), *mode)
            }
            Op::RemoveXattr(at) => self.remove_xattr(&self.path(at), "user.x"),
            Op::Compare => self.compare(),
            Op::Restart => {
                self.close_all(open)?;
                self.restart();
                self.compare()
            }
            Op::Open(slot, at, flags, who) => {
                if let Some(old) = open[*slot].take() {
                    self.close(old)?;
                }
                open[*slot] = self.open(&self.path(at), *flags, *who)?;
                Ok(())
            }
            Op::Close(slot) => match open[*slot].take() {
                Some(file) => self.close(file).map(drop),
                None => Ok(()),
            },
            Op::Write(slot, ..) | Op::Read(slot) | Op::Ftruncate(slot, _) | Op::Fsync(slot) => {
                open[*slot].map_or(Ok(()), |file| self.run_open(op, file))
            }
        }
    }

    fn run_open(&mut self, op: &Op, file: Slot) -> Step {
        match op {
            // Mostly from the start, as programs do; a hole is still possible.
            Op::Write(_, text, offset) => {
                let offset = if *offset > 24 { *offset } else { 0 };
                self.write(file, offset, text.of("t1").as_bytes()).map(drop)
            }
            Op::Ftruncate(_, size) => self.ftruncate(file, *size),
            Op::Fsync(_) => self.fsync(file).map(drop),
            _ => self.read(file).map(drop),
        }
    }

    pub fn close_all(&mut self, open: &mut [Option<Slot>; OPEN_MAX]) -> Step {
        for slot in open {
            if let Some(file) = slot.take() {
                self.close(file)?;
            }
        }
        Ok(())
    }

    /// Opens, writes, closes; says whether all of it succeeded.
    fn write_file(&mut self, path: &str, flags: Flags, text: &str, who: Who) -> Step<bool> {
        let Some(file) = self.open(path, flags, who)? else { return Ok(false) };
        let written = text.is_empty() || self.write(file, 0, text.as_bytes())?;
        Ok(self.close(file)? && written)
    }

    pub fn put(&mut self, path: &str, text: Text, how: How, who: Who) -> Step {
        let (dir, name) = split(path);
        let text = match text {
            Text::Fitting => self.model.fitting(path),
            text => text,
        };
        let text = text.of(record_id(name).unwrap_or("t1"));
        let flags = Flags { write: true, create: true, truncate: false, append: false };
        let over = Flags { truncate: true, ..flags };
        let replace = RenameMode::Replace;
        match how {
            How::Truncate => self.write_file(path, over, &text, who).map(drop),
            How::InPlace => self.write_file(path, flags, &text, who).map(drop),
            How::Append => {
                let flags = Flags { append: true, ..flags };
                let more = if text.len() % 2 == 0 { &text } else { "note: more\n" };
                self.write_file(path, flags, more, who).map(drop)
            }
            How::Pieces => {
                let Some(file) = self.open(path, over, who)? else { return Ok(()) };
                let (first, second) = text.split_at(text.len() / 2);
                let fine = self.write(file, 0, first.as_bytes())?
                    && self.write(file, first.len(), second.as_bytes())?
                    && self.fsync(file)?;
                let _ = fine;
                self.close(file).map(drop)
            }
            How::Temp | How::Elsewhere => {
                let (stem, extension) = name.rsplit_once('.').unwrap_or((name, "x"));
                let temp = match (how, who) {
                    (How::Elsewhere, _) => format!("scratch/d/{name}"),
                    // As an editor names it, and as mkstemp does.
                    (_, Who::Bob) => format!("{dir}/.{name}.swp"),
                    _ => format!("{dir}/{stem}.ab12cd_3.{extension}"),
                };
                if self.write_file(&temp, over, &text, who)?
                    && !self.rename(&temp, path, replace, who)?
                {
                    self.unlink(&temp, who)?;
                }
                Ok(())
            }
            How::Backup => {
                let backup = format!("{path}~");
                self.rename(path, &backup, replace, who)?;
                self.write_file(path, over, &text, who).map(drop)
            }
        }
    }

    fn read_file(&mut self, path: &str, who: Who) -> Step<Option<Vec<u8>>> {
        let Some(file) = self.open(path, Flags::default(), who)? else { return Ok(None) };
        let text = self.read(file)?;
        self.close(file)?;
        Ok(Some(text))
    }

    fn copy(&mut self, from: &str, to: &str, who: Who) -> Step {
        let Some(text) = self.read_file(from, who)? else { return Ok(()) };
        let Ok(text) = String::from_utf8(text) else { return Ok(()) };
        let flags = Flags { write: true, create: true, truncate: true, append: false };
        if self.write_file(to, flags, &text, who)? {
            self.unlink(from, who)?;
        }
        Ok(())
    }

    fn set_status(&mut self, path: &str, status: &str, who: Who) -> Step {
        let Some(text) = self.read_file(path, who)? else { return Ok(()) };
        let Ok(text) = String::from_utf8(text) else { return Ok(()) };
        let line = |line: &str| match line.strip_prefix("status: ") {
            Some(rest) => format!("status: {status}{}", super::text::without_comment(rest).1),
            None => line.to_owned(),
        };
        let text: String = text.split('\n').map(line).collect::<Vec<_>>().join("\n");
        let flags = Flags { write: true, create: false, truncate: true, append: false };
        self.write_file(path, flags, &text, who).map(drop)
    }
}
