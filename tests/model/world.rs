//! Program and reference side by side: each operation is done on both, and the answers must agree.

use std::collections::BTreeMap;

use workfs_mount::{RenameMode, XattrMode};

use super::client::{Answer, Client, File, Flags};
use super::harness::System;
use super::lifecycle;
use super::opens::OpenId;
use super::records::Standing;
use super::reference::{Model, NodeId, Outcome};
use super::text::check_patch;

/// Where program and reference disagree.
pub type Differs = String;
pub type Step<T = ()> = Result<T, Differs>;

/// A process: each is on a mount of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Ann,
    Bob,
}

impl Who {
    /// Above what a kernel gives, so that `/proc` knows nothing of it.
    pub fn pid(self) -> u32 {
        (1 << 30) + self as u32
    }
}

/// An open file on both sides.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub real: File,
    pub told: OpenId,
    pub who: Who,
}

pub struct World {
    pub system: System,
    pub model: Model,
    /// What each node of the reference was when it was last looked at: inode number, how often it
    /// was touched, modification time.
    pub looks: BTreeMap<NodeId, (u64, u64, i64)>,
    /// What was done, for the report.
    pub trace: Vec<String>,
}

/// Both succeeded, or both failed in the same way.
fn agree<T, U>(what: &str, seen: Answer<T>, told: Outcome<U>) -> Step<Option<(T, U)>> {
    match (seen, told) {
        (Ok(seen), Ok(told)) => Ok(Some((seen, told))),
        (Err(errno), Err(allowed)) if allowed.contains(&errno) => Ok(None),
        (seen, told) => {
            let seen = seen.err().unwrap_or("success");
            let told = told.err().map_or("success".to_owned(), |allowed| allowed.join(" or "));
            Err(format!("{what}: {seen}, expected {told}"))
        }
    }
}

impl World {
    pub fn new() -> World {
        let system = System::new();
        World { system, model: Model::new(), looks: BTreeMap::new(), trace: Vec::new() }
    }

    pub fn client(&self, who: Who) -> Client {
        Client::new(self.system.tree(), who as u32 + 1, who.pid())
    }

    /// A process that the daemon cannot tell from others: what it reads binds it to nothing.
    pub fn nobody(&self) -> Client {
        Client::new(self.system.tree(), 9, 0)
    }

    /// Does one operation on both sides; says whether it succeeded.
    fn both<T, U>(
        &mut self,
        what: String,
        seen: Answer<T>,
        told: impl FnOnce(&mut Model) -> Outcome<U>,
    ) -> Step<Option<(T, U)>> {
        self.trace.push(format!("{what}: {}", seen.as_ref().err().unwrap_or(&"ok")));
        self.model.hint = seen.is_ok();
        let told = told(&mut self.model);
        let both = agree(&what, seen, told)?;
        self.take_over(&what)?;
        Ok(both)
    }

    /// Checks what the daemon patched, and takes it over.
    fn take_over(&mut self, what: &str) -> Step {
        for pending in std::mem::take(&mut self.model.pending) {
            let record = &self.model.records[&pending.id];
            let Standing::Live(node) = record.standing else { continue };
            let path = self.model.path_to(node);
            let text = self.nobody().cat(&path);
            let text = text.map_err(|errno| format!("{what}: then cat {path}: {errno}"))?;
            check_patch(&record.content, &text, &pending.edits)
                .map_err(|fault| format!("{what}: {path} was not patched right: {fault}"))?;
            if let Err(Some(why)) = lifecycle::judge(&text, &pending.id, record.state) {
                return Err(format!("{what}: {path} does not fit its directory: {why}"));
            }
            self.model.records.get_mut(&pending.id).unwrap().content = text;
        }
        Ok(())
    }

    pub fn mkdir(&mut self, path: &str) -> Step {
        let seen = self.client(Who::Ann).mkdir(path);
        self.both(format!("mkdir {path}"), seen, |model| model.mkdir(path)).map(drop)
    }

    pub fn rmdir(&mut self, path: &str) -> Step {
        let seen = self.client(Who::Ann).rmdir(path);
        self.both(format!("rmdir {path}"), seen, |model| model.rmdir(path)).map(drop)
    }

    pub fn symlink(&mut self, target: &str, path: &str) -> Step {
        let seen = self.client(Who::Ann).symlink(target, path);
        let what = format!("symlink {target} {path}");
        self.both(what, seen, |model| model.symlink(target, path)).map(drop)
    }

    pub fn link(&mut self, from: &str, to: &str) -> Step {
        let seen = self.client(Who::Ann).link(from, to);
        self.both(format!("link {from} {to}"), seen, |model| model.link(from, to)).map(drop)
    }

    pub fn unlink(&mut self, path: &str, who: Who) -> Step<bool> {
        let seen = self.client(who).unlink(path);
        let both = self.both(format!("unlink {path}"), seen, |model| model.unlink(path))?;
        Ok(both.is_some())
    }

