//! Serves any [`Tree`] to the kernel over FUSE: inodes, handles, replies, cache invalidation,
//! many mounts in one process.
//!
//! What must stay true: no type of the FUSE library is in a public signature; a callback reads the
//! request, calls the tree, replies. Deliberately not here: tasks, YAML, SQL, the command line.

mod errno;
mod reply;
mod tree;

pub use errno::Errno;
pub use reply::Reply;
pub use tree::*;
