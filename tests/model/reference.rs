//! The reference: a tree in memory, as POSIX and the design have it. Here: nodes, names, plain
//! files; renames are in `renames`, what concerns records in `records`, open files in `opens`.
//!
//! What must stay true: it is written from the design and says for each operation success or the
//! errnos that the design allows; it knows nothing of the program but its names.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use workfs_mount::XattrMode;

use super::lifecycle::{Place, State, place, record_id, renamed_over};
use super::opens::Open;
use super::records::{Pending, Record, Standing};
use super::text::Text;

/// Why an operation fails: one of these errnos, where several rules are broken at once.
pub type No = Vec<&'static str>;
pub type Outcome<T = ()> = Result<T, No>;

pub fn no<T>(errno: &'static str) -> Outcome<T> {
    Err(vec![errno])
}

pub type NodeId = usize;

pub const ROOT: NodeId = 0;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    Dir(BTreeMap<String, NodeId>),
    Plain(Vec<u8>),
    Symlink(String),
    Draft(Vec<u8>),
    /// The file of the record with this id.
    Record(String),
}

#[derive(Clone, Debug)]
pub struct Node {
    pub body: Body,
    pub nlink: u32,
    pub mode: u32,
    pub xattrs: BTreeMap<String, Vec<u8>>,
    /// Where it lies; of a plain file with several names: one of them.
    pub parent: NodeId,
    pub name: String,
    /// A draft of which a verdict is known.
    pub judged: bool,
    /// Grows when the modification time may have changed.
    pub touched: u64,
}

/// Where a record of an id lies or would lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    pub state: State,
    pub owner: Option<String>,
    pub id: String,
    pub dir: NodeId,
    pub name: String,
}

/// What random walks must meet, each of it, to be worth their time.
pub const MEETS: &[&str] = &[
    "a claim",
    "a release",
    "a completion",
    "a move that the lifecycle has not",
    "a move that lacks a field",
    "a move by copy",
    "a copy that came too late",
    "a copy that came too late over a draft",
    "a copy that the lifecycle forbids",
    "a copy that says no id",
    "a new text of an id in use",
    "a new file of an id in use",
    "a late write",
    "a stale write",
    "a status refused at once",
    "a new status refused at once",
    "a save of a record that has another file",
    "a save under a claim that is over",
    "a stale save",
    "a stale copy",
    "a save that changes nothing",
    "a save of wrong content",
    "a move of status that is none",
    "a new record",
    "a record made again",
    "a record parked",
    "a backup that goes, with its record",
    "a parked record that comes back elsewhere",
    "a backup dance that ended well",
    "a backup dance that ended badly",
    "a record that left",
    "a draft kept",
    "a draft emptied",
    "a draft that waits for its rename",
    "a draft renamed",
    "a draft that would move",
    "a draft that became plain",
    "a write refused at once",
    "a save of a nameless file",
    "a plain file that became a record",
    "a file of two names that would become a record",
    "an exchange",
    "an exchange refused",
    "a directory in use",
    "a filled directory that would be governed",
    "a directory below itself",
    "a governed directory moved",
];

#[derive(Default)]
pub struct Model {
    pub nodes: Vec<Node>,
    pub records: BTreeMap<String, Record>,
    /// Which version of which record a process saw last.
    pub seen: BTreeMap<(String, u32), u64>,
    pub opens: Vec<Open>,
    /// Records whose bytes the daemon patched: to be checked and taken over.
    pub pending: Vec<Pending>,
    /// Whether the real operation succeeded: decides where the reader is not sure of a text.
    pub hint: bool,
    /// What has happened at least once: see [`MEETS`].
    pub met: RefCell<BTreeSet<&'static str>>,
    /// The reader was not sure, and what happened cannot be told.
    pub lost: bool,
}

impl Model {
    pub fn new() -> Model {
        let mut model = Model::default();
        model.insert(Body::Dir(BTreeMap::new()), 0o755, ROOT, "");
        model
    }

    fn insert(&mut self, body: Body, mode: u32, parent: NodeId, name: &str) -> NodeId {
        let nlink = if matches!(body, Body::Dir(_)) { 2 } else { 1 };
        let (xattrs, name) = (BTreeMap::new(), name.to_owned());
        self.nodes.push(Node {
            body,
            nlink,
            mode,
            xattrs,
            parent,
            name,
            judged: false,
            touched: 0,
        });
        self.nodes.len() - 1
    }

    /// Notes that something of [`MEETS`] happened.
    pub fn met(&self, what: &'static str) {
        debug_assert!(MEETS.contains(&what), "{what}");
        self.met.borrow_mut().insert(what);
    }

    // Names.

    pub fn entries(&self, dir: NodeId) -> Option<&BTreeMap<String, NodeId>> {
        match &self.nodes[dir].body {
            Body::Dir(entries) => Some(entries),
            _ => None,
        }
    }

