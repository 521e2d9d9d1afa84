//! Descriptors that a process passes on to those it starts: `{ echo a; echo b; } > X` is one open, and
//! each program that writes to it closes a copy of its own when it ends.
//!
//! What must stay true: nothing here decides a right, and what cannot be known (another name space, another
//! user's process, one with very many descriptors) is no reason to put a save off; what is put off is saved
//! when whoever opened the file closes it, or when nobody has it any more. Deliberately not here: what a save is.

use std::fs;

use crate::limits::DESCRIPTORS_MAX;
use crate::numbers::Ino;

use super::lineage::Lineages;

/// Whether the process that opened a file by its thread `opener` has it open still when the thread `closer`
/// closes a descriptor of it. Whoever opened it and `wrote` itself ends that by any descriptor.
pub(in crate::tree) fn is_kept_open(
    lineages: &Lineages,
    opener: u32,
    (closer, wrote): (u32, bool),
    ino: Ino,
) -> bool {
    if wrote && opener == closer {
        return false;
    }
    match (lineages.process_of(opener), lineages.process_of(closer)) {
        (Some(owner), Some(other)) => (owner != other || !wrote) && has_open(owner, ino),
        _ => false,
    }
}

/// Whether a process, or one of its threads, has a file of this number open, in whichever file system.
pub(in crate::tree) fn has_open(process: u32, ino: Ino) -> bool {
    let Ok(open) = fs::read_dir(format!("/proc/{process}/fdinfo")) else { return false };
    let number = ino.0.to_string();
    open.flatten().take(DESCRIPTORS_MAX).any(|one| {
        let told = fs::read_to_string(one.path()).unwrap_or_default();
        told.lines().any(|line| line.strip_prefix("ino:").is_some_and(|ino| ino.trim() == number))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn what_a_process_has_open_is_told_by_its_number() {
        let file = tempfile::tempfile().unwrap();
        let ino = Ino(file.metadata().unwrap().ino());
        let own = std::process::id();
        assert!(has_open(own, ino));
        drop(file);
        assert!(!has_open(own, Ino(u64::MAX)) && !has_open(u32::MAX, ino));
        // Oneself closes for oneself, and nothing is known of who is not there.
        let kept = |opener| is_kept_open(&Lineages::default(), opener, (own, true), ino);
        assert!(!kept(own) && !kept(0));
    }
}
