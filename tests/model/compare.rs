//! The whole tree as the program shows it, compared with the reference's; and what must hold in
//! the store whatever was done.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use workfs::ledger::Verifier;
use workfs::limits::NAMELESS_HELD;
use workfs::names::{FileName, RecordId, TreePath};
use workfs::numbers::G;
use workfs::store::{Class, EntryRow, Node, NodeType, Read, Record, Result, Standing};
use workfs_mount::{Attr, Ino};

use super::lifecycle;
use super::records;
use super::reference::{Body, NodeId, ROOT};
use super::text::Reading;
use super::world::{Step, World, text};

impl World {
    /// Compares names, types, contents, links, sizes, modes, attributes and records.
    pub fn compare(&mut self) -> Step {
        let client = self.nobody();
        client.barrier();
        let root = client.stat("").map_err(str::to_owned)?;
        let mut met = BTreeMap::new();
        self.compare_node(ROOT, &root, "", &mut met)?;
        self.compare_records()
    }

    fn compare_node(
        &mut self,
        told: NodeId,
        seen: &Attr,
        path: &str,
        met: &mut BTreeMap<u64, NodeId>,
    ) -> Step {
        let differs = |what: &str, seen: &dyn std::fmt::Debug, told: &dyn std::fmt::Debug| {
            Err(format!("`{path}`: {what} {seen:?}, expected {told:?}"))
        };
        let node = self.model.nodes[told].clone();
        let node_type = match &node.body {
            Body::Dir(_) => NodeType::Directory,
            Body::Symlink(_) => NodeType::Symlink,
            Body::Plain(_) | Body::Draft(_) | Body::Record(_) => NodeType::File,
        };
        if seen.node_type != node_type {
            return differs("type", &seen.node_type, &node_type);
        }
        if seen.nlink != node.nlink {
            return differs("nlink", &seen.nlink, &node.nlink);
        }
        if seen.mode != node.mode {
            return differs("mode", &seen.mode, &node.mode);
        }
        if *met.entry(seen.ino.0).or_insert(told) != told {
            return differs("inode of another file", &seen.ino, &told);
        }
        // A node keeps its number, and its modification time while nobody touches its content.
        let look = (seen.ino.0, node.touched, seen.mtime_ns);
        if let Some((ino, touched, mtime)) = self.looks.insert(told, look) {
            if ino != seen.ino.0 {
                return differs("inode", &seen.ino, &ino);
            }
            if node_type != NodeType::Directory && touched == node.touched && mtime != look.2 {
                return differs("mtime", &seen.mtime_ns, &mtime);
            }
        }
        let client = self.nobody();
        let xattrs = client.xattrs(seen.ino).map_err(|errno| format!("xattrs {path}: {errno}"))?;
        let xattrs: BTreeMap<_, _> = xattrs.into_iter().collect();
        if xattrs != node.xattrs {
            return differs("attributes", &xattrs, &node.xattrs);
        }
        let Body::Dir(names) = &node.body else {
            return self.compare_file(told, seen, path);
        };
        let failed = |errno: &str| format!("listing {path}: {errno}");
        let mut listed = client.list(seen.ino, 2).map_err(failed)?;
        // The computed names that are listed: `AGENTS.md` and `ready/`.
        listed.retain(|entry| {
            let computed = entry.name == b"AGENTS.md" && told == ROOT || entry.name == b"ready";
            !(computed && entry.attr.ino.0 >= 1 << 48)
        });
        // In which order they come is not promised.
        listed.sort_by(|a, b| a.name.cmp(&b.name));
        let listed_names: Vec<String> = listed.iter().map(|entry| text(&entry.name)).collect();
        let told_names: Vec<String> = names.keys().cloned().collect();
        if listed_names != told_names {
            return differs("names", &listed_names, &told_names);
        }
        for (entry, (name, child)) in listed.iter().zip(names) {
            self.compare_node(*child, &entry.attr, &format!("{path}/{name}"), met)?;
        }
        Ok(())
    }

    fn compare_file(&self, told: NodeId, seen: &Attr, path: &str) -> Step {
        let client = self.nobody();
        let content = match seen.node_type {
            NodeType::Symlink => client.readlink(seen.ino),
            _ => client.cat(path),
        };
        let content = content.map_err(|errno| format!("reading {path}: {errno}"))?;
        let expected = self.model.content(told);
        if content != expected {
            let (content, expected) = (text(content), text(expected));
            return Err(format!("`{path}`: content {content:?}, expected {expected:?}"));
        }
        if seen.size != content.len() as u64 {
            return Err(format!("`{path}`: size {} of {} bytes", seen.size, content.len()));
        }
        Ok(())
    }

