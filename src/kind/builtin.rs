//! The kinds that come with the program, and the register of all that are known.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use super::{Kind, KindError};
use crate::names::{FileName, KindName};

/// Every built-in kind: file name, definition, schema.
const BUILTIN: &[(&str, &str, &str)] = &[("task.kind.yaml", TASK_DEFINITION, TASK_SCHEMA)];

const TASK_DEFINITION: &str = include_str!("builtin/task.kind.yaml");
const TASK_SCHEMA: &str = include_str!("builtin/task.v1.json");

static KINDS: LazyLock<Vec<Arc<Kind>>> = LazyLock::new(|| {
    let load = |(file, definition, schema): &(&str, &str, &str)| {
        let kind = Kind::load(file, definition, schema);
        // PROOF: part of the program, and loaded by a test.
        Arc::new(kind.unwrap_or_else(|error| unreachable!("a built-in kind is wrong: {error}")))
    };
    BUILTIN.iter().map(load).collect()
});

/// The built-in kind `task`.
#[must_use]
pub fn task() -> Arc<Kind> {
    Arc::clone(&KINDS[0])
}

/// All kinds that a configuration can name.
#[derive(Clone, Debug)]
pub struct Kinds {
    by_name: BTreeMap<KindName, Arc<Kind>>,
}

impl Default for Kinds {
    /// The built-in ones.
    fn default() -> Self {
        let by_name = KINDS.iter().map(|kind| (kind.name().clone(), Arc::clone(kind))).collect();
        Kinds { by_name }
    }
}

impl Kinds {
    /// Adds a kind of a user's own.
    ///
    /// # Errors
    /// Where the name is taken: kinds are not replaced, stores depend on what they mean. All kinds'
    /// files lie in `.workfs/kinds/`, so that a schema's name is one there. Kinds of a user's own may share
    /// one, of the same text; not a built-in one's, whose text another version of the program may change.
    /// `file` is the definition's name, for errors.
    pub fn add(&mut self, file: &str, kind: Kind) -> Result<Arc<Kind>, KindError> {
        let [_, schema] = kind.file_names();
        let wrong = |key, reason| {
            let line = kind.source().line_of(key);
            Err(KindError { file: file.to_owned(), line, reason })
        };
        if let Some(known) = self.by_name.get(kind.name()) {
            let (name, whose) = (kind.name(), origin(known));
            let reason = format!("there is a kind `{name}` already, {whose}; give it another name");
            return wrong("kind", reason);
        }
        if FileName::new(schema.as_str()).is_err() {
            let reason = format!("`schema: {schema}` is no file's name; put it beside this file");
            return wrong("schema", reason);
        }
        let shares = |known: &Kind| {
            let is_it =
                known.schema_name == schema && known.source().schema == kind.source().schema;
            is_it && !is_built_in(known)
        };
        let has_file = |known: &&Arc<Kind>| known.file_names().contains(&schema) && !shares(known);
        if let Some(known) = self.by_name.values().find(has_file) {
            let (name, whose) = (known.name(), origin(known));
            let reason = format!(
                "another `{schema}` belongs to the kind `{name}`, {whose}, and all kinds' files lie in one \
                 directory; give it another name"
            );
            return wrong("schema", reason);
        }
        let kind = Arc::new(kind);
        self.by_name.insert(kind.name().clone(), Arc::clone(&kind));
        Ok(kind)
    }

    /// Fails where the definition has the name of another kind's schema, as former versions took it.
    ///
    /// # Errors
    /// Whose it is. `file` is the definition's name.
    pub fn expect_own_file(&self, file: &str, kind: &Kind) -> Result<(), KindError> {
        let [definition, _] = kind.file_names();
        let Some(known) = self.by_name.values().find(|known| known.schema_name == definition)
        else {
            return Ok(());
        };
        let (name, whose) = (known.name(), origin(known));
        let reason = format!(
            "`{definition}`, as this is called in `.workfs/kinds/`, is the schema of the kind `{name}`, \
             {whose}; give one of them another name"
        );
        Err(KindError { file: file.to_owned(), line: kind.source().line_of("kind"), reason })
    }

