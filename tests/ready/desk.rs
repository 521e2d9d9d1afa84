//! The desk of all themes in real time, with what is asked here: what is ready, and why not.

use std::ops::Deref;
use std::time::Duration;

use crossbeam_channel::Receiver;
use workfs::engine::{
    self, Base, Context, Placed, Put, PutContent, Rename, Save, Saved, Sight, Text,
};
use workfs::names::{Dentry, FileName, RecordId};
use workfs::numbers::{Ino, UnixNanos, WorkspaceKey};
use workfs::refusal::Refusal;
use workfs::store::Record;

use crate::harness;

/// See the module.
pub struct Desk {
    desk: harness::Desk,
    pub inbox: Ino,
    pub lane: Ino,
    pub done: Ino,
}

impl Deref for Desk {
    type Target = harness::Desk;

    fn deref(&self) -> &harness::Desk {
        &self.desk
    }
}

pub fn name(text: &str) -> FileName {
    FileName::new(text).unwrap()
}

pub fn id(text: &str) -> RecordId {
    RecordId::new(text).unwrap()
}

impl Desk {
    pub fn new() -> Desk {
        let desk = harness::Desk::live(&["bob"]);
        let (inbox, lane, done) = (desk.dir("inbox"), desk.dir("bob"), desk.dir("done"));
        Desk { desk, inbox, lane, done }
    }

    pub fn context() -> Context {
        harness::Desk::operator()
    }

    /// A change that puts a record into a directory.
    pub fn put_of(parent: Ino, task: &str, fields: &str) -> Put {
        let text = format!("id: {task}\nresult: {{summary: made}}\n{fields}");
        let content = PutContent::Record(Box::new(Text::new(text.into_bytes())));
        let (mode, mtime) = (0o644, UnixNanos(0));
        Put { parent, name: name(&format!("{task}.yaml")), mode, uid: 0, gid: 0, mtime, content }
    }

    /// Puts a record into the inbox.
    #[track_caller]
    pub fn put(&self, task: &str, fields: &str) -> Placed {
        self.engine().run(Desk::context(), Desk::put_of(self.inbox, task, fields)).unwrap()
    }

    pub fn record(&self, task: &str) -> Option<Record> {
        self.read(|read| read.record_named(self.workspace(), &id(task)))
    }

    /// A save of a record with other fields.
    pub fn save_of(&self, task: &str, fields: &str) -> Save {
        let ino = self.record(task).and_then(|record| record.ino()).unwrap();
        let text = format!("id: {task}\nresult: {{summary: made}}\n{fields}");
        Save::of(ino, Sight::Known(Base::Unseen), Text::new(text.into_bytes()))
    }

    /// Puts so many records that wait for each other that the engine learns the order of all.
    pub fn know_the_order(&self) {
        for chain in ["p", "q"] {
            self.put(&format!("{chain}0"), "dependencies: [never]\n");
            for nth in 1..150 {
                let fields = format!("dependencies: [{chain}{}]\n", nth - 1);
                self.put(&format!("{chain}{nth}"), &fields);
            }
        }
        self.tie("tie");
    }

    /// Puts a record between those of [`know_the_order`](Self::know_the_order).
    pub fn tie(&self, task: &str) {
        let placed = self.put(task, "dependencies: [p149]\nblocks: [q0]\n");
        assert!(matches!(placed, Placed::Record(..)));
    }

    /// Saves a record with other fields.
    pub fn save(&self, task: &str, fields: &str) -> std::result::Result<(), Refusal> {
        match self.engine().run(Desk::context(), self.save_of(task, fields))? {
            Saved::Kept(_) => Ok(()),
            Saved::Refused(refusal) => Err(refusal),
        }
    }

    pub fn rename_of(from: Ino, to: Ino, task: &str) -> Rename {
        let name = name(&format!("{task}.yaml"));
        let at = |dir| Dentry::of(dir, name.clone());
        Rename::to_free(at(from), at(to))
    }

    #[track_caller]
    pub fn mv(&self, from: Ino, to: Ino, task: &str) {
        self.engine().run(Desk::context(), Desk::rename_of(from, to, task)).unwrap();
    }

    /// What is ready, best first.
    pub fn ready(&self) -> Vec<String> {
        self.read(|read| {
            let mut found = Vec::new();
            read.ready(self.workspace(), None, &mut |record| {
                found.push(record.id.to_string());
                true
            })?;
            Ok(found)
        })
    }

    /// Why a record is not ready.
    #[track_caller]
    pub fn why(&self, task: &str) -> String {
        let record = self.record(task).unwrap();
        let kind = &self.engine().config().bindings()[0].kind.clone();
        let now = self.engine().now();
        self.read(|read| engine::explain(read, kind, &record, now)).unwrap_or_default()
    }

    /// Hears of every record that becomes ready.
    pub fn watch(&self) -> Receiver<WorkspaceKey> {
        self.engine().line().watch()
    }
}

/// How long something that must happen may take.
pub const SOON: Duration = Duration::from_secs(20);
