//! What a program does to an open record before anybody else sees it.
//!
//! What must stay true: reads come from the version that was current at `open` (or from what this
//! handle wrote); a text is judged only after something was written, at `flush` or `fsync`; what no
//! further byte can mend is refused in `write`, because some programs look at nothing else, but not at
//! each of so many writes that reading the text anew each time would take longer than writing it.

use std::sync::Arc;
use std::time::Instant;

use workfs_mount::{Caller, OpenFlags, WriteAt};

use super::judging::Judging;
use super::unmade::Unmade;
use super::unsaved::Unsaved;
use super::what::{Asked, Checked, What};
use crate::engine::{Base, Written, runs_the_store};
use crate::kind::Fault;
use crate::limits::{JUDGED_BYTES_FREE, JUDGED_TIMES, RECORD_BYTES_MAX};
use crate::record::prefix;
use crate::refusal::{Refusal, Rule};
use crate::tree::handles::pins::{Charge, Text};

/// An open record, draft or checked file.
pub(in crate::tree) struct Staged {
    /// What it is.
    pub what: What,
    /// It was a record, or a checked file that had been taken, when this handle was opened.
    pub was_there: bool,
    /// The content at `open`, or when a lock was had by it before anything else.
    pub pinned: Text,
    /// Whether anybody has read by it.
    pub was_read: bool,
    /// The content as this handle changed it.
    buffer: Option<Vec<u8>>,
    /// It was opened to be written.
    pub writes: bool,
    /// It was opened to be written anew from its beginning, and not to be read.
    pub replaces: bool,
    /// What the buffer takes of the memory that its user may have.
    charge: Option<Charge>,
    /// What was written since the last judgement.
    pub unsaved: Unsaved,
    /// Who opened it.
    pub opened_by: Option<Caller>,
    /// Who closed an inherited descriptor after writing, while whoever opened the file has it open still: the
    /// save is put off.
    pub put_off: Option<Caller>,
    /// A judgement is under way.
    pub judging: Option<Judging>,
    /// All writes so far went to the end of what was there: the text grows as it will be read.
    sequential: bool,
    /// Whether it was asked, since the last judgement and since it says this status, if what it writes
    /// comes too late or can be here.
    pub was_asked: bool,
    /// How many bytes were read to judge what was written since the last judgement of the whole.
    judged_bytes: usize,
    /// Every write goes to the end.
    append: bool,
    /// What the kernel has of what this handle reads.
    pub pages: Pages,
    /// Why no write to this handle is taken any more.
    poison: Option<Refusal>,
    /// How the last judgement ended, if badly; until something is written again.
    pub failed: Option<Refusal>,
    /// The last write for which there was no room.
    pub unmade: Option<Unmade>,
}

/// What the kernel has of what a handle reads. It says nothing of mmap(2), only asks for what somebody then
/// touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tree) enum Pages {
    /// Nothing, and nobody is known to have mapped it.
    None,
    /// Nothing yet, but whoever opened it then, to read it, has not done so: it may have mapped it.
    Perhaps(Instant),
    /// Pages: somebody has mapped it.
    Some,
}

impl Staged {
    /// In whose name a thread writes and saves by this: in that of who opened it, unless that is who runs the store.
    /// Whoever has the descriptor by now may have more rights than who handed it over: a set-user-id program closes
    /// what it was started with.
    pub fn in_whose_name(&self, thread: &Caller) -> Caller {
        match self.opened_by.filter(|by| !runs_the_store(by.uid)) {
            Some(Caller { uid, gid, .. }) => Caller { uid, gid, ..*thread },
            None => *thread,
        }
    }

    pub fn new(what: What, pinned: Text) -> Self {
        Staged {
            what,
            was_there: false,
            pinned,
            was_read: false,
            buffer: None,
            writes: false,
            replaces: false,
            charge: None,
            unsaved: Unsaved::default(),
            opened_by: None,
            put_off: None,
            judging: None,
            sequential: true,
            was_asked: false,
            judged_bytes: 0,
            append: false,
            pages: Pages::None,
            poison: None,
            failed: None,
            unmade: None,
        }
    }

