//! Random work by names and by descriptors that stay open in two mounts, beside the same on the file system
//! that the tests lie on. By names alone: `beside`. Left out is what docs/semantics.md and docs/posix.md
//! do not promise between mounts: where the next `read` of a descriptor begins that appends, and mappings.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::RenameFlags;

use crate::beside::{any_path, see};
use crate::harness::{Random, Setup, long, rename_with};

const SLOTS: u64 = 6;

/// One call.
#[derive(Clone, Debug)]
enum Call {
    MakeDir(PathBuf),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf, RenameFlags),
    Link(PathBuf, PathBuf),
    SetLen(PathBuf, u64),
    /// Into a slot, in place of what is open there.
    Open(u64, PathBuf, How),
    Close(u64),
    /// Of what is open in the slot.
    Opened(u64, Do),
}

#[derive(Clone, Copy, Debug)]
enum How {
    Read,
    /// Reads and writes; makes it where there is none.
    Make,
    /// Makes it, or fails.
    MakeNew,
    Empty,
    Append,
}

#[derive(Clone, Copy, Debug)]
enum Do {
    /// So many bytes at the end of one that appends, else where the descriptor stands.
    Write(usize),
    WriteAt(usize, u64),
    ReadAt(usize, u64),
    SetLen(u64),
    Len,
    Sync,
}

fn size(random: &mut Random) -> u64 {
    let sizes = [0, 1, 100, 4095, 4096, 4097, 12_345, 65_536, 140_000];
    sizes[random.below(sizes.len() as u64) as usize]
}

impl Call {
    fn any(random: &mut Random) -> Call {
        let (path, slot) = (any_path(random), random.below(SLOTS));
        match random.below(24) {
            0..=2 => Call::MakeDir(path),
            3 | 4 => Call::Remove(path),
            5 | 6 => Call::Rename(path, any_path(random), RenameFlags::empty()),
            7 => Call::Rename(path, any_path(random), RenameFlags::EXCHANGE),
            8 => Call::Rename(path, any_path(random), RenameFlags::NOREPLACE),
            9 => Call::Link(path, any_path(random)),
            10 => Call::SetLen(path, size(random)),
            11..=14 => {
                let how = [How::Read, How::Make, How::MakeNew, How::Empty, How::Append];
                Call::Open(slot, path, how[random.below(5) as usize])
            }
            15 => Call::Close(slot),
            16 | 17 => Call::Opened(slot, Do::Write(size(random) as usize)),
            18 | 19 => Call::Opened(slot, Do::WriteAt(size(random) as usize, size(random))),
            20 | 21 => Call::Opened(slot, Do::ReadAt(size(random) as usize, size(random))),
            22 => Call::Opened(slot, Do::SetLen(size(random))),
            _ => Call::Opened(slot, [Do::Len, Do::Sync][random.below(2) as usize]),
        }
    }

    fn paths(&self) -> Vec<&PathBuf> {
        match self {
            Call::Rename(from, to, _) | Call::Link(from, to) => vec![from, to],
            Call::MakeDir(path) | Call::Remove(path) | Call::SetLen(path, _) => vec![path],
            Call::Open(_, path, _) => vec![path],
            Call::Close(_) | Call::Opened(..) => Vec::new(),
        }
    }
}

/// What is open on one side: in the mounts, or beside them.
type Opened = [Option<(PathBuf, File)>; SLOTS as usize];

/// Makes a call on one side; what a read gave, or how long it is.
fn make(call: &Call, root: &Path, opened: &mut Opened, byte: u8) -> io::Result<Vec<u8>> {
    let at = |path: &PathBuf| root.join(path);
    match call {
        Call::MakeDir(path) => fs::create_dir(at(path))?,
        Call::Remove(path) => fs::remove_file(at(path))?,
        Call::Rename(from, to, flags) => rename_with(&at(from), &at(to), *flags)?,
        Call::Link(from, to) => fs::hard_link(at(from), at(to))?,
        Call::SetLen(path, len) => OpenOptions::new().write(true).open(at(path))?.set_len(*len)?,
        Call::Open(slot, path, how) => {
            let mut options = OpenOptions::new();
            match how {
                How::Read => options.read(true),
                How::Make => options.read(true).write(true).create(true),
                How::MakeNew => options.read(true).write(true).create_new(true),
                How::Empty => options.read(true).write(true).truncate(true),
                How::Append => options.read(true).append(true).create(true),
            };
            opened[*slot as usize] = Some((path.clone(), options.open(at(path))?));
        }
        Call::Close(slot) => opened[*slot as usize] = None,
        Call::Opened(slot, what) => {
            let Some((_, file)) = &mut opened[*slot as usize] else { return Ok(Vec::new()) };
            match *what {
                Do::Write(len) => file.write_all(&vec![byte; len])?,
                Do::WriteAt(len, from) => file.write_all_at(&vec![byte; len], from)?,
                Do::ReadAt(len, from) => {
                    let mut read = vec![0; len];
                    let len = file.read_at(&mut read, from)?;
                    read.truncate(len);
                    return Ok(read);
                }
                Do::SetLen(len) => file.set_len(len)?,
                Do::Sync => file.sync_all()?,
                Do::Len => {
                    let found = file.metadata()?;
                    let len = if found.is_file() { found.len() } else { 0 };
                    return Ok(len.to_string().into_bytes());
                }
            }
        }
    }
    Ok(Vec::new())
}

// P7.1 P7.4
#[test]
fn what_is_open_in_two_mounts_is_as_on_an_ordinary_file_system() {
    let fixture = Setup::default().mounts(2).start();
    let plain = fixture.outside("plain");
    fs::create_dir(&plain).unwrap();
    let mounts = [0, 1].map(|nth| fixture.mount(nth).join("plain"));
    fs::create_dir(&mounts[0]).unwrap();
    // What is green stays green; the long form tries others.
    let seed = 20_261_127 ^ if long() { u64::from(std::process::id()) } else { 0 };
    let mut random = Random(seed);
    let mut said = Vec::new();
    let (mut here, mut there) = (Opened::default(), Opened::default());
    for step in 0..if long() { 40_000 } else { 500 } {
        let call = Call::any(&mut random);
        let through = random.below(2) as usize;
        let byte = b'a' + (step % 26) as u8;
        let errno = |error: io::Error| error.raw_os_error();
        let made = make(&call, &mounts[through], &mut here, byte).map_err(errno);
        let wanted = make(&call, &plain, &mut there, byte).map_err(errno);
        said.push((through, call.clone(), wanted.as_ref().map(Vec::len).map_err(|e| *e)));
        let told = || format!("seed {seed}, {step}: {:#?}", &said[said.len().saturating_sub(40)..]);
        // Not by `assert_eq`, which would print what was read.
        assert!(made == wanted, "{}: {:?}", told(), made.map(|read| read.len()));
        let mut looks: Vec<PathBuf> = call.paths().into_iter().cloned().collect();
        if let Call::Opened(slot, _) = &call {
            looks.extend(here[*slot as usize].iter().map(|(path, _)| path.clone()));
        }
        looks.push(any_path(&mut random));
        for look in &looks {
            let wanted = see(&plain.join(look));
            for mount in &mounts {
                assert!(see(&mount.join(look)) == wanted, "{look:?}, {}", told());
            }
        }
    }
    drop(here);
    fixture.fsck_clean();
}
