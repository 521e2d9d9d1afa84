//! Long commands whose caller goes away in the middle.

use std::fs;

use super::*;

// P5.2
#[test]
fn fsck_says_how_far_it_came_and_neither_that_it_is_clean_nor_a_hash() {
    let bench = Bench::new();
    bench.mkdir("scratchpad");
    bench.save("scratchpad/f", "1");
    for (until, reached) in
        [("whole", "the file"), ("events", "1 of 1 events"), ("nodes", "0 of 3 nodes")]
    {
        let said = bench.interrupted(Request::Fsck, until).human();
        let wanted =
            format!("interrupted at {reached}, the rest was not checked: no problem so far: ");
        assert!(said.starts_with(&wanted), "{said}");
        assert!(!said.contains("clean") && !said.contains("hash"), "{said}");
    }
    let whole = bench.clean();
    assert!(whole.human().starts_with("clean: ") && whole.human().contains(&whole.last_hash));
}

// P8.3
#[test]
fn an_import_and_an_export_end_in_the_middle_of_a_large_file_and_leave_no_part_of_it() {
    let bench = Bench::new();
    let from = bench.path("from");
    fs::create_dir(&from).unwrap();
    fs::write(from.join("a"), "small").unwrap();
    fs::write(from.join("b"), vec![b'x'; 9 << 20]).unwrap();
    let args = ImportArgs { from: from.clone(), to: "to".to_owned(), umask: None, agent: None };
    let names = |path: &str| {
        let dir = bench.node(path).unwrap().ino;
        let mut names = Vec::new();
        let list = bench.service.read(|read| {
            Ok(read.list(dir, None, &mut |(name, _)| {
                names.push(name.to_string());
                true
            })?)
        });
        list.unwrap();
        names
    };
    for (until, taken) in [("names", 0), ("files", 0), ("MiB", 1)] {
        let report = bench.interrupted(Request::Import(args.clone()), until);
        let Report::Import(report) = report else { panic!("{report:?}") };
        assert_eq!((report.plain, report.unreadable.count), (taken, 0), "{}", report.human());
        assert_eq!(names("to"), ["a"][..taken as usize]);
    }
    bench.import(&from, "to");
    // Comparing takes as long.
    let report = bench.interrupted(Request::Import(args), "MiB");
    assert!(report.human().contains("unchanged: 1\n"), "{}", report.human());
    let to = bench.path("to");
    let args = ExportArgs { to: to.clone(), path: None, force: false, versions: false };
    let report = bench.interrupted(Request::Export(args), "MiB");
    let Report::Export(report) = report else { panic!("{report:?}") };
    assert_eq!(report.files, 1, "{}", report.human());
    assert!(to.join("to/a").exists() && !to.join("to/b").exists());
    bench.clean();
}

// P8.3
#[test]
fn an_export_ends_also_among_what_has_no_content() {
    let bench = Bench::new();
    let from = bench.path("from");
    fs::create_dir(&from).unwrap();
    for nth in 0..9 {
        fs::create_dir(from.join(format!("d{nth}"))).unwrap();
        std::os::unix::fs::symlink("x", from.join(format!("l{nth}"))).unwrap();
    }
    bench.import(&from, "to");
    let args = ExportArgs { to: bench.path("out"), path: None, force: false, versions: false };
    let Report::Export(report) = bench.interrupted(Request::Export(args), "files") else {
        panic!()
    };
    assert_eq!((report.directories, report.links), (0, 0), "{}", report.human());
}

// P11.9
#[test]
fn gc_calls_no_project_one_that_goes_before_it_has_looked_at_all_of_it() {
    let bench = Bench::new();
    bench.mkdir("scratchpad/info/001");
    bench.save("scratchpad/info/001/project.yaml", "status: completed\n");
    let status = vec!["completed".to_owned()];
    for (delete, told) in [(false, "nothing was removed"), (true, "what went is gone")] {
        let args = GcArgs { status: status.clone(), delete, older_than_s: 0, agent: None };
        let report = bench.interrupted(Request::Gc(args), "files");
        let Report::Gc(report) = report else { panic!("{report:?}") };
        assert!(report.projects.is_empty() && report.interrupted, "{report:?}");
        assert!(report.human().contains(told), "{}", report.human());
    }
    assert!(bench.node("scratchpad/info/001/project.yaml").is_some());
}
