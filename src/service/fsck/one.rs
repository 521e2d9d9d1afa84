//! A record that is looked at, and its events as far as they are compared with its row.

use std::sync::Arc;

use serde::Deserialize;

use super::super::Failure;
use super::ledger::Ledger;
use super::{Check, Rules};
use crate::config::Binding;
use crate::numbers::G;
use crate::store::{Read, Record, WorkspaceRow};

/// An event of a record, as far as its row is compared with it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Told {
    /// When it happened, RFC 3339.
    pub at: String,
    pub event: String,
    pub payload: Payload,
    /// The record's event before it.
    #[serde(skip)]
    pub before: G,
}

/// See [`Told`].
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Payload {
    pub attempt: Option<u64>,
    pub content_sha256: Option<String>,
    pub flagged: bool,
    pub from: Option<String>,
    pub owner: Option<String>,
    pub path: Option<String>,
    pub state: Option<String>,
    /// It did not move: only its lease, or its owner's claim, ended.
    pub stays: bool,
    pub to: Option<String>,
    pub via: Option<String>,
}

/// A record that is looked at.
pub(super) struct One<'a, 's> {
    pub read: &'a dyn Read,
    pub workspace: &'a WorkspaceRow,
    pub record: &'a Record,
    /// By which it is judged.
    pub rules: Option<(&'a Rules<'a>, &'a Binding)>,
    pub ledger: &'a Ledger,
    /// The event that was read last.
    pub told: Option<(G, Arc<Told>)>,
    pub check: &'a mut Check<'s>,
}

impl One<'_, '_> {
    pub fn thing(&self) -> String {
        format!("record {}:{}", self.workspace.path, self.record.id)
    }

    pub fn problem(&mut self, what: impl Into<String>) {
        let thing = self.thing();
        self.check.problem(thing, what);
    }

    /// What was read of it, if it can be.
    pub fn got<T>(&mut self, read: crate::store::Result<T>) -> Result<Option<T>, Failure> {
        let (workspace, record) = (self.workspace, self.record);
        self.check.got(|| format!("record {}:{}", workspace.path, record.id), read)
    }

    /// An event; `None` where it is missing, which was told of.
    pub fn event(&mut self, g: G) -> Result<Option<Arc<Told>>, Failure> {
        if let Some((known, told)) = &self.told
            && *known == g
        {
            return Ok(Some(Arc::clone(told)));
        }
        let row = self.read.event(g);
        let Some(row) = self.got(row)?.flatten() else { return Ok(None) };
        let told: Told = serde_json::from_str(&row.line).unwrap_or_default();
        let told = Arc::new(Told { before: row.before_g, ..told });
        self.told = Some((g, Arc::clone(&told)));
        Ok(Some(told))
    }
}
