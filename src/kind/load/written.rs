//! Whether the schema takes what workfs itself writes into a record, and whether that leaves alone
//! the fields that say which record it is, and whose. Otherwise the owner's own next save would be
//! refused, for a field that he did not write.

use serde_saphyr::Spanned;

use crate::kind::Kind;
use crate::kind::definition::{EndingForm, FieldsForm, KindForm};
use crate::kind::field_path::FieldPath;
use crate::kind::schema::Schema;
use crate::kind::yaml::{Wrong, line};

/// A time as transitions and the end of a lease write it.
const TIME: &str = "2026-11-21T22:17:11Z";

/// A reason as the end of a lease gives it, for the shortest name.
const REASON: &str = "the lease of a ran out (attempt 1)";

/// Fails where a field that workfs writes does not take what it would write there: a stamp, and, with
/// leases, the reason of their end and the time until which a record is then left alone.
pub(super) fn written_is_taken(form: &KindForm, kind: &Kind) -> Result<(), Wrong> {
    let taken = |field: &Spanned<String>, text: &str, what: &str| {
        if kind.takes_text(&field.value, text).is_ok() {
            return Ok(());
        }
        let reason = format!(
            "the schema does not take what workfs writes as `{}`, which is {what}: `{text}`",
            field.value
        );
        Err((line(field), reason))
    };
    let stamps = form.transitions.iter().flat_map(|transition| &transition.value.stamps.0);
    stamps.map(|(field, _)| field).try_for_each(|field| taken(field, TIME, "a time stamp"))?;
    if let Some(field) = &form.fields.reason
        && kind.states().any(|(_, state)| state.lease.is_some())
    {
        taken(field, REASON, "why a lease ended")?;
    }
    let waits = kind.states().any(|(_, state)| state.retries.is_some());
    match &form.order.not_before {
        Some(field) if waits && kind.not_before_field() == Some(field.value.as_str()) => {
            taken(field, TIME, "until when a record is left alone")
        }
        _ => Ok(()),
    }
}

/// Fails where one who is to be named in a record can never be: the schema takes no text there.
pub(super) fn names_are_texts(form: &KindForm, schema: &Schema) -> Result<(), Wrong> {
    let handoff = form.chores.handoff.as_ref();
    let named = [form.fields.owner.as_ref(), handoff.map(|handoff| &handoff.agent)];
    for field in named.into_iter().flatten() {
        let takes_text = |path: &FieldPath| path.ways().iter().any(|way| schema.takes_text_at(way));
        if FieldPath::parse(&field.value).is_ok_and(|path| !takes_text(&path)) {
            let reason = format!(
                "the schema takes no text as `{}`, which names an agent: make it `\"type\": [\"string\", \"null\"]`",
                field.value
            );
            return Err((line(field), reason));
        }
    }
    Ok(())
}

/// What says which record it is, in which state, and whose.
const OWN: [&str; 3] = ["id", "status", "owner"];

/// These, how long it is leased for, and why its lease ended.
const ALL: [&str; 5] = ["id", "status", "owner", "lease", "reason"];

/// Fails where a record that goes on from another one would get something else for what says which it is, in
/// which state, and whose: it could never be made, or not for who is to go on.
pub(super) fn handed_on_is_apart(form: &KindForm) -> Result<(), Wrong> {
    let Some(handoff) = &form.chores.handoff else { return Ok(()) };
    let FieldsForm { id, status, owner, .. } = &form.fields;
    let own = OWN.into_iter().zip([Some(id), status.as_ref(), owner.as_ref()]);
    let own: Vec<_> = own.filter_map(|(what, field)| Some((what, &field?.value))).collect();
    // Who goes on is the owner anyway.
    let is_next = |(to, from): &&(Spanned<String>, Spanned<String>)| {
        let is_owner = owner.as_ref().is_some_and(|owner| owner.value == to.value);
        is_owner && from.value == handoff.agent.value
    };
    let copied = handoff.copy.0.iter().filter(|one| !is_next(one));
    let copied = copied.map(|(to, _)| (to, Some(to.value.clone())));
    let first = |path: &str| FieldPath::parse(path).ok()?.first_way().first().cloned();
    let paths = [Some(&handoff.previous), form.order.since.as_ref()];
    let paths = paths.into_iter().flatten().map(|path| (path, first(&path.value)));
    for (field, name) in copied.chain(paths) {
        if let Some((what, name)) = own.iter().find(|(_, own)| Some(*own) == name.as_ref()) {
            let reason = format!(
                "`handoff` cannot work: a record that goes on from another has its own {what}, and \
                 `{name}` is that: name another field"
            );
            return Err((line(field), reason));
        }
    }
    Ok(())
}

