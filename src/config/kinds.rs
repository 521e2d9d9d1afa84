//! Kinds of a user's own, as a configuration brings them.

use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::files::Load;
use super::{ConfigError, Given, Subject};
use crate::kind::yaml::line;
use crate::kind::{Kind, KindError, Kinds};
use crate::limits::OWN_KINDS_MAX;
use crate::record::double_quoted;

/// One kind. A layout names its file, beside which the schema lies; the configuration that a store
/// keeps holds both texts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnKindForm {
    #[serde(default)]
    file: Option<Spanned<String>>,
    #[serde(default)]
    definition: Option<Spanned<String>>,
    #[serde(default)]
    schema: Option<String>,
}

/// What a definition is called that a store keeps and that cannot be read.
const KEPT: &str = "the kept definition of a kind";

/// Adds the kinds of a configuration, whose name is `file`, to those that are known.
pub(super) fn add(
    kinds: &mut Kinds,
    forms: Vec<OwnKindForm>,
    file: &str,
    (load, given): (Load<'_>, Given),
) -> Result<(), ConfigError> {
    let wrong = |line, reason: String| {
        let file = file.to_owned();
        ConfigError { file, line, reason, subject: Subject::Layout }
    };
    if forms.len() > OWN_KINDS_MAX {
        return Err(wrong(None, format!("over {OWN_KINDS_MAX} kinds")));
    }
    for form in forms {
        let kind = match (form.file, form.definition, form.schema) {
            (Some(named), None, None) => {
                let at = line(&named);
                let definition = load(&named.value).map_err(|reason| wrong(at, reason))?;
                let beside = |schema: &str| {
                    load(&Path::new(&named.value).with_file_name(schema).to_string_lossy())
                };
                Kind::load_with(&named.value, &definition, &beside)
            }
            (None, Some(definition), Some(schema)) => {
                Kind::load_kept(KEPT, &definition.value, &schema).map(Kind::named_as_kept)
            }
            _ => {
                let reason = "a kind is given by its `file`, or by `definition` and `schema`";
                return Err(wrong(None, reason.to_owned()));
            }
        };
        let kind = kind.map_err(in_its_file)?;
        let its_file = kind.file().to_owned();
        if given == Given::Anew {
            kind.expect_taken_now().map_err(in_its_file)?;
            kinds.expect_own_file(&its_file, &kind).map_err(in_its_file)?;
        }
        kinds.add(&its_file, kind).map_err(in_its_file)?;
    }
    Ok(())
}

/// What is wrong with a kind is told at its own line.
fn in_its_file(KindError { file, line, reason }: KindError) -> ConfigError {
    ConfigError { file, line, reason, subject: Subject::Kind }
}

/// Writes the kinds of a user's own as [`add`] reads them.
pub(super) fn write(kinds: &Kinds, out: &mut String) {
    if kinds.own().next().is_none() {
        return;
    }
    out.push_str("kinds:\n");
    for kind in kinds.own() {
        let definition = double_quoted(&kind.source().definition);
        let schema = double_quoted(&kind.source().schema);
        // Writing to a string does not fail.
        let _ = write!(out, "  - definition: {definition}\n    schema: {schema}\n");
    }
}