    fn compare_records(&self) -> Step {
        for (id, told) in &self.model.records {
            let seen = self.system.read(|read| {
                let workspace = read.workspace_at(&TreePath::parse("work").unwrap())?;
                read.record_named(workspace.unwrap().key, &RecordId::new(id).unwrap())
            });
            let Some(seen) = seen else { return Err(format!("record {id} is not there")) };
            let standing = match (&seen.standing, &told.standing) {
                (Standing::Live { ino, valid: true, .. }, records::Standing::Live(node)) => {
                    self.looks.get(node).is_some_and(|look| look.0 == ino.0)
                }
                (Standing::Parked { dir }, records::Standing::Parked { dir: node, .. }) => {
                    self.looks.get(node).is_none_or(|look| look.0 == dir.0)
                }
                (Standing::Gone, records::Standing::Gone) => true,
                _ => false,
            };
            let owner = seen.owner.as_ref().map(|owner| owner.as_str().to_owned());
            let now = (seen.state.as_str(), owner, seen.version.0);
            let expected = (told.state.name(), told.owner.clone(), told.version);
            if !standing || now != expected {
                let (seen, told) = (&seen.standing, &told.standing);
                return Err(format!(
                    "record {id}: {now:?} {seen:?}, expected {expected:?} {told:?}"
                ));
            }
        }
        Ok(())
    }

    /// What must hold in the store now, with these inodes open.
    pub fn check_store(&self, open: &BTreeSet<u64>) -> Step {
        self.nobody().barrier();
        self.await_orphans(open)?;
        let mut faults = self.system.read(|read| faults(read, open));
        faults.extend(self.system.integrity());
        if faults.is_empty() {
            Ok(())
        } else {
            Err(format!("the store:\n  {}", faults.join("\n  ")))
        }
    }

    /// Nameless inodes without handles go: soon, or at the next look at those that were open at the last one,
    /// as on a slow machine they are.
    fn await_orphans(&self, open: &BTreeSet<u64>) -> Step {
        let until = Instant::now() + NAMELESS_HELD + Duration::from_secs(20);
        loop {
            let orphans = self.system.read(|read| read.orphans());
            let left: Vec<_> = orphans.into_iter().filter(|ino| !open.contains(&ino.0)).collect();
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(format!("nameless inodes are kept: {left:?}"));
            }
            self.nobody().barrier();
        }
    }
}

/// Everything that is wrong in the store.
fn faults(read: &dyn Read, open: &BTreeSet<u64>) -> Result<Vec<String>> {
    let mut faults = read.unowned()?;
    let (mut nodes, mut names) = (BTreeMap::new(), Vec::new());
    read.all_nodes(&mut |(ino, node)| {
        nodes.insert(ino, node.unwrap());
        true
    })?;
    read.all_entries(&mut |EntryRow { parent, name, ino }| {
        names.push((parent, name.unwrap(), ino));
        true
    })?;
    links(read, &nodes, &names, open, &mut faults)?;
    let mut live = BTreeSet::new();
    for workspace in read.workspaces()? {
        let mut records = Vec::new();
        read.records(workspace.key, &mut |record| {
            records.push(record);
            true
        })?;
        for record in records {
            if let Standing::Live { ino, .. } = &record.standing {
                live.insert(*ino);
            }
            let wrong = record_faults(read, &record)?;
            faults.extend(wrong.into_iter().map(|wrong| format!("record {}: {wrong}", record.id)));
        }
    }
    for (dir, name, ino) in &names {
        let Some(node) = nodes.get(ino) else { continue };
        match node.class {
            Class::Record if !live.contains(ino) => faults.push(format!("{name}: of no record")),
            Class::Draft => {
                let draft = read.draft(*ino)?;
                let right = draft.is_some_and(|draft| {
                    (draft.dir, &draft.name) == (*dir, name)
                        && draft.content.len() as u64 == node.size
                });
                if !right {
                    faults.push(format!("{name}: not the draft that it says"));
                }
            }
            _ => {}
        }
        if node.class != Class::Plain && read.next_chunk(*ino, 0)?.is_some() {
            faults.push(format!("{name}: a governed file has chunks"));
        }
    }
    ledger(read, &mut faults)?;
    Ok(faults)
}

