//! What belongs to inodes: the content of plain files, the targets of links, and what else has a row.

use crate::limits::CHUNK_BYTES;
use crate::numbers::Ino;
use crate::store::{Chunks, Class, Node, NodeType, Part, Read};

use super::super::Failure;
use super::tree::{Nodes, Seen};
use super::{Check, shown_file};

pub(super) fn check(read: &dyn Read, nodes: &Nodes, check: &mut Check<'_>) -> Result<(), Failure> {
    let (mut chunks, total) = (Vec::<Chunks>::new(), check.report.nodes);
    let listed = read.all_chunks(&mut |one| {
        if nodes.is_gone(one.ino) {
            check.problem(format!("node {}", one.ino.0), "has content and does not exist");
        }
        chunks.push(one);
        check.tick(chunks.len() as u64, total, "contents")
    });
    let are_known = check.got(|| "contents".to_owned(), listed)?.is_some();
    if check.report.interrupted {
        return Ok(());
    }
    // The rows of a damaged file come in any order.
    chunks.sort_by_key(|one| one.ino);
    let mut links = Vec::new();
    let listed = nodes.read_all(read, &mut |node| {
        // One without a name may be on its way out, piece by piece.
        if are_known && node.nlink > 0 {
            let place = chunks.binary_search_by_key(&node.ino, |one| one.ino);
            content(read, node, place.ok().map(|place| &chunks[place]), check);
        }
        links.extend((node.node_type == NodeType::Symlink).then_some((node.ino, node.size)));
    });
    check.got(|| "nodes".to_owned(), listed)?;
    for (ino, size) in links {
        target(read, ino, size, check)?;
    }
    for part in Part::ALL {
        let mut wrong = Vec::new();
        let listed = read.inodes_with(part, &mut |ino| {
            if nodes.is_gone(ino) {
                wrong.push((ino, "does not exist"));
            } else if let Some(seen) = nodes.get(ino)
                && !has(part, seen)
            {
                wrong.push((ino, "is none that has one"));
            }
            true
        });
        check.got(|| what(part).to_owned(), listed)?;
        for (ino, why) in wrong {
            check.problem(format!("{} of node {}", what(part), ino.0), format!("the node {why}"));
        }
    }
    Ok(())
}

/// Plain files have as many chunks as they say, and these lie within their size. A chunk that is missing, and
/// what is missing at the end of one, is a hole.
fn content(read: &dyn Read, node: &Node, chunks: Option<&Chunks>, check: &mut Check<'_>) {
    let thing = || format!("node {}", node.ino.0);
    let plain = node.is_plain_file();
    let Some(chunks) = chunks else {
        if plain && node.chunks > 0 {
            let what = format!("says {} chunks of content and has none", node.chunks);
            check.problem(thing(), what);
        }
        return;
    };
    if !plain {
        return check.problem(thing(), "is no plain file and has chunks");
    }
    if chunks.count != node.chunks {
        let what = format!("says {} chunks of content and has {}", node.chunks, chunks.count);
        check.problem(thing(), what);
    }
    if chunks.end > node.size {
        let what = format!("has content up to {} after its end, {}", chunks.end, node.size);
        check.problem(thing(), what);
    }
    if chunks.longest > CHUNK_BYTES as u64 {
        check.problem(thing(), format!("has a chunk of {} bytes", chunks.longest));
    }
    if chunks.lost > 0 {
        let (lost, count) = (chunks.lost, chunks.count);
        let what = format!("{lost} of its {count} chunks are lost: write it anew, or remove it");
        check.lost(shown_file(read, (node.ino, node.parent)), what);
    }
}

/// That power loss took parts of big files: which they are, a whole check says.
pub(super) fn outline(read: &dyn Read, check: &mut Check<'_>) -> Result<(), Failure> {
    let (mut lost, mut count) = (Vec::new(), 0);
    let listed = read.all_chunks(&mut |one| {
        lost.extend((one.lost > 0).then_some(one));
        count += 1;
        check.tick(count, 0, "contents")
    });
    check.got(|| "contents".to_owned(), listed)?;
    let mut chunks = 0;
    for one in lost {
        let node = check.got(|| format!("node {}", one.ino.0), read.node(one.ino))?.flatten();
        chunks += node.filter(|node| node.nlink > 0).map_or(0, |_| one.lost);
    }
    if chunks > 0 {
        let what = format!(
            "{chunks} chunks of big files were not on the disk when power failed: `workfs fsck` names the files, \
             which are to be written anew or removed"
        );
        check.lost("store", what);
    }
    Ok(())
}

fn target(read: &dyn Read, ino: Ino, size: u64, check: &mut Check<'_>) -> Result<(), Failure> {
    let thing = || format!("node {}", ino.0);
    match check.got(thing, read.symlink(ino))? {
        Some(Some(target)) if target.len() as u64 != size => {
            check.problem(thing(), "is a link whose size is not its target's");
        }
        Some(None) => check.problem(thing(), "is a link without a target"),
        _ => {}
    }
    Ok(())
}

/// Whether a node may have it.
fn has(part: Part, node: &Seen) -> bool {
    match part {
        Part::DirName | Part::Quota => node.node_type == NodeType::Directory,
        Part::Target => node.node_type == NodeType::Symlink,
        Part::Draft => node.class == Class::Draft,
        Part::Lock => node.node_type != NodeType::Directory,
        Part::Attributes | Part::Nameless => true,
    }
}

fn what(part: Part) -> &'static str {
    match part {
        Part::DirName => "the name of a directory",
        Part::Target => "the target of a link",
        Part::Draft => "the text of a draft",
        Part::Attributes => "attributes",
        Part::Nameless => "the mark of a file without a name",
        Part::Lock => "the lease of a lock",
        Part::Quota => "the sum of a quota",
    }
}
