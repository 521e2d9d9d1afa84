//! The order of work: what a kind's content says about when a record's turn comes.
//!
//! What must stay true: this reads content and nothing else; whether a record is ready is decided
//! in one place, the engine's `ready`. Deliberately not here: other records.

use std::collections::BTreeMap;

use serde_json::Value;

use super::state::{StateIx, Statuses, Transition, some_time};
use crate::kind::Kind;
use crate::kind::error::Fault;
use crate::kind::field_path::FieldPath;
use crate::limits::LEASE_MAX;
use crate::names::{FileName, RecordId};
use crate::numbers::UnixNanos;
use crate::units;

/// The event of the transition that gives a record its owner, where a kind says so.
pub(in crate::kind) const CLAIMED: &str = "claimed";

/// How a kind orders its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The computed directory of what is ready.
    pub dir: FileName,
    /// Fields that list what must be done first.
    pub(in crate::kind) after: Vec<FieldPath>,
    /// Fields that list what must wait for this record.
    pub(in crate::kind) before: Vec<FieldPath>,
    /// Where a record counts as done, and with which statuses.
    pub(in crate::kind) done: Vec<(StateIx, Counts)>,
    /// The field that says from when on.
    pub(in crate::kind) not_before: Option<FieldPath>,
    /// What goes first.
    pub(in crate::kind) priority: Option<Priority>,
    /// The field that says how old a record is.
    pub(in crate::kind) since: Option<FieldPath>,
}

/// Which records of a state count as done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counts {
    /// All.
    Any,
    /// Those with one of these statuses.
    Statuses(Vec<String>),
}

/// The order of a priority's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Priority {
    pub(in crate::kind) field: FieldPath,
    /// Words from the most urgent on; those of one group are equal.
    pub(in crate::kind) order: Vec<Vec<String>>,
    /// The group of what says nothing, or nothing known.
    pub(in crate::kind) absent: usize,
}

/// What a content says about its record's turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// What must be done first, and where the content says so (a JSON pointer).
    pub after: BTreeMap<RecordId, String>,
    /// What must wait for this record, and where the content says so.
    pub before: BTreeMap<RecordId, String>,
    /// The least comes first.
    pub priority: i64,
    /// How old it says it is; the oldest comes first.
    pub since: Option<UnixNanos>,
    /// From when on. [`UnixNanos`]'s largest value where it says something that is no time.
    pub not_before: Option<UnixNanos>,
    /// Whether the content allows a claim.
    pub fit: bool,
    /// How long it asks to be leased for, in seconds.
    pub lease_s: Option<u32>,
}

impl Wants {
    /// The `not_before` of a content that says something that is no time.
    pub const NO_TIME: UnixNanos = UnixNanos(i64::MAX);
}

impl Order {
    /// Whether a content may say how old its record is.
    #[must_use]
    pub fn tells_age(&self) -> bool {
        self.since.is_some()
    }
}

impl Kind {
    /// How it orders its records.
    #[must_use]
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// The transition by which a record is taken from the initial state.
    #[must_use]
    pub fn claim(&self) -> Option<&Transition> {
        self.claim_from(self.initial)
    }

    /// The transition that claims a record of this state: the one that is called so; from the initial
    /// state else the first that gives it an owner.
    #[must_use]
    pub fn claim_from(&self, from: StateIx) -> Option<&Transition> {
        let mut ways = self.transitions.iter().filter(|way| way.from == from && way.to != from);
        let gives_owner = |way: &&Transition| {
            from == self.initial && !self.state(from).has_owner() && self.state(way.to).has_owner()
        };
        ways.clone().find(|way| way.event == CLAIMED).or_else(|| ways.find(gives_owner))
    }

