//! What judging by a JSON Schema may cost: the values are handed to the library through nodes that
//! count.
//!
//! What must stay true: a judgement ends after the steps that it was given, whatever schema and
//! text are, and whatever the machine does meanwhile, so that a text is judged in the same way each
//! time. A step is a look at a value; long texts, and errors with their paths, cost more than one.
//! The library has no limit of its own: alternatives that refer to each other double its work, and
//! the errors that it collects, with each level of a text. Nor can it be stopped, so a judgement is
//! left by unwinding.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, cmp};
use serde_json::{Map, Number, Value};

use super::reach::{Reach, Unjudged};

/// Bytes of a text that cost a step: comparing, counting or matching them takes as long as a look.
const BYTES_A_STEP: usize = 16;

/// What an error costs besides: it is kept with its places, some hundred bytes.
const ERROR_STEPS: usize = 64;

/// The steps that are left.
pub(super) struct Meter(Cell<usize>);

impl Meter {
    /// Runs `judge` on `value`, for at most `steps`, by a schema of that reach.
    pub(in crate::kind) fn run<T: Send>(
        (steps, reach): (usize, Reach),
        value: &Value,
        judge: impl FnOnce(Metered<'_>) -> T + Send,
    ) -> Result<T, Unjudged> {
        reach.run(value, || {
            let meter = Meter(Cell::new(steps));
            let node = Metered { value, meter: Some(&meter), path_bytes: 0 };
            // Nothing is left half done: what the library changes while it judges ends with the call.
            catch_unwind(AssertUnwindSafe(|| judge(node))).map_err(|cause| {
                match cause.downcast::<Unjudged>() {
                    Ok(why) => *why,
                    Err(panic) => resume_unwind(panic),
                }
            })
        })
    }

    fn take(&self, steps: usize) {
        match self.0.get().checked_sub(steps) {
            Some(left) => self.0.set(left),
            // Not a panic: no hook hears of it.
            None => resume_unwind(Box::new(Unjudged::TooMuch)),
        }
    }
}

/// A value in a judgement whose steps are counted.
#[derive(Clone)]
pub(super) struct Metered<'a> {
    value: &'a Value,
    /// None for a name, which the library has judged by itself: it was paid for with its member.
    meter: Option<&'a Meter>,
    /// Bytes of the path to it, which each error about it repeats.
    path_bytes: usize,
}

impl<'a> Metered<'a> {
    fn take(&self, steps: usize) {
        if let Some(meter) = self.meter {
            meter.take(steps);
        }
    }

    /// The value that is asked for.
    fn look(&self) -> &'a Value {
        self.take(1);
        self.value
    }

    /// The same, where all of a text is read.
    fn text(&self) -> Option<&'a str> {
        let text = self.look().as_str()?;
        self.take(text.len() / BYTES_A_STEP);
        Some(text)
    }

    fn below(&self, value: &'a Value, name_bytes: usize) -> Self {
        self.take(1 + name_bytes / BYTES_A_STEP);
        Metered { value, path_bytes: self.path_bytes + 1 + name_bytes, ..*self }
    }

    /// Hashes the value so that equal ones hash alike: members in any order, numbers as what they count.
    fn hash(&self, hasher: &mut impl Hasher, state: &RandomState) {
        match self.look() {
            Value::Null => hasher.write_u8(0),
            Value::Bool(is) => hasher.write_u8(1 + u8::from(*is)),
            Value::Number(number) => match whole(number) {
                Some(whole) => hasher.write_i128(whole),
                None => hasher.write_u64(number.as_f64().map_or(0, f64::to_bits)),
            },
            Value::String(_) => self.text().hash(hasher),
            Value::Array(all) => {
                hasher.write_usize(all.len());
                all.iter().for_each(|one| self.below(one, 0).hash(hasher, state));
            }
            Value::Object(all) => {
                let each = all.iter().map(|(name, value)| {
                    let mut hasher = state.build_hasher();
                    name.hash(&mut hasher);
                    self.below(value, name.len()).hash(&mut hasher, state);
                    hasher.finish()
                });
                hasher.write_u64(each.fold(0, u64::wrapping_add));
            }
        }
    }
}

/// The whole number that it is, however it is written.
fn whole(number: &Number) -> Option<i128> {
    number.as_i128().or_else(|| {
        let written = number.as_f64()?;
        // What is greater is whole, too, but its bits tell it from others as well.
        let is_whole = written.fract() == 0.0 && written.abs() < u64::MAX as f64;
        is_whole.then_some(written as i128)
    })
}

