//! What former versions took of a definition although it can never do what it says. It is refused
//! in a definition that is given now, and taken in one that a store keeps.

use std::collections::HashSet;

use super::commands::commands_can_work;
use super::written::{fields_are_apart, handed_on_is_apart, names_are_texts, written_is_taken};
use crate::kind::definition::{ChoresForm, KindForm};
use crate::kind::lifecycle::state::Statuses;
use crate::kind::yaml::{Wrong, line, unknown};
use crate::kind::{Kind, Role, json};
use crate::names::{WHY, expect_not_computed};

/// See [`Kind::expect_taken_now`].
pub(super) fn taken_now(form: &KindForm, kind: &Kind) -> Result<(), Wrong> {
    let ChoresForm { escalate, drafts, .. } = &form.chores;
    let dirs = form.states.0.iter().flat_map(|(_, state)| &state.dirs);
    let dirs = dirs.chain(&form.order.dir).chain(drafts.as_ref().map(|drafts| &drafts.dir));
    let mut names = dirs.chain(escalate.as_ref().map(|escalate| &escalate.file));
    names.try_for_each(|name| {
        let not = expect_not_computed(&name.value);
        not.map_err(|why| (line(name), format!("`{}`: {why}", name.value)))
    })?;
    names_are_records(form)?;
    words_have_one_place(form)?;
    commands_can_work(&form.commands, &kind.states)?;
    leases_lead_away(form)?;
    chores_can_work(form, kind)?;
    files_are_apart(form, kind)?;
    fields_are_apart(form, kind)?;
    handed_on_is_apart(form)?;
    done_is_known(form, kind)?;
    written_is_taken(form, kind)?;
    names_are_texts(form, &kind.schema)
}

/// Fails where an object of the schema has a key twice: the last one counts, and what the first says of a
/// field would go without a word.
pub(crate) fn keys_stand_once(schema: &str) -> Result<(), Wrong> {
    json::read(schema.as_bytes()).map_err(|error| {
        let line = u32::try_from(error.line()).ok().filter(|line| *line > 0);
        (line, error.to_string())
    })
}

/// Fails on a word that has two places in the order of what is urgent, of which only one can count.
fn words_have_one_place(form: &KindForm) -> Result<(), Wrong> {
    let Some(priority) = &form.order.priority else { return Ok(()) };
    let mut seen = HashSet::new();
    let mut words = priority.order.iter().flat_map(|group| &group.0);
    match words.find(|word| !seen.insert(word.to_lowercase())) {
        None => Ok(()),
        Some(word) => Err((line(&priority.field), format!("the priority `{word}` is there twice"))),
    }
}

/// Fails on an extension that has a meaning beside each record.
fn names_are_records(form: &KindForm) -> Result<(), Wrong> {
    match form.extensions.iter().find(|one| one.value == WHY) {
        None => Ok(()),
        Some(why) => {
            let reason = format!(
                "`{WHY}` cannot be an extension of records: `X.{WHY}` tells why of the file `X` beside it"
            );
            Err((line(why), reason))
        }
    }
}

/// Fails where a chore can never do what it says: what lies there already is put away, or the daemon, which
/// acts as an operator, may not make what is handed on.
fn chores_can_work(form: &KindForm, kind: &Kind) -> Result<(), Wrong> {
    let ChoresForm { handoff, archive, .. } = &form.chores;
    if let Some(archive) = archive.as_ref().filter(|one| one.from.value == one.to.value) {
        let to = &archive.to.value;
        let reason =
            format!("`archive: {{ to: {to} }}` leads where the record lies: name another state");
        return Err((line(&archive.to), reason));
    }
    let (which, may) = match kind.state(kind.initial()).has_owner() {
        true => ("others", &kind.rights().others),
        false => ("create", &kind.rights().create),
    };
    match handoff {
        Some(handoff) if !may.contains(&Role::Operator) => {
            let reason = format!(
                "`handoff` can never make a record: workfs does it as an operator, whom `rights: {{ {which} }}` \
                 does not name"
            );
            Err((line(&handoff.state), reason))
        }
        _ => Ok(()),
    }
}

/// Fails where what counts as done has a status that no record can have, in a state that does not list its own.
fn done_is_known(form: &KindForm, kind: &Kind) -> Result<(), Wrong> {
    let field = kind.fields().status.as_deref();
    let known = field.and_then(|field| kind.schema.enumeration(field)).unwrap_or_default();
    for (name, statuses) in &form.order.done.0 {
        let state = kind.state_named(&name.value).map(|state| kind.state(state));
        let lists = state.is_some_and(|state| matches!(state.status, Statuses::Listed(_)));
        if lists || statuses.0 == ["any"] {
            continue;
        }
        if let Some(wrong) = statuses.0.iter().find(|one| !known.contains(&one.as_str())) {
            let what =
                format!("`done: {{ {} }}`: {}", name.value, unknown("status", wrong, &known));
            return Err((line(name), what));
        }
    }
    Ok(())
}

