//! What a program does to an open record before anybody else sees it.
//!
//! What must stay true: reads come from the version that was current at `open` (or from what this
//! handle wrote); a text is judged only after something was written, at `flush` or `fsync`; what no
//! further byte can mend is refused in `write`, because some programs look at nothing else.

use std::sync::Arc;

use workfs_mount::{Caller, Reply};

use crate::config::{Check, Policy};
use crate::engine::{Base, Fence, Home};
use crate::limits::RECORD_BYTES_MAX;
use crate::numbers::{RecordKey, UnixNanos, Version};
use crate::record::prefix;
use crate::refusal::{Refusal, Rule};

use super::unsaved::Unsaved;

/// An open record or draft.
pub(super) struct Staged {
    /// Where it lies, for rules that are asked while it is written.
    pub home: Option<Home>,
    /// What a checked plain file must be.
    pub check: Option<Check>,
    /// It is a plain file that this handle made, and nothing of it was taken yet.
    pub is_new: bool,
    /// The record, if it is one.
    pub record: Option<RecordKey>,
    /// What the writer saw.
    pub base: Base,
    /// The version that its first read shows, and the thread that opened it: until then it counts as
    /// not seen.
    pub unread: Option<(u32, Version)>,
    /// The claim that it was opened under.
    pub fence: Option<Fence>,
    /// The content at `open`.
    pinned: Arc<[u8]>,
    /// The content as this handle changed it.
    buffer: Option<Vec<u8>>,
    /// What was written since the last judgement.
    pub unsaved: Unsaved,
    /// It is a checked file, opening it emptied it, and nothing was written since.
    pub emptied: Option<Emptied>,
    /// A judgement is under way, and these wait for it too.
    pub judging: Option<Vec<Reply<()>>>,
    /// All writes so far went to the end of what was there: the text grows as it will be read.
    sequential: bool,
    /// Every write goes to the end.
    append: bool,
    /// The kernel has pages of what this handle reads: somebody mapped it.
    pub mapped: bool,
    /// Why no write to this handle is taken any more.
    poison: Option<Refusal>,
    /// How the last judgement ended, if badly; until something is written again.
    pub failed: Option<Refusal>,
}

/// Who emptied a checked file by opening it, and what it was then. Counts at the end only: shells
/// close a copy of the descriptor before anything is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Emptied {
    /// Who opened it.
    pub by: Caller,
    /// Its time: what is saved meanwhile is not emptied.
    pub mtime: UnixNanos,
}

impl Staged {
    pub fn new(home: Option<Home>, pinned: Arc<[u8]>, base: Base) -> Self {
        Staged {
            home,
            check: None,
            is_new: false,
            record: None,
            base,
            unread: None,
            fence: None,
            pinned,
            buffer: None,
            unsaved: Unsaved::default(),
            emptied: None,
            judging: None,
            sequential: true,
            append: false,
            mapped: false,
            poison: None,
            failed: None,
        }
    }

    /// Sets how the handle was opened.
    pub fn opened(&mut self, truncate: bool, append: bool) {
        self.append = append;
        if truncate {
            self.buffer = Some(Vec::new());
        }
    }

    /// Whether this handle has changed what it was opened at.
    pub fn is_changed(&self) -> bool {
        self.buffer.is_some()
    }

    /// What this handle reads.
    pub fn text(&self) -> &[u8] {
        self.buffer.as_deref().unwrap_or(&self.pinned)
    }

    /// What is to be judged, as a whole.
    pub fn whole(&self) -> Arc<[u8]> {
        match &self.buffer {
            Some(buffer) => buffer.as_slice().into(),
            None => Arc::clone(&self.pinned),
        }
    }

    fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.get_or_insert_with(|| self.pinned.to_vec())
    }

    /// Takes what is to be judged.
    pub fn take(&mut self) -> (Arc<[u8]>, Base) {
        self.unsaved.clear();
        self.emptied = None;
        self.judging = Some(Vec::new());
        (self.whole(), self.base)
    }

    /// Stages a write.
    ///
    /// # Errors
    /// What no further byte can mend; the handle takes no more writes then.
    pub fn write(&mut self, files: Option<u64>, offset: u64, data: &[u8]) -> Result<(), Refusal> {
        if let Some(poison) = &self.poison {
            return Err(poison.clone());
        }
        let end = self.text().len();
        let at = if self.append { end } else { usize::try_from(offset).unwrap_or(usize::MAX) };
        let stop = at.saturating_add(data.len());
        if stop > RECORD_BYTES_MAX {
            let refusal = Refusal::new(
                Rule::TooLarge,
                format!("a record has at most {RECORD_BYTES_MAX} bytes; this would have {stop}"),
                "keep large material in a file beside it and name that file in the record",
            );
            return Err(self.poison(refusal));
        }
        self.sequential &= at == end;
        self.unsaved.note_write(files);
        self.emptied = None;
        self.failed = None;
        let buffer = self.buffer();
        if buffer.len() < stop {
            buffer.resize(stop, 0);
        }
        buffer[at..stop].copy_from_slice(data);
        if self.sequential
            && let Err(refusal) = self.judge_so_far()
        {
            return Err(self.poison(refusal));
        }
        Ok(())
    }

    fn poison(&mut self, refusal: Refusal) -> Refusal {
        self.poison = Some(refusal.clone());
        self.failed = Some(refusal.clone());
        self.unsaved.clear();
        refusal
    }

    /// Judges the text as far as it is written.
    fn judge_so_far(&self) -> Result<(), Refusal> {
        if let Some(check) = &self.check {
            return check.judge_so_far(self.text());
        }
        let Some(home) = self.home.as_ref() else { return Ok(()) };
        let binding = &home.governed.binding;
        if binding.policy != Policy::Refuse {
            return Ok(());
        }
        let found = prefix(self.text()).map_err(Refusal::from)?;
        binding.kind.judge_complete(&found.complete, home.state).map_err(|fault| {
            let place = crate::record::place_in(self.text(), &fault.pointer);
            Refusal { place, ..Refusal::from(fault) }
        })
    }

    /// Stages a change of size. Of a record a cut to nothing alone is not judged: it is how writes
    /// begin.
    ///
    /// # Errors
    /// Too large.
    pub fn resize(&mut self, size: u64) -> Result<(), Refusal> {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > RECORD_BYTES_MAX {
            let reason = format!("a record has at most {RECORD_BYTES_MAX} bytes");
            return Err(Refusal::new(Rule::TooLarge, reason, "keep large material elsewhere"));
        }
        if size != self.text().len() {
            self.buffer().resize(size, 0);
            if size > 0 || self.check.is_some() {
                self.unsaved.note_change();
            }
            self.emptied = None;
            self.sequential = size == 0;
            self.failed = None;
            self.poison = None;
        }
        Ok(())
    }
}
