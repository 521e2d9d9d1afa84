//! Who may do what to whose record: asked here and nowhere else.
//!
//! A kind says which roles may make records, and which may write those that nobody owns, their
//! own, and others' ([`Rights`](crate::kind::Rights)); a transition says which roles may make it.
//! Whose a record is, its lane says. What must stay true: an observer changes nothing; whoever may
//! not act for others changes nothing in others' lanes, and neither moves nor removes the
//! directories of a workspace. Permission bits are no matter of roles (`modes`).

use super::modes::{Bits, forbids_taking, runs_the_store};
use crate::engine::change::stop;
use crate::engine::change::stop::gone;
use crate::engine::places::governed::{Governed, Home, path_of_dir};
use crate::engine::records::save;
use crate::engine::records::whereabouts::is_parked_at;
use crate::engine::{Command, Context, Registry, Stop, Text, Turn, governed};
use crate::kind::{Holding, Kind, Place, Role, StateIx};
use crate::names::{AgentName, FileName, with_article};
use crate::numbers::Ino;
use crate::refusal::{Refusal, Rule};
use crate::store::{Class, Node, NodeType, Record, RefusalRow, Standing, StoreError};

/// Whether who looks (its user, its role and name) may see this refusal, which may quote what was
/// written: each user its own, who runs the store all; and of that an agent its own.
#[must_use]
pub fn sees_refusal(row: &RefusalRow, uid: u32, (role, name): (Role, &AgentName)) -> bool {
    (runs_the_store(uid) || uid == row.uid) && (role == Role::Operator || row.actor == *name)
}

impl Context {
    /// Whose a record of this owner is to the caller.
    #[must_use]
    pub fn holding(&self, owner: Option<&AgentName>) -> Holding {
        match owner {
            None => Holding::Free,
            Some(owner) if *owner == self.actor.name => Holding::Own,
            Some(_) => Holding::Others,
        }
    }

    /// Whether the caller may change anything at all.
    ///
    /// # Errors
    /// [`Rule::Forbidden`], for an observer.
    pub fn may_change(&self) -> Result<(), Refusal> {
        if self.role == Role::Observer { Err(observed(self)) } else { Ok(()) }
    }

    /// Whether the caller may do what is an operator's.
    fn may_operate(&self, what: &str) -> Result<(), Refusal> {
        if self.role == Role::Operator {
            return Ok(());
        }
        let reason = format!("{} ({}) may not {what}", self.actor.name, self.role);
        Err(Refusal::new(Rule::Forbidden, reason, "that is for an operator: ask one"))
    }

    /// Whether the caller may write, move and remove what belongs to `owner` in this state.
    ///
    /// # Errors
    /// [`Rule::Forbidden`], and who may.
    pub fn may_write(
        &self,
        kind: &Kind,
        state: StateIx,
        owner: Option<&AgentName>,
    ) -> Result<(), Refusal> {
        // What work has ended on is as good as somebody else's, and so is what the caller could not take
        // from where it rests.
        let holding = match self.holding(owner) {
            Holding::Free if kind.state(state).terminal || !kind.moves_on(state, self.role) => {
                Holding::Others
            }
            holding => holding,
        };
        let allowed = kind.rights().of(holding);
        if allowed.contains(&self.role) {
            return Ok(());
        }
        let whose = match (holding, owner) {
            (Holding::Others, Some(owner)) => format!("{owner}'s {}s", kind.name()),
            (Holding::Others, None) => format!("{}s in {}", kind.name(), kind.state(state).name),
            (Holding::Own, _) => format!("{}s of its own", kind.name()),
            (Holding::Free, _) => format!("{}s that nobody has", kind.name()),
        };
        let who = crate::kind::role_names(allowed);
        Err(Refusal::new(
            Rule::Forbidden,
            format!("{} ({}) may not change {whose}", self.actor.name, self.role),
            format!(
                "that is for {who}; claim {} that is free, or ask one of them",
                with_article(kind.name().as_str())
            ),
        ))
    }