/// Names against link counts, directories against their parents.
fn links(
    read: &dyn Read,
    nodes: &BTreeMap<Ino, Node>,
    names: &[(Ino, FileName, Ino)],
    open: &BTreeSet<u64>,
    faults: &mut Vec<String>,
) -> Result<()> {
    let directory = |ino: &Ino| nodes.get(ino).is_some_and(|n| n.node_type == NodeType::Directory);
    for (ino, node) in nodes {
        let own = names.iter().filter(|(.., child)| child == ino).count();
        let below = names.iter().filter(|(dir, _, child)| dir == ino && directory(child)).count();
        let nameless = own == 0 && ino.0 != 1;
        let wanted = match node.node_type {
            NodeType::Directory if !nameless => 2 + below,
            _ => own,
        };
        if node.nlink as usize != wanted {
            faults.push(format!("inode {}: nlink {}, not {wanted}", ino.0, node.nlink));
        }
        if nameless && !open.contains(&ino.0) {
            faults.push(format!("inode {} has no name and no handle", ino.0));
        }
    }
    for (dir, name, ino) in names {
        if !directory(dir) {
            faults.push(format!("{name} is in no directory"));
        }
        if directory(ino) {
            let parent = nodes[ino].parent;
            if parent != *dir || read.dir_name(*ino)?.as_ref() != Some(name) {
                faults.push(format!("{name}: a directory that thinks it is elsewhere"));
            }
        }
    }
    Ok(())
}

/// A record's file, place and versions.
fn record_faults(read: &dyn Read, record: &Record) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    // Versions lie side by side, newest first, down to the first.
    let mut g = record.version_g;
    for version in (1..=record.version.0).rev() {
        match read.version(g)? {
            Some(row) if row.record == record.key && row.version.0 == version => g = row.before_g,
            _ => faults.push(format!("version {version} is not at {g}")),
        }
    }
    let mut g = record.last_g;
    while let Some(event) = read.event(g)? {
        if !event.line.contains(&format!("\"id\":\"{}\"", record.id)) {
            faults.push(format!("event {g} is about something else"));
        }
        if event.before_g >= g {
            faults.push(format!("event {g} comes after itself"));
            break;
        }
        g = event.before_g;
    }
    if g != G(0) {
        faults.push(format!("event {g} is not there"));
    }
    let Standing::Live { ino, dir, name, valid } = &record.standing else { return Ok(faults) };
    let content = read.version(record.version_g)?.map(|row| row.content).unwrap_or_default();
    match read.lookup(*dir, name)? {
        Some(node) if node.ino == *ino && node.class == Class::Record && node.nlink == 1 => {
            if node.size != content.len() as u64 {
                faults.push(format!("size {} of {} bytes", node.size, content.len()));
            }
        }
        found => faults.push(format!("its file {name} is not there: {found:?}")),
    }
    // Directory, row and text say the same.
    if let Reading::Fields(fields) = super::text::read(&content)
        && lifecycle::status(&fields) != record.status.as_deref()
        && record.is_valid()
    {
        faults.push(format!("its row says status {:?}: {:?}", record.status, text(&content)));
    }
    let place = read.place(*dir)?.map(|place| {
        let path = place.path.names().iter().chain(&place.relative);
        path.map(|name| text(name.as_bytes())).collect::<Vec<_>>()
    });
    match place.map(|path| lifecycle::place(&path)) {
        Some(lifecycle::Place::State(state, owner)) => {
            let row = (record.state.as_str(), record.owner.as_ref().map(|owner| owner.as_str()));
            if row != (state.name(), owner.as_deref()) {
                faults.push(format!("it is {row:?} in the directory of {state:?} {owner:?}"));
            }
            let id = record.id.as_str();
            if let Err(Some(why)) = lifecycle::judge(&content, id, state)
                && *valid
            {
                faults.push(format!("not right for its directory: {why}: {:?}", text(&content)));
            }
        }
        _ => faults.push("it lies in no state's directory".into()),
    }
    Ok(faults)
}

/// Dense, chained, and each line ends where it says.
fn ledger(read: &dyn Read, faults: &mut Vec<String>) -> Result<()> {
    let mut verifier = Verifier::new();
    let (mut g, mut end) = (G(0), 0);
    while let Some(event) = read.event(g.next())? {
        g = g.next();
        end += event.line.len() as u64 + 1;
        if let Err(error) = verifier.push(&event.line) {
            faults.push(format!("the ledger: {error}"));
            break;
        }
        if (event.g, event.end) != (g, end) {
            faults.push(format!("event {g} does not end at {end}"));
        }
    }
    if read.last_event()?.map_or(G(0), |event| event.g) != g {
        faults.push(format!("the ledger has a gap after {g}"));
    }
    Ok(())
}