    /// Whether a record of this state and status counts as done for those that wait for it.
    #[must_use]
    pub fn is_done(&self, state: StateIx, status: Option<&str>) -> bool {
        self.order.done.iter().any(|(done, counts)| {
            *done == state
                && match counts {
                    Counts::Any => true,
                    Counts::Statuses(all) => status.is_some_and(|s| all.iter().any(|one| one == s)),
                }
        })
    }

    /// What a content says about its record's turn.
    #[must_use]
    pub fn wants(&self, content: &Value) -> Wants {
        let order = &self.order;
        let not_before = order.not_before.as_ref().and_then(|path| {
            let text = path.values(content).find(|(_, value)| !value.is_null())?.1;
            Some(text.as_str().and_then(time_of).unwrap_or(Wants::NO_TIME))
        });
        let since = order
            .since
            .as_ref()
            .and_then(|path| path.values(content).find_map(|(_, value)| time_of(value.as_str()?)));
        Wants {
            after: self.links(&order.after, content),
            before: self.links(&order.before, content),
            priority: order.priority.as_ref().map_or(0, |priority| priority.of(content)),
            since,
            not_before,
            fit: self.claim_fault(content).is_none(),
            lease_s: self.lease_wanted(content),
        }
    }

    /// What is noted of a content's wants and is not what it says. What transitions write by themselves is
    /// taken over with the next save only, and left out here.
    #[must_use]
    pub fn misnoted(&self, said: &Wants, noted: &Wants) -> Vec<&'static str> {
        let order = &self.order;
        let own =
            |path: &Option<FieldPath>| !path.as_ref().is_some_and(|path| self.moves_write(path));
        let priority = order.priority.as_ref().map(|priority| priority.field.clone());
        let lease = self.fields.lease.as_ref().and_then(|field| FieldPath::parse(field).ok());
        let is_fit_own = !self.moves_make_fit();
        // A content that does not say how old it is is as old as its record.
        let is_younger = said.since.is_some() && said.since != noted.since;
        let differs = [
            ("dependencies", !said.after.keys().eq(noted.after.keys())),
            ("dependants", !said.before.keys().eq(noted.before.keys())),
            ("priority", own(&priority) && said.priority != noted.priority),
            ("age", own(&order.since) && is_younger),
            ("not_before", own(&order.not_before) && said.not_before != noted.not_before),
            ("fitness for a claim", is_fit_own && said.fit != noted.fit),
            ("lease", own(&lease) && said.lease_s != noted.lease_s),
        ];
        differs.into_iter().filter_map(|(what, differs)| differs.then_some(what)).collect()
    }

    /// Whether what transitions write may decide whether a content allows a claim.
    fn moves_make_fit(&self) -> bool {
        let Some(claim) = self.claim() else { return false };
        let statuses: Vec<Option<&str>> = match &self.state(claim.from).status {
            Statuses::Listed(all) => {
                all.iter().map(|one| Some(one.as_str())).chain([None]).collect()
            }
            // Whatever it was before may be one that requires more there.
            Statuses::Any if !self.state(claim.to).status_requires.is_empty() => return true,
            Statuses::Any => vec![None],
        };
        let required = |status| self.required_for(claim, status).collect::<Vec<_>>();
        let all: Vec<_> = statuses.into_iter().map(required).collect();
        let differ = all.windows(2).any(|two| two[0] != two[1]);
        differ || all.iter().flatten().any(|path| self.moves_write(path))
    }

    /// Whether a transition may write into the field.
    fn moves_write(&self, path: &FieldPath) -> bool {
        let stamps = self.transitions.iter().flat_map(|way| &way.stamps).map(|stamp| &stamp.field);
        let own = [&self.fields.status, &self.fields.owner].into_iter().flatten();
        let mut written = stamps.chain(own);
        written.any(|field| path.roots().any(|root| root == field))
    }

    /// How long this content asks to be leased for; what a flagged record asks is within the limits, too.
    fn lease_wanted(&self, content: &Value) -> Option<u32> {
        let text = content.get(self.fields.lease.as_ref()?)?.as_str()?;
        let wanted = units::duration(text).and_then(some_time).ok()?.min(LEASE_MAX);
        u32::try_from(wanted.as_secs()).ok()
    }

    /// The fields that say from when on a record may be claimed, as they are told of.
    #[must_use]
    pub fn shown_not_before(&self) -> String {
        self.order.not_before.as_ref().map_or_else(|| "not_before".to_owned(), ToString::to_string)
    }

    /// The field that says from when on a record may be claimed, where it is a top-level one.
    #[must_use]
    pub fn not_before_field(&self) -> Option<&str> {
        match self.order.not_before.as_ref()?.first_way() {
            [field] => Some(field),
            _ => None,
        }
    }

    /// Why this content does not allow a claim, if it does not: with the status that it has, or would have,
    /// where it is claimed.
    #[must_use]
    pub fn claim_fault(&self, content: &Value) -> Option<Fault> {
        let claim = self.claim()?;
        let status = self.status_of(content);
        let status = status.and_then(|status| self.entry_status(claim.from, Some(status)));
        self.judge_entry_with(claim, content, status).err()
    }

    /// The ids that these fields list: texts, or mappings that name one as `task_id`, else as
    /// `id`. What is no id (real files describe conditions in prose, too) binds nobody.
    fn links(&self, fields: &[FieldPath], content: &Value) -> BTreeMap<RecordId, String> {
        let mut found = BTreeMap::new();
        let mut add = |value: &Value, pointer: String| {
            let named = |key| value.get(key).and_then(Value::as_str);
            let text = value.as_str().or_else(|| named("task_id")).or_else(|| named("id"));
            if let Some(id) = text.and_then(|text| self.id_in(text)) {
                found.entry(id).or_insert(pointer);
            }
        };
        for (pointer, value) in fields.iter().flat_map(|field| field.values(content)) {
            match value {
                Value::Array(list) => {
                    for (at, one) in list.iter().enumerate() {
                        add(one, format!("{pointer}/{at}"));
                    }
                }
                one => add(one, pointer),
            }
        }
        found
    }

    /// The id that a text names: as it is, or as a file's name or path, without its extension, too, where the path
    /// leads to a directory in which records lie (`inbox/X`, and not `n/a`).
    fn id_in(&self, text: &str) -> Option<RecordId> {
        let text = text.trim();
        let (dirs, last) = text.rsplit_once('/').unwrap_or(("", text));
        if let Some(id) = FileName::new(last).ok().and_then(|name| self.record_id(&name)) {
            return Some(id);
        }
        if text.eq_ignore_ascii_case("none") {
            return None;
        }
        let id = if self.leads_to_records(dirs) { last } else { text };
        RecordId::new(id).ok()
    }

    /// Whether a path ends in a directory of a workspace in which records lie, or are shown.
    fn leads_to_records(&self, dirs: &str) -> bool {
        let names: Vec<FileName> =
            dirs.split('/').filter_map(|name| FileName::new(name).ok()).collect();
        names.last() == Some(&self.order.dir)
            || (0..names.len()).any(|from| self.place(&names[from..]).is_state())
    }
}

