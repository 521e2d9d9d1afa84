//! The directory below a mount: closed before anything can come to lie in it, and given back.
//!
//! What must stay true: what is written there is refused, or named before it is hidden; where one mounts for
//! oneself (root), the directory is closed from before the mount on, and where a dead mount is replaced it
//! is never open in between. The helper for users wants to find it writable, so there it is closed after
//! the mount, and looked at once more. Deliberately not here: which covers are kept (`covers`).

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use workfs_mount::{Mount, Underlay, detach_dead, detach_dead_but_one, state_of};

use super::covers::Covers;
use super::mount_table;
use super::point::{
    IfFiles, LeftCovered, NAMED_MAX, NO_RIGHTS, expect_free, expect_nothing_inside, occupied,
    unmount,
};
use crate::daemon::failure::Failure;
use crate::daemon::spawn::LOOK_AGAIN;
use crate::limits::{GIVEN_BACK_WAIT, POINT_WAIT};
use crate::names::Shown;

/// A directory that may be mounted on.
pub(super) struct Point<'c> {
    covers: &'c Covers,
    dir: PathBuf,
    below: io::Result<Underlay>,
    /// A dead mount lies on it, whose place the new one is to take.
    pub is_dead: bool,
    /// A daemon was killed that had covered it, and somebody has opened it since.
    crashed: bool,
    /// That files lie there may be, and is told already.
    is_told: bool,
    asked: Asked,
}

/// How a mount on a directory is asked for.
#[derive(Clone, Default)]
pub(super) struct Asked {
    /// The directory may have files.
    pub nonempty: bool,
    /// The words behind `workfs mount`.
    pub words: String,
}

