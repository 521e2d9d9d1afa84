//! import and export of what was made for it.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::time::{Duration, SystemTime};

use super::*;
use crate::refusal::Rule;

fn write(root: &Path, path: &str, content: impl AsRef<[u8]>) {
    let file = root.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, content).unwrap();
}

fn read(root: &Path, path: &str) -> Vec<u8> {
    fs::read(root.join(path)).unwrap()
}

fn source(bench: &Bench) -> PathBuf {
    let root = bench.path("src");
    write(&root, "inbox/good.yaml", "# c\nid: good\r\nstatus: new\r\n");
    write(&root, "inbox/bad.yaml", "id: other\nstatus: new\n");
    write(&root, "inbox/README.md", "read me\n");
    write(&root, "inbox/twice.yaml", "status: new\n");
    write(&root, "assigned/bob/late.yaml", "status: 'done' # c\nagent: ann\n");
    write(&root, "done/bob/no-summary.yaml", "status: in_progress\n");
    write(&root, "done/bob/twice.yaml", "status: done\nresult: { summary: x }\n");
    write(&root, "notes/run.sh", "#!/bin/sh\n");
    write(&root, "notes/big.bin", vec![0; 9 << 20]);
    fs::create_dir(root.join("empty")).unwrap();
    symlink("/etc/passwd", root.join("notes/out")).unwrap();
    symlink("../inbox", root.join("notes/in")).unwrap();
    let mode = |path: &str, mode| {
        fs::set_permissions(root.join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("notes/run.sh", 0o750);
    mode("inbox/good.yaml", 0o640);
    let then = SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789);
    for path in ["inbox/good.yaml", "notes/big.bin", "empty"] {
        fs::File::open(root.join(path)).unwrap().set_modified(then).unwrap();
    }
    root
}

#[test]
fn everything_is_taken_once_and_given_back_as_it_was() {
    let bench = Bench::new();
    let root = source(&bench);
    let report = bench.import(&root, "work/");
    println!("{}", report.human());
    assert_eq!((report.files, report.records, report.plain), (11, 3, 5));
    assert_eq!(report.directories, 7);
    assert_eq!(report.corrected.listed.len(), 1);
    let one = &report.corrected.listed[0];
    let said = (utf8(&one.path), one.from.as_str(), one.to.as_str());
    assert_eq!(said, ("work/assigned/bob/late.yaml", "done", "assigned"));
    let drafts: Vec<(&str, Rule)> =
        report.drafts.listed.iter().map(|one| (utf8(&one.path), one.rule)).collect();
    assert_eq!(
        drafts,
        [
            ("work/done/bob/no-summary.yaml", Rule::Required),
            ("work/inbox/bad.yaml", Rule::IdDiffers),
            ("work/inbox/twice.yaml", Rule::Taken),
        ]
    );
    assert!(report.drafts.listed[0].remedy.ends_with("and set `status: done`"));
    assert_eq!((report.unchanged, report.unreadable.count), (0, 0));
    assert!(bench.show("late").text.starts_with("status: 'assigned' # c\nagent: ann\n"));
    assert_eq!(bench.show("late").history[0].event, "imported");
    bench.clean();

    let out = bench.path("out");
    let exported = bench.export(&out, Some("work")).unwrap();
    assert_eq!((exported.files, exported.links, exported.left_out_count), (9, 2, 0));
    for path in [
        "inbox/good.yaml",
        "inbox/bad.yaml",
        "inbox/README.md",
        "inbox/twice.yaml",
        "done/bob/no-summary.yaml",
        "done/bob/twice.yaml",
        "notes/run.sh",
        "notes/big.bin",
    ] {
        assert!(read(&root, path) == read(&out, path), "{path}");
        let (was, is) = (root.join(path).metadata().unwrap(), out.join(path).metadata().unwrap());
        assert_eq!(
            (was.mode(), was.mtime(), was.mtime_nsec()),
            (is.mode(), is.mtime(), is.mtime_nsec()),
            "{path}"
        );
    }
    let time = |root: &Path| root.join("empty").metadata().unwrap().modified().unwrap();
    assert_eq!(time(&root), time(&out));
    assert_eq!(fs::read_link(out.join("notes/out")).unwrap(), Path::new("/etc/passwd"));
    assert_eq!(bench.export(&out, None).unwrap_err().exit, Exit::Refused);
}

#[test]
fn importing_again_changes_nothing() {
    let bench = Bench::new();
    let root = source(&bench);
    bench.import(&root, "work");
    let before = bench.lines(LogArgs::default());
    let again = bench.import(&root, "work");
    assert_eq!(again.unchanged, 11, "{}", again.human());
    assert_eq!((again.records, again.plain, again.directories), (0, 0, 0));
    assert_eq!((again.drafts.count, again.moved_on.count, again.corrected.count), (0, 0, 0));
    assert_eq!(again.exit(), Exit::Done);
    assert_eq!(bench.lines(LogArgs::default()), before);

    // What has moved on since is left where and as it is.
    let claim = ClaimArgs {
        what: Some("good".into()),
        agent: Some(agent("bob")),
        workspace: None,
        wait_ms: None,
    };
    bench.ask(Request::Claim(claim)).unwrap();
    bench.save("work/assigned/bob/late.yaml", "status: assigned\ntitle: new\n");
    bench.save("work/inbox/bad.yaml", "id: bad\nstatus: new\n");
    let before = bench.lines(LogArgs::default());
    let again = bench.import(&root, "work");
    let told = |all: &Listed<Unreadable>| -> Vec<(String, String)> {
        all.listed.iter().map(|one| (utf8(&one.path).to_owned(), one.why.clone())).collect()
    };
    let one = |path: &str, why: &str| (path.to_owned(), why.to_owned());
    assert_eq!(
        told(&again.moved_on),
        [
            one("work/assigned/bob/late.yaml", "it is at version 2 now"),
            one("work/inbox/good.yaml", "it is `work/assigned/bob/good.yaml` now"),
        ]
    );
    let other = "another text of it is there, at version 1";
    assert_eq!(told(&again.left_alone), [one("work/inbox/bad.yaml", other)]);
    assert_eq!(again.exit(), Exit::Problems);
    fs::remove_file(root.join("inbox/bad.yaml")).unwrap();
    assert_eq!(bench.import(&root, "work").exit(), Exit::Done);
    assert_eq!(again.unchanged, 8);
    assert_eq!(bench.lines(LogArgs::default()), before);
    bench.clean();
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_taken() {
    let bench = Bench::new();
    let root = bench.path("src");
    write(&root, "inbox/good.yaml", "status: new\n");
    write(&root, "inbox/huge.yaml", vec![b'x'; 9 << 20]);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("inbox/pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let report = bench.import(&root, "work");
    assert_eq!((report.records, report.unreadable.count), (1, 2), "{}", report.human());
    assert_eq!(report.exit(), Exit::Problems);
    let ask = |from: &Path, to: &str| {
        let args =
            ImportArgs { from: from.to_owned(), to: to.to_owned(), umask: None, agent: None };
        bench.ask(Request::Import(args)).unwrap_err()
    };
    assert_eq!(ask(&bench.path("nowhere"), "work").exit, Exit::Absent);
    assert_eq!(ask(Path::new("src"), "work").exit, Exit::Usage);
    assert_eq!(ask(&root, "work/../etc").exit, Exit::Usage);
    assert_eq!(ask(&root, "work/inbox/good.yaml").exit, Exit::Usage);
}

#[test]
fn a_client_that_is_gone_ends_an_import() {
    let bench = Bench::new();
    let root = bench.path("src");
    for n in 0..300 {
        write(&root, &format!("inbox/t{n}.yaml"), "status: new\n");
    }
    let args = ImportArgs { from: root.clone(), to: "work".into(), umask: None, agent: None };
    let mut told = 0;
    dispatch(&bench.service, &bench.caller(), Request::Import(args), &mut |reply| {
        if matches!(&reply, Reply::Progress { what, .. } if what == "files") {
            told += 1;
            // Who takes so long is told again before the next file.
            std::thread::sleep(crate::limits::TOLD_EVERY);
        }
        told < 2
    });
    let taken = bench.list(ListArgs::default()).len();
    assert!(taken > 0 && taken < 300, "{taken}");
    let rest = bench.import(&root, "work");
    assert_eq!(rest.records + rest.unchanged, 300);
    bench.clean();
}

// P8.4
#[test]
fn files_that_are_one_by_several_names_are_one_afterwards() {
    let bench = Bench::new();
    let root = bench.path("src");
    write(&root, "a/x", "one");
    write(&root, "inbox/t.yaml", "id: t\nstatus: new\n");
    write(&root, "big", vec![b'x'; 9 << 20]);
    fs::create_dir(root.join("b")).unwrap();
    for (of, name) in [("a/x", "b/y"), ("a/x", "z"), ("big", "b/big"), ("inbox/t.yaml", "b/t.yaml")]
    {
        fs::hard_link(root.join(of), root.join(name)).unwrap();
    }
    // A second name where something else is already.
    bench.mkdir("work/b");
    bench.save("work/b/y", "another");
    let report = bench.import(&root, "work");
    assert_eq!((report.records, report.plain, report.left_alone.count), (1, 5, 1));
    let ino = |path: &str| bench.node(path).unwrap().ino;
    assert_eq!(ino("work/a/x"), ino("work/z"));
    assert_eq!((ino("work/big"), bench.node("work/big").unwrap().nlink), (ino("work/b/big"), 2));
    // A record has one name.
    assert_ne!(ino("work/inbox/t.yaml"), ino("work/b/t.yaml"));
    let again = bench.import(&root, "work");
    assert_eq!((again.records, again.plain, again.unchanged), (0, 0, 6), "{}", again.human());
    let out = bench.path("out");
    bench.export(&out, Some("work")).unwrap();
    let inode = |path: &str| fs::metadata(out.join(path)).unwrap().ino();
    assert!(inode("a/x") == inode("z") && inode("big") == inode("b/big"));
    bench.clean();
}

#[test]
fn names_that_are_no_text_and_links_among_files_survive() {
    use std::os::unix::ffi::OsStrExt as _;
    let bench = Bench::new();
    let root = bench.path("src");
    let odd = root.join(std::ffi::OsStr::from_bytes(b"a\xff\n b"));
    fs::create_dir_all(&root).unwrap();
    fs::write(&odd, "odd").unwrap();
    bench.import(&root, "plain");
    let out = bench.path("out");
    bench.export(&out, Some("plain")).unwrap();
    assert_eq!(fs::read(out.join(odd.file_name().unwrap())).unwrap(), b"odd");
}

/// `cargo test --lib ten_thousand -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn ten_thousand_files() {
    let bench = Bench::new();
    let root = bench.path("src");
    let body = format!("description: |\n  what is to be done\n{}", "# filler line\n".repeat(60));
    for n in 0..10_000 {
        write(&root, &format!("inbox/t{n}.yaml"), format!("id: t{n}\nstatus: new\n{body}"));
    }
    for again in [false, true] {
        let start = std::time::Instant::now();
        let report = bench.import(&root, "work");
        println!("again {again}: {:?}: {} records", start.elapsed(), report.records);
    }
    let start = std::time::Instant::now();
    bench.clean();
    println!("fsck: {:?}", start.elapsed());
    let start = std::time::Instant::now();
    bench.export(&bench.path("out"), None).unwrap();
    println!("export: {:?}", start.elapsed());
    for _ in 0..2 {
        let start = std::time::Instant::now();
        let args =
            ClaimArgs { what: None, agent: Some(agent("bob")), workspace: None, wait_ms: None };
        bench.ask(Request::Claim(args)).unwrap();
        println!("claim of any: {:?}", start.elapsed());
    }
}

#[test]
fn holes_are_exported_as_holes() {
    use std::os::unix::fs::MetadataExt as _;
    let bench = Bench::new();
    let chunk = crate::limits::CHUNK_BYTES as u64;
    bench.mkdir("scratchpad");
    bench.save("scratchpad/f", "head");
    let ino = bench.node("scratchpad/f").unwrap().ino;
    let write = |at, data: &str| {
        let (at, data) = (WriteAt::Offset(at), data.as_bytes().to_vec());
        bench.service.engine.run(bench.context(), Write { ino, at, data }).unwrap();
    };
    write(40 * chunk + 7, "middle");
    write(41 * chunk, "next");
    let size = 1 << 40;
    let grow = SetAttributes { size: Some(size), ..SetAttributes::none(ino) };
    bench.service.engine.run(bench.context(), grow).unwrap();
    let report = bench.export(&bench.path("out"), Some("scratchpad")).unwrap();
    assert_eq!((report.files, report.bytes), (1, size));
    let file = std::fs::File::open(bench.path("out/f")).unwrap();
    let metadata = file.metadata().unwrap();
    assert_eq!(metadata.len(), size);
    assert!(metadata.blocks() * 512 <= 4 * chunk, "{}", metadata.blocks());
    let read = |at: u64, wanted: &str| {
        use std::os::unix::fs::FileExt as _;
        let mut found = vec![0; wanted.len()];
        file.read_exact_at(&mut found, at).unwrap();
        assert_eq!(found, wanted.as_bytes());
    };
    read(0, "head\0");
    read(40 * chunk, "\0\0\0\0\0\0\0middle\0");
    read(41 * chunk - 1, "\0next\0");
    read(size - 1, "\0");
}

#[test]
fn holes_are_imported_as_holes_whatever_the_size() {
    let quota = "workspaces: []\nfiles: []\nquotas: [{ path: vv, bytes: 1MiB }]\n";
    let bench = Bench::with(Config::parse("quota", quota).unwrap());
    let root = bench.path("src");
    for (name, size) in [("none", 2 << 20), ("small", 2 << 20), ("big", 20 << 20)] {
        write(&root, name, "");
        let file = fs::OpenOptions::new().write(true).open(root.join(name)).unwrap();
        file.set_len(size).unwrap();
        if name != "none" {
            std::os::unix::fs::FileExt::write_all_at(&file, b"x", size / 2 + 5).unwrap();
        }
    }
    let report = bench.import(&root, "vv");
    assert_eq!(report.plain, 3, "{}", report.human());
    for (name, chunks) in [("none", 0), ("small", 1), ("big", 1)] {
        let path = format!("vv/{name}");
        assert_eq!(bench.node(&path).unwrap().chunks, chunks, "{name}");
    }
    bench.export(&bench.path("out"), Some("vv")).unwrap();
    for name in ["none", "small", "big"] {
        assert!(read(&root, name) == read(&bench.path("out"), name), "{name}");
    }
    assert_eq!(bench.import(&root, "vv").unchanged, 3);
    bench.clean();
}

#[test]
fn attributes_of_files_and_directories_come_and_go_with_them() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    let bench = Bench::new();
    let root = bench.path("src");
    write(&root, "dir/small", "x");
    write(&root, "dir/big", vec![b'x'; 9 << 20]);
    for path in ["dir", "dir/small", "dir/big"] {
        if setxattr(root.join(path), "user.of", path.as_bytes(), XattrFlags::empty()).is_err() {
            eprintln!("left out: the temporary directory takes no attributes");
            return;
        }
    }
    let report = bench.import(&root, "plain");
    assert_eq!((report.plain, report.unreadable.count), (2, 0), "{}", report.human());
    let out = bench.path("out");
    assert_eq!(bench.export(&out, Some("plain")).unwrap().left_out_count, 0);
    for path in ["dir", "dir/small", "dir/big"] {
        let mut value = [0; 64];
        let length = getxattr(out.join(path), "user.of", &mut value[..]).unwrap();
        assert_eq!(&value[..length], path.as_bytes());
    }
}

#[test]
fn two_imports_of_one_large_file_leave_it_whole() {
    let bench = Bench::new();
    let root = bench.path("src");
    write(&root, "big", vec![b'x'; 9 << 20]);
    let (mut inner, mut whole) = (None, None);
    // The other import begins, and ends, in the middle of this one's file.
    dispatch(&bench.service, &bench.caller(), Bench::importing(&root, "plain"), &mut |reply| {
        match reply {
            Reply::Progress { what, .. } if what.contains("MiB") && inner.is_none() => {
                inner = Some(bench.import(&root, "plain"));
            }
            Reply::Report(report) => whole = Some(*report),
            _ => {}
        }
        true
    });
    assert_eq!(whole.unwrap().exit(), Exit::Done);
    let inner = inner.expect("it tells how far it is");
    assert!(
        inner.exit() == Exit::Problems && inner.human().contains("another import"),
        "{inner:?}"
    );
    assert_eq!(bench.node("plain/big").unwrap().size, 9 << 20);
    assert_eq!(bench.import(&root, "plain").unchanged, 1);
    bench.clean();
}

#[test]
fn a_large_file_whose_part_was_replaced_gets_no_name() {
    let bench = Bench::new();
    let root = bench.path("src");
    write(&root, "big", vec![b'x'; 9 << 20]);
    let mut other = None;
    let mut told = None;
    dispatch(&bench.service, &bench.caller(), Bench::importing(&root, "plain"), &mut |reply| {
        match reply {
            Reply::Progress { what, .. } if what.contains("MiB") && other.is_none() => {
                let dir = bench.node("plain").unwrap().ino;
                let mut part = None;
                let look = |read: &dyn crate::store::Read| {
                    read.list(dir, None, &mut |(name, _)| {
                        part = Some(name);
                        true
                    })
                };
                crate::store::read(&**bench.service.engine.readers(), look).unwrap();
                let name: FileName = part.unwrap();
                let remove = crate::engine::Remove {
                    parent: dir,
                    name: name.clone(),
                    what: crate::engine::RemoveWhat::File,
                };
                bench.service.engine.run(bench.context(), remove).unwrap();
                let path = format!("plain/{name}");
                let content = NewContent::File;
                let create = Create::new(dir, name, 0o644, content);
                bench.service.engine.run(bench.context(), create).unwrap();
                other = Some(path);
            }
            Reply::Report(report) => told = Some(*report),
            _ => {}
        }
        true
    });
    assert_eq!(told.unwrap().exit(), Exit::Problems);
    assert!(bench.node("plain/big").is_none());
    assert!(bench.node(&other.unwrap()).is_some(), "it is not the import's");
    bench.clean();
}

#[test]
fn further_names_are_exported_also_where_paths_are_too_long_for_a_call() {
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, mkdirat, openat};
    let bench = Bench::new();
    let root = bench.path("src");
    fs::create_dir(&root).unwrap();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut dir = openat(CWD, &root, flags, Mode::empty()).unwrap();
    let name = "d".repeat(240);
    for _ in 0..18 {
        mkdirat(&dir, &name, Mode::RWXU).unwrap();
        dir = openat(&dir, &name, flags, Mode::empty()).unwrap();
    }
    let made = OFlags::CREATE | OFlags::WRONLY;
    rustix::io::write(openat(&dir, "a", made, Mode::RWXU).unwrap(), b"x").unwrap();
    linkat(&dir, "a", &dir, "b", AtFlags::empty()).unwrap();
    let report = bench.import(&root, "deep");
    assert_eq!(report.unreadable.count, 0, "{}", report.human());
    let report = bench.export(&bench.path("out"), Some("deep")).unwrap();
    assert_eq!((report.files, report.left_out_count), (2, 0), "{}", report.human());
}