    /// Whether the caller may make a file at `home` a record, where `known` is what has its id.
    pub(in crate::engine) fn may_make(
        &self,
        home: &Home,
        known: Option<&Record>,
    ) -> Result<(), Refusal> {
        match known {
            // Its name went to a backup: this is its next version.
            Some(record) if is_parked_at(record, home) => {
                self.may_write(home.kind(), home.state, home.owner.as_ref())
            }
            Some(record) if record.standing != Standing::Gone => self.may_create(home),
            gone => self.may_create(home).and_then(|()| self.may_begin(home, gone)),
        }
    }

    /// Whether the caller may make a record at `home`.
    fn may_create(&self, home: &Home) -> Result<(), Refusal> {
        if home.owner.is_some() || home.kind().state(home.state).terminal {
            return self.may_write(home.kind(), home.state, home.owner.as_ref());
        }
        let allowed = &home.kind().rights().create;
        if allowed.contains(&self.role) {
            return Ok(());
        }
        let one = with_article(home.kind().name().as_str());
        let who = crate::kind::role_names(allowed);
        Err(Refusal::new(
            Rule::Forbidden,
            format!("{} ({}) may not make {one}", self.actor.name, self.role),
            format!("that is for {who}: ask one of them"),
        ))
    }

    /// Whether the caller may make a record of a new id at `home`, or of one that is `gone`: where it could
    /// not bring one it makes none, or who removes a record and makes it anew would go round the lifecycle.
    fn may_begin(&self, home: &Home, gone: Option<&Record>) -> Result<(), Refusal> {
        let kind = home.kind();
        let brings = |gone: &Record| {
            let from = kind.state_named(gone.state.as_str());
            self.holding(gone.owner.as_ref()) != Holding::Others
                && from.is_some_and(|from| kind.transition(from, home.state, self.role).is_ok())
        };
        if self.acts_for_others(kind)
            || kind.begins_in(home.state, self.role)
            || gone.is_some_and(brings)
        {
            return Ok(());
        }
        let (name, dir) = (kind.name(), home.governed.dir_path());
        let one = with_article(name.as_str());
        Err(Refusal::new(
            Rule::Forbidden,
            format!("{} ({}) may not make {one} in {dir}", self.actor.name, self.role),
            format!("make it where {name}s begin, and move it on from there"),
        ))
    }

    /// Whether the caller may act for others in a workspace of this kind.
    pub(in crate::engine) fn acts_for_others(&self, kind: &Kind) -> bool {
        kind.rights().others.contains(&self.role)
    }
}

/// An observer's change, whatever it is.
fn observed(context: &Context) -> Refusal {
    let (name, uid) = (&context.actor.name, context.actor.uid);
    // Of a user who was bound to an agent; under that name nobody can be registered.
    let is_stand_in = name.as_str() == format!("uid-{uid}");
    let remedy = match is_stand_in {
        true => {
            format!("ask an operator to make you an agent (`workfs agent add NAME --uid {uid}`)")
        }
        false => {
            format!("ask an operator for another role (`workfs agent add {name} --role ROLE`)")
        }
    };
    Refusal::new(Rule::Forbidden, format!("{name} is an observer and may only read"), remedy)
}

