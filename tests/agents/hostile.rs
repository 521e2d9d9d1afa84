//! What agents by their users try to get from each other, and from who runs the store, by what is no file's name.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;

use crate::harness::asked;
use crate::users::{BOB, NOBODY, by, shared};

// P10.5
#[test]
fn what_a_user_has_written_is_saved_in_its_name_whoever_closes_it() {
    let Some(fixture) = shared() else { return };
    by(&fixture, BOB, "mv work/inbox/t-1.yaml work/assigned/bob/").success();
    let own = fixture.path("work/assigned/bob/t-1.yaml");
    // As a set-user-id program that is started with the descriptor: what it is closed by is the same table of files.
    let save = |from: &str, to: &str| {
        use rustix::thread::{Uid, set_thread_res_uid};
        let text = fs::read_to_string(&own).unwrap().replace(from, to);
        let become_user = |uid| {
            let (root, user) = (Uid::ROOT, Uid::from_raw(uid));
            set_thread_res_uid(root, user, root).unwrap();
        };
        let save = || {
            become_user(BOB);
            let mut file = fs::File::create(&own).unwrap();
            // Some of it is refused at once.
            let _ = file.write_all(text.as_bytes());
            become_user(0);
        };
        std::thread::scope(|scope| scope.spawn(save).join().unwrap());
    };
    save("agent: bob", "agent: ann");
    let read = || fs::read_to_string(&own).unwrap();
    assert!(read().contains("agent: bob"), "{}", read());
    save("title:", "title: bob said so, of");
    assert!(read().contains("bob said so"), "{}", read());
    let last = fixture.ledger().0.pop().unwrap();
    assert_eq!((last.name(), last.text("actor"), &last.0["uid"]), ("saved", "bob", &BOB.into()));
    fixture.fsck_clean();
}

// P10.2
#[test]
fn no_part_of_the_tree_is_a_way_round_what_is_closed_above_it() {
    let Some(fixture) = shared() else { return };
    fixture.sh("mkdir -p closed/part && echo secret > closed/part/f && chmod 700 closed").success();
    fs::set_permissions(fixture.store().parent().unwrap(), fs::Permissions::from_mode(0o711))
        .unwrap();
    let show = serde_json::json!({"show": {"what": "f"}});
    let ask = serde_json::json!({"within": {"root": "closed/part", "do": show}});
    let shown = || asked(&fixture.connected_as(BOB), &ask);
    assert!(shown().contains("user 64001 may not pass to `closed/part`"), "{}", shown());
    // One above that is not there yet may be made, and closed, while he waits below it.
    let next = serde_json::json!({"claim": {"wait_ms": 1000}});
    let wait = serde_json::json!({"within": {"root": "later/part", "do": next}});
    let told = asked(&fixture.connected_as(BOB), &wait);
    assert!(told.contains("user 64001 may not pass to `later/part`"), "{told}");
    // Who runs the store may let him in.
    let part = fixture.outside("part");
    fs::create_dir(&part).unwrap();
    let arguments = ["mount", part.to_str().unwrap(), "--root", "closed/part"];
    fixture.workfs(&arguments).success();
    assert!(!shown().contains("secret"), "that one is root's alone");
    fixture.workfs(&["unmount", part.to_str().unwrap()]).success();
    fixture.workfs(&[&arguments[..], &["-o", "allow_other"]].concat()).success();
    assert!(shown().contains("secret"), "{}", shown());
    fixture.workfs(&["unmount", part.to_str().unwrap()]).success();
    fixture.sh("chmod 711 closed").success();
    assert!(shown().contains("secret"), "{}", shown());
}

// P7.1
#[test]
fn who_may_act_as_any_owner_may_in_a_sticky_directory() {
    let Some(fixture) = shared() else { return };
    fixture.sh("mkdir s && chmod 1777 s && touch s/a s/b").success();
    let user = format!("setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups");
    fixture.sh(&format!("{user} rm -f s/a")).failure();
    let capable = "--inh-caps +fowner --ambient-caps +fowner";
    fixture.sh(&format!("{user} {capable} rm -f s/a && {user} {capable} mv s/b s/c")).success();
}
