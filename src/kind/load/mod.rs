//! From a definition to a kind: everything that can be wrong is refused here, with its line.

mod chores;
pub(super) mod commands;
pub(super) mod now;
mod order;
mod state;
mod written;

#[cfg(test)]
pub(super) mod load_test;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_saphyr::Spanned;

use super::builtin::is_built_in;
use super::definition::{FieldsForm, KindForm, RightsForm, StateForm, TransitionForm};
use super::error::where_and_why;
use super::field_path::FieldPath;
use super::lifecycle::order::Order;
use super::lifecycle::pattern::Pattern;
use super::lifecycle::state::{Stamp, StampWhen, State, StateIx, Transition};
use super::schema::Schema;
use super::schema::fields::Fields;
use super::yaml::{self, OneOrMany, Ordered, Wrong, line, unknown};
use super::{EngineFields, Kind, KindError, KindSource, Rights, Role};
use crate::names::{FileName, KindName, StateName};
use chores::{build_chores, have_own_names};
use commands::build_commands;
use now::{keys_stand_once, taken_now};
use order::build_order;
use state::{build_state, patterns};

/// The keys that a definition must have.
const KEYS: [&str; 6] = ["kind", "schema", "extensions", "fields", "states", "transitions"];

/// Most states of a kind: the largest known lifecycle has six.
const STATES_MAX: usize = 64;

impl Kind {
    /// Reads a kind from the text of its definition and the text of its schema. `file` is the
    /// definition's name, for errors.
    ///
    /// # Errors
    /// Whatever makes no sense: syntax, unknown keys, roles, states, statuses and fields, two
    /// states that could match one directory, states that cannot be reached, none or two initial
    /// states, a schema that is none.
    pub fn load(file: &str, definition: &str, schema: &str) -> Result<Kind, KindError> {
        let kind = Kind::load_by(file, definition, schema, Fields::Whole)?;
        kind.expect_taken_now()?;
        Ok(kind)
    }

    /// The same of a definition that a store keeps: fields of fields, of which former versions asked only for
    /// the first, are taken as they are, and so is what [`Kind::expect_taken_now`] refuses, since a store that
    /// cannot be opened any more helps nobody.
    ///
    /// # Errors
    /// As [`Kind::load`].
    pub fn load_kept(file: &str, definition: &str, schema: &str) -> Result<Kind, KindError> {
        Kind::load_by(file, definition, schema, Fields::First)
    }

    /// Fails on what former versions took: a directory or a file that would hide what workfs shows at the
    /// root of each mount, what can never work (a command, the end of a lease, a chore), one file or one field for
    /// two things, and a field that workfs writes against the schema.
    ///
    /// # Errors
    /// Which it is, and its line.
    pub fn expect_taken_now(&self) -> Result<(), KindError> {
        let wrong = |(line, reason)| KindError { file: self.file.clone(), line, reason };
        let form = read(&self.source.definition).map_err(wrong)?;
        taken_now(&form, self).map_err(wrong)?;
        keys_stand_once(&self.source.schema).map_err(|(line, reason)| {
            let named = where_and_why(&self.file, super::yaml::line(&form.schema), "the schema");
            KindError {
                file: self.schema_name.clone(),
                line,
                reason: format!("{reason} ({named})"),
            }
        })
    }

    fn load_by(
        file: &str,
        definition: &str,
        schema: &str,
        fields: Fields,
    ) -> Result<Kind, KindError> {
        let in_file =
            |file: &str, (line, reason): Wrong| KindError { file: file.to_owned(), line, reason };
        let form = read(definition).map_err(|wrong| in_file(file, wrong))?;
        let named = where_and_why(file, line(&form.schema), "the schema");
        let compiled = Schema::compile(schema).map_err(|(at, reason)| {
            in_file(&form.schema.value, (at, format!("{reason} ({named})")))
        })?;
        let compiled = compiled.looking_for(fields);
        let source = KindSource { definition: definition.to_owned(), schema: schema.to_owned() };
        build(form, compiled, source, file).map_err(|wrong| in_file(file, wrong))
    }

