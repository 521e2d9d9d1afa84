//! What former versions took of a definition although it can never do what it says. It is refused where it is
//! given now, and taken where a store keeps it.

use super::Kind;
use super::definition::{ChoresForm, KindForm};
use super::load::Wrong;
use super::yaml::line;

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
    use super::super::load_test::{SCHEMA, SOUND};
    use crate::kind::Kind;

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
    fn no_file_is_two_things() {
        let schema = SOUND.replace("errand.v1.json", "errand.kind.yaml");
        refused(&schema, "give the schema another name", 2);
        let chores =
            "chores:\n  escalate: { file: X, stuck: [] }\n  drafts: { after: 7d, dir: X }\n";
        refused(&format!("{SOUND}{chores}"), "cannot be the `dir` of `drafts`, too", 30);
    }
}
