//! What random walks found, kept as the shortest walk that shows it.

use workfs_mount::RenameMode::{Exchange, NoReplace, Replace};

use super::client::Flags;
use super::ops::{How, Op, at};
use super::text::Text;
use super::walk::{Walk, go};
use super::world::Who::{Ann, Bob};

const T1: &str = "work/assigned/a/t1.yaml";

/// Does these operations in a laid out tree.
fn agrees(ops: Vec<Op>) {
    if let Err(differs) = go(&Walk { laid_out: true, ops }) {
        panic!("{differs}");
    }
}

fn put(path: &str, text: Text, how: How, who: super::world::Who) -> Op {
    Op::Put(at(path), text, how, who)
}

fn read(path: &str, who: super::world::Who) -> [Op; 2] {
    [Op::Open(0, at(path), Flags::default(), who), Op::Close(0)]
}

#[test]
fn a_directory_never_gets_below_itself() {
    agrees(vec![Op::MoveDir("scratch", "scratch/d", Replace)]);
    agrees(vec![
        Op::Mkdir("scratch/d/sub"),
        Op::MoveDir("scratch/d", "scratch/d/sub", Exchange),
        Op::MoveDir("scratch/d/sub", "scratch/d", Exchange),
    ]);
}

#[test]
fn an_exchange_does_not_fill_a_state_directory() {
    let filled = || Op::Symlink(at("scratch/d/t1.yaml"));
    agrees(vec![filled(), Op::MoveDir("work/inbox", "scratch/d", Exchange)]);
    agrees(vec![filled(), Op::MoveDir("scratch/d", "work/inbox", Exchange)]);
}

#[test]
fn noreplace_refuses_another_name_of_the_same_file() {
    agrees(vec![
        put("scratch/d/x", Text::New, How::Truncate, Ann),
        Op::Link(at("scratch/d/x"), at("scratch/d/y")),
        Op::Rename(at("scratch/d/x"), at("scratch/d/y"), NoReplace, Ann),
        Op::Rename(at("scratch/d/x"), at("scratch/d/x"), NoReplace, Ann),
        Op::Rename(at("scratch/d/x"), at("scratch/d/y"), Replace, Ann),
    ]);
}

#[test]
fn a_file_of_the_same_name_from_elsewhere_is_a_save() {
    let [open, close] = read(T1, Ann);
    agrees(vec![
        put(T1, Text::Started, How::Truncate, Bob),
        open,
        close,
        put(T1, Text::Blocked, How::Truncate, Bob),
        // Ann has not seen what Bob saved.
        put(T1, Text::StartedWithResult, How::Elsewhere, Ann),
    ]);
}

#[test]
fn a_backup_dance_is_held_to_the_moves_of_status() {
    agrees(vec![
        put(T1, Text::Started, How::Truncate, Ann),
        put(T1, Text::Assigned, How::Backup, Ann),
        put(T1, Text::Blocked, How::Backup, Ann),
    ]);
}

#[test]
fn a_backup_dance_is_held_to_what_was_read() {
    for temp in [How::Truncate, How::Temp] {
        let [open, close] = read(T1, Ann);
        agrees(vec![
            put(T1, Text::Started, How::Truncate, Bob),
            open,
            close,
            put(T1, Text::Blocked, How::Truncate, Bob),
            Op::RenameHere(at(T1), "t1.yaml~", Ann),
            put(T1, Text::StartedWithResult, temp, Ann),
        ]);
    }
}

#[test]
fn a_claim_by_copy_is_held_to_what_was_read() {
    let path = "work/inbox/t1.yaml";
    let [open, close] = read(path, Ann);
    agrees(vec![
        put(path, Text::New, How::Truncate, Bob),
        open,
        close,
        put(path, Text::Titled, How::Truncate, Bob),
        put(T1, Text::New, How::Truncate, Ann),
        put(T1, Text::New, How::Temp, Ann),
    ]);
}

#[test]
fn a_draft_that_is_truncated_is_held_to_what_was_read() {
    let path = "work/inbox/t1.yaml";
    agrees(vec![
        put(path, Text::New, How::Truncate, Ann),
        put(path, Text::Titled, How::Truncate, Bob),
        put(T1, Text::Unclosed, How::Truncate, Ann),
        // What is left is right, and would be a claim by copy.
        Op::Truncate(at(T1), 7, Ann),
    ]);
}

#[test]
fn who_truncates_has_seen_what_came_of_it() {
    let path = "work/inbox/t1.yaml";
    agrees(vec![
        put(path, Text::New, How::Truncate, Ann),
        // `id: t1` and its line end are left, which is still right.
        Op::Truncate(at(path), 7, Ann),
        put(path, Text::New, How::Truncate, Ann),
    ]);
}