    /// The same where `load` reads the schema's file, whose name the definition says.
    ///
    /// # Errors
    /// As [`Kind::load`], and what `load` says.
    pub fn load_with(
        file: &str,
        definition: &str,
        load: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Kind, KindError> {
        let wrong = |(line, reason)| KindError { file: file.to_owned(), line, reason };
        let form = read(definition).map_err(wrong)?;
        let schema = load(&form.schema.value)
            .map_err(|reason| wrong((line(&form.schema), format!("`schema`: {reason}"))))?;
        Kind::load(file, definition, &schema)
    }

    /// The same lifecycle in other directories, by the state's name. The first directory of each
    /// list is the canonical one; states that are not named keep theirs.
    ///
    /// # Errors
    /// Unknown states, bad patterns, directories that clash (with what chores have, too), and lanes without
    /// `{owner}`.
    pub fn with_dirs(
        &self,
        overrides: &BTreeMap<StateName, Vec<String>>,
    ) -> Result<Kind, KindError> {
        let wrong =
            |reason: String| KindError { file: format!("kind {}", self.name), line: None, reason };
        let mut kind = self.clone();
        for (name, dirs) in overrides {
            let (state, dirs) = self.other_dirs(name.as_str(), dirs).map_err(wrong)?;
            kind.states[state.at()].dirs = dirs;
        }
        no_clash(&kind.states).map_err(|(_, reason)| wrong(reason))?;
        // Nobody can say anything more of a kind that is built in.
        let or = if is_built_in(self) { "" } else { OR_OTHER_ORDER_DIR };
        lies_in_order_dir(&kind.order.dir, &kind.states)
            .map_err(|(_, reason)| wrong(format!("{reason}{or}")))?;
        have_own_names(&kind.chores, &kind.states, &kind.order.dir).map_err(wrong)?;
        Ok(kind)
    }

    /// Other directories for one state, looked at by themselves: clashes are not seen here.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub(crate) fn other_dirs(
        &self,
        name: &str,
        dirs: &[String],
    ) -> Result<(StateIx, Vec<Pattern>), String> {
        let Some(state) = self.state_named(name) else {
            return Err(unknown("state", name, &self.state_names()));
        };
        let dirs: Vec<_> = dirs.iter().map(|dir| (None, dir.as_str())).collect();
        let dirs = patterns(name, &dirs).map_err(|(_, reason)| reason)?;
        if self.state(state).needs_owner && !dirs.iter().all(Pattern::has_owner) {
            return Err(format!(
                "a record in the state `{name}` has an owner: its directories need {{owner}}"
            ));
        }
        Ok((state, dirs))
    }

    fn state_names(&self) -> Vec<&str> {
        self.states.iter().map(|state| state.name.as_str()).collect()
    }
}

/// Reads the form. Where a key of the definition itself is missing, no line is to blame.
fn read(definition: &str) -> Result<KindForm, Wrong> {
    yaml::read(definition).map_err(|error| match error.missing {
        Some(key) if KEYS.contains(&key) => (None, error.reason),
        _ => (error.line, error.reason),
    })
}

