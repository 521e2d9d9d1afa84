//! From the form of a state to a state.

use std::time::Duration;

use serde_saphyr::Spanned;

use super::{Names, pairs, paths};
use crate::kind::definition::{LeaseForm, MoveForm, RetriesForm, StateForm};
use crate::kind::lifecycle::pattern::Pattern;
use crate::kind::lifecycle::state::{
    Lease, OnExpiry, Retries, State, StatusMove, Statuses, some_time,
};
use crate::kind::schema::Schema;
use crate::kind::yaml::{OneOrMany, Wrong, line, unknown};
use crate::kind::{EngineFields, Role};
use crate::limits::LEASE_MAX;
use crate::names::StateName;
use crate::units;

/// More than the wait itself again would be another wait.
const JITTER_PERCENT_MAX: u32 = 100;

pub(in crate::kind) fn patterns(
    state: &str,
    dirs: &[(Option<u32>, &str)],
) -> Result<Vec<Pattern>, Wrong> {
    let mut built: Vec<Pattern> = Vec::new();
    for (at, dir) in dirs {
        let pattern =
            Pattern::parse(dir).map_err(|why| (*at, format!("state `{state}`: {why}")))?;
        if built.contains(&pattern) {
            return Err((*at, format!("state `{state}`: the directory `{dir}` is there twice")));
        }
        built.push(pattern);
    }
    let Some(first) = built.first() else {
        return Err((None, format!("state `{state}` has no directory")));
    };
    if !first.is_definite() {
        let reason = format!(
            "state `{state}`: the first directory is where the daemon puts things; `{first}` does \
             not say where"
        );
        return Err((dirs[0].0, reason));
    }
    Ok(built)
}

pub(super) fn build_state(
    name: &Spanned<String>,
    form: &StateForm,
    fields: &EngineFields,
    names: &Names<'_>,
    schema: &Schema,
) -> Result<State, Wrong> {
    let at = line(name);
    let shown = name.value.as_str();
    let state_name =
        StateName::new(shown).map_err(|why| (at, format!("the state's name `{shown}`: {why}")))?;
    let dirs: Vec<_> = form.dirs.iter().map(|dir| (line(dir), dir.value.as_str())).collect();
    let dirs = patterns(shown, &dirs).map_err(|(dir, why)| (dir.or(at), why))?;
    let known = fields.status.as_deref().and_then(|field| schema.enumeration(field));
    let status =
        statuses(shown, form.status.as_ref(), known.as_deref()).map_err(|why| (at, why))?;
    let moves = match &form.moves {
        None => None,
        Some(form) => Some(moves(shown, form, &status)?),
    };
    let mut status_requires = Vec::new();
    for (when, required) in &form.status_requires.0 {
        belongs(shown, &status, &when.value).map_err(|why| (line(when), why))?;
        status_requires.push((when.value.clone(), paths(required, schema)?));
    }
    let lease = form.lease.as_ref().map(|form| lease(form, names, &status)).transpose()?;
    let retries = form.retries.as_ref().map(|form| retries(form, names)).transpose()?;
    Ok(State {
        name: state_name,
        needs_owner: dirs.iter().all(Pattern::has_owner),
        dirs,
        status,
        moves,
        requires: paths(&form.requires, schema)?,
        status_requires,
        initial: form.initial,
        terminal: form.terminal,
        lease,
        retries,
    })
}

fn statuses(
    state: &str,
    form: Option<&OneOrMany<String>>,
    known: Option<&[&str]>,
) -> Result<Statuses, String> {
    let (form, known) = match (form, known) {
        (None, None) => return Ok(Statuses::Any),
        (Some(_), None) => {
            return Err(format!(
                "state `{state}` has a `status`, but `fields` names no such field"
            ));
        }
        (None, Some(_)) => {
            return Err(format!("state `{state}` needs `status`: a list, or `any`"));
        }
        (Some(form), Some(known)) => (&form.0, known),
    };
    if form.len() == 1 && form[0] == "any" && !known.contains(&"any") {
        return Ok(Statuses::Any);
    }
    if form.is_empty() {
        return Err(format!("state `{state}` takes no status at all"));
    }
    for (at, one) in form.iter().enumerate() {
        if !known.contains(&one.as_str()) {
            return Err(format!("state `{state}`: {}", unknown("status", one, known)));
        }
        if form[..at].contains(one) {
            return Err(format!("state `{state}`: the status `{one}` is there twice"));
        }
    }
    Ok(Statuses::Listed(form.clone()))
}