#[test]
fn a_descriptor_that_outlives_a_rename_reads_the_record() {
    let flags = Flags { write: true, create: true, ..Flags::default() };
    agrees(vec![
        Op::Open(0, at("scratch/d/x"), flags, Ann),
        Op::Write(0, Text::New, 0),
        Op::Rename(at("scratch/d/x"), at("work/inbox/t1.yaml"), Replace, Ann),
        Op::Read(0),
        // There is nothing that it could write to any more.
        Op::Write(0, Text::New, 0),
        Op::Close(0),
    ]);
}

#[test]
fn a_descriptor_of_what_left_the_workspace_writes_to_its_file() {
    let path = "work/inbox/t1.yaml";
    agrees(vec![
        put(path, Text::New, How::Truncate, Ann),
        Op::Open(0, at(path), Flags { write: true, ..Flags::default() }, Ann),
        Op::Rename(at(path), at("scratch/d/x"), Replace, Ann),
        put(path, Text::Titled, How::Truncate, Bob),
        Op::Write(0, Text::NoId, 0),
        Op::Close(0),
    ]);
}

#[test]
fn a_new_draft_that_got_a_plain_name_can_have_two() {
    let path = "work/inbox/t1.yaml";
    agrees(vec![
        Op::Open(0, at(path), Flags { write: true, create: true, ..Flags::default() }, Ann),
        Op::Rename(at(path), at("work/inbox/t1.yaml~"), Replace, Ann),
        Op::Link(at("work/inbox/t1.yaml~"), at("scratch/d/x")),
        Op::Close(0),
    ]);
}

#[test]
fn a_draft_without_a_name_can_be_emptied() {
    agrees(vec![
        Op::Open(0, at(T1), Flags { write: true, create: true, ..Flags::default() }, Ann),
        Op::Unlink(at(T1), Ann),
        Op::Ftruncate(0, 0),
        Op::Close(0),
    ]);
}

#[test]
fn a_claim_by_copy_waits_for_who_writes_the_record() {
    let path = "work/inbox/t1.yaml";
    agrees(vec![
        put(path, Text::New, How::Truncate, Ann),
        Op::Open(0, at(path), Flags { write: true, ..Flags::default() }, Bob),
        Op::Write(0, Text::Titled, 0),
        put(T1, Text::New, How::Truncate, Ann),
        Op::Close(0),
    ]);
}

#[test]
fn a_parked_record_does_not_come_back_in_another_state() {
    for text in [Text::Nonsense, Text::New, Text::Done] {
        agrees(vec![
            put("work/inbox/t1.yaml", Text::New, How::Truncate, Ann),
            Op::RenameHere(at("work/inbox/t1.yaml"), "t1.yaml~", Ann),
            Op::Unlink(at("work/inbox/t1.yaml~"), Ann),
            Op::MoveDir("work/inbox", "work/assigned/c", Replace),
            put("work/assigned/c/t1.yaml", text, How::Truncate, Ann),
        ]);
    }
}

/// Does these operations in an empty tree.
fn agrees_from_nothing(ops: Vec<Op>) {
    if let Err(differs) = go(&Walk { laid_out: false, ops }) {
        panic!("{differs}");
    }
}

#[test]
fn a_workspace_that_was_moved_away_is_an_ordinary_directory() {
    agrees_from_nothing(vec![
        Op::Mkdir("work"),
        Op::Mkdir("scratch"),
        Op::MoveDir("work", "scratch/d", Replace),
        put("scratch/d/x", Text::New, How::Truncate, Ann),
        Op::MoveDir("scratch/d", "scratch/e", Replace),
        Op::MoveDir("scratch", "work", Replace),
        Op::Mkdir("work"),
        Op::Mkdir("work/inbox"),
        put("work/inbox/t1.yaml", Text::New, How::Truncate, Ann),
    ]);
}

#[test]
fn a_directory_that_was_one_workspace_becomes_another() {
    agrees_from_nothing(vec![
        Op::Mkdir("work"),
        Op::Mkdir("work/collaboration"),
        Op::MoveDir("work/collaboration", "scratch", Replace),
        Op::Rmdir("work"),
        Op::MoveDir("scratch", "work", Replace),
        Op::Mkdir("work/inbox"),
        put("work/inbox/t1.yaml", Text::New, How::Truncate, Ann),
    ]);
}

#[test]
fn a_save_takes_the_set_id_bits_away() {
    let chmod = |mode| Op::Chmod(at("work/inbox/t1.yaml"), mode);
    agrees(vec![
        put("work/inbox/t1.yaml", Text::Fitting, How::Truncate, Ann),
        chmod(0o4755),
        put("work/inbox/t1.yaml", Text::Fitting, How::Truncate, Ann),
        Op::SetStatus(at("work/inbox/t1.yaml"), "inbox", Ann),
        chmod(0o2750),
        Op::SetStatus(at("work/inbox/t1.yaml"), "new", Ann),
    ]);
}