fn build(form: KindForm, schema: Schema, source: KindSource, file: &str) -> Result<Kind, Wrong> {
    let name = KindName::new(&form.kind.value)
        .map_err(|why| (line(&form.kind), format!("the kind's name: {why}")))?;
    // What is wrong with the whole of a key stands where the key does.
    let under = |key: &'static str| {
        let source = &source;
        move |(at, reason): Wrong| (at.or_else(|| source.line_of(key)), reason)
    };
    let extensions = extensions(&form.extensions).map_err(under("extensions"))?;
    let fields = fields(form.fields, &schema)?;
    let states = Names::new(&form.states).map_err(under("states"))?;
    let mut built = Vec::new();
    for (name, state) in &form.states.0 {
        built.push(build_state(name, state, &fields, &states, &schema)?);
    }
    let its_dir =
        |(dir, reason): WrongDir| (form.states.0[dir.0].1.dirs.get(dir.1).and_then(line), reason);
    no_clash(&built).map_err(its_dir)?;
    let initial = one_initial(&built, &form.states)?;
    let transitions = transitions(&form.transitions, (&states, &built), &schema)?;
    all_reached(&form.states, initial, &transitions)?;
    for ((name, form), (at, _)) in form.states.0.iter().zip((0u8..).map(StateIx).zip(&built)) {
        leaves_by_its_ways((at, &name.value), form, &states, &transitions)?;
    }
    let strict = paths(&form.strict, &schema)?;
    let order = build_order(&form.order, &states, &built, &schema)?;
    lies_in_order_dir(&order.dir, &built)
        .map_err(|(dir, reason)| its_dir((dir, format!("{reason}{OR_OTHER_ORDER_DIR}"))))?;
    let rights = rights(form.rights).map_err(under("rights"))?;
    let known = Known {
        names: &states,
        states: &built,
        initial,
        transitions: &transitions,
        order: &order,
        schema: &schema,
    };
    let chores = build_chores(&form.chores, &known)?;
    let commands = build_commands(&form.commands, fields.status.as_deref(), &known);
    let commands = commands.map_err(under("commands"))?;
    let schema_name = form.schema.value;
    let schema = Arc::new(schema);
    Ok(Kind {
        file: file.to_owned(),
        name,
        schema_name,
        extensions,
        fields,
        strict,
        states: built,
        initial,
        rights,
        transitions,
        order,
        chores,
        commands,
        schema,
        source: Arc::new(source),
    })
}

fn rights(form: RightsForm) -> Result<Rights, Wrong> {
    let usual = Rights::default();
    let given = |roles: Option<Vec<Role>>, usual: Vec<Role>| match roles {
        Some(roles) if roles.contains(&Role::Observer) => {
            Err((None, "`rights`: an observer only reads".to_owned()))
        }
        Some(roles) => Ok(roles),
        None => Ok(usual),
    };
    Ok(Rights {
        create: given(form.create, usual.create)?,
        free: given(form.free, usual.free)?,
        own: given(form.own, usual.own)?,
        others: given(form.others, usual.others)?,
    })
}

/// The names of the states, for everything that refers to them.
pub(super) struct Names<'f>(Vec<&'f str>);

impl<'f> Names<'f> {
    fn new(states: &'f Ordered<StateForm>) -> Result<Self, Wrong> {
        if states.0.is_empty() || states.0.len() > STATES_MAX {
            return Err((None, format!("a kind has 1 to {STATES_MAX} states")));
        }
        Ok(Names(states.0.iter().map(|(name, _)| name.value.as_str()).collect()))
    }

    pub(super) fn find(&self, name: &str, at: Option<u32>) -> Result<StateIx, Wrong> {
        let found = self.0.iter().position(|known| *known == name);
        found
            .and_then(|found| u8::try_from(found).ok())
            .map(StateIx)
            .ok_or_else(|| (at, unknown("state", name, &self.0)))
    }
}

/// What the other parts of a definition say, for those that refer to them.
pub(super) struct Known<'k> {
    pub names: &'k Names<'k>,
    pub states: &'k [State],
    pub initial: StateIx,
    pub transitions: &'k [Transition],
    pub order: &'k Order,
    pub schema: &'k Schema,
}

impl Known<'_> {
    pub fn state(&self, name: &Spanned<String>) -> Result<StateIx, Wrong> {
        self.names.find(&name.value, line(name))
    }
}