    /// What is being written makes a rename wait; that has a test of its own.
    pub fn rename(&mut self, from: &str, to: &str, mode: RenameMode, who: Who) -> Step<bool> {
        let model = &self.model;
        let place = model.parent(to).ok().and_then(|(dir, name)| model.slot(dir, name));
        let moves_written = place.is_some_and(|home| model.moves_what_is_written(&home));
        if moves_written || model.resolve(from).is_ok_and(|node| model.is_busy(node)) {
            return Ok(false);
        }
        let seen = self.client(who).rename(from, to, mode);
        let what = format!("rename {from} {to} ({mode:?}, {who:?})");
        let both = self.both(what, seen, |model| model.rename(from, to, mode, who.pid()))?;
        Ok(both.is_some())
    }

    pub fn truncate(&mut self, path: &str, size: usize, who: Who) -> Step {
        let seen = self.client(who).truncate(path, size as u64);
        let cut = |model: &mut Model| {
            let node = model.resolve(path)?;
            model.cut(node, size, who.pid())
        };
        self.both(format!("truncate {path} to {size} ({who:?})"), seen, cut).map(drop)
    }

    pub fn chmod(&mut self, path: &str, mode: u32) -> Step {
        let seen = self.client(Who::Ann).chmod(path, mode);
        self.both(format!("chmod {mode:o} {path}"), seen, |model| model.chmod(path, mode)).map(drop)
    }

    pub fn set_xattr(&mut self, path: &str, name: &str, value: &[u8], mode: XattrMode) -> Step {
        let seen = self.client(Who::Ann).set_xattr(path, name, value, mode);
        let what = format!("setxattr {path} {name} ({mode:?})");
        self.both(what, seen, |model| model.set_xattr(path, name, value, mode)).map(drop)
    }

    pub fn remove_xattr(&mut self, path: &str, name: &str) -> Step {
        let seen = self.client(Who::Ann).remove_xattr(path, name);
        let what = format!("removexattr {path} {name}");
        self.both(what, seen, |model| model.remove_xattr(path, name)).map(drop)
    }

    // Open files.

    pub fn open(&mut self, path: &str, flags: Flags, who: Who) -> Step<Option<Slot>> {
        let seen = self.client(who).open(path, flags);
        let what = format!("open {path} ({flags:?}, {who:?})");
        let both = self.both(what, seen, |model| model.open(path, flags, who.pid()))?;
        Ok(both.map(|(real, told)| Slot { real, told, who }))
    }

    pub fn read(&mut self, slot: Slot) -> Step<Vec<u8>> {
        let seen = self.client(slot.who).read(slot.real);
        let told = self.model.read(slot.told);
        match seen {
            Ok(seen) if seen == told => Ok(seen),
            seen => {
                let (seen, told) = (seen.map(text), text(told));
                Err(format!("read of an open file: {seen:?}, expected {told:?}"))
            }
        }
    }

    pub fn write(&mut self, slot: Slot, offset: usize, data: &[u8]) -> Step<bool> {
        let client = self.client(slot.who);
        let seen = client.write(slot.real, offset as u64, data);
        if seen.is_err() {
            // What was written is kept without anybody waiting for it.
            client.barrier();
        }
        let what = format!("write {:?} at {offset}", text(data));
        let both = self.both(what, seen, |model| model.write(slot.told, offset, data))?;
        Ok(both.is_some())
    }

    pub fn ftruncate(&mut self, slot: Slot, size: usize) -> Step {
        let seen = self.client(slot.who).ftruncate(slot.real, size as u64);
        let what = format!("ftruncate to {size}");
        self.both(what, seen, |model| model.ftruncate(slot.told, size)).map(drop)
    }

    pub fn flush(&mut self, slot: Slot) -> Step<bool> {
        let seen = self.client(slot.who).flush(slot.real);
        let both = self.both("flush".into(), seen, |model| model.flush(slot.told))?;
        Ok(both.is_some())
    }

    pub fn fsync(&mut self, slot: Slot) -> Step<bool> {
        let seen = self.client(slot.who).fsync(slot.real);
        let both = self.both("fsync".into(), seen, |model| model.flush(slot.told))?;
        Ok(both.is_some())
    }

    /// Closes the file: flush, then release, as the kernel does it.
    pub fn close(&mut self, slot: Slot) -> Step<bool> {
        let closed = self.flush(slot)?;
        self.client(slot.who).release(slot.real);
        self.model.release(slot.told);
        Ok(closed)
    }

    /// The daemon ends and starts again. The caller has closed what was open.
    pub fn restart(&mut self) {
        self.trace.push("restart".into());
        self.system.restart();
        // Who read what is not kept.
        self.model.seen.clear();
    }
}

/// For reports.
pub fn text(bytes: impl AsRef<[u8]>) -> String {
    String::from_utf8_lossy(bytes.as_ref()).into_owned()
}
