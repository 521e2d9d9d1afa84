//! Ranges, families, owners.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::*;

const END: u64 = i64::MAX as u64;

fn lock(number: u64, kind: Kind, start: u64, end: u64) -> Lock {
    let owner = Owner { mount: MountId(1), number };
    Lock {
        family: Family::Posix,
        owner,
        handle: Handle(number),
        kind,
        start,
        end,
        pid: 7,
        user: 0,
        closed: None,
    }
}

fn ranges(table: &Table, number: u64) -> Vec<(u64, u64, Kind)> {
    let held = table.held.iter().filter(|held| held.owner.number == number);
    let mut ranges: Vec<_> = held.map(|held| (held.start, held.end, held.kind)).collect();
    ranges.sort_by_key(|range| range.0);
    ranges
}

#[test]
fn shared_locks_meet_and_exclusive_ones_do_not() {
    let mut table = Table::default();
    table.put(lock(1, Kind::Shared, 0, 9));
    assert!(table.conflict(&lock(2, Kind::Shared, 5, 20)).is_none());
    assert!(table.conflict(&lock(2, Kind::Exclusive, 10, 20)).is_none());
    let met = table.conflict(&lock(2, Kind::Exclusive, 9, 9)).unwrap();
    assert_eq!(met.owner.number, 1);
    assert!(table.conflict(&lock(1, Kind::Exclusive, 0, END)).is_none(), "its own");
    let elsewhere = Owner { mount: MountId(2), number: 1 };
    let same_number = Lock { owner: elsewhere, ..lock(1, Kind::Exclusive, 0, 0) };
    assert!(table.conflict(&same_number).is_some(), "another mount's number is another owner");
    let flock = Lock { family: Family::Flock, ..lock(2, Kind::Exclusive, 0, END) };
    assert!(table.conflict(&flock).is_none(), "the families do not meet");
}

#[test]
fn of_several_in_the_way_the_first_in_the_file_is_told() {
    let mut table = Table::default();
    table.put(lock(1, Kind::Exclusive, 20, 29));
    table.put(lock(2, Kind::Shared, 0, 9));
    table.put(lock(1, Kind::Exclusive, 10, 19));
    table.put(lock(1, Kind::Shared, 10, 14));
    let starts = |wanted| table.conflict(&wanted).map(|met| (met.start, met.kind));
    assert_eq!(starts(lock(3, Kind::Exclusive, 0, END)), Some((0, Kind::Shared)));
    assert_eq!(starts(lock(3, Kind::Exclusive, 10, END)), Some((10, Kind::Shared)));
    assert_eq!(starts(lock(3, Kind::Shared, 0, END)), Some((15, Kind::Exclusive)));
}

#[test]
fn an_owners_own_locks_are_told_to_it_alone() {
    let mut table = Table::default();
    table.put(lock(1, Kind::Exclusive, 20, 29));
    table.put(lock(1, Kind::Shared, 0, 9));
    table.put(lock(2, Kind::Shared, 5, 6));
    let own = |number, start| {
        table.own(&lock(number, Kind::Exclusive, start, END)).map(|held| (held.start, held.kind))
    };
    assert_eq!(own(1, 0), Some((0, Kind::Shared)));
    assert_eq!(own(1, 10), Some((20, Kind::Exclusive)));
    assert_eq!([own(1, 30), own(2, 7), own(3, 0)], [None; 3]);
}

#[test]
fn a_range_is_cut_out_joined_and_replaced() {
    let mut table = Table::default();
    table.put(lock(1, Kind::Exclusive, 0, END));
    table.take(&lock(1, Kind::Shared, 10, 19));
    let both = [(0, 9, Kind::Exclusive), (20, END, Kind::Exclusive)];
    assert_eq!(ranges(&table, 1), both);
    table.put(lock(1, Kind::Exclusive, 10, 19));
    assert_eq!(ranges(&table, 1), [(0, END, Kind::Exclusive)]);
    table.put(lock(1, Kind::Shared, 5, 6));
    let three = [(0, 4, Kind::Exclusive), (5, 6, Kind::Shared), (7, END, Kind::Exclusive)];
    assert_eq!(ranges(&table, 1), three);
    table.put(lock(1, Kind::Shared, 0, END));
    assert_eq!(ranges(&table, 1), [(0, END, Kind::Shared)]);
    table.take(&lock(1, Kind::Shared, 0, END));
    assert!(table.is_empty());
    table.take(&lock(1, Kind::Shared, 0, END));
}

#[test]
fn what_came_through_another_open_file_stays_apart() {
    let mut table = Table::default();
    table.put(lock(1, Kind::Shared, 0, 9));
    table.put(Lock { handle: Handle(77), ..lock(1, Kind::Shared, 10, 19) });
    assert_eq!(ranges(&table, 1).len(), 2);
    assert!(table.drop_all(|lock| lock.handle == Handle(77)));
    assert!(!table.drop_all(|lock| lock.handle == Handle(77)));
    assert_eq!(ranges(&table, 1), [(0, 9, Kind::Shared)]);
}

#[test]
fn an_upgrade_is_told_from_a_lock_that_is_there() {
    let mut table = Table::default();
    table.put(lock(1, Kind::Shared, 0, END));
    assert!(!table.changes_kind(&lock(1, Kind::Shared, 0, END)));
    assert!(table.changes_kind(&lock(1, Kind::Exclusive, 3, 3)));
    assert!(!table.changes_kind(&lock(2, Kind::Exclusive, 3, 3)));
}
