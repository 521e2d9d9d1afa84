//! Every limit, in one file, each with its reason.

use std::time::Duration;

/// Longest file name: POSIX's NAME_MAX on every Linux file system. The kernel passes FUSE names of
/// up to 1,024 bytes, so it must be checked here.
pub const NAME_BYTES_MAX: usize = 255;

/// Longest path that somebody may ask for: PATH_MAX, without its NUL. A longer one can be there, of
/// directories that were made one in the other; with a path to it no program would come to it either.
pub const PATH_BYTES_MAX: usize = 4095;

/// Longest record id: leaves room for an extension and the suffix of a temporary file in 255 bytes.
pub const RECORD_ID_BYTES_MAX: usize = 200;

/// Longest agent, kind or state name: they become directory names and log fields.
pub const AGENT_NAME_BYTES_MAX: usize = 64;

/// Largest record. The largest of 258 real task files has 36 KB; parsing stays under 10 ms at 1 MiB.
pub const RECORD_BYTES_MAX: usize = 1 << 20;

/// What is read of a text while it is written, of a judgement: so many bytes in all are always read again
/// at each write (a text of 4 KB in a hundred writes, some 10 ms), beyond that [`JUDGED_TIMES`] as many as
/// the text has. Judging each of many small writes would take quadratic time: 5 s for 4,000 of them.
pub const JUDGED_BYTES_FREE: usize = 256 << 10;

/// How often each byte of a text may be read while it is written: it is judged when it has grown by a
/// seventh.
pub const JUDGED_TIMES: usize = 8;

/// Deepest nesting of a record's YAML: real ones reach 6; a recursive reader's stack must hold.
pub const RECORD_DEPTH_MAX: usize = 64;

/// Looks at a value, while a text is judged by a JSON Schema: some 0.1 s. The largest list of numbers that
/// fits a record, each with three rules, takes a third of it.
pub const JUDGE_STEPS_MAX: usize = 8_000_000;

/// The same for saying why a text is not valid, which also takes memory: some 20 MB.
pub const EXPLAIN_STEPS_MAX: usize = 1_000_000;

/// The same while a text is still being written, which is judged again and again.
pub const JUDGE_SO_FAR_STEPS_MAX: usize = 250_000;

/// Records that are looked at for a circle of dependencies before a new one is refused: about a
/// second of the writer's time.
pub const CIRCLE_LOOK_MAX: usize = 100_000;

/// The same before the order of all is learnt, in which no circle is searched for: about a millisecond.
pub const CIRCLE_LOOK_FIRST_MAX: usize = 256;

/// Ids whose place in the order of work is remembered: some 250 bytes each.
pub const RANKED_MAX: usize = 120_000;

/// Most kinds of a user's own in one configuration: its bindings are at most 64.
pub const OWN_KINDS_MAX: usize = 64;

/// Longest configuration, with the definitions and the schemas that it holds as texts (each of at most
/// 256 KiB in a file of its own). Each start reads it, in some 50 ms.
pub const CONFIG_BYTES_MAX: usize = 8 << 20;

/// How often the ledger tells that the same agent tried the same forbidden thing at the same path: a
/// program that tries in a loop must not fill it.
pub const FORBIDDEN_TOLD_EVERY: Duration = Duration::from_secs(60);

/// Longest symbolic link target: PATH_MAX, with its NUL.
pub const SYMLINK_BYTES_MAX: usize = 4095;

/// A plain file's chunk. An append rewrites its last chunk, a big read fetches many.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// From this chunk on whole chunks of a file lie beside the store's tables: files of up to 1 MiB, which are
/// most, lie in these, and are flushed with them.
pub const BESIDE_FROM_CHUNK: u32 = 16;

/// How far the file beside the tables reaches at most, in which no place is used twice: half of what a file of
/// ext4 can have.
pub const EXTENTS_BYTES_MAX: u64 = 8 << 40;

/// So long what was freed beside the tables waits for a flush that somebody else makes, before one is made to
/// give its space back.
pub const FREED_GATHERED_FOR: Duration = Duration::from_secs(5);

/// Connections that read at once, before who wants one more waits for one of them: each takes half a megabyte, and so
/// many are more than processors. The threads of two hundred mounts, where all read, had 300, and 100 MB.
pub const READERS_AT_ONCE: usize = 48;

