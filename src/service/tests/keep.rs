//! backup and restore.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn backup(bench: &Bench, file: &Path) -> Result<Report, Failure> {
    bench.ask(Request::Backup(BackupArgs { file: file.to_owned() }))
}

fn put_back(store: &Path, file: &Path, force: bool) -> Result<RestoreReport, Failure> {
    restore(store, file, force, &mut |_| true)
}

#[test]
fn a_backup_of_a_store_in_use_comes_back() {
    let bench = Bench::new();
    bench.mkdir("work/inbox");
    bench.save("work/inbox/a.yaml", "status: new\n");
    let file = bench.path("copy.db");
    backup(&bench, &file).unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(backup(&bench, &file).unwrap_err().exit, Exit::Refused);
    assert_eq!(unfinished(&bench), Vec::<String>::new());
    bench.save("work/inbox/b.yaml", "status: new\n");

    // Held by the engine of this very process.
    let held = put_back(&bench.service.store, &file, true).unwrap_err();
    assert!(held.reason.contains("held by process"), "{held:?}");

    let store = bench.path("new/store.db");
    let report = put_back(&store, &file, false).unwrap();
    assert_eq!((report.records, report.kept.as_ref()), (1, None));
    let again = put_back(&store, &file, false).unwrap_err();
    assert_eq!(again.exit, Exit::Refused);
    let forced = put_back(&store, &file, true).unwrap();
    let kept = forced.kept.unwrap();
    assert!(kept.ends_with("store.db.before-restore") && Path::new(&kept).exists());
    let forced = put_back(&store, &file, true).unwrap();
    assert!(forced.kept.unwrap().ends_with("store.db.before-restore.2"));
    let service = open(&store, Config::default());
    let restored = Bench { dir: tempfile::tempdir().unwrap(), service };
    assert_eq!(restored.list(ListArgs::default()).len(), 1);
    restored.clean();
}

#[test]
fn a_backup_gets_no_name_that_is_taken_for_the_store_s() {
    let bench = Bench::new();
    bench.mkdir("work/inbox");
    let ends = ["-journal", "-extents", ".covers", ".restoring", ".restoring-wal"];
    for name in ends.map(|end| format!("store.db{end}")) {
        let refused = backup(&bench, &bench.path(&name)).unwrap_err();
        assert_eq!(refused.exit, Exit::Usage, "{name}: {refused:?}");
        assert!(!bench.path(&name).exists(), "{name}");
    }
    backup(&bench, &bench.path("store.db.bak")).unwrap();
    let (file, store) = (bench.path("new.db.restoring"), bench.path("new.db"));
    backup(&bench, &file).unwrap();
    assert_eq!(put_back(&store, &file, true).unwrap_err().exit, Exit::Refused);
    assert!(file.exists() && !store.exists());
}

/// Names in the directory of the store that a copy under way has, or a restored store.
fn unfinished(bench: &Bench) -> Vec<String> {
    let entries = std::fs::read_dir(bench.dir.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains("part") || name.contains("restoring")).collect()
}

#[test]
fn a_backup_that_nobody_waits_for_leaves_nothing() {
    let bench = Bench::new();
    let file = bench.path("copy.db");
    let args = BackupArgs { file: file.clone() };
    dispatch(&bench.service, &bench.caller(), Request::Backup(args), &mut |_| false);
    assert!(!file.exists());
    assert_eq!(unfinished(&bench), Vec::<String>::new());
    backup(&bench, &file).unwrap();
    let store = bench.path("other.db");
    restore(&store, &file, false, &mut |_| false).unwrap_err();
    assert!(!store.exists());
    assert_eq!(unfinished(&bench), Vec::<String>::new());
}

#[test]
fn of_two_backups_to_one_file_one_is_refused() {
    let bench = Bench::new();
    let file = bench.path("copy.db");
    let args = BackupArgs { file: file.clone() };
    let mut second = None;
    let mut first = None;
    dispatch(&bench.service, &bench.caller(), Request::Backup(args), &mut |reply| {
        match reply {
            Reply::Progress { .. } => {
                second = second.take().or_else(|| Some(backup(&bench, &file)))
            }
            reply => first = Some(reply),
        }
        true
    });
    assert_eq!(second.unwrap().unwrap_err().exit, Exit::Lost);
    assert!(matches!(first, Some(Reply::Report(_))), "{first:?}");
    let store = bench.path("other.db");
    put_back(&store, &file, false).unwrap();
    // What one that was killed has left hinders nobody.
    let file = bench.path("next.db");
    std::fs::write(bench.path("next.db.workfs-part"), "half").unwrap();
    backup(&bench, &file).unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    put_back(&store, &file, true).unwrap();
}

