//! A store of a test's own, served by the binary that was built, on mounts of its own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::ledger::Ledger;
use super::run::{Ran, Shell, run, run_within};
use super::sweep::{PREFIX, own, sweep_once};
use super::task::Task;
use super::teardown::{Watchdog, processes_of, take_down};
use super::wait::{DEADLINE, await_end, send_signal, until_polled};
use super::{long, posix, program};

/// The exit code of `workfs unmount` where a process uses the mount (docs/cli.md).
const IN_USE: i32 = 5;

/// How a fixture is to be.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How many mounts of the one store.
    pub mounts: usize,
    /// More arguments of each `workfs mount`.
    pub arguments: Vec<String>,
    /// The daemon's environment.
    pub variables: Vec<(String, String)>,
    /// Lanes that are made.
    pub lanes: Vec<String>,
    /// A layout, for `workfs init --layout`.
    pub layout: Option<String>,
    /// Where the store lies, if not beside the mounts.
    pub store_dir: Option<PathBuf>,
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            mounts: 1,
            arguments: Vec::new(),
            variables: Vec::new(),
            lanes: vec!["bob".to_owned(), "ann".to_owned()],
            layout: None,
            store_dir: None,
        }
    }
}

impl Setup {
    /// With so many mounts.
    pub fn mounts(mut self, mounts: usize) -> Self {
        self.mounts = mounts;
        self
    }

    /// With these lanes.
    pub fn lanes(mut self, lanes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.lanes = lanes.into_iter().map(Into::into).collect();
        self
    }

    /// With more arguments of `workfs mount`.
    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|&argument| argument.to_owned()));
        self
    }

    /// With a variable in the daemon's environment.
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With this layout.
    pub fn layout(mut self, layout: &str) -> Self {
        self.layout = Some(layout.to_owned());
        self
    }

    /// With the store in this directory.
    pub fn store_dir(mut self, dir: &Path) -> Self {
        self.store_dir = Some(dir.to_owned());
        self
    }

    /// Makes it: mounted, with its state directories.
    #[track_caller]
    pub fn start(self) -> Fixture {
        let fixture = self.prepare();
        if let Some(layout) = &fixture.setup.layout {
            let file = fixture.outside("layout.yaml");
            std::fs::write(&file, layout).unwrap();
            fixture.workfs(&["init", "--layout", file.to_str().unwrap()]).success();
        }
        fixture.mount_all();
        fixture.make_directories();
        fixture
    }

    /// Makes only the place for it: nothing is started.
    #[track_caller]
    pub fn prepare(self) -> Fixture {
        sweep_once();
        hear_signals();
        let base = tempfile::Builder::new().prefix(PREFIX).tempdir().unwrap();
        for dir in ["home", "run", "outside"] {
            std::fs::create_dir(base.path().join(dir)).unwrap();
        }
        let mounts: Vec<PathBuf> =
            (0..self.mounts).map(|nth| base.path().join(format!("m{nth}"))).collect();
        for mount in &mounts {
            std::fs::create_dir(mount).unwrap();
        }
        let dir = self.store_dir.clone().unwrap_or_else(|| base.path().join("store"));
        std::fs::create_dir_all(&dir).unwrap();
        let store = dir.join("team.db");
        own(base.path(), &store);
        let watchdog = Watchdog::start(base.path(), &store, if long() { 3600 } else { 180 });
        Fixture { base: Some(base), mounts, store, setup: self, _watchdog: watchdog }
    }
}

/// A store and its mounts. All of it goes when this is dropped.
pub struct Fixture {
    base: Option<tempfile::TempDir>,
    mounts: Vec<PathBuf>,
    store: PathBuf,
    setup: Setup,
    _watchdog: Watchdog,
}

