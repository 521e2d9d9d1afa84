//! Starting the threads of the tree.
//!
//! What must stay true: who starts one goes on where there can be none; tests try that with
//! `Start::none`.

use std::io;

/// What a thread does.
pub(super) type Work = Box<dyn FnOnce() + Send>;

/// How threads are started.
pub(super) struct Start(fn(&str, Work) -> io::Result<()>);

impl Default for Start {
    fn default() -> Start {
        Start(|name, work| {
            let thread = std::thread::Builder::new().name(name.to_owned());
            thread.spawn(work).map(drop)
        })
    }
}

impl Start {
    /// Starts one of this name.
    ///
    /// # Errors
    /// There can be no thread.
    pub fn thread(&self, name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        (self.0)(name, Box::new(work))
    }

    /// As where there can be none.
    #[cfg(test)]
    pub fn none() -> Start {
        Start(|_, _| Err(io::ErrorKind::WouldBlock.into()))
    }
}
