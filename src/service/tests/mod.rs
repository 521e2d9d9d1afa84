//! Every command against a store of its own, without a daemon and without a mount.

mod commands;
mod corpus;
mod damage;
mod engine;
mod gc;
mod import;
mod interrupted;
mod keep;
mod past;
mod project;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::*;
use crate::config::Config;
use crate::engine::{
    Context, Create, Doors, NewContent, Nobody, Save, SetAttributes, Sight, Text, Write, WriteAt,
};
use crate::names::{FileName, ShownPath, TreePath};
use crate::store::sqlite::Sqlite;
use crate::store::{Durability, Identity, Node};

/// A store in a directory of its own.
struct Bench {
    dir: TempDir,
    service: Service,
}

impl Bench {
    fn new() -> Bench {
        Bench::with(Config::default())
    }

    fn with(config: Config) -> Bench {
        let dir = tempfile::tempdir().unwrap();
        let service = open(&dir.path().join("store.db"), config);
        Bench { dir, service }
    }

    fn caller(&self) -> Caller {
        // Whom the daemon would run as.
        let uid = rustix::process::geteuid().as_raw();
        Caller::new(uid, 1000, Some(7))
    }

    fn context(&self) -> Context {
        self.caller().context()
    }

    fn ask(&self, request: Request) -> Result<Report, Failure> {
        let (mut last, mut whole) = (None, Whole::default());
        dispatch(&self.service, &self.caller(), request, &mut |reply| {
            // What goes over the socket comes back as it was.
            let line = serde_json::to_string(&reply).unwrap();
            assert!(!line.contains('\n'));
            assert_eq!(serde_json::from_str::<Reply>(&line).unwrap(), reply);
            match whole.join(reply) {
                Some(Reply::Report(report)) => last = Some(Ok(*report)),
                Some(Reply::Error(failure)) => last = Some(Err(failure)),
                _ => {}
            }
            true
        });
        last.unwrap()
    }

    /// What whoever goes away as soon as it hears of these things is told in the end.
    fn interrupted(&self, request: Request, until: &str) -> Report {
        let mut last = None;
        dispatch(&self.service, &self.caller(), request, &mut |reply| {
            let goes_on = !matches!(&reply, Reply::Progress { what, .. } if what.contains(until));
            last = Some(reply);
            goes_on
        });
        let Some(Reply::Report(report)) = last else { panic!("{last:?}") };
        assert!(report.is_cut_short() && report.exit() == Exit::Problems, "{}", report.human());
        *report
    }

    fn lines(&self, args: LogArgs) -> Vec<String> {
        let mut lines = Vec::new();
        dispatch(&self.service, &self.caller(), Request::Log(args), &mut |reply| {
            if let Reply::Line(line) = reply {
                lines.push(line);
            }
            true
        });
        lines
    }

    fn node(&self, path: &str) -> Option<Node> {
        let path = TreePath::parse(path).unwrap();
        self.service.read(|read| Ok(crate::engine::node_at(read, &path)?)).unwrap()
    }

    fn mkdir(&self, path: &str) {
        let path = TreePath::parse(path).unwrap();
        let mut at = crate::numbers::ROOT;
        for name in path.names() {
            let found = self.service.read(|read| Ok(read.lookup(at, name)?)).unwrap();
            at = match found {
                Some(node) => node.ino,
                None => {
                    let (name, content) = (name.clone(), NewContent::Directory);
                    let create = Create::new(at, name, 0o755, content);
                    self.service.engine.run(self.context(), create).unwrap().ino
                }
            };
        }
    }

    /// Saves a file, as a program would that opens, writes and closes it.
    fn save(&self, path: &str, text: &str) -> crate::engine::Saved {
        let path = TreePath::parse(path).unwrap();
        let (above, name) = path.split_last().unwrap();
        let parent = self.node(&above.to_string()).unwrap().ino;
        let ino = match self.node(&path.to_string()) {
            Some(node) => node.ino,
            None => {
                let (name, content) = (FileName::new(name.as_bytes()).unwrap(), NewContent::File);
                let create = Create::new(parent, name, 0o644, content);
                self.service.engine.run(self.context(), create).unwrap().ino
            }
        };
        let base = crate::engine::Base::Unseen;
        let text = Text::new(text.as_bytes().to_vec());
        let save = Save::of(ino, Sight::Known(base), text);
        self.service.engine.run(self.context(), save).unwrap()
    }

    fn show(&self, what: &str) -> ShowReport {
        let args = ShowArgs { what: what.to_owned(), ..ShowArgs::default() };
        match self.ask(Request::Show(args)).unwrap() {
            Report::Show(report) => report,
            other => panic!("{other:?}"),
        }
    }

    fn list(&self, args: ListArgs) -> Vec<ListRow> {
        match self.ask(Request::List(args)).unwrap() {
            Report::List(report) => report.rows,
            other => panic!("{other:?}"),
        }
    }

    fn importing(from: &Path, to: &str) -> Request {
        Request::Import(ImportArgs {
            from: from.to_owned(),
            to: to.to_owned(),
            umask: None,
            agent: None,
        })
    }

    fn import(&self, from: &Path, to: &str) -> ImportReport {
        match self.ask(Bench::importing(from, to)).unwrap() {
            Report::Import(report) => report,
            other => panic!("{other:?}"),
        }
    }

    fn export(&self, to: &Path, path: Option<&str>) -> Result<ExportReport, Failure> {
        let path = path.map(str::to_owned);
        let args = ExportArgs { to: to.to_owned(), path, force: false, versions: false };
        self.ask(Request::Export(args)).map(|report| match report {
            Report::Export(report) => report,
            other => panic!("{other:?}"),
        })
    }

    fn clean(&self) -> FsckReport {
        match self.ask(Request::Fsck).unwrap() {
            Report::Fsck(report) => {
                assert_eq!(report.problems, []);
                report
            }
            other => panic!("{other:?}"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

fn open(store: &Path, config: Config) -> Service {
    let (readers, writer) = Sqlite::open(store).unwrap();
    let started = crate::engine::start(
        Box::new(writer),
        Arc::new(readers),
        Arc::new(config),
        Durability::Process,
        Doors::default(),
        Arc::new(Nobody),
    );
    Service::new(started.unwrap().0, store, Identity::named(store).unwrap())
}

fn agent(name: &str) -> AgentName {
    AgentName::new(name).unwrap()
}

use crate::names::AgentName;

/// A path of a report.
fn utf8(path: &ShownPath) -> &str {
    std::str::from_utf8(path.as_bytes()).unwrap()
}
