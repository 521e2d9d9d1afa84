//! A parser's input that remembers whether the parser has looked at its end.
//!
//! What must stay true: as long as `ended` is false, everything the parser did rests on bytes
//! that are there, and so would happen again whatever bytes follow. That is the whole proof of
//! [`super::prefix()`]; a hook that lets the parser see the end unnoticed would break it.

use std::cell::Cell;

use granit_parser::{BorrowedInput, Input};

/// See the module.
pub(super) struct Watched<'a> {
    rest: &'a str,
    window: usize,
    ended: &'a Cell<bool>,
}

impl<'a> Watched<'a> {
    /// Reads `text`; sets `ended` once anything behind it is asked for.
    pub(super) fn new(text: &'a str, ended: &'a Cell<bool>) -> Self {
        Watched { rest: text, window: 0, ended }
    }

    fn seen(&self, c: Option<char>) -> char {
        c.unwrap_or_else(|| {
            self.ended.set(true);
            // The parser's sign of the end; a NUL in the text was refused before.
            '\0'
        })
    }

    fn advance(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let first = chars.next();
        self.rest = chars.as_str();
        first
    }
}

impl Input for Watched<'_> {
    fn lookahead(&mut self, count: usize) {
        // Nothing is fetched: only what the parser really looks at counts as seen.
        self.window = self.window.max(count);
    }

    fn buflen(&self) -> usize {
        self.window
    }

    fn bufmaxlen(&self) -> usize {
        16
    }

    fn raw_read_ch(&mut self) -> char {
        let c = self.advance();
        self.seen(c)
    }

    fn raw_read_non_breakz_ch(&mut self) -> Option<char> {
        if matches!(self.peek(), '\0' | '\n' | '\r') { None } else { self.advance() }
    }

    fn skip(&mut self) {
        self.advance();
    }

    fn skip_n(&mut self, count: usize) {
        for _ in 0..count {
            self.advance();
        }
    }

    fn peek(&self) -> char {
        self.seen(self.rest.chars().next())
    }

    fn peek_nth(&self, n: usize) -> char {
        self.seen(self.rest.chars().nth(n))
    }
}

impl BorrowedInput<'static> for Watched<'_> {
    fn slice_borrowed(&self, _start: usize, _end: usize) -> Option<&'static str> {
        None
    }
}