impl Priority {
    /// Its place, the least first. A number stands for itself, the higher first.
    fn of(&self, content: &Value) -> i64 {
        let Some((_, value)) = self.field.values(content).next() else { return 0 };
        if let Some(number) = value.as_i64() {
            return number.saturating_neg();
        }
        let group = value.as_str().and_then(|word| {
            let known = |one: &String| one.eq_ignore_ascii_case(word.trim());
            self.order.iter().position(|group| group.iter().any(known))
        });
        group.map_or(0, |group| group as i64 - self.absent as i64)
    }
}

/// A time stamp: RFC 3339, which YAML libraries write with a blank for its `T`; without a zone, which YAML takes
/// for UTC; or a date, which means its first moment in UTC.
fn time_of(text: &str) -> Option<UnixNanos> {
    let text = text.trim();
    UnixNanos::parse_moment(text).or_else(|| UnixNanos::parse_rfc3339(&format!("{text}Z")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::builtin;
    use serde_json::json;

    fn ids(links: &BTreeMap<RecordId, String>) -> Vec<&str> {
        links.keys().map(RecordId::as_str).collect()
    }

    #[test]
    fn dependencies_are_ids_wherever_they_are_listed_and_prose_binds_nobody() {
        let wants = builtin::task().wants(&json!({
            "dependencies": ["A", {"task_id": "B"}, "Task 12: tests complete", "none", 7,
                {"id": "G"}, {"type": "parallel"}, {"task_id": null, "id": "H"}],
            "context": {"dependencies": "work/done/bob/C.yaml"},
            "blocked_by": ["D.yml", "specifications/e.md (if added)"],
            "blocks": ["F", "/m/work/assigned/bob/I", "ready/J", "n/a", "or/else", "../inbox/K"],
        }));
        assert_eq!(ids(&wants.after), ["A", "B", "C", "D", "G", "H"]);
        assert_eq!(ids(&wants.before), ["F", "I", "J", "K"]);
        let b = RecordId::new("B").unwrap();
        assert_eq!(wants.after[&b], "/dependencies/1");
        let none = builtin::task().wants(&json!({"context": "text", "dependencies": null}));
        assert_eq!((none.after.len(), none.before.len()), (0, 0));
    }

    #[test]
    fn words_and_numbers_order() {
        let priority = |value: Value| builtin::task().wants(&json!({ "priority": value })).priority;
        assert_eq!(priority(json!("Critical")), -2);
        assert_eq!(priority(json!("high")), -1);
        assert_eq!((priority(json!("medium")), priority(json!("NORMAL"))), (0, 0));
        assert_eq!((priority(json!(null)), priority(json!("?"))), (0, 0));
        assert_eq!(priority(json!("low")), 1);
        assert_eq!(priority(json!(7)), -7);
    }

    #[test]
    fn times_are_rfc_3339_or_dates() {
        let wants = |at: &str| builtin::task().wants(&json!({"not_before": at})).not_before;
        assert_eq!(wants("1970-01-01T00:00:01Z"), Some(UnixNanos(1_000_000_000)));
        assert_eq!(wants("1970-01-01T01:00:01+01:00"), Some(UnixNanos(1_000_000_000)));
        assert_eq!(wants("1970-01-02"), Some(UnixNanos(86_400_000_000_000)));
        for utc in ["1970-01-01 00:00:01+00:00", "1970-01-01 00:00:01", "1970-01-01T00:00:01.0"] {
            assert_eq!(wants(utc), Some(UnixNanos(1_000_000_000)), "{utc}");
        }
        for no_time in ["next week", "1970-01-01T00:00:01ZZ", "Z", "", "10:00"] {
            assert_eq!(wants(no_time), Some(Wants::NO_TIME), "{no_time:?}");
        }
        for never in ["9999-12-31T23:59:59Z", "9999-12-31", "2262-04-12"] {
            assert_eq!(wants(never), Some(UnixNanos::LAST), "{never}");
        }
        for always in ["0001-01-01T00:00:00Z", "0001-01-01", "1677-09-21"] {
            assert_eq!(wants(always), Some(UnixNanos(i64::MIN)), "{always}");
        }
        assert_eq!(builtin::task().wants(&json!({"not_before": null})).not_before, None);
    }

    #[test]
    fn an_archived_record_is_done_if_its_status_says_so() {
        let task = builtin::task();
        let state = |name| task.state_named(name).unwrap();
        assert!(task.is_done(state("done"), None));
        assert!(task.is_done(state("archive"), Some("done")));
        assert!(!task.is_done(state("archive"), Some("new")));
        assert!(!task.is_done(state("assigned"), Some("done")));
    }
}
