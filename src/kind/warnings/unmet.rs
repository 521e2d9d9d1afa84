//! What workfs is to do by itself with a record, and the lifecycle keeps from it: a field is required of which
//! nothing sees to it that it is there.
//!
//! What must stay true: what is called never has never. Deliberately not here: what a record in a store says.

use crate::kind::Kind;
use crate::kind::definition::KindForm;
use crate::kind::field_path::FieldPath;
use crate::kind::lifecycle::state::{OnExpiry, StateIx, Statuses, Transition};
use crate::kind::yaml::{Wrong, line};
use crate::names::{first_few, printable};

/// Most words that one message names.
const NAMED_MAX: usize = 5;

impl Kind {
    /// Ends of leases that lead to a state which requires what no record must have before.
    pub(super) fn ends_unmet(&self, form: &KindForm) -> Vec<Wrong> {
        let mut found = Vec::new();
        for ((from, state), (name, form)) in self.states().zip(&form.states.0) {
            let Some(OnExpiry::State(back)) = state.lease.as_ref().map(|lease| &lease.on_expiry)
            else {
                continue;
            };
            let back = form.lease.as_ref().map(|form| ("on_expiry", &form.on_expiry, *back));
            let spent = state.retries.as_ref().zip(form.retries.as_ref());
            let spent = spent.map(|(is, form)| ("exhausted", &form.exhausted, is.exhausted));
            for (key, target, to) in back.into_iter().chain(spent) {
                let Some(field) = self.never_asked_for(from, to) else { continue };
                let (from, to) = (&name.value, &target.value);
                let reason = format!(
                    "`{key}: {to}` leads where `{field}` is required, and nothing asks for that before: a record \
                     without it stays in `{from}` when its lease has run out. Require it in `{from}`, or name a \
                     state that does not"
                );
                found.push((line(target), reason));
            }
        }
        found
    }

    /// What the way from one state to another requires, and nothing on the way to the first, nor workfs, sees to.
    fn never_asked_for(&self, from: StateIx, to: StateIx) -> Option<&FieldPath> {
        let way = self.transitions.iter().find(|way| way.from == from && way.to == to)?;
        let required = self.state(to).requires.iter().chain(&way.requires);
        let mut required = required.chain(self.required_by_its_status(way));
        required.find(|path| !path.ways().iter().any(|way| self.is_seen_to(way, to)))
    }

