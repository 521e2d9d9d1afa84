//! A store with its engine and one workspace, without a kernel; its clocks are set by hand, or are the
//! machine's.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use workfs::config::Config;
use workfs::engine::{
    self, Audience, Base, Command, Context, Create, Doors, Effect, Engine, Fence, NewContent,
    Origin, Put, PutContent, Remove, RemoveWhat, Rename, RestoreFile, Save, Saved, Sight, Silence,
    Sync, Text,
};
use workfs::kind::Role;
use workfs::names::{AgentName, Dentry, FileName, RecordId};
use workfs::numbers::{G, Ino, UnixNanos, WorkspaceKey};
use workfs::refusal::{Door, Refusal};
use workfs::service::{Caller, fsck};
use workfs::store::{
    Durability, LeaseRow, NodeType, Read, Readers, Record, Result, Txn, Writer as _, read,
    sqlite::Sqlite,
};

use super::disk::{Disk, OnDisk, Space};

pub const SECOND: u64 = 1_000_000_000;

/// Who was seen when, and which records are being written, as mounts would tell.
#[derive(Default)]
struct Seen(Mutex<HashMap<AgentName, Vec<u64>>>, Mutex<HashSet<Ino>>);

impl Audience for Seen {
    fn make_forget(&self, _: &[(Origin, Effect)]) {}
    fn silence(&self, _: &[(Origin, Effect)]) -> Box<dyn Silence> {
        Box::new(())
    }
    fn is_in_use(&self, _: Ino) -> bool {
        false
    }
    fn is_written(&self, ino: Ino, _: Option<&Record>) -> bool {
        self.1.lock().contains(&ino)
    }
    fn last_seen(&self, agent: &AgentName, by: u64) -> Option<u64> {
        self.0.lock().get(agent)?.iter().copied().filter(|at| *at <= by).max()
    }
}

/// See the module.
pub struct Desk {
    engine: Option<(Engine, JoinHandle<()>)>,
    seen: Arc<Seen>,
    steady: Arc<AtomicU64>,
    wall: Arc<AtomicI64>,
    boot: u32,
    /// Its clocks are the machine's.
    is_live: bool,
    workspace: WorkspaceKey,
    dirs: HashMap<String, Ino>,
    config: Arc<Config>,
    disk: Disk,
    dir: tempfile::TempDir,
}

pub fn agent(name: &str) -> AgentName {
    AgentName::new(name).unwrap()
}

fn file(task: &str) -> FileName {
    FileName::new(format!("{task}.yaml")).unwrap()
}

impl Desk {
    pub fn new(agents: &[&str]) -> Desk {
        Desk::with(agents, Config::default())
    }

    /// In real time.
    pub fn live(agents: &[&str]) -> Desk {
        Desk::of(agents, Config::default(), true)
    }

    /// With this configuration, whose `work` is a workspace with the task's directories.
    pub fn with(agents: &[&str], config: Config) -> Desk {
        Desk::of(agents, config, false)
    }

    fn of(agents: &[&str], config: Config, is_live: bool) -> Desk {
        let memory = std::path::Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let mut desk = Desk {
            engine: None,
            seen: Arc::default(),
            steady: Arc::new(AtomicU64::new(1_000 * SECOND)),
            wall: Arc::new(AtomicI64::new(1_764_000_000_000_000_000)),
            boot: 1,
            is_live,
            workspace: WorkspaceKey(0),
            dirs: HashMap::new(),
            config: Arc::new(config),
            disk: Disk::default(),
            dir: dir.unwrap(),
        };
        desk.start();
        let work = desk.mkdir(Ino(1), "work");
        for state in ["inbox", "assigned", "done", "dead"] {
            let dir = desk.mkdir(work, state);
            desk.dirs.insert(state.to_owned(), dir);
        }
        for name in agents {
            let lane = desk.mkdir(desk.dirs["assigned"], name);
            desk.dirs.insert((*name).to_owned(), lane);
        }
        desk.workspace = desk.read(|read| Ok(read.workspaces()?[0].key));
        desk
    }

    fn start(&mut self) {
        let (store, writer) = Sqlite::open(&self.dir.path().join("store.db")).unwrap();
        let readers: Arc<dyn Readers> = Arc::new(store);
        let (steady, wall) = (Arc::clone(&self.steady), Arc::clone(&self.wall));
        let by_hand = Doors {
            clock: Arc::new(move || UnixNanos(wall.load(Ordering::SeqCst))),
            steady: Arc::new(move || steady.load(Ordering::SeqCst)),
            boot: format!("boot {}", self.boot).into(),
            ..Doors::default()
        };
        let doors = if self.is_live { Doors::default() } else { by_hand };
        let (config, seen) = (Arc::clone(&self.config), Arc::clone(&self.seen));
        let writer = Box::new(OnDisk { writer, disk: self.disk.clone() });
        let started = engine::start(writer, readers, config, Durability::Process, doors, seen);
        self.engine = Some(started.unwrap());
    }

