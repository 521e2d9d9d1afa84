//! What lies in a directory, as far as it can be read.
//!
//! What must stay true: a row that cannot be read takes no other along.

use std::collections::HashSet;

use crate::names::{FileName, TreePath};
use crate::store::{Node, StoreError};

use super::{Broken, Export, Io};

impl Export<'_, '_> {
    /// The names in the directory `dir`, which lies at `path`, with what they name.
    pub(super) fn listing(&mut self, dir: &Node, path: &TreePath) -> Io<Vec<(FileName, Node)>> {
        let mut inside = Vec::new();
        let listed = self.read.list(dir.ino, None, &mut |entry| {
            inside.push(entry);
            true
        });
        match listed {
            Ok(()) => {}
            Err(StoreError::Impossible(_)) => self.one_by_one(dir, path, &mut inside)?,
            Err(error) => return Err(error.into()),
        }
        Ok(inside)
    }

    /// Adds the names that a listing did not come to: it ended at one that cannot be read. Each row of the
    /// store is looked at for that.
    fn one_by_one(
        &mut self,
        dir: &Node,
        path: &TreePath,
        inside: &mut Vec<(FileName, Node)>,
    ) -> Io<()> {
        let known: HashSet<FileName> = inside.iter().map(|(name, _)| name.clone()).collect();
        let mut more = Vec::new();
        let listed = self.read.all_entries(&mut |row| {
            let is_known = row.name.as_ref().is_ok_and(|name| known.contains(name));
            if row.parent == dir.ino && !is_known {
                more.push(row);
            }
            true
        });
        let listed = listed.map_err(|error| match error {
            StoreError::Impossible(what) => {
                StoreError::Impossible(format!("not all of its names can be read: {what}"))
            }
            other => other,
        });
        self.or_leave_out(path, listed.map_err(Broken::Store))?;
        for row in more {
            let Ok(name) = row.name else {
                let what = "one of its names cannot be read".to_owned();
                self.or_leave_out(path, Err::<(), _>(StoreError::Impossible(what).into()))?;
                continue;
            };
            let missing = || StoreError::Impossible(format!("there is no node {}", row.ino.0));
            let node = self.read.node(row.ino).and_then(|node| node.ok_or_else(missing));
            let node = node.map(Some).map_err(Broken::Store);
            if let Some(node) = self.or_leave_out(&path.join(name.clone()), node)? {
                inside.push((name, node));
            }
        }
        Ok(())
    }
}