fn extensions(form: &[Spanned<String>]) -> Result<Vec<String>, Wrong> {
    for one in form {
        let plain = one.value.bytes().all(|b| b.is_ascii_alphanumeric());
        if one.value.is_empty() || !plain {
            let reason = format!("`{}` is no extension: letters and digits, no dot", one.value);
            return Err((line(one), reason));
        }
    }
    if form.is_empty() {
        return Err((None, "a kind needs an extension for its records".to_owned()));
    }
    Ok(form.iter().map(|one| one.value.clone()).collect())
}

pub(super) fn known_field(field: &str, at: Option<u32>, schema: &Schema) -> Result<(), Wrong> {
    schema.expect_field(&[field.to_owned()]).map_err(|why| (at, why))
}

fn fields(form: FieldsForm, schema: &Schema) -> Result<EngineFields, Wrong> {
    let (lease, reason) = (form.lease.as_ref(), form.reason.as_ref());
    let all = [Some(&form.id), form.status.as_ref(), form.owner.as_ref(), lease, reason];
    for one in all.into_iter().flatten() {
        known_field(&one.value, line(one), schema)?;
    }
    if let Some(status) = &form.status
        && schema.enumeration(&status.value).is_none()
    {
        let reason = format!("the schema lists no values (`enum`) for `{}`", status.value);
        return Err((line(status), reason));
    }
    Ok(EngineFields {
        id: form.id.value,
        status: form.status.map(|one| one.value),
        owner: form.owner.map(|one| one.value),
        lease: form.lease.map(|one| one.value),
        reason: form.reason.map(|one| one.value),
    })
}

pub(super) fn paths(form: &[Spanned<String>], schema: &Schema) -> Result<Vec<FieldPath>, Wrong> {
    form.iter().map(|one| path(&one.value, line(one), schema)).collect()
}

pub(super) fn path(text: &str, at: Option<u32>, schema: &Schema) -> Result<FieldPath, Wrong> {
    let path = FieldPath::parse(text).map_err(|why| (at, why))?;
    path.ways().iter().try_for_each(|way| schema.expect_field(way)).map_err(|why| (at, why))?;
    Ok(path)
}

pub(super) fn pairs<'f>(
    from: &'f OneOrMany<String>,
    to: &'f OneOrMany<String>,
) -> impl Iterator<Item = (&'f String, &'f String)> {
    from.0.iter().flat_map(move |from| to.0.iter().map(move |to| (from, to)))
}

/// What is wrong with a directory of a state: which one of which, and why.
type WrongDir = ((usize, usize), String);

fn no_clash(states: &[State]) -> Result<(), WrongDir> {
    for (later, other) in states.iter().enumerate() {
        for one in &states[..later] {
            for (at, b) in other.dirs.iter().enumerate() {
                let Some(a) = one.dirs.iter().find(|a| a.meets(b)) else { continue };
                let reason = format!(
                    "the directories clash: `{a}` of the state `{}` and `{b}` of the state `{}` \
                     can be one directory",
                    one.name, other.name
                );
                return Err(((later, at), reason));
            }
        }
    }
    Ok(())
}

/// The other way out, in the definition.
const OR_OTHER_ORDER_DIR: &str = ", or name another with `order: { dir: NAME }` in the kind";

/// What is ready is shown in a directory of its own, in which no state can have records.
fn lies_in_order_dir(dir: &FileName, states: &[State]) -> Result<(), WrongDir> {
    let own = [dir.clone()];
    for (state, one) in states.iter().enumerate() {
        let lies = |known: &Pattern| known.matches(&own) || known.is_prefix(&own);
        if let Some(at) = one.dirs.iter().position(lies) {
            let reason = format!(
                "`{dir}` shows what is ready and cannot be a directory of the state `{}`: take \
                 another name",
                one.name
            );
            return Err(((state, at), reason));
        }
    }
    Ok(())
}

