//! A record's text: read strictly, judged while it is being written, changed field by field.
//!
//! What must stay true: there is one reading of a text (granit-parser's events, composed in
//! [`compose`]), and parsing, judging a prefix and patching all rest on it; whatever the text, the
//! work is bounded by [`crate::limits::RECORD_BYTES_MAX`], by depth and by [`RECORD_NODES_MAX`];
//! what the writer chose (comments, key order, quotes, line ends) is never written anew.
//! Deliberately not here: what a field means, which fields a kind has, JSON Schema.

mod any;
mod compose;
mod document;
mod flaw;
mod indentation;
mod patch;
mod pointer;
mod prefix;
mod scalar;
mod source;
mod watched;
mod well_formed;
mod write;

#[cfg(test)]
mod tests;

pub use any::{parse_any, prefix_any};
pub use document::{Document, place_in};
pub use flaw::Flaw;
#[cfg(test)]
use patch::patch_is_by_lines;
pub use patch::{Edit, patch, patch_at};
pub(crate) use pointer::{push_step, steps};
pub use prefix::{PREFIX_BYTES_MAX, Prefix, prefix};
pub use scalar::{double_quoted, word_or_quoted};
pub use well_formed::{well_formed, well_formed_so_far};
pub use write::write;

/// Most values (scalars, lists, mappings; keys not counted) in one record, aliases followed. A
/// real file of 55 KB has 1,400; a megabyte of `-` would hold 500,000 and take 0.1 s to parse.
pub const RECORD_NODES_MAX: usize = 10_000;

/// Most values in a checked file without a schema, keys counted: what 1 MiB of real YAML may hold. None is
/// copied, so that it bounds the time alone: some 30 ms for whoever waits to write.
pub const PLAIN_NODES_MAX: usize = 100_000;

/// Most anchors in one record: each copies its value.
pub const RECORD_ANCHORS_MAX: usize = 1000;