    fn stop(&mut self) {
        let (engine, thread) = self.engine.take().unwrap();
        drop(engine);
        thread.join().unwrap();
    }

    /// The daemon ends and another begins, in the same boot of the machine or in a new one.
    pub fn restart(&mut self, new_boot: bool) {
        self.restart_after(0, new_boot);
    }

    /// The same, with so long a time between the two; as the wall clock says, which in a new boot
    /// nothing else tells.
    pub fn restart_after(&mut self, nanos: i64, new_boot: bool) {
        self.stop();
        self.wall.fetch_add(nanos, Ordering::SeqCst);
        self.steady.fetch_add(nanos.max(0).cast_unsigned(), Ordering::SeqCst);
        if new_boot {
            self.boot += 1;
            self.steady.store(SECOND, Ordering::SeqCst);
        }
        // What mounts know ends with the daemon.
        self.seen.0.lock().clear();
        self.start();
    }

    /// Writes rows while there is no engine, which then begins anew.
    pub fn fill_store(&mut self, mut work: impl FnMut(&mut dyn Txn) -> Result<Durability>) {
        self.stop();
        let (_, mut writer) = Sqlite::open(&self.dir.path().join("store.db")).unwrap();
        writer.transaction(&mut work).unwrap();
        drop(writer);
        self.start();
    }

    pub fn engine(&self) -> &Engine {
        &self.engine.as_ref().unwrap().0
    }

    /// Time passes, and the engine sees to what is due.
    pub fn pass(&self, nanos: u64) {
        self.pass_unseen(nanos);
        self.settle();
    }

    /// Time passes, and nobody looks yet.
    pub fn pass_unseen(&self, nanos: u64) {
        self.steady.fetch_add(nanos, Ordering::SeqCst);
        self.wall.fetch_add(nanos.cast_signed(), Ordering::SeqCst);
    }

    /// Lets the engine see to what is due.
    pub fn settle(&self) {
        let settled = self.engine().run(Desk::operator(), Sync);
        assert!(settled.is_ok() || self.disk.space() == Space::Full, "{settled:?}");
    }

    /// So much is left of the store's disk from now on.
    pub fn leave(&self, space: Space) {
        self.disk.set(space);
        self.settle();
    }

    /// There is room again, and nobody looks yet.
    pub fn make_room(&self) {
        self.disk.set(Space::Room);
    }

    /// A descriptor goes with which an agent held a task under this claim.
    pub fn let_go(&self, task: &str, fence: &Fence) {
        let context = Desk::context(fence.owner.as_str());
        self.engine().let_go(context, self.record(task).key, fence.clone());
        // What could not be given back is seen to after that.
        self.settle();
        self.settle();
    }

    /// Somebody sets the wall clock.
    pub fn set_wall(&self, by: i64) {
        self.wall.fetch_add(by, Ordering::SeqCst);
        self.settle();
    }

    /// Something is asked for through an agent's mount.
    pub fn see(&self, name: &str) {
        let now = self.steady.load(Ordering::SeqCst);
        self.seen.0.lock().entry(agent(name)).or_default().push(now);
    }

    pub fn operator() -> Context {
        Caller::this_process().context()
    }

    fn context(name: &str) -> Context {
        let mut context = Desk::operator();
        (context.actor.name, context.role) = (agent(name), Role::Agent);
        context
    }

    fn mkdir(&self, parent: Ino, dir: &str) -> Ino {
        self.try_mkdir(parent, dir).unwrap()
    }

    fn try_mkdir(&self, parent: Ino, dir: &str) -> std::result::Result<Ino, Refusal> {
        let name = FileName::new(dir).unwrap();
        let content = NewContent::Directory;
        let create = Create::new(parent, name, 0o755, content);
        self.engine().run(Desk::operator(), create).map(|node| node.ino)
    }

    /// Makes a directory of an agent below a state's, and gives its name here.
    pub fn make_below(&mut self, state: &str, name: &str) -> String {
        let (dir, path) = (self.mkdir(self.dirs[state], name), format!("{state}/{name}"));
        self.dirs.insert(path.clone(), dir);
        path
    }

    /// A directory of the workspace: a state's, or an agent's lane.
    pub fn dir(&self, name: &str) -> Ino {
        self.dirs[name]
    }

    pub fn workspace(&self) -> WorkspaceKey {
        self.workspace
    }

    pub fn read<T>(&self, work: impl FnMut(&dyn Read) -> Result<T>) -> T {
        read(&**self.engine().readers(), work).unwrap()
    }

