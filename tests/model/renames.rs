//! The reference's renames: of POSIX, and what protects a workspace from them.

use workfs_mount::RenameMode;

use super::lifecycle::{self, Place, place};
use super::records::{Base, Door, Record, Standing};
use super::reference::{Body, Home, Model, No, NodeId, Outcome, no};

impl Model {
    pub fn rename(&mut self, from: &str, to: &str, mode: RenameMode, pid: u32) -> Outcome {
        let (from, to) = (self.parent(from)?, self.parent(to)?);
        let Some(source) = self.child(from.0, from.1) else { return no("ENOENT") };
        let target = self.child(to.0, to.1);
        match (mode, target) {
            (RenameMode::NoReplace, Some(_)) => return no("EEXIST"),
            (RenameMode::Exchange, None) => return no("ENOENT"),
            _ if target == Some(source) => return Ok(()),
            (RenameMode::Exchange, Some(target)) => return self.exchange(from, to, source, target),
            _ => {}
        }
        match self.nodes[source].body.clone() {
            Body::Record(id) => self.move_record(&id, from, to, source, target, pid),
            Body::Draft(text) => self.move_draft(&text, from, to, source, target, pid),
            Body::Plain(text) if self.slot(to.0, to.1).is_some() => {
                let home = self.slot(to.0, to.1).unwrap();
                self.save_by_rename(&text, from, home, source, target, pid)
            }
            _ => self.move_name(from, to, source, target),
        }
    }

    /// The rename of POSIX, and what protects a workspace from it.
    pub fn move_name(
        &mut self,
        from: (NodeId, &str),
        to: (NodeId, &str),
        source: NodeId,
        target: Option<NodeId>,
    ) -> Outcome {
        let mut why = No::new();
        if self.is_dir(source) {
            self.may_move_dir(source, to, &mut why);
        }
        if let Some(target) = target {
            match (self.is_dir(source), self.is_dir(target)) {
                (true, false) => why.push("ENOTDIR"),
                (false, true) => why.push("EISDIR"),
                (true, true) if !self.is_empty(target) => why.push("ENOTEMPTY"),
                _ => {}
            }
            // A record or draft is replaced by a file or not at all.
            if matches!(self.nodes[target].body, Body::Record(_) | Body::Draft(_)) {
                why.push("EPERM");
            }
        }
        if !why.is_empty() {
            return Err(why);
        }
        if self.is_dir(source) && self.place(source) != Place::Outside {
            self.met("a governed directory moved");
        }
        if from.0 != to.0 {
            self.lose_backup(source);
        }
        if let Some(target) = target {
            self.lose_backup(target);
        }
        self.relink(from, to, source, target);
        Ok(())
    }

    /// The id of the parked record whose backup a file is.
    pub fn parked_by(&self, node: NodeId) -> Option<String> {
        let is_it = |record: &Record| matches!(record.standing, Standing::Parked { file, .. } if file == node);
        let found = self.records.iter().find(|(_, record)| is_it(record));
        found.map(|(id, _)| id.clone())
    }

    /// A file goes from where it lay: if it is a backup, its record goes with it.
    pub fn lose_backup(&mut self, node: NodeId) {
        if let Some(id) = self.parked_by(node) {
            self.met("a backup that goes, with its record");
            self.retire(&id, Standing::Gone);
        }
    }

    /// A record loses its file.
    pub fn retire(&mut self, id: &str, standing: Standing) {
        self.records.get_mut(id).unwrap().standing = standing;
    }

    /// Why a directory may not move there.
    fn may_move_dir(&self, dir: NodeId, to: (NodeId, &str), why: &mut No) {
        let holds_workspace = self
            .resolve("work")
            .is_ok_and(|work| work != dir && self.is_dir(work) && self.is_below(work, dir));
        let governed = self.place(dir) != Place::Outside;
        if governed && !self.is_empty(dir) || holds_workspace {
            self.met("a directory in use");
            why.push("EBUSY");
        }
        let mut path = self.path_of(to.0);
        path.push(to.1.to_owned());
        if place(&path) != Place::Outside && !self.is_empty(dir) {
            self.met("a filled directory that would be governed");
            why.push("EPERM");
        }
        if self.is_below(to.0, dir) {
            self.met("a directory below itself");
            why.push("EINVAL");
        }
    }

    pub fn relink(
        &mut self,
        from: (NodeId, &str),
        to: (NodeId, &str),
        source: NodeId,
        target: Option<NodeId>,
    ) {
        let directory = u32::from(self.is_dir(source));
        self.entries_mut(from.0).remove(from.1);
        self.nodes[from.0].nlink -= directory;
        if let Some(target) = target {
            self.nodes[to.0].nlink -= u32::from(self.is_dir(target));
            self.unname(target);
        }
        self.entries_mut(to.0).insert(to.1.to_owned(), source);
        self.nodes[to.0].nlink += directory;
        self.nodes[source].parent = to.0;
        self.nodes[source].name = to.1.to_owned();
    }