/// So long it waits: most who read take a hundredth of that. Who exports has one for long, and who reads may want
/// another one meanwhile.
pub const READERS_WAITED_FOR: Duration = Duration::from_millis(5);

/// Of those that nobody uses so many stay open; a new one takes half a millisecond.
pub const READERS_KEPT_MAX: usize = 16;

/// So long a change that finds the disk full waits for that space.
pub const FREED_PATIENCE: Duration = Duration::from_millis(200);

/// Largest plain file: a chunk index must fit the 24 bits that a chunk key has for it.
pub const FILE_BYTES_MAX: u64 = 1 << 40;

/// Names of one file: ext4's limit, which programs that link much know to respect.
pub const LINKS_MAX: u32 = 65_000;

/// The last chunk's index in the largest file: one more would be the next file's first chunk.
pub const CHUNK_INDEX_MAX: u32 = 0x00ff_ffff;
/// Largest file of which a version may be kept whole: it is read and written in one change.
pub const VERSION_BYTES_MAX: u64 = 16 << 20;

/// Largest plain file that the writer hashes itself; a larger one is hashed by a thread before.
pub const HASHED_IN_TURN_BYTES_MAX: u64 = 1 << 20;

/// Largest plain file whose hash `close` waits for: some 0.1 s. The event of a larger one follows.
pub const HASH_AWAITED_BYTES_MAX: u64 = 64 << 20;

/// Large files of one user that wait to be hashed; of one more that is saved there is no hash: each is some 300 bytes.
pub const HASHES_OF_ONE_MAX: usize = 1024;

/// Largest plain file that is hashed at all: some 10 s; a sparse one may be a thousand times larger.
pub const HASHED_BYTES_MAX: u64 = 4 << 30;

/// Names that one change of `gc` removes: others wait for the writer meanwhile.
pub const SWEPT_AT_ONCE: usize = 256;

/// Pasts of files that one change of `gc` looks at.
pub const SWEPT_HISTORIES_AT_ONCE: usize = 512;

/// Directories whose rules about plain files are remembered, each by who serves and by the desk; then all are asked
/// anew. They are some 600 bytes each, with the directory's path.
pub const SCOPES_MAX: usize = 4096;

/// Directories of which is remembered that no such rule counts there: a number each.
pub const UNRULED_DIRS_MAX: usize = 1 << 16;

/// Longest extended attribute name, as on Linux.
pub const XATTR_NAME_BYTES_MAX: usize = 255;

/// Largest extended attribute value, as on Linux.
pub const XATTR_VALUE_BYTES_MAX: usize = 64 * 1024;

/// The names of all extended attributes of an inode, each with its NUL: of more Linux lists none (E2BIG).
pub const XATTR_LIST_BYTES_MAX: u64 = 64 * 1024;

/// Their values: no quota counts them, and ext4 has room for 4 KiB.
pub const XATTR_BYTES_OF_ONE_MAX: u64 = 1 << 20;

/// Changes that may wait for the writer; one more waits at the door (back-pressure, no loss).
pub const QUEUE_CHANGES_MAX: usize = 4096;

/// Changes that share one commit: bounds how long the first of them waits.
pub const BATCH_CHANGES_MAX: usize = 512;

/// Of a batch of moves with so many callers another thread tells; of fewer the desk does, since to wake one costs
/// as much.
pub const TOLD_APART_MIN: usize = 2;

/// How long an inode without a name stays, up to twice: its removal is no commit that the next caller
/// waits for, and who is about to open it still can.
pub const NAMELESS_REST: Duration = Duration::from_millis(200);

/// Chunks of nameless files that are freed in one transaction, which callers wait for: 32 MiB.
pub const RECLAIMED_CHUNKS_AT_ONCE: u64 = 512;

/// After so long it is tried again with those that could not go because the disk was full.
pub const NAMELESS_AGAIN: Duration = Duration::from_secs(1);

/// After so long it is looked again whether somebody still has those open that had no name.
pub const NAMELESS_HELD: Duration = Duration::from_secs(10);

/// Inodes without a name that come before that time is over: those before them go. Bounds what they
/// hold.
pub const NAMELESS_AT_ONCE: usize = 256;