pub(in crate::kind) fn belongs(state: &str, status: &Statuses, one: &str) -> Result<(), String> {
    match status {
        Statuses::Listed(all) if all.iter().any(|known| known == one) => Ok(()),
        Statuses::Listed(all) => Err(format!("state `{state}`: {}", unknown("status", one, all))),
        Statuses::Any => {
            Err(format!("state `{state}` does not check the status, so `{one}` cannot matter"))
        }
    }
}

fn moves(
    state: &str,
    form: &[Spanned<MoveForm>],
    status: &Statuses,
) -> Result<Vec<StatusMove>, Wrong> {
    let mut built: Vec<StatusMove> = Vec::new();
    for one in form {
        let at = line(one);
        let by = one.value.by.clone().unwrap_or_else(|| Role::ALL.to_vec());
        for (from, to) in pairs(&one.value.from, &one.value.to) {
            for end in [from, to] {
                belongs(state, status, end).map_err(|why| (at, why))?;
            }
            if built.iter().any(|known| known.from == *from && known.to == *to) {
                let reason = format!("state `{state}`: the move {from} to {to} is there twice");
                return Err((at, reason));
            }
            built.push(StatusMove { from: from.clone(), to: to.clone(), by: by.clone() });
        }
    }
    Ok(built)
}

fn lease(form: &LeaseForm, names: &Names<'_>, status: &Statuses) -> Result<Lease, Wrong> {
    let word = form.on_expiry.value.as_str();
    let is_status = matches!(status, Statuses::Listed(all) if all.iter().any(|one| one == word));
    let on_expiry = match names.find(word, line(&form.on_expiry)) {
        Ok(state) => OnExpiry::State(state),
        Err(_) if word == "event" => OnExpiry::Event,
        Err(_) if is_status => OnExpiry::Status(word.to_owned()),
        Err(wrong) => return Err(wrong),
    };
    let ttl = duration(&form.ttl)?;
    if ttl > LEASE_MAX {
        let longest = units::shown_duration(LEASE_MAX);
        return Err((line(&form.ttl), format!("no lease is longer than {longest}")));
    }
    Ok(Lease { ttl, heartbeat: form.heartbeat.as_ref().map(duration).transpose()?, on_expiry })
}

/// How often a record whose lease ran out is tried again: where it goes for that `on_expiry` says.
fn retries(form: &RetriesForm, names: &Names<'_>) -> Result<Retries, Wrong> {
    if let Some(to) = &form.to {
        names.find(&to.value, line(to))?;
    }
    if form.attempts.value == 0 {
        return Err((line(&form.attempts), "`attempts` is at least 1".to_owned()));
    }
    let jitter = form.jitter_percent.as_ref();
    if let Some(over) = jitter.filter(|jitter| jitter.value > JITTER_PERCENT_MAX) {
        let reason = format!("`jitter_percent` is 0 to {JITTER_PERCENT_MAX}");
        return Err((line(over), reason));
    }
    Ok(Retries {
        attempts: form.attempts.value,
        first: duration(&form.first)?,
        longest: duration(&form.longest)?,
        jitter_percent: jitter.map_or(0, |jitter| jitter.value),
        exhausted: names.find(&form.exhausted.value, line(&form.exhausted))?,
    })
}

pub(in crate::kind) fn duration(text: &Spanned<String>) -> Result<Duration, Wrong> {
    units::duration(&text.value).and_then(some_time).map_err(|why| (line(text), why))
}
