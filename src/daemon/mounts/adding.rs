//! How a mount comes about: looked at, made ready, served, told of.
//!
//! What must stay true: before the kernel has it nobody is registered for it; what fails leaves nothing.
//! Deliberately not here: what lies below a mount (`below`).

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use workfs_mount::{
    Mount, MountId, MountOptions, Tree, Underlay, attach, attach_in_place_of_dead, serve_connection,
};

use super::below::{Asked, Point};
use super::options::{self, OwnOptions};
use super::reach::{Reach, numbers_otherwise};
use super::wanted::Who;
use super::{Added, Mounts, Place, Row};
use crate::daemon::failure::{Cause, Failure};
use crate::daemon::socket::wire::{MountAsk, MountInfo};
use crate::engine::user_name;
use crate::limits::MOUNTS_MAX;
use crate::names::{Shown, ShownPath, shell_word};
use crate::numbers::UnixNanos;
use crate::tree::Identity;

/// What a mount is served on.
enum On<'c> {
    Point(Point<'c>),
    Connection(OwnedFd),
}

impl Mounts {
    pub(super) fn add_alone(
        &self,
        ask: &MountAsk,
        place: Place,
        uid: u32,
        now: UnixNanos,
    ) -> Result<Added, Failure> {
        let dir = PathBuf::from(&ask.dir);
        let own = OwnOptions::parse(&ask.options)?;
        let who = Who::of(ask, &own)?;
        self.refuse_place(&dir, &own)?;
        if let Some((mount, info)) = self.find(&dir) {
            who.expect_role(self.registered(&who).map(|agent| agent.role))?;
            let added = same(mount, info, &who, &own)?;
            return Ok(Added { info: self.as_of_now(added.info), ..added });
        }
        // Before the directory is touched: where a dead mount lies, nobody can write below it.
        let root = self.shown(&who.root)?;
        who.expect_role(self.registered(&who).map(|agent| agent.role))?;
        let mut kernel = own.kernel()?;
        let id = self.next_id()?;
        let none_ends = self.finishing.lock();
        kernel.root = root;
        kernel.other_numbers =
            matches!(place, Place::Elsewhere(_, process) if numbers_otherwise(process));
        if !own.names_source() {
            kernel.fs_name = self.paths.source();
        }
        let asked = Asked { nonempty: ask.nonempty || own.nonempty, words: ask.words() };
        let (on, reach, mut notes) = self.find_place(place, &dir, asked)?;
        let private = matches!(on, On::Connection(_));
        notes.extend(options::left_out(&kernel).filter(|_| !private));
        notes.extend(options::protect(&mut kernel, self.engine.write_protection()));
        self.hub.introduce(id, identity(&who, &kernel, uid));
        // Not before the kernel has it: where nothing can be mounted nobody is registered.
        let register = || self.register(&who, uid);
        let served = self.serve_on(on, id, (&dir, &kernel), register, &mut notes);
        drop(none_ends);
        let (mount, below) = served.inspect_err(|_| self.hub.remove_mount(id))?;
        let mount = Arc::new(mount);
        let info = MountInfo {
            mount: id.0,
            dir: ask.dir.clone(),
            agent: who.agent.as_ref().map(ToString::to_string),
            role: String::new(),
            root: who.root.as_ref().map(ShownPath::from).unwrap_or_default(),
            options: ask.options.clone(),
            since: now.rfc3339_seconds(),
            uid,
            detached: false,
            private,
            device: mount.device(),
        };
        let (row, temporary) = (Arc::clone(&mount), ask.temporary);
        self.enter(Row { mount: row, below, info: info.clone(), temporary, reach });
        Ok(Added { mount, info: self.as_of_now(info), already: false, notes })
    }

    /// What a mount is to be served on, how those in its name space are reached, and what the user should know.
    fn find_place(
        &self,
        place: Place,
        dir: &Path,
        asked: Asked,
    ) -> Result<(On<'_>, Option<Reach>, Vec<String>), Failure> {
        let mut notes = Vec::new();
        let (on, reach) = match place {
            Place::Here => (On::Point(Point::find(dir, &self.covers, asked, &mut notes)?), None),
            Place::Elsewhere(connection, process) => {
                (On::Connection(connection), Reach::by(process, dir))
            }
        };
        Ok((on, reach, notes))
    }

    /// Tells of a mount that is served: to the hub, and to who asks what there is.
    fn enter(&self, row: Row) {
        let here = row.mount.device().map(|device| (row.mount.dir().to_owned(), device));
        let found = here.or_else(|| row.reach.as_ref().map(Reach::place));
        self.hub.add_mount(Arc::clone(&row.mount), found);
        let mut table = self.table.lock();
        table.served = true;
        table.rows.push(row);
    }

    /// A number for one mount more, if there may be one.
    fn next_id(&self) -> Result<MountId, Failure> {
        let mut table = self.table.lock();
        if table.rows.len() >= MOUNTS_MAX {
            let reason = format!("this daemon has {MOUNTS_MAX} mounts already");
            return Err(Failure::new(Cause::Busy, reason, "unmount one first"));
        }
        table.last += 1;
        Ok(MountId(table.last))
    }

    /// Serves the tree there, from when the kernel has the mount and `register` was done; gives what lies below,
    /// too.
    fn serve_on(
        &self,
        on: On<'_>,
        id: MountId,
        (dir, kernel): (&Path, &MountOptions),
        register: impl FnOnce() -> Result<(), Failure>,
        notes: &mut Vec<String>,
    ) -> Result<(Mount, Option<Underlay>), Failure> {
        let tree = Arc::clone(&self.tree) as Arc<dyn Tree>;
        match on {
            On::Point(point) => point.mount(notes, |dir, is_dead| {
                let attached = match is_dead {
                    false => attach(dir, kernel)?,
                    true => attach_in_place_of_dead(dir, kernel)?,
                };
                register()?;
                Ok(attached.serve(tree, id)?)
            }),
            On::Connection(connection) => {
                register()?;
                Ok((serve_connection(tree, id, dir, kernel, connection)?, None))
            }
        }
    }
}

/// Whose a mount is and what it shows, as the tree is told before it is asked anything through it.
fn identity(who: &Who, kernel: &MountOptions, uid: u32) -> Identity {
    let asks = kernel.is_checked(uid).then(|| kernel.shows());
    let shows_stored = kernel.shows_stored();
    Identity {
        agent: who.agent.clone(),
        maker: user_name(uid),
        root: kernel.root,
        shows_stored,
        is_checked: shows_stored && asks.is_some(),
        is_read_only: kernel.read_only,
        asks,
    }
}

/// The same mount asked for again is no error; another one on the same directory is.
fn same(mount: Arc<Mount>, info: MountInfo, who: &Who, own: &OwnOptions) -> Result<Added, Failure> {
    let agent = who.agent.as_ref().map(|name| name.as_str());
    let root = who.root.as_ref().map(ShownPath::from).unwrap_or_default();
    // In another order, or with words that mean nothing here (`_netdev`), they are the same options.
    let is_as_asked = OwnOptions::parse(&info.options)?.kernel()? == own.kernel()?;
    if info.agent.as_deref() != agent || !is_as_asked || info.root != root {
        let reason = format!("{} is mounted already, with other options", info.dir.shown());
        let remedy =
            format!("unmount it first (`workfs unmount {}`)", shell_word(info.dir.as_bytes()));
        return Err(Failure::new(Cause::Conflict, reason, remedy));
    }
    let notes = vec![format!("{} is mounted already", info.dir.shown())];
    Ok(Added { mount, info, already: true, notes })
}