impl Point<'_> {
    /// Looks at `dir`, and makes it ready; adds what the user should know.
    ///
    /// # Errors
    /// If it is no directory, has something mounted on it, a dead mount with others in it, or has files and
    /// `nonempty` is not asked.
    pub fn find<'c>(
        dir: &Path,
        covers: &'c Covers,
        asked: Asked,
        notes: &mut Vec<String>,
    ) -> Result<Point<'c>, Failure> {
        let mut told = Vec::new();
        let found = match Self::look(dir, covers, asked.clone(), &mut told) {
            // It lived, or did not answer, when it was looked at first, and has ended since.
            Err(_) if crate::daemon::is_dead(dir) => {
                told.clear();
                Self::look(dir, covers, asked, &mut told)
            }
            found => found,
        };
        notes.append(&mut told);
        found
    }

    fn look<'c>(
        dir: &Path,
        covers: &'c Covers,
        asked: Asked,
        notes: &mut Vec<String>,
    ) -> Result<Point<'c>, Failure> {
        let (mut dead, mut left_by) = (None, None);
        if crate::daemon::is_dead(dir) {
            let line = mount_table::at(dir);
            let before = line.as_ref().and_then(Covers::words_of);
            // It may be another store's, and what the directory was like in that one's list.
            let own = Some(rustix::process::geteuid().as_raw());
            left_by = line.as_ref().filter(|line| line.user == own).and_then(Covers::of_mount);
            dead = take_dead_away(dir)?;
            notes.push(match before.filter(|before| *before != asked.words) {
                Some(before) => format!(
                    "{} was a dead mount, made by `workfs mount {before}`; it was detached, and this one is \
                     asked for otherwise",
                    dir.shown()
                ),
                None => format!("{} was a dead mount; it was detached", dir.shown()),
            });
        }
        // Another store's daemon would look, and mount, beside this one: the one on top would hide the other.
        let was_dead = dead.is_some();
        let mut below = dead.map_or_else(|| Underlay::open(dir), Ok);
        below = below.and_then(|below| below.held(POINT_WAIT));
        // Who had it before may have taken the dead one's place.
        let is_dead = was_dead && crate::daemon::is_dead(dir);
        let listed = |below: &Underlay| {
            let of_other = || left_by.as_ref().and_then(|other| other.of(below));
            covers.of(below).or_else(of_other)
        };
        let mut known = below.as_ref().ok().and_then(listed);
        if !is_dead && known.is_none() && below.as_ref().is_ok_and(may_be_given_back) {
            await_given_back(below.as_ref());
            below = below.and_then(Underlay::anew);
            known = below.as_ref().ok().and_then(listed);
        }
        let crashed = known.is_some();
        let is_closed = below.as_ref().is_ok_and(Underlay::looks_covered);
        let mut is_told = false;
        if !is_dead {
            let if_files = IfFiles { nonempty: asked.nonempty, crashed: crashed && !is_closed };
            let found = expect_free(dir, state_of(dir), if_files);
            // So that what was found can be moved away; where something else is mounted it stays.
            if crashed && (found.is_err() || !mounts_oneself()) {
                for list in std::iter::once(covers).chain(&left_by) {
                    note_stays(dir, list.give_back_at(dir).map(drop), notes);
                }
                below = below.and_then(Underlay::anew);
            }
            let found = found?;
            is_told = found.is_some();
            notes.extend(found);
        }
        // A dead mount that is to be replaced lies on it still.
        if !crashed && is_closed && (is_dead || !lies_below_a_mount(below.as_ref())) {
            notes.push(LeftCovered::of(dir).to_string());
        }
        if let Some(known) = known {
            below = below.map(|below| below.covered_by(&known));
        }
        let dir = dir.to_owned();
        let crashed = crashed && !is_closed;
        Ok(Point { covers, dir, below, is_dead, crashed, is_told, asked })
    }

    /// Mounts on it; gives the directory below, too, which is to be given back when the mount has ended.
    ///
    /// # Errors
    /// As `serve`; or if somebody was faster to write there.
    pub fn mount(
        self,
        notes: &mut Vec<String>,
        serve: impl FnOnce(&Path, bool) -> Result<Mount, Failure>,
    ) -> Result<(Mount, Option<Underlay>), Failure> {
        let is_first = mounts_oneself();
        if is_first {
            self.close(notes).inspect_err(|_| self.give_back())?;
        }
        let mount = serve(&self.dir, self.is_dead).inspect_err(|_| self.give_back())?;
        if !is_first && let Err(failure) = self.close(notes) {
            if let Err(error) = unmount(&mount) {
                tracing::warn!(dir = %self.dir.shown(), %error, "a mount over files stays");
            }
            self.give_back();
            return Err(failure);
        }
        let below = self.below.ok();
        below.iter().for_each(Underlay::let_go);
        Ok((mount, below))
    }

    /// Closes the directory, and looks whether somebody was faster.
    fn close(&self, notes: &mut Vec<String>) -> Result<(), Failure> {
        let covered =
            self.below.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()));
        let covered = covered.and_then(|below| {
            self.covers.keep(below.cover(), &self.asked.words)?;
            below.apply()?;
            below.names(NAMED_MAX + 1)
        });
        match covered {
            Ok(names) if !self.is_told => {
                let if_files = IfFiles { nonempty: self.asked.nonempty, crashed: self.crashed };
                notes.extend(occupied(&self.dir, &names, if_files)?);
            }
            Ok(_) => {}
            Err(error) => {
                let dir = self.dir.shown();
                notes.push(format!("{dir} stays writable below the mount: {error}"));
            }
        }
        Ok(())
    }

    fn give_back(&self) {
        let mut notes = Vec::new();
        if self.is_dead
            && let Err(error) = detach_dead(&self.dir)
        {
            tracing::warn!(dir = %self.dir.shown(), %error, "a dead mount stays");
        }
        if let Ok(below) = &self.below {
            note_stays(&self.dir, self.covers.give_back(below).map(drop), &mut notes);
        }
        for note in notes {
            tracing::warn!("{note}");
        }
    }
}

fn note_stays(dir: &Path, given_back: io::Result<()>, notes: &mut Vec<String>) {
    if let Err(error) = given_back {
        notes.push(format!("{} stays read-only below the mount: {error}", dir.shown()));
    }
}

fn lies_below_a_mount(below: Result<&Underlay, &io::Error>) -> bool {
    below.is_ok_and(|below| below.lies_below_a_mount().unwrap_or(false))
}

