//! What is said of a read of the store's files that the disk does not answer.
//!
//! SQLite takes EIO for a broken file system, and what it then reads for damage (`SQLITE_IOERR_CORRUPTFS`): a
//! store on a disk that comes back would have been called damaged. It is a failure, as that of a write is.

use std::ffi::{c_int, c_void};
use std::ptr;

use parking_lot::Mutex;
use rusqlite::ffi::{self, sqlite3_file, sqlite3_io_methods};

/// What SQLite is told of a read that ended so.
pub(super) fn told(code: c_int) -> c_int {
    match code {
        ffi::SQLITE_IOERR_CORRUPTFS => ffi::SQLITE_IOERR_READ,
        code => code,
    }
}

/// The methods of a file but for this one, and those that it has from SQLite's default.
#[repr(C)]
struct Methods {
    ours: sqlite3_io_methods,
    original: &'static sqlite3_io_methods,
}

/// One for each way of locking, as the default has them.
static KNOWN: Mutex<Vec<&'static Methods>> = Mutex::new(Vec::new());

/// Has the reads of a file told so.
///
/// # Safety
/// The default has opened `file` just now, and set its methods, which are static.
pub(super) unsafe fn tell(file: *mut sqlite3_file) {
    // SAFETY: as promised by the caller.
    let original: &'static sqlite3_io_methods = unsafe { &*(*file).pMethods };
    let mut known = KNOWN.lock();
    let found = known.iter().find(|methods| ptr::eq(methods.original, original)).copied();
    let methods = found.unwrap_or_else(|| {
        let ours = sqlite3_io_methods { xRead: Some(read), ..*original };
        let methods: &'static Methods = Box::leak(Box::new(Methods { ours, original }));
        known.push(methods);
        methods
    });
    // SAFETY: as above; they live as long as the process. The whole is pointed to, so that `read` may look behind.
    unsafe { (*file).pMethods = ptr::from_ref(methods).cast() };
}

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    buffer: *mut c_void,
    length: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: SQLite calls with a file that `tell` was given, whose methods begin a `Methods`.
    let original = unsafe { (*(*file).pMethods.cast::<Methods>()).original };
    match original.xRead {
        // SAFETY: SQLite called with these.
        Some(read) => told(unsafe { read(file, buffer, length, offset) }),
        None => ffi::SQLITE_IOERR_READ,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::{AsRawFd as _, RawFd};

    use crate::numbers::RefusalKey;
    use crate::store::sqlite::Sqlite;
    use crate::store::{StoreError, read};

    /// The descriptors of this process that are of the file at `path`.
    fn descriptors(path: &std::path::Path) -> Vec<RawFd> {
        let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
        let of_file = open.filter(|one| fs::read_link(one.path()).is_ok_and(|it| it == path));
        of_file.map(|one| one.file_name().to_str().unwrap().parse().unwrap()).collect()
    }

    // P4.4
    #[test]
    fn a_disk_that_does_not_answer_is_no_damage() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join("s.db");
        let (store, mut writer) = Sqlite::open(&path).unwrap();
        writer.move_log().unwrap();
        // Has a connection made, whose files are open from then on.
        read(&store, |read| read.meta("a")).unwrap();
        // A descriptor that no read of the first pages comes from: nothing lies there in a process's memory.
        let nowhere = fs::File::open("/proc/self/mem").unwrap();
        for own in descriptors(&path) {
            // SAFETY: `own` is a descriptor of the store alone; it stays open, and is closed as before.
            assert_eq!(unsafe { libc::dup2(nowhere.as_raw_fd(), own) }, own);
        }
        let failed = read(&store, |read| read.rejected(RefusalKey(1))).unwrap_err();
        assert!(matches!(&failed, StoreError::Failed(why) if why.contains("I/O")), "{failed}");
    }
}
