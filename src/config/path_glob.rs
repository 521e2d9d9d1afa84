//! The path of a binding: a path, or a glob, from the root of the mount.
//!
//! `*`, `?`, `[…]` and `{a,b}` match within one component, `**` any number of components. Matched
//! component by component, so that "may a workspace lie below here?" has an exact answer.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;

use globset::{GlobBuilder, GlobMatcher};

use crate::names::{FileName, TreePath, printable, printable_start};

/// Most components of a path.
const COMPONENTS_MAX: usize = 32;

#[derive(Clone, Debug)]
enum Segment {
    Literal(FileName),
    Glob(GlobMatcher),
    AnyDepth,
}

impl Segment {
    fn parse(text: &str) -> Result<Segment, String> {
        if text == "**" {
            return Ok(Segment::AnyDepth);
        }
        if text.contains("**") {
            return Err("`**` stands alone between slashes".to_owned());
        }
        if text.contains(['*', '?', '[', ']', '{', '}', '\\']) {
            let glob =
                GlobBuilder::new(text).literal_separator(true).empty_alternates(true).build();
            return glob.map(|glob| Segment::Glob(glob.compile_matcher())).map_err(|error| {
                let shown = printable_start(text.as_bytes());
                format!("`{shown}` is no glob ({}); braces cannot hold a slash", error.kind())
            });
        }
        FileName::new(text).map(Segment::Literal).map_err(|why| why.to_string())
    }

    fn matches(&self, name: &FileName) -> bool {
        match self {
            Segment::Literal(literal) => literal == name,
            Segment::Glob(glob) => glob.is_match(OsStr::from_bytes(name.as_bytes())),
            Segment::AnyDepth => true,
        }
    }
}

/// A path or a glob of directories.
#[derive(Clone, Debug)]
pub struct PathGlob {
    text: String,
    segments: Vec<Segment>,
}

impl PathGlob {
    /// Parses `work`, `projects/*/tasks`, `**/work/collaboration`; `.` is the root of the mount.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str) -> Result<PathGlob, String> {
        let wrong = |why: String| {
            format!("the path `{}` does not work: {why}", printable_start(text.as_bytes()))
        };
        if text == "." {
            return Ok(PathGlob { text: text.to_owned(), segments: Vec::new() });
        }
        if text.is_empty() {
            return Err("a path cannot be empty; `.` is the root of the mount".to_owned());
        }
        if text.starts_with('/') {
            return Err(wrong("it counts from the root of the mount, without a `/`".to_owned()));
        }
        let segments: Vec<Segment> = text
            .strip_suffix('/')
            .unwrap_or(text)
            .split('/')
            .map(Segment::parse)
            .collect::<Result<_, _>>()
            .map_err(wrong)?;
        if segments.len() > COMPONENTS_MAX {
            return Err(wrong(format!("it has over {COMPONENTS_MAX} components")));
        }
        if matches!(segments.last(), Some(Segment::AnyDepth)) {
            return Err(wrong("it ends in `**`, so every directory would match".to_owned()));
        }
        Ok(PathGlob { text: text.to_owned(), segments })
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The one path it stands for, if it is no glob.
    #[must_use]
    pub fn literal(&self) -> Option<TreePath> {
        let name = |segment: &Segment| match segment {
            Segment::Literal(name) => Some(name.clone()),
            Segment::Glob(_) | Segment::AnyDepth => None,
        };
        self.segments.iter().map(name).collect()
    }

    /// Those of these directories that lie at or below `root`, as they are called from there; `None` if
    /// none can. What `root` says already is no glob any more.
    #[must_use]
    pub fn seen_from(&self, root: &[FileName]) -> Option<PathGlob> {
        if self.matches(root) {
            return Some(PathGlob { text: ".".to_owned(), segments: Vec::new() });
        }
        if !self.may_lie_below(root) {
            return None;
        }
        let known = self.segments.iter().take_while(|at| !matches!(at, Segment::AnyDepth)).count();
        let segments = self.segments[known.min(root.len())..].to_vec();
        let rest = self.text.split('/').filter(|part| !part.is_empty());
        let text: Vec<&str> = rest.skip(known.min(root.len())).collect();
        Some(PathGlob { text: text.join("/"), segments })
    }

    /// One of these directories; `None` where none is known. What may be of any name is called `any` there.
    #[must_use]
    pub fn example(&self, any: &FileName) -> Option<TreePath> {
        let named = self.segments.iter().filter_map(|segment| match segment {
            Segment::Literal(name) => Some(name.clone()),
            Segment::Glob(_) => Some(any.clone()),
            Segment::AnyDepth => None,
        });
        let path: TreePath = named.collect();
        self.matches(path.names()).then_some(path)
    }

