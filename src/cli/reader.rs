//! Whether somebody still reads what is printed.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::exit::Exit;

/// From now on the process ends, quietly, when the pipe that it prints to is closed: a command that
/// follows would hear of it at the next thing it prints only, and that may never come. Only for what
/// can be ended at any moment, as by Ctrl-C.
pub fn end_with_reader() {
    let watch = || {
        let out = std::io::stdout();
        // Nothing is asked for: poll(2) tells of errors and ends all the same.
        let ended = loop {
            match poll(&mut [PollFd::new(&out, PollFlags::empty())], None) {
                Err(Errno::INTR) => {}
                ready => break ready.is_ok(),
            }
        };
        if ended {
            std::process::exit(Exit::Done.code().into());
        }
    };
    // Without a thread the end is noticed later.
    let _ = std::thread::Builder::new().name("reader".into()).spawn(watch);
}
