//! A move to where lanes lie, of which none was named.

use std::fs;

use crate::harness::{Errno, Fixture, Setup, Task};

/// The command that the last refusal says.
fn way_out(fixture: &Fixture, index: usize) -> String {
    let why = fs::read_to_string(fixture.mount(index).join(".workfs/why")).unwrap();
    let told = why.lines().find_map(|line| line.trim().strip_prefix("do:")).unwrap();
    told.trim().strip_prefix("name a lane: ").unwrap_or_else(|| panic!("{why}")).to_owned()
}

// P3.2
#[test]
fn a_lane_that_was_forgotten_has_a_way_out_that_works() {
    let fixture = Setup::default().mounts(2).prepare();
    fixture.mount_at(fixture.mount(0)).success();
    fixture.make_directories();
    let agents = fixture.mount(1).to_str().unwrap().to_owned();
    fixture.workfs(&["mount", &agents, "--agent", "zoe"]).success();
    for (index, you) in [(0, "YOU"), (1, "zoe")] {
        let mount = fixture.mount(index).to_owned();
        for from in ["work/inbox/t-1.yaml", "work/ready/t-1.yaml", "work/ready/.next"] {
            fixture.task("inbox", &Task::new("t-1"));
            let to = mount.join("work/assigned").join(from.rsplit('/').next().unwrap());
            let refused = fs::rename(mount.join(from), to).unwrap_err();
            assert_eq!(Errno::from_io_error(&refused), Some(Errno::PERM), "{from}: {you}");
            let told = way_out(&fixture, index);
            fixture.bash().run(&format!("cd '{}' && {told}", mount.display())).success();
            let lane = format!("work/assigned/{you}/t-1.yaml");
            assert!(mount.join(&lane).exists(), "{from}: {told}");
            fs::remove_file(fixture.path(&lane)).unwrap();
        }
        assert!(!mount.join("work/assigned/t-1.yaml").exists());
    }
    // An agent that writes there is not told of a lane of the file's name, either.
    fs::write(fixture.mount(1).join("work/assigned/t-2.yaml"), "id: t-2\n").unwrap_err();
    let told = way_out(&fixture, 1);
    assert_eq!(told, "cp FILE work/assigned/zoe/");
}