/// Directories whose place in a workspace the writer remembers: some hundred bytes each.
pub const PLACES_REMEMBERED_MAX: usize = 4096;

/// Names that directories were moved away from, and that kernels may know them by: some hundred bytes
/// each. Beyond it who takes a directory away, or puts one in its place, is told once each time to look again.
pub const MOVED_AWAY_MAX: usize = 1024;

/// The directories of one such name that are remembered, its last ones: a kernel means one of those that
/// left it since it looked. Beyond it each is told to look again.
pub const MOVED_AWAY_FROM_ONE_MAX: usize = 8;

/// Among how many descriptors of a process one is looked for, when another process closes a copy: each takes some
/// 10 µs of a thread that serves the kernel.
pub const DESCRIPTORS_MAX: usize = 1024;

/// Threads that are remembered whose `open` found its file replaced. Beyond it such an `open` fails (ESTALE) when that
/// happens to it twice; nobody is given another file for it.
pub const OVERTAKEN_MAX: usize = 1024;

/// How far apart the two attempts of one `open` may be.
pub const OVERTAKEN_TWICE_WITHIN: Duration = Duration::from_secs(1);

/// Within this time whoever opens a record to read it has begun to; who has not may have mapped it.
/// Programs take some tenths of a millisecond, on a busy machine more; each that takes longer while another
/// writes costs that one a second `open`.
pub const READ_AT_ONCE_WITHIN: Duration = Duration::from_millis(20);

/// Open handles in the daemon: EMFILE above it.
pub const HANDLES_MAX: usize = 1 << 18;

/// What the open files of one user may keep in memory, of records, drafts, checked and computed files:
/// what they read, each text once, and what is written to them and not judged; and of directories. Ten thousand open ones of
/// 25 KB; without it a program that opens a file of 1 MiB again and again takes all memory.
pub const OPENED_BYTES_OF_ONE_MAX: u64 = 256 << 20;

/// How much more what is only read may make of it, so that who has written all that he may can read `why`.
pub const READ_BESIDE_BYTES_MAX: u64 = 4 << 20;

/// A version that is shorter is not looked for among those that are open: that costs as much.
pub const SHARED_BYTES_MIN: usize = 4 << 10;

/// The same of other texts, which are hashed for that, some 10 µs.
pub const SHARED_BY_CONTENT_BYTES_MIN: usize = 16 << 10;

/// How long a claim waits for a handle that wrote the record to close.
pub const BUSY_WAIT: Duration = Duration::from_millis(250);

/// No request of the kernel waits longer than this: its caller could not be interrupted.
pub const REQUEST_DEADLINE: Duration = Duration::from_secs(2);

/// How long the source of a claim by copy still answers `unlink` with success for who did it.
pub const COPY_SOURCE_GRACE: Duration = Duration::from_secs(60);

/// How long after a refused save an `unlink` by who made it counts as the clean-up of that: it comes
/// at once, but the machine may be busy.
pub const CLEANUP_GRACE: Duration = Duration::from_secs(5);

/// Refused saves that are remembered so; the oldest are forgotten first.
pub const CLEANUPS_MAX: usize = 1024;

/// How long the kernel may keep names and attributes that are invalidated exactly.
pub const CACHE_TTL: Duration = Duration::from_secs(3600);

/// So many files with holes of which is remembered what was read are there before it is looked which of them no kernel
/// knows any more.
pub const FILLED_LOOKED_AT_MIN: usize = 1024;

/// So many ranges are told apart in each of them.
pub const FILLED_RANGES_MAX: usize = 64;

/// How long a kernel may keep the name `ready` of a workspace, whose directory may come to be none by a move: who claims
/// one record after the other does not look it up each time. What it stands for is asked each time.
pub const READY_TTL: Duration = Duration::from_secs(1);

/// While something is to happen at a certain time, the clock is looked at this often: it may have
/// been set, or the machine may have slept.
pub const CLOCK_LOOK: Duration = Duration::from_secs(10);

/// A wall clock that goes back by no more than this is being kept right, and was not set.
pub const CLOCK_SLACK: Duration = Duration::from_secs(1);

/// Records that become ready by the clock in one commit; the next follow at once.
pub const RIPE_MAX: usize = 512;

/// How long after one who looks was woken for a ready record the next is, if it is still there.
pub const WAKE_NEXT_AFTER: Duration = Duration::from_millis(100);

