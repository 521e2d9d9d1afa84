//! What lies in a directory, as far as it can be read.
//!
//! What must stay true: a row that cannot be read costs no other row, and a page of them nothing of
//! what lies behind it.

use std::collections::HashSet;

use crate::names::{FileName, TreePath};
use crate::numbers::Ino;
use crate::store::{Node, StoreError, Way};

use super::{Broken, Export, Io};

/// What is done with a name and what it names; false: no more of them.
type Each<'e, 'r, 's> = &'e mut dyn FnMut(&mut Export<'r, 's>, FileName, Node) -> Io<bool>;

impl<'r, 's> Export<'r, 's> {
    /// Goes through the names in the directory `dir`, which lies at `path`.
    pub(super) fn listing(
        &mut self,
        dir: &Node,
        path: &TreePath,
        each: Each<'_, 'r, 's>,
    ) -> Io<()> {
        let (read, mut failed) = (self.read, None);
        let listed = read.list(dir.ino, None, &mut |(name, node)| {
            each(self, name, node).unwrap_or_else(|broken| {
                failed = Some(broken);
                false
            })
        });
        failed.map_or(Ok(()), Err)?;
        match listed {
            Ok(()) => Ok(()),
            Err(StoreError::Impossible(_)) => self.one_by_one(dir, path, each),
            Err(error) => Err(error.into()),
        }
    }

    /// The names that a listing did not come to: it ended at one that cannot be read. Where that was a page
    /// of them, it is come to from the other side, and what lies on it says itself where, but for plain files.
    fn one_by_one(&mut self, dir: &Node, path: &TreePath, each: Each<'_, 'r, 's>) -> Io<()> {
        let mut known: HashSet<(Result<FileName, String>, Ino)> = HashSet::new();
        // It ends as it did before.
        let _ = self.read.list(dir.ino, None, &mut |(name, node)| {
            known.insert((Ok(name), node.ino));
            true
        });
        let (mut more, mut unread) = (Vec::new(), None);
        for way in Way::ALL {
            let listed = self.read.entries_of(dir.ino, way, &mut |row| {
                if known.insert((row.name.clone(), row.ino)) {
                    more.push(row);
                }
                true
            });
            match listed {
                Ok(()) if way == Way::Forwards => break,
                Ok(()) => {}
                Err(StoreError::Impossible(what)) => drop(unread.get_or_insert(what)),
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(what) = unread {
            let what = format!("not all of its names can be read: {what}");
            self.or_leave_out(path, Err::<(), _>(StoreError::Impossible(what).into()))?;
        }
        for row in more {
            let Ok(name) = row.name else {
                let what = "one of its names cannot be read".to_owned();
                self.or_leave_out(path, Err::<(), _>(StoreError::Impossible(what).into()))?;
                continue;
            };
            let missing = || StoreError::Impossible(format!("there is no node {}", row.ino.0));
            let node = self.read.node(row.ino).and_then(|node| node.ok_or_else(missing));
            let node = node.map(Some).map_err(Broken::Store);
            if let Some(node) = self.or_leave_out(&path.join(name.clone()), node)?
                && !each(self, name, node)?
            {
                break;
            }
        }
        Ok(())
    }
}
