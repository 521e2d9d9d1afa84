//! Putting the files: many at a time, so that they share commits.
//!
//! What must stay true: files that are one, by several names, are one afterwards; a file that has its name is whole.
//! Deliberately not here: the directories, which are there by now.

use std::collections::{HashMap, HashSet};
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::super::Failure;
use super::big::Big;
use super::flow::Flow;
use super::walk::{FoundDir, Inode, Lies, Meta, Xattrs, xattrs};
use super::{
    About, Correction, DraftReason, Import, ImportReport, Made, Unreadable, big, ends_all, flow,
};
use crate::engine::{Placed, Put, PutContent, Text};
use crate::names::{FileName, TreePath};
use crate::numbers::Ino;
use crate::refusal::{Refusal, Rule};
use crate::service::reply::pace::Pace;
use crate::service::upkeep::misnamed::{Misnamed, Named};

/// Larger files are not put by one change.
const ONE_CHANGE_BYTES_MAX: u64 = 8 << 20;

/// What came of the files until now.
#[derive(Default)]
struct Outcome {
    /// What ends the import before the rest.
    failed: Option<Refusal>,
    /// Inodes of which a name was met.
    met: HashSet<Inode>,
    /// Those of them that were taken, and as which files.
    first: HashMap<Inode, Ino>,
}

/// A directory's files: where they come from and go to.
struct FilePlace {
    from: OwnedFd,
    parent: Ino,
    /// What names say there.
    named: Option<Named>,
}

/// The files that are being taken, and what has come of them.
struct Taking<'t, 'p> {
    report: &'t mut ImportReport,
    pace: &'t mut Pace<'p>,
    flow: Flow<'t, About>,
    outcome: Outcome,
    done: u64,
    total: u64,
}

impl Taking<'_, '_> {
    fn unreadable(&mut self, path: &TreePath, why: String) {
        self.report.unreadable.push(Unreadable { path: path.into(), why });
    }
}

/// A further name of a file.
type Further<'f> = (&'f FoundDir, FileName);

impl FilePlace {
    fn is_record_like(&self, name: &FileName) -> bool {
        self.named.as_ref().is_some_and(|named| named.is_record_like(name))
    }

    fn misnamed(&self, name: &FileName) -> Option<Misnamed> {
        self.named.as_ref()?.misnamed(name)
    }
}

