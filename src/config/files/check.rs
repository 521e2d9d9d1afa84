//! What the content of a checked file must be: well-formed, and where a schema is named, what that
//! says.
//!
//! What must stay true: the beginning of a text that is valid as a whole is never refused.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock};

use crate::config::path_glob::FileGlob;
use crate::kind::json;
use crate::kind::{Fault, Schema};
use crate::limits::RECORD_BYTES_MAX;
use crate::record::{parse_any, place_in, prefix_any, well_formed, well_formed_so_far};
use crate::refusal::{Refusal, Rule, TextPlace};

/// The ready-made schemas: of the documents that agents keep in `scratchpad/`.
pub const SCHEMAS: &[(&str, &str)] = &[
    ("project", include_str!("schemas/project.v1.json")),
    ("collected_info", include_str!("schemas/collected_info.v1.json")),
    ("work_order", include_str!("schemas/work_order.v1.json")),
    ("implementation_result", include_str!("schemas/implementation_result.v1.json")),
    ("review_result", include_str!("schemas/review_result.v1.json")),
    ("controller_state", include_str!("schemas/controller_state.v1.json")),
];

/// The words that a ready-made schema allows in a field at its top.
#[must_use]
pub fn allowed(schema: &str, field: &str) -> Vec<String> {
    let text = SCHEMAS.iter().find(|(name, _)| *name == schema).map_or("", |(_, text)| text);
    let schema: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let words = schema["properties"][field]["enum"].as_array();
    words.into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

static COMPILED: LazyLock<Vec<(&'static str, Arc<Schema>)>> = LazyLock::new(|| {
    let compile = |(name, text): &(&'static str, &str)| {
        let schema = Schema::compile(text);
        let schema =
            // PROOF: part of the program, and compiled by a test.
            schema.unwrap_or_else(|(_, why)| unreachable!("the schema {name} is wrong: {why}"));
        (*name, Arc::new(schema))
    };
    SCHEMAS.iter().map(compile).collect()
});

/// The language of a checked file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Syntax {
    /// YAML: without a schema whatever is YAML 1.2; else one document, read as strictly as records are,
    /// but with anything at its top.
    Yaml,
    /// JSON.
    Json,
}

impl fmt::Display for Syntax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Syntax::Yaml => "yaml",
            Syntax::Json => "json",
        })
    }
}

/// What the content of the files of a glob must be.
#[derive(Clone, Debug)]
pub struct Check {
    /// The files.
    pub path: FileGlob,
    /// Their language.
    pub syntax: Syntax,
    /// The schema and its name.
    pub(super) schema: Option<(String, Arc<Schema>)>,
}

impl Check {
    /// A ready-made schema.
    pub(super) fn built_in(name: &str) -> Option<Arc<Schema>> {
        COMPILED.iter().find(|(known, _)| *known == name).map(|(_, schema)| Arc::clone(schema))
    }

    /// Judges a whole text.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn judge(&self, bytes: &[u8]) -> Result<(), Refusal> {
        let value = match self.syntax {
            Syntax::Yaml if self.schema.is_none() => {
                return well_formed(bytes).map_err(of_document);
            }
            Syntax::Yaml => parse_any(bytes).map_err(of_document)?,
            Syntax::Json => {
                require_size(bytes)?;
                json::read(bytes).map_err(|error| not_json(&error))?;
                if self.schema.is_none() {
                    return Ok(());
                }
                serde_json::from_slice(bytes).map_err(|error| not_json(&error))?
            }
        };
        let Some((name, schema)) = &self.schema else { return Ok(()) };
        schema.judge(&value).map_err(|fault| of_schema(bytes, name, fault))
    }

    /// Judges a text of which only the beginning is written.
    ///
    /// # Errors
    /// What no further byte can mend.
    pub fn judge_so_far(&self, bytes: &[u8]) -> Result<(), Refusal> {
        match self.syntax {
            Syntax::Yaml if self.schema.is_none() => well_formed_so_far(bytes).map_err(of_document),
            Syntax::Yaml => {
                let (said, last) = prefix_any(bytes).map_err(of_document)?;
                let (Some(said), Some((name, schema))) = (said, &self.schema) else {
                    return Ok(());
                };
                let judged = schema.judge_so_far(&said, last.as_deref());
                judged.map_err(|fault| of_schema(bytes, name, fault))
            }
            Syntax::Json if bytes.len() > crate::record::PREFIX_BYTES_MAX => Ok(()),
            Syntax::Json => {
                // A number that breaks off in its middle goes on with a digit.
                let breaks_off =
                    matches!(bytes, [.., b'0'..=b'9', b'e' | b'E'] | [.., b'.' | b'+' | b'-']);
                let text =
                    if breaks_off { [bytes, b"0"].concat().into() } else { Cow::from(bytes) };
                match json::read(&text) {
                    Err(error) if !error.is_eof() => Err(not_json(&error)),
                    // Nothing but blanks may follow what is whole.
                    Ok(()) if bytes.trim_ascii_end().ends_with(b"}") => self.judge(bytes),
                    _ => Ok(()),
                }
            }
        }
    }
}