    fn text(task: &str, more: &str) -> Text {
        let text = format!("id: {task}\nresult: {{summary: made}}\n{more}\n");
        Text::new(text.into_bytes())
    }

    /// Puts a task into the inbox.
    pub fn put(&self, task: &str, more: &str) {
        self.put_at("inbox", task, more);
    }

    /// The same into another directory. What is not valid is a draft.
    pub fn put_at(&self, dir: &str, task: &str, more: &str) {
        let content = PutContent::Record(Box::new(Desk::text(task, more)));
        let (parent, name) = (self.dirs[dir], file(task));
        let (mode, mtime) = (0o644, UnixNanos(0));
        let put = Put { parent, name, mode, uid: 0, gid: 0, mtime, content };
        self.engine().run(Desk::operator(), put).unwrap();
    }

    /// The operator saves another text of a task.
    pub fn rewrite(&self, task: &str, more: &str) {
        self.rewrite_all(task, Desk::text(task, more));
    }

    /// The same with all of the text.
    pub fn rewrite_all(&self, task: &str, text: Text) {
        let ino = self.record(task).ino().unwrap();
        let sight = Sight::Known(Base::Unseen);
        let save = Save::of(ino, sight, text);
        let saved = self.engine().run(Desk::operator().at(Door::Handle), save).unwrap();
        assert!(matches!(saved, Saved::Kept(_)), "{saved:?}");
    }

    /// What lies at a path from the workspace's directory, if anything does.
    pub fn at_path(&self, path: &str) -> Option<Vec<u8>> {
        self.read(|read| {
            let mut node =
                read.workspaces()?[0].dir.map(|dir| read.node(dir)).transpose()?.flatten();
            for name in path.split('/') {
                let name = FileName::new(name).unwrap();
                node = node.map(|dir| read.lookup(dir.ino, &name)).transpose()?.flatten();
            }
            node.map(|node| match read.record_at(node.ino)? {
                Some(record) => Ok(read.version(record.version_g)?.unwrap().content),
                None => engine::read_plain(read, &node, 0, node.size as usize),
            })
            .transpose()
        })
    }

    pub fn is_written(&self, file: Ino, is_written: bool) {
        let files = &mut self.seen.1.lock();
        let _ = if is_written { files.insert(file) } else { files.remove(&file) };
    }

    pub fn record(&self, task: &str) -> Record {
        let id = RecordId::new(task).unwrap();
        self.read(|read| read.record_named(self.workspace, &id)).unwrap()
    }

    /// What its file says now.
    pub fn content(&self, task: &str) -> String {
        let version = self.record(task).version_g;
        let version = self.read(|read| read.version(version)).unwrap();
        String::from_utf8(version.content).unwrap()
    }

    pub fn lease(&self, task: &str) -> Option<LeaseRow> {
        let key = self.record(task).key;
        self.read(|read| read.lease(key))
    }

    /// A plain file is made in the workspace's directory.
    pub fn make(&self, name: &str) {
        let parent = self.read(|read| Ok(read.workspaces()?[0].dir)).unwrap();
        let (name, content) = (FileName::new(name).unwrap(), NewContent::File);
        let create = Create::new(parent, name, 0o644, content);
        self.engine().run(Desk::operator(), create).unwrap();
    }

    /// An agent moves a task between directories: `inbox`, `done`, or an agent's lane.
    pub fn mv(
        &self,
        who: &str,
        task: &str,
        from: &str,
        to: &str,
    ) -> std::result::Result<(), Refusal> {
        self.engine().run(Desk::context(who), self.rename(task, from, to)).map(drop)
    }

    /// The operator moves it.
    #[track_caller]
    pub fn take(&self, task: &str, from: &str, to: &str) {
        self.hand_over(task, from, to).unwrap();
    }

    /// The operator tries to.
    pub fn hand_over(&self, task: &str, from: &str, to: &str) -> std::result::Result<(), Refusal> {
        self.engine().run(Desk::operator(), self.rename(task, from, to)).map(drop)
    }

    /// An agent does this.
    pub fn act<C: Command>(&self, who: &str, command: C) -> std::result::Result<C::Out, Refusal> {
        self.engine().run(Desk::context(who), command)
    }

    /// The directories in which a file has a task's name.
    pub fn places(&self, task: &str) -> Vec<&str> {
        let mut places: Vec<&str> = self.dirs.keys().map(String::as_str).collect();
        places.retain(|dir| {
            let found = self.read(|read| read.lookup(self.dirs[*dir], &file(task)));
            found.is_some_and(|node| node.node_type == NodeType::File)
        });
        places
    }

