//! From the form of a kind's commands to them.

use serde_saphyr::Spanned;

use super::{Known, path};
use crate::kind::definition::{CommandsForm, EndingForm};
use crate::kind::lifecycle::commands::{Becomes, EndCommand, Ending, KindCommands};
use crate::kind::lifecycle::state::{State, Statuses};
use crate::kind::yaml::{Wrong, line, unknown};

/// Most keys of a path that a command can set.
const KEYS_MAX: usize = 2;

pub(super) fn build_commands(
    form: &CommandsForm,
    status: Option<&str>,
    known: &Known<'_>,
) -> Result<KindCommands, Wrong> {
    let ending = |form: &Option<EndingForm>, name: &str| {
        form.as_ref().map(|form| build_ending(form, name, status, known)).transpose()
    };
    let back = Ending { becomes: Becomes::State(known.initial), text: None };
    Ok(KindCommands {
        done: ending(&form.done, "done")?,
        fail: ending(&form.fail, "fail")?,
        release: ending(&form.release, "release")?.unwrap_or(back),
    })
}

/// A command that sets a status can work in some state only that lets a record's status become that.
pub(super) fn commands_can_work(form: &CommandsForm, states: &[State]) -> Result<(), Wrong> {
    for (name, status) in set_statuses(form) {
        let set = status.value.as_str();
        if states.iter().any(|state| state.lets_become(set)) {
            continue;
        }
        let listed = |state: &&State| matches!(state.status, Statuses::Listed(_));
        let has_it = states.iter().filter(listed).find(|state| state.status.contains(set));
        let instead = has_it.map_or("a state".to_owned(), |state| format!("`{}`", state.name));
        let reason = format!(
            "`{name}` can never work: in no state can the status of a record become `{set}` where it lies; \
             with `to` instead it would move the record to {instead}"
        );
        return Err((line(status), reason));
    }
    Ok(())
}

/// The commands that set a status, each by its name.
pub(in crate::kind) fn set_statuses(
    form: &CommandsForm,
) -> impl Iterator<Item = (&'static str, &Spanned<String>)> {
    let all = [
        (EndCommand::Done, &form.done),
        (EndCommand::Fail, &form.fail),
        (EndCommand::Release, &form.release),
    ];
    all.into_iter().filter_map(|(command, form)| {
        form.as_ref().and_then(|form| form.status.as_ref()).map(|status| (command.name(), status))
    })
}

fn build_ending(
    form: &EndingForm,
    name: &str,
    status_field: Option<&str>,
    known: &Known<'_>,
) -> Result<Ending, Wrong> {
    let becomes = match (&form.to, &form.status) {
        (Some(to), None) => {
            let state = known.state(to)?;
            if !known.transitions.iter().any(|way| way.to == state) {
                return Err((line(to), format!("no transition leads to `{}`", to.value)));
            }
            Becomes::State(state)
        }
        (None, Some(status)) => {
            let values = status_field.and_then(|field| known.schema.enumeration(field));
            let values = values.unwrap_or_default();
            if !values.contains(&status.value.as_str()) {
                return Err((line(status), unknown("status", &status.value, &values)));
            }
            Becomes::Status(status.value.clone())
        }
        (to, _) => {
            let at = to.as_ref().and_then(line);
            return Err((at, format!("`commands.{name}` needs one of `to` and `status`")));
        }
    };
    let text = form.text.as_ref().map(|text| {
        let field = path(&text.value, line(text), known.schema)?;
        if field.ways().len() == 1 && field.first_way().len() <= KEYS_MAX {
            Ok(field)
        } else {
            let reason = format!("`{}` is not one field, or a field of one", text.value);
            Err((line(text), reason))
        }
    });
    Ok(Ending { becomes, text: text.transpose()? })
}
