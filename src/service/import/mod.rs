//! Taking a plain directory in.
//!
//! The directory is read by this process, with its user's rights, and so only for that user and for
//! root (`By::Runner`): nobody reads through it what he could not read himself. Its directories are found
//! first and made level by level; then they are listed, one after the other, and their files put, many at a time, so
//! that they share commits.
//!
//! What must stay true: importing again changes nothing; nothing that is there is replaced; links
//! are taken as links and never followed. Deliberately not here: what makes a file a record
//! (`engine::Put`), and whether the directory lies in a mount of ours (the caller knows mounts).

mod big;
mod files;
mod flow;
mod report;
mod walk;

use std::collections::BTreeMap;

use crate::engine::{
    MayPut, Placed, Put, PutContent, SetAttributes, SetXattr, TimeOrNow, XattrMode,
};
use crate::names::{FileName, ShownPath, TreePath};
use crate::numbers::{Ino, ROOT};
use crate::refusal::{Refusal, Rule};
use crate::store::NodeType;

pub use big::Parts;
pub(super) use report::show_lists;
pub use report::{Correction, DraftReason, ImportReport, Listed, Unreadable};

use self::flow::Flow;
use self::walk::{FoundDir, Inode, Meta, Source, Xattrs};
use super::reply::pace::Pace;
use super::upkeep::misnamed::Misnamed;
use super::{Caller, Exit, Failure, ImportArgs, Service, Sink, USUAL_UMASK};

/// Imports.
///
/// # Errors
/// A directory that cannot be read, a target that is no directory, or a failure before anything is taken.
/// What is wrong with single files is in the report, and so is what ended it before the rest.
pub(super) fn import(
    service: &Service,
    caller: &Caller,
    args: &ImportArgs,
    sink: Sink<'_>,
) -> Result<ImportReport, Failure> {
    Failure::unless_absolute(&args.from)?;
    let to = caller.part.path(&args.to)?;
    service.engine.run(caller.context(), MayPut { to: to.clone() })?;
    let source = Source::open(&args.from)?;
    let mut report = ImportReport {
        from: args.from.to_string_lossy().into_owned(),
        to: caller.part.show(&to),
        ..ImportReport::default()
    };
    let mut pace = Pace::new(sink);
    let (found, files) = source.walk(&mut pace, &mut |one| report.unreadable.push(one));
    if let Some(failure) = source.lacking() {
        return Err(failure.clone());
    }
    report.files = files;
    let import = Import { service, caller, to, source };
    let target = import.target(args.umask.unwrap_or(USUAL_UMASK))?;
    // What was taken before is there, and stays: whoever hears of the failure hears of that, too.
    report.failure = import.take(target, &found, &mut report, &mut pace).err();
    report.interrupted = pace.is_over();
    Ok(report)
}

/// An import under way.
struct Import<'s> {
    service: &'s Service,
    caller: &'s Caller,
    to: TreePath,
    source: Source,
}

/// A directory in the tree, and whether this import made it.
type Made = BTreeMap<TreePath, (Ino, bool)>;

/// What a change is about.
#[derive(Default)]
struct About {
    path: TreePath,
    xattrs: Xattrs,
    /// The inode that it comes from, if that may have further names.
    shared: Option<Inode>,
    /// Why it is none of the records that it is called like.
    misnamed: Option<Misnamed>,
}

