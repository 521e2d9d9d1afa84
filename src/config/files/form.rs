//! The form of the rules about plain files, as they are read and as they are written.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::super::Given;
use super::check::{Check, SCHEMAS, Syntax};
use super::{FileRules, Keep, LockRule, Retention};
use crate::config::path_glob::FileGlob;
use crate::kind::yaml::{Wrong, line, unknown};
use crate::kind::{Schema, keys_stand_once, where_and_why};
use crate::record::{double_quoted, word_or_quoted};
use crate::units;

/// Most rules of one list: each is asked once for every directory with files.
const RULES_MAX: usize = 64;

/// Rules about plain files: keys at the top of a configuration.
#[derive(Debug, Default)]
pub struct FilesForm {
    pub files: Option<Vec<KeepForm>>,
    pub checks: Vec<CheckForm>,
    pub schemas: Vec<SchemaForm>,
    pub locks: Vec<LockForm>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeepForm {
    path: Spanned<String>,
    #[serde(default = "yes")]
    log: bool,
    #[serde(default)]
    versions: Option<u64>,
    #[serde(default)]
    age: Option<Spanned<String>>,
    #[serde(default)]
    bytes: Option<Spanned<String>>,
    #[serde(default)]
    file_bytes: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckForm {
    path: Spanned<String>,
    #[serde(default)]
    syntax: Option<Syntax>,
    #[serde(default)]
    schema: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemaForm {
    name: Spanned<String>,
    /// JSON Schema 2020-12.
    #[serde(default)]
    text: Option<String>,
    /// A file with one, from the directory of the layout.
    #[serde(default)]
    file: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockForm {
    path: Spanned<String>,
    lease: Spanned<String>,
}

fn yes() -> bool {
    true
}

/// Reads a file that a layout names.
pub type Load<'l> = &'l dyn Fn(&str) -> Result<String, String>;

impl FilesForm {
    /// The rules that it says; `load` reads the files of schemas.
    pub fn rules(self, (load, given): (Load<'_>, Given)) -> Result<FileRules, Wrong> {
        let lists = [self.checks.len(), self.schemas.len(), self.locks.len()];
        let longest = lists.into_iter().chain(self.files.as_ref().map(Vec::len)).max();
        if longest > Some(RULES_MAX) {
            return Err((None, format!("over {RULES_MAX} rules in one list")));
        }
        let keeps = match self.files {
            None => FileRules::standard().keeps,
            Some(list) => list.into_iter().map(keep).collect::<Result<_, _>>()?,
        };
        let mut schemas = Vec::new();
        let mut compiled: HashMap<String, Arc<Schema>> = HashMap::new();
        for form in self.schemas {
            let at = line(&form.name);
            let (name, text, schema) = schema(form, (load, given))?;
            if compiled.insert(name.clone(), Arc::new(schema)).is_some() {
                return Err((at, format!("the schema `{name}` is there twice")));
            }
            schemas.push((name, text));
        }
        let check = |form| check(form, &compiled);
        let checks = self.checks.into_iter().map(check).collect::<Result<_, _>>()?;
        let locks = self.locks.into_iter().map(lock).collect::<Result<_, _>>()?;
        Ok(FileRules { keeps, checks, locks, schemas })
    }
}

fn glob(path: &Spanned<String>) -> Result<FileGlob, Wrong> {
    FileGlob::parse(&path.value).map_err(|why| (line(path), why))
}

/// A value with a unit, else what holds where none is given.
fn unit<T>(
    given: &Option<Spanned<String>>,
    parse: impl Fn(&str) -> Result<T, String>,
    otherwise: T,
) -> Result<T, Wrong> {
    match given {
        None => Ok(otherwise),
        Some(text) => parse(&text.value).map_err(|why| (line(text), why)),
    }
}

fn keep(form: KeepForm) -> Result<Keep, Wrong> {
    let standard = Retention::default();
    let retention = Retention {
        versions: form.versions.unwrap_or(standard.versions),
        age: unit(&form.age, units::duration, standard.age)?,
        bytes: unit(&form.bytes, units::size, standard.bytes)?,
        file_bytes: unit(&form.file_bytes, units::size, standard.file_bytes)?,
    };
    let most = crate::limits::VERSION_BYTES_MAX;
    if retention.file_bytes > most {
        let reason = format!("`file_bytes` is at most {}", units::shown_size(most));
        return Err((form.file_bytes.as_ref().and_then(line), reason));
    }
    Ok(Keep { path: glob(&form.path)?, log: form.log, retention })
}

fn schema(
    form: SchemaForm,
    (load, given): (Load<'_>, Given),
) -> Result<(String, String, Schema), Wrong> {
    let name = form.name.value.clone();
    let at = line(&form.name);
    let wrong = |why: String| (at, format!("the schema `{name}`: {why}"));
    if SCHEMAS.iter().any(|(known, _)| *known == name) {
        return Err(wrong("a ready-made one has this name".to_owned()));
    }
    let (file, text) = match (form.text, form.file) {
        (Some(text), None) => ("its text".to_owned(), text),
        (None, Some(file)) => (file.value.clone(), load(&file.value).map_err(wrong)?),
        _ => return Err(wrong("give either its `text` or its `file`".to_owned())),
    };
    let within = |(line, why): Wrong| wrong(where_and_why(&file, line, &why));
    let schema = Schema::compile(&text).map_err(within)?;
    if given == Given::Anew {
        keys_stand_once(&text).map_err(within)?;
    }
    Ok((name, text, schema))
}

fn check(form: CheckForm, own: &HashMap<String, Arc<Schema>>) -> Result<Check, Wrong> {
    let path = glob(&form.path)?;
    let schema = match form.schema {
        None => None,
        Some(name) => {
            let found = own.get(&name.value).cloned().or_else(|| Check::built_in(&name.value));
            let Some(schema) = found else {
                let built_in = SCHEMAS.iter().map(|(name, _)| (*name).to_owned());
                let known: Vec<String> = own.keys().cloned().chain(built_in).collect();
                return Err((line(&name), unknown("schema", &name.value, &known)));
            };
            Some((name.value, schema))
        }
    };
    let by_name = if path.as_str().ends_with(".json") { Syntax::Json } else { Syntax::Yaml };
    Ok(Check { path, syntax: form.syntax.unwrap_or(by_name), schema })
}

fn lock(form: LockForm) -> Result<LockRule, Wrong> {
    let lease = units::duration(&form.lease.value).map_err(|why| (line(&form.lease), why))?;
    if lease.is_zero() {
        return Err((line(&form.lease), "a lease of no time holds nothing".to_owned()));
    }
    Ok(LockRule { path: glob(&form.path)?, lease })
}

/// The rules as the configuration has them, which is read back to the same.
pub fn write(rules: &FileRules, out: &mut String) {
    let mut list = |key: &str, items: Vec<String>| {
        if items.is_empty() {
            out.push_str(&format!("{key}: []\n"));
        } else {
            out.push_str(&format!("{key}:\n"));
            out.extend(items.into_iter().map(|item| format!("  - {{ {item} }}\n")));
        }
    };
    let keeps = rules.keeps.iter().map(|keep| {
        let path = word_or_quoted(keep.path.as_str());
        let Retention { versions, age, bytes, file_bytes } = keep.retention;
        let (age, bytes) = (units::shown_duration(age), units::shown_size(bytes));
        let file_bytes = units::shown_size(file_bytes);
        if keep.log {
            format!(
                "path: {path}, log: true, versions: {versions}, age: {age}, bytes: {bytes}, \
                 file_bytes: {file_bytes}"
            )
        } else {
            format!("path: {path}, log: false")
        }
    });
    list("files", keeps.collect());
    let checks = rules.checks.iter().map(|check| {
        let schema = check.schema.as_ref();
        let schema = schema
            .map_or_else(String::new, |(name, _)| format!(", schema: {}", word_or_quoted(name)));
        format!("path: {}, syntax: {}{schema}", word_or_quoted(check.path.as_str()), check.syntax)
    });
    list("checks", checks.collect());
    let schemas = rules.schemas.iter().map(|(name, text)| {
        format!("name: {}, text: {}", word_or_quoted(name), double_quoted(text))
    });
    list("schemas", schemas.collect());
    let locks = rules.locks.iter().map(|lock| {
        let lease = units::shown_duration(lock.lease);
        format!("path: {}, lease: {lease}", word_or_quoted(lock.path.as_str()))
    });
    list("locks", locks.collect());
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn parse(rules: &str) -> Result<Config, String> {
        let parsed = Config::parse("c", &format!("workspaces: []\n{rules}"));
        parsed.map_err(|error| error.to_string())
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (rules, said) in [
            ("files: [{ path: a, file_bytes: 17MiB }]", "c:2: `file_bytes` is at most 16MiB"),
            ("files: [{ path: a, age: long }]", "c:2: "),
            ("schemas: [{ name: project, text: '{}' }]", "c:2: the schema `project`: a ready-made"),
            ("schemas: [{ name: a }]", "give either its `text` or its `file`"),
            ("schemas: [{ name: a, text: '{}', file: b }]", "give either its `text` or its `file`"),
            ("schemas: [{ name: a, text: '{}' }, { name: a, text: '{}' }]", "`a` is there twice"),
            (
                "schemas:\n- { name: a, text: '{}' }\n- { name: a, text: '{}' }",
                "c:4: the schema `a` is",
            ),
            (
                "schemas: [{ name: a, text: '{\"a\": {\"b\": 1, \"b\": 2}}' }]",
                "its text:1: the key `b` is",
            ),
            ("checks: [{ path: a.json, schema: projct }]", "did you mean `project`?"),
            ("locks: [{ path: a.lock, lease: 0s }]", "a lease of no time"),
        ] {
            let error = parse(rules).unwrap_err();
            assert!(error.contains(said), "{rules}: {error}");
        }
        parse("files: [{ path: a, file_bytes: 16MiB }]").unwrap();
        // A store that has a schema with a key twice is opened.
        let twice = "workspaces: []\nschemas: [{ name: a, text: '{\"b\": 1, \"b\": 2}' }]";
        Config::kept(Some(twice)).unwrap();
    }

    #[test]
    fn no_list_of_rules_is_without_end() {
        for (key, rule) in [
            ("files", "{ path: a }"),
            ("checks", "{ path: a.json }"),
            ("locks", "{ path: a.lock, lease: 1m }"),
        ] {
            let many =
                |number: usize| parse(&format!("{key}:\n{}", format!("- {rule}\n").repeat(number)));
            many(64).unwrap();
            let error = many(65).unwrap_err();
            assert!(error.contains("over 64 rules in one list"), "{key}: {error}");
        }
    }
}