/// Who sleeps in a poll and is woken asks again sooner than this, if the machine is not busy; a poll that was
/// left alone never does, and others are woken instead.
pub const WAKE_ANSWERED_WITHIN: Duration = Duration::from_millis(1);

/// So many times as many are woken each time that nobody answered: 1000 polls that were left alone are
/// behind one after five times.
pub const WAKE_MORE: usize = 4;

/// Users of mounts of which is remembered that they let a ready record lie when they were woken.
pub const IDLE_LOOKERS_MAX: usize = 4096;

/// Lanes of which is remembered what came by `.next` last. Beyond it those to which something came that way least
/// lately have no `.next` any more; half of them go at once, since to look who they are takes a look at all.
pub const NEXTS_MAX: usize = 16_384;

/// Names of a plain directory whose listing kernels may keep: it is sorted anew for each handle that
/// asks for it.
pub const LISTING_KEPT_MAX: usize = 1024;

/// Directories of which kernels may keep listings, and those in which they may remember that a name is
/// absent: some MiB. Of more they keep nothing.
pub const KEPT_DIRS_MAX: usize = 1 << 16;

/// So many files of which kernels may hold old pages are noted before those are looked for of which they hold
/// nothing any more: tens of KiB.
pub const OLD_PAGES_LOOKED_AT_MIN: usize = 1024;

/// So long after a file was opened whose pages a kernel must drop for it they may still be there: it drops them
/// when the thread that opened it runs. Who opens it meanwhile drops them, too.
pub const OLD_PAGES_GO_WITHIN: Duration = Duration::from_secs(1);

/// So long a thread that was told that a file has changed, and has no lock of it, is given to drop the pages of before:
/// mostly it takes some microseconds.
pub const PAGES_GO_WITHIN: Duration = Duration::from_millis(20);

/// Files that somebody has locked, and another mount has changed since, of which is remembered that a kernel may have
/// old pages: some megabytes.
pub const SETTLING_MAX: usize = 1 << 16;

/// So many directories of `.workfs/history/` have numbers before those are looked for that no kernel knows any more:
/// some hundred bytes each.
pub const PASTS_LOOKED_AT_MIN: usize = 1024;

/// So long after a number was given a kernel may not have heard of it yet.
pub const PASTS_TOLD_WITHIN: Duration = Duration::from_secs(10);

/// A page of a directory listing that is read from the store at once.
pub const LISTING_PAGE: usize = 1024;

/// What a name counts that an open directory remembers, of [`OPENED_BYTES_OF_ONE_MAX`]: with its cookie and
/// what the allocator takes, if it is not among the longest.
pub const REMEMBERED_NAME_BYTES: usize = 96;

/// Names that an open directory remembers, so that a reader can go back to any of them.
pub const LISTING_REMEMBERED_MAX: usize = 16_384;

/// Events of a record that a change looks back at, for what only its history tells: bounds its work, some hundredths
/// of a second of the one writer. What lies before them is not known then, and nothing is taken that it may forbid.
pub const HISTORY_STEPS_MAX: usize = 4096;

/// Names below a directory that is moved to where workspaces may lie below it which are looked at
/// for one: some tenths of a second of the one writer.
pub const MOVED_NAMES_MAX: usize = 100_000;

/// Ready records that a claim of the best passes over because their texts, or names in the lane, are in
/// the way: bounds the work of one change to some hundredths of a second of the one writer.
pub const PASSED_OVER_MAX: usize = 256;

/// So much of their texts, which are parsed while all who change something wait: some 150 ms.
pub const PASSED_OVER_BYTES_MAX: u64 = 16 << 20;

/// Refusals kept for `.workfs/why`; the oldest of whoever has most go, some at a time ([`REFUSALS_STRIDE`]).
pub const REFUSALS_KEPT_MAX: u64 = 1000;

/// Rejected bytes kept in all; the oldest go.
pub const REJECTED_BYTES_MAX: u64 = 64 << 20;

/// So many refusals may stand beyond [`REFUSALS_KEPT_MAX`] before the oldest go: looking costs a read of
/// them all.
pub const REFUSALS_STRIDE: u64 = 64;

