//! Checked files: plain files whose content the configuration judges, and which are saved as records
//! are: staged by their handle, judged as a whole, taken or refused at once.
//!
//! What must stay true: what is not valid never replaces what is there, through whichever door it
//! comes; a new file that was never valid leaves no name behind; of what several append nothing is
//! lost. Deliberately not here: versions that somebody saw (of two that save a whole plain file the
//! later one wins), and files that were there before they came under a check.

use std::sync::Arc;

use super::files::Saved as Past;
use super::plain;
use crate::config::Check;
use crate::engine::change::stop::{Refused, gone};
use crate::engine::{About, Command, Effect, Saved, Stop, Terms, Turn, path_of};
use crate::limits::RECORD_BYTES_MAX;
use crate::names::{Dentry, FileName};
use crate::numbers::{Ino, UnixNanos};
use crate::refusal::Refusal;
use crate::store::{Node, StoreError};

/// What was written to a checked file.
#[derive(Clone, Debug)]
pub enum Written {
    /// Its whole content.
    Whole(Arc<[u8]>),
    /// What comes after its content, whatever that is when it is saved: several may append at once, and
    /// each was told that its bytes were taken.
    Appended(Arc<[u8]>),
}

/// Saves what was written to a checked file, whose content is judged as a whole.
#[derive(Clone, Debug)]
pub struct SaveChecked {
    /// The file.
    pub ino: Ino,
    /// What was written.
    pub written: Written,
    /// It was made by the handle that wrote it, and nothing of it was ever taken.
    pub is_new: bool,
    /// The writer set the file's time after its last write: that time stays.
    pub keeps_time: bool,
    /// No refusal took the name that its writer knows: a file without one was unlinked or replaced, as
    /// somebody wanted, and no check counts for it.
    pub may_lack_name: bool,
    /// Only if the file still has this time: nothing was saved since.
    pub only_at: Option<UnixNanos>,
}

/// Keeps what was written to a checked file and can not become valid any more, with the reason.
#[derive(Clone, Debug)]
pub struct RefuseChecked {
    /// The file.
    pub ino: Ino,
    /// What was written.
    pub bytes: Arc<[u8]>,
    /// As in [`SaveChecked`].
    pub is_new: bool,
    /// Why it is refused.
    pub refusal: Refusal,
}

impl Command for SaveChecked {
    type Out = Saved;

    fn operation(&self) -> &'static str {
        "save"
    }

    fn about(&self) -> About {
        About::Node(self.ino)
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<Saved, Stop> {
        turn.context.may_change()?;
        let mut node = checked_file(turn, self.ino, self.may_lack_name)?;
        if self.only_at.is_some_and(|at| at != node.mtime) {
            return Ok(Saved::Kept(None));
        }
        let whole = match &self.written {
            Written::Whole(bytes) => Arc::clone(bytes),
            Written::Appended(bytes) => {
                // One byte more than allowed is enough to be judged as too large.
                let before = plain::read(turn.txn, &node, 0, RECORD_BYTES_MAX + 1)?;
                [&before, &**bytes].concat().into()
            }
        };
        let names = if node.nlink > 0 { turn.names_of_file(&node)? } else { Vec::new() };
        for at in names {
            if let Some(check) = turn.check_of(at.as_ref())?
                && let Err(refusal) = check.judge(&whole)
            {
                turn.keep_refused(&node, self.is_new, refusal.clone(), whole)?;
                return Ok(Saved::Refused(refusal));
            }
        }
        match &self.written {
            Written::Whole(bytes) => plain::replace(turn, &mut node, bytes)?,
            Written::Appended(bytes) => {
                let end = node.size;
                plain::put(turn, &mut node, end, bytes)?;
            }
        }
        if !self.keeps_time {
            node.mtime = turn.now;
        }
        plain::changed(turn, &mut node)?;
        // Its own kernel was told of no write.
        turn.effect(Effect::Attr { ino: node.ino, also_origin: true });
        if node.nlink > 0
            && let Some(at) = turn.name_of_file(&node)?
        {
            turn.file_saved(at.as_ref(), &node, Past::by(None))?;
        }
        Ok(Saved::Kept(None))
    }
}

