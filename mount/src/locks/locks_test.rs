//! Waiting, letting go, deadlocks, ends.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use crossbeam_channel::{Receiver, TryRecvError, unbounded};

use super::*;

const END: u64 = i64::MAX as u64;
type Answers = Receiver<Result<(), Errno>>;

fn lock(number: u64, kind: Kind) -> Lock {
    let owner = Owner { mount: MountId(number as u32 % 2), number };
    let handle = Handle(number);
    let (start, end, pid, user) = (0, END, 1, 0);
    Lock { family: Family::Posix, owner, handle, kind, start, end, pid, user, closed: None }
}

fn flock(number: u64, kind: Kind) -> Lock {
    Lock { family: Family::Flock, ..lock(number, kind) }
}

fn ask(locks: &Arc<Locks>, ino: u64, lock: Lock, ask: Ask) -> Answers {
    let (send, answers) = unbounded();
    let reply = Reply::new(move |result| send.send(result).unwrap());
    // The test's own process: no signal is there for it.
    let thread = std::process::id();
    locks.set(Wanted { ino: Ino(ino), lock, ask, thread }, reply);
    answers
}

fn test(locks: &Arc<Locks>, ino: u64, lock: Lock) -> Receiver<Result<Option<Lock>, Errno>> {
    let (send, answers) = unbounded();
    let reply = Reply::new(move |result| send.send(result).unwrap());
    locks.test((Ino(ino), lock, std::process::id()), reply);
    answers
}

fn take(locks: &Arc<Locks>, ino: u64, lock: Lock) -> Result<(), Errno> {
    ask(locks, ino, lock, Ask::Try).try_recv().unwrap()
}

#[test]
fn who_waits_is_answered_when_the_lock_is_let_go() {
    let locks = Arc::new(Locks::default());
    take(&locks, 1, lock(1, Kind::Exclusive)).unwrap();
    assert_eq!(take(&locks, 1, lock(2, Kind::Exclusive)), Err(Errno::EAGAIN));
    assert_eq!(locks.conflict(Ino(1), &lock(2, Kind::Shared)).unwrap().owner.number, 1);
    let (two, three) = (
        ask(&locks, 1, lock(2, Kind::Shared), Ask::Wait),
        ask(&locks, 1, lock(3, Kind::Shared), Ask::Wait),
    );
    assert_eq!(two.try_recv(), Err(TryRecvError::Empty));
    ask(&locks, 1, lock(1, Kind::Exclusive), Ask::Unlock).try_recv().unwrap().unwrap();
    assert_eq!((two.try_recv(), three.try_recv()), (Ok(Ok(())), Ok(Ok(()))));
    assert_eq!(take(&locks, 1, lock(1, Kind::Exclusive)), Err(Errno::EAGAIN));
    locks.closed(Ino(1), lock(2, Kind::Shared).owner, Handle(2));
    locks.released(Ino(1), Handle(3));
    take(&locks, 1, lock(1, Kind::Exclusive)).unwrap();
    assert_eq!(locks.state.lock().held, 1);
}

#[test]
fn no_user_has_all_locks_nor_all_places_to_wait() {
    let locks = Arc::new(Locks::default());
    let of = |number, user| Lock { user, ..flock(number, Kind::Exclusive) };
    let (own, other) = (u32::MAX - 1, u32::MAX - 2);
    let held = (1..).take_while(|ino| take(&locks, *ino, of(*ino, own)).is_ok()).count() as u64;
    assert_eq!(held, LOCKS_MAX as u64 / 4);
    assert_eq!(take(&locks, held + 1, of(1, own)), Err(Errno::ENOLCK));
    [other, 0].iter().for_each(|user| take(&locks, held + 1, of(7, *user)).unwrap());
    let wait = |user, number| ask(&locks, 1, of(number, user), Ask::Wait);
    let waits: Vec<_> = (0..WAITERS_MAX as u64 / 4).map(|nth| wait(own, held + nth)).collect();
    assert!(waits.iter().all(|waits| waits.try_recv() == Err(TryRecvError::Empty)));
    assert_eq!(wait(own, 0).try_recv(), Ok(Err(Errno::ENOLCK)));
    let others = [other, 0].map(|user| wait(user, 0));
    assert!(others.iter().all(|waits| waits.try_recv() == Err(TryRecvError::Empty)));
    (0..2).for_each(|mount| locks.unmounted(MountId(mount)));
}