fn one_initial(states: &[State], form: &Ordered<StateForm>) -> Result<StateIx, Wrong> {
    let mut all = (0u8..).map(StateIx).zip(states).filter(|(_, state)| state.initial);
    let Some((initial, _)) = all.next() else {
        let first = form.0.first().and_then(|(name, _)| line(name));
        return Err((first, "no state is `initial: true`".to_owned()));
    };
    if let Some((at, second)) = all.next() {
        let reason = format!("`{}` is a second initial state; a kind has one", second.name);
        return Err((line(&form.0[at.at()].0), reason));
    }
    Ok(initial)
}

fn transitions(
    form: &[Spanned<TransitionForm>],
    (names, states): (&Names<'_>, &[State]),
    schema: &Schema,
) -> Result<Vec<Transition>, Wrong> {
    let mut built: Vec<Transition> = Vec::new();
    for one in form {
        let at = line(one);
        let form = &one.value;
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        if form.event.is_empty() || form.event.len() > 64 || !form.event.bytes().all(plain) {
            let reason = format!("`{}` is no name of an event: `claimed` is one", form.event);
            return Err((at, reason));
        }
        if form.by.is_empty() {
            return Err((at, format!("nobody may make the transition `{}`", form.event)));
        }
        for (stamp, _) in &form.stamps.0 {
            known_field(&stamp.value, line(stamp), schema)?;
        }
        let requires = form.requires.iter().map(|text| path(text, at, schema));
        let requires = requires.collect::<Result<Vec<_>, _>>()?;
        for (from, to) in pairs(&form.from, &form.to) {
            let transition = Transition {
                from: names.find(from, at)?,
                to: names.find(to, at)?,
                event: form.event.clone(),
                by: form.by.clone(),
                stamps: stamps(&form.stamps),
                requires: requires.clone(),
            };
            let leaves = transition.from != transition.to;
            if states[transition.from.at()].terminal && leaves && form.by != [Role::Operator] {
                let reason =
                    format!("only the operator may take a record out of `{from}` (terminal)");
                return Err((at, reason));
            }
            let same = |t: &Transition| t.from == transition.from && t.to == transition.to;
            if built.iter().any(same) {
                return Err((at, format!("the transition from {from} to {to} is there twice")));
            }
            built.push(transition);
        }
    }
    Ok(built)
}

fn stamps(form: &Ordered<StampWhen>) -> Vec<Stamp> {
    form.0.iter().map(|(field, when)| Stamp { field: field.value.clone(), when: *when }).collect()
}

fn all_reached(
    states: &Ordered<StateForm>,
    initial: StateIx,
    transitions: &[Transition],
) -> Result<(), Wrong> {
    let mut reached = vec![false; states.0.len()];
    let mut open = vec![initial];
    while let Some(state) = open.pop() {
        if !std::mem::replace(&mut reached[state.at()], true) {
            open.extend(transitions.iter().filter(|t| t.from == state).map(|t| t.to));
        }
    }
    match states.0.iter().zip(reached).find(|(_, reached)| !reached) {
        None => Ok(()),
        Some(((name, _), _)) => {
            let reason = format!("no transition leads to the state `{}`", name.value);
            Err((line(name), reason))
        }
    }
}

/// What happens by itself must be a transition too, so that the ledger has a name for it.
fn leaves_by_its_ways(
    (from, name): (StateIx, &str),
    form: &StateForm,
    names: &Names<'_>,
    transitions: &[Transition],
) -> Result<(), Wrong> {
    let expiry = form.lease.as_ref().map(|lease| ("on_expiry", &lease.on_expiry));
    let spent = form.retries.as_ref().map(|retries| ("exhausted", &retries.exhausted));
    for (key, target) in expiry.into_iter().chain(spent) {
        // A lease may also end with a status, or with an event alone.
        let Ok(to) = names.find(&target.value, None) else { continue };
        if !transitions.iter().any(|way| way.from == from && way.to == to) {
            let to = &target.value;
            let reason = format!("`{key}: {to}` needs a transition from `{name}` to `{to}`");
            return Err((line(target), reason));
        }
    }
    Ok(())
}
