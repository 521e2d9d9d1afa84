//! The tree: every node has the names that it says it has, and every name leads to a node.

use std::collections::HashSet;

use crate::names::FileName;
use crate::numbers::{Ino, ROOT};
use crate::store::{self, Class, EntryRow, Node, NodeType, Part, Read};

use super::super::Failure;
use super::{Check, shown};

/// All nodes, with what the entries say of them. There may be millions: what is needed of one by itself only is
/// read again.
pub(super) struct Nodes {
    /// By number.
    seen: Vec<Seen>,
    /// The directories to whose quotas they are charged, of those that are, by number.
    quotas: Vec<(Ino, Ino)>,
    /// Those whose rows cannot be read.
    illegible: HashSet<Ino>,
    /// All rows were seen; else nobody knows which nodes there are.
    is_whole: bool,
    /// All names were seen; else nobody knows how many there are of each.
    are_names_whole: bool,
}

/// What its row says of a node, and what was found out about it. Of a million it has 32 MB.
pub(super) struct Seen {
    pub ino: Ino,
    pub parent: Ino,
    pub nlink: u32,
    pub node_type: NodeType,
    pub class: Class,
    /// It is the file of a record.
    is_taken: bool,
    /// Names that lead to it.
    pub names: u32,
    /// Of a directory: directories in it. Of all else: those of its names that are noted as further ones.
    counted: u32,
}

impl Seen {
    fn new(node: &Node) -> Seen {
        Seen {
            ino: node.ino,
            parent: node.parent,
            nlink: node.nlink,
            node_type: node.node_type,
            class: node.class,
            is_taken: false,
            names: 0,
            counted: 0,
        }
    }
}

impl Nodes {
    fn place(&self, ino: Ino) -> Option<usize> {
        self.seen.binary_search_by_key(&ino, |seen| seen.ino).ok()
    }

    /// A node, if it could be read.
    pub fn get(&self, ino: Ino) -> Option<&Seen> {
        self.place(ino).map(|place| &self.seen[place])
    }

    fn get_mut(&mut self, ino: Ino) -> Option<&mut Seen> {
        self.place(ino).map(|place| &mut self.seen[place])
    }

    /// Whether a node is surely not there.
    pub fn is_gone(&self, ino: Ino) -> bool {
        self.is_whole && self.place(ino).is_none() && !self.illegible.contains(&ino)
    }

    /// The directory to whose quota a node is charged.
    pub fn quota(&self, ino: Ino) -> Option<Ino> {
        let place = self.quotas.binary_search_by_key(&ino, |(ino, _)| *ino);
        place.ok().map(|place| self.quotas[place].1)
    }

    /// Whether any is charged to one.
    pub fn have_quotas(&self) -> bool {
        !self.quotas.is_empty()
    }

    /// All that could be read, in the order of their numbers.
    pub fn all(&self) -> &[Seen] {
        &self.seen
    }

    /// Reads the rows once more of all that could be read.
    ///
    /// # Errors
    /// A store that cannot be read.
    pub fn read_all(&self, read: &dyn Read, visit: &mut dyn FnMut(&Node)) -> store::Result<()> {
        let listed = read.all_nodes(&mut |(_, node)| {
            node.iter().for_each(&mut *visit);
            true
        });
        // That not all rows can be read was told of when they were read first.
        if self.is_whole { listed } else { Ok(()) }
    }

    /// Notes whose file a node is; false if it is another record's already.
    pub fn take(&mut self, ino: Ino) -> bool {
        self.get_mut(ino).is_none_or(|seen| !std::mem::replace(&mut seen.is_taken, true))
    }

    /// The nodes with names that are marked as the file of a record, and are that of none.
    pub fn untaken(&self) -> impl Iterator<Item = &Seen> {
        let of_records = self.seen.iter().filter(|seen| seen.class == Class::Record);
        of_records.filter(|seen| seen.names > 0 && !seen.is_taken)
    }
}

