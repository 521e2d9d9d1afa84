//! Whether standard output can take anything.
//!
//! What must stay true: this is looked at before `main`. Rust's library opens /dev/null there in place of a
//! closed descriptor, and takes what cannot be written for written. Deliberately not here: what is
//! printed (`output`).

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Nothing can be written to it: it is closed, or open for reading only.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// What is called before `main`.
// SAFETY: what this section has is pointers to such functions, each of which is called once; and it needs nothing that
// the library makes ready before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: it only asks, and a descriptor that is not there is an answer, too.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFL) };
    let is_open = flags != -1 && flags & libc::O_PATH == 0;
    let takes = is_open && flags & libc::O_ACCMODE != libc::O_RDONLY;
    CLOSED.store(!takes, Ordering::Relaxed);
}

/// Fails as write(2) would.
pub fn expect_open() -> io::Result<()> {
    match CLOSED.load(Ordering::Relaxed) {
        true => Err(io::Error::from_raw_os_error(libc::EBADF)),
        false => Ok(()),
    }
}