impl Command for RefuseChecked {
    type Out = ();

    fn operation(&self) -> &'static str {
        "write"
    }

    fn about(&self) -> About {
        About::Node(self.ino)
    }

    fn terms(&self) -> Terms {
        Terms::UNFLUSHED
    }

    fn run(self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        let node = checked_file(turn, self.ino, false)?;
        turn.keep_refused(&node, self.is_new, self.refusal, self.bytes)
    }
}

fn checked_file(turn: &Turn<'_>, ino: Ino, may_lack_name: bool) -> Result<Node, Stop> {
    let node = plain::file(turn, ino)?;
    if node.nlink == 0 && !may_lack_name {
        return Err(gone().into());
    }
    Ok(node)
}

impl Turn<'_> {
    /// What the content of the file of this name must be.
    pub(in crate::engine) fn check_of(
        &self,
        at: Dentry<&FileName>,
    ) -> Result<Option<Check>, StoreError> {
        if !self.config.files().has_checks() {
            return Ok(None);
        }
        let scope = self.scope(at.dir)?;
        Ok(scope.and_then(|scope| self.config.files().check(&scope, at.name).cloned()))
    }

    /// Refuses to give this name to a plain file, which is called `known` by the caller, whose content is not what a
    /// check wants there, or not the caller's to read.
    pub(in crate::engine) fn require_checked(
        &self,
        (node, known): (&Node, &FileName),
        at: Dentry<&FileName>,
    ) -> Result<(), Stop> {
        if !node.is_plain_file() || self.check_of(at)?.is_none() {
            return Ok(());
        }
        self.require_readable(node, (known, &path_of(self.txn, at.dir, at.name)?))?;
        self.require_valid_there(node, at)
    }

    fn require_valid_there(&self, node: &Node, at: Dentry<&FileName>) -> Result<(), Stop> {
        let Some(check) = self.check_of(at)? else { return Ok(()) };
        // One byte more than allowed is enough to be judged as too large.
        let bytes = plain::read(self.txn, node, 0, RECORD_BYTES_MAX + 1)?;
        self.require_valid(&check, at, &bytes)
    }

    /// The same for content that is to be put there.
    pub(super) fn require_content(&self, at: Dentry<&FileName>, bytes: &[u8]) -> Result<(), Stop> {
        match self.check_of(at)? {
            Some(check) => self.require_valid(&check, at, bytes),
            None => Ok(()),
        }
    }

    /// Refuses what a write has made of a plain file that is checked: it came by a descriptor from
    /// before the check counted, and is not staged.
    pub(in crate::engine) fn require_still_valid(&mut self, node: &Node) -> Result<(), Stop> {
        if !self.config.files().has_checks() || node.nlink == 0 {
            return Ok(());
        }
        let here = self.scope(node.parent)?.is_some_and(|scope| scope.has_checks());
        if !here && node.nlink == 1 {
            return Ok(());
        }
        for at in self.names_of_file(node)? {
            self.require_valid_there(node, at.as_ref())?;
        }
        Ok(())
    }

    fn require_valid(
        &self,
        check: &Check,
        at: Dentry<&FileName>,
        bytes: &[u8],
    ) -> Result<(), Stop> {
        match check.judge(bytes) {
            Ok(()) => Ok(()),
            Err(refusal) => {
                Err(Stop::rejected(refusal, path_of(self.txn, at.dir, at.name)?, bytes.into()))
            }
        }
    }

    /// Keeps a refused text; the name of a new file goes with it, as if it had never been made.
    fn keep_refused(
        &mut self,
        node: &Node,
        is_new: bool,
        refusal: Refusal,
        bytes: Arc<[u8]>,
    ) -> Result<(), Stop> {
        let named = self.name_of_file(node)?;
        let path = match &named {
            Some(at) => path_of(self.txn, at.dir, &at.name)?,
            None => crate::names::TreePath::root(),
        };
        self.keep(Refused { refusal, path, rejected: Some(bytes), kept: true })?;
        match named.filter(|_| is_new && node.size == 0 && node.nlink == 1) {
            Some(at) => self.take_away(node, at),
            None => Ok(()),
        }
    }
}
