//! Races by read, change and write back: what two unmodified scripts do to one task's status.

use std::collections::BTreeMap;
use std::fs;

use crate::harness::{Fixture, Said, Setup, Task, Worker, Workers, lies, pile};
use crate::race::{Reader, spread, tasks_wanted};

/// Reads a task; if nobody has it, writes it back with its own name. The winner is who could
/// close the file.
const WORKER: &str = "
ready()
lane = work + '/assigned/team/'
names = sorted(os.listdir(lane))
while names:
    name = names.pop(0)
    text = open(lane + name).read()
    if 'status: assigned\\n' not in text:
        continue
    text = text.replace('status: assigned\\n', 'status: in_progress\\n')
    text = text.replace('taken_by: none', 'taken_by: w%d' % nth)
    try:
        with open(lane + name, 'w') as f:
            f.write(text)
    except OSError as error:
        if error.errno == errno.ESTALE:
            # The record had a new inode twice during one open: see P7.4.
            names.insert(0, name)
            continue
        if error.errno != errno.EBUSY:
            raise
        say('busy ' + name[:-5])
        continue
    say('won ' + name[:-5])
";

fn judge(fixture: &Fixture, ids: &[String], said: &[Said]) {
    let mut winners: BTreeMap<&str, usize> = BTreeMap::new();
    for Said { nth, line } in said {
        match line.split_once(' ').unwrap() {
            ("won", id) => {
                let before = winners.insert(id, *nth);
                assert!(before.is_none(), "{id} was won twice, by {before:?} and {nth}");
            }
            ("busy", _) => {}
            _ => panic!("worker {nth}: {line}"),
        }
    }
    assert_eq!(winners.len(), ids.len(), "not every task was won");
    let pile = pile(&fixture.work());
    let ledger = fixture.ledger();
    let saves = ledger.counts("saved");
    for id in ids {
        assert_eq!(lies(&fixture.work(), &pile, id), "assigned/team");
        let path = fixture.work().join(format!("assigned/team/{id}.yaml"));
        let text = fs::read_to_string(path).unwrap();
        let taken = format!("taken_by: w{}\n", winners[id.as_str()]);
        assert!(text.contains(&taken), "not the winner's:\n{text}");
        assert_eq!(saves[id.as_str()], 1, "{id} in the ledger");
    }
    fixture.fsck_clean();
}

fn race(mounts: usize) {
    let fixture = Setup::default().mounts(mounts).lanes(["team"]).start();
    let ids: Vec<String> = (1..=tasks_wanted()).map(|nth| format!("t-{nth:04}")).collect();
    for id in &ids {
        fixture.task("assigned/team", &Task::new(id).status("assigned").owner("team"));
    }
    let reader = Reader::start(&fixture.mounts()[mounts - 1].join("work"));
    let said = Workers::start(&Worker::Python(WORKER), &spread(&fixture), &[]).go_and_finish();
    reader.finish();
    judge(&fixture, &ids, &said);
}

// P1.4
#[test]
fn eight_processes_write_back_what_they_read_and_each_task_has_one_winner() {
    race(1);
}

// P1.2 P1.4
#[test]
fn eight_processes_on_four_mounts_write_back_and_each_task_has_one_winner() {
    race(4);
}