pub(super) fn check(read: &dyn Read, check: &mut Check<'_>) -> Result<Nodes, Failure> {
    let mut nodes = Nodes {
        seen: Vec::new(),
        quotas: Vec::new(),
        illegible: HashSet::new(),
        is_whole: false,
        are_names_whole: false,
    };
    let listed = read.all_nodes(&mut |(ino, node)| {
        match node {
            Ok(node) => {
                nodes.seen.push(Seen::new(&node));
                nodes.quotas.extend(node.quota.map(|dir| (ino, dir)));
                if node.mode & !0o7777 != 0 {
                    let what = format!("has the mode {:o}, which is none", node.mode);
                    check.problem(shown(read, ino), what);
                }
            }
            Err(why) => {
                nodes.illegible.insert(ino);
                check.illegible(format!("node {}", ino.0), &why);
            }
        }
        true
    });
    nodes.is_whole = check.got(|| "nodes".to_owned(), listed)?.is_some();
    // The rows of a damaged file come in any order.
    nodes.seen.sort_by_key(|seen| seen.ino);
    nodes.seen.dedup_by_key(|seen| seen.ino);
    nodes.seen.shrink_to_fit();
    nodes.quotas.sort_unstable();
    check.report.nodes = nodes.seen.len() as u64;
    entries(read, &mut nodes, check)?;
    match nodes.get(ROOT) {
        Some(root) if root.node_type == NodeType::Directory => {}
        None if !nodes.is_gone(ROOT) => {}
        _ => check.problem("root", "there is no root directory"),
    }
    let mut orphans = HashSet::new();
    let listed = read.inodes_with(Part::Nameless, &mut |ino| {
        orphans.insert(ino);
        true
    });
    check.got(|| "nodes without a name".to_owned(), listed)?;
    for orphan in &orphans {
        if nodes.get(*orphan).is_some_and(|seen| seen.nlink > 0 || seen.names > 0) {
            check.problem(format!("node {}", orphan.0), "is marked as nameless, and is not");
        }
    }
    let total = nodes.seen.len() as u64;
    let mut reached = HashSet::from([ROOT]);
    for (nth, seen) in nodes.all().iter().enumerate() {
        if !check.tick(nth as u64, total, "nodes") {
            break;
        }
        if nodes.are_names_whole {
            links(read, seen, orphans.contains(&seen.ino), check);
        }
        if seen.node_type == NodeType::Directory {
            climb(&nodes, seen, &mut reached, check);
        }
    }
    Ok(nodes)
}

/// Every name is of a directory and leads to a node; counts them.
fn entries(read: &dyn Read, nodes: &mut Nodes, check: &mut Check<'_>) -> Result<(), Failure> {
    let mut further = HashSet::new();
    let listed = read.all_further_names(&mut |name| {
        further.insert(name);
        true
    });
    let are_further_known = check.got(|| "further names".to_owned(), listed)?.is_some();
    let mut directories: Vec<(Ino, FileName, Ino)> = Vec::new();
    let mut count = 0;
    let listed = read.all_entries(&mut |EntryRow { parent, name, ino }| {
        count += 1;
        let shown = |name: &FileName| format!("name {name} in node {}", parent.0);
        let thing = || match &name {
            Ok(name) => shown(name),
            Err(bytes) => format!("name `{bytes}` in node {}", parent.0),
        };
        if name.is_err() {
            check.problem(thing(), "is none that a file can have");
        }
        match nodes.get(parent) {
            Some(above) if above.node_type != NodeType::Directory => {
                check.problem(thing(), "lies in something that is no directory");
            }
            None if nodes.is_gone(parent) => check.problem(thing(), "its directory does not exist"),
            _ => {}
        }
        let is_gone = nodes.is_gone(ino);
        let Some(seen) = nodes.get_mut(ino) else {
            if is_gone {
                check.problem(thing(), format!("leads to node {}, which does not exist", ino.0));
            }
            return true;
        };
        seen.names += 1;
        let is_first = seen.parent == parent;
        if seen.node_type == NodeType::Directory {
            if let Some(above) = nodes.get_mut(parent) {
                above.counted += 1;
            }
            directories.extend(name.ok().map(|name| (parent, name, ino)));
            return true;
        }
        let Ok(name) = name else { return true };
        let of = (ino, parent, name);
        if further.remove(&of) {
            seen.counted += 1;
        } else if !is_first && are_further_known {
            let what = format!("leads to node {}, whose first name lies elsewhere", ino.0);
            check.problem(shown(&of.2), what);
        }
        true
    });
    nodes.are_names_whole = check.got(|| "names".to_owned(), listed)?.is_some();
    nodes.are_names_whole &= are_further_known;
    for (ino, dir, name) in further.into_iter().filter(|_| nodes.are_names_whole) {
        let thing = format!("name {name} in node {}", dir.0);
        check.problem(thing, format!("is noted as a further one of node {}, and is not", ino.0));
    }
    check.report.entries = count;
    knows_its_place(read, nodes, directories, check)
}