/// After rejected bytes of more than this [`REJECTED_BYTES_MAX`] is looked at at once: so it is exceeded
/// by [`REFUSALS_STRIDE`] times as many, 4 MiB, at most.
pub const REJECTED_SMALL_BYTES: usize = 64 << 10;

/// Who looked at one record, for stale-save checks: at least half as many, the last ones, are remembered. Who looks
/// asks all of them, some µs.
pub const SEEN_READERS_MAX: usize = 1 << 11;

/// So many are noted before those are looked for who have ended.
pub const SEEN_READERS_LOOKED_AT_MIN: usize = 64;

/// All looks of all readers of all records: some 150 bytes each.
pub const SEEN_LOOKS_MAX: usize = 1 << 16;

/// How far up those who started a process count as its family: a shell, the subshell of a pipeline,
/// and a program such as `timeout` between them.
pub const ANCESTORS_MAX: usize = 3;

/// What `/proc` said of a thread is asked anew after this: a number may then be another's.
pub const LINEAGES_KEPT_FOR: Duration = Duration::from_secs(2);

/// Threads of which that is kept.
pub const LINEAGES_MAX: usize = 4096;

/// Changes that wait to be told to watchers in other mounts; what is over is lost, as inotify's own
/// queue loses.
pub const NUDGES_MAX: usize = 4096;

/// How often it is looked who watches, while things change: reading `/proc` takes some ms.
pub const WATCHERS_LOOK_EVERY: Duration = Duration::from_millis(500);

/// How often it is looked while somebody was told of a new directory, which it then watches: before
/// each batch of changes, but not more often than this.
pub const NEW_DIRS_LOOK_EVERY: Duration = Duration::from_millis(20);

/// For how long so: in this time a program watches what it was told of.
pub const NEW_DIRS_LOOK_FOR: Duration = Duration::from_secs(2);

/// Longest lease: a record that nobody works on must not stay with its owner for ever.
pub const LEASE_MAX: Duration = Duration::from_secs(30 * 86_400);

/// What every lease has left when the daemon starts, if its lifetime is not shorter: its owner
/// could not show life while there was no daemon. It counts at most from the lease's own end.
pub const LEASE_GRACE: Duration = Duration::from_secs(60);

/// An owner is warned when a tenth of its lease is left, but no earlier than this before the end.
pub const LEASE_WARNING_MAX: Duration = Duration::from_secs(600);

/// Nor later than this, so that a short lease's warning is not lost in its end. Of a lease that is
/// shorter than four times as long a quarter is left: its owner is listened for from the half on.
pub const LEASE_WARNING_MIN: Duration = Duration::from_secs(1);

/// Renewals of leases that come within this time of each other share a commit.
pub const LEASE_BATCH: Duration = Duration::from_secs(1);

/// Users that are remembered to have been seen through mounts that have ended.
pub const PARTED_USERS_MAX: usize = 4096;

/// Leases that end, or are renewed, in one change: bounds how long others wait for it.
pub const LEASE_CHANGES_MAX: usize = 4096;

/// Transactions that are open at once: each may hold its bytes in the daemon's memory.
pub const TXNS_MAX: usize = 256;

/// The same of one agent or user in one mount, so that what was forgotten in one is in no other's way.
pub const TXNS_IN_MOUNT_MAX: usize = 16;

/// The same of one agent or user in all mounts, so that nobody takes the others' room.
pub const TXNS_OF_ONE_MAX: usize = 32;

/// Changes of one transaction: everybody else waits while they are made.
pub const TXN_STEPS_MAX: usize = 2_000;

/// Bytes that a transaction may write, with what it copies for that: they lie in memory until it ends.
pub const TXN_BYTES_MAX: u64 = 32 << 20;

/// Files and names of the store that one transaction uses, to read, too: each is looked at by its commit
/// while everybody else waits, and is some 200 bytes in memory until then.
pub const TXN_USED_MAX: usize = 20_000;

/// Nodes of which a transaction remembers where it met them, beside those that are its own: each is some
/// 100 bytes.
pub const TXN_PLACES_MAX: usize = 20_000;

/// Conflicts that `why` names of one transaction.
pub const CONFLICTS_SHOWN_MAX: usize = 20;

/// Longest path of a store: SQLite takes 512 bytes, with its own endings (`-journal`).
pub const STORE_PATH_BYTES_MAX: usize = 504;

