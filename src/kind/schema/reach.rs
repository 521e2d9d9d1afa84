//! How deep judging by a JSON Schema may go, and on whose stack it is done.
//!
//! What must stay true: no text and no schema overflows a thread's stack, which would end the
//! daemon. The library calls itself for each schema that it enters, and has no limit of its own: at
//! each level of a text a chain of references may be as long as the schema. So the longest way is
//! reckoned, never too short, and where a thread may not have that much stack another one is made
//! that has.

use std::collections::HashSet;
use std::panic::resume_unwind;
use std::thread;

use serde_json::Value;

/// What a schema that is entered takes of the stack, with the errors that tell of it. Without optimisation
/// it is more.
const ENTERED_BYTES: usize = if cfg!(debug_assertions) { 8 << 10 } else { 1 << 10 };

/// What any thread that judges has left: the least stack of one is 1 MiB.
const AT_HAND_BYTES: usize = 512 << 10;

/// The most schemas that a text may lead through, as far as that is reckoned: they take 256 MiB of a stack, of
/// which only what is used is memory. In the worst case all are compared with each other, in some seconds.
const ENTERED_MAX: usize = 256 << 10;

/// The deepest that a reader of YAML or JSON lets a text be.
const TEXT_DEPTH_MAX: usize = 128;

/// Schemas that a standard one, which the library brings, may lead through at one value.
const OF_STANDARD: usize = 64;

/// Why something was not judged to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unjudged {
    /// The steps were not enough, or no stack is large enough.
    TooMuch,
    /// It takes a thread of its own, and just now there is none.
    NoThread,
}

/// How many schemas may be entered at one value of a text, one within the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reach(usize);

/// What a schema says of where it leads.
#[derive(Default)]
struct Seen<'s> {
    /// Each is followed once at one value at most: the library breaks circles.
    targets: HashSet<&'s str>,
    /// To each of these one and the same name may lead.
    anchors: usize,
    /// By what one and the same name may mean several.
    bases: usize,
    depth: usize,
}

impl Reach {
    /// That of a schema.
    pub(in crate::kind) fn of(schema: &Value) -> Reach {
        let mut seen = Seen::default();
        seen.look(schema, 1);
        let foreign = seen.targets.iter().filter(|target| !target.starts_with('#')).count();
        let targets = seen.targets.len().saturating_mul(seen.bases.max(1));
        let ways = targets.saturating_add(seen.anchors).saturating_add(1);
        let own = ways.saturating_mul(seen.depth);
        Reach(own.saturating_add(foreign.saturating_mul(OF_STANDARD)))
    }

    /// The schemas that a text of this depth may lead through.
    fn entered(self, depth: usize) -> usize {
        self.0.saturating_mul(depth.saturating_add(1))
    }

    /// Runs `judge`, which judges `value`, where there is stack for it.
    pub(in crate::kind) fn run<T: Send>(
        self,
        value: &Value,
        judge: impl FnOnce() -> Result<T, Unjudged> + Send,
    ) -> Result<T, Unjudged> {
        let are_few = |entered: usize| entered <= AT_HAND_BYTES / ENTERED_BYTES;
        if are_few(self.entered(TEXT_DEPTH_MAX)) {
            return judge();
        }
        let entered = self.entered(depth(value));
        if are_few(entered) {
            return judge();
        }
        if entered > ENTERED_MAX {
            return Err(Unjudged::TooMuch);
        }
        thread::scope(|scope| {
            let builder = thread::Builder::new().name("judging".into());
            let started = builder.stack_size(entered * ENTERED_BYTES + AT_HAND_BYTES);
            let judging = started.spawn_scoped(scope, judge).map_err(|_| Unjudged::NoThread)?;
            judging.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }
}

impl<'s> Seen<'s> {
    fn look(&mut self, at: &'s Value, depth: usize) {
        self.depth = self.depth.max(depth);
        match at {
            Value::Object(all) => {
                for (key, value) in all {
                    match (key.as_str(), value) {
                        ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target)) => {
                            self.targets.insert(target);
                        }
                        ("$dynamicAnchor" | "$recursiveAnchor", _) => self.anchors += 1,
                        ("$id", _) => self.bases += 1,
                        _ => {}
                    }
                    self.look(value, depth + 1);
                }
            }
            Value::Array(all) => all.iter().for_each(|value| self.look(value, depth + 1)),
            _ => {}
        }
    }
}

/// How deep lists and mappings lie in each other.
fn depth(value: &Value) -> usize {
    match value {
        Value::Object(all) => 1 + all.values().map(depth).max().unwrap_or(0),
        Value::Array(all) => 1 + all.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kind::Schema;

    /// A chain of as many schemas, at the end of which it begins anew for what lies in a list.
    fn chain(length: usize, link: impl Fn(Value) -> Value) -> Schema {
        let next = |nth: usize| json!({"$ref": format!("#/$defs/{nth}")});
        let mut defs: serde_json::Map<String, Value> =
            (0..length).map(|nth| (nth.to_string(), link(next(nth + 1)))).collect();
        defs.insert(length.to_string(), json!({"items": next(0), "type": ["array", "integer"]}));
        Schema::compile(&json!({"$defs": defs, "$ref": "#/$defs/0"}).to_string()).unwrap()
    }

    fn lists(depth: usize, inner: Value) -> Value {
        (0..depth).fold(inner, |inner, _| json!([inner]))
    }

    // P3.5
    #[test]
    fn no_chain_of_references_ends_a_stack() {
        let links: [fn(Value) -> Value; 6] = [
            |next| next,
            |next| json!({"allOf": [next, {}]}),
            |next| json!({"anyOf": [next, false]}),
            |next| json!({"oneOf": [next, false]}),
            |next| json!({"not": {"not": next}}),
            |next| json!({"if": true, "then": next, "unevaluatedItems": true}),
        ];
        // As little as any thread has that judges.
        let on_little = |run: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap().join().unwrap();
        };
        for link in links {
            let schema = chain(40, link);
            on_little(Box::new(move || {
                for inner in [json!(1), json!("x")] {
                    let text = lists(60, inner.clone());
                    let fits = inner.is_number();
                    assert_eq!(schema.judge(&text).is_ok(), fits, "{inner}");
                    let so_far = schema.judge_so_far(&text, None);
                    assert!(so_far.is_ok() || !fits, "{inner}: {so_far:?}");
                }
            }));
        }
    }

    #[test]
    fn what_reaches_too_far_for_any_stack_is_refused() {
        let schema = chain(3000, |next| next);
        assert_eq!(schema.judge(&json!([[1]])), Ok(()));
        let fault = schema.judge(&lists(120, json!(1))).unwrap_err();
        assert!(fault.reason.contains("goes too deep"), "{}", fault.reason);
        assert_eq!(schema.judge_so_far(&lists(120, json!(1)), None), Ok(()));
    }

    #[test]
    fn what_is_usual_takes_no_thread_of_its_own() {
        for kind in crate::kind::Kinds::default().all() {
            let reach = Reach::of(&kind.schema.source);
            let bytes = reach.0 * 7 * (1 << 10);
            assert!(bytes <= AT_HAND_BYTES, "{}: {bytes}", kind.name());
        }
    }
}
