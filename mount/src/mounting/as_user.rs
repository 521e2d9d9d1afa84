//! Doing something with the rights of another user: what that user may not do is not done.
//!
//! What must stay true: the user is changed only of a thread that ends with it. Deliberately not
//! here: whose rights something needs.

use std::io;
use std::thread::{Builder, scope};

use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// Does something as that user, who is in no other groups.
///
/// # Errors
/// If this process may not become that user.
pub fn as_user<T: Send>(uid: u32, gid: u32, act: impl FnOnce() -> T + Send) -> io::Result<T> {
    scope(|scope| {
        let acts = || become_user(uid, gid).map(|()| act());
        let thread = Builder::new().name("as-user".into()).spawn_scoped(scope, acts)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Makes the calling thread that user's, for good.
pub(crate) fn become_user(uid: u32, gid: u32) -> io::Result<()> {
    // What means "leave it" to the kernel is nobody.
    if uid == u32::MAX || gid == u32::MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    Ok(set_thread_res_uid(uid, uid, uid)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_done_as_the_user_is() {
        let who = || rustix::process::geteuid().as_raw();
        let own = who();
        if own == 0 {
            let secret = tempfile::NamedTempFile::new().unwrap();
            let read = || std::fs::read(secret.path()).map_err(|error| error.kind());
            let found = as_user(64_001, 64_002, || (who(), read()));
            assert_eq!(found.unwrap(), (64_001, Err(io::ErrorKind::PermissionDenied)));
            assert!(read().is_ok());
        } else {
            assert!(as_user(0, 0, who).is_err());
        }
        assert!(as_user(u32::MAX, 0, who).is_err());
        assert_eq!(who(), own);
    }
}
