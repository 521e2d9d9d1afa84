//! Whether a text is YAML at all, whatever it says: of checked plain files without a schema.
//!
//! What must stay true: what YAML 1.2 takes is taken (several documents, any tags, keys of any type, `<<`
//! as a key like others), in the bounds of size and depth, and no alias is ever written out. As for
//! records a flaw found at an event is a flaw whatever follows, and no recursion is made.

use std::cell::Cell;
use std::collections::HashSet;

use granit_parser::{Event, Marker, Options, Parser, ScalarStyle, Span, Tag};

use super::compose::is_unspecific;
use super::flaw::{Flaw, shown};
use super::scalar::{Plain, resolve};
use super::source;
use super::watched::Watched;
use super::{PLAIN_NODES_MAX, PREFIX_BYTES_MAX};
use crate::limits::RECORD_DEPTH_MAX;
use crate::refusal::Rule;

/// Judges a whole text.
///
/// # Errors
/// The first flaw in it.
pub fn well_formed(bytes: &[u8]) -> Result<(), Flaw> {
    let text = source::text(bytes)?;
    let mut walk = Walk::default();
    for next in Parser::new_from_str_with_options(text, options()) {
        let (event, span) = next.map_err(|error| Flaw::scan(&error, text))?;
        walk.take(event, &span)?;
    }
    Ok(())
}

/// Judges the text written so far.
///
/// # Errors
/// A flaw that no further byte can mend.
pub fn well_formed_so_far(bytes: &[u8]) -> Result<(), Flaw> {
    let (text, _) = source::text_so_far(bytes)?;
    if text.len() > PREFIX_BYTES_MAX {
        return Ok(());
    }
    let ended = Cell::new(false);
    let mut walk = Walk::default();
    for next in Parser::with_options(Watched::new(text, &ended), options()) {
        match next {
            // What the parser did after it looked at the end may come out otherwise with more.
            _ if ended.get() => break,
            Err(error) => return Err(Flaw { at_end: false, ..Flaw::scan(&error, text) }),
            Ok((event, span)) => walk.take(event, &span)?,
        }
    }
    Ok(())
}

fn options() -> Options {
    let mut options = source::parser_options();
    options.disallow_directives = false;
    options
}

/// Where in the documents it is.
#[derive(Default)]
struct Walk {
    open: Vec<Open>,
    nodes: usize,
}

enum Open {
    List,
    /// The scalars that are its keys, and whether the next node is one of its keys.
    Mapping {
        keys: HashSet<String>,
        awaits_key: bool,
    },
}

impl Walk {
    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), Flaw> {
        match event {
            Event::Scalar(text, style, _, tag) => {
                if let Some(Open::Mapping { keys, awaits_key: true }) = self.open.last_mut()
                    && !keys.insert(identity(&text, style, tag.as_deref()))
                {
                    let reason = format!("the key {} is there twice", shown(&text));
                    return Err(Flaw::syntax(&span.start, reason, "keep one of the two"));
                }
                self.node_ended(&span.start)?;
            }
            Event::Alias(_) => self.node_ended(&span.start)?,
            Event::SequenceStart(..) => self.begin(Open::List, &span.start)?,
            Event::MappingStart(..) => {
                let mapping = Open::Mapping { keys: HashSet::new(), awaits_key: true };
                self.begin(mapping, &span.start)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.open.pop();
                self.node_ended(&span.start)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, open: Open, at: &Marker) -> Result<(), Flaw> {
        if self.open.len() >= RECORD_DEPTH_MAX {
            return Err(Flaw::too_deep(at));
        }
        self.open.push(open);
        Ok(())
    }

    fn node_ended(&mut self, at: &Marker) -> Result<(), Flaw> {
        self.nodes += 1;
        if self.nodes > PLAIN_NODES_MAX {
            let reason = format!("the text holds more than {PLAIN_NODES_MAX} values");
            let remedy = "put a part of it into a file of its own";
            return Err(Flaw { rule: Rule::TooLarge, ..Flaw::syntax(at, reason, remedy) });
        }
        if let Some(Open::Mapping { awaits_key, .. }) = self.open.last_mut() {
            *awaits_key = !*awaits_key;
        }
        Ok(())
    }
}

/// The same for two scalars that are the same key: `1` and `0x1` are, `1` and `"1"` are not.
fn identity(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> String {
    let plain = match tag {
        None if style == ScalarStyle::Plain => resolve(text),
        None => Plain::Text,
        Some(tag) if is_unspecific(tag) || tag.core_suffix() == Some("str") => Plain::Text,
        Some(tag) => return format!("tag {:?} {text}", tag.parts()),
    };
    match plain {
        Plain::Null => "null".to_owned(),
        Plain::Bool(truth) => format!("bool {truth}"),
        Plain::Int(number) => format!("int {number}"),
        Plain::Float(number) => format!("float {number}"),
        Plain::Text => format!("text {text}"),
        Plain::TooBig | Plain::NotFinite => format!("number {text}"),
    }
}
