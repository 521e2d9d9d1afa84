//! Of which family a lock request is: the kernel says it, the FUSE library does not pass it on.
//!
//! fuser 0.18 reads the flags of FUSE_SETLK and drops them, and nothing else tells a `flock` from
//! an `fcntl` of the whole file. So the flags are read from the request's bytes, which follow the
//! header that the library hands out. The library's version is pinned for that (`Cargo.toml`), and
//! bytes that do not say what the library said otherwise are not believed.

use fuser::Request;

use super::Family;

/// Bytes of a request's header (`fuse_in_header`), which is what [`Request`] is.
const HEADER_BYTES: usize = 40;

/// Bytes of what follows (`fuse_lk_in`): handle, owner, start, end, type, pid, flags, padding.
const BODY_BYTES: usize = 48;

/// FUSE_LK_FLOCK in the flags.
const FLOCK: u32 = 1;

const _: () = assert!(size_of::<Request>() == HEADER_BYTES);

/// Of which family the lock is that `request` (a FUSE_SETLK, SETLKW or GETLK) asks for; `handle`
/// and `owner` are what the library read from it.
pub(crate) fn family_of(request: &Request, handle: u64, owner: u64) -> Family {
    let header = std::ptr::from_ref(request).cast::<u8>();
    // SAFETY: the first field of the header is the length of the whole request; it lies inside
    // `request`, and any bytes are a number.
    let length = unsafe { header.cast::<u32>().read_unaligned() } as usize;
    if length < HEADER_BYTES + BODY_BYTES {
        return Family::Posix;
    }
    // SAFETY: fuser 0.18 makes a `Request` by a cast of the header in the buffer that it read the
    // request into (`Request::ref_cast(self.request.header())`), and has checked that the buffer
    // holds the length that the header says. So these bytes follow it in the same buffer, which
    // is not written to while a request is served.
    let body = unsafe { header.add(HEADER_BYTES).cast::<[u8; BODY_BYTES]>().read() };
    let number = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&body[at..at + 8]);
        u64::from_ne_bytes(bytes)
    };
    if (number(0), number(8)) != (handle, owner) {
        tracing::error!("a lock request does not look as expected; taken for fcntl's");
        return Family::Posix;
    }
    let flags = number(40) & 0xffff_ffff;
    if flags as u32 & FLOCK == 0 { Family::Posix } else { Family::Flock }
}
