//! The tree: every node has the names that it says it has, and every name leads to a node.

use std::collections::{HashMap, HashSet};

use crate::names::FileName;
use crate::numbers::Ino;
use crate::store::{Class, Node, NodeType, Read};

use super::super::Failure;
use super::super::find::ROOT;
use super::{Check, shown};

/// Longest way to the root that is climbed.
const DEPTH_MAX: usize = 4096;

/// All nodes, with what the entries say of them.
pub(super) type Nodes = HashMap<Ino, Seen>;

/// A node and what was found out about it.
pub(super) struct Seen {
    pub node: Node,
    /// Names that lead to it.
    pub names: u32,
    /// Those of them that are noted as further ones.
    pub further: u32,
    /// Directories in it.
    pub directories: u32,
}

pub(super) fn check(read: &dyn Read, check: &mut Check<'_>) -> Result<Nodes, Failure> {
    let mut nodes = Nodes::new();
    read.all_nodes(&mut |node| {
        nodes.insert(node.ino, Seen { node, names: 0, further: 0, directories: 0 });
        true
    })?;
    check.report.nodes = nodes.len() as u64;
    entries(read, &mut nodes, check)?;
    match nodes.get(&ROOT) {
        Some(root) if root.node.node_type == NodeType::Directory => {}
        _ => check.problem("root", "there is no root directory"),
    }
    let orphans = read.orphans()?;
    for orphan in &orphans {
        if nodes.get(orphan).is_none_or(|seen| seen.node.nlink > 0 || seen.names > 0) {
            check.problem(format!("node {}", orphan.0), "is marked as nameless, and is not");
        }
    }
    let mut inos: Vec<Ino> = nodes.keys().copied().collect();
    inos.sort_unstable();
    let total = inos.len() as u64;
    for (nth, ino) in inos.into_iter().enumerate() {
        if !check.tick(nth as u64, total, "nodes") {
            break;
        }
        let Some(seen) = nodes.get(&ino) else { continue };
        links(read, seen, orphans.contains(&ino), check);
        if seen.node.node_type == NodeType::Directory {
            climb(&nodes, &seen.node, check);
        }
        content(read, &seen.node, check)?;
    }
    Ok(nodes)
}

/// Every name is of a directory and leads to a node; counts them.
fn entries(read: &dyn Read, nodes: &mut Nodes, check: &mut Check<'_>) -> Result<(), Failure> {
    let mut further = HashSet::new();
    read.all_further_names(&mut |name| {
        further.insert(name);
        true
    })?;
    let mut directories: Vec<(Ino, FileName, Ino)> = Vec::new();
    let mut problems: Vec<(String, String)> = Vec::new();
    let mut count = 0;
    read.all_entries(&mut |(parent, name, ino)| {
        count += 1;
        let thing = || format!("name {name} in node {}", parent.0);
        match nodes.get(&parent) {
            None => problems.push((thing(), "its directory does not exist".to_owned())),
            Some(above) if above.node.node_type != NodeType::Directory => {
                problems.push((thing(), "lies in something that is no directory".to_owned()));
            }
            Some(_) => {}
        }
        let Some(seen) = nodes.get_mut(&ino) else {
            problems.push((thing(), format!("leads to node {}, which does not exist", ino.0)));
            return true;
        };
        seen.names += 1;
        if seen.node.node_type == NodeType::Directory {
            if let Some(above) = nodes.get_mut(&parent) {
                above.directories += 1;
            }
            directories.push((parent, name, ino));
        } else if further.remove(&(ino, parent, name.clone())) {
            seen.further += 1;
        } else if seen.node.parent != parent {
            let what = format!("leads to node {}, whose first name lies elsewhere", ino.0);
            problems.push((thing(), what));
        }
        true
    })?;
    for (ino, dir, name) in further {
        let thing = format!("name {name} in node {}", dir.0);
        problems.push((thing, format!("is noted as a further one of node {}, and is not", ino.0)));
    }
    check.report.entries = count;
    for (thing, what) in problems {
        check.problem(thing, what);
    }
    for (parent, name, ino) in directories {
        let said = nodes.get(&ino).map(|seen| seen.node.parent);
        if said != Some(parent) {
            let what = format!("does not know that it lies in node {}", parent.0);
            check.problem(shown(read, ino), what);
        }
        if read.dir_name(ino)?.as_ref() != Some(&name) {
            check.problem(shown(read, ino), format!("does not know that its name is {name}"));
        }
    }
    Ok(())
}

/// The number of links is that of the names; a node without one is marked so.
fn links(read: &dyn Read, seen: &Seen, orphan: bool, check: &mut Check<'_>) {
    let Seen { node, names, further, directories } = seen;
    let root = node.ino == ROOT;
    if *names == 0 && !root {
        if !orphan {
            check.problem(shown(read, node.ino), "has no name and is not marked as nameless");
        }
        return;
    }
    let wanted = match node.node_type {
        NodeType::Directory => 2 + directories,
        _ => *names,
    };
    if node.nlink != wanted {
        let what = format!("says {} links and has {wanted}", node.nlink);
        check.problem(shown(read, node.ino), what);
    }
    if node.node_type == NodeType::Directory && *names > u32::from(!root) {
        check.problem(shown(read, node.ino), format!("is a directory with {names} names"));
    }
    if node.node_type != NodeType::Directory && names - further != 1 {
        let what = format!("has {names} names, of which {further} are noted as further ones");
        check.problem(shown(read, node.ino), what);
    }
    if node.class != Class::Plain && (node.node_type != NodeType::File || *names != 1) {
        check.problem(format!("node {}", node.ino.0), "is a record or draft without one name");
    }
}

/// From every directory the way up ends at the root.
fn climb(nodes: &Nodes, node: &Node, check: &mut Check<'_>) {
    let mut at = node;
    for _ in 0..DEPTH_MAX {
        if at.ino == ROOT || at.nlink == 0 {
            return;
        }
        match nodes.get(&at.parent) {
            Some(above) => at = &above.node,
            None => break,
        }
    }
    check.problem(format!("node {}", node.ino.0), "is a directory that the root does not reach");
}

/// Chunks belong to plain files only, and lie within their size; links have a target.
fn content(read: &dyn Read, node: &Node, check: &mut Check<'_>) -> Result<(), Failure> {
    let thing = || format!("node {}", node.ino.0);
    let plain = node.node_type == NodeType::File && node.class == Class::Plain;
    if !plain {
        if read.next_chunk(node.ino, 0)?.is_some() {
            check.problem(thing(), "is no plain file and has chunks");
        }
    } else {
        let chunks = node.size.div_ceil(crate::limits::CHUNK_BYTES as u64);
        let after =
            u32::try_from(chunks).ok().filter(|index| *index <= crate::limits::CHUNK_INDEX_MAX);
        // One without a name may be on its way out, piece by piece.
        if let Some(after) = after.filter(|_| node.nlink > 0)
            && read.next_chunk(node.ino, after)?.is_some()
        {
            check.problem(thing(), "has chunks after its end");
        }
    }
    if node.node_type == NodeType::Symlink {
        match read.symlink(node.ino)? {
            Some(target) if target.len() as u64 == node.size => {}
            Some(_) => check.problem(thing(), "is a link whose size is not its target's"),
            None => check.problem(thing(), "is a link without a target"),
        }
    }
    Ok(())
}
