//! From the form of an order of work to one.

use serde_saphyr::Spanned;

use super::{Names, path, paths};
use crate::kind::definition::{OrderForm, PriorityForm};
use crate::kind::field_path::FieldPath;
use crate::kind::lifecycle::order::{Counts, Order, Priority};
use crate::kind::lifecycle::state::{State, Statuses};
use crate::kind::schema::Schema;
use crate::kind::yaml::{OneOrMany, Wrong, line, unknown};
use crate::names::FileName;

/// The computed directory of what is ready, where the kind names none.
const DIR: &str = "ready";

pub(super) fn build_order(
    form: &OrderForm,
    names: &Names<'_>,
    states: &[State],
    schema: &Schema,
) -> Result<Order, Wrong> {
    let at = form.dir.as_ref().and_then(line);
    let name = form.dir.as_ref().map_or(DIR, |dir| &dir.value);
    let dir = FileName::new(name).map_err(|why| (at, format!("`{name}`: {why}")))?;
    let one = |form: &Option<Spanned<String>>| -> Result<Option<FieldPath>, Wrong> {
        form.as_ref().map(|text| path(&text.value, line(text), schema)).transpose()
    };
    let mut done = Vec::new();
    for (state, statuses) in &form.done.0 {
        let found = names.find(&state.value, line(state))?;
        let counts = counts(&states[found.at()], statuses).map_err(|why| (line(state), why))?;
        done.push((found, counts));
    }
    Ok(Order {
        dir,
        after: paths(&form.after, schema)?,
        before: paths(&form.before, schema)?,
        done,
        not_before: one(&form.not_before)?,
        priority: form.priority.as_ref().map(|form| priority(form, schema)).transpose()?,
        since: one(&form.since)?,
    })
}

fn counts(state: &State, form: &OneOrMany<String>) -> Result<Counts, String> {
    if form.0.len() == 1 && form.0[0] == "any" {
        return Ok(Counts::Any);
    }
    if let Statuses::Listed(known) = &state.status
        && let Some(wrong) = form.0.iter().find(|one| !known.contains(one))
    {
        return Err(format!("state `{}`: {}", state.name, unknown("status", wrong, known)));
    }
    Ok(Counts::Statuses(form.0.clone()))
}

fn priority(form: &PriorityForm, schema: &Schema) -> Result<Priority, Wrong> {
    let order: Vec<Vec<String>> = form.order.iter().map(|group| group.0.clone()).collect();
    let absent = match &form.absent {
        None => 0,
        Some(word) => {
            let group = order.iter().position(|group| group.contains(&word.value));
            let known: Vec<&String> = order.iter().flatten().collect();
            group.ok_or_else(|| (line(word), unknown("priority", &word.value, &known)))?
        }
    };
    Ok(Priority { field: path(&form.field.value, line(&form.field), schema)?, order, absent })
}
