//! What the engine makes of a store that is as no mount leaves it at will.

use super::damage::Break;
use super::*;
use crate::refusal::{Refusal, Rule};
use crate::store::{StoreError, Txn};

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
                let create = Create { parent, name, mode: 0o644, content, on_draft: None };
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