// The daemon and its control socket.

/// Mounts of one daemon: each costs four threads and as many descriptors.
pub const MOUNTS_MAX: usize = 1024;

/// Follow-ups of one record for one agent within a minute that differ in their ids: there is one,
/// unless other files took its name.
pub const FOLLOW_UPS_MAX: u32 = 100;

/// How often the chores that a clock brings are looked for. They are about hours and days.
pub const CHORES_EVERY: Duration = Duration::from_secs(60);

/// How long who leads is the leader without a sign of life: three rounds, so that one that takes
/// long does not cost the lead.
pub const LEADER_LEASE: Duration = Duration::from_secs(180);

/// Records of one sort that one round takes up; the next takes more.
pub const CHORES_AT_ONCE: usize = 1024;

/// Ready records that are looked at in one change for whether they name an agent that was registered: some hundredths
/// of a second of the one writer, most of them for what is assigned.
pub const OFFERED_AT_ONCE: usize = 256;

/// So much of their texts, of which few have more: after that the next change goes on.
pub const OFFERED_BYTES_MAX: usize = 4 << 20;

/// Follow-ups and assignments that could not be made, of which a daemon remembers that they are to be tried again: some
/// MiB.
pub const OWED_MAX: usize = 1 << 17;

/// Chores that cannot be done of which `status` and `doctor` tell.
pub const UNDONE_TOLD_MAX: usize = 64;

/// Drafts of one name that are put aside, each with another number.
pub const PUT_ASIDE_MAX: u32 = 1000;

/// Directories below mounts whose covers a store's list keeps: more than there are mounts, since one that is not
/// found (its volume is not there) is to be given back later. The oldest go first.
pub const COVERS_MAX: usize = 4 * MOUNTS_MAX;

/// Whoever writes that list is done within this, or was killed.
pub const COVERS_WRITTEN_WITHIN: Duration = Duration::from_secs(60);

/// Directories that `exec` tries to make: each that is there already was left by a process of the
/// same number that was killed together with its daemon, which does not happen a hundred times.
pub const MOUNT_DIRS_MAX: u32 = 100;

/// Clients of the socket that ask at once: each costs a thread. Those that hold a mount, of which each
/// has one ([`MOUNTS_MAX`]), follow what happens, or wait for a record are counted apart.
pub const CONNECTIONS_MAX: usize = 256;

/// Clients that follow what happens (`watch`, `log --follow`) at once: each costs a thread, too.
pub const FOLLOWERS_MAX: usize = 256;

/// Of the descriptors that a daemon may have one in so many is kept for its mounts from who asks at the socket, and
/// as many more from who stays there (waits, follows, makes a mount), but no more than [`DESCRIPTORS_KEPT_MAX`] each:
/// who reads in a mount beside many others needs two.
pub const DESCRIPTORS_PARTS: usize = 16;

/// See [`DESCRIPTORS_PARTS`].
pub const DESCRIPTORS_KEPT_MAX: usize = 128;

/// Clients that wait for a record to claim: each costs a descriptor, and no thread.
pub const CLAIM_WAITERS_MAX: usize = 16_384;

/// Threads that make the claims of those who wait: their commits are shared.
pub const CLAIM_WORKERS: usize = 4;

/// Longest request over the socket. A request carries names and a summary, never a record.
pub const ASK_BYTES_MAX: u64 = 1 << 20;

/// Longest ask to interrupt: it says next to nothing, and is looked for beside each answer.
pub const INTERRUPT_BYTES_MAX: usize = 1 << 10;

/// Longest answer that a client takes: a list of a million records.
pub const ANSWER_BYTES_MAX: u64 = 1 << 30;

/// How long one side of the socket waits for the other to send its request, all of it, or to take its
/// answer.
pub const SOCKET_PATIENCE: Duration = Duration::from_secs(10);

/// A long answer may take a second more for each so many bytes of it.
pub const SOCKET_BYTES_A_SECOND: u64 = 1 << 20;

/// Lines of so many bytes a command without a daemon keeps until it has closed the store: those of some 50,000
/// events. Of more it prints while others wait.
pub const HELD_BYTES_MAX: usize = 32 << 20;