/// Every directory knows by which name it lies in which other one.
fn knows_its_place(
    read: &dyn Read,
    nodes: &Nodes,
    directories: Vec<(Ino, FileName, Ino)>,
    check: &mut Check<'_>,
) -> Result<(), Failure> {
    for (parent, name, ino) in directories {
        let said = nodes.get(ino).map(|seen| seen.parent);
        if said != Some(parent) {
            let what = format!("does not know that it lies in node {}", parent.0);
            check.problem(shown(read, ino), what);
        }
        let noted = check.got(|| format!("name of node {}", ino.0), read.dir_name(ino))?;
        if noted.is_some_and(|noted| noted.as_ref() != Some(&name)) {
            check.problem(shown(read, ino), format!("does not know that its name is {name}"));
        }
    }
    Ok(())
}

/// The number of links is that of the names; a node without one is marked so.
fn links(read: &dyn Read, seen: &Seen, orphan: bool, check: &mut Check<'_>) {
    let Seen { names, counted, .. } = seen;
    let root = seen.ino == ROOT;
    if *names == 0 && !root {
        if !orphan {
            check.problem(shown(read, seen.ino), "has no name and is not marked as nameless");
        }
        return;
    }
    let wanted = match seen.node_type {
        NodeType::Directory => 2 + counted,
        _ => *names,
    };
    if seen.nlink != wanted {
        let what = format!("says {} links and has {wanted}", seen.nlink);
        check.problem(shown(read, seen.ino), what);
    }
    if seen.node_type == NodeType::Directory && *names > u32::from(!root) {
        check.problem(shown(read, seen.ino), format!("is a directory with {names} names"));
    }
    if seen.node_type != NodeType::Directory && names.saturating_sub(*counted) != 1 {
        let what = format!("has {names} names, of which {counted} are noted as further ones");
        check.problem(shown(read, seen.ino), what);
    }
    if seen.class != Class::Plain && (seen.node_type != NodeType::File || *names != 1) {
        check.problem(format!("node {}", seen.ino.0), "is a record or draft without one name");
    }
}

/// From every directory the way up ends at the root, or at one from which it does.
fn climb(nodes: &Nodes, seen: &Seen, reached: &mut HashSet<Ino>, check: &mut Check<'_>) {
    let (mut at, mut way) = (seen, HashSet::new());
    while !reached.contains(&at.ino) && at.nlink > 0 {
        let is_circle = !way.insert(at.ino);
        match nodes.get(at.parent) {
            Some(above) if !is_circle => at = above,
            None if !nodes.is_gone(at.parent) => return,
            _ => {
                let what = "is a directory that the root does not reach";
                return check.problem(format!("node {}", seen.ino.0), what);
            }
        }
    }
    reached.extend(way);
}
