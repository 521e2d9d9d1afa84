//! Races by copy and unlink, with the public script's own steps.

use crate::harness::{Setup, Worker, Workers};
use crate::race::{Reader, judge_claims, lanes, spread, tasks_wanted};

const WORKER: &str = "
me = 'w%d' % nth
ready()
for name in sorted(os.listdir(work + '/inbox')):
    src, dst = work + '/inbox/' + name, work + '/assigned/' + me + '/' + name
    try:
        text = open(src).read()
    except FileNotFoundError:
        continue
    text = text.replace('status: new', 'status: assigned').replace('agent: nobody', 'agent: ' + me)
    try:
        with open(dst, 'w') as f:
            f.write(text)
    except FileExistsError:
        continue
    os.unlink(src)
    say('won ' + name[:-5])
";

fn race(mounts: usize) {
    let fixture = Setup::default().mounts(mounts).lanes(lanes()).start();
    let ids = fixture.tasks(tasks_wanted());
    let reader = Reader::start(&fixture.mounts()[mounts - 1].join("work"));
    let said = Workers::start(&Worker::Python(WORKER), &spread(&fixture), &[]).go_and_finish();
    reader.finish();
    judge_claims(&fixture, &ids, &said);
}

// P1.3
#[test]
fn eight_processes_copy_and_unlink_and_each_task_has_one_winner() {
    race(1);
}

// P1.2 P1.3
#[test]
fn eight_processes_on_four_mounts_copy_and_unlink_and_each_task_has_one_winner() {
    race(4);
}
