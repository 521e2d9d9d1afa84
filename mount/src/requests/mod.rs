//! The kernel's requests and their answers.

mod adapter;
mod answer;
mod listing;
pub(super) mod poll;
pub(super) mod reply;
pub(super) mod times;
pub(super) mod view;
pub(super) mod write_at;