impl Import<'_> {
    /// Takes all that was found.
    fn take(
        &self,
        target: Ino,
        found: &[FoundDir],
        report: &mut ImportReport,
        pace: &mut Pace<'_>,
    ) -> Result<(), Failure> {
        let made = self.directories(target, found, report, pace)?;
        self.files(found, &made, report, pace)?;
        self.tell_directories(found, &made, report)?;
        self.date_directories(found, &made)
    }

    /// The directory in the tree, made where it is missing, as `mkdir -p` makes it.
    fn target(&self, umask: u32) -> Result<Ino, Failure> {
        let mut at = ROOT;
        for name in self.to.names() {
            let found = self.service.read(|read| Ok(read.lookup(at, name)?))?;
            at = match found {
                Some(node) if node.node_type == NodeType::Directory => node.ino,
                Some(_) => {
                    let to = self.caller.part.show(&self.to);
                    let reason = format!("`{name}` in `{to}` is no directory");
                    return Err(Failure::new(Exit::Usage, reason, "name another target"));
                }
                None => {
                    let meta = Meta {
                        mode: 0o777 & !umask,
                        uid: self.caller.uid,
                        gid: self.caller.gid,
                        mtime: self.service.engine.now(),
                        size: 0,
                        shared: None,
                    };
                    let put = self.put(at, name, &meta, PutContent::Directory);
                    let placed = self.service.engine.run(self.caller.context(), put)?;
                    if let Placed::Left(why) = placed {
                        let to = self.caller.part.show(&self.to);
                        let reason = format!("nothing can be taken in at `{to}`: {why}");
                        return Err(Failure::new(Exit::Usage, reason, "name another target"));
                    }
                    let made = self.service.read(|read| Ok(read.lookup(at, name)?))?;
                    let gone = || Failure::new(Exit::Lost, "the target vanished", "try again");
                    made.ok_or_else(gone)?.ino
                }
            };
        }
        Ok(at)
    }

    fn put(&self, parent: Ino, name: &FileName, meta: &Meta, content: PutContent) -> Put {
        // As `cp -a` does it: root keeps owners, others own what they bring.
        let root = self.caller.uid == 0;
        let foreign = !root && meta.uid != self.caller.uid;
        Put {
            parent,
            name: name.clone(),
            mode: if foreign { meta.mode & 0o1777 } else { meta.mode },
            uid: if root { meta.uid } else { self.caller.uid },
            gid: if root { meta.gid } else { self.caller.gid },
            mtime: meta.mtime,
            content,
        }
    }

    /// Makes the directories, level by level.
    fn directories(
        &self,
        target: Ino,
        found: &[FoundDir],
        report: &mut ImportReport,
        pace: &mut Pace<'_>,
    ) -> Result<Made, Failure> {
        let mut made: Made = BTreeMap::from([(TreePath::root(), (target, false))]);
        let deepest = found.iter().map(|dir| dir.path.names().len()).max().unwrap_or(0);
        let mut failed = None;
        for depth in 1..=deepest {
            let mut flow = Flow::new(self.service, self.caller);
            let mut answered = Vec::new();
            for dir in found.iter().filter(|dir| dir.path.names().len() == depth) {
                let Some((above, name)) = dir.path.split_last() else { continue };
                // Not there if something else was in its place: then neither is what is below.
                let Some((parent, _)) = made.get(&above) else { continue };
                if !pace.goes_on(made.len() as u64, found.len() as u64, "directories") {
                    break;
                }
                let put = self.put(*parent, name, &dir.meta, PutContent::Directory);
                flow.put(dir.path.clone(), put, 0, &mut |answer| answered.push(answer));
            }
            flow.finish(&mut |answer| answered.push(answer));
            for (path, placed) in answered {
                match placed {
                    Ok(Placed::Plain(ino)) => {
                        report.directories += 1;
                        made.insert(path, (ino, true));
                    }
                    Ok(Placed::Unchanged(ino)) => {
                        made.insert(path, (ino, false));
                    }
                    Ok(Placed::Left(why)) => {
                        report.left_alone.push(Unreadable { path: self.shown(&path), why });
                    }
                    Ok(Placed::Record(..) | Placed::Draft(..) | Placed::MovedOn(_)) => {}
                    Err(refusal) => failed = Some(refusal),
                }
            }
            if let Some(refusal) = failed.take() {
                return Err(refusal.into());
            }
        }
        Ok(made)
    }

    /// A file or directory that was made gets the attributes that it had.
    fn set_xattrs(
        &self,
        ino: Ino,
        about: &About,
        report: &mut ImportReport,
    ) -> Result<(), Refusal> {
        for (name, value) in &about.xattrs {
            let (name, value) = (name.clone(), value.clone());
            let told = crate::names::printable(&name);
            let command = SetXattr { ino, name, value, mode: XattrMode::Set };
            match self.service.engine.run(self.caller.context(), command) {
                Ok(()) => {}
                Err(refusal) if ends_all(&refusal) => return Err(refusal),
                Err(refusal) => {
                    let why = format!("its attribute `{told}`: {}", refusal.reason);
                    report.unreadable.push(Unreadable { path: self.shown(&about.path), why });
                }
            }
        }
        Ok(())
    }

    /// Directories that were made get the attributes that they had.
    fn tell_directories(
        &self,
        found: &[FoundDir],
        made: &Made,
        report: &mut ImportReport,
    ) -> Result<(), Failure> {
        for dir in found {
            let Some((ino, true)) = made.get(&dir.path) else { continue };
            let (path, xattrs) = (dir.path.clone(), dir.xattrs.clone());
            let about = About { path, xattrs, ..About::default() };
            self.set_xattrs(*ino, &about, report)?;
        }
        Ok(())
    }

    /// Directories that were made get the times that they had.
    fn date_directories(&self, found: &[FoundDir], made: &Made) -> Result<(), Failure> {
        let (send, receive) = crossbeam_channel::unbounded();
        for dir in found {
            let Some((ino, true)) = made.get(&dir.path) else { continue };
            let time = Some(TimeOrNow::At(dir.meta.mtime));
            let command = SetAttributes {
                ino: *ino,
                mode: None,
                uid: None,
                gid: None,
                is_chown: false,
                size: None,
                atime: time,
                mtime: time,
            };
            let send = send.clone();
            self.service.engine.submit(self.caller.context(), command, move |result| {
                // The receiver waits below.
                let _ = send.send(result.map(|_| ()));
            });
        }
        drop(send);
        receive.iter().collect::<Result<(), Refusal>>().map_err(Failure::from)
    }

    /// A path in the tree, as people read it.
    fn shown(&self, path: &TreePath) -> ShownPath {
        let names = self.to.names().iter().chain(path.names());
        self.caller.part.show(&names.cloned().collect())
    }
}

/// Whether the whole store is in trouble: then there is no use in going on with others.
pub(super) fn is_of_the_store(refusal: &Refusal) -> bool {
    use Rule::{Damaged, Deadline, NoSpace, ReadOnly, Store};
    matches!(refusal.rule, Store | Damaged | NoSpace | ReadOnly | Deadline)
}

/// Whether there is no use in going on with other files: mostly they come under the same quota.
pub(super) fn ends_all(refusal: &Refusal) -> bool {
    refusal.rule == Rule::Quota || is_of_the_store(refusal)
}
