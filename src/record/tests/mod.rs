//! Tests of the record's text, by hazard.

mod corpus;
mod hostile;
mod patch;
mod prefix;
mod random;
mod strict;

use super::{Document, Flaw};

fn flaw(text: &str) -> Flaw {
    Document::parse(text.as_bytes()).expect_err(text)
}

fn parsed(text: &str) -> serde_json::Value {
    Document::parse(text.as_bytes())
        .unwrap_or_else(|flaw| panic!("{text:?}: {flaw:?}"))
        .value()
        .clone()
}