    /// What the status requires that each record has by then.
    fn required_by_its_status<'k>(
        &'k self,
        way: &'k Transition,
    ) -> impl Iterator<Item = &'k FieldPath> {
        let statuses = match &self.state(way.from).status {
            Statuses::Any => &[][..],
            Statuses::Listed(all) => &all[..],
        };
        let first = statuses.first().and_then(|first| self.entry_status(way.to, Some(first)));
        let all_the_same = statuses.iter().all(|one| self.entry_status(way.to, Some(one)) == first);
        let status = first.filter(|_| all_the_same);
        status.into_iter().flat_map(|status| self.required_on_entry(way, status))
    }

    /// Whether workfs writes the field of this way, or some other state, or a transition elsewhere, asks for it.
    fn is_seen_to(&self, way: &[String], to: StateIx) -> bool {
        let fields = &self.fields;
        let own = [Some(&fields.id), fields.status.as_ref(), fields.owner.as_ref()];
        let stamps = self.transitions.iter().flat_map(|way| &way.stamps).map(|stamp| &stamp.field);
        let mut written = own.into_iter().flatten().chain(&fields.reason).chain(stamps);
        if let [field] = way
            && (written.any(|own| own == field)
                || self.not_before_field() == Some(field)
                || self.schema.required().any(|required| required == field))
        {
            return true;
        }
        let others = self.states().filter(|(ix, _)| *ix != to).map(|(_, state)| state);
        let asked = others.flat_map(|state| {
            state.requires.iter().chain(state.status_requires.iter().flat_map(|(_, all)| all))
        });
        let others = self.transitions.iter().filter(|way| way.to != to);
        let mut asked = asked.chain(others.flat_map(|way| &way.requires)).flat_map(FieldPath::ways);
        asked.any(|asked| asked.starts_with(way))
    }

    /// Statuses of the schema that no record can have anywhere.
    pub(super) fn homeless_statuses(&self) -> Option<String> {
        let all = self.schema.enumeration(self.fields.status.as_deref()?)?;
        let has = |status: &Statuses, one: &str| status.contains(one);
        let none = |one: &&&str| !self.states.iter().any(|state| has(&state.status, one));
        let homeless: Vec<_> = all.iter().filter(none).map(|one| format!("`{one}`")).collect();
        (!homeless.is_empty()).then(|| {
            let named = first_few(homeless.into_iter(), NAMED_MAX);
            format!(
                "no state takes the status {named}, which the schema lists: no record can have it. List it in a \
                 state's `status`, or take it out of the schema's `enum`"
            )
        })
    }

    /// A handoff that can never make a record.
    pub(super) fn unmet_handoff(&self, form: &KindForm) -> Option<Wrong> {
        let handoff = form.chores.handoff.as_ref()?;
        let (field, by) = self.follow_up_lacks()?;
        let reason = format!(
            "`handoff` can never make a record: {by} requires `{field}`, and none of `copy` gives it that. Add it to \
             `copy`, or leave the `handoff` out"
        );
        Some((line(&handoff.state), reason))
    }

    /// What the record that goes on from another one must have and never gets, and what requires it.
    fn follow_up_lacks(&self) -> Option<(String, String)> {
        let handoff = self.chores.handoff.as_ref()?;
        let (first, fields) = (self.state(self.initial), &self.fields);
        let status = fields.status.as_ref().filter(|_| first.status.first().is_some());
        let given = [Some(&fields.id), fields.owner.as_ref(), status].into_iter().flatten();
        let given = given.chain(handoff.copy.iter().map(|(field, _)| field));
        let given: Vec<_> = given.map(std::slice::from_ref).collect();
        let since = self.order.since.as_ref().map(FieldPath::first_way);
        let told: Vec<_> = since.into_iter().chain([handoff.previous.first_way()]).collect();
        let gets = |way: &[String]| {
            given.iter().any(|given| way.starts_with(given))
                || told.iter().any(|told| told.starts_with(way))
        };
        let by_status = first.status.first().into_iter();
        let by_status = by_status.flat_map(|status| self.required_with(self.initial, status));
        let mut required = first.requires.iter().chain(by_status);
        let lacks = required.find(|path| !path.ways().iter().any(|way| gets(way)));
        if let Some(path) = lacks {
            return Some((path.to_string(), format!("`{}`", first.name)));
        }
        let lacks = self.schema.required().find(|field| !gets(&[(*field).to_owned()]))?;
        Some((printable(lacks.as_bytes()), "the schema".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use crate::kind::load::load_test::{SCHEMA, SOUND};
    use crate::kind::{Kind, KindError};

    fn load(definition: &str) -> Result<Kind, KindError> {
        Kind::load("errand.kind.yaml", definition, SCHEMA)
    }

    fn warned(definition: &str) -> Vec<String> {
        let found = load(definition).unwrap().warnings();
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_end_of_a_lease_that_asks_for_what_nothing_asked_for_before_is_told_of() {
        let [one] = &warned(SOUND)[..] else { panic!("{:?}", warned(SOUND)) };
        let said =
            "errand.kind.yaml:18: `exhausted: shut` leads where `result.summary` is required";
        assert!(one.starts_with(said), "{one}");
        for (old, new) in [
            ("requires: [result.summary]", "requires: []"),
            ("requires: [result.summary]", "requires: [result.summary|by]"),
            ("requires: [result.summary]", "requires: [at]"),
            ("busy: [at]", "busy: [result.summary]"),
            ("initial: true", "initial: true\n    requires: [result.summary]"),
        ] {
            assert_eq!(SOUND.matches(old).count(), 1, "{old}");
            assert_eq!(warned(&SOUND.replace(old, new)), Vec::<String>::new(), "{new}");
        }
        // What its status requires, where it has no choice, and what the transition does.
        let shut = SOUND.replace("status: any\n    requires: [result.summary]", "status: [done]");
        assert_eq!(warned(&shut), Vec::<String>::new());
        let done = shut.replace("[done]", "[done]\n    status_requires: { done: [result] }");
        assert!(warned(&done)[0].contains("where `result` is required"));
        let any = done.replace("status: [done]", "status: [done, busy]");
        assert_eq!(warned(&any), Vec::<String>::new());
        let way = shut
            .replace("to: [open, shut]", "to: shut")
            .replace("requires: [at]", "requires: [result]");
        let back = "  - { from: taken, to: open, event: back, by: [operator] }\n";
        assert!(warned(&format!("{way}{back}"))[0].contains("where `result` is required"));
    }

    #[test]
    fn a_status_that_no_record_can_have_is_told_of() {
        let shut = "status: any\n    requires: [result.summary]";
        let [one] = &warned(&SOUND.replace(shut, "status: [new]"))[..] else { panic!() };
        assert!(one.starts_with("errand.kind.yaml:6: no state takes the status `done`, "), "{one}");
        assert_eq!(warned(&SOUND.replace(shut, "status: [done]")), Vec::<String>::new());
    }

    #[test]
    fn who_is_named_is_named_by_a_text() {
        let sound = format!(
            "{SOUND}chores: {{ handoff: {{ state: shut, agent: at|result.next, previous: result.of }} }}\n"
        );
        let with = |schemas: [&str; 3]| {
            let [by, at, result] = schemas;
            let schema = SCHEMA.replace("\"by\": {}", &format!("\"by\": {by}"));
            let result = format!(
                "\"result\": {{\"properties\": {{\"next\": {result}, \"summary\": {{}}, \"of\": {{}}}}}}"
            );
            let schema = schema.replace("\"result\": {}", &result);
            schema.replace("\"at\": {}", &format!("\"at\": {at}"))
        };
        // No stamp: that must be a text, too.
        let sound = sound.replace(", stamps: { at: always }", "");
        let none = "{\"type\": [\"integer\", \"null\"]}";
        for good in [["{\"enum\": [\"ann\", 7]}", none, "{}"], ["{}", "{}", none]] {
            Kind::load("errand.kind.yaml", &sound, &with(good)).unwrap();
        }
        for (bad, line, field) in [
            ([none, "{}", "{}"], 4, "`by`"),
            (["{\"enum\": [7, null]}", "{}", "{}"], 4, "`by`"),
            (["{}", none, "{\"type\": \"number\"}"], 28, "`at|result.next`"),
        ] {
            let error = Kind::load("errand.kind.yaml", &sound, &with(bad)).unwrap_err();
            let said = format!("the schema takes no text as {field}");
            assert!(error.line == Some(line) && error.reason.starts_with(&said), "{error}");
            Kind::load_kept("errand.kind.yaml", &sound, &with(bad)).unwrap();
        }
    }

    #[test]
    fn a_handoff_gives_what_is_required_of_each_record() {
        let with = |requires: &str, copy: &str, schema: &str| {
            let definition =
                SOUND.replace("initial: true", &format!("initial: true\n    {requires}"));
            let chores = format!(
                "chores: {{ handoff: {{ state: shut, agent: at, previous: result.of, copy: {{ {copy} }} }} }}\n"
            );
            let definition = format!("{definition}{chores}");
            let schema = SCHEMA.replacen('{', &format!("{{ {schema}"), 1);
            let found = Kind::load("errand.kind.yaml", &definition, &schema).unwrap().warnings();
            let found = found.iter().map(ToString::to_string);
            found.filter(|one| one.contains("`handoff`")).collect::<Vec<_>>()
        };
        for (requires, copy, schema) in [
            ("requires: [id, status, by, result, result.of]", "", ""),
            ("requires: [at]", "at: at", "\"required\": [\"id\", \"result\"],"),
            ("requires: [result.summary]", "result: result", ""),
            ("requires: [at|by]", "", ""),
            ("status_requires: { new: [at] }", "at: at", ""),
        ] {
            assert_eq!(with(requires, copy, schema), Vec::<String>::new());
        }
        for (requires, schema, by) in [
            ("requires: [result.summary]", "", "`open` requires `result.summary`"),
            ("status_requires: { new: [at] }", "", "`open` requires `at`"),
            ("requires: []", "\"required\": [\"at\"],", "the schema requires `at`"),
        ] {
            let said = format!("errand.kind.yaml:29: `handoff` can never make a record: {by}");
            let found = with(requires, "", schema);
            assert!(found.len() == 1 && found[0].starts_with(&said), "{found:?}");
        }
    }
}