/// The values as the library is handed them.
pub(super) struct Counting;

impl Json for Counting {
    type Node<'a> = Metered<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(
        buffer: &mut Value,
        string: &str,
        judge: impl FnOnce(Metered<'_>) -> T,
    ) -> T {
        *buffer = Value::String(string.to_owned());
        judge(Metered { value: buffer, meter: None, path_bytes: 0 })
    }
}

impl<'a> Node<'a, Counting> for Metered<'a> {
    type Object = Members<'a>;
    type Array = Elements<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Members<'a>> {
        self.look().as_object().map(|all| Members { all, of: self.clone() })
    }

    fn as_array(&self) -> Option<Elements<'a>> {
        self.look().as_array().map(|all| Elements { all, of: self.clone() })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        self.text().map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        self.look().as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        self.look().as_bool()
    }

    fn is_null(&self) -> bool {
        self.look().is_null()
    }

    fn json_type(&self) -> JsonType {
        match self.look() {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn string_length(&self) -> Option<u64> {
        self.text().map(|text| text.chars().count() as u64)
    }

    fn equals_value(&self, expected: &Value) -> bool {
        // It ends where the two differ, so what the schema says bounds it.
        cmp::equal(self.look(), expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        // Asked for when an error is made of it.
        self.take(ERROR_STEPS + self.path_bytes / BYTES_A_STEP);
        Cow::Borrowed(self.value)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref(self.value) as usize))
    }
}

/// The members of a mapping.
pub(super) struct Members<'a> {
    all: &'a Map<String, Value>,
    of: Metered<'a>,
}

impl<'a> Object<'a, Counting> for Members<'a> {
    type Node = Metered<'a>;
    type MemberName = &'a str;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        self.all.len()
    }

    fn get(&self, key: &String) -> Option<Metered<'a>> {
        self.of.take(1);
        self.all.get(key).map(|value| self.of.below(value, key.len()))
    }

    fn members(&self) -> MembersIter<'a> {
        MembersIter { all: self.all.iter(), of: self.of.clone() }
    }
}

/// They, one after the other.
pub(super) struct MembersIter<'a> {
    all: serde_json::map::Iter<'a>,
    of: Metered<'a>,
}

impl<'a> Iterator for MembersIter<'a> {
    type Item = (&'a str, Metered<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.all.next()?;
        Some((name, self.of.below(value, name.len())))
    }
}

/// The elements of a list.
pub(super) struct Elements<'a> {
    all: &'a [Value],
    of: Metered<'a>,
}

impl<'a> Array<'a, Counting> for Elements<'a> {
    type Node = Metered<'a>;
    type ElementsIter = ElementsIter<'a>;

    fn len(&self) -> usize {
        self.all.len()
    }

    fn elements(&self) -> ElementsIter<'a> {
        ElementsIter { all: self.all.iter(), of: self.of.clone() }
    }

    /// Not the library's own: to that all lists of empty lists hash alike, and it compares each with each.
    fn is_unique(&self) -> bool {
        let state = RandomState::new();
        let mut seen: HashMap<u64, Vec<&Value>> = HashMap::with_capacity(self.all.len());
        self.elements().all(|element| {
            let mut hasher = state.build_hasher();
            element.hash(&mut hasher, &state);
            let alike = seen.entry(hasher.finish()).or_default();
            let is_new = alike.iter().all(|other| !cmp::equal(element.look(), other));
            alike.push(element.value);
            is_new
        })
    }
}

/// They, one after the other.
pub(super) struct ElementsIter<'a> {
    all: std::slice::Iter<'a, Value>,
    of: Metered<'a>,
}

impl<'a> Iterator for ElementsIter<'a> {
    type Item = Metered<'a>;

    fn next(&mut self) -> Option<Metered<'a>> {
        self.all.next().map(|value| self.of.below(value, 0))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kind::Schema;

    fn judge(schema: &Value, value: &Value) -> Result<(), String> {
        let schema = Schema::compile(&schema.to_string()).unwrap();
        // Nothing that may yet be mended is refused before it is whole, whatever that costs.
        let so_far = schema.judge_so_far(value, None);
        let whole = schema.judge(value);
        assert!(whole.is_err() || so_far.is_ok(), "{so_far:?}");
        whole.map_err(|fault| fault.reason)
    }

