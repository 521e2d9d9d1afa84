//! W3C trace context: which larger piece of work an event belongs to.
//!
//! What must stay true: no id is all zeros. Deliberately not here: randomness (ids come from the
//! caller), sampling (flags are read and not kept), `tracestate`.

use std::fmt;

use super::hash::{parse_hex, push_hex};

/// The text is not a `traceparent` that W3C Trace Context allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a W3C traceparent (00-<32 hex>-<16 hex>-<2 hex>, lower case, ids not all zero)")]
pub struct NotATraceparent;

macro_rules! trace_part {
    ($(#[$doc:meta])* $name:ident, $bytes:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name([u8; $bytes]);

        impl $name {
            /// An id from random bytes. All zeros mean "none" in W3C's format, so that one draw
            /// becomes the id 1.
            #[must_use]
            pub fn from_random(mut bytes: [u8; $bytes]) -> Self {
                if bytes == [0; $bytes] {
                    bytes[$bytes - 1] = 1;
                }
                $name(bytes)
            }

            /// Reads lower-case hexadecimal digits.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                parse_hex(text).filter(|bytes| *bytes != [0; $bytes]).map($name)
            }

            /// Its bytes.
            #[must_use]
            pub fn as_bytes(&self) -> &[u8; $bytes] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut text = String::with_capacity(2 * $bytes);
                push_hex(&mut text, &self.0);
                f.write_str(&text)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }
    };
}

trace_part! {
    /// A trace: all that follows from one beginning. Kept for a record's life.
    TraceId, 16
}
trace_part! {
    /// One step of a trace: one event.
    SpanId, 8
}

/// Where an event stands in its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The trace.
    pub trace_id: TraceId,
    /// This step of it.
    pub span_id: SpanId,
    /// The step that caused this one.
    pub parent: Option<SpanId>,
}

impl Trace {
    /// A new trace and its first step, from random bytes.
    #[must_use]
    pub fn new(trace_id: [u8; 16], span_id: [u8; 8]) -> Self {
        let (trace_id, span_id) = (TraceId::from_random(trace_id), SpanId::from_random(span_id));
        Trace { trace_id, span_id, parent: None }
    }

    /// The next step after this one, from random bytes.
    #[must_use]
    pub fn child(&self, span_id: [u8; 8]) -> Self {
        let span_id = SpanId::from_random(span_id);
        Trace { trace_id: self.trace_id, span_id, parent: Some(self.span_id) }
    }

    /// The sender's trace and step from a `traceparent` value; continue it with
    /// [`child`](Self::child). Later versions than 00 are read as far as 00 defines them, as W3C
    /// asks.
    ///
    /// # Errors
    /// Where the value is not a `traceparent`.
    pub fn parse(traceparent: &str) -> Result<Self, NotATraceparent> {
        let mut parts = traceparent.splitn(5, '-');
        let mut part = || parts.next().ok_or(NotATraceparent);
        let [version] = parse_hex(part()?).ok_or(NotATraceparent)?;
        let trace_id = TraceId::parse(part()?).ok_or(NotATraceparent)?;
        let span_id = SpanId::parse(part()?).ok_or(NotATraceparent)?;
        let [_flags] = parse_hex::<1>(part()?).ok_or(NotATraceparent)?;
        let more = parts.next().is_some();
        if version == 0xff || (version == 0 && more) {
            return Err(NotATraceparent);
        }
        Ok(Trace { trace_id, span_id, parent: None })
    }
}

impl fmt::Display for Trace {
    /// As a `traceparent` value with the sampled flag, to be handed on.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-01", self.trace_id, self.span_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_is_continued() {
        let given = Trace::parse(GIVEN).unwrap();
        let ours = given.child([7; 8]);
        assert_eq!(ours.trace_id.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(ours.parent.unwrap().to_string(), "00f067aa0ba902b7");
        assert_eq!(given.to_string(), GIVEN);
        assert_eq!(ours.to_string(), "00-4bf92f3577b34da6a3ce929d0e0e4736-0707070707070707-01");
    }

    #[test]
    fn later_versions_may_carry_more() {
        assert!(Trace::parse(&format!("01{}-what-the-future-brings", &GIVEN[2..])).is_ok());
        assert!(Trace::parse(&format!("01{}", &GIVEN[2..])).is_ok());
    }

    #[test]
    fn what_is_no_traceparent() {
        for text in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
            " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(Trace::parse(text), Err(NotATraceparent), "{text:?}");
        }
    }

    #[test]
    fn no_id_is_all_zeros() {
        let trace = Trace::new([0; 16], [0; 8]);
        assert!(Trace::parse(&trace.to_string()).is_ok());
    }
}
