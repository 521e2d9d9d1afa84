//! From the form of a kind's chores to them.

use serde_saphyr::Spanned;

use super::state::{belongs, duration};
use super::{Known, known_field, path};
use crate::kind::definition::{
    ArchiveForm, ChoresForm, DraftsForm, EscalateForm, HandoffForm, StuckForm,
};
use crate::kind::lifecycle::chores::{Archive, Drafts, Escalate, Handoff, KindChores, Stuck};
use crate::kind::lifecycle::state::{State, Statuses};
use crate::kind::yaml::{Wrong, line};
use crate::names::FileName;

pub(super) fn build_chores(form: &ChoresForm, known: &Known<'_>) -> Result<KindChores, Wrong> {
    let ChoresForm { handoff, archive, escalate, drafts } = form;
    Ok(KindChores {
        handoff: handoff.as_ref().map(|form| build_handoff(form, known)).transpose()?,
        archive: archive.as_ref().map(|form| build_archive(form, known)).transpose()?,
        escalate: escalate.as_ref().map(|form| build_escalate(form, known)).transpose()?,
        drafts: drafts.as_ref().map(|form| build_drafts(form, known)).transpose()?,
    })
}

impl Known<'_> {
    /// A name in the workspace's directory that is not the lifecycle's.
    fn name(&self, text: &Spanned<String>) -> Result<FileName, Wrong> {
        let wrong = |why: String| (line(text), format!("`{}`: {why}", text.value));
        let name = FileName::new(&text.value).map_err(|why| wrong(why.to_string()))?;
        is_nobodys(&name, self.states, &self.order.dir).map_err(wrong)?;
        Ok(name)
    }
}

/// Whether what chores put somewhere lies in none of the lifecycle's directories.
///
/// # Errors
/// In which it does.
pub(super) fn have_own_names(
    chores: &KindChores,
    states: &[State],
    ready: &FileName,
) -> Result<(), String> {
    let file = chores.escalate.as_ref().map(|escalate| &escalate.file);
    let dir = chores.drafts.as_ref().map(|drafts| &drafts.dir);
    file.into_iter().chain(dir).try_for_each(|name| {
        is_nobodys(name, states, ready).map_err(|why| format!("`{name}` of the chores: {why}"))
    })
}

fn is_nobodys(name: &FileName, states: &[State], ready: &FileName) -> Result<(), String> {
    let own = [name.clone()];
    let lies =
        |state: &&State| state.dirs.iter().any(|dir| dir.matches(&own) || dir.is_prefix(&own));
    match states.iter().find(lies) {
        Some(state) => Err(format!("that is a directory of the state `{}`", state.name)),
        None if ready == name => Err("that is the directory of what is ready".to_owned()),
        None => Ok(()),
    }
}

fn build_handoff(form: &HandoffForm, known: &Known<'_>) -> Result<Handoff, Wrong> {
    let state = known.state(&form.state)?;
    if state == known.initial {
        let reason = "a record that is handed over would make records without end".to_owned();
        return Err((line(&form.state), reason));
    }
    let field = |text: &Spanned<String>| path(&text.value, line(text), known.schema);
    let mut copy = Vec::new();
    for (to, from) in &form.copy.0 {
        known_field(&to.value, line(to), known.schema)?;
        copy.push((to.value.clone(), field(from)?));
    }
    let (agent, previous) = (field(&form.agent)?, field(&form.previous)?);
    Ok(Handoff { state, agent, previous, copy })
}

fn build_archive(form: &ArchiveForm, known: &Known<'_>) -> Result<Archive, Wrong> {
    let (from, to) = (known.state(&form.from)?, known.state(&form.to)?);
    if !known.transitions.iter().any(|way| way.from == from && way.to == to) {
        let reason = format!("no transition leads from {} to {}", form.from.value, form.to.value);
        return Err((line(&form.to), reason));
    }
    if known.states[to.at()].has_owner() {
        let reason = format!("`{}` has owners: nothing can be put away there", form.to.value);
        return Err((line(&form.to), reason));
    }
    Ok(Archive { from, to, after: duration(&form.after)? })
}

fn build_escalate(form: &EscalateForm, known: &Known<'_>) -> Result<Escalate, Wrong> {
    let stuck = |form: &StuckForm| {
        let state = known.state(&form.state)?;
        let is = &known.states[state.at()];
        let at = line(&form.state);
        for status in &form.status.0 {
            belongs(&form.state.value, &is.status, status).map_err(|why| (at, why))?;
        }
        let status = match form.status.0.is_empty() {
            true => Statuses::Any,
            false => Statuses::Listed(form.status.0.clone()),
        };
        Ok(Stuck { state, status, after: duration(&form.after)? })
    };
    let stuck = form.stuck.iter().map(stuck).collect::<Result<Vec<_>, Wrong>>()?;
    Ok(Escalate { file: known.name(&form.file)?, stuck })
}

fn build_drafts(form: &DraftsForm, known: &Known<'_>) -> Result<Drafts, Wrong> {
    Ok(Drafts { after: duration(&form.after)?, dir: known.name(&form.dir)? })
}
