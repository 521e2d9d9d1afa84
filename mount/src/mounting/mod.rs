//! How a mount comes about and goes: what is there, the way to `/dev/fuse`, the directory below.
//!
//! Deliberately not here: what is asked through it (`session`, `requests`).

pub(super) mod as_user;
pub(super) mod attach;
pub(super) mod attached;
pub(super) mod cover;
pub(super) mod deadline;
pub(super) mod fusermount;
pub(super) mod heal;
pub(super) mod hold;
pub(super) mod negotiate;
pub(super) mod options;
mod replace;