impl Turn<'_> {
    /// Refuses whoever is not an operator a command that does this.
    pub(in crate::engine) fn require_operator(
        &self,
        what: &str,
        command: &impl Command,
    ) -> Result<(), Stop> {
        let may = self.context.may_operate(what);
        may.map_err(|refusal| command.about().kept(self.txn, refusal))
    }

    /// Refuses a change of the record at `home` that is not the caller's to make.
    pub(in crate::engine) fn require_write(&self, home: &Home) -> Result<(), Stop> {
        self.context
            .may_write(home.kind(), home.state, home.owner.as_ref())
            .map_err(|refusal| Stop::kept(refusal, home.file_path()))
    }

    /// Refuses to remove the record at `home`, or to give its file another name or other attributes,
    /// to whom it is not, or is not any more: the lease of its owner may have run out.
    pub(in crate::engine) fn require_own(&self, record: &Record, home: &Home) -> Result<(), Stop> {
        self.require_write(home)?;
        let asked = self.revives(record, home).map(drop);
        asked.map_err(|refusal| Stop::kept(refusal, home.file_path()))
    }

    /// Refuses a change of the names in a lane of somebody else. Operators are spared the look.
    pub(in crate::engine) fn require_lane(&self, dir: Ino, name: &FileName) -> Result<(), Stop> {
        self.require_bits_of_dir(dir, name)?;
        if self.context.role == Role::Operator {
            return Ok(());
        }
        let Some(governed) = governed(self.txn, self.config, dir)? else { return Ok(()) };
        if let Place::State { state, owner: owner @ Some(_) } = &governed.place {
            let kind = &governed.binding.kind;
            return self
                .context
                .may_write(kind, *state, owner.as_ref())
                .map_err(|refusal| Stop::kept(refusal, governed.dir_path().join(name.clone())));
        }
        Ok(())
    }

    /// Refuses to take a record, by a copy or a command, to whom permission bits forbid the `mv`.
    pub(in crate::engine) fn require_taking(&self, lies: &Home, ino: Ino) -> Result<(), Stop> {
        let as_stored = match self.context.actor.mount {
            Some(mount) => self.audience.shows_stored(mount),
            // An agent by its user does no more by commands than in a mount.
            None if self.context.bits == Bits::Roles => true,
            None => return Ok(()),
        };
        let there = (lies.dir, ino, &lies.governed.dir_path());
        match forbids_taking(self.txn, self.context, as_stored, there)? {
            Some(refusal) => Err(Stop::kept(refusal, lies.file_path())),
            None => Ok(()),
        }
    }

    /// Refuses a record the name of a lane that is not there: it was to go into it.
    pub(in crate::engine) fn require_no_lane(
        &self,
        lies: &Home,
        parent: Ino,
        name: &FileName,
    ) -> Result<(), Stop> {
        let Some(above) = governed(self.txn, self.config, parent)? else { return Ok(()) };
        // Beside records, as in `done/`, it is an ordinary name.
        if above.place.is_state() || !above.place_of(name).is_state() {
            return Ok(());
        }
        let lane = above.dir_path().join(name.clone());
        let reason = format!("there is no directory `{lane}` for `{}` to go into", lies.id);
        let refusal =
            Refusal::new(Rule::Absent, reason, format!("make it first: mkdir {}", lane.in_shell()));
        Err(Stop::kept(refusal, lies.file_path()))
    }

    /// Refuses a file that has a record's name a place among lanes: a directory of that name would be an
    /// agent's lane, so that `mv X.yaml assigned/` means one that was forgotten. `source` is the file of a
    /// record that was to go there.
    pub(in crate::engine) fn require_named_among_lanes(
        &self,
        source: Option<&Node>,
        parent: Ino,
        name: &FileName,
    ) -> Result<(), Stop> {
        let Some(above) = governed(self.txn, self.config, parent)? else { return Ok(()) };
        let (dir, kind) = (above.dir_path(), &above.binding.kind);
        // Beside records, as in `done/`, it is a record's name or an ordinary one.
        if !above.place_of(name).is_lane()
            || above.place.is_state()
            || kind.record_id(name).is_none()
        {
            return Ok(());
        }
        // An operator moves records for others, and has no lane itself.
        let you = match self.context.role {
            Role::Operator => "YOU",
            _ => self.context.actor.name.as_str(),
        };
        let lane = FileName::new(you).map_err(|_| stop::absent(name))?;
        let make = match self.txn.lookup(parent, &lane)? {
            Some(_) => String::new(),
            None => format!("mkdir {} && ", dir.join(lane.clone()).in_shell()),
        };
        let into = dir.join(lane).in_shell();
        let reason =
            format!("`{dir}` has a lane for each agent, and no {}s beside them", kind.name());
        let record = source.map(|node| self.txn.record_at(node.ino)).transpose()?.flatten();
        let (path, remedy) = match record {
            Some(record) => {
                let from = save::home_of(self, &record)?.file_path();
                let remedy = format!("name a lane: {make}mv {} {into}/", from.in_shell());
                (from, remedy)
            }
            None => (dir.join(name.clone()), format!("name a lane: {make}cp FILE {into}/")),
        };
        Err(Stop::kept(Refusal::new(Rule::Transition, reason, remedy), path))
    }

    /// Refuses a record a directory that would be a lane if its name were an agent's: whoever moves it
    /// there means to claim it.
    pub(in crate::engine) fn require_named_lane(
        &self,
        lies: &Home,
        parent: Ino,
    ) -> Result<(), Stop> {
        let Some(dir) = self.txn.node(parent)? else { return Ok(()) };
        let Some(above) = governed(self.txn, self.config, dir.parent)? else { return Ok(()) };
        let lane = path_of_dir(self.txn, parent)?;
        let Some((_, name)) = lane.split_last() else { return Ok(()) };
        let misnamed = above.binding.kind.misnamed_lane(&above.relative_of(name));
        let Some(why) = misnamed else { return Ok(()) };
        let reason = format!("`{lane}` is no agent's lane: {why}");
        let refusal = Refusal::new(Rule::Transition, reason, "give the directory an agent's name");
        Err(Stop::kept(refusal, lies.file_path()))
    }

    /// Refuses to make the lane of somebody else, or anything else under its name: through a link
    /// there others would claim for whom it leads to. And a lane of whoever can be no agent.
    pub(in crate::engine) fn require_new_lane(
        &self,
        parent: Ino,
        name: &FileName,
        node_type: NodeType,
    ) -> Result<(), Stop> {
        let Some(above) = governed(self.txn, self.config, parent)? else { return Ok(()) };
        let kind = &above.binding.kind;
        let place = above.place_of(name);
        if node_type != NodeType::File
            && let Place::State { owner: Some(owner), .. } = &place
            && *owner != self.context.actor.name
            && let Err(why) = Registry::load(self.txn)?.require_agents_name(owner)
            && !self.has_lane(&above, owner)?
        {
            return Err(Stop::kept(why, above.dir_path().join(name.clone())));
        }
        if self.context.role == Role::Operator {
            return Ok(());
        }
        let is_beside = node_type == NodeType::File && above.place.is_state();
        if is_beside && kind.record_id(name).is_some() {
            return Ok(());
        }
        if node_type == NodeType::File {
            self.require_named_among_lanes(None, parent, name)?;
        }
        let Place::State { state, owner: Some(owner) } = place else { return Ok(()) };
        // Beside records, as in `done/`, a file may have any name but an agent's: where that one's lane is
        // to be, nothing of that agent's could go any more.
        if is_beside && Registry::load(self.txn)?.get(&owner).is_none() {
            return Ok(());
        }
        self.context
            .may_write(kind, state, Some(&owner))
            .map_err(|refusal| Stop::kept(refusal, above.dir_path().join(name.clone())))
    }

    /// Whether somebody has a lane in a workspace. Whoever finishes what lies there needs another of the same owner.
    fn has_lane(&self, above: &Governed, owner: &AgentName) -> Result<bool, StoreError> {
        let root = self.txn.workspace(above.workspace)?.and_then(|row| row.dir);
        let kind = &above.binding.kind;
        for (state, _) in kind.states().filter(|(_, state)| state.has_owner()) {
            let mut at = root;
            for name in kind.directory(state, Some(owner), self.now).unwrap_or_default() {
                let found = at.map(|dir| self.txn.lookup(dir, &name)).transpose()?.flatten();
                at = found.map(|node| node.ino);
            }
            // One that is still an ordinary directory is nobody's.
            if let Some(lane) = at.filter(|_| at != root)
                && self.txn.place(lane)?.is_some()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Refuses to move, remove or set up a directory of a workspace that is not the caller's lane.
    pub(in crate::engine) fn require_directory(&self, dir: &Node) -> Result<(), Stop> {
        if self.context.role == Role::Operator {
            return Ok(());
        }
        let Some(governed) = governed(self.txn, self.config, dir.ino)? else { return Ok(()) };
        let own = matches!(&governed.place, Place::State { owner: Some(owner), .. }
            if *owner == self.context.actor.name);
        if own || self.context.acts_for_others(&governed.binding.kind) {
            return Ok(());
        }
        let path = path_of_dir(self.txn, dir.ino)?;
        let who = crate::kind::role_names(&governed.binding.kind.rights().others);
        let name = &self.context.actor.name;
        let refusal = Refusal::new(
            Rule::Forbidden,
            format!("{name} ({}) may not change `{path}`, part of a workspace", self.context.role),
            format!("that is for {who}: ask one of them"),
        );
        Err(Stop::kept(refusal, path))
    }

    /// Refuses a change of attributes of what is somebody else's, or was the caller's until its
    /// lease ran out.
    pub(in crate::engine) fn require_node(&self, node: &Node) -> Result<(), Stop> {
        self.require_bits_of(node)?;
        if self.context.role == Role::Operator {
            return Ok(());
        }
        match node.class {
            Class::Record => {
                let record = self.txn.record_at(node.ino)?.ok_or_else(gone)?;
                self.require_own(&record, &save::home_of(self, &record)?)
            }
            Class::Draft => match self.txn.draft(node.ino)? {
                Some(draft) => self.require_lane(draft.dir, &draft.name),
                None => Ok(()),
            },
            Class::Plain => self.require_directory(node),
        }
    }

    /// Refuses a record of the caller's that names another owner than its lane: in a lane only
    /// those who act for others may write another name.
    fn require_own_name(
        &self,
        home: &Home,
        before: Option<&serde_json::Value>,
        said: &serde_json::Value,
    ) -> Result<(), Refusal> {
        let Some(lane) = &home.owner else { return Ok(()) };
        let Some(field) = &home.kind().fields().owner else { return Ok(()) };
        if self.context.acts_for_others(home.kind()) {
            return Ok(());
        }
        let named = |text: &serde_json::Value| {
            text.get(field).and_then(serde_json::Value::as_str).map(str::to_owned)
        };
        match named(said) {
            Some(other)
                if other != lane.as_str() && before.and_then(named) != Some(other.clone()) =>
            {
                let other = crate::names::printable(other.as_bytes());
                Err(Refusal::new(
                    Rule::Forbidden,
                    format!(
                        "`{field}: {other}` in {} of {lane}",
                        with_article(home.kind().name().as_str())
                    ),
                    format!("write `{field}: {lane}`; to hand it over, release it or ask a lead"),
                ))
            }
            _ => Ok(()),
        }
    }

    /// The same for texts; one that cannot be read names nobody.
    pub(in crate::engine) fn require_own_names(
        &self,
        home: &Home,
        before: &Text,
        said: &Text,
    ) -> Result<(), Refusal> {
        let Ok(said) = &said.parsed else { return Ok(()) };
        let before = before.parsed.as_ref().ok().map(|before| before.value());
        self.require_own_name(home, before, said.value())
    }

    /// Refuses whoever may not take a record out of its workspace.
    pub(in crate::engine) fn require_leave(&self, home: &Home) -> Result<(), Stop> {
        let refused = self.context.may_operate("take a record out of its workspace");
        refused.map_err(|refusal| Stop::kept(refusal, home.file_path()))
    }
}
