//! Kinds: lifecycles as data.
//!
//! A kind says which directories a workspace has, which file is a record, which content a record
//! of a state may have, and which moves are legal for whom. It is read from a definition and a
//! JSON Schema, checked once, and never changes after that.
//!
//! What must stay true: each of those questions is asked here and nowhere else; a [`Kind`] that
//! exists is consistent (its directories do not clash, its states can be reached, its statuses
//! are in its schema). Deliberately not here: files, the store, YAML of records, time. The
//! reference of the form is `docs/kinds.md`.

pub mod builtin;
mod definition;
mod error;
mod field_path;
pub(crate) mod json;
mod judge;
mod lifecycle;
mod load;
mod names;
mod nearest;
mod schema;
mod warnings;
pub(crate) mod yaml;

#[cfg(test)]
mod corpus_test;
#[cfg(test)]
mod judge_test;

use std::sync::Arc;

pub use builtin::Kinds;
pub(crate) use error::where_and_why;
pub use error::{Fault, KindError};
pub use field_path::FieldPath;
pub use lifecycle::chores::{Archive, Drafts, Escalate, Handoff, KindChores, Stuck};
pub use lifecycle::commands::{Becomes, EndCommand, Ending};
pub use lifecycle::order::{Counts, Order, Priority, Wants};
pub use lifecycle::pattern::{Component, Pattern};
pub use lifecycle::place::Place;
pub use lifecycle::rights::{Holding, Rights};
pub use lifecycle::role::Role;
pub use lifecycle::state::{
    Lease, OnExpiry, Retries, Stamp, StampWhen, State, StateIx, StatusMove, Statuses, Transition,
};
pub use lifecycle::transition::FieldEdit;
pub(crate) use lifecycle::transition::names as role_names;
pub(crate) use load::now::keys_stand_once;
pub use names::is_temporary_name;
pub use nearest::nearest;
pub(crate) use schema::{Schema, other_draft};

use crate::names::KindName;
use lifecycle::commands::KindCommands;

/// The fields that the engine itself reads and writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineFields {
    /// The record's id.
    pub id: String,
    /// The status, if the kind has one beside its directories.
    pub status: Option<String>,
    /// The owner, written when a record enters a directory that names one.
    pub owner: Option<String>,
    /// How long the record is leased for, if not as its state says.
    pub lease: Option<String>,
    /// Why its last attempt failed, written when its lease runs out.
    pub reason: Option<String>,
}

/// A lifecycle. Immutable.
#[derive(Clone, Debug)]
pub struct Kind {
    /// The name of its definition, for errors.
    file: String,
    name: KindName,
    schema_name: String,
    extensions: Vec<String>,
    fields: EngineFields,
    strict: Vec<FieldPath>,
    states: Vec<State>,
    initial: StateIx,
    rights: Rights,
    transitions: Vec<Transition>,
    order: Order,
    chores: KindChores,
    commands: KindCommands,
    schema: Arc<Schema>,
    source: Arc<KindSource>,
}

/// What a kind was loaded from: the texts of its two files.
#[derive(Debug)]
pub struct KindSource {
    /// The definition, `<name>.kind.yaml`.
    pub definition: String,
    /// The schema that it names.
    pub schema: String,
}

impl KindSource {
    /// Where in the definition one of its keys stands.
    fn line_of(&self, key: &str) -> Option<u32> {
        let form: yaml::Ordered<serde::de::IgnoredAny> = yaml::read(&self.definition).ok()?;
        form.0.iter().find(|(name, _)| name.value == key).and_then(|(name, _)| yaml::line(name))
    }
}

impl Kind {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &KindName {
        &self.name
    }

    /// What its definition's file is called where something is told of it.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The same kind, told of as one that a store keeps, whose file may be gone.
    #[must_use]
    pub fn named_as_kept(self) -> Kind {
        Kind { file: format!("the kept definition of `{}`", self.name), ..self }
    }

    /// The texts that it was loaded from.
    #[must_use]
    pub fn source(&self) -> &KindSource {
        &self.source
    }

    /// The names of its two files, the definition's and the schema's.
    #[must_use]
    pub fn file_names(&self) -> [String; 2] {
        [format!("{}.kind.yaml", self.name), self.schema_name.clone()]
    }

    /// The extensions of its records, without the dot; there is one at least.
    #[must_use]
    pub fn extensions(&self) -> &[String] {
        &self.extensions
    }

    /// The extension of what the daemon writes and what is told: the first.
    #[must_use]
    pub fn usual_extension(&self) -> &str {
        self.extensions.first().map_or("", String::as_str)
    }

    /// The fields that the engine reads and writes.
    #[must_use]
    pub fn fields(&self) -> &EngineFields {
        &self.fields
    }

    /// What a workspace that is strict demands of every save.
    #[must_use]
    pub fn strict(&self) -> &[FieldPath] {
        &self.strict
    }

    /// Its states, in the order of the definition.
    pub fn states(&self) -> impl Iterator<Item = (StateIx, &State)> {
        (0u8..).map(StateIx).zip(&self.states)
    }

    /// A state.
    ///
    /// # Panics
    /// With an index of another kind that has more states.
    #[must_use]
    pub fn state(&self, state: StateIx) -> &State {
        &self.states[state.at()]
    }

    /// Whether leases that ran out go on being counted when a record comes to lie in this state: while
    /// it waits or is worked on.
    #[must_use]
    pub fn counts_lapses(&self, state: StateIx) -> bool {
        state == self.initial || self.state(state).lease.is_some()
    }

    /// Whether who has a record in the state `to` has it by another claim than it had it in `from`, although it
    /// may be the same owner: nothing bound it there.
    #[must_use]
    pub fn claims_anew(&self, from: Option<StateIx>, to: StateIx) -> bool {
        let gives_lease = |state: StateIx| self.state(state).lease.is_some();
        gives_lease(to) && !from.is_some_and(gives_lease)
    }

    /// The state of that name.
    #[must_use]
    pub fn state_named(&self, name: &str) -> Option<StateIx> {
        self.states().find(|(_, state)| state.name.as_str() == name).map(|(ix, _)| ix)
    }

    /// Who may make and write its records.
    #[must_use]
    pub fn rights(&self) -> &Rights {
        &self.rights
    }

    /// Where new records start.
    #[must_use]
    pub fn initial(&self) -> StateIx {
        self.initial
    }
}
