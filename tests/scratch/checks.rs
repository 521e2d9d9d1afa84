//! Checked files: nothing invalid replaces something valid, as with records.

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;

use crate::harness::{Errno, Fixture, Ran, Setup, close, left_out, needs, save, until_polled};

const LAYOUT: &str = "workspaces: []
checks:
  - { path: \"scratchpad/info/*/project.yaml\", schema: project }
  - { path: \"scratchpad/**/*.json\" }
  - { path: \"scratchpad/**/*.yaml\", syntax: yaml }
  - { path: \"plans/*.json\", schema: plan }
schemas:
  - { name: plan, text: '{\"type\": \"object\", \"required\": [\"goal\"]}' }
";

const GOOD: &str = "projectId: '001'\nname: One\ncreatedAt: 2026-11-21T10:30:00Z\n\
                    updatedAt: 2026-11-21T10:30:00Z\nstatus: active\n";

fn checked() -> Fixture {
    let fixture = Setup::default().mounts(2).layout(LAYOUT).start();
    fixture.sh("mkdir -p scratchpad/info/001 plans").success();
    fixture
}

// P11.7
#[test]
fn whichever_way_it_is_saved_the_old_content_stays() {
    let fixture = checked();
    let path = fixture.path("scratchpad/info/001/project.yaml");
    save(&path, GOOD.as_bytes()).unwrap();
    let bad = GOOD.replace("active", "paused");
    fs::write(fixture.outside("bad"), &bad).unwrap();
    for (snippet, errno) in [
        ("cp $OUT/bad project.yaml", "Invalid argument"),
        ("cat $OUT/bad > project.yaml", "Invalid argument"),
        ("cp $OUT/bad p.tmp; mv p.tmp project.yaml", "Operation not permitted"),
        ("cp $OUT/bad /dev/stdout | tee project.yaml", "Invalid argument"),
        ("sed -i s/active/paused/ project.yaml", "Operation not permitted"),
        ("truncate -s 40 project.yaml", "Invalid argument"),
        ("cp $OUT/bad b.txt; ln -f b.txt project.yaml", "Operation not permitted"),
    ] {
        let ran = fixture.sh(&format!("set -o pipefail; cd scratchpad/info/001; {snippet}"));
        let ran = ran.failure();
        assert!(ran.stderr.contains(errno), "{snippet}: {ran}");
        let now = fs::read_to_string(&path);
        assert_eq!(now.unwrap(), GOOD, "{snippet}");
        let why = fixture.why();
        assert!(why.contains("scratchpad/info/001/project.yaml"), "{snippet}: {why}");
        assert!(why.contains("W011") || why.contains("W010"), "{snippet}: {why}");
    }
    assert!(fixture.rejected().iter().any(|bytes| bytes == bad.as_bytes()));
    save(&path, GOOD.as_bytes()).unwrap();
    let beside = fs::read_to_string(fixture.path("scratchpad/info/001/project.yaml.why")).unwrap();
    assert!(beside.contains("checked when it is saved") && beside.contains("paused"), "{beside}");
    let events: Vec<String> =
        fixture.ledger().0.iter().map(|event| event.0["payload"]["path"].to_string()).collect();
    assert_eq!(events.iter().filter(|path| path.contains("project.yaml")).count(), 2, "{events:?}");
    fixture.fsck_clean();
}

// P11.7 P3.1
#[test]
fn who_cleans_up_after_a_refused_save_removes_only_what_is_new() {
    if !needs(&["node"]) {
        return;
    }
    let fixture = checked();
    let path = fixture.path("scratchpad/info/001/project.yaml");
    save(&path, GOOD.as_bytes()).unwrap();
    // What only `close` refuses, and what `write` does.
    for (nth, bad) in ["a: [", "{ a: 1 }\n"].into_iter().enumerate() {
        fs::write(fixture.outside("bad"), bad).unwrap();
        let copy = |to: &str| {
            let script = "node -e 'const { OUT, TO } = process.env;
                require(\"fs\").copyFileSync(OUT + \"/bad\", TO)'; exit $?";
            fixture.bash().with("TO", to).run(script)
        };
        copy("scratchpad/info/001/project.yaml").failure();
        assert_eq!(fs::read_to_string(&path).unwrap(), GOOD, "{nth}");
        copy("plans/new.json").failure();
        assert!(!fixture.path("plans/new.json").exists(), "{nth}");
    }
    fs::remove_file(&path).unwrap();
    fixture.fsck_clean();
}

// P11.7 P3.3
#[test]
fn a_shell_hears_of_what_a_schema_refuses() {
    let fixture = checked();
    let path = fixture.path("scratchpad/info/001/project.yaml");
    save(&path, GOOD.as_bytes()).unwrap();
    for bad in [
        "status: nonsense\\nprojectId: p\\nname: n\\n",
        "status: nonsense\\n",
        "projectId: 5\\nname: n\\ncreatedAt: 2026-01-01\\n",
        "projectId: [p]\\n",
        "name: n\\ncreatedAt: yesterday\\nstatus: active\\n",
    ] {
        let ran = fixture.sh(&format!("printf '{bad}' > scratchpad/info/001/project.yaml"));
        assert!(ran.failure().stderr.contains("Invalid argument"), "{bad}");
        assert_eq!(fs::read_to_string(&path).unwrap(), GOOD, "{bad}");
        let why = fixture.why();
        assert!(why.lines().next().is_some_and(|first| first.contains("W011")), "{bad}: {why}");
    }
    let json = "echo '{\"goal\": 1}' > plans/a.json && echo '{\"aim\": 1}' > plans/a.json";
    assert!(fixture.sh(json).failure().stderr.contains("Invalid argument"));
    assert_eq!(fs::read_to_string(fixture.path("plans/a.json")).unwrap(), "{\"goal\": 1}\n");
    // What is written in pieces is whole at the end.
    let mut file = fs::File::create(&path).unwrap();
    GOOD.lines().for_each(|line| writeln!(file, "{line}").unwrap());
    close(file).unwrap();
    fixture.fsck_clean();
}

// P11.7
#[test]
fn readers_see_one_content_or_the_other() {
    let fixture = checked();
    let path = fixture.path("scratchpad/a.json");
    let other = fixture.mount(1).join("scratchpad/a.json");
    save(&path, b"{\"n\": 1}").unwrap();
    let mut early = fs::File::open(&path).unwrap();
    let mut writer = fs::OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
    writer.write_all(b"{\"n\": [1,").unwrap();
    for seen in [&path, &other] {
        assert_eq!(fs::read(seen).unwrap(), b"{\"n\": 1}");
    }
    writer.write_all(b" 2]}").unwrap();
    close(writer).unwrap();
    for seen in [&path, &other] {
        assert_eq!(fs::read(seen).unwrap(), b"{\"n\": [1, 2]}");
    }
    assert_eq!(fs::metadata(&other).unwrap().len(), 13);
    assert_eq!(fixture.sh("stat -c %s scratchpad/a.json").success().stdout, "13\n");
    let mut text = String::new();
    early.read_to_string(&mut text).unwrap();
    assert_eq!(text, "{\"n\": 1}");

    // What no further byte can mend is refused by write.
    let mut writer = fs::OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
    let error = writer.write_all(b"{]").unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::INVAL));
    assert!(close(writer).is_err());
    fixture.sh("echo '{\"n\": ]}' > scratchpad/a.json").failure();
    assert_eq!(fs::read(&path).unwrap(), b"{\"n\": [1, 2]}");

    // In place, and more than once through one handle.
    let mut both = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    both.seek(SeekFrom::Start(7)).unwrap();
    both.write_all(b"3").unwrap();
    both.sync_all().unwrap();
    assert_eq!(fs::read(&other).unwrap(), b"{\"n\": [3, 2]}");
    both.seek(SeekFrom::Start(7)).unwrap();
    both.write_all(b"]").unwrap();
    assert!(both.sync_all().is_err());
    drop(both);
    assert_eq!(fs::read(&other).unwrap(), b"{\"n\": [3, 2]}");
    fixture.fsck_clean();
}

// P11.7
#[test]
fn a_new_file_that_is_not_valid_leaves_no_name() {
    let fixture = checked();
    let path = fixture.path("scratchpad/new.yaml");
    let mut writer = fs::File::create(&path).unwrap();
    writer.write_all(b"a: [1,\n").unwrap();
    // Nobody but its maker sees it before it was judged.
    fixture.sh("! test -e scratchpad/new.yaml && ! test -e ../m1/scratchpad/new.yaml").success();
    assert_eq!(close(writer), Err(Errno::INVAL));
    assert!(!path.exists());
    assert_eq!(fixture.rejected(), [b"a: [1,\n".to_vec()]);
    fixture.sh("printf 'a: ]\\n' > scratchpad/n2.yaml").failure();
    assert!(!fixture.path("scratchpad/n2.yaml").exists());
    save(&path, b"- a\n- b: {c: d}\n").unwrap();
    assert_eq!(fs::read(fixture.mount(1).join("scratchpad/new.yaml")).unwrap().len(), 16);
    // A new empty file is judged when something is written to it.
    fixture.sh("touch scratchpad/t.yaml").success();
    // Whatever is YAML, where no schema says more; one document where one does.
    let any = "%YAML 1.2\n---\n1: a\n<<: {b: c}\n? [x]\n: !own y\n--- .inf\n";
    save(&fixture.path("scratchpad/any.yaml"), any.as_bytes()).unwrap();
    let two = format!("{GOOD}---\n{GOOD}");
    assert_eq!(
        save(&fixture.path("scratchpad/info/001/project.yaml"), two.as_bytes()),
        Err(Errno::INVAL)
    );
    // Whatever is JSON, though many readers have no value for it; with a schema what it can judge.
    save(&fixture.path("scratchpad/any.json"), b"[1e400, \"\\ud800\"]").unwrap();
    assert_eq!(save(&fixture.path("plans/n.json"), b"{\"goal\": 1e400}"), Err(Errno::INVAL));
    let why = fixture.why();
    assert!(!why.contains("mapping") && !why.contains("record"), "{why}");
    // A schema of one's own, and files for which no check counts.
    assert_eq!(save(&fixture.path("plans/p.json"), b"{\"gaol\": 1}"), Err(Errno::INVAL));
    save(&fixture.path("plans/p.json"), b"{\"goal\": 1}").unwrap();
    save(&fixture.path("plans/p.yaml"), b"a: [").unwrap();
    save(&fixture.path("scratchpad/x.yaml.tmp"), b"a: [").unwrap();
    fixture.fsck_clean();
}

// P11.7
#[test]
fn a_new_file_is_seen_by_those_who_make_it_until_it_is_judged() {
    let fixture = checked();
    let path = fixture.path("scratchpad/new.yaml");
    let hidden = |when: &str| {
        let looks = "! test -e scratchpad/new.yaml && ! test -e ../m1/scratchpad/new.yaml && \
                     ! ls scratchpad ../m1/scratchpad | grep new";
        assert!(fixture.sh(looks).ok(), "{when}");
    };
    let mut writer = fs::File::create(&path).unwrap();
    writer.write_all(b"a: [1,\n").unwrap();
    // Its maker looks at it, and opens it once more.
    assert_eq!(fs::metadata(&path).unwrap().len(), 7);
    drop(fs::File::open(&path).unwrap());
    hidden("its maker has looked");
    // Others make it, too: they have the same file, and still it is nobody else's.
    fixture.sh("touch scratchpad/new.yaml").success();
    hidden("another has made it, too");
    fixture.sh("set -o noclobber; > scratchpad/new.yaml").failure();
    fixture.sh("printf 'a: ]' | dd of=scratchpad/new.yaml status=none").failure();
    hidden("what another wrote is not valid");
    writer.write_all(b"2]\n").unwrap();
    close(writer).unwrap();
    let read = fixture.sh("cat scratchpad/new.yaml ../m1/scratchpad/new.yaml").success();
    assert_eq!(read.stdout, "a: [1,\n2]\n".repeat(2));

    // What is made and never written is there when it is closed by all.
    let empty = fixture.path("scratchpad/lock.yaml");
    let mut exclusive = fs::OpenOptions::new();
    let made = exclusive.write(true).create_new(true).open(&empty).unwrap();
    fixture.sh("touch scratchpad/lock.yaml").success();
    fixture.sh("! test -e scratchpad/lock.yaml").success();
    drop(made);
    until_polled("it is born", || fixture.sh("test -e scratchpad/lock.yaml").ok().then_some(()));
    fixture.sh("ln scratchpad/lock.yaml scratchpad/link.yaml").success();
    assert!(exclusive.open(&empty).is_err());
    fixture.fsck_clean();
}

// P11.7
#[test]
fn a_layout_brings_schemas_as_files() {
    let fixture = Setup::default().prepare();
    fs::write(fixture.outside("plan.json"), "{\"required\": [\"goal\"]}").unwrap();
    let layout = "workspaces: []\nschemas: [{name: plan, file: plan.json}]\n\
                  checks: [{path: 'p/*.json', schema: plan}]\n";
    let file = fixture.outside("layout.yaml");
    fs::write(&file, layout).unwrap();
    fixture.workfs(&["init", "--layout", file.to_str().unwrap()]).success();
    fs::remove_file(fixture.outside("plan.json")).unwrap();
    fixture.mount_all();
    fixture.sh("mkdir p").success();
    assert_eq!(save(&fixture.path("p/a.json"), b"{}"), Err(Errno::INVAL));
    save(&fixture.path("p/a.json"), b"{\"goal\": 2}").unwrap();
    let wrong = layout.replace("schema: plan}", "schema: plam}");
    fs::write(&file, wrong).unwrap();
    let ran = fixture.workfs(&["init", "--dry-run", "--layout", file.to_str().unwrap()]).failure();
    assert!(ran.stderr.contains("plan"), "{ran}");
}

// P3.10
#[test]
fn what_was_refused_is_read_by_who_wrote_it_alone() {
    if !rustix::process::geteuid().is_root() || !needs(&["setpriv"]) {
        return left_out("acting as another user needs root and setpriv");
    }
    let fixture = Setup::default().arguments(&["-o", "allow_other"]).layout(LAYOUT).start();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(fixture.base(), open).unwrap();
    // Here the kernel is told that everybody may read everything.
    let shown = fixture.outside("shown");
    fs::create_dir(&shown).unwrap();
    fixture.workfs(&["mount", shown.to_str().unwrap(), "-o", "allow_other,umask=0"]).success();
    fixture.sh("chmod 777 scratchpad").success();
    let by = |uid: u32, script: &str| -> Ran {
        let user = format!("setpriv --reuid {uid} --regid {uid} --clear-groups");
        fixture.sh(&format!("exec {user} bash -c '{script}'"))
    };
    by(64001, "umask 077; echo \"a: 1\" > scratchpad/f.yaml").success();
    by(64001, "echo \"a: [secret\" | dd of=scratchpad/f.yaml").failure();
    for uid in [64001, 0] {
        let kept = by(uid, "cat .workfs/rejected/*").success();
        assert!(kept.stdout.contains("secret"), "{uid}: {kept}");
        let why = by(uid, "cat .workfs/why scratchpad/f.yaml.why").success();
        assert_eq!(why.stdout.matches("scratchpad/f.yaml E").count(), 2, "{uid}: {why}");
    }
    for path in [".workfs/rejected/*", "scratchpad/f.yaml.why", "$OUT/shown/.workfs/rejected/*"] {
        let refused = by(64002, &format!("cat {path}")).failure();
        assert!(refused.stderr.contains("Permission denied"), "{path}: {refused}");
    }
    let why = by(64002, "cat .workfs/why $OUT/shown/.workfs/why").success();
    assert_eq!(why.stdout, "nothing of yours was refused\n".repeat(2));
    by(64002, "echo \"b: [\" | dd of=scratchpad/g.yaml").failure();
    let why = by(64002, "cat .workfs/why").success();
    assert!(why.stdout.contains("g.yaml") && !why.stdout.contains("f.yaml"), "{why}");
}

// P11.7
#[test]
fn a_descriptor_from_before_the_file_was_checked_writes_nothing_invalid() {
    let fixture = checked();
    let (temporary, path) = (fixture.path("scratchpad/g.txt"), fixture.path("scratchpad/g.yaml"));
    let file = fs::File::create(&temporary).unwrap();
    file.write_all_at(b"a: 1\nb: 2\n", 0).unwrap();
    fs::rename(&temporary, &path).unwrap();
    let seen = || fs::read_to_string(&path).unwrap();
    let errno = |result: std::io::Result<()>| {
        Errno::from_io_error(&result.expect_err("this should have failed"))
    };
    assert_eq!(errno(file.write_all_at(b"[", 3)), Some(Errno::INVAL));
    assert_eq!(seen(), "a: 1\nb: 2\n");
    assert!(fixture.why().contains("scratchpad/g.yaml"), "{}", fixture.why());
    // A hole reads as zeros, which are no text.
    let zeros = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 20);
    assert_eq!(zeros, Err(Errno::INVAL));
    assert_eq!(errno(file.set_len(15)), Some(Errno::INVAL));
    assert_eq!(seen(), "a: 1\nb: 2\n");
    assert_eq!(fixture.rejected().len(), 3);
    file.write_all_at(b"3", 3).unwrap();
    file.sync_all().unwrap();
    close(file).unwrap();
    assert_eq!(seen(), "a: 3\nb: 2\n");
    fixture.fsck_clean();
}

// P11.7
#[test]
fn an_emptied_file_is_judged_as_the_empty_text() {
    let fixture = checked();
    let (json, yaml) = (fixture.path("scratchpad/a.json"), fixture.path("scratchpad/a.yaml"));
    let content = |path: &std::path::Path| fs::read_to_string(path).unwrap();
    let saves = |path: &str| {
        let (path, ledger) = (format!("scratchpad/{path}"), fixture.ledger());
        ledger.0.iter().filter(|event| event.0["payload"]["path"] == path).count()
    };
    save(&json, b"{}").unwrap();
    save(&yaml, b"a: 1\n").unwrap();
    let made = saves("a.json");
    let refused = || fixture.why().lines().filter(|line| line.contains("a.json")).count();
    // Where nothing is a text that the check takes, who asks hears that it does not.
    fixture.sh("truncate -s 0 scratchpad/a.json").failure();
    let once = refused();
    let writer = fs::OpenOptions::new().write(true).open(&json).unwrap();
    writer.set_len(0).unwrap();
    assert_eq!(Errno::from_io_error(&writer.sync_all().unwrap_err()), Some(Errno::INVAL));
    drop(writer);
    let writer = fs::File::create(&json).unwrap();
    assert_eq!(Errno::from_io_error(&writer.sync_all().unwrap_err()), Some(Errno::INVAL));
    drop(writer);
    assert!(once > 0 && refused() == 3 * once, "{}", fixture.why());
    // What a shell empties it closes once before a command may write: that is judged at the end.
    fixture.sh(": > scratchpad/a.json").success();
    until_polled("it is refused", || (refused() == 4 * once).then_some(()));
    assert_eq!((content(&json), saves("a.json")), ("{}".to_owned(), made));
    fixture.sh("(echo '[1]') > scratchpad/a.json").success();
    assert_eq!((content(&json), saves("a.json")), ("[1]\n".to_owned(), made + 1));
    assert_eq!(refused(), 4 * once);
    // Where the check takes it, it is a save; of one that comes too late nothing is seen.
    let made = saves("a.yaml");
    fixture.sh(": > scratchpad/a.yaml").success();
    until_polled("it is empty", || content(&yaml).is_empty().then_some(()));
    assert_eq!(saves("a.yaml"), made + 1);
    for nth in 0..20 {
        fixture
            .sh(&format!(
                "echo 'a: 0' > scratchpad/a.yaml; : > scratchpad/a.yaml; \
                             echo 'a: {nth}' > scratchpad/a.yaml"
            ))
            .success();
        assert_eq!(content(&yaml), format!("a: {nth}\n"));
    }
    fixture.sh("truncate -s 0 scratchpad/a.yaml").success();
    assert_eq!(content(&yaml), "");
    fixture.fsck_clean();
}

// P11.7
#[test]
fn a_new_file_gets_no_second_name_before_it_was_judged() {
    let fixture = checked();
    let (path, link) = (fixture.path("scratchpad/z.json"), fixture.path("scratchpad/zz.txt"));
    let mut writer = fs::File::create(&path).unwrap();
    writer.write_all(b"{\"z\":").unwrap();
    let refused = fs::hard_link(&path, &link).unwrap_err();
    assert_eq!(Errno::from_io_error(&refused), Some(Errno::PERM));
    assert!(fixture.why().contains("W026"), "{}", fixture.why());
    assert_eq!(close(writer), Err(Errno::INVAL));
    assert!(!path.exists() && !link.exists());
    let mut writer = fs::File::create(&path).unwrap();
    writer.write_all(b"{}").unwrap();
    writer.sync_all().unwrap();
    fs::hard_link(&path, &link).unwrap();
    drop(writer);
    assert_eq!(fs::read_to_string(&link).unwrap(), "{}");
    fixture.fsck_clean();
}

// P11.7
#[test]
fn a_file_that_was_unlinked_takes_whatever_its_descriptor_writes() {
    let fixture = checked();
    let path = fixture.path("scratchpad/e.json");
    let mut options = fs::OpenOptions::new();
    let both = options.read(true).write(true);
    let own = |file: &mut fs::File| {
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        text
    };
    save(&path, b"{}").unwrap();
    let mut file = both.open(&path).unwrap();
    let mut appender = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let reader = fs::File::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    file.write_all(b"[]").unwrap();
    file.sync_all().unwrap();
    file.write_all(b"] is no JSON").unwrap();
    file.sync_all().unwrap();
    assert_eq!(own(&mut file), "[]] is no JSON");
    appender.write_all(b"}").unwrap();
    close(appender).unwrap();
    // To who reads it the file is what was saved last; this handle reads its own once the other has gone.
    assert_eq!(reader.metadata().unwrap().len(), 15);
    drop(reader);
    until_polled("it has one text of it", || (file.metadata().unwrap().len() == 14).then_some(()));
    close(file).unwrap();
    // Also one that was made for that.
    let mut file = both.clone().create_new(true).open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    file.write_all(b"{\"").unwrap();
    file.sync_all().unwrap();
    file.write_all(b"]").unwrap();
    assert_eq!(own(&mut file), "{\"]");
    close(file).unwrap();
    assert_eq!(fixture.rejected().len(), 0);
    // Who lost the name to a refusal hears that its further saves go nowhere.
    let mut file = both.clone().create_new(true).open(&path).unwrap();
    let mut other = fs::OpenOptions::new().append(true).create(true).open(&path).unwrap();
    file.write_all(b"[1").unwrap();
    assert!(file.sync_all().is_err());
    assert!(!path.exists());
    file.write_all(b"]").unwrap();
    other.write_all(b"[2]").unwrap();
    assert_eq!(close(file), Err(Errno::STALE));
    assert_eq!(close(other), Err(Errno::STALE));
    fixture.fsck_clean();
}

// P11.7 P3.10
#[test]
fn a_new_file_that_is_refused_has_its_why_though_it_is_not_there() {
    let fixture = checked();
    for (file, snippet) in [
        ("scratchpad/a.yaml", "echo 'a: [}' > scratchpad/a.yaml"),
        ("scratchpad/b.json", "printf '{\"a\": ' > scratchpad/b.json"),
        ("plans/c.json", "echo '{}' > x; mv x plans/c.json"),
    ] {
        let why = fixture.path(&format!("{file}.why"));
        assert!(!why.exists(), "{file}");
        // What only `close` shows a shell does not tell.
        fixture.sh(snippet);
        assert!(!fixture.path(file).exists(), "{file}");
        let text = fs::read_to_string(&why).expect(file);
        assert!(text.contains("refused when it was new") && text.contains(file), "{text}");
        let listed = fixture.sh(&format!("ls {}", file.split('/').next().unwrap())).success();
        assert!(!listed.stdout.contains(".why"), "{listed}");
        fixture.sh(&format!("echo 1 > {file}.why")).failure();
    }
    // Whoever did not write it does not read what it quotes.
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(fixture.path("scratchpad/a.yaml.why")).unwrap();
    assert_eq!(metadata.mode() & 0o777, 0o400);
    // It is there: then its own.
    fixture.sh("echo 'a: 1' > scratchpad/a.yaml").success();
    let text = fs::read_to_string(fixture.path("scratchpad/a.yaml.why")).unwrap();
    assert!(text.contains("checked when it is saved"), "{text}");
    fixture.fsck_clean();
}

// P11.1 P11.7
#[test]
fn what_several_programs_write_by_one_descriptor_is_one_save() {
    let fixture = checked();
    let by_parts = "set -e; { /bin/echo '{'; /bin/echo '\"a\":1'; /bin/echo '}'; }";
    for name in ["new.json", "new.json", "plain.md"] {
        let before = fixture.ledger().last_g();
        fixture.sh(&format!("{by_parts} > scratchpad/{name}")).success();
        let text = fs::read_to_string(fixture.path(&format!("scratchpad/{name}"))).unwrap();
        assert_eq!(text, "{\n\"a\":1\n}\n", "{name}");
        let ledger = fixture.ledger();
        let names: Vec<&str> = ledger.after(before).iter().map(|event| event.name()).collect();
        assert_eq!(names, ["saved"], "{name}");
    }
    fixture.fsck_clean();
}
