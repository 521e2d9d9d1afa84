//! The daemon's socket without a `workfs` process: as any user, and as slowly as one likes.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use workfs::daemon::StorePaths;

use super::fixture::Fixture;

impl Fixture {
    /// A connection of a user's to the daemon.
    #[track_caller]
    pub fn connected_as(&self, uid: u32) -> UnixStream {
        let socket = StorePaths::of(self.store()).unwrap().socket();
        // Whose it is the kernel notes when it is made; of a thread of its own no other is changed.
        let connect = move || {
            rustix::thread::set_thread_uid(rustix::thread::Uid::from_raw(uid)).unwrap();
            UnixStream::connect(socket).unwrap()
        };
        std::thread::spawn(connect).join().unwrap()
    }
}

/// The line that asks the daemon this.
pub fn ask_line(ask: &serde_json::Value) -> Vec<u8> {
    format!("{}\n", serde_json::json!({"workfs": 1, "ask": ask})).into_bytes()
}

/// What the daemon answers to this: its first line, empty where it hangs up.
#[track_caller]
pub fn asked(stream: &UnixStream, ask: &serde_json::Value) -> String {
    (&mut &*stream).write_all(&ask_line(ask)).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}