    pub fn entries_mut(&mut self, dir: NodeId) -> &mut BTreeMap<String, NodeId> {
        match &mut self.nodes[dir].body {
            Body::Dir(entries) => entries,
            _ => panic!("no directory"),
        }
    }

    pub fn resolve(&self, path: &str) -> Outcome<NodeId> {
        let mut at = ROOT;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let Some(entries) = self.entries(at) else { return no("ENOTDIR") };
            at = *entries.get(name).ok_or(vec!["ENOENT"])?;
        }
        Ok(at)
    }

    pub fn parent<'p>(&self, path: &'p str) -> Outcome<(NodeId, &'p str)> {
        let (dir, name) = super::client::split(path);
        let dir = self.resolve(dir)?;
        if self.entries(dir).is_none() { no("ENOTDIR") } else { Ok((dir, name)) }
    }

    pub fn child(&self, dir: NodeId, name: &str) -> Option<NodeId> {
        self.entries(dir)?.get(name).copied()
    }

    pub fn is_dir(&self, node: NodeId) -> bool {
        self.entries(node).is_some()
    }

    pub fn is_empty(&self, dir: NodeId) -> bool {
        self.entries(dir).is_some_and(BTreeMap::is_empty)
    }

    /// Names from the root.
    pub fn path_of(&self, mut dir: NodeId) -> Vec<String> {
        let mut names = Vec::new();
        while dir != ROOT {
            names.push(self.nodes[dir].name.clone());
            dir = self.nodes[dir].parent;
        }
        names.reverse();
        names
    }

    /// The path of a directory, a record or a draft, which have one name.
    pub fn path_to(&self, node: NodeId) -> String {
        self.path_of(node).join("/")
    }

    pub fn is_below(&self, mut node: NodeId, above: NodeId) -> bool {
        while node != above {
            if node == ROOT {
                return false;
            }
            node = self.nodes[node].parent;
        }
        true
    }

    pub fn place(&self, dir: NodeId) -> Place {
        place(&self.path_of(dir))
    }

    /// What a name in a directory stands for: a record's place, or nothing special.
    pub fn slot(&self, dir: NodeId, name: &str) -> Option<Home> {
        let Place::State(state, owner) = self.place(dir) else { return None };
        let id = record_id(name)?.to_owned();
        Some(Home { state, owner, id, dir, name: name.to_owned() })
    }

    /// Whether a new file here is judged when it is renamed over the record beside it, whose name it
    /// has with something random in it.
    pub fn waits_for_rename(&self, home: &Home) -> bool {
        let over = renamed_over(&home.name).and_then(|over| self.child(home.dir, &over));
        let is_record = over.is_some_and(|over| matches!(self.nodes[over].body, Body::Record(_)));
        is_record && !self.records.contains_key(&home.id)
    }

    /// All names of what is no directory, with what it is, in the order of their paths.
    pub fn files(&self) -> Vec<(String, &Body)> {
        let mut found = Vec::new();
        let mut waiting = vec![(ROOT, String::new())];
        while let Some((dir, path)) = waiting.pop() {
            for (name, node) in self.entries(dir).into_iter().flatten() {
                let path = format!("{path}{name}");
                match &self.nodes[*node].body {
                    Body::Dir(_) => waiting.push((*node, path + "/")),
                    body => found.push((path, body)),
                }
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found
    }

    /// A text that a record of this path may have.
    pub fn fitting(&self, path: &str) -> Text {
        let slot = self.parent(path).ok().and_then(|(dir, name)| self.slot(dir, name));
        match slot.map(|home| home.state) {
            Some(State::Assigned) => Text::StartedWithResult,
            Some(State::Done) => Text::DoneWithResult,
            Some(State::Inbox) => Text::New,
            _ => Text::Titled,
        }
    }

    // Names are made.

    pub fn create(&mut self, dir: NodeId, name: &str) -> Outcome<NodeId> {
        let home = self.slot(dir, name);
        if self.child(dir, name).is_none() && home.as_ref().is_some_and(|home| self.is_taken(home))
        {
            self.met("a new file of an id in use");
            return no("EEXIST");
        }
        let body = if home.is_some() { Body::Draft(Vec::new()) } else { Body::Plain(Vec::new()) };
        self.make(dir, name, body, 0o644)
    }

    fn make(&mut self, dir: NodeId, name: &str, body: Body, mode: u32) -> Outcome<NodeId> {
        if self.child(dir, name).is_some() {
            return no("EEXIST");
        }
        let directory = matches!(body, Body::Dir(_));
        let node = self.insert(body, mode, dir, name);
        self.entries_mut(dir).insert(name.to_owned(), node);
        self.nodes[dir].nlink += u32::from(directory);
        Ok(node)
    }

    pub fn mkdir(&mut self, path: &str) -> Outcome {
        let (dir, name) = self.parent(path)?;
        self.make(dir, name, Body::Dir(BTreeMap::new()), 0o755).map(drop)
    }

    pub fn symlink(&mut self, target: &str, path: &str) -> Outcome {
        let (dir, name) = self.parent(path)?;
        self.make(dir, name, Body::Symlink(target.to_owned()), 0o777).map(drop)
    }

    pub fn link(&mut self, from: &str, to: &str) -> Outcome {
        let node = self.resolve(from)?;
        let (dir, name) = self.parent(to)?;
        if self.child(dir, name).is_some() {
            return no("EEXIST");
        }
        let plain = matches!(self.nodes[node].body, Body::Plain(_) | Body::Symlink(_));
        if !plain || self.slot(dir, name).is_some() || self.parked_by(node).is_some() {
            return no("EPERM");
        }
        self.nodes[node].nlink += 1;
        self.entries_mut(dir).insert(name.to_owned(), node);
        Ok(())
    }

    // Names go.

    pub fn unlink(&mut self, path: &str) -> Outcome {
        let node = self.resolve(path)?;
        let (dir, name) = self.parent(path)?;
        match &self.nodes[node].body {
            Body::Dir(_) => return no("EISDIR"),
            Body::Record(id) => {
                let id = id.clone();
                self.retire(&id, Standing::Gone);
            }
            _ => self.lose_backup(node),
        }
        self.entries_mut(dir).remove(name);
        self.unname(node);
        Ok(())
    }

    pub fn rmdir(&mut self, path: &str) -> Outcome {
        let node = self.resolve(path)?;
        let (dir, name) = self.parent(path)?;
        match self.entries(node) {
            None => return no("ENOTDIR"),
            Some(entries) if !entries.is_empty() => return no("ENOTEMPTY"),
            Some(_) => {}
        }
        self.entries_mut(dir).remove(name);
        self.nodes[dir].nlink -= 1;
        self.unname(node);
        Ok(())
    }

    /// One name less. A record's file without a name is an ordinary nameless file.
    pub fn unname(&mut self, node: NodeId) {
        let node = &mut self.nodes[node];
        node.nlink = if matches!(node.body, Body::Dir(_)) { 0 } else { node.nlink - 1 };
    }

    /// Takes a name away from a record's old file.
    pub fn drop_name(&mut self, dir: NodeId, name: &str) {
        if let Some(node) = self.entries_mut(dir).remove(name) {
            self.unname(node);
        }
    }

    // Attributes.

    pub fn chmod(&mut self, path: &str, mode: u32) -> Outcome {
        let node = self.resolve(path)?;
        self.nodes[node].mode = mode;
        Ok(())
    }

    pub fn set_xattr(&mut self, path: &str, name: &str, value: &[u8], mode: XattrMode) -> Outcome {
        let node = self.resolve(path)?;
        let node = &mut self.nodes[node];
        // As Linux has it: only files and directories have attributes of users.
        if matches!(node.body, Body::Symlink(_)) {
            return no("EPERM");
        }
        match (mode, node.xattrs.contains_key(name)) {
            (XattrMode::Create, true) => no("EEXIST"),
            (XattrMode::Replace, false) => no("ENODATA"),
            _ => {
                node.xattrs.insert(name.to_owned(), value.to_owned());
                Ok(())
            }
        }
    }

    pub fn remove_xattr(&mut self, path: &str, name: &str) -> Outcome {
        let node = self.resolve(path)?;
        let removed = self.nodes[node].xattrs.remove(name);
        if removed.is_none() { no("ENODATA") } else { Ok(()) }
    }

    // Content of plain files.

    /// Who is not privileged and writes to a file takes the set-id bits away.
    pub fn drop_privileges(&mut self, node: NodeId) {
        let node = &mut self.nodes[node];
        node.mode &= !0o4000;
        if node.mode & 0o010 != 0 {
            node.mode &= !0o2000;
        }
    }

    /// The content of a plain file, to change it.
    pub fn plain_mut(&mut self, node: NodeId) -> &mut Vec<u8> {
        self.drop_privileges(node);
        let node = &mut self.nodes[node];
        node.touched += 1;
        match &mut node.body {
            Body::Plain(text) => text,
            _ => panic!("no plain file"),
        }
    }

    /// What reading a file from its start gives.
    pub fn content(&self, node: NodeId) -> &[u8] {
        match &self.nodes[node].body {
            Body::Plain(text) | Body::Draft(text) => text,
            Body::Record(id) => &self.records[id].content,
            Body::Symlink(target) => target.as_bytes(),
            Body::Dir(_) => b"",
        }
    }
}