    fn lists(depth: usize) -> Value {
        (0..depth).fold(json!(1), |inner, _| json!([inner]))
    }

    // P3.5
    #[test]
    fn alternatives_that_refer_to_themselves_cost_no_more_than_their_steps() {
        let below = |one: Value| {
            json!([{"type": "string"}, {"type": "array", "items": one},
                   {"type": "array", "items": one, "minItems": 0}])
        };
        let by_ref = json!({"$defs": {"a": {"anyOf": below(json!({"$ref": "#/$defs/a"}))}},
                            "$ref": "#/$defs/a"});
        let one_of = json!({"$defs": {"a": {"oneOf": below(json!({"$ref": "#/$defs/a"}))}},
                            "$ref": "#/$defs/a"});
        let dynamic = json!({"$id": "http://a/a", "$dynamicAnchor": "a",
                             "anyOf": below(json!({"$dynamicRef": "#a"}))});
        for schema in [by_ref, one_of, dynamic] {
            let shallow = judge(&schema, &lists(3)).unwrap_err();
            assert!(shallow.contains("not valid under any"), "{shallow}");
            let deep = judge(&schema, &lists(60)).unwrap_err();
            assert!(deep.contains("does not fit the schema"), "{deep}");
        }
        let mut chain = Map::from_iter([("40".to_owned(), json!({"type": "string"}))]);
        for nth in 0..40 {
            let next = json!({"$ref": format!("#/$defs/{}", nth + 1)});
            chain.insert(nth.to_string(), json!({"anyOf": [next, next]}));
        }
        let chain = json!({"$defs": chain, "$ref": "#/$defs/0"});
        let wide = judge(&chain, &json!(1)).unwrap_err();
        assert!(wide.contains("takes more than 8000000 steps"), "{wide}");
    }

    // P3.5
    #[test]
    fn an_error_costs_what_its_path_takes() {
        let schema = json!({"anyOf": [{"additionalProperties": {"items": {"type": "string"}}}]});
        let long = Map::from_iter([("k".repeat(500_000), Value::from(vec![1; 200_000]))]);
        let told = judge(&schema, &Value::Object(long)).unwrap_err();
        assert!(told.contains("does not fit the schema"), "{told}");
    }

    // P3.9
    #[test]
    fn the_largest_lists_that_a_text_holds_are_judged() {
        let numbers = Value::from((0..500_000).map(|nth| nth % 10).collect::<Vec<u32>>());
        let each = json!({"items": {"type": "integer", "minimum": 0, "maximum": 9}});
        assert_eq!(judge(&each, &numbers), Ok(()));
        let text = Value::from("a".repeat(crate::limits::RECORD_BYTES_MAX));
        assert_eq!(judge(&json!({"pattern": "^(a|aa)+$", "minLength": 9}), &text), Ok(()));
    }

    // P3.5
    #[test]
    fn what_is_to_be_unique_is_compared_by_what_it_is() {
        let unique = json!({"uniqueItems": true});
        for twice in [
            json!([1, 2, 1.0]),
            json!([0, -0.0]),
            json!([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}]),
            json!(["x", null, [], "x"]),
            json!([1e300, 1e300]),
        ] {
            assert!(judge(&unique, &twice).is_err(), "{twice}");
        }
        for once in [
            json!([]),
            json!([1, true, "1", [1], {"1": 1}, null, false, 0, 1.5]),
            json!([[], [[]], [[], []], [[[]]], {}]),
            json!([u64::MAX, u64::MAX - 1, i64::MIN, i64::MIN + 1]),
        ] {
            assert_eq!(judge(&unique, &once), Ok(()), "{once}");
        }
        // To the library all of these hash alike.
        let tree = |nth: u32| {
            (0..16).fold(json!([]), |inner, bit| match nth >> bit & 1 {
                0 => json!([inner]),
                _ => json!([inner, []]),
            })
        };
        let trees = (0..25_000).map(tree).collect::<Vec<_>>();
        assert_eq!(judge(&unique, &Value::from(trees)), Ok(()));
        let great = (0..50_000).map(|nth| (1 << 63) + nth).collect::<Vec<u64>>();
        assert_eq!(judge(&unique, &Value::from(great)), Ok(()));
    }
}