    /// Its components that are no globs.
    pub fn literals(&self) -> impl Iterator<Item = &FileName> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Literal(name) => Some(name),
            Segment::Glob(_) | Segment::AnyDepth => None,
        })
    }

    /// Its first component, if that is no glob.
    #[must_use]
    pub fn first_literal(&self) -> Option<&FileName> {
        match self.segments.first() {
            Some(Segment::Literal(name)) => Some(name),
            _ => None,
        }
    }

    /// Is `path` one of these directories?
    #[must_use]
    pub fn matches(&self, path: &[FileName]) -> bool {
        match self.after(path) {
            Some(ends) => ends.contains(&self.segments.len()),
            None => false,
        }
    }

    /// Could one of these directories lie strictly below `path`?
    #[must_use]
    pub fn may_lie_below(&self, path: &[FileName]) -> bool {
        match self.after(path) {
            Some(ends) => ends.iter().any(|at| *at < self.segments.len()),
            None => false,
        }
    }

    /// The positions in the pattern that can be reached by reading all of `path`: a small
    /// automaton, linear in the path, whatever the number of `**`.
    fn after(&self, path: &[FileName]) -> Option<Vec<usize>> {
        let mut at = vec![0];
        self.step_over(&mut at);
        for name in path {
            let mut next = Vec::new();
            for &position in &at {
                match self.segments.get(position) {
                    Some(Segment::AnyDepth) => next.push(position),
                    Some(segment) if segment.matches(name) => next.push(position + 1),
                    _ => {}
                }
            }
            self.step_over(&mut next);
            if next.is_empty() {
                return None;
            }
            at = next;
        }
        Some(at)
    }

    /// `**` may stand for no component at all.
    fn step_over(&self, at: &mut Vec<usize>) {
        let mut seen = 0;
        while let Some(&position) = at.get(seen) {
            if matches!(self.segments.get(position), Some(Segment::AnyDepth)) {
                at.push(position + 1);
            }
            seen += 1;
        }
        at.sort_unstable();
        at.dedup();
    }
}

impl fmt::Display for PathGlob {
    /// For messages; as it was written it is [`PathGlob::as_str`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(self.text.as_bytes()))
    }
}

/// A path or a glob of files: as [`PathGlob`], and a `**` at its end stands for all files below.
#[derive(Clone, Debug)]
pub struct FileGlob {
    text: String,
    glob: PathGlob,
}

impl FileGlob {
    /// Parses `scratchpad/**`, `**/*.lock`, `notes/plan.md`.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str) -> Result<FileGlob, String> {
        let whole = match text.strip_suffix("**") {
            Some(above) if above.is_empty() || above.ends_with('/') => format!("{text}/*"),
            _ => text.to_owned(),
        };
        let glob = PathGlob::parse(&whole)?;
        if glob.segments.is_empty() {
            return Err("`.` is the root; name directories or files in it".to_owned());
        }
        Ok(FileGlob { text: text.to_owned(), glob })
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Could one of these files lie directly in `dir`? Then [`FileGlob::takes_name`] says which.
    #[must_use]
    pub fn may_lie_in(&self, dir: &[FileName]) -> bool {
        let last = self.glob.segments.len().saturating_sub(1);
        self.glob.after(dir).is_some_and(|at| at.contains(&last))
    }

    /// Could one of these files lie in `dir`, or anywhere below it?
    #[must_use]
    pub fn may_lie_below(&self, dir: &[FileName]) -> bool {
        self.glob.may_lie_below(dir)
    }

    /// Are all files below `dir` such, however deep?
    #[must_use]
    pub fn takes_all_below(&self, dir: &[FileName]) -> bool {
        let any_depth = self.glob.segments.len().checked_sub(2);
        let is_any_depth = |at: &usize| matches!(self.glob.segments[*at], Segment::AnyDepth);
        self.takes_every_name()
            && any_depth.filter(is_any_depth).is_some_and(|any_depth| {
                self.glob.after(dir).is_some_and(|at| at.contains(&any_depth))
            })
    }

    /// Whether a file of this name is one, in a directory where one may lie.
    #[must_use]
    pub fn takes_name(&self, name: &FileName) -> bool {
        self.glob.segments.last().is_some_and(|segment| segment.matches(name))
    }

    /// Whether these are names at the top of the tree, and nothing below.
    #[must_use]
    pub fn is_one_name(&self) -> bool {
        self.glob.segments.len() == 1
    }

    /// Whether every name is taken.
    #[must_use]
    pub fn takes_every_name(&self) -> bool {
        match self.glob.segments.last() {
            Some(Segment::Glob(glob)) => glob.glob().glob() == "*",
            _ => false,
        }
    }