/// What a schema refuses, with its place: JSON is YAML, so that places are found in the same way.
fn of_schema(bytes: &[u8], name: &str, fault: Fault) -> Refusal {
    let place = place_in(bytes, &fault.pointer);
    let refusal = of_document(Refusal { place, ..Refusal::from(fault) });
    let reason = format!("{} (schema {name})", refusal.reason);
    Refusal { reason, ..refusal }
}

/// What is said of a record's text, said of a checked file's.
fn of_document(refusal: impl Into<Refusal>) -> Refusal {
    let refusal = refusal.into();
    let told = |text: &str| text.replace("the record", "the document");
    Refusal { reason: told(&refusal.reason), remedy: told(&refusal.remedy), ..refusal }
}

fn require_size(bytes: &[u8]) -> Result<(), Refusal> {
    if bytes.len() <= RECORD_BYTES_MAX {
        return Ok(());
    }
    let reason = format!("a checked file has at most {RECORD_BYTES_MAX} bytes");
    Err(Refusal::new(Rule::TooLarge, reason, "keep large material in a file that is not checked"))
}

fn not_json(error: &serde_json::Error) -> Refusal {
    let text = error.to_string();
    // The place is told by itself.
    let what = text.split(" at line ").next().unwrap_or_default();
    let place = |n: usize| u32::try_from(n).ok().filter(|n| *n > 0);
    Refusal {
        place: place(error.line())
            .map(|line| TextPlace { line, column: place(error.column()).unwrap_or(1) }),
        ..Refusal::new(Rule::Syntax, format!("not JSON: {what}"), "mend it there, then save again")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(glob: &str, syntax: Syntax, schema: Option<&str>) -> Check {
        let schema = schema.map(|name| (name.to_owned(), Check::built_in(name).unwrap()));
        Check { path: FileGlob::parse(glob).unwrap(), syntax, schema }
    }

    /// The names that a schema requires, at the top and one level below.
    fn required(schema: &Value) -> Vec<&str> {
        let below = schema["properties"].as_object().into_iter().flat_map(|all| all.values());
        let lists = below.flat_map(|field| [&field["required"], &field["items"]["required"]]);
        let lists = std::iter::once(&schema["required"]).chain(lists);
        lists.filter_map(Value::as_array).flatten().filter_map(Value::as_str).collect()
    }

    #[test]
    fn the_table_of_ready_made_schemas_names_what_they_require() {
        let doc = include_str!("../../../docs/cli.md");
        for (name, text) in SCHEMAS {
            let start = format!("| `{name}` | ");
            let row = doc.lines().find(|line| line.starts_with(&start)).expect(name);
            let schema: Value = serde_json::from_str(text).unwrap();
            assert!(!required(&schema).is_empty(), "{name}");
            for field in required(&schema) {
                assert!(row.contains(&format!("`{field}`")), "{name}: {field}");
            }
        }
    }

    #[test]
    fn of_a_date_it_is_told_what_it_must_be() {
        let check = check("**", Syntax::Yaml, Some("project"));
        let such = "such as 2026-11-21 or 2026-11-21T10:30:00Z";
        for (value, said) in [
            ("x", "`createdAt` is `x`, not a date or a time"),
            ("2026-02-30", "`createdAt` is `2026-02-30`, not a date or a time"),
            ("5", "`createdAt` is a number, not text"),
        ] {
            let text = format!(
                "projectId: p\nname: n\ncreatedAt: {value}\nupdatedAt: 2026-11-21\nstatus: active\n"
            );
            let refusal = check.judge(text.as_bytes()).unwrap_err();
            assert_eq!(refusal.reason, format!("{said} (schema project)"));
            assert_eq!(refusal.remedy, format!("write `createdAt` as a date or a time, {such}"));
        }
    }

    #[test]
    fn no_beginning_of_a_valid_text_is_refused() {
        let yaml = "# c\n- a: 1\n  b: [x, \"y\\n\"]\n- |\n  text\n- &a {k: v}\n- *a\n";
        let any = "%TAG !e! tag:example.org,2026:\n---\n!e!x\n1: a\n\"1\": b\n? [k, l]\n: !own c\n<<: *d\n\
                   true: .inf\n...\n--- 12345678901234567890\n--- &r\nself: *r\n*r : x\n\"\\0\": ~\n";
        let any = any.replace("*d", "{d: e}");
        let json =
            "{\"a\": [1, 2.5e3, true, null, \"\\u00e4\\ud83d\\ude00ä\"], \"b\": {\"a\": -1}}\n";
        for (check, text) in [
            (check("**", Syntax::Yaml, None), yaml),
            (check("**", Syntax::Yaml, None), json),
            (check("**", Syntax::Json, None), json),
            (check("**", Syntax::Yaml, None), &any),
        ] {
            check.judge(text.as_bytes()).unwrap();
            for end in 0..=text.len() {
                let begun = &text.as_bytes()[..end];
                assert_eq!(check.judge_so_far(begun), Ok(()), "{begun:?}");
            }
        }
    }

    #[test]
    fn no_beginning_is_refused_of_what_a_schema_takes() {
        let schema = json!({"type": "object", "required": ["name", "parts"], "properties": {
            "name": {"type": "string", "pattern": "^[a-z]+( [a-z]+)+$", "minLength": 9},
            "status": {"enum": ["new", "in progress", ["x"]]},
            "parts": {"type": "array", "minItems": 2, "contains": {"required": ["b"]},
                      "items": {"oneOf": [{"type": "object", "required": ["b"]},
                                          {"type": "object", "required": ["c"]}]}},
        }});
        let schema = Arc::new(Schema::compile(&schema.to_string()).unwrap());
        let texts = [
            "name: ada\n  the\n  first\nstatus: in\n  progress\nparts:\n- c: 1\n- b: 2\n  d: [3,\n    4]\n",
            "{\"name\": \"ada the first\",\n\"parts\": [{\"c\": 1}, {\"b\": [2]}]}\n",
        ];
        for (text, syntax) in
            [(texts[0], Syntax::Yaml), (texts[1], Syntax::Yaml), (texts[1], Syntax::Json)]
        {
            let own = Some(("own".to_owned(), Arc::clone(&schema)));
            let check = Check { path: FileGlob::parse("**").unwrap(), syntax, schema: own };
            check.judge(text.as_bytes()).unwrap();
            for end in 0..=text.len() {
                let begun = &text[..end];
                assert_eq!(check.judge_so_far(begun.as_bytes()), Ok(()), "{syntax} {begun:?}");
            }
        }
    }

    #[test]
    fn what_no_further_line_can_mend_of_a_schema_is_refused_at_once() {
        let yaml = check("**", Syntax::Yaml, Some("project"));
        for wrong in [
            "status: nonsense\nprojectId: p\n",
            "status: nonsense\n",
            "projectId: 5\nname: n\n",
            "projectId: [5]\n",
            "createdAt: yesterday\nname: n\n",
            "name:\n  a: b\n",
            "{\"status\": \"nonsense\"}\n",
        ] {
            let refusal = yaml.judge_so_far(wrong.as_bytes()).expect_err(wrong);
            assert_eq!(refusal.rule, Rule::Schema, "{wrong}: {refusal}");
            assert!(refusal.reason.contains("(schema project)"), "{refusal}");
            assert_eq!(
                refusal.place.map(|place| place.line),
                Some(1 + u32::from(wrong.contains("  a")))
            );
        }
        // A further line could make these longer texts.
        for yet in ["projectId: 5\n", "createdAt: 2026\n", "name: n\nprojectId: p\n", "status: \n"]
        {
            assert_eq!(yaml.judge_so_far(yet.as_bytes()), Ok(()), "{yet}");
        }
        let json = check("**", Syntax::Json, Some("project"));
        assert!(json.judge_so_far(b"{\"status\": \"nonsense\"}").is_err());
        assert_eq!(json.judge_so_far(b"{\"status\": \"nonsense\""), Ok(()));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let yaml = check("**", Syntax::Yaml, None);
        let twice = yaml.judge(b"a: 1\nb: 2\na: 3\n").unwrap_err();
        assert_eq!((twice.place.unwrap().line, twice.rule), (3, Rule::Syntax), "{twice}");
        let refusal = yaml.judge(b"a: 1\nb: [\n").unwrap_err();
        assert_eq!(refusal.rule, Rule::Syntax);
        assert!(yaml.judge_so_far(b"a: 1\nb: ]\n").is_err());
        let json = check("**", Syntax::Json, None);
        let refusal = json.judge(b"{\"a\": 1,\n \"b\" 2}").unwrap_err();
        assert_eq!(refusal.place.unwrap().line, 2, "{refusal:?}");
        let twice = b"{\"a\": 1,\n \"b\": [{\"\\u0061\": 2, \"a\":";
        let refusal = json.judge_so_far(twice).unwrap_err();
        assert_eq!(refusal.place.unwrap().line, 2, "{refusal:?}");
        assert!(refusal.reason.contains("the key `a` is there twice"), "{refusal}");
        assert!(json.judge(b"{\"a\": 1, \"a\": 1}").is_err());
        assert!(json.judge_so_far(b"{]").is_err());
        assert!(json.judge(b"").is_err() && json.judge_so_far(b"").is_ok());
    }

    #[test]
    fn the_ready_made_schemas_take_what_the_documents_are() {
        let now = "2026-11-21T10:30:00Z";
        let documents: &[(&str, Value, &str)] = &[
            (
                "project",
                json!({"projectId": "001", "name": "N", "createdAt": now, "updatedAt": now,
                       "status": "active"}),
                "/status",
            ),
            (
                "collected_info",
                json!({"schemaVersion": "1.0.0", "projectId": "001", "status": "collecting",
                       // While it is collected, a project may have no name yet.
                       "project": {"name": "", "description": ""},
                       "requirements": {"functional": [{"id": "FR-001", "title": "T"}],
                                        "nonFunctional": [{"id": "NFR-001"}]},
                       "constraints": [], "assumptions": [], "dependencies": [],
                       "clarifications": [], "sources": [], "createdAt": now, "updatedAt": now,
                       "completedAt": now}),
                "/requirements/functional/0/id",
            ),
            (
                "work_order",
                json!({"orderId": "WO-1", "issueId": "I-1", "issueUrl": "https://example.org/1",
                       "createdAt": now, "priority": 0,
                       "context": {"sdsComponent": "S", "relatedFiles": [{"path": "a.rs", "reason": "r"}],
                                   "dependenciesStatus": [{"issueId": "I-0", "status": "closed"}]},
                       "acceptanceCriteria": ["works"]}),
                "/context/dependenciesStatus/0/status",
            ),
            (
                "implementation_result",
                json!({"orderId": "WO-1", "issueId": "I-1", "status": "completed",
                       "branchName": "b", "completedAt": now,
                       "changes": [{"filePath": "a.rs", "changeType": "modify", "linesAdded": 1,
                                    "linesRemoved": 0}],
                       "testsAdded": [{"filePath": "t.rs", "testCount": 2, "passed": 2}]}),
                "/changes/0/changeType",
            ),
            (
                "review_result",
                json!({"reviewId": "R-1", "prNumber": 7, "prUrl": "https://example.org/7",
                       "orderId": "WO-1", "issueId": "I-1", "decision": "approve",
                       "comments": [{"filePath": "a.rs", "line": 1, "severity": "info",
                                     "message": "m"}],
                       "reviewedAt": now}),
                "/comments/0/severity",
            ),
            (
                "controller_state",
                json!({"sessionId": "S", "projectId": "001", "currentPhase": "p",
                       "startedAt": now, "updatedAt": now,
                       "queue": {"pending": ["I-1"], "inProgress": [], "completed": [],
                                 "blocked": []},
                       "workers": [{"id": "w1", "status": "idle", "currentIssue": null,
                                    "startedAt": null, "completedTasks": 0}],
                       "totalIssues": 1, "completedIssues": 0, "failedIssues": 0}),
                "/workers/0/status",
            ),
        ];
        assert_eq!(documents.len(), SCHEMAS.len());
        for (name, document, field) in documents {
            let check = check("**", Syntax::Json, Some(name));
            check
                .judge(document.to_string().as_bytes())
                .unwrap_or_else(|why| panic!("{name}: {why}"));
            let mut wrong = document.clone();
            *wrong.pointer_mut(field).unwrap() = json!("nonsense!");
            let refusal = check.judge(wrong.to_string().as_bytes()).unwrap_err();
            assert_eq!(refusal.rule, Rule::Schema, "{name}");
            assert!(refusal.reason.contains(name), "{refusal}");
            for field in fields(document, String::new()) {
                let mut lacking = document.clone();
                let (above, last) = field.rsplit_once('/').unwrap();
                lacking.pointer_mut(above).unwrap().as_object_mut().unwrap().remove(last);
                let may_lack = FREE.contains(&last) && (*name, last) != RESULT_ENDS;
                let judged = check.judge(lacking.to_string().as_bytes());
                assert_eq!(judged.is_ok(), may_lack, "{name} lacks {field}: {judged:?}");
            }
        }
    }

    #[test]
    fn a_day_that_no_calendar_has_is_no_date() {
        let check = check("**", Syntax::Json, Some("project"));
        let judge = |date: &str| {
            let document = json!({"projectId": "001", "name": "N", "createdAt": "2026-11-21",
                                  "updatedAt": date, "status": "active"});
            check.judge(document.to_string().as_bytes())
        };
        for date in [
            "2026-01-31",
            "2026-04-30",
            "2024-02-29",
            "2000-02-29 23:59:60",
            "2026-02-28T00:00Z",
            "2026-12-09T10:30:00.123456+0530",
            "2026-12-19T10:30:00-23:59",
        ] {
            assert_eq!(judge(date), Ok(()), "{date}");
        }
        for date in [
            "2026-02-30",
            "2026-02-29",
            "1900-02-29",
            "2026-04-31T10:00:00Z",
            "2026-13-01",
            "2026-00-10",
            "2026-01-00",
            "2026-01-32",
            "2026-01-01T24:00:00Z",
            "2026-01-01T10:60:00Z",
            "2026-01-01T10:00:00+24:00",
        ] {
            let refusal = judge(date).unwrap_err();
            assert!(refusal.remedy.contains("2026-11-21T10:30:00Z"), "{date}: {refusal}");
        }
    }

    /// What a document may lack; all other fields that the documents above have are required.
    const FREE: &[&str] = &["schemaVersion", "completedAt", "sdsComponent", "passed", "title"];
    const RESULT_ENDS: (&str, &str) = ("implementation_result", "completedAt");

    /// The pointers of all fields of a document.
    fn fields(value: &Value, at: String) -> Vec<String> {
        let below: Vec<(String, &Value)> = match value {
            Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), value)).collect(),
            Value::Array(all) => all.iter().enumerate().map(|(n, v)| (n.to_string(), v)).collect(),
            _ => Vec::new(),
        };
        let mut found = Vec::new();
        for (key, below) in below {
            let pointer = format!("{at}/{key}");
            found.extend(fields(below, pointer.clone()));
            if value.is_object() {
                found.push(pointer);
            }
        }
        found
    }
}
