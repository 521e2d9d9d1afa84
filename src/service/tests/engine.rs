//! What the engine makes of a store that is as no mount leaves it at will.

use super::damage::Break;
use super::*;
use crate::engine::{Allocate, Base, Rename, RenameMode, Saved, read_plain};
use crate::limits::{CHUNK_BYTES, HISTORY_STEPS_MAX};
use crate::names::Dentry;
use crate::refusal::{Refusal, Rule};
use crate::store::{Read, StoreError, Txn};

#[test]
fn a_change_that_meets_damage_is_undone_alone() {
    let bench = Bench::new();
    bench.mkdir("dir");
    let parent = bench.node("dir").unwrap().ino;
    let (tell, told) = crossbeam_channel::unbounded();
    let (engine, context) = (bench.service.engine.clone(), bench.context());
    // What is submitted by who writes waits until that is done, and is one batch then.
    let together = Break(move |_: &mut dyn Txn| {
        for nth in 0..6 {
            let tell = tell.clone();
            let answer = move |ran: Result<(), Refusal>| tell.send((nth, ran)).unwrap();
            if nth % 2 == 0 {
                let fails = |txn: &mut dyn Txn| {
                    txn.put_meta("left", "of what failed")?;
                    Err(StoreError::Impossible("as it must".to_owned()))
                };
                engine.submit(context.clone(), Break(fails), answer);
            } else {
                let name = FileName::new(nth.to_string()).unwrap();
                let content = NewContent::File;
                let create = Create::new(parent, name, 0o644, content);
                engine.submit(context.clone(), create, move |ran| answer(ran.map(drop)));
            }
        }
        Ok(())
    });
    bench.service.engine.run(bench.context(), together).unwrap();
    for (nth, ran) in told.iter().take(6) {
        match ran {
            Ok(()) => assert_eq!(nth % 2, 1),
            Err(refusal) => {
                assert_eq!((refusal.rule, nth % 2), (Rule::Damaged, 0));
                assert!(refusal.reason.contains("as it must"), "{refusal}");
            }
        }
        assert_eq!(bench.node(&format!("dir/{nth}")).is_some(), nth % 2 == 1);
    }
    assert_eq!(bench.service.read(|read| Ok(read.meta("left")?)).unwrap(), None);
    bench.clean();
}

#[test]
fn a_nameless_file_of_which_the_first_pieces_went_is_written_as_an_empty_one() {
    let bench = Bench::new();
    let engine = &bench.service.engine;
    for way in 0..3 {
        let name = format!("file-{way}");
        bench.save(&name, "");
        let node = bench.node(&name).unwrap();
        let ino = node.ino;
        // As `reclaim` leaves it between two pieces.
        let half_gone = move |txn: &mut dyn Txn| {
            txn.delete_entry(crate::numbers::ROOT, &FileName::new(name).unwrap())?;
            txn.insert_orphan(ino)?;
            txn.insert_whole_chunks(ino, 1, &vec![b'x'; 2 * CHUNK_BYTES])?;
            txn.update_node(&Node { nlink: 0, size: 0, chunks: 700, ..node })
        };
        engine.run(bench.context(), Break(half_gone)).unwrap();
        let (whole, none) = (CHUNK_BYTES as u64, vec![0; CHUNK_BYTES]);
        let offset = WriteAt::Offset;
        let length = match way {
            0 => {
                let (at, data) = (offset(0), vec![b'y'; 2 * CHUNK_BYTES]);
                engine.run(bench.context(), Write { ino, at, data }).unwrap();
                let (at, data) = (offset(3 * whole - 1), vec![b'y']);
                engine.run(bench.context(), Write { ino, at, data }).unwrap().size
            }
            1 => {
                let (length, zero) = (3 * whole, false);
                let allocate = Allocate { ino, offset: 0, length, keep_size: false, zero };
                engine.run(bench.context(), allocate).unwrap();
                length
            }
            _ => {
                let (at, data) = (offset(2 * whole + 9), vec![0]);
                engine.run(bench.context(), Write { ino, at, data }).unwrap().size
            }
        };
        let read = |read: &dyn Read| {
            let node = read.node(ino)?.unwrap();
            Ok(read_plain(read, &node, 0, 3 * CHUNK_BYTES)?)
        };
        let found = bench.service.read(read).unwrap();
        assert_eq!(found.len() as u64, length, "{way}");
        assert!(!found.contains(&b'x'), "{way}");
        assert!(way == 0 || found[..CHUNK_BYTES] == none, "{way}");
    }
}