    /// Is the file at `path` one of these?
    #[must_use]
    pub fn matches(&self, path: &TreePath) -> bool {
        self.glob.matches(path.names())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_of_files_are_asked_by_directory_and_name() {
        for (text, dir, name, wanted) in [
            ("**", "", "x", true),
            ("scratchpad/**", "scratchpad", "x", true),
            ("scratchpad/**", "scratchpad/a/b", "x", true),
            ("scratchpad/**", "", "scratchpad", false),
            ("**/*.lock", "", "x.lock", true),
            ("**/*.lock", "a/b", "x.lock", true),
            ("**/*.lock", "a/b", "x.md", false),
            ("a/*/c.md", "a/b", "c.md", true),
            ("a/*/c.md", "a", "c.md", false),
        ] {
            let glob = FileGlob::parse(text).unwrap();
            let name = FileName::new(name).unwrap();
            let found = glob.may_lie_in(&path(dir)) && glob.takes_name(&name);
            assert_eq!(found, wanted, "{text}: {dir}/{name}");
            let whole = TreePath::parse(dir).unwrap().join(name);
            assert_eq!(glob.matches(&whole), wanted, "{text}: {whole}");
        }
        assert!(FileGlob::parse("a/**").unwrap().takes_every_name());
        assert!(!FileGlob::parse("**/*.lock").unwrap().takes_every_name());
        for (text, dir, wanted) in [
            ("**/target/**", "a/target", true),
            ("**/target/**", "a/target/b", true),
            ("**/target/**", "a", false),
            ("**/target/*", "a/target", false),
            ("**", "", true),
            ("*", "", false),
        ] {
            let found = FileGlob::parse(text).unwrap().takes_all_below(&path(dir));
            assert_eq!(found, wanted, "{text}: {dir}");
        }
        for bad in ["", ".", "/a", "a**", "a//b", "[", ".."] {
            assert!(FileGlob::parse(bad).is_err(), "{bad:?} was taken");
        }
    }

    fn path(text: &str) -> Vec<FileName> {
        TreePath::parse(text).unwrap().names().to_vec()
    }

    fn glob(text: &str) -> PathGlob {
        PathGlob::parse(text).unwrap()
    }

    #[test]
    fn a_path_matches_itself_only() {
        let work = glob("work");
        assert!(work.matches(&path("work")));
        for other in ["", "works", "work/inbox", "a/work"] {
            assert!(!work.matches(&path(other)), "{other}");
        }
        assert_eq!(work.literal().unwrap().to_string(), "work");
        assert!(glob(".").matches(&[]));
        assert!(glob("work/").matches(&path("work")));
    }

    #[test]
    fn globs_match_by_component() {
        for (text, yes, no) in [
            ("projects/*/tasks", "projects/a/tasks", "projects/a/b/tasks"),
            ("projects/*/tasks", "projects/.x/tasks", "projects/tasks"),
            ("**/work/collaboration", "work/collaboration", "work"),
            ("**/work/collaboration", "a/b/work/collaboration", "a/work/b/collaboration"),
            ("a/**/b", "a/b", "a"),
            ("a/**/b", "a/x/y/b", "a/x/y/b/c"),
            ("**/**/b", "b", "c"),
            ("team-[ab]/{todo,work}", "team-a/work", "team-c/work"),
            ("w{,ork}", "w", "wor"),
            ("*.y{a,}ml", "x.yml", "x.yaaml"),
        ] {
            assert!(glob(text).matches(&path(yes)), "{text} and {yes}");
            assert!(!glob(text).matches(&path(no)), "{text} and {no}");
            assert!(glob(text).literal().is_none());
        }
    }

    #[test]
    fn what_may_lie_below_is_exact() {
        let nested = glob("work/collaboration");
        for (at, may) in
            [("", true), ("work", true), ("work/collaboration", false), ("scratchpad", false)]
        {
            assert_eq!(nested.may_lie_below(&path(at)), may, "{at}");
        }
        let projects = glob("projects/*/tasks");
        assert!(projects.may_lie_below(&path("projects/a")));
        assert!(!projects.may_lie_below(&path("projects/a/tasks")));
        assert!(glob("**/work").may_lie_below(&path("any/where/work")));
        assert!(!glob("a/**/b").may_lie_below(&path("c")));
        assert!(!glob(".").may_lie_below(&[]));
    }

    #[test]
    fn many_wildcards_do_not_explode() {
        let hostile = glob(&format!("{}b", "**/".repeat(31)));
        assert!(!hostile.matches(&path(&"a/".repeat(2000))));
    }

    #[test]
    fn bad_paths_are_refused() {
        for bad in ["", "/work", "a//b", "..", "a/../b", "work/**", "**", "a**/b", "[", "{a,b/c}"] {
            assert!(PathGlob::parse(bad).is_err(), "{bad:?} was taken");
        }
        assert!(PathGlob::parse(&"a/".repeat(33)).is_err());
    }
}
