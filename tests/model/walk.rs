//! Random walks: sequences of operations, shrunk to the shortest that shows a difference.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

use super::ops::{OPEN_MAX, Op, op};
use super::reference::MEETS;
use super::world::{Slot, Step, World};

/// One walk: what is done, and whether the directories are there from the start.
#[derive(Clone, Debug)]
pub struct Walk {
    pub laid_out: bool,
    pub ops: Vec<Op>,
}

fn walk() -> impl Strategy<Value = Walk> {
    let laid_out = prop_oneof![9 => Just(true), 1 => Just(false)];
    (laid_out, prop::collection::vec(op(), 1..50))
        .prop_map(|(laid_out, ops)| Walk { laid_out, ops })
}

/// Does a walk, and gives what it met; the error names the first difference and what led to it.
pub fn go(walk: &Walk) -> Step<BTreeSet<&'static str>> {
    let mut world = World::new();
    steps(&mut world, walk)
        .map_err(|differs| format!("{differs}\nafter:\n  {}", world.trace.join("\n  ")))?;
    Ok(world.model.met.take())
}

fn steps(world: &mut World, walk: &Walk) -> Step {
    let mut open: [Option<Slot>; OPEN_MAX] = [None; OPEN_MAX];
    if walk.laid_out {
        world.lay_out()?;
    }
    for op in &walk.ops {
        world.run(op, &mut open)?;
        if world.model.lost {
            return Ok(());
        }
    }
    world.compare()?;
    let held: BTreeSet<u64> = open.iter().flatten().map(|slot| slot.real.ino.0).collect();
    world.check_store(&held)?;
    world.close_all(&mut open)?;
    world.compare()?;
    world.check_store(&BTreeSet::new())?;
    world.restart();
    world.compare()?;
    world.check_store(&BTreeSet::new())
}

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a number")),
        Err(_) => default,
    }
}

/// What was met, in how many walks each.
type Met = BTreeMap<&'static str, u32>;

/// So many walks at once: one waits for nothing but the processor.
const WALKERS: u32 = 4;

/// What the walks of one walker met; the error is for whoever reads it.
fn walks(seed: u64, walker: u32, cases: u32) -> Result<Met, String> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(
        &seed.wrapping_mul(WALKERS.into()).wrapping_add(walker.into()).to_le_bytes(),
    );
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 4096, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let met = RefCell::new(Met::new());
    let result = TestRunner::new_with_rng(config, rng).run(&walk(), |walk| {
        for what in go(&walk).map_err(TestCaseError::fail)? {
            *met.borrow_mut().entry(what).or_default() += 1;
        }
        Ok(())
    });
    match result {
        Ok(()) => Ok(met.take()),
        Err(TestError::Fail(why, walk)) => {
            Err(format!("seed {seed}, walker {walker}: {why}\nthe walk: {walk:#?}"))
        }
        Err(aborted @ TestError::Abort(_)) => Err(aborted.to_string()),
    }
}

/// `WORKFS_CASES` walks (256) from the seed `WORKFS_SEED` (0).
#[test]
fn the_program_does_what_the_reference_does() {
    let cases = u32::try_from(number("WORKFS_CASES", 256)).unwrap();
    let seed = number("WORKFS_SEED", 0);
    let share = cases.div_ceil(WALKERS);
    let results: Vec<_> = std::thread::scope(|scope| {
        let walkers = (0..WALKERS).map(|walker| scope.spawn(move || walks(seed, walker, share)));
        let walkers: Vec<_> = walkers.collect();
        walkers.into_iter().map(|walker| walker.join().unwrap()).collect()
    });
    let mut met = Met::new();
    for result in results {
        for (what, times) in result.unwrap_or_else(|why| panic!("{why}")) {
            *met.entry(what).or_default() += times;
        }
    }
    println!("met in so many walks: {met:#?}");
    let missed: Vec<_> = MEETS.iter().filter(|what| !met.contains_key(*what)).collect();
    assert!(cases < 256 || seed != 0 || missed.is_empty(), "the walks never meet {missed:?}");
}
