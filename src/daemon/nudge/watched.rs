//! Who watches what, as the kernel says of every process that this one may see.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

use workfs_mount::{MountId, ROOT};

use crate::limits::{NEW_DIRS_LOOK_EVERY, NEW_DIRS_LOOK_FOR, WATCHERS_LOOK_EVERY};
use crate::numbers::Ino;
use crate::tree::Hub;

/// What is watched in each mount.
#[derive(Default)]
pub(super) struct Watched {
    pub inodes: HashMap<MountId, HashSet<Ino>>,
    /// Where each mount is, and the device number of its files.
    pub dirs: HashMap<MountId, (PathBuf, u64)>,
    looked: Option<Instant>,
    /// When somebody was told of a new directory, for the last time.
    told_of_dir: Option<Instant>,
}

impl Watched {
    /// Looks, if it was not just now; says whether anybody watches.
    ///
    /// Who hears of a new directory watches it next, and reads what is in it. To miss nothing that
    /// comes later, it is looked before each batch for a while.
    pub fn look(&mut self, hub: &Hub) -> bool {
        let is_new = self.told_of_dir.is_some_and(|at| at.elapsed() < NEW_DIRS_LOOK_FOR);
        let pause = if is_new { NEW_DIRS_LOOK_EVERY } else { WATCHERS_LOOK_EVERY };
        let since = self.looked.map(|at| at.elapsed());
        if let Some(since) = since.filter(|since| is_new && *since < pause) {
            std::thread::sleep(pause.saturating_sub(since));
        }
        if is_new || since.is_none_or(|since| since >= pause) {
            self.looked = Some(Instant::now());
            self.dirs = hub.mount_dirs().into_iter().collect();
            self.inodes = look_at_processes(hub, &self.dirs);
            for id in self.inodes.keys() {
                if let (Some(place), Some((dir, _))) = (hub.place(*id), self.dirs.get_mut(id)) {
                    *dir = place;
                }
            }
        }
        !self.inodes.is_empty()
    }

    /// Somebody is told of a new directory.
    pub fn tells_of_dir(&mut self) {
        self.told_of_dir = Some(Instant::now());
    }
}

fn look_at_processes(
    hub: &Hub,
    dirs: &HashMap<MountId, (PathBuf, u64)>,
) -> HashMap<MountId, HashSet<Ino>> {
    let devices: HashMap<u64, MountId> =
        dirs.iter().map(|(id, (_, device))| (*device, *id)).collect();
    let mut found: HashMap<MountId, HashSet<Ino>> = HashMap::new();
    for process in numbered(Path::new("/proc")) {
        let infos = process.join("fdinfo");
        for fd in numbered(&process.join("fd")) {
            let to = match std::fs::read_link(&fd) {
                Ok(to) => to,
                // One that may not be looked at may not be looked at anywhere.
                Err(error) if error.kind() == ErrorKind::PermissionDenied => break,
                Err(_) => continue,
            };
            let is_inotify = to == Path::new("anon_inode:inotify");
            let Some(name) = fd.file_name().filter(|_| is_inotify) else { continue };
            let text = std::fs::read_to_string(infos.join(name)).unwrap_or_default();
            for (device, ino) in text.lines().filter_map(watch_of) {
                let Some(id) = devices.get(&device) else { continue };
                // A mount's root has the protocol's number in its kernel, whatever it shows.
                let root = || hub.identity(*id).map_or(ROOT, |identity| identity.root);
                let ino = if ino == ROOT { root() } else { ino };
                found.entry(*id).or_default().insert(ino);
            }
        }
    }
    found
}

/// Entries of a directory whose names are numbers.
fn numbered(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// `inotify wd:1 ino:3 sdev:2a …`: device and inode.
fn watch_of(line: &str) -> Option<(u64, Ino)> {
    let field = |key: &str| {
        let text = line.split(' ').find_map(|word| word.strip_prefix(key))?;
        u64::from_str_radix(text, 16).ok()
    };
    line.starts_with("inotify ").then_some(())?;
    Some((field("sdev:")?, Ino(field("ino:")?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_is_read_from_what_the_kernel_says() {
        let line = "inotify wd:1 ino:2a sdev:3f mask:800afce ignored_mask:0 fhandle-bytes:8";
        assert_eq!(watch_of(line), Some((0x3f, Ino(0x2a))));
        assert_eq!(watch_of("pos:\t0"), None);
    }
}
