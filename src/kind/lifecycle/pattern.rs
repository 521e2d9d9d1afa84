//! Patterns of state directories: `inbox`, `assigned/{owner}`, `archive/{yyyy-mm}`, `fridge/{any}`.
//!
//! What must stay true: whether two patterns can match one path is decided on the patterns, so
//! that a kind whose directories clash never loads.

use std::fmt;

use crate::names::{AgentName, FileName, NameError};
use crate::numbers::UnixNanos;

/// Most components of a pattern: real ones have two.
const COMPONENTS_MAX: usize = 8;

/// One component of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Component {
    /// Exactly this name.
    Literal(FileName),
    /// `{owner}`: an agent's name.
    Owner,
    /// `{yyyy-mm}`: a year and a month.
    YearMonth,
    /// `{any}`: any name that does not begin with a dot.
    Any,
}

impl Component {
    fn parse(text: &str) -> Result<Component, String> {
        match text {
            "{owner}" => Ok(Component::Owner),
            "{yyyy-mm}" => Ok(Component::YearMonth),
            "{any}" => Ok(Component::Any),
            _ if text.contains(['{', '}']) => Err(format!(
                "`{text}` is no placeholder: {{owner}}, {{yyyy-mm}} and {{any}} are, each a \
                 component of its own"
            )),
            _ => FileName::new(text).map(Component::Literal).map_err(|why| why.to_string()),
        }
    }

    fn matches(&self, name: &FileName) -> bool {
        match self {
            Component::Literal(literal) => literal == name,
            Component::Owner => agent(name).is_some(),
            Component::YearMonth => is_year_month(name.as_bytes()),
            Component::Any => !name.as_bytes().starts_with(b"."),
        }
    }

    /// Is there a name that both match?
    fn meets(&self, other: &Component) -> bool {
        match (self, other) {
            (Component::Literal(name), that) => that.matches(name),
            (this, Component::Literal(name)) => this.matches(name),
            // `2026-01` is an agent's name, a month and a name without a dot.
            _ => true,
        }
    }
}

fn agent(name: &FileName) -> Option<AgentName> {
    name.as_str().and_then(|text| AgentName::new(text).ok())
}

fn is_year_month(name: &[u8]) -> bool {
    let [y1, y2, y3, y4, b'-', m1, m2] = name else { return false };
    [y1, y2, y3, y4, m1, m2].iter().all(|digit| digit.is_ascii_digit())
        && matches!((m1, m2), (b'0', b'1'..=b'9') | (b'1', b'0'..=b'2'))
}

/// A directory of a state, from the workspace's root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    components: Vec<Component>,
}

impl Pattern {
    /// Parses `assigned/{owner}`.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str) -> Result<Pattern, String> {
        let wrong = |why: &str| format!("the directory `{}` {why}", show(text));
        if text.is_empty() {
            return Err("a directory cannot be empty".to_owned());
        }
        let components = text
            .split('/')
            .map(Component::parse)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|why| wrong(&format!("does not work: {why}")))?;
        if components.len() > COMPONENTS_MAX {
            return Err(wrong(&format!("has over {COMPONENTS_MAX} components")));
        }
        if components.iter().filter(|part| **part == Component::Owner).count() > 1 {
            return Err(wrong("names {owner} twice"));
        }
        Ok(Pattern { components })
    }

    /// Its components.
    #[must_use]
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// Does it name an owner?
    #[must_use]
    pub fn has_owner(&self) -> bool {
        self.components.contains(&Component::Owner)
    }

    /// Can the daemon tell the directory by itself, without `{any}`?
    #[must_use]
    pub fn is_definite(&self) -> bool {
        !self.components.contains(&Component::Any)
    }

    /// Is `path` such a directory?
    #[must_use]
    pub fn matches(&self, path: &[FileName]) -> bool {
        path.len() == self.components.len() && self.leads(path)
    }

    /// The owner that such a directory names, if they name any.
    #[must_use]
    pub fn owner_of(&self, path: &[FileName]) -> Option<AgentName> {
        let owner = self.components.iter().position(|part| *part == Component::Owner)?;
        agent(path.get(owner)?)
    }

    /// Would `path` be such a directory, if the name of its owner were an agent's? Says why it is none.
    #[must_use]
    pub fn misses(&self, path: &[FileName]) -> Option<NameError> {
        let owner = self.components.iter().position(|part| *part == Component::Owner)?;
        let mut parts = self.components.iter().zip(path).enumerate();
        let rest = parts.all(|(at, (part, name))| at == owner || part.matches(name));
        if !rest || path.len() != self.components.len() {
            return None;
        }
        path[owner].as_str().map_or(Some(NameError::Grammar), |name| AgentName::new(name).err())
    }

    /// Is `path` on the way to such a directory, but not one?
    #[must_use]
    pub fn is_prefix(&self, path: &[FileName]) -> bool {
        path.len() < self.components.len() && self.leads(path)
    }

    fn leads(&self, path: &[FileName]) -> bool {
        self.components.iter().zip(path).all(|(part, name)| part.matches(name))
    }

    /// Is there a directory that both match?
    #[must_use]
    pub fn meets(&self, other: &Pattern) -> bool {
        self.components.len() == other.components.len()
            && self.components.iter().zip(&other.components).all(|(a, b)| a.meets(b))
    }

    /// The directory for this owner at this time; `None` where the pattern needs an owner and
    /// there is none, or has `{any}`.
    #[must_use]
    pub fn fill(&self, owner: Option<&AgentName>, now: UnixNanos) -> Option<Vec<FileName>> {
        self.components
            .iter()
            .map(|part| match part {
                Component::Literal(name) => Some(name.clone()),
                Component::Owner => FileName::new(owner?.as_str()).ok(),
                Component::YearMonth => FileName::new(now.year_month()).ok(),
                Component::Any => None,
            })
            .collect()
    }

    /// As people read it: `assigned/<agent>/`, or `assigned/bob/` for an owner.
    #[must_use]
    pub fn shown(&self, owner: Option<&AgentName>) -> String {
        let mut out = String::new();
        for part in &self.components {
            match part {
                Component::Literal(name) => out.push_str(&name.to_string()),
                Component::Owner => out.push_str(owner.map_or("<agent>", AgentName::as_str)),
                Component::YearMonth => out.push_str("<yyyy-mm>"),
                Component::Any => out.push_str("<any>"),
            }
            out.push('/');
        }
        out
    }
}

