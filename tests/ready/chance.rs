//! Random walks: whatever is saved, moved and removed in whatever order, what is ready is what a
//! simple model says.

use std::collections::{BTreeMap, BTreeSet};

use workfs::engine::{Placed, Remove, RemoveWhat};

use crate::desk::{Desk, name};

/// What the model knows of a record: where it lies, and what it declares.
#[derive(Clone, Default)]
struct Known {
    dir: Option<&'static str>,
    was_done: bool,
    after: BTreeSet<usize>,
    before: BTreeSet<usize>,
}

#[derive(Default)]
struct Model(BTreeMap<usize, Known>);

impl Model {
    /// Pairs (dependency, dependant).
    fn edges(&self) -> BTreeSet<(usize, usize)> {
        let declared = self.0.iter().flat_map(|(&me, known)| {
            let after = known.after.iter().map(move |&other| (other, me));
            after.chain(known.before.iter().map(move |&other| (me, other)))
        });
        declared.collect()
    }

    fn has_circle(&self) -> bool {
        let mut edges = self.edges();
        loop {
            let waits: BTreeSet<usize> = edges.iter().map(|&(_, dependant)| dependant).collect();
            let before = edges.len();
            edges.retain(|(dependency, _)| waits.contains(dependency));
            if edges.len() == before {
                return before > 0;
            }
        }
    }

    fn ready(&self) -> BTreeSet<usize> {
        let edges = self.edges();
        let open = |id: usize| {
            let mut needs = edges.iter().filter(|(_, dependant)| *dependant == id);
            needs.any(|(dependency, _)| !self.0.get(dependency).is_some_and(|one| one.was_done))
        };
        let inbox = self.0.iter().filter(|(_, known)| known.dir == Some("inbox"));
        inbox.map(|(&id, _)| id).filter(|&id| !open(id)).collect()
    }
}

/// Numbers that are the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((self.0 >> 33) as usize) % end
    }
}

// P9.1, P9.4
#[test]
fn what_is_ready_is_what_the_model_says() {
    for seed in 1..=6 {
        walk(seed, 250, false);
    }
}

// P9.4
#[test]
fn so_it_is_where_the_order_of_all_is_known() {
    for seed in 7..=10 {
        walk(seed, 250, true);
    }
}

/// With the order known, which a dependency that is turned round has forgotten, and learnt anew.
fn walk(seed: u64, steps: usize, knows: bool) {
    const IDS: usize = 7;
    let desk = Desk::new();
    let mut model = Model::default();
    let mut chance = Chance(seed);
    if knows {
        desk.know_the_order();
    }
    for step in 0..steps {
        if knows && step % 8 == 0 {
            desk.tie(&format!("tie{step}"));
        }
        let me = chance.below(IDS);
        let task = format!("t{me}");
        let dir = |dir: &str| match dir {
            "inbox" => desk.inbox,
            "lane" => desk.lane,
            _ => desk.done,
        };
        let lies = model.0.get(&me).and_then(|known| known.dir);
        match (chance.below(6), lies) {
            (0..3, _) => {
                let mut some = || (0..chance.below(3)).map(|_| chance.below(IDS)).collect();
                let (after, before): (BTreeSet<usize>, BTreeSet<usize>) = (some(), some());
                let list = |ids: &BTreeSet<usize>| {
                    ids.iter().map(|id| format!("t{id}")).collect::<Vec<_>>().join(", ")
                };
                let fields = format!(
                    "step: {step}\ndependencies: [{}]\nblocks: [{}]\n",
                    list(&after),
                    list(&before)
                );
                let old = model.0.entry(me).or_default().clone();
                let new = Known { after, before, ..old.clone() };
                model.0.insert(me, new);
                let circle = model.has_circle();
                let kept = if lies.is_some() {
                    let status = if lies == Some("lane") { "status: assigned\n" } else { "" };
                    desk.save(&task, &format!("{status}{fields}")).is_ok()
                } else {
                    let placed = desk.put(&task, &fields);
                    if matches!(placed, Placed::Draft(..)) {
                        remove(&desk, desk.inbox, &task);
                    }
                    matches!(placed, Placed::Record(..))
                };
                assert_eq!(kept, !circle, "seed {seed}, step {step}: {task} {fields}");
                if !kept {
                    model.0.insert(me, old);
                } else if lies.is_none() {
                    let known = model.0.get_mut(&me).unwrap();
                    (known.dir, known.was_done) = (Some("inbox"), false);
                }
            }
            (3..5, Some(from)) => {
                let to = match from {
                    "inbox" => ["lane", "done"][chance.below(2)],
                    "lane" => ["inbox", "done"][chance.below(2)],
                    _ => ["inbox", "lane"][chance.below(2)],
                };
                desk.mv(dir(from), dir(to), &task);
                let known = model.0.get_mut(&me).unwrap();
                (known.dir, known.was_done) = (Some(to), to == "done");
            }
            (5, Some(from)) => {
                remove(&desk, dir(from), &task);
                let known = model.0.get_mut(&me).unwrap();
                // It stays done if it was, and says nothing any more.
                *known = Known { was_done: known.was_done, ..Known::default() };
            }
            _ => continue,
        }
        let ready: BTreeSet<usize> =
            desk.ready().iter().map(|id| id[1..].parse().unwrap()).collect();
        assert_eq!(ready, model.ready(), "seed {seed}, step {step}: {task}");
    }
    desk.fsck_clean();
}

fn remove(desk: &Desk, parent: workfs::numbers::Ino, task: &str) {
    let remove = Remove { parent, name: name(&format!("{task}.yaml")), what: RemoveWhat::File };
    desk.engine().run(Desk::context(), remove).unwrap();
}