#[test]
fn a_backup_is_written_into_no_file_of_somebody_else_s() {
    let bench = Bench::new();
    let aside = |name: &str| bench.path(&format!("{name}.workfs-part"));
    rustix::fs::mkfifoat(rustix::fs::CWD, aside("pipe.db"), rustix::fs::Mode::RWXU).unwrap();
    std::fs::write(bench.path("mine"), "mine").unwrap();
    std::fs::hard_link(bench.path("mine"), aside("linked.db")).unwrap();
    for name in ["pipe.db", "linked.db"] {
        let file = bench.path(name);
        backup(&bench, &file).unwrap();
        let meta = file.metadata().unwrap();
        assert!(meta.is_file() && meta.permissions().mode() & 0o777 == 0o600, "{name}");
        put_back(&bench.path("other.db"), &file, true).unwrap();
    }
    assert_eq!(std::fs::read_to_string(bench.path("mine")).unwrap(), "mine");
}

#[test]
fn an_export_that_nobody_waits_for_leaves_no_cut_file() {
    let bench = Bench::new();
    let root = bench.path("src");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("big"), vec![b'x'; 3 << 20]).unwrap();
    bench.import(&root, "plain");
    let out = bench.path("out");
    let args = ExportArgs { path: Some("plain".into()), to: out.clone(), ..ExportArgs::default() };
    let mut replies = 0;
    dispatch(&bench.service, &bench.caller(), Request::Export(args), &mut |_| {
        replies += 1;
        replies < 2
    });
    assert_eq!(replies, 3, "it is asked while it copies, and reports");
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 0);
}

#[test]
fn what_is_no_whole_store_is_not_put_in_place() {
    let bench = Bench::new();
    bench.mkdir("work/inbox");
    for n in 0..50 {
        bench.save(&format!("work/inbox/t{n}.yaml"), "status: new\n");
    }
    let file = bench.path("copy.db");
    backup(&bench, &file).unwrap();
    let store = bench.path("other.db");
    let junk = bench.path("junk.db");
    std::fs::write(&junk, "not a database, but long enough to be looked at\n".repeat(99)).unwrap();
    assert!(put_back(&store, &junk, false).is_err());
    assert!(put_back(&store, &bench.path("nowhere.db"), false).is_err());
    // One changed letter in one event: the chain tells. (Its page may have a stale copy of it.)
    let mut bytes = std::fs::read(&file).unwrap();
    let needle = b"work/inbox/t7.yaml\",\"size\":12,\"state\":\"inbox\"},\"payload_hash";
    let places = (0..bytes.len() - needle.len()).filter(|&at| bytes[at..].starts_with(needle));
    for at in places.collect::<Vec<_>>() {
        bytes[at + 12] = b'8';
    }
    let forged = bench.path("forged.db");
    std::fs::write(&forged, bytes).unwrap();
    let refused = put_back(&store, &forged, false).unwrap_err();
    assert_eq!(refused.exit, Exit::Store, "{refused:?}");
    assert!(!store.exists());
    assert_eq!(unfinished(&bench), Vec::<String>::new());
}

#[test]
fn a_backup_ends_although_the_store_is_written_to() {
    let bench = Bench::new();
    let root = bench.path("src");
    std::fs::create_dir(&root).unwrap();
    let noise: Vec<u8> =
        (0..24_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(root.join("noise"), noise).unwrap();
    bench.import(&root, "plain");
    bench.mkdir("work/inbox");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let file = bench.path("copy.db");
    let replies = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                n += 1;
                bench.save(&format!("work/inbox/t{n}.yaml"), "status: new\n");
            }
        });
        let mut replies = 0_u32;
        let args = BackupArgs { file: file.clone() };
        dispatch(&bench.service, &bench.caller(), Request::Backup(args), &mut |_| {
            replies += 1;
            // A copy that began anew with each change would never end.
            if replies > 500 {
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            true
        });
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        replies
    });
    assert!(replies < 50, "{replies}");
    let restored = put_back(&bench.path("other.db"), &file, false).unwrap();
    println!("{} replies, {} records", replies, restored.records);
}

#[test]
fn what_root_restores_is_whose_the_store_was() {
    use std::os::unix::fs::{MetadataExt as _, chown};
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let bench = Bench::new();
    bench.mkdir("work/inbox");
    let (file, store) = (bench.path("copy.db"), bench.path("new.db"));
    backup(&bench, &file).unwrap();
    put_back(&store, &file, false).unwrap();
    assert_eq!(std::fs::metadata(&store).unwrap().uid(), 0);
    chown(&store, Some(64_001), Some(64_002)).unwrap();
    put_back(&store, &file, true).unwrap();
    let found = std::fs::metadata(&store).unwrap();
    assert_eq!((found.uid(), found.gid()), (64_001, 64_002));
}

#[test]
fn what_a_restoring_tells_of_is_damage_before_it_is_what_power_loss_took() {
    let [lost, damage] = [true, false].map(|lost| Problem {
        thing: "node 7".to_owned(),
        what: "is bent, or gone".to_owned(),
        lost,
    });
    let with = |problems: &[&Problem]| {
        let problems = problems.iter().map(|one| (*one).clone()).collect();
        let report = FsckReport { problems, ..FsckReport::default() };
        report.first_damage().cloned()
    };
    assert_eq!(with(&[&lost, &damage]), Some(damage));
    assert_eq!(with(&[&lost]), Some(lost));
    assert_eq!(with(&[]), None);
}