// P12.3
#[test]
fn of_a_past_that_is_too_long_to_look_at_nobody_is_given_what_another_may_have_lost() {
    let bench = Bench::new();
    ["work/inbox", "work/assigned/bob"].iter().for_each(|dir| bench.mkdir(dir));
    bench.save("work/inbox/a.yaml", "status: new\n");
    let dir = |path: &str| bench.node(path).unwrap().ino;
    let (inbox, lane) = (dir("work/inbox"), dir("work/assigned/bob"));
    let name = || FileName::new(b"a.yaml").unwrap();
    let moved = |(from, to), context: &Context| {
        let sight = Sight::Known(Base::Unseen);
        let at = |dir| Dentry::of(dir, name());
        let (from, to, mode) = (at(from), at(to), RenameMode::NoReplace);
        let rename = Rename { from, to, mode, sight };
        bench.service.engine.run(context.clone(), rename).unwrap();
    };
    let bob = bench.caller().acting(&bench.service.engine.agents(), Some(&agent("bob")));
    let bob = bob.unwrap().context();
    moved((inbox, lane), &bob);
    moved((lane, inbox), &bob);
    let late = |base| {
        let (text, content) = (Text::new(b"status: assigned\n".to_vec()), NewContent::File);
        let create = Create::new(lane, name(), 0o644, content);
        let ino = bench.service.engine.run(bob.clone(), create).unwrap().ino;
        let save = Save::of(ino, Sight::Known(base), text);
        match bench.service.engine.run(bob.clone(), save).unwrap() {
            Saved::Refused(refusal) => Err(refusal),
            saved => Ok(saved),
        }
    };
    let refused = late(Base::Unseen).unwrap_err();
    assert!(refused.reason.contains("bob's claim of `a` is over"), "{refused}");
    for nth in 0..=HISTORY_STEPS_MAX {
        bench.save("work/inbox/a.yaml", &format!("status: new\ntitle: x{nth}\n"));
    }
    let refused = late(Base::Unseen).unwrap_err();
    assert_eq!(refused.rule, Rule::LeaseOver, "{refused}");
    assert!(refused.reason.contains("cannot be told"), "{refused}");
    // Who has read it takes it.
    late(Base::Current).unwrap();
    assert!(bench.node("work/inbox/a.yaml").is_none());
    bench.clean();
}

// P11.1
#[test]
fn what_a_failed_commit_has_learned_of_a_directory_counts_for_no_later_change() {
    let bench = Bench::new();
    bench.mkdir("scratchpad/dir");
    bench.save("scratchpad/dir/f", "1");
    let (engine, context) = (bench.service.engine.clone(), bench.context());
    let ino = |path: &str| bench.node(path).unwrap().ino;
    let (root, above, file) = (crate::numbers::ROOT, ino("scratchpad"), ino("scratchpad/dir/f"));
    let told = || {
        let what = Some("scratchpad".to_owned());
        bench.lines(LogArgs { what, ..LogArgs::default() })
    };
    let before = told().len();
    let (tell, failed) = crossbeam_channel::unbounded();
    // All in one batch, of which the last change fails with the store.
    let together = Break(move |_: &mut dyn Txn| {
        let name = FileName::new("dir").unwrap();
        let sight = Sight::Known(Base::Unseen);
        let mode = RenameMode::NoReplace;
        let from = Dentry::of(above, name);
        let to = Dentry { dir: root, ..from.clone() };
        let out = Rename { from, to, mode, sight };
        engine.submit(context.clone(), out, |_| {});
        let text = Text::new(b"2".to_vec());
        engine.submit(context.clone(), Save::of(file, Sight::Known(Base::Unseen), text), |_| {});
        let fails = |_: &mut dyn Txn| Err(StoreError::Failed("as it must".to_owned()));
        engine.submit(context.clone(), Break(fails), move |ran| tell.send(ran).unwrap());
        Ok(())
    });
    bench.service.engine.run(bench.context(), together).unwrap();
    assert_eq!(failed.recv().unwrap().unwrap_err().rule, Rule::Store);
    assert!(bench.node("dir").is_none());
    bench.save("scratchpad/dir/f", "3");
    assert_eq!(told().len(), before + 1);
    bench.clean();
}

// P1.7
#[test]
fn a_directory_is_not_exchanged_with_what_lies_below_it() {
    let bench = Bench::new();
    bench.mkdir("a/b/c");
    // The kernel asks that for its own mount; what another mount has moved it does not know.
    let (root, b) = (crate::numbers::ROOT, bench.node("a/b").unwrap().ino);
    let name = |name: &str| FileName::new(name).unwrap();
    let (a, c) = (Dentry::of(root, name("a")), Dentry::of(b, name("c")));
    for (from, to) in [(a.clone(), c.clone()), (c, a)] {
        let (mode, sight) = (RenameMode::Exchange, Sight::Known(Base::Unseen));
        let exchange = Rename { from, to, mode, sight };
        let refused = bench.service.engine.run(bench.context(), exchange).unwrap_err();
        assert_eq!(refused.rule, Rule::Loop, "{refused}");
    }
    assert!(bench.node("a/b/c").is_some());
    bench.clean();
}
