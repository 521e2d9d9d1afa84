//! Clients that stop in the middle, or die in the middle.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use rustix::process::Signal;

use crate::harness::{
    DEADLINE, Errno, Fixture, Setup, Task, Worker, Workers, send_signal, state_of, until_polled,
    whole,
};

/// Writes half of a task, so that it cannot be taken for a whole one, and waits for the end.
const HALF: &str = "
path = work + '/inbox/t-1.yaml'
ready()
f = open(path, 'w')
f.write('id: t-1\\nstatus: new\\ntitle: \"cut in the mid')
f.flush()
say('half')
os.read(0, 10)
f.write('dle\"\\n')
f.close()
say('whole')
";

/// Starts it; when this returns it has written its half.
fn half_written(fixture: &Fixture) -> Workers {
    let mut worker = Workers::start(&Worker::Python(HALF), &[fixture.work()], &[]);
    worker.go_on();
    assert_eq!(worker.next().unwrap().line, "half");
    worker
}

// P6.5
#[test]
fn a_client_that_stops_in_the_middle_of_a_save_holds_up_nobody_else() {
    let fixture = Setup::default().mounts(2).start();
    let path = fixture.task("inbox", &Task::new("t-1"));
    fixture.task("inbox", &Task::new("t-2"));
    let mut worker = half_written(&fixture);
    let pid = worker.pids()[0];
    send_signal(pid, Signal::STOP);
    until_polled("the client stops", || (state_of(pid) == Some('T')).then_some(()));

    assert_eq!(fs::read_to_string(&path).unwrap(), Task::new("t-1").text());
    let start = Instant::now();
    let error = fs::rename(&path, fixture.work().join("assigned/bob/t-1.yaml")).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::BUSY));
    assert!(start.elapsed() < DEADLINE);
    fixture.sh("mv work/inbox/t-2.yaml work/assigned/bob/; ls work/inbox; echo x > f").success();
    let other = fixture.mount(1).join("work/inbox/t-1.yaml");
    assert_eq!(fs::read_to_string(other).unwrap(), Task::new("t-1").text());
    fixture.fsck_clean();

    send_signal(pid, Signal::CONT);
    worker.go();
    assert_eq!(worker.next().unwrap().line, "whole");
    worker.finish();
    let saved = "id: t-1\nstatus: new\ntitle: \"cut in the middle\"\n";
    assert_eq!(fs::read_to_string(&path).unwrap(), saved);
}

// P6.5 P2.2
#[test]
fn a_client_that_dies_in_the_middle_of_a_save_leaves_the_old_version() {
    let fixture = Fixture::new();
    let path = fixture.task("inbox", &Task::new("t-1"));
    let worker = half_written(&fixture);
    send_signal(worker.pids()[0], Signal::KILL);
    drop(worker);
    assert_eq!(fs::read_to_string(&path).unwrap(), Task::new("t-1").text());
    // It is nobody's any more, and can be claimed at once.
    fixture.sh("mv work/inbox/t-1.yaml work/assigned/bob/").success();
    assert_eq!(fixture.ledger().names("t-1"), ["created", "claimed"]);
    fixture.fsck_clean();
}

/// Saves one task after the other by a temp file, in three writes, until it is killed.
const SAVES: &str = "
ready()
text = open(work + '/inbox/t-1.yaml').read()
n = 0
while True:
    n += 1
    new = text.replace('revision: 0', 'revision: %d' % n).replace('end: 0', 'end: %d' % n)
    name = 't-1' if nth % 2 == 0 else 'w%d-%d' % (nth, n)
    new = new.replace('t-1', name)
    final = work + '/inbox/' + name + '.yaml'
    temp = final + '.%d.tmp' % os.getpid()
    try:
        with open(temp, 'w') as f:
            third = len(new) // 3
            for part in (new[:third], new[third:2 * third], new[2 * third:]):
                f.write(part)
                f.flush()
        os.rename(temp, final)
        say('saved ' + name)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
";

// P6.5 P2.2
#[test]
fn clients_that_are_killed_anywhere_leave_whole_records_only() {
    let fixture = Fixture::new();
    fixture.task("inbox", &Task::new("t-1"));
    for round in 0..5 {
        let dirs: Vec<PathBuf> = (0..8).map(|_| fixture.work()).collect();
        let mut workers = Workers::start(&Worker::Python(SAVES), &dirs, &[]);
        let before = fs::read(fixture.work().join("inbox/t-1.yaml")).unwrap();
        whole("t-1", &before).unwrap();
        workers.go();
        for _ in 0..40 + round * 13 {
            workers.next().unwrap();
        }
        workers.pids().into_iter().for_each(|pid| send_signal(pid, Signal::KILL));
        drop(workers);
        for entry in fs::read_dir(fixture.work().join("inbox")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = fixture.work().join("inbox").join(&name);
            match name.strip_suffix(".yaml") {
                Some(id) => drop(whole(id, &fs::read(&path).unwrap()).unwrap()),
                // What a killed client left of a temp file is a plain file.
                None => fs::remove_file(&path).unwrap(),
            }
        }
        let text = Task::new("t-1").text();
        fixture.sh("rm -f work/inbox/w*.yaml work/inbox/t-1.yaml").success();
        crate::harness::save(&fixture.work().join("inbox/t-1.yaml"), text.as_bytes()).unwrap();
    }
    fixture.fsck_clean();
}
