//! What random walks leave out because it takes time, a process that the kernel knows, or an inode
//! that is there no more.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use workfs::limits::{
    HANDLES_MAX, READ_AT_ONCE_WITHIN, XATTR_BYTES_OF_ONE_MAX, XATTR_LIST_BYTES_MAX,
    XATTR_VALUE_BYTES_MAX,
};
use workfs_mount::{OpenFlags, RenameMode, SetAttr, Shares, XattrMode};

use super::client::{Client, Flags, split};
use super::text::{TEXTS, Text};
use super::world::{Who, World};

const INBOX: &str = "work/inbox/t1.yaml";
const LANE: &str = "work/assigned/a/t1.yaml";
const WRITE: Flags = Flags { write: true, truncate: false, append: false, create: false };

fn world() -> World {
    let mut world = World::new();
    world.lay_out().unwrap();
    world
}

/// A process that the kernel knows: this one.
fn known(world: &World) -> Client {
    Client::new(world.system.tree(), 1, std::process::id())
}

// P1.6
#[test]
fn a_claim_waits_for_who_writes_and_not_for_ever() {
    let world = world();
    let (ann, bob) = (world.client(Who::Ann), world.client(Who::Bob));
    ann.put(INBOX, Text::New.of("t1").as_bytes()).unwrap();
    let file = ann.open(INBOX, WRITE).unwrap();
    ann.write(file, 0, b"id: t1\nstatus: new\ntitle: b task\n").unwrap();
    let began = Instant::now();
    assert_eq!(bob.rename(INBOX, LANE, RenameMode::Replace), Err("EBUSY"));
    assert!(began.elapsed() >= Duration::from_millis(250), "{:?}", began.elapsed());
    std::thread::scope(|scope| {
        let claim = scope.spawn(|| bob.rename(INBOX, LANE, RenameMode::Replace));
        ann.flush(file).unwrap();
        claim.join().unwrap().unwrap();
    });
    ann.release(file);
    assert!(bob.cat(LANE).unwrap().ends_with(b"title: b task\n"));
    world.check_store(&BTreeSet::new()).unwrap();
}

// P6.6
#[test]
fn what_cannot_be_opened_any_more_is_not_emptied_either() {
    let world = world();
    let client = world.client(Who::Ann);
    let (plain, draft) = ("scratch/d/plain", "work/inbox/t9.yaml");
    client.put(plain, b"all of it").unwrap();
    client.put(draft, b"title: [").unwrap_err();
    let before = client.cat(draft).unwrap();
    let (ino, read) =
        (client.stat(plain).unwrap().ino, OpenFlags { read: true, ..OpenFlags::default() });
    let many: Vec<_> = (0..).map_while(|_| client.open_ino(ino, read).ok()).collect();
    assert!([HANDLES_MAX / Shares::PARTS, HANDLES_MAX].contains(&many.len()), "{}", many.len());
    // Others can open what they like.
    let other = Client::new(world.system.tree(), 2, 0).of_user(1001);
    assert_eq!(other.open_ino(ino, read).is_ok(), many.len() < HANDLES_MAX);
    for path in [plain, draft] {
        let cut = Flags { truncate: true, ..WRITE };
        assert_eq!(client.open(path, cut).err(), Some("EMFILE"), "{path}");
    }
    let dir = client.stat("scratch/d").unwrap().ino;
    assert_eq!(client.create_in(dir, "new"), Err("EMFILE"));
    assert_eq!(client.stat("scratch/d/new").err(), Some("ENOENT"), "nobody has it");
    many.into_iter().for_each(|file| client.release(file));
    assert_eq!(client.cat(plain).unwrap(), b"all of it");
    assert_eq!(client.cat(draft).unwrap(), before);
    assert!(!before.is_empty());
    // Where it can be it is.
    for path in [plain, draft] {
        client.put(path, b"").unwrap_or_default();
        assert_eq!(client.stat(path).unwrap().size, 0, "{path}");
    }
}

// P1.3
#[test]
fn the_name_that_a_copy_took_away_is_still_its_makers_to_unlink() {
    let world = world();
    let (ann, other) = (known(&world), world.client(Who::Bob));
    ann.put(INBOX, Text::New.of("t1").as_bytes()).unwrap();
    let text = ann.cat(INBOX).unwrap();
    ann.put(LANE, &text).unwrap();
    assert_eq!(other.stat(INBOX).err(), Some("ENOENT"));
    assert_eq!(other.unlink(INBOX), Err("ENOENT"));
    ann.unlink(INBOX).unwrap();
    assert_eq!(ann.unlink(INBOX), Err("ENOENT"));
    assert!(other.stat(LANE).is_ok());
    world.check_store(&BTreeSet::new()).unwrap();
}