fn show(text: &str) -> String {
    crate::names::printable_start(text.as_bytes())
}

impl fmt::Display for Pattern {
    /// As it is written in a definition.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.components.iter().enumerate() {
            if at > 0 {
                f.write_str("/")?;
            }
            match part {
                Component::Literal(name) => {
                    f.write_str(&crate::names::printable(name.as_bytes()))?;
                }
                Component::Owner => f.write_str("{owner}")?,
                Component::YearMonth => f.write_str("{yyyy-mm}")?,
                Component::Any => f.write_str("{any}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::TreePath;

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(text).unwrap()
    }

    fn path(text: &str) -> Vec<FileName> {
        TreePath::parse(text).unwrap().names().to_vec()
    }

    #[test]
    fn it_is_shown_as_it_is_written() {
        for text in ["inbox", "assigned/{owner}", "archive/{yyyy-mm}/{any}", r"a\b/{owner}"] {
            assert_eq!(pattern(text).to_string(), text);
        }
    }

    #[test]
    fn bad_patterns_are_refused() {
        for bad in [
            "",
            "/",
            "a//b",
            "/inbox",
            "inbox/",
            "..",
            "a/../b",
            "{owner}{owner}",
            "{owner}/{owner}",
            "x{owner}",
            "{agent}",
            "{",
            "a\0b",
            "a/b/c/d/e/f/g/h/i",
        ] {
            assert!(Pattern::parse(bad).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn a_pattern_prints_as_it_was_written() {
        for text in
            ["inbox", "assigned/{owner}", "archive/{yyyy-mm}", "a b/{any}/c", "a/b/c/d/e/f/g/h"]
        {
            assert_eq!(pattern(text).to_string(), text);
        }
        assert_eq!(pattern("assigned/{owner}").shown(None), "assigned/<agent>/");
    }

    #[test]
    fn an_owner_is_a_valid_agent() {
        let lanes = pattern("assigned/{owner}");
        let bob = AgentName::new("bob").unwrap();
        assert!(lanes.matches(&path("assigned/bob")));
        assert_eq!(lanes.owner_of(&path("assigned/bob")), Some(bob));
        for none in ["assigned/.git", "assigned/a b", "assigned/bob/x", "assigned"] {
            assert!(!lanes.matches(&path(none)), "{none}");
        }
        assert_eq!(lanes.misses(&path("assigned/a b")), Some(NameError::Grammar));
        for none in ["assigned/bob", "done/a b", "assigned", "assigned/a b/c"] {
            assert_eq!(lanes.misses(&path(none)), None, "{none}");
        }
        assert!(lanes.is_prefix(&path("assigned")));
        assert!(lanes.is_prefix(&[]));
        assert!(!lanes.is_prefix(&path("done")));
    }

    #[test]
    fn months_are_months() {
        let months = pattern("archive/{yyyy-mm}");
        for good in ["archive/2025-11", "archive/0000-01"] {
            assert!(months.matches(&path(good)), "{good}");
            assert_eq!(months.owner_of(&path(good)), None);
        }
        for bad in ["2025-13", "2025-00", "2025-20", "2025-1", "2025-11-x", "202x-11", "-025-11"] {
            assert!(!months.matches(&path(&format!("archive/{bad}"))), "{bad}");
        }
    }

    #[test]
    fn patterns_meet_where_one_directory_could_be_both() {
        for (a, b, meet) in [
            ("inbox", "inbox", true),
            ("inbox", "todo", false),
            ("a/{owner}", "a/bob", true),
            ("a/{owner}", "a/.hidden", false),
            ("a/{owner}", "a/{yyyy-mm}", true),
            ("a/{yyyy-mm}", "a/{any}", true),
            ("a/{yyyy-mm}", "a/b", false),
            ("a/{owner}", "a", false),
            ("{any}", "inbox", true),
        ] {
            assert_eq!(pattern(a).meets(&pattern(b)), meet, "{a} and {b}");
            assert_eq!(pattern(b).meets(&pattern(a)), meet, "{b} and {a}");
        }
    }
}
