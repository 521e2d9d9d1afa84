//! The form of `<name>.kind.yaml`, as it is read. What it means is decided in `load`.
//!
//! The reference of the form is `docs/kinds.md`; a key that is not here is refused.

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::lifecycle::role::Role;
use super::lifecycle::state::StampWhen;
use super::yaml::{OneOrMany, Ordered};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KindForm {
    pub kind: Spanned<String>,
    pub schema: Spanned<String>,
    pub extensions: Vec<Spanned<String>>,
    pub fields: FieldsForm,
    #[serde(default)]
    pub strict: Vec<Spanned<String>>,
    pub states: Ordered<StateForm>,
    pub transitions: Vec<Spanned<TransitionForm>>,
    #[serde(default)]
    pub order: OrderForm,
    #[serde(default)]
    pub rights: RightsForm,
    #[serde(default)]
    pub chores: ChoresForm,
    #[serde(default)]
    pub commands: CommandsForm,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CommandsForm {
    pub done: Option<EndingForm>,
    pub fail: Option<EndingForm>,
    pub release: Option<EndingForm>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EndingForm {
    pub to: Option<Spanned<String>>,
    pub status: Option<Spanned<String>>,
    pub text: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChoresForm {
    pub handoff: Option<HandoffForm>,
    pub archive: Option<ArchiveForm>,
    pub escalate: Option<EscalateForm>,
    pub drafts: Option<DraftsForm>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HandoffForm {
    pub state: Spanned<String>,
    pub agent: Spanned<String>,
    pub previous: Spanned<String>,
    #[serde(default)]
    pub copy: Ordered<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ArchiveForm {
    pub from: Spanned<String>,
    pub to: Spanned<String>,
    pub after: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EscalateForm {
    pub file: Spanned<String>,
    pub stuck: Vec<StuckForm>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StuckForm {
    pub state: Spanned<String>,
    #[serde(default)]
    pub status: OneOrMany<String>,
    pub after: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DraftsForm {
    pub after: Spanned<String>,
    pub dir: Spanned<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OrderForm {
    pub dir: Option<Spanned<String>>,
    #[serde(default)]
    pub after: Vec<Spanned<String>>,
    #[serde(default)]
    pub before: Vec<Spanned<String>>,
    #[serde(default)]
    pub done: Ordered<OneOrMany<String>>,
    pub not_before: Option<Spanned<String>>,
    pub priority: Option<PriorityForm>,
    pub since: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriorityForm {
    pub field: Spanned<String>,
    #[serde(default)]
    pub order: Vec<OneOrMany<String>>,
    pub absent: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RightsForm {
    pub create: Option<Vec<Role>>,
    pub free: Option<Vec<Role>>,
    pub own: Option<Vec<Role>>,
    pub others: Option<Vec<Role>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FieldsForm {
    pub id: Spanned<String>,
    pub status: Option<Spanned<String>>,
    pub owner: Option<Spanned<String>>,
    pub lease: Option<Spanned<String>>,
    pub reason: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StateForm {
    pub dirs: Vec<Spanned<String>>,
    pub status: Option<OneOrMany<String>>,
    #[serde(default)]
    pub initial: bool,
    #[serde(default)]
    pub terminal: bool,
    pub moves: Option<Vec<Spanned<MoveForm>>>,
    #[serde(default)]
    pub requires: Vec<Spanned<String>>,
    #[serde(default)]
    pub status_requires: Ordered<Vec<Spanned<String>>>,
    pub lease: Option<LeaseForm>,
    pub retries: Option<RetriesForm>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MoveForm {
    pub from: OneOrMany<String>,
    pub to: OneOrMany<String>,
    pub by: Option<Vec<Role>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LeaseForm {
    pub ttl: Spanned<String>,
    pub heartbeat: Option<Spanned<String>>,
    pub on_expiry: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RetriesForm {
    pub attempts: Spanned<u32>,
    pub first: Spanned<String>,
    pub longest: Spanned<String>,
    pub jitter_percent: Option<Spanned<u32>>,
    pub to: Option<Spanned<String>>,
    pub exhausted: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TransitionForm {
    pub from: OneOrMany<String>,
    pub to: OneOrMany<String>,
    pub event: String,
    pub by: Vec<Role>,
    #[serde(default)]
    pub stamps: Ordered<StampWhen>,
    #[serde(default)]
    pub requires: Vec<String>,
}