/// Fails where the end of a lease leads to the state that it ends in: the record's own name is in its way
/// there.
pub(super) fn leases_lead_away(form: &KindForm) -> Result<(), Wrong> {
    for (name, state) in &form.states.0 {
        let expiry = state.lease.as_ref().map(|lease| ("on_expiry", &lease.on_expiry));
        let spent = state.retries.as_ref().map(|retries| ("exhausted", &retries.exhausted));
        let mut ways = expiry.into_iter().chain(spent);
        if let Some((key, to)) = ways.find(|(_, to)| to.value == name.value) {
            let to_name = &to.value;
            let reason = format!(
                "`{key}: {to_name}` leads where the record lies: name another state, or `on_expiry: event` \
                 if it is to stay"
            );
            return Err((line(to), reason));
        }
    }
    Ok(())
}

/// Fails where two things would be one file: the schema and the definition in `.workfs/kinds/`, or what two
/// chores have in a workspace's directory.
pub(super) fn files_are_apart(form: &KindForm, kind: &Kind) -> Result<(), Wrong> {
    let [definition, schema] = kind.file_names();
    if definition == schema {
        let reason = format!(
            "`schema: {schema}`: so this definition is called in `.workfs/kinds/`; give the schema another name"
        );
        return Err((line(&form.schema), reason));
    }
    let ChoresForm { escalate, drafts, .. } = &form.chores;
    match (escalate, drafts) {
        (Some(escalate), Some(drafts)) if escalate.file.value == drafts.dir.value => {
            let reason = format!(
                "`{}` is the `file` of `escalate` and cannot be the `dir` of `drafts`, too",
                drafts.dir.value
            );
            Err((line(&drafts.dir), reason))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::kind::Kind;
    use crate::kind::load::load_test::{SCHEMA, SOUND};

    fn refused(definition: &str, said: &str, line: u32) {
        let error = Kind::load("errand.kind.yaml", definition, SCHEMA).unwrap_err();
        assert!(error.reason.contains(said), "{error}");
        assert_eq!(error.line, Some(line), "{error}");
        // A store that has it is opened.
        Kind::load_kept("errand.kind.yaml", definition, SCHEMA).unwrap();
    }

    #[test]
    fn the_end_of_a_lease_leads_away() {
        let again = "  - { from: taken, to: taken, event: passed, by: [operator] }\n";
        for (old, new, line) in [
            ("on_expiry: open", "on_expiry: taken", 17),
            ("exhausted: shut", "exhausted: taken", 18),
        ] {
            let definition = format!("{}{again}", SOUND.replace(old, new));
            refused(&definition, "leads where the record lies", line);
        }
    }

    #[test]
    fn a_chore_can_do_what_it_says() {
        let again = "  - { from: shut, to: shut, event: filed, by: [operator] }\n";
        let archive = "chores:\n  archive: { from: shut, to: shut, after: 7d }\n";
        refused(&format!("{SOUND}{again}{archive}"), "leads where the record lies", 30);
        let rights = "rights: { create: [manager] }\n";
        let handoff = "chores:\n  handoff: { state: shut, agent: by, previous: at }\n";
        refused(&format!("{SOUND}{rights}{handoff}"), "`rights: { create }` does not name", 30);
    }

    #[test]
    fn records_have_no_name_that_tells_why() {
        refused(
            &SOUND.replace("extensions: [yaml", "extensions: [why, yaml"),
            "cannot be an extension",
            3,
        );
    }

    #[test]
    fn what_counts_as_done_can_be() {
        refused(
            &format!("{SOUND}order: {{ done: {{ shut: [doen] }} }}\n"),
            "did you mean `done`",
            28,
        );
        let sound = format!("{SOUND}order: {{ done: {{ shut: [done] }} }}\n");
        Kind::load("errand.kind.yaml", &sound, SCHEMA).unwrap();
    }

    #[test]
    fn a_priority_has_one_place() {
        let order = "order: { priority: { field: status, order: [new, [done, New]] } }\n";
        refused(&format!("{SOUND}{order}"), "the priority `New` is there twice", 28);
    }

    #[test]
    fn a_schema_says_each_thing_once() {
        let twice = SCHEMA.replacen("\"properties\"", "\"properties\": {},\n  \"properties\"", 1);
        let error = Kind::load("errand.kind.yaml", SOUND, &twice).unwrap_err();
        assert_eq!(error.file, "errand.v1.json");
        assert!(error.reason.starts_with("the key `properties` is there twice"), "{error}");
        assert!(error.line.is_some());
        // A store that keeps such a kind opens all the same.
        Kind::load_kept("errand.kind.yaml", SOUND, &twice).unwrap();
    }

    #[test]
    fn no_file_is_two_things() {
        let schema = SOUND.replace("errand.v1.json", "errand.kind.yaml");
        refused(&schema, "give the schema another name", 2);
        let chores =
            "chores:\n  escalate: { file: X, stuck: [] }\n  drafts: { after: 7d, dir: X }\n";
        refused(&format!("{SOUND}{chores}"), "cannot be the `dir` of `drafts`, too", 30);
    }
}