#[test]
fn a_new_record_is_its_makers_until_it_is_judged() {
    let world = world();
    // The other is the first process, which the kernel knows as well.
    let (ann, other) = (known(&world), Client::new(world.system.tree(), 2, 1));
    let names =
        |client: &Client, dir: &str| client.list(client.stat(dir).unwrap().ino, 9).unwrap().len();
    let flags = Flags { create: true, truncate: true, ..WRITE };
    let texts = [
        (INBOX, Text::New, Ok(()), Ok(())),
        // Only the whole lacks the message.
        (LANE, Text::Error, Ok(()), Err("EINVAL")),
        (INBOX, Text::Done, Err("EINVAL"), Err("EINVAL")),
    ];
    for (path, text, writes, closes) in texts {
        let dir = split(path).0;
        let file = ann.open(path, flags).unwrap();
        let is_there = |client: &Client| (client.stat(path).map(drop), names(client, dir));
        assert_eq!((is_there(&ann), is_there(&other)), ((Ok(()), 1), (Err("ENOENT"), 0)));
        assert_eq!(ann.write(file, 0, text.of("t1").as_bytes()), writes);
        // What was refused is a draft from then on.
        if writes.is_ok() {
            assert_eq!((is_there(&ann), is_there(&other)), ((Ok(()), 1), (Err("ENOENT"), 0)));
        }
        assert_eq!(ann.flush(file), closes);
        ann.release(file);
        assert_eq!(other.cat(path).unwrap(), text.of("t1").as_bytes());
        other.unlink(path).unwrap();
    }
    world.check_store(&BTreeSet::new()).unwrap();
}

/// Each of two kernels has looked the record up; only then do they ask for the file.
// P2.2
#[test]
fn who_was_overtaken_once_is_not_overtaken_by_who_only_begins_to_write() {
    let world = world();
    let (ann, bob) = (world.client(Who::Ann), world.client(Who::Bob));
    ann.put(INBOX, Text::New.of("t1").as_bytes()).unwrap();
    let write = OpenFlags { write: true, ..OpenFlags::default() };
    // It may have been mapped: it is not read for longer than it takes to.
    let opened_long_ago = || {
        let ino = world.nobody().stat(INBOX).unwrap().ino;
        let read = OpenFlags { read: true, ..OpenFlags::default() };
        let open = || world.nobody().open_ino(ino, read);
        // Who opens a version of which kernels have just heard is sent to look again.
        let reader = open().or_else(|_| open());
        std::thread::sleep(2 * READ_AT_ONCE_WITHIN);
        (ino, reader.unwrap())
    };
    let (first, reader) = opened_long_ago();
    assert_eq!(ann.open_ino(first, write).err(), Some("ESTALE"));
    assert_ne!(ann.stat(INBOX).unwrap().ino, first);
    let (second, other_reader) = opened_long_ago();
    let files = [&bob, &ann].map(|client| client.open_ino(second, write).unwrap());
    for file in files.into_iter().chain([reader, other_reader]) {
        world.nobody().release(file);
    }
    world.check_store(&BTreeSet::new()).unwrap();
}

// P3.3
#[test]
fn no_piece_of_a_right_text_is_refused() {
    let world = world();
    let client = world.nobody();
    let flags = Flags { create: true, truncate: true, ..WRITE };
    for (nth, text) in TEXTS.iter().enumerate() {
        let (dir, id) = match text {
            Text::Assigned | Text::Started | Text::StartedWithResult | Text::Blocked => {
                ("work/assigned/a", format!("t{nth}"))
            }
            Text::ErrorWithMessage => ("work/assigned/a", format!("t{nth}")),
            Text::DoneWithResult => ("work/done", format!("t{nth}")),
            Text::New | Text::Titled | Text::NoId | Text::Crlf => ("work/inbox", format!("t{nth}")),
            _ => continue,
        };
        let (path, text) = (format!("{dir}/{id}.yaml"), text.of(&id));
        for step in [1, 2, 3, 7] {
            let file = client.open(&path, flags).unwrap();
            for (nth, piece) in text.as_bytes().chunks(step).enumerate() {
                let written = client.write(file, (nth * step) as u64, piece);
                assert_eq!(written, Ok(()), "{text:?}, piece {nth} of {step} bytes");
            }
            assert_eq!(client.flush(file), Ok(()), "{text:?}");
            client.release(file);
            assert_eq!(client.cat(&path).unwrap(), text.as_bytes());
        }
    }
    world.check_store(&BTreeSet::new()).unwrap();
}

