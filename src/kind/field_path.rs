//! Paths to fields that a definition requires: `result.summary`, `artefacts|artifacts`.

use std::fmt;

use crate::record::push_step;
use serde_json::Value;

/// One path, or several of which one must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    ways: Vec<Vec<String>>,
}

impl FieldPath {
    /// Parses `a.b|c`.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str) -> Result<FieldPath, String> {
        let ways: Vec<Vec<String>> = text
            .split('|')
            .map(|way| way.split('.').map(|key| key.trim().to_owned()).collect())
            .collect();
        if ways.iter().flatten().any(String::is_empty) {
            return Err(format!("`{text}` is no path of a field: `result.summary` is one"));
        }
        Ok(FieldPath { ways })
    }

    /// The top-level fields it begins at.
    pub fn roots(&self) -> impl Iterator<Item = &str> {
        self.ways.iter().filter_map(|way| way.first()).map(String::as_str)
    }

    /// The keys of each of the paths of which one must be there.
    #[must_use]
    pub fn ways(&self) -> &[Vec<String>] {
        &self.ways
    }

    /// The keys of the way that messages name.
    #[must_use]
    pub fn first_way(&self) -> &[String] {
        self.ways.first().map_or(&[], Vec::as_slice)
    }

    /// Is it there? Null and blank text do not count.
    #[must_use]
    pub fn is_in(&self, value: &Value) -> bool {
        self.ways.iter().any(|way| {
            let found = way.iter().try_fold(value, |at, key| at.get(key));
            match found {
                None | Some(Value::Null) => false,
                Some(Value::String(text)) => !text.trim().is_empty(),
                Some(_) => true,
            }
        })
    }

    /// The values on its ways, each with its JSON pointer; null where it is written so.
    pub fn values<'v>(&self, value: &'v Value) -> impl Iterator<Item = (String, &'v Value)> {
        self.ways.iter().filter_map(move |way| {
            let found = way.iter().try_fold(value, |at, key| at.get(key))?;
            let mut pointer = String::new();
            way.iter().for_each(|key| push_step(&mut pointer, key));
            Some((pointer, found))
        })
    }

    /// The text that it says first, without the space around it; blank text does not count.
    #[must_use]
    pub fn text<'v>(&self, value: &'v Value) -> Option<&'v str> {
        let texts = self.ways.iter().filter_map(|way| {
            way.iter().try_fold(value, |at, key| at.get(key))?.as_str().map(str::trim)
        });
        texts.into_iter().find(|text| !text.is_empty())
    }

    /// JSON pointer to the nearest thing of it that exists in `value`; empty for the whole.
    #[must_use]
    pub fn nearest_pointer(&self, value: &Value) -> String {
        let mut pointer = String::new();
        let mut at = value;
        for key in self.first_way() {
            let Some(next) = at.get(key) else { break };
            push_step(&mut pointer, key);
            at = next;
        }
        pointer
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ways: Vec<String> = self.ways.iter().map(|way| way.join(".")).collect();
        f.write_str(&ways.join(" or "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn null_and_blank_do_not_count_as_there() {
        let path = FieldPath::parse("result.summary").unwrap();
        assert!(path.is_in(&json!({"result": {"summary": "did it"}})));
        for not in [
            json!({}),
            json!({"result": null}),
            json!({"result": {}}),
            json!({"result": {"summary": " \n"}}),
            json!({"result": "text"}),
        ] {
            assert!(!path.is_in(&not), "{not}");
        }
        let either = FieldPath::parse("artefacts|artifacts").unwrap();
        assert!(either.is_in(&json!({"artifacts": []})));
        assert_eq!(either.to_string(), "artefacts or artifacts");
    }

    #[test]
    fn the_pointer_names_what_exists() {
        let path = FieldPath::parse("result.summary").unwrap();
        assert_eq!(path.nearest_pointer(&json!({})), "");
        assert_eq!(path.nearest_pointer(&json!({"result": {}})), "/result");
        assert_eq!(path.nearest_pointer(&json!({"result": {"summary": ""}})), "/result/summary");
    }

    #[test]
    fn empty_keys_are_refused() {
        for bad in ["", ".", "a.", "a||b", "|"] {
            assert!(FieldPath::parse(bad).is_err(), "{bad:?}");
        }
    }
}
