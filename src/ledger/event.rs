//! One event and its line: what the engine gives, and the text that is hashed, kept and shown.
//!
//! What must stay true: `seal` writes its keys in sorted order, and nothing in it can fail.
//! Deliberately not here: reading a line back (readers take it as JSON; [`super::Verifier`] checks
//! it), and what an event means (kinds and the engine name events).

use std::borrow::Cow;
use std::fmt;

use crate::names::{AgentName, KindName, NameError, RecordId, StateName, TreePath, path_of_text};
use crate::numbers::{G, UnixNanos, Version};

use super::canonical::{push_integer, push_text};
use super::hash::{Hash, push_hex};
use super::payload::Payload;
use super::trace::Trace;

/// The form of a line; a line of another form has another name here.
pub const SCHEMA: &str = "workfs.event.v1";

/// This daemon's component of the vector clock: one daemon a store.
const DAEMON: &str = "d1";

macro_rules! word {
    (
        $(#[$doc:meta])*
        $name:ident { $($(#[$word_doc:meta])* $constant:ident = $text:literal,)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Cow<'static, str>);

        impl $name {
            $($(#[$word_doc])* pub const $constant: $name = $name(Cow::Borrowed($text));)*

            /// Checks a word that a kind or the configuration brings: the grammar of state names.
            ///
            /// # Errors
            /// Which rule is broken.
            pub fn new(text: impl AsRef<str>) -> Result<Self, NameError> {
                let word = StateName::new(text)?;
                Ok($name(Cow::Owned(word.into())))
            }

            /// As text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

word! {
    /// What happened, in the past tense. Kinds bring their own for transitions.
    EventName {
        /// A record came into being.
        CREATED = "created",
        /// A record-like file that is not valid (yet) was saved.
        DRAFTED = "drafted",
        /// A record has a new version.
        SAVED = "saved",
        /// A record was flagged, and is right by the rules that hold now.
        MENDED = "mended",
        /// A record has an owner.
        CLAIMED = "claimed",
        /// A record changed its state, and no other name fits.
        MOVED = "moved",
        /// An owner gave a record back.
        RELEASED = "released",
        /// A record reached a state of success.
        COMPLETED = "completed",
        /// A record reached a state of failure.
        FAILED = "failed",
        /// A record was removed.
        REMOVED = "removed",
        /// A draft has another name.
        RENAMED = "renamed",
        /// A record was brought in by `import`.
        IMPORTED = "imported",
        /// A record was moved out of its workspace and is a plain file now.
        LEFT = "left",
        /// A lease is over.
        EXPIRED = "expired",
        /// A record or a file is again what it was.
        RESTORED = "restored",
        /// A workspace or a lane was made, or an agent registered.
        REGISTERED = "registered",
        /// A lease will end soon.
        LEASE_ENDING = "lease_ending",
        /// A record does not go on, and somebody should look.
        ESCALATED = "escalated",
        /// Somebody tried what role or ownership forbids.
        FORBIDDEN = "forbidden",
        /// A draft that nobody mended was put aside.
        PUT_ASIDE = "put_aside",
        /// An agent is none any more.
        UNREGISTERED = "unregistered",
    }
}

word! {
    /// In which role somebody acts.
    Role {
        /// Claims and does records.
        AGENT = "agent",
        /// Moves records between agents.
        COORDINATOR = "coordinator",
        /// Works on records, reads inventory.
        BUILDER = "builder",
        /// Hands out work, owns inventory.
        MANAGER = "manager",
        /// As a manager, above several.
        SUPERVISOR = "supervisor",
        /// Reads only.
        OBSERVER = "observer",
        /// May do all that the lifecycle allows.
        OPERATOR = "operator",
        /// The daemon itself: expiry, handoffs, archive.
        DAEMON = "daemon",
    }
}

/// Who did it. Only name, role and uid count; mount and pid are labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The agent, from the mount or the socket's configuration.
    pub name: AgentName,
    /// In which role.
    pub role: Role,
    /// The user, as the kernel or the socket's peer credentials say.
    pub uid: u32,
    /// Through which mount; none for the socket and for the daemon itself.
    pub mount: Option<u32>,
    /// Which process, where it could be known.
    pub pid: Option<u32>,
}

/// An event before it has its place in the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub name: EventName,
    /// In which workspace.
    pub workspace: Option<TreePath>,
    /// To a record of which kind.
    pub kind: Option<KindName>,
    /// To which record.
    pub id: Option<RecordId>,
    /// Who did it.
    pub actor: Actor,
    /// The record's version before.
    pub before: Option<Version>,
    /// The record's version after.
    pub after: Option<Version>,
    /// What more there is to say.
    pub payload: Payload,
    /// Where it stands in its trace.
    pub trace: Trace,
    /// The caller's key against doing something twice.
    pub idempotency_key: Option<String>,
}

/// An event in its place: the line that is kept, and its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// The place.
    pub g: G,
    /// Canonical JSON, without a newline at the end or anywhere in it.
    pub line: String,
    /// The SHA-256 of `line`, for the next event.
    pub hash: Hash,
}

/// Writes the line of `event` as number `g`, after the event whose hash is `prev`.
#[must_use]
pub fn seal(event: &Event, g: G, at: UnixNanos, prev: &Hash) -> Sealed {
    let actor = &event.actor;
    let trace = &event.trace;
    let mut line = Line::with_capacity(800 + event.payload.as_str().len());
    // In the order of the keys, which is what makes the text canonical.
    line.word("actor", actor.name.as_str());
    line.word("at", &at.rfc3339());
    line.word("event", event.name.as_str());
    line.count("g", g.0);
    line.word_if("id", event.id.as_ref().map(RecordId::as_str));
    if let Some(key) = &event.idempotency_key {
        line.key("idempotency_key");
        push_text(&mut line.0, key);
    }
    line.word_if("kind", event.kind.as_ref().map(KindName::as_str));
    line.count_if("mount", actor.mount.map(u64::from));
    if let Some(parent) = &trace.parent {
        line.hex("parent_span_id", parent.as_bytes());
    }
    line.key("payload");
    line.0.push_str(event.payload.as_str());
    line.hex("payload_hash", event.payload.hash().as_bytes());
    line.count_if("pid", actor.pid.map(u64::from));
    line.hex("prev_event_hash", prev.as_bytes());
    line.word("role", actor.role.as_str());
    line.word("schema", SCHEMA);
    line.hex("span_id", trace.span_id.as_bytes());
    line.hex("trace_id", trace.trace_id.as_bytes());
    line.count("uid", u64::from(actor.uid));
    line.key("vector_clock");
    line.0.push('{');
    line.count(DAEMON, g.0);
    line.0.push('}');
    line.count_if("version_after", event.after.map(|version| version.0));
    line.count_if("version_before", event.before.map(|version| version.0));
    if let Some(workspace) = &event.workspace {
        line.key("workspace");
        push_text(&mut line.0, &workspace.to_string());
    }
    line.0.push('}');
    let line = line.0;
    Sealed { g, hash: Hash::of(&line), line }
}

/// A line being written.
struct Line(String);

impl Line {
    fn with_capacity(bytes: usize) -> Self {
        let mut text = String::with_capacity(bytes);
        text.push('{');
        Line(text)
    }

    fn key(&mut self, key: &'static str) {
        if !self.0.ends_with('{') {
            self.0.push(',');
        }
        self.0.push('"');
        self.0.push_str(key);
        self.0.push_str("\":");
    }

    /// A value whose grammar leaves nothing to escape or to normalize.
    fn word(&mut self, key: &'static str, word: &str) {
        debug_assert!(word.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\'));
        self.key(key);
        self.0.push('"');
        self.0.push_str(word);
        self.0.push('"');
    }

    fn word_if(&mut self, key: &'static str, word: Option<&str>) {
        if let Some(word) = word {
            self.word(key, word);
        }
    }

    /// The store's integers are i64, so a count above it cannot come; it would be cut.
    fn count(&mut self, key: &'static str, count: u64) {
        self.key(key);
        push_integer(&mut self.0, i64::try_from(count).unwrap_or(i64::MAX));
    }

    fn count_if(&mut self, key: &'static str, count: Option<u64>) {
        if let Some(count) = count {
            self.count(key, count);
        }
    }

    fn hex(&mut self, key: &'static str, bytes: &[u8]) {
        self.key(key);
        self.0.push('"');
        push_hex(&mut self.0, bytes);
        self.0.push('"');
    }
}

/// Whether a record's event, as a line has it, is a transition. Its name does not say so: a kind calls its
/// transitions as it likes, also like events of workfs's own; but they alone have where they led from.
#[must_use]
pub fn is_transition(event: &serde_json::Value) -> bool {
    event.pointer("/payload/from").is_some()
}

/// Whether a record's event of this name only tells of it, and leaves it as it is and where it is; `stays` is what an
/// event says of a lease that is over.
#[must_use]
pub fn only_tells(name: &str, is_transition: bool, stays: bool) -> bool {
    let tells = [EventName::LEASE_ENDING, EventName::ESCALATED];
    stays || !is_transition && tells.iter().any(|event| event.as_str() == name)
}

/// A text of an event, as a line has it; empty where there is none.
#[must_use]
pub fn field(event: &serde_json::Value, pointer: &str) -> String {
    event.pointer(pointer).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
}

/// The path that a text in an event stands for.
#[must_use]
pub fn path_of_ledger(text: &str) -> Option<TreePath> {
    TreePath::parse(path_of_text(text)?).ok()
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::canonical::canonical;
    use super::super::payload::Field;
    use super::*;
    use serde_json::Value;

    pub fn claim() -> Event {
        Event {
            name: EventName::CLAIMED,
            workspace: Some(TreePath::parse("work/collaboration").unwrap()),
            kind: Some(KindName::new("task").unwrap()),
            id: Some(RecordId::new("2026-11-21T1030-bob-write-the-ledger").unwrap()),
            actor: Actor {
                name: AgentName::new("bob").unwrap(),
                role: Role::AGENT,
                uid: 1000,
                mount: Some(3),
                pid: Some(4711),
            },
            before: Some(Version(1)),
            after: Some(Version(2)),
            payload: payload(),
            trace: Trace::new([7; 16], [9; 8]).child([5; 8]),
            idempotency_key: None,
        }
    }

    fn payload() -> Payload {
        Payload::of(&[
            ("attempt", 1_u64.into()),
            ("content_sha256", Hash::of("content").into()),
            ("from", "inbox".into()),
            ("owner", "bob".into()),
            ("path", "work/assigned/bob/2026-11-21T1030-bob-write-the-ledger.yaml".into()),
            ("size", 1397_u64.into()),
            ("to", "assigned".into()),
        ])
    }

    const AT: UnixNanos = UnixNanos(1_795_257_000_123_456_789);

    #[test]
    fn the_line_is_canonical_and_has_every_field() {
        let mut event = claim();
        event.idempotency_key = Some("cafe\u{301} \u{1b}[31m\n".to_owned());
        let sealed = seal(&event, G(7), AT, &Hash::ZERO);
        let value: Value = serde_json::from_str(&sealed.line).unwrap();
        assert_eq!(canonical(&value).unwrap(), sealed.line.as_bytes());
        let keys: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
        let wanted = "actor at event g id idempotency_key kind mount parent_span_id payload \
                      payload_hash pid prev_event_hash role schema span_id trace_id uid \
                      vector_clock version_after version_before workspace";
        assert_eq!(keys.join(" "), wanted);
        assert_eq!(value["at"], "2026-11-21T10:30:00.123456789Z");
        assert_eq!(value["vector_clock"]["d1"], 7);
        assert_eq!(value["payload_hash"], event.payload.hash().to_string());
        assert_eq!(value["idempotency_key"], "caf\u{e9} \u{1b}[31m\n");
        assert_eq!(sealed.hash, Hash::of(&sealed.line));
    }

    #[test]
    fn what_is_absent_is_left_out() {
        let mut event = claim();
        (event.workspace, event.kind, event.id) = (None, None, None);
        (event.before, event.after, event.trace.parent) = (None, None, None);
        (event.actor.mount, event.actor.pid) = (None, None);
        event.payload = Payload::default();
        let sealed = seal(&event, G(1), AT, &Hash::ZERO);
        let value: Value = serde_json::from_str(&sealed.line).unwrap();
        assert_eq!(canonical(&value).unwrap(), sealed.line.as_bytes());
        assert_eq!(value.as_object().unwrap().len(), 13);
    }

    #[test]
    fn hostile_names_neither_break_the_line_nor_steer_a_terminal() {
        let mut event = claim();
        let bytes = b"wo\nrk\x1b[2J/\xff\xfe/\xe2\x80\xaegnp.\"\\";
        let name = TreePath::parse(bytes).unwrap();
        event.payload = Payload::of(&[("path", Field::Text(&name.to_string()))]);
        event.workspace = Some(name);
        let line = seal(&event, G(1), AT, &Hash::ZERO).line;
        assert!(!line.contains(char::is_control), "{line:?}");
        assert!(!line.contains('\u{202e}'), "{line:?}");
        assert!(line.contains(r"\\xff\\xfe"), "{line}");
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(canonical(&value).unwrap(), line.as_bytes());
    }

    #[test]
    fn words_of_kinds_have_a_grammar() {
        assert_eq!(EventName::new("job_created").unwrap().as_str(), "job_created");
        assert_eq!(EventName::new("claimed").unwrap(), EventName::CLAIMED);
        assert!(EventName::new("a\nb").is_err());
        assert!(Role::new("").is_err());
    }

    /// `cargo test --release --lib seal_takes -- --ignored --nocapture`
    #[test]
    #[ignore = "a measurement"]
    fn seal_takes() {
        let event = claim();
        let rounds = 200_000_u32;
        let mut prev = Hash::ZERO;
        let timed = |what: &str, work: &mut dyn FnMut(u64)| {
            let mut best = std::time::Duration::MAX;
            for _ in 0..5 {
                let start = std::time::Instant::now();
                (0..u64::from(rounds)).for_each(&mut *work);
                best = best.min(start.elapsed());
            }
            println!("{what}: {:?}", best / rounds);
        };
        timed("seal", &mut |g| prev = seal(&event, G(g), UnixNanos(AT.0 + g as i64), &prev).hash);
        timed("payload", &mut |_| assert!(!payload().as_str().is_empty()));
        timed("payload hash", &mut |_| prev = event.payload.hash());
        timed("clone", &mut |_| assert!(event.clone().before.is_some()));
        timed("rfc3339", &mut |g| assert!(!UnixNanos(AT.0 + g as i64).rfc3339().is_empty()));
        let sealed = seal(&event, G(1), AT, &Hash::ZERO);
        timed("line hash", &mut |_| prev = Hash::of(&sealed.line));
        timed("verify", &mut |_| {
            let mut verifier = super::super::Verifier::new();
            verifier.push(&sealed.line).unwrap();
        });
        println!("{} bytes: {}", sealed.line.len(), sealed.line);
    }
}
