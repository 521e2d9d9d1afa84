//! The part of the tree that is in sight of somebody who asks from inside of a mount which shows no
//! more.
//!
//! What must stay true: what lies outside is not there; what lies inside is called as the mount shows
//! it, and understood so. Deliberately not here: which mount one is in (the command line knows), and
//! rights: whoever can reach the socket can ask without it.

use crate::ledger::{field, path_of_ledger};
use crate::names::{ShownPath, TreePath, path_of_json, printable_start};
use crate::service::past::places::is_about;
use crate::service::{Exit, Failure};
use crate::store::{EventRow, Read, WorkspaceRow};

/// A part of the tree; the whole of it by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    root: TreePath,
}

impl Part {
    /// What lies at `root` and below.
    #[must_use]
    pub fn below(root: TreePath) -> Part {
        Part { root }
    }

    /// The directory of the tree that is its root.
    #[must_use]
    pub fn root(&self) -> &TreePath {
        &self.root
    }

    /// Whether nothing is out of sight.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.root.names().is_empty()
    }

    /// Fails where not all of the store is in sight, of which a command would tell.
    ///
    /// # Errors
    /// [`Exit::Denied`].
    pub fn expect_whole(&self, command: &str) -> Result<(), Failure> {
        if self.is_whole() {
            return Ok(());
        }
        let reason =
            format!("`{command}` is about the whole store, and this mount shows a part of it");
        Err(Failure::new(Exit::Denied, reason, "call it outside of this mount, or ask who made it"))
    }

    /// Whether a path of the tree is in sight.
    pub(in crate::service) fn has(&self, path: &TreePath) -> bool {
        path.below(&self.root).is_some()
    }

    /// A path of the tree as it is shown; what is not in sight is only known to lie elsewhere.
    #[must_use]
    pub fn show(&self, path: &TreePath) -> ShownPath {
        match path.below(&self.root) {
            Some(below) => ShownPath::from(&below),
            None => ShownPath::new(".."),
        }
    }

    /// The same of a path that stands in the ledger.
    pub(in crate::service) fn show_text(&self, text: &str) -> ShownPath {
        match path_of_ledger(text) {
            Some(path) => self.show(&path),
            None if self.is_whole() => ShownPath::new(text),
            None => ShownPath::new(".."),
        }
    }

    /// A path of the tree, as somebody typed it who sees this.
    pub(in crate::service) fn path(&self, typed: &str) -> Result<TreePath, Failure> {
        Ok(self.join(&tree_path(typed)?))
    }

    /// A path of the tree, given from the root of this.
    #[must_use]
    pub fn join(&self, path: &TreePath) -> TreePath {
        self.root.join_all(path)
    }

    /// The workspaces of which something may be in sight.
    pub(in crate::service) fn workspaces(
        &self,
        read: &dyn Read,
    ) -> Result<Vec<WorkspaceRow>, Failure> {
        let mut all = read.workspaces()?;
        all.retain(|row| self.has(&row.path) || self.root.below(&row.path).is_some());
        Ok(all)
    }

    /// Fails where only some of a workspace is in sight: its records go from one directory of it to
    /// another.
    pub(in crate::service) fn expect_all_of(
        &self,
        workspace: &WorkspaceRow,
    ) -> Result<(), Failure> {
        if self.has(&workspace.path) {
            return Ok(());
        }
        Err(denied("this mount shows only some of the workspace's directories"))
    }

    /// The workspaces that are in sight as a whole. Fails in a mount of a part that shows none.
    pub(in crate::service) fn whole_workspaces(
        &self,
        read: &dyn Read,
    ) -> Result<Vec<WorkspaceRow>, Failure> {
        let mut whole = read.workspaces()?;
        whole.retain(|row| self.has(&row.path));
        match whole.is_empty() && !self.is_whole() {
            true => Err(denied("this mount shows no workspace as a whole")),
            false => Ok(whole),
        }
    }

    /// Whether an event is about something in sight.
    ///
    /// # Errors
    /// A failure of the store.
    pub(in crate::service) fn hears(
        &self,
        read: &dyn Read,
        row: &EventRow,
    ) -> Result<bool, Failure> {
        if self.is_whole() {
            return Ok(true);
        }
        let event = row.said();
        let has = |text: &str| path_of_ledger(text).is_some_and(|path| self.has(&path));
        let workspace = field(&event, "/workspace");
        Ok((!workspace.is_empty() && has(&workspace)) || is_about(read, row, &event, has)?)
    }
}

/// A path inside the tree as a request has it.
pub(in crate::service) fn tree_path(text: &str) -> Result<TreePath, Failure> {
    let bytes = path_of_json(text);
    TreePath::asked(&bytes).map_err(|why| {
        let shown = printable_start(&bytes);
        let remedy = "give a path from the root of the mount, such as work/inbox";
        Failure::new(Exit::Usage, format!("`{shown}` is no path: {why}"), remedy)
    })
}

fn denied(reason: &str) -> Failure {
    let remedy = "move files between those it shows, or call it where the workspace is seen";
    Failure::new(Exit::Denied, reason, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_understood_and_what_is_outside_has_no_name() {
        let path = |text: &str| TreePath::parse(text).unwrap();
        let part = Part::below(path("work/inbox"));
        assert_eq!(part.path("x.yaml").unwrap(), path("work/inbox/x.yaml"));
        assert_eq!(part.show(&path("work/inbox/x.yaml")).to_string(), "x.yaml");
        assert_eq!(part.show(&path("work/inbox")).to_string(), ".");
        for outside in ["work", "work/done/x.yaml", "work/inboxes", ""] {
            assert!(!part.has(&path(outside)), "{outside}");
            assert_eq!(part.show(&path(outside)).to_string(), "..");
        }
        assert!(part.path("../done").is_err());
        let whole = Part::default();
        let shown = |text| whole.show(&path(text)).to_string();
        assert_eq!((shown("a/b"), shown("")), ("a/b".into(), ".".into()));
        assert!(whole.expect_whole("fsck").is_ok() && part.expect_whole("fsck").is_err());
    }
}