    /// The kind of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Kind>> {
        self.by_name.iter().find(|(known, _)| known.as_str() == name).map(|(_, kind)| kind)
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &KindName> {
        self.by_name.keys()
    }

    /// All of them: the built-in ones, then a user's own, each in order.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Kind>> {
        KINDS.iter().chain(self.own())
    }

    /// A user's own, in order.
    pub fn own(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.by_name.values().filter(|kind| !is_built_in(kind))
    }
}

pub(super) fn is_built_in(kind: &Kind) -> bool {
    KINDS.iter().any(|known| known.name() == kind.name())
}

/// Where a kind comes from.
fn origin(kind: &Kind) -> String {
    if is_built_in(kind) { "which is built in".to_owned() } else { format!("by {}", kind.file) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_kind_loads_and_is_named_as_its_file() {
        for (file, definition, schema) in BUILTIN {
            let kind = Kind::load(file, definition, schema).unwrap();
            assert_eq!(*file, format!("{}.kind.yaml", kind.name()));
            assert_eq!(KINDS.len(), BUILTIN.len());
        }
        assert_eq!(task().name().as_str(), "task");
    }

    #[test]
    fn kinds_are_added_but_not_replaced() {
        let mut kinds = Kinds::default();
        let (file, definition, schema) = BUILTIN[0];
        let again = Kind::load(file, definition, schema).unwrap();
        let taken = kinds.add("mine.yaml", again).unwrap_err();
        let line = 1 + definition.lines().position(|line| line.starts_with("kind:")).unwrap();
        assert_eq!((taken.file.as_str(), taken.line), ("mine.yaml", u32::try_from(line).ok()));
        let other = definition.replace("kind: task", "kind: errand");
        let same_file = kinds.add(file, Kind::load(file, &other, schema).unwrap()).unwrap_err();
        assert!(same_file.reason.contains("task.v1.json"), "{same_file}");
        assert!(same_file.reason.contains("the kind `task`, which is built in"), "{same_file}");
        let line = 1 + other.lines().position(|line| line.starts_with("schema:")).unwrap();
        assert_eq!(same_file.line, u32::try_from(line).ok());
        let nowhere = other.replace("task.v1.json", "../task.v1.json");
        assert!(kinds.add(file, Kind::load(file, &nowhere, schema).unwrap()).is_err());
        let other = other.replace("task.v1.json", "errand.v1.json");
        let added = kinds.add(file, Kind::load(file, &other, schema).unwrap()).unwrap();
        assert!(Arc::ptr_eq(&added, kinds.get("errand").unwrap()));
        let shares = other.replace("kind: errand", "kind: errand2");
        kinds.clone().add(file, Kind::load(file, &shares, schema).unwrap()).unwrap();
        let another = Kind::load(file, &shares, &format!("{schema} ")).unwrap();
        let another = kinds.clone().add(file, another).unwrap_err();
        assert!(another.reason.contains("another `errand.v1.json`"), "{another}");
        let twice = other.replace("errand.v1.json", "other.v1.json");
        let twice = kinds.add("b.yaml", Kind::load("b.yaml", &twice, schema).unwrap()).unwrap_err();
        assert!(twice.reason.contains("a kind `errand` already, by task.kind.yaml"), "{twice}");
        let names: Vec<&str> = kinds.names().map(KindName::as_str).collect();
        assert_eq!(names, ["errand", "task"]);
        let odd = other.replace("kind: errand", "kind: odd");
        let odd = odd.replace("errand.v1.json", "next.kind.yaml");
        kinds.add("odd.yaml", Kind::load("odd.yaml", &odd, schema).unwrap()).unwrap();
        let next = other.replace("kind: errand", "kind: next");
        let next = Kind::load("next.yaml", &next, schema).unwrap();
        let taken = kinds.expect_own_file("next.yaml", &next).unwrap_err();
        assert!(taken.reason.contains("is the schema of the kind `odd`, by odd.yaml"), "{taken}");
        assert!(kinds.add("next.yaml", next).is_ok(), "a store that has it is opened");
    }
}
