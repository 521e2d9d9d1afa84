//! Failures of the benchmark: a sentence for whoever runs it.

/// What went wrong, in words.
pub type Outcome<T> = Result<T, String>;

/// Says what was being done when something failed.
pub trait During<T> {
    /// Prefixes the failure with `what`.
    fn during(self, what: impl FnOnce() -> String) -> Outcome<T>;
}

impl<T, E: std::fmt::Display> During<T> for Result<T, E> {
    fn during(self, what: impl FnOnce() -> String) -> Outcome<T> {
        self.map_err(|error| format!("{}: {error}", what()))
    }
}