/// Fails where one field is to be two things: two of `fields`, or one of them and what workfs is to write
/// something else into.
pub(super) fn fields_are_apart(form: &KindForm, kind: &Kind) -> Result<(), Wrong> {
    let FieldsForm { id, status, owner, lease, reason } = &form.fields;
    let all = [
        ("id", Some(id)),
        ("status", status.as_ref()),
        ("owner", owner.as_ref()),
        ("lease", lease.as_ref()),
        ("reason", reason.as_ref()),
    ];
    let all: Vec<_> = all.into_iter().filter_map(|(what, field)| Some((what, field?))).collect();
    for (nth, (what, field)) in all.iter().enumerate() {
        if let Some((other, _)) = all[..nth].iter().find(|(_, known)| known.value == field.value) {
            let name = &field.value;
            let reason = format!(
                "`fields`: `{name}` is the `{other}` and cannot be the `{what}`, too: name another field"
            );
            return Err((line(field), reason));
        }
    }
    let apart = |field: &Spanned<String>, name: &str, (what, from): (&str, &[&str])| {
        let mut own = all.iter().filter(|(own, _)| from.contains(own));
        own.find(|(_, known)| known.value == name).map_or(Ok(()), |(own, _)| {
            let reason =
                format!("`{name}` is the record's {own} and cannot be {what}: name another field");
            Err((line(field), reason))
        })
    };
    for (stamp, _) in form.transitions.iter().flat_map(|transition| &transition.value.stamps.0) {
        apart(stamp, &stamp.value, ("a time stamp", &ALL))?;
    }
    if let Some(field) = &form.order.not_before
        && kind.states().any(|(_, state)| state.retries.is_some())
    {
        apart(field, &field.value, ("the time until which it is left alone", &ALL))?;
    }
    let commands = [&form.commands.done, &form.commands.fail, &form.commands.release];
    let texts =
        commands.into_iter().flatten().filter_map(|ending: &EndingForm| ending.text.as_ref());
    for text in texts {
        if let Ok(path) = FieldPath::parse(&text.value)
            && let [field] = path.first_way()
        {
            apart(text, field, ("a command's text", &OWN))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::kind::load::load_test::{SCHEMA, SOUND};
    use crate::kind::{Kind, KindError};
    use crate::names::AgentName;

    fn load(field: &str, schema: &str) -> Result<Kind, KindError> {
        let definition = SOUND.replace("owner: by }", "owner: by, reason: why }");
        let definition = format!("{definition}order: {{ not_before: wait }}\n");
        let schema_text = SCHEMA.replace("\"at\": {}", "\"at\": {}, \"why\": {}, \"wait\": {}");
        let (old, new) = (format!("\"{field}\": {{}}"), format!("\"{field}\": {schema}"));
        assert!(schema_text.contains(&old), "{field}");
        Kind::load("errand.kind.yaml", &definition, &schema_text.replace(&old, &new))
    }

    #[test]
    fn a_field_that_workfs_writes_takes_what_it_writes() {
        for (field, line) in [("at", 25), ("why", 4), ("wait", 28)] {
            for fits in ["{}", "{\"type\": [\"string\", \"null\"]}", "{\"maxLength\": 40}"] {
                load(field, fits).unwrap();
            }
            for not in ["{\"type\": \"integer\"}", "{\"maxLength\": 5}", "{\"enum\": [\"now\"]}"] {
                let error = load(field, not).unwrap_err();
                assert!(error.reason.contains(&format!("as `{field}`")), "{error}");
                assert_eq!(error.line, Some(line), "{error}");
            }
        }
        // A store that has it is opened.
        let schema = SCHEMA.replace("\"at\": {}", "\"at\": {\"type\": \"integer\"}");
        Kind::load_kept("errand.kind.yaml", SOUND, &schema).unwrap();
    }

    #[test]
    fn what_says_which_record_it_is_is_nothing_else() {
        let load = |definition: &str| Kind::load("errand.kind.yaml", definition, SCHEMA);
        load(SOUND).unwrap();
        for (old, new, line, said) in [
            ("owner: by }", "owner: id }", 4, "`id` is the `id` and cannot be the `owner`, too"),
            ("owner: by }", "owner: by, lease: by }", 4, "cannot be the `lease`, too"),
            ("owner: by }", "owner: by, reason: id }", 4, "cannot be the `reason`, too"),
            (
                "{ at: always }",
                "{ id: always }",
                25,
                "`id` is the record's id and cannot be a time stamp",
            ),
            ("{ at: always }", "{ by: if_absent }", 25, "`by` is the record's owner and cannot be"),
            (
                "owner: by }",
                "owner: by, reason: at }",
                25,
                "`at` is the record's reason and cannot be a time stamp",
            ),
        ] {
            assert!(SOUND.contains(old), "{old}");
            let error = load(&SOUND.replace(old, new)).unwrap_err();
            assert!(error.reason.contains(said), "{error}");
            assert_eq!(error.line, Some(line), "{error}");
            // A store that has it is opened.
            Kind::load_kept("errand.kind.yaml", &SOUND.replace(old, new), SCHEMA).unwrap();
        }
        for field in ["id", "status", "by"] {
            let error =
                load(&format!("{SOUND}commands: {{ done: {{ to: shut, text: {field} }} }}\n"));
            let error = error.unwrap_err();
            assert!(error.reason.contains("cannot be a command's text"), "{error}");
        }
    }

    #[test]
    fn the_end_of_a_lease_is_told_apart_from_until_when_a_record_waits() {
        let kind = |not_before: &str| {
            let definition = SOUND.replace("owner: by }", "owner: by, reason: why }");
            let definition = format!("{definition}order: {{ not_before: {not_before} }}\n");
            let fields = "\"at\": {}, \"why\": {}, \"wait\": {}";
            Kind::load("errand.kind.yaml", &definition, &SCHEMA.replace("\"at\": {}", fields))
        };
        kind("wait").unwrap();
        let error = kind("why").unwrap_err();
        assert!(error.reason.contains("`why` is the record's reason and cannot be"), "{error}");
    }

    #[test]
    fn what_is_handed_on_has_an_id_a_status_and_an_owner_of_its_own() {
        let load = |handoff: &str, more: &str| {
            let chores =
                format!("chores: {{ handoff: {{ state: shut, agent: at, {handoff} }} }}\n");
            Kind::load("errand.kind.yaml", &format!("{SOUND}{chores}{more}"), SCHEMA)
        };
        load("previous: at", "").unwrap();
        load("previous: at, copy: { by: at }", "").unwrap();
        for (handoff, more, said) in [
            ("previous: at, copy: { id: at }", "", "has its own id, and `id`"),
            ("previous: at, copy: { status: at }", "", "`status` is that"),
            ("previous: at, copy: { by: id }", "", "`by` is that"),
            ("previous: id", "", "`id` is that"),
            ("previous: at", "order: { since: status }\n", "`status` is that"),
        ] {
            let error = load(handoff, more).unwrap_err();
            assert!(error.reason.contains(said), "{error}");
        }
    }

    #[test]
    fn an_owner_is_one_whom_the_schema_takes() {
        let kind = load("by", "{\"enum\": [\"alice\", null]}").unwrap();
        let judge = |name: &str| kind.judge_owner(&AgentName::new(name).unwrap());
        assert_eq!(judge("alice"), Ok(()));
        let fault = judge("bob").unwrap_err();
        assert_eq!(fault.reason, "`by` is `bob`, not one of alice");
        assert!(fault.remedy.contains("have the schema"), "{}", fault.remedy);
    }
}