    /// An agent brings a plain file of `dir` back.
    pub fn restore(&self, who: &str, dir: &str, name: &str) -> std::result::Result<(), Refusal> {
        let (name, content) = (FileName::new(name).unwrap(), b"as it was".to_vec());
        let restore = RestoreFile { parent: self.dirs[dir], name, from_g: G(1), content };
        self.engine().run(Desk::context(who), restore).map(drop)
    }

    /// A directory takes a task's name in `dir`.
    pub fn block(&self, dir: &str, task: &str) {
        self.mkdir(self.dirs[dir], &format!("{task}.yaml"));
    }

    /// It goes.
    pub fn unblock(&self, dir: &str, task: &str) {
        self.rmdir(dir, &format!("{task}.yaml"));
    }

    /// A directory is made in `dir`, if it may.
    pub fn fill(&self, dir: &str, name: &str) -> std::result::Result<(), Refusal> {
        self.try_mkdir(self.dirs[dir], name).map(drop)
    }

    /// It goes.
    pub fn rmdir(&self, dir: &str, name: &str) {
        let (parent, name) = (self.dirs[dir], FileName::new(name).unwrap());
        let remove = Remove { parent, name, what: RemoveWhat::Directory };
        self.engine().run(Desk::operator(), remove).unwrap();
    }

    /// An agent renames its task to a backup's name.
    pub fn park(&self, who: &str, task: &str) {
        self.rename_to(who, task, &format!("{task}.yaml~")).unwrap();
    }

    /// An agent gives its task's file another name in its lane.
    pub fn rename_to(&self, who: &str, task: &str, name: &str) -> std::result::Result<(), Refusal> {
        let mut rename = self.rename(task, who, who);
        rename.to.name = FileName::new(name).unwrap();
        self.engine().run(Desk::context(who), rename).map(drop)
    }

    /// An agent removes its task.
    pub fn remove(&self, who: &str, task: &str) -> std::result::Result<(), Refusal> {
        let remove = Remove { parent: self.dirs[who], name: file(task), what: RemoveWhat::File };
        self.engine().run(Desk::context(who), remove)
    }

    /// The operator removes it there.
    pub fn discard(&self, dir: &str, task: &str) {
        let remove = Remove { parent: self.dirs[dir], name: file(task), what: RemoveWhat::File };
        self.engine().run(Desk::operator(), remove).unwrap();
    }

    /// An agent writes a new file of a task's name, with these fields, into its lane.
    pub fn write(&self, who: &str, task: &str, more: &str) -> std::result::Result<(), Refusal> {
        let (parent, name, content) = (self.dirs[who], file(task), NewContent::File);
        let create = Create::new(parent, name, 0o644, content);
        let ino = self.engine().run(Desk::context(who), create)?.ino;
        let text = Desk::text(task, &format!("agent: {who}\n{more}"));
        let save = Save::of(ino, Sight::Known(Base::Unseen), text);
        match self.engine().run(Desk::context(who).at(Door::Handle), save)? {
            Saved::Kept(_) => Ok(()),
            Saved::Refused(refusal) => Err(refusal),
        }
    }

    fn rename(&self, task: &str, from: &str, to: &str) -> Rename {
        let [from, to] = [from, to].map(|dir| Dentry::of(self.dirs[dir], file(task)));
        Rename::to_free(from, to)
    }

    /// An agent closes what it opened for writing when the record was under `fence`.
    pub fn save(
        &self,
        who: &str,
        task: &str,
        (fence, more): (&Fence, &str),
    ) -> std::result::Result<(), Refusal> {
        let more = format!("status: in_progress\nagent: {}\n{more}", fence.owner);
        let text = format!("id: {task}\nresult: {{summary: made}}\n{more}\n");
        self.save_text(who, task, (fence, &text))
    }

    /// The same with this text.
    pub fn save_text(
        &self,
        who: &str,
        task: &str,
        (fence, text): (&Fence, &str),
    ) -> std::result::Result<(), Refusal> {
        let ino = self.record(task).ino().unwrap();
        let (text, sight) = (Text::new(text.as_bytes()), Sight::Known(Base::Unseen));
        let fence = Some(fence.clone());
        let save = Save { fence, ..Save::of(ino, sight, text) };
        match self.engine().run(Desk::context(who).at(Door::Handle), save)? {
            Saved::Kept(_) => Ok(()),
            Saved::Refused(refusal) => Err(refusal),
        }
    }

    #[track_caller]
    pub fn fsck_clean(&self) {
        let report = fsck(&**self.engine().readers(), Some(&self.config), &mut |_| true).unwrap();
        assert_eq!(report.count, 0, "{:?}", report.problems);
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        if self.engine.is_some() && !std::thread::panicking() {
            self.stop();
        }
    }
}