/// How long a store's lock is waited for: a command without a daemon holds it for a moment.
pub const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// After so long a silence a client that waits for a long answer asks whether the daemon lives.
pub const DAEMON_SILENCE: Duration = Duration::from_secs(5);

/// Longer than this, and [`DAEMON_SILENCE`], nobody waits without having asked that.
pub const DAEMON_SILENCE_MAX: Duration = Duration::from_secs(60);

/// How much later than a client asked for may a daemon say that the time is over; one that is stopped
/// says nothing.
pub const DAEMON_LATE: Duration = Duration::from_secs(1);

/// How long a new daemon may take until it serves; opening recovers what a crash left in the log.
pub const DAEMON_START_WAIT: Duration = Duration::from_secs(60);

/// How often the daemon gives memory back that it does not use any more: it takes some tenths of a millisecond, and pages
/// that are wanted again must be cleared.
pub const MEMORY_GIVEN_BACK_EVERY: Duration = Duration::from_secs(60);

/// How long a daemon without mounts waits for the first one.
pub const FIRST_MOUNT_WAIT: Duration = Duration::from_secs(10);

/// How long a mount that does not answer may turn out to have just ended: a busy daemon takes it away first, and
/// then tells.
pub const MOUNT_END_WAIT: Duration = Duration::from_secs(5);

/// How long a directory that is closed, and in no list of this store, is waited for to be given back by whoever had
/// it. No daemon takes longer to see that its mount has gone; one that was killed never does.
pub const GIVEN_BACK_WAIT: Duration = Duration::from_millis(500);

/// How long a directory on which another daemon mounts just now is waited for: by then that one has its mount, or has
/// failed. One who holds it for longer is none of ours.
pub const POINT_WAIT: Duration = Duration::from_secs(2);

/// The same of the directory with the list of covers, which is written in no time.
pub const COVERS_WAIT: Duration = Duration::from_secs(1);

/// How long a mount that is in use is tried to be unmounted: programs that others start have their
/// descriptors for a moment.
pub const UNMOUNT_PATIENCE: Duration = Duration::from_millis(250);

/// How long the lock of a store that was taken back is waited for: threads of this process end in far less. Another
/// process that has it by now keeps it.
pub const LOCK_LEFT_WAIT: Duration = Duration::from_millis(500);

/// How long a daemon that ends waits for requests under way, and then for its writer.
pub const DAEMON_END_WAIT: Duration = Duration::from_secs(2);

/// How long a mount that was taken away by umount(8) may take to be heard of as ended: its threads are
/// told by the kernel, and need a processor for that.
pub const TAKEN_AWAY_WAIT: Duration = Duration::from_secs(1);

/// How long a mount may take to answer who looks at it.
pub const MOUNT_ANSWER_WAIT: Duration = Duration::from_secs(5);

/// A daemon's log that is longer is put aside, in place of the one before.
pub const LOG_BYTES_MAX: u64 = 8 << 20;

/// How long a client waits for what a daemon answers at once (a mount, `ps`); sessions end in 2 s.
pub const DAEMON_ANSWER_WAIT: Duration = Duration::from_secs(20);

/// How often a long command says how far it is, and hears whether somebody still waits for it: seldom enough
/// to cost nothing, and often enough that a Ctrl-C seems to count at once.
pub const TOLD_EVERY: Duration = Duration::from_millis(100);

/// How long whoever interrupted a command waits to hear how far it came: a step of it is made, and a daemon
/// that is stopped says nothing.
pub const INTERRUPT_WAIT: Duration = Duration::from_secs(10);

/// How long a daemon that is stopped may stay so before who asked it is told: one that somebody stops for
/// a look goes on in a moment.
pub const DAEMON_STOPPED_WAIT: Duration = Duration::from_secs(2);

/// Records whose rows are made anew in one transaction, after another layout: so many that a commit costs
/// little beside them, and so few that the log does not grow by it.
pub const ROWS_AT_ONCE: usize = 256;

/// Rows of `list` and `ready` that the daemon keeps before it tells them: some 100 KB.
pub const ROWS_IN_A_PART: usize = 512;

/// How long all parts of one report may wait until whoever asks takes them: they are read from one snapshot, and
/// as long as somebody has that the log of the store cannot begin anew.
pub const PARTS_TAKEN_WITHIN: Duration = Duration::from_secs(30);
