//! What another mount has changed since a kernel asked: it asks permission bits of what it had looked up.

use workfs_mount::RenameMode;

use super::client::Client;
use super::world::World;

const OWNER: u32 = 1000;
const OTHER: u32 = 1001;

/// The owner's process, and another user's behind a kernel that asks permission bits.
fn two() -> (World, [Client; 2]) {
    let mut world = World::new();
    world.lay_out().unwrap();
    world.system.let_ask(2);
    let client = |mount, uid| Client::new(world.system.tree(), mount, 0).of_user(uid);
    let both = [client(1, OWNER), client(2, OTHER)];
    (world, both)
}

/// The name was absent when the other's kernel looked, which then asks to make it.
#[test]
fn who_is_slower_to_make_a_file_opens_only_what_it_may() {
    let (_world, [owner, other]) = two();
    let dir = owner.stat("scratch/d").unwrap().ino;
    owner.put("scratch/d/x", b"secret").unwrap();
    let answers = [0o600, 0o644, 0o660, 0o622].map(|mode| {
        owner.chmod("scratch/d/x", mode).unwrap();
        other.create_in(dir, "x").err()
    });
    assert_eq!(answers, [Some("EACCES"), Some("EACCES"), Some("EACCES"), None]);
    assert_eq!(owner.cat("scratch/d/x").unwrap(), b"secret");
    owner.chmod("scratch/d/x", 0o600).unwrap();
    owner.create_in(dir, "x").unwrap();
}

#[test]
fn who_meets_something_else_where_a_file_was_to_be_made_looks_again() {
    let (_world, [owner, other]) = two();
    let dir = owner.stat("scratch/d").unwrap().ino;
    owner.symlink("target", "scratch/d/link").unwrap();
    owner.mkdir("scratch/d/sub").unwrap();
    for name in ["link", "sub"] {
        assert_eq!(other.create_in(dir, name), Err("ESTALE"), "{name}");
    }
}

#[test]
fn a_sticky_directory_s_names_are_taken_by_their_owners_only() {
    let (_world, [owner, other]) = two();
    let dir = owner.stat("scratch/d").unwrap().ino;
    owner.put("scratch/d/x", b"x").unwrap();
    owner.mkdir("scratch/d/sub").unwrap();
    let [replace, exchange] = [RenameMode::Replace, RenameMode::Exchange];
    let tries = || {
        other.create_in(dir, "own").unwrap();
        [
            other.unlink_in(dir, "x"),
            other.rename_in(dir, "x", "y", replace),
            other.rename_in(dir, "own", "x", replace),
            other.rename_in(dir, "own", "x", exchange),
            other.rename_in(dir, "sub", "moved", replace),
            other.unlink_in(dir, "own"),
        ]
    };
    owner.chmod("scratch/d", 0o1777).unwrap();
    let stuck = Err("EACCES");
    assert_eq!(tries(), [stuck, stuck, stuck, stuck, stuck, Ok(())]);
    owner.rename_in(dir, "x", "y", replace).unwrap();
    owner.rename_in(dir, "y", "x", replace).unwrap();
    owner.chmod("scratch/d", 0o777).unwrap();
    assert_eq!(other.unlink_in(dir, "x"), Ok(()));
}
