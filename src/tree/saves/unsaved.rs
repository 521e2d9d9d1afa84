//! That a file was written to since it was last saved, and by whom.
//!
//! What must stay true: a child that merely inherited the descriptor of a program that still writes,
//! and closes it (as `exec` does), ends nothing.

/// What was written to a file and is not saved yet.
#[derive(Default)]
pub struct Unsaved {
    is_any: bool,
    /// The tables of open files that the writes came from; `None` where the kernel does not say.
    by: Vec<Option<u64>>,
}

impl Unsaved {
    /// Notes a change that no writer is known of: of the size, or that the file was made.
    pub fn note_change(&mut self) {
        self.is_any = true;
    }

    /// Notes a write from this table of open files.
    pub fn note_write(&mut self, files: Option<u64>) {
        self.is_any = true;
        if !self.by.contains(&files) {
            self.by.push(files);
        }
    }

    /// Whether there is anything to save.
    pub fn is_any(&self) -> bool {
        self.is_any
    }

    /// Whether there is something to save, and a descriptor that is closed in this table of open
    /// files ends it.
    pub fn is_ended_by(&self, files: Option<u64>) -> bool {
        let is_by = |files| self.by.contains(&files);
        self.is_any && (files.is_none() || self.by.is_empty() || is_by(files) || is_by(None))
    }

    /// All of it is being saved, or given up.
    pub fn clear(&mut self) {
        self.is_any = false;
        self.by.clear();
    }
}