    fn exchange(
        &mut self,
        from: (NodeId, &str),
        to: (NodeId, &str),
        source: NodeId,
        target: NodeId,
    ) -> Outcome {
        let mut why = No::new();
        for (at, node, goes) in [(from, source, to), (to, target, from)] {
            let governed = matches!(self.nodes[node].body, Body::Record(_) | Body::Draft(_));
            let is_kept = governed || self.parked_by(node).is_some();
            if is_kept || self.slot(at.0, at.1).is_some() {
                why.push("EPERM");
            }
            if self.is_dir(node) {
                self.may_move_dir(node, goes, &mut why);
            }
        }
        self.met(if why.is_empty() { "an exchange" } else { "an exchange refused" });
        if !why.is_empty() {
            return Err(why);
        }
        for (at, old, new) in [(from, source, target), (to, target, source)] {
            self.nodes[at.0].nlink -= u32::from(self.is_dir(old));
            self.nodes[at.0].nlink += u32::from(self.is_dir(new));
            self.entries_mut(at.0).insert(at.1.to_owned(), new);
            self.nodes[new].parent = at.0;
            self.nodes[new].name = at.1.to_owned();
        }
        Ok(())
    }

    pub fn move_record(
        &mut self,
        id: &str,
        from: (NodeId, &str),
        to: (NodeId, &str),
        source: NodeId,
        target: Option<NodeId>,
        pid: u32,
    ) -> Outcome {
        let Some(home) = self.slot(to.0, to.1) else {
            // To a backup's name, or out of the workspace.
            let content = self.records[id].content.clone();
            self.move_name(from, to, source, target)?;
            self.nodes[source].body = Body::Plain(content);
            let stays = from.0 == to.0;
            let parked = Standing::Parked { dir: to.0, file: source };
            self.retire(id, if stays { parked } else { Standing::Gone });
            self.met(if stays { "a record parked" } else { "a record that left" });
            return Ok(());
        };
        if home.id != id {
            return no("EPERM");
        }
        if target.is_some() {
            return no("EEXIST");
        }
        if from.0 != to.0 {
            let text = self.records[id].content.clone();
            self.enter(&home, source, &text, false, Door::Rename)?;
        }
        self.relink(from, to, source, None);
        self.saw(id, pid);
        Ok(())
    }

    pub fn move_draft(
        &mut self,
        text: &[u8],
        from: (NodeId, &str),
        to: (NodeId, &str),
        source: NodeId,
        target: Option<NodeId>,
        pid: u32,
    ) -> Outcome {
        let Some(home) = self.slot(to.0, to.1) else {
            self.move_name(from, to, source, target)?;
            self.nodes[source].body = Body::Plain(text.to_vec());
            self.met("a draft that became plain");
            return Ok(());
        };
        if from.0 != to.0 {
            self.met("a draft that would move");
            return no("EPERM");
        }
        if target.is_none() {
            match lifecycle::judge(text, &home.id, home.state) {
                Ok(_) => {}
                Err(None) => self.lost = true,
                // Not valid under the new name either: a draft it stays.
                Err(Some(_)) => {
                    self.met("a draft renamed");
                    self.relink(from, to, source, None);
                    return Ok(());
                }
            }
        }
        self.save_by_rename(text, from, home, source, target, pid)
    }

    /// A file becomes the next version of a record, or a new record.
    pub fn save_by_rename(
        &mut self,
        text: &[u8],
        from: (NodeId, &str),
        home: Home,
        source: NodeId,
        target: Option<NodeId>,
        pid: u32,
    ) -> Outcome {
        if self.nodes[source].nlink > 1 {
            self.met("a file of two names that would become a record");
            return no("EPERM");
        }
        if target.is_some_and(|target| self.is_dir(target)) {
            return no("EISDIR");
        }
        let replaces =
            target.is_some_and(|target| matches!(&self.nodes[target].body, Body::Record(_)));
        if replaces {
            self.next_version(&home, source, text, Door::Rename, Base::Seen, pid)?;
            // Also where no byte changed it is the record's file now.
            self.put(&home, source, None);
            self.nodes[source].touched += 1;
        } else {
            self.admit(&home, source, text, Door::Rename, Base::Seen, pid)?;
        }
        self.lose_backup(source);
        self.met("a plain file that became a record");
        let name = home.name.clone();
        self.relink(from, (home.dir, &name), source, target);
        Ok(())
    }
}
