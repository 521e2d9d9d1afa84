//! Random work through two mounts by turns, beside the same on the file system that the tests lie on:
//! each call ends alike, and after it both mounts show alike what is there, and what is not.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use crate::harness::{Random, Setup, long};

/// A path of few, so that they meet.
pub fn any_path(random: &mut Random) -> PathBuf {
    let names = 1 + random.below(3);
    (0..names).map(|_| ["a", "b", "c", "d"][random.below(4) as usize]).collect()
}

/// One call.
#[derive(Clone, Debug)]
enum Call {
    Write(PathBuf, u64),
    Append(PathBuf),
    MakeDir(PathBuf),
    RemoveDir(PathBuf),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf),
    Link(PathBuf, PathBuf),
    Symlink(PathBuf),
    Mode(PathBuf, u32),
    /// Sets a directory's time to one of two, so that times alone tell nothing.
    Time(PathBuf, u64),
}

impl Call {
    fn any(random: &mut Random) -> Call {
        let path = any_path(random);
        match random.below(16) {
            0..=2 => Call::Write(path, random.below(9000)),
            3 => Call::Append(path),
            4 | 5 => Call::MakeDir(path),
            6 => Call::RemoveDir(path),
            7 | 8 => Call::Remove(path),
            9..=11 => Call::Rename(path, any_path(random)),
            12 => Call::Link(path, any_path(random)),
            13 => Call::Symlink(path),
            14 => Call::Mode(path, [0o600, 0o644, 0o755][random.below(3) as usize]),
            _ => Call::Time(path, random.below(2)),
        }
    }

    fn make(&self, root: &Path) -> io::Result<()> {
        let at = |path: &PathBuf| root.join(path);
        match self {
            Call::Write(path, bytes) => fs::write(at(path), vec![b'x'; *bytes as usize]),
            Call::Append(path) => {
                fs::OpenOptions::new().append(true).open(at(path))?.write_all(b"more")
            }
            Call::MakeDir(path) => fs::create_dir(at(path)),
            Call::RemoveDir(path) => fs::remove_dir(at(path)),
            Call::Remove(path) => fs::remove_file(at(path)),
            Call::Rename(from, to) => fs::rename(at(from), at(to)),
            Call::Link(from, to) => fs::hard_link(at(from), at(to)),
            Call::Symlink(path) => symlink("a/b", at(path)),
            Call::Mode(path, mode) => {
                fs::set_permissions(at(path), fs::Permissions::from_mode(*mode))
            }
            Call::Time(path, seconds) => {
                let file = fs::File::open(at(path))?;
                file.set_modified(UNIX_EPOCH + Duration::from_secs(*seconds))
            }
        }
    }

    fn paths(&self) -> Vec<&PathBuf> {
        match self {
            Call::Rename(from, to) | Call::Link(from, to) => vec![from, to],
            Call::Write(path, _) | Call::Mode(path, _) | Call::Time(path, _) => vec![path],
            Call::Append(path) | Call::MakeDir(path) | Call::RemoveDir(path) => vec![path],
            Call::Remove(path) | Call::Symlink(path) => vec![path],
        }
    }
}

/// What is seen of a path.
#[derive(Debug, PartialEq)]
pub struct Seen {
    mode: u32,
    links: u64,
    content: Option<Vec<u8>>,
    target: Option<PathBuf>,
    names: Option<BTreeSet<String>>,
}

pub fn see(path: &Path) -> Result<Seen, Option<i32>> {
    let errno = |error: io::Error| error.raw_os_error();
    let found = fs::symlink_metadata(path).map_err(errno)?;
    let (is_dir, is_file) = (found.is_dir(), found.is_file());
    let content = is_file.then(|| fs::read(path)).transpose().map_err(errno)?;
    assert!(content.as_ref().is_none_or(|content| content.len() as u64 == found.len()));
    let names = is_dir.then(|| names(path)).transpose().map_err(errno)?;
    let target = found.is_symlink().then(|| fs::read_link(path)).transpose().map_err(errno)?;
    Ok(Seen { mode: found.mode(), links: found.nlink(), content, target, names })
}

fn names(dir: &Path) -> io::Result<BTreeSet<String>> {
    fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// All that lies below.
fn walk(root: &Path, path: &Path, each: &mut dyn FnMut(&Path)) {
    each(path);
    if fs::symlink_metadata(root.join(path)).is_ok_and(|found| found.is_dir()) {
        for name in names(&root.join(path)).unwrap() {
            walk(root, &path.join(name), each);
        }
    }
}

// P7.4
#[test]
fn two_mounts_show_what_an_ordinary_file_system_shows() {
    let fixture = Setup::default().mounts(2).start();
    let plain = fixture.outside("plain");
    fs::create_dir(&plain).unwrap();
    let mounts = [0, 1].map(|nth| fixture.mount(nth).join("scratchpad"));
    fs::create_dir(&mounts[0]).unwrap();
    let seed = 0x9e37_79b9_7f4a_7c15 ^ u64::from(std::process::id());
    let mut random = Random(seed);
    let mut said = Vec::new();
    for step in 0..if long() { 100_000 } else { 3_000 } {
        let call = Call::any(&mut random);
        let through = random.below(2) as usize;
        let [here, there] = [&mounts[through], &plain].map(|root| {
            let made = call.make(root);
            made.map_err(|error| error.raw_os_error())
        });
        said.push((step, through, call.clone(), there));
        let told = || format!("seed {seed}: {:#?}", &said[said.len().saturating_sub(12)..]);
        assert_eq!(here, there, "{}", told());
        let mut looks: Vec<PathBuf> = call.paths().into_iter().cloned().collect();
        looks.extend((0..3).map(|_| any_path(&mut random)));
        looks.extend(call.paths().iter().filter_map(|path| path.parent()).map(Path::to_owned));
        if step % 100 == 99 {
            walk(&plain, Path::new(""), &mut |path| looks.push(path.to_owned()));
        }
        for look in &looks {
            let wanted = see(&plain.join(look));
            for mount in &mounts {
                assert_eq!(see(&mount.join(look)), wanted, "{look:?}, {}", told());
            }
        }
    }
    fixture.fsck_clean();
}
