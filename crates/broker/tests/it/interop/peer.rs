//! Another language's BullMQ in a process of its own, with the packages that `interop/run` installs.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use stampede_testkit::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::stage::Stage;

/// Starting such a process and connecting takes a while on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process with another language's BullMQ in it.
pub(crate) struct Peer {
    child: Child,
    requests: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    /// What it reported while an answer was awaited.
    reports: Vec<Value>,
    _folder: Option<TempDir>,
}

impl Peer {
    /// `interop/node/processes/peer.mjs`.
    pub(crate) async fn node(stage: &Stage) -> Self {
        let packages = packages("packages").await;
        // Node looks for packages beside the file that asks.
        let folder = tempfile::Builder::new().prefix("run.").tempdir_in(&packages).unwrap();
        let script = folder.path().join("peer.mjs");
        std::fs::copy(interop().join("node/processes/peer.mjs"), &script).unwrap();
        Self::start(Path::new("node"), &script, stage, Some(folder))
    }

    /// `interop/python/peer.py`.
    pub(crate) async fn python(stage: &Stage) -> Self {
        let program = packages("python-packages").await.join("venv/bin/python");
        Self::start(&program, &interop().join("python/peer.py"), stage, None)
    }

    fn start(program: &Path, script: &Path, stage: &Stage, folder: Option<TempDir>) -> Self {
        let mut child = Command::new(program)
            .arg(script)
            .arg(stage.redis.url())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let requests = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, requests, lines, reports: Vec::new(), _folder: folder }
    }

    async fn line(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
        let line =
            line.expect("the peer should say something").unwrap().expect("the peer should live");
        serde_json::from_str(&line).unwrap()
    }

    pub(crate) async fn ask(&mut self, request: Value) -> Value {
        self.requests.write_all(format!("{request}\n").as_bytes()).await.unwrap();
        loop {
            let mut line = self.line().await;
            assert!(line["error"].is_null(), "{}", line["error"]);
            match line.get_mut("answer") {
                Some(answer) => return answer.take(),
                None => self.reports.push(line),
            }
        }
    }

    /// The next thing a worker or listener reports.
    pub(crate) async fn report(&mut self) -> Value {
        if self.reports.is_empty() { self.line().await } else { self.reports.remove(0) }
    }

    pub(crate) async fn stop(mut self) {
        drop(self.requests);
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        assert!(ended.expect("the peer should end").unwrap().success());
    }
}

fn interop() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop")
}

/// The folder with npm's or PyPI's packages; installed at the first use.
pub(crate) async fn packages(which: &str) -> PathBuf {
    let output = Command::new(interop().join("run")).arg(which).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}
