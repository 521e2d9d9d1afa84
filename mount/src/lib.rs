//! Serves any [`Tree`] to the kernel over FUSE: inodes, handles, replies, cache invalidation,
//! many mounts in one process.
//!
//! What must stay true: no type of the FUSE library is in a public signature; a callback reads the
//! request, calls the tree, replies. Deliberately not here: tasks, YAML, SQL, the command line.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod absent;
mod adapter;
mod answer;
mod as_user;
mod attach;
mod attached;
mod cover;
mod deadline;
mod errno;
mod error;
mod fusermount;
mod gate;
mod guard;
mod heal;
mod hold;
mod line;
mod listing;
mod locks;
mod lookups;
mod mountinfo;
mod negotiate;
mod notifier;
mod options;
mod poll;
mod proc_text;
mod replace;
mod reply;
mod run;
mod seen;
mod session;
mod shares;
mod spare;
mod stale;
mod standing;
mod tree;
mod unique_id;
mod view;
mod whereabouts;
mod write_at;

pub use as_user::as_user;
pub use attach::unmount;
pub use attached::{Attached, attach, attach_in_place_of_dead, serve};
pub use cover::{Cover, Underlay, cover, uncover};
pub use deadline::within;
pub use errno::Errno;
pub use error::MountError;
pub use fusermount::find as find_fusermount;
pub use heal::{DirState, detach_dead, detach_dead_but_one, is_dead, state_of};
pub use hold::{hold, let_go};
pub use locks::Locks;
pub use mountinfo::{
    MountLine, device_number, mount_around, mount_at, mounts, mounts_inside, mounts_of, stack_at,
};
pub use options::{KNOWN as KNOWN_OPTIONS, MountOptions, OptionError};
pub use poll::{PollReady, PollWake};
pub use proc_text::proc_text;
pub use reply::Reply;
pub use session::{Mount, Silence, connect, give_back_memory, lazy_buffers, serve_connection};
pub use shares::{Shares, UsedUp, runs_this_process};
pub use standing::{mount_here, mount_number};
pub use tree::*;
pub use view::Shows;
pub use write_at::WriteAt;