/// A mount that has just gone may have been another store's, whose daemon gives the directory back in a
/// moment.
fn await_given_back(below: Result<&Underlay, &io::Error>) {
    let begin = Instant::now();
    while below.is_ok_and(may_be_given_back) && begin.elapsed() < GIVEN_BACK_WAIT {
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Whether it is as a cover leaves it, or one that is just being taken off: not what its owner keeps read-only.
fn may_be_given_back(below: &Underlay) -> bool {
    let may_be_bits_alone = || !below.is_covered_by_flag() || below.changed_within(GIVEN_BACK_WAIT);
    below.looks_covered() || below.is_bare() && may_be_bits_alone()
}

/// Takes dead mounts away; where the last can be replaced it stays, and what is below is returned.
fn take_dead_away(dir: &Path) -> Result<Option<Underlay>, Failure> {
    let detaching = |error| {
        Failure::io(format!("detaching the dead mount on {}", dir.shown()), &error)
            .if_denied(NO_RIGHTS)
    };
    expect_nothing_inside(dir)?;
    let line = mount_table::at(dir);
    let own = Some(rustix::process::geteuid().as_raw());
    // Another user's has a list of its own, and is not closed as root closes it.
    let is_own = line.as_ref().is_some_and(|line| line.user == own);
    if is_own
        && detach_dead_but_one(dir).map_err(detaching)?
        && let Ok(below) = Underlay::below(dir)
    {
        return Ok(Some(below));
    }
    detach_dead(dir).map_err(detaching)?;
    if let Some(line) = line.filter(|_| !is_own)
        && let Some(covers) = Covers::of_mount(&line)
        && let Err(error) = covers.give_back_at(dir)
    {
        tracing::warn!(dir = %dir.shown(), %error, "another user's directory stays read-only");
    }
    Ok(None)
}

/// Whether this process mounts without the helper for users.
fn mounts_oneself() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::failure::Cause;

    #[test]
    fn directories_with_files_are_mounted_over_only_when_asked() {
        let dir = tempfile::tempdir().unwrap();
        let covers = Covers::kept_in(dir.path().join("covers"));
        let point = dir.path().join("m");
        let notes = |point: &Path, nonempty: bool| {
            let mut notes = Vec::new();
            Point::find(point, &covers, Asked { nonempty, ..Asked::default() }, &mut notes)
                .map(|_| notes)
        };
        assert_eq!(notes(&point, false).unwrap_err().cause, Cause::Absent);
        std::fs::create_dir(&point).unwrap();
        assert_eq!(notes(&point, false), Ok(Vec::new()));
        std::fs::write(point.join("a\nb"), "x").unwrap();
        let failure = notes(&point, false).unwrap_err();
        assert_eq!(failure.cause, Cause::Conflict);
        assert!(failure.reason.ends_with("has files: a\\nb"), "{failure}");
        assert_eq!(notes(&point, true).unwrap().len(), 1);
        assert_eq!(notes(&point.join("a\nb"), true).unwrap_err().cause, Cause::Usage);
    }

    #[test]
    fn what_its_owner_keeps_read_only_is_not_waited_for_where_covers_are_told_from_that() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let point = dir.path().join("m");
        std::fs::create_dir(&point).unwrap();
        std::fs::set_permissions(&point, std::fs::Permissions::from_mode(0o555)).unwrap();
        let below = Underlay::open(&point).unwrap();
        assert!(may_be_given_back(&below));
        std::thread::sleep(GIVEN_BACK_WAIT);
        assert_eq!(may_be_given_back(&below), !below.is_covered_by_flag());
    }

    #[test]
    fn what_is_being_given_back_is_not_taken_for_what_it_was_like() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let point = dir.path().join("m");
        std::fs::create_dir(&point).unwrap();
        let set = |mode| {
            std::fs::set_permissions(&point, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        // As in the moment between the two steps of giving it back.
        set(0o555);
        let covers = Covers::kept_in(dir.path().join("covers"));
        let found = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(GIVEN_BACK_WAIT / 4);
                set(0o755);
            });
            Point::find(&point, &covers, Asked::default(), &mut Vec::new()).unwrap()
        });
        assert_eq!(found.below.unwrap().cover().mode, 0o755);
    }
}
