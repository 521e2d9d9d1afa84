//! A store with its engine and one workspace, without a kernel: records are put, moved and asked
//! for directly.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Receiver;
use workfs::config::Config;
use workfs::daemon::Nobody;
use workfs::engine::{
    self, Base, Context, Create, Doors, Engine, NewContent, Placed, Put, PutContent, Rename,
    RenameMode, Save, Saved, Sight, Text,
};
use workfs::names::{FileName, RecordId};
use workfs::numbers::{Ino, UnixNanos, WorkspaceKey};
use workfs::refusal::Refusal;
use workfs::service::{Caller, fsck};
use workfs::store::{Durability, Read, Readers, Record, Result, read, sqlite::Sqlite};

/// See the module.
pub struct Desk {
    pub engine: Engine,
    pub workspace: WorkspaceKey,
    root: Ino,
    pub inbox: Ino,
    pub lane: Ino,
    pub done: Ino,
    _dir: tempfile::TempDir,
}

pub fn name(text: &str) -> FileName {
    FileName::new(text).unwrap()
}

pub fn id(text: &str) -> RecordId {
    RecordId::new(text).unwrap()
}

impl Desk {
    pub fn new() -> Desk {
        let memory = std::path::Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let dir = dir.unwrap();
        let (store, writer) = Sqlite::open(&dir.path().join("store.db")).unwrap();
        let readers: Arc<dyn Readers> = Arc::new(store);
        let config = Arc::new(Config::default());
        let (durability, doors) = (Durability::Process, Doors::default());
        let (engine, _) =
            engine::start(Box::new(writer), readers, config, durability, doors, Arc::new(Nobody))
                .unwrap();
        let none = Ino(0);
        let mut desk = Desk {
            engine,
            workspace: WorkspaceKey(0),
            root: none,
            inbox: none,
            lane: none,
            done: none,
            _dir: dir,
        };
        desk.root = desk.mkdir(Ino(1), "work");
        desk.inbox = desk.mkdir(desk.root, "inbox");
        let assigned = desk.mkdir(desk.root, "assigned");
        desk.lane = desk.mkdir(assigned, "bob");
        desk.done = desk.mkdir(desk.root, "done");
        desk.workspace = desk.read(|read| Ok(read.workspaces()?[0].key));
        desk
    }

    pub fn context() -> Context {
        Caller::this_process().context()
    }

    fn mkdir(&self, parent: Ino, dir: &str) -> Ino {
        let content = NewContent::Directory;
        let create = Create { parent, name: name(dir), mode: 0o755, content, on_draft: None };
        self.engine.run(Desk::context(), create).unwrap().ino
    }

    pub fn read<T>(&self, work: impl FnMut(&dyn Read) -> Result<T>) -> T {
        read(&**self.engine.readers(), work).unwrap()
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
        self.engine.run(Desk::context(), Desk::put_of(self.inbox, task, fields)).unwrap()
    }

    pub fn record(&self, task: &str) -> Option<Record> {
        self.read(|read| read.record_named(self.workspace, &id(task)))
    }

    /// Saves a record with other fields.
    pub fn save(&self, task: &str, fields: &str) -> std::result::Result<(), Refusal> {
        let ino = self.record(task).and_then(|record| record.ino()).unwrap();
        let text = format!("id: {task}\nresult: {{summary: made}}\n{fields}");
        let (text, sight) = (Text::new(text.into_bytes()), Sight::Known(Base::Unseen));
        match self.engine.run(Desk::context(), Save::of(ino, sight, text))? {
            Saved::Kept(_) => Ok(()),
            Saved::Refused(refusal) => Err(refusal),
        }
    }

    pub fn rename_of(from: Ino, to: Ino, task: &str) -> Rename {
        let name = name(&format!("{task}.yaml"));
        Rename {
            parent: from,
            name: name.clone(),
            new_parent: to,
            new_name: name,
            mode: RenameMode::NoReplace,
            sight: Sight::Known(Base::Unseen),
        }
    }

    #[track_caller]
    pub fn mv(&self, from: Ino, to: Ino, task: &str) {
        self.engine.run(Desk::context(), Desk::rename_of(from, to, task)).unwrap();
    }

    /// What is ready, best first.
    pub fn ready(&self) -> Vec<String> {
        self.read(|read| {
            let mut found = Vec::new();
            read.ready(self.workspace, None, &mut |record| {
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
        let kind = &self.engine.config().bindings()[0].kind.clone();
        let now = self.engine.now();
        self.read(|read| engine::explain(read, kind, &record, now)).unwrap_or_default()
    }

    /// Hears of every record that becomes ready.
    pub fn watch(&self) -> Receiver<WorkspaceKey> {
        self.engine.line().watch()
    }

    #[track_caller]
    pub fn fsck_clean(&self) {
        let report = fsck(&**self.engine.readers(), &mut |_| true).unwrap();
        assert_eq!(report.count, 0, "{:?}", report.problems);
    }
}

/// How long something that must happen may take.
pub const SOON: Duration = Duration::from_secs(20);