// P7.1
#[test]
fn a_file_has_as_many_attributes_as_can_be_listed_and_are_worth_a_file() {
    let world = world();
    let client = world.client(Who::Ann);
    client.put("scratch/d/x", b"x").unwrap();
    let ino = client.stat("scratch/d/x").unwrap().ino;
    let set = |name: &str, bytes: usize| {
        client.set_xattr_ino(ino, name, &vec![b'x'; bytes], XattrMode::Set)
    };
    let long = |nth: usize| format!("user.{nth:0>250}");
    let named = (0..300).take_while(|nth| set(&long(*nth), 1).is_ok()).count();
    assert_eq!(named, XATTR_LIST_BYTES_MAX as usize / 256);
    assert_eq!(set("user.short", 1), Err("ENOSPC"), "the list is full");
    let listed: usize = client.xattrs(ino).unwrap().iter().map(|(name, _)| name.len() + 1).sum();
    assert!(listed as u64 <= XATTR_LIST_BYTES_MAX);
    let filled = (0..named).take_while(|nth| set(&long(*nth), XATTR_VALUE_BYTES_MAX).is_ok());
    assert_eq!(filled.count(), XATTR_BYTES_OF_ONE_MAX as usize / XATTR_VALUE_BYTES_MAX - 1);
    // What makes it no more is taken.
    assert_eq!(set(&long(0), XATTR_VALUE_BYTES_MAX), Ok(()));
    assert_eq!(set(&long(0), 7), Ok(()));
    client.remove_xattr("scratch/d/x", &long(1)).unwrap();
    assert_eq!(set("user.short", 1), Ok(()));
}

/// Another mount's kernel may know inodes and directories that are gone: it hears so, and nobody
/// else's change fails with its own.
#[test]
fn what_is_gone_is_gone_for_every_call() {
    let world = world();
    let client = world.nobody();
    client.put("scratch/d/x", b"x").unwrap();
    client.mkdir("scratch/d/sub").unwrap();
    client.put(INBOX, Text::New.of("t1").as_bytes()).unwrap();
    let file = client.stat("scratch/d/x").unwrap().ino;
    let dir = client.stat("scratch/d/sub").unwrap().ino;
    let record = client.stat(INBOX).unwrap().ino;
    client.unlink("scratch/d/x").unwrap();
    client.rmdir("scratch/d/sub").unwrap();
    client.unlink(INBOX).unwrap();
    world.check_store(&BTreeSet::new()).unwrap();
    let gone = |what: &str, errno: Option<&'static str>| {
        let allowed = [Some("ENOENT"), Some("ESTALE")];
        assert!(allowed.contains(&errno), "{what}: {errno:?}");
    };
    for ino in [file, dir, record] {
        let write = OpenFlags { read: true, write: true, ..OpenFlags::default() };
        let mode = SetAttr { mode: Some(0o600), ..SetAttr::default() };
        let size = SetAttr { size: Some(1), ..SetAttr::default() };
        gone("getattr", client.getattr(ino).err());
        gone("open", client.open_ino(ino, write).err());
        gone("chmod", client.set(ino, None, mode).err());
        gone("truncate", client.set(ino, None, size).err());
        gone("setxattr", client.set_xattr_ino(ino, "user.x", b"1", XattrMode::Set).err());
        gone(
            "setxattr of root",
            client.set_xattr_ino(ino, "trusted.x", b"1", XattrMode::Set).err(),
        );
        gone("link", client.link_ino(ino, "scratch/e/link").err());
        gone("rename into", client.rename_into("scratch/e", ino, "e").err());
        gone("create in", client.make_in(ino, "new").err());
        gone("open to make in", client.create_in(ino, "new").err());
        gone("unlink in", client.unlink_in(ino, "x").err());
    }
    world.check_store(&BTreeSet::new()).unwrap();
}

// P2.4
#[test]
fn who_has_closed_a_file_is_told_no_size_of_what_it_read() {
    let world = world();
    let ann = known(&world);
    ann.put(INBOX, Text::New.of("t1").as_bytes()).unwrap();
    let reader = ann.open(INBOX, Flags::default()).unwrap();
    ann.read(reader).unwrap();
    ann.flush(reader).unwrap();
    // The kernel tells of a handle's end when it comes to it: here, after all that follows.
    let longer = b"id: t1\nstatus: new\ntitle: a longer task than it was\n";
    ann.put(INBOX, longer).unwrap();
    assert_eq!(ann.stat(INBOX).unwrap().size, longer.len() as u64);
    ann.release(reader);
}

// P2.4
#[test]
fn who_has_saved_and_closed_a_file_is_told_the_size_of_what_it_writes_next() {
    let world = world();
    let ann = known(&world);
    ann.put(INBOX, Text::New.of("t1").as_bytes()).unwrap();
    let write = Flags { write: true, truncate: true, ..Flags::default() };
    let saved = ann.open(INBOX, write).unwrap();
    ann.write(saved, 0, b"id: t1\nstatus: new\n").unwrap();
    ann.flush(saved).unwrap();
    // As above.
    let longer = b"id: t1\nstatus: new\ntitle: a longer task than it was\n";
    let writer = ann.open(INBOX, write).unwrap();
    ann.write(writer, 0, longer).unwrap();
    assert_eq!(ann.stat(INBOX).unwrap().size, longer.len() as u64);
    ann.release(saved);
    assert_eq!(ann.stat(INBOX).unwrap().size, longer.len() as u64);
    ann.flush(writer).unwrap();
    ann.release(writer);
}
