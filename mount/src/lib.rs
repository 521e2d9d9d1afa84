//! Serves any [`Tree`] to the kernel over FUSE: inodes, handles, replies, cache invalidation,
//! many mounts in one process.
//!
//! What must stay true: no type of the FUSE library is in a public signature; a callback reads the
//! request, calls the tree, replies. Deliberately not here: tasks, YAML, SQL, the command line.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod errno;
mod error;
mod ids;
mod kernel;
mod locks;
mod mounting;
mod requests;
mod session;
mod shares;
mod tree;
mod whereabouts;

pub use errno::Errno;
pub use error::{MOUNT_ON_OWN, MountError};
pub use ids::{Handle, Ino, MountId, ROOT};
pub use kernel::invalidation::Invalidation;
pub use locks::Locks;
pub use mounting::as_user::as_user;
pub use mounting::attach::{Unmounting, unmount};
pub use mounting::attached::{Attached, attach, attach_in_place_of_dead, serve};
pub use mounting::cover::{Cover, Underlay, cover, uncover};
pub use mounting::deadline::within;
pub use mounting::fusermount::{Hindrance, find as find_fusermount, hindrance};
pub use mounting::heal::{DirState, detach_dead, detach_dead_but_one, is_dead, state_of};
pub use mounting::hold::{hold, let_go};
pub use mounting::options::{KNOWN as KNOWN_OPTIONS, MountOptions, OptionError};
pub use requests::poll::{PollReady, PollWake};
pub use requests::reply::Reply;
pub use requests::times::{Operation, Requests, Times};
pub use requests::view::Shows;
pub use requests::write_at::WriteAt;
pub use session::{
    Mount, Presence, Silence, connect, give_back_memory, lazy_buffers, serve_connection,
};
pub use shares::{Shares, UsedUp, runs_this_process};
pub use tree::*;
pub use whereabouts::mountinfo::{
    MountLine, device_number, mount_around, mount_at, mounts, mounts_inside, mounts_of, stack_at,
};
pub use whereabouts::proc_text::{has_ended, proc_text};
pub use whereabouts::standing::{mount_here, mount_number};