#[test]
fn a_lock_goes_with_its_holder_and_its_mount() {
    let locks = Arc::new(Locks::default());
    take(&locks, 1, flock(1, Kind::Exclusive)).unwrap();
    let waits = ask(&locks, 1, flock(2, Kind::Exclusive), Ask::Wait);
    locks.closed(Ino(1), flock(1, Kind::Shared).owner, Handle(1));
    assert_eq!(waits.try_recv(), Err(TryRecvError::Empty), "a close is none of flock's business");
    let also = ask(&locks, 1, flock(3, Kind::Exclusive), Ask::Wait);
    // One and three came through mount 1.
    locks.unmounted(MountId(1));
    assert_eq!(also.try_recv(), Ok(Err(Errno::EIO)));
    assert_eq!(waits.try_recv(), Ok(Ok(())));
    locks.released(Ino(1), Handle(2));
    assert!(locks.state.lock().files.is_empty());
    assert_eq!(locks.state.lock().held, 0);
}

#[test]
fn a_flock_of_the_other_kind_gives_up_the_first() {
    let locks = Arc::new(Locks::default());
    take(&locks, 1, flock(1, Kind::Shared)).unwrap();
    take(&locks, 1, flock(2, Kind::Shared)).unwrap();
    assert_eq!(take(&locks, 1, flock(1, Kind::Exclusive)), Err(Errno::EAGAIN));
    // What one held is lost, so that two can go on.
    take(&locks, 1, flock(2, Kind::Exclusive)).unwrap();
    let one = ask(&locks, 1, flock(1, Kind::Exclusive), Ask::Wait);
    take(&locks, 1, flock(2, Kind::Shared)).unwrap();
    assert_eq!(one.try_recv(), Err(TryRecvError::Empty));
    locks.released(Ino(1), Handle(2));
    assert_eq!(one.try_recv(), Ok(Ok(())));
}

#[test]
fn what_is_granted_may_let_go_of_what_another_waits_for() {
    let locks = Arc::new(Locks::default());
    let range = |number, kind, start, end| Lock { start, end, ..lock(number, kind) };
    take(&locks, 1, range(1, Kind::Exclusive, 0, 9)).unwrap();
    take(&locks, 1, range(2, Kind::Exclusive, 10, 19)).unwrap();
    let three = ask(&locks, 1, range(3, Kind::Shared, 0, 9), Ask::Wait);
    // With two's part one shares its own.
    let one = ask(&locks, 1, range(1, Kind::Shared, 0, 19), Ask::Wait);
    ask(&locks, 1, range(2, Kind::Exclusive, 10, 19), Ask::Unlock).try_recv().unwrap().unwrap();
    assert_eq!((one.try_recv(), three.try_recv()), (Ok(Ok(())), Ok(Ok(()))));
}

#[test]
fn posix_locks_that_wait_for_each_other_are_refused() {
    let locks = Arc::new(Locks::default());
    for owner in 1..=3 {
        take(&locks, owner, lock(owner, Kind::Exclusive)).unwrap();
    }
    let _one = ask(&locks, 2, lock(1, Kind::Exclusive), Ask::Wait);
    let _two = ask(&locks, 3, lock(2, Kind::Exclusive), Ask::Wait);
    let three = ask(&locks, 1, lock(3, Kind::Exclusive), Ask::Wait);
    assert_eq!(three.try_recv(), Ok(Err(Errno::EDEADLK)));
    let four = ask(&locks, 1, lock(4, Kind::Exclusive), Ask::Wait);
    assert_eq!(four.try_recv(), Err(TryRecvError::Empty), "that is only a long line");
    // Who does not want to wait is not told of circles, also where the lock may be about to go: a copy of its
    // descriptor was closed by another process.
    locks.closed(Ino(1), Owner { mount: MountId(1), number: 77 }, Handle(1));
    assert_eq!(take(&locks, 1, lock(3, Kind::Exclusive)), Err(Errno::EAGAIN));
}

