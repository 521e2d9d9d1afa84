//! What workfs itself writes into a record must be what the schema takes: else its own next save by
//! whoever has it would be refused, for a field that they did not write.

use serde_saphyr::Spanned;

use super::Kind;
use super::definition::KindForm;
use super::load::Wrong;
use super::yaml::line;

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

#[cfg(test)]
mod tests {
    use super::super::load_test::{SCHEMA, SOUND};
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
    fn an_owner_is_one_whom_the_schema_takes() {
        let kind = load("by", "{\"enum\": [\"alice\", null]}").unwrap();
        let judge = |name: &str| kind.judge_owner(&AgentName::new(name).unwrap());
        assert_eq!(judge("alice"), Ok(()));
        let fault = judge("bob").unwrap_err();
        assert_eq!(fault.reason, "`by` is `bob`, not one of alice");
        assert!(fault.remedy.contains("have the schema"), "{}", fault.remedy);
    }
}