    /// Whether it is neither a record nor a plain file that is checked.
    pub fn is_draft(&self) -> bool {
        self.what.record_like().is_some_and(|file| file.record.is_none())
    }

    /// Whether it is a draft that said something, and opening it emptied it.
    pub fn is_emptied_draft(&self) -> bool {
        self.what.record_like().is_some_and(|file| file.is_emptied_draft)
    }

    /// Whether it is a plain file that is checked.
    pub fn is_checked(&self) -> bool {
        self.what.checked().is_some()
    }

    /// Sets how the handle was opened.
    pub fn opened(&mut self, flags: OpenFlags) {
        (self.append, self.writes) = (flags.append, flags.write);
        self.replaces = flags.truncate && !flags.read;
        match &mut self.what {
            What::RecordLike(file) if flags.truncate => {
                file.is_emptied_draft = file.record.is_none() && !self.pinned.is_empty();
            }
            What::Checked(file) if flags.append && !flags.truncate => {
                file.appended_from = Some(self.pinned.len());
            }
            _ => {}
        }
        if flags.truncate {
            self.pinned = Text::of([]);
            self.buffer = Some(Vec::new());
        }
    }

    /// Whether this handle has changed what it was opened at.
    pub fn is_changed(&self) -> bool {
        self.buffer.is_some()
    }

    /// How it was opened, if nobody has done anything with it since.
    pub fn untouched(&self) -> Option<(Caller, OpenFlags)> {
        let touched = self.was_read || self.is_changed() || self.poison.is_some();
        let opened = self.opened_by.filter(|_| !touched)?;
        let flags = OpenFlags { write: self.writes, append: self.append, ..OpenFlags::default() };
        Some((opened, flags))
    }

    /// What this handle reads.
    pub fn text(&self) -> &[u8] {
        self.buffer.as_deref().unwrap_or(&self.pinned)
    }

    /// What is to be judged, as a whole.
    pub fn whole(&self) -> Arc<[u8]> {
        match &self.buffer {
            Some(buffer) => buffer.as_slice().into(),
            None => Arc::clone(self.pinned.bytes()),
        }
    }

    fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.get_or_insert_with(|| self.pinned.to_vec())
    }

    /// Takes what is to be judged.
    pub fn take(&mut self) -> Arc<[u8]> {
        self.begin_judging();
        self.whole()
    }

    fn begin_judging(&mut self) {
        self.unsaved.clear();
        self.put_off = None;
        self.what.forget_emptied();
        self.was_asked = false;
        self.judged_bytes = 0;
        self.judging = Some(Judging::default());
    }

    /// Takes what is to be judged of a checked file: what this handle appended, if that is all it did.
    pub fn take_checked(&mut self) -> Written {
        self.begin_judging();
        let length = self.text().len();
        let appended_from = self.what.checked_mut().and_then(|file| {
            file.taken_to = Some(length);
            file.appended_from
        });
        match appended_from {
            Some(from) => Written::Appended(self.text().get(from..).unwrap_or_default().into()),
            None => Written::Whole(self.whole()),
        }
    }

    /// Whether this is what its writer saw, of which a judgement of its own may make another meanwhile:
    /// then it is asked again at the next write.
    pub fn is_based_on(&mut self, base: Base) -> bool {
        let is =
            self.judging.is_none() && self.what.known().is_some_and(|known| known.base == base);
        self.was_asked &= is;
        is
    }

    /// What was to be judged was taken.
    pub fn saved(&mut self) {
        let What::Checked(file) = &mut self.what else { return };
        file.is_new = false;
        if let Some(to) = file.taken_to.take().filter(|_| self.append) {
            file.appended_from = Some(to);
        }
    }

    /// Puts what this handle appended after another content, and judges that as far as it is written.
    /// Says whether it takes writes again.
    pub fn rebase(&mut self, content: Vec<u8>) -> bool {
        let appended_from = self.what.checked().and_then(|file| file.appended_from);
        let Some(from) = appended_from.filter(|_| self.judging.is_none()) else { return false };
        let appended = self.text().get(from..).unwrap_or_default();
        let whole = [&content, appended].concat();
        if whole.len() > RECORD_BYTES_MAX {
            return false;
        }
        if self.charge_for(whole.len()).is_err() {
            return false;
        }
        if let What::Checked(file) = &mut self.what {
            file.appended_from = Some(content.len());
        }
        self.buffer = Some(whole);
        self.judge_so_far().is_ok()
    }

    /// Stages a write.
    ///
    /// # Errors
    /// What no further byte can mend; the handle takes no more writes then.
    pub fn write(&mut self, files: Option<u64>, at: WriteAt, data: &[u8]) -> Result<(), Refusal> {
        if let Some(poison) = &self.poison {
            return Err(poison.clone());
        }
        if let Some(unmade) = self.unmade.take().filter(|unmade| !unmade.is_made_by(at, data)) {
            return Err(self.poison(unmade.refusal));
        }
        let end = self.text().len();
        let at = match at {
            WriteAt::Offset(offset) => usize::try_from(offset).unwrap_or(usize::MAX),
            WriteAt::End => end,
        };
        let stop = at.saturating_add(data.len());
        if stop > RECORD_BYTES_MAX {
            let refusal = Refusal::new(
                Rule::TooLarge,
                format!("{} {RECORD_BYTES_MAX} bytes; this would have {stop}", self.at_most()),
                "keep large material in a file beside it and name that file in this one",
            );
            return Err(self.poison(refusal));
        }
        if let Err(refusal) = self.charge_for(stop.max(end)) {
            return Err(self.poison(refusal));
        }
        self.sequential &= at == end;
        if at < end {
            // It does not only append, whatever it was opened for.
            self.append = false;
            if let What::Checked(file) = &mut self.what {
                file.appended_from = None;
            }
        }
        self.unsaved.note_write(files);
        self.what.forget_emptied();
        self.failed = None;
        let buffer = self.buffer();
        if buffer.len() < stop {
            buffer.resize(stop, 0);
        }
        buffer[at..stop].copy_from_slice(data);
        if self.sequential
            && self.is_worth_judging()
            && let Err(refusal) = self.judge_so_far()
        {
            return Err(self.poison(refusal));
        }
        Ok(())
    }

    /// Counts a buffer of so many bytes for its user.
    fn charge_for(&mut self, length: usize) -> Result<(), Refusal> {
        if self.charge.is_none() {
            self.charge = self.pinned.meter().map(Charge::none);
        }
        self.charge.as_mut().map_or(Ok(()), |charge| charge.raise(length))
    }

    fn at_most(&self) -> &'static str {
        if self.is_checked() { "a checked file has at most" } else { "a record has at most" }
    }

    /// What was written was refused. A new file loses its name by that.
    pub fn refused(&mut self) {
        if let What::Checked(file) = &mut self.what {
            file.may_lose_name |= file.is_new;
        }
    }

    /// Takes writes again: what was last refused would be taken by now.
    pub fn forgive(&mut self, files: Option<u64>) {
        self.poison = None;
        self.failed = None;
        self.unsaved.note_write(files);
    }

    /// Takes no more writes.
    pub fn poison(&mut self, refusal: Refusal) -> Refusal {
        self.refused();
        self.poison = Some(refusal.clone());
        self.failed = Some(refusal.clone());
        self.unsaved.clear();
        refusal
    }

    /// Whether the text is judged at this write: each time while it is short or written in few
    /// pieces, as by a shell, which hears of nothing but its writes; else when it has grown by a part,
    /// and whatever is not judged now is before long, or at the end.
    fn is_worth_judging(&mut self) -> bool {
        let length = self.text().len();
        let judged_bytes = self.judged_bytes.saturating_add(length);
        let is = judged_bytes <= JUDGED_BYTES_FREE + JUDGED_TIMES * length;
        if is {
            self.judged_bytes = judged_bytes;
        }
        is
    }

    /// Judges the text as far as it is written.
    fn judge_so_far(&mut self) -> Result<(), Refusal> {
        let file = match &self.what {
            What::Checked(Checked { asked: Asked::By(check), .. }) => {
                return check.judge_so_far(self.text());
            }
            What::Checked(Checked { asked: Asked::Nothing, .. }) => return Ok(()),
            What::RecordLike(file) => file,
        };
        let Some(home) = file.home.as_ref() else { return Ok(()) };
        let binding = &home.governed.binding;
        let takes = |refusal: &Refusal| binding.policy.takes(refusal.rule);
        let found = match prefix(self.text()).map_err(Refusal::from) {
            Err(refusal) if takes(&refusal) => return Ok(()),
            found => found?,
        };
        let judged =
            binding.kind.judge_so_far(&found.said, found.last.as_deref(), (&home.id, home.state));
        match judged.map_err(|fault| self.refusal(fault)) {
            Err(refusal) if !takes(&refusal) => return Err(refusal),
            _ => {}
        }
        let status = binding.kind.status_so_far(&found.said);
        if status != file.status.as_deref() {
            let status = status.map(str::to_owned);
            // A shell writes line by line: this one says it, and the first did not.
            self.was_asked = false;
            if let What::RecordLike(file) = &mut self.what {
                file.status = status;
            }
        }
        Ok(())
    }

    /// A fault of what is written so far, with its place in it.
    pub fn refusal(&self, fault: Fault) -> Refusal {
        let place = crate::record::place_in(self.text(), &fault.pointer);
        Refusal { place, ..Refusal::from(fault) }
    }

    /// Stages a change of size. Of a record a cut to nothing alone is not judged: it is how writes
    /// begin.
    ///
    /// # Errors
    /// Too large, or more than its user may have.
    pub fn resize(&mut self, size: u64) -> Result<(), Refusal> {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > RECORD_BYTES_MAX {
            let reason = format!("{} {RECORD_BYTES_MAX} bytes", self.at_most());
            return Err(Refusal::new(Rule::TooLarge, reason, "keep large material elsewhere"));
        }
        if size != self.text().len() {
            self.charge_for(size)?;
            match size {
                0 => self.buffer = Some(Vec::new()),
                _ => self.buffer().resize(size, 0),
            }
            if size > 0 || self.is_checked() {
                self.unsaved.note_change();
            }
            self.sequential = size == 0;
            (self.failed, self.poison, self.unmade) = (None, None, None);
            match &mut self.what {
                What::RecordLike(file) => file.status = None,
                What::Checked(file) => {
                    (file.emptied, file.appended_from, file.taken_to) = (None, None, None);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of so many writes of so many bytes are judged, and how many bytes are read for it.
    fn judged(writes: usize, bytes: usize) -> (Vec<bool>, usize) {
        let mut staged = Staged::new(What::draft(None), Text::of([]));
        staged.opened(OpenFlags { write: true, truncate: true, ..OpenFlags::default() });
        let data = vec![b'x'; bytes];
        let each = (0..writes).map(|nth| {
            let before = staged.judged_bytes;
            staged.write(None, WriteAt::Offset((nth * bytes) as u64), &data).unwrap();
            staged.judged_bytes > before
        });
        (each.collect(), staged.judged_bytes)
    }

    #[test]
    fn what_a_shell_writes_is_judged_at_each_write() {
        for (writes, bytes) in [(1, 20), (100, 40), (10, 6_000), (3, 131_072)] {
            let (each, _) = judged(writes, bytes);
            assert!(each.iter().all(|judged| *judged), "{writes} writes of {bytes} bytes");
        }
    }

    #[test]
    fn many_small_writes_are_read_in_time_that_grows_as_they_do() {
        for writes in [1_000, 10_000, 60_000] {
            let (each, read) = judged(writes, 16);
            assert!(read <= JUDGED_BYTES_FREE + JUDGED_TIMES * writes * 16, "{writes}: {read}");
            // Never long without a judgement: the text grows by a part at most.
            let unjudged = each.split(|judged| *judged).map(<[bool]>::len).max().unwrap();
            assert!(unjudged <= writes / 4, "{writes}: {unjudged} in a row");
        }
    }

    #[test]
    fn a_judgement_of_the_whole_begins_anew() {
        let mut staged = Staged::new(What::draft(None), Text::of([]));
        staged.judged_bytes = usize::MAX;
        drop(staged.take());
        assert!(staged.is_worth_judging());
    }
}