/// Who runs the tests in the background of a script has them ignore SIGINT and SIGQUIT, and what
/// they start inherits that.
fn hear_signals() {
    for signal in [libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: the default action needs no handler.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

impl Fixture {
    /// One mount, lanes for bob and ann.
    #[track_caller]
    pub fn new() -> Fixture {
        Setup::default().start()
    }

    /// The first mount.
    pub fn root(&self) -> &Path {
        &self.mounts[0]
    }

    /// A mount.
    pub fn mount(&self, nth: usize) -> &Path {
        &self.mounts[nth]
    }

    /// All mounts.
    pub fn mounts(&self) -> &[PathBuf] {
        &self.mounts
    }

    /// The workspace in the first mount.
    pub fn work(&self) -> PathBuf {
        self.root().join("work")
    }

    /// A path in the first mount.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    /// The store.
    pub fn store(&self) -> &Path {
        &self.store
    }

    /// The test's directory, which holds all the others.
    pub fn base(&self) -> &Path {
        self.base.as_ref().expect("there until it is dropped").path()
    }

    /// A path outside all mounts.
    pub fn outside(&self, name: &str) -> PathBuf {
        self.base().join("outside").join(name)
    }

    /// `workfs --store … ARGUMENTS`, with nothing of the user's own environment.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_on(&self.store, arguments)
    }

    /// The same on another store.
    pub fn command_on(&self, store: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        let home = self.base().join("home");
        command.arg("--store").arg(store).args(arguments).current_dir(self.base());
        command.env("HOME", &home).env("XDG_DATA_HOME", home.join("share"));
        command.env("XDG_STATE_HOME", home.join("state")).env("XDG_CONFIG_HOME", home.join("conf"));
        command.env("XDG_RUNTIME_DIR", self.base().join("run")).env("LC_ALL", "C.UTF-8");
        for name in ["WORKFS_STORE", "WORKFS_FAULT", "WORKFS_AGENT", "WORKFS_LOG", "TRACEPARENT"] {
            command.env_remove(name);
        }
        command.env("NO_COLOR", "1");
        command.envs(self.setup.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs `workfs ARGUMENTS`.
    #[track_caller]
    pub fn workfs(&self, arguments: &[&str]) -> Ran {
        run(&mut self.command(arguments))
    }

    /// The same with another deadline.
    #[track_caller]
    pub fn workfs_within(&self, arguments: &[&str], deadline: Duration) -> Ran {
        run_within(&mut self.command(arguments), deadline)
    }

    /// Puts the store elsewhere, before anything is mounted.
    pub fn set_store(&mut self, store: PathBuf) {
        self._watchdog = Watchdog::start(self.base(), &store, if long() { 3600 } else { 180 });
        own(self.base(), &store);
        self.store = store;
    }

    /// Sets a variable for daemons that are started from now on, or takes it away.
    pub fn set_variable(&mut self, name: &str, value: Option<&str>) {
        self.setup.variables.retain(|(known, _)| known != name);
        let value = value.map(|value| (name.to_owned(), value.to_owned()));
        self.setup.variables.extend(value);
    }

    /// Unmounts all, which ends the daemon. A process that another test of this program is just
    /// starting has all files of this one open, until it runs its own program.
    #[track_caller]
    pub fn unmount_all(&self) {
        for mount in &self.mounts {
            until_polled("nobody's file being open in the mount", || {
                let ran = self.workfs(&["unmount", mount.to_str().unwrap()]);
                (ran.code != IN_USE).then(|| ran.success())
            });
        }
    }

    /// Mounts all; when this returns they answer.
    #[track_caller]
    pub fn mount_all(&self) {
        for mount in &self.mounts {
            self.mount_at(mount).success();
        }
    }

    /// `workfs mount DIR` with the fixture's arguments.
    #[track_caller]
    pub fn mount_at(&self, dir: &Path) -> Ran {
        let mut arguments = vec!["mount", dir.to_str().unwrap()];
        arguments.extend(self.setup.arguments.iter().map(String::as_str));
        self.workfs(&arguments)
    }

    /// Makes the store, or gives it another layout: of one workspace, as a layout names it, with records
    /// of a kind that is defined so, with this schema.
    #[track_caller]
    pub fn init_with_kind(&self, (kind, schema): (&str, &str), workspace: &str) {
        let said = |key: &str| kind.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        let file = format!("{}.kind.yaml", said("kind: "));
        let layout = format!("kinds: [{{ file: {file} }}]\nworkspaces:\n  - {workspace}\n");
        for (name, text) in [(&*file, kind), (said("schema: "), schema), ("layout.yaml", &layout)] {
            std::fs::write(self.outside(name), text).unwrap();
        }
        let layout = self.outside("layout.yaml");
        self.workfs(&["init", "--layout", layout.to_str().unwrap()]).success();
    }

    /// Makes the workspace's directories, as a client would.
    #[track_caller]
    pub fn make_directories(&self) {
        if self.setup.layout.is_some() {
            return;
        }
        let lanes = self.setup.lanes.iter();
        let lanes = lanes.flat_map(|lane| [format!("assigned/{lane}"), format!("done/{lane}")]);
        for dir in ["inbox".to_owned()].into_iter().chain(lanes) {
            std::fs::create_dir_all(self.work().join(dir)).unwrap();
        }
    }

    /// Bash in the first mount, with `W` as the workspace and `OUT` as a place outside.
    pub fn bash(&self) -> Shell<'_> {
        let shell = Shell::bash(self.root());
        shell.with("W", self.work()).with("OUT", self.base().join("outside"))
    }

    /// Runs a snippet in it.
    #[track_caller]
    pub fn sh(&self, snippet: &str) -> Ran {
        self.bash().run(snippet)
    }

    /// All that lies below a directory: path, inode, names, size, mode and time of change.
    #[track_caller]
    pub fn walk(&self, dir: &Path) -> String {
        let find = "find -printf '%p %i %n %s %m %T@\n' | sort";
        self.sh(&format!("cd '{}' && {find}", dir.display())).success().stdout
    }

    /// Writes tasks `t-0001` … into a directory of the workspace.
    #[track_caller]
    pub fn tasks(&self, count: usize) -> Vec<String> {
        let ids: Vec<String> = (1..=count).map(|nth| format!("t-{nth:04}")).collect();
        for id in &ids {
            self.task("inbox", &Task::new(id));
        }
        ids
    }

    /// Writes one task; gives its path.
    #[track_caller]
    pub fn task(&self, dir: &str, task: &Task) -> PathBuf {
        let path = self.work().join(dir).join(task.file());
        posix::save(&path, task.text().as_bytes())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    /// The whole ledger, which must be dense.
    #[track_caller]
    pub fn ledger(&self) -> Ledger {
        Ledger::of(self.workfs(&["log", "--json"]).success().json_lines())
    }

    /// Returns when no daemon serves the store: one that has nothing to serve has answered before it ends.
    #[track_caller]
    pub fn await_no_daemon(&self) {
        until_polled("the daemon ends", || processes_of(self.store()).is_empty().then_some(()));
    }

    /// Fails the test unless `workfs fsck` finds nothing.
    #[track_caller]
    pub fn fsck_clean(&self) {
        let ran = self.workfs_within(&["fsck", "--json"], DEADLINE * 2);
        assert!(ran.ok(), "fsck is not clean: {ran}");
        self.ledger().versions_are_linked();
    }

    /// The daemon's process.
    #[track_caller]
    pub fn daemon_pid(&self) -> u32 {
        let ran = self.workfs(&["ps", "--json"]).success();
        find_number(&ran.json(), "pid").unwrap_or_else(|| panic!("no pid in {ran}"))
    }

    /// Ends the daemon with SIGKILL.
    #[track_caller]
    pub fn kill_daemon(&self) {
        let pid = self.daemon_pid();
        send_signal(pid, rustix::process::Signal::KILL);
        await_end(pid);
    }

    /// What `.workfs/why` says.
    #[track_caller]
    pub fn why(&self) -> String {
        std::fs::read_to_string(self.path(".workfs/why")).unwrap()
    }

    /// All rejected texts that are kept.
    #[track_caller]
    pub fn rejected(&self) -> Vec<Vec<u8>> {
        let dir = self.path(".workfs/rejected");
        let mut paths: Vec<PathBuf> =
            std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
    }
}

/// The first number under this key, wherever it stands.
fn find_number(value: &serde_json::Value, key: &str) -> Option<u32> {
    match value {
        serde_json::Value::Object(map) => {
            let here = map.get(key).and_then(serde_json::Value::as_u64);
            here.and_then(|number| u32::try_from(number).ok())
                .or_else(|| map.values().find_map(|value| find_number(value, key)))
        }
        serde_json::Value::Array(list) => list.iter().find_map(|value| find_number(value, key)),
        _ => None,
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let Some(base) = self.base.take() else { return };
        let stays = take_down(base.path(), &self.store, &self.mounts);
        // What stays would fill the machine; after a failed test the first failure counts.
        if let Err(error) = base.close()
            && !std::thread::panicking()
        {
            panic!("the test's files cannot be removed: {error}");
        }
        assert!(stays.is_empty() || std::thread::panicking(), "left behind: {stays:?}");
    }
}
