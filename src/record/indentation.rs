//! Lines of a text that are indented with a tab.
//!
//! The parser refuses tabs on later lines of a block, and takes them before its first: there it is asked here.
//! Deliberately not here: tabs that separate, and those in scalars and in brackets, which YAML allows.

use std::collections::HashMap;

use granit_parser::Marker;

use super::flaw::{Flaw, text_place};
use crate::refusal::TextPlace;

/// See the module.
#[derive(Default)]
pub(super) struct Indentation {
    /// By the line's number: the column of its first tab, and of what the line begins with.
    tabs: HashMap<u32, (u32, u32)>,
}

impl Indentation {
    pub fn of(text: &str) -> Self {
        let mut tabs = HashMap::new();
        if text.contains('\t') {
            let text = text.strip_prefix('\u{feff}').unwrap_or(text);
            for (line, at) in lines(text).zip(1..) {
                let rest = line.trim_start_matches([' ', '\t']);
                let indentation = &line[..line.len() - rest.len()];
                if let Some(tab) = indentation.find('\t') {
                    tabs.insert(at, (column(tab), column(indentation.len())));
                }
            }
        }
        Indentation { tabs }
    }

    /// Refuses what begins a line that is indented with a tab.
    pub fn check(&self, at: &Marker) -> Result<(), Flaw> {
        let TextPlace { line, column } = text_place(at);
        match self.tabs.get(&line) {
            Some(&(tab, begin)) if begin == column => {
                Err(Flaw { place: Some(TextPlace { line, column: tab }), ..Flaw::tab(at) })
            }
            _ => Ok(()),
        }
    }
}

/// The lines, ended as YAML ends them.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

fn column(byte: usize) -> u32 {
    u32::try_from(byte).unwrap_or(u32::MAX).saturating_add(1)
}