impl Import<'_> {
    /// Takes the files: each name as it comes, and further names of what was taken after that.
    pub(super) fn files(
        &self,
        found: &[FoundDir],
        made: &Made,
        report: &mut ImportReport,
        pace: &mut Pace<'_>,
    ) -> Result<(), Failure> {
        let (total, flow) = (report.files, Flow::new(self.service, self.caller));
        let mut taking = Taking { report, pace, flow, outcome: Outcome::default(), done: 0, total };
        let further = self.first_names(found, made, &mut taking)?;
        self.finish(&mut taking);
        self.further_names(further, made, &mut taking)?;
        self.finish(&mut taking);
        match taking.outcome.failed {
            Some(refusal) => Err(refusal.into()),
            None => self.source.lacking().map_or(Ok(()), |failure| Err(failure.clone())),
        }
    }

    /// Takes each file by the first of its names that is met, and gives the others.
    fn first_names<'f>(
        &self,
        found: &'f [FoundDir],
        made: &Made,
        taking: &mut Taking<'_, '_>,
    ) -> Result<Vec<Further<'f>>, Failure> {
        let mut further = Vec::new();
        for dir in found {
            if taking.pace.is_over() || self.is_off(&taking.outcome) {
                break;
            }
            let Some(place) = self.place(dir, made, taking.report)? else { continue };
            let names = match self.source.names(&place.from) {
                Ok(names) => names,
                Err(why) => {
                    taking.unreadable(&dir.path, why);
                    continue;
                }
            };
            for name in names {
                if !self.goes_on(taking) {
                    break;
                }
                taking.done += 1;
                if !self.first_name(dir, &place, &name, taking) {
                    further.push((dir, name));
                }
            }
        }
        Ok(further)
    }

    /// Takes what lies at a name, unless it was met under another one: then false.
    fn first_name(
        &self,
        dir: &FoundDir,
        place: &FilePlace,
        name: &FileName,
        taking: &mut Taking<'_, '_>,
    ) -> bool {
        let about = About { path: dir.path.join(name.clone()), ..About::default() };
        match self.source.look(&place.from, name) {
            Ok(Lies::File(meta)) => {
                // A record has one name.
                let shared = meta.shared.filter(|_| !place.is_record_like(name));
                if shared.is_some_and(|inode| !taking.outcome.met.insert(inode)) {
                    return false;
                }
                let about = About { shared, misnamed: place.misnamed(name), ..about };
                self.file((place, name, &meta), about, taking);
            }
            Ok(Lies::Link(meta, target)) => {
                let put = self.put(place.parent, name, &meta, PutContent::Symlink(target));
                self.send(about, put, 0, taking);
            }
            Err(why) => taking.unreadable(&about.path, why),
        }
        true
    }

    /// Gives files that were taken their further names.
    fn further_names(
        &self,
        further: Vec<Further<'_>>,
        made: &Made,
        taking: &mut Taking<'_, '_>,
    ) -> Result<(), Failure> {
        for (dir, name) in further {
            if !self.goes_on(taking) {
                break;
            }
            let Some(place) = self.place(dir, made, taking.report)? else { continue };
            let about = About { path: dir.path.join(name.clone()), ..About::default() };
            // The name may have another file by now.
            let meta = match self.source.look(&place.from, &name) {
                Ok(Lies::File(meta)) => meta,
                Ok(Lies::Link(..)) => {
                    taking.unreadable(&about.path, "it became a link meanwhile".to_owned());
                    continue;
                }
                Err(why) => {
                    taking.unreadable(&about.path, why);
                    continue;
                }
            };
            let first = meta.shared.and_then(|inode| taking.outcome.first.get(&inode).copied());
            let there = self.service.read(|read| Ok(read.lookup(place.parent, &name)?))?;
            match first.filter(|first| there.is_none_or(|there| there.ino == *first)) {
                Some(first) => {
                    let put = self.put(place.parent, &name, &meta, PutContent::Name(first));
                    self.send(about, put, 0, taking);
                }
                // The first was not taken, or something else is here already.
                None => self.file((&place, &name, &meta), about, taking),
            }
        }
        Ok(())
    }

    /// Sends a change on its way, and notes what was answered meanwhile.
    fn send(&self, about: About, put: Put, bytes: usize, taking: &mut Taking<'_, '_>) {
        let Taking { report, flow, outcome, .. } = taking;
        flow.put(about, put, bytes, &mut |answer| self.answered(answer, report, outcome));
    }

    /// Waits for the answers to all that was sent.
    fn finish(&self, taking: &mut Taking<'_, '_>) {
        let Taking { report, flow, outcome, .. } = taking;
        flow.finish(&mut |answer| self.answered(answer, report, outcome));
    }

    /// Whether one more file is taken.
    fn goes_on(&self, taking: &mut Taking<'_, '_>) -> bool {
        taking.pace.goes_on(taking.done, taking.total, "files") && !self.is_off(&taking.outcome)
    }

    /// Whether the rest is not taken.
    fn is_off(&self, outcome: &Outcome) -> bool {
        outcome.failed.is_some() || self.source.lacking().is_some()
    }

    /// Where the files of a directory come from and go to; `None`, and told, if they cannot be read.
    fn place(
        &self,
        dir: &FoundDir,
        made: &Made,
        report: &mut ImportReport,
    ) -> Result<Option<FilePlace>, Failure> {
        let Some((parent, _)) = made.get(&dir.path) else { return Ok(None) };
        let (parent, config) = (*parent, self.service.engine.config());
        let named = self.service.read(|read| Named::of(read, &config, parent))?;
        match self.source.dir(&dir.path) {
            Ok(from) => Ok(Some(FilePlace { from, parent, named })),
            Err(why) => {
                report.unreadable.push(Unreadable { path: (&dir.path).into(), why });
                Ok(None)
            }
        }
    }

    /// Puts a file with its content.
    fn file(
        &self,
        (place, name, meta): (&FilePlace, &FileName, &Meta),
        about: About,
        taking: &mut Taking<'_, '_>,
    ) {
        let why = match self.content(place, name, meta) {
            Ok((content, bytes, xattrs)) => {
                let put = self.put(place.parent, name, meta, content);
                return self.send(About { xattrs, ..about }, put, bytes, taking);
            }
            Err(Kept::Big) => {
                let (about, placed) = match self.big(place, name, meta, taking.pace) {
                    Ok((placed, xattrs)) => (About { xattrs, ..about }, Ok(placed)),
                    Err(big::Why::Refused(refusal)) => (about, Err(refusal)),
                    Err(big::Why::Interrupted) => return,
                    Err(big::Why::Unreadable(why)) => return taking.unreadable(&about.path, why),
                };
                return self.answered((about, placed), taking.report, &mut taking.outcome);
            }
            Err(Kept::Unreadable(why)) => why,
        };
        taking.unreadable(&about.path, why);
    }

    /// A file's content, parsed here where it will be a record: the writer must not wait for it.
    fn content(
        &self,
        place: &FilePlace,
        name: &FileName,
        meta: &Meta,
    ) -> Result<(PutContent, usize, Xattrs), Kept> {
        let record_like = place.is_record_like(name);
        if meta.size > ONE_CHANGE_BYTES_MAX {
            if record_like {
                let why = format!("{} bytes are too many for a record", meta.size);
                return Err(Kept::Unreadable(why));
            }
            return Err(Kept::Big);
        }
        let mut bytes = Vec::with_capacity(usize::try_from(meta.size).unwrap_or(0) + 1);
        let file = self.source.file(&place.from, name, &self.service.store);
        let file = file.map_err(Kept::Unreadable)?;
        let xattrs = xattrs(&file).map_err(Kept::Unreadable)?;
        let read = file.take(ONE_CHANGE_BYTES_MAX + 1).read_to_end(&mut bytes);
        read.map_err(|error| Kept::Unreadable(error.to_string()))?;
        if bytes.len() as u64 > ONE_CHANGE_BYTES_MAX {
            return Err(Kept::Unreadable("it grew while it was read".to_owned()));
        }
        let length = bytes.len();
        let bytes: Arc<[u8]> = bytes.into();
        let content = if record_like {
            PutContent::Record(Box::new(Text::new(bytes)))
        } else {
            PutContent::File(bytes)
        };
        Ok((content, length, xattrs))
    }

    fn big(
        &self,
        place: &FilePlace,
        name: &FileName,
        meta: &Meta,
        pace: &mut Pace<'_>,
    ) -> Result<(Placed, Xattrs), big::Why> {
        let file = self.source.file(&place.from, name, &self.service.store);
        let mut file = file.map_err(big::Why::Unreadable)?;
        let xattrs = xattrs(&file).map_err(big::Why::Unreadable)?;
        let empty = PutContent::File(Arc::from(Vec::new()));
        let put = self.put(place.parent, name, meta, empty);
        let (service, context) = (self.service, self.caller.context());
        let placed = Big { service, context, put, meta, file: &mut file, pace }.put()?;
        Ok((placed, xattrs))
    }

    fn answered(
        &self,
        (about, placed): flow::Answer<About>,
        report: &mut ImportReport,
        outcome: &mut Outcome,
    ) {
        let path = self.shown(&about.path);
        if let (Some(inode), Ok(Placed::Plain(ino) | Placed::Unchanged(ino))) =
            (about.shared, &placed)
        {
            outcome.first.insert(inode, *ino);
        }
        // Also where it has lain there before: it is no record yet.
        if let (Some(misnamed), Ok(Placed::Plain(_) | Placed::Unchanged(_))) =
            (about.misnamed, &placed)
        {
            let list = match misnamed {
                Misnamed::Lane(_) | Misnamed::Beside => &mut report.no_lane,
                Misnamed::Record(_) => &mut report.no_id,
            };
            list.push(Unreadable { path: path.clone(), why: misnamed.to_string() });
        }
        match placed {
            Ok(Placed::Plain(ino)) => {
                report.plain += 1;
                if let Err(refusal) = self.set_xattrs(ino, &about, report) {
                    outcome.failed = Some(refusal);
                }
            }
            Ok(Placed::Record(_, corrected)) => {
                report.records += 1;
                if let Some(one) = corrected {
                    report.corrected.push(Correction::new(path, one));
                }
            }
            Ok(Placed::Draft(_, refusal)) => report.drafts.push(DraftReason::new(path, refusal)),
            Ok(Placed::Unchanged(_)) => report.unchanged += 1,
            Ok(Placed::MovedOn(why)) => report.moved_on.push(Unreadable { path, why }),
            Ok(Placed::Left(why)) => report.left_alone.push(Unreadable { path, why }),
            // What lies there cannot be read: a part of it may be lost, and the others need not be.
            Err(refusal) if refusal.rule != Rule::Damaged && ends_all(&refusal) => {
                outcome.failed = Some(refusal);
            }
            Err(refusal) => report.left_alone.push(Unreadable { path, why: refusal.reason }),
        }
    }
}

/// Why a file is not put as one change.
enum Kept {
    Big,
    Unreadable(String),
}