#[test]
fn who_cannot_be_seen_does_not_wait_for_ever() {
    let locks = Arc::new(Locks::default());
    take(&locks, 1, lock(1, Kind::Exclusive)).unwrap();
    let (send, answers) = unbounded();
    let reply = Reply::new(move |result| send.send(result).unwrap());
    let wanted = Wanted { ino: Ino(1), lock: lock(2, Kind::Shared), ask: Ask::Wait, thread: 0 };
    locks.set(wanted, reply);
    let answered = answers.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(answered, Err(Errno::ETIMEDOUT));
}

#[test]
fn nobody_waits_whom_no_thread_sees() {
    let locks =
        Arc::new(Locks { start: |_| Err(io::ErrorKind::WouldBlock.into()), ..Locks::default() });
    take(&locks, 1, flock(1, Kind::Exclusive)).unwrap();
    let wait = || ask(&locks, 1, flock(2, Kind::Exclusive), Ask::Wait).try_recv();
    assert_eq!(wait(), Ok(Err(Errno::ENOLCK)));
    locks.closed(Ino(1), Owner { mount: MountId(7), number: 0 }, Handle(1));
    assert_eq!(take(&locks, 1, flock(2, Kind::Exclusive)), Err(Errno::EAGAIN));
    locks.released(Ino(1), Handle(1));
    take(&locks, 1, flock(2, Kind::Exclusive)).unwrap();
}

#[test]
fn who_does_not_want_to_wait_waits_for_a_lock_that_is_about_to_go() {
    let locks = Arc::new(Locks::default());
    let close =
        |number| locks.closed(Ino(1), Owner { mount: MountId(7), number: 0 }, Handle(number));
    take(&locks, 1, flock(1, Kind::Shared)).unwrap();
    take(&locks, 1, flock(2, Kind::Shared)).unwrap();
    close(1);
    assert_eq!(take(&locks, 1, flock(3, Kind::Exclusive)), Err(Errno::EAGAIN), "two stays");
    close(2);
    let three = ask(&locks, 1, flock(3, Kind::Exclusive), Ask::Try);
    let four = ask(&locks, 1, flock(4, Kind::Exclusive), Ask::Try);
    locks.released(Ino(1), Handle(1));
    assert_eq!(three.try_recv(), Err(TryRecvError::Empty));
    locks.released(Ino(1), Handle(2));
    assert_eq!(three.try_recv(), Ok(Ok(())));
    assert_eq!(four.try_recv(), Ok(Err(Errno::EAGAIN)), "three has it, and closes nothing");
    // It was but a copy of the descriptor.
    close(3);
    let four = ask(&locks, 1, flock(4, Kind::Exclusive), Ask::Try);
    assert_eq!(four.recv_timeout(Duration::from_secs(60)), Ok(Err(Errno::EAGAIN)));
    assert_eq!(take(&locks, 1, flock(4, Kind::Exclusive)), Err(Errno::EAGAIN), "only once");
    assert!(locks.was_held(Ino(1)) && !locks.was_held(Ino(2)));
}

// P7.6
#[test]
fn who_asks_of_a_lock_that_may_be_about_to_go_is_told_when_it_has_gone_or_stays() {
    let locks = Arc::new(Locks::default());
    let (held, wanted) = (flock(1, Kind::Exclusive), flock(2, Kind::Exclusive));
    take(&locks, 1, held).unwrap();
    assert_eq!(test(&locks, 1, wanted).try_recv().unwrap().unwrap().unwrap().handle, Handle(1));
    let other = Owner { mount: MountId(0), number: 9 };
    locks.closed(Ino(1), other, Handle(1));
    let goes = test(&locks, 1, wanted);
    assert_eq!(goes.try_recv().err(), Some(TryRecvError::Empty));
    locks.released(Ino(1), Handle(1));
    assert_eq!(goes.try_recv().unwrap().unwrap(), None);
    assert_eq!(locks.state.lock().held, 0, "it has taken nothing");
    // A copy of the descriptor was closed, and another is open.
    take(&locks, 1, held).unwrap();
    locks.closed(Ino(1), other, Handle(1));
    let stays = test(&locks, 1, wanted).recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(stays.unwrap().unwrap().handle, Handle(1));
}
